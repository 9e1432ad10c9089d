// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the suite of many connections posts: messages in every way there is,
 * receives, own and shared, for many messages or for one sender, a look at what
 * has arrived, reads and writes, and regions of the endpoints' pools with all
 * that may become of them.
 *
 * A region for one use has a fate, drawn when it is mapped, so that the peer
 * never names a key that somebody else may have ended: that closes the
 * connection. Only an invalidation and our own unmapping may race. One for more
 * uses is unmapped when nothing of the peer's names it any more; unless that is
 * how the connection is to end.
 */
#include <linux/bvec.h>
#include <linux/vmalloc.h>

#include "many.h"

#define MANY_LEVELS	(FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
			 FI_DELIVERY_COMPLETE)
#define MANY_INJECT	128
#define MANY_TAGS	3

/* Memory of a record as one of the vectors there are */
struct many_vec {
	enum kofi_vec	vec;
	size_t		count;
	union {
		struct kvec	kv[3];
		struct bio_vec	bv[3];
	};
};

static void many_vec_kvec(struct many_worker *w, struct many_vec *v, u8 *buf,
			  size_t len, size_t count)
{
	size_t i, n;

	for (i = 0; i < count; i++) {
		n = i == count - 1 ? len : many_below(w, len + 1);
		v->kv[i] = (struct kvec){ .iov_base = buf, .iov_len = n };
		buf += n;
		len -= n;
	}
	v->vec = KOFI_KVEC;
	v->count = count;
}

static void many_vec_bvec(struct many_vec *v, u8 *buf, size_t len)
{
	size_t n;

	v->vec = KOFI_BVEC;
	v->count = 0;
	do {
		n = min(len, PAGE_SIZE - offset_in_page(buf));
		bvec_set_page(&v->bv[v->count++], vmalloc_to_page(buf), n,
			      offset_in_page(buf));
		buf += n;
		len -= n;
	} while (len);
}

static void many_vec(struct many_worker *w, struct many_vec *v, u8 *buf,
		     size_t len)
{
	switch (many_below(w, 3)) {
	case 0:
		many_vec_kvec(w, v, buf, len, 1);
		break;
	case 1:
		many_vec_kvec(w, v, buf, len, ARRAY_SIZE(v->kv));
		break;
	default:
		many_vec_bvec(v, buf, len);
		break;
	}
}

static size_t many_len(struct many_worker *w, size_t max)
{
	return many_below(w, 4) ? many_below(w, 200) : many_below(w, max + 1);
}

static u64 many_level(struct many_worker *w)
{
	static const u64 levels[] = {
		0, 0, FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE,
		FI_DELIVERY_COMPLETE,
	};
	u64 more = many_below(w, 4) ? 0 : FI_MORE;
	u64 fence = many_below(w, 16) ? 0 : FI_FENCE;

	return levels[many_below(w, ARRAY_SIZE(levels))] | more | fence |
	       FI_COMPLETION;
}

static u64 many_data(struct many_worker *w, const struct many_end *end)
{
	return (u64)end->conn->nr << 32 | prandom_u32_state(&w->rnd);
}

/* ----------------------------------------------------------------- messages */

/* The next message of an end. Returns whether it has a head. */
static bool many_message(struct many_worker *w, struct many_end *end, u8 *buf,
			 size_t len)
{
	const struct many_head head = {
		.seed = prandom_u32_state(&w->rnd),
		.seq = end->sent,
		.who = many_who(end),
		.len = len,
	};
	bool numbered = len >= sizeof(head);

	many_fill(buf, len, head.seed, numbered ? &head : NULL);
	return numbered;
}

/* A message, tagged or not; ends a region of the peer's with @inv. */
static void many_send(struct many_worker *w, struct many_end *end, bool tagged,
		      struct many_region *inv)
{
	struct many_op *op = many_hold(w, end, tagged ? MANY_TSEND : MANY_SEND);
	struct fi_msg_tagged tmsg;
	struct fi_msg msg;
	struct many_vec v;
	ssize_t ret;

	if (!op)
		return;
	op->len = many_len(w, MANY_BUF);
	op->flags = many_level(w) | (inv ? KOFI_REMOTE_INV : 0);
	if (!many_below(w, 4))
		op->flags |= FI_REMOTE_CQ_DATA;
	op->silent = end->selective && end->nr_silent < MANY_SILENT &&
		     !(op->flags & MANY_LEVELS) && many_below(w, 2);
	if (op->silent)
		op->flags &= ~FI_COMPLETION;
	if (op->len <= MANY_INJECT && !(op->flags & MANY_LEVELS) &&
	    !many_below(w, 4))
		op->flags |= FI_INJECT;
	op->numbered = many_message(w, end, op->buf, op->len);
	op->seq = end->sent;
	/* what is silent is copied, so that it is done when it is sent */
	if (op->silent)
		many_vec_kvec(w, &v, op->buf, op->len, 1);
	else
		many_vec(w, &v, op->buf, op->len);
	many_post(op);
	if (tagged) {
		tmsg = (struct fi_msg_tagged){
			.msg_iov = v.kv,	/* of a union of pointers */
			.iov_count = v.count, .vec = v.vec, .context = op,
			.tag = many_below(w, MANY_TAGS),
			.data = many_data(w, end),
		};
		ret = fi_tsendmsg(end->ep, &tmsg, op->flags);
	} else {
		msg = (struct fi_msg){
			.msg_iov = v.kv,	/* of a union of pointers */
			.iov_count = v.count, .vec = v.vec, .context = op,
			.data = many_data(w, end),
			.inv_key = inv ? fi_mr_key(inv->mr) : 0,
		};
		ret = fi_sendmsg(end->ep, &msg, op->flags);
	}
	if (!many_posted(w, op, ret)) {
		many_free(w, op);
		return;
	}
	end->sent += op->numbered;
	if (op->flags & FI_INJECT)
		memset(op->buf, 0x5a, op->len);
	if (inv)
		inv->over = true;
}

static void many_inject(struct many_worker *w, struct many_end *end)
{
	u64 base = kofi_mr_base(w->slots) + w->slot_len;
	u64 key = fi_mr_key(w->slots);
	bool numbered, message = true;
	u8 buf[MANY_INJECT];
	size_t len = many_below(w, sizeof(buf) + 1);
	ssize_t ret;

	numbered = many_message(w, end, buf, len);
	switch (many_below(w, 5)) {
	case 0:
		ret = fi_inject(end->ep, buf, len, 0);
		break;
	case 1:
		ret = fi_injectdata(end->ep, buf, len, many_data(w, end), 0);
		break;
	case 2:
		ret = fi_tinject(end->ep, buf, len, 0,
				 many_below(w, MANY_TAGS));
		break;
	case 3:
		ret = fi_inject_write(end->ep, buf, len, 0, base, key);
		message = false;
		break;
	default:
		ret = fi_inject_writedata(end->ep, buf, len, many_data(w, end),
					  0, base, key);
		message = false;
		w->values_sent += !ret;
		break;
	}
	w->injects += !ret;
	end->sent += !ret && message && numbered;
	if (ret && ret != -EAGAIN && ret != -ESHUTDOWN && ret != -ENOTCONN)
		many_wrong(w, "inject of %zu bytes was refused with %zd", len,
			   ret);
}

/* ----------------------------------------------------------------- receives */

/* Who a receive is to be for: anybody, as a rule */
static fi_addr_t many_from(struct many_worker *w, struct many_end *end,
			   const struct many_end *to)
{
	if (many_below(w, 6))
		return FI_ADDR_UNSPEC;
	return many_who(to->conn ? many_peer(end) :
			&w->conns[many_below(w, w->nr_conns)].end[0]);
}

static u64 many_ignore(struct many_worker *w)
{
	return many_below(w, 3) ? ~0ULL : 0;
}

void many_recv(struct many_worker *w, struct many_end *end,
	       enum many_kind kind)
{
	struct many_end *to = many_receiver(end);
	struct many_op *op = many_hold(w, to, kind);
	u64 multi = kind == MANY_MULTI ? FI_MULTI_RECV : 0;
	struct fi_msg_tagged tmsg;
	struct fi_msg msg;
	struct many_vec v;
	ssize_t ret;

	if (!op)
		return;
	if (multi)
		op->len = MANY_BUF - 1;		/* anything may be too long */
	else if (!many_below(w, 16))
		op->len = many_below(w, MANY_BUF);	/* too short, perhaps */
	op->src = many_from(w, end, to);
	memset(op->buf, 0, op->len);
	if (multi)
		many_vec_kvec(w, &v, op->buf, op->len, 1);
	else
		many_vec(w, &v, op->buf, op->len);
	many_post(op);
	if (kind == MANY_TRECV) {
		tmsg = (struct fi_msg_tagged){
			.msg_iov = v.kv,	/* of a union of pointers */
			.iov_count = v.count, .vec = v.vec, .context = op,
			.addr = op->src, .tag = many_below(w, MANY_TAGS),
			.ignore = many_ignore(w),
		};
		ret = fi_trecvmsg(to->ep, &tmsg, FI_COMPLETION);
	} else {
		msg = (struct fi_msg){
			.msg_iov = v.kv,	/* of a union of pointers */
			.iov_count = v.count, .vec = v.vec, .context = op,
			.addr = op->src,
		};
		ret = fi_recvmsg(to->ep, &msg, FI_COMPLETION | multi);
	}
	if (!many_posted(w, op, ret))
		many_free(w, op);
}

/* Look for a message that waits; keep it, or throw it away. */
static void many_peek(struct many_worker *w, struct many_end *end)
{
	static const u64 hows[] = { 0, FI_CLAIM, FI_CLAIM, FI_DISCARD };
	struct many_end *to = many_receiver(end);
	struct many_op *op = many_hold(w, to, MANY_PEEK);
	struct fi_msg_tagged msg = { .context = op };

	if (!op)
		return;
	op->src = many_from(w, end, to);
	op->flags = FI_COMPLETION | FI_PEEK |
		    hows[many_below(w, ARRAY_SIZE(hows))];
	msg.addr = op->src;
	msg.tag = many_below(w, MANY_TAGS);
	msg.ignore = many_ignore(w);
	many_post(op);
	if (!many_posted(w, op, fi_trecvmsg(to->ep, &msg, op->flags)))
		many_free(w, op);
}

/* Fetch a message that is kept, or throw it away after all. */
static void many_claim(struct many_worker *w, struct many_op *op)
{
	struct kvec iov = { .iov_base = op->buf, .iov_len = op->len };
	const struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .context = op,
		.addr = FI_ADDR_UNSPEC,
	};
	bool discard = !many_below(w, 3);
	struct many_end *end = op->end;
	ssize_t ret;

	if (!end->ep) {
		many_free(w, op);
		return;
	}
	op->kind = discard ? MANY_PEEK : MANY_TRECV;
	op->flags = FI_COMPLETION | FI_CLAIM | (discard ? FI_DISCARD : 0);
	op->src = FI_ADDR_UNSPEC;
	many_post(op);
	ret = fi_trecvmsg(end->ep, &msg, op->flags);
	/* it has gone with its connection */
	if (ret == -EINVAL && (stress_faulty || !end->conn ||
			       end->conn->ending))
		ret = -ESHUTDOWN;
	if (many_posted(w, op, ret))
		return;
	if (ret == -EAGAIN)
		list_add_tail(&op->node, &w->claims);
	else
		many_free(w, op);
}

/* Until its claim is posted, a stream stands still. */
void many_claims(struct many_worker *w)
{
	struct many_op *op, *next;
	LIST_HEAD(claims);

	list_splice_init(&w->claims, &claims);
	list_for_each_entry_safe(op, next, &claims, node) {
		list_del(&op->node);
		many_claim(w, op);
	}
}

static void many_cancel_one(struct many_worker *w, struct many_op *op)
{
	int ret;

	if (!many_is_recv(op->kind) || !op->end->ep ||
	    atomic_read(&op->state) != MANY_POSTED)
		return;
	op->cancelled = true;
	ret = fi_cancel(&op->end->ep->fid, op);
	if (ret && ret != -ENOENT)
		many_wrong(w, "cancelling gave %d", ret);
}

static void many_cancel(struct many_worker *w)
{
	struct many_op *op = &w->ops[many_below(w, MANY_OPS)];

	if (op->end)
		many_cancel_one(w, op);
}

/* A sender is no more: receives that wait for it alone are of no use. */
void many_cancel_for(struct many_worker *w, fi_addr_t src)
{
	unsigned int i;

	for (i = 0; i < MANY_OPS; i++)
		if (w->ops[i].end && w->ops[i].src == src)
			many_cancel_one(w, &w->ops[i]);
}

/* ----------------------------------------------------- the worker's windows */

/* In one to three remote pieces, one behind the other */
static int many_pieces(struct many_worker *w, struct fi_rma_iov *rma, u64 addr,
		       u64 key, size_t len)
{
	int i, n = 1 + many_below(w, 3);
	size_t piece;

	for (i = 0; i < n; i++) {
		piece = i == n - 1 ? len : many_below(w, len + 1);
		rma[i] = (struct fi_rma_iov){
			.addr = addr, .len = piece, .key = key,
		};
		addr += piece;
		len -= piece;
	}
	return n;
}

/*
 * Where the next write of an end goes. Its writes arrive in order, and nothing
 * arrives after both ends have been closed, so that what is there when one
 * completes can only be its own.
 */
static size_t many_slot(struct many_end *end)
{
	size_t nr = end->conn->nr * 2 + (end == &end->conn->end[1]);

	return (nr * MANY_SLOTS + end->writes++ % MANY_SLOTS) * MANY_SLOT;
}

/* A read or write of @op->len bytes, with its flags */
static bool many_rma(struct many_worker *w, struct many_op *op, u64 addr,
		     u64 key)
{
	struct fi_rma_iov rma[3];
	struct fi_msg_rma msg = {
		.context = op, .rma_iov = rma,
		.data = many_data(w, op->end),
		.rma_iov_count = many_pieces(w, rma, addr, key, op->len),
	};
	struct many_vec v;
	ssize_t ret;

	many_vec(w, &v, op->buf, op->len);
	msg.msg_iov = v.kv;	/* of a union of pointers */
	msg.iov_count = v.count;
	msg.vec = v.vec;
	many_post(op);
	if (op->kind == MANY_WRITE)
		ret = fi_writemsg(op->end->ep, &msg, op->flags);
	else
		ret = fi_readmsg(op->end->ep, &msg, op->flags);
	if (many_posted(w, op, ret))
		return true;
	many_free(w, op);
	return false;
}

static void many_write(struct many_worker *w, struct many_end *end)
{
	struct many_op *op = many_hold(w, end, MANY_WRITE);
	u64 data = many_below(w, 3) ? 0 : FI_REMOTE_CQ_DATA;

	if (!op)
		return;
	op->len = many_len(w, MANY_SLOT);
	op->off = many_slot(end);
	op->flags = many_level(w) | data;
	many_fill(op->buf, op->len, prandom_u32_state(&w->rnd), NULL);
	if (many_rma(w, op, kofi_mr_base(w->slots) + op->off,
		     fi_mr_key(w->slots)) && data)
		w->values_sent++;
}

static u64 many_read_flags(struct many_worker *w)
{
	return FI_COMPLETION | (many_below(w, 8) ? 0 : FI_FENCE);
}

static void many_rma_read(struct many_worker *w, struct many_end *end)
{
	struct many_op *op = many_hold(w, end, MANY_READ);

	if (!op)
		return;
	op->len = many_len(w, MANY_BUF);
	op->off = many_below(w, MANY_SOURCE - MANY_BUF);
	op->flags = many_read_flags(w);
	memset(op->buf, 0, op->len);
	many_rma(w, op, kofi_mr_base(w->source) + op->off,
		 fi_mr_key(w->source));
}

/* ---------------------------------------------------------- regions of pools */

static u64 many_access(const struct many_region *r)
{
	switch (r->fate) {
	case MANY_BY_READ:
		return FI_REMOTE_READ;
	case MANY_BY_WRITE:
		return FI_REMOTE_WRITE;
	default:
		return FI_REMOTE_READ | FI_REMOTE_WRITE;
	}
}

/* Take a region from the pool of an end, and map it. */
static void many_map(struct many_worker *w, struct many_end *end)
{
	struct many_region *r = &end->regions[many_below(w, MANY_POOL)];
	bool once = many_below(w, 3);
	struct fi_msg msg = {};
	struct many_op *op;
	struct many_vec v;
	int ret;

	if (r->mr)
		return;
	op = many_hold(w, end, once ? MANY_ONESHOT : MANY_UNMAP);
	if (!op)
		return;
	*r = (struct many_region){
		.mr = kofi_mr_get(end->ep), .op = op, .once = once,
		.fate = many_below(w, once ? MANY_FATES : MANY_BY_PEER),
	};
	if (!r->mr) {
		many_wrong(w, "a pool lacks regions");
		many_free(w, op);
		return;
	}
	op->region = r;
	op->len = 1 + many_len(w, MANY_BUF - 1);
	/* what is written once is full of zeros before */
	if (once && r->fate == MANY_BY_WRITE)
		memset(op->buf, 0, op->len);
	else
		many_fill(op->buf, op->len, prandom_u32_state(&w->rnd), NULL);
	many_vec(w, &v, op->buf, op->len);
	msg.msg_iov = v.kv;	/* of a union of pointers */
	msg.iov_count = v.count;
	msg.vec = v.vec;
	msg.context = op;
	if (once)
		many_post(op);
	ret = kofi_mr_map(r->mr, &msg, many_access(r),
			  once ? FI_MR_SINGLE_USE : 0);
	op->key = fi_mr_key(r->mr);
	if (once && many_posted(w, op, ret))
		return;
	if (!once && !ret)
		return;
	if (!once)
		many_wrong(w, "mapping gave %d", ret);
	kofi_mr_put(r->mr);
	r->mr = NULL;
	r->op = NULL;
	many_free(w, op);
}

/* Do to a region of the peer's what it is there for. */
static void many_aim(struct many_worker *w, struct many_end *end)
{
	struct many_region *r;
	struct many_op *op;
	bool write;

	r = &many_peer(end)->regions[many_below(w, MANY_POOL)];
	if (!r->mr || r->over || r->fate == MANY_BY_US)
		return;
	if (r->fate == MANY_BY_PEER) {
		many_send(w, end, false, r);
		return;
	}
	write = r->fate == MANY_BY_WRITE;
	op = many_hold(w, end, write ? MANY_WRITE : MANY_READ);
	if (!op)
		return;
	op->len = r->op->len;
	op->aimed = true;
	if (write) {
		op->flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
		many_fill(op->buf, op->len, prandom_u32_state(&w->rnd), NULL);
	} else {
		op->flags = many_read_flags(w);
		memset(op->buf, 0, op->len);
	}
	if (!r->once) {
		op->target = r;
		r->aimed++;
	}
	if (many_rma(w, op, kofi_mr_base(r->mr), fi_mr_key(r->mr)))
		r->over = r->once;
	else if (!r->once)
		r->aimed--;
}

/* One for more uses. Its memory becomes a record that is posted. */
static void many_unmap_more(struct many_worker *w, struct many_region *r)
{
	int ret;

	many_post(r->op);
	ret = kofi_mr_unmap(r->mr, &r->op->cqe);
	r->over = many_posted(w, r->op, ret);
}

static void many_unmap_once(struct many_worker *w, struct many_region *r)
{
	int ret = kofi_mr_unmap(r->mr, NULL);

	if (!ret) {
		r->unmapped = true;
		r->over = true;
	} else if (ret != -EALREADY || !r->over) {
		many_wrong(w, "unmapping gave %d", ret);
	}
}

static void many_unmap(struct many_worker *w, struct many_end *end)
{
	struct many_region *r = &end->regions[many_below(w, MANY_POOL)];

	if (!r->mr || r->unmapped)
		return;
	if (!r->once) {
		if (!r->aimed && !r->over)
			many_unmap_more(w, r);
		return;
	}
	/* the others are mostly left to their fates */
	if (r->fate == MANY_BY_US || r->fate == MANY_BY_PEER ||
	    (!r->over && !many_below(w, 16)))
		many_unmap_once(w, r);
}

/*
 * Unmap a region the peer is about to access: that ends the connection. Returns
 * whether there was one.
 */
bool many_unmap_aimed(struct many_worker *w, struct many_end *end)
{
	struct many_region *r;

	for (r = end->regions; r < end->regions + MANY_POOL; r++) {
		if (!r->mr || r->once || !r->aimed || r->over)
			continue;
		many_unmap_more(w, r);
		return true;
	}
	return false;
}

/* The endpoint is closed, and its pool with it. */
void many_release_regions(struct many_end *end)
{
	struct many_region *r;

	for (r = end->regions; r < end->regions + MANY_POOL; r++) {
		/* one for more uses has ended without a word */
		if (r->mr && !r->once &&
		    atomic_read(&r->op->state) == MANY_HELD)
			many_free(end->w, r->op);
		r->mr = NULL;
		r->op = NULL;
	}
}

/* ------------------------------------------------------------------- traffic */

/* Something, at one end of a connection that stands */
void many_traffic(struct many_worker *w, struct many_conn *c)
{
	struct many_end *end = &c->end[many_below(w, 2)];

	switch (many_below(w, 24)) {
	case 0 ... 3:
		many_recv(w, end, MANY_RECV);
		break;
	case 4 ... 6:
		many_recv(w, end, MANY_TRECV);
		break;
	case 7:
		many_recv(w, end, MANY_MULTI);
		break;
	case 8 ... 9:
		many_peek(w, end);
		break;
	case 10 ... 11:
		many_send(w, end, false, NULL);
		break;
	case 12 ... 13:
		many_send(w, end, true, NULL);
		break;
	case 14:
		many_inject(w, end);
		break;
	case 15 ... 16:
		many_write(w, end);
		break;
	case 17:
		many_rma_read(w, end);
		break;
	case 18 ... 19:
		many_map(w, end);
		break;
	case 20 ... 21:
		many_aim(w, end);
		break;
	case 22:
		many_unmap(w, end);
		break;
	default:
		many_cancel(w);
		break;
	}
}

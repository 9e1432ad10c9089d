// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The books of the suite of many connections. Each post takes a record, which
 * is the operation's context. A record is free, held, posted or done; only a
 * completion takes it from posted to done, and the worker then judges it: flags,
 * length, contents, and whether it may have failed. It is used again behind all
 * others that are free. A completion that finds anything but a posted record is
 * a stray, and what is posted when everything has been closed is lost. An error
 * is in order only after the worker has begun to end that connection, or for a
 * receive that was cancelled or too short.
 *
 * Memory is the consumer's from the completion on: that of a send is
 * overwritten there and then, all other when the record is used again. A
 * message that has room for it says who has sent it, in which connection, how
 * long it is and how many were sent before; so none is lost, seen twice, out of
 * turn or by somebody else, with shared receives too.
 *
 * An operation that completes without a word is known to be done when a later
 * one of its endpoint has succeeded, or the endpoint is closed.
 *
 * Callbacks and workers cannot fail a test: mistakes are counted, with a
 * sentence about the first one.
 */
#include "many.h"

const char *const many_names[MANY_KINDS] = {
	"send", "tagged send", "write", "read", "single-use region", "unmap",
	"receive", "tagged receive", "multi-receive", "peek",
};

static const char *const many_fate_names[MANY_FATES] = {
	"read", "written", "invalidated", "unmapped",
};

static const u64 many_flags[MANY_KINDS] = {
	[MANY_SEND]	= FI_MSG | FI_SEND,
	[MANY_TSEND]	= FI_TAGGED | FI_SEND,
	[MANY_WRITE]	= FI_RMA | FI_WRITE,
	[MANY_READ]	= FI_RMA | FI_READ,
	[MANY_RECV]	= FI_MSG | FI_RECV,
	[MANY_TRECV]	= FI_TAGGED | FI_RECV,
	[MANY_MULTI]	= FI_MSG | FI_RECV,
	[MANY_PEEK]	= FI_TAGGED | FI_RECV,
};

static const u64 many_fate_flags[MANY_FATES] = {
	[MANY_BY_READ]	= FI_RMA | FI_REMOTE_READ,
	[MANY_BY_WRITE]	= FI_RMA | FI_REMOTE_WRITE,
	[MANY_BY_PEER]	= KOFI_REMOTE_INV,
};

/* A mistake; any context. */
void many_wrong(struct many_worker *w, const char *fmt, ...)
{
	va_list args;

	if (atomic_inc_return(&w->wrong) != 1)
		return;
	va_start(args, fmt);
	vsnprintf(w->why, sizeof(w->why), fmt, args);
	va_end(args);
}

/* ----------------------------------------------------------------- contents */

/* What a sender writes begins with the seed of the rest, or a whole head. */
void many_fill(u8 *buf, size_t len, u32 seed, const struct many_head *head)
{
	size_t skip = head ? sizeof(*head) : min(len, sizeof(seed));

	memcpy(buf, head ? (const void *)head : &seed, skip);
	ct_pattern(buf + skip, len - skip, seed);
}

/* The first @len bytes of a message of @full */
static bool many_filled(const u8 *buf, size_t len, size_t full, bool message)
{
	size_t skip = message && full >= sizeof(struct many_head) ?
		      sizeof(struct many_head) : sizeof(u32);
	u32 seed;

	if (len <= skip)
		return true;
	memcpy(&seed, buf, sizeof(seed));
	return ct_pattern_ok(buf + skip, len - skip, seed);
}

/* How long a message is; not known if it has broken off */
static size_t many_full(const struct kofi_wc *wc)
{
	return !wc->err || wc->err == FI_ETRUNC ? wc->len + wc->olen : SIZE_MAX;
}

/* -------------------------------------------------------------- completions */

/*
 * Who has sent a message. NULL if that connection is no more: a completion of a
 * shared context may come that late.
 */
static struct many_end *many_sender(struct many_worker *w,
				    const struct many_op *op,
				    const struct kofi_wc *wc)
{
	u32 nr = wc->src;
	struct many_end *from;

	if (nr >= 2 * w->nr_conns) {
		many_wrong(w, "a message from %#llx", wc->src);
		return NULL;
	}
	from = &w->conns[nr / 2].end[nr & 1];
	if (many_receiver(many_peer(from)) != op->end)
		many_wrong(w, "a message from %#llx came to the wrong end",
			   wc->src);
	if (op->src != FI_ADDR_UNSPEC && op->src != wc->src)
		many_wrong(w, "a message from %#llx for a receive from %#llx",
			   wc->src, op->src);
	if (wc->flags & FI_REMOTE_CQ_DATA && wc->data >> 32 != nr / 2)
		many_wrong(w, "a message from %#llx with data %#llx", wc->src,
			   wc->data);
	return many_who(from) == wc->src ? from : NULL;
}

/*
 * A message has arrived, perhaps cut. One that was thrown away, or cut before
 * the end of its head, is missed once.
 */
static void many_order(struct many_worker *w, const struct many_op *op,
		       const struct kofi_wc *wc, const u8 *buf)
{
	struct many_end *from = many_sender(w, op, wc);
	struct many_head head;

	if (!from || many_full(wc) < sizeof(head))
		return;
	if (wc->len < sizeof(head) || !buf) {
		from->pardons++;
		return;
	}
	memcpy(&head, buf, sizeof(head));
	if (head.who != wc->src)
		many_wrong(w, "a message of %#llx from %#llx", head.who,
			   wc->src);
	else if (head.len != many_full(wc))
		many_wrong(w, "a message of %llu bytes came as %zu", head.len,
			   many_full(wc));
	else if (head.seq != from->expect + from->pardons)
		many_wrong(w, "message %u of %#llx came instead of %u",
			   head.seq, head.who, from->expect + from->pardons);
	from->expect = head.seq + 1;
	from->pardons = 0;
	atomic_inc(&w->ordered);
}

static bool many_arrived(const struct kofi_wc *wc)
{
	return !wc->err || wc->err == FI_ETRUNC;
}

static void many_part(struct many_worker *w, struct many_op *op,
		      const struct kofi_wc *wc)
{
	const u8 *buf = wc->buf;

	atomic_inc(&w->parts);
	if (!buf || buf < op->buf || buf + wc->len > op->buf + op->len) {
		many_wrong(w, "a part of %zu bytes lies outside its buffer",
			   wc->len);
		return;
	}
	if (!many_filled(buf, wc->len, many_full(wc), true))
		many_wrong(w, "a part of %zu bytes is wrong", wc->len);
	if (many_arrived(wc))
		many_order(w, op, wc, buf);
	else if (wc->err != ENOTCONN ||
		 (op->end->conn && !READ_ONCE(op->end->conn->ending) &&
		  !stress_faulty))
		many_wrong(w, "a part of %zu bytes failed with %d", wc->len,
			   wc->err);
}

/* What only the order of completions tells */
static void many_note(struct many_worker *w, struct many_op *op,
		      const struct kofi_wc *wc)
{
	switch (op->kind) {
	case MANY_RECV:
	case MANY_TRECV:
		if (many_arrived(wc))
			many_order(w, op, wc, op->buf);
		break;
	case MANY_PEEK:
		if (!wc->err && op->flags & FI_DISCARD)
			many_order(w, op, wc, NULL);
		break;
	case MANY_SEND:
	case MANY_TSEND:
		/* it is not needed any more */
		memset(op->buf, 0xa5, op->len);
		break;
	default:
		break;
	}
}

static void many_complete(struct many_worker *w, struct many_op *op,
			  const struct kofi_wc *wc)
{
	const bool *ending;
	bool posted;

	if (op < w->ops || op >= w->ops + MANY_OPS) {
		many_wrong(w, "a completion of nothing: error %d, flags %#llx",
			   wc->err, wc->flags);
		return;
	}
	posted = atomic_read(&op->state) == MANY_POSTED;
	if (posted && op->kind == MANY_MULTI && wc->err != ECANCELED)
		many_part(w, op, wc);
	if (posted && op->kind == MANY_MULTI && !(wc->flags & FI_MULTI_RECV)) {
		if (wc->err == ECANCELED)
			many_wrong(w, "a multi-receive has two ends");
		return;
	}
	if (posted) {
		op->wc = *wc;
		ending = op->end->conn ? &op->end->conn->ending : &w->ending;
		op->excused = READ_ONCE(*ending);
		many_note(w, op, wc);
		if (op->end->closed)
			many_wrong(w, "%s completed after its endpoint was closed",
				   many_names[op->kind]);
	}
	if (atomic_cmpxchg(&op->state, MANY_POSTED, MANY_DONE) != MANY_POSTED) {
		many_wrong(w, "%s completed twice or unasked: error %d",
			   many_names[op->kind], wc->err);
		return;
	}
	atomic_dec(&op->end->outstanding);
	llist_add(&op->done, &w->done);
}

/* A value of the peer's; its upper half is the number of the connection. */
static void many_value(struct many_worker *w, const struct kofi_wc *wc,
		       const struct many_end *end)
{
	u32 nr = wc->data >> 32;

	atomic64_inc(&w->values);
	if (wc->err || wc->flags != (FI_RMA | FI_REMOTE_WRITE |
				     FI_REMOTE_CQ_DATA))
		many_wrong(w, "a value with error %d, flags %#llx", wc->err,
			   wc->flags);
	if (nr >= w->nr_conns || (end && end->conn->nr != nr))
		many_wrong(w, "value %#llx came to the wrong end", wc->data);
	if (wc->mr_key != fi_mr_key(w->slots) ||
	    (end ? wc->mr_context : wc->op_context) != w)
		many_wrong(w, "value %#llx of another region", wc->data);
}

static struct many_worker *many_enter(struct fid_cq *cq)
{
	struct many_worker *w = cq->fid.context;

	if (atomic_inc_return(&w->running[cq == w->cq[1]]) != 1)
		many_wrong(w, "two callbacks of a queue at a time");
	return w;
}

static void many_leave(struct many_worker *w, struct fid_cq *cq)
{
	atomic_dec(&w->running[cq == w->cq[1]]);
}

void many_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct many_worker *w = many_enter(cq);

	many_complete(w, container_of(wc->cqe, struct many_op, cqe), wc);
	many_leave(w, cq);
}

void many_remote_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct many_end *end = container_of(wc->cqe, struct many_end, remote);
	struct many_worker *w = many_enter(cq);

	if (end->closed)
		many_wrong(w, "a value after its endpoint was closed");
	many_value(w, wc, end);
	many_leave(w, cq);
}

void many_space(struct fid_ep *ep, void *context)
{
	struct many_end *end = context;

	atomic_inc(&end->w->space);
	if (end->closed)
		many_wrong(end->w, "write space after its endpoint was closed");
}

static void many_read_error(struct many_worker *w, struct fid_cq *cq)
{
	struct fi_cq_err_entry e = {};
	struct kofi_wc wc;

	if (fi_cq_readerr(cq, &e, 0) != 1) {
		many_wrong(w, "an error that cannot be read");
		return;
	}
	wc = (struct kofi_wc){
		.op_context = e.op_context, .err = e.err, .flags = e.flags,
		.len = e.len, .olen = e.olen, .buf = e.buf, .data = e.data,
		.tag = e.tag, .src = e.src_addr,
	};
	if (e.op_context)
		many_complete(w, e.op_context, &wc);
	else if (!w->injects)
		many_wrong(w, "error %d of an inject that was not posted", e.err);
}

static void many_read(struct many_worker *w, struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e[8];
	fi_addr_t src[ARRAY_SIZE(e)];
	ssize_t n, i;

	while ((n = fi_cq_readfrom(cq, e, ARRAY_SIZE(e), src)) != -EAGAIN) {
		if (n == -FI_EAVAIL) {
			many_read_error(w, cq);
			continue;
		}
		for (i = 0; i < n; i++) {
			const struct kofi_wc wc = {
				.op_context = e[i].op_context,
				.flags = e[i].flags, .len = e[i].len,
				.buf = e[i].buf, .data = e[i].data,
				.tag = e[i].tag, .src = src[i],
			};

			/* the context of the region */
			if (e[i].op_context == w)
				many_value(w, &wc, NULL);
			else
				many_complete(w, e[i].op_context, &wc);
		}
	}
}

/* ------------------------------------------------------------------ judging */

static void many_check_read(struct many_worker *w, struct many_op *op)
{
	bool ok;

	/* a region of the peer's is as long, and full of what it once wrote */
	if (op->aimed)
		ok = many_filled(op->buf, op->len, op->len, false);
	else
		ok = !memcmp(op->buf, w->source_mem + op->off, op->len);
	if (!ok)
		many_wrong(w, "read of %zu bytes is wrong", op->len);
}

static void many_check_oneshot(struct many_worker *w, struct many_op *op)
{
	const struct many_region *r = op->region;
	enum many_fate fate;
	bool asked;

	for (fate = 0; fate < MANY_FATES; fate++)
		if (op->wc.flags == many_fate_flags[fate])
			break;
	if (fate == MANY_FATES) {
		many_wrong(w, "a region ended with flags %#llx", op->wc.flags);
		return;
	}
	w->fates[fate]++;
	/* its endpoint is closed, and what it knew gone */
	if (r->op != op)
		return;
	asked = fate == MANY_BY_US ? r->unmapped : r->over && r->fate == fate;
	if (!asked)
		many_wrong(w, "a region was %s without being asked",
			   many_fate_names[fate]);
	if (fate == MANY_BY_PEER && w->mode != CT_READ &&
	    op->wc.inv_key != op->key)
		many_wrong(w, "a region with key %#llx ended as %#llx",
			   op->key, op->wc.inv_key);
	if (fate == MANY_BY_WRITE &&
	    !many_filled(op->buf, op->len, op->len, false))
		many_wrong(w, "a region of %zu bytes is wrong", op->len);
}

static void many_check_contents(struct many_worker *w, struct many_op *op)
{
	const char *name = many_names[op->kind];

	switch (op->kind) {
	case MANY_RECV:
	case MANY_TRECV:
		if (op->wc.len > op->len)
			many_wrong(w, "%s of %zu bytes got %zu", name, op->len,
				   op->wc.len);
		else if (!many_filled(op->buf, op->wc.len,
				      many_full(&op->wc), true))
			many_wrong(w, "%s of %zu bytes is wrong", name,
				   op->wc.len);
		w->directed += op->src != FI_ADDR_UNSPEC;
		break;
	case MANY_READ:
		many_check_read(w, op);
		break;
	case MANY_WRITE:
		if (op->flags & FI_DELIVERY_COMPLETE && !op->aimed &&
		    memcmp(op->buf, w->slot_mem + op->off, op->len))
			many_wrong(w, "write of %zu bytes did not arrive",
				   op->len);
		break;
	case MANY_ONESHOT:
		many_check_oneshot(w, op);
		break;
	case MANY_UNMAP:
		if (!op->excused &&
		    !many_filled(op->buf, op->len, op->len, false))
			many_wrong(w, "memory of %zu bytes is wrong", op->len);
		break;
	default:
		break;
	}
}

/* May it have failed like this */
static bool many_excused(const struct many_op *op)
{
	if (op->wc.err == FI_ETRUNC)
		return many_is_recv(op->kind) && op->len < MANY_BUF;
	if (op->wc.err == FI_ENOMSG)
		return op->kind == MANY_PEEK;
	if (op->cancelled && op->wc.err == FI_ECANCELED)
		return true;
	/* a shared context is not of one connection, but its messages are */
	if (!op->end->conn && many_is_recv(op->kind) &&
	    (op->wc.err == ENOTCONN ||
	     (op->flags & FI_CLAIM && op->wc.err == ECANCELED)))
		return true;
	return op->excused || stress_faulty;
}

static void many_check_flags(struct many_worker *w, const struct many_op *op)
{
	u64 extra = many_is_recv(op->kind) ? FI_REMOTE_CQ_DATA |
		    FI_MULTI_RECV | KOFI_REMOTE_INV : 0;

	if (op->kind == MANY_ONESHOT && !op->wc.err)
		return;
	if ((op->wc.flags & ~extra) != many_flags[op->kind])
		many_wrong(w, "%s has flags %#llx, error %d",
			   many_names[op->kind], op->wc.flags, op->wc.err);
}

/* Silent operations posted before another one that has succeeded, or all */
static void many_release_silent(struct many_end *end, const struct many_op *by)
{
	struct many_worker *w = end->w;
	struct many_op *op, *next;

	list_for_each_entry_safe(op, next, &end->silent, node) {
		if (by && (s32)(op->order - by->order) > 0)
			break;
		if (atomic_cmpxchg(&op->state, MANY_POSTED, MANY_HELD) !=
		    MANY_POSTED)
			continue;
		list_del(&op->node);
		end->nr_silent--;
		atomic_dec(&end->outstanding);
		w->completed++;
		w->silent++;
		many_free(w, op);
	}
}

/* A transmit has succeeded. */
static void many_succeeded(struct many_worker *w, struct many_op *op)
{
	const u64 acked = FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;

	if (op->kind == MANY_WRITE && op->flags & FI_REMOTE_CQ_DATA &&
	    op->flags & FI_DELIVERY_COMPLETE)
		w->values_sure++;
	if (op->numbered && op->flags & acked)
		op->end->acked = op->seq + 1;
	if (op->kind <= MANY_READ)
		many_release_silent(op->end, op);
}

static void many_put_region(struct many_op *op)
{
	struct many_region *r = op->region;

	if (!r || r->op != op)
		return;
	kofi_mr_put(r->mr);
	r->mr = NULL;
	r->op = NULL;
}

/* A record that is done is the worker's: judge it and free it. */
static void many_judge(struct many_worker *w, struct many_op *op)
{
	const struct kofi_wc *wc = &op->wc;

	w->completed++;
	if (op->silent) {
		list_del(&op->node);
		op->end->nr_silent--;
		if (!wc->err)
			many_wrong(w, "a silent %s was reported",
				   many_names[op->kind]);
	}
	if (op->target)
		op->target->aimed--;
	many_check_flags(w, op);
	if (!wc->err) {
		w->kinds[op->kind]++;
		many_check_contents(w, op);
		if (!many_is_recv(op->kind))
			many_succeeded(w, op);
	} else {
		w->errors++;
		if (!many_excused(op))
			many_wrong(w, "%s of %zu bytes failed with %d",
				   many_names[op->kind], op->len, wc->err);
	}
	many_put_region(op);
	if (!wc->err && op->flags & FI_DISCARD)
		w->discarded++;
	if (!wc->err && op->kind == MANY_TRECV && op->flags & FI_CLAIM)
		w->claimed++;
	atomic_set(&op->state, MANY_HELD);
	if (!wc->err && op->kind == MANY_PEEK &&
	    (op->flags & (FI_CLAIM | FI_DISCARD)) == FI_CLAIM)
		list_add_tail(&op->node, &w->claims);
	else
		many_free(w, op);
}

/* Take what has completed, and judge it. */
void many_progress(struct many_worker *w)
{
	struct many_op *op, *next;
	struct llist_node *done;
	int i;

	for (i = 0; i < ARRAY_SIZE(w->cq); i++) {
		if (w->mode == CT_READ)
			many_read(w, w->cq[i]);
		else if (w->mode == CT_DIRECT)
			kofi_cq_poll(w->cq[i], 64);
	}
	done = llist_reverse_order(llist_del_all(&w->done));
	llist_for_each_entry_safe(op, next, done, done)
		many_judge(w, op);
}

/* An endpoint has just been drained or closed: it owes nothing any more. */
void many_settle(struct many_end *end, const char *what)
{
	struct many_worker *w = end->w;

	/* What is read survives the endpoint, callbacks do not. */
	if (w->mode == CT_READ)
		many_progress(w);
	many_release_silent(end, NULL);
	if (atomic_read(&end->outstanding))
		many_wrong(w, "%d operations outlive %s",
			   atomic_read(&end->outstanding), what);
}

/* ------------------------------------------------------------------ records */

/* A record for an operation of an end, not posted yet; NULL if all are in use */
struct many_op *many_hold(struct many_worker *w, struct many_end *end,
			  enum many_kind kind)
{
	struct many_op *op;

	op = list_first_entry_or_null(&w->free, struct many_op, node);
	if (!op)
		return NULL;
	list_del(&op->node);
	atomic_set(&op->state, MANY_HELD);
	op->end = end;
	op->kind = kind;
	op->len = MANY_BUF;
	op->flags = 0;
	op->src = FI_ADDR_UNSPEC;
	op->numbered = false;
	op->aimed = false;
	op->silent = false;
	op->cancelled = false;
	op->region = NULL;
	op->target = NULL;
	return op;
}

void many_free(struct many_worker *w, struct many_op *op)
{
	atomic_set(&op->state, MANY_FREE);
	list_add_tail(&op->node, &w->free);
}

/* The operation is about to be posted. */
void many_post(struct many_op *op)
{
	op->order = ++op->end->posts;
	if (op->silent) {
		list_add_tail(&op->node, &op->end->silent);
		op->end->nr_silent++;
	}
	atomic_inc(&op->end->outstanding);
	atomic_set_release(&op->state, MANY_POSTED);
}

/* What the post has returned; false if the record is only held again */
bool many_posted(struct many_worker *w, struct many_op *op, ssize_t ret)
{
	const char *name = many_names[op->kind];

	if (!ret) {
		w->accepted++;
		return true;
	}
	if (atomic_cmpxchg(&op->state, MANY_POSTED, MANY_HELD) != MANY_POSTED) {
		many_wrong(w, "%s was refused with %zd and completed", name,
			   ret);
		return true;
	}
	if (op->silent) {
		list_del(&op->node);
		op->end->nr_silent--;
	}
	atomic_dec(&op->end->outstanding);
	if (ret == -EAGAIN)
		w->again++;
	else if (ret != -ESHUTDOWN && ret != -ENOTCONN)
		many_wrong(w, "%s of %zu bytes was refused with %zd", name,
			   op->len, ret);
	return false;
}

/* ------------------------------------------------------------------ the end */

/* Each has done something, if there was time for all. */
static void many_check_mix(struct kunit *test, struct many_worker *w)
{
	int i;

	for (i = 0; i < MANY_KINDS; i++)
		KUNIT_EXPECT_NE_MSG(test, 0ULL, w->kinds[i],
				    "no %s has succeeded", many_names[i]);
	for (i = 0; i < MANY_FATES; i++)
		KUNIT_EXPECT_NE_MSG(test, 0ULL, w->fates[i],
				    "no region was %s", many_fate_names[i]);
	KUNIT_EXPECT_NE(test, 0ULL, w->silent);
	KUNIT_EXPECT_NE(test, 0ULL, w->claimed);
	KUNIT_EXPECT_NE(test, 0ULL, w->discarded);
	KUNIT_EXPECT_NE(test, 0ULL, w->directed);
	if (!strcmp(ct_provider, "sock"))
		KUNIT_EXPECT_NE(test, 0ULL, w->zerocopy);
	KUNIT_EXPECT_GE(test, w->ups, (u64)w->nr_conns);
}

/* What must hold when everything has been closed */
void many_check_books(struct kunit *test, struct many_worker *w)
{
	u64 values = atomic64_read(&w->values);
	unsigned int i, lost = 0;

	for (i = 0; i < MANY_OPS; i++)
		lost += atomic_read(&w->ops[i].state) != MANY_FREE;
	KUNIT_EXPECT_EQ_MSG(test, 0, atomic_read(&w->wrong), "%s", w->why);
	KUNIT_EXPECT_EQ_MSG(test, 0U, lost, "operations that never completed");
	KUNIT_EXPECT_EQ(test, w->accepted, w->completed);
	KUNIT_EXPECT_LE(test, values, w->values_sent);
	KUNIT_EXPECT_GE(test, values, w->values_sure);
	kunit_info(test,
		   "%llu operations, %llu failed, %llu refused, %llu silent; %llu injects, %llu values, %d parts, %d in order; %llu connections, %d times space\n",
		   w->completed, w->errors, w->again, w->silent, w->injects,
		   values, atomic_read(&w->parts), atomic_read(&w->ordered),
		   w->ups, atomic_read(&w->space));
	kunit_info(test,
		   "regions %llu read, %llu written, %llu invalidated, %llu unmapped, %llu for more; %llu claimed, %llu discarded, %llu directed, %llu bytes not copied\n",
		   w->fates[MANY_BY_READ], w->fates[MANY_BY_WRITE],
		   w->fates[MANY_BY_PEER], w->fates[MANY_BY_US],
		   w->kinds[MANY_UNMAP], w->claimed, w->discarded,
		   w->directed, w->zerocopy);
	KUNIT_EXPECT_NE(test, 0ULL, w->ups);
	if (!stress_faulty && stress_ms >= MANY_ENOUGH_MS &&
	    w->completed >= MANY_ENOUGH)
		many_check_mix(test, w);
}

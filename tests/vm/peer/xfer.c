// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Operations and content; tests/rma/xfer.c explains the same in the kernel.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "peer.h"

#define LOCAL_AT	(KRMA_GUARD + 13)

static struct fid_ep *rx_ep(struct peer *p)
{
	return p->srx ? p->srx : p->ep;
}

static void *desc(struct fid_mr *mr)
{
	return mr ? fi_mr_desc(mr) : NULL;
}

/* The most remote segments we can name, or the peer, for its accesses. */
uint32_t segs_max(struct peer *p, bool yours)
{
	size_t most = yours ? p->remote.segs : p->info->tx_attr->rma_iov_limit;

	return most < KRMA_SEGS_MAX ? most : KRMA_SEGS_MAX;
}

/* The first level that is refused: rxm has no answer to a packet, iWARP reports no arrival. */
enum krma_level levels_end(struct peer *p)
{
	if (p->iwarp)
		return KRMA_TRANSMIT;
	return p->rxm ? KRMA_DELIVERY : KRMA_LEVELS;
}

/* ------------------------------------------------------------------ content */

static void fill(struct peer *p, uint8_t *to, size_t len, uint32_t seed,
		 uint64_t off)
{
	size_t n;

	for (; len; len -= n, to += n, off += n) {
		uint32_t from = krma_pattern_at(seed, off);

		n = KRMA_PATTERN_LEN - from < len ? KRMA_PATTERN_LEN - from :
						    len;
		memcpy(to, p->pattern + from, n);
	}
}

static bool check(struct peer *p, const uint8_t *is, size_t len, uint32_t seed,
		  uint64_t off, uint64_t *where)
{
	for (; len; len--, is++, off++) {
		if (*is != p->pattern[krma_pattern_at(seed, off)]) {
			*where = off;
			return false;
		}
	}
	return true;
}

/* Where that is the rule, a write with a value takes a receive of ours. */
static int values_expect(struct peer *p, uint32_t count)
{
	ssize_t ret = 0;

	if (!(p->info->mode & FI_RX_CQ_DATA))
		return 0;
	while (count-- && !ret)
		ret = fi_recv(rx_ep(p), NULL, 0, NULL, FI_ADDR_UNSPEC, NULL);
	return fault(ret, "fi_recv for values");
}

int region_fill(struct peer *p, const struct cmd *c)
{
	uint64_t total = c->count * c->len;
	int ret = 0;

	if (c->flags & KRMA_F_DATA) {
		p->data_next = c->data;
		p->data_bad = 0;
		ret = values_expect(p, c->count);
	}
	fill(p, p->region + c->off - KRMA_GUARD, total + 2 * KRMA_GUARD,
	     c->seed + 1, c->off - KRMA_GUARD);
	if (!(c->flags & KRMA_F_BACK))
		fill(p, p->region + c->off, total, c->seed, c->off);
	return ret;
}

int region_check(struct peer *p, const struct cmd *c, uint64_t *where)
{
	uint64_t total = c->count * c->len, end = c->off + total;
	uint32_t seed = c->flags & KRMA_F_BACK ? c->seed + 1 : c->seed;

	if (!check(p, p->region + c->off - KRMA_GUARD, KRMA_GUARD, c->seed + 1,
		   c->off - KRMA_GUARD, where) ||
	    !check(p, p->region + c->off, total, seed, c->off, where) ||
	    !check(p, p->region + end, KRMA_GUARD, c->seed + 1, end, where))
		return fault(-EBADMSG, "the region is wrong at %llu",
			     (unsigned long long)*where);
	if (!(c->flags & KRMA_F_DATA))
		return 0;
	*where = p->data_next;
	if (p->data_bad || p->data_next != c->data + c->count)
		return fault(-ENODATA, "values: next %llu, %llu wrong",
			     (unsigned long long)p->data_next,
			     (unsigned long long)p->data_bad);
	return 0;
}

/* What there is of a command in the local memory, piece after piece */
struct piece {
	uint8_t			*at;
	struct krma_segment	seg;
};

static bool piece(struct peer *p, const struct cmd *c, uint32_t n,
		  struct piece *piece)
{
	if (n == c->count * c->segs)
		return false;
	piece->at = n ? piece->at + piece->seg.len : p->local + LOCAL_AT;
	piece->seg = krma_segment(c->off + n / c->segs * c->len, c->len,
				  c->segs, n % c->segs);
	return true;
}

static void local_fill(struct peer *p, const struct cmd *c)
{
	struct piece it = {};
	uint32_t n;

	for (n = 0; piece(p, c, n, &it); n++)
		fill(p, it.at, it.seg.len, c->seed, it.seg.off);
}

static void local_clear(struct peer *p, const struct cmd *c)
{
	fill(p, p->local + LOCAL_AT - KRMA_GUARD,
	     c->count * c->len + 2 * KRMA_GUARD, c->seed + 1, 0);
}

static int local_check(struct peer *p, const struct cmd *c)
{
	uint64_t total = c->count * c->len, where;
	struct piece it = {};
	uint32_t n;

	for (n = 0; piece(p, c, n, &it); n++) {
		if (!check(p, it.at, it.seg.len, c->seed, it.seg.off, &where))
			return fault(-EBADMSG, "wrong here at %llu",
				     (unsigned long long)where);
	}
	if (check(p, p->local + LOCAL_AT - KRMA_GUARD, KRMA_GUARD, c->seed + 1,
		  0, &where) &&
	    check(p, p->local + LOCAL_AT + total, KRMA_GUARD, c->seed + 1,
		  KRMA_GUARD + total, &where))
		return 0;
	return fault(-EBADMSG, "bytes beside the memory were changed");
}

/* --------------------------------------------------------------- operations */

enum xfer { WRITE, READ, SEND, RECV };

static uint64_t level_flags(enum krma_level level)
{
	switch (level) {
	case KRMA_INJECT:
		return FI_INJECT;
	case KRMA_INJECT_COMPLETE:
		return FI_INJECT_COMPLETE;
	case KRMA_TRANSMIT:
		return FI_TRANSMIT_COMPLETE;
	case KRMA_DELIVERY:
		return FI_DELIVERY_COMPLETE;
	default:
		return 0;
	}
}

static ssize_t post_rma(struct peer *p, enum xfer what, const struct cmd *c,
			uint32_t i, struct op *op)
{
	struct iovec iov = {
		.iov_base = p->local + LOCAL_AT + i * c->len,
		.iov_len = c->len,
	};
	void *local = desc(p->local_mr);
	struct fi_rma_iov seg[KRMA_SEGS_MAX];
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .desc = &local, .iov_count = 1, .rma_iov = seg,
		.rma_iov_count = c->segs, .addr = p->to, .context = op,
		.data = c->data + i,
	};
	uint64_t flags = FI_COMPLETION;
	uint32_t k;

	for (k = 0; k < c->segs; k++) {
		struct krma_segment s = krma_segment(c->off + i * c->len,
						     c->len, c->segs, k);

		seg[k].addr = p->remote.addr + s.off;
		seg[k].len = s.len;
		seg[k].key = p->remote.key;
	}
	k = c->segs - 1;
	/* a key has 32 bits, if it is a device's */
	if (c->flags & KRMA_F_BAD_KEY)
		seg[k].key ^= 0x80;
	if (c->flags & KRMA_F_BAD_RANGE)
		seg[k].addr = p->remote.addr + p->remote.size - seg[k].len + 1;
	if (c->flags & KRMA_F_BAD_WRAP)
		seg[k].addr = UINT64_MAX - seg[k].len / 2;
	op->flags = FI_RMA | (what == READ ? FI_READ : FI_WRITE);
	if (what == READ)
		return fi_readmsg(p->ep, &msg, flags);
	flags |= level_flags(c->level);
	if (c->flags & KRMA_F_DATA)
		flags |= FI_REMOTE_CQ_DATA;
	return fi_writemsg(p->ep, &msg, flags);
}

static ssize_t post_msg(struct peer *p, enum xfer what, const struct cmd *c,
			uint32_t i, struct op *op)
{
	struct iovec iov = {
		.iov_base = p->local + LOCAL_AT + i * c->len,
		.iov_len = c->len,
	};
	void *local = desc(p->local_mr);
	struct fi_msg_tagged tagged = {
		.msg_iov = &iov, .desc = &local, .iov_count = 1, .context = op,
		.tag = c->data + i,
		.addr = what == RECV ? FI_ADDR_UNSPEC : p->to,
	};
	struct fi_msg msg = {
		.msg_iov = &iov, .desc = &local, .iov_count = 1, .context = op,
		.addr = tagged.addr,
	};
	uint64_t flags = FI_COMPLETION | level_flags(c->level);

	op->flags = what == RECV ? FI_RECV : FI_SEND;
	if (c->flags & KRMA_F_TAGGED) {
		op->flags |= FI_TAGGED;
		if (what == RECV)
			return fi_trecvmsg(rx_ep(p), &tagged, FI_COMPLETION);
		return fi_tsendmsg(p->ep, &tagged, flags);
	}
	op->flags |= FI_MSG;
	if (what == RECV)
		return fi_recvmsg(rx_ep(p), &msg, FI_COMPLETION);
	return fi_sendmsg(p->ep, &msg, flags);
}

/*
 * ofi_rxm goes on posting to a connection that has ended, until it has been told:
 * none of that was sent.
 */
static bool again(struct peer *p, ssize_t err)
{
	return err == -FI_EAGAIN || (p->rxm && err == -FI_ENOTCONN);
}

static int post(struct peer *p, enum xfer what, const struct cmd *c, uint32_t i,
		struct op *op)
{
	double end = now() + TIMEOUT;
	ssize_t ret;

	op->busy = true;
	op->err = 0;
	op->len = c->len;
	op->spoil = what == WRITE || what == SEND ?
		    p->local + LOCAL_AT + i * c->len : NULL;
	for (;;) {
		ret = what == WRITE || what == READ ?
		      post_rma(p, what, c, i, op) : post_msg(p, what, c, i, op);
		if (!ret)
			break;
		op->busy = again(p, ret);
		if (op->busy)
			ret = now() < end ? ep_progress(p) : -ETIMEDOUT;
		if (ret)
			return fault(ret, "posting operation %u", i);
	}
	if (op->spoil && c->level == KRMA_INJECT)
		memset(op->spoil, 0x5a, c->len);
	return 0;
}

static int begin(struct peer *p, enum xfer what, const struct cmd *c,
		 struct op *ops)
{
	uint32_t i, k;
	int ret = 0;

	for (i = 0; i < c->count && !ret; i++) {
		/* the last one first: tags bring message and memory together */
		k = what == RECV && (c->flags & KRMA_F_TAGGED) ?
		    c->count - 1 - i : i;
		ret = post(p, what, c, k, &ops[k]);
	}
	return ret;
}

static int end(struct peer *p, const struct cmd *c, struct op *ops)
{
	double until = now() + TIMEOUT;
	int ret = 0, err = 0;
	uint32_t i;

	for (i = 0; i < c->count && !ret; i++) {
		while (!ret && ops[i].busy && now() < until)
			ret = ep_progress(p);
		if (!ret && ops[i].busy)
			return fault(-ETIMEDOUT, "operation %u", i);
		if (!err)
			err = ops[i].err;
	}
	return ret ? ret : err;
}

int xfer_access(struct peer *p, const struct cmd *c, bool write)
{
	int ret;

	if (write)
		local_fill(p, c);
	else
		local_clear(p, c);
	ret = begin(p, write ? WRITE : READ, c, p->tx);
	if (!ret)
		ret = end(p, c, p->tx);
	return ret || write ? ret : local_check(p, c);
}

/*
 * Is that what a wrong access ends with? See tests/rma. This libfabric has one
 * error.
 */
static bool bad_ended(struct peer *p, const struct cmd *c, bool write, int err)
{
	bool acked = c->level == KRMA_TRANSMIT || c->level == KRMA_DELIVERY;

	if (p->verbs && !p->iwarp)
		return err == -EIO;
	if (p->iwarp && write)
		return !err || err == -ECANCELED || err == -EIO;
	return err == (!write || acked ? -ECANCELED : 0);
}

/*
 * Nothing tells that the connection has ended that a plain write was sent on, but
 * what is sent behind it: it is cut off, or is on the next connection.
 */
static int bad_over(struct peer *p)
{
	const struct cmd c = { .count = 1, .segs = 1, .len = 1 };
	int ret = begin(p, READ, &c, p->tx) ?: end(p, &c, p->tx);

	return ret == -ETIMEDOUT ? ret : 0;
}

/* The peer has to refuse it. */
int xfer_bad(struct peer *p, const struct cmd *c, bool write)
{
	int ret = xfer_access(p, c, write);

	if (!bad_ended(p, c, write, ret))
		return fault(-EBADE, "a wrong access ended with %d", ret);
	return p->rdm && !ret ? bad_over(p) : ep_wait_down(p);
}

/* An operation of which only the completion is wanted. */
static struct op *single(struct op *op, uint64_t flags)
{
	*op = (struct op){ .busy = true, .flags = FI_RMA | flags };
	return op;
}

/* As many as it takes: siw takes few bytes along. */
static ssize_t inject(struct peer *p, const uint8_t *from, size_t len,
		      uint64_t addr, uint64_t key)
{
	size_t max = p->info->tx_attr->inject_size ?: len;
	double until = now() + TIMEOUT;
	ssize_t ret = 0;

	while (len && !ret) {
		size_t n = len < max ? len : max;

		while ((ret = fi_inject_write(p->ep, from, n, p->to, addr, key)) ==
		       -FI_EAGAIN && now() < until && !ep_progress(p))
			;
		from += n;
		addr += n;
		len -= n;
	}
	return ret;
}

/* Each short form of write and read, once; see rma_xfer_forms() of tests/rma. */
int xfer_forms(struct peer *p, uint32_t seed, uint64_t off)
{
	struct cmd c = {
		.count = 1, .segs = 1, .seed = seed, .off = off,
		.len = KRMA_FORMS,
	};
	uint64_t addr = p->remote.addr + off, key = p->remote.key;
	uint8_t *at = p->local + LOCAL_AT;
	void *local = desc(p->local_mr), *locals[2] = { local, local };
	struct iovec iov[2] = {
		{ .iov_base = at + 100, .iov_len = 50 },
		{ .iov_base = at + 150, .iov_len = 73 },
	};
	ssize_t ret;

	local_fill(p, &c);
	ret = fi_write(p->ep, at, 100, local, p->to, addr, key,
		       single(&p->tx[0], FI_WRITE));
	if (!ret)
		ret = fi_writev(p->ep, iov, locals, 2, p->to, addr + 100, key,
				single(&p->tx[1], FI_WRITE));
	single(&p->tx[2], FI_WRITE);
	if (!ret && p->iwarp)
		ret = fi_write(p->ep, at + 223, 1000, local, p->to, addr + 223,
			       key, &p->tx[2]);
	else if (!ret)
		ret = fi_writedata(p->ep, at + 223, 1000, local, 0, p->to,
				   addr + 223, key, &p->tx[2]);
	if (!ret)
		ret = inject(p, at + 1223, 64, addr + 1223, key);
	if (!ret && p->iwarp)
		ret = inject(p, at + 1287, 128, addr + 1287, key);
	else if (!ret)
		ret = fi_inject_writedata(p->ep, at + 1287, 128, 1, p->to,
					  addr + 1287, key);
	if (ret)
		return fault(ret, "a short form of write");
	c.count = 3;
	ret = end(p, &c, p->tx);
	if (ret)
		return fault(ret, "a short form of write");

	c.count = 1;
	local_clear(p, &c);
	/* siw has one place to read into, and is silent about a second */
	iov[0] = (struct iovec){
		.iov_base = at + 1000,
		.iov_len = p->iwarp ? KRMA_FORMS - 1000 : 400,
	};
	iov[1] = (struct iovec){
		.iov_base = at + 1400, .iov_len = KRMA_FORMS - 1400,
	};
	ret = fi_read(p->ep, at, 1000, local, p->to, addr, key,
		      single(&p->tx[0], FI_READ));
	if (!ret)
		ret = fi_readv(p->ep, iov, locals, p->iwarp ? 1 : 2, p->to,
			       addr + 1000, key, single(&p->tx[1], FI_READ));
	c.count = 2;
	if (!ret)
		ret = end(p, &c, p->tx);
	if (ret)
		return fault(ret, "a short form of read");
	c.count = 1;
	return local_check(p, &c);
}

int xfer_send(struct peer *p, const struct cmd *c)
{
	int ret;

	local_fill(p, c);
	ret = begin(p, SEND, c, p->tx);
	return ret ? ret : fault(end(p, c, p->tx), "sending");
}

int xfer_recv_begin(struct peer *p, const struct cmd *c)
{
	local_clear(p, c);
	return begin(p, RECV, c, p->rx);
}

int xfer_recv_end(struct peer *p, const struct cmd *c)
{
	int ret = fault(end(p, c, p->rx), "receiving");

	return ret ? ret : local_check(p, c);
}

/* ----------------------------------------------------- commands and answers */

/*
 * The name, which goes first, after a wrong access: over a device ofi_rxm has posted it
 * to the connection that this has ended, and it was cancelled there.
 */
static bool name_again(struct peer *p, uint64_t kind, int err)
{
	return kind == FI_TAGGED && p->verbs && err == -ECANCELED;
}

/* Send so many bytes of msgs.cmd, as a message of that kind. */
static int cmd_put(struct peer *p, size_t len, uint64_t kind)
{
	double until = now() + TIMEOUT;
	void *local = desc(p->msg_mr);
	int ret;

	for (;;) {
		p->cmd_op = (struct op){ .busy = true, .flags = kind | FI_SEND };
		ret = kind == FI_TAGGED ?
		      fi_tsend(p->ep, &p->msgs.cmd, len, local, p->to,
			       KRMA_NAME_TAG, &p->cmd_op) :
		      fi_send(p->ep, &p->msgs.cmd, len, local, p->to,
			      &p->cmd_op);
		while (!ret && p->cmd_op.busy && now() < until)
			ret = ep_progress(p);
		if (!ret)
			ret = p->cmd_op.busy ? -ETIMEDOUT : p->cmd_op.err;
		if (!(again(p, ret) || name_again(p, kind, ret)) ||
		    now() >= until)
			return ret;
		ep_progress(p);
	}
}

int cmd_send(struct peer *p, const struct cmd *c)
{
	struct krma_msg *m = &p->msgs.cmd;

	m->magic = htole32(KRMA_MAGIC);
	m->op = htole16(c->op);
	m->flags = htole16(c->flags);
	m->status = htole32(c->status);
	m->seed = htole32(c->seed);
	m->count = htole32(c->count);
	m->segs = htole32(c->segs);
	m->level = htole32(c->level);
	m->kind = htole32(c->kind);
	m->off = htole64(c->off);
	m->len = htole64(c->len);
	m->data = htole64(c->data);
	m->key = htole64(c->key);
	m->addr = htole64(c->addr);
	m->size = htole64(c->size);
	return fault(cmd_put(p, sizeof(*m), FI_MSG), "sending command %u",
		     c->op);
}

/* With an endpoint that does not connect: where answers are to go. */
int name_send(struct peer *p)
{
	size_t len = sizeof(p->msgs.cmd);
	int ret = fi_getname(&p->ep->fid, &p->msgs.cmd, &len);

	return fault(ret ? ret : cmd_put(p, len, FI_TAGGED), "the first message");
}

/* Be ready for the next client, at any time. */
int name_expect(struct peer *p)
{
	p->name_op = (struct op){
		.busy = true, .flags = FI_TAGGED | FI_RECV,
		.len = p->info->src_addrlen,
	};
	return fault(fi_trecv(rx_ep(p), p->msgs.name, sizeof(p->msgs.name),
			      desc(p->msg_mr), FI_ADDR_UNSPEC, KRMA_NAME_TAG, 0,
			      &p->name_op), "fi_trecv");
}

/* There is a client, after the one of the moment. */
bool name_here(struct peer *p)
{
	return p->rdm && p->server && !p->name_op.busy;
}

int cmd_expect(struct peer *p)
{
	ssize_t ret;

	if (p->expecting)
		return 0;
	p->answer_op = (struct op){
		.busy = true, .flags = FI_MSG | FI_RECV,
		.len = sizeof(p->msgs.answer),
	};
	ret = fi_recv(rx_ep(p), &p->msgs.answer, sizeof(p->msgs.answer),
		      desc(p->msg_mr), FI_ADDR_UNSPEC, &p->answer_op);
	p->expecting = !ret;
	return fault(ret, "fi_recv");
}

/* -ECONNRESET, without a word: the connection has ended */
int cmd_recv(struct peer *p, struct cmd *c)
{
	const struct krma_msg *m = &p->msgs.answer;
	double until = now() + TIMEOUT;
	int ret = 0;

	while (!ret && p->answer_op.busy && !p->down && !name_here(p) &&
	       now() < until)
		ret = ep_progress(p);
	if (ret)
		return ret;
	/* with the next client, or the same again, the one before has ended */
	if (name_here(p))
		return -ECONNRESET;
	if (p->answer_op.busy)
		return p->down ? -ECONNRESET :
				 fault(-ETIMEDOUT, "no command or answer");
	p->expecting = false;
	if (p->answer_op.err)
		return p->answer_op.err == -ECANCELED ||
		       p->answer_op.err == -ENOTCONN ? -ECONNRESET :
						       p->answer_op.err;
	if (le32toh(m->magic) != KRMA_MAGIC)
		return fault(-EPROTO, "no command");
	*c = (struct cmd){
		.op = le16toh(m->op), .flags = le16toh(m->flags),
		.status = le32toh(m->status), .seed = le32toh(m->seed),
		.count = le32toh(m->count), .segs = le32toh(m->segs),
		.level = le32toh(m->level), .kind = le32toh(m->kind),
		.off = le64toh(m->off), .len = le64toh(m->len),
		.data = le64toh(m->data), .key = le64toh(m->key),
		.addr = le64toh(m->addr), .size = le64toh(m->size),
	};
	return 0;
}

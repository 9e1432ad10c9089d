// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contract 6 and 13 for kofi_sock: peers that lie, break off, or fall silent.
 * The peer is a plain TCP socket that speaks bytes written down here, from the
 * description of the wire, not from the provider's headers.
 *
 * Each case has two pairs of objects: in one the hostile socket talks to side
 * 1, the other is an innocent connection that must not notice. A violation
 * ends the connection it came on, counts, and nothing else.
 */

#include <linux/net.h>
#include <linux/slab.h>
#include <linux/unaligned.h>
#include <linux/kofi/provider.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "../../../providers/sock/sock.h"
#include "../contract/contract.h"
#include "../events.h"
#include "raw.h"
#include "stuck.h"

#define RECV_LEN	256

struct hostile {
	struct ct_pair	*good;
	struct ct_pair	*bad;
	struct socket	*raw;
	struct ct_op	*recv;
	u8		*buf;
};

/* ---------------------------------------------------------- the raw socket */

static void raw_release(void *arg)
{
	struct hostile *h = arg;

	if (h->raw)
		sock_release(h->raw);
	h->raw = NULL;
}

/* The other end has closed the connection, one way or the other. */
static void raw_expect_closed(struct kunit *test, struct socket *sock)
{
	u8 b[64];
	int n;

	do {
		n = raw_recv(sock, b, sizeof(b));
	} while (n > 0);
	if (n != 0 && n != -ECONNRESET && n != -EPIPE)
		KUNIT_FAIL(test, "the connection is open: %d", n);
}

/* -------------------------------------------------------------- statistics */

struct stat_query {
	const char	*name;
	u64		value;
	bool		found;
};

static void stat_take(void *arg, const char *name, u64 value)
{
	struct stat_query *q = arg;

	if (strcmp(name, q->name))
		return;
	q->value = value;
	q->found = true;
}

static u64 stat_of(struct kunit *test, struct fi_fid *fid, const char *name)
{
	struct stat_query q = { .name = name };
	struct kofi_obj *obj = fid->obj;

	KUNIT_ASSERT_NOT_NULL(test, obj->ops);
	obj->ops->stats(obj, stat_take, &q);
	KUNIT_EXPECT_TRUE_MSG(test, q.found, "no statistic %s", name);
	return q.value;
}

/* ------------------------------------------------------------------- cases */

static void innocent_works(struct hostile *h)
{
	struct ct_pair *p = h->good;
	int side;

	for (side = 0; side < 2; side++) {
		struct ct_op *r = ct_op(p), *s = ct_op(p);

		ct_pattern(h->buf, 64, 11);
		KUNIT_EXPECT_EQ(p->test, ct_recv(p, !side, r, h->buf + 64, 64), 0);
		KUNIT_EXPECT_EQ(p->test, ct_send(p, side, s, h->buf, 64), 0);
		KUNIT_EXPECT_TRUE(p->test, ct_wait_all(p));
		KUNIT_EXPECT_EQ(p->test, r->wc.err, 0);
		KUNIT_EXPECT_TRUE(p->test, ct_pattern_ok(h->buf + 64, 64, 11));
	}
}

static struct hostile *hostile_open(struct kunit *test,
				    const struct ct_opts *opts)
{
	struct hostile *h = kunit_kzalloc(test, sizeof(*h), GFP_KERNEL);

	if (strcmp(ct_provider, "sock"))
		kunit_skip(test, "these bytes are of provider sock");
	KUNIT_ASSERT_NOT_NULL(test, h);
	h->good = ct_pair_mode(test, CT_READ);
	h->bad = ct_pair_open(test, opts);
	h->buf = ct_buf(h->bad, 8192);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, raw_release, h), 0);
	return h;
}

/* Everything goes on for everybody else, also behind the same listener. */
static void hostile_close(struct hostile *h)
{
	struct ct_pair *p = h->bad;

	innocent_works(h);
	raw_release(h);
	if (p->side[1].ep)
		KUNIT_EXPECT_EQ(p->test, ct_ep_close(p, 1), 0);
	KUNIT_EXPECT_EQ(p->test, ct_pair_connect(p), 0);
	ct_pair_close(p);
	ct_pair_close(h->good);
}

/* A connection in its data phase, with one receive posted at side 1. */
static struct hostile *hostile_live(struct kunit *test,
				    const struct ct_opts *more)
{
	struct ct_opts opts = { .mode = CT_READ };
	struct hostile *h;
	struct ct_event *ev;
	struct ct_pair *p;

	if (more)
		opts = *more;
	opts.unconnected = true;
	h = hostile_open(test, &opts);
	p = h->bad;
	ev = ct_buf(p, sizeof(*ev));
	h->raw = raw_connect(test, p);
	KUNIT_ASSERT_NOT_NULL(test, h->raw);
	raw_cm(h->buf, 3, 0, 0);
	KUNIT_ASSERT_EQ(test, raw_send(h->raw, h->buf, RAW_CM_LEN), RAW_CM_LEN);
	KUNIT_ASSERT_EQ(test, ct_next_event(p->side[1].eq, ev, CT_TIMEOUT_MS), 0);
	KUNIT_ASSERT_EQ(test, ev->event, FI_CONNREQ);
	KUNIT_ASSERT_EQ(test, ct_ep_open(p, 1, ev->cm.info), 0);
	fi_freeinfo(ev->cm.info);
	KUNIT_ASSERT_EQ(test, fi_accept(p->side[1].ep, NULL, 0), 0);
	ct_expect_event(test, p->side[1].eq, FI_CONNECTED);
	KUNIT_ASSERT_EQ(test, raw_recv(h->raw, h->buf, RAW_CM_LEN), RAW_CM_LEN);
	KUNIT_EXPECT_EQ(test, h->buf[0], 3);
	KUNIT_EXPECT_EQ(test, h->buf[1], 1);
	h->recv = ct_op(p);
	KUNIT_ASSERT_EQ(test, ct_recv(p, 1, h->recv, ct_buf(p, RECV_LEN),
				      RECV_LEN), 0);
	return h;
}

/* --- frames --- */

struct frame_param {
	const char	*name;
	u8		op;
	u16		flags;
	u8		op_data;
	u8		rma_count;
	u8		hdr_size;
	u64		size;
};

static const struct frame_param bad_frames[] = {
	{ "op 1, tagged", 1, 0, 0, 0, 24, 40 },
	{ "op 2, read request", 2, 0, 0, 1, 40, 40 },
	{ "op 3, read response to no request", 3, 0, 0, 0, 16, 32 },
	{ "op 4, write", 4, 0, 0, 1, 40, 56 },
	{ "op 5", 5, 0, 0, 0, 32, 32 },
	{ "op 6", 6, 0, 0, 0, 16, 16 },
	{ "op 7", 7, 0, 0, 0, 16, 32 },
	{ "op 8", 8, 0, 0, 0, 16, 32 },
	{ "op 255", 255, 0, 0, 0, 16, 32 },
	{ "flag 0x0002", 0, 0x0002, 0, 0, 16, 32 },
	{ "message, to be persistent", 0, 0x0008, 0, 0, 16, 32 },
	{ "flag 0x0080", 0, 0x0080, 0, 0, 24, 40 },
	{ "flag 0x8000", 0, 0x8000, 0, 0, 16, 32 },
	{ "all flags", 0, 0xffff, 0, 0, 16, 32 },
	{ "header of 0 bytes", 0, 0, 0, 0, 0, 32 },
	{ "header of 8 bytes", 0, 0, 0, 0, 8, 32 },
	{ "header of 15 bytes", 0, 0, 0, 0, 15, 32 },
	{ "header of 17 bytes", 0, 0, 0, 0, 17, 32 },
	{ "header with room for data but no flag", 0, 0, 0, 0, 24, 40 },
	{ "data flag but no room", 0, 0x0001, 0, 0, 16, 32 },
	{ "header of 120 bytes", 0, 0, 0, 0, 120, 136 },
	{ "header of 121 bytes", 0, 0, 0, 0, 121, 137 },
	{ "header of 255 bytes", 0, 0, 0, 0, 255, 300 },
	{ "size 0", 0, 0, 0, 0, 16, 0 },
	{ "size 15", 0, 0, 0, 0, 16, 15 },
	{ "size below a header with data", 0, 0x0001, 0, 0, 24, 23 },
	{ "size of all bits", 0, 0, 0, 0, 16, U64_MAX },
	{ "size with the sign bit", 0, 0, 0, 0, 16, 1ULL << 63 },
	{ "size beyond the largest message", 0, 0, 0, 0, 16,
	  16 + (u64)MAX_RW_COUNT + 1 },
	{ "ack that is not awaited", 0, 0, 2, 0, 16, 16 },
	{ "ack with payload", 0, 0, 2, 0, 16, 20 },
	{ "ack with a flag", 0, 0x0004, 2, 0, 16, 16 },
	{ "write with no segments", 4, 0, 0, 0, 16, 32 },
	{ "write with five segments", 4, 0, 0, 5, 136, 200 },
	{ "write with 255 segments", 4, 0, 0, 255, 16, 32 },
};

KUNIT_ARRAY_PARAM_DESC(bad_frame, bad_frames, name);

static void hostile_frame(struct kunit *test)
{
	const struct frame_param *f = test->param_value;
	struct hostile *h = hostile_live(test, NULL);
	struct ct_pair *p = h->bad;
	struct events *ev = events_listen(test);
	u32 id = p->side[1].ep->fid.obj->id;

	memset(h->buf, 0, 512);
	raw_frame(h->buf, f->op, f->flags, f->op_data, f->rma_count,
		  f->hdr_size, f->size);
	/* enough for whatever it claims to be; the receiver may be gone */
	raw_send(h->raw, h->buf, 512);
	KUNIT_ASSERT_TRUE_MSG(test, ct_wait_done(p, h->recv),
			      "the connection goes on");
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	ct_expect_no_event(test, p->side[1].eq);
	KUNIT_EXPECT_NE(test, h->recv->wc.err, 0);
	KUNIT_EXPECT_EQ(test, stat_of(test, &p->side[1].ep->fid, "violations"),
			1);
	events_expect(test, ev, id, KOFI_EVENT_VIOLATION, EPROTO);
	KUNIT_EXPECT_NOT_NULL(test, ev->tb[KOFI_A_EVENT_REASON]);
	KUNIT_EXPECT_NOT_NULL(test, ev->tb[KOFI_A_EVENT_PEER_ADDR]);
	events_expect(test, ev, id, KOFI_EVENT_LOST, EPROTO);
	raw_expect_closed(test, h->raw);
	hostile_close(h);
}

/* --- access to memory --- */

#define RMA_LEN		4096
#define RMA_ALL		(FI_REMOTE_READ | FI_REMOTE_WRITE)

enum rma_key {
	KEY_FULL,	/* may be read and written */
	KEY_READ,	/* only read */
	KEY_WRITE,	/* only written */
	KEY_FOREIGN,	/* bound to another endpoint */
	KEY_CLOSED,	/* of a region that is no more */
	KEY_NONE,	/* of none, but for the count of uses like a real one */
	KEYS
};

struct rma_param {
	const char	*name;
	u8		op;
	u16		flags;
	u8		count;
	u64		payload;
	enum rma_key	key[4];
	u64		addr[4];
	u64		len[4];
};

static const struct rma_param bad_rmas[] = {
	{ "write, unknown key", 4, 0, 1, 8, { KEY_NONE }, {}, { 8 } },
	{ "write of nothing, unknown key", 4, 0, 1, 0, { KEY_NONE } },
	{ "write, closed region", 4, 0, 1, 8, { KEY_CLOSED }, {}, { 8 } },
	{ "write, key of another endpoint", 4, 0, 1, 8, { KEY_FOREIGN }, {},
	  { 8 } },
	{ "write, not granted", 4, 0, 1, 8, { KEY_READ }, {}, { 8 } },
	{ "write, one byte too many", 4, 0, 1, 8, { KEY_FULL },
	  { RMA_LEN - 7 }, { 8 } },
	{ "write, far out", 4, 0, 1, 8, { KEY_FULL }, { 1ULL << 40 }, { 8 } },
	{ "write, nothing beyond the end", 4, 0, 1, 0, { KEY_FULL },
	  { RMA_LEN + 1 } },
	{ "write, wraps around", 4, 0, 1, 16, { KEY_FULL }, { U64_MAX - 7 },
	  { 16 } },
	{ "write, acknowledged, unknown key", 4, 4, 1, 8, { KEY_NONE }, {},
	  { 8 } },
	{ "write, second segment bad", 4, 0, 2, 16, { KEY_FULL, KEY_NONE }, {},
	  { 8, 8 } },
	{ "write, last of four beyond the end", 4, 0, 4, 32, {},
	  { 0, 8, 16, RMA_LEN - 7 }, { 8, 8, 8, 8 } },
	{ "write, lengths less than payload", 4, 0, 1, 9, { KEY_FULL }, {},
	  { 8 } },
	{ "write, lengths more than payload", 4, 0, 1, 7, { KEY_FULL }, {},
	  { 8 } },
	{ "write, sum wraps to payload", 4, 0, 2, 8, {}, {},
	  { U64_MAX, 9 } },
	{ "read, unknown key", 2, 0, 1, 0, { KEY_NONE }, {}, { 8 } },
	{ "read of nothing, unknown key", 2, 0, 1, 0, { KEY_NONE } },
	{ "read, closed region", 2, 0, 1, 0, { KEY_CLOSED }, {}, { 8 } },
	{ "read, key of another endpoint", 2, 0, 1, 0, { KEY_FOREIGN }, {},
	  { 8 } },
	{ "read, not granted", 2, 0, 1, 0, { KEY_WRITE }, {}, { 8 } },
	{ "read, one byte too many", 2, 0, 1, 0, { KEY_FULL },
	  { RMA_LEN - 7 }, { 8 } },
	{ "read, wraps around", 2, 0, 1, 0, { KEY_FULL }, { U64_MAX - 7 },
	  { 16 } },
	{ "read, second segment bad", 2, 0, 2, 0, { KEY_FULL, KEY_READ },
	  { 0, RMA_LEN }, { 8, 1 } },
	{ "read, to be acknowledged", 2, 4, 1, 0, { KEY_FULL }, {}, { 8 } },
	/* no memory here is persistent */
	{ "write, to be persistent", 4, 8, 1, 8, { KEY_WRITE }, {}, { 8 } },
};

KUNIT_ARRAY_PARAM_DESC(bad_rma, bad_rmas, name);

struct rma_regions {
	u8		*mem;
	struct fid_mr	*mr[KEYS];
	u64		key[KEYS];
};

/* Regions of one piece of memory each, all filled with the same byte */
static struct rma_regions *rma_open(struct kunit *test, struct ct_pair *p)
{
	static const u64 access[KEYS] = {
		RMA_ALL, FI_REMOTE_READ, FI_REMOTE_WRITE, RMA_ALL, RMA_ALL, 0,
	};
	struct rma_regions *r = ct_buf(p, sizeof(*r));
	int i;

	r->mem = ct_buf(p, KEYS * RMA_LEN);
	memset(r->mem, 0x5e, KEYS * RMA_LEN);
	for (i = 0; i < KEY_NONE; i++) {
		struct fid_ep *ep = p->side[i != KEY_FOREIGN].ep;

		KUNIT_ASSERT_EQ(test, fi_mr_reg(p->domain, r->mem + i * RMA_LEN,
						RMA_LEN, access[i], 0, 0, 0,
						&r->mr[i], NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_mr_bind(r->mr[i], &ep->fid, 0), 0);
		KUNIT_ASSERT_EQ(test, fi_mr_enable(r->mr[i]), 0);
		r->key[i] = fi_mr_key(r->mr[i]);
	}
	KUNIT_EXPECT_EQ(test, fi_close(&r->mr[KEY_CLOSED]->fid), 0);
	r->mr[KEY_CLOSED] = NULL;
	/* the slot of one that is, and never its generation */
	r->key[KEY_NONE] = r->key[KEY_FULL] + (1ULL << 40);
	return r;
}

static void rma_close(struct kunit *test, struct rma_regions *r)
{
	int i;

	for (i = 0; i < KEYS; i++)
		if (r->mr[i])
			KUNIT_EXPECT_EQ(test, fi_close(&r->mr[i]->fid), 0);
}

static size_t rma_bytes(u8 *b, const struct rma_param *f,
			const struct rma_regions *r)
{
	size_t hdr = 16 + f->count * 24;
	int i;

	raw_frame(b, f->op, f->flags, 0, f->count, hdr, hdr + f->payload);
	for (i = 0; i < f->count; i++) {
		const u64 seg[3] = { f->addr[i], f->len[i], r->key[f->key[i]] };

		memcpy(b + 16 + i * 24, seg, sizeof(seg));
	}
	memset(b + hdr, 0xbd, f->payload);
	return hdr + f->payload;
}

/* Not one byte is touched, not even of the segments that are right. */
static void hostile_access(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = CT_READ, .caps = FI_MSG | FI_RMA,
		.mr_mode = FI_MR_PROV_KEY | FI_MR_ENDPOINT,
	};
	const struct rma_param *f = test->param_value;
	struct hostile *h = hostile_live(test, &opts);
	struct ct_pair *p = h->bad;
	struct rma_regions *r = rma_open(test, p);
	size_t len = rma_bytes(h->buf, f, r);
	u8 b[8];

	raw_send(h->raw, h->buf, len);
	KUNIT_ASSERT_TRUE_MSG(test, ct_wait_done(p, h->recv),
			      "the connection goes on");
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	ct_expect_no_event(test, p->side[1].eq);
	KUNIT_EXPECT_EQ(test, h->recv->wc.err, ECANCELED);
	KUNIT_EXPECT_EQ(test, stat_of(test, &p->side[1].ep->fid, "violations"),
			1);
	/* no answer of any kind */
	KUNIT_EXPECT_LE(test, raw_recv(h->raw, b, sizeof(b)), 0);
	KUNIT_EXPECT_PTR_EQ(test, memchr_inv(r->mem, 0x5e, KEYS * RMA_LEN),
			    NULL);
	rma_close(test, r);
	hostile_close(h);
}

static const struct rma_param good_rmas[] = {
	{ "write to the last byte", 4, 0, 1, 8, { KEY_FULL }, { RMA_LEN - 8 },
	  { 8 } },
	{ "write of nothing at the end", 4, 0, 1, 0, { KEY_WRITE },
	  { RMA_LEN } },
	{ "write of four segments", 4, 4, 4, 10,
	  { KEY_FULL, KEY_WRITE, KEY_FULL, KEY_WRITE },
	  { 0, 1, 100, RMA_LEN - 5 }, { 1, 4, 0, 5 } },
	{ "read of nothing", 2, 0, 1, 0, { KEY_READ } },
	{ "read to the last byte", 2, 0, 1, 0, { KEY_READ }, { RMA_LEN - 8 },
	  { 8 } },
	{ "read of four segments", 2, 0, 4, 0,
	  { KEY_FULL, KEY_READ, KEY_FULL, KEY_READ },
	  { 0, 1, 100, RMA_LEN - 5 }, { 1, 4, 0, 5 } },
};

KUNIT_ARRAY_PARAM_DESC(good_rma, good_rmas, name);

/* The same frames, where they are right, to show what the others lack. */
static void hostile_granted(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = CT_READ, .caps = FI_MSG | FI_RMA,
		.mr_mode = FI_MR_PROV_KEY | FI_MR_ENDPOINT,
	};
	const struct rma_param *f = test->param_value;
	struct hostile *h = hostile_live(test, &opts);
	struct ct_pair *p = h->bad;
	struct rma_regions *r = rma_open(test, p);
	size_t len = rma_bytes(h->buf, f, r), total = 0;
	int i;

	for (i = 0; i < f->count; i++)
		total += f->len[i];
	KUNIT_EXPECT_EQ(test, raw_send(h->raw, h->buf, len), len);
	if (f->op == 2 || f->flags) {
		KUNIT_EXPECT_EQ(test, raw_recv(h->raw, h->buf, 16), 16);
		KUNIT_EXPECT_EQ(test, h->buf[1], f->op == 2 ? 3 : 0);
		KUNIT_EXPECT_EQ(test, h->buf[4], f->op == 2 ? 0 : 2);
	}
	if (f->op == 2) {
		KUNIT_EXPECT_EQ(test, raw_recv(h->raw, h->buf, total), total);
		KUNIT_EXPECT_PTR_EQ(test, memchr_inv(h->buf, 0x5e, total),
				    NULL);
	}
	/* a message behind it says that it has been placed */
	raw_frame(h->buf, 0, 0, 0, 0, 16, 16);
	KUNIT_EXPECT_EQ(test, raw_send(h->raw, h->buf, 16), 16);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, h->recv));
	KUNIT_EXPECT_EQ(test, h->recv->wc.err, 0);
	for (i = 0; f->op == 4 && i < f->count; i++) {
		u8 *seg = r->mem + f->key[i] * RMA_LEN + f->addr[i];

		KUNIT_EXPECT_PTR_EQ(test, memchr_inv(seg, 0xbd, f->len[i]),
				    NULL);
		memset(seg, 0x5e, f->len[i]);
	}
	KUNIT_EXPECT_PTR_EQ(test, memchr_inv(r->mem, 0x5e, KEYS * RMA_LEN),
			    NULL);
	KUNIT_EXPECT_EQ(test, stat_of(test, &p->side[1].ep->fid, "violations"),
			0);
	rma_close(test, r);
	raw_release(h);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	hostile_close(h);
}

/* --- answers to our reads --- */

static const struct answer_param {
	const char	*name;
	u16		flags;
	u64		size;		/* of the frame; 100 bytes were asked for */
	bool		twice;
} bad_responses[] = {
	{ "one byte short", 0, 16 + 99 },
	{ "one byte long", 0, 16 + 101 },
	{ "empty", 0, 16 },
	{ "all there is", 0, U64_MAX },
	{ "to be acknowledged", 4, 16 + 100 },
	{ "with data", 1, 24 + 100 },
	{ "and one more", 0, 16 + 100, true },
};

KUNIT_ARRAY_PARAM_DESC(bad_response, bad_responses, name);

static void hostile_response(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = CT_READ, .caps = FI_MSG | FI_RMA,
		.mr_mode = FI_MR_PROV_KEY,
	};
	const struct answer_param *a = test->param_value;
	struct hostile *h = hostile_live(test, &opts);
	struct ct_pair *p = h->bad;
	struct ct_op *op = ct_op(p);
	u8 *mem = ct_buf(p, 200);
	int i;

	memset(mem, 0x5e, 200);
	atomic_inc(&op->posted);
	KUNIT_ASSERT_EQ(test, fi_read(p->side[1].ep, mem, 100, NULL, 0, 0, 1,
				      op), 0);
	KUNIT_ASSERT_EQ(test, raw_recv(h->raw, h->buf, 40), 40);
	KUNIT_EXPECT_EQ(test, h->buf[1], 2);
	for (i = 0; i <= a->twice; i++) {
		memset(h->buf, 0xbd, 512);
		raw_frame(h->buf, 3, a->flags, 0, 0, a->flags & 1 ? 24 : 16,
			  a->size);
		raw_send(h->raw, h->buf, min_t(u64, a->size, 512));
	}
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, op->wc.err, a->twice ? 0 : ECANCELED);
	KUNIT_EXPECT_EQ(test, op->wc.flags, FI_READ | FI_RMA);
	KUNIT_EXPECT_PTR_EQ(test, memchr_inv(mem, a->twice ? 0xbd : 0x5e, 100),
			    NULL);
	KUNIT_EXPECT_PTR_EQ(test, memchr_inv(mem + 100, 0x5e, 100), NULL);
	KUNIT_EXPECT_EQ(test, stat_of(test, &p->side[1].ep->fid, "violations"),
			1);
	hostile_close(h);
}

/* What looks odd and is legal goes through. */
static const struct frame_param good_frames[] = {
	{ "plain", 0, 0, 0, 0, 16, 16 + 64 },
	{ "segment count left over", 0, 0, 0, 4, 16, 16 + 64 },
	{ "with data", 0, 0x0001, 0, 0, 24, 24 + 64 },
	{ "to be acknowledged", 0, 0x0004, 0, 0, 16, 16 + 64 },
	{ "empty", 0, 0, 0, 0, 16, 16 },
};

KUNIT_ARRAY_PARAM_DESC(good_frame, good_frames, name);

static void hostile_not_really(struct kunit *test)
{
	const struct frame_param *f = test->param_value;
	struct hostile *h = hostile_live(test, NULL);
	struct ct_pair *p = h->bad;
	u8 *b = h->buf, ack[16];

	memset(b, 0, 512);
	raw_frame(b, f->op, f->flags, f->op_data, f->rma_count, f->hdr_size,
		  f->size);
	b[0] = 9;	/* the version of a frame is not looked at */
	b[7] = 200;	/* nor is its number */
	KUNIT_EXPECT_EQ(test, raw_send(h->raw, b, f->size), f->size);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, h->recv));
	KUNIT_EXPECT_EQ(test, h->recv->wc.err, 0);
	KUNIT_EXPECT_EQ(test, h->recv->wc.len, f->size - f->hdr_size);
	if (f->flags & 0x0004) {
		KUNIT_EXPECT_EQ(test, raw_recv(h->raw, ack, 16), 16);
		KUNIT_EXPECT_EQ(test, ack[4], 2);
	}
	KUNIT_EXPECT_EQ(test, stat_of(test, &p->side[1].ep->fid, "violations"),
			0);
	raw_release(h);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	hostile_close(h);
}

/* --- frames that break off --- */

struct cut_param {
	const char	*name;
	unsigned int	len;
	bool		reset;
};

/* of a message of 100 bytes with data: 24 + 100 */
static const struct cut_param cuts[] = {
	{ "nothing, end", 0, false },
	{ "nothing, reset", 0, true },
	{ "1 byte, end", 1, false },
	{ "15 bytes, end", 15, false },
	{ "16 of 24 bytes of header, end", 16, false },
	{ "the header, end", 24, false },
	{ "half the payload, end", 74, false },
	{ "half the payload, reset", 74, true },
	{ "all but one byte, end", 123, false },
};

KUNIT_ARRAY_PARAM_DESC(cut, cuts, name);

static void hostile_cut(struct kunit *test)
{
	const struct cut_param *c = test->param_value;
	struct hostile *h = hostile_live(test, NULL);
	struct ct_pair *p = h->bad;

	memset(h->buf, 0, 124);
	raw_frame(h->buf, 0, 0x0001, 0, 0, 24, 124);
	KUNIT_EXPECT_EQ(test, raw_send(h->raw, h->buf, c->len), c->len);
	if (c->reset)
		sock_no_linger(h->raw->sk);
	raw_release(h);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, h->recv));
	KUNIT_EXPECT_NE(test, h->recv->wc.err, 0);
	ct_expect_no_event(test, p->side[1].eq);
	hostile_close(h);
}

/* --- connection requests --- */

struct cm_param {
	const char	*name;
	const char	*stat;
	u8		version;
	u8		type;
	u16		data_len;
	unsigned int	sent;		/* bytes, private data included */
	bool		end;		/* then the stream ends */
	bool		garbage;
};

static const struct cm_param bad_cms[] = {
	{ "version 0", "violations", 0, 0, 0, 32 },
	{ "version 2", "violations", 2, 0, 0, 32 },
	{ "version 4", "violations", 4, 0, 0, 32 },
	{ "an answer", "violations", 3, 1, 0, 32 },
	{ "a refusal", "violations", 3, 6, 0, 32 },
	{ "type 2", "violations", 3, 2, 0, 32 },
	{ "type 255", "violations", 3, 255, 0, 32 },
	{ "257 bytes of private data", "violations", 3, 0, 257, 289 },
	{ "65535 bytes of private data", "violations", 3, 0, 65535, 1024 },
	{ "garbage", "violations", .sent = 200, .garbage = true },
	{ "half a header, end", NULL, 3, 0, 0, 16, true },
	{ "private data missing, end", NULL, 3, 0, 100, 32, true },
	{ "nothing, end", NULL, 3, 0, 0, 0, true },
	{ "private data never sent", "timeouts", 3, 0, 100, 32 },
	{ "private data half sent", "timeouts", 3, 0, 100, 80 },
	{ "half a header", "timeouts", 3, 0, 0, 16 },
	{ "nothing at all", "timeouts", 3, 0, 0, 0 },
};

KUNIT_ARRAY_PARAM_DESC(bad_cm, bad_cms, name);

static void hostile_request(struct kunit *test)
{
	const struct ct_opts opts = {
		.unconnected = true, .handshake_ms = TEST_LIMIT(400),
	};
	const struct cm_param *c = test->param_value;
	struct hostile *h = hostile_open(test, &opts);
	struct ct_pair *p = h->bad;
	u32 x = 12345;
	int i;

	h->raw = raw_connect(test, p);
	KUNIT_ASSERT_NOT_NULL(test, h->raw);
	raw_cm(h->buf, c->version, c->type, c->data_len);
	for (i = 0; c->garbage && i < c->sent; i++) {
		x = x * 1664525 + 1013904223;
		h->buf[i] = x >> 24;
	}
	raw_send(h->raw, h->buf, c->sent);
	if (c->end)
		kernel_sock_shutdown(h->raw, SHUT_WR);
	raw_expect_closed(test, h->raw);
	if (c->stat)
		KUNIT_EXPECT_EQ(test, stat_of(test, &p->pep->fid, c->stat), 1);
	ct_expect_no_event(test, p->side[1].eq);
	hostile_close(h);
}

/* A request may arrive in pieces, with a frame right behind it. */
static void hostile_request_in_pieces(struct kunit *test)
{
	const struct ct_opts opts = { .unconnected = true };
	struct hostile *h = hostile_open(test, &opts);
	struct ct_pair *p = h->bad;
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	u8 *b = h->buf;
	struct ct_op *r;
	int i, len;

	h->raw = raw_connect(test, p);
	KUNIT_ASSERT_NOT_NULL(test, h->raw);
	raw_cm(b, 3, 0, 5);
	memcpy(b + RAW_CM_LEN, "hello", 5);
	raw_frame(b + RAW_CM_LEN + 5, 0, 0, 0, 0, 16, 16 + 4);
	memcpy(b + RAW_CM_LEN + 5 + 16, "data", 4);
	len = RAW_CM_LEN + 5 + 16 + 4;
	for (i = 0; i < len; i++)
		KUNIT_ASSERT_EQ(test, raw_send(h->raw, b + i, 1), 1);
	KUNIT_ASSERT_EQ(test, ct_next_event(p->side[1].eq, ev, CT_TIMEOUT_MS), 0);
	KUNIT_ASSERT_EQ(test, ev->event, FI_CONNREQ);
	KUNIT_EXPECT_EQ(test, ev->len, sizeof(ev->cm) + 5);
	KUNIT_EXPECT_MEMEQ(test, ev->cm.data, "hello", 5);
	KUNIT_ASSERT_EQ(test, ct_ep_open(p, 1, ev->cm.info), 0);
	fi_freeinfo(ev->cm.info);
	KUNIT_ASSERT_EQ(test, fi_accept(p->side[1].ep, NULL, 0), 0);
	ct_expect_event(test, p->side[1].eq, FI_CONNECTED);
	r = ct_op(p);
	KUNIT_ASSERT_EQ(test, ct_recv(p, 1, r, b + 200, 64), 0);
	KUNIT_ASSERT_TRUE(test, ct_wait_done(p, r));
	KUNIT_EXPECT_EQ(test, r->wc.len, 4);
	KUNIT_EXPECT_MEMEQ(test, b + 200, "data", 4);
	raw_release(h);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	hostile_close(h);
}

/*
 * More unfinished handshakes than there may be: the others wait, and the oldest
 * give way, so that a client that does send its request gets in.
 */
static void hostile_flood(struct kunit *test)
{
	const struct ct_opts opts = {
		.unconnected = true, .handshake_ms = TEST_LIMIT(4000),
	};
	struct hostile *h = hostile_open(test, &opts);
	struct ct_pair *p = h->bad;
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	enum { FLOOD = 200, LIMIT = 128 };
	struct socket **raw = ct_buf(p, FLOOD * sizeof(*raw));
	int i;

	for (i = 0; i < FLOOD; i++)
		raw[i] = raw_connect(test, p);
	h->raw = raw_connect(test, p);
	KUNIT_ASSERT_NOT_NULL(test, h->raw);
	raw_cm(h->buf, 3, 0, 0);
	raw_send(h->raw, h->buf, RAW_CM_LEN);
	KUNIT_EXPECT_LE(test, stat_of(test, &p->pep->fid, "pending"), LIMIT);
	KUNIT_ASSERT_EQ(test, ct_next_event(p->side[1].eq, ev, CT_TIMEOUT_MS), 0);
	KUNIT_ASSERT_EQ(test, ev->event, FI_CONNREQ);
	/* on a slow machine they are out of time before they are the oldest */
	KUNIT_EXPECT_GT(test, stat_of(test, &p->pep->fid, "evicted") +
			stat_of(test, &p->pep->fid, "timeouts"), FLOOD - LIMIT);
	KUNIT_EXPECT_LE(test, stat_of(test, &p->pep->fid, "pending"), LIMIT);
	innocent_works(h);
	KUNIT_EXPECT_EQ(test, fi_reject(p->pep, ev->cm.info->handle, NULL, 0), 0);
	fi_freeinfo(ev->cm.info);
	raw_release(h);
	/* The rest time out, and all is as before. */
	for (i = 0; i < TEST_LIMIT(200) && stat_of(test, &p->pep->fid, "pending"); i++)
		ct_wait(p, false, 50);
	KUNIT_EXPECT_EQ(test, stat_of(test, &p->pep->fid, "pending"), 0);
	KUNIT_EXPECT_GT(test, stat_of(test, &p->pep->fid, "timeouts"), 0);
	for (i = 0; i < FLOOD; i++) {
		if (!raw[i])
			continue;
		raw_expect_closed(test, raw[i]);
		sock_release(raw[i]);
	}
	ct_expect_no_event(test, p->side[1].eq);
	hostile_close(h);
}

/* Wait until a statistic of a listener has a value. */
static bool backlog_is(struct ct_pair *p, struct fid_pep *pep, const char *name, u64 value)
{
	const unsigned long end = jiffies + msecs_to_jiffies(CT_TIMEOUT_MS);

	while (stat_of(p->test, &pep->fid, name) != value) {
		if (time_after(jiffies, end))
			return false;
		ct_wait(p, false, 1);
	}
	return true;
}

/*
 * Five connections are accepted before the first sends its request. The program sees
 * no more at a time than the backlog allows. The rest are closed with the listener.
 */
static void hostile_backlog(struct kunit *test)
{
	const struct ct_opts opts = {
		.unconnected = true, .handshake_ms = 8 * CT_TIMEOUT_MS,
	};
	struct hostile *h = hostile_open(test, &opts);
	struct ct_pair *p = h->bad;
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	const struct sockaddr_storage listener = p->addr;
	size_t len = sizeof(p->addr);
	int i, backlog = 2;
	enum { CLIENTS = 5 };
	struct socket *raw[CLIENTS];
	struct fid_pep *pep;

	KUNIT_ASSERT_EQ(test, fi_passive_ep(p->fabric, p->info, &pep, p), 0);
	KUNIT_EXPECT_EQ(test, fi_pep_bind(pep, &p->side[1].eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_control(&pep->fid, FI_BACKLOG, &backlog), 0);
	KUNIT_ASSERT_EQ(test, fi_listen(pep), 0);
	KUNIT_EXPECT_EQ(test, fi_getname(&pep->fid, &p->addr, &len), 0);
	for (i = 0; i < CLIENTS; i++) {
		raw[i] = raw_connect(test, p);
		KUNIT_ASSERT_NOT_NULL(test, raw[i]);
		KUNIT_ASSERT_TRUE(test, backlog_is(p, pep, "pending", i + 1));
	}
	raw_cm(h->buf, 3, 0, 0);
	for (i = 0; i < CLIENTS; i++)
		KUNIT_EXPECT_EQ(test, raw_send(raw[i], h->buf, RAW_CM_LEN), RAW_CM_LEN);
	KUNIT_EXPECT_TRUE(test, backlog_is(p, pep, "pending", 0));
	KUNIT_EXPECT_EQ(test, stat_of(test, &pep->fid, "delivered"), backlog);
	KUNIT_EXPECT_EQ(test, stat_of(test, &pep->fid, "waiting"), CLIENTS - backlog);
	/* each answer makes room for one request */
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, ct_next_event(p->side[1].eq, ev, CT_TIMEOUT_MS), 0);
		KUNIT_ASSERT_EQ(test, ev->event, FI_CONNREQ);
		KUNIT_EXPECT_EQ(test, fi_reject(pep, ev->cm.info->handle, NULL, 0), 0);
		fi_freeinfo(ev->cm.info);
		KUNIT_EXPECT_TRUE(test, backlog_is(p, pep, "delivered", backlog));
		KUNIT_EXPECT_EQ(test, stat_of(test, &pep->fid, "waiting"),
				CLIENTS - backlog - i - 1);
	}
	KUNIT_EXPECT_EQ(test, stat_of(test, &pep->fid, "evicted"), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&pep->fid), 0);
	for (i = 0; i < CLIENTS; i++) {
		raw_expect_closed(test, raw[i]);
		sock_release(raw[i]);
	}
	p->addr = listener;
	hostile_close(h);
}

#define CROWD		300

/* Clients that all connect before the first has sent its request */
struct crowd {
	struct ct_pair	*pair;
	struct socket	*raw[CROWD];
	bool		sent[CROWD];
	struct fid_ep	*ep[CROWD];
	int		accepted, connected;
};

static void crowd_accept(struct kunit *test, struct crowd *c,
			 struct fi_info *info)
{
	struct ct_side *s = &c->pair->side[1];
	struct fid_ep *ep;

	info->tx_attr->size = 8;
	info->rx_attr->size = 8;
	KUNIT_ASSERT_LT(test, c->accepted, CROWD);
	KUNIT_ASSERT_EQ(test, fi_endpoint(c->pair->domain, info, &ep, s), 0);
	c->ep[c->accepted++] = ep;
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &s->eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &s->tx.cq->fid, FI_TRANSMIT), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &s->rx.cq->fid, FI_RECV), 0);
	KUNIT_EXPECT_EQ(test, fi_accept(ep, NULL, 0), 0);
	fi_freeinfo(info);
}

/* Who is connected now sends its request, and what has come is accepted. */
static void crowd_step(struct kunit *test, struct crowd *c, struct ct_event *ev)
{
	u8 req[RAW_CM_LEN];
	int i;

	raw_cm(req, 3, 0, 0);
	for (i = 0; i < CROWD; i++) {
		if (c->sent[i] ||
		    READ_ONCE(c->raw[i]->sk->sk_state) != TCP_ESTABLISHED)
			continue;
		KUNIT_EXPECT_EQ(test, raw_send(c->raw[i], req, RAW_CM_LEN), RAW_CM_LEN);
		c->sent[i] = true;
	}
	while (!ct_next_event(c->pair->side[1].eq, ev, 10)) {
		if (ev->event == FI_CONNREQ)
			crowd_accept(test, c, ev->cm.info);
		else if (ev->event == FI_CONNECTED)
			c->connected++;
		else
			KUNIT_FAIL(test, "event %u", ev->event);
	}
}

/*
 * More clients at once than may be without their request, and than TCP keeps for
 * the listener: all of them get in.
 */
static void hostile_crowd(struct kunit *test)
{
	const struct ct_opts opts = {
		/* the oldest, who would give way after an eighth, is in time */
		.unconnected = true, .handshake_ms = 8 * CT_TIMEOUT_MS,
	};
	struct hostile *h = hostile_open(test, &opts);
	struct ct_pair *p = h->bad;
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	struct crowd *c = ct_buf(p, sizeof(*c));
	unsigned long end;
	int i, err;

	c->pair = p;
	for (i = 0; i < CROWD; i++) {
		c->raw[i] = raw_socket(test, p);
		err = kernel_connect(c->raw[i], (void *)&p->addr,
				     sizeof(struct sockaddr_in), O_NONBLOCK);
		KUNIT_EXPECT_TRUE(test, !err || err == -EINPROGRESS);
	}
	end = jiffies + msecs_to_jiffies(CT_TIMEOUT_MS);
	while (stat_of(test, &p->pep->fid, "pending") < 128 && time_before(jiffies, end))
		ct_wait(p, false, 1);
	KUNIT_EXPECT_EQ(test, stat_of(test, &p->pep->fid, "pending"), 128);
	/* TCP repeats what a full queue has refused later and later */
	end = jiffies + msecs_to_jiffies(4 * CT_TIMEOUT_MS);
	while (c->connected < CROWD && time_before(jiffies, end))
		crowd_step(test, c, ev);
	KUNIT_EXPECT_EQ(test, c->connected, CROWD);
	KUNIT_EXPECT_EQ(test, stat_of(test, &p->pep->fid, "evicted"), 0);
	KUNIT_EXPECT_EQ(test, stat_of(test, &p->pep->fid, "timeouts"), 0);
	for (i = 0; i < CROWD && c->connected == CROWD; i++) {
		KUNIT_EXPECT_EQ(test, raw_recv(c->raw[i], h->buf, RAW_CM_LEN), RAW_CM_LEN);
		KUNIT_EXPECT_EQ(test, h->buf[1], 1);
	}
	innocent_works(h);
	for (i = 0; i < CROWD; i++) {
		if (c->ep[i])
			KUNIT_EXPECT_EQ(test, fi_close(&c->ep[i]->fid), 0);
		sock_release(c->raw[i]);
	}
	hostile_close(h);
}

/* --- what one run of a listener does --- */

/* However many connect at once, a listener accepts 64, and lets others run. */
static void hostile_run(struct kunit *test)
{
	const struct ct_opts opts = { .unconnected = true };
	enum { CLIENTS = 100, RUN = 64 };
	struct hostile *h;
	struct stuck *before, *behind;
	struct socket **raw, *last;
	struct ct_pair *p;
	bool told;
	int i;

	if (num_online_cpus() > 1)
		kunit_skip(test, "work items have an order on one CPU");
	h = hostile_open(test, &opts);
	p = h->bad;
	raw = ct_buf(p, CLIENTS * sizeof(*raw));
	workqueue_set_max_active(ksk_wq, 1);
	before = ct_buf(p, sizeof(*before));
	behind = ct_buf(p, sizeof(*behind));
	stuck_queue(before, WORK_CPU_UNBOUND);
	wait_for_completion(&before->runs);
	for (i = 0; i < CLIENTS; i++) {
		raw[i] = raw_connect(test, p);
		KUNIT_EXPECT_NOT_NULL(test, raw[i]);
	}
	/* the listener has been told of the last one when that is acknowledged */
	last = raw[CLIENTS - 1];
	raw_cm(h->buf, 3, 0, 0);
	if (last)
		KUNIT_EXPECT_EQ(test, raw_send(last, h->buf, 1), 1);
	told = last && ct_wait(p, !READ_ONCE(tcp_sk(last->sk)->packets_out),
			       CT_TIMEOUT_MS);
	KUNIT_EXPECT_TRUE(test, told);
	KUNIT_EXPECT_EQ(test, stat_of(test, &p->pep->fid, "pending"), 0);
	stuck_queue(behind, WORK_CPU_UNBOUND);
	stuck_end(before);
	wait_for_completion(&behind->runs);
	KUNIT_EXPECT_EQ(test, stat_of(test, &p->pep->fid, "pending"), RUN);
	stuck_end(behind);
	workqueue_set_max_active(ksk_wq, WQ_DFL_ACTIVE);
	flush_workqueue(ksk_wq);
	KUNIT_EXPECT_EQ(test, stat_of(test, &p->pep->fid, "pending"), CLIENTS);
	for (i = 0; i < CLIENTS; i++)
		if (raw[i])
			sock_release(raw[i]);
	hostile_close(h);
}

/* --- answers to our own requests --- */

static const struct cm_param bad_answers[] = {
	{ "version 2", NULL, 2, 1, 0, 32 },
	{ "a request", NULL, 3, 0, 0, 32 },
	{ "type 9", NULL, 3, 9, 0, 32 },
	{ "257 bytes of private data", NULL, 3, 1, 257, 289 },
	{ "refusal with 257 bytes", NULL, 3, 6, 257, 289 },
	{ "garbage", NULL, .sent = 200, .garbage = true },
	{ "half a header, end", NULL, 3, 1, 0, 16, true },
	{ "private data missing, end", NULL, 3, 1, 100, 32, true },
	{ "nothing, end", NULL, 3, 1, 0, 0, true },
	{ "nothing at all", NULL, 3, 1, 0, 0 },
	{ "private data never sent", NULL, 3, 1, 100, 32 },
};

KUNIT_ARRAY_PARAM_DESC(bad_answer, bad_answers, name);

static void hostile_answer(struct kunit *test)
{
	const struct ct_opts opts = { .unconnected = true };
	const struct cm_param *c = test->param_value;
	struct hostile *h = hostile_open(test, &opts);
	struct ct_pair *p = h->bad;
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_addr = ((struct sockaddr_in *)&p->addr)->sin_addr,
	};
	struct socket *listener;
	unsigned int ms = TEST_LIMIT(700);
	int err;

	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, AF_INET, SOCK_STREAM,
					       IPPROTO_TCP, &listener), 0);
	err = kernel_bind(listener, (void *)&addr, sizeof(addr));
	err = err ?: kernel_listen(listener, 4);
	if (!err && kernel_getsockname(listener, (struct sockaddr *)&addr) < 0)
		err = -EINVAL;
	err = err ?: fi_set_val(&p->side[0].ep->fid, KOFI_VAL_CONNECT_TIMEOUT,
				&ms);
	err = err ?: fi_connect(p->side[0].ep, &addr, NULL, 0);
	err = err ?: kernel_accept(listener, &h->raw, 0);
	sock_release(listener);
	KUNIT_ASSERT_EQ(test, err, 0);
	h->raw->sk->sk_rcvtimeo = RAW_TIMEOUT;
	KUNIT_ASSERT_EQ(test, raw_recv(h->raw, h->buf, RAW_CM_LEN), RAW_CM_LEN);
	raw_cm(h->buf, c->version, c->type, c->data_len);
	if (c->garbage)
		memset(h->buf, 0xee, c->sent);
	raw_send(h->raw, h->buf, c->sent);
	if (c->end)
		kernel_sock_shutdown(h->raw, SHUT_WR);
	KUNIT_EXPECT_EQ(test, ct_next_event(p->side[0].eq, ev, CT_TIMEOUT_MS), 1);
	KUNIT_EXPECT_NE(test, ev->error.err, 0);
	ct_expect_no_event(test, p->side[0].eq);
	raw_expect_closed(test, h->raw);
	/* a new endpoint connects as if nothing had been */
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	KUNIT_EXPECT_EQ(test, ct_ep_open(p, 0, p->info), 0);
	hostile_close(h);
}

/* --- 6: dead peers --- */

/* Its host answers nothing any more: the lock keeps all segments waiting. */
static void hostile_silent(struct kunit *test)
{
	const struct ct_opts opts = { .mode = CT_READ, .silence_ms = TEST_LIMIT(1000) };
	struct hostile *h = hostile_live(test, &opts);
	struct ct_pair *p = h->bad;
	struct ct_op *s = ct_op(p), *s2 = ct_op(p);
	struct kvec iov = { .iov_base = h->buf, .iov_len = 100 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	unsigned long begin = jiffies;
	int ret;

	lock_sock(h->raw->sk);
	KUNIT_EXPECT_EQ(test, ct_send(p, 1, s, h->buf, 100), 0);
	KUNIT_EXPECT_EQ(test, ct_post_send(p, 1, s2, &msg, FI_DELIVERY_COMPLETE),
			0);
	ret = ct_next_event(p->side[1].eq, ev, CT_TIMEOUT_MS);
	release_sock(h->raw->sk);
	KUNIT_EXPECT_EQ(test, ret, 0);
	KUNIT_EXPECT_EQ(test, ev->event, FI_SHUTDOWN);
	KUNIT_EXPECT_GE(test, jiffies_to_msecs(jiffies - begin), 900);
	KUNIT_EXPECT_LE(test, jiffies_to_msecs(jiffies - begin), TEST_LIMIT(4000));
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, s2->wc.err, ETIMEDOUT);
	KUNIT_EXPECT_NE(test, h->recv->wc.err, 0);
	ct_expect_no_event(test, p->side[1].eq);
	hostile_close(h);
}

/* It answers at last; and it acknowledges late. Both are its right. */
static void hostile_slow(struct kunit *test)
{
	const struct ct_opts opts = { .mode = CT_READ, .silence_ms = TEST_LIMIT(2000) };
	struct hostile *h = hostile_live(test, &opts);
	struct ct_pair *p = h->bad;
	struct ct_op *s = ct_op(p);
	struct kvec iov = { .iov_base = h->buf, .iov_len = 100 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };

	lock_sock(h->raw->sk);
	KUNIT_EXPECT_EQ(test, ct_post_send(p, 1, s, &msg, FI_DELIVERY_COMPLETE),
			0);
	ct_wait(p, false, 600);
	release_sock(h->raw->sk);
	/* alive, and past the time-out without the ack */
	ct_wait(p, false, opts.silence_ms + 1000);
	ct_expect_no_event(test, p->side[1].eq);
	KUNIT_EXPECT_FALSE(test, ct_is_done(s));
	KUNIT_EXPECT_EQ(test, raw_recv(h->raw, h->buf, 116), 116);
	raw_frame(h->buf, 0, 0, 2, 0, 16, 16);
	KUNIT_EXPECT_EQ(test, raw_send(h->raw, h->buf, 16), 16);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, s));
	KUNIT_EXPECT_EQ(test, s->wc.err, 0);
	raw_release(h);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	hostile_close(h);
}

static struct kunit_case hostile_cases[] = {
	KUNIT_CASE_PARAM(hostile_frame, bad_frame_gen_params),
	KUNIT_CASE_PARAM(hostile_access, bad_rma_gen_params),
	KUNIT_CASE_PARAM(hostile_granted, good_rma_gen_params),
	KUNIT_CASE_PARAM(hostile_response, bad_response_gen_params),
	KUNIT_CASE_PARAM(hostile_not_really, good_frame_gen_params),
	KUNIT_CASE_PARAM(hostile_cut, cut_gen_params),
	KUNIT_CASE_PARAM(hostile_request, bad_cm_gen_params),
	KUNIT_CASE(hostile_request_in_pieces),
	KUNIT_CASE(hostile_flood),
	KUNIT_CASE(hostile_backlog),
	KUNIT_CASE_SLOW(hostile_crowd),
	KUNIT_CASE(hostile_run),
	KUNIT_CASE_PARAM(hostile_answer, bad_answer_gen_params),
	KUNIT_CASE(hostile_silent),
	KUNIT_CASE(hostile_slow),
	{}
};

static struct kunit_suite hostile_suite = {
	.name = "sock_hostile",
	.suite_init = lo_suite_init,
	.test_cases = hostile_cases,
};

kunit_test_suite(hostile_suite);

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A peer of an established connection that violates the protocol or falls silent (hostile.c) */
#include <linux/net.h>
#include <linux/unaligned.h>

#include <linux/kofi/provider.h>
#include <net/sock.h>

#include "../events.h"
#include "hostile.h"
#include "raw.h"

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
	KUNIT_EXPECT_EQ(test, hostile_stat(test, &p->side[1].ep->fid, "violations"),
			1);
	events_expect(test, ev, id, KOFI_EVENT_VIOLATION, EPROTO);
	KUNIT_EXPECT_NOT_NULL(test, ev->tb[KOFI_A_EVENT_REASON]);
	KUNIT_EXPECT_NOT_NULL(test, ev->tb[KOFI_A_EVENT_PEER_ADDR]);
	events_expect(test, ev, id, KOFI_EVENT_LOST, EPROTO);
	hostile_expect_closed(test, h->raw);
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
	KUNIT_EXPECT_EQ(test, hostile_stat(test, &p->side[1].ep->fid, "violations"),
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
	KUNIT_EXPECT_EQ(test, hostile_stat(test, &p->side[1].ep->fid, "violations"),
			0);
	rma_close(test, r);
	hostile_release(h);
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
	KUNIT_EXPECT_EQ(test, hostile_stat(test, &p->side[1].ep->fid, "violations"),
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
	KUNIT_EXPECT_EQ(test, hostile_stat(test, &p->side[1].ep->fid, "violations"),
			0);
	hostile_release(h);
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
	hostile_release(h);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, h->recv));
	KUNIT_EXPECT_NE(test, h->recv->wc.err, 0);
	ct_expect_no_event(test, p->side[1].eq);
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
	hostile_release(h);
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

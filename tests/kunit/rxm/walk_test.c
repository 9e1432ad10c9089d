// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Each field of the packets of kofi_rxm at the values where something changes, to an
 * endpoint, over a connection of its own, from a plain endpoint of kofi_sock.
 *
 * A packet that none may send ends the connection and is counted, and no receive has got
 * anything. One that is right is received, with its words, and behind it another
 * request is answered. One that announces memory that is not there ends the connection
 * by the error of the read, and is no violation. rxw_judge() says which it is,
 * from the description of the wire; rxm_wire_walk has all values of all bytes, but
 * without an endpoint. Afterwards others exchange messages.
 */
#include <linux/cpumask.h>
#include <linux/slab.h>
#include <linux/unaligned.h>

#include "../sock/walk.h"
#include "raw.h"

#define RXW_LEN		100	/* bytes of payload */
#define RXW_ROOM	256	/* bytes of a receive */
#define RXW_MEM		4096	/* bytes of memory that is announced */
#define RXW_MARK	77	/* number of the request behind the packet */
#define RXW_RECVS	4

static const struct rxw_kind {
	const char	*name;
	u8		type;
	u8		op;
	u32		flags;
	u64		size;
	u16		payload;
} rxw_kinds[] = {
	{ "message", 0, 0, 0, RXW_LEN, RXW_LEN },
	{ "tagged message with a value", 0, 1, 0x20000, RXW_LEN, RXW_LEN },
	{ "first segment", 1, 1, 0, 300, RXW_LEN },
	{ "rendezvous", 2, 0, 0x20000, 1000, 104 },
	{ "atomic request", 4, 6, 0, 104, 104 },
	{ "done", 3, 0, 0, 0, 0 },
	{ "atomic answer", 5, 6, 0, 8, 8 },
	{ "credits", 6, 0, 0, 0, 0 },
	{ "memory to write to", 7, 0, 0, 0, 104 },
	{ "written", 8, 0, 0, 0, 0 },
};

KUNIT_ARRAY_PARAM_DESC(rxw_kind, rxw_kinds, name);

static const struct rxw_field {
	const char	*name;
	u8		at;
	u8		width;
	u64		limit;
} rxw_fields[] = {
	{ "ctrl_version", 0, 1 }, { "type", 1, 1, 8 }, { "seg_size", 2, 2 },
	{ "seg_no", 4, 4 }, { "conn_id", 8, 4 }, { "process", 12, 4 },
	{ "msg_id", 16, 8 }, { "ctrl_data", 24, 8 }, { "op_version", 32, 1 },
	{ "rx_index", 33, 1 }, { "op", 34, 1, 8 }, { "op_data", 35, 1 },
	{ "flags", 36, 4, 0x20000 }, { "size", 40, 8, 16384 }, { "data", 48, 8 },
	{ "tag", 56, 8 }, { "datatype", 56, 1, 9 }, { "atomic_op", 57, 1, 18 },
	{ "ioc_count", 58, 1, 4 },
	/* of rendezvous and atomic requests */
	{ "addr", 64, 8, RXW_MEM - RXW_ROOM }, { "len", 72, 8, RXW_MEM }, { "key", 80, 8 },
	{ "iov_count", 160, 1, 4 },
};

struct rxw {
	struct kunit		*test;
	const struct rxw_kind	*kind;
	struct rxt_end		*b;
	struct rxt_raw		*r;
	struct fid_mr		*mr;
	u8			*mem;
	u8			*in[2];			/* untagged, tagged */
	u8			*answer[RXW_RECVS];
	u32			process;
	u64			violations;
	unsigned int		tried[3];
};

enum rxw_verdict { RXW_BAD, RXW_RIGHT, RXW_GONE };

static u64 rxw_get(const u8 *p, unsigned int width)
{
	return width == 1 ? *p : width == 2 ? get_unaligned((u16 *)p) :
	       width == 4 ? get_unaligned((u32 *)p) : get_unaligned((u64 *)p);
}

static void rxw_put(u64 value, u8 *p, unsigned int width)
{
	if (width == 1)
		*p = value;
	else if (width == 2)
		put_unaligned(value, (u16 *)p);
	else if (width == 4)
		put_unaligned(value, (u32 *)p);
	else
		put_unaligned(value, (u64 *)p);
}

static size_t rxw_format(const struct rxw *w, u8 *p)
{
	const struct rxw_kind *k = w->kind;

	memset(p, 0, 64 + 104);
	p[0] = 4;
	p[1] = k->type;
	p[32] = 2;
	p[34] = k->op;
	rxw_put(w->r->rsp.id, p + 8, 4);
	rxw_put(k->flags, p + 36, 4);
	rxw_put(k->size, p + 40, 8);
	rxw_put(0x1234, p + 48, 8);
	rxw_put(k->type == 4 ? 0x010207 : 5, p + 56, 8);
	if (k->type == 1) {
		rxw_put(RXW_LEN, p + 2, 2);
		p[24] = 1;
	}
	if (k->type == 2 || k->type == 7) {
		rxw_put(kofi_mr_base(w->mr), p + 64, 8);
		rxw_put(1000, p + 72, 8);
		rxw_put(fi_mr_key(w->mr), p + 80, 8);
		p[160] = 1;
	} else {
		memset(p + 64, 0xbd, k->payload);
	}
	return 64 + k->payload;
}

/* A rendezvous: what it announces, and whether that is there */
static enum rxw_verdict rxw_judge_rndv(const struct rxw *w, const u8 *p, u64 size)
{
	u64 sum = 0, addr = rxw_get(p + 64, 8), base = kofi_mr_base(w->mr), read;
	int i;

	if (!p[160] || p[160] > 4)
		return RXW_BAD;
	for (i = 0; i < p[160]; i++) {
		u64 len = rxw_get(p + 72 + 24 * i, 8);

		if (sum + len < sum)
			return RXW_BAD;
		sum += len;
	}
	if (sum < size)
		return RXW_BAD;
	/* what is read is in the first of them */
	read = min_t(u64, size, RXW_ROOM);
	if (read && (rxw_get(p + 80, 8) != fi_mr_key(w->mr) || addr < base ||
		     addr - base > RXW_MEM || read > RXW_MEM - (addr - base)))
		return RXW_GONE;
	return RXW_RIGHT;
}

static enum rxw_verdict rxw_judge(const struct rxw *w, const u8 *p, size_t payload)
{
	const u64 size = rxw_get(p + 40, 8), place = p[24] & 3;
	const u32 flags = rxw_get(p + 36, 4);
	const bool usual = p[32] == 2 && !p[33];
	const bool message = usual && p[34] <= 1 && !(flags & ~0x20000);

	if (p[0] != 4 || rxw_get(p + 8, 4) != (u32)w->r->rsp.id)
		return RXW_BAD;
	switch (p[1]) {
	case 0:
		return message && size == payload ? RXW_RIGHT : RXW_BAD;
	case 1:
		return message && payload && rxw_get(p + 2, 2) == payload &&
		       payload <= size && place == 1 && !rxw_get(p + 4, 4) ?
		       RXW_RIGHT : RXW_BAD;
	case 2:
		return message && payload >= 104 ? rxw_judge_rndv(w, p, size) : RXW_BAD;
	case 4:
		return usual && p[34] >= 6 && p[34] <= 8 && !flags && size == payload &&
		       payload >= 96 && p[58] && p[58] <= 4 ? RXW_RIGHT : RXW_BAD;
	default:
		/* nothing of the kind was asked for */
		return RXW_BAD;
	}
}

/* The receive of a kind has ended as the packet says. */
static void rxw_ended(struct rxw *w, const u8 *p, enum rxw_verdict verdict,
		      const struct fi_cq_err_entry *e, int err, const char *what)
{
	const bool tagged = e->op_context == w->in[1];
	const bool mine = verdict != RXW_BAD && p[1] <= 2 && (p[34] == 1) == tagged;
	const u64 size = rxw_get(p + 40, 8);
	struct kunit *test = w->test;

	if (!mine) {
		KUNIT_EXPECT_EQ_MSG(test, err, ECANCELED, "%s, %d", what, tagged);
		return;
	}
	if (verdict == RXW_GONE || (p[1] == 1 && size > RXW_LEN)) {
		KUNIT_EXPECT_NE_MSG(test, err, 0, "%s", what);
		KUNIT_EXPECT_NE_MSG(test, err, ECANCELED, "%s", what);
		return;
	}
	KUNIT_EXPECT_EQ_MSG(test, err, size > RXW_ROOM ? FI_ETRUNC : 0, "%s", what);
	KUNIT_EXPECT_EQ_MSG(test, e->len, min_t(u64, size, RXW_ROOM), "%s", what);
	KUNIT_EXPECT_EQ_MSG(test, e->tag, tagged ? rxw_get(p + 56, 8) : 0, "%s", what);
	KUNIT_EXPECT_EQ_MSG(test, e->data, rxw_get(p + 36, 4) & 0x20000 ?
			    rxw_get(p + 48, 8) : 0, "%s", what);
	KUNIT_EXPECT_PTR_EQ_MSG(test, memchr_inv(e->op_context, p[1] == 2 ? 0x5e : 0xbd,
						 e->len), NULL, "%s", what);
}

/* What the endpoint answers, until it has done so to the request behind the packet */
static int rxw_answers(struct rxw *w)
{
	struct fi_cq_err_entry e;
	const u8 *p;
	int err;

	for (;;) {
		err = rxt_comp(w->r->cq, &e, NULL);
		if (err)
			return err;
		p = e.op_context;
		if (p && p[1] == RXM_ATOMIC_RSP && rxw_get(p + 16, 8) == RXW_MARK)
			return 0;
	}
}

static void rxw_one(struct rxw *w, const struct rxw_field *f, u64 value, const char *what)
{
	struct rxt *t = w->test->priv;
	struct kunit *test = w->test;
	struct rxt_raw *r = w->r;
	u8 *p = t->out + SZ_1M, *mark = p + SZ_4K;
	enum rxw_verdict verdict;
	struct fi_cq_err_entry e;
	struct rxm_cm_req req;
	size_t len;
	int i, err;

	rxt_raw_ep(test, r, r->info);
	KUNIT_ASSERT_EQ(test, fi_recv(w->b->ep, w->in[0], RXW_ROOM, NULL, FI_ADDR_UNSPEC,
				      w->in[0]), 0);
	KUNIT_ASSERT_EQ(test, fi_trecv(w->b->ep, w->in[1], RXW_ROOM, NULL, FI_ADDR_UNSPEC, 0,
				       ~0ULL, w->in[1]), 0);
	rxt_raw_req(&req, 4000);
	w->process++;
	req.id = (u64)w->process << 32 | 7;
	KUNIT_ASSERT_EQ(test, rxt_raw_connect(test, r, w->b, &req, sizeof(req)), 0);
	for (i = 0; i < RXW_RECVS; i++)
		KUNIT_ASSERT_EQ(test, fi_recv(r->ep, w->answer[i], RXM_PACKET, NULL, 0,
					      w->answer[i]), 0);

	len = rxw_format(w, p);
	rxw_put(value, p + f->at, f->width);
	verdict = rxw_judge(w, p, len - 64);
	w->tried[verdict]++;
	memset(mark, 0, 64 + 1024);
	rxm_hdr_format((struct rxm_hdr *)mark, RXM_ATOMIC, (u32)r->rsp.id, RXW_MARK);
	mark[34] = RXM_OP_ATOMIC;
	mark[58] = 1;
	rxw_put(1024, mark + 40, 8);
	KUNIT_ASSERT_EQ(test, fi_send(r->ep, p, len, NULL, 0, NULL), 0);
	if (verdict == RXW_RIGHT) {
		KUNIT_ASSERT_EQ(test, fi_send(r->ep, mark, 64 + 1024, NULL, 0, NULL), 0);
		KUNIT_EXPECT_EQ_MSG(test, rxw_answers(w), 0, "%s", what);
	} else {
		KUNIT_EXPECT_EQ_MSG(test, rxt_raw_event(r, FI_SHUTDOWN), 0, "%s", what);
	}
	w->violations += verdict == RXW_BAD;
	KUNIT_EXPECT_EQ_MSG(test, rxt_stat(w->b->ep, "violations"), w->violations, "%s", what);
	w->violations = rxt_stat(w->b->ep, "violations");
	rxt_raw_close_ep(test, r);
	while ((i = fi_cq_readerr(r->cq, &e, 0)) == 1 ||
	       fi_cq_read(r->cq, &(struct fi_cq_tagged_entry) {}, 1) != -EAGAIN)
		;
	for (i = 0; i < 2; i++)
		fi_cancel(&w->b->ep->fid, w->in[i]);
	for (i = 0; i < 2; i++) {
		err = rxt_comp(w->b->rx, &e, NULL);
		rxw_ended(w, p, verdict, &e, err, what);
	}
}

static bool rxw_matters(const struct rxw_kind *kind, const struct rxw_field *f)
{
	const bool answer = kind->type == 3 || kind->type > 4;

	/* what is behind the header is payload with all others */
	if (f->at >= 64)
		return kind->type == 2 || kind->type == 4 || kind->type == 7;
	/* of an answer that was not asked for what says to which request it is */
	return !answer || f->at == 1 || f->at == 16 || f->at == 24 || f->at == 40;
}

static void rxw_packets(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxw *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	u64 value[WALK_VALUES];
	u8 packet[64 + 104];
	unsigned int i, k, n;
	char what[48];
	size_t len;

	if (num_online_cpus() > 1)
		kunit_skip(test, "hundreds of connections, for which one CPU will do");
	KUNIT_ASSERT_NOT_NULL(test, w);
	*w = (struct rxw){
		.test = test, .kind = test->param_value, .b = &t->end[1],
		.r = rxt_raw_alloc(test), .mem = t->in + SZ_1M,
		.in = { t->in, t->in + SZ_4K },
	};
	for (i = 0; i < RXW_RECVS; i++)
		w->answer[i] = t->in + SZ_2M + i * SZ_32K;
	rxt_raw_open(test, w->r);
	rxt_raw_close_ep(test, w->r);
	memset(w->mem, 0x5e, RXW_MEM);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(w->r->domain, w->mem, RXW_MEM, FI_REMOTE_READ, 0, 0,
					0, &w->mr, NULL), 0);
	for (i = 0; i < ARRAY_SIZE(rxw_fields); i++) {
		const struct rxw_field *f = &rxw_fields[i];

		len = rxw_format(w, packet);
		if (f->at + f->width > len || !rxw_matters(w->kind, f))
			continue;
		n = walk_values(f->width, rxw_get(packet + f->at, f->width), f->limit, value);
		for (k = 0; k < n; k++) {
			snprintf(what, sizeof(what), "%s: %#llx", f->name, value[k]);
			rxw_one(w, f, value[k], what);
		}
	}
	KUNIT_EXPECT_EQ(test, fi_close(&w->mr->fid), 0);
	KUNIT_EXPECT_GT(test, w->tried[RXW_BAD], 0);
	kunit_info(test, "%u that none may send, %u right, %u whose memory is not there",
		   w->tried[RXW_BAD], w->tried[RXW_RIGHT], w->tried[RXW_GONE]);
	rxt_raw_close(test, w->r);
	rxt_exchange(test, 100, false, false);
	rxt_exchange(test, RXM_SAR + 1, true, false);
}

static struct kunit_case rxw_cases[] = {
	KUNIT_CASE_PARAM_ATTR(rxw_packets, rxw_kind_gen_params,
			      { .speed = KUNIT_SPEED_SLOW }),
	{}
};

static struct kunit_suite rxw_suite = {
	.name = "rxm_walk",
	.suite_init = lo_suite_init,
	.init = rxt_init,
	.exit = rxt_exit,
	.test_cases = rxw_cases,
};

kunit_test_suite(rxw_suite);

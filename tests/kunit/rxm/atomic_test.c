// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Atomic operations of kofi_rxm: between endpoints, each against a plain model;
 * requests as userspace has sent them; and peers that ask and answer wrong.
 */
#include <linux/slab.h>

#include "../../../providers/rxm/proto.h"
#include "../lib/atomic_model.h"
#include "raw.h"
#include "wire.h"

#define AT_COUNT	5	/* elements of one operation */
#define AT_LEN		4096	/* bytes of a region */
#define AT_FILL		0x5a
#define AT_BOTH		(FI_REMOTE_READ | FI_REMOTE_WRITE)
#define AT_ASKED	8	/* requests that may wait for their answers */
#define AT_ANSWER	(sizeof(struct rxm_hdr) + sizeof(struct rxm_atomic_rsp))

struct at_region {
	u8		*mem;
	struct fid_mr	*mr;
};

static void at_region_close(void *arg)
{
	struct at_region *r = arg;

	if (r->mr)
		fi_close(&r->mr->fid);
	r->mr = NULL;
	kfree(r->mem);
}

static struct at_region *at_region(struct kunit *test, u64 access)
{
	struct at_region *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	struct rxt *t = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->mem = kmalloc(AT_LEN, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, r->mem);
	memset(r->mem, AT_FILL, AT_LEN);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(t->domain, r->mem, AT_LEN, access, 0, 0,
					0, &r->mr, NULL), 0);
	return r;
}

/* ------------------------------------------------------------------ values */

/* One operation of the first endpoint on memory of the second, in pieces */
static void at_one(struct kunit *test, struct rnd_state *rnd,
		   struct at_region *r, const struct kofi_atomic *a)
{
	struct rxt *t = test->priv;
	struct rxt_end *e = &t->end[0];
	size_t size = kofi_datatype_size(a->datatype), i;
	u8 *in = t->out, *cmp = in + 256, *old = t->in, *model = in + 512;
	u8 *before = in + 768;
	const struct fi_ioc ops[] = { { in, 2 }, { in + 2 * size, 3 } };
	const struct fi_ioc cmps[] = { { cmp, 4 }, { cmp + 4 * size, 1 } };
	struct fi_ioc olds[] = { { old, 1 }, { old + size, 4 } };
	const struct fi_rma_ioc rma[] = {
		{ kofi_mr_base(r->mr) + 8, 3, fi_mr_key(r->mr) },
		{ kofi_mr_base(r->mr) + 512, 2, fi_mr_key(r->mr) },
	};
	const struct fi_msg_atomic msg = {
		.msg_iov = ops, .iov_count = a->op == FI_ATOMIC_READ ? 0 : 2,
		.addr = e->peer[1], .rma_iov = rma, .rma_iov_count = 2,
		.datatype = a->datatype, .op = a->op, .context = t->in,
	};
	struct fi_cq_err_entry entry;
	int err;

	memset(r->mem, AT_FILL, AT_LEN);
	memset(old, AT_FILL, 256);
	am_values(rnd, in, size, AT_COUNT);
	am_values(rnd, cmp, size, AT_COUNT);
	am_values(rnd, before, size, AT_COUNT);
	memcpy(r->mem + 8, before, 3 * size);
	memcpy(r->mem + 512, before + 3 * size, 2 * size);
	memcpy(model, before, AT_COUNT * size);
	for (i = 0; i < AT_COUNT * size; i += size)
		am_do[a->datatype](a->op, model + i, in + i, cmp + i);
	err = a->call == FI_COMPARE_ATOMIC ?
	      fi_compare_atomicmsg(e->ep, &msg, cmps, NULL, 2, olds, NULL, 2,
				   FI_COMPLETION) :
	      a->call ?
	      fi_fetch_atomicmsg(e->ep, &msg, olds, NULL, 2, FI_COMPLETION) :
	      fi_atomicmsg(e->ep, &msg, FI_COMPLETION);
	KUNIT_ASSERT_EQ(test, err, 0);
	KUNIT_ASSERT_EQ(test, rxt_comp(e->tx, &entry, NULL), 0);
	KUNIT_EXPECT_PTR_EQ(test, entry.op_context, (void *)t->in);
	KUNIT_EXPECT_EQ(test, entry.flags,
			FI_ATOMIC | (a->call ? FI_READ : FI_WRITE));
	KUNIT_EXPECT_MEMEQ(test, r->mem + 8, model, 3 * size);
	KUNIT_EXPECT_MEMEQ(test, r->mem + 512, model + 3 * size, 2 * size);
	KUNIT_EXPECT_EQ(test, r->mem[7], AT_FILL);
	KUNIT_EXPECT_EQ(test, r->mem[8 + 3 * size], AT_FILL);
	KUNIT_EXPECT_EQ(test, r->mem[511], AT_FILL);
	KUNIT_EXPECT_EQ(test, r->mem[512 + 2 * size], AT_FILL);
	if (a->call)
		KUNIT_EXPECT_MEMEQ(test, old, before, AT_COUNT * size);
	KUNIT_EXPECT_EQ(test, old[a->call ? AT_COUNT * size : 0], AT_FILL);
}

static void rxt_at_model(struct kunit *test)
{
	struct at_region *r = at_region(test, AT_BOTH);
	struct rxt *t = test->priv;
	struct fi_atomic_attr attr;
	struct kofi_atomic a = {};
	struct rnd_state rnd;
	int i, done = 0;

	prandom_seed_state(&rnd, 4711);
	for (i = 0; i < AM_CALLS; i++) {
		a.call = am_calls[i];
		for (a.datatype = FI_INT8; a.datatype <= FI_UINT128; a.datatype++) {
			for (a.op = FI_MIN; a.op <= FI_DIFF; a.op++) {
				if (fi_query_atomic(t->domain, a.datatype, a.op,
						    &attr, a.call))
					continue;
				at_one(test, &rnd, r, &a);
				done++;
			}
		}
	}
	KUNIT_EXPECT_EQ(test, done, 8 * (12 + 13 + 7));
	KUNIT_EXPECT_EQ(test, rxt_stat(t->end[1].ep, "violations"), 0);
	at_region_close(r);
}

/* As many elements as there may be, and one more */
static void rxt_at_most(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *e = &t->end[0];
	struct fi_atomic_attr fetch = {}, compare = {};
	struct fid_mr *mr;
	u8 *mem = t->in + SZ_64K;
	size_t n, i;

	KUNIT_ASSERT_EQ(test, fi_query_atomic(t->domain, FI_UINT64, FI_SUM,
					      &fetch, FI_FETCH_ATOMIC), 0);
	KUNIT_ASSERT_EQ(test, fi_query_atomic(t->domain, FI_UINT64, FI_CSWAP,
					      &compare, FI_COMPARE_ATOMIC), 0);
	KUNIT_EXPECT_EQ(test, fetch.count, (RXM_EAGER - 96) / 8);
	KUNIT_EXPECT_EQ(test, compare.count, (RXM_EAGER - 96) / 16);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(t->domain, mem, SZ_64K, AT_BOTH, 0, 0,
					0, &mr, NULL), 0);
	n = fetch.count * 8;
	memset(mem, 1, SZ_64K);
	memset(t->out, 1, SZ_64K);
	KUNIT_ASSERT_EQ(test, fi_fetch_atomic(e->ep, t->out, fetch.count, NULL,
					      t->in, NULL, e->peer[1], 0,
					      fi_mr_key(mr), FI_UINT64, FI_SUM,
					      t->out), 0);
	rxt_expect(test, e->tx, t->out, 0);
	for (i = 0; i < SZ_64K && mem[i] == (i < n ? 2 : 1); i++)
		;
	KUNIT_EXPECT_EQ(test, i, SZ_64K);
	KUNIT_EXPECT_EQ(test, memcmp(t->in, t->out, n), 0);
	KUNIT_EXPECT_EQ(test, fi_fetch_atomic(e->ep, t->out, fetch.count + 1,
					      NULL, t->in, NULL, e->peer[1], 0,
					      fi_mr_key(mr), FI_UINT64, FI_SUM,
					      t->out), -EMSGSIZE);
	memset(t->out, 2, SZ_64K);
	KUNIT_ASSERT_EQ(test, fi_compare_atomic(e->ep, t->out + SZ_32K,
						compare.count, NULL, t->out,
						NULL, t->in, NULL, e->peer[1],
						0, fi_mr_key(mr), FI_UINT64,
						FI_CSWAP_NE, t->out), 0);
	rxt_expect(test, e->tx, t->out, 0);
	KUNIT_EXPECT_EQ(test, fi_compare_atomic(e->ep, t->out + SZ_32K,
						compare.count + 1, NULL, t->out,
						NULL, t->in, NULL, e->peer[1],
						0, fi_mr_key(mr), FI_UINT64,
						FI_CSWAP, t->out), -EMSGSIZE);
	/* the operands of a read are of no interest */
	KUNIT_ASSERT_EQ(test, fi_fetch_atomic(e->ep, NULL, fetch.count, NULL,
					      t->in, NULL, e->peer[1], 0,
					      fi_mr_key(mr), FI_UINT64,
					      FI_ATOMIC_READ, t->out), 0);
	rxt_expect(test, e->tx, t->out, 0);
	KUNIT_EXPECT_EQ(test, memcmp(t->in, mem, n), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* Reads and writes do not overtake atomic operations posted before them. */
static void rxt_at_order(struct kunit *test)
{
	struct at_region *r = at_region(test, AT_BOTH);
	struct rxt *t = test->priv;
	struct rxt_end *e = &t->end[0];
	u64 base = kofi_mr_base(r->mr), key = fi_mr_key(r->mr);
	u64 *one = (u64 *)t->out, *zero = one + 1, *got = (u64 *)t->in;
	int i, n;

	*one = 1;
	*zero = 0;
	for (i = 0; i < 200; i++) {
		got[0] = AT_FILL;
		got[1] = AT_FILL;
		*(u64 *)r->mem = i;
		KUNIT_ASSERT_EQ(test, fi_atomic(e->ep, one, 1, NULL, e->peer[1],
						base, key, FI_UINT64, FI_SUM,
						NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_read(e->ep, got, 8, NULL, e->peer[1],
					      base, key, NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_atomic(e->ep, one, 1, NULL, e->peer[1],
						base, key, FI_UINT64, FI_SUM,
						NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_write(e->ep, zero, 8, NULL, e->peer[1],
					       base, key, NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_read(e->ep, got + 1, 8, NULL,
					      e->peer[1], base, key, NULL), 0);
		for (n = 0; n < 5; n++)
			rxt_expect(test, e->tx, NULL, 0);
		KUNIT_ASSERT_EQ(test, got[0], i + 1ULL);
		KUNIT_ASSERT_EQ(test, got[1], 0ULL);
	}
	at_region_close(r);
}

/* --------------------------------------------------------- what is refused */

static const struct at_refusal {
	const char	*name;
	u64		access;
	enum fi_op	op;
	u64		call;
	u64		addr;
	u64		key;	/* to be added */
	size_t		skip;	/* bytes of memory before the region */
	int		err;
	bool		closed;
} at_refusals[] = {
	{ "another key", AT_BOTH, FI_SUM, 0, .key = 1, .err = EKEYREJECTED },
	{ "closed region", AT_BOTH, FI_SUM, 0, .closed = true,
	  .err = EKEYREJECTED },
	{ "behind the end", AT_BOTH, FI_SUM, 0, 2048, .err = EACCES },
	{ "across the end", AT_BOTH, FI_SUM, 0, 2048 - 8, .err = EACCES },
	{ "address that wraps", AT_BOTH, FI_SUM, 0, -8ULL, .err = EACCES },
	{ "write without the right", FI_REMOTE_READ, FI_SUM, 0, .err = EACCES },
	{ "fetch without the right to read", FI_REMOTE_WRITE, FI_SUM,
	  FI_FETCH_ATOMIC, .err = EACCES },
	{ "fetch without the right to write", FI_REMOTE_READ, FI_SUM,
	  FI_FETCH_ATOMIC, .err = EACCES },
	{ "read without the right", FI_REMOTE_WRITE, FI_ATOMIC_READ,
	  FI_FETCH_ATOMIC, .err = EACCES },
	{ "read with the right", FI_REMOTE_READ, FI_ATOMIC_READ,
	  FI_FETCH_ATOMIC, },
	{ "memory that is not aligned", AT_BOTH, FI_SUM, 0, .skip = 4,
	  .err = EINVAL },
};

static void at_refusal_desc(const struct at_refusal *f, char *desc)
{
	strscpy(desc, f->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(at_refusal, at_refusals, at_refusal_desc);

/* An error of the operation, nothing changed, and the connection stays. */
static void rxt_at_refused(struct kunit *test)
{
	const struct at_refusal *f = test->param_value;
	struct at_region *r = at_region(test, AT_BOTH);
	struct rxt *t = test->priv;
	struct rxt_end *e = &t->end[0];
	struct fid_mr *mr;
	u64 *two = (u64 *)t->out, *old = (u64 *)t->in;
	u8 *copy = t->out + 64;
	u64 addr, key;
	int err;

	KUNIT_ASSERT_EQ(test, fi_mr_reg(t->domain, r->mem + f->skip, 2048,
					f->access, 0, 0, 0, &mr, NULL), 0);
	addr = kofi_mr_base(mr) + f->addr;
	key = fi_mr_key(mr) + f->key;
	if (f->closed)
		KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	memcpy(copy, r->mem, AT_LEN);
	two[0] = 1;
	two[1] = 2;
	err = f->call ? fi_fetch_atomic(e->ep, two, 2, NULL, old, NULL,
					e->peer[1], addr, key, FI_UINT64, f->op,
					t->out) :
			fi_atomic(e->ep, two, 2, NULL, e->peer[1], addr, key,
				  FI_UINT64, f->op, t->out);
	KUNIT_ASSERT_EQ(test, err, 0);
	rxt_expect(test, e->tx, t->out, f->err);
	KUNIT_EXPECT_EQ(test, memcmp(copy, r->mem, AT_LEN), 0);
	KUNIT_EXPECT_EQ(test, rxt_stat(t->end[1].ep, "violations"), 0);
	KUNIT_EXPECT_EQ(test, rxt_stat(e->ep, "connects"), 1);
	if (!f->closed)
		KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	at_region_close(r);
}

/* What an endpoint does for peers is what it was opened for. */
static void rxt_at_rights(struct kunit *test)
{
	struct at_region *r = at_region(test, AT_BOTH);
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0], *c = &t->end[2];
	u64 base = kofi_mr_base(r->mr), key = fi_mr_key(r->mr);
	u64 *word = (u64 *)r->mem, *old = (u64 *)t->in, one = 1;
	fi_addr_t peer;

	rxt_close_end(test, c);
	t->info->caps &= ~FI_REMOTE_WRITE;
	rxt_open_end(test, t, c);
	t->info->caps |= FI_REMOTE_WRITE;
	KUNIT_ASSERT_EQ(test, fi_av_insert(a->av, &c->name, 1, &peer, 0, NULL),
			1);
	*word = 5;
	KUNIT_ASSERT_EQ(test, fi_fetch_atomic(a->ep, &one, 1, NULL, old, NULL,
					      peer, base, key, FI_UINT64,
					      FI_SUM, old), 0);
	rxt_expect(test, a->tx, old, EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, *word, 5ULL);
	KUNIT_ASSERT_EQ(test, fi_fetch_atomic(a->ep, NULL, 1, NULL, old, NULL,
					      peer, base, key, FI_UINT64,
					      FI_ATOMIC_READ, old), 0);
	rxt_expect(test, a->tx, old, 0);
	KUNIT_EXPECT_EQ(test, *old, 5ULL);
	at_region_close(r);
}

/* What can be known without the peer */
static void rxt_at_arguments(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct fid_ep *ep = t->end[0].ep;
	const struct fi_ioc one = { t->out, 1 }, odd = { t->out + 4, 1 };
	const struct fi_ioc many[] = { one, one, one, one, one };
	const struct fi_rma_ioc at = { 8, 1, 1 }, off = { 4, 1, 1 };
	const struct fi_rma_ioc huge = { 8, SIZE_MAX, 1 };
	struct fi_msg_atomic msg = {
		.msg_iov = &one, .iov_count = 1, .rma_iov = &at,
		.rma_iov_count = 1, .datatype = FI_UINT64, .op = FI_SUM,
		.addr = t->end[0].peer[1],
	};
	struct fi_msg_atomic m;

#define AT_REFUSED(err, flags, change) do {				\
	m = msg;							\
	change;								\
	KUNIT_EXPECT_EQ(test, fi_atomicmsg(ep, &m, flags), err);	\
} while (0)
	AT_REFUSED(-FI_EBADFLAGS, FI_REMOTE_CQ_DATA, m.data = 1);
	AT_REFUSED(-EINVAL, 0, m.iov_count = 0);
	AT_REFUSED(-EINVAL, 0, m.msg_iov = NULL);
	AT_REFUSED(-EINVAL, 0, m.msg_iov = &odd);
	AT_REFUSED(-EINVAL, 0, m.msg_iov = many; m.iov_count = 5);
	AT_REFUSED(-EINVAL, 0, m.msg_iov = many; m.iov_count = 2);
	AT_REFUSED(-EINVAL, 0, m.rma_iov_count = 0);
	AT_REFUSED(-EINVAL, 0, m.rma_iov_count = 5);
	AT_REFUSED(-EINVAL, 0, m.rma_iov = NULL);
	AT_REFUSED(-EINVAL, 0, m.rma_iov = &off);
	AT_REFUSED(-EINVAL, 0, m.rma_iov = &huge);
	AT_REFUSED(-EINVAL, 0, m.addr = 99);
	AT_REFUSED(-EOPNOTSUPP, 0, m.datatype = FI_FLOAT);
	AT_REFUSED(-EOPNOTSUPP, 0, m.datatype = 99);
	AT_REFUSED(-EOPNOTSUPP, 0, m.op = FI_ATOMIC_READ);
	AT_REFUSED(-EOPNOTSUPP, 0, m.op = FI_CSWAP);
	AT_REFUSED(-EOPNOTSUPP, 0, m.op = 99);
#undef AT_REFUSED
	KUNIT_EXPECT_EQ(test, fi_fetch_atomicmsg(ep, &msg, NULL, NULL, 0, 0),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_compare_atomicmsg(ep, &msg, &one, NULL, 1,
						   NULL, NULL, 0, 0),
			-EOPNOTSUPP);
	msg.op = FI_CSWAP;
	KUNIT_EXPECT_EQ(test, fi_compare_atomicmsg(ep, &msg, NULL, NULL, 0,
						   (struct fi_ioc *)&one, NULL,
						   1, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_compare_atomicmsg(ep, &msg, many, NULL, 2,
						   (struct fi_ioc *)&one, NULL,
						   1, 0), -EINVAL);
}

/* ---------------------------------------------------- requests as captured */

static void at_capture_desc(const struct rxm_wire_exchange *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(at_capture, rxm_wire_atomics, at_capture_desc);

static void at_connect(struct kunit *test, struct rxt_raw *r, struct rxt_end *e)
{
	struct rxm_cm_req req;

	rxt_raw_open(test, r);
	rxt_raw_req(&req, 4000);
	KUNIT_ASSERT_EQ(test, rxt_raw_connect(test, r, e, &req, sizeof(req)),
			0);
}

/* Send a request and get its answer. */
static size_t at_ask(struct kunit *test, struct rxt_raw *r, const void *ask,
		     size_t len, void *answer)
{
	struct fi_cq_err_entry e;
	size_t got = 0;
	int i;

	KUNIT_ASSERT_EQ(test, fi_recv(r->ep, answer, RXM_PACKET, NULL, 0,
				      answer), 0);
	KUNIT_ASSERT_EQ(test, fi_send(r->ep, ask, len, NULL, 0, NULL), 0);
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, rxt_comp(r->cq, &e, NULL), 0);
		if (e.op_context == answer)
			got = e.len;
	}
	return got;
}

/* What userspace has sent is done, and answered as userspace has. */
static void rxt_at_captured(struct kunit *test)
{
	const struct rxm_wire_exchange *c = test->param_value;
	struct at_region *region = at_region(test, AT_BOTH);
	struct rxt *t = test->priv;
	struct rxm_hdr *ask = (void *)t->out, *answer = (void *)t->in;
	struct rxm_mem *mem = (void *)(ask + 1);
	struct rxm_hdr *theirs = (void *)(t->out + SZ_32K);
	struct rxt_raw *r = rxt_raw_alloc(test);

	if (IS_ENABLED(CONFIG_CPU_BIG_ENDIAN))
		kunit_skip(test, "the captures are of little-endian machines");
	at_connect(test, r, &t->end[1]);
	memset(region->mem + 0x100, 0, 16);
	memcpy(ask, c->ask, c->ask_len);
	memcpy(theirs, c->answer, c->answer_len);
	ask->conn_id = (u32)r->rsp.id;
	KUNIT_EXPECT_EQ(test, mem->addr, 0x100);
	mem->key = fi_mr_key(region->mr);
	KUNIT_EXPECT_EQ(test, at_ask(test, r, ask, c->ask_len, answer),
			c->answer_len);
	theirs->conn_id = answer->conn_id;
	KUNIT_EXPECT_MEMEQ(test, (u8 *)answer, (u8 *)theirs, c->answer_len);
	KUNIT_EXPECT_MEMEQ(test, region->mem + 0x100, (const u8 *)c->after, 16);
	rxt_raw_close(test, r);
	at_region_close(region);
}

/* --------------------------------------------------- peers that ask wrongly */

static const struct at_wrong {
	const char	*name;
	u8		op;
	u8		datatype;
	u8		atomic_op;
	u8		count;	/* pieces: 1 if it is 0 */
	size_t		values;	/* bytes */
	u64		elements;
	s64		more;	/* of the size the header has */
	int		err;	/* of the answer; 0: the connection ends */
} at_wrongs[] = {
	{ "datatype", 6, FI_FLOAT, FI_SUM, 1, 8, 1, .err = -EOPNOTSUPP },
	{ "datatype 255", 6, 255, FI_SUM, 1, 8, 1, .err = -EOPNOTSUPP },
	{ "atomic operation 255", 6, FI_UINT64, 255, 1, 8, 1,
	  .err = -EOPNOTSUPP },
	{ "compare that is none", 8, FI_UINT64, FI_SUM, 1, 16, 1,
	  .err = -EOPNOTSUPP },
	{ "fetch that compares", 7, FI_UINT64, FI_CSWAP, 1, 8, 1,
	  .err = -EOPNOTSUPP },
	{ "read that does not fetch", 6, FI_UINT64, FI_ATOMIC_READ, 1, 8, 1,
	  .err = -EOPNOTSUPP },
	{ "too few operands", 6, FI_UINT64, FI_SUM, 1, 8, 2, .err = -EINVAL },
	{ "too many operands", 6, FI_UINT64, FI_SUM, 1, 24, 2,
	  .err = -EINVAL },
	{ "nothing to compare with", 8, FI_UINT64, FI_CSWAP, 1, 8, 1,
	  .err = -EINVAL },
	{ "elements without end", 7, FI_UINT64, FI_ATOMIC_READ, 1, 0,
	  1ULL << 61, .err = -EMSGSIZE },
	{ "more to read than a packet holds", 7, FI_UINT8, FI_ATOMIC_READ, 4, 0,
	  AT_LEN, .err = -EMSGSIZE },
	{ "no pieces", 6, FI_UINT64, FI_SUM, 255, 8, 1 },
	{ "five pieces", 6, FI_UINT64, FI_SUM, 5, 8, 1 },
	{ "operation 5", 5, FI_UINT64, FI_SUM, 1, 8, 1 },
	{ "operation 9", 9, FI_UINT64, FI_SUM, 1, 8, 1 },
	{ "length above the packet's", 6, FI_UINT64, FI_SUM, 1, 8, 1, 1 },
	{ "length below the packet's", 6, FI_UINT64, FI_SUM, 1, 8, 1, -1 },
	{ "no memory", 6, FI_UINT64, FI_SUM, 1, -8, 1 },
};

static void at_wrong_desc(const struct at_wrong *w, char *desc)
{
	strscpy(desc, w->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(at_wrong, at_wrongs, at_wrong_desc);

static void rxt_at_wrong(struct kunit *test)
{
	const struct at_wrong *w = test->param_value;
	struct at_region *region = at_region(test, AT_BOTH);
	struct rxt *t = test->priv;
	struct rxt_end *b = &t->end[1];
	struct {
		struct rxm_hdr	hdr;
		struct rxm_mem	mem[RXM_RNDV_IOV];
	} *ask = (void *)t->out;
	struct {
		struct rxm_hdr		hdr;
		struct rxm_atomic_rsp	rsp;
	} *answer = (void *)t->in;
	u8 *copy = t->out + SZ_32K;
	size_t len = sizeof(*ask) + w->values;
	struct rxt_raw *r = rxt_raw_alloc(test);
	int i;

	memcpy(copy, region->mem, AT_LEN);
	memset(ask, 0, SZ_16K);
	at_connect(test, r, b);
	rxm_hdr_format(&ask->hdr, RXM_ATOMIC, (u32)r->rsp.id, 77);
	ask->hdr.op = w->op;
	ask->hdr.datatype = w->datatype;
	ask->hdr.atomic_op = w->atomic_op;
	ask->hdr.atomic_count = w->count == 255 ? 0 : w->count;
	ask->hdr.size = len - sizeof(ask->hdr) + w->more;
	for (i = 0; i < RXM_RNDV_IOV; i++)
		ask->mem[i] = (struct rxm_mem) {
			.addr = kofi_mr_base(region->mr), .len = w->elements,
			.key = fi_mr_key(region->mr),
		};
	if (w->err) {
		KUNIT_EXPECT_EQ(test, at_ask(test, r, ask, len, answer),
				AT_ANSWER);
		KUNIT_EXPECT_EQ(test, answer->hdr.type, RXM_ATOMIC_RSP);
		KUNIT_EXPECT_EQ(test, answer->hdr.msg_id, 77);
		KUNIT_EXPECT_EQ(test, (int)be32_to_cpu(answer->rsp.status),
				w->err);
		KUNIT_EXPECT_EQ(test, be32_to_cpu(answer->rsp.len), 0);
	} else {
		KUNIT_ASSERT_EQ(test, fi_send(r->ep, ask, len, NULL, 0, NULL),
				0);
		KUNIT_EXPECT_EQ(test, rxt_raw_event(r, FI_SHUTDOWN), 0);
	}
	KUNIT_EXPECT_EQ(test, rxt_stat(b->ep, "violations"), !w->err);
	KUNIT_EXPECT_EQ(test, memcmp(copy, region->mem, AT_LEN), 0);
	rxt_raw_close(test, r);
	at_region_close(region);
}

/* ------------------------------------------------ peers that answer wrongly */

static const struct at_answer {
	const char	*name;
	u8		type;
	u64		id;	/* to be added */
	s32		status;
	u32		len;
	size_t		bytes;	/* behind the header */
	bool		twice;
	int		err;	/* of the operation */
	bool		fatal;
} at_answers[] = {
	{ "a result", RXM_ATOMIC_RSP, .len = 8, .bytes = 16 },
	{ "an error", RXM_ATOMIC_RSP, .status = -EACCES, .bytes = 8,
	  .err = EACCES },
	{ "twice", RXM_ATOMIC_RSP, .len = 8, .bytes = 16, .twice = true,
	  .fatal = true },
	{ "another number", RXM_ATOMIC_RSP, 1, .len = 8, .bytes = 16,
	  .err = EPROTO, .fatal = true },
	{ "another use of the record", RXM_ATOMIC_RSP, 1ULL << 32, .len = 8,
	  .bytes = 16, .err = EPROTO, .fatal = true },
	{ "result too short", RXM_ATOMIC_RSP, .len = 4, .bytes = 12,
	  .err = EPROTO, .fatal = true },
	{ "result too long", RXM_ATOMIC_RSP, .len = 16, .bytes = 24,
	  .err = EPROTO, .fatal = true },
	{ "no result", RXM_ATOMIC_RSP, .bytes = 8, .err = EPROTO,
	  .fatal = true },
	{ "result beyond the packet", RXM_ATOMIC_RSP, .len = 8, .bytes = 8,
	  .err = EPROTO, .fatal = true },
	{ "error that is none", RXM_ATOMIC_RSP, .status = 5, .bytes = 8,
	  .err = EPROTO, .fatal = true },
	{ "error without end", RXM_ATOMIC_RSP, .status = S32_MIN, .bytes = 8,
	  .err = EPROTO, .fatal = true },
	{ "the end of a rendezvous", RXM_READ_DONE, .err = EPROTO,
	  .fatal = true },
};

static void at_answer_desc(const struct at_answer *a, char *desc)
{
	strscpy(desc, a->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(at_answer, at_answers, at_answer_desc);

/* A peer the first endpoint knows, and is connected to */
static fi_addr_t at_known(struct kunit *test, struct rxt_raw *r,
			  struct rxt_end *a, unsigned int recvs)
{
	struct rxt *t = test->priv;
	fi_addr_t peer;
	unsigned int i;

	rxt_raw_listen(test, r);
	KUNIT_ASSERT_EQ(test, fi_av_insert(a->av, &r->name, 1, &peer, 0, NULL),
			1);
	KUNIT_ASSERT_EQ(test, fi_inject(a->ep, "hello", 5, peer), 0);
	KUNIT_ASSERT_EQ(test, rxt_raw_event(r, FI_CONNREQ), 0);
	rxt_raw_accept(test, r, 3);
	for (i = 0; i < recvs + 1; i++)
		KUNIT_ASSERT_EQ(test, fi_recv(r->ep, t->in + i * SZ_32K,
					      RXM_PACKET, NULL, 0,
					      t->in + i * SZ_32K), 0);
	KUNIT_ASSERT_EQ(test, rxt_raw_event(r, FI_CONNECTED), 0);
	rxt_expect(test, r->cq, t->in, 0);
	return peer;
}

static void rxt_at_answered(struct kunit *test)
{
	const struct at_answer *w = test->param_value;
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0];
	const struct rxm_hdr *ask = (void *)(t->in + SZ_32K);
	struct {
		struct rxm_hdr		hdr;
		struct rxm_atomic_rsp	rsp;
		u64			result[2];
	} *answer = (void *)(t->out + SZ_32K);
	u64 *one = (u64 *)t->out, *old = one + 1;
	struct rxt_raw *r = rxt_raw_alloc(test);
	fi_addr_t peer;
	int i;

	peer = at_known(test, r, a, 1);
	*one = 1;
	*old = 0;
	KUNIT_ASSERT_EQ(test, fi_fetch_atomic(a->ep, one, 1, NULL, old, NULL,
					      peer, 0, 0, FI_UINT64, FI_SUM,
					      t->out), 0);
	rxt_expect(test, r->cq, t->in + SZ_32K, 0);
	KUNIT_EXPECT_EQ(test, ask->type, RXM_ATOMIC);
	KUNIT_EXPECT_EQ(test, ask->size, 96 + 8);
	rxm_hdr_format(&answer->hdr, w->type, (u32)r->req.id, ask->msg_id + w->id);
	answer->hdr.op = ask->op;
	answer->hdr.size = w->bytes;
	answer->rsp.status = cpu_to_be32(w->status);
	answer->rsp.len = cpu_to_be32(w->len);
	answer->result[0] = 4711;
	for (i = 0; i <= w->twice; i++)
		KUNIT_ASSERT_EQ(test, fi_send(r->ep, answer, sizeof(answer->hdr) +
					      w->bytes, NULL, 0, NULL), 0);
	rxt_expect(test, a->tx, t->out, w->err);
	KUNIT_EXPECT_EQ(test, *old, w->err ? 0 : 4711);
	if (w->fatal)
		KUNIT_EXPECT_EQ(test, rxt_raw_event(r, FI_SHUTDOWN), 0);
	KUNIT_EXPECT_EQ(test, rxt_stat(a->ep, "violations"), w->fatal);
	rxt_raw_close(test, r);
}

/* What has gone before may still have its record. */
static ssize_t at_post(struct rxt_end *a, fi_addr_t peer, u64 *one)
{
	unsigned long end = jiffies + msecs_to_jiffies(RXT_TIMEOUT);
	ssize_t err;

	do {
		err = fi_atomic(a->ep, one, 1, NULL, peer, 0, 0, FI_UINT64,
				FI_SUM, one);
		cond_resched();
	} while (err == -EAGAIN && time_before(jiffies, end));
	return err;
}

/* So many are asked for at a time; the others follow as answers come. */
static void rxt_at_waits(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0];
	struct fi_cq_err_entry e;
	struct {
		struct rxm_hdr		hdr;
		struct rxm_atomic_rsp	rsp;
	} *answer = (void *)t->out + SZ_32K;
	struct fi_cq_msg_entry more;
	unsigned int asked = 0, answered = 0;
	struct rxt_raw *r = rxt_raw_alloc(test);
	fi_addr_t peer;
	u64 one = 1;
	int i;

	peer = at_known(test, r, a, RXT_TX);
	for (i = 0; i < RXT_TX; i++)
		KUNIT_ASSERT_EQ(test, at_post(a, peer, &one), 0);
	while (answered < RXT_TX) {
		while (asked < min(answered + AT_ASKED, RXT_TX)) {
			KUNIT_ASSERT_EQ(test, rxt_comp(r->cq, &e, NULL), 0);
			/* sends of answers complete here, too */
			if (e.op_context)
				asked++;
		}
		while (fi_cq_read(r->cq, &more, 1) == 1)
			KUNIT_EXPECT_NULL(test, more.op_context);
		rxm_hdr_format(&answer->hdr, RXM_ATOMIC_RSP, (u32)r->req.id,
			       ((struct rxm_hdr *)(t->in + (answered + 1) *
						   SZ_32K))->msg_id);
		answer->hdr.size = sizeof(answer->rsp);
		answer->rsp = (struct rxm_atomic_rsp) {};
		KUNIT_ASSERT_EQ(test, fi_inject(r->ep, answer, sizeof(*answer),
						0), 0);
		answered++;
	}
	for (i = 0; i < RXT_TX; i++)
		rxt_expect(test, a->tx, &one, 0);
	rxt_raw_close(test, r);
}

static struct kunit_case rxt_at_cases[] = {
	KUNIT_CASE(rxt_at_model),
	KUNIT_CASE(rxt_at_most),
	KUNIT_CASE(rxt_at_order),
	KUNIT_CASE_PARAM(rxt_at_refused, at_refusal_gen_params),
	KUNIT_CASE(rxt_at_rights),
	KUNIT_CASE(rxt_at_arguments),
	KUNIT_CASE_PARAM(rxt_at_captured, at_capture_gen_params),
	KUNIT_CASE_PARAM(rxt_at_wrong, at_wrong_gen_params),
	KUNIT_CASE_PARAM(rxt_at_answered, at_answer_gen_params),
	KUNIT_CASE(rxt_at_waits),
	{}
};

static struct kunit_suite rxt_at_suite = {
	.name = "rxm_atomic",
	.suite_init = lo_suite_init,
	.attr.speed = KUNIT_SPEED_SLOW,
	.init = rxt_init,
	.exit = rxt_exit,
	.test_cases = rxt_at_cases,
};

kunit_test_suite(rxt_at_suite);

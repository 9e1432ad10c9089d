// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contract 8 and 13, and fi_atomic.h: what a provider says it can do atomically
 * it does, with the values both ends expect, against all others at the same
 * time; the rest it refuses, and changes nothing.
 */

#include <linux/slab.h>

#include "contract.h"

#define AT_MR_MODE	(FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED)
#define AT_CAPS		(FI_MSG | FI_SEND | FI_RECV | FI_ATOMIC | FI_READ | \
			 FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define AT_BOTH		(FI_REMOTE_READ | FI_REMOTE_WRITE)
#define AT_WORDS	8
#define AT_ROUNDS	200
#define AT_VALUE	0x0123456789abcdefULL

/* Both sides change words of side 1, which has opened them to its peers. */
struct at_test {
	struct ct_pair	*p;
	struct fid_mr	*mr;
	u64		*words;		/* AT_WORDS, behind another one */
	u64		*old;		/* where old values go */
	u64		addr;		/* of the words */
	u64		key;
};

/* One operation, as ct_post_fn() is given it */
struct at_op {
	u64		call;	/* 0, FI_FETCH_ATOMIC or FI_COMPARE_ATOMIC */
	enum fi_op	op;
	u64		operand;
	u64		compare;
	u64		addr;
	u64		key;
	u64		*old;
};

static bool at_offered(struct kunit *test)
{
	struct fi_info *hints = ct_hints(), *info = NULL;
	int err;

	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->caps = AT_CAPS;
	hints->domain_attr->mr_mode = AT_MR_MODE;
	err = ct_getinfo(0, hints, &info);
	fi_freeinfo(hints);
	fi_freeinfo(info);
	return !err;
}

static void at_open_region(struct kunit *test, struct at_test *t, u64 access)
{
	const struct kvec kv = { t->words - 1, (AT_WORDS + 1) * sizeof(u64) };
	const struct fi_msg vec = { .msg_iov = &kv, .iov_count = 1 };
	struct ct_op *rx = ct_op(t->p), *tx = ct_op(t->p);

	if (ct_rdm()) {
		KUNIT_ASSERT_EQ(test, fi_mr_regv(t->p->domain, &kv, 1, access,
						 0, 0, 0, &t->mr, NULL), 0);
	} else {
		t->mr = kofi_mr_get(t->p->side[1].ep);
		KUNIT_ASSERT_NOT_NULL(test, t->mr);
		KUNIT_ASSERT_EQ(test, kofi_mr_map(t->mr, &vec, access, 0), 0);
	}
	t->addr = kofi_mr_base(t->mr) + sizeof(u64);
	t->key = fi_mr_key(t->mr);
	/* with a message from there it is valid */
	KUNIT_EXPECT_EQ(test, ct_recv(t->p, 0, rx, t->old, 8), 0);
	KUNIT_EXPECT_EQ(test, ct_send(t->p, 1, tx, t->old, 8), 0);
	KUNIT_ASSERT_TRUE(test, ct_wait_all(t->p));
}

static struct at_test *at_open_caps(struct kunit *test, u64 caps, u64 access)
{
	const struct ct_opts opts = {
		.mode = ct_mode_of(test), .mr_mode = AT_MR_MODE,
		.caps = caps, .mr_pool = !ct_rdm(),
	};
	struct at_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	if (!at_offered(test))
		kunit_skip(test, "the device has no atomic operations");
	t->p = ct_pair_open(test, &opts);
	t->words = ct_buf(t->p, 4096);
	t->words++;
	t->old = ct_buf(t->p, 4096);
	at_open_region(test, t, access);
	return t;
}

static struct at_test *at_open(struct kunit *test, u64 access)
{
	return at_open_caps(test, AT_CAPS, access);
}

/* The end of a test whose connection stands, with the region's */
static void at_close(struct kunit *test, struct at_test *t)
{
	struct ct_op *op = ct_op(t->p);

	if (ct_rdm()) {
		KUNIT_EXPECT_EQ(test, fi_close(&t->mr->fid), 0);
	} else {
		op->side = 1;
		atomic_inc(&op->posted);
		KUNIT_EXPECT_EQ(test, kofi_mr_unmap(t->mr, &op->cqe), 0);
		KUNIT_EXPECT_TRUE(test, ct_wait_done(t->p, op));
		kofi_mr_put(t->mr);
	}
	ct_pair_close(t->p);
}

static ssize_t at_post_fn(struct fid_ep *ep, void *context, void *arg)
{
	const struct at_op *a = arg;

	if (a->call == FI_COMPARE_ATOMIC)
		return fi_compare_atomic(ep, &a->operand, 1, NULL, &a->compare,
					 NULL, a->old, NULL, 0, a->addr, a->key,
					 FI_UINT64, a->op, context);
	if (a->call == FI_FETCH_ATOMIC)
		return fi_fetch_atomic(ep, &a->operand, 1, NULL, a->old, NULL,
				       0, a->addr, a->key, FI_UINT64, a->op,
				       context);
	/* the operand stays until the completion */
	*a->old = a->operand;
	return fi_atomic(ep, a->old, 1, NULL, 0, a->addr, a->key, FI_UINT64,
			 a->op, context);
}

static ssize_t at_post(struct at_test *t, int side, struct ct_op *op,
		       struct at_op *a)
{
	return ct_post_fn(t->p, side, op, at_post_fn, a);
}

/* A first word of that value becomes another one; the old value comes back. */
static void at_expect(struct kunit *test, struct at_test *t, struct at_op *a,
		      u64 before, u64 after)
{
	struct ct_op *op = ct_op(t->p);

	t->words[-1] = AT_VALUE;
	t->words[0] = before;
	t->words[1] = AT_VALUE;
	*t->old = ~before;
	a->addr = t->addr;
	a->key = t->key;
	a->old = t->old;
	KUNIT_EXPECT_EQ(test, at_post(t, 0, op, a), 0);
	KUNIT_ASSERT_TRUE(test, ct_wait_done(t->p, op));
	KUNIT_EXPECT_EQ(test, op->wc.err, 0);
	KUNIT_EXPECT_EQ(test, op->wc.flags,
			FI_ATOMIC | (a->call ? FI_READ : FI_WRITE));
	if (a->call)
		KUNIT_EXPECT_EQ(test, *t->old, before);
	KUNIT_EXPECT_EQ(test, READ_ONCE(t->words[0]), after);
	KUNIT_EXPECT_EQ(test, t->words[-1], AT_VALUE);
	KUNIT_EXPECT_EQ(test, t->words[1], AT_VALUE);
}

static void at_not_asked(struct kunit *test, struct at_test *t, struct at_op *a)
{
	a->addr = t->addr;
	a->key = t->key;
	a->old = t->old;
	*t->words = AT_VALUE;
	KUNIT_EXPECT_EQ(test, at_post(t, 0, ct_op(t->p), a), -ENOSYS);
	KUNIT_EXPECT_EQ(test, READ_ONCE(*t->words), AT_VALUE);
}

/* ------------------------------------------------------------------ values */

static void atomic_values(struct kunit *test)
{
	static const struct {
		u64		call;
		enum fi_op	op;
		u64		operand;
		u64		compare;
		u64		before;
		u64		after;
	} cases[] = {
		{ FI_FETCH_ATOMIC, FI_SUM, 1, 0, AT_VALUE, AT_VALUE + 1 },
		{ FI_FETCH_ATOMIC, FI_SUM, -3ULL, 0, 2, -1ULL },
		{ FI_FETCH_ATOMIC, FI_SUM, 1, 0, U64_MAX, 0 },
		{ FI_FETCH_ATOMIC, FI_SUM, 0xff00, 0, 0xffULL << 32,
		  (0xffULL << 32) + 0xff00 },
		{ FI_FETCH_ATOMIC, FI_ATOMIC_READ, 5, 0, AT_VALUE, AT_VALUE },
		{ FI_COMPARE_ATOMIC, FI_CSWAP, 7, AT_VALUE, AT_VALUE, 7 },
		{ FI_COMPARE_ATOMIC, FI_CSWAP, 7, AT_VALUE, AT_VALUE + 1,
		  AT_VALUE + 1 },
		{ FI_COMPARE_ATOMIC, FI_CSWAP, AT_VALUE, 0, 0, AT_VALUE },
		{ 0, FI_ATOMIC_WRITE, AT_VALUE, 0, 1, AT_VALUE },
	};
	struct at_test *t = at_open(test, AT_BOTH);
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct at_op a = {
			.call = cases[i].call, .op = cases[i].op,
			.operand = cases[i].operand,
			.compare = cases[i].compare,
		};

		at_expect(test, t, &a, cases[i].before, cases[i].after);
	}
	at_close(test, t);
}

/* A copy is taken, and nothing reported; what follows comes after it. */
static void atomic_inject(struct kunit *test)
{
	struct at_test *t = at_open(test, AT_BOTH);
	struct at_op read = {
		.call = FI_FETCH_ATOMIC, .op = FI_ATOMIC_READ, .addr = t->addr,
		.key = t->key, .old = t->old,
	};
	struct ct_op *op = ct_op(t->p);
	u64 value = AT_VALUE;

	KUNIT_EXPECT_EQ(test, fi_inject_atomic(t->p->side[0].ep, &value, 1, 0,
					       t->addr, t->key, FI_INT64,
					       FI_ATOMIC_WRITE), 0);
	value = 0;
	KUNIT_EXPECT_EQ(test, at_post(t, 0, op, &read), 0);
	KUNIT_ASSERT_TRUE(test, ct_wait_done(t->p, op));
	KUNIT_EXPECT_EQ(test, op->wc.err, 0);
	KUNIT_EXPECT_EQ(test, *t->old, AT_VALUE);
	at_close(test, t);
}

/*
 * Both ends at the same time, over two connections' queues of the device: no
 * sum is lost, and everybody has got an old value of his own.
 */
static void atomic_contended(struct kunit *test)
{
	struct at_test *t = at_open(test, AT_BOTH);
	unsigned long *seen = bitmap_zalloc(2 * AT_ROUNDS, GFP_KERNEL);
	struct ct_op *op = NULL;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, seen);
	t->words[0] = 0;
	for (i = 0; i < 2 * AT_ROUNDS; i++) {
		struct at_op a = {
			.call = FI_FETCH_ATOMIC, .op = FI_SUM, .operand = 1,
			.addr = t->addr, .key = t->key, .old = t->old + i,
		};
		ssize_t ret;

		op = ct_op(t->p);
		ct_wait(t->p, (ret = at_post(t, i & 1, op, &a)) != -EAGAIN,
			CT_TIMEOUT_MS);
		KUNIT_EXPECT_EQ(test, ret, 0);
	}
	KUNIT_EXPECT_TRUE(test, ct_wait_all(t->p));
	KUNIT_EXPECT_EQ(test, READ_ONCE(t->words[0]), 2ULL * AT_ROUNDS);
	for (i = 0; i < 2 * AT_ROUNDS; i++)
		if (t->old[i] < 2 * AT_ROUNDS)
			__set_bit(t->old[i], seen);
	KUNIT_EXPECT_EQ(test, bitmap_weight(seen, 2 * AT_ROUNDS),
			2 * AT_ROUNDS);
	bitmap_free(seen);
	at_close(test, t);
}

/* ----------------------------------------------------------------- refusals */

/*
 * An error of the operation, and the end of the connection if there is one; nothing
 * changes.
 */
static void at_refused(struct kunit *test, struct at_test *t, struct at_op *a)
{
	struct ct_op *op = ct_op(t->p);

	t->words[0] = AT_VALUE;
	t->words[1] = AT_VALUE;
	a->old = t->old;
	KUNIT_EXPECT_EQ(test, at_post(t, 0, op, a), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(t->p, op));
	KUNIT_EXPECT_EQ(test, op->wc.err, ct_unanswered(op) ? ECANCELED : EACCES);
	if (!ct_rdm()) {
		ct_expect_event(test, t->p->side[0].eq, FI_SHUTDOWN);
		ct_expect_event(test, t->p->side[1].eq, FI_SHUTDOWN);
	}
	ct_expect_no_event(test, t->p->side[0].eq);
	ct_expect_no_event(test, t->p->side[1].eq);
	KUNIT_EXPECT_EQ(test, READ_ONCE(t->words[0]), AT_VALUE);
	KUNIT_EXPECT_EQ(test, READ_ONCE(t->words[1]), AT_VALUE);
	at_close(test, t);
}

/* What fetches asks for both rights. */
static void atomic_right_missing(struct kunit *test)
{
	struct at_test *t = at_open(test, FI_REMOTE_WRITE);
	struct at_op a = {
		.call = FI_FETCH_ATOMIC, .op = FI_SUM, .operand = 1,
		.addr = t->addr, .key = t->key,
	};

	at_refused(test, t, &a);
}

static void atomic_range(struct kunit *test)
{
	struct at_test *t = at_open(test, AT_BOTH);
	struct at_op a = {
		.call = FI_COMPARE_ATOMIC, .op = FI_CSWAP, .operand = 1,
		.addr = t->addr + AT_WORDS * sizeof(u64), .key = t->key,
	};

	at_refused(test, t, &a);
}

/* An endpoint that was opened for one direction refuses operations of the other one. */
static void atomic_direction(struct kunit *test)
{
	struct at_op fetch = {
		.call = FI_FETCH_ATOMIC, .op = FI_SUM, .operand = 1,
	};
	struct at_op swap = {
		.call = FI_COMPARE_ATOMIC, .op = FI_CSWAP, .operand = 2,
		.compare = 1,
	};
	struct at_op write = { .op = FI_ATOMIC_WRITE, .operand = 3 };
	struct at_test *t;
	int read;

	for (read = 0; read < 2; read++) {
		t = at_open_caps(test, AT_CAPS & ~(read ? FI_WRITE : FI_READ), AT_BOTH);
		if (read) {
			at_expect(test, t, &fetch, 0, 1);
			at_expect(test, t, &swap, 1, 2);
			at_not_asked(test, t, &write);
		} else {
			at_expect(test, t, &write, 0, 3);
			at_not_asked(test, t, &fetch);
			at_not_asked(test, t, &swap);
		}
		at_close(test, t);
	}
}

/* What can be known here is refused here. */
static void atomic_arguments(struct kunit *test)
{
	struct at_test *t = at_open(test, AT_BOTH);
	struct fid_ep *ep = t->p->side[0].ep;
	void *odd = (u8 *)t->old + 4;
	size_t most;
	u64 one = 1;
	ssize_t ret;

	KUNIT_ASSERT_EQ(test, fi_fetch_atomicvalid(ep, FI_UINT64, FI_SUM,
						   &most), 0);
	ret = fi_fetch_atomic(ep, t->old, most + 1, NULL, t->old, NULL, 0,
			      t->addr, t->key, FI_UINT64, FI_SUM, NULL);
	KUNIT_EXPECT_TRUE(test, ret == -EINVAL || ret == -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, fi_fetch_atomic(ep, &one, 1, NULL, odd, NULL, 0,
					      t->addr, t->key, FI_UINT64,
					      FI_SUM, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_fetch_atomic(ep, odd, 1, NULL, t->old, NULL, 0,
					      t->addr, t->key, FI_UINT64,
					      FI_SUM, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_compare_atomic(ep, &one, 1, NULL, odd, NULL,
						t->old, NULL, 0, t->addr,
						t->key, FI_UINT64, FI_CSWAP,
						NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_fetch_atomic(ep, &one, 1, NULL, t->old, NULL,
					      0, t->addr + 4, t->key,
					      FI_UINT64, FI_SUM, NULL),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_atomic(ep, t->old, 1, NULL, 0, t->addr + 4,
					t->key, FI_UINT64, FI_ATOMIC_WRITE,
					NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_fetch_atomic(ep, t->old, 1, NULL, t->old, NULL,
					      0, t->addr, t->key, FI_UINT128,
					      FI_SUM, NULL), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_fetch_atomic(ep, &one, 1, NULL, t->old, NULL,
					      0, t->addr, t->key, FI_UINT64,
					      FI_CSWAP, NULL), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_atomic(ep, &one, 1, NULL, 0, t->addr, t->key,
					FI_UINT64, FI_ATOMIC_READ, NULL),
			-EOPNOTSUPP);
	if (ct_streams(t->p))
		goto close;
	/* what a device cannot */
	KUNIT_EXPECT_EQ(test, fi_fetch_atomic(ep, &one, 1, NULL, t->old, NULL,
					      0, t->addr, BIT_ULL(40),
					      FI_UINT64, FI_SUM, NULL),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_fetch_atomic(ep, &one, 1, NULL, t->old, NULL,
					      0, t->addr, t->key, FI_UINT32,
					      FI_SUM, NULL), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_fetch_atomic(ep, &one, 1, NULL, t->old, NULL,
					      0, t->addr, t->key, FI_UINT64,
					      FI_PROD, NULL), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_atomic(ep, &one, 1, NULL, 0, t->addr, t->key,
					FI_UINT64, FI_SUM, NULL), -EOPNOTSUPP);
close:
	at_close(test, t);
}

/* Segments that are said to be there, without a pointer to them */
static void atomic_arrays(struct kunit *test)
{
	struct at_test *t = at_open(test, AT_BOTH);
	struct fid_ep *ep = t->p->side[0].ep;
	struct fi_ioc ioc = { t->old, 1 };
	const struct fi_rma_ioc rma = {
		.addr = t->addr, .count = 1, .key = t->key,
	};
	const struct fi_msg_atomic whole = {
		.msg_iov = &ioc, .iov_count = 1, .rma_iov = &rma,
		.rma_iov_count = 1, .datatype = FI_UINT64, .op = FI_CSWAP,
	};
	struct fi_msg_atomic no_peer = whole, no_operand = whole, store = whole;

	no_peer.rma_iov = NULL;
	no_operand.msg_iov = NULL;
	store.op = FI_ATOMIC_WRITE;
	store.msg_iov = NULL;
	KUNIT_EXPECT_EQ(test, fi_atomicmsg(ep, &store, 0), -EINVAL);
	store.msg_iov = &ioc;
	store.rma_iov = NULL;
	KUNIT_EXPECT_EQ(test, fi_atomicmsg(ep, &store, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_compare_atomicmsg(ep, &no_peer, &ioc, NULL, 1,
						   &ioc, NULL, 1, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_compare_atomicmsg(ep, &no_operand, &ioc, NULL,
						   1, &ioc, NULL, 1, 0),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_compare_atomicmsg(ep, &whole, NULL, NULL, 1,
						   &ioc, NULL, 1, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_compare_atomicmsg(ep, &whole, &ioc, NULL, 1,
						   NULL, NULL, 1, 0), -EINVAL);
	no_peer.op = FI_SUM;
	no_operand.op = FI_SUM;
	KUNIT_EXPECT_EQ(test, fi_fetch_atomicmsg(ep, &no_peer, &ioc, NULL, 1,
						 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_fetch_atomicmsg(ep, &no_operand, &ioc, NULL, 1,
						 0), -EINVAL);
	no_operand.msg_iov = &ioc;
	KUNIT_EXPECT_EQ(test, fi_fetch_atomicmsg(ep, &no_operand, NULL, NULL, 1,
						 0), -EINVAL);
	at_close(test, t);
}

/* The two questions have the same answer, and posts heed it. */
static void atomic_questions(struct kunit *test)
{
	static const u64 calls[] = { 0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC };
	const struct ct_opts opts = {
		.mode = CT_SOFTIRQ, .mr_mode = AT_MR_MODE,
		.caps = at_offered(test) ? AT_CAPS : 0,
	};
	struct ct_pair *p = ct_pair_open(test, &opts);
	struct fid_ep *ep = p->side[0].ep;
	u64 *old = ct_buf(p, 8);
	int type, op, i, can = 0;

	for (type = FI_INT8; type <= FI_UINT128; type++) {
		for (op = FI_MIN; op <= FI_DIFF; op++) {
			for (i = 0; i < ARRAY_SIZE(calls); i++) {
				struct fi_atomic_attr attr = {};
				size_t count = 0;
				bool yes;

				yes = !fi_query_atomic(p->domain, type, op,
						       &attr, calls[i]);
				KUNIT_EXPECT_EQ(test, yes,
						!kofi_atomic_valid(ep, type, op,
								   calls[i],
								   &count));
				KUNIT_EXPECT_EQ(test, attr.count, count);
				can += yes;
			}
		}
	}
	if (opts.caps) {
		KUNIT_EXPECT_GT(test, can, 0);
	} else {
		int ret = fi_fetch_atomic(ep, old, 1, NULL, old, NULL, 0, 0, 0,
					  FI_UINT64, FI_SUM, NULL);

		KUNIT_EXPECT_EQ(test, can, 0);
		KUNIT_EXPECT_TRUE(test, ret == -EOPNOTSUPP || ret == -ENOSYS);
	}
	ct_pair_close(p);
}

static struct kunit_case contract_atomic_cases[] = {
	KUNIT_CASE_PARAM(atomic_values, ct_mode_gen_params),
	KUNIT_CASE_PARAM(atomic_inject, ct_mode_gen_params),
	KUNIT_CASE_PARAM(atomic_contended, ct_mode_gen_params),
	KUNIT_CASE_PARAM(atomic_right_missing, ct_mode_gen_params),
	KUNIT_CASE_PARAM(atomic_range, ct_mode_gen_params),
	KUNIT_CASE_PARAM(atomic_direction, ct_mode_gen_params),
	KUNIT_CASE_PARAM(atomic_arguments, ct_mode_gen_params),
	KUNIT_CASE_PARAM(atomic_arrays, ct_mode_gen_params),
	KUNIT_CASE(atomic_questions),
	{}
};

static struct kunit_suite contract_atomic_suite = {
	.name = "contract_atomic",
	.suite_init = lo_suite_init,
	.test_cases = contract_atomic_cases,
};

kunit_test_suite(contract_atomic_suite);

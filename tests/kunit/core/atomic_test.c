// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Atomic operations: what of the calls reaches a provider, and the questions. */
#include <linux/module.h>
#include <linux/slab.h>

#include "fake.h"
#include "queues.h"

#define AT_DEST		7
#define AT_ADDR		0x1000
#define AT_KEY		0x55aa

struct at_test {
	struct fake_world	*world;
	struct fid_eq		*eq;
	struct fid_cq		*cq;
	struct fid_ep		*ep;
	struct fake_atomic	*seen;
	u64			buf[4];
	u64			cmp[4];
	u64			old[4];
	int			context;
};

static int at_init(struct kunit *test)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_CONTEXT };
	struct at_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	test->priv = t;
	t->world = fake_open(test);
	t->world->info->caps |= FI_ATOMIC;
	KUNIT_ASSERT_EQ(test, 0, fi_eq_open(t->world->fabric, NULL, &t->eq,
					    NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_cq_open(t->world->domain, &attr, &t->cq,
					    NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(t->world->domain, t->world->info,
					     &t->ep, t));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(t->ep, &t->eq->fid, 0));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(t->ep, &t->cq->fid, FI_TRANSMIT |
					    FI_RECV));
	fake_connected(test, t->ep);
	t->seen = &fake_of(t->ep)->atomic;
	t->ep->tx_op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
	return 0;
}

static void at_exit(struct kunit *test)
{
	struct at_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->ep->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->cq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->eq->fid));
	fake_close(test, t->world);
}

/* What every call hands on in the same way, and its completion */
static void at_expect(struct kunit *test, u64 call, u64 flags,
		      enum fi_datatype datatype, enum fi_op op, size_t pieces,
		      size_t elements)
{
	struct at_test *t = test->priv;
	struct fake_atomic *seen = t->seen;
	struct fi_cq_entry entry;

	KUNIT_EXPECT_EQ(test, call, seen->call);
	KUNIT_EXPECT_EQ(test, flags, seen->flags);
	KUNIT_EXPECT_EQ(test, (int)datatype, (int)seen->msg.datatype);
	KUNIT_EXPECT_EQ(test, (int)op, (int)seen->msg.op);
	KUNIT_EXPECT_EQ(test, pieces, seen->msg.iov_count);
	KUNIT_EXPECT_EQ(test, 1UL, seen->msg.rma_iov_count);
	KUNIT_EXPECT_EQ(test, (u64)AT_ADDR, seen->rma[0].addr);
	KUNIT_EXPECT_EQ(test, (u64)AT_KEY, seen->rma[0].key);
	KUNIT_EXPECT_EQ(test, elements, seen->rma[0].count);
	KUNIT_EXPECT_EQ(test, (fi_addr_t)AT_DEST, seen->msg.addr);

	KUNIT_EXPECT_TRUE(test, fake_complete(t->ep, FAKE_TX, 0));
	KUNIT_EXPECT_EQ(test, 1L, fi_cq_read(t->cq, &entry, 1));
	KUNIT_EXPECT_PTR_EQ(test, seen->msg.context, entry.op_context);
}

static void at_write_test(struct kunit *test)
{
	struct at_test *t = test->priv;
	const struct fi_ioc iov[] = { { t->buf, 1 }, { t->buf + 2, 2 } };
	const u64 flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;

	KUNIT_EXPECT_EQ(test, 0L,
			fi_atomic(t->ep, t->buf, 3, NULL, AT_DEST, AT_ADDR,
				  AT_KEY, FI_UINT64, FI_SUM, &t->context));
	KUNIT_EXPECT_PTR_EQ(test, (void *)t->buf, t->seen->iov[0].addr);
	KUNIT_EXPECT_EQ(test, 3UL, t->seen->iov[0].count);
	KUNIT_EXPECT_PTR_EQ(test, (void *)&t->context, t->seen->msg.context);
	at_expect(test, 0, flags, FI_UINT64, FI_SUM, 1, 3);

	KUNIT_EXPECT_EQ(test, 0L,
			fi_atomicv(t->ep, iov, NULL, 2, AT_DEST, AT_ADDR,
				   AT_KEY, FI_INT32, FI_BXOR, &t->context));
	KUNIT_EXPECT_PTR_EQ(test, (void *)(t->buf + 2), t->seen->iov[1].addr);
	at_expect(test, 0, flags, FI_INT32, FI_BXOR, 2, 3);
}

/* Injects: nothing of the endpoint's defaults, and no completion. */
static void at_inject_test(struct kunit *test)
{
	struct at_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, 0L,
			fi_inject_atomic(t->ep, t->buf, 2, AT_DEST, AT_ADDR,
					 AT_KEY, FI_UINT8, FI_MAX));
	KUNIT_EXPECT_EQ(test, FI_INJECT | KOFI_NO_COMPLETION, t->seen->flags);
	KUNIT_EXPECT_NULL(test, t->seen->msg.context);
	KUNIT_EXPECT_EQ(test, 2UL, t->seen->rma[0].count);
	KUNIT_EXPECT_EQ(test, (int)FI_MAX, (int)t->seen->msg.op);
	KUNIT_EXPECT_TRUE(test, fake_complete(t->ep, FAKE_TX, 0));
	KUNIT_EXPECT_EQ(test, -EAGAIN, (int)fi_cq_read(t->cq, t->buf, 0));
}

/* The flags of what fetches: of the defaults only those that mean anything. */
static void at_fetch_test(struct kunit *test)
{
	struct at_test *t = test->priv;
	const struct fi_ioc iov[] = { { t->buf, 4 } };
	struct fi_ioc old[] = { { t->old, 3 }, { t->old + 3, 1 } };

	KUNIT_EXPECT_EQ(test, 0L,
			fi_fetch_atomic(t->ep, t->buf, 2, NULL, t->old, NULL,
					AT_DEST, AT_ADDR, AT_KEY, FI_INT64,
					FI_SUM, &t->context));
	KUNIT_EXPECT_PTR_EQ(test, (void *)t->old, t->seen->result[0].addr);
	KUNIT_EXPECT_EQ(test, 2UL, t->seen->result[0].count);
	KUNIT_EXPECT_EQ(test, 1UL, t->seen->result_count);
	at_expect(test, FI_FETCH_ATOMIC, FI_COMPLETION, FI_INT64, FI_SUM, 1, 2);

	KUNIT_EXPECT_EQ(test, 0L,
			fi_fetch_atomicv(t->ep, iov, NULL, 1, old, NULL, 2,
					 AT_DEST, AT_ADDR, AT_KEY, FI_INT64,
					 FI_BAND, &t->context));
	KUNIT_EXPECT_PTR_EQ(test, (void *)(t->old + 3),
			    t->seen->result[1].addr);
	KUNIT_EXPECT_EQ(test, 2UL, t->seen->result_count);
	at_expect(test, FI_FETCH_ATOMIC, FI_COMPLETION, FI_INT64, FI_BAND, 1,
		  4);

	/* a read has no operands */
	KUNIT_EXPECT_EQ(test, 0L,
			fi_fetch_atomic(t->ep, NULL, 1, NULL, t->old, NULL,
					AT_DEST, AT_ADDR, AT_KEY, FI_INT64,
					FI_ATOMIC_READ, &t->context));
	at_expect(test, FI_FETCH_ATOMIC, FI_COMPLETION, FI_INT64,
		  FI_ATOMIC_READ, 0, 1);
}

static void at_compare_test(struct kunit *test)
{
	struct at_test *t = test->priv;
	const struct fi_ioc iov[] = { { t->buf, 2 } };
	const struct fi_ioc cmp[] = { { t->cmp, 1 }, { t->cmp + 1, 1 } };
	struct fi_ioc old[] = { { t->old, 2 } };

	KUNIT_EXPECT_EQ(test, 0L,
			fi_compare_atomic(t->ep, t->buf, 1, NULL, t->cmp, NULL,
					  t->old, NULL, AT_DEST, AT_ADDR,
					  AT_KEY, FI_UINT64, FI_CSWAP,
					  &t->context));
	KUNIT_EXPECT_PTR_EQ(test, (void *)t->cmp, t->seen->compare[0].addr);
	KUNIT_EXPECT_PTR_EQ(test, (void *)t->buf, t->seen->iov[0].addr);
	KUNIT_EXPECT_PTR_EQ(test, (void *)t->old, t->seen->result[0].addr);
	at_expect(test, FI_COMPARE_ATOMIC, FI_COMPLETION, FI_UINT64, FI_CSWAP,
		  1, 1);

	KUNIT_EXPECT_EQ(test, 0L,
			fi_compare_atomicv(t->ep, iov, NULL, 1, cmp, NULL, 2,
					   old, NULL, 1, AT_DEST, AT_ADDR,
					   AT_KEY, FI_UINT64, FI_MSWAP,
					   &t->context));
	KUNIT_EXPECT_EQ(test, 2UL, t->seen->compare_count);
	KUNIT_EXPECT_PTR_EQ(test, (void *)(t->cmp + 1),
			    t->seen->compare[1].addr);
	at_expect(test, FI_COMPARE_ATOMIC, FI_COMPLETION, FI_UINT64, FI_MSWAP,
		  1, 2);
}

/* The long forms hand on what they are given, and no defaults. */
static void at_msg_test(struct kunit *test)
{
	struct at_test *t = test->priv;
	const struct fi_ioc iov = { t->buf, 1 };
	struct fi_ioc old = { t->old, 1 };
	const struct fi_rma_ioc rma = { AT_ADDR, 1, AT_KEY };
	struct fi_msg_atomic msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = AT_DEST,
		.rma_iov = &rma, .rma_iov_count = 1, .datatype = FI_UINT64,
		.op = FI_ATOMIC_WRITE, .context = &t->context, .data = 9,
	};

	KUNIT_EXPECT_EQ(test, 0L, fi_atomicmsg(t->ep, &msg, FI_FENCE));
	KUNIT_EXPECT_EQ(test, 9ULL, t->seen->msg.data);
	at_expect(test, 0, FI_FENCE, FI_UINT64, FI_ATOMIC_WRITE, 1, 1);

	msg.op = FI_SUM;
	KUNIT_EXPECT_EQ(test, 0L, fi_fetch_atomicmsg(t->ep, &msg, &old, NULL,
						     1, FI_MORE));
	at_expect(test, FI_FETCH_ATOMIC, FI_MORE, FI_UINT64, FI_SUM, 1, 1);

	msg.op = FI_CSWAP;
	KUNIT_EXPECT_EQ(test, 0L,
			fi_compare_atomicmsg(t->ep, &msg, &iov, NULL, 1, &old,
					     NULL, 1, 0));
	at_expect(test, FI_COMPARE_ATOMIC, 0, FI_UINT64, FI_CSWAP, 1, 1);
}

static const struct {
	enum fi_datatype	datatype;
	enum fi_op		op;
	u64			flags;
	int			ret;
	size_t			count;
} at_queries[] = {
	{ FI_UINT64, FI_ATOMIC_WRITE, 0, 0, 1 },
	{ FI_INT64, FI_SUM, FI_FETCH_ATOMIC, 0, 2 },
	{ FI_UINT64, FI_CSWAP, FI_COMPARE_ATOMIC, 0, 3 },
	/* not these */
	{ FI_UINT32, FI_ATOMIC_WRITE, 0, -EOPNOTSUPP, 0 },
	{ FI_UINT64, FI_SUM, 0, -EOPNOTSUPP, 0 },
	{ FI_UINT64, FI_MSWAP, FI_COMPARE_ATOMIC, -EOPNOTSUPP, 0 },
	/* there is no such thing */
	{ FI_DOUBLE, FI_SUM, FI_FETCH_ATOMIC, -EOPNOTSUPP, 0 },
	{ FI_UINT128 + 1, FI_SUM, FI_FETCH_ATOMIC, -EOPNOTSUPP, 0 },
	{ FI_UINT64, FI_DIFF + 1, FI_FETCH_ATOMIC, -EOPNOTSUPP, 0 },
	{ FI_UINT64, FI_DIFF, FI_COMPARE_ATOMIC, -EOPNOTSUPP, 0 },
	{ FI_UINT64, FI_CSWAP, 0, -EOPNOTSUPP, 0 },
	{ FI_UINT64, FI_CSWAP, FI_FETCH_ATOMIC, -EOPNOTSUPP, 0 },
	{ FI_UINT64, FI_SUM, FI_COMPARE_ATOMIC, -EOPNOTSUPP, 0 },
	{ FI_UINT64, FI_ATOMIC_READ, 0, -EOPNOTSUPP, 0 },
	{ FI_UINT64, FI_SUM, FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC,
	  -FI_EBADFLAGS, 0 },
	{ FI_UINT64, FI_SUM, FI_TAGGED, -FI_EBADFLAGS, 0 },
};

static int at_valid(struct fid_ep *ep, int i, size_t *count)
{
	switch (at_queries[i].flags) {
	case 0:
		return fi_atomicvalid(ep, at_queries[i].datatype,
				      at_queries[i].op, count);
	case FI_FETCH_ATOMIC:
		return fi_fetch_atomicvalid(ep, at_queries[i].datatype,
					    at_queries[i].op, count);
	case FI_COMPARE_ATOMIC:
		return fi_compare_atomicvalid(ep, at_queries[i].datatype,
					      at_queries[i].op, count);
	default:
		return at_queries[i].ret;	/* cannot be asked this way */
	}
}

static void at_query_test(struct kunit *test)
{
	struct at_test *t = test->priv;
	struct fi_atomic_attr attr;
	size_t count;
	int i, ret;

	for (i = 0; i < ARRAY_SIZE(at_queries); i++) {
		attr = (struct fi_atomic_attr){};
		count = 0;
		ret = fi_query_atomic(t->world->domain, at_queries[i].datatype,
				      at_queries[i].op, &attr,
				      at_queries[i].flags);
		KUNIT_EXPECT_EQ_MSG(test, at_queries[i].ret, ret, "%d", i);
		KUNIT_EXPECT_EQ_MSG(test, at_queries[i].ret,
				    at_valid(t->ep, i, &count), "%d", i);
		if (ret)
			continue;
		KUNIT_EXPECT_EQ_MSG(test, at_queries[i].count, attr.count, "%d",
				    i);
		KUNIT_EXPECT_EQ_MSG(test, at_queries[i].count, count, "%d", i);
		KUNIT_EXPECT_EQ_MSG(test, sizeof(u64), attr.size, "%d", i);
	}
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_query_atomic(NULL, FI_UINT64, FI_SUM, &attr, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_query_atomic(t->world->domain, FI_UINT64, FI_SUM,
					NULL, 0));
}

/* An endpoint that has none of it says so, with each call. */
static void at_nosys_test(struct kunit *test)
{
	struct at_test *t = test->priv;
	struct fi_rx_attr attr = { .size = 4 };
	struct fid_ep *srx;
	size_t count;

	KUNIT_ASSERT_EQ(test, 0, fi_srx_context(t->world->domain, &attr, &srx,
						NULL));
	KUNIT_EXPECT_EQ(test, -ENOSYS,
			(int)fi_atomic(srx, t->buf, 1, NULL, 0, 0, 0, FI_UINT64,
				       FI_SUM, NULL));
	KUNIT_EXPECT_EQ(test, -ENOSYS,
			(int)fi_inject_atomic(srx, t->buf, 1, 0, 0, 0,
					      FI_UINT64, FI_SUM));
	KUNIT_EXPECT_EQ(test, -ENOSYS,
			(int)fi_fetch_atomic(srx, t->buf, 1, NULL, t->old, NULL,
					     0, 0, 0, FI_UINT64, FI_SUM, NULL));
	KUNIT_EXPECT_EQ(test, -ENOSYS,
			(int)fi_compare_atomic(srx, t->buf, 1, NULL, t->cmp,
					       NULL, t->old, NULL, 0, 0, 0,
					       FI_UINT64, FI_CSWAP, NULL));
	KUNIT_EXPECT_EQ(test, -ENOSYS, fi_atomicvalid(srx, FI_UINT64, FI_SUM,
						      &count));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&srx->fid));
}

static void at_size_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 1UL, kofi_datatype_size(FI_INT8));
	KUNIT_EXPECT_EQ(test, 2UL, kofi_datatype_size(FI_UINT16));
	KUNIT_EXPECT_EQ(test, 4UL, kofi_datatype_size(FI_INT32));
	KUNIT_EXPECT_EQ(test, 8UL, kofi_datatype_size(FI_UINT64));
	KUNIT_EXPECT_EQ(test, 0UL, kofi_datatype_size(FI_FLOAT));
	KUNIT_EXPECT_EQ(test, 0UL, kofi_datatype_size(-1));
}

static struct kunit_case at_cases[] = {
	KUNIT_CASE(at_write_test),
	KUNIT_CASE(at_inject_test),
	KUNIT_CASE(at_fetch_test),
	KUNIT_CASE(at_compare_test),
	KUNIT_CASE(at_msg_test),
	KUNIT_CASE(at_query_test),
	KUNIT_CASE(at_nosys_test),
	KUNIT_CASE(at_size_test),
	{}
};

struct kunit_suite kofi_atomic_suite = {
	.name		= "kofi_atomic",
	.suite_init	= fake_suite_init,
	.suite_exit	= fake_suite_exit,
	.init		= at_init,
	.exit		= at_exit,
	.test_cases	= at_cases,
};

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Pointers that are left out, or are no objects: every call refuses them, and follows none. */
#include <linux/module.h>

#include "fake.h"
#include "queues.h"

/* One of each, and room for what no call is to fill */
struct null_test {
	struct fake_world	*world;
	struct fid_eq		*eq, *eq2;
	struct fid_cq		*cq, *cq2;
	struct fid_cntr		*cntr2;
	struct fid_ep		*ep, *ep2;
	struct fid_ep		*sep;
	struct fid_pep		*pep;
	struct fid_mr		*mr, *mr2;
	struct fid_wait		*set2;
	struct fid_poll		*poll, *poll2;
	struct fid_av		*av, *av2;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct fi_info		*info;
	struct fi_info		*sep_info;	/* of one context */
	struct fi_info		empty;		/* without attributes */
	struct fi_mr_attr	mr_attr;	/* of one segment that is not there */
	struct fi_msg		vec;		/* the same */
	struct kvec		iov;		/* of one byte at NULL */
	struct fi_atomic_attr	atomic;
	struct fi_eq_err_entry	eq_err;
	struct fi_cq_err_entry	cq_err;
	fi_addr_t		addr;
	void			*none;		/* instead of an object */
	void			*ops;
	size_t			len;
	u32			event;
	char			text[64];
};

#define NULL_CALL(name, refusal, call)					\
	static long null_##name(struct null_test *n, long *want)	\
	{								\
		*want = refusal;					\
		return (long)(call);					\
	}
#include "null_calls.h"
#undef NULL_CALL

static const struct null_case {
	const char	*name;
	long		(*call)(struct null_test *n, long *want);
} null_cases[] = {
#define NULL_CALL(name, ...) { #name, null_##name },
#include "null_calls.h"
#undef NULL_CALL
};

KUNIT_ARRAY_PARAM_DESC(null, null_cases, name);

static void null_call_test(struct kunit *test)
{
	const struct null_case *c = test->param_value;
	struct null_test *n = test->priv;
	/* each is refused for one reason */
	void *none[] = {
		NULL, ERR_PTR(-EBUSY), (void *)0x10, (char *)n->world + 1,
	};
	long want, got;
	int i;

	for (i = 0; i < ARRAY_SIZE(none); i++) {
		n->none = none[i];
		got = c->call(n, &want);
		KUNIT_EXPECT_EQ_MSG(test, want, got, "value %d", i);
	}
}

/* The provider opens none of its contexts here, so it needs not have any. */
static void null_open_sep(struct kunit *test, struct null_test *n)
{
	struct fi_info *info = fi_dupinfo(n->world->info);

	KUNIT_ASSERT_NOT_NULL(test, info);
	n->sep_info = info;
	info->ep_attr->type = FI_EP_RDM;
	info->ep_attr->tx_ctx_cnt = 1;
	info->ep_attr->rx_ctx_cnt = 1;
	info->domain_attr->max_ep_tx_ctx = 1;
	info->domain_attr->max_ep_rx_ctx = 1;
	KUNIT_ASSERT_EQ(test, 0, fi_scalable_ep(n->world->domain, info, &n->sep,
						NULL));
}

static int null_init(struct kunit *test)
{
	struct null_test *n = kunit_kzalloc(test, sizeof(*n), GFP_KERNEL);
	size_t pool = 1;

	if (!n)
		return -ENOMEM;
	test->priv = n;
	n->world = fake_open_mr(test, FI_MR_PROV_KEY);
	n->empty.ep_attr = n->world->info->ep_attr;
	n->mr_attr = (struct fi_mr_attr){
		.iov_count = 1, .access = FI_REMOTE_READ,
	};
	n->vec.iov_count = 1;
	n->iov.iov_len = 1;
	n->len = sizeof(n->text);
	KUNIT_ASSERT_EQ(test, 0, fi_eq_open(n->world->fabric,
					    &(struct fi_eq_attr){
						.flags = FI_WRITE,
						.wait_obj = FI_WAIT_UNSPEC },
					    &n->eq, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_cq_open(n->world->domain,
					    &(struct fi_cq_attr){
						.wait_obj = FI_WAIT_UNSPEC },
					    &n->cq, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_poll_open(n->world->domain, NULL,
					      &n->poll));
	KUNIT_ASSERT_EQ(test, 0, fi_av_open(n->world->domain,
					    &(struct fi_av_attr){
						.type = FI_AV_MAP,
						.flags = FI_EVENT },
					    &n->av, NULL));
	null_open_sep(test, n);
	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(n->world->domain, n->world->info,
					     &n->ep, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(n->ep, &n->eq->fid, 0));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(n->ep, &n->cq->fid,
					    FI_TRANSMIT | FI_RECV));
	KUNIT_ASSERT_EQ(test, 0, fi_setopt(&n->ep->fid, FI_OPT_ENDPOINT,
					   KOFI_OPT_MR_POOL, &pool,
					   sizeof(pool)));
	KUNIT_ASSERT_EQ(test, 0, fi_enable(n->ep));
	n->mr = kofi_mr_get(n->ep);
	KUNIT_ASSERT_NOT_NULL(test, n->mr);
	return 0;
}

static void null_exit(struct kunit *test)
{
	struct null_test *n = test->priv;

	kofi_mr_put(n->mr);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&n->ep->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&n->sep->fid));
	fi_freeinfo(n->sep_info);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&n->poll->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&n->av->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&n->cq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&n->eq->fid));
	fake_close(test, n->world);
}

static struct kunit_case null_test_cases[] = {
	KUNIT_CASE_PARAM(null_call_test, null_gen_params),
	{}
};

struct kunit_suite kofi_null_suite = {
	.name = "kofi_null",
	.attr.speed = KUNIT_SPEED_SLOW,
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = null_init,
	.exit = null_exit,
	.test_cases = null_test_cases,
};

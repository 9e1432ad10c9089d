// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Attributes of connections of kofi_verbs: retries, timers and the depth of reads. */
#include <rdma/rdma_cm.h>

#include "../../../providers/verbs/verbs.h"
#include "link.h"

static bool vc_iwarp(const struct ct_pair *p)
{
	return p->info->ep_attr->protocol == FI_PROTO_IWARP;
}

static struct ct_pair *vc_unconnected(struct kunit *test)
{
	const struct ct_opts opts = { .mode = CT_READ, .unconnected = true };

	return ct_pair_open(test, &opts);
}

/**
 * struct vc_conn - an option
 * @name: its name
 * @first: its default
 * @value: a value that differs from the default
 * @most: the most that is accepted
 */
struct vc_conn {
	int	name;
	size_t	first;
	size_t	value;
	size_t	most;
};

static int vc_set(struct fid_ep *ep, int name, size_t value)
{
	return fi_setopt(&ep->fid, FI_OPT_ENDPOINT, name, &value, sizeof(value));
}

/* Of an option that the device has */
static void vc_conn_set(struct kunit *test, struct fid_ep *ep, const struct vc_conn *c)
{
	size_t value = 0, len = sizeof(value);

	KUNIT_EXPECT_EQ(test, fi_getopt(&ep->fid, FI_OPT_ENDPOINT, c->name, &value, &len), 0);
	KUNIT_EXPECT_EQ_MSG(test, value, c->first, "%#x", c->name);
	KUNIT_EXPECT_EQ_MSG(test, vc_set(ep, c->name, c->most + 1), -EINVAL, "%#x", c->name);
	KUNIT_EXPECT_EQ(test, vc_set(ep, c->name, SIZE_MAX), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_setopt(&ep->fid, FI_OPT_ENDPOINT, c->name, &value, 1),
			-FI_ETOOSMALL);
	KUNIT_EXPECT_EQ(test, vc_set(ep, c->name, c->most), 0);
	KUNIT_EXPECT_EQ(test, vc_set(ep, c->name, c->value), 0);
	KUNIT_EXPECT_EQ(test, fi_getopt(&ep->fid, FI_OPT_ENDPOINT, c->name, &value, &len), 0);
	KUNIT_EXPECT_EQ_MSG(test, value, c->value, "%#x", c->name);
}

/* They are the queue pair's once the endpoint is connected. */
static void conn_attributes(struct kunit *test)
{
	struct ct_pair *p = vc_unconnected(test);
	struct fid_ep *ep = p->side[0].ep;
	const struct vrb_domain *dom = vrb_ep(ep)->dom;
	const struct ib_device *ib = dom->ib;
	size_t retries = dom->quirks & VRB_QUIRK_RETRY_EVER ? 6 : 7;
	size_t depth = min(ib->attrs.max_qp_init_rd_atom, U8_MAX);
	size_t resources = min(ib->attrs.max_qp_rd_atom, U8_MAX);
	const struct vc_conn conns[] = {
		{ KOFI_OPT_RETRY_COUNT, retries, 3, retries },
		{ KOFI_OPT_RNR_RETRY, KOFI_RNR_RETRY_FOREVER, 2, 7 },
		{ KOFI_OPT_RNR_TIMER, 12, 14, 31 },
		{ KOFI_OPT_ACK_TIMEOUT, 0, 17, 31 },
		{ KOFI_OPT_READ_DEPTH, depth, 2, depth },
		{ KOFI_OPT_READ_RESOURCES, resources, 1, resources },
	};
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr = {};
	int i;

	for (i = 0; i < ARRAY_SIZE(conns); i++) {
		if (vc_iwarp(p) && i < 4)
			KUNIT_EXPECT_EQ(test, vc_set(ep, conns[i].name, 1), -ENOPROTOOPT);
		else
			vc_conn_set(test, ep, &conns[i]);
	}
	KUNIT_EXPECT_EQ(test, vc_set(ep, KOFI_OPT_READ_RESOURCES + 1, 1), -ENOPROTOOPT);
	KUNIT_ASSERT_EQ(test, ct_pair_connect(p), 0);
	KUNIT_EXPECT_EQ(test, vc_set(ep, KOFI_OPT_READ_DEPTH, 1), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, vrb_ep(ep)->limits.initiator_depth, 2);
	/* the peer has what is left to it */
	KUNIT_EXPECT_EQ(test, vrb_ep(p->side[1].ep)->limits.responder_resources, 2);
	KUNIT_EXPECT_EQ(test, vrb_ep(p->side[1].ep)->limits.initiator_depth, 1);
	if (!vc_iwarp(p)) {
		KUNIT_EXPECT_EQ(test, ib_query_qp(vrb_ep(ep)->qp, &attr, IB_QP_TIMEOUT, &init),
				0);
		KUNIT_EXPECT_EQ(test, attr.retry_cnt, 3);
		KUNIT_EXPECT_EQ(test, attr.min_rnr_timer, 14);
		KUNIT_EXPECT_EQ(test, attr.timeout, 17);
		KUNIT_EXPECT_EQ(test, attr.max_rd_atomic, 2);
		KUNIT_EXPECT_EQ(test, attr.max_dest_rd_atomic, 1);
		/* the number of the device that sends */
		KUNIT_EXPECT_EQ(test, ib_query_qp(vrb_ep(p->side[1].ep)->qp, &attr,
						  IB_QP_RNR_RETRY, &init), 0);
		KUNIT_EXPECT_EQ(test, attr.rnr_retry, 2);
	}
	ct_pair_close(p);
}

/* A finite number is opt-in: then a message without a receive fails, and the connection. */
static void conn_rnr_finite(struct kunit *test)
{
	struct ct_pair *p = vc_unconnected(test);
	struct ct_op *op = ct_op(p);

	if (vc_iwarp(p)) {
		ct_pair_close(p);
		return;
	}
	KUNIT_EXPECT_EQ(test, vc_set(p->side[0].ep, KOFI_OPT_RNR_RETRY, 1), 0);
	KUNIT_ASSERT_EQ(test, ct_pair_connect(p), 0);
	KUNIT_EXPECT_EQ(test, ct_send(p, 1, op, ct_buf(p, 64), 64), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, op->wc.err, FI_ENORX);
	KUNIT_EXPECT_EQ(test, op->wc.prov_errno, IB_WC_RNR_RETRY_EXC_ERR);
	ct_expect_ended(p);
	ct_pair_close(p);
}

static struct kunit_case verbs_conn_cases[] = {
	KUNIT_CASE(conn_attributes),
	KUNIT_CASE(conn_rnr_finite),
	{}
};

static struct kunit_suite verbs_conn_suite = {
	.name = "verbs_conn",
	.suite_init = lo_suite_init,
	.suite_exit = link_suite_exit,
	.init = link_test_init,
	.test_cases = verbs_conn_cases,
};

kunit_test_suite(verbs_conn_suite);

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Endpoints: binding, enabling, options, states and their events. */
#include <linux/completion.h>
#include <linux/hash.h>
#include <linux/irqflags.h>
#include <linux/module.h>

#include <linux/kofi/compat.h>

#include "fake.h"
#include "queues.h"

struct ep_test {
	struct fake_world	*world;
	struct fid_eq		*eq;
	struct fid_cq		*cq;
	struct fid_cntr		*cntr;
	struct fid_ep		*ep;
};

static void ep_open(struct kunit *test)
{
	struct ep_test *t = test->priv;

	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(t->world->domain, t->world->info,
					     &t->ep, "context"));
}

static void ep_close(struct kunit *test)
{
	struct ep_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->ep->fid));
}

static void ep_bind_all(struct kunit *test)
{
	struct ep_test *t = test->priv;

	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(t->ep, &t->eq->fid, 0));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(t->ep, &t->cq->fid, FI_TRANSMIT |
					    FI_RECV));
}

static int ep_init(struct kunit *test)
{
	struct ep_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	test->priv = t;
	t->world = fake_open(test);
	KUNIT_ASSERT_EQ(test, 0, fi_eq_open(t->world->fabric, NULL, &t->eq,
					    NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_cq_open(t->world->domain, NULL, &t->cq,
					    NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_cntr_open(t->world->domain, NULL, &t->cntr,
					      NULL));
	return 0;
}

static void ep_exit(struct kunit *test)
{
	struct ep_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->cntr->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->cq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->eq->fid));
	fake_close(test, t->world);
}

/* ------------------------------------------------------------------ opening */

static void ep_open_test(struct kunit *test)
{
	struct ep_test *t = test->priv;
	struct fid_domain *domain = t->world->domain;
	struct fi_info *info = t->world->info;
	struct fi_tx_attr *tx = info->tx_attr;
	struct fid_ep *ep;

	KUNIT_EXPECT_EQ(test, -EINVAL, fi_endpoint(NULL, info, &ep, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_endpoint(domain, NULL, &ep, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_endpoint(domain, info, NULL, NULL));
	info->tx_attr = NULL;
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_endpoint(domain, info, &ep, NULL));
	info->tx_attr = tx;
	info->ep_attr->type = FI_EP_UNSPEC;
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_endpoint(domain, info, &ep, NULL));
	info->ep_attr->type = FI_EP_MSG;
	info->dest_addrlen = 4;
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_endpoint(domain, info, &ep, NULL));
	info->dest_addrlen = 0;
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS,
			fi_endpoint2(domain, info, &ep, FI_PEER, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_endpoint2(domain, info, &ep, 0, test));
	KUNIT_EXPECT_EQ(test, (size_t)FI_CLASS_EP, ep->fid.fclass);
	KUNIT_EXPECT_PTR_EQ(test, (void *)test, ep->fid.context);
	/* Only what the provider has is there, and that is everywhere. */
	KUNIT_EXPECT_EQ(test, -ENOSYS, fi_getname(&ep->fid, tx, &tx->size));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&domain->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&ep->fid));
}

/* The spellings of compat.h are the calls that they stand for. */
static void ep_compat_test(struct kunit *test)
{
	struct ep_test *t = test->priv;
	struct fi_cq_err_entry err = {};
	struct fi_cq_entry entry;
	u8 byte = 0;

	KUNIT_ASSERT_EQ(test, 0, fi_ep_open(t->world->domain, t->world->info, &t->ep));
	KUNIT_EXPECT_NULL(test, t->ep->fid.context);
	ep_bind_all(test);
	fake_connected(test, t->ep);
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_cq_error(t->cq, &err, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_sendto(t->ep, &byte, 1, NULL, 0, &byte));
	KUNIT_EXPECT_TRUE(test, fake_complete(t->ep, FAKE_TX, 0));
	KUNIT_EXPECT_EQ(test, 1, fi_cq_read(t->cq, &entry, 1));
	KUNIT_EXPECT_PTR_EQ(test, (void *)&byte, entry.op_context);
	KUNIT_EXPECT_EQ(test, 0, fi_recvfrom(t->ep, &byte, 1, NULL, 0, t));
	KUNIT_EXPECT_TRUE(test, fake_complete(t->ep, FAKE_RX, FI_ETRUNC));
	KUNIT_EXPECT_EQ(test, 1, fi_cq_error(t->cq, &err, 0));
	KUNIT_EXPECT_PTR_EQ(test, (void *)t, err.op_context);
	KUNIT_EXPECT_EQ(test, FI_ETRUNC, err.err);
	ep_close(test);
}

static int ep_gap_close(struct fi_fid *fid)
{
	return 0;
}

static ssize_t ep_gap_rma(struct fid_ep *ep, const struct fi_msg_rma *msg,
			  u64 flags)
{
	return -ENOSYS;
}

static const struct fi_ops ep_gap_fid = {
	.size = sizeof(struct fi_ops), .close = ep_gap_close,
};

static const struct fi_ops ep_gap_no_close = { .size = sizeof(struct fi_ops) };

static const struct fi_ops_msg ep_gap_no_send = {
	.size = sizeof(struct fi_ops_msg), .recvmsg = kofi_no_msg,
};

static const struct fi_ops_msg ep_gap_no_recv = {
	.size = sizeof(struct fi_ops_msg), .sendmsg = kofi_no_msg,
};

static const struct fi_ops_tagged ep_gap_no_tsend = {
	.size = sizeof(struct fi_ops_tagged), .recvmsg = kofi_no_tagged,
};

static const struct fi_ops_tagged ep_gap_no_trecv = {
	.size = sizeof(struct fi_ops_tagged), .sendmsg = kofi_no_tagged,
};

static const struct fi_ops_rma ep_gap_no_read = {
	.size = sizeof(struct fi_ops_rma), .writemsg = ep_gap_rma,
};

static const struct fi_ops_rma ep_gap_no_write = {
	.size = sizeof(struct fi_ops_rma), .readmsg = ep_gap_rma,
};

static const struct fi_ops_atomic ep_gap_no_atomic = {
	.size = sizeof(struct fi_ops_atomic),
};

static const struct ep_gap_case {
	const char		*name;
	struct kofi_ep_ops	ops;
} ep_gap_cases[] = {
	{ "no close", { .fid = &ep_gap_no_close } },
	{ "no send", { .fid = &ep_gap_fid, .msg = &ep_gap_no_send } },
	{ "no receive", { .fid = &ep_gap_fid, .msg = &ep_gap_no_recv } },
	{ "no tagged send", { .fid = &ep_gap_fid,
			      .tagged = &ep_gap_no_tsend } },
	{ "no tagged receive", { .fid = &ep_gap_fid,
				 .tagged = &ep_gap_no_trecv } },
	{ "no read", { .fid = &ep_gap_fid, .rma = &ep_gap_no_read } },
	{ "no write", { .fid = &ep_gap_fid, .rma = &ep_gap_no_write } },
	{ "no atomic", { .fid = &ep_gap_fid, .atomic = &ep_gap_no_atomic } },
};

KUNIT_ARRAY_PARAM_DESC(ep_gap, ep_gap_cases, name);

/* What consumers call without a look at the slot must be there. */
static void ep_gap_test(struct kunit *test)
{
	const struct ep_gap_case *c = test->param_value;
	struct ep_test *t = test->priv;
	struct kofi_ep *ep = kunit_kzalloc(test, sizeof(*ep), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ep);
	KUNIT_EXPECT_EQ(test, -EINVAL, kofi_ep_init(ep, t->world->domain,
						    t->world->info, &c->ops,
						    NULL));
}

/* ------------------------------------------------------------------ binding */

enum { BIND_EQ, BIND_CQ, BIND_CNTR, BIND_DOMAIN, BIND_NULL };

static const struct {
	const char	*name;
	int		object;
	u64		flags;
	int		ret;
	int		again;	/* the same once more */
} ep_binds[] = {
	{ "event queue", BIND_EQ, 0, 0, -EBUSY },
	{ "event queue with flags", BIND_EQ, FI_RECV, -FI_EBADFLAGS,
	  -FI_EBADFLAGS },
	{ "transmit", BIND_CQ, FI_TRANSMIT, 0, -EBUSY },
	{ "receive", BIND_CQ, FI_RECV, 0, -EBUSY },
	{ "both", BIND_CQ, FI_TRANSMIT | FI_RECV, 0, -EBUSY },
	{ "both, selective", BIND_CQ, FI_TRANSMIT | FI_RECV |
	  FI_SELECTIVE_COMPLETION, 0, -EBUSY },
	{ "no direction", BIND_CQ, 0, -FI_EBADFLAGS, -FI_EBADFLAGS },
	{ "selective alone", BIND_CQ, FI_SELECTIVE_COMPLETION, -FI_EBADFLAGS,
	  -FI_EBADFLAGS },
	{ "completion queue, counter flag", BIND_CQ, FI_RECV | FI_WRITE,
	  -FI_EBADFLAGS, -FI_EBADFLAGS },
	{ "counter of one kind", BIND_CNTR, FI_READ, 0, -EBUSY },
	{ "counter of all kinds", BIND_CNTR, FI_SEND | FI_RECV | FI_READ |
	  FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0, -EBUSY },
	{ "counter of nothing", BIND_CNTR, 0, -FI_EBADFLAGS, -FI_EBADFLAGS },
	{ "counter, selective", BIND_CNTR, FI_SEND | FI_SELECTIVE_COMPLETION,
	  -FI_EBADFLAGS, -FI_EBADFLAGS },
	{ "a domain", BIND_DOMAIN, 0, -EINVAL, -EINVAL },
	{ "nothing", BIND_NULL, 0, -EINVAL, -EINVAL },
};

static struct fi_fid *ep_bind_object(struct ep_test *t, int object)
{
	switch (object) {
	case BIND_EQ:
		return &t->eq->fid;
	case BIND_CQ:
		return &t->cq->fid;
	case BIND_CNTR:
		return &t->cntr->fid;
	case BIND_DOMAIN:
		return &t->world->domain->fid;
	default:
		return NULL;
	}
}

static void ep_bind_test(struct kunit *test)
{
	struct ep_test *t = test->priv;
	struct fi_fid *fid;
	int i, ret;

	for (i = 0; i < ARRAY_SIZE(ep_binds); i++) {
		fid = ep_bind_object(t, ep_binds[i].object);
		ep_open(test);
		/* If the provider does not want it, nothing has happened. */
		if (!ep_binds[i].ret) {
			fake_fail_next(-ENOMEM);
			KUNIT_EXPECT_EQ_MSG(test, -ENOMEM,
					    fi_ep_bind(t->ep, fid,
						       ep_binds[i].flags),
					    "%s", ep_binds[i].name);
		}
		ret = fi_ep_bind(t->ep, fid, ep_binds[i].flags);
		KUNIT_EXPECT_EQ_MSG(test, ep_binds[i].ret, ret, "%s",
				    ep_binds[i].name);
		ret = fi_ep_bind(t->ep, fid, ep_binds[i].flags);
		KUNIT_EXPECT_EQ_MSG(test, ep_binds[i].again, ret, "%s, again",
				    ep_binds[i].name);
		if (!ep_binds[i].ret)
			KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(fid));
		ep_close(test);
	}
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_ep_bind(NULL, &t->eq->fid, 0));
}

/* Objects of another fabric and domain are refused. */
static void ep_foreign_test(struct kunit *test)
{
	struct ep_test *t = test->priv;
	struct fake_world *other = fake_open(test);
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct fid_eq *eq;

	KUNIT_ASSERT_EQ(test, 0, fi_eq_open(other->fabric, NULL, &eq, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_cq_open(other->domain, NULL, &cq, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_cntr_open(other->domain, NULL, &cntr,
					      NULL));
	ep_open(test);
	KUNIT_EXPECT_EQ(test, -FI_EDOMAIN, fi_ep_bind(t->ep, &eq->fid, 0));
	KUNIT_EXPECT_EQ(test, -FI_EDOMAIN,
			fi_ep_bind(t->ep, &cq->fid, FI_RECV));
	KUNIT_EXPECT_EQ(test, -FI_EDOMAIN,
			fi_ep_bind(t->ep, &cntr->fid, FI_RECV));
	ep_close(test);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cntr->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&eq->fid));
	fake_close(test, other);
}

/* ----------------------------------------------------------------- enabling */

static const struct {
	const char	*name;
	u64		caps;
	bool		eq;
	u64		cq;
	u64		cntr;
	int		ret;
} ep_enables[] = {
	{ "all bound", FI_MSG, true, FI_TRANSMIT | FI_RECV, 0, 0 },
	{ "no event queue", FI_MSG, false, FI_TRANSMIT | FI_RECV, 0,
	  -FI_ENOEQ },
	{ "nothing to complete to", FI_MSG, true, 0, 0, -FI_ENOCQ },
	{ "no transmit queue", FI_MSG, true, FI_RECV, 0, -FI_ENOCQ },
	{ "no receive queue", FI_MSG, true, FI_TRANSMIT, 0, -FI_ENOCQ },
	{ "receives only", FI_MSG | FI_RECV, true, FI_RECV, 0, 0 },
	{ "sends only", FI_MSG | FI_SEND, true, FI_TRANSMIT, 0, 0 },
	{ "receives and reads", FI_MSG | FI_RECV | FI_READ, true, FI_RECV, 0,
	  -FI_ENOCQ },
	{ "counters only", FI_MSG, true, 0, FI_SEND | FI_RECV, 0 },
	{ "counter and queue", FI_MSG, true, FI_RECV, FI_WRITE, 0 },
	{ "counter of the wrong side", FI_MSG, true, FI_RECV, FI_REMOTE_WRITE,
	  -FI_ENOCQ },
};

static void ep_enable_test(struct kunit *test)
{
	struct ep_test *t = test->priv;
	u64 caps = t->world->info->caps;
	int i;

	for (i = 0; i < ARRAY_SIZE(ep_enables); i++) {
		t->world->info->caps = ep_enables[i].caps;
		ep_open(test);
		if (ep_enables[i].eq)
			KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(t->ep, &t->eq->fid,
							    0));
		if (ep_enables[i].cq)
			KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(t->ep, &t->cq->fid,
							    ep_enables[i].cq));
		if (ep_enables[i].cntr)
			KUNIT_ASSERT_EQ(test, 0,
					fi_ep_bind(t->ep, &t->cntr->fid,
						   ep_enables[i].cntr));
		KUNIT_EXPECT_EQ_MSG(test, ep_enables[i].ret, fi_enable(t->ep),
				    "%s", ep_enables[i].name);
		ep_close(test);
	}
	t->world->info->caps = caps;

	ep_open(test);
	ep_bind_all(test);
	KUNIT_EXPECT_EQ(test, -FI_EOPBADSTATE,
			fi_recv(t->ep, test, 1, NULL, 0, NULL));
	KUNIT_EXPECT_EQ(test, -FI_EOPBADSTATE,
			fi_send(t->ep, test, 1, NULL, 0, NULL));
	fake_fail_next(-ENOMEM);
	KUNIT_EXPECT_EQ(test, -ENOMEM, fi_enable(t->ep));
	KUNIT_EXPECT_EQ(test, 0, fi_control(&t->ep->fid, FI_ENABLE, NULL));
	fake_fail_next(-ENOMEM);	/* a second time does not get there */
	KUNIT_EXPECT_EQ(test, 0, fi_enable(t->ep));
	fake_fail_next(0);
	KUNIT_EXPECT_EQ(test, 0, fi_recv(t->ep, test, 1, NULL, 0, NULL));
	KUNIT_EXPECT_EQ(test, -ENOTCONN,
			fi_send(t->ep, test, 1, NULL, 0, NULL));
	KUNIT_EXPECT_EQ(test, -FI_EOPBADSTATE,
			fi_ep_bind(t->ep, &t->cntr->fid, FI_SEND));
	KUNIT_EXPECT_EQ(test, -FI_EOPBADSTATE,
			kofi_ep_write_space(t->ep, NULL));
	kofi_ep_drain(t->ep);
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN,
			fi_recv(t->ep, test, 1, NULL, 0, NULL));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN,
			fi_send(t->ep, test, 1, NULL, 0, NULL));
	KUNIT_EXPECT_EQ(test, -FI_EOPBADSTATE, fi_enable(t->ep));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_enable(NULL));
	ep_close(test);
}

/* ------------------------------------------------------------------ options */

/* Limits of kinds of transfers are there where the endpoint is capable of the kind. */
static void ep_kind_option_test(struct kunit *test)
{
	static const struct {
		int	name;
		u64	caps;
		size_t	value;
	} options[] = {
		{ FI_OPT_MAX_TAGGED_SIZE, FI_TAGGED, 4096 },
		{ FI_OPT_MAX_RMA_SIZE, FI_RMA, 4096 },
		{ FI_OPT_MAX_ATOMIC_SIZE, FI_ATOMIC, 8 },
		{ FI_OPT_INJECT_TAGGED_SIZE, FI_TAGGED, 64 },
		{ FI_OPT_INJECT_RMA_SIZE, FI_RMA, 64 },
		{ FI_OPT_INJECT_ATOMIC_SIZE, FI_ATOMIC, 8 },
	};
	struct ep_test *t = test->priv;
	struct fi_info *info = t->world->info;
	const u64 caps = info->caps;
	size_t value, len;
	int i, with;

	for (i = 0; i < 2 * ARRAY_SIZE(options); i++) {
		with = i & 1;
		info->caps = caps & ~(FI_TAGGED | FI_RMA | FI_ATOMIC);
		info->caps |= with ? options[i / 2].caps : 0;
		ep_open(test);
		value = 99;
		len = sizeof(value);
		KUNIT_EXPECT_EQ_MSG(test, with ? 0 : -ENOPROTOOPT,
				    fi_getopt(&t->ep->fid, FI_OPT_ENDPOINT,
					      options[i / 2].name, &value, &len),
				    "%d", options[i / 2].name);
		if (with)
			KUNIT_EXPECT_EQ_MSG(test, options[i / 2].value, value,
					    "%d", options[i / 2].name);
		KUNIT_EXPECT_EQ(test, -ENOPROTOOPT,
				fi_setopt(&t->ep->fid, FI_OPT_ENDPOINT,
					  options[i / 2].name, &value,
					  sizeof(value)));
		ep_close(test);
	}
	info->caps = caps;
}

static void ep_option_test(struct kunit *test)
{
	struct ep_test *t = test->priv;
	static const struct {
		int	name;
		size_t	value;
		int	ret;
	} options[] = {
		{ FI_OPT_MAX_MSG_SIZE, 4096, 0 },
		{ FI_OPT_INJECT_MSG_SIZE, 64, 0 },
		{ FI_OPT_TX_SIZE, 11, 0 },
		{ FI_OPT_RX_SIZE, 12, 0 },
		{ FI_OPT_CM_DATA_SIZE, KOFI_CM_DATA_MAX, 0 },
		{ FI_OPT_BUFFERED_MIN, 0, -ENOPROTOOPT },
		{ 12345, 0, -ENOPROTOOPT },
	};
	size_t value, len;
	u64 flags;
	int i;

	t->world->info->tx_attr->size = 11;
	t->world->info->rx_attr->size = 12;
	ep_open(test);
	for (i = 0; i < ARRAY_SIZE(options); i++) {
		value = 99;
		len = sizeof(value);
		KUNIT_EXPECT_EQ(test, options[i].ret,
				fi_getopt(&t->ep->fid, FI_OPT_ENDPOINT,
					  options[i].name, &value, &len));
		if (options[i].ret)
			continue;
		KUNIT_EXPECT_EQ(test, options[i].value, value);
		len = sizeof(value) - 1;
		KUNIT_EXPECT_EQ(test, -FI_ETOOSMALL,
				fi_getopt(&t->ep->fid, FI_OPT_ENDPOINT,
					  options[i].name, &value, &len));
		KUNIT_EXPECT_EQ(test, -ENOPROTOOPT,
				fi_setopt(&t->ep->fid, FI_OPT_ENDPOINT,
					  options[i].name, &value,
					  sizeof(value)));
	}
	len = sizeof(value);
	KUNIT_EXPECT_EQ(test, -ENOPROTOOPT,
			fi_getopt(&t->ep->fid, 1, FI_OPT_TX_SIZE, &value,
				  &len));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_getopt(&t->ep->fid, FI_OPT_ENDPOINT, FI_OPT_TX_SIZE,
				  &value, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_getopt(&t->cq->fid, FI_OPT_ENDPOINT, FI_OPT_TX_SIZE,
				  &value, &len));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_setopt(NULL, FI_OPT_ENDPOINT, FI_OPT_TX_SIZE, &value,
				  len));

	flags = FI_TRANSMIT | FI_COMPLETION;
	KUNIT_EXPECT_EQ(test, 0, fi_control(&t->ep->fid, FI_SETOPSFLAG,
					    &flags));
	KUNIT_EXPECT_EQ(test, FI_COMPLETION, t->ep->tx_op_flags);
	KUNIT_EXPECT_EQ(test, 0ULL, t->ep->rx_op_flags);
	flags = FI_TRANSMIT;
	KUNIT_EXPECT_EQ(test, 0, fi_control(&t->ep->fid, FI_GETOPSFLAG,
					    &flags));
	KUNIT_EXPECT_EQ(test, FI_COMPLETION, flags);
	flags = FI_TRANSMIT | KOFI_NO_COMPLETION;
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS,
			fi_control(&t->ep->fid, FI_SETOPSFLAG, &flags));
	flags = FI_TRANSMIT | FI_RECV;
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_control(&t->ep->fid, FI_SETOPSFLAG, &flags));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_control(&t->ep->fid, FI_SETOPSFLAG, NULL));
	KUNIT_EXPECT_EQ(test, -ENOSYS,
			fi_control(&t->ep->fid, FI_BACKLOG, &i));
	ep_close(test);
}

/* What a provider does not act on cannot be chosen. */
static void ep_option_unknown_test(struct kunit *test)
{
	struct ep_test *t = test->priv;
	size_t value = 100, len = sizeof(value);
	u64 flags;

	ep_open(test);
	flags = FI_RECV | FI_MULTI_RECV;
	KUNIT_EXPECT_EQ(test, 0, fi_control(&t->ep->fid, FI_SETOPSFLAG,
					    &flags));
	KUNIT_EXPECT_EQ(test, 0, fi_setopt(&t->ep->fid, FI_OPT_ENDPOINT,
					   FI_OPT_MIN_MULTI_RECV, &value, len));
	KUNIT_EXPECT_EQ(test, -FI_ETOOSMALL,
			fi_setopt(&t->ep->fid, FI_OPT_ENDPOINT,
				  FI_OPT_MIN_MULTI_RECV, &value, len - 1));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_setopt(&t->ep->fid, FI_OPT_ENDPOINT,
				  FI_OPT_MIN_MULTI_RECV, &value, len + 1));
	fake_of(t->ep)->base.op_flags[0] &= ~FI_DELIVERY_COMPLETE;
	fake_of(t->ep)->base.op_flags[1] &= ~FI_MULTI_RECV;
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS,
			fi_control(&t->ep->fid, FI_SETOPSFLAG, &flags));
	flags = FI_TRANSMIT | FI_COMPLETION | FI_DELIVERY_COMPLETE;
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS,
			fi_control(&t->ep->fid, FI_SETOPSFLAG, &flags));
	KUNIT_EXPECT_EQ(test, 0ULL, t->ep->tx_op_flags);
	KUNIT_EXPECT_EQ(test, -ENOPROTOOPT,
			fi_setopt(&t->ep->fid, FI_OPT_ENDPOINT,
				  FI_OPT_MIN_MULTI_RECV, &value, len));
	KUNIT_EXPECT_EQ(test, -ENOPROTOOPT,
			fi_getopt(&t->ep->fid, FI_OPT_ENDPOINT,
				  FI_OPT_MIN_MULTI_RECV, &value, &len));
	ep_close(test);
}

/* ------------------------------------------------------------------- states */

/* The next event, or the error behind a negative value */
static int ep_event(struct kunit *test, struct ep_test *t, char *data,
		    size_t *len)
{
	u8 buf[sizeof(struct fi_eq_cm_entry) + KOFI_CM_DATA_MAX];
	struct fi_eq_cm_entry *cm = (void *)buf;
	struct fi_eq_err_entry err = {};
	ssize_t ret;
	u32 event;

	ret = fi_eq_read(t->eq, &event, buf, sizeof(buf), 0);
	if (ret == -FI_EAVAIL) {
		KUNIT_EXPECT_GT(test, fi_eq_readerr(t->eq, &err, 0), 0);
		KUNIT_EXPECT_PTR_EQ(test, &t->ep->fid, err.fid);
		KUNIT_EXPECT_STREQ(test, "context", err.context);
		*len = err.err_data_size;
		memcpy(data, err.err_data, *len);
		return -err.err;
	}
	if (ret < 0)
		return ret;
	KUNIT_EXPECT_PTR_EQ(test, &t->ep->fid, cm->fid);
	*len = ret - sizeof(*cm);
	memcpy(data, cm->data, *len);
	return event;
}

static void ep_state_test(struct kunit *test)
{
	struct ep_test *t = test->priv;
	struct kofi_ep *kep;
	char data[KOFI_CM_DATA_MAX];
	size_t len;

	/* Connected, and ended: one event each, in order */
	ep_open(test);
	ep_bind_all(test);
	kep = &fake_of(t->ep)->base;
	KUNIT_EXPECT_FALSE(test, kofi_ep_connected(kep, NULL, 0));
	KUNIT_EXPECT_FALSE(test, kofi_ep_disconnected(kep, ESHUTDOWN));
	KUNIT_EXPECT_EQ(test, 0, fi_enable(t->ep));
	kep->state = KOFI_EP_CONNECTING;
	KUNIT_EXPECT_FALSE(test, kofi_ep_disconnected(kep, ESHUTDOWN));
	KUNIT_EXPECT_TRUE(test, kofi_ep_connected(kep, "hello", 5));
	KUNIT_EXPECT_FALSE(test, kofi_ep_connected(kep, "again", 5));
	KUNIT_EXPECT_FALSE(test, kofi_ep_connect_failed(kep, EIO, 0, NULL, 0));
	KUNIT_EXPECT_TRUE(test, kofi_ep_disconnected(kep, ESHUTDOWN));
	KUNIT_EXPECT_FALSE(test, kofi_ep_disconnected(kep, ESHUTDOWN));
	KUNIT_EXPECT_EQ(test, (int)FI_CONNECTED, ep_event(test, t, data, &len));
	KUNIT_EXPECT_EQ(test, (size_t)5, len);
	KUNIT_EXPECT_MEMEQ(test, "hello", data, 5);
	KUNIT_EXPECT_EQ(test, (int)FI_SHUTDOWN, ep_event(test, t, data, &len));
	KUNIT_EXPECT_EQ(test, -EAGAIN, ep_event(test, t, data, &len));
	ep_close(test);
	KUNIT_EXPECT_EQ(test, -EAGAIN, ep_event(test, t, data, &len));

	/* Refused: one error entry, nothing else */
	ep_open(test);
	ep_bind_all(test);
	kep = &fake_of(t->ep)->base;
	KUNIT_EXPECT_EQ(test, 0, fi_enable(t->ep));
	kep->state = KOFI_EP_CONNECTING;
	KUNIT_EXPECT_TRUE(test, kofi_ep_connect_failed(kep, ECONNREFUSED, 1,
						       "no", 2));
	KUNIT_EXPECT_FALSE(test, kofi_ep_connected(kep, NULL, 0));
	KUNIT_EXPECT_FALSE(test, kofi_ep_disconnected(kep, ESHUTDOWN));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN,
			fi_recv(t->ep, test, 1, NULL, 0, NULL));
	KUNIT_EXPECT_EQ(test, -ECONNREFUSED, ep_event(test, t, data, &len));
	KUNIT_EXPECT_EQ(test, (size_t)2, len);
	KUNIT_EXPECT_EQ(test, -EAGAIN, ep_event(test, t, data, &len));
	ep_close(test);

	/* Drained while connecting, and while connected */
	ep_open(test);
	ep_bind_all(test);
	KUNIT_EXPECT_EQ(test, 0, fi_enable(t->ep));
	fake_of(t->ep)->base.state = KOFI_EP_CONNECTING;
	kofi_ep_drain(t->ep);
	KUNIT_EXPECT_EQ(test, -ECANCELED, ep_event(test, t, data, &len));
	KUNIT_EXPECT_EQ(test, -EAGAIN, ep_event(test, t, data, &len));
	ep_close(test);
	ep_open(test);
	ep_bind_all(test);
	fake_connected(test, t->ep);
	kofi_ep_drain(t->ep);
	kofi_ep_drain(t->ep);
	KUNIT_EXPECT_EQ(test, (int)FI_SHUTDOWN, ep_event(test, t, data, &len));
	KUNIT_EXPECT_EQ(test, -EAGAIN, ep_event(test, t, data, &len));
	ep_close(test);

	/* Nothing is left of an endpoint that is closed. */
	ep_open(test);
	ep_bind_all(test);
	KUNIT_EXPECT_EQ(test, 0, fi_enable(t->ep));
	kep = &fake_of(t->ep)->base;
	kep->state = KOFI_EP_CONNECTING;
	KUNIT_EXPECT_TRUE(test, kofi_ep_connected(kep, NULL, 0));
	ep_close(test);
	KUNIT_EXPECT_EQ(test, -EAGAIN, ep_event(test, t, data, &len));
}

#define EP_RACES	50

struct ep_race {
	struct kofi_ep	*ep;
	atomic_t	gate;
	atomic_t	steps[3];
};

static int ep_race_connect(void *arg)
{
	struct ep_race *race = arg;

	atomic_dec(&race->gate);
	while (atomic_read(&race->gate))
		cond_resched();
	atomic_add(kofi_ep_connected(race->ep, "c", 1), &race->steps[0]);
	atomic_add(kofi_ep_disconnected(race->ep, ESHUTDOWN), &race->steps[2]);
	return 0;
}

static int ep_race_fail(void *arg)
{
	struct ep_race *race = arg;

	atomic_dec(&race->gate);
	while (atomic_read(&race->gate))
		cond_resched();
	atomic_add(kofi_ep_connect_failed(race->ep, EIO, 0, NULL, 0),
		   &race->steps[1]);
	atomic_add(kofi_ep_disconnected(race->ep, ESHUTDOWN), &race->steps[2]);
	return 0;
}

/* Either way: exactly one end of the attempt, and the events say the same. */
static void ep_race_test(struct kunit *test)
{
	struct ep_test *t = test->priv;
	struct task_struct *tasks[2];
	char data[KOFI_CM_DATA_MAX];
	struct ep_race race;
	size_t len;
	int i;

	for (i = 0; i < EP_RACES; i++) {
		ep_open(test);
		ep_bind_all(test);
		KUNIT_ASSERT_EQ(test, 0, fi_enable(t->ep));
		memset(&race, 0, sizeof(race));
		race.ep = &fake_of(t->ep)->base;
		race.ep->state = KOFI_EP_CONNECTING;
		atomic_set(&race.gate, 2);
		tasks[0] = fake_thread(test, ep_race_connect, &race);
		tasks[1] = fake_thread(test, ep_race_fail, &race);
		while (atomic_read(&race.gate))
			cond_resched();
		fake_join(tasks[0]);
		fake_join(tasks[1]);
		KUNIT_EXPECT_EQ(test, 1, atomic_read(&race.steps[0]) +
					 atomic_read(&race.steps[1]));
		KUNIT_EXPECT_EQ(test, atomic_read(&race.steps[0]),
				atomic_read(&race.steps[2]));
		if (atomic_read(&race.steps[0])) {
			KUNIT_EXPECT_EQ(test, (int)FI_CONNECTED,
					ep_event(test, t, data, &len));
			KUNIT_EXPECT_EQ(test, (int)FI_SHUTDOWN,
					ep_event(test, t, data, &len));
		} else {
			KUNIT_EXPECT_EQ(test, -EIO,
					ep_event(test, t, data, &len));
		}
		KUNIT_EXPECT_EQ(test, -EAGAIN, ep_event(test, t, data, &len));
		ep_close(test);
	}
}

static void ep_cancel_test(struct kunit *test)
{
	struct ep_test *t = test->priv;
	struct fi_cq_err_entry err = {};
	struct fi_cq_entry entry;

	ep_open(test);
	ep_bind_all(test);
	fake_connected(test, t->ep);
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_cancel(NULL, t));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_cancel(&t->eq->fid, t));
	KUNIT_EXPECT_EQ(test, -ENOENT, fi_cancel(&t->ep->fid, t));
	KUNIT_EXPECT_EQ(test, 0L, fi_recv(t->ep, test, 1, NULL, 0, t));
	KUNIT_EXPECT_EQ(test, -ENOENT, fi_cancel(&t->ep->fid, test));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_cq_read(t->cq, &entry, 1));
	KUNIT_EXPECT_EQ(test, 0L, fi_cancel(&t->ep->fid, t));
	KUNIT_EXPECT_EQ(test, -FI_EAVAIL, fi_cq_read(t->cq, &entry, 1));
	KUNIT_EXPECT_EQ(test, 1L, fi_cq_readerr(t->cq, &err, 0));
	KUNIT_EXPECT_EQ(test, ECANCELED, err.err);
	KUNIT_EXPECT_PTR_EQ(test, (void *)t, err.op_context);
	ep_close(test);
}

/* A cancel that a drain overtakes, if it can */
static struct {
	struct completion	entered;
	struct completion	drained;
	int			calls;
} ep_overtake;

static void ep_overtake_report(void *context, int err)
{
	complete(&ep_overtake.entered);
	/* with a lock held nothing can come in between */
	if (!irqs_disabled())
		wait_for_completion_timeout(&ep_overtake.drained,
					    TEST_LIMIT(2 * HZ));
}

static void ep_overtake_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	ep_overtake.calls++;
}

struct ep_overtake_arg {
	struct fid_ep	*ep;
	void		*context;
};

static int ep_overtake_cancel(void *arg)
{
	struct ep_overtake_arg *a = arg;

	return fi_cancel(&a->ep->fid, a->context);
}

/* After a drain no callback comes, also of what was just being cancelled. */
static void ep_cancel_drain_test(struct kunit *test)
{
	static struct kofi_cqe cqe = { .done = ep_overtake_done };
	const struct kofi_cq_attr kattr = {
		.poll = KOFI_POLL_DIRECT, .done = true,
	};
	struct ep_test *t = test->priv;
	struct ep_overtake_arg arg;
	struct task_struct *task;
	struct fid_cq *cq;

	ep_overtake.calls = 0;
	init_completion(&ep_overtake.entered);
	init_completion(&ep_overtake.drained);
	KUNIT_ASSERT_EQ(test, 0, kofi_cq_open(t->world->domain, NULL, &kattr,
					      &cq, NULL));
	ep_open(test);
	fake_of(t->ep)->report = ep_overtake_report;
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(t->ep, &t->eq->fid, 0));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(t->ep, &cq->fid, FI_TRANSMIT |
					    FI_RECV));
	fake_connected(test, t->ep);
	KUNIT_EXPECT_EQ(test, 0L, fi_recv(t->ep, test, 1, NULL, 0, &cqe));
	arg = (struct ep_overtake_arg){ t->ep, &cqe };
	task = fake_thread(test, ep_overtake_cancel, &arg);
	KUNIT_EXPECT_NE(test, 0UL,
			wait_for_completion_timeout(&ep_overtake.entered,
						    TEST_LIMIT(10 * HZ)));
	kofi_ep_drain(t->ep);
	KUNIT_EXPECT_EQ(test, 1, ep_overtake.calls);
	complete(&ep_overtake.drained);
	fake_join(task);
	KUNIT_EXPECT_EQ(test, 0, kofi_cq_poll(cq, 8));
	ep_close(test);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cq->fid));
}

/* ------------------------------------------------------------- refused posts */

#define EP_REFUSE_ROUNDS	100000
#define EP_REFUSE_LINES		16
#define EP_REFUSE_STEP		16

/**
 * struct ep_refuse - a post is refused while the room it wants comes back
 * @kep: the endpoint
 * @cq: its queue, which calls back when it is polled
 * @gate: both tasks begin each round at the same time
 * @ended: the device's task has judged the last round
 * @refused: the post has not found room
 * @lag: cycles that the device waits longer than the post; below 0, the other way round
 * @told: write-space callbacks of the round
 * @lost: rounds with a post that was refused, and no callback
 * @met: rounds with a post that was refused
 * @line: cache lines that each task takes from the other in each round
 * @line.room: there is room; that of the last line counts
 */
struct ep_refuse {
	struct kofi_ep		*kep;
	struct fid_cq		*cq;
	struct fake_gate	gate;
	struct completion	ended;
	bool			refused;
	int			lag;
	int			told;
	int			lost;
	int			met;
	struct {
		int		room ____cacheline_aligned_in_smp;
	}			line[EP_REFUSE_LINES];
};

/* Stores wait in the CPU until all lines before theirs have been fetched. */
static void ep_refuse_set(struct ep_refuse *r, int room)
{
	int i;

	for (i = 0; i < EP_REFUSE_LINES; i++)
		WRITE_ONCE(r->line[i].room, room);
}

static void ep_refuse_space(struct fid_ep *ep, void *context)
{
	struct ep_refuse *r = context;

	r->told++;
}

static int ep_refuse_post(void *arg)
{
	struct ep_refuse *r = arg;
	struct kofi_ep *kep = r->kep;
	u32 i;

	for (i = 0; i < EP_REFUSE_ROUNDS; i++) {
		ep_refuse_set(r, 0);
		fake_gate_pass(&r->gate);
		fake_spin(-r->lag);
		r->refused = !kofi_ep_retry(kep, READ_ONCE(r->line[EP_REFUSE_LINES - 1].room));
		fake_gate_pass(&r->gate);
	}
	return 0;
}

/*
 * What is left of a round must not help the next one, in which the task that came
 * first this time comes a little later: so they keep meeting.
 */
static void ep_refuse_judge(struct ep_refuse *r)
{
	kofi_cq_poll(r->cq, 8);
	r->met += r->refused;
	r->lost += r->refused && !r->told;
	r->lag += r->refused ? -EP_REFUSE_STEP : EP_REFUSE_STEP;
	kofi_ep_unblock(r->kep);
	kofi_cq_poll(r->cq, 8);
	r->told = 0;
}

static int ep_refuse_device(void *arg)
{
	struct ep_refuse *r = arg;
	struct kofi_ep *kep = r->kep;
	u32 i;

	for (i = 0; i < EP_REFUSE_ROUNDS; i++) {
		fake_gate_pass(&r->gate);
		fake_spin(r->lag + (int)hash_32(i, 8));
		ep_refuse_set(r, 1);
		kofi_ep_unblock(kep);
		fake_gate_pass(&r->gate);
		ep_refuse_judge(r);
	}
	complete(&r->ended);
	return 0;
}

/* Either the post finds the room, or who has made it finds the post. */
static void ep_refuse_test(struct kunit *test)
{
	const struct kofi_cq_attr kattr = { .poll = KOFI_POLL_DIRECT };
	struct ep_refuse *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	struct ep_test *t = test->priv;
	struct task_struct *task[2];
	int i;

	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");
	KUNIT_ASSERT_NOT_NULL(test, r);
	KUNIT_ASSERT_EQ(test, 0, kofi_cq_open(t->world->domain, NULL, &kattr,
					      &r->cq, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(t->world->domain, t->world->info,
					     &t->ep, r));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(t->ep, &t->eq->fid, 0));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(t->ep, &r->cq->fid, FI_TRANSMIT |
					    FI_RECV));
	KUNIT_ASSERT_EQ(test, 0, kofi_ep_write_space(t->ep, ep_refuse_space));
	fake_connected(test, t->ep);
	r->kep = &fake_of(t->ep)->base;
	r->gate.tasks = 2;
	init_completion(&r->ended);
	task[0] = fake_thread_on(test, 0, ep_refuse_post, r);
	task[1] = fake_thread_on(test, 1, ep_refuse_device, r);
	/* a task that is joined before it has run would not run at all */
	wait_for_completion(&r->ended);
	for (i = 0; i < 2; i++)
		fake_join(task[i]);
	KUNIT_EXPECT_EQ(test, 0, r->lost);
	/* the tasks have met */
	KUNIT_EXPECT_GT(test, r->met, 0);
	KUNIT_EXPECT_LT(test, r->met, EP_REFUSE_ROUNDS);
	ep_close(test);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&r->cq->fid));
}

static struct kunit_case ep_cases[] = {
	KUNIT_CASE(ep_open_test),
	KUNIT_CASE(ep_compat_test),
	KUNIT_CASE_PARAM(ep_gap_test, ep_gap_gen_params),
	KUNIT_CASE(ep_bind_test),
	KUNIT_CASE(ep_foreign_test),
	KUNIT_CASE(ep_enable_test),
	KUNIT_CASE(ep_option_test),
	KUNIT_CASE(ep_kind_option_test),
	KUNIT_CASE(ep_option_unknown_test),
	KUNIT_CASE(ep_state_test),
	KUNIT_CASE(ep_race_test),
	KUNIT_CASE(ep_cancel_test),
	KUNIT_CASE(ep_cancel_drain_test),
	KUNIT_CASE(ep_refuse_test),
	{}
};

struct kunit_suite kofi_ep_suite = {
	.name		= "kofi_ep",
	.suite_init	= fake_suite_init,
	.suite_exit	= fake_suite_exit,
	.init		= ep_init,
	.exit		= ep_exit,
	.test_cases	= ep_cases,
};

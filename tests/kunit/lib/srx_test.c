// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared receive contexts: opening, binding, what is counted where; and what
 * peers do to memory, as far as the completion queue is concerned.
 */
#include <linux/module.h>

#include "../core/fake.h"
#include "../core/queues.h"

struct srx_test {
	struct fake_world	*world;
	struct fid_eq		*eq;
	struct fid_cq		*cq;
	struct fid_ep		*srx;
	struct fid_ep		*ep;
	struct kofi_rxmsg	msg;
	struct kofi_rxmsg	other;	/* never woken: it does not wait */
	int			wakes;
};

static void srx_wake(struct kofi_rxmsg *msg)
{
	container_of(msg, struct srx_test, msg)->wakes++;
}

static int srx_init(struct kunit *test)
{
	struct srx_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	test->priv = t;
	t->world = fake_open(test);
	KUNIT_ASSERT_EQ(test, 0, fi_eq_open(t->world->fabric, NULL, &t->eq,
					    NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_cq_open(t->world->domain, NULL, &t->cq,
					    NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_srx_context(t->world->domain, NULL, &t->srx,
						test));
	return 0;
}

static void srx_exit(struct kunit *test)
{
	struct srx_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->srx->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->cq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->eq->fid));
	fake_close(test, t->world);
}

/* An endpoint that sends through the queue; @rx: and receives through it */
static struct fid_ep *srx_open_ep(struct kunit *test, bool rx)
{
	struct srx_test *t = test->priv;
	struct fid_ep *ep;

	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(t->world->domain, t->world->info,
					     &ep, t));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &t->eq->fid, 0));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &t->cq->fid, FI_TRANSMIT |
					    (rx ? FI_RECV : 0)));
	return ep;
}

/* --------------------------------------------------------------- opening */

static const struct {
	const char		*name;
	struct fi_rx_attr	attr;
	int			ret;
} srx_attrs[] = {
	{ "defaults", {}, 0 },
	{ "all chosen", { .size = 7, .iov_limit = 3, .caps = FI_MSG | FI_RECV,
			  .op_flags = FI_COMPLETION }, 0 },
	{ "too many receives", { .size = SIZE_MAX }, -EINVAL },
	{ "too many segments", { .iov_limit = KOFI_IOV_MAX + 1 }, -EINVAL },
	{ "flags of a transmit", { .op_flags = FI_INJECT }, -FI_EBADFLAGS },
};

static void srx_open_test(struct kunit *test)
{
	struct srx_test *t = test->priv;
	struct fid_domain *domain = t->world->domain;
	struct fi_rx_attr attr;
	struct fid_ep *srx;
	size_t size, len;
	int i;

	for (i = 0; i < ARRAY_SIZE(srx_attrs); i++) {
		attr = srx_attrs[i].attr;
		KUNIT_EXPECT_EQ_MSG(test, srx_attrs[i].ret,
				    fi_srx_context(domain, &attr, &srx, t),
				    "%s", srx_attrs[i].name);
		if (srx_attrs[i].ret)
			continue;
		KUNIT_EXPECT_EQ(test, (size_t)FI_CLASS_SRX_CTX,
				srx->fid.fclass);
		KUNIT_EXPECT_PTR_EQ(test, (void *)t, srx->fid.context);
		len = sizeof(size);
		KUNIT_EXPECT_EQ(test, 0, fi_getopt(&srx->fid, FI_OPT_ENDPOINT,
						   FI_OPT_RX_SIZE, &size,
						   &len));
		KUNIT_EXPECT_EQ(test, attr.size ?: 256, size);
		KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&domain->fid));
		KUNIT_EXPECT_EQ(test, 0, fi_close(&srx->fid));
	}
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_srx_context(NULL, NULL, &srx, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_srx_context(domain, NULL, NULL,
						      NULL));
}

/* It has receives and nothing else. */
static void srx_use_test(struct kunit *test)
{
	struct srx_test *t = test->priv;
	struct fi_cq_err_entry err = {};
	size_t value = 0, len = sizeof(value);
	struct fi_cq_entry entry;
	u64 flags;

	KUNIT_EXPECT_EQ(test, -FI_ENOCQ, fi_enable(t->srx));
	KUNIT_EXPECT_EQ(test, -FI_ENOCQ, fi_recv(t->srx, t, 1, NULL, 0, t));
	KUNIT_EXPECT_EQ(test, -FI_ENOCQ, fi_trecv(t->srx, t, 1, NULL, 0, 1, 0,
						  t));
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS,
			fi_ep_bind(t->srx, &t->cq->fid, FI_TRANSMIT | FI_RECV));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_ep_bind(t->srx, &t->eq->fid, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_ep_bind(t->srx, &t->srx->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_ep_bind(t->srx, &t->cq->fid, FI_RECV));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_ep_bind(t->srx, &t->cq->fid, FI_RECV));
	KUNIT_EXPECT_EQ(test, 0, kofi_ep_write_space(t->srx, NULL));

	KUNIT_EXPECT_EQ(test, 0, fi_recv(t->srx, t, 1, NULL, 0, t));
	KUNIT_EXPECT_EQ(test, 0, fi_trecv(t->srx, t, 1, NULL, 0, 1, 0, t));
	KUNIT_EXPECT_EQ(test, -FI_EOPBADSTATE,
			kofi_ep_write_space(t->srx, NULL));
	KUNIT_EXPECT_EQ(test, 0, fi_control(&t->srx->fid, FI_ENABLE, NULL));
	KUNIT_EXPECT_EQ(test, -ENOSYS, fi_send(t->srx, t, 1, NULL, 0, t));
	KUNIT_EXPECT_EQ(test, -ENOSYS, fi_tsend(t->srx, t, 1, NULL, 0, 1, t));
	KUNIT_EXPECT_EQ(test, -ENOSYS, fi_read(t->srx, t, 1, NULL, 0, 0, 0, t));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_connect(t->srx, t, NULL, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, kofi_ep_remote_cqe(t->srx, NULL));
	KUNIT_EXPECT_EQ(test, -ENOSYS, fi_control(&t->srx->fid, FI_BACKLOG,
						  &len));

	KUNIT_EXPECT_EQ(test, 0, fi_getopt(&t->srx->fid, FI_OPT_ENDPOINT,
					   FI_OPT_MIN_MULTI_RECV, &value,
					   &len));
	KUNIT_EXPECT_EQ(test, (size_t)64, value);
	value = 0;
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_setopt(&t->srx->fid, FI_OPT_ENDPOINT,
				  FI_OPT_MIN_MULTI_RECV, &value, len));
	KUNIT_EXPECT_EQ(test, -FI_ETOOSMALL,
			fi_setopt(&t->srx->fid, FI_OPT_ENDPOINT,
				  FI_OPT_MIN_MULTI_RECV, &value, len - 1));
	KUNIT_EXPECT_EQ(test, -ENOPROTOOPT,
			fi_setopt(&t->srx->fid, FI_OPT_ENDPOINT,
				  FI_OPT_TX_SIZE, &value, len));
	flags = FI_RECV | FI_MULTI_RECV;
	KUNIT_EXPECT_EQ(test, 0, fi_control(&t->srx->fid, FI_SETOPSFLAG,
					    &flags));
	KUNIT_EXPECT_EQ(test, FI_MULTI_RECV, t->srx->rx_op_flags);

	/* untagged ones first, they are older */
	KUNIT_EXPECT_EQ(test, -ENOENT, fi_cancel(&t->srx->fid, test));
	KUNIT_EXPECT_EQ(test, 0, fi_cancel(&t->srx->fid, t));
	KUNIT_EXPECT_EQ(test, -FI_EAVAIL, fi_cq_read(t->cq, &entry, 1));
	KUNIT_EXPECT_EQ(test, 1, fi_cq_readerr(t->cq, &err, 0));
	KUNIT_EXPECT_EQ(test, FI_RECV | FI_MSG, err.flags);
	kofi_ep_drain(t->srx);
	KUNIT_EXPECT_EQ(test, 1, fi_cq_readerr(t->cq, &err, 0));
	KUNIT_EXPECT_EQ(test, FI_RECV | FI_TAGGED, err.flags);
	KUNIT_EXPECT_EQ(test, ECANCELED, err.err);
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fi_recv(t->srx, t, 1, NULL, 0, t));
	KUNIT_EXPECT_EQ(test, -FI_EOPBADSTATE, fi_enable(t->srx));
}

/* Flags and memory that a post refuses */
static void srx_refuse_test(struct kunit *test)
{
	struct srx_test *t = test->priv;
	static const u64 bad[] = {
		FI_INJECT, FI_PEEK, FI_REMOTE_CQ_DATA, FI_CLAIM,
	};
	static const u64 tbad[] = {
		FI_DISCARD, FI_MULTI_RECV, FI_PEEK | FI_CLAIM | FI_DISCARD,
		FI_INJECT,
	};
	struct kvec kv[2] = { { t, 1 }, { t, 1 } };
	struct fi_msg msg = { .msg_iov = kv, .iov_count = 2 };
	struct fi_msg_tagged tagged = { .msg_iov = kv, .iov_count = 2 };
	struct scatterlist sg;
	int i;

	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(t->srx, &t->cq->fid, FI_RECV));
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS,
				fi_recvmsg(t->srx, &msg, bad[i]));
	for (i = 0; i < ARRAY_SIZE(tbad); i++)
		KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS,
				fi_trecvmsg(t->srx, &tagged, tbad[i]));
	/* a claim of nothing, and parts must be in one piece */
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_trecvmsg(t->srx, &tagged, FI_CLAIM));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_recvmsg(t->srx, &msg, FI_MULTI_RECV));
	sg_init_one(&sg, t, 1);
	msg.vec = KOFI_SGL;
	msg.msg_sgl = &sg;
	msg.iov_count = 1;
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_recvmsg(t->srx, &msg, FI_MULTI_RECV));
	msg.vec = KOFI_KVEC;
	msg.msg_iov = NULL;
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_recvmsg(t->srx, &msg, 0));
	/* nothing of all that is left */
	KUNIT_EXPECT_EQ(test, 0LL,
			atomic64_read(&container_of(t->srx, struct kofi_ep,
						    ep)->posts[1].posts));
}

/* --------------------------------------------------------------- binding */

static void srx_bind_test(struct kunit *test)
{
	struct srx_test *t = test->priv;
	struct fake_world *other = fake_open(test);
	struct fid_ep *ep, *foreign;
	struct fid_cq *cq;

	KUNIT_ASSERT_EQ(test, 0, fi_cq_open(t->world->domain, NULL, &cq, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_srx_context(other->domain, NULL, &foreign,
						NULL));
	/* No queue at all */
	ep = srx_open_ep(test, false);
	KUNIT_EXPECT_EQ(test, -FI_EDOMAIN, fi_ep_bind(ep, &foreign->fid, 0));
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS,
			fi_ep_bind(ep, &t->srx->fid, FI_RECV));
	fake_fail_next(-ENOMEM);
	KUNIT_EXPECT_EQ(test, -ENOMEM, fi_ep_bind(ep, &t->srx->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_ep_bind(ep, &t->srx->fid, 0));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_ep_bind(ep, &t->srx->fid, 0));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&t->srx->fid));
	KUNIT_EXPECT_EQ(test, -FI_ENOCQ, fi_enable(ep));
	/* The context takes the endpoint's, and passes it on. */
	KUNIT_EXPECT_EQ(test, 0, fi_ep_bind(ep, &t->cq->fid, FI_RECV));
	KUNIT_EXPECT_EQ(test, 0, fi_enable(ep));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_ep_bind(t->srx, &cq->fid, FI_RECV));
	KUNIT_EXPECT_EQ(test, 0, fi_recv(t->srx, t, 1, NULL, 0, t));
	KUNIT_EXPECT_EQ(test, -ENOSYS, fi_recv(ep, t, 1, NULL, 0, t));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&ep->fid));

	ep = srx_open_ep(test, false);
	KUNIT_EXPECT_EQ(test, 0, fi_ep_bind(ep, &t->srx->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_enable(ep));
	KUNIT_EXPECT_PTR_EQ(test, fake_of(ep)->base.rx_cq,
			    fake_of(ep)->base.tx_cq);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&ep->fid));

	/* Another queue than the context's, before and after */
	ep = srx_open_ep(test, false);
	KUNIT_EXPECT_EQ(test, 0, fi_ep_bind(ep, &t->srx->fid, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_ep_bind(ep, &cq->fid, FI_RECV));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&ep->fid));
	ep = srx_open_ep(test, false);
	KUNIT_EXPECT_EQ(test, 0, fi_ep_bind(ep, &cq->fid, FI_RECV));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_ep_bind(ep, &t->srx->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&ep->fid));

	KUNIT_EXPECT_EQ(test, 0, fi_close(&foreign->fid));
	fake_close(test, other);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cq->fid));
}

/* ------------------------------------------------------- what is counted */

struct srx_stat {
	const char	*name;
	u64		value;
};

static void srx_stat(void *arg, const char *name, u64 value)
{
	struct srx_stat *stat = arg;

	if (!strcmp(name, stat->name))
		stat->value = value;
}

static u64 srx_stat_of(struct fid_ep *ep, const char *name)
{
	struct kofi_obj *obj = ep->fid.obj;
	struct srx_stat stat = { .name = name, .value = ~0ULL };

	obj->ops->stats(obj, srx_stat, &stat);
	return stat.value;
}

static void srx_count_test(struct kunit *test)
{
	struct srx_test *t = test->priv;
	struct fi_cntr_attr bytes = { .events = FI_CNTR_EVENTS_BYTES };
	struct fid_domain *domain = t->world->domain;
	struct kofi_wc wc = { .flags = FI_RECV | FI_MSG, .len = 5,
			      .src = FI_ADDR_NOTAVAIL };
	const struct fi_msg_tagged peek = { .tag = 7 };
	struct fid_cntr *cntr, *shared;
	struct kofi_rxop *op;
	struct kofi_rxq *q;
	struct fid_ep *ep;

	KUNIT_ASSERT_EQ(test, 0, fi_cntr_open(domain, &bytes, &cntr, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_cntr_open(domain, NULL, &shared, NULL));
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS,
			fi_ep_bind(t->srx, &shared->fid, FI_RECV | FI_SEND));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(t->srx, &shared->fid, FI_RECV));
	ep = srx_open_ep(test, true);
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &cntr->fid, FI_RECV));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &t->srx->fid, 0));
	fake_connected(test, ep);
	q = kofi_ep_rxq(&fake_of(ep)->base, NULL);
	kofi_rxmsg_init(&t->msg, &fake_of(ep)->base, srx_wake);

	KUNIT_ASSERT_EQ(test, 0, fi_recv(t->srx, t, 9, NULL, 0, t));
	KUNIT_ASSERT_EQ(test, 0, fi_recv(t->srx, t, 9, NULL, 0, t));
	t->msg.len = 5;
	KUNIT_ASSERT_EQ(test, 0, kofi_rxq_match(q, &t->msg, &op));
	kofi_rxq_done(q, op, &wc);
	KUNIT_EXPECT_EQ(test, 0, fi_cancel(&t->srx->fid, t));
	/* A look at a message is an operation, but moves no bytes. */
	t->msg.tagged = true;
	t->msg.tag = 7;
	KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_rxq_match(q, &t->msg, &op));
	KUNIT_EXPECT_EQ(test, 0, fi_trecvmsg(t->srx, &peek, FI_PEEK));
	KUNIT_EXPECT_EQ(test, 0, t->wakes);
	KUNIT_EXPECT_EQ(test, 0, fi_trecvmsg(t->srx, &peek,
					     FI_PEEK | FI_DISCARD));
	KUNIT_EXPECT_EQ(test, 1, t->wakes);
	KUNIT_EXPECT_EQ(test, 0, kofi_rxq_match(q, &t->msg, &op));
	KUNIT_EXPECT_NULL(test, op);

	KUNIT_EXPECT_EQ(test, 5ULL, fi_cntr_read(cntr));
	KUNIT_EXPECT_EQ(test, 0ULL, fi_cntr_readerr(cntr));
	KUNIT_EXPECT_EQ(test, 3ULL, fi_cntr_read(shared));
	KUNIT_EXPECT_EQ(test, 1ULL, fi_cntr_readerr(shared));
	KUNIT_EXPECT_EQ(test, 4ULL, srx_stat_of(t->srx, "rx_posts"));
	KUNIT_EXPECT_EQ(test, 4ULL, srx_stat_of(t->srx, "rx_completions"));
	KUNIT_EXPECT_EQ(test, 1ULL, srx_stat_of(t->srx, "rx_errors"));
	KUNIT_EXPECT_EQ(test, 5ULL, srx_stat_of(t->srx, "rx_bytes"));
	KUNIT_EXPECT_EQ(test, ~0ULL, srx_stat_of(t->srx, "tx_posts"));
	KUNIT_EXPECT_EQ(test, 0ULL, srx_stat_of(ep, "rx_posts"));
	KUNIT_EXPECT_EQ(test, 3ULL, srx_stat_of(ep, "rx_completions"));
	KUNIT_EXPECT_EQ(test, 5ULL, srx_stat_of(ep, "rx_bytes"));
	KUNIT_EXPECT_EQ(test, 0ULL, srx_stat_of(ep, "rx_errors"));

	KUNIT_EXPECT_EQ(test, 0, fi_close(&ep->fid));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&shared->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cntr->fid));
	/* the context holds its counter to its own end */
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->srx->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&shared->fid));
	KUNIT_ASSERT_EQ(test, 0, fi_srx_context(domain, NULL, &t->srx, NULL));
}

/* A receive that a stream was given and did not fetch goes to the next one. */
static void srx_forget_test(struct kunit *test)
{
	struct srx_test *t = test->priv;
	struct kofi_wc wc = { .flags = FI_RECV | FI_MSG,
			      .src = FI_ADDR_NOTAVAIL };
	struct fi_cq_err_entry err = {};
	struct kofi_rxop *op;
	struct fi_cq_entry entry;
	struct kofi_rxq *q;
	struct fid_ep *ep;

	ep = srx_open_ep(test, true);
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &t->srx->fid, 0));
	fake_connected(test, ep);
	q = kofi_ep_rxq(&fake_of(ep)->base, NULL);
	kofi_rxmsg_init(&t->msg, &fake_of(ep)->base, srx_wake);
	kofi_rxmsg_init(&t->other, &fake_of(ep)->base, srx_wake);
	t->msg.len = 1;
	t->other.len = 1;

	KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_rxq_match(q, &t->msg, &op));
	KUNIT_EXPECT_EQ(test, 0, fi_recv(t->srx, t, 1, NULL, 0, t));
	KUNIT_EXPECT_EQ(test, 0, fi_recv(t->srx, t, 1, NULL, 0, test));
	KUNIT_EXPECT_EQ(test, 1, t->wakes);
	kofi_rxq_forget(q, &t->msg);
	/* it is the older of the two again */
	KUNIT_EXPECT_EQ(test, 0, kofi_rxq_match(q, &t->other, &op));
	KUNIT_EXPECT_PTR_EQ(test, (void *)t, op->context);
	kofi_rxq_done(q, op, &wc);
	KUNIT_EXPECT_EQ(test, 1, fi_cq_read(t->cq, &entry, 1));

	KUNIT_EXPECT_EQ(test, 0, fi_cancel(&t->srx->fid, test));
	KUNIT_EXPECT_EQ(test, 1, fi_cq_readerr(t->cq, &err, 0));

	/* one that is the message's already, when it is cancelled */
	KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_rxq_match(q, &t->msg, &op));
	KUNIT_EXPECT_EQ(test, 0, fi_recv(t->srx, t, 1, NULL, 0, t));
	KUNIT_EXPECT_EQ(test, -ENOENT, fi_cancel(&t->srx->fid, t));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_cq_readerr(t->cq, &err, 0));
	kofi_rxq_forget(q, &t->msg);
	KUNIT_EXPECT_EQ(test, 1, fi_cq_readerr(t->cq, &err, 0));
	KUNIT_EXPECT_EQ(test, ECANCELED, err.err);
	KUNIT_EXPECT_PTR_EQ(test, (void *)t, err.op_context);

	/* one that comes after the context has been drained */
	KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_rxq_match(q, &t->msg, &op));
	KUNIT_EXPECT_EQ(test, 0, fi_recv(t->srx, t, 1, NULL, 0, t));
	kofi_ep_drain(t->srx);
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_cq_readerr(t->cq, &err, 0));
	kofi_rxq_forget(q, &t->msg);
	KUNIT_EXPECT_EQ(test, 1, fi_cq_readerr(t->cq, &err, 0));
	KUNIT_EXPECT_EQ(test, ECANCELED, err.err);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&ep->fid));
}

/* ------------------------------------------------------ peers and memory */

struct srx_remote {
	struct kofi_cqe		cqe;
	struct kofi_cq_wait	wait;
	int			wakes;
	int			calls;
	struct kofi_wc		wc;
};

static void srx_remote_wake(struct kofi_cq_wait *wait)
{
	container_of(wait, struct srx_remote, wait)->wakes++;
}

static void srx_remote_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct srx_remote *r = container_of(wc->cqe, struct srx_remote, cqe);

	r->calls++;
	r->wc = *wc;
}

static const struct {
	const char	*name;
	u64		flags;
	bool		report;
	u64		reported;
} srx_remotes[] = {
	{ "read", FI_RMA | FI_REMOTE_READ, false, 0 },
	{ "write", FI_RMA | FI_REMOTE_WRITE, false, 0 },
	{ "write with a value", FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
	  true, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA },
	{ "read of a region with events",
	  FI_RMA | FI_REMOTE_READ | FI_RMA_EVENT, true,
	  FI_RMA | FI_REMOTE_READ },
	{ "write with a value to such a region", FI_RMA | FI_REMOTE_WRITE |
	  FI_REMOTE_CQ_DATA | FI_RMA_EVENT, true,
	  FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA },
};

static void srx_remote_one(struct kunit *test, int i, bool done, bool cqe)
{
	struct srx_test *t = test->priv;
	struct kofi_cq_attr kattr = { .done = done };
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct kofi_wc wc = {
		.flags = srx_remotes[i].flags, .len = 11,
		.data = srx_remotes[i].flags & FI_REMOTE_CQ_DATA ? 99 : 0,
		.src = FI_ADDR_NOTAVAIL, .mr_context = test, .mr_key = 5,
	};
	struct srx_remote r = { .cqe.done = srx_remote_done };
	bool reported = srx_remotes[i].report && (!done || cqe);
	struct fi_cq_tagged_entry e;
	struct fid_cntr *cntr;
	struct kofi_ep *kep;
	struct fid_ep *ep;
	struct fid_cq *cq;

	KUNIT_ASSERT_EQ(test, 0, kofi_cq_open(t->world->domain, &attr, &kattr,
					      &cq, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_cntr_open(t->world->domain, NULL, &cntr,
					      NULL));
	ep = srx_open_ep(test, false);
	kep = &fake_of(ep)->base;
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &cq->fid, FI_RECV |
					    FI_SELECTIVE_COMPLETION));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &cntr->fid,
					    FI_REMOTE_READ | FI_REMOTE_WRITE));
	if (cqe)
		KUNIT_EXPECT_EQ(test, 0, kofi_ep_remote_cqe(ep, &r.cqe));
	fake_connected(test, ep);
	KUNIT_EXPECT_EQ(test, -FI_EOPBADSTATE, kofi_ep_remote_cqe(ep, NULL));

	kofi_cq_wait_init(&r.wait, kep, srx_remote_wake);
	if (srx_remotes[i].report)
		KUNIT_EXPECT_EQ(test, 0, kofi_ep_remote_reserve(kep, &r.wait));
	kofi_ep_remote_complete(kep, &wc);
	KUNIT_EXPECT_EQ(test, 1ULL, fi_cntr_read(cntr));
	if (done) {
		KUNIT_EXPECT_EQ(test, (int)reported, kofi_cq_poll(cq, 9));
		KUNIT_EXPECT_EQ(test, (int)reported, r.calls);
		e.flags = r.wc.flags;
		e.len = r.wc.len;
		e.data = r.wc.data;
		e.tag = r.wc.mr_key;
		e.op_context = r.wc.mr_context;
	} else {
		KUNIT_EXPECT_EQ(test, reported ? 1 : -EAGAIN,
				fi_cq_read(cq, &e, 1));
	}
	if (reported) {
		KUNIT_EXPECT_EQ(test, srx_remotes[i].reported, e.flags);
		KUNIT_EXPECT_EQ(test, (size_t)11, e.len);
		KUNIT_EXPECT_EQ(test, wc.data, e.data);
		KUNIT_EXPECT_EQ(test, 5ULL, e.tag);
		KUNIT_EXPECT_PTR_EQ(test, (void *)test, e.op_context);
	}
	KUNIT_EXPECT_EQ(test, 0, fi_close(&ep->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cntr->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cq->fid));
}

static void srx_remote_test(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(srx_remotes); i++) {
		kunit_info(test, "%s", srx_remotes[i].name);
		srx_remote_one(test, i, false, false);
		srx_remote_one(test, i, true, false);
		srx_remote_one(test, i, true, true);
	}
}

/* A stream uses the slots receives leave, and is woken once for the next. */
static void srx_slot_test(struct kunit *test)
{
	struct srx_test *t = test->priv;
	struct fi_cq_attr attr = { .size = 2 };
	struct srx_remote r = {};
	const struct kofi_wc wc = {
		.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
	};
	struct fi_cq_entry entry;
	struct kofi_ep *kep;
	struct fid_ep *ep;
	struct fid_cq *cq;
	int i;

	KUNIT_ASSERT_EQ(test, 0, fi_cq_open(t->world->domain, &attr, &cq,
					    NULL));
	ep = srx_open_ep(test, false);
	kep = &fake_of(ep)->base;
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &cq->fid, FI_RECV));
	fake_connected(test, ep);
	kofi_cq_wait_init(&r.wait, kep, srx_remote_wake);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, 0, fi_recv(ep, t, 1, NULL, 0, t));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_recv(ep, t, 1, NULL, 0, t));
	KUNIT_EXPECT_EQ(test, 0, kofi_ep_remote_reserve(kep, &r.wait));
	KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_ep_remote_reserve(kep, &r.wait));
	KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_ep_remote_reserve(kep, &r.wait));
	kofi_ep_remote_complete(kep, &wc);
	KUNIT_EXPECT_EQ(test, 0, r.wakes);	/* the slot is the entry's */
	KUNIT_EXPECT_EQ(test, 1, fi_cq_read(cq, &entry, 1));
	KUNIT_EXPECT_EQ(test, 1, r.wakes);
	KUNIT_EXPECT_EQ(test, 0, kofi_ep_remote_reserve(kep, &r.wait));

	KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_ep_remote_reserve(kep, &r.wait));
	kofi_ep_remote_unreserve(kep);
	KUNIT_EXPECT_EQ(test, 2, r.wakes);
	KUNIT_EXPECT_EQ(test, 0, kofi_ep_remote_reserve(kep, &r.wait));

	KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_ep_remote_reserve(kep, &r.wait));
	kofi_ep_remote_cancel(kep, &r.wait);
	kofi_ep_remote_cancel(kep, &r.wait);
	kofi_ep_remote_unreserve(kep);
	KUNIT_EXPECT_EQ(test, 2, r.wakes);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&ep->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cq->fid));
}

static struct kunit_case srx_cases[] = {
	KUNIT_CASE(srx_open_test),
	KUNIT_CASE(srx_use_test),
	KUNIT_CASE(srx_refuse_test),
	KUNIT_CASE(srx_bind_test),
	KUNIT_CASE(srx_count_test),
	KUNIT_CASE(srx_forget_test),
	KUNIT_CASE(srx_remote_test),
	KUNIT_CASE(srx_slot_test),
	{}
};

struct kunit_suite kofi_srx_suite = {
	.name		= "lib_srx",
	.suite_init	= fake_suite_init,
	.suite_exit	= fake_suite_exit,
	.init		= srx_init,
	.exit		= srx_exit,
	.test_cases	= srx_cases,
};

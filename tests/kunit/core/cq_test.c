// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: formats, order, slots, waiting, callbacks and where they
 * run. Completions are made by hand, on an endpoint of the fake provider.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "../../../kofi/cq.h"
#include "fake.h"
#include "queues.h"

struct cq_test {
	struct fake_world	*world;
	struct fid_eq		*eq;
	struct fid_cq		*cq;
	struct fid_ep		*ep;
	struct kofi_ep		*kep;
	int			later;	/* completions of cq_complete_later() */
};

static int cq_init(struct kunit *test)
{
	struct cq_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	test->priv = t;
	t->world = fake_open(test);
	KUNIT_ASSERT_EQ(test, 0, fi_eq_open(t->world->fabric, NULL, &t->eq,
					    NULL));
	return 0;
}

static void cq_exit(struct kunit *test)
{
	struct cq_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->eq->fid));
	fake_close(test, t->world);
}

static struct fid_ep *cq_open_ep(struct kunit *test, struct fid_cq *tx,
				 struct fid_cq *rx, u64 flags, void *context,
				 void (*space)(struct fid_ep *, void *))
{
	struct cq_test *t = test->priv;
	struct fid_ep *ep;

	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(t->world->domain, t->world->info,
					     &ep, context));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &t->eq->fid, 0));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &tx->fid, FI_TRANSMIT | flags));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &rx->fid, FI_RECV | flags));
	KUNIT_ASSERT_EQ(test, 0, kofi_ep_write_space(ep, space));
	fake_connected(test, ep);
	return ep;
}

/* One queue, one endpoint that uses it both ways */
static void cq_open(struct kunit *test, struct fi_cq_attr *attr,
		    const struct kofi_cq_attr *kattr, u64 flags)
{
	struct cq_test *t = test->priv;

	KUNIT_ASSERT_EQ(test, 0, kofi_cq_open(t->world->domain, attr, kattr,
					      &t->cq, t));
	t->ep = cq_open_ep(test, t->cq, t->cq, flags, t, NULL);
	t->kep = &fake_of(t->ep)->base;
}

static void cq_close(struct kunit *test)
{
	struct cq_test *t = test->priv;

	if (t->ep)
		KUNIT_EXPECT_EQ(test, 0, fi_close(&t->ep->fid));
	t->ep = NULL;
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->cq->fid));
}

static void cq_receive(struct kunit *test, struct kofi_ep *ep, void *context,
		       int err)
{
	const struct kofi_wc wc = {
		.op_context = context, .err = err, .prov_errno = -err,
		.flags = FI_MSG | FI_RECV, .len = 10, .olen = err ? 20 : 0,
		.buf = test, .data = 30, .tag = 40, .src = 50,
	};

	KUNIT_EXPECT_EQ(test, 0, kofi_ep_rx_reserve(ep));
	kofi_ep_rx_complete(ep, ep, &wc, 0);
}

/* ------------------------------------------------------------------ opening */

static void cq_nothing(struct fid_cq *cq, void *context)
{
}

static const struct {
	const char		*name;
	struct fi_cq_attr	attr;
	struct kofi_cq_attr	kattr;
	int			ret;
} cq_attrs[] = {
	{ "plain", {}, {}, 0 },
	{ "one slot", { .size = 1 }, {}, 0 },
	{ "too large", { .size = SIZE_MAX }, {}, -EINVAL },
	{ "tagged", { .format = FI_CQ_FORMAT_TAGGED }, {}, 0 },
	{ "unknown format", { .format = FI_CQ_FORMAT_TAGGED + 1 }, {},
	  -EINVAL },
	{ "negative format", { .format = (enum fi_cq_format)-1 }, {},
	  -EINVAL },
	{ "threshold", { .wait_obj = FI_WAIT_UNSPEC,
			 .wait_cond = FI_CQ_COND_THRESHOLD }, {}, 0 },
	{ "unknown condition", { .wait_cond = FI_CQ_COND_THRESHOLD + 1 }, {},
	  -EINVAL },
	{ "unknown flag", { .flags = FI_WRITE }, {}, -FI_EBADFLAGS },
	{ "affinity", { .flags = FI_AFFINITY }, {}, 0 },
	{ "affinity to no CPU",
	  { .flags = FI_AFFINITY, .signaling_vector = -1 }, {}, -EINVAL },
	{ "descriptor", { .wait_obj = FI_WAIT_FD }, {}, -ENOSYS },
	{ "softirq", {}, { .poll = KOFI_POLL_SOFTIRQ }, 0 },
	{ "work queue", {}, { .poll = KOFI_POLL_WORKQUEUE }, 0 },
	{ "unknown context", {}, { .poll = KOFI_POLL_WORKQUEUE + 1 },
	  -EINVAL },
	{ "CPU below 0", {}, { .flags = FI_AFFINITY, .cpu = -1 }, -EINVAL },
	{ "CPU too high", {}, { .flags = FI_AFFINITY, .cpu = INT_MAX },
	  -EINVAL },
	{ "CPU without affinity", { .signaling_vector = INT_MAX },
	  { .cpu = INT_MAX }, 0 },
	{ "unknown flag", {}, { .flags = FI_WRITE }, -FI_EBADFLAGS },
	{ "callbacks", {}, { .done = true }, 0 },
	{ "callbacks and waiting", { .wait_obj = FI_WAIT_UNSPEC },
	  { .done = true }, -EINVAL },
	{ "callbacks and notify", {},
	  { .poll = KOFI_POLL_SOFTIRQ, .done = true, .notify = cq_nothing },
	  -EINVAL },
	{ "notify", {}, { .poll = KOFI_POLL_SOFTIRQ, .notify = cq_nothing },
	  0 },
	{ "notify, direct", {}, { .notify = cq_nothing }, -EINVAL },
};

static void cq_open_test(struct kunit *test)
{
	struct cq_test *t = test->priv;
	struct fi_cq_attr attr;
	struct fid_cq *cq;
	int i;

	for (i = 0; i < ARRAY_SIZE(cq_attrs); i++) {
		attr = cq_attrs[i].attr;
		KUNIT_EXPECT_EQ_MSG(test, cq_attrs[i].ret,
				    kofi_cq_open(t->world->domain, &attr,
						 &cq_attrs[i].kattr, &cq, t),
				    "%s", cq_attrs[i].name);
		if (!cq_attrs[i].ret)
			KUNIT_EXPECT_EQ(test, 0, fi_close(&cq->fid));
	}
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_cq_open(NULL, NULL, &cq, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_cq_open(t->world->domain, NULL, NULL, NULL));
	/* any CPU, unless one was named */
	attr = (struct fi_cq_attr){ .flags = FI_AFFINITY };
	KUNIT_ASSERT_EQ(test, 0, fi_cq_open(t->world->domain, &attr, &cq,
					    NULL));
	KUNIT_EXPECT_EQ(test, 0, container_of(cq, struct kofi_cq, cq)->cpu);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cq->fid));
	KUNIT_ASSERT_EQ(test, 0, fi_cq_open(t->world->domain, NULL, &cq, NULL));
	KUNIT_EXPECT_EQ(test, -1, container_of(cq, struct kofi_cq, cq)->cpu);
	KUNIT_EXPECT_EQ(test, -EINVAL, kofi_cq_poll(cq, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_cq_signal(cq));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_cq_read(cq, NULL, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_cq_read(NULL, &attr, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_cq_sread(cq, &attr, 1, NULL, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_cq_readerr(cq, NULL, 0));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&t->world->domain->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cq->fid));
}

/* ------------------------------------------------------------------ reading */

static void cq_format_test(struct kunit *test)
{
	struct cq_test *t = test->priv;
	static const size_t sizes[] = {
		[FI_CQ_FORMAT_UNSPEC] = sizeof(struct fi_cq_entry),
		[FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry),
		[FI_CQ_FORMAT_MSG] = sizeof(struct fi_cq_msg_entry),
		[FI_CQ_FORMAT_DATA] = sizeof(struct fi_cq_data_entry),
		[FI_CQ_FORMAT_TAGGED] = sizeof(struct fi_cq_tagged_entry),
	};
	struct fi_cq_tagged_entry want = {
		.flags = FI_MSG | FI_RECV, .len = 10, .buf = test, .data = 30,
		.tag = 40,
	};
	u8 buf[4 * sizeof(want)];
	fi_addr_t src[4];
	int i, j;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct fi_cq_attr attr = { .format = i };
		u64 caps = t->world->info->caps;

		if (i & 1)
			t->world->info->caps |= FI_SOURCE;
		cq_open(test, &attr, NULL, 0);
		t->world->info->caps = caps;
		for (j = 0; j < 3; j++)
			cq_receive(test, t->kep, buf + j, 0);
		memset(buf, 0xee, sizeof(buf));
		KUNIT_EXPECT_EQ(test, 3L, fi_cq_readfrom(t->cq, buf, 4, src));
		for (j = 0; j < 3; j++) {
			want.op_context = buf + j;
			KUNIT_EXPECT_MEMEQ(test, (u8 *)&want,
					   buf + j * sizes[i], sizes[i]);
			KUNIT_EXPECT_EQ(test, src[j],
					i & 1 ? 50 : FI_ADDR_NOTAVAIL);
		}
		KUNIT_EXPECT_EQ(test, buf[3 * sizes[i]], 0xee);
		KUNIT_EXPECT_EQ(test, -EAGAIN, fi_cq_read(t->cq, buf, 4));
		cq_close(test);
	}
}

static void cq_error_test(struct kunit *test)
{
	struct cq_test *t = test->priv;
	struct fi_cq_err_entry err = { .err_data_size = 7, .err_data = t };
	struct fi_cq_entry entry[4];
	char buf[8];

	cq_open(test, NULL, NULL, 0);
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_cq_read(t->cq, NULL, 0));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_cq_readerr(t->cq, &err, 0));
	cq_receive(test, t->kep, &entry[0], 0);
	cq_receive(test, t->kep, &entry[1], EIO);
	cq_receive(test, t->kep, &entry[2], EIO);
	cq_receive(test, t->kep, &entry[3], 0);

	/* Each in its turn */
	KUNIT_EXPECT_EQ(test, 0L, fi_cq_read(t->cq, NULL, 0));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_cq_readerr(t->cq, &err, 0));
	KUNIT_EXPECT_EQ(test, 1L, fi_cq_read(t->cq, entry, 4));
	KUNIT_EXPECT_EQ(test, -FI_EAVAIL, fi_cq_read(t->cq, entry, 4));
	KUNIT_EXPECT_EQ(test, -FI_EAVAIL, fi_cq_read(t->cq, NULL, 0));
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS, fi_cq_readerr(t->cq, &err, 1));
	KUNIT_EXPECT_EQ(test, 1L, fi_cq_readerr(t->cq, &err, 0));
	KUNIT_EXPECT_PTR_EQ(test, (void *)&entry[1], err.op_context);
	KUNIT_EXPECT_EQ(test, EIO, err.err);
	KUNIT_EXPECT_EQ(test, -EIO, err.prov_errno);
	KUNIT_EXPECT_EQ(test, FI_MSG | FI_RECV, err.flags);
	KUNIT_EXPECT_EQ(test, (size_t)10, err.len);
	KUNIT_EXPECT_EQ(test, (size_t)20, err.olen);
	KUNIT_EXPECT_EQ(test, 30ULL, err.data);
	KUNIT_EXPECT_EQ(test, 40ULL, err.tag);
	KUNIT_EXPECT_EQ(test, FI_ADDR_NOTAVAIL, err.src_addr);
	KUNIT_EXPECT_EQ(test, (size_t)0, err.err_data_size);
	KUNIT_EXPECT_EQ(test, 1L, fi_cq_readerr(t->cq, &err, 0));
	KUNIT_EXPECT_PTR_EQ(test, (void *)&entry[2], err.op_context);
	KUNIT_EXPECT_NULL(test, err.err_data);
	KUNIT_EXPECT_EQ(test, 1L, fi_cq_read(t->cq, entry, 4));
	KUNIT_EXPECT_PTR_EQ(test, (void *)&entry[3], entry[0].op_context);
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_cq_readerr(t->cq, &err, 0));
	KUNIT_EXPECT_NOT_NULL(test, fi_cq_strerror(t->cq, EIO, NULL, buf, 8));

	/* What is not read yet survives the endpoint. */
	cq_receive(test, t->kep, &entry[2], 0);
	cq_receive(test, t->kep, &entry[3], EIO);
	KUNIT_EXPECT_EQ(test, 0L, fi_recv(t->ep, buf, 1, NULL, 0, buf));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&t->cq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->ep->fid));
	t->ep = NULL;
	KUNIT_EXPECT_EQ(test, 1L, fi_cq_read(t->cq, entry, 4));
	KUNIT_EXPECT_PTR_EQ(test, (void *)&entry[2], entry[0].op_context);
	KUNIT_EXPECT_EQ(test, 1L, fi_cq_readerr(t->cq, &err, 0));
	KUNIT_EXPECT_EQ(test, EIO, err.err);
	KUNIT_EXPECT_EQ(test, 1L, fi_cq_readerr(t->cq, &err, 0));
	KUNIT_EXPECT_EQ(test, ECANCELED, err.err);
	KUNIT_EXPECT_PTR_EQ(test, (void *)buf, err.op_context);
	cq_close(test);
}

/* Read so many entries; contexts count from @out. */
static unsigned long cq_read_counted(struct kunit *test, size_t count,
				     unsigned long out)
{
	struct cq_test *t = test->priv;
	struct fi_cq_entry entry[5];
	ssize_t i, n = fi_cq_read(t->cq, entry, count);

	KUNIT_ASSERT_EQ(test, n, count);
	for (i = 0; i < n; i++, out++)
		KUNIT_EXPECT_PTR_EQ(test, (void *)out, entry[i].op_context);
	return out;
}

/*
 * Round and round a ring whose size is no power of two: one entry or more stays
 * there.
 */
static void cq_wrap_test(struct kunit *test)
{
	struct cq_test *t = test->priv;
	struct fi_cq_attr attr = { .size = 5 };
	struct fi_cq_err_entry err = {};
	unsigned long in = 1, out = 1;
	struct kofi_cq *cq;
	bool wrapped = false;
	int i, j;

	cq_open(test, &attr, NULL, 0);
	cq = container_of(t->cq, struct kofi_cq, cq);
	cq_receive(test, t->kep, (void *)in++, 0);
	for (i = 0; i < 100; i++) {
		for (j = 0; j <= i % 4; j++)
			cq_receive(test, t->kep, (void *)in++, 0);
		wrapped |= cq->next < cq->own.first;
		while (in - out > 1)
			out = cq_read_counted(test, min(1UL + i % 3,
							in - out - 1), out);
	}
	KUNIT_EXPECT_TRUE(test, wrapped);
	/* a queue that is empty begins where it began */
	out = cq_read_counted(test, 1, out);
	KUNIT_EXPECT_EQ(test, cq->own.first, 0);
	cq_receive(test, t->kep, (void *)in++, EIO);
	cq_receive(test, t->kep, (void *)in++, EIO);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, fi_cq_readerr(t->cq, &err, 0), 1);
	KUNIT_EXPECT_EQ(test, cq->own.first, 0);
	cq_close(test);
}

/* What becomes of a transmit's completion */
static const struct {
	const char	*name;
	bool		selective;
	u64		op_flags;
	int		err;
	bool		reported;
	bool		context;
} cq_reports[] = {
	{ "plain", false, 0, 0, true, true },
	{ "plain, failed", false, 0, EIO, true, true },
	{ "inject", false, FI_INJECT | KOFI_NO_COMPLETION, 0, false, false },
	{ "inject, failed", false, FI_INJECT | KOFI_NO_COMPLETION, EIO, true,
	  false },
	{ "inject flag alone", false, FI_INJECT, 0, true, true },
	{ "selective, not asked for", true, 0, 0, false, false },
	{ "selective, asked for", true, FI_COMPLETION, 0, true, true },
	{ "selective, failed", true, 0, EIO, true, true },
	{ "selective inject", true, FI_INJECT | KOFI_NO_COMPLETION, 0, false,
	  false },
	{ "selective inject, failed", true, FI_INJECT | KOFI_NO_COMPLETION,
	  EIO, true, false },
};

struct cq_call {
	struct kofi_cqe	cqe;
	struct kofi_wc	wc;
	int		calls;
	int		seq;
};

static int cq_calls;

static void cq_called(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct cq_call *call = container_of(wc->cqe, struct cq_call, cqe);

	/* One at a time: a poll from in here finds nothing to do. */
	if (kofi_cq_poll(cq, 1) > 0)
		call->calls = 100;
	call->wc = *wc;
	call->seq = ++cq_calls;
	WRITE_ONCE(call->calls, call->calls + 1);
}

static void cq_report_test(struct kunit *test)
{
	struct cq_test *t = test->priv;
	const struct kofi_cq_attr done = {
		.poll = KOFI_POLL_DIRECT, .done = true,
	};
	struct fi_cq_attr attr = { .size = 1, .format = FI_CQ_FORMAT_MSG };
	int i;

	for (i = 0; i < ARRAY_SIZE(cq_reports); i++) {
		struct cq_call call = { .cqe.done = cq_called };
		struct kofi_wc wc = {
			.cqe = &call.cqe, .flags = FI_MSG | FI_SEND,
			.err = cq_reports[i].err, .len = 1000,
		};
		u64 sel = cq_reports[i].selective ? FI_SELECTIVE_COMPLETION : 0;
		struct fi_cq_err_entry err = {};
		struct fi_cq_msg_entry entry;
		void *context = NULL;
		ssize_t ret;

		/* Read */
		cq_open(test, &attr, NULL, sel);
		KUNIT_EXPECT_EQ(test, 0, kofi_ep_tx_reserve(t->kep, NULL));
		kofi_ep_tx_complete(t->kep, &wc, cq_reports[i].op_flags);
		ret = fi_cq_read(t->cq, &entry, 1);
		if (ret == 1) {
			context = entry.op_context;
			KUNIT_EXPECT_EQ(test, FI_MSG | FI_SEND, entry.flags);
			KUNIT_EXPECT_EQ(test, (size_t)0, entry.len);
		} else if (ret == -FI_EAVAIL) {
			ret = fi_cq_readerr(t->cq, &err, 0);
			context = err.op_context;
			KUNIT_EXPECT_EQ(test, EIO, err.err);
		}
		KUNIT_EXPECT_EQ_MSG(test, ret, cq_reports[i].reported ? 1 :
				    -EAGAIN, "%s", cq_reports[i].name);
		KUNIT_EXPECT_EQ_MSG(test, !!context, cq_reports[i].context,
				    "%s", cq_reports[i].name);
		KUNIT_EXPECT_EQ(test, 1LL,
				atomic64_read(&t->kep->posts[0].posts));
		KUNIT_EXPECT_EQ(test, 1ULL, t->kep->stats[0].completions);
		KUNIT_EXPECT_EQ(test, (u64)!!wc.err, t->kep->stats[0].errors);
		KUNIT_EXPECT_EQ(test, wc.err ? 0ULL : 1000ULL,
				t->kep->stats[0].bytes);
		/* The slots are free again. */
		KUNIT_EXPECT_EQ(test, 0, kofi_ep_tx_reserve(t->kep, NULL));
		KUNIT_EXPECT_EQ(test, 0, kofi_ep_tx_reserve(t->kep, NULL));
		KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_ep_tx_reserve(t->kep, NULL));
		kofi_ep_tx_unreserve(t->kep);
		kofi_ep_tx_unreserve(t->kep);
		cq_close(test);

		/* Called back */
		cq_open(test, &attr, &done, sel);
		KUNIT_EXPECT_EQ(test, -EINVAL, fi_cq_read(t->cq, &entry, 1));
		KUNIT_EXPECT_EQ(test, -EINVAL, fi_cq_readerr(t->cq, &err, 0));
		KUNIT_EXPECT_EQ(test, 0, kofi_ep_tx_reserve(t->kep, NULL));
		kofi_ep_tx_complete(t->kep, &wc, cq_reports[i].op_flags);
		KUNIT_EXPECT_EQ(test, 0, call.calls);
		KUNIT_EXPECT_EQ_MSG(test, (int)cq_reports[i].context,
				    kofi_cq_poll(t->cq, 10), "%s",
				    cq_reports[i].name);
		KUNIT_EXPECT_EQ(test, (int)cq_reports[i].context, call.calls);
		KUNIT_EXPECT_EQ(test, (u64)!!wc.err, t->kep->stats[0].errors);
		cq_close(test);
	}
}

/* What a selective queue reports of receives that have not asked for it */
static const struct {
	const char	*name;
	u64		op_flags, flags;
	int		reported;
} cq_selected[] = {
	{ "plain", 0, FI_RECV, 0 },
	{ "asked for", FI_COMPLETION, FI_RECV, 1 },
	{ "part of a multi-receive", FI_MULTI_RECV, FI_RECV, 0 },
	{ "last part of one", FI_MULTI_RECV, FI_RECV | FI_MULTI_RECV, 1 },
	{ "peek", FI_PEEK, FI_RECV, 1 },
	{ "peek and claim", FI_PEEK | FI_CLAIM, FI_RECV, 1 },
	{ "claim", FI_CLAIM, FI_RECV, 0 },
};

static void cq_selective_test(struct kunit *test)
{
	struct cq_test *t = test->priv;
	const struct kofi_cq_attr done = {
		.poll = KOFI_POLL_DIRECT, .done = true,
	};
	struct fi_cq_entry entry;
	int i;

	for (i = 0; i < ARRAY_SIZE(cq_selected); i++) {
		struct cq_call call = { .cqe.done = cq_called };
		const struct kofi_wc wc = {
			.cqe = &call.cqe, .flags = cq_selected[i].flags,
		};

		cq_open(test, NULL, NULL, FI_SELECTIVE_COMPLETION);
		KUNIT_EXPECT_EQ(test, 0, kofi_ep_rx_reserve(t->kep));
		kofi_ep_rx_complete(t->kep, t->kep, &wc, cq_selected[i].op_flags);
		KUNIT_EXPECT_EQ_MSG(test, cq_selected[i].reported ? 1L :
				    -EAGAIN, fi_cq_read(t->cq, &entry, 1),
				    "%s", cq_selected[i].name);
		cq_close(test);

		cq_open(test, NULL, &done, FI_SELECTIVE_COMPLETION);
		KUNIT_EXPECT_EQ(test, 0, kofi_ep_rx_reserve(t->kep));
		kofi_ep_rx_complete(t->kep, t->kep, &wc, cq_selected[i].op_flags);
		KUNIT_EXPECT_EQ_MSG(test, cq_selected[i].reported,
				    kofi_cq_poll(t->cq, 8), "%s",
				    cq_selected[i].name);
		cq_close(test);
	}
}

/* -------------------------------------------------------------------- slots */

static void cq_slot_test(struct kunit *test)
{
	struct cq_test *t = test->priv;
	struct fi_cq_attr attr = { .size = 16 };
	const struct kofi_wc wc = { .flags = FI_RECV };
	struct fi_cq_entry entry[4];
	int i;

	cq_open(test, &attr, NULL, 0);
	/* Posted receives leave an eighth for transmits. */
	for (i = 0; i < 16; i++)
		KUNIT_EXPECT_EQ(test, 0, kofi_ep_rx_reserve(t->kep));
	KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_ep_rx_reserve(t->kep));
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, 0, kofi_ep_tx_reserve(t->kep, NULL));
	KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_ep_tx_reserve(t->kep, NULL));
	KUNIT_EXPECT_EQ(test, 1LL, atomic64_read(&t->kep->posts[0].again));
	KUNIT_EXPECT_EQ(test, 1LL, atomic64_read(&t->kep->posts[1].again));
	kofi_ep_tx_unreserve(t->kep);
	KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_ep_rx_reserve(t->kep));
	KUNIT_EXPECT_EQ(test, 0, kofi_ep_tx_reserve(t->kep, NULL));
	/* An entry that waits to be read has its slot still. */
	for (i = 0; i < 16; i++)
		kofi_ep_rx_complete(t->kep, t->kep, &wc, 0);
	KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_ep_rx_reserve(t->kep));
	KUNIT_EXPECT_EQ(test, 4L, fi_cq_read(t->cq, entry, 4));
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, 0, kofi_ep_rx_reserve(t->kep));
	KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_ep_rx_reserve(t->kep));
	for (i = 0; i < 2; i++) {
		kofi_ep_rx_unreserve(t->kep);
		kofi_ep_tx_unreserve(t->kep);
	}
	cq_close(test);
}

/* ------------------------------------------------------- where callbacks run */

struct cq_where {
	struct fid_ep		*ep;
	atomic_t		spaces;
	atomic_t		notified;
	bool			polling;
	enum kofi_poll		poll;
	bool			wrong;
	struct completion	called;
};

static void cq_where_check(struct cq_where *w)
{
	switch (w->poll) {
	case KOFI_POLL_DIRECT:
		w->wrong |= !w->polling;
		break;
	case KOFI_POLL_SOFTIRQ:
		w->wrong |= !in_serving_softirq() || in_hardirq();
		break;
	default:
		w->wrong |= !in_task() || irqs_disabled();
	}
	complete(&w->called);
}

static void cq_where_space(struct fid_ep *ep, void *context)
{
	struct cq_where *w = context;

	w->wrong |= w->ep && ep != w->ep;
	atomic_inc(&w->spaces);
	cq_where_check(w);
}

static void cq_where_notify(struct fid_cq *cq, void *context)
{
	struct cq_where *w = context;

	atomic_inc(&w->notified);
	cq_where_check(w);
}

/* Let the queue call back, if it will. */
static bool cq_where_wait(struct cq_where *w, struct fid_cq *cq, bool will)
{
	if (w->poll == KOFI_POLL_DIRECT) {
		w->polling = true;
		kofi_cq_poll(cq, 100);
		w->polling = false;
	}
	return wait_for_completion_timeout(&w->called, will ? TEST_LIMIT(10 * HZ) : HZ / 50);
}

static const enum kofi_poll cq_polls[] = {
	KOFI_POLL_DIRECT, KOFI_POLL_SOFTIRQ, KOFI_POLL_WORKQUEUE,
};

/* A receive queue's slots come back; the transmit queue tells. */
static void cq_space_test(struct kunit *test)
{
	struct cq_test *t = test->priv;
	struct fi_cq_attr attr = { .size = 1 };
	const struct kofi_wc wc = { .flags = FI_RECV };
	struct fi_cq_entry entry;
	struct cq_where *w;
	struct fid_cq *rx;
	struct fid_ep *ep;
	struct kofi_ep *kep;
	int i;

	w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, w);
	for (i = 0; i < ARRAY_SIZE(cq_polls); i++) {
		const struct kofi_cq_attr kattr = {
			.poll = cq_polls[i], .flags = i == 1 ? FI_AFFINITY : 0,
		};

		memset(w, 0, sizeof(*w));
		init_completion(&w->called);
		w->poll = cq_polls[i];
		KUNIT_ASSERT_EQ(test, 0, fi_cq_open(t->world->domain, &attr,
						    &rx, NULL));
		KUNIT_ASSERT_EQ(test, 0, kofi_cq_open(t->world->domain, &attr,
						      &kattr, &t->cq, w));
		ep = cq_open_ep(test, t->cq, rx, 0, w, cq_where_space);
		kep = &fake_of(ep)->base;
		w->ep = ep;

		KUNIT_EXPECT_EQ(test, 0, kofi_ep_rx_reserve(kep));
		KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_ep_rx_reserve(kep));
		KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_ep_rx_reserve(kep));
		kofi_ep_rx_complete(kep, kep, &wc, 0);
		KUNIT_EXPECT_FALSE(test, cq_where_wait(w, t->cq, false));
		KUNIT_EXPECT_EQ(test, 1L, fi_cq_read(rx, &entry, 1));
		KUNIT_EXPECT_TRUE(test, cq_where_wait(w, t->cq, true));
		/* Once; then only after another refusal, for a transmit too. */
		KUNIT_EXPECT_EQ(test, 0, kofi_ep_rx_reserve(kep));
		kofi_ep_rx_unreserve(kep);
		KUNIT_EXPECT_FALSE(test, cq_where_wait(w, t->cq, false));
		KUNIT_EXPECT_EQ(test, 0, kofi_ep_tx_reserve(kep, NULL));
		KUNIT_EXPECT_EQ(test, 0, kofi_ep_tx_reserve(kep, NULL));
		KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_ep_tx_reserve(kep, NULL));
		kofi_ep_tx_unreserve(kep);
		KUNIT_EXPECT_TRUE(test, cq_where_wait(w, t->cq, true));
		/* For want of something of the provider's */
		kofi_ep_unblock(kep);
		KUNIT_EXPECT_FALSE(test, cq_where_wait(w, t->cq, false));
		kofi_ep_blocked(kep);
		kofi_ep_unblock(kep);
		KUNIT_EXPECT_TRUE(test, cq_where_wait(w, t->cq, true));
		kofi_ep_blocked(kep);
		kofi_ep_tx_complete(kep, &wc, 0);
		KUNIT_EXPECT_TRUE(test, cq_where_wait(w, t->cq, true));
		KUNIT_EXPECT_EQ(test, 4, atomic_read(&w->spaces));
		KUNIT_EXPECT_FALSE(test, w->wrong);

		/* Refused, and drained before there is room: never told */
		KUNIT_EXPECT_EQ(test, 0, kofi_ep_rx_reserve(kep));
		KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_ep_rx_reserve(kep));
		kofi_ep_blocked(kep);
		kofi_ep_drain(ep);
		KUNIT_EXPECT_EQ(test, -ESHUTDOWN, kofi_ep_rx_reserve(kep));
		kofi_ep_rx_unreserve(kep);
		kofi_ep_unblock(kep);
		KUNIT_EXPECT_FALSE(test, cq_where_wait(w, t->cq, false));
		KUNIT_EXPECT_EQ(test, 0, fi_close(&ep->fid));
		KUNIT_EXPECT_EQ(test, 0, fi_close(&t->cq->fid));
		KUNIT_EXPECT_EQ(test, 0, fi_close(&rx->fid));
	}
}

/* A transmit without a record is refused. The next release of a record wakes the consumer. */
static void cq_record_test(struct kunit *test)
{
	const struct kofi_cq_attr kattr = { .poll = KOFI_POLL_DIRECT };
	struct fi_cq_attr attr = { .size = 4 };
	struct llist_node record = {}, *node = NULL;
	struct cq_test *t = test->priv;
	struct kofi_freelist records = {};
	struct cq_where *w;
	struct kofi_ep *kep;
	struct fid_cq *rx;
	spinlock_t lock;	/* records */
	u64 used;

	spin_lock_init(&lock);
	w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, w);
	init_completion(&w->called);
	KUNIT_ASSERT_EQ(test, 0, fi_cq_open(t->world->domain, &attr, &rx, NULL));
	KUNIT_ASSERT_EQ(test, 0, kofi_cq_open(t->world->domain, &attr, &kattr,
					      &t->cq, w));
	w->ep = cq_open_ep(test, t->cq, rx, 0, w, cq_where_space);
	kep = &fake_of(w->ep)->base;
	kofi_freelist_add(&records, &record);

	KUNIT_EXPECT_EQ(test, 0, kofi_ep_tx_get(kep, NULL, &records, &lock, &node));
	KUNIT_EXPECT_PTR_EQ(test, &record, node);
	KUNIT_EXPECT_EQ(test, 0, fake_of(w->ep)->sends);
	used = atomic64_read(&kep->posts[KOFI_TX].posts);
	/* deferred operations are sent first, and the slot is released */
	KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_ep_tx_get(kep, NULL, &records, &lock,
						      &node));
	KUNIT_EXPECT_EQ(test, 1, fake_of(w->ep)->sends);
	KUNIT_EXPECT_EQ(test, used, atomic64_read(&kep->posts[KOFI_TX].posts));
	KUNIT_EXPECT_FALSE(test, cq_where_wait(w, t->cq, false));
	/* the first transmit is refused, too: its record is free for the second */
	kofi_freelist_put(&records, &record);
	KUNIT_EXPECT_EQ(test, -EINVAL, kofi_ep_tx_refuse(kep, -EINVAL));
	KUNIT_EXPECT_TRUE(test, cq_where_wait(w, t->cq, true));
	KUNIT_EXPECT_EQ(test, 0, kofi_ep_tx_get(kep, NULL, &records, &lock, &node));
	KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_ep_tx_get(kep, NULL, &records, &lock,
						      &node));
	/* transmits that lack another resource do not wake each other */
	kofi_freelist_put(&records, &record);
	KUNIT_EXPECT_EQ(test, -EAGAIN, kofi_ep_tx_refuse(kep, -EAGAIN));
	KUNIT_EXPECT_FALSE(test, cq_where_wait(w, t->cq, false));
	/* the second attempt sees a resource released after the first */
	node = kofi_ep_retry(kep, kofi_freelist_get(&records, &lock));
	KUNIT_EXPECT_PTR_EQ(test, &record, node);
	KUNIT_EXPECT_EQ(test, 0, kofi_ep_rx_reserve(kep));
	KUNIT_EXPECT_EQ(test, -EINVAL, kofi_ep_rx_refuse(kep, -EINVAL));
	KUNIT_EXPECT_TRUE(test, cq_where_wait(w, t->cq, true));
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&w->spaces));

	kofi_ep_drain(w->ep);
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, kofi_ep_tx_get(kep, NULL, &records, &lock,
							 &node));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&w->ep->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->cq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&rx->fid));
}

#define CQ_WANTS	24

/* An endpoint among many that want the slots of one queue */
struct cq_want {
	struct fid_ep	*ep;
	bool		take;
	bool		has;
	int		calls;
};

static void cq_want_space(struct fid_ep *ep, void *context)
{
	struct cq_want *c = context;

	c->calls++;
	if (c->take)
		c->has = !kofi_ep_tx_reserve(&fake_of(ep)->base, NULL);
}

/* One slot wakes one endpoint; one that leaves it to others loses nothing. */
static void cq_want_test(struct kunit *test)
{
	const struct kofi_cq_attr kattr = {
		.poll = KOFI_POLL_DIRECT, .done = true,
	};
	struct fi_cq_attr attr = { .size = 1 };
	struct cq_test *t = test->priv;
	struct cq_want *c;
	int i;

	c = kunit_kcalloc(test, CQ_WANTS, sizeof(*c), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c);
	cq_open(test, &attr, &kattr, 0);
	KUNIT_EXPECT_EQ(test, 0, kofi_ep_tx_reserve(t->kep, NULL));
	KUNIT_EXPECT_EQ(test, 0, kofi_ep_tx_reserve(t->kep, NULL));
	for (i = 0; i < CQ_WANTS; i++) {
		c[i].take = true;
		c[i].ep = cq_open_ep(test, t->cq, t->cq, 0, &c[i],
				     cq_want_space);
		KUNIT_EXPECT_EQ(test, -EAGAIN,
				kofi_ep_tx_reserve(&fake_of(c[i].ep)->base, NULL));
	}
	kofi_ep_tx_unreserve(t->kep);
	/* each in its turn, and none for nothing */
	for (i = 0; i < CQ_WANTS; i++) {
		KUNIT_EXPECT_EQ(test, 1, kofi_cq_poll(t->cq, 100));
		KUNIT_EXPECT_EQ(test, 1, c[i].calls);
		KUNIT_EXPECT_TRUE(test, c[i].has);
		kofi_ep_tx_unreserve(&fake_of(c[i].ep)->base);
	}
	KUNIT_EXPECT_EQ(test, 0, kofi_cq_poll(t->cq, 100));

	/* the first ones want it no more, and one of them is closed meanwhile */
	KUNIT_EXPECT_EQ(test, 0, kofi_ep_tx_reserve(t->kep, NULL));
	for (i = 0; i < CQ_WANTS; i++) {
		c[i].take = i == CQ_WANTS - 1;
		c[i].has = false;
		c[i].calls = 0;
		KUNIT_EXPECT_EQ(test, -EAGAIN,
				kofi_ep_tx_reserve(&fake_of(c[i].ep)->base, NULL));
	}
	kofi_ep_tx_unreserve(t->kep);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&c[0].ep->fid));
	KUNIT_EXPECT_EQ(test, CQ_WANTS - 1, kofi_cq_poll(t->cq, 100));
	KUNIT_EXPECT_EQ(test, 0, c[0].calls);
	KUNIT_EXPECT_TRUE(test, c[CQ_WANTS - 1].has);
	kofi_ep_tx_unreserve(&fake_of(c[CQ_WANTS - 1].ep)->base);
	kofi_ep_tx_unreserve(t->kep);
	for (i = 1; i < CQ_WANTS; i++)
		KUNIT_EXPECT_EQ(test, 0, fi_close(&c[i].ep->fid));
	cq_close(test);
}

/* Posts and completions count in cache lines of their own. */
static void cq_lines_test(struct kunit *test)
{
	size_t posts = offsetof(struct kofi_ep, posts);
	size_t done = offsetof(struct kofi_ep, reported);

	if (!IS_ENABLED(CONFIG_SMP))
		kunit_skip(test, "one processor");
	KUNIT_EXPECT_LE(test, posts + sizeof_field(struct kofi_ep, posts),
			done);
	KUNIT_EXPECT_LT(test, done, offsetof(struct kofi_ep, stats));
	KUNIT_EXPECT_EQ(test, 0UL, posts % SMP_CACHE_BYTES);
	KUNIT_EXPECT_EQ(test, 0UL, done % SMP_CACHE_BYTES);
	KUNIT_EXPECT_EQ(test, 0UL, sizeof(struct kofi_ep) % SMP_CACHE_BYTES);
}

static void cq_notify_test(struct kunit *test)
{
	struct cq_test *t = test->priv;
	struct fi_cq_err_entry err = {};
	struct fi_cq_entry entry[4];
	struct cq_where *w;
	int i;

	w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, w);
	for (i = 1; i < ARRAY_SIZE(cq_polls); i++) {
		const struct kofi_cq_attr kattr = {
			.poll = cq_polls[i],
			.notify = cq_where_notify,
		};

		memset(w, 0, sizeof(*w));
		init_completion(&w->called);
		w->poll = cq_polls[i];
		KUNIT_ASSERT_EQ(test, 0, kofi_cq_open(t->world->domain, NULL,
						      &kattr, &t->cq, w));
		t->ep = cq_open_ep(test, t->cq, t->cq, 0, NULL, NULL);
		t->kep = &fake_of(t->ep)->base;
		/* Armed from the start, one shot */
		cq_receive(test, t->kep, t, 0);
		KUNIT_EXPECT_TRUE(test, cq_where_wait(w, t->cq, true));
		cq_receive(test, t->kep, t, 0);
		KUNIT_EXPECT_FALSE(test, cq_where_wait(w, t->cq, false));
		/* Reading something does not arm it, finding nothing does. */
		KUNIT_EXPECT_EQ(test, 2L, fi_cq_read(t->cq, entry, 4));
		cq_receive(test, t->kep, t, EIO);
		KUNIT_EXPECT_FALSE(test, cq_where_wait(w, t->cq, false));
		KUNIT_EXPECT_EQ(test, -FI_EAVAIL, fi_cq_read(t->cq, entry, 4));
		cq_receive(test, t->kep, t, 0);
		KUNIT_EXPECT_FALSE(test, cq_where_wait(w, t->cq, false));
		KUNIT_EXPECT_EQ(test, 1L, fi_cq_readerr(t->cq, &err, 0));
		KUNIT_EXPECT_EQ(test, 1L, fi_cq_read(t->cq, entry, 4));
		KUNIT_EXPECT_EQ(test, -EAGAIN, fi_cq_read(t->cq, entry, 4));
		cq_receive(test, t->kep, t, 0);
		KUNIT_EXPECT_TRUE(test, cq_where_wait(w, t->cq, true));
		KUNIT_EXPECT_EQ(test, 2, atomic_read(&w->notified));
		KUNIT_EXPECT_FALSE(test, w->wrong);
		cq_close(test);
	}
}

/* ------------------------------------------------- callbacks, and closing */

#define CQ_CALLS	40

static void cq_direct_test(struct kunit *test)
{
	struct cq_test *t = test->priv;
	const struct kofi_cq_attr kattr = {
		.poll = KOFI_POLL_DIRECT, .done = true,
	};
	struct fi_cq_attr attr = { .size = CQ_CALLS };
	struct cq_call *calls;
	struct fid_ep *other;
	int i;

	calls = kunit_kcalloc(test, CQ_CALLS, sizeof(*calls), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, calls);
	cq_calls = 0;
	cq_open(test, &attr, &kattr, 0);
	other = cq_open_ep(test, t->cq, t->cq, 0, NULL, NULL);
	for (i = 0; i < CQ_CALLS; i++) {
		calls[i].cqe.done = cq_called;
		cq_receive(test, i & 1 ? &fake_of(other)->base : t->kep,
			   &calls[i].cqe, i % 3 ? 0 : EIO);
	}
	KUNIT_EXPECT_EQ(test, 0, kofi_cq_poll(t->cq, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, kofi_cq_poll(t->cq, -1));
	KUNIT_EXPECT_EQ(test, 3, kofi_cq_poll(t->cq, 3));
	KUNIT_EXPECT_EQ(test, 3, cq_calls);
	/* Closing one endpoint runs its own and leaves the others', in order. */
	KUNIT_EXPECT_EQ(test, 0, fi_close(&other->fid));
	for (i = 0; i < CQ_CALLS; i++)
		KUNIT_EXPECT_EQ(test, i < 3 || i & 1, calls[i].calls);
	KUNIT_EXPECT_EQ(test, CQ_CALLS / 2 - 2, kofi_cq_poll(t->cq, 1000));
	for (i = 0; i < CQ_CALLS; i++) {
		KUNIT_EXPECT_EQ(test, 1, calls[i].calls);
		KUNIT_EXPECT_EQ(test, i % 3 ? 0 : EIO, calls[i].wc.err);
		KUNIT_EXPECT_EQ(test, (size_t)10, calls[i].wc.len);
		if (i > 4)
			KUNIT_EXPECT_GT(test, calls[i].seq, calls[i - 2].seq);
	}
	/* What is outstanding is cancelled, and called back from the close. */
	calls[0].calls = 0;
	KUNIT_EXPECT_EQ(test, 0L, fi_recv(t->ep, calls, 1, NULL, 0, calls));
	cq_close(test);
	KUNIT_EXPECT_EQ(test, 1, calls[0].calls);
	KUNIT_EXPECT_EQ(test, ECANCELED, calls[0].wc.err);
}

#define CQ_DEEP		8192	/* entries of each of two endpoints */

static atomic_t cq_deep_calls;

static void cq_deep_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	atomic_inc(&cq_deep_calls);
}

/* The time it takes to poll, or else to close, CQ_DEEP or twice as many. */
static u64 cq_deep_time(struct kunit *test, struct fid_ep *other)
{
	struct cq_test *t = test->priv;
	u64 start = ktime_get_ns();

	if (other)
		KUNIT_EXPECT_EQ(test, 0, fi_close(&other->fid));
	else
		while (kofi_cq_poll(t->cq, 1024))
			;
	return ktime_get_ns() - start;
}

/*
 * Closing an endpoint takes its entries out of a full DIRECT queue in about the
 * time of polling as many, not in that of walking the ring for every few. The
 * best of some turns counts: the host may take the processor away in any.
 */
static void cq_deep_test(struct kunit *test)
{
	static struct kofi_cqe cqe = { .done = cq_deep_done };
	const struct kofi_cq_attr kattr = {
		.poll = KOFI_POLL_DIRECT, .done = true,
	};
	struct fi_cq_attr attr = { .size = 2 * CQ_DEEP };
	u64 polled = U64_MAX, closed = U64_MAX;
	struct cq_test *t = test->priv;
	struct fid_ep *other;
	int i, turn;

	cq_open(test, &attr, &kattr, 0);
	for (turn = 0; turn < 5; turn++) {
		other = cq_open_ep(test, t->cq, t->cq, 0, NULL, NULL);
		atomic_set(&cq_deep_calls, 0);
		for (i = 0; i < 2 * CQ_DEEP; i++)
			cq_receive(test, t->kep, &cqe, 0);
		polled = min(polled, cq_deep_time(test, NULL));
		KUNIT_EXPECT_EQ(test, 2 * CQ_DEEP, atomic_read(&cq_deep_calls));

		for (i = 0; i < 2 * CQ_DEEP; i++)
			cq_receive(test, i & 1 ? &fake_of(other)->base : t->kep,
				   &cqe, 0);
		closed = min(closed, cq_deep_time(test, other));
		KUNIT_EXPECT_EQ(test, 3 * CQ_DEEP, atomic_read(&cq_deep_calls));
		KUNIT_EXPECT_EQ(test, CQ_DEEP, kofi_cq_poll(t->cq, 4 * CQ_DEEP));
	}
	/* a ring walked for each 16 of 8192 entries costs hundreds of times it */
	KUNIT_EXPECT_LT(test, closed, 50 * polled);
	cq_close(test);
}

/* A callback that takes its time, and posts again as long as it can */
struct cq_slow {
	struct kofi_cqe		cqe;
	struct fid_ep		*ep;
	enum kofi_poll		poll;
	struct completion	entered;
	atomic_t		calls;
	bool			closed;
	bool			late;
};

static void cq_slow_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct cq_slow *slow = container_of(wc->cqe, struct cq_slow, cqe);

	complete(&slow->entered);
	mdelay(5);
	slow->late |= READ_ONCE(slow->closed);
	atomic_inc(&slow->calls);
}

/* Close waits for callbacks that are queued and running. */
static void cq_close_test(struct kunit *test)
{
	struct cq_test *t = test->priv;
	struct cq_slow *slow;
	int i, j;

	slow = kunit_kzalloc(test, sizeof(*slow), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, slow);
	for (i = 1; i < ARRAY_SIZE(cq_polls); i++) {
		const struct kofi_cq_attr kattr = {
			.poll = cq_polls[i], .done = true,
			.flags = FI_AFFINITY, .cpu = num_online_cpus() - 1,
		};

		memset(slow, 0, sizeof(*slow));
		init_completion(&slow->entered);
		slow->cqe.done = cq_slow_done;
		cq_open(test, NULL, &kattr, 0);
		for (j = 0; j < 5; j++)
			cq_receive(test, t->kep, &slow->cqe, 0);
		for (j = 0; j < 5; j++)
			KUNIT_EXPECT_EQ(test, 0L,
					fi_recv(t->ep, slow, 1, NULL, 0,
						&slow->cqe));
		wait_for_completion(&slow->entered);
		KUNIT_EXPECT_EQ(test, 0, fi_close(&t->ep->fid));
		WRITE_ONCE(slow->closed, true);
		t->ep = NULL;
		KUNIT_EXPECT_EQ(test, 10, atomic_read(&slow->calls));
		cq_close(test);
		KUNIT_EXPECT_FALSE(test, slow->late);
	}
}

/* A callback that closes, and drains, what it may not */
struct cq_closer {
	struct kofi_cqe		cqe;
	struct fid_ep		*ep;
	struct fid_cq		*cq;
	int			close_ep;
	int			close_cq;
	int			drain;
	bool			over;
	struct completion	done;
};

static void cq_closer(struct cq_closer *s)
{
	if (READ_ONCE(s->over))
		return;
	s->close_ep = fi_close(&s->ep->fid);
	s->close_cq = fi_close(&s->cq->fid);
	s->drain = kofi_ep_drain(s->ep);
	complete(&s->done);
}

static void cq_closer_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	cq_closer(container_of(wc->cqe, struct cq_closer, cqe));
}

static void cq_closer_notify(struct fid_cq *cq, void *context)
{
	cq_closer(context);
}

static void cq_closer_space(struct fid_ep *ep, void *context)
{
	cq_closer(context);
}

/* -EDEADLK, and nothing has happened: all goes on, and closes afterwards. */
static void cq_deadlock_test(struct kunit *test)
{
	static const struct {
		const char	*name;
		enum kofi_poll	poll;
		void		(*notify)(struct fid_cq *cq, void *context);
		void		(*space)(struct fid_ep *ep, void *context);
	} cases[] = {
		{ "polled", KOFI_POLL_DIRECT, NULL, NULL },
		{ "work item", KOFI_POLL_WORKQUEUE, NULL, NULL },
		{ "notify", KOFI_POLL_WORKQUEUE, cq_closer_notify, NULL },
		{ "write space", KOFI_POLL_DIRECT, NULL, cq_closer_space },
	};
	struct cq_test *t = test->priv;
	int i, round;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cq_closer s = { .cqe.done = cq_closer_done };
		const struct kofi_cq_attr kattr = {
			.poll = cases[i].poll, .done = !cases[i].notify,
			.notify = cases[i].notify,
		};
		struct fi_cq_entry entry;

		KUNIT_ASSERT_EQ(test, 0, kofi_cq_open(t->world->domain, NULL,
						      &kattr, &t->cq, &s));
		t->ep = cq_open_ep(test, t->cq, t->cq, 0, &s, cases[i].space);
		t->kep = &fake_of(t->ep)->base;
		s.ep = t->ep;
		s.cq = t->cq;
		for (round = 0; round < 2; round++) {
			init_completion(&s.done);
			if (cases[i].space) {
				kofi_ep_blocked(t->kep);
				kofi_ep_unblock(t->kep);
			} else {
				cq_receive(test, t->kep, &s.cqe, 0);
			}
			if (cases[i].poll == KOFI_POLL_DIRECT)
				KUNIT_EXPECT_EQ(test, 1, kofi_cq_poll(t->cq, 8));
			KUNIT_ASSERT_NE(test, 0UL,
					wait_for_completion_timeout(&s.done,
								    TEST_LIMIT(10 * HZ)));
			KUNIT_EXPECT_EQ_MSG(test, -EDEADLK, s.close_ep, "%s",
					    cases[i].name);
			KUNIT_EXPECT_EQ_MSG(test, -EDEADLK, s.drain, "%s",
					    cases[i].name);
			KUNIT_EXPECT_EQ_MSG(test, -EDEADLK, s.close_cq, "%s",
					    cases[i].name);
			KUNIT_EXPECT_EQ(test, 0, fake_of(t->ep)->drains);
			if (!cases[i].notify)
				continue;
			KUNIT_EXPECT_EQ(test, 1L, fi_cq_read(t->cq, &entry, 1));
			KUNIT_EXPECT_EQ(test, -EAGAIN,
					fi_cq_read(t->cq, &entry, 1));
		}
		/* as good as before */
		KUNIT_EXPECT_EQ(test, 0L, fi_recv(t->ep, &s, 1, NULL, 0,
						  &s.cqe));
		WRITE_ONCE(s.over, true);
		KUNIT_EXPECT_EQ(test, 0, kofi_ep_drain(t->ep));
		cq_close(test);
	}
}

/* ------------------------------------------------------------------ waiting */

static int cq_signal_later(void *arg)
{
	struct cq_test *t = arg;

	fake_starter_asleep();
	fi_cq_signal(t->cq);
	return 0;
}

/* No more than one read is for: a reader that wakes looks as if it slept. */
static int cq_complete_later(void *arg)
{
	struct cq_test *t = arg;
	struct kofi_wc wc = { .flags = FI_RECV };
	int i;

	for (i = 0; i < t->later; i++) {
		fake_starter_asleep();
		kofi_ep_rx_reserve(t->kep);
		kofi_ep_rx_complete(t->kep, t->kep, &wc, 0);
	}
	return 0;
}

static int cq_fail_later(void *arg)
{
	struct cq_test *t = arg;
	struct kofi_wc wc = { .flags = FI_RECV, .err = EIO };

	fake_starter_asleep();
	kofi_ep_rx_reserve(t->kep);
	kofi_ep_rx_complete(t->kep, t->kep, &wc, 0);
	return 0;
}

static void cq_sread_test(struct kunit *test)
{
	struct cq_test *t = test->priv;
	struct fi_cq_attr attr = {
		.wait_obj = FI_WAIT_UNSPEC, .wait_cond = FI_CQ_COND_THRESHOLD,
	};
	struct fi_cq_err_entry err = {};
	struct fi_cq_entry entry[8];
	struct task_struct *task;
	fi_addr_t src[8];

	cq_open(test, &attr, NULL, 0);
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_cq_sread(t->cq, entry, 8, NULL, 0));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_cq_sread(t->cq, entry, 8, NULL, 20));
	t->later = 1;
	task = fake_thread(test, cq_complete_later, t);
	KUNIT_EXPECT_EQ(test, 1L, fi_cq_sread(t->cq, entry, 8, NULL, -1));
	fake_join(task);
	t->later = 3;
	task = fake_thread(test, cq_complete_later, t);
	KUNIT_EXPECT_EQ(test, 3L, fi_cq_sreadfrom(t->cq, entry, 8, src,
						  (void *)3, -1));
	KUNIT_EXPECT_EQ(test, FI_ADDR_NOTAVAIL, src[0]);
	fake_join(task);
	/* No more than fits can be asked for; fewer when the time is over. */
	t->later = 2;
	task = fake_thread(test, cq_complete_later, t);
	KUNIT_EXPECT_EQ(test, 2L, fi_cq_sread(t->cq, entry, 2, (void *)99, -1));
	fake_join(task);
	cq_receive(test, t->kep, t, 0);
	cq_receive(test, t->kep, t, 0);
	KUNIT_EXPECT_EQ(test, 2L, fi_cq_sread(t->cq, entry, 8, (void *)5, 20));
	/* An error ends the wait. */
	cq_receive(test, t->kep, t, 0);
	task = fake_thread(test, cq_fail_later, t);
	KUNIT_EXPECT_EQ(test, 1L, fi_cq_sread(t->cq, entry, 8, (void *)4, -1));
	KUNIT_EXPECT_EQ(test, -FI_EAVAIL,
			fi_cq_sread(t->cq, entry, 8, (void *)4, -1));
	KUNIT_EXPECT_EQ(test, 1L, fi_cq_readerr(t->cq, &err, 0));
	fake_join(task);
	/* So does a signal, also one given before. */
	task = fake_thread(test, cq_signal_later, t);
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_cq_sread(t->cq, entry, 8, NULL, -1));
	fake_join(task);
	KUNIT_EXPECT_EQ(test, 0, fi_cq_signal(t->cq));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_cq_sread(t->cq, entry, 8, NULL, -1));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_cq_sread(t->cq, entry, 8, NULL, 1));
	cq_receive(test, t->kep, t, 0);
	KUNIT_EXPECT_EQ(test, 0, fi_cq_signal(t->cq));
	KUNIT_EXPECT_EQ(test, 1L, fi_cq_sread(t->cq, entry, 8, (void *)2, -1));
	cq_close(test);
}

static int cq_wait_reader(void *arg)
{
	struct cq_test *t = arg;
	struct fi_cq_entry entry;

	return fi_cq_sread(t->cq, &entry, 1, NULL, -1);
}

/* One signal is for everybody who waits. */
static void cq_signal_test(struct kunit *test)
{
	struct cq_test *t = test->priv;
	struct fi_cq_attr attr = {
		.wait_obj = (enum fi_wait_obj)KOFI_WAIT_QUEUE,
	};
	struct task_struct *tasks[3];
	wait_queue_head_t *wait;
	int i;

	cq_open(test, &attr, NULL, 0);
	KUNIT_ASSERT_EQ(test, 0, fi_control(&t->cq->fid, FI_GETWAIT, &wait));
	KUNIT_EXPECT_NOT_NULL(test, wait);
	for (i = 0; i < 3; i++)
		tasks[i] = fake_thread(test, cq_wait_reader, t);
	for (i = 0; i < 3; i++)
		fake_asleep(tasks[i]);
	KUNIT_EXPECT_EQ(test, 0, fi_cq_signal(t->cq));
	for (i = 0; i < 3; i++)
		fake_join(tasks[i]);
	cq_close(test);
}

/* ------------------------------------------------------------- concurrency */

#define CQ_TASKS	3
#define CQ_EACH		300

struct cq_crowd {
	struct cq_test		*t;
	atomic_t		writers;
	atomic_t		seen;
	unsigned long		got[BITS_TO_LONGS(CQ_TASKS * CQ_EACH + 1)];
	bool			twice;
	struct completion	all;
};

static int cq_crowd_complete(void *arg)
{
	struct cq_crowd *crowd = arg;
	struct kofi_wc wc = { .flags = FI_RECV };
	unsigned long i, first;

	first = (atomic_inc_return(&crowd->writers) - 1) * CQ_EACH + 1;
	for (i = first; i < first + CQ_EACH; i++) {
		while (kofi_ep_rx_reserve(crowd->t->kep))
			schedule_timeout_idle(1);
		wc.op_context = (void *)i;
		kofi_ep_rx_complete(crowd->t->kep, crowd->t->kep, &wc, 0);
	}
	return 0;
}

static int cq_crowd_read(void *arg)
{
	struct cq_crowd *crowd = arg;
	struct fi_cq_entry entry[3];
	ssize_t n;

	while (!completion_done(&crowd->all)) {
		n = fi_cq_sread(crowd->t->cq, entry, 3, NULL, 10);
		while (n-- > 0) {
			if (test_and_set_bit((unsigned long)entry[n].op_context,
					     crowd->got))
				crowd->twice = true;
			if (atomic_inc_return(&crowd->seen) ==
			    CQ_TASKS * CQ_EACH)
				complete_all(&crowd->all);
		}
	}
	return 0;
}

static void cq_readers_test(struct kunit *test)
{
	struct cq_test *t = test->priv;
	struct fi_cq_attr attr = { .size = 7, .wait_obj = FI_WAIT_UNSPEC };
	struct task_struct *tasks[2 * CQ_TASKS];
	struct cq_crowd *crowd;
	int i;

	crowd = kunit_kzalloc(test, sizeof(*crowd), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, crowd);
	crowd->t = t;
	init_completion(&crowd->all);
	cq_open(test, &attr, NULL, 0);
	for (i = 0; i < 2 * CQ_TASKS; i++)
		tasks[i] = fake_thread(test, i < CQ_TASKS ? cq_crowd_complete :
				       cq_crowd_read, crowd);
	KUNIT_EXPECT_GT(test, wait_for_completion_timeout(&crowd->all,
							  TEST_LIMIT(30 * HZ)), 0UL);
	complete_all(&crowd->all);
	for (i = 0; i < 2 * CQ_TASKS; i++)
		fake_join(tasks[i]);
	KUNIT_EXPECT_EQ(test, CQ_TASKS * CQ_EACH, atomic_read(&crowd->seen));
	KUNIT_EXPECT_FALSE(test, crowd->twice);
	cq_close(test);
}

static struct kunit_case cq_cases[] = {
	KUNIT_CASE(cq_open_test),
	KUNIT_CASE(cq_format_test),
	KUNIT_CASE(cq_error_test),
	KUNIT_CASE(cq_wrap_test),
	KUNIT_CASE(cq_report_test),
	KUNIT_CASE(cq_selective_test),
	KUNIT_CASE(cq_slot_test),
	KUNIT_CASE(cq_space_test),
	KUNIT_CASE(cq_record_test),
	KUNIT_CASE(cq_want_test),
	KUNIT_CASE(cq_lines_test),
	KUNIT_CASE(cq_notify_test),
	KUNIT_CASE(cq_direct_test),
	KUNIT_CASE(cq_deep_test),
	KUNIT_CASE(cq_close_test),
	KUNIT_CASE(cq_deadlock_test),
	KUNIT_CASE(cq_sread_test),
	KUNIT_CASE(cq_signal_test),
	KUNIT_CASE(cq_readers_test),
	{}
};

struct kunit_suite kofi_cq_suite = {
	.name		= "kofi_cq",
	.suite_init	= fake_suite_init,
	.suite_exit	= fake_suite_exit,
	.init		= cq_init,
	.exit		= cq_exit,
	.test_cases	= cq_cases,
};

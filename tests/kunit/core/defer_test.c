// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posts of callbacks that follow each other: which of them may wait, and that the
 * provider is told, once and before a close goes on. Callbacks in process context
 * may sleep: nothing waits for them.
 */
#include <linux/module.h>
#include <linux/smp.h>

#include "fake.h"
#include "queues.h"

#define DEFER_OPS	6

struct defer_test;

struct defer_op {
	struct kofi_cqe		cqe;
	struct defer_test	*t;
	struct fid_ep		*ep;	/* the callback posts on it, or NULL */
	int			posts;
	int			sends;	/* of that endpoint, when it is called */
};

struct defer_test {
	struct fake_world	*world;
	struct fid_eq		*eq;
	struct fid_cq		*cq[2];
	struct fid_ep		*ep[2];
	struct defer_op	op[DEFER_OPS];
	struct kofi_cqe		rest;	/* what callbacks post completes to it */
	int			calls;
	wait_queue_head_t	wait;
};

static void defer_rest(struct fid_cq *cq, const struct kofi_wc *wc)
{
}

static void defer_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct defer_op *op = container_of(wc->cqe, struct defer_op, cqe);
	struct defer_test *t = op->t;
	int i;

	if (op->ep) {
		op->sends = fake_of(op->ep)->sends;
		for (i = 0; i < op->posts; i++)
			fi_send(op->ep, t, 1, NULL, 0, &t->rest);
	}
	/* the callback is over; pairs with defer_run() */
	smp_store_release(&t->calls, t->calls + 1);
	wake_up(&t->wait);
}

static int defer_init(struct kunit *test)
{
	struct defer_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, t);
	test->priv = t;
	init_waitqueue_head(&t->wait);
	t->rest.done = defer_rest;
	for (i = 0; i < DEFER_OPS; i++) {
		t->op[i].cqe.done = defer_done;
		t->op[i].t = t;
	}
	t->world = fake_open(test);
	KUNIT_ASSERT_EQ(test, 0, fi_eq_open(t->world->fabric, NULL, &t->eq, NULL));
	return 0;
}

static void defer_open(struct kunit *test, enum kofi_poll poll)
{
	const struct kofi_cq_attr kattr = { .poll = poll, .done = true };
	struct defer_test *t = test->priv;
	int i;

	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, 0,
				kofi_cq_open(t->world->domain, NULL, &kattr,
					     &t->cq[i], NULL));
		KUNIT_ASSERT_EQ(test, 0, fi_endpoint(t->world->domain,
						     t->world->info, &t->ep[i],
						     NULL));
		KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(t->ep[i], &t->eq->fid, 0));
		/* receives of both go to the first queue */
		KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(t->ep[i], &t->cq[0]->fid,
						    FI_RECV));
		KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(t->ep[i], &t->cq[i]->fid,
						    FI_TRANSMIT));
		fake_connected(test, t->ep[i]);
		fake_of(t->ep[i])->asks = true;
	}
}

static void defer_exit(struct kunit *test)
{
	struct defer_test *t = test->priv;
	int i;

	for (i = 0; i < 2; i++) {
		if (t->ep[i])
			KUNIT_EXPECT_EQ(test, 0, fi_close(&t->ep[i]->fid));
	}
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, 0, fi_close(&t->cq[i]->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->eq->fid));
	fake_close(test, t->world);
}

struct defer_push {
	struct defer_test	*t;
	int			n;
	int			err;
};

static void defer_push(void *arg)
{
	struct kofi_wc wc = { .flags = FI_MSG | FI_RECV, .src = FI_ADDR_NOTAVAIL };
	struct defer_push *p = arg;
	struct kofi_ep *ep = &fake_of(p->t->ep[0])->base;
	int i;

	for (i = 0; i < p->n && !p->err; i++) {
		p->err = kofi_ep_rx_reserve(ep);
		wc.op_context = &p->t->op[i].cqe;
		if (!p->err)
			kofi_ep_rx_complete(ep, ep, &wc, 0);
	}
}

/*
 * Have callbacks called, in one go: they complete in a hard interrupt, of the
 * processor on which the queue then has its softirq or its work item.
 */
static void defer_run(struct kunit *test, int n)
{
	struct defer_test *t = test->priv;
	struct defer_push p = { .t = t, .n = n };
	int before = t->calls;

	KUNIT_ASSERT_EQ(test, 0, smp_call_function_single(0, defer_push, &p,
							  true));
	KUNIT_ASSERT_EQ(test, 0, p.err);
	kofi_cq_poll(t->cq[0], n);	/* refused unless it is DIRECT */
	KUNIT_EXPECT_TRUE(test,
			  wait_event_timeout(t->wait,
					     /* pairs with defer_done() */
					     smp_load_acquire(&t->calls) ==
					     before + n, TEST_LIMIT(10 * HZ)));
}

/* Wait until the owner of the queue has finished: a drain waits for its callbacks. */
static void defer_settle(struct kunit *test)
{
	struct defer_test *t = test->priv;
	int i;

	for (i = 0; i < 2; i++)
		kofi_ep_drain(t->ep[i]);
}

static const enum kofi_poll defer_polls[] = {
	KOFI_POLL_SOFTIRQ, KOFI_POLL_WORKQUEUE, KOFI_POLL_DIRECT,
};

static void defer_name(const enum kofi_poll *poll, char *desc)
{
	static const char *const names[] = {
		[KOFI_POLL_DIRECT]	= "direct",
		[KOFI_POLL_SOFTIRQ]	= "softirq",
		[KOFI_POLL_WORKQUEUE]	= "workqueue",
	};

	strscpy(desc, names[*poll], KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(defer_poll, defer_polls, defer_name);

/* 1 if posts wait for callbacks of the queue that is tried */
static int defer_waits(struct kunit *test)
{
	return *(const enum kofi_poll *)test->param_value == KOFI_POLL_SOFTIRQ;
}

/* One callback alone: nothing waits. */
static void defer_single_test(struct kunit *test)
{
	struct defer_test *t = test->priv;

	defer_open(test, *(const enum kofi_poll *)test->param_value);
	t->op[0].ep = t->ep[0];
	t->op[0].posts = 3;
	defer_run(test, 1);
	defer_settle(test);
	KUNIT_EXPECT_EQ(test, 0, fake_of(t->ep[0])->deferred);
	KUNIT_EXPECT_EQ(test, 0, fake_of(t->ep[0])->sends);
}

/* Several: all wait but those of the last one, and are sent once, behind it. */
static void defer_several_test(struct kunit *test)
{
	struct defer_test *t = test->priv;
	int i;

	defer_open(test, *(const enum kofi_poll *)test->param_value);
	for (i = 0; i < DEFER_OPS; i++) {
		t->op[i].ep = t->ep[0];
		t->op[i].posts = 2;
	}
	defer_run(test, DEFER_OPS);
	defer_settle(test);
	KUNIT_EXPECT_EQ(test, defer_waits(test) * 2 * (DEFER_OPS - 1),
			fake_of(t->ep[0])->deferred);
	for (i = 0; i < DEFER_OPS; i++)
		KUNIT_EXPECT_EQ(test, 0, t->op[i].sends);
	KUNIT_EXPECT_EQ(test, defer_waits(test), fake_of(t->ep[0])->sends);
}

/*
 * The last callback posts nothing. The endpoint's transmit queue is not the one
 * that calls back, but its receive queue is; and each endpoint's are sent.
 */
static void defer_silent_last_test(struct kunit *test)
{
	struct defer_test *t = test->priv;
	int i;

	defer_open(test, *(const enum kofi_poll *)test->param_value);
	for (i = 0; i < DEFER_OPS - 1; i++) {
		t->op[i].ep = t->ep[i & 1];
		t->op[i].posts = 1;
	}
	defer_run(test, DEFER_OPS);
	defer_settle(test);
	KUNIT_EXPECT_EQ(test, defer_waits(test) * 3, fake_of(t->ep[0])->deferred);
	KUNIT_EXPECT_EQ(test, defer_waits(test) * 2, fake_of(t->ep[1])->deferred);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, defer_waits(test),
				fake_of(t->ep[i])->sends);
}

/*
 * An endpoint is closed while callbacks that post on it are still to be called:
 * KASAN sees what comes late.
 */
static void defer_close_test(struct kunit *test)
{
	struct defer_test *t = test->priv;
	struct defer_push p = { .t = t, .n = DEFER_OPS };
	int i;

	defer_open(test, *(const enum kofi_poll *)test->param_value);
	for (i = 0; i < DEFER_OPS; i++) {
		t->op[i].ep = t->ep[i & 1];
		t->op[i].posts = 1;
	}
	KUNIT_ASSERT_EQ(test, 0, smp_call_function_single(0, defer_push, &p,
							  true));
	/* it waits for them, or calls them itself; then they may not post */
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, 0, fi_close(&t->ep[i]->fid));
		t->ep[i] = NULL;
	}
	KUNIT_EXPECT_EQ(test, DEFER_OPS, t->calls);
}

static struct kunit_case defer_cases[] = {
	KUNIT_CASE_PARAM(defer_single_test, defer_poll_gen_params),
	KUNIT_CASE_PARAM(defer_several_test, defer_poll_gen_params),
	KUNIT_CASE_PARAM(defer_silent_last_test, defer_poll_gen_params),
	KUNIT_CASE_PARAM(defer_close_test, defer_poll_gen_params),
	{}
};

struct kunit_suite kofi_defer_suite = {
	.name		= "kofi_defer",
	.suite_init	= fake_suite_init,
	.suite_exit	= fake_suite_exit,
	.init		= defer_init,
	.exit		= defer_exit,
	.test_cases	= defer_cases,
};

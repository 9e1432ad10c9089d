// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues with a device behind them: who is called when, and that
 * there is still one queue, one runner, and nothing lost. The device is the
 * test, on an endpoint of the fake provider.
 */
#include <linux/bottom_half.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>

#include "fake.h"
#include "queues.h"

#define DEV_ERRNO	4711

/* What the provider has of its own */
struct dev_priv {
	struct dev_test		*t;
	int			opened;
};

struct dev_test {
	struct kofi_cqe		cqe;
	struct fake_world	*world;
	struct fid_eq		*eq;
	struct fid_cq		*cq;
	struct fid_ep		*ep;
	struct kofi_ep		*kep;
	struct kofi_cq		*kcq;
	struct task_struct	*caller;
	bool			soft;		/* the caller is a softirq */
	int			calls;
	int			polls;
	int			closes;
	int			ready;		/* what the device has completed */
	bool			report;		/* one more, in the callback */
	int			nested;		/* calls after that */
	size_t			len;		/* that consumers were told */
	struct completion	claimed;
	struct completion	go_on;
};

/* of the queue that is being opened; suites run one after the other */
static struct dev_test *dev_now;
static int dev_open_err;

static int dev_open(struct kofi_cq *cq, const struct fi_cq_attr *attr,
		    const struct kofi_cq_attr *kattr)
{
	struct dev_priv *priv = kofi_cq_priv(cq);

	priv->opened++;
	priv->t = dev_now;
	dev_now->kcq = cq;
	return dev_open_err;
}

static void dev_close(struct kofi_cq *cq)
{
	struct dev_priv *priv = kofi_cq_priv(cq);

	priv->t->closes++;
}

static void dev_complete(struct dev_test *t)
{
	const struct kofi_wc wc = {
		.cqe = &t->cqe, .flags = FI_SEND | FI_MSG,
	};

	kofi_ep_tx_complete(t->kep, &wc, FI_COMPLETION);
}

static void dev_report(struct dev_test *t)
{
	struct kofi_wc wc = {
		.cqe = &t->cqe, .flags = FI_SEND | FI_MSG, .len = 1,
	};

	kofi_ep_tx_report(t->kep, &wc, FI_COMPLETION);
}

static void dev_poll(struct kofi_cq *cq)
{
	struct dev_priv *priv = kofi_cq_priv(cq);
	struct dev_test *t = priv->t;

	t->polls++;
	for (; t->ready; t->ready--)
		dev_complete(t);
}

static const char *dev_strerror(int prov_errno)
{
	return prov_errno == DEV_ERRNO ? "the device says no" : "unknown";
}

static const struct kofi_cq_ops dev_ops = {
	.priv_size	= sizeof(struct dev_priv),
	.open		= dev_open,
	.close		= dev_close,
	.poll		= dev_poll,
	.strerror	= dev_strerror,
};

static void dev_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct dev_test *t = container_of(wc->cqe, struct dev_test, cqe);

	t->caller = current;
	t->soft = in_serving_softirq();
	t->calls++;
	t->len += wc->len;
	if (t->report) {
		t->report = false;
		dev_report(t);
		/* callbacks do not nest */
		t->nested = t->calls;
	}
}

static int dev_init(struct kunit *test)
{
	struct dev_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	test->priv = t;
	t->cqe.done = dev_done;
	init_completion(&t->claimed);
	init_completion(&t->go_on);
	dev_now = t;
	dev_open_err = 0;
	t->world = fake_open(test);
	KUNIT_ASSERT_EQ(test, 0, fi_eq_open(t->world->fabric, NULL, &t->eq,
					    NULL));
	return 0;
}

static void dev_exit(struct kunit *test)
{
	struct dev_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->eq->fid));
	fake_close(test, t->world);
}

static void dev_make(struct kunit *test, enum kofi_poll poll, size_t size)
{
	const struct kofi_cq_attr kattr = {
		.poll = poll, .done = true, .cpu = -1,
	};
	const struct fi_cq_attr attr = { .size = size };
	struct dev_test *t = test->priv;

	KUNIT_ASSERT_EQ(test, 0, kofi_cq_make(t->world->domain, &attr, &kattr,
					      &dev_ops, &t->cq, t));
	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(t->world->domain, t->world->info,
					     &t->ep, t));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(t->ep, &t->eq->fid, 0));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(t->ep, &t->cq->fid,
					    FI_TRANSMIT | FI_RECV));
	fake_connected(test, t->ep);
	t->kep = &fake_of(t->ep)->base;
}

static void dev_unmake(struct kunit *test)
{
	struct dev_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->ep->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->cq->fid));
	KUNIT_EXPECT_EQ(test, 1, t->closes);
}

static void dev_reserve(struct kunit *test, int n)
{
	struct dev_test *t = test->priv;

	for (; n; n--)
		KUNIT_ASSERT_EQ(test, 0, kofi_ep_tx_reserve(t->kep, NULL));
}

static void dev_open_test(struct kunit *test)
{
	const struct kofi_cq_attr kattr = { .cpu = -1 };
	const struct fi_cq_attr attr = {};
	struct dev_test *t = test->priv;
	struct fid_cq *cq = NULL;
	struct dev_priv *priv;

	/* what the provider cannot open leaves nothing behind */
	dev_open_err = -EXDEV;
	KUNIT_EXPECT_EQ(test, -EXDEV, kofi_cq_make(t->world->domain, &attr,
						   &kattr, &dev_ops, &cq, t));
	KUNIT_EXPECT_NULL(test, cq);
	dev_open_err = 0;

	dev_make(test, KOFI_POLL_SOFTIRQ, 4);
	priv = kofi_cq_priv(t->kcq);
	KUNIT_EXPECT_EQ(test, 1, priv->opened);
	KUNIT_EXPECT_STREQ(test, "the device says no",
			   fi_cq_strerror(t->cq, DEV_ERRNO, NULL, NULL, 0));
	dev_unmake(test);
}

/* Called at the end, here, and not before. */
static void dev_bracket_test(struct kunit *test)
{
	struct dev_test *t = test->priv;

	dev_make(test, KOFI_POLL_SOFTIRQ, 8);
	dev_reserve(test, 3);
	KUNIT_ASSERT_TRUE(test, kofi_cq_begin(t->kcq));
	dev_complete(t);
	/* somebody else's: he who has begun reports it */
	KUNIT_EXPECT_FALSE(test, kofi_cq_begin(t->kcq));
	dev_complete(t);
	KUNIT_EXPECT_EQ(test, 0, t->calls);
	kofi_cq_end(t->kcq);
	KUNIT_EXPECT_EQ(test, 2, t->calls);
	KUNIT_EXPECT_PTR_EQ(test, t->caller, current);

	/* a completion outside of it goes the queue's own way */
	dev_complete(t);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->ep->fid));
	KUNIT_EXPECT_EQ(test, 3, t->calls);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->cq->fid));
	KUNIT_EXPECT_EQ(test, 1, t->closes);
}

/* How many operations can be accepted */
static int dev_slots(struct dev_test *t)
{
	int i, n;

	for (n = 0; !kofi_ep_tx_reserve(t->kep, NULL); n++)
		;
	for (i = 0; i < n; i++)
		kofi_ep_tx_unreserve(t->kep);
	return n;
}

/* Called at once, unless somebody else is to call */
static void dev_report_test(struct kunit *test)
{
	const unsigned long end = jiffies + TEST_LIMIT(10 * HZ);
	struct dev_test *t = test->priv;
	bool begun = false;
	s64 again;
	int slots, n;

	dev_make(test, KOFI_POLL_SOFTIRQ, 8);
	slots = dev_slots(t);
	/* unlike a post that is refused, one that only tries is not counted */
	again = atomic64_read(&t->kep->posts[0].again);
	for (n = 0; kofi_ep_tx_try_reserve(t->kep, NULL); n++)
		;
	KUNIT_EXPECT_EQ(test, slots, n);
	KUNIT_EXPECT_EQ(test, again, atomic64_read(&t->kep->posts[0].again));
	for (; n; n--)
		kofi_ep_tx_unreserve(t->kep);

	dev_reserve(test, 5);
	dev_report(t);
	KUNIT_EXPECT_EQ(test, 1, t->calls);
	KUNIT_EXPECT_PTR_EQ(test, t->caller, current);

	/*
	 * What completes in the callback is reported after it, and what completes
	 * then is behind that: by the softirq that has been asked for.
	 */
	t->report = true;
	local_bh_disable();
	dev_report(t);
	KUNIT_EXPECT_EQ(test, 2, t->nested);
	KUNIT_EXPECT_EQ(test, 2, t->calls);
	dev_report(t);
	KUNIT_EXPECT_EQ(test, 2, t->calls);
	local_bh_enable();
	/* which leaves it to a thread if a tick comes in between */
	while (!begun && time_before(jiffies, end)) {
		begun = kofi_cq_begin(t->kcq);
		if (!begun)
			schedule_timeout_idle(1);
	}
	KUNIT_ASSERT_TRUE(test, begun);
	KUNIT_EXPECT_EQ(test, 4, t->calls);
	KUNIT_EXPECT_TRUE(test, t->soft);

	dev_report(t);
	KUNIT_EXPECT_EQ(test, 4, t->calls);
	kofi_cq_end(t->kcq);
	KUNIT_EXPECT_EQ(test, 5, t->calls);

	KUNIT_EXPECT_EQ(test, slots, dev_slots(t));
	KUNIT_EXPECT_EQ(test, 0, t->len);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->ep->fid));
	KUNIT_EXPECT_EQ(test, 5, t->calls);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->cq->fid));
	KUNIT_EXPECT_EQ(test, 1, t->closes);
}

/* A DIRECT queue calls back in kofi_cq_poll() only. */
static void dev_report_direct_test(struct kunit *test)
{
	struct dev_test *t = test->priv;

	dev_make(test, KOFI_POLL_DIRECT, 8);
	dev_reserve(test, 1);
	dev_report(t);
	KUNIT_EXPECT_EQ(test, 0, t->calls);
	KUNIT_EXPECT_EQ(test, 1, kofi_cq_poll(t->cq, 8));
	KUNIT_EXPECT_EQ(test, 1, t->calls);
	dev_unmake(test);
}

/* One with a work item calls back there. */
static void dev_report_work_test(struct kunit *test)
{
	struct dev_test *t = test->priv;

	dev_make(test, KOFI_POLL_WORKQUEUE, 8);
	dev_reserve(test, 1);
	KUNIT_EXPECT_FALSE(test, kofi_cq_begin(t->kcq));
	dev_report(t);
	/* the close waits for it */
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->ep->fid));
	KUNIT_EXPECT_EQ(test, 1, t->calls);
	KUNIT_EXPECT_PTR_NE(test, t->caller, current);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->cq->fid));
	KUNIT_EXPECT_EQ(test, 1, t->closes);
}

/* More than one run may call: the queue's own context goes on. */
static void dev_budget_test(struct kunit *test)
{
	enum { N = 1000 };
	struct dev_test *t = test->priv;
	int i;

	dev_make(test, KOFI_POLL_SOFTIRQ, N);
	dev_reserve(test, N);
	KUNIT_ASSERT_TRUE(test, kofi_cq_begin(t->kcq));
	for (i = 0; i < N; i++)
		dev_complete(t);
	kofi_cq_end(t->kcq);
	KUNIT_EXPECT_GT(test, t->calls, 0);
	/* the close waits for the rest */
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->ep->fid));
	KUNIT_EXPECT_EQ(test, N, t->calls);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->cq->fid));
	KUNIT_EXPECT_EQ(test, 1, t->closes);
}

static int dev_claimer(void *arg)
{
	struct dev_test *t = arg;

	kofi_cq_claim(t->kcq);
	complete(&t->claimed);
	wait_for_completion(&t->go_on);
	kofi_cq_release(t->kcq);
	return 0;
}

static void dev_direct_test(struct kunit *test)
{
	struct dev_test *t = test->priv;
	struct task_struct *claimer;

	dev_make(test, KOFI_POLL_DIRECT, 8);
	dev_reserve(test, 2);
	t->ready = 1;
	KUNIT_EXPECT_EQ(test, 1, kofi_cq_poll(t->cq, 8));
	KUNIT_EXPECT_EQ(test, 1, t->polls);
	KUNIT_EXPECT_EQ(test, 1, t->calls);

	/* claimed: nothing is looked at, and nothing called */
	claimer = fake_thread(test, dev_claimer, t);
	KUNIT_ASSERT_NOT_NULL(test, claimer);
	wait_for_completion(&t->claimed);
	t->ready = 1;
	KUNIT_EXPECT_EQ(test, 0, kofi_cq_poll(t->cq, 8));
	KUNIT_EXPECT_EQ(test, 1, t->polls);
	complete(&t->go_on);
	fake_join(claimer);
	KUNIT_EXPECT_EQ(test, 1, kofi_cq_poll(t->cq, 8));
	KUNIT_EXPECT_EQ(test, 2, t->polls);
	KUNIT_EXPECT_EQ(test, 2, t->calls);
	dev_unmake(test);
}

/* A poll set reports what only the device knows, and calls no consumer. */
static void dev_poll_set_test(struct kunit *test)
{
	struct dev_test *t = test->priv;
	struct task_struct *claimer;
	struct fid_poll *set;
	void *context[2];
	unsigned long flags;
	int n;

	dev_make(test, KOFI_POLL_DIRECT, 8);
	dev_reserve(test, 3);
	KUNIT_ASSERT_EQ(test, 0, fi_poll_open(t->world->domain, NULL, &set));
	KUNIT_EXPECT_EQ(test, 0, fi_poll_add(set, &t->cq->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_poll(set, context, 2));
	t->ready = 2;
	KUNIT_EXPECT_EQ(test, 1, fi_poll(set, context, 2));
	KUNIT_EXPECT_PTR_EQ(test, (void *)t, context[0]);
	KUNIT_EXPECT_EQ(test, 0, t->calls);
	KUNIT_EXPECT_EQ(test, 2, kofi_cq_poll(t->cq, 8));
	KUNIT_EXPECT_EQ(test, 0, fi_poll(set, context, 2));

	/* not where that cannot be, or another polls */
	t->ready = 1;
	local_irq_save(flags);
	n = fi_poll(set, context, 2);
	local_irq_restore(flags);
	KUNIT_EXPECT_EQ(test, 0, n);
	claimer = fake_thread(test, dev_claimer, t);
	KUNIT_ASSERT_NOT_NULL(test, claimer);
	wait_for_completion(&t->claimed);
	KUNIT_EXPECT_EQ(test, 0, fi_poll(set, context, 2));
	complete(&t->go_on);
	fake_join(claimer);
	KUNIT_EXPECT_EQ(test, 1, fi_poll(set, context, 2));
	KUNIT_EXPECT_EQ(test, 1, kofi_cq_poll(t->cq, 8));
	KUNIT_EXPECT_EQ(test, 0, fi_poll_del(set, &t->cq->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&set->fid));
	dev_unmake(test);
}

/* Scarce from more than half on, no matter who has the slots. */
static void dev_scarce_test(struct kunit *test)
{
	struct dev_test *t = test->priv;
	int i;

	dev_make(test, KOFI_POLL_DIRECT, 8);
	for (i = 1; i <= 8; i++) {
		dev_reserve(test, 1);
		KUNIT_EXPECT_EQ_MSG(test, i > 4, kofi_ep_tx_scarce(t->kep),
				    "%d slots in use", i);
	}
	/* what waits to be reported has one, too */
	for (i = 8; i > 4; i--) {
		dev_complete(t);
		KUNIT_EXPECT_TRUE(test, kofi_ep_tx_scarce(t->kep));
	}
	KUNIT_EXPECT_EQ(test, 4, kofi_cq_poll(t->cq, 8));
	KUNIT_EXPECT_FALSE(test, kofi_ep_tx_scarce(t->kep));
	for (; i; i--)
		dev_complete(t);
	dev_unmake(test);
	KUNIT_EXPECT_EQ(test, 8, t->calls);
}

/* Operations of each of two devices that share a queue */
#define DEV_RACE	5000

struct dev_racer {
	struct kofi_cqe		cqe;
	struct dev_race		*race;
	struct completion	ended;
	bool			rx;
	u64			sent;
	u64			seen;
};

struct dev_race {
	struct kofi_ep		*kep;
	struct dev_racer	racer[2];
	atomic_t		inside;
	unsigned int		wrong;
};

/* One callback at a time, and of each device in order and once */
static void dev_race_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct dev_racer *r = container_of(wc->cqe, struct dev_racer, cqe);

	if (atomic_inc_return(&r->race->inside) != 1 || wc->data != r->seen + 1)
		r->race->wrong++;
	r->seen = wc->data;
	atomic_dec(&r->race->inside);
}

static void dev_race_one(struct dev_racer *r)
{
	struct kofi_ep *kep = r->race->kep;
	struct kofi_wc wc = {
		.cqe = &r->cqe, .flags = FI_MSG, .len = 1, .data = ++r->sent,
	};
	bool report = r->sent % 8;

	if (r->rx && report)
		kofi_ep_rx_report(kep, kep, &wc, FI_COMPLETION);
	else if (r->rx)
		kofi_ep_rx_complete(kep, kep, &wc, FI_COMPLETION);
	else if (report)
		kofi_ep_tx_report(kep, &wc, FI_COMPLETION);
	else
		kofi_ep_tx_complete(kep, &wc, FI_COMPLETION);
}

static int dev_racer(void *arg)
{
	struct dev_racer *r = arg;

	while (r->sent < DEV_RACE) {
		if (r->rx ? kofi_ep_rx_reserve(r->race->kep) :
			    kofi_ep_tx_reserve(r->race->kep, NULL)) {
			cond_resched();
			continue;
		}
		local_bh_disable();
		dev_race_one(r);
		local_bh_enable();
	}
	complete(&r->ended);
	return 0;
}

/* Two devices report to one queue, and some of it goes through the ring. */
static void dev_race_test(struct kunit *test)
{
	struct dev_race *race = kunit_kzalloc(test, sizeof(*race), GFP_KERNEL);
	struct dev_test *t = test->priv;
	struct task_struct *task[2];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, race);
	dev_make(test, KOFI_POLL_SOFTIRQ, 8);
	race->kep = t->kep;
	for (i = 0; i < 2; i++) {
		race->racer[i] = (struct dev_racer) {
			.cqe.done = dev_race_done, .race = race, .rx = i,
		};
		init_completion(&race->racer[i].ended);
		task[i] = fake_thread(test, dev_racer, &race->racer[i]);
	}
	for (i = 0; i < 2; i++) {
		wait_for_completion(&race->racer[i].ended);
		fake_join(task[i]);
	}
	/* the close waits for what is in the ring */
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->ep->fid));
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, (u64)DEV_RACE, race->racer[i].seen);
	KUNIT_EXPECT_EQ(test, 0U, race->wrong);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->cq->fid));
}

static struct kunit_case dev_cases[] = {
	KUNIT_CASE(dev_open_test),
	KUNIT_CASE(dev_bracket_test),
	KUNIT_CASE(dev_report_test),
	KUNIT_CASE(dev_report_direct_test),
	KUNIT_CASE(dev_report_work_test),
	KUNIT_CASE(dev_budget_test),
	KUNIT_CASE(dev_direct_test),
	KUNIT_CASE(dev_poll_set_test),
	KUNIT_CASE(dev_scarce_test),
	KUNIT_CASE(dev_race_test),
	{}
};

struct kunit_suite kofi_cq_device_suite = {
	.name = "kofi_cq_device",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = dev_init,
	.exit = dev_exit,
	.test_cases = dev_cases,
};

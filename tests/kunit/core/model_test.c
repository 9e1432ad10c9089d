// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Model checker of the operation state machine: random consumers against the
 * fake provider's random completions.
 *
 * Each run draws, from one seed, some endpoints that share small queues, and
 * lets tasks, done callbacks, write-space callbacks and a hard interrupt post
 * to them while the provider completes, the consumer's side reads or is called
 * back, receives are cancelled and some endpoints are drained in mid-work. The
 * model knows of every operation whether it was accepted and how the provider
 * ended it, and from that what the consumer must have seen:
 *
 * - an accepted operation is reported exactly once, a refused one never; a
 *   success that was not asked for not at all; a failed inject as an error without
 *   context where the queue is read;
 * - a refusal with -EAGAIN is followed by a write-space callback;
 * - callbacks run one at a time, in the context the queue was opened with, and
 *   never again after drain has returned;
 * - no slot is left reserved in the end, and the counters add up.
 *
 * A failure names its seed; the module parameter model_seed repeats it. The
 * order of events still is the machine's.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/kofi/backport.h>

#include "fake.h"
#include "queues.h"

static unsigned int model_seed;
module_param(model_seed, uint, 0444);
MODULE_PARM_DESC(model_seed, "run only this seed of the model checker (0: all)");

static unsigned int model_runs = 8;
module_param(model_runs, uint, 0444);
MODULE_PARM_DESC(model_runs, "seeds per case of the model checker");

#define MODEL_OPS	240
#define MODEL_EPS	3
#define MODEL_TIMEOUT	TEST_LIMIT(10 * HZ)

struct model_case {
	const char	*name;
	enum kofi_poll	poll;
	bool		done;
	bool		notify;
};

static const struct model_case model_cases[] = {
	{ "done, direct", KOFI_POLL_DIRECT, true },
	{ "done, softirq", KOFI_POLL_SOFTIRQ, true },
	{ "done, work queue", KOFI_POLL_WORKQUEUE, true },
	{ "read, direct", KOFI_POLL_DIRECT },
	{ "read, softirq", KOFI_POLL_SOFTIRQ },
	{ "read, work queue", KOFI_POLL_WORKQUEUE },
	{ "read after notify, softirq", KOFI_POLL_SOFTIRQ, false, true },
	{ "read after notify, work queue", KOFI_POLL_WORKQUEUE, false, true },
};

struct model_ep;

/* An operation, used once */
struct model_op {
	struct kofi_cqe		cqe;
	struct model_ep		*ep;
	int			dir;
	bool			accepted;
	bool			silent;		/* success is not reported */
	bool			inject;
	atomic_t		ended;		/* by the provider */
	int			err;
	atomic_t		reported;
};

struct model_cq {
	struct model		*model;
	struct fid_cq		*cq;
	atomic_t		running;	/* callbacks */
	atomic_t		polling;	/* DIRECT: it may call back */
	wait_queue_head_t	notified;
	bool			notify_due;
	atomic_t		bare;		/* errors without context */
};

struct model_ep {
	struct model		*model;
	struct fid_ep		*ep;
	struct fid_cntr		*cntr[2];
	struct model_cq		*tx;
	struct model_cq		*rx;
	bool			selective[2];
	atomic_t		spaces;
	bool			over;		/* drain has returned */
	struct hrtimer		irq;
	bool			stop_irq;
};

struct model {
	struct kunit		*test;
	const struct model_case	*c;
	u32			seed;
	struct rnd_state	rnd;
	spinlock_t		lock;		/* guards rnd */
	struct fid_eq		*eq;
	struct model_cq		cqs[2];
	int			ncqs;
	struct model_ep		eps[MODEL_EPS];
	int			neps;
	struct model_op		ops[MODEL_OPS];
	atomic_t		next;
	wait_queue_head_t	wait;		/* something has happened */
	bool			stop;
	const char		*wrong;
};

/* The first thing that went wrong is told; asserting is the test task's. */
static void model_check(struct model *m, bool right, const char *wrong)
{
	if (!right)
		cmpxchg(&m->wrong, NULL, wrong);
}

static u32 model_random(struct model *m, u32 below)
{
	unsigned long flags;
	u32 value;

	spin_lock_irqsave(&m->lock, flags);
	value = prandom_u32_state(&m->rnd);
	spin_unlock_irqrestore(&m->lock, flags);
	return value % below;
}

/* --------------------------------------------------------- what is reported */

/* The fake provider is about to complete it. */
static void model_ended(void *context, int err)
{
	struct model_op *op = context;

	op->err = err;
	model_check(op->ep->model, atomic_inc_return(&op->ended) == 1,
		    "the provider has completed twice");
	wake_up(&op->ep->model->wait);
}

static void model_reported(struct model_op *op, int err, u64 flags, size_t len)
{
	struct model *m = op->ep->model;

	model_check(m, atomic_read(&op->ended), "reported before it ended");
	model_check(m, op->err == err, "another error than the provider's");
	model_check(m, err || !op->silent, "success reported unasked");
	model_check(m, !op->inject, "an inject with a context");
	model_check(m, flags == (FI_MSG | (op->dir == FAKE_TX ? FI_SEND :
						FI_RECV)), "wrong flags");
	model_check(m, err || len == (op->dir == FAKE_TX ? 0 : op - m->ops),
		    "wrong length");
	model_check(m, atomic_inc_return(&op->reported) == 1,
		    "reported twice");
	wake_up(&m->wait);
}

static bool model_context_right(struct model_cq *cq)
{
	switch (cq->model->c->poll) {
	case KOFI_POLL_DIRECT:
		return atomic_read(&cq->polling);
	case KOFI_POLL_SOFTIRQ:
		return in_serving_softirq() && !in_hardirq();
	default:
		return in_task() && !irqs_disabled();
	}
}

static void model_enter(struct model_cq *cq)
{
	model_check(cq->model, atomic_inc_return(&cq->running) == 1,
		    "two callbacks at a time");
	model_check(cq->model, model_context_right(cq),
		    "callback in the wrong context");
}

static void model_leave(struct model_cq *cq)
{
	atomic_dec(&cq->running);
}

/* ------------------------------------------------------------------ posting */

static ssize_t model_post(struct model_ep *ep);

static void model_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct model_op *op = container_of(wc->cqe, struct model_op, cqe);
	struct model_cq *mcq = cq->fid.context;

	model_enter(mcq);
	model_check(mcq->model, !READ_ONCE(op->ep->over),
		    "done callback after drain");
	model_check(mcq->model, mcq == (op->dir == FAKE_TX ? op->ep->tx :
					op->ep->rx), "on the wrong queue");
	model_reported(op, wc->err, wc->flags, wc->len);
	if (!model_random(mcq->model, 4))
		model_post(op->ep);
	model_leave(mcq);
}

static void model_space(struct fid_ep *fid, void *context)
{
	struct model_ep *ep = context;
	struct model *m = ep->model;

	model_enter(ep->tx);
	model_check(m, !READ_ONCE(ep->over), "write space after drain");
	atomic_inc(&ep->spaces);
	if (!model_random(m, 4))
		model_post(ep);
	model_leave(ep->tx);
	wake_up(&m->wait);
}

/* Post one operation more. -ENOSPC: all have been used. */
static ssize_t model_post(struct model_ep *ep)
{
	struct model *m = ep->model;
	int i = atomic_fetch_inc(&m->next);
	struct kvec iov = { .iov_base = m, .iov_len = i };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };
	struct model_op *op;
	u64 flags = 0;
	ssize_t ret;

	if (i >= MODEL_OPS)
		return -ENOSPC;
	op = &m->ops[i];
	msg.context = op;
	op->ep = ep;
	op->cqe.done = model_done;
	op->dir = model_random(m, 2);
	switch (model_random(m, 4)) {
	case 0:
		flags = FI_COMPLETION;
		break;
	case 1:
		if (op->dir == FAKE_TX) {
			flags = FI_INJECT | KOFI_NO_COMPLETION;
			op->inject = true;
		}
		break;
	}
	op->silent = op->inject ||
		     (ep->selective[op->dir] && !(flags & FI_COMPLETION));
	/* It may end before the post returns. */
	op->accepted = true;
	if (op->dir == FAKE_TX)
		ret = fi_sendmsg(ep->ep, &msg, flags);
	else
		ret = fi_recvmsg(ep->ep, &msg, flags);
	if (ret) {
		model_check(m, ret == -EAGAIN || ret == -ESHUTDOWN,
			    "refused with another error");
		op->accepted = false;
	} else if (op->dir == FAKE_RX && !model_random(m, 8)) {
		fi_cancel(&ep->ep->fid, op);
	}
	wake_up(&m->wait);
	return ret;
}

static int model_poster(void *arg)
{
	struct model_ep *ep = arg;
	struct model *m = ep->model;
	ssize_t ret;
	int seen;

	do {
		seen = atomic_read(&ep->spaces);
		ret = model_post(ep);
		if (ret == -EAGAIN &&
		    !wait_event_timeout(m->wait,
					atomic_read(&ep->spaces) != seen ||
					READ_ONCE(ep->over), MODEL_TIMEOUT)) {
			model_check(m, false, "no write space after -EAGAIN");
			break;
		}
		if (!model_random(m, 8))
			cond_resched();
	} while (ret != -ESHUTDOWN && ret != -ENOSPC);

	/* For kthread_stop(), so that everything is over when it returns. */
	while (!kthread_should_stop()) {
		set_current_state(TASK_IDLE);
		if (!kthread_should_stop())
			schedule();
		__set_current_state(TASK_RUNNING);
	}
	return 0;
}

/* ------------------------------------------------------------------ reading */

/* Read some; returns what the last read returned. */
static ssize_t model_read(struct model_cq *cq, bool wait)
{
	struct model *m = cq->model;
	struct fi_cq_msg_entry entries[5];
	struct fi_cq_err_entry error = {};
	size_t count = model_random(m, ARRAY_SIZE(entries) + 1);
	ssize_t ret, i;

	if (wait)
		ret = fi_cq_sread(cq->cq, entries, count,
				  (void *)(size_t)model_random(m, 4), 5);
	else
		ret = fi_cq_read(cq->cq, entries, count);
	for (i = 0; i < ret; i++)
		model_reported(entries[i].op_context, 0, entries[i].flags,
			       entries[i].len);
	if (ret != -FI_EAVAIL)
		return ret;

	ret = fi_cq_readerr(cq->cq, &error, 0);
	if (ret == 1) {
		model_check(m, error.err, "an error entry without error");
		if (error.op_context)
			model_reported(error.op_context, error.err, error.flags,
				       error.len);
		else
			atomic_inc(&cq->bare);
	} else {
		/* Another reader has been quicker. */
		model_check(m, ret == -EAGAIN, "readerr fails");
		ret = 0;
	}
	return ret;
}

static void model_notify(struct fid_cq *fid, void *context)
{
	struct model_cq *cq = context;

	model_enter(cq);
	WRITE_ONCE(cq->notify_due, true);
	wake_up(&cq->notified);
	model_leave(cq);
}

static int model_reader(void *arg)
{
	struct model_cq *cq = arg;
	struct model *m = cq->model;

	while (!kthread_should_stop()) {
		if (m->c->poll == KOFI_POLL_DIRECT) {
			atomic_inc(&cq->polling);
			kofi_cq_poll(cq->cq, model_random(m, 40));
			atomic_dec(&cq->polling);
		}
		if (m->c->done) {
			usleep_range(20, 50);	/* a consumer that polls at times */
			continue;
		}
		if (!m->c->notify) {
			model_read(cq, m->c->poll != KOFI_POLL_DIRECT ||
				   !model_random(m, 4));
			cond_resched();
			continue;
		}
		wait_event(cq->notified, READ_ONCE(cq->notify_due) ||
			   kthread_should_stop());
		WRITE_ONCE(cq->notify_due, false);
		smp_mb();	/* before reading; against model_notify() */
		while (model_read(cq, false) != -EAGAIN)
			;
	}
	return 0;
}

/* Posts, and reads, where nothing may sleep. */
static enum hrtimer_restart model_irq(struct hrtimer *timer)
{
	struct model_ep *ep = container_of(timer, struct model_ep, irq);
	struct model *m = ep->model;

	if (READ_ONCE(ep->stop_irq) || model_post(ep) == -ENOSPC)
		return HRTIMER_NORESTART;
	if (!m->c->done && !m->c->notify)
		model_read(ep->rx, false);
	hrtimer_forward_now(timer, ns_to_ktime((200 + model_random(m, 300)) *
					       NSEC_PER_USEC));
	return HRTIMER_RESTART;
}

/* ---------------------------------------------------------------- set-up */

static void model_open_cq(struct model *m, struct fake_world *world,
			  struct model_cq *cq)
{
	struct fi_cq_attr attr = {
		.size = 1 + model_random(m, 12), .format = FI_CQ_FORMAT_MSG,
		.wait_obj = m->c->done ? FI_WAIT_NONE : FI_WAIT_UNSPEC,
		.wait_cond = FI_CQ_COND_THRESHOLD,
	};
	struct kofi_cq_attr kattr = {
		.poll = m->c->poll, .done = m->c->done,
		.flags = model_random(m, 2) ? FI_AFFINITY : 0,
		.cpu = model_random(m, num_online_cpus()),
		.notify = m->c->notify ? model_notify : NULL,
	};

	cq->model = m;
	init_waitqueue_head(&cq->notified);
	KUNIT_ASSERT_EQ(m->test, 0, kofi_cq_open(world->domain, &attr, &kattr,
						 &cq->cq, cq));
}

static void model_open_ep(struct model *m, struct fake_world *world,
			  struct model_ep *ep)
{
	static const u64 cntr_flags[2] = { FI_SEND, FI_RECV };
	struct kunit *test = m->test;
	int dir;
	u64 sel;

	ep->model = m;
	ep->tx = &m->cqs[0];
	ep->rx = &m->cqs[m->ncqs - 1];
	world->info->tx_attr->size = 1 + model_random(m, 8);
	world->info->rx_attr->size = 1 + model_random(m, 8);
	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(world->domain, world->info,
					     &ep->ep, ep));
	fake_of(ep->ep)->report = model_ended;
	fake_engine(ep->ep, m->seed + (ep - m->eps));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep->ep, &m->eq->fid, 0));
	sel = model_random(m, 2) ? FI_SELECTIVE_COMPLETION : 0;
	ep->selective[FAKE_TX] = sel;
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep->ep, &ep->tx->cq->fid,
					    FI_TRANSMIT | sel));
	sel = model_random(m, 2) ? FI_SELECTIVE_COMPLETION : 0;
	ep->selective[FAKE_RX] = sel;
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep->ep, &ep->rx->cq->fid,
					    FI_RECV | sel));
	for (dir = FAKE_TX; dir <= FAKE_RX; dir++) {
		KUNIT_ASSERT_EQ(test, 0, fi_cntr_open(world->domain, NULL,
						      &ep->cntr[dir], NULL));
		KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep->ep,
						    &ep->cntr[dir]->fid,
						    cntr_flags[dir]));
	}
	KUNIT_ASSERT_EQ(test, 0, kofi_ep_write_space(ep->ep, model_space));
	fake_connected(test, ep->ep);
	hrtimer_setup(&ep->irq, model_irq, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_HARD);
}

/* ---------------------------------------------------------------- the end */

/* Has everything accepted on the endpoint ended, and been reported? */
static bool model_settled(struct model_ep *ep)
{
	struct model *m = ep->model;
	int i;

	for (i = 0; i < MODEL_OPS; i++) {
		struct model_op *op = &m->ops[i];

		if (op->ep != ep || !op->accepted)
			continue;
		if (!atomic_read(&op->ended))
			return false;
		if (op->inject || (op->silent && !op->err))
			continue;
		if (!atomic_read(&op->reported))
			return false;
	}
	return true;
}

static void model_drain(struct model_ep *ep)
{
	struct model_cq *tx = ep->tx, *rx = ep->rx;

	atomic_inc(&tx->polling);
	atomic_inc(&rx->polling);
	kofi_ep_drain(ep->ep);
	WRITE_ONCE(ep->over, true);
	atomic_dec(&rx->polling);
	atomic_dec(&tx->polling);
	wake_up(&ep->model->wait);
}

static void model_stat(void *arg, const char *name, u64 value)
{
	struct model *m = arg;

	if (!strcmp(name, "reserved"))
		model_check(m, !value, "a slot is still reserved");
	if (!strcmp(name, "waiting"))
		model_check(m, !value, "a completion that was not seen");
}

/* Compare what was seen with what must have been. */
static void model_judge(struct model *m)
{
	u64 good[MODEL_EPS][2] = {}, bad[MODEL_EPS][2] = {};
	int i, dir, bare = 0;

	for (i = 0; i < MODEL_OPS; i++) {
		struct model_op *op = &m->ops[i];
		int reported = atomic_read(&op->reported);
		int ended = atomic_read(&op->ended);

		if (!op->ep)
			continue;
		model_check(m, ended == op->accepted,
			    "accepted and not ended, or refused and ended");
		if (!op->accepted)
			continue;
		if (op->err)
			bad[op->ep - m->eps][op->dir]++;
		else
			good[op->ep - m->eps][op->dir]++;
		if (op->inject) {
			model_check(m, !reported, "an inject was reported");
			bare += op->err && !m->c->done;
		} else {
			model_check(m, reported == !(op->silent && !op->err),
				    "not reported exactly as it should be");
		}
	}
	for (i = 0; i < m->ncqs; i++)
		bare -= atomic_read(&m->cqs[i].bare);
	model_check(m, !bare, "failed injects do not add up");
	for (i = 0; i < m->neps; i++)
		for (dir = FAKE_TX; dir <= FAKE_RX; dir++) {
			struct fid_cntr *cntr = m->eps[i].cntr[dir];

			model_check(m, fi_cntr_read(cntr) == good[i][dir],
				    "the counter is wrong");
			model_check(m, fi_cntr_readerr(cntr) == bad[i][dir],
				    "the counter's errors are wrong");
		}
}

static void model_run(struct kunit *test, struct fake_world *world,
		      const struct model_case *c, u32 seed)
{
	struct task_struct *posters[MODEL_EPS * 2], *readers[4];
	int i, j, nposters = 0, nreaders = 0;
	struct model *m;

	m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m);
	m->test = test;
	m->c = c;
	m->seed = seed;
	spin_lock_init(&m->lock);
	prandom_seed_state(&m->rnd, seed);
	init_waitqueue_head(&m->wait);

	KUNIT_ASSERT_EQ(test, 0, fi_eq_open(world->fabric, NULL, &m->eq, NULL));
	m->ncqs = 1 + model_random(m, 2);
	for (i = 0; i < m->ncqs; i++)
		model_open_cq(m, world, &m->cqs[i]);
	m->neps = 1 + model_random(m, MODEL_EPS);
	for (i = 0; i < m->neps; i++)
		model_open_ep(m, world, &m->eps[i]);

	if (!c->done || c->poll == KOFI_POLL_DIRECT)
		for (i = 0; i < m->ncqs * (c->notify ? 1 : 2); i++) {
			readers[nreaders] = kthread_run(model_reader,
							&m->cqs[i % m->ncqs],
							"model_reader");
			KUNIT_ASSERT_FALSE(test, IS_ERR(readers[nreaders]));
			nreaders++;
		}
	for (i = 0; i < m->neps; i++) {
		hrtimer_start(&m->eps[i].irq, ns_to_ktime(100 * NSEC_PER_USEC),
			      HRTIMER_MODE_REL_HARD);
		for (j = 1 + model_random(m, 2); j > 0; j--) {
			posters[nposters] = kthread_run(model_poster,
							&m->eps[i],
							"model_poster");
			KUNIT_ASSERT_FALSE(test, IS_ERR(posters[nposters]));
			nposters++;
		}
	}

	/* Drain one in mid-work. */
	if (model_random(m, 2)) {
		j = model_random(m, MODEL_OPS);
		wait_event_timeout(m->wait, atomic_read(&m->next) >= j,
				   MODEL_TIMEOUT);
		model_drain(&m->eps[0]);
	}
	/* The others work until all operations have been used. */
	if (m->neps > 1 || !m->eps[0].over)
		model_check(m, wait_event_timeout(m->wait,
						  atomic_read(&m->next) >=
						  MODEL_OPS, MODEL_TIMEOUT),
			    "posting has come to a halt");
	for (i = 0; i < nposters; i++)
		kthread_stop(posters[i]);
	for (i = 0; i < m->neps; i++) {
		WRITE_ONCE(m->eps[i].stop_irq, true);
		hrtimer_cancel(&m->eps[i].irq);
	}

	/* Some are left to end by themselves, others are closed as they are. */
	for (i = 0; i < m->neps; i++) {
		struct model_ep *ep = &m->eps[i];

		if (!ep->over && model_random(m, 2))
			model_check(m, wait_event_timeout(m->wait,
							  model_settled(ep),
							  MODEL_TIMEOUT),
				    "an operation does not end");
		model_drain(ep);
		KUNIT_EXPECT_EQ(test, 0, fi_close(&ep->ep->fid));
	}

	/* What is to be read has survived the endpoints. */
	for (i = 0; i < nreaders; i++) {
		if (c->notify)
			wake_up(&m->cqs[i % m->ncqs].notified);
		kthread_stop(readers[i]);
	}
	for (i = 0; i < m->ncqs; i++) {
		struct kofi_obj *obj = m->cqs[i].cq->fid.obj;

		while (!c->done && model_read(&m->cqs[i], false) != -EAGAIN)
			;
		obj->ops->stats(obj, model_stat, m);
	}
	model_judge(m);
	KUNIT_EXPECT_NULL_MSG(test, m->wrong, "seed %u: %s", seed, m->wrong);

	for (i = 0; i < m->ncqs; i++)
		KUNIT_EXPECT_EQ(test, 0, fi_close(&m->cqs[i].cq->fid));
	for (i = 0; i < m->neps; i++)
		for (j = FAKE_TX; j <= FAKE_RX; j++)
			KUNIT_EXPECT_EQ(test, 0,
					fi_close(&m->eps[i].cntr[j]->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&m->eq->fid));
	kunit_kfree(test, m);
}

static void model_test(struct kunit *test)
{
	const struct model_case *c = test->param_value;
	struct fake_world *world = fake_open(test);
	u32 i;

	if (model_seed)
		model_run(test, world, c, model_seed);
	else
		for (i = 1; i <= model_runs; i++)
			model_run(test, world, c, i);
	fake_close(test, world);
}

static void model_name(const struct model_case *c, char *name)
{
	strscpy(name, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(model, model_cases, model_name);

static struct kunit_case model_test_cases[] = {
	KUNIT_CASE_PARAM(model_test, model_gen_params),
	{}
};

struct kunit_suite kofi_model_suite = {
	.name		= "kofi_model",
	.suite_init	= fake_suite_init,
	.suite_exit	= fake_suite_exit,
	.test_cases	= model_test_cases,
};

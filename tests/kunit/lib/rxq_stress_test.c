// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The queue of receives under attack from all sides: what a model that goes
 * step by step cannot see.
 *
 * Four streams share a context. Each is run, with a lock of its own held as a
 * socket's is, by its wake-ups: from a work item, a softirq or a hard
 * interrupt. Their messages, tagged or not, are placed at once or some time
 * later, and some are forgotten with their stream. Two tasks, a hard interrupt
 * and the done callbacks post receives of all kinds meanwhile, look for
 * messages to throw away, and cancel when they are refused.
 *
 * What must come out: every message gets its receive, so nothing ever stalls;
 * each accepted operation ends exactly once, a multi-receive with
 * FI_MULTI_RECV in its last completion; its slices lie in its memory and share
 * no byte; a refusal is followed by write space; and no slot is left over.
 */
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/kofi/backport.h>

#include "../core/fake.h"
#include "../core/queues.h"

#define STRESS_STREAMS	4
#define STRESS_MESSAGES	400	/* of each stream */
#define STRESS_OPS	20000
#define STRESS_AHEAD	2000	/* what tasks post beside so many a message */
#define STRESS_EACH	10
#define STRESS_MEM	256
#define STRESS_TIMEOUT	TEST_LIMIT(20 * HZ)

struct stress;

/* An operation, accepted once */
struct stress_op {
	struct kofi_cqe	cqe;
	struct stress_op *spare;
	struct stress	*m;
	bool		accepted;
	bool		multi;
	atomic_t	ended;
	DECLARE_BITMAP(taken, STRESS_MEM);
	u8		mem[STRESS_MEM];
};

struct stress_stream {
	struct stress		*m;
	struct fid_ep		*ep;
	spinlock_t		lock;	/* what follows; as a socket's */
	struct kofi_rxmsg	msg;
	struct kofi_rxop	*op;
	bool			active;
	int			left;
	bool			timed;
	bool			soft;
	struct hrtimer		timer;
	struct work_struct	work;
};

struct stress {
	struct kunit		*test;
	spinlock_t		lock;	/* rnd, spare, next */
	struct rnd_state	rnd;
	struct fid_eq		*eq;
	struct fid_cq		*cq;
	struct fid_ep		*srx;
	struct kofi_rxq		*q;
	struct stress_stream	streams[STRESS_STREAMS];
	struct hrtimer		irq;
	struct stress_op	*ops;
	struct stress_op	*spare;		/* refused ones */
	int			next;
	bool			draining;
	atomic_t		finished;	/* messages */
	atomic_t		spaces;
	wait_queue_head_t	wait;
	const char		*wrong;
};

/* The first thing that went wrong is told; asserting is the test task's. */
static void stress_check(struct stress *m, bool right, const char *wrong)
{
	if (!right)
		cmpxchg(&m->wrong, NULL, wrong);
}

static u32 stress_random(struct stress *m, u32 below)
{
	unsigned long flags;
	u32 value;

	spin_lock_irqsave(&m->lock, flags);
	value = prandom_u32_state(&m->rnd);
	spin_unlock_irqrestore(&m->lock, flags);
	return value % below;
}

static bool stress_over(struct stress *m)
{
	return atomic_read(&m->finished) == STRESS_STREAMS * STRESS_MESSAGES ||
	       READ_ONCE(m->wrong);
}

/* ---------------------------------------------------------------- posting */

static ssize_t stress_post(struct stress *m);

static void stress_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct stress_op *op = container_of(wc->cqe, struct stress_op, cqe);
	struct stress *m = op->m;

	stress_check(m, !atomic_read(&op->ended), "completed after its end");
	stress_check(m, wc->err || !op->multi ||
		     (wc->buf >= (void *)op->mem &&
		      wc->buf + wc->len <= (void *)op->mem + STRESS_MEM),
		     "a slice outside its memory");
	if (!op->multi || wc->flags & FI_MULTI_RECV)
		atomic_inc(&op->ended);
	if (!stress_random(m, 2))
		stress_post(m);
}

static void stress_space(struct fid_ep *ep, void *context)
{
	struct stress *m = context;

	atomic_inc(&m->spaces);
	wake_up(&m->wait);
}

static struct stress_op *stress_get(struct stress *m)
{
	struct stress_op *op;
	unsigned long flags;

	spin_lock_irqsave(&m->lock, flags);
	op = m->spare;
	if (op)
		m->spare = op->spare;
	else if (m->next < STRESS_OPS)
		op = &m->ops[m->next++];
	spin_unlock_irqrestore(&m->lock, flags);
	return op;
}

static void stress_put(struct stress *m, struct stress_op *op)
{
	unsigned long flags;

	spin_lock_irqsave(&m->lock, flags);
	op->spare = m->spare;
	m->spare = op;
	spin_unlock_irqrestore(&m->lock, flags);
}

static ssize_t stress_post(struct stress *m)
{
	struct stress_op *op = stress_get(m);
	struct kvec kv = { .iov_len = STRESS_MEM };
	struct fi_msg msg = { .msg_iov = &kv, .iov_count = 1 };
	struct fi_msg_tagged tagged = { .msg_iov = &kv, .iov_count = 1 };
	ssize_t ret;

	if (!op) {
		stress_check(m, false, "too many operations for too little");
		return -ENOSPC;
	}
	op->m = m;
	op->multi = false;
	op->cqe.done = stress_done;
	kv.iov_base = op->mem;
	msg.context = op;
	tagged.context = op;
	tagged.tag = stress_random(m, 3);
	tagged.ignore = stress_random(m, 2) ? 3 : 0;
	/* It may end before the post returns. */
	op->accepted = true;
	switch (stress_random(m, 8)) {
	case 0 ... 2:
		ret = fi_recvmsg(m->srx, &msg, 0);
		break;
	case 3 ... 4:
		op->multi = true;
		ret = fi_recvmsg(m->srx, &msg, FI_MULTI_RECV);
		break;
	case 5 ... 6:
		ret = fi_trecvmsg(m->srx, &tagged, 0);
		break;
	default:
		ret = fi_trecvmsg(m->srx, &tagged, FI_PEEK | FI_DISCARD);
		break;
	}
	if (ret) {
		op->accepted = false;
		stress_check(m, ret == -EAGAIN || READ_ONCE(m->draining),
			     "refused with another error");
		stress_put(m, op);
	}
	return ret;
}

/* All records or slots are taken: by receives that match nothing, perhaps. */
static void stress_cancel(struct stress *m)
{
	int i = READ_ONCE(m->next);

	while (--i >= 0)
		if (!fi_cancel(&m->srx->fid, &m->ops[i]) &&
		    !stress_random(m, 3))
			break;
}

/*
 * What is thrown away costs an operation and takes no time, while without timers of
 * high resolution a stream waits for the next tick: one more for each message or tick
 * then.
 */
static bool stress_ahead(struct stress *m, int finished)
{
	return READ_ONCE(m->next) > STRESS_AHEAD + STRESS_EACH * finished;
}

static void stress_pace(struct stress *m)
{
	int seen = atomic_read(&m->finished);

	if (stress_ahead(m, seen))
		wait_event_timeout(m->wait, stress_over(m) ||
				   atomic_read(&m->finished) != seen, 1);
}

static int stress_poster(void *arg)
{
	struct stress *m = arg;
	int seen;

	while (!stress_over(m)) {
		stress_pace(m);
		seen = atomic_read(&m->spaces);
		if (stress_post(m) != -EAGAIN) {
			cond_resched();
			continue;
		}
		stress_cancel(m);
		if (!wait_event_timeout(m->wait, stress_over(m) ||
					atomic_read(&m->spaces) != seen,
					STRESS_TIMEOUT))
			stress_check(m, false, "no write space after -EAGAIN");
	}
	return 0;
}

static enum hrtimer_restart stress_irq(struct hrtimer *timer)
{
	struct stress *m = container_of(timer, struct stress, irq);

	if (stress_over(m))
		return HRTIMER_NORESTART;
	if (!stress_ahead(m, atomic_read(&m->finished)))
		stress_post(m);
	hrtimer_forward_now(timer, ns_to_ktime(300 * NSEC_PER_USEC));
	return HRTIMER_RESTART;
}

/* ---------------------------------------------------------------- streams */

static void stress_kick(struct stress_stream *s)
{
	if (s->timed)
		hrtimer_start(&s->timer, ns_to_ktime(20 * NSEC_PER_USEC),
			      s->soft ? HRTIMER_MODE_REL_SOFT :
					HRTIMER_MODE_REL_HARD);
	else
		queue_work(system_unbound_wq, &s->work);
}

static void stress_wake(struct kofi_rxmsg *msg)
{
	stress_kick(container_of(msg, struct stress_stream, msg));
}

static void stress_finished(struct stress_stream *s)
{
	s->active = false;
	atomic_inc(&s->m->finished);
	wake_up(&s->m->wait);
}

static void stress_place(struct stress_stream *s)
{
	struct kofi_wc wc = {
		.flags = FI_RECV | (s->msg.tagged ? FI_TAGGED : FI_MSG),
		.len = min(s->msg.len, s->op->cur.len),
		.src = FI_ADDR_NOTAVAIL,
	};
	struct stress_op *op = s->op->context;
	size_t first, i;

	if (s->msg.len > wc.len) {
		wc.err = FI_ETRUNC;
		wc.olen = s->msg.len - wc.len;
	}
	if (s->op->multi && s->op->buf) {
		first = (u8 *)s->op->buf - op->mem;
		for (i = first; i < first + wc.len; i++)
			stress_check(s->m, i < STRESS_MEM &&
				     !test_and_set_bit(i, op->taken),
				     "slices share a byte");
	}
	kofi_rxq_done(s->m->q, s->op, &wc);
	s->op = NULL;
	stress_finished(s);
}

/* One message, or a part of its way. Returns false if it waits. */
static bool stress_go(struct stress_stream *s)
{
	struct stress *m = s->m;

	if (s->op) {
		stress_place(s);
		return true;
	}
	if (!s->active) {
		s->active = true;
		s->left--;
		s->msg.tagged = stress_random(m, 2);
		s->msg.tag = stress_random(m, 3);
		s->msg.len = stress_random(m, STRESS_MEM / 2);
	}
	if (kofi_rxq_match(m->q, &s->msg, &s->op)) {
		if (stress_random(m, 32))
			return false;
		kofi_rxq_forget(m->q, &s->msg);
		stress_finished(s);
	} else if (!s->op) {
		stress_finished(s);
	} else if (stress_random(m, 2)) {
		stress_place(s);
	}
	return true;
}

static void stress_run(struct stress_stream *s)
{
	unsigned long flags;
	bool more = true;
	int budget = 8;

	spin_lock_irqsave(&s->lock, flags);
	while (more && budget-- && (s->active || s->left))
		more = stress_go(s);
	more = more && (s->active || s->left);
	spin_unlock_irqrestore(&s->lock, flags);
	if (more)
		stress_kick(s);
}

static enum hrtimer_restart stress_timer(struct hrtimer *timer)
{
	stress_run(container_of(timer, struct stress_stream, timer));
	return HRTIMER_NORESTART;
}

static void stress_work(struct work_struct *work)
{
	stress_run(container_of(work, struct stress_stream, work));
}

/* ----------------------------------------------------------------- set-up */

static void stress_open_stream(struct stress *m, struct fake_world *world,
			       int i)
{
	struct stress_stream *s = &m->streams[i];
	struct kunit *test = m->test;

	s->m = m;
	s->left = STRESS_MESSAGES;
	s->timed = i & 1;
	s->soft = i & 2;
	spin_lock_init(&s->lock);
	hrtimer_setup(&s->timer, stress_timer, CLOCK_MONOTONIC, s->soft ?
		      HRTIMER_MODE_REL_SOFT : HRTIMER_MODE_REL_HARD);
	INIT_WORK(&s->work, stress_work);
	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(world->domain, world->info, &s->ep,
					     NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(s->ep, &m->eq->fid, 0));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(s->ep, &m->cq->fid, FI_TRANSMIT));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(s->ep, &m->srx->fid, 0));
	fake_connected(test, s->ep);
	kofi_rxmsg_init(&s->msg, &fake_of(s->ep)->base, stress_wake);
}

static void stress_open(struct stress *m, struct fake_world *world,
			enum kofi_poll poll)
{
	struct kofi_cq_attr kattr = { .poll = poll, .done = true };
	struct fi_cq_attr attr = { .size = 20 };
	struct fi_rx_attr rx = { .size = 12 };
	struct kunit *test = m->test;
	int i;

	KUNIT_ASSERT_EQ(test, 0, fi_eq_open(world->fabric, NULL, &m->eq, NULL));
	KUNIT_ASSERT_EQ(test, 0, kofi_cq_open(world->domain, &attr, &kattr,
					      &m->cq, m));
	KUNIT_ASSERT_EQ(test, 0, fi_srx_context(world->domain, &rx, &m->srx,
						m));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(m->srx, &m->cq->fid, FI_RECV));
	KUNIT_ASSERT_EQ(test, 0, kofi_ep_write_space(m->srx, stress_space));
	m->q = &container_of(m->srx, struct kofi_srx, base.ep)->rxq;
	for (i = 0; i < STRESS_STREAMS; i++)
		stress_open_stream(m, world, i);
	hrtimer_setup(&m->irq, stress_irq, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_HARD);
}

static void stress_stat(void *arg, const char *name, u64 value)
{
	if (!strcmp(name, "reserved") || !strcmp(name, "waiting"))
		stress_check(arg, !value, "a slot is left over");
}

static void stress_end(struct stress *m)
{
	struct kofi_obj *obj = m->cq->fid.obj;
	struct stress_stream *s;
	int i;

	hrtimer_cancel(&m->irq);
	for (s = m->streams; s < m->streams + STRESS_STREAMS; s++) {
		hrtimer_cancel(&s->timer);
		cancel_work_sync(&s->work);
		/* nothing to do unless something has gone wrong */
		if (s->op)
			stress_place(s);
		kofi_rxq_forget(m->q, &s->msg);
		hrtimer_cancel(&s->timer);
		cancel_work_sync(&s->work);
	}
	/* callbacks go on posting */
	WRITE_ONCE(m->draining, true);
	kofi_ep_drain(m->srx);
	for (i = 0; i < m->next; i++)
		stress_check(m, atomic_read(&m->ops[i].ended) ==
			     m->ops[i].accepted,
			     "accepted and not ended, or refused and ended");
	obj->ops->stats(obj, stress_stat, m);
	for (i = 0; i < STRESS_STREAMS; i++)
		KUNIT_EXPECT_EQ(m->test, 0, fi_close(&m->streams[i].ep->fid));
	KUNIT_EXPECT_EQ(m->test, 0, fi_close(&m->srx->fid));
	KUNIT_EXPECT_EQ(m->test, 0, fi_close(&m->cq->fid));
	KUNIT_EXPECT_EQ(m->test, 0, fi_close(&m->eq->fid));
}

static void stress_test(struct kunit *test)
{
	const enum kofi_poll *poll = test->param_value;
	struct fake_world *world = fake_open(test);
	struct stress *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	struct task_struct *posters[2];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	m->test = test;
	m->ops = kvcalloc(STRESS_OPS, sizeof(*m->ops), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m->ops);
	spin_lock_init(&m->lock);
	prandom_seed_state(&m->rnd, 1 + *poll);
	init_waitqueue_head(&m->wait);
	stress_open(m, world, *poll);

	for (i = 0; i < ARRAY_SIZE(posters); i++)
		posters[i] = fake_thread(test, stress_poster, m);
	hrtimer_start(&m->irq, ns_to_ktime(100 * NSEC_PER_USEC),
		      HRTIMER_MODE_REL_HARD);
	for (i = 0; i < STRESS_STREAMS; i++)
		stress_kick(&m->streams[i]);
	if (!wait_event_timeout(m->wait, stress_over(m), STRESS_TIMEOUT))
		stress_check(m, false, "the streams have come to a halt");
	wake_up(&m->wait);
	for (i = 0; i < ARRAY_SIZE(posters); i++)
		fake_join(posters[i]);
	stress_end(m);
	KUNIT_EXPECT_NULL_MSG(test, m->wrong, "%s", m->wrong);
	kunit_info(test, "%d operations for %d messages", m->next,
		   atomic_read(&m->finished));
	kvfree(m->ops);
	fake_close(test, world);
}

static const enum kofi_poll stress_polls[] = {
	KOFI_POLL_SOFTIRQ, KOFI_POLL_WORKQUEUE,
};

static void stress_name(const enum kofi_poll *poll, char *name)
{
	strscpy(name, *poll == KOFI_POLL_SOFTIRQ ? "softirq" : "work queue",
		KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(stress, stress_polls, stress_name);

/* ------------------------------------------------- many receives, one context */

#define DEEP_RECVS	16384
#define DEEP_HALF	(DEEP_RECVS / 2)
#define DEEP_TURNS	3

struct deep {
	struct kofi_rxq		q;
	struct fid_ep		*ep;
	struct fid_cq		*cq;
	struct kofi_rxmsg	msg;
	struct kofi_cqe		*cqes;
	int			ended;
};

static struct deep *deep_now;

static void deep_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	deep_now->ended++;
}

static void deep_wake(struct kofi_rxmsg *msg)
{
}

/* Post a receive for each tag; the memory is that of all. */
static void deep_post(struct kunit *test, struct deep *d)
{
	static char byte;
	const struct kvec kv = { &byte, 1 };
	struct fi_msg_tagged msg = {
		.msg_iov = &kv, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
	};
	int i;

	for (i = 0; i < DEEP_RECVS; i++) {
		msg.tag = i;
		msg.context = &d->cqes[i];
		KUNIT_ASSERT_EQ(test, 0, kofi_rxq_tpost(&d->q, &msg, 0));
	}
}

/* Messages for half of the tags, from the first on or from the last. */
static u64 deep_match(struct kunit *test, struct deep *d, bool backwards)
{
	struct kofi_wc wc = { .flags = FI_RECV | FI_TAGGED };
	u64 start = ktime_get_ns();
	struct kofi_rxop *op;
	int i;

	for (i = 0; i < DEEP_HALF; i++) {
		d->msg.tagged = true;
		d->msg.tag = backwards ? DEEP_RECVS - 1 - i : i;
		if (kofi_rxq_match(&d->q, &d->msg, &op) || !op)
			break;
		if (op->context != &d->cqes[d->msg.tag])
			break;
		kofi_rxq_done(&d->q, op, &wc);
	}
	KUNIT_ASSERT_EQ(test, DEEP_HALF, i);
	return ktime_get_ns() - start;
}

static u64 deep_cancel(struct kunit *test, struct deep *d, bool backwards)
{
	u64 start = ktime_get_ns();
	int i, n;

	for (i = 0; i < DEEP_HALF; i++) {
		n = backwards ? DEEP_RECVS - 1 - i : i;
		if (kofi_rxq_cancel(&d->q, &d->cqes[n]))
			break;
	}
	KUNIT_ASSERT_EQ(test, DEEP_HALF, i);
	return ktime_get_ns() - start;
}

/* The best of some turns counts: the host may take the processor away in any. */
static void deep_compare(struct kunit *test, struct deep *d,
			 u64 (*find)(struct kunit *test, struct deep *d,
				     bool backwards), const char *what)
{
	u64 near = U64_MAX, far = U64_MAX;
	int turn;

	for (turn = 0; turn < DEEP_TURNS; turn++) {
		deep_post(test, d);
		near = min(near, find(test, d, false));
		far = min(far, find(test, d, true));
		KUNIT_EXPECT_EQ(test, DEEP_RECVS, kofi_cq_poll(d->cq, INT_MAX));
	}
	kunit_info(test, "%d %s: %llu us, backwards %llu us", DEEP_HALF, what,
		   near / NSEC_PER_USEC, far / NSEC_PER_USEC);
	KUNIT_EXPECT_LT(test, far, 8 * near);
}

/*
 * The receive that was posted last is found about as fast as the first, by its
 * tag and by its context. A search from the first on would take thousands of
 * times as many steps.
 */
static void deep_test(struct kunit *test)
{
	const struct kofi_cq_attr kattr = {
		.poll = KOFI_POLL_DIRECT, .done = true,
	};
	struct fi_cq_attr attr = { .size = DEEP_RECVS };
	struct fake_world *world = fake_open(test);
	struct deep *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, d);
	deep_now = d;
	d->cqes = kvcalloc(DEEP_RECVS, sizeof(*d->cqes), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d->cqes);
	for (i = 0; i < DEEP_RECVS; i++)
		d->cqes[i].done = deep_done;
	world->info->rx_attr->iov_limit = 1;
	KUNIT_ASSERT_EQ(test, 0, kofi_cq_open(world->domain, &attr, &kattr,
					      &d->cq, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(world->domain, world->info,
					     &d->ep, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(d->ep, &d->cq->fid,
					    FI_TRANSMIT | FI_RECV));
	KUNIT_ASSERT_EQ(test, 0, kofi_rxq_init(&d->q, &fake_of(d->ep)->base,
					       DEEP_RECVS));
	kofi_rxmsg_init(&d->msg, &fake_of(d->ep)->base, deep_wake);

	deep_compare(test, d, deep_match, "tags");
	deep_compare(test, d, deep_cancel, "cancels");
	KUNIT_EXPECT_EQ(test, 2 * DEEP_TURNS * DEEP_RECVS, d->ended);

	KUNIT_EXPECT_EQ(test, 0, fi_close(&d->ep->fid));
	kofi_rxq_exit(&d->q);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&d->cq->fid));
	kvfree(d->cqes);
	fake_close(test, world);
}

static struct kunit_case stress_cases[] = {
	KUNIT_CASE(deep_test),
	KUNIT_CASE_PARAM(stress_test, stress_gen_params),
	{}
};

struct kunit_suite kofi_rxq_stress_suite = {
	.name		= "lib_rxq_stress",
	.suite_init	= fake_suite_init,
	.suite_exit	= fake_suite_exit,
	.test_cases	= stress_cases,
};

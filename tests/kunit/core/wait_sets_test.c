// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Wait sets and poll sets: who may be in them, what counts as something to be
 * read, who is woken. One queue of each kind is made for most tests; what they
 * get is made by hand.
 */
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "fake.h"
#include "queues.h"

#define POLL_LONG_MS	TEST_LIMIT(30000)	/* none that is woken waits that long */

struct poll_test {
	struct fake_world	*world;
	struct fid_wait		*set;
	struct fid_poll		*poll;
	struct fid_eq		*eq;	/* the members */
	struct fid_cq		*cq;
	struct fid_cntr		*cntr;
	struct fid_eq		*events;	/* of the endpoint, no member */
	struct fid_ep		*ep;
	struct kofi_ep		*kep;
	struct kofi_eq		*keq;	/* eq, as providers see it */
};

static int poll_init(struct kunit *test)
{
	struct poll_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	test->priv = t;
	t->world = fake_open(test);
	KUNIT_ASSERT_EQ(test, 0, fi_wait_open(t->world->fabric, NULL, &t->set));
	KUNIT_ASSERT_EQ(test, 0, fi_poll_open(t->world->domain, NULL,
					      &t->poll));
	return 0;
}

static void poll_exit(struct kunit *test)
{
	struct poll_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->poll->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->set->fid));
	fake_close(test, t->world);
}

static struct fid_eq *poll_eq(struct kunit *test, enum fi_wait_obj wait_obj)
{
	struct poll_test *t = test->priv;
	struct fi_eq_attr attr = {
		.flags = FI_WRITE, .wait_obj = wait_obj, .wait_set = t->set,
	};
	struct fid_eq *eq;

	KUNIT_ASSERT_EQ(test, 0, fi_eq_open(t->world->fabric, &attr, &eq,
					    "eq"));
	return eq;
}

static struct fid_cq *poll_cq(struct kunit *test, enum fi_wait_obj wait_obj)
{
	struct poll_test *t = test->priv;
	struct fi_cq_attr attr = { .wait_obj = wait_obj, .wait_set = t->set };
	struct fid_cq *cq;

	KUNIT_ASSERT_EQ(test, 0, fi_cq_open(t->world->domain, &attr, &cq,
					    "cq"));
	return cq;
}

static struct fid_cntr *poll_cntr(struct kunit *test, enum fi_wait_obj wait_obj)
{
	struct poll_test *t = test->priv;
	struct fi_cntr_attr attr = { .wait_obj = wait_obj, .wait_set = t->set };
	struct fid_cntr *cntr;

	KUNIT_ASSERT_EQ(test, 0, fi_cntr_open(t->world->domain, &attr, &cntr,
					      "cntr"));
	return cntr;
}

/* An endpoint whose completions go to the queue */
static struct fid_ep *poll_ep(struct kunit *test, struct fid_cq *cq)
{
	struct poll_test *t = test->priv;
	struct fid_ep *ep;

	if (!t->events)
		t->events = poll_eq(test, FI_WAIT_NONE);
	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(t->world->domain, t->world->info,
					     &ep, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &t->events->fid, 0));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &cq->fid,
					    FI_TRANSMIT | FI_RECV));
	fake_connected(test, ep);
	return ep;
}

/* One of each */
static void poll_open(struct kunit *test, enum fi_wait_obj wait_obj)
{
	struct poll_test *t = test->priv;
	struct fid_ep *ep;

	t->eq = poll_eq(test, wait_obj);
	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(t->world->domain, t->world->info,
					     &ep, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &t->eq->fid, 0));
	t->keq = fake_of(ep)->base.eq;
	KUNIT_ASSERT_EQ(test, 0, fi_close(&ep->fid));
	t->cq = poll_cq(test, wait_obj);
	t->cntr = poll_cntr(test, wait_obj);
	t->ep = poll_ep(test, t->cq);
	t->kep = &fake_of(t->ep)->base;
}

static void poll_close(struct kunit *test)
{
	struct poll_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->ep->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->events->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->cntr->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->cq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->eq->fid));
	t->events = NULL;
}

static void poll_complete(struct kofi_ep *ep, int err)
{
	const struct kofi_wc wc = { .err = err, .flags = FI_MSG | FI_RECV };

	if (!WARN_ON(kofi_ep_rx_reserve(ep)))
		kofi_ep_rx_complete(ep, ep, &wc, 0);
}

/* ----------------------------------------------------------------- opening */

static const struct {
	const char		*name;
	struct fi_wait_attr	attr;
	int			ret;
} poll_waits[] = {
	{ "unspecified", { .wait_obj = FI_WAIT_UNSPEC }, 0 },
	{ "yield", { .wait_obj = FI_WAIT_YIELD }, 0 },
	{ "wait queue", { .wait_obj = (enum fi_wait_obj)KOFI_WAIT_QUEUE }, 0 },
	{ "don't care", {}, 0 },
	{ "set of sets", { .wait_obj = FI_WAIT_SET }, -EINVAL },
	{ "file descriptor", { .wait_obj = FI_WAIT_FD }, -ENOSYS },
	{ "mutex and condition", { .wait_obj = FI_WAIT_MUTEX_COND }, -ENOSYS },
	{ "poll descriptor", { .wait_obj = FI_WAIT_POLLFD }, -ENOSYS },
	{ "nonsense", { .wait_obj = (enum fi_wait_obj)99 }, -EINVAL },
	{ "flags", { .wait_obj = FI_WAIT_UNSPEC, .flags = 1 }, -FI_EBADFLAGS },
};

static void poll_wait_open_test(struct kunit *test)
{
	struct poll_test *t = test->priv;
	wait_queue_head_t *wait = NULL;
	struct fi_wait_attr attr;
	enum fi_wait_obj obj;
	struct fid_wait *set;
	int i, ret;

	for (i = 0; i < ARRAY_SIZE(poll_waits); i++) {
		attr = poll_waits[i].attr;
		KUNIT_EXPECT_EQ_MSG(test, poll_waits[i].ret,
				    fi_wait_open(t->world->fabric, &attr, &set),
				    "%s", poll_waits[i].name);
		if (poll_waits[i].ret)
			continue;
		KUNIT_EXPECT_EQ(test, (size_t)FI_CLASS_WAIT, set->fid.fclass);
		KUNIT_EXPECT_EQ(test, 0, fi_control(&set->fid, FI_GETWAITOBJ,
						    &obj));
		KUNIT_EXPECT_EQ(test, (int)(attr.wait_obj ?: FI_WAIT_UNSPEC),
				(int)obj);
		ret = fi_control(&set->fid, FI_GETWAIT, &wait);
		KUNIT_EXPECT_EQ(test, (int)obj == KOFI_WAIT_QUEUE ? 0 :
				-ENODATA, ret);
		KUNIT_EXPECT_EQ(test, -ETIMEDOUT, fi_wait(set, 0));
		KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&t->world->fabric->fid));
		KUNIT_EXPECT_EQ(test, 0, fi_close(&set->fid));
	}
	KUNIT_EXPECT_NOT_NULL(test, wait);
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_wait_open(NULL, NULL, &set));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_wait_open(t->world->fabric, NULL, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_wait(NULL, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_wait((struct fid_wait *)t->world->fabric, 0));
}

/* What a queue with FI_WAIT_SET needs */
static void poll_join_test(struct kunit *test)
{
	struct poll_test *t = test->priv;
	struct fake_world *other = fake_open(test);
	struct fi_cntr_attr cntr_attr = { .wait_obj = FI_WAIT_SET };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_SET };
	struct fi_cq_attr cq_attr = { .wait_obj = FI_WAIT_SET };
	struct {
		const char	*name;
		struct fid_wait	*set;
		int		ret;
	} cases[] = {
		{ "none", NULL, -EINVAL },
		{ "no set", (struct fid_wait *)t->poll, -EINVAL },
		{ "set of another fabric", NULL, -FI_EDOMAIN },
		{ "set", t->set, 0 },
	};
	struct fid_wait *far;
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct fid_eq *eq;
	int i;

	KUNIT_ASSERT_EQ(test, 0, fi_wait_open(other->fabric, NULL, &far));
	cases[2].set = far;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		cntr_attr.wait_set = cases[i].set;
		eq_attr.wait_set = cases[i].set;
		cq_attr.wait_set = cases[i].set;
		KUNIT_EXPECT_EQ_MSG(test, cases[i].ret,
				    fi_eq_open(t->world->fabric, &eq_attr, &eq,
					       NULL), "%s", cases[i].name);
		KUNIT_EXPECT_EQ_MSG(test, cases[i].ret,
				    fi_cq_open(t->world->domain, &cq_attr, &cq,
					       NULL), "%s", cases[i].name);
		KUNIT_EXPECT_EQ_MSG(test, cases[i].ret,
				    fi_cntr_open(t->world->domain, &cntr_attr,
						 &cntr, NULL), "%s",
				    cases[i].name);
	}
	/* The last ones were opened; the set outlives them. */
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&t->set->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&eq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cq->fid));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&t->set->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cntr->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&far->fid));
	fake_close(test, other);
}

/* --------------------------------------------------------------- what counts */

enum {
	POLL_EQ,
	POLL_EQ_ERROR,
	POLL_CQ,
	POLL_CQ_ERROR,
	POLL_SIGNAL,
	POLL_CNTR,
	POLL_CNTR_ERROR,
	POLL_CNTR_OWN,
	POLL_KINDS
};

static const char *const poll_kind_names[POLL_KINDS] = {
	"event", "error event", "completion", "error completion", "signal",
	"counter", "counter's errors", "counter set by the reader",
};

static struct fi_fid *poll_fid(struct poll_test *t, int kind)
{
	if (kind <= POLL_EQ_ERROR)
		return &t->eq->fid;
	return kind <= POLL_SIGNAL ? &t->cq->fid : &t->cntr->fid;
}

static void poll_make(struct kunit *test, int kind)
{
	struct poll_test *t = test->priv;
	static struct kofi_event error = { .err = FI_EIO };

	switch (kind) {
	case POLL_EQ:
		KUNIT_EXPECT_EQ(test, 1L, fi_eq_write(t->eq, 7, "x", 1, 0));
		break;
	case POLL_EQ_ERROR:
		kofi_eq_queue(t->keq, &error);
		break;
	case POLL_CQ:
		poll_complete(t->kep, 0);
		break;
	case POLL_CQ_ERROR:
		poll_complete(t->kep, EIO);
		break;
	case POLL_SIGNAL:
		KUNIT_EXPECT_EQ(test, 0, fi_cq_signal(t->cq));
		break;
	case POLL_CNTR_ERROR:
		KUNIT_EXPECT_EQ(test, 0, fi_cntr_adderr(t->cntr, 1));
		break;
	default:
		KUNIT_EXPECT_EQ(test, 0, fi_cntr_add(t->cntr, 1));
		break;
	}
}

static void poll_take(struct kunit *test, int kind)
{
	struct poll_test *t = test->priv;
	struct fi_cq_err_entry cq_error = {};
	struct fi_eq_err_entry error = {};
	struct fi_cq_entry entry;
	char byte[8];
	u32 event;

	switch (kind) {
	case POLL_EQ:
		KUNIT_EXPECT_EQ(test, 1L, fi_eq_read(t->eq, &event, byte,
						     sizeof(byte), 0));
		break;
	case POLL_EQ_ERROR:
		KUNIT_EXPECT_EQ(test, (ssize_t)sizeof(error),
				fi_eq_readerr(t->eq, &error, 0));
		break;
	case POLL_CQ:
		KUNIT_EXPECT_EQ(test, 1L, fi_cq_read(t->cq, &entry, 1));
		break;
	case POLL_CQ_ERROR:
		KUNIT_EXPECT_EQ(test, 1L, fi_cq_readerr(t->cq, &cq_error, 0));
		break;
	case POLL_SIGNAL:
		KUNIT_EXPECT_EQ(test, -EAGAIN, fi_cq_read(t->cq, &entry, 1));
		break;
	case POLL_CNTR:
		KUNIT_EXPECT_NE(test, 0ULL, fi_cntr_read(t->cntr));
		break;
	case POLL_CNTR_ERROR:
		fi_cntr_read(t->cntr);
		KUNIT_EXPECT_EQ(test, 0, fi_wait(t->set, 0));
		KUNIT_EXPECT_NE(test, 0ULL, fi_cntr_readerr(t->cntr));
		break;
	case POLL_CNTR_OWN:
		KUNIT_EXPECT_EQ(test, 0, fi_cntr_set(t->cntr, 0));
		break;
	}
}

/* Each kind of thing is there until it is read, for all who ask, and no longer. */
static void poll_level_test(struct kunit *test)
{
	struct poll_test *t = test->priv;
	struct fi_fid *set = &t->set->fid, *fid;
	void *context[4];
	int kind, i;

	poll_open(test, FI_WAIT_SET);
	for (i = 0; i < 3; i++) {
		static const int kinds[] = { POLL_EQ, POLL_CQ, POLL_CNTR };

		KUNIT_EXPECT_EQ(test, 0,
				fi_poll_add(t->poll, poll_fid(t, kinds[i]), 0));
	}
	for (kind = 0; kind < POLL_KINDS; kind++) {
		const char *name = poll_kind_names[kind];

		fid = poll_fid(t, kind);
		KUNIT_EXPECT_EQ_MSG(test, -ETIMEDOUT, fi_wait(t->set, 0), "%s",
				    name);
		KUNIT_EXPECT_EQ_MSG(test, 0, fi_trywait(t->world->fabric, &set,
							1), "%s", name);
		KUNIT_EXPECT_EQ_MSG(test, 0, fi_trywait(t->world->fabric, &fid,
							1), "%s", name);
		KUNIT_EXPECT_EQ_MSG(test, 0, fi_poll(t->poll, context, 4), "%s",
				    name);
		poll_make(test, kind);
		for (i = 0; i < 2; i++) {
			KUNIT_EXPECT_EQ_MSG(test, 0, fi_wait(t->set, -1), "%s",
					    name);
			KUNIT_EXPECT_EQ_MSG(test, -EAGAIN,
					    fi_trywait(t->world->fabric, &set,
						       1), "%s", name);
			KUNIT_EXPECT_EQ_MSG(test, -EAGAIN,
					    fi_trywait(t->world->fabric, &fid,
						       1), "%s", name);
			KUNIT_EXPECT_EQ_MSG(test, 1, fi_poll(t->poll, context,
							     4), "%s", name);
			KUNIT_EXPECT_PTR_EQ(test, fid->context, context[0]);
		}
		poll_take(test, kind);
	}
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, fi_wait(t->set, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_poll(t->poll, context, 4));
	KUNIT_EXPECT_EQ(test, 0, fi_poll_del(t->poll, &t->eq->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_poll_del(t->poll, &t->cq->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_poll_del(t->poll, &t->cntr->fid, 0));
	poll_close(test);
}

/* The tool's look at a counter is not the consumer's. */
static void poll_stats(void *arg, const char *name, u64 value)
{
	*(u64 *)arg += value;
}

static void poll_counter_test(struct kunit *test)
{
	struct poll_test *t = test->priv;
	u64 sum = 0;

	poll_open(test, FI_WAIT_SET);
	fi_cntr_add(t->cntr, 5);
	t->cntr->fid.obj->ops->stats(t->cntr->fid.obj, poll_stats, &sum);
	KUNIT_EXPECT_EQ(test, 5ULL, sum);
	KUNIT_EXPECT_EQ(test, 0, fi_cntr_wait(t->cntr, 5, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_wait(t->set, 0));
	KUNIT_EXPECT_EQ(test, 5ULL, fi_cntr_read(t->cntr));
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, fi_wait(t->set, 0));
	/* Nothing is new about a value that is back at what was read. */
	fi_cntr_add(t->cntr, 1);
	fi_cntr_add(t->cntr, U64_MAX);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, fi_wait(t->set, 0));
	poll_close(test);
}

/* ------------------------------------------------------------------ trywait */

static void poll_trywait_test(struct kunit *test)
{
	struct poll_test *t = test->priv;
	struct fake_world *other = fake_open(test);
	struct fi_fid *fids[3], *none, *far;
	struct fid_wait *far_set;
	struct fid_eq *eq;

	poll_open(test, (enum fi_wait_obj)KOFI_WAIT_QUEUE);
	fids[0] = &t->eq->fid;
	fids[1] = &t->cq->fid;
	fids[2] = &t->cntr->fid;
	KUNIT_EXPECT_EQ(test, 0, fi_trywait(t->world->fabric, fids, 3));
	poll_make(test, POLL_CNTR);
	KUNIT_EXPECT_EQ(test, 0, fi_trywait(t->world->fabric, fids, 2));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_trywait(t->world->fabric, fids, 3));
	poll_take(test, POLL_CNTR);
	/* A signal lasts until the queue was looked at. */
	poll_make(test, POLL_SIGNAL);
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_trywait(t->world->fabric, fids, 3));
	poll_take(test, POLL_SIGNAL);
	KUNIT_EXPECT_EQ(test, 0, fi_trywait(t->world->fabric, fids, 3));

	eq = poll_eq(test, FI_WAIT_NONE);
	none = &eq->fid;
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_trywait(t->world->fabric, &none, 1));
	KUNIT_EXPECT_EQ(test, 0, fi_close(none));
	KUNIT_ASSERT_EQ(test, 0, fi_wait_open(other->fabric, NULL, &far_set));
	far = &far_set->fid;
	KUNIT_EXPECT_EQ(test, -FI_EDOMAIN,
			fi_trywait(t->world->fabric, &far, 1));
	KUNIT_EXPECT_EQ(test, 0, fi_trywait(other->fabric, &far, 1));
	KUNIT_EXPECT_EQ(test, 0, fi_close(far));
	far = &t->ep->fid;
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_trywait(t->world->fabric, &far, 1));
	far = NULL;
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_trywait(t->world->fabric, &far, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_trywait(t->world->fabric, fids, -1));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_trywait(t->world->fabric, NULL, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_trywait(NULL, fids, 1));
	KUNIT_EXPECT_EQ(test, 0, fi_trywait(t->world->fabric, NULL, 0));
	poll_close(test);
	fake_close(test, other);
}

/* ---------------------------------------------------------------- poll sets */

static void poll_nothing(struct fid_cq *cq, const struct kofi_wc *wc)
{
}

static void poll_set_test(struct kunit *test)
{
	struct poll_test *t = test->priv;
	struct fake_world *other = fake_open(test);
	struct kofi_cq_attr done = { .done = true };
	struct fi_poll_attr attr = { .flags = 1 };
	struct fid_poll *far;
	struct fid_cq *cq;
	void *context[1];

	poll_open(test, FI_WAIT_NONE);
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS,
			fi_poll_open(t->world->domain, &attr, &far));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_poll_open(NULL, NULL, &far));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_poll_open(t->world->domain, NULL, NULL));

	KUNIT_EXPECT_EQ(test, -ENOENT, fi_poll_del(t->poll, &t->cq->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_poll_add(t->poll, &t->cq->fid, 0));
	KUNIT_EXPECT_EQ(test, -EALREADY, fi_poll_add(t->poll, &t->cq->fid, 0));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&t->poll->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->ep->fid));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&t->cq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_poll_del(t->poll, &t->cq->fid, 0));
	t->ep = poll_ep(test, t->cq);

	KUNIT_EXPECT_EQ(test, -EINVAL, fi_poll_add(t->poll, NULL, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_poll_add(NULL, &t->cq->fid, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_poll_add(t->poll, &t->set->fid, 0));
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS,
			fi_poll_add(t->poll, &t->cq->fid, 1));
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS,
			fi_poll_del(t->poll, &t->cq->fid, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_poll_del(t->poll, NULL, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_poll(t->poll, NULL, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_poll(t->poll, context, -1));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_poll(NULL, context, 1));
	KUNIT_EXPECT_EQ(test, 0, fi_poll(t->poll, NULL, 0));

	KUNIT_ASSERT_EQ(test, 0, fi_poll_open(other->domain, NULL, &far));
	KUNIT_EXPECT_EQ(test, -FI_EDOMAIN, fi_poll_add(far, &t->cq->fid, 0));
	KUNIT_EXPECT_EQ(test, -FI_EDOMAIN, fi_poll_add(far, &t->cntr->fid, 0));
	KUNIT_EXPECT_EQ(test, -FI_EDOMAIN, fi_poll_add(far, &t->eq->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&far->fid));

	/* A queue that calls back cannot be asked whether it has something. */
	done.poll = KOFI_POLL_SOFTIRQ;
	KUNIT_ASSERT_EQ(test, 0, kofi_cq_open(t->world->domain, NULL, &done,
					      &cq, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_poll_add(t->poll, &cq->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cq->fid));
	poll_close(test);
	fake_close(test, other);
}

/* A queue that calls back when it is polled is reported while there is work. */
static void poll_direct_test(struct kunit *test)
{
	struct poll_test *t = test->priv;
	const struct kofi_cq_attr done = {
		.poll = KOFI_POLL_DIRECT, .done = true,
	};
	struct kofi_cqe cqe = { .done = poll_nothing };
	const struct kofi_wc wc = { .cqe = &cqe, .flags = FI_MSG | FI_RECV };
	struct kofi_ep *ep;
	void *context[2];
	struct fid_cq *cq;
	struct fid_ep *fid;

	KUNIT_ASSERT_EQ(test, 0, kofi_cq_open(t->world->domain, NULL, &done,
					      &cq, "direct"));
	fid = poll_ep(test, cq);
	ep = &fake_of(fid)->base;
	KUNIT_EXPECT_EQ(test, 0, fi_poll_add(t->poll, &cq->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_poll(t->poll, context, 2));
	KUNIT_EXPECT_EQ(test, 0, kofi_ep_rx_reserve(ep));
	kofi_ep_rx_complete(ep, ep, &wc, 0);
	KUNIT_EXPECT_EQ(test, 1, fi_poll(t->poll, context, 2));
	KUNIT_EXPECT_STREQ(test, "direct", (char *)context[0]);
	KUNIT_EXPECT_EQ(test, 1, kofi_cq_poll(cq, 8));
	KUNIT_EXPECT_EQ(test, 0, fi_poll(t->poll, context, 2));
	KUNIT_EXPECT_EQ(test, 0, fi_poll_del(t->poll, &cq->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&fid->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->events->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cq->fid));
}

#define POLL_MANY	9

/* An array that is too short favours none; and any context may ask. */
static void poll_fair_test(struct kunit *test)
{
	struct poll_test *t = test->priv;
	struct fid_cntr *cntrs[POLL_MANY];
	int seen[POLL_MANY] = {}, i, j;
	void *context[2];
	unsigned long flags;

	for (i = 0; i < POLL_MANY; i++) {
		KUNIT_ASSERT_EQ(test, 0, fi_cntr_open(t->world->domain, NULL,
						      &cntrs[i], &seen[i]));
		KUNIT_ASSERT_EQ(test, 0, fi_poll_add(t->poll, &cntrs[i]->fid,
						     0));
		if (i != 4)
			fi_cntr_add(cntrs[i], 1);
	}
	local_irq_save(flags);
	for (i = 0; i < 4 * (POLL_MANY - 1) / 2; i++)
		for (j = fi_poll(t->poll, context, 2) - 1; j >= 0; j--)
			(*(int *)context[j])++;
	local_irq_restore(flags);
	for (i = 0; i < POLL_MANY; i++) {
		KUNIT_EXPECT_EQ_MSG(test, i == 4 ? 0 : 4, seen[i], "%d", i);
		KUNIT_EXPECT_EQ(test, 0, fi_poll_del(t->poll, &cntrs[i]->fid,
						     0));
		KUNIT_EXPECT_EQ(test, 0, fi_close(&cntrs[i]->fid));
	}
}

/* ----------------------------------------------------------------- sleeping */

struct poll_sleeper {
	struct fid_wait		*set;
	struct task_struct	*task;
	int			timeout;
	int			ret;
	struct completion	begin;
	struct completion	end;
};

static int poll_sleep(void *arg)
{
	struct poll_sleeper *s = arg;

	allow_kernel_signal(SIGKILL);
	complete(&s->begin);
	s->ret = fi_wait(s->set, s->timeout);
	complete(&s->end);
	return 0;
}

static void poll_sleeper(struct kunit *test, struct poll_sleeper *s,
			 int timeout)
{
	struct poll_test *t = test->priv;

	s->set = t->set;
	s->timeout = timeout;
	init_completion(&s->begin);
	init_completion(&s->end);
	s->task = fake_thread(test, poll_sleep, s);
}

static void poll_sleep_start(struct kunit *test, struct poll_sleeper *s,
			     int timeout)
{
	poll_sleeper(test, s, timeout);
	/* It sleeps killably nowhere else. */
	while (!(READ_ONCE(s->task->__state) & TASK_WAKEKILL) &&
	       !completion_done(&s->end))
		schedule_timeout_idle(1);
}

static int poll_sleep_end(struct poll_sleeper *s)
{
	wait_for_completion(&s->end);
	fake_join(s->task);
	return s->ret;
}

static void poll_sleep_test(struct kunit *test)
{
	struct poll_test *t = test->priv;
	struct poll_sleeper s[3];
	unsigned long begin;
	int kind, i;

	poll_open(test, FI_WAIT_SET);
	for (kind = 0; kind < POLL_KINDS; kind++) {
		for (i = 0; i < ARRAY_SIZE(s); i++)
			poll_sleep_start(test, &s[i], POLL_LONG_MS);
		poll_make(test, kind);
		for (i = 0; i < ARRAY_SIZE(s); i++)
			KUNIT_EXPECT_EQ_MSG(test, 0, poll_sleep_end(&s[i]),
					    "%s", poll_kind_names[kind]);
		poll_take(test, kind);
	}

	begin = jiffies;
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, fi_wait(t->set, 30));
	KUNIT_EXPECT_TRUE(test, time_after_eq(jiffies, begin +
					      msecs_to_jiffies(30)));
	/* The set stays while somebody sleeps on it, who can be killed. */
	poll_sleep_start(test, &s[0], -1);
	poll_close(test);
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&t->set->fid));
	send_sig(SIGKILL, s[0].task, 1);
	KUNIT_EXPECT_EQ(test, -EINTR, poll_sleep_end(&s[0]));
}

/* A member that comes while somebody sleeps wakes him too. */
static void poll_late_test(struct kunit *test)
{
	struct poll_test *t = test->priv;
	struct poll_sleeper s;
	struct fid_cntr *cntr;
	int i;

	for (i = 0; i < 20; i++) {
		poll_sleep_start(test, &s, POLL_LONG_MS);
		cntr = poll_cntr(test, FI_WAIT_SET);
		KUNIT_EXPECT_EQ(test, 0, fi_cntr_add(cntr, 1));
		KUNIT_EXPECT_EQ(test, 0, poll_sleep_end(&s));
		KUNIT_EXPECT_EQ(test, 0, fi_close(&cntr->fid));
		KUNIT_EXPECT_EQ(test, -ETIMEDOUT, fi_wait(t->set, 0));
	}
}

static int poll_yield_later(void *arg)
{
	struct poll_test *t = arg;

	/* which does not sleep, so it is only given some time */
	schedule_timeout_idle(1);
	fi_eq_write(t->eq, 1, "x", 1, 0);
	schedule_timeout_idle(1);
	poll_complete(t->kep, 0);
	schedule_timeout_idle(1);
	fi_cntr_add(t->cntr, 1);
	return 0;
}

/* FI_WAIT_YIELD: the same calls, without sleeping */
static void poll_yield_test(struct kunit *test)
{
	struct poll_test *t = test->priv;
	struct fi_wait_attr attr = { .wait_obj = FI_WAIT_YIELD };
	struct fi_cq_entry entry;
	struct task_struct *task;
	struct poll_sleeper s;
	char byte[8];
	u32 event;

	poll_open(test, FI_WAIT_YIELD);
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_eq_sread(t->eq, &event, byte,
						   sizeof(byte), 20, 0));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_cq_sread(t->cq, &entry, 1, NULL, 20));
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, fi_cntr_wait(t->cntr, 1, 20));
	KUNIT_EXPECT_EQ(test, 0, fi_cntr_wait(t->cntr, 0, 0));
	task = fake_thread(test, poll_yield_later, t);
	KUNIT_EXPECT_EQ(test, 1L, fi_eq_sread(t->eq, &event, byte, sizeof(byte),
					      -1, 0));
	KUNIT_EXPECT_EQ(test, 1L, fi_cq_sread(t->cq, &entry, 1, NULL,
					      POLL_LONG_MS));
	KUNIT_EXPECT_EQ(test, 0, fi_cntr_wait(t->cntr, 1, -1));
	fake_join(task);
	KUNIT_EXPECT_EQ(test, 0, fi_cq_signal(t->cq));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fi_cq_sread(t->cq, &entry, 1, NULL, -1));
	poll_close(test);

	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->set->fid));
	KUNIT_ASSERT_EQ(test, 0, fi_wait_open(t->world->fabric, &attr,
					      &t->set));
	poll_sleeper(test, &s, -1);
	wait_for_completion(&s.begin);
	send_sig(SIGKILL, s.task, 1);
	KUNIT_EXPECT_EQ(test, -EINTR, poll_sleep_end(&s));
}

/* ------------------------------------------------------------- concurrency */

#define RACE_KINDS	3
#define RACE_MEMBERS	6	/* two of each kind */
#define RACE_READERS	3
#define RACE_EACH	150

/*
 * A writer per member puts in one thing at a time and waits until it has been
 * read; readers sleep whenever there is nothing. So each wake-up counts.
 */
struct poll_race {
	struct poll_test	*t;
	struct fid_eq		*eq[2];
	struct fid_cq		*cq[2];
	struct fid_ep		*ep[2];
	struct fid_cntr		*cntr[2];
	struct fid_cntr		*stop;	/* a member that is not read */
	atomic_t		writers;
	atomic_t		ended;
	atomic_t		taken[RACE_MEMBERS];
	wait_queue_head_t	ack;
	wait_queue_head_t	*own;	/* of the set, to sleep on by oneself */
	bool			over;
	atomic_t		lost;
};

static void poll_race_write(struct poll_race *r, int i)
{
	switch (i % RACE_KINDS) {
	case 0:
		WARN_ON(fi_eq_write(r->eq[i / RACE_KINDS], 1, "x", 1, 0) != 1);
		break;
	case 1:
		poll_complete(&fake_of(r->ep[i / RACE_KINDS])->base, 0);
		break;
	default:
		fi_cntr_add(r->cntr[i / RACE_KINDS], 1);
		break;
	}
}

static int poll_race_writer(void *arg)
{
	struct poll_race *r = arg;
	int i = atomic_inc_return(&r->writers) - 1, n;

	for (n = 1; n <= RACE_EACH; n++) {
		if (n % 8 == 0)
			schedule_timeout_idle(1);
		poll_race_write(r, i);
		if (!wait_event_timeout(r->ack, atomic_read(&r->taken[i]) >= n,
					msecs_to_jiffies(POLL_LONG_MS)))
			break;
	}
	if (atomic_inc_return(&r->ended) == RACE_MEMBERS) {
		WRITE_ONCE(r->over, true);
		fi_cntr_add(r->stop, 1);
	}
	return 0;
}

/* Two readers of a counter come here in either order. */
static void poll_race_count(atomic_t *taken, int value)
{
	int old = atomic_read(taken);

	while (old < value && !atomic_try_cmpxchg(taken, &old, value))
		;
}

static void poll_race_read(struct poll_race *r)
{
	struct fi_cq_entry entry;
	char byte[8];
	u32 event;
	int k;

	for (k = 0; k < 2; k++) {
		if (fi_eq_read(r->eq[k], &event, byte, sizeof(byte), 0) == 1)
			atomic_inc(&r->taken[k * RACE_KINDS]);
		if (fi_cq_read(r->cq[k], &entry, 1) == 1)
			atomic_inc(&r->taken[k * RACE_KINDS + 1]);
		poll_race_count(&r->taken[k * RACE_KINDS + 2],
				fi_cntr_read(r->cntr[k]));
	}
	wake_up_all(&r->ack);
}

static int poll_race_sleep(struct poll_race *r)
{
	struct fi_fid *set = &r->t->set->fid;
	DEFINE_WAIT(wait);
	long left = 1;

	if (!r->own)
		return fi_wait(r->t->set, POLL_LONG_MS);
	prepare_to_wait(r->own, &wait, TASK_IDLE);
	if (!fi_trywait(r->t->world->fabric, &set, 1))
		left = schedule_timeout(msecs_to_jiffies(POLL_LONG_MS));
	finish_wait(r->own, &wait);
	return left ? 0 : -ETIMEDOUT;
}

static int poll_race_reader(void *arg)
{
	struct poll_race *r = arg;

	while (!READ_ONCE(r->over)) {
		if (poll_race_sleep(r))
			atomic_inc(&r->lost);
		poll_race_read(r);
	}
	return 0;
}

static void poll_race_open(struct kunit *test, struct poll_race *r)
{
	int k;

	init_waitqueue_head(&r->ack);
	for (k = 0; k < 2; k++) {
		r->eq[k] = poll_eq(test, FI_WAIT_SET);
		r->cq[k] = poll_cq(test, FI_WAIT_SET);
		r->ep[k] = poll_ep(test, r->cq[k]);
		r->cntr[k] = poll_cntr(test, FI_WAIT_SET);
	}
	r->stop = poll_cntr(test, FI_WAIT_SET);
}

static void poll_race_close(struct kunit *test, struct poll_race *r)
{
	struct poll_test *t = test->priv;
	int k;

	for (k = 0; k < 2; k++) {
		KUNIT_EXPECT_EQ(test, 0, fi_close(&r->ep[k]->fid));
		KUNIT_EXPECT_EQ(test, 0, fi_close(&r->cq[k]->fid));
		KUNIT_EXPECT_EQ(test, 0, fi_close(&r->eq[k]->fid));
		KUNIT_EXPECT_EQ(test, 0, fi_close(&r->cntr[k]->fid));
	}
	KUNIT_EXPECT_EQ(test, 0, fi_close(&r->stop->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->events->fid));
	t->events = NULL;
}

static const enum fi_wait_obj poll_race_objs[] = {
	FI_WAIT_UNSPEC, FI_WAIT_YIELD, (enum fi_wait_obj)KOFI_WAIT_QUEUE,
};

static void poll_race_test(struct kunit *test)
{
	struct poll_test *t = test->priv;
	struct task_struct *tasks[RACE_MEMBERS + RACE_READERS];
	struct poll_race *r;
	int i, n;

	for (i = 0; i < ARRAY_SIZE(poll_race_objs); i++) {
		struct fi_wait_attr attr = { .wait_obj = poll_race_objs[i] };

		r = kzalloc(sizeof(*r), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, r);
		r->t = t;
		KUNIT_EXPECT_EQ(test, 0, fi_close(&t->set->fid));
		KUNIT_ASSERT_EQ(test, 0, fi_wait_open(t->world->fabric, &attr,
						      &t->set));
		fi_control(&t->set->fid, FI_GETWAIT, &r->own);
		poll_race_open(test, r);
		for (n = 0; n < RACE_READERS; n++)
			tasks[n] = fake_thread(test, poll_race_reader, r);
		for (; n < ARRAY_SIZE(tasks); n++)
			tasks[n] = fake_thread(test, poll_race_writer, r);
		/* kthread_stop() waits for a task that was begun. */
		while (!READ_ONCE(r->over))
			schedule_timeout_idle(1);
		for (n = 0; n < ARRAY_SIZE(tasks); n++)
			fake_join(tasks[n]);
		KUNIT_EXPECT_EQ(test, 0, atomic_read(&r->lost));
		for (n = 0; n < RACE_MEMBERS; n++)
			KUNIT_EXPECT_EQ_MSG(test, RACE_EACH,
					    atomic_read(&r->taken[n]),
					    "wait object %d, member %d",
					    (int)attr.wait_obj, n);
		poll_race_close(test, r);
		kfree(r);
	}
}

struct poll_churn {
	struct kunit	*test;
	atomic_t	ended;
	bool		over;
	atomic_t	failed;
};

static int poll_churn_members(void *arg)
{
	struct poll_churn *c = arg;
	struct poll_test *t = c->test->priv;
	int i;

	for (i = 0; i < 200; i++) {
		struct fi_cntr_attr attr = {
			.wait_obj = FI_WAIT_SET, .wait_set = t->set,
		};
		struct fid_cntr *cntr;

		if (fi_cntr_open(t->world->domain, &attr, &cntr, NULL)) {
			atomic_inc(&c->failed);
			continue;
		}
		fi_cntr_add(cntr, i % 2);
		if (fi_poll_add(t->poll, &cntr->fid, 0))
			atomic_inc(&c->failed);
		cond_resched();
		if (fi_poll_del(t->poll, &cntr->fid, 0) ||
		    fi_close(&cntr->fid))
			atomic_inc(&c->failed);
	}
	atomic_inc(&c->ended);
	return 0;
}

static int poll_churn_ask(void *arg)
{
	struct poll_churn *c = arg;
	struct poll_test *t = c->test->priv;
	struct fi_fid *set = &t->set->fid;
	void *context[4];
	int ret;

	while (!READ_ONCE(c->over)) {
		ret = fi_wait(t->set, 1);
		if (ret && ret != -ETIMEDOUT)
			atomic_inc(&c->failed);
		ret = fi_trywait(t->world->fabric, &set, 1);
		if (ret && ret != -EAGAIN)
			atomic_inc(&c->failed);
		if (fi_poll(t->poll, context, 4) < 0)
			atomic_inc(&c->failed);
		cond_resched();
	}
	return 0;
}

/* Members come and go while others ask and sleep. */
static void poll_churn_test(struct kunit *test)
{
	struct poll_churn churn = { .test = test };
	struct task_struct *members[3], *ask[2];
	int i;

	for (i = 0; i < ARRAY_SIZE(ask); i++)
		ask[i] = fake_thread(test, poll_churn_ask, &churn);
	for (i = 0; i < ARRAY_SIZE(members); i++)
		members[i] = fake_thread(test, poll_churn_members, &churn);
	while (atomic_read(&churn.ended) < ARRAY_SIZE(members))
		schedule_timeout_idle(1);
	for (i = 0; i < ARRAY_SIZE(members); i++)
		fake_join(members[i]);
	WRITE_ONCE(churn.over, true);
	for (i = 0; i < ARRAY_SIZE(ask); i++)
		fake_join(ask[i]);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&churn.failed));
}

static struct kunit_case poll_cases[] = {
	KUNIT_CASE(poll_wait_open_test),
	KUNIT_CASE(poll_join_test),
	KUNIT_CASE(poll_level_test),
	KUNIT_CASE(poll_counter_test),
	KUNIT_CASE(poll_trywait_test),
	KUNIT_CASE(poll_set_test),
	KUNIT_CASE(poll_direct_test),
	KUNIT_CASE(poll_fair_test),
	KUNIT_CASE(poll_sleep_test),
	KUNIT_CASE(poll_late_test),
	KUNIT_CASE(poll_yield_test),
	KUNIT_CASE(poll_race_test),
	KUNIT_CASE(poll_churn_test),
	{}
};

struct kunit_suite kofi_poll_suite = {
	.name		= "kofi_poll",
	.suite_init	= fake_suite_init,
	.suite_exit	= fake_suite_exit,
	.init		= poll_init,
	.exit		= poll_exit,
	.test_cases	= poll_cases,
};

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Counters: values, waiting, what an endpoint counts. */
#include <linux/hash.h>
#include <linux/module.h>

#include "fake.h"
#include "queues.h"

static int cntr_init(struct kunit *test)
{
	test->priv = fake_open(test);
	return 0;
}

static void cntr_exit(struct kunit *test)
{
	fake_close(test, test->priv);
}

static const struct {
	const char		*name;
	struct fi_cntr_attr	attr;
	int			ret;
} cntr_attrs[] = {
	{ "defaults", {}, 0 },
	{ "bytes", { .events = FI_CNTR_EVENTS_BYTES }, 0 },
	{ "wait queue",
	  { .wait_obj = (enum fi_wait_obj)KOFI_WAIT_QUEUE }, 0 },
	{ "unknown events", { .events = (enum fi_cntr_events)7 }, -EINVAL },
	{ "flags", { .flags = 1 }, -FI_EBADFLAGS },
	{ "file descriptor", { .wait_obj = FI_WAIT_FD }, -ENOSYS },
};

static void cntr_open_test(struct kunit *test)
{
	struct fake_world *world = test->priv;
	struct fi_cntr_attr attr;
	struct fid_cntr *cntr;
	int i;

	for (i = 0; i < ARRAY_SIZE(cntr_attrs); i++) {
		attr = cntr_attrs[i].attr;
		KUNIT_EXPECT_EQ_MSG(test, cntr_attrs[i].ret,
				    fi_cntr_open(world->domain, &attr, &cntr,
						 NULL),
				    "%s", cntr_attrs[i].name);
		if (!cntr_attrs[i].ret)
			KUNIT_EXPECT_EQ(test, 0, fi_close(&cntr->fid));
	}
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_cntr_open(NULL, NULL, &cntr, NULL));
}

static void cntr_value_test(struct kunit *test)
{
	struct fake_world *world = test->priv;
	struct fid_cntr *cntr;

	KUNIT_ASSERT_EQ(test, 0, fi_cntr_open(world->domain, NULL, &cntr,
					      NULL));
	KUNIT_EXPECT_EQ(test, 0ULL, fi_cntr_read(cntr));
	KUNIT_EXPECT_EQ(test, 0, fi_cntr_add(cntr, 5));
	KUNIT_EXPECT_EQ(test, 0, fi_cntr_adderr(cntr, 2));
	KUNIT_EXPECT_EQ(test, 0, fi_cntr_add(cntr, U64_MAX));
	KUNIT_EXPECT_EQ(test, 4ULL, fi_cntr_read(cntr));
	KUNIT_EXPECT_EQ(test, 2ULL, fi_cntr_readerr(cntr));
	KUNIT_EXPECT_EQ(test, 0, fi_cntr_set(cntr, U64_MAX));
	KUNIT_EXPECT_EQ(test, 0, fi_cntr_seterr(cntr, 9));
	KUNIT_EXPECT_EQ(test, U64_MAX, fi_cntr_read(cntr));
	KUNIT_EXPECT_EQ(test, 9ULL, fi_cntr_readerr(cntr));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_cntr_wait(cntr, 1, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_cntr_add(NULL, 1));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cntr->fid));
}

static int cntr_add_later(void *arg)
{
	int i;

	for (i = 0; i < 10; i++) {
		schedule_timeout_idle(1);
		fi_cntr_add(arg, 1);
	}
	return 0;
}

static int cntr_fail_later(void *arg)
{
	fake_starter_asleep();
	fi_cntr_adderr(arg, 1);
	return 0;
}

static void cntr_wait_test(struct kunit *test)
{
	struct fake_world *world = test->priv;
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct task_struct *task;
	struct fid_cntr *cntr;

	KUNIT_ASSERT_EQ(test, 0, fi_cntr_open(world->domain, &attr, &cntr,
					      NULL));
	KUNIT_EXPECT_EQ(test, 0, fi_cntr_wait(cntr, 0, 0));
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, fi_cntr_wait(cntr, 1, 0));
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, fi_cntr_wait(cntr, 1, 20));
	/* Errors from before the call count, until they are known. */
	fi_cntr_adderr(cntr, 1);
	KUNIT_EXPECT_EQ(test, -FI_EAVAIL, fi_cntr_wait(cntr, 1, 0));
	KUNIT_EXPECT_EQ(test, -FI_EAVAIL, fi_cntr_wait(cntr, 1, -1));
	KUNIT_EXPECT_EQ(test, 0, fi_cntr_wait(cntr, 0, 0));
	KUNIT_EXPECT_EQ(test, 1ULL, fi_cntr_readerr(cntr));
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, fi_cntr_wait(cntr, 1, 0));
	task = fake_thread(test, cntr_add_later, cntr);
	KUNIT_EXPECT_EQ(test, 0, fi_cntr_wait(cntr, 10, -1));
	fake_join(task);
	task = fake_thread(test, cntr_fail_later, cntr);
	KUNIT_EXPECT_EQ(test, -FI_EAVAIL, fi_cntr_wait(cntr, 11, -1));
	fake_join(task);
	KUNIT_EXPECT_EQ(test, 2ULL, fi_cntr_readerr(cntr));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&cntr->fid));
}

/* What an operation does to the counters of its endpoint */
static const struct {
	const char	*name;
	u64		bind;
	u64		flags;
	bool		rx;
	bool		bytes;
	int		err;
	u64		value;
	u64		errors;
} cntr_counts[] = {
	{ "send", FI_SEND, FI_SEND, false, false, 0, 1, 0 },
	{ "send, bytes", FI_SEND, FI_SEND, false, true, 0, 100, 0 },
	{ "failed send, bytes", FI_SEND, FI_SEND, false, true, EIO, 0, 1 },
	{ "send, receive counted", FI_RECV, FI_SEND, false, false, 0, 0, 0 },
	{ "receive", FI_RECV, FI_RECV, true, false, 0, 1, 0 },
	{ "receive, both counted", FI_SEND | FI_RECV, FI_RECV, true, false, 0,
	  1, 0 },
	{ "failed receive", FI_RECV, FI_RECV, true, false, EIO, 0, 1 },
	{ "read", FI_READ, FI_READ | FI_RMA, false, false, 0, 1, 0 },
	{ "write", FI_WRITE, FI_WRITE | FI_RMA, false, false, 0, 1, 0 },
	{ "peer's read", FI_REMOTE_READ, FI_REMOTE_READ, true, false, 0, 1, 0 },
	{ "peer's write, bytes", FI_REMOTE_WRITE, FI_REMOTE_WRITE, true, true,
	  0, 100, 0 },
};

static void cntr_count_test(struct kunit *test)
{
	struct fake_world *world = test->priv;
	int i;

	for (i = 0; i < ARRAY_SIZE(cntr_counts); i++) {
		struct fi_cntr_attr attr = {
			.events = cntr_counts[i].bytes ? FI_CNTR_EVENTS_BYTES :
				  FI_CNTR_EVENTS_COMP,
		};
		const struct kofi_wc wc = {
			.flags = cntr_counts[i].flags, .len = 100,
			.err = cntr_counts[i].err,
		};
		struct fid_cntr *cntr;
		struct fid_cq *cq;
		struct fid_ep *ep;
		struct kofi_ep *kep;

		KUNIT_ASSERT_EQ(test, 0, fi_cntr_open(world->domain, &attr,
						      &cntr, NULL));
		KUNIT_ASSERT_EQ(test, 0, fi_cq_open(world->domain, NULL, &cq,
						    NULL));
		KUNIT_ASSERT_EQ(test, 0, fi_endpoint(world->domain, world->info,
						     &ep, NULL));
		KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &cntr->fid,
						    cntr_counts[i].bind));
		KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &cq->fid, FI_TRANSMIT |
						    FI_RECV));
		KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&cntr->fid));
		kep = &fake_of(ep)->base;
		if (cntr_counts[i].rx) {
			KUNIT_EXPECT_EQ(test, 0, kofi_ep_rx_reserve(kep));
			kofi_ep_rx_complete(kep, kep, &wc, 0);
		} else {
			KUNIT_EXPECT_EQ(test, 0, kofi_ep_tx_reserve(kep, NULL));
			kofi_ep_tx_complete(kep, &wc, KOFI_NO_COMPLETION);
		}
		KUNIT_EXPECT_EQ_MSG(test, cntr_counts[i].value,
				    fi_cntr_read(cntr), "%s",
				    cntr_counts[i].name);
		KUNIT_EXPECT_EQ_MSG(test, cntr_counts[i].errors,
				    fi_cntr_readerr(cntr), "%s",
				    cntr_counts[i].name);
		KUNIT_EXPECT_EQ(test, 0, fi_close(&ep->fid));
		KUNIT_EXPECT_EQ(test, 0, fi_close(&cq->fid));
		KUNIT_EXPECT_EQ(test, 0, fi_close(&cntr->fid));
	}
}

#define CNTR_TASKS	2
#define CNTR_EACH	10000

struct cntr_crowd {
	struct fid_cntr		*cntr;
	struct fake_gate	gate;
};

/* Without the gate, a lock that is contended would give the tasks their turns. */
static int cntr_crowd(void *arg)
{
	struct cntr_crowd *crowd = arg;
	u32 i;

	for (i = 0; i < CNTR_EACH; i++) {
		fake_gate_pass(&crowd->gate);
		fake_spin(hash_32(i + task_pid_nr(current), 10));
		fi_cntr_add(crowd->cntr, 1);
	}
	return 0;
}

static void cntr_crowd_test(struct kunit *test)
{
	struct fake_world *world = test->priv;
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct cntr_crowd crowd = { .gate.tasks = CNTR_TASKS };
	struct task_struct *tasks[CNTR_TASKS];
	int i;

	KUNIT_ASSERT_EQ(test, 0, fi_cntr_open(world->domain, &attr,
					      &crowd.cntr, NULL));
	for (i = 0; i < CNTR_TASKS; i++)
		tasks[i] = fake_thread_on(test, i, cntr_crowd, &crowd);
	/* The last to add may still be waking when the counter is closed. */
	KUNIT_EXPECT_EQ(test, 0, fi_cntr_wait(crowd.cntr,
					      CNTR_TASKS * CNTR_EACH,
					      TEST_LIMIT(10000)));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&crowd.cntr->fid));
	for (i = 0; i < CNTR_TASKS; i++)
		fake_join(tasks[i]);
}

static struct kunit_case cntr_cases[] = {
	KUNIT_CASE(cntr_open_test),
	KUNIT_CASE(cntr_value_test),
	KUNIT_CASE(cntr_wait_test),
	KUNIT_CASE(cntr_count_test),
	KUNIT_CASE(cntr_crowd_test),
	{}
};

struct kunit_suite kofi_cntr_suite = {
	.name		= "kofi_cntr",
	.suite_init	= fake_suite_init,
	.suite_exit	= fake_suite_exit,
	.init		= cntr_init,
	.exit		= cntr_exit,
	.test_cases	= cntr_cases,
};

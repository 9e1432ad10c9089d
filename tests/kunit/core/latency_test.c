// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* kofi/latency.c: which transmits are timed, and in which bucket they count. */
#include <linux/processor.h>
#include <linux/timekeeping.h>

#include "../../../kofi/internal.h"
#include "../../../kofi/latency.h"
#include "../kunit.h"
#include "fake.h"
#include "queues.h"

#define DELAY_NS	200000ULL

static struct fake_conn *latency_open(struct kunit *test)
{
	struct fake_conn *t = fake_conn_open(test);

	fake_connected(test, t->ep);
	return t;
}

static void latency_close(struct kunit *test, struct fake_conn *t)
{
	fake_conn_close(test, t);
	KUNIT_EXPECT_FALSE(test, static_key_enabled(&kofi_latency_on));
}

/* All samples; *@longest is set to the last bucket that has some */
static u64 latency_count(struct fake_conn *t, int *longest)
{
	u64 counts[KOFI_LATENCY_BUCKETS] = {}, sum = 0;
	int i;

	kofi_latency_get(kofi_ep(t->ep), counts);
	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		sum += counts[i];
		if (counts[i])
			*longest = i;
	}
	return sum;
}

static void latency_post(struct kunit *test, struct fake_conn *t, void *context)
{
	KUNIT_ASSERT_EQ(test, 0, fi_send(t->ep, test, 1, NULL, 0, context));
}

/* The sample is at least as long as the wait, and within the time that the test takes. */
static void latency_bucket(struct kunit *test)
{
	struct fake_conn *t = latency_open(test);
	int bucket = 0, context;
	u64 start, posted, longest;

	KUNIT_ASSERT_EQ(test, 0, kofi_latency_set(kofi_ep(t->ep), true));
	start = ktime_get_ns();
	latency_post(test, t, &context);
	posted = ktime_get_ns();
	while (ktime_get_ns() - posted < DELAY_NS)
		cpu_relax();
	KUNIT_EXPECT_TRUE(test, fake_complete(t->ep, FAKE_TX, 0));
	longest = ktime_get_ns() - start;
	KUNIT_EXPECT_EQ(test, latency_count(t, &bucket), 1);
	KUNIT_EXPECT_GE(test, bucket, fls64(DELAY_NS));
	KUNIT_EXPECT_LE(test, bucket, fls64(longest));
	latency_close(test, t);
}

/* One at a time, by its context; none without one, and errors count, too. */
static void latency_one(struct kunit *test)
{
	struct fake_conn *t = latency_open(test);
	int a, b, bucket;

	latency_post(test, t, &a);	/* before it is turned on */
	KUNIT_ASSERT_EQ(test, 0, kofi_latency_set(kofi_ep(t->ep), true));
	latency_post(test, t, NULL);
	latency_post(test, t, &b);
	latency_post(test, t, &a);
	fake_complete(t->ep, FAKE_TX, 0);
	fake_complete(t->ep, FAKE_TX, 0);
	KUNIT_EXPECT_EQ(test, latency_count(t, &bucket), 0);
	fake_complete(t->ep, FAKE_TX, EIO);
	KUNIT_EXPECT_EQ(test, latency_count(t, &bucket), 1);
	fake_complete(t->ep, FAKE_TX, 0);
	KUNIT_EXPECT_EQ(test, latency_count(t, &bucket), 1);
	/* receives are not timed */
	KUNIT_ASSERT_EQ(test, 0, fi_recv(t->ep, test, 1, NULL, 0, &a));
	fake_complete(t->ep, FAKE_RX, 0);
	KUNIT_EXPECT_EQ(test, latency_count(t, &bucket), 1);
	latency_close(test, t);
}

/* A sample that was refused does not keep others from being timed. */
static void latency_refused(struct kunit *test)
{
	struct fake_conn *t = latency_open(test);
	struct kofi_ep *ep = kofi_ep(t->ep);
	int a, b, bucket;

	KUNIT_ASSERT_EQ(test, 0, kofi_latency_set(ep, true));
	KUNIT_ASSERT_EQ(test, 0, kofi_ep_tx_reserve(ep, &a));
	kofi_ep_tx_unreserve(ep);
	latency_post(test, t, &b);
	fake_complete(t->ep, FAKE_TX, 0);
	KUNIT_EXPECT_EQ(test, latency_count(t, &bucket), 1);
	latency_close(test, t);
}

static struct kunit_case latency_cases[] = {
	KUNIT_CASE(latency_bucket),
	KUNIT_CASE(latency_one),
	KUNIT_CASE(latency_refused),
	{}
};

struct kunit_suite kofi_latency_suite = {
	.name		= "kofi_latency",
	.suite_init	= fake_suite_init,
	.suite_exit	= fake_suite_exit,
	.test_cases	= latency_cases,
};

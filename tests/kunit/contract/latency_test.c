// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The latency of transmits, measured by the core for every provider. */

#include "../../../kofi/internal.h"
#include "../../../kofi/latency.h"
#include "../kunit.h"
#include "contract.h"

#define MESSAGES	50
#define WINDOW		8
#define LEN		64

static u64 latency_samples(struct ct_pair *p, int side)
{
	u64 counts[KOFI_LATENCY_BUCKETS], sum = 0;
	int i;

	KUNIT_ASSERT_TRUE(p->test, kofi_latency_get(kofi_ep(p->side[side].ep), counts));
	for (i = 0; i < ARRAY_SIZE(counts); i++)
		sum += counts[i];
	return sum;
}

static void latency_send(struct ct_pair *p, u8 *buf, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		KUNIT_ASSERT_EQ(p->test, ct_recv(p, 1, ct_op(p), buf + LEN, LEN), 0);
		KUNIT_ASSERT_EQ(p->test, ct_send(p, 0, ct_op(p), buf, LEN), 0);
	}
	KUNIT_ASSERT_TRUE(p->test, ct_wait_all(p));
}

/*
 * Each transmit is a sample where one is outstanding, one of several otherwise; none
 * at the other end, and none after it is turned off.
 */
static void latency_sampled(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, ct_mode_of(test));
	struct kofi_ep *ep = kofi_ep(p->side[0].ep);
	u64 counts[KOFI_LATENCY_BUCKETS], one;
	u8 *buf = ct_buf(p, 2 * LEN);
	int i;

	KUNIT_EXPECT_FALSE(test, kofi_latency_get(ep, counts));
	KUNIT_ASSERT_EQ(test, kofi_latency_set(ep, true), 0);
	KUNIT_ASSERT_EQ(test, kofi_latency_set(kofi_ep(p->side[1].ep), true), 0);
	for (i = 0; i < MESSAGES; i++)
		latency_send(p, buf, 1);
	one = latency_samples(p, 0);
	KUNIT_EXPECT_EQ(test, one, MESSAGES);
	latency_send(p, buf, WINDOW);
	KUNIT_EXPECT_GE(test, latency_samples(p, 0), one + 1);
	KUNIT_EXPECT_LE(test, latency_samples(p, 0), one + WINDOW);
	KUNIT_EXPECT_EQ(test, latency_samples(p, 1), 0);

	/* once more changes nothing; off and on begins again */
	one = latency_samples(p, 0);
	KUNIT_ASSERT_EQ(test, kofi_latency_set(ep, true), 0);
	KUNIT_EXPECT_EQ(test, latency_samples(p, 0), one);
	KUNIT_ASSERT_EQ(test, kofi_latency_set(ep, false), 0);
	KUNIT_EXPECT_FALSE(test, kofi_latency_get(ep, counts));
	latency_send(p, buf, 1);
	KUNIT_ASSERT_EQ(test, kofi_latency_set(ep, true), 0);
	KUNIT_EXPECT_EQ(test, latency_samples(p, 0), 0);
	KUNIT_EXPECT_TRUE(test, static_key_enabled(&kofi_latency_on));
	ct_pair_close(p);
	KUNIT_EXPECT_FALSE(test, static_key_enabled(&kofi_latency_on));
}

static struct kunit_case contract_latency_cases[] = {
	KUNIT_CASE_PARAM(latency_sampled, ct_mode_gen_params),
	{}
};

static struct kunit_suite contract_latency_suite = {
	.name = "contract_latency",
	.suite_init = lo_suite_init,
	.test_cases = contract_latency_cases,
	.attr.speed = KUNIT_SPEED_SLOW,
};

kunit_test_suite(contract_latency_suite);

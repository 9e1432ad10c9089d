// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Random traffic with random ends, for as long as stress_ms says, over and
 * over with new objects. Meant to run also while the kernel fails allocations
 * at random: then a set-up may fail and a connection may break, but each
 * accepted operation still completes exactly once and everything closes.
 */

#include <linux/ktime.h>
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "contract.h"

#define SIZE_MAX_SENT	20000
#define STEPS		400

unsigned int stress_ms = 2000;
module_param(stress_ms, uint, 0644);
MODULE_PARM_DESC(stress_ms, "How long a stress suite runs, in milliseconds (default 2000)");

/* For the scenario that injects faults: read it to know when. */
static unsigned int stress_pairs;
module_param(stress_pairs, uint, 0444);
MODULE_PARM_DESC(stress_pairs, "Pairs the stress suite has finished (read only)");

static unsigned int stress_failed_setups;

static void stress_step(struct ct_pair *p, u8 *buf)
{
	int side = get_random_u32_below(2);
	struct ct_op *op;

	switch (get_random_u32_below(12)) {
	case 0 ... 3:
		ct_recv(p, side, ct_op(p), buf,
			get_random_u32_below(SIZE_MAX_SENT));
		break;
	case 4 ... 7:
		ct_send(p, side, ct_op(p), buf,
			get_random_u32_below(SIZE_MAX_SENT));
		break;
	case 8:
		ct_inject(p, side, buf, get_random_u32_below(128));
		break;
	case 9:
		op = &p->ops[get_random_u32_below(atomic_read(&p->used) + 1)];
		fi_cancel(&p->side[side].ep->fid, op);
		break;
	default:
		ct_progress(p);
		break;
	}
}

static void stress_traffic(struct ct_pair *p, u8 *buf)
{
	int i, side = get_random_u32_below(2);
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	struct ct_op *op;

	for (i = 0; i < STEPS; i++)
		stress_step(p, buf);
	switch (get_random_u32_below(4)) {
	case 0:
		ct_ep_drain(p, side);
		break;
	case 1:
		fi_shutdown(p->side[side].ep, 0);
		break;
	case 2:
		ct_ep_close(p, side);
		/* the other one hears of it once it has taken all messages */
		op = ct_op(p);
		for (i = 0; i < STEPS; i++)
			if (!ct_wait(p, ct_recv(p, !side, op, buf, 64) !=
				     -EAGAIN, CT_TIMEOUT_MS))
				break;
		KUNIT_EXPECT_TRUE(p->test, ct_wait_all(p));
		KUNIT_EXPECT_EQ(p->test, ct_next_event(p->side[!side].eq, ev,
						       CT_TIMEOUT_MS), 0);
		KUNIT_EXPECT_EQ(p->test, ev->event, FI_SHUTDOWN);
		break;
	default:
		break;
	}
}

static void stress_random(struct kunit *test)
{
	ktime_t start = ktime_get();
	u8 *buf = kvzalloc(SIZE_MAX_SENT, GFP_KERNEL | __GFP_NOFAIL);

	stress_pairs = 0;
	stress_failed_setups = 0;
	while (ktime_ms_delta(ktime_get(), start) < READ_ONCE(stress_ms)) {
		struct ct_pair *p = kzalloc(sizeof(*p),
					    GFP_KERNEL | __GFP_NOFAIL);

		p->test = test;
		p->opts.mode = get_random_u32_below(CT_MODES);
		p->opts.tx_size = 1 << get_random_u32_below(6);
		p->opts.rx_size = 1 << get_random_u32_below(6);
		p->opts.cq_size = get_random_u32_below(2) ? 32 : 0;
		p->opts.locked = get_random_u32_below(2);
		p->opts.write_space = get_random_u32_below(2);
		if (!ct_pair_setup(p))
			stress_traffic(p, buf);
		else
			stress_failed_setups++;
		ct_pair_close(p);
		kvfree(p->ops);
		kfree(p);
		stress_pairs++;
		cond_resched();
	}
	kvfree(buf);
	KUNIT_EXPECT_GT(test, stress_pairs, stress_failed_setups);
	kunit_info(test, "%u pairs, %u not set up\n", stress_pairs,
		   stress_failed_setups);
}

static struct kunit_case contract_stress_cases[] = {
	KUNIT_CASE(stress_random),
	{}
};

static struct kunit_suite contract_stress_suite = {
	.name = "contract_stress",
	.suite_init = lo_suite_init,
	.init = ct_connected_init,
	.test_cases = contract_stress_cases,
};

kunit_test_suite(contract_stress_suite);

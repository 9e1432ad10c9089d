// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion vectors of kofi_verbs: the device's queues interrupt the CPU that the
 * consumer of a completion queue has chosen. ib_core uses a vector for each CPU at
 * most, so one CPU shows nothing.
 */
#include <linux/cpumask.h>

#include "../../../providers/verbs/verbs.h"
#include "link.h"

static unsigned int spread_vectors(const struct ib_device *ib)
{
	return min_t(unsigned int, ib->num_comp_vectors, num_online_cpus());
}

/* Both directions of an endpoint have queues with the vector of @cpu. */
static void spread_expect(struct ct_pair *p, struct fi_cq_attr *attr,
			  const struct kofi_cq_attr *kattr, int cpu)
{
	struct kunit *test = p->test;
	struct fid_cq *cq;
	struct fid_ep *fid;
	struct vrb_ep *ep;
	unsigned int want;

	KUNIT_ASSERT_EQ(test, kofi_cq_open(p->domain, attr, kattr, &cq, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_endpoint(p->domain, p->info, &fid, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(fid, &p->side[0].eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(fid, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	KUNIT_ASSERT_EQ(test, fi_enable(fid), 0);
	ep = container_of(fid, struct vrb_ep, base.ep);
	want = cpu % spread_vectors(ep->dom->ib);
	KUNIT_EXPECT_EQ_MSG(test, ep->tx_cq.ib->comp_vector, want, "CPU %d", cpu);
	KUNIT_EXPECT_EQ_MSG(test, vrb_ep_rx_cq(ep)->ib->comp_vector, want, "CPU %d", cpu);
	KUNIT_EXPECT_EQ(test, fi_close(&fid->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&cq->fid), 0);
}

static void spread_vector(struct kunit *test)
{
	const struct ct_opts opts = { .mode = CT_READ, .unconnected = true };
	struct ct_pair *p;
	int cpu;

	if (num_online_cpus() < 2)
		kunit_skip(test, "one CPU has one vector");
	p = ct_pair_open(test, &opts);
	for_each_online_cpu(cpu) {
		struct fi_cq_attr attr = { .flags = FI_AFFINITY, .signaling_vector = cpu };
		struct kofi_cq_attr kattr = {
			.flags = FI_AFFINITY, .cpu = cpu, .poll = KOFI_POLL_SOFTIRQ,
		};

		spread_expect(p, &attr, NULL, cpu);
		spread_expect(p, NULL, &kattr, cpu);
		/* the kernel's attribute counts */
		attr.signaling_vector = cpumask_first(cpu_online_mask);
		spread_expect(p, &attr, &kattr, cpu);
	}
	ct_pair_close(p);
}

static struct kunit_case verbs_spread_cases[] = {
	KUNIT_CASE(spread_vector),
	{}
};

static struct kunit_suite verbs_spread_suite = {
	.name = "verbs_spread",
	.suite_init = lo_suite_init,
	.init = link_test_init,
	.test_cases = verbs_spread_cases,
};

kunit_test_suite(verbs_spread_suite);

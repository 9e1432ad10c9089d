// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* kofi_queues_kunit.ko: endpoints, queues and counters over a fake provider. */
#include <linux/module.h>

#include "queues.h"

unsigned int test_slow __weak = 1;
module_param_named(slow, test_slow, uint, 0444);
MODULE_PARM_DESC(slow, "Factor of all time limits (default 1)");

kunit_test_suites(&kofi_eq_suite, &kofi_cq_suite, &kofi_cq_device_suite, &kofi_defer_suite,
		  &kofi_cntr_suite, &kofi_poll_suite, &kofi_ep_suite, &kofi_event_suite,
		  &kofi_latency_suite, &kofi_model_suite, &kofi_atomic_suite,
		  &kofi_soft_atomic_suite, &kofi_mr_suite, &kofi_mr_pool_suite,
		  &kofi_mr_model_suite, &kofi_mr_ops_suite, &kofi_mr_ops_bound_suite,
		  &kofi_srx_suite, &kofi_rxq_suite, &kofi_rxq_stress_suite, &kofi_peers_suite,
		  &kofi_av_suite, &kofi_null_suite);

MODULE_DESCRIPTION("kOFI tests: endpoints, queues, counters");
MODULE_LICENSE("Dual BSD/GPL");

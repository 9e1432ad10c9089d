/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The suites of kofi_queues_kunit.ko. */
#ifndef _KOFI_TESTS_QUEUES_H
#define _KOFI_TESTS_QUEUES_H

#include <kunit/test.h>

#include "../limit.h"

extern struct kunit_suite kofi_eq_suite;
extern struct kunit_suite kofi_cq_suite;
extern struct kunit_suite kofi_cq_device_suite;
extern struct kunit_suite kofi_defer_suite;
extern struct kunit_suite kofi_cntr_suite;
extern struct kunit_suite kofi_poll_suite;
extern struct kunit_suite kofi_ep_suite;
extern struct kunit_suite kofi_event_suite;
extern struct kunit_suite kofi_latency_suite;
extern struct kunit_suite kofi_model_suite;
extern struct kunit_suite kofi_atomic_suite;
extern struct kunit_suite kofi_soft_atomic_suite;
extern struct kunit_suite kofi_av_suite;
extern struct kunit_suite kofi_mr_suite;
extern struct kunit_suite kofi_mr_pool_suite;
extern struct kunit_suite kofi_mr_model_suite;
extern struct kunit_suite kofi_mr_ops_suite;
extern struct kunit_suite kofi_mr_ops_bound_suite;
extern struct kunit_suite kofi_null_suite;
extern struct kunit_suite kofi_srx_suite;
extern struct kunit_suite kofi_rxq_suite;
extern struct kunit_suite kofi_rxq_stress_suite;
extern struct kunit_suite kofi_peers_suite;

#endif /* _KOFI_TESTS_QUEUES_H */

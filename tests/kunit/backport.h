/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What differs for the unit tests between the kernels that kOFI is built for; the
 * rule is that of include/linux/kofi/backport.h.
 */
#ifndef _KOFI_TESTS_BACKPORT_H
#define _KOFI_TESTS_BACKPORT_H

#include <linux/module.h>
#include <linux/version.h>
#include <net/net_namespace.h>

/* Since 6.13 the namespace of exported symbols is a string. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#undef MODULE_IMPORT_NS
#define MODULE_IMPORT_NS(ns)	MODULE_INFO(import_ns, ns)
#endif

/* Since 6.17 memory of users is registered with a DMA handle. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define REG_USER_MR(name)	struct ib_mr *name(struct ib_pd *pd, u64 start,	\
		u64 length, u64 addr, int access, struct ib_udata *udata)
#else
#define REG_USER_MR(name)	struct ib_mr *name(struct ib_pd *pd, u64 start,	\
		u64 length, u64 addr, int access, struct ib_dmah *dmah,		\
		struct ib_udata *udata)
#endif

/* Since 6.16 all functions of timers begin alike. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
#define timer_destroy_on_stack(timer)	destroy_timer_on_stack(timer)
#endif

/*
 * Since 6.18 a generator of parameters gets the test. GEN_PARAMS() declares one, and
 * GEN_PARAMS_OF() calls another one from it.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
#define GEN_PARAMS(name)	const void *name(const void *prev, char *desc)
#define GEN_PARAMS_OF(name)	name(prev, desc)
#else
#define GEN_PARAMS(name)	\
	const void *name(struct kunit *test, const void *prev, char *desc)
#define GEN_PARAMS_OF(name)	name(test, prev, desc)
#endif

/*
 * Since 6.18 namespaces of all kinds are counted alike, but those with the first
 * numbers, which are the kernel's own. A namespace of a test has one reference.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
#define ns_ref_read(net)	refcount_read(&(net)->ns.count)

static inline void test_net_init(struct net *net)
{
	refcount_set(&net->ns.count, 1);
}
#else
static inline void test_net_init(struct net *net)
{
	refcount_set(&net->ns.__ns_ref, 1);
	net->ns.ns_id = U64_MAX;
}
#endif

#endif /* _KOFI_TESTS_BACKPORT_H */

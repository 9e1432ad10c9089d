/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The network of a machine that only runs unit tests is not configured. */
#ifndef _KOFI_TESTS_LO_H
#define _KOFI_TESTS_LO_H

#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/net_namespace.h>

#include <kunit/test.h>

/* The suite_init of suites that use the loopback device: each can be run alone. */
static inline int lo_suite_init(struct kunit_suite *suite)
{
	struct net_device *lo = init_net.loopback_dev;
	int err;

	rtnl_lock();
	err = dev_change_flags(lo, lo->flags | IFF_UP, NULL);
	rtnl_unlock();
	return err;
}

#endif /* _KOFI_TESTS_LO_H */

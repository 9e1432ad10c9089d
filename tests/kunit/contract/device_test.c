// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contract 11: the device of a domain goes away under traffic. The suite takes
 * the device under test out of the kernel, so it needs one that can be spared:
 * device=dummy0 address=(an address of dummy0); an RDMA device in software goes
 * with the network device below it, netdev=. It is the last suite of the module,
 * as the others want the device.
 */

#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/rtnetlink.h>

#include "contract.h"

static char *ct_netdev;
module_param_named(netdev, ct_netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "Network device below the device (default: that is one)");

static void device_remove(struct kunit *test)
{
	struct net_device *dev;
	LIST_HEAD(list);

	rtnl_lock();
	dev = __dev_get_by_name(&init_net, ct_netdev ?: ct_device);
	if (dev && dev->rtnl_link_ops && dev->rtnl_link_ops->dellink) {
		dev->rtnl_link_ops->dellink(dev, &list);
		unregister_netdevice_many(&list);
	} else if (dev) {
		unregister_netdevice(dev);
	}
	rtnl_unlock();
	KUNIT_EXPECT_NOT_NULL(test, dev);
}

static void device_removed(struct kunit *test)
{
	const struct ct_opts opts = { .mode = CT_SOFTIRQ, .unconnected = true };
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct net_device *dev;
	struct ct_event *ev;
	struct ct_pair *p;
	int side, i;
	u8 *buf;

	if (!strcmp(ct_device, init_net.loopback_dev->name))
		kunit_skip(test, "the loopback device cannot be removed");
	dev = dev_get_by_name(&init_net, ct_netdev ?: ct_device);
	if (!dev)
		kunit_skip(test, "there is no network device below");
	dev_put(dev);
	p = ct_pair_open(test, &opts);
	ct_need_stalls(p);
	ev = ct_buf(p, sizeof(*ev));
	buf = ct_buf(p, 1 << 20);
	KUNIT_ASSERT_EQ(test, fi_eq_open(p->fabric, &attr, &p->eq, p), 0);
	KUNIT_EXPECT_EQ(test, fi_domain_bind(p->domain, &p->eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, ct_pair_connect(p), 0);
	/*
	 * A receive on each side, and one that sends to a stalled peer; where
	 * the messages would be too long for it, none there.
	 */
	for (side = 0; side < (ct_streams(p) ? 2 : 1); side++)
		KUNIT_EXPECT_EQ(test, ct_recv(p, side, ct_op(p), buf, 64), 0);
	for (i = 0; i < 32; i++)
		KUNIT_EXPECT_EQ(test, ct_send(p, 0, ct_op(p), buf, 1 << 20), 0);

	device_remove(test);

	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, ct_next_event(p->eq, ev, CT_TIMEOUT_MS), 0);
	KUNIT_EXPECT_EQ(test, ev->event, FI_NOTIFY);
	KUNIT_EXPECT_PTR_EQ(test, ev->entry.fid, &p->domain->fid);
	ct_expect_removed(p, 1);
	KUNIT_EXPECT_EQ(test, ct_send(p, 0, ct_op(p), buf, 64), -ESHUTDOWN);
	/* and everything can be closed as ever */
	ct_pair_close(p);
}

static struct kunit_case contract_device_cases[] = {
	KUNIT_CASE(device_removed),
	{}
};

static struct kunit_suite contract_device_suite = {
	.name = "contract_device",
	.suite_init = lo_suite_init,
	.test_cases = contract_device_cases,
};

kunit_test_suite(contract_device_suite);

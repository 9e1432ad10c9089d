// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Clients hear of network devices that come up and go down. */

#include <linux/etherdevice.h>
#include <linux/jiffies.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <net/net_namespace.h>

#include <linux/kofi/kofi.h>

#include <kunit/test.h>

#include "../notice.h"
#include "../limit.h"

#define SN_NAME		"kofitest0"
#define SN_RENAMED	"kofitest1"

static int sn_there[2];		/* of each name */
static int sn_changes;		/* of the first */
static bool sn_wrong;
static DECLARE_WAIT_QUEUE_HEAD(sn_wq);

static void sn_count(const struct kofi_domain_id *id, int step)
{
	static const char *const names[] = { SN_NAME, SN_RENAMED };
	int i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(id->prov_name, "sock") || strcmp(id->name, names[i]))
			continue;
		sn_there[i] += step;
		if (sn_there[i] != max(step, 0) || id->net != &init_net)
			sn_wrong = true;
		wake_up(&sn_wq);
	}
}

static void sn_add(struct kofi_client *client, const struct kofi_domain_id *id)
{
	sn_count(id, 1);
}

static void sn_remove(struct kofi_client *client,
		      const struct kofi_domain_id *id)
{
	sn_count(id, -1);
}

static void sn_change(struct kofi_client *client,
		      const struct kofi_domain_id *id)
{
	if (strcmp(id->prov_name, "sock") || strcmp(id->name, SN_NAME))
		return;
	WRITE_ONCE(sn_changes, sn_changes + 1);
	wake_up(&sn_wq);
}

static struct kofi_client sn_client = {
	.name = "netdev test", .net = &init_net,
	.add = sn_add, .remove = sn_remove, .change = sn_change,
};

static netdev_tx_t sn_xmit(struct sk_buff *skb, struct net_device *dev)
{
	dev_kfree_skb(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops sn_netdev_ops = { .ndo_start_xmit = sn_xmit };

static void sn_setup(struct net_device *dev)
{
	ether_setup(dev);
	dev->netdev_ops = &sn_netdev_ops;
	eth_hw_addr_random(dev);
}

static void sn_flags(struct kunit *test, struct net_device *dev, bool up)
{
	int err;

	rtnl_lock();
	err = dev_change_flags(dev, up ? dev->flags | IFF_UP :
					 dev->flags & ~IFF_UP, NULL);
	rtnl_unlock();
	KUNIT_EXPECT_EQ(test, err, 0);
}

static void sn_expect(struct kunit *test, int there, int renamed)
{
	KUNIT_EXPECT_GT(test, wait_event_timeout(sn_wq,
						 READ_ONCE(sn_there[0]) == there &&
						 READ_ONCE(sn_there[1]) == renamed,
						 TEST_LIMIT(10 * HZ)), 0);
}

static struct fi_info *sn_getinfo(struct kunit *test)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->fabric_attr->prov_name = kstrdup("sock", GFP_KERNEL);
	hints->domain_attr->name = kstrdup(SN_NAME, GFP_KERNEL);
	kofi_getinfo(&init_net, FI_VERSION(2, 1), NULL, NULL, 0, hints, &info,
		     GFP_KERNEL);
	fi_freeinfo(hints);
	return info;
}

/*
 * A link-local address leads to no other link, so the fabric is this one. The client
 * is called when there is news, which may be of the link before it is of the address.
 */
static void sn_expect_fabric(struct kunit *test)
{
	struct fi_info *info;
	int seen;

	do {
		seen = READ_ONCE(sn_changes);
		info = sn_getinfo(test);
	} while (!info && wait_event_timeout(sn_wq, READ_ONCE(sn_changes) != seen,
					     TEST_LIMIT(10 * HZ)));
	KUNIT_ASSERT_NOT_NULL(test, info);
	KUNIT_EXPECT_GT(test, wait_event_timeout(sn_wq, READ_ONCE(sn_changes) > 0,
						 TEST_LIMIT(10 * HZ)), 0);
	KUNIT_EXPECT_STREQ(test, info->fabric_attr->name,
			   "fe80::%" SN_NAME "/64");
	KUNIT_EXPECT_PTR_EQ(test, info->next, NULL);
	fi_freeinfo(info);
}

static void netdev_client(struct kunit *test)
{
	struct net_device *dev = alloc_netdev(0, SN_NAME, NET_NAME_USER,
					      sn_setup);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_ASSERT_EQ(test, kofi_client_register(&sn_client), 0);
	KUNIT_EXPECT_EQ(test, register_netdev(dev), 0);
	KUNIT_EXPECT_EQ(test, sn_there[0], 0);
	sn_flags(test, dev, true);
	sn_expect(test, 1, 0);
	/* the address IPv6 gives it, when it is known to be unique */
	if (IS_ENABLED(CONFIG_IPV6))
		sn_expect_fabric(test);
	sn_flags(test, dev, false);
	sn_expect(test, 0, 0);
	sn_flags(test, dev, true);
	sn_expect(test, 1, 0);
	/* who comes now hears of it, too, and who goes has nothing left */
	kofi_client_unregister(&sn_client);
	KUNIT_EXPECT_EQ(test, sn_there[0], 0);
	KUNIT_EXPECT_EQ(test, kofi_client_register(&sn_client), 0);
	KUNIT_EXPECT_EQ(test, sn_there[0], 1);
	/* the device is there until its clients know that it goes */
	unregister_netdev(dev);
	KUNIT_EXPECT_EQ(test, sn_there[0], 0);
	free_netdev(dev);
	kofi_client_unregister(&sn_client);
	KUNIT_EXPECT_FALSE(test, sn_wrong);
}

/* The consumer of a domain is notified of the loss and the return of its device's link. */
static void netdev_notices(struct kunit *test)
{
	struct net_device *dev = alloc_netdev(0, SN_NAME, NET_NAME_USER, sn_setup);
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fi_info *info;
	struct fid_eq *eq;

	if (!IS_ENABLED(CONFIG_IPV6))
		kunit_skip(test, "the device has no address");
	KUNIT_ASSERT_NOT_NULL(test, dev);
	sn_changes = 0;
	KUNIT_ASSERT_EQ(test, kofi_client_register(&sn_client), 0);
	KUNIT_EXPECT_EQ(test, register_netdev(dev), 0);
	sn_flags(test, dev, true);
	sn_expect(test, 1, 0);
	sn_expect_fabric(test);
	kofi_client_unregister(&sn_client);
	info = sn_getinfo(test);
	KUNIT_ASSERT_NOT_NULL(test, info);
	KUNIT_ASSERT_EQ(test, fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_domain(fabric, info, &domain, NULL), 0);
	fi_freeinfo(info);
	KUNIT_ASSERT_EQ(test, fi_eq_open(fabric, &attr, &eq, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_domain_bind(domain, &eq->fid, 0), 0);

	netif_carrier_off(dev);
	notice_expect(test, eq, ENOLINK);
	netif_carrier_on(dev);
	notice_expect(test, eq, 0);
	sn_flags(test, dev, false);
	notice_expect(test, eq, ENETDOWN);
	/* when IPv6 has given it an address again */
	sn_flags(test, dev, true);
	notice_expect(test, eq, 0);
	unregister_netdev(dev);
	notice_expect(test, eq, ENODEV);
	free_netdev(dev);
	KUNIT_EXPECT_EQ(test, fi_close(&domain->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&eq->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&fabric->fid), 0);
}

static struct kunit_case sock_netdev_cases[] = {
	KUNIT_CASE(netdev_notices),
	KUNIT_CASE(netdev_client),
	{}
};

static struct kunit_suite sock_netdev_suite = {
	.name = "sock_netdev",
	.test_cases = sock_netdev_cases,
};

kunit_test_suite(sock_netdev_suite);

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An RDMA device in software is removed, as "rdma link delete" does it, and made
 * again by the message that "rdma link add" sends: in the kernel it has no other
 * way. The device is named after its kind. The network device below it gets and
 * loses addresses as with "ip address".
 */

#include <linux/file.h>
#include <linux/if_addr.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/netlink.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_netlink.h>

#include "link.h"

static char *link_under;
module_param_named(netdev, link_under, charp, 0644);
MODULE_PARM_DESC(netdev, "Network device below the RDMA device");

unsigned int link_rounds = 4;
module_param_named(rounds, link_rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "How often the device is removed in each situation");

#define LINK_ROOM	256	/* of a message, and of its answer */

static const char *link_wanted;
static struct ib_device *link_found;

/* ib_client.add: the devices of the test are in the initial namespace */
static int link_seen(struct ib_device *ib)
{
	if (!link_found && !strcmp(dev_name(&ib->dev), link_wanted) &&
	    ib_device_try_get(ib))
		link_found = ib;
	return -EOPNOTSUPP;
}

/**
 * link_device - look up an RDMA device
 * @name: its name
 *
 * Newer kernels export no look-up by name: a client sees all devices.
 *
 * Context: process, may sleep; one at a time.
 * Return: the device, which ib_device_put() releases, or NULL.
 */
struct ib_device *link_device(const char *name)
{
	struct ib_client client = { .name = "kofi_link", .add = link_seen };

	link_wanted = name;
	link_found = NULL;
	if (ib_register_client(&client))
		return NULL;
	ib_unregister_client(&client);
	return link_found;
}

/**
 * link_test_init - kunit_suite.init of what needs an RDMA device
 * @test: skipped if there is none
 *
 * Return: 0.
 */
int link_test_init(struct kunit *test)
{
	struct ib_device *ib = link_device(ct_device);

	if (!ib)
		kunit_skip(test, "no RDMA device in software");
	ib_device_put(ib);
	return 0;
}

static struct sk_buff *link_message(const char *name, const char *under)
{
	struct sk_buff *skb = nlmsg_new(LINK_ROOM, GFP_KERNEL);
	struct nlmsghdr *nlh;

	if (!skb)
		return NULL;
	nlh = nlmsg_put(skb, 0, 1, RDMA_NL_GET_TYPE(RDMA_NL_NLDEV,
						    RDMA_NLDEV_CMD_NEWLINK),
			0, NLM_F_REQUEST | NLM_F_ACK);
	if (!nlh ||
	    nla_put_string(skb, RDMA_NLDEV_ATTR_DEV_NAME, name) ||
	    nla_put_string(skb, RDMA_NLDEV_ATTR_LINK_TYPE, ct_device) ||
	    nla_put_string(skb, RDMA_NLDEV_ATTR_NDEV_NAME, under)) {
		nlmsg_free(skb);
		return NULL;
	}
	nlmsg_end(skb, nlh);
	return skb;
}

/* Send a message, and return what its answer says. */
static int link_talk(struct socket *sock, struct sk_buff *skb)
{
	struct kvec kv = { .iov_base = skb->data, .iov_len = skb->len };
	u8 answer[LINK_ROOM] __aligned(NLMSG_ALIGNTO);
	const struct nlmsghdr *nlh = (void *)answer;
	struct msghdr msg = {};
	int n;

	n = kernel_sendmsg(sock, &msg, &kv, 1, kv.iov_len);
	if (n < 0)
		return n;
	kv = (struct kvec) { .iov_base = answer, .iov_len = sizeof(answer) };
	n = kernel_recvmsg(sock, &msg, &kv, 1, kv.iov_len, MSG_DONTWAIT);
	if (n < 0)
		return n;
	if (n < nlmsg_msg_size(sizeof(struct nlmsgerr)) ||
	    nlh->nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return ((const struct nlmsgerr *)nlmsg_data(nlh))->error;
}

/* Send a message of ours, which is freed, over a socket of its own. */
static int link_ask(int protocol, struct sk_buff *skb)
{
	struct socket *sock;
	struct file *file;
	int err;

	err = sock_create_kern(&init_net, PF_NETLINK, SOCK_RAW, protocol,
			       &sock);
	if (err)
		goto free;
	/* whose owner is asked whether he may */
	file = sock_alloc_file(sock, 0, NULL);
	if (IS_ERR(file)) {
		err = PTR_ERR(file);
		goto free;
	}
	err = link_talk(sock, skb);
	fput(file);
free:
	nlmsg_free(skb);
	return err;
}

/**
 * link_add_second - make another device, of the same kind
 * @name: its name
 * @under: the network device below it
 *
 * Context: process, may sleep.
 * Return: 0 or a negative error.
 */
int link_add_second(const char *name, const char *under)
{
	struct sk_buff *skb = link_message(name, under);

	return skb ? link_ask(NETLINK_RDMA, skb) : -ENOMEM;
}

/**
 * link_add - make the device
 *
 * Context: process, may sleep.
 * Return: 0 or a negative error.
 */
int link_add(void)
{
	return link_under ? link_add_second(ct_device, link_under) : -ENODEV;
}

/**
 * link_netdev - the network device below the device
 *
 * Return: it, with a reference, or NULL.
 */
struct net_device *link_netdev(void)
{
	return link_under ? dev_get_by_name(&init_net, link_under) : NULL;
}

/**
 * link_address - give the network device an address, or take it
 * @there: which of these
 * @family: AF_INET or AF_INET6
 * @addr: the address, in network order
 * @len: its length in bytes
 * @prefix: its prefix in bits
 *
 * Context: process, may sleep.
 * Return: 0 or a negative error.
 */
int link_address(bool there, int family, const void *addr, int len, int prefix)
{
	struct sk_buff *skb = nlmsg_new(LINK_ROOM, GFP_KERNEL);
	struct net_device *dev = link_netdev();
	struct ifaddrmsg *ifm;
	struct nlmsghdr *nlh;
	int err = -ENOMEM;

	if (!skb || !dev)
		goto free;
	nlh = nlmsg_put(skb, 0, 1, there ? RTM_NEWADDR : RTM_DELADDR,
			sizeof(*ifm), NLM_F_REQUEST | NLM_F_ACK |
			(there ? NLM_F_CREATE | NLM_F_EXCL : 0));
	if (!nlh)
		goto free;
	ifm = nlmsg_data(nlh);
	*ifm = (struct ifaddrmsg) {
		.ifa_family	= family,
		.ifa_prefixlen	= prefix,
		.ifa_index	= dev->ifindex,
	};
	err = nla_put(skb, IFA_LOCAL, len, addr);
	if (err)
		goto free;
	nlmsg_end(skb, nlh);
	dev_put(dev);
	return link_ask(NETLINK_ROUTE, skb);

free:
	dev_put(dev);
	nlmsg_free(skb);
	return err;
}

/*
 * The memory of the device removed last: siw does not wait for its own work items,
 * which look at it for a moment after the last connection is known to have gone.
 */
static struct device *link_last;

/**
 * link_remove_second - remove a device
 * @name: its name
 *
 * Context: process, may sleep; one at a time.
 * Return: 0, or -ENODEV if there is none.
 */
int link_remove_second(const char *name)
{
	struct ib_device *ib = link_device(name);
	struct device *before = link_last;

	if (!ib)
		return -ENODEV;
	link_last = get_device(&ib->dev);
	put_device(before);
	ib_unregister_device_and_put(ib);
	return 0;
}

/**
 * link_remove - remove the device
 *
 * Context: process, may sleep; one at a time.
 * Return: 0, or -ENODEV if there is none.
 */
int link_remove(void)
{
	return link_remove_second(ct_device);
}

/**
 * link_open - open a domain of a device and an endpoint, and close them again
 * @name: the device's name
 *
 * Context: process, may sleep.
 * Return: 0 or a negative error.
 */
int link_open(const char *name)
{
	struct fi_info *hints = ct_hints(), *info = NULL;
	struct fid_fabric *fabric = NULL;
	struct fid_domain *domain = NULL;
	struct fid_ep *ep = NULL;
	int err;

	if (!hints)
		return -ENOMEM;
	kfree(hints->domain_attr->name);
	hints->domain_attr->name = kstrdup(name, GFP_KERNEL);
	err = kofi_getinfo(&init_net, FI_VERSION(2, 1), NULL, NULL, 0, hints, &info,
			   GFP_KERNEL);
	fi_freeinfo(hints);
	err = err ?: fi_fabric(info->fabric_attr, &fabric, NULL);
	err = err ?: fi_domain(fabric, info, &domain, NULL);
	err = err ?: fi_endpoint(domain, info, &ep, NULL);
	if (ep)
		err = fi_close(&ep->fid) ?: err;
	if (domain)
		err = fi_close(&domain->fid) ?: err;
	if (fabric)
		err = fi_close(&fabric->fid) ?: err;
	fi_freeinfo(info);
	return err;
}

/**
 * link_set_up - set the network device below up or down
 * @up: which
 *
 * Context: process, may sleep.
 * Return: 0 or a negative error.
 */
int link_set_up(bool up)
{
	struct net_device *dev;
	int err = -ENODEV;

	rtnl_lock();
	dev = __dev_get_by_name(&init_net, link_under ?: "");
	if (dev)
		err = dev_change_flags(dev, up ? dev->flags | IFF_UP :
						 dev->flags & ~IFF_UP, NULL);
	rtnl_unlock();
	return err;
}

/**
 * link_mode - how completions are taken in a round
 * @round: its number
 *
 * A ball that flies in softirqs alone keeps siw's thread, and with it the one
 * processor there may be, to itself: the device could not be removed.
 *
 * Return: each in turn.
 */
enum ct_mode link_mode(unsigned int round)
{
	enum ct_mode mode = round % CT_MODES;

	return mode == CT_SOFTIRQ && !strcmp(ct_device, "siw") ? CT_WORKQUEUE :
								 mode;
}

/**
 * link_suite_exit - kunit_suite.suite_exit of what removes devices
 * @suite: the suite
 */
void link_suite_exit(struct kunit_suite *suite)
{
	put_device(link_last);
	link_last = NULL;
}

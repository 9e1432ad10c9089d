// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A client of what an RDMA device has: it hears of every address and link that
 * comes or goes, each once, and of nothing else; and it opens the domain when there
 * is an address, and closes it when there is none.
 */

#include <linux/delay.h>
#include <linux/inet.h>
#include <linux/kthread.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/sched/mm.h>
#include <linux/socket.h>
#include <linux/wait.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>

#include "../notice.h"
#include "../contract/contract.h"
#include "link.h"

static unsigned int churns = 4;
module_param(churns, uint, 0444);
MODULE_PARM_DESC(churns, "Removals of the device while its link and addresses change (default 4)");

/* Addresses are told apart by these: the device's own, and two of ours. */
enum { VC_OWN, VC_IP4, VC_IP6, VC_ADDRS };

static const __be32 vc_ip4 = cpu_to_be32(0x0a4d0101);	/* 10.77.1.1 */
static const struct in6_addr vc_ip6 = {
	.s6_addr = { 0xfd, 0x77, [15] = 1 },
};

/**
 * struct vc_client - the client
 * @client: the core's
 * @fabric: open while there is an address
 * @domain: the same
 * @seen: what discovery has said last
 * @has: of these, which addresses there are
 * @moves: how often each has come or gone
 * @there: the device is
 * @comes: how often it has come
 * @idle: changes that were none
 * @wrong: something that must not be
 * @wq: woken by every callback
 */
struct vc_client {
	struct kofi_client	client;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct fi_info		*seen;
	bool			has[VC_ADDRS];
	unsigned int		moves[VC_ADDRS];
	bool			there;
	unsigned int		comes;
	unsigned int		idle;
	bool			wrong;
	wait_queue_head_t	wq;
};

static bool vc_is(const struct fi_info *info, int which)
{
	const struct sockaddr_in6 *in6 = info->src_addr;
	const struct sockaddr_in *in4 = info->src_addr;

	if (info->addr_format == FI_SOCKADDR_IN6)
		return which == VC_IP6 &&
		       ipv6_addr_equal(&in6->sin6_addr, &vc_ip6);
	return which != VC_IP6 && in4->sin_addr.s_addr ==
	       (which == VC_OWN ? in_aton(ct_address) : vc_ip4);
}

static bool vc_same(const struct fi_info *a, const struct fi_info *b)
{
	for (; a && b; a = a->next, b = b->next)
		if (a->src_addrlen != b->src_addrlen ||
		    memcmp(a->src_addr, b->src_addr, a->src_addrlen))
			return false;
	return a == b;
}

static bool vc_doubles(const struct fi_info *info)
{
	const struct fi_info *i;

	for (; info; info = info->next)
		for (i = info->next; i; i = i->next)
			if (info->src_addrlen == i->src_addrlen &&
			    !memcmp(info->src_addr, i->src_addr,
				    i->src_addrlen))
				return true;
	return false;
}

static void vc_close(struct vc_client *c)
{
	if (c->domain && (fi_close(&c->domain->fid) ||
			  fi_close(&c->fabric->fid)))
		c->wrong = true;
	c->domain = NULL;
}

static void vc_open(struct vc_client *c)
{
	int err = fi_fabric(c->seen->fabric_attr, &c->fabric, NULL);

	if (err) {
		c->wrong = true;
		return;
	}
	err = fi_domain(c->fabric, c->seen, &c->domain, NULL);
	if (err) {
		c->wrong |= fi_close(&c->fabric->fid) || err != -ENODEV;
		c->domain = NULL;
	}
}

static struct fi_info *vc_discover(void)
{
	struct fi_info *hints = ct_hints(), *info = NULL;

	if (hints)
		kofi_getinfo(&init_net, FI_VERSION(2, 1), NULL, NULL, 0, hints,
			     &info, GFP_KERNEL);
	fi_freeinfo(hints);
	return info;
}

/* What discovery says now; true if that is something else. */
static bool vc_look(struct vc_client *c)
{
	struct fi_info *before = c->seen, *info;
	bool changed;
	int i;

	c->seen = vc_discover();
	c->wrong |= vc_doubles(c->seen);
	if (!c->seen)
		vc_close(c);
	else if (!c->domain)
		vc_open(c);
	for (i = 0; i < VC_ADDRS; i++) {
		bool has = false;

		for (info = c->seen; info; info = info->next)
			has |= vc_is(info, i);
		c->moves[i] += has != c->has[i];
		WRITE_ONCE(c->has[i], has);
	}
	changed = !vc_same(before, c->seen);
	fi_freeinfo(before);
	return changed;
}

static bool vc_mine(struct vc_client *c, const struct kofi_domain_id *id)
{
	/* a provider that is loaded here would wait for this */
	if (current_gfp_context(GFP_KERNEL) & __GFP_IO)
		c->wrong = true;
	return !strcmp(id->prov_name, ct_provider) &&
	       !strcmp(id->name, ct_device);
}

static void vc_add(struct kofi_client *client, const struct kofi_domain_id *id)
{
	struct vc_client *c = container_of(client, struct vc_client, client);

	if (!vc_mine(c, id))
		return;
	c->wrong |= c->there;
	vc_look(c);
	c->comes++;
	WRITE_ONCE(c->there, true);
	wake_up(&c->wq);
}

static void vc_remove(struct kofi_client *client,
		      const struct kofi_domain_id *id)
{
	struct vc_client *c = container_of(client, struct vc_client, client);

	if (!vc_mine(c, id))
		return;
	c->wrong |= !c->there;
	vc_close(c);
	fi_freeinfo(c->seen);
	c->seen = NULL;
	memset(c->has, 0, sizeof(c->has));
	WRITE_ONCE(c->there, false);
	wake_up(&c->wq);
}

static void vc_change(struct kofi_client *client,
		      const struct kofi_domain_id *id)
{
	struct vc_client *c = container_of(client, struct vc_client, client);

	if (!vc_mine(c, id))
		return;
	c->wrong |= !c->there;
	c->idle += !vc_look(c);
	wake_up(&c->wq);
}

static void vc_expect(struct kunit *test, struct vc_client *c, int which,
		      bool has)
{
	KUNIT_EXPECT_GT_MSG(test, wait_event_timeout(c->wq,
						     READ_ONCE(c->has[which]) == has,
						     msecs_to_jiffies(CT_TIMEOUT_MS)),
			    0, "address %d", which);
}

static struct vc_client *vc_new(struct kunit *test)
{
	struct vc_client *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, c);
	/* the callbacks would not load the provider */
	fi_freeinfo(vc_discover());
	c->client = (struct kofi_client) {
		.name = "verbs test", .net = &init_net,
		.add = vc_add, .remove = vc_remove, .change = vc_change,
	};
	init_waitqueue_head(&c->wq);
	KUNIT_ASSERT_EQ(test, kofi_client_register(&c->client), 0);
	return c;
}

/* It leaves with nothing, and has not been told anything that was not so. */
static void vc_end(struct kunit *test, struct vc_client *c)
{
	kofi_client_unregister(&c->client);
	KUNIT_EXPECT_FALSE(test, c->there);
	KUNIT_EXPECT_PTR_EQ(test, c->domain, NULL);
	KUNIT_EXPECT_FALSE(test, c->wrong);
}

static void vc_flags(struct net_device *dev, bool up)
{
	rtnl_lock();
	dev_change_flags(dev, up ? dev->flags | IFF_UP : dev->flags & ~IFF_UP,
			 NULL);
	rtnl_unlock();
}

static void vc_carrier(struct net_device *dev, bool up)
{
	if (up)
		netif_carrier_on(dev);
	else
		netif_carrier_off(dev);
}

static int vc_add4(bool there)
{
	return link_address(there, AF_INET, &vc_ip4, sizeof(vc_ip4), 24);
}

static int vc_add6(bool there)
{
	return link_address(there, AF_INET6, &vc_ip6, sizeof(vc_ip6), 64);
}

/* Link down and up: the addresses have gone meanwhile, and are back. */
static void vc_link(struct kunit *test, struct vc_client *c,
		    struct net_device *dev,
		    void (*set)(struct net_device *dev, bool up))
{
	unsigned int moves = c->moves[VC_OWN];

	set(dev, false);
	vc_expect(test, c, VC_OWN, false);
	KUNIT_EXPECT_PTR_EQ(test, READ_ONCE(c->domain), NULL);
	set(dev, true);
	vc_expect(test, c, VC_OWN, true);
	KUNIT_EXPECT_EQ(test, c->moves[VC_OWN], moves + 2);
}

static void client_changes(struct kunit *test)
{
	struct net_device *dev = link_netdev();
	struct vc_client *c;

	KUNIT_ASSERT_NOT_NULL(test, dev);
	c = vc_new(test);
	KUNIT_EXPECT_TRUE(test, c->there);
	vc_expect(test, c, VC_OWN, true);
	KUNIT_EXPECT_NOT_NULL(test, c->domain);

	KUNIT_EXPECT_EQ(test, vc_add4(true), 0);
	vc_expect(test, c, VC_IP4, true);
	KUNIT_EXPECT_EQ(test, vc_add6(true), 0);
	vc_expect(test, c, VC_IP6, true);
	KUNIT_EXPECT_EQ(test, vc_add4(false), 0);
	vc_expect(test, c, VC_IP4, false);
	KUNIT_EXPECT_EQ(test, vc_add6(false), 0);
	vc_expect(test, c, VC_IP6, false);
	KUNIT_EXPECT_EQ(test, c->moves[VC_IP4], 2);
	KUNIT_EXPECT_EQ(test, c->moves[VC_IP6], 2);
	KUNIT_EXPECT_EQ(test, c->moves[VC_OWN], 1);

	vc_link(test, c, dev, vc_carrier);
	vc_link(test, c, dev, vc_flags);
	/* without a change of anything, nothing is said */
	KUNIT_EXPECT_EQ(test, c->idle, 0);
	KUNIT_EXPECT_EQ(test, c->comes, 1);
	vc_end(test, c);
	dev_put(dev);
}

/* An address that is there when the device comes is not said to have come later. */
static void client_device(struct kunit *test)
{
	struct vc_client *c = vc_new(test);

	KUNIT_EXPECT_EQ(test, link_remove(), 0);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(c->there));
	KUNIT_EXPECT_EQ(test, link_add(), 0);
	KUNIT_EXPECT_TRUE(test, READ_ONCE(c->there));
	vc_expect(test, c, VC_OWN, true);
	KUNIT_EXPECT_EQ(test, c->comes, 2);
	KUNIT_EXPECT_EQ(test, c->idle, 0);
	vc_end(test, c);
}

/* The consumer of a domain is notified of changes of addresses, links and ports. */
static void client_notices(struct kunit *test)
{
	struct net_device *dev = link_netdev();
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_info *info = vc_discover();
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;

	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_ASSERT_NOT_NULL(test, info);
	KUNIT_ASSERT_EQ(test, fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_domain(fabric, info, &domain, NULL), 0);
	fi_freeinfo(info);
	KUNIT_ASSERT_EQ(test, fi_eq_open(fabric, &attr, &eq, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_domain_bind(domain, &eq->fid, 0), 0);

	KUNIT_EXPECT_EQ(test, vc_add4(true), 0);
	notice_expect(test, eq, 0);
	KUNIT_EXPECT_EQ(test, vc_add4(false), 0);
	notice_expect(test, eq, 0);
	vc_carrier(dev, false);
	notice_expect(test, eq, ENETDOWN);
	vc_carrier(dev, true);
	notice_expect(test, eq, 0);
	vc_flags(dev, false);
	notice_expect(test, eq, ENETDOWN);
	vc_flags(dev, true);
	notice_expect(test, eq, 0);
	KUNIT_EXPECT_EQ(test, link_remove(), 0);
	notice_expect(test, eq, ENODEV);
	KUNIT_EXPECT_EQ(test, link_add(), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&domain->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&eq->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&fabric->fid), 0);
	dev_put(dev);
}

struct vc_mover {
	struct net_device	*dev;
	unsigned int		moves;
	int			err;
};

/* Links and addresses, while the device comes and goes */
static int vc_mover(void *arg)
{
	struct vc_mover *m = arg;

	while (!kthread_should_stop()) {
		vc_carrier(m->dev, false);
		m->err = m->err ?: vc_add4(true);
		usleep_range(100, 20000);
		vc_carrier(m->dev, true);
		m->err = m->err ?: vc_add4(false);
		usleep_range(100, 20000);
		vc_flags(m->dev, false);
		vc_flags(m->dev, true);
		m->moves++;
	}
	return 0;
}

static void client_churn(struct kunit *test)
{
	struct vc_mover m = { .dev = link_netdev() };
	struct task_struct *task;
	struct vc_client *c;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, m.dev);
	c = vc_new(test);
	task = kthread_run(vc_mover, &m, "mover");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	for (i = 0; i < churns || !READ_ONCE(m.moves); i++) {
		struct vc_client *late = vc_new(test);

		KUNIT_EXPECT_EQ(test, link_remove(), 0);
		usleep_range(100, 20000);
		KUNIT_EXPECT_EQ(test, link_add(), 0);
		usleep_range(100, 20000);
		vc_end(test, late);
	}
	kthread_stop(task);
	KUNIT_EXPECT_EQ(test, m.err, 0);
	/* in the end, the client knows what is */
	vc_expect(test, c, VC_OWN, true);
	vc_expect(test, c, VC_IP4, false);
	KUNIT_EXPECT_EQ(test, c->comes, i + 1);
	vc_end(test, c);
	dev_put(m.dev);
	kunit_info(test, "%u removals, %u rounds of addresses and links\n", i,
		   m.moves);
}

static struct kunit_case verbs_client_cases[] = {
	KUNIT_CASE(client_changes),
	KUNIT_CASE(client_notices),
	KUNIT_CASE(client_device),
	KUNIT_CASE(client_churn),
	{}
};

static struct kunit_suite verbs_client_suite = {
	.name = "verbs_client",
	.suite_init = lo_suite_init,
	.suite_exit = link_suite_exit,
	.init = link_test_init,
	.test_cases = verbs_client_cases,
};

kunit_test_suite(verbs_client_suite);

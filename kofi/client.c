// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Clients that are notified of domains, as devices appear and disappear.
 *
 * A provider names each device that can be opened as a domain, after it has appeared
 * and before it disappears. This file keeps the names. A client that registers is
 * notified of all of them, and from then on of each change, until it unregisters.
 * A provider's devices count while it is registered, so that a client can
 * use discovery for each domain of a notification.
 *
 * Discovery knows the addresses of a device. When a network device,
 * an address or a port changes, a work item calls discovery and compares the result with
 * the last one; clients are notified of each device with other addresses.
 *
 * The consumer of a domain with an event queue is notified in the same way, by FI_NOTIFY,
 * when discovery finds other addresses of the domain, none, or some again.
 *
 * One mutex serialises all of it: no client misses a device or is notified of
 * one twice, and none is called after it has unregistered. It is held while
 * clients are called; they may sleep, discover, open and close, and must not
 * register or unregister there. A provider calls without locks that these need.
 */
#include <linux/export.h>
#include <linux/inetdevice.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/notifier.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/addrconf.h>
#include <net/if_inet6.h>
#include <net/net_namespace.h>

#include "internal.h"
#include "kofi_trace.h"

/**
 * struct kofi_device - a device that can be opened
 * @node: entry in kofi_devices
 * @prov: provider of the device
 * @id: identity for clients; @id.name is allocated with this record
 */
struct kofi_device {
	struct list_head	node;
	struct kofi_provider	*prov;
	struct kofi_domain_id	id;
};

static DEFINE_MUTEX(kofi_client_mutex);	/* all that follows */
static LIST_HEAD(kofi_clients);
static LIST_HEAD(kofi_devices);		/* by age */

/* Loads no module, since a provider's module would wait for the mutex. */
static unsigned int kofi_client_lock(void)
{
	mutex_lock(&kofi_client_mutex);
	return memalloc_noio_save();
}

static void kofi_client_unlock(unsigned int scope)
{
	memalloc_noio_restore(scope);
	mutex_unlock(&kofi_client_mutex);
}

static bool kofi_client_matches(const struct kofi_client *client,
				const struct kofi_device *dev)
{
	return !client->net || !dev->id.net ||
	       net_eq(client->net, dev->id.net);
}

static void kofi_client_notify(struct kofi_client *client,
			       const struct kofi_device *dev, bool there)
{
	lockdep_assert_held(&kofi_client_mutex);

	if (!kofi_client_matches(client, dev))
		return;
	if (there)
		client->add(client, &dev->id);
	else
		client->remove(client, &dev->id);
}

/* Clients are notified of a removal in the reverse order of their registration. */
static void kofi_client_notify_all(const struct kofi_device *dev, bool there)
{
	struct kofi_client *client;

	trace_kofi_device(dev->id.prov_name, dev->id.name, there);
	if (there) {
		list_for_each_entry(client, &kofi_clients, node)
			kofi_client_notify(client, dev, true);
	} else {
		list_for_each_entry_reverse(client, &kofi_clients, node)
			kofi_client_notify(client, dev, false);
	}
}

/* ----------------------------------------------------- results of discovery */

#define KOFI_LOOK_AGAIN	(HZ / 2)

static void kofi_client_work_fn(struct work_struct *work);
static DECLARE_DELAYED_WORK(kofi_client_work, kofi_client_work_fn);

/*
 * Test for IPv6 addresses under duplicate detection. Discovery omits them until
 * it has finished, and no notifier is called then.
 */
static bool kofi_client_tentative(struct net *net)
{
	bool found = false;
#if IS_ENABLED(CONFIG_IPV6)
	const struct inet6_ifaddr *ifa;
	struct inet6_dev *in6_dev;
	struct net_device *dev;

	rcu_read_lock();
	for_each_netdev_rcu(net, dev) {
		in6_dev = __in6_dev_get(dev);
		/* without a link, detection has not begun */
		if (!in6_dev || !(in6_dev->if_flags & IF_READY))
			continue;
		read_lock_bh(&in6_dev->lock);
		list_for_each_entry(ifa, &in6_dev->addr_list, if_list)
			if ((ifa->flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) ==
			    IFA_F_TENTATIVE)
				found = true;
		read_unlock_bh(&in6_dev->lock);
	}
	rcu_read_unlock();
#endif
	return found;
}

/* Next info of a list that describes a device */
static const struct fi_info *kofi_device_info(const struct kofi_domain_id *id,
					      const struct fi_info *info)
{
	while (info &&
	       (strcmp(info->fabric_attr->prov_name, id->prov_name) ||
		strcmp(info->domain_attr->name, id->name)))
		info = info->next;
	return info;
}

static bool kofi_device_same(const struct kofi_domain_id *id,
			     const struct fi_info *a, const struct fi_info *b)
{
	for (;;) {
		a = kofi_device_info(id, a);
		b = kofi_device_info(id, b);
		if (!a || !b)
			return a == b;
		if (a->src_addrlen != b->src_addrlen ||
		    memcmp(a->src_addr, b->src_addr, a->src_addrlen) ||
		    strcmp(a->fabric_attr->name, b->fabric_attr->name))
			return false;
		a = a->next;
		b = b->next;
	}
}

/* Call discovery; without memory, or with tentative addresses, schedule another call. */
static bool kofi_client_ask(struct net *net, struct fi_info **info)
{
	int ret = kofi_getinfo(net,
			       FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
			       NULL, NULL, 0, NULL, info, GFP_NOIO);
	bool known = !ret || ret == -ENODATA;

	/* does not delay a call that is due before */
	if (!known || kofi_client_tentative(net))
		queue_delayed_work(system_unbound_wq, &kofi_client_work,
				   KOFI_LOOK_AGAIN);
	return known;
}

/* Notify a client of each device with changed addresses. */
static void kofi_client_rescan(struct kofi_client *client)
{
	struct fi_info *before = client->seen, *now;
	struct kofi_device *dev;

	lockdep_assert_held(&kofi_client_mutex);

	if (!client->change || !kofi_client_ask(client->net, &now))
		return;
	client->seen = now;
	list_for_each_entry(dev, &kofi_devices, node)
		if (dev->prov->live && kofi_client_matches(client, dev) &&
		    !kofi_device_same(&dev->id, before, now))
			client->change(client, &dev->id);
	fi_freeinfo(before);
}

static void kofi_client_rescan_all(void)
{
	struct kofi_client *client;

	list_for_each_entry(client, &kofi_clients, node)
		kofi_client_rescan(client);
}

/*
 * Domains with an event queue. Clients close domains with the mutex of clients held, so
 * that these have one of their own.
 */
static DEFINE_MUTEX(kofi_path_mutex);	/* the list, and seen of each */
static LIST_HEAD(kofi_paths);

/* Notify the consumer of a domain if discovery finds other addresses of it. */
static void kofi_path_rescan(struct kofi_domain *dom)
{
	const struct kofi_domain_id id = {
		.prov_name = dom->obj.prov->name, .name = dom->name,
	};
	struct fi_info *before = dom->seen, *now;
	int lost;

	lockdep_assert_held(&kofi_path_mutex);

	if (!kofi_client_ask(dom->fabric->net, &now))
		return;
	dom->seen = now;
	lost = READ_ONCE(dom->lost);
	if (!kofi_device_info(&id, now)) {
		if (kofi_device_info(&id, before) && lost != ENETDOWN)
			kofi_domain_notify(dom, ENETDOWN);
	} else if (lost == ENETDOWN || !kofi_device_same(&id, before, now)) {
		/* the provider that reported the loss of a link reports its return */
		if (lost != ENOLINK)
			kofi_domain_notify(dom, 0);
	}
	fi_freeinfo(before);
}

/**
 * kofi_path_watch - notify the consumer of a domain of changes of its addresses
 * @dom: a domain with an event queue
 *
 * A provider above others passes on the events of the domain below.
 *
 * Context: process, may sleep.
 */
void kofi_path_watch(struct kofi_domain *dom)
{
	unsigned int scope;

	if (strchr(dom->obj.prov->name, ';'))
		return;
	mutex_lock(&kofi_path_mutex);
	scope = memalloc_noio_save();
	kofi_client_ask(dom->fabric->net, &dom->seen);
	list_add_tail(&dom->path_node, &kofi_paths);
	memalloc_noio_restore(scope);
	mutex_unlock(&kofi_path_mutex);
}

/**
 * kofi_path_forget - undo kofi_path_watch()
 * @dom: a domain with an event queue, about to be freed
 *
 * Context: process, may sleep.
 */
void kofi_path_forget(struct kofi_domain *dom)
{
	mutex_lock(&kofi_path_mutex);
	list_del_init(&dom->path_node);
	mutex_unlock(&kofi_path_mutex);
	fi_freeinfo(dom->seen);
}

static void kofi_client_work_fn(struct work_struct *work)
{
	unsigned int scope = kofi_client_lock();
	struct kofi_domain *dom;

	kofi_client_rescan_all();
	kofi_client_unlock(scope);

	mutex_lock(&kofi_path_mutex);
	scope = memalloc_noio_save();
	list_for_each_entry(dom, &kofi_paths, path_node)
		kofi_path_rescan(dom);
	memalloc_noio_restore(scope);
	mutex_unlock(&kofi_path_mutex);
}

/**
 * kofi_device_rescan - schedule discovery after a change of a device
 *
 * For changes that the core does not notice itself. It notices changes of network devices
 * and of addresses. Clients are notified if the addresses have changed.
 *
 * Context: any.
 */
void kofi_device_rescan(void)
{
	mod_delayed_work(system_unbound_wq, &kofi_client_work, 0);
}
EXPORT_SYMBOL_GPL(kofi_device_rescan);

static int kofi_client_event(struct notifier_block *nb, unsigned long event,
			     void *ptr)
{
	kofi_device_rescan();
	return NOTIFY_DONE;
}

static struct notifier_block kofi_client_netdev_nb = {
	.notifier_call = kofi_client_event,
};

static struct notifier_block kofi_client_inet_nb = {
	.notifier_call = kofi_client_event,
};

static struct notifier_block kofi_client_inet6_nb = {
	.notifier_call = kofi_client_event,
};

/* The devices of a provider count while it is registered. */
static int kofi_client_provider(struct notifier_block *nb, unsigned long event,
				void *ptr)
{
	bool live = event == KOFI_PROVIDER_ADD;
	struct kofi_provider *prov = ptr;
	struct kofi_device *dev;
	unsigned int scope;

	scope = kofi_client_lock();
	if (live)
		kofi_client_rescan_all();
	list_for_each_entry(dev, &kofi_devices, node)
		if (dev->prov == prov)
			kofi_client_notify_all(dev, live);
	prov->live = live;
	kofi_client_unlock(scope);
	return NOTIFY_DONE;
}

static struct notifier_block kofi_client_provider_nb = {
	.notifier_call = kofi_client_provider,
};

int kofi_client_start(void)
{
	int ret;

	ret = register_netdevice_notifier(&kofi_client_netdev_nb);
	if (ret)
		return ret;
	ret = register_inetaddr_notifier(&kofi_client_inet_nb);
	if (ret)
		goto unregister_netdev;
	ret = register_inet6addr_notifier(&kofi_client_inet6_nb);
	if (ret)
		goto unregister_inet;
	ret = blocking_notifier_chain_register(&kofi_provider_chain,
					       &kofi_client_provider_nb);
	if (ret)
		goto unregister_inet6;
	return 0;

unregister_inet6:
	unregister_inet6addr_notifier(&kofi_client_inet6_nb);
unregister_inet:
	unregister_inetaddr_notifier(&kofi_client_inet_nb);
unregister_netdev:
	unregister_netdevice_notifier(&kofi_client_netdev_nb);
	cancel_delayed_work_sync(&kofi_client_work);
	return ret;
}

void kofi_client_stop(void)
{
	blocking_notifier_chain_unregister(&kofi_provider_chain,
					   &kofi_client_provider_nb);
	unregister_inet6addr_notifier(&kofi_client_inet6_nb);
	unregister_inetaddr_notifier(&kofi_client_inet_nb);
	unregister_netdevice_notifier(&kofi_client_netdev_nb);
	cancel_delayed_work_sync(&kofi_client_work);
}

/* ------------------------------------------- registration of clients and devices */

/**
 * kofi_client_register - subscribe to notifications of domains
 * @client: filled in; must live until it has been unregistered
 *
 * @client->add is called for every existing domain, before this returns, and
 * then for each new one; @client->remove for each that disappears; @client->change
 * between the two, whenever discovery finds other addresses of the domain.
 *
 * Context: process, may sleep; not from a client's callback.
 * Return: 0, or -EINVAL without a name or a callback, or with @client->change and
 * without a network namespace.
 */
int kofi_client_register(struct kofi_client *client)
{
	struct kofi_device *dev;
	unsigned int scope;

	might_sleep();
	if (!client || !client->name || !client->add || !client->remove ||
	    (client->change && !client->net))
		return -EINVAL;
	scope = kofi_client_lock();
	client->seen = NULL;
	if (client->change)
		kofi_client_ask(client->net, &client->seen);
	list_add_tail(&client->node, &kofi_clients);
	list_for_each_entry(dev, &kofi_devices, node)
		if (dev->prov->live)
			kofi_client_notify(client, dev, true);
	kofi_client_unlock(scope);
	return 0;
}
EXPORT_SYMBOL_GPL(kofi_client_register);

/**
 * kofi_client_unregister - cancel the notifications of domains
 * @client: a registered client
 *
 * @client->remove is called for every domain that @client->add was called for; no
 * callback runs or will run when this returns.
 *
 * Context: process, may sleep; not from a client's callback.
 */
void kofi_client_unregister(struct kofi_client *client)
{
	struct kofi_device *dev;
	unsigned int scope;

	might_sleep();
	if (!client)
		return;
	scope = kofi_client_lock();
	list_for_each_entry_reverse(dev, &kofi_devices, node)
		if (dev->prov->live)
			kofi_client_notify(client, dev, false);
	list_del(&client->node);
	fi_freeinfo(client->seen);
	kofi_client_unlock(scope);
}
EXPORT_SYMBOL_GPL(kofi_client_unregister);

static struct kofi_device *kofi_device_find(const struct kofi_provider *prov,
					    const struct net *net,
					    const char *name)
{
	struct kofi_device *dev;

	lockdep_assert_held(&kofi_client_mutex);

	list_for_each_entry(dev, &kofi_devices, node)
		if (dev->prov == prov && dev->id.net == net &&
		    !strcmp(dev->id.name, name))
			return dev;
	return NULL;
}

/**
 * kofi_device_add - add a device that can be opened as a domain
 * @prov: provider of the device, which need not have registered yet
 * @net: network namespace of the device, or NULL if it can be opened in all; not
 *	held, so the device must be removed before it
 * @name: name of the domain
 *
 * Context: process, may sleep; without locks that discovery, or opening and
 * closing objects, take.
 * Return: 0; -EEXIST if the device exists; -ENOMEM.
 */
int kofi_device_add(struct kofi_provider *prov, struct net *net,
		    const char *name)
{
	struct kofi_device *dev;
	unsigned int scope;
	int ret = 0;

	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	dev->prov = prov;
	dev->id.prov_name = prov->name;
	dev->id.net = net;
	dev->id.name = kstrdup(name, GFP_KERNEL);
	if (!dev->id.name) {
		kfree(dev);
		return -ENOMEM;
	}
	scope = kofi_client_lock();
	if (kofi_device_find(prov, net, name)) {
		ret = -EEXIST;
		goto unlock;
	}
	/* the device's present addresses are no change */
	if (prov->live)
		kofi_client_rescan_all();
	list_add_tail(&dev->node, &kofi_devices);
	if (prov->live)
		kofi_client_notify_all(dev, true);
unlock:
	kofi_client_unlock(scope);
	if (ret) {
		kfree(dev->id.name);
		kfree(dev);
	}
	return ret;
}
EXPORT_SYMBOL_GPL(kofi_device_add);

/**
 * kofi_device_remove - remove a device that is about to disappear
 * @prov: provider of the device
 * @net: as for kofi_device_add()
 * @name: name of the domain
 *
 * Clients may close their objects during this call. A device that
 * has not been added is no error.
 *
 * Context: process, may sleep; locks as with kofi_device_add().
 */
void kofi_device_remove(struct kofi_provider *prov, struct net *net,
			const char *name)
{
	struct kofi_device *dev;
	unsigned int scope;

	scope = kofi_client_lock();
	dev = kofi_device_find(prov, net, name);
	if (dev) {
		if (prov->live)
			kofi_client_notify_all(dev, false);
		list_del(&dev->node);
		kfree(dev->id.name);
		kfree(dev);
	}
	kofi_client_unlock(scope);
}
EXPORT_SYMBOL_GPL(kofi_device_remove);

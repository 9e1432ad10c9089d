// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Clients that hear of domains: what can be opened, as devices come and go.
 *
 * A provider names each device that can be opened as a domain, when it has come
 * and before it goes. The names are kept here; a client that registers is told
 * of those there are, and from then on of each change, until it unregisters.
 * Devices of a provider count from when it has registered, so that a client can
 * ask discovery about what it is told of, until it deregisters.
 *
 * One mutex makes all of it one sequence: no client misses a device or hears of
 * one twice, and none is called after it has unregistered. It is held while
 * clients are called; they may sleep, discover, open and close, and must not
 * register or unregister there. A provider calls without locks that these need.
 */
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "internal.h"
#include "kofi_trace.h"

/**
 * struct kofi_device - a device that can be opened
 * @node: kofi_devices
 * @prov: whose it is
 * @id: as clients see it; @id.name is ours
 */
struct kofi_device {
	struct list_head	node;
	struct kofi_provider	*prov;
	struct kofi_domain_id	id;
};

static DEFINE_MUTEX(kofi_client_mutex);	/* all that follows */
static LIST_HEAD(kofi_clients);
static LIST_HEAD(kofi_devices);		/* by age */

static void kofi_client_tell(struct kofi_client *client,
			     const struct kofi_device *dev, bool there)
{
	lockdep_assert_held(&kofi_client_mutex);

	if (client->net && dev->id.net && !net_eq(client->net, dev->id.net))
		return;
	if (there)
		client->add(client, &dev->id);
	else
		client->remove(client, &dev->id);
}

/* The last one to come is the first to hear that a device goes. */
static void kofi_client_tell_all(const struct kofi_device *dev, bool there)
{
	struct kofi_client *client;

	trace_kofi_device(dev->id.prov_name, dev->id.name, there);
	if (there) {
		list_for_each_entry(client, &kofi_clients, node)
			kofi_client_tell(client, dev, true);
	} else {
		list_for_each_entry_reverse(client, &kofi_clients, node)
			kofi_client_tell(client, dev, false);
	}
}

/**
 * kofi_client_register - hear of domains that can be opened
 * @client: filled in; it stays until it has been unregistered
 *
 * @client->add is called for every domain there is, before this returns, and
 * then for each that comes; @client->remove for each that goes.
 *
 * Context: process, may sleep; not from a client's callback.
 * Return: 0, or -EINVAL without a name or a callback.
 */
int kofi_client_register(struct kofi_client *client)
{
	struct kofi_device *dev;

	might_sleep();
	if (!client || !client->name || !client->add || !client->remove)
		return -EINVAL;
	mutex_lock(&kofi_client_mutex);
	list_add_tail(&client->node, &kofi_clients);
	list_for_each_entry(dev, &kofi_devices, node)
		if (dev->prov->live)
			kofi_client_tell(client, dev, true);
	mutex_unlock(&kofi_client_mutex);
	return 0;
}
EXPORT_SYMBOL_GPL(kofi_client_register);

/**
 * kofi_client_unregister - hear of domains no longer
 * @client: a registered client
 *
 * @client->remove is called for every domain the client has been told of; no
 * callback runs or will run when this returns.
 *
 * Context: process, may sleep; not from a client's callback.
 */
void kofi_client_unregister(struct kofi_client *client)
{
	struct kofi_device *dev;

	might_sleep();
	mutex_lock(&kofi_client_mutex);
	list_for_each_entry_reverse(dev, &kofi_devices, node)
		if (dev->prov->live)
			kofi_client_tell(client, dev, false);
	list_del(&client->node);
	mutex_unlock(&kofi_client_mutex);
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
 * kofi_device_add - a device can be opened as a domain
 * @prov: its provider, which need not have registered yet
 * @net: network namespace it is in, or NULL if it can be opened in all; not
 *	held, so the device is to go before it
 * @name: of the domain
 *
 * Context: process, may sleep; without locks that discovery, or opening and
 * closing objects, take.
 * Return: 0; -EEXIST if the device is there; -ENOMEM.
 */
int kofi_device_add(struct kofi_provider *prov, struct net *net,
		    const char *name)
{
	struct kofi_device *dev;
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
	mutex_lock(&kofi_client_mutex);
	if (kofi_device_find(prov, net, name)) {
		ret = -EEXIST;
		goto unlock;
	}
	list_add_tail(&dev->node, &kofi_devices);
	if (prov->live)
		kofi_client_tell_all(dev, true);
unlock:
	mutex_unlock(&kofi_client_mutex);
	if (ret) {
		kfree(dev->id.name);
		kfree(dev);
	}
	return ret;
}
EXPORT_SYMBOL_GPL(kofi_device_add);

/**
 * kofi_device_remove - a device is about to go
 * @prov: its provider
 * @net: as it was added with
 * @name: of the domain
 *
 * Clients have closed what they wanted to close when this returns. A device that
 * has not been added is no error.
 *
 * Context: process, may sleep; locks as with kofi_device_add().
 */
void kofi_device_remove(struct kofi_provider *prov, struct net *net,
			const char *name)
{
	struct kofi_device *dev;

	mutex_lock(&kofi_client_mutex);
	dev = kofi_device_find(prov, net, name);
	if (dev) {
		if (prov->live)
			kofi_client_tell_all(dev, false);
		list_del(&dev->node);
		kfree(dev->id.name);
		kfree(dev);
	}
	mutex_unlock(&kofi_client_mutex);
}
EXPORT_SYMBOL_GPL(kofi_device_remove);

/**
 * kofi_client_provider - a provider's devices count, or do so no longer
 * @prov: it has been registered, or is to be deregistered
 * @live: which of these
 */
void kofi_client_provider(struct kofi_provider *prov, bool live)
{
	struct kofi_device *dev;

	mutex_lock(&kofi_client_mutex);
	list_for_each_entry(dev, &kofi_devices, node)
		if (dev->prov == prov)
			kofi_client_tell_all(dev, live);
	prov->live = live;
	mutex_unlock(&kofi_client_mutex);
}

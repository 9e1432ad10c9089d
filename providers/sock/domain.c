// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabrics and domains. A fabric is an IP network in a network namespace, a
 * domain one of its devices.
 *
 * TCP does not notice that a device goes away, so a notifier does. If the device of a
 * domain is taken down or unregistered, the domain's consumer gets FI_NOTIFY, and its
 * endpoints fail with ENETDOWN. After an unregistration the domain stays until it is
 * closed, but new endpoints in it cannot be used.
 *
 * A second notifier announces devices that are up to clients (kofi_client_register()).
 * It runs with the RTNL, which a client may need, so a work item calls the clients. The
 * notifier holds a reference to the device until the device has been withdrawn.
 */
#include <linux/netdevice.h>
#include <linux/slab.h>

#include "sock.h"

/* For the list, and for the lists of endpoints; the notifier walks them */
DEFINE_MUTEX(ksk_dom_mutex);
static LIST_HEAD(ksk_doms);

static void ksk_domain_close(struct kofi_domain *base)
{
	struct ksk_domain *dom = container_of(base, struct ksk_domain, base);

	mutex_lock(&ksk_dom_mutex);
	list_del(&dom->node);
	mutex_unlock(&ksk_dom_mutex);
}

static int ksk_endpoint(struct fid_domain *domain, struct fi_info *info,
			struct fid_ep **fid, void *context)
{
	switch (info->ep_attr->type) {
	case FI_EP_MSG:
		return ksk_msg_open(domain, info, fid, context);
	case FI_EP_RDM:
		return ksk_rdm_open(domain, info, fid, context);
	case FI_EP_DGRAM:
		return ksk_dgram_open(domain, info, fid, context);
	default:
		return -EINVAL;
	}
}

static int ksk_srx_context(struct fid_domain *domain, struct fi_rx_attr *attr,
			   struct fid_ep **srx, void *context)
{
	return ksk_info_check_srx(attr) ?:
	       kofi_srx_open(domain, attr, srx, context);
}

static const struct fi_ops_domain ksk_domain_ops = {
	.size		= sizeof(struct fi_ops_domain),
	.endpoint	= ksk_endpoint,
	.mr_regattr	= kofi_mr_regattr,
	.srx_context	= ksk_srx_context,
};

/* fi_domain() */
int ksk_domain(struct fid_fabric *fabric, struct fi_info *info,
	       struct fid_domain **fid, void *context)
{
	struct kofi_fabric *base = container_of(fabric, struct kofi_fabric,
						fabric);
	struct ksk_domain *dom;
	struct net_device *dev;
	int err;

	if (!info->domain_attr->name ||
	    !ksk_tclass_known(info->domain_attr->tclass))
		return -EINVAL;
	dom = kzalloc(sizeof(*dom), GFP_KERNEL);
	if (!dom)
		return -ENOMEM;
	INIT_LIST_HEAD(&dom->eps);

	err = kofi_domain_init(&dom->base, fabric, info, &ksk_domain_ops,
			       ksk_domain_close, context);
	if (err)
		goto free;

	/* the notifier runs under the same mutex: it sees us, or we see it */
	mutex_lock(&ksk_dom_mutex);
	rcu_read_lock();
	dev = dev_get_by_name_rcu(base->net, info->domain_attr->name);
	if (dev) {
		dom->ifindex = dev->ifindex;
		dom->carrier = netif_carrier_ok(dev);
		dom->base.node = dev->dev.parent ? dev_to_node(dev->dev.parent)
						 : NUMA_NO_NODE;
	}
	rcu_read_unlock();
	if (dev)
		list_add_tail(&dom->node, &ksk_doms);
	mutex_unlock(&ksk_dom_mutex);
	if (!dev) {
		err = -ENODEV;
		goto exit;
	}
	*fid = &dom->base.domain;
	return 0;

exit:
	kofi_domain_exit(&dom->base);
free:
	kfree(dom);
	return err;
}

/* --------------------------------------------------------------- notifier */

static void ksk_domain_lost(struct ksk_domain *dom, bool gone)
{
	struct ksk_ep *ep;

	lockdep_assert_held(&ksk_dom_mutex);

	/* before endpoints are told to look */
	if (gone)
		WRITE_ONCE(dom->ifindex, 0);
	list_for_each_entry(ep, &dom->eps, domain_node)
		ksk_ep_abort(ep, ENETDOWN);
	kofi_domain_notify(&dom->base, gone ? ENODEV : ENETDOWN);
}

/* The link of a device that stays up; its connections wait for it. */
static void ksk_domain_link(struct ksk_domain *dom, bool carrier)
{
	lockdep_assert_held(&ksk_dom_mutex);

	if (dom->carrier == carrier)
		return;
	dom->carrier = carrier;
	kofi_domain_notify(&dom->base, carrier ? 0 : ENOLINK);
}

static int ksk_domain_event(struct notifier_block *nb, unsigned long event,
			    void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	struct ksk_domain *dom;

	if (event != NETDEV_DOWN && event != NETDEV_UNREGISTER &&
	    event != NETDEV_CHANGE)
		return NOTIFY_DONE;

	mutex_lock(&ksk_dom_mutex);
	list_for_each_entry(dom, &ksk_doms, node) {
		if (dom->ifindex != dev->ifindex ||
		    !net_eq(dom->base.fabric->net, dev_net(dev)))
			continue;
		if (event == NETDEV_CHANGE)
			ksk_domain_link(dom, netif_carrier_ok(dev));
		else
			ksk_domain_lost(dom, event == NETDEV_UNREGISTER);
	}
	mutex_unlock(&ksk_dom_mutex);
	return NOTIFY_DONE;
}

/* -------------------------------------------- announcing devices to clients */

/**
 * struct ksk_netdev - a network device
 * @node: entry in ksk_netdevs
 * @dev: the device, held
 * @net: namespace of the device when it came up
 * @now: current name
 * @name: name that clients know
 * @up: the device can be used
 * @told: clients know the device
 * @gone: the device is being unregistered, and waits for our reference
 */
struct ksk_netdev {
	struct list_head	node;
	struct net_device	*dev;
	struct net		*net;
	char			now[IFNAMSIZ];
	char			name[IFNAMSIZ];
	bool			up;
	bool			told;
	bool			gone;
};

static void ksk_netdev_notify_clients(struct work_struct *work);

static DEFINE_MUTEX(ksk_netdev_mutex);	/* the list */
static LIST_HEAD(ksk_netdevs);
static DECLARE_WORK(ksk_netdev_work, ksk_netdev_notify_clients);

/*
 * The next device with a change to announce. It is off the list if it is only to be
 * freed. After a change of its name, the old name is withdrawn and the new one announced.
 */
static struct ksk_netdev *ksk_netdev_next(bool *comes)
{
	struct ksk_netdev *d;

	mutex_lock(&ksk_netdev_mutex);
	list_for_each_entry(d, &ksk_netdevs, node) {
		*comes = d->up && !d->told;
		if (*comes)
			strscpy(d->name, d->now);
		else if (d->told ? d->up && !strcmp(d->name, d->now) : !d->gone)
			continue;
		else if (d->gone && !d->told)
			list_del_init(&d->node);
		mutex_unlock(&ksk_netdev_mutex);
		return d;
	}
	mutex_unlock(&ksk_netdev_mutex);
	return NULL;
}

/* Only this changes @told, and frees. */
static void ksk_netdev_notify_clients(struct work_struct *work)
{
	struct ksk_netdev *d;
	bool comes;

	while ((d = ksk_netdev_next(&comes))) {
		if (comes) {
			if (kofi_device_add(&ksk_provider, d->net, d->name))
				pr_warn_ratelimited("kofi_sock: %s: not announced\n",
						    d->name);
		} else if (d->told) {
			kofi_device_remove(&ksk_provider, d->net, d->name);
		} else {
			dev_put(d->dev);
			kfree(d);
			continue;
		}
		mutex_lock(&ksk_netdev_mutex);
		d->told = comes;
		mutex_unlock(&ksk_netdev_mutex);
	}
}

static struct ksk_netdev *ksk_netdev_find(const struct net_device *dev)
{
	struct ksk_netdev *d;

	lockdep_assert_held(&ksk_netdev_mutex);

	list_for_each_entry(d, &ksk_netdevs, node)
		if (d->dev == dev && !d->gone)
			return d;
	return NULL;
}

static void ksk_netdev_event(struct net_device *dev, unsigned long event)
{
	struct ksk_netdev *d;

	mutex_lock(&ksk_netdev_mutex);
	d = ksk_netdev_find(dev);
	if (!d && event == NETDEV_UP) {
		/* few bytes; without them clients would never know the device */
		d = kzalloc(sizeof(*d), GFP_KERNEL | __GFP_NOFAIL);
		dev_hold(dev);
		d->dev = dev;
		d->net = dev_net(dev);
		list_add_tail(&d->node, &ksk_netdevs);
	}
	if (d) {
		strscpy(d->now, dev->name);
		d->up = event == NETDEV_UP ||
			(event == NETDEV_CHANGENAME && d->up);
		d->gone = event == NETDEV_UNREGISTER;
		queue_work(system_unbound_wq, &ksk_netdev_work);
	}
	mutex_unlock(&ksk_netdev_mutex);
}

static int ksk_netdev_notify(struct notifier_block *nb, unsigned long event,
			     void *ptr)
{
	switch (event) {
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGENAME:
	case NETDEV_UNREGISTER:
		ksk_netdev_event(netdev_notifier_info_to_dev(ptr), event);
		break;
	default:
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block ksk_netdev_nb = {
	.notifier_call = ksk_netdev_notify,
};

/* Abort the endpoints of a device before clients are notified. */
static struct notifier_block ksk_domain_nb = {
	.notifier_call = ksk_domain_event,
};

int ksk_domain_init(void)
{
	int err = register_netdevice_notifier(&ksk_domain_nb);

	if (err)
		return err;
	/* it is called for all existing devices */
	err = register_netdevice_notifier(&ksk_netdev_nb);
	if (err)
		unregister_netdevice_notifier(&ksk_domain_nb);
	return err;
}

void ksk_domain_exit(void)
{
	/* it is called once more for all devices, as if they went */
	unregister_netdevice_notifier(&ksk_netdev_nb);
	flush_work(&ksk_netdev_work);
	unregister_netdevice_notifier(&ksk_domain_nb);
}

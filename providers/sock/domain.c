// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabrics and domains. A fabric is an IP network in a network namespace, a
 * domain one of its devices.
 *
 * TCP does not notice that a device goes away, so a notifier does: when the
 * device of a domain is taken down or unregistered, the domain's consumer gets
 * FI_NOTIFY and its endpoints end with ENETDOWN. A domain whose device has been
 * unregistered stays until it is closed, but its endpoints are dead from the
 * start.
 *
 * The notifier also sees which devices are up, which are those clients are told of
 * (kofi_client_register()). It runs with the RTNL, which a client may need, so
 * that telling is a work item's. A device waits for it: it is held until it has
 * been taken back.
 */
#include <linux/netdevice.h>
#include <linux/slab.h>

#include "sock.h"

/* For the list, and for the lists of endpoints; the notifier walks them */
DEFINE_MUTEX(sock_dom_mutex);
static LIST_HEAD(sock_doms);

static int sock_domain_close(struct fi_fid *fid)
{
	struct sock_domain *dom = container_of(fid, struct sock_domain,
					       base.domain.fid);

	mutex_lock(&sock_dom_mutex);
	list_del(&dom->node);
	mutex_unlock(&sock_dom_mutex);
	kofi_domain_exit(&dom->base);
	kfree(dom);
	return 0;
}

static const struct fi_ops sock_domain_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= sock_domain_close,
};

static const struct fi_ops_domain sock_domain_ops = {
	.size		= sizeof(struct fi_ops_domain),
	.endpoint	= sock_endpoint,
	.mr_regattr	= kofi_mr_regattr,
	.srx_context	= kofi_srx_open,
};

/* fi_domain() */
static int sock_domain(struct fid_fabric *fabric, struct fi_info *info,
		       struct fid_domain **fid, void *context)
{
	struct kofi_fabric *base = container_of(fabric, struct kofi_fabric,
						fabric);
	struct sock_domain *dom;
	struct net_device *dev;
	int err;

	if (!info->domain_attr->name ||
	    !sock_tclass_known(info->domain_attr->tclass))
		return -EINVAL;
	dom = kzalloc(sizeof(*dom), GFP_KERNEL);
	if (!dom)
		return -ENOMEM;
	INIT_LIST_HEAD(&dom->eps);

	err = kofi_domain_init(&dom->base, fabric, info, &sock_domain_fid_ops,
			       &sock_domain_ops, context);
	if (err)
		goto free;

	/* the notifier runs under the same mutex: it sees us, or we see it */
	mutex_lock(&sock_dom_mutex);
	rcu_read_lock();
	dev = dev_get_by_name_rcu(base->net, info->domain_attr->name);
	if (dev) {
		dom->ifindex = dev->ifindex;
		dom->base.node = dev->dev.parent ? dev_to_node(dev->dev.parent)
						 : NUMA_NO_NODE;
	}
	rcu_read_unlock();
	if (dev)
		list_add_tail(&dom->node, &sock_doms);
	mutex_unlock(&sock_dom_mutex);
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

static int sock_fabric_close(struct fi_fid *fid)
{
	struct kofi_fabric *fabric = container_of(fid, struct kofi_fabric,
						  fabric.fid);

	kofi_fabric_exit(fabric);
	kfree(fabric);
	return 0;
}

static const struct fi_ops sock_fabric_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= sock_fabric_close,
};

static const struct fi_ops_fabric sock_fabric_ops = {
	.size		= sizeof(struct fi_ops_fabric),
	.domain		= sock_domain,
	.passive_ep	= sock_passive_ep,
};

/* fi_fabric() */
int sock_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fid,
		void *context)
{
	struct kofi_fabric *fabric;
	int err;

	fabric = kzalloc(sizeof(*fabric), GFP_KERNEL);
	if (!fabric)
		return -ENOMEM;
	err = kofi_fabric_init(fabric, &sock_provider, attr,
			       &sock_fabric_fid_ops, &sock_fabric_ops, context);
	if (err) {
		kfree(fabric);
		return err;
	}
	*fid = &fabric->fabric;
	return 0;
}

/* --------------------------------------------------------------- notifier */

static void sock_domain_lost(struct sock_domain *dom, bool gone)
{
	struct sock_ep *ep;

	lockdep_assert_held(&sock_dom_mutex);

	list_for_each_entry(ep, &dom->eps, domain_node)
		sock_ep_kill(ep, ENETDOWN);
	if (gone)
		dom->ifindex = 0;
	kofi_domain_notify(&dom->base, ENETDOWN);
}

static int sock_domain_event(struct notifier_block *nb, unsigned long event,
			     void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	struct sock_domain *dom;

	if (event != NETDEV_DOWN && event != NETDEV_UNREGISTER)
		return NOTIFY_DONE;

	mutex_lock(&sock_dom_mutex);
	list_for_each_entry(dom, &sock_doms, node)
		if (dom->ifindex == dev->ifindex &&
		    net_eq(dom->base.fabric->net, dev_net(dev)))
			sock_domain_lost(dom, event == NETDEV_UNREGISTER);
	mutex_unlock(&sock_dom_mutex);
	return NOTIFY_DONE;
}

/* ----------------------------------------------------- what clients hear */

/**
 * struct sock_netdev - a network device
 * @node: sock_netdevs
 * @dev: held
 * @net: the namespace it has been seen in
 * @now: its name
 * @name: the one clients have been told
 * @up: it can be used
 * @told: clients know it
 * @gone: it waits for us to let it go
 */
struct sock_netdev {
	struct list_head	node;
	struct net_device	*dev;
	struct net		*net;
	char			now[IFNAMSIZ];
	char			name[IFNAMSIZ];
	bool			up;
	bool			told;
	bool			gone;
};

static void sock_netdev_tell(struct work_struct *work);

static DEFINE_MUTEX(sock_netdev_mutex);	/* the list */
static LIST_HEAD(sock_netdevs);
static DECLARE_WORK(sock_netdev_work, sock_netdev_tell);

/*
 * The next thing to do, off the list if nothing follows. That the name has
 * changed is that the old one goes and the new one comes.
 */
static struct sock_netdev *sock_netdev_next(bool *comes)
{
	struct sock_netdev *d;

	mutex_lock(&sock_netdev_mutex);
	list_for_each_entry(d, &sock_netdevs, node) {
		*comes = d->up && !d->told;
		if (*comes)
			strscpy(d->name, d->now);
		else if (d->told ? d->up && !strcmp(d->name, d->now) : !d->gone)
			continue;
		else if (d->gone && !d->told)
			list_del_init(&d->node);
		mutex_unlock(&sock_netdev_mutex);
		return d;
	}
	mutex_unlock(&sock_netdev_mutex);
	return NULL;
}

/* Only this changes @told, and frees. */
static void sock_netdev_tell(struct work_struct *work)
{
	struct sock_netdev *d;
	bool comes;

	while ((d = sock_netdev_next(&comes))) {
		if (comes) {
			if (kofi_device_add(&sock_provider, d->net, d->name))
				pr_warn_ratelimited("kofi_sock: %s: not announced\n",
						    d->name);
		} else if (d->told) {
			kofi_device_remove(&sock_provider, d->net, d->name);
		} else {
			dev_put(d->dev);
			kfree(d);
			continue;
		}
		mutex_lock(&sock_netdev_mutex);
		d->told = comes;
		mutex_unlock(&sock_netdev_mutex);
	}
}

static struct sock_netdev *sock_netdev_find(const struct net_device *dev)
{
	struct sock_netdev *d;

	lockdep_assert_held(&sock_netdev_mutex);

	list_for_each_entry(d, &sock_netdevs, node)
		if (d->dev == dev && !d->gone)
			return d;
	return NULL;
}

static void sock_netdev_event(struct net_device *dev, unsigned long event)
{
	struct sock_netdev *d;

	mutex_lock(&sock_netdev_mutex);
	d = sock_netdev_find(dev);
	if (!d && event == NETDEV_UP) {
		/* few bytes, and nobody would ever hear of the device */
		d = kzalloc(sizeof(*d), GFP_KERNEL | __GFP_NOFAIL);
		dev_hold(dev);
		d->dev = dev;
		d->net = dev_net(dev);
		list_add_tail(&d->node, &sock_netdevs);
	}
	if (d) {
		strscpy(d->now, dev->name);
		d->up = event == NETDEV_UP ||
			(event == NETDEV_CHANGENAME && d->up);
		d->gone = event == NETDEV_UNREGISTER;
		queue_work(system_unbound_wq, &sock_netdev_work);
	}
	mutex_unlock(&sock_netdev_mutex);
}

static int sock_netdev_notify(struct notifier_block *nb, unsigned long event,
			      void *ptr)
{
	switch (event) {
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGENAME:
	case NETDEV_UNREGISTER:
		sock_netdev_event(netdev_notifier_info_to_dev(ptr), event);
		break;
	default:
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block sock_netdev_nb = {
	.notifier_call = sock_netdev_notify,
};

/* What befalls domains, before clients hear of it */
static struct notifier_block sock_domain_nb = {
	.notifier_call = sock_domain_event,
};

int sock_domain_init(void)
{
	int err = register_netdevice_notifier(&sock_domain_nb);

	if (err)
		return err;
	/* is told of all there are */
	err = register_netdevice_notifier(&sock_netdev_nb);
	if (err)
		unregister_netdevice_notifier(&sock_domain_nb);
	return err;
}

void sock_domain_exit(void)
{
	/* and once more, that they go */
	unregister_netdevice_notifier(&sock_netdev_nb);
	flush_work(&sock_netdev_work);
	unregister_netdevice_notifier(&sock_domain_nb);
}

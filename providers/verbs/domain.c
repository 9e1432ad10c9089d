// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Devices, fabrics and domains. A domain is a device with one protection
 * domain; a fabric is the network of the device's address.
 *
 * Removal of a device
 *
 * When vrb_dev_remove() returns, nothing may use the device, although consumers
 * still hold their objects. So all endpoints are ended, with their operations,
 * and release their objects of the device. The connection manager's identifiers
 * of passive endpoints and requests are destroyed; regions and the protection
 * domain are freed. The consumer closes the remaining objects later, children
 * before parents. A domain without a device opens nothing new.
 *
 * Locks
 *
 * vrb_mutex protects the lists of devices and of passive endpoints. A device's
 * mutex protects the lists of its domains, and of their endpoints and shared
 * receive contexts. A removal waits for walks of these lists. The two mutexes
 * are not held together. Lock order: device's mutex, an endpoint's cm.mutex, a
 * shared receive context's mutex. The connection manager's event handlers take
 * neither vrb_mutex nor a device's mutex, because the handlers are waited for
 * with these held.
 */
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "verbs.h"

DEFINE_MUTEX(vrb_mutex);	/* see above */
LIST_HEAD(vrb_devs);

static void vrb_dev_put(struct vrb_dev *dev)
{
	if (!refcount_dec_and_test(&dev->refs))
		return;
	mutex_destroy(&dev->mutex);
	kfree(dev);
}

static void vrb_domain_close(struct kofi_domain *base)
{
	struct vrb_domain *dom = container_of(base, struct vrb_domain, base);

	vrb_linger_wait(dom);
	mutex_lock(&dom->dev->mutex);
	if (!dom->gone) {
		list_del(&dom->node);
		ib_dealloc_pd(dom->pd);
	}
	mutex_unlock(&dom->dev->mutex);
	vrb_mr_domain_exit(dom);
	vrb_map_check(dom);
	put_device(dom->base.dev);
	put_device(&dom->ib->dev);
	vrb_dev_put(dom->dev);
}

static const struct fi_ops_domain vrb_domain_ops = {
	.size		= sizeof(struct fi_ops_domain),
	.endpoint	= vrb_endpoint,
	.cq_open	= vrb_cq_open,
	.srx_context	= vrb_srx_context,
	.mr_regattr	= kofi_mr_regattr,
	.query_atomic	= vrb_query_atomic,
};

/* Look up a device by name. Returns it with a reference, or NULL. */
static struct vrb_dev *vrb_dev_get(const char *name)
{
	struct vrb_dev *dev, *found = NULL;

	mutex_lock(&vrb_mutex);
	/* not dev_name(), which a rename of the device frees */
	list_for_each_entry(dev, &vrb_devs, node)
		if (!strcmp(dev->ib->name, name))
			found = dev;
	if (found)
		refcount_inc(&found->refs);
	mutex_unlock(&vrb_mutex);
	return found;
}

/**
 * vrb_dev_there - test whether a device is present and not being removed
 * @ib: the device
 *
 * Context: process; vrb_mutex held.
 * Return: true if it is present.
 */
bool vrb_dev_there(const struct ib_device *ib)
{
	struct vrb_dev *dev;

	list_for_each_entry(dev, &vrb_devs, node)
		if (dev->ib == ib)
			return true;
	return false;
}

/* Set up the members that depend on the device. */
static int vrb_domain_attach(struct vrb_domain *dom, const struct fi_info *info)
{
	struct vrb_dev *dev = dom->dev;
	struct ib_device *ib = dev->ib;
	int err;

	lockdep_assert_held(&dev->mutex);

	if (dev->gone || !vrb_dev_access(ib, dom->base.fabric->net))
		return -ENODEV;
	err = vrb_info_check_domain(info, ib);
	if (err)
		return err;
	dom->ib = ib;
	dom->base.vectors = ib->num_comp_vectors;
	dom->pd = ib_alloc_pd(ib, 0);
	if (IS_ERR(dom->pd))
		return PTR_ERR(dom->pd);
	dom->quirks = vrb_quirks(ib);
	dom->max_wr = vrb_info_max_wr(ib);
	dom->map_max = vrb_map_max(ib);
	/* otherwise unmapping does nothing */
	dom->needs_map = VRB_MAP_COUNTED || !ib_uses_virt_dma(ib);
	dom->lkey = dom->pd->local_dma_lkey;
	dom->max_inline = VRB_INJECT_MAX;
	dom->atomic = vrb_info_atomic(ib);
	dom->mr_atomic = dom->atomic && info->caps & FI_ATOMIC;
	dom->regions = vrb_info_regions(ib);
	dom->base.dev = get_device(ib->dma_device);
	get_device(&ib->dev);
	dom->base.node = dev_to_node(&ib->dev);
	list_add_tail(&dom->node, &dev->doms);
	return 0;
}

/* fi_domain() */
int vrb_domain(struct fid_fabric *fabric, struct fi_info *info,
	       struct fid_domain **fid, void *context)
{
	struct vrb_domain *dom;
	int err;

	if (!info->domain_attr->name)
		return -EINVAL;
	dom = kzalloc(sizeof(*dom), GFP_KERNEL);
	if (!dom)
		return -ENOMEM;
	INIT_LIST_HEAD(&dom->eps);
	INIT_LIST_HEAD(&dom->srxs);
	vrb_mr_domain_init(dom);
	err = -ENODEV;
	dom->dev = vrb_dev_get(info->domain_attr->name);
	if (!dom->dev)
		goto free;
	err = kofi_domain_init(&dom->base, fabric, info, &vrb_domain_ops,
			       vrb_domain_close, context);
	if (err)
		goto put_dev;
	dom->base.mr_ops = &vrb_mr_ops;

	mutex_lock(&dom->dev->mutex);
	err = vrb_domain_attach(dom, info);
	mutex_unlock(&dom->dev->mutex);
	if (err)
		goto exit;
	*fid = &dom->base.domain;
	return 0;

exit:
	kofi_domain_exit(&dom->base);
put_dev:
	vrb_dev_put(dom->dev);
free:
	vrb_mr_domain_exit(dom);
	kfree(dom);
	return err;
}

/* ---------------------------------------------------------------- devices */

/* Network namespace in which a device can be opened; NULL: all */
static struct net *vrb_dev_net(struct ib_device *ib)
{
	return vrb_dev_access(ib, NULL) ? NULL :
	       read_pnet(&ib->coredev.rdma_net);
}

/* Test for a port with one of the two kinds of connections; other devices are useless. */
static bool vrb_dev_usable(struct ib_device *ib)
{
	u32 port;

	rdma_for_each_port(ib, port)
		if (rdma_cap_ib_cm(ib, port) || rdma_cap_iw_cm(ib, port))
			return true;
	return false;
}

/* A port has gone up or down, or its addresses have changed. */
static void vrb_dev_event(struct ib_event_handler *handler,
			  struct ib_event *event)
{
	kofi_device_rescan();
	if (event->event == IB_EVENT_GID_CHANGE)
		vrb_pep_gid_change();
}

static struct ib_client vrb_client;

/* Domains can be opened on the device even if this fails. */
static void vrb_dev_announce(struct vrb_dev *dev)
{
	strscpy(dev->name, dev->ib->name);
	if (kofi_device_add(&vrb_provider, dev->net, dev->name))
		dev_warn(&dev->ib->dev, "kofi_verbs: not announced\n");
}

static int vrb_dev_add(struct ib_device *ib)
{
	struct vrb_dev *dev;

	if (!vrb_dev_usable(ib))
		return -EOPNOTSUPP;
	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	dev->ib = ib;
	dev->net = vrb_dev_net(ib);
	refcount_set(&dev->refs, 1);
	mutex_init(&dev->mutex);
	INIT_LIST_HEAD(&dev->doms);
	ib_set_client_data(ib, &vrb_client, dev);

	mutex_lock(&vrb_mutex);
	list_add_tail(&dev->node, &vrb_devs);
	mutex_unlock(&vrb_mutex);
	vrb_dev_announce(dev);
	INIT_IB_EVENT_HANDLER(&dev->events, ib, vrb_dev_event);
	ib_register_event_handler(&dev->events);
	/* addresses may have come before the handler was registered */
	kofi_device_rescan();
	return 0;
}

/*
 * Detach a domain from its device; the consumer closes it later. A post maps
 * memory for the device before it takes any lock. So posts that have begun are
 * waited for, and later posts find their queue closed.
 */
static void vrb_domain_lost(struct vrb_domain *dom)
{
	struct vrb_srx *srx;
	struct vrb_ep *ep;

	lockdep_assert_held(&dom->dev->mutex);

	/* read with cm.mutex held when an endpoint is enabled */
	WRITE_ONCE(dom->gone, true);
	list_for_each_entry(ep, &dom->eps, dom_node) {
		vrb_tx_close(ep);
		vrb_rxq_close(&ep->rxq);
	}
	list_for_each_entry(srx, &dom->srxs, dom_node)
		vrb_rxq_close(&srx->rxq);
	synchronize_rcu();
	list_for_each_entry(ep, &dom->eps, dom_node)
		vrb_ep_fail_qp(ep, ENODEV);
	list_for_each_entry(ep, &dom->eps, dom_node)
		vrb_ep_end(ep, ENODEV);
	list_for_each_entry(ep, &dom->eps, dom_node)
		vrb_ep_linger(ep);
	vrb_linger_wait(dom);
	list_for_each_entry(srx, &dom->srxs, dom_node)
		vrb_srx_end(srx);
	vrb_mr_lost(dom);
	ib_dealloc_pd(dom->pd);
	dom->pd = NULL;
	list_del(&dom->node);
	kofi_domain_notify(&dom->base, ENODEV);
}

static void vrb_dev_remove(struct ib_device *ib, void *data)
{
	struct vrb_domain *dom, *next;
	struct vrb_dev *dev = data;

	ib_unregister_event_handler(&dev->events);
	/* clients close their objects, for which they need the mutex */
	kofi_device_remove(&vrb_provider, dev->net, dev->name);
	mutex_lock(&vrb_mutex);
	/* first: an endpoint may wait for the answer to one of these requests */
	vrb_pep_remove(ib);
	list_del(&dev->node);
	mutex_unlock(&vrb_mutex);
	mutex_lock(&dev->mutex);
	dev->gone = true;
	list_for_each_entry_safe(dom, next, &dev->doms, node)
		vrb_domain_lost(dom);
	mutex_unlock(&dev->mutex);
	vrb_dev_put(dev);
}

/* Announce removal of the old name and arrival of the new one; open objects stay. */
static void vrb_dev_rename(struct ib_device *ib, void *data)
{
	struct vrb_dev *dev = data;

	kofi_device_remove(&vrb_provider, dev->net, dev->name);
	vrb_dev_announce(dev);
}

static struct ib_client vrb_client = {
	.name	= "kofi_verbs",
	.add	= vrb_dev_add,
	.remove	= vrb_dev_remove,
	.rename	= vrb_dev_rename,
};

int vrb_domain_init(void)
{
	return ib_register_client(&vrb_client);
}

void vrb_domain_exit(void)
{
	ib_unregister_client(&vrb_client);
}

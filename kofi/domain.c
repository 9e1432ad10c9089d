// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabrics and domains (fi_fabric(3), fi_domain(3)).
 *
 * A fabric represents one provider in one network namespace. It holds references to the
 * namespace and the provider's module while it is open, so that objects inside
 * it need none. A domain is one device of the fabric, or a substitute for one; its base
 * has the table of memory regions of software providers.
 */
#include <linux/cpumask.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/topology.h>

#include <linux/kofi/debug.h>

#include "internal.h"

/* ----------------------------------------------------------------- fabrics */

/**
 * kofi_fabric_init - set up the base of a provider's fabric
 * @fabric: the base
 * @prov: the provider
 * @attr: argument of kofi_provider.fabric
 * @fid_ops: generic operations, with close
 * @ops: operations of the fabric
 * @context: context of the consumer
 *
 * Takes a reference to the network namespace.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL if @attr has no name or namespace, or @fid_ops no close;
 * -ENOMEM.
 */
int kofi_fabric_init(struct kofi_fabric *fabric, struct kofi_provider *prov,
		     const struct fi_fabric_attr *attr,
		     const struct fi_ops *fid_ops,
		     const struct fi_ops_fabric *ops, void *context)
{
	struct fid_fabric *fid = &fabric->fabric;
	int ret;

	if (!attr->name || !attr->net)
		return -EINVAL;
	fid->ops = ops;
	fid->api_version = attr->api_version;
	fabric->name = kstrdup(attr->name, GFP_KERNEL);
	if (!fabric->name)
		return -ENOMEM;
	ret = kofi_obj_init(&fabric->obj, &fid->fid, FI_CLASS_FABRIC, fid_ops,
			    NULL, prov, context);
	if (ret)
		goto free_name;
	fabric->net = get_net_track(attr->net, &fabric->ns_tracker, GFP_KERNEL);
	return 0;

free_name:
	kfree(fabric->name);
	return ret;
}
EXPORT_SYMBOL_GPL(kofi_fabric_init);

/**
 * kofi_fabric_exit - undo kofi_fabric_init()
 * @fabric: the base
 *
 * Context: process, may sleep.
 */
void kofi_fabric_exit(struct kofi_fabric *fabric)
{
	kofi_obj_exit(&fabric->obj);
	put_net_track(fabric->net, &fabric->ns_tracker);
	kfree(fabric->name);
}
EXPORT_SYMBOL_GPL(kofi_fabric_exit);

static int kofi_fabric_close(struct fi_fid *fid)
{
	struct kofi_fabric *fabric = container_of(fid, struct kofi_fabric,
						  fabric.fid);

	kofi_fabric_exit(fabric);
	kfree(fabric);
	return 0;
}

static const struct fi_ops kofi_fabric_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= kofi_fabric_close,
};

/* Open a fabric without state of the provider, as most are. */
static int kofi_fabric_open(struct kofi_provider *prov,
			    const struct fi_fabric_attr *attr,
			    struct fid_fabric **fid, void *context)
{
	struct kofi_fabric *fabric = kzalloc(sizeof(*fabric), GFP_KERNEL);
	int err;

	if (!fabric)
		return -ENOMEM;
	err = kofi_fabric_init(fabric, prov, attr, &kofi_fabric_fid_ops,
			       prov->fabric_ops, context);
	if (err) {
		kfree(fabric);
		return err;
	}
	*fid = &fabric->fabric;
	return 0;
}

/**
 * __fi_fabric - open a fabric on behalf of a module
 * @attr: as for fi_fabric()
 * @fabric: receives the fabric
 * @context: returned with events of the fabric
 * @owner: name of the module, shown in lists of objects
 *
 * fi_fabric() calls it with the name of the calling module.
 *
 * Context: process, may sleep; may load the provider's module.
 * Return: as fi_fabric().
 */
int __fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		void *context, const char *owner)
{
	struct fi_fabric_attr full;
	struct kofi_provider *prov;
	struct kofi_fabric *base;
	int ret;

	might_sleep();
	if (!attr || !fabric || !attr->name || !attr->prov_name)
		return -EINVAL;
	full = *attr;
	if (!full.api_version)
		full.api_version = fi_version();
	if (FI_VERSION_LT(fi_version(), full.api_version))
		return -ENOSYS;
	if (!full.net)
		full.net = kofi_current_net();
	if (!full.net)
		return -EINVAL;

	prov = kofi_provider_get(full.prov_name);
	if (!prov)
		return -ENODEV;
	full.prov_version = prov->version;
	ret = prov->fabric ? prov->fabric(&full, fabric, context) :
			     kofi_fabric_open(prov, &full, fabric, context);
	if (ret)
		goto put_prov;
	base = container_of(*fabric, struct kofi_fabric, fabric);
	strscpy(base->owner, owner, sizeof(base->owner));
	kofi_obj_publish(&base->obj);
	return 0;	/* the reference is the fabric's now */

put_prov:
	kofi_provider_put(prov);
	return ret;
}
EXPORT_SYMBOL_GPL(__fi_fabric);

/* ----------------------------------------------------------------- domains */

static void kofi_domain_stats(struct kofi_obj *obj, kofi_stat_fn fn, void *arg)
{
	struct kofi_domain *domain = container_of(obj, struct kofi_domain, obj);

	if (domain->node != NUMA_NO_NODE)
		fn(arg, "numa_node", domain->node);
	kofi_mr_pool_domain_stats(domain, fn, arg);
}

static const struct kofi_obj_ops kofi_domain_obj_ops = {
	.stats	= kofi_domain_stats,
};

static int kofi_domain_close(struct fi_fid *fid)
{
	struct kofi_domain *domain = container_of(fid, struct kofi_domain,
						  domain.fid);

	if (domain->close)
		domain->close(domain);
	kofi_domain_exit(domain);
	kfree(domain);
	return 0;
}

static const struct fi_ops kofi_domain_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= kofi_domain_close,
};

/**
 * kofi_domain_init - set up the base of a provider's domain
 * @domain: the base, at the beginning of memory from kzalloc()
 * @fabric: parent
 * @info: info of fi_domain()
 * @ops: operations of the domain
 * @close: as kofi_domain.close
 * @context: context of the consumer
 *
 * The provider then sets dev and node if it has a device, and mr_ops if that
 * device moves the data.
 *
 * Context: process, may sleep.
 * Return: 0; -EBUSY if @fabric is being closed; -ENOMEM.
 */
int kofi_domain_init(struct kofi_domain *domain, struct fid_fabric *fabric,
		     const struct fi_info *info, const struct fi_ops_domain *ops,
		     void (*close)(struct kofi_domain *domain), void *context)
{
	struct fid_domain *fid = &domain->domain;
	int ret;

	domain->fabric = container_of(fabric, struct kofi_fabric, fabric);
	domain->eq = NULL;
	domain->dev = NULL;
	domain->node = NUMA_NO_NODE;
	domain->vectors = 0;
	domain->name = NULL;
	domain->addr_format = info->addr_format;
	domain->close = close;
	domain->mr_ops = &kofi_mr_soft;

	fid->ops = ops;
	if (info->domain_attr->name) {
		domain->name = kstrdup(info->domain_attr->name, GFP_KERNEL);
		if (!domain->name)
			return -ENOMEM;
	}
	ret = kofi_obj_init(&domain->obj, &fid->fid, FI_CLASS_DOMAIN,
			    &kofi_domain_fid_ops, &domain->fabric->obj,
			    domain->fabric->obj.prov, context);
	if (ret)
		goto free_name;
	domain->obj.ops = &kofi_domain_obj_ops;
	kofi_mr_table_init(&domain->mrs, info->domain_attr->mr_mode);
	mutex_init(&domain->mr_pool_mutex);
	INIT_LIST_HEAD(&domain->mr_pools);
	INIT_LIST_HEAD(&domain->path_node);
	return 0;

free_name:
	kfree(domain->name);
	return ret;
}
EXPORT_SYMBOL_GPL(kofi_domain_init);

/**
 * kofi_domain_exit - undo kofi_domain_init()
 * @domain: the base
 *
 * kofi_domain_notify() must not be called afterwards.
 *
 * Context: process, may sleep.
 */
void kofi_domain_exit(struct kofi_domain *domain)
{
	if (domain->eq) {
		kofi_path_forget(domain);
		kofi_eq_purge(domain->eq, &domain->domain.fid);
		kofi_obj_put(&domain->eq->obj);
	}
	mutex_destroy(&domain->mr_pool_mutex);
	kofi_mr_table_exit(&domain->mrs);
	kofi_obj_exit(&domain->obj);
	kfree(domain->name);
}
EXPORT_SYMBOL_GPL(kofi_domain_exit);

/**
 * fi_domain - open a domain
 * @fabric: an open fabric
 * @info: as fi_getinfo() has returned it for this fabric; only read
 * @domain: where the domain goes
 * @context: returned with events of the domain
 *
 * See fi_domain(3).
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for NULL arguments, an @info that lacks an attribute
 * structure, is of another provider or network namespace, or has inconsistent
 * addresses; -ENOSYS, -ENOMEM, or
 * the provider's error.
 */
int fi_domain(struct fid_fabric *fabric, struct fi_info *info,
	      struct fid_domain **domain, void *context)
{
	struct kofi_fabric *kfabric;
	struct kofi_domain *kdomain;
	struct fi_info *parsed;
	int ret;

	might_sleep();
	if (kofi_fid_class(&fabric->fid) != FI_CLASS_FABRIC || !info || !domain)
		return -EINVAL;
	kfabric = container_of(fabric, struct kofi_fabric, fabric);
	if (!kofi_info_usable(info, kfabric))
		return -EINVAL;
	if (!fabric->ops->domain)
		return -ENOSYS;
	parsed = kofi_info_parsed(info, kfabric->net);
	if (IS_ERR(parsed))
		return PTR_ERR(parsed);
	ret = fabric->ops->domain(fabric, parsed, domain, context);
	kofi_info_unparse(info, parsed);
	if (ret)
		return kofi_refused(&kfabric->obj, "fi_domain", ret);
	kdomain = container_of(*domain, struct kofi_domain, domain);
	kdomain->addr_format = info->addr_format;
	kofi_obj_publish(&kdomain->obj);
	return 0;
}
EXPORT_SYMBOL_GPL(fi_domain);

/**
 * fi_domain2 - open a domain, with flags
 * @fabric: an open fabric
 * @info: as fi_getinfo() has returned it for this fabric; only read
 * @domain: where the domain goes
 * @flags: none
 * @context: returned with events of the domain
 *
 * See fi_domain(3).
 *
 * Context: process, may sleep.
 * Return: 0; -FI_EBADFLAGS; or the error of fi_domain().
 */
int fi_domain2(struct fid_fabric *fabric, struct fi_info *info,
	       struct fid_domain **domain, u64 flags, void *context)
{
	if (flags)
		return -FI_EBADFLAGS;
	return fi_domain(fabric, info, domain, context);
}
EXPORT_SYMBOL_GPL(fi_domain2);

/**
 * fi_domain_bind - bind an event queue to a domain
 * @domain: a domain
 * @eq: an event queue of the same fabric; it gets the domain's FI_NOTIFY
 *	events
 * @flags: must be 0
 *
 * See fi_domain(3). Closing the domain unbinds the queue.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for NULL arguments, another object, or a queue that
 * is being closed; -FI_EBADFLAGS; -FI_EDOMAIN for a queue of another
 * fabric; -EBUSY for a domain that has a queue.
 */
int fi_domain_bind(struct fid_domain *domain, struct fi_fid *eq, u64 flags)
{
	struct kofi_domain *dom;
	int ret;

	might_sleep();
	if (kofi_fid_class(&domain->fid) != FI_CLASS_DOMAIN)
		return -EINVAL;
	dom = container_of(domain, struct kofi_domain, domain);
	ret = kofi_eq_bind(&dom->eq, dom->fabric, eq, flags);
	if (!ret)
		kofi_path_watch(dom);
	return ret;
}
EXPORT_SYMBOL_GPL(fi_domain_bind);

/**
 * kofi_domain_notify - notify the consumer of a change of a domain's path
 * @domain: the base of the domain
 * @err: fi_eq_entry.data: ENODEV after the final loss of the device; ENETDOWN or another
 *	positive error code without a path; 0 for a new path, or for changed addresses
 *
 * Queues FI_NOTIFY on the event queue bound to the domain, if there is one. A
 * full queue reports an overrun instead. Nothing follows ENODEV.
 *
 * Context: process, may sleep; waits for memory, but not for I/O.
 */
void kofi_domain_notify(struct kofi_domain *domain, int err)
{
	const struct kofi_event ev = {
		.fid = &domain->domain.fid,
		.context = domain->domain.fid.context,
		.event = FI_NOTIFY, .data_val = err,
	};
	int lost = READ_ONCE(domain->lost);

	might_sleep();
	do {
		if (lost == ENODEV)
			return;
	} while (!try_cmpxchg(&domain->lost, &lost, err));
	if (err)
		kofi_notify(&domain->obj, &(struct kofi_notice) {
			.kind = KOFI_EVENT_PATH_LOST, .err = err,
		});
	/* the only notification of, for instance, the loss of the device */
	kofi_eq_report(READ_ONCE(domain->eq), &ev, GFP_NOIO | __GFP_NOFAIL);
}
EXPORT_SYMBOL_GPL(kofi_domain_notify);

/**
 * kofi_domain_device - device that moves the data of a domain
 * @domain: an open domain
 *
 * Context: any. The device stays while the domain is open.
 * Return: the device to map memory for, NULL if the CPU moves the data or
 * @domain is another object.
 */
struct device *kofi_domain_device(struct fid_domain *domain)
{
	if (kofi_fid_class(&domain->fid) != FI_CLASS_DOMAIN)
		return NULL;
	return container_of(domain, struct kofi_domain, domain)->dev;
}
EXPORT_SYMBOL_GPL(kofi_domain_device);

/**
 * kofi_domain_fabric - fabric of a domain
 * @domain: an open domain
 *
 * For code that gets a domain and opens event queues or passive endpoints, which
 * belong to the fabric. No reference is taken: the fabric stays open as long as the
 * domain.
 *
 * Context: any.
 * Return: the fabric; NULL if @domain is another object.
 */
struct fid_fabric *kofi_domain_fabric(struct fid_domain *domain)
{
	if (kofi_fid_class(&domain->fid) != FI_CLASS_DOMAIN)
		return NULL;
	return &container_of(domain, struct kofi_domain, domain)->fabric->fabric;
}
EXPORT_SYMBOL_GPL(kofi_domain_fabric);

/**
 * kofi_domain_node - NUMA node of a domain
 * @domain: an open domain
 *
 * Context: any.
 * Return: the preferred node for memory, or NUMA_NO_NODE.
 */
int kofi_domain_node(struct fid_domain *domain)
{
	if (kofi_fid_class(&domain->fid) != FI_CLASS_DOMAIN)
		return NUMA_NO_NODE;
	return container_of(domain, struct kofi_domain, domain)->node;
}
EXPORT_SYMBOL_GPL(kofi_domain_node);

/**
 * kofi_domain_vector_cpus - CPUs that are near a completion vector
 * @domain: an open domain
 * @vector: number of the vector, from 0
 *
 * Kernels do not report the CPUs that a device's vectors interrupt: the set contains
 * the CPUs of the domain's NUMA node.
 *
 * Context: any.
 * Return: a constant set; NULL if the device has no such vector, or @domain is
 * another object. A domain without a device has any number of vectors.
 */
const struct cpumask *kofi_domain_vector_cpus(struct fid_domain *domain,
					      int vector)
{
	int node = kofi_domain_node(domain);
	unsigned int vectors;

	if (kofi_fid_class(&domain->fid) != FI_CLASS_DOMAIN || vector < 0)
		return NULL;
	vectors = container_of(domain, struct kofi_domain, domain)->vectors;
	if (vectors && vector >= vectors)
		return NULL;
	return node == NUMA_NO_NODE ? cpu_possible_mask : cpumask_of_node(node);
}
EXPORT_SYMBOL_GPL(kofi_domain_vector_cpus);

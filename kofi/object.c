// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Objects: what is common to all of them, and fabrics, domains and passive
 * endpoints.
 *
 * An object belongs to whoever opened it and ends with fi_close(). It keeps
 * its parent from being closed by being one of the parent's users, as does
 * what is bound to something. fi_close() moves the number of users from 0 to
 * KOFI_OBJ_CLOSING in one step, after which nobody can become a user.
 *
 * Normal way: the provider's open function calls the init function of the
 * base it embeds; once it has returned, the core publishes the object, so that
 * it shows up in dumps; fi_close() drains an endpoint, withdraws the object
 * and has the provider call the exit function and free it.
 *
 * Failure way: an open that fails undoes its own steps. The object has not
 * been published then.
 *
 * A fabric holds a reference to its provider's module. All other objects live
 * inside a fabric, so they need none while they are open.
 */
#include <linux/cpumask.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/topology.h>
#include <linux/wait_bit.h>
#include <linux/xarray.h>

#include "internal.h"
#include "kofi_trace.h"

#define KOFI_OBJ_CLOSING	(-1)

/*
 * Closing takes it, so nothing that allocates or waits for an object runs under
 * it.
 */
static DEFINE_MUTEX(kofi_obj_mutex);

static DEFINE_XARRAY_ALLOC1(kofi_objs);	/* entries change under the mutex */
static u32 kofi_obj_last;

static int kofi_fid_no_close(struct fi_fid *fid)
{
	return -ENOSYS;
}

static int kofi_fid_no_bind(struct fi_fid *fid, struct fi_fid *bfid, u64 flags)
{
	return -ENOSYS;
}

static int kofi_fid_no_control(struct fi_fid *fid, int command, void *arg)
{
	return -ENOSYS;
}

static int kofi_fid_no_ops_open(struct fi_fid *fid, const char *name, u64 flags,
				void **ops, void *context)
{
	return -ENOSYS;
}

static int kofi_fid_no_tostr(const struct fi_fid *fid, char *buf, size_t len)
{
	return -ENOSYS;
}

static int kofi_fid_no_ops_set(struct fi_fid *fid, const char *name, u64 flags,
			       void *ops, void *context)
{
	return -ENOSYS;
}

static const struct fi_ops kofi_fid_nosys = {
	.size		= sizeof(struct fi_ops),
	.close		= kofi_fid_no_close,
	.bind		= kofi_fid_no_bind,
	.control	= kofi_fid_no_control,
	.ops_open	= kofi_fid_no_ops_open,
	.tostr		= kofi_fid_no_tostr,
	.ops_set	= kofi_fid_no_ops_set,
};

/* ------------------------------------------------------------- all objects */

/**
 * kofi_obj_init - set up the common part of an object
 * @obj: the core's part
 * @fid: what consumers see of it
 * @fclass: FI_CLASS_*
 * @ops: its generic operations, a static table, with close
 * @parent: gets a user more, NULL for a fabric
 * @prov: provider, or NULL
 * @context: the consumer's
 *
 * Context: process, may sleep.
 * Return: 0; -EBUSY if @parent is being closed; -EINVAL if @ops has no close;
 * -ENOMEM.
 */
int kofi_obj_init(struct kofi_obj *obj, struct fi_fid *fid, size_t fclass,
		  const struct fi_ops *ops, struct kofi_obj *parent,
		  struct kofi_provider *prov, void *context)
{
	int ret;

	fid->ops = kofi_ops_fill(prov, ops, &kofi_fid_nosys, sizeof(*ops));
	if (IS_ERR(fid->ops))
		return PTR_ERR(fid->ops);
	if (fid->ops->close == kofi_fid_no_close)
		return -EINVAL;
	if (parent && !kofi_obj_get(parent))
		return -EBUSY;

	/* The number is reserved here, so that publishing cannot fail. */
	ret = xa_alloc_cyclic(&kofi_objs, &obj->id, NULL, XA_LIMIT(1, INT_MAX),
			      &kofi_obj_last, GFP_KERNEL);
	if (ret < 0)
		goto put_parent;

	fid->fclass = fclass;
	fid->context = context;
	fid->obj = obj;
	obj->fid = fid;
	obj->parent = parent;
	obj->prov = prov;
	obj->ops = NULL;
	atomic_set(&obj->users, 0);
	atomic_set(&obj->lookers, 0);
	return 0;

put_parent:
	if (parent)
		kofi_obj_put(parent);
	return ret;
}

/**
 * kofi_obj_publish - show an object in dumps
 * @obj: an object that is completely open
 *
 * Context: process, may sleep.
 */
void kofi_obj_publish(struct kofi_obj *obj)
{
	mutex_lock(&kofi_obj_mutex);
	xa_store(&kofi_objs, obj->id, obj, GFP_KERNEL);
	mutex_unlock(&kofi_obj_mutex);
	trace_kofi_obj_open(obj);
}

/* Waits for dumps that look at it. The number stays its own. */
static void kofi_obj_unlist(struct kofi_obj *obj)
{
	mutex_lock(&kofi_obj_mutex);
	xa_cmpxchg(&kofi_objs, obj->id, obj, XA_ZERO_ENTRY, 0);
	mutex_unlock(&kofi_obj_mutex);
	wait_var_event(&obj->lookers, !atomic_read_acquire(&obj->lookers));
}

/**
 * kofi_obj_exit - undo kofi_obj_init()
 * @obj: the core's part of an object without users, never published or
 *	withdrawn by fi_close()
 *
 * Context: process, may sleep.
 */
void kofi_obj_exit(struct kofi_obj *obj)
{
	xa_erase(&kofi_objs, obj->id);
	if (obj->parent)
		kofi_obj_put(obj->parent);
}

/**
 * kofi_obj_inspect - walk over the published objects by number
 * @id: in: the lowest number that counts, out: the number of the object
 *
 * An object one looks at cannot go away, and neither can its parents. That
 * holds up the fi_close() of this object alone: a provider may be asked about
 * it even where its answer has to wait for memory.
 *
 * Context: process, may sleep.
 * Return: the object, given back with kofi_obj_seen(), or NULL at the end.
 */
struct kofi_obj *kofi_obj_inspect(u32 *id)
{
	struct kofi_obj *obj;
	unsigned long index = *id;

	mutex_lock(&kofi_obj_mutex);
	obj = xa_find(&kofi_objs, &index, INT_MAX, XA_PRESENT);
	if (obj)
		atomic_inc(&obj->lookers);
	mutex_unlock(&kofi_obj_mutex);
	*id = index;
	return obj;
}

/**
 * kofi_obj_seen - look no longer
 * @obj: from kofi_obj_inspect(); it may be closed and freed at once
 *
 * Context: process.
 */
void kofi_obj_seen(struct kofi_obj *obj)
{
	/* After the last one, only the address is used. */
	if (atomic_dec_and_test(&obj->lookers))
		wake_up_var(&obj->lookers);
}

/**
 * kofi_obj_get - become a user of an object
 * @obj: an object that cannot be freed meanwhile
 *
 * Its users keep an object from being closed.
 *
 * Context: any.
 * Return: false if the object is being closed.
 */
bool kofi_obj_get(struct kofi_obj *obj)
{
	return atomic_inc_unless_negative(&obj->users);
}
EXPORT_SYMBOL_GPL(kofi_obj_get);

/**
 * kofi_obj_put - be a user no longer
 * @obj: an object that may be closed and freed at once
 *
 * Context: any.
 */
void kofi_obj_put(struct kofi_obj *obj)
{
	/* What the user did to the object comes before its end. */
	atomic_fetch_dec_release(&obj->users);
}
EXPORT_SYMBOL_GPL(kofi_obj_put);

/**
 * fi_close - close an object
 * @fid: any object, or the connection request of an fi_info
 *
 * See fi_fabric(3), fi_domain(3), fi_endpoint(3) and so on. Children first:
 * objects opened in an object, and what it is bound to, keep it. An endpoint's
 * connection ends as with fi_shutdown(), operations outstanding complete with
 * FI_ECANCELED before the call returns, and no callback runs for it any more.
 *
 * Context: process, may sleep, but not in a callback of the object. Does not
 * wait for the network.
 * Return: 0; -EBUSY while the object is in use; -EINVAL if @fid is NULL or
 * cannot be closed.
 */
int fi_close(struct fi_fid *fid)
{
	struct kofi_obj *obj;
	struct module *owner;
	size_t fclass;
	int ret;

	might_sleep();
	if (!fid || !fid->ops || !fid->ops->close)
		return -EINVAL;
	obj = fid->obj;
	if (!obj)
		return fid->ops->close(fid);

	if (atomic_cmpxchg(&obj->users, 0, KOFI_OBJ_CLOSING) != 0)
		return -EBUSY;

	/*
	 * Once close has let go of the parent, others may close all the way up
	 * to the fabric: hold the code until it has returned.
	 */
	owner = obj->prov ? obj->prov->owner : NULL;
	__module_get(owner);
	fclass = fid->fclass;

	if (fclass == FI_CLASS_EP || fclass == FI_CLASS_SRX_CTX)
		kofi_ep_drain(container_of(fid, struct fid_ep, fid));
	kofi_obj_unlist(obj);
	trace_kofi_obj_close(obj);
	ret = fid->ops->close(fid);
	if (!WARN_ONCE(ret, "kofi: close of class %zu failed: %d\n", fclass,
		       ret) && fclass == FI_CLASS_FABRIC)
		module_put(owner);
	module_put(owner);
	return ret;
}
EXPORT_SYMBOL_GPL(fi_close);

/**
 * fi_control - do one of the rarer things to an object
 * @fid: any object
 * @command: FI_ENABLE, FI_GETOPSFLAG, ...
 * @arg: what the command asks for, see its definition
 *
 * See fi_control in fi_fabric(3).
 *
 * Context: process, may sleep for FI_ENABLE and what a provider adds.
 * Return: 0 or what the command gives; -EINVAL if @fid or a needed @arg is
 * NULL; -ENOSYS if the object does not know @command.
 */
int fi_control(struct fi_fid *fid, int command, void *arg)
{
	if (!fid || !fid->ops)
		return -EINVAL;
	if (fid->fclass == FI_CLASS_EP || fid->fclass == FI_CLASS_SRX_CTX)
		return kofi_ep_control(container_of(fid, struct kofi_ep, ep.fid),
				       command, arg);
	if (!fid->ops->control)
		return -ENOSYS;
	return fid->ops->control(fid, command, arg);
}
EXPORT_SYMBOL_GPL(fi_control);

/**
 * fi_open_ops - get a provider's own operations on an object
 * @fid: any object
 * @name: name of the set of operations
 * @flags: as the provider says
 * @ops: where the pointer to the set goes; valid while @fid is open
 * @context: as the provider says
 *
 * See fi_fabric(3).
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for NULL arguments; -ENOSYS if the object has none of
 * that name, or what the provider says.
 */
int fi_open_ops(struct fi_fid *fid, const char *name, u64 flags, void **ops,
		void *context)
{
	might_sleep();
	if (!fid || !fid->ops || !name || !ops)
		return -EINVAL;
	if (!fid->ops->ops_open)
		return -ENOSYS;
	return fid->ops->ops_open(fid, name, flags, ops, context);
}
EXPORT_SYMBOL_GPL(fi_open_ops);

/**
 * fi_set_ops - replace operations inside a provider
 * @fid: any object
 * @name: name of the set of operations
 * @flags: as the provider says
 * @ops: the set; stays in place while @fid is open
 * @context: as the provider says
 *
 * See fi_fabric(3).
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for NULL arguments; -ENOSYS if the object has none of
 * that name, or what the provider says.
 */
int fi_set_ops(struct fi_fid *fid, const char *name, u64 flags, void *ops,
	       void *context)
{
	might_sleep();
	if (!fid || !fid->ops || !name || !ops)
		return -EINVAL;
	if (!fid->ops->ops_set)
		return -ENOSYS;
	return fid->ops->ops_set(fid, name, flags, ops, context);
}
EXPORT_SYMBOL_GPL(fi_set_ops);

/* ----------------------------------------------------------------- fabrics */

static int kofi_fabric_no_domain(struct fid_fabric *fabric,
				 struct fi_info *info, struct fid_domain **dom,
				 void *context)
{
	return -ENOSYS;
}

static int kofi_fabric_no_passive_ep(struct fid_fabric *fabric,
				     struct fi_info *info, struct fid_pep **pep,
				     void *context)
{
	return -ENOSYS;
}

static const struct fi_ops_fabric kofi_fabric_nosys = {
	.size		= sizeof(struct fi_ops_fabric),
	.domain		= kofi_fabric_no_domain,
	.passive_ep	= kofi_fabric_no_passive_ep,
};

/**
 * kofi_fabric_init - set up the base of a provider's fabric
 * @fabric: the base
 * @prov: the provider
 * @attr: what kofi_provider.fabric was called with
 * @fid_ops: generic operations, with close
 * @ops: operations of the fabric
 * @context: the consumer's
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
	fid->ops = kofi_ops_fill(prov, ops, &kofi_fabric_nosys, sizeof(*ops));
	if (IS_ERR(fid->ops))
		return PTR_ERR(fid->ops);
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

/**
 * fi_fabric - open a fabric
 * @attr: which one, as fi_getinfo() has described it: name and prov_name must
 *	be set. Without net it is the namespace of the calling task.
 * @fabric: where the fabric goes
 * @context: returned with events of the fabric
 *
 * See fi_fabric(3). The fabric keeps its network namespace and its provider's
 * module.
 *
 * Context: process, may sleep; may load the provider's module.
 * Return: 0; -EINVAL for NULL or incomplete arguments; -ENOSYS if
 * attr->api_version is newer than this API; -ENODEV if there is no such
 * provider; -ENOMEM, or what the provider says.
 */
int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
	      void *context)
{
	struct fi_fabric_attr full;
	struct kofi_provider *prov;
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
	ret = prov->fabric(&full, fabric, context);
	if (ret)
		goto put_prov;
	kofi_obj_publish((*fabric)->fid.obj);
	return 0;	/* the reference is the fabric's now */

put_prov:
	kofi_provider_put(prov);
	return ret;
}
EXPORT_SYMBOL_GPL(fi_fabric);

/**
 * fi_fabric2 - open a fabric as described by an fi_info
 * @info: as fi_getinfo() has returned it
 * @fabric: where the fabric goes
 * @flags: none
 * @context: returned with events of the fabric
 *
 * See fi_fabric(3).
 *
 * Context: process, may sleep; may load the provider's module.
 * Return: 0; -FI_EBADFLAGS; or what fi_fabric() returns.
 */
int fi_fabric2(struct fi_info *info, struct fid_fabric **fabric, u64 flags,
	       void *context)
{
	if (!info)
		return -EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	return fi_fabric(info->fabric_attr, fabric, context);
}
EXPORT_SYMBOL_GPL(fi_fabric2);

/* ----------------------------------------------------------------- domains */

static int kofi_domain_no_endpoint(struct fid_domain *domain,
				   struct fi_info *info, struct fid_ep **ep,
				   void *context)
{
	return -ENOSYS;
}

static int kofi_domain_no_cq_open(struct fid_domain *domain,
				  struct fi_cq_attr *attr,
				  const struct kofi_cq_attr *kattr,
				  struct fid_cq **cq, void *context)
{
	return -ENOSYS;
}

static int kofi_domain_no_mr_regattr(struct fid_domain *domain,
				     const struct fi_mr_attr *attr, u64 flags,
				     struct fid_mr **mr)
{
	return -ENOSYS;
}

static int kofi_domain_no_srx_context(struct fid_domain *domain,
				      struct fi_rx_attr *attr,
				      struct fid_ep **srx, void *context)
{
	return -ENOSYS;
}

static int kofi_domain_no_query_atomic(struct fid_domain *domain,
				       enum fi_datatype datatype, enum fi_op op,
				       struct fi_atomic_attr *attr, u64 flags)
{
	return -ENOSYS;
}

static const struct fi_ops_domain kofi_domain_nosys = {
	.size		= sizeof(struct fi_ops_domain),
	.endpoint	= kofi_domain_no_endpoint,
	.cq_open	= kofi_domain_no_cq_open,
	.mr_regattr	= kofi_domain_no_mr_regattr,
	.srx_context	= kofi_domain_no_srx_context,
	.query_atomic	= kofi_domain_no_query_atomic,
};

/**
 * kofi_domain_init - set up the base of a provider's domain
 * @domain: the base
 * @fabric: its parent
 * @info: what fi_domain() was called with
 * @fid_ops: generic operations, with close
 * @ops: operations of the domain
 * @context: the consumer's
 *
 * The provider then sets dev and node if it has a device, and mr_ops if that
 * device moves the data.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL if @fid_ops has no close; -EBUSY if @fabric is being
 * closed; -ENOMEM.
 */
int kofi_domain_init(struct kofi_domain *domain, struct fid_fabric *fabric,
		     const struct fi_info *info, const struct fi_ops *fid_ops,
		     const struct fi_ops_domain *ops, void *context)
{
	struct fid_domain *fid = &domain->domain;
	int ret;

	domain->fabric = container_of(fabric, struct kofi_fabric, fabric);
	domain->eq = NULL;
	domain->dev = NULL;
	domain->node = NUMA_NO_NODE;
	domain->name = NULL;
	domain->mr_ops = &kofi_mr_soft;

	fid->ops = kofi_ops_fill(domain->fabric->obj.prov, ops,
				 &kofi_domain_nosys, sizeof(*ops));
	if (IS_ERR(fid->ops))
		return PTR_ERR(fid->ops);
	if (info->domain_attr->name) {
		domain->name = kstrdup(info->domain_attr->name, GFP_KERNEL);
		if (!domain->name)
			return -ENOMEM;
	}
	ret = kofi_obj_init(&domain->obj, &fid->fid, FI_CLASS_DOMAIN, fid_ops,
			    &domain->fabric->obj, domain->fabric->obj.prov,
			    context);
	if (ret)
		goto free_name;
	kofi_mr_table_init(&domain->mrs, info->domain_attr->mr_mode);
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
 * kofi_domain_notify() must not be called any more.
 *
 * Context: process, may sleep.
 */
void kofi_domain_exit(struct kofi_domain *domain)
{
	if (domain->eq) {
		kofi_eq_purge(domain->eq, &domain->domain.fid);
		kofi_obj_put(&domain->eq->obj);
	}
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
 * Return: 0; -EINVAL for NULL arguments, an @info of another provider or
 * network namespace, or one with inconsistent addresses; -ENOSYS, -ENOMEM, or
 * what the provider says.
 */
int fi_domain(struct fid_fabric *fabric, struct fi_info *info,
	      struct fid_domain **domain, void *context)
{
	int ret;

	might_sleep();
	if (!fabric || fabric->fid.fclass != FI_CLASS_FABRIC || !info ||
	    !info->domain_attr || !domain ||
	    !kofi_info_usable(info, container_of(fabric, struct kofi_fabric,
						 fabric)))
		return -EINVAL;
	ret = fabric->ops->domain(fabric, info, domain, context);
	if (ret)
		return ret;
	kofi_obj_publish((*domain)->fid.obj);
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
 * Return: 0; -FI_EBADFLAGS; or what fi_domain() returns.
 */
int fi_domain2(struct fid_fabric *fabric, struct fi_info *info,
	       struct fid_domain **domain, u64 flags, void *context)
{
	if (flags)
		return -FI_EBADFLAGS;
	return fi_domain(fabric, info, domain, context);
}
EXPORT_SYMBOL_GPL(fi_domain2);

/* Bind an event queue where there is room for one; it gets a user more. */
static int kofi_eq_bind(struct kofi_eq **slot, struct kofi_fabric *fabric,
			struct fi_fid *bfid, u64 flags)
{
	struct kofi_eq *eq;

	if (!bfid || bfid->fclass != FI_CLASS_EQ)
		return -EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	eq = container_of(bfid, struct kofi_eq, eq.fid);
	if (eq->fabric != fabric)
		return -FI_EDOMAIN;
	if (!kofi_obj_get(&eq->obj))
		return -EBUSY;
	if (cmpxchg(slot, NULL, eq)) {
		kofi_obj_put(&eq->obj);
		return -EINVAL;
	}
	return 0;
}

/**
 * fi_domain_bind - bind an event queue to a domain
 * @domain: a domain
 * @eq: an event queue of the same fabric; it gets the domain's FI_NOTIFY
 *	events
 * @flags: none
 *
 * See fi_domain(3). The binding ends when the domain is closed.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for NULL arguments, something that is not an event queue,
 * or a domain that has one; -FI_EBADFLAGS; -FI_EDOMAIN for a queue of another
 * fabric; -EBUSY if the queue is being closed.
 */
int fi_domain_bind(struct fid_domain *domain, struct fi_fid *eq, u64 flags)
{
	struct kofi_domain *dom;

	might_sleep();
	if (!domain || domain->fid.fclass != FI_CLASS_DOMAIN)
		return -EINVAL;
	dom = container_of(domain, struct kofi_domain, domain);
	return kofi_eq_bind(&dom->eq, dom->fabric, eq, flags);
}
EXPORT_SYMBOL_GPL(fi_domain_bind);

static void kofi_domain_event_release(struct kofi_event *ev)
{
	kfree(ev);
}

/**
 * kofi_domain_notify - tell the consumer that something befell the domain
 * @domain: the base of the domain
 * @data: what, in fi_eq_entry.data
 *
 * Queues FI_NOTIFY on the event queue bound to the domain, if there is one. A
 * full queue reports an overrun instead.
 *
 * Context: process, may sleep; waits for memory, but not for I/O.
 */
void kofi_domain_notify(struct kofi_domain *domain, u64 data)
{
	struct kofi_eq *eq = READ_ONCE(domain->eq);
	struct kofi_event *ev;

	might_sleep();
	if (!eq || !kofi_eq_room(eq))
		return;
	/* The only word the consumer gets of, say, the loss of the device. */
	ev = kzalloc(sizeof(*ev), GFP_NOIO | __GFP_NOFAIL);
	ev->fid = &domain->domain.fid;
	ev->context = domain->domain.fid.context;
	ev->event = FI_NOTIFY;
	ev->data_val = data;
	ev->release = kofi_domain_event_release;
	kofi_eq_queue(eq, ev);
}
EXPORT_SYMBOL_GPL(kofi_domain_notify);

/**
 * kofi_domain_device - device that moves the data of a domain
 * @domain: an open domain
 *
 * Context: any. The device stays while the domain is open.
 * Return: the device to map memory for, NULL if the CPU moves the data.
 */
struct device *kofi_domain_device(struct fid_domain *domain)
{
	return container_of(domain, struct kofi_domain, domain)->dev;
}
EXPORT_SYMBOL_GPL(kofi_domain_device);

/**
 * kofi_domain_node - NUMA node of a domain
 * @domain: an open domain
 *
 * Context: any.
 * Return: the node memory is best taken from, or NUMA_NO_NODE.
 */
int kofi_domain_node(struct fid_domain *domain)
{
	return container_of(domain, struct kofi_domain, domain)->node;
}
EXPORT_SYMBOL_GPL(kofi_domain_node);

/**
 * kofi_domain_vector_cpus - CPUs that are near a completion vector
 * @domain: an open domain
 * @vector: as fi_cq_attr.signaling_vector, from 0
 *
 * Context: any.
 * Return: a constant set, for a domain whose vectors are not tied to CPUs that
 * of its NUMA node; NULL if @vector is negative.
 */
const struct cpumask *kofi_domain_vector_cpus(struct fid_domain *domain,
					      int vector)
{
	int node = kofi_domain_node(domain);

	if (vector < 0)
		return NULL;
	return node == NUMA_NO_NODE ? cpu_possible_mask : cpumask_of_node(node);
}
EXPORT_SYMBOL_GPL(kofi_domain_vector_cpus);

/* ------------------------------------------------------- passive endpoints */

/**
 * kofi_pep_init - set up the base of a passive endpoint
 * @pep: the base
 * @fabric: its parent
 * @info: what fi_passive_ep() was called with; a copy is kept
 * @fid_ops: generic operations, with close
 * @ops: options, or NULL
 * @cm: connection management
 * @context: the consumer's
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL if @fid_ops has no close; -EBUSY if @fabric is being
 * closed; -ENOMEM.
 */
int kofi_pep_init(struct kofi_pep *pep, struct fid_fabric *fabric,
		  const struct fi_info *info, const struct fi_ops *fid_ops,
		  const struct fi_ops_ep *ops, const struct fi_ops_cm *cm,
		  void *context)
{
	struct fid_pep *fid = &pep->pep;
	struct kofi_provider *prov;
	int ret;

	pep->fabric = container_of(fabric, struct kofi_fabric, fabric);
	pep->eq = NULL;
	prov = pep->fabric->obj.prov;

	fid->ops = kofi_ops_fill(prov, ops, &kofi_ep_nosys, sizeof(*ops));
	if (IS_ERR(fid->ops))
		return PTR_ERR(fid->ops);
	fid->cm = kofi_ops_fill(prov, cm, &kofi_cm_nosys, sizeof(*cm));
	if (IS_ERR(fid->cm))
		return PTR_ERR(fid->cm);
	pep->info = fi_dupinfo(info);
	if (!pep->info)
		return -ENOMEM;
	ret = kofi_obj_init(&pep->obj, &fid->fid, FI_CLASS_PEP, fid_ops,
			    &pep->fabric->obj, prov, context);
	if (ret)
		goto free_info;
	return 0;

free_info:
	fi_freeinfo(pep->info);
	return ret;
}
EXPORT_SYMBOL_GPL(kofi_pep_init);

/**
 * kofi_pep_exit - undo kofi_pep_init()
 * @pep: the base; no more connection requests come for it
 *
 * Requests nobody has read are withdrawn from the event queue.
 *
 * Context: process, may sleep.
 */
void kofi_pep_exit(struct kofi_pep *pep)
{
	if (pep->eq) {
		kofi_eq_purge(pep->eq, &pep->pep.fid);
		kofi_obj_put(&pep->eq->obj);
	}
	kofi_obj_exit(&pep->obj);
	fi_freeinfo(pep->info);
}
EXPORT_SYMBOL_GPL(kofi_pep_exit);

/**
 * fi_passive_ep - open an endpoint that waits for connection requests
 * @fabric: an open fabric
 * @info: as fi_getinfo() has returned it for this fabric; src_addr is where it
 *	listens. Only read
 * @pep: where the endpoint goes
 * @context: returned with its events
 *
 * See fi_endpoint(3).
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for NULL arguments, an endpoint type without connections,
 * an @info of another provider or network namespace, or one with inconsistent
 * addresses; -ENOSYS, -ENOMEM, or what the provider says.
 */
int fi_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
		  struct fid_pep **pep, void *context)
{
	int ret;

	might_sleep();
	if (!fabric || fabric->fid.fclass != FI_CLASS_FABRIC || !info || !pep ||
	    !info->ep_attr || info->ep_attr->type != FI_EP_MSG ||
	    !kofi_info_usable(info, container_of(fabric, struct kofi_fabric,
						 fabric)))
		return -EINVAL;
	ret = fabric->ops->passive_ep(fabric, info, pep, context);
	if (ret)
		return ret;
	kofi_obj_publish((*pep)->fid.obj);
	return 0;
}
EXPORT_SYMBOL_GPL(fi_passive_ep);

/**
 * fi_pep_bind - bind an event queue to a passive endpoint
 * @pep: the endpoint
 * @bfid: an event queue of the same fabric; it gets the FI_CONNREQ events
 * @flags: none
 *
 * See fi_endpoint(3). The binding ends when the endpoint is closed.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for NULL arguments, something that is not an event queue,
 * or an endpoint that has one; -FI_EBADFLAGS; -FI_EDOMAIN for a queue of
 * another fabric; -EBUSY if the queue is being closed.
 */
int fi_pep_bind(struct fid_pep *pep, struct fi_fid *bfid, u64 flags)
{
	struct kofi_pep *p;

	might_sleep();
	if (!pep || pep->fid.fclass != FI_CLASS_PEP)
		return -EINVAL;
	p = container_of(pep, struct kofi_pep, pep);
	return kofi_eq_bind(&p->eq, p->fabric, bfid, flags);
}
EXPORT_SYMBOL_GPL(fi_pep_bind);

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Objects: what is common to all of them.
 *
 * Ownership
 *
 * An object belongs to the consumer that opened it and ends with fi_close().
 * It keeps its parent from being closed by being one of the parent's users, as
 * does what is bound to something. fi_close() moves the number of users from 0
 * to KOFI_OBJ_CLOSING in one step; after that no more users are admitted.
 *
 * Normal operation
 *
 * The provider's open function calls the init function of the base it embeds;
 * once it has returned, the core publishes the object, so that it shows up in
 * dumps. fi_close() drains an endpoint, takes the object out of dumps and has
 * the provider call the exit function and free it.
 *
 * Errors
 *
 * An open that fails undoes its own steps. The object has not been published
 * then.
 *
 * Modules
 *
 * A fabric holds a reference to its provider's module. All other objects live
 * inside a fabric, so they need none while they are open.
 */
#include <linux/mutex.h>
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

	if (!ops || !ops->close)
		return -EINVAL;
	if (parent && !kofi_obj_get(parent))
		return -EBUSY;

	/* The number is reserved here, so that publishing cannot fail. */
	ret = xa_alloc_cyclic(&kofi_objs, &obj->id, NULL, XA_LIMIT(1, INT_MAX),
			      &kofi_obj_last, GFP_KERNEL);
	if (ret < 0)
		goto put_parent;

	fid->ops = ops;
	fid->fclass = fclass;
	fid->context = context;
	fid->obj = obj;
	obj->fid = fid;
	obj->parent = parent;
	obj->prov = prov;
	obj->ops = NULL;
	atomic_set(&obj->users, 0);
	atomic_set(&obj->lookers, 0);
	atomic_set(&obj->events, 0);
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

/**
 * kofi_obj_count - count the open objects of a provider
 * @prov: the provider
 *
 * Context: process, may sleep.
 * Return: number of published objects.
 */
unsigned int kofi_obj_count(const struct kofi_provider *prov)
{
	struct kofi_obj *obj;
	unsigned int nr = 0;
	unsigned long id;

	mutex_lock(&kofi_obj_mutex);
	xa_for_each(&kofi_objs, id, obj)
		nr += obj->prov == prov;
	mutex_unlock(&kofi_obj_mutex);
	return nr;
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
 *	unlisted by fi_close()
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
 * kofi_obj_find - look at the object that a pointer may be to
 * @fid: the pointer. It is compared, and not followed unless an open object is
 *	there
 * @fclass: class the object must have
 *
 * As with kofi_obj_inspect(), the object cannot go away.
 *
 * Context: process, may sleep.
 * Return: the object, given back with kofi_obj_seen(), or NULL if there is no
 * such object.
 */
struct kofi_obj *kofi_obj_find(const struct fi_fid *fid, size_t fclass)
{
	struct kofi_obj *obj;
	unsigned long index;

	mutex_lock(&kofi_obj_mutex);
	xa_for_each(&kofi_objs, index, obj)
		if (obj->fid == fid && fid->fclass == fclass)
			break;
	if (obj)
		atomic_inc(&obj->lookers);
	mutex_unlock(&kofi_obj_mutex);
	return obj;
}

/**
 * kofi_obj_seen - look no longer
 * @obj: from one of the calls above; it may be closed and freed at once
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
 * kofi_obj_end - let an object have no users any more
 * @obj: an object that is to be closed
 *
 * Context: any.
 * Return: 0, or -EBUSY if it has users.
 */
int kofi_obj_end(struct kofi_obj *obj)
{
	return atomic_cmpxchg(&obj->users, 0, KOFI_OBJ_CLOSING) ? -EBUSY : 0;
}

/**
 * fi_close - close an object
 * @fid: any object. The connection request of an fi_info is none: it ends with
 *	fi_endpoint() or fi_reject().
 *
 * See fi_fabric(3), fi_domain(3), fi_endpoint(3) and so on. Children first:
 * objects opened in an object, and what it is bound to, keep it. An endpoint's
 * connection ends as with fi_shutdown(), operations outstanding complete with
 * FI_ECANCELED before the call returns, and no callback runs for it any more. The
 * transmit and the receive context of one index are one endpoint: the first of
 * the two calls ends it in both directions, and the second one frees it.
 *
 * Context: process, may sleep. Does not wait for the network.
 * Return: 0; -EBUSY while the object is in use; -EDEADLK in a callback of the
 * queue, or of a queue of the endpoint, that is to be closed, and nothing has
 * happened; -EINVAL if @fid is NULL or cannot be closed.
 */
int fi_close(struct fi_fid *fid)
{
	struct kofi_obj *obj;
	struct module *owner;
	size_t fclass;
	int ret;

	might_sleep();
	if (kofi_fid_class(fid) == FI_CLASS_UNSPEC || !fid->obj)
		return -EINVAL;
	obj = fid->obj;
	if (obj->ops && obj->ops->waits_for_caller &&
	    obj->ops->waits_for_caller(obj))
		return -EDEADLK;
	ret = obj->ops && obj->ops->end ? obj->ops->end(obj) :
					  kofi_obj_end(obj);
	if (ret)
		return min(ret, 0);

	/*
	 * Once close has let go of the parent, others may close all the way up
	 * to the fabric: hold the code until it has returned.
	 */
	owner = obj->prov ? obj->prov->owner : NULL;
	__module_get(owner);
	fclass = fid->fclass;

	if (obj->ops && obj->ops->drain)
		obj->ops->drain(obj);
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
	const struct kofi_obj_ops *ops;

	if (kofi_fid_class(fid) == FI_CLASS_UNSPEC || !fid->ops)
		return -EINVAL;
	ops = fid->obj ? fid->obj->ops : NULL;
	if (ops && ops->control)
		return ops->control(fid->obj, command, arg);
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
	if (kofi_fid_class(fid) == FI_CLASS_UNSPEC || !fid->ops || !name ||
	    !ops)
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
	if (kofi_fid_class(fid) == FI_CLASS_UNSPEC || !fid->ops || !name ||
	    !ops)
		return -EINVAL;
	if (!fid->ops->ops_set)
		return -ENOSYS;
	return fid->ops->ops_set(fid, name, flags, ops, context);
}
EXPORT_SYMBOL_GPL(fi_set_ops);

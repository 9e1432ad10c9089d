// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Objects: their common part.
 *
 * Ownership
 *
 * An object belongs to the consumer that opened it, until fi_close().
 * A child is a user of its parent, and a binding a user of the bound object; an object
 * with users cannot be closed. fi_close() changes the number of users from 0
 * to KOFI_OBJ_CLOSING in one step, and from then on no users are admitted.
 *
 * Normal operation
 *
 * The provider's open function calls the init function of the base it embeds;
 * after its return the core publishes the object, which makes it visible in
 * dumps. fi_close() drains an endpoint, removes the object from dumps and calls
 * the provider, which calls the exit function and frees the object.
 *
 * Errors
 *
 * An open that fails undoes its own steps. The object has not been published
 * then.
 *
 * Modules
 *
 * A fabric holds a reference to its provider's module. All other objects live
 * inside a fabric, so they need no reference while they are open.
 */
#include <linux/mutex.h>
#include <linux/wait_bit.h>
#include <linux/xarray.h>

#include <linux/kofi/debug.h>

#include "internal.h"
#include "names.h"
#include "kofi_trace.h"

#define KOFI_OBJ_CLOSING	(-1)

/*
 * Closing takes this mutex, so no holder allocates memory or waits for an object.
 */
static DEFINE_MUTEX(kofi_obj_mutex);

static DEFINE_XARRAY_ALLOC1(kofi_objs);	/* entries change under the mutex */
static u32 kofi_obj_last;

/**
 * kofi_obj_init - set up the common part of an object
 * @obj: the core's part
 * @fid: the consumers' part
 * @fclass: FI_CLASS_*
 * @ops: generic operations, a static table, with close
 * @parent: gets one more user; NULL for a fabric
 * @prov: provider, or NULL
 * @context: context of the consumer
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
	kofi_dbg(obj, "opened, %s\n", kofi_name_of(kofi_names_class, obj->fid->fclass));
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

/* Waits for dumps that read the object, which keeps its number. */
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
 * @id: in: the lowest number to return, out: the number of the object
 *
 * The returned object is not freed, and neither are its parents. Only the
 * fi_close() of this object waits: a provider may be asked about
 * the object even where its answer waits for memory.
 *
 * Context: process, may sleep.
 * Return: the object, to be released by kofi_obj_seen(), or NULL after the last.
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
 * kofi_obj_find - find the object that a pointer may point to
 * @fid: the pointer. It is compared, and dereferenced only if an open object is
 *	there
 * @fclass: class of the object
 *
 * As with kofi_obj_inspect(), the object is not freed.
 *
 * Context: process, may sleep.
 * Return: the object, to be released by kofi_obj_seen(), or NULL if there is no
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
 * kofi_obj_seen - release an object of kofi_obj_inspect() or kofi_obj_find()
 * @obj: the object, which may be closed and freed at once
 *
 * Context: process.
 */
void kofi_obj_seen(struct kofi_obj *obj)
{
	/* After the last decrement only the address is used. */
	if (atomic_dec_and_test(&obj->lookers))
		wake_up_var(&obj->lookers);
}

/**
 * kofi_obj_fabric - fabric of an object
 * @obj: an open object: a parent outlives its children, and the root of all is a fabric
 *
 * Context: any.
 * Return: the fabric.
 */
const struct kofi_fabric *kofi_obj_fabric(const struct kofi_obj *obj)
{
	while (obj->parent)
		obj = obj->parent;
	return container_of_const(obj, struct kofi_fabric, obj);
}

/**
 * kofi_obj_name - name of an object
 * @obj: an open object
 *
 * Context: any.
 * Return: the name, or NULL if its class has none.
 */
const char *kofi_obj_name(const struct kofi_obj *obj)
{
	switch (obj->fid->fclass) {
	case FI_CLASS_FABRIC:
		return container_of(obj, struct kofi_fabric, obj)->name;
	case FI_CLASS_DOMAIN:
		return container_of(obj, struct kofi_domain, obj)->name;
	default:
		return NULL;
	}
}

/**
 * kofi_obj_get - become a user of an object
 * @obj: an object that is not freed during the call
 *
 * An object with users cannot be closed.
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
 * kofi_obj_put - cease to be a user of an object
 * @obj: the object, which may be closed and freed at once
 *
 * Context: any.
 */
void kofi_obj_put(struct kofi_obj *obj)
{
	/* The user's changes to the object precede its closing. */
	atomic_fetch_dec_release(&obj->users);
}
EXPORT_SYMBOL_GPL(kofi_obj_put);

/**
 * kofi_obj_end - refuse further users of an object
 * @obj: an object that is being closed
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
 * @fid: any object except the connection request of an fi_info, which
 *	fi_endpoint() or fi_reject() consumes
 *
 * See fi_fabric(3), fi_domain(3), fi_endpoint(3) and so on. Close children first:
 * an object cannot be closed while it has children or is bound to another object. An
 * endpoint is disconnected as by fi_shutdown(), its outstanding operations complete with
 * FI_ECANCELED before the call returns, and no callback runs for it afterwards. The
 * transmit and the receive context of one index are one endpoint: the first of
 * the two calls drains it in both directions, and the second one frees it.
 *
 * Context: process, may sleep. Does not wait for the network.
 * Return: 0; -EBUSY while the object is in use; -EDEADLK, without effect, if a callback of
 * a queue closes the queue or an endpoint that uses it; -EINVAL if @fid is NULL or cannot
 * be closed.
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
		return kofi_refused(obj, "fi_close", min(ret, 0));

	/*
	 * After close has released the parent, others may close all parents up
	 * to the fabric: keep the module loaded until close has returned.
	 */
	owner = obj->prov ? obj->prov->owner : NULL;
	__module_get(owner);
	fclass = fid->fclass;

	if (obj->ops && obj->ops->drain)
		obj->ops->drain(obj);
	kofi_obj_unlist(obj);
	trace_kofi_obj_close(obj);
	kofi_dbg(obj, "closed\n");
	ret = fid->ops->close(fid);
	if (!WARN_ONCE(ret, "kofi: close of class %zu failed: %d\n", fclass,
		       ret) && fclass == FI_CLASS_FABRIC)
		module_put(owner);
	module_put(owner);
	return ret;
}
EXPORT_SYMBOL_GPL(fi_close);

/**
 * fi_control - execute a command on an object
 * @fid: any object
 * @command: FI_ENABLE, FI_GETOPSFLAG, ...
 * @arg: argument of the command, see its definition
 *
 * See fi_control in fi_fabric(3).
 *
 * Context: process, may sleep for FI_ENABLE and for commands of a provider.
 * Return: 0 or the result of the command; -EINVAL if @fid or a required @arg is
 * NULL; -ENOSYS for an unknown @command.
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
 * fi_open_ops - get provider specific operations of an object
 * @fid: any object
 * @name: name of the set of operations
 * @flags: defined by the provider
 * @ops: receives the pointer to the set; valid while @fid is open
 * @context: defined by the provider
 *
 * See fi_fabric(3).
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for NULL arguments; -ENOSYS if the object has no set of
 * that name; the provider's error.
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
 * @flags: defined by the provider
 * @ops: the set; stays in place while @fid is open
 * @context: defined by the provider
 *
 * See fi_fabric(3).
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for NULL arguments; -ENOSYS if the object has no set of
 * that name; the provider's error.
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

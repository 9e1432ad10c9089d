// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Passive endpoints, which listen for connection requests (fi_endpoint(3)).
 *
 * The base keeps a copy of the fi_info that the endpoint was opened with, from which
 * the infos of requests are made, and the event queue of the requests.
 */
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <linux/kofi/debug.h>

#include "internal.h"

/**
 * kofi_pep_init - set up the base of a passive endpoint
 * @pep: the base
 * @fabric: parent
 * @info: info of fi_passive_ep(); copied
 * @fid_ops: generic operations, with close
 * @ops: options, or NULL
 * @cm: connection management
 * @obj_ops: statistics, or NULL
 * @context: context of the consumer
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL if @fid_ops has no close; -EBUSY if @fabric is being
 * closed; -ENOMEM.
 */
int kofi_pep_init(struct kofi_pep *pep, struct fid_fabric *fabric,
		  const struct fi_info *info, const struct fi_ops *fid_ops,
		  const struct fi_ops_ep *ops, const struct fi_ops_cm *cm,
		  const struct kofi_obj_ops *obj_ops, void *context)
{
	struct fid_pep *fid = &pep->pep;
	struct kofi_provider *prov;
	int ret;

	pep->fabric = container_of(fabric, struct kofi_fabric, fabric);
	pep->eq = NULL;
	pep->text = false;
	prov = pep->fabric->obj.prov;

	fid->ops = ops ?: &kofi_ep_nosys;
	fid->cm = cm ?: &kofi_cm_nosys;
	pep->info = fi_dupinfo(info);
	if (!pep->info)
		return -ENOMEM;
	ret = kofi_obj_init(&pep->obj, &fid->fid, FI_CLASS_PEP, fid_ops,
			    &pep->fabric->obj, prov, context);
	if (ret)
		goto free_info;
	pep->obj.ops = obj_ops;
	mutex_init(&pep->lock);
	return 0;

free_info:
	fi_freeinfo(pep->info);
	return ret;
}
EXPORT_SYMBOL_GPL(kofi_pep_init);

/* Event with a copy of the private data: the event may outlive the request. */
struct kofi_pep_event {
	struct kofi_event	ev;
	u8			data[];
};

static void kofi_pep_event_release(struct kofi_event *ev)
{
	kfree(container_of(ev, struct kofi_pep_event, ev));
}

/**
 * kofi_pep_request - prepare the event of a connection request
 * @pep: the passive endpoint
 * @info: info for the endpoint that accepts the request, with the addresses of both
 *	sides; or NULL. Belongs to the event, and is freed on failure. Its handle may be set
 *	until the event is queued
 * @data: private data of the request, copied; may be NULL if @len is 0
 * @len: bytes at @data, at most %KOFI_CM_DATA_MAX
 *
 * The provider queues the event by kofi_eq_queue() if the queue of @pep has room
 * (kofi_eq_room()), and otherwise frees it.
 *
 * Context: process, may sleep.
 * Return: the event, for kofi_eq_queue() or kofi_pep_request_free(); NULL without @info or
 * memory, or, after a warning, for too large a @len.
 */
struct kofi_event *kofi_pep_request(struct kofi_pep *pep,
				    struct fi_info *info, const void *data,
				    size_t len)
{
	struct kofi_pep_event *ev = NULL;

	if (info && !WARN_ON_ONCE(len > KOFI_CM_DATA_MAX))
		ev = kzalloc(struct_size(ev, data, len), GFP_KERNEL);
	if (!ev || (pep->text && kofi_info_print(info))) {
		fi_freeinfo(info);
		kfree(ev);
		return NULL;
	}
	ev->ev.fid = &pep->pep.fid;
	ev->ev.context = pep->pep.fid.context;
	ev->ev.event = FI_CONNREQ;
	ev->ev.info = info;
	ev->ev.data = ev->data;
	ev->ev.data_len = len;
	ev->ev.release = kofi_pep_event_release;
	if (len)
		memcpy(ev->data, data, len);
	return &ev->ev;
}
EXPORT_SYMBOL_GPL(kofi_pep_request);

/**
 * kofi_pep_request_free - free an event of kofi_pep_request() that was not queued
 * @ev: the event
 *
 * Context: process.
 */
void kofi_pep_request_free(struct kofi_event *ev)
{
	fi_freeinfo(ev->info);
	ev->release(ev);
}
EXPORT_SYMBOL_GPL(kofi_pep_request_free);

/**
 * kofi_pep_exit - undo kofi_pep_init()
 * @pep: the base, which receives no further connection requests
 *
 * Unread requests are removed from the event queue.
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
	mutex_destroy(&pep->lock);
	fi_freeinfo(pep->info);
}
EXPORT_SYMBOL_GPL(kofi_pep_exit);

/**
 * fi_passive_ep - open an endpoint that listens for connection requests
 * @fabric: an open fabric
 * @info: an info of fi_getinfo() for this fabric; src_addr is the address to
 *	listen on. Only read
 * @pep: receives the endpoint
 * @context: returned with its events
 *
 * See fi_endpoint(3).
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for NULL arguments, an endpoint type without connections,
 * an @info that lacks an attribute structure, is of another provider or network
 * namespace, or has inconsistent addresses; -ENOSYS, -ENOMEM, or the provider's error.
 */
int fi_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
		  struct fid_pep **pep, void *context)
{
	struct kofi_fabric *kfabric;
	struct fi_info *parsed;
	struct kofi_pep *kpep;
	int ret;

	might_sleep();
	if (kofi_fid_class(&fabric->fid) != FI_CLASS_FABRIC || !info || !pep)
		return -EINVAL;
	kfabric = container_of(fabric, struct kofi_fabric, fabric);
	if (!kofi_info_usable(info, kfabric) ||
	    info->ep_attr->type != FI_EP_MSG)
		return -EINVAL;
	if (!fabric->ops->passive_ep)
		return -ENOSYS;
	parsed = kofi_info_parsed(info, kfabric->net);
	if (IS_ERR(parsed))
		return PTR_ERR(parsed);
	ret = fabric->ops->passive_ep(fabric, parsed, pep, context);
	kofi_info_unparse(info, parsed);
	if (ret)
		return kofi_refused(&kfabric->obj, "fi_passive_ep", ret);
	kpep = container_of(*pep, struct kofi_pep, pep);
	kpep->text = info->addr_format == FI_ADDR_STR;
	kofi_obj_publish(&kpep->obj);
	return 0;
}
EXPORT_SYMBOL_GPL(fi_passive_ep);

/**
 * fi_pep_bind - bind an event queue to a passive endpoint
 * @pep: the endpoint
 * @bfid: an event queue of the same fabric; it gets the FI_CONNREQ events
 * @flags: must be 0
 *
 * See fi_endpoint(3). Closing the endpoint unbinds the queue.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for NULL arguments, another object, or a queue that
 * is being closed; -FI_EBADFLAGS; -FI_EDOMAIN for a queue of another
 * fabric; -EBUSY for an endpoint that has a queue.
 */
int fi_pep_bind(struct fid_pep *pep, struct fi_fid *bfid, u64 flags)
{
	struct kofi_pep *p;

	might_sleep();
	if (kofi_fid_class(&pep->fid) != FI_CLASS_PEP)
		return -EINVAL;
	p = container_of(pep, struct kofi_pep, pep);
	return kofi_eq_bind(&p->eq, p->fabric, bfid, flags);
}
EXPORT_SYMBOL_GPL(fi_pep_bind);

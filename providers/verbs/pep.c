// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Passive endpoints, and their connection requests.
 *
 * Life of a request
 *
 * The connection manager gives each request an identifier, which struct vrb_req
 * holds. An endpoint opened with the request takes over the identifier;
 * fi_reject() answers and destroys it. When a passive endpoint is closed, its
 * waiting requests are destroyed, which rejects them.
 *
 * Handles
 *
 * vrb_reqs lists all requests that the consumer can take. A handle is looked up
 * there and never dereferenced, because it may be stale. Removing a request
 * from the list, under vrb_req_lock, makes the caller its owner.
 *
 * Locks
 *
 * The manager calls its handlers with the identifier's handler mutex held, and
 * rdma_destroy_id() waits for a running handler. So handlers take only
 * vrb_req_lock, which is never held while an identifier is destroyed. A handler
 * never destroys its own identifier; its return value does so, only for
 * requests that were not delivered.
 *
 * Device removal
 *
 * vrb_pep_remove() destroys the device's listeners, and the requests that
 * arrived through it.
 *
 * Failover
 *
 * When a bond fails over, its address moves to another device. Devices report
 * changes of their address (GID) tables. If the bond's hardware address
 * changes, too, the manager reports that to the listener. Each report queues
 * vrb_pep_move(), which replaces the listener if another device has the
 * address. The manager may report before the tables change, while the old
 * device still has the address; the report of the table follows.
 */
#include <linux/slab.h>
#include <rdma/ib_cm.h>

#include "verbs.h"

#define VRB_BACKLOG	128	/* default, unless FI_BACKLOG sets another one */
#define VRB_MOVE_MS	50	/* between attempts to listen after a failover */
#define VRB_MOVE_TRIES	600	/* another program may have the port for a while */

/* ----------------------------------------------------- connection requests */

/**
 * struct vrb_pep - passive endpoint
 * @base: passive endpoint of the core
 * @local: address to listen on; after fi_listen(), the bound address; protected
 *	by @base.lock
 * @node: entry of vrb_peps; protected by vrb_mutex
 * @id: listener, or NULL; protected by @base.lock
 * @gone: the listener's device or address has been removed; protected by
 *	@base.lock
 * @move: moves the listener to the device that has the address
 * @tries: attempts to listen that @move has left; 0 if there is a listener or
 *	none is wanted; protected by @base.lock
 * @backlog: most requests that may wait for the consumer; protected by
 *	@base.lock, fixed once there is a listener
 * @delivered: requests that wait for the consumer; protected by vrb_req_lock
 * @closing: further requests are refused; protected by vrb_req_lock
 * @requests: number of delivered requests; protected by vrb_req_lock
 * @overflows: requests refused because of the backlog; protected by
 *	vrb_req_lock
 * @violations: requests refused because of their private data; protected by
 *	vrb_req_lock
 * @lost: requests refused because the event queue was full; protected by
 *	vrb_req_lock
 */
struct vrb_pep {
	struct kofi_pep		base;
	union kofi_ip		local;
	struct list_head	node;
	struct rdma_cm_id	*id;
	bool			gone;
	struct delayed_work	move;
	unsigned int		tries;
	int			backlog;
	unsigned int		delivered;
	bool			closing;
	unsigned long		requests;
	unsigned long		overflows;
	unsigned long		violations;
	unsigned long		lost;
};

/**
 * struct vrb_req - connection request on the passive side
 * @fid: handle for the consumer
 * @pep: passive endpoint of the request
 * @node: entry of vrb_reqs; empty after the request was taken; protected by
 *	vrb_req_lock
 * @id: identifier of the connection manager
 * @gone: the peer has given up; protected by the handler mutex of @id
 * @responder_resources: incoming reads that the peer wants at a time
 * @initiator_depth: outstanding reads that the peer allows
 */
struct vrb_req {
	struct fi_fid		fid;
	struct vrb_pep		*pep;
	struct list_head	node;
	struct rdma_cm_id	*id;
	bool			gone;
	u8			responder_resources;
	u8			initiator_depth;
};

static DEFINE_MUTEX(vrb_req_lock);	/* vrb_reqs, and ownership of requests */
static LIST_HEAD(vrb_reqs);
static LIST_HEAD(vrb_peps);		/* protected by vrb_mutex */

static struct vrb_pep *vrb_pep(struct fi_fid *fid)
{
	return container_of(fid, struct vrb_pep, base.pep.fid);
}

/* Remove a request from the list: the caller owns it. */
static void vrb_req_unlink(struct vrb_req *req)
{
	lockdep_assert_held(&vrb_req_lock);

	list_del_init(&req->node);
	req->pep->delivered--;
}

/* Destroying an identifier without an answer rejects the request. */
static void vrb_req_free(struct vrb_req *req)
{
	rdma_destroy_id(req->id);
	kfree(req);
}

/*
 * Handle the manager's events of a request. If the peer gives up, that is
 * detected when the request is taken. Only removal of the device must be
 * handled here.
 */
static int vrb_req_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct vrb_req *req = id->context;
	bool own;

	if (ev->event != RDMA_CM_EVENT_DEVICE_REMOVAL) {
		req->gone = true;
		return 0;
	}
	mutex_lock(&vrb_req_lock);
	own = !list_empty(&req->node);
	if (own)
		vrb_req_unlink(req);
	mutex_unlock(&vrb_req_lock);
	if (own)
		kfree(req);
	return own;
}

static int vrb_req_deliver(struct vrb_pep *pep, struct vrb_req *req,
			   struct kofi_event *ev)
{
	int err = 0;

	mutex_lock(&vrb_req_lock);
	if (pep->closing) {
		err = -ESHUTDOWN;
	} else if (pep->delivered >= pep->backlog) {
		pep->overflows++;
		err = -EBUSY;
	} else if (!kofi_eq_room(pep->base.eq)) {
		pep->lost++;
		err = -ENOBUFS;
	} else {
		pep->requests++;
		pep->delivered++;
		list_add_tail(&req->node, &vrb_reqs);
		kofi_eq_queue(pep->base.eq, ev);
	}
	mutex_unlock(&vrb_req_lock);
	vrb_cm_step(&pep->base.obj, "request", err);
	return err;
}

/* Handle a new request. Any return value other than 0 destroys its identifier. */
static int vrb_req_new(struct vrb_pep *pep, struct rdma_cm_id *id,
		       const struct rdma_conn_param *conn)
{
	struct kofi_event *ev;
	struct vrb_req *req;
	const void *data;
	size_t len;
	int err;

	if (!vrb_cm_unpack(conn->private_data, conn->private_data_len, &data,
			   &len) || len > KOFI_CM_DATA_MAX) {
		mutex_lock(&vrb_req_lock);
		pep->violations++;
		mutex_unlock(&vrb_req_lock);
		kofi_violation(&pep->base.obj, (struct sockaddr *)&id->route.addr.dst_addr,
			       "bad request");
		return -EPROTO;
	}
	req = kzalloc(sizeof(*req), GFP_KERNEL);
	if (!req)
		return -ENOMEM;
	req->fid.fclass = FI_CLASS_CONNREQ;
	req->pep = pep;
	req->id = id;
	req->responder_resources = conn->responder_resources;
	req->initiator_depth = conn->initiator_depth;

	ev = kofi_pep_request(&pep->base,
			      vrb_info_request(pep->base.info, id,
					       pep->base.fabric->name),
			      data, len);
	if (!ev) {
		kfree(req);
		return -ENOMEM;
	}
	ev->info->handle = &req->fid;

	/* both before the request can be taken; the handler of @id is running here */
	id->context = req;
	id->event_handler = vrb_req_cm_event;
	err = vrb_req_deliver(pep, req, ev);
	if (!err)
		return 0;
	kofi_pep_request_free(ev);
	kfree(req);
	return err;
}

/* Handle the manager's events of a listener. */
static int vrb_pep_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct vrb_pep *pep = id->context;

	switch (ev->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return vrb_req_new(pep, id, &ev->param.conn);
	case RDMA_CM_EVENT_ADDR_CHANGE:
		/* the identifier cannot be destroyed here */
		mod_delayed_work(vrb_linger_wq, &pep->move, 0);
		return 0;
	default:
		/* vrb_pep_remove() handles removal of the device */
		return 0;
	}
}

/* Look up a request by its handle, which may be any pointer. */
static struct vrb_req *vrb_req_find(fid_t handle)
{
	struct vrb_req *req;

	lockdep_assert_held(&vrb_req_lock);

	list_for_each_entry(req, &vrb_reqs, node)
		if (&req->fid == handle)
			return req;
	return NULL;
}

/**
 * vrb_req_take - give an endpoint the connection of a request
 * @ep: the endpoint
 * @handle: handle of the request; may be stale, and another request may use the
 *	memory
 *
 * Context: process, may sleep; the device's mutex held, so that it stays
 * present.
 * Return: 0, or -EINVAL if @handle is no waiting request, or is a request of
 * another namespace or device.
 */
int vrb_req_take(struct vrb_ep *ep, fid_t handle)
{
	const struct ib_device_attr *attrs = &ep->dom->ib->attrs;
	struct net *net = ep->base.domain->fabric->net;
	struct rdma_cm_id *id;
	struct vrb_req *req;

	mutex_lock(&vrb_req_lock);
	req = vrb_req_find(handle);
	if (req && (!net_eq(req->pep->base.fabric->net, net) ||
		    req->id->device != ep->dom->ib))
		req = NULL;
	if (req)
		vrb_req_unlink(req);
	mutex_unlock(&vrb_req_lock);
	if (!req)
		return -EINVAL;

	id = req->id;
	ep->limits.responder_resources = min_t(int, req->responder_resources,
					       attrs->max_qp_rd_atom);
	ep->limits.initiator_depth = min_t(int, req->initiator_depth,
					   attrs->max_qp_init_rd_atom);
	memcpy(&ep->cm.local, &id->route.addr.src_addr, sizeof(ep->cm.local));
	memcpy(&ep->cm.peer, &id->route.addr.dst_addr, sizeof(ep->cm.peer));
	rdma_lock_handler(id);
	id->context = ep;
	id->event_handler = vrb_cm_event;
	if (req->gone)
		ep->end.err = ECONNRESET;
	rdma_unlock_handler(id);
	ep->cm.id = id;
	kfree(req);
	return 0;
}

/* ----------------------------------------------------------- passive side */

/* Test for a listener, including one that will listen again after a failover. */
static bool vrb_pep_listens(const struct vrb_pep *pep)
{
	return pep->id || pep->tries;
}

/*
 * Listen on the address. Removal of a device takes vrb_mutex, too, so it is not
 * missed.
 */
static int vrb_pep_try(struct vrb_pep *pep)
{
	struct rdma_cm_id *id;
	int err;

	lockdep_assert_held(&vrb_mutex);
	lockdep_assert_held(&pep->base.lock);

	id = rdma_create_id(pep->base.fabric->net, vrb_pep_cm_event, pep,
			    RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	err = rdma_bind_addr(id, &pep->local.sa);
	/* rdma_cm's removal of the device would wait for a listener made after ours */
	if (!err && id->device && !vrb_dev_there(id->device))
		err = -ENODEV;
	if (!err)
		err = rdma_listen(id, pep->backlog);
	if (err) {
		rdma_destroy_id(id);
		return err;
	}
	memcpy(&pep->local, &id->route.addr.src_addr, sizeof(pep->local));
	pep->id = id;
	vrb_cm_step(&pep->base.obj, "listen", 0);
	return 0;
}

/*
 * Listen on the address. If it has no port, the manager chooses one that no identifier
 * has. On iWARP a TCP socket may have that port, and the next attempt gets another one.
 */
static int vrb_pep_start(struct vrb_pep *pep)
{
	unsigned int tries = *kofi_ip_port(&pep->local.sa) ? 1 : VRB_PORT_TRIES;
	int err;

	do {
		err = vrb_pep_try(pep);
	} while (err == -EADDRINUSE && --tries);
	return err;
}

/* fi_listen() */
static int vrb_pep_listen(struct fid_pep *fid)
{
	struct vrb_pep *pep = vrb_pep(&fid->fid);
	int err = -FI_EOPBADSTATE;

	mutex_lock(&vrb_mutex);
	mutex_lock(&pep->base.lock);
	if (!vrb_pep_listens(pep) && !pep->gone)
		err = vrb_pep_start(pep);
	mutex_unlock(&pep->base.lock);
	mutex_unlock(&vrb_mutex);
	return err;
}

/* Report to the consumer that the passive endpoint does not listen and will not again. */
static void vrb_pep_lost(struct vrb_pep *pep, int err)
{
	struct kofi_event ev = {
		.fid = &pep->base.pep.fid,
		.context = pep->base.pep.fid.context,
		.err = -err,
		.prov_errno = err,
	};

	vrb_cm_step(&pep->base.obj, "lost", err);
	pep->gone = true;
	kofi_eq_report(pep->base.eq, &ev, GFP_KERNEL);
}

/*
 * Test whether the address has moved to another device. While no device has the
 * address, the listener stays.
 *
 * Return: 1 if the address has moved, 0 if not, or -ENOMEM.
 */
static int vrb_pep_moved(struct vrb_pep *pep)
{
	union kofi_ip addr = pep->local;
	struct rdma_cm_id *id;
	int moved;

	/* an unspecified address is bound to no device */
	if (!pep->id->device)
		return 0;
	/* the listener uses the port */
	*kofi_ip_port(&addr.sa) = 0;
	id = vrb_if_bind(pep->base.fabric->net, &addr);
	if (IS_ERR(id))
		return PTR_ERR(id) == -ENOMEM ? -ENOMEM : 0;
	moved = id->device != pep->id->device ||
		id->port_num != pep->id->port_num;
	rdma_destroy_id(id);
	return moved;
}

static void vrb_pep_move(struct work_struct *work)
{
	struct vrb_pep *pep = container_of(to_delayed_work(work),
					   struct vrb_pep, move);
	int err = 0, moved = 0;

	mutex_lock(&vrb_mutex);
	mutex_lock(&pep->base.lock);
	if (pep->id)
		moved = vrb_pep_moved(pep);
	if (moved > 0) {
		rdma_destroy_id(pep->id);
		pep->id = NULL;
		pep->tries = VRB_MOVE_TRIES;
	}
	if (pep->tries)
		err = vrb_pep_start(pep);
	pep->tries = err ? pep->tries - 1 : 0;
	if (pep->tries || moved < 0)
		queue_delayed_work(vrb_linger_wq, &pep->move,
				   msecs_to_jiffies(VRB_MOVE_MS));
	else if (err)
		vrb_pep_lost(pep, err);
	mutex_unlock(&pep->base.lock);
	mutex_unlock(&vrb_mutex);
}

static void vrb_pep_move_all(struct work_struct *work)
{
	struct vrb_pep *pep;

	mutex_lock(&vrb_mutex);
	list_for_each_entry(pep, &vrb_peps, node)
		mod_delayed_work(vrb_linger_wq, &pep->move, 0);
	mutex_unlock(&vrb_mutex);
}

static DECLARE_WORK(vrb_pep_moves, vrb_pep_move_all);

/**
 * vrb_pep_gid_change - move listeners to the devices that have their addresses
 *
 * Call it when the address table of a device has changed.
 *
 * Context: any; ib_core calls it with the mutex of the table held.
 */
void vrb_pep_gid_change(void)
{
	queue_work(vrb_linger_wq, &vrb_pep_moves);
}

/* fi_reject() */
static int vrb_pep_reject(struct fid_pep *fid, fid_t handle,
			  const void *param, size_t paramlen)
{
	u8 area[VRB_CM_DATA_AREA], len;
	struct vrb_req *req;

	mutex_lock(&vrb_req_lock);
	req = vrb_req_find(handle);
	if (req && req->pep != vrb_pep(&fid->fid))
		req = NULL;
	if (req)
		vrb_req_unlink(req);
	mutex_unlock(&vrb_req_lock);
	if (!req)
		return -EINVAL;

	len = vrb_cm_pack(area, param, paramlen);
	/* on failure the peer has given up, or will time out */
	rdma_reject(req->id, area, len, IB_CM_REJ_CONSUMER_DEFINED);
	vrb_req_free(req);
	return 0;
}

static int vrb_pep_setname(fid_t fid, void *addr, size_t len)
{
	struct vrb_pep *pep = vrb_pep(fid);
	int err = -FI_EOPBADSTATE;

	mutex_lock(&pep->base.lock);
	if (!vrb_pep_listens(pep))
		err = vrb_addr_set(&pep->local, addr);
	mutex_unlock(&pep->base.lock);
	return err;
}

static int vrb_pep_getname(fid_t fid, void *addr, size_t *len)
{
	struct vrb_pep *pep = vrb_pep(fid);
	int err;

	mutex_lock(&pep->base.lock);
	err = vrb_addr_get(&pep->local, addr, len);
	mutex_unlock(&pep->base.lock);
	return err;
}

static const struct fi_ops_cm vrb_pep_cm_ops = {
	.size		= sizeof(struct fi_ops_cm),
	.setname	= vrb_pep_setname,
	.getname	= vrb_pep_getname,
	.listen		= vrb_pep_listen,
	.reject		= vrb_pep_reject,
};

/* ------------------------------------------------------- passive endpoints */

/* Take a waiting request of a passive endpoint or of a device. */
static struct vrb_req *vrb_req_next(const struct vrb_pep *pep,
				    const struct ib_device *ib)
{
	struct vrb_req *req, *found = NULL;

	mutex_lock(&vrb_req_lock);
	list_for_each_entry(req, &vrb_reqs, node)
		if (req->pep == pep || req->id->device == ib) {
			found = req;
			vrb_req_unlink(found);
			break;
		}
	mutex_unlock(&vrb_req_lock);
	return found;
}

/**
 * vrb_pep_remove - destroy listeners and requests of a device that is being
 * removed
 * @ib: the device
 *
 * Context: process, may sleep; vrb_mutex held.
 */
void vrb_pep_remove(struct ib_device *ib)
{
	struct vrb_pep *pep;
	struct vrb_req *req;

	list_for_each_entry(pep, &vrb_peps, node) {
		mutex_lock(&pep->base.lock);
		if (pep->id && pep->id->device == ib) {
			rdma_destroy_id(pep->id);
			pep->id = NULL;
			vrb_pep_lost(pep, -ENODEV);
		}
		mutex_unlock(&pep->base.lock);
	}
	while ((req = vrb_req_next(NULL, ib)))
		vrb_req_free(req);
}

static int vrb_pep_close(struct fi_fid *fid)
{
	struct vrb_pep *pep = vrb_pep(fid);
	struct vrb_req *req;

	mutex_lock(&vrb_mutex);
	list_del(&pep->node);
	mutex_unlock(&vrb_mutex);

	mutex_lock(&vrb_req_lock);
	pep->closing = true;
	mutex_unlock(&vrb_req_lock);
	disable_delayed_work_sync(&pep->move);
	if (pep->id)
		rdma_destroy_id(pep->id);
	while ((req = vrb_req_next(pep, NULL)))
		vrb_req_free(req);
	kofi_pep_exit(&pep->base);
	kfree(pep);
	return 0;
}

static int vrb_pep_control(struct fi_fid *fid, int command, void *arg)
{
	struct vrb_pep *pep = vrb_pep(fid);
	int err = 0;

	if (command != FI_BACKLOG)
		return -ENOSYS;
	if (!arg || *(int *)arg <= 0)
		return -EINVAL;
	mutex_lock(&pep->base.lock);
	if (vrb_pep_listens(pep))
		err = -EBUSY;
	else
		pep->backlog = *(int *)arg;
	mutex_unlock(&pep->base.lock);
	return err;
}

static void vrb_pep_stats(struct kofi_obj *obj, kofi_stat_fn fn, void *arg)
{
	struct vrb_pep *pep = container_of(obj, struct vrb_pep, base.obj);

	mutex_lock(&vrb_req_lock);
	fn(arg, "waiting", pep->delivered);
	fn(arg, "requests", pep->requests);
	fn(arg, "overflows", pep->overflows);
	fn(arg, "violations", pep->violations);
	fn(arg, "lost", pep->lost);
	mutex_unlock(&vrb_req_lock);
}

static const struct kofi_obj_ops vrb_pep_obj_ops = {
	.stats		= vrb_pep_stats,
};

static const struct fi_ops vrb_pep_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= vrb_pep_close,
	.control	= vrb_pep_control,
};

static const struct fi_ops_ep vrb_pep_opt_ops = {
	.size		= sizeof(struct fi_ops_ep),
	.getopt		= vrb_cm_getopt,
};

/* fi_passive_ep() */
int vrb_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
		   struct fid_pep **fid, void *context)
{
	struct vrb_pep *pep;
	int err;

	if (!info->tx_attr || !info->rx_attr || !info->domain_attr ||
	    !info->fabric_attr ||
	    (info->src_addr && !kofi_ip_len(info->src_addr)))
		return -EINVAL;
	pep = kzalloc(sizeof(*pep), GFP_KERNEL);
	if (!pep)
		return -ENOMEM;
	INIT_DELAYED_WORK(&pep->move, vrb_pep_move);
	pep->backlog = VRB_BACKLOG;
	if (info->src_addr)
		memcpy(&pep->local, info->src_addr,
		       kofi_ip_len(info->src_addr));
	else
		pep->local.in4.sin_family = AF_INET;
	err = kofi_pep_init(&pep->base, fabric, info, &vrb_pep_fid_ops,
			    &vrb_pep_opt_ops, &vrb_pep_cm_ops, &vrb_pep_obj_ops, context);
	if (err) {
		kfree(pep);
		return err;
	}
	mutex_lock(&vrb_mutex);
	list_add_tail(&pep->node, &vrb_peps);
	mutex_unlock(&vrb_mutex);
	*fid = &pep->base.pep;
	return 0;
}

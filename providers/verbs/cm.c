// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections, by the kernel's connection manager (rdma_cm).
 *
 * Active side. The identifier is made and bound to the endpoint's own address
 * when the endpoint is enabled, so that the queue pair exists and takes
 * receives. fi_connect() starts to resolve the peer; the manager's events take
 * it from there, and a timer bounds all of it.
 *
 * Passive side. The manager gives each request an identifier of its own, which
 * we keep in a struct vrb_req. An endpoint opened with the request takes it
 * over, a reject answers and destroys it. vrb_reqs lists all requests that are
 * the consumer's to take; a handle is only looked up there, never followed,
 * because it may be stale. Who takes a request off the list, under
 * vrb_req_lock, owns it. Requests nobody took die with their passive endpoint.
 *
 * Private data begins with a byte that says how much of it there is, because
 * the messages that carry it have a fixed size.
 *
 * The end. What tells the peer may be lost, and the manager repeats it, for as
 * long as there is the identifier. So that stays when the endpoint is closed, as
 * a struct vrb_linger, until the peer has answered or enough time has passed. On
 * iWARP, TCP does that; but an attempt to connect cannot be given up there, so
 * identifier and queue pair stay until it has come to its end by itself.
 *
 * Locks: the manager calls its handlers with the identifier's handler mutex,
 * and destroying an identifier waits for its handler. So handlers take
 * vrb_req_lock at most, which is never held while an identifier is destroyed.
 * An identifier is never destroyed by its own handler but by the handler's
 * return value, and that only for requests nobody has got.
 */
#include <linux/slab.h>
#include <rdma/ib_cm.h>

#include "verbs.h"
#include "verbs_trace.h"

#define VRB_BACKLOG	128	/* unless FI_BACKLOG says otherwise */
#define VRB_RESOLVE_MS	2000	/* for each of address and route */
#define VRB_RETRIES	6	/* of 7 the wire knows, which rxe takes for "without end" */
#define VRB_RNR_FOREVER	7
#define VRB_RNR_TIMER	12	/* 0.64 ms */
#define VRB_SHUTDOWN_MS	5000	/* without progress */
#define VRB_RESTS	128	/* identifiers that outlive their endpoints */
#define VRB_REST_MS	90000	/* and for how long: the manager's own limit is less */

/* ---------------------------------------------------------- private data */

static u8 vrb_cm_pack(u8 *area, const void *data, size_t len)
{
	area[0] = len;
	if (len)
		memcpy(area + 1, data, len);
	return len + 1;
}

/*
 * What the peer's consumer has put into a message. False if the length byte
 * says more than there is: the peer is none of libfabric's.
 */
static bool vrb_cm_unpack(const void *area, size_t len, const void **data,
			  size_t *data_len)
{
	const u8 *bytes = area;

	*data = NULL;
	*data_len = 0;
	if (!area || !len)
		return true;
	if (bytes[0] >= len)
		return false;
	*data = bytes + 1;
	*data_len = bytes[0];
	return true;
}

/* ------------------------------------------------------------ both sides */

static void vrb_cm_param(struct vrb_ep *ep, struct rdma_conn_param *param)
{
	*param = (struct rdma_conn_param) {
		.private_data		= ep->cm_data,
		.private_data_len	= ep->cm_len,
		.responder_resources	= ep->responder_resources,
		.initiator_depth	= ep->initiator_depth,
		.flow_control		= 1,
		.retry_count		= VRB_RETRIES,
		.rnr_retry_count	= VRB_RNR_FOREVER,
	};
}

/*
 * The device multiplies: after a time-out it tries again, 6 times, and the time
 * is a power of two of 4.096 us.
 */
static u8 vrb_cm_ack_timeout(unsigned int ms)
{
	u64 us = div_u64((u64)ms * USEC_PER_MSEC, VRB_RETRIES + 1);
	u8 exp = 1;

	while (exp < 31 && (4096ULL << exp) < us * NSEC_PER_USEC)
		exp++;
	return exp;
}

static void vrb_cm_tune(struct vrb_ep *ep)
{
	/* no word of these goes out, and iWARP has neither */
	rdma_set_min_rnr_timer(ep->id, VRB_RNR_TIMER);
	if (ep->tun.silence_timeout)
		rdma_set_ack_timeout(ep->id, vrb_cm_ack_timeout
				     (ep->tun.silence_timeout));
}

static void vrb_cm_fail(struct vrb_ep *ep, int err, int prov_errno,
			const void *data, size_t len)
{
	trace_kofi_verbs_cm(ep->base.obj.id, "failed", prov_errno);
	/* whoever has been quicker does, or did, the rest */
	if (kofi_ep_connect_failed(&ep->base, err, prov_errno, data, len))
		vrb_ep_abort(ep, err);
	else if (READ_ONCE(ep->base.state) == KOFI_EP_IDLE)
		/* of a request, whose peer waits no more: not to be enabled */
		cmpxchg(&ep->dead, 0, ECONNRESET);
}

/* The connection stands; on the active side with the peer's answer. */
static void vrb_cm_established(struct vrb_ep *ep,
			       const struct rdma_conn_param *conn)
{
	const void *data = NULL;
	size_t len = 0;

	if (!ep->base.info->handle &&
	    (!vrb_cm_unpack(conn->private_data, conn->private_data_len, &data,
			    &len) || len > KOFI_CM_DATA_MAX)) {
		vrb_cm_fail(ep, EIO, EPROTO, NULL, 0);
		return;
	}
	/* reads it lets us have; on iWARP not all devices say */
	if (!ep->base.info->handle && !ep->iwarp)
		ep->initiator_depth = min(ep->initiator_depth,
					  conn->initiator_depth);
	trace_kofi_verbs_cm(ep->base.obj.id, "connected", 0);
	WRITE_ONCE(ep->established, true);
	cancel_delayed_work(&ep->watch);
	vrb_mr_connected(ep);
	if (ep->tun.keepalive_idle)
		mod_timer(&ep->idle,
			  jiffies + msecs_to_jiffies(ep->tun.keepalive_idle));
	kofi_ep_connected(&ep->base, data, len);
	/* receives the queue pair could not take while it was being set up */
	vrb_rx_deferred(ep);
}

static void vrb_cm_rejected(struct vrb_ep *ep, struct rdma_cm_id *id,
			    struct rdma_cm_event *ev)
{
	const void *area, *data;
	u8 area_len = 0;
	size_t len;

	if (ep->iwarp) {
		/* some devices call a consumer's rejection a reset */
		area = ev->param.conn.private_data;
		area_len = ev->param.conn.private_data_len;
	} else {
		area = rdma_consumer_reject_data(id, ev, &area_len);
	}
	/* the manager itself rejects, too, and has nothing to say */
	if (!vrb_cm_unpack(area, area_len, &data, &len))
		len = 0;
	vrb_cm_fail(ep, ECONNREFUSED, ev->status, data, len);
}

static int vrb_cm_request(struct vrb_ep *ep, struct rdma_cm_id *id)
{
	struct rdma_conn_param param;
	int err;

	vrb_cm_param(ep, &param);
	ep->asked = true;
	err = rdma_connect_locked(id, &param);
	if (err)
		ep->asked = false;
	return err;
}

/* What is left to be waited for, also of an endpoint that has ended */
static void vrb_cm_note(struct vrb_ep *ep, enum rdma_cm_event_type event)
{
	switch (event) {
	case RDMA_CM_EVENT_DISCONNECTED:
		ep->left = true;
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		ep->asked = false;
		break;
	default:
		break;
	}
}

/* The manager's events of an endpoint's identifier */
static int vrb_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct vrb_ep *ep = id->context;
	int err = 0;

	trace_kofi_verbs_cm(ep->base.obj.id, rdma_event_msg(ev->event),
			    ev->status);
	vrb_cm_note(ep, ev->event);
	if (READ_ONCE(ep->dead))
		return 0;

	switch (ev->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		err = rdma_resolve_route(id, VRB_RESOLVE_MS);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		err = vrb_cm_request(ep, id);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		vrb_cm_established(ep, &ev->param.conn);
		break;
	case RDMA_CM_EVENT_REJECTED:
		vrb_cm_rejected(ep, id, ev);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		err = ev->status < 0 ? ev->status : -EHOSTUNREACH;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		vrb_ep_abort(ep, ESHUTDOWN);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		/* what is bound to the old address can only be done again */
		vrb_ep_abort(ep, ENETDOWN);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		vrb_ep_abort(ep, ENODEV);
		break;
	default:
		break;
	}
	if (err)
		vrb_cm_fail(ep, -err, -err, NULL, 0);
	return 0;
}

/* It has taken too long to connect; or nothing more is sent of what was left. */
void vrb_cm_watch(struct work_struct *work)
{
	struct vrb_ep *ep = container_of(to_delayed_work(work), struct vrb_ep,
					 watch);
	unsigned int left = READ_ONCE(ep->tx_used);

	if (!READ_ONCE(ep->tx_closed)) {
		vrb_cm_fail(ep, ETIMEDOUT, ETIMEDOUT, NULL, 0);
	} else if (left == ep->tx_left) {
		vrb_ep_abort(ep, ECANCELED);
	} else {
		ep->tx_left = left;
		queue_delayed_work(vrb_wq, &ep->watch,
				   msecs_to_jiffies(VRB_SHUTDOWN_MS));
	}
}

/* ------------------------------------------------------------- what is left */

/**
 * struct vrb_linger - what outlives an endpoint
 * @node: vrb_lingering; empty on iWARP
 * @id: the connection manager's identifier
 * @until: jiffies at which it is destroyed, whatever the peer does
 * @dom: iWARP: domain of the queue pair that @id has; it stays
 * @tx_cq: iWARP: what that reports to
 * @rx_cq: the same
 * @work: iWARP: destroys it all
 */
struct vrb_linger {
	struct list_head	node;
	struct rdma_cm_id	*id;
	unsigned long		until;
	struct vrb_domain	*dom;
	struct vrb_epcq		tx_cq;
	struct vrb_epcq		rx_cq;
	struct work_struct	work;
};

static void vrb_linger_reap(struct work_struct *work);

/* waits for the manager's queues, which may wait for memory */
static struct workqueue_struct *vrb_linger_wq;
static DECLARE_DELAYED_WORK(vrb_linger_reaper, vrb_linger_reap);
static DEFINE_SPINLOCK(vrb_linger_lock);	/* all that follows */
static LIST_HEAD(vrb_lingering);		/* by age */
static unsigned int vrb_linger_count;

static void vrb_linger_due(struct vrb_linger *rest)
{
	lockdep_assert_held(&vrb_linger_lock);

	rest->until = jiffies;
	list_move(&rest->node, &vrb_lingering);
	mod_delayed_work(vrb_linger_wq, &vrb_linger_reaper, 0);
}

/* The first one if its time has come, off the list; if not, see to it later. */
static struct vrb_linger *vrb_linger_next(void)
{
	struct vrb_linger *rest;

	spin_lock(&vrb_linger_lock);
	rest = list_first_entry_or_null(&vrb_lingering, struct vrb_linger, node);
	if (rest && time_before(jiffies, rest->until)) {
		mod_delayed_work(vrb_linger_wq, &vrb_linger_reaper,
				 rest->until - jiffies);
		rest = NULL;
	}
	if (rest) {
		list_del_init(&rest->node);
		vrb_linger_count--;
	}
	spin_unlock(&vrb_linger_lock);
	return rest;
}

static void vrb_linger_reap(struct work_struct *work)
{
	struct vrb_linger *rest;

	while ((rest = vrb_linger_next())) {
		rdma_destroy_id(rest->id);
		kfree(rest);
	}
}

/* The manager's events of an identifier whose endpoint has been closed */
static int vrb_linger_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct vrb_linger *rest = id->context;

	if (ev->event != RDMA_CM_EVENT_DISCONNECTED &&
	    ev->event != RDMA_CM_EVENT_DEVICE_REMOVAL)
		return 0;
	spin_lock(&vrb_linger_lock);
	if (!list_empty(&rest->node))
		vrb_linger_due(rest);
	spin_unlock(&vrb_linger_lock);
	return 0;
}

static void vrb_linger_keep(struct vrb_linger *rest)
{
	rest->until = jiffies + msecs_to_jiffies(VRB_REST_MS);
	spin_lock(&vrb_linger_lock);
	list_add_tail(&rest->node, &vrb_lingering);
	/* too many: the oldest has had its chance */
	if (++vrb_linger_count > VRB_RESTS)
		vrb_linger_due(list_first_entry(&vrb_lingering, struct vrb_linger,
						node));
	else
		queue_delayed_work(vrb_linger_wq, &vrb_linger_reaper,
				   msecs_to_jiffies(VRB_REST_MS));
	spin_unlock(&vrb_linger_lock);
}

static void vrb_cm_destroy_qp(struct rdma_cm_id *id, struct vrb_epcq *tx_cq,
			      struct vrb_epcq *rx_cq)
{
	rdma_destroy_qp(id);
	vrb_epcq_close(tx_cq);
	vrb_epcq_close(rx_cq);
}

/* The attempt to connect comes to its end, and then so does this. */
static void vrb_linger_work(struct work_struct *work)
{
	struct vrb_linger *rest = container_of(work, struct vrb_linger, work);
	struct vrb_domain *dom = rest->dom;

	vrb_cm_destroy_qp(rest->id, &rest->tx_cq, &rest->rx_cq);
	rdma_destroy_id(rest->id);
	kfree(rest);
	if (atomic_dec_and_test(&dom->rests))
		wake_up_var(&dom->rests);
}

/**
 * vrb_cm_given_up - has the peer given up its request
 * @ep: an endpoint of a request
 *
 * The manager knows before its event comes, and makes no queue pair any more.
 *
 * Context: process, may sleep; cm_mutex held.
 * Return: whether it has.
 */
bool vrb_cm_given_up(struct vrb_ep *ep)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT };
	int mask;

	return rdma_init_qp_attr(ep->id, &attr, &mask);
}

/**
 * vrb_cm_prepare - have what vrb_cm_linger() needs
 * @ep: an endpoint that is being enabled
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int vrb_cm_prepare(struct vrb_ep *ep)
{
	ep->rest = kzalloc(sizeof(*ep->rest), GFP_KERNEL);
	if (!ep->rest)
		return -ENOMEM;
	INIT_LIST_HEAD(&ep->rest->node);
	INIT_WORK(&ep->rest->work, vrb_linger_work);
	return 0;
}

/*
 * The manager's events do not come to the endpoint any more. Returns whether
 * there are such to be waited for.
 */
static bool vrb_cm_leave(struct vrb_ep *ep, struct rdma_cm_id *id,
			 struct vrb_linger *rest)
{
	bool waits;

	rest->id = id;
	rdma_lock_handler(id);
	id->context = rest;
	id->event_handler = vrb_linger_event;
	if (ep->iwarp) {
		waits = ep->asked;
	} else {
		waits = ep->established && !ep->left && !ep->dom->gone;
		if (waits)
			vrb_linger_keep(rest);
	}
	rdma_unlock_handler(id);
	return waits;
}

/**
 * vrb_cm_linger - give back what the endpoint has of device and manager
 * @ep: an endpoint that has ended, with an identifier
 *
 * On iWARP, what waits for the peer goes to a work item. While the device
 * connects TCP, this waits, too.
 *
 * Context: process, may sleep; cm_mutex held.
 */
void vrb_cm_linger(struct vrb_ep *ep)
{
	struct vrb_linger *rest = ep->rest;
	struct rdma_cm_id *id = ep->id;
	bool waits;

	/* waits for its events, which have an endpoint with an identifier */
	if (ep->qp && !ep->iwarp)
		vrb_cm_destroy_qp(id, &ep->tx_cq, &ep->rx_cq);
	WRITE_ONCE(ep->id, NULL);
	ep->rest = NULL;
	if (!ep->qp) {
		/* of a request, which is refused by that */
		rdma_destroy_id(id);
		return;
	}
	/* this may stay longer than the endpoint */
	if (ep->iwarp)
		WRITE_ONCE(ep->qp->qp_context, NULL);
	ep->qp = NULL;
	waits = vrb_cm_leave(ep, id, rest);
	if (ep->iwarp && waits) {
		rest->dom = ep->dom;
		vrb_epcq_move(&ep->tx_cq, &rest->tx_cq);
		vrb_epcq_move(&ep->rx_cq, &rest->rx_cq);
		atomic_inc(&ep->dom->rests);
		queue_work(vrb_linger_wq, &rest->work);
	} else if (ep->iwarp) {
		vrb_cm_destroy_qp(id, &ep->tx_cq, &ep->rx_cq);
	}
	if (!waits) {
		rdma_destroy_id(id);
		kfree(rest);
	}
}

int vrb_cm_init(void)
{
	vrb_linger_wq = alloc_workqueue("kofi_verbs_linger", WQ_UNBOUND, 0);
	return vrb_linger_wq ? 0 : -ENOMEM;
}

void vrb_cm_exit(void)
{
	struct vrb_linger *rest;

	spin_lock(&vrb_linger_lock);
	list_for_each_entry(rest, &vrb_lingering, node)
		rest->until = jiffies;
	spin_unlock(&vrb_linger_lock);
	vrb_linger_reap(NULL);
	/* nothing is left that queues it */
	cancel_delayed_work_sync(&vrb_linger_reaper);
	destroy_workqueue(vrb_linger_wq);
}

/* ------------------------------------------------------------ active side */

/**
 * vrb_cm_create - make the identifier of an endpoint that is to connect
 * @ep: the endpoint
 *
 * Bound to the endpoint's address, and with that to its device.
 *
 * Context: process, may sleep; cm_mutex held.
 * Return: 0; -ENODEV if the address is another device's; what the manager
 * returns.
 */
int vrb_cm_create(struct vrb_ep *ep)
{
	struct net *net = ep->base.domain->fabric->net;
	struct rdma_cm_id *id;
	int err;

	if (!ep->local.sa.sa_family || vrb_addr_any(&ep->local.sa)) {
		__be16 port = ep->local.in4.sin_port;

		err = vrb_if_find_dev(net, ep->dom->ib, ep->local.sa.sa_family,
				      &ep->local);
		if (err)
			return err;
		*vrb_addr_port(&ep->local.sa) = port;
	}
	id = rdma_create_id(net, vrb_cm_event, ep, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	err = rdma_bind_addr(id, &ep->local.sa);
	if (!err && id->device != ep->dom->ib)
		err = -ENODEV;
	if (err) {
		rdma_destroy_id(id);
		return err;
	}
	memcpy(&ep->local, &id->route.addr.src_addr, sizeof(ep->local));
	ep->id = id;
	return 0;
}

/* fi_connect() */
static int vrb_cm_connect(struct fid_ep *fid, const void *addr,
			  const void *param, size_t paramlen)
{
	struct vrb_ep *ep = vrb_ep(fid);
	int err;

	mutex_lock(&ep->cm_mutex);
	err = -READ_ONCE(ep->dead);
	if (err)
		goto unlock;
	err = -EINVAL;
	if (!vrb_addr_len(addr) ||
	    ((const struct sockaddr *)addr)->sa_family !=
	    ep->local.sa.sa_family)
		goto unlock;
	memcpy(&ep->peer, addr, vrb_addr_len(addr));
	ep->cm_len = vrb_cm_pack(ep->cm_data, param, paramlen);
	vrb_cm_tune(ep);
	queue_delayed_work(vrb_wq, &ep->watch,
			   msecs_to_jiffies(ep->tun.connect_timeout));
	err = rdma_resolve_addr(ep->id, NULL, &ep->peer.sa, VRB_RESOLVE_MS);
	if (err) {
		/* known at once, such as that there is no route */
		vrb_cm_fail(ep, -err, -err, NULL, 0);
		err = 0;
	}
unlock:
	mutex_unlock(&ep->cm_mutex);
	return err;
}

/* ----------------------------------------------------- connection requests */

/**
 * struct vrb_pep - passive endpoint
 * @base: the core's
 * @local: address to listen on, or that it does
 * @lock: control calls one after the other
 * @node: on the list of them, under vrb_mutex
 * @id: the listener, once there is one
 * @gone: its device has been removed
 * @backlog: requests the consumer may leave unanswered
 * @delivered: requests that wait for the consumer; under vrb_req_lock
 * @closing: no more requests; the same
 * @requests: statistics: that were delivered
 * @surplus: refused because too many waited
 * @violations: refused because of their private data
 * @lost: refused because the event queue was full, or for want of memory
 */
struct vrb_pep {
	struct kofi_pep		base;
	union vrb_addr		local;
	struct mutex		lock;	/* control calls */
	struct list_head	node;
	struct rdma_cm_id	*id;
	bool			gone;
	int			backlog;
	unsigned int		delivered;
	bool			closing;
	unsigned long		requests;
	unsigned long		surplus;
	unsigned long		violations;
	unsigned long		lost;
};

/**
 * struct vrb_req - connection request on the passive side
 * @fid: handle for the consumer
 * @pep: where it came in
 * @node: on vrb_reqs; empty once somebody owns it
 * @id: the connection manager's identifier
 * @gone: the peer waits no more; written by the manager's events
 * @responder_resources: the most the peer lets us have
 * @initiator_depth: the same
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

/* Event with a copy of the private data: it outlives a request taken early. */
struct vrb_req_event {
	struct kofi_event	ev;
	u8			data[KOFI_CM_DATA_MAX];
};

static DEFINE_MUTEX(vrb_req_lock);	/* vrb_reqs, and who owns one */
static LIST_HEAD(vrb_reqs);
static LIST_HEAD(vrb_peps);		/* under vrb_mutex */

static struct vrb_pep *vrb_pep(struct fi_fid *fid)
{
	return container_of(fid, struct vrb_pep, base.pep.fid);
}

/* Off the list: the caller owns it. */
static void vrb_req_unlink(struct vrb_req *req)
{
	lockdep_assert_held(&vrb_req_lock);

	list_del_init(&req->node);
	req->pep->delivered--;
}

/* Destroying an identifier nobody has answered rejects the request. */
static void vrb_req_free(struct vrb_req *req)
{
	rdma_destroy_id(req->id);
	kfree(req);
}

static void vrb_req_event_release(struct kofi_event *ev)
{
	kfree(container_of(ev, struct vrb_req_event, ev));
}

/*
 * The manager's events of a request. The peer may have given up: whoever takes
 * the request finds out. Only its device cannot wait.
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
			   struct vrb_req_event *ev)
{
	int err = 0;

	mutex_lock(&vrb_req_lock);
	if (pep->closing) {
		err = -ESHUTDOWN;
	} else if (pep->delivered >= pep->backlog) {
		pep->surplus++;
		err = -EBUSY;
	} else if (!kofi_eq_room(pep->base.eq)) {
		pep->lost++;
		err = -ENOBUFS;
	} else {
		pep->requests++;
		pep->delivered++;
		list_add_tail(&req->node, &vrb_reqs);
		kofi_eq_queue(pep->base.eq, &ev->ev);
	}
	mutex_unlock(&vrb_req_lock);
	trace_kofi_verbs_cm(pep->base.obj.id, "request", err);
	return err;
}

/* A request has come; what is returned other than 0 destroys its identifier. */
static int vrb_req_new(struct vrb_pep *pep, struct rdma_cm_id *id,
		       const struct rdma_conn_param *conn)
{
	struct vrb_req_event *ev = NULL;
	const void *data;
	struct vrb_req *req;
	size_t len;
	int err = -ENOMEM;

	if (!vrb_cm_unpack(conn->private_data, conn->private_data_len, &data,
			   &len) || len > KOFI_CM_DATA_MAX) {
		mutex_lock(&vrb_req_lock);
		pep->violations++;
		mutex_unlock(&vrb_req_lock);
		return -EPROTO;
	}
	req = kzalloc(sizeof(*req), GFP_KERNEL);
	ev = kzalloc(sizeof(*ev), GFP_KERNEL);
	if (!req || !ev)
		goto free;
	req->fid.fclass = FI_CLASS_CONNREQ;
	req->pep = pep;
	req->id = id;
	req->responder_resources = conn->responder_resources;
	req->initiator_depth = conn->initiator_depth;

	ev->ev = (struct kofi_event) {
		.fid = &pep->base.pep.fid,
		.context = pep->base.pep.fid.context,
		.event = FI_CONNREQ,
		.data = ev->data,
		.data_len = len,
		.release = vrb_req_event_release,
	};
	if (len)
		memcpy(ev->data, data, len);
	ev->ev.info = vrb_info_request(pep->base.info, id,
				       pep->base.fabric->name);
	if (!ev->ev.info)
		goto free;
	ev->ev.info->handle = &req->fid;

	/* both before anybody can take the request; we are in its handler */
	id->context = req;
	id->event_handler = vrb_req_cm_event;
	err = vrb_req_deliver(pep, req, ev);
	if (!err)
		return 0;
	fi_freeinfo(ev->ev.info);
free:
	kfree(ev);
	kfree(req);
	return err;
}

/* The manager's events of a listener */
static int vrb_pep_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct vrb_pep *pep = id->context;

	/* a removal is vrb_cm_remove()'s */
	if (ev->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	return vrb_req_new(pep, id, &ev->param.conn);
}

/* Find a request by its handle, which need not be one. */
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
 * @handle: names the request; it may be stale, and the memory somebody else's
 *	request by now
 *
 * Context: process, may sleep; vrb_mutex held, so that the device stays.
 * Return: 0, or -EINVAL if @handle is no request that waits for an answer, or
 * is one of another namespace or device.
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
	ep->responder_resources = min_t(int, req->responder_resources,
					attrs->max_qp_rd_atom);
	ep->initiator_depth = min_t(int, req->initiator_depth,
				    attrs->max_qp_init_rd_atom);
	memcpy(&ep->local, &id->route.addr.src_addr, sizeof(ep->local));
	memcpy(&ep->peer, &id->route.addr.dst_addr, sizeof(ep->peer));
	rdma_lock_handler(id);
	id->context = ep;
	id->event_handler = vrb_cm_event;
	if (req->gone)
		ep->dead = ECONNRESET;
	rdma_unlock_handler(id);
	ep->id = id;
	kfree(req);
	return 0;
}

/* ----------------------------------------------------------- passive side */

/* fi_listen() */
static int vrb_pep_listen(struct fid_pep *fid)
{
	struct vrb_pep *pep = vrb_pep(&fid->fid);
	struct rdma_cm_id *id;
	int err;

	/* a removal has this mutex, too: it sees the listener, or we see it */
	mutex_lock(&vrb_mutex);
	mutex_lock(&pep->lock);
	err = -FI_EOPBADSTATE;
	if (pep->id || pep->gone)
		goto unlock;
	id = rdma_create_id(pep->base.fabric->net, vrb_pep_cm_event, pep,
			    RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id)) {
		err = PTR_ERR(id);
		goto unlock;
	}
	err = rdma_bind_addr(id, &pep->local.sa);
	if (!err)
		err = rdma_listen(id, pep->backlog);
	if (err) {
		rdma_destroy_id(id);
		goto unlock;
	}
	memcpy(&pep->local, &id->route.addr.src_addr, sizeof(pep->local));
	pep->id = id;
	trace_kofi_verbs_cm(pep->base.obj.id, "listen", 0);
unlock:
	mutex_unlock(&pep->lock);
	mutex_unlock(&vrb_mutex);
	return err;
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
	/* if this fails the peer has given up, or is told by its time-out */
	rdma_reject(req->id, area, len, IB_CM_REJ_CONSUMER_DEFINED);
	vrb_req_free(req);
	return 0;
}

/* fi_accept() */
static int vrb_cm_accept(struct fid_ep *fid, const void *param,
			 size_t paramlen)
{
	struct vrb_ep *ep = vrb_ep(fid);
	struct rdma_conn_param conn;
	int err;

	mutex_lock(&ep->cm_mutex);
	err = -READ_ONCE(ep->dead);
	if (err)
		goto unlock;
	ep->cm_len = vrb_cm_pack(ep->cm_data, param, paramlen);
	vrb_cm_tune(ep);
	queue_delayed_work(vrb_wq, &ep->watch,
			   msecs_to_jiffies(ep->tun.connect_timeout));
	vrb_cm_param(ep, &conn);
	rdma_lock_handler(ep->id);
	err = rdma_accept(ep->id, &conn);
	rdma_unlock_handler(ep->id);
	if (err) {
		/* the peer has given up, and the request is of no more use */
		vrb_cm_fail(ep, ECONNRESET, -err, NULL, 0);
		err = 0;
	}
unlock:
	mutex_unlock(&ep->cm_mutex);
	return err;
}

/* -------------------------------------------------------------- addresses */

static int vrb_addr_set(union vrb_addr *to, const void *addr)
{
	if (!vrb_addr_len(addr))
		return -EINVAL;
	memset(to, 0, sizeof(*to));
	memcpy(to, addr, vrb_addr_len(addr));
	return 0;
}

/* fi_setname() of an endpoint that is not enabled */
static int vrb_cm_setname(fid_t fid, void *addr, size_t len)
{
	struct vrb_ep *ep = container_of(fid, struct vrb_ep, base.ep.fid);
	int err = -FI_EOPBADSTATE;

	mutex_lock(&ep->cm_mutex);
	if (!ep->id)
		err = vrb_addr_set(&ep->local, addr);
	mutex_unlock(&ep->cm_mutex);
	return err;
}

static int vrb_cm_name(const union vrb_addr *from, void *addr, size_t *len)
{
	if (!vrb_addr_len(&from->sa))
		return -EADDRNOTAVAIL;
	return vrb_addr_copy(&from->sa, addr, len);
}

/* fi_getname() */
static int vrb_cm_getname(fid_t fid, void *addr, size_t *len)
{
	struct vrb_ep *ep = container_of(fid, struct vrb_ep, base.ep.fid);
	int err;

	mutex_lock(&ep->cm_mutex);
	err = vrb_cm_name(&ep->local, addr, len);
	mutex_unlock(&ep->cm_mutex);
	return err;
}

/* fi_getpeer() */
static int vrb_cm_getpeer(struct fid_ep *fid, void *addr, size_t *len)
{
	struct vrb_ep *ep = vrb_ep(fid);
	int err;

	mutex_lock(&ep->cm_mutex);
	err = vrb_addr_len(&ep->peer.sa) ? vrb_cm_name(&ep->peer, addr, len) :
					   -ENOTCONN;
	mutex_unlock(&ep->cm_mutex);
	return err;
}

/* fi_shutdown(), perhaps in a callback of the queue an end waits for */
static int vrb_cm_shutdown(struct fid_ep *fid, u64 flags)
{
	struct vrb_ep *ep = vrb_ep(fid);

	if (READ_ONCE(ep->established) && vrb_tx_finish(ep)) {
		queue_delayed_work(vrb_wq, &ep->watch,
				   msecs_to_jiffies(VRB_SHUTDOWN_MS));
		return 0;
	}
	/* nothing is accepted from now on */
	vrb_tx_close(ep);
	vrb_rxq_close(&ep->rxq);
	vrb_ep_abort(ep, ECANCELED);
	return 0;
}

const struct fi_ops_cm vrb_ep_cm_ops = {
	.size		= sizeof(struct fi_ops_cm),
	.setname	= vrb_cm_setname,
	.getname	= vrb_cm_getname,
	.getpeer	= vrb_cm_getpeer,
	.connect	= vrb_cm_connect,
	.accept		= vrb_cm_accept,
	.shutdown	= vrb_cm_shutdown,
};

static int vrb_pep_setname(fid_t fid, void *addr, size_t len)
{
	struct vrb_pep *pep = vrb_pep(fid);
	int err = -FI_EOPBADSTATE;

	mutex_lock(&pep->lock);
	if (!pep->id)
		err = vrb_addr_set(&pep->local, addr);
	mutex_unlock(&pep->lock);
	return err;
}

static int vrb_pep_getname(fid_t fid, void *addr, size_t *len)
{
	struct vrb_pep *pep = vrb_pep(fid);
	int err;

	mutex_lock(&pep->lock);
	err = vrb_cm_name(&pep->local, addr, len);
	mutex_unlock(&pep->lock);
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

/* The requests of a passive endpoint, or of a device, that nobody owns */
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
 * vrb_cm_remove - a device goes: destroy what listens on it, and requests
 * @ib: the device
 *
 * Context: process, may sleep; vrb_mutex held.
 */
void vrb_cm_remove(struct ib_device *ib)
{
	struct vrb_pep *pep;
	struct vrb_req *req;

	list_for_each_entry(pep, &vrb_peps, node) {
		mutex_lock(&pep->lock);
		if (pep->id && pep->id->device == ib) {
			rdma_destroy_id(pep->id);
			pep->id = NULL;
			pep->gone = true;
		}
		mutex_unlock(&pep->lock);
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
	if (pep->id)
		rdma_destroy_id(pep->id);
	while ((req = vrb_req_next(pep, NULL)))
		vrb_req_free(req);
	kofi_pep_exit(&pep->base);
	mutex_destroy(&pep->lock);
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
	mutex_lock(&pep->lock);
	if (pep->id)
		err = -EBUSY;
	else
		pep->backlog = *(int *)arg;
	mutex_unlock(&pep->lock);
	return err;
}

/* fi_getopt() of an endpoint of either kind, as far as the core does not know */
int vrb_cm_getopt(fid_t fid, int level, int name, void *val, size_t *len)
{
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_CM_DATA_SIZE)
		return -FI_ENOPROTOOPT;
	if (*len < sizeof(size_t)) {
		*len = sizeof(size_t);
		return -FI_ETOOSMALL;
	}
	*len = sizeof(size_t);
	*(size_t *)val = VRB_CM_DATA_MAX;
	return 0;
}

static void vrb_pep_stats(struct kofi_obj *obj, kofi_stat_fn fn, void *arg)
{
	struct vrb_pep *pep = container_of(obj, struct vrb_pep, base.obj);

	mutex_lock(&vrb_req_lock);
	fn(arg, "waiting", pep->delivered);
	fn(arg, "requests", pep->requests);
	fn(arg, "surplus", pep->surplus);
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
	    (info->src_addr && !vrb_addr_len(info->src_addr)))
		return -EINVAL;
	pep = kzalloc(sizeof(*pep), GFP_KERNEL);
	if (!pep)
		return -ENOMEM;
	mutex_init(&pep->lock);
	pep->backlog = VRB_BACKLOG;
	if (info->src_addr)
		memcpy(&pep->local, info->src_addr,
		       vrb_addr_len(info->src_addr));
	else
		pep->local.in4.sin_family = AF_INET;
	err = kofi_pep_init(&pep->base, fabric, info, &vrb_pep_fid_ops,
			    &vrb_pep_opt_ops, &vrb_pep_cm_ops, context);
	if (err) {
		mutex_destroy(&pep->lock);
		kfree(pep);
		return err;
	}
	pep->base.obj.ops = &vrb_pep_obj_ops;
	mutex_lock(&vrb_mutex);
	list_add_tail(&pep->node, &vrb_peps);
	mutex_unlock(&vrb_mutex);
	*fid = &pep->base.pep;
	return 0;
}

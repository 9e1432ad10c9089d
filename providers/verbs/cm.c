// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections, by the kernel's connection manager (rdma_cm).
 *
 * Active side
 *
 * The identifier is made and bound to the endpoint's own address when the
 * endpoint is enabled, so that the queue pair exists and takes receives.
 * fi_connect() starts to resolve the peer; the manager's events take it from
 * there, and a timer bounds all of it.
 *
 * Passive side
 *
 * pep.c has passive endpoints and their requests. An endpoint opened with a
 * request takes over the request's identifier; from fi_accept() on it is as any
 * other.
 *
 * Private data
 *
 * It begins with a byte that says how much of it there is, because the messages
 * that carry it have a fixed size.
 *
 * The end
 *
 * ep.c ends an endpoint. Its identifier may have to stay for a while (linger.c).
 *
 * Locks
 *
 * The manager calls its handlers with the identifier's handler mutex, and
 * destroying an identifier waits for its handler. So a handler takes no lock
 * that is held while an identifier is destroyed.
 */
#include <kunit/visibility.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>

#include "verbs.h"
#include "verbs_trace.h"

#define VRB_RESOLVE_MS	2000	/* for each of address and route */
#define VRB_RETRIES	7	/* the most there is */
#define VRB_RNR_FOREVER	7
#define VRB_RNR_TIMER	12	/* 0.64 ms */
#define VRB_SHUTDOWN_MS	5000	/* without progress */

/* ---------------------------------------------------------- private data */

/**
 * vrb_cm_pack - private data as it goes into a message
 * @area: VRB_CM_DATA_AREA bytes
 * @data: the consumer's
 * @len: its length, at most VRB_CM_DATA_MAX
 *
 * Return: bytes of @area in use.
 */
u8 vrb_cm_pack(u8 *area, const void *data, size_t len)
{
	area[0] = len;
	if (len)
		memcpy(area + 1, data, len);
	return len + 1;
}

/**
 * vrb_cm_unpack - the peer's private data in a message
 * @area: of the message, or NULL
 * @len: its length
 * @data: set to the data, or NULL
 * @data_len: set to its length
 *
 * Return: false if the length byte says more than there is, as of a peer that is
 * not libfabric's.
 */
bool vrb_cm_unpack(const void *area, size_t len, const void **data,
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

static unsigned int vrb_cm_retries(const struct vrb_ep *ep)
{
	return ep->dom->quirks & VRB_QUIRK_RETRY_EVER ? VRB_RETRIES - 1 :
							VRB_RETRIES;
}

static void vrb_cm_param(struct vrb_ep *ep, struct rdma_conn_param *param)
{
	*param = (struct rdma_conn_param) {
		.private_data		= ep->cm_data,
		.private_data_len	= ep->cm_len,
		.responder_resources	= ep->responder_resources,
		.initiator_depth	= ep->initiator_depth,
		.flow_control		= 1,
		.retry_count		= vrb_cm_retries(ep),
		.rnr_retry_count	= VRB_RNR_FOREVER,
	};
}

/*
 * The device multiplies: after a time-out it tries again so often, and the time
 * is a power of two of 4.096 us.
 */
static u8 vrb_cm_ack_timeout(const struct vrb_ep *ep, unsigned int ms)
{
	u64 us = div_u64((u64)ms * USEC_PER_MSEC, vrb_cm_retries(ep) + 1);
	u8 exp = 1;

	while (exp < 31 && (4096ULL << exp) < us * NSEC_PER_USEC)
		exp++;
	return exp;
}

static void vrb_cm_tune(struct vrb_ep *ep)
{
	int dscp = kofi_tclass_dscp(kofi_info_tclass(ep->base.info));

	if (dscp >= 0)
		rdma_set_service_type(ep->id, dscp << 2);
	/* no word of these goes out, and iWARP has neither */
	rdma_set_min_rnr_timer(ep->id, VRB_RNR_TIMER);
	if (ep->tun.silence_timeout)
		rdma_set_ack_timeout(ep->id, vrb_cm_ack_timeout
				     (ep, ep->tun.silence_timeout));
}

/**
 * vrb_event_strerror - the device's word for why a connection failed
 * @prov_errno: of the event: a reason of the InfiniBand manager's, enum
 *	ib_cm_rej_reason, or a negative error code, as of iWARP's
 *
 * Context: any.
 * Return: a constant string.
 */
const char *vrb_event_strerror(int prov_errno)
{
	return prov_errno > 0 ? ibcm_reject_msg(prov_errno) :
				fi_strerror(prov_errno);
}
EXPORT_SYMBOL_IF_KUNIT(vrb_event_strerror);

static void vrb_cm_fail(struct vrb_ep *ep, int err, int prov_errno,
			const void *data, size_t len)
{
	trace_kofi_verbs_cm(ep->base.obj.id, "failed", prov_errno);
	/* false: the endpoint is ended, or was connected, by another context */
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
		vrb_cm_fail(ep, EIO, -EPROTO, NULL, 0);
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

/* Ask the peer. On iWARP, this may take as long as TCP tries. */
static int vrb_cm_request(struct vrb_ep *ep, struct rdma_cm_id *id)
{
	struct rdma_conn_param param;
	int err;

	vrb_cm_param(ep, &param);
	vrb_rx_push(ep);
	ep->asked = true;
	err = rdma_connect_locked(id, &param);
	if (err)
		ep->asked = false;
	return err;
}

/**
 * vrb_cm_ask - ask the peer of an iWARP endpoint
 * @ep: the endpoint
 * @id: identifier of the connection manager
 *
 * Context: process, may sleep, until TCP has connected or given up; with the
 * identifier's handler mutex.
 */
void vrb_cm_ask(struct vrb_ep *ep, struct rdma_cm_id *id)
{
	int err;

	ep->asked = false;
	if (READ_ONCE(ep->dead))
		return;
	err = vrb_cm_request(ep, id);
	if (err)
		vrb_cm_fail(ep, -err, err, NULL, 0);
}

/* What is left to be waited for, also of an endpoint that has ended */
static void vrb_cm_note(struct vrb_ep *ep, enum rdma_cm_event_type event)
{
	switch (event) {
	case RDMA_CM_EVENT_REJECTED:
		if (!READ_ONCE(ep->established)) {
			ep->asked = false;
			break;
		}
		fallthrough;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (!ep->left)
			WRITE_ONCE(ep->left, jiffies ?: 1);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		ep->asked = false;
		break;
	default:
		break;
	}
}

/*
 * Who has asked is also told so when a neighbour on the way to the peer has another
 * hardware address, as after a failover, or is being resolved again. Then a queue pair
 * that is connected finds out itself whether the peer is there.
 */
static bool vrb_cm_neighbour(const struct vrb_ep *ep,
			     const struct rdma_cm_event *ev)
{
	return ev->event == RDMA_CM_EVENT_UNREACHABLE &&
	       READ_ONCE(ep->established) && !ep->base.info->handle;
}

static void vrb_cm_do(struct vrb_ep *ep, struct rdma_cm_id *id,
		      struct rdma_cm_event *ev)
{
	int err = 0;

	trace_kofi_verbs_cm(ep->base.obj.id, rdma_event_msg(ev->event),
			    ev->status);
	vrb_cm_note(ep, ev->event);
	if (READ_ONCE(ep->dead) || vrb_cm_neighbour(ep, ev))
		return;

	switch (ev->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		err = rdma_resolve_route(id, VRB_RESOLVE_MS);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (ep->iwarp)
			vrb_linger_connect(ep, id);
		else
			err = vrb_cm_request(ep, id);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		vrb_cm_established(ep, &ev->param.conn);
		break;
	case RDMA_CM_EVENT_REJECTED:
		/* who has accepted ends it, and has not heard that it stands */
		if (READ_ONCE(ep->established))
			vrb_ep_abort(ep, ESHUTDOWN);
		else
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
	/* who has accepted may miss the last message of a connection that stands */
	if (err && READ_ONCE(ep->established))
		vrb_ep_abort(ep, -err);
	else if (err)
		vrb_cm_fail(ep, -err, err, NULL, 0);
}

/**
 * vrb_cm_event - the manager's event handler of an endpoint's identifier
 * @id: the identifier
 * @ev: the event
 *
 * Context: process, with the identifier's handler mutex.
 * Return: 0, as the identifier is never destroyed by its event.
 */
int vrb_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	/* freeing memory may depend on the connection that is being made */
	unsigned int noio = memalloc_noio_save();

	vrb_cm_do(id->context, id, ev);
	memalloc_noio_restore(noio);
	return 0;
}

/* It has taken too long to connect; or nothing more is sent of what was left. */
void vrb_cm_watch(struct work_struct *work)
{
	struct vrb_ep *ep = container_of(to_delayed_work(work), struct vrb_ep,
					 watch);
	u32 left = READ_ONCE(ep->sq_done);

	if (!READ_ONCE(ep->tx_closed)) {
		vrb_cm_fail(ep, ETIMEDOUT, -ETIMEDOUT, NULL, 0);
	} else if (left == ep->tx_left) {
		vrb_ep_abort(ep, ECANCELED);
	} else {
		ep->tx_left = left;
		queue_delayed_work(vrb_wq, &ep->watch,
				   msecs_to_jiffies(VRB_SHUTDOWN_MS));
	}
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

	if (!ep->local.sa.sa_family || kofi_ip_any(&ep->local.sa)) {
		__be16 port = ep->local.in4.sin_port;

		err = vrb_if_find_dev(net, ep->dom->ib, ep->local.sa.sa_family,
				      &ep->local);
		if (err)
			return err;
		*kofi_ip_port(&ep->local.sa) = port;
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
	if (!kofi_ip_len(addr) ||
	    ((const struct sockaddr *)addr)->sa_family !=
	    ep->local.sa.sa_family)
		goto unlock;
	memcpy(&ep->peer, addr, kofi_ip_len(addr));
	ep->cm_len = vrb_cm_pack(ep->cm_data, param, paramlen);
	vrb_cm_tune(ep);
	queue_delayed_work(vrb_wq, &ep->watch,
			   msecs_to_jiffies(ep->tun.connect_timeout));
	err = rdma_resolve_addr(ep->id, NULL, &ep->peer.sa, VRB_RESOLVE_MS);
	if (err) {
		/* known at once, such as that there is no route */
		vrb_cm_fail(ep, -err, err, NULL, 0);
		err = 0;
	}
unlock:
	mutex_unlock(&ep->cm_mutex);
	return err;
}

/* ----------------------------------------------------------- passive side */

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
	vrb_rx_push(ep);
	rdma_lock_handler(ep->id);
	err = rdma_accept(ep->id, &conn);
	rdma_unlock_handler(ep->id);
	if (err) {
		/* the peer has given up, and the request is of no more use */
		vrb_cm_fail(ep, ECONNRESET, err, NULL, 0);
		err = 0;
	}
unlock:
	mutex_unlock(&ep->cm_mutex);
	return err;
}

/* -------------------------------------------------------------- addresses */

/**
 * vrb_addr_set - take over an address of the consumer
 * @to: where it goes
 * @addr: the address
 *
 * Return: 0, or -EINVAL if it is neither IPv4 nor IPv6.
 */
int vrb_addr_set(union kofi_ip *to, const void *addr)
{
	if (!kofi_ip_len(addr))
		return -EINVAL;
	memset(to, 0, sizeof(*to));
	memcpy(to, addr, kofi_ip_len(addr));
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

/**
 * vrb_addr_get - report an address that may not be known yet
 * @from: the address
 * @addr: the consumer's buffer
 * @len: in: its size, out: of the address
 *
 * Return: 0, -EADDRNOTAVAIL, or -FI_ETOOSMALL with as much as fits copied.
 */
int vrb_addr_get(const union kofi_ip *from, void *addr, size_t *len)
{
	if (!kofi_ip_len(&from->sa))
		return -EADDRNOTAVAIL;
	return kofi_ip_copy(&from->sa, addr, len);
}

/* fi_getname() */
static int vrb_cm_getname(fid_t fid, void *addr, size_t *len)
{
	struct vrb_ep *ep = container_of(fid, struct vrb_ep, base.ep.fid);
	int err;

	mutex_lock(&ep->cm_mutex);
	err = vrb_addr_get(&ep->local, addr, len);
	mutex_unlock(&ep->cm_mutex);
	return err;
}

/* fi_getpeer() */
static int vrb_cm_getpeer(struct fid_ep *fid, void *addr, size_t *len)
{
	struct vrb_ep *ep = vrb_ep(fid);
	int err;

	mutex_lock(&ep->cm_mutex);
	err = kofi_ip_len(&ep->peer.sa) ? vrb_addr_get(&ep->peer, addr, len) :
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

/* fi_getopt() of an endpoint of either kind, as far as the core does not know */
int vrb_cm_getopt(fid_t fid, int level, int name, void *val, size_t *len)
{
	return name == FI_OPT_CM_DATA_SIZE ?
	       kofi_opt_get_size(VRB_CM_DATA_MAX, val, len) : -FI_ENOPROTOOPT;
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

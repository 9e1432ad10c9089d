// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections, through the kernel's connection manager (rdma_cm).
 *
 * Active side
 *
 * Enabling the endpoint creates the identifier and binds it to the local
 * address, so that the queue pair exists and takes receives. fi_connect()
 * starts to resolve the peer's address. The manager's events drive the
 * following steps, within one timeout.
 *
 * Passive side
 *
 * Passive endpoints and connection requests are in pep.c. An endpoint that is
 * opened with a request takes over the identifier of the request. After
 * fi_accept() it is handled like any other.
 *
 * Private data
 *
 * The first byte holds the length of the private data, because the messages
 * that carry it have a fixed size.
 *
 * Termination
 *
 * ep.c terminates an endpoint. Its identifier may outlive it (linger.c).
 *
 * Locks
 *
 * The manager calls its handlers with the identifier's handler mutex held, and
 * rdma_destroy_id() waits for a running handler. So a handler takes no lock
 * that is held while an identifier is destroyed.
 */
#include <kunit/visibility.h>
#include <linux/net.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/sock.h>
#include <rdma/ib_cm.h>
#include <rdma/iw_cm.h>

#include "verbs.h"

#define VRB_RESOLVE_MS	2000	/* for the address, and again for the route */
#define VRB_SHUTDOWN_MS	5000	/* without progress */

/* ---------------------------------------------------------- private data */

/**
 * vrb_cm_pack - pack private data for a message
 * @area: VRB_CM_DATA_AREA bytes
 * @data: private data of the consumer
 * @len: length of @data, at most VRB_CM_DATA_MAX
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
 * vrb_cm_unpack - unpack the peer's private data
 * @area: private data of the message, or NULL
 * @len: length of @area
 * @data: set to the data, or to NULL
 * @data_len: set to the length of the data
 *
 * Return: false if the length byte exceeds @len, as for a peer that does not
 * use libfabric.
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

static void vrb_cm_param(struct vrb_ep *ep, struct rdma_conn_param *param)
{
	const size_t *conn = ep->tun.conn;

	/* the device may have less than the consumer allows, and the peer */
	ep->limits.responder_resources = min_t(size_t, ep->limits.responder_resources,
					       conn[VRB_CONN_READ_RESOURCES]);
	ep->limits.initiator_depth = min_t(size_t, ep->limits.initiator_depth,
					   conn[VRB_CONN_READ_DEPTH]);
	*param = (struct rdma_conn_param) {
		.private_data		= ep->cm.data,
		.private_data_len	= ep->cm.data_len,
		.responder_resources	= ep->limits.responder_resources,
		.initiator_depth	= ep->limits.initiator_depth,
		.flow_control		= 1,
		.retry_count		= conn[VRB_CONN_RETRY],
		.rnr_retry_count	= conn[VRB_CONN_RNR_RETRY],
	};
}

/*
 * Convert a time limit to the device's timeout: 4.096 us times two to the power of
 * the result. The device retries VRB_CONN_RETRY times.
 */
static u8 vrb_cm_ack_timeout(const struct vrb_ep *ep, unsigned int ms)
{
	u64 us = div_u64((u64)ms * USEC_PER_MSEC,
			 ep->tun.conn[VRB_CONN_RETRY] + 1);
	u8 exp = 1;

	while (exp < 31 && (4096ULL << exp) < us * NSEC_PER_USEC)
		exp++;
	return exp;
}

static void vrb_cm_tune(struct vrb_ep *ep)
{
	int dscp = kofi_tclass_dscp(kofi_info_tclass(ep->base.info));
	const size_t *conn = ep->tun.conn;

	if (dscp >= 0)
		rdma_set_service_type(ep->cm.id, dscp << 2);
	/* both stay local, and iWARP has neither of them */
	rdma_set_min_rnr_timer(ep->cm.id, conn[VRB_CONN_RNR_TIMER]);
	if (conn[VRB_CONN_ACK_TIMEOUT])
		rdma_set_ack_timeout(ep->cm.id, conn[VRB_CONN_ACK_TIMEOUT]);
	else if (ep->tun.silence_timeout)
		rdma_set_ack_timeout(ep->cm.id, vrb_cm_ack_timeout
				     (ep, ep->tun.silence_timeout));
}

/**
 * vrb_event_strerror - describe the failure of a connection
 * @prov_errno: error of the event: enum ib_cm_rej_reason of the InfiniBand
 *	manager, or a negative error code, as from iWARP's
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
	vrb_cm_step(&ep->base.obj, "failed", prov_errno);
	/* false: another context has ended or connected the endpoint */
	if (kofi_ep_connect_failed(&ep->base, err, prov_errno, data, len))
		vrb_ep_abort(ep, err);
	else if (READ_ONCE(ep->base.state) == KOFI_EP_IDLE)
		/* the peer of this request has given up: refuse to enable the endpoint */
		cmpxchg(&ep->end.err, 0, ECONNRESET);
}

/* The connection is established. On the active side, @conn has the peer's answer. */
static void vrb_cm_established(struct vrb_ep *ep,
			       const struct rdma_conn_param *conn)
{
	const void *data = NULL;
	size_t len = 0;

	if (!ep->base.info->handle &&
	    (!vrb_cm_unpack(conn->private_data, conn->private_data_len, &data,
			    &len) || len > KOFI_CM_DATA_MAX)) {
		kofi_violation(&ep->base.obj, NULL, "bad answer");
		vrb_cm_fail(ep, EIO, -EPROTO, NULL, 0);
		return;
	}
	/* reads that the peer allows; not all iWARP devices report them */
	if (!ep->base.info->handle && !ep->iwarp)
		ep->limits.initiator_depth = min(ep->limits.initiator_depth,
						 conn->initiator_depth);
	vrb_cm_step(&ep->base.obj, "connected", 0);
	WRITE_ONCE(ep->cm.state, VRB_CM_ESTABLISHED);
	cancel_delayed_work(&ep->cm.watch);
	vrb_mr_connected(ep);
	if (ep->tun.keepalive_idle)
		mod_timer(&ep->tx.idle,
			  jiffies + msecs_to_jiffies(ep->tun.keepalive_idle));
	kofi_ep_connected(&ep->base, data, len);
	/* post receives that the queue pair refused during the connect */
	vrb_rx_deferred(ep);
}

static void vrb_cm_rejected(struct vrb_ep *ep, struct rdma_cm_id *id,
			    struct rdma_cm_event *ev)
{
	const void *area, *data;
	u8 area_len = 0;
	size_t len;

	if (ep->iwarp) {
		/* some iWARP devices report a consumer's rejection as a reset */
		area = ev->param.conn.private_data;
		area_len = ev->param.conn.private_data_len;
	} else {
		area = rdma_consumer_reject_data(id, ev, &area_len);
	}
	/* rejections by the manager itself have no private data */
	if (!vrb_cm_unpack(area, area_len, &data, &len))
		len = 0;
	vrb_cm_fail(ep, ECONNREFUSED, ev->status, data, len);
}

/* The connection manager waits for no answer. With the handler mutex held. */
static void vrb_cm_answered(struct vrb_ep *ep)
{
	if (ep->cm.state == VRB_CM_ASKED)
		WRITE_ONCE(ep->cm.state, VRB_CM_IDLE);
}

/**
 * vrb_cm_free_port - free the TCP port that is reserved for an endpoint
 * @ep: the endpoint; it may have no port
 *
 * Context: process, may sleep.
 */
void vrb_cm_free_port(struct vrb_ep *ep)
{
	struct socket *port = xchg(&ep->cm.port, NULL);

	if (port)
		sock_release(port);
}

/* Send the connection request. On iWARP, this may take as long as TCP tries. */
static int vrb_cm_request(struct vrb_ep *ep, struct rdma_cm_id *id)
{
	struct rdma_conn_param param;
	int err;

	vrb_cm_param(ep, &param);
	vrb_rx_push(ep);
	WRITE_ONCE(ep->cm.state, VRB_CM_ASKED);
	err = rdma_connect_locked(id, &param);
	vrb_cm_free_port(ep);
	if (err)
		vrb_cm_answered(ep);
	return err;
}

/**
 * vrb_cm_ask - send the connection request of an iWARP endpoint
 * @ep: the endpoint
 * @id: identifier of the connection manager
 *
 * Context: process, with the identifier's handler mutex held; sleeps until TCP
 * has connected or given up.
 */
void vrb_cm_ask(struct vrb_ep *ep, struct rdma_cm_id *id)
{
	int err;

	vrb_cm_answered(ep);
	if (READ_ONCE(ep->end.err))
		return;
	err = vrb_cm_request(ep, id);
	if (err)
		vrb_cm_fail(ep, -err, err, NULL, 0);
}

/* Record events that vrb_linger_leave() needs, also for an endpoint that has ended. */
static void vrb_cm_note(struct vrb_ep *ep, enum rdma_cm_event_type event)
{
	switch (event) {
	case RDMA_CM_EVENT_REJECTED:
		if (!vrb_cm_is_established(ep)) {
			vrb_cm_answered(ep);
			break;
		}
		fallthrough;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (!ep->cm.left)
			WRITE_ONCE(ep->cm.left, jiffies ?: 1);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		vrb_cm_answered(ep);
		break;
	default:
		break;
	}
}

/*
 * Test for an event about a neighbour. The manager reports
 * RDMA_CM_EVENT_UNREACHABLE to the active side also for a neighbour on the path:
 * when it has a new hardware address, as after a failover, or is resolved again.
 * A connected queue pair detects by itself whether the peer is reachable.
 */
static bool vrb_cm_neighbour(const struct vrb_ep *ep,
			     const struct rdma_cm_event *ev)
{
	return ev->event == RDMA_CM_EVENT_UNREACHABLE &&
	       vrb_cm_is_established(ep) && !ep->base.info->handle;
}

static void vrb_cm_do(struct vrb_ep *ep, struct rdma_cm_id *id,
		      struct rdma_cm_event *ev)
{
	int err = 0;

	vrb_cm_step(&ep->base.obj, rdma_event_msg(ev->event), ev->status);
	vrb_cm_note(ep, ev->event);
	if (READ_ONCE(ep->end.err) || vrb_cm_neighbour(ep, ev))
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
		/*
		 * The peer that accepted has closed before this side's last
		 * message arrived.
		 */
		if (vrb_cm_is_established(ep))
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
		/* objects bound to the old address cannot be moved */
		vrb_ep_abort(ep, ENETDOWN);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		vrb_ep_abort(ep, ENODEV);
		break;
	default:
		break;
	}
	/* the passive side may miss the last message of the handshake */
	if (err && vrb_cm_is_established(ep))
		vrb_ep_abort(ep, -err);
	else if (err)
		vrb_cm_fail(ep, -err, err, NULL, 0);
}

/**
 * vrb_cm_event - handle an event of an endpoint's identifier
 * @id: the identifier
 * @ev: the event
 *
 * Context: process, with the identifier's handler mutex held.
 * Return: 0, because an event never destroys the identifier.
 */
int vrb_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	/* freeing memory may depend on the connection that is being established */
	unsigned int noio = memalloc_noio_save();

	vrb_cm_do(id->context, id, ev);
	memalloc_noio_restore(noio);
	return 0;
}

/* Time out a connect, or a shutdown without progress. */
void vrb_cm_watch(struct work_struct *work)
{
	struct vrb_ep *ep = container_of(to_delayed_work(work), struct vrb_ep,
					 cm.watch);
	u32 left = READ_ONCE(ep->tx_done.wrs);

	if (vrb_tx_is_open(ep)) {
		vrb_cm_fail(ep, ETIMEDOUT, -ETIMEDOUT, NULL, 0);
	} else if (left == ep->tx.seen) {
		vrb_ep_abort(ep, ECANCELED);
	} else {
		ep->tx.seen = left;
		queue_delayed_work(vrb_wq, &ep->cm.watch,
				   msecs_to_jiffies(VRB_SHUTDOWN_MS));
	}
}

/**
 * vrb_cm_given_up - test whether the peer has given up its connection request
 * @ep: an endpoint of a request
 *
 * The manager refuses to create a queue pair before its event arrives.
 *
 * Context: process, may sleep; cm.mutex held.
 * Return: true if the peer has given up.
 */
bool vrb_cm_given_up(struct vrb_ep *ep)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT };
	int mask;

	return rdma_init_qp_attr(ep->cm.id, &attr, &mask);
}

/* ------------------------------------------------------------ active side */

/* Reserve a free port of TCP at ep->cm.local, and store its number there. */
static int vrb_cm_take_port(struct vrb_ep *ep, struct net *net)
{
	union kofi_ip *local = &ep->cm.local;
	struct socket *sock;
	int err;

	err = sock_create_kern(net, local->sa.sa_family, SOCK_STREAM, IPPROTO_TCP,
			       &sock);
	if (err)
		return err;
	*kofi_ip_port(&local->sa) = 0;
	err = kernel_bind(sock, (void *)&local->sa, kofi_ip_len(&local->sa));
	if (!err)
		err = kernel_getsockname(sock, (void *)&local->sa);
	if (err < 0) {
		sock_release(sock);
		return err;
	}
	/* the port was free: from now on, the device's socket may have it, too */
	sock_set_reuseaddr(sock->sk);
	ep->cm.port = sock;
	return 0;
}

/*
 * Bind the identifier to the local address. If the address has no port, the connection
 * manager chooses one without knowledge of the ports of TCP. A device without a port mapper
 * (siw) connects a TCP socket from that port: choose a port that is free in both.
 */
static int vrb_cm_bind(struct vrb_ep *ep, struct rdma_cm_id *id, struct net *net)
{
	unsigned int tries = VRB_PORT_TRIES;
	int err;

	if (*kofi_ip_port(&ep->cm.local.sa) ||
	    !(ep->dom->ib->iw_driver_flags & IW_F_NO_PORT_MAP))
		return rdma_bind_addr(id, &ep->cm.local.sa);
	do {
		vrb_cm_free_port(ep);
		err = vrb_cm_take_port(ep, net);
		if (err)
			return err;
		err = rdma_bind_addr(id, &ep->cm.local.sa);
	} while ((err == -EADDRINUSE || err == -EADDRNOTAVAIL) && --tries);
	return err;
}

/**
 * vrb_cm_create - create the identifier of an endpoint on the active side
 * @ep: the endpoint
 *
 * The identifier is bound to the endpoint's address, and so to its device.
 *
 * Context: process, may sleep; cm.mutex held.
 * Return: 0; -ENODEV if the address belongs to another device; -EADDRINUSE if no
 * port is free; errors of the connection manager and of TCP sockets.
 */
int vrb_cm_create(struct vrb_ep *ep)
{
	struct net *net = ep->base.domain->fabric->net;
	struct rdma_cm_id *id;
	int err;

	if (!ep->cm.local.sa.sa_family || kofi_ip_any(&ep->cm.local.sa)) {
		__be16 port = ep->cm.local.in4.sin_port;

		err = vrb_if_find_dev(net, ep->dom->ib, ep->cm.local.sa.sa_family,
				      &ep->cm.local);
		if (err)
			return err;
		*kofi_ip_port(&ep->cm.local.sa) = port;
	}
	id = rdma_create_id(net, vrb_cm_event, ep, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	err = vrb_cm_bind(ep, id, net);
	if (!err && id->device != ep->dom->ib)
		err = -ENODEV;
	if (err) {
		vrb_cm_free_port(ep);
		rdma_destroy_id(id);
		return err;
	}
	memcpy(&ep->cm.local, &id->route.addr.src_addr, sizeof(ep->cm.local));
	ep->cm.id = id;
	return 0;
}

/* fi_connect() */
static int vrb_cm_connect(struct fid_ep *fid, const void *addr,
			  const void *param, size_t paramlen)
{
	struct vrb_ep *ep = vrb_ep(fid);
	int err;

	mutex_lock(&ep->cm.mutex);
	err = -READ_ONCE(ep->end.err);
	if (err)
		goto unlock;
	err = -EINVAL;
	if (!kofi_ip_len(addr) ||
	    ((const struct sockaddr *)addr)->sa_family !=
	    ep->cm.local.sa.sa_family)
		goto unlock;
	memcpy(&ep->cm.peer, addr, kofi_ip_len(addr));
	ep->cm.data_len = vrb_cm_pack(ep->cm.data, param, paramlen);
	vrb_cm_tune(ep);
	queue_delayed_work(vrb_wq, &ep->cm.watch,
			   msecs_to_jiffies(ep->tun.connect_timeout));
	err = rdma_resolve_addr(ep->cm.id, NULL, &ep->cm.peer.sa, VRB_RESOLVE_MS);
	if (err) {
		/* an immediate failure, such as a missing route */
		vrb_cm_fail(ep, -err, err, NULL, 0);
		err = 0;
	}
unlock:
	mutex_unlock(&ep->cm.mutex);
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

	mutex_lock(&ep->cm.mutex);
	err = -READ_ONCE(ep->end.err);
	if (err)
		goto unlock;
	ep->cm.data_len = vrb_cm_pack(ep->cm.data, param, paramlen);
	vrb_cm_tune(ep);
	queue_delayed_work(vrb_wq, &ep->cm.watch,
			   msecs_to_jiffies(ep->tun.connect_timeout));
	vrb_cm_param(ep, &conn);
	vrb_rx_push(ep);
	rdma_lock_handler(ep->cm.id);
	err = rdma_accept(ep->cm.id, &conn);
	rdma_unlock_handler(ep->cm.id);
	if (err) {
		/* the peer has given up, so the request cannot be used again */
		vrb_cm_fail(ep, ECONNRESET, err, NULL, 0);
		err = 0;
	}
unlock:
	mutex_unlock(&ep->cm.mutex);
	return err;
}

/* -------------------------------------------------------------- addresses */

/**
 * vrb_addr_set - copy an address of the consumer
 * @to: set to the address
 * @addr: address of the consumer
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

	mutex_lock(&ep->cm.mutex);
	if (!ep->cm.id)
		err = vrb_addr_set(&ep->cm.local, addr);
	mutex_unlock(&ep->cm.mutex);
	return err;
}

/**
 * vrb_addr_get - copy an address to the consumer, if it is known
 * @from: the address
 * @addr: buffer of the consumer
 * @len: in: size of @addr; out: length of the address
 *
 * Return: 0, -EADDRNOTAVAIL, or -FI_ETOOSMALL after copying as much as fits.
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

	mutex_lock(&ep->cm.mutex);
	err = vrb_addr_get(&ep->cm.local, addr, len);
	mutex_unlock(&ep->cm.mutex);
	return err;
}

/* fi_getpeer() */
static int vrb_cm_getpeer(struct fid_ep *fid, void *addr, size_t *len)
{
	struct vrb_ep *ep = vrb_ep(fid);
	int err;

	mutex_lock(&ep->cm.mutex);
	err = kofi_ip_len(&ep->cm.peer.sa) ? vrb_addr_get(&ep->cm.peer, addr, len) :
					   -ENOTCONN;
	mutex_unlock(&ep->cm.mutex);
	return err;
}

/* fi_shutdown(), perhaps from a callback of a queue that vrb_ep_end() waits for */
static int vrb_cm_shutdown(struct fid_ep *fid, u64 flags)
{
	struct vrb_ep *ep = vrb_ep(fid);

	if (vrb_cm_is_established(ep) && vrb_tx_finish(ep)) {
		queue_delayed_work(vrb_wq, &ep->cm.watch,
				   msecs_to_jiffies(VRB_SHUTDOWN_MS));
		return 0;
	}
	/* accept no posts from now on */
	vrb_tx_close(ep);
	vrb_rxq_close(&ep->rxq);
	vrb_ep_abort(ep, ECANCELED);
	return 0;
}

/* fi_getopt() of active and passive endpoints, for options unknown to the core */
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

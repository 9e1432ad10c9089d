// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections: made when there is something to send, used in both directions.
 *
 * Normal operation
 *
 * A post to a peer without a connection queues its transmit and schedules the
 * endpoint's work item. The work item opens an endpoint below and connects. That endpoint
 * is bound to the address at which this one listens. The private data contains our port.
 * With it the peer finds us in its address vector.
 *
 * When the connection is established, transmits leave in the order of their posts. The
 * endpoint's work items and control calls change connections, one at a time under the
 * mutex.
 *
 * Two concurrent attempts
 *
 * If both peers connect concurrently, the attempt of the higher address is used, unless
 * its request has not been sent yet (kofi_ep_cancel_connect()). The other attempt is
 * refused with RXM_REJ_ALREADY. The peer also sends this reason if it has not noticed yet
 * that an earlier connection was closed. So a refused attempt is repeated, with a growing
 * delay, for as long as a connect may take. If the peer connects first, its connection is
 * used.
 *
 * An endpoint that sends to itself has both sides of a connection. Posts do not find the
 * side that was accepted.
 *
 * If a peer with a connection requests another one with another process number, it has
 * restarted: the old connection is closed. A container repeats process numbers. So with
 * the same number the provider below probes the old connection.
 *
 * Termination
 *
 * The peer, the network or a protocol violation terminates a connection. Transmits that
 * have begun fail with the reason, and received messages stay. The next connection sends
 * transmits that have not begun, and transmits of later posts. If RXM_TRIES connections
 * in a row fail before anything is sent, these transmits fail, too.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "rxm.h"

static void rxm_conn_set(struct rxm_conn *c, enum kofi_peer_phase to)
{
	spin_lock_irq(&c->lock);
	kofi_peer_step(&c->base, to);
	spin_unlock_irq(&c->lock);
}

/* -------------------------------------------------------- the endpoint below */

/* Write-space callback: repeat refused posts below. */
static void rxm_conn_space(struct fid_ep *fid, void *context)
{
	rxm_push(context);
}

static int rxm_conn_pool(struct rxm_conn *c, size_t regions, size_t segs)
{
	fid_t fid = &c->msg->fid;

	return fi_setopt(fid, FI_OPT_ENDPOINT, KOFI_OPT_MR_SEGS, &segs,
			 sizeof(segs)) ?:
	       fi_setopt(fid, FI_OPT_ENDPOINT, KOFI_OPT_MR_POOL, &regions,
			 sizeof(regions));
}

/* Without regions, which a device may lack, long messages are sent in segments. */
static int rxm_conn_enable(struct rxm_conn *c)
{
	size_t segs = min_not_zero(c->ep->info->domain_attr->mr_iov_limit,
				   (size_t)RXM_REGION_SEGS);
	int err;

	c->region_segs = rxm_conn_pool(c, RXM_REGIONS, segs) ? 0 : segs;
	err = fi_enable(c->msg);
	if (!err || !c->region_segs || rxm_conn_pool(c, 0, segs))
		return err;
	c->region_segs = 0;
	return fi_enable(c->msg);
}

static int rxm_conn_setup(struct rxm_conn *c)
{
	struct rxm_ep *ep = c->ep;
	fid_t fid = &c->msg->fid;
	unsigned int i;
	int err;

	for_each_set_bit(i, &ep->vals.set, RXM_VALS)
		fi_set_val(fid, FI_PROV_SPECIFIC | i, &ep->vals.val[i]);

	err = fi_ep_bind(c->msg, &ep->eq->fid, 0);
	if (!err)
		err = fi_ep_bind(c->msg, &c->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!err)
		err = kofi_ep_write_space(c->msg, rxm_conn_space);
	if (!err)
		err = rxm_access_setup(c);
	if (!err)
		err = rxm_conn_enable(c);
	return err ?: rxm_rx_fill(c);
}

static int rxm_conn_open(struct rxm_conn *c, struct fi_info *info)
{
	const struct kofi_cq_attr kattr = {
		.poll = KOFI_POLL_SOFTIRQ, .done = true,
	};
	struct fi_cq_attr attr = { .size = RXM_MSG_CQ };
	struct fid_domain *domain = c->ep->dom->msg;
	int err;

	WRITE_ONCE(c->err, 0);
	WRITE_ONCE(c->reason, 0);
	rxm_credits_begin(c);
	c->rx.flushed = false;
	attr.size += info->rx_attr->size;
	err = kofi_cq_open(domain, &attr, &kattr, &c->cq, c);
	if (err)
		return err;
	err = fi_endpoint(domain, info, &c->msg, c);
	if (err) {
		fi_close(&c->cq->fid);
		c->cq = NULL;
		c->msg = NULL;
		return err;
	}
	return rxm_conn_setup(c);
}

/* Wait for the current sender; later ones find KOFI_PEER_CLOSING. */
static void rxm_conn_quiesce(struct rxm_conn *c, int err)
{
	WRITE_ONCE(c->reason, err);
	spin_lock_irq(&c->lock);
	kofi_peer_step(&c->base, KOFI_PEER_CLOSING);
	wait_event_lock_irq(c->ep->idle, c->tx.sender == RXM_SENDER_NONE,
			    c->lock);
	spin_unlock_irq(&c->lock);
}

/* Close the endpoint below, if there is one; transmits in the queue stay. */
static void rxm_conn_drop(struct rxm_conn *c, int err)
{
	rxm_conn_quiesce(c, err);
	if (!c->msg)
		return;
	fi_close(&c->msg->fid);
	fi_close(&c->cq->fid);
	c->msg = NULL;
	c->cq = NULL;
	rxm_tx_fail(c, err);
	rxm_rx_disconnected(c);
}

/* Reset a transmit after its regions have been freed; returns false if it can begin again. */
static bool rxm_op_begun(struct rxm_op *op)
{
	op->regions.nr = 0;
	op->regions.mapped = 0;
	/* an error is set if closing flushed its regions before it used segments */
	return op->seg_no || op->err;
}

/* Schedule another connect attempt, unless the peer connects first. */
static void rxm_conn_later(struct rxm_conn *c)
{
	c->retry.when = jiffies + kofi_retry_next(&c->retry.base);
	rxm_conn_timer_set(c->ep, c->retry.when);
}

/* Count queued transmits as waiting for a connection; move those above the limit. */
static void rxm_conn_keep(struct rxm_conn *c, struct list_head *failed)
{
	struct rxm_op *op, *next;

	lockdep_assert_held(&c->lock);

	list_for_each_entry_safe(op, next, &c->tx.queue, node) {
		if (op->phase == RXM_PHASE_WAITING || rxm_op_wait(op))
			continue;
		list_move_tail(&op->node, failed);
		c->tx.queued--;
	}
}

/*
 * Close the connection, and flush outstanding operations. With KOFI_PEER_WAITING, transmits that
 * have not begun are for the next connection, unless RXM_TRIES connections in a row
 * have failed.
 */
static void rxm_conn_close(struct rxm_conn *c, int err, enum kofi_peer_phase to)
{
	bool lost = c->base.phase == KOFI_PEER_CONNECTED && err != ECANCELED;
	struct rxm_op *op;
	LIST_HEAD(queue);

	rxm_conn_step(c, "end", err);
	rxm_conn_drop(c, err);
	spin_lock_irq(&c->lock);
	op = list_first_entry_or_null(&c->tx.queue, struct rxm_op, node);
	if (to != KOFI_PEER_WAITING || c->retry.tries >= RXM_TRIES) {
		list_splice_init(&c->tx.queue, &queue);
		c->tx.queued = 0;
	} else if (op && rxm_op_begun(op)) {
		list_move(&op->node, &queue);
		c->tx.queued--;
	}
	rxm_conn_keep(c, &queue);
	if (to == KOFI_PEER_WAITING && list_empty(&c->tx.queue))
		to = KOFI_PEER_IDLE;
	kofi_peer_step(&c->base, to);
	spin_unlock_irq(&c->lock);
	rxm_tx_fail_list(&queue, err);
	if (lost)
		kofi_ep_peer_lost(&c->ep->base, &c->base.addr.sa, err);
	WRITE_ONCE(c->err, 0);
	if (to == KOFI_PEER_WAITING) {
		c->retry.tries++;
		rxm_conn_later(c);
	} else {
		c->retry.tries = 0;
		c->retry.base.delay = 0;
		c->retry.trying = false;
	}
	if (to == KOFI_PEER_IDLE && c->base.shares[0])
		list_move_tail(&c->departed, &c->ep->departed);
	rxm_conn_todo(c);
}

/* Record the peer's numbers. Transmits to an earlier process of the peer fail. */
static void rxm_conn_peer(struct rxm_conn *c, u64 id)
{
	LIST_HEAD(queue);

	if (c->retry.tries && c->base.life != id >> 32) {
		spin_lock_irq(&c->lock);
		list_splice_init(&c->tx.queue, &queue);
		c->tx.queued = 0;
		spin_unlock_irq(&c->lock);
		rxm_tx_fail_list(&queue, ECONNRESET);
	}
	c->peer_id = id;
	c->base.life = id >> 32;
}

/* -------------------------------------------------------------- connecting */

/**
 * rxm_info_set - replace an address of an fi_info
 * @to: pointer to the address
 * @len: length of the address
 * @addr: the new address, which is copied
 * @port: copy the port, too; otherwise it is 0
 *
 * Context: process, may sleep.
 * Return: 0, or -ENOMEM and nothing has changed.
 */
int rxm_info_set(void **to, size_t *len, const union kofi_ip *addr, bool port)
{
	size_t n = kofi_ip_len(&addr->sa);
	void *copy = kmemdup(addr, n, GFP_KERNEL);

	if (!copy)
		return -ENOMEM;
	kfree(*to);
	*to = copy;
	*len = n;
	if (!port)
		*kofi_ip_port(copy) = 0;
	return 0;
}

/**
 * rxm_conn_info - make the attributes for the endpoint of a connection
 * @ep: the endpoint
 * @src: address at which @ep listens, or NULL before it is known; the connection uses
 *	it with another port
 *
 * Context: process, may sleep.
 * Return: the info, or NULL without memory.
 */
struct fi_info *rxm_conn_info(struct rxm_ep *ep, const union kofi_ip *src)
{
	struct fi_info *info = fi_dupinfo(ep->info);
	union kofi_ip addr;

	if (!info)
		return NULL;
	info->handle = NULL;
	if (!src && info->src_addr) {
		memcpy(&addr, info->src_addr, kofi_ip_len(info->src_addr));
		src = &addr;
	}
	if (!src || !rxm_info_set(&info->src_addr, &info->src_addrlen, src,
				  false))
		return info;
	fi_freeinfo(info);
	return NULL;
}

/* Set the deadline of attempts: transmits wait as long as a connect may take below. */
static void rxm_conn_begin(struct rxm_conn *c)
{
	unsigned int timeout;

	if (c->retry.trying)
		return;
	c->retry.trying = true;
	if (fi_get_val(&c->msg->fid, KOFI_VAL_CONNECT_TIMEOUT, &timeout))
		timeout = 30000;
	c->retry.base.deadline = jiffies + msecs_to_jiffies(timeout);
}

static int rxm_conn_connect(struct rxm_conn *c)
{
	struct rxm_ep *ep = c->ep;
	struct fi_info *info = rxm_conn_info(ep, &ep->name);
	struct rxm_cm_req req;
	int err = -ENOMEM;

	if (!info)
		return err;
	if (rxm_info_set(&info->dest_addr, &info->dest_addrlen, &c->base.addr,
			 true))
		goto free;
	err = rxm_conn_open(c, info);
	if (err)
		goto free;
	rxm_cm_req_format(&req, be16_to_cpu(*kofi_ip_port(&ep->name.sa)),
			  RXM_EAGER, info->rx_attr->size,
			  (u64)ep->process << 32 | c->base.number,
			  ep->flow ? RXM_FLOW_ON : RXM_FLOW_OFF);
	rxm_conn_begin(c);
	rxm_conn_set(c, KOFI_PEER_REQUESTING);
	rxm_conn_step(c, "connect", 0);
	err = fi_connect(c->msg, &c->base.addr, &req, sizeof(req));
free:
	fi_freeinfo(info);
	return err;
}

static void rxm_conn_connected(struct rxm_conn *c, const void *data, size_t len)
{
	const struct rxm_cm_rsp *rsp = data;

	if (c->base.phase == KOFI_PEER_REQUESTING) {
		if (len != sizeof(*rsp) ||
		    rxm_credits_agree(c, rsp->flow, rsp->rx_size)) {
			rxm_conn_violated(c, "bad answer");
			rxm_conn_close(c, EPROTO, KOFI_PEER_IDLE);
			return;
		}
		rxm_conn_peer(c, rsp->id);
		WRITE_ONCE(c->flow.hold, false);
	}
	c->retry.trying = false;
	WRITE_ONCE(c->connects, c->connects + 1);
	atomic64_inc(&c->ep->stats.connects);
	rxm_conn_step(c, "connected", 0);
	rxm_ops_connected(c);
	if (READ_ONCE(c->flow.hold)) {
		c->retry.when = jiffies + RXM_TX_HOLD;
		rxm_conn_timer_set(c->ep, c->retry.when);
	}
	rxm_push(c);
}

static void rxm_conn_failed(struct rxm_conn *c, int err, const void *data,
			    size_t len)
{
	const struct rxm_cm_rej *rej = data;

	if (c->base.phase != KOFI_PEER_REQUESTING) {
		/* the peer's attempt failed; ours may still succeed */
		rxm_conn_close(c, err, KOFI_PEER_WAITING);
	} else if (c->flow.on && err == EINVAL && !len) {
		/* the peer may have sent before our side completed the handshake */
		rxm_conn_close(c, err, KOFI_PEER_WAITING);
	} else if (len < sizeof(*rej) || rej->version != RXM_CM_VERSION ||
		   rej->reason != RXM_REJ_ALREADY) {
		rxm_conn_close(c, err, KOFI_PEER_IDLE);
	} else if (time_after(jiffies, c->retry.base.deadline)) {
		rxm_conn_close(c, ETIMEDOUT, KOFI_PEER_IDLE);
	} else {
		rxm_conn_drop(c, err);
		rxm_conn_set(c, KOFI_PEER_WAITING);
		rxm_conn_later(c);
	}
}

/* Does a connection wait until c->retry.when, to connect or to send first (credit.c)? */
static bool rxm_conn_waits(const struct rxm_conn *c)
{
	return c->base.phase == KOFI_PEER_WAITING ||
	       (c->base.phase == KOFI_PEER_CONNECTED && READ_ONCE(c->flow.hold));
}

/**
 * rxm_conn_timer - repeat connect attempts, sends and posts of receives that were delayed
 * @work: rxm_ep.timer
 */
void rxm_conn_timer(struct work_struct *work)
{
	struct rxm_ep *ep = container_of(to_delayed_work(work), struct rxm_ep,
					 timer);
	struct rxm_conn *c;

	mutex_lock(&ep->mutex);
	list_for_each_entry(c, &ep->conns, list) {
		if (READ_ONCE(ep->closed) || !rxm_conn_waits(c))
			continue;
		if (time_before(jiffies, c->retry.when)) {
			rxm_conn_timer_set(ep, c->retry.when);
		} else if (c->base.phase == KOFI_PEER_CONNECTED) {
			/* the peer may only read and write, and never send */
			WRITE_ONCE(c->flow.hold, false);
			rxm_push(c);
		} else {
			rxm_conn_set(c, KOFI_PEER_WANTED);
			rxm_conn_todo(c);
		}
	}
	mutex_unlock(&ep->mutex);
	/* the work item posts receives that lacked memory */
	queue_work(rxm_wq, &ep->work);
}

/* --------------------------------------------------------------- accepting */

static void rxm_reject(struct rxm_ep *ep, struct fi_info *info, u8 reason)
{
	const struct rxm_cm_rej rej = {
		.version = RXM_CM_VERSION, .reason = reason,
	};

	atomic64_inc(&ep->stats.refused);
	fi_reject(ep->pep, info->handle, &rej, sizeof(rej));
}

static void rxm_accept(struct rxm_conn *c, struct fi_info *info,
		       const struct rxm_cm_req *req)
{
	const struct rxm_cm_rsp rsp = {
		.id = (u64)c->ep->process << 32 | c->base.number,
		.rx_size = info->rx_attr->size,
		.flow = c->ep->flow ? RXM_FLOW_ON : RXM_FLOW_OFF,
	};
	int err;

	list_del_init(&c->departed);
	rxm_conn_peer(c, req->id);
	err = rxm_conn_open(c, info);
	if (!err)
		err = rxm_credits_agree(c, req->flow, req->rx_size);
	if (err && !c->msg) {
		rxm_reject(c->ep, info, RXM_REJ_REFUSED);
	} else if (!err) {
		rxm_conn_set(c, KOFI_PEER_ACCEPTING);
		rxm_conn_step(c, "accept", 0);
		err = fi_accept(c->msg, &rsp, sizeof(rsp));
	}
	/* our transmits do not depend on the peer's attempt */
	if (err)
		rxm_conn_close(c, -err, KOFI_PEER_WAITING);
}

/*
 * Decide on a request of a peer with the record @c. Closes an older connection or attempt
 * that the request replaces. Returns 0 to accept the request, or the reason to reject it.
 */
static int rxm_request_judge(struct rxm_conn *c, int cmp, u32 process)
{
	switch (kofi_peer_judge(&c->base, cmp, process)) {
	case KOFI_PEER_ACCEPT:
		return 0;
	case KOFI_PEER_REPLACE:
		rxm_conn_drop(c, ECONNABORTED);
		return 0;
	case KOFI_PEER_PRESENT:
		if (!READ_ONCE(c->err)) {
			kofi_ep_probe(c->msg);
			return RXM_REJ_ALREADY;
		}
		fallthrough;
	case KOFI_PEER_RESTARTED:
		rxm_conn_close(c, ECONNRESET, KOFI_PEER_WAITING);
		return 0;
	case KOFI_PEER_CROSSED:
	default:
		/* the peer cannot accept an attempt that has no answer of its network */
		if (kofi_ep_cancel_connect(c->msg))
			return RXM_REJ_ALREADY;
		rxm_conn_drop(c, ECONNABORTED);
		return 0;
	}
}

/* Find the address at which the requesting peer listens, and our address as it sees it. */
static int rxm_request_addrs(struct rxm_ep *ep, const struct fi_info *info,
			     const struct rxm_cm_req *req, union kofi_ip *addr,
			     union kofi_ip *own)
{
	struct sockaddr_storage ss = {};
	int err;

	if (!info->dest_addr || !info->src_addr)
		return -EINVAL;
	memcpy(&ss, info->dest_addr, min(info->dest_addrlen, sizeof(ss)));
	err = kofi_peer_addr(&ss, cpu_to_be16(req->port), addr);
	if (err)
		return err;
	/* an endpoint that listens at all addresses has several */
	memset(&ss, 0, sizeof(ss));
	memcpy(&ss, info->src_addr, min(info->src_addrlen, sizeof(ss)));
	return kofi_peer_addr(&ss, *kofi_ip_port(&ep->name.sa), own);
}

/*
 * Find the record to free for an unknown peer that a limit refuses: among the peers without
 * a connection, one of the address or network that has most of its places. Among several,
 * it is the first one that lost its connection. A record is left out if one of its messages
 * has a receive.
 */
static struct rxm_conn *rxm_conn_victim(struct rxm_ep *ep,
					const union kofi_ip *addr)
{
	const struct kofi_unknown_max max = rxm_unknown_max();
	struct rxm_conn *c, *victim = NULL;
	unsigned int part, most = 0;

	list_for_each_entry(c, &ep->departed, departed) {
		part = kofi_peers_blocks(&ep->peers, &c->base, addr, &max);
		if (part <= most || c->base.phase != KOFI_PEER_IDLE ||
		    !rxm_rx_unclaimed(c))
			continue;
		victim = c;
		most = part;
	}
	return victim;
}

/*
 * Free a record without a connection for an unknown peer that a limit refuses. Messages
 * that it has stored are discarded. Returns false if there is none.
 */
static bool rxm_conn_evict(struct rxm_ep *ep, const union kofi_ip *addr)
{
	struct rxm_conn *c;

	/* memory is short */
	if (!kofi_peer_is_unknown(&ep->peers, addr))
		return false;
	c = rxm_conn_victim(ep, addr);
	if (!c || !rxm_conn_hide(c))
		return false;
	if (!rxm_rx_discard(c)) {
		/* a concurrent post has taken a message */
		rxm_conn_adopt(c);
		return false;
	}
	rxm_conn_free(c);
	atomic64_inc(&ep->stats.evicted);
	return true;
}

/* Find or make the record for a request; returns NULL if it must be refused. */
static struct rxm_conn *rxm_request_conn(struct rxm_ep *ep,
					 const union kofi_ip *addr, bool self,
					 u64 id)
{
	struct rxm_conn *c = rxm_conn_find(ep, addr);

	if (self) {
		/* only for our own current attempt */
		if (!c || c->base.phase != KOFI_PEER_REQUESTING ||
		    id != ((u64)ep->process << 32 | c->base.number))
			return NULL;
		return rxm_conn_new(ep, addr, RXM_ORIGIN_SELF);
	}
	while (!c) {
		c = rxm_conn_new(ep, addr, RXM_ORIGIN_REQUEST);
		if (!c && !rxm_conn_evict(ep, addr))
			break;
	}
	return c;
}

/* Does an accepted side of an earlier connection to ourselves exist, perhaps unread? */
static bool rxm_self_accepted(struct rxm_ep *ep, const union kofi_ip *addr)
{
	struct rxm_conn *c;

	list_for_each_entry(c, &ep->conns, list)
		if (c->self && c->msg &&
		    !memcmp(&c->base.addr, addr, sizeof(*addr)))
			return true;
	return false;
}

static void rxm_request(struct rxm_ep *ep, struct fi_info *info,
			const void *data, size_t len)
{
	const struct rxm_cm_req *req = data;
	int cmp, reason = RXM_REJ_REFUSED;
	union kofi_ip addr, own;
	struct rxm_conn *c;

	if (rxm_cm_req_check(data, len, RXM_EAGER) ||
	    (ep->flow && req->flow != RXM_FLOW_ON) ||
	    rxm_request_addrs(ep, info, req, &addr, &own))
		goto reject;
	cmp = kofi_peer_compare(&addr, &own);
	if (!cmp && rxm_self_accepted(ep, &addr)) {
		reason = RXM_REJ_ALREADY;
		goto reject;
	}
	c = rxm_request_conn(ep, &addr, !cmp, req->id);
	if (!c)
		goto reject;
	reason = rxm_request_judge(c, cmp, req->id >> 32);
	if (reason)
		goto reject;
	rxm_accept(c, info, req);
	return;

reject:
	rxm_reject(ep, info, reason);
}

/* -------------------------------------------------------------- the work item */

static void rxm_event_error(struct rxm_ep *ep)
{
	struct fi_eq_err_entry entry = {};

	if (fi_eq_readerr(ep->eq, &entry, 0) < 0 || !entry.fid ||
	    entry.fid->fclass != FI_CLASS_EP)
		return;
	rxm_conn_failed(entry.context, entry.err, entry.err_data,
			entry.err_data_size);
}

static void rxm_conn_events(struct rxm_ep *ep)
{
	struct {
		struct fi_eq_cm_entry	entry;
		u8			data[KOFI_CM_DATA_MAX];
	} buf;
	ssize_t n;
	u32 event;
	int i;

	for (i = 0; i < RXM_BUDGET && !READ_ONCE(ep->closed); i++) {
		n = fi_eq_read(ep->eq, &event, &buf, sizeof(buf), 0);
		if (n == -FI_EAVAIL) {
			rxm_event_error(ep);
			continue;
		}
		if (n < 0)
			return;
		n -= sizeof(buf.entry);
		switch (event) {
		case FI_CONNREQ:
			rxm_request(ep, buf.entry.info, buf.data, n);
			fi_freeinfo(buf.entry.info);
			cond_resched();
			break;
		case FI_CONNECTED:
			rxm_conn_connected(buf.entry.fid->context, buf.data, n);
			break;
		case FI_SHUTDOWN:
			rxm_conn_close(buf.entry.fid->context, ECONNRESET,
				       KOFI_PEER_WAITING);
			break;
		}
	}
	/* the other parts of the work item come first */
	queue_work(rxm_wq, &ep->work);
}

/* Fail the transmits that wait for the record of a peer. */
static void rxm_pending_fail(struct rxm_ep *ep, const union kofi_ip *addr,
			     int err)
{
	struct rxm_op *op, *next;
	LIST_HEAD(failed);

	spin_lock_irq(&ep->lock);
	list_for_each_entry_safe(op, next, &ep->pending, node)
		if (!memcmp(&op->peer, addr, sizeof(*addr)))
			list_move_tail(&op->node, &failed);
	spin_unlock_irq(&ep->lock);
	rxm_tx_fail_list(&failed, err);
}

/* Make records for peers that have none. */
static void rxm_conn_pending(struct rxm_ep *ep)
{
	union kofi_ip addr;
	struct rxm_op *op;

	for (;;) {
		spin_lock_irq(&ep->lock);
		op = list_first_entry_or_null(&ep->pending, struct rxm_op,
					      node);
		if (op)
			addr = op->peer;
		spin_unlock_irq(&ep->lock);
		if (!op)
			return;
		if (rxm_conn_new(ep, &addr, RXM_ORIGIN_POST))
			continue;
		rxm_pending_fail(ep, &addr, ENOMEM);
	}
}

static void rxm_conn_wanted(struct rxm_conn *c)
{
	int err;

	if (READ_ONCE(c->err)) {
		rxm_conn_close(c, c->err, KOFI_PEER_WAITING);
		return;
	}
	if (c->base.phase == KOFI_PEER_WANTED) {
		err = rxm_conn_connect(c);
		if (err)
			rxm_conn_close(c, -err, KOFI_PEER_IDLE);
	} else if (c->msg) {
		rxm_rx_fill(c);
		rxm_push(c);
	} else {
		rxm_conn_reap(c);
	}
}

static void rxm_conn_look(struct rxm_ep *ep)
{
	struct rxm_conn *c;
	int i;

	for (i = 0; i < RXM_BUDGET && !READ_ONCE(ep->closed); i++) {
		spin_lock_irq(&ep->lock);
		c = list_first_entry_or_null(&ep->todo, struct rxm_conn, todo);
		if (c)
			list_del_init(&c->todo);
		spin_unlock_irq(&ep->lock);
		if (!c)
			return;
		rxm_conn_wanted(c);
		cond_resched();
	}
	/* other contexts wait for the mutex */
	queue_work(rxm_wq, &ep->work);
}

/**
 * rxm_conn_work - process events, records, connections and messages of an endpoint
 * @work: rxm_ep.work
 */
void rxm_conn_work(struct work_struct *work)
{
	struct rxm_ep *ep = container_of(work, struct rxm_ep, work);
	unsigned int noio = memalloc_noio_save();

	mutex_lock(&ep->mutex);
	if (!READ_ONCE(ep->closed) && ep->eq) {
		rxm_conn_events(ep);
		rxm_conn_pending(ep);
		rxm_conn_look(ep);
		rxm_rx_starved(ep);
		rxm_rx_woken(ep);
	}
	mutex_unlock(&ep->mutex);
	memalloc_noio_restore(noio);
}

/* Handler of the event queue below */
void rxm_conn_event(struct fid_eq *eq, void *context)
{
	struct rxm_ep *ep = context;

	queue_work(rxm_wq, &ep->work);
}

/* ------------------------------------------------------------- termination */

/**
 * rxm_conn_drain - terminate all connections of an endpoint permanently
 * @ep: the endpoint, with @ep->closed set
 * @abort: discard the data in the send buffers of the provider below
 *
 * Context: process, may sleep, with the mutex.
 */
void rxm_conn_drain(struct rxm_ep *ep, bool abort)
{
	struct rxm_conn *c, *next;
	LIST_HEAD(pending);

	list_for_each_entry_safe(c, next, &ep->conns, list) {
		if (c->base.phase == KOFI_PEER_DEAD)
			continue;
		if (abort && c->msg) {
			rxm_conn_quiesce(c, ECANCELED);
			kofi_ep_abort(c->msg);
		}
		rxm_conn_close(c, ECANCELED, KOFI_PEER_DEAD);
	}
	list_for_each_entry(c, &ep->conns, list)
		rxm_rx_forget(c);
	spin_lock_irq(&ep->lock);
	list_splice_init(&ep->pending, &pending);
	spin_unlock_irq(&ep->lock);
	rxm_tx_fail_list(&pending, ECANCELED);
}

/* kofi_ep_ops.peer_removed */
void rxm_peer_removed(struct fid_ep *fid, const struct sockaddr *addr)
{
	struct rxm_ep *ep = rxm_ep(fid);
	struct rxm_conn *c;
	union kofi_ip peer;

	if (kofi_ip_peer(addr, kofi_ip_len(addr), &peer))
		return;
	mutex_lock(&ep->mutex);
	c = rxm_conn_find(ep, &peer);
	if (c && c->base.phase != KOFI_PEER_DEAD) {
		rxm_conn_close(c, ECANCELED, KOFI_PEER_DEAD);
		rxm_rx_forget(c);
		rxm_conn_free(c);
	}
	rxm_pending_fail(ep, &peer, ECANCELED);
	mutex_unlock(&ep->mutex);
}


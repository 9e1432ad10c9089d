// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Endpoints: lifecycle and options.
 *
 * Enabling
 *
 * Enabling creates all objects of the device: the connection manager's
 * identifier, completion queues, and the queue pair, which takes receives from
 * then on.
 *
 * Termination
 *
 * vrb_ep_end() terminates an endpoint once, under cm.mutex, for any reason: the
 * consumer, the peer, a failed work request, removal of the device. It refuses
 * further posts, and the connection manager notifies the peer. The queue pair
 * goes into its error state, in which the device flushes all outstanding work
 * requests; a last work request in each direction marks completion. Then the
 * consumer gets its event. A queue pair that does not drain is destroyed before
 * its memory is released. None of these steps waits for the network. A context
 * that cannot sleep writes the reason into ep->end.err and queues the work
 * item.
 *
 * Closing
 *
 * vrb_ep_linger() frees the endpoint's objects of the device and the connection
 * manager, when the endpoint is closed or the device is removed. The work item
 * does not do that: freeing memory may depend on its queue, while the
 * connection manager may wait for memory.
 */
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "verbs.h"

/* Time from a reported refusal until the device must have stopped the queue pair */
#define VRB_REFUSAL	(10 * HZ)
/* Minimum time from the peer's disconnect to the completion of an answer */
#define VRB_ANSWER	(HZ / 10 + 1)
/* Interval at which the queue pair's state is queried */
#define VRB_LOOK	max(HZ / 100, 1)

/* ------------------------------------------------------------ termination */

/*
 * Move the queue pair to its error state. With cm.mutex held; may be called
 * again.
 */
static int vrb_ep_to_error(struct vrb_ep *ep)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	/* on iWARP this would wait for the answer to an attempt to connect */
	if (!ep->end.stopped && (!ep->iwarp || vrb_cm_is_established(ep)))
		rdma_disconnect(ep->cm.id);
	if (!ep->end.stopped)
		ep->end.stopped = jiffies ?: 1;
	return ib_modify_qp(ep->qp, &attr, IB_QP_STATE);
}

/**
 * vrb_ep_fail_qp - let the device start to flush before vrb_ep_end() waits for
 * that
 * @ep: the endpoint
 * @err: reason, a positive error code; ignored if there is a reason already
 *
 * Context: process, may sleep.
 */
void vrb_ep_fail_qp(struct vrb_ep *ep, int err)
{
	unsigned int noio = memalloc_noio_save();

	cmpxchg(&ep->end.err, 0, err);
	mutex_lock(&ep->cm.mutex);
	if (!ep->end.done && ep->qp)
		vrb_ep_to_error(ep);
	mutex_unlock(&ep->cm.mutex);
	memalloc_noio_restore(noio);
}

static int vrb_ep_drain_qp(struct vrb_ep *ep)
{
	int err;

	err = vrb_ep_to_error(ep) ?: vrb_drain_sq(&ep->tx_cq, ep->qp);
	if (err)
		return err;
	return ep->srx ? vrb_srx_drain_ep(ep) :
			 vrb_drain_rq(vrb_ep_rx_cq(ep), ep->qp);
}

/*
 * Wait until all outstanding work requests have completed. If the queue pair
 * does not drain, destroy it: drivers then remove its completions from the
 * queues. On iWARP that waits for an attempt to connect. Returns true if all
 * have completed.
 */
static bool vrb_ep_stop_qp(struct vrb_ep *ep)
{
	int err = vrb_ep_drain_qp(ep);

	if (!err)
		return true;
	dev_err_ratelimited(&ep->dom->ib->dev,
			    "kofi_verbs: queue pair does not drain: %d\n", err);
	ep->qp = NULL;
	vrb_linger_destroy_qp(ep->cm.id, &ep->tx_cq, &ep->rx_cq);
	/* a softirq may still deliver completions that it took before: wait */
	synchronize_rcu();
	return false;
}

/**
 * vrb_ep_end - terminate an endpoint now
 * @ep: the endpoint
 * @err: reason, a positive error code; ignored if there is a reason already
 *
 * When this returns, all operations have completed, and the consumer's event is
 * queued.
 *
 * Context: process, may sleep; never waits for the network.
 */
void vrb_ep_end(struct vrb_ep *ep, int err)
{
	/* freeing memory may depend on the endpoint */
	unsigned int noio = memalloc_noio_save();
	bool drained = true;

	cmpxchg(&ep->end.err, 0, err);
	mutex_lock(&ep->cm.mutex);
	if (ep->end.done)
		goto unlock;
	WRITE_ONCE(ep->end.done, true);
	vrb_cm_step(&ep->base.obj, "end", READ_ONCE(ep->end.err));
	vrb_tx_close(ep);
	vrb_rxq_close(&ep->rxq);
	vrb_mr_ended(ep);
	if (ep->qp)
		drained = vrb_ep_stop_qp(ep);
	vrb_read_mrs_end(ep);
	vrb_mr_flush(ep, drained);
	vrb_tx_flush(ep, drained);
	vrb_rxq_flush(&ep->rxq);

	err = READ_ONCE(ep->end.err);
	/* in the order of states: the endpoint may be connected in between */
	if (!kofi_ep_connect_failed(&ep->base,
				    err == ESHUTDOWN ? ECONNRESET : err, -err,
				    NULL, 0))
		kofi_ep_disconnected(&ep->base, err);
unlock:
	mutex_unlock(&ep->cm.mutex);
	memalloc_noio_restore(noio);
}

/**
 * vrb_ep_linger - free an endpoint's objects of the device and the connection
 * manager
 * @ep: an endpoint that has ended
 *
 * Context: process, may sleep.
 */
void vrb_ep_linger(struct vrb_ep *ep)
{
	unsigned int noio = memalloc_noio_save();

	/* it uses the device, too, and is not queued again */
	cancel_work_sync(&ep->grow);
	mutex_lock(&ep->cm.mutex);
	if (ep->cm.id)
		vrb_linger_leave(ep);
	mutex_unlock(&ep->cm.mutex);
	memalloc_noio_restore(noio);
}

static void vrb_ep_drain(struct fid_ep *fid)
{
	vrb_ep_end(vrb_ep(fid), ECANCELED);
}

/* Return until when the device may stop the queue pair by itself; 0: not at all. */
static unsigned long vrb_ep_grace(const struct vrb_ep *ep)
{
	unsigned long refused = READ_ONCE(ep->end.refused);
	unsigned long left = READ_ONCE(ep->cm.left);

	if (refused)
		return refused + VRB_REFUSAL ?: 1;
	if (left && !ep->iwarp && vrb_tx_outstanding(ep))
		return left + VRB_ANSWER ?: 1;
	return 0;
}

/*
 * Test whether the device will stop the queue pair by itself. It does so after
 * it has refused a request of the peer, and after the peer has refused one of
 * ours. If the queue pair is stopped earlier, the device does not send its
 * refusal. The peer's refusal, which usually arrives before the connection
 * manager's message, would be dropped. Then one side would not learn why the
 * connection was terminated.
 */
static bool vrb_ep_stops(struct vrb_ep *ep)
{
	unsigned long until = vrb_ep_grace(ep);
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	bool stops = false;
	unsigned int noio;

	if (!until || time_after_eq(jiffies, until))
		return false;
	noio = memalloc_noio_save();
	mutex_lock(&ep->cm.mutex);
	if (!ep->end.done && ep->qp &&
	    !ib_query_qp(ep->qp, &attr, IB_QP_STATE, &init))
		stops = attr.qp_state != IB_QPS_ERR;
	mutex_unlock(&ep->cm.mutex);
	memalloc_noio_restore(noio);
	return stops;
}

static void vrb_ep_work(struct work_struct *work)
{
	struct vrb_ep *ep = container_of(to_delayed_work(work), struct vrb_ep,
					 work);

	/* another context in vrb_ep_end() may hold the mutex and wait for memory */
	if (READ_ONCE(ep->end.done))
		return;
	if (READ_ONCE(ep->end.err)) {
		if (vrb_ep_stops(ep)) {
			/* later posts would be lost */
			if (READ_ONCE(ep->cm.left))
				vrb_tx_close(ep);
			mod_delayed_work(vrb_wq, &ep->work, VRB_LOOK);
		} else {
			vrb_ep_end(ep, ECANCELED);
		}
	} else {
		vrb_rx_repost(ep);
		vrb_mr_repost(ep);
	}
}

static void vrb_ep_retry_timer(struct timer_list *t)
{
	struct vrb_ep *ep = container_of(t, struct vrb_ep, retry);

	/* receives first: the peer may answer a transmit at once */
	vrb_rx_push(ep);
	vrb_tx_push(ep);
	kofi_ep_unblock(&ep->base);
}

/* --------------------------------------------------------------- enabling */

static void vrb_qp_event(struct ib_event *event, void *context)
{
	struct vrb_ep *ep = context;
	struct rdma_cm_id *id;

	/* the endpoint is closed; the queue pair waits for the connection manager */
	if (!ep)
		return;
	/* the endpoint may be closed concurrently, and is freed by RCU */
	guard(rcu)();
	switch (event->event) {
	case IB_EVENT_COMM_EST:
		/* the peer's first message arrived before the connection manager's */
		id = READ_ONCE(ep->cm.id);
		if (id)
			rdma_notify(id, event->event);
		break;
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
		/* keep the first time: a peer must not postpone the termination */
		if (!ep->iwarp)
			cmpxchg(&ep->end.refused, 0, jiffies ?: 1);
		fallthrough;
	case IB_EVENT_QP_FATAL:
		vrb_ep_abort(ep, EIO);
		break;
	case IB_EVENT_QP_LAST_WQE_REACHED:
		/* the only sign of an error with a shared receive context */
		if (READ_ONCE(ep->base.state) == KOFI_EP_CONNECTED)
			vrb_ep_abort(ep, ESHUTDOWN);
		break;
	default:
		break;
	}
}

static void vrb_ep_close_cqs(struct vrb_ep *ep)
{
	vrb_epcq_close(&ep->tx_cq);
	vrb_epcq_close(&ep->rx_cq);
}

/*
 * Open queues with room for every work request, including the last ones of
 * vrb_ep_end().
 */
static int vrb_ep_open_cqs(struct vrb_ep *ep)
{
	unsigned int rx = ep->base.info->rx_attr->size + 1;
	unsigned int tx = ep->limits.sq_size + ep->mr.wrs + VRB_OWN_WRS;
	struct kofi_cq *tx_cq = ep->base.tx_cq, *rx_cq = ep->base.rx_cq;
	bool counted = ep->base.counted;
	int err;

	if (ep->srx)
		return vrb_epcq_open(&ep->tx_cq, ep->dom, tx_cq, counted, tx);
	if (tx_cq == rx_cq && tx + rx <= ep->dom->ib->attrs.max_cqe) {
		ep->rxq.cq = &ep->tx_cq;
		return vrb_epcq_open(&ep->tx_cq, ep->dom, tx_cq, counted,
				     tx + rx);
	}
	ep->rxq.cq = &ep->rx_cq;
	err = vrb_epcq_open(&ep->tx_cq, ep->dom, tx_cq, counted, tx);
	if (err)
		return err;
	err = vrb_epcq_open(&ep->rx_cq, ep->dom, rx_cq, counted, rx);
	if (err)
		vrb_epcq_close(&ep->tx_cq);
	return err;
}

/* Choose the size of the queue pair. */
static int vrb_ep_size(struct vrb_ep *ep)
{
	const struct ib_device_attr *dev = &ep->dom->ib->attrs;
	const struct fi_info *info = ep->base.info;
	size_t most = max(vrb_info_queue(ep->dom->ib) - VRB_OWN_WRS, 0);
	size_t mr_wrs = vrb_mr_ep_wrs(ep);
	unsigned int chain = 0;

	ep->iwarp = rdma_protocol_iwarp(ep->dom->ib, ep->cm.id->port_num);
	ep->limits.send_sge = vrb_map_room(info->tx_attr->iov_limit);
	/* the second limit, if set, is the most that is fast */
	ep->limits.read_sge = clamp_t(unsigned int,
				      min_not_zero((unsigned int)dev->max_sge_rd,
						   (unsigned int)dev->max_sgl_rd),
				      1, ep->limits.send_sge);
	/*
	 * Long vectors of reads and writes take several work requests, on iWARP
	 * one for each segment.
	 */
	if (info->caps & FI_RMA)
		chain = ep->iwarp ? VRB_CHAIN_MAX : VRB_CHAIN_MAX / 4;
	if (size_add(mr_wrs, info->tx_attr->size) > most)
		return -EINVAL;
	ep->mr.wrs = mr_wrs;
	ep->mr.free = mr_wrs;
	/* one operation gets at most half of the queue */
	ep->limits.sq_size = min(max(info->tx_attr->size + chain, 2 * chain),
				 most - mr_wrs);
	if (info->handle)
		return 0;
	/* the peer may support less, which is used then */
	ep->limits.responder_resources = min(dev->max_qp_rd_atom, U8_MAX);
	ep->limits.initiator_depth = min(dev->max_qp_init_rd_atom, U8_MAX);
	return 0;
}

static int vrb_ep_try_qp(struct vrb_ep *ep, unsigned int inject)
{
	const struct fi_info *info = ep->base.info;
	struct ib_srq *srq = ep->srx ? ep->srx->rxq.srq : NULL;
	struct ib_qp_init_attr attr = {
		.event_handler	= vrb_qp_event,
		.qp_context	= ep,
		.send_cq	= ep->tx_cq.ib,
		.recv_cq	= vrb_ep_rx_cq(ep)->ib,
		.srq		= srq,
		.cap = {
			.max_send_wr	= ep->limits.sq_size + ep->mr.wrs +
					  VRB_OWN_WRS,
			.max_recv_wr	= srq ? 0 : info->rx_attr->size + 1,
			.max_send_sge	= ep->limits.send_sge,
			.max_recv_sge	= ep->rxq.sge,
			.max_inline_data = inject,
		},
		.sq_sig_type	= IB_SIGNAL_REQ_WR,
		.qp_type	= IB_QPT_RC,
	};
	int err;

	err = rdma_create_qp(ep->cm.id, ep->dom->pd, &attr);
	if (err)
		return err;
	ep->qp = ep->cm.id->qp;
	ep->limits.max_inline = min(inject, attr.cap.max_inline_data);
	return 0;
}

/*
 * Create the queue pair. Some devices refuse one with more inline bytes than
 * they support, others grant none. A payload that cannot be inlined is mapped.
 * The first endpoint determines the number that later endpoints request.
 */
static int vrb_ep_create_qp(struct vrb_ep *ep)
{
	const struct fi_info *info = ep->base.info;
	const unsigned int want = min(info->tx_attr->inject_size,
				      READ_ONCE(ep->dom->max_inline));
	unsigned int inject = want;
	int err;

	while ((err = vrb_ep_try_qp(ep, inject))) {
		if (!inject)
			return info->handle && vrb_cm_given_up(ep) ?
			       -ECONNRESET : err;
		inject /= 2;
	}
	if (inject < want)
		WRITE_ONCE(ep->dom->max_inline, inject);
	return 0;
}

static int vrb_ep_enable(struct fid_ep *fid)
{
	struct vrb_ep *ep = vrb_ep(fid);
	bool made_id = false;
	int err;

	mutex_lock(&ep->cm.mutex);
	err = READ_ONCE(ep->dom->gone) ? -ENODEV : -READ_ONCE(ep->end.err);
	if (err)
		goto unlock;
	if (!ep->cm.id) {
		err = vrb_cm_create(ep);
		if (err)
			goto unlock;
		made_id = true;
	}
	err = vrb_ep_size(ep);
	if (err)
		goto destroy_id;
	err = vrb_linger_prepare(ep);
	if (err)
		goto destroy_id;
	err = vrb_tx_init(ep);
	if (err)
		goto free_linger;
	if (ep->base.srx)
		err = vrb_srx_attach(ep);
	else
		err = vrb_rxq_init(&ep->rxq);
	if (err)
		goto free_tx;
	err = vrb_ep_open_cqs(ep);
	if (err)
		goto free_rx;
	err = vrb_ep_create_qp(ep);
	if (err)
		goto close_cqs;
	mutex_unlock(&ep->cm.mutex);
	return 0;

close_cqs:
	vrb_ep_close_cqs(ep);
free_rx:
	WRITE_ONCE(ep->srx, NULL);
	vrb_rxq_exit(&ep->rxq);
free_tx:
	vrb_tx_exit(ep);
free_linger:
	kfree(ep->cm.linger);
	ep->cm.linger = NULL;
destroy_id:
	if (made_id) {
		vrb_cm_free_port(ep);
		rdma_destroy_id(ep->cm.id);
		ep->cm.id = NULL;
	}
unlock:
	mutex_unlock(&ep->cm.mutex);
	return err;
}

/* ------------------------------------------------------------------- life */

static int vrb_ep_close(struct fi_fid *fid)
{
	struct vrb_ep *ep = container_of(fid, struct vrb_ep, base.ep.fid);

	/* until then a removal of the device must find the endpoint */
	vrb_ep_linger(ep);
	mutex_lock(&ep->dom->dev->mutex);
	list_del(&ep->dom_node);
	mutex_unlock(&ep->dom->dev->mutex);

	/* drained, so nothing queues this again */
	cancel_delayed_work_sync(&ep->cm.watch);
	/* but the post of a receive that has completed may not have returned */
	disable_delayed_work_sync(&ep->work);
	timer_shutdown_sync(&ep->retry);
	timer_shutdown_sync(&ep->tx.idle);
	timer_shutdown_sync(&ep->tx.overdue);
	vrb_mr_ep_exit(ep);
	kofi_ep_exit(&ep->base);
	vrb_rxq_exit(&ep->rxq);
	vrb_tx_exit(ep);
	mutex_destroy(&ep->cm.mutex);
	/* vrb_qp_event() may still use it */
	kfree_rcu_mightsleep(ep);
	return 0;
}

/* ---------------------------------------------------------------- options */

static int vrb_ep_control(struct fi_fid *fid, int command, void *arg)
{
	struct vrb_ep *ep = container_of(fid, struct vrb_ep, base.ep.fid);
	struct fi_fid_var *var = arg;

	if (command == FI_GET_VAL)
		return vrb_tunables_get(&ep->tun, var->name, var->val);
	if (READ_ONCE(ep->base.state) > KOFI_EP_ENABLED)
		return -EBUSY;
	/* on iWARP a send completes when TCP has the data, and TCP retries for long */
	if ((var->name == (int)KOFI_VAL_KEEPALIVE_IDLE ||
	     var->name == (int)KOFI_VAL_SILENCE_TIMEOUT) &&
	    rdma_protocol_iwarp(ep->dom->ib, rdma_start_port(ep->dom->ib)))
		return -EOPNOTSUPP;
	return vrb_tunables_set(&ep->tun, var->name, var->val);
}

static int vrb_ep_getopt(fid_t fid, int level, int name, void *val, size_t *len)
{
	struct vrb_ep *ep = container_of(fid, struct vrb_ep, base.ep.fid);
	size_t most, *conn = vrb_tunables_conn(&ep->tun, name, &most);

	return conn ? kofi_opt_get_size(*conn, val, len) :
		      vrb_cm_getopt(fid, level, name, val, len);
}

static int vrb_ep_setopt(fid_t fid, int level, int name, const void *val,
			 size_t len)
{
	struct vrb_ep *ep = container_of(fid, struct vrb_ep, base.ep.fid);
	size_t most, *conn = vrb_tunables_conn(&ep->tun, name, &most);
	const struct kofi_ep_limits limits = {
		.size = ep->dom->max_wr,
		.msg = ep->limits.max_msg,
		.inject = VRB_INJECT_MAX,
	};

	if (conn)
		return kofi_ep_set_size(&ep->base, conn, val, len, 0, most);
	return kofi_ep_set_limit(&ep->base, name, val, len, &limits);
}

/* Memory of the provider, without the driver's */
static size_t vrb_ep_bytes(const struct vrb_ep *ep)
{
	const struct vrb_read_mrs *s = &ep->read_mrs;
	size_t bytes = sizeof(*ep) + vrb_recs_bytes(&ep->tx.ops) +
		       vrb_recs_bytes(&ep->rxq.ops);

	if (READ_ONCE(ep->tx.blocks.mem))
		bytes += VRB_BLOCKS * sizeof(*ep->tx.blocks.mem);
	if (READ_ONCE(s->mem))
		bytes += s->pages * sizeof(*s->sg) +
			 VRB_READ_MRS * sizeof(*s->mem);
	return bytes;
}

static void vrb_ep_stats(struct kofi_obj *obj, kofi_stat_fn fn, void *arg)
{
	struct kofi_ep *base = container_of(obj, struct kofi_ep, obj);
	struct vrb_ep *ep = container_of(base, struct vrb_ep, base);
	const struct vrb_tx_stats *tx = &ep->tx.stats;

	fn(arg, "memory", vrb_ep_bytes(ep));
	fn(arg, "read_mrs", READ_ONCE(ep->read_mrs.nr));
	fn(arg, "tx_wrs", READ_ONCE(tx->wrs));
	fn(arg, "tx_unsignaled", READ_ONCE(tx->unsignaled));
	fn(arg, "tx_inline", READ_ONCE(tx->inlined));
	fn(arg, "tx_full", READ_ONCE(tx->full));
	fn(arg, "rx_deferred", READ_ONCE(ep->rxq.waited));
}

/* ---------------------------------------------------------------- opening */

/* Refuse counters of peers' accesses, which devices do not report. */
static int vrb_ep_bind(struct fi_fid *fid, struct fi_fid *bfid, u64 flags)
{
	return bfid->fclass == FI_CLASS_CNTR &&
	       flags & (FI_REMOTE_READ | FI_REMOTE_WRITE) ? -EOPNOTSUPP : 0;
}

static const struct fi_ops vrb_ep_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= vrb_ep_close,
	.bind		= vrb_ep_bind,
	.control	= vrb_ep_control,
};

static const struct fi_ops_ep vrb_ep_opt_ops = {
	.size		= sizeof(struct fi_ops_ep),
	.getopt		= vrb_ep_getopt,
	.setopt		= vrb_ep_setopt,
};

static const struct fi_ops_msg vrb_ep_msg_ops = {
	.size		= sizeof(struct fi_ops_msg),
	.sendmsg	= vrb_tx_post,
	.recvmsg	= vrb_rx_post,
};

static const struct kofi_obj_ops vrb_ep_obj_ops = {
	.stats		= vrb_ep_stats,
};

static const struct kofi_ep_ops vrb_ep_ops = {
	.fid		= &vrb_ep_fid_ops,
	.ep		= &vrb_ep_opt_ops,
	.cm		= &vrb_ep_cm_ops,
	.msg		= &vrb_ep_msg_ops,
	.rma		= &vrb_rma_ops,
	.atomic		= &vrb_atomic_ops,
	.obj		= &vrb_ep_obj_ops,
	.enable		= vrb_ep_enable,
	.drain		= vrb_ep_drain,
};

/* Check and set up the parts that need the device, while it is present. */
static int vrb_ep_attach(struct vrb_ep *ep, struct fi_info *info)
{
	struct ib_device *ib = ep->dom->ib;
	u32 port;
	int err;

	lockdep_assert_held(&ep->dom->dev->mutex);

	if (ep->dom->gone)
		return -ENODEV;
	/* all ports of a device have the same attributes, except for the link */
	port = rdma_start_port(ib);
	err = vrb_info_check_ep(info, ib, port, &ep->limits.max_msg);
	if (err)
		return err;
	vrb_tunables_device(&ep->tun, ib);
	ep->base.op_flags[1] &= ~FI_MULTI_RECV;
	/* a send completes when TCP has the data */
	if (rdma_protocol_iwarp(ib, port))
		ep->base.op_flags[0] &= ~FI_DELIVERY_COMPLETE;
	if (info->handle) {
		mutex_lock(&ep->cm.mutex);
		err = vrb_req_take(ep, info->handle);
		mutex_unlock(&ep->cm.mutex);
		if (err)
			return err;
	}
	list_add_tail(&ep->dom_node, &ep->dom->eps);
	return 0;
}

/* fi_endpoint() */
int vrb_endpoint(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **fid, void *context)
{
	struct vrb_domain *dom = vrb_dom(domain);
	struct vrb_ep *ep;
	int err;

	if (info->ep_attr->type != FI_EP_MSG ||
	    (info->src_addr && !kofi_ip_len(info->src_addr)))
		return -EINVAL;
	ep = kzalloc_node(sizeof(*ep), GFP_KERNEL, dom->base.node);
	if (!ep)
		return -ENOMEM;
	ep->dom = dom;
	mutex_init(&ep->cm.mutex);
	INIT_DELAYED_WORK(&ep->work, vrb_ep_work);
	INIT_DELAYED_WORK(&ep->cm.watch, vrb_cm_watch);
	INIT_WORK(&ep->grow, vrb_read_mrs_grow);
	timer_setup(&ep->retry, vrb_ep_retry_timer, 0);
	timer_setup(&ep->tx.idle, vrb_tx_idle, 0);
	timer_setup(&ep->tx.overdue, vrb_tx_overdue, 0);
	vrb_tunables_init(&ep->tun);
	vrb_mr_ep_init(ep);
	spin_lock_init(&ep->tx.lock);
	vrb_rxq_prepare(&ep->rxq, &ep->base, dom, &ep->retry);
	ep->rxq.ep = ep;
	if (info->src_addr)
		memcpy(&ep->cm.local, info->src_addr,
		       kofi_ip_len(info->src_addr));

	err = kofi_ep_init(&ep->base, domain, info, &vrb_ep_ops, context);
	if (err)
		goto free;
	mutex_lock(&dom->dev->mutex);
	err = vrb_ep_attach(ep, info);
	mutex_unlock(&dom->dev->mutex);
	if (err)
		goto exit;
	*fid = &ep->base.ep;
	return 0;

exit:
	kofi_ep_exit(&ep->base);
free:
	timer_shutdown_sync(&ep->retry);
	timer_shutdown_sync(&ep->tx.idle);
	timer_shutdown_sync(&ep->tx.overdue);
	mutex_destroy(&ep->cm.mutex);
	kfree(ep);
	return err;
}

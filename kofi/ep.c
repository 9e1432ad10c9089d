// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Active endpoints: states, opening, draining (fi_endpoint(3)).
 *
 * The provider owns the endpoint and embeds struct kofi_ep. The core keeps its place in the
 * object tree, its bindings (ep_bind.c), state and statistics, and passes its completions to
 * the queues (complete.c).
 *
 * States
 *
 * States advance in one direction, each step taken once, by cmpxchg. The last step of a
 * connection attempt or a connection owns its event, which is part of the endpoint.
 * ep->lock makes step and queuing atomic, so FI_SHUTDOWN never overtakes FI_CONNECTED.
 *
 * Statistics
 *
 * Counters of completions are plain numbers under the lock of their direction's queue,
 * which completing takes in any case. The queue's owner counts completions that bypass it.
 *
 * Closing
 *
 * fi_close() drains the endpoint: the provider completes all outstanding operations, the
 * queues finish the callbacks. It then calls the provider's close, which calls
 * kofi_ep_exit(): queued events are purged, bindings are released. Unread entries stay.
 */
#include <linux/slab.h>

#include <linux/kofi/debug.h>
#include <linux/kofi/lib.h>

#include "cq.h"
#include "latency.h"
#include "kofi_trace.h"

#define KOFI_MIN_MULTI	64	/* FI_OPT_MIN_MULTI_RECV, as userspace has it */

static struct lock_class_key kofi_ep_msg_config;

/* ------------------------------------------------------------------- states */

static bool kofi_ep_step_locked(struct kofi_ep *ep, int from, int to)
{
	if (cmpxchg(&ep->state, from, to) != from)
		return false;
	trace_kofi_ep_state(ep, from, to);
	return true;
}

/**
 * kofi_ep_step - take a step that owns no event
 * @ep: the endpoint
 * @from: state it must be in
 * @to: state it shall be in
 *
 * Context: any.
 * Return: true for the one caller that made the step.
 */
bool kofi_ep_step(struct kofi_ep *ep, int from, int to)
{
	unsigned long flags;
	bool step;

	spin_lock_irqsave(&ep->lock, flags);
	step = kofi_ep_step_locked(ep, from, to);
	spin_unlock_irqrestore(&ep->lock, flags);
	return step;
}

/* Finish a connection attempt with success or failure. */
static bool kofi_ep_conn_end(struct kofi_ep *ep, int to, int err,
			     int prov_errno, const void *data, size_t len)
{
	unsigned long flags;
	bool step;

	if (WARN_ON_ONCE(len > sizeof(ep->ev.data)))
		len = sizeof(ep->ev.data);
	spin_lock_irqsave(&ep->lock, flags);
	step = kofi_ep_step_locked(ep, KOFI_EP_CONNECTING, to);
	if (step) {
		if (len)
			memcpy(ep->ev.data, data, len);
		ep->ev.conn.event = FI_CONNECTED;
		ep->ev.conn.err = err;
		ep->ev.conn.prov_errno = prov_errno;
		ep->ev.conn.data = ep->ev.data;
		ep->ev.conn.data_len = len;
		kofi_eq_queue(ep->eq, &ep->ev.conn);
		kofi_notify(&ep->obj, &(struct kofi_notice) {
			.kind = err ? KOFI_EVENT_CONNECT_FAILED :
				      KOFI_EVENT_CONNECTED,
			.err = err, .prov_errno = prov_errno,
		});
	}
	spin_unlock_irqrestore(&ep->lock, flags);
	if (step)
		kofi_ep_unblock(ep);
	return step;
}

/**
 * kofi_ep_tx_connecting - check for a transmit while the connection is established
 * @ep: an endpoint that was connecting or accepting
 *
 * The peer of an accepting endpoint may be notified of the connection first, and its
 * first message may arrive before FI_CONNECTED. A reply to it is refused with -EAGAIN and
 * may be posted again after the write-space callback.
 *
 * Context: any.
 * Return: as kofi_ep_tx_state().
 */
int kofi_ep_tx_connecting(struct kofi_ep *ep)
{
	if (!ep->info->handle)
		return -ENOTCONN;
	/* the attempt may have finished before the mark was visible */
	switch (kofi_ep_retry(ep, READ_ONCE(ep->state))) {
	case KOFI_EP_CONNECTING:
		return -EAGAIN;
	case KOFI_EP_CONNECTED:
		return 0;
	case KOFI_EP_SHUTDOWN:
		return -ESHUTDOWN;
	default:
		return -ENOTCONN;
	}
}
EXPORT_SYMBOL_GPL(kofi_ep_tx_connecting);

/**
 * kofi_ep_connected - report an established connection
 * @ep: an endpoint that connects or accepts
 * @data: private data of the peer's fi_accept(), copied
 * @len: bytes at @data, at most %KOFI_CM_DATA_MAX
 *
 * Queues FI_CONNECTED; transmits can be posted from now on.
 *
 * Context: any.
 * Return: true for the one caller that finished the attempt.
 */
bool kofi_ep_connected(struct kofi_ep *ep, const void *data, size_t len)
{
	return kofi_ep_conn_end(ep, KOFI_EP_CONNECTED, 0, 0, data, len);
}
EXPORT_SYMBOL_GPL(kofi_ep_connected);

/**
 * kofi_ep_connect_failed - report a failed connection attempt
 * @ep: an endpoint that connects or accepts
 * @err: reason, a positive error code
 * @prov_errno: code of the provider
 * @data: private data of the peer's fi_reject(), copied
 * @len: bytes at @data, at most %KOFI_CM_DATA_MAX
 *
 * Queues the error entry; the endpoint can only be closed.
 *
 * Context: any.
 * Return: true for the one caller that finished the attempt.
 */
bool kofi_ep_connect_failed(struct kofi_ep *ep, int err, int prov_errno,
			    const void *data, size_t len)
{
	if (WARN_ON_ONCE(err <= 0))
		err = FI_EOTHER;
	return kofi_ep_conn_end(ep, KOFI_EP_SHUTDOWN, err, prov_errno, data,
				len);
}
EXPORT_SYMBOL_GPL(kofi_ep_connect_failed);

/**
 * kofi_ep_disconnected - report a closed or lost connection
 * @ep: a connected endpoint
 * @err: reason, a positive error code: %ESHUTDOWN if the peer has closed the connection,
 *	%ECANCELED if this side has; any other code means that it was lost
 *
 * Queues FI_SHUTDOWN in each case; transmits are refused from now on.
 *
 * Context: any.
 * Return: true for the one caller that took the step.
 */
bool kofi_ep_disconnected(struct kofi_ep *ep, int err)
{
	bool lost = err != ESHUTDOWN && err != ECANCELED;
	unsigned long flags;
	bool step;

	spin_lock_irqsave(&ep->lock, flags);
	step = kofi_ep_step_locked(ep, KOFI_EP_CONNECTED, KOFI_EP_SHUTDOWN);
	if (step) {
		kofi_eq_queue(ep->eq, &ep->ev.down);
		kofi_notify(&ep->obj, &(struct kofi_notice) {
			.kind = lost ? KOFI_EVENT_LOST : KOFI_EVENT_SHUTDOWN,
			.err = lost ? err : 0,
			.reason = err == ESHUTDOWN ? "closed by the peer" : NULL,
		});
	}
	spin_unlock_irqrestore(&ep->lock, flags);
	return step;
}
EXPORT_SYMBOL_GPL(kofi_ep_disconnected);

/**
 * kofi_ep_peer_lost - report the loss of the connection to a peer
 * @ep: an unconnected endpoint
 * @addr: address of the peer; an address that is not in the address vector is not reported
 * @err: reason, a positive error code
 *
 * Queues an error entry with the peer's fi_addr_t in its data. Outstanding operations
 * have completed with the reason before; the entry serves consumers without outstanding
 * operations. The next operation connects again.
 *
 * Context: any.
 */
void kofi_ep_peer_lost(struct kofi_ep *ep, const struct sockaddr *addr, int err)
{
	const struct kofi_event ev = {
		.fid = &ep->ep.fid, .context = ep->ep.fid.context,
		.err = err, .prov_errno = err,
		.data_val = kofi_av_source(ep->av, addr),
	};

	kofi_notify(&ep->obj, &(struct kofi_notice) {
		.kind = KOFI_EVENT_PEER_LOST, .err = err, .peer = addr,
	});
	if (ev.data_val != FI_ADDR_NOTAVAIL)
		kofi_eq_report_peer(ep->eq, &ev);
}
EXPORT_SYMBOL_GPL(kofi_ep_peer_lost);

/* ----------------------------------------------------------------- enabling */

/**
 * kofi_ep_enable - fi_enable() of an endpoint that is not scalable
 * @kep: the endpoint
 *
 * Context: process, may sleep.
 * Return: as fi_enable().
 */
int kofi_ep_enable(struct kofi_ep *kep)
{
	int ret = 0;

	mutex_lock(&kep->config);
	switch (READ_ONCE(kep->state)) {
	case KOFI_EP_IDLE:
		ret = kofi_ep_check(kep);
		if (!ret && kep->rx_cq && kep->info->caps & FI_SOURCE_ERR)
			ret = kofi_cq_add_sources(kep->rx_cq);
		if (!ret)
			ret = kofi_mr_pool_open(kep);
		if (!ret && kep->ctx)
			ret = kep->ctx->ops->enable(kep);
		else if (!ret && kep->ops->enable)
			ret = kep->ops->enable(&kep->ep);
		if (!ret && !kofi_ep_step(kep, KOFI_EP_IDLE, KOFI_EP_ENABLED))
			ret = -FI_EOPBADSTATE;
		if (ret)
			kofi_mr_pool_close(kep);
		break;
	case KOFI_EP_SHUTDOWN:
		ret = -FI_EOPBADSTATE;
		break;
	}
	mutex_unlock(&kep->config);
	return ret;
}

/**
 * fi_enable - prepare an endpoint for receives, and for connecting or sending
 * @ep: an endpoint with its queues bound; a shared receive context,
 *	which need not be enabled; or a scalable endpoint, for all its open contexts
 *
 * fi_endpoint(3). fi_connect() and fi_accept() enable an endpoint that is not enabled;
 * enabling an endpoint again does nothing. A context of a scalable endpoint that lacks a
 * queue is not enabled, and the call succeeds; call it again after the last queue has
 * been bound.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL; -FI_ENOEQ for a connected type without event queue;
 * -FI_ENOAV for another type without address vector; -FI_ENOCQ if a direction of its
 * capabilities has neither completion queue nor counter;
 * -FI_EOPBADSTATE after a shutdown, or for an info with rx_ctx_cnt FI_SHARED_CONTEXT
 * without a bound shared receive context; the provider's error.
 */
int fi_enable(struct fid_ep *ep)
{
	int ret;

	might_sleep();
	if (kofi_fid_class(&ep->fid) == FI_CLASS_SEP)
		return fi_control(&ep->fid, FI_ENABLE, NULL);
	if (!kofi_ep_valid(ep))
		return -EINVAL;
	ret = kofi_ep_enable(kofi_ep(ep));
	if (ret == -FI_ENOCQ && kofi_ep(ep)->ctx)
		return 0;
	return kofi_refused(&kofi_ep(ep)->obj, "fi_enable", ret);
}
EXPORT_SYMBOL_GPL(fi_enable);

/**
 * fi_cancel - cancel a receive that no message has matched yet
 * @fid: an endpoint or a shared receive context
 * @context: context of the receive
 *
 * fi_endpoint(3). The receive completes with FI_ECANCELED through its queue;
 * a receive that a message has begun to fill completes normally. A multi-receive
 * takes no further messages, and completes with FI_ECANCELED and FI_MULTI_RECV
 * after the messages that it has taken.
 *
 * Context: any.
 * Return: 0; -ENOENT if no such receive waits for a message; -EINVAL; -ENOSYS.
 */
ssize_t fi_cancel(fid_t fid, void *context)
{
	struct fid_ep *ep;

	if (!kofi_fid_is_ep(fid))
		return -EINVAL;
	ep = container_of(fid, struct fid_ep, fid);
	return ep->msg->cancel ? ep->msg->cancel(ep, context) : -ENOSYS;
}
EXPORT_SYMBOL_GPL(fi_cancel);

/* --------------------------------------------------------- opening, closing */

static void kofi_ep_stats_dir(struct kofi_ep *ep, enum kofi_dir dir,
			      kofi_stat_fn fn, void *arg)
{
	static const char *const names[2][5] = {
		[KOFI_TX] = { "tx_posts", "tx_bytes", "tx_completions",
			      "tx_errors", "tx_again" },
		[KOFI_RX] = { "rx_posts", "rx_bytes", "rx_completions",
			      "rx_errors", "rx_again" },
	};
	struct kofi_cq *cq = kofi_ep_cq(ep, dir);
	spinlock_t *lock = cq ? &cq->lock : &ep->lock;
	u64 bytes, completions, errors;

	spin_lock_irq(lock);
	bytes = ep->stats[dir].bytes + READ_ONCE(ep->reported[dir].bytes);
	completions = ep->stats[dir].completions +
		      READ_ONCE(ep->reported[dir].completions);
	errors = ep->stats[dir].errors;
	spin_unlock_irq(lock);

	fn(arg, names[dir][0], atomic64_read(&ep->posts[dir].posts));
	fn(arg, names[dir][1], bytes);
	fn(arg, names[dir][2], completions);
	fn(arg, names[dir][3], errors);
	fn(arg, names[dir][4], atomic64_read(&ep->posts[dir].again));
}

static void kofi_ep_stats(struct kofi_obj *obj, kofi_stat_fn fn, void *arg)
{
	struct kofi_ep *ep = container_of(obj, struct kofi_ep, obj);

	if (!kofi_ep_is_srx(ep))
		kofi_ep_stats_dir(ep, KOFI_TX, fn, arg);
	kofi_ep_stats_dir(ep, KOFI_RX, fn, arg);
	kofi_mr_pool_stats(ep, fn, arg);
	if (ep->unexpected_timeout)
		fn(arg, "rx_expired", atomic64_read(&ep->expired));
	if (ep->ops->obj && ep->ops->obj->stats)
		ep->ops->obj->stats(obj, fn, arg);
}

/* Test whether the caller is a callback of one of the endpoint's queues. */
static bool kofi_ep_waits_for_caller(struct kofi_obj *obj)
{
	struct kofi_ep *ep = container_of(obj, struct kofi_ep, obj);

	return kofi_cq_calls_caller(ep->tx_cq) ||
	       kofi_cq_calls_caller(ep->rx_cq);
}

/*
 * Refuse posts, flush, and wait for callbacks. With @abort the provider transmits
 * nothing afterwards.
 */
static void kofi_ep_stop(struct kofi_ep *ep, bool abort)
{
	int state;

	kofi_mr_pool_stop(ep);
	if (abort && ep->ops->abort)
		ep->ops->abort(&ep->ep);
	if (ep->ops->drain)
		ep->ops->drain(&ep->ep);
	kofi_mr_pool_drain(ep);
	/* The provider may have taken the step itself. */
	while ((state = READ_ONCE(ep->state)) != KOFI_EP_SHUTDOWN) {
		if (state == KOFI_EP_CONNECTED)
			kofi_ep_disconnected(ep, ECANCELED);
		else if (state == KOFI_EP_CONNECTING)
			kofi_ep_connect_failed(ep, FI_ECANCELED, 0, NULL, 0);
		else
			kofi_ep_step(ep, state, KOFI_EP_SHUTDOWN);
	}
	kofi_cq_flush(ep);
}

static void kofi_ep_obj_drain(struct kofi_obj *obj)
{
	kofi_ep_stop(container_of(obj, struct kofi_ep, obj), false);
}

/* A transmit and a receive context are one endpoint. */
static int kofi_ep_obj_end(struct kofi_obj *obj)
{
	struct kofi_ep *ep = container_of(obj, struct kofi_ep, obj);

	return ep->ctx ? ep->ctx->ops->end(ep) : kofi_obj_end(obj);
}

static const struct kofi_obj_ops kofi_ep_obj_ops = {
	.stats			= kofi_ep_stats,
	.waits_for_caller	= kofi_ep_waits_for_caller,
	.drain			= kofi_ep_obj_drain,
	.end			= kofi_ep_obj_end,
	.control		= kofi_ep_control,
};

/* Transfers are called without a check, so no slot may be empty. */
static int kofi_ep_set_ops(struct kofi_ep *ep, const struct kofi_ep_ops *ops)
{
	struct fid_ep *fid = &ep->ep;

	fid->ops = ops->ep ?: &kofi_ep_nosys;
	fid->cm = ops->cm ?: &kofi_cm_nosys;
	fid->msg = ops->msg ?: &kofi_msg_nosys;
	fid->tagged = ops->tagged ?: &kofi_tagged_nosys;
	fid->rma = ops->rma ?: &kofi_rma_nosys;
	fid->atomic = ops->atomic ?: &kofi_atomic_nosys;
	if (fid->msg->sendmsg && fid->msg->recvmsg &&
	    fid->tagged->sendmsg && fid->tagged->recvmsg &&
	    fid->rma->readmsg && fid->rma->writemsg &&
	    fid->atomic->writemsg && fid->atomic->readwritemsg &&
	    fid->atomic->compwritemsg)
		return 0;
	return -EINVAL;
}

/**
 * kofi_ep_setup - set up the common part of endpoints and shared receive contexts
 * @ep: zeroed
 * @domain: domain of the endpoint
 * @info: attributes, copied
 * @ops: operations
 * @fclass: FI_CLASS_EP or FI_CLASS_SRX_CTX
 * @context: context of the consumer
 *
 * Context: process, may sleep.
 * Return: as kofi_ep_init().
 */
int kofi_ep_setup(struct kofi_ep *ep, struct fid_domain *domain,
		  const struct fi_info *info, const struct kofi_ep_ops *ops,
		  size_t fclass, void *context)
{
	struct kofi_domain *kdomain =
		container_of(domain, struct kofi_domain, domain);
	struct kofi_provider *prov = kdomain->obj.prov;
	enum kofi_dir dir;
	int ret;

	ep->ops = ops;
	ep->domain = kdomain;
	ep->source = FI_ADDR_UNSPEC;
	ep->mr.pool_segs = KOFI_IOV_MAX;
	ep->op_flags[KOFI_TX] = KOFI_EP_TX_OP_FLAGS;
	ep->op_flags[KOFI_RX] = KOFI_EP_RX_OP_FLAGS;
	ep->min_multi = KOFI_MIN_MULTI;
	mutex_init(&ep->config);
	/* an unconnected endpoint may be built on connected endpoints */
	if (info->ep_attr->type == FI_EP_MSG)
		lockdep_set_class(&ep->config, &kofi_ep_msg_config);
	spin_lock_init(&ep->lock);
	for (dir = KOFI_TX; dir <= KOFI_RX; dir++) {
		INIT_LIST_HEAD(&ep->space.wait[dir].node);
		ep->space.wait[dir].ep = ep;
		ep->poster[dir].ep = ep;
	}
	ep->ev.conn.fid = &ep->ep.fid;
	ep->ev.conn.context = context;
	INIT_LIST_HEAD(&ep->ev.conn.node);
	ep->ev.down.fid = &ep->ep.fid;
	ep->ev.down.context = context;
	ep->ev.down.event = FI_SHUTDOWN;
	INIT_LIST_HEAD(&ep->ev.down.node);

	ret = kofi_ep_set_ops(ep, ops);
	if (ret)
		return ret;
	ep->info = fi_dupinfo(info);
	if (!ep->info)
		return -ENOMEM;
	ep->ep.tx_op_flags = info->tx_attr->op_flags;
	ep->ep.rx_op_flags = info->rx_attr->op_flags;

	ret = kofi_obj_init(&ep->obj, &ep->ep.fid, fclass, ops->fid,
			    &kdomain->obj, prov, context);
	if (ret)
		goto free_info;
	ep->obj.ops = &kofi_ep_obj_ops;
	return 0;

free_info:
	fi_freeinfo(ep->info);
	return ret;
}

/**
 * kofi_ep_init - set up the core's part of an endpoint
 * @ep: endpoint of the provider, zeroed
 * @domain: domain of the endpoint
 * @info: attributes, copied
 * @ops: operations of the provider
 * @context: context of the consumer
 *
 * Context: process, may sleep.
 * Return: 0, then kofi_ep_exit() undoes it; -EINVAL without close or with an
 * empty slot in a table of transfers; -ENOMEM; -EBUSY if @domain is being
 * closed.
 */
int kofi_ep_init(struct kofi_ep *ep, struct fid_domain *domain,
		 const struct fi_info *info, const struct kofi_ep_ops *ops,
		 void *context)
{
	return kofi_ep_setup(ep, domain, info, ops, FI_CLASS_EP, context);
}
EXPORT_SYMBOL_GPL(kofi_ep_init);

/**
 * kofi_ep_exit - undo kofi_ep_init()
 * @ep: an endpoint with nothing outstanding
 *
 * On return no callback of the endpoint is running, and no event about it is queued.
 *
 * Context: process, may sleep.
 */
void kofi_ep_exit(struct kofi_ep *ep)
{
	kofi_mr_pool_close(ep);
	kofi_cq_flush(ep);
	if (kofi_latency_wanted())
		kofi_latency_set(ep, false);
	kofi_ep_unbind(ep);
	if (ep->ctx)
		ep->ctx->ops->closed(ep);
	kofi_obj_exit(&ep->obj);
	fi_freeinfo(ep->info);
}
EXPORT_SYMBOL_GPL(kofi_ep_exit);

static int kofi_ep_stop_checked(struct fid_ep *ep, bool abort)
{
	struct kofi_ep *kep = kofi_ep(ep);

	might_sleep();
	if (!kofi_ep_valid(ep))
		return -EINVAL;
	if (kofi_ep_waits_for_caller(&kep->obj))
		return -EDEADLK;
	kofi_ep_stop(kep, abort);
	return 0;
}

/**
 * kofi_ep_drain - terminate an endpoint's work
 * @ep: the endpoint
 *
 * Posts are refused, outstanding operations complete with FI_ECANCELED, a connection is
 * closed. On return no callback of the endpoint runs or will run; this function has called
 * the remaining ones of a DIRECT queue. fi_close() includes it. May be called repeatedly.
 *
 * A shared receive context has no stream of its own: a receive that a message
 * has begun to fill completes when the message's endpoint is drained, so drain that
 * first. A device need not distinguish such receives: then draining the
 * context terminates the endpoints that use it.
 *
 * Context: process, sleeps, never waits for the network.
 * Return: 0; -EINVAL; -EDEADLK in a callback of the endpoint's queues, without any
 * effect.
 */
int kofi_ep_drain(struct fid_ep *ep)
{
	return kofi_ep_stop_checked(ep, false);
}
EXPORT_SYMBOL_GPL(kofi_ep_drain);

/**
 * kofi_ep_abort - terminate an endpoint's work and discard unsent data
 * @ep: the endpoint
 *
 * As kofi_ep_drain(), but the connection is aborted instead of closed gracefully.
 * When this returns, the provider transmits no further byte of the endpoint's
 * operations, and repeats none: an operation that has completed with an error
 * cannot take effect at the peer once the network recovers. Packets that the
 * network or a network device already holds may still arrive.
 *
 * kofi_ep_drain(), fi_shutdown() and fi_close() deliver the data in
 * the send buffer, including injected messages. An abort of a connected endpoint
 * discards that data, also after kofi_ep_drain() or fi_shutdown(). On an unconnected
 * type it aborts all connections of the endpoint, but none that was closed gracefully
 * before.
 *
 * Context: process, sleeps, never waits for the network.
 * Return: as kofi_ep_drain().
 */
int kofi_ep_abort(struct fid_ep *ep)
{
	return kofi_ep_stop_checked(ep, true);
}
EXPORT_SYMBOL_GPL(kofi_ep_abort);

/**
 * fi_endpoint - open an active endpoint
 * @domain: an open domain
 * @info: attributes: from fi_getinfo(), or from an FI_CONNREQ event to
 *	accept that connection. Not consumed.
 * @ep: receives the endpoint
 * @context: stored in fid.context
 *
 * fi_endpoint(3).
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL; -ENOSYS; -ENOMEM; -EBUSY if @domain is being closed;
 * the provider's error.
 */
int fi_endpoint(struct fid_domain *domain, struct fi_info *info,
		struct fid_ep **ep, void *context)
{
	struct kofi_fabric *fabric;
	struct fi_info *parsed;
	int ret;

	might_sleep();
	if (kofi_fid_class(&domain->fid) != FI_CLASS_DOMAIN || !info || !ep)
		return -EINVAL;
	fabric = container_of(domain, struct kofi_domain, domain)->fabric;
	if (!kofi_info_usable(info, fabric))
		return -EINVAL;
	switch (info->ep_attr->type) {
	case FI_EP_MSG:
	case FI_EP_DGRAM:
	case FI_EP_RDM:
		break;
	default:
		return -EINVAL;
	}
	if (kofi_ep_contexts(info->ep_attr->tx_ctx_cnt) ||
	    kofi_ep_contexts(info->ep_attr->rx_ctx_cnt))
		return -EINVAL;
	if (!domain->ops->endpoint)
		return -ENOSYS;
	parsed = kofi_info_parsed(info, fabric->net);
	if (IS_ERR(parsed))
		return PTR_ERR(parsed);
	ret = domain->ops->endpoint(domain, parsed, ep, context);
	kofi_info_unparse(info, parsed);
	if (!ret)
		kofi_obj_publish(&kofi_ep(*ep)->obj);
	return kofi_refused(domain->fid.obj, "fi_endpoint", ret);
}
EXPORT_SYMBOL_GPL(fi_endpoint);

/**
 * fi_endpoint2 - open an active endpoint, with flags
 * @domain: as fi_endpoint()
 * @info: as fi_endpoint()
 * @ep: as fi_endpoint()
 * @flags: must be 0
 * @context: as fi_endpoint()
 *
 * fi_endpoint(3).
 *
 * Context: process, may sleep.
 * Return: as fi_endpoint(); -FI_EBADFLAGS.
 */
int fi_endpoint2(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **ep, u64 flags, void *context)
{
	if (flags)
		return -FI_EBADFLAGS;
	return fi_endpoint(domain, info, ep, context);
}
EXPORT_SYMBOL_GPL(fi_endpoint2);

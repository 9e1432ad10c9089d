// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Bindings of active endpoints: queues, counters, address vectors and shared receive
 * contexts (fi_endpoint(3)).
 *
 * A binding makes the endpoint a user of the bound object, which cannot be closed before the
 * endpoint. Bindings change under ep->config while the endpoint is KOFI_EP_IDLE, and end in
 * kofi_ep_exit(). Between these times posts and completions read them without a lock.
 *
 * Shared receive contexts
 *
 * A shared receive context (lib/srx.c) is an endpoint that only receives; most of ep.c and of
 * this file applies to it, too. An endpoint bound to a context has no receives of its own.
 * Both report receives to one queue, which was bound to either of them. Messages are counted
 * by the endpoint that received them and by the context that provided the receive.
 */
#include <linux/kofi/lib.h>

#include "cq.h"

/*
 * An endpoint and its shared context report receives to the same queue. The
 * context uses the queue of the first endpoint that has one.
 */
static int kofi_ep_share_cq(struct kofi_ep *srx, struct kofi_cq *cq,
			    bool selective)
{
	int ret = 0;

	/* the config mutex of a context nests inside the endpoint's */
	mutex_lock_nested(&srx->config, SINGLE_DEPTH_NESTING);
	if (srx->rx_cq) {
		if (srx->rx_cq != cq)
			ret = -EINVAL;
	} else if (!kofi_obj_get(&cq->obj)) {
		ret = -EINVAL;
	} else {
		srx->rx_selective = selective;
		/* pairs with kofi_srx_state(): posts cannot take the mutex */
		smp_store_release(&srx->rx_cq, cq);
	}
	mutex_unlock(&srx->config);
	return ret;
}

/* Use the queue of the context, when the endpoint is enabled. */
static int kofi_ep_adopt_cq(struct kofi_ep *ep)
{
	struct kofi_ep *srx = ep->srx;
	int ret = 0;

	mutex_lock_nested(&srx->config, SINGLE_DEPTH_NESTING);
	if (!srx->rx_cq || !kofi_obj_get(&srx->rx_cq->obj))
		ret = -FI_ENOCQ;
	else
		ep->rx_cq = srx->rx_cq;
	mutex_unlock(&srx->config);
	return ret;
}

static int kofi_ep_bind_srx(struct kofi_ep *ep, struct kofi_ep *srx, u64 flags)
{
	const struct fi_rx_attr *want = srx->info->rx_attr;
	const struct fi_rx_attr *have = ep->info->rx_attr;
	int ret;

	if (flags)
		return -FI_EBADFLAGS;
	if (srx->domain != ep->domain)
		return -FI_EDOMAIN;
	if (ep->srx)
		return -EBUSY;
	/* the context may have been opened for endpoints of another type */
	if (want->msg_order & ~have->msg_order ||
	    want->comp_order & ~have->comp_order ||
	    want->total_buffered_recv > have->total_buffered_recv)
		return -EINVAL;
	if (ep->rx_cq) {
		ret = kofi_ep_share_cq(srx, ep->rx_cq, ep->rx_selective);
		if (ret)
			return ret;
	}
	if (!kofi_obj_get(&srx->obj))
		return -EINVAL;
	ep->srx = srx;
	return 0;
}

static void kofi_ep_unbind_srx(struct kofi_ep *ep)
{
	kofi_obj_put(&ep->srx->obj);
	ep->srx = NULL;
}

static int kofi_ep_bind_cq(struct kofi_ep *ep, struct kofi_cq *cq, u64 flags)
{
	bool selective = flags & FI_SELECTIVE_COMPLETION;

	if (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION) ||
	    !(flags & (FI_TRANSMIT | FI_RECV)))
		return -FI_EBADFLAGS;
	if (cq->domain != ep->domain)
		return -FI_EDOMAIN;
	if (flags & FI_TRANSMIT && kofi_ep_is_srx(ep))
		return -FI_EBADFLAGS;
	if ((flags & FI_TRANSMIT && ep->tx_cq) ||
	    (flags & FI_RECV && ep->rx_cq))
		return -EBUSY;
	if (flags & FI_RECV && ep->srx) {
		int ret = kofi_ep_share_cq(ep->srx, cq, selective);

		if (ret)
			return ret;
	}

	if (!kofi_obj_get(&cq->obj))
		return -EINVAL;
	if (flags & FI_TRANSMIT && flags & FI_RECV)
		kofi_obj_get(&cq->obj);
	if (flags & FI_TRANSMIT) {
		ep->tx_selective = selective;
		ep->tx_cq = cq;
	}
	if (flags & FI_RECV) {
		ep->rx_selective = selective;
		ep->rx_cq = cq;
	}
	return 0;
}

/* fi_ep_bind() flags of the counters, by KOFI_CNTR_* */
static const u64 kofi_ep_cntr_flags[KOFI_CNTR_NR] = {
	FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE,
};

static int kofi_ep_bind_cntr(struct kofi_ep *ep, struct kofi_cntr *cntr,
			     u64 flags)
{
	u64 unknown = flags;
	int i;

	for (i = 0; i < KOFI_CNTR_NR; i++)
		unknown &= ~kofi_ep_cntr_flags[i];
	if (unknown || !flags || (kofi_ep_is_srx(ep) && flags != FI_RECV))
		return -FI_EBADFLAGS;
	if (cntr->domain != ep->domain)
		return -FI_EDOMAIN;
	for (i = 0; i < KOFI_CNTR_NR; i++)
		if (flags & kofi_ep_cntr_flags[i] && ep->cntr[i])
			return -EBUSY;

	for (i = 0; i < KOFI_CNTR_NR; i++) {
		if (!(flags & kofi_ep_cntr_flags[i]))
			continue;
		if (!kofi_obj_get(&cntr->obj))
			return -EINVAL;
		ep->cntr[i] = cntr;
		ep->counted = true;
	}
	return 0;
}

static void kofi_ep_unbind_cq(struct kofi_ep *ep, u64 flags)
{
	if (flags & FI_TRANSMIT) {
		kofi_obj_put(&ep->tx_cq->obj);
		ep->tx_cq = NULL;
	}
	if (flags & FI_RECV) {
		kofi_obj_put(&ep->rx_cq->obj);
		ep->rx_cq = NULL;
	}
}

static void kofi_ep_unbind_cntr(struct kofi_ep *ep, u64 flags)
{
	int i;

	for (i = 0; i < KOFI_CNTR_NR; i++) {
		if (!(flags & kofi_ep_cntr_flags[i]) || !ep->cntr[i])
			continue;
		kofi_obj_put(&ep->cntr[i]->obj);
		ep->cntr[i] = NULL;
	}
}

static void kofi_ep_unbind_eq(struct kofi_ep *ep)
{
	kofi_obj_put(&ep->eq->obj);
	ep->eq = NULL;
}

/**
 * fi_ep_bind - bind a queue, a counter, a shared receive context, or an address vector
 * @ep: an endpoint that has not been enabled; or a shared receive context,
 *	which takes one completion queue and one counter, both for FI_RECV
 * @bfid: object to bind. An event queue (@flags 0). A completion queue (FI_TRANSMIT, FI_RECV
 *	or both, and FI_SELECTIVE_COMPLETION to report successes only of operations
 *	with FI_COMPLETION). A counter (any of FI_SEND, FI_RECV, FI_READ,
 *	FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE). A shared receive context
 *	(@flags 0), which provides and reports the receives for the endpoint's
 *	messages: a receive queue of the endpoint must be the context's, and the context
 *	cannot be closed before the endpoint. An address vector
 *	(@flags 0), for an unconnected type; several endpoints may share one.
 * @flags: see @bfid
 *
 * fi_endpoint(3).
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL; -FI_EDOMAIN for an object of another fabric or domain;
 * -EBUSY if such an object is bound already; -FI_EBADFLAGS; -FI_EOPBADSTATE
 * once the endpoint has been enabled; the provider's error.
 */
int fi_ep_bind(struct fid_ep *ep, struct fi_fid *bfid, u64 flags)
{
	struct kofi_ep *kep = kofi_ep(ep);
	const struct fi_ops *ops;
	int ret;

	might_sleep();
	if (!kofi_ep_valid(ep) || kofi_fid_class(bfid) == FI_CLASS_UNSPEC)
		return -EINVAL;

	mutex_lock(&kep->config);
	if (READ_ONCE(kep->state) != KOFI_EP_IDLE) {
		ret = -FI_EOPBADSTATE;
		goto unlock;
	}
	if (kofi_ep_is_srx(kep) && bfid->fclass != FI_CLASS_CQ &&
	    bfid->fclass != FI_CLASS_CNTR) {
		ret = -EINVAL;
		goto unlock;
	}
	switch (bfid->fclass) {
	case FI_CLASS_EQ:
		ret = kofi_eq_bind(&kep->eq, kep->domain->fabric, bfid, flags);
		break;
	case FI_CLASS_AV:
		ret = kofi_av_attach(kep, bfid, flags);
		break;
	case FI_CLASS_SRX_CTX:
		ret = kofi_ep_bind_srx(kep, container_of(bfid, struct kofi_ep,
							 ep.fid), flags);
		break;
	case FI_CLASS_CQ:
		ret = kofi_ep_bind_cq(kep, container_of(bfid, struct kofi_cq,
							cq.fid), flags);
		break;
	case FI_CLASS_CNTR:
		ret = kofi_ep_bind_cntr(kep, container_of(bfid,
							  struct kofi_cntr,
							  cntr.fid), flags);
		break;
	default:
		ret = -EINVAL;
	}
	ops = kep->ops->fid;
	if (ret || !ops->bind)
		goto unlock;

	ret = ops->bind(&ep->fid, bfid, flags);
	if (!ret)
		goto unlock;
	switch (bfid->fclass) {
	case FI_CLASS_EQ:
		kofi_ep_unbind_eq(kep);
		break;
	case FI_CLASS_AV:
		kofi_av_detach(kep);
		break;
	case FI_CLASS_SRX_CTX:
		kofi_ep_unbind_srx(kep);
		break;
	case FI_CLASS_CQ:
		kofi_ep_unbind_cq(kep, flags);
		break;
	case FI_CLASS_CNTR:
		kofi_ep_unbind_cntr(kep, flags);
		break;
	}
unlock:
	mutex_unlock(&kep->config);
	return ret;
}
EXPORT_SYMBOL_GPL(fi_ep_bind);

/**
 * kofi_ep_check - check the bindings of an endpoint that is being enabled
 * @ep: the endpoint; without a receive queue it uses the queue of its shared context
 *
 * Context: process, may sleep; holds ep->config.
 * Return: 0 or a negative error code, see fi_enable().
 */
int kofi_ep_check(struct kofi_ep *ep)
{
	u64 caps = ep->info->caps;
	bool tx, rx;
	int ret;

	if (ep->srx && !ep->rx_cq) {
		ret = kofi_ep_adopt_cq(ep);
		if (ret)
			return ret;
	}
	if (kofi_ep_is_srx(ep))
		return ep->rx_cq ? 0 : -FI_ENOCQ;
	if (ep->info->ep_attr->type == FI_EP_MSG && !ep->eq)
		return -FI_ENOEQ;
	if (ep->info->ep_attr->type != FI_EP_MSG && !ep->av)
		return -FI_ENOAV;
	if (ep->info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT && !ep->srx)
		return -FI_EOPBADSTATE;
	/* Without FI_SEND and FI_RECV, both directions count. */
	tx = !(caps & FI_RECV) || caps & (FI_SEND | FI_READ | FI_WRITE);
	rx = !(caps & FI_SEND) || caps & FI_RECV;
	if ((tx && !ep->tx_cq && !kofi_ep_counted(ep, KOFI_TX)) ||
	    (rx && !ep->rx_cq && !kofi_ep_counted(ep, KOFI_RX)))
		return -FI_ENOCQ;
	/* The write-space callback is called by a queue. */
	if (ep->space.fn && !ep->tx_cq && !ep->rx_cq)
		return -FI_ENOCQ;
	return 0;
}

/**
 * kofi_ep_unbind - end all bindings
 * @ep: an endpoint that is being closed; its queued events are purged
 *
 * Context: process, may sleep.
 */
void kofi_ep_unbind(struct kofi_ep *ep)
{
	if (ep->eq) {
		kofi_eq_purge(ep->eq, &ep->ep.fid);
		kofi_ep_unbind_eq(ep);
	}
	if (ep->av)
		kofi_av_detach(ep);
	kofi_ep_unbind_cntr(ep, ~0ULL);
	kofi_ep_unbind_cq(ep, (ep->tx_cq ? FI_TRANSMIT : 0) |
			      (ep->rx_cq ? FI_RECV : 0));
	if (ep->srx)
		kofi_ep_unbind_srx(ep);
}

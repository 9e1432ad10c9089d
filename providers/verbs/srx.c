// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared receive contexts: the device's shared receive queues.
 *
 * Queues
 *
 * A context has a queue of receives (rx.c). All of them report to one
 * completion queue of the device, which has room for each; so any number of
 * endpoints can take receives from it. That completion queue is opened when the
 * first endpoint is enabled, because until then the consumer may bind its
 * queue.
 *
 * Ending an endpoint
 *
 * An endpoint must not leave completions behind that refer to its queue pair.
 * No last receive can be posted to wait for them, because the receives do not
 * belong to the endpoint. First the device must finish with them. InfiniBand
 * reports that (last WQE reached); on iWARP it holds when the queue pair is in
 * its error state. Then a work request passes through the same completion
 * queue, posted to another queue pair that is always in its error state.
 *
 * Receives taken by a failed queue pair
 *
 * A queue pair that fails completes the receives it has taken with an error or,
 * on some devices, never. As receives complete in any order, these cannot be
 * identified. They are cancelled when the context is closed, with those that
 * are still posted.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "verbs.h"

/* Time limit: devices report the last WQE soon, or not at all */
#define VRB_LAST_WQE	HZ

static struct vrb_srx *vrb_srx(struct fid_ep *fid)
{
	return container_of(fid, struct vrb_srx, base.ep);
}

/* -------------------------------------------------------------- endpoints */

static int vrb_srx_open_drain(struct vrb_srx *srx)
{
	struct vrb_domain *dom = srx->rxq.dom;
	struct ib_qp_attr attr = {
		.qp_state	= IB_QPS_INIT,
		.port_num	= rdma_start_port(dom->ib),
	};
	struct ib_qp_init_attr init = {
		.send_cq	= srx->cq.ib,
		.recv_cq	= srx->cq.ib,
		.cap		= { .max_send_wr = 1, .max_send_sge = 1 },
		.sq_sig_type	= IB_SIGNAL_ALL_WR,
		.qp_type	= IB_QPT_RC,
	};
	struct ib_qp *qp;
	int err;

	qp = ib_create_qp(dom->pd, &init);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	/* the reset state does not lead to the error state directly */
	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
				      IB_QP_PORT | IB_QP_ACCESS_FLAGS);
	attr.qp_state = IB_QPS_ERR;
	err = err ?: ib_modify_qp(qp, &attr, IB_QP_STATE);
	if (err)
		ib_destroy_qp(qp);
	else
		srx->drain = qp;
	return err;
}

static int vrb_srx_open_cq(struct vrb_srx *srx, bool counted)
{
	int err;

	/* each receive, and a barrier */
	err = vrb_epcq_open(&srx->cq, srx->rxq.dom, srx->base.rx_cq, counted,
			    srx->base.info->rx_attr->size + 1);
	if (err)
		return err;
	err = vrb_srx_open_drain(srx);
	if (err)
		vrb_epcq_close(&srx->cq);
	return err;
}

/**
 * vrb_srx_attach - let an endpoint take its receives from its shared context
 * @ep: an endpoint that is bound to a shared context and is being enabled
 *
 * Context: process, may sleep.
 * Return: 0; -ESHUTDOWN; -EOPNOTSUPP if the consumer polls, the endpoint or the
 * context has counters, and endpoints without counters came first; the device's
 * error.
 */
int vrb_srx_attach(struct vrb_ep *ep)
{
	struct vrb_srx *srx = container_of(ep->base.srx, struct vrb_srx, base);
	unsigned int noio;
	bool counted = ep->base.counted || srx->base.counted;
	int err = 0;

	/* freeing memory may depend on another endpoint that is being ended */
	noio = memalloc_noio_save();
	mutex_lock(&srx->mutex);
	if (!srx->rxq.srq || srx->rxq.closed)
		err = -ESHUTDOWN;
	else if (!srx->drain)
		err = vrb_srx_open_cq(srx, counted);
	/* the counters would wait for kofi_cq_poll() */
	else if (counted && srx->cq.direct)
		err = -EOPNOTSUPP;
	if (!err)
		WRITE_ONCE(ep->srx, srx);
	mutex_unlock(&srx->mutex);
	memalloc_noio_restore(noio);
	return err;
}

/**
 * vrb_srx_drain_ep - wait for all completions of an endpoint's receives
 * @ep: an endpoint with a shared context and a queue pair in its error state
 *
 * Context: process, may sleep.
 * Return: 0, or the device's error.
 */
int vrb_srx_drain_ep(struct vrb_ep *ep)
{
	long left = ep->end.stopped + VRB_LAST_WQE - jiffies;
	struct vrb_srx *srx = ep->srx;
	int err;

	if (!ep->iwarp && READ_ONCE(ep->base.state) > KOFI_EP_ENABLED &&
	    left > 0)
		wait_for_completion_timeout(&ep->qp->srq_completion, left);
	mutex_lock(&srx->mutex);
	err = vrb_drain_sq(&srx->cq, srx->drain);
	mutex_unlock(&srx->mutex);
	return err;
}

/* ------------------------------------------------------------ termination */

/**
 * vrb_srx_end - terminate a shared context now
 * @srx: the context; all endpoints that used it have ended
 *
 * When this returns, all receives have completed, and the device no longer uses
 * the context.
 *
 * Context: process, may sleep.
 */
void vrb_srx_end(struct vrb_srx *srx)
{
	unsigned int noio = memalloc_noio_save();

	mutex_lock(&srx->mutex);
	vrb_rxq_close(&srx->rxq);
	if (srx->drain)
		ib_destroy_qp(srx->drain);
	srx->drain = NULL;
	if (srx->rxq.srq)
		ib_destroy_srq(srx->rxq.srq);
	srx->rxq.srq = NULL;
	vrb_epcq_close(&srx->cq);
	vrb_rxq_flush(&srx->rxq);
	mutex_unlock(&srx->mutex);
	memalloc_noio_restore(noio);
}

/*
 * Drain a shared context. The device keeps posted receives while a queue pair
 * may take them. So this also terminates the endpoints, which the consumer should
 * have closed.
 */
static void vrb_srx_drain(struct fid_ep *fid)
{
	struct vrb_srx *srx = vrb_srx(fid);
	struct vrb_domain *dom = srx->rxq.dom;
	struct vrb_ep *ep;

	mutex_lock(&dom->dev->mutex);
	/* from here on no endpoint can attach */
	mutex_lock(&srx->mutex);
	vrb_rxq_close(&srx->rxq);
	mutex_unlock(&srx->mutex);
	/* let the device start to flush all of them before waiting for the first */
	list_for_each_entry(ep, &dom->eps, dom_node)
		if (READ_ONCE(ep->srx) == srx)
			vrb_ep_fail_qp(ep, ECANCELED);
	list_for_each_entry(ep, &dom->eps, dom_node) {
		if (READ_ONCE(ep->srx) != srx)
			continue;
		vrb_ep_end(ep, ECANCELED);
		vrb_ep_linger(ep);
	}
	/* iWARP: wait for queue pairs with an outstanding attempt to connect */
	vrb_linger_wait(dom);
	vrb_srx_end(srx);
	mutex_unlock(&dom->dev->mutex);
}

static int vrb_srx_close(struct fi_fid *fid)
{
	struct vrb_srx *srx = container_of(fid, struct vrb_srx, base.ep.fid);
	struct vrb_dev *dev = srx->rxq.dom->dev;

	mutex_lock(&dev->mutex);
	list_del(&srx->dom_node);
	mutex_unlock(&dev->mutex);

	timer_shutdown_sync(&srx->retry);
	kofi_ep_exit(&srx->base);
	vrb_rxq_exit(&srx->rxq);
	mutex_destroy(&srx->mutex);
	kfree(srx);
	return 0;
}

/* ---------------------------------------------------------------- opening */

static ssize_t vrb_srx_recvmsg(struct fid_ep *fid, const struct fi_msg *msg,
			       u64 flags)
{
	struct vrb_srx *srx = vrb_srx(fid);

	return kofi_srx_state(&srx->base) ?:
	       vrb_rxq_post(&srx->rxq, msg, flags);
}

static void vrb_srx_retry_timer(struct timer_list *t)
{
	struct vrb_srx *srx = container_of(t, struct vrb_srx, retry);

	kofi_ep_unblock(&srx->base);
}

static const struct fi_ops vrb_srx_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= vrb_srx_close,
};

static const struct fi_ops_msg vrb_srx_msg_ops = {
	.size		= sizeof(struct fi_ops_msg),
	.sendmsg	= kofi_no_msg,
	.recvmsg	= vrb_srx_recvmsg,
};

static const struct kofi_ep_ops vrb_srx_ops = {
	.fid		= &vrb_srx_fid_ops,
	.msg		= &vrb_srx_msg_ops,
	.drain		= vrb_srx_drain,
};

/* Create the device's queue. */
static int vrb_srx_create(struct vrb_srx *srx, const struct fi_rx_attr *attr)
{
	struct vrb_domain *dom = srx->rxq.dom;
	struct ib_srq_init_attr init = {
		.attr = {
			.max_wr		= attr->size,
			.max_sge	= srx->rxq.sge,
		},
		.srq_type	= IB_SRQT_BASIC,
	};
	struct ib_srq *srq;

	lockdep_assert_held(&dom->dev->mutex);

	srq = ib_create_srq(dom->pd, &init);
	if (IS_ERR(srq))
		return PTR_ERR(srq);
	srx->rxq.srq = srq;
	list_add_tail(&srx->dom_node, &dom->srxs);
	return 0;
}

static int vrb_srx_check(const struct vrb_domain *dom, struct fi_rx_attr *attr)
{
	const struct ib_device_attr *dev = &dom->ib->attrs;
	size_t sges = min_t(size_t, dev->max_srq_sge, KOFI_IOV_MAX);
	/* each receive is reported, and so is a barrier */
	int most = min(dev->max_srq_wr, dev->max_cqe - 1);

	if (!dev->max_srq)
		return -EOPNOTSUPP;
	if (!attr->iov_limit)
		attr->iov_limit = sges;
	return vrb_info_check_srx(attr, dom->ib, most, sges);
}

/* fi_srx_context() */
int vrb_srx_context(struct fid_domain *domain, struct fi_rx_attr *attr,
		    struct fid_ep **fid, void *context)
{
	struct vrb_domain *dom = vrb_dom(domain);
	struct vrb_srx *srx;
	int err;

	srx = kzalloc_node(sizeof(*srx), GFP_KERNEL, dom->base.node);
	if (!srx)
		return -ENOMEM;
	mutex_init(&srx->mutex);
	timer_setup(&srx->retry, vrb_srx_retry_timer, 0);
	vrb_rxq_prepare(&srx->rxq, &srx->base, dom, &srx->retry);
	srx->rxq.cq = &srx->cq;

	mutex_lock(&dom->dev->mutex);
	err = dom->gone ? -ENODEV : vrb_srx_check(dom, attr);
	if (err)
		goto unlock;
	err = kofi_srx_init(&srx->base, domain, attr, &vrb_srx_ops, context);
	if (err)
		goto unlock;
	srx->base.op_flags[1] &= ~FI_MULTI_RECV;
	err = vrb_rxq_init(&srx->rxq);
	if (err)
		goto exit;
	err = vrb_srx_create(srx, attr);
	if (err)
		goto free_rxq;
	mutex_unlock(&dom->dev->mutex);
	*fid = &srx->base.ep;
	return 0;

free_rxq:
	vrb_rxq_exit(&srx->rxq);
exit:
	kofi_ep_exit(&srx->base);
unlock:
	mutex_unlock(&dom->dev->mutex);
	timer_shutdown_sync(&srx->retry);
	mutex_destroy(&srx->mutex);
	kfree(srx);
	return err;
}

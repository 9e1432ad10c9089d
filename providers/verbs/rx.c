// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receives.
 *
 * Each is a work request of its own in the queue pair's receive queue, and the
 * device takes them in the order they were posted: none can be withdrawn, and
 * none is for one peer or tag only. A write with a value of the peer's takes a
 * receive, too.
 *
 * A queue pair that is being connected may refuse a receive for a moment. Such
 * receives, and those posted after them, wait in a list until the work item has
 * posted them; the consumer does not notice.
 *
 * A queue of receives is an endpoint's, or that of a shared context (srx.c),
 * whose receives the device gives to whichever endpoint a message comes to.
 */
#include <kunit/visibility.h>
#include <linux/slab.h>

#include "verbs.h"
#include "verbs_trace.h"

#define VRB_RX_FLAGS	(FI_COMPLETION | FI_MORE)

/* ------------------------------------------------------------- completing */

/*
 * The end of a receive that is on no list any more; unused afterwards. Its
 * message, if there was one, came to @from.
 */
static void vrb_rx_complete(struct vrb_rxop *op, struct kofi_ep *from,
			    struct kofi_wc *wc)
{
	struct vrb_rxq *q = op->q;
	u64 flags = op->flags;
	unsigned long irq;

	wc->op_context = op->context;
	wc->src = FI_ADDR_NOTAVAIL;
	vrb_unmap(&op->map, q->dom, &q->blocks);
	/* free before the consumer knows, who may post again at once */
	spin_lock_irqsave(&q->lock, irq);
	list_add(&op->node, &q->free);
	spin_unlock_irqrestore(&q->lock, irq);

	kofi_ep_recv_complete(q->base, from, wc, flags);
}

/* What the device says of a message that has arrived */
static void vrb_rx_fill(struct kofi_wc *to, const struct ib_wc *wc)
{
	to->len = wc->byte_len;
	if (wc->opcode == IB_WC_RECV_RDMA_WITH_IMM)
		to->flags = FI_RMA | FI_REMOTE_WRITE;
	if (wc->wc_flags & IB_WC_WITH_IMM) {
		to->flags |= FI_REMOTE_CQ_DATA;
		to->data = be32_to_cpu(wc->ex.imm_data);
	}
	if (wc->wc_flags & IB_WC_WITH_INVALIDATE) {
		to->flags |= KOFI_REMOTE_INV;
		to->inv_key = wc->ex.invalidate_rkey;
	}
}

/**
 * vrb_rx_error - what a consumer is told of a receive
 * @status: of its work completion, enum ib_wc_status
 *
 * Nothing is wrong with a receive of ours but that a message is longer; what
 * devices have to say of that is not always the length.
 *
 * Return: 0 or a positive error code.
 */
int vrb_rx_error(int status)
{
	switch (status) {
	case IB_WC_LOC_QP_OP_ERR:
	case IB_WC_REM_INV_REQ_ERR:
		return FI_ETRUNC;
	default:
		return vrb_wc_error(status);
	}
}
EXPORT_SYMBOL_IF_KUNIT(vrb_rx_error);

static void vrb_rx_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct vrb_rxop *op = container_of(wc->wr_cqe, struct vrb_rxop, cqe);
	struct vrb_rxq *q = op->q;
	struct vrb_ep *ep = wc->qp->qp_context;
	struct kofi_wc done = { .flags = FI_RECV | FI_MSG };
	unsigned long irq;
	bool run;

	if (likely(!wc->status)) {
		vrb_rx_fill(&done, wc);
		if (wc->wc_flags & IB_WC_WITH_INVALIDATE)
			vrb_mr_invalidated(ep, wc->ex.invalidate_rkey);
	} else {
		done.err = vrb_rx_error(wc->status);
		done.prov_errno = wc->status;
		vrb_ep_failed(ep, wc, done.err);
	}
	spin_lock_irqsave(&q->lock, irq);
	list_del(&op->node);
	spin_unlock_irqrestore(&q->lock, irq);

	run = vrb_epcq_begin(q->cq);
	vrb_rx_complete(op, &ep->base, &done);
	if (run)
		kofi_cq_end(q->cq->kcq);
}

/* ---------------------------------------------------------------- posting */

static int vrb_rx_hand_over(struct vrb_rxq *q, struct vrb_rxop *op)
{
	struct ib_sge sge[VRB_SGES];
	struct ib_recv_wr wr = { .wr_cqe = &op->cqe, .sg_list = sge };
	struct vrb_walk w;
	u32 len;

	vrb_walk_init(&w, &op->map);
	wr.num_sge = vrb_walk_sges(&w, sge, q->sge,
				   q->dom->pd->local_dma_lkey, op->map.len,
				   &len);
	return q->srq ? ib_post_srq_recv(q->srq, &wr, NULL) :
			ib_post_recv(q->ep->qp, &wr, NULL);
}

static int vrb_rx_submit(struct vrb_rxq *q, struct vrb_rxop *op)
{
	unsigned long irq;
	bool late = false;
	int err = 0;

	spin_lock_irqsave(&q->lock, irq);
	if (q->closed) {
		err = -ESHUTDOWN;
	} else if (list_empty(&q->late)) {
		list_add_tail(&op->node, &q->posted);
		err = vrb_rx_hand_over(q, op);
		if (err)
			list_del(&op->node);
		late = err == -ENOTCONN && q->ep;
	} else {
		late = true;
	}
	if (late) {
		list_add_tail(&op->node, &q->late);
		vrb_stat_inc(&q->ep->stats.rx_late);
		err = 0;
	}
	spin_unlock_irqrestore(&q->lock, irq);
	if (late)
		mod_delayed_work(vrb_wq, &q->ep->work, 1);
	return err;
}

/**
 * vrb_rx_late - post what the queue pair could not take
 * @ep: the endpoint; its queue pair is ready now
 *
 * Context: any.
 */
void vrb_rx_late(struct vrb_ep *ep)
{
	if (!list_empty_careful(&ep->rxq.late))
		mod_delayed_work(vrb_wq, &ep->work, 0);
}

/**
 * vrb_rx_repost - the work item's part of that
 * @ep: the endpoint
 *
 * What the queue pair still does not take is tried again soon; what it refuses
 * for good is the end.
 *
 * Context: process.
 */
void vrb_rx_repost(struct vrb_ep *ep)
{
	struct vrb_rxq *q = &ep->rxq;
	struct vrb_rxop *op;
	unsigned long irq;
	int err = 0;

	spin_lock_irqsave(&q->lock, irq);
	while (!q->closed && !err) {
		op = list_first_entry_or_null(&q->late, struct vrb_rxop, node);
		if (!op)
			break;
		list_move_tail(&op->node, &q->posted);
		err = vrb_rx_hand_over(q, op);
		if (err)
			list_move(&op->node, &q->late);
	}
	spin_unlock_irqrestore(&q->lock, irq);
	if (err == -ENOTCONN)
		mod_delayed_work(vrb_wq, &ep->work, 1);
	else if (err)
		vrb_ep_kill(ep, EIO);
}

static int vrb_rx_get(struct vrb_rxq *q, struct vrb_rxop **op)
{
	unsigned long irq;
	int err = 0;

	spin_lock_irqsave(&q->lock, irq);
	*op = list_first_entry_or_null(&q->free, struct vrb_rxop, node);
	if (q->closed)
		err = -ESHUTDOWN;
	else if (!*op)
		err = -EAGAIN;
	else
		list_del(&(*op)->node);
	spin_unlock_irqrestore(&q->lock, irq);
	return err;
}

static void vrb_rx_put(struct vrb_rxq *q, struct vrb_rxop *op)
{
	unsigned long irq;

	spin_lock_irqsave(&q->lock, irq);
	list_add(&op->node, &q->free);
	spin_unlock_irqrestore(&q->lock, irq);
}

static int vrb_rx_fill_op(struct vrb_rxq *q, struct vrb_rxop *op,
			  const struct fi_msg *msg, u64 flags)
{
	struct vrb_domain *dom = q->dom;
	size_t len;
	int err;

	op->context = msg->context;
	op->flags = flags;
	err = vrb_msg_len(msg, ITER_DEST, q->base->info->rx_attr->iov_limit,
			  &len);
	if (err)
		return err;
	if (len > U32_MAX)
		return -EMSGSIZE;
	err = vrb_map_msg(&op->map, dom, &q->blocks, msg, DMA_FROM_DEVICE, len);
	if (!err && op->map.nr > q->sge) {
		vrb_unmap(&op->map, dom, &q->blocks);
		err = -EINVAL;
	}
	return err;
}

/* With RCU, which keeps the device: see vrb_domain_lost(). */
static ssize_t vrb_rx_accept(struct vrb_rxq *q, const struct fi_msg *msg,
			     u64 flags)
{
	struct kofi_ep *base = q->base;
	struct vrb_rxop *op;
	int err;

	err = kofi_ep_rx_reserve(base);
	if (err)
		return err;
	err = vrb_rx_get(q, &op);
	if (err == -EAGAIN) {
		/* one may have completed before the mark was there to see */
		kofi_ep_blocked(base);
		err = vrb_rx_get(q, &op);
	}
	if (err)
		goto unreserve;
	err = vrb_rx_fill_op(q, op, msg, flags);
	if (err)
		goto put;
	err = vrb_rx_submit(q, op);
	if (!err)
		return 0;

	vrb_unmap(&op->map, q->dom, &q->blocks);
put:
	vrb_rx_put(q, op);
	if (err == -ENOBUFS || err == -ENOMEM || err == -EAGAIN) {
		kofi_ep_blocked(base);
		vrb_retry(q->retry);
		err = -EAGAIN;
	} else {
		/* somebody may have been refused for want of this receive */
		kofi_ep_unblock(base);
	}
unreserve:
	kofi_ep_rx_unreserve(base);
	return err;
}

/**
 * vrb_rxq_post - post a receive
 * @q: the queue; its owner's state allows posts
 * @msg: as for fi_recvmsg()
 * @flags: the same
 *
 * Context: any.
 * Return: what fi_recvmsg() returns.
 */
ssize_t vrb_rxq_post(struct vrb_rxq *q, const struct fi_msg *msg, u64 flags)
{
	ssize_t err;

	if (flags & ~VRB_RX_FLAGS)
		return -FI_EBADFLAGS;
	rcu_read_lock();
	err = vrb_rx_accept(q, msg, flags);
	rcu_read_unlock();
	return err;
}

/* fi_recvmsg() and its family */
ssize_t vrb_rx_post(struct fid_ep *fid, const struct fi_msg *msg, u64 flags)
{
	struct vrb_ep *ep = vrb_ep(fid);

	return kofi_ep_rx_state(&ep->base) ?:
	       vrb_rxq_post(&ep->rxq, msg, flags);
}

/* ------------------------------------------------------------------- life */

/**
 * vrb_rxq_prepare - an empty queue, which can be closed and flushed
 * @q: zeroed
 * @base: whose it is
 * @dom: its domain
 * @retry: timer of the owner's
 *
 * Context: any.
 */
void vrb_rxq_prepare(struct vrb_rxq *q, struct kofi_ep *base,
		     struct vrb_domain *dom, struct timer_list *retry)
{
	spin_lock_init(&q->lock);
	INIT_LIST_HEAD(&q->free);
	INIT_LIST_HEAD(&q->posted);
	INIT_LIST_HEAD(&q->late);
	q->base = base;
	q->dom = dom;
	q->retry = retry;
}

/**
 * vrb_rxq_init - make the receives
 * @q: prepared
 * @max_sge: segments a work request of the device can have
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int vrb_rxq_init(struct vrb_rxq *q, unsigned int max_sge)
{
	size_t i, size = q->base->info->rx_attr->size;
	int node = q->dom->base.node;
	int err;

	q->sge = min(max_sge, VRB_SGES);
	q->ops = kvcalloc_node(size, sizeof(*q->ops), GFP_KERNEL, node);
	if (!q->ops)
		return -ENOMEM;
	err = vrb_blocks_init(&q->blocks, node);
	if (err) {
		vrb_rxq_exit(q);
		return err;
	}
	for (i = 0; i < size; i++) {
		q->ops[i].cqe.done = vrb_rx_done;
		q->ops[i].q = q;
		list_add_tail(&q->ops[i].node, &q->free);
	}
	return 0;
}

void vrb_rxq_exit(struct vrb_rxq *q)
{
	INIT_LIST_HEAD(&q->free);
	vrb_blocks_exit(&q->blocks);
	kvfree(q->ops);
	q->ops = NULL;
}

/**
 * vrb_rxq_close - accept no more
 * @q: the queue
 *
 * Nobody is in the device's post function any more when this returns.
 *
 * Context: any.
 */
void vrb_rxq_close(struct vrb_rxq *q)
{
	unsigned long irq;

	spin_lock_irqsave(&q->lock, irq);
	q->closed = true;
	spin_unlock_irqrestore(&q->lock, irq);
}

/**
 * vrb_rxq_flush - complete what the device never had, or does not report
 * @q: a closed queue; the device has it no longer
 *
 * Context: process.
 */
void vrb_rxq_flush(struct vrb_rxq *q)
{
	struct vrb_rxop *op, *next;
	unsigned long irq;
	LIST_HEAD(list);

	spin_lock_irqsave(&q->lock, irq);
	list_splice_init(&q->posted, &list);
	list_splice_tail_init(&q->late, &list);
	spin_unlock_irqrestore(&q->lock, irq);
	list_for_each_entry_safe(op, next, &list, node) {
		struct kofi_wc wc = {
			.err = ECANCELED,
			.prov_errno = IB_WC_WR_FLUSH_ERR,
			.flags = FI_RECV | FI_MSG,
		};

		vrb_rx_complete(op, q->base, &wc);
	}
}

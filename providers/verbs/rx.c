// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receives.
 *
 * Order
 *
 * Each receive is a work request in the queue pair's receive queue, and the
 * device takes them in posting order. Therefore no receive can be cancelled,
 * and none is for one peer or tag only. A write with remote CQ data consumes a
 * receive, too.
 *
 * Deferred receives
 *
 * A queue pair that is being connected may refuse a receive for a moment. Such
 * receives, and those posted after them, are deferred until the work item has
 * posted them; the consumer does not notice. Receives with FI_MORE are deferred
 * as well, until one of these happens: a receive without the flag, a transmit
 * (its answer may need one of them), the connection, or a tick.
 *
 * Deferred receives are posted in lists. If the device refuses one that has
 * been accepted, the work item tries again.
 *
 * Queues
 *
 * A queue of receives belongs to an endpoint or to a shared receive context
 * (srx.c). The device gives a receive of a shared queue to the endpoint that
 * gets a message.
 */
#include <kunit/visibility.h>
#include <linux/list_sort.h>
#include <linux/slab.h>

#include "verbs.h"

#define VRB_RX_FLAGS	(FI_COMPLETION | FI_MORE)

/* ------------------------------------------------------------- completing */

/* Fill in a completion with the device's description of the message. */
static void vrb_rx_fill(struct kofi_wc *to, const struct ib_wc *wc)
{
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
 * vrb_rx_error - translate the status of a receive
 * @status: enum ib_wc_status of the work completion
 *
 * A receive can fail only because a message is too long, which some devices
 * report with other statuses.
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

/*
 * Test for a write that consumes a receive although the consumer lacks
 * FI_RX_CQ_DATA. That consumer would take the length of the write for the
 * length of a message in the receive's memory.
 */
static bool vrb_rx_unasked(const struct vrb_ep *ep, const struct ib_wc *wc)
{
	return !wc->status && wc->opcode == IB_WC_RECV_RDMA_WITH_IMM &&
	       !(ep->base.info->mode & FI_RX_CQ_DATA);
}

static void vrb_rx_done(struct ib_cq *cq, struct ib_wc *wc);

/* Get more records, as vrb_tx_more(). With the queue's lock held. */
static struct llist_node *vrb_rx_more(struct vrb_rxq *q)
{
	struct llist_node *ended = llist_del_all(&q->ended);
	struct vrb_recs *r = &q->ops;
	struct vrb_rxop *op;

	if (ended || r->used == r->nr)
		return ended;
	op = vrb_recs_at(r, r->used++);
	op->cqe.done = vrb_rx_done;
	op->q = q;
	op->map.room = q->sge;
	return &op->next;
}

/* Finish a receive, except for the report. Needs no lock. */
static __always_inline void vrb_rx_end(struct vrb_rxop *op)
{
	struct vrb_rxq *q = op->q;

	vrb_unmap(&op->map, q->dom, NULL);
	WRITE_ONCE(op->posted, false);
	/* free before the consumer's callback, which may post again */
	llist_add(&op->next, &q->ended);
}

/*
 * Handle a failed receive. A device may report one that has completed already,
 * or that vrb_rxq_flush() has taken. Returns true if the receive completes now.
 */
static noinline bool vrb_rx_failed(struct vrb_rxop *op, struct vrb_ep *ep,
				   const struct ib_wc *wc)
{
	struct vrb_rxq *q = op->q;
	unsigned long irq;
	bool posted;

	spin_lock_irqsave(&q->lock, irq);
	posted = op->posted;
	op->posted = false;
	spin_unlock_irqrestore(&q->lock, irq);
	vrb_ep_failed(ep, wc, vrb_rx_error(wc->status));
	return posted;
}

static void vrb_rx_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct vrb_rxop *op = container_of(wc->wr_cqe, struct vrb_rxop, cqe);
	struct vrb_rxq *q = op->q;
	struct vrb_ep *ep = wc->qp->qp_context;
	struct kofi_wc done __uninitialized;
	u64 flags = op->flags;

	if (unlikely(wc->status) && !vrb_rx_failed(op, ep, wc))
		return;
	vrb_wc_set(&done, op->context, 0, wc->status, FI_RECV | FI_MSG,
		   wc->byte_len);
	if (unlikely(vrb_rx_unasked(ep, wc))) {
		done.err = EPROTO;
		done.len = 0;
		kofi_violation(&ep->base.obj, NULL, "write without a receive");
		vrb_ep_abort(ep, EPROTO);
	} else if (likely(!wc->status)) {
		vrb_rx_fill(&done, wc);
		done.src = READ_ONCE(ep->base.source);
		if (wc->wc_flags & IB_WC_WITH_INVALIDATE)
			vrb_mr_invalidated(ep, wc->ex.invalidate_rkey);
	} else {
		done.err = vrb_rx_error(wc->status);
		done.len = 0;
	}
	vrb_rx_end(op);
	/* with a shared receive context, @ep is not the owner of the queue */
	kofi_ep_rx_report(q->base, &ep->base, &done, flags);
}

/* ---------------------------------------------------------------- posting */

static __always_inline int vrb_rx_post_wr(struct vrb_rxq *q,
					  const struct ib_recv_wr *wr,
					  const struct ib_recv_wr **bad)
{
	return unlikely(q->srq) ? ib_post_srq_recv(q->srq, wr, bad) :
				  ib_post_recv(q->ep->qp, wr, bad);
}

/*
 * Post one receive with one segment. With the queue's lock held; it may
 * complete at once.
 */
static __always_inline int vrb_rx_hand_over(struct vrb_rxq *q,
					    struct vrb_rxop *op)
{
	struct ib_recv_wr wr __uninitialized;
	struct ib_sge sge __uninitialized;
	int err;

	sge.addr = op->map.segs[0].addr;
	sge.length = op->map.segs[0].len;
	sge.lkey = q->dom->lkey;
	wr.next = NULL;
	wr.wr_cqe = &op->cqe;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	op->posted = true;
	err = vrb_rx_post_wr(q, &wr, NULL);
	if (unlikely(err))
		op->posted = false;
	return err;
}

/* Post as many deferred receives as fit into a list. */
static int vrb_rx_post_list(struct vrb_rxq *q)
{
	struct ib_sge sge[KOFI_IOV_MAX];
	struct ib_recv_wr wr[VRB_LINKS];
	const struct ib_recv_wr *bad = wr;
	unsigned int n = 0, nr, used = 0;
	struct vrb_rxop *ops[VRB_LINKS];
	struct vrb_rxop *op, *next;
	struct vrb_walk w;
	int err;
	u32 len;

	list_for_each_entry_safe(op, next, &q->deferred, deferred) {
		if (n == VRB_LINKS || used + op->map.nr > KOFI_IOV_MAX)
			break;
		/* it may complete before the device has taken the last one */
		list_del(&op->deferred);
		op->posted = true;
		ops[n] = op;
		vrb_walk_init(&w, &op->map);
		wr[n] = (struct ib_recv_wr) { .wr_cqe = &op->cqe };
		wr[n].num_sge = vrb_walk_sges(&w, &sge[used], q->sge,
					      q->dom->lkey,
					      SIZE_MAX, &len);
		/* some drivers read the first segment even if there is none */
		if (wr[n].num_sge)
			wr[n].sg_list = &sge[used];
		if (n)
			wr[n - 1].next = &wr[n];
		used += wr[n].num_sge;
		n++;
	}
	err = vrb_rx_post_wr(q, wr, &bad);
	if (!err)
		return 0;
	/* if the device does not say which one, it took none */
	nr = bad > wr && bad < wr + n ? bad - wr : 0;
	while (n > nr) {
		op = ops[--n];
		op->posted = false;
		list_add(&op->deferred, &q->deferred);
	}
	return err;
}

/* Post all deferred receives. With the queue's lock held. */
static int vrb_rx_post_deferred(struct vrb_rxq *q)
{
	int err = 0;

	q->nr_held = 0;
	while (!list_empty(&q->deferred) && !err)
		err = vrb_rx_post_list(q);
	return err;
}

/* Defer a receive, and post all deferred ones unless more follow. */
static noinline_for_stack int vrb_rx_defer(struct vrb_rxq *q,
					   struct vrb_rxop *op, bool more)
{
	int err;

	list_add_tail(&op->deferred, &q->deferred);
	/* on iWARP, a message without a receive terminates the connection */
	if (more && q->ep && !q->ep->iwarp && !op->map.sgl &&
	    ++q->nr_held < VRB_LINKS) {
		vrb_retry(q->retry);
		return 0;
	}
	err = vrb_rx_post_deferred(q);
	if (!err)
		return 0;
	if (list_first_entry(&q->deferred, struct vrb_rxop, deferred) == op &&
	    !(err == -ENOTCONN && q->ep)) {
		list_del(&op->deferred);
		return err;
	}
	vrb_stat_inc(&q->ep->rxq.waited);
	return -EINPROGRESS;
}

/*
 * Post a receive, or defer it if the queue pair is not ready. With the queue's
 * lock held; @op is on no list.
 *
 * Return: 0, -EINPROGRESS if it is deferred, or another error.
 */
static int vrb_rx_submit(struct vrb_rxq *q, struct vrb_rxop *op, u64 flags)
{
	int err;

	if (q->closed)
		return -ESHUTDOWN;
	op->seq = q->posts++;
	if (flags & FI_MORE || !list_empty(&q->deferred) ||
	    !vrb_map_is_one(&op->map))
		return vrb_rx_defer(q, op, flags & FI_MORE);
	err = vrb_rx_hand_over(q, op);
	return err == -ENOTCONN ? vrb_rx_defer(q, op, false) : err;
}

/**
 * vrb_rx_push - post receives that wait because of FI_MORE
 * @ep: the endpoint
 *
 * Context: any.
 */
void vrb_rx_push(struct vrb_ep *ep)
{
	struct vrb_rxq *q = &ep->rxq;
	unsigned long irq;

	spin_lock_irqsave(&q->lock, irq);
	if (!q->closed && vrb_rx_post_deferred(q))
		queue_delayed_work(vrb_wq, &ep->work, 1);
	spin_unlock_irqrestore(&q->lock, irq);
}

/**
 * vrb_rx_deferred - post receives that the queue pair could not take
 * @ep: an endpoint with a queue pair that has become ready
 *
 * Context: any.
 */
void vrb_rx_deferred(struct vrb_ep *ep)
{
	if (!list_empty_careful(&ep->rxq.deferred))
		mod_delayed_work(vrb_wq, &ep->work, 0);
}

/**
 * vrb_rx_repost - post deferred receives from the work item
 * @ep: the endpoint
 *
 * If the device refuses a receive for now, the work item is queued again. Any
 * other error fails the endpoint.
 *
 * Context: process.
 */
void vrb_rx_repost(struct vrb_ep *ep)
{
	struct vrb_rxq *q = &ep->rxq;
	unsigned long irq;
	int err = 0;

	spin_lock_irqsave(&q->lock, irq);
	if (!q->closed)
		err = vrb_rx_post_deferred(q);
	spin_unlock_irqrestore(&q->lock, irq);
	if (err == -ENOTCONN || err == -ENOMEM || err == -ENOBUFS)
		queue_delayed_work(vrb_wq, &ep->work, 1);
	else if (err)
		vrb_ep_abort(ep, EIO);
}

/* Take the most recently freed record. With the queue's lock held. */
static __always_inline struct vrb_rxop *vrb_rx_get(struct vrb_rxq *q)
{
	struct llist_node *node = q->ops.free ?: vrb_rx_more(q);

	if (unlikely(!node))
		return NULL;
	q->ops.free = node->next;
	return llist_entry(node, struct vrb_rxop, next);
}

/* Free the record of a receive that was not posted. With the queue's lock held. */
static void vrb_rx_put(struct vrb_rxq *q, struct vrb_rxop *op)
{
	op->map.nr = 0;
	op->next.next = q->ops.free;
	q->ops.free = &op->next;
}

/* Post a receive on memory at device address @addr. Returns true if it was posted. */
static __always_inline bool vrb_rx_post_at(struct vrb_rxq *q,
					   const struct fi_msg *msg, u64 addr,
					   u64 flags)
{
	bool reserved = false;
	struct vrb_rxop *op = NULL;
	unsigned long irq;

	spin_lock_irqsave(&q->lock, irq);
	if (likely(!q->closed && list_empty(&q->deferred)))
		op = vrb_rx_get(q);
	if (unlikely(!op))
		goto unlock;
	if (unlikely(!kofi_ep_rx_try_reserve(q->base)))
		goto put;
	op->context = msg->context;
	op->flags = flags;
	op->seq = q->posts++;
	vrb_map_set(&op->map, addr, msg->msg_iov->iov_len, DMA_FROM_DEVICE);
	reserved = vrb_rx_hand_over(q, op);
	if (likely(!reserved)) {
		spin_unlock_irqrestore(&q->lock, irq);
		return true;
	}
put:
	vrb_rx_put(q, op);
unlock:
	spin_unlock_irqrestore(&q->lock, irq);
	if (unlikely(reserved))
		kofi_ep_rx_unreserve(q->base);
	return false;
}

/* Map the memory, then post. RCU keeps the device present. */
static __always_inline bool vrb_rx_post_mapped(struct vrb_rxq *q,
					       const struct fi_msg *msg,
					       u64 flags)
{
	bool posted = false;
	dma_addr_t addr;

	/* see vrb_domain_lost() */
	rcu_read_lock();
	if (unlikely(READ_ONCE(q->closed)))
		goto unlock;
	addr = vrb_map_seg(q->dom, msg->msg_iov, DMA_FROM_DEVICE);
	if (unlikely(addr == DMA_MAPPING_ERROR))
		goto unlock;
	posted = vrb_rx_post_at(q, msg, addr, flags);
	if (unlikely(!posted))
		vrb_unmap_seg(q->dom, addr, msg->msg_iov->iov_len,
			      DMA_FROM_DEVICE);
unlock:
	rcu_read_unlock();
	return posted;
}

/*
 * Post a receive if the fast path takes it: one segment in the linear mapping,
 * and no deferred receives. Returns true if it was posted; otherwise nothing
 * has changed.
 */
static __always_inline bool vrb_rx_post_usual(struct vrb_rxq *q,
					      const struct fi_msg *msg,
					      u64 flags)
{
	const struct kvec *kv = msg->msg_iov;

	if (unlikely(flags & ~FI_COMPLETION ||
		     !vrb_kvec_is_one(kv, msg->iov_count, msg->vec,
				      q->one_max)))
		return false;
	return q->dom->needs_map ?
	       vrb_rx_post_mapped(q, msg, flags) :
	       vrb_rx_post_at(q, msg, (uintptr_t)kv->iov_base, flags);
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
	err = vrb_map_msg(&op->map, dom, NULL, msg, DMA_FROM_DEVICE);
	/* a list mapped by the consumer takes no room */
	if (!err && op->map.nr > q->sge) {
		vrb_unmap(&op->map, dom, NULL);
		err = -EMSGSIZE;
	}
	return err == -EMSGSIZE ? -EINVAL : err;
}

static int vrb_rx_try(struct vrb_rxq *q, const struct fi_msg *msg, u64 flags)
{
	struct vrb_rxop *op;
	unsigned long irq;
	int err;

	spin_lock_irqsave(&q->lock, irq);
	op = vrb_rx_get(q);
	err = q->closed ? -ESHUTDOWN : -EAGAIN;
	spin_unlock_irqrestore(&q->lock, irq);
	if (!op)
		return err;
	err = vrb_rx_fill_op(q, op, msg, flags);
	if (err)
		goto put;
	spin_lock_irqsave(&q->lock, irq);
	err = vrb_rx_submit(q, op, flags);
	spin_unlock_irqrestore(&q->lock, irq);
	if (!err || err == -EINPROGRESS)
		return err;

	vrb_unmap(&op->map, q->dom, NULL);
put:
	spin_lock_irqsave(&q->lock, irq);
	vrb_rx_put(q, op);
	spin_unlock_irqrestore(&q->lock, irq);
	return err;
}

/* The post has failed with @err: retry once if that may help. */
static int vrb_rx_again(struct vrb_rxq *q, const struct fi_msg *msg,
			u64 flags, int err)
{
	struct kofi_ep *base = q->base;

	if (err == -EAGAIN) {
		err = kofi_ep_retry(base, vrb_rx_try(q, msg, flags));
		if (!err)
			return 0;
	}
	if (err == -EINPROGRESS) {
		queue_delayed_work(vrb_wq, &q->ep->work, 1);
		return 0;
	}
	if (err == -ENOBUFS || err == -ENOMEM)
		err = vrb_refuse_for_now(base, q->retry);
	return kofi_ep_rx_refuse(base, err);
}

static noinline int vrb_rx_accept_any(struct vrb_rxq *q,
				      const struct fi_msg *msg, u64 flags)
{
	int err;

	if (flags & ~VRB_RX_FLAGS)
		return -FI_EBADFLAGS;
	/* keeps the device present: see vrb_domain_lost() */
	guard(rcu)();
	if (READ_ONCE(q->closed))
		return -ESHUTDOWN;
	err = kofi_ep_rx_reserve(q->base);
	if (err)
		return err;
	err = vrb_rx_try(q, msg, flags);
	return err ? vrb_rx_again(q, msg, flags, err) : 0;
}

/**
 * vrb_rxq_post - post a receive
 * @q: the queue; the state of its owner allows posts
 * @msg: message of fi_recvmsg()
 * @flags: flags of fi_recvmsg()
 *
 * Context: any.
 * Return: the return value of fi_recvmsg().
 */
ssize_t vrb_rxq_post(struct vrb_rxq *q, const struct fi_msg *msg, u64 flags)
{
	return likely(vrb_rx_post_usual(q, msg, flags)) ?
	       0 : vrb_rx_accept_any(q, msg, flags);
}

/* fi_recvmsg() and its family */
ssize_t vrb_rx_post(struct fid_ep *fid, const struct fi_msg *msg, u64 flags)
{
	struct vrb_ep *ep = vrb_ep(fid);
	struct vrb_rxq *q = &ep->rxq;
	int err = kofi_ep_rx_state(&ep->base);

	if (unlikely(err))
		return err;
	return likely(vrb_rx_post_usual(q, msg, flags)) ?
	       0 : vrb_rx_accept_any(q, msg, flags);
}

/* ------------------------------------------------------------------- life */

/**
 * vrb_rxq_prepare - initialise an empty queue, which can be closed and flushed
 * @q: zeroed queue
 * @base: the core's endpoint that owns the queue
 * @dom: domain of the owner
 * @retry: timer of the owner, for vrb_retry()
 *
 * Context: any.
 */
void vrb_rxq_prepare(struct vrb_rxq *q, struct kofi_ep *base,
		     struct vrb_domain *dom, struct timer_list *retry)
{
	spin_lock_init(&q->lock);
	init_llist_head(&q->ended);
	INIT_LIST_HEAD(&q->deferred);
	q->base = base;
	q->dom = dom;
	q->retry = retry;
}

/**
 * vrb_rxq_init - allocate the records of receives
 * @q: prepared queue
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int vrb_rxq_init(struct vrb_rxq *q)
{
	const struct fi_rx_attr *attr = q->base->info->rx_attr;
	struct vrb_rxop *op;

	q->sge = vrb_map_room(attr->iov_limit);
	q->one_max = vrb_one_max(q->dom, attr->iov_limit, U32_MAX);
	return vrb_recs_init(&q->ops, attr->size,
			     struct_size(op, map.segs, q->sge),
			     q->dom->base.node);
}

void vrb_rxq_exit(struct vrb_rxq *q)
{
	vrb_recs_exit(&q->ops);
	init_llist_head(&q->ended);
}

/**
 * vrb_rxq_close - refuse further receives
 * @q: the queue
 *
 * When this returns, no context is in the device's post function.
 *
 * Context: any.
 */
void vrb_rxq_close(struct vrb_rxq *q)
{
	unsigned long irq;

	spin_lock_irqsave(&q->lock, irq);
	WRITE_ONCE(q->closed, true);
	spin_unlock_irqrestore(&q->lock, irq);
}

static int vrb_rx_older(void *priv, const struct list_head *a,
			const struct list_head *b)
{
	return (s32)(list_entry(a, struct vrb_rxop, deferred)->seq -
		     list_entry(b, struct vrb_rxop, deferred)->seq) > 0;
}

/**
 * vrb_rxq_flush - cancel receives that the device never got or has not reported
 * @q: a closed queue that the device no longer uses
 *
 * Context: process, may sleep.
 */
void vrb_rxq_flush(struct vrb_rxq *q)
{
	struct vrb_rxop *op, *next;
	unsigned long irq;
	unsigned int i;
	LIST_HEAD(list);

	spin_lock_irqsave(&q->lock, irq);
	list_splice_init(&q->deferred, &list);
	for (i = 0; i < q->ops.used; i++) {
		vrb_recs_pause(i, &q->lock, &irq);
		op = vrb_recs_at(&q->ops, i);
		if (!op->posted)
			continue;
		/* a completion that the device reports from now on is ignored */
		op->posted = false;
		list_add_tail(&op->deferred, &list);
	}
	spin_unlock_irqrestore(&q->lock, irq);
	list_sort(NULL, &list, vrb_rx_older);
	list_for_each_entry_safe(op, next, &list, deferred) {
		struct kofi_wc wc __uninitialized;
		u64 flags = op->flags;

		vrb_wc_set(&wc, op->context, ECANCELED, IB_WC_WR_FLUSH_ERR,
			   FI_RECV | FI_MSG, 0);
		vrb_rx_end(op);
		kofi_ep_rx_complete(q->base, q->base, &wc, flags);
	}
}

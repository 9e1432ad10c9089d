// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Transmits: messages, and reads, writes and atomic changes of a peer's memory.
 *
 * Operations
 *
 * An operation has a record of its own, with its mapped memory, until it
 * completes. It becomes one work request, or, if it is a read or write whose
 * memory on either side has more segments than one can have, a chain of them
 * (wr.c) of which only the last is waited for. Work requests are built on the
 * stack: the device copies them. tx_lock makes the order of posts that of the
 * device, and keeps a chain together. What most operations are has a shorter way
 * (tx.h).
 *
 * Records
 *
 * Who posts takes them from a list under tx_lock. Who completes takes no lock: it
 * puts them on another list, which a post takes as a whole when it has none left,
 * and counts their work requests. So of two processors, one of which posts and the
 * other completes, neither writes for each operation what the other one reads.
 *
 * Signaled and unsignaled
 *
 * Signaled are all operations whose completion is wanted. Of the others only every
 * so many are, and each one once something gets scarce that only a completion
 * brings back. The work requests of a queue pair complete in order, so a
 * completion also stands for the unsignaled operations before it, of which it has a
 * list. A device that keeps no order has it among what fetches and among the rest
 * (VRB_QUIRK_READ_ORDER), so all that fetch are signaled, too. What fails always
 * completes.
 *
 * Zero-length writes
 *
 * Two work requests belong to no operation: writes of no bytes, which touch
 * nothing at the peer. One is the last of a connection that is shut down; its
 * completion says that everything before has completed. The other, the probe, is a
 * timer's: it completes unsignaled operations with nothing behind them, whose slots
 * and records others may wait for, and makes an idle connection notice a peer that
 * has died.
 *
 * Errors
 *
 * An error of a work request is the end of its queue pair: the request that
 * caused it completes with what the device says, and all others are flushed.
 */
#include <linux/list_sort.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "tx.h"

/* Unsignaled operations in a row at most */
#define VRB_TX_UNREPORTED	32

/* How long they wait for one that is signaled */
#define VRB_TX_OVERDUE		max(HZ / 50, 2)

/* What a completion says has happened */
static const u64 vrb_tx_wc_flags[] = {
	[VRB_SEND]	= FI_SEND | FI_MSG,
	[VRB_WRITE]	= FI_WRITE | FI_RMA,
	[VRB_READ]	= FI_READ | FI_RMA,
	[VRB_STORE]	= FI_WRITE | FI_ATOMIC,
	[VRB_ADD]	= FI_READ | FI_ATOMIC,
	[VRB_SWAP]	= FI_READ | FI_ATOMIC,
};

static void vrb_tx_done(struct ib_cq *cq, struct ib_wc *wc);
static void vrb_tx_part_done(struct ib_cq *cq, struct ib_wc *wc);

/* ------------------------------------------------------------- completing */

/**
 * vrb_tx_more - more records: those of operations that have ended, or a new one
 * @ep: the endpoint, with tx_lock held
 *
 * So no more have ever been used than were in use at a time, and the next post
 * gets the one that is most likely in the cache.
 *
 * Context: any.
 * Return: a list, or NULL.
 */
struct llist_node *vrb_tx_more(struct vrb_ep *ep)
{
	struct llist_node *ended = llist_del_all(&ep->tx_ended);
	struct vrb_recs *r = &ep->tx_ops;
	struct vrb_txop *op;

	if (ended || r->used == r->nr)
		return ended;
	op = vrb_recs_at(r, r->used++);
	op->cqe.done = vrb_tx_done;
	op->part.done = vrb_tx_part_done;
	op->ep = ep;
	op->map.room = vrb_map_room(ep->base.info->tx_attr->iov_limit);
	return &op->next;
}

/*
 * Give back the record of an operation that has ended, on a list of its own,
 * without the lock. All that completes operations is one context at a time: the
 * handlers of the device's queue, and who flushes what these have left, when
 * they have returned (vrb_ep_stop_qp()).
 */
static __always_inline void vrb_tx_give_back(struct vrb_ep *ep,
					     struct vrb_txop *op)
{
	WRITE_ONCE(op->posted, false);
	WRITE_ONCE(ep->sq_done, ep->sq_done + op->wrs);
	/*
	 * A full barrier, as is llist_del_all(): who finds the record finds it
	 * done with, and its work requests ended.
	 */
	llist_add(&op->next, &ep->tx_ended);
}

/* It takes part in what is guarded by the lock. */
static noinline void vrb_tx_end_read(struct vrb_ep *ep, struct vrb_txop *op)
{
	unsigned long irq;

	spin_lock_irqsave(&ep->tx_lock, irq);
	vrb_read_mrs_put(ep, op);
	spin_unlock_irqrestore(&ep->tx_lock, irq);
}

/* All but the report: free before the consumer knows, which may post at once. */
static __always_inline void vrb_tx_end(struct vrb_ep *ep, struct vrb_txop *op,
				       int err, struct kofi_wc *wc)
{
	vrb_wc_set(wc, op->context, err, op->status, vrb_tx_wc_flags[op->op],
		   op->len);
	vrb_unmap(&op->map, ep->dom, &ep->tx_blocks);
	if (unlikely(op->read_mrs))
		vrb_tx_end_read(ep, op);
	vrb_tx_give_back(ep, op);
}

/* Complete an operation that is on no list any more. */
static void vrb_tx_complete(struct vrb_ep *ep, struct vrb_txop *op, int err)
{
	struct kofi_wc wc __uninitialized;
	u64 flags = op->flags;

	vrb_tx_end(ep, op, err, &wc);
	kofi_ep_tx_complete(&ep->base, &wc, flags);
}

/* What is unsignaled has ended, if one behind it has. */
static noinline void vrb_tx_complete_unsignaled(struct vrb_ep *ep,
						struct llist_node *ops)
{
	struct vrb_txop *op, *next;

	llist_for_each_entry_safe(op, next, llist_reverse_order(ops), next)
		vrb_tx_complete(ep, op, vrb_wc_error(op->status));
}

/* Those behind all others. With tx_lock held */
static struct llist_node *vrb_tx_take_unsignaled(struct vrb_ep *ep)
{
	struct llist_node *ops = ep->tx_unsignaled;

	ep->tx_unsignaled = NULL;
	ep->tx_unreported = 0;
	return ops;
}

/*
 * A work request has failed. A device may say that twice, or after the request
 * has succeeded; so a record is not used again once anything has failed. Returns
 * whether its operation completes now: one that is unsignaled is on a list, and does
 * so with the one behind it, or when the endpoint ends, which it does; and a read
 * completes when what it reads into is out of reach.
 */
static bool vrb_tx_failed(struct vrb_ep *ep, struct vrb_txop *op,
			  const struct ib_wc *wc)
{
	int err = vrb_wc_error(wc->status);
	bool first, completes;
	unsigned long irq;

	spin_lock_irqsave(&ep->tx_lock, irq);
	first = !ep->tx_closed;
	ep->tx_closed = true;
	if (op->posted && !op->status)
		op->status = wc->status;
	completes = op->posted && op->signaled && !op->read_mrs;
	spin_unlock_irqrestore(&ep->tx_lock, irq);
	vrb_ep_failed(ep, wc, err);
	/* vrb_tx_finish() will not, as it finds the endpoint closed */
	if (first)
		vrb_ep_abort(ep, err);
	return completes;
}

static void vrb_tx_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct vrb_txop *op = container_of(wc->wr_cqe, struct vrb_txop, cqe);
	struct vrb_ep *ep = op->ep;
	struct kofi_wc done __uninitialized;
	const u64 flags = op->flags;
	int err = 0;

	if (unlikely(wc->status) && !vrb_tx_failed(ep, op, wc))
		return;
	if (unlikely(op->next.next))
		vrb_tx_complete_unsignaled(ep, op->next.next);
	if (unlikely(op->status))
		err = vrb_wc_error(op->status);
	vrb_tx_end(ep, op, err, &done);
	kofi_ep_tx_report(&ep->base, &done, flags);
}

/* A work request of a chain has failed; the last one completes the operation. */
static void vrb_tx_part_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct vrb_txop *op = container_of(wc->wr_cqe, struct vrb_txop, part);

	if (wc->status)
		vrb_tx_failed(op->ep, op, wc);
}

/* ----------------------------------------------------- writes of no bytes */

static int vrb_tx_post_nothing(struct vrb_ep *ep, struct ib_cqe *cqe)
{
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = cqe,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};

	lockdep_assert_held(&ep->tx_lock);

	return vrb_links_flush(ep) ?: ib_post_send(ep->qp, &wr.wr, NULL);
}

/*
 * Have the end of all operations reported, now or once the device has room. With
 * tx_lock held. Returns false if that will not be.
 */
static bool vrb_tx_post_last(struct vrb_ep *ep)
{
	int err = vrb_tx_post_nothing(ep, &ep->tx_last);

	ep->tx_ending = err == -ENOMEM || err == -ENOBUFS;
	if (ep->tx_ending)
		vrb_retry(&ep->retry);
	return !err || ep->tx_ending;
}

/**
 * vrb_tx_push - hand over what waits for more, which may not come, or for room
 * @ep: the endpoint
 *
 * Context: any.
 */
void vrb_tx_push(struct vrb_ep *ep)
{
	unsigned long irq;
	bool ends = false;

	spin_lock_irqsave(&ep->tx_lock, irq);
	if (ep->tx_ending)
		ends = !vrb_tx_post_last(ep);
	else if (!ep->tx_closed)
		vrb_links_flush(ep);
	spin_unlock_irqrestore(&ep->tx_lock, irq);
	if (ends)
		vrb_ep_abort(ep, ECANCELED);
}

/* Everything has been sent. */
static void vrb_tx_last_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct vrb_ep *ep = container_of(wc->wr_cqe, struct vrb_ep, tx_last);
	struct llist_node *ops;
	unsigned long irq;

	if (!wc->status) {
		spin_lock_irqsave(&ep->tx_lock, irq);
		ops = vrb_tx_take_unsignaled(ep);
		spin_unlock_irqrestore(&ep->tx_lock, irq);
		vrb_tx_complete_unsignaled(ep, ops);
	}
	vrb_ep_abort(ep, wc->status ? vrb_wc_error(wc->status) : ECANCELED);
}

/**
 * vrb_tx_finish - accept no more, and end the endpoint when all has been sent
 * @ep: a connected endpoint
 *
 * Context: any.
 * Return: true if that is under way; false if there is nothing to wait for.
 */
bool vrb_tx_finish(struct vrb_ep *ep)
{
	unsigned long irq;
	bool waits;

	spin_lock_irqsave(&ep->tx_lock, irq);
	waits = vrb_tx_outstanding(ep);
	/* otherwise an earlier call has posted it, or the endpoint is ending */
	if (!ep->tx_closed && waits)
		waits = vrb_tx_post_last(ep);
	ep->tx_left = READ_ONCE(ep->sq_done);
	ep->tx_closed = true;
	spin_unlock_irqrestore(&ep->tx_lock, irq);
	return waits;
}

/* All before it has ended; if it has failed that is the end of the endpoint. */
static void vrb_tx_probe_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct vrb_ep *ep = container_of(wc->wr_cqe, struct vrb_ep, tx_probe);
	struct llist_node *ops;
	unsigned long irq;

	spin_lock_irqsave(&ep->tx_lock, irq);
	ops = ep->tx_probed;
	ep->tx_probed = NULL;
	ep->tx_probing = false;
	spin_unlock_irqrestore(&ep->tx_lock, irq);
	if (wc->status)
		vrb_ep_failed(ep, wc, vrb_wc_error(wc->status));
	else
		vrb_tx_complete_unsignaled(ep, ops);
}

/* With tx_lock held. The device has what waited for more to follow then, too. */
static void vrb_tx_post_probe(struct vrb_ep *ep)
{
	if (ep->tx_closed || ep->tx_probing ||
	    vrb_tx_post_nothing(ep, &ep->tx_probe))
		return;
	ep->tx_probing = true;
	ep->tx_probed = vrb_tx_take_unsignaled(ep);
}

/**
 * vrb_tx_probe - have unsignaled operations after all others complete
 * @ep: a connected endpoint
 *
 * Context: any.
 */
void vrb_tx_probe(struct vrb_ep *ep)
{
	unsigned long irq;

	spin_lock_irqsave(&ep->tx_lock, irq);
	if (ep->tx_unreported)
		vrb_tx_post_probe(ep);
	spin_unlock_irqrestore(&ep->tx_lock, irq);
}

/**
 * vrb_tx_overdue - the same when nothing has followed them for a while
 * @t: the endpoint's timer, which starts with the first of them
 *
 * Context: softirq.
 */
void vrb_tx_overdue(struct timer_list *t)
{
	struct vrb_ep *ep = container_of(t, struct vrb_ep, overdue);
	unsigned long irq;

	spin_lock_irqsave(&ep->tx_lock, irq);
	if (ep->tx_unreported)
		vrb_tx_post_probe(ep);
	/* the probe before is on its way, or there was no room for this one */
	if (ep->tx_unreported && !ep->tx_closed)
		mod_timer(t, jiffies + VRB_TX_OVERDUE);
	spin_unlock_irqrestore(&ep->tx_lock, irq);
}

/**
 * vrb_tx_idle - send something if nothing is outstanding whose end is reported
 * @t: the endpoint's timer, which starts with the connection
 *
 * Context: softirq.
 */
void vrb_tx_idle(struct timer_list *t)
{
	struct vrb_ep *ep = container_of(t, struct vrb_ep, idle);
	unsigned long irq;

	spin_lock_irqsave(&ep->tx_lock, irq);
	if (!ep->tx_closed) {
		if (!vrb_tx_outstanding(ep) || ep->tx_unreported)
			vrb_tx_post_probe(ep);
		mod_timer(&ep->idle,
			  jiffies + msecs_to_jiffies(ep->tun.keepalive_idle));
	}
	spin_unlock_irqrestore(&ep->tx_lock, irq);
}

/* ---------------------------------------------------------- work requests */

/* What is one work request with one segment, but otherwise of any kind */
static void vrb_tx_fill_any(struct vrb_ep *ep, struct vrb_txop *op,
			    const struct fi_msg *msg,
			    const struct vrb_post *post, struct ib_rdma_wr *wr,
			    struct ib_sge *sge)
{
	vrb_tx_fill_one(ep, op, post->op == VRB_SEND ? NULL : post->rma,
			op->map.segs[0].addr, op->len, wr, sge);
	vrb_wr_opcode(wr, post->op, op->flags, msg, true);
	if (!op->signaled)
		wr->wr.send_flags = 0;
	if (op->flags & FI_FENCE)
		wr->wr.send_flags |= IB_SEND_FENCE;
	if (op->inlined) {
		/* the CPU reads these */
		sge->addr = (uintptr_t)vrb_txop_inject(op);
		wr->wr.send_flags |= IB_SEND_INLINE;
		vrb_stat_inc(&ep->stats.tx_inline);
	}
}

/* More will follow, or others wait for this one. */
static int vrb_tx_hold(struct vrb_ep *ep, struct vrb_txop *op,
		       const struct fi_msg *msg,
		       const struct vrb_post *post)
{
	const unsigned int own = ep->nr_links;
	struct vrb_link *link = vrb_link(ep, own);

	if (own == VRB_LINKS)
		return -ENOBUFS;
	ep->nr_links++;
	link->op = op;
	link->reg.mr = NULL;
	vrb_tx_fill_any(ep, op, msg, post, &link->wr, link->sge);
	if (!(op->flags & FI_MORE) || ep->nr_links == VRB_LINKS)
		return vrb_links_post(ep, own);
	vrb_retry(&ep->retry);
	return 0;
}

static int vrb_tx_hand_over_one(struct vrb_ep *ep, struct vrb_txop *op,
				const struct fi_msg *msg,
				const struct vrb_post *post)
{
	struct ib_rdma_wr wr __uninitialized;
	struct ib_sge sge __uninitialized;
	int err;

	if (ep->nr_links || op->flags & FI_MORE)
		return vrb_tx_hold(ep, op, msg, post);
	vrb_tx_fill_any(ep, op, msg, post, &wr, &sge);
	err = ib_post_send(ep->qp, &wr.wr, NULL);
	if (!err)
		vrb_stat_inc(&ep->stats.tx_wrs);
	return err;
}

static int vrb_tx_hand_over(struct vrb_ep *ep, struct vrb_txop *op,
			    const struct fi_msg *msg,
			    const struct vrb_post *post)
{
	if (op->op == VRB_ADD || op->op == VRB_SWAP)
		return vrb_wr_post_atomic(ep, op, post);
	if (op->single)
		return vrb_tx_hand_over_one(ep, op, msg, post);
	return vrb_wr_post_chain(ep, op, msg, post);
}

/* ---------------------------------------------------------------- posting */

/* Copy the payload of an inject into its operation. */
static int vrb_tx_inject(struct vrb_ep *ep, struct vrb_txop *op,
			 const struct fi_msg *msg,
			 const struct vrb_post *post, struct fi_msg *copy,
			 struct kvec *kv)
{
	u8 *to = vrb_txop_inject(op);
	struct kofi_cursor cur;
	size_t off = 0;
	int err;

	err = kofi_cursor_init(&cur, msg, ITER_SOURCE,
			       ep->base.info->tx_attr->iov_limit);
	if (err)
		return err;
	if (cur.len > ep->base.info->tx_attr->inject_size)
		return -EINVAL;
	while (cur.left) {
		struct iov_iter iter = *kofi_cursor_iter(&cur);
		size_t n = iov_iter_count(&iter);

		if (copy_from_iter(to + off, n, &iter) != n)
			return -EINVAL;
		kofi_cursor_used(&cur, n);
		off += n;
	}
	*kv = (struct kvec) { .iov_base = to, .iov_len = cur.len };
	*copy = (struct fi_msg) { .msg_iov = kv, .iov_count = 1 };
	/*
	 * One work request takes them to one place; devices may refuse none.
	 * What waits has been accepted, so it must not be refused for that.
	 */
	op->inlined = cur.len && cur.len <= READ_ONCE(ep->max_inline) &&
		      post->rma_count <= 1 && !(op->flags & FI_MORE);
	return 0;
}

/* The peer's memory must be as long as ours. */
static int vrb_tx_check_rma(const struct vrb_ep *ep, const struct vrb_txop *op,
			    const struct vrb_post *post)
{
	size_t i, len = 0;

	if (post->op == VRB_SEND)
		return 0;
	if (!post->rma_count || !post->rma ||
	    post->rma_count > min_t(size_t, VRB_RMA_MAX,
				    ep->base.info->tx_attr->rma_iov_limit))
		return -EINVAL;
	for (i = 0; i < post->rma_count; i++) {
		if (check_add_overflow(len, post->rma[i].len, &len) ||
		    post->rma[i].key > U32_MAX)
			return -EINVAL;
	}
	return len == op->len ? 0 : -EINVAL;
}

static int vrb_tx_fill(struct vrb_ep *ep, struct vrb_txop *op,
		       const struct fi_msg *msg, const struct vrb_post *post,
		       u64 flags)
{
	const struct fi_info *info = ep->base.info;
	bool fetch = vrb_op_fetches(post->op);
	struct fi_msg copy;
	struct kvec kv;
	size_t len;
	int err;

	err = vrb_msg_len(msg, fetch ? ITER_DEST : ITER_SOURCE,
			  info->tx_attr->iov_limit, &len);
	if (err)
		return err;
	if (len > info->ep_attr->max_msg_size)
		return -EMSGSIZE;
	if (flags & KOFI_REMOTE_INV && msg->inv_key > U32_MAX)
		return -EINVAL;
	vrb_tx_start(op, post->op, msg->context, flags, len, false);
	err = vrb_tx_check_rma(ep, op, post);
	if (err)
		return err;
	if (flags & FI_INJECT) {
		err = vrb_tx_inject(ep, op, msg, post, &copy, &kv);
		if (err)
			return err;
		msg = &copy;
	}
	if (op->inlined)
		return 0;
	err = vrb_map_msg(&op->map, ep->dom,
			  op->op == VRB_SEND ? NULL : &ep->tx_blocks, msg,
			  fetch ? DMA_FROM_DEVICE : DMA_TO_DEVICE);
	/* other posts may have the blocks, and nothing else be outstanding */
	if (err == -EAGAIN)
		return -ENOBUFS;
	/* a message is one work request */
	if (err == -EMSGSIZE && op->op == VRB_SEND)
		return -EINVAL;
	if (err)
		return err;
	op->single = vrb_map_is_one(&op->map) && post->rma_count <= 1 &&
		     !(ep->iwarp && op->op == VRB_READ);
	if (likely(op->single))
		return 0;
	err = vrb_wr_count(ep, op, post);
	if (err)
		vrb_unmap(&op->map, ep->dom, &ep->tx_blocks);
	return err;
}

static bool vrb_wr_counted(const struct vrb_ep *ep)
{
	return ep->base.cntr[KOFI_CNTR_SEND] || ep->base.cntr[KOFI_CNTR_READ] ||
	       ep->base.cntr[KOFI_CNTR_WRITE];
}

/* Its completion is not wanted: may it be unsignaled? With tx_lock held. */
static bool vrb_tx_may_be_unsignaled(struct vrb_ep *ep,
				     const struct vrb_txop *op)
{
	u32 used = ep->sq_posted - READ_ONCE(ep->sq_done);

	return !(vrb_op_fetches(op->op) || op->map.blocks ||
		 vrb_wr_counted(ep) || vrb_tx_in_place(ep, op) ||
		 used > ep->tx_ops.nr / 2 || used > ep->sq_size / 2 ||
		 ep->tx_unreported >= VRB_TX_UNREPORTED ||
		 kofi_ep_tx_scarce(&ep->base));
}

/* Is the device to report the end of an operation? With tx_lock held. */
static bool vrb_tx_signals(struct vrb_ep *ep, const struct vrb_txop *op)
{
	return !(op->flags & KOFI_NO_COMPLETION ||
		 (ep->base.tx_selective && !(op->flags & FI_COMPLETION))) ||
	       !vrb_tx_may_be_unsignaled(ep, op);
}

/* With tx_lock held */
static int vrb_tx_submit(struct vrb_ep *ep, struct vrb_txop *op,
			 const struct fi_msg *msg, const struct vrb_post *post)
{
	int err;

	if (ep->tx_closed)
		return -ESHUTDOWN;
	if (!vrb_tx_room(ep, op->wrs))
		return -EAGAIN;
	/* a read on iWARP */
	if (op->parts != op->wrs) {
		err = vrb_read_mrs_need(ep, op->parts);
		if (err)
			return err;
	}
	ep->sq_posted += op->wrs;
	op->seq = ep->sq_posted;
	op->posted = true;
	op->signaled = vrb_tx_signals(ep, op);
	if (op->signaled)
		vrb_tx_adopt(ep, op);
	err = vrb_tx_hand_over(ep, op, msg, post);
	trace_kofi_verbs_tx(ep, op, err);
	if (err) {
		if (op->signaled)
			vrb_tx_disown(ep, op);
		op->posted = false;
		ep->sq_posted -= op->wrs;
		return err;
	}
	if (!op->signaled) {
		op->next.next = ep->tx_unsignaled;
		ep->tx_unsignaled = &op->next;
		ep->tx_unreported++;
		timer_reduce(&ep->overdue, jiffies + VRB_TX_OVERDUE);
		vrb_stat_inc(&ep->stats.tx_unsignaled);
	}
	return 0;
}

static int vrb_tx_try(struct vrb_ep *ep, const struct fi_msg *msg,
		      const struct vrb_post *post, u64 flags)
{
	struct vrb_txop *op;
	unsigned long irq;
	size_t less = 0;
	int err;

again:
	spin_lock_irqsave(&ep->tx_lock, irq);
	op = vrb_tx_get(ep);
	err = ep->tx_closed ? -ESHUTDOWN : -EAGAIN;
	spin_unlock_irqrestore(&ep->tx_lock, irq);
	if (!op)
		return err;
	err = vrb_tx_fill(ep, op, msg, post, flags);
	if (err)
		goto put;
	spin_lock_irqsave(&ep->tx_lock, irq);
	err = vrb_tx_submit(ep, op, msg, post);
	spin_unlock_irqrestore(&ep->tx_lock, irq);
	if (!err)
		return 0;

	if (op->inlined && (err == -EINVAL || err == -EMSGSIZE))
		less = op->len;
	vrb_unmap(&op->map, ep->dom, &ep->tx_blocks);
put:
	spin_lock_irqsave(&ep->tx_lock, irq);
	vrb_tx_put(ep, op);
	spin_unlock_irqrestore(&ep->tx_lock, irq);
	if (!less)
		return err;
	/* the device takes less along than it has granted: this is copied */
	WRITE_ONCE(ep->max_inline, less - 1);
	less = 0;
	goto again;
}

/**
 * vrb_tx_refused - what a consumer is told of a refusal
 * @ep: the endpoint
 * @err: the device's, or the mapping's
 *
 * A queue pair that is ending is no error of the operation. What the device lacks
 * just now, a completion of this endpoint need not bring back.
 *
 * Context: any.
 * Return: the error; with -EAGAIN for want of memory the wake-up is under way.
 */
int vrb_tx_refused(struct vrb_ep *ep, int err)
{
	switch (err) {
	case -ENOTCONN:
		return -ESHUTDOWN;
	case -ENOMEM:
	case -ENOBUFS:
		kofi_ep_blocked(&ep->base);
		vrb_retry(&ep->retry);
		return -EAGAIN;
	default:
		return err;
	}
}

/* What the device does not have, or the consumer has not agreed to */
static int vrb_tx_check_flags(const struct vrb_ep *ep,
			      const struct vrb_post *post, u64 flags)
{
	const struct fi_info *info = ep->base.info;

	if (hweight64(flags & VRB_TX_LEVELS) > 1)
		return -FI_EBADFLAGS;
	if (flags & FI_REMOTE_CQ_DATA) {
		if (!info->domain_attr->cq_data_size ||
		    flags & KOFI_REMOTE_INV || post->op == VRB_STORE)
			return -EOPNOTSUPP;
		/* takes a receive of the peer, which is taken to have agreed as well */
		if (post->op == VRB_WRITE && !(info->mode & FI_RX_CQ_DATA))
			return -EOPNOTSUPP;
	}
	if (flags & KOFI_REMOTE_INV && !ep->dom->regions)
		return -EOPNOTSUPP;
	if (ep->iwarp && flags & (FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE))
		return -EOPNOTSUPP;
	return 0;
}

static int vrb_tx_check(const struct vrb_ep *ep, const struct vrb_post *post,
			u64 flags)
{
	/* with an initiator depth of 0 it would wait for ever */
	if (vrb_op_fetches(post->op) &&
	    (!ep->initiator_depth ||
	     (post->op == VRB_READ && ep->iwarp && !ep->read_mrs.pages)))
		return -EOPNOTSUPP;
	return vrb_tx_check_flags(ep, post, flags);
}

/* The post has failed with @err: try once more if that may help. */
static int vrb_tx_again(struct vrb_ep *ep, const struct fi_msg *msg,
			const struct vrb_post *post, u64 flags,
			int err)
{
	if (err == -EAGAIN) {
		vrb_stat_inc(&ep->stats.tx_full);
		vrb_tx_push(ep);
		/* one may have completed before the mark was there to see */
		kofi_ep_blocked(&ep->base);
		err = vrb_tx_try(ep, msg, post, flags);
		if (!err)
			return 0;
	}
	err = vrb_tx_refused(ep, err);
	/* another post may have been refused while this held an operation */
	if (err != -EAGAIN)
		kofi_ep_unblock(&ep->base);
	kofi_ep_tx_unreserve(&ep->base);
	return err;
}

/* With RCU, which keeps the device: see vrb_domain_lost(). */
static int vrb_tx_accept_rcu(struct vrb_ep *ep, const struct fi_msg *msg,
			     const struct vrb_post *post, u64 flags)
{
	int err;

	if (READ_ONCE(ep->tx_closed))
		return -ESHUTDOWN;
	/* the answer may be for one of these */
	if (!list_empty(&ep->rxq.deferred))
		vrb_rx_push(ep);
	err = kofi_ep_tx_reserve(&ep->base);
	if (err)
		return err;
	err = vrb_tx_try(ep, msg, post, flags);
	return err ? vrb_tx_again(ep, msg, post, flags, err) : 0;
}

/**
 * vrb_tx_accept_any - accept a transmit of any kind, or refuse it
 * @ep: the endpoint
 * @msg: local memory, and what comes back
 * @post: what is done
 * @flags: known to this kind of post
 *
 * Context: any.
 * Return: see the head of fi_endpoint.h.
 */
ssize_t vrb_tx_accept_any(struct vrb_ep *ep, const struct fi_msg *msg,
			  const struct vrb_post *post, u64 flags)
{
	ssize_t err = kofi_ep_tx_state(&ep->base) ? :
		      vrb_tx_check(ep, post, flags);

	if (err)
		return err;
	rcu_read_lock();
	err = vrb_tx_accept_rcu(ep, msg, post, flags);
	rcu_read_unlock();
	return err;
}

/* fi_sendmsg() and its family */
ssize_t vrb_tx_post(struct fid_ep *fid, const struct fi_msg *msg, u64 flags)
{
	static const struct vrb_post post = { .op = VRB_SEND };
	const struct vrb_usual u = {
		.kv = msg->msg_iov,
		.count = msg->iov_count,
		.vec = msg->vec,
		.context = msg->context,
	};

	if (likely(vrb_tx_post_usual(vrb_ep(fid), VRB_SEND, &u, flags)))
		return 0;
	if (flags & ~(VRB_TX_FLAGS | KOFI_REMOTE_INV))
		return -FI_EBADFLAGS;
	return vrb_tx_accept_any(vrb_ep(fid), msg, &post, flags);
}

/* ------------------------------------------------------------------- life */

/**
 * vrb_tx_init - make the operations
 * @ep: an endpoint whose queue pair has been sized
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int vrb_tx_init(struct vrb_ep *ep)
{
	const struct fi_info *info = ep->base.info;
	size_t room = vrb_map_room(info->tx_attr->iov_limit);
	int node = ep->base.domain->node;
	struct vrb_txop *op;
	int err;

	err = vrb_recs_init(&ep->tx_ops, info->tx_attr->size,
			    struct_size(op, map.segs, room) +
			    info->tx_attr->inject_size, node) ?:
	      vrb_links_init(ep, node);
	if (!err && info->caps & FI_RMA)
		err = vrb_blocks_init(&ep->tx_blocks, node) ?:
		      vrb_read_mrs_init(ep);
	if (err) {
		vrb_tx_exit(ep);
		return err;
	}
	ep->tx_last.done = vrb_tx_last_done;
	ep->tx_probe.done = vrb_tx_probe_done;
	ep->tx_one_max = vrb_one_max(ep->dom, info->tx_attr->iov_limit,
				     info->ep_attr->max_msg_size);
	/* what is done otherwise; see vrb_tx_check_flags() */
	ep->tx_usual = FI_COMPLETION | (ep->iwarp ? 0 : FI_DELIVERY_COMPLETE);
	ep->sq_limit = ep->sq_size;
	return 0;
}

void vrb_tx_exit(struct vrb_ep *ep)
{
	vrb_read_mrs_exit(ep);
	vrb_blocks_exit(&ep->tx_blocks);
	kfree(ep->links);
	ep->links = NULL;
	vrb_recs_exit(&ep->tx_ops);
	init_llist_head(&ep->tx_ended);
}

/**
 * vrb_tx_close - accept no more
 * @ep: the endpoint
 *
 * No context is in the device's post function any more when this returns.
 *
 * Context: any.
 */
void vrb_tx_close(struct vrb_ep *ep)
{
	unsigned long irq;

	spin_lock_irqsave(&ep->tx_lock, irq);
	ep->tx_ending = false;
	vrb_links_drop(ep);
	spin_unlock_irqrestore(&ep->tx_lock, irq);
}

static int vrb_tx_older(void *priv, const struct list_head *a,
			const struct list_head *b)
{
	return (s32)(list_entry(a, struct vrb_txop, node)->seq -
		     list_entry(b, struct vrb_txop, node)->seq) > 0;
}

/**
 * vrb_tx_flush - complete what the device has not reported
 * @ep: an endpoint whose queue pair has been drained, or destroyed
 * @drained: which of these
 *
 * In the first case that is unsignaled operations, which have succeeded, as
 * errors would have been reported; a chain that could not be posted to its end;
 * and reads on iWARP that have failed.
 *
 * Context: process, may sleep.
 */
void vrb_tx_flush(struct vrb_ep *ep, bool drained)
{
	struct vrb_txop *op, *next;
	unsigned long irq;
	LIST_HEAD(list);
	unsigned int i;

	spin_lock_irqsave(&ep->tx_lock, irq);
	vrb_tx_take_unsignaled(ep);
	for (i = 0; i < ep->tx_ops.used; i++) {
		vrb_recs_pause(i, &ep->tx_lock, &irq);
		op = vrb_recs_at(&ep->tx_ops, i);
		if (!op->posted)
			continue;
		/* what a device says of it now comes too late */
		op->posted = false;
		list_add_tail(&op->node, &list);
	}
	spin_unlock_irqrestore(&ep->tx_lock, irq);
	list_sort(NULL, &list, vrb_tx_older);
	list_for_each_entry_safe(op, next, &list, node)
		vrb_tx_complete(ep, op, op->status ||
				(drained && !op->signaled) ?
				vrb_wc_error(op->status) : ECANCELED);
}

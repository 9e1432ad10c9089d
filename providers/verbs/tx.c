// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Transmits: messages, and reads, writes and atomic changes of a peer's memory.
 *
 * Operations
 *
 * An operation has a record with its mapped memory until it completes. It
 * becomes one work request or, if a read or write has too many segments on
 * either side, a chain (tx_wr.c). Work requests are built on the stack, because
 * the device copies them. tx.lock makes the order of posts equal to the order
 * of the device, and keeps a chain together. Common operations take a fast path
 * (tx.h).
 *
 * Records
 *
 * A post takes a record from a list under tx.lock. A completion takes no lock:
 * it puts the record on another list and counts the work requests in
 * tx_done.wrs. When the first list is empty, a post takes over the second one as
 * a whole. So if one CPU posts and another one completes, neither writes for each
 * operation a cache line that the other one reads.
 *
 * Signaled and unsignaled
 *
 * Operations with a completion for the consumer are signaled. Of the others,
 * one is signaled after VRB_TX_UNREPORTED unsignaled ones, and each one while a
 * resource is scarce that only a completion frees. The work requests of a queue
 * pair complete in order. So the completion of a signaled operation also
 * completes the unsignaled operations before it, which are on its list. A
 * device with VRB_QUIRK_READ_ORDER keeps order only among reads and among other
 * operations; therefore all operations that fetch are signaled. Failed
 * operations always complete.
 *
 * Zero-length writes
 *
 * Two work requests belong to no operation: zero-length writes, which do not
 * touch the peer's memory. The first is the last work request of a connection
 * that is shut down; its completion means that all before it have completed.
 * The other one, the probe, is posted by a timer. It completes unsignaled
 * operations that no signaled one follows, and so frees their slots and
 * records. On an idle connection it detects a dead peer.
 *
 * Errors
 *
 * A failed work request stops its queue pair. It completes with the device's
 * status, and all others are flushed.
 */
#include <linux/list_sort.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "tx.h"

/* Most unsignaled operations in a row */
#define VRB_TX_UNREPORTED	32

/* Time after which unsignaled operations are completed by a probe */
#define VRB_TX_OVERDUE		max(HZ / 50, 2)

/* Flags of completions */
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
 * vrb_tx_more - get more records: completed ones, or one that was never used
 * @ep: the endpoint, with tx.lock held
 *
 * So the number of records ever used equals the highest number in use at a time.
 * The next post gets a record that is probably in the cache.
 *
 * Context: any.
 * Return: a list of records, or NULL.
 */
struct llist_node *vrb_tx_more(struct vrb_ep *ep)
{
	struct llist_node *ended = llist_del_all(&ep->tx_done.ended);
	struct vrb_recs *r = &ep->tx.ops;
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
 * Free the record of a completed operation, without a lock, on the list for
 * completions. Only one context at a time completes operations: the handlers of
 * the device's queue or, after they have returned (vrb_ep_stop_qp()),
 * vrb_tx_flush().
 */
static __always_inline void vrb_tx_give_back(struct vrb_ep *ep,
					     struct vrb_txop *op)
{
	WRITE_ONCE(op->posted, false);
	WRITE_ONCE(ep->tx_done.wrs, ep->tx_done.wrs + op->wrs);
	/*
	 * A full barrier, paired with llist_del_all(): a post that finds the
	 * record sees all changes to the record, and its work requests counted
	 * in tx_done.wrs.
	 */
	llist_add(&op->next, &ep->tx_done.ended);
}

/* Free the regions of a read, which needs the lock. */
static noinline void vrb_tx_end_read(struct vrb_ep *ep, struct vrb_txop *op)
{
	unsigned long irq;

	spin_lock_irqsave(&ep->tx.lock, irq);
	vrb_read_mrs_put(ep, op);
	spin_unlock_irqrestore(&ep->tx.lock, irq);
}

/*
 * Finish an operation, except for the report: its record must be free when the
 * consumer's callback posts again.
 */
static __always_inline void vrb_tx_end(struct vrb_ep *ep, struct vrb_txop *op,
				       int err, struct kofi_wc *wc)
{
	vrb_wc_set(wc, op->context, err, op->status, vrb_tx_wc_flags[op->op],
		   op->len);
	vrb_unmap(&op->map, ep->dom, &ep->tx.blocks);
	if (unlikely(op->read_mrs))
		vrb_tx_end_read(ep, op);
	vrb_tx_give_back(ep, op);
}

/* Complete an operation that is on no list. */
static void vrb_tx_complete(struct vrb_ep *ep, struct vrb_txop *op, int err)
{
	struct kofi_wc wc __uninitialized;
	u64 flags = op->flags;

	vrb_tx_end(ep, op, err, &wc);
	kofi_ep_tx_complete(&ep->base, &wc, flags);
}

/* Complete unsignaled operations, after one behind them has completed. */
static noinline void vrb_tx_complete_unsignaled(struct vrb_ep *ep,
						struct llist_node *ops)
{
	struct vrb_txop *op, *next;

	llist_for_each_entry_safe(op, next, llist_reverse_order(ops), next)
		vrb_tx_complete(ep, op, vrb_wc_error(op->status));
}

/* Take the unsignaled operations that no signaled one follows. With tx.lock held. */
static struct llist_node *vrb_tx_take_unsignaled(struct vrb_ep *ep)
{
	struct llist_node *ops = ep->tx.unsignaled;

	ep->tx.unsignaled = NULL;
	ep->tx.unreported = 0;
	return ops;
}

/*
 * Handle a failed work request. A device may report the failure twice, or after
 * success; so no record is reused after a failure. Returns true if the
 * operation completes now. An unsignaled operation completes with the signaled
 * one behind it, or when the endpoint is ended. A read completes after its
 * regions have been deregistered.
 */
static bool vrb_tx_failed(struct vrb_ep *ep, struct vrb_txop *op,
			  const struct ib_wc *wc)
{
	int err = vrb_wc_error(wc->status);
	bool first, completes;
	unsigned long irq;

	spin_lock_irqsave(&ep->tx.lock, irq);
	first = vrb_tx_is_open(ep);
	vrb_tx_set_closed(ep);
	if (op->posted && !op->status)
		op->status = wc->status;
	completes = op->posted && op->signaled && !op->read_mrs;
	spin_unlock_irqrestore(&ep->tx.lock, irq);
	vrb_ep_failed(ep, wc, err);
	/* vrb_tx_finish() will not do this, because it finds tx.state changed */
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

/* Handle a work request of a chain before the last, which completes the operation. */
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

	lockdep_assert_held(&ep->tx.lock);

	return vrb_links_flush(ep) ?: ib_post_send(ep->qp, &wr.wr, NULL);
}

/*
 * Post the final work request of a shutdown, now or when the device has room.
 * With tx.lock held. Returns false if that is impossible.
 */
static bool vrb_tx_post_last(struct vrb_ep *ep)
{
	int err = vrb_tx_post_nothing(ep, &ep->tx.last);

	if (err == -ENOMEM || err == -ENOBUFS) {
		WRITE_ONCE(ep->tx.state, VRB_TX_ENDING);
		vrb_retry(&ep->retry);
		return true;
	}
	WRITE_ONCE(ep->tx.state, VRB_TX_CLOSED);
	return !err;
}

/**
 * vrb_tx_push - post work requests that wait for others or for room
 * @ep: the endpoint
 *
 * Context: any.
 */
void vrb_tx_push(struct vrb_ep *ep)
{
	unsigned long irq;
	bool ends = false;

	spin_lock_irqsave(&ep->tx.lock, irq);
	if (ep->tx.state == VRB_TX_ENDING)
		ends = !vrb_tx_post_last(ep);
	else if (vrb_tx_is_open(ep))
		vrb_links_flush(ep);
	spin_unlock_irqrestore(&ep->tx.lock, irq);
	if (ends)
		vrb_ep_abort(ep, ECANCELED);
}

/* All operations have completed: terminate the endpoint. */
static void vrb_tx_last_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct vrb_ep *ep = container_of(wc->wr_cqe, struct vrb_ep, tx.last);
	struct llist_node *ops;
	unsigned long irq;

	if (!wc->status) {
		spin_lock_irqsave(&ep->tx.lock, irq);
		ops = vrb_tx_take_unsignaled(ep);
		spin_unlock_irqrestore(&ep->tx.lock, irq);
		vrb_tx_complete_unsignaled(ep, ops);
	}
	vrb_ep_abort(ep, wc->status ? vrb_wc_error(wc->status) : ECANCELED);
}

/**
 * vrb_tx_finish - refuse further transmits, and terminate after the last one
 * @ep: a connected endpoint
 *
 * Context: any.
 * Return: true if that was started; false if nothing is outstanding.
 */
bool vrb_tx_finish(struct vrb_ep *ep)
{
	unsigned long irq;
	bool waits;

	spin_lock_irqsave(&ep->tx.lock, irq);
	waits = vrb_tx_outstanding(ep);
	/* otherwise an earlier call has posted it, or the endpoint is ending */
	if (vrb_tx_is_open(ep) && waits)
		waits = vrb_tx_post_last(ep);
	ep->tx.seen = READ_ONCE(ep->tx_done.wrs);
	vrb_tx_set_closed(ep);
	spin_unlock_irqrestore(&ep->tx.lock, irq);
	return waits;
}

/*
 * All operations before the probe have completed. If the probe has failed, fail
 * the endpoint.
 */
static void vrb_tx_probe_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct vrb_ep *ep = container_of(wc->wr_cqe, struct vrb_ep, tx.probe);
	struct llist_node *ops;
	unsigned long irq;

	spin_lock_irqsave(&ep->tx.lock, irq);
	ops = ep->tx.probed;
	ep->tx.probed = NULL;
	ep->tx.probing = false;
	spin_unlock_irqrestore(&ep->tx.lock, irq);
	if (wc->status)
		vrb_ep_failed(ep, wc, vrb_wc_error(wc->status));
	else
		vrb_tx_complete_unsignaled(ep, ops);
}

/* Post a probe, and with it all waiting work requests. With tx.lock held. */
static void vrb_tx_post_probe(struct vrb_ep *ep)
{
	if (!vrb_tx_is_open(ep) || ep->tx.probing ||
	    vrb_tx_post_nothing(ep, &ep->tx.probe))
		return;
	ep->tx.probing = true;
	ep->tx.probed = vrb_tx_take_unsignaled(ep);
}

/**
 * vrb_tx_probe - complete unsignaled operations that no signaled one follows
 * @ep: a connected endpoint
 *
 * Context: any.
 */
void vrb_tx_probe(struct vrb_ep *ep)
{
	unsigned long irq;

	spin_lock_irqsave(&ep->tx.lock, irq);
	if (ep->tx.unreported)
		vrb_tx_post_probe(ep);
	spin_unlock_irqrestore(&ep->tx.lock, irq);
}

/**
 * vrb_tx_overdue - complete unsignaled operations that no signaled one has
 * followed in time
 * @t: the endpoint's timer, started by the first unsignaled operation
 *
 * Context: softirq.
 */
void vrb_tx_overdue(struct timer_list *t)
{
	struct vrb_ep *ep = container_of(t, struct vrb_ep, tx.overdue);
	unsigned long irq;

	spin_lock_irqsave(&ep->tx.lock, irq);
	if (ep->tx.unreported)
		vrb_tx_post_probe(ep);
	/* a probe is outstanding, or the queue had no room for another one */
	if (ep->tx.unreported && vrb_tx_is_open(ep))
		mod_timer(t, jiffies + VRB_TX_OVERDUE);
	spin_unlock_irqrestore(&ep->tx.lock, irq);
}

/**
 * vrb_tx_idle - post a probe unless the last outstanding operation is signaled
 * @t: the endpoint's timer, started when the connection is established
 *
 * Context: softirq.
 */
void vrb_tx_idle(struct timer_list *t)
{
	struct vrb_ep *ep = container_of(t, struct vrb_ep, tx.idle);
	unsigned long irq;

	spin_lock_irqsave(&ep->tx.lock, irq);
	if (vrb_tx_is_open(ep)) {
		if (!vrb_tx_outstanding(ep) || ep->tx.unreported)
			vrb_tx_post_probe(ep);
		mod_timer(&ep->tx.idle,
			  jiffies + msecs_to_jiffies(ep->tun.keepalive_idle));
	}
	spin_unlock_irqrestore(&ep->tx.lock, irq);
}

/* ---------------------------------------------------------- work requests */

/* Fill in one work request with one segment, for any kind of operation and flags. */
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
		/* the CPU reads inline data */
		sge->addr = (uintptr_t)vrb_txop_inject(op);
		wr->wr.send_flags |= IB_SEND_INLINE;
		vrb_stat_inc(&ep->tx.stats.inlined);
	}
}

/* Add the work request to those that wait: more will follow, or others wait already. */
static int vrb_tx_hold(struct vrb_ep *ep, struct vrb_txop *op,
		       const struct fi_msg *msg,
		       const struct vrb_post *post)
{
	const unsigned int own = ep->tx.nr_links;
	struct vrb_link *link = vrb_link(ep, own);

	if (own == VRB_LINKS)
		return -ENOBUFS;
	ep->tx.nr_links++;
	link->op = op;
	link->reg.mr = NULL;
	vrb_tx_fill_any(ep, op, msg, post, &link->wr, link->sge);
	if (!(op->flags & FI_MORE) || ep->tx.nr_links == VRB_LINKS)
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

	if (ep->tx.nr_links || op->flags & FI_MORE)
		return vrb_tx_hold(ep, op, msg, post);
	vrb_tx_fill_any(ep, op, msg, post, &wr, &sge);
	err = ib_post_send(ep->qp, &wr.wr, NULL);
	if (!err)
		vrb_stat_inc(&ep->tx.stats.wrs);
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
	int err;

	err = kofi_cursor_init(&cur, msg, ITER_SOURCE,
			       ep->base.info->tx_attr->iov_limit);
	if (err)
		return err;
	if (cur.len > ep->base.info->tx_attr->inject_size)
		return -EINVAL;
	if (kofi_cursor_read(&cur, to, cur.len))
		return -EINVAL;
	*kv = (struct kvec) { .iov_base = to, .iov_len = cur.len };
	*copy = (struct fi_msg) { .msg_iov = kv, .iov_count = 1 };
	/*
	 * An inline payload must be one work request to one place; devices may
	 * refuse length 0. A post with FI_MORE is accepted before the device
	 * sees it. So it is never inline, because the device might refuse it
	 * for that.
	 */
	op->inlined = cur.len && cur.len <= READ_ONCE(ep->limits.max_inline) &&
		      post->rma_count <= 1 && !(op->flags & FI_MORE);
	return 0;
}

/* Check the peer's memory. Keys of devices have 32 bits. */
static int vrb_tx_check_rma(const struct vrb_ep *ep, const struct vrb_txop *op,
			    const struct vrb_post *post)
{
	size_t i, limit = min_t(size_t, VRB_RMA_MAX,
				ep->base.info->tx_attr->rma_iov_limit);
	int err;

	if (post->op == VRB_SEND)
		return 0;
	err = kofi_rma_check(post->rma, post->rma_count, limit, op->len, NULL);
	for (i = 0; !err && i < post->rma_count; i++)
		if (post->rma[i].key > U32_MAX)
			err = -EINVAL;
	return err;
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
			  op->op == VRB_SEND ? NULL : &ep->tx.blocks, msg,
			  fetch ? DMA_FROM_DEVICE : DMA_TO_DEVICE);
	/* other posts may hold the blocks while nothing is outstanding */
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
		vrb_unmap(&op->map, ep->dom, &ep->tx.blocks);
	return err;
}

static bool vrb_wr_counted(const struct vrb_ep *ep)
{
	return ep->base.cntr[KOFI_CNTR_SEND] || ep->base.cntr[KOFI_CNTR_READ] ||
	       ep->base.cntr[KOFI_CNTR_WRITE];
}

/* Test whether an operation without completion may be unsignaled. With tx.lock held. */
static bool vrb_tx_may_be_unsignaled(struct vrb_ep *ep,
				     const struct vrb_txop *op)
{
	u32 used = ep->tx.posted - READ_ONCE(ep->tx_done.wrs);

	return !(vrb_op_fetches(op->op) || op->map.blocks ||
		 vrb_wr_counted(ep) || vrb_tx_in_place(ep, op) ||
		 used > ep->tx.ops.nr / 2 || used > ep->limits.sq_size / 2 ||
		 ep->tx.unreported >= VRB_TX_UNREPORTED ||
		 kofi_ep_tx_scarce(&ep->base));
}

/* Test whether the device must signal an operation. With tx.lock held. */
static bool vrb_tx_signals(struct vrb_ep *ep, const struct vrb_txop *op)
{
	return !(op->flags & KOFI_NO_COMPLETION ||
		 (ep->base.tx_selective && !(op->flags & FI_COMPLETION))) ||
	       !vrb_tx_may_be_unsignaled(ep, op);
}

/* Post an operation. With tx.lock held. */
static int vrb_tx_submit(struct vrb_ep *ep, struct vrb_txop *op,
			 const struct fi_msg *msg, const struct vrb_post *post)
{
	int err;

	if (!vrb_tx_is_open(ep))
		return -ESHUTDOWN;
	if (!vrb_tx_room(ep, op->wrs))
		return -EAGAIN;
	/* a read on iWARP */
	if (op->parts != op->wrs) {
		err = vrb_read_mrs_need(ep, op->parts);
		if (err)
			return err;
	}
	ep->tx.posted += op->wrs;
	op->seq = ep->tx.posted;
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
		ep->tx.posted -= op->wrs;
		return err;
	}
	if (!op->signaled) {
		op->next.next = ep->tx.unsignaled;
		ep->tx.unsignaled = &op->next;
		ep->tx.unreported++;
		timer_reduce(&ep->tx.overdue, jiffies + VRB_TX_OVERDUE);
		vrb_stat_inc(&ep->tx.stats.unsignaled);
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
	spin_lock_irqsave(&ep->tx.lock, irq);
	op = vrb_tx_get(ep);
	err = vrb_tx_is_open(ep) ? -EAGAIN : -ESHUTDOWN;
	spin_unlock_irqrestore(&ep->tx.lock, irq);
	if (!op)
		return err;
	err = vrb_tx_fill(ep, op, msg, post, flags);
	if (err)
		goto put;
	spin_lock_irqsave(&ep->tx.lock, irq);
	err = vrb_tx_submit(ep, op, msg, post);
	spin_unlock_irqrestore(&ep->tx.lock, irq);
	if (!err)
		return 0;

	if (op->inlined && (err == -EINVAL || err == -EMSGSIZE))
		less = op->len;
	vrb_unmap(&op->map, ep->dom, &ep->tx.blocks);
put:
	spin_lock_irqsave(&ep->tx.lock, irq);
	vrb_tx_put(ep, op);
	spin_unlock_irqrestore(&ep->tx.lock, irq);
	if (!less)
		return err;
	/* the device takes fewer inline bytes than it granted: send a copy */
	WRITE_ONCE(ep->limits.max_inline, less - 1);
	less = 0;
	goto again;
}

/**
 * vrb_tx_refused - error of a refused post, as the consumer sees it
 * @ep: the endpoint
 * @err: error of the device or of the mapping
 *
 * A queue pair that fails is no error of the operation. If the device lacks a
 * resource, a completion of this endpoint need not free it; so a timer wakes
 * the consumer.
 *
 * Context: any.
 * Return: the error; for -ENOMEM and -ENOBUFS, -EAGAIN with the timer started.
 */
int vrb_tx_refused(struct vrb_ep *ep, int err)
{
	switch (err) {
	case -ENOTCONN:
		return -ESHUTDOWN;
	case -ENOMEM:
	case -ENOBUFS:
		return vrb_refuse_for_now(&ep->base, &ep->retry);
	default:
		return err;
	}
}

/* Refuse flags that the device does not support or the consumer has not agreed to. */
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
		/* consumes a receive, to which the peer's consumer must agree, too */
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
	/* with an initiator depth of 0 the operation would never complete */
	if (vrb_op_fetches(post->op) &&
	    (!ep->limits.initiator_depth ||
	     (post->op == VRB_READ && ep->iwarp && !ep->read_mrs.pages)))
		return -EOPNOTSUPP;
	return vrb_tx_check_flags(ep, post, flags);
}

/* The post has failed with @err: retry once if that may help. */
static int vrb_tx_again(struct vrb_ep *ep, const struct fi_msg *msg,
			const struct vrb_post *post, u64 flags,
			int err)
{
	if (err == -EAGAIN) {
		vrb_stat_inc(&ep->tx.stats.full);
		vrb_tx_push(ep);
		err = kofi_ep_retry(&ep->base, vrb_tx_try(ep, msg, post, flags));
		if (!err)
			return 0;
	}
	return kofi_ep_tx_refuse(&ep->base, vrb_tx_refused(ep, err));
}

/* Accept a transmit under RCU, which keeps the device: see vrb_domain_lost(). */
static int vrb_tx_accept_rcu(struct vrb_ep *ep, const struct fi_msg *msg,
			     const struct vrb_post *post, u64 flags)
{
	int err;

	if (!vrb_tx_is_open(ep))
		return -ESHUTDOWN;
	/* the answer may need one of the deferred receives */
	if (!list_empty(&ep->rxq.deferred))
		vrb_rx_push(ep);
	err = kofi_ep_tx_reserve(&ep->base, msg->context);
	if (err)
		return err;
	err = vrb_tx_try(ep, msg, post, flags);
	return err ? vrb_tx_again(ep, msg, post, flags, err) : 0;
}

/**
 * vrb_tx_accept_any - accept a transmit of any kind, or refuse it
 * @ep: the endpoint
 * @msg: local memory, and context of the completion
 * @post: kind of operation, and the peer's memory
 * @flags: flags of the post, valid for this kind
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
 * vrb_tx_init - allocate the records of transmits
 * @ep: an endpoint after vrb_ep_size()
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

	err = vrb_recs_init(&ep->tx.ops, info->tx_attr->size,
			    struct_size(op, map.segs, room) +
			    info->tx_attr->inject_size, node) ?:
	      vrb_links_init(ep, node);
	if (!err && info->caps & FI_RMA)
		err = vrb_blocks_init(&ep->tx.blocks, node) ?:
		      vrb_read_mrs_init(ep);
	if (err) {
		vrb_tx_exit(ep);
		return err;
	}
	ep->tx.last.done = vrb_tx_last_done;
	ep->tx.probe.done = vrb_tx_probe_done;
	ep->limits.tx_one_max = vrb_one_max(ep->dom, info->tx_attr->iov_limit,
					    info->ep_attr->max_msg_size);
	/* flags that need no further work; see vrb_tx_check_flags() */
	ep->limits.tx_usual = FI_COMPLETION | (ep->iwarp ? 0 : FI_DELIVERY_COMPLETE);
	ep->tx.limit = ep->limits.sq_size;
	return 0;
}

void vrb_tx_exit(struct vrb_ep *ep)
{
	vrb_read_mrs_exit(ep);
	vrb_blocks_exit(&ep->tx.blocks);
	kfree(ep->tx.links);
	ep->tx.links = NULL;
	vrb_recs_exit(&ep->tx.ops);
	init_llist_head(&ep->tx_done.ended);
}

/**
 * vrb_tx_close - refuse further transmits
 * @ep: the endpoint
 *
 * When this returns, no context is in the device's post function.
 *
 * Context: any.
 */
void vrb_tx_close(struct vrb_ep *ep)
{
	unsigned long irq;

	spin_lock_irqsave(&ep->tx.lock, irq);
	WRITE_ONCE(ep->tx.state, VRB_TX_CLOSED);
	vrb_links_drop(ep);
	spin_unlock_irqrestore(&ep->tx.lock, irq);
}

static int vrb_tx_older(void *priv, const struct list_head *a,
			const struct list_head *b)
{
	return (s32)(list_entry(a, struct vrb_txop, node)->seq -
		     list_entry(b, struct vrb_txop, node)->seq) > 0;
}

/**
 * vrb_tx_flush - complete operations that the device has not reported
 * @ep: an endpoint with a drained or destroyed queue pair
 * @drained: the queue pair has been drained
 *
 * After a drain these are: unsignaled operations, which have succeeded, as
 * failures would have been reported; chains of which only a part was posted;
 * and failed reads on iWARP.
 *
 * Context: process, may sleep.
 */
void vrb_tx_flush(struct vrb_ep *ep, bool drained)
{
	struct vrb_txop *op, *next;
	unsigned long irq;
	LIST_HEAD(list);
	unsigned int i;

	spin_lock_irqsave(&ep->tx.lock, irq);
	vrb_tx_take_unsignaled(ep);
	for (i = 0; i < ep->tx.ops.used; i++) {
		vrb_recs_pause(i, &ep->tx.lock, &irq);
		op = vrb_recs_at(&ep->tx.ops, i);
		if (!op->posted)
			continue;
		/* a completion that the device reports from now on is ignored */
		op->posted = false;
		list_add_tail(&op->node, &list);
	}
	spin_unlock_irqrestore(&ep->tx.lock, irq);
	list_sort(NULL, &list, vrb_tx_older);
	list_for_each_entry_safe(op, next, &list, node)
		vrb_tx_complete(ep, op, op->status ||
				(drained && !op->signaled) ?
				vrb_wc_error(op->status) : ECANCELED);
}

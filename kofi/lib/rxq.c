// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posted receives (rxq_post.c), and the messages that are matched with them.
 *
 * Normal operation
 *
 * A queue belongs to an endpoint or to a shared receive context (srx.c) and has
 * a fixed number of receive records. A record passes through these states: free, posted,
 * assigned to an incoming message, done. A message, a cancel or the flush removes a
 * record from the posted list and then reports it. The lock makes that exactly
 * one, so each accepted receive completes exactly once.
 *
 * Matching (rxq_find.c)
 *
 * A message takes the oldest receive of its kind (tagged or not) with equal tag bits,
 * except ignored ones, that is directed to its
 * sender or to any. A message without a match waits on the queue, in the order of
 * arrival. While the lock is free, no posted receive matches a message that
 * waits for a receive: a new receive goes to the oldest waiting
 * message that it matches, and only that message's stream is woken.
 *
 * Streams
 *
 * A stream has one message record, and stalls while that message waits; or it
 * has several, and stores the payload of waiting messages. The number of records
 * bounds the number of waiting messages. All matching is done here and in order of
 * arrival, whichever stream runs first, so that no message overtakes an earlier
 * one of its sender.
 *
 * Multi-receive
 *
 * A multi-receive stays posted while it has room. A message gets a part of it, which takes
 * a slot of the completion queue; the last part uses the slot of the post. While
 * a message waits for a slot, later messages for the same receive wait, too.
 * Parts complete under the lock, so that FI_MULTI_RECV comes after all others.
 *
 * Locks
 *
 * Locks of completion and event queues nest inside this lock. A wake is called with the
 * lock held and only schedules the stream; no lock of a stream or an endpoint
 * is taken here, so a post may wake any stream, whichever locks its caller holds.
 *
 * "Posted receives" in Documentation/internals.rst describes all waits.
 */
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include <linux/kofi/backport.h>
#include <linux/kofi/lib.h>

#include "../cq.h"
#include "rxq.h"

/**
 * kofi_rxq_init - set up a queue of posted receives
 * @q: the queue
 * @ep: endpoint or shared receive context that owns the queue
 * @size: most receives posted at a time, at least 1
 *
 * Context: process, may sleep.
 * Return: 0, or -ENOMEM.
 */
int kofi_rxq_init(struct kofi_rxq *q, struct kofi_ep *ep, size_t size)
{
	size_t bytes = offsetof(struct kofi_rxop, cur) +
		       kofi_cursor_size(ep->info->rx_attr->iov_limit);
	struct kofi_rxop *op;
	void *ops;
	size_t i;
	int err;

	spin_lock_init(&q->lock);
	q->ep = ep;
	INIT_LIST_HEAD(&q->waiting);
	INIT_LIST_HEAD(&q->given);
	q->starved = 0;
	q->free = (struct kofi_freelist) {};
	timer_setup(&q->expire, kofi_rxq_expire, 0);
	q->seq = 0;
	q->closed = false;
	/* two CPUs often use two consecutive records */
	bytes = L1_CACHE_ALIGN(bytes);
	ops = kvmalloc_node(array_size(size, bytes),
			    GFP_KERNEL | __GFP_ZERO, ep->domain->node);
	err = kofi_rxq_init_lists(q, size);
	if (err || !ops) {
		kofi_rxq_exit(q);
		kvfree(ops);
		return -ENOMEM;
	}
	for (i = size; i--; ) {
		op = ops + i * bytes;
		kofi_freelist_add(&q->free, &op->free);
	}
	/*
	 * A stream may terminate concurrently, and checks this for a queue. It cannot take a lock
	 * of the queue before it knows that the queue has been set up.
	 */
	smp_store_release(&q->ops, ops);
	return 0;
}
EXPORT_SYMBOL_GPL(kofi_rxq_init);

/**
 * kofi_rxq_exit - free the records
 * @q: the queue, without further posts and matches; or all zero, if it was never
 *	set up
 *
 * Context: process, may sleep.
 */
void kofi_rxq_exit(struct kofi_rxq *q)
{
	if (q->expire.function)
		timer_shutdown_sync(&q->expire);
	kofi_rxq_exit_lists(q);
	kvfree(q->ops);
	q->ops = NULL;
}
EXPORT_SYMBOL_GPL(kofi_rxq_exit);

/* --------------------------------------------------------------- messages */

/* Called under the lock of the completion queue: see kofi_cq_reserve_wait(). */
static void kofi_rxmsg_slot(struct kofi_cq_wait *wait)
{
	struct kofi_rxmsg *rxmsg = container_of(wait, struct kofi_rxmsg,
						cq_wait);

	rxmsg->wake(rxmsg);
}

/**
 * kofi_rxmsg_init - set up the record of messages
 * @rxmsg: record of a stream, for one message at a time
 * @ep: endpoint that receives the messages
 * @wake: called when kofi_rxq_match() may succeed, with spinlocks held
 *	and interrupts off, perhaps on behalf of another endpoint; must only
 *	schedule the stream
 *
 * Context: any.
 */
void kofi_rxmsg_init(struct kofi_rxmsg *rxmsg, struct kofi_ep *ep,
		     void (*wake)(struct kofi_rxmsg *rxmsg))
{
	INIT_LIST_HEAD(&rxmsg->node);
	kofi_cq_wait_init(&rxmsg->cq_wait, ep, kofi_rxmsg_slot);
	rxmsg->wake = wake;
	rxmsg->ep = ep;
	rxmsg->src = FI_ADDR_NOTAVAIL;
	rxmsg->from = NULL;
	rxmsg->op = NULL;
	rxmsg->claimed = false;
	rxmsg->discard = false;
	rxmsg->confirmed = false;
	rxmsg->expired = false;
	rxmsg->slot = false;
}
EXPORT_SYMBOL_GPL(kofi_rxmsg_init);

/**
 * kofi_rxmsg_wake - stop the wait of a message and schedule its stream
 * @rxmsg: the message, which waits
 *
 * Context: any, with the lock of the queue.
 */
void kofi_rxmsg_wake(struct kofi_rxmsg *rxmsg)
{
	list_del_init(&rxmsg->node);
	rxmsg->claimed = false;
	rxmsg->wake(rxmsg);
}

/* Reserve a slot for a message that has a part of a multi-receive. */
static int kofi_rxmsg_reserve(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg)
{
	struct kofi_cq *cq = q->ep->rx_cq;

	return cq ? kofi_cq_reserve_wait(cq, &rxmsg->cq_wait) : 0;
}

/**
 * kofi_rxmsg_adopt - move a receive from one message to another
 * @to: a message without a receive, which does not wait
 * @op: receive of the other message, perhaps freed on return; or NULL
 *
 * The record of a part of a multi-receive is inside the message that got it. Nothing has
 * been placed in the part yet.
 *
 * Context: any; the caller owns @op.
 * Return: the receive to use instead of @op.
 */
struct kofi_rxop *kofi_rxmsg_adopt(struct kofi_rxmsg *to, struct kofi_rxop *op)
{
	struct kofi_rxop *part = kofi_rxmsg_part(to);

	if (!op || !op->multi)
		return op;
	memcpy(part, op, sizeof(to->part));
	if (iov_iter_is_kvec(&part->cur.iter))
		part->cur.iter.kvec = part->cur.kv;
	else
		part->cur.iter.bvec = part->cur.bv;
	return part;
}
EXPORT_SYMBOL_GPL(kofi_rxmsg_adopt);

/**
 * kofi_rxmsg_give - assign a receive to a message that waits
 * @q: the queue
 * @rxmsg: the message
 * @op: the receive, on no list
 *
 * Context: any, with the lock of the queue.
 */
void kofi_rxmsg_give(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg,
		     struct kofi_rxop *op)
{
	op->ep = rxmsg->ep;
	rxmsg->op = op;
	if (!op->multi) {
		op->canceled = false;
		list_add_tail(&op->node, &q->given);
	}
	kofi_rxmsg_wake(rxmsg);
}

/* Take the receive assigned to a message, off all lists; or NULL */
static struct kofi_rxop *kofi_rxmsg_fetch(struct kofi_rxmsg *rxmsg)
{
	struct kofi_rxop *op = rxmsg->op;

	rxmsg->op = NULL;
	if (op && !op->multi)
		list_del(&op->node);
	return op;
}

/* --------------------------------------------------- parts of multi-receives */

static void kofi_rxop_init_part(struct kofi_rxop *part,
				struct kofi_rxop *multi, size_t len)
{
	struct fi_msg msg = { .iov_count = 1 };
	struct bio_vec bv;
	struct kvec kv;
	size_t off;

	if (iov_iter_is_kvec(&multi->cur.iter)) {
		kv.iov_base = multi->cur.kv[0].iov_base + multi->used;
		kv.iov_len = len;
		msg.vec = KOFI_KVEC;
		msg.msg_iov = &kv;
	} else {
		off = multi->cur.bv[0].bv_offset + multi->used;
		bvec_set_page(&bv, nth_page(multi->cur.bv[0].bv_page,
					    off >> PAGE_SHIFT),
			      len, offset_in_page(off));
		msg.vec = KOFI_BVEC;
		msg.msg_bvec = &bv;
	}
	kofi_cursor_init(&part->cur, &msg, ITER_DEST, 1);
	part->context = multi->context;
	part->flags = multi->flags;
	part->tagged = multi->tagged;
	part->multi = multi;
	part->buf = multi->buf ? multi->buf + multi->used : NULL;
}

/**
 * kofi_rxq_part - assign the next part of a multi-receive to a message
 * @q: the queue
 * @rxmsg: the message
 * @multi: the multi-receive, which is posted
 * @turn: the message may take a slot although others wait for one
 *
 * Context: any, with the queue's lock.
 * Return: 0, or -EAGAIN: the message waits for a slot.
 */
noinline int kofi_rxq_part(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg,
			   struct kofi_rxop *multi, bool turn)
{
	size_t len = min(rxmsg->len, multi->cur.len - multi->used);
	size_t left = multi->cur.len - multi->used - len;
	bool last = left < READ_ONCE(q->ep->min_multi);

	if (!turn ||
	    (!last && kofi_rxmsg_reserve(q, rxmsg))) {
		rxmsg->slot = true;
		q->starved++;
		return -EAGAIN;
	}
	kofi_rxop_init_part(kofi_rxmsg_part(rxmsg), multi, len);
	multi->used += len;
	multi->parts++;
	if (last) {
		kofi_rxq_unlink(q, multi);
		multi->gone = true;
	}
	return 0;
}

/* --------------------------------------------------------------- matching */

static __always_inline int kofi_rxq_find(struct kofi_rxq *q,
					 struct kofi_rxmsg *rxmsg, bool turn,
					 struct kofi_rxop **found)
{
	struct kofi_rxop *op = kofi_rxq_oldest(q, rxmsg);
	int err;

	if (!op)
		return -EAGAIN;
	if (kofi_rxop_multi(op)) {
		err = kofi_rxq_part(q, rxmsg, op, turn);
		if (err)
			return err;
		op = kofi_rxmsg_part(rxmsg);
	} else {
		kofi_rxq_unlink(q, op);
	}
	op->ep = rxmsg->ep;
	*found = op;
	return 0;
}

/* Stop the wait of a message for a slot. */
static void kofi_rxmsg_unstarve(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg)
{
	rxmsg->slot = false;
	q->starved--;
	kofi_cq_unwait(q->ep->rx_cq, &rxmsg->cq_wait);
}

/*
 * Wake messages that wait for slots, after slots were released or another receive
 * matches the first of them.
 */
static void kofi_rxq_feed(struct kofi_rxq *q)
{
	struct kofi_rxmsg *rxmsg, *next;
	struct kofi_rxop *op;

	lockdep_assert_held(&q->lock);

	list_for_each_entry_safe(rxmsg, next, &q->waiting, node) {
		if (!q->starved)
			return;
		if (!rxmsg->slot)
			continue;
		kofi_rxmsg_unstarve(q, rxmsg);
		if (!kofi_rxq_find(q, rxmsg, true, &op)) {
			kofi_rxmsg_give(q, rxmsg, op);
			continue;
		}
		if (rxmsg->slot)
			return;
		/* from now on the message waits for a receive */
		kofi_rxq_watch(q, rxmsg);
	}
}

/**
 * kofi_rxq_match - find the receive for an incoming message
 * @q: queue of the message's endpoint, or of its shared receive context
 * @rxmsg: the message
 * @op: receives the receive
 *
 * Finds the oldest match. The stream calls again, for the same message, when
 * it has been woken; a call without a wake is harmless. Messages of a
 * stream with several records are passed in the order of their arrival.
 *
 * Context: any.
 * Return: 0 with the receive, owned by the caller until kofi_rxq_done(), or with NULL
 * if the payload must be discarded; -EAGAIN: the message waits, and is woken
 * when another call may succeed, unless kofi_rxq_forget() comes first;
 * -ECONNABORTED for an unconfirmed message that has waited for too long
 * (KOFI_OPT_UNEXPECTED_TIMEOUT): the caller must terminate its connection.
 */
int kofi_rxq_match(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg,
		   struct kofi_rxop **op)
{
	unsigned long irq;
	int err = 0;
	bool bh;

	*op = NULL;
	bh = kofi_rxq_lock(q, &irq);
	if (rxmsg->slot)
		kofi_rxq_feed(q);
	if (rxmsg->op) {
		*op = kofi_rxmsg_fetch(rxmsg);
	} else if (rxmsg->discard) {
		rxmsg->discard = false;
	} else if (rxmsg->expired) {
		rxmsg->expired = false;
		err = -ECONNABORTED;
	} else if (!list_empty(&rxmsg->node)) {
		/* no posted receive matches */
		err = -EAGAIN;
	} else {
		err = kofi_rxq_find(q, rxmsg, !q->starved, op);
		if (err) {
			list_add_tail(&rxmsg->node, &q->waiting);
			kofi_rxq_watch(q, rxmsg);
		}
	}
	kofi_rxq_unlock(q, irq, bh);
	return err;
}
EXPORT_SYMBOL_GPL(kofi_rxq_match);

/**
 * kofi_rxq_rename - set the source of a message after its sender became known
 * @q: the queue
 * @rxmsg: the message, whether it waits or not; its place stays
 * @src: the new source
 *
 * If a receive is posted for that sender, the message is woken.
 *
 * Context: any.
 */
void kofi_rxq_rename(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg,
		     fi_addr_t src)
{
	struct kofi_rxop *op;
	unsigned long irq;
	bool bh;

	bh = kofi_rxq_lock(q, &irq);
	rxmsg->src = src;
	if (!list_empty(&rxmsg->node) && kofi_rxmsg_open(rxmsg) &&
	    !kofi_rxq_find(q, rxmsg, !q->starved, &op))
		kofi_rxmsg_give(q, rxmsg, op);
	kofi_rxq_unlock(q, irq, bh);
}
EXPORT_SYMBOL_GPL(kofi_rxq_rename);

/**
 * kofi_rxq_hand - move a waiting message to another record
 * @q: the queue
 * @from: record of the message, free for another message on return
 * @to: a record with the members set that kofi_rxmsg_init() and the provider set in @from
 *
 * The message keeps its place, and its claim if it has one.
 *
 * Context: any.
 * Return: false if @from does not wait: then kofi_rxq_match() returns its receive.
 */
bool kofi_rxq_hand(struct kofi_rxq *q, struct kofi_rxmsg *from,
		   struct kofi_rxmsg *to)
{
	unsigned long irq;
	bool waits;

	spin_lock_irqsave(&q->lock, irq);
	waits = !list_empty(&from->node) && !from->slot;
	if (waits) {
		list_replace_init(&from->node, &to->node);
		to->claim = from->claim;
		to->expires = from->expires;
		swap(to->claimed, from->claimed);
	}
	spin_unlock_irqrestore(&q->lock, irq);
	return waits;
}
EXPORT_SYMBOL_GPL(kofi_rxq_hand);

/**
 * kofi_rxq_confirm - permit to discard a message, since its receipt will be confirmed
 * @q: the queue
 * @rxmsg: the message, which is stored, and may still wait for its receive
 *
 * From now on the message is discarded when it has waited for too long.
 *
 * Context: any.
 * Return: 0; -ECONNABORTED if it already has: the caller must terminate its connection.
 */
int kofi_rxq_confirm(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg)
{
	unsigned long irq;
	bool expired;

	spin_lock_irqsave(&q->lock, irq);
	rxmsg->confirmed = false;
	expired = rxmsg->expired;
	spin_unlock_irqrestore(&q->lock, irq);
	return expired ? -ECONNABORTED : 0;
}
EXPORT_SYMBOL_GPL(kofi_rxq_confirm);

/* -------------------------------------------------------------- reporting */

/*
 * Free the record before the consumer can see the completion, so that a consumer
 * that posts again in each callback never gets -EAGAIN. The record of a part belongs to
 * its message.
 */
static void kofi_rxq_report(struct kofi_rxq *q, struct kofi_rxop *op,
			    struct kofi_ep *from, struct kofi_wc *wc)
{
	u64 flags = op->flags;

	wc->op_context = op->context;
	if (!op->multi)
		kofi_freelist_put(&q->free, &op->free);
	/* the endpoint last: the consumer may act on the completion */
	kofi_ep_rx_complete(q->ep, from, wc, flags);
}

static void kofi_rxq_report_canceled(struct kofi_rxq *q, struct kofi_rxop *op)
{
	struct kofi_wc wc = {
		.err = ECANCELED,
		.flags = FI_RECV | (op->tagged ? FI_TAGGED : FI_MSG) |
			 (op->flags & FI_MULTI_RECV),
		.tag = op->tagged ? op->tag : 0,
		.src = FI_ADDR_NOTAVAIL,
	};

	lockdep_assert_held(&q->lock);

	kofi_rxq_report(q, op, q->ep, &wc);
}

static void kofi_rxq_report_part(struct kofi_rxq *q, struct kofi_rxop *part,
				 struct kofi_wc *wc)
{
	struct kofi_rxop *multi = part->multi;
	bool last;

	lockdep_assert_held(&q->lock);

	wc->buf = part->buf;
	last = !--multi->parts && multi->gone;
	if (last && !multi->canceled) {
		wc->flags |= FI_MULTI_RECV;
		kofi_freelist_put(&q->free, &multi->free);
	}
	kofi_rxq_report(q, part, part->ep, wc);
	if (last && multi->canceled)
		kofi_rxq_report_canceled(q, multi);
}

static noinline void kofi_rxq_done_part(struct kofi_rxq *q,
					struct kofi_rxop *part,
					struct kofi_wc *wc)
{
	unsigned long irq;

	spin_lock_irqsave(&q->lock, irq);
	kofi_rxq_report_part(q, part, wc);
	spin_unlock_irqrestore(&q->lock, irq);
}

/**
 * kofi_rxq_done - report a receive
 * @q: the queue
 * @op: receive that kofi_rxq_match() returned for the caller's message; not used after
 *	the call
 * @wc: the completion, with the message's source; its context, and the address
 *	of a part, are filled in here
 *
 * Context: any.
 */
void kofi_rxq_done(struct kofi_rxq *q, struct kofi_rxop *op,
		   struct kofi_wc *wc)
{
	if (unlikely(op->multi))
		kofi_rxq_done_part(q, op, wc);
	else
		kofi_rxq_report(q, op, op->ep, wc);
}
EXPORT_SYMBOL_GPL(kofi_rxq_done);

/* Report a part of a multi-receive, or a receive with the address of an unknown sender. */
static noinline void kofi_rxq_received_else(struct kofi_rxq *q,
					    const struct kofi_rxmsg *rxmsg,
					    struct kofi_rxop *op)
{
	struct kofi_wc wc = {
		.flags = FI_RECV | (rxmsg->tagged ? FI_TAGGED : FI_MSG) |
			 rxmsg->flags,
		.len = min(rxmsg->len, op->cur.len),
		.data = rxmsg->data,
		.tag = rxmsg->tag,
		.src = rxmsg->src,
	};

	wc.olen = rxmsg->len - wc.len;
	if (wc.olen) {
		wc.err = FI_ETRUNC;
	} else if (wc.src == FI_ADDR_NOTAVAIL && rxmsg->from) {
		wc.err = FI_EADDRNOTAVAIL;
		wc.from = rxmsg->from;
	}
	kofi_rxq_done(q, op, &wc);
}

/**
 * kofi_rxq_received - report a receive after its message has arrived
 * @q: the queue
 * @rxmsg: the message, as passed to kofi_rxq_match()
 * @op: the receive, with as much of the message as fits; not used after the call
 *
 * Calls kofi_rxq_done() with the completion of the message: with FI_ETRUNC if the message
 * is longer than the receive, otherwise with FI_EADDRNOTAVAIL and the address if the sender
 * is unknown and the endpoint has FI_SOURCE_ERR.
 *
 * Context: any.
 */
void kofi_rxq_received(struct kofi_rxq *q, const struct kofi_rxmsg *rxmsg,
		       struct kofi_rxop *op)
{
	size_t len = min(rxmsg->len, op->cur.len);
	void *context = op->context;
	u64 flags = op->flags;

	if (unlikely(op->multi || rxmsg->from)) {
		kofi_rxq_received_else(q, rxmsg, op);
		return;
	}
	/* as in kofi_rxq_report() */
	kofi_freelist_put(&q->free, &op->free);
	kofi_ep_recv_done(q->ep, rxmsg, context, len, flags);
}
EXPORT_SYMBOL_GPL(kofi_rxq_received);

/*
 * Complete a receive that has no message. A multi-receive with parts that are being
 * placed completes with the last part.
 */
static void kofi_rxq_abort(struct kofi_rxq *q, struct kofi_rxop *op)
{
	op->canceled = true;
	if (!kofi_rxop_multi(op) || !op->parts)
		kofi_rxq_report_canceled(q, op);
}

static void kofi_rxq_remove(struct kofi_rxq *q, struct kofi_rxop *op)
{
	bool multi = kofi_rxop_multi(op);

	kofi_rxq_unlink(q, op);
	if (multi)
		op->gone = true;
	kofi_rxq_abort(q, op);
	if (multi)
		kofi_rxq_feed(q);
}

/* Release the receive of a message when its stream terminates before fetching it. */
static void kofi_rxq_return(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg,
			    struct kofi_rxop *op)
{
	struct kofi_wc wc = {
		.err = ENOTCONN,
		.flags = FI_RECV | (rxmsg->tagged ? FI_TAGGED : FI_MSG),
		.tag = rxmsg->tag,
		.src = rxmsg->src,
	};

	/* other messages may have the parts behind it, and a claim was for this message */
	if (op->multi)
		kofi_rxq_report_part(q, op, &wc);
	else if (q->closed || op->canceled || op->flags & FI_CLAIM)
		kofi_rxq_report_canceled(q, op);
	else
		kofi_rxq_offer(q, op);
}

/**
 * kofi_rxq_forget - cancel the search of a stream's message for a receive
 * @q: the queue
 * @rxmsg: the message, whether it waits or not
 *
 * A receive that was assigned and not fetched is posted again, unless it has
 * been canceled; a part of a multi-receive completes with ENOTCONN. The message is not
 * woken after the call. kofi_rxq_match() may be called for the next message.
 *
 * Context: any.
 */
void kofi_rxq_forget(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg)
{
	struct kofi_rxop *op;
	unsigned long irq;
	bool bh;

	bh = kofi_rxq_lock(q, &irq);
	list_del_init(&rxmsg->node);
	rxmsg->claimed = false;
	rxmsg->discard = false;
	rxmsg->expired = false;
	op = kofi_rxmsg_fetch(rxmsg);
	if (op)
		kofi_rxq_return(q, rxmsg, op);
	if (rxmsg->slot) {
		kofi_rxmsg_unstarve(q, rxmsg);
		kofi_rxq_feed(q);
	}
	kofi_rxq_unlock(q, irq, bh);
}
EXPORT_SYMBOL_GPL(kofi_rxq_forget);

static bool kofi_rxmsg_unclaimed(const struct kofi_rxmsg *rxmsg)
{
	return !list_empty(&rxmsg->node) && kofi_rxmsg_open(rxmsg);
}

/**
 * kofi_rxq_unclaimed - test whether a message waits for any receive that matches
 * @q: the queue
 * @rxmsg: the message
 *
 * A concurrent post may change it.
 *
 * Context: any.
 * Return: false if the message has a receive, waits for a slot of the completion queue, or
 * is kept for a claim.
 */
bool kofi_rxq_unclaimed(struct kofi_rxq *q, const struct kofi_rxmsg *rxmsg)
{
	unsigned long irq;
	bool unclaimed;

	spin_lock_irqsave(&q->lock, irq);
	unclaimed = kofi_rxmsg_unclaimed(rxmsg);
	spin_unlock_irqrestore(&q->lock, irq);
	return unclaimed;
}
EXPORT_SYMBOL_GPL(kofi_rxq_unclaimed);

/**
 * kofi_rxq_discard - cancel the search for a receive, unless the message is claimed
 * @q: the queue
 * @rxmsg: the message
 *
 * Context: any.
 * Return: true if no receive can take the message from now on; false, without an effect,
 * as kofi_rxq_unclaimed().
 */
bool kofi_rxq_discard(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg)
{
	unsigned long irq;
	bool unclaimed;

	spin_lock_irqsave(&q->lock, irq);
	unclaimed = kofi_rxmsg_unclaimed(rxmsg);
	if (unclaimed)
		list_del_init(&rxmsg->node);
	spin_unlock_irqrestore(&q->lock, irq);
	return unclaimed;
}
EXPORT_SYMBOL_GPL(kofi_rxq_discard);

/*
 * Mark a receive that was canceled too late: it completes with its message, and no other
 * message may have it.
 */
static void kofi_rxq_cancel_given(struct kofi_rxq *q, const void *context)
{
	struct kofi_rxop *op;

	list_for_each_entry(op, &q->given, node) {
		if (op->context == context && !op->canceled) {
			op->canceled = true;
			return;
		}
	}
}

/**
 * kofi_rxq_cancel - cancel a posted receive
 * @q: the queue
 * @context: context of the post; the oldest of several is canceled
 *
 * Context: any.
 * Return: 0, the receive completes with ECANCELED, a multi-receive after the messages it
 * has taken; -ENOENT if no such receive waits for a message. A receive that was assigned
 * to a message completes with the message, or with an error if the message's
 * connection fails before.
 */
int kofi_rxq_cancel(struct kofi_rxq *q, void *context)
{
	struct kofi_rxop *op;
	unsigned long irq;
	bool bh;

	bh = kofi_rxq_lock(q, &irq);
	op = kofi_rxq_search(q, context);
	if (op)
		kofi_rxq_remove(q, op);
	else
		kofi_rxq_cancel_given(q, context);
	kofi_rxq_unlock(q, irq, bh);
	return op ? 0 : -ENOENT;
}
EXPORT_SYMBOL_GPL(kofi_rxq_cancel);

/**
 * kofi_ep_rx_cancel - fi_cancel() of an endpoint with a queue of its own
 * @ep: the endpoint
 * @q: the queue, all zero if the endpoint was drained before it was enabled
 * @context: as for kofi_rxq_cancel()
 *
 * Context: any.
 * Return: as kofi_rxq_cancel(); -FI_EOPBADSTATE before fi_enable(); -ENOSYS if the
 * endpoint uses a shared receive context.
 */
int kofi_ep_rx_cancel(struct kofi_ep *ep, struct kofi_rxq *q, void *context)
{
	int err = kofi_ep_rx_state(ep);

	if (err && err != -ESHUTDOWN)
		return err;
	return q->ops ? kofi_rxq_cancel(q, context) : -ENOENT;
}
EXPORT_SYMBOL_GPL(kofi_ep_rx_cancel);

/**
 * kofi_rxq_flush - complete posted receives with ECANCELED, and refuse posts
 * @q: the queue
 *
 * The receive path still reports receives that have a message.
 *
 * Context: any.
 */
void kofi_rxq_flush(struct kofi_rxq *q)
{
	struct kofi_rxop *op;
	unsigned long irq;
	bool bh;

	bh = kofi_rxq_lock(q, &irq);
	q->closed = true;
	kofi_rxq_unlock(q, irq, bh);

	/* one receive at a time: there may be many, and the lock disables interrupts */
	do {
		bh = kofi_rxq_lock(q, &irq);
		op = kofi_rxq_oldest_any(q);
		if (op)
			kofi_rxq_remove(q, op);
		kofi_rxq_unlock(q, irq, bh);
	} while (op);
}
EXPORT_SYMBOL_GPL(kofi_rxq_flush);

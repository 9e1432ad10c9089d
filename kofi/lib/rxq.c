// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posted receives, and the messages that are matched with them.
 *
 * Normal operation
 *
 * A queue belongs to an endpoint or to a shared receive context (srx.c) and has
 * a fixed number of receive records. A record goes round: free, posted, given
 * to a message that has begun, done. What takes a record off the posted list
 * reports it: a message, a cancel or the flush. The lock makes that exactly
 * one, so each accepted receive completes exactly once.
 *
 * Matching (rxq_find.c)
 *
 * A message takes the oldest receive of its kind (tagged or not) whose tag is
 * the same in all bits that are not ignored, and which is directed to its
 * sender or to any. One that finds none waits on the queue, in the order of
 * arrival. While the lock is free, no posted receive matches a message that
 * waits for a receive: a receive that is posted goes to the oldest waiting
 * message it matches, and only that stream is woken.
 *
 * Streams
 *
 * A stream has one record for a message, and is stalled while that waits; or it
 * has several, and stores what it takes off the wire for those that wait. How
 * many they are bounds what can wait. All matching is done here and in order of
 * arrival, whichever stream runs first, so that no message overtakes an earlier
 * one of its sender.
 *
 * Multi-receive
 *
 * It stays posted while it has room. A message gets a part of it, which takes
 * a slot of the completion queue; the last part has the slot of the post. While
 * a message waits for a slot, those behind it that want a part wait as well.
 * Parts complete under the lock, so that FI_MULTI_RECV comes behind all others.
 *
 * Locks
 *
 * Locks of completion and event queues are inside this one. A wake is called with the
 * lock held and only schedules the stream; no lock of a stream or an endpoint
 * is taken here, so a post may wake any of them whatever its caller holds.
 *
 * See "Posted receives" in Documentation/internals.rst for what waits for what.
 */
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include <linux/kofi/backport.h>
#include <linux/kofi/lib.h>

#include "../cq.h"
#include "rxq.h"

#define KOFI_RXQ_FLAGS		(FI_COMPLETION | FI_MORE | FI_MULTI_RECV)
#define KOFI_RXQ_TFLAGS		(KOFI_RXQ_FLAGS | FI_PEEK | FI_CLAIM | FI_DISCARD)

/**
 * kofi_rxq_init - make a queue of posted receives
 * @q: the queue
 * @ep: the endpoint or shared context whose receives they are
 * @size: receives that can be posted at a time, at least 1
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
	q->starved = 0;
	q->free = (struct kofi_freelist) {};
	timer_setup(&q->expire, kofi_rxq_expire, 0);
	q->seq = 0;
	q->closed = false;
	/* two of them are often used on two CPUs */
	bytes = L1_CACHE_ALIGN(bytes);
	ops = kvmalloc_node(array_size(size, bytes),
			    GFP_KERNEL | __GFP_ZERO, ep->domain->node);
	err = kofi_rxq_init_lists(q, size);
	if (err || !ops) {
		kofi_rxq_exit(q);
		kvfree(ops);
		return -ENOMEM;
	}
	for (i = 0; i < size; i++) {
		op = ops + i * bytes;
		kofi_freelist_put(&q->free, &op->free);
	}
	/* a stream may end meanwhile, and sees by it whether there is a queue */
	smp_store_release(&q->ops, ops);
	return 0;
}
EXPORT_SYMBOL_GPL(kofi_rxq_init);

/**
 * kofi_rxq_exit - give the records back
 * @q: the queue; nothing is posted or matched any more. One that was never
 *	made but is all zero is fine.
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

/*
 * The lock, for who may wake a message. That there is one is only a guess
 * before: if it is wrong, ksoftirqd runs the stream.
 */
static __always_inline bool kofi_rxq_lock(struct kofi_rxq *q,
					  unsigned long *irq)
	__acquires(&q->lock)
{
	bool bh = !list_empty(&q->waiting) && !in_interrupt() &&
		  !irqs_disabled();

	if (bh)
		local_bh_disable();
	spin_lock_irqsave(&q->lock, *irq);
	return bh;
}

static __always_inline void kofi_rxq_unlock(struct kofi_rxq *q,
					    unsigned long irq, bool bh)
	__releases(&q->lock)
{
	spin_unlock_irqrestore(&q->lock, irq);
	if (bh)
		local_bh_enable();
}

static bool kofi_rxop_multi(const struct kofi_rxop *op)
{
	return op->flags & FI_MULTI_RECV;
}

/*
 * Sender a receive is for, as messages call theirs; without the capability, any.
 * Returns false for one that is not known.
 */
static bool kofi_rxq_src(const struct kofi_rxq *q, fi_addr_t addr,
			 fi_addr_t *src)
{
	const struct kofi_ep *ep = q->ep;

	*src = FI_ADDR_UNSPEC;
	if (!(ep->info->caps & FI_DIRECTED_RECV) || addr == FI_ADDR_UNSPEC)
		return true;
	*src = ep->av ? kofi_av_id(ep->av, addr) : addr;
	return *src != FI_ADDR_NOTAVAIL;
}

/* --------------------------------------------------------------- messages */

/* Called under the lock of the completion queue: see kofi_cq_reserve_wait(). */
static void kofi_rxmsg_slot(struct kofi_cq_wait *wait)
{
	struct kofi_rxmsg *rxmsg = container_of(wait, struct kofi_rxmsg,
						cq_wait);

	rxmsg->wake(rxmsg);
}

/**
 * kofi_rxmsg_init - set up what a message looks for its receive with
 * @rxmsg: a record of a stream's, for one message after the other
 * @ep: the endpoint they come to
 * @wake: called when kofi_rxq_match() may find something, with spinlocks held
 *	and interrupts off, perhaps on behalf of another endpoint; it only has
 *	the stream run
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
	rxmsg->op = NULL;
	rxmsg->claimed = false;
	rxmsg->discard = false;
	rxmsg->confirmed = false;
	rxmsg->expired = false;
	rxmsg->slot = false;
}
EXPORT_SYMBOL_GPL(kofi_rxmsg_init);

/**
 * kofi_rxmsg_wake - a message waits no longer; its stream comes and looks
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

/* A slot for a message that has its part of a multi-receive */
static int kofi_rxmsg_reserve(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg)
{
	struct kofi_cq *cq = q->ep->rx_cq;

	return cq ? kofi_cq_reserve_wait(cq, &rxmsg->cq_wait) : 0;
}

static struct kofi_rxop *kofi_rxmsg_part(struct kofi_rxmsg *rxmsg)
{
	return (struct kofi_rxop *)rxmsg->part;
}

/**
 * kofi_rxmsg_adopt - have one message receive what another one was given
 * @to: a message that has been given nothing, and waits for nothing
 * @op: the receive of the other, which may be gone when this returns; or NULL
 *
 * A part of a multi-receive lies in the message that it was cut off for. Nothing has
 * been placed in it yet.
 *
 * Context: any; @op is the caller's.
 * Return: the receive to go on with.
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

static void kofi_rxmsg_give(struct kofi_rxmsg *rxmsg, struct kofi_rxop *op)
{
	op->ep = rxmsg->ep;
	rxmsg->op = op;
	kofi_rxmsg_wake(rxmsg);
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

/*
 * Give a message the next part of a multi-receive, if there is a slot, and if it
 * is its turn: others may wait for one.
 */
static noinline int kofi_rxq_part(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg,
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

/* ---------------------------------------------------------------- posting */

static struct kofi_rxop *kofi_rxq_get(struct kofi_rxq *q)
{
	struct llist_node *node = kofi_freelist_get(&q->free, &q->lock);

	return node ? llist_entry(node, struct kofi_rxop, free) : NULL;
}

/* A receive for the oldest message that waits for it, or those to come */
static void kofi_rxq_offer(struct kofi_rxq *q, struct kofi_rxop *op)
{
	bool multi = kofi_rxop_multi(op);
	struct kofi_rxmsg *rxmsg, *next;

	lockdep_assert_held(&q->lock);

	if (multi)
		kofi_rxq_link(q, op);
	list_for_each_entry_safe(rxmsg, next, &q->waiting, node) {
		if (!kofi_rxmsg_open(rxmsg) || !kofi_rxop_fits(op, rxmsg))
			continue;
		if (!multi) {
			kofi_rxmsg_give(rxmsg, op);
			return;
		}
		if (kofi_rxq_part(q, rxmsg, op, !q->starved))
			continue;
		kofi_rxmsg_give(rxmsg, kofi_rxmsg_part(rxmsg));
		if (op->gone)
			return;
	}
	if (!multi)
		kofi_rxq_link(q, op);
}

static struct kofi_rxmsg *kofi_rxq_claimed(struct kofi_rxq *q, void *context)
{
	struct kofi_rxmsg *rxmsg;

	list_for_each_entry(rxmsg, &q->waiting, node)
		if (rxmsg->claimed && rxmsg->claim == context)
			return rxmsg;
	return NULL;
}

static int kofi_rxq_claim(struct kofi_rxq *q, struct kofi_rxop *op)
{
	struct kofi_rxmsg *rxmsg = kofi_rxq_claimed(q, op->context);

	if (!rxmsg)
		return -EINVAL;
	kofi_rxmsg_give(rxmsg, op);
	return 0;
}

/* Make it available to messages. */
static int kofi_rxq_add(struct kofi_rxq *q, struct kofi_rxop *op)
{
	unsigned long irq;
	int err = 0;
	bool bh;

	bh = kofi_rxq_lock(q, &irq);
	op->seq = q->seq++;
	if (q->closed)
		err = -ESHUTDOWN;
	else if (op->flags & FI_CLAIM)
		err = kofi_rxq_claim(q, op);
	else if (list_empty(&q->waiting))
		kofi_rxq_link(q, op);
	else
		kofi_rxq_offer(q, op);
	kofi_rxq_unlock(q, irq, bh);
	return err;
}

/* Memory for many messages is one piece, whose parts have addresses. */
static int kofi_rxop_init_multi(struct kofi_rxop *op, const struct fi_msg *msg)
{
	const struct bio_vec *bv;

	op->used = 0;
	op->parts = 0;
	op->gone = false;
	op->canceled = false;
	if (msg->iov_count != 1)
		return -EINVAL;
	switch (msg->vec) {
	case KOFI_KVEC:
		op->buf = msg->msg_iov->iov_base;
		return 0;
	case KOFI_BVEC:
		bv = msg->msg_bvec;
		op->buf = PageHighMem(bv->bv_page) ? NULL :
			  page_address(bv->bv_page) + bv->bv_offset;
		return 0;
	default:
		return -EINVAL;
	}
}

static __always_inline int kofi_rxop_init(struct kofi_rxop *op,
					  const struct kofi_rxq *q,
					  const struct fi_msg *msg, u64 flags)
{
	const struct fi_info *info = q->ep->info;
	int err;

	op->context = msg->context;
	op->flags = flags;
	op->tagged = false;
	if (!kofi_rxq_src(q, msg->addr, &op->src))
		return -EINVAL;
	err = kofi_cursor_init(&op->cur, msg, ITER_DEST,
			       info->rx_attr->iov_limit);
	if (!err && kofi_rxop_multi(op))
		err = kofi_rxop_init_multi(op, msg);
	return err;
}

static noinline int kofi_rxq_accept(struct kofi_rxq *q,
				    const struct fi_msg *msg,
				    const struct fi_msg_tagged *tagged,
				    u64 flags)
{
	struct kofi_ep *ep = q->ep;
	struct kofi_rxop *op;
	int err;

	err = kofi_ep_reserve(ep, KOFI_RX);
	if (err)
		return err;

	op = kofi_rxq_get(q);
	if (unlikely(!op)) {
		/* what has been done before the mark was seen wakes no consumer */
		kofi_ep_blocked(ep);
		op = kofi_rxq_get(q);
	}
	if (unlikely(!op)) {
		err = READ_ONCE(q->closed) ? -ESHUTDOWN : -EAGAIN;
		goto unreserve;
	}

	err = kofi_rxop_init(op, q, msg, flags);
	if (tagged) {
		op->tagged = true;
		op->tag = tagged->tag;
		op->ignore = tagged->ignore;
	}
	if (!err)
		err = kofi_rxq_add(q, op);
	if (!err)
		return 0;
	kofi_freelist_put(&q->free, &op->free);
	/* a post may have been refused for want of this record */
	kofi_ep_unblock(ep);
unreserve:
	kofi_ep_rx_unreserve(ep);
	return err;
}

/**
 * kofi_rxq_post - accept a receive
 * @q: the queue
 * @msg: where the message goes
 * @flags: FI_COMPLETION, FI_MORE, FI_MULTI_RECV
 *
 * Context: any.
 * Return: 0, a completion will follow, or with FI_MULTI_RECV some of which the
 * last has this flag; -EAGAIN if no record or no slot of the completion queue
 * is free; -ESHUTDOWN after kofi_rxq_flush(); -FI_EBADFLAGS; -EINVAL as
 * kofi_cursor_init(), for a sender the address vector does not know, and for a
 * multi-receive that is not one kvec or bvec segment; or what kofi_ep_rx_reserve() returns.
 */
int kofi_rxq_post(struct kofi_rxq *q, const struct fi_msg *msg, u64 flags)
{
	if (flags & ~KOFI_RXQ_FLAGS)
		return -FI_EBADFLAGS;
	return kofi_rxq_accept(q, msg, NULL, flags);
}
EXPORT_SYMBOL_GPL(kofi_rxq_post);

static struct kofi_rxmsg *
kofi_rxq_find_waiting(struct kofi_rxq *q, const struct fi_msg_tagged *msg,
		      fi_addr_t src)
{
	struct kofi_rxmsg *rxmsg;

	list_for_each_entry(rxmsg, &q->waiting, node)
		if (rxmsg->tagged && kofi_rxmsg_open(rxmsg) &&
		    kofi_rxmsg_fits(rxmsg, msg->tag, msg->ignore, src))
			return rxmsg;
	return NULL;
}

/*
 * FI_PEEK, or FI_CLAIM with FI_DISCARD: they need no memory, and complete at
 * once.
 */
static int kofi_rxq_peek(struct kofi_rxq *q, const struct fi_msg_tagged *msg,
			 u64 flags)
{
	struct kofi_wc wc = {
		.op_context = msg->context, .err = FI_ENOMSG,
		.flags = FI_RECV | FI_TAGGED, .tag = msg->tag,
		.src = FI_ADDR_NOTAVAIL,
	};
	struct kofi_ep *from = q->ep;
	struct kofi_rxmsg *rxmsg;
	unsigned long irq;
	fi_addr_t src;
	int err;
	bool bh;

	if (!kofi_rxq_src(q, msg->addr, &src))
		return -EINVAL;
	err = kofi_ep_reserve(q->ep, KOFI_RX);
	if (err)
		return err;

	bh = kofi_rxq_lock(q, &irq);
	if (q->closed) {
		err = -ESHUTDOWN;
		goto unlock;
	}
	if (flags & FI_PEEK) {
		rxmsg = kofi_rxq_find_waiting(q, msg, src);
	} else {
		rxmsg = kofi_rxq_claimed(q, msg->context);
		if (!rxmsg) {
			err = -EINVAL;
			goto unlock;
		}
	}
	if (rxmsg) {
		from = rxmsg->ep;
		wc.err = 0;
		wc.flags |= rxmsg->flags & FI_REMOTE_CQ_DATA;
		wc.len = rxmsg->len;
		wc.tag = rxmsg->tag;
		wc.src = rxmsg->src;
		wc.data = rxmsg->data;
		if (flags & FI_DISCARD) {
			rxmsg->discard = true;
			kofi_rxmsg_wake(rxmsg);
		} else if (flags & FI_CLAIM) {
			rxmsg->claimed = true;
			rxmsg->claim = msg->context;
		}
	}
	/* under the lock, which keeps the message's endpoint */
	kofi_ep_recv_complete(q->ep, from, &wc, flags);
unlock:
	kofi_rxq_unlock(q, irq, bh);
	if (err)
		kofi_ep_rx_unreserve(q->ep);
	return err;
}

/**
 * kofi_rxq_tpost - accept a tagged receive, or look for a tagged message
 * @q: the queue
 * @msg: where the message goes, and which it is
 * @flags: FI_COMPLETION, FI_MORE, and FI_PEEK, FI_CLAIM and FI_DISCARD as
 *	fi_trecvmsg() has them
 *
 * Context: any.
 * Return: as kofi_rxq_post(); -EINVAL also for a claim that holds no message.
 */
int kofi_rxq_tpost(struct kofi_rxq *q, const struct fi_msg_tagged *msg,
		   u64 flags)
{
	const struct fi_msg plain = {
		.msg_iov = msg->msg_iov, .desc = msg->desc,
		.iov_count = msg->iov_count, .addr = msg->addr,
		.context = msg->context, .vec = msg->vec,
	};
	u64 how = flags & (FI_PEEK | FI_CLAIM | FI_DISCARD);

	if (flags & ~KOFI_RXQ_TFLAGS || how == FI_DISCARD ||
	    how == (FI_PEEK | FI_CLAIM | FI_DISCARD))
		return -FI_EBADFLAGS;
	if (flags & FI_MULTI_RECV &&
	    (how || !(q->ep->info->caps & FI_TAGGED_MULTI_RECV)))
		return -FI_EBADFLAGS;
	if (how & (FI_PEEK | FI_DISCARD))
		return kofi_rxq_peek(q, msg, flags);
	return kofi_rxq_accept(q, &plain, msg, flags);
}
EXPORT_SYMBOL_GPL(kofi_rxq_tpost);

/* --------------------------------------------------------------- matching */

static inline int kofi_rxq_find(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg,
				bool turn, struct kofi_rxop **found)
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

/* A message waits for a slot no longer. */
static void kofi_rxmsg_unstarve(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg)
{
	rxmsg->slot = false;
	q->starved--;
	kofi_cq_unwait(q->ep->rx_cq, &rxmsg->cq_wait);
}

/*
 * There may be slots for those who wait for one, or another receive for the
 * first of them.
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
			kofi_rxmsg_give(rxmsg, op);
			continue;
		}
		if (rxmsg->slot)
			return;
		/* from now on it is a receive that it lacks */
		kofi_rxq_watch(q, rxmsg);
	}
}

/**
 * kofi_rxq_match - find the receive for a message that has begun
 * @q: the queue, of its endpoint or of that one's shared context
 * @rxmsg: the message
 * @op: where the receive goes
 *
 * The oldest that matches. The stream calls again, for the same message, when
 * it has been woken; to call without having been does no harm. Messages of a
 * stream that has several records are passed in the order of their arrival.
 *
 * Context: any.
 * Return: 0 with the receive, the caller's until kofi_rxq_done(), or with NULL
 * if the payload is to be thrown away; -EAGAIN: the message waits, and is woken
 * when another call may find something, unless kofi_rxq_forget() comes first;
 * -ECONNABORTED for one that is to be confirmed and has waited too long
 * (KOFI_OPT_UNEXPECTED_TIMEOUT): its connection is to be ended.
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
		swap(*op, rxmsg->op);
	} else if (rxmsg->discard) {
		rxmsg->discard = false;
	} else if (rxmsg->expired) {
		rxmsg->expired = false;
		err = -ECONNABORTED;
	} else if (!list_empty(&rxmsg->node)) {
		/* what is posted does not match it */
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
 * kofi_rxq_hand - have another record wait for a message
 * @q: the queue
 * @from: the record that waits, free for another message afterwards
 * @to: a record with what kofi_rxmsg_init() and the provider set of @from
 *
 * The message keeps its place, and its claim if it has one.
 *
 * Context: any.
 * Return: false if @from does not wait (any more): kofi_rxq_match() says what it has
 * got.
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

/* -------------------------------------------------------------- reporting */

/*
 * The record is free before the consumer can see the completion, so that one
 * that always posts again in its callback never gets -EAGAIN. A part's is its
 * message's.
 */
static void kofi_rxq_report(struct kofi_rxq *q, struct kofi_rxop *op,
			    struct kofi_ep *from, struct kofi_wc *wc)
{
	u64 flags = op->flags;

	wc->op_context = op->context;
	if (!op->multi)
		kofi_freelist_put(&q->free, &op->free);
	/* the endpoint last of all: the consumer may act on the completion */
	kofi_ep_recv_complete(q->ep, from, wc, flags);
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
 * @op: given to the caller's message by kofi_rxq_match(); not to be touched any
 *	more
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

static noinline void kofi_rxq_received_part(struct kofi_rxq *q,
					    const struct kofi_rxmsg *rxmsg,
					    struct kofi_rxop *part)
{
	struct kofi_wc wc = {
		.flags = FI_RECV | (rxmsg->tagged ? FI_TAGGED : FI_MSG) |
			 rxmsg->flags,
		.len = part->cur.len,
		.data = rxmsg->data,
		.tag = rxmsg->tag,
		.src = rxmsg->src,
	};

	wc.olen = rxmsg->len - wc.len;
	if (wc.olen)
		wc.err = FI_ETRUNC;
	kofi_rxq_done_part(q, part, &wc);
}

/**
 * kofi_rxq_received - report a receive whose message has arrived
 * @q: the queue
 * @rxmsg: the message, as it was given to kofi_rxq_match()
 * @op: the receive, which has as much of the message as fits; not to be touched any
 *	more
 *
 * kofi_rxq_done() of what the message says itself: with FI_ETRUNC if it is longer
 * than the receive.
 *
 * Context: any.
 */
void kofi_rxq_received(struct kofi_rxq *q, const struct kofi_rxmsg *rxmsg,
		       struct kofi_rxop *op)
{
	size_t len = min(rxmsg->len, op->cur.len);
	void *context = op->context;
	u64 flags = op->flags;

	if (unlikely(op->multi)) {
		kofi_rxq_received_part(q, rxmsg, op);
		return;
	}
	/* as in kofi_rxq_report() */
	kofi_freelist_put(&q->free, &op->free);
	kofi_ep_recv_done(q->ep, rxmsg, context, len, flags);
}
EXPORT_SYMBOL_GPL(kofi_rxq_received);

/*
 * End a receive that has no message. One with parts that are being placed ends
 * with the last of them.
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

/* The stream has ended before it fetched what its message has been given. */
static void kofi_rxq_return(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg,
			    struct kofi_rxop *op)
{
	struct kofi_wc wc = {
		.err = ENOTCONN,
		.flags = FI_RECV | (rxmsg->tagged ? FI_TAGGED : FI_MSG),
		.tag = rxmsg->tag,
		.src = rxmsg->src,
	};

	/* others may have the parts behind it, and a claim was for this message */
	if (op->multi)
		kofi_rxq_report_part(q, op, &wc);
	else if (q->closed || op->flags & FI_CLAIM)
		kofi_rxq_report_canceled(q, op);
	else
		kofi_rxq_offer(q, op);
}

/**
 * kofi_rxq_forget - a stream's message looks for a receive no longer
 * @q: the queue
 * @rxmsg: the message, whether it waits or not
 *
 * A receive it has been given and not fetched is for others again; a part of a
 * multi-receive completes with ENOTCONN. Its wake is not called any more.
 * kofi_rxq_match() may be called for the next message.
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
	op = rxmsg->op;
	rxmsg->op = NULL;
	if (op)
		kofi_rxq_return(q, rxmsg, op);
	if (rxmsg->slot) {
		kofi_rxmsg_unstarve(q, rxmsg);
		kofi_rxq_feed(q);
	}
	kofi_rxq_unlock(q, irq, bh);
}
EXPORT_SYMBOL_GPL(kofi_rxq_forget);

/**
 * kofi_rxq_cancel - cancel a posted receive
 * @q: the queue
 * @context: what it was posted with; the oldest one of several is taken
 *
 * Context: any.
 * Return: 0, it completes with ECANCELED, a multi-receive after the messages it
 * has taken; -ENOENT if none such waits for a message, which includes one that
 * a message has begun to fill.
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
	kofi_rxq_unlock(q, irq, bh);
	return op ? 0 : -ENOENT;
}
EXPORT_SYMBOL_GPL(kofi_rxq_cancel);

/**
 * kofi_rxq_flush - complete what is posted with ECANCELED, and accept no more
 * @q: the queue
 *
 * Receives that were matched stay the receive path's to report.
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

	/* one at a time: they are many, and the lock is irqsave */
	do {
		bh = kofi_rxq_lock(q, &irq);
		op = kofi_rxq_oldest_any(q);
		if (op)
			kofi_rxq_remove(q, op);
		kofi_rxq_unlock(q, irq, bh);
	} while (op);
}
EXPORT_SYMBOL_GPL(kofi_rxq_flush);

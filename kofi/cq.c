// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues (fi_cq(3), kofi.h).
 *
 * The core owns the queue: a ring of completions under one irqsave lock. An
 * operation is accepted only with a slot reserved, so the ring cannot overrun
 * and completing needs no memory. A queue is used in one of two ways:
 *
 * - it is read. Entries stay until fi_cq_read(), whatever happens to the
 *   endpoint they came from. A notify handler, if there is one, is called when
 *   entries have become available; it is armed under the lock by the read that
 *   finds the queue empty, so no wake-up is lost.
 * - it calls back. Each entry's kofi_cqe is called, in the context the queue
 *   was opened with.
 *
 * Who calls the consumer: the queue's runner and nobody else, one at a time.
 * With KOFI_POLL_SOFTIRQ it is an irq_poll handler, with KOFI_POLL_WORKQUEUE
 * a work item, with KOFI_POLL_DIRECT kofi_cq_poll(). Bit 0 of active says that
 * one has been asked for or is running and will look again before it ends.
 * The runner frees a completion's slot before it calls back, so that the
 * callback can post anew. It needs the lock only to see that nothing is left.
 *
 * Slots are reserved without the lock. They are counted in one number, and who
 * finds it at the limit takes the lock, has himself put on a list, and looks
 * again.
 *
 * Completing, kicking and waking all happen under the lock, and closing takes
 * it: once a consumer that has seen a completion has closed the endpoint, the
 * one who delivered it no longer touches the queue.
 *
 * Write space: an endpoint refused for want of a slot waits on the queue's
 * list; slots that come back move it to the call-back list of its transmit
 * queue. That list is an llist, because the slots may be another queue's and
 * the locks of two queues are never held together.
 *
 * A stream waits on the same list for a slot for what its peer has begun: a
 * part of a multi-receive, or a value that comes without a receive. It is woken
 * under the lock, once, by whoever frees a slot, and does no more than have
 * itself run; the lock is also what makes kofi_cq_wait_cancel() final. Locks of
 * receive queues are outside this one, so a wake must not take any.
 *
 * Receives may not take the last slots of a queue. A consumer that keeps all
 * its receives posted on the queue it also sends through would otherwise wait
 * for ever for a slot to send with. Nor would a value or a part that is in the
 * stream ahead of what the receives wait for ever be reported; so these use the
 * last slots, too.
 *
 * A provider with a device has its own way to learn of completions, and may
 * learn of them in softirq context. If that is where the queue calls back,
 * kofi_cq_begin() and kofi_cq_end() make the provider its runner: what it
 * completes in between goes through the ring as always, and is taken out again,
 * with all that others have put in, before it goes on. If there is a runner
 * already, that one takes it out. A DIRECT queue looks at the device when it is
 * polled, and for the rest of the time nobody does: who needs to know meanwhile
 * claims the queue, which is to be its runner without calling anybody, and looks
 * himself.
 *
 * Closing an endpoint: kofi_cq_flush() waits for what has been queued before
 * it; on a DIRECT queue it calls the endpoint's own callbacks itself, because
 * nobody else may ever poll. While it waits it holds the queue's lockdep map,
 * which the runner holds too, so that a close from a callback is reported,
 * also one through a lock.
 */
#include <linux/bottom_half.h>
#include <linux/cpu.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "internal.h"
#include "kofi_trace.h"

#define KOFI_CQ_SIZE		1024	/* attr->size 0 */
#define KOFI_CQ_SIZE_MAX	SZ_4M

/* As drivers/infiniband/core/cq.c, for the same reasons. */
#define KOFI_CQ_BUDGET_IRQ	256
#define KOFI_CQ_BUDGET_WORK	65536

#define KOFI_CQ_ACTIVE		0	/* bit of kofi_cq.active */

static struct workqueue_struct *kofi_cq_wq;

static struct kofi_cq *kofi_cq(struct fid_cq *cq)
{
	return container_of(cq, struct kofi_cq, cq);
}

static bool kofi_cq_valid(const struct fid_cq *cq)
{
	return cq && cq->fid.fclass == FI_CLASS_CQ;
}

static bool kofi_cq_reads(const struct fid_cq *cq)
{
	return kofi_cq_valid(cq) && !container_of(cq, struct kofi_cq, cq)->done;
}

static u32 kofi_cq_count(const struct kofi_cq *cq)
{
	return cq->tail - READ_ONCE(cq->head);
}

/* The entry at head <= pos <= tail, while nobody else moves head */
static struct kofi_cq_entry *kofi_cq_entry(struct kofi_cq *cq, u32 pos)
{
	u32 i = cq->first + (pos - cq->head);

	return &cq->ring[i < cq->slots ? i : i - cq->slots];
}

/*
 * Take the next entry out and free its slot. It stays as it is until the next
 * one is taken, since no more are filled than there are slots to use.
 */
static struct kofi_wc *kofi_cq_pop(struct kofi_cq *cq)
{
	struct kofi_wc *wc = &cq->ring[cq->first].wc;

	if (++cq->first == cq->slots)
		cq->first = 0;
	WRITE_ONCE(cq->head, cq->head + 1);
	/* after the last look at the entry before, and before one at waiting */
	atomic_dec_return(&cq->used);
	return wc;
}

/*
 * The lock, and while it is held bottom halves off where that lets a softirq
 * run at once, rather than in ksoftirqd, when they are switched on again: that
 * of the queue, or of a stream that waits for a slot.
 */
static __always_inline bool kofi_cq_lock(struct kofi_cq *cq,
					 unsigned long *flags)
	__acquires(&cq->lock)
{
	bool bh = !in_interrupt() && !irqs_disabled() &&
		  (cq->poll == KOFI_POLL_SOFTIRQ ||
		   !list_empty(&cq->waiting[KOFI_TX]));

	if (bh)
		local_bh_disable();
	spin_lock_irqsave(&cq->lock, *flags);
	return bh;
}

static __always_inline void kofi_cq_unlock(struct kofi_cq *cq,
					   unsigned long flags, bool bh)
	__releases(&cq->lock)
{
	spin_unlock_irqrestore(&cq->lock, flags);
	if (bh)
		local_bh_enable();
}

/* ---------------------------------------------------------- asking to be run */

static void kofi_cq_sched_remote(void *info)
{
	irq_poll_sched(info);
}

static void kofi_cq_queue_work(struct kofi_cq *cq)
{
	if (cq->cpu >= 0 && cpu_online(cq->cpu))
		queue_work_on(cq->cpu, kofi_cq_wq, &cq->work);
	else
		queue_work(kofi_cq_wq, &cq->work);
}

static noinline void kofi_cq_start_poller(struct kofi_cq *cq)
{
	if (cq->poll == KOFI_POLL_DIRECT ||
	    test_and_set_bit(KOFI_CQ_ACTIVE, &cq->active))
		return;
	if (cq->poll == KOFI_POLL_WORKQUEUE)
		kofi_cq_queue_work(cq);
	else if (cq->cpu < 0 || cq->cpu == smp_processor_id() ||
		 smp_call_function_single_async(cq->cpu, &cq->csd))
		irq_poll_sched(&cq->iop);
}

/*
 * Have the runner look at the queue. Called with interrupts off, after what it
 * is to find has been put there, under the lock or with a full barrier.
 */
static void kofi_cq_kick(struct kofi_cq *cq)
{
	if (!test_bit(KOFI_CQ_ACTIVE, &cq->active))
		kofi_cq_start_poller(cq);
}

/**
 * kofi_cq_space - have an endpoint's write-space callback called
 * @ep: the endpoint
 *
 * On its transmit queue, or the receive queue if it does not transmit. The
 * caller holds the lock of a queue of the endpoint; that keeps the endpoint.
 */
void kofi_cq_space(struct kofi_ep *ep)
{
	struct kofi_cq *cq = ep->tx_cq ?: ep->rx_cq;

	if (!ep->write_space || test_bit(KOFI_EP_DRAINED, &ep->blocked) ||
	    test_and_set_bit(KOFI_EP_SPACE, &ep->blocked))
		return;
	llist_add(&ep->space_node, &cq->space);
	kofi_cq_kick(cq);
}

/* Does somebody wait for a slot? */
static bool kofi_cq_wanted(const struct kofi_cq *cq)
{
	return unlikely(!list_empty(&cq->waiting[KOFI_TX]) ||
			!list_empty(&cq->waiting[KOFI_RX]));
}

/*
 * Slots have become free: whoever waits for one may try again. All of them,
 * because one that is told need not post any more.
 */
static void kofi_cq_freed(struct kofi_cq *cq)
{
	struct kofi_cq_wait *wait, *next;
	enum kofi_dir dir;

	lockdep_assert_held(&cq->lock);

	if (!kofi_cq_wanted(cq))
		return;
	for (dir = KOFI_TX; dir <= KOFI_RX; dir++) {
		if (atomic_read(&cq->used) >= cq->limit[dir])
			continue;
		list_for_each_entry_safe(wait, next, &cq->waiting[dir], node) {
			list_del_init(&wait->node);
			if (wait->wake)
				wait->wake(wait);
			else
				kofi_cq_space(wait->ep);
		}
	}
}

/* ---------------------------------------------------------- for endpoints */

/*
 * Wait for a slot, unless one is free after all: the runner, who frees them
 * without the lock, looks at the list afterwards.
 */
static bool kofi_cq_wait_slot(struct kofi_cq *cq, struct kofi_cq_wait *wait,
			      enum kofi_dir dir)
{
	bool added = list_empty(&wait->node);

	lockdep_assert_held(&cq->lock);

	if (added)
		list_add_tail(&wait->node, &cq->waiting[dir]);
	smp_mb();	/* the list, before the number; see kofi_cq_pop() */
	if (!kofi_cq_take_slot(cq, dir)) {
		cq->again++;
		return true;
	}
	/* not that of another post of the endpoint's */
	if (added)
		list_del_init(&wait->node);
	return false;
}

/**
 * kofi_cq_reserve - promise a slot to an operation that has found none
 * @cq: the queue
 * @ep: the endpoint; its write-space callback follows -EAGAIN
 * @dir: whether it is a transmit or a receive
 *
 * Context: any.
 * Return: 0, -EAGAIN, or -ESHUTDOWN when @ep has been drained.
 */
int kofi_cq_reserve(struct kofi_cq *cq, struct kofi_ep *ep, enum kofi_dir dir)
{
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&cq->lock, flags);
	if (test_bit(KOFI_EP_DRAINED, &ep->blocked)) {
		ret = -ESHUTDOWN;
	} else if (ep->write_space) {
		if (kofi_cq_wait_slot(cq, &ep->cq_wait[dir], dir))
			ret = -EAGAIN;
	} else {
		cq->again++;
		ret = -EAGAIN;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return ret;
}

/**
 * kofi_cq_reserve_wait - promise a slot to what a peer has begun
 * @cq: the queue
 * @wait: called once after -EAGAIN, when a slot may be free
 *
 * It may use the slots that posted receives leave free: it is short-lived, and
 * the receives may be behind it in the same stream.
 *
 * Context: any.
 * Return: 0 or -EAGAIN.
 */
int kofi_cq_reserve_wait(struct kofi_cq *cq, struct kofi_cq_wait *wait)
{
	unsigned long flags;
	int ret = 0;

	if (kofi_cq_take_slot(cq, KOFI_TX))
		return 0;
	spin_lock_irqsave(&cq->lock, flags);
	if (kofi_cq_wait_slot(cq, wait, KOFI_TX))
		ret = -EAGAIN;
	spin_unlock_irqrestore(&cq->lock, flags);
	return ret;
}

/**
 * kofi_cq_wait_cancel - want a slot no longer
 * @ep: the endpoint
 * @wait: its wake is not called any more; may be waiting for nothing
 *
 * Context: any.
 */
void kofi_cq_wait_cancel(struct kofi_ep *ep, struct kofi_cq_wait *wait)
{
	struct kofi_cq *cq = ep->rx_cq;
	unsigned long flags;

	if (!cq)
		return;
	spin_lock_irqsave(&cq->lock, flags);
	list_del_init(&wait->node);
	spin_unlock_irqrestore(&cq->lock, flags);
}
EXPORT_SYMBOL_GPL(kofi_cq_wait_cancel);

/**
 * kofi_cq_unreserve - take back the promise of a slot
 * @cq: the queue
 *
 * Context: any.
 */
void kofi_cq_unreserve(struct kofi_cq *cq)
{
	unsigned long flags;
	bool bh;

	bh = kofi_cq_lock(cq, &flags);
	atomic_dec(&cq->used);
	kofi_cq_freed(cq);
	kofi_cq_unlock(cq, flags, bh);
}

/*
 * The consumer sees no length of transmits, and a sender only if it has asked
 * for that and there was a message.
 */
static __always_inline void kofi_cq_fill(struct kofi_wc *to,
					 const struct kofi_ep *from,
					 enum kofi_dir dir,
					 const struct kofi_wc *wc,
					 u64 op_flags)
{
	*to = *wc;
	if (op_flags & KOFI_NO_COMPLETION)
		to->op_context = NULL;	/* an inject has none */
	if (dir == KOFI_TX)
		to->len = 0;
	if (dir == KOFI_TX || !(from->info->caps & FI_SOURCE))
		to->src = FI_ADDR_NOTAVAIL;
	else if (wc->src == FI_ADDR_NOTAVAIL && wc->err != ECANCELED &&
		 wc->err != FI_ENOMSG)
		to->src = READ_ONCE(from->source);
}

/* An entry has been filled that is to be read. */
static void kofi_cq_readable(struct kofi_cq *cq, int err)
{
	cq->errors += !!err;
	if (cq->readers || (int)cq->wait_obj == KOFI_WAIT_QUEUE)
		wake_up(&cq->wait);
	kofi_wait_wake(&cq->link);
	if (cq->armed) {
		cq->armed = false;
		cq->notify_due = true;
		kofi_cq_kick(cq);
	}
}

static __always_inline void kofi_cq_note(struct kofi_cq *cq,
					 struct kofi_ep *ep,
					 const struct kofi_wc *wc)
{
	cq->completions++;
	cq->failed += !!wc->err;
	trace_kofi_cq_complete(cq, ep, wc);
}

static __always_inline void kofi_cq_push(struct kofi_cq *cq,
					 struct kofi_ep *ep,
					 const struct kofi_ep *from,
					 enum kofi_dir dir,
					 const struct kofi_wc *wc,
					 u64 op_flags)
{
	struct kofi_cq_entry *entry = &cq->ring[cq->next];

	kofi_cq_fill(&entry->wc, from, dir, wc, op_flags);
	entry->ep = ep;
	kofi_cq_note(cq, ep, &entry->wc);

	if (++cq->next == cq->slots)
		cq->next = 0;
	/* the runner may be waiting for nothing but this */
	smp_store_release(&cq->tail, cq->tail + 1);
	if (cq->done)
		kofi_cq_kick(cq);
	else
		kofi_cq_readable(cq, wc->err);
}

/* A promised slot is free again. With the lock */
static __always_inline void kofi_cq_unused(struct kofi_cq *cq)
{
	atomic_dec(&cq->used);
	kofi_cq_freed(cq);
}

/* Is it to be reported? Where callbacks report, somebody must be there. */
static __always_inline bool kofi_cq_reports(const struct kofi_cq *cq,
					    const struct kofi_ep *ep,
					    enum kofi_dir dir,
					    const struct kofi_wc *wc,
					    u64 op_flags)
{
	bool selective = dir == KOFI_TX ? ep->tx_selective : ep->rx_selective;

	if (op_flags & KOFI_NO_COMPLETION)
		return wc->err && !cq->done;
	if (selective && !wc->err && !(op_flags & FI_COMPLETION))
		return false;
	return !cq->done || wc->cqe;
}

/* Is there a promise left that can be kept? The runner moves head first. */
static __always_inline void kofi_cq_assert_reserved(const struct kofi_cq *cq)
{
	int used = atomic_read(&cq->used);

	smp_rmb();	/* pairs with the runner's kofi_cq_pop() */
	WARN_ON_ONCE(used <= (int)kofi_cq_count(cq));
}

/* Counters. Without the lock */
static __always_inline void kofi_cq_count_ended(struct kofi_ep *ep,
						struct kofi_ep *from,
						enum kofi_dir dir,
						const struct kofi_wc *wc,
						u64 op_flags)
{
	if (unlikely(ep->counted))
		kofi_ep_count(ep, dir, wc, op_flags);
	if (unlikely(from != ep && from->counted))
		kofi_ep_count(from, dir, wc, op_flags);
}

/* Statistics. The lock has just been taken. */
static __always_inline void kofi_cq_tally(struct kofi_cq *cq,
					  struct kofi_ep *ep,
					  struct kofi_ep *from,
					  enum kofi_dir dir,
					  const struct kofi_wc *wc,
					  u64 op_flags)
{
	/*
	 * What the operation held has been given back before; a post that did
	 * not find it has set KOFI_EP_BLOCKED before it looked.
	 */
	smp_mb__after_spinlock();
	kofi_cq_assert_reserved(cq);
	kofi_ep_tally(ep, dir, wc, op_flags);
	if (unlikely(from != ep))
		kofi_ep_tally(from, dir, wc, op_flags);
}

/* Has a post been refused for want of what an operation held? With the lock */
static __always_inline void kofi_cq_unblock(struct kofi_ep *ep)
{
	if (unlikely(test_bit(KOFI_EP_BLOCKED, &ep->blocked)) &&
	    test_and_clear_bit(KOFI_EP_BLOCKED, &ep->blocked))
		kofi_cq_space(ep);
}

static __always_inline void kofi_cq_complete(struct kofi_ep *ep,
					     struct kofi_ep *from,
					     enum kofi_dir dir,
					     const struct kofi_wc *wc,
					     u64 op_flags)
{
	struct kofi_cq *cq = kofi_ep_cq(ep, dir);
	unsigned long flags;
	bool bh;

	if (unlikely(!cq)) {
		kofi_ep_complete_counted(ep, dir, wc, op_flags);
		return;
	}
	kofi_cq_count_ended(ep, from, dir, wc, op_flags);
	bh = kofi_cq_lock(cq, &flags);
	kofi_cq_tally(cq, ep, from, dir, wc, op_flags);
	if (likely(kofi_cq_reports(cq, ep, dir, wc, op_flags)))
		kofi_cq_push(cq, ep, from, dir, wc, op_flags);
	else
		kofi_cq_unused(cq);
	kofi_cq_unblock(ep);
	kofi_cq_unlock(cq, flags, bh);
}

/**
 * kofi_ep_tx_complete - a transmit has ended
 * @ep: the endpoint
 * @wc: how; len is the length of the message. Copied.
 * @op_flags: flags the operation was posted with
 *
 * Counts the operation, and reports it unless it is a success that nobody
 * asked to hear of. What the operation held of the provider's must have been
 * given back, and everything of the endpoint be done with: once the completion
 * is there, the consumer may act on it.
 *
 * Context: any. No consumer is called from inside.
 */
void kofi_ep_tx_complete(struct kofi_ep *ep, const struct kofi_wc *wc,
			 u64 op_flags)
{
	kofi_cq_complete(ep, ep, KOFI_TX, wc, op_flags);
}
EXPORT_SYMBOL_GPL(kofi_ep_tx_complete);

/**
 * kofi_ep_recv_complete - a receive, perhaps a shared one, has ended
 * @ep: whose receive it was
 * @from: the endpoint the message came to
 * @wc: how. Copied.
 * @op_flags: flags the operation was posted with
 *
 * Context: any. No consumer is called from inside.
 */
void kofi_ep_recv_complete(struct kofi_ep *ep, struct kofi_ep *from,
			   const struct kofi_wc *wc, u64 op_flags)
{
	kofi_cq_complete(ep, from, KOFI_RX, wc, op_flags);
}
EXPORT_SYMBOL_GPL(kofi_ep_recv_complete);

/**
 * kofi_ep_rx_complete - a receive has ended
 * @ep: the endpoint
 * @wc: how. Copied.
 * @op_flags: flags the operation was posted with
 *
 * As kofi_ep_tx_complete().
 *
 * Context: any. No consumer is called from inside.
 */
void kofi_ep_rx_complete(struct kofi_ep *ep, const struct kofi_wc *wc,
			 u64 op_flags)
{
	kofi_ep_recv_complete(ep, ep, wc, op_flags);
}
EXPORT_SYMBOL_GPL(kofi_ep_rx_complete);

/* --------------------------------------------------------------- the runner */

/* Somebody has waited for a slot when the runner freed one. */
static noinline void kofi_cq_refreed(struct kofi_cq *cq)
{
	spin_lock_irq(&cq->lock);
	kofi_cq_freed(cq);
	spin_unlock_irq(&cq->lock);
}

static bool kofi_cq_filled(struct kofi_cq *cq)
{
	/* pairs with kofi_cq_push(): what is behind tail has been written */
	return cq->head != smp_load_acquire(&cq->tail);
}

static __always_inline void kofi_cq_call_one(struct kofi_cq *cq,
					     const struct kofi_wc *wc)
{
	wc->cqe->done(&cq->cq, wc);
	/* all the callback did, before who waits for it goes on */
	smp_store_release(&cq->returned, cq->returned + 1);
}

/* Call back for the completions that are there. */
static int kofi_cq_call(struct kofi_cq *cq, int max)
{
	int n;

	for (n = 0; n < max && kofi_cq_filled(cq); n++) {
		const struct kofi_wc *wc = kofi_cq_pop(cq);

		if (kofi_cq_wanted(cq))
			kofi_cq_refreed(cq);
		kofi_cq_call_one(cq, wc);
	}
	return n;
}

/* Next endpoint to be called back, in the order they asked */
static struct kofi_ep *kofi_cq_space_next(struct kofi_cq *cq)
{
	struct kofi_ep *ep;

	if (!cq->space_todo) {
		if (llist_empty(&cq->space))
			return NULL;
		cq->space_todo =
			llist_reverse_order(llist_del_all(&cq->space));
	}
	ep = llist_entry(cq->space_todo, struct kofi_ep, space_node);
	cq->space_todo = cq->space_todo->next;
	/* From here on it can be put on the list again. */
	clear_bit_unlock(KOFI_EP_SPACE, &ep->blocked);
	return ep;
}

/* Take an endpoint off the list; nobody adds it any more. */
static void kofi_cq_space_remove(struct kofi_cq *cq, struct kofi_ep *ep)
{
	struct llist_node **link = &cq->space_todo;

	lockdep_assert_held(&cq->lock);

	while (*link)
		link = &(*link)->next;
	*link = llist_reverse_order(llist_del_all(&cq->space));
	for (link = &cq->space_todo; *link; link = &(*link)->next) {
		if (*link == &ep->space_node) {
			*link = ep->space_node.next;
			break;
		}
	}
}

static void kofi_cq_enter(struct kofi_cq *cq)
{
	cq->runner = current;
	lock_map_acquire_try(&cq->map);
}

static void kofi_cq_leave(struct kofi_cq *cq)
{
	lock_map_release(&cq->map);
	cq->runner = NULL;
	if (cq->flushers)
		wake_up_all(&cq->flush_wait);
}

/* Is there anything to call back for? */
static bool kofi_cq_idle(const struct kofi_cq *cq)
{
	lockdep_assert_held(&cq->lock);

	return !(cq->done && cq->head != cq->tail) && !cq->notify_due &&
	       !cq->space_todo && llist_empty(&cq->space);
}

/* Call back for everything that is no completion. */
static int kofi_cq_call_others(struct kofi_cq *cq, int max)
	__must_hold(&cq->lock)
{
	bool notify = cq->notify_due && max > 0;
	struct kofi_ep *ep = NULL;

	if (notify)
		cq->notify_due = false;
	if (max > notify)
		ep = kofi_cq_space_next(cq);
	if (!notify && !ep)
		return 0;

	cq->space_ep = ep;
	spin_unlock_irq(&cq->lock);
	if (notify)
		cq->notify(&cq->cq, cq->cq.fid.context);
	if (ep) {
		trace_kofi_ep_write_space(ep);
		ep->write_space(&ep->ep, ep->ep.fid.context);
	}
	spin_lock_irq(&cq->lock);
	cq->space_ep = NULL;
	return notify + !!ep;
}

/*
 * Call the consumer, at most budget times. Returns, with the lock, less than
 * that only when there was nothing left, and then the next to put something in
 * kicks.
 */
static int kofi_cq_run(struct kofi_cq *cq, int budget)
	__acquires(&cq->lock)
{
	int calls = 0;

	for (;;) {
		if (cq->done)
			calls += kofi_cq_call(cq, min(budget - calls,
						      KOFI_CQ_BATCH));
		spin_lock_irq(&cq->lock);
		if (kofi_cq_idle(cq))
			break;
		calls += kofi_cq_call_others(cq, budget - calls);
		if (cq->flushers)
			wake_up_all(&cq->flush_wait);
		if (calls >= budget)
			break;
		spin_unlock_irq(&cq->lock);
		if (cq->poll == KOFI_POLL_WORKQUEUE)
			cond_resched();
	}
	kofi_cq_leave(cq);
	return calls;
}

/*
 * The runner has found nothing and ends. The llist of write space is not under
 * the lock: who adds to it between the last look and the clearing of the bit
 * does not kick, so look once more.
 */
static __always_inline void kofi_cq_stop_poller(struct kofi_cq *cq)
{
	lockdep_assert_held(&cq->lock);

	/* kofi_cq_begin() then takes over what only the runner changes */
	clear_bit_unlock(KOFI_CQ_ACTIVE, &cq->active);
	smp_mb__after_atomic();	/* against llist_add() and kofi_cq_kick() */
	if (!llist_empty(&cq->space))
		kofi_cq_kick(cq);
	if (cq->flushers)
		wake_up_all(&cq->flush_wait);
}

static int kofi_cq_irq_poll(struct irq_poll *iop, int budget)
{
	struct kofi_cq *cq = container_of(iop, struct kofi_cq, iop);
	int calls;

	kofi_cq_enter(cq);
	calls = kofi_cq_run(cq, budget);
	if (calls < budget) {
		irq_poll_complete(iop);
		kofi_cq_stop_poller(cq);
	}
	spin_unlock_irq(&cq->lock);
	return calls;
}

static void kofi_cq_work(struct work_struct *work)
{
	struct kofi_cq *cq = container_of(work, struct kofi_cq, work);

	kofi_cq_enter(cq);
	if (kofi_cq_run(cq, KOFI_CQ_BUDGET_WORK) < KOFI_CQ_BUDGET_WORK)
		kofi_cq_stop_poller(cq);
	else
		kofi_cq_queue_work(cq);
	spin_unlock_irq(&cq->lock);
}

/**
 * kofi_cq_poll - let a queue opened with KOFI_POLL_DIRECT call its consumer
 * @cq: the queue
 * @budget: most callbacks to call
 *
 * Completion and write-space callbacks are called from here, in the caller's
 * context. A second caller while one is at work gets 0 at once.
 *
 * Context: any with interrupts on; callbacks run in the same.
 * Return: number of callbacks called; -EINVAL.
 */
int kofi_cq_poll(struct fid_cq *cq, int budget)
{
	struct kofi_cq *kcq = kofi_cq(cq);
	int calls = 0;
	bool busy;

	if (!kofi_cq_valid(cq) || kcq->poll != KOFI_POLL_DIRECT || budget < 0)
		return -EINVAL;
	spin_lock_irq(&kcq->lock);
	busy = kcq->runner || kcq->flushers;
	if (!busy)
		kofi_cq_enter(kcq);
	spin_unlock_irq(&kcq->lock);
	if (busy)
		return 0;
	if (kcq->ops && kcq->ops->poll)
		kcq->ops->poll(kcq);
	calls = kofi_cq_run(kcq, budget);
	spin_unlock_irq(&kcq->lock);
	return calls;
}
EXPORT_SYMBOL_GPL(kofi_cq_poll);

/* ------------------------------------------------------------- for devices */

/* The runner reports what is there, and ends, or asks for another. */
static noinline void kofi_cq_run_on(struct kofi_cq *cq)
{
	if (kofi_cq_run(cq, KOFI_CQ_BUDGET_IRQ) < KOFI_CQ_BUDGET_IRQ)
		kofi_cq_stop_poller(cq);
	else
		irq_poll_sched(&cq->iop);
	spin_unlock_irq(&cq->lock);
}

/**
 * kofi_cq_begin - be the runner of a queue while completing operations
 * @cq: the queue, or NULL
 *
 * What is completed until kofi_cq_end() is reported by that call. No queue of
 * the same consumer may be begun in between.
 *
 * Context: softirq.
 * Return: true if kofi_cq_end() must be called; false if the queue does not call
 * back in softirq context, or not on this processor, or somebody else is, or
 * shall be, the runner, who then reports what the caller completes.
 */
bool kofi_cq_begin(struct kofi_cq *cq)
{
	if (unlikely(!cq || !cq->done || cq->poll != KOFI_POLL_SOFTIRQ))
		return false;
	if (cq->cpu >= 0 && cq->cpu != raw_smp_processor_id())
		return false;
	return !test_and_set_bit(KOFI_CQ_ACTIVE, &cq->active);
}
EXPORT_SYMBOL_GPL(kofi_cq_begin);

/**
 * kofi_cq_end - report what has been completed since kofi_cq_begin()
 * @cq: the queue
 *
 * Calls the consumer. If others keep putting in more, the queue's own softirq
 * handler goes on.
 *
 * Context: that of kofi_cq_begin(); the caller holds no locks.
 */
void kofi_cq_end(struct kofi_cq *cq)
{
	kofi_cq_enter(cq);
	kofi_cq_run_on(cq);
}
EXPORT_SYMBOL_GPL(kofi_cq_end);

/*
 * In softirq context, and if a queue calls back there: be its runner, and if
 * nothing is before this completion in the ring it need not go through it.
 */
static __always_inline void kofi_cq_report(struct kofi_ep *ep,
					   struct kofi_ep *from,
					   enum kofi_dir dir,
					   struct kofi_wc *wc, u64 op_flags)
{
	struct kofi_cq *cq = kofi_ep_cq(ep, dir);
	bool call = false;

	if (unlikely(!kofi_cq_begin(cq))) {
		kofi_cq_complete(ep, from, dir, wc, op_flags);
		return;
	}
	kofi_cq_enter(cq);
	kofi_cq_count_ended(ep, from, dir, wc, op_flags);
	spin_lock_irq(&cq->lock);
	kofi_cq_tally(cq, ep, from, dir, wc, op_flags);
	if (unlikely(!kofi_cq_reports(cq, ep, dir, wc, op_flags))) {
		kofi_cq_unused(cq);
	} else if (likely(cq->head == cq->tail)) {
		kofi_cq_fill(wc, from, dir, wc, op_flags);
		kofi_cq_note(cq, ep, wc);
		WRITE_ONCE(cq->head, cq->head + 1);
		cq->tail++;
		kofi_cq_unused(cq);
		call = true;
	} else {
		kofi_cq_push(cq, ep, from, dir, wc, op_flags);
	}
	kofi_cq_unblock(ep);
	spin_unlock_irq(&cq->lock);

	if (likely(call))
		kofi_cq_call_one(cq, wc);
	spin_lock_irq(&cq->lock);
	if (likely(cq->head == cq->tail && !cq->space_todo &&
		   llist_empty(&cq->space))) {
		/* as kofi_cq_leave(), but waking is done once */
		lock_map_release(&cq->map);
		cq->runner = NULL;
		kofi_cq_stop_poller(cq);
		spin_unlock_irq(&cq->lock);
		return;
	}
	spin_unlock_irq(&cq->lock);
	kofi_cq_run_on(cq);
}

/**
 * kofi_ep_tx_report - kofi_ep_tx_complete() from where the consumer is called
 * @ep: the endpoint
 * @wc: as there, but not copied: what the consumer gets to see is filled in here
 * @op_flags: as there
 *
 * If the endpoint's queue calls back in softirq context, the consumer may be
 * called from inside, but not between kofi_cq_begin() and kofi_cq_end().
 *
 * Context: softirq, or any if the queue does not call back there. The caller
 * holds no locks.
 */
void kofi_ep_tx_report(struct kofi_ep *ep, struct kofi_wc *wc, u64 op_flags)
{
	kofi_cq_report(ep, ep, KOFI_TX, wc, op_flags);
}
EXPORT_SYMBOL_GPL(kofi_ep_tx_report);

/**
 * kofi_ep_recv_report - kofi_ep_recv_complete() from where the consumer is called
 * @ep: whose receive it was
 * @from: the endpoint the message came to
 * @wc: as for kofi_ep_tx_report()
 * @op_flags: flags the operation was posted with
 *
 * Context: as kofi_ep_tx_report().
 */
void kofi_ep_recv_report(struct kofi_ep *ep, struct kofi_ep *from,
			 struct kofi_wc *wc, u64 op_flags)
{
	kofi_cq_report(ep, from, KOFI_RX, wc, op_flags);
}
EXPORT_SYMBOL_GPL(kofi_ep_recv_report);

/**
 * kofi_cq_priv - the provider's part of a queue
 * @cq: a queue made by kofi_cq_make()
 *
 * Context: any.
 * Return: kofi_cq_ops.priv_size bytes.
 */
void *kofi_cq_priv(struct kofi_cq *cq)
{
	return cq->priv;
}
EXPORT_SYMBOL_GPL(kofi_cq_priv);

/**
 * kofi_ep_tx_scarce - are more than half of the slots for transmits in use
 * @ep: an endpoint whose transmit has just been accepted
 *
 * An operation whose end the device does not report gives its slot back only
 * when a later one has ended. As long as none is accepted this way in scarcity,
 * a queue without a free slot is certain to get one back.
 *
 * Context: any.
 * Return: true if so; the operation's end is to be reported at once.
 */
bool kofi_ep_tx_scarce(struct kofi_ep *ep)
{
	struct kofi_cq *cq = ep->tx_cq;

	return cq && atomic_read(&cq->used) > cq->limit[KOFI_RX] / 2;
}
EXPORT_SYMBOL_GPL(kofi_ep_tx_scarce);

/* ----------------------------------------------------- an endpoint is closed */

/* Take completions of one endpoint out of the middle of the ring. */
static u32 kofi_cq_extract(struct kofi_cq *cq, struct kofi_ep *ep)
{
	u32 from, to, n = 0;

	if (!cq->done)
		return 0;
	for (from = to = cq->head; from != cq->tail; from++) {
		struct kofi_cq_entry *entry = kofi_cq_entry(cq, from);

		if (entry->ep == ep && n < KOFI_CQ_BATCH) {
			cq->batch[n++] = *entry;
		} else {
			if (from != to)
				*kofi_cq_entry(cq, to) = *entry;
			to++;
		}
	}
	cq->next = kofi_cq_entry(cq, to) - cq->ring;
	cq->tail = to;
	atomic_sub(n, &cq->used);
	kofi_cq_freed(cq);
	return n;
}

static void kofi_cq_flush_direct(struct kofi_cq *cq, struct kofi_ep *ep)
{
	u32 n, i;

	spin_lock_irq(&cq->lock);
	kofi_cq_space_remove(cq, ep);
	cq->flushers++;
	wait_event_lock_irq(cq->flush_wait, !cq->runner, cq->lock);
	kofi_cq_enter(cq);
	while ((n = kofi_cq_extract(cq, ep))) {
		spin_unlock_irq(&cq->lock);
		for (i = 0; i < n; i++)
			cq->batch[i].wc.cqe->done(&cq->cq, &cq->batch[i].wc);
		spin_lock_irq(&cq->lock);
	}
	cq->flushers--;
	kofi_cq_leave(cq);
	spin_unlock_irq(&cq->lock);
}

static void kofi_cq_flush_wait(struct kofi_cq *cq, struct kofi_ep *ep)
{
	u32 last;

	spin_lock_irq(&cq->lock);
	kofi_cq_space_remove(cq, ep);
	last = cq->done ? cq->tail : cq->returned;
	cq->flushers++;
	wait_event_lock_irq(cq->flush_wait,
			    /* pairs with kofi_cq_call() */
			    (s32)(smp_load_acquire(&cq->returned) - last) >= 0 &&
			    cq->space_ep != ep, cq->lock);
	cq->flushers--;
	spin_unlock_irq(&cq->lock);
}

/*
 * About to wait for the runner. For lockdep that is taking the lock a callback
 * holds; with interrupts off, for the reason del_timer_sync() has.
 */
static bool kofi_cq_may_wait(struct kofi_cq *cq)
{
	unsigned long flags;

	local_irq_save(flags);
	lock_map_acquire(&cq->map);
	lock_map_release(&cq->map);
	local_irq_restore(flags);
	return !WARN_ONCE(READ_ONCE(cq->runner) == current,
			  "kofi: close or drain in a callback of the same queue\n");
}

/**
 * kofi_cq_claim - keep everybody else from running a queue
 * @cq: a queue opened with KOFI_POLL_DIRECT
 *
 * Until kofi_cq_release(), of the same task, nobody is called back, and
 * kofi_cq_ops.poll is not called but by the caller.
 *
 * Context: process, sleeps; not from a callback of the queue.
 */
void kofi_cq_claim(struct kofi_cq *cq)
{
	might_sleep();
	kofi_cq_may_wait(cq);
	spin_lock_irq(&cq->lock);
	cq->flushers++;
	wait_event_lock_irq(cq->flush_wait, !cq->runner, cq->lock);
	cq->flushers--;
	kofi_cq_enter(cq);
	spin_unlock_irq(&cq->lock);
}
EXPORT_SYMBOL_GPL(kofi_cq_claim);

/**
 * kofi_cq_release - end what kofi_cq_claim() has begun
 * @cq: a queue opened with KOFI_POLL_DIRECT
 *
 * Context: process.
 */
void kofi_cq_release(struct kofi_cq *cq)
{
	spin_lock_irq(&cq->lock);
	kofi_cq_leave(cq);
	spin_unlock_irq(&cq->lock);
}
EXPORT_SYMBOL_GPL(kofi_cq_release);

static void kofi_cq_flush_one(struct kofi_cq *cq, struct kofi_ep *ep)
{
	if (!kofi_cq_may_wait(cq))
		return;
	if (cq->poll == KOFI_POLL_DIRECT)
		kofi_cq_flush_direct(cq, ep);
	else
		kofi_cq_flush_wait(cq, ep);
}

static void kofi_cq_unwait(struct kofi_cq *cq, struct kofi_cq_wait *wait)
{
	if (!cq)
		return;
	spin_lock_irq(&cq->lock);
	list_del_init(&wait->node);
	spin_unlock_irq(&cq->lock);
}

/**
 * kofi_cq_flush - wait until an endpoint's callbacks are over
 * @ep: the endpoint, with nothing outstanding and no more posts
 *
 * On a DIRECT queue the endpoint's remaining completion callbacks run in the
 * caller. Write space is no longer reported. What waits to be read stays. May
 * be called more than once.
 *
 * Context: process, sleeps; not from a callback of the endpoint's queues.
 */
void kofi_cq_flush(struct kofi_ep *ep)
{
	might_sleep();
	set_bit(KOFI_EP_DRAINED, &ep->blocked);
	/*
	 * Off all the lists from which slots that come back would move it to
	 * the call-back list; who saw no DRAINED has put it there by then.
	 */
	kofi_cq_unwait(ep->tx_cq, &ep->cq_wait[KOFI_TX]);
	kofi_cq_unwait(ep->rx_cq, &ep->cq_wait[KOFI_RX]);

	if (ep->tx_cq)
		kofi_cq_flush_one(ep->tx_cq, ep);
	if (ep->rx_cq && ep->rx_cq != ep->tx_cq)
		kofi_cq_flush_one(ep->rx_cq, ep);
}

/* ------------------------------------------------------------------ reading */

static size_t kofi_cq_format_size(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	case FI_CQ_FORMAT_TAGGED:
		return sizeof(struct fi_cq_tagged_entry);
	default:
		return sizeof(struct fi_cq_entry);
	}
}

/* Each format begins with the one before it, so one copy serves all. */
static_assert(offsetof(struct fi_cq_tagged_entry, op_context) ==
	      offsetof(struct fi_cq_entry, op_context));
static_assert(offsetof(struct fi_cq_tagged_entry, len) ==
	      offsetof(struct fi_cq_msg_entry, len));
static_assert(offsetof(struct fi_cq_tagged_entry, data) ==
	      offsetof(struct fi_cq_data_entry, data));

/*
 * Can somebody sleep who reads only afterwards? For him a signal lasts until
 * the queue has been found empty.
 */
static bool kofi_cq_asked(const struct kofi_cq *cq)
{
	return cq->link.set || (int)cq->wait_obj == KOFI_WAIT_QUEUE;
}

/**
 * kofi_cq_pending - is there something for the consumer to do
 * @cq: a queue that is read, or is polled by the consumer
 *
 * Context: any.
 * Return: true if there is a completion or an error to be read, or a callback
 * to be called by kofi_cq_poll(), or if the consumer was told to have a look.
 */
bool kofi_cq_pending(struct kofi_cq *cq)
{
	unsigned long flags;
	bool pending;

	spin_lock_irqsave(&cq->lock, flags);
	pending = cq->head != cq->tail ||
		  (cq->signaled && kofi_cq_asked(cq)) ||
		  (cq->poll == KOFI_POLL_DIRECT &&
		   (cq->space_todo || !llist_empty(&cq->space)));
	spin_unlock_irqrestore(&cq->lock, flags);
	return pending;
}

/*
 * One attempt to read. Only the last one before the caller is told that there
 * is nothing arms the notify handler.
 */
static ssize_t kofi_cq_try_read(struct kofi_cq *cq, void *buf, size_t count,
				fi_addr_t *src_addr, bool arm)
{
	size_t size = kofi_cq_format_size(cq->format), n;
	unsigned long flags;
	ssize_t ret;
	bool bh;

	bh = kofi_cq_lock(cq, &flags);
	for (n = 0; n < count && cq->head != cq->tail; n++) {
		const struct kofi_wc *wc = &cq->ring[cq->first].wc;
		const struct fi_cq_tagged_entry entry = {
			.op_context = wc->op_context, .flags = wc->flags,
			.len = wc->len, .buf = wc->buf, .data = wc->data,
			.tag = wc->tag,
		};

		if (wc->err)
			break;
		memcpy(buf + n * size, &entry, size);
		if (src_addr)
			src_addr[n] = wc->src;
		kofi_cq_pop(cq);
	}
	if (n) {
		kofi_cq_freed(cq);
		ret = n;
	} else if (cq->head == cq->tail) {
		cq->armed = cq->notify && (arm || cq->armed);
		if (kofi_cq_asked(cq))
			cq->signaled = false;
		ret = -EAGAIN;
	} else if (cq->ring[cq->first].wc.err) {
		ret = -FI_EAVAIL;
	} else {
		ret = 0;
	}
	kofi_cq_unlock(cq, flags, bh);
	return ret;
}

/**
 * fi_cq_readfrom - read completions, and who sent what was received
 * @cq: a queue that is read
 * @buf: array of @count entries in the queue's format
 * @count: most completions to read. With 0 nothing is read, the return value
 *	tells whether there is something.
 * @src_addr: array of @count addresses, FI_ADDR_NOTAVAIL where the endpoint
 *	reports no sources; may be NULL
 *
 * fi_cq(3). Any number of tasks may read. An error is read with
 * fi_cq_readerr(), in its turn: successes behind it wait. A return of -EAGAIN
 * arms the notify handler.
 *
 * Context: any. Interrupts are off while up to @count entries are copied.
 * Return: number of completions; -EAGAIN if there is none; -FI_EAVAIL if the
 * next is an error; -EINVAL, also for a queue that calls back.
 */
ssize_t fi_cq_readfrom(struct fid_cq *cq, void *buf, size_t count,
		       fi_addr_t *src_addr)
{
	if (!kofi_cq_reads(cq) || (count && !buf))
		return -EINVAL;
	return kofi_cq_try_read(kofi_cq(cq), buf, count, src_addr, true);
}
EXPORT_SYMBOL_GPL(fi_cq_readfrom);

/**
 * fi_cq_read - read completions
 * @cq: as fi_cq_readfrom()
 * @buf: as fi_cq_readfrom()
 * @count: as fi_cq_readfrom()
 *
 * fi_cq(3).
 *
 * Context: any.
 * Return: as fi_cq_readfrom().
 */
ssize_t fi_cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	return fi_cq_readfrom(cq, buf, count, NULL);
}
EXPORT_SYMBOL_GPL(fi_cq_read);

/**
 * fi_cq_readerr - read the error that is next in the queue
 * @cq: a queue that is read
 * @buf: where it goes; there is no error data, err_data_size becomes 0
 * @flags: 0
 *
 * fi_cq(3).
 *
 * Context: any.
 * Return: 1; -EAGAIN if the next in the queue is no error; -FI_EBADFLAGS;
 * -EINVAL, also for a queue that calls back.
 */
ssize_t fi_cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *buf, u64 flags)
{
	struct kofi_cq *kcq = kofi_cq(cq);
	ssize_t ret = -EAGAIN;
	unsigned long irq;
	bool bh;

	if (!kofi_cq_reads(cq) || !buf)
		return -EINVAL;
	if (flags)
		return -FI_EBADFLAGS;

	bh = kofi_cq_lock(kcq, &irq);
	if (kcq->head != kcq->tail) {
		const struct kofi_wc *wc = &kcq->ring[kcq->first].wc;

		if (wc->err) {
			*buf = (struct fi_cq_err_entry) {
				.op_context = wc->op_context,
				.flags = wc->flags, .len = wc->len,
				.buf = wc->buf, .data = wc->data,
				.tag = wc->tag, .olen = wc->olen,
				.err = wc->err, .prov_errno = wc->prov_errno,
				.src_addr = wc->src,
				.err_data = buf->err_data_size ?
					    buf->err_data : NULL,
			};
			kcq->errors--;
			kofi_cq_pop(kcq);
			kofi_cq_freed(kcq);
			ret = 1;
		}
	}
	kofi_cq_unlock(kcq, irq, bh);
	return ret;
}
EXPORT_SYMBOL_GPL(fi_cq_readerr);

static bool kofi_cq_enough(const struct kofi_cq *cq, u32 threshold)
{
	return kofi_cq_count(cq) >= threshold || cq->errors;
}

static bool kofi_cq_ready(struct kofi_cq *cq, u32 threshold, u32 signals)
{
	unsigned long flags;
	bool ready;

	spin_lock_irqsave(&cq->lock, flags);
	ready = kofi_cq_enough(cq, threshold) || cq->signals != signals;
	spin_unlock_irqrestore(&cq->lock, flags);
	return ready;
}

/*
 * Begin to wait. False if there is not enough to read, but fi_cq_signal() was
 * called when nobody waited.
 */
static bool kofi_cq_wait_begin(struct kofi_cq *cq, u32 threshold, u32 *signals)
{
	unsigned long flags;
	bool wait;

	spin_lock_irqsave(&cq->lock, flags);
	*signals = cq->signals;
	wait = !cq->signaled || kofi_cq_enough(cq, threshold);
	if (wait)
		cq->readers++;
	else
		cq->signaled = false;
	spin_unlock_irqrestore(&cq->lock, flags);
	return wait;
}

static void kofi_cq_wait_end(struct kofi_cq *cq)
{
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	cq->readers--;
	spin_unlock_irqrestore(&cq->lock, flags);
}

/**
 * fi_cq_sreadfrom - wait for completions and read them
 * @cq: a queue that is read, opened with a wait object
 * @buf: as fi_cq_readfrom()
 * @count: as fi_cq_readfrom()
 * @src_addr: as fi_cq_readfrom()
 * @cond: with FI_CQ_COND_THRESHOLD a number of completions, cast to a
 *	pointer, to wait for before reading; more than @count or than the queue
 *	can hold counts as that. An error, the end of the time or
 *	fi_cq_signal() ends the wait before. Otherwise ignored.
 * @timeout: milliseconds; 0 does not wait, negative has no end
 *
 * fi_cq(3). Only a fatal signal ends the sleep before its time.
 *
 * Context: process, sleeps.
 * Return: as fi_cq_readfrom(), -EAGAIN meaning that the time is over or
 * fi_cq_signal() was called; -EINTR if the task is being killed; -EINVAL also
 * for a queue without wait object.
 */
ssize_t fi_cq_sreadfrom(struct fid_cq *cq, void *buf, size_t count,
			fi_addr_t *src_addr, const void *cond, int timeout)
{
	struct kofi_cq *kcq = kofi_cq(cq);
	long left = kofi_wait_timeout(timeout);
	size_t threshold = 1;
	ssize_t ret;
	u32 signals;

	might_sleep();
	if (!kofi_cq_reads(cq) || kcq->wait_obj == FI_WAIT_NONE ||
	    (count && !buf))
		return -EINVAL;
	if (kcq->threshold)
		threshold = clamp((size_t)cond, 1,
				  clamp(count, 1, (size_t)kcq->limit[KOFI_RX]));

	if (!kofi_cq_wait_begin(kcq, threshold, &signals))
		return kofi_cq_try_read(kcq, buf, count, src_addr, true);
	do {
		left = kofi_wait_event(kcq->wait_obj, kcq->wait,
				       kofi_cq_ready(kcq, threshold, signals),
				       left);
		/* Another reader may have been quicker. */
		ret = kofi_cq_try_read(kcq, buf, count, src_addr, false);
	} while (ret == -EAGAIN && left > 0 &&
		 READ_ONCE(kcq->signals) == signals);
	kofi_cq_wait_end(kcq);

	if (ret == -EAGAIN)
		ret = left < 0 ? -EINTR :
		      kofi_cq_try_read(kcq, buf, count, src_addr, true);
	return ret;
}
EXPORT_SYMBOL_GPL(fi_cq_sreadfrom);

/**
 * fi_cq_sread - wait for completions and read them
 * @cq: as fi_cq_sreadfrom()
 * @buf: as fi_cq_sreadfrom()
 * @count: as fi_cq_sreadfrom()
 * @cond: as fi_cq_sreadfrom()
 * @timeout: as fi_cq_sreadfrom()
 *
 * fi_cq(3).
 *
 * Context: process, sleeps.
 * Return: as fi_cq_sreadfrom().
 */
ssize_t fi_cq_sread(struct fid_cq *cq, void *buf, size_t count,
		    const void *cond, int timeout)
{
	return fi_cq_sreadfrom(cq, buf, count, NULL, cond, timeout);
}
EXPORT_SYMBOL_GPL(fi_cq_sread);

/**
 * fi_cq_signal - end the wait of every reader
 * @cq: a queue opened with a wait object
 *
 * fi_cq(3). If nobody waits, the next reader that would have to returns at
 * once. On a queue that is a member of a wait set, or whose wait queue has been
 * asked for, fi_wait() and fi_trywait() see it until a read returns -EAGAIN.
 *
 * Context: any.
 * Return: 0; -EINVAL, also for a queue without wait object.
 */
int fi_cq_signal(struct fid_cq *cq)
{
	struct kofi_cq *kcq = kofi_cq(cq);
	unsigned long flags;

	if (!kofi_cq_reads(cq) || kcq->wait_obj == FI_WAIT_NONE)
		return -EINVAL;
	spin_lock_irqsave(&kcq->lock, flags);
	WRITE_ONCE(kcq->signals, kcq->signals + 1);
	kcq->signaled = !kcq->readers;
	wake_up(&kcq->wait);
	kofi_wait_wake(&kcq->link);
	spin_unlock_irqrestore(&kcq->lock, flags);
	return 0;
}
EXPORT_SYMBOL_GPL(fi_cq_signal);

/**
 * fi_cq_strerror - text for prov_errno of an error entry
 * @cq: the queue it was read from
 * @prov_errno: from the entry
 * @err_data: from the entry, or NULL
 * @buf: the text is copied here, cut to fit; may be NULL
 * @len: bytes at @buf
 *
 * fi_cq(3).
 *
 * Context: any.
 * Return: the text, a constant string.
 */
const char *fi_cq_strerror(struct fid_cq *cq, int prov_errno,
			   const void *err_data, char *buf, size_t len)
{
	struct kofi_cq *kcq = kofi_cq(cq);
	const char *text;

	if (kofi_cq_valid(cq) && kcq->ops && kcq->ops->strerror)
		text = kcq->ops->strerror(prov_errno);
	else
		text = fi_strerror(prov_errno);
	if (buf && len)
		strscpy(buf, text, len);
	return text;
}
EXPORT_SYMBOL_GPL(fi_cq_strerror);

/* --------------------------------------------------------- opening, closing */

static void kofi_cq_free(struct kofi_cq *cq)
{
	lockdep_unregister_key(&cq->key);
	kvfree(cq->ring);
	kfree(cq->priv);
	kfree(cq);
}

static int kofi_cq_close(struct fi_fid *fid)
{
	struct kofi_cq *cq = container_of(fid, struct kofi_cq, cq.fid);

	if (!kofi_cq_may_wait(cq))
		return -EDEADLK;
	/* No endpoint is left, but a notify handler may be running. */
	spin_lock_irq(&cq->lock);
	cq->flushers++;
	wait_event_lock_irq(cq->flush_wait,
			    !test_bit(KOFI_CQ_ACTIVE, &cq->active), cq->lock);
	spin_unlock_irq(&cq->lock);
	kofi_wait_leave(&cq->link);
	if (cq->ops && cq->ops->close)
		cq->ops->close(cq);
	kofi_obj_exit(&cq->obj);
	kofi_cq_free(cq);
	return 0;
}

static int kofi_cq_control(struct fi_fid *fid, int command, void *arg)
{
	struct kofi_cq *cq = container_of(fid, struct kofi_cq, cq.fid);

	return kofi_wait_control(cq->wait_obj, &cq->wait, command, arg);
}

static const struct fi_ops kofi_cq_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= kofi_cq_close,
	.control	= kofi_cq_control,
};

static void kofi_cq_stats(struct kofi_obj *obj, kofi_stat_fn fn, void *arg)
{
	struct kofi_cq *cq = container_of(obj, struct kofi_cq, obj);
	u64 completions, failed, again;
	u32 waiting, reserved;

	spin_lock_irq(&cq->lock);
	reserved = atomic_read(&cq->used);
	waiting = kofi_cq_count(cq);
	reserved -= min(reserved, waiting);	/* the runner may be between */
	completions = cq->completions;
	failed = cq->failed;
	again = cq->again;
	spin_unlock_irq(&cq->lock);

	fn(arg, "size", cq->limit[KOFI_RX]);
	fn(arg, "waiting", waiting);
	fn(arg, "reserved", reserved);
	fn(arg, "completions", completions);
	fn(arg, "errors", failed);
	fn(arg, "again", again);
}

static const struct kofi_obj_ops kofi_cq_obj_ops = {
	.stats	= kofi_cq_stats,
};

static int kofi_cq_check(const struct fi_cq_attr *attr,
			 const struct kofi_cq_attr *kattr)
{
	if (attr->flags & ~FI_AFFINITY)
		return -FI_EBADFLAGS;
	if (attr->flags & FI_AFFINITY &&
	    (attr->signaling_vector < 0 ||
	     attr->signaling_vector >= nr_cpu_ids))
		return -EINVAL;
	if (attr->size > KOFI_CQ_SIZE_MAX ||
	    (unsigned int)attr->format > FI_CQ_FORMAT_TAGGED ||
	    (unsigned int)attr->wait_cond > FI_CQ_COND_THRESHOLD)
		return -EINVAL;
	if ((unsigned int)kattr->poll > KOFI_POLL_WORKQUEUE ||
	    kattr->cpu < -1 || kattr->cpu >= (int)nr_cpu_ids)
		return -EINVAL;
	if (kattr->notify && (kattr->done || kattr->poll == KOFI_POLL_DIRECT))
		return -EINVAL;
	if (kattr->done && attr->wait_obj != FI_WAIT_NONE)
		return -EINVAL;
	return kofi_wait_check(attr->wait_obj);
}

/* The provider's part, if it has one */
static int kofi_cq_open_priv(struct kofi_cq *cq, const struct fi_cq_attr *attr,
			     const struct kofi_cq_attr *kattr)
{
	if (!cq->ops)
		return 0;
	cq->priv = kzalloc_node(cq->ops->priv_size, GFP_KERNEL,
				cq->domain->node);
	if (!cq->priv)
		return -ENOMEM;
	return cq->ops->open ? cq->ops->open(cq, attr, kattr) : 0;
}

/**
 * kofi_cq_make - a completion queue with a device behind it
 * @fid_domain: the domain
 * @attr: checked by kofi_cq_open()
 * @kattr: the same
 * @ops: the provider's, or NULL
 * @fid: where the queue goes
 * @context: the consumer's
 *
 * What a provider's fi_ops_domain.cq_open ends in.
 *
 * Context: process, may sleep.
 * Return: 0; -ENOMEM; -EBUSY if the domain is being closed; -FI_EDOMAIN; what
 * kofi_cq_ops.open returns.
 */
int kofi_cq_make(struct fid_domain *fid_domain, const struct fi_cq_attr *attr,
		 const struct kofi_cq_attr *kattr,
		 const struct kofi_cq_ops *ops, struct fid_cq **fid,
		 void *context)
{
	struct kofi_domain *domain =
		container_of(fid_domain, struct kofi_domain, domain);
	u32 size = attr->size ?: KOFI_CQ_SIZE;
	struct kofi_cq *cq;
	int ret;

	cq = kzalloc_node(sizeof(*cq), GFP_KERNEL, domain->node);
	if (!cq)
		return -ENOMEM;
	lockdep_register_key(&cq->key);
	lockdep_init_map(&cq->map, "kofi_cq", &cq->key, 0);
	cq->domain = domain;
	cq->ops = ops;
	cq->poll = kattr->poll;
	cq->cpu = kattr->cpu;
	if (cq->cpu < 0 && attr->flags & FI_AFFINITY)
		cq->cpu = attr->signaling_vector;
	cq->done = kattr->done;
	cq->notify = kattr->notify;
	cq->armed = !!cq->notify;
	cq->format = attr->format;
	cq->wait_obj = attr->wait_obj;
	cq->threshold = attr->wait_cond == FI_CQ_COND_THRESHOLD;
	cq->limit[KOFI_RX] = size;
	cq->limit[KOFI_TX] = size + max(size / 8, 1U);
	cq->slots = cq->limit[KOFI_TX] + 1;
	spin_lock_init(&cq->lock);
	init_waitqueue_head(&cq->flush_wait);
	INIT_LIST_HEAD(&cq->waiting[KOFI_TX]);
	INIT_LIST_HEAD(&cq->waiting[KOFI_RX]);
	init_llist_head(&cq->space);
	init_waitqueue_head(&cq->wait);
	irq_poll_init(&cq->iop, KOFI_CQ_BUDGET_IRQ, kofi_cq_irq_poll);
	INIT_CSD(&cq->csd, kofi_cq_sched_remote, &cq->iop);
	INIT_WORK(&cq->work, kofi_cq_work);

	ret = -ENOMEM;
	cq->ring = kvmalloc_node(array_size(cq->slots, sizeof(*cq->ring)),
				 GFP_KERNEL, domain->node);
	if (!cq->ring)
		goto free;
	ret = kofi_obj_init(&cq->obj, &cq->cq.fid, FI_CLASS_CQ,
			    &kofi_cq_fid_ops, &domain->obj, domain->obj.prov,
			    context);
	if (ret)
		goto free;
	cq->obj.ops = &kofi_cq_obj_ops;
	ret = kofi_wait_join(&cq->link, &cq->cq.fid, attr->wait_obj,
			     attr->wait_set, domain->fabric);
	if (ret)
		goto exit;
	ret = kofi_cq_open_priv(cq, attr, kattr);
	if (ret)
		goto leave;
	kofi_obj_publish(&cq->obj);
	*fid = &cq->cq;
	return 0;

leave:
	kofi_wait_leave(&cq->link);
exit:
	kofi_obj_exit(&cq->obj);
free:
	kofi_cq_free(cq);
	return ret;
}
EXPORT_SYMBOL_GPL(kofi_cq_make);

/**
 * kofi_cq_open - open a completion queue, choosing how it calls its consumer
 * @domain: the domain whose endpoints will report to it
 * @attr: size, the number of operations that may be under way or unread, 0
 *	means 1024; format, UNSPEC means CONTEXT; wait_obj FI_WAIT_NONE,
 *	FI_WAIT_UNSPEC, FI_WAIT_YIELD, KOFI_WAIT_QUEUE, or FI_WAIT_SET with a
 *	set in wait_set; wait_cond; flags FI_AFFINITY for a CPU in
 *	signaling_vector, used if @kattr names none. NULL means all defaults.
 * @kattr: the kernel's side; NULL is what fi_cq_open() has
 * @cq: where the queue goes
 * @context: the consumer's, in fid.context and given to notify
 *
 * fi_cq(3). Transmits may use an eighth more slots than receives, so that
 * receives that stay posted never keep them out.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL; -FI_EBADFLAGS; -ENOSYS for a wait object only user space
 * has; -FI_EDOMAIN for a wait set of another fabric; -EBUSY if @domain or the
 * set is being closed; -ENOMEM; what the provider returns.
 */
int kofi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		 const struct kofi_cq_attr *kattr, struct fid_cq **cq,
		 void *context)
{
	static const struct kofi_cq_attr reads = {
		.poll = KOFI_POLL_WORKQUEUE, .cpu = -1,
	};
	struct fi_cq_attr defaults = {};
	int ret;

	might_sleep();
	if (!domain || domain->fid.fclass != FI_CLASS_DOMAIN || !cq)
		return -EINVAL;
	if (!attr)
		attr = &defaults;
	if (!kattr)
		kattr = &reads;
	ret = kofi_cq_check(attr, kattr);
	if (ret)
		return ret;

	/* An empty slot of the provider's answers -ENOSYS. */
	ret = domain->ops->cq_open(domain, attr, kattr, cq, context);
	if (ret != -ENOSYS)
		return ret;
	return kofi_cq_make(domain, attr, kattr, NULL, cq, context);
}
EXPORT_SYMBOL_GPL(kofi_cq_open);

/**
 * fi_cq_open - open a completion queue that is read
 * @domain: as kofi_cq_open()
 * @attr: as kofi_cq_open()
 * @cq: as kofi_cq_open()
 * @context: the consumer's, in fid.context
 *
 * fi_cq(3). Write-space callbacks of its endpoints run in a work item.
 *
 * Context: process, may sleep.
 * Return: as kofi_cq_open().
 */
int fi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
	       struct fid_cq **cq, void *context)
{
	return kofi_cq_open(domain, attr, NULL, cq, context);
}
EXPORT_SYMBOL_GPL(fi_cq_open);

int kofi_cq_start(void)
{
	kofi_cq_wq = alloc_workqueue("kofi_cq", WQ_MEM_RECLAIM | WQ_HIGHPRI, 0);
	return kofi_cq_wq ? 0 : -ENOMEM;
}

void kofi_cq_stop(void)
{
	destroy_workqueue(kofi_cq_wq);
}

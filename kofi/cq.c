// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: opening and closing, slots, the poller (fi_cq(3), kofi.h).
 *
 * Normal operation
 *
 * The core owns the queue: a ring of completions under one irqsave lock. An
 * operation is accepted only with a slot reserved, so the ring cannot overrun
 * and completing needs no memory. Entries are read (cq_read.c), or each one's
 * kofi_cqe is called, in the context the queue was opened with.
 *
 * The poller
 *
 * Consumers are called by the queue's poller alone, one callback at a time: an
 * irq_poll handler with KOFI_POLL_SOFTIRQ, a work item with
 * KOFI_POLL_WORKQUEUE, kofi_cq_poll() with KOFI_POLL_DIRECT. Bit 0 of active
 * says that one has been asked for, or is running and will look again before
 * it ends. The poller takes a few entries at a time and frees their slots before
 * it calls back, so that callbacks can post again; it takes the lock only to see
 * that nothing is left.
 *
 * Slots
 *
 * They are one number, taken without the lock. An operation that finds it at
 * the limit takes the lock, joins a list, and looks again. Receives may not
 * take the last slots: with all receives posted there would be none to send
 * with.
 *
 * Locks
 *
 * Completing, kicking and waking happen under the lock, and closing takes it:
 * when a consumer that has seen a completion has closed the endpoint, the
 * context that delivered it no longer touches the queue. The locks of two
 * queues are never held together, and locks of receive queues are outside.
 *
 * See "Completion queues" in Documentation/internals.rst for write space,
 * streams that wait for slots, devices, and the close of an endpoint.
 */
#include <linux/cpu.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/kofi/backport.h>

#include "cq.h"
#include "kofi_trace.h"

#define KOFI_CQ_SIZE		1024	/* attr->size 0 */
#define KOFI_CQ_SIZE_MAX	SZ_4M

/* As drivers/infiniband/core/cq.c, for the same reasons. */
#define KOFI_CQ_BUDGET_IRQ	256
#define KOFI_CQ_BUDGET_WORK	65536

static struct workqueue_struct *kofi_cq_wq;

/* The entry at head <= pos <= tail, while head is not moved */
static struct kofi_cq_entry *kofi_cq_entry(struct kofi_cq *cq, u32 pos)
{
	u32 i = cq->first + (pos - cq->head);

	return &cq->ring[i < cq->slots ? i : i - cq->slots];
}

/* --------------------------------------------------- starting the poller */

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

/**
 * kofi_cq_start_poller - ask for a context that calls the consumer
 * @cq: the queue; one that is polled by its consumer needs none
 *
 * Context: any, with interrupts off.
 */
void kofi_cq_start_poller(struct kofi_cq *cq)
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

/**
 * kofi_cq_space - have an endpoint's write-space callback called
 * @ep: the endpoint
 *
 * On its transmit queue, or the receive queue if it does not transmit. The
 * caller holds the lock of a queue of the endpoint; that keeps the endpoint.
 *
 * Return: that queue; NULL if there is no callback, or none any more.
 */
struct kofi_cq *kofi_cq_space(struct kofi_ep *ep)
{
	struct kofi_cq *cq = ep->tx_cq ?: ep->rx_cq;

	if (!ep->write_space || test_bit(KOFI_EP_DRAINED, &ep->blocked))
		return NULL;
	if (!test_and_set_bit(KOFI_EP_SPACE, &ep->blocked)) {
		llist_add(&ep->space_node, &cq->space);
		kofi_cq_kick(cq);
	}
	return cq;
}

/**
 * kofi_cq_wake_waiting - slots have become free: who waits may try again
 * @cq: the queue, with its lock held
 *
 * All streams, which are in front, and as many endpoints as there are slots. An
 * endpoint that is told need not post any more; the slots are looked at again
 * after its callback, and when it is closed before that. So only those count
 * that this queue calls back: the poller of another may be long in coming.
 */
void kofi_cq_wake_waiting(struct kofi_cq *cq)
{
	struct kofi_cq_wait *wait, *next;
	enum kofi_dir dir;
	int n;

	lockdep_assert_held(&cq->lock);

	for (dir = KOFI_TX; dir <= KOFI_RX; dir++) {
		n = cq->limit[dir] - atomic_read(&cq->used);
		list_for_each_entry_safe(wait, next, &cq->waiting[dir], node) {
			if (n <= 0)
				break;
			list_del_init(&wait->node);
			if (wait->wake)
				wait->wake(wait);
			else
				n -= kofi_cq_space(wait->ep) == cq;
		}
	}
}

/* ------------------------------------------------------------------ slots */

/*
 * Wait for a slot, unless one is free after all: the poller, who frees them
 * without the lock, looks at the list afterwards.
 */
static bool kofi_cq_wait_slot(struct kofi_cq *cq, struct kofi_cq_wait *wait,
			      enum kofi_dir dir)
{
	bool added = list_empty(&wait->node);

	lockdep_assert_held(&cq->lock);

	if (added && wait->wake)
		list_add(&wait->node, &cq->waiting[dir]);
	else if (added)
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
 * kofi_cq_reserve - reserve a slot for an operation that has found none
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
 * kofi_cq_reserve_wait - reserve a slot for what a peer has begun
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

static void kofi_cq_unwait(struct kofi_cq *cq, struct kofi_cq_wait *wait)
{
	unsigned long flags;

	if (!cq)
		return;
	spin_lock_irqsave(&cq->lock, flags);
	list_del_init(&wait->node);
	spin_unlock_irqrestore(&cq->lock, flags);
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
	kofi_cq_unwait(ep->rx_cq, wait);
}
EXPORT_SYMBOL_GPL(kofi_cq_wait_cancel);

/**
 * kofi_cq_unreserve - give back a slot that has been reserved
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

/* -------------------------------------------------------------- the poller */

/* An endpoint or a stream waited for a slot when the poller freed one. */
static noinline void kofi_cq_refreed(struct kofi_cq *cq)
{
	spin_lock_irq(&cq->lock);
	kofi_cq_freed(cq);
	spin_unlock_irq(&cq->lock);
}

static bool kofi_cq_defer(struct kofi_cq *cq, struct kofi_poster *poster)
{
	if (!cq || READ_ONCE(cq->deferring) != current)
		return false;
	if (!test_and_set_bit(0, &poster->listed))
		llist_add(&poster->node, &cq->posters);
	return true;
}

/**
 * kofi_ep_defer - may a post wait for others
 * @ep: the endpoint
 *
 * While a softirq calls one callback after the other, what they post is better
 * sent together. A provider asks before it sends. If the answer is yes it queues
 * the post, and its kofi_ep_ops.send_deferred is called when the last of these
 * callbacks has returned; but what that one posts may be sent at once, with all
 * before it. Callbacks in process context may sleep, and nothing waits for them.
 *
 * Context: any but hard interrupts.
 * Return: true if send_deferred will be called.
 */
bool kofi_ep_defer(struct kofi_ep *ep)
{
	/* what interrupts a softirq does not get here, so it is its callback */
	return in_serving_softirq() &&
	       (kofi_cq_defer(ep->tx_cq, &ep->poster[KOFI_TX]) ||
		kofi_cq_defer(ep->rx_cq, &ep->poster[KOFI_RX]));
}
EXPORT_SYMBOL_GPL(kofi_ep_defer);

/* Have the endpoints sent what has been deferred. */
static noinline void kofi_cq_send_deferred(struct kofi_cq *cq)
{
	struct llist_node *node = llist_del_all(&cq->posters);
	struct kofi_poster *poster, *next;

	llist_for_each_entry_safe(poster, next, llist_reverse_order(node),
				  node) {
		/* from here on it can be put on the list again */
		clear_bit_unlock(0, &poster->listed);
		poster->ep->ops->send_deferred(&poster->ep->ep);
	}
}

/* Call back for completions that are there, at most KOFI_CQ_BATCH. */
static int kofi_cq_call(struct kofi_cq *cq, u32 max)
{
	u32 place = cq->first, n, i;
	bool defer;

	/* pairs with kofi_cq_push(): what is behind tail has been written */
	n = min(smp_load_acquire(&cq->tail) - cq->head, max);
	if (!n)
		return 0;
	kofi_cq_pop(cq, n);
	if (kofi_cq_wanted(cq))
		kofi_cq_refreed(cq);
	defer = n > 1 && in_serving_softirq();
	if (defer)
		WRITE_ONCE(cq->deferring, current);
	for (i = 1; i < n; i++) {
		kofi_cq_call_one(cq, &cq->ring[place].wc);
		if (++place == cq->slots)
			place = 0;
	}
	if (defer)
		WRITE_ONCE(cq->deferring, NULL);
	cq->ring[place].wc.cqe->done(&cq->cq, &cq->ring[place].wc);
	/* who closes an endpoint waits for the last callback, and so for this */
	if (unlikely(!llist_empty(&cq->posters)))
		kofi_cq_send_deferred(cq);
	kofi_cq_returned(cq);
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

/* Take an endpoint off the list; it is not added any more. */
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
	kofi_cq_freed(cq);	/* what it was to be told of */
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
	if (ep)
		kofi_cq_freed(cq);	/* what it has left */
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

/* Be the poller of a DIRECT queue, unless there is one, or a close waits. */
static bool kofi_cq_enter_direct(struct kofi_cq *cq)
{
	bool busy;

	spin_lock_irq(&cq->lock);
	busy = cq->poller || cq->flushers;
	if (!busy)
		kofi_cq_enter(cq);
	spin_unlock_irq(&cq->lock);
	return !busy;
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
	int calls;

	if (!kofi_cq_valid(cq) || kcq->poll != KOFI_POLL_DIRECT || budget < 0)
		return -EINVAL;
	if (!kofi_cq_enter_direct(kcq))
		return 0;
	if (kofi_cq_asks(kcq))
		kcq->ops->poll(kcq);
	calls = kofi_cq_run(kcq, budget);
	spin_unlock_irq(&kcq->lock);
	return calls;
}
EXPORT_SYMBOL_GPL(kofi_cq_poll);

/**
 * kofi_cq_ask - take from the device what it has completed
 * @cq: a queue that kofi_cq_asks()
 *
 * It is in the queue then. No consumer is called, and nothing happens while
 * the queue is polled.
 *
 * Context: any with interrupts on.
 */
void kofi_cq_ask(struct kofi_cq *cq)
{
	if (!kofi_cq_enter_direct(cq))
		return;
	cq->ops->poll(cq);
	spin_lock_irq(&cq->lock);
	kofi_cq_leave(cq);
	spin_unlock_irq(&cq->lock);
}

/* ------------------------------------------------------------- for devices */

/**
 * kofi_cq_run_on - report what is there, and end, or have the softirq go on
 * @cq: the queue, whose poller the caller is
 *
 * Context: softirq; no locks are held.
 */
void kofi_cq_run_on(struct kofi_cq *cq)
{
	if (kofi_cq_run(cq, KOFI_CQ_BUDGET_IRQ) < KOFI_CQ_BUDGET_IRQ)
		kofi_cq_stop_poller(cq);
	else
		irq_poll_sched(&cq->iop);
	spin_unlock_irq(&cq->lock);
}

/**
 * kofi_cq_begin - be the poller of a queue while completing operations
 * @cq: the queue, or NULL
 *
 * What is completed until kofi_cq_end() is reported by that call. No queue of
 * the same consumer may be begun in between.
 *
 * Context: softirq.
 * Return: true if kofi_cq_end() must be called; false if the queue does not call
 * back in softirq context, or not on this processor, or another context is, or
 * shall be, the poller, which then reports what the caller completes.
 */
bool kofi_cq_begin(struct kofi_cq *cq)
{
	return kofi_cq_try_begin(cq);
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

/* ------------------------------------------------------ closing an endpoint */

/*
 * Take entries that have been called back out of the ring. The others close up
 * towards the tail, where completions are added meanwhile: no lock is needed
 * before the head can move.
 */
static void kofi_cq_close_gaps(struct kofi_cq *cq, u32 tail)
{
	u32 from = tail, to = tail, n;

	while (from != cq->head) {
		struct kofi_cq_entry *entry = kofi_cq_entry(cq, --from);

		if (!entry->ep)
			continue;
		if (--to != from)
			*kofi_cq_entry(cq, to) = *entry;
	}
	n = to - cq->head;
	spin_lock_irq(&cq->lock);
	kofi_cq_pop(cq, n);
	kofi_cq_freed(cq);
	spin_unlock_irq(&cq->lock);
}

/* Be the poller, and call back for the endpoint's completions alone. */
static void kofi_cq_flush_direct(struct kofi_cq *cq, struct kofi_ep *ep)
{
	u32 pos, tail;

	spin_lock_irq(&cq->lock);
	kofi_cq_space_remove(cq, ep);
	cq->flushers++;
	wait_event_lock_irq(cq->flush_wait, !cq->poller, cq->lock);
	kofi_cq_enter(cq);
	tail = cq->tail;	/* the endpoint adds no more */
	spin_unlock_irq(&cq->lock);

	for (pos = cq->head; cq->done && pos != tail; pos++) {
		struct kofi_cq_entry *entry = kofi_cq_entry(cq, pos);

		if (entry->ep != ep)
			continue;
		entry->wc.cqe->done(&cq->cq, &entry->wc);
		entry->ep = NULL;
		cond_resched();
	}
	if (cq->done)
		kofi_cq_close_gaps(cq, tail);

	spin_lock_irq(&cq->lock);
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
 * About to wait for the poller. For lockdep that is taking the lock a callback
 * holds; with interrupts off, for the reason del_timer_sync() has.
 */
static void kofi_cq_will_wait(struct kofi_cq *cq)
{
	unsigned long flags;

	WARN_ON_ONCE(kofi_cq_calls_caller(cq));
	local_irq_save(flags);
	lock_map_acquire(&cq->map);
	lock_map_release(&cq->map);
	local_irq_restore(flags);
}

/**
 * kofi_cq_claim - keep everybody else from running a queue
 * @cq: a queue opened with KOFI_POLL_DIRECT
 *
 * Until kofi_cq_release(), of the same task, no consumer is called, and
 * kofi_cq_ops.poll is not called but by the caller.
 *
 * Context: process, sleeps; not from a callback of the queue.
 */
void kofi_cq_claim(struct kofi_cq *cq)
{
	might_sleep();
	kofi_cq_will_wait(cq);
	spin_lock_irq(&cq->lock);
	cq->flushers++;
	wait_event_lock_irq(cq->flush_wait, !cq->poller, cq->lock);
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
	kofi_cq_will_wait(cq);
	if (cq->poll == KOFI_POLL_DIRECT)
		kofi_cq_flush_direct(cq, ep);
	else
		kofi_cq_flush_wait(cq, ep);
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

	kofi_cq_will_wait(cq);
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
	reserved -= min(reserved, waiting);	/* the poller may be between */
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

static bool kofi_cq_waits_for_caller(struct kofi_obj *obj)
{
	return kofi_cq_calls_caller(container_of(obj, struct kofi_cq, obj));
}

static const struct kofi_obj_ops kofi_cq_obj_ops = {
	.stats			= kofi_cq_stats,
	.waits_for_caller	= kofi_cq_waits_for_caller,
	.pending		= kofi_cq_pending,
};

/* Does a number with FI_AFFINITY name a CPU */
static bool kofi_cq_check_cpu(u64 flags, int cpu)
{
	return !(flags & FI_AFFINITY) || (cpu >= 0 && cpu < (int)nr_cpu_ids);
}

static int kofi_cq_check(const struct fi_cq_attr *attr,
			 const struct kofi_cq_attr *kattr)
{
	if ((attr->flags | kattr->flags) & ~FI_AFFINITY)
		return -FI_EBADFLAGS;
	if (!kofi_cq_check_cpu(attr->flags, attr->signaling_vector) ||
	    !kofi_cq_check_cpu(kattr->flags, kattr->cpu))
		return -EINVAL;
	if (attr->size > KOFI_CQ_SIZE_MAX ||
	    (unsigned int)attr->format > FI_CQ_FORMAT_TAGGED ||
	    (unsigned int)attr->wait_cond > FI_CQ_COND_THRESHOLD)
		return -EINVAL;
	if ((unsigned int)kattr->poll > KOFI_POLL_WORKQUEUE)
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
 * @kattr: the same; cpu is the one that counts, or -1 for none
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
	cq->done = kattr->done;
	cq->notify = kattr->notify;
	cq->armed = !!cq->notify;
	cq->format = attr->format;
	cq->wait_obj = attr->wait_obj;
	cq->threshold = attr->wait_cond == FI_CQ_COND_THRESHOLD;
	cq->limit[KOFI_RX] = size;
	cq->limit[KOFI_TX] = size + max(size / 8, 1U);
	cq->slots = cq->limit[KOFI_TX] + KOFI_CQ_BATCH;
	spin_lock_init(&cq->lock);
	init_waitqueue_head(&cq->flush_wait);
	INIT_LIST_HEAD(&cq->waiting[KOFI_TX]);
	INIT_LIST_HEAD(&cq->waiting[KOFI_RX]);
	init_llist_head(&cq->space);
	init_llist_head(&cq->posters);
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
 *	signaling_vector, used if @kattr names none. NULL, or zero in all,
 *	means all defaults.
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
	struct kofi_cq_attr own = { .poll = KOFI_POLL_WORKQUEUE };
	struct fi_cq_attr defaults = {};
	int ret;

	might_sleep();
	if (!domain || domain->fid.fclass != FI_CLASS_DOMAIN || !cq)
		return -EINVAL;
	if (!attr)
		attr = &defaults;
	if (kattr)
		own = *kattr;
	ret = kofi_cq_check(attr, &own);
	if (ret)
		return ret;
	if (!(own.flags & FI_AFFINITY))
		own.cpu = attr->flags & FI_AFFINITY ? attr->signaling_vector :
						      -1;

	if (domain->ops->cq_open)
		return domain->ops->cq_open(domain, attr, &own, cq, context);
	return kofi_cq_make(domain, attr, &own, NULL, cq, context);
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
	kofi_cq_wq = alloc_workqueue("kofi_cq", WQ_MEM_RECLAIM |
				     WQ_HIGHPRI | WQ_PERCPU, 0);
	return kofi_cq_wq ? 0 : -ENOMEM;
}

void kofi_cq_stop(void)
{
	destroy_workqueue(kofi_cq_wq);
}

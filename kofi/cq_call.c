// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: callbacks, and waiting for them to finish.
 *
 * The owner
 *
 * Only the owner of a queue calls its consumer, one callback at a time. The owner is an
 * irq_poll handler with KOFI_POLL_SOFTIRQ, a work item with
 * KOFI_POLL_WORKQUEUE, or kofi_cq_poll() with KOFI_POLL_DIRECT. Bit 0 of active
 * is set while one has been scheduled, or is running and will check again before
 * it finishes. The owner takes a few entries at a time and releases their slots before
 * it calls back, so that callbacks can post again; it takes the lock only to check
 * that nothing is left.
 *
 * A softirq in which a device reports owns the queue while it reports, if no other
 * context does and none has been scheduled. It does not set the bit: an entry added to
 * the ring schedules the irq_poll handler as usual, which runs again until it can
 * own the queue. The handler tries once per pass of the softirq, which after a few
 * passes yields the processor (ksoftirqd). It waits for at most one
 * callback of each device that reports, as no report begins while the
 * bit is set.
 *
 * Closing an endpoint
 *
 * The endpoint's entries in the queue are called back before the close continues: the
 * closing task waits for the owner, or owns a queue that its consumer polls.
 */
#include <linux/sched.h>

#include "cq.h"
#include "kofi_trace.h"

/* As drivers/infiniband/core/cq.c, for the same reason */
#define KOFI_CQ_BUDGET_WORK	65536

/* Entry at head <= pos <= tail, while head does not move */
static struct kofi_cq_entry *kofi_cq_entry(struct kofi_cq *cq, u32 pos)
{
	u32 i = cq->own.first + (pos - cq->own.head);

	return &cq->ring[i < cq->slots ? i : i - cq->slots];
}

/* Wake waiters for slots after the owner released some. */
noinline void kofi_cq_refreed(struct kofi_cq *cq)
{
	spin_lock_irq(&cq->lock);
	kofi_cq_freed(cq);
	spin_unlock_irq(&cq->lock);
}

static __always_inline bool kofi_cq_defer(struct kofi_cq *cq,
					  struct kofi_poster *poster)
{
	if (!cq || READ_ONCE(cq->own.deferring) != current)
		return false;
	/* only this context sets the bit */
	if (!test_bit(0, &poster->listed)) {
		set_bit(0, &poster->listed);
		llist_add(&poster->node, &cq->own.posters);
	}
	return true;
}

/**
 * kofi_ep_defer - test whether to defer a post
 * @ep: the endpoint
 *
 * While a softirq calls several callbacks in a row, their posts are better transmitted
 * together. A provider calls this before it transmits. On true the provider queues
 * the post, and its kofi_ep_ops.send_deferred is called when the last of these
 * callbacks has returned. A post of the last callback may be transmitted at once, with
 * all before it. Callbacks in process context may sleep, so their posts are not deferred.
 *
 * Context: any but hard interrupts.
 * Return: true if send_deferred will be called.
 */
bool kofi_ep_defer(struct kofi_ep *ep)
{
	/* hard interrupts do not call this, so a softirq is the callback itself */
	return in_serving_softirq() &&
	       (kofi_cq_defer(ep->tx_cq, &ep->poster[KOFI_TX]) ||
		kofi_cq_defer(ep->rx_cq, &ep->poster[KOFI_RX]));
}
EXPORT_SYMBOL_GPL(kofi_ep_defer);

/* Transmit the deferred posts of all endpoints. */
static noinline void kofi_cq_send_deferred(struct kofi_cq *cq)
{
	struct llist_node *node = llist_del_all(&cq->own.posters);
	struct kofi_poster *poster, *next;

	llist_for_each_entry_safe(poster, next, llist_reverse_order(node),
				  node) {
		/* from here on the endpoint can be listed again */
		clear_bit_unlock(0, &poster->listed);
		poster->ep->ops->send_deferred(&poster->ep->ep);
	}
}

/* Call back for queued completions, at most KOFI_CQ_BATCH. */
static int kofi_cq_call(struct kofi_cq *cq, u32 max)
{
	u32 place, n, i;
	bool defer;

	/*
	 * Pairs with kofi_cq_push(): entries before tail have been written. No lock: the owner
	 * reads a batch while other processors add entries.
	 */
	n = min(smp_load_acquire(&cq->tail) - cq->own.head, max);
	if (!n)
		return 0;
	place = cq->own.first;
	kofi_cq_pop(cq, n);
	if (kofi_cq_wanted(cq))
		kofi_cq_refreed(cq);
	defer = n > 1 && in_serving_softirq();
	if (defer)
		WRITE_ONCE(cq->own.deferring, current);
	for (i = 1; i < n; i++) {
		kofi_cq_call_one(cq, &cq->ring[place].wc);
		if (++place == cq->slots)
			place = 0;
	}
	if (defer)
		WRITE_ONCE(cq->own.deferring, NULL);
	cq->ring[place].wc.cqe->done(&cq->cq, &cq->ring[place].wc);
	/* closing an endpoint waits for its last callback, and so for this */
	if (unlikely(!llist_empty(&cq->own.posters)))
		kofi_cq_send_deferred(cq);
	kofi_cq_returned(cq);
	return n;
}

/* Next endpoint to be called back, in order of their refusals */
static struct kofi_ep *kofi_cq_space_next(struct kofi_cq *cq)
{
	struct kofi_ep *ep;

	if (!cq->space.todo) {
		if (llist_empty(&cq->space.list))
			return NULL;
		cq->space.todo =
			llist_reverse_order(llist_del_all(&cq->space.list));
	}
	ep = llist_entry(cq->space.todo, struct kofi_ep, space.node);
	cq->space.todo = cq->space.todo->next;
	/* From here on the endpoint can be listed again. */
	clear_bit_unlock(KOFI_EP_SPACE, &ep->space.blocked);
	return ep;
}

/* Remove an endpoint from the list, for good. */
static void kofi_cq_space_remove(struct kofi_cq *cq, struct kofi_ep *ep)
{
	struct llist_node **link = &cq->space.todo;

	lockdep_assert_held(&cq->lock);

	while (*link)
		link = &(*link)->next;
	*link = llist_reverse_order(llist_del_all(&cq->space.list));
	for (link = &cq->space.todo; *link; link = &(*link)->next) {
		if (*link == &ep->space.node) {
			*link = ep->space.node.next;
			break;
		}
	}
	kofi_cq_freed(cq);	/* its write space is no longer reported */
}

/* Test whether no callback is due. */
static bool kofi_cq_idle(const struct kofi_cq *cq)
{
	lockdep_assert_held(&cq->lock);

	return !(cq->done && cq->own.head != cq->tail) && !cq->notify_due &&
	       !cq->space.todo && llist_empty(&cq->space.list);
}

/* Call the callbacks for notifications and write space. */
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

	cq->space.ep = ep;
	spin_unlock_irq(&cq->lock);
	if (notify)
		cq->notify(&cq->cq, cq->cq.fid.context);
	if (ep) {
		trace_kofi_ep_write_space(ep);
		ep->space.fn(&ep->ep, ep->ep.fid.context);
	}
	spin_lock_irq(&cq->lock);
	cq->space.ep = NULL;
	if (ep)
		kofi_cq_freed(cq);	/* the entries that remain */
	return notify + !!ep;
}

/*
 * Test whether callbacks caused more completions, and no other waiter exists.
 * Without the lock the result is a hint: the next check takes the lock.
 */
static bool kofi_cq_goes_on(struct kofi_cq *cq)
{
	return cq->done && READ_ONCE(cq->tail) != cq->own.head &&
	       llist_empty(&cq->space.list) && !READ_ONCE(cq->space.todo) &&
	       !READ_ONCE(cq->flushers);
}

/*
 * Call the consumer, at most budget times. On return, with the lock, a smaller number
 * means that nothing was left, and that the next addition kicks.
 */
static int kofi_cq_run(struct kofi_cq *cq, int budget)
	__acquires(&cq->lock)
{
	int calls = 0;

	for (;;) {
		if (cq->done)
			calls += kofi_cq_call(cq, min(budget - calls,
						      KOFI_CQ_BATCH));
		if (calls >= budget || !kofi_cq_goes_on(cq)) {
			spin_lock_irq(&cq->lock);
			if (kofi_cq_idle(cq))
				break;
			calls += kofi_cq_call_others(cq, budget - calls);
			if (cq->flushers)
				wake_up_all(&cq->flush_wait);
			if (calls >= budget)
				break;
			spin_unlock_irq(&cq->lock);
		}
		if (cq->poll == KOFI_POLL_WORKQUEUE)
			cond_resched();
	}
	kofi_cq_leave(cq);
	return calls;
}

int kofi_cq_irq_poll(struct irq_poll *iop, int budget)
{
	struct kofi_cq *cq = container_of(iop, struct kofi_cq, run.iop);
	int calls;

	/* a device is reporting on another processor: try again, see above */
	if (!kofi_cq_try_enter(cq))
		return budget;
	calls = kofi_cq_run(cq, budget);
	if (calls < budget) {
		irq_poll_complete(iop);
		kofi_cq_stop_owner(cq);
	}
	spin_unlock_irq(&cq->lock);
	return calls;
}

void kofi_cq_work(struct work_struct *work)
{
	struct kofi_cq *cq = container_of(work, struct kofi_cq, run.work);

	if (cq->poll == KOFI_POLL_SOFTIRQ) {
		/* PREEMPT_RT; the handler may have ended when this returns */
		local_bh_disable();
		irq_poll_sched(&cq->run.iop);
		local_bh_enable();
		return;
	}
	kofi_cq_enter(cq);
	if (kofi_cq_run(cq, KOFI_CQ_BUDGET_WORK) < KOFI_CQ_BUDGET_WORK)
		kofi_cq_stop_owner(cq);
	else
		kofi_cq_queue_work(cq);
	spin_unlock_irq(&cq->lock);
}

/* Own a DIRECT queue, unless it has an owner, or a close waits. */
static bool kofi_cq_enter_direct(struct kofi_cq *cq)
{
	bool busy;

	spin_lock_irq(&cq->lock);
	busy = cq->own.owner || cq->flushers;
	if (!busy)
		kofi_cq_enter(cq);
	spin_unlock_irq(&cq->lock);
	return !busy;
}

/**
 * kofi_cq_poll - call the consumer of a queue opened with KOFI_POLL_DIRECT
 * @cq: the queue
 * @budget: most callbacks to call
 *
 * Completion and write-space callbacks are called from here, in the caller's
 * context. A concurrent second caller gets 0 at once.
 *
 * Context: any with interrupts enabled; callbacks run in the caller's context.
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
 * kofi_cq_ask - move completions from a device to the queue
 * @cq: a queue for which kofi_cq_asks() is true
 *
 * No consumer is called. Does nothing while the queue is polled.
 *
 * Context: any with interrupts enabled.
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
 * kofi_cq_begin - own a queue while completing operations
 * @cq: the queue, or NULL
 *
 * kofi_cq_end() reports the operations completed since. No other queue of
 * the same consumer may be begun in between.
 *
 * Context: softirq.
 * Return: true if kofi_cq_end() must be called. False if the queue does not call back in
 * softirq context, or not on this processor. Also false if another context owns or will
 * own the queue: it reports the caller's completions.
 */
bool kofi_cq_begin(struct kofi_cq *cq)
{
	if (!kofi_cq_calls_here(cq) ||
	    test_and_set_bit(KOFI_CQ_ACTIVE, &cq->active))
		return false;
	if (!cmpxchg(&cq->own.owner, NULL, current))
		return true;
	irq_poll_sched(&cq->run.iop);
	return false;
}
EXPORT_SYMBOL_GPL(kofi_cq_begin);

/**
 * kofi_cq_end - report the operations completed since kofi_cq_begin()
 * @cq: the queue
 *
 * Calls the consumer. If other contexts keep adding completions, the queue's softirq
 * handler continues.
 *
 * Context: as kofi_cq_begin(); the caller holds no locks.
 */
void kofi_cq_end(struct kofi_cq *cq)
{
	lock_map_acquire_try(&cq->run.map);
	if (kofi_cq_run(cq, KOFI_CQ_BUDGET_IRQ) < KOFI_CQ_BUDGET_IRQ)
		kofi_cq_stop_owner(cq);
	else
		irq_poll_sched(&cq->run.iop);
	spin_unlock_irq(&cq->lock);
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

/* Move an entry, with its address. */
static void kofi_cq_move(struct kofi_cq *cq, u32 from, u32 to)
{
	struct kofi_cq_entry *entry = kofi_cq_entry(cq, to);
	const size_t size = kofi_cq_source_size(cq);

	*entry = *kofi_cq_entry(cq, from);
	if (cq->sources && entry->wc.err == FI_EADDRNOTAVAIL && entry->wc.from)
		entry->wc.from = memcpy(cq->sources + (entry - cq->ring) * size,
					entry->wc.from, size);
}

/*
 * Remove entries that have been called back from the ring. The others move
 * towards the tail, where completions are added concurrently: no lock is needed
 * before the head moves.
 */
static void kofi_cq_close_gaps(struct kofi_cq *cq, u32 tail)
{
	u32 from = tail, to = tail, n;

	while (from != cq->own.head) {
		struct kofi_cq_entry *entry = kofi_cq_entry(cq, --from);

		if (!entry->ep)
			continue;
		if (--to != from)
			kofi_cq_move(cq, from, to);
	}
	n = to - cq->own.head;
	spin_lock_irq(&cq->lock);
	kofi_cq_pop(cq, n);
	kofi_cq_freed(cq);
	spin_unlock_irq(&cq->lock);
}

/* Own the queue, and call back for the endpoint's completions only. */
static void kofi_cq_flush_direct(struct kofi_cq *cq, struct kofi_ep *ep)
{
	u32 pos, tail;

	spin_lock_irq(&cq->lock);
	kofi_cq_space_remove(cq, ep);
	cq->flushers++;
	wait_event_lock_irq(cq->flush_wait, !cq->own.owner, cq->lock);
	kofi_cq_enter(cq);
	tail = cq->tail;	/* the endpoint adds no further entries */
	spin_unlock_irq(&cq->lock);

	for (pos = cq->own.head; cq->done && pos != tail; pos++) {
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
	last = cq->done ? cq->tail : cq->own.returned;
	cq->flushers++;
	wait_event_lock_irq(cq->flush_wait,
			    /* pairs with kofi_cq_returned(), which has no lock */
			    (s32)(smp_load_acquire(&cq->own.returned) - last) >= 0 &&
			    cq->space.ep != ep, cq->lock);
	cq->flushers--;
	spin_unlock_irq(&cq->lock);
}

/*
 * Prepare to wait for the owner. For lockdep this takes the lock that a callback
 * holds; with interrupts off, for the reason in timer_delete_sync().
 */
void kofi_cq_will_wait(struct kofi_cq *cq)
{
	unsigned long flags;

	WARN_ON_ONCE(kofi_cq_calls_caller(cq));
	local_irq_save(flags);
	lock_map_acquire(&cq->run.map);
	lock_map_release(&cq->run.map);
	local_irq_restore(flags);
}

/**
 * kofi_cq_claim - own a queue for a longer time
 * @cq: a queue opened with KOFI_POLL_DIRECT
 *
 * Until kofi_cq_release() by the same task no consumer is called, and only the caller
 * calls kofi_cq_ops.poll.
 *
 * Context: process, sleeps; not from a callback of the queue.
 */
void kofi_cq_claim(struct kofi_cq *cq)
{
	might_sleep();
	kofi_cq_will_wait(cq);
	spin_lock_irq(&cq->lock);
	cq->flushers++;
	wait_event_lock_irq(cq->flush_wait, !cq->own.owner, cq->lock);
	cq->flushers--;
	kofi_cq_enter(cq);
	spin_unlock_irq(&cq->lock);
}
EXPORT_SYMBOL_GPL(kofi_cq_claim);

/**
 * kofi_cq_release - disown a queue after kofi_cq_claim()
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
 * kofi_cq_flush - wait until an endpoint's callbacks have finished
 * @ep: the endpoint, without outstanding operations and further posts
 *
 * The endpoint's remaining completion callbacks of a DIRECT queue run in the
 * caller. Write space is no longer reported. Unread entries stay. May
 * be called more than once.
 *
 * Context: process, sleeps; not from a callback of the endpoint's queues.
 */
void kofi_cq_flush(struct kofi_ep *ep)
{
	might_sleep();
	set_bit(KOFI_EP_DRAINED, &ep->space.blocked);
	/*
	 * Remove the endpoint from all lists from which released slots would move it to
	 * the call-back list; a context that did not see DRAINED has listed it by now.
	 */
	kofi_cq_unwait(ep->tx_cq, &ep->space.wait[KOFI_TX]);
	kofi_cq_unwait(ep->rx_cq, &ep->space.wait[KOFI_RX]);

	if (ep->tx_cq)
		kofi_cq_flush_one(ep->tx_cq, ep);
	if (ep->rx_cq && ep->rx_cq != ep->tx_cq)
		kofi_cq_flush_one(ep->rx_cq, ep);
}

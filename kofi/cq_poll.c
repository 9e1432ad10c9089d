// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: calling consumers back, and waiting until that is over.
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
 * The softirq in which a device reports is the poller meanwhile, if no other
 * context is and none has been asked for. It does not have the bit: what is put into
 * the ring asks for the irq_poll handler as ever, which comes again until it can
 * be the poller. It finds that out once in a pass of the softirq, which after a few
 * passes leaves the processor to others (ksoftirqd), and it has to wait for one
 * callback at most of each device that reports, as no report begins while the
 * bit is set.
 *
 * Closing an endpoint
 *
 * What it has in the queue is called back before the close goes on: the caller
 * waits for the poller, or is the poller of a queue that its consumer polls.
 */
#include <linux/sched.h>

#include "cq.h"
#include "kofi_trace.h"

/* As drivers/infiniband/core/cq.c, for the same reason */
#define KOFI_CQ_BUDGET_WORK	65536

/* The entry at head <= pos <= tail, while head is not moved */
static struct kofi_cq_entry *kofi_cq_entry(struct kofi_cq *cq, u32 pos)
{
	u32 i = cq->first + (pos - cq->head);

	return &cq->ring[i < cq->slots ? i : i - cq->slots];
}

/* An endpoint or a stream waited for a slot when the poller freed one. */
noinline void kofi_cq_refreed(struct kofi_cq *cq)
{
	spin_lock_irq(&cq->lock);
	kofi_cq_freed(cq);
	spin_unlock_irq(&cq->lock);
}

static __always_inline bool kofi_cq_defer(struct kofi_cq *cq,
					  struct kofi_poster *poster)
{
	if (!cq || READ_ONCE(cq->deferring) != current)
		return false;
	/* none but this context sets it */
	if (!test_bit(0, &poster->listed)) {
		set_bit(0, &poster->listed);
		llist_add(&poster->node, &cq->posters);
	}
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
	u32 place, n, i;
	bool defer;

	/* pairs with kofi_cq_push(): what is behind tail has been written */
	n = min(smp_load_acquire(&cq->tail) - cq->head, max);
	if (!n)
		return 0;
	place = cq->first;
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
 * Have callbacks brought more completions, and nothing else that is waited for?
 * Without the lock it is a guess: who is not seen has the lock looked with next.
 */
static bool kofi_cq_goes_on(struct kofi_cq *cq)
{
	return cq->done && READ_ONCE(cq->tail) != cq->head &&
	       llist_empty(&cq->space) && !READ_ONCE(cq->space_todo) &&
	       !READ_ONCE(cq->flushers);
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
	struct kofi_cq *cq = container_of(iop, struct kofi_cq, iop);
	int calls;

	/* on another processor a device is just reporting: look again, see above */
	if (!kofi_cq_try_enter(cq))
		return budget;
	calls = kofi_cq_run(cq, budget);
	if (calls < budget) {
		irq_poll_complete(iop);
		kofi_cq_stop_poller(cq);
	}
	spin_unlock_irq(&cq->lock);
	return calls;
}

void kofi_cq_work(struct work_struct *work)
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
	if (!kofi_cq_calls_here(cq) ||
	    test_and_set_bit(KOFI_CQ_ACTIVE, &cq->active))
		return false;
	if (!cmpxchg(&cq->poller, NULL, current))
		return true;
	irq_poll_sched(&cq->iop);
	return false;
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
	lock_map_acquire_try(&cq->map);
	if (kofi_cq_run(cq, KOFI_CQ_BUDGET_IRQ) < KOFI_CQ_BUDGET_IRQ)
		kofi_cq_stop_poller(cq);
	else
		irq_poll_sched(&cq->iop);
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

/* An entry, with the address beside it */
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
			kofi_cq_move(cq, from, to);
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
void kofi_cq_will_wait(struct kofi_cq *cq)
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

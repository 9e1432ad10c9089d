/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion queues, for the files that work on them: cq.c, cq_poll.c, cq_read.c
 * and complete.c. What an operation and its completion run through is inline.
 */
#ifndef _KOFI_CQ_H
#define _KOFI_CQ_H

#include <linux/atomic.h>
#include <linux/bottom_half.h>
#include <linux/llist.h>
#include <linux/list.h>
#include <linux/irq_poll.h>	/* after list.h, which it needs */
#include <linux/lockdep.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <linux/kofi/lib.h>

#include "internal.h"

#define KOFI_CQ_ACTIVE		0	/* bit of kofi_cq.active */

/* Bits of kofi_ep.blocked */
enum {
	KOFI_EP_BLOCKED,	/* a completion shall wake the consumer */
	KOFI_EP_SPACE,		/* on a queue's list to be called back */
	KOFI_EP_DRAINED,	/* no callback any more */
};

/**
 * struct kofi_cq_entry - a completion in a queue
 * @wc: the completion
 * @ep: done mode: the endpoint it is for
 */
struct kofi_cq_entry {
	struct kofi_wc	wc;
	struct kofi_ep	*ep;
};

#define KOFI_CQ_BATCH	16	/* entries the poller takes at a time */

/* As drivers/infiniband/core/cq.c, for the same reason */
#define KOFI_CQ_BUDGET_IRQ	256

/**
 * struct kofi_cq - a completion queue
 * @cq: what the consumer holds
 * @obj: the core's
 * @domain: its parent
 * @ops: the provider's, or NULL
 * @priv: the provider's part
 * @poll: where it calls its consumer
 * @cpu: on which CPU, or -1
 * @done: done mode
 * @notify: read mode, or NULL
 * @format: layout of what is read
 * @wait_obj: how readers wait
 * @threshold: the condition of a blocking read is a number of entries
 * @limit: how many slots may be in use for one more to be reserved, by enum
 *	kofi_dir
 * @slots: size of @ring; larger than the larger limit by %KOFI_CQ_BATCH, for
 *	entries whose callbacks are being called
 * @ring: the completions
 * @sources: beside each of them room for an address, where an endpoint with
 *	FI_SOURCE_ERR receives; otherwise NULL
 * @source: the address fi_cq_readerr() hands out
 * @taken: slots that have been reserved, counted without end
 * @seen: how many of them had come back, when it was last looked at: as far as
 *	possible this line is that of the posts alone, and theirs this one
 * @head: next entry to be read, counted without end; their slots have come back. This,
 *	@first and @returned are the poller's in done mode, guarded by @lock
 *	otherwise.
 * @first: place of @head in @ring
 * @returned: done mode: entries whose callbacks have returned
 * @deferring: a softirq is calling back, and other callbacks follow: the task it
 *	has interrupted, or NULL. This and @posters are the poller's.
 * @posters: struct kofi_poster: endpoints with posts of these callbacks
 * @poller: task that is calling the consumer, or NULL. Where a device may report,
 *	kofi_cq_try_enter() sets it
 * @reported: completions that did not go through the ring, whose slots have come
 *	back, counted without end; the poller's
 * @reports: the same, for statistics
 * @lock: irqsave, guards the rest
 * @tail: next entry to be filled, as @head
 * @freed: slots that have come back without an entry, counted without end
 * @next: place of @tail in @ring
 * @errors: error entries to be read
 * @armed: the next completion calls @notify
 * @notify_due: @notify is to be called
 * @active: bit 0: a call-back context has been asked for or runs
 * @space_ep: whose write-space callback is running
 * @flushers: tasks that wait for callbacks to end
 * @flush_wait: where they sleep
 * @waiting: endpoints that want slots, by enum kofi_dir
 * @space: endpoints to be called back, added without @lock
 * @space_todo: the same, in order
 * @wait: readers asleep
 * @link: wait set
 * @readers: number of them
 * @signals: fi_cq_signal() calls, to see that there was one meanwhile
 * @signaled: fi_cq_signal() found no reader asleep
 * @key: lockdep: each queue is a class of its own
 * @map: held while the consumer is called
 * @iop: KOFI_POLL_SOFTIRQ
 * @csd: KOFI_POLL_SOFTIRQ on another CPU
 * @work: KOFI_POLL_WORKQUEUE
 * @completions: statistics
 * @failed: of these, errors
 * @again: operations refused for want of a slot
 */
struct kofi_cq {
	struct fid_cq		cq;
	struct kofi_obj		obj;
	struct kofi_domain	*domain;
	const struct kofi_cq_ops *ops;
	void			*priv;
	enum kofi_poll		poll;
	int			cpu;
	bool			done;
	void			(*notify)(struct fid_cq *cq, void *context);
	enum fi_cq_format	format;
	enum fi_wait_obj	wait_obj;
	bool			threshold;
	int			limit[2];
	u32			slots;
	struct kofi_cq_entry	*ring;
	void			*sources;
	u8			source[KOFI_IP_STR_MAX];

	atomic_t		taken ____cacheline_aligned_in_smp;
	u32			seen;

	u32			head ____cacheline_aligned_in_smp;
	u32			first;
	u32			returned;
	struct task_struct	*deferring;
	struct llist_head	posters;
	struct task_struct	*poller;
	u32			reported;
	u64			reports;

	spinlock_t		lock ____cacheline_aligned_in_smp;
	u32			tail;
	u32			freed;
	u32			next;
	u32			errors;
	bool			armed;
	bool			notify_due;
	unsigned long		active;
	struct kofi_ep		*space_ep;
	unsigned int		flushers;
	wait_queue_head_t	flush_wait;
	struct list_head	waiting[2];
	struct llist_head	space;
	struct llist_node	*space_todo;
	wait_queue_head_t	wait;
	struct kofi_wait_link	link;
	unsigned int		readers;
	u32			signals;
	bool			signaled;
	struct lock_class_key	key;
	struct lockdep_map	map;
	struct irq_poll		iop;
	call_single_data_t	csd;
	struct work_struct	work;
	u64			completions;
	u64			failed;
	u64			again;
};

/* Slots that have come back */
static inline u32 kofi_cq_given(const struct kofi_cq *cq)
{
	u32 given = READ_ONCE(cq->freed) + READ_ONCE(cq->reported);

	/* pairs with kofi_cq_pop(): the poller has done with the entries */
	return smp_load_acquire(&cq->head) + given;
}

/* Slots that are filled, or reserved for operations */
static inline int kofi_cq_used(const struct kofi_cq *cq)
{
	u32 given = kofi_cq_given(cq);

	smp_rmb();	/* what was taken includes what has come back */
	return (u32)atomic_read(&cq->taken) - given;
}

/* Are so many slots in use, or more? */
static __always_inline bool kofi_cq_uses(struct kofi_cq *cq, u32 taken, int n)
{
	u32 given;

	/* one that was seen long ago may be beyond what the difference can say */
	if (likely(taken - READ_ONCE(cq->seen) < (u32)n))
		return false;
	given = kofi_cq_given(cq);
	WRITE_ONCE(cq->seen, given);
	return (int)(taken - given) >= n;
}

/* Without the lock: slots that become free are for who comes first. */
static __always_inline bool kofi_cq_take_slot(struct kofi_cq *cq,
					      enum kofi_dir dir)
{
	int taken = atomic_read(&cq->taken);

	do {
		if (unlikely(kofi_cq_uses(cq, taken, cq->limit[dir])))
			return false;
	} while (!atomic_try_cmpxchg(&cq->taken, &taken, taken + 1));
	return true;
}

int kofi_ep_reserve_slow(struct kofi_ep *ep, enum kofi_dir dir);

/* As kofi_ep_tx_try_reserve() and kofi_ep_rx_try_reserve() */
static __always_inline bool kofi_ep_try_reserve(struct kofi_ep *ep,
						enum kofi_dir dir)
{
	struct kofi_cq *cq = kofi_ep_cq(ep, dir);

	if (unlikely(!cq) || !kofi_cq_take_slot(cq, dir))
		return false;
	atomic64_inc(&ep->posts[dir].posts);
	return true;
}

/* As kofi_ep_tx_reserve() and kofi_ep_rx_reserve() */
static __always_inline int kofi_ep_reserve(struct kofi_ep *ep,
					   enum kofi_dir dir)
{
	return kofi_ep_try_reserve(ep, dir) ? 0 : kofi_ep_reserve_slow(ep, dir);
}

struct kofi_rxmsg;
void kofi_ep_recv_done(struct kofi_ep *ep, const struct kofi_rxmsg *rxmsg,
		       void *context, size_t len, u64 op_flags);

int kofi_cq_reserve(struct kofi_cq *cq, struct kofi_ep *ep, enum kofi_dir dir);
int kofi_cq_reserve_wait(struct kofi_cq *cq, struct kofi_cq_wait *wait);
void kofi_cq_unreserve(struct kofi_cq *cq);
void kofi_cq_unwait(struct kofi_cq *cq, struct kofi_cq_wait *wait);
struct kofi_cq *kofi_cq_space(struct kofi_ep *ep);
bool kofi_cq_pending(struct kofi_obj *obj);
void kofi_cq_ask(struct kofi_cq *cq);
int kofi_cq_add_sources(struct kofi_cq *cq);

/* Bytes of a place in kofi_cq.sources */
static inline size_t kofi_cq_source_size(const struct kofi_cq *cq)
{
	return kofi_domain_text(cq->domain) ? KOFI_IP_STR_MAX :
						sizeof(union kofi_ip);
}

static inline struct kofi_cq *kofi_cq(struct fid_cq *cq)
{
	return container_of(cq, struct kofi_cq, cq);
}

static inline bool kofi_cq_valid(const struct fid_cq *cq)
{
	return kofi_fid_class(&cq->fid) == FI_CLASS_CQ;
}

static inline bool kofi_cq_reads(const struct fid_cq *cq)
{
	return kofi_cq_valid(cq) && !container_of(cq, struct kofi_cq, cq)->done;
}

/* Does a device know of completions that are not in the queue until it is asked? */
static inline bool kofi_cq_asks(const struct kofi_cq *cq)
{
	return cq->poll == KOFI_POLL_DIRECT && cq->ops && cq->ops->poll;
}

/* Is the caller a callback of the queue? */
static inline bool kofi_cq_calls_caller(const struct kofi_cq *cq)
{
	return cq && READ_ONCE(cq->poller) == current;
}

static inline u32 kofi_cq_count(const struct kofi_cq *cq)
{
	return cq->tail - READ_ONCE(cq->head);
}

/*
 * Take the next n entries out, which frees their slots, with one barrier for all.
 * As many as %KOFI_CQ_BATCH stay as they are until the next ones are taken, since
 * no more are filled than there are slots to use.
 */
static __always_inline void kofi_cq_pop(struct kofi_cq *cq, u32 n)
{
	cq->first += n;
	if (cq->first >= cq->slots)
		cq->first -= cq->slots;
	/* after the last look at the entries before, see kofi_cq_given() */
	smp_store_release(&cq->head, cq->head + n);
	smp_mb();	/* that, before a look at waiting; see kofi_cq_wait_slot() */
}

/* A ring that begins again where it began stays in the cache. With the lock */
static __always_inline void kofi_cq_rewind(struct kofi_cq *cq)
{
	if (cq->head == cq->tail) {
		cq->first = 0;
		cq->next = 0;
	}
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

/* ------------------------------------------------------------- the poller */

void kofi_cq_start_poller(struct kofi_cq *cq);
void kofi_cq_queue_work(struct kofi_cq *cq);
int kofi_cq_irq_poll(struct irq_poll *iop, int budget);
void kofi_cq_work(struct work_struct *work);
void kofi_cq_refreed(struct kofi_cq *cq);
void kofi_cq_will_wait(struct kofi_cq *cq);

/*
 * Have the poller look at the queue. Called with interrupts off, after what it
 * is to find has been put there, under the lock or with a full barrier.
 */
static __always_inline void kofi_cq_kick(struct kofi_cq *cq)
{
	if (!test_bit(KOFI_CQ_ACTIVE, &cq->active))
		kofi_cq_start_poller(cq);
}

/* Is a slot waited for? */
static __always_inline bool kofi_cq_wanted(const struct kofi_cq *cq)
{
	return unlikely(!list_empty(&cq->waiting[KOFI_TX]) ||
			!list_empty(&cq->waiting[KOFI_RX]));
}

void kofi_cq_wake_waiting(struct kofi_cq *cq);

/* Slots have become free. With the lock */
static __always_inline void kofi_cq_freed(struct kofi_cq *cq)
{
	if (kofi_cq_wanted(cq))
		kofi_cq_wake_waiting(cq);
}

/* A callback has returned. */
static __always_inline void kofi_cq_returned(struct kofi_cq *cq)
{
	/* all it did, before who waits for it goes on */
	smp_store_release(&cq->returned, cq->returned + 1);
}

static __always_inline void kofi_cq_call_one(struct kofi_cq *cq,
					     const struct kofi_wc *wc)
{
	wc->cqe->done(&cq->cq, wc);
	kofi_cq_returned(cq);
}

static __always_inline void kofi_cq_enter(struct kofi_cq *cq)
{
	cq->poller = current;
	lock_map_acquire_try(&cq->map);
}

/*
 * Be the poller, if there is none. Without the lock; a full barrier, so that what
 * earlier pollers have done is seen.
 */
static __always_inline bool kofi_cq_try_enter(struct kofi_cq *cq)
{
	if (cmpxchg(&cq->poller, NULL, current))
		return false;
	lock_map_acquire_try(&cq->map);
	return true;
}

/* Be the poller no longer. Pairs with kofi_cq_try_enter(), which takes no lock */
static __always_inline void kofi_cq_exit(struct kofi_cq *cq)
{
	lock_map_release(&cq->map);
	/* all that the poller has done, before what the next one does */
	smp_store_release(&cq->poller, NULL);
}

/* The same, with the lock, for one who has gone through the ring */
static __always_inline void kofi_cq_leave(struct kofi_cq *cq)
{
	if (cq->done)
		kofi_cq_rewind(cq);
	kofi_cq_exit(cq);
	if (cq->flushers)
		wake_up_all(&cq->flush_wait);
}

/*
 * The poller has found nothing and ends. The llist of write space is not under
 * the lock: who adds to it between the last look and the clearing of the bit
 * does not kick, so look once more.
 */
static __always_inline void kofi_cq_stop_poller(struct kofi_cq *cq)
{
	lockdep_assert_held(&cq->lock);

	clear_bit_unlock(KOFI_CQ_ACTIVE, &cq->active);
	smp_mb__after_atomic();	/* against llist_add() and kofi_cq_kick() */
	if (!llist_empty(&cq->space))
		kofi_cq_kick(cq);
	if (cq->flushers)
		wake_up_all(&cq->flush_wait);
}

/*
 * Does a softirq of this processor call the consumer, and is nothing before that?
 * The bit is set while there may be something in the ring: who puts it there sets
 * it under the lock, and it is cleared under the lock when nothing is left.
 */
static __always_inline bool kofi_cq_calls_here(const struct kofi_cq *cq)
{
	return likely(cq && cq->done && cq->poll == KOFI_POLL_SOFTIRQ &&
		      (cq->cpu < 0 || cq->cpu == raw_smp_processor_id()) &&
		      !test_bit(KOFI_CQ_ACTIVE, &cq->active));
}

#endif /* _KOFI_CQ_H */

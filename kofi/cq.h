/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion queues: internals shared by cq.c, cq_call.c, cq_read.c
 * and complete.c. The fast path of operations and completions is inline.
 */
#ifndef _KOFI_CQ_H
#define _KOFI_CQ_H

#include <linux/atomic.h>
#include <linux/bottom_half.h>
#include <linux/llist.h>
#include <linux/list.h>
#include <linux/irq_poll.h>	/* needs list.h */
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

/* Bits of kofi_ep_space.blocked */
enum {
	KOFI_EP_BLOCKED,	/* the next completion wakes the consumer */
	KOFI_EP_SPACE,		/* on a queue's list of endpoints to call back */
	KOFI_EP_DRAINED,	/* no further callback */
};

/**
 * struct kofi_cq_entry - a completion in a queue
 * @wc: the completion
 * @ep: done mode: endpoint of the operation
 */
struct kofi_cq_entry {
	struct kofi_wc	wc;
	struct kofi_ep	*ep;
};

#define KOFI_CQ_BATCH	16	/* entries that the owner takes at a time */

/* As drivers/infiniband/core/cq.c, for the same reason */
#define KOFI_CQ_BUDGET_IRQ	256

/**
 * struct kofi_cq_own - state that belongs to the owner of a completion queue
 * @head: next entry to be read, free-running; slots before it have been released. In read
 *	mode kofi_cq.lock guards @head and @first
 * @first: index of @head in kofi_cq.ring
 * @returned: done mode: number of entries with finished callbacks
 * @deferring: a softirq is calling back and more callbacks follow: the task that it
 *	interrupted, or NULL. Written by the owner, read without a lock by posts, each of which
 *	compares it with its own task
 * @posters: struct kofi_poster: endpoints with deferred posts
 * @owner: owner of the queue: task that is calling the consumer, or NULL. Where a device
 *	may report, kofi_cq_try_enter() sets it
 * @reported: completions that bypassed the ring and released their slots, free-running;
 *	written by the owner, read without a lock by posts
 * @reports: completions that bypassed the ring, for statistics; written by the owner, which
 *	has no lock
 */
struct kofi_cq_own {
	u32			head;
	u32			first;
	u32			returned;
	struct task_struct	*deferring;
	struct llist_head	posters;
	struct task_struct	*owner;
	u32			reported;
	u64			reports;
};

/**
 * struct kofi_cq_space - waiters for slots, and endpoints to be called back
 * @ep: endpoint with a running write-space callback, under kofi_cq.lock
 * @waiting: waiters for slots, by enum kofi_dir, under kofi_cq.lock
 * @list: endpoints to be called back, added without a lock
 * @todo: endpoints taken from @list, in order; written under kofi_cq.lock, read without it as
 *	a hint (kofi_cq_goes_on())
 */
struct kofi_cq_space {
	struct kofi_ep		*ep;
	struct list_head	waiting[2];
	struct llist_head	list;
	struct llist_node	*todo;
};

/**
 * struct kofi_cq_sleep - readers that wait for completions; under kofi_cq.lock
 * @wait: wait queue of readers
 * @link: wait set
 * @readers: number of tasks in @wait
 * @signals: number of fi_cq_signal() calls; a reader compares it with an earlier value, at
 *	last without the lock, after it has looked for completions under it
 * @signaled: fi_cq_signal() found no reader asleep
 */
struct kofi_cq_sleep {
	wait_queue_head_t	wait;
	struct kofi_wait_link	link;
	unsigned int		readers;
	u32			signals;
	bool			signaled;
};

/**
 * struct kofi_cq_run - context of callbacks
 * @key: lockdep class of this queue
 * @map: lockdep map, held while the consumer is called
 * @iop: KOFI_POLL_SOFTIRQ
 * @csd: KOFI_POLL_SOFTIRQ on another CPU, without CONFIG_PREEMPT_RT
 * @work: KOFI_POLL_WORKQUEUE, and KOFI_POLL_SOFTIRQ on another CPU with CONFIG_PREEMPT_RT
 */
struct kofi_cq_run {
	struct lock_class_key	key;
	struct lockdep_map	map;
	struct irq_poll		iop;
	call_single_data_t	csd;
	struct work_struct	work;
};

/**
 * struct kofi_cq_stats - statistics of a completion queue
 * @completions: number of completions
 * @failed: number of completions with an error
 * @again: number of operations refused because there was no slot
 */
struct kofi_cq_stats {
	u64			completions;
	u64			failed;
	u64			again;
};

/**
 * struct kofi_cq - a completion queue
 * @cq: handle of the consumer
 * @obj: the core's part
 * @domain: parent
 * @ops: operations of the provider, or NULL
 * @priv: the provider's part
 * @poll: context of callbacks
 * @cpu: CPU of callbacks, or -1
 * @done: done mode
 * @notify: read mode: callback, or NULL
 * @format: layout of entries that are read
 * @wait_obj: kind of wait object of readers
 * @threshold: the condition of a blocking read is a number of entries
 * @limit: most slots that may be in use when one more is reserved, by enum
 *	kofi_dir
 * @slots: size of @ring; exceeds the larger limit by %KOFI_CQ_BATCH, for
 *	entries that are being called back
 * @ring: the completions
 * @sources: one address per element of @ring, if an endpoint with
 *	FI_SOURCE_ERR receives; otherwise NULL. Set once, by cmpxchg() without a lock, since
 *	its allocation may sleep
 * @source: address that fi_cq_readerr() returns
 * @taken: free-running counter of reserved slots
 * @seen: last known value of the counter of released slots. Posts read and write this copy
 *	without a lock, so that their cache line and the owner's are rarely shared; an old
 *	value only makes them count again
 * @own: state of the owner
 * @lock: irqsave, guards the members that follow
 * @tail: next entry to be filled, free-running as @head
 * @freed: slots released without an entry, free-running; written under @lock, read
 *	without it by posts
 * @next: index of @tail in @ring
 * @errors: number of error entries to be read
 * @armed: the next completion calls @notify
 * @notify_due: @notify must be called
 * @active: bit 0: a call-back context has been scheduled or runs
 * @flushers: number of tasks that wait for callbacks to finish; written under @lock, read
 *	without it as a hint (kofi_cq_goes_on())
 * @flush_wait: wait queue of these tasks
 * @space: waiters for slots, and endpoints to be called back
 * @sleep: readers that wait
 * @run: context of callbacks
 * @stats: statistics
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

	struct kofi_cq_own	own ____cacheline_aligned_in_smp;

	spinlock_t		lock ____cacheline_aligned_in_smp;
	u32			tail;
	u32			freed;
	u32			next;
	u32			errors;
	bool			armed;
	bool			notify_due;
	unsigned long		active;
	unsigned int		flushers;
	wait_queue_head_t	flush_wait;
	struct kofi_cq_space	space;
	struct kofi_cq_sleep	sleep;
	struct kofi_cq_run	run;
	struct kofi_cq_stats	stats;
};

/* Number of released slots */
static inline u32 kofi_cq_given(const struct kofi_cq *cq)
{
	u32 given = READ_ONCE(cq->freed) + READ_ONCE(cq->own.reported);

	/*
	 * Pairs with kofi_cq_pop(): the owner has finished with the entries. No lock, since each
	 * post counts slots, and posts and the owner run on different processors.
	 */
	return smp_load_acquire(&cq->own.head) + given;
}

/* Number of slots that are filled, or reserved for operations */
static inline int kofi_cq_used(const struct kofi_cq *cq)
{
	u32 given = kofi_cq_given(cq);

	/* slots taken include released slots; no lock, as in kofi_cq_given() */
	smp_rmb();
	return (u32)atomic_read(&cq->taken) - given;
}

/* Test whether at least @n slots are in use. */
static __always_inline bool kofi_cq_uses(struct kofi_cq *cq, u32 taken, int n)
{
	u32 given;

	/* an old copy may be more than half the range of the counter behind */
	if (likely(taken - READ_ONCE(cq->seen) < (u32)n))
		return false;
	given = kofi_cq_given(cq);
	WRITE_ONCE(cq->seen, given);
	return (int)(taken - given) >= n;
}

/* Without the lock: the first caller gets a released slot. */
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

/* Bytes of an element of kofi_cq.sources */
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

/* Test whether completions stay in a device until it is polled. */
static inline bool kofi_cq_asks(const struct kofi_cq *cq)
{
	return cq->poll == KOFI_POLL_DIRECT && cq->ops && cq->ops->poll;
}

/* Test whether the caller is a callback of the queue. */
static inline bool kofi_cq_calls_caller(const struct kofi_cq *cq)
{
	return cq && READ_ONCE(cq->own.owner) == current;
}

static inline u32 kofi_cq_count(const struct kofi_cq *cq)
{
	return cq->tail - READ_ONCE(cq->own.head);
}

/*
 * Remove the next n entries, which releases their slots, with one barrier for all.
 * Up to %KOFI_CQ_BATCH removed entries stay unchanged until the next are removed, since
 * the ring has that many more elements than slots.
 */
static __always_inline void kofi_cq_pop(struct kofi_cq *cq, u32 n)
{
	cq->own.first += n;
	if (cq->own.first >= cq->slots)
		cq->own.first -= cq->slots;
	/* after the last read of the entries before, see kofi_cq_given(). The owner has no lock. */
	smp_store_release(&cq->own.head, cq->own.head + n);
	smp_mb();	/* the release, before the check of waiting; see kofi_cq_wait_slot() */
}

/* An empty ring restarts at its first element, to stay in the cache. With the lock */
static __always_inline void kofi_cq_rewind(struct kofi_cq *cq)
{
	if (cq->own.head == cq->tail) {
		cq->own.first = 0;
		cq->next = 0;
	}
}

/*
 * Take a lock, and disable bottom halves if a softirq scheduled under the lock shall
 * run when they are enabled again, rather than in ksoftirqd. For the lock
 * of a queue, or of a stream that waits for a slot.
 */
static __always_inline bool kofi_cq_lock(struct kofi_cq *cq,
					 unsigned long *flags)
	__acquires(&cq->lock)
{
	bool bh = !in_interrupt() && !irqs_disabled() &&
		  (cq->poll == KOFI_POLL_SOFTIRQ ||
		   !list_empty(&cq->space.waiting[KOFI_TX]));

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

/* ------------------------------------------------------------- the owner */

void kofi_cq_start_owner(struct kofi_cq *cq);
void kofi_cq_queue_work(struct kofi_cq *cq);
int kofi_cq_irq_poll(struct irq_poll *iop, int budget);
void kofi_cq_work(struct work_struct *work);
void kofi_cq_refreed(struct kofi_cq *cq);
void kofi_cq_will_wait(struct kofi_cq *cq);

/*
 * Schedule the call-back context. Called with interrupts off, after the new entry
 * was stored under the lock or with a full barrier.
 */
static __always_inline void kofi_cq_kick(struct kofi_cq *cq)
{
	if (!test_bit(KOFI_CQ_ACTIVE, &cq->active))
		kofi_cq_start_owner(cq);
}

/* Test whether an endpoint waits for a slot. */
static __always_inline bool kofi_cq_wanted(const struct kofi_cq *cq)
{
	return unlikely(!list_empty(&cq->space.waiting[KOFI_TX]) ||
			!list_empty(&cq->space.waiting[KOFI_RX]));
}

void kofi_cq_wake_waiting(struct kofi_cq *cq);

/* Wake waiters after slots were released. With the lock */
static __always_inline void kofi_cq_freed(struct kofi_cq *cq)
{
	if (kofi_cq_wanted(cq))
		kofi_cq_wake_waiting(cq);
}

/* Note that a callback has returned. */
static __always_inline void kofi_cq_returned(struct kofi_cq *cq)
{
	/*
	 * All effects of the callback, before its waiter continues (kofi_cq_flush_wait()). No
	 * lock, since each callback comes here and hardly any has a waiter.
	 */
	smp_store_release(&cq->own.returned, cq->own.returned + 1);
}

static __always_inline void kofi_cq_call_one(struct kofi_cq *cq,
					     const struct kofi_wc *wc)
{
	wc->cqe->done(&cq->cq, wc);
	kofi_cq_returned(cq);
}

static __always_inline void kofi_cq_enter(struct kofi_cq *cq)
{
	cq->own.owner = current;
	lock_map_acquire_try(&cq->run.map);
}

/*
 * Own the queue, if no context does. Without the lock; a full barrier makes the effects of
 * earlier owners visible.
 */
static __always_inline bool kofi_cq_try_enter(struct kofi_cq *cq)
{
	if (cmpxchg(&cq->own.owner, NULL, current))
		return false;
	lock_map_acquire_try(&cq->run.map);
	return true;
}

/* Disown the queue. Pairs with kofi_cq_try_enter(), which takes no lock */
static __always_inline void kofi_cq_exit(struct kofi_cq *cq)
{
	lock_map_release(&cq->run.map);
	/*
	 * Order all effects of this owner before the effects of the next one. No lock: it would
	 * be held while the consumer is called.
	 */
	smp_store_release(&cq->own.owner, NULL);
}

/* Disown the queue after calls from the ring, with the lock */
static __always_inline void kofi_cq_leave(struct kofi_cq *cq)
{
	if (cq->done)
		kofi_cq_rewind(cq);
	kofi_cq_exit(cq);
	if (cq->flushers)
		wake_up_all(&cq->flush_wait);
}

/*
 * Finish a call-back context that found nothing. The llist of write space is not under
 * the lock: an addition between the last check and the clearing of the bit
 * does not kick, so check once more.
 */
static __always_inline void kofi_cq_stop_owner(struct kofi_cq *cq)
{
	lockdep_assert_held(&cq->lock);

	clear_bit_unlock(KOFI_CQ_ACTIVE, &cq->active);
	/* against llist_add() and kofi_cq_kick() by holders of another queue's lock */
	smp_mb__after_atomic();
	if (!llist_empty(&cq->space.list))
		kofi_cq_kick(cq);
	if (cq->flushers)
		wake_up_all(&cq->flush_wait);
}

/*
 * Test whether a softirq of this processor may call the consumer, with nothing before its
 * completion. The bit is set while the ring may have entries: the adder sets
 * it under the lock, and it is cleared under the lock when the ring is empty.
 */
static __always_inline bool kofi_cq_calls_here(const struct kofi_cq *cq)
{
	return likely(cq && cq->done && cq->poll == KOFI_POLL_SOFTIRQ &&
		      (cq->cpu < 0 || cq->cpu == raw_smp_processor_id()) &&
		      !test_bit(KOFI_CQ_ACTIVE, &cq->active));
}

#endif /* _KOFI_CQ_H */

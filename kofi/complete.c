// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completions: from a provider's operations to the queues and counters of their
 * endpoint.
 *
 * Normal operation
 *
 * The provider reserves a slot of the direction's queue when it accepts an
 * operation, and completes the operation when it has finished. Completing takes
 * the queue's lock once: it updates the statistics, and either fills an entry for the
 * consumer or releases the slot, as selective completion and the operation's flags
 * demand.
 *
 * Reporting
 *
 * A provider that is called by its device in softirq context reports instead
 * of completing: if the queue calls back there, and has no other entry to call back
 * for, the provider owns the queue and calls the consumer itself. A success
 * reported like that bypasses the ring and takes no lock: its counters belong to the
 * owner.
 *
 * Refused posts
 *
 * A post that is refused because there is no slot waits in the queue (cq.c). A post that
 * is refused because the provider lacks a resource sets KOFI_EP_BLOCKED and
 * tries once more (kofi_ep_retry()); the next completion finds the bit and schedules the
 * consumer's write-space callback. Therefore an operation releases its resources
 * before it completes.
 */
#include <linux/kernel.h>
#include <linux/preempt.h>
#include <linux/sched.h>

#include <linux/kofi/lib.h>

#include "cq.h"
#include "latency.h"
#include "kofi_trace.h"

/* -------------------------------------------------------------- reservation */

/**
 * kofi_ep_reserve_slow - kofi_ep_reserve() without a free slot, or a queue
 * @ep: the endpoint
 * @dir: direction of the operation
 *
 * Context: any.
 * Return: as kofi_ep_tx_reserve().
 */
int kofi_ep_reserve_slow(struct kofi_ep *ep, enum kofi_dir dir)
{
	struct kofi_cq *cq = kofi_ep_cq(ep, dir);
	int ret = 0;

	if (cq)
		ret = kofi_cq_reserve(cq, ep, dir);
	else if (!kofi_ep_counted(ep, dir))
		return -FI_ENOCQ;
	if (!ret) {
		atomic64_inc(&ep->posts[dir].posts);
	} else {
		atomic64_inc(&ep->posts[dir].again);
		trace_kofi_ep_again(ep);
	}
	return ret;
}

static void kofi_ep_unreserve(struct kofi_ep *ep, enum kofi_dir dir)
{
	struct kofi_cq *cq = kofi_ep_cq(ep, dir);

	if (dir == KOFI_TX && kofi_latency_wanted())
		kofi_latency_refused(ep);
	atomic64_dec(&ep->posts[dir].posts);
	if (cq)
		kofi_cq_unreserve(cq);
}

/* Apart, so that the others cost nothing while nothing is measured */
static noinline int kofi_ep_reserve_timed(struct kofi_ep *ep, void *context)
{
	int ret = kofi_ep_reserve(ep, KOFI_TX);

	if (!ret)
		kofi_latency_posted(ep, context);
	return ret;
}

static noinline bool kofi_ep_try_reserve_timed(struct kofi_ep *ep, void *context)
{
	bool ret = kofi_ep_try_reserve(ep, KOFI_TX);

	if (ret)
		kofi_latency_posted(ep, context);
	return ret;
}

/**
 * kofi_ep_tx_reserve - accept a transmit
 * @ep: the endpoint
 * @context: context that the transmit will complete with
 *
 * Context: any.
 * Return: 0, then one kofi_ep_tx_complete() or kofi_ep_tx_unreserve() must
 * follow; -EAGAIN without a free slot, and the consumer's write-space callback
 * will follow; -FI_ENOCQ; -ESHUTDOWN once the endpoint has been drained.
 */
int kofi_ep_tx_reserve(struct kofi_ep *ep, void *context)
{
	if (kofi_latency_wanted())
		return kofi_ep_reserve_timed(ep, context);
	return kofi_ep_reserve(ep, KOFI_TX);
}
EXPORT_SYMBOL_GPL(kofi_ep_tx_reserve);

/**
 * kofi_ep_rx_reserve - accept a receive
 * @ep: the endpoint
 *
 * Context: any.
 * Return: 0, then one kofi_ep_rx_complete() or kofi_ep_rx_unreserve() must
 * follow; otherwise as kofi_ep_tx_reserve().
 */
int kofi_ep_rx_reserve(struct kofi_ep *ep)
{
	return kofi_ep_reserve(ep, KOFI_RX);
}
EXPORT_SYMBOL_GPL(kofi_ep_rx_reserve);

/**
 * kofi_ep_tx_try_reserve - accept a transmit if there is a free slot
 * @ep: the endpoint
 * @context: context that the transmit will complete with
 *
 * For callers with an alternative to refusing the post: without a free slot no endpoint
 * waits for one, and no write-space callback follows.
 *
 * Context: any; takes no lock.
 * Return: true, as kofi_ep_tx_reserve() returns 0.
 */
bool kofi_ep_tx_try_reserve(struct kofi_ep *ep, void *context)
{
	if (kofi_latency_wanted())
		return kofi_ep_try_reserve_timed(ep, context);
	return kofi_ep_try_reserve(ep, KOFI_TX);
}
EXPORT_SYMBOL_GPL(kofi_ep_tx_try_reserve);

/**
 * kofi_ep_rx_try_reserve - accept a receive if there is a free slot
 * @ep: the endpoint
 *
 * As kofi_ep_tx_try_reserve().
 *
 * Context: any; takes no lock.
 * Return: true, as kofi_ep_rx_reserve() returns 0.
 */
bool kofi_ep_rx_try_reserve(struct kofi_ep *ep)
{
	return kofi_ep_try_reserve(ep, KOFI_RX);
}
EXPORT_SYMBOL_GPL(kofi_ep_rx_try_reserve);

/**
 * kofi_ep_tx_unreserve - release the slot of a transmit that is refused
 * @ep: the endpoint
 *
 * Context: any.
 */
void kofi_ep_tx_unreserve(struct kofi_ep *ep)
{
	kofi_ep_unreserve(ep, KOFI_TX);
}
EXPORT_SYMBOL_GPL(kofi_ep_tx_unreserve);

/**
 * kofi_ep_rx_unreserve - release the slot of a receive that is refused
 * @ep: the endpoint
 *
 * Context: any.
 */
void kofi_ep_rx_unreserve(struct kofi_ep *ep)
{
	kofi_ep_unreserve(ep, KOFI_RX);
}
EXPORT_SYMBOL_GPL(kofi_ep_rx_unreserve);

/**
 * kofi_ep_tx_scarce - test whether more than half of the slots for transmits are in use
 * @ep: an endpoint that has just accepted a transmit
 *
 * An unsignaled operation releases its slot only when a later signaled one has
 * completed. If every operation that is accepted while slots are scarce is signaled,
 * a queue without a free slot gets one back.
 *
 * Context: any.
 * Return: true if the operation must be signaled.
 */
bool kofi_ep_tx_scarce(struct kofi_ep *ep)
{
	struct kofi_cq *cq = ep->tx_cq;

	return cq && kofi_cq_uses(cq, atomic_read(&cq->taken),
				  cq->limit[KOFI_RX] / 2 + 1);
}
EXPORT_SYMBOL_GPL(kofi_ep_tx_scarce);

/* ------------------------------------------------------------ refused posts */

/**
 * kofi_ep_blocked - mark an endpoint before a post is refused with -EAGAIN
 * @ep: the endpoint
 *
 * For posts that lack a resource of the provider. After this call the provider tries to
 * get the resource once more, as in kofi_ep_retry(), or starts a timer that calls
 * kofi_ep_unblock(). Only then it refuses the post.
 *
 * Context: any.
 */
void kofi_ep_blocked(struct kofi_ep *ep)
{
	set_bit(KOFI_EP_BLOCKED, &ep->space.blocked);
	/*
	 * The bit, before the caller's second attempt. No lock is common to this and to the
	 * release: resources are the provider's, and their users take other locks or none.
	 */
	smp_mb__after_atomic();
	atomic64_inc(&ep->posts[KOFI_TX].again);
	trace_kofi_ep_again(ep);
}
EXPORT_SYMBOL_GPL(kofi_ep_blocked);

/**
 * kofi_ep_unblock - schedule the write-space callback if a post has been refused
 * @ep: the endpoint
 *
 * Call it after a resource was released without a completion. Does nothing unless a
 * post has been refused.
 *
 * Context: any. The consumer is not called from inside.
 */
void kofi_ep_unblock(struct kofi_ep *ep)
{
	struct kofi_cq *cq = ep->tx_cq ?: ep->rx_cq;
	unsigned long flags;

	smp_mb();	/* the released resource, before the bit; no lock: see kofi_ep_blocked() */
	if (!test_bit(KOFI_EP_BLOCKED, &ep->space.blocked) ||
	    !test_and_clear_bit(KOFI_EP_BLOCKED, &ep->space.blocked) || !cq)
		return;
	spin_lock_irqsave(&cq->lock, flags);
	kofi_cq_space(ep);
	spin_unlock_irqrestore(&cq->lock, flags);
}
EXPORT_SYMBOL_GPL(kofi_ep_unblock);

/*
 * The post may have held a record while another post was refused for lack of one: wake the
 * consumer. But two posts that lack another resource must not wake each other
 * forever: after -EAGAIN the progress of outstanding operations wakes the consumer.
 */
static int kofi_ep_refuse(struct kofi_ep *ep, enum kofi_dir dir, int err)
{
	kofi_ep_unreserve(ep, dir);
	if (err != -EAGAIN)
		kofi_ep_unblock(ep);
	return err;
}

/**
 * kofi_ep_tx_refuse - refuse a transmit that has a slot
 * @ep: the endpoint
 * @err: reason. -EAGAIN only after kofi_ep_retry() for the missing resource, or after
 *	kofi_ep_blocked() and the start of a timer that calls kofi_ep_unblock()
 *
 * Call it after all other resources of the post have been released. It wakes a post that
 * lacked one of them, unless @err is -EAGAIN. If -EAGAIN may last until a peer acts, the
 * provider calls kofi_ep_unblock() itself, and refuses such posts before they take
 * a record.
 *
 * Context: any.
 * Return: @err.
 */
int kofi_ep_tx_refuse(struct kofi_ep *ep, int err)
{
	return kofi_ep_refuse(ep, KOFI_TX, err);
}
EXPORT_SYMBOL_GPL(kofi_ep_tx_refuse);

/**
 * kofi_ep_rx_refuse - refuse a receive that has a slot
 * @ep: the endpoint
 * @err: reason, as for kofi_ep_tx_refuse()
 *
 * Context: any.
 * Return: @err.
 */
int kofi_ep_rx_refuse(struct kofi_ep *ep, int err)
{
	return kofi_ep_refuse(ep, KOFI_RX, err);
}
EXPORT_SYMBOL_GPL(kofi_ep_rx_refuse);

/**
 * kofi_ep_tx_get_slow - get a record for a transmit, which has failed once, or refuse
 * @ep: the endpoint
 * @free: free records
 * @lock: lock of kofi_freelist_get() for @free
 *
 * Context: as kofi_ep_tx_get().
 * Return: the entry of the record, or an error pointer: -EAGAIN, or an error of
 * kofi_ep_tx_state().
 */
struct llist_node *kofi_ep_tx_get_slow(struct kofi_ep *ep,
				       struct kofi_freelist *free,
				       spinlock_t *lock)
{
	struct llist_node *node;

	/* deferred operations keep their records until they are sent */
	if (ep->ops->send_deferred && !in_hardirq() && !irqs_disabled())
		ep->ops->send_deferred(&ep->ep);
	node = kofi_ep_retry(ep, kofi_freelist_get(free, lock));
	return node ?: ERR_PTR(kofi_ep_tx_refuse(ep, kofi_ep_tx_state(ep) ?:
						     -EAGAIN));
}
EXPORT_SYMBOL_GPL(kofi_ep_tx_get_slow);

/* --------------------------------------------------------------- completing */

/* A message that is peeked at or discarded transfers no bytes. */
static inline u64 kofi_wc_bytes(enum kofi_dir dir, const struct kofi_wc *wc,
				u64 op_flags)
{
	if (dir == KOFI_RX && op_flags & (FI_PEEK | FI_DISCARD))
		return 0;
	return wc->len;
}

/* Count a completion, under the lock that guards @stats, or as the queue's owner. */
static __always_inline void kofi_ep_tally(struct kofi_ep_stats *stats,
					  int err, u64 bytes)
{
	stats->completions++;
	if (unlikely(err))
		stats->errors++;
	else
		stats->bytes += bytes;
}

/*
 * Add a completion to the counters of an endpoint. The slow path gets values instead of a
 * pointer to the completion, so that the completion need not be in memory.
 */
static noinline void kofi_ep_count(struct kofi_ep *ep, enum kofi_dir dir,
				   u64 flags, int err, u64 bytes)
{
	static const struct {
		u64	flag;
		int	cntr;
	} kinds[2][3] = {
		[KOFI_TX] = {
			{ FI_SEND, KOFI_CNTR_SEND },
			{ FI_READ, KOFI_CNTR_READ },
			{ FI_WRITE, KOFI_CNTR_WRITE },
		},
		[KOFI_RX] = {
			{ FI_RECV, KOFI_CNTR_RECV },
			{ FI_REMOTE_READ, KOFI_CNTR_REMOTE_READ },
			{ FI_REMOTE_WRITE, KOFI_CNTR_REMOTE_WRITE },
		},
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(kinds[dir]); i++)
		if (ep->cntr[kinds[dir][i].cntr] &&
		    flags & kinds[dir][i].flag)
			kofi_cntr_done(ep->cntr[kinds[dir][i].cntr], err,
				       bytes);
}

/* Complete an operation of an endpoint without a queue for the direction. */
static noinline void kofi_ep_complete_counted(struct kofi_ep *ep,
					      enum kofi_dir dir, u64 flags,
					      int err, u64 bytes)
{
	unsigned long irq;

	kofi_ep_unblock(ep);
	spin_lock_irqsave(&ep->lock, irq);
	kofi_ep_tally(&ep->stats[dir], err, bytes);
	spin_unlock_irqrestore(&ep->lock, irq);
	kofi_ep_count(ep, dir, flags, err, bytes);
}

/*
 * The consumer gets no length of transmits, and a sender only of messages, if the
 * endpoint reports senders.
 */
static __always_inline void kofi_cq_fill(struct kofi_wc *to,
					 const struct kofi_ep *from,
					 enum kofi_dir dir,
					 const struct kofi_wc *wc,
					 u64 op_flags)
{
	bool src = dir == KOFI_RX && from->info->caps & FI_SOURCE;

	/* by member: the caller's completion may stay in registers */
	to->op_context = wc->op_context;
	to->err = wc->err;
	to->prov_errno = wc->prov_errno;
	to->flags = wc->flags;
	to->len = dir == KOFI_TX ? 0 : wc->len;
	to->olen = wc->olen;
	to->buf = wc->buf;
	to->data = wc->data;
	to->tag = wc->tag;
	to->src = src ? wc->src : FI_ADDR_NOTAVAIL;
	to->inv_key = wc->inv_key;
	if (unlikely(op_flags & KOFI_NO_COMPLETION))
		to->op_context = NULL;	/* an inject has none */
}

/* Notify readers of an entry. */
static void kofi_cq_readable(struct kofi_cq *cq, int err)
{
	cq->errors += !!err;
	if (cq->sleep.readers || (int)cq->wait_obj == KOFI_WAIT_QUEUE)
		wake_up(&cq->sleep.wait);
	kofi_wait_wake(&cq->sleep.link);
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
	cq->stats.completions++;
	cq->stats.failed += !!wc->err;
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
	/* the entry, before the owner reads it without the lock (kofi_cq_call()) */
	smp_store_release(&cq->tail, cq->tail + 1);
	if (cq->done)
		kofi_cq_kick(cq);
	else
		kofi_cq_readable(cq, wc->err);
}

/* Release a reserved slot. With the lock */
static __always_inline void kofi_cq_unused(struct kofi_cq *cq)
{
	WRITE_ONCE(cq->freed, cq->freed + 1);
	kofi_cq_freed(cq);
}

/*
 * Decide whether to report a completion. Queues with callbacks report only completions
 * with a kofi_cqe. Selective queues omit successes without FI_COMPLETION. FI_PEEK is
 * always reported, and so is the last message of a multi-receive, since it returns the
 * buffer to the consumer.
 */
static __always_inline bool kofi_cq_reports(const struct kofi_cq *cq,
					    const struct kofi_ep *ep,
					    enum kofi_dir dir,
					    const struct kofi_wc *wc,
					    u64 op_flags)
{
	bool selective = dir == KOFI_TX ? ep->tx_selective : ep->rx_selective;

	if (op_flags & KOFI_NO_COMPLETION)
		return wc->err && !cq->done;
	if (selective && !wc->err &&
	    !(op_flags & (FI_COMPLETION | FI_PEEK)) &&
	    !(wc->flags & FI_MULTI_RECV))
		return false;
	return !cq->done || wc->cqe;
}

/*
 * Check that a slot is reserved for the completion. Only test kernels check, since the
 * posts count slots on another processor. Entries moved by the owner count in both.
 */
static __always_inline void kofi_cq_assert_reserved(const struct kofi_cq *cq)
{
	u32 given;

	if (!IS_ENABLED(CONFIG_PROVE_LOCKING))
		return;
	given = cq->freed + cq->tail + READ_ONCE(cq->own.reported);
	smp_rmb();	/* entries taken include reported completions; posts have no lock */
	WARN_ON_ONCE((int)((u32)atomic_read(&cq->taken) - given) <= 0);
}

/* Counters. Without the lock */
static __always_inline void kofi_cq_count_ended(struct kofi_ep *ep,
						struct kofi_ep *from,
						enum kofi_dir dir,
						const struct kofi_wc *wc,
						u64 op_flags)
{
	u64 bytes = kofi_wc_bytes(dir, wc, op_flags);

	if (unlikely(ep->counted))
		kofi_ep_count(ep, dir, wc->flags, wc->err, bytes);
	if (unlikely(from != ep && from->counted))
		kofi_ep_count(from, dir, wc->flags, wc->err, bytes);
}

/* Statistics. The lock has just been taken. */
static __always_inline void kofi_cq_tally(struct kofi_cq *cq,
					  struct kofi_ep *ep,
					  struct kofi_ep *from,
					  enum kofi_dir dir,
					  const struct kofi_wc *wc,
					  u64 op_flags)
{
	u64 bytes = kofi_wc_bytes(dir, wc, op_flags);

	/*
	 * The operation has released its resources before; a post that did
	 * not get them has set KOFI_EP_BLOCKED before its second attempt, without this lock.
	 */
	smp_mb__after_spinlock();
	kofi_cq_assert_reserved(cq);
	kofi_ep_tally(&ep->stats[dir], wc->err, bytes);
	if (unlikely(from != ep))
		kofi_ep_tally(&from->stats[dir], wc->err, bytes);
}

/* Test whether a post has been refused for lack of a resource. With the lock */
static __always_inline void kofi_cq_unblock(struct kofi_ep *ep)
{
	if (unlikely(test_bit(KOFI_EP_BLOCKED, &ep->space.blocked)) &&
	    test_and_clear_bit(KOFI_EP_BLOCKED, &ep->space.blocked))
		kofi_cq_space(ep);
}

/* The part of a completion under the lock */
static __always_inline void kofi_cq_finish(struct kofi_cq *cq,
					   struct kofi_ep *ep,
					   struct kofi_ep *from,
					   enum kofi_dir dir,
					   const struct kofi_wc *wc,
					   u64 op_flags)
{
	kofi_cq_tally(cq, ep, from, dir, wc, op_flags);
	if (likely(kofi_cq_reports(cq, ep, dir, wc, op_flags)))
		kofi_cq_push(cq, ep, from, dir, wc, op_flags);
	else
		kofi_cq_unused(cq);
	kofi_cq_unblock(ep);
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

	if (dir == KOFI_TX && kofi_latency_wanted())
		kofi_latency_completed(ep, wc->op_context);
	if (unlikely(!cq)) {
		kofi_ep_complete_counted(ep, dir, wc->flags, wc->err,
					 kofi_wc_bytes(dir, wc, op_flags));
		return;
	}
	kofi_cq_count_ended(ep, from, dir, wc, op_flags);
	bh = kofi_cq_lock(cq, &flags);
	kofi_cq_finish(cq, ep, from, dir, wc, op_flags);
	kofi_cq_unlock(cq, flags, bh);
}

/**
 * kofi_ep_tx_complete - complete a transmit
 * @ep: the endpoint
 * @wc: completion; len is the length of the message. Copied.
 * @op_flags: flags the operation was posted with
 *
 * Counts the operation, and reports it unless it is a success without a requested
 * completion. The operation must have released the provider's resources, and the
 * provider must not use the operation afterwards: as soon as the completion is queued, the
 * consumer may act on it.
 *
 * Context: any. The consumer is not called from inside.
 */
void kofi_ep_tx_complete(struct kofi_ep *ep, const struct kofi_wc *wc,
			 u64 op_flags)
{
	kofi_cq_complete(ep, ep, KOFI_TX, wc, op_flags);
}
EXPORT_SYMBOL_GPL(kofi_ep_tx_complete);

/**
 * kofi_ep_tx_done - complete a successful transmit
 * @ep: the endpoint
 * @context: context of the post
 * @flags: completion flags: FI_SEND, FI_MSG, ...
 * @len: length of the message
 * @op_flags: flags the operation was posted with
 *
 * kofi_ep_tx_complete() of a completion with no other members set.
 *
 * Context: any. The consumer is not called from inside.
 */
void kofi_ep_tx_done(struct kofi_ep *ep, void *context, u64 flags, size_t len,
		     u64 op_flags)
{
	const struct kofi_wc wc = {
		.op_context = context,
		.err = 0,
		.prov_errno = 0,
		.flags = flags,
		.len = len,
		.olen = 0,
		.buf = NULL,
		.data = 0,
		.tag = 0,
		.src = FI_ADDR_NOTAVAIL,
		.inv_key = 0,
	};

	kofi_cq_complete(ep, ep, KOFI_TX, &wc, op_flags);
}
EXPORT_SYMBOL_GPL(kofi_ep_tx_done);

/* Store the address of a sender for the next entry. With the lock */
static const void *kofi_cq_keep_source(struct kofi_cq *cq,
				       const struct sockaddr *addr)
{
	const size_t size = kofi_cq_source_size(cq);
	void *place = cq->sources + cq->next * size;

	if (kofi_domain_text(cq->domain))
		kofi_ip_print(addr, place, size);
	else
		memcpy(place, addr, kofi_ip_len(addr));
	return place;
}

/*
 * Complete a receive from an unknown sender, with the sender's address. The receive counts
 * as a success; only its completion, if it is reported, is an error.
 */
static noinline void kofi_ep_recv_unknown(struct kofi_ep *ep,
					  struct kofi_ep *from,
					  const struct kofi_wc *wc,
					  u64 op_flags)
{
	struct kofi_cq *cq = ep->rx_cq;
	struct kofi_wc done = *wc, report = *wc;
	unsigned long flags;
	bool bh;

	done.err = 0;
	if (!cq) {
		kofi_ep_complete_counted(ep, KOFI_RX, done.flags, 0,
					 done.len);
		return;
	}
	kofi_cq_count_ended(ep, from, KOFI_RX, &done, op_flags);
	bh = kofi_cq_lock(cq, &flags);
	kofi_cq_tally(cq, ep, from, KOFI_RX, &done, op_flags);
	if (kofi_cq_reports(cq, ep, KOFI_RX, &done, op_flags)) {
		report.from = kofi_cq_keep_source(cq, wc->from);
		kofi_cq_push(cq, ep, from, KOFI_RX, &report, op_flags);
	} else {
		kofi_cq_unused(cq);
	}
	kofi_cq_unblock(ep);
	kofi_cq_unlock(cq, flags, bh);
}

/**
 * kofi_ep_rx_complete - complete a receive of an endpoint or a shared context
 * @ep: endpoint or context that the receive was posted to
 * @from: endpoint that received the message; @ep without a shared context, or without a
 *	message
 * @wc: completion, copied. With FI_EADDRNOTAVAIL it is a success from the address in from,
 *	a struct sockaddr, of an endpoint with FI_SOURCE_ERR.
 * @op_flags: flags the operation was posted with
 *
 * Context: any. The consumer is not called from inside.
 */
void kofi_ep_rx_complete(struct kofi_ep *ep, struct kofi_ep *from,
			 const struct kofi_wc *wc, u64 op_flags)
{
	if (unlikely(wc->err == FI_EADDRNOTAVAIL && wc->from))
		kofi_ep_recv_unknown(ep, from, wc, op_flags);
	else
		kofi_cq_complete(ep, from, KOFI_RX, wc, op_flags);
}
EXPORT_SYMBOL_GPL(kofi_ep_rx_complete);

/* Completion of a receive that got @len bytes of a message */
static __always_inline struct kofi_wc
kofi_rxmsg_wc(const struct kofi_rxmsg *rxmsg, void *context, size_t len)
{
	return (struct kofi_wc) {
		.op_context = context,
		.err = len < rxmsg->len ? FI_ETRUNC : 0,
		.prov_errno = 0,
		.flags = FI_RECV | (rxmsg->tagged ? FI_TAGGED : FI_MSG) |
			 rxmsg->flags,
		.len = len,
		.olen = rxmsg->len - len,
		.buf = NULL,
		.data = rxmsg->data,
		.tag = rxmsg->tag,
		.src = rxmsg->src,
		.inv_key = 0,
	};
}

static noinline void kofi_ep_recv_done_counted(struct kofi_ep *ep,
					       const struct kofi_rxmsg *rxmsg,
					       void *context, size_t len,
					       u64 op_flags)
{
	struct kofi_wc wc = kofi_rxmsg_wc(rxmsg, context, len);

	kofi_ep_rx_complete(ep, rxmsg->ep, &wc, op_flags);
}

/**
 * kofi_ep_recv_done - complete a successful receive of an endpoint or a shared context
 * @ep: endpoint or context that the receive was posted to
 * @rxmsg: the message
 * @context: context of the post
 * @len: bytes of the message that were received
 * @op_flags: flags the receive was posted with
 *
 * Context: any. The consumer is not called from inside.
 */
void kofi_ep_recv_done(struct kofi_ep *ep, const struct kofi_rxmsg *rxmsg,
		       void *context, size_t len, u64 op_flags)
{
	struct kofi_cq *cq = ep->rx_cq;
	unsigned long flags;
	struct kofi_wc wc;
	bool bh;

	if (unlikely(!cq || ep->counted || rxmsg->ep->counted)) {
		kofi_ep_recv_done_counted(ep, rxmsg, context, len, op_flags);
		return;
	}
	bh = kofi_cq_lock(cq, &flags);
	/* inside the lock, since registers would be saved before it */
	wc = kofi_rxmsg_wc(rxmsg, context, len);
	kofi_cq_finish(cq, ep, rxmsg->ep, KOFI_RX, &wc, op_flags);
	kofi_cq_unlock(cq, flags, bh);
}

/* ---------------------------------------------------------------- reporting */

/*
 * Own a queue that calls back in softirq context. A success
 * that is reported while the ring is empty bypasses the ring and
 * needs no lock, since it changes nothing that the lock guards.
 */
static __always_inline bool kofi_cq_report(struct kofi_ep *ep,
					   struct kofi_ep *from,
					   enum kofi_dir dir,
					   struct kofi_wc *wc, u64 op_flags)
{
	struct kofi_cq *cq = kofi_ep_cq(ep, dir);

	if (!kofi_cq_calls_here(cq) || unlikely(wc->err) ||
	    unlikely(!kofi_cq_reports(cq, ep, dir, wc, op_flags)) ||
	    unlikely(!kofi_cq_try_enter(cq)))
		return false;
	if (dir == KOFI_TX && kofi_latency_wanted())
		kofi_latency_completed(ep, wc->op_context);
	kofi_cq_count_ended(ep, from, dir, wc, op_flags);
	kofi_ep_tally(&ep->reported[dir], 0, wc->len);
	if (unlikely(from != ep))
		kofi_ep_tally(&from->reported[dir], 0, wc->len);
	kofi_cq_fill(wc, from, dir, wc, op_flags);
	kofi_cq_assert_reserved(cq);
	WRITE_ONCE(cq->own.reported, cq->own.reported + 1);
	cq->own.reports++;
	trace_kofi_cq_complete(cq, ep, wc);
	/*
	 * The slot and the operation's resources have been released before this check for
	 * waiters: kofi_cq_wait_slot() and kofi_ep_blocked() set their marks
	 * before their second attempt. Reports take no lock unless they find a waiter.
	 */
	smp_mb();
	if (kofi_cq_wanted(cq))
		kofi_cq_refreed(cq);
	if (unlikely(test_bit(KOFI_EP_BLOCKED, &ep->space.blocked)))
		kofi_ep_unblock(ep);

	wc->cqe->done(&cq->cq, wc);
	/* the handler has been scheduled for entries added to the ring since */
	kofi_cq_exit(cq);
	return true;
}

/**
 * kofi_ep_tx_report - kofi_ep_tx_complete() that may call the consumer
 * @ep: the endpoint
 * @wc: as for kofi_ep_tx_complete(), but not copied: the members that the consumer gets
 *	are filled in here
 * @op_flags: as for kofi_ep_tx_complete()
 *
 * If the endpoint's queue calls back in softirq context, the consumer may be
 * called from inside, but not between kofi_cq_begin() and kofi_cq_end(). The provider
 * reports ordered completions of an endpoint one after the other, and its
 * drain (kofi_ep_ops) waits until this has returned.
 *
 * Context: softirq, or any if the queue does not call back there. The caller
 * holds no locks.
 */
void kofi_ep_tx_report(struct kofi_ep *ep, struct kofi_wc *wc, u64 op_flags)
{
	if (!kofi_cq_report(ep, ep, KOFI_TX, wc, op_flags))
		kofi_ep_tx_complete(ep, wc, op_flags);
}
EXPORT_SYMBOL_GPL(kofi_ep_tx_report);

/**
 * kofi_ep_rx_report - kofi_ep_rx_complete() that may call the consumer
 * @ep: endpoint or context that the receive was posted to
 * @from: endpoint that received the message; @ep without a shared context, or without a
 *	message
 * @wc: as for kofi_ep_tx_report()
 * @op_flags: flags the operation was posted with
 *
 * Context: as kofi_ep_tx_report().
 */
void kofi_ep_rx_report(struct kofi_ep *ep, struct kofi_ep *from,
		       struct kofi_wc *wc, u64 op_flags)
{
	if (!kofi_cq_report(ep, from, KOFI_RX, wc, op_flags))
		kofi_ep_rx_complete(ep, from, wc, op_flags);
}
EXPORT_SYMBOL_GPL(kofi_ep_rx_report);

/* ---------------------------------------------------------- remote accesses */

/* The queue that reports a remote access */
static struct kofi_cq *kofi_ep_remote_cq(const struct kofi_ep *ep)
{
	return ep->above ? ep->above->rx_cq : ep->rx_cq;
}

/**
 * kofi_ep_remote_to - report remote accesses to another endpoint
 * @below: an endpoint of the provider below that has not been enabled
 * @ep: the endpoint above, which is enabled first and closed last
 * @fill: converts reports for @ep
 *
 * Accesses are counted and reported by @ep, in slots of its queue: without a free slot the
 * stream of @below waits.
 *
 * Context: process, may sleep.
 * Return: 0; -EOPNOTSUPP if the provider below is not notified of accesses;
 * -FI_EOPBADSTATE once @below has been enabled.
 */
int kofi_ep_remote_to(struct fid_ep *below, struct kofi_ep *ep,
		      kofi_remote_fill fill)
{
	struct kofi_ep *kep = kofi_ep(below);
	int ret = 0;

	might_sleep();
	if (!kep->domain->mr_ops->counted)
		return -EOPNOTSUPP;
	mutex_lock(&kep->config);
	if (READ_ONCE(kep->state) == KOFI_EP_IDLE) {
		kep->above = ep;
		kep->above_fill = fill;
	} else {
		ret = -FI_EOPBADSTATE;
	}
	mutex_unlock(&kep->config);
	return ret;
}
EXPORT_SYMBOL_GPL(kofi_ep_remote_to);

/**
 * kofi_ep_remote_reserve - reserve a slot for a remote access that has begun
 * @ep: the accessed endpoint, or a shared receive context
 * @wait: waiter for a slot
 *
 * Context: any.
 * Return: 0, then one kofi_ep_remote_complete() with FI_REMOTE_CQ_DATA or
 * FI_RMA_EVENT, or kofi_ep_remote_unreserve(), must follow; -EAGAIN without a free slot:
 * @wait->wake is called when another attempt may succeed, unless
 * kofi_ep_remote_cancel() comes first.
 */
int kofi_ep_remote_reserve(struct kofi_ep *ep, struct kofi_cq_wait *wait)
{
	struct kofi_cq *cq = kofi_ep_remote_cq(ep);

	return cq ? kofi_cq_reserve_wait(cq, wait) : 0;
}
EXPORT_SYMBOL_GPL(kofi_ep_remote_reserve);

/**
 * kofi_ep_remote_unreserve - release the slot of an incomplete remote access
 * @ep: the endpoint
 *
 * Context: any.
 */
void kofi_ep_remote_unreserve(struct kofi_ep *ep)
{
	struct kofi_cq *cq = kofi_ep_remote_cq(ep);

	if (cq)
		kofi_cq_unreserve(cq);
}
EXPORT_SYMBOL_GPL(kofi_ep_remote_unreserve);

/**
 * kofi_ep_remote_cancel - stop waiting for a slot for a remote access
 * @ep: the endpoint
 * @wait: waiter, not called after the return; may be inactive
 *
 * Context: any.
 */
void kofi_ep_remote_cancel(struct kofi_ep *ep, struct kofi_cq_wait *wait)
{
	kofi_cq_unwait(kofi_ep_remote_cq(ep), wait);
}
EXPORT_SYMBOL_GPL(kofi_ep_remote_cancel);

/**
 * kofi_ep_remote_complete - count and report a complete remote access
 * @ep: the accessed endpoint
 * @wc: the access: FI_REMOTE_READ or FI_REMOTE_WRITE, the bytes, and with
 *	FI_REMOTE_CQ_DATA its value. FI_RMA_EVENT is set if a region demands
 *	events. The region, if known. The peer's address in from if
 *	kofi_ep_unknown() returns true, otherwise NULL. Copied. The context is filled in
 *	here: the region's context, if the queue is read.
 *
 * An access with a value or an event is reported in its reserved slot, whether the queue
 * is selective or not; on a queue that calls
 * back, to the kofi_cqe of kofi_ep_remote_cqe(). The completion does not contain
 * FI_RMA_EVENT.
 *
 * Context: any. The consumer is not called from inside.
 */
void kofi_ep_remote_complete(struct kofi_ep *ep, const struct kofi_wc *wc)
{
	struct kofi_cq *cq = ep->rx_cq;
	struct kofi_wc report;

	if (unlikely(ep->above)) {
		report = *wc;
		if (ep->above_fill(&ep->ep, &report))
			kofi_ep_remote_complete(ep->above, &report);
		return;
	}
	if (!(wc->flags & (FI_REMOTE_CQ_DATA | FI_RMA_EVENT)) || !cq) {
		if (ep->counted)
			kofi_ep_count(ep, KOFI_RX, wc->flags, wc->err,
				      wc->len);
		return;
	}
	report = *wc;
	report.flags &= ~FI_RMA_EVENT;
	if (cq->done) {
		report.cqe = ep->remote_cqe;
	} else {
		report.op_context = wc->mr_context;
		report.buf = NULL;
	}
	if (unlikely(wc->from))
		report.err = FI_EADDRNOTAVAIL;
	kofi_ep_rx_complete(ep, ep, &report, FI_COMPLETION);
}
EXPORT_SYMBOL_GPL(kofi_ep_remote_complete);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Posted receives, for the files that work on them: rxq*.c. */
#ifndef _KOFI_RXQ_H
#define _KOFI_RXQ_H

#include <linux/bottom_half.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>

#include <linux/kofi/lib.h>

int kofi_rxq_init_lists(struct kofi_rxq *q, size_t size);
void kofi_rxq_exit_lists(struct kofi_rxq *q);
void kofi_rxq_link(struct kofi_rxq *q, struct kofi_rxop *op);
struct kofi_rxop *kofi_rxq_oldest_of(struct kofi_rxq *q,
				     const struct kofi_rxmsg *rxmsg);
struct kofi_rxop *kofi_rxq_oldest_any(struct kofi_rxq *q);
struct kofi_rxop *kofi_rxq_search(struct kofi_rxq *q, const void *context);
void kofi_rxmsg_wake(struct kofi_rxmsg *rxmsg);
void kofi_rxmsg_give(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg,
		     struct kofi_rxop *op);
int kofi_rxq_part(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg,
		  struct kofi_rxop *multi, bool turn);
void kofi_rxq_offer(struct kofi_rxq *q, struct kofi_rxop *op);
void kofi_rxq_expire(struct timer_list *timer);

/*
 * Take the lock, where a message may be woken. Without the lock, a waiting message is only
 * a guess: if it is wrong, ksoftirqd runs the stream.
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

static inline bool kofi_rxop_multi(const struct kofi_rxop *op)
{
	return op->flags & FI_MULTI_RECV;
}

/* Address of a message's part of a multi-receive */
static inline struct kofi_rxop *kofi_rxmsg_part(struct kofi_rxmsg *rxmsg)
{
	return (struct kofi_rxop *)rxmsg->part;
}

/* A message begins to wait: arm the timer that discards it. */
static inline void kofi_rxq_watch(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg)
{
	size_t ms = rxmsg->ep->unexpected_timeout;

	if (likely(!ms))
		return;
	rxmsg->expires = jiffies + msecs_to_jiffies(ms);
	timer_reduce(&q->expire, rxmsg->expires);
}

/* Would it take any receive that matches */
static inline bool kofi_rxmsg_open(const struct kofi_rxmsg *rxmsg)
{
	return !rxmsg->claimed && !rxmsg->slot;
}

static inline bool kofi_rxmsg_fits(const struct kofi_rxmsg *rxmsg, u64 tag,
				   u64 ignore, fi_addr_t src)
{
	return !((tag ^ rxmsg->tag) & ~ignore) &&
	       (src == FI_ADDR_UNSPEC || src == rxmsg->src);
}

/* Test whether a message matches a receive */
static inline bool kofi_rxop_fits(const struct kofi_rxop *op,
				  const struct kofi_rxmsg *rxmsg)
{
	return op->tagged == rxmsg->tagged &&
	       kofi_rxmsg_fits(rxmsg, op->tagged ? op->tag : 0,
			       op->tagged ? op->ignore : ~0ULL, op->src);
}

/* An untagged one for any sender: any untagged message fits it */
static __always_inline bool kofi_rxop_plain(const struct kofi_rxop *op)
{
	return !op->tagged && op->src == FI_ADDR_UNSPEC;
}

/* kofi_rxq_link() of a receive that is being posted: it becomes the last of its list */
static __always_inline void kofi_rxq_link_newest(struct kofi_rxq *q,
						 struct kofi_rxop *op)
{
	if (likely(kofi_rxop_plain(op) && !q->contexts))
		list_add_tail(&op->node, &q->plain);
	else
		kofi_rxq_link(q, op);
}

/**
 * kofi_rxq_oldest - find the receive for a message
 * @q: the queue
 * @rxmsg: the message
 *
 * Context: any, with the queue's lock.
 * Return: the oldest posted receive that the message fits, or NULL.
 */
static __always_inline struct kofi_rxop *
kofi_rxq_oldest(struct kofi_rxq *q, const struct kofi_rxmsg *rxmsg)
{
	lockdep_assert_held(&q->lock);

	if (rxmsg->tagged || q->directed)
		return kofi_rxq_oldest_of(q, rxmsg);
	return list_first_entry_or_null(&q->plain, struct kofi_rxop, node);
}

/**
 * kofi_rxq_unlink - make a posted receive one that is not
 * @q: the queue
 * @op: the receive
 *
 * Context: any, with the queue's lock.
 */
static __always_inline void kofi_rxq_unlink(struct kofi_rxq *q,
					    struct kofi_rxop *op)
{
	list_del(&op->node);
	if (!kofi_rxop_plain(op))
		list_del(&op->age);
	if (q->contexts)
		list_del(&op->same);
}

#endif /* _KOFI_RXQ_H */

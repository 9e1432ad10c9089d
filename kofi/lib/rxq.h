/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Posted receives, for the files that work on them: rxq*.c. */
#ifndef _KOFI_RXQ_H
#define _KOFI_RXQ_H

#include <linux/kofi/lib.h>

int kofi_rxq_init_lists(struct kofi_rxq *q, size_t size);
void kofi_rxq_exit_lists(struct kofi_rxq *q);
void kofi_rxq_link(struct kofi_rxq *q, struct kofi_rxop *op);
void kofi_rxq_unlink(struct kofi_rxop *op);
struct kofi_rxop *kofi_rxq_oldest(struct kofi_rxq *q,
				  const struct kofi_rxmsg *rxmsg);
struct kofi_rxop *kofi_rxq_search(struct kofi_rxq *q, const void *context);
void kofi_rxmsg_wake(struct kofi_rxmsg *rxmsg);
void kofi_rxq_expire(struct timer_list *timer);

/* A message begins to wait: look at it again when it has done so for long enough. */
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

/* Is the message one the receive is for */
static inline bool kofi_rxop_fits(const struct kofi_rxop *op,
				  const struct kofi_rxmsg *rxmsg)
{
	return op->tagged == rxmsg->tagged &&
	       kofi_rxmsg_fits(rxmsg, op->tag, op->ignore, op->src);
}

#endif /* _KOFI_RXQ_H */

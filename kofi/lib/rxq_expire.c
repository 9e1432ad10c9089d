// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Unexpected messages that have waited too long (KOFI_OPT_UNEXPECTED_TIMEOUT).
 *
 * If a consumer cancels a receive, the message for it may still arrive. Without a limit the
 * message stays, with its memory, and the rest of the stream may stay behind it. With a
 * limit the message is discarded, unless the sender still waits for a confirmation of it.
 * Then the connection is closed, as an acknowledgment can only be positive.
 *
 * Messages are examined in the order of their arrival, some at a time, up to the first one
 * that may still wait. A message that is kept for a claim is not unexpected. Neither is a
 * message that has found its receive and waits for a slot of the completion queue.
 */
#include <linux/jiffies.h>
#include <linux/timer.h>

#include <linux/kofi/backport.h>

#include "../internal.h"
#include "rxq.h"

#define KOFI_RXQ_EXPIRE		32	/* messages at a time, with interrupts off */

static void kofi_rxmsg_report(const struct kofi_rxmsg *rxmsg)
{
	struct kofi_ep *ep = rxmsg->ep;
	struct kofi_eq_unexpected what = {
		.flags = (rxmsg->tagged ? FI_TAGGED : FI_MSG) |
			 (rxmsg->confirmed ? 0 : FI_DISCARD),
		.tag = rxmsg->tag,
		.len = rxmsg->len,
	};
	const struct kofi_event ev = {
		.fid = &ep->ep.fid, .context = ep->ep.fid.context,
		.event = KOFI_UNEXPECTED, .data_val = rxmsg->src,
		.data = (void *)&what + sizeof(what.entry),
		.data_len = sizeof(what) - sizeof(what.entry),
	};

	kofi_eq_report_peer(ep->eq, &ev);
}

/* Mark a message, off the list; its stream discards it or closes the connection. */
static void kofi_rxmsg_expire(struct kofi_rxmsg *rxmsg)
{
	if (rxmsg->confirmed)
		rxmsg->expired = true;
	else
		rxmsg->discard = true;
	atomic64_inc(&rxmsg->ep->expired);
	kofi_rxmsg_report(rxmsg);
	kofi_rxmsg_wake(rxmsg);
}

/**
 * kofi_rxq_expire - discard messages that have waited too long
 * @timer: timer of the queue
 *
 * Context: timer.
 */
void kofi_rxq_expire(struct timer_list *timer)
{
	struct kofi_rxq *q = container_of(timer, struct kofi_rxq, expire);
	struct kofi_rxmsg *rxmsg, *next;
	unsigned int left = KOFI_RXQ_EXPIRE;
	unsigned long irq;

	spin_lock_irqsave(&q->lock, irq);
	list_for_each_entry_safe(rxmsg, next, &q->waiting, node) {
		/* its time starts when it lacks a receive */
		if (!rxmsg->ep->unexpected_timeout || !kofi_rxmsg_open(rxmsg))
			continue;
		if (time_before(jiffies, rxmsg->expires)) {
			timer_reduce(&q->expire, rxmsg->expires);
			/* endpoints that share the queue have different times */
			if (kofi_ep_is_srx(q->ep))
				continue;
			break;
		}
		if (!left--) {
			timer_reduce(&q->expire, jiffies + 1);
			break;
		}
		kofi_rxmsg_expire(rxmsg);
	}
	spin_unlock_irqrestore(&q->lock, irq);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages that wait for a receive which does not come (KOFI_OPT_UNEXPECTED_TIMEOUT).
 *
 * A consumer that cancels a receive may get its message all the same. Without a
 * limit it stays, with the memory it takes, and what is behind it in the stream
 * may stay, too. With one it is thrown away, unless its sender is to be told that it
 * has been received: then the connection ends, as neither an acknowledgment
 * nor the answer of a rendezvous can say anything else.
 *
 * Messages are looked at in the order in which they have begun to wait, up to the
 * first one that may still wait. One that is kept for a claim, or has found
 * its receive and waits for a slot of the completion queue, is not unexpected.
 */
#include <linux/jiffies.h>
#include <linux/timer.h>

#include <linux/kofi/backport.h>

#include "rxq.h"

static unsigned long kofi_rxmsg_deadline(const struct kofi_rxmsg *rxmsg)
{
	return rxmsg->since + msecs_to_jiffies(rxmsg->ep->unexpected_timeout);
}

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

	kofi_eq_report(ep->eq, &ev, GFP_ATOMIC | __GFP_NOWARN);
}

/* It is off the list: its stream comes for it. */
static void kofi_rxmsg_expire(struct kofi_rxmsg *rxmsg)
{
	if (rxmsg->confirmed) {
		rxmsg->expired = true;
	} else {
		rxmsg->discard = true;
		atomic64_inc(&rxmsg->ep->discarded);
	}
	kofi_rxmsg_report(rxmsg);
	kofi_rxmsg_wake(rxmsg);
}

/**
 * kofi_rxq_watch - look at a message when it has waited for as long as it may
 * @q: the queue
 * @rxmsg: a message that waits at an endpoint with a limit, since @rxmsg->since
 *
 * Context: any, with the lock of the queue.
 */
void kofi_rxq_watch(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg)
{
	timer_reduce(&q->expire, kofi_rxmsg_deadline(rxmsg));
}

/**
 * kofi_rxq_expire - throw away what has waited too long
 * @timer: of the queue
 *
 * Context: timer.
 */
void kofi_rxq_expire(struct timer_list *timer)
{
	struct kofi_rxq *q = container_of(timer, struct kofi_rxq, expire);
	struct kofi_rxmsg *rxmsg, *next;
	unsigned long irq;

	spin_lock_irqsave(&q->lock, irq);
	list_for_each_entry_safe(rxmsg, next, &q->waiting, node) {
		if (!rxmsg->ep->unexpected_timeout)
			continue;
		if (!kofi_rxmsg_open(rxmsg)) {
			/* it may become one that has no receive */
			rxmsg->since = jiffies;
			kofi_rxq_watch(q, rxmsg);
			continue;
		}
		if (time_before(jiffies, kofi_rxmsg_deadline(rxmsg))) {
			kofi_rxq_watch(q, rxmsg);
			break;
		}
		kofi_rxmsg_expire(rxmsg);
	}
	spin_unlock_irqrestore(&q->lock, irq);
}

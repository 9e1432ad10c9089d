// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reports of the peers' accesses to our memory.
 *
 * The provider below executes reads and writes. If it is notified of them (kofi_sock), it
 * reports them at this endpoint, through kofi_ep_remote_to(): a report takes a slot of
 * this endpoint's completion queue, and the stream below waits for it. A device reports
 * only remote CQ data, which takes one of our receives.
 *
 * Slots
 *
 * Remote CQ data that has taken a receive waits in that buffer for a slot of the queue.
 * Such buffers are on a list in the order of their arrival. They count like
 * buffers of messages without a receive: from some number on, the peer is stalled. They
 * remain when the connection is closed, as the bytes have been written.
 *
 * Atomic operations, which are executed here, are on the same list until there is a slot
 * for a region that reports them. Closing the connection discards those that have not
 * been executed.
 */
#include "rxm.h"

/* Context of our own regions below: the peer reads a message there. */
char rxm_own_region;

/* Convert a report for kofi_ep_remote_to(). The accesses of a connection are serialised. */
static bool rxm_remote_fill(struct fid_ep *below, struct kofi_wc *wc)
{
	struct rxm_conn *c = below->fid.context;
	struct rxm_ep *ep = c->ep;

	if (wc->mr_context == &rxm_own_region) {
		wc->mr_context = NULL;
		wc->mr_key = 0;
		/* the access may also include regions of the consumer, which must be reported */
		if (!(wc->flags & (FI_REMOTE_CQ_DATA | FI_RMA_EVENT)))
			return false;
	}
	wc->src = rxm_source(ep, c, &c->target_known);
	wc->from = kofi_ep_unknown(&ep->base, wc->src) ? &c->base.addr : NULL;
	return true;
}

/**
 * rxm_access_setup - let the endpoint below report the peer's accesses at this endpoint
 * @c: a connection with an endpoint below, which has not been enabled
 *
 * Context: process, with the mutex.
 * Return: 0, or as kofi_ep_remote_to().
 */
int rxm_access_setup(struct rxm_conn *c)
{
	struct rxm_ep *ep = c->ep;

	if (!(ep->info->caps & FI_RMA_EVENT))
		return 0;
	return kofi_ep_remote_to(c->msg, &ep->base, rxm_remote_fill);
}

static int rxm_data_report(struct rxm_buf *buf)
{
	struct kofi_ep *base = &buf->conn->ep->base;
	const struct kofi_wc wc = {
		.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		.len = buf->msg.len,
		.data = buf->msg.data,
		.src = buf->msg.src,
		.from = kofi_ep_unknown(base, buf->msg.src) ?
			buf->msg.from : NULL,
	};
	int err = kofi_ep_remote_reserve(base, &buf->msg.cq_wait);

	if (err)
		return err;
	kofi_ep_remote_complete(base, &wc);
	return 0;
}

/**
 * rxm_accesses - report or execute the listed accesses, as far as they have slots
 * @c: the connection
 *
 * rxm_push() must follow.
 *
 * Context: softirq, or with bottom halves off; with rx_lock.
 */
void rxm_accesses(struct rxm_conn *c)
{
	struct rxm_buf *buf;
	bool data, waited;

	while (!list_empty(&c->rx.accesses)) {
		buf = list_first_entry(&c->rx.accesses, struct rxm_buf, node);
		data = buf->access == RXM_ACCESS_DATA;
		waited = buf->waits;
		buf->waits = data ? rxm_data_report(buf) :
				    rxm_atomic_serve(buf);
		if (buf->waits)
			return;
		if (waited)
			kofi_ep_remote_cancel(&c->ep->base, &buf->msg.cq_wait);
		if (data)
			rxm_buf_release(buf);
	}
}

/**
 * rxm_access - process an access of a peer after those on the list
 * @buf: the packet
 * @access: kind of the access
 *
 * Context: softirq, with rx_lock.
 */
void rxm_access(struct rxm_buf *buf, enum rxm_access access)
{
	struct rxm_conn *c = buf->conn;
	bool first = list_empty(&c->rx.accesses);

	buf->access = access;
	list_add_tail(&buf->node, &c->rx.accesses);
	if (first)
		rxm_accesses(c);
	/* post another receive in place of a held one */
	if (!list_empty(&c->rx.accesses))
		rxm_conn_todo(c);
}

/**
 * rxm_remote_data - process remote CQ data of a write that has taken a receive
 * @buf: the receive
 * @wc: completion of the receive
 *
 * Context: softirq, with rx_lock.
 */
void rxm_remote_data(struct rxm_buf *buf, const struct kofi_wc *wc)
{
	struct rxm_conn *c = buf->conn;

	buf->msg.len = wc->len;
	buf->msg.data = wc->data;
	buf->msg.src = rxm_source(c->ep, c, &c->rx.known);
	rxm_access(buf, RXM_ACCESS_DATA);
}

/**
 * rxm_access_drop - discard accesses that wait for a slot
 * @c: a connection without an endpoint below
 * @all: discard remote CQ data, too
 *
 * Context: with rx_lock.
 */
void rxm_access_drop(struct rxm_conn *c, bool all)
{
	struct rxm_buf *buf, *next;

	list_for_each_entry_safe(buf, next, &c->rx.accesses, node) {
		if (!all && buf->access == RXM_ACCESS_DATA)
			continue;
		kofi_ep_remote_cancel(&c->ep->base, &buf->msg.cq_wait);
		rxm_buf_release(buf);
	}
}

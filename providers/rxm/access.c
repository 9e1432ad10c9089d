// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What peers do to our memory, as far as the consumer is told of it.
 *
 * Reads and writes are the business of the provider below. One that is told of them
 * (kofi_sock) reports them at this endpoint, through kofi_ep_remote_to(): in slots of
 * its queue, for which the stream below waits. With a device only remote CQ data is
 * reported, and takes one of our receives.
 *
 * Slots
 *
 * Remote CQ data that has taken a receive waits in it for a slot of the queue. Such
 * buffers are on a list, in the order they came, and count as those of messages
 * without a receive do: from some number on the peer is held back. They stay when the
 * connection ends, as the bytes have been written. Atomic operations, which are done
 * here, are on the same list until there is a slot for a region that is to report
 * them; what has not been done by then ends with the connection.
 */
#include "rxm.h"

/* Context of regions of our own below: what is read there is a message. */
char rxm_own_region;

/* kofi_ep_remote_to(): one at a time, as a connection's accesses are. */
static bool rxm_remote_fill(struct fid_ep *below, struct kofi_wc *wc)
{
	struct rxm_conn *c = below->fid.context;
	struct rxm_ep *ep = c->ep;

	if (wc->mr_context == &rxm_own_region) {
		wc->mr_context = NULL;
		wc->mr_key = 0;
		/* beside it the peer has read what is to be reported */
		if (!(wc->flags & (FI_REMOTE_CQ_DATA | FI_RMA_EVENT)))
			return false;
	}
	wc->src = rxm_source(ep, c, &c->target_known);
	wc->from = kofi_ep_unknown(&ep->base, wc->src) ? &c->addr : NULL;
	return true;
}

/**
 * rxm_access_setup - hear of what the peer does to memory
 * @c: a connection with an endpoint below, which has not been enabled
 *
 * Context: process, with the mutex.
 * Return: 0, or what kofi_ep_remote_to() returns.
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
 * rxm_accesses - do what is first, and has its slot
 * @c: the connection
 *
 * rxm_push() is to follow.
 *
 * Context: softirq, or with bottom halves off; with rx_lock.
 */
void rxm_accesses(struct rxm_conn *c)
{
	struct rxm_buf *buf;
	bool data, waited;

	while (!list_empty(&c->accesses)) {
		buf = list_first_entry(&c->accesses, struct rxm_buf, node);
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
 * rxm_access - what a peer does to memory, in its turn
 * @buf: the packet
 * @access: what it is
 *
 * Context: softirq, with rx_lock.
 */
void rxm_access(struct rxm_buf *buf, enum rxm_access access)
{
	struct rxm_conn *c = buf->conn;
	bool first = list_empty(&c->accesses);

	buf->access = access;
	list_add_tail(&buf->node, &c->accesses);
	if (first)
		rxm_accesses(c);
	/* another receive in the place of one that is held */
	if (!list_empty(&c->accesses))
		rxm_conn_todo(c);
}

/**
 * rxm_remote_data - a write has taken a receive
 * @buf: the receive
 * @wc: its completion
 *
 * Context: softirq, with rx_lock.
 */
void rxm_remote_data(struct rxm_buf *buf, const struct kofi_wc *wc)
{
	struct rxm_conn *c = buf->conn;

	buf->msg.len = wc->len;
	buf->msg.data = wc->data;
	buf->msg.src = rxm_source(c->ep, c, &c->known);
	rxm_access(buf, RXM_ACCESS_DATA);
}

/**
 * rxm_access_drop - forget what waits for a slot
 * @c: a connection with nothing below any more
 * @all: remote CQ data, too
 *
 * Context: with rx_lock.
 */
void rxm_access_drop(struct rxm_conn *c, bool all)
{
	struct rxm_buf *buf, *next;

	list_for_each_entry_safe(buf, next, &c->accesses, node) {
		if (!all && buf->access == RXM_ACCESS_DATA)
			continue;
		kofi_ep_remote_cancel(&c->ep->base, &buf->msg.cq_wait);
		rxm_buf_release(buf);
	}
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reports of a stream: completions, violations, statistics.
 */
#include "rdm.h"
#include "sock_trace.h"

/* ---------------------------------------------------------------- transmits */

/* Flags of completions, by the operation on the wire */
static const u64 ksk_tx_wc_flags[] = {
	[KSK_OP_MSG]		= FI_SEND | FI_MSG,
	[KSK_OP_TAGGED]	= FI_SEND | FI_TAGGED,
	[KSK_OP_READ_REQ]	= FI_READ | FI_RMA,
	[KSK_OP_WRITE]		= FI_WRITE | FI_RMA,
	[KSK_OP_RTS]		= FI_SEND | FI_TAGGED,
	[KSK_OP_DATA]		= FI_SEND | FI_TAGGED,
};

static noinline void ksk_tx_failed(struct ksk_conn *c, void *context, u64 flags,
				   size_t len, int err, u64 op_flags)
{
	struct kofi_wc wc = {
		.op_context = context,
		.err = err,
		.prov_errno = READ_ONCE(c->dead),
		.flags = flags,
		.len = len,
		.src = FI_ADDR_NOTAVAIL,
	};

	kofi_ep_tx_complete(&c->ep->base, &wc, op_flags);
}

/**
 * ksk_tx_complete - complete a transmit
 * @c: the connection
 * @op: the operation, on no list; unused afterwards
 * @err: 0 or a positive error code
 *
 * Context: any.
 */
void ksk_tx_complete(struct ksk_conn *c, struct ksk_txop *op, int err)
{
	u64 flags = ksk_tx_wc_flags[op->op], op_flags = op->flags;
	void *context = op->context;
	size_t len = op->cur.len;

	/* free the record first: the consumer may post again at once */
	kofi_freelist_put(&c->ep->tx_free, &op->free);
	if (likely(!err))
		kofi_ep_tx_done(&c->ep->base, context, flags, len, op_flags);
	else
		ksk_tx_failed(c, context, flags, len, err, op_flags);
}

/**
 * ksk_tx_flush_err - error of operations that are flushed with their stream
 * @c: a dead connection
 *
 * A dead peer and a lost device have errors of their own, for consumers that may fail
 * over; otherwise the error is ECANCELED. An endpoint with many peers gets the reason as
 * the error, since not every peer has an event for a lost connection.
 *
 * Return: a positive error code.
 */
int ksk_tx_flush_err(const struct ksk_conn *c)
{
	int err = READ_ONCE(c->dead);

	/* a peer among many */
	if (c->ops->many)
		/* EPIPE: the peer had closed before the operation was sent */
		return err == ESHUTDOWN || err == EPIPE ? ECONNRESET : err;
	return err == ETIMEDOUT || err == ENETDOWN ? err : ECANCELED;
}

/* ----------------------------------------------------------------- receives */

/**
 * ksk_conn_violated - count and report a violation of the protocol
 * @c: connection to the peer
 * @reason: the violation in words, a constant string
 *
 * Context: locked.
 */
void ksk_conn_violated(struct ksk_conn *c, const char *reason)
{
	const struct sockaddr *peer = c->ops->many ? &ksk_peer(c)->base.addr.sa : NULL;

	ksk_stat_inc(&c->stats.violations);
	kofi_violation(&c->ep->base.obj, peer, reason);
}

/**
 * ksk_rx_violation - record a protocol error of the peer
 * @c: the connection
 * @what: the violation in words, a constant string
 *
 * Context: locked.
 */
void ksk_rx_violation(struct ksk_conn *c, const char *what)
{
	trace_kofi_sock_violation(c, what, c->rx.hdr, c->rx.have);
	ksk_conn_violated(c, what);
	c->rx.err = EPROTO;
}

/**
 * ksk_rx_cut - complete a receive for a message that has not arrived completely
 * @c: the connection, which has been terminated
 * @rxmsg: the message
 * @op: the receive; not used after the call
 *
 * Context: process; locked, if there is a socket.
 */
void ksk_rx_cut(struct ksk_conn *c, const struct kofi_rxmsg *rxmsg,
		struct kofi_rxop *op)
{
	struct kofi_wc wc = {
		.err = ENOTCONN,
		.prov_errno = READ_ONCE(c->dead),
		.flags = FI_RECV | (rxmsg->tagged ? FI_TAGGED : FI_MSG),
		.len = op->cur.len - op->cur.left,
		.tag = rxmsg->tag,
		.src = rxmsg->src,
	};

	kofi_rxq_done(kofi_ep_rxq(&c->ep->base, &c->ep->rxq), op, &wc);
}

/* --------------------------------------------------------------- statistics */

/**
 * ksk_conn_stats_add - add the statistics of a connection to a sum
 * @sum: the sum
 * @stats: statistics of the connection
 */
void ksk_conn_stats_add(struct ksk_conn_stats *sum,
			const struct ksk_conn_stats *stats)
{
	const unsigned long *from = (const unsigned long *)stats;
	unsigned long *to = (unsigned long *)sum;
	size_t i;

	for (i = 0; i < sizeof(*stats) / sizeof(*from); i++)
		to[i] += READ_ONCE(from[i]);
}

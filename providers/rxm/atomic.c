// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Atomic operations: our requests to peers, and requests of peers to us. The CPU of
 * the target executes them.
 *
 * Our requests
 *
 * A request has all of its values in one packet. Few values are copied, since a
 * device gathers pieces of eight bytes at a high price. The peer answers each request,
 * with the old values if these are requested. The answer completes the operation.
 * On both sides, receives that hold requests could stall the answers: so a
 * connection has few outstanding requests.
 *
 * Requests of peers
 *
 * The operation is executed when the request arrives, on the memory of regions of
 * the domain, and never by the device below. The old values replace the operands in the
 * packet's buffer, from which the answer is sent.
 */
#include <linux/string.h>

#include "rxm.h"

/* ------------------------------------------------------------ our requests */

/**
 * rxm_atomic_send - send a request
 * @c: the connection
 * @op: the transmit
 *
 * Context: any, in the context that pushes.
 * Return: 0; -EAGAIN, also while RXM_ATOMICS requests are outstanding; or as
 * fi_sendmsg() below.
 */
int rxm_atomic_send(struct rxm_conn *c, struct rxm_op *op)
{
	struct rxm_atomic *a = op->atomic;
	struct rxm_hdr *h = &op->hdr;
	struct kvec kv[RXM_IOV_MAX + 1];
	struct fi_msg msg = {
		.msg_iov = kv, .iov_count = 1, .context = &op->cqe,
	};
	int err;

	/* each answer completes a request, and pushes */
	if (READ_ONCE(c->tx.atomics) >= RXM_ATOMICS)
		return -EAGAIN;
	rxm_hdr_format(h, RXM_ATOMIC, (u32)c->peer_id, rxm_op_id(op));
	h->op = a->call;
	h->size = RXM_ATOMIC_MEM + a->len;
	h->datatype = a->datatype;
	h->atomic_op = a->op;
	h->atomic_count = a->count;
	kv[0].iov_base = h;
	kv[0].iov_len = sizeof(*h) + RXM_ATOMIC_MEM;
	if (a->nr_out) {
		memcpy(kv + 1, a->out, a->nr_out * sizeof(*kv));
		msg.iov_count += a->nr_out;
	} else if (a->len) {
		kv[1].iov_base = a->inject;
		kv[1].iov_len = a->len;
		msg.iov_count = 2;
	}
	refcount_add(2, &op->refs);
	rxm_op_await(op);
	err = rxm_send_packet(c, &msg, 0, c->flow.reserve);
	if (!err)
		return 0;
	refcount_dec(&op->refs);
	if (rxm_op_unawait(op)) {
		refcount_dec(&op->refs);
		return err;
	}
	/* the peer answered an unsent request: the answer completes the transmit */
	rxm_conn_violated(c, "answer to no request");
	rxm_conn_fail(c, EPROTO);
	return 0;
}

/**
 * rxm_atomic_answered - process the answer to a request
 * @c: the connection
 * @h: the packet
 *
 * rxm_push() must follow.
 *
 * Context: softirq, with rx_lock.
 * Return: 0, or -EPROTO for an invalid answer, which fails the operation if there is one.
 */
int rxm_atomic_answered(struct rxm_conn *c, const struct rxm_hdr *h)
{
	const struct rxm_atomic_rsp *r = (const void *)(h + 1);
	struct rxm_op *op = rxm_op_claim(c, h->msg_id, true);
	s32 status = be32_to_cpu(r->status);
	size_t len = be32_to_cpu(r->len);
	int err = EPROTO;
	bool ok;

	if (!op)
		return -EPROTO;
	ok = status ? IS_ERR_VALUE((long)status) : len == op->cur.len;
	if (ok)
		err = -status;
	if (!err && kofi_cursor_write(&op->cur, r + 1, len))
		err = EFAULT;
	rxm_op_put(op, err);
	return ok ? 0 : -EPROTO;
}

/* ------------------------------------------------------- requests of peers */

static void rxm_targets_drop(struct kofi_target *t, unsigned int n)
{
	while (n--)
		kofi_target_drop(&t[n]);
}

/* Look up and check all regions of a request; returns the length in bytes. */
static ssize_t rxm_atomic_targets(struct rxm_ep *ep, const struct rxm_hdr *h,
				  const struct kofi_atomic *a,
				  struct kofi_target *t)
{
	const struct rxm_mem *mem = (const void *)(h + 1);
	size_t size = kofi_datatype_size(a->datatype) ?: 1, len = 0;
	int i, err;

	for (i = 0; i < h->atomic_count; i++) {
		/* check the length before each page is looked up */
		err = -EMSGSIZE;
		if (mem[i].len > (RXM_ATOMIC_MAX - len) / size)
			goto drop;
		err = kofi_target_atomic_init(&t[i], &ep->base, a, mem[i].key,
					      mem[i].addr, mem[i].len);
		if (err)
			goto drop;
		/* the first read or write invalidates it at the provider below, but not here */
		if (t[i].mr->flags & FI_MR_SINGLE_USE) {
			kofi_target_drop(&t[i]);
			err = -FI_EKEYREJECTED;
			goto drop;
		}
		len += t[i].len;
	}
	return len;

drop:
	rxm_targets_drop(t, i);
	return err;
}

/* Reserve a slot of the completion queue if one of the regions reports accesses. */
static int rxm_atomic_reserve(struct rxm_buf *buf, const struct kofi_target *t,
			      bool *event)
{
	unsigned int i;

	*event = false;
	for (i = 0; i < buf->hdr.atomic_count; i++)
		*event |= t[i].event;
	return *event ? kofi_ep_remote_reserve(&buf->conn->ep->base,
					       &buf->msg.cq_wait) : 0;
}

/* Count and report an executed operation. */
static void rxm_atomic_tell(struct rxm_buf *buf, const struct kofi_target *t,
			    size_t len, bool event)
{
	struct rxm_conn *c = buf->conn;
	fi_addr_t src = rxm_source(c->ep, c, &c->rx.known);
	const struct kofi_wc wc = {
		.flags = FI_ATOMIC | (buf->hdr.op == RXM_OP_ATOMIC ?
				      FI_REMOTE_WRITE : FI_REMOTE_READ) |
			 (event ? FI_RMA_EVENT : 0),
		.len = len,
		.mr_context = t->context,
		.mr_key = t->key,
		.src = src,
		.from = kofi_ep_unknown(&c->ep->base, src) ? &c->base.addr : NULL,
	};

	kofi_ep_remote_complete(&c->ep->base, &wc);
}

/**
 * rxm_atomic_do - execute a request of a peer
 * @buf: the request, which has passed rxm_packet_check(); requested old values replace
 *	its operands
 * @result: set to the length of the old values in bytes
 *
 * Context: softirq, or with bottom halves off; with rx_lock.
 * Return: 0; -EAGAIN without a slot to report it, and the buffer will be woken;
 * -EOPNOTSUPP, -EINVAL, -EMSGSIZE, -EACCES or -FI_EKEYREJECTED. After an error
 * nothing has changed.
 */
int rxm_atomic_do(struct rxm_buf *buf, size_t *result)
{
	const struct rxm_hdr *h = &buf->hdr;
	struct rxm_ep *ep = buf->conn->ep;
	void *values = buf->data + RXM_ATOMIC_MEM;
	struct kofi_target t[RXM_RNDV_IOV];
	struct kofi_atomic a = {
		.call = h->op == RXM_OP_ATOMIC ? 0 :
			h->op == RXM_OP_ATOMIC_FETCH ? FI_FETCH_ATOMIC :
			FI_COMPARE_ATOMIC,
		.datatype = h->datatype,
		.op = h->atomic_op,
	};
	u64 caps = FI_ATOMIC | (a.call ? FI_REMOTE_READ : 0) |
		   (a.op == FI_ATOMIC_READ ? 0 : FI_REMOTE_WRITE);
	size_t got = h->size - RXM_ATOMIC_MEM;
	ssize_t len, need;
	bool event;
	int i, err;

	*result = 0;
	if (!kofi_ep_may(&ep->base, caps))
		return -EOPNOTSUPP;
	len = rxm_atomic_targets(ep, h, &a, t);
	if (len < 0)
		return len;
	/* some peers send operands with an FI_ATOMIC_READ */
	need = a.op == FI_ATOMIC_READ ? min_t(ssize_t, len, got) :
	       a.call == FI_COMPARE_ATOMIC ? 2 * len : len;
	err = need == got ? rxm_atomic_reserve(buf, t, &event) : -EINVAL;
	if (err)
		goto drop;
	a.operands = a.op == FI_ATOMIC_READ ? NULL : values;
	a.compare = a.call == FI_COMPARE_ATOMIC ? values + len : NULL;
	a.results = a.call ? values : NULL;
	*result = a.call ? len : 0;
	for (i = 0; i < h->atomic_count; i++)
		kofi_target_atomic(&t[i], &a);
	rxm_atomic_tell(buf, t, len, event);
drop:
	rxm_targets_drop(t, h->atomic_count);
	return err;
}

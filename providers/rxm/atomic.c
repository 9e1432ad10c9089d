// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Atomic operations, which the peer does in software, and ours for peers.
 *
 * Asking
 *
 * A request has all of its values in one packet: those that are few in a copy,
 * as a device would gather eight bytes at a high price. The peer answers each one,
 * with the old values if they are asked for; the operation is complete with
 * that. Answers are not to wait for receives that hold requests, at both ends:
 * a connection has few of them under way.
 *
 * Being asked
 *
 * The operation is done when the request arrives, on the memory of regions of
 * the domain, and never by the device below. The old values take the place of
 * the operands in the packet's buffer, and the answer is sent from there.
 */
#include <linux/overflow.h>
#include <linux/string.h>

#include "rxm.h"

/* What a post has beside a message */
struct rxm_atomic_args {
	u64				call;
	const struct fi_msg_atomic	*msg;
	const struct fi_ioc		*compare;
	size_t				compare_count;
};

/* --------------------------------------------------------------- questions */

static int rxm_atomic_can(enum fi_datatype datatype, enum fi_op op, u64 call,
			  size_t *count)
{
	size_t size = kofi_datatype_size(datatype);

	if (!size || !kofi_atomic_op_fits(op, call))
		return -EOPNOTSUPP;
	*count = RXM_ATOMIC_MAX / size / (call == FI_COMPARE_ATOMIC ? 2 : 1);
	return 0;
}

/* fi_query_atomic() */
int rxm_query_atomic(struct fid_domain *domain, enum fi_datatype datatype,
		     enum fi_op op, struct fi_atomic_attr *attr, u64 flags)
{
	return rxm_atomic_can(datatype, op, flags, &attr->count);
}

/* ------------------------------------------------------------------ asking */

/* Segments of local memory, which are added to @kv; returns how many they are */
static int rxm_atomic_local(const struct rxm_ep *ep, const struct fi_ioc *ioc,
			    size_t count, size_t size, struct kvec *kv,
			    size_t *len)
{
	size_t i, n;

	if (!count || count > ep->base.info->tx_attr->iov_limit || !ioc)
		return -EINVAL;
	for (i = 0, *len = 0; i < count; i++) {
		if (!ioc[i].addr || !ioc[i].count ||
		    !IS_ALIGNED((uintptr_t)ioc[i].addr, size) ||
		    check_mul_overflow(ioc[i].count, size, &n) ||
		    check_add_overflow(*len, n, len))
			return -EINVAL;
		kv[i].iov_base = ioc[i].addr;
		kv[i].iov_len = n;
	}
	return count;
}

/* The peer's memory, which must be as many elements as there are values */
static int rxm_atomic_fill_mem(struct rxm_op *op, const struct fi_msg_atomic *m,
			       size_t size, size_t len)
{
	size_t i, n, total = 0;

	if (!m->rma_iov || !m->rma_iov_count ||
	    m->rma_iov_count > RXM_RNDV_IOV ||
	    m->rma_iov_count > op->ep->base.info->tx_attr->rma_iov_limit)
		return -EINVAL;
	op->rndv = (struct rxm_rndv) {};
	for (i = 0; i < m->rma_iov_count; i++) {
		op->rndv.mem[i] = (struct rxm_mem) {
			.addr = m->rma_iov[i].addr,
			.len = m->rma_iov[i].count,
			.key = m->rma_iov[i].key,
		};
		if (!IS_ALIGNED(m->rma_iov[i].addr, size) ||
		    check_mul_overflow(m->rma_iov[i].count, size, &n) ||
		    check_add_overflow(total, n, &total))
			return -EINVAL;
	}
	op->atomic->count = m->rma_iov_count;
	return total == len ? 0 : -EINVAL;
}

/* Memory that is not one piece to a device counts by pages. */
static size_t rxm_atomic_segments(const struct kvec *kv)
{
	if (!is_vmalloc_addr(kv->iov_base))
		return 1;
	return DIV_ROUND_UP(offset_in_page(kv->iov_base) + kv->iov_len,
			    PAGE_SIZE);
}

/* Copy the values, or note where they are. */
static int rxm_atomic_keep(struct rxm_op *op, const struct kvec *kv, size_t n,
			   u64 flags)
{
	const struct rxm_ep *ep = op->ep;
	struct rxm_atomic *a = op->atomic;
	size_t i, off = 0, segs = 1;

	if (flags & FI_INJECT && a->len > ep->base.info->tx_attr->inject_size)
		return -EINVAL;
	a->nr_out = 0;
	if (a->len <= RXM_INJECT) {
		for (i = 0; i < n; off += kv[i++].iov_len)
			memcpy(a->inject + off, kv[i].iov_base, kv[i].iov_len);
		return 0;
	}
	for (i = 0; i < n; i++)
		segs += rxm_atomic_segments(&kv[i]);
	if (segs > min_t(size_t, RXM_IOV_MAX + 1, ep->info->tx_attr->iov_limit))
		return -EINVAL;
	memcpy(a->out, kv, n * sizeof(*kv));
	a->nr_out = n;
	return 0;
}

/**
 * rxm_atomic_fill - take what an atomic operation has beside a message
 * @op: its record; the memory of the result, if there is one, is in it
 * @args: of the post
 *
 * Context: any.
 * Return: 0; -EINVAL; -EMSGSIZE.
 */
int rxm_atomic_fill(struct rxm_op *op, const struct rxm_atomic_args *args)
{
	const struct fi_msg_atomic *m = args->msg;
	size_t size = kofi_datatype_size(m->datatype);
	size_t len = op->cur.len, more;
	struct kvec kv[2 * RXM_IOV_MAX];
	struct rxm_atomic *a = op->atomic;
	int n = 0, k = 0, err;

	a->call = args->call == FI_COMPARE_ATOMIC ? RXM_OP_ATOMIC_COMPARE :
		  args->call ? RXM_OP_ATOMIC_FETCH : RXM_OP_ATOMIC;
	a->datatype = m->datatype;
	a->op = m->op;
	a->len = 0;
	if (m->op != FI_ATOMIC_READ) {
		n = rxm_atomic_local(op->ep, m->msg_iov, m->iov_count, size,
				     kv, &len);
		if (n < 0)
			return n;
		a->len = len;
	}
	if (args->call == FI_COMPARE_ATOMIC) {
		k = rxm_atomic_local(op->ep, args->compare,
				     args->compare_count, size, kv + n, &more);
		if (k < 0)
			return k;
		if (more != len)
			return -EINVAL;
		a->len += more;
	}
	if (args->call && len != op->cur.len)
		return -EINVAL;
	err = rxm_atomic_fill_mem(op, m, size, len);
	if (err)
		return err;
	if (len > RXM_ATOMIC_MAX || a->len > RXM_ATOMIC_MAX)
		return -EMSGSIZE;
	return rxm_atomic_keep(op, kv, n + k, op->flags);
}

/**
 * rxm_atomic_send - send a request
 * @c: the connection
 * @op: the transmit
 *
 * Context: any, by who pushes.
 * Return: 0; -EAGAIN, also while the peer has enough to answer; or what below
 * returns.
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

	/* they become fewer by answers, with each of which we come back */
	if (READ_ONCE(c->atomics) >= RXM_ATOMICS)
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
	err = rxm_send_packet(c, &msg, 0, c->reserve);
	if (!err)
		return 0;
	refcount_dec(&op->refs);
	if (rxm_op_unawait(op)) {
		refcount_dec(&op->refs);
		return err;
	}
	/* it has been answered, and ends by that; nothing is to be sent */
	rxm_conn_violated(c, "answer to no request");
	rxm_conn_fail(c, EPROTO);
	return 0;
}

/**
 * rxm_atomic_answered - the peer has answered a request
 * @c: the connection
 * @h: the packet
 *
 * rxm_push() is to follow.
 *
 * Context: softirq, with rx_lock.
 * Return: 0, or -EPROTO for an answer that is none: it has ended the operation if
 * there is one.
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
	if (!err && !rxm_copy(&op->cur, r + 1, len))
		err = EFAULT;
	rxm_op_put(op, err);
	return ok ? 0 : -EPROTO;
}

/* ------------------------------------------------------------- being asked */

static void rxm_targets_drop(struct kofi_target *t, unsigned int n)
{
	while (n--)
		kofi_target_drop(&t[n]);
}

/* The regions a request names, all of them checked; returns the bytes */
static ssize_t rxm_atomic_targets(struct rxm_ep *ep, const struct rxm_hdr *h,
				  const struct kofi_atomic *a,
				  struct kofi_target *t)
{
	const struct rxm_mem *mem = (const void *)(h + 1);
	size_t size = kofi_datatype_size(a->datatype) ?: 1, len = 0;
	int i, err;

	for (i = 0; i < h->atomic_count; i++) {
		/* before a look at each page of it */
		err = -EMSGSIZE;
		if (mem[i].len > (RXM_ATOMIC_MAX - len) / size)
			goto drop;
		err = kofi_target_atomic_init(&t[i], &ep->base, a, mem[i].key,
					      mem[i].addr, mem[i].len);
		if (err)
			goto drop;
		/* reads and writes end it at the provider below, not here */
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

/* A slot of the queue, if one of the regions is to report it */
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

/* It is counted, and reported. */
static void rxm_atomic_tell(struct rxm_buf *buf, const struct kofi_target *t,
			    size_t len, bool event)
{
	struct rxm_conn *c = buf->conn;
	fi_addr_t src = rxm_source(c->ep, c, &c->known);
	const struct kofi_wc wc = {
		.flags = FI_ATOMIC | (buf->hdr.op == RXM_OP_ATOMIC ?
				      FI_REMOTE_WRITE : FI_REMOTE_READ) |
			 (event ? FI_RMA_EVENT : 0),
		.len = len,
		.mr_context = t->context,
		.mr_key = t->key,
		.src = src,
		.from = kofi_ep_unknown(&c->ep->base, src) ? &c->addr : NULL,
	};

	kofi_ep_remote_complete(&c->ep->base, &wc);
}

/**
 * rxm_atomic_do - do what a peer has asked for
 * @buf: the request, which has passed rxm_packet_check(); its operands become the
 *	old values if they are asked for
 * @result: bytes of these
 *
 * Context: softirq, or with bottom halves off; with rx_lock.
 * Return: 0; -EAGAIN without a slot to report it, and the buffer is woken;
 * -EOPNOTSUPP, -EINVAL, -EMSGSIZE, -EACCES or -FI_EKEYREJECTED. Nothing has changed
 * then.
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
	/* some send operands for what has none */
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

/* ------------------------------------------------------------------- posts */

static ssize_t rxm_atomic_post(struct fid_ep *fid,
			       const struct rxm_atomic_args *args,
			       const struct fi_ioc *resultv, size_t count,
			       u64 flags)
{
	const struct rxm_post post = {
		.how = RXM_HOW_ATOMIC, .atomic = args,
	};
	struct fi_msg msg = {
		.addr = args->msg->addr, .context = args->msg->context,
	};
	struct rxm_ep *ep = rxm_ep(fid);
	struct kvec kv[RXM_IOV_MAX];
	u64 right = args->call ? FI_READ : FI_WRITE;
	size_t len;
	int n;

	if (!kofi_ep_may(&ep->base, FI_ATOMIC | right))
		return -ENOSYS;
	if (rxm_atomic_can(args->msg->datatype, args->msg->op, args->call,
			   &len))
		return -EOPNOTSUPP;
	if (args->call) {
		n = rxm_atomic_local(ep, resultv, count,
				     kofi_datatype_size(args->msg->datatype),
				     kv, &len);
		if (n < 0)
			return n;
		msg.msg_iov = kv;
		msg.iov_count = n;
	}
	return rxm_post(ep, &msg, &post, flags);
}

/* fi_atomicmsg() and its family */
static ssize_t rxm_atomic_write(struct fid_ep *fid,
				const struct fi_msg_atomic *msg, u64 flags)
{
	const struct rxm_atomic_args args = { .msg = msg };

	if (flags & ~RXM_TX_FLAGS)
		return -FI_EBADFLAGS;
	return rxm_atomic_post(fid, &args, NULL, 0, flags);
}

/* fi_fetch_atomicmsg() and its family */
static ssize_t rxm_atomic_readwrite(struct fid_ep *fid,
				    const struct fi_msg_atomic *msg,
				    struct fi_ioc *resultv, void **result_desc,
				    size_t result_count, u64 flags)
{
	const struct rxm_atomic_args args = {
		.call = FI_FETCH_ATOMIC, .msg = msg,
	};

	if (flags & ~RXM_FETCH_FLAGS)
		return -FI_EBADFLAGS;
	return rxm_atomic_post(fid, &args, resultv, result_count, flags);
}

/* fi_compare_atomicmsg() and its family */
static ssize_t rxm_atomic_compwrite(struct fid_ep *fid,
				    const struct fi_msg_atomic *msg,
				    const struct fi_ioc *comparev,
				    void **compare_desc, size_t compare_count,
				    struct fi_ioc *resultv, void **result_desc,
				    size_t result_count, u64 flags)
{
	const struct rxm_atomic_args args = {
		.call = FI_COMPARE_ATOMIC, .msg = msg, .compare = comparev,
		.compare_count = compare_count,
	};

	if (flags & ~RXM_FETCH_FLAGS)
		return -FI_EBADFLAGS;
	return rxm_atomic_post(fid, &args, resultv, result_count, flags);
}

const struct fi_ops_atomic rxm_atomic_ops = {
	.size		= sizeof(struct fi_ops_atomic),
	.writemsg	= rxm_atomic_write,
	.readwritemsg	= rxm_atomic_readwrite,
	.compwritemsg	= rxm_atomic_compwrite,
};

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posts of atomic operations: supported operations, and the copy of a post that its
 * record keeps until the request is sent (atomic.c).
 */
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/string.h>

#include "rxm.h"

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

/* ----------------------------------------------------------------- records */

/* Add segments of local memory to @kv; returns their number, and sets @len to bytes. */
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

/* Copy the description of the peer's memory, which must have one element per value. */
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

/* A device needs one entry for each page of vmalloc memory. */
static size_t rxm_atomic_segments(const struct kvec *kv)
{
	if (!is_vmalloc_addr(kv->iov_base))
		return 1;
	return DIV_ROUND_UP(offset_in_page(kv->iov_base) + kv->iov_len,
			    PAGE_SIZE);
}

/* Copy the values, or keep their addresses. */
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
 * rxm_atomic_fill - copy the parameters of an atomic operation to its record
 * @op: the record, which already describes the memory for a result
 * @args: parameters of the post
 *
 * Context: any.
 * Return: 0; -EINVAL; -EMSGSIZE.
 */
int rxm_atomic_fill(struct rxm_op *op, const struct kofi_atomic_post *args)
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

/* ------------------------------------------------------------------- posts */

static ssize_t rxm_atomic_post(struct fid_ep *fid,
			       const struct kofi_atomic_post *args, u64 flags)
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
		n = rxm_atomic_local(ep, args->result, args->result_count,
				     kofi_datatype_size(args->msg->datatype),
				     kv, &len);
		if (n < 0)
			return n;
		msg.msg_iov = kv;
		msg.iov_count = n;
	}
	return rxm_post(ep, &msg, &post, flags);
}

KOFI_DEFINE_ATOMIC_OPS(rxm_atomic_ops, rxm_atomic_post, RXM_TX_FLAGS,
		       RXM_FETCH_FLAGS);

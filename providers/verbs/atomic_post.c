// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posts of atomic operations that devices support: on one element of 64 bits.
 *
 * FI_SUM is the device's fetch-and-add. FI_ATOMIC_READ is a fetch-and-add of 0,
 * so that both are atomic with respect to all others. FI_CSWAP is the device's
 * compare-and-swap. The work request carries the operands. The device writes
 * the fetched value to local memory, in the CPU's byte order. FI_ATOMIC_WRITE
 * is a plain write of eight bytes, as in the userspace provider: devices with
 * atomic operations do not promise that these preserve such a write.
 *
 * tx.c posts the operations.
 */
#include "tx.h"

/* Map an operation on a datatype to enum vrb_op, or -EOPNOTSUPP. */
static int vrb_atomic_op(enum fi_datatype datatype, enum fi_op op, u64 flags)
{
	if (datatype != FI_INT64 && datatype != FI_UINT64)
		return -EOPNOTSUPP;
	switch (op) {
	case FI_SUM:
	case FI_ATOMIC_READ:
		return flags == FI_FETCH_ATOMIC ? VRB_ADD : -EOPNOTSUPP;
	case FI_CSWAP:
		return flags == FI_COMPARE_ATOMIC ? VRB_SWAP : -EOPNOTSUPP;
	case FI_ATOMIC_WRITE:
		return !flags ? VRB_STORE : -EOPNOTSUPP;
	default:
		return -EOPNOTSUPP;
	}
}

/* fi_query_atomic() */
int vrb_query_atomic(struct fid_domain *domain, enum fi_datatype datatype,
		     enum fi_op op, struct fi_atomic_attr *attr, u64 flags)
{
	struct vrb_domain *dom = vrb_dom(domain);

	if (!dom->atomic || vrb_atomic_op(datatype, op, flags) < 0)
		return -EOPNOTSUPP;
	attr->count = 1;
	return 0;
}

/* Check for one aligned element. */
static int vrb_atomic_segment(const struct fi_ioc *ioc, size_t segs)
{
	return segs == 1 && ioc && ioc->addr && ioc->count == 1 &&
	       IS_ALIGNED((uintptr_t)ioc->addr, sizeof(u64)) ? 0 : -EINVAL;
}

static ssize_t vrb_atomic_post(struct fid_ep *fid,
			       const struct kofi_atomic_post *args, u64 flags)
{
	const struct fi_msg_atomic *msg = args->msg;
	/* the value to write, or the memory for the old value */
	const struct fi_ioc *local = args->call ? args->result : msg->msg_iov;
	size_t segs = args->call ? args->result_count : msg->iov_count;
	const struct fi_rma_ioc *peer = msg->rma_iov;
	int op = vrb_atomic_op(msg->datatype, msg->op, args->call);
	struct vrb_ep *ep = vrb_ep(fid);
	struct vrb_post post = { .op = op, .rma_count = 1 };
	struct fi_rma_iov rma;
	struct kvec kv;
	const struct fi_msg m = {
		.msg_iov = &kv, .iov_count = 1, .context = msg->context,
		.data = msg->data,
	};

	if (!kofi_ep_may(&ep->base, FI_ATOMIC) || op < 0)
		return -EOPNOTSUPP;
	if (!kofi_ep_may(&ep->base, args->call ? FI_READ : FI_WRITE))
		return -ENOSYS;
	if (vrb_atomic_segment(local, segs) || msg->rma_iov_count != 1 ||
	    !peer || peer->count != 1)
		return -EINVAL;
	/* the device checks this for its atomic operations, but not for a plain write */
	if (!IS_ALIGNED(peer->addr, sizeof(u64)))
		return -EINVAL;
	if (msg->op == FI_SUM || msg->op == FI_CSWAP) {
		if (vrb_atomic_segment(msg->msg_iov, msg->iov_count))
			return -EINVAL;
		post.operand = *(const u64 *)msg->msg_iov->addr;
	}
	if (msg->op == FI_CSWAP) {
		if (vrb_atomic_segment(args->compare, args->compare_count))
			return -EINVAL;
		post.compare = *(const u64 *)args->compare->addr;
	}
	kv = (struct kvec) { .iov_base = local->addr, .iov_len = sizeof(u64) };
	rma = (struct fi_rma_iov) {
		.addr = peer->addr, .len = sizeof(u64), .key = peer->key,
	};
	post.rma = &rma;
	return vrb_tx_accept_any(ep, &m, &post, flags);
}

KOFI_DEFINE_ATOMIC_OPS(vrb_atomic_ops, vrb_atomic_post, VRB_TX_FLAGS,
		       VRB_FETCH_FLAGS);

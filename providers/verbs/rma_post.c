// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Posts of reads and writes of a peer's memory; tx.h and tx.c do the rest. */
#include "tx.h"

static __always_inline bool vrb_rma_usual(struct fid_ep *fid,
					  const struct fi_msg_rma *rma,
					  enum vrb_op kind, u64 flags)
{
	const struct vrb_usual u = {
		.kv = rma->msg_iov,	/* member of a union of pointers */
		.count = rma->iov_count,
		.vec = rma->vec,
		.context = rma->context,
		.rma = rma->rma_iov,
		.rma_count = rma->rma_iov_count,
	};

	return likely(vrb_tx_post_usual(vrb_ep(fid), kind, &u, flags));
}

static noinline ssize_t vrb_rma_post(struct fid_ep *fid,
				     const struct fi_msg_rma *rma,
				     enum vrb_op op, u64 flags)
{
	struct vrb_ep *ep = vrb_ep(fid);
	const struct vrb_post post = {
		.op = op, .rma = rma->rma_iov, .rma_count = rma->rma_iov_count,
	};
	const struct fi_msg msg = kofi_rma_msg(rma);

	if (!vrb_may_rma(ep, op))
		return -ENOSYS;
	return vrb_tx_accept_any(ep, &msg, &post, flags);
}

/* fi_readmsg() and its family */
static ssize_t vrb_rma_read(struct fid_ep *fid, const struct fi_msg_rma *msg,
			    u64 flags)
{
	if (vrb_rma_usual(fid, msg, VRB_READ, flags))
		return 0;
	if (flags & ~VRB_FETCH_FLAGS)
		return -FI_EBADFLAGS;
	return vrb_rma_post(fid, msg, VRB_READ, flags);
}

/* fi_writemsg() and its family */
static ssize_t vrb_rma_write(struct fid_ep *fid, const struct fi_msg_rma *msg,
			     u64 flags)
{
	if (vrb_rma_usual(fid, msg, VRB_WRITE, flags))
		return 0;
	if (flags & ~VRB_TX_FLAGS)
		return -FI_EBADFLAGS;
	return vrb_rma_post(fid, msg, VRB_WRITE, flags);
}

const struct fi_ops_rma vrb_rma_ops = {
	.size		= sizeof(struct fi_ops_rma),
	.readmsg	= vrb_rma_read,
	.writemsg	= vrb_rma_write,
};

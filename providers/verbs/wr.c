// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Work requests of transmits that are not one request with one segment; those
 * tx.c builds itself.
 *
 * Chains
 *
 * A read or write whose memory has more segments than a work request can have,
 * on either side, becomes a chain of them. Each covers at most one segment of the
 * peer's memory. The last one completes the operation; the others complete only
 * with errors, to the operation's second struct ib_cqe.
 *
 * Reads on iWARP
 *
 * The memory that is read into needs a region (read_mr.c). Two work requests
 * stand for each part of such a read: one registers the memory, the other reads
 * and invalidates the region.
 *
 * Failures
 *
 * Requests are posted one by one, since devices report where a list has stopped
 * in different ways. If the first is refused, so is the operation. If a later one
 * is, the peer may already have been written to: the connection ends, and with it
 * the operation.
 */
#include "verbs.h"

/* Position in the memory of an operation, on both sides */
struct vrb_chain {
	struct vrb_walk		w;
	const struct vrb_post	*post;
	struct vrb_read_mrs	*read_mrs; /* what it reads into has to fit */
	unsigned int		seg;	/* of the peer's memory */
	size_t			off;	/* in that */
};

static void vrb_chain_init(struct vrb_chain *c, struct vrb_ep *ep,
			   const struct vrb_txop *op,
			   const struct vrb_post *post)
{
	*c = (struct vrb_chain) { .post = post };
	if (op->op == VRB_READ && op->len && ep->iwarp)
		c->read_mrs = &ep->read_mrs;
	vrb_walk_init(&c->w, &op->map);
	while (op->len && c->seg < post->rma_count && !post->rma[c->seg].len)
		c->seg++;
}

/*
 * Local segments of the next work request, and how many bytes they have. It
 * covers no more than one segment of the peer's memory, at remote.
 */
static unsigned int vrb_chain_next(struct vrb_chain *c, struct ib_sge *sge,
				   unsigned int max, u32 lkey,
				   struct fi_rma_iov *remote)
{
	const struct vrb_post *post = c->post;
	const struct fi_rma_iov *rma = &post->rma[c->seg];
	unsigned int n;
	u32 len;

	remote->addr = rma->addr + c->off;
	remote->key = rma->key;
	if (c->read_mrs)
		n = vrb_read_mr_segs(c->read_mrs, &c->w,
				     sge ? c->read_mrs->sg : NULL, remote->addr,
				     rma->len - c->off, &len);
	else
		n = vrb_walk_sges(&c->w, sge, max, lkey, rma->len - c->off,
				  &len);
	remote->len = len;
	c->off += len;
	while (c->seg < post->rma_count && c->off == post->rma[c->seg].len) {
		c->seg++;
		c->off = 0;
	}
	return n;
}

static unsigned int vrb_wr_sges(const struct vrb_ep *ep,
				const struct vrb_txop *op)
{
	return op->op == VRB_READ ? ep->read_sge : ep->send_sge;
}

/**
 * vrb_wr_count - how many work requests an operation takes
 * @ep: the endpoint
 * @op: the operation with its memory; its parts and wrs are set
 * @post: the peer's memory
 *
 * Context: any.
 * Return: 0; -EINVAL for a message of more segments than a work request can
 * have; -EMSGSIZE for more work requests than one operation may take;
 * -EOPNOTSUPP for what the device cannot do.
 */
int vrb_wr_count(struct vrb_ep *ep, struct vrb_txop *op,
		 const struct vrb_post *post)
{
	unsigned int max = vrb_wr_sges(ep, op);
	struct fi_rma_iov remote;
	struct vrb_chain c;

	if (op->op == VRB_SEND)
		return op->map.nr <= max ? 0 : -EINVAL;
	if (op->op == VRB_READ && !op->len &&
	    ep->dom->quirks & VRB_QUIRK_ZERO_READ)
		return -EOPNOTSUPP;
	vrb_chain_init(&c, ep, op, post);
	if (!op->len ||
	    (post->rma_count == 1 && op->map.nr <= max && !c.read_mrs))
		return 0;
	for (op->parts = 0; c.seg < post->rma_count; op->parts++)
		vrb_chain_next(&c, NULL, max, 0, &remote);
	op->wrs = c.read_mrs ? 2 * op->parts : op->parts;
	/* unsignaled ones give nothing back, and leave half of the queue free */
	if (op->wrs > ep->sq_size / 2 ||
	    (c.read_mrs && op->parts > VRB_READ_MRS))
		return -EMSGSIZE;
	return 0;
}

/* Segments of the next work request */
static void vrb_wr_segs(struct vrb_ep *ep, struct vrb_txop *op,
			struct vrb_chain *c, struct ib_rdma_wr *wr,
			struct ib_sge *sge)
{
	u32 lkey = ep->dom->pd->local_dma_lkey;
	unsigned int max = vrb_wr_sges(ep, op);
	struct fi_rma_iov remote;
	u32 len;

	if (op->op == VRB_SEND) {
		wr->wr.num_sge = vrb_walk_sges(&c->w, sge, max, lkey, op->len,
					       &len);
		/* some drivers read the first segment even if there is none */
		wr->wr.sg_list = wr->wr.num_sge ? sge : NULL;
		return;
	}
	wr->wr.num_sge = vrb_chain_next(c, sge, max, lkey, &remote);
	if (c->read_mrs)
		sge[0].length = remote.len;
	wr->remote_addr = remote.addr;
	wr->rkey = remote.key;
	wr->wr.sg_list = wr->wr.num_sge ? sge : NULL;
}

/* A read on iWARP: the memory is registered first, and invalidated with it. */
static int vrb_wr_post_read(struct vrb_ep *ep, struct vrb_txop *op,
			    struct ib_rdma_wr *wr, struct ib_sge *sge)
{
	int err;

	err = vrb_read_mr_register(ep, op, wr->wr.num_sge, sge->length,
				   wr->wr.send_flags & IB_SEND_FENCE, sge);
	if (err)
		return err;
	vrb_stat_inc(&ep->stats.tx_wrs);
	wr->wr.opcode = IB_WR_RDMA_READ_WITH_INV;
	wr->wr.ex.invalidate_rkey = sge->lkey;
	wr->wr.send_flags &= ~IB_SEND_FENCE;
	wr->wr.num_sge = 1;
	return ib_post_send(ep->qp, &wr->wr, NULL);
}

/**
 * vrb_wr_post_atomic - post what fetches one element
 * @ep: the endpoint, with tx_lock held
 * @op: VRB_ADD or VRB_SWAP
 * @post: operands, and the peer's memory
 *
 * Always signaled: devices may complete it after younger operations.
 *
 * Context: any.
 * Return: 0 or the device's error.
 */
int vrb_wr_post_atomic(struct vrb_ep *ep, struct vrb_txop *op,
		       const struct vrb_post *post)
{
	struct ib_sge sge = {
		.addr = op->map.segs[0].addr, .length = op->map.segs[0].len,
		.lkey = ep->dom->pd->local_dma_lkey,
	};
	struct ib_atomic_wr wr = {
		.wr = {
			.wr_cqe		= &op->cqe,
			.opcode		= IB_WR_ATOMIC_FETCH_AND_ADD,
			.send_flags	= IB_SEND_SIGNALED,
			.sg_list	= &sge,
			.num_sge	= 1,
		},
		.remote_addr	= post->rma->addr,
		.rkey		= post->rma->key,
		.compare_add	= post->operand,
	};
	int err;

	if (op->op == VRB_SWAP) {
		wr.wr.opcode = IB_WR_ATOMIC_CMP_AND_SWP;
		wr.compare_add = post->compare;
		wr.swap = post->operand;
	}
	if (op->flags & FI_FENCE)
		wr.wr.send_flags |= IB_SEND_FENCE;
	err = ib_post_send(ep->qp, &wr.wr, NULL);
	if (!err)
		vrb_stat_inc(&ep->stats.tx_wrs);
	return err;
}

/**
 * vrb_wr_post_chain - post the work requests of any kind of vector
 * @ep: the endpoint, with tx_lock held
 * @op: the operation, counted by vrb_wr_count()
 * @msg: what was posted
 * @post: the peer's memory
 *
 * Context: any.
 * Return: 0, also if a request that is not the first has been refused: then the
 * endpoint ends; or the device's error for the first.
 */
int vrb_wr_post_chain(struct vrb_ep *ep, struct vrb_txop *op,
		      const struct fi_msg *msg, const struct vrb_post *post)
{
	struct ib_sge sge[KOFI_IOV_MAX];
	struct vrb_chain c;
	unsigned int i;
	int err;

	vrb_chain_init(&c, ep, op, post);
	for (i = 0; i < op->parts; i++) {
		bool last = i == op->parts - 1;
		struct ib_rdma_wr wr = {
			.wr.wr_cqe = last ? &op->cqe : &op->part,
		};

		if (last ? op->signaled : vrb_tx_in_place(ep, op))
			wr.wr.send_flags |= IB_SEND_SIGNALED;
		if (!i && op->flags & FI_FENCE)
			wr.wr.send_flags |= IB_SEND_FENCE;
		vrb_wr_opcode(&wr, op->op, op->flags, msg, last);
		vrb_wr_segs(ep, op, &c, &wr, sge);
		err = c.read_mrs ? vrb_wr_post_read(ep, op, &wr, sge) :
				ib_post_send(ep->qp, &wr.wr, NULL);
		if (!err) {
			vrb_stat_inc(&ep->stats.tx_wrs);
			continue;
		}
		if (!i && !op->read_mrs)
			return err;
		op->status = IB_WC_GENERAL_ERR;
		op->signaled = true;
		vrb_ep_abort(ep, EIO);
		return 0;
	}
	return 0;
}

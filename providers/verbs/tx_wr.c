// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Work requests of transmits that are not one request with one segment; tx.c
 * builds those.
 *
 * Chains
 *
 * A read or write becomes a chain of work requests if its memory, on either side,
 * has more segments than a work request can have. Each request covers at most
 * one segment of the peer's memory. The last one completes the
 * operation. The others are reported only on failure, to the operation's second
 * struct ib_cqe.
 *
 * Reads on iWARP
 *
 * Memory that is read into needs a region (read_mr.c). Each part of such a read
 * is two work requests: the first registers the memory, the second reads and
 * invalidates the region.
 *
 * Lists
 *
 * The work requests of a chain are posted in lists, with one doorbell each. So
 * are operations with FI_MORE, with the first one after them that lacks the
 * flag, and registrations of a pool's regions. Operations and registrations
 * wait for at most a tick, even if nothing follows.
 *
 * Failures
 *
 * If the device refuses the first work request of the current post, the post
 * fails. Other work requests belong to operations that have been accepted, or
 * of which the peer may have seen a part. If the device has no room for them,
 * they wait for another tick, and all later ones behind them. If it refuses
 * them for another reason, the connection fails, and with it the operations;
 * nothing more is posted, as that would leave a gap. An operation fails in the
 * same way if its chain is longer than a list and the device has no room for a
 * whole list.
 */
#include <linux/slab.h>

#include "tx.h"

/**
 * vrb_links_init - allocate room for work requests that are posted together
 * @ep: an endpoint after vrb_ep_size()
 * @node: NUMA node
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int vrb_links_init(struct vrb_ep *ep, int node)
{
	ep->tx.links = kcalloc_node(VRB_LINKS,
				    struct_size_t(struct vrb_link, sge,
						  ep->limits.send_sge), GFP_KERNEL, node);
	return ep->tx.links ? 0 : -ENOMEM;
}

static struct ib_send_wr *vrb_link_first(struct vrb_link *link)
{
	return link->reg.mr ? &link->reg.wr : &link->wr.wr;
}

static struct ib_send_wr *vrb_link_last(struct vrb_link *link)
{
	return link->op ? &link->wr.wr : &link->reg.wr;
}

/*
 * Fail the operations of waiting work requests from index @i on, which were
 * accepted, and all later posts. Regions are ended with the endpoint.
 */
static void vrb_links_fail(struct vrb_ep *ep, unsigned int i, int status)
{
	for (; i < ep->tx.nr_links; i++) {
		struct vrb_txop *op = vrb_link(ep, i)->op;

		if (op && !op->status)
			op->status = status;
	}
	ep->tx.nr_links = 0;
	ep->tx.first_link = 0;
	vrb_tx_set_closed(ep);
}

/* Handle a list of which the device refused @bad with @err, and took all before it. */
static int vrb_links_refused(struct vrb_ep *ep, unsigned int own,
			     const struct ib_send_wr *bad, int err)
{
	const bool ended = err == -ENOTCONN;
	struct vrb_link *link = NULL;
	const struct vrb_txop *op;
	unsigned int i, ops = 0;

	for (i = ep->tx.first_link; i < ep->tx.nr_links; i++) {
		link = vrb_link(ep, i);
		if (bad == vrb_link_first(link) || bad == &link->wr.wr)
			break;
		ops += !!link->op;
	}
	if (i == ep->tx.nr_links) {
		/* the device does not say which one, so it may be any */
		i = ep->tx.first_link;
		goto fail;
	}
	vrb_stat_add(&ep->tx.stats.wrs, ops);
	if (i == own && bad == vrb_link_first(link)) {
		ep->tx.nr_links = 0;
		ep->tx.first_link = 0;
		return err;
	}
	if (err == -ENOMEM || err == -ENOBUFS) {
		/* the registration ahead of it was posted */
		if (bad == &link->wr.wr)
			link->reg.mr = NULL;
		ep->tx.first_link = i;
		vrb_retry(&ep->retry);
		/* a refusal may be due to inline data: report it to the caller */
		op = own < VRB_LINKS ? vrb_link(ep, own)->op : NULL;
		if (!op || !op->inlined)
			return 0;
		ep->tx.nr_links = own;
		return err;
	}
fail:
	vrb_links_fail(ep, i, ended ? IB_WC_WR_FLUSH_ERR : IB_WC_GENERAL_ERR);
	vrb_ep_abort(ep, ended ? ESHUTDOWN : EIO);
	return 0;
}

/**
 * vrb_links_post - post the work requests that wait
 * @ep: the endpoint, with tx.lock held and work requests waiting
 * @own: index of the first work request of the current post; VRB_LINKS if a
 *	part of that has been posted, or there is none
 *
 * Context: any.
 * Return: 0, also if the device refused some that were accepted before: they
 * are posted later, or the endpoint fails. Otherwise the device's error, and
 * all but the current post has been posted.
 */
int vrb_links_post(struct vrb_ep *ep, unsigned int own)
{
	const unsigned int first = ep->tx.first_link, nr = ep->tx.nr_links;
	const struct ib_send_wr *bad = NULL;
	struct ib_send_wr *next = NULL;
	unsigned int i, ops = 0;
	int err;

	lockdep_assert_held(&ep->tx.lock);

	for (i = nr; i-- > first;) {
		struct vrb_link *link = vrb_link(ep, i);

		ops += !!link->op;
		vrb_link_last(link)->next = next;
		next = vrb_link_first(link);
	}
	err = ib_post_send(ep->qp, next, &bad);
	if (err)
		return vrb_links_refused(ep, own, bad, err);
	vrb_stat_add(&ep->tx.stats.wrs, ops);
	ep->tx.nr_links = 0;
	ep->tx.first_link = 0;
	return 0;
}

/**
 * vrb_links_reg - register a region together with later work requests
 * @ep: the endpoint, with tx.lock held
 * @wr: registration of the region
 *
 * Context: any.
 * Return: 0; -ENOBUFS if the device has no room for those that wait, or its
 * error.
 */
int vrb_links_reg(struct vrb_ep *ep, const struct ib_reg_wr *wr)
{
	const unsigned int own = ep->tx.nr_links;
	struct vrb_link *link = vrb_link(ep, own);

	if (own == VRB_LINKS)
		return -ENOBUFS;
	ep->tx.nr_links++;
	link->op = NULL;
	link->reg = *wr;
	if (ep->tx.nr_links == VRB_LINKS)
		return vrb_links_post(ep, own);
	vrb_retry(&ep->retry);
	return 0;
}

/**
 * vrb_links_flush_all - post waiting work requests, so that others can follow
 * @ep: the endpoint, with tx.lock held and work requests waiting
 *
 * Context: any.
 * Return: 0; -ENOBUFS if the device has no room for all of them now, and the
 * post will be retried; -ESHUTDOWN if the endpoint has failed.
 */
int vrb_links_flush_all(struct vrb_ep *ep)
{
	vrb_links_post(ep, VRB_LINKS);
	if (ep->tx.nr_links)
		return -ENOBUFS;
	return READ_ONCE(ep->end.err) ? -ESHUTDOWN : 0;
}

/**
 * vrb_links_drop - fail the work requests that wait
 * @ep: an endpoint that is being ended, with tx.lock held
 *
 * Context: any.
 */
void vrb_links_drop(struct vrb_ep *ep)
{
	lockdep_assert_held(&ep->tx.lock);

	vrb_links_fail(ep, ep->tx.first_link, IB_WC_WR_FLUSH_ERR);
}

/* Position in the memory of an operation, on both sides */
struct vrb_chain {
	struct vrb_walk		w;
	const struct vrb_post	*post;
	struct vrb_read_mrs	*read_mrs; /* regions of a read, or NULL */
	unsigned int		seg;	/* index of the peer's segment */
	size_t			off;	/* bytes into that segment */
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
 * Fill in the local segments of the next work request, and count their bytes.
 * It covers at most one segment of the peer's memory, returned in @remote.
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
	return op->op == VRB_READ ? ep->limits.read_sge : ep->limits.send_sge;
}

/**
 * vrb_wr_count - count the work requests of an operation
 * @ep: the endpoint
 * @op: the operation with its memory; its parts and wrs are set
 * @post: the peer's memory
 *
 * Context: any.
 * Return: 0; -EINVAL for a message of more segments than a work request can
 * have; -EMSGSIZE for more work requests than one operation may take;
 * -EOPNOTSUPP for an operation that the device does not support.
 */
int vrb_wr_count(struct vrb_ep *ep, struct vrb_txop *op,
		 const struct vrb_post *post)
{
	unsigned int max = vrb_wr_sges(ep, op);
	unsigned int parts = 0, wrs;
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
	for (; c.seg < post->rma_count; parts++)
		vrb_chain_next(&c, NULL, max, 0, &remote);
	wrs = c.read_mrs ? 2 * parts : parts;
	/* unsignaled ones free nothing until a completion, so leave half of the queue */
	if (wrs > ep->limits.sq_size / 2 || (c.read_mrs && parts > VRB_READ_MRS))
		return -EMSGSIZE;
	/* half of limits.sq_size fits into 16 bits */
	op->parts = parts;
	op->wrs = wrs;
	return 0;
}

/* Fill in the segments of the next work request. */
static void vrb_wr_segs(struct vrb_ep *ep, struct vrb_txop *op,
			struct vrb_chain *c, struct ib_rdma_wr *wr,
			struct ib_sge *sge)
{
	u32 lkey = ep->dom->lkey;
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

/* Register the memory of a read on iWARP ahead of it; the read invalidates the region. */
static int vrb_wr_read(struct vrb_ep *ep, struct vrb_txop *op,
		       struct vrb_link *link)
{
	struct ib_send_wr *wr = &link->wr.wr;
	int err;

	err = vrb_read_mr_prepare(ep, op, wr->num_sge, link->sge->length,
				  wr->send_flags & IB_SEND_FENCE, &link->reg,
				  link->sge);
	if (err)
		return err;
	link->reg.wr.next = wr;
	wr->opcode = IB_WR_RDMA_READ_WITH_INV;
	wr->ex.invalidate_rkey = link->sge->lkey;
	wr->send_flags &= ~IB_SEND_FENCE;
	wr->num_sge = 1;
	return 0;
}

/**
 * vrb_wr_post_atomic - post an atomic operation that fetches an element
 * @ep: the endpoint, with tx.lock held
 * @op: VRB_ADD or VRB_SWAP
 * @post: operands, and the peer's memory
 *
 * The work request is always signaled, because devices may complete it after
 * later operations.
 *
 * Context: any.
 * Return: 0 or the device's error.
 */
int vrb_wr_post_atomic(struct vrb_ep *ep, struct vrb_txop *op,
		       const struct vrb_post *post)
{
	struct ib_sge sge = {
		.addr = op->map.segs[0].addr, .length = op->map.segs[0].len,
		.lkey = ep->dom->lkey,
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
	err = vrb_links_flush(ep) ?: ib_post_send(ep->qp, &wr.wr, NULL);
	if (!err)
		vrb_stat_inc(&ep->tx.stats.wrs);
	return err;
}

static int vrb_wr_link(struct vrb_ep *ep, struct vrb_txop *op,
		       const struct fi_msg *msg, struct vrb_chain *c,
		       unsigned int part)
{
	struct vrb_link *link = vrb_link(ep, ep->tx.nr_links);
	bool last = part == op->parts - 1;

	if (ep->tx.nr_links == VRB_LINKS)
		return -ENOBUFS;
	link->op = op;
	link->reg.mr = NULL;
	link->wr = (struct ib_rdma_wr) {
		.wr.wr_cqe = last ? &op->cqe : &op->part,
	};
	if (last ? op->signaled : vrb_tx_in_place(ep, op))
		link->wr.wr.send_flags |= IB_SEND_SIGNALED;
	if (!part && op->flags & FI_FENCE)
		link->wr.wr.send_flags |= IB_SEND_FENCE;
	vrb_wr_opcode(&link->wr, op->op, op->flags, msg, last);
	vrb_wr_segs(ep, op, c, &link->wr, link->sge);
	if (c->read_mrs) {
		int err = vrb_wr_read(ep, op, link);

		if (err)
			return err;
	}
	ep->tx.nr_links++;
	return 0;
}

/**
 * vrb_wr_post_chain - post the work requests of an operation with any kind of
 * vector
 * @ep: the endpoint, with tx.lock held
 * @op: the operation, counted by vrb_wr_count()
 * @msg: message as passed by the consumer
 * @post: the peer's memory
 *
 * Context: any.
 * Return: 0, also if the device refused a work request that is not the first:
 * it is posted later, or the endpoint fails. Otherwise an error, and nothing
 * has been posted.
 */
int vrb_wr_post_chain(struct vrb_ep *ep, struct vrb_txop *op,
		      const struct fi_msg *msg, const struct vrb_post *post)
{
	unsigned int i, own = ep->tx.nr_links;
	struct vrb_chain c;
	int err;

	if (op->parts > VRB_LINKS - own) {
		err = vrb_links_flush(ep);
		if (err)
			return err;
		own = 0;
	}
	vrb_chain_init(&c, ep, op, post);
	for (i = 0; i < op->parts && !op->status; i++) {
		err = vrb_wr_link(ep, op, msg, &c, i);
		if (err && own < VRB_LINKS)
			ep->tx.nr_links = own;
		if (err)
			goto refused;
		if (ep->tx.nr_links < VRB_LINKS &&
		    (i < op->parts - 1 || op->flags & FI_MORE))
			continue;
		err = vrb_links_post(ep, own);
		if (err)
			goto refused;
		own = VRB_LINKS;
	}
	if (ep->tx.nr_links)
		vrb_retry(&ep->retry);
	return 0;

refused:
	if (own < VRB_LINKS) {
		vrb_read_mrs_put(ep, op);
		return err;
	}
	op->status = IB_WC_GENERAL_ERR;
	vrb_links_fail(ep, ep->tx.first_link, IB_WC_GENERAL_ERR);
	vrb_ep_abort(ep, EIO);
	return 0;
}

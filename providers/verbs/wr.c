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
 * Together
 *
 * The work requests of a chain are posted in lists, for each of which the device
 * is told once; so are those of operations with FI_MORE, and the first without,
 * and registrations of a pool's regions. The latter are held for no longer than a
 * tick, also if nothing follows.
 *
 * Failures
 *
 * If the device refuses the first work request of the operation that is just
 * being posted, so is the operation. Others belong to operations that have been
 * accepted, or of which the peer may have seen a part. If the device has no room
 * for them now they are held for another tick, and all that follow behind them.
 * If it refuses them for another reason, the connection ends, and with it the
 * operations; nothing more is posted, as there would be a gap. That is also how an
 * operation ends whose chain is longer than a list, if the device has no room for
 * all of a list.
 */
#include <linux/slab.h>

#include "tx.h"

/**
 * vrb_links_init - make room for work requests that are posted together
 * @ep: an endpoint whose queue pair has been sized
 * @node: NUMA node
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int vrb_links_init(struct vrb_ep *ep, int node)
{
	ep->links = kcalloc_node(VRB_LINKS,
				 struct_size_t(struct vrb_link, sge,
					       ep->send_sge), GFP_KERNEL, node);
	return ep->links ? 0 : -ENOMEM;
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
 * The device will not have those from @i on, which were accepted, nor others.
 * Regions end with the endpoint.
 */
static void vrb_links_fail(struct vrb_ep *ep, unsigned int i, int status)
{
	for (; i < ep->nr_links; i++) {
		struct vrb_txop *op = vrb_link(ep, i)->op;

		if (op && !op->status)
			op->status = status;
	}
	ep->nr_links = 0;
	ep->first_link = 0;
	WRITE_ONCE(ep->tx_closed, true);
}

/* The device has refused @bad with @err, and has taken what is before. */
static int vrb_links_refused(struct vrb_ep *ep, unsigned int own,
			     const struct ib_send_wr *bad, int err)
{
	const bool ended = err == -ENOTCONN;
	struct vrb_link *link = NULL;
	const struct vrb_txop *op;
	unsigned int i, ops = 0;

	for (i = ep->first_link; i < ep->nr_links; i++) {
		link = vrb_link(ep, i);
		if (bad == vrb_link_first(link) || bad == &link->wr.wr)
			break;
		ops += !!link->op;
	}
	if (i == ep->nr_links) {
		/* it does not say which, so it may have been any */
		i = ep->first_link;
		goto fail;
	}
	vrb_stat_add(&ep->stats.tx_wrs, ops);
	if (i == own && bad == vrb_link_first(link)) {
		ep->nr_links = 0;
		ep->first_link = 0;
		return err;
	}
	if (err == -ENOMEM || err == -ENOBUFS) {
		/* a region ahead of it has been registered */
		if (bad == &link->wr.wr)
			link->reg.mr = NULL;
		ep->first_link = i;
		vrb_retry(&ep->retry);
		/* what it may refuse for its bytes is not accepted unseen */
		op = own < VRB_LINKS ? vrb_link(ep, own)->op : NULL;
		if (!op || !op->inlined)
			return 0;
		ep->nr_links = own;
		return err;
	}
fail:
	vrb_links_fail(ep, i, ended ? IB_WC_WR_FLUSH_ERR : IB_WC_GENERAL_ERR);
	vrb_ep_abort(ep, ended ? ESHUTDOWN : EIO);
	return 0;
}

/**
 * vrb_links_post - post the work requests that wait
 * @ep: the endpoint, with tx_lock held and some waiting
 * @own: the first of an operation that is just being posted; VRB_LINKS if some
 *	of that has been posted, or there is none
 *
 * Context: any.
 * Return: 0, also if some were refused: these go later, or the endpoint ends; or
 * the device's error, and all but the operation has been posted.
 */
int vrb_links_post(struct vrb_ep *ep, unsigned int own)
{
	const unsigned int first = ep->first_link, nr = ep->nr_links;
	const struct ib_send_wr *bad = NULL;
	struct ib_send_wr *next = NULL;
	unsigned int i, ops = 0;
	int err;

	lockdep_assert_held(&ep->tx_lock);

	for (i = nr; i-- > first;) {
		struct vrb_link *link = vrb_link(ep, i);

		ops += !!link->op;
		vrb_link_last(link)->next = next;
		next = vrb_link_first(link);
	}
	err = ib_post_send(ep->qp, next, &bad);
	if (err)
		return vrb_links_refused(ep, own, bad, err);
	vrb_stat_add(&ep->stats.tx_wrs, ops);
	ep->nr_links = 0;
	ep->first_link = 0;
	return 0;
}

/**
 * vrb_links_reg - have a region registered with the work requests that follow
 * @ep: the endpoint, with tx_lock held
 * @wr: registers it
 *
 * Context: any.
 * Return: 0; -ENOBUFS if the device has no room for those that wait, or its error.
 */
int vrb_links_reg(struct vrb_ep *ep, const struct ib_reg_wr *wr)
{
	const unsigned int own = ep->nr_links;
	struct vrb_link *link = vrb_link(ep, own);

	if (own == VRB_LINKS)
		return -ENOBUFS;
	ep->nr_links++;
	link->op = NULL;
	link->reg = *wr;
	if (ep->nr_links == VRB_LINKS)
		return vrb_links_post(ep, own);
	vrb_retry(&ep->retry);
	return 0;
}

/**
 * vrb_links_flush_all - post what waits, so that other work requests can follow
 * @ep: the endpoint, with tx_lock held and some waiting
 *
 * Context: any.
 * Return: 0; -ENOBUFS if the device has no room for all of them now, and will be
 * asked again; -ESHUTDOWN if the endpoint ends.
 */
int vrb_links_flush_all(struct vrb_ep *ep)
{
	vrb_links_post(ep, VRB_LINKS);
	if (ep->nr_links)
		return -ENOBUFS;
	return READ_ONCE(ep->dead) ? -ESHUTDOWN : 0;
}

/**
 * vrb_links_drop - the device will not have the work requests that wait
 * @ep: an endpoint that is ending, with tx_lock held
 *
 * Context: any.
 */
void vrb_links_drop(struct vrb_ep *ep)
{
	lockdep_assert_held(&ep->tx_lock);

	vrb_links_fail(ep, ep->first_link, IB_WC_WR_FLUSH_ERR);
}

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
	/* unsignaled ones give nothing back, and leave half of the queue free */
	if (wrs > ep->sq_size / 2 || (c.read_mrs && parts > VRB_READ_MRS))
		return -EMSGSIZE;
	/* which 16 bits are enough for now */
	op->parts = parts;
	op->wrs = wrs;
	return 0;
}

/* Segments of the next work request */
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

/* A read on iWARP: the memory is registered first, and invalidated with it. */
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
		vrb_stat_inc(&ep->stats.tx_wrs);
	return err;
}

static int vrb_wr_link(struct vrb_ep *ep, struct vrb_txop *op,
		       const struct fi_msg *msg, struct vrb_chain *c,
		       unsigned int part)
{
	struct vrb_link *link = vrb_link(ep, ep->nr_links);
	bool last = part == op->parts - 1;

	if (ep->nr_links == VRB_LINKS)
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
	ep->nr_links++;
	return 0;
}

/**
 * vrb_wr_post_chain - post the work requests of any kind of vector
 * @ep: the endpoint, with tx_lock held
 * @op: the operation, counted by vrb_wr_count()
 * @msg: what was posted
 * @post: the peer's memory
 *
 * Context: any.
 * Return: 0, also if a request that is not the first has been refused: it goes
 * later, or the endpoint ends; or an error, and none has been posted.
 */
int vrb_wr_post_chain(struct vrb_ep *ep, struct vrb_txop *op,
		      const struct fi_msg *msg, const struct vrb_post *post)
{
	unsigned int i, own = ep->nr_links;
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
			ep->nr_links = own;
		if (err)
			goto refused;
		if (ep->nr_links < VRB_LINKS &&
		    (i < op->parts - 1 || op->flags & FI_MORE))
			continue;
		err = vrb_links_post(ep, own);
		if (err)
			goto refused;
		own = VRB_LINKS;
	}
	if (ep->nr_links)
		vrb_retry(&ep->retry);
	return 0;

refused:
	if (own < VRB_LINKS) {
		vrb_read_mrs_put(ep, op);
		return err;
	}
	op->status = IB_WC_GENERAL_ERR;
	vrb_links_fail(ep, ep->first_link, IB_WC_GENERAL_ERR);
	vrb_ep_abort(ep, EIO);
	return 0;
}

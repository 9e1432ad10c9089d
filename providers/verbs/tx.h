/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Transmits: shared declarations, and the fast path.
 *
 * The fast path takes operations with one segment in the kernel's linear mapping
 * and one segment of the peer's memory. The flags must be common ones, and the
 * send queue must have room. It is inlined into each kind of post (tx.c, rma_post.c),
 * so that the compiler removes tests of the kind. vrb_tx_accept_any() takes all
 * other operations, and those that the fast path could not post.
 */
#ifndef _KOFI_VERBS_TX_H
#define _KOFI_VERBS_TX_H

#include "verbs.h"
#include "verbs_trace.h"

enum vrb_op {
	VRB_SEND,
	VRB_WRITE,
	VRB_READ,
	VRB_STORE,	/* atomic write */
	VRB_ADD,	/* fetch and add */
	VRB_SWAP,	/* compare and swap */
};

/* Test whether the operation writes a result to local memory. */
static inline bool vrb_op_fetches(enum vrb_op op)
{
	return op == VRB_READ || op == VRB_ADD || op == VRB_SWAP;
}

/**
 * struct vrb_post - arguments of a post in addition to struct fi_msg
 * @op: kind of operation
 * @rma: segments of the peer's memory
 * @rma_count: number of elements of @rma
 * @operand: operand of VRB_ADD and VRB_SWAP
 * @compare: compare value of VRB_SWAP
 */
struct vrb_post {
	enum vrb_op			op;
	const struct fi_rma_iov		*rma;
	size_t				rma_count;
	u64				operand;
	u64				compare;
};

/**
 * struct vrb_txop - transmit
 * @cqe: completion handler of the last work request
 * @ep: endpoint of the transmit
 * @context: context of the consumer, returned in the completion
 * @flags: flags of the post
 * @len: length in bytes
 * @seq: value of vrb_ep_tx.posted after the post
 * @op: enum vrb_op
 * @status: enum ib_wc_status of the first failure
 * @posted: the operation has been posted and has not completed; set under
 *	vrb_ep_tx.lock. A completion, which takes no lock, clears it, so it is not one
 *	of the bits that follow. vrb_tx_flush() clears it under the lock after the last
 *	completion
 * @signaled: the last work request is signaled; set before the device gets it.
 *	Otherwise the operation is on a list of unsignaled operations until it
 *	completes.
 * @inlined: the work request carries the payload
 * @single: the operation is one work request with one segment
 * @wrs: number of work requests, including registrations for reads on iWARP
 * @parts: number of work requests that transfer data
 * @next: list entry of an unused or unsignaled operation; for a signaled
 *	operation, the list of unsignaled operations before it, the last one
 *	first
 * @node: list entry of an operation that is flushed
 * @part: completion handler of the work requests before the last
 * @read_mrs: iWARP: regions of a read
 * @map: memory of the operation; followed by room for the payload of an inject
 *
 * Most operations need only the first 64 bytes, and of the next 64 those up to
 * the first segment.
 */
struct vrb_txop {
	struct ib_cqe		cqe;
	struct vrb_ep		*ep;
	void			*context;
	u64			flags;
	u32			len;
	u32			seq;
	u8			op;
	u8			status;
	bool			posted;
	bool			signaled:1;
	bool			inlined:1;
	bool			single:1;
	u16			wrs;
	u16			parts;
	union {
		struct llist_node	next;
		struct list_head	node;
	};
	struct ib_cqe		part;
	struct vrb_read_mr	*read_mrs;
	struct vrb_map		map;
};

static inline struct vrb_txop *vrb_txop(struct llist_node *node)
{
	return llist_entry(node, struct vrb_txop, next);
}

static inline u8 *vrb_txop_inject(struct vrb_txop *op)
{
	return (u8 *)&op->map.segs[op->map.room];
}

/**
 * struct vrb_link - work request that waits for others
 * @op: operation of the work request; NULL: only @reg is posted
 * @reg: registration ahead of @wr, if @reg.mr is set
 * @wr: work request of the operation
 * @sge: segments of @wr
 */
struct vrb_link {
	struct vrb_txop		*op;
	struct ib_reg_wr	reg;
	struct ib_rdma_wr	wr;
	struct ib_sge		sge[];
};

static inline struct vrb_link *vrb_link(const struct vrb_ep *ep, unsigned int i)
{
	return ep->tx.links + i * struct_size_t(struct vrb_link, sge, ep->limits.send_sge);
}

int vrb_links_init(struct vrb_ep *ep, int node);
int vrb_links_post(struct vrb_ep *ep, unsigned int own);
int vrb_links_reg(struct vrb_ep *ep, const struct ib_reg_wr *wr);
int vrb_links_flush_all(struct vrb_ep *ep);
void vrb_links_drop(struct vrb_ep *ep);

/*
 * Post all waiting work requests, because a post must not overtake them. With
 * tx.lock held.
 */
static inline int vrb_links_flush(struct vrb_ep *ep)
{
	return unlikely(ep->tx.nr_links) ? vrb_links_flush_all(ep) : 0;
}

int vrb_wr_count(struct vrb_ep *ep, struct vrb_txop *op,
		 const struct vrb_post *post);
int vrb_wr_post_atomic(struct vrb_ep *ep, struct vrb_txop *op,
		       const struct vrb_post *post);
int vrb_wr_post_chain(struct vrb_ep *ep, struct vrb_txop *op,
		      const struct fi_msg *msg, const struct vrb_post *post);

/* @last: this is the last work request of the operation */
static __always_inline void vrb_wr_opcode(struct ib_rdma_wr *wr,
					  enum vrb_op op, u64 flags,
					  const struct fi_msg *msg, bool last)
{
	bool data = last && flags & FI_REMOTE_CQ_DATA;

	switch (op) {
	case VRB_SEND:
		wr->wr.opcode = data ? IB_WR_SEND_WITH_IMM : IB_WR_SEND;
		if (flags & KOFI_REMOTE_INV) {
			wr->wr.opcode = IB_WR_SEND_WITH_INV;
			wr->wr.ex.invalidate_rkey = msg->inv_key;
		}
		break;
	case VRB_READ:
		wr->wr.opcode = IB_WR_RDMA_READ;
		break;
	default:
		wr->wr.opcode = data ? IB_WR_RDMA_WRITE_WITH_IMM :
				       IB_WR_RDMA_WRITE;
		break;
	}
	if (data)
		wr->wr.ex.imm_data = cpu_to_be32(msg->data);
}

/* Test whether the device needs the memory longer than usual, so that it must signal. */
static inline bool vrb_tx_in_place(const struct vrb_ep *ep,
				   const struct vrb_txop *op)
{
	return ep->dom->quirks & VRB_QUIRK_SEND_IN_PLACE &&
	       op->len >= PAGE_SIZE && !vrb_op_fetches(op->op);
}

/* Refuse transmits from now on. With tx.lock held. */
static inline void vrb_tx_set_closed(struct vrb_ep *ep)
{
	lockdep_assert_held(&ep->tx.lock);

	if (ep->tx.state == VRB_TX_OPEN)
		WRITE_ONCE(ep->tx.state, VRB_TX_CLOSED);
}

int vrb_tx_refused(struct vrb_ep *ep, int err);
ssize_t vrb_tx_accept_any(struct vrb_ep *ep, const struct fi_msg *msg,
			  const struct vrb_post *post, u64 flags);
struct llist_node *vrb_tx_more(struct vrb_ep *ep);

/* Take the most recently freed record. With tx.lock held. */
static __always_inline struct vrb_txop *vrb_tx_get(struct vrb_ep *ep)
{
	struct llist_node *node = ep->tx.ops.free ?: vrb_tx_more(ep);

	if (unlikely(!node))
		return NULL;
	ep->tx.ops.free = node->next;
	return vrb_txop(node);
}

/* Free the record of an operation that was not posted. With tx.lock held. */
static inline void vrb_tx_put(struct vrb_ep *ep, struct vrb_txop *op)
{
	op->next.next = ep->tx.ops.free;
	ep->tx.ops.free = &op->next;
}

/*
 * Test whether the send queue has room for @wrs work requests. With tx.lock
 * held. Completed ones are counted only when the last known limit does not
 * suffice.
 */
static __always_inline bool vrb_tx_room(struct vrb_ep *ep, u32 wrs)
{
	if (likely((s32)(ep->tx.limit - ep->tx.posted - wrs) >= 0))
		return true;
	ep->tx.limit = READ_ONCE(ep->tx_done.wrs) + ep->limits.sq_size;
	return (s32)(ep->tx.limit - ep->tx.posted - wrs) >= 0;
}

/* Assign member by member, because the compiler would clear the whole structure first. */
static __always_inline void vrb_tx_start(struct vrb_txop *op, enum vrb_op kind,
					 void *context, u64 flags, size_t len,
					 bool posted)
{
	op->context = context;
	op->flags = flags;
	op->len = len;
	op->op = kind;
	op->status = IB_WC_SUCCESS;
	op->posted = posted;
	op->signaled = posted;
	op->inlined = false;
	op->single = true;
	op->wrs = 1;
	op->parts = 1;
}

/* Attach the preceding unsignaled operations to a signaled one: they complete with it. */
static __always_inline void vrb_tx_adopt(struct vrb_ep *ep, struct vrb_txop *op)
{
	op->next.next = ep->tx.unsignaled;
	if (unlikely(ep->tx.unreported)) {
		ep->tx.unsignaled = NULL;
		ep->tx.unreported = 0;
	}
}

/* Detach them from a refused operation: they wait for the next. Restart the count. */
static inline void vrb_tx_disown(struct vrb_ep *ep, const struct vrb_txop *op)
{
	ep->tx.unsignaled = op->next.next;
	ep->tx.unreported = !!ep->tx.unsignaled;
}

/*
 * Fill in one work request with one segment; the caller sets opcode and related
 * fields.
 */
static __always_inline void vrb_tx_fill_one(struct vrb_ep *ep,
					    struct vrb_txop *op,
					    const struct fi_rma_iov *rma,
					    u64 addr, u32 len,
					    struct ib_rdma_wr *wr,
					    struct ib_sge *sge)
{
	sge->addr = addr;
	sge->length = len;
	sge->lkey = ep->dom->lkey;
	wr->wr.next = NULL;
	wr->wr.wr_cqe = &op->cqe;
	wr->wr.sg_list = sge;
	wr->wr.num_sge = 1;
	wr->wr.send_flags = IB_SEND_SIGNALED;
	wr->wr.ex.imm_data = 0;
	wr->remote_addr = rma ? rma->addr : 0;
	wr->rkey = rma ? rma->key : 0;
}

/**
 * struct vrb_usual - arguments of a post, as far as the fast path needs them
 * @kv: local memory
 * @count: number of elements of @kv; the fast path takes 1
 * @vec: type of vector; the fast path takes KOFI_KVEC
 * @context: context of the consumer, returned in the completion
 * @rma: the peer's memory; NULL for a message
 * @rma_count: number of elements of @rma; the fast path takes 1
 */
struct vrb_usual {
	const struct kvec		*kv;
	size_t				count;
	enum kofi_vec			vec;
	void				*context;
	const struct fi_rma_iov		*rma;
	size_t				rma_count;
};

/* Test whether the endpoint was opened for RMA in the direction of the operation. */
static __always_inline bool vrb_may_rma(const struct vrb_ep *ep, enum vrb_op op)
{
	return kofi_ep_may(&ep->base,
			   FI_RMA | (op == VRB_READ ? FI_READ : FI_WRITE));
}

static __always_inline bool vrb_tx_is_usual(const struct vrb_ep *ep,
					    enum vrb_op kind,
					    const struct vrb_usual *u,
					    u64 flags)
{
	const u64 usual = kind == VRB_READ ? ep->limits.tx_usual & VRB_FETCH_FLAGS :
					     ep->limits.tx_usual;

	/* deferred receives go first: the answer may need one of them */
	if (flags & ~usual || READ_ONCE(ep->base.state) != KOFI_EP_CONNECTED ||
	    (ep->base.tx_selective && !(flags & FI_COMPLETION)) ||
	    !list_empty(&ep->rxq.deferred) ||
	    !vrb_kvec_is_one(u->kv, u->count, u->vec, ep->limits.tx_one_max))
		return false;
	if (kind == VRB_SEND)
		return true;
	if (kind == VRB_READ && (ep->iwarp || !ep->limits.initiator_depth))
		return false;
	return vrb_may_rma(ep, kind) && u->rma_count == 1 && u->rma &&
	       u->rma->len == u->kv->iov_len && u->rma->key <= U32_MAX;
}

/* Get a record if no work requests wait and the queue has room. With tx.lock held. */
static __always_inline struct vrb_txop *vrb_tx_get_usual(struct vrb_ep *ep)
{
	if (unlikely(ep->tx.state != VRB_TX_OPEN || ep->tx.nr_links ||
		     !vrb_tx_room(ep, 1)))
		return NULL;
	return vrb_tx_get(ep);
}

/* Post a fast-path operation. With tx.lock held. */
static __always_inline int vrb_tx_submit_usual(struct vrb_ep *ep,
					       struct vrb_txop *op,
					       enum vrb_op kind,
					       const struct vrb_usual *u,
					       u64 addr, u64 flags)
{
	const u32 len = u->kv->iov_len;
	struct ib_rdma_wr wr __uninitialized;
	struct ib_sge sge __uninitialized;
	int err;

	vrb_tx_start(op, kind, u->context, flags, len, true);
	vrb_map_set(&op->map, addr, len,
		    kind == VRB_READ ? DMA_FROM_DEVICE : DMA_TO_DEVICE);
	vrb_tx_fill_one(ep, op, u->rma, addr, len, &wr, &sge);
	vrb_wr_opcode(&wr, kind, 0, NULL, true);
	op->seq = ++ep->tx.posted;
	vrb_tx_adopt(ep, op);
	err = ib_post_send(ep->qp, &wr.wr, NULL);
	trace_kofi_verbs_tx(ep, op, err);
	if (likely(!err))
		vrb_stat_inc(&ep->tx.stats.wrs);
	return err;
}

/* Post an operation on memory at device address @addr. Returns true if it was posted. */
static __always_inline bool vrb_tx_post_at(struct vrb_ep *ep, enum vrb_op kind,
					   const struct vrb_usual *u, u64 addr,
					   u64 flags)
{
	bool reserved = false;
	struct vrb_txop *op;
	unsigned long irq;

	spin_lock_irqsave(&ep->tx.lock, irq);
	op = vrb_tx_get_usual(ep);
	if (unlikely(!op))
		goto unlock;
	if (unlikely(!kofi_ep_tx_try_reserve(&ep->base, u->context)))
		goto put;
	if (unlikely(vrb_tx_submit_usual(ep, op, kind, u, addr, flags)))
		goto undo;
	spin_unlock_irqrestore(&ep->tx.lock, irq);
	return true;

undo:
	ep->tx.posted--;
	vrb_tx_disown(ep, op);
	op->posted = false;
	op->map.nr = 0;
	reserved = true;
put:
	vrb_tx_put(ep, op);
unlock:
	spin_unlock_irqrestore(&ep->tx.lock, irq);
	if (unlikely(reserved))
		kofi_ep_tx_unreserve(&ep->base);
	return false;
}

/* Map the memory, then post. RCU keeps the device present. */
static __always_inline bool vrb_tx_post_mapped(struct vrb_ep *ep,
					       enum vrb_op kind,
					       const struct vrb_usual *u,
					       u64 flags)
{
	const enum dma_data_direction dir = kind == VRB_READ ? DMA_FROM_DEVICE :
							       DMA_TO_DEVICE;
	bool posted = false;
	dma_addr_t addr;

	/* see vrb_domain_lost() */
	rcu_read_lock();
	if (unlikely(!vrb_tx_is_open(ep)))
		goto unlock;
	addr = vrb_map_seg(ep->dom, u->kv, dir);
	if (unlikely(addr == DMA_MAPPING_ERROR))
		goto unlock;
	posted = vrb_tx_post_at(ep, kind, u, addr, flags);
	if (unlikely(!posted))
		vrb_unmap_seg(ep->dom, addr, u->kv->iov_len, dir);
unlock:
	rcu_read_unlock();
	return posted;
}

/**
 * vrb_tx_post_usual - post an operation if the fast path takes it
 * @ep: the endpoint
 * @kind: kind of operation
 * @u: arguments of the post
 * @flags: flags of the post
 *
 * Context: any.
 * Return: true if the operation was posted; otherwise nothing has changed.
 */
static __always_inline bool vrb_tx_post_usual(struct vrb_ep *ep,
					      enum vrb_op kind,
					      const struct vrb_usual *u,
					      u64 flags)
{
	if (unlikely(!vrb_tx_is_usual(ep, kind, u, flags)))
		return false;
	return ep->dom->needs_map ?
	       vrb_tx_post_mapped(ep, kind, u, flags) :
	       vrb_tx_post_at(ep, kind, u, (uintptr_t)u->kv->iov_base, flags);
}

#endif /* _KOFI_VERBS_TX_H */

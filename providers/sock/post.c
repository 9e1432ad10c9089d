// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Records of transmits, and posts. A post takes a slot of the queue and a record. It copies
 * all arguments that the consumer may change afterwards into the record, and tx.c sends
 * it. An error has no effect.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "sock.h"

/* ----------------------------------------------------------------- records */

static size_t ksk_tx_inject_max(const struct ksk_ep *ep)
{
	return min_t(size_t, ep->base.info->tx_attr->inject_size,
		     KSK_INJECT_MAX);
}

int ksk_tx_init(struct ksk_ep *ep, size_t size)
{
	const struct fi_tx_attr *attr = ep->base.info->tx_attr;
	struct ksk_txop *op;
	size_t bytes, i;

	bytes = max(kofi_cursor_size(attr->iov_limit),
		    kofi_cursor_size(1) + ksk_tx_inject_max(ep));
	/* two of them are often used on two CPUs */
	bytes = L1_CACHE_ALIGN(offsetof(struct ksk_txop, cur) + bytes);
	ep->tx_ops = kvmalloc_node(array_size(size, bytes),
				   GFP_KERNEL | __GFP_ZERO,
				   ep->base.domain->node);
	if (!ep->tx_ops)
		return -ENOMEM;
	ep->tx_op_size = bytes;
	for (i = size; i--; ) {
		op = ep->tx_ops + i * bytes;
		kofi_freelist_add(&ep->tx_free, &op->free);
	}
	return 0;
}

void ksk_tx_exit(struct ksk_ep *ep)
{
	kvfree(ep->tx_ops);
	ep->tx_ops = NULL;
	ep->tx_free = (struct kofi_freelist) {};
}

/* ---------------------------------------------------------------- posting */

/*
 * Copy the payload of an inject into its record, behind the first segment of the cursor.
 * Other segments of the cursor are in this place until the payload has been copied.
 */
static int ksk_tx_inject(struct ksk_txop *op, const struct fi_msg *msg)
{
	size_t len = op->cur.len;
	void *to = &op->cur.bv[1];
	u8 bytes[KSK_INJECT_MAX];

	if (msg->vec == KOFI_KVEC && msg->iov_count == 1) {
		memcpy(to, msg->msg_iov->iov_base, len);
	} else {
		if (kofi_cursor_read(&op->cur, bytes, len))
			return -EINVAL;
		memcpy(to, bytes, len);
	}
	kofi_cursor_replace(&op->cur, to);
	return 0;
}

static int ksk_tx_fill(struct ksk_ep *ep, struct ksk_txop *op,
		       const struct fi_msg *msg, const struct ksk_post *post,
		       u64 flags)
{
	const struct fi_info *info = ep->base.info;
	int err;

	err = kofi_cursor_init(&op->cur, msg,
			       post->op == KSK_OP_READ_REQ ? ITER_DEST :
							      ITER_SOURCE,
			       info->tx_attr->iov_limit);
	if (err)
		return err;
	if (op->cur.len > info->ep_attr->max_msg_size)
		return -EMSGSIZE;
	if (flags & KOFI_REMOTE_INV) {
		if (!ep->conn || !(ep->conn->ext & KSK_EXT_REMOTE_INV))
			return -EOPNOTSUPP;
		op->inv_key = msg->inv_key;
	}
	op->context = msg->context;
	op->data = msg->data;
	op->flags = flags;
	op->conn = ep->conn;
	op->zc = false;
	op->ctx = 0;
	op->op = post->op;
	op->ack = flags & (FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE);
	op->rma_count = post->rma_count;
	if (post->op == KSK_OP_TAGGED) {
		op->tag = post->tag;
	} else if (post->op != KSK_OP_MSG) {
		err = kofi_rma_check(post->rma, post->rma_count,
				     min_t(size_t, KSK_RMA_MAX,
					   info->tx_attr->rma_iov_limit),
				     op->cur.len, op->rma);
		if (err)
			return err;
	}
	if (!(flags & FI_INJECT))
		return 0;
	if (op->cur.len > ksk_tx_inject_max(ep))
		return -EINVAL;
	return ksk_tx_inject(op, msg);
}

/**
 * ksk_tx_submit - accept a transmit
 * @ep: the endpoint
 * @msg: arguments that all operations have
 * @post: further arguments of this operation
 * @flags: flags of the operation; the caller has checked them
 *
 * Context: any.
 * Return: 0, one completion will follow; or an error of the list in
 * fi_endpoint.h.
 */
ssize_t ksk_tx_submit(struct ksk_ep *ep, const struct fi_msg *msg,
		      const struct ksk_post *post, u64 flags)
{
	struct llist_node *node;
	struct ksk_txop *op;
	int err;

	err = kofi_ep_tx_check(&ep->base, flags & KSK_TX_LEVELS);
	if (err)
		return err;
	/* take no record here: its return would wake refused posts for nothing */
	if (unlikely(READ_ONCE(ep->crowded)) &&
	    ep->type->crowded(ep, msg->addr) &&
	    kofi_ep_retry(&ep->base, ep->type->crowded(ep, msg->addr)))
		return -EAGAIN;
	err = kofi_ep_tx_get(&ep->base, msg->context, &ep->tx_free,
			     &ep->tx_free_lock, &node);
	if (err)
		return err == -EAGAIN && ep->conn &&
		       READ_ONCE(ep->conn->posts.closed) ? -ESHUTDOWN : err;
	op = llist_entry(node, struct ksk_txop, free);
	err = ksk_tx_fill(ep, op, msg, post, flags);
	if (!err)
		err = ep->direct ? ksk_tx_add(ep->direct, op) :
				   ep->type->add(ep, msg->addr, op);
	if (!err)
		return 0;
	kofi_freelist_put(&ep->tx_free, &op->free);
	if (err == -EAGAIN)
		ep->type->refused(ep);
	return kofi_ep_tx_refuse(&ep->base, err);
}

/* fi_sendmsg() and its family */
ssize_t ksk_tx_post(struct fid_ep *fid, const struct fi_msg *msg, u64 flags)
{
	static const struct ksk_post post = { .op = KSK_OP_MSG };

	if (flags & ~(KSK_TX_OUT_FLAGS | KOFI_REMOTE_INV))
		return -FI_EBADFLAGS;
	return ksk_tx_submit(ksk_ep(fid), msg, &post, flags);
}

/* fi_tsendmsg() and its family */
ssize_t ksk_tx_tpost(struct fid_ep *fid, const struct fi_msg_tagged *tmsg,
		     u64 flags)
{
	const struct ksk_post post = {
		.op = KSK_OP_TAGGED,
		.tag = tmsg->tag,
	};
	const struct fi_msg msg = kofi_tagged_msg(tmsg);
	struct ksk_ep *ep = ksk_ep(fid);

	if (flags & ~KSK_TX_OUT_FLAGS)
		return -FI_EBADFLAGS;
	if (!(ep->base.info->caps & FI_TAGGED))
		return -ENOSYS;
	return ksk_tx_submit(ep, &msg, &post, flags);
}

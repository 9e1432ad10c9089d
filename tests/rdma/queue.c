// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queues, and what is done with the work requests in them.
 *
 * Work requests are copied, and done later, in softirq context, one after the
 * other; the memory of both ends is copied from one to the other there. A
 * message without a receive, like any other violation, ends the connection, and
 * all that is in the queues of either end is flushed.
 *
 * As hardware does, the device takes a place in the send queue for free only
 * when a completion has been read, of this or of a later work request. Queues
 * that overrun, and completions that stay behind their queue pair, are mistakes
 * of the consumer's, and complained about.
 */
#include <linux/slab.h>

#include "testrdma.h"

#define TRD_BUDGET	16	/* work requests at a time */

/* ------------------------------------------------------------- completions */

static void trd_complete(struct ib_cq *ib, const struct ib_wc *wc,
			 struct trd_qp *qp, unsigned int room)
{
	struct trd_cq *cq = trd_cq(ib);

	if (WARN_ON_ONCE(cq->nr == cq->size))
		return;
	cq->ring[(cq->head + cq->nr++) % cq->size] = (struct trd_cqe) {
		.wc = *wc, .qp = qp, .room = room,
	};
	if (cq->armed) {
		cq->armed = false;
		ib->comp_handler(ib, ib->cq_context);
	}
}

static int trd_poll_cq(struct ib_cq *ib, int max, struct ib_wc *wc)
{
	struct trd_dev *dev = trd_dev(ib->device);
	struct trd_cq *cq = trd_cq(ib);
	unsigned long irq;
	int n;

	spin_lock_irqsave(&dev->lock, irq);
	for (n = 0; n < max && cq->nr; n++) {
		struct trd_cqe *cqe = &cq->ring[cq->head];

		wc[n] = cqe->wc;
		if (cqe->qp)
			cqe->qp->used -= cqe->room;
		cq->head = (cq->head + 1) % cq->size;
		cq->nr--;
	}
	spin_unlock_irqrestore(&dev->lock, irq);
	return n;
}

static int trd_req_notify_cq(struct ib_cq *ib, enum ib_cq_notify_flags flags)
{
	struct trd_dev *dev = trd_dev(ib->device);
	struct trd_cq *cq = trd_cq(ib);
	unsigned long irq;
	int missed;

	spin_lock_irqsave(&dev->lock, irq);
	cq->armed = true;
	missed = cq->nr && flags & IB_CQ_REPORT_MISSED_EVENTS;
	spin_unlock_irqrestore(&dev->lock, irq);
	return missed;
}

static int trd_create_cq(struct ib_cq *ib, const struct ib_cq_init_attr *attr,
			 struct uverbs_attr_bundle *attrs)
{
	struct trd_cq *cq = trd_cq(ib);

	cq->ring = kvcalloc(attr->cqe, sizeof(*cq->ring), GFP_KERNEL);
	cq->size = attr->cqe;
	ib->cqe = attr->cqe;
	return cq->ring ? 0 : -ENOMEM;
}

static int trd_destroy_cq(struct ib_cq *ib, struct ib_udata *udata)
{
	kvfree(trd_cq(ib)->ring);
	return 0;
}

/* ---------------------------------------------------------- work requests */

static int trd_queue_init(struct trd_queue *q, unsigned int size)
{
	q->size = size;
	q->ring = kvcalloc(max(size, 1), sizeof(*q->ring), GFP_KERNEL);
	return q->ring ? 0 : -ENOMEM;
}

static struct trd_wqe *trd_queue_get(struct trd_queue *q)
{
	struct trd_wqe *wqe = &q->ring[q->head];

	if (!q->nr)
		return NULL;
	q->head = (q->head + 1) % q->size;
	q->nr--;
	return wqe;
}

static struct trd_wqe *trd_queue_put(struct trd_queue *q, u64 wr_id,
				     const struct ib_sge *sge, int nr)
{
	struct trd_wqe *wqe;

	if (WARN_ON_ONCE(q->nr == q->size || nr > TRD_SGES))
		return NULL;
	wqe = &q->ring[(q->head + q->nr++) % q->size];
	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = wr_id;
	wqe->num_sge = nr;
	memcpy(wqe->sge, sge, nr * sizeof(*sge));
	return wqe;
}

static u32 trd_wqe_len(const struct trd_wqe *wqe)
{
	unsigned int i;
	u32 len = 0;

	for (i = 0; i < wqe->num_sge; i++)
		len += wqe->sge[i].length;
	return len;
}

/* One side of a copy; without a device, a buffer of the CPU's */
struct trd_side {
	struct trd_dev		*dev;
	const struct ib_sge	*sge;
	u32			off;
};

static void *trd_side_at(struct trd_side *s, size_t *len)
{
	while (s->off == s->sge->length) {
		s->sge++;
		s->off = 0;
	}
	*len = min_t(size_t, *len, s->sge->length - s->off);
	return s->dev ? trd_at(s->dev, s->sge, s->off, len) :
			(void *)(uintptr_t)s->sge->addr + s->off;
}

static bool trd_copy(struct trd_side to, struct trd_side from, size_t len)
{
	while (len) {
		size_t n = len;
		void *src = trd_side_at(&from, &n);
		void *dst = trd_side_at(&to, &n);

		if (!src || !dst)
			return false;
		memcpy(dst, src, n);
		from.off += n;
		to.off += n;
		len -= n;
	}
	return true;
}

/* May the memory of a work request be used? */
static bool trd_wqe_may(struct trd_qp *qp, const struct trd_wqe *wqe,
			int access)
{
	unsigned int i;

	for (i = 0; i < wqe->num_sge; i++)
		if (!trd_may(trd_dev(qp->ib.device), qp->ib.pd, &wqe->sge[i],
			     access))
			return false;
	return true;
}

/* Of a work request of @qp that sends */
static struct trd_side trd_source(struct trd_qp *qp, const struct trd_wqe *wqe)
{
	return (struct trd_side) {
		.dev = wqe->flags & IB_SEND_INLINE ? NULL :
						     trd_dev(qp->ib.device),
		.sge = wqe->sge,
	};
}

/* A message at its receiver */
static enum ib_wc_status trd_receive(struct trd_qp *qp, struct trd_side from,
				     const struct trd_wqe *msg, u32 len)
{
	struct trd_dev *dev = trd_dev(qp->ib.device);
	struct trd_wqe *wqe = trd_queue_get(qp->ib.srq ?
					    &trd_srq(qp->ib.srq)->q : &qp->rq);
	struct ib_wc wc = {
		.qp = &qp->ib, .opcode = IB_WC_RECV, .byte_len = len,
	};
	struct trd_side to = { .dev = dev };
	struct trd_mr *mr;

	if (!wqe)
		return IB_WC_RNR_RETRY_EXC_ERR;
	wc.wr_id = wqe->wr_id;
	to.sge = wqe->sge;
	if (trd_wqe_len(wqe) < len)
		wc.status = IB_WC_LOC_LEN_ERR;
	else if (!trd_wqe_may(qp, wqe, IB_ACCESS_LOCAL_WRITE) ||
		 !trd_copy(to, from, len))
		wc.status = IB_WC_LOC_PROT_ERR;
	if (!wc.status && msg->opcode == IB_WR_SEND_WITH_INV) {
		mr = trd_mr_find(dev, msg->inv);
		if (mr && mr->ib.pd == qp->ib.pd) {
			mr->valid = false;
			wc.wc_flags = IB_WC_WITH_INVALIDATE;
			wc.ex.invalidate_rkey = msg->inv;
		} else {
			wc.status = IB_WC_LOC_QP_OP_ERR;
		}
	}
	trd_complete(qp->ib.recv_cq, &wc, NULL, 0);
	return wc.status ? IB_WC_REM_OP_ERR : IB_WC_SUCCESS;
}

/* A read or write of the peer's memory */
static enum ib_wc_status trd_rma(struct trd_qp *qp, struct trd_qp *peer,
				 const struct trd_wqe *wqe, u32 len)
{
	const bool read = wqe->opcode != IB_WR_RDMA_WRITE;
	struct trd_dev *dev = trd_dev(qp->ib.device);
	const struct ib_sge remote = {
		.addr = wqe->remote, .length = len, .lkey = wqe->rkey,
	};
	struct trd_side there = { .dev = dev, .sge = &remote };
	struct trd_side here = trd_source(qp, wqe);

	if (!trd_may(dev, peer->ib.pd, &remote, read ? IB_ACCESS_REMOTE_READ :
						       IB_ACCESS_REMOTE_WRITE))
		return IB_WC_REM_ACCESS_ERR;
	/* who reads tells the peer where to: iWARP */
	if (read && !trd_wqe_may(qp, wqe, IB_ACCESS_REMOTE_WRITE))
		return IB_WC_LOC_PROT_ERR;
	return trd_copy(read ? here : there, read ? there : here, len) ?
	       IB_WC_SUCCESS : IB_WC_LOC_PROT_ERR;
}

static enum ib_wc_status trd_invalidate(struct trd_dev *dev, u32 key)
{
	struct trd_mr *mr = trd_mr_find(dev, key);

	if (!mr)
		return IB_WC_LOC_QP_OP_ERR;
	mr->valid = false;
	return IB_WC_SUCCESS;
}

static enum ib_wc_status trd_do(struct trd_qp *qp, const struct trd_wqe *wqe,
				struct ib_wc *wc)
{
	struct trd_dev *dev = trd_dev(qp->ib.device);
	struct trd_qp *peer = trd_peer(qp);
	u32 len = trd_wqe_len(wqe);
	enum ib_wc_status status;

	switch (wqe->opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_INV:
		wc->opcode = IB_WC_SEND;
		if (!(wqe->flags & IB_SEND_INLINE) && !trd_wqe_may(qp, wqe, 0))
			return IB_WC_LOC_PROT_ERR;
		return trd_receive(peer, trd_source(qp, wqe), wqe, len);
	case IB_WR_RDMA_WRITE:
		wc->opcode = IB_WC_RDMA_WRITE;
		if (!(wqe->flags & IB_SEND_INLINE) && !trd_wqe_may(qp, wqe, 0))
			return IB_WC_LOC_PROT_ERR;
		return trd_rma(qp, peer, wqe, len);
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		wc->opcode = IB_WC_RDMA_READ;
		status = trd_rma(qp, peer, wqe, len);
		return status || wqe->opcode == IB_WR_RDMA_READ ? status :
		       trd_invalidate(dev, wqe->inv);
	case IB_WR_REG_MR:
		wc->opcode = IB_WC_REG_MR;
		if (wqe->mr->valid || wqe->mr->ib.pd != qp->ib.pd)
			return IB_WC_MW_BIND_ERR;
		wqe->mr->valid = true;
		wqe->mr->key = wqe->rkey;
		wqe->mr->access = wqe->access;
		wqe->mr->iova = wqe->remote;
		return IB_WC_SUCCESS;
	case IB_WR_LOCAL_INV:
		wc->opcode = IB_WC_LOCAL_INV;
		return trd_invalidate(dev, wqe->inv);
	default:
		return IB_WC_LOC_QP_OP_ERR;
	}
}

/* The end of the oldest work request, which the consumer may not hear of */
static void trd_sent(struct trd_qp *qp, const struct trd_wqe *wqe,
		     struct ib_wc *wc)
{
	wc->wr_id = wqe->wr_id;
	wc->qp = &qp->ib;
	qp->silent++;
	if (!wc->status && !(wqe->flags & IB_SEND_SIGNALED))
		return;
	trd_complete(qp->ib.send_cq, wc, qp, qp->silent);
	qp->silent = 0;
}

static void trd_work(struct work_struct *work)
{
	struct trd_qp *qp = container_of(work, struct trd_qp, work);
	struct trd_dev *dev = trd_dev(qp->ib.device);
	struct trd_wqe *wqe;
	unsigned long irq;
	int i;

	for (i = 0; i < TRD_BUDGET; i++) {
		struct ib_wc wc = {};

		spin_lock_irqsave(&dev->lock, irq);
		wqe = qp->state == IB_QPS_RTS ? trd_queue_get(&qp->sq) : NULL;
		if (wqe) {
			wc.status = trd_do(qp, wqe, &wc);
			trd_sent(qp, wqe, &wc);
			if (wc.status)
				trd_qp_end(qp);
		}
		spin_unlock_irqrestore(&dev->lock, irq);
		if (!wqe)
			return;
	}
	queue_work(system_bh_wq, work);
}

static void trd_flush_sq(struct trd_qp *qp)
{
	struct trd_wqe *wqe;

	while ((wqe = trd_queue_get(&qp->sq)))
		trd_sent(qp, wqe, &(struct ib_wc) {
			.status = IB_WC_WR_FLUSH_ERR,
		});
}

static void trd_flush_rq(struct trd_qp *qp)
{
	struct trd_wqe *wqe;

	while ((wqe = trd_queue_get(&qp->rq)))
		trd_complete(qp->ib.recv_cq, &(struct ib_wc) {
			.wr_id = wqe->wr_id, .qp = &qp->ib,
			.opcode = IB_WC_RECV, .status = IB_WC_WR_FLUSH_ERR,
		}, NULL, 0);
}

/**
 * trd_qp_end - a queue pair does no more
 * @qp: it, and what it is connected to
 *
 * Context: any, with the device's lock held.
 */
void trd_qp_end(struct trd_qp *qp)
{
	struct iw_cm_event reply = {
		.event = IW_CM_EVENT_CONNECT_REPLY, .status = -ECONNRESET,
	};

	if (qp->state == IB_QPS_ERR)
		return;
	qp->state = IB_QPS_ERR;
	trd_flush_sq(qp);
	trd_flush_rq(qp);
	if (qp->conn)
		trd_conn_end(qp->conn, &reply);
}

/* ----------------------------------------------------------------- posting */

static void trd_wqe_fill(struct trd_wqe *wqe, const struct ib_send_wr *wr)
{
	size_t len = 0;
	unsigned int i;

	wqe->opcode = wr->opcode;
	wqe->flags = wr->send_flags;
	wqe->inv = wr->ex.invalidate_rkey;
	switch (wr->opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		wqe->remote = rdma_wr(wr)->remote_addr;
		wqe->rkey = rdma_wr(wr)->rkey;
		break;
	case IB_WR_REG_MR:
		wqe->mr = trd_mr(reg_wr(wr)->mr);
		wqe->remote = wqe->mr->ib.iova;
		wqe->rkey = reg_wr(wr)->key;
		wqe->access = reg_wr(wr)->access;
		break;
	default:
		break;
	}
	if (!(wr->send_flags & IB_SEND_INLINE))
		return;
	for (i = 0; i < wqe->num_sge; i++) {
		struct ib_sge *sge = &wqe->sge[i];

		if (WARN_ON_ONCE(len + sge->length > sizeof(wqe->data)))
			return;
		memcpy(wqe->data + len, (void *)(uintptr_t)sge->addr,
		       sge->length);
		sge->addr = (uintptr_t)wqe->data + len;
		len += sge->length;
	}
}

static int trd_post_send(struct ib_qp *ib, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad)
{
	struct trd_dev *dev = trd_dev(ib->device);
	struct trd_qp *qp = trd_qp(ib);
	struct trd_wqe *wqe;
	unsigned long irq;
	int err = 0;

	spin_lock_irqsave(&dev->lock, irq);
	for (; wr; wr = wr->next) {
		err = -ENOTCONN;
		if (qp->state == IB_QPS_INIT)
			break;
		err = -ENOMEM;
		if (WARN_ON_ONCE(qp->used == qp->sq.size))
			break;
		wqe = trd_queue_put(&qp->sq, wr->wr_id, wr->sg_list,
				    wr->num_sge);
		if (!wqe)
			break;
		trd_wqe_fill(wqe, wr);
		qp->used++;
		err = 0;
	}
	if (qp->state == IB_QPS_ERR)
		trd_flush_sq(qp);
	else
		queue_work(system_bh_wq, &qp->work);
	spin_unlock_irqrestore(&dev->lock, irq);
	*bad = wr;
	return err;
}

static int trd_post_queue(struct trd_queue *q, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad)
{
	for (; wr; wr = wr->next)
		if (!trd_queue_put(q, wr->wr_id, wr->sg_list, wr->num_sge))
			break;
	*bad = wr;
	return wr ? -ENOMEM : 0;
}

static int trd_post_recv(struct ib_qp *ib, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad)
{
	struct trd_dev *dev = trd_dev(ib->device);
	struct trd_qp *qp = trd_qp(ib);
	unsigned long irq;
	int err;

	spin_lock_irqsave(&dev->lock, irq);
	err = trd_post_queue(&qp->rq, wr, bad);
	if (qp->state == IB_QPS_ERR)
		trd_flush_rq(qp);
	spin_unlock_irqrestore(&dev->lock, irq);
	return err;
}

static int trd_post_srq_recv(struct ib_srq *ib, const struct ib_recv_wr *wr,
			     const struct ib_recv_wr **bad)
{
	struct trd_dev *dev = trd_dev(ib->device);
	unsigned long irq;
	int err;

	spin_lock_irqsave(&dev->lock, irq);
	err = trd_post_queue(&trd_srq(ib)->q, wr, bad);
	spin_unlock_irqrestore(&dev->lock, irq);
	return err;
}

/* -------------------------------------------------------------------- life */

void trd_qp_put(struct trd_qp *qp)
{
	if (refcount_dec_and_test(&qp->refs))
		complete(&qp->gone);
}

static int trd_create_qp(struct ib_qp *ib, struct ib_qp_init_attr *attr,
			 struct ib_udata *udata)
{
	struct trd_dev *dev = trd_dev(ib->device);
	struct trd_qp *qp = trd_qp(ib);
	int err;

	if (attr->qp_type != IB_QPT_RC)
		return -EOPNOTSUPP;
	if (attr->cap.max_inline_data > TRD_INLINE ||
	    attr->cap.max_send_wr > TRD_WRS || attr->cap.max_recv_wr > TRD_WRS)
		return -EINVAL;
	err = trd_queue_init(&qp->sq, attr->cap.max_send_wr) ?:
	      trd_queue_init(&qp->rq, attr->cap.max_recv_wr) ?:
	      xa_alloc(&dev->qps, &ib->qp_num, qp, XA_LIMIT(2, 0xffffff),
		       GFP_KERNEL);
	if (err) {
		kvfree(qp->sq.ring);
		kvfree(qp->rq.ring);
		return err;
	}
	attr->cap.max_inline_data = TRD_INLINE;
	qp->state = IB_QPS_INIT;
	INIT_WORK(&qp->work, trd_work);
	refcount_set(&qp->refs, 1);
	init_completion(&qp->gone);
	return 0;
}

static int trd_modify_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask,
			 struct ib_udata *udata)
{
	struct trd_dev *dev = trd_dev(ib->device);
	unsigned long irq;

	/* what leads to a connection is done by the connection */
	if (!(mask & IB_QP_STATE) || attr->qp_state < IB_QPS_SQD)
		return 0;
	spin_lock_irqsave(&dev->lock, irq);
	trd_qp_end(trd_qp(ib));
	spin_unlock_irqrestore(&dev->lock, irq);
	return 0;
}

/* With the device's lock held. A consumer drains first. */
static void trd_forget(struct ib_cq *ib, struct trd_qp *qp)
{
	struct trd_cq *cq = trd_cq(ib);
	unsigned int i;

	for (i = 0; i < cq->nr; i++)
		WARN_ON_ONCE(cq->ring[(cq->head + i) % cq->size].wc.qp ==
			     &qp->ib);
}

static int trd_destroy_qp(struct ib_qp *ib, struct ib_udata *udata)
{
	struct trd_dev *dev = trd_dev(ib->device);
	struct trd_qp *qp = trd_qp(ib);
	unsigned long irq;

	spin_lock_irqsave(&dev->lock, irq);
	trd_qp_end(qp);
	spin_unlock_irqrestore(&dev->lock, irq);
	xa_erase(&dev->qps, ib->qp_num);
	trd_qp_put(qp);
	wait_for_completion(&qp->gone);
	cancel_work_sync(&qp->work);
	spin_lock_irqsave(&dev->lock, irq);
	trd_forget(ib->send_cq, qp);
	trd_forget(ib->recv_cq, qp);
	spin_unlock_irqrestore(&dev->lock, irq);
	kvfree(qp->sq.ring);
	kvfree(qp->rq.ring);
	return 0;
}

static int trd_create_srq(struct ib_srq *ib, struct ib_srq_init_attr *attr,
			  struct ib_udata *udata)
{
	return trd_queue_init(&trd_srq(ib)->q, attr->attr.max_wr);
}

static int trd_destroy_srq(struct ib_srq *ib, struct ib_udata *udata)
{
	kvfree(trd_srq(ib)->q.ring);
	return 0;
}

const struct ib_device_ops trd_queue_ops = {
	.create_cq	= trd_create_cq,
	.create_qp	= trd_create_qp,
	.create_srq	= trd_create_srq,
	.destroy_cq	= trd_destroy_cq,
	.destroy_qp	= trd_destroy_qp,
	.destroy_srq	= trd_destroy_srq,
	.modify_qp	= trd_modify_qp,
	.poll_cq	= trd_poll_cq,
	.post_recv	= trd_post_recv,
	.post_send	= trd_post_send,
	.post_srq_recv	= trd_post_srq_recv,
	.req_notify_cq	= trd_req_notify_cq,

	INIT_RDMA_OBJ_SIZE(ib_cq, trd_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, trd_qp, ib),
	INIT_RDMA_OBJ_SIZE(ib_srq, trd_srq, ib),
};

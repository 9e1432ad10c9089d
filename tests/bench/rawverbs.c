// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The client over RDMA devices: what a careful author would write for one kind
 * of memory, with ib_core and rdma_cm and no library. kofi_verbs is measured
 * against it, so it does the same things in the same places: entries of a
 * completion queue that ib_core shares between its users, taken in softirq
 * context; memory mapped by the post and unmapped by the completion; the device
 * reports every work request; what the peer may access is registered by work
 * requests of the queue pair, a region for each of its operations.
 *
 * Memory must be contiguous, as then it is one segment.
 *
 * A second client does what protocols of datagrams do with short messages: it sends
 * them behind a header, and receives them into buffers that are mapped once, from
 * which they are copied to where they are wanted.
 */
#include <linux/in.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/rdma_cm.h>

#include "bench.h"

#define RV_RESOLVE_MS	2000
#define RV_WAIT		(10 * HZ)
#define RV_READS	16
#define RV_HDR		64	/* bytes of a header */
#define RV_EAGER	16384	/* most bytes behind it */

/**
 * struct rv_region - what the peer's operation accesses
 * @mr: the device's
 * @sg: the memory, mapped
 * @cqe: of the registration
 * @done: it is over
 * @status: how
 */
struct rv_region {
	struct ib_mr		*mr;
	struct scatterlist	sg;
	struct ib_cqe		cqe;
	struct completion	done;
	int			status;
};

/**
 * struct rv_buf - where a header and a message arrive
 * @mem: the memory
 * @dma: for the device
 */
struct rv_buf {
	u8	*mem;
	u64	dma;
};

/**
 * struct rv_side - a side's queue pair
 * @side: the side
 * @peer: the other one's
 * @id: the connection manager's
 * @cq: completions of both directions
 * @pd: of both sides
 * @regions: for the peer's xmit
 * @eager: messages have a header; in no buffer of what follows otherwise
 * @hdr: what is sent as header
 * @bufs: where the side's recv arrive
 */
struct rv_side {
	struct bench_side	*side;
	struct rv_side		*peer;
	struct rdma_cm_id	*id;
	struct ib_cq		*cq;
	struct ib_pd		*pd;
	struct rv_region	regions[BENCH_WINDOW_MAX];
	bool			eager;
	struct rv_buf		hdr;
	struct rv_buf		bufs[BENCH_WINDOW_MAX];
};

/**
 * struct rv_conn - the connection
 * @listener: where the second side's is made
 * @pd: protection domain of both
 * @step: the manager has said what was waited for, or
 * @err: what was not
 * @side: the sides
 */
struct rv_conn {
	struct rdma_cm_id	*listener;
	struct ib_pd		*pd;
	struct completion	step;
	int			err;
	struct rv_side		side[2];
};

/* -------------------------------------------------------------- operations */

static enum dma_data_direction rv_dir(const struct bench_op *op)
{
	return op->kind == BENCH_RECV || op->kind == BENCH_READ ?
	       DMA_FROM_DEVICE : DMA_TO_DEVICE;
}

static void rv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct bench_op *op = container_of(wc->wr_cqe, struct bench_op, wr);

	ib_dma_unmap_single(cq->device, op->dma, op->len, rv_dir(op));
	bench_done(op, wc->status ? -EIO : 0, wc->byte_len);
}

static int rv_hand_over(struct rv_side *s, struct bench_op *op)
{
	struct ib_sge sge[] = {
		{
			.addr = s->hdr.dma, .length = RV_HDR,
			.lkey = s->pd->local_dma_lkey,
		}, {
			.addr = op->dma, .length = op->len,
			.lkey = s->pd->local_dma_lkey,
		},
	};
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &op->wr, .sg_list = s->eager ? sge : sge + 1,
			.num_sge = s->eager ? 2 : 1, .opcode = IB_WR_SEND,
			.send_flags = IB_SEND_SIGNALED,
		},
	};
	struct ib_mr *mr;

	if (op->kind != BENCH_SEND) {
		mr = s->peer->regions[op - op->side->xmit].mr;
		wr.remote_addr = mr->iova;
		wr.rkey = mr->rkey;
		wr.wr.opcode = op->kind == BENCH_READ ? IB_WR_RDMA_READ :
							IB_WR_RDMA_WRITE;
	}
	return ib_post_send(s->id->qp, &wr.wr, NULL);
}

static int rv_hand_over_recv(struct rv_side *s, struct bench_op *op)
{
	struct ib_sge sge = {
		.addr = op->dma, .length = op->len,
		.lkey = s->pd->local_dma_lkey,
	};
	const struct ib_recv_wr wr = {
		.wr_cqe = &op->wr, .sg_list = &sge, .num_sge = 1,
	};

	return ib_post_recv(s->id->qp, &wr, NULL);
}

static struct rv_buf *rv_buf_of(struct rv_side *s, const struct bench_op *op)
{
	return &s->bufs[op - s->side->recv];
}

static void rv_eager_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct bench_op *op = container_of(wc->wr_cqe, struct bench_op, wr);
	struct rv_buf *buf = rv_buf_of(op->side->priv, op);
	size_t len = 0;

	if (!wc->status && wc->byte_len >= RV_HDR) {
		ib_dma_sync_single_for_cpu(cq->device, buf->dma, wc->byte_len,
					   DMA_FROM_DEVICE);
		len = wc->byte_len - RV_HDR;
		memcpy(op->buf, buf->mem + RV_HDR, min(len, op->len));
		ib_dma_sync_single_for_device(cq->device, buf->dma,
					      wc->byte_len, DMA_FROM_DEVICE);
	}
	bench_done(op, wc->status ? -EIO : 0, len);
}

static int rv_post_eager_recv(struct rv_side *s, struct bench_op *op)
{
	struct ib_sge sge = {
		.addr = rv_buf_of(s, op)->dma, .length = RV_HDR + RV_EAGER,
		.lkey = s->pd->local_dma_lkey,
	};
	const struct ib_recv_wr wr = {
		.wr_cqe = &op->wr, .sg_list = &sge, .num_sge = 1,
	};

	return ib_post_recv(s->id->qp, &wr, NULL);
}

static int rv_post(struct bench_op *op)
{
	struct rv_side *s = op->side->priv;
	struct ib_device *ib = s->pd->device;
	int err;

	if (s->eager && op->kind == BENCH_RECV)
		return rv_post_eager_recv(s, op);
	op->dma = ib_dma_map_single(ib, op->buf, op->len, rv_dir(op));
	if (ib_dma_mapping_error(ib, op->dma))
		return -ENOMEM;
	err = op->kind == BENCH_RECV ? rv_hand_over_recv(s, op) :
				       rv_hand_over(s, op);
	if (err)
		ib_dma_unmap_single(ib, op->dma, op->len, rv_dir(op));
	return err;
}

/* ----------------------------------------------------------------- regions */

static void rv_registered(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rv_region *r = container_of(wc->wr_cqe, struct rv_region, cqe);

	r->status = wc->status;
	complete(&r->done);
}

static int rv_register(struct rv_side *s, struct rv_region *r, void *buf,
		       size_t len)
{
	unsigned int pages = DIV_ROUND_UP(offset_in_page(buf) + len, PAGE_SIZE);
	struct ib_reg_wr wr = {
		.wr = {
			.wr_cqe = &r->cqe, .opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED,
		},
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
			  IB_ACCESS_REMOTE_WRITE,
	};
	struct ib_mr *mr;
	int err;

	mr = ib_alloc_mr(s->pd, IB_MR_TYPE_MEM_REG, pages);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	r->mr = mr;
	sg_init_one(&r->sg, buf, len);
	err = -ENOMEM;
	if (ib_dma_map_sg(s->pd->device, &r->sg, 1, DMA_BIDIRECTIONAL) != 1)
		goto dereg;
	err = -EINVAL;
	if (ib_map_mr_sg(mr, &r->sg, 1, NULL, PAGE_SIZE) != 1)
		goto unmap;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	r->cqe.done = rv_registered;
	init_completion(&r->done);
	wr.mr = mr;
	wr.key = mr->rkey;
	err = ib_post_send(s->id->qp, &wr.wr, NULL);
	if (err)
		goto unmap;
	wait_for_completion(&r->done);
	err = r->status ? -EIO : 0;
	if (!err)
		return 0;
unmap:
	ib_dma_unmap_sg(s->pd->device, &r->sg, 1, DMA_BIDIRECTIONAL);
dereg:
	ib_dereg_mr(mr);
	r->mr = NULL;
	return err;
}

static int rv_regions(struct rv_side *s)
{
	u32 i;

	for (i = 0; i < s->side->run->window; i++) {
		/* the sides are alike, so this is what its operation has */
		const struct bench_op *op = &s->side->xmit[i];
		int err = rv_register(s, &s->regions[i], s->side->mem + op->off,
				      op->len);

		if (err)
			return err;
	}
	return 0;
}

/* -------------------------------------------------------------- connections */

static int rv_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct rv_conn *c = id->context;

	switch (ev->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		c->side[1].id = id;
		fallthrough;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_ESTABLISHED:
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return 0;
	default:
		c->err = ev->status < 0 ? ev->status : -ECONNREFUSED;
		break;
	}
	complete(&c->step);
	return 0;
}

static int rv_wait(struct rv_conn *c)
{
	if (!wait_for_completion_timeout(&c->step, RV_WAIT))
		return -ETIMEDOUT;
	return c->err;
}

static int rv_qp(struct rv_conn *c, struct rv_side *s)
{
	u32 wrs = bench_queue_size(s->side->run);
	struct ib_qp_init_attr attr = {
		.cap = {
			.max_send_wr = wrs, .max_recv_wr = wrs,
			.max_send_sge = 2, .max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_cq *cq;

	s->pd = c->pd;
	cq = ib_cq_pool_get(c->pd->device, 2 * wrs, -1, IB_POLL_SOFTIRQ);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	s->cq = cq;
	attr.send_cq = cq;
	attr.recv_cq = cq;
	return rdma_create_qp(s->id, c->pd, &attr);
}

static int rv_listen(struct rv_conn *c, struct sockaddr_in *addr)
{
	struct rdma_cm_id *id;
	int err;

	id = rdma_create_id(&init_net, rv_event, c, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	c->listener = id;
	err = rdma_bind_addr(id, (struct sockaddr *)addr);
	if (err)
		return err;
	memcpy(addr, &id->route.addr.src_addr, sizeof(*addr));
	return rdma_listen(id, 1);
}

/* The first side as far as it gets without the second */
static int rv_resolve(struct rv_conn *c, struct sockaddr_in *addr)
{
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	int err;

	id = rdma_create_id(&init_net, rv_event, c, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	c->side[0].id = id;
	err = rdma_resolve_addr(id, NULL, (struct sockaddr *)addr,
				RV_RESOLVE_MS) ?: rv_wait(c);
	if (err)
		return err;
	err = rdma_resolve_route(id, RV_RESOLVE_MS) ?: rv_wait(c);
	if (err)
		return err;
	pd = ib_alloc_pd(id->device, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	c->pd = pd;
	return rv_qp(c, &c->side[0]);
}

static int rv_connect(struct rv_conn *c, struct sockaddr_in addr)
{
	struct rdma_conn_param param = {
		.responder_resources = RV_READS,
		.initiator_depth = RV_READS,
		.flow_control = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	int err;

	err = rv_listen(c, &addr);
	if (err)
		return err;
	err = rv_resolve(c, &addr);
	if (err)
		return err;
	param.responder_resources =
		min(param.responder_resources,
		    c->pd->device->attrs.max_qp_rd_atom);
	param.initiator_depth = param.responder_resources;
	err = rdma_connect(c->side[0].id, &param) ?: rv_wait(c);
	if (err)
		return err;
	err = rv_qp(c, &c->side[1]) ?: rdma_accept(c->side[1].id, &param);
	if (err)
		return err;
	/* both */
	return rv_wait(c) ?: rv_wait(c);
}

static int rv_buf_get(struct rv_side *s, struct rv_buf *buf, size_t len,
		      enum dma_data_direction dir)
{
	struct ib_device *ib = s->pd->device;

	buf->mem = kzalloc(len, GFP_KERNEL);
	if (!buf->mem)
		return -ENOMEM;
	buf->dma = ib_dma_map_single(ib, buf->mem, len, dir);
	if (!ib_dma_mapping_error(ib, buf->dma))
		return 0;
	kfree(buf->mem);
	buf->mem = NULL;
	return -ENOMEM;
}

static void rv_buf_put(struct rv_side *s, struct rv_buf *buf, size_t len,
		       enum dma_data_direction dir)
{
	if (!buf->mem)
		return;
	ib_dma_unmap_single(s->pd->device, buf->dma, len, dir);
	kfree(buf->mem);
}

static int rv_bufs(struct rv_side *s)
{
	int err = rv_buf_get(s, &s->hdr, RV_HDR, DMA_TO_DEVICE);
	u32 i;

	for (i = 0; i < s->side->run->window && !err; i++)
		err = rv_buf_get(s, &s->bufs[i], RV_HDR + RV_EAGER,
				 DMA_FROM_DEVICE);
	return err;
}

static int rv_start(struct bench_run *run, bool eager)
{
	struct rv_conn *c;
	int i, j, err;

	c = kzalloc(sizeof(*c), GFP_KERNEL);
	if (!c)
		return -ENOMEM;
	init_completion(&c->step);
	for (i = 0; i < 2; i++) {
		c->side[i].side = &run->side[i];
		c->side[i].peer = &c->side[!i];
		c->side[i].eager = eager;
		run->side[i].priv = &c->side[i];
		for (j = 0; j < run->window; j++) {
			run->side[i].xmit[j].wr.done = rv_done;
			run->side[i].recv[j].wr.done = eager ? rv_eager_done :
							       rv_done;
		}
		if (is_vmalloc_addr(run->side[i].mem))
			return -ENOMEM;
	}
	err = rv_connect(c, run->side[1].addr);
	for (i = 0; i < 2 && !err && run->kind != BENCH_SEND; i++)
		err = rv_regions(&c->side[i]);
	for (i = 0; i < 2 && !err && eager; i++)
		err = rv_bufs(&c->side[i]);
	return err;
}

static int rv_open(struct bench_run *run)
{
	return rv_start(run, false);
}

static int rv_open_eager(struct bench_run *run)
{
	return run->kind == BENCH_SEND && run->size <= RV_EAGER ?
	       rv_start(run, true) : -EOPNOTSUPP;
}

static void rv_close_side(struct rv_side *s)
{
	int i;

	if (s->id && s->id->qp) {
		rdma_disconnect(s->id);
		ib_drain_qp(s->id->qp);
		rdma_destroy_qp(s->id);
	}
	for (i = 0; i < BENCH_WINDOW_MAX; i++) {
		if (!s->regions[i].mr)
			continue;
		ib_dma_unmap_sg(s->pd->device, &s->regions[i].sg, 1,
				DMA_BIDIRECTIONAL);
		ib_dereg_mr(s->regions[i].mr);
	}
	rv_buf_put(s, &s->hdr, RV_HDR, DMA_TO_DEVICE);
	for (i = 0; i < BENCH_WINDOW_MAX; i++)
		rv_buf_put(s, &s->bufs[i], RV_HDR + RV_EAGER, DMA_FROM_DEVICE);
	if (s->cq)
		ib_cq_pool_put(s->cq, 2 * bench_queue_size(s->side->run));
}

static void rv_close(struct bench_run *run)
{
	struct rv_side *first = run->side[0].priv;
	struct rv_conn *c;
	int i;

	if (!first)
		return;
	c = container_of(first, struct rv_conn, side[0]);
	/* no request comes any more */
	if (c->listener)
		rdma_destroy_id(c->listener);
	for (i = 0; i < 2; i++)
		rv_close_side(&c->side[i]);
	if (c->pd)
		ib_dealloc_pd(c->pd);
	for (i = 0; i < 2; i++)
		if (c->side[i].id)
			rdma_destroy_id(c->side[i].id);
	kfree(c);
}

const struct bench_client bench_rawverbs = {
	.name	= "rawverbs",
	.open	= rv_open,
	.close	= rv_close,
	.post	= rv_post,
};

const struct bench_client bench_raweager = {
	.name	= "raweager",
	.open	= rv_open_eager,
	.close	= rv_close,
	.post	= rv_post,
};

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A peer that is not kofi_verbs, so that it can say and do what kofi_verbs never
 * would: a queue pair and an identifier of the connection manager, with which the
 * test does as it likes. It sends and receives no messages.
 */

#include <linux/jiffies.h>
#include <net/net_namespace.h>

#include "../contract/contract.h"
#include "raw.h"

#define VRAW_RESOLVE_MS	TEST_LIMIT(2000)

static int vraw_create_qp(struct vraw *raw)
{
	struct ib_qp_init_attr attr = {
		.cap = {
			.max_send_wr = 1, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_device *ib = raw->id->device;
	int err;

	raw->pd = ib_alloc_pd(ib, 0);
	if (IS_ERR(raw->pd)) {
		err = PTR_ERR(raw->pd);
		raw->pd = NULL;
		return err;
	}
	raw->cq = ib_alloc_cq_any(ib, NULL, 4, IB_POLL_WORKQUEUE);
	if (IS_ERR(raw->cq)) {
		err = PTR_ERR(raw->cq);
		raw->cq = NULL;
		return err;
	}
	attr.send_cq = raw->cq;
	attr.recv_cq = raw->cq;
	return rdma_create_qp(raw->id, raw->pd, &attr);
}

static int vraw_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct vraw *raw = id->context;
	const struct rdma_conn_param *conn = &ev->param.conn;

	switch (ev->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		if (raw->id)
			return -EBUSY;
		raw->id = id;
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_DISCONNECTED:
		return 0;
	default:
		break;
	}
	raw->event = ev->event;
	raw->status = ev->status;
	raw->depth[0] = conn->responder_resources;
	raw->depth[1] = conn->initiator_depth;
	raw->len = conn->private_data ? conn->private_data_len : 0;
	memcpy(raw->data, conn->private_data, raw->len);
	complete(&raw->done);
	return 0;
}

/**
 * vraw_wait - wait for an event
 * @raw: the peer
 *
 * Return: the event, or -ETIMEDOUT.
 */
int vraw_wait(struct vraw *raw)
{
	if (!wait_for_completion_timeout(&raw->done,
					 msecs_to_jiffies(CT_TIMEOUT_MS)))
		return -ETIMEDOUT;
	return raw->event;
}

static int vraw_create(struct vraw *raw, struct net *net,
		       struct rdma_cm_id **id)
{
	*raw = (struct vraw) {};
	init_completion(&raw->done);
	*id = rdma_create_id(net, vraw_event, raw, RDMA_PS_TCP, IB_QPT_RC);
	if (!IS_ERR(*id))
		return 0;
	*id = NULL;
	return -ENOMEM;
}

/**
 * vraw_connect - ask for a connection
 * @raw: the peer, unused
 * @net: network namespace
 * @to: whom
 * @param: with the private data as it is to be
 *
 * vraw_wait() gives the outcome, vraw_close() is needed in any case.
 *
 * Return: 0 or a negative error.
 */
int vraw_connect(struct vraw *raw, struct net *net,
		 const struct sockaddr_storage *to,
		 const struct rdma_conn_param *param)
{
	struct sockaddr_storage dest = *to;
	struct rdma_conn_param own = *param;
	int err;

	err = vraw_create(raw, net, &raw->id);
	if (err)
		return err;
	err = rdma_resolve_addr(raw->id, NULL, (struct sockaddr *)&dest,
				VRAW_RESOLVE_MS);
	if (!err && vraw_wait(raw) != RDMA_CM_EVENT_ADDR_RESOLVED)
		err = -EHOSTUNREACH;
	err = err ?: rdma_resolve_route(raw->id, VRAW_RESOLVE_MS);
	if (!err && vraw_wait(raw) != RDMA_CM_EVENT_ROUTE_RESOLVED)
		err = -EHOSTUNREACH;
	err = err ?: vraw_create_qp(raw);
	return err ?: rdma_connect(raw->id, &own);
}

/**
 * vraw_listen - wait for a connection
 * @raw: the peer, unused
 * @net: network namespace
 * @addr: where; with the port afterwards
 *
 * Return: 0 or a negative error; vraw_close() is needed in any case.
 */
int vraw_listen(struct vraw *raw, struct net *net,
		struct sockaddr_storage *addr)
{
	int err;

	err = vraw_create(raw, net, &raw->listener);
	err = err ?: rdma_bind_addr(raw->listener, (struct sockaddr *)addr);
	err = err ?: rdma_listen(raw->listener, 1);
	if (!err)
		*addr = raw->listener->route.addr.src_addr;
	return err;
}

/**
 * vraw_accept - accept the request that has come
 * @raw: the peer
 * @param: with the private data as it is to be
 *
 * Return: 0 or a negative error.
 */
int vraw_accept(struct vraw *raw, const struct rdma_conn_param *param)
{
	struct rdma_conn_param own = *param;
	int err;

	err = vraw_create_qp(raw);
	if (err)
		return err;
	rdma_lock_handler(raw->id);
	err = rdma_accept(raw->id, &own);
	rdma_unlock_handler(raw->id);
	return err;
}

/**
 * vraw_die - answer no more, without a word
 * @raw: a connected peer
 */
void vraw_die(struct vraw *raw)
{
	rdma_destroy_qp(raw->id);
}

/**
 * vraw_close - give everything back
 * @raw: the peer, however far it has come
 */
void vraw_close(struct vraw *raw)
{
	if (raw->id && raw->id->qp) {
		rdma_disconnect(raw->id);
		rdma_destroy_qp(raw->id);
	}
	if (raw->cq)
		ib_free_cq(raw->cq);
	if (raw->pd)
		ib_dealloc_pd(raw->pd);
	if (raw->id)
		rdma_destroy_id(raw->id);
	if (raw->listener)
		rdma_destroy_id(raw->listener);
}

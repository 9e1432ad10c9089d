// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections: the part of iWARP's connection manager that a device does.
 *
 * There is no wire: who connects finds who listens in the device itself. The
 * manager takes events in any context, and handles them in its own. So all of it
 * happens at once, with the device's lock held: a request is an event there, the
 * answer one here, and the end of a queue pair that of the other and of the
 * connection.
 */
#include <linux/in.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "testrdma.h"

struct trd_listener {
	struct list_head	node;
	struct iw_cm_id		*id;
};

static void trd_conn_put(struct trd_conn *conn)
{
	if (!--conn->refs)
		kfree(conn);
}

/* The other end, with the device's lock held; NULL if it is not connected */
struct trd_qp *trd_peer(const struct trd_qp *qp)
{
	const struct trd_conn *conn = qp->conn;

	return conn ? conn->qp[conn->qp[0] == qp] : NULL;
}

/**
 * trd_conn_end - the end, for both
 * @conn: a connection or an attempt
 * @reply: for an attempt, what is said to who has asked
 *
 * Context: any, with the device's lock held.
 */
void trd_conn_end(struct trd_conn *conn, struct iw_cm_event *reply)
{
	struct iw_cm_event close = { .event = IW_CM_EVENT_CLOSE };
	bool established = conn->id[1];
	int i;

	if (conn->ended)
		return;
	conn->ended = true;
	for (i = 0; i < 2 && conn->id[i]; i++) {
		conn->qp[i]->conn = NULL;
		trd_qp_end(conn->qp[i]);
		trd_qp_put(conn->qp[i]);
		conn->id[i]->event_handler(conn->id[i],
					   established ? &close : reply);
		conn->id[i]->rem_ref(conn->id[i]);
	}
	/* an answer to the request may still come */
	if (established)
		trd_conn_put(conn);
	trd_conn_put(conn);
}

static void trd_conn_join(struct trd_conn *conn, int side, struct iw_cm_id *id,
			  struct trd_qp *qp)
{
	id->add_ref(id);
	refcount_inc(&qp->refs);
	conn->id[side] = id;
	conn->qp[side] = qp;
	qp->conn = conn;
}

static struct iw_cm_id *trd_listener_find(struct trd_dev *dev,
					  const struct sockaddr_storage *to)
{
	struct trd_listener *l;

	/* all addresses are the device's; the port is at the same place in each */
	list_for_each_entry(l, &dev->listeners, node)
		if (((struct sockaddr_in *)&l->id->m_local_addr)->sin_port ==
		    ((const struct sockaddr_in *)to)->sin_port)
			return l->id;
	return NULL;
}

static int trd_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	struct trd_dev *dev = trd_dev(id->device);
	struct trd_qp *qp = xa_load(&dev->qps, param->qpn);
	struct iw_cm_event reply = {
		.event = IW_CM_EVENT_CONNECT_REPLY, .status = -ECONNREFUSED,
	};
	struct iw_cm_event request = {
		.event = IW_CM_EVENT_CONNECT_REQUEST,
		.local_addr = id->m_remote_addr,
		.remote_addr = id->m_local_addr,
		.private_data = (void *)param->private_data,
		.private_data_len = param->private_data_len,
		.ird = param->ord, .ord = param->ird,
	};
	struct iw_cm_id *listener;
	struct trd_conn *conn;
	unsigned long irq;
	int err = 0;

	/* kofi_verbs connects, and what is written back may wait for that */
	WARN_ON_ONCE(!(current->flags & PF_MEMALLOC_NOIO));
	conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	if (!conn)
		return -ENOMEM;
	conn->refs = 2;
	request.provider_data = conn;

	spin_lock_irqsave(&dev->lock, irq);
	if (qp->state != IB_QPS_INIT) {
		err = -EINVAL;
		goto unlock;
	}
	trd_conn_join(conn, 0, id, qp);
	listener = trd_listener_find(dev, &id->m_remote_addr);
	if (!listener || listener->event_handler(listener, &request)) {
		trd_conn_put(conn);
		trd_conn_end(conn, &reply);
	}
unlock:
	spin_unlock_irqrestore(&dev->lock, irq);
	if (err)
		kfree(conn);
	return err;
}

static int trd_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	struct iw_cm_event established = { .event = IW_CM_EVENT_ESTABLISHED };
	struct trd_dev *dev = trd_dev(id->device);
	struct trd_qp *qp = xa_load(&dev->qps, param->qpn);
	struct trd_conn *conn = id->provider_data;
	struct iw_cm_event reply = {
		.event = IW_CM_EVENT_CONNECT_REPLY,
		.private_data = (void *)param->private_data,
		.private_data_len = param->private_data_len,
		.ird = param->ord, .ord = param->ird,
	};
	unsigned long irq;
	int i;

	spin_lock_irqsave(&dev->lock, irq);
	if (!conn->ended && qp->state != IB_QPS_INIT) {
		reply = (struct iw_cm_event) {
			.event = IW_CM_EVENT_CONNECT_REPLY,
			.status = -ECONNRESET,
		};
		trd_conn_end(conn, &reply);
	}
	if (conn->ended) {
		trd_conn_put(conn);
		spin_unlock_irqrestore(&dev->lock, irq);
		return -ECONNRESET;
	}
	trd_conn_join(conn, 1, id, qp);
	reply.local_addr = conn->id[0]->m_local_addr;
	reply.remote_addr = conn->id[0]->m_remote_addr;
	for (i = 0; i < 2; i++)
		conn->qp[i]->state = IB_QPS_RTS;
	id->event_handler(id, &established);
	conn->id[0]->event_handler(conn->id[0], &reply);
	spin_unlock_irqrestore(&dev->lock, irq);
	return 0;
}

static int trd_reject(struct iw_cm_id *id, const void *data, u8 len)
{
	struct trd_dev *dev = trd_dev(id->device);
	struct trd_conn *conn = id->provider_data;
	struct iw_cm_event reply = {
		.event = IW_CM_EVENT_CONNECT_REPLY, .status = -ECONNREFUSED,
		.private_data = (void *)data, .private_data_len = len,
	};
	unsigned long irq;

	spin_lock_irqsave(&dev->lock, irq);
	trd_conn_end(conn, &reply);
	trd_conn_put(conn);
	spin_unlock_irqrestore(&dev->lock, irq);
	return 0;
}

static int trd_create_listen(struct iw_cm_id *id, int backlog)
{
	struct trd_dev *dev = trd_dev(id->device);
	struct trd_listener *l;
	unsigned long irq;

	l = kzalloc(sizeof(*l), GFP_KERNEL);
	if (!l)
		return -ENOMEM;
	id->add_ref(id);
	l->id = id;
	id->provider_data = l;
	spin_lock_irqsave(&dev->lock, irq);
	list_add(&l->node, &dev->listeners);
	spin_unlock_irqrestore(&dev->lock, irq);
	return 0;
}

static int trd_destroy_listen(struct iw_cm_id *id)
{
	struct trd_dev *dev = trd_dev(id->device);
	struct trd_listener *l = id->provider_data;
	unsigned long irq;

	spin_lock_irqsave(&dev->lock, irq);
	list_del(&l->node);
	spin_unlock_irqrestore(&dev->lock, irq);
	kfree(l);
	id->rem_ref(id);
	return 0;
}

/* The manager calls these three with locks of its own. */
static struct ib_qp *trd_get_qp(struct ib_device *ib, int number)
{
	struct trd_qp *qp = xa_load(&trd_dev(ib)->qps, number);

	return qp ? &qp->ib : NULL;
}

static void trd_add_ref(struct ib_qp *qp)
{
	refcount_inc(&trd_qp(qp)->refs);
}

static void trd_rem_ref(struct ib_qp *qp)
{
	trd_qp_put(trd_qp(qp));
}

const struct ib_device_ops trd_conn_ops = {
	.iw_accept		= trd_accept,
	.iw_add_ref		= trd_add_ref,
	.iw_connect		= trd_connect,
	.iw_create_listen	= trd_create_listen,
	.iw_destroy_listen	= trd_destroy_listen,
	.iw_get_qp		= trd_get_qp,
	.iw_reject		= trd_reject,
	.iw_rem_ref		= trd_rem_ref,
};

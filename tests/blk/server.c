// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The server: memory that clients see as disks.
 *
 * Each connection has a store of the size its client asked for, and one slot
 * for each request it may have under way. A slot has a receive posted until a
 * request arrives; then it moves the bytes, a read of the client's memory for
 * a write of its disk and the other way round, and answers. The answer follows
 * the bytes on the same stream, so it need not wait for them.
 *
 * A slot whose post is refused waits for the write-space callback and tries
 * the same step again. When the connection has ended its slots stop.
 */
#include <linux/list.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "testblk.h"

struct tb_conn;

/**
 * struct tb_slot - a request
 * @conn: where it came from
 * @recv: completes the receive
 * @move: completes the read or write
 * @answer: completes the answer
 * @msg: request, then answer
 * @step: the post to be made next
 * @node: on the list of those that wait
 */
struct tb_slot {
	struct tb_conn		*conn;
	struct kofi_cqe		recv;
	struct kofi_cqe		move;
	struct kofi_cqe		answer;
	struct tb_msg		msg;
	int			(*step)(struct tb_slot *slot);
	struct list_head	node;
};

struct tb_conn {
	struct list_head	node;
	struct tb_end		end;
	u8			*store;
	u64			bytes;
	spinlock_t		lock;		/* for waiting */
	struct list_head	waiting;
	struct tb_slot		slots[TB_DEPTH];
};

static struct fid_fabric *tb_fabric;
static struct fid_eq *tb_eq;
static struct fid_pep *tb_pep;
static LIST_HEAD(tb_conns);	/* the event handler's, then who closes it */

/* Make the slot's next post, or see to it that it is made. */
static void tb_slot_go(struct tb_slot *slot)
{
	struct tb_conn *conn = slot->conn;

	spin_lock_bh(&conn->lock);
	if (slot->step(slot) == -EAGAIN)
		list_add_tail(&slot->node, &conn->waiting);
	spin_unlock_bh(&conn->lock);
}

static void tb_server_space(struct fid_ep *ep, void *context)
{
	struct tb_conn *conn = context;
	struct tb_slot *slot, *next;
	LIST_HEAD(list);

	spin_lock_bh(&conn->lock);
	list_splice_init(&conn->waiting, &list);
	spin_unlock_bh(&conn->lock);
	list_for_each_entry_safe(slot, next, &list, node)
		tb_slot_go(slot);
}

static int tb_slot_receive(struct tb_slot *slot)
{
	return tb_recv(&slot->conn->end, &slot->msg, &slot->recv);
}

/* The client's key ends with the answer, if we have not made use of it. */
static int tb_slot_answer(struct tb_slot *slot)
{
	struct kvec kv = {
		.iov_base = &slot->msg, .iov_len = sizeof(slot->msg),
	};
	const struct fi_msg msg = {
		.msg_iov = &kv,
		.iov_count = 1,
		.context = &slot->answer,
		.inv_key = le64_to_cpu(slot->msg.key),
	};

	return fi_sendmsg(slot->conn->end.ep, &msg, KOFI_REMOTE_INV);
}

static int tb_slot_move(struct tb_slot *slot)
{
	const struct tb_msg *msg = &slot->msg;
	struct tb_conn *conn = slot->conn;
	void *mem = conn->store + le64_to_cpu(msg->pos);
	size_t len = le32_to_cpu(msg->len);

	if (msg->op == cpu_to_le32(TB_WRITE))
		return fi_read(conn->end.ep, mem, len, NULL, 0,
			       le64_to_cpu(msg->addr), le64_to_cpu(msg->key),
			       &slot->move);
	return fi_write(conn->end.ep, mem, len, NULL, 0,
			le64_to_cpu(msg->addr), le64_to_cpu(msg->key),
			&slot->move);
}

static void tb_slot_next(struct tb_slot *slot,
			 int (*step)(struct tb_slot *slot))
{
	slot->step = step;
	tb_slot_go(slot);
}

static void tb_slot_finish(struct tb_slot *slot, int error)
{
	slot->msg.error = cpu_to_le32(error);
	tb_slot_next(slot, tb_slot_answer);
}

static void tb_slot_moved(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct tb_slot *slot = container_of(wc->cqe, struct tb_slot, move);

	if (!wc->err)
		tb_slot_finish(slot, 0);
}

static void tb_slot_answered(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct tb_slot *slot = container_of(wc->cqe, struct tb_slot, answer);

	if (!wc->err)
		tb_slot_next(slot, tb_slot_receive);
}

static void tb_slot_received(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct tb_slot *slot = container_of(wc->cqe, struct tb_slot, recv);
	const struct tb_msg *msg = &slot->msg;
	u64 pos = le64_to_cpu(msg->pos);
	u32 len = le32_to_cpu(msg->len);

	if (wc->err)
		return;
	if (wc->len != sizeof(*msg) || len > slot->conn->bytes ||
	    pos > slot->conn->bytes - len)
		tb_slot_finish(slot, EINVAL);
	else
		tb_slot_next(slot, tb_slot_move);
}

/* ------------------------------------------------------------- connections */

static void tb_conn_free(struct tb_conn *conn)
{
	tb_end_close(&conn->end);
	vfree(conn->store);
	kfree(conn);
}

/* An endpoint takes the request over; without one it is there to be rejected. */
static void tb_conn_open(struct fi_info *info, const struct tb_hello *hello)
{
	struct tb_end_attr attr = {
		.sleepy = le32_to_cpu(hello->sleepy), .space = tb_server_space,
	};
	struct tb_conn *conn;
	bool taken;
	int err, i;

	conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	if (!conn)
		goto reject;
	spin_lock_init(&conn->lock);
	INIT_LIST_HEAD(&conn->waiting);
	attr.context = conn;
	conn->bytes = (u64)le32_to_cpu(hello->mib) << 20;
	err = -ENOMEM;
	conn->store = vzalloc(conn->bytes);
	if (!conn->store)
		goto free;
	err = tb_end_open(&conn->end, tb_fabric, tb_eq, info, &attr);
	for (i = 0; i < TB_DEPTH && !err; i++) {
		struct tb_slot *slot = &conn->slots[i];

		slot->conn = conn;
		slot->recv.done = tb_slot_received;
		slot->move.done = tb_slot_moved;
		slot->answer.done = tb_slot_answered;
		err = tb_slot_receive(slot);
	}
	err = err ? : fi_accept(conn->end.ep, NULL, 0);
	if (err)
		goto free;
	list_add_tail(&conn->node, &tb_conns);
	return;

free:
	pr_err("kofi_testblk: cannot serve a disk of %u MiB: %d\n",
	       le32_to_cpu(hello->mib), err);
	taken = conn->end.ep;
	tb_conn_free(conn);
	if (taken)
		return;
reject:
	fi_reject(tb_pep, info->handle, NULL, 0);
}

/* Connections that end stay until the module goes. */
static void tb_server_event(struct fid_eq *eq, void *context)
{
	const ssize_t len = sizeof(struct fi_eq_cm_entry) +
			    sizeof(struct tb_hello);
	union {
		struct fi_eq_cm_entry	entry;
		u8			bytes[sizeof(struct fi_eq_cm_entry) +
					      sizeof(struct tb_hello)];
	} ev;
	struct fi_eq_err_entry error = {};
	u32 event;
	ssize_t n;

	while ((n = fi_eq_read(eq, &event, &ev, sizeof(ev), 0)) != -EAGAIN) {
		if (n == -FI_EAVAIL)
			fi_eq_readerr(eq, &error, 0);
		if (n < 0 || event != FI_CONNREQ)
			continue;
		if (n == len)
			tb_conn_open(ev.entry.info, (void *)ev.entry.data);
		else
			fi_reject(tb_pep, ev.entry.info->handle, NULL, 0);
		fi_freeinfo(ev.entry.info);
	}
}

/**
 * tb_server_open - serve disks
 * @node: address to listen at
 *
 * Return: 0 or a negative error code.
 */
int tb_server_open(const char *node)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct fi_info *info;
	int err;

	err = tb_getinfo(node, FI_SOURCE, &info);
	if (err)
		return err;
	err = fi_fabric(info->fabric_attr, &tb_fabric, NULL);
	err = err ? : kofi_eq_open(tb_fabric, &attr, tb_server_event, &tb_eq,
				   NULL);
	err = err ? : fi_passive_ep(tb_fabric, info, &tb_pep, NULL);
	err = err ? : fi_pep_bind(tb_pep, &tb_eq->fid, 0);
	err = err ? : fi_listen(tb_pep);
	fi_freeinfo(info);
	return err;
}

/**
 * tb_server_close - end what tb_server_open() has begun, however far it came
 */
void tb_server_close(void)
{
	struct tb_conn *conn, *next;

	if (tb_pep)
		fi_close(&tb_pep->fid);
	list_for_each_entry_safe(conn, next, &tb_conns, node)
		tb_conn_free(conn);
	if (tb_eq)
		fi_close(&tb_eq->fid);
	if (tb_fabric)
		fi_close(&tb_fabric->fid);
}

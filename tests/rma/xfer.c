// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Operations: posting them, waiting for them, and checking their results.
 *
 * Every operation has its kofi_cqe in a struct rma_op. The callback counts,
 * compares the completion with what is expected, and overwrites the memory of a
 * transmit, which the provider may not read any more. A completion that comes
 * too early thus shows as a wrong byte at the peer.
 *
 * A post that is refused with -EAGAIN is repeated when a callback has run.
 */
#include <linux/string.h>

#include "rma.h"

/* where our own accesses work in the local memory, guards before and after */
#define RMA_LOCAL_AT	(KRMA_GUARD + 13)

enum rma_what {
	RMA_WRITE,
	RMA_READ,
	RMA_SEND,
	RMA_RECV,
};

/* ---------------------------------------------------------------- callbacks */

static void rma_xfer_wake(struct rma_run *run)
{
	WRITE_ONCE(run->space, run->space + 1);
	wake_up_all(&run->wq);
}

/**
 * rma_xfer_space - the endpoint's write-space callback
 * @ep: the endpoint
 * @context: the run
 */
void rma_xfer_space(struct fid_ep *ep, void *context)
{
	rma_xfer_wake(context);
}

static void rma_xfer_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct rma_op *op = container_of(wc->cqe, struct rma_op, cqe);
	struct rma_ops *ops = op->ops;
	int err = -wc->err;

	if (!err && wc->flags != op->flags)
		err = -EPROTO;
	if (!err && (wc->flags & FI_RECV) && wc->len != op->len)
		err = -EMSGSIZE;
	if (err && !ops->err)
		ops->err = err;
	if (op->spoil)
		memset(op->spoil, 0x5a, op->len);
	atomic_dec(&ops->pending);
	rma_xfer_wake(ops->run);
}

/* A value that came with a write of the peer's. */
static void rma_xfer_remote(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct rma_run *run = container_of(wc->cqe, struct rma_run, remote);

	spin_lock_bh(&run->lock);
	if (wc->flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA) &&
	    wc->data == run->data_next)
		run->data_next++;
	else
		run->data_bad++;
	spin_unlock_bh(&run->lock);
}

static void rma_cmd_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct rma_run *run = container_of(wc->cqe, struct rma_run, cmd);

	run->cmd_err = -wc->err;
	/* after cmd_err; pairs with rma_cmd_send() */
	smp_store_release(&run->cmd_busy, false);
	rma_xfer_wake(run);
}

static void rma_answer_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct rma_run *run = container_of(wc->cqe, struct rma_run, answer);

	run->answer_err = -wc->err;
	run->answer_len = wc->len;
	/* after the rest; pairs with rma_cmd_recv() */
	smp_store_release(&run->answer_state, RMA_ANSWER_HERE);
	rma_xfer_wake(run);
}

/* The next client is there. */
static void rma_name_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct rma_run *run = container_of(wc->cqe, struct rma_run, name);

	run->name_len = wc->err ? 0 : wc->len;
	/* after the length; pairs with rma_next() */
	smp_store_release(&run->name_here, true);
	rma_xfer_wake(run);
}

/**
 * rma_xfer_init - callbacks of a run
 * @run: the run
 */
void rma_xfer_init(struct rma_run *run)
{
	struct rma_ops *ops[] = { &run->tx, &run->rx };
	int i, k;

	for (k = 0; k < ARRAY_SIZE(ops); k++) {
		ops[k]->run = run;
		for (i = 0; i < KRMA_COUNT_MAX; i++) {
			ops[k]->op[i].ops = ops[k];
			ops[k]->op[i].cqe.done = rma_xfer_done;
		}
	}
	run->cmd.done = rma_cmd_done;
	run->answer.done = rma_answer_done;
	run->name.done = rma_name_done;
	run->remote.done = rma_xfer_remote;
}

/* ------------------------------------------------------------------ posting */

static u64 rma_xfer_level(enum krma_level level)
{
	switch (level) {
	case KRMA_INJECT:
		return FI_INJECT;
	case KRMA_INJECT_COMPLETE:
		return FI_INJECT_COMPLETE;
	case KRMA_TRANSMIT:
		return FI_TRANSMIT_COMPLETE;
	case KRMA_DELIVERY:
		return FI_DELIVERY_COMPLETE;
	default:
		return 0;
	}
}

/* Where receives of the run are posted. */
static struct fid_ep *rma_xfer_rx(struct rma_run *run)
{
	return run->srx ?: run->ep;
}

/* Remote segments of access @i, spoiled if the command says so. */
static void rma_xfer_segments(struct rma_run *run, const struct rma_cmd *cmd,
			      u32 i, struct fi_rma_iov *seg)
{
	struct krma_segment s;
	u32 k;

	for (k = 0; k < cmd->segs; k++) {
		s = krma_segment(cmd->off + i * cmd->len, cmd->len, cmd->segs,
				 k);
		seg[k].addr = run->peer.addr + s.off;
		seg[k].len = s.len;
		seg[k].key = run->peer.key;
	}
	/* the last of several, so that the others are right */
	k = cmd->segs - 1;
	/* a key has 32 bits, if it is a device's */
	if (cmd->flags & KRMA_F_BAD_KEY)
		seg[k].key ^= 0x80;
	if (cmd->flags & KRMA_F_BAD_RANGE)
		seg[k].addr = run->peer.addr + run->peer.size - seg[k].len + 1;
	if (cmd->flags & KRMA_F_BAD_WRAP)
		seg[k].addr = U64_MAX - seg[k].len / 2;
}

static ssize_t rma_xfer_post_rma(struct rma_run *run, struct rma_op *op,
				 enum rma_what what, const struct rma_cmd *cmd,
				 u32 i)
{
	struct fi_rma_iov seg[KRMA_SEGS_MAX];
	struct fi_msg_rma msg = {
		.rma_iov = seg, .rma_iov_count = cmd->segs, .addr = run->to,
		.context = &op->cqe, .data = cmd->data + i,
	};
	u64 flags = FI_COMPLETION;

	RMA_VEC_SET(&msg, &op->vec);
	rma_xfer_segments(run, cmd, i, seg);
	if (what == RMA_READ)
		return fi_readmsg(run->ep, &msg, flags);
	flags |= rma_xfer_level(cmd->level);
	if (cmd->flags & KRMA_F_DATA)
		flags |= FI_REMOTE_CQ_DATA;
	return fi_writemsg(run->ep, &msg, flags);
}

static ssize_t rma_xfer_post_msg(struct rma_run *run, struct rma_op *op,
				 enum rma_what what, const struct rma_cmd *cmd,
				 u32 i)
{
	u64 flags = FI_COMPLETION | rma_xfer_level(cmd->level);
	struct fi_msg_tagged tagged = {
		.context = &op->cqe, .tag = cmd->data + i, .addr = run->to,
	};
	struct fi_msg msg = { .context = &op->cqe, .addr = run->to };

	if (cmd->flags & KRMA_F_TAGGED) {
		RMA_VEC_SET(&tagged, &op->vec);
		if (what == RMA_RECV)
			return fi_trecvmsg(rma_xfer_rx(run), &tagged,
					   FI_COMPLETION);
		return fi_tsendmsg(run->ep, &tagged, flags);
	}
	RMA_VEC_SET(&msg, &op->vec);
	if (what == RMA_RECV)
		return fi_recvmsg(rma_xfer_rx(run), &msg, FI_COMPLETION);
	return fi_sendmsg(run->ep, &msg, flags);
}

static int rma_xfer_post(struct rma_run *run, struct rma_op *op,
			 enum rma_what what, const struct rma_cmd *cmd, u32 i)
{
	unsigned int seen;
	ssize_t ret;

	for (;;) {
		seen = READ_ONCE(run->space);
		if (what == RMA_READ || what == RMA_WRITE)
			ret = rma_xfer_post_rma(run, op, what, cmd, i);
		else
			ret = rma_xfer_post_msg(run, op, what, cmd, i);
		if (ret != -EAGAIN)
			return ret;
		ret = rma_wait(run, READ_ONCE(run->space) != seen);
		if (ret)
			return ret;
	}
}

/* What the completion of operation @i has to say. */
static u64 rma_xfer_flags(enum rma_what what, const struct rma_cmd *cmd)
{
	u64 kind = cmd->flags & KRMA_F_TAGGED ? FI_TAGGED : FI_MSG;

	switch (what) {
	case RMA_WRITE:
		return FI_RMA | FI_WRITE;
	case RMA_READ:
		return FI_RMA | FI_READ;
	case RMA_SEND:
		return kind | FI_SEND;
	default:
		return kind | FI_RECV;
	}
}

/*
 * Posts all operations of a command. Tagged receives are posted the last one
 * first, so that it is the tags that bring message and memory together.
 */
static int rma_xfer_begin(struct rma_run *run, struct rma_ops *ops,
			  enum rma_what what, const struct rma_cmd *cmd)
{
	bool source = what == RMA_WRITE || what == RMA_SEND;
	size_t at = RMA_LOCAL_AT;
	u32 i, k;
	int ret;

	ops->err = 0;
	atomic_set(&ops->pending, 0);
	for (i = 0; i < cmd->count; i++, at += cmd->len) {
		struct rma_op *op = &ops->op[i];

		rma_vec_free(&op->vec);
		ret = rma_vec_make(&op->vec, &run->local, at, cmd->len,
				   cmd->kind, source);
		if (ret)
			return rma_error(run, ret, "describing memory as %s",
					 rma_kind_name(cmd->kind));
		op->flags = rma_xfer_flags(what, cmd);
		op->len = cmd->len;
		op->spoil = source ? run->local.virt + at : NULL;
	}
	for (i = 0; i < cmd->count; i++) {
		k = what == RMA_RECV && (cmd->flags & KRMA_F_TAGGED) ?
		    cmd->count - 1 - i : i;
		atomic_inc(&ops->pending);
		ret = rma_xfer_post(run, &ops->op[k], what, cmd, k);
		if (ret) {
			atomic_dec(&ops->pending);
			return rma_error(run, ret, "posting operation %u", i);
		}
		/* copied: ours at once */
		if (source && cmd->level == KRMA_INJECT)
			memset(run->local.virt + RMA_LOCAL_AT + k * cmd->len,
			       0x5a, cmd->len);
	}
	return 0;
}

static int rma_xfer_end(struct rma_run *run, struct rma_ops *ops)
{
	int i, ret;

	ret = rma_wait(run, !atomic_read(&ops->pending) || rma_next(run));
	if (!ret && atomic_read(&ops->pending)) {
		/* what the client before has not sent will not come */
		for (i = 0; i < KRMA_COUNT_MAX; i++)
			fi_cancel(&rma_xfer_rx(run)->fid, &ops->op[i].cqe);
		ret = rma_wait(run, !atomic_read(&ops->pending));
	}
	if (ret)
		return rma_error(run, ret, "waiting for %d operations",
				 atomic_read(&ops->pending));
	return rma_error(run, ops->err, "an operation's completion");
}

/* ------------------------------------------------------- content of a group */

/* The local memory of a command: content piece by piece as it is sent. */
static void rma_xfer_fill(struct rma_run *run, const struct rma_cmd *cmd)
{
	struct krma_segment seg;
	size_t at = RMA_LOCAL_AT;
	u32 i, k;

	for (i = 0; i < cmd->count; i++) {
		for (k = 0; k < cmd->segs; k++, at += seg.len) {
			seg = krma_segment(cmd->off + i * cmd->len, cmd->len,
					   cmd->segs, k);
			rma_mem_fill(run, &run->local, at, seg.len, cmd->seed,
				     seg.off);
		}
	}
}

/* All of it, guards too, is what was there before. */
static void rma_xfer_clear(struct rma_run *run, const struct rma_cmd *cmd)
{
	rma_mem_fill(run, &run->local, RMA_LOCAL_AT - KRMA_GUARD,
		     cmd->count * cmd->len + 2 * KRMA_GUARD, cmd->seed + 1, 0);
}

static int rma_xfer_check(struct rma_run *run, const struct rma_cmd *cmd)
{
	u64 total = cmd->count * cmd->len, where;
	struct krma_segment seg;
	size_t at = RMA_LOCAL_AT;
	u32 i, k;

	for (i = 0; i < cmd->count; i++) {
		for (k = 0; k < cmd->segs; k++, at += seg.len) {
			seg = krma_segment(cmd->off + i * cmd->len, cmd->len,
					   cmd->segs, k);
			if (!rma_mem_check(run, &run->local, at, seg.len,
					   cmd->seed, seg.off, &where))
				goto wrong;
		}
	}
	if (rma_mem_check(run, &run->local, RMA_LOCAL_AT - KRMA_GUARD,
			  KRMA_GUARD, cmd->seed + 1, 0, &where) &&
	    rma_mem_check(run, &run->local, at, KRMA_GUARD, cmd->seed + 1,
			  KRMA_GUARD + total, &where))
		return 0;
	return rma_error(run, -EBADMSG, "bytes beside the memory were changed");

wrong:
	return rma_error(run, -EBADMSG, "the byte of offset %llu is wrong here",
			 where);
}

/**
 * rma_xfer_access - read from the peer's region or write to it
 * @run: the run, connected, the peer's region known
 * @cmd: what to do; content that was read is checked
 * @write: which of both
 *
 * Return: 0, the error of a completion, -EBADMSG for wrong content.
 */
int rma_xfer_access(struct rma_run *run, const struct rma_cmd *cmd, bool write)
{
	int ret;

	if (write)
		rma_xfer_fill(run, cmd);
	else
		rma_xfer_clear(run, cmd);
	ret = rma_xfer_begin(run, &run->tx, write ? RMA_WRITE : RMA_READ, cmd);
	ret = ret ?: rma_xfer_end(run, &run->tx);
	return ret || write ? ret : rma_xfer_check(run, cmd);
}

/**
 * rma_xfer_send - send messages
 * @run: the run, connected; the peer expects them
 * @cmd: which
 *
 * Return: 0 or the first error.
 */
int rma_xfer_send(struct rma_run *run, const struct rma_cmd *cmd)
{
	rma_xfer_fill(run, cmd);
	return rma_xfer_begin(run, &run->tx, RMA_SEND, cmd) ?:
	       rma_xfer_end(run, &run->tx);
}

/**
 * rma_xfer_recv_begin - be ready for messages
 * @run: the run, connected
 * @cmd: which
 *
 * Return: 0 or a negative error code.
 */
int rma_xfer_recv_begin(struct rma_run *run, const struct rma_cmd *cmd)
{
	rma_xfer_clear(run, cmd);
	return rma_xfer_begin(run, &run->rx, RMA_RECV, cmd);
}

/**
 * rma_xfer_recv_end - wait for messages and check them
 * @run: the run, after rma_xfer_recv_begin()
 * @cmd: which
 *
 * Return: 0, the error of a completion, -EBADMSG for wrong content.
 */
int rma_xfer_recv_end(struct rma_run *run, const struct rma_cmd *cmd)
{
	return rma_xfer_end(run, &run->rx) ?: rma_xfer_check(run, cmd);
}

/* --------------------------------------------------------- the single calls */

/* An operation of which only the completion is wanted. */
static struct kofi_cqe *rma_xfer_single(struct rma_ops *ops, u32 i, u64 flags)
{
	struct rma_op *op = &ops->op[i];

	op->spoil = NULL;
	op->flags = FI_RMA | flags;
	atomic_inc(&ops->pending);
	return &op->cqe;
}

/**
 * rma_xfer_forms - each short form of write and read, once
 * @run: the run, connected
 * @seed: of the content, of which KRMA_FORMS bytes are written
 * @off: where in the peer's region
 *
 * The two that carry values carry 0 and 1; without values they are the same
 * again.
 *
 * Return: 0 or the first error.
 */
int rma_xfer_forms(struct rma_run *run, u32 seed, u64 off)
{
	const struct rma_cmd cmd = {
		.count = 1, .segs = 1, .seed = seed, .off = off,
		.len = KRMA_FORMS,
	};
	u8 *p = run->local.virt + RMA_LOCAL_AT;
	u64 addr = run->peer.addr + off, key = run->peer.key;
	struct rma_ops *ops = &run->tx;
	struct fid_ep *ep = run->ep;
	struct kofi_cqe *cqe;
	struct kvec iov[2] = {
		{ .iov_base = p + 100, .iov_len = 50 },
		{ .iov_base = p + 150, .iov_len = 73 },
	};
	int ret;

	rma_xfer_fill(run, &cmd);
	ops->err = 0;
	atomic_set(&ops->pending, 0);
	ret = fi_write(ep, p, 100, NULL, run->to, addr, key,
		       rma_xfer_single(ops, 0, FI_WRITE));
	ret = ret ?: fi_writev(ep, iov, NULL, 2, run->to, addr + 100, key,
			       rma_xfer_single(ops, 1, FI_WRITE));
	ret = ret ?: fi_inject_write(ep, p + 1223, 64, run->to, addr + 1223,
				     key);
	cqe = rma_xfer_single(ops, 2, FI_WRITE);
	if (run->iwarp) {
		ret = ret ?: fi_write(ep, p + 223, 1000, NULL, run->to,
				      addr + 223, key, cqe);
		ret = ret ?: fi_inject_write(ep, p + 1287, 128, run->to,
					     addr + 1287, key);
	} else {
		ret = ret ?: fi_writedata(ep, p + 223, 1000, NULL, 0, run->to,
					  addr + 223, key, cqe);
		ret = ret ?: fi_inject_writedata(ep, p + 1287, 128, 1, run->to,
						 addr + 1287, key);
	}
	if (ret)
		return rma_error(run, ret, "a short form of write");
	ret = rma_xfer_end(run, ops);
	if (ret)
		return ret;

	rma_xfer_clear(run, &cmd);
	iov[0].iov_base = p + 1000;
	iov[0].iov_len = 400;
	iov[1].iov_base = p + 1400;
	iov[1].iov_len = KRMA_FORMS - 1400;
	ret = fi_read(ep, p, 1000, NULL, run->to, addr, key,
		      rma_xfer_single(ops, 0, FI_READ));
	ret = ret ?: fi_readv(ep, iov, NULL, 2, run->to, addr + 1000, key,
			      rma_xfer_single(ops, 1, FI_READ));
	if (ret)
		return rma_error(run, ret, "a short form of read");
	ret = rma_xfer_end(run, ops);
	return ret ?: rma_xfer_check(run, &cmd);
}

/**
 * rma_xfer_fence - a read, and behind it a fenced write to the same place
 * @run: the run, connected
 * @cmd: where; the region has the content of the next seed there, and has that
 *	of this one afterwards
 *
 * The provider promises no order between the two; FI_FENCE does.
 *
 * Return: 0 or the first error.
 */
int rma_xfer_fence(struct rma_run *run, const struct rma_cmd *cmd)
{
	size_t from = RMA_LOCAL_AT + cmd->len + 2 * KRMA_GUARD;
	u64 addr = run->peer.addr + cmd->off, where;
	struct rma_ops *ops = &run->tx;
	struct kvec iov = {
		.iov_base = run->local.virt + from, .iov_len = cmd->len,
	};
	const struct fi_rma_iov seg = {
		.addr = addr, .len = cmd->len, .key = run->peer.key,
	};
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .rma_iov = &seg,
		.rma_iov_count = 1, .addr = run->to,
	};
	int ret;

	rma_mem_fill(run, &run->local, RMA_LOCAL_AT, cmd->len, cmd->seed,
		     cmd->off);
	rma_mem_fill(run, &run->local, from, cmd->len, cmd->seed, cmd->off);
	ops->err = 0;
	atomic_set(&ops->pending, 0);
	ret = fi_read(run->ep, run->local.virt + RMA_LOCAL_AT, cmd->len, NULL,
		      run->to, addr, run->peer.key,
		      rma_xfer_single(ops, 0, FI_READ));
	if (ret)
		return rma_error(run, ret, "fi_read");
	msg.context = rma_xfer_single(ops, 1, FI_WRITE);
	ret = fi_writemsg(run->ep, &msg, FI_COMPLETION | FI_FENCE);
	if (ret)
		return rma_error(run, ret, "fi_writemsg with FI_FENCE");
	ret = rma_xfer_end(run, ops);
	if (ret)
		return ret;
	if (rma_mem_check(run, &run->local, RMA_LOCAL_AT, cmd->len,
			  cmd->seed + 1, cmd->off, &where))
		return 0;
	return rma_error(run, -EBADMSG, "a read saw the fenced write at %llu",
			 where);
}

/* ----------------------------------------------------- commands and answers */

/* Send so many bytes of run->cmd_buf: a command or an answer, or @name. */
static int rma_cmd_put(struct rma_run *run, size_t len, bool name)
{
	unsigned int seen;
	ssize_t ret;

	run->cmd_busy = true;
	for (;;) {
		seen = READ_ONCE(run->space);
		ret = name ? fi_tsend(run->ep, &run->cmd_buf, len, NULL, run->to,
				      KRMA_NAME_TAG, &run->cmd) :
			     fi_send(run->ep, &run->cmd_buf, len, NULL, run->to,
				     &run->cmd);
		if (ret != -EAGAIN)
			break;
		ret = rma_wait(run, READ_ONCE(run->space) != seen);
		if (ret)
			break;
	}
	if (!ret) {
		/* pairs with rma_cmd_done() */
		ret = rma_wait(run, !smp_load_acquire(&run->cmd_busy));
	}
	return ret ?: run->cmd_err;
}

/**
 * rma_cmd_send - send a command or an answer
 * @run: the run, connected
 * @cmd: the command
 *
 * Return: 0 or a negative error code.
 */
int rma_cmd_send(struct rma_run *run, const struct rma_cmd *cmd)
{
	struct krma_msg *m = &run->cmd_buf;

	m->magic = cpu_to_le32(KRMA_MAGIC);
	m->op = cpu_to_le16(cmd->op);
	m->flags = cpu_to_le16(cmd->flags);
	m->status = cpu_to_le32(cmd->status);
	m->seed = cpu_to_le32(cmd->seed);
	m->count = cpu_to_le32(cmd->count);
	m->segs = cpu_to_le32(cmd->segs);
	m->level = cpu_to_le32(cmd->level);
	m->kind = cpu_to_le32(cmd->kind);
	m->off = cpu_to_le64(cmd->off);
	m->len = cpu_to_le64(cmd->len);
	m->data = cpu_to_le64(cmd->data);
	m->key = cpu_to_le64(cmd->key);
	m->addr = cpu_to_le64(cmd->addr);
	m->size = cpu_to_le64(cmd->size);

	return rma_error(run, rma_cmd_put(run, sizeof(*m), false),
			 "sending a command");
}

/**
 * rma_name_send - tell the peer where its answers are to go
 * @run: the run, with an endpoint that does not connect
 *
 * Return: 0 or a negative error code.
 */
int rma_name_send(struct rma_run *run)
{
	size_t len = sizeof(run->cmd_buf);
	int ret;

	ret = fi_getname(&run->ep->fid, &run->cmd_buf, &len);
	return rma_error(run, ret ?: rma_cmd_put(run, len, true),
			 "the first message");
}

/**
 * rma_cmd_expect - be ready for the next command or answer
 * @run: the run, with an endpoint; may be ready already
 *
 * Return: 0 or a negative error code.
 */
int rma_cmd_expect(struct rma_run *run)
{
	ssize_t ret;

	/* one that has come already is not to be overwritten */
	if (READ_ONCE(run->answer_state) != RMA_ANSWER_NONE)
		return 0;
	WRITE_ONCE(run->answer_state, RMA_ANSWER_POSTED);
	ret = fi_recv(rma_xfer_rx(run), &run->answer_buf,
		      sizeof(run->answer_buf), NULL, run->to, &run->answer);
	if (ret)
		WRITE_ONCE(run->answer_state, RMA_ANSWER_NONE);
	return rma_error(run, ret, "fi_recv");
}

static bool rma_answered(struct rma_run *run)
{
	/* pairs with rma_answer_done() */
	return smp_load_acquire(&run->answer_state) == RMA_ANSWER_HERE;
}

/* The connection has ended, and a shared context will not say so. */
static bool rma_gone(struct rma_run *run)
{
	return run->srx && READ_ONCE(run->down);
}

/**
 * rma_cmd_recv - wait for a command or an answer
 * @run: the run, after rma_cmd_expect()
 * @cmd: where it goes
 *
 * Return: 0; -ECONNRESET if the connection ends first; -EPROTO for something
 * else than a command.
 */
int rma_cmd_recv(struct rma_run *run, struct rma_cmd *cmd)
{
	const struct krma_msg *m = &run->answer_buf;
	int ret;

	ret = rma_wait(run, rma_answered(run) || rma_gone(run) || rma_next(run));
	if (ret)
		return rma_error(run, ret, "waiting for a command");
	/* with the next client, or the same again, the one before has ended */
	if (!rma_answered(run) || rma_next(run))
		return -ECONNRESET;
	WRITE_ONCE(run->answer_state, RMA_ANSWER_NONE);
	if (run->answer_err == -ECANCELED || run->answer_err == -ENOTCONN)
		return -ECONNRESET;
	if (run->answer_err)
		return rma_error(run, run->answer_err, "receiving a command");
	if (run->answer_len != sizeof(*m) ||
	    le32_to_cpu(m->magic) != KRMA_MAGIC)
		return rma_error(run, -EPROTO, "this is no command");
	cmd->op = le16_to_cpu(m->op);
	cmd->flags = le16_to_cpu(m->flags);
	cmd->status = le32_to_cpu(m->status);
	cmd->seed = le32_to_cpu(m->seed);
	cmd->count = le32_to_cpu(m->count);
	cmd->segs = le32_to_cpu(m->segs);
	cmd->level = le32_to_cpu(m->level);
	cmd->kind = le32_to_cpu(m->kind);
	cmd->off = le64_to_cpu(m->off);
	cmd->len = le64_to_cpu(m->len);
	cmd->data = le64_to_cpu(m->data);
	cmd->key = le64_to_cpu(m->key);
	cmd->addr = le64_to_cpu(m->addr);
	cmd->size = le64_to_cpu(m->size);
	return 0;
}

/**
 * rma_name_expect - be ready for the next client, at any time
 * @run: the run, with an endpoint that does not connect
 *
 * Return: 0 or a negative error code.
 */
int rma_name_expect(struct rma_run *run)
{
	WRITE_ONCE(run->name_here, false);
	return rma_error(run, fi_trecv(rma_xfer_rx(run), &run->name_buf,
				       sizeof(run->name_buf), NULL, FI_ADDR_UNSPEC,
				       KRMA_NAME_TAG, 0, &run->name),
			 "fi_trecv");
}

/* The client before, if it was another one, sends no command any more. */
static int rma_cmd_forget(struct rma_run *run)
{
	int ret;

	if (READ_ONCE(run->answer_state) == RMA_ANSWER_POSTED)
		fi_cancel(&rma_xfer_rx(run)->fid, &run->answer);
	ret = rma_wait(run, READ_ONCE(run->answer_state) != RMA_ANSWER_POSTED);
	if (ret)
		return rma_error(run, ret, "the receive for another client");
	WRITE_ONCE(run->answer_state, RMA_ANSWER_NONE);
	return 0;
}

/**
 * rma_name_recv - wait for a peer, without limit
 * @run: the run, with an endpoint that does not connect
 *
 * Return: 0, and run->to is the peer; or a negative error code.
 */
int rma_name_recv(struct rma_run *run)
{
	fi_addr_t from;
	int ret = 0;

	if (wait_event_killable(run->wq, rma_next(run)))
		return rma_error(run, -EINTR, "waiting for a client");
	if (run->name_len < sizeof(struct sockaddr_in) ||
	    fi_av_insert(run->av, &run->name_buf, 1, &from, 0, NULL) != 1)
		return rma_error(run, -EPROTO, "a client without a name");
	if (from != run->to)
		ret = rma_cmd_forget(run);
	run->to = from;
	return ret ?: rma_name_expect(run);
}

/* --------------------------------------------------------------- our region */

/* With FI_RX_CQ_DATA, a write of the peer's with a value takes a receive. */
static int rma_values_expect(struct rma_run *run, u32 count)
{
	ssize_t ret = 0;

	if (!(run->info->mode & FI_RX_CQ_DATA))
		return 0;
	while (count-- && !ret)
		ret = fi_recv(rma_xfer_rx(run), NULL, 0, NULL, FI_ADDR_UNSPEC,
			      &run->remote);
	return rma_error(run, ret, "fi_recv for values");
}

/**
 * rma_region_fill - KRMA_FILL of our own region
 * @run: the run, connected if values are to come
 * @cmd: which content; also the values to come next
 *
 * Return: 0 or a negative error code.
 */
int rma_region_fill(struct rma_run *run, const struct rma_cmd *cmd)
{
	u64 total = cmd->count * cmd->len;
	int ret;

	if (cmd->flags & KRMA_F_DATA) {
		spin_lock_bh(&run->lock);
		run->data_next = cmd->data;
		run->data_bad = 0;
		spin_unlock_bh(&run->lock);
		ret = rma_values_expect(run, cmd->count);
		if (ret)
			return ret;
	}
	rma_mem_fill(run, &run->region, cmd->off - KRMA_GUARD,
		     total + 2 * KRMA_GUARD, cmd->seed + 1,
		     cmd->off - KRMA_GUARD);
	if (!(cmd->flags & KRMA_F_BACK))
		rma_mem_fill(run, &run->region, cmd->off, total, cmd->seed,
			     cmd->off);
	return 0;
}

/**
 * rma_region_check - KRMA_CHECK of our own region
 * @run: the run
 * @cmd: which content, and which values
 * @where: where the offset of the first wrong byte goes
 *
 * Return: 0, -EBADMSG for wrong content, -ENODATA for values that did not come
 * or were others.
 */
int rma_region_check(struct rma_run *run, const struct rma_cmd *cmd,
		     u64 *where)
{
	u64 total = cmd->count * cmd->len, end = cmd->off + total;
	u32 seed = cmd->flags & KRMA_F_BACK ? cmd->seed + 1 : cmd->seed;
	struct rma_mem *mem = &run->region;
	u64 next, bad;

	if (!rma_mem_check(run, mem, cmd->off - KRMA_GUARD, KRMA_GUARD,
			   cmd->seed + 1, cmd->off - KRMA_GUARD, where) ||
	    !rma_mem_check(run, mem, cmd->off, total, seed, cmd->off, where) ||
	    !rma_mem_check(run, mem, end, KRMA_GUARD, cmd->seed + 1, end,
			   where))
		return -EBADMSG;
	if (!(cmd->flags & KRMA_F_DATA))
		return 0;
	spin_lock_bh(&run->lock);
	next = run->data_next;
	bad = run->data_bad;
	spin_unlock_bh(&run->lock);
	*where = next;
	return bad || next != cmd->data + cmd->count ? -ENODATA : 0;
}

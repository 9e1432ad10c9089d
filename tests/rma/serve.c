// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The server: takes one connection after the other and does what each says,
 * until one says that it was the last.
 *
 * A connection may end at any command; a client that tries out what happens to
 * wrong accesses ends most of its connections so. What the server itself was
 * told to do wrong has to end the connection too, and is counted as a failure
 * of the run if it does not.
 */
#include "rma.h"

#define RMA_HOLD_MAX	10000	/* milliseconds */

/* A command whose numbers would lead outside our memory. */
static bool rma_serve_valid(const struct rma_cmd *cmd)
{
	return cmd->count && cmd->count <= KRMA_COUNT_MAX && cmd->segs &&
	       cmd->segs <= KRMA_SEGS_MAX && cmd->level < KRMA_LEVELS &&
	       cmd->kind < KRMA_KINDS && cmd->len <= KRMA_DATA_MAX &&
	       cmd->count * cmd->len <= KRMA_DATA_MAX &&
	       cmd->off >= KRMA_GUARD &&
	       cmd->off <= KRMA_REGION - KRMA_GUARD - cmd->count * cmd->len;
}

static u64 rma_serve_rights(u16 flags)
{
	return (flags & KRMA_F_NO_READ ? 0 : FI_REMOTE_READ) |
	       (flags & KRMA_F_NO_WRITE ? 0 : FI_REMOTE_WRITE);
}

/* Does the command and fills in the answer; what fails is in its status. */
static int rma_serve_one(struct rma_run *run, const struct rma_cmd *cmd,
			 struct rma_cmd *answer)
{
	switch (cmd->op) {
	case KRMA_HELLO:
		run->peer = *cmd;
		answer->flags = KRMA_F_STRICT | KRMA_F_KERNEL;
		if (run->info->caps & FI_TAGGED)
			answer->flags |= KRMA_F_TAGS;
		break;
	case KRMA_REGION_NEW:
		answer->status = -rma_ep_region(run, cmd->kind,
						rma_serve_rights(cmd->flags));
		if (answer->status)
			return 0;
		break;
	case KRMA_BYE:
		return 0;
	default:
		if (!rma_serve_valid(cmd))
			return rma_error(run, -EPROTO, "an impossible command");
	}
	switch (cmd->op) {
	case KRMA_FILL:
		return rma_region_fill(run, cmd);
	case KRMA_CHECK:
		answer->status = -rma_region_check(run, cmd, &answer->off);
		return 0;
	case KRMA_WRITE:
	case KRMA_READ:
		if (cmd->flags & KRMA_F_BAD)
			return rma_bad_access(run, cmd,
					      cmd->op == KRMA_WRITE);
		answer->status = -rma_xfer_access(run, cmd,
						  cmd->op == KRMA_WRITE);
		return 0;
	case KRMA_RECV:
		answer->status = -(rma_xfer_recv_begin(run, cmd) ?:
				   rma_xfer_recv_end(run, cmd));
		return 0;
	case KRMA_SEND:
		answer->status = -rma_xfer_send(run, cmd);
		return 0;
	case KRMA_HELLO:
	case KRMA_REGION_NEW:
		answer->key = fi_mr_key(run->mr);
		answer->addr = kofi_mr_base(run->mr);
		answer->size = run->size;
		answer->segs = run->info->tx_attr->rma_iov_limit;
		return 0;
	default:
		return rma_error(run, -EPROTO, "command %u is unknown",
				 cmd->op);
	}
}

/* Clients may go when they like; which call notices is a matter of time. */
static int rma_serve_gone(struct rma_run *run, int err)
{
	switch (err) {
	case -ECANCELED:
	case -ECONNRESET:
	case -ENOTCONN:
	case -ESHUTDOWN:
		break;
	case -EIO:
		/* siw, of an answer that the client has, if it goes at once */
		if (run->iwarp)
			break;
		return err;
	case -ECONNREFUSED:
	case -EHOSTUNREACH:
	case -ETIMEDOUT:
		/* without a connection it is a command or an answer that notices */
		if (run->opts.rdm)
			break;
		fallthrough;
	default:
		return err;
	}
	run->detail[0] = '\0';
	return 0;
}

/* Receive nothing for a moment, unless another client is there. */
static int rma_serve_hold(struct rma_run *run, u64 ms)
{
	const long left = msecs_to_jiffies(min(ms, RMA_HOLD_MAX));

	return wait_event_interruptible_timeout(run->wq, rma_next(run), left) < 0 ?
	       -EINTR : 0;
}

/* One connection; @last: the client has said that there will be no other. */
static int rma_serve_connection(struct rma_run *run, bool *last)
{
	struct rma_cmd cmd, answer;
	int ret;

	if (!run->mr) {
		ret = rma_ep_region(run, KRMA_KVEC,
				    FI_REMOTE_READ | FI_REMOTE_WRITE);
		if (ret)
			return ret;
	}
	for (;;) {
		ret = rma_cmd_expect(run) ?: rma_cmd_recv(run, &cmd);
		if (ret)
			return rma_serve_gone(run, ret);
		if (cmd.op == KRMA_HOLD) {
			ret = rma_serve_hold(run, cmd.len);
			if (ret)
				return ret;
			continue;
		}
		answer = (struct rma_cmd){ .op = cmd.op };
		ret = rma_serve_one(run, &cmd, &answer);
		if (ret || (cmd.flags & KRMA_F_BAD && !run->opts.rdm))
			return ret;
		if (answer.status) {
			rma_report(run, "for a client: %s (error %d)",
				   run->detail, answer.status);
			run->detail[0] = '\0';
		}
		/* another client, and none that waits for the answer */
		if (rma_next(run))
			return 0;
		ret = rma_cmd_expect(run) ?: rma_cmd_send(run, &answer);
		if (ret)
			return rma_serve_gone(run, ret);
		if (cmd.op == KRMA_BYE) {
			*last = cmd.flags & KRMA_F_LAST;
			/* the others close no connection, but their endpoint */
			return run->opts.rdm ? 0 :
			       rma_wait(run, READ_ONCE(run->down));
		}
	}
}

/**
 * rma_serve - be the server until a client ends it
 * @run: the run
 *
 * Return: 0 if everything was as it should be.
 */
int rma_serve(struct rma_run *run)
{
	unsigned int connections = 0;
	bool last = false;
	int ret;

	ret = rma_ep_listen(run);
	while (!ret && !last) {
		ret = rma_ep_accept(run);
		if (ret)
			break;
		connections++;
		ret = rma_serve_connection(run, &last);
		rma_ep_hangup(run);
	}
	rma_report(run, "served %u connections", connections);
	return ret;
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The client: goes through groups of tests, in each of which both sides access
 * the other's region, and tells the server by commands what to do. Content is
 * checked after each step, on the side that has received it, guards included.
 *
 *	transfer	all kinds of memory, all sizes, odd offsets
 *	forms		short forms, remote segments, values, many at a time, FENCE
 *	levels		sources overwritten as soon as their operation completes
 *	messages	the same for messages and tagged messages
 *	wrong		accesses that must not be: the connection ends, nothing is
 *			touched
 *
 * A group reports a line for each of its parts; a table of what either side has
 * done ends the report. The first error ends the run.
 */
#include <linux/delay.h>

#include "rma.h"

#define RMA_HOLD	50	/* milliseconds a receiver is kept from receiving */
#define RMA_LEAVE	10000	/* unless there is another client */

static u32 rma_lead_seed;	/* of the last content; any number will do */

/* ----------------------------------------------------------------- commands */

/* Sends a command and takes the answer; its status is an error. */
static int rma_call(struct rma_run *run, const struct rma_cmd *cmd,
		    struct rma_cmd *answer)
{
	int ret;

	ret = rma_cmd_expect(run) ?: rma_cmd_send(run, cmd);
	ret = ret ?: rma_cmd_recv(run, answer);
	if (ret)
		return rma_error(run, ret, "command %u", cmd->op);
	if (answer->op != cmd->op)
		return rma_error(run, -EPROTO, "command %u, but answer %u",
				 cmd->op, answer->op);
	return rma_error(run, -answer->status,
			 "at the peer, at %llu, command %u", answer->off,
			 cmd->op);
}

static int rma_do(struct rma_run *run, const struct rma_cmd *cmd,
		  enum krma_op op)
{
	struct rma_cmd it = *cmd, answer;

	it.op = op;
	return rma_call(run, &it, &answer);
}

/* Describes our region to the peer, or has it register its own, and gets that. */
static int rma_meet(struct rma_run *run, enum krma_op op, enum krma_kind kind,
		    u16 rights)
{
	const struct rma_cmd cmd = {
		.op = op, .flags = rights | KRMA_F_KERNEL, .kind = kind,
		.key = fi_mr_key(run->mr), .addr = kofi_mr_base(run->mr),
		.size = run->size,
	};
	struct rma_cmd answer;
	int ret;

	ret = rma_call(run, &cmd, &answer);
	if (ret)
		return ret;
	if (op == KRMA_REGION_NEW)
		answer.flags = run->peer.flags;
	run->peer = answer;
	return 0;
}

/* Register both regions again and exchange their descriptions. */
static int rma_regions(struct rma_run *run, enum krma_kind kind)
{
	int ret;

	ret = rma_ep_region(run, kind, FI_REMOTE_READ | FI_REMOTE_WRITE);
	ret = ret ?: rma_meet(run, KRMA_REGION_NEW, kind, 0);
	return ret ?: rma_meet(run, KRMA_HELLO, kind, 0);
}

static int rma_connect(struct rma_run *run)
{
	int ret;

	ret = rma_ep_connect(run);
	if (!ret && !run->mr)
		ret = rma_ep_region(run, KRMA_KVEC,
				    FI_REMOTE_READ | FI_REMOTE_WRITE);
	return ret ?: rma_meet(run, KRMA_HELLO, KRMA_KVEC, 0);
}

static int rma_goodbye(struct rma_run *run)
{
	const struct rma_cmd bye = {
		.flags = run->opts.last ? KRMA_F_LAST : 0,
	};
	int ret;

	ret = rma_do(run, &bye, KRMA_BYE);
	rma_ep_hangup(run);
	return ret;
}

/* ----------------------------------------------------------------- accesses */

enum rma_way {
	RMA_MY_WRITE,
	RMA_MY_READ,
	RMA_YOUR_WRITE,
	RMA_YOUR_READ,
	RMA_WAYS,
};

static bool rma_yours(enum rma_way way)
{
	return way == RMA_YOUR_WRITE || way == RMA_YOUR_READ;
}

static bool rma_writes(enum rma_way way)
{
	return way == RMA_MY_WRITE || way == RMA_YOUR_WRITE;
}

/* The most remote segments of an access in this direction */
static u32 rma_segs(struct rma_run *run, enum rma_way way)
{
	return rma_yours(way) ? min(run->peer.segs, KRMA_SEGS_MAX) :
				KRMA_SEGS_MAX;
}

/* The most bytes that go into either region */
static u64 rma_room(struct rma_run *run)
{
	return min_t(u64, run->size, run->peer.size) - KRMA_SLACK;
}

/* The flag of accesses that may have values with them */
static u16 rma_values(struct rma_run *run)
{
	return run->iwarp ? 0 : KRMA_F_DATA;
}

static const char *const rma_way_names[] = {
	[RMA_MY_WRITE] = "write", [RMA_MY_READ] = "read",
	[RMA_YOUR_WRITE] = "write of the peer",
	[RMA_YOUR_READ] = "read of the peer",
};

/* Our own region, with the values that have come. */
static int rma_check_mine(struct rma_run *run, const struct rma_cmd *cmd)
{
	u64 where = 0;
	int ret;

	ret = rma_region_check(run, cmd, &where);
	return rma_error(run, ret, "here, at %llu", where);
}

/* These accesses, in this direction, were what they had to be. */
static void rma_count(struct rma_run *run, const struct rma_cmd *cmd,
		      enum rma_way way)
{
	enum krma_row row = krma_row(rma_writes(way), cmd->flags, cmd->level);

	krma_count(run->tally, row, rma_yours(way), cmd->count,
		   cmd->count * cmd->len);
}

/* One command's accesses in one direction, from the content to the check. */
static int rma_access(struct rma_run *run, struct rma_cmd *cmd,
		      enum rma_way way)
{
	struct rma_cmd back = *cmd;
	int ret;

	cmd->seed = ++rma_lead_seed;
	back.seed = cmd->seed;
	back.flags |= KRMA_F_BACK;
	switch (way) {
	case RMA_MY_WRITE:
		ret = rma_do(run, &back, KRMA_FILL);
		ret = ret ?: rma_xfer_access(run, cmd, true);
		ret = ret ?: rma_do(run, cmd, KRMA_CHECK);
		break;
	case RMA_MY_READ:
		ret = rma_do(run, cmd, KRMA_FILL);
		ret = ret ?: rma_xfer_access(run, cmd, false);
		break;
	case RMA_YOUR_WRITE:
		ret = rma_region_fill(run, &back);
		ret = ret ?: rma_do(run, cmd, KRMA_WRITE);
		ret = ret ?: rma_check_mine(run, cmd);
		break;
	default:
		ret = rma_region_fill(run, cmd);
		ret = ret ?: rma_do(run, cmd, KRMA_READ);
	}
	if (!ret)
		rma_count(run, cmd, way);
	return rma_error(run, ret,
			 "%s of %u x %llu bytes at %llu, %u segments, %s, %s",
			 rma_way_names[way], cmd->count, cmd->len, cmd->off,
			 cmd->segs, rma_kind_name(cmd->kind),
			 rma_level_name(cmd->level));
}

/* -------------------------------------------------------------- the groups */

static int rma_transfer_kind(struct rma_run *run, enum krma_kind kind)
{
	static const u32 sizes[] = {
		0, 1, 7, 127, 128, 4095, 4097, 65537, 1000003, KRMA_DATA_MAX,
	};
	struct rma_cmd cmd = { .count = 1, .segs = 1 };
	int i, n = ARRAY_SIZE(sizes), ret;
	enum rma_way way;

	ret = rma_regions(run, kind);
	if (ret)
		return ret;
	if ((run->opts.brief && kind) || sizes[n - 1] > rma_room(run))
		n--;
	/* pages are for regions only */
	cmd.kind = kind == KRMA_PAGES ? KRMA_KVEC : kind;
	for (i = 0; i < n; i++) {
		cmd.len = sizes[i];
		cmd.off = KRMA_GUARD + (i * 631 + kind * 97) % 4000 / 2 * 2 + 1;
		for (way = 0; way < RMA_WAYS; way++) {
			/* siw may answer a request for no bytes with some */
			if (run->iwarp && !cmd.len && !rma_writes(way))
				continue;
			ret = rma_access(run, &cmd, way);
			if (ret)
				return ret;
		}
	}
	rma_report(run,
		   "transfer %-8s both sides write and read, %d sizes up to %u",
		   rma_kind_name(kind), n, sizes[n - 1]);
	return 0;
}

static int rma_transfer(struct rma_run *run)
{
	enum krma_kind kind;
	int ret = 0;

	for (kind = 0; kind < KRMA_KINDS && !ret; kind++)
		ret = rma_transfer_kind(run, kind);
	return ret;
}

/* Each short form once, and a read that must not see a fenced write. */
static int rma_calls(struct rma_run *run)
{
	struct rma_cmd cmd = {
		.count = 1, .segs = 1, .len = KRMA_FORMS, .off = 1001,
		.seed = ++rma_lead_seed,
	};
	struct rma_cmd values = {
		.count = 2, .segs = 1, .len = 0, .off = 1001,
		.seed = cmd.seed, .flags = rma_values(run) | KRMA_F_BACK,
	};
	int ret;

	cmd.flags = KRMA_F_BACK;
	ret = rma_do(run, &cmd, KRMA_FILL);
	/* no bytes: only the values are set, and the guards of no bytes */
	ret = ret ?: rma_do(run, &values, KRMA_FILL);
	cmd.flags = 0;
	ret = ret ?: rma_xfer_forms(run, cmd.seed, cmd.off);
	ret = ret ?: rma_do(run, &cmd, KRMA_CHECK);
	if (ret)
		return ret;
	/* check the values, next to bytes that have not been written */
	values.off = 100;
	cmd = values;
	cmd.flags = KRMA_F_BACK;
	cmd.count = 1;
	ret = rma_do(run, &cmd, KRMA_FILL);
	ret = ret ?: rma_do(run, &values, KRMA_CHECK);
	if (ret)
		return ret;
	krma_count_forms(run->tally, !run->iwarp);
	rma_report(run, "forms    each short form of write and read");

	cmd = (struct rma_cmd){
		.count = 1, .segs = 1, .len = 300000, .off = 777,
		.seed = ++rma_lead_seed, .flags = KRMA_F_BACK,
	};
	ret = rma_do(run, &cmd, KRMA_FILL);
	ret = ret ?: rma_xfer_fence(run, &cmd);
	cmd.flags = 0;
	ret = ret ?: rma_do(run, &cmd, KRMA_CHECK);
	if (ret)
		return ret;
	krma_count(run->tally, KRMA_ROW_READ, 0, 1, cmd.len);
	krma_count(run->tally, KRMA_ROW_WRITE, 0, 1, cmd.len);
	rma_report(run, "forms    FI_FENCE");
	return 0;
}

static int rma_forms(struct rma_run *run)
{
	static const struct {
		u32		len;
		u32		count;
		enum krma_level	level;
	} each[] = {
		{ 3, KRMA_COUNT_MAX, KRMA_DEFAULT },
		{ 3, KRMA_COUNT_MAX, KRMA_INJECT },
		{ 4099, 8, KRMA_DEFAULT }, { 70001, 8, KRMA_DEFAULT },
	};
	struct rma_cmd cmd = {};
	enum rma_way way;
	int i, ret;

	ret = rma_regions(run, KRMA_SGL);
	ret = ret ?: rma_calls(run);
	for (i = 0; i < ARRAY_SIZE(each) && !ret; i++) {
		cmd.len = each[i].len;
		cmd.count = each[i].count;
		cmd.level = each[i].level;
		cmd.off = 2049 + i;
		cmd.kind = i % KRMA_PAGES;
		for (cmd.segs = 1; cmd.segs <= KRMA_SEGS_MAX; cmd.segs++) {
			for (way = 0; way < RMA_WAYS && !ret; way++) {
				if (cmd.segs > rma_segs(run, way))
					continue;
				/* values may go with writes */
				cmd.flags = rma_writes(way) ? rma_values(run) : 0;
				cmd.data = cmd.segs * 1000000007ULL;
				ret = rma_access(run, &cmd, way);
			}
		}
	}
	if (!ret)
		rma_report(run,
			   "forms    up to %u remote segments, many at a time%s",
			   KRMA_SEGS_MAX, run->iwarp ? "" : ", values");
	return ret;
}

/* The peer stops receiving for a moment: what follows waits in between. */
static int rma_hold(struct rma_run *run)
{
	struct rma_cmd hold = { .op = KRMA_HOLD, .len = RMA_HOLD };
	int ret;

	if (run->iwarp)
		return 0;
	ret = rma_cmd_send(run, &hold);
	/* finds no receive, so nothing behind it is looked at either */
	hold.len = 0;
	return ret ?: rma_cmd_send(run, &hold);
}

/* Is this kind tried with this level? In a brief run each has one. */
static bool rma_tried(struct rma_run *run, enum krma_level level,
		      enum krma_kind kind)
{
	return !run->opts.brief || kind == level % KRMA_PAGES;
}

static const char *rma_tried_name(struct rma_run *run, enum krma_level level)
{
	return run->opts.brief ? rma_kind_name(level % KRMA_PAGES) :
				 "all kinds";
}

static int rma_levels(struct rma_run *run)
{
	struct rma_cmd cmd = { .segs = 1, .off = 1001, .count = 16 }, back;
	enum krma_kind kind;
	int ret;

	ret = rma_regions(run, KRMA_BVEC);
	for (cmd.level = 0; cmd.level < run->levels && !ret; cmd.level++) {
		cmd.len = cmd.level == KRMA_INJECT ? KRMA_INJECT_MAX : 40960;
		for (kind = 0; kind < KRMA_PAGES && !ret; kind++) {
			if (!rma_tried(run, cmd.level, kind))
				continue;
			cmd.kind = kind;
			cmd.seed = ++rma_lead_seed;
			back = cmd;
			back.flags = KRMA_F_BACK;
			ret = rma_do(run, &back, KRMA_FILL);
			ret = ret ?: rma_hold(run);
			ret = ret ?: rma_xfer_access(run, &cmd, true);
			ret = ret ?: rma_do(run, &cmd, KRMA_CHECK);
			if (!ret)
				rma_count(run, &cmd, RMA_MY_WRITE);
			ret = ret ?: rma_access(run, &cmd, RMA_YOUR_WRITE);
		}
		if (!ret)
			rma_report(run, "levels   write, %s, %s",
				   rma_level_name(cmd.level),
				   rma_tried_name(run, cmd.level));
	}
	return ret;
}

/* Messages to the peer; it receives them late, if @hold. */
static int rma_messages_to(struct rma_run *run, struct rma_cmd *cmd, bool hold)
{
	struct rma_cmd answer;
	int ret;

	cmd->op = KRMA_RECV;
	cmd->seed = ++rma_lead_seed;
	ret = hold ? rma_hold(run) : 0;
	ret = ret ?: rma_cmd_expect(run);
	ret = ret ?: rma_cmd_send(run, cmd);
	ret = ret ?: rma_xfer_send(run, cmd);
	ret = ret ?: rma_cmd_recv(run, &answer);
	return ret ?: rma_error(run, -answer.status, "at the peer, at %llu",
				answer.off);
}

/* Messages from the peer; we receive them late, if @hold. */
static int rma_messages_from(struct rma_run *run, struct rma_cmd *cmd,
			     bool hold)
{
	struct rma_cmd answer;
	int ret;

	cmd->op = KRMA_SEND;
	cmd->seed = ++rma_lead_seed;
	if (hold) {
		ret = rma_cmd_send(run, cmd);
		msleep(RMA_HOLD);
		ret = ret ?: rma_xfer_recv_begin(run, cmd);
		ret = ret ?: rma_cmd_expect(run);
	} else {
		ret = rma_xfer_recv_begin(run, cmd);
		ret = ret ?: rma_cmd_expect(run);
		ret = ret ?: rma_cmd_send(run, cmd);
	}
	ret = ret ?: rma_xfer_recv_end(run, cmd);
	ret = ret ?: rma_cmd_recv(run, &answer);
	return ret ?: rma_error(run, -answer.status, "at the peer");
}

static int rma_messages_kind(struct rma_run *run, u16 flags)
{
	struct rma_cmd cmd = {
		.segs = 1, .off = 1001, .count = 16, .flags = flags,
		.data = 0x123456789abc0000ULL,
	};
	enum krma_kind kind;
	int ret = 0;

	for (cmd.level = 0; cmd.level < run->levels; cmd.level++) {
		cmd.len = cmd.level == KRMA_INJECT ? KRMA_INJECT_MAX : 40960;
		for (kind = 0; kind < KRMA_PAGES; kind++) {
			if (!rma_tried(run, cmd.level, kind))
				continue;
			cmd.kind = kind;
			ret = rma_messages_to(run, &cmd, true);
			ret = ret ?: rma_messages_to(run, &cmd, false);
			ret = ret ?: rma_messages_from(run, &cmd, true);
			ret = ret ?: rma_messages_from(run, &cmd, false);
			if (ret)
				return rma_error(run, ret,
						 "%smessages of %llu bytes, %s, %s",
						 flags ? "tagged " : "",
						 cmd.len, rma_kind_name(kind),
						 rma_level_name(cmd.level));
		}
		rma_report(run, "messages %s%s, %s", flags ? "tagged, " : "",
			   rma_level_name(cmd.level),
			   rma_tried_name(run, cmd.level));
	}
	return 0;
}

static int rma_messages(struct rma_run *run)
{
	int ret;

	if (run->iwarp) {
		rma_report(run, "messages have to be expected here: left out");
		return 0;
	}
	ret = rma_messages_kind(run, 0);
	if (!ret && (run->peer.flags & KRMA_F_TAGS))
		ret = rma_messages_kind(run, KRMA_F_TAGGED);
	else if (!ret)
		rma_report(run, "messages the peer has no tags");
	return ret;
}

/* ------------------------------------------------------------ wrong accesses */

/*
 * Is that what a wrong access ends with? Only that of RoCE and InfiniBand is a
 * wire with a word for a refusal. Otherwise the peer ends the connection: who
 * waits for an answer gets ECANCELED, or with one of many peers ECONNRESET; a plain
 * write has succeeded by then. On iWARP it may also learn of the end, if that is quicker than TCP.
 */
static bool rma_bad_ended(struct rma_run *run, const struct rma_cmd *cmd,
			  bool write, int err)
{
	bool acked = cmd->level == KRMA_TRANSMIT || cmd->level == KRMA_DELIVERY;
	int cut_off = run->opts.rdm ? -ECONNRESET : -ECANCELED;

	if (run->opts.verbs && !run->iwarp)
		return err == -EACCES;
	if (run->iwarp && write)
		return !err || err == -ECANCELED || err == -EIO;
	return err == (!write || acked ? cut_off : 0);
}

/*
 * A program closes a connection in order, which is no event of an endpoint that does
 * not connect. What is sent behind a write that it refuses is cut off, or is on the
 * next connection.
 */
static int rma_bad_over(struct rma_run *run)
{
	const struct rma_cmd read = { .count = 1, .segs = 1, .len = 1 };
	int ret = rma_xfer_access(run, &read, false);

	run->detail[0] = '\0';
	return ret == -ETIMEDOUT || ret == -EINTR ? ret : 0;
}

/**
 * rma_bad_access - an access that the peer has to refuse
 * @run: the run, connected
 * @cmd: the access and what is wrong with it
 * @write: a write
 *
 * Return: 0 if it has, and the connection has ended.
 */
int rma_bad_access(struct rma_run *run, const struct rma_cmd *cmd, bool write)
{
	int ret;

	ret = rma_xfer_access(run, cmd, write);
	if (!rma_bad_ended(run, cmd, write, ret))
		return rma_error(run, -EBADE, "a wrong access ended with %d",
				 ret);
	run->detail[0] = '\0';
	if (!run->opts.rdm || run->peer.flags & KRMA_F_KERNEL)
		ret = rma_wait(run, READ_ONCE(run->down));
	else
		ret = ret ? 0 : rma_bad_over(run);
	return rma_error(run, ret, "no event after a wrong access");
}

/* On the connection that there is; leaves none behind, but a new one. */
static int rma_wrong_one(struct rma_run *run, struct rma_cmd *cmd,
			 enum rma_way way)
{
	struct rma_cmd back = *cmd, answer;
	int ret;

	cmd->seed = ++rma_lead_seed;
	back.seed = cmd->seed;
	back.flags = KRMA_F_BACK;
	if (way == RMA_MY_WRITE || way == RMA_MY_READ) {
		ret = rma_do(run, &back, KRMA_FILL);
		ret = ret ?: rma_bad_access(run, cmd, way == RMA_MY_WRITE);
	} else {
		rma_region_fill(run, &back);
		cmd->op = way == RMA_YOUR_WRITE ? KRMA_WRITE : KRMA_READ;
		/* the end may be here before word that the command was there */
		ret = rma_cmd_expect(run) ?: rma_cmd_send(run, cmd);
		if (ret == -ECANCELED || ret == -ECONNRESET ||
		    (ret == -EIO && run->iwarp)) {
			run->detail[0] = '\0';
			ret = 0;
		}
		ret = ret ?: rma_error(run, rma_wait(run, READ_ONCE(run->down)),
				       "no end after the peer's wrong access");
		if (run->opts.rdm)
			ret = ret ?: rma_cmd_recv(run, &answer);
	}
	rma_ep_hangup(run);
	ret = ret ?: rma_connect(run);
	/* not a byte has changed, on either side */
	if (way == RMA_MY_WRITE || way == RMA_MY_READ)
		ret = ret ?: rma_do(run, &back, KRMA_CHECK);
	else
		ret = ret ?: rma_check_mine(run, &back);
	if (!ret)
		rma_count(run, cmd, way);
	return ret;
}

static int rma_wrong_flag(struct rma_run *run, u16 flag, const char *what)
{
	static const enum krma_level levels[] = {
		KRMA_DEFAULT, KRMA_DELIVERY,
	};
	struct rma_cmd cmd = { .count = 1, .off = 501, .len = 3000 };
	enum rma_way way;
	int i, ret = 0;

	for (way = 0; way < RMA_WAYS && !ret; way++) {
		/* a peer that would not survive it */
		if (flag == KRMA_F_BAD_WRAP && way <= RMA_MY_READ &&
		    !(run->peer.flags & KRMA_F_STRICT))
			continue;
		for (i = 0; i < ARRAY_SIZE(levels) && !ret; i++) {
			cmd.level = levels[i] < run->levels ? levels[i] :
							      KRMA_DEFAULT;
			/* devices look at each when it is its turn */
			cmd.segs = i && !run->opts.verbs ?
				   rma_segs(run, way) : 1;
			cmd.flags = flag;
			ret = rma_wrong_one(run, &cmd, way);
		}
	}
	if (!ret)
		rma_report(run, "wrong    %s", what);
	return rma_error(run, ret, "%s, %s, %s", what, rma_way_names[way - 1],
			 rma_level_name(cmd.level));
}

/* Regions that grant only what is not asked for. */
static int rma_wrong_rights(struct rma_run *run)
{
	struct rma_cmd cmd = {
		.count = 1, .segs = 1, .off = 501, .len = 3000,
		.level = run->levels > KRMA_DELIVERY ? KRMA_DELIVERY :
						       KRMA_DEFAULT,
		.flags = KRMA_F_BAD_RIGHT,
	};
	enum rma_way way;
	bool write;
	int ret = 0;

	for (way = 0; way < RMA_WAYS && !ret; way++) {
		write = rma_writes(way);
		/* siw lets everybody read */
		if (run->iwarp && !write)
			continue;
		if (way == RMA_MY_WRITE || way == RMA_MY_READ) {
			ret = rma_meet(run, KRMA_REGION_NEW, KRMA_KVEC,
				       write ? KRMA_F_NO_WRITE :
					       KRMA_F_NO_READ);
		} else {
			ret = rma_ep_region(run, KRMA_KVEC,
					    write ? FI_REMOTE_READ :
						    FI_REMOTE_WRITE);
			ret = ret ?: rma_meet(run, KRMA_HELLO, KRMA_KVEC, 0);
		}
		ret = ret ?: rma_wrong_one(run, &cmd, way);
		ret = ret ?: rma_regions(run, KRMA_KVEC);
	}
	if (!ret)
		rma_report(run, "wrong    a right not granted");
	return rma_error(run, ret, "%s without the right",
			 rma_way_names[way - 1]);
}

static int rma_wrong(struct rma_run *run)
{
	int ret;

	ret = rma_wrong_flag(run, KRMA_F_BAD_KEY, "a key that is not there");
	ret = ret ?: rma_wrong_flag(run, KRMA_F_BAD_RANGE,
				    "a byte beyond the end");
	ret = ret ?: rma_wrong_flag(run, KRMA_F_BAD_WRAP,
				    "an address that wraps around");
	return ret ?: rma_wrong_rights(run);
}

/* ---------------------------------------------------------------------- run */

static const struct {
	const char	*name;
	int		(*run)(struct rma_run *run);
} rma_groups[] = {
	{ "transfer", rma_transfer },
	{ "forms", rma_forms },
	{ "levels", rma_levels },
	{ "messages", rma_messages },
	{ "wrong", rma_wrong },
};

/* What either side has done to the other's memory, in the words of the calls. */
static void rma_show(struct rma_run *run)
{
	bool kernels = run->peer.flags & KRMA_F_KERNEL;
	struct krma_tally *t;
	enum krma_row row;

	rma_report(run, "%-23s%28s%28s", "all bytes compared",
		   kernels ? "kernel in peer's memory" :
			     "kernel in program's memory",
		   kernels ? "peer in kernel's memory" :
			     "program in kernel's memory");
	rma_report(run, "%-23s%12s%16s%12s%16s", "", "times", "bytes", "times",
		   "bytes");
	for (row = 0; row < KRMA_ROWS; row++) {
		t = run->tally[row];
		if (t[0].count || t[1].count)
			rma_report(run, "%-23s%12u%16llu%12u%16llu",
				   krma_row_name(row), t[0].count, t[0].bytes,
				   t[1].count, t[1].bytes);
	}
}

/* End in the middle of a command: messages that the server will wait for */
static int rma_leave(struct rma_run *run)
{
	const struct rma_cmd hold = { .op = KRMA_HOLD, .len = RMA_LEAVE };
	const struct rma_cmd recv = {
		.op = KRMA_RECV, .count = 4, .segs = 1, .off = 1001, .len = 4096,
	};
	int ret = run->opts.held ? rma_cmd_send(run, &hold) : 0;

	return ret ?: rma_cmd_send(run, &recv);
}

/**
 * rma_lead - be the client
 * @run: the run
 *
 * Return: 0 if everything was as it should be.
 */
int rma_lead(struct rma_run *run)
{
	bool found = !run->opts.only[0];
	int i, ret;

	for (i = 0; i < ARRAY_SIZE(rma_groups); i++)
		found |= !strcmp(run->opts.only, rma_groups[i].name);
	if (!found)
		return rma_error(run, -EINVAL, "there is no group %s",
				 run->opts.only);
	ret = rma_ep_find(run) ?: rma_connect(run);
	if (!ret && run->opts.leave)
		return rma_leave(run);
	for (i = 0; i < ARRAY_SIZE(rma_groups) && !ret; i++) {
		if (run->opts.only[0] &&
		    strcmp(run->opts.only, rma_groups[i].name))
			continue;
		ret = rma_groups[i].run(run);
	}
	ret = ret ?: rma_goodbye(run);
	/* messages are no accesses */
	if (!ret && strcmp(run->opts.only, "messages"))
		rma_show(run);
	return ret;
}

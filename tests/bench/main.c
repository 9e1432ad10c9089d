// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The runs, and the file in debugfs that starts them.
 *
 *   echo "CLIENT KIND WINDOW SIZE WARMUP COUNT [ADDRESS] [OPTION=VALUE...]" \
 *	>/sys/kernel/debug/kofi_bench/run
 *   cat /sys/kernel/debug/kofi_bench/run
 *
 * CLIENT is one of those in bench.h; KIND is send, write or read; ADDRESS is
 * where both sides are, 127.0.0.1 unless it says something else. The write
 * returns when the run is over, the file then says how many nanoseconds COUNT
 * operations took, the longest time without progress in ticks of a millisecond
 * (watch.c), start=NUMBER, the nanoseconds from the beginning of connecting until
 * the WARMUP operations were over, and the TCP counters that have risen as
 * NAME=NUMBER.
 *
 *   sndbuf=, rcvbuf=	bytes of the sockets' buffers
 *   late=1	a used receive is posted again a millisecond later, with all
 *		others that have been used by then
 *   more=1	every other operation is posted with FI_MORE
 *   twoway=1	both sides send, write or read, COUNT operations each
 *   posted=NUMBER	with tags: that many receives that nothing matches are posted
 *		before those of the run
 *   addr2=	address of the second side, the one that listens
 *   net=FD	a file that is the network namespace of the second side
 *   role=connect, role=listen
 *		the first or the second side alone; the other one is in another
 *		kernel, which has been given the same words
 *
 * Every run has a connection of its own, so runs of different clients can be
 * interleaved; connecting, WARMUP operations before and comparing what has
 * arrived with what was sent are not measured. While it is measured, and only
 * then, the kernel's trace buffer is on.
 *
 * The two parts begin and end with nothing under way, so that no work of the
 * one is done in the other; with the sides in two kernels each of them knows
 * that of itself only. In between, the next operation is posted where the last
 * one has ended, in the client's callback; the thread that began sleeps.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/inet.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include <linux/kofi/backport.h>

#include "bench.h"

#define BENCH_TIMEOUT	(600 * HZ)	/* watch.c says what stands still */
#define BENCH_LATE	NSEC_PER_MSEC

/* Where the second side listens if the first is in another kernel */
#define BENCH_PORT	7475

static const struct bench_client *const bench_clients[] = {
	&bench_raw, &bench_kofi, &bench_sread, &bench_pages, &bench_zerocopy,
	&bench_rdm, &bench_tagged, &bench_rdmsread, &bench_rxm, &bench_rxmsread,
	&bench_verbs, &bench_rxmverbs, &bench_rawverbs, &bench_raweager,
};

static const char *const bench_kinds[] = {
	[BENCH_SEND]	= "send",
	[BENCH_WRITE]	= "write",
	[BENCH_READ]	= "read",
};

static DEFINE_MUTEX(bench_mutex);	/* one run at a time; for what follows */
static struct dentry *bench_dir;
static char bench_result[1024];

/*
 * Memory of the two sides, kept from run to run: it is slow to get. Raw verbs
 * need it in one piece, so what a short run uses is taken when there still is
 * some.
 */
static u8 *bench_near[2];
static u8 *bench_mem[2];
static size_t bench_mem_size;

/* -------------------------------------------------------------- operations */

/**
 * bench_fail - something has gone wrong
 * @run: the run
 * @err: what, a negative error code
 *
 * Context: any.
 */
void bench_fail(struct bench_run *run, int err)
{
	if (READ_ONCE(run->closing))
		return;
	cmpxchg(&run->err, 0, err);
	complete(&run->over);
}

/**
 * bench_lost - the connection has ended
 * @run: the run
 * @err: why, a negative error code
 *
 * Context: any.
 */
void bench_lost(struct bench_run *run, int err)
{
	if (!READ_ONCE(run->ending))
		bench_fail(run, err);
}

/**
 * bench_more - is an operation to be posted with FI_MORE?
 * @op: the operation
 *
 * Return: true if another one follows it when this has ended, at the latest.
 */
bool bench_more(const struct bench_op *op)
{
	const struct bench_side *side = op->side;

	return side->run->more && op->kind == side->run->kind &&
	       (side->to_xmit & 1);
}

/* Called with the side's lock held. */
static void bench_post(struct bench_op *op)
{
	struct bench_side *side = op->side;
	int err;

	op->busy = true;
	side->busy++;
	err = side->run->client->post(op);
	if (err) {
		op->busy = false;
		side->busy--;
		bench_fail(side->run, err);
	}
}

static void bench_post_recv(struct bench_side *side, struct bench_op *op)
{
	if (op->left && !READ_ONCE(side->run->closing)) {
		op->left--;
		bench_post(op);
	}
}

/* What has been received meanwhile is posted with it. */
static void bench_post_late(struct bench_side *side, struct bench_op *op)
{
	if (!op->left)
		return;
	if (list_empty(&side->late))
		hrtimer_start(&side->timer, ns_to_ktime(BENCH_LATE),
			      HRTIMER_MODE_REL_SOFT);
	list_add_tail(&op->node, &side->late);
}

static enum hrtimer_restart bench_late(struct hrtimer *timer)
{
	struct bench_side *side = container_of(timer, struct bench_side, timer);
	struct bench_op *op, *next;
	LIST_HEAD(list);

	spin_lock_bh(&side->lock);
	list_splice_init(&side->late, &list);
	list_for_each_entry_safe(op, next, &list, node)
		bench_post_recv(side, op);
	spin_unlock_bh(&side->lock);
	return HRTIMER_NORESTART;
}

static void bench_post_xmit(struct bench_side *side, struct bench_op *op)
{
	if (side->to_xmit) {
		side->to_xmit--;
		bench_post(op);
	}
}

/* One more has arrived, or ended. */
static void bench_count(struct bench_side *side)
{
	struct bench_run *run = side->run;

	if (++side->finished == side->expected &&
	    atomic_dec_and_test(&run->counting)) {
		run->end = ktime_get_ns();
		tracing_off();
		complete(&run->over);
	}
}

static bool bench_pingpong(const struct bench_run *run)
{
	return run->kind == BENCH_SEND && run->window == 1;
}

/* The peer's turn is over: ours. */
static void bench_reply(struct bench_side *side)
{
	struct bench_op *op = &side->xmit[0];

	if (op->busy)
		side->due = true;
	else
		bench_post_xmit(side, op);
}

static void bench_received(struct bench_side *side, struct bench_op *op,
			   size_t len)
{
	struct bench_run *run = side->run;

	if (len != op->len) {
		bench_fail(run, -EMSGSIZE);
		return;
	}
	if (side->counts == BENCH_RECV)
		bench_count(side);
	if (run->late)
		bench_post_late(side, op);
	else
		bench_post_recv(side, op);
	if (bench_pingpong(run))
		bench_reply(side);
}

static void bench_ended(struct bench_side *side, struct bench_op *op)
{
	if (bench_pingpong(side->run)) {
		if (side->due) {
			side->due = false;
			bench_post_xmit(side, op);
		}
		return;
	}
	if (side->counts == op->kind)
		bench_count(side);
	bench_post_xmit(side, op);
}

/* But for the receive of what follows, nothing is under way. */
static bool bench_idle(const struct bench_side *side)
{
	return side->busy == (side->awaits && side->recv[0].busy);
}

/**
 * bench_done - an operation has ended
 * @op: the operation, the run's again
 * @err: 0 or a negative error code
 * @len: BENCH_RECV: bytes received
 *
 * Context: softirq, or process.
 */
void bench_done(struct bench_op *op, int err, size_t len)
{
	struct bench_side *side = op->side;

	spin_lock_bh(&side->lock);
	op->busy = false;
	side->busy--;
	side->ended++;
	if (unlikely(err))
		bench_fail(side->run, err);
	else if (op->kind == BENCH_RECV)
		bench_received(side, op, len);
	else
		bench_ended(side, op);
	if (unlikely(side->draining) && bench_idle(side))
		complete(&side->idle);
	spin_unlock_bh(&side->lock);
}

/* -------------------------------------------------------------------- runs */

/* Distinct at each place of each side */
static void bench_fill(u8 *mem, size_t len, u64 seed)
{
	size_t i;

	for (i = 0; i < len; i += sizeof(seed)) {
		seed = seed * 6364136223846793005 + 1442695040888963407;
		memcpy(mem + i, &seed, min(sizeof(seed), len - i));
	}
}

/* Is that what bench_fill() has written? */
static bool bench_filled(const u8 *mem, size_t len, u64 seed)
{
	size_t i;

	for (i = 0; i < len; i += sizeof(seed)) {
		seed = seed * 6364136223846793005 + 1442695040888963407;
		if (memcmp(mem + i, &seed, min(sizeof(seed), len - i)))
			return false;
	}
	return true;
}

static void bench_mem_free(u8 **mem)
{
	kvfree(mem[0]);
	kvfree(mem[1]);
	mem[0] = NULL;
	mem[1] = NULL;
}

/* Memory of SIZE bytes for each side; NULL if there is none */
static u8 **bench_mem_get(size_t size)
{
	if (size <= KMALLOC_MAX_SIZE)
		return bench_near;
	if (size <= bench_mem_size)
		return bench_mem;
	bench_mem_free(bench_mem);
	bench_mem[0] = vmalloc(size);
	bench_mem[1] = vmalloc(size);
	bench_mem_size = bench_mem[0] && bench_mem[1] ? size : 0;
	return bench_mem_size ? bench_mem : NULL;
}

static void bench_ops_init(struct bench_side *side)
{
	struct bench_run *run = side->run;
	u32 i;

	for (i = 0; i < run->window; i++) {
		side->xmit[i] = (struct bench_op) {
			.side = side,
			.kind = run->kind,
			.buf = side->mem + i * run->size +
			       (run->kind == BENCH_READ ? side->half : 0),
			.len = run->size,
			.off = i * run->size +
			       (run->kind == BENCH_WRITE ? side->half : 0),
		};
		side->recv[i] = (struct bench_op) {
			.side = side,
			.kind = BENCH_RECV,
			.buf = side->mem + side->half + i * run->size,
			.len = run->size,
		};
	}
}

/* Does that side send, write or read? */
static bool bench_sends(const struct bench_side *side)
{
	const struct bench_run *run = side->run;

	return side == &run->side[0] || run->twoway || bench_pingpong(run);
}

/* Is it sent to? */
static bool bench_receives(const struct bench_side *side)
{
	const struct bench_run *run = side->run;

	return run->kind == BENCH_SEND &&
	       (side == &run->side[1] || run->twoway || bench_pingpong(run));
}

/*
 * What is counted on that side: a message where it has arrived, if that is in
 * this kernel, and a round trip where it began.
 */
static int bench_counts(const struct bench_side *side)
{
	const struct bench_run *run = side->run;
	const struct bench_side *peer = &run->side[side == &run->side[0]];

	if (!side->here)
		return -1;
	if (bench_pingpong(run))
		return side == &run->side[0] || !peer->here ? BENCH_RECV : -1;
	if (run->kind != BENCH_SEND)
		return bench_sends(side) ? run->kind : -1;
	if (bench_receives(side))
		return BENCH_RECV;
	return peer->here ? -1 : BENCH_SEND;
}

static void bench_side_init(struct bench_run *run, int i, u8 *mem)
{
	struct bench_side *side = &run->side[i];

	side->run = run;
	spin_lock_init(&side->lock);
	init_completion(&side->idle);
	INIT_LIST_HEAD(&side->late);
	hrtimer_setup(&side->timer, bench_late, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_SOFT);
	side->here = run->role != (i ? BENCH_CONNECT : BENCH_LISTEN);
	side->mem = mem;
	side->half = PAGE_ALIGN(run->window * run->size);
	bench_fill(side->mem, run->window * run->size, i);
	memset(side->mem + side->half, 0, side->half);
	bench_ops_init(side);
}

static int bench_prepare(struct bench_run *run)
{
	u8 **mem = bench_mem_get(2 * PAGE_ALIGN(run->window * run->size));
	int i;

	if (!mem)
		return -ENOMEM;
	for (i = 0; i < 2; i++)
		bench_side_init(run, i, mem[i]);
	for (i = 0; i < 2; i++)
		run->side[i].counts = bench_counts(&run->side[i]);
	return 0;
}

/* Has everything arrived at its place? */
static int bench_compare(struct bench_run *run)
{
	size_t len = run->size * min(run->window, run->total);
	int i;

	for (i = 0; i < 2; i++) {
		const struct bench_side *side = &run->side[i];
		bool gets = run->kind == BENCH_SEND ? bench_receives(side) :
			    run->kind == BENCH_READ ? bench_sends(side) :
			    bench_sends(&run->side[!i]);

		if (gets && side->here &&
		    !bench_filled(side->mem + side->half, len, !i))
			return -EBADMSG;
	}
	return 0;
}

static int bench_wait(struct completion *c)
{
	return wait_for_completion_timeout(c, BENCH_TIMEOUT) ? 0 : -ETIMEDOUT;
}

/* What has arrived may still have to end where it was sent from. */
static int bench_drain(struct bench_side *side)
{
	bool busy;
	int err = 0;

	spin_lock_bh(&side->lock);
	busy = !bench_idle(side);
	side->draining = busy;
	spin_unlock_bh(&side->lock);
	if (busy)
		err = bench_wait(&side->idle);
	spin_lock_bh(&side->lock);
	side->draining = false;
	reinit_completion(&side->idle);
	spin_unlock_bh(&side->lock);
	return err;
}

static void bench_side_begin(struct bench_side *side)
{
	struct bench_run *run = side->run;
	u32 i, recvs;

	side->finished = 0;
	side->expected = side->counts >= 0 ? run->total : 0;
	atomic_add(!!side->expected, &run->counting);
	if (!side->here)
		return;
	side->to_xmit = bench_sends(side) ? run->total : 0;
	recvs = bench_receives(side) ? run->total : 0;
	for (i = 0; i < run->window; i++)
		side->recv[i].left = recvs / run->window +
				     (i < recvs % run->window);
}

static void bench_post_window(struct bench_side *side, struct bench_op *ops,
			      void (*post)(struct bench_side *side,
					   struct bench_op *op))
{
	u32 i;

	spin_lock_bh(&side->lock);
	for (i = 0; i < side->run->window; i++)
		post(side, &ops[i]);
	spin_unlock_bh(&side->lock);
}

static int bench_transfer(struct bench_run *run, u32 total, bool measured)
{
	struct bench_side *a = &run->side[0], *b = &run->side[1];
	int i, err;

	run->total = total;
	run->start = ktime_get_ns();
	reinit_completion(&run->over);
	bench_side_begin(a);
	bench_side_begin(b);
	if (!atomic_read(&run->counting))
		return 0;
	bench_post_window(b, b->recv, bench_post_recv);

	if (measured)
		tracing_on();
	bench_post_window(a, a->recv, bench_post_recv);
	run->start = ktime_get_ns();
	bench_post_window(a, a->xmit, bench_post_xmit);
	if (run->twoway)
		bench_post_window(b, b->xmit, bench_post_xmit);

	err = bench_wait(&run->over) ?: run->err;
	for (i = 0; i < 2 && !err; i++)
		err = bench_drain(&run->side[i]) ?: run->err;
	return err;
}

static void bench_follow_await(struct bench_side *side)
{
	/* what it is still to write, or to be read by the peer, stays as it is */
	side->recv[0].buf = side->awaits ? &side->last : side->mem;
	side->recv[0].len = 1;
	spin_lock_bh(&side->lock);
	bench_post(&side->recv[0]);
	spin_unlock_bh(&side->lock);
}

/*
 * A peer elsewhere that writes and reads no more, or never has, says so before
 * this side is done: without a receive that message would hold up what this side
 * waits for. Messages have receives of their own.
 */
static void bench_follow_ahead(struct bench_run *run)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (!run->side[i].here)
			continue;
		run->side[i].awaits = true;
		bench_follow_await(&run->side[i]);
	}
}

/*
 * A byte behind everything that side has sent, to memory that is not compared:
 * not every device says when a write has arrived, and a side in another kernel
 * can not be seen, but nothing overtakes it.
 */
static void bench_follow_post(struct bench_side *side)
{
	struct bench_side *peer = &side->run->side[side == &side->run->side[0]];

	if (peer->here && !peer->awaits)
		bench_follow_await(peer);
	peer->awaits = false;
	if (side->here) {
		side->xmit[0].kind = BENCH_SEND;
		side->xmit[0].len = 1;
		spin_lock_bh(&side->lock);
		bench_post(&side->xmit[0]);
		spin_unlock_bh(&side->lock);
	}
}

/* Everybody has got everything when this returns. */
static int bench_follow(struct bench_run *run)
{
	struct bench_side *a = &run->side[0], *b = &run->side[1];

	a->counts = -1;
	b->counts = -1;
	run->late = false;
	/* the peer leaves when it has ours */
	WRITE_ONCE(run->ending, true);
	if (run->role != BENCH_BOTH || run->kind == BENCH_WRITE)
		bench_follow_post(a);
	if (run->role != BENCH_BOTH ||
	    (run->kind == BENCH_WRITE && run->twoway))
		bench_follow_post(b);
	return run->err ?: bench_drain(b) ?: bench_drain(a) ?: run->err;
}

static int bench_measure(struct bench_run *run)
{
	int err;

	if (run->role != BENCH_BOTH && run->kind != BENCH_SEND)
		bench_follow_ahead(run);
	err = bench_transfer(run, run->warmup, false);
	if (err)
		return err;
	run->startup = ktime_get_ns() - run->opening;
	bench_watch_start(run);
	err = bench_transfer(run, run->count, true);
	/* with the peer elsewhere, what it has not got yet is part of it */
	if (run->role == BENCH_BOTH)
		bench_watch_stop(run);
	if (!err)
		err = bench_follow(run);
	if (run->role != BENCH_BOTH)
		bench_watch_stop(run);
	/* a side that counts nothing */
	if (!run->end)
		run->end = ktime_get_ns();
	return err;
}

/* Nothing is posted from now on but what has begun. */
static void bench_close(struct bench_run *run)
{
	int i;

	WRITE_ONCE(run->closing, true);
	for (i = 0; i < 2; i++) {
		struct bench_side *side = &run->side[i];

		/* receives that are being posted have been */
		spin_lock_bh(&side->lock);
		spin_unlock_bh(&side->lock);
		hrtimer_cancel(&side->timer);
	}
	run->client->close(run);
}

static int bench_run(struct bench_run *run)
{
	int err;

	err = bench_prepare(run);
	if (err)
		return err;
	run->opening = ktime_get_ns();
	err = run->client->open(run);
	if (!err)
		err = bench_measure(run);
	bench_close(run);
	return err ?: bench_compare(run);
}

/* ------------------------------------------------------------------ the file */

static int bench_parse_number(const char *value, u32 max, u32 *number)
{
	int err = kstrtou32(value, 0, number);

	return err ?: *number > max ? -ERANGE : 0;
}

static int bench_parse_flag(const char *value, bool *flag)
{
	return kstrtobool(value, flag);
}

static int bench_parse_addr(const char *value, struct bench_side *side)
{
	return in4_pton(value, -1, (u8 *)&side->addr.sin_addr, -1, NULL) ?
	       0 : -EINVAL;
}

static int bench_parse_net(const char *value, struct bench_side *side)
{
	struct net *net;
	u32 fd;
	int err;

	err = bench_parse_number(value, INT_MAX, &fd);
	if (err)
		return err;
	net = get_net_ns_by_fd(fd);
	if (IS_ERR(net))
		return PTR_ERR(net);
	put_net(side->net);
	side->net = net;
	return 0;
}

static int bench_parse_role(const char *value, struct bench_run *run)
{
	if (!strcmp(value, "connect"))
		run->role = BENCH_CONNECT;
	else if (!strcmp(value, "listen"))
		run->role = BENCH_LISTEN;
	else
		return -EINVAL;
	run->side[1].addr.sin_port = htons(BENCH_PORT);
	return 0;
}

static int bench_parse_option(const char *name, const char *value,
			      struct bench_run *run)
{
	if (!strcmp(name, "sndbuf"))
		return bench_parse_number(value, SZ_64M, &run->sndbuf);
	if (!strcmp(name, "rcvbuf"))
		return bench_parse_number(value, SZ_64M, &run->rcvbuf);
	if (!strcmp(name, "late"))
		return bench_parse_flag(value, &run->late);
	if (!strcmp(name, "more"))
		return bench_parse_flag(value, &run->more);
	if (!strcmp(name, "twoway"))
		return bench_parse_flag(value, &run->twoway);
	if (!strcmp(name, "posted"))
		return bench_parse_number(value, 65536 - 2 * BENCH_WINDOW_MAX,
					  &run->posted);
	if (!strcmp(name, "addr2"))
		return bench_parse_addr(value, &run->side[1]);
	if (!strcmp(name, "net"))
		return bench_parse_net(value, &run->side[1]);
	if (!strcmp(name, "role"))
		return bench_parse_role(value, run);
	return -EINVAL;
}

/* What stands behind the numbers */
static int bench_parse_rest(char *text, struct bench_run *run)
{
	char *word, *value;
	int err;

	while ((word = strsep(&text, " \t\n"))) {
		if (!*word)
			continue;
		value = strchr(word, '=');
		if (value) {
			*value++ = '\0';
			err = bench_parse_option(word, value, run);
		} else {
			err = bench_parse_addr(word, &run->side[0]) ?:
			      bench_parse_addr(word, &run->side[1]);
		}
		if (err)
			return err;
	}
	return 0;
}

/* Is that something the client can do? */
static bool bench_possible(const struct bench_run *run)
{
	const struct bench_client *client = run->client;
	bool tcp = run->sndbuf || run->rcvbuf || run->role != BENCH_BOTH ||
		   !net_eq(run->side[0].net, run->side[1].net);

	if (!run->window || run->window > BENCH_WINDOW_MAX || !run->size ||
	    run->size > SZ_16M || !run->warmup || !run->count)
		return false;
	if ((run->twoway || run->more) && bench_pingpong(run))
		return false;
	if (run->late && run->kind != BENCH_SEND)
		return false;
	return (client->tcp || !tcp) && (client->more || !run->more) &&
	       (client->tagged || !run->posted);
}

static int bench_parse(char *text, struct bench_run *run)
{
	int kind, err, i, rest = 0;
	char name[16], word[8];

	if (sscanf(text, "%15s %7s %u %zu %u %u%n", name, word, &run->window,
		   &run->size, &run->warmup, &run->count, &rest) < 6)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(bench_clients); i++)
		if (!strcmp(name, bench_clients[i]->name))
			run->client = bench_clients[i];
	kind = match_string(bench_kinds, ARRAY_SIZE(bench_kinds), word);
	if (!run->client || kind < 0)
		return -EINVAL;
	run->kind = kind;
	for (i = 0; i < 2; i++) {
		run->side[i].addr.sin_family = AF_INET;
		run->side[i].addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		run->side[i].net = get_net(current->nsproxy->net_ns);
	}
	init_completion(&run->over);
	err = bench_parse_rest(text + rest, run);
	if (err)
		return err;
	return bench_possible(run) ? 0 : -EINVAL;
}

static void bench_free(struct bench_run *run)
{
	int i;

	for (i = 0; i < 2; i++)
		if (run->side[i].net)
			put_net(run->side[i].net);
	kfree(run);
}

/* What the file says from now on; 0 for a run that has failed. */
static void bench_say(const struct bench_run *run, const char *words, int err)
{
	const size_t size = sizeof(bench_result);
	int n;

	n = scnprintf(bench_result, size, "%llu ",
		      err ? 0 : run->end - run->start);
	n += bench_watch_show(&run->watch, bench_result + n, size - n);
	scnprintf(bench_result + n, size - n, " start=%llu", run->startup);
	if (err)
		pr_err("%s: error %d after %u and %u of %u: %s\n", words, err,
		       run->side[0].finished, run->side[1].finished,
		       run->total, bench_result);
}

static ssize_t bench_write(struct file *file, const char __user *buf,
			   size_t len, loff_t *pos)
{
	struct bench_run *run;
	char *text, *words;
	int err;

	if (len > PAGE_SIZE)
		return -EINVAL;
	text = memdup_user_nul(buf, len);
	if (IS_ERR(text))
		return PTR_ERR(text);
	err = -ENOMEM;
	words = kstrdup(strim(text), GFP_KERNEL);
	run = kzalloc(sizeof(*run), GFP_KERNEL);
	if (!words || !run)
		goto free_text;
	err = bench_parse(text, run);
	if (err)
		goto free_run;

	mutex_lock(&bench_mutex);
	err = bench_run(run);
	bench_say(run, words, err);
	mutex_unlock(&bench_mutex);
free_run:
	bench_free(run);
	run = NULL;
free_text:
	kfree(run);
	kfree(words);
	kfree(text);
	return err ?: len;
}

static int bench_show(struct seq_file *m, void *unused)
{
	mutex_lock(&bench_mutex);
	seq_printf(m, "%s\n", bench_result);
	mutex_unlock(&bench_mutex);
	return 0;
}

static int bench_open(struct inode *inode, struct file *file)
{
	return single_open(file, bench_show, NULL);
}

static const struct file_operations bench_fops = {
	.owner		= THIS_MODULE,
	.open		= bench_open,
	.read		= seq_read,
	.write		= bench_write,
	.llseek		= seq_lseek,
	.release	= single_release,
};

static int __init bench_init(void)
{
	int err = -ENOMEM;

	bench_near[0] = kmalloc(KMALLOC_MAX_SIZE, GFP_KERNEL);
	bench_near[1] = kmalloc(KMALLOC_MAX_SIZE, GFP_KERNEL);
	if (bench_near[0] && bench_near[1])
		err = bench_raw_init();
	if (err) {
		bench_mem_free(bench_near);
		return err;
	}
	bench_dir = debugfs_create_dir("kofi_bench", NULL);
	debugfs_create_file("run", 0600, bench_dir, NULL, &bench_fops);
	return 0;
}

static void __exit bench_exit(void)
{
	debugfs_remove(bench_dir);
	bench_raw_exit();
	bench_mem_free(bench_mem);
	bench_mem_free(bench_near);
}

module_init(bench_init);
module_exit(bench_exit);

MODULE_DESCRIPTION("Benchmark of kOFI against sockets and RDMA devices");
MODULE_LICENSE("Dual BSD/GPL");

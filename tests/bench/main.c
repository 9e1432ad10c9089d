// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The runs, and the file in debugfs that starts them.
 *
 *   echo "CLIENT KIND WINDOW SIZE WARMUP COUNT [ADDRESS]" \
 *	>/sys/kernel/debug/kofi_bench/run
 *   cat /sys/kernel/debug/kofi_bench/run
 *
 * CLIENT is one of those in bench.h; KIND is send, write or read; ADDRESS is
 * where both sides are, 127.0.0.1 unless it says something else. The write
 * returns when the run is over, the file then says how many nanoseconds COUNT
 * operations took. Every run has a connection of its own, so runs of different
 * clients can be interleaved; connecting, WARMUP operations before and comparing
 * what has arrived with what was sent are not measured. While it is measured,
 * and only then, the kernel's trace buffer is on.
 *
 * The two parts begin and end with nothing under way, so that no work of the
 * one is done in the other. In between, the next operation is posted where the
 * last one has ended, in the client's callback; the thread that began sleeps.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/inet.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "bench.h"

#define BENCH_TIMEOUT	(120 * HZ)

static const struct bench_client *const bench_clients[] = {
	&bench_raw, &bench_kofi, &bench_sread, &bench_pages, &bench_zerocopy,
	&bench_verbs, &bench_rawverbs,
};

static const char *const bench_kinds[] = {
	[BENCH_SEND]	= "send",
	[BENCH_WRITE]	= "write",
	[BENCH_READ]	= "read",
};

static DEFINE_MUTEX(bench_mutex);	/* one run at a time; for what follows */
static struct dentry *bench_dir;
static char bench_result[64];

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
	if (side->to_recv) {
		side->to_recv--;
		bench_post(op);
	}
}

static void bench_post_xmit(struct bench_side *side, struct bench_op *op)
{
	if (side->to_xmit) {
		side->to_xmit--;
		bench_post(op);
	}
}

/* One more has arrived, or ended. */
static void bench_count(struct bench_run *run)
{
	if (++run->finished == run->total) {
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
	bool pingpong = bench_pingpong(run);

	if (len != op->len) {
		bench_fail(run, -EMSGSIZE);
		return;
	}
	/* a round trip is over where it began */
	if (!pingpong || side == &run->side[0])
		bench_count(run);
	bench_post_recv(side, op);
	if (pingpong)
		bench_reply(side);
}

static void bench_ended(struct bench_side *side, struct bench_op *op)
{
	struct bench_run *run = side->run;

	if (bench_pingpong(run)) {
		if (side->due) {
			side->due = false;
			bench_post_xmit(side, op);
		}
		return;
	}
	if (run->kind != BENCH_SEND)
		bench_count(run);
	bench_post_xmit(side, op);
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
	if (unlikely(err))
		bench_fail(side->run, err);
	else if (op->kind == BENCH_RECV)
		bench_received(side, op, len);
	else
		bench_ended(side, op);
	if (unlikely(side->draining) && !side->busy)
		complete(&side->idle);
	spin_unlock_bh(&side->lock);
}

/* -------------------------------------------------------------------- runs */

/* Distinct at each place of each side */
static void bench_fill(u8 *mem, size_t len, u64 seed)
{
	size_t i;

	for (i = 0; i + sizeof(seed) <= len; i += sizeof(seed)) {
		seed = seed * 6364136223846793005 + 1442695040888963407;
		memcpy(mem + i, &seed, sizeof(seed));
	}
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

static void bench_side_init(struct bench_run *run, int i, u8 *mem)
{
	struct bench_side *side = &run->side[i];

	side->run = run;
	spin_lock_init(&side->lock);
	init_completion(&side->idle);
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
	return 0;
}

/* Has everything arrived at its place? */
static int bench_compare(struct bench_run *run)
{
	struct bench_side *a = &run->side[0], *b = &run->side[1];
	size_t len = run->size * min(run->window, run->total);

	if (run->kind != BENCH_READ &&
	    memcmp(b->mem + b->half, a->mem, len))
		return -EBADMSG;
	if ((run->kind == BENCH_READ || bench_pingpong(run)) &&
	    memcmp(a->mem + a->half, b->mem, len))
		return -EBADMSG;
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
	busy = side->busy;
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

static int bench_transfer(struct bench_run *run, u32 total, bool measured)
{
	struct bench_side *a = &run->side[0], *b = &run->side[1];
	u32 i;
	int err;

	run->finished = 0;
	run->total = total;
	reinit_completion(&run->over);
	a->to_xmit = total;
	b->to_recv = run->kind == BENCH_SEND ? total : 0;
	if (bench_pingpong(run)) {
		b->to_xmit = total;
		a->to_recv = total;
	}
	spin_lock_bh(&b->lock);
	for (i = 0; i < run->window; i++)
		bench_post_recv(b, &b->recv[i]);
	spin_unlock_bh(&b->lock);

	if (measured)
		tracing_on();
	spin_lock_bh(&a->lock);
	bench_post_recv(a, &a->recv[0]);
	run->start = ktime_get_ns();
	for (i = 0; i < run->window; i++)
		bench_post_xmit(a, &a->xmit[i]);
	spin_unlock_bh(&a->lock);

	err = bench_wait(&run->over) ?: run->err;
	for (i = 0; i < 2 && !err; i++)
		err = bench_drain(&run->side[i]) ?: run->err;
	return err;
}

/*
 * Not every device says when a write has arrived, but nothing overtakes it: a
 * byte behind the writes, to memory that is not compared.
 */
static int bench_follow(struct bench_run *run)
{
	struct bench_side *a = &run->side[0], *b = &run->side[1];

	b->recv[0].buf = b->mem;
	b->recv[0].len = 1;
	a->xmit[0].kind = BENCH_SEND;
	a->xmit[0].len = 1;
	spin_lock_bh(&b->lock);
	bench_post(&b->recv[0]);
	spin_unlock_bh(&b->lock);
	spin_lock_bh(&a->lock);
	bench_post(&a->xmit[0]);
	spin_unlock_bh(&a->lock);
	return run->err ?: bench_drain(b) ?: bench_drain(a) ?: run->err;
}

static int bench_run(struct bench_run *run)
{
	int err;

	err = bench_prepare(run);
	if (err)
		return err;
	err = run->client->open(run);
	if (!err)
		err = bench_transfer(run, run->warmup, false);
	if (!err)
		err = bench_transfer(run, run->count, true);
	if (!err && run->kind == BENCH_WRITE)
		err = bench_follow(run);
	WRITE_ONCE(run->closing, true);
	run->client->close(run);
	return err ?: bench_compare(run);
}

/* ------------------------------------------------------------------ the file */

static int bench_parse(const char *text, struct bench_run *run)
{
	char name[16], word[8], addr[16] = "127.0.0.1";
	int kind, i;

	if (sscanf(text, "%15s %7s %u %zu %u %u %15s", name, word,
		   &run->window, &run->size, &run->warmup, &run->count,
		   addr) < 6)
		return -EINVAL;
	run->addr.sin_family = AF_INET;
	if (!in4_pton(addr, -1, (u8 *)&run->addr.sin_addr, -1, NULL))
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(bench_clients); i++)
		if (!strcmp(name, bench_clients[i]->name))
			run->client = bench_clients[i];
	kind = match_string(bench_kinds, ARRAY_SIZE(bench_kinds), word);
	if (!run->client || kind < 0 || !run->window ||
	    run->window > BENCH_WINDOW_MAX || !run->size ||
	    run->size > SZ_16M || !run->warmup || !run->count)
		return -EINVAL;
	run->kind = kind;
	init_completion(&run->over);
	return 0;
}

static ssize_t bench_write(struct file *file, const char __user *buf,
			   size_t len, loff_t *pos)
{
	struct bench_run *run;
	char text[80];
	int err;

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buf, len))
		return -EFAULT;
	text[len] = '\0';
	run = kzalloc(sizeof(*run), GFP_KERNEL);
	if (!run)
		return -ENOMEM;
	err = bench_parse(text, run);
	if (err)
		goto free;

	mutex_lock(&bench_mutex);
	err = bench_run(run);
	snprintf(bench_result, sizeof(bench_result), "%llu\n",
		 err ? 0 : run->end - run->start);
	mutex_unlock(&bench_mutex);
	if (err)
		pr_err("%s: error %d after %u of %u\n", strim(text), err,
		       run->finished, run->total);
free:
	kfree(run);
	return err ?: len;
}

static int bench_show(struct seq_file *m, void *unused)
{
	mutex_lock(&bench_mutex);
	seq_puts(m, bench_result);
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

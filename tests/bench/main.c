// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The runs, and the file in debugfs that starts them.
 *
 *   echo "CLIENT KIND WINDOW SIZE WARMUP COUNT" >/sys/kernel/debug/kofi_bench/run
 *   cat /sys/kernel/debug/kofi_bench/run
 *
 * CLIENT is raw, kofi or sread; KIND is send, write or read. The write returns
 * when the run is over, the file then says how many nanoseconds COUNT
 * operations took. Every run has a connection of its own, so runs of different
 * clients can be interleaved; connecting, the first WARMUP operations and
 * comparing what has arrived with what was sent are not measured. While it is
 * measured, and only then, the kernel's trace buffer is on.
 *
 * The next operation is posted where the last one has ended, in the client's
 * callback; the thread that began sleeps.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

#include "bench.h"

#define BENCH_TIMEOUT	(120 * HZ)

static const struct bench_client *const bench_clients[] = {
	&bench_raw, &bench_kofi, &bench_sread,
};

static const char *const bench_kinds[] = {
	[BENCH_SEND]	= "send",
	[BENCH_WRITE]	= "write",
	[BENCH_READ]	= "read",
};

static DEFINE_MUTEX(bench_mutex);	/* one run at a time */
static struct dentry *bench_dir;
static char bench_result[64];

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

static void bench_post(struct bench_op *op)
{
	struct bench_run *run = op->side->run;
	int err;

	op->busy = true;
	err = run->client->post(op);
	if (err) {
		op->busy = false;
		bench_fail(run, err);
	}
}

/* One more has arrived, or ended. Returns false for the last one. */
static bool bench_count(struct bench_run *run)
{
	u32 n = ++run->finished;

	if (n == run->warmup) {
		tracing_on();
		run->start = ktime_get_ns();
	} else if (n == run->total) {
		run->end = ktime_get_ns();
		tracing_off();
		complete(&run->over);
	}
	return n < run->total;
}

/* The peer's turn is over: ours. */
static void bench_reply(struct bench_side *side)
{
	struct bench_op *op = &side->xmit[0];

	if (op->busy)
		side->due = true;
	else
		bench_post(op);
}

static void bench_received(struct bench_side *side, struct bench_op *op,
			   size_t len)
{
	struct bench_run *run = side->run;
	bool pingpong = run->window == 1;

	if (len != run->size) {
		bench_fail(run, -EMSGSIZE);
		return;
	}
	/* a round trip is over where it began */
	if ((!pingpong || side == &run->side[0]) && !bench_count(run))
		return;
	bench_post(op);
	if (pingpong)
		bench_reply(side);
}

static void bench_ended(struct bench_side *side, struct bench_op *op)
{
	struct bench_run *run = side->run;

	if (run->kind == BENCH_SEND && run->window == 1) {
		if (side->due) {
			side->due = false;
			bench_post(op);
		}
		return;
	}
	if (run->kind != BENCH_SEND && !bench_count(run))
		return;
	if (run->posted < run->total) {
		run->posted++;
		bench_post(op);
	}
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
	if (unlikely(err))
		bench_fail(side->run, err);
	else if (op->kind == BENCH_RECV)
		bench_received(side, op, len);
	else
		bench_ended(side, op);
	spin_unlock_bh(&side->lock);
}

/* -------------------------------------------------------------------- runs */

/* Distinct at each place of each side */
static void bench_fill(u8 *mem, size_t len, u32 seed)
{
	size_t i;

	for (i = 0; i + sizeof(u32) <= len; i += sizeof(u32)) {
		seed = seed * 1664525 + 1013904223;
		memcpy(mem + i, &seed, sizeof(seed));
	}
}

static void bench_free(struct bench_run *run)
{
	kvfree(run->side[0].mem);
	kvfree(run->side[1].mem);
	kfree(run);
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

static struct bench_run *bench_alloc(const struct bench_client *client,
				     enum bench_kind kind, u32 window,
				     size_t size)
{
	struct bench_run *run = kzalloc(sizeof(*run), GFP_KERNEL);
	int i;

	if (!run)
		return NULL;
	run->client = client;
	run->kind = kind;
	run->window = window;
	run->size = size;
	init_completion(&run->over);
	for (i = 0; i < 2; i++) {
		struct bench_side *side = &run->side[i];

		side->run = run;
		spin_lock_init(&side->lock);
		side->half = PAGE_ALIGN(window * size);
		side->mem = kvzalloc(2 * side->half, GFP_KERNEL);
		if (!side->mem) {
			bench_free(run);
			return NULL;
		}
		bench_fill(side->mem, window * size, i);
		bench_ops_init(side);
	}
	return run;
}

/* Has everything arrived at its place? */
static int bench_compare(struct bench_run *run)
{
	struct bench_side *a = &run->side[0], *b = &run->side[1];
	size_t len = run->size * min(run->window, run->total);

	if (run->kind != BENCH_READ &&
	    memcmp(b->mem + b->half, a->mem, len))
		return -EBADMSG;
	if ((run->kind == BENCH_READ || run->window == 1) &&
	    run->kind != BENCH_WRITE && memcmp(a->mem + a->half, b->mem, len))
		return -EBADMSG;
	return 0;
}

static int bench_transfer(struct bench_run *run)
{
	struct bench_side *a = &run->side[0], *b = &run->side[1];
	bool pingpong = run->window == 1;
	u32 i;

	if (run->kind == BENCH_SEND) {
		for (i = 0; i < run->window; i++)
			bench_post(&b->recv[i]);
		if (pingpong)
			bench_post(&a->recv[0]);
	}
	spin_lock_bh(&a->lock);
	run->posted = min(run->window, run->total);
	for (i = 0; i < run->posted; i++)
		bench_post(&a->xmit[i]);
	spin_unlock_bh(&a->lock);

	if (!wait_for_completion_timeout(&run->over, BENCH_TIMEOUT))
		return -ETIMEDOUT;
	return run->err;
}

static int bench_run(struct bench_run *run)
{
	int err;

	err = run->client->open(run);
	if (!err)
		err = bench_transfer(run);
	WRITE_ONCE(run->closing, true);
	run->client->close(run);
	return err ?: bench_compare(run);
}

/* ------------------------------------------------------------------ the file */

static int bench_parse(const char *text, struct bench_run **run)
{
	const struct bench_client *client = NULL;
	char name[8], word[8];
	u32 window, warmup, count;
	size_t size;
	int kind, i;

	if (sscanf(text, "%7s %7s %u %zu %u %u", name, word, &window, &size,
		   &warmup, &count) != 6)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(bench_clients); i++)
		if (!strcmp(name, bench_clients[i]->name))
			client = bench_clients[i];
	kind = match_string(bench_kinds, ARRAY_SIZE(bench_kinds), word);
	if (!client || kind < 0 || !window || window > BENCH_WINDOW_MAX ||
	    !size || size > SZ_16M || !warmup || !count)
		return -EINVAL;
	*run = bench_alloc(client, kind, window, size);
	if (!*run)
		return -ENOMEM;
	(*run)->warmup = warmup;
	(*run)->total = warmup + count;
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
	err = bench_parse(text, &run);
	if (err)
		return err;

	mutex_lock(&bench_mutex);
	err = bench_run(run);
	snprintf(bench_result, sizeof(bench_result), "%llu\n",
		 err ? 0 : run->end - run->start);
	mutex_unlock(&bench_mutex);
	if (err)
		pr_err("%s: error %d after %u of %u\n", strim(text), err,
		       run->finished, run->total);
	bench_free(run);
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
	int err = bench_raw_init();

	if (err)
		return err;
	bench_dir = debugfs_create_dir("kofi_bench", NULL);
	debugfs_create_file("run", 0600, bench_dir, NULL, &bench_fops);
	return 0;
}

static void __exit bench_exit(void)
{
	debugfs_remove(bench_dir);
	bench_raw_exit();
}

module_init(bench_init);
module_exit(bench_exit);

MODULE_DESCRIPTION("Benchmark of kOFI against sockets");
MODULE_LICENSE("Dual BSD/GPL");

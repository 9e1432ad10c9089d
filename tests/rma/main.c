// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_rma.ko: a kOFI client that registers memory, lets a peer access it and
 * accesses that of the peer, in every way there is, and looks at each byte. It
 * uses the public headers alone. tests/vm/peer is the same as a program that
 * uses libfabric.
 *
 * A run is a write to /dev/kofi_rma and takes as long as that; what it has to
 * say is read from the same open file afterwards:
 *
 *	exec 4<>/dev/kofi_rma
 *	echo "connect node=10.0.0.1 last" >&4; cat <&4
 *
 * The first word is serve or connect, the others are
 *
 *	node=ADDRESS	to listen on (default: all) or to connect to
 *	port=NUMBER	of the server (7473)
 *	only=GROUP	connect: transfer, forms, levels, messages or wrong
 *	poll=CONTEXT	callbacks run in: softirq (default) or workqueue
 *	verbs		over an RDMA device
 *	rdm		with endpoints that do not connect
 *	rxm		such of kofi_rxm; with verbs there are no others
 *	srx		receive from a shared context
 *	client-keys	choose the keys of regions here
 *	zerocopy=BYTES	from which on pages are sent without copying them
 *	brief		connect: the largest size and each level with one kind of
 *			memory only
 *	last		connect: tell the server to end, too
 *	leave		connect: end in the middle of a command, and do nothing else
 *	held		with leave: before the command has been received
 *
 * A signal that kills the writer aborts the run; the network namespace is the
 * writer's. The write fails with the error of the run.
 *
 *	mem.c		memory, content, descriptions
 *	ep.c		discovery, connection, region
 *	xfer.c		operations
 *	serve.c		the server
 *	client.c	the client, with all the tests
 */
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "rma.h"

#define RMA_REPORT_SIZE	8192
#define RMA_REQUEST_MAX	256

struct rma_file {
	struct mutex	mutex;	/* one run at a time */
	struct seq_buf	report;
	char		text[RMA_REPORT_SIZE];
};

/**
 * rma_report - a line for the reader
 * @run: the run
 * @fmt: the line, without the newline
 */
void rma_report(struct rma_run *run, const char *fmt, ...)
{
	struct va_format line = { .fmt = fmt };
	va_list args;

	va_start(args, fmt);
	line.va = &args;
	seq_buf_printf(run->report, "%pV\n", &line);
	va_end(args);
}

/**
 * rma_error - say what went wrong, unless it has been said
 * @run: the run
 * @err: 0 or a negative error code
 * @fmt: what was being done
 *
 * Each caller on the way up may add what it knows: the sentences become one.
 *
 * Return: @err.
 */
int rma_error(struct rma_run *run, int err, const char *fmt, ...)
{
	size_t n = strlen(run->detail);
	va_list args;

	if (!err)
		return 0;
	if (n)
		n += scnprintf(run->detail + n, sizeof(run->detail) - n, "; ");
	va_start(args, fmt);
	vscnprintf(run->detail + n, sizeof(run->detail) - n, fmt, args);
	va_end(args);
	return err;
}

static int rma_parse_word(struct rma_opts *opts, char *word)
{
	char *value = strchr(word, '=');
	ssize_t n = 0;

	if (value)
		*value++ = '\0';
	if (!strcmp(word, "verbs") && !value)
		opts->verbs = true;
	else if (!strcmp(word, "rdm") && !value)
		opts->rdm = true;
	else if (!strcmp(word, "rxm") && !value)
		opts->rxm = true;
	else if (!strcmp(word, "srx") && !value)
		opts->srx = true;
	else if (!strcmp(word, "client-keys") && !value)
		opts->client_keys = true;
	else if (!strcmp(word, "brief") && !value)
		opts->brief = true;
	else if (!strcmp(word, "last") && !value)
		opts->last = true;
	else if (!strcmp(word, "leave") && !value)
		opts->leave = true;
	else if (!strcmp(word, "held") && !value)
		opts->held = true;
	else if (!value)
		return -EINVAL;
	else if (!strcmp(word, "node"))
		n = strscpy(opts->node, value);
	else if (!strcmp(word, "port"))
		n = strscpy(opts->port, value);
	else if (!strcmp(word, "only"))
		n = strscpy(opts->only, value);
	else if (!strcmp(word, "zerocopy"))
		n = kstrtoint(value, 10, &opts->zerocopy);
	else if (!strcmp(word, "poll") && !strcmp(value, "softirq"))
		opts->poll = KOFI_POLL_SOFTIRQ;
	else if (!strcmp(word, "poll") && !strcmp(value, "workqueue"))
		opts->poll = KOFI_POLL_WORKQUEUE;
	else
		return -EINVAL;
	return n < 0 ? n : 0;
}

static int rma_parse(struct rma_opts *opts, char *request)
{
	char *word;
	int ret;

	opts->poll = KOFI_POLL_SOFTIRQ;
	opts->zerocopy = -1;
	snprintf(opts->port, sizeof(opts->port), "%u", KRMA_PORT);
	word = strsep(&request, " ");
	opts->server = !strcmp(word, "serve");
	if (!opts->server && strcmp(word, "connect"))
		return -EINVAL;
	while ((word = strsep(&request, " "))) {
		ret = *word ? rma_parse_word(opts, word) : 0;
		if (ret)
			return ret;
	}
	opts->rdm |= opts->rxm;
	return 0;
}

static int rma_run_memory(struct rma_run *run)
{
	int ret;

	run->pattern = kvmalloc(KRMA_PATTERN_LEN, GFP_KERNEL);
	if (!run->pattern)
		return -ENOMEM;
	krma_pattern_make(run->pattern);
	ret = rma_mem_alloc(&run->region, KRMA_REGION);
	return ret ?: rma_mem_alloc(&run->local, KRMA_REGION);
}

static void rma_run_free(struct rma_run *run)
{
	int i;

	for (i = 0; i < KRMA_COUNT_MAX; i++) {
		rma_vec_free(&run->tx.op[i].vec);
		rma_vec_free(&run->rx.op[i].vec);
	}
	rma_mem_free(&run->local);
	rma_mem_free(&run->region);
	kvfree(run->pattern);
	kvfree(run);
}

static int rma_run(struct rma_file *file, const struct rma_opts *opts)
{
	struct rma_run *run;
	int ret;

	run = kvzalloc(sizeof(*run), GFP_KERNEL);
	if (!run)
		return -ENOMEM;
	run->opts = *opts;
	run->report = &file->report;
	init_waitqueue_head(&run->wq);
	spin_lock_init(&run->lock);
	mutex_init(&run->events);
	rma_xfer_init(run);
	ret = rma_run_memory(run);
	if (!ret)
		ret = opts->server ? rma_serve(run) : rma_lead(run);
	rma_ep_close(run);
	if (ret)
		rma_report(run, "failed: %s: error %d", run->detail, -ret);
	else
		rma_report(run, "all good");
	rma_run_free(run);
	return ret;
}

static int rma_open(struct inode *inode, struct file *filp)
{
	struct rma_file *file;

	file = kvzalloc(sizeof(*file), GFP_KERNEL);
	if (!file)
		return -ENOMEM;
	mutex_init(&file->mutex);
	seq_buf_init(&file->report, file->text, sizeof(file->text));
	filp->private_data = file;
	return 0;
}

static int rma_release(struct inode *inode, struct file *filp)
{
	kvfree(filp->private_data);
	return 0;
}

static ssize_t rma_write(struct file *filp, const char __user *buf, size_t len,
			 loff_t *pos)
{
	struct rma_file *file = filp->private_data;
	struct rma_opts opts = {};
	char *request;
	int ret;

	if (len > RMA_REQUEST_MAX)
		return -EINVAL;
	request = memdup_user_nul(buf, len);
	if (IS_ERR(request))
		return PTR_ERR(request);
	ret = rma_parse(&opts, strim(request));
	kfree(request);
	if (ret)
		return ret;

	if (mutex_lock_interruptible(&file->mutex))
		return -EINTR;
	ret = rma_run(file, &opts);
	mutex_unlock(&file->mutex);
	return ret ?: len;
}

/* What has been said since the last read; the file's position is not used. */
static ssize_t rma_read(struct file *filp, char __user *buf, size_t len,
			loff_t *pos)
{
	struct rma_file *file = filp->private_data;
	size_t n;

	if (mutex_lock_interruptible(&file->mutex))
		return -EINTR;
	n = min(len, seq_buf_used(&file->report));
	if (copy_to_user(buf, file->text, n)) {
		mutex_unlock(&file->mutex);
		return -EFAULT;
	}
	memmove(file->text, file->text + n, seq_buf_used(&file->report) - n);
	file->report.len = seq_buf_used(&file->report) - n;
	mutex_unlock(&file->mutex);
	return n;
}

static const struct file_operations rma_fops = {
	.owner		= THIS_MODULE,
	.open		= rma_open,
	.release	= rma_release,
	.write		= rma_write,
	.read		= rma_read,
};

static struct miscdevice rma_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "kofi_rma",
	.fops	= &rma_fops,
	.mode	= 0600,
};

module_misc_device(rma_device);

MODULE_DESCRIPTION("Remote memory over kOFI, in every way there is");
MODULE_LICENSE("Dual BSD/GPL");

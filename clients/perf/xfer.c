// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The transfers of a session. They are posted in windows, as in fabtests. The
 * initiator posts a window. It posts the next one when all of it has completed
 * and, if the target is notified of transfers, the target has answered. So
 * every message finds a receive, and no window is longer than the option.
 *
 *	msg, tagged, writedata	the target counts, and answers each window
 *	write			the initiator asks for an answer after the last write or, when
 *				contents are checked, after each window
 *	read			no answer; reads complete when the data has arrived
 *	datagrams		no answer; the target counts those that arrive
 *
 * In a ping-pong each side answers a transfer with a transfer. Questions and
 * answers are messages of one word. Callbacks post under the lock. If a post is
 * refused with -EAGAIN, it is repeated at the next completion or by the
 * write-space callback. The first error is kept and stops the run.
 *
 * Transfers are sent from one pattern, at an offset that the number of the
 * transfer determines; the receiver compares. Compared data is overwritten, so
 * that old contents cannot pass for new ones. All writes go to the same place,
 * so only the last one of a window is compared.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/unaligned.h>
#include <linux/vmalloc.h>

#include "perf.h"

#define PERF_PERIOD	62	/* period of the pattern in bytes */
#define PERF_STRIDE	7	/* distance between the offsets of two transfers */
#define PERF_POISON	0xa5

/* Users choose the sizes: fail rather than start the OOM killer. */
#define PERF_GFP	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

static void perf_finish(struct perf *perf)
{
	struct perf_xfer *x = &perf->x;

	if (x->over)
		return;
	x->end = ktime_get_ns();
	x->over = true;
	wake_up(&x->wait);
}

static void perf_fail(struct perf *perf, int err)
{
	if (perf->x.over)
		return;
	perf->x.err = err;
	perf_finish(perf);
}

/* Fail because a transfer of the peer has wrong contents or a wrong length. */
static void perf_bad(struct perf *perf, int err, u64 seq, u64 len, u64 off)
{
	struct perf_xfer *x = &perf->x;

	if (x->over)
		return;
	x->bad_seq = seq;
	x->bad_len = len;
	x->bad_off = off;
	perf_fail(perf, err);
}

/* --------------------------------------------------------------- contents */

/* Offset of transfer @seq in the pattern; all reads have the same contents. */
static u64 perf_begins(const struct perf *perf, u64 seq)
{
	return perf->opts.op == KOFI_PERF_OP_READ ?
	       0 : seq % PERF_PERIOD * PERF_STRIDE % PERF_PERIOD;
}

static const char *perf_source(const struct perf *perf, u64 seq)
{
	bool wrong = perf->opts.corrupt && perf->opts.corrupt == seq + 1;

	return perf->x.pattern + perf_begins(perf, seq) + wrong;
}

static void perf_verify(struct perf *perf, char *buf, u64 seq)
{
	const char *want = perf->x.pattern + perf_begins(perf, seq);
	size_t len = perf->opts.size, off;

	if (!perf_verifies(perf))
		return;
	if (memcmp(buf, want, len)) {
		for (off = 0; off < len - 1 && buf[off] == want[off]; off++)
			;
		perf_bad(perf, -EBADMSG, seq, len, off);
		return;
	}
	memset(buf, PERF_POISON, len);
}

static void perf_sample(struct perf *perf, u64 ns)
{
	struct kofi_perf_hist *h = perf->x.hist;
	unsigned int b, shift;

	if (!h)
		return;
	h->min = min(h->min, ns);
	h->max = max(h->max, ns);
	if (ns < KOFI_PERF_SUB) {
		h->count[ns]++;
		return;
	}
	shift = ilog2(ns) - ilog2(KOFI_PERF_SUB);
	b = shift * KOFI_PERF_SUB + (ns >> shift);
	h->count[min(b, KOFI_PERF_BUCKETS - 1)]++;
}

/* ------------------------------------------------------------------ posts */

static int perf_post_message(struct perf *perf, const struct kvec *iov,
			     struct perf_req *req, u64 flags)
{
	const struct fi_msg msg = {
		.msg_iov = iov, .iov_count = 1, .addr = perf->peer,
		.context = &req->cqe,
	};
	const struct fi_msg_tagged tmsg = {
		.msg_iov = iov, .iov_count = 1, .addr = perf->peer,
		.tag = PERF_TAG, .context = &req->cqe,
	};

	if (perf->opts.op == KOFI_PERF_OP_TAGGED)
		return fi_tsendmsg(perf->ep, &tmsg, flags);
	return fi_sendmsg(perf->ep, &msg, flags);
}

static u64 perf_inject(const struct perf *perf, size_t len)
{
	return len <= perf->info->tx_attr->inject_size ? FI_INJECT : 0;
}

/* Post transfer number x->sent. */
static int perf_post(struct perf *perf)
{
	const struct kofi_perf_open *o = &perf->opts;
	struct perf_xfer *x = &perf->x;
	struct perf_req *req = &x->tx[x->sent % x->n_tx];
	struct kvec iov = {
		.iov_base = (void *)perf_source(perf, x->sent),
		.iov_len = o->size,
	};
	struct fi_msg_rma rma = {
		.msg_iov = &iov, .iov_count = 1, .addr = perf->peer,
		.rma_iov = perf->region, .rma_iov_count = perf->n_region,
		.context = &req->cqe, .data = (u32)x->sent,
	};
	u64 flags = FI_COMPLETION | perf_inject(perf, o->size);

	req->seq = x->sent;
	req->posted = ktime_get_ns();
	switch (o->op) {
	case KOFI_PERF_OP_READ:
		iov.iov_base = req->buf;
		return fi_readmsg(perf->ep, &rma, FI_COMPLETION);
	case KOFI_PERF_OP_WRITE:
		if (o->flags & KOFI_PERF_LATENCY)
			flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
		return fi_writemsg(perf->ep, &rma, flags);
	case KOFI_PERF_OP_WRITEDATA:
		return fi_writemsg(perf->ep, &rma, flags | FI_REMOTE_CQ_DATA);
	default:
		return perf_post_message(perf, &iov, req, flags);
	}
}

/* Post transfer number x->sent. Returns true if it was posted. */
static bool perf_go_post(struct perf *perf)
{
	int ret = perf_post(perf);

	if (!ret)
		perf->x.sent++;
	else if (ret == -EINVAL && perf_is_message(perf))
		perf_fail(perf, -E2BIG);	/* its memory has too many segments */
	else if (ret != -EAGAIN)
		perf_fail(perf, ret);
	return !ret;
}

static int perf_post_recv(struct perf *perf, struct perf_req *req)
{
	size_t len = perf->x.slot;

	if (perf->opts.op == KOFI_PERF_OP_TAGGED)
		return fi_trecv(perf->ep, req->buf, len, NULL, FI_ADDR_UNSPEC,
				PERF_TAG, 0, &req->cqe);
	return fi_recv(perf->ep, req->buf, len, NULL, FI_ADDR_UNSPEC,
		       &req->cqe);
}

/* Send a word if one is due; a question is fenced behind the writes that it is about. */
static void perf_go_word(struct perf *perf)
{
	struct perf_xfer *x = &perf->x;
	const struct kvec iov = { .iov_base = &x->out, .iov_len = PERF_WORD };
	bool fence = perf->opts.op == KOFI_PERF_OP_WRITE && x->sent;
	int ret;

	if (!x->owed || x->word_busy)
		return;
	x->out = cpu_to_le64(perf_initiates(perf) ? x->sent : 0);
	ret = perf_post_message(perf, &iov, &x->word,
				FI_COMPLETION | (fence ? FI_FENCE : 0));
	if (ret == -EAGAIN)
		return;
	if (ret) {
		perf_fail(perf, ret);
		return;
	}
	x->owed--;
	x->word_busy = true;
}

/* ----------------------------------------------------------------- windows */

/* Number of the first transfer after the window that starts with number @from */
static u64 perf_edge(const struct perf *perf, u64 from)
{
	const struct kofi_perf_open *o = &perf->opts;
	u64 end = U64_MAX;

	if (from < o->warmup)
		end = o->warmup;
	else if (o->iterations)
		end = o->warmup + o->iterations;
	return from + min_t(u64, o->window, end - from);
}

static bool perf_is_last(const struct perf *perf, u64 n)
{
	const struct kofi_perf_open *o = &perf->opts;

	return n >= o->warmup &&
	       (perf->x.stop ||
		(o->iterations && n == o->warmup + o->iterations));
}

/* Test whether the target has received the window. Ask it where it does not count. */
static bool perf_answered(struct perf *perf)
{
	struct perf_xfer *x = &perf->x;

	if (perf->opts.type == KOFI_PERF_DGRAM)
		return true;
	if (!perf_is_counted(perf)) {
		if (perf->opts.op == KOFI_PERF_OP_READ ||
		    (x->ask == PERF_ASK_NONE && !perf_verifies(perf) &&
		     !perf_is_last(perf, x->edge)))
			return true;
		if (x->ask == PERF_ASK_NONE)
			x->owed++;
	}
	if (x->ask == PERF_ASK_NONE)
		x->ask = PERF_ASK_SENT;
	perf_go_word(perf);
	return x->ask == PERF_ASK_ANSWERED;
}

static void perf_go_windows(struct perf *perf)
{
	struct perf_xfer *x = &perf->x;

	while (!x->over) {
		while (x->sent < x->edge)
			if (!perf_go_post(perf))
				return;
		/* the answer may arrive before the last completion */
		if (x->ask == PERF_ASK_NONE && perf_is_counted(perf))
			x->ask = PERF_ASK_SENT;
		if (x->done < x->edge || !perf_answered(perf))
			return;
		x->ask = PERF_ASK_NONE;
		if (perf_is_last(perf, x->edge)) {
			perf_finish(perf);
			return;
		}
		if (x->edge == perf->opts.warmup)
			x->start = ktime_get_ns();
		x->edge = perf_edge(perf, x->edge);
	}
}

/* The initiator is one transfer ahead, the target answers each. */
static void perf_go_pingpong(struct perf *perf)
{
	struct perf_xfer *x = &perf->x;
	u64 due = x->got + perf_initiates(perf);

	if (perf_is_last(perf, x->got) && x->got == x->sent) {
		if (x->done == x->sent)
			perf_finish(perf);
		return;
	}
	if (x->sent < due && x->sent - x->done < x->n_tx)
		perf_go_post(perf);
}

/* Post all transfers that are due, and detect the end of the run. */
static void perf_go(struct perf *perf)
{
	struct perf_xfer *x = &perf->x;

	/* the greeting may arrive before the peer's address is known here */
	if (x->over || READ_ONCE(perf->state) < PERF_GREETING)
		return;
	/* otherwise a series of softirqs would keep the CPU for a whole run */
	if (!in_task() && need_resched()) {
		queue_work(system_unbound_wq, &x->later);
		return;
	}
	perf_go_word(perf);
	if (!x->edge)	/* not started */
		return;
	if (perf_pingpong(perf))
		perf_go_pingpong(perf);
	else if (perf_initiates(perf))
		perf_go_windows(perf);
	else if (perf_is_counted(perf) && perf_is_last(perf, x->got) &&
		 !x->owed && !x->word_busy)
		perf_finish(perf);
}

/* ------------------------------------------------------------- completions */

/* Handle transfer number x->got, in @buf if it is a message. */
static void perf_got(struct perf *perf, char *buf)
{
	struct perf_xfer *x = &perf->x;
	bool pingpong = perf_pingpong(perf);
	u64 seq = x->got;

	if (buf)
		perf_verify(perf, buf, seq);
	x->got++;
	if (pingpong && perf_initiates(perf) && seq >= perf->opts.warmup)
		perf_sample(perf, (ktime_get_ns() -
				   x->tx[seq % x->n_tx].posted) / 2);
	if (x->got == perf->opts.warmup)
		x->start = ktime_get_ns();
	/* the peer posts its next write after the answer to this one */
	if (!buf && (pingpong || x->got == x->edge))
		perf_verify(perf, x->mem, seq);
	if (pingpong || x->got != x->edge)
		return;
	x->edge = perf_edge(perf, x->got);
	if (perf->opts.type != KOFI_PERF_DGRAM)
		x->owed++;
}

/* Handle a message of one word: the greeting, a question, or an answer. */
static void perf_got_word(struct perf *perf, const void *buf, size_t len)
{
	struct perf_xfer *x = &perf->x;
	u64 n;

	if (len != PERF_WORD) {
		perf_bad(perf, -EPROTO, x->got, len, 0);
		return;
	}
	n = get_unaligned_le64(buf);
	if (!x->greeted) {
		x->greeted = true;
		if (!perf_initiates(perf))
			x->owed++;
		wake_up(&x->wait);
	} else if (!perf_pingpong(perf) && perf_initiates(perf) &&
		   x->ask == PERF_ASK_SENT) {
		x->ask = PERF_ASK_ANSWERED;
	} else if (!perf_initiates(perf) &&
		   perf->opts.op == KOFI_PERF_OP_WRITE && n) {
		perf_verify(perf, x->mem, n - 1);
		x->got = n;
		x->owed++;
	} else {
		perf_bad(perf, -EPROTO, x->got, len, 0);
	}
}

static void perf_received(struct perf *perf, struct perf_req *req,
			  const struct kofi_wc *wc)
{
	struct perf_xfer *x = &perf->x;
	bool transfer = perf_is_message(perf) && x->greeted &&
			(perf_pingpong(perf) || !perf_initiates(perf));
	int ret;

	if (wc->err) {
		perf_fail(perf, -wc->err);
		return;
	}
	if (wc->flags & FI_REMOTE_CQ_DATA)
		perf_got(perf, NULL);
	else if (!transfer)
		perf_got_word(perf, req->buf, wc->len);
	else if (wc->len != perf->opts.size)
		perf_bad(perf, -EMSGSIZE, x->got, wc->len, 0);
	else
		perf_got(perf, req->buf);
	if (x->over)
		return;
	ret = perf_post_recv(perf, req);
	if (ret)
		perf_fail(perf, ret);
}

static void perf_rx_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct perf_req *req = container_of(wc->cqe, struct perf_req, cqe);
	struct perf *perf = req->perf;

	spin_lock_bh(&perf->x.lock);
	perf_received(perf, req, wc);
	perf_go(perf);
	spin_unlock_bh(&perf->x.lock);
}

static void perf_remote_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct perf *perf = container_of(wc->cqe, struct perf, x.remote);

	spin_lock_bh(&perf->x.lock);
	if (wc->err)
		perf_fail(perf, -wc->err);
	else
		perf_got(perf, NULL);
	perf_go(perf);
	spin_unlock_bh(&perf->x.lock);
}

static void perf_tx_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct perf_req *req = container_of(wc->cqe, struct perf_req, cqe);
	struct perf *perf = req->perf;
	struct perf_xfer *x = &perf->x;

	spin_lock_bh(&x->lock);
	if (wc->err) {
		perf_fail(perf, -wc->err);
	} else {
		x->done++;
		if (!perf_pingpong(perf) && req->seq >= perf->opts.warmup)
			perf_sample(perf, ktime_get_ns() - req->posted);
		if (perf->opts.op == KOFI_PERF_OP_READ)
			perf_verify(perf, req->buf, req->seq);
	}
	perf_go(perf);
	spin_unlock_bh(&x->lock);
}

static void perf_word_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct perf_req *req = container_of(wc->cqe, struct perf_req, cqe);
	struct perf *perf = req->perf;

	spin_lock_bh(&perf->x.lock);
	perf->x.word_busy = false;
	if (wc->err)
		perf_fail(perf, -wc->err);
	perf_go(perf);
	spin_unlock_bh(&perf->x.lock);
}

static void perf_later(struct work_struct *work)
{
	struct perf *perf = container_of(work, struct perf, x.later);

	spin_lock_bh(&perf->x.lock);
	perf_go(perf);
	spin_unlock_bh(&perf->x.lock);
}

/**
 * perf_write_space - repeat a post that was refused with -EAGAIN
 * @ep: the endpoint
 * @context: the session
 *
 * Context: as the queue's callbacks.
 */
void perf_write_space(struct fid_ep *ep, void *context)
{
	struct perf *perf = context;

	spin_lock_bh(&perf->x.lock);
	perf_go(perf);
	spin_unlock_bh(&perf->x.lock);
}

/* ------------------------------------------------------------------ memory */

/*
 * Allocate memory that is contiguous for this kernel, in as few physically contiguous
 * pieces as there are: a piece has at least a page, and at most the largest order.
 */
static void *perf_alloc_pieces(size_t len)
{
	unsigned int n = DIV_ROUND_UP(len, PAGE_SIZE), i = 0, order = MAX_PAGE_ORDER, k;
	struct page **pages = kvmalloc_array(n, sizeof(*pages), PERF_GFP), *page;
	void *mem;

	if (!pages)
		return NULL;
	while (i < n) {
		order = min_t(unsigned int, order, get_order((n - i) * PAGE_SIZE));
		page = alloc_pages(PERF_GFP | __GFP_ZERO, order);
		if (!page && !order)
			goto free;
		if (!page) {
			order--;
			continue;
		}
		split_page(page, order);
		for (k = 0; k < 1 << order; k++) {
			if (i < n)
				pages[i++] = page + k;
			else
				__free_page(page + k);
		}
	}
	/* kvfree() of the memory frees the pages and their array */
	mem = vmap(pages, n, VM_MAP | VM_MAP_PUT_PAGES, PAGE_KERNEL);
	if (mem)
		return mem;

free:
	while (i)
		__free_page(pages[--i]);
	kvfree(pages);
	return NULL;
}

/*
 * Allocate memory that operations send or receive, zeroed. A message over a device takes
 * few segments, and memory of vmalloc() would be a segment for each page. Free it with
 * kvfree().
 */
static void *perf_alloc(size_t len)
{
	void *mem = NULL;

	if (len <= KMALLOC_MAX_SIZE)
		mem = kmalloc(len, PERF_GFP | __GFP_ZERO);
	return mem ?: len > PAGE_SIZE ? perf_alloc_pieces(len) : NULL;
}

/* ------------------------------------------------------- calls of a session */

/* Prepare an operation with @len bytes of memory; 0: none. */
static int perf_req_init(struct perf *perf, struct perf_req *req,
			 void (*done)(struct fid_cq *cq,
				      const struct kofi_wc *wc), size_t len)
{
	req->cqe.done = done;
	req->perf = perf;
	req->buf = len ? perf_alloc(len) : NULL;
	return len && !req->buf ? -ENOMEM : 0;
}

static void perf_fill(char *buf, size_t len)
{
	static const char alphabet[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t i;

	BUILD_BUG_ON(sizeof(alphabet) - 1 != PERF_PERIOD);
	for (i = 0; i < len; i++)
		buf[i] = alphabet[i % PERF_PERIOD];
}

/**
 * perf_xfer_init - initialise the transfers of a session
 * @perf: a new session
 */
void perf_xfer_init(struct perf *perf)
{
	spin_lock_init(&perf->x.lock);
	init_waitqueue_head(&perf->x.wait);
	INIT_WORK(&perf->x.later, perf_later);
}

/**
 * perf_xfer_alloc - allocate memory for the transfers
 * @perf: a session with its options
 *
 * Return: 0 or -ENOMEM, after which the caller calls perf_xfer_free().
 */
int perf_xfer_alloc(struct perf *perf)
{
	const struct kofi_perf_open *o = &perf->opts;
	struct perf_xfer *x = &perf->x;
	bool windows = perf_initiates(perf) && !perf_pingpong(perf);
	bool messages = perf_is_message(perf) && !windows;
	bool reads = o->op == KOFI_PERF_OP_READ && windows;
	size_t pattern = o->size + PERF_PERIOD + 1;
	int ret = 0;
	u32 i;

	x->n_tx = windows ? o->window : 2;
	x->n_rx = perf_is_counted(perf) && !windows && !perf_pingpong(perf) ?
		  o->window + 1 : 2;
	x->slot = messages ? max_t(size_t, o->size, PERF_WORD) : PERF_WORD;
	x->tx = kvcalloc(x->n_tx, sizeof(*x->tx), PERF_GFP);
	x->rx = kvcalloc(x->n_rx, sizeof(*x->rx), PERF_GFP);
	x->pattern = perf_alloc(pattern);
	if (!perf_is_message(perf) && !windows) {
		x->mem = kvmalloc(o->size, PERF_GFP | __GFP_ZERO);
		if (!x->mem)
			return -ENOMEM;
	}
	if (!x->tx || !x->rx || !x->pattern)
		return -ENOMEM;
	if (o->flags & KOFI_PERF_LATENCY) {
		x->hist = kvzalloc(sizeof(*x->hist), PERF_GFP);
		if (!x->hist)
			return -ENOMEM;
		x->hist->min = U64_MAX;
	}
	perf_fill(x->pattern, pattern);
	/* the initiator will read this memory */
	if (o->op == KOFI_PERF_OP_READ && !windows)
		memcpy(x->mem, x->pattern + !!o->corrupt, o->size);
	for (i = 0; i < x->n_tx && !ret; i++)
		ret = perf_req_init(perf, &x->tx[i], perf_tx_done,
				    reads ? o->size : 0);
	for (i = 0; i < x->n_rx && !ret; i++)
		ret = perf_req_init(perf, &x->rx[i], perf_rx_done, x->slot);
	perf_req_init(perf, &x->word, perf_word_done, 0);
	x->remote.done = perf_remote_done;
	return ret;
}

/**
 * perf_xfer_free - free the memory of the transfers
 * @perf: a session with its endpoint closed
 */
void perf_xfer_free(struct perf *perf)
{
	struct perf_xfer *x = &perf->x;
	u32 i;

	for (i = 0; x->rx && i < x->n_rx; i++)
		kvfree(x->rx[i].buf);
	for (i = 0; x->tx && i < x->n_tx; i++)
		kvfree(x->tx[i].buf);
	kvfree(x->hist);
	kvfree(x->pattern);
	kvfree(x->mem);
	kvfree(x->rx);
	kvfree(x->tx);
}

/**
 * perf_xfer_recv - post all receives
 * @perf: the session, with its endpoint enabled
 *
 * Return: 0; -EMSGSIZE if the memory of a message has more segments than a receive
 * takes; or another negative error code.
 */
int perf_xfer_recv(struct perf *perf)
{
	int ret = 0;
	u32 i;

	for (i = 0; i < perf->x.n_rx && !ret; i++)
		ret = perf_post_recv(perf, &perf->x.rx[i]);
	return ret == -EINVAL && perf->x.slot > PERF_WORD ? -EMSGSIZE : ret;
}

/**
 * perf_xfer_greet - send the first message of an initiator
 * @perf: the session, connected if it connects
 *
 * Datagrams may be lost, and need no connection: they have no greeting.
 */
void perf_xfer_greet(struct perf *perf)
{
	struct perf_xfer *x = &perf->x;

	spin_lock_bh(&x->lock);
	if (perf->opts.type == KOFI_PERF_DGRAM)
		x->greeted = true;
	else if (perf_initiates(perf))
		x->owed++;
	perf_go(perf);
	spin_unlock_bh(&x->lock);
}

static bool perf_met(struct perf *perf)
{
	struct perf_xfer *x = &perf->x;
	bool met;

	spin_lock_bh(&x->lock);
	met = x->greeted || x->over;
	spin_unlock_bh(&x->lock);
	return met;
}

/**
 * perf_xfer_greeted - wait for the peer's first message
 * @perf: the session
 * @timeout: milliseconds
 *
 * Return: 0, -ETIMEDOUT, -EINTR, or the error of the connection.
 */
int perf_xfer_greeted(struct perf *perf, unsigned int timeout)
{
	struct perf_xfer *x = &perf->x;
	long left;
	int err;

	left = wait_event_interruptible_timeout(x->wait, perf_met(perf),
						msecs_to_jiffies(timeout));
	if (left < 0)
		return -EINTR;
	if (!left)
		return -ETIMEDOUT;
	spin_lock_bh(&x->lock);
	err = x->err;
	spin_unlock_bh(&x->lock);
	return err;
}

/**
 * perf_xfer_start - start the transfers
 * @perf: the session, joined
 *
 * Return: 0; or -EMSGSIZE if the peer's memory has more regions than an operation takes.
 */
int perf_xfer_start(struct perf *perf)
{
	struct perf_xfer *x = &perf->x;

	if (perf_initiates(perf) &&
	    perf->n_region > perf->info->tx_attr->rma_iov_limit)
		return -EMSGSIZE;
	spin_lock_bh(&x->lock);
	x->start = ktime_get_ns();
	x->edge = perf_edge(perf, 0);
	perf_go(perf);
	spin_unlock_bh(&x->lock);
	return 0;
}

/**
 * perf_xfer_stop - stop the run regularly
 * @perf: the session, started
 *
 * An initiator finishes its window. The program of a target calls this when no
 * further transfers will arrive.
 */
void perf_xfer_stop(struct perf *perf)
{
	struct perf_xfer *x = &perf->x;

	spin_lock_bh(&x->lock);
	x->stop = true;
	if (perf_initiates(perf))
		perf_go(perf);
	else
		perf_finish(perf);
	spin_unlock_bh(&x->lock);
}

/**
 * perf_xfer_end - stop posting
 * @perf: the session
 */
void perf_xfer_end(struct perf *perf)
{
	spin_lock_bh(&perf->x.lock);
	perf_finish(perf);
	spin_unlock_bh(&perf->x.lock);
}

/**
 * perf_xfer_over - test whether the run has finished or failed
 * @perf: the session
 *
 * Return: true if it has.
 */
bool perf_xfer_over(struct perf *perf)
{
	bool over;

	spin_lock_bh(&perf->x.lock);
	over = perf->x.over;
	spin_unlock_bh(&perf->x.lock);
	return over;
}

/**
 * perf_xfer_tell - report the state of the run
 * @perf: the session, started
 * @wait: filled in
 */
void perf_xfer_tell(struct perf *perf, struct kofi_perf_wait *wait)
{
	u64 warmup = perf->opts.warmup, n;
	struct perf_xfer *x = &perf->x;

	spin_lock_bh(&x->lock);
	n = perf_initiates(perf) && !perf_pingpong(perf) ? x->done : x->got;
	wait->over = x->over;
	wait->error = x->err;
	wait->warm = min(n, warmup);
	wait->done = n - wait->warm;
	wait->start = x->start;
	wait->end = x->over ? x->end : ktime_get_ns();
	wait->bad_seq = x->bad_seq + 1;
	wait->bad_len = x->bad_len;
	wait->bad_off = x->bad_off;
	spin_unlock_bh(&x->lock);
}

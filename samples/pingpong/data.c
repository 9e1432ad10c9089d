// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The ping-pong itself: one receive is always posted, and what arrives is the
 * signal to send the next message.
 *
 * Two ways of taking completions lead to the same two steps, pp_data_sent() and
 * pp_data_received():
 *
 *   done	the context of each operation is a struct kofi_cqe inside struct
 *		pp_data, and the queue calls its done() where it was told to: in
 *		softirq context, in a work item, or (direct) inside the thread's
 *		own kofi_cq_poll(). The reply is posted right there and the
 *		thread sleeps until a size is through. This is the way of kernel
 *		clients.
 *   read	the thread sleeps in fi_cq_sread(), takes the completions and
 *		posts, as a libfabric program does.
 *
 * Nothing is allocated or copied per message: all of them are sent out of one
 * pattern, each from another place in it, and checked against the same.
 *
 * A post that returns -EAGAIN is repeated by the next step; the completion of
 * a send or the write-space callback sees to it that there is one. The first
 * error stays, ends the current size and with it the run. Sizes and phases are
 * begun by the thread, callbacks run until fi_close() of the endpoint returns;
 * the lock is between the two.
 */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "pingpong.h"

#define PP_CQ_SIZE	16	/* a receive, a send, and room for injects */
#define PP_BATCH	4

/* The sizes are the user's: fail rather than start the OOM killer. */
#define PP_GFP	(GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* What this side sends as message number seq of the run. */
static const char *pp_data_message(const struct pp_data *data, u64 seq)
{
	return data->pattern + (data->check ? pp_pattern_start(seq) : 0);
}

static void pp_data_fail(struct pp_data *data, int err)
{
	if (!data->err)
		data->err = err;
}

static void pp_data_send_message(struct pp_data *data)
{
	const char *msg = pp_data_message(data, data->tx_seq);
	bool inject = data->size < data->inject_size;
	ssize_t ret;

	if (inject && data->tagged)
		ret = fi_tinject(data->ep, msg, data->size, data->peer, PP_TAG);
	else if (inject)
		ret = fi_inject(data->ep, msg, data->size, data->peer);
	else if (data->tagged)
		ret = fi_tsend(data->ep, msg, data->size, NULL, data->peer,
			       PP_TAG, &data->tx);
	else
		ret = fi_send(data->ep, msg, data->size, NULL, data->peer,
			      &data->tx);
	if (ret == -EAGAIN)
		return;
	if (ret) {
		pp_data_fail(data, ret);
		return;
	}
	data->tx_busy = !inject;
	data->tx_seq++;
	data->tx_left--;
}

/*
 * The last message completes when the peer's side has it: closing right after
 * a mere send could lose what is on its way.
 */
static void pp_data_send_fin(struct pp_data *data)
{
	const struct kvec iov = {
		.iov_base = data->goodbye,
		.iov_len = sizeof(data->goodbye),
	};
	const struct fi_msg msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = data->peer,
		.context = &data->tx,
	};
	const struct fi_msg_tagged tmsg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = data->peer,
		.tag = PP_TAG,
		.context = &data->tx,
	};
	u64 flags = FI_COMPLETION | FI_TRANSMIT_COMPLETE;
	ssize_t ret;

again:
	ret = data->tagged ? fi_tsendmsg(data->ep, &tmsg, flags) :
			     fi_sendmsg(data->ep, &msg, flags);
	/* iWARP reports no arrival */
	if (ret == -EOPNOTSUPP && flags & FI_TRANSMIT_COMPLETE) {
		flags &= ~FI_TRANSMIT_COMPLETE;
		goto again;
	}
	if (ret == -EAGAIN)
		return;
	if (ret) {
		pp_data_fail(data, ret);
		return;
	}
	data->tx_busy = true;
	data->fin = PP_FIN_SENT;
}

/**
 * pp_data_recv - post the receive
 * @data: of a run with its endpoint enabled and no receive posted
 *
 * Context: any.
 * Return: 0 or a negative error code.
 */
int pp_data_recv(struct pp_data *data)
{
	if (data->tagged)
		return fi_trecv(data->ep, data->buf, data->buf_size, NULL,
				FI_ADDR_UNSPEC, PP_TAG, 0, &data->rx);
	return fi_recv(data->ep, data->buf, data->buf_size, NULL,
		       FI_ADDR_UNSPEC, &data->rx);
}

/* The client is one message ahead, the server answers each. */
static bool pp_data_due(const struct pp_data *data)
{
	return data->tx_left && data->tx_left + data->client > data->rx_left;
}

static bool pp_data_finished(const struct pp_data *data)
{
	if (data->err)
		return true;
	if (data->tx_busy)
		return false;
	if (data->fin != PP_FIN_NO)
		return data->fin == PP_FIN_SENT && data->fin_seen;
	return !data->tx_left && !data->rx_left;
}

/* After anything has changed: post what can be posted, see whether it is over. */
static void pp_data_go_on(struct pp_data *data)
{
	if (!data->err && !data->tx_busy) {
		if (data->fin == PP_FIN_DUE)
			pp_data_send_fin(data);
		else if (pp_data_due(data))
			pp_data_send_message(data);
	}
	if (pp_data_finished(data)) {
		if (!data->end)
			data->end = ktime_get_ns();
		wake_up(data->wait);
	}
}

/* A send has completed; @err is positive. */
static void pp_data_sent(struct pp_data *data, int err)
{
	data->tx_busy = false;
	/* who has said goodbye may be gone before it has heard ours */
	if (err && !data->fin_seen)
		pp_data_fail(data, -err);
}

/* The posted receive has completed with a message of @len bytes. */
static void pp_data_received(struct pp_data *data, int err, size_t len)
{
	size_t off;

	if (err) {
		pp_data_fail(data, -err);
		return;
	}
	if (!data->rx_left) {
		/* the goodbye may come before we are ready for ours */
		if (len != sizeof(PP_FIN) || memcmp(data->buf, PP_FIN, len)) {
			data->bad_len = len;
			pp_data_fail(data, -EPROTO);
			return;
		}
		data->fin_seen = true;
		return;
	}
	if (len != data->size) {
		data->bad_len = len;
		pp_data_fail(data, -EMSGSIZE);
		return;
	}
	if (data->check) {
		off = pp_pattern_differs(data->buf,
					 pp_data_message(data, data->rx_seq),
					 len);
		if (off < len) {
			data->bad_off = off;
			pp_data_fail(data, -EBADMSG);
			return;
		}
	}
	data->rx_seq++;
	data->rx_left--;
	if (data->warmup && !--data->warmup)
		data->start = ktime_get_ns();
	err = pp_data_recv(data);
	if (err)
		pp_data_fail(data, err);
}

static void pp_data_tx_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct pp_data *data = container_of(wc->cqe, struct pp_data, tx);

	spin_lock_bh(&data->lock);
	pp_data_sent(data, wc->err);
	pp_data_go_on(data);
	spin_unlock_bh(&data->lock);
}

static void pp_data_rx_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct pp_data *data = container_of(wc->cqe, struct pp_data, rx);

	spin_lock_bh(&data->lock);
	pp_data_received(data, wc->err, wc->len);
	pp_data_go_on(data);
	spin_unlock_bh(&data->lock);
}

/**
 * pp_data_write_space - a post has been refused with -EAGAIN, now there is room
 * @ep: the endpoint
 * @context: the run
 *
 * Context: that of the queue's callbacks.
 */
void pp_data_write_space(struct fid_ep *ep, void *context)
{
	struct pp_run *run = context;
	struct pp_data *data = &run->data;

	spin_lock_bh(&data->lock);
	pp_data_go_on(data);
	spin_unlock_bh(&data->lock);
}

/* Read mode: the same for a completion that was read; no context: an inject. */
static void pp_data_complete(struct pp_data *data, const void *context, int err,
			     size_t len)
{
	spin_lock_bh(&data->lock);
	if (context == &data->rx)
		pp_data_received(data, err, len);
	else if (context == &data->tx)
		pp_data_sent(data, err);
	else if (err)
		pp_data_fail(data, -err);
	pp_data_go_on(data);
	spin_unlock_bh(&data->lock);
}

/* Is nothing left to do? Tells the messages so far, too: progress. */
static bool pp_data_is_finished(struct pp_run *run, u64 *messages)
{
	struct pp_data *data = &run->data;
	bool finished;

	spin_lock_bh(&data->lock);
	finished = pp_data_finished(data);
	if (!finished && !pp_ctrl_open(run)) {
		/* the peer is gone, if in order behind the last goodbye */
		if (data->fin == PP_FIN_NO)
			pp_data_fail(data, -ECONNRESET);
		finished = true;
	}
	*messages = data->tx_seq + data->rx_seq;
	spin_unlock_bh(&data->lock);
	return finished;
}

static int pp_data_wait_done(struct pp_run *run)
{
	struct pp_data *data = &run->data;
	u64 before, messages = 0;
	long left;

	do {
		before = messages;
		left = wait_event_interruptible_timeout(*data->wait,
							pp_data_is_finished(run, &messages),
							pp_timeout(run));
		if (left < 0)
			return -EINTR;
		if (left)
			return 0;
	} while (messages != before);
	return -ETIMEDOUT;
}

static int pp_data_wait_direct(struct pp_run *run)
{
	struct pp_data *data = &run->data;
	unsigned long last = jiffies;
	u64 messages;
	int n;

	while (!pp_data_is_finished(run, &messages)) {
		n = kofi_cq_poll(data->cq, PP_BATCH);
		if (n < 0)
			return n;
		if (signal_pending(current))
			return -EINTR;
		if (n)
			last = jiffies;
		else if (run->opts.timeout &&
			 time_after(jiffies, last + pp_timeout(run)))
			return -ETIMEDOUT;
		cond_resched();
	}
	return 0;
}

static int pp_data_read_err(struct pp_data *data)
{
	struct fi_cq_err_entry err = {};
	ssize_t n;

	n = fi_cq_readerr(data->cq, &err, 0);
	if (n == -EAGAIN)
		return 0;
	if (n < 0)
		return n;
	pp_data_complete(data, err.op_context, err.err, err.len);
	return 0;
}

/* The control connection has something to say, to a thread that sleeps in fi_cq_sread() */
static int pp_data_wake(struct wait_queue_entry *wait, unsigned int mode, int flags, void *key)
{
	fi_cq_signal(((struct pp_run *)wait->private)->data.cq);
	return 0;
}

static int pp_data_wait_read(struct pp_run *run)
{
	struct wait_queue_entry wait = { .private = run, .func = pp_data_wake };
	struct fi_cq_msg_entry entries[PP_BATCH];
	struct pp_data *data = &run->data;
	unsigned long last = jiffies;
	u64 messages;
	ssize_t n = 0, i;

	add_wait_queue(data->wait, &wait);
	while (!pp_data_is_finished(run, &messages)) {
		n = fi_cq_sread(data->cq, entries, PP_BATCH, NULL,
				pp_timeout_ms(run));
		if (n == -FI_EAVAIL)
			n = pp_data_read_err(data);
		if (signal_pending(current))
			n = -EINTR;
		/* or woken */
		if (n == -EAGAIN)
			n = run->opts.timeout && time_after_eq(jiffies, last + pp_timeout(run)) ?
			    -ETIMEDOUT : 0;
		else
			last = jiffies;
		if (n < 0)
			break;
		for (i = 0; i < n; i++)
			pp_data_complete(data, entries[i].op_context, 0,
					 entries[i].len);
	}
	remove_wait_queue(data->wait, &wait);
	return n < 0 ? n : 0;
}

static void pp_data_explain(struct pp_run *run, int err)
{
	const struct pp_data *data = &run->data;

	switch (err) {
	case -EBADMSG:
		snprintf(run->detail, sizeof(run->detail),
			 "message %llu of %zu bytes is wrong from byte %zu on",
			 data->rx_seq, data->size, data->bad_off);
		break;
	case -EMSGSIZE:
		snprintf(run->detail, sizeof(run->detail),
			 "%zu bytes came where %zu were expected; same -S and -I on both sides?",
			 data->bad_len, data->size);
		break;
	case -EPROTO:
		snprintf(run->detail, sizeof(run->detail),
			 "%zu bytes came where none were expected; same -S and -I on both sides?",
			 data->bad_len);
		break;
	}
}

/* The first error of the messages so far, explained; 0 for none. */
static int pp_data_error(struct pp_run *run)
{
	struct pp_data *data = &run->data;
	int ret;

	spin_lock_bh(&data->lock);
	ret = data->err;
	spin_unlock_bh(&data->lock);
	switch (ret) {
	case -ECANCELED:
	case -ENOTCONN:
	case -ESHUTDOWN:
		/* this side has not ended the connection, so the peer has */
		return -ECONNRESET;
	default:
		pp_data_explain(run, ret);
		return ret;
	}
}

/* Until nothing is left to do of what the caller has set up. */
static int pp_data_wait(struct pp_run *run)
{
	int ret;

	if (run->opts.read)
		ret = pp_data_wait_read(run);
	else if (run->opts.poll == KOFI_POLL_DIRECT)
		ret = pp_data_wait_direct(run);
	else
		ret = pp_data_wait_done(run);
	return ret ?: pp_data_error(run);
}

/* Completions that are not waited for, where they have to be read. */
static void pp_data_fetch(struct pp_run *run)
{
	struct pp_data *data = &run->data;
	struct fi_cq_msg_entry entry;
	ssize_t n;

	if (!run->opts.read) {
		if (run->opts.poll == KOFI_POLL_DIRECT)
			kofi_cq_poll(data->cq, PP_CQ_SIZE);
		return;
	}
	while ((n = fi_cq_read(data->cq, &entry, 1)) == 1)
		pp_data_complete(data, entry.op_context, 0, entry.len);
	if (n == -FI_EAVAIL)
		pp_data_read_err(data);
}

/**
 * pp_data_blame - what a failure of the control connection goes back to
 * @run: the run, connected
 * @err: how the control connection has failed
 *
 * When the sides do not agree on what to send, one of them finds a wrong
 * message while the thread waits for the other's word, which does not come.
 *
 * Context: the run's thread.
 * Return: the error of the messages if there is one, explained; otherwise @err.
 */
int pp_data_blame(struct pp_run *run, int err)
{
	int first;

	pp_data_fetch(run);
	first = pp_data_error(run);
	/* both connections go when the peer does, which says nothing new */
	if (!first || first == -ECONNRESET)
		return err;
	run->stage = "transfer";
	return first;
}

/**
 * pp_data_alloc - memory for the messages
 * @run: the run
 * @max: bytes of the largest one
 *
 * Return: 0 or -ENOMEM.
 */
int pp_data_alloc(struct pp_run *run, size_t max)
{
	struct pp_data *data = &run->data;

	spin_lock_init(&data->lock);
	data->tx.done = pp_data_tx_done;
	data->rx.done = pp_data_rx_done;
	data->client = pp_is_client(run);
	data->tagged = run->opts.tagged;
	data->check = run->opts.check;
	memcpy(data->goodbye, PP_FIN, sizeof(PP_FIN));

	data->buf_size = max_t(size_t, max, PP_RECV_MIN);
	data->buf = kvmalloc(data->buf_size, PP_GFP);
	if (!data->buf)
		return -ENOMEM;
	data->pattern = kvmalloc(max + PP_PATTERN_LEN, PP_GFP);
	if (!data->pattern)
		return -ENOMEM;		/* pp_data_free() frees the other */
	pp_pattern_fill(data->pattern, max + PP_PATTERN_LEN);
	return 0;
}

/**
 * pp_data_free - give the memory back
 * @run: a run whose endpoint is closed
 */
void pp_data_free(struct pp_run *run)
{
	kvfree(run->data.pattern);
	kvfree(run->data.buf);
}

/**
 * pp_data_cq_open - the queue for all completions of the run
 * @run: the run, with its domain open
 *
 * One queue calls back once at a time, so sends and receives need no order
 * between them.
 *
 * Return: 0 or a negative error code.
 */
int pp_data_cq_open(struct pp_run *run)
{
	const struct kofi_cq_attr kattr = {
		.poll = run->opts.poll,
		.done = true,
	};
	struct fi_cq_attr attr = { .size = PP_CQ_SIZE };

	if (!run->opts.read)
		return kofi_cq_open(run->domain, &attr, &kattr, &run->data.cq,
				    run);
	attr.format = FI_CQ_FORMAT_MSG;
	attr.wait_obj = FI_WAIT_UNSPEC;
	return fi_cq_open(run->domain, &attr, &run->data.cq, run);
}

/**
 * pp_data_begin - be ready for the messages of one size; the client sends
 * @run: the run, connected, the other side ready or waiting for our answer
 * @size: bytes per message
 *
 * Context: the run's thread.
 */
void pp_data_begin(struct pp_run *run, size_t size)
{
	u32 trips = run->opts.iterations + run->opts.warmup;
	struct pp_data *data = &run->data;

	spin_lock_bh(&data->lock);
	data->size = size;
	data->warmup = run->opts.warmup;
	data->tx_left = trips;
	data->rx_left = trips;
	data->end = 0;
	data->start = ktime_get_ns();
	pp_data_go_on(data);
	spin_unlock_bh(&data->lock);
}

/**
 * pp_data_end - wait until all messages of the size are through
 * @run: the run, after pp_data_begin()
 * @res: where the figures go
 *
 * Context: the run's thread; sleeps.
 * Return: 0 or the first error, -EBADMSG for wrong contents.
 */
int pp_data_end(struct pp_run *run, struct pp_result *res)
{
	struct pp_data *data = &run->data;
	int ret;

	run->stage = "transfer";
	ret = pp_data_wait(run);
	if (ret)
		return ret;
	/* nothing is under way any more, so no callback changes these */
	res->size = data->size;
	res->sent = run->opts.iterations;
	res->acked = (u64)run->opts.iterations + run->opts.warmup;
	res->elapsed = data->end - data->start;
	return 0;
}

/**
 * pp_data_fin - say goodbye and wait for the peer's
 * @run: the run, connected
 *
 * Context: the run's thread; sleeps.
 * Return: 0 or the first error.
 */
int pp_data_fin(struct pp_run *run)
{
	struct pp_data *data = &run->data;

	run->stage = "end";
	spin_lock_bh(&data->lock);
	data->fin = PP_FIN_DUE;
	pp_data_go_on(data);
	spin_unlock_bh(&data->lock);
	return pp_data_wait(run);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The ping-pong: one receive is always posted, and each received message
 * triggers the next send.
 *
 * Two ways to get completions lead to the same two steps, pp_data_sent() and
 * pp_data_received():
 *
 *   done	the context of each operation is a struct kofi_cqe inside struct
 *		pp_data. The queue calls its done() in the requested context: in
 *		softirq context, in a work item, or (direct) inside the thread's
 *		own kofi_cq_poll(). The reply is posted right there, and the
 *		thread sleeps until a size is finished. Kernel clients usually
 *		do this.
 *   read	the thread sleeps in fi_cq_sread(), takes the completions and
 *		posts, as a libfabric program does.
 *
 * No message is allocated or copied: all are sent from one pattern, each from
 * another offset, and compared with the same pattern.
 *
 * A post that returns -EAGAIN is repeated by the next step, which the
 * completion of a send or the write-space callback triggers. The first error is
 * kept and fails the current size and the run. The thread starts sizes and
 * phases. Callbacks run until fi_close() of the endpoint returns. The lock
 * serialises thread and callbacks.
 */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "pingpong.h"

#define PP_CQ_SIZE	16	/* a receive, a send, and room for injects */
#define PP_BATCH	4

/* Users choose the sizes: fail rather than start the OOM killer. */
#define PP_GFP	(GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* Contents of this side's message number @seq in the run */
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
 * Send the last message. It completes when the peer has received it: closing
 * after a plain send could lose it.
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
	/* iWARP does not report arrival */
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

/*
 * Test whether a send is due: the client is one message ahead, the server
 * answers each.
 */
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

/* Post after a change of state if possible, and detect the end of a phase. */
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

/* Handle a completed send; @err is positive. */
static void pp_data_sent(struct pp_data *data, int err)
{
	data->tx_busy = false;
	/* a peer that has sent its last message may close before it receives ours */
	if (err && !data->fin_seen)
		pp_data_fail(data, -err);
}

/* Handle the completed receive, with a message of @len bytes. */
static void pp_data_received(struct pp_data *data, int err, size_t len)
{
	size_t off;

	if (err) {
		pp_data_fail(data, -err);
		return;
	}
	if (!data->rx_left) {
		/*
		 * The peer's last message may arrive before this side is ready
		 * to send its own.
		 */
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
 * pp_data_write_space - post again after a refused post, when the endpoint has
 * room
 * @ep: the endpoint
 * @context: the run
 *
 * Context: the context of the queue's callbacks.
 */
void pp_data_write_space(struct fid_ep *ep, void *context)
{
	struct pp_run *run = context;
	struct pp_data *data = &run->data;

	spin_lock_bh(&data->lock);
	pp_data_go_on(data);
	spin_unlock_bh(&data->lock);
}

/* Read mode: handle a completion that was read. Injects have no context. */
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

/*
 * Test whether the phase has finished. Sets @messages to the count, to detect
 * progress.
 */
static bool pp_data_is_finished(struct pp_run *run, u64 *messages)
{
	struct pp_data *data = &run->data;
	bool finished;

	spin_lock_bh(&data->lock);
	finished = pp_data_finished(data);
	if (!finished && !pp_ctrl_open(run)) {
		/* an error, unless the last messages are being exchanged */
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

/* Wake a thread in fi_cq_sread() when the control connection has an event. */
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
		/* timed out, or woken by pp_data_wake() */
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

/* Return and explain the first error of the messages; 0 if there is none. */
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
		/* this side did not close the connection, so the peer did */
		return -ECONNRESET;
	default:
		pp_data_explain(run, ret);
		return ret;
	}
}

/* Wait until the phase that the caller has started is finished. */
static int pp_data_wait(struct pp_run *run)
{
	int ret;

	if (run->opts.read)
		ret = pp_data_wait_read(run);
	else if (run->opts.poll == KOFI_POLL_DIRECT)
		ret = pp_data_wait_direct(run);
	else
		ret = pp_data_wait_done(run);
	if (ret)
		return ret;
	return pp_data_error(run);
}

/* Handle completions without waiting, in modes that need a read or a poll. */
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
 * pp_data_blame - find the cause of a failure of the control connection
 * @run: the run, connected
 * @err: error of the control connection
 *
 * If the sides have different sizes or counts, one of them gets a wrong message
 * while its thread waits for an item that does not arrive.
 *
 * Context: the run's thread.
 * Return: the first error of the messages, explained, if there is one;
 * otherwise @err.
 */
int pp_data_blame(struct pp_run *run, int err)
{
	int first;

	pp_data_fetch(run);
	first = pp_data_error(run);
	/* both connections close when the peer exits: no separate cause */
	if (!first || first == -ECONNRESET)
		return err;
	run->stage = "transfer";
	return first;
}

/**
 * pp_data_alloc - allocate memory for the messages
 * @run: the run
 * @max: bytes of the longest message
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
		return -ENOMEM;		/* pp_data_free() frees @buf */
	pp_pattern_fill(data->pattern, max + PP_PATTERN_LEN);
	return 0;
}

/**
 * pp_data_free - free the memory for the messages
 * @run: a run with its endpoint closed
 */
void pp_data_free(struct pp_run *run)
{
	kvfree(run->data.pattern);
	kvfree(run->data.buf);
}

/**
 * pp_data_cq_open - open the queue for all completions of the run
 * @run: the run, with its domain open
 *
 * A queue calls back for one completion at a time, so sends and receives need
 * no order between them.
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
 * pp_data_begin - start the messages of one size; the client sends
 * @run: the run, connected; the other side is ready or waits for our answer
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
 * pp_data_end - wait until all messages of the size are finished
 * @run: the run, after pp_data_begin()
 * @res: set to the results
 *
 * Context: the run's thread; sleeps.
 * Return: 0 or the first error; -EBADMSG for wrong contents.
 */
int pp_data_end(struct pp_run *run, struct pp_result *res)
{
	struct pp_data *data = &run->data;
	int ret;

	run->stage = "transfer";
	ret = pp_data_wait(run);
	if (ret)
		return ret;
	/* nothing is outstanding, so no callback changes these */
	res->size = data->size;
	res->sent = run->opts.iterations;
	res->acked = (u64)run->opts.iterations + run->opts.warmup;
	res->elapsed = data->end - data->start;
	return 0;
}

/**
 * pp_data_fin - exchange the last messages with the peer
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

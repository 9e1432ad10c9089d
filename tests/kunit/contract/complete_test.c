// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contract 2 (each accepted operation completes exactly once, whatever
 * happens) and 3 (where and when callbacks run). The books of the pair hold
 * most of it: see ct_check_books().
 */

#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "contract.h"

#define LEN	512
#define FULL_MS	TEST_LIMIT(1000)	/* what takes longer does not fit in the socket */

/* --------------------------------------------------- 2: ways to complete */

/* On a device, a message that is too long is the end of the connection. */
static void complete_too_long(struct ct_pair *p)
{
	struct ct_op *r = ct_op(p), *r2 = ct_op(p), *s = ct_op(p);
	u8 *out = ct_buf(p, LEN), *in = ct_buf(p, LEN);
	struct kunit *test = p->test;

	KUNIT_ASSERT_EQ(test, ct_recv(p, 1, r, in, 100), 0);
	KUNIT_ASSERT_EQ(test, ct_recv(p, 1, r2, in + 200, 100), 0);
	KUNIT_ASSERT_EQ(test, ct_send(p, 0, s, out, LEN), 0);
	KUNIT_ASSERT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, r->wc.err, FI_ETRUNC);
	KUNIT_EXPECT_EQ(test, r2->wc.err, ECANCELED);
	/*
	 * iWARP's transmit ends before anybody has looked at the message; others
	 * are told what was wrong with it, if that comes before the end does.
	 */
	if (p->info->ep_attr->protocol != FI_PROTO_IWARP)
		KUNIT_EXPECT_TRUE(test, s->wc.err == EREMOTEIO ||
				  s->wc.err == ECANCELED);
	ct_expect_ended(p);
	KUNIT_EXPECT_NULL(test, memchr_inv(in + 100, 0, LEN - 100));
	ct_pair_close(p);
}

static void complete_truncated(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, ct_mode_of(test));
	struct ct_op *r = ct_op(p), *r2 = ct_op(p);
	struct ct_op *s = ct_op(p), *s2 = ct_op(p);
	u8 *out = ct_buf(p, LEN), *in = ct_buf(p, LEN);

	if (!ct_streams(p)) {
		complete_too_long(p);
		return;
	}
	ct_pattern(out, LEN, 1);
	KUNIT_ASSERT_EQ(test, ct_recv(p, 1, r, in, 100), 0);
	KUNIT_ASSERT_EQ(test, ct_recv(p, 1, r2, in + 200, 100), 0);
	KUNIT_ASSERT_EQ(test, ct_send(p, 0, s, out, LEN), 0);
	KUNIT_ASSERT_EQ(test, ct_send(p, 0, s2, out, 100), 0);
	KUNIT_ASSERT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, s->wc.err, 0);
	KUNIT_EXPECT_EQ(test, r->wc.err, FI_ETRUNC);
	KUNIT_EXPECT_EQ(test, r->wc.olen, LEN - 100);
	KUNIT_EXPECT_EQ(test, r->wc.len, 100);
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(in, 100, 1));
	KUNIT_EXPECT_NULL(test, memchr_inv(in + 100, 0, 100));
	/* the connection goes on */
	KUNIT_EXPECT_EQ(test, r2->wc.err, 0);
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(in + 200, 100, 1));
	ct_pair_close(p);
}

static void complete_cancelled(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, ct_mode_of(test));
	u8 *out = ct_buf(p, LEN), *in = ct_buf(p, 3 * LEN);
	struct ct_op *r[3], *s = ct_op(p);
	int i;

	if (!ct_cancels(p))
		kunit_skip(test, "receives cannot be withdrawn");
	for (i = 0; i < 3; i++) {
		r[i] = ct_op(p);
		KUNIT_ASSERT_EQ(test, ct_recv(p, 1, r[i], in + i * LEN, LEN), 0);
	}
	/* The middle one goes; the message finds the first. */
	KUNIT_EXPECT_EQ(test, fi_cancel(&p->side[1].ep->fid, r[1]), 0);
	KUNIT_ASSERT_TRUE(test, ct_wait_done(p, r[1]));
	KUNIT_EXPECT_EQ(test, r[1]->wc.err, ECANCELED);
	KUNIT_EXPECT_FALSE(test, ct_is_done(r[0]));
	KUNIT_ASSERT_EQ(test, ct_send(p, 0, s, out, LEN), 0);
	KUNIT_ASSERT_TRUE(test, ct_wait_done(p, r[0]));
	KUNIT_ASSERT_TRUE(test, ct_wait_done(p, s));
	KUNIT_EXPECT_EQ(test, r[0]->wc.err, 0);
	/* What has completed cannot be cancelled, and is not reported again. */
	fi_cancel(&p->side[1].ep->fid, r[0]);
	fi_cancel(&p->side[1].ep->fid, r[1]);
	fi_cancel(&p->side[1].ep->fid, p);
	KUNIT_EXPECT_EQ(test, fi_cancel(&p->side[1].ep->fid, r[2]), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, r[2]->wc.err, ECANCELED);
	ct_pair_close(p);
}

/* How the operations under way come to their end */
enum end { END_PEER_CLOSES, END_PEER_SHUTDOWN, END_SHUTDOWN, END_DRAIN,
	   END_ABORT, END_CLOSE };

struct end_param {
	const char	*name;
	enum end	end;
};

static const struct end_param end_params[] = {
	{ "the peer closes", END_PEER_CLOSES },
	{ "the peer shuts down", END_PEER_SHUTDOWN },
	{ "shutdown", END_SHUTDOWN },
	{ "drain", END_DRAIN },
	{ "abort", END_ABORT },
	{ "close", END_CLOSE },
};

KUNIT_ARRAY_PARAM_DESC(end, end_params, name);

#define STALL_LEN	65536

/* Post until refused; no receive is posted, so the last ones cannot go out. */
static void end_stall(struct ct_pair *p, int side, const u8 *buf)
{
	struct kunit *test = p->test;
	ssize_t ret;
	int i;

	for (i = 0; i < 1000; i++) {
		ret = ct_send(p, side, ct_op(p), buf, STALL_LEN);
		if (ret == -EAGAIN)
			return;
		KUNIT_ASSERT_EQ(test, ret, 0);
		if (i % 16 == 15)	/* let the work item fill the socket */
			ct_wait(p, false, 20);
	}
	KUNIT_FAIL(test, "no -EAGAIN after %d sends to a stalled peer", i);
}

static void complete_flushed(struct kunit *test)
{
	const struct end_param *param = test->param_value;
	enum ct_mode mode;

	for (mode = 0; mode < CT_MODES; mode++) {
		const struct ct_opts opts = {
			.mode = mode, .tx_size = 8, .locked = true,
		};
		struct ct_pair *p = ct_pair_open(test, &opts);
		u8 *out = ct_buf(p, STALL_LEN), *in = ct_buf(p, 8 * LEN);
		struct ct_op *r[8];
		int i;

		ct_need_stalls(p);
		if (param->end < END_DRAIN)
			ct_connected_init(test);
		for (i = 0; i < 8; i++) {
			r[i] = ct_op(p);
			KUNIT_ASSERT_EQ(test, ct_recv(p, 0, r[i], in + i * LEN,
						      LEN), 0);
		}
		end_stall(p, 0, out);
		switch (param->end) {
		case END_PEER_CLOSES:
			KUNIT_EXPECT_EQ(test, ct_ep_close(p, 1), 0);
			break;
		case END_PEER_SHUTDOWN:
			KUNIT_EXPECT_EQ(test, fi_shutdown(p->side[1].ep, 0), 0);
			break;
		case END_SHUTDOWN:
			KUNIT_EXPECT_EQ(test, fi_shutdown(p->side[0].ep, 0), 0);
			break;
		case END_DRAIN:
		case END_ABORT:
			if (param->end == END_ABORT)
				ct_ep_abort(p, 0);
			else
				ct_ep_drain(p, 0);
			/* all of it, on return */
			ct_progress(p);
			KUNIT_EXPECT_TRUE(test, ct_all_done(p));
			KUNIT_EXPECT_EQ(test,
					ct_recv(p, 0, ct_op(p), in, LEN),
					-ESHUTDOWN);
			KUNIT_EXPECT_EQ(test,
					ct_send(p, 0, ct_op(p), out, LEN),
					-ESHUTDOWN);
			break;
		case END_CLOSE:
			KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
			/* entries to be read survive the endpoint */
			ct_progress(p);
			KUNIT_EXPECT_TRUE(test, ct_all_done(p));
			break;
		}
		KUNIT_EXPECT_TRUE_MSG(test, ct_wait_all(p), "mode %d", mode);
		for (i = 0; i < 8; i++)
			KUNIT_EXPECT_EQ(test, r[i]->wc.err, ECANCELED);
		ct_pair_close(p);
	}
}

/*
 * Messages that the peer has no receive for wait in the sockets. A drain delivers
 * them; an abort, also one behind a drain, discards them.
 */
static void complete_aborted(struct kunit *test)
{
	static const char *const how[] = { "drain", "abort", "drain, abort" };
	int i, n;

	for (i = 0; i < ARRAY_SIZE(how); i++) {
		struct ct_pair *p = ct_pair_mode(test, CT_READ);
		u8 *out = ct_buf(p, LEN), *in = ct_buf(p, LEN);
		int got = 0;
		ssize_t ret;

		if (strcmp(ct_provider, "sock"))
			kunit_skip(test, "no socket buffers to see");
		ct_connected_init(test);
		for (n = 0; n < 3; n++)
			KUNIT_ASSERT_EQ(test, ct_send(p, 0, ct_op(p), out, LEN), 0);
		KUNIT_ASSERT_EQ(test, ct_inject(p, 0, out, 32), 0);
		KUNIT_ASSERT_TRUE(test, ct_wait_all(p));
		if (i != 1)
			ct_ep_drain(p, 0);
		if (i)
			ct_ep_abort(p, 0);
		if (i)
			ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
		for (n = 0; n < 4; n++) {
			struct ct_op *r = ct_op(p);

			ret = ct_recv(p, 1, r, in, LEN);
			if (ret) {
				KUNIT_EXPECT_EQ(test, ret, -ESHUTDOWN);
				continue;
			}
			KUNIT_EXPECT_TRUE(test, ct_wait_done(p, r));
			got += !r->wc.err;
		}
		KUNIT_EXPECT_EQ_MSG(test, got, i ? 0 : 4, "%s", how[i]);
		ct_pair_close(p);
	}
}

#define UNSENT_N	600	/* more than the peer holds without receives */
#define UNSENT_MS	TEST_LIMIT(300)	/* a message that is still sent arrives earlier */

static bool unsent_post(struct ct_pair *p, struct ct_op *op, u32 *number, ssize_t *ret)
{
	*ret = ct_send(p, 0, op, number, LEN);
	return *ret != -EAGAIN;
}

/*
 * Send to a peer without receives until no more is accepted, the number of the message in
 * front. Return the number of messages.
 */
static int unsent_send(struct ct_pair *p, struct ct_op **s, u8 *out)
{
	ssize_t ret = 0;
	int n;

	for (n = 0; n < UNSENT_N; n++) {
		u32 *number = (u32 *)(out + n * LEN);

		s[n] = ct_op(p);
		*number = n;
		if (!ct_wait(p, unsent_post(p, s[n], number, &ret), FULL_MS))
			break;
		KUNIT_ASSERT_EQ(p->test, ret, 0);
	}
	return n;
}

/*
 * Take all messages that still arrive at the peer. Return their number; none may be a
 * message whose send failed, unless @any.
 */
static int unsent_take(struct ct_pair *p, struct ct_op **s, int sent, int expected,
		       bool any)
{
	struct kunit *test = p->test;
	u8 *in = ct_buf(p, LEN);
	struct ct_op *r;
	int got = 0;

	for (;;) {
		u32 *number = (u32 *)in;
		ssize_t ret;

		r = ct_op(p);
		ret = ct_recv(p, 1, r, in, LEN);
		if (ret) {
			KUNIT_EXPECT_EQ(test, ret, -ESHUTDOWN);
			return got;
		}
		if (!ct_wait(p, ct_is_done(r), got < expected ? CT_TIMEOUT_MS :
							UNSENT_MS) || r->wc.err)
			return got;
		KUNIT_ASSERT_LT(test, *number, sent);
		if (!any)
			KUNIT_EXPECT_EQ_MSG(test, s[*number]->wc.err, 0, "message %u",
					    *number);
		got++;
	}
}

/*
 * A peer without receives stops the flow, in TCP or in the endpoint. After an abort it gets
 * none of the messages that wait there; after a drain it gets those that TCP has accepted.
 */
static void complete_unsent(struct kunit *test)
{
	int i, n, sent, done, got;
	struct ct_op **s;
	struct ct_pair *p;
	u8 *out;

	for (i = 0; i < 2; i++) {
		const struct ct_opts opts = { .mode = CT_READ, .tx_size = 8 };

		p = ct_pair_open(test, &opts);
		/* the device of the tests, and siw */
		if (p->info->ep_attr->protocol == FI_PROTO_IWARP ||
		    !strcmp(ct_device, "dma"))
			kunit_skip(test, "a message without a receive ends the connection");
		if (!strcmp(ct_provider, "loop"))
			kunit_skip(test, "nothing waits outside the peer's endpoint");
		if (p->info->ep_attr->type == FI_EP_DGRAM)
			kunit_skip(test, "a message without a receive is lost");
		out = ct_buf(p, UNSENT_N * LEN);
		s = ct_buf(p, UNSENT_N * sizeof(*s));
		sent = unsent_send(p, s, out);
		if (i)
			ct_ep_abort(p, 0);
		else
			ct_ep_drain(p, 0);
		ct_progress(p);
		for (n = 0, done = 0; n < sent; n++)
			done += !s[n]->wc.err;
		got = unsent_take(p, s, sent, i || ct_on_device(p) ? 0 : done, !i);
		kunit_info(test, "%s: %d messages, %d completed, %d arrived\n",
			   i ? "abort" : "drain", sent, done, got);
		if (ct_on_device(p))
			/* what has completed has arrived */
			KUNIT_EXPECT_LT(test, done, sent);
		else if (i)
			KUNIT_EXPECT_LT(test, got, done);
		else
			KUNIT_EXPECT_GE(test, got, done);
		ct_pair_close(p);
	}
}

/* Both ends come down at the same time, with work both ways. */
static void complete_close_both(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, ct_mode_of(test));
	u8 *buf = ct_buf(p, 64 * LEN);
	int i;

	for (i = 0; i < 32; i++) {
		KUNIT_ASSERT_EQ(test, ct_recv(p, 0, ct_op(p), buf + i * LEN,
					      LEN), 0);
		KUNIT_ASSERT_EQ(test, ct_recv(p, 1, ct_op(p),
					      buf + (32 + i) * LEN, LEN), 0);
	}
	for (i = 0; i < 16; i++) {
		KUNIT_ASSERT_EQ(test, ct_send(p, i & 1, ct_op(p), buf, LEN), 0);
		ct_inject(p, i & 1, buf, 16);
	}
	ct_pair_close(p);
}

/* ------------------------------------------------------------- 2: inject */

static void complete_inject_failure(struct kunit *test)
{
	const struct ct_opts opts = { .mode = ct_mode_of(test), .tx_size = 64 };
	struct ct_pair *p = ct_pair_open(test, &opts);
	u8 *out = ct_buf(p, STALL_LEN);
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	int injected = 0, i;
	ssize_t ret;

	ct_need_stalls(p);
	/* Fill the socket, keep room for operations, and inject behind it. */
	for (i = 0; i < 1000; i++) {
		struct ct_op *s = ct_op(p);

		ret = ct_send(p, 0, s, out, STALL_LEN);
		KUNIT_ASSERT_EQ(test, ret, 0);
		if (!ct_wait(p, ct_is_done(s), FULL_MS))
			break;
	}
	for (i = 0; i < 4; i++) {
		ret = ct_inject(p, 0, out, 32);
		KUNIT_EXPECT_EQ(test, ret, 0);
		injected += !ret;
	}
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 1), 0);
	ct_connected_init(test);
	KUNIT_EXPECT_EQ(test, ct_next_event(p->side[0].eq, ev, CT_TIMEOUT_MS), 0);
	KUNIT_EXPECT_EQ(test, ev->event, FI_SHUTDOWN);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	/* Read mode: an entry without context. Otherwise only a count. */
	if (p->opts.mode == CT_READ)
		KUNIT_EXPECT_TRUE(test, ct_wait(p, atomic_read(&p->anonymous) ==
						injected, CT_TIMEOUT_MS));
	else
		KUNIT_EXPECT_EQ(test, atomic_read(&p->anonymous), 0);
	ct_pair_close(p);
}

static void complete_inject_errors_counted(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = CT_SOFTIRQ, .tx_size = 64, .unconnected = true,
	};
	struct ct_pair *p = ct_pair_open(test, &opts);
	u8 *out = ct_buf(p, STALL_LEN);
	struct fi_cntr_attr attr = {};
	struct fid_cntr *cntr;
	int i, sent = 0;

	ct_need_stalls(p);
	KUNIT_ASSERT_EQ(test, fi_cntr_open(p->domain, &attr, &cntr, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(p->side[0].ep, &cntr->fid, FI_SEND), 0);
	KUNIT_EXPECT_EQ(test, ct_pair_connect(p), 0);
	for (i = 0; i < 1000; i++) {
		struct ct_op *s = ct_op(p);

		KUNIT_EXPECT_EQ(test, ct_send(p, 0, s, out, STALL_LEN), 0);
		sent++;
		if (!ct_wait(p, ct_is_done(s), FULL_MS))
			break;
	}
	for (i = 0; i < 4; i++, sent++)
		KUNIT_EXPECT_EQ(test, ct_inject(p, 0, out, 32), 0);
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 1), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	/* Each one counts once, as a success or as an error. */
	KUNIT_EXPECT_TRUE(test, ct_wait(p, fi_cntr_read(cntr) +
					fi_cntr_readerr(cntr) == sent,
					CT_TIMEOUT_MS));
	KUNIT_EXPECT_GE(test, fi_cntr_readerr(cntr), 4);
	KUNIT_EXPECT_EQ(test, fi_close(&cntr->fid), -EBUSY);
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&cntr->fid), 0);
	ct_pair_close(p);
}

/* Counters count although the queue is not polled. */
static void complete_counted_direct(struct kunit *test)
{
	const struct ct_opts opts = { .mode = CT_DIRECT, .unconnected = true };
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct ct_pair *p = ct_pair_open(test, &opts);
	u8 *buf = ct_buf(p, 64);
	struct fid_cntr *cntr;
	int i;

	KUNIT_ASSERT_EQ(test, fi_cntr_open(p->domain, &attr, &cntr, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(p->side[0].ep, &cntr->fid,
					 FI_SEND | FI_RECV), 0);
	KUNIT_ASSERT_EQ(test, ct_pair_connect(p), 0);
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, ct_recv(p, 1, ct_op(p), buf, 32), 0);
		KUNIT_EXPECT_EQ(test, ct_recv(p, 0, ct_op(p), buf, 32), 0);
	}
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, ct_send(p, 0, ct_op(p), buf, 32), 0);
		KUNIT_EXPECT_EQ(test, ct_send(p, 1, ct_op(p), buf, 32), 0);
	}
	KUNIT_EXPECT_EQ(test, fi_cntr_wait(cntr, 8, CT_TIMEOUT_MS), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&cntr->fid), 0);
	ct_pair_close(p);
}

/* ------------------------------------------------- 2: selective completion */

static void complete_selective(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = ct_mode_of(test), .selective = true,
	};
	struct ct_pair *p = ct_pair_open(test, &opts);
	u8 *out = ct_buf(p, LEN), *in = ct_buf(p, 4 * LEN);
	struct kvec iov = { .iov_base = out, .iov_len = LEN };
	struct ct_op *r[4], *s[4];
	struct fi_msg msg;
	int i;

	for (i = 0; i < 4; i++) {
		struct kvec rv = { .iov_base = in + i * LEN,
				   .iov_len = i == 3 ? LEN / 2 : LEN };

		r[i] = ct_op(p);
		s[i] = ct_op(p);
		r[i]->silent = i & 1;
		s[i]->silent = !(i & 1);
		msg = (struct fi_msg){ .msg_iov = &rv, .iov_count = 1 };
		KUNIT_ASSERT_EQ(test,
				ct_post_recv(p, 1, r[i], &msg,
					     r[i]->silent ? 0 : FI_COMPLETION),
				0);
	}
	for (i = 0; i < 4; i++) {
		msg = (struct fi_msg){ .msg_iov = &iov, .iov_count = 1 };
		KUNIT_ASSERT_EQ(test,
				ct_post_send(p, 0, s[i], &msg,
					     s[i]->silent ? 0 : FI_COMPLETION),
				0);
	}
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	/* An error is reported, also where success would not have been. */
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, r[3]));
	KUNIT_EXPECT_EQ(test, r[3]->wc.err, FI_ETRUNC);
	KUNIT_EXPECT_EQ(test, atomic_read(&r[1]->done), 0);
	/* on a device, its acknowledgment may have come after the end */
	if (ct_streams(p))
		KUNIT_EXPECT_EQ(test, atomic_read(&s[0]->done), 0);
	ct_pair_close(p);
}

/* ------------------------------------------------------------ 3: callbacks */

/*
 * A ball is thrown to and fro by done() itself, under a lock that it shares
 * with the posts of two threads: what a consumer does. A callback from inside
 * a post would deadlock on that lock.
 */
struct ball {
	struct ct_pair	*p;
	struct ct_op	*recv[2];
	struct ct_op	*send[2];
	u8		*buf;
	atomic_t	left;
	atomic_t	refused;
};

static void ball_received(struct ct_op *op)
{
	struct ball *b = op->buf;
	int side = op->side;

	/* an entry may be read when the endpoint is gone */
	if (op->wc.err || !b->p->side[side].ep ||
	    atomic_dec_return(&b->left) < 0)
		return;
	if ((op == b->recv[side] && ct_recv(b->p, side, op, b->buf, LEN)) ||
	    ct_send(b->p, side, b->send[side], b->buf, LEN))
		atomic_inc(&b->refused);
}

static int ball_poster(void *arg)
{
	struct ball *b = arg;
	int i;

	for (i = 0; i < 50 && !kthread_should_stop(); i++) {
		struct ct_op *op = ct_op(b->p);

		/* the ball may find this receive before it is cancelled */
		op->buf = b;
		op->hook = ball_received;
		if (!ct_recv(b->p, i & 1, op, b->buf, LEN))
			fi_cancel(&b->p->side[i & 1].ep->fid, op);
		usleep_range(100, 200);
	}
	return 0;
}

static void callbacks_post(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = ct_mode_of(test), .locked = true,
	};
	struct ct_pair *p = ct_pair_open(test, &opts);
	struct ball *b = ct_buf(p, sizeof(*b));
	struct task_struct *poster;
	int i;

	b->p = p;
	b->buf = ct_buf(p, LEN);
	atomic_set(&b->left, 500);
	for (i = 0; i < 2; i++) {
		b->recv[i] = ct_op(p);
		b->recv[i]->buf = b;
		b->recv[i]->hook = ball_received;
		b->send[i] = ct_op(p);
		KUNIT_ASSERT_EQ(test, ct_recv(p, i, b->recv[i], b->buf, LEN), 0);
	}
	KUNIT_ASSERT_EQ(test, ct_send(p, 0, b->send[0], b->buf, LEN), 0);
	poster = kthread_create(ball_poster, b, "kofi-ct-poster");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, poster);
	get_task_struct(poster);
	wake_up_process(poster);
	KUNIT_EXPECT_TRUE(test, ct_wait(p, atomic_read(&b->left) <= 0,
					2 * CT_TIMEOUT_MS));
	kthread_stop_put(poster);
	KUNIT_EXPECT_EQ(test, atomic_read(&b->refused), 0);
	ct_pair_close(p);
}

/* Close while callbacks post: afterwards none runs, and none was lost. */
static void callbacks_end_with_close(struct kunit *test)
{
	int round;

	for (round = 0; round < 10; round++) {
		const struct ct_opts opts = { .mode = ct_mode_of(test) };
		struct ct_pair *p = ct_pair_open(test, &opts);
		struct ball *b = ct_buf(p, sizeof(*b));
		int i, side = round & 1;

		b->p = p;
		b->buf = ct_buf(p, LEN);
		/*
		 * For as long as it takes; but one that flies in softirqs alone
		 * keeps siw's thread, and a processor, to itself.
		 */
		atomic_set(&b->left, ct_on_device(p) ? 5000 : INT_MAX);
		for (i = 0; i < 2; i++) {
			b->recv[i] = ct_op(p);
			b->recv[i]->buf = b;
			b->recv[i]->hook = ball_received;
			b->send[i] = ct_op(p);
			KUNIT_ASSERT_EQ(test, ct_recv(p, i, b->recv[i], b->buf,
						      LEN), 0);
		}
		KUNIT_ASSERT_EQ(test, ct_send(p, 0, b->send[0], b->buf, LEN), 0);
		ct_wait(p, false, round);
		ct_ep_drain(p, side);
		/* a drained endpoint is closed like any other */
		ct_pair_close(p);
	}
}

/* -------------------------------------------------- completions are read */

struct reader {
	struct ct_pair	*p;
	struct fid_cq	*cq;
	atomic_t	*seen;
	atomic_t	*unknown;
	int		got;
	int		err;
	bool		sleeps;
};

#define READ_N	400

static int reader_thread(void *arg)
{
	struct reader *r = arg;

	while (!kthread_should_stop()) {
		struct fi_cq_tagged_entry e[3];
		ssize_t n, i;

		if (r->sleeps)
			n = fi_cq_sread(r->cq, e, ARRAY_SIZE(e), NULL, 20);
		else
			n = fi_cq_read(r->cq, e, ARRAY_SIZE(e));
		if (n <= 0) {
			if (n != -EAGAIN)
				r->err = n;
			schedule_timeout_interruptible(1);
			continue;
		}
		for (i = 0; i < n; i++) {
			struct ct_op *op = e[i].op_context;
			unsigned long nr = op - r->p->ops;

			if (nr < READ_N)
				atomic_inc(&r->seen[nr]);
			else
				atomic_inc(r->unknown);
			r->got++;
		}
	}
	return 0;
}

/**
 * struct read_run - messages whose completions threads read
 * @p: the pair
 * @r: receives
 * @buf: of all of them
 * @seen: completions of each
 * @posted: receives
 * @sent: messages
 * @err: of the last post
 */
struct read_run {
	struct ct_pair	*p;
	struct ct_op	**r;
	u8		*buf;
	atomic_t	*seen;
	int		posted;
	int		sent;
	ssize_t		err;
};

/* What can be posted now. Returns whether all has been sent */
static bool read_post(struct read_run *run)
{
	int before;

	do {
		before = run->posted + run->sent;
		if (run->posted < READ_N && run->posted < run->sent + 64) {
			run->err = ct_recv(run->p, 1, run->r[run->posted],
					   run->buf, LEN);
			run->posted += !run->err;
		}
		if (run->sent < run->posted) {
			run->err = ct_inject(run->p, 0, run->buf, 64);
			run->sent += !run->err;
		}
	} while (run->posted + run->sent != before);
	return run->sent == READ_N;
}

static bool read_all(const struct read_run *run)
{
	int i;

	for (i = 0; i < READ_N && atomic_read(&run->seen[i]); i++)
		;
	return i == READ_N;
}

/* Several threads read one queue: each entry goes to exactly one of them. */
static void read_by_several(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, CT_READ);
	struct task_struct *threads[4];
	struct reader readers[4];
	struct read_run run = {
		.p = p, .buf = ct_buf(p, LEN),
		.r = ct_buf(p, READ_N * sizeof(*run.r)),
		.seen = ct_buf(p, READ_N * sizeof(*run.seen)),
	};
	atomic_t unknown = ATOMIC_INIT(0);
	struct fid_cq *rx = p->side[1].rx.cq;
	int i, total = 0;

	for (i = 0; i < READ_N; i++)
		run.r[i] = ct_op(p);
	for (i = 0; i < 4; i++) {
		readers[i] = (struct reader){
			.p = p, .cq = rx, .seen = run.seen,
			.unknown = &unknown, .sleeps = i & 1,
		};
		threads[i] = kthread_run(reader_thread, &readers[i],
					 "kofi-ct-reader%d", i);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, threads[i]);
	}
	/* this test's own reading leaves that queue to the threads */
	p->side[1].rx.cq = NULL;
	KUNIT_EXPECT_TRUE_MSG(test, ct_wait(p, read_post(&run), CT_TIMEOUT_MS),
			      "%d posted, %d sent, error %zd", run.posted,
			      run.sent, run.err);
	KUNIT_EXPECT_TRUE(test, ct_wait(p, read_all(&run), CT_TIMEOUT_MS));
	for (i = 0; i < 4; i++) {
		kthread_stop(threads[i]);
		KUNIT_EXPECT_EQ(test, readers[i].err, 0);
		total += readers[i].got;
	}
	KUNIT_EXPECT_EQ(test, total, READ_N);
	KUNIT_EXPECT_EQ(test, atomic_read(&unknown), 0);
	for (i = 0; i < READ_N; i++) {
		KUNIT_EXPECT_EQ_MSG(test, atomic_read(&run.seen[i]), 1,
				    "entry %d", i);
		atomic_set(&run.r[i]->done, 1);
	}
	p->side[1].rx.cq = rx;
	ct_pair_close(p);
}

static struct kunit_case contract_complete_cases[] = {
	KUNIT_CASE_PARAM(complete_truncated, ct_mode_gen_params),
	KUNIT_CASE_PARAM(complete_cancelled, ct_mode_gen_params),
	KUNIT_CASE_PARAM(complete_flushed, end_gen_params),
	KUNIT_CASE(complete_aborted),
	KUNIT_CASE(complete_unsent),
	KUNIT_CASE_PARAM(complete_close_both, ct_mode_gen_params),
	KUNIT_CASE_PARAM(complete_inject_failure, ct_mode_gen_params),
	KUNIT_CASE(complete_inject_errors_counted),
	KUNIT_CASE(complete_counted_direct),
	KUNIT_CASE_PARAM(complete_selective, ct_mode_gen_params),
	KUNIT_CASE_PARAM(callbacks_post, ct_mode_gen_params),
	KUNIT_CASE_PARAM(callbacks_end_with_close, ct_mode_gen_params),
	KUNIT_CASE(read_by_several),
	{}
};

static struct kunit_suite contract_complete_suite = {
	.name = "contract_complete",
	.suite_init = lo_suite_init,
	.test_cases = contract_complete_cases,
	.attr.speed = KUNIT_SPEED_SLOW,
};

kunit_test_suite(contract_complete_suite);

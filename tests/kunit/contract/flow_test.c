// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contract 4 (-EAGAIN is followed by a wake-up), 5 (progress is automatic) and
 * 10 (queues do not overrun, a stalled receiver loses nothing).
 */

#include <linux/slab.h>

#include "contract.h"

#define LEN	65536

/* ----------------------------- 4, 10: stalled, refused, awake, and complete */

/*
 * One side sends until refused and then only when told that there is room; the
 * other receives much later. All messages arrive, in order.
 */
struct stream {
	struct ct_pair	*p;
	u8		*out;
	int		total;
	atomic_t	sent;
	atomic_t	refused;
	atomic_t	broken;
	atomic_t	busy;
};

/* One poster at a time; who comes meanwhile makes it look once more. */
static void stream_push(struct stream *st)
{
	struct ct_pair *p = st->p;

	if (atomic_inc_return(&st->busy) > 1)
		return;
	do {
		int nr;

		atomic_set(&st->busy, 1);
		while ((nr = atomic_read(&st->sent)) < st->total) {
			struct ct_op *op = &p->ops[nr];
			ssize_t ret = ct_send(p, 0, op,
					      st->out + nr % 16 * LEN, LEN);

			if (ret) {
				atomic_inc(ret == -EAGAIN ? &st->refused :
					   &st->broken);
				break;
			}
			atomic_inc(&st->sent);
		}
	} while (!atomic_dec_and_test(&st->busy));
}

static void stream_space(struct ct_pair *p, int side)
{
	if (!side)
		stream_push(p->priv);
}

static void flow_stalled_receiver(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = ct_mode_of(test), .tx_size = 16, .write_space = true,
	};
	struct ct_pair *p = ct_pair_open(test, &opts);
	struct stream *st = ct_buf(p, sizeof(*st));
	enum { TOTAL = 400 };
	u8 *in = ct_buf(p, LEN);
	int i, at_stall;

	ct_need_stalls(p);
	st->p = p;
	st->total = TOTAL;
	st->out = ct_buf(p, 16 * LEN);
	p->priv = st;
	p->on_space = stream_space;
	for (i = 0; i < 16; i++)
		ct_pattern(st->out + i * LEN, LEN, i);
	for (i = 0; i < TOTAL; i++)
		ct_op(p);
	stream_push(st);
	KUNIT_ASSERT_EQ(test, atomic_read(&st->broken), 0);
	KUNIT_ASSERT_GT(test, atomic_read(&st->refused), 0);
	/* No receive is posted: it comes to a stand-still before the end. */
	do {
		at_stall = atomic_read(&st->sent);
		ct_wait(p, false, 200);
	} while (atomic_read(&st->sent) != at_stall);
	KUNIT_ASSERT_LT(test, at_stall, TOTAL);
	/* Then each receive makes room, and the sender is told. */
	for (i = 0; i < TOTAL; i++) {
		struct ct_op *r = ct_op(p);

		KUNIT_ASSERT_EQ(test, ct_recv(p, 1, r, in, LEN), 0);
		KUNIT_ASSERT_TRUE_MSG(test, ct_wait_done(p, r),
				      "message %d, %d sent, %d refused, %d wake-ups",
				      i, atomic_read(&st->sent),
				      atomic_read(&st->refused),
				      atomic_read(&p->side[0].space));
		KUNIT_EXPECT_EQ(test, r->wc.len, LEN);
		if (!ct_pattern_ok(in, LEN, i % 16)) {
			KUNIT_FAIL(test, "content of message %d", i);
			break;
		}
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&st->broken), 0);
	/* the last one may arrive before its post has returned elsewhere */
	KUNIT_EXPECT_TRUE(test, ct_wait(p, atomic_read(&st->sent) == TOTAL,
					CT_TIMEOUT_MS));
	KUNIT_EXPECT_GT(test, atomic_read(&p->side[0].space), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	ct_pair_close(p);
}

/* The same for receives: as many as the endpoint holds, then -EAGAIN. */
static void flow_receives_refused(struct kunit *test)
{
	const struct ct_opts opts = { .mode = ct_mode_of(test), .rx_size = 16 };
	struct ct_pair *p = ct_pair_open(test, &opts);
	u8 *buf = ct_buf(p, 64);
	struct ct_op *last;
	int posted = 0, i;
	ssize_t ret;

	for (;;) {
		struct ct_op *op = ct_op(p);

		ret = ct_recv(p, 1, op, buf, 64);
		if (ret || posted > 1000)
			break;
		posted++;
	}
	KUNIT_EXPECT_EQ(test, ret, -EAGAIN);
	KUNIT_ASSERT_GE(test, posted, 16);
	KUNIT_ASSERT_LE(test, posted, 1000);
	/* A completion is the wake-up, and there is room then. */
	for (i = 0; i < 40; i++) {
		KUNIT_ASSERT_EQ(test, ct_inject(p, 0, buf, 8), 0);
		KUNIT_ASSERT_TRUE(test, ct_wait(p, atomic_read(&p->seq) > i,
						CT_TIMEOUT_MS));
		last = ct_op(p);
		KUNIT_ASSERT_EQ(test, ct_recv(p, 1, last, buf, 64), 0);
	}
	if (ct_cancels(p))
		KUNIT_EXPECT_EQ(test, fi_cancel(&p->side[1].ep->fid, last), 0);
	ct_pair_close(p);
}

/* An inject that has arrived gives its slot back although nothing follows it. */
static void flow_injected_slot(struct kunit *test)
{
	enum { SLOTS = 8, INJECTS = 3 };
	const struct ct_opts opts = {
		.mode = ct_mode_of(test), .cq_size = SLOTS, .one_cq = true,
		.write_space = true,
	};
	struct ct_pair *p = ct_pair_open(test, &opts);
	u8 *buf = ct_buf(p, 64);
	int i;

	for (i = 0; i < INJECTS; i++) {
		struct ct_op *r = ct_op(p);

		KUNIT_ASSERT_EQ(test, ct_recv(p, 1, r, buf, 64), 0);
		KUNIT_ASSERT_EQ(test, ct_inject(p, 0, buf, 8), 0);
		KUNIT_ASSERT_TRUE(test, ct_wait_done(p, r));
	}
	for (i = 0; i < SLOTS; i++) {
		struct ct_op *r = ct_op(p);
		ssize_t ret;
		int seen;

		for (;;) {
			seen = atomic_read(&p->side[0].space);
			ret = ct_recv(p, 0, r, buf, 64);
			if (ret != -EAGAIN)
				break;
			KUNIT_ASSERT_TRUE_MSG(test,
					      ct_wait(p, atomic_read(&p->side[0].space) != seen,
						      CT_TIMEOUT_MS),
					      "receive %d", i);
		}
		KUNIT_ASSERT_EQ(test, ret, 0);
	}
	ct_pair_close(p);
}

/* --------------------------------------------------- 10: completion queues */

/*
 * The receiver's queue is smaller than what is posted and is not read for
 * a while: posts are refused, and what was accepted is all there.
 */
static void flow_small_queue(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = CT_READ, .cq_size = 8, .write_space = true,
	};
	struct ct_pair *p = ct_pair_open(test, &opts);
	u8 *out = ct_buf(p, 64), *in = ct_buf(p, 64);
	int accepted[2] = {}, i;
	ssize_t ret;

	ct_need_stalls(p);
	for (i = 0; i < 200; i++) {
		ret = ct_recv(p, 1, ct_op(p), in, 64);
		if (ret)
			break;
		accepted[1]++;
	}
	KUNIT_EXPECT_EQ(test, ret, -EAGAIN);
	KUNIT_EXPECT_LT(test, accepted[1], 200);
	KUNIT_EXPECT_GE(test, accepted[1], 8);
	for (i = 0; i < 200; i++) {
		ret = ct_send(p, 0, ct_op(p), out, 64);
		if (ret)
			break;
		accepted[0]++;
	}
	KUNIT_EXPECT_EQ(test, ret, -EAGAIN);
	KUNIT_EXPECT_LT(test, accepted[0], 200);
	KUNIT_EXPECT_GE(test, accepted[0], 8);
	/* Reading gives slots back, and the sender is told. */
	KUNIT_EXPECT_TRUE(test, ct_wait(p, atomic_read(&p->side[0].space) > 0,
					CT_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, ct_send(p, 0, ct_op(p), out, 64), 0);
	while (accepted[1] <= accepted[0]) {
		struct ct_op *op = ct_op(p);	/* one, however often it is refused */

		KUNIT_ASSERT_TRUE(test, ct_wait(p, !ct_recv(p, 1, op, in, 64),
						CT_TIMEOUT_MS));
		accepted[1]++;
	}
	KUNIT_EXPECT_TRUE(test, ct_wait(p, atomic_read(&p->seq) >=
					2 * (accepted[0] + 1), CT_TIMEOUT_MS));
	ct_pair_close(p);
}

/* ------------------------------------------------ 5: progress of its own */

static void flow_progress_unread(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, CT_READ);
	/* less than half of the transmits, as no connection need be there yet */
	enum { N = 120, SMALL = 4000 };
	u8 *out = ct_buf(p, SMALL), *in = ct_buf(p, N * SMALL);
	int i, arrived = 0;

	ct_pattern(out, SMALL, 5);
	out[SMALL - 1] = 0xff;
	for (i = 0; i < N; i++)
		KUNIT_ASSERT_EQ(test, ct_recv(p, 1, ct_op(p), in + i * SMALL,
					      SMALL), 0);
	for (i = 0; i < N; i++)
		KUNIT_ASSERT_EQ(test, ct_send(p, 0, ct_op(p), out, SMALL), 0);
	/* All of it arrives although no queue is read. */
	for (i = 0; i < CT_TIMEOUT_MS / 10 && arrived < N; i++) {
		while (arrived < N &&
		       READ_ONCE(in[(arrived + 1) * SMALL - 1]) == 0xff)
			arrived++;
		if (arrived < N)
			schedule_timeout_uninterruptible(msecs_to_jiffies(10));
	}
	KUNIT_EXPECT_EQ(test, arrived, N);
	KUNIT_EXPECT_EQ(test, atomic_read(&p->seq), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, atomic_read(&p->seq), 2 * N);
	ct_pair_close(p);
}

/* Both ways at once, each side sending more than the sockets hold. */
static void flow_both_ways(struct kunit *test)
{
	const struct ct_opts opts = { .mode = ct_mode_of(test) };
	struct ct_pair *p = ct_pair_open(test, &opts);
	enum { N = 6, BIG = 2 << 20 };
	u8 *out = ct_buf(p, BIG), *in[2];
	struct ct_op *r[2][N];
	int side, i;

	ct_need_stalls(p);
	ct_pattern(out, BIG, 3);
	for (side = 0; side < 2; side++)
		in[side] = ct_buf(p, BIG);
	/* no receive yet: both directions are full */
	for (i = 0; i < N; i++)
		for (side = 0; side < 2; side++)
			KUNIT_ASSERT_EQ(test, ct_send(p, side, ct_op(p), out,
						      BIG), 0);
	ct_wait(p, false, 50);
	for (i = 0; i < N; i++) {
		for (side = 0; side < 2; side++) {
			r[side][i] = ct_op(p);
			KUNIT_ASSERT_EQ(test, ct_recv(p, side, r[side][i],
						      in[side], BIG), 0);
		}
	}
	KUNIT_ASSERT_TRUE(test, ct_wait(p, ct_all_done(p), 3 * CT_TIMEOUT_MS));
	for (side = 0; side < 2; side++) {
		KUNIT_EXPECT_TRUE(test, ct_pattern_ok(in[side], BIG, 3));
		for (i = 0; i < N; i++)
			KUNIT_EXPECT_EQ(test, r[side][i]->wc.len, BIG);
	}
	ct_pair_close(p);
}

static struct kunit_case contract_flow_cases[] = {
	KUNIT_CASE_PARAM(flow_stalled_receiver, ct_mode_gen_params),
	KUNIT_CASE_PARAM(flow_receives_refused, ct_mode_gen_params),
	KUNIT_CASE_PARAM(flow_injected_slot, ct_mode_gen_params),
	KUNIT_CASE(flow_small_queue),
	KUNIT_CASE(flow_progress_unread),
	KUNIT_CASE_PARAM(flow_both_ways, ct_mode_gen_params),
	{}
};

static struct kunit_suite contract_flow_suite = {
	.name = "contract_flow",
	.suite_init = lo_suite_init,
	.test_cases = contract_flow_cases,
};

kunit_test_suite(contract_flow_suite);

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tagged messages between endpoints that do not connect: which receive a message
 * is given, messages that come before their receive, peek, claim and discard.
 */
#include <linux/kofi/fi_tagged.h>

#include "contract.h"

#define TAG_LEN		200
#define TAG_INJECT	64
#define TAG_DATA	0x1234567890abcdefULL

/* One tagged post, as ct_post_fn() makes it */
struct tag_post {
	struct fi_msg_tagged	msg;
	struct kvec		iov;
	u64			flags;
	bool			recv;
};

static ssize_t tag_post_fn(struct fid_ep *ep, void *context, void *arg)
{
	struct tag_post *post = arg;

	post->msg.context = context;
	return post->recv ? fi_trecvmsg(ep, &post->msg, post->flags) :
			    fi_tsendmsg(ep, &post->msg, post->flags);
}

static ssize_t tag_post(struct ct_pair *p, int side, struct ct_op *op,
			struct tag_post *post, void *buf, size_t len)
{
	post->iov = (struct kvec){ buf, len };
	post->msg.msg_iov = &post->iov;
	post->msg.iov_count = 1;
	return ct_post_fn(p, side, op, tag_post_fn, post);
}

static struct ct_pair *tag_pair(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = ct_mode_of(test), .caps = FI_MSG | FI_TAGGED,
	};

	return ct_pair_open(test, &opts);
}

/* Receive @len bytes of a message with that tag, but for the bits to ignore. */
static struct ct_op *tag_recv(struct ct_pair *p, u64 tag, u64 ignore,
			      size_t len)
{
	struct tag_post post = {
		.recv = true, .msg.tag = tag, .msg.ignore = ignore,
	};
	struct ct_op *op = ct_op(p);

	op->buf = ct_buf(p, len);
	KUNIT_EXPECT_EQ(p->test, 0,
			tag_post(p, 1, op, &post, op->buf, len));
	return op;
}

/* Send a message; what is in it follows from the seed. */
static struct ct_op *tag_send(struct ct_pair *p, u64 tag, u32 seed)
{
	struct tag_post post = { .msg.tag = tag };
	struct ct_op *op = ct_op(p);

	op->buf = ct_buf(p, TAG_LEN);
	ct_pattern(op->buf, TAG_LEN, seed);
	KUNIT_EXPECT_EQ(p->test, 0,
			tag_post(p, 0, op, &post, op->buf, TAG_LEN));
	return op;
}

static void tag_expect(struct ct_pair *p, struct ct_op *op, u64 tag, u32 seed)
{
	struct kunit *test = p->test;

	KUNIT_ASSERT_TRUE(test, ct_wait_done(p, op));
	KUNIT_EXPECT_EQ(test, op->wc.err, 0);
	KUNIT_EXPECT_EQ(test, op->wc.flags & (FI_RECV | FI_TAGGED | FI_MSG),
			FI_RECV | FI_TAGGED);
	KUNIT_EXPECT_EQ(test, op->wc.tag, tag);
	KUNIT_EXPECT_EQ(test, op->wc.len, TAG_LEN);
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(op->buf, TAG_LEN, seed));
}

/* The oldest receive that matches, exact or not, gets the message. */
static void tagged_match(struct kunit *test)
{
	struct ct_pair *p = tag_pair(test);
	struct ct_op *one, *any, *two, *wild;

	one = tag_recv(p, 1, 0, TAG_LEN);
	any = tag_recv(p, 0x10, 0xf, TAG_LEN);
	two = tag_recv(p, 1, 0, TAG_LEN);
	wild = tag_recv(p, 0, ~0ULL, TAG_LEN);
	tag_send(p, 0x13, 1);
	tag_send(p, 1, 2);
	tag_send(p, 1, 3);
	tag_send(p, 1, 4);
	tag_expect(p, any, 0x13, 1);
	tag_expect(p, one, 1, 2);
	tag_expect(p, two, 1, 3);
	tag_expect(p, wild, 1, 4);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	ct_pair_close(p);
}

/* The forms that carry remote data, and those without a completion of the sender */
static void tagged_forms(struct kunit *test)
{
	struct ct_pair *p = tag_pair(test);
	struct fid_ep *ep = p->side[0].ep;
	struct ct_op *recv[3];
	u8 *buf = ct_buf(p, TAG_INJECT);
	u64 tag;
	int i;

	ct_pattern(buf, TAG_INJECT, 1);
	for (i = 0; i < ARRAY_SIZE(recv); i++)
		recv[i] = tag_recv(p, i, 0, TAG_LEN);
	KUNIT_EXPECT_EQ(test, fi_tinject(ep, buf, TAG_INJECT, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_tinjectdata(ep, buf, TAG_INJECT, TAG_DATA, 0, 1), 0);
	KUNIT_EXPECT_EQ(test, fi_tinjectdata(ep, buf, 0, 7, 0, 2), 0);
	for (tag = 0; tag < ARRAY_SIZE(recv); tag++) {
		KUNIT_EXPECT_TRUE(test, ct_wait_done(p, recv[tag]));
		KUNIT_EXPECT_EQ(test, recv[tag]->wc.err, 0);
		KUNIT_EXPECT_EQ(test, recv[tag]->wc.tag, tag);
		KUNIT_EXPECT_EQ(test, !!(recv[tag]->wc.flags & FI_REMOTE_CQ_DATA), tag > 0);
	}
	KUNIT_EXPECT_EQ(test, recv[1]->wc.len, TAG_INJECT);
	KUNIT_EXPECT_EQ(test, recv[1]->wc.data, TAG_DATA);
	KUNIT_EXPECT_EQ(test, recv[2]->wc.len, 0);
	KUNIT_EXPECT_EQ(test, recv[2]->wc.data, 7);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	ct_pair_close(p);
}

/* What comes before its receive waits, and does not hold up what is behind it. */
static void tagged_unexpected(struct kunit *test)
{
	struct ct_pair *p = tag_pair(test);
	struct ct_op *op;
	u64 tag;

	for (tag = 5; tag < 9; tag++)
		tag_send(p, tag, tag);
	op = tag_recv(p, 8, 0, TAG_LEN);
	tag_expect(p, op, 8, 8);
	for (tag = 5; tag < 8; tag++) {
		op = tag_recv(p, tag, 0, TAG_LEN);
		tag_expect(p, op, tag, tag);
	}
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	ct_pair_close(p);
}

/* A message without a tag is for no tagged receive, and the other way round. */
static void tagged_beside(struct kunit *test)
{
	struct ct_pair *p = tag_pair(test);
	void *buf = ct_buf(p, TAG_LEN);
	struct ct_op *plain, *wild;

	wild = tag_recv(p, 0, ~0ULL, TAG_LEN);
	plain = ct_op(p);
	KUNIT_EXPECT_EQ(test, ct_recv(p, 1, plain, buf, TAG_LEN), 0);
	KUNIT_EXPECT_EQ(test, ct_inject(p, 0, "plain", 6), 0);
	tag_send(p, 77, 1);
	tag_expect(p, wild, 77, 1);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, plain));
	KUNIT_EXPECT_EQ(test, plain->wc.flags & (FI_TAGGED | FI_MSG), FI_MSG);
	KUNIT_EXPECT_EQ(test, plain->wc.len, 6);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	ct_pair_close(p);
}

/* One that is longer than its receive is cut; the next one is not. */
static void tagged_long(struct kunit *test)
{
	struct ct_pair *p = tag_pair(test);
	struct ct_op *cut, *whole;

	cut = tag_recv(p, 1, 0, 10);
	whole = tag_recv(p, 1, 0, TAG_LEN);
	tag_send(p, 1, 1);
	tag_send(p, 1, 2);
	tag_expect(p, whole, 1, 2);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, cut));
	KUNIT_EXPECT_EQ(test, cut->wc.err, FI_ETRUNC);
	KUNIT_EXPECT_EQ(test, cut->wc.len, 10);
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(cut->buf, 10, 1));
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	ct_pair_close(p);
}

/* A cancelled receive takes nothing; the message is the next one's. */
static void tagged_cancel(struct kunit *test)
{
	struct ct_pair *p = tag_pair(test);
	struct ct_op *gone, *next;

	gone = tag_recv(p, 1, 0, TAG_LEN);
	next = tag_recv(p, 1, 0, TAG_LEN);
	KUNIT_EXPECT_EQ(test, fi_cancel(&p->side[1].ep->fid, gone), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, gone));
	KUNIT_EXPECT_EQ(test, gone->wc.err, ECANCELED);
	tag_send(p, 1, 1);
	tag_expect(p, next, 1, 1);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	ct_pair_close(p);
}

/* Look for a message until it is there; it may be on its way. */
static struct ct_op *tag_peek(struct ct_pair *p, u64 tag, u64 flags)
{
	const unsigned long end = jiffies + msecs_to_jiffies(CT_TIMEOUT_MS);
	struct tag_post post = {
		.recv = true, .msg.tag = tag, .flags = FI_PEEK | flags,
	};
	struct ct_op *op;

	do {
		op = ct_op(p);
		KUNIT_ASSERT_EQ(p->test, 0,
				tag_post(p, 1, op, &post, NULL, 0));
		KUNIT_ASSERT_TRUE(p->test, ct_wait_done(p, op));
		if (op->wc.err == FI_ENOMSG)
			schedule_timeout_uninterruptible(1);
	} while (op->wc.err == FI_ENOMSG && time_before(jiffies, end));
	KUNIT_EXPECT_EQ(p->test, op->wc.err, 0);
	KUNIT_EXPECT_EQ(p->test, op->wc.tag, tag);
	KUNIT_EXPECT_EQ(p->test, op->wc.len, TAG_LEN);
	return op;
}

/* Peeking takes nothing; a claimed message is its claim's; discarded it is gone. */
static void tagged_peek(struct kunit *test)
{
	struct ct_pair *p = tag_pair(test);
	struct tag_post none = {
		.recv = true, .msg.tag = 4, .flags = FI_PEEK,
	}, claim = {
		.recv = true, .msg.tag = 1, .flags = FI_CLAIM,
	};
	struct ct_op *op = ct_op(p), *other;

	KUNIT_ASSERT_EQ(test, 0, tag_post(p, 1, op, &none, NULL, 0));
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, op));
	KUNIT_EXPECT_EQ(test, op->wc.err, FI_ENOMSG);

	tag_send(p, 1, 1);
	tag_send(p, 1, 2);
	tag_send(p, 2, 3);
	tag_send(p, 2, 4);
	tag_peek(p, 1, 0);
	op = tag_peek(p, 1, FI_CLAIM);
	other = tag_recv(p, 1, 0, TAG_LEN);
	tag_expect(p, other, 1, 2);
	op->buf = ct_buf(p, TAG_LEN);
	KUNIT_ASSERT_EQ(test, 0,
			tag_post(p, 1, op, &claim, op->buf, TAG_LEN));
	tag_expect(p, op, 1, 1);

	tag_peek(p, 2, FI_DISCARD);
	other = tag_recv(p, 2, 0, TAG_LEN);
	tag_expect(p, other, 2, 4);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	ct_pair_close(p);
}

#define TAG_PARTS	3

/* Parts of one buffer, and those that were not as they have to be */
static atomic_t tag_parts, tag_wrong;

static void tag_part(struct ct_op *op)
{
	bool last = atomic_inc_return(&tag_parts) == TAG_PARTS;
	const struct kofi_wc *wc = &op->wc;
	u64 i = wc->tag - 0x101;

	/* they lie in the order of the messages, in whatever order they complete */
	if (wc->err || i >= TAG_PARTS || wc->len != TAG_LEN ||
	    wc->buf != op->buf + i * TAG_LEN ||
	    !ct_pattern_ok(wc->buf, TAG_LEN, wc->tag) ||
	    (wc->flags & (FI_RECV | FI_TAGGED | FI_MSG)) !=
	    (FI_RECV | FI_TAGGED) ||
	    !(wc->flags & FI_MULTI_RECV) == last)
		atomic_inc(&tag_wrong);
}

/* One buffer takes the messages that match its tag, and leaves the others alone. */
static void tagged_multi(struct kunit *test)
{
	struct ct_opts opts = {
		.mode = ct_mode_of(test),
		.caps = FI_MSG | FI_TAGGED | FI_TAGGED_MULTI_RECV,
	};
	struct ct_pair *p = ct_pair_open(test, &opts);
	struct tag_post multi = {
		.recv = true, .flags = FI_MULTI_RECV | FI_COMPLETION,
		.msg.tag = 0x100, .msg.ignore = 0xff,
	}, claim = {
		.recv = true, .flags = FI_MULTI_RECV | FI_CLAIM,
	};
	struct ct_op *op = ct_op(p), *other;
	u64 tag;

	atomic_set(&tag_parts, 0);
	atomic_set(&tag_wrong, 0);
	op->buf = ct_buf(p, TAG_PARTS * TAG_LEN);
	op->hook = tag_part;
	KUNIT_EXPECT_EQ(test, tag_post(p, 1, op, &claim, op->buf, TAG_LEN),
			-FI_EBADFLAGS);
	/* one has come before its receive */
	tag_send(p, 0x101, 0x101);
	tag_peek(p, 0x101, 0);
	other = tag_recv(p, 1, 0, TAG_LEN);
	op->multi = true;
	KUNIT_ASSERT_EQ(test, 0, tag_post(p, 1, op, &multi, op->buf,
					  TAG_PARTS * TAG_LEN));
	tag_send(p, 1, 7);
	for (tag = 0x102; tag <= 0x100 + TAG_PARTS; tag++)
		tag_send(p, tag, tag);
	tag_expect(p, other, 1, 7);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, op));
	KUNIT_EXPECT_EQ(test, atomic_read(&tag_parts), TAG_PARTS);
	KUNIT_EXPECT_EQ(test, atomic_read(&tag_wrong), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	ct_pair_close(p);
}

/* Who has not asked for it has no such receives. */
static void tagged_multi_refused(struct kunit *test)
{
	struct tag_post multi = { .recv = true, .flags = FI_MULTI_RECV };
	struct ct_pair *p = tag_pair(test);
	struct ct_op *op = ct_op(p);

	op->buf = ct_buf(p, TAG_LEN);
	KUNIT_EXPECT_EQ(test, tag_post(p, 1, op, &multi, op->buf, TAG_LEN),
			-FI_EBADFLAGS);
	ct_pair_close(p);
}

/* Segments that are said to be there, without a pointer to them */
static void tagged_arrays(struct kunit *test)
{
	struct tag_post send = { .msg.iov_count = 1 };
	struct tag_post recv = { .msg.iov_count = 1, .recv = true };
	struct ct_pair *p = tag_pair(test);

	KUNIT_EXPECT_EQ(test, ct_post_fn(p, 0, ct_op(p), tag_post_fn, &send),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, ct_post_fn(p, 1, ct_op(p), tag_post_fn, &recv),
			-EINVAL);
	ct_pair_close(p);
}

static struct kunit_case contract_tagged_cases[] = {
	KUNIT_CASE_PARAM(tagged_match, ct_mode_gen_params),
	KUNIT_CASE_PARAM(tagged_forms, ct_mode_gen_params),
	KUNIT_CASE_PARAM(tagged_unexpected, ct_mode_gen_params),
	KUNIT_CASE_PARAM(tagged_beside, ct_mode_gen_params),
	KUNIT_CASE_PARAM(tagged_long, ct_mode_gen_params),
	KUNIT_CASE_PARAM(tagged_cancel, ct_mode_gen_params),
	KUNIT_CASE_PARAM(tagged_peek, ct_mode_gen_params),
	KUNIT_CASE_PARAM(tagged_multi, ct_mode_gen_params),
	KUNIT_CASE_PARAM(tagged_multi_refused, ct_mode_gen_params),
	KUNIT_CASE_PARAM(tagged_arrays, ct_mode_gen_params),
	{}
};

static struct kunit_suite contract_tagged_suite = {
	.name = "contract_tagged",
	.suite_init = lo_suite_init,
	.init = ct_unconnected_init,
	.test_cases = contract_tagged_cases,
};

kunit_test_suite(contract_tagged_suite);

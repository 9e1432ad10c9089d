// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Short frames that go to TCP in one call: what is on the wire is what one call
 * for each would have put there, whatever part of them TCP takes.
 *
 * The peer is a plain TCP socket. Posts with interrupts off are left to the
 * softirq item, which then finds several.
 */
#include <linux/bvec.h>
#include <linux/net.h>
#include <linux/unaligned.h>

#include "live.h"

#define BURST_POSTS	(2 * KSK_BURST + 3)

static struct ksk_conn *burst_conn(struct live *l)
{
	return ksk_ep(l->end[1].ep)->conn;
}

struct burst_frame {
	const char	*name;
	size_t		len;
	enum kofi_vec	vec;
	u64		flags;
	size_t		segs;		/* 0: one */
	bool		alone;		/* not one of a burst */
	bool		zc_off;		/* zerocopy_min is 0 */
};

static const struct burst_frame burst_frames[] = {
	{ .name = "kvec", .len = 64 },
	{ .name = "no payload", .len = 0 },
	{ .name = "a byte", .len = 1 },
	{ .name = "value", .len = 100, .flags = FI_REMOTE_CQ_DATA },
	{ .name = "inject", .len = 32, .flags = FI_INJECT },
	{ .name = "bvec", .len = 3000, .vec = KOFI_BVEC },
	{ .name = "two pieces", .len = 200, .segs = 2, .alone = true },
	{ .name = "the longest", .len = KSK_BURST_PAYLOAD },
	{ .name = "too long", .len = KSK_BURST_PAYLOAD + 1, .alone = true },
	{ .name = "fence", .len = 64, .flags = FI_FENCE },
	{ .name = "no zero copy", .len = 64, .zc_off = true },
};

static void burst_frame_desc(const struct burst_frame *f, char *desc)
{
	strscpy(desc, f->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(burst_frame, burst_frames, burst_frame_desc);

/* Post number I of a kind; its payload is that place of the pattern. */
static ssize_t burst_post(struct live *l, const struct burst_frame *f, int i)
{
	struct kvec kv[2] = { { .iov_base = l->out + i, .iov_len = f->len } };
	struct bio_vec bv;
	struct fi_msg msg = {
		.iov_count = f->segs ?: 1, .vec = f->vec, .data = 1000 + i,
	};

	if (f->segs == 2) {
		kv[0].iov_len = 7;
		kv[1].iov_base = l->out + i + 7;
		kv[1].iov_len = f->len - 7;
	}
	if (f->vec == KOFI_BVEC) {
		/* vmalloc: what does not cross a page is in one piece */
		void *at = PTR_ALIGN(l->out, PAGE_SIZE) + i;

		bvec_set_page(&bv, is_vmalloc_addr(at) ? vmalloc_to_page(at) :
							 virt_to_page(at),
			      f->len, offset_in_page(at));
		msg.msg_bvec = &bv;
	} else {
		msg.msg_iov = kv;
	}
	return fi_sendmsg(l->end[1].ep, &msg, f->flags);
}

static const u8 *burst_payload(struct live *l, const struct burst_frame *f,
			       int i)
{
	return f->vec == KOFI_BVEC ? PTR_ALIGN(l->out, PAGE_SIZE) + i :
				     l->out + i;
}

/* Read a frame and see that it is number I of a kind. */
static bool burst_expect(struct kunit *test, struct socket *sock,
			 const struct burst_frame *f, int i)
{
	struct live *l = test->priv;
	size_t head = 16 + (f->flags & FI_REMOTE_CQ_DATA ? 8 : 0);
	u8 *got = l->in;
	int n = live_raw_recv(sock, got, head + f->len);

	KUNIT_EXPECT_EQ(test, (int)(head + f->len), n);
	if (n != head + f->len)
		return false;
	KUNIT_EXPECT_EQ(test, KSK_OP_MSG, got[1]);
	KUNIT_EXPECT_EQ(test, head, (size_t)got[6]);
	KUNIT_EXPECT_EQ(test, (u8)i, got[7]);
	KUNIT_EXPECT_EQ(test, head + f->len, (size_t)get_unaligned_le64(got + 8));
	if (f->flags & FI_REMOTE_CQ_DATA)
		KUNIT_EXPECT_EQ(test, 1000ULL + i, get_unaligned_le64(got + 16));
	KUNIT_EXPECT_MEMEQ(test, got + head, burst_payload(l, f, i), f->len);
	return true;
}

static void burst_wire(struct kunit *test)
{
	const struct burst_frame *f = test->param_value;
	struct live *l = test->priv;
	struct socket *sock = live_raw_connect(test, l, false, 0);
	struct ksk_conn *c = burst_conn(l);
	struct fi_cq_err_entry e;
	unsigned long irq;
	int i, n = 0;

	live_pattern(l->out, LIVE_BIG, 5);
	if (f->zc_off)
		c->zc.min = 0;
	local_irq_save(irq);
	for (i = 0; i < BURST_POSTS; i++)
		n += !burst_post(l, f, i);
	local_irq_restore(irq);
	KUNIT_EXPECT_EQ(test, BURST_POSTS, n);
	for (i = 0; i < n; i++)
		if (!burst_expect(test, sock, f, i))
			break;
	for (i = 0; i < n && !(f->flags & FI_INJECT); i++)
		KUNIT_EXPECT_EQ(test, 0, live_comp(l->end[1].tx, &e));
	/* the sender on another CPU counts the last burst under this lock */
	lock_sock(c->sock->sk);
	release_sock(c->sock->sk);
	KUNIT_EXPECT_EQ(test, f->alone ? 0UL : 3UL,
			READ_ONCE(c->stats.tx_bursts));
	KUNIT_EXPECT_EQ(test, (unsigned long)(f->len * BURST_POSTS),
			READ_ONCE(c->stats.tx_copy_bytes));
	sock_release(sock);
	KUNIT_EXPECT_EQ(test, 0, live_event(l->end[1].eq, FI_SHUTDOWN, NULL,
					    NULL));
}

/* Acknowledgments go before what is posted, and in the same call. */
static void burst_acks(struct kunit *test)
{
	struct live *l = test->priv;
	struct socket *sock = live_raw_connect(test, l, false, 0);
	struct ksk_conn *c = burst_conn(l);
	const int n = KSK_BURST + 2;
	u8 *frames = l->out, *got = l->in;
	struct fi_cq_err_entry e;
	int i;

	for (i = 0; i < n; i++) {
		u8 *hdr = frames + 16 * i;

		KUNIT_EXPECT_EQ(test, 0, fi_recv(l->end[1].ep, l->in, 64, NULL,
						 0, NULL));
		memset(hdr, 0, 16);
		hdr[0] = 3;
		put_unaligned_le16(KSK_F_DELIVERY, hdr + 2);
		hdr[6] = 16;
		put_unaligned_le64(16, hdr + 8);
	}
	KUNIT_EXPECT_EQ(test, 16 * n, live_raw_send(sock, frames, 16 * n));
	for (i = 0; i < n; i++)
		KUNIT_EXPECT_EQ(test, 0, live_comp(l->end[1].rx, &e));
	KUNIT_ASSERT_EQ(test, 16 * n, live_raw_recv(sock, got, 16 * n));
	for (i = 0; i < n; i++) {
		KUNIT_EXPECT_EQ(test, KSK_OP_DATA_ACK, got[16 * i + 4]);
		KUNIT_EXPECT_EQ(test, (u8)i, got[16 * i + 7]);
	}
	KUNIT_EXPECT_EQ(test, 2UL, READ_ONCE(c->stats.tx_bursts));
	KUNIT_EXPECT_EQ(test, (unsigned long)n, READ_ONCE(c->stats.tx_acks));
	sock_release(sock);
	KUNIT_EXPECT_EQ(test, 0, live_event(l->end[1].eq, FI_SHUTDOWN, NULL,
					    NULL));
}

#define BURST_PART	1700	/* of no page's size */
#define BURST_ROUNDS	60

static const struct burst_frame burst_part_frames[] = {
	{ .name = "plain", .len = BURST_PART },
	{ .name = "acknowledged", .len = BURST_PART,
	  .flags = FI_DELIVERY_COMPLETE },
};

KUNIT_ARRAY_PARAM(burst_part, burst_part_frames, burst_frame_desc);

/* Acknowledge a number of messages. */
static void burst_ack(struct socket *sock, int n)
{
	u8 ack[16] = { [0] = 3, [4] = KSK_OP_DATA_ACK, [6] = 16 };

	put_unaligned_le64(16, ack + 8);
	while (n--)
		live_raw_send(sock, ack, sizeof(ack));
}

/*
 * The socket takes a part of many bursts, as its buffer is small and the peer
 * reads late. What cannot be posted is posted again.
 */
static void burst_parts(struct kunit *test)
{
	const struct burst_frame *f = test->param_value;
	struct live *l = test->priv;
	struct socket *sock = live_raw_connect(test, l, false, 0);
	struct ksk_conn *c = burst_conn(l);
	int posted = 0, ended = 0, got = 0, round, i;
	struct fi_cq_err_entry e;
	unsigned long irq;
	u8 *frame = l->in;

	live_pattern(l->out, LIVE_BIG, 6);
	lock_sock(c->sock->sk);
	c->sock->sk->sk_userlocks |= SOCK_SNDBUF_LOCK;
	WRITE_ONCE(c->sock->sk->sk_sndbuf, SOCK_MIN_SNDBUF);
	release_sock(c->sock->sk);
	for (round = 0; round < BURST_ROUNDS; round++) {
		local_irq_save(irq);
		for (i = 0; i < 2 * KSK_BURST; i++)
			posted += !burst_post(l, f, posted);
		local_irq_restore(irq);
		/* so much that there is room for half of them */
		for (i = 0; i < KSK_BURST && got < posted; i++, got++) {
			if (live_raw_recv(sock, frame, 16 + f->len) != 16 + f->len)
				break;
			KUNIT_EXPECT_EQ(test, (u8)got, frame[7]);
			KUNIT_EXPECT_MEMEQ(test, frame + 16, l->out + got, f->len);
		}
		if (f->flags)
			burst_ack(sock, i);
		while (ended < got && !live_comp(l->end[1].tx, &e))
			ended++;
	}
	for (; got < posted; got++) {
		if (live_raw_recv(sock, frame, 16 + f->len) != 16 + f->len)
			break;
		KUNIT_EXPECT_EQ(test, (u8)got, frame[7]);
		KUNIT_EXPECT_MEMEQ(test, frame + 16, l->out + got, f->len);
		if (f->flags)
			burst_ack(sock, 1);
	}
	KUNIT_EXPECT_EQ(test, posted, got);
	for (; ended < posted; ended++)
		KUNIT_EXPECT_EQ(test, 0, live_comp(l->end[1].tx, &e));
	KUNIT_EXPECT_GT(test, READ_ONCE(c->stats.tx_bursts), 0UL);
	KUNIT_EXPECT_GT(test, READ_ONCE(c->stats.tx_full), 0UL);
	KUNIT_EXPECT_EQ(test, (unsigned long)posted * f->len,
			READ_ONCE(c->stats.tx_copy_bytes));
	sock_release(sock);
	KUNIT_EXPECT_EQ(test, 0, live_event(l->end[1].eq, FI_SHUTDOWN, NULL,
					    NULL));
}

static struct kunit_case burst_cases[] = {
	KUNIT_CASE_PARAM(burst_wire, burst_frame_gen_params),
	KUNIT_CASE(burst_acks),
	KUNIT_CASE_PARAM(burst_parts, burst_part_gen_params),
	{}
};

static struct kunit_suite burst_suite = {
	.name = "sock_burst",
	.suite_init = lo_suite_init,
	.init = live_init,
	.exit = live_exit,
	.test_cases = burst_cases,
};

kunit_test_suite(burst_suite);

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_sock sending pages without copying them: when memory may be written to
 * again, which operations do it, and every way a stream can end with pages
 * still out. And the other side of the sender: how small messages share
 * segments.
 *
 * Most tests keep the peer from reading, by posting no receive: TCP then holds
 * the pages for as long as the test likes, and bytes that are overwritten too
 * early arrive wrong.
 */

#include <linux/bvec.h>
#include <linux/completion.h>
#include <linux/kmsg_dump.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/tcp.h>

#include <linux/kofi/provider.h>

#include "../../../providers/sock/sock.h"

#include "../contract/contract.h"

#define ZC_ORDER	8
#define ZC_MEM		(PAGE_SIZE << ZC_ORDER)

static struct ksk_ep *zc_ep(struct ct_pair *p, int side)
{
	return ksk_ep(p->side[side].ep);
}

/* ------------------------------------------------------------------ memory */

/*
 * Pages of a test. What is out at the end of it must be back soon; a packet's
 * reference to a page goes right after the one to the operation.
 */
static bool zc_pages_back(struct page *pages)
{
	unsigned long end = jiffies + msecs_to_jiffies(CT_TIMEOUT_MS);

	while (page_count(pages) != 1 && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	return page_count(pages) == 1;
}

static void zc_pages_free(void *pages)
{
	__free_pages(pages, ZC_ORDER);
}

static struct page *zc_pages(struct kunit *test)
{
	struct page *pages = alloc_pages(GFP_KERNEL | __GFP_COMP |
					 __GFP_RETRY_MAYFAIL, ZC_ORDER);

	KUNIT_ASSERT_NOT_NULL(test, pages);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, zc_pages_free,
							pages), 0);
	return pages;
}

/*
 * A pair whose side 0 copies only what is shorter than @min, with a send buffer
 * of @sndbuf bytes, or of TCP's choice.
 */
static struct ct_pair *zc_pair_opts(struct kunit *test, struct ct_opts opts,
				    unsigned int min, size_t sndbuf)
{
	struct fid_ep *ep;
	struct ct_pair *p;

	if (strcmp(ct_provider, "sock"))
		kunit_skip(test, "about sock alone");
	opts.unconnected = true;
	p = ct_pair_open(test, &opts);
	ep = p->side[0].ep;
	KUNIT_ASSERT_EQ(test, fi_set_val(&ep->fid, KOFI_VAL_ZEROCOPY_MIN, &min),
			0);
	if (sndbuf)
		KUNIT_ASSERT_EQ(test, fi_setopt(&ep->fid, FI_OPT_ENDPOINT,
						FI_OPT_SEND_BUF_SIZE, &sndbuf,
						sizeof(sndbuf)), 0);
	KUNIT_ASSERT_EQ(test, ct_pair_connect(p), 0);
	return p;
}

static struct ct_pair *zc_pair(struct kunit *test, enum ct_mode mode,
			       unsigned int min)
{
	return zc_pair_opts(test, (struct ct_opts){ .mode = mode }, min, 0);
}

/* ---------------------------------------------------------------- messages */

/**
 * struct zc_msg - a message in pages
 * @op: the send
 * @recv: the receive
 * @pages: memory it is in
 * @offset: of its first byte
 * @len: bytes
 * @segs: segments it is cut into, at odd places
 * @in: what has arrived
 */
struct zc_msg {
	struct ct_op	*op;
	struct ct_op	*recv;
	struct page	*pages;
	size_t		offset;
	size_t		len;
	unsigned int	segs;
	u8		*in;
};

/* The memory is the consumer's again: use it for something else. */
static void zc_overwrite(struct ct_op *op)
{
	struct zc_msg *m = op->buf;

	memset(page_address(m->pages) + m->offset, 0xa5, m->len);
}

static void zc_send(struct kunit *test, struct ct_pair *p, struct zc_msg *m,
		    u64 flags)
{
	struct bio_vec bv[4];
	struct fi_msg msg = {
		.msg_bvec = bv, .iov_count = m->segs, .vec = KOFI_BVEC,
	};
	size_t off = m->offset, left = m->len;
	unsigned int i;

	for (i = 0; i < m->segs; i++) {
		size_t n = i + 1 < m->segs ? m->len / m->segs - i : left;

		bvec_set_page(&bv[i], m->pages, n, off);
		off += n;
		left -= n;
	}
	ct_pattern(page_address(m->pages) + m->offset, m->len, m->len);
	m->op = ct_op(p);
	m->op->buf = m;
	m->op->hook = zc_overwrite;
	KUNIT_ASSERT_EQ(test, ct_post_send(p, 0, m->op, &msg, flags), 0);
}

static void zc_recv(struct kunit *test, struct ct_pair *p, struct zc_msg *m)
{
	m->in = ct_buf(p, m->len);
	m->recv = ct_op(p);
	KUNIT_ASSERT_EQ(test, ct_recv(p, 1, m->recv, m->in, m->len), 0);
}

/* -------------------------------------------------- when memory is reusable */

struct zc_level {
	const char	*name;
	enum ct_mode	mode;
	u64		flags;
};

static const struct zc_level zc_levels[] = {
	{ "no level, read", CT_READ, 0 },
	{ "no level, direct", CT_DIRECT, 0 },
	{ "no level, softirq", CT_SOFTIRQ, 0 },
	{ "no level, workqueue", CT_WORKQUEUE, 0 },
	{ "inject complete", CT_SOFTIRQ, FI_INJECT_COMPLETE },
	{ "transmit complete", CT_SOFTIRQ, FI_TRANSMIT_COMPLETE },
	{ "delivery complete", CT_SOFTIRQ, FI_DELIVERY_COMPLETE },
	{ "delivery complete, read", CT_READ, FI_DELIVERY_COMPLETE },
};

KUNIT_ARRAY_PARAM_DESC(zc_level, zc_levels, name);

static const struct zc_msg zc_shapes[] = {
	{ .len = 4096, .segs = 1 },
	{ .len = 4097, .offset = 1, .segs = 2 },
	{ .len = 16384, .offset = 8, .segs = 1 },
	{ .len = 65539, .offset = 4095, .segs = 3 },
	{ .len = 300000, .offset = 77, .segs = 4 },
	{ .len = ZC_MEM, .segs = 1 },
	{ .len = ZC_MEM - 5, .offset = 3, .segs = 2 },
};

/* One that is told that its memory is free may write to it. */
static void zc_overwritten(struct kunit *test)
{
	const struct zc_level *l = test->param_value;
	struct ct_pair *p = zc_pair(test, l->mode, 4096);
	struct zc_msg m[ARRAY_SIZE(zc_shapes)];
	const struct ksk_conn_stats *stats;
	size_t i, total = 0;

	stats = &zc_ep(p, 0)->conn->stats;
	for (i = 0; i < ARRAY_SIZE(m); i++) {
		m[i] = zc_shapes[i];
		m[i].pages = zc_pages(test);
		total += m[i].len;
		zc_send(test, p, &m[i], l->flags);
	}
	for (i = 0; i < ARRAY_SIZE(m); i++)
		zc_recv(test, p, &m[i]);
	KUNIT_ASSERT_TRUE(test, ct_wait_all(p));
	for (i = 0; i < ARRAY_SIZE(m); i++) {
		KUNIT_EXPECT_EQ(test, m[i].op->wc.err, 0);
		KUNIT_EXPECT_TRUE_MSG(test, ct_pattern_ok(m[i].in, m[i].len,
							  m[i].len),
				      "%zu bytes arrived wrong", m[i].len);
		KUNIT_EXPECT_TRUE(test, zc_pages_back(m[i].pages));
	}
	KUNIT_EXPECT_EQ(test, READ_ONCE(stats->tx_zc_bytes), total);
	KUNIT_EXPECT_EQ(test, READ_ONCE(stats->tx_copy_bytes), 0);
	ct_pair_close(p);
}

/* Handed to TCP, which cannot send it: not complete. */
static void zc_not_read(struct kunit *test)
{
	const struct zc_level *l = test->param_value;
	struct ct_pair *p = zc_pair(test, l->mode, 4096);
	struct zc_msg m = { .len = ZC_MEM, .segs = 1 };
	const struct ksk_conn_stats *stats = &zc_ep(p, 0)->conn->stats;

	m.pages = zc_pages(test);
	zc_send(test, p, &m, l->flags);
	KUNIT_ASSERT_TRUE(test, ct_wait(p, READ_ONCE(stats->tx_frames) == 1,
					CT_TIMEOUT_MS));
	ct_progress(p);
	KUNIT_EXPECT_FALSE(test, ct_is_done(m.op));
	KUNIT_EXPECT_GT(test, page_count(m.pages), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&zc_ep(p, 0)->conn->zc.out), 1);

	zc_recv(test, p, &m);
	KUNIT_ASSERT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(m.in, m.len, m.len));
	KUNIT_EXPECT_TRUE(test, zc_pages_back(m.pages));
	ct_pair_close(p);
}

/* -------------------------------------------------------- which ones do it */

enum zc_kind {
	ZC_KVEC,
	ZC_BVEC,
	ZC_SGL,
	ZC_ITER,
};

struct zc_choice {
	const char	*name;
	enum zc_kind	kind;
	unsigned int	min;
	size_t		len;
	u64		flags;
	bool		zc;
};

static const struct zc_choice zc_choices[] = {
	{ "pages at the threshold", ZC_BVEC, 8192, 8192, 0, true },
	{ "pages below the threshold", ZC_BVEC, 8192, 8191, 0, false },
	{ "pages, switched off", ZC_BVEC, 0, 65536, 0, false },
	{ "one byte", ZC_BVEC, 1, 1, 0, true },
	{ "no byte", ZC_BVEC, 1, 0, 0, false },
	{ "inject", ZC_BVEC, 1, 64, FI_INJECT, false },
	{ "scatterlist", ZC_SGL, 4096, 300000, 0, true },
	{ "iterator over pages", ZC_ITER, 4096, 65536, 0, true },
	{ "kvec", ZC_KVEC, 4096, 65536, 0, false },
};

KUNIT_ARRAY_PARAM_DESC(zc_choice, zc_choices, name);

static void zc_chooses(struct kunit *test)
{
	const struct zc_choice *c = test->param_value;
	struct ct_pair *p = zc_pair(test, CT_SOFTIRQ, c->min);
	const struct ksk_conn_stats *stats = &zc_ep(p, 0)->conn->stats;
	struct page *pages = zc_pages(test);
	struct fi_msg msg = { .iov_count = 1 };
	struct scatterlist sg[20];
	struct iov_iter iter;
	struct bio_vec bv;
	struct kvec kv;
	size_t i, off;
	u8 *in;

	switch (c->kind) {
	case ZC_KVEC:
		kv = (struct kvec) { page_address(pages), c->len };
		msg.msg_iov = &kv;
		break;
	case ZC_BVEC:
	case ZC_ITER:
		bvec_set_page(&bv, pages, c->len, 0);
		iov_iter_bvec(&iter, ITER_SOURCE, &bv, 1, c->len);
		msg.vec = c->kind == ZC_BVEC ? KOFI_BVEC : KOFI_ITER;
		if (c->kind == ZC_BVEC)
			msg.msg_bvec = &bv;
		else
			msg.msg_iter = &iter;
		break;
	case ZC_SGL:
		/* more segments than a cursor sees at once */
		sg_init_table(sg, ARRAY_SIZE(sg));
		for (i = 0, off = 0; i < ARRAY_SIZE(sg); i++) {
			size_t n = c->len / ARRAY_SIZE(sg);

			sg_set_page(&sg[i], pages, n, off);
			off += n;
		}
		KUNIT_ASSERT_EQ(test, off, c->len);
		msg.msg_sgl = sg;
		msg.iov_count = ARRAY_SIZE(sg);
		msg.vec = KOFI_SGL;
		break;
	}
	ct_pattern(page_address(pages), c->len, 1);
	in = ct_buf(p, c->len);
	KUNIT_ASSERT_EQ(test, ct_recv(p, 1, ct_op(p), in, c->len), 0);
	KUNIT_ASSERT_EQ(test, ct_post_send(p, 0, ct_op(p), &msg, c->flags), 0);
	KUNIT_ASSERT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(in, c->len, 1));
	KUNIT_EXPECT_EQ(test, READ_ONCE(stats->tx_zc_bytes),
			c->zc ? c->len : 0);
	KUNIT_EXPECT_EQ(test, READ_ONCE(stats->tx_copy_bytes),
			c->zc ? 0 : c->len);
	KUNIT_EXPECT_TRUE(test, zc_pages_back(pages));
	ct_pair_close(p);
}

/* Slab memory between pages: copied, and only that. */
static void zc_slab(struct kunit *test)
{
	struct ct_pair *p = zc_pair(test, CT_SOFTIRQ, 1);
	const struct ksk_conn_stats *stats = &zc_ep(p, 0)->conn->stats;
	struct page *pages = zc_pages(test);
	const size_t len = 8192, slab = 1000;
	void *mem = kunit_kmalloc(test, slab, GFP_KERNEL);
	struct bio_vec bv[4];
	const struct fi_msg msg = {
		.msg_bvec = bv, .iov_count = ARRAY_SIZE(bv), .vec = KOFI_BVEC,
	};
	struct fi_msg copy = msg;
	u8 *in = ct_buf(p, 2 * len + 2 * slab);

	KUNIT_ASSERT_NOT_NULL(test, mem);
	bvec_set_virt(&bv[0], mem, slab);
	bvec_set_page(&bv[1], pages, len, 5);
	bvec_set_virt(&bv[2], mem, slab);
	bvec_set_page(&bv[3], pages, len, 5);
	KUNIT_ASSERT_TRUE(test, folio_test_slab(page_folio(bv[0].bv_page)));
	ct_pattern(mem, slab, 1);
	ct_pattern(page_address(pages) + 5, len, 2);

	KUNIT_ASSERT_EQ(test, ct_recv(p, 1, ct_op(p), in, 2 * len + 2 * slab),
			0);
	KUNIT_ASSERT_EQ(test, ct_post_send(p, 0, ct_op(p), &copy, 0), 0);
	KUNIT_ASSERT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(in, slab, 1));
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(in + slab, len, 2));
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(in + slab + len, slab, 1));
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(in + 2 * slab + len, len, 2));
	KUNIT_EXPECT_EQ(test, READ_ONCE(stats->tx_zc_bytes), 2 * len);
	KUNIT_EXPECT_EQ(test, READ_ONCE(stats->tx_copy_bytes), 2 * slab);
	ct_pair_close(p);
}

/* TCP takes an empty segment for an error, or for a page more. */
static void zc_empty_segments(struct kunit *test)
{
	struct ct_pair *p = zc_pair(test, CT_SOFTIRQ, 1);
	const struct ksk_conn_stats *stats = &zc_ep(p, 0)->conn->stats;
	struct page *pages = zc_pages(test);
	const size_t len = 5000;
	struct bio_vec bv[] = {
		{ NULL, 0, 0 }, { NULL, 0, 77 },
		{ pages, len, 0 },
		{ pages, 0, 4095 }, { pages, 0, 0 }, { NULL, 0, 1 },
		{ pages, len, len },
		{ pages, 0, 9 },
	};
	struct iov_iter iter;
	struct fi_msg msg = { .vec = KOFI_ITER, .msg_iter = &iter };
	u8 *in = ct_buf(p, 2 * len);
	int i;

	ct_pattern(page_address(pages), 2 * len, 3);
	for (i = 0; i < 2; i++) {
		memset(in, 0, 2 * len);
		iov_iter_bvec(&iter, ITER_SOURCE, bv, ARRAY_SIZE(bv), 2 * len);
		KUNIT_ASSERT_EQ(test, ct_recv(p, 1, ct_op(p), in, 2 * len), 0);
		KUNIT_ASSERT_EQ(test, ct_post_send(p, 0, ct_op(p), &msg, 0), 0);
		KUNIT_ASSERT_TRUE(test, ct_wait_all(p));
		KUNIT_EXPECT_TRUE(test, ct_pattern_ok(in, 2 * len, 3));
		/* the same as an array of segments */
		msg = (struct fi_msg){
			.msg_bvec = bv, .iov_count = ARRAY_SIZE(bv),
			.vec = KOFI_BVEC,
		};
	}
	KUNIT_EXPECT_EQ(test, READ_ONCE(stats->tx_zc_bytes), 4 * len);
	KUNIT_EXPECT_TRUE(test, zc_pages_back(pages));
	ct_pair_close(p);
}

static void zc_no_probes(void *arg)
{
	init_net.ipv4.sysctl_tcp_mtu_probing = 0;
}

#define ZC_OPENING	128	/* messages too short for a probe */
#define ZC_CWND		64	/* packets, less than a long message has */

/*
 * Probes for a larger MTU carry pages that would not be waited for: with them
 * nothing is sent without copying it. The first messages open the windows of
 * both sides; one that is long enough to make a probe of is not read before
 * TCP has acknowledged it. TCP makes a probe of what has to wait for the
 * congestion window, which is kept small for that, and none while it recovers
 * from a loss, as which it takes a machine that stood still for a moment: then
 * the next message has it.
 */
static void zc_mtu_probes(struct kunit *test)
{
	struct zc_msg open = { .len = 16384, .segs = 1 };
	struct zc_msg m = { .len = ZC_MEM / 2, .segs = 1 };
	const struct inet_connection_sock *icsk;
	const struct ksk_conn_stats *stats;
	unsigned long end;
	struct ct_pair *p;
	struct sock *sk;
	u32 low;
	int i;

	KUNIT_ASSERT_EQ(test, init_net.ipv4.sysctl_tcp_mtu_probing, 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, zc_no_probes,
							NULL), 0);
	init_net.ipv4.sysctl_tcp_mtu_probing = 2;
	p = zc_pair(test, CT_SOFTIRQ, 4096);
	stats = &zc_ep(p, 0)->conn->stats;
	sk = zc_ep(p, 0)->conn->sock->sk;
	icsk = inet_csk(sk);
	KUNIT_ASSERT_TRUE(test, icsk->icsk_mtup.enabled);
	lock_sock(sk);
	tcp_sk(sk)->snd_cwnd_clamp = ZC_CWND;
	release_sock(sk);
	open.pages = zc_pages(test);
	for (i = 0; i < ZC_OPENING; i++) {
		zc_send(test, p, &open, 0);
		zc_recv(test, p, &open);
		KUNIT_ASSERT_TRUE(test, ct_wait_all(p));
	}
	low = icsk->icsk_mtup.search_low;
	m.pages = zc_pages(test);
	end = jiffies + msecs_to_jiffies(CT_TIMEOUT_MS);
	do {
		zc_send(test, p, &m, 0);
		i++;
		KUNIT_ASSERT_TRUE(test, ct_wait(p, READ_ONCE(stats->tx_frames) == i &&
						!tcp_sk(sk)->packets_out,
						CT_TIMEOUT_MS));
		zc_recv(test, p, &m);
		KUNIT_ASSERT_TRUE(test, ct_wait_all(p));
		KUNIT_ASSERT_TRUE(test, ct_pattern_ok(m.in, m.len, m.len));
	} while (READ_ONCE(icsk->icsk_mtup.search_low) == low &&
		 time_before(jiffies, end));
	KUNIT_EXPECT_GT(test, icsk->icsk_mtup.search_low, low);
	KUNIT_EXPECT_EQ(test, READ_ONCE(stats->tx_zc_bytes), 0);
	ct_pair_close(p);
}

/* Loopback copies all the same; who has not insisted soon stops trying. */
static void zc_gives_up(struct kunit *test)
{
	struct zc_msg m = { .len = 65536, .segs = 1 };
	const struct ksk_conn_stats *stats;
	struct ct_pair *p;
	int i;

	if (strcmp(ct_provider, "sock") || strcmp(ct_device, "lo"))
		kunit_skip(test, "about sock over loopback alone");
	p = ct_pair_mode(test, CT_SOFTIRQ);
	stats = &zc_ep(p, 0)->conn->stats;
	m.pages = zc_pages(test);
	/* one, the 255 that follow, and the next that tries */
	for (i = 0; i < 257; i++) {
		zc_send(test, p, &m, 0);
		zc_recv(test, p, &m);
		KUNIT_ASSERT_TRUE(test, ct_wait_all(p));
		if (i == 0 || i == 255)
			KUNIT_EXPECT_EQ(test, READ_ONCE(stats->tx_zc_bytes),
					m.len);
	}
	KUNIT_EXPECT_EQ(test, READ_ONCE(stats->tx_zc_bytes), 2 * m.len);
	KUNIT_EXPECT_EQ(test, READ_ONCE(stats->tx_zc_copied), 2);
	KUNIT_EXPECT_EQ(test, READ_ONCE(stats->tx_copy_bytes), 255 * m.len);
	ct_pair_close(p);
}

struct zc_device {
	const char		*name;
	netdev_features_t	lacks;
	bool			insist;
};

static const struct zc_device zc_devices[] = {
	{ "no scatter-gather", NETIF_F_SG, false },
	{ "no checksums", NETIF_F_HW_CSUM, false },
	{ "no scatter-gather, all the same", NETIF_F_SG, true },
	{ "no checksums, all the same", NETIF_F_HW_CSUM, true },
};

KUNIT_ARRAY_PARAM_DESC(zc_device, zc_devices, name);

static void zc_features(netdev_features_t set, netdev_features_t clear)
{
	struct net_device *dev = init_net.loopback_dev;

	rtnl_lock();
	dev->features |= set;
	dev->features &= ~clear;
	rtnl_unlock();
}

static void zc_features_back(void *arg)
{
	zc_features(NETIF_F_SG | NETIF_F_HW_CSUM, 0);
}

/* The device makes the kernel copy; who has insisted gets it right even so. */
static void zc_poor_device(struct kunit *test)
{
	const struct zc_device *d = test->param_value;
	struct zc_msg m = { .len = ZC_MEM, .segs = 3 };
	const struct ksk_conn_stats *stats;
	struct ct_pair *p;

	if (strcmp(ct_provider, "sock") || strcmp(ct_device, "lo"))
		kunit_skip(test, "about sock over loopback alone");
	KUNIT_ASSERT_TRUE(test, init_net.loopback_dev->features & d->lacks);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, zc_features_back,
							NULL), 0);
	zc_features(0, d->lacks);
	p = d->insist ? zc_pair(test, CT_SOFTIRQ, 4096) :
			ct_pair_mode(test, CT_SOFTIRQ);
	stats = &zc_ep(p, 0)->conn->stats;
	m.pages = zc_pages(test);
	zc_send(test, p, &m, 0);
	zc_recv(test, p, &m);
	KUNIT_ASSERT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(m.in, m.len, m.len));
	KUNIT_EXPECT_EQ(test, READ_ONCE(stats->tx_zc_bytes),
			d->insist ? m.len : 0);
	KUNIT_EXPECT_TRUE(test, zc_pages_back(m.pages));
	ct_pair_close(p);
}

/* ------------------------------------------------------- ends with pages out */

struct zc_end {
	const char	*name;
	void		(*end)(struct ct_pair *p);
	bool		ours;
};

static void zc_end_close(struct ct_pair *p)
{
	KUNIT_EXPECT_EQ(p->test, ct_ep_close(p, 0), 0);
}

static void zc_end_drain(struct ct_pair *p)
{
	ct_ep_drain(p, 0);
}

static void zc_end_shutdown(struct ct_pair *p)
{
	KUNIT_EXPECT_EQ(p->test, fi_shutdown(p->side[0].ep, 0), 0);
}

static void zc_end_peer_reset(struct ct_pair *p)
{
	tcp_abort(zc_ep(p, 1)->conn->sock->sk, ECONNABORTED);
}

static void zc_end_peer_close(struct ct_pair *p)
{
	KUNIT_EXPECT_EQ(p->test, ct_ep_close(p, 1), 0);
}

static const struct zc_end zc_ends[] = {
	{ "close", zc_end_close, true },
	{ "drain", zc_end_drain, true },
	{ "shutdown", zc_end_shutdown, true },
	{ "peer reset", zc_end_peer_reset, false },
	{ "peer close", zc_end_peer_close, false },
};

KUNIT_ARRAY_PARAM_DESC(zc_end, zc_ends, name);

/*
 * What has gone to TCP when a stream ends fails like what has not, once, and
 * only when its pages are back.
 */
static void zc_ends_out(struct kunit *test)
{
	const struct zc_end *e = test->param_value;
	struct ct_pair *p = zc_pair(test, CT_SOFTIRQ, 4096);
	const struct ksk_conn_stats *stats = &zc_ep(p, 0)->conn->stats;
	struct zc_msg m[4] = {};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(m); i++) {
		m[i].len = ZC_MEM;
		m[i].segs = 1;
		m[i].pages = zc_pages(test);
		zc_send(test, p, &m[i], i & 1 ? FI_DELIVERY_COMPLETE : 0);
	}
	KUNIT_ASSERT_TRUE(test, ct_wait(p, READ_ONCE(stats->tx_frames) >= 1,
					CT_TIMEOUT_MS));
	KUNIT_ASSERT_GE(test, atomic_read(&zc_ep(p, 0)->conn->zc.out), 1);
	KUNIT_ASSERT_FALSE(test, ct_is_done(m[0].op));

	e->end(p);
	if (e->ours)
		KUNIT_EXPECT_TRUE(test, ct_all_done(p));
	KUNIT_ASSERT_TRUE(test, ct_wait_all(p));
	for (i = 0; i < ARRAY_SIZE(m); i++) {
		KUNIT_EXPECT_EQ(test, m[i].op->wc.err, ECANCELED);
		KUNIT_EXPECT_TRUE(test, zc_pages_back(m[i].pages));
	}
	if (p->side[0].ep)
		KUNIT_EXPECT_EQ(test, atomic_read(&zc_ep(p, 0)->conn->zc.out), 0);
	ct_pair_close(p);
}

/* The peer's host answers nothing any more, with the pages sent to it. */
static void zc_silent(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = CT_SOFTIRQ, .silence_ms = TEST_LIMIT(1000),
	};
	struct ct_pair *p = zc_pair_opts(test, opts, 4096, 0);
	struct sock *peer = zc_ep(p, 1)->conn->sock->sk;
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	struct zc_msg m[4] = {};
	size_t i;
	int ret;

	/* all segments wait in its backlog, and then are dropped */
	lock_sock(peer);
	for (i = 0; i < ARRAY_SIZE(m); i++) {
		m[i].len = ZC_MEM;
		m[i].segs = 1;
		m[i].pages = zc_pages(test);
		zc_send(test, p, &m[i], i & 1 ? FI_DELIVERY_COMPLETE : 0);
	}
	ret = ct_next_event(p->side[0].eq, ev, CT_TIMEOUT_MS);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	release_sock(peer);
	KUNIT_EXPECT_EQ(test, ret, 0);
	KUNIT_EXPECT_EQ(test, ev->event, FI_SHUTDOWN);
	for (i = 0; i < ARRAY_SIZE(m); i++) {
		KUNIT_EXPECT_EQ(test, m[i].op->wc.err, ETIMEDOUT);
		KUNIT_EXPECT_TRUE(test, zc_pages_back(m[i].pages));
	}
	ct_pair_close(p);
}

struct zc_closer {
	struct ct_pair		*p;
	struct completion	done;
};

static int zc_close_thread(void *arg)
{
	struct zc_closer *c = arg;

	ct_ep_close(c->p, 0);
	kthread_complete_and_exit(&c->done, 0);
}

/* Has the log said that a device keeps an operation of this endpoint? */
static bool zc_warned(u32 id)
{
	struct kmsg_dump_iter iter;
	char line[256], text[80];
	size_t len;

	scnprintf(text, sizeof(text),
		  "endpoint %u: a network device still has pages of 1 ", id);
	kmsg_dump_rewind(&iter);
	while (kmsg_dump_get_line(&iter, false, line, sizeof(line), &len))
		if (strnstr(line, text, len))
			return true;
	return false;
}

/*
 * A packet is still in the device when the connection is gone: its operation is
 * not completed, and the endpoint not freed, before it has been sent. A device
 * that takes its time is named in the log. The packet comes back in the worst
 * context there is.
 */
static void zc_device_holds(struct kunit *test)
{
	struct ct_pair *p = zc_pair(test, CT_SOFTIRQ, 4096);
	struct ksk_ep *ep = zc_ep(p, 0);
	struct zc_closer c = { .p = p };
	struct zc_msg m[2] = {};
	struct ksk_txop *op, *held = NULL;
	unsigned long irq;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(m); i++) {
		m[i].len = ZC_MEM;
		m[i].segs = 1;
		m[i].pages = zc_pages(test);
		zc_send(test, p, &m[i], 0);
	}
	KUNIT_ASSERT_TRUE(test, ct_wait(p, READ_ONCE(ep->conn->stats.tx_frames) >= 1,
					CT_TIMEOUT_MS));
	for (i = 0; i < p->info->tx_attr->size && !held; i++) {
		op = ep->tx_ops + i * ep->tx_op_size;
		if (op->zc && op->context == m[0].op)
			held = op;
	}
	KUNIT_ASSERT_NOT_NULL(test, held);
	KUNIT_ASSERT_TRUE(test, refcount_inc_not_zero(&held->ubuf.refcnt));

	init_completion(&c.done);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, kthread_run(zc_close_thread, &c,
						       "zc_close"));
	KUNIT_EXPECT_TRUE(test, ct_wait(p, ct_is_done(m[1].op) &&
					refcount_read(&held->ubuf.refcnt) == 1,
					CT_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE(test, ct_wait(p, zc_warned(ep->base.obj.id),
					10000 + CT_TIMEOUT_MS));
	KUNIT_EXPECT_FALSE(test, ct_is_done(m[0].op));
	KUNIT_EXPECT_FALSE(test, try_wait_for_completion(&c.done));

	local_irq_save(irq);
	held->ubuf.ops->complete(NULL, &held->ubuf, true);
	local_irq_restore(irq);
	wait_for_completion(&c.done);
	KUNIT_EXPECT_TRUE(test, ct_is_done(m[0].op));
	KUNIT_EXPECT_EQ(test, m[0].op->wc.err, ECANCELED);
	KUNIT_EXPECT_EQ(test, m[1].op->wc.err, ECANCELED);
	for (i = 0; i < ARRAY_SIZE(m); i++)
		KUNIT_EXPECT_TRUE(test, zc_pages_back(m[i].pages));
	ct_pair_close(p);
}

/* ---------------------------------------------------------- sharing segments */

#define ZC_BURST	100
#define ZC_SMALL	64

struct zc_burst {
	const char	*name;
	bool		more;		/* FI_MORE on all but the last */
	bool		irqs_off;
	unsigned int	most;		/* segments */
};

static const struct zc_burst zc_bursts[] = {
	{ "one by one", false, false, ZC_BURST },
	/* a tick may pass in the middle of them */
	{ "FI_MORE", true, false, ZC_BURST / 4 },
	{ "from the work item", false, true, ZC_BURST / 4 },
};

KUNIT_ARRAY_PARAM_DESC(zc_burst, zc_bursts, name);

/* How many segments small messages take that are posted together */
static void zc_coalesces(struct kunit *test)
{
	const struct zc_burst *b = test->param_value;
	struct ct_pair *p = zc_pair(test, CT_SOFTIRQ, 0);
	struct tcp_sock *tp = tcp_sk(zc_ep(p, 0)->conn->sock->sk);
	u8 *in = ct_buf(p, ZC_BURST * ZC_SMALL), *out = ct_buf(p, ZC_SMALL);
	unsigned int i, posted, segs = READ_ONCE(tp->data_segs_out);
	unsigned long irq = 0;

	ct_pattern(out, ZC_SMALL, 1);
	for (i = 0; i < ZC_BURST; i++)
		KUNIT_ASSERT_EQ(test, ct_recv(p, 1, ct_op(p), in + i * ZC_SMALL,
					      ZC_SMALL), 0);
	if (b->irqs_off)
		local_irq_save(irq);
	for (posted = 0; posted < ZC_BURST; posted++) {
		struct kvec kv = { out, ZC_SMALL };
		struct fi_msg msg = { .msg_iov = &kv, .iov_count = 1 };
		bool more = b->more && posted + 1 < ZC_BURST;

		if (ct_post_send(p, 0, ct_op(p), &msg, more ? FI_MORE : 0))
			break;
	}
	if (b->irqs_off)
		local_irq_restore(irq);
	KUNIT_ASSERT_EQ(test, posted, ZC_BURST);
	KUNIT_ASSERT_TRUE(test, ct_wait_all(p));
	for (i = 0; i < ZC_BURST; i++)
		KUNIT_EXPECT_TRUE(test, ct_pattern_ok(in + i * ZC_SMALL,
						      ZC_SMALL, 1));
	segs = READ_ONCE(tp->data_segs_out) - segs;
	kunit_info(test, "%s: %u segments for %u messages of %u bytes", b->name,
		   segs, ZC_BURST, ZC_SMALL);
	KUNIT_EXPECT_LE(test, segs, b->most);
	ct_pair_close(p);
}

/* FI_MORE, and then nothing: the message is sent all the same, by us. */
static void zc_no_more(struct kunit *test)
{
	struct ct_pair *p = zc_pair(test, CT_SOFTIRQ, 0);
	const struct ksk_conn_stats *stats = &zc_ep(p, 0)->conn->stats;
	u8 *in = ct_buf(p, ZC_SMALL), *out = ct_buf(p, ZC_SMALL);
	struct kvec kv = { out, ZC_SMALL };
	struct fi_msg msg = { .msg_iov = &kv, .iov_count = 1 };
	int i;

	ct_pattern(out, ZC_SMALL, 1);
	for (i = 1; i <= 2; i++) {
		memset(in, 0, ZC_SMALL);
		KUNIT_ASSERT_EQ(test, ct_recv(p, 1, ct_op(p), in, ZC_SMALL), 0);
		KUNIT_ASSERT_EQ(test, ct_post_send(p, 0, ct_op(p), &msg,
						   FI_MORE), 0);
		KUNIT_ASSERT_TRUE(test, ct_wait_all(p));
		KUNIT_EXPECT_TRUE(test, ct_pattern_ok(in, ZC_SMALL, 1));
		KUNIT_EXPECT_TRUE(test, ct_wait(p, READ_ONCE(stats->tx_pushes)
						== i, CT_TIMEOUT_MS));
	}
	ct_pair_close(p);
}

struct zc_held {
	const char	*name;
	bool		together;	/* both are there when the first is sent */
	unsigned int	pushes;
};

static const struct zc_held zc_held[] = {
	/* nothing is held back that would have to be pushed */
	{ "posted together", true, 0 },
	{ "posted later", false, 1 },
};

KUNIT_ARRAY_PARAM_DESC(zc_held, zc_held, name);

/*
 * FI_MORE, and what follows may not be sent before the peer has answered. No
 * timer of ours is left to help.
 */
static void zc_more_held(struct kunit *test)
{
	const struct zc_held *h = test->param_value;
	struct ct_pair *p = zc_pair(test, CT_SOFTIRQ, 0);
	struct ksk_ep *ep = zc_ep(p, 0);
	u8 *in = ct_buf(p, 2 * ZC_SMALL), *out = ct_buf(p, ZC_SMALL);
	struct kvec kv = { out, ZC_SMALL };
	struct fi_msg msg = { .msg_iov = &kv, .iov_count = 1 };
	unsigned long irq = 0;
	ssize_t ret[2];
	int i;

	ct_pattern(out, ZC_SMALL, 1);
	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(test, ct_recv(p, 1, ct_op(p), in + i * ZC_SMALL,
					      ZC_SMALL), 0);
	if (h->together)
		local_irq_save(irq);
	ret[0] = ct_post_send(p, 0, ct_op(p), &msg,
			      FI_MORE | FI_DELIVERY_COMPLETE);
	if (!h->together)
		timer_delete_sync(&ep->conn->retry);
	ret[1] = ct_post_send(p, 0, ct_op(p), &msg, FI_FENCE);
	if (h->together)
		local_irq_restore(irq);
	KUNIT_ASSERT_EQ(test, ret[0], 0);
	KUNIT_ASSERT_EQ(test, ret[1], 0);
	KUNIT_ASSERT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(in, ZC_SMALL, 1));
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(in + ZC_SMALL, ZC_SMALL, 1));
	KUNIT_EXPECT_EQ(test, READ_ONCE(ep->conn->stats.tx_held), 1);
	KUNIT_EXPECT_EQ(test, READ_ONCE(ep->conn->stats.tx_pushes), h->pushes);
	ct_pair_close(p);
}

/*
 * A send buffer so small that what is held back fills it: the second message,
 * whose pages cannot be in the packet of the first, never gets the room that
 * the first one is waiting for.
 */
static void zc_held_room(struct kunit *test)
{
	const struct ct_opts opts = { .mode = CT_SOFTIRQ };
	struct ct_pair *p = zc_pair_opts(test, opts, 4096, 1);
	struct zc_msg m[2] = {};
	struct ksk_ep *ep = zc_ep(p, 0);
	struct fi_msg msg[2];
	struct bio_vec bv[2];
	unsigned long irq;
	ssize_t ret[2];
	int i;

	for (i = 0; i < 2; i++) {
		m[i].len = 4096;
		m[i].pages = zc_pages(test);
		zc_recv(test, p, &m[i]);
		ct_pattern(page_address(m[i].pages), m[i].len, m[i].len);
		bvec_set_page(&bv[i], m[i].pages, m[i].len, 0);
		msg[i] = (struct fi_msg){
			.msg_bvec = &bv[i], .iov_count = 1, .vec = KOFI_BVEC,
		};
		m[i].op = ct_op(p);
	}
	local_irq_save(irq);
	for (i = 0; i < 2; i++)
		ret[i] = ct_post_send(p, 0, m[i].op, &msg[i], 0);
	local_irq_restore(irq);
	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(test, ret[i], 0);
	KUNIT_ASSERT_TRUE(test, ct_wait_all(p));
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_TRUE(test, ct_pattern_ok(m[i].in, m[i].len,
						      m[i].len));
		KUNIT_EXPECT_TRUE(test, zc_pages_back(m[i].pages));
	}
	KUNIT_EXPECT_EQ(test, READ_ONCE(ep->conn->stats.tx_zc_bytes), 8192);
	KUNIT_EXPECT_EQ(test, READ_ONCE(ep->conn->stats.tx_pushes), 1);
	ct_pair_close(p);
}

struct zc_out {
	struct ksk_conn	*conn;
	int		out;
};

static void zc_note_out(struct ct_op *op)
{
	struct zc_out *note = op->buf;

	note->out = atomic_read(&note->conn->zc.out);
}

/*
 * Who hears that a send is complete may close at once, and with nothing out
 * that is no reset. The last reference goes in process context, where the
 * callback runs before the queue's lock has been left behind.
 */
static void zc_counted_first(struct kunit *test)
{
	struct ct_pair *p = zc_pair(test, CT_SOFTIRQ, 1);
	struct zc_out note = { .conn = zc_ep(p, 0)->conn, .out = -1 };
	struct sock *from = zc_ep(p, 0)->conn->sock->sk;
	struct sock *to = zc_ep(p, 1)->conn->sock->sk;
	unsigned long end = jiffies + msecs_to_jiffies(CT_TIMEOUT_MS);
	struct zc_msg m = { .len = 4096, .segs = 1, .pages = zc_pages(test) };

	zc_recv(test, p, &m);
	/* the peer's acknowledgment comes when the sender's socket is owned */
	lock_sock(to);
	zc_send(test, p, &m, 0);
	m.op->buf = &note;
	m.op->hook = zc_note_out;
	KUNIT_EXPECT_EQ(test, atomic_read(&note.conn->zc.out), 1);
	lock_sock_nested(from, SINGLE_DEPTH_NESTING);
	release_sock(to);
	while (!READ_ONCE(from->sk_backlog.tail) && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	release_sock(from);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, note.out, 0);
	ct_pair_close(p);
}

static struct kunit_case zc_cases[] = {
	KUNIT_CASE_PARAM(zc_overwritten, zc_level_gen_params),
	KUNIT_CASE_PARAM(zc_not_read, zc_level_gen_params),
	KUNIT_CASE_PARAM(zc_chooses, zc_choice_gen_params),
	KUNIT_CASE(zc_slab),
	KUNIT_CASE(zc_empty_segments),
	KUNIT_CASE(zc_mtu_probes),
	KUNIT_CASE(zc_gives_up),
	KUNIT_CASE_PARAM(zc_poor_device, zc_device_gen_params),
	KUNIT_CASE_PARAM(zc_ends_out, zc_end_gen_params),
	KUNIT_CASE(zc_silent),
	KUNIT_CASE(zc_device_holds),
	KUNIT_CASE(zc_counted_first),
	KUNIT_CASE_PARAM(zc_coalesces, zc_burst_gen_params),
	KUNIT_CASE(zc_no_more),
	KUNIT_CASE_PARAM(zc_more_held, zc_held_gen_params),
	KUNIT_CASE(zc_held_room),
	{}
};

static struct kunit_suite zc_suite = {
	.name = "sock_zerocopy",
	.suite_init = lo_suite_init,
	.test_cases = zc_cases,
};

kunit_test_suite(zc_suite);

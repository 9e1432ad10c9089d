// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections that end at each byte of each kind of operation: the peer, a plain
 * socket, has taken or sent so many bytes of frame and answer, and then one of
 * the two ends the connection, in each of the ways there are. Whatever the
 * moment, each operation completes once, as far as it has come: the checker
 * knows all of them. Without drop_bytes it is not each byte, but the first and
 * last ones of each part of a frame.
 */

#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/net.h>
#include <linux/unaligned.h>
#include <net/sock.h>

#include <linux/kofi/provider.h>

#include "../../../providers/sock/sock.h"

#include "../contract/contract.h"
#include "raw.h"

#define DROP_LEN	20	/* bytes of payload */
#define DROP_TAG	5
#define DROP_KEY	0x7777	/* not checked at a peer like this */
#define DROP_FROM	3	/* address of the peer */

static bool drop_bytes;
module_param(drop_bytes, bool, 0444);
MODULE_PARM_DESC(drop_bytes, "Let connections end at every byte, not only where it matters (default no)");

enum drop_end {
	DROP_FIN,
	DROP_RST,
	DROP_SHUTDOWN,
	DROP_DRAIN,
	DROP_CLOSE,
	DROP_ENDS
};

static const char *const drop_names[DROP_ENDS] = {
	"the peer closes", "the peer resets", "shutdown", "drain", "close",
};

/**
 * struct drop - one connection
 * @p: the pair whose side 1 it is
 * @raw: the peer
 * @srx: shared context the endpoint receives from, or NULL
 * @mr: region of its pool, or NULL
 * @op: the operation, or the first
 * @other: what else is outstanding, or NULL
 * @bytes: bytes of the wire so far
 * @end: how it is to end
 */
struct drop {
	struct ct_pair	*p;
	struct socket	*raw;
	struct fid_ep	*srx;
	struct fid_mr	*mr;
	struct ct_op	*op;
	struct ct_op	*other;
	size_t		bytes;
	enum drop_end	end;
};

/**
 * struct drop_case - what all connections of a test case have
 * @pair: one for each way of taking completions
 * @now: the connection there is
 * @pages: two pages to send from
 * @out: bytes to send, or to be read
 * @in: where they arrive
 * @wire: what the peer sends and takes
 */
struct drop_case {
	struct ct_pair	*pair[CT_MODES];
	struct drop	now;
	struct page	*pages;
	u8		*out;
	u8		*in;
	u8		*wire;
};

#define DROP_WIRE	512

static struct ksk_ep *drop_ep(const struct drop *d)
{
	return ksk_ep(d->p->side[1].ep);
}

#define drop_stat(d, name) READ_ONCE(drop_ep(d)->conn->stats.name)

static void drop_release(void *arg)
{
	struct drop_case *c = arg;

	if (c->now.raw)
		sock_release(c->now.raw);
	c->now.raw = NULL;
	if (c->now.p && c->now.p->side[1].ep)
		ct_ep_close(c->now.p, 1);
	if (c->now.srx)
		fi_close(&c->now.srx->fid);
	c->now.srx = NULL;
}

static void drop_pages_free(void *pages)
{
	__free_pages(pages, 1);
}

static struct drop_case *drop_open(struct kunit *test)
{
	struct drop_case *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	enum ct_mode mode;

	if (strcmp(ct_provider, "sock"))
		kunit_skip(test, "these bytes are of provider sock");
	KUNIT_ASSERT_NOT_NULL(test, c);
	c->pages = alloc_pages(GFP_KERNEL | __GFP_COMP, 1);
	KUNIT_ASSERT_NOT_NULL(test, c->pages);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, drop_pages_free,
							   c->pages));
	for (mode = 0; mode < CT_MODES; mode++) {
		const struct ct_opts opts = {
			.mode = mode, .unconnected = true,
			.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_MULTI_RECV |
				FI_DIRECTED_RECV | FI_SOURCE,
			.mr_mode = FI_MR_PROV_KEY,
		};

		c->pair[mode] = ct_pair_open(test, &opts);
	}
	c->out = page_address(c->pages);
	ct_pattern(c->out, 2 * PAGE_SIZE, 1);
	c->in = ct_buf(c->pair[0], DROP_WIRE);
	c->wire = ct_buf(c->pair[0], DROP_WIRE);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, drop_release,
							   c));
	return c;
}

static void drop_case_close(struct kunit *test, struct drop_case *c)
{
	enum ct_mode mode;

	for (mode = 0; mode < CT_MODES; mode++) {
		KUNIT_EXPECT_EQ(test, 0, atomic_read(&c->pair[mode]->anonymous));
		ct_pair_close(c->pair[mode]);
	}
}

/* What endpoints of these tests have */
static int drop_options(struct drop *d)
{
	struct fid_ep *ep = d->p->side[1].ep;
	size_t one = 1;
	int err;

	err = fi_set_val(&ep->fid, KOFI_VAL_ZEROCOPY_MIN, &(unsigned int){ 1 });
	err = err ?: fi_setopt(&ep->fid, FI_OPT_ENDPOINT, KOFI_OPT_MR_POOL,
			       &one, sizeof(one));
	err = err ?: fi_setopt(&ep->fid, FI_OPT_ENDPOINT, KOFI_OPT_MR_SEGS,
			       &one, sizeof(one));
	kofi_ep_set_source(ep, DROP_FROM);
	if (!err && d->srx)
		err = fi_ep_bind(ep, &d->srx->fid, 0);
	return err;
}

/* A connection to side 1 of one of the pairs, both ends in the data phase */
static struct drop *drop_connect(struct kunit *test, struct drop_case *c,
				 unsigned int step, enum drop_end end,
				 bool shared)
{
	struct fi_rx_attr attr = {
		.caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE,
	};
	struct drop *d = &c->now;
	struct ct_event *ev;
	struct ct_pair *p;

	p = c->pair[(step + end) % CT_MODES];
	*d = (struct drop){ .p = p, .end = end };
	ev = kunit_kmalloc(test, sizeof(*ev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ev);
	if (shared) {
		KUNIT_ASSERT_EQ(test, 0, fi_srx_context(p->domain, &attr,
							&d->srx, p));
		KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(d->srx,
						    &p->side[1].rx.cq->fid,
						    FI_RECV));
	}
	d->raw = raw_connect(test, p);
	KUNIT_ASSERT_NOT_NULL(test, d->raw);
	raw_cm(c->wire, 3, 0, 0);
	put_unaligned_be32(0x6b4f4649, c->wire + 16);	/* can invalidate */
	put_unaligned_be32(1, c->wire + 20);
	KUNIT_ASSERT_EQ(test, RAW_CM_LEN, raw_send(d->raw, c->wire, RAW_CM_LEN));
	KUNIT_ASSERT_EQ(test, 0, ct_next_event(p->side[1].eq, ev,
					       CT_TIMEOUT_MS));
	KUNIT_ASSERT_EQ(test, FI_CONNREQ, ev->event);
	KUNIT_ASSERT_EQ(test, 0, ct_ep_open(p, 1, ev->cm.info));
	fi_freeinfo(ev->cm.info);
	kunit_kfree(test, ev);
	KUNIT_ASSERT_EQ(test, 0, drop_options(d));
	KUNIT_ASSERT_EQ(test, 0, fi_accept(p->side[1].ep, NULL, 0));
	ct_expect_event(test, p->side[1].eq, FI_CONNECTED);
	KUNIT_ASSERT_EQ(test, RAW_CM_LEN, raw_recv(d->raw, c->wire, RAW_CM_LEN));
	return d;
}

/* The connection ends. */
static void drop_now(struct kunit *test, struct drop *d)
{
	struct ct_pair *p = d->p;

	switch (d->end) {
	case DROP_FIN:
		KUNIT_EXPECT_EQ(test, 0, kernel_sock_shutdown(d->raw, SHUT_WR));
		break;
	case DROP_RST:
		sock_no_linger(d->raw->sk);
		sock_release(d->raw);
		d->raw = NULL;
		break;
	case DROP_SHUTDOWN:
		KUNIT_EXPECT_EQ(test, 0, fi_shutdown(p->side[1].ep, 0));
		break;
	case DROP_DRAIN:
		/* what a shared context reports may come later */
		if (d->srx)
			kofi_ep_drain(p->side[1].ep);
		else
			ct_ep_drain(p, 1);
		break;
	default:
		if (d->srx) {
			KUNIT_EXPECT_EQ(test, 0, fi_close(&p->side[1].ep->fid));
			p->side[1].ep = NULL;
		} else {
			KUNIT_EXPECT_EQ(test, 0, ct_ep_close(p, 1));
		}
		return;
	}
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
}

static void drop_done(struct kunit *test, struct drop *d)
{
	struct ct_pair *p = d->p;

	if (p->side[1].ep) {
		KUNIT_EXPECT_EQ(test, 0, fi_close(&p->side[1].ep->fid));
		p->side[1].ep = NULL;
	}
	if (d->srx) {
		KUNIT_EXPECT_EQ(test, 0, fi_close(&d->srx->fid));
		d->srx = NULL;
	}
	ct_progress(p);
	if (d->raw)
		sock_release(d->raw);
	d->raw = NULL;
}

static void drop_expect(struct kunit *test, struct drop *d, struct ct_op *op,
			int err, const char *name)
{
	KUNIT_ASSERT_TRUE_MSG(test, ct_wait_done(d->p, op),
			      "%s: no completion, %zu bytes, %s", name,
			      d->bytes, drop_names[d->end]);
	KUNIT_EXPECT_EQ_MSG(test, err, op->wc.err, "%s, %zu bytes, %s", name,
			    d->bytes, drop_names[d->end]);
}

/* The places in a frame and its answer where something changes */
static bool drop_key(size_t at, size_t hdr, size_t frame, size_t all)
{
	return !at || at == hdr || at == frame || at == frame + 16 || at == all;
}

/*
 * The peer goes away at these places and next to them, or at every byte; so do
 * we, in all three ways at these places and in one of them at the others.
 */
static bool drop_here(size_t at, size_t hdr, size_t frame, size_t all,
		      enum drop_end end)
{
	if (drop_key(at, hdr, frame, all))
		return true;
	if (drop_bytes)
		return end <= DROP_RST || at % 3 == end - DROP_SHUTDOWN;
	return end <= DROP_RST && (drop_key(at + 1, hdr, frame, all) ||
				   drop_key(at - 1, hdr, frame, all));
}

/* ---------------------------------------------------------------- transmits */

enum drop_call {
	DROP_SEND,
	DROP_TSEND,
	DROP_INJECT,
	DROP_WRITE,
	DROP_READ,
};

struct drop_send {
	const char	*name;
	enum drop_call	call;
	u64		flags;
	unsigned int	segs;	/* 0: one page vector */
};

static const struct drop_send drop_sends[] = {
	{ "send", DROP_SEND, 0, 1 },
	{ "send, three segments", DROP_SEND, 0, 3 },
	{ "send with data", DROP_SEND, FI_REMOTE_CQ_DATA, 1 },
	{ "inject", DROP_INJECT, 0, 1 },
	{ "send with FI_INJECT", DROP_SEND, FI_INJECT, 1 },
	{ "send, more to come", DROP_SEND, FI_MORE, 1 },
	{ "send, transmit complete", DROP_SEND, FI_TRANSMIT_COMPLETE, 1 },
	{ "send, delivery complete", DROP_SEND, FI_DELIVERY_COMPLETE, 1 },
	{ "send that invalidates", DROP_SEND,
	  KOFI_REMOTE_INV | FI_DELIVERY_COMPLETE, 1 },
	{ "send of pages", DROP_SEND, 0, 0 },
	{ "send of pages, delivery complete", DROP_SEND,
	  FI_DELIVERY_COMPLETE | FI_REMOTE_CQ_DATA, 0 },
	{ "tagged send", DROP_TSEND, 0, 1 },
	{ "tagged send with data, delivery complete", DROP_TSEND,
	  FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE, 2 },
	{ "write", DROP_WRITE, 0, 1 },
	{ "write with data, delivery complete", DROP_WRITE,
	  FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE, 3 },
	{ "write of pages, delivery complete", DROP_WRITE,
	  FI_DELIVERY_COMPLETE, 0 },
	{ "read", DROP_READ, 0, 3 },
};

KUNIT_ARRAY_PARAM_DESC(drop_send, drop_sends, name);

struct drop_post {
	const struct drop_send	*s;
	struct drop_case	*c;
};

static ssize_t drop_post(struct fid_ep *ep, void *context, void *arg)
{
	const struct drop_post *post = arg;
	const struct drop_send *s = post->s;
	const struct fi_rma_iov rma = { .len = DROP_LEN, .key = DROP_KEY };
	u8 *buf = s->call == DROP_READ ? post->c->in : post->c->out;
	struct fi_msg_tagged tmsg = { .context = context, .tag = DROP_TAG };
	struct fi_msg_rma rmsg = { .context = context, .rma_iov = &rma,
				   .rma_iov_count = 1 };
	struct fi_msg msg = { .context = context, .inv_key = DROP_KEY };
	struct bio_vec bv;
	struct kvec kv[3];
	unsigned int i;

	for (i = 0; i < s->segs; i++) {
		kv[i].iov_base = buf + i * 6;
		kv[i].iov_len = i + 1 < s->segs ? 6 : DROP_LEN - 6 * i;
	}
	msg.msg_iov = kv;
	msg.iov_count = s->segs;
	if (!s->segs) {
		bvec_set_page(&bv, post->c->pages, DROP_LEN, 0);
		msg.msg_bvec = &bv;
		msg.iov_count = 1;
		msg.vec = KOFI_BVEC;
	}
	tmsg.msg_iov = msg.msg_iov;	/* of a union of pointers */
	tmsg.iov_count = msg.iov_count;
	tmsg.vec = msg.vec;
	rmsg.msg_iov = msg.msg_iov;
	rmsg.iov_count = msg.iov_count;
	rmsg.vec = msg.vec;
	switch (s->call) {
	case DROP_SEND:
		return fi_sendmsg(ep, &msg, s->flags);
	case DROP_TSEND:
		return fi_tsendmsg(ep, &tmsg, s->flags);
	case DROP_WRITE:
		return fi_writemsg(ep, &rmsg, s->flags);
	case DROP_READ:
		return fi_readmsg(ep, &rmsg, s->flags);
	default:
		return fi_inject(ep, buf, DROP_LEN, 0);
	}
}

static size_t drop_send_frame(const struct drop_send *s)
{
	return 16 + (s->flags & FI_REMOTE_CQ_DATA ? 8 : 0) +
	       (s->flags & KOFI_REMOTE_INV ? 8 : 0) +
	       (s->call == DROP_TSEND ? 8 : 0) +
	       (s->call == DROP_WRITE || s->call == DROP_READ ? 24 : 0) +
	       (s->call == DROP_READ ? 0 : DROP_LEN);
}

/* What the peer answers; returns how many bytes that are. */
static size_t drop_answer(const struct drop_send *s, u8 *b)
{
	if (s->call == DROP_READ) {
		raw_frame(b, 3, 0, 0, 0, 16, 16 + DROP_LEN);
		ct_pattern(b + 16, DROP_LEN, 2);
		return 16 + DROP_LEN;
	}
	if (!(s->flags & (FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)))
		return 0;
	raw_frame(b, 0, 0, 2, 0, 16, 16);
	return 16;
}

static void drop_send_at(struct kunit *test, struct drop_case *c,
			 const struct drop_send *s, size_t at,
			 enum drop_end end)
{
	struct drop *d = drop_connect(test, c, at, end, false);
	size_t frame = drop_send_frame(s), take = min(at, frame), answer;
	struct drop_post post = { .s = s, .c = c };
	struct ct_pair *p = d->p;

	d->bytes = at;
	d->op = s->call == DROP_INJECT ? NULL : ct_op(p);
	KUNIT_ASSERT_EQ(test, 0, ct_post_fn(p, 1, d->op, drop_post, &post));
	KUNIT_ASSERT_TRUE(test, ct_wait(p, drop_stat(d, tx_frames) == 1,
					CT_TIMEOUT_MS));
	if (take)
		KUNIT_ASSERT_EQ(test, take, raw_recv(d->raw, c->wire, take));
	answer = drop_answer(s, c->wire);
	if (at > frame) {
		KUNIT_ASSERT_EQ(test, at - frame,
				raw_send(d->raw, c->wire, at - frame));
		KUNIT_ASSERT_TRUE(test, ct_wait(p, drop_stat(d, rx_bytes) ==
						at - frame, CT_TIMEOUT_MS));
	}
	drop_now(test, d);
	/* TCP may not know yet that pages which are out have arrived */
	if (d->op && !s->segs && !answer) {
		KUNIT_ASSERT_TRUE(test, ct_wait_done(p, d->op));
		if (d->op->wc.err != ECANCELED)
			KUNIT_EXPECT_EQ(test, 0, d->op->wc.err);
	} else if (d->op) {
		drop_expect(test, d, d->op,
			    answer && at < frame + answer ? ECANCELED : 0,
			    s->name);
	}
	if (d->op && !d->op->wc.err && s->call == DROP_READ)
		KUNIT_EXPECT_TRUE(test, ct_pattern_ok(c->in, DROP_LEN, 2));
	drop_done(test, d);
}

static void drop_sending(struct kunit *test)
{
	const struct drop_send *s = test->param_value;
	struct drop_case *c = drop_open(test);
	size_t at, frame = drop_send_frame(s);
	size_t hdr = frame - (s->call == DROP_READ ? 0 : DROP_LEN);
	size_t all = frame + drop_answer(s, c->wire);
	enum drop_end end;

	for (end = 0; end < DROP_ENDS; end++)
		for (at = 0; at <= all; at++)
			if (drop_here(at, hdr, frame, all, end))
				drop_send_at(test, c, s, at, end);
	drop_case_close(test, c);
}

/* ----------------------------------------------------------------- receives */

enum drop_want {
	WANT_RECV,
	WANT_SHORT,	/* a receive that is too short */
	WANT_MULTI,	/* two messages for one receive */
	WANT_CLAIM,	/* it is kept, and then received */
	WANT_DISCARD,
	WANT_ONESHOT,	/* a region is read, written or invalidated */
};

struct drop_recv {
	const char	*name;
	enum drop_want	want;
	u8		op;
	u16		flags;	/* on the wire */
	bool		shared;
	bool		directed;
};

static const struct drop_recv drop_recvs[] = {
	{ "receive", WANT_RECV, 0, 0 },
	{ "receive, data", WANT_RECV, 0, KSK_F_CQ_DATA },
	{ "receive, acknowledged", WANT_RECV, 0, KSK_F_DELIVERY },
	{ "receive, directed", WANT_RECV, 0, 0, .directed = true },
	{ "receive, too short", WANT_SHORT, 0, 0 },
	{ "tagged receive", WANT_RECV, 1, KSK_F_CQ_DATA | KSK_F_DELIVERY },
	{ "tagged receive, directed", WANT_RECV, 1, 0, .directed = true },
	{ "shared receive", WANT_RECV, 0, KSK_F_DELIVERY, .shared = true },
	{ "shared receive, tagged and directed", WANT_RECV, 1, 0,
	  .shared = true, .directed = true },
	{ "multi-receive", WANT_MULTI, 0, KSK_F_CQ_DATA },
	{ "multi-receive, shared", WANT_MULTI, 0, 0, .shared = true },
	{ "claimed message", WANT_CLAIM, 1, 0 },
	{ "claimed message, shared", WANT_CLAIM, 1, KSK_F_DELIVERY,
	  .shared = true },
	{ "discarded message", WANT_DISCARD, 1, KSK_F_DELIVERY },
	{ "single-use region, read", WANT_ONESHOT, 2, 0 },
	{ "single-use region, written", WANT_ONESHOT, 4, 0 },
	{ "single-use region, invalidated", WANT_ONESHOT, 0, KSK_F_REMOTE_INV },
};

KUNIT_ARRAY_PARAM_DESC(drop_recv, drop_recvs, name);

/**
 * struct drop_arg - a receive, or a region
 * @r: what for
 * @d: the connection
 * @buf: the memory
 * @flags: of fi_trecvmsg()
 */
struct drop_arg {
	const struct drop_recv	*r;
	struct drop		*d;
	u8			*buf;
	u64			flags;
};

static ssize_t drop_post_recv(struct fid_ep *ep, void *context, void *arg)
{
	const struct drop_arg *a = arg;
	bool multi = a->r->want == WANT_MULTI;
	const struct kvec iov = {
		.iov_base = a->buf,
		.iov_len = multi ? DROP_WIRE :
			   a->r->want == WANT_SHORT ? DROP_LEN - 3 : DROP_LEN,
	};
	fi_addr_t src = a->r->directed ? DROP_FROM : FI_ADDR_UNSPEC;
	const struct fi_msg_tagged tmsg = {
		.msg_iov = &iov, .iov_count = 1, .context = context,
		.addr = src, .tag = DROP_TAG,
	};
	const struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .context = context,
		.addr = src,
	};

	ep = a->d->srx ?: ep;
	if (a->r->op == 1)
		return fi_trecvmsg(ep, &tmsg, a->flags);
	return fi_recvmsg(ep, &msg, multi ? FI_MULTI_RECV : 0);
}

static ssize_t drop_post_map(struct fid_ep *ep, void *context, void *arg)
{
	struct drop_arg *a = arg;
	const struct kvec iov = { .iov_base = a->buf, .iov_len = DROP_LEN };
	const struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .context = context,
	};

	a->d->mr = kofi_mr_get(ep);
	if (!a->d->mr)
		return -ENOBUFS;
	return kofi_mr_map(a->d->mr, &msg, FI_REMOTE_READ | FI_REMOTE_WRITE,
			   FI_MR_SINGLE_USE);
}

/* The frame the peer sends; its length. The header's goes to @hdr. */
static size_t drop_frame(const struct drop *d, const struct drop_recv *r,
			 u8 *b, size_t *hdr)
{
	size_t payload = r->op == 2 ? 0 : DROP_LEN;
	bool rma = r->op == 2 || r->op == 4;
	u8 *word = b + 16;

	if (r->flags & KSK_F_CQ_DATA) {
		memset(word, 0x11, 8);
		word += 8;
	}
	if (r->flags & KSK_F_REMOTE_INV) {
		put_unaligned(fi_mr_key(d->mr), (u64 *)word);
		word += 8;
	}
	if (r->op == 1) {
		put_unaligned((u64)DROP_TAG, (u64 *)word);
		word += 8;
	}
	if (rma) {
		put_unaligned(kofi_mr_base(d->mr), (u64 *)word);
		put_unaligned((u64)DROP_LEN, (u64 *)(word + 8));
		put_unaligned(fi_mr_key(d->mr), (u64 *)(word + 16));
		word += 24;
	}
	*hdr = word - b;
	raw_frame(b, r->op, r->flags, 0, rma, *hdr, *hdr + payload);
	ct_pattern(word, payload, 3);
	return *hdr + payload;
}

static void drop_send_raw(struct kunit *test, struct drop *d, const u8 *b,
			  size_t len, size_t consumed)
{
	d->bytes = len;
	if (len)
		KUNIT_ASSERT_EQ(test, len, raw_send(d->raw, b, len));
	KUNIT_ASSERT_TRUE(test, ct_wait(d->p, drop_stat(d, rx_bytes) ==
					consumed, CT_TIMEOUT_MS));
}

/* How a receive ends of whose message so much has come */
static int drop_recv_err(size_t at, size_t hdr, size_t frame)
{
	int err = at < frame ? ENOTCONN : 0;

	if (at < hdr)
		err = ECANCELED;
	return err;
}

static void drop_recv_plain(struct kunit *test, struct drop_case *c,
			    const struct drop_recv *r, struct drop *d,
			    size_t at)
{
	struct drop_arg arg = { .r = r, .d = d, .buf = c->in };
	size_t hdr, frame = drop_frame(d, r, c->wire, &hdr);
	int err = drop_recv_err(at, hdr, frame);

	memset(c->in, 0, DROP_LEN);
	d->op = ct_op(d->p);
	KUNIT_ASSERT_EQ(test, 0, ct_post_fn(d->p, 1, d->op, drop_post_recv,
					    &arg));
	drop_send_raw(test, d, c->wire, at, at);
	drop_now(test, d);
	if (err == ECANCELED && d->srx) {
		/* it is there for others, until the context is closed */
		ct_progress(d->p);
		KUNIT_EXPECT_FALSE(test, ct_is_done(d->op));
		drop_done(test, d);
	}
	if (!err && r->want == WANT_SHORT)
		err = FI_ETRUNC;
	drop_expect(test, d, d->op, err, r->name);
	if (!err)
		KUNIT_EXPECT_TRUE(test, ct_pattern_ok(c->in, DROP_LEN, 3));
}

/* Each part of a multi-receive is a completion; it has an end of its own. */
struct drop_parts {
	int	n;
	int	err[4];
	u64	flags[4];
};

static void drop_count_part(struct ct_op *op)
{
	struct drop_parts *parts = op->buf;

	if (parts->n < ARRAY_SIZE(parts->err)) {
		parts->err[parts->n] = op->wc.err;
		parts->flags[parts->n] = op->wc.flags & FI_MULTI_RECV;
	}
	parts->n++;
}

static void drop_recv_multi(struct kunit *test, struct drop_case *c,
			    const struct drop_recv *r, struct drop *d,
			    size_t at)
{
	struct drop_arg arg = { .r = r, .d = d, .buf = c->in };
	size_t hdr, frame = drop_frame(d, r, c->wire, &hdr);
	struct drop_parts got = {}, want = {};
	int i;

	memcpy(c->wire + frame, c->wire, frame);
	for (i = 0; i < 2 && at >= i * frame + hdr; i++)
		want.err[want.n++] = drop_recv_err(at - i * frame, hdr, frame);
	want.flags[want.n] = FI_MULTI_RECV;
	want.err[want.n++] = ECANCELED;

	d->op = ct_op(d->p);
	d->op->buf = &got;
	d->op->hook = drop_count_part;
	KUNIT_ASSERT_EQ(test, 0, ct_post_fn(d->p, 1, d->op, drop_post_recv,
					    &arg));
	atomic_add(want.n - 1, &d->op->posted);
	drop_send_raw(test, d, c->wire, at, at);
	drop_now(test, d);
	if (d->srx)
		drop_done(test, d);
	KUNIT_ASSERT_TRUE_MSG(test, ct_wait_done(d->p, d->op),
			      "%zu bytes, %s: %d of %d", at,
			      drop_names[d->end], got.n, want.n);
	KUNIT_EXPECT_MEMEQ_MSG(test, &want, &got, sizeof(want),
			       "%zu bytes, %s: %d parts, errors %d %d %d", at,
			       drop_names[d->end], got.n, got.err[0],
			       got.err[1], got.err[2]);
}

/* What waits for no peer is looked at first, with the same context. */
static void drop_recv_peek(struct kunit *test, struct drop_case *c,
			   const struct drop_recv *r, struct drop *d, size_t at)
{
	u64 how = r->want == WANT_CLAIM ? FI_CLAIM : FI_DISCARD;
	struct drop_arg arg = {
		.r = r, .d = d, .buf = c->in, .flags = FI_PEEK | how,
	};
	size_t hdr, frame = drop_frame(d, r, c->wire, &hdr);
	int err = at < hdr ? FI_ENOMSG : 0;

	d->op = ct_op(d->p);
	drop_send_raw(test, d, c->wire, at, min(at, hdr));
	if (!err)
		KUNIT_ASSERT_TRUE(test, ct_wait(d->p, drop_stat(d, rx_stalls) ==
						1, CT_TIMEOUT_MS));
	KUNIT_ASSERT_EQ(test, 0, ct_post_fn(d->p, 1, d->op, drop_post_recv,
					    &arg));
	drop_expect(test, d, d->op, err, r->name);
	if (!err && how == FI_CLAIM) {
		arg.flags = FI_CLAIM;
		KUNIT_ASSERT_EQ(test, 0, ct_post_fn(d->p, 1, d->op,
						    drop_post_recv, &arg));
		err = drop_recv_err(at, hdr, frame);
	}
	KUNIT_ASSERT_TRUE(test, ct_wait(d->p, drop_stat(d, rx_bytes) == at,
					CT_TIMEOUT_MS));
	drop_now(test, d);
	drop_expect(test, d, d->op, err, r->name);
}

/* A region, and a receive for the message that may invalidate it */
static void drop_recv_oneshot(struct kunit *test, struct drop_case *c,
			      const struct drop_recv *r, struct drop *d,
			      size_t at)
{
	static const struct drop_recv plain = { .want = WANT_RECV };
	struct drop_arg arg = { .r = r, .d = d, .buf = c->in };
	struct drop_arg recv = { .r = &plain, .d = d, .buf = c->in + 64 };
	size_t hdr, frame;

	d->op = ct_op(d->p);
	d->other = ct_op(d->p);
	KUNIT_ASSERT_EQ(test, 0, ct_post_fn(d->p, 1, d->op, drop_post_map,
					    &arg));
	KUNIT_ASSERT_EQ(test, 0, ct_post_fn(d->p, 1, d->other, drop_post_recv,
					    &recv));
	frame = drop_frame(d, r, c->wire, &hdr);
	drop_send_raw(test, d, c->wire, at, at);
	/* the response is on its way, and that is all a read needs */
	if (r->op == 2 && at == frame)
		KUNIT_ASSERT_TRUE(test, ct_wait(d->p,
						drop_stat(d, tx_responses) == 1,
						CT_TIMEOUT_MS));
	drop_now(test, d);
	/* the end of a region is that of its endpoint, not of the connection */
	if (at < frame)
		drop_done(test, d);
	drop_expect(test, d, d->op, at == frame ? 0 : ECANCELED, r->name);
	drop_expect(test, d, d->other,
		    r->op ? ECANCELED : drop_recv_err(at, hdr, frame), r->name);
}

static void drop_recv_at(struct kunit *test, struct drop_case *c,
			 const struct drop_recv *r, size_t at,
			 enum drop_end end)
{
	struct drop *d = drop_connect(test, c, at, end, r->shared);

	switch (r->want) {
	case WANT_MULTI:
		drop_recv_multi(test, c, r, d, at);
		break;
	case WANT_CLAIM:
	case WANT_DISCARD:
		drop_recv_peek(test, c, r, d, at);
		break;
	case WANT_ONESHOT:
		drop_recv_oneshot(test, c, r, d, at);
		break;
	default:
		drop_recv_plain(test, c, r, d, at);
		break;
	}
	drop_done(test, d);
}

static size_t drop_recv_header(const struct drop_recv *r)
{
	return 16 + (r->flags & KSK_F_CQ_DATA ? 8 : 0) +
	       (r->flags & KSK_F_REMOTE_INV ? 8 : 0) +
	       (r->op == 1 ? 8 : 0) + (r->op > 1 ? 24 : 0);
}

static void drop_receiving(struct kunit *test)
{
	const struct drop_recv *r = test->param_value;
	struct drop_case *c = drop_open(test);
	size_t at, hdr = drop_recv_header(r);
	size_t frame = hdr + (r->op == 2 ? 0 : DROP_LEN);
	size_t all = r->want == WANT_MULTI ? 2 * frame : frame;
	enum drop_end end;

	for (end = 0; end < DROP_ENDS; end++)
		for (at = 0; at <= all; at++)
			if (drop_here(at % frame, hdr, frame, all, end))
				drop_recv_at(test, c, r, at, end);
	drop_case_close(test, c);
}

static struct kunit_case drop_wire_cases[] = {
	KUNIT_CASE_PARAM(drop_sending, drop_send_gen_params),
	KUNIT_CASE_PARAM(drop_receiving, drop_recv_gen_params),
	{}
};

static struct kunit_suite drop_wire_suite = {
	.name = "sock_drop_wire",
	.suite_init = lo_suite_init,
	.test_cases = drop_wire_cases,
};

kunit_test_suite(drop_wire_suite);

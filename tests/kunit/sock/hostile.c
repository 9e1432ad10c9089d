// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contract 6 and 13 for kofi_sock: a peer that violates the protocol, terminates or falls
 * silent. The peer is a plain TCP socket that speaks bytes written down in the tests, from
 * the description of the wire, not from the provider's headers.
 *
 * Each case has two pairs of objects: in one the violating socket is the peer of side 1, the
 * other is a connection that must not notice. A violation terminates its own connection, is
 * counted, and has no other effect.
 */
#include <linux/net.h>
#include <linux/slab.h>

#include <linux/kofi/provider.h>

#include "hostile.h"
#include "raw.h"

/* ---------------------------------------------------------- the raw socket */

void hostile_release(void *arg)
{
	struct hostile *h = arg;

	if (h->raw)
		sock_release(h->raw);
	h->raw = NULL;
}

/* The other end has closed the connection, one way or the other. */
void hostile_expect_closed(struct kunit *test, struct socket *sock)
{
	u8 b[64];
	int n;

	do {
		n = raw_recv(sock, b, sizeof(b));
	} while (n > 0);
	if (n != 0 && n != -ECONNRESET && n != -EPIPE)
		KUNIT_FAIL(test, "the connection is open: %d", n);
}

/* -------------------------------------------------------------- statistics */

struct stat_query {
	const char	*name;
	u64		value;
	bool		found;
};

static void stat_take(void *arg, const char *name, u64 value)
{
	struct stat_query *q = arg;

	if (strcmp(name, q->name))
		return;
	q->value = value;
	q->found = true;
}

u64 hostile_stat(struct kunit *test, struct fi_fid *fid, const char *name)
{
	struct stat_query q = { .name = name };
	struct kofi_obj *obj = fid->obj;

	KUNIT_ASSERT_NOT_NULL(test, obj->ops);
	obj->ops->stats(obj, stat_take, &q);
	KUNIT_EXPECT_TRUE_MSG(test, q.found, "no statistic %s", name);
	return q.value;
}

/* ------------------------------------------------------------------- cases */

void hostile_innocent(struct hostile *h)
{
	struct ct_pair *p = h->good;
	int side;

	for (side = 0; side < 2; side++) {
		struct ct_op *r = ct_op(p), *s = ct_op(p);

		ct_pattern(h->buf, 64, 11);
		KUNIT_EXPECT_EQ(p->test, ct_recv(p, !side, r, h->buf + 64, 64), 0);
		KUNIT_EXPECT_EQ(p->test, ct_send(p, side, s, h->buf, 64), 0);
		KUNIT_EXPECT_TRUE(p->test, ct_wait_all(p));
		KUNIT_EXPECT_EQ(p->test, r->wc.err, 0);
		KUNIT_EXPECT_TRUE(p->test, ct_pattern_ok(h->buf + 64, 64, 11));
	}
}

struct hostile *hostile_open(struct kunit *test, const struct ct_opts *opts)
{
	struct hostile *h = kunit_kzalloc(test, sizeof(*h), GFP_KERNEL);

	if (strcmp(ct_provider, "sock"))
		kunit_skip(test, "these bytes are of provider sock");
	KUNIT_ASSERT_NOT_NULL(test, h);
	h->good = ct_pair_mode(test, CT_READ);
	h->bad = ct_pair_open(test, opts);
	h->buf = ct_buf(h->bad, 8192);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, hostile_release, h), 0);
	return h;
}

/* Everything goes on for everybody else, also behind the same listener. */
void hostile_close(struct hostile *h)
{
	struct ct_pair *p = h->bad;

	hostile_innocent(h);
	hostile_release(h);
	if (p->side[1].ep)
		KUNIT_EXPECT_EQ(p->test, ct_ep_close(p, 1), 0);
	KUNIT_EXPECT_EQ(p->test, ct_pair_connect(p), 0);
	ct_pair_close(p);
	ct_pair_close(h->good);
}

/* A connection in its data phase, with one receive posted at side 1. */
struct hostile *hostile_live(struct kunit *test, const struct ct_opts *more)
{
	struct ct_opts opts = { .mode = CT_READ };
	struct hostile *h;
	struct ct_event *ev;
	struct ct_pair *p;

	if (more)
		opts = *more;
	opts.unconnected = true;
	h = hostile_open(test, &opts);
	p = h->bad;
	ev = ct_buf(p, sizeof(*ev));
	h->raw = raw_connect(test, p);
	KUNIT_ASSERT_NOT_NULL(test, h->raw);
	raw_cm(h->buf, 3, 0, 0);
	KUNIT_ASSERT_EQ(test, raw_send(h->raw, h->buf, RAW_CM_LEN), RAW_CM_LEN);
	KUNIT_ASSERT_EQ(test, ct_next_event(p->side[1].eq, ev, CT_TIMEOUT_MS), 0);
	KUNIT_ASSERT_EQ(test, ev->event, FI_CONNREQ);
	KUNIT_ASSERT_EQ(test, ct_ep_open(p, 1, ev->cm.info), 0);
	fi_freeinfo(ev->cm.info);
	KUNIT_ASSERT_EQ(test, fi_accept(p->side[1].ep, NULL, 0), 0);
	ct_expect_event(test, p->side[1].eq, FI_CONNECTED);
	KUNIT_ASSERT_EQ(test, raw_recv(h->raw, h->buf, RAW_CM_LEN), RAW_CM_LEN);
	KUNIT_EXPECT_EQ(test, h->buf[0], 3);
	KUNIT_EXPECT_EQ(test, h->buf[1], 1);
	h->recv = ct_op(p);
	KUNIT_ASSERT_EQ(test, ct_recv(p, 1, h->recv, ct_buf(p, HOSTILE_RECV),
				      HOSTILE_RECV), 0);
	return h;
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Work requests that are posted together: how often the device is told of them,
 * and what comes of those that it refuses. Its post functions are replaced by some
 * that count and refuse.
 */

#include <linux/kofi/provider.h>
#include <linux/slab.h>

#include "../../../providers/verbs/verbs.h"
#include "../contract/contract.h"
#include "link.h"

#define CH_LEN		64
#define CH_MORE		6
#define CH_POOL		4
#define CH_MR_MODE	(FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED)
#define CH_ALL		(FI_REMOTE_READ | FI_REMOTE_WRITE)
#define CH_CAPS		(FI_MSG | FI_SEND | FI_RECV | FI_RMA | FI_READ | \
			 FI_WRITE | CH_ALL)

/**
 * struct ch - the device
 * @ops: its own functions
 * @ib: the device
 * @rings: times it was given work requests for sending
 * @recv_rings: the same for receives
 * @refuse_after: so many of a list are taken, and the rest refused; -1: all are
 *	taken
 * @refuse_recv: the same for receives, but once
 * @refuse_inline: and those that take their bytes along are refused
 * @error: with which; once only, unless it is for want of room
 */
static struct ch {
	typeof_member(struct ib_device, ops)	ops;
	struct ib_device	*ib;
	atomic_t		rings;
	atomic_t		recv_rings;
	int			refuse_after;
	int			refuse_recv;
	bool			refuse_inline;
	int			error;
} *ch;

/* The manager says goodbye for connections that were, at any time. */
static bool ch_manages(const struct ib_qp *qp)
{
	return qp->qp_type == IB_QPT_GSI;
}

static int ch_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			const struct ib_send_wr **bad)
{
	struct ib_send_wr *last = NULL, *one;
	int nr = ch->refuse_after, err = 0;

	if (ch_manages(qp))
		return ch->ops.post_send(qp, wr, bad);
	atomic_inc(&ch->rings);
	for (one = (struct ib_send_wr *)wr; one && nr; one = one->next, nr--) {
		if (ch->refuse_inline && one->send_flags & IB_SEND_INLINE)
			break;
		last = one;
	}
	if (last) {
		last->next = NULL;
		err = ch->ops.post_send(qp, wr, bad);
		last->next = one;
	}
	if (err || !one)
		return err;
	*bad = one;
	if (ch->error != -ENOMEM)
		ch->refuse_after = -1;
	return ch->error;
}

static int ch_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad)
{
	struct ib_recv_wr *last = NULL, *one;
	int nr = ch->refuse_recv, err = 0;

	if (ch_manages(qp))
		return ch->ops.post_recv(qp, wr, bad);
	atomic_inc(&ch->recv_rings);
	for (one = (struct ib_recv_wr *)wr; one && nr; one = one->next, nr--)
		last = one;
	if (last) {
		last->next = NULL;
		err = ch->ops.post_recv(qp, wr, bad);
		last->next = one;
	}
	if (err || !one)
		return err;
	ch->refuse_recv = -1;
	*bad = one;
	return ch->error;
}

static void ch_restore(void *arg)
{
	ch->ib->ops = ch->ops;
	ib_device_put(ch->ib);
}

static int ch_init(struct kunit *test)
{
	link_test_init(test);
	ch = kunit_kzalloc(test, sizeof(*ch), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ch);
	ch->ib = link_device(ct_device);
	KUNIT_ASSERT_NOT_NULL(test, ch->ib);
	ch->ops = ch->ib->ops;
	ch->refuse_after = -1;
	ch->refuse_recv = -1;
	ch->error = -ENOMEM;
	ch->ib->ops.post_send = ch_post_send;
	ch->ib->ops.post_recv = ch_post_recv;
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, ch_restore, NULL),
			0);
	return 0;
}

static struct ct_pair *ch_open(struct kunit *test, enum ct_mode mode)
{
	const struct ct_opts opts = {
		.mode = mode, .caps = CH_CAPS, .mr_mode = CH_MR_MODE,
		.mr_pool = CH_POOL,
	};

	return ct_pair_open(test, &opts);
}

/**
 * struct ch_burst - messages from side 0 to side 1
 * @p: the pair
 * @tx: they
 * @rx: where they go
 * @mem: of a message
 * @in: of a receive, which may be of all
 * @ret: what the posts have returned
 */
struct ch_burst {
	struct ct_pair	*p;
	struct ct_op	*tx[CH_MORE];
	struct ct_op	*rx[CH_MORE];
	void		*mem;
	u8		*in;
	ssize_t		ret[CH_MORE];
};

static struct ch_burst *ch_burst(struct ct_pair *p)
{
	struct ch_burst *b = kunit_kzalloc(p->test, sizeof(*b), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(p->test, b);
	b->p = p;
	b->mem = ct_buf(p, CH_LEN);
	b->in = ct_buf(p, CH_LEN);
	for (i = 0; i < CH_MORE; i++) {
		b->tx[i] = ct_op(p);
		b->rx[i] = ct_op(p);
	}
	return b;
}

static void ch_receive(struct ch_burst *b, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		KUNIT_EXPECT_EQ(b->p->test,
				ct_recv(b->p, 1, b->rx[i], ct_buf(b->p, CH_LEN),
					CH_LEN), 0);
}

/*
 * All but the one at LAST say that more follows. No timer runs meanwhile; returns
 * how often the device was told.
 */
static int ch_send(struct ch_burst *b, int last)
{
	const struct kvec kv = { b->mem, CH_LEN };
	int i, before;

	local_bh_disable();
	before = atomic_read(&ch->rings);
	for (i = 0; i < CH_MORE; i++) {
		struct fi_msg msg = { .msg_iov = &kv, .iov_count = 1 };

		b->ret[i] = ct_post_send(b->p, 0, b->tx[i], &msg,
					 FI_COMPLETION |
					 (i == last ? 0 : FI_MORE));
	}
	before = atomic_read(&ch->rings) - before;
	local_bh_enable();
	return before;
}

/* As many as were accepted have been sent and have come, in order. */
static void ch_expect_all(struct ch_burst *b, int nr)
{
	struct kunit *test = b->p->test;
	int i;

	for (i = 0; i < nr; i++) {
		KUNIT_EXPECT_EQ(test, b->ret[i], 0);
		KUNIT_EXPECT_TRUE(test, ct_wait_done(b->p, b->tx[i]));
		KUNIT_EXPECT_TRUE(test, ct_wait_done(b->p, b->rx[i]));
		KUNIT_EXPECT_EQ(test, b->tx[i]->wc.err, 0);
		KUNIT_EXPECT_EQ(test, b->rx[i]->wc.err, 0);
		if (i)
			KUNIT_EXPECT_GT(test, b->tx[i]->seq,
					b->tx[i - 1]->seq);
	}
}

/* --------------------------------------------------------------- FI_MORE */

/* The device is told once of messages that belong together. */
static void chain_more(struct kunit *test)
{
	struct ct_pair *p = ch_open(test, ct_mode_of(test));
	struct ch_burst *b = ch_burst(p);

	ch_receive(b, CH_MORE);
	KUNIT_EXPECT_EQ(test, ch_send(b, CH_MORE - 1), 1);
	ch_expect_all(b, CH_MORE);
	/* nothing follows: they go all the same */
	b = ch_burst(p);
	ch_receive(b, CH_MORE);
	KUNIT_EXPECT_EQ(test, ch_send(b, CH_MORE), 0);
	ch_expect_all(b, CH_MORE);
	ct_pair_close(p);
}

/* Also if the endpoint ends first, each completes once. */
static void chain_more_close(struct kunit *test)
{
	struct ct_pair *p = ch_open(test, ct_mode_of(test));
	struct ch_burst *b = ch_burst(p);
	int i;

	ch_receive(b, CH_MORE);
	ch_send(b, CH_MORE);
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	for (i = 0; i < CH_MORE; i++)
		KUNIT_EXPECT_TRUE(test, !b->tx[i]->wc.err ||
				  b->tx[i]->wc.err == ECANCELED);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	ct_pair_close(p);
}

static const int ch_somes[] = { 0, 1, CH_MORE - 2, CH_MORE - 1 };

static void ch_some_desc(const int *some, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "after-%d", *some);
}

KUNIT_ARRAY_PARAM(ch_some, ch_somes, ch_some_desc);

/* What the device has no room for it gets again, and all that was accepted goes. */
static void chain_full(struct kunit *test)
{
	const int some = *(const int *)test->param_value;
	struct ct_pair *p = ch_open(test, CT_SOFTIRQ);
	struct ch_burst *b = ch_burst(p), *then = ch_burst(p);

	ch_receive(b, CH_MORE);
	ch_receive(then, CH_MORE);
	ch->refuse_after = some;
	ch_send(b, CH_MORE - 1);
	ch->refuse_after = -1;
	if (some == CH_MORE - 1) {
		/* not accepted */
		KUNIT_EXPECT_EQ(test, b->ret[some], -EAGAIN);
		b->ret[some] = ct_send(p, 0, b->tx[some], b->mem, CH_LEN);
	}
	ch_send(then, CH_MORE - 1);
	ch_expect_all(b, CH_MORE);
	ch_expect_all(then, CH_MORE);
	ct_pair_close(p);
}

/* What it refuses for good ends the connection, unless it can be given back. */
static void chain_refused(struct kunit *test)
{
	const int some = *(const int *)test->param_value;
	struct ct_pair *p = ch_open(test, CT_SOFTIRQ);
	struct ch_burst *b = ch_burst(p);
	bool last = some == CH_MORE - 1;
	int i;

	ch_receive(b, CH_MORE);
	ch->refuse_after = some;
	ch->error = -EIO;
	ch_send(b, CH_MORE - 1);
	ch->refuse_after = -1;
	if (last) {
		KUNIT_EXPECT_EQ(test, b->ret[some], -EIO);
		ch_expect_all(b, some);
		ct_pair_close(p);
		return;
	}
	ct_expect_event(test, p->side[0].eq, FI_SHUTDOWN);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	for (i = some; i < CH_MORE; i++) {
		KUNIT_EXPECT_EQ(test, b->ret[i], 0);
		KUNIT_EXPECT_NE(test, b->tx[i]->wc.err, 0);
		KUNIT_EXPECT_NE(test, b->rx[i]->wc.err, 0);
	}
	ct_pair_close(p);
}

/* A queue pair that has failed: no error of the operations. */
static void chain_ended(struct kunit *test)
{
	struct ct_pair *p = ch_open(test, ct_mode_of(test));
	struct ch_burst *b = ch_burst(p);
	int i;

	ch_receive(b, CH_MORE);
	ch->refuse_after = 0;
	ch->error = -ENOTCONN;
	ch_send(b, CH_MORE - 1);
	ch->refuse_after = -1;
	ct_expect_event(test, p->side[0].eq, FI_SHUTDOWN);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	for (i = 0; i < CH_MORE; i++) {
		KUNIT_EXPECT_EQ(test, b->ret[i], 0);
		KUNIT_EXPECT_EQ(test, b->tx[i]->wc.err, ECANCELED);
	}
	ct_pair_close(p);
}

/* The connection is shut down while the device has no room: all goes before. */
static void chain_shutdown(struct kunit *test)
{
	struct ct_pair *p = ch_open(test, ct_mode_of(test));
	struct ch_burst *b = ch_burst(p);

	ch_receive(b, CH_MORE);
	ch->refuse_after = 0;
	ch_send(b, CH_MORE - 1);
	KUNIT_EXPECT_EQ(test, fi_shutdown(p->side[0].ep, 0), 0);
	KUNIT_EXPECT_EQ(test, ct_send(p, 0, ct_op(p), b->mem, CH_LEN),
			-ESHUTDOWN);
	ch->refuse_after = -1;
	ch_expect_all(b, CH_MORE);
	ct_expect_event(test, p->side[0].eq, FI_SHUTDOWN);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	ct_pair_close(p);
}

/* Or it refuses them for good meanwhile. */
static void chain_shutdown_refused(struct kunit *test)
{
	struct ct_pair *p = ch_open(test, ct_mode_of(test));
	struct ch_burst *b = ch_burst(p);
	int i;

	ch_receive(b, CH_MORE);
	ch->refuse_after = 0;
	ch_send(b, CH_MORE - 1);
	KUNIT_EXPECT_EQ(test, fi_shutdown(p->side[0].ep, 0), 0);
	WRITE_ONCE(ch->error, -EIO);
	ct_expect_event(test, p->side[0].eq, FI_SHUTDOWN);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	ch->refuse_after = -1;
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	for (i = 0; i < CH_MORE; i++) {
		KUNIT_EXPECT_NE(test, b->tx[i]->wc.err, 0);
		KUNIT_EXPECT_NE(test, b->rx[i]->wc.err, 0);
	}
	ct_pair_close(p);
}

static bool ch_inlines(const struct ct_pair *p)
{
	return vrb_ep(p->side[0].ep)->limits.max_inline >= CH_LEN;
}

/*
 * A device may take less along than it has granted: it is asked with what is posted
 * at once, and what waits does not notice.
 */
static void chain_inject(struct kunit *test)
{
	struct ct_pair *p = ch_open(test, ct_mode_of(test));
	struct ch_burst *b = ch_burst(p);
	const struct kvec kv = { b->mem, CH_LEN };
	struct fi_msg msg = { .msg_iov = &kv, .iov_count = 1 };
	const bool asked = ch_inlines(p);
	int i, before;

	ch->refuse_inline = true;
	ch->error = -EINVAL;
	ch_receive(b, 3);
	local_bh_disable();
	before = atomic_read(&ch->rings);
	for (i = 0; i < 3; i++)
		b->ret[i] = ct_post_send(p, 0, b->tx[i], &msg, FI_COMPLETION |
					 (i ? FI_INJECT : 0) |
					 (i < 2 ? FI_MORE : 0));
	KUNIT_EXPECT_EQ(test, atomic_read(&ch->rings), before + 1 + asked);
	local_bh_enable();
	ch_expect_all(b, 3);
	ct_pair_close(p);
}

/* --------------------------------------------------------------- regions */

static struct fid_mr *ch_map(struct ct_pair *p, void *to, struct ct_op *end)
{
	const struct kvec kv = { to, CH_LEN };
	const struct fi_msg vec = {
		.msg_iov = &kv, .iov_count = 1, .context = end,
	};
	struct fid_mr *mr = kofi_mr_get(p->side[0].ep);

	KUNIT_ASSERT_NOT_NULL(p->test, mr);
	if (end)
		atomic_inc(&end->posted);
	KUNIT_ASSERT_EQ(p->test, kofi_mr_map(mr, &vec, FI_REMOTE_WRITE, FI_MORE |
					     (end ? FI_MR_SINGLE_USE : 0)), 0);
	return mr;
}

/* A message with bytes that go along, if the device does that */
static ssize_t ch_tell(struct ch_burst *b)
{
	const struct kvec kv = { b->mem, CH_LEN };
	struct fi_msg msg = { .msg_iov = &kv, .iov_count = 1 };

	return ct_post_send(b->p, 0, b->tx[0], &msg,
			    FI_COMPLETION | FI_INJECT);
}

/* The other side writes, and the region is taken back. */
static void ch_use(struct ct_pair *p, struct fid_mr *mr, u8 *to, u32 seed)
{
	struct ct_op *op = ct_op(p), *end = ct_op(p);
	void *from = ct_buf(p, CH_LEN);

	ct_pattern(from, CH_LEN, seed);
	op->side = 1;
	atomic_inc(&op->posted);
	KUNIT_EXPECT_EQ(p->test, fi_write(p->side[1].ep, from, CH_LEN, NULL, 0,
					  kofi_mr_base(mr), fi_mr_key(mr), op),
			0);
	KUNIT_EXPECT_TRUE(p->test, ct_wait_done(p, op));
	KUNIT_EXPECT_EQ(p->test, op->wc.err, 0);
	atomic_inc(&end->posted);
	KUNIT_EXPECT_EQ(p->test, kofi_mr_unmap(mr, &end->cqe), 0);
	KUNIT_EXPECT_TRUE(p->test, ct_wait_done(p, end));
	KUNIT_EXPECT_EQ(p->test, end->wc.err, 0);
	KUNIT_EXPECT_EQ(p->test, memcmp(to, from, CH_LEN), 0);
	kofi_mr_put(mr);
}

/* The device is told once of regions and the message that names them. */
static void chain_map(struct kunit *test)
{
	struct ct_pair *p = ch_open(test, ct_mode_of(test));
	struct vrb_ep *ep = vrb_ep(p->side[0].ep);
	struct ch_burst *b = ch_burst(p);
	u8 *to[CH_POOL];
	struct fid_mr *mr[CH_POOL];
	unsigned long wrs;
	int i, before;

	ch_receive(b, 1);
	for (i = 0; i < CH_POOL; i++)
		to[i] = ct_buf(p, CH_LEN);
	wrs = ep->tx.stats.wrs;
	local_bh_disable();
	before = atomic_read(&ch->rings);
	for (i = 0; i < CH_POOL; i++)
		mr[i] = ch_map(p, to[i], NULL);
	KUNIT_EXPECT_EQ(test, atomic_read(&ch->rings), before);
	b->ret[0] = ch_tell(b);
	KUNIT_EXPECT_EQ(test, atomic_read(&ch->rings), before + 1);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, ep->tx.stats.wrs, wrs + 1);
	ch_expect_all(b, 1);
	for (i = 0; i < CH_POOL; i++)
		ch_use(p, mr[i], to[i], i);

	/* nothing follows: they are registered all the same */
	b = ch_burst(p);
	ch_receive(b, 1);
	before = atomic_read(&ch->rings);
	mr[0] = ch_map(p, to[0], NULL);
	KUNIT_EXPECT_TRUE(test, ct_wait(p, atomic_read(&ch->rings) > before,
					CT_TIMEOUT_MS));
	b->ret[0] = ch_tell(b);
	ch_expect_all(b, 1);
	ch_use(p, mr[0], to[0], CH_POOL);

	/* or it is the end of it that does */
	b = ch_burst(p);
	local_bh_disable();
	mr[0] = ch_map(p, to[0], NULL);
	atomic_inc(&b->tx[0]->posted);
	KUNIT_EXPECT_EQ(test, kofi_mr_unmap(mr[0], &b->tx[0]->cqe), 0);
	local_bh_enable();
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, b->tx[0]));
	KUNIT_EXPECT_EQ(test, b->tx[0]->wc.err, 0);
	kofi_mr_put(mr[0]);

	/* or of the endpoint */
	b = ch_burst(p);
	ch_map(p, to[0], b->tx[0]);
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, b->tx[0]->wc.err, ECANCELED);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	ct_pair_close(p);
}

static const int ch_maps[] = { 0, 1, 2 };

KUNIT_ARRAY_PARAM(ch_map_some, ch_maps, ch_some_desc);

/* What it has no room for it gets again; the message may have to be posted again. */
static void chain_map_full(struct kunit *test)
{
	const int some = *(const int *)test->param_value;
	struct ct_pair *p = ch_open(test, CT_SOFTIRQ);
	struct ch_burst *b = ch_burst(p);
	u8 *to[2] = { ct_buf(p, CH_LEN), ct_buf(p, CH_LEN) };
	struct fid_mr *mr[2];
	int i;

	ch_receive(b, 1);
	local_bh_disable();
	for (i = 0; i < 2; i++)
		mr[i] = ch_map(p, to[i], NULL);
	ch->refuse_after = some;
	b->ret[0] = ch_tell(b);
	ch->refuse_after = -1;
	local_bh_enable();
	if (some == 2 || ch_inlines(p)) {
		KUNIT_EXPECT_EQ(test, b->ret[0], -EAGAIN);
		b->ret[0] = ct_send(p, 0, b->tx[0], b->mem, CH_LEN);
	}
	ch_expect_all(b, 1);
	for (i = 0; i < 2; i++)
		ch_use(p, mr[i], to[i], i);
	ct_pair_close(p);
}

/* What it refuses for good ends the connection, and with it the regions. */
static void chain_map_refused(struct kunit *test)
{
	struct ct_pair *p = ch_open(test, ct_mode_of(test));
	struct ch_burst *b = ch_burst(p);

	ch_receive(b, 1);
	ch->error = -EIO;
	local_bh_disable();
	ch_map(p, b->mem, b->tx[1]);
	ch->refuse_after = 0;
	b->ret[0] = ch_tell(b);
	ch->refuse_after = -1;
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, b->ret[0], 0);
	ct_expect_event(test, p->side[0].eq, FI_SHUTDOWN);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_NE(test, b->tx[0]->wc.err, 0);
	KUNIT_EXPECT_EQ(test, b->tx[1]->wc.err, ECANCELED);
	ct_pair_close(p);
}

/* ------------------------------------------------- several work requests */

/* So it is of the work requests of one operation, of which it may refuse some. */
static void chain_parts(struct kunit *test)
{
	const int some = *(const int *)test->param_value;
	struct ct_pair *p = ch_open(test, CT_SOFTIRQ);
	u8 *from = ct_buf(p, 4 * CH_LEN), *to = ct_buf(p, 8 * CH_LEN);
	const struct kvec kv = { from, 4 * CH_LEN };
	struct ch_burst *b = ch_burst(p);
	struct fi_rma_iov rma[4];
	struct fi_msg_rma msg = {
		.msg_iov = &kv, .iov_count = 1, .rma_iov = rma,
		.rma_iov_count = 4,
	};
	struct ct_op *op = ct_op(p);
	struct fid_mr *mr;
	int i, before;

	ct_pattern(from, 4 * CH_LEN, 3);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(p->domain, to, 8 * CH_LEN, CH_ALL, 0, 0,
					0, &mr, NULL), 0);
	for (i = 0; i < 4; i++)
		rma[i] = (struct fi_rma_iov) {
			kofi_mr_base(mr) + 2 * i * CH_LEN, CH_LEN,
			fi_mr_key(mr),
		};
	msg.context = op;
	ch_receive(b, 1);
	/* behind what waits, and with it */
	local_bh_disable();
	before = atomic_read(&ch->rings);
	atomic_inc(&op->posted);
	KUNIT_EXPECT_EQ(test, fi_writemsg(p->side[0].ep, &msg, FI_MORE), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&ch->rings), before);
	ch->refuse_after = some;
	b->ret[0] = ct_send(p, 0, b->tx[0], b->mem, CH_LEN);
	ch->refuse_after = -1;
	KUNIT_EXPECT_EQ(test, atomic_read(&ch->rings), before + 1);
	local_bh_enable();
	if (some == 4) {
		/* all of it has gone, and the other was not accepted */
		KUNIT_EXPECT_EQ(test, b->ret[0], -EAGAIN);
		b->ret[0] = ct_send(p, 0, b->tx[0], b->mem, CH_LEN);
	}
	ch_expect_all(b, 1);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, op));
	KUNIT_EXPECT_EQ(test, op->wc.err, 0);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, memcmp(to + 2 * i * CH_LEN,
					     from + i * CH_LEN, CH_LEN), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	ct_pair_close(p);
}

/* -------------------------------------------------------------- receives */

static bool ch_iwarp(const struct ct_pair *p)
{
	return p->info->ep_attr->protocol == FI_PROTO_IWARP;
}

/* Receives of one segment and of two, all but the one at LAST with FI_MORE */
static ssize_t ch_recv_more(struct ch_burst *b, int last)
{
	const struct kvec kv[2] = {
		{ b->in, CH_LEN / 2 }, { b->in + CH_LEN / 2, CH_LEN / 2 },
	};
	ssize_t ret = 0;
	int i;

	for (i = 0; i < CH_MORE && !ret; i++) {
		struct fi_msg msg = {
			.msg_iov = kv, .iov_count = 1 + (i & 1),
		};

		ret = ct_post_recv(b->p, 1, b->rx[i], &msg, FI_COMPLETION |
				   (i == last ? 0 : FI_MORE));
	}
	return ret;
}

/* As many messages, one by one and of half the length */
static void ch_send_each(struct ch_burst *b)
{
	int i;

	for (i = 0; i < CH_MORE; i++)
		b->ret[i] = ct_send(b->p, 0, b->tx[i], b->mem, CH_LEN / 2);
	ch_expect_all(b, CH_MORE);
}

static bool ch_have_receives(struct ct_pair *p)
{
	return list_empty_careful(&vrb_ep(p->side[1].ep)->rxq.deferred);
}

/* The device is told once of receives that belong together. */
static void chain_recv(struct kunit *test)
{
	struct ct_pair *p = ch_open(test, ct_mode_of(test));
	struct ch_burst *b = ch_burst(p), *back = ch_burst(p);
	int before;

	local_bh_disable();
	before = atomic_read(&ch->recv_rings);
	KUNIT_EXPECT_EQ(test, ch_recv_more(b, CH_MORE - 1), 0);
	/* where a message that finds none ends the connection, each at once */
	KUNIT_EXPECT_EQ(test, atomic_read(&ch->recv_rings),
			before + (ch_iwarp(p) ? CH_MORE : 1));
	local_bh_enable();
	ch_send_each(b);
	if (ch_iwarp(p)) {
		ct_pair_close(p);
		return;
	}
	/* no more than a list */
	b = ch_burst(p);
	back = ch_burst(p);
	local_bh_disable();
	before = atomic_read(&ch->recv_rings);
	KUNIT_EXPECT_EQ(test, ch_recv_more(b, CH_MORE), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&ch->recv_rings), before);
	KUNIT_EXPECT_EQ(test, ch_recv_more(back, CH_MORE), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&ch->recv_rings), before + 1);
	local_bh_enable();
	ch_send_each(b);
	ch_send_each(back);
	back = ch_burst(p);

	/* one may be for the answer to what is sent */
	b = ch_burst(p);
	KUNIT_EXPECT_EQ(test, ct_recv(p, 0, back->rx[0], ct_buf(p, CH_LEN),
				      CH_LEN), 0);
	local_bh_disable();
	before = atomic_read(&ch->recv_rings);
	KUNIT_EXPECT_EQ(test, ch_recv_more(b, CH_MORE), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&ch->recv_rings), before);
	back->ret[0] = ct_send(p, 1, back->tx[0], back->mem, CH_LEN);
	KUNIT_EXPECT_EQ(test, atomic_read(&ch->recv_rings), before + 1);
	local_bh_enable();
	ch_expect_all(back, 1);
	ch_send_each(b);

	/* nothing follows */
	b = ch_burst(p);
	KUNIT_EXPECT_EQ(test, ch_recv_more(b, CH_MORE), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait(p, ch_have_receives(p), CT_TIMEOUT_MS));
	ch_send_each(b);

	/* nor does anything come */
	b = ch_burst(p);
	KUNIT_EXPECT_EQ(test, ch_recv_more(b, CH_MORE), 0);
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 1), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	ct_expect_event(test, p->side[0].eq, FI_SHUTDOWN);
	ct_pair_close(p);
}

/* What was accepted it gets again, where there are lists. */
static void chain_recv_full(struct kunit *test)
{
	const int some = *(const int *)test->param_value;
	struct ct_pair *p = ch_open(test, CT_SOFTIRQ);
	struct ch_burst *b = ch_burst(p);
	ssize_t ret;

	if (ch_iwarp(p)) {
		ct_pair_close(p);
		kunit_skip(test, "receives do not wait on iWARP");
	}
	ch->refuse_recv = some;
	local_bh_disable();
	ret = ch_recv_more(b, CH_MORE - 1);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, ch->refuse_recv, -1);
	if (some == CH_MORE - 1) {
		/* not accepted */
		KUNIT_EXPECT_EQ(test, ret, -EAGAIN);
		ret = ct_recv(p, 1, b->rx[some], b->in, CH_LEN);
	}
	KUNIT_EXPECT_EQ(test, ret, 0);
	KUNIT_EXPECT_TRUE(test, ct_wait(p, ch_have_receives(p), CT_TIMEOUT_MS));
	ch_send_each(b);
	ct_pair_close(p);
}

static struct kunit_case ch_cases[] = {
	KUNIT_CASE_PARAM(chain_more, ct_mode_gen_params),
	KUNIT_CASE_PARAM(chain_more_close, ct_mode_gen_params),
	KUNIT_CASE_PARAM(chain_full, ch_some_gen_params),
	KUNIT_CASE_PARAM(chain_refused, ch_some_gen_params),
	KUNIT_CASE_PARAM(chain_ended, ct_mode_gen_params),
	KUNIT_CASE_PARAM(chain_shutdown, ct_mode_gen_params),
	KUNIT_CASE_PARAM(chain_shutdown_refused, ct_mode_gen_params),
	KUNIT_CASE_PARAM(chain_inject, ct_mode_gen_params),
	KUNIT_CASE_PARAM(chain_map, ct_mode_gen_params),
	KUNIT_CASE_PARAM(chain_map_full, ch_map_some_gen_params),
	KUNIT_CASE_PARAM(chain_map_refused, ct_mode_gen_params),
	KUNIT_CASE_PARAM(chain_parts, ch_some_gen_params),
	KUNIT_CASE_PARAM(chain_recv, ct_mode_gen_params),
	KUNIT_CASE_PARAM(chain_recv_full, ch_some_gen_params),
	{}
};

static struct kunit_suite ch_suite = {
	.name		= "verbs_chain",
	.suite_init	= lo_suite_init,
	.suite_exit	= link_suite_exit,
	.init		= ch_init,
	.test_cases	= ch_cases,
};

kunit_test_suite(ch_suite);

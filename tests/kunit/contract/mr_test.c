// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contract 8 and 13: what a peer can do to registered memory, and that it can
 * do nothing else, and nothing any more once a region has ended. Regions of
 * pools, single-use ones, regions of domains and of endpoints.
 */

#include <linux/slab.h>

#include "contract.h"

#define MR_MODE		(FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED)
#define MR_ALL		(FI_REMOTE_READ | FI_REMOTE_WRITE)
#define MR_CAPS		(FI_MSG | FI_SEND | FI_RECV | FI_RMA | FI_READ | \
			 FI_WRITE | MR_ALL)
#define MR_POOL		2
#define MR_SKEW		100		/* of the region in its memory */
#define MR_LEN		9000		/* of the region */
#define MR_MEM		12288
#define MR_FILL		0xa5		/* what has not been written to */

/* Side 0 reads and writes memory of side 1, and says when it has. */
struct mr_test {
	struct ct_pair	*p;
	u8		*mem;		/* of side 1, MR_MEM bytes */
	u8		*out;		/* of side 0 */
	u8		*in;
};

static struct mr_test *mr_open(struct kunit *test, const struct ct_opts *from)
{
	struct mr_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct ct_opts opts = *from;

	KUNIT_ASSERT_NOT_NULL(test, t);
	opts.caps = MR_CAPS;
	t->p = ct_pair_open(test, &opts);
	t->mem = ct_buf(t->p, MR_MEM);
	t->out = ct_buf(t->p, MR_LEN);
	t->in = ct_buf(t->p, MR_LEN);
	memset(t->mem, MR_FILL, MR_MEM);
	return t;
}

static struct mr_test *mr_open_pool(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = ct_mode_of(test), .mr_mode = MR_MODE,
		.mr_pool = MR_POOL,
	};

	return mr_open(test, &opts);
}

static ssize_t mr_write(struct ct_pair *p, struct ct_op *op, const void *buf,
			size_t len, u64 addr, u64 key)
{
	ssize_t ret;

	op->side = 0;
	atomic_inc(&op->posted);
	ret = fi_write(p->side[0].ep, buf, len, NULL, 0, addr, key, op);
	if (ret)
		atomic_dec(&op->posted);
	return ret;
}

static ssize_t mr_read(struct ct_pair *p, struct ct_op *op, void *buf,
		       size_t len, u64 addr, u64 key)
{
	ssize_t ret;

	op->side = 0;
	atomic_inc(&op->posted);
	ret = fi_read(p->side[0].ep, buf, len, NULL, 0, addr, key, op);
	if (ret)
		atomic_dec(&op->posted);
	return ret;
}

/*
 * A message to that side. It comes after what was written before it; and when
 * it has come from who owns a region, that can be accessed.
 */
static bool mr_tell(struct mr_test *t, int to)
{
	struct ct_op *rx = ct_op(t->p), *tx = ct_op(t->p);

	return !ct_recv(t->p, to, rx, t->in, 8) &&
	       !ct_send(t->p, !to, tx, t->out, 8) &&
	       ct_wait_done(t->p, rx) && ct_wait_done(t->p, tx) &&
	       !rx->wc.err && !tx->wc.err;
}

static int mr_map(struct mr_test *t, struct fid_mr *mr, struct ct_op *op,
		  u64 flags)
{
	const struct kvec kv = { t->mem + MR_SKEW, MR_LEN };
	const struct fi_msg vec = {
		.msg_iov = &kv, .iov_count = 1, .context = op,
	};
	int ret;

	if (op) {
		op->side = 1;
		atomic_inc(&op->posted);
	}
	ret = kofi_mr_map(mr, &vec, MR_ALL, flags);
	if (ret && op)
		atomic_dec(&op->posted);
	return ret;
}

static int mr_unmap(struct mr_test *t, struct fid_mr *mr, struct ct_op *op)
{
	int ret;

	op->side = 1;
	atomic_inc(&op->posted);
	ret = kofi_mr_unmap(mr, &op->cqe);
	if (ret)
		atomic_dec(&op->posted);
	return ret;
}

/* All of it but the piece is as it was. */
static bool mr_untouched(const struct mr_test *t, size_t from, size_t len)
{
	size_t i;

	for (i = 0; i < MR_MEM; i++)
		if ((i < from || i >= from + len) && t->mem[i] != MR_FILL)
			return false;
	return true;
}

/* Write and read through an open region. */
static void mr_use(struct kunit *test, struct mr_test *t, struct fid_mr *mr,
		   u32 seed)
{
	u64 addr = kofi_mr_base(mr), key = fi_mr_key(mr);
	struct ct_op *op = ct_op(t->p);

	KUNIT_EXPECT_TRUE(test, mr_tell(t, 0));
	ct_pattern(t->out, MR_LEN, seed);
	KUNIT_EXPECT_EQ(test, mr_write(t->p, op, t->out, MR_LEN, addr, key), 0);
	KUNIT_EXPECT_TRUE(test, mr_tell(t, 1));
	KUNIT_EXPECT_TRUE(test, ct_wait_done(t->p, op));
	KUNIT_EXPECT_EQ(test, op->wc.err, 0);
	KUNIT_EXPECT_EQ(test, op->wc.flags, FI_RMA | FI_WRITE);
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(t->mem + MR_SKEW, MR_LEN, seed));
	KUNIT_EXPECT_TRUE(test, mr_untouched(t, MR_SKEW, MR_LEN));

	op = ct_op(t->p);
	memset(t->in, 0, MR_LEN);
	KUNIT_EXPECT_EQ(test, mr_read(t->p, op, t->in, MR_LEN - 77, addr + 77,
				      key), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(t->p, op));
	KUNIT_EXPECT_EQ(test, op->wc.err, 0);
	KUNIT_EXPECT_EQ(test, op->wc.flags, FI_RMA | FI_READ);
	KUNIT_EXPECT_EQ(test, memcmp(t->in, t->out + 77, MR_LEN - 77), 0);
}

/*
 * An access with a key that is not valid (any more): the connection ends on
 * both sides, and the memory is as it was.
 */
static void mr_refused(struct kunit *test, struct mr_test *t, u64 addr, u64 key,
		       size_t len)
{
	struct ct_op *op = ct_op(t->p);

	memset(t->mem, MR_FILL, MR_MEM);
	KUNIT_EXPECT_EQ(test, mr_write(t->p, op, t->out, len, addr, key), 0);
	/* who polls finds it out by that */
	KUNIT_EXPECT_TRUE(test, ct_wait_done(t->p, op));
	ct_expect_event(test, t->p->side[0].eq, FI_SHUTDOWN);
	ct_expect_event(test, t->p->side[1].eq, FI_SHUTDOWN);
	KUNIT_EXPECT_TRUE(test, mr_untouched(t, 0, 0));
}

/* ------------------------------------------------------------------- pools */

/* Mapped, accessed, unmapped, again and again; the key is new each time. */
static void mr_pool_cycle(struct kunit *test)
{
	struct mr_test *t = mr_open_pool(test);
	u64 last = FI_KEY_NOTAVAIL;
	int i;

	for (i = 0; i < 20; i++) {
		struct fid_mr *mr = kofi_mr_get(t->p->side[1].ep);
		struct ct_op *op = ct_op(t->p);

		KUNIT_ASSERT_NOT_NULL(test, mr);
		KUNIT_EXPECT_EQ(test, mr_map(t, mr, NULL, 0), 0);
		KUNIT_EXPECT_NE(test, fi_mr_key(mr), last);
		last = fi_mr_key(mr);
		mr_use(test, t, mr, i);
		KUNIT_EXPECT_EQ(test, mr_unmap(t, mr, op), 0);
		KUNIT_EXPECT_TRUE(test, ct_wait_done(t->p, op));
		KUNIT_EXPECT_EQ(test, op->wc.err, 0);
		KUNIT_EXPECT_EQ(test, op->wc.flags, 0);
		kofi_mr_put(mr);
		memset(t->mem, MR_FILL, MR_MEM);
	}
	ct_pair_close(t->p);
}

/* A key is of no use once its region's end has completed. */
static void mr_pool_stale(struct kunit *test)
{
	struct mr_test *t = mr_open_pool(test);
	struct fid_mr *mr = kofi_mr_get(t->p->side[1].ep);
	struct ct_op *op = ct_op(t->p);
	u64 key, addr;

	KUNIT_ASSERT_NOT_NULL(test, mr);
	KUNIT_EXPECT_EQ(test, mr_map(t, mr, NULL, 0), 0);
	key = fi_mr_key(mr);
	addr = kofi_mr_base(mr);
	mr_use(test, t, mr, 1);
	KUNIT_EXPECT_EQ(test, mr_unmap(t, mr, op), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(t->p, op));
	/* also when the region has been mapped again */
	KUNIT_EXPECT_EQ(test, mr_map(t, mr, NULL, 0), 0);
	KUNIT_EXPECT_NE(test, fi_mr_key(mr), key);
	KUNIT_EXPECT_TRUE(test, mr_tell(t, 0));
	mr_refused(test, t, addr, key, 64);
	ct_pair_close(t->p);
}

/* Nor is anything beyond the region, before or behind it. */
static void mr_pool_range(struct kunit *test)
{
	struct mr_test *t = mr_open_pool(test);
	struct fid_mr *mr = kofi_mr_get(t->p->side[1].ep);

	KUNIT_ASSERT_NOT_NULL(test, mr);
	KUNIT_EXPECT_EQ(test, mr_map(t, mr, NULL, 0), 0);
	KUNIT_EXPECT_TRUE(test, mr_tell(t, 0));
	mr_refused(test, t, kofi_mr_base(mr) + MR_LEN - 63, fi_mr_key(mr), 64);
	ct_pair_close(t->p);
}

/* A region that is there still ends as ever when the connection has. */
static void mr_pool_shutdown(struct kunit *test)
{
	struct mr_test *t = mr_open_pool(test);
	struct fid_mr *mr = kofi_mr_get(t->p->side[1].ep);
	struct fid_mr *once = kofi_mr_get(t->p->side[1].ep);
	struct ct_op *op = ct_op(t->p), *end = ct_op(t->p);

	ct_connected_init(test);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	KUNIT_ASSERT_NOT_NULL(test, once);
	KUNIT_EXPECT_EQ(test, mr_map(t, mr, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, mr_map(t, once, end, FI_MR_SINGLE_USE), 0);
	KUNIT_EXPECT_EQ(test, fi_shutdown(t->p->side[0].ep, 0), 0);
	ct_expect_event(test, t->p->side[1].eq, FI_SHUTDOWN);
	KUNIT_EXPECT_EQ(test, mr_unmap(t, mr, op), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(t->p, op));
	KUNIT_EXPECT_EQ(test, op->wc.err, 0);
	/* the other one with the endpoint */
	ct_ep_drain(t->p, 1);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(t->p, end));
	KUNIT_EXPECT_EQ(test, end->wc.err, ECANCELED);
	ct_pair_close(t->p);
}

/* ---------------------------------------------------------------- one shot */

static void mr_once_invalidated(struct kunit *test)
{
	struct mr_test *t = mr_open_pool(test);
	struct fid_mr *mr = kofi_mr_get(t->p->side[1].ep);
	int i;

	/* peers agree on it when they connect */
	ct_connected_init(test);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	for (i = 0; i < 20; i++) {
		const struct kvec kv = { t->out, 8 };
		struct fi_msg msg = { .msg_iov = &kv, .iov_count = 1 };
		struct ct_op *op = ct_op(t->p), *tx = ct_op(t->p);
		struct ct_op *rx = ct_op(t->p);

		KUNIT_EXPECT_EQ(test, mr_map(t, mr, op, FI_MR_SINGLE_USE), 0);
		msg.inv_key = fi_mr_key(mr);
		KUNIT_EXPECT_TRUE(test, mr_tell(t, 0));
		KUNIT_EXPECT_EQ(test, ct_recv(t->p, 1, rx, t->in, 8), 0);
		KUNIT_EXPECT_EQ(test, ct_post_send(t->p, 0, tx, &msg,
						   FI_COMPLETION |
						   KOFI_REMOTE_INV), 0);
		KUNIT_ASSERT_TRUE(test, ct_wait_all(t->p));
		KUNIT_EXPECT_EQ(test, rx->wc.err, 0);
		KUNIT_EXPECT_EQ(test, rx->wc.flags, FI_RECV | FI_MSG |
				KOFI_REMOTE_INV);
		KUNIT_EXPECT_EQ(test, op->wc.err, 0);
		KUNIT_EXPECT_EQ(test, op->wc.flags, KOFI_REMOTE_INV);
		if (t->p->opts.mode != CT_READ)
			KUNIT_EXPECT_EQ(test, op->wc.inv_key, msg.inv_key);
		KUNIT_EXPECT_EQ(test, fi_mr_key(mr), FI_KEY_NOTAVAIL);
		KUNIT_EXPECT_EQ(test, kofi_mr_unmap(mr, NULL), -EALREADY);
	}
	kofi_mr_put(mr);
	ct_pair_close(t->p);
}

static void mr_once_unmapped(struct kunit *test)
{
	struct mr_test *t = mr_open_pool(test);
	struct fid_mr *mr = kofi_mr_get(t->p->side[1].ep);
	struct ct_op *op = ct_op(t->p);

	KUNIT_ASSERT_NOT_NULL(test, mr);
	KUNIT_EXPECT_EQ(test, mr_map(t, mr, op, FI_MR_SINGLE_USE), 0);
	KUNIT_EXPECT_EQ(test, kofi_mr_unmap(mr, NULL), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(t->p, op));
	KUNIT_EXPECT_EQ(test, op->wc.err, 0);
	KUNIT_EXPECT_EQ(test, op->wc.flags, 0);
	kofi_mr_put(mr);
	ct_pair_close(t->p);
}

/* ------------------------------------------- regions of domains, of endpoints */

static struct fid_mr *mr_reg(struct kunit *test, struct mr_test *t)
{
	struct fid_mr *mr;

	KUNIT_ASSERT_EQ(test, fi_mr_reg(t->p->domain, t->mem + MR_SKEW, MR_LEN,
					MR_ALL, 0, 0, 0, &mr, NULL), 0);
	return mr;
}

/* Registered before there is a connection, and while there is one */
static void mr_domain(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = ct_mode_of(test), .mr_mode = MR_MODE,
		.unconnected = true,
	};
	struct mr_test *t = mr_open(test, &opts);
	struct fid_mr *early = mr_reg(test, t), *never = mr_reg(test, t), *mr;
	u64 key, addr;

	KUNIT_EXPECT_NE(test, fi_mr_key(early), FI_KEY_NOTAVAIL);
	KUNIT_EXPECT_EQ(test, fi_close(&never->fid), 0);
	KUNIT_ASSERT_EQ(test, ct_pair_connect(t->p), 0);
	mr_use(test, t, early, 1);
	mr = mr_reg(test, t);
	KUNIT_EXPECT_NE(test, fi_mr_key(mr), fi_mr_key(early));
	mr_use(test, t, mr, 2);
	key = fi_mr_key(mr);
	addr = kofi_mr_base(mr);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	mr_refused(test, t, addr, key, 64);
	/* and after it */
	mr = mr_reg(test, t);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&early->fid), 0);
	ct_pair_close(t->p);
}

struct mr_post {
	void	*buf;
	void	*desc;
};

static ssize_t mr_post_send(struct fid_ep *ep, void *context, void *arg)
{
	const struct mr_post *post = arg;

	return fi_send(ep, post->buf, 64, post->desc, 0, context);
}

static ssize_t mr_post_recv(struct fid_ep *ep, void *context, void *arg)
{
	const struct mr_post *post = arg;

	return fi_recv(ep, post->buf, 64, post->desc, 0, context);
}

/* Descriptors of regions are accepted by each post, and are not needed. */
static void mr_described(struct kunit *test)
{
	const struct ct_opts opts = { .mode = ct_mode_of(test), .mr_mode = MR_MODE };
	struct mr_test *t = mr_open(test, &opts);
	struct ct_pair *p = t->p;
	struct fid_mr *mr = mr_reg(test, t);
	struct ct_op *send = ct_op(p), *recv = ct_op(p);
	struct mr_post out = { ct_buf(p, 64), fi_mr_desc(mr) };
	struct mr_post in = { ct_buf(p, 64), fi_mr_desc(mr) };

	KUNIT_EXPECT_EQ(test, ct_post_fn(p, 1, recv, mr_post_recv, &in), 0);
	KUNIT_EXPECT_EQ(test, ct_post_fn(p, 0, send, mr_post_send, &out), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, send->wc.err, 0);
	KUNIT_EXPECT_EQ(test, recv->wc.err, 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	ct_pair_close(p);
}

/* Bound and enabled, before and after the connection stands */
static void mr_endpoint(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = ct_mode_of(test), .mr_mode = MR_MODE | FI_MR_ENDPOINT,
	};
	struct fid_mr *mr, *never;
	struct mr_test *t;

	ct_connected_init(test);
	t = mr_open(test, &opts);
	mr = mr_reg(test, t);
	never = mr_reg(test, t);
	KUNIT_EXPECT_EQ(test, fi_mr_key(mr), FI_KEY_NOTAVAIL);
	KUNIT_EXPECT_EQ(test, fi_mr_bind(mr, &t->p->side[1].ep->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_mr_enable(mr), 0);
	mr_use(test, t, mr, 3);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);

	mr = mr_reg(test, t);
	KUNIT_EXPECT_EQ(test, fi_mr_bind(mr, &t->p->side[1].ep->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_mr_enable(mr), 0);
	mr_use(test, t, mr, 4);
	KUNIT_EXPECT_EQ(test, fi_shutdown(t->p->side[0].ep, 0), 0);
	ct_expect_event(test, t->p->side[1].eq, FI_SHUTDOWN);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&never->fid), 0);
	ct_pair_close(t->p);
}

/* The endpoint that asks, whose region waits for the connection */
static void mr_endpoint_early(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = ct_mode_of(test), .mr_mode = MR_MODE | FI_MR_ENDPOINT,
		.unconnected = true,
	};
	struct mr_test *t = mr_open(test, &opts);
	struct fid_mr *mr = mr_reg(test, t);
	struct ct_op *op;

	KUNIT_EXPECT_EQ(test, fi_mr_bind(mr, &t->p->side[0].ep->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_mr_enable(mr), 0);
	KUNIT_ASSERT_EQ(test, ct_pair_connect(t->p), 0);

	/* the other way round: side 1 writes, and side 0 hears of it */
	KUNIT_EXPECT_TRUE(test, mr_tell(t, 1));
	op = ct_op(t->p);
	op->side = 1;
	atomic_inc(&op->posted);
	ct_pattern(t->out, MR_LEN, 5);
	KUNIT_EXPECT_EQ(test, fi_write(t->p->side[1].ep, t->out, MR_LEN, NULL,
				       0, kofi_mr_base(mr), fi_mr_key(mr), op),
			0);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(t->p, op));
	KUNIT_EXPECT_TRUE(test, mr_tell(t, 0));
	KUNIT_EXPECT_TRUE(test, ct_pattern_ok(t->mem + MR_SKEW, MR_LEN, 5));
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	ct_pair_close(t->p);
}

static struct kunit_case contract_mr_cases[] = {
	KUNIT_CASE_PARAM(mr_pool_cycle, ct_mode_gen_params),
	KUNIT_CASE_PARAM(mr_pool_stale, ct_mode_gen_params),
	KUNIT_CASE_PARAM(mr_pool_range, ct_mode_gen_params),
	KUNIT_CASE_PARAM(mr_pool_shutdown, ct_mode_gen_params),
	KUNIT_CASE_PARAM(mr_once_invalidated, ct_mode_gen_params),
	KUNIT_CASE_PARAM(mr_once_unmapped, ct_mode_gen_params),
	KUNIT_CASE_PARAM(mr_domain, ct_mode_gen_params),
	KUNIT_CASE_PARAM(mr_described, ct_mode_gen_params),
	KUNIT_CASE_PARAM(mr_endpoint, ct_mode_gen_params),
	KUNIT_CASE_PARAM(mr_endpoint_early, ct_mode_gen_params),
	{}
};

static struct kunit_suite contract_mr_suite = {
	.name = "contract_mr",
	.attr.speed = KUNIT_SPEED_SLOW,
	.suite_init = lo_suite_init,
	.test_cases = contract_mr_cases,
};

kunit_test_suite(contract_mr_suite);

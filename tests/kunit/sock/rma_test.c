// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Remote memory, tags and shared receives on kofi_sock's wire: two endpoints
 * over the loopback device, and a plain TCP socket where the peer must stop at
 * a certain byte.
 */
#include <linux/bvec.h>
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include <linux/kofi/provider.h>

#include "../kunit.h"
#include "live.h"

#define RMA_ALL		(FI_REMOTE_READ | FI_REMOTE_WRITE)
#define RMA_BIG		SZ_16M
#define RMA_SLACK	SZ_4K	/* around the big buffers, for odd offsets */

/* Memory of a test; gone with it, also when an assertion ends it */
static void rma_free(void *mem)
{
	vfree(mem);
}

static u8 *rma_alloc(struct kunit *test, size_t len)
{
	void *mem = vzalloc(len);

	KUNIT_ASSERT_NOT_NULL(test, mem);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, rma_free, mem), 0);
	return mem;
}

static void rma_pair(struct kunit *test, struct live *l)
{
	live_listen(test, l, AF_INET);
	live_start(test, l);
	live_connect(test, l, 0);
}

static struct fid_mr *rma_reg(struct kunit *test, struct live_end *e, void *buf,
			      size_t len, u64 access)
{
	struct fid_mr *mr = NULL;

	KUNIT_ASSERT_EQ(test, fi_mr_reg(e->domain, buf, len, access, 0, 0, 0,
					&mr, NULL), 0);
	return mr;
}

static void rma_unreg(struct kunit *test, struct fid_mr *mr)
{
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

static unsigned long rma_stat(struct live_end *e, size_t offset)
{
	struct ksk_ep *ep = ksk_ep(e->ep);

	return READ_ONCE(*(unsigned long *)((void *)&ep->conn->stats + offset));
}

#define RMA_STAT(e, name) rma_stat(e, offsetof(struct ksk_conn_stats, name))

/* Wait for something the provider does by itself. */
#define RMA_WAIT(test, cond) do {					\
	unsigned long rma_end = jiffies + msecs_to_jiffies(LIVE_TIMEOUT); \
	bool rma_true = false;						\
									\
	while (!rma_true && time_before(jiffies, rma_end)) {		\
		rma_true = (cond);					\
		if (!rma_true)						\
			usleep_range(100, 200);				\
	}								\
	KUNIT_EXPECT_TRUE_MSG(test, rma_true, "%s", #cond);		\
} while (0)

/* The next completion is this one. */
static void rma_expect(struct kunit *test, struct fid_cq *cq, void *context,
		       u64 flags)
{
	struct fi_cq_err_entry e;

	KUNIT_ASSERT_EQ(test, live_comp(cq, &e), 0);
	KUNIT_EXPECT_PTR_EQ(test, e.op_context, context);
	KUNIT_EXPECT_EQ(test, e.flags, flags);
}

static void rma_expect_none(struct kunit *test, struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e;

	KUNIT_EXPECT_EQ(test, fi_cq_read(cq, &e, 1), -EAGAIN);
}

/* ------------------------------------------------------- kernel with kernel */

/*
 * All sizes, both ways, at offsets that fit nothing: written, acknowledged,
 * compared, read back into other memory and compared again.
 */
static void rma_sizes(struct kunit *test)
{
	static const size_t sizes[] = {
		0, 1, 7, 8, 63, 64, 65, 127, 128, 129, 1000, 1460, 4095, 4096,
		4097, 16367, 16384, 65535, 65536, 65537, 262145, LIVE_BIG,
		SZ_4M + 3, RMA_BIG,
	};
	struct live *l = test->priv;
	u8 *src = rma_alloc(test, RMA_BIG + RMA_SLACK);
	u8 *dst = rma_alloc(test, RMA_BIG + RMA_SLACK);
	int dir, i;

	rma_pair(test, l);
	live_pattern(src, RMA_BIG + RMA_SLACK, 3);
	for (dir = 0; dir < 2; dir++) {
		struct live_end *from = &l->end[dir], *to = &l->end[!dir];
		struct fid_mr *mr = rma_reg(test, to, dst, RMA_BIG + RMA_SLACK,
					    RMA_ALL);
		u64 key = fi_mr_key(mr), base = kofi_mr_base(mr);

		for (i = 0; i < ARRAY_SIZE(sizes); i++) {
			size_t n = sizes[i], off = 1 + i * 37, skip = 3 + i * 5;
			struct kvec iov = { src + skip, n };
			struct fi_rma_iov rma = { base + off, n, key };
			struct fi_msg_rma msg = {
				.msg_iov = &iov, .iov_count = 1,
				.rma_iov = &rma, .rma_iov_count = 1,
				.context = &iov,
			};

			memset(dst, 0xee, n + RMA_SLACK);
			KUNIT_ASSERT_EQ(test, fi_writemsg(from->ep, &msg,
							  FI_DELIVERY_COMPLETE),
					0);
			rma_expect(test, from->tx, &iov, FI_WRITE | FI_RMA);
			KUNIT_EXPECT_EQ_MSG(test, memcmp(dst + off, src + skip,
							 n), 0, "%zu", n);
			KUNIT_EXPECT_EQ(test, dst[off - 1], 0xee);
			KUNIT_EXPECT_EQ(test, dst[off + n], 0xee);

			/* from where it is now to its neighbour */
			memset(src + skip, 0, n);
			KUNIT_ASSERT_EQ(test, fi_read(from->ep, src + skip, n,
						      NULL, 0, base + off, key,
						      &rma), 0);
			rma_expect(test, from->tx, &rma, FI_READ | FI_RMA);
			KUNIT_EXPECT_EQ_MSG(test, memcmp(dst + off, src + skip,
							 n), 0, "%zu", n);
		}
		rma_expect_none(test, to->rx);
		rma_expect_none(test, to->tx);
		rma_unreg(test, mr);
	}
	/* nothing of it was lost on all these ways */
	live_pattern(dst, RMA_BIG + RMA_SLACK, 3);
	KUNIT_EXPECT_EQ(test, memcmp(src, dst, RMA_BIG + RMA_SLACK), 0);
}

#define RMA_SEGS	16
#define RMA_SEG		3001

/* The same memory as every kind of vector there is */
struct rma_vecs {
	u8			*mem;
	struct kvec		kv[RMA_SEGS];
	struct bio_vec		bv[RMA_SEGS];
	struct scatterlist	sg[RMA_SEGS];
	struct iov_iter		iter;
};

static struct rma_vecs *rma_vecs(struct kunit *test)
{
	struct rma_vecs *v = kunit_kzalloc(test, sizeof(*v), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, v);
	v->mem = kunit_kzalloc(test, RMA_SEGS * RMA_SEG, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, v->mem);
	sg_init_table(v->sg, RMA_SEGS);
	for (i = 0; i < RMA_SEGS; i++) {
		u8 *p = v->mem + i * RMA_SEG;

		v->kv[i] = (struct kvec) { p, RMA_SEG };
		bvec_set_virt(&v->bv[i], p, RMA_SEG);
		sg_set_buf(&v->sg[i], p, RMA_SEG);
	}
	return v;
}

static void rma_local(struct rma_vecs *v, enum kofi_vec vec, unsigned int dir,
		      struct fi_msg_rma *msg)
{
	msg->vec = vec;
	msg->iov_count = RMA_SEGS;
	switch (vec) {
	case KOFI_KVEC:
		msg->msg_iov = v->kv;
		break;
	case KOFI_BVEC:
		msg->msg_bvec = v->bv;
		break;
	case KOFI_SGL:
		msg->msg_sgl = v->sg;
		break;
	default:
		iov_iter_bvec(&v->iter, dir, v->bv, RMA_SEGS,
			      RMA_SEGS * RMA_SEG);
		msg->msg_iter = &v->iter;
		break;
	}
}

static void rma_remote(struct rma_vecs *v, enum kofi_vec vec,
		       struct fi_mr_attr *attr)
{
	*attr = (struct fi_mr_attr) {
		.vec = vec, .iov_count = RMA_SEGS, .access = RMA_ALL,
	};
	switch (vec) {
	case KOFI_KVEC:
		attr->mr_iov = v->kv;
		break;
	case KOFI_BVEC:
		attr->mr_bvec = v->bv;
		break;
	case KOFI_SGL:
		attr->mr_sgl = v->sg;
		break;
	default:
		iov_iter_bvec(&v->iter, ITER_DEST, v->bv, RMA_SEGS,
			      RMA_SEGS * RMA_SEG);
		attr->mr_iter = &v->iter;
		break;
	}
}

/* Every kind of local memory with every kind of region */
static void rma_memory(struct kunit *test)
{
	static const enum kofi_vec kinds[] = {
		KOFI_KVEC, KOFI_BVEC, KOFI_SGL, KOFI_ITER,
	};
	struct live *l = test->priv;
	struct rma_vecs *local = rma_vecs(test), *remote = rma_vecs(test);
	size_t len = RMA_SEGS * RMA_SEG;
	int i, j;

	rma_pair(test, l);
	for (i = 0; i < ARRAY_SIZE(kinds) * ARRAY_SIZE(kinds); i++) {
		enum kofi_vec there = kinds[i / ARRAY_SIZE(kinds)];
		enum kofi_vec here = kinds[i % ARRAY_SIZE(kinds)];
		struct fi_rma_iov rma = { .len = len };
		struct fi_msg_rma msg = { .rma_iov = &rma, .rma_iov_count = 1 };
		struct fi_mr_attr attr;
		struct fid_mr *mr = NULL;

		rma_remote(remote, there, &attr);
		KUNIT_ASSERT_EQ(test, fi_mr_regattr(l->end[1].domain, &attr, 0,
						    &mr), 0);
		rma.addr = kofi_mr_base(mr);
		rma.key = fi_mr_key(mr);

		live_pattern(local->mem, len, i);
		memset(remote->mem, 0, len);
		rma_local(local, here, ITER_SOURCE, &msg);
		KUNIT_ASSERT_EQ(test, fi_writemsg(l->end[0].ep, &msg,
						  FI_DELIVERY_COMPLETE), 0);
		rma_expect(test, l->end[0].tx, NULL, FI_WRITE | FI_RMA);
		KUNIT_EXPECT_EQ_MSG(test, memcmp(local->mem, remote->mem, len),
				    0, "write %d to %d", here, there);

		for (j = 0; j < len; j++)
			remote->mem[j] ^= 0x5a;
		rma_local(local, here, ITER_DEST, &msg);
		KUNIT_ASSERT_EQ(test, fi_readmsg(l->end[0].ep, &msg, 0), 0);
		rma_expect(test, l->end[0].tx, NULL, FI_READ | FI_RMA);
		KUNIT_EXPECT_EQ_MSG(test, memcmp(local->mem, remote->mem, len),
				    0, "read %d from %d", here, there);
		rma_unreg(test, mr);
	}
}

/* One to four pieces of the peer's memory, of different regions */
static void rma_pieces(struct kunit *test)
{
	struct live *l = test->priv;
	u8 *mem = rma_alloc(test, 4 * SZ_64K);
	struct fid_mr *mr[4];
	unsigned int n, i;

	rma_pair(test, l);
	for (i = 0; i < 4; i++)
		mr[i] = rma_reg(test, &l->end[1], mem + i * SZ_64K, SZ_64K,
				RMA_ALL);
	for (n = 1; n <= 4; n++) {
		struct fi_rma_iov rma[4];
		struct kvec iov[2];
		struct fi_msg_rma msg = {
			.msg_iov = iov, .iov_count = 2, .rma_iov = rma,
			.rma_iov_count = n,
		};
		size_t len = 0;

		for (i = 0; i < n; i++) {
			/* one of them empty, the order turned around */
			rma[i] = (struct fi_rma_iov) {
				.addr = kofi_mr_base(mr[3 - i]) + 11 + i,
				.len = i == 2 ? 0 : 10000 + 777 * i,
				.key = fi_mr_key(mr[3 - i]),
			};
			len += rma[i].len;
		}
		iov[0] = (struct kvec) { l->out + n, len / 3 };
		iov[1] = (struct kvec) { l->out + n + len / 3, len - len / 3 };
		memset(mem, 0, 4 * SZ_64K);
		KUNIT_ASSERT_EQ(test, fi_writemsg(l->end[0].ep, &msg,
						  FI_TRANSMIT_COMPLETE), 0);
		rma_expect(test, l->end[0].tx, NULL, FI_WRITE | FI_RMA);
		for (i = 0, len = 0; i < n; i++) {
			KUNIT_EXPECT_EQ(test, memcmp(mem + (3 - i) * SZ_64K +
						     11 + i, l->out + n + len,
						     rma[i].len), 0);
			len += rma[i].len;
		}
		iov[0] = (struct kvec) { l->in, 1 };
		iov[1] = (struct kvec) { l->in + 1, len - 1 };
		memset(l->in, 0, len);
		KUNIT_ASSERT_EQ(test, fi_readmsg(l->end[0].ep, &msg, 0), 0);
		rma_expect(test, l->end[0].tx, NULL, FI_READ | FI_RMA);
		KUNIT_EXPECT_EQ(test, memcmp(l->in, l->out + n, len), 0);
	}
	for (i = 0; i < 4; i++)
		rma_unreg(test, mr[i]);
}

/* Keys the consumer chooses, and addresses that begin where it says */
static void rma_client_keys(struct kunit *test)
{
	struct fi_mr_attr attr = {
		.iov_count = 1, .access = RMA_ALL, .requested_key = 0xc0de,
		.base = 0x7000000000000000,
	};
	struct live *l = test->priv;
	struct kvec iov = { l->in, 4096 };
	struct fid_mr *mr = NULL;

	live_listen_mode(test, l, AF_INET, 0);
	live_start(test, l);
	live_connect(test, l, 0);
	attr.mr_iov = &iov;
	KUNIT_ASSERT_EQ(test, fi_mr_regattr(l->end[1].domain, &attr, 0, &mr),
			0);
	KUNIT_EXPECT_EQ(test, fi_mr_key(mr), 0xc0de);
	memset(l->in, 0, 4096);
	KUNIT_ASSERT_EQ(test, fi_write(l->end[0].ep, l->out, 100, NULL, 0,
				       0x7000000000000064, 0xc0de, NULL), 0);
	rma_expect(test, l->end[0].tx, NULL, FI_WRITE | FI_RMA);
	KUNIT_ASSERT_EQ(test, fi_read(l->end[0].ep, l->in + 8192, 200, NULL, 0,
				      0x7000000000000000, 0xc0de, NULL), 0);
	rma_expect(test, l->end[0].tx, NULL, FI_READ | FI_RMA);
	KUNIT_EXPECT_EQ(test, memcmp(l->in + 8192 + 100, l->out, 100), 0);
	KUNIT_EXPECT_EQ(test, l->in[8192 + 99], 0);
	rma_unreg(test, mr);
}

#define RMA_GUESSES	64

/*
 * The keys of some regions do not reveal those of others: each bit of the upper half
 * changes. A random bit is constant once in 2^63 runs.
 */
static void rma_guess(struct kunit *test)
{
	struct live *l = test->priv;
	struct live_end *b = &l->end[1];
	struct fid_mr *mr[RMA_GUESSES];
	u64 first, keys = 0;
	int i;

	rma_pair(test, l);
	for (i = 0; i < RMA_GUESSES; i++) {
		mr[i] = rma_reg(test, b, l->in, LIVE_BIG, RMA_ALL);
		if (!i)
			first = fi_mr_key(mr[0]);
		keys |= fi_mr_key(mr[i]) ^ first;
	}
	KUNIT_EXPECT_EQ(test, upper_32_bits(keys), U32_MAX);
	for (i = 0; i < RMA_GUESSES; i++)
		rma_unreg(test, mr[i]);
}

/* Values arrive without a receive, after the bytes, and take none. */
static void rma_data(struct kunit *test)
{
	struct live *l = test->priv;
	struct live_end *a = &l->end[0], *b = &l->end[1];
	struct fi_cq_err_entry e;
	struct fid_mr *mr;
	u64 key, base;

	rma_pair(test, l);
	mr = rma_reg(test, b, l->in, LIVE_BIG, FI_REMOTE_WRITE);
	key = fi_mr_key(mr);
	base = kofi_mr_base(mr);
	memset(l->in, 0, LIVE_BIG);
	KUNIT_ASSERT_EQ(test, fi_recv(b->ep, l->in + 5000, 16, NULL, 0, l), 0);

	KUNIT_EXPECT_EQ(test, fi_writedata(a->ep, l->out, 1000, NULL,
					   0x0123456789abcdef, 0, base, key,
					   mr), 0);
	KUNIT_EXPECT_EQ(test, fi_inject_writedata(a->ep, l->out, 128, 77, 0,
						  base + 2000, key), 0);
	KUNIT_EXPECT_EQ(test, fi_inject_write(a->ep, l->out, 64, 0, base + 3000,
					      key), 0);
	KUNIT_EXPECT_EQ(test, fi_writedata(a->ep, NULL, 0, NULL, 78, 0, base,
					   key, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_inject_write(a->ep, l->out, 129, 0, base,
					      key), -EINVAL);

	KUNIT_ASSERT_EQ(test, live_comp(b->rx, &e), 0);
	KUNIT_EXPECT_PTR_EQ(test, e.op_context, NULL);
	KUNIT_EXPECT_EQ(test, e.flags, FI_RMA | FI_REMOTE_WRITE |
			FI_REMOTE_CQ_DATA);
	KUNIT_EXPECT_EQ(test, e.len, 1000);
	KUNIT_EXPECT_EQ(test, e.data, 0x0123456789abcdef);
	KUNIT_EXPECT_EQ(test, memcmp(l->in, l->out, 1000), 0);
	KUNIT_ASSERT_EQ(test, live_comp(b->rx, &e), 0);
	KUNIT_EXPECT_EQ(test, e.data, 77);
	KUNIT_EXPECT_EQ(test, e.len, 128);
	KUNIT_EXPECT_EQ(test, memcmp(l->in + 2000, l->out, 128), 0);
	KUNIT_ASSERT_EQ(test, live_comp(b->rx, &e), 0);
	KUNIT_EXPECT_EQ(test, e.data, 78);
	KUNIT_EXPECT_EQ(test, e.len, 0);
	KUNIT_EXPECT_EQ(test, memcmp(l->in + 3000, l->out, 64), 0);

	/* only those that report */
	rma_expect(test, a->tx, mr, FI_WRITE | FI_RMA);
	rma_expect(test, a->tx, NULL, FI_WRITE | FI_RMA);
	rma_expect_none(test, a->tx);

	KUNIT_ASSERT_EQ(test, fi_send(a->ep, l->out, 16, NULL, 0, NULL), 0);
	rma_expect(test, b->rx, l, FI_RECV | FI_MSG);
	rma_unreg(test, mr);
}

/* A region that asks for it reports accesses without a value, too. */
static void rma_event(struct kunit *test)
{
	struct live *l = test->priv;
	struct fi_cq_err_entry e;
	struct fid_mr *mr = NULL;
	u64 key, base;

	rma_pair(test, l);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(l->end[1].domain, l->in, 4096, RMA_ALL,
					0, 0, FI_RMA_EVENT, &mr, l), 0);
	key = fi_mr_key(mr);
	base = kofi_mr_base(mr);
	KUNIT_ASSERT_EQ(test, fi_write(l->end[0].ep, l->out, 100, NULL, 0,
				       base, key, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_read(l->end[0].ep, l->out + 4096, 90, NULL, 0,
				      base, key, NULL), 0);
	KUNIT_ASSERT_EQ(test, live_comp(l->end[1].rx, &e), 0);
	KUNIT_EXPECT_EQ(test, e.flags, FI_RMA | FI_REMOTE_WRITE);
	KUNIT_EXPECT_EQ(test, e.len, 100);
	KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)l);
	KUNIT_EXPECT_EQ(test, e.tag, key);
	KUNIT_EXPECT_NULL(test, e.buf);
	KUNIT_ASSERT_EQ(test, live_comp(l->end[1].rx, &e), 0);
	KUNIT_EXPECT_EQ(test, e.flags, FI_RMA | FI_REMOTE_READ);
	KUNIT_EXPECT_EQ(test, e.len, 90);
	KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)l);
	KUNIT_EXPECT_EQ(test, e.tag, key);
	rma_expect(test, l->end[0].tx, NULL, FI_WRITE | FI_RMA);
	rma_expect(test, l->end[0].tx, NULL, FI_READ | FI_RMA);
	rma_unreg(test, mr);
}

/*
 * A region for one access, with a key the peer can compute: its end and the access
 * are one completion, which names it. Nothing is placed by that key afterwards.
 */
static void rma_event_single(struct kunit *test)
{
	const u64 key = 0xfeed00000001;
	struct live *l = test->priv;
	struct fi_cq_err_entry e;
	struct fid_mr *mr = NULL;
	struct kvec iov = { l->out, 100 };
	struct fi_rma_iov rma = { .len = 100, .key = key };
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1,
		.rma_iov = &rma, .rma_iov_count = 1,
	};

	live_listen_mode(test, l, AF_INET, 0);
	live_start(test, l);
	live_connect(test, l, 0);
	memset(l->in, 0, 4096);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(l->end[1].domain, l->in, 4096, RMA_ALL,
					0, key, FI_MR_SINGLE_USE | FI_RMA_EVENT,
					&mr, l), 0);
	KUNIT_EXPECT_EQ(test, fi_mr_key(mr), key);
	KUNIT_ASSERT_EQ(test, fi_writemsg(l->end[0].ep, &msg,
					  FI_DELIVERY_COMPLETE), 0);
	rma_expect(test, l->end[0].tx, NULL, FI_WRITE | FI_RMA);
	KUNIT_ASSERT_EQ(test, live_comp(l->end[1].rx, &e), 0);
	KUNIT_EXPECT_EQ(test, e.flags, FI_RMA | FI_REMOTE_WRITE);
	KUNIT_EXPECT_EQ(test, e.len, 100);
	KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)l);
	KUNIT_EXPECT_EQ(test, e.tag, key);
	rma_expect_none(test, l->end[1].rx);
	KUNIT_EXPECT_EQ(test, memcmp(l->in, l->out, 100), 0);

	memset(l->in, 0, 4096);
	KUNIT_ASSERT_EQ(test, fi_writemsg(l->end[0].ep, &msg,
					  FI_DELIVERY_COMPLETE), 0);
	KUNIT_EXPECT_LT(test, live_comp(l->end[0].tx, &e), 0);
	rma_expect_none(test, l->end[1].rx);
	KUNIT_EXPECT_EQ(test, l->in[0], 0);
	rma_unreg(test, mr);

	/* the key is free again */
	KUNIT_ASSERT_EQ(test, fi_mr_reg(l->end[1].domain, l->in, 4096, RMA_ALL,
					0, key, FI_MR_SINGLE_USE | FI_RMA_EVENT,
					&mr, l), 0);
	rma_unreg(test, mr);
}

/* More reads than may be unanswered at a time, posted in one go */
static void rma_many_reads(struct kunit *test)
{
	enum { READS = 200, LEN = 3000 };
	struct live *l = test->priv;
	struct fid_mr *mr;
	int i;

	rma_pair(test, l);
	mr = rma_reg(test, &l->end[1], l->out, LIVE_BIG, FI_REMOTE_READ);
	memset(l->in, 0, LIVE_BIG);
	for (i = 0; i < READS; i++)
		KUNIT_ASSERT_EQ(test, fi_read(l->end[0].ep, l->in + i * LEN,
					      LEN, NULL, 0, kofi_mr_base(mr) +
					      i * LEN, fi_mr_key(mr),
					      (void *)(long)i), 0);
	for (i = 0; i < READS; i++)
		rma_expect(test, l->end[0].tx, (void *)(long)i,
			   FI_READ | FI_RMA);
	KUNIT_EXPECT_EQ(test, memcmp(l->in, l->out, READS * LEN), 0);
	KUNIT_EXPECT_EQ(test, RMA_STAT(&l->end[0], rx_responses), READS);
	KUNIT_EXPECT_EQ(test, RMA_STAT(&l->end[1], tx_responses), READS);
	KUNIT_EXPECT_EQ(test, RMA_STAT(&l->end[1], rx_full), 0);
	rma_unreg(test, mr);
}

/* Both ends read and write at once, far more than buffers hold. */
static void rma_both_ways(struct kunit *test)
{
	enum { OPS = 60 };
	struct live *l = test->priv;
	u8 *mem[2] = { rma_alloc(test, LIVE_BIG), rma_alloc(test, LIVE_BIG) };
	struct fid_mr *out[2], *in[2];
	int i, dir;

	rma_pair(test, l);
	for (dir = 0; dir < 2; dir++) {
		out[dir] = rma_reg(test, &l->end[dir], l->out, LIVE_BIG,
				   FI_REMOTE_READ);
		in[dir] = rma_reg(test, &l->end[dir], mem[dir], LIVE_BIG / 2,
				  FI_REMOTE_WRITE);
	}
	for (i = 0; i < OPS; i++) {
		for (dir = 0; dir < 2; dir++) {
			struct live_end *e = &l->end[dir];

			KUNIT_EXPECT_EQ(test, fi_read(e->ep, mem[dir] +
						      LIVE_BIG / 2,
						      LIVE_BIG / 2, NULL, 0,
						      kofi_mr_base(out[!dir]),
						      fi_mr_key(out[!dir]),
						      NULL), 0);
			KUNIT_EXPECT_EQ(test, fi_write(e->ep, l->out + 99,
						       LIVE_BIG / 2, NULL, 0,
						       kofi_mr_base(in[!dir]),
						       fi_mr_key(in[!dir]),
						       NULL), 0);
		}
	}
	for (dir = 0; dir < 2; dir++) {
		struct fi_cq_err_entry e;

		for (i = 0; i < 2 * OPS; i++)
			KUNIT_ASSERT_EQ(test, live_comp(l->end[dir].tx, &e), 0);
		KUNIT_EXPECT_EQ(test, memcmp(mem[dir] + LIVE_BIG / 2, l->out,
					     LIVE_BIG / 2), 0);
		KUNIT_EXPECT_EQ(test, memcmp(mem[!dir], l->out + 99,
					     LIVE_BIG / 2), 0);
	}
	for (dir = 0; dir < 2; dir++) {
		rma_unreg(test, out[dir]);
		rma_unreg(test, in[dir]);
	}
}

/* Posts that cannot be */
static void rma_bad_posts(struct kunit *test)
{
	struct live *l = test->priv;
	struct fid_ep *ep;
	struct kvec iov = { l->out, 100 };
	struct fi_rma_iov rma[5] = { { 0, 100, 0 } };
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .rma_iov = rma,
		.rma_iov_count = 1,
	};

	rma_pair(test, l);
	ep = l->end[0].ep;
	rma[0].len = 99;
	KUNIT_EXPECT_EQ(test, fi_writemsg(ep, &msg, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_readmsg(ep, &msg, 0), -EINVAL);
	rma[0].len = SIZE_MAX;
	rma[1].len = 101;
	msg.rma_iov_count = 2;
	KUNIT_EXPECT_EQ(test, fi_writemsg(ep, &msg, 0), -EINVAL);
	rma[0].len = 100;
	rma[1].len = 0;
	msg.rma_iov_count = 0;
	KUNIT_EXPECT_EQ(test, fi_writemsg(ep, &msg, 0), -EINVAL);
	msg.rma_iov_count = 5;
	KUNIT_EXPECT_EQ(test, fi_writemsg(ep, &msg, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_readmsg(ep, &msg, 0), -EINVAL);
	msg.rma_iov_count = 1;
	KUNIT_EXPECT_EQ(test, fi_readmsg(ep, &msg, FI_INJECT), -FI_EBADFLAGS);
	KUNIT_EXPECT_EQ(test, fi_readmsg(ep, &msg, FI_DELIVERY_COMPLETE),
			-FI_EBADFLAGS);
	KUNIT_EXPECT_EQ(test, fi_readmsg(ep, &msg, FI_REMOTE_CQ_DATA),
			-FI_EBADFLAGS);
	KUNIT_EXPECT_EQ(test, fi_writemsg(ep, &msg, KOFI_REMOTE_INV),
			-FI_EBADFLAGS);
	KUNIT_EXPECT_EQ(test, fi_writemsg(ep, &msg, FI_TRANSMIT_COMPLETE |
					  FI_DELIVERY_COMPLETE),
			-FI_EBADFLAGS);
	iov.iov_len = KSK_MSG_MAX + 1;
	rma[0].len = KSK_MSG_MAX + 1;
	KUNIT_EXPECT_EQ(test, fi_readmsg(ep, &msg, 0), -EMSGSIZE);
	rma_expect_none(test, l->end[0].tx);
}

/* ------------------------------------------------------ tags, shared contexts */

static void rma_tagged(struct kunit *test)
{
	struct live *l = test->priv;
	struct live_end *a = &l->end[0], *b = &l->end[1];
	struct fi_cq_err_entry e;
	struct kvec iov = { l->out, 50000 };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .tag = 0x1234, .data = 99,
	};

	rma_pair(test, l);
	memset(l->in, 0, LIVE_BIG);
	KUNIT_ASSERT_EQ(test, fi_recv(b->ep, l->in, 100, NULL, 0, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_trecv(b->ep, l->in + 1000, 100, NULL, 0, 7, 0,
				       (void *)7), 0);
	KUNIT_ASSERT_EQ(test, fi_trecv(b->ep, l->in + 100000, 50000, NULL, 0,
				       0x1000, 0xfff, (void *)8), 0);
	KUNIT_ASSERT_EQ(test, fi_tsendmsg(a->ep, &msg, FI_REMOTE_CQ_DATA |
					  FI_DELIVERY_COMPLETE), 0);
	KUNIT_ASSERT_EQ(test, live_comp(b->rx, &e), 0);
	KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)8);
	KUNIT_EXPECT_EQ(test, e.flags, FI_RECV | FI_TAGGED |
			FI_REMOTE_CQ_DATA);
	KUNIT_EXPECT_EQ(test, e.tag, 0x1234);
	KUNIT_EXPECT_EQ(test, e.data, 99);
	KUNIT_EXPECT_EQ(test, e.len, 50000);
	KUNIT_EXPECT_EQ(test, memcmp(l->in + 100000, l->out, 50000), 0);
	rma_expect(test, a->tx, NULL, FI_SEND | FI_TAGGED);

	/* an injected one is cut, an untagged one does not meet tags */
	KUNIT_ASSERT_EQ(test, fi_tinject(a->ep, l->out, 128, 0, 7), 0);
	KUNIT_EXPECT_EQ(test, live_comp(b->rx, &e), -FI_ETRUNC);
	KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)7);
	KUNIT_EXPECT_EQ(test, e.flags, FI_RECV | FI_TAGGED);
	KUNIT_EXPECT_EQ(test, e.tag, 7);
	KUNIT_EXPECT_EQ(test, e.olen, 28);
	KUNIT_ASSERT_EQ(test, fi_send(a->ep, l->out, 100, NULL, 0, NULL), 0);
	rma_expect(test, b->rx, NULL, FI_RECV | FI_MSG);
	rma_expect(test, a->tx, NULL, FI_SEND | FI_MSG);

	/* one that is not wanted is found, thrown away and acknowledged */
	msg.tag = 5;
	KUNIT_ASSERT_EQ(test, fi_tsendmsg(a->ep, &msg, FI_DELIVERY_COMPLETE),
			0);
	RMA_WAIT(test, RMA_STAT(b, rx_stalls) == 1);
	msg.iov_count = 0;
	KUNIT_ASSERT_EQ(test, fi_trecvmsg(b->ep, &msg, FI_PEEK | FI_DISCARD),
			0);
	KUNIT_ASSERT_EQ(test, live_comp(b->rx, &e), 0);
	KUNIT_EXPECT_EQ(test, e.tag, 5);
	KUNIT_EXPECT_EQ(test, e.len, 50000);
	rma_expect(test, a->tx, NULL, FI_SEND | FI_TAGGED);
}

/* Many messages into one buffer */
static void rma_multi_receive(struct kunit *test)
{
	enum { N = 10, LEN = 1000 };
	struct live *l = test->priv;
	struct live_end *a = &l->end[0], *b = &l->end[1];
	struct kvec iov = { l->in, N * LEN };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .context = l };
	int i;

	rma_pair(test, l);
	KUNIT_ASSERT_EQ(test, fi_recvmsg(b->ep, &msg, FI_MULTI_RECV), 0);
	for (i = 0; i < N; i++)
		KUNIT_ASSERT_EQ(test, fi_send(a->ep, l->out + i * 3, LEN, NULL,
					      0, NULL), 0);
	for (i = 0; i < N; i++) {
		struct fi_cq_err_entry e;

		KUNIT_ASSERT_EQ(test, live_comp(b->rx, &e), 0);
		KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)l);
		KUNIT_EXPECT_EQ(test, e.len, LEN);
		KUNIT_EXPECT_PTR_EQ(test, e.buf, (void *)(l->in + i * LEN));
		KUNIT_EXPECT_EQ(test, memcmp(l->in + i * LEN, l->out + i * 3,
					     LEN), 0);
		KUNIT_EXPECT_EQ(test, e.flags, FI_RECV | FI_MSG |
				(i == N - 1 ? FI_MULTI_RECV : 0));
	}
}

/* Two connections whose accepting ends take their receives from one context */
struct rma_shared {
	struct live_end	from[2];
	struct live_end	to[2];
};

static void rma_shared_open(struct kunit *test, struct live *l,
			    struct rma_shared *s)
{
	struct fi_cq_attr cq_attr = {
		.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC,
	};
	struct live_end *to = s->to;
	int i;

	live_listen(test, l, AF_INET);
	live_start(test, l);
	KUNIT_ASSERT_EQ(test, fi_domain(l->fabric, l->info, &to->domain, NULL),
			0);
	KUNIT_ASSERT_EQ(test, fi_cq_open(to->domain, &cq_attr, &to->rx, NULL),
			0);
	KUNIT_ASSERT_EQ(test, fi_srx_context(to->domain, l->info->rx_attr,
					     &to->srx, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(to->srx, &to->rx->fid, FI_RECV), 0);
	KUNIT_ASSERT_EQ(test, fi_enable(to->srx), 0);
	s->to[1] = s->to[0];
	for (i = 0; i < 2; i++) {
		struct fi_info *req = NULL;

		live_open(test, l, &s->from[i], fi_dupinfo(l->info), 0);
		KUNIT_ASSERT_EQ(test, fi_connect(s->from[i].ep, &l->addr, NULL,
						 0), 0);
		KUNIT_ASSERT_EQ(test, live_event(l->pep_eq, FI_CONNREQ, &req,
						 NULL), 0);
		live_open(test, l, &s->to[i], req, 0);
		KUNIT_ASSERT_EQ(test, fi_accept(s->to[i].ep, NULL, 0), 0);
		KUNIT_ASSERT_EQ(test, live_event(s->to[i].eq, FI_CONNECTED,
						 NULL, NULL), 0);
		KUNIT_ASSERT_EQ(test, live_event(s->from[i].eq, FI_CONNECTED,
						 NULL, NULL), 0);
	}
}

static void rma_shared_close(struct kunit *test, struct rma_shared *s)
{
	struct live_end *to = s->to;
	int i;

	KUNIT_EXPECT_EQ(test, fi_close(&to->srx->fid), -EBUSY);
	for (i = 0; i < 2; i++) {
		live_close_end(test, &s->from[i]);
		KUNIT_EXPECT_EQ(test, fi_close(&s->to[i].ep->fid), 0);
		s->to[i].ep = NULL;
	}
	KUNIT_EXPECT_EQ(test, fi_close(&to->srx->fid), 0);
	s->to[1].rx = NULL;
	s->to[1].domain = NULL;
	live_close_end(test, &s->to[1]);
	live_close_end(test, &s->to[0]);
}

static void rma_shared(struct kunit *test)
{
	struct rma_shared *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	struct live *l = test->priv;
	struct fi_cq_err_entry e;
	struct fid_cq *rx;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, s);
	rma_shared_open(test, l, s);
	rx = s->to[0].rx;
	KUNIT_EXPECT_EQ(test, fi_recv(s->to[0].ep, l->in, 8, NULL, 0, NULL),
			-ENOSYS);

	/* both ask, with and without a tag, and each gets its own */
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, fi_send(s->from[i].ep, l->out + i, 100,
					      NULL, 0, NULL), 0);
		rma_expect(test, s->from[i].tx, NULL, FI_SEND | FI_MSG);
		RMA_WAIT(test, RMA_STAT(&s->to[i], rx_stalls) == 1);
	}
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, fi_recv(s->to[0].srx, l->in, 100, NULL, 0,
					      l->in), 0);
		rma_expect(test, rx, l->in, FI_RECV | FI_MSG);
		KUNIT_EXPECT_EQ(test, memcmp(l->in, l->out + i, 100), 0);
		rma_expect_none(test, rx);
	}
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, fi_trecv(s->to[0].srx, l->in + i * 1000,
					       1000, NULL, 0, i, 0, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_tsend(s->from[0].ep, l->out, 1000, NULL, 0, 1,
				       NULL), 0);
	KUNIT_ASSERT_EQ(test, live_comp(rx, &e), 0);
	KUNIT_EXPECT_EQ(test, e.tag, 1);
	KUNIT_EXPECT_EQ(test, memcmp(l->in + 1000, l->out, 1000), 0);

	/* the end of one stream leaves the receives to the other */
	live_close_end(test, &s->from[0]);
	KUNIT_EXPECT_EQ(test, live_event(s->to[0].eq, FI_SHUTDOWN, NULL, NULL),
			0);
	rma_expect_none(test, rx);
	KUNIT_EXPECT_EQ(test, fi_tsend(s->from[1].ep, l->out + 7, 1000, NULL, 0,
				       0, NULL), 0);
	KUNIT_ASSERT_EQ(test, live_comp(rx, &e), 0);
	KUNIT_EXPECT_EQ(test, e.tag, 0);
	KUNIT_EXPECT_EQ(test, memcmp(l->in, l->out + 7, 1000), 0);
	rma_shared_close(test, s);
}

/* ---------------------------------------------- raw peers: bytes written here */

static void raw_frame(u8 *b, u8 op, u16 flags, u8 segs, u8 hdr_size, u64 size)
{
	memset(b, 0, 16);
	b[0] = 3;
	b[1] = op;
	put_unaligned_le16(flags, b + 2);
	b[5] = segs;
	b[6] = hdr_size;
	put_unaligned_le64(size, b + 8);
}

static void raw_seg(u8 *b, u64 addr, u64 len, u64 key)
{
	put_unaligned_le64(addr, b);
	put_unaligned_le64(len, b + 8);
	put_unaligned_le64(key, b + 16);
}

static void raw_release(void *sock)
{
	sock_release(sock);
}

static struct socket *raw_peer(struct kunit *test, u32 ext)
{
	struct socket *sock = live_raw_connect(test, test->priv, false, ext);

	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, raw_release,
							sock), 0);
	return sock;
}

static void raw_close(struct kunit *test, struct socket *sock)
{
	kunit_release_action(test, raw_release, sock);
}

/* The next frame's header; its payload stays in the socket. */
static bool raw_next(struct kunit *test, struct socket *sock, u8 *hdr)
{
	bool ok = live_raw_recv(sock, hdr, 16) == 16;

	KUNIT_EXPECT_TRUE(test, ok);
	if (ok && hdr[6] > 16)
		ok = live_raw_recv(sock, hdr + 16, hdr[6] - 16) == hdr[6] - 16;
	return ok;
}

/* Our reads beyond the limit wait until earlier ones have been answered. */
static void rma_read_limit(struct kunit *test)
{
	enum { READS = 200, LEN = 40 };
	struct live *l = test->priv;
	struct socket *sock = raw_peer(test, 0);
	struct live_end *e = &l->end[1];
	u8 b[KSK_HDR_MAX + LEN];
	int i;

	for (i = 0; i < READS; i++)
		KUNIT_ASSERT_EQ(test, fi_read(e->ep, l->in + i * LEN, LEN, NULL,
					      0, i * LEN, 0x77,
					      (void *)(long)i), 0);
	RMA_WAIT(test, RMA_STAT(e, tx_held) == 1);
	KUNIT_EXPECT_EQ(test, RMA_STAT(e, tx_frames), KSK_READS_MAX);
	for (i = 0; i < READS; i++) {
		if (!raw_next(test, sock, b))
			break;
		KUNIT_EXPECT_EQ(test, b[1], KSK_OP_READ_REQ);
		KUNIT_EXPECT_EQ(test, b[6], 40);
		KUNIT_EXPECT_EQ(test, get_unaligned_le64(b + 16), i * LEN);
		KUNIT_EXPECT_EQ(test, get_unaligned_le64(b + 24), LEN);
		KUNIT_EXPECT_EQ(test, get_unaligned_le64(b + 32), 0x77);
		raw_frame(b, KSK_OP_READ_RSP, 0, 1, 16, 16 + LEN);
		memcpy(b + 16, l->out + i * LEN, LEN);
		live_raw_send(sock, b, 16 + LEN);
		rma_expect(test, e->tx, (void *)(long)i, FI_READ | FI_RMA);
	}
	KUNIT_EXPECT_EQ(test, memcmp(l->in, l->out, READS * LEN), 0);
	KUNIT_EXPECT_EQ(test, RMA_STAT(e, violations), 0);
}

/* An operation with FI_FENCE begins when all before it have been answered. */
static void rma_fence(struct kunit *test)
{
	struct live *l = test->priv;
	struct socket *sock = raw_peer(test, 0);
	struct live_end *e = &l->end[1];
	struct kvec iov = { l->out, 8 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .context = &iov };
	u8 b[KSK_HDR_MAX];

	/* behind a read, and behind one that waits for an acknowledgment */
	KUNIT_ASSERT_EQ(test, fi_read(e->ep, l->in, 8, NULL, 0, 0, 1, b), 0);
	KUNIT_ASSERT_EQ(test, fi_sendmsg(e->ep, &msg, FI_FENCE |
					 FI_DELIVERY_COMPLETE), 0);
	KUNIT_ASSERT_EQ(test, fi_sendmsg(e->ep, &msg, FI_FENCE), 0);
	RMA_WAIT(test, RMA_STAT(e, tx_held) == 1);
	KUNIT_EXPECT_EQ(test, RMA_STAT(e, tx_frames), 1);
	KUNIT_ASSERT_TRUE(test, raw_next(test, sock, b));
	KUNIT_EXPECT_EQ(test, b[1], KSK_OP_READ_REQ);

	raw_frame(b, KSK_OP_READ_RSP, 0, 0, 16, 24);
	live_raw_send(sock, b, 24);
	rma_expect(test, e->tx, b, FI_READ | FI_RMA);
	KUNIT_ASSERT_TRUE(test, raw_next(test, sock, b));
	KUNIT_EXPECT_EQ(test, b[1], KSK_OP_MSG);
	KUNIT_EXPECT_EQ(test, b[2], KSK_F_DELIVERY);
	KUNIT_EXPECT_EQ(test, live_raw_recv(sock, b, 8), 8);
	RMA_WAIT(test, RMA_STAT(e, tx_held) == 2);
	KUNIT_EXPECT_EQ(test, RMA_STAT(e, tx_frames), 2);

	raw_frame(b, KSK_OP_MSG, 0, 0, 16, 16);
	b[4] = KSK_OP_DATA_ACK;
	live_raw_send(sock, b, 16);
	rma_expect(test, e->tx, &iov, FI_SEND | FI_MSG);
	KUNIT_ASSERT_TRUE(test, raw_next(test, sock, b));
	KUNIT_EXPECT_EQ(test, b[2], 0);
	rma_expect(test, e->tx, &iov, FI_SEND | FI_MSG);
}

/*
 * A peer answers reads and acknowledges writes in the order in which they have
 * arrived, as one queue would: no acknowledgment overtakes an earlier response.
 * All arrive in one segment, so that there are several to choose from.
 */
static void rma_answer_order(struct kunit *test)
{
	static const char ops[] = "rwwrwrrw";
	struct live *l = test->priv;
	u8 *mem = rma_alloc(test, SZ_64K);
	struct fi_rma_iov rma = { .len = SZ_4K };
	struct kvec iov = { .iov_len = SZ_4K };
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1,
		.rma_iov = &rma, .rma_iov_count = 1,
	};
	struct fid_mr *mr;
	unsigned int round;
	size_t i;

	rma_pair(test, l);
	mr = rma_reg(test, &l->end[1], mem, SZ_64K, RMA_ALL);
	rma.key = fi_mr_key(mr);
	for (round = 0; round < 3; round++) {
		for (i = 0; ops[i]; i++) {
			u64 more = ops[i + 1] ? FI_MORE : 0;

			rma.addr = kofi_mr_base(mr) + i * SZ_4K;
			msg.context = (void *)(i + 1);
			if (ops[i] == 'r') {
				iov.iov_base = l->in + i * SZ_4K;
				KUNIT_ASSERT_EQ(test, 0,
						fi_readmsg(l->end[0].ep, &msg,
							   more));
				continue;
			}
			iov.iov_base = l->out;
			KUNIT_ASSERT_EQ(test, 0,
					fi_writemsg(l->end[0].ep, &msg, more |
						    FI_DELIVERY_COMPLETE));
		}
		for (i = 0; ops[i]; i++)
			rma_expect(test, l->end[0].tx, (void *)(i + 1),
				   FI_RMA | (ops[i] == 'r' ? FI_READ :
							     FI_WRITE));
	}
	rma_unreg(test, mr);
}

/* A peer with more reads than we queue: it waits, and gets all in order. */
static void rma_read_flood(struct kunit *test)
{
	enum { READS = 150 };
	const size_t len = SZ_64K;
	struct live *l = test->priv;
	struct socket *sock = raw_peer(test, 0);
	struct live_end *e = &l->end[1];
	struct fid_mr *mr = rma_reg(test, e, l->out, LIVE_BIG, FI_REMOTE_READ);
	u8 b[KSK_HDR_MAX];
	int i;

	for (i = 0; i < READS; i++) {
		raw_frame(b, KSK_OP_READ_REQ, 0, 1, 40, 40);
		raw_seg(b + 16, kofi_mr_base(mr) + i, len, fi_mr_key(mr));
		KUNIT_ASSERT_EQ(test, live_raw_send(sock, b, 40), 40);
	}
	/* the answers are not read: they fill what buffers there are */
	RMA_WAIT(test, RMA_STAT(e, rx_full) >= 1);
	KUNIT_EXPECT_LT(test, RMA_STAT(e, tx_responses), READS -
			KSK_READS_MAX);
	for (i = 0; i < READS; i++) {
		if (!raw_next(test, sock, b))
			break;
		KUNIT_EXPECT_EQ(test, b[1], KSK_OP_READ_RSP);
		KUNIT_EXPECT_EQ(test, b[6], 16);
		KUNIT_EXPECT_EQ(test, get_unaligned_le16(b + 2), 0);
		KUNIT_ASSERT_EQ(test, get_unaligned_le64(b + 8), 16 + len);
		KUNIT_ASSERT_EQ(test, live_raw_recv(sock, l->in, len), len);
		KUNIT_EXPECT_EQ(test, memcmp(l->in, l->out + i, len), 0);
	}
	/* the last one is counted behind its last byte */
	RMA_WAIT(test, RMA_STAT(e, tx_responses) == READS);
	KUNIT_EXPECT_EQ(test, RMA_STAT(e, violations), 0);
	rma_unreg(test, mr);
}

/* ------------------------------------------------- regions closed in between */

/* A write stops where its region is closed, and so does the connection. */
static void rma_close_in_write(struct kunit *test)
{
	struct live *l = test->priv;
	struct socket *sock = raw_peer(test, 0);
	struct live_end *e = &l->end[1];
	struct fid_mr *mr = rma_reg(test, e, l->in, LIVE_BIG, FI_REMOTE_WRITE);
	size_t half = LIVE_BIG / 2, i;
	u8 b[KSK_HDR_MAX];

	memset(l->in, 0, LIVE_BIG);
	raw_frame(b, KSK_OP_WRITE, 0, 1, 40, 40 + LIVE_BIG);
	raw_seg(b + 16, kofi_mr_base(mr), LIVE_BIG, fi_mr_key(mr));
	KUNIT_ASSERT_EQ(test, live_raw_send(sock, b, 40), 40);
	KUNIT_ASSERT_EQ(test, live_raw_send(sock, l->out, half), half);
	RMA_WAIT(test, RMA_STAT(e, rx_bytes) == 40 + half);
	KUNIT_EXPECT_EQ(test, memcmp(l->in, l->out, half), 0);
	rma_unreg(test, mr);
	/* ours again */
	memset(l->in, 0xee, LIVE_BIG);
	live_raw_send(sock, l->out, half);
	KUNIT_EXPECT_EQ(test, live_event(e->eq, FI_SHUTDOWN, NULL, NULL), 0);
	for (i = 0; i < LIVE_BIG && l->in[i] == 0xee; i++)
		;
	KUNIT_EXPECT_EQ(test, i, LIVE_BIG);
	KUNIT_EXPECT_EQ(test, RMA_STAT(e, violations), 0);
	KUNIT_EXPECT_LE(test, live_raw_recv(sock, b, 1), 0);
}

/* Nor does half an answer get another half from somewhere. */
static void rma_close_in_read(struct kunit *test)
{
	struct live *l = test->priv;
	struct socket *sock = raw_peer(test, 0);
	struct live_end *e = &l->end[1];
	u8 *mem = rma_alloc(test, RMA_BIG);
	struct fid_mr *mr = rma_reg(test, e, mem, RMA_BIG, FI_REMOTE_READ);
	u8 b[KSK_HDR_MAX];
	size_t got = 0;
	int n;

	live_pattern(mem, RMA_BIG, 1);
	raw_frame(b, KSK_OP_READ_REQ, 0, 1, 40, 40);
	raw_seg(b + 16, kofi_mr_base(mr), RMA_BIG, fi_mr_key(mr));
	KUNIT_ASSERT_EQ(test, live_raw_send(sock, b, 40), 40);
	/* the socket has taken what it takes */
	RMA_WAIT(test, RMA_STAT(e, tx_full) >= 1);
	rma_unreg(test, mr);
	memset(mem, 0, RMA_BIG);
	KUNIT_EXPECT_TRUE(test, raw_next(test, sock, b));
	live_pattern(mem, RMA_BIG, 1);
	while ((n = live_raw_recv(sock, l->in, 4096)) > 0) {
		KUNIT_EXPECT_EQ(test, memcmp(l->in, mem + got, n), 0);
		got += n;
	}
	KUNIT_EXPECT_GT(test, got, 0);
	KUNIT_EXPECT_LT(test, got, RMA_BIG);
	KUNIT_EXPECT_EQ(test, live_event(e->eq, FI_SHUTDOWN, NULL, NULL), 0);
}

/* --------------------------------------------------------- remote invalidation */

/* A region of a pool, mapped for one use */
static struct fid_mr *rma_map(struct kunit *test, struct live_end *e, void *buf,
			      size_t len, struct kofi_cqe *cqe)
{
	struct kvec iov = { buf, len };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .context = cqe };
	struct fid_mr *mr = kofi_mr_get(e->ep);

	KUNIT_ASSERT_NOT_NULL(test, mr);
	KUNIT_ASSERT_EQ(test, kofi_mr_map(mr, &msg, RMA_ALL, FI_MR_SINGLE_USE),
			0);
	return mr;
}

/* Both ends of a connection with pools */
static void rma_pool_pair(struct kunit *test, struct live *l)
{
	size_t size = 4, segs = 4;
	struct fi_info *req = NULL;
	int i;

	live_listen(test, l, AF_INET);
	live_start(test, l);
	for (i = 0; i < 2; i++) {
		live_open(test, l, &l->end[i], i ? req : fi_dupinfo(l->info),
			  0);
		KUNIT_ASSERT_EQ(test, fi_setopt(&l->end[i].ep->fid,
						FI_OPT_ENDPOINT,
						KOFI_OPT_MR_POOL, &size,
						sizeof(size)), 0);
		KUNIT_ASSERT_EQ(test, fi_setopt(&l->end[i].ep->fid,
						FI_OPT_ENDPOINT,
						KOFI_OPT_MR_SEGS, &segs,
						sizeof(segs)), 0);
		if (i)
			continue;
		KUNIT_ASSERT_EQ(test, fi_connect(l->end[0].ep, &l->addr, NULL,
						 0), 0);
		KUNIT_ASSERT_EQ(test, live_event(l->pep_eq, FI_CONNREQ, &req,
						 NULL), 0);
	}
	KUNIT_ASSERT_EQ(test, fi_accept(l->end[1].ep, NULL, 0), 0);
	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(test, live_event(l->end[i].eq, FI_CONNECTED,
						 NULL, NULL), 0);
}

static void rma_invalidate(struct kunit *test)
{
	struct live *l = test->priv;
	struct kvec iov = { l->out, 32 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };
	struct fi_cq_err_entry e;
	struct fid_mr *mr;
	int dir;

	rma_pool_pair(test, l);
	for (dir = 0; dir < 2; dir++) {
		struct live_end *a = &l->end[dir], *b = &l->end[!dir];

		mr = rma_map(test, b, l->in, 4096, (void *)0x4242);
		KUNIT_ASSERT_EQ(test, fi_recv(b->ep, l->in + 8192, 32, NULL, 0,
					      NULL), 0);
		msg.inv_key = fi_mr_key(mr);
		KUNIT_ASSERT_EQ(test, fi_sendmsg(a->ep, &msg, KOFI_REMOTE_INV |
						 FI_DELIVERY_COMPLETE), 0);
		KUNIT_ASSERT_EQ(test, live_comp(b->rx, &e), 0);
		KUNIT_EXPECT_EQ(test, e.flags, FI_RECV | FI_MSG |
				KOFI_REMOTE_INV);
		/* it has ended, once */
		KUNIT_ASSERT_EQ(test, live_comp(b->tx, &e), 0);
		KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)0x4242);
		KUNIT_EXPECT_EQ(test, e.flags & KOFI_REMOTE_INV,
				KOFI_REMOTE_INV);
		rma_expect(test, a->tx, NULL, FI_SEND | FI_MSG);
		kofi_mr_put(mr);

		/* a key that has ended changes nothing */
		KUNIT_ASSERT_EQ(test, fi_recv(b->ep, l->in + 8192, 32, NULL, 0,
					      NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_sendmsg(a->ep, &msg, KOFI_REMOTE_INV |
						 FI_DELIVERY_COMPLETE), 0);
		rma_expect(test, b->rx, NULL, FI_RECV | FI_MSG);
		rma_expect(test, a->tx, NULL, FI_SEND | FI_MSG);
		rma_expect_none(test, b->tx);
	}
	/* a region that is not for one use cannot be ended by the peer */
	mr = rma_reg(test, &l->end[1], l->in, 4096, RMA_ALL);
	msg.inv_key = fi_mr_key(mr);
	KUNIT_ASSERT_EQ(test, fi_recv(l->end[1].ep, l->in + 8192, 32, NULL, 0,
				      NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_sendmsg(l->end[0].ep, &msg, KOFI_REMOTE_INV |
					 FI_DELIVERY_COMPLETE), 0);
	KUNIT_EXPECT_EQ(test, live_comp(l->end[0].tx, &e), -ECANCELED);
	KUNIT_EXPECT_EQ(test, live_comp(l->end[1].rx, &e), -ENOTCONN);
	KUNIT_EXPECT_EQ(test, RMA_STAT(&l->end[1], violations), 1);
	rma_unreg(test, mr);
}

/* Not with a peer that knows nothing of it, nor from one */
static void rma_invalidate_stock(struct kunit *test)
{
	struct live *l = test->priv;
	struct socket *sock = raw_peer(test, 0);
	struct live_end *e = &l->end[1];
	struct kvec iov = { l->out, 32 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };
	struct fi_cq_err_entry err;
	u8 b[KSK_HDR_MAX];

	KUNIT_EXPECT_EQ(test, fi_sendmsg(e->ep, &msg, KOFI_REMOTE_INV),
			-EOPNOTSUPP);
	KUNIT_ASSERT_EQ(test, fi_recv(e->ep, l->in, 32, NULL, 0, NULL), 0);
	raw_frame(b, KSK_OP_MSG, KSK_F_REMOTE_INV, 0, 24, 24);
	put_unaligned_le64(1, b + 16);
	live_raw_send(sock, b, 24);
	KUNIT_EXPECT_EQ(test, live_event(e->eq, FI_SHUTDOWN, NULL, NULL), 0);
	KUNIT_EXPECT_EQ(test, live_comp(e->rx, &err), -ECANCELED);
	KUNIT_EXPECT_EQ(test, RMA_STAT(e, violations), 1);
}

/* ------------------------------------------------------- connections that drop */

enum { RMA_OPS = 7 };

/*
 * One of each kind of operation, with contexts 1 to RMA_OPS, and an inject. The
 * large write is more than a peer's buffers take unread.
 */
static void rma_post_all(struct kunit *test, struct live *l, struct live_end *e)
{
	struct kvec big = { l->out, LIVE_BIG }, small = { l->out, 8 };
	struct fi_rma_iov rma = { 0, 8, 1 }, rma_big = { 0, LIVE_BIG, 1 };
	struct fi_msg_rma rmsg = {
		.msg_iov = &small, .iov_count = 1, .rma_iov = &rma,
		.rma_iov_count = 1,
	};
	struct fi_msg_tagged tmsg = {
		.msg_iov = &small, .iov_count = 1, .tag = 3,
	};

	rmsg.context = (void *)1;
	KUNIT_ASSERT_EQ(test, fi_writemsg(e->ep, &rmsg, FI_DELIVERY_COMPLETE),
			0);
	KUNIT_ASSERT_EQ(test, fi_read(e->ep, l->in, 100, NULL, 0, 0, 1,
				      (void *)2), 0);
	tmsg.context = (void *)3;
	KUNIT_ASSERT_EQ(test, fi_tsendmsg(e->ep, &tmsg, FI_TRANSMIT_COMPLETE),
			0);
	KUNIT_ASSERT_EQ(test, fi_read(e->ep, l->in, 100, NULL, 0, 0, 1,
				      (void *)4), 0);
	rmsg.msg_iov = &big;
	rmsg.rma_iov = &rma_big;
	rmsg.context = (void *)5;
	KUNIT_ASSERT_EQ(test, fi_writemsg(e->ep, &rmsg, FI_DELIVERY_COMPLETE),
			0);
	rmsg.msg_iov = &small;
	rmsg.rma_iov = &rma;
	rmsg.context = (void *)6;
	KUNIT_ASSERT_EQ(test, fi_writemsg(e->ep, &rmsg, FI_FENCE |
					  FI_DELIVERY_COMPLETE), 0);
	KUNIT_ASSERT_EQ(test, fi_read(e->ep, l->in, 100, NULL, 0, 0, 1,
				      (void *)7), 0);
	KUNIT_ASSERT_EQ(test, fi_inject_write(e->ep, l->out, 8, 0, 0, 1), 0);
}

/*
 * The connection ends when the peer has read so many bytes. Whatever the moment
 * is, each operation completes once.
 */
static const struct rma_drop {
	const char	*name;
	int		bytes;
	bool		reset;
} rma_drops[] = {
	{ "at once", 0, true },
	{ "in the first header", 20, true },
	{ "in the first payload", 44, true },
	{ "behind the first write", 48, true },
	{ "in the read request", 60, true },
	{ "behind the tagged message", 120, true },
	{ "in the large write", 200, true },
	{ "in the large write, closed", 200, false },
};

static void rma_drop_desc(const struct rma_drop *d, char *desc)
{
	strscpy(desc, d->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rma_drop, rma_drops, rma_drop_desc);

static void rma_drop_sending(struct kunit *test)
{
	const struct rma_drop *d = test->param_value;

	struct live *l = test->priv;
	struct socket *sock = raw_peer(test, 0);
	struct live_end *e = &l->end[1];
	u8 *b = l->in;
	int n;

	rma_post_all(test, l, e);
	if (d->bytes)
		KUNIT_EXPECT_EQ(test, live_raw_recv(sock, b, d->bytes),
				d->bytes);
	if (d->reset)
		sock_no_linger(sock->sk);
	raw_close(test, sock);
	KUNIT_EXPECT_EQ(test, live_event(e->eq, FI_SHUTDOWN, NULL, NULL), 0);
	/* the inject has not been sent: it fails, and says so without context */
	for (n = 0; n < RMA_OPS + 1; n++) {
		struct fi_cq_err_entry err;

		/* in the order they were posted, the inject last */
		KUNIT_ASSERT_EQ(test, live_comp(e->tx, &err), -ECANCELED);
		KUNIT_EXPECT_EQ(test, (long)err.op_context,
				n < RMA_OPS ? n + 1 : 0);
	}
	rma_expect_none(test, e->tx);
}

/* The connection ends in the middle of a response to us. */
static void rma_drop_response(struct kunit *test)
{
	struct live *l = test->priv;
	struct socket *sock = raw_peer(test, 0);
	struct live_end *e = &l->end[1];
	struct fi_cq_err_entry err;
	u8 b[KSK_HDR_MAX];
	long i;

	for (i = 1; i <= 3; i++)
		KUNIT_ASSERT_EQ(test, fi_read(e->ep, l->in, 1000, NULL, 0, 0, 1,
					      (void *)i), 0);
	raw_frame(b, KSK_OP_READ_RSP, 0, 0, 16, 1016);
	live_raw_send(sock, b, 16);
	live_raw_send(sock, l->out, 1000);
	live_raw_send(sock, b, 16);
	live_raw_send(sock, l->out, 500);
	rma_expect(test, e->tx, (void *)1, FI_READ | FI_RMA);
	RMA_WAIT(test, RMA_STAT(e, rx_bytes) == 1016 + 516);
	raw_close(test, sock);
	KUNIT_EXPECT_EQ(test, live_event(e->eq, FI_SHUTDOWN, NULL, NULL), 0);
	for (i = 2; i <= 3; i++) {
		KUNIT_ASSERT_EQ(test, live_comp(e->tx, &err), -ECANCELED);
		KUNIT_EXPECT_PTR_EQ(test, err.op_context, (void *)i);
		KUNIT_EXPECT_EQ(test, err.flags, FI_READ | FI_RMA);
	}
	rma_expect_none(test, e->tx);
}

/* The peer goes away in the middle of what it does to us. */
static const struct rma_part {
	const char	*name;
	u8		op;
	u16		flags;
	unsigned int	sent;
} rma_parts[] = {
	{ "header of a write", KSK_OP_WRITE, KSK_F_CQ_DATA, 30 },
	{ "write without payload", KSK_OP_WRITE, KSK_F_CQ_DATA, 48 },
	{ "half a write", KSK_OP_WRITE, KSK_F_CQ_DATA, 548 },
	{ "half a write to be acknowledged", KSK_OP_WRITE, KSK_F_DELIVERY,
	  540 },
	{ "half a request to read", KSK_OP_READ_REQ, 0, 20 },
	{ "half a tagged message", KSK_OP_TAGGED, 0, 500 },
	{ "header of a tagged message", KSK_OP_TAGGED, 0, 24 },
};

static void rma_part_desc(const struct rma_part *p, char *desc)
{
	strscpy(desc, p->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rma_part, rma_parts, rma_part_desc);

static void rma_drop_target(struct kunit *test)
{
	const struct rma_part *p = test->param_value;
	unsigned int hdr = p->op == KSK_OP_TAGGED ? 24 :
			   p->flags & KSK_F_CQ_DATA ? 48 : 40;
	struct live *l = test->priv;
	struct socket *sock = raw_peer(test, 0);
	struct live_end *e = &l->end[1];
	struct fid_mr *mr = rma_reg(test, e, l->in, LIVE_BIG, RMA_ALL);
	struct fi_cq_err_entry err;
	u8 *b = l->out;

	raw_frame(b, p->op, p->flags, p->op == KSK_OP_TAGGED ? 0 : 1, hdr,
		  hdr + (p->op == KSK_OP_READ_REQ ? 0 : 1000));
	if (p->op == KSK_OP_TAGGED)
		put_unaligned_le64(5, b + 16);
	else
		raw_seg(b + hdr - 24, kofi_mr_base(mr), 1000, fi_mr_key(mr));
	KUNIT_ASSERT_EQ(test, fi_trecv(e->ep, l->in + 2000, 1000, NULL, 0, 5, 0,
				       l), 0);
	live_raw_send(sock, b, p->sent);
	RMA_WAIT(test, RMA_STAT(e, rx_bytes) == p->sent);
	raw_close(test, sock);
	KUNIT_EXPECT_EQ(test, live_event(e->eq, FI_SHUTDOWN, NULL, NULL), 0);
	/* nothing but the receive, whatever happened to it */
	KUNIT_EXPECT_EQ(test, live_comp(e->rx, &err),
			p->op == KSK_OP_TAGGED ? -ENOTCONN : -ECANCELED);
	KUNIT_EXPECT_PTR_EQ(test, err.op_context, (void *)l);
	KUNIT_EXPECT_EQ(test, err.flags, FI_RECV | FI_TAGGED);
	rma_expect_none(test, e->rx);
	rma_unreg(test, mr);
}

static struct kunit_case rma_cases[] = {
	KUNIT_CASE(rma_sizes),
	KUNIT_CASE(rma_memory),
	KUNIT_CASE(rma_pieces),
	KUNIT_CASE(rma_client_keys),
	KUNIT_CASE(rma_guess),
	KUNIT_CASE(rma_data),
	KUNIT_CASE(rma_event),
	KUNIT_CASE(rma_event_single),
	KUNIT_CASE(rma_many_reads),
	KUNIT_CASE(rma_both_ways),
	KUNIT_CASE(rma_bad_posts),
	KUNIT_CASE(rma_tagged),
	KUNIT_CASE(rma_multi_receive),
	KUNIT_CASE(rma_shared),
	KUNIT_CASE(rma_read_limit),
	KUNIT_CASE(rma_fence),
	KUNIT_CASE(rma_answer_order),
	KUNIT_CASE(rma_read_flood),
	KUNIT_CASE(rma_close_in_write),
	KUNIT_CASE(rma_close_in_read),
	KUNIT_CASE(rma_invalidate),
	KUNIT_CASE(rma_invalidate_stock),
	KUNIT_CASE_PARAM(rma_drop_sending, rma_drop_gen_params),
	KUNIT_CASE(rma_drop_response),
	KUNIT_CASE_PARAM(rma_drop_target, rma_part_gen_params),
	{}
};

static struct kunit_suite rma_suite = {
	.name = "sock_rma",
	.suite_init = lo_suite_init,
	.init = live_init,
	.exit = live_exit,
	.test_cases = rma_cases,
};

kunit_test_suite(rma_suite);

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Long messages whose memory is in many pieces, over each provider of endpoints that
 * do not connect: how many regions kofi_rxm needs for them below, and what becomes of
 * those that need too many.
 */
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/vmalloc.h>

#include "../kunit.h"
#include "pair.h"

#define RG_PAGES	1100
#define RG_CUT		100	/* bytes a run of pages lacks at its end */

/**
 * struct rg_case - a message
 * @runs: of pages that follow each other without a gap
 * @pages: of each of them
 * @soft: it goes by rendezvous where gaps do not matter
 * @device: and where they do
 */
struct rg_case {
	unsigned int	runs;
	unsigned int	pages;
	bool		soft;
	bool		device;
};

static const struct rg_case rg_table[] = {
	{ 1, 64, true, true },
	{ 1, 600, true, true },		/* three regions, */
	{ 1, 1024, true, true },	/* four, */
	{ 1, RG_PAGES, false, false },	/* and five of them */
	{ 4, 20, true, true },
	{ 5, 20, true, false },
	{ 2, 400, true, true },		/* two each for a device */
	{ 3, 300, true, false },
};

static void rg_free_sgl(void *sgl)
{
	kvfree(sgl);
}

static void rg_free(void *mem)
{
	vfree(mem);
}

static u8 *rg_mem(struct kunit *test)
{
	u8 *mem = vmalloc(RG_PAGES * PAGE_SIZE);

	KUNIT_ASSERT_NOT_NULL(test, mem);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, rg_free, mem), 0);
	return mem;
}

/* The bytes there are */
static size_t rg_fill(const struct rg_case *c, struct scatterlist *sgl, u8 *out)
{
	unsigned int nr = c->runs * c->pages, i;
	size_t len = 0, n;

	sg_init_table(sgl, nr);
	for (i = 0; i < nr; i++) {
		n = (i + 1) % c->pages ? PAGE_SIZE : PAGE_SIZE - RG_CUT;
		sg_set_page(&sgl[i], vmalloc_to_page(out + i * PAGE_SIZE), n, 0);
		len += n;
	}
	return len;
}

static void rg_check(struct kunit *test, const struct rg_case *c,
		     const u8 *out, const u8 *in)
{
	const size_t run = c->pages * PAGE_SIZE - RG_CUT;
	unsigned int i;

	for (i = 0; i < c->runs; i++)
		KUNIT_EXPECT_EQ_MSG(test, memcmp(in + i * run, out +
						 i * c->pages * PAGE_SIZE, run),
				    0, "run %u of %u of %u pages", i, c->runs,
				    c->pages);
}

static void rg_one(struct rdm_pair *t, const struct rg_case *c,
		   struct scatterlist *sgl, u8 *out, u8 *in)
{
	bool soft = !strncmp(t->info->fabric_attr->prov_name, "sock", 4);
	bool rxm = strstr(t->info->fabric_attr->prov_name, "ofi_rxm");
	size_t len = rg_fill(c, sgl, out);
	const struct fi_msg msg = {
		.vec = KOFI_SGL, .msg_sgl = sgl, .iov_count = c->runs * c->pages,
		.addr = t->from.peer, .context = t,
	};
	const char *way = (soft ? c->soft : c->device) ? "tx_rendezvous" :
							 "tx_segmented";
	const struct fi_fid *from = &t->from.ep->fid;
	struct kunit *test = t->test;
	struct fi_cq_tagged_entry e;
	u64 before = rdm_fid_stat(from, way);

	memset(in, 0, len);
	KUNIT_ASSERT_EQ(test, fi_recv(t->to.ep, in, len, NULL, FI_ADDR_UNSPEC,
				      t), 0);
	KUNIT_ASSERT_EQ(test, fi_sendmsg(t->from.ep, &msg, FI_COMPLETION), 0);
	KUNIT_ASSERT_EQ(test, rdm_comp(&t->to, &e), 0);
	KUNIT_EXPECT_EQ(test, e.len, len);
	KUNIT_ASSERT_EQ(test, rdm_comp(&t->from, &e), 0);
	rg_check(test, c, out, in);
	if (rxm)
		KUNIT_EXPECT_EQ_MSG(test, rdm_fid_stat(from, way), before + 1,
				    "%s of %u times %u pages", way, c->runs,
				    c->pages);
}

/* Of pages, with gaps where runs of them end */
static void regions_messages(struct kunit *test)
{
	struct rdm_pair *t = rdm_pair_alloc(test, FI_MSG | FI_TAGGED, RDM_KEYS);
	u8 *out = rg_mem(test), *in = rg_mem(test);
	struct scatterlist *sgl = kvcalloc(RG_PAGES, sizeof(*sgl), GFP_KERNEL);
	size_t i;

	KUNIT_ASSERT_NOT_NULL(test, sgl);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, rg_free_sgl, sgl),
			0);
	for (i = 0; i < RG_PAGES * PAGE_SIZE; i++)
		out[i] = i * 7 + i / 256 + i / PAGE_SIZE;
	rdm_pair_end(t, &t->from, 0, 0, NULL);
	rdm_pair_end(t, &t->to, 0, 0, NULL);
	rdm_pair_enable(t);
	for (i = 0; i < ARRAY_SIZE(rg_table); i++)
		rg_one(t, &rg_table[i], sgl, out, in);
}

#define RG_AT_ONCE	6

/* More regions are wanted than a connection has: all is sent, in order. */
static void regions_short(struct kunit *test)
{
	struct rdm_pair *t = rdm_pair_alloc(test, FI_MSG | FI_TAGGED, RDM_KEYS);
	u8 *out = rg_mem(test), *in = rg_mem(test);
	const size_t len = 600 * PAGE_SIZE, step = PAGE_SIZE;
	struct fi_cq_tagged_entry e;
	int i;

	for (i = 0; i < RG_PAGES; i++)
		memset(out + i * step, i * 3, step);
	rdm_pair_end(t, &t->from, 0, 0, NULL);
	rdm_pair_end(t, &t->to, 0, 0, NULL);
	rdm_pair_enable(t);
	/* none is fetched before all have been posted */
	for (i = 0; i < RG_AT_ONCE; i++)
		KUNIT_ASSERT_EQ(test, fi_tsend(t->from.ep, out + i * step, len,
					       NULL, t->from.peer, i, t), 0);
	for (i = 0; i < RG_AT_ONCE; i++) {
		KUNIT_ASSERT_EQ(test, fi_trecv(t->to.ep, in, len, NULL,
					       FI_ADDR_UNSPEC, 0, ~0ULL, t), 0);
		KUNIT_ASSERT_EQ(test, rdm_comp(&t->to, &e), 0);
		KUNIT_EXPECT_EQ(test, e.tag, i);
		KUNIT_EXPECT_EQ(test, e.len, len);
		KUNIT_EXPECT_EQ(test, memcmp(in, out + i * step, len), 0);
	}
	for (i = 0; i < RG_AT_ONCE; i++)
		KUNIT_ASSERT_EQ(test, rdm_comp(&t->from, &e), 0);
}

static struct kunit_case rg_cases[] = {
	KUNIT_CASE_PARAM(regions_messages, rdm_place_gen_params),
	KUNIT_CASE_PARAM(regions_short, rdm_place_gen_params),
	{}
};

static struct kunit_suite rg_suite = {
	.name = "rdm_regions",
	.attr.speed = KUNIT_SPEED_SLOW,
	.suite_init = lo_suite_init,
	.test_cases = rg_cases,
};

kunit_test_suite(rg_suite);

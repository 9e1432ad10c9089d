// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Registered memory: what it is made of, keys, rights, binding, closing. */
#include <linux/bvec.h>
#include <linux/folio_queue.h>
#include <linux/highmem.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "mr_test.h"

#define MR_SEED		0x6d72

static void mr_end_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct mr_end *end = container_of(wc->cqe, struct mr_end, cqe);

	end->wc = *wc;
	end->calls++;
}

void mr_end_init(struct mr_end *end)
{
	memset(end, 0, sizeof(*end));
	end->cqe.done = mr_end_done;
}

static void mr_space(struct fid_ep *ep, void *context)
{
	struct mr_test *t = context;

	t->spaces++;
}

static u32 mr_random(struct mr_test *t, u32 below)
{
	return prandom_u32_state(&t->rnd) % below;
}

static struct kofi_mr *mr_of(struct fid_mr *mr)
{
	return container_of(mr, struct kofi_mr, mr);
}

static struct kofi_mr_table *mr_table(struct fake_world *world)
{
	return &container_of(world->domain, struct kofi_domain, domain)->mrs;
}

/* An endpoint, with a pool if it is to have one */
struct fid_ep *mr_endpoint(struct kunit *test, size_t pool, size_t segs)
{
	struct mr_test *t = test->priv;
	struct fid_ep *ep;

	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(t->world->domain, t->world->info,
					     &ep, t));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &t->eq->fid, 0));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(ep, &t->cq->fid, FI_TRANSMIT |
					    FI_RECV));
	KUNIT_ASSERT_EQ(test, 0, kofi_ep_write_space(ep, mr_space));
	if (pool) {
		KUNIT_ASSERT_EQ(test, 0,
				fi_setopt(&ep->fid, FI_OPT_ENDPOINT,
					  KOFI_OPT_MR_POOL, &pool,
					  sizeof(pool)));
		KUNIT_ASSERT_EQ(test, 0,
				fi_setopt(&ep->fid, FI_OPT_ENDPOINT,
					  KOFI_OPT_MR_SEGS, &segs,
					  sizeof(segs)));
	}
	fake_connected(test, ep);
	return ep;
}

int mr_test_init(struct kunit *test)
{
	const struct kofi_cq_attr kattr = {
		.poll = KOFI_POLL_DIRECT, .done = true,
	};
	struct mr_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	test->priv = t;
	prandom_seed_state(&t->rnd, MR_SEED);
	t->mem = kunit_kzalloc(test, MR_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->mem);
	t->world = fake_open_mr(test, FI_MR_PROV_KEY);
	KUNIT_ASSERT_EQ(test, 0, fi_eq_open(t->world->fabric, NULL, &t->eq,
					    NULL));
	KUNIT_ASSERT_EQ(test, 0, kofi_cq_open(t->world->domain, NULL, &kattr,
					      &t->cq, NULL));
	t->ep = mr_endpoint(test, MR_POOL, MR_SEGS);
	t->other = mr_endpoint(test, 0, 0);
	return 0;
}

void mr_test_exit(struct kunit *test)
{
	struct mr_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->ep->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->other->fid));
	KUNIT_EXPECT_TRUE(test, xa_empty(&mr_table(t->world)->regions));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->cq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->eq->fid));
	fake_close(test, t->world);
}

/* All of the memory */
struct fid_mr *mr_reg(struct kunit *test, u64 access, u64 flags)
{
	struct mr_test *t = test->priv;
	struct fid_mr *mr;

	KUNIT_ASSERT_EQ(test, 0, fi_mr_reg(t->world->domain, t->mem, MR_SIZE,
					   access, 0, 0, flags, &mr, t));
	return mr;
}

static u64 mr_stat_sum;

static void mr_stat(void *arg, const char *name, u64 value)
{
	if (!strcmp(name, arg))
		mr_stat_sum += value;
}

/* A statistic of an object */
u64 mr_stat_of(struct kofi_obj *obj, char *name)
{
	mr_stat_sum = 0;
	obj->ops->stats(obj, mr_stat, name);
	return mr_stat_sum;
}

/* --------------------------------------------------- impossible arguments */

static const struct kvec mr_kv_null[] = { { NULL, 1 } };
static const struct kvec mr_kv_wrap[] = { { (void *)-16UL, 32 } };
static const struct kvec mr_kv_user[] = { { (void *)0x1000, 32 } };
static const struct bio_vec mr_bv_null[] = { { .bv_len = 1 } };
static struct scatterlist mr_sg_short[2];
static struct scatterlist mr_sg_null[1];
static struct iov_iter mr_iter_user;
static struct iov_iter mr_iter_discard;
static struct iov_iter mr_iter_long;
static struct iov_iter mr_iter_hole;
static DEFINE_XARRAY(mr_xa_empty);
static struct page *mr_pages[2];
static struct page *mr_pages_null[2];
static u8 mr_byte[2];
static struct kvec mr_kv_byte[] = { { mr_byte, 2 } };
static u8 mr_auth[4];

static const struct {
	const char		*name;
	struct fi_mr_attr	attr;
	u64			flags;
	int			ret;
} mr_args[] = {
	{ "no right", { .mr_iov = mr_kv_byte, .iov_count = 1 }, 0, -EINVAL },
	{ "unknown right", { .mr_iov = mr_kv_byte, .iov_count = 1,
	  .access = MR_ALL | FI_ATOMIC }, 0, -EINVAL },
	{ "offset", { .mr_iov = mr_kv_byte, .iov_count = 1, .access = MR_ALL,
	  .offset = 1 }, 0, -EINVAL },
	{ "authorisation key", { .mr_iov = mr_kv_byte, .iov_count = 1,
	  .access = MR_ALL, .auth_key = mr_auth,
	  .auth_key_size = sizeof(mr_auth) }, 0, -EINVAL },
	{ "unknown kind", { .mr_iov = mr_kv_byte, .iov_count = 1,
	  .access = MR_ALL, .vec = KOFI_PAGES + 1 }, 0, -EINVAL },
	{ "list of a device", { .mr_sgl = mr_sg_short, .iov_count = 2,
	  .access = MR_ALL, .vec = KOFI_SGL_MAPPED }, 0, -EINVAL },
	{ "unknown flag", { .mr_iov = mr_kv_byte, .iov_count = 1,
	  .access = MR_ALL }, BIT_ULL(62), -FI_EBADFLAGS },
	{ "memory of a device", { .mr_iov = mr_kv_byte, .iov_count = 1,
	  .access = MR_ALL }, FI_MR_DMABUF, -FI_EBADFLAGS },
	{ "no kvec array", { .iov_count = 1, .access = MR_ALL }, 0, -EINVAL },
	{ "no bvec array", { .iov_count = 1, .access = MR_ALL,
	  .vec = KOFI_BVEC }, 0, -EINVAL },
	{ "no scatterlist", { .iov_count = 1, .access = MR_ALL,
	  .vec = KOFI_SGL }, 0, -EINVAL },
	{ "no page array", { .iov_count = 1, .access = MR_ALL, .page_len = 1,
	  .vec = KOFI_PAGES }, 0, -EINVAL },
	{ "no iterator", { .access = MR_ALL, .vec = KOFI_ITER }, 0, -EINVAL },
	{ "kvec at NULL", { .mr_iov = mr_kv_null, .iov_count = 1,
	  .access = MR_ALL }, 0, -EINVAL },
	{ "kvec around the end", { .mr_iov = mr_kv_wrap, .iov_count = 1,
	  .access = MR_ALL }, 0, -EINVAL },
	{ "kvec of no memory", { .mr_iov = mr_kv_user, .iov_count = 1,
	  .access = MR_ALL }, 0, -EINVAL },
	{ "bvec without page", { .mr_bvec = mr_bv_null, .iov_count = 1,
	  .access = MR_ALL, .vec = KOFI_BVEC }, 0, -EINVAL },
	{ "scatterlist too short", { .mr_sgl = mr_sg_short, .iov_count = 3,
	  .access = MR_ALL, .vec = KOFI_SGL }, 0, -EINVAL },
	{ "scatterlist without page", { .mr_sgl = mr_sg_null, .iov_count = 1,
	  .access = MR_ALL, .vec = KOFI_SGL }, 0, -EINVAL },
	{ "user iterator", { .mr_iter = &mr_iter_user, .access = MR_ALL,
	  .vec = KOFI_ITER }, 0, -EINVAL },
	{ "iterator over nothing", { .mr_iter = &mr_iter_discard,
	  .access = MR_ALL, .vec = KOFI_ITER }, 0, -EINVAL },
	{ "iterator beyond its array", { .mr_iter = &mr_iter_long,
	  .access = MR_ALL, .vec = KOFI_ITER }, 0, -EINVAL },
	{ "iterator over a hole", { .mr_iter = &mr_iter_hole,
	  .access = MR_ALL, .vec = KOFI_ITER }, 0, -EINVAL },
	{ "pages without page", { .mr_pages = mr_pages_null, .iov_count = 2,
	  .access = MR_ALL, .page_len = PAGE_SIZE, .vec = KOFI_PAGES }, 0,
	  -EINVAL },
	{ "pages from the second on", { .mr_pages = mr_pages, .iov_count = 2,
	  .access = MR_ALL, .page_offset = PAGE_SIZE, .page_len = 1,
	  .vec = KOFI_PAGES }, 0, -EINVAL },
	{ "pages too few", { .mr_pages = mr_pages, .iov_count = 2,
	  .access = MR_ALL, .page_offset = 1, .page_len = 2 * PAGE_SIZE,
	  .vec = KOFI_PAGES }, 0, -EINVAL },
	{ "pages, length overflows", { .mr_pages = mr_pages, .iov_count = 2,
	  .access = MR_ALL, .page_offset = 1, .page_len = SIZE_MAX,
	  .vec = KOFI_PAGES }, 0, -EINVAL },
	{ "pages, count overflows", { .mr_pages = mr_pages,
	  .iov_count = SIZE_MAX / PAGE_SIZE + 2, .access = MR_ALL,
	  .page_len = SIZE_MAX, .vec = KOFI_PAGES }, 0, -EINVAL },
	{ "base overflows", { .mr_iov = mr_kv_byte, .iov_count = 1,
	  .access = MR_ALL, .base = U64_MAX - 1 }, 0, -EINVAL },
	{ "nothing wrong", { .mr_iov = mr_kv_byte, .iov_count = 1,
	  .access = MR_ALL, .base = U64_MAX - 2 }, 0, 0 },
};

static void mr_args_test(struct kunit *test)
{
	struct fake_world *world = fake_open_mr(test, FI_MR_PROV_KEY);
	struct fid_domain *domain = world->domain;
	struct fid_mr *mr = NULL;
	int i, ret;

	sg_init_table(mr_sg_short, 2);
	sg_set_page(&mr_sg_short[0], ZERO_PAGE(0), 1, 0);
	sg_set_page(&mr_sg_short[1], ZERO_PAGE(0), 1, 0);
	sg_init_table(mr_sg_null, 1);
	mr_sg_null[0].length = 5;
	iov_iter_ubuf(&mr_iter_user, ITER_DEST, (void __user *)mr_byte, 1);
	iov_iter_discard(&mr_iter_discard, ITER_DEST, 1);
	iov_iter_kvec(&mr_iter_long, ITER_DEST, mr_kv_byte, 1, 3);
	iov_iter_xarray(&mr_iter_hole, ITER_DEST, &mr_xa_empty, 1, 2);
	mr_pages[0] = ZERO_PAGE(0);
	mr_pages[1] = ZERO_PAGE(0);

	for (i = 0; i < ARRAY_SIZE(mr_args); i++) {
		ret = fi_mr_regattr(domain, &mr_args[i].attr, mr_args[i].flags,
				    &mr);
		KUNIT_EXPECT_EQ_MSG(test, mr_args[i].ret, ret, "%s",
				    mr_args[i].name);
		if (!ret)
			KUNIT_EXPECT_EQ(test, 0, fi_close(&mr->fid));
		KUNIT_EXPECT_TRUE_MSG(test, xa_empty(&mr_table(world)->regions),
				      "%s", mr_args[i].name);
	}
	i--;
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_mr_regattr(NULL, &mr_args[i].attr, 0, &mr));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_mr_regattr((void *)world->fabric, &mr_args[i].attr,
				      0, &mr));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_mr_regattr(domain, NULL, 0, &mr));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fi_mr_regattr(domain, &mr_args[i].attr, 0, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_mr_bind(NULL, &domain->fid, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_mr_enable(NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_mr_enable((void *)domain));
	fake_close(test, world);
}

/* ---------------------------------------------------------- kinds of memory */

#define MR_PAGES	4	/* single ones; the large one has as many */
#define MR_PIECES	8
#define MR_FILL		0x5a

struct mr_memory {
	u8		*low;	/* MR_PAGES pages each */
	u8		*vm;
	struct page	*big;
	struct page	*page[MR_PAGES];
};

static u8 mr_static[300] __aligned(512);	/* memory of a module, in one page */

/* A region in the making, and where its bytes really are */
struct mr_layout {
	struct fi_mr_attr	attr;
	struct kvec		kv[4];
	struct bio_vec		bv[4];
	struct scatterlist	sg[6];
	struct iov_iter		iter;
	struct page		*pages[MR_PAGES];
	struct xarray		xa;
	struct folio_queue	fq;
	struct kvec		piece[MR_PIECES];
	int			nr;
};

static void mr_piece(struct mr_layout *l, void *at, size_t len)
{
	l->piece[l->nr++] = (struct kvec) { at, len };
}

static void mr_build_empty(struct mr_memory *m, struct mr_layout *l)
{
}

static void mr_build_kvec(struct mr_memory *m, struct mr_layout *l)
{
	l->kv[0] = (struct kvec) { m->low + 3, 100 };
	l->kv[1] = (struct kvec) { m->low + 500, 0 };
	l->kv[2] = (struct kvec) { m->low + PAGE_SIZE - 7, PAGE_SIZE + 13 };
	l->attr.mr_iov = l->kv;
	l->attr.iov_count = 3;
	mr_piece(l, m->low + 3, 100);
	mr_piece(l, m->low + PAGE_SIZE - 7, PAGE_SIZE + 13);
}

static void mr_build_vmalloc(struct mr_memory *m, struct mr_layout *l)
{
	l->kv[0] = (struct kvec) { m->vm + 5, 3 * PAGE_SIZE - 9 };
	l->attr.mr_iov = l->kv;
	l->attr.iov_count = 1;
	mr_piece(l, m->vm + 5, 3 * PAGE_SIZE - 9);
}

static void mr_build_mixed(struct mr_memory *m, struct mr_layout *l)
{
	l->kv[0] = (struct kvec) { mr_static, sizeof(mr_static) };
	l->kv[1] = (struct kvec) { m->vm + 2 * PAGE_SIZE - 1, 2 };
	l->kv[2] = (struct kvec) { m->low + 1, 1 };
	l->kv[3] = (struct kvec) { m->vm, PAGE_SIZE };
	l->attr.mr_iov = l->kv;
	l->attr.iov_count = 4;
	mr_piece(l, mr_static, sizeof(mr_static));
	mr_piece(l, m->vm + 2 * PAGE_SIZE - 1, 2);
	mr_piece(l, m->low + 1, 1);
	mr_piece(l, m->vm, PAGE_SIZE);
}

static void mr_build_bvec(struct mr_memory *m, struct mr_layout *l)
{
	bvec_set_page(&l->bv[0], m->page[0], 1, 17);
	bvec_set_page(&l->bv[1], m->big, 2 * PAGE_SIZE, PAGE_SIZE + 5);
	bvec_set_page(&l->bv[2], m->page[1], 0, 0);
	bvec_set_page(&l->bv[3], m->page[2], 95, PAGE_SIZE - 95);
	l->attr.vec = KOFI_BVEC;
	l->attr.mr_bvec = l->bv;
	l->attr.iov_count = 4;
	mr_piece(l, page_address(m->page[0]) + 17, 1);
	mr_piece(l, page_address(m->big) + PAGE_SIZE + 5, 2 * PAGE_SIZE);
	mr_piece(l, page_address(m->page[2]) + PAGE_SIZE - 95, 95);
}

/* Two tables, one chained to the other */
static void mr_build_sgl(struct mr_memory *m, struct mr_layout *l)
{
	sg_init_table(l->sg, 3);
	sg_init_table(l->sg + 3, 3);
	sg_chain(l->sg, 3, l->sg + 3);
	sg_set_page(&l->sg[0], m->page[3], 33, 1001);
	sg_set_page(&l->sg[1], m->big, PAGE_SIZE + 1, PAGE_SIZE - 3);
	sg_set_page(&l->sg[3], m->page[0], 0, 0);
	sg_set_page(&l->sg[4], m->page[1], PAGE_SIZE, 0);
	sg_set_page(&l->sg[5], m->page[2], 1, PAGE_SIZE - 1);
	l->attr.vec = KOFI_SGL;
	l->attr.mr_sgl = l->sg;
	l->attr.iov_count = 5;
	mr_piece(l, page_address(m->page[3]) + 1001, 33);
	mr_piece(l, page_address(m->big) + PAGE_SIZE - 3, PAGE_SIZE + 1);
	mr_piece(l, page_address(m->page[1]), PAGE_SIZE);
	mr_piece(l, page_address(m->page[2]) + PAGE_SIZE - 1, 1);
}

static size_t mr_layout_len(const struct mr_layout *l)
{
	size_t len = 0;
	int i;

	for (i = 0; i < l->nr; i++)
		len += l->piece[i].iov_len;
	return len;
}

/* All but some bytes at both ends */
static void mr_build_iter(struct mr_layout *l)
{
	l->attr.vec = KOFI_ITER;
	l->attr.mr_iter = &l->iter;
	l->attr.iov_count = 0;
	iov_iter_advance(&l->iter, 50);
	iov_iter_truncate(&l->iter, iov_iter_count(&l->iter) - 11);
	while (l->piece[0].iov_len <= 50) {
		iov_iter_revert(&l->iter, l->piece[0].iov_len);
		memmove(l->piece, l->piece + 1, --l->nr * sizeof(*l->piece));
	}
	l->piece[0].iov_base += 50;
	l->piece[0].iov_len -= 50;
	l->piece[l->nr - 1].iov_len -= 11;
}

static void mr_build_iter_kvec(struct mr_memory *m, struct mr_layout *l)
{
	mr_build_kvec(m, l);
	iov_iter_kvec(&l->iter, ITER_DEST, l->kv, l->attr.iov_count,
		      mr_layout_len(l));
	mr_build_iter(l);
}

static void mr_build_iter_bvec(struct mr_memory *m, struct mr_layout *l)
{
	bvec_set_page(&l->bv[0], m->big, PAGE_SIZE + 60, PAGE_SIZE - 9);
	bvec_set_page(&l->bv[1], m->page[1], 99, 7);
	mr_piece(l, page_address(m->big) + PAGE_SIZE - 9, PAGE_SIZE + 60);
	mr_piece(l, page_address(m->page[1]) + 7, 99);
	iov_iter_bvec(&l->iter, ITER_SOURCE, l->bv, 2, mr_layout_len(l));
	mr_build_iter(l);
}

static void mr_build_iter_xarray(struct mr_memory *m, struct mr_layout *l)
{
	int i;

	for (i = 0; i < MR_PAGES; i++) {
		xa_store(&l->xa, i, m->page[i], GFP_KERNEL);
		mr_piece(l, page_address(m->page[i]), PAGE_SIZE);
	}
	iov_iter_xarray(&l->iter, ITER_DEST, &l->xa, 0, MR_PAGES * PAGE_SIZE);
	mr_build_iter(l);
}

static void mr_build_iter_folioq(struct mr_memory *m, struct mr_layout *l)
{
	folioq_init(&l->fq, 0);
	folioq_append(&l->fq, page_folio(m->big));
	folioq_append(&l->fq, page_folio(m->page[3]));
	mr_piece(l, page_address(m->big), MR_PAGES * PAGE_SIZE);
	mr_piece(l, page_address(m->page[3]), PAGE_SIZE);
	iov_iter_folio_queue(&l->iter, ITER_DEST, &l->fq, 0, 0,
			     mr_layout_len(l));
	mr_build_iter(l);
}

static void mr_build_pages(struct mr_memory *m, struct mr_layout *l)
{
	memcpy(l->pages, m->page, sizeof(l->pages));
	l->attr.vec = KOFI_PAGES;
	l->attr.mr_pages = l->pages;
	l->attr.iov_count = MR_PAGES;
	l->attr.page_offset = PAGE_SIZE - 1;
	l->attr.page_len = PAGE_SIZE + 4;
	mr_piece(l, page_address(m->page[0]) + PAGE_SIZE - 1, 1);
	mr_piece(l, page_address(m->page[1]), PAGE_SIZE);
	mr_piece(l, page_address(m->page[2]), 3);
}

static const struct {
	const char	*name;
	void		(*build)(struct mr_memory *m, struct mr_layout *l);
	unsigned int	segs;
	bool		maps;	/* fits a region of a pool */
} mr_kinds[] = {
	{ "empty", mr_build_empty, 0, true },
	{ "kvec", mr_build_kvec, 2, true },
	{ "vmalloc", mr_build_vmalloc, 3, true },
	{ "kvec of all sorts", mr_build_mixed, 5, true },
	{ "bvec", mr_build_bvec, 3, true },
	{ "scatterlist", mr_build_sgl, 4, true },
	{ "iterator over kvec", mr_build_iter_kvec, 2, true },
	{ "iterator over bvec", mr_build_iter_bvec, 2, true },
	{ "iterator over xarray", mr_build_iter_xarray, 4, true },
	{ "iterator over folio queue", mr_build_iter_folioq, 5, true },
	{ "pages", mr_build_pages, 3, false },
};

static void mr_memory_fill(struct mr_memory *m)
{
	int i;

	memset(m->low, MR_FILL, MR_PAGES * PAGE_SIZE);
	memset(m->vm, MR_FILL, MR_PAGES * PAGE_SIZE);
	memset(page_address(m->big), MR_FILL, MR_PAGES * PAGE_SIZE);
	for (i = 0; i < MR_PAGES; i++)
		memset(page_address(m->page[i]), MR_FILL, PAGE_SIZE);
	memset(mr_static, MR_FILL, sizeof(mr_static));
}

static bool mr_memory_filled(struct mr_memory *m)
{
	int i;

	for (i = 0; i < MR_PAGES; i++)
		if (memchr_inv(page_address(m->page[i]), MR_FILL, PAGE_SIZE))
			return false;
	return !memchr_inv(m->low, MR_FILL, MR_PAGES * PAGE_SIZE) &&
	       !memchr_inv(m->vm, MR_FILL, MR_PAGES * PAGE_SIZE) &&
	       !memchr_inv(page_address(m->big), MR_FILL,
			   MR_PAGES * PAGE_SIZE) &&
	       !memchr_inv(mr_static, MR_FILL, sizeof(mr_static));
}

/* The pieces against what they should hold; leaves them filled. */
static bool mr_pieces_are(struct mr_layout *l, const u8 *shadow)
{
	bool same = true;
	int i;

	for (i = 0; i < l->nr; i++) {
		struct kvec *piece = &l->piece[i];

		same &= !memcmp(piece->iov_base, shadow, piece->iov_len);
		memset(piece->iov_base, MR_FILL, piece->iov_len);
		shadow += piece->iov_len;
	}
	return same;
}

static void mr_pick(struct mr_test *t, size_t total, size_t *off, size_t *len)
{
	*off = mr_random(t, total + 1);
	*len = mr_random(t, total - *off + 1);
	if (!mr_random(t, 8)) {
		*off = 0;
		*len = total;
	}
}

/* Peers read and write a region at random, and it holds what they wrote. */
static void mr_kind_access(struct kunit *test, const char *name, u64 key,
			   u64 base, size_t total, u8 *shadow, u8 *buf)
{
	struct mr_test *t = test->priv;
	size_t off, len;
	int i, ret;

	for (i = 0; i < 60; i++) {
		mr_pick(t, total, &off, &len);
		prandom_bytes_state(&t->rnd, buf, len);
		ret = fake_peer_write(t->ep, key, base + off, buf, len,
				      1 + mr_random(t, 3000));
		KUNIT_EXPECT_EQ_MSG(test, 0, ret, "%s: write %zu+%zu", name,
				    off, len);
		memcpy(shadow + off, buf, len);

		mr_pick(t, total, &off, &len);
		ret = fake_peer_read(t->ep, key, base + off, buf, len,
				     1 + mr_random(t, 3000));
		KUNIT_EXPECT_EQ_MSG(test, 0, ret, "%s: read %zu+%zu", name,
				    off, len);
		KUNIT_EXPECT_EQ_MSG(test, 0, memcmp(buf, shadow + off, len),
				    "%s: read %zu+%zu", name, off, len);
	}
	KUNIT_EXPECT_EQ_MSG(test, -EACCES,
			    fake_peer_read(t->ep, key, base + total, buf, 1, 1),
			    "%s", name);
}

static void mr_kind_run(struct kunit *test, int kind, struct mr_memory *m,
			struct mr_layout *l, u8 *shadow, u8 *buf)
{
	const char *name = mr_kinds[kind].name;
	struct mr_test *t = test->priv;
	struct fi_msg vec = {};
	struct fid_mr *mr;
	size_t total;

	memset(l, 0, sizeof(*l));
	xa_init(&l->xa);
	l->attr.access = MR_ALL;
	l->attr.base = kind % 2 ? 0 : 0x123456789;
	mr_memory_fill(m);
	mr_kinds[kind].build(m, l);
	total = mr_layout_len(l);

	memset(shadow, MR_FILL, total);
	KUNIT_ASSERT_EQ_MSG(test, 0, fi_mr_regattr(t->world->domain, &l->attr,
						   0, &mr), "%s", name);
	KUNIT_EXPECT_EQ(test, l->attr.base, kofi_mr_base(mr));
	KUNIT_EXPECT_EQ_MSG(test, total, mr_of(mr)->len, "%s", name);
	KUNIT_EXPECT_EQ_MSG(test, mr_kinds[kind].segs, mr_of(mr)->nr_segs, "%s",
			    name);
	mr_kind_access(test, name, fi_mr_key(mr), l->attr.base, total, shadow,
		       buf);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&mr->fid));
	KUNIT_EXPECT_TRUE_MSG(test, mr_pieces_are(l, shadow), "%s", name);
	KUNIT_EXPECT_TRUE_MSG(test, mr_memory_filled(m), "%s", name);

	/* The same through the pool */
	vec.vec = l->attr.vec;
	vec.msg_iov = l->attr.mr_iov;	/* whatever member it is */
	vec.iov_count = l->attr.iov_count;
	memset(shadow, MR_FILL, total);
	mr = kofi_mr_get(t->ep);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	if (mr_kinds[kind].maps) {
		struct mr_end end;

		mr_end_init(&end);
		KUNIT_ASSERT_EQ_MSG(test, 0, kofi_mr_map(mr, &vec, MR_ALL, 0),
				    "%s", name);
		mr_kind_access(test, name, fi_mr_key(mr), 0, total, shadow,
			       buf);
		KUNIT_EXPECT_EQ(test, 0, kofi_mr_unmap(mr, &end.cqe));
		KUNIT_EXPECT_EQ(test, 1, kofi_cq_poll(t->cq, 10));
		KUNIT_EXPECT_EQ(test, 1, end.calls);
	} else {
		KUNIT_EXPECT_EQ(test, -EINVAL, kofi_mr_map(mr, &vec, MR_ALL,
							   0));
	}
	kofi_mr_put(mr);
	KUNIT_EXPECT_TRUE_MSG(test, mr_pieces_are(l, shadow), "%s", name);
	KUNIT_EXPECT_TRUE_MSG(test, mr_memory_filled(m), "%s", name);
	xa_destroy(&l->xa);
}

static void mr_kind_test(struct kunit *test)
{
	const size_t size = 2 * MR_PAGES * PAGE_SIZE;
	struct mr_layout *l = kzalloc(sizeof(*l), GFP_KERNEL);
	u8 *shadow = vmalloc(size), *buf = kmalloc(size, GFP_KERNEL);
	struct mr_memory m = {
		.low = kmalloc(MR_PAGES * PAGE_SIZE, GFP_KERNEL),
		.vm = vmalloc(MR_PAGES * PAGE_SIZE),
		.big = alloc_pages(GFP_KERNEL | __GFP_COMP,
				   order_base_2(MR_PAGES)),
	};
	int i;

	for (i = 0; i < MR_PAGES; i++)
		m.page[i] = alloc_page(GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, l && shadow && buf && m.low && m.vm && m.big &&
			  m.page[0] && m.page[1] && m.page[2] && m.page[3]);
	for (i = 0; i < ARRAY_SIZE(mr_kinds); i++)
		mr_kind_run(test, i, &m, l, shadow, buf);

	for (i = 0; i < MR_PAGES; i++)
		__free_page(m.page[i]);
	__free_pages(m.big, order_base_2(MR_PAGES));
	vfree(m.vm);
	kfree(m.low);
	kfree(buf);
	vfree(shadow);
	kfree(l);
}

/* ----------------------------------------------------- rights and ranges */

static const struct {
	const char	*name;
	u64		rights;
	u64		base;
	u64		addr;
	u64		len;
	u64		access;
	int		ret;
} mr_checks[] = {
	{ "all", MR_ALL, 0, 0, MR_SIZE, FI_REMOTE_WRITE, 0 },
	{ "the last byte", MR_ALL, 0, MR_SIZE - 1, 1, FI_REMOTE_READ, 0 },
	{ "one beyond", MR_ALL, 0, MR_SIZE - 1, 2, FI_REMOTE_READ, -EACCES },
	{ "from the end on", MR_ALL, 0, MR_SIZE, 1, FI_REMOTE_READ, -EACCES },
	{ "nothing at the end", MR_ALL, 0, MR_SIZE, 0, FI_REMOTE_READ, 0 },
	{ "nothing beyond", MR_ALL, 0, MR_SIZE + 1, 0, FI_REMOTE_READ,
	  -EACCES },
	{ "wraps around", MR_ALL, 0, U64_MAX, 2, FI_REMOTE_READ, -EACCES },
	{ "wraps around to the end", MR_ALL, 0, U64_MAX - 4, MR_SIZE,
	  FI_REMOTE_READ, -EACCES },
	{ "too long for anything", MR_ALL, 0, 0, U64_MAX, FI_REMOTE_READ,
	  -EACCES },
	{ "base", MR_ALL, 4096, 4096, MR_SIZE, FI_REMOTE_READ, 0 },
	{ "below the base", MR_ALL, 4096, 4095, 1, FI_REMOTE_READ, -EACCES },
	{ "nothing below the base", MR_ALL, 4096, 4095, 0, FI_REMOTE_READ,
	  -EACCES },
	{ "an offset, with a base", MR_ALL, 4096, 0, 1, FI_REMOTE_READ,
	  -EACCES },
	{ "up to the highest address", MR_ALL, U64_MAX - MR_SIZE,
	  U64_MAX - 1, 1, FI_REMOTE_READ, 0 },
	{ "the highest address", MR_ALL, U64_MAX - MR_SIZE, U64_MAX, 1,
	  FI_REMOTE_READ, -EACCES },
	{ "write, read only", FI_REMOTE_READ, 0, 0, 1, FI_REMOTE_WRITE,
	  -EACCES },
	{ "write of nothing, read only", FI_REMOTE_READ, 0, 0, 0,
	  FI_REMOTE_WRITE, -EACCES },
	{ "read, write only", FI_REMOTE_WRITE | FI_READ, 0, 0, 1,
	  FI_REMOTE_READ, -EACCES },
	{ "read, local only", FI_SEND | FI_RECV | FI_READ | FI_WRITE, 0, 0, 1,
	  FI_REMOTE_READ, -EACCES },
};

static void mr_check_test(struct kunit *test)
{
	struct mr_test *t = test->priv;
	struct kvec iov = { t->mem, MR_SIZE };
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1 };
	struct kofi_target target;
	struct fid_mr *mr;
	u8 buf[4] = {};
	int i, ret;

	for (i = 0; i < ARRAY_SIZE(mr_checks); i++) {
		attr.access = mr_checks[i].rights;
		attr.base = mr_checks[i].base;
		KUNIT_ASSERT_EQ(test, 0, fi_mr_regattr(t->world->domain, &attr,
						       0, &mr));
		ret = fake_peer_begin(t->ep, &target, fi_mr_key(mr),
				      mr_checks[i].addr, mr_checks[i].len,
				      mr_checks[i].access);
		KUNIT_EXPECT_EQ_MSG(test, mr_checks[i].ret, ret, "%s",
				    mr_checks[i].name);
		KUNIT_EXPECT_EQ_MSG(test, (u64)!!mr_checks[i].ret,
				    mr_stat_of(&mr_of(mr)->obj, "refused"),
				    "%s", mr_checks[i].name);
		KUNIT_EXPECT_EQ(test, 0, fi_close(&mr->fid));
	}

	/* What is counted, and that nothing is said of an event that is not wanted */
	mr = mr_reg(test, MR_ALL, 0);
	KUNIT_EXPECT_EQ(test, 0, fake_peer_write(t->ep, fi_mr_key(mr), 0, buf,
						 3, 2));
	KUNIT_EXPECT_EQ(test, 0, fake_peer_read(t->ep, fi_mr_key(mr), 5, buf,
						4, 4));
	KUNIT_EXPECT_EQ(test, 0, fake_peer_read(t->ep, fi_mr_key(mr), 5, buf,
						0, 4));
	KUNIT_EXPECT_EQ(test, 1ULL, mr_stat_of(&mr_of(mr)->obj, "writes"));
	KUNIT_EXPECT_EQ(test, 2ULL, mr_stat_of(&mr_of(mr)->obj, "reads"));
	KUNIT_EXPECT_EQ(test, 7ULL, mr_stat_of(&mr_of(mr)->obj, "bytes"));
	KUNIT_EXPECT_EQ(test, (u64)MR_SIZE, mr_stat_of(&mr_of(mr)->obj, "len"));
	KUNIT_EXPECT_EQ(test, 0, fake_peer_begin(t->ep, &target, fi_mr_key(mr),
						 0, 1, FI_REMOTE_READ));
	KUNIT_EXPECT_FALSE(test, target.event);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&mr->fid));
	mr = mr_reg(test, MR_ALL, FI_RMA_EVENT);
	KUNIT_EXPECT_EQ(test, 0, fake_peer_begin(t->ep, &target, fi_mr_key(mr),
						 0, 1, FI_REMOTE_READ));
	KUNIT_EXPECT_TRUE(test, target.event);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&mr->fid));
}

/* ------------------------------------------------------------------- keys */

#define MR_KEYS		200

/* No key twice, and a slot that is free is not taken before the others. */
static void mr_generation_test(struct kunit *test)
{
	struct mr_test *t = test->priv;
	struct kofi_mr_table *table = mr_table(t->world);
	u64 *keys = kunit_kcalloc(test, MR_KEYS, sizeof(*keys), GFP_KERNEL);
	struct fid_mr *mr, *keep;
	u8 byte = 0;
	int i, j;

	KUNIT_ASSERT_NOT_NULL(test, keys);
	keep = mr_reg(test, MR_ALL, 0);
	for (i = 0; i < MR_KEYS; i++) {
		/* Both halves come round in the middle. */
		if (i == MR_KEYS / 4)
			table->next = INT_MAX;
		if (i == MR_KEYS / 2)
			atomic64_set(&table->generation, U32_MAX - 1);
		mr = mr_reg(test, MR_ALL, 0);
		keys[i] = fi_mr_key(mr);
		KUNIT_EXPECT_NE(test, FI_KEY_NOTAVAIL, keys[i]);
		KUNIT_EXPECT_NE(test, fi_mr_key(keep), keys[i]);
		KUNIT_EXPECT_EQ(test, 0, fake_peer_write(t->ep, keys[i], 0,
							 &byte, 1, 1));
		KUNIT_EXPECT_EQ(test, 0, fi_close(&mr->fid));
		KUNIT_EXPECT_EQ(test, -EKEYREJECTED,
				fake_peer_write(t->ep, keys[i], 0, &byte, 1,
						1));
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_NE(test, keys[j], keys[i]);
		if (i)
			KUNIT_EXPECT_NE(test, (u32)keys[i - 1], (u32)keys[i]);
	}
	/* The slot of another registration with a generation of the past */
	KUNIT_EXPECT_EQ(test, -EKEYREJECTED,
			fake_peer_write(t->ep, fi_mr_key(keep) -
					BIT_ULL(32), 0, &byte, 1, 1));
	KUNIT_EXPECT_EQ(test, -EKEYREJECTED,
			fake_peer_write(t->ep, (u32)fi_mr_key(keep), 0, &byte,
					1, 1));
	KUNIT_EXPECT_EQ(test, -EKEYREJECTED,
			fake_peer_write(t->ep, FI_KEY_NOTAVAIL, 0, &byte, 0,
					1));
	KUNIT_EXPECT_EQ(test, 0, fake_peer_write(t->ep, fi_mr_key(keep), 0,
						 &byte, 1, 1));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&keep->fid));
}

/* Each domain counts its own registrations, and touches no other's count. */
static void mr_apart_test(struct kunit *test)
{
	struct mr_test *t = test->priv;
	struct fake_world *world = fake_open_mr(test, FI_MR_PROV_KEY);
	atomic64_t *own = &mr_table(t->world)->generation;
	atomic64_t *other = &mr_table(world)->generation;
	s64 before = atomic64_read(own), still = atomic64_read(other);
	struct fid_mr *mr = mr_reg(test, MR_ALL, 0);

	KUNIT_EXPECT_GT(test, atomic64_read(own), before);
	KUNIT_EXPECT_EQ(test, atomic64_read(other), still);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&mr->fid));
	fake_close(test, world);
}

static void mr_client_test(struct kunit *test)
{
	static const u64 keys[] = { 0, 1, 0x1234567890abcdefULL, U64_MAX - 1 };
	struct mr_test *t = test->priv;
	struct fake_world *world = fake_open_mr(test, 0);
	struct fid_mr *mr[ARRAY_SIZE(keys)], *again;
	struct kofi_target target;
	struct fid_domain *domain = world->domain;
	struct fid_ep *ep;
	size_t pool = 1;
	u8 byte = 9;
	int i;

	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(domain, world->info, &ep, NULL));
	KUNIT_EXPECT_EQ(test, -EKEYREJECTED,
			fi_mr_reg(domain, t->mem, 9, MR_ALL, 0, FI_KEY_NOTAVAIL,
				  0, &again, NULL));
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		KUNIT_ASSERT_EQ(test, 0, fi_mr_reg(domain, t->mem + i, 1,
						   MR_ALL, 0, keys[i], 0,
						   &mr[i], NULL));
		KUNIT_EXPECT_EQ(test, keys[i], fi_mr_key(mr[i]));
		KUNIT_EXPECT_EQ(test, -FI_ENOKEY,
				fi_mr_reg(domain, t->mem, 9, MR_ALL, 0, keys[i],
					  0, &again, NULL));
		KUNIT_EXPECT_EQ(test, 0, fake_peer_write(ep, keys[i], 0, &byte,
							 1, 1));
		KUNIT_EXPECT_EQ(test, 9, t->mem[i]);
	}

	/*
	 * An access that has begun does not go over to the next region of the
	 * same key.
	 */
	KUNIT_EXPECT_EQ(test, 0, fake_peer_begin(ep, &target, keys[0], 0, 1,
						 FI_REMOTE_WRITE));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&mr[0]->fid));
	KUNIT_ASSERT_EQ(test, 0, fi_mr_reg(domain, t->mem + 50, 1, MR_ALL, 0,
					   keys[0], 0, &mr[0], NULL));
	KUNIT_EXPECT_EQ(test, -EKEYREJECTED, fake_peer_place(ep, &target, &byte,
							     1));
	KUNIT_EXPECT_EQ(test, 0, t->mem[50]);
	kofi_target_done(&target, &fake_of(ep)->base, FI_REMOTE_WRITE);
	KUNIT_EXPECT_EQ(test, 0ULL, mr_stat_of(&mr_of(mr[0])->obj, "writes"));

	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP,
			fi_setopt(&ep->fid, FI_OPT_ENDPOINT, KOFI_OPT_MR_POOL,
				  &pool, sizeof(pool)));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&domain->fid));
	for (i = 0; i < ARRAY_SIZE(keys); i++)
		KUNIT_EXPECT_EQ(test, 0, fi_close(&mr[i]->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&ep->fid));
	fake_close(test, world);
}

/* ------------------------------------------------------- bound to endpoints */

static void mr_bind_test(struct kunit *test)
{
	struct mr_test *t = test->priv;
	struct fake_world *world = fake_open_mr(test, FI_MR_PROV_KEY |
						FI_MR_ENDPOINT);
	struct fid_domain *domain = world->domain;
	struct fid_ep *ep[2];
	struct fid_cntr *cntr;
	struct fid_mr *mr;
	u8 byte = 7;
	u64 key;

	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(domain, world->info, &ep[0],
					     NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(domain, world->info, &ep[1],
					     NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_cntr_open(domain, NULL, &cntr, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_mr_reg(domain, t->mem, MR_SIZE, MR_ALL, 0,
					   0, 0, &mr, NULL));
	KUNIT_EXPECT_EQ(test, FI_KEY_NOTAVAIL, fi_mr_key(mr));
	KUNIT_EXPECT_EQ(test, -FI_EOPBADSTATE, fi_mr_enable(mr));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_mr_bind(mr, NULL, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fi_mr_bind(mr, &domain->fid, 0));
	KUNIT_EXPECT_EQ(test, -ENOSYS, fi_mr_bind(mr, &cntr->fid, 0));
	KUNIT_EXPECT_EQ(test, -FI_EBADFLAGS, fi_mr_bind(mr, &ep[0]->fid,
							FI_REMOTE_WRITE));
	KUNIT_EXPECT_EQ(test, -FI_EDOMAIN, fi_mr_bind(mr, &t->ep->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_mr_bind(mr, &ep[0]->fid, 0));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_mr_bind(mr, &ep[1]->fid, 0));
	KUNIT_EXPECT_EQ(test, FI_KEY_NOTAVAIL, fi_mr_key(mr));
	KUNIT_EXPECT_EQ(test, -ENOSYS, fi_control(&mr->fid, FI_BACKLOG, NULL));
	KUNIT_EXPECT_EQ(test, 0, fi_control(&mr->fid, FI_ENABLE, NULL));
	key = fi_mr_key(mr);
	KUNIT_EXPECT_EQ(test, 0, fi_mr_enable(mr));
	KUNIT_EXPECT_EQ(test, key, fi_mr_key(mr));
	KUNIT_EXPECT_EQ(test, -FI_EOPBADSTATE, fi_mr_bind(mr, &ep[1]->fid, 0));

	KUNIT_EXPECT_EQ(test, 0, fake_peer_write(ep[0], key, 0, &byte, 1, 1));
	KUNIT_EXPECT_EQ(test, -EKEYREJECTED,
			fake_peer_write(ep[1], key, 0, &byte, 1, 1));
	KUNIT_EXPECT_EQ(test, -EKEYREJECTED,
			kofi_mr_invalidate(&fake_of(ep[1])->base, key));
	/* Not a single-use one: its peer cannot end it either. */
	KUNIT_EXPECT_EQ(test, -EACCES,
			kofi_mr_invalidate(&fake_of(ep[0])->base, key));
	KUNIT_EXPECT_EQ(test, -EBUSY, fi_close(&ep[0]->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&mr->fid));

	/* Closed without ever having been bound, or enabled */
	KUNIT_ASSERT_EQ(test, 0, fi_mr_reg(domain, t->mem, MR_SIZE, MR_ALL, 0,
					   0, 0, &mr, NULL));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&mr->fid));
	KUNIT_ASSERT_EQ(test, 0, fi_mr_reg(domain, t->mem, MR_SIZE, MR_ALL, 0,
					   0, 0, &mr, NULL));
	KUNIT_EXPECT_EQ(test, 0, fi_mr_bind(mr, &ep[1]->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&mr->fid));

	KUNIT_EXPECT_EQ(test, 0, fi_close(&cntr->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&ep[0]->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&ep[1]->fid));
	fake_close(test, world);

	/* Without FI_MR_ENDPOINT a region is enabled from the start. */
	mr = mr_reg(test, MR_ALL, 0);
	key = fi_mr_key(mr);
	KUNIT_EXPECT_EQ(test, -FI_EOPBADSTATE, fi_mr_bind(mr, &t->ep->fid, 0));
	KUNIT_EXPECT_EQ(test, 0, fi_mr_enable(mr));
	KUNIT_EXPECT_EQ(test, key, fi_mr_key(mr));
	KUNIT_EXPECT_EQ(test, 0, fake_peer_write(t->other, key, 0, &byte, 1,
						 1));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&mr->fid));
}

/* ---------------------------------------------------------------- closing */

struct mr_closer {
	struct fid_mr	*mr;
	int		ret;
	bool		done;
};

static int mr_closer(void *arg)
{
	struct mr_closer *c = arg;

	c->ret = fi_close(&c->mr->fid);
	WRITE_ONCE(c->done, true);
	return 0;
}

/* fi_close() returns when the access under way has ended, and not before. */
static void mr_close_wait_test(struct kunit *test)
{
	struct mr_test *t = test->priv;
	struct kofi_ep *ep = &fake_of(t->ep)->base;
	struct mr_closer c = { .mr = mr_reg(test, MR_ALL, 0) };
	u64 key = fi_mr_key(c.mr);
	struct kofi_target target, next;
	struct task_struct *task;
	struct iov_iter iter;
	u8 byte;
	int i;

	KUNIT_ASSERT_EQ(test, 0, kofi_target_init(&target, ep, key, 0, 8,
						  FI_REMOTE_READ));
	KUNIT_ASSERT_TRUE(test, kofi_target_get(&target, ep, &iter));
	task = fake_thread(test, mr_closer, &c);
	/* Until ours is the only reference: the closer waits for it. */
	while (refcount_read(&target.mr->users) > 1)
		cond_resched();
	for (i = 0; i < 100; i++) {
		KUNIT_EXPECT_EQ(test, -EKEYREJECTED,
				kofi_target_init(&next, ep, key, 0, 1,
						 FI_REMOTE_READ));
		cond_resched();
	}
	KUNIT_EXPECT_FALSE(test, READ_ONCE(c.done));
	t->mem[0] = 0x42;
	KUNIT_EXPECT_EQ(test, 1UL, copy_from_iter(&byte, 1, &iter));
	KUNIT_EXPECT_EQ(test, 0x42, byte);
	kofi_target_drop(&target);
	fake_join(task);
	KUNIT_EXPECT_TRUE(test, c.done);
	KUNIT_EXPECT_EQ(test, 0, c.ret);
	KUNIT_EXPECT_FALSE(test, kofi_target_get(&target, ep, &iter));
}

struct mr_writer {
	struct fid_ep	*ep;
	u64		key;
	bool		ready;
	int		ret;
	unsigned int	writes;
};

/* Write until the region is gone. */
static int mr_writer(void *arg)
{
	struct mr_writer *w = arg;
	u8 data[64];

	memset(data, 0xaa, sizeof(data));
	do {
		w->ret = fake_peer_write(w->ep, w->key, 0, data, sizeof(data),
					 16);
		if (!w->ret)
			w->writes++;
		WRITE_ONCE(w->ready, true);
		cond_resched();
	} while (!w->ret);
	return 0;
}

/* Nothing is written once fi_close() has returned. */
static void mr_close_race_test(struct kunit *test)
{
	struct mr_test *t = test->priv;
	struct mr_writer w[2];
	struct task_struct *task[2];
	struct fid_mr *mr;
	int i, j, late = 0;

	for (i = 0; i < MR_RACES; i++) {
		mr = mr_reg(test, MR_ALL, 0);
		for (j = 0; j < 2; j++) {
			w[j] = (struct mr_writer) {
				.ep = j ? t->other : t->ep,
				.key = fi_mr_key(mr),
			};
			task[j] = fake_thread(test, mr_writer, &w[j]);
		}
		for (j = 0; j < 2; j++)
			while (!READ_ONCE(w[j].ready))
				cond_resched();
		KUNIT_EXPECT_EQ(test, 0, fi_close(&mr->fid));
		memset(t->mem, 0x11, MR_SIZE);
		for (j = 0; j < 2; j++)
			fake_join(task[j]);
		late += !!memchr_inv(t->mem, 0x11, MR_SIZE);
		for (j = 0; j < 2; j++) {
			KUNIT_EXPECT_EQ(test, -EKEYREJECTED, w[j].ret);
			KUNIT_EXPECT_GT(test, w[j].writes, 0U);
		}
	}
	KUNIT_EXPECT_EQ(test, 0, late);
}

static struct kunit_case mr_cases[] = {
	KUNIT_CASE(mr_args_test),
	KUNIT_CASE(mr_kind_test),
	KUNIT_CASE(mr_check_test),
	KUNIT_CASE(mr_generation_test),
	KUNIT_CASE(mr_apart_test),
	KUNIT_CASE(mr_client_test),
	KUNIT_CASE(mr_bind_test),
	KUNIT_CASE(mr_close_wait_test),
	KUNIT_CASE(mr_close_race_test),
	{}
};

struct kunit_suite kofi_mr_suite = {
	.name		= "kofi_mr",
	.suite_init	= fake_suite_init,
	.suite_exit	= fake_suite_exit,
	.init		= mr_test_init,
	.exit		= mr_test_exit,
	.test_cases	= mr_cases,
};

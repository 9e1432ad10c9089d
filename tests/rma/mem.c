// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory, its content, and all the ways to describe a piece of it.
 *
 * A struct rma_mem is pages, as contiguous as the allocator had them, and a
 * mapping of all of them in one piece, through which content is written and
 * checked. rma_vec_make() describes a piece of it to kOFI in the way that was
 * asked for, for an operation or for a region.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "rma.h"

/**
 * rma_kind_name - word for a way to describe memory
 * @kind: the way
 *
 * Return: a constant string.
 */
const char *rma_kind_name(enum krma_kind kind)
{
	static const char *const names[KRMA_KINDS] = {
		[KRMA_KVEC] = "kvec", [KRMA_BVEC] = "bvec", [KRMA_SGL] = "sgl",
		[KRMA_ITER] = "iter", [KRMA_VMALLOC] = "vmalloc",
		[KRMA_PAGES] = "pages",
	};

	return kind < KRMA_KINDS ? names[kind] : "unknown";
}

/**
 * rma_level_name - word for what a completion promises
 * @level: the promise
 *
 * Return: a constant string.
 */
const char *rma_level_name(enum krma_level level)
{
	static const char *const names[KRMA_LEVELS] = {
		[KRMA_DEFAULT] = "default", [KRMA_INJECT] = "inject",
		[KRMA_INJECT_COMPLETE] = "inject-complete",
		[KRMA_TRANSMIT] = "transmit-complete",
		[KRMA_DELIVERY] = "delivery-complete",
	};

	return level < KRMA_LEVELS ? names[level] : "unknown";
}

/* ------------------------------------------------------------------- memory */

/* As many of @left pages as there are in one piece, each with its reference. */
static struct page *rma_mem_piece(unsigned int left, unsigned int *n)
{
	gfp_t gfp = GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN;
	unsigned int order = min_t(unsigned int, ilog2(left), MAX_PAGE_ORDER);
	struct page *page;

	for (; order; order--) {
		page = alloc_pages(gfp, order);
		if (page) {
			split_page(page, order);
			*n = 1U << order;
			return page;
		}
	}
	*n = 1;
	return alloc_page(GFP_KERNEL);
}

/**
 * rma_mem_alloc - get memory
 * @mem: zeroed
 * @size: bytes
 *
 * Return: 0 or -ENOMEM; rma_mem_free() in any case.
 */
int rma_mem_alloc(struct rma_mem *mem, size_t size)
{
	unsigned int want = DIV_ROUND_UP(size, PAGE_SIZE);
	unsigned int i, n;
	struct page *page;

	mem->pages = kvcalloc(want, sizeof(*mem->pages), GFP_KERNEL);
	if (!mem->pages)
		return -ENOMEM;
	while (mem->npages < want) {
		page = rma_mem_piece(want - mem->npages, &n);
		if (!page)
			return -ENOMEM;
		for (i = 0; i < n; i++)
			mem->pages[mem->npages++] = page + i;
	}
	mem->virt = vmap(mem->pages, want, VM_MAP, PAGE_KERNEL);
	return mem->virt ? 0 : -ENOMEM;
}

/**
 * rma_mem_free - give it back
 * @mem: not in use any more
 */
void rma_mem_free(struct rma_mem *mem)
{
	unsigned int i;

	vunmap(mem->virt);
	for (i = 0; i < mem->npages; i++)
		__free_page(mem->pages[i]);
	kvfree(mem->pages);
}

/* ------------------------------------------------------------------ content */

/**
 * rma_mem_fill - write content
 * @run: the run, with its table
 * @mem: the memory
 * @at: where in it
 * @len: bytes
 * @seed: of the content
 * @off: offset in the region that the first byte stands for
 */
void rma_mem_fill(struct rma_run *run, struct rma_mem *mem, size_t at,
		  size_t len, u32 seed, u64 off)
{
	size_t n;
	u32 from;

	for (; len; len -= n, at += n, off += n) {
		from = krma_pattern_at(seed, off);
		n = min_t(size_t, len, KRMA_PATTERN_LEN - from);
		memcpy(mem->virt + at, run->pattern + from, n);
	}
}

/**
 * rma_mem_check - is it that content?
 * @run: the run, with its table
 * @mem: the memory
 * @at: where in it
 * @len: bytes
 * @seed: of the content
 * @off: offset in the region that the first byte stands for
 * @where: where the offset of the first wrong byte goes
 *
 * Return: whether it is.
 */
bool rma_mem_check(struct rma_run *run, struct rma_mem *mem, size_t at,
		   size_t len, u32 seed, u64 off, u64 *where)
{
	const u8 *is, *want;
	size_t n;
	u32 from;

	for (; len; len -= n, at += n, off += n) {
		from = krma_pattern_at(seed, off);
		n = min_t(size_t, len, KRMA_PATTERN_LEN - from);
		is = mem->virt + at;
		want = run->pattern + from;
		if (!memcmp(is, want, n))
			continue;
		while (*is++ == *want++)
			off++;
		*where = off;
		return false;
	}
	return true;
}

/* -------------------------------------------------------------- description */

/* Bytes that are contiguous in memory from @at on, at most @len. */
static size_t rma_vec_piece(const struct rma_mem *mem, size_t at, size_t len)
{
	unsigned int i = at / PAGE_SIZE;
	size_t n = PAGE_SIZE - at % PAGE_SIZE;

	while (n < len && page_to_pfn(mem->pages[i + 1]) ==
			  page_to_pfn(mem->pages[i]) + 1) {
		n += PAGE_SIZE;
		i++;
	}
	return min(n, len);
}

/* Addresses of the linear map; what is in too many pieces is one of vmap(). */
static void rma_vec_kvec(struct rma_vec *v, struct rma_mem *mem, size_t at,
			 size_t len)
{
	size_t n;

	for (v->count = 0; len; at += n, len -= n) {
		struct kvec *seg = &v->kvec[v->count++];

		n = rma_vec_piece(mem, at, len);
		seg->iov_base = page_address(mem->pages[at / PAGE_SIZE]) +
				at % PAGE_SIZE;
		if (v->count == ARRAY_SIZE(v->kvec) && n < len) {
			seg->iov_base = mem->virt + at;
			n = len;
		}
		seg->iov_len = n;
	}
}

static int rma_vec_bvec(struct rma_vec *v, struct rma_mem *mem, size_t at,
			size_t len)
{
	size_t n;

	for (v->count = 0; len; at += n, len -= n) {
		if (v->count == ARRAY_SIZE(v->bvec))
			return -ENOBUFS;	/* too fragmented */
		n = rma_vec_piece(mem, at, len);
		bvec_set_page(&v->bvec[v->count++], mem->pages[at / PAGE_SIZE],
			      n, at % PAGE_SIZE);
	}
	return 0;
}

static int rma_vec_sgl(struct rma_vec *v, struct rma_mem *mem, size_t at,
		       size_t len)
{
	int ret;

	v->count = 0;
	if (!len)
		return 0;
	/* one entry per page, however contiguous they are */
	ret = sg_alloc_table_from_pages_segment(&v->table,
						mem->pages + at / PAGE_SIZE,
						DIV_ROUND_UP(at % PAGE_SIZE +
							     len, PAGE_SIZE),
						at % PAGE_SIZE, len, PAGE_SIZE,
						GFP_KERNEL);
	if (!ret)
		v->count = v->table.orig_nents;
	return ret;
}

/* One segment per page, and a first one that the iterator is partly through. */
static int rma_vec_iter(struct rma_vec *v, struct rma_mem *mem, size_t at,
			size_t len, bool source)
{
	unsigned int i, n = DIV_ROUND_UP(at % PAGE_SIZE + len, PAGE_SIZE);

	v->array = kvcalloc(max(n, 1U), sizeof(*v->array), GFP_KERNEL);
	if (!v->array)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		bvec_set_page(&v->array[i], mem->pages[at / PAGE_SIZE + i],
			      PAGE_SIZE, 0);
	iov_iter_bvec(&v->iter, source ? ITER_SOURCE : ITER_DEST, v->array, n,
		      at % PAGE_SIZE + len);
	if (at % PAGE_SIZE)
		iov_iter_advance(&v->iter, at % PAGE_SIZE);
	return 0;
}

/**
 * rma_vec_make - describe a piece of memory
 * @v: where the description goes
 * @mem: the memory
 * @at: where in it
 * @len: bytes
 * @kind: how to describe it
 * @source: bytes come from there
 *
 * Return: 0; -ENOMEM; -ENOBUFS if it is in more pieces than @kind allows.
 */
int rma_vec_make(struct rma_vec *v, struct rma_mem *mem, size_t at, size_t len,
		 enum krma_kind kind, bool source)
{
	memset(v, 0, sizeof(*v));
	v->len = len;
	switch (kind) {
	case KRMA_BVEC:
		v->vec = KOFI_BVEC;
		return rma_vec_bvec(v, mem, at, len);
	case KRMA_SGL:
		v->vec = KOFI_SGL;
		return rma_vec_sgl(v, mem, at, len);
	case KRMA_ITER:
		v->vec = KOFI_ITER;
		return rma_vec_iter(v, mem, at, len, source);
	case KRMA_VMALLOC:
		v->vec = KOFI_KVEC;
		v->count = 1;
		v->kvec[0].iov_base = mem->virt + at;
		v->kvec[0].iov_len = len;
		return 0;
	case KRMA_PAGES:
		v->vec = KOFI_PAGES;
		v->pages = mem->pages + at / PAGE_SIZE;
		v->page_offset = at % PAGE_SIZE;
		v->count = DIV_ROUND_UP(v->page_offset + len, PAGE_SIZE);
		return 0;
	default:
		v->vec = KOFI_KVEC;
		rma_vec_kvec(v, mem, at, len);
		return 0;
	}
}

/**
 * rma_vec_free - the description is not needed any more
 * @v: after rma_vec_make(), also if that has failed, or zeroed
 */
void rma_vec_free(struct rma_vec *v)
{
	if (v->table.sgl)
		sg_free_table(&v->table);
	kvfree(v->array);
	v->table.sgl = NULL;
	v->array = NULL;
}

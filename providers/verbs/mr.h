/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Regions: those of the domain, and what reads on iWARP go into. */
#ifndef _KOFI_VERBS_MR_H
#define _KOFI_VERBS_MR_H

#include <linux/completion.h>
#include <linux/kofi/provider.h>
#include <linux/random.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#define VRB_MR_PAGES		256	/* pages a region has room for, unless asked */
#define VRB_READ_MRS		32	/* regions an endpoint on iWARP reads into at most */

struct vrb_domain;
struct vrb_ep;
struct vrb_txop;
struct vrb_walk;

/* -------------------------------------------------------------- read_mr.c */

struct vrb_read_mr {
	struct vrb_read_mr	*next;
	struct ib_mr		*mr;
};

/**
 * struct vrb_read_mrs - regions an endpoint on iWARP reads into
 * @free: unused ones
 * @nr_free: number of them
 * @nr: how many there are
 * @want: how many there shall be
 * @err: why there are less, a negative error
 * @short_read: see VRB_QUIRK_SHORT_READ: bytes of a read that must not cross a
 *	page at the peer; 0: any may
 * @pages: each has room for; 0 for an endpoint that does not need them
 * @sg: as many entries, to describe memory to the device
 * @mem: VRB_READ_MRS of them, of which @nr have one of the device's
 */
struct vrb_read_mrs {
	struct vrb_read_mr	*free;
	unsigned int		nr_free;
	unsigned int		nr;
	unsigned int		want;
	int			err;
	unsigned int		short_read;
	unsigned int		pages;
	struct scatterlist	*sg;
	struct vrb_read_mr	*mem;
};

int vrb_read_mrs_init(struct vrb_ep *ep);
int vrb_read_mrs_need(struct vrb_ep *ep, unsigned int n);
void vrb_read_mrs_grow(struct work_struct *work);
void vrb_read_mrs_end(struct vrb_ep *ep);
void vrb_read_mrs_exit(struct vrb_ep *ep);
unsigned int vrb_read_mr_segs(const struct vrb_read_mrs *s, struct vrb_walk *w,
			      struct scatterlist *sg, u64 from, size_t want,
			      u32 *len);
int vrb_read_mr_prepare(struct vrb_ep *ep, struct vrb_txop *op, unsigned int n,
			u32 len, int send_flags, struct ib_reg_wr *wr,
			struct ib_sge *sge);
void vrb_read_mrs_put(struct vrb_ep *ep, struct vrb_txop *op);

/* ------------------------------------------------------------------- mr.c */

extern const struct kofi_mr_ops vrb_mr_ops;

/*
 * Where a region begins, for its peers: the device needs the offset in the page,
 * and takes anything that a virtual address can be for the rest. By default that
 * would be the address for DMA, with devices in software a kernel's.
 */
static inline void vrb_mr_set_iova(struct ib_mr *mr)
{
	const u64 in_page = mr->page_size - 1;

	mr->iova = (get_random_u64() & GENMASK_ULL(55, 0) & ~in_page) |
		   (mr->iova & in_page);
}

void vrb_mr_connected(struct vrb_ep *ep);
void vrb_mr_ended(struct vrb_ep *ep);
void vrb_mr_ep_init(struct vrb_ep *ep);
void vrb_mr_ep_exit(struct vrb_ep *ep);
void vrb_mr_domain_init(struct vrb_domain *dom);
void vrb_mr_domain_exit(struct vrb_domain *dom);
void vrb_mr_lost(struct vrb_domain *dom);

/* Regions of a pool */
enum vrb_mr_state {
	VRB_MR_OPEN,		/* registered, as far as the endpoint knows */
	VRB_MR_ENDING,		/* to be invalidated */
	VRB_MR_INVALIDATING,	/* the device has been asked to */
	VRB_MR_INVALID,
};

/**
 * struct vrb_mr - a region
 * @base: the core's
 * @dom: its domain
 * @ib: the device's part; NULL once it has been deregistered
 * @room: pages @ib has room for
 * @key: the last one it had
 * @node: on the domain's list of those that have @ib
 * @pending: on the domain's list of those to be registered
 * @sg: the memory, in segments that can be mapped
 * @max_sg: entries there is room for
 * @nr_sg: entries in use
 * @nents: entries that are mapped for the device, 0 if none is
 * @dir: which way the bytes go
 * @reg: the registration has ended
 * @inv: the invalidation has
 * @posted: of a pool: vrb_ep.mr_posted, from the registration until it is fenced
 * @state: of a pool; with all up to @inv_room under the endpoint's tx_lock
 * @reg_out: of a pool: the end of the registration will be reported
 * @reg_room: places in the send queue that come free with that
 * @inv_room: the same with that of the invalidation
 * @ep: registers it, for a region of no pool
 * @status: of the registration, for a region of no pool
 * @registered: the device has reported it
 * @work: deregisters the device's region
 */
struct vrb_mr {
	struct kofi_mr		base;
	struct vrb_domain	*dom;
	struct ib_mr		*ib;
	size_t			room;
	u32			key;
	struct list_head	node;
	struct list_head	pending;
	struct scatterlist	*sg;
	unsigned int		max_sg;
	unsigned int		nr_sg;
	int			nents;
	enum dma_data_direction	dir;
	struct ib_cqe		reg;
	struct ib_cqe		inv;
	struct list_head	posted;
	enum vrb_mr_state	state;
	bool			reg_out;
	unsigned int		reg_room;
	unsigned int		inv_room;
	struct vrb_ep		*ep;
	int			status;
	struct completion	registered;
	struct work_struct	work;
};

static inline struct vrb_mr *vrb_mr(struct kofi_mr *base)
{
	return container_of(base, struct vrb_mr, base);
}

int vrb_mr_map(struct vrb_mr *mr);
void vrb_mr_unmap(struct vrb_mr *mr, struct ib_device *dev);
void vrb_mr_show(struct vrb_mr *mr);
void vrb_mr_dereg(struct vrb_mr *mr);
int vrb_mr_post_reg(struct vrb_mr *mr, struct vrb_ep *ep, bool signaled,
		    bool more);
void vrb_mr_reg_end(struct vrb_mr *mr, int status);

/* -------------------------------------------------------------- mr_pool.c */

void vrb_mr_pool_init(struct vrb_mr *mr);
int vrb_mr_pool_open(struct vrb_mr *mr);
void vrb_mr_pool_end(struct vrb_mr *mr);
void vrb_mr_invalidated(struct vrb_ep *ep, u32 key);
void vrb_mr_repost(struct vrb_ep *ep);
void vrb_mr_flush(struct vrb_ep *ep, bool drained);
size_t vrb_mr_ep_wrs(const struct vrb_ep *ep);

#endif /* _KOFI_VERBS_MR_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory regions, internals of mr.c and mr_pool.c */
#ifndef _KOFI_MR_H
#define _KOFI_MR_H

#include "internal.h"

#define KOFI_MR_ACCESS		(FI_SEND | FI_RECV | FI_READ | FI_WRITE | \
				 FI_REMOTE_READ | FI_REMOTE_WRITE)
#define KOFI_MR_FLAGS		(FI_MR_SINGLE_USE | FI_RMA_EVENT)

/* The consumer chooses sizes: too large ones are errors, not warnings. */
#define KOFI_MR_GFP		(GFP_KERNEL | __GFP_NOWARN)

/* States of a region, the low bits of kofi_mr.state */
enum {
	KOFI_MR_FREE,		/* in its pool */
	KOFI_MR_IDLE,		/* has no key */
	KOFI_MR_MAPPING,	/* kofi_mr_map() is at work */
	KOFI_MR_OPEN,		/* has a key */
	KOFI_MR_ENDING,		/* for a region of no pool the last state */
	KOFI_MR_STATE = 7,	/* their mask */
	KOFI_MR_OPENED,		/* above them: how often it was opened */
};

static inline struct kofi_mr *kofi_mr(struct fid_mr *mr)
{
	return container_of(mr, struct kofi_mr, mr);
}

static inline bool kofi_mr_valid(const struct fid_mr *mr)
{
	return kofi_fid_class(&mr->fid) == FI_CLASS_MR;
}

/**
 * struct kofi_mr_fill - segments of a region that is being set up
 * @bv: destination of the segments, NULL to only count them
 * @start: destination of their offsets
 * @max: most segments
 * @nr: segments so far
 * @len: bytes so far
 */
struct kofi_mr_fill {
	struct bio_vec	*bv;
	u64		*start;
	size_t		max;
	size_t		nr;
	size_t		len;
};

int kofi_mr_fill(struct kofi_mr_fill *fill, const struct fi_mr_attr *attr);

/* Address of virtually contiguous memory */
static inline void *kofi_mr_addr(const struct fi_mr_attr *attr)
{
	return attr->vec == KOFI_KVEC && attr->iov_count == 1 ?
	       attr->mr_iov->iov_base : NULL;
}

void kofi_mr_setup(struct kofi_mr *mr, struct kofi_domain *domain);
void kofi_mr_revoke(struct kofi_mr *mr, int err, u64 flags);
void kofi_mr_pool_fenced(struct kofi_mr *mr);

/* lib/target.c */
unsigned int kofi_mr_seg(const struct kofi_mr *mr, u64 off);

static inline unsigned int kofi_mr_state(const struct kofi_mr *mr)
{
	return READ_ONCE(mr->state) & KOFI_MR_STATE;
}

/* Fully ordered if it succeeds. True for the one caller that made the step. */
static inline bool kofi_mr_step(struct kofi_mr *mr, unsigned int from,
				unsigned int to)
{
	unsigned int old = READ_ONCE(mr->state), new;

	do {
		if ((old & KOFI_MR_STATE) != from)
			return false;
		new = old - from + to;
		if (to == KOFI_MR_OPEN)
			new += KOFI_MR_OPENED;
	} while (!try_cmpxchg(&mr->state, &old, new));
	return true;
}

/* Step from open to ending, with any key. Then call kofi_mr_revoke(). */
static inline bool kofi_mr_end_begin(struct kofi_mr *mr)
{
	return kofi_mr_step(mr, KOFI_MR_OPEN, KOFI_MR_ENDING);
}

#endif /* _KOFI_MR_H */

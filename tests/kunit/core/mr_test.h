/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the tests of memory regions share: a domain, two endpoints, memory. */
#ifndef _KOFI_TESTS_MR_TEST_H
#define _KOFI_TESTS_MR_TEST_H

#include <linux/prandom.h>

#include "fake.h"
#include "queues.h"

#define MR_ALL		(FI_REMOTE_READ | FI_REMOTE_WRITE)
#define MR_POOL		4UL
#define MR_SEGS		8UL
#define MR_SIZE		1000	/* bytes of mr_test.mem */
#define MR_RACES	32

/**
 * struct mr_test - what each test begins with
 * @world: fabric and domain; the provider chooses the keys
 * @eq: event queue of the endpoints
 * @cq: their completion queue; DIRECT, it calls back
 * @ep: an endpoint with a pool of %MR_POOL regions of %MR_SEGS segments
 * @other: one without
 * @rnd: the same numbers for each test
 * @mem: some memory
 * @spaces: write-space callbacks
 */
struct mr_test {
	struct fake_world	*world;
	struct fid_eq		*eq;
	struct fid_cq		*cq;
	struct fid_ep		*ep;
	struct fid_ep		*other;
	struct rnd_state	rnd;
	u8			*mem;
	int			spaces;
};

/**
 * struct mr_end - where a region's end is reported to
 * @cqe: context of the region
 * @wc: the last completion
 * @calls: number of them
 */
struct mr_end {
	struct kofi_cqe	cqe;
	struct kofi_wc	wc;
	int		calls;
};

int mr_test_init(struct kunit *test);
void mr_test_exit(struct kunit *test);

void mr_end_init(struct mr_end *end);
struct fid_ep *mr_endpoint(struct kunit *test, size_t pool, size_t segs);
struct fid_mr *mr_reg(struct kunit *test, u64 access, u64 flags);
u64 mr_stat_of(struct kofi_obj *obj, char *name);

#endif /* _KOFI_TESTS_MR_TEST_H */

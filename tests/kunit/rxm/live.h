/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Three endpoints of kofi_rxm that know each other: what its suites share. */
#ifndef _KOFI_TESTS_RXM_LIVE_H
#define _KOFI_TESTS_RXM_LIVE_H

#include <linux/in.h>

#include <linux/kofi/lib.h>

#include "../../../providers/rxm/proto.h"
#include "../kunit.h"
#include "../limit.h"
#include "../lo.h"

#define RXT_TIMEOUT	TEST_LIMIT(20000)	/* milliseconds; nothing that works takes it */
#define RXT_ENDS	3
#define RXT_BIG		(3 * SZ_1M)
#define RXT_TX		16	/* transmits an endpoint can have */

/* An endpoint, its queues and the peers it knows */
struct rxt_end {
	struct fid_ep		*ep;
	struct fid_cq		*tx;
	struct fid_cq		*rx;
	struct fid_av		*av;
	struct sockaddr_in	name;
	fi_addr_t		peer[RXT_ENDS];
};

struct rxt {
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct rxt_end		end[RXT_ENDS];
	u8			*out;
	u8			*in;
	unsigned int		timeout;	/* of connects, in milliseconds */
	size_t			rx_slots;	/* of queues for receives */
	bool			calls;		/* queues call back, in softirqs */
	void			(*space)(struct fid_ep *ep, void *context);
};

extern unsigned int rxm_held_bufs;
extern unsigned int rxm_max_unknown;

int rxt_init(struct kunit *test);
void rxt_exit(struct kunit *test);
void rxt_open_end(struct kunit *test, struct rxt *t, struct rxt_end *e);
void rxt_close_end(struct kunit *test, struct rxt_end *e);
void rxt_introduce(struct kunit *test, struct rxt *t);

void rxt_pattern(u8 *buf, size_t len, unsigned int seed);
size_t rxt_differs(const u8 *buf, size_t len, unsigned int seed);
int rxt_comp(struct fid_cq *cq, struct fi_cq_err_entry *e, fi_addr_t *src);
void rxt_expect(struct kunit *test, struct fid_cq *cq, void *context, int err);
u64 rxt_stat(struct fid_ep *ep, const char *name);
void rxt_held(struct kunit *test, struct rxt_end *e, u64 n);
void rxt_exchange(struct kunit *test, size_t len, bool tagged, bool late);

#endif /* _KOFI_TESTS_RXM_LIVE_H */

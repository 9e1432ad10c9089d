/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A plain endpoint of kofi_sock that says it is a peer of kofi_rxm. */
#ifndef _KOFI_TESTS_RXM_RAW_H
#define _KOFI_TESTS_RXM_RAW_H

#include "live.h"

/* A plain endpoint below that says it is a peer, or listens as one */
struct rxt_raw {
	struct kunit		*test;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct fid_pep		*pep;
	struct fid_eq		*eq;
	struct fid_cq		*cq;
	struct fid_ep		*ep;
	struct sockaddr_in	name;
	struct fi_info		*asked;	/* of a request */
	struct rxm_cm_req	req;
	struct rxm_cm_rsp	rsp;
	u8			flow;	/* what is said of credits; 0: none */
};

struct rxt_raw *rxt_raw_alloc(struct kunit *test);
void rxt_raw_ep(struct kunit *test, struct rxt_raw *r, struct fi_info *info);
void rxt_raw_open(struct kunit *test, struct rxt_raw *r);
void rxt_raw_listen(struct kunit *test, struct rxt_raw *r);
void rxt_raw_close_ep(struct kunit *test, struct rxt_raw *r);
void rxt_raw_close(struct kunit *test, struct rxt_raw *r);
int rxt_raw_wait(struct rxt_raw *r, u32 want, int timeout);
int rxt_raw_event(struct rxt_raw *r, u32 want);
int rxt_raw_connect(struct kunit *test, struct rxt_raw *r, struct rxt_end *e,
		    const void *req, size_t len);
void rxt_raw_reject(struct kunit *test, struct rxt_raw *r, u8 reason);
void rxt_raw_accept(struct kunit *test, struct rxt_raw *r, u64 id);
void rxt_raw_req(struct rxm_cm_req *req, u16 port);

#endif /* _KOFI_TESTS_RXM_RAW_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Two endpoints that do not connect and know each other (pair.c). */
#ifndef _KOFI_TESTS_RDM_PAIR_H
#define _KOFI_TESTS_RDM_PAIR_H

#include "../limit.h"
#include "place.h"

#define RDM_LONG	SZ_256K		/* a rendezvous over kofi_rxm, not stored by kofi_sock */
#define RDM_TIMEOUT	TEST_LIMIT(40000)	/* more than a connect over verbs may take */
#define RDM_KEYS	(FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED)

struct rdm_end {
	struct fid_ep	*ep;
	struct fid_av	*av;
	struct fid_cq	*cq;
	struct fid_eq	*eq;
	fi_addr_t	peer;
};

struct rdm_pair {
	struct kunit		*test;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct rdm_end		from;
	struct rdm_end		to;
	u8			*out;	/* RDM_LONG each */
	u8			*in;
};

struct rdm_pair *rdm_pair_alloc(struct kunit *test, u64 caps, int mr_mode);
void rdm_pair_end(struct rdm_pair *t, struct rdm_end *e, size_t events,
		  size_t slots, struct fid_cq *cq);
void rdm_pair_enable(struct rdm_pair *t);
void rdm_close_end(struct kunit *test, struct rdm_end *e);
int rdm_comp(struct rdm_end *e, struct fi_cq_tagged_entry *entry);
int rdm_lost(struct rdm_pair *t, struct rdm_end *e);
u64 rdm_fid_stat(const struct fi_fid *fid, const char *name);

#endif /* _KOFI_TESTS_RDM_PAIR_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Domains: one network device as a container of resources (fi_domain(3)). */
#ifndef _LINUX_KOFI_FI_DOMAIN_H
#define _LINUX_KOFI_FI_DOMAIN_H

#include <linux/kofi/fi_eq.h>

struct fid_domain;
struct fid_ep;
struct kofi_cq_attr;

/*
 * What a provider's domain can make. Queues and counters are the core's: a
 * provider fills cq_open only to put something of its own beside the core's
 * queue.
 */
struct fi_ops_domain {
	size_t	size;
	int	(*endpoint)(struct fid_domain *domain, struct fi_info *info,
			    struct fid_ep **ep, void *context);
	int	(*cq_open)(struct fid_domain *domain, struct fi_cq_attr *attr,
			   const struct kofi_cq_attr *kattr,
			   struct fid_cq **cq, void *context);
};

struct fid_domain {
	struct fi_fid			fid;
	const struct fi_ops_domain	*ops;
};

int fi_domain(struct fid_fabric *fabric, struct fi_info *info,
	      struct fid_domain **domain, void *context);
int fi_domain2(struct fid_fabric *fabric, struct fi_info *info,
	       struct fid_domain **domain, u64 flags, void *context);
int fi_domain_bind(struct fid_domain *domain, struct fi_fid *eq, u64 flags);

#endif /* _LINUX_KOFI_FI_DOMAIN_H */

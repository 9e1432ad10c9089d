/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Spellings of earlier kernel fabric proposals, for code written to them. New
 * code does not need this header.
 */
#ifndef _LINUX_KOFI_COMPAT_H
#define _LINUX_KOFI_COMPAT_H

#include <linux/kofi/kofi.h>

/* Each is the call it names, without a context where it has one less argument. */

static inline int fi_ep_open(struct fid_domain *domain, struct fi_info *info,
			     struct fid_ep **ep)
{
	return fi_endpoint(domain, info, ep, NULL);
}

static inline int fi_bind(struct fid_ep *ep, void *addr, size_t addrlen)
{
	return fi_setname(&ep->fid, addr, addrlen);
}

static inline int fi_pep_setname(struct fid_pep *pep, void *addr,
				 size_t addrlen)
{
	return fi_setname(&pep->fid, addr, addrlen);
}

static inline ssize_t fi_eq_error(struct fid_eq *eq,
				  struct fi_eq_err_entry *buf, u64 flags)
{
	return fi_eq_readerr(eq, buf, flags);
}

static inline ssize_t fi_cq_error(struct fid_cq *cq,
				  struct fi_cq_err_entry *buf, u64 flags)
{
	return fi_cq_readerr(cq, buf, flags);
}

static inline ssize_t fi_sendto(struct fid_ep *ep, const void *buf, size_t len,
				void *desc, fi_addr_t dest, void *context)
{
	return fi_send(ep, buf, len, desc, dest, context);
}

static inline ssize_t fi_recvfrom(struct fid_ep *ep, void *buf, size_t len,
				  void *desc, fi_addr_t src, void *context)
{
	return fi_recv(ep, buf, len, desc, src, context);
}

#endif /* _LINUX_KOFI_COMPAT_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Connection management and endpoint addresses (fi_cm(3)). */
#ifndef _LINUX_KOFI_FI_CM_H
#define _LINUX_KOFI_FI_CM_H

#include <linux/kofi/fi_endpoint.h>

/* The core has checked every argument before one of these is called. */
struct fi_ops_cm {
	size_t	size;
	int	(*setname)(fid_t fid, void *addr, size_t addrlen);
	int	(*getname)(fid_t fid, void *addr, size_t *addrlen);
	int	(*getpeer)(struct fid_ep *ep, void *addr, size_t *addrlen);
	int	(*connect)(struct fid_ep *ep, const void *addr,
			   const void *param, size_t paramlen);
	int	(*listen)(struct fid_pep *pep);
	int	(*accept)(struct fid_ep *ep, const void *param,
			  size_t paramlen);
	int	(*reject)(struct fid_pep *pep, fid_t handle, const void *param,
			  size_t paramlen);
	int	(*shutdown)(struct fid_ep *ep, u64 flags);
};

int fi_setname(fid_t fid, void *addr, size_t addrlen);
int fi_getname(fid_t fid, void *addr, size_t *addrlen);
int fi_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen);
int fi_listen(struct fid_pep *pep);
int fi_connect(struct fid_ep *ep, const void *addr, const void *param,
	       size_t paramlen);
int fi_accept(struct fid_ep *ep, const void *param, size_t paramlen);
int fi_reject(struct fid_pep *pep, fid_t handle, const void *param,
	      size_t paramlen);
int fi_shutdown(struct fid_ep *ep, u64 flags);

#endif /* _LINUX_KOFI_FI_CM_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What tests/atomic, which is a kernel's source, needs to be a program. */
#ifndef _KOFI_PEER_ATOMIC_H
#define _KOFI_PEER_ATOMIC_H

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/types.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#define AT_KERNEL	0
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define __aligned(n)	__attribute__((aligned(n)))
#define __printf(a, b)	__attribute__((format(printf, a, b)))

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s8 s8;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;

static inline void *at_alloc(size_t size)
{
	return calloc(1, size);
}

static inline void at_free(void *p)
{
	free(p);
}

static inline char *at_strdup(const char *s)
{
	return strdup(s);
}

static inline u64 at_base(const struct fi_info *info, struct fid_mr *mr,
			  const void *mem)
{
	(void)mr;
	return info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ?
	       (uintptr_t)mem : 0;
}

#endif /* _KOFI_PEER_ATOMIC_H */

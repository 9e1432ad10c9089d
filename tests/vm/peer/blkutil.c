// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "blkutil.h"

uint64_t chance;

void die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fprintf(stderr, "%s: ", program);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

void check(ssize_t err, const char *what)
{
	if (err)
		die("%s: %s", what, fi_strerror(-err));
}

uint64_t random64(void)
{
	uint64_t z = chance += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

unsigned int below(unsigned int n)
{
	return random64() % n;
}

void flip(void *bytes, size_t len)
{
	unsigned int n = 1 + below(8);

	while (n--)
		((unsigned char *)bytes)[below(len)] ^= 1U << below(8);
}

/* Verbs keeps what it asks for here, tcp asks for nothing. */
struct fi_info *discover(const char *provider, const char *node, const char *port,
			 uint64_t flags)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	if (!hints)
		die("no memory");
	/* a region that has ended would go on in the cache */
	setenv("FI_MR_CACHE_MAX_COUNT", "0", 1);
	hints->caps = FI_MSG | FI_RMA;
	hints->mode = FI_RX_CQ_DATA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
				      FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup(provider);
	check(fi_getinfo(FI_VERSION(1, 17), node, port, flags, hints, &info),
	      "fi_getinfo");
	fi_freeinfo(hints);
	return info;
}

/* For what is sent, received, read and written from here */
struct fid_mr *local_memory(struct fid_domain *domain, void *p, size_t len)
{
	struct fid_mr *mr;

	check(fi_mr_reg(domain, p, len, FI_SEND | FI_RECV | FI_READ | FI_WRITE,
			0, 0, 0, &mr, NULL), "fi_mr_reg");
	return mr;
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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

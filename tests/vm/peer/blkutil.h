/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What both programs that break the rules of clients/blk share: its protocol,
 * chance from a seed, discovery, and an end with a sentence.
 */
#ifndef _KOFI_BLKUTIL_H
#define _KOFI_BLKUTIL_H

#include <assert.h>
#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#define BIT(n)		(1U << (n))
#define GENMASK(h, l)	((~0U << (l)) & (~0U >> (31 - (h))))
#include "../../../clients/blk/proto.h"

extern const char *program;
extern uint64_t chance;		/* a seed, then its state */

__attribute__((noreturn, format(printf, 1, 2))) void die(const char *fmt, ...);
void check(ssize_t err, const char *what);
uint64_t random64(void);
unsigned int below(unsigned int n);
void flip(void *bytes, size_t len);
void spoil(void *bytes, size_t len);
void randomize(unsigned char *bytes, size_t len);
size_t odd_size(size_t right);
struct fi_info *discover(const char *provider, const char *node, const char *port,
			 uint64_t flags);
size_t begin_login(void *message, unsigned int type);
size_t add_field(void *message, unsigned int id, const void *value, size_t len);
size_t find_field(const void *message, size_t len, unsigned int id, void *value,
		  size_t room);
uint32_t crc32c(uint32_t crc, const void *bytes, size_t len);
uint32_t cmd_digest(const struct kblk_cmd *c, uint32_t data);
uint32_t answer_crc(uint32_t command, uint32_t value);
struct fid_mr *local_memory(struct fid_domain *domain, void *p, size_t len);

#endif /* _KOFI_BLKUTIL_H */

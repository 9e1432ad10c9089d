/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A plain TCP socket as a peer of kofi_sock (raw.c). */
#ifndef _KOFI_TESTS_RAW_H
#define _KOFI_TESTS_RAW_H

#include "../contract/contract.h"

#define RAW_CM_LEN	32
#define RAW_TIMEOUT	TEST_LIMIT(5 * HZ)

struct socket *raw_socket(struct kunit *test, struct ct_pair *p);
struct socket *raw_connect(struct kunit *test, struct ct_pair *p);
int raw_send(struct socket *sock, const void *buf, size_t len);
int raw_recv(struct socket *sock, void *buf, size_t len);
void raw_cm(u8 *b, u8 version, u8 type, u16 data_len);
void raw_frame(u8 *b, u8 op, u16 flags, u8 op_data, u8 rma_count, u8 hdr_size,
	       u64 size);

#endif /* _KOFI_TESTS_RAW_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Peers that violate the protocol: helpers of hostile_test.c and hostile_cm_test.c */
#ifndef _KOFI_TESTS_HOSTILE_H
#define _KOFI_TESTS_HOSTILE_H

#include "../contract/contract.h"

#define HOSTILE_RECV	256

/**
 * struct hostile - the objects of a case
 * @good: connected pair, which the violation must not affect
 * @bad: pair whose side 1 has the violating peer
 * @raw: the violating peer, or NULL
 * @recv: receive of side 1 of @bad
 * @buf: memory for messages
 */
struct hostile {
	struct ct_pair	*good;
	struct ct_pair	*bad;
	struct socket	*raw;
	struct ct_op	*recv;
	u8		*buf;
};

void hostile_release(void *arg);
void hostile_expect_closed(struct kunit *test, struct socket *sock);
u64 hostile_stat(struct kunit *test, struct fi_fid *fid, const char *name);
struct hostile *hostile_open(struct kunit *test, const struct ct_opts *opts);
void hostile_innocent(struct hostile *h);
void hostile_close(struct hostile *h);
struct hostile *hostile_live(struct kunit *test, const struct ct_opts *more);

#endif /* _KOFI_TESTS_HOSTILE_H */

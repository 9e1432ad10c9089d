/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Proofs of logins for both programs that break the rules of clients/blk, without code of the
 * kernel: HMAC-SHA-256 and the transcript of a login.
 */
#ifndef _KOFI_BLKAUTH_H
#define _KOFI_BLKAUTH_H

#include "blkutil.h"

struct auth_key {
	unsigned char	bytes[256];
	size_t		len;
};

struct script {
	unsigned char	bytes[sizeof(struct kblk_agreement) + 8 * KBLK_LOGIN_LEN];
	size_t		len;
};

void sha256(const void *data, size_t len, unsigned char sum[32]);
void read_key(struct auth_key *key, const char *file);
void script_begin(struct script *s, const struct kblk_hello *hello,
		  const struct kblk_accept *accept);
void script_add(struct script *s, const void *bytes, size_t len);
void script_mac(const struct script *s, const struct auth_key *key, unsigned int role,
		unsigned char mac[KBLK_PROOF_LEN]);
size_t add_proof(struct script *s, const struct auth_key *key, unsigned int role,
		 void *message);
void self_test(void);

#endif /* _KOFI_BLKAUTH_H */

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Proofs of logins at the target: the keyring of its keys, and the transformation that all
 * logins share.
 */
#include <linux/minmax.h>
#include <linux/mutex.h>

#include "auth.h"
#include "target.h"

static struct key *kblkt_keys;
static struct crypto_shash *kblkt_hmac;
static DEFINE_MUTEX(kblkt_hmac_lock);	/* for kblkt_hmac and its key */

/**
 * kblkt_auth_init - make the keyring
 *
 * Return: 0 or a negative error code.
 */
int kblkt_auth_init(void)
{
	struct key *keys = kblk_keyring(".kofi_blkt");

	if (IS_ERR(keys))
		return PTR_ERR(keys);
	kblkt_keys = keys;
	return 0;
}

/**
 * kblkt_auth_exit - undo kblkt_auth_init() and kblkt_auth_use()
 */
void kblkt_auth_exit(void)
{
	crypto_free_shash(kblkt_hmac);
	kblk_keyring_free(kblkt_keys);
}

/**
 * kblkt_auth_use - prepare for logins with proofs
 *
 * Allocates the transformation when an identity is configured. A login may run while memory
 * is written back through this target, and must not load a module.
 *
 * Context: process, may sleep.
 * Return: 0 or a negative error code.
 */
int kblkt_auth_use(void)
{
	struct crypto_shash *hmac;
	bool ready;

	mutex_lock(&kblkt_hmac_lock);
	ready = kblkt_hmac;
	mutex_unlock(&kblkt_hmac_lock);
	if (ready)
		return 0;
	/* it may load a module, and logins wait for the lock */
	hmac = crypto_alloc_shash(KBLK_HMAC, 0, 0);
	if (IS_ERR(hmac))
		return PTR_ERR(hmac);
	mutex_lock(&kblkt_hmac_lock);
	if (!kblkt_hmac)
		swap(kblkt_hmac, hmac);
	mutex_unlock(&kblkt_hmac_lock);
	/* NULL, unless another writer was faster */
	crypto_free_shash(hmac);
	return 0;
}

/**
 * kblkt_auth_prove - HMAC of a transcript
 * @key: description of the key; NULL: there is none
 * @s: the transcript
 * @role: KBLK_ROLE_CLIENT or KBLK_ROLE_TARGET
 * @mac: room for KBLK_PROOF_LEN bytes
 *
 * Context: process, may sleep.
 * Return: 0; -ENOKEY, -EKEYREVOKED or -EKEYEXPIRED without a valid key; or another negative
 * error code.
 */
int kblkt_auth_prove(const char *key, struct kblk_script *s, unsigned int role,
		     u8 *mac)
{
	int err;

	mutex_lock(&kblkt_hmac_lock);
	err = kblkt_hmac ? kblk_prove(kblkt_hmac, kblkt_keys, key, s, role, mac) :
			   -ENOKEY;
	mutex_unlock(&kblkt_hmac_lock);
	return err;
}

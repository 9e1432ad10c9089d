/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Proofs of a login, for client and target: the transcript that a proof covers, the key
 * from a keyring, and the HMAC. proto.h describes the proofs.
 *
 * Each module has a keyring of its own. Root adds keys of type "logon" or "user" to it. A
 * description of type "logon" contains a colon. If both types have the description, the key of
 * type "logon" is found, also if it has expired or has been revoked. A key is searched when
 * a proof is made. So a key that has been revoked, has expired or has been unlinked makes no
 * further proof. No key outlives the function that makes the proof.
 */
#ifndef _KOFI_BLK_AUTH_H
#define _KOFI_BLK_AUTH_H

#include <crypto/hash.h>
#include <crypto/utils.h>
#include <keys/user-type.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/key.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/uidgid.h>

#include "login.h"

#define KBLK_HMAC	"hmac(sha256)"
#define KBLK_KEY_MIN	32	/* bytes of a key at least: it is not to be guessed */
#define KBLK_KEY_MAX	128

/**
 * struct kblk_script - transcript of a login
 * @len: bytes in @bytes
 * @bytes: struct kblk_agreement, then the messages
 */
struct kblk_script {
	size_t	len;
	u8	bytes[sizeof(struct kblk_agreement) +
		      KBLK_LOGIN_PROVEN * KBLK_LOGIN_LEN];
};

/**
 * kblk_script_begin - begin a transcript
 * @s: the transcript
 * @hello: private data of the connection request
 * @accept: private data of the acceptance
 */
static inline void kblk_script_begin(struct kblk_script *s,
				     const struct kblk_hello *hello,
				     const struct kblk_accept *accept)
{
	struct kblk_agreement a = { .hello = *hello, .accept = *accept };

	memcpy(a.label, KBLK_LABEL, sizeof(a.label));
	memcpy(s->bytes, &a, sizeof(a));
	s->len = sizeof(a);
}

/**
 * kblk_script_add - append a message to a transcript
 * @s: the transcript
 * @message: the message, or its part before a proof
 * @len: bytes of @message
 *
 * Return: 0; or -EPROTO if there is no room, as there are too many messages.
 */
static inline int kblk_script_add(struct kblk_script *s, const void *message,
				  size_t len)
{
	if (len > sizeof(s->bytes) - s->len)
		return -EPROTO;
	memcpy(s->bytes + s->len, message, len);
	s->len += len;
	return 0;
}

/**
 * kblk_hmac - HMAC of a transcript
 * @tfm: transformation for KBLK_HMAC, which the caller uses alone; it has no key afterwards
 * @key: the key
 * @len: bytes of @key
 * @s: the transcript
 * @role: KBLK_ROLE_CLIENT or KBLK_ROLE_TARGET
 * @mac: room for KBLK_PROOF_LEN bytes
 *
 * Context: process, may sleep.
 * Return: 0 or a negative error code.
 */
static inline int kblk_hmac(struct crypto_shash *tfm, const u8 *key, size_t len,
			    struct kblk_script *s, unsigned int role, u8 *mac)
{
	static const u8 none[KBLK_KEY_MIN];
	const __le32 value = cpu_to_le32(role);
	int err;

	memcpy(s->bytes + offsetof(struct kblk_agreement, role), &value,
	       sizeof(value));
	err = crypto_shash_setkey(tfm, key, len);
	if (!err)
		err = crypto_shash_tfm_digest(tfm, s->bytes, s->len, mac);
	crypto_shash_setkey(tfm, none, sizeof(none));
	return err;
}

/* The key of a description, its length, or a negative error code */
static inline int kblk_key_read(struct key *keyring, const char *description,
				u8 key[KBLK_KEY_MAX])
{
	const struct user_key_payload *p;
	key_ref_t found;
	int ret;

	/* the module possesses its keyring, and thus the keys */
	found = keyring_search(make_key_ref(keyring, true), &key_type_logon,
			       description, false);
	if (found == ERR_PTR(-EAGAIN) || found == ERR_PTR(-ENOKEY))
		found = keyring_search(make_key_ref(keyring, true), &key_type_user,
				       description, false);
	if (IS_ERR(found))
		return found == ERR_PTR(-EAGAIN) ? -ENOKEY : PTR_ERR(found);
	rcu_read_lock();
	p = user_key_payload_rcu(key_ref_to_ptr(found));
	/* a key that is revoked now has no payload */
	ret = !p ? -EKEYREVOKED : p->datalen;
	if (ret > KBLK_KEY_MAX || (ret >= 0 && ret < KBLK_KEY_MIN))
		ret = -ERANGE;
	if (ret > 0)
		memcpy(key, p->data, ret);
	rcu_read_unlock();
	key_ref_put(found);
	return ret;
}

/**
 * kblk_prove - HMAC of a transcript, by a key of a keyring
 * @tfm: transformation for KBLK_HMAC, which the caller uses alone
 * @keyring: keyring of the module
 * @description: description of the key; NULL: there is none
 * @s: the transcript
 * @role: KBLK_ROLE_CLIENT or KBLK_ROLE_TARGET
 * @mac: room for KBLK_PROOF_LEN bytes
 *
 * Context: process, may sleep.
 * Return: 0; -ENOKEY, -EKEYREVOKED or -EKEYEXPIRED without a valid key; -ERANGE if the key
 * has a wrong length; or another negative error code.
 */
static inline int kblk_prove(struct crypto_shash *tfm, struct key *keyring,
			     const char *description, struct kblk_script *s,
			     unsigned int role, u8 *mac)
{
	u8 key[KBLK_KEY_MAX];
	int ret = -ENOKEY, err;

	memset(key, 0, sizeof(key));
	if (description)
		ret = kblk_key_read(keyring, description, key);
	/*
	 * Without a key, too: a peer must not learn from the answer which names exist. The
	 * time of the search still differs.
	 */
	err = kblk_hmac(tfm, key, ret > 0 ? ret : KBLK_KEY_MIN, s, role, mac);
	memzero_explicit(key, sizeof(key));
	return ret < 0 ? ret : err;
}

/**
 * kblk_keyring - make the keyring of a module
 * @name: name of the keyring; begins with a dot, so that no user can make one of this name
 *
 * Root can view, search and change it.
 *
 * Context: process, may sleep.
 * Return: the keyring, to be released by kblk_keyring_free(), or an error pointer.
 */
static inline struct key *kblk_keyring(const char *name)
{
	return keyring_alloc(name, GLOBAL_ROOT_UID, GLOBAL_ROOT_GID, current_cred(),
			     (KEY_POS_ALL | KEY_USR_ALL) &
			     ~(KEY_POS_SETATTR | KEY_USR_SETATTR),
			     KEY_ALLOC_NOT_IN_QUOTA, NULL, NULL);
}

/**
 * kblk_keyring_free - undo kblk_keyring()
 * @ring: the keyring
 *
 * Keys and keyring go, also if another keyring has a link to @ring. Otherwise the link would
 * keep them, and a later load of the module would make a second keyring of this name.
 *
 * Context: process, may sleep.
 */
static inline void kblk_keyring_free(struct key *ring)
{
	keyring_clear(ring);
	key_invalidate(ring);
	key_put(ring);
}

/**
 * kblk_last_proof - find the proof of a message, its last field
 * @head: the message
 * @len: bytes that have arrived, as many as @head says
 *
 * Return: the value of the field KBLK_FIELD_PROOF, KBLK_PROOF_LEN bytes; or NULL if the
 * last field of the message is another one.
 */
static inline const u8 *kblk_last_proof(const struct kblk_login_head *head, size_t len)
{
	const size_t room = sizeof(struct kblk_field) + KBLK_PROOF_LEN;
	struct kblk_field field;
	const u8 *at;

	if (len < sizeof(*head) + room)
		return NULL;
	at = (const u8 *)head + len - room;
	memcpy(&field, at, sizeof(field));
	if ((le16_to_cpu(field.id) & ~KBLK_FIELD_MUST) != KBLK_FIELD_PROOF ||
	    le16_to_cpu(field.len) != KBLK_PROOF_LEN)
		return NULL;
	return at + sizeof(field);
}

#endif /* _KOFI_BLK_AUTH_H */

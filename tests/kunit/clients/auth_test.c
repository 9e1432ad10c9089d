// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Proofs of a login (clients/blk/auth.h): the HMAC of a transcript, keys of a keyring, and
 * fields of messages at the limits of their lengths.
 *
 * The expected proofs come from this program of Python, which shares no code with the kernel:
 *
 *	import hmac, struct
 *	def field(i, v): return struct.pack("<HH", i | 1 << 15, len(v)) + v + bytes(-len(v) % 4)
 *	def message(t, *f): b = b"".join(f); return struct.pack("<HHI", t, 8 + len(b), 0) + b
 *	def start(r): return (b"kofi_blk login 2" + struct.pack("<I", r) +
 *	    struct.pack("<IHHIHH", 0x6b6c626b, 2, 2, 1, 64, 0) +
 *	    struct.pack("<IHHI", 0x6b6c626b, 2, 0, 1))
 *	def mac(r, s): return hmac.digest(bytes(range(32)), start(r) + s, "sha256")
 *	s = message(1, field(1, b"abcdefgh" + struct.pack("<IHH", 7, 1, 2)), field(2, b"vol0"),
 *	    field(9, b"host1"), field(10, b"\x11" * 32)) + message(4, field(10, b"\x22" * 32))
 *	m = message(5, field(11, bytes(32)))[:-32]
 *	c = mac(1, s + m)
 *	s += m + c + message(2, field(5, b"\x33" * 48), field(11, bytes(32)))[:-32]
 *	print(c.hex(), mac(2, s).hex())
 */
#include <linux/slab.h>

#include "../../../clients/blk/auth.h"
#include "../kunit.h"

#define AUTH_MUST(id)	((id) | KBLK_FIELD_MUST)

static const u8 auth_client[KBLK_PROOF_LEN] = {
	0x45, 0x22, 0x94, 0xf2, 0x9d, 0xa9, 0x32, 0x9e,
	0xf6, 0xc6, 0x19, 0x5c, 0x8f, 0xb1, 0x96, 0x2e,
	0xd8, 0x35, 0x79, 0xea, 0x3d, 0xfd, 0x07, 0xc2,
	0x2d, 0xcf, 0x0c, 0x3e, 0xdb, 0xb1, 0x28, 0xa3,
};

static const u8 auth_target[KBLK_PROOF_LEN] = {
	0xe9, 0xf3, 0x0b, 0x5d, 0xec, 0xff, 0xa6, 0x05,
	0xe1, 0x7b, 0xec, 0x5a, 0xdb, 0x9e, 0x95, 0xb5,
	0xa7, 0xbb, 0x43, 0x7c, 0x4b, 0x2d, 0x03, 0x75,
	0x52, 0xb0, 0xb6, 0x21, 0x3e, 0x6d, 0x28, 0x55,
};

struct auth_fixture {
	struct crypto_shash	*tfm;
	struct key		*ring;
	struct kblk_script	script;
	u8			key[2 * KBLK_KEY_MAX];
	u8			message[KBLK_LOGIN_LEN];
};

static int auth_init(struct kunit *test)
{
	struct auth_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, f);
	for (i = 0; i < sizeof(f->key); i++)
		f->key[i] = i;
	f->tfm = crypto_alloc_shash(KBLK_HMAC, 0, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(f->tfm));
	test->priv = f;
	f->ring = kblk_keyring(".kofi_blk_test");
	KUNIT_ASSERT_FALSE(test, IS_ERR(f->ring));
	return 0;
}

static void auth_exit(struct kunit *test)
{
	struct auth_fixture *f = test->priv;

	if (!f)
		return;
	crypto_free_shash(f->tfm);
	if (!IS_ERR(f->ring))
		kblk_keyring_free(f->ring);
}

/* Append the message, but for the last @less bytes. */
static void auth_add(struct kunit *test, size_t less)
{
	struct auth_fixture *f = test->priv;
	const struct kblk_login_head *head = (void *)f->message;

	KUNIT_ASSERT_EQ(test, 0, kblk_script_add(&f->script, f->message,
						 le16_to_cpu(head->len) - less));
}

/* The transcript up to the client's proof */
static void auth_until_client(struct kunit *test)
{
	struct auth_fixture *f = test->priv;
	struct kblk_login_head *head = (void *)f->message;
	const struct kblk_hello hello = {
		.magic = cpu_to_le32(KBLK_MAGIC), .version = cpu_to_le16(2),
		.oldest = cpu_to_le16(2), .features = cpu_to_le32(1),
		.depth = cpu_to_le16(64),
	};
	const struct kblk_accept accept = {
		.magic = cpu_to_le32(KBLK_MAGIC), .version = cpu_to_le16(2),
		.features = cpu_to_le32(1),
	};
	struct kblk_session s = {
		.attempt = cpu_to_le32(7), .queue = cpu_to_le16(1),
		.queues = cpu_to_le16(2),
	};
	u8 bytes[KBLK_NONCE_LEN];

	memcpy(s.session, "abcdefgh", sizeof(s.session));
	kblk_script_begin(&f->script, &hello, &accept);
	kblk_message(head, KBLK_LOGIN_REQUEST);
	kblk_add_field(head, AUTH_MUST(KBLK_FIELD_SESSION), &s, sizeof(s));
	kblk_add_field(head, AUTH_MUST(KBLK_FIELD_VOLUME), "vol0", 4);
	kblk_add_field(head, AUTH_MUST(KBLK_FIELD_IDENTITY), "host1", 5);
	memset(bytes, 0x11, sizeof(bytes));
	kblk_add_field(head, AUTH_MUST(KBLK_FIELD_NONCE), bytes, sizeof(bytes));
	auth_add(test, 0);
	kblk_message(head, KBLK_LOGIN_CHALLENGE);
	memset(bytes, 0x22, sizeof(bytes));
	kblk_add_field(head, AUTH_MUST(KBLK_FIELD_NONCE), bytes, sizeof(bytes));
	auth_add(test, 0);
	kblk_message(head, KBLK_LOGIN_PROOF);
	kblk_add_field(head, AUTH_MUST(KBLK_FIELD_PROOF), auth_client,
		       sizeof(auth_client));
	auth_add(test, KBLK_PROOF_LEN);
}

static bool auth_proves(struct kunit *test, size_t len, unsigned int role,
			const u8 *proof)
{
	struct auth_fixture *f = test->priv;
	u8 mac[KBLK_PROOF_LEN] = {};

	KUNIT_EXPECT_EQ(test, 0, kblk_hmac(f->tfm, f->key, len, &f->script, role,
					   mac));
	return !crypto_memneq(mac, proof, sizeof(mac));
}

static void auth_vectors(struct kunit *test)
{
	struct auth_fixture *f = test->priv;
	struct kblk_login_head *head = (void *)f->message;
	struct kblk_welcome w;

	auth_until_client(test);
	KUNIT_EXPECT_TRUE(test, auth_proves(test, 32, KBLK_ROLE_CLIENT, auth_client));
	KUNIT_EXPECT_EQ(test, 0, kblk_script_add(&f->script, auth_client,
						 sizeof(auth_client)));
	memset(&w, 0x33, sizeof(w));
	kblk_message(head, KBLK_LOGIN_WELCOME);
	kblk_add_field(head, AUTH_MUST(KBLK_FIELD_WELCOME), &w, sizeof(w));
	kblk_add_field(head, AUTH_MUST(KBLK_FIELD_PROOF), auth_target,
		       sizeof(auth_target));
	KUNIT_EXPECT_NOT_NULL(test, kblk_last_proof(head, le16_to_cpu(head->len)));
	auth_add(test, KBLK_PROOF_LEN);
	KUNIT_EXPECT_TRUE(test, auth_proves(test, 32, KBLK_ROLE_TARGET, auth_target));
}

/* Role, key and each byte of the transcript count. */
static void auth_each_byte(struct kunit *test)
{
	struct auth_fixture *f = test->priv;
	const size_t role = offsetof(struct kblk_agreement, role);
	size_t i;

	auth_until_client(test);
	KUNIT_EXPECT_FALSE(test, auth_proves(test, 32, KBLK_ROLE_TARGET, auth_client));
	KUNIT_EXPECT_FALSE(test, auth_proves(test, 33, KBLK_ROLE_CLIENT, auth_client));
	for (i = 0; i < f->script.len; i++) {
		/* kblk_hmac() writes the role */
		if (i >= role && i < role + sizeof(__le32))
			continue;
		f->script.bytes[i] ^= 1 << i % 8;
		KUNIT_EXPECT_FALSE(test, auth_proves(test, 32, KBLK_ROLE_CLIENT,
						     auth_client));
		f->script.bytes[i] ^= 1 << i % 8;
	}
	f->script.len--;
	KUNIT_EXPECT_FALSE(test, auth_proves(test, 32, KBLK_ROLE_CLIENT, auth_client));
	f->script.len++;
	KUNIT_EXPECT_TRUE(test, auth_proves(test, 32, KBLK_ROLE_CLIENT, auth_client));
}

/* The transformation has forgotten the key. */
static void auth_key_forgotten(struct kunit *test)
{
	struct auth_fixture *f = test->priv;
	u8 mac[KBLK_PROOF_LEN], none[KBLK_PROOF_LEN];

	auth_until_client(test);
	KUNIT_EXPECT_TRUE(test, auth_proves(test, 32, KBLK_ROLE_CLIENT, auth_client));
	KUNIT_EXPECT_EQ(test, 0, crypto_shash_tfm_digest(f->tfm, f->script.bytes,
							 f->script.len, mac));
	memset(f->key, 0, sizeof(f->key));
	KUNIT_EXPECT_EQ(test, 0, kblk_hmac(f->tfm, f->key, 32, &f->script,
					   KBLK_ROLE_CLIENT, none));
	KUNIT_EXPECT_MEMEQ(test, mac, none, sizeof(mac));
}

static key_ref_t auth_key(struct kunit *test, const char *type,
			  const char *description, size_t len)
{
	struct auth_fixture *f = test->priv;
	key_ref_t key;

	key = key_create_or_update(make_key_ref(f->ring, true), type, description,
				   f->key, len,
				   KEY_POS_VIEW | KEY_POS_SEARCH | KEY_POS_WRITE,
				   KEY_ALLOC_NOT_IN_QUOTA);
	KUNIT_ASSERT_FALSE(test, IS_ERR(key));
	return key;
}

static int auth_prove(struct kunit *test, const char *description, u8 *mac)
{
	struct auth_fixture *f = test->priv;

	return kblk_prove(f->tfm, f->ring, description, &f->script,
			  KBLK_ROLE_CLIENT, mac);
}

static void auth_keys(struct kunit *test)
{
	static const struct {
		size_t	len;
		int	err;
	} sizes[] = {
		{ 1, -ERANGE }, { KBLK_KEY_MIN - 1, -ERANGE }, { KBLK_KEY_MIN, 0 },
		{ KBLK_KEY_MAX, 0 }, { KBLK_KEY_MAX + 1, -ERANGE },
	};
	static const char * const types[] = { "logon", "user" };
	u8 mac[KBLK_PROOF_LEN] = {};
	char name[16];
	key_ref_t key;
	unsigned int i, j;

	auth_until_client(test);
	KUNIT_EXPECT_EQ(test, -ENOKEY, auth_prove(test, NULL, mac));
	for (j = 0; j < ARRAY_SIZE(types); j++) {
		snprintf(name, sizeof(name), "kofi:%s", types[j]);
		KUNIT_EXPECT_EQ(test, -ENOKEY, auth_prove(test, name, mac));
		for (i = 0; i < ARRAY_SIZE(sizes); i++) {
			key = auth_key(test, types[j], name, sizes[i].len);
			KUNIT_EXPECT_EQ_MSG(test, sizes[i].err,
					    auth_prove(test, name, mac), "%zu bytes",
					    sizes[i].len);
			key_ref_put(key);
		}
		/* a key that is updated is used at once */
		key = auth_key(test, types[j], name, 32);
		KUNIT_EXPECT_EQ(test, 0, auth_prove(test, name, mac));
		KUNIT_EXPECT_MEMEQ(test, mac, auth_client, sizeof(mac));
		key_revoke(key_ref_to_ptr(key));
		KUNIT_EXPECT_EQ(test, -EKEYREVOKED, auth_prove(test, name, mac));
		key_ref_put(key);
	}
	/* a name is no prefix of another one */
	key = auth_key(test, "logon", "kofi:longer", 32);
	KUNIT_EXPECT_EQ(test, -ENOKEY, auth_prove(test, "kofi:long", mac));
	KUNIT_EXPECT_EQ(test, -ENOKEY, auth_prove(test, "kofi:longers", mac));
	key_ref_put(key);
}

static int auth_find(struct key *ring)
{
	key_ref_t key = keyring_search(make_key_ref(ring, true), &key_type_logon,
				       "kofi:linked", true);

	if (IS_ERR(key))
		return PTR_ERR(key);
	key_ref_put(key);
	return 0;
}

/* A link to the keyring, as root makes to possess the keys, keeps neither it nor its keys. */
static void auth_keyring_linked(struct kunit *test)
{
	struct auth_fixture *f = test->priv;
	struct key *outer = kblk_keyring(".kofi_blk_outer");

	KUNIT_ASSERT_FALSE(test, IS_ERR(outer));
	key_ref_put(auth_key(test, "logon", "kofi:linked", 32));
	KUNIT_EXPECT_EQ(test, 0, key_link(outer, f->ring));
	KUNIT_EXPECT_EQ(test, 0, auth_find(outer));
	/* the test's own reference, which auth_exit() puts */
	key_get(f->ring);
	kblk_keyring_free(f->ring);
	KUNIT_EXPECT_NE(test, 0, auth_find(outer));
	KUNIT_EXPECT_NE(test, 0, auth_find(f->ring));
	KUNIT_EXPECT_NE(test, 0, key_validate(f->ring));
	kblk_keyring_free(outer);
}

static void auth_script_full(struct kunit *test)
{
	struct auth_fixture *f = test->priv;
	size_t room = sizeof(f->script.bytes) - sizeof(struct kblk_agreement);
	struct kblk_hello hello = {};
	struct kblk_accept accept = {};

	kblk_script_begin(&f->script, &hello, &accept);
	while (room) {
		KUNIT_ASSERT_EQ(test, 0, kblk_script_add(&f->script, f->message,
							 KBLK_LOGIN_LEN));
		room -= KBLK_LOGIN_LEN;
	}
	KUNIT_EXPECT_EQ(test, 0, kblk_script_add(&f->script, f->message, 0));
	KUNIT_EXPECT_EQ(test, -EPROTO, kblk_script_add(&f->script, f->message, 1));
}

/* A field of @len bytes, the last one of a message of @total bytes; 0: of its own length */
static int auth_field(struct kunit *test, unsigned int id, size_t len, size_t total)
{
	static const struct kblk_rule rules[] = {
		{ KBLK_FIELD_IDENTITY, 1, KBLK_IDENTITY_LEN, .optional = true },
		{ KBLK_FIELD_NONCE, KBLK_NONCE_LEN, KBLK_NONCE_LEN, .optional = true,
		  .at = 64 },
		{ KBLK_FIELD_PROOF, KBLK_PROOF_LEN, KBLK_PROOF_LEN, .optional = true,
		  .at = 96 },
	};
	struct auth_fixture *f = test->priv;
	struct kblk_login_head *head = (void *)f->message;
	u8 to[128] = {};

	kblk_message(head, KBLK_LOGIN_PROOF);
	kblk_add_field(head, id, f->key, len);
	if (total)
		head->len = cpu_to_le16(total);
	return kblk_read_fields(head, le16_to_cpu(head->len), rules,
				ARRAY_SIZE(rules), to);
}

static void auth_field_lengths(struct kunit *test)
{
	struct auth_fixture *f = test->priv;
	const struct kblk_login_head *head = (void *)f->message;
	size_t len;

	for (len = 0; len < 2 * KBLK_IDENTITY_LEN; len++) {
		KUNIT_EXPECT_EQ(test, len && len <= KBLK_IDENTITY_LEN ? 0 : -EPROTO,
				auth_field(test, KBLK_FIELD_IDENTITY, len, 0));
		KUNIT_EXPECT_EQ(test, len == KBLK_NONCE_LEN ? 0 : -EPROTO,
				auth_field(test, KBLK_FIELD_NONCE, len, 0));
		KUNIT_EXPECT_EQ(test, len == KBLK_PROOF_LEN ? 0 : -EPROTO,
				auth_field(test, AUTH_MUST(KBLK_FIELD_PROOF), len, 0));
		KUNIT_EXPECT_EQ(test, len == KBLK_PROOF_LEN,
				!!kblk_last_proof(head, le16_to_cpu(head->len)));
	}
	/* cut off at each byte */
	for (len = 1; len < sizeof(*head) + 36; len++) {
		if (len != sizeof(*head))
			KUNIT_EXPECT_EQ(test, -EPROTO,
					auth_field(test, KBLK_FIELD_PROOF, 32, len));
		KUNIT_EXPECT_NULL(test, kblk_last_proof(head, len));
	}
	/* not the last field */
	auth_field(test, KBLK_FIELD_PROOF, 32, 0);
	kblk_add_field((void *)f->message, 1000, f->key, 0);
	KUNIT_EXPECT_NULL(test, kblk_last_proof(head, le16_to_cpu(head->len)));
}

static struct kunit_case clients_auth_cases[] = {
	KUNIT_CASE(auth_vectors),
	KUNIT_CASE(auth_each_byte),
	KUNIT_CASE(auth_key_forgotten),
	KUNIT_CASE(auth_keys),
	KUNIT_CASE(auth_keyring_linked),
	KUNIT_CASE(auth_script_full),
	KUNIT_CASE(auth_field_lengths),
	{}
};

static struct kunit_suite clients_auth_suite = {
	.name = "clients_auth",
	.init = auth_init,
	.exit = auth_exit,
	.test_cases = clients_auth_cases,
};

kunit_test_suite(clients_auth_suite);

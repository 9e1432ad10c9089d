// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Identity of this machine for targets, derived from /etc/machine-id, which must not
 * leave the machine (machine-id(5)). It equals sd_id128_get_machine_app_specific():
 * HMAC-SHA256 of an application's identifier, with the machine's identifier as the key.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blk.h"

#define ID	16	/* bytes of an identifier */
#define BLOCK	64	/* bytes that SHA-256 takes at a time */
#define HASH	32

/* Identifier of kofi blk; another one would change the name of every machine. */
static const uint8_t app[ID] = {
	0x8f, 0x3b, 0x1c, 0x5e, 0x72, 0x0d, 0x4a, 0x96,
	0xb5, 0x21, 0x6e, 0xd8, 0x9c, 0x47, 0x0a, 0xf3,
};

static const uint32_t sha_first[8] = {
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
	0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static const uint32_t sha_round[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5,
	0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
	0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
	0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
	0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
	0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5,
	0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t x, unsigned int n)
{
	return x >> n | x << (32 - n);
}

static void sha_block(uint32_t hash[8], const uint8_t block[BLOCK])
{
	uint32_t w[64], s[8], t1, t2;
	int i;

	for (i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | block[4 * i + 1] << 16 |
		       block[4 * i + 2] << 8 | block[4 * i + 3];
	for (; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] +
		       (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(s, hash, sizeof(s));
	for (i = 0; i < 64; i++) {
		t1 = s[7] + sha_round[i] + w[i] + ((s[4] & s[5]) ^ (~s[4] & s[6])) +
		     (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25));
		t2 = ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2])) +
		     (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22));
		memmove(s + 1, s, 7 * sizeof(*s));
		s[4] += t1;
		s[0] = t1 + t2;
	}
	for (i = 0; i < 8; i++)
		hash[i] += s[i];
}

/* One half of HMAC: SHA-256 of the padded key, a block, and of a text that fits into another */
static void hmac_half(uint8_t out[HASH], const uint8_t key[ID], uint8_t pad,
		      const uint8_t *text, size_t len)
{
	uint8_t block[BLOCK];
	uint32_t hash[8];
	int i;

	memcpy(hash, sha_first, sizeof(hash));
	memset(block, pad, sizeof(block));
	for (i = 0; i < ID; i++)
		block[i] ^= key[i];
	sha_block(hash, block);
	memset(block, 0, sizeof(block));
	memcpy(block, text, len);
	block[len] = 0x80;
	block[BLOCK - 2] = (BLOCK + len) * 8 >> 8;
	block[BLOCK - 1] = (BLOCK + len) * 8;
	sha_block(hash, block);
	for (i = 0; i < HASH; i++)
		out[i] = hash[i / 4] >> (24 - 8 * (i % 4));
}

/* The identifier of this machine; empty, or a word, before its first boot has ended */
static bool machine_id(uint8_t id[ID])
{
	FILE *f = fopen("/etc/machine-id", "re");
	char text[2 * ID + 2] = "";
	int i;

	if (!f)
		return false;
	if (fgets(text, sizeof(text), f))
		text[strcspn(text, "\n")] = '\0';
	fclose(f);
	if (strlen(text) != 2 * ID || strspn(text, "0123456789abcdef") != 2 * ID)
		return false;
	for (i = 0; i < ID; i++) {
		const char byte[] = { text[2 * i], text[2 * i + 1], '\0' };

		id[i] = strtoul(byte, NULL, 16);
	}
	return true;
}

/*
 * A name that this machine has also after it has crashed and booted; the module's
 * own does not last. NULL if there is none.
 */
const char *blk_host_id(char text[BLK_HOST_ID])
{
	uint8_t id[ID], hash[HASH];
	int i;

	if (!machine_id(id))
		return NULL;
	hmac_half(hash, id, 0x36, app, sizeof(app));
	hmac_half(hash, id, 0x5c, hash, sizeof(hash));
	/* the marks of a random UUID */
	hash[6] = (hash[6] & 0x0f) | 0x40;
	hash[8] = (hash[8] & 0x3f) | 0x80;
	for (i = 0; i < ID; i++)
		sprintf(text + 2 * i, "%02x", hash[i]);
	return text;
}

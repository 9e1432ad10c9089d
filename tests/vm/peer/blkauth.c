// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "blkauth.h"

/* ------------------------------------------------------------------- SHA-256 */

static uint32_t turn(uint32_t x, unsigned int n)
{
	return x >> n | x << (32 - n);
}

/*
 * The first 32 bits behind the point of the root of a prime: square roots for the state,
 * cubic roots for the rounds. Integers suffice: root^2 or root^3 is compared with the prime
 * shifted.
 */
static uint32_t root(unsigned int prime, bool cubic)
{
	unsigned __int128 low = 0, high = (unsigned __int128)1 << 37, middle, power;
	const unsigned __int128 want = (unsigned __int128)prime << (cubic ? 96 : 64);

	/* high is above 2^32 times the root of 311, the last prime */
	while (high - low > 1) {
		middle = (low + high) / 2;
		power = middle * middle;
		if (cubic)
			power *= middle;
		if (power <= want)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void constants(uint32_t state[8], uint32_t rounds[64])
{
	unsigned int n, prime = 1, i;

	for (n = 0; n < 64; n++) {
		do {
			prime++;
			for (i = 2; i < prime && prime % i;)
				i++;
		} while (i < prime);
		rounds[n] = root(prime, true);
		if (n < 8)
			state[n] = root(prime, false);
	}
}

static void block(uint32_t h[8], const uint32_t k[64], const unsigned char *p)
{
	uint32_t w[64], v[8], s, t;
	unsigned int i;

	for (i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | p[4 * i + 1] << 16 |
		       p[4 * i + 2] << 8 | p[4 * i + 3];
	for (; i < 64; i++) {
		s = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3;
		t = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;
		w[i] = w[i - 16] + s + w[i - 7] + t;
	}
	memcpy(v, h, sizeof(v));
	for (i = 0; i < 64; i++) {
		s = v[7] + (turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25)) +
		    ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
		t = (turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22)) +
		    ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
		memmove(v + 1, v, 7 * sizeof(*v));
		v[4] += s;
		v[0] = s + t;
	}
	for (i = 0; i < 8; i++)
		h[i] += v[i];
}

void sha256(const void *data, size_t len, unsigned char sum[32])
{
	static uint32_t first[8], k[64];
	unsigned char end[128] = { 0 };
	const unsigned char *p = data;
	uint64_t bits = (uint64_t)len * 8;
	size_t left, ends;
	uint32_t h[8];
	unsigned int i;

	if (!k[0])
		constants(first, k);
	memcpy(h, first, sizeof(h));
	for (left = len; left >= 64; left -= 64, p += 64)
		block(h, k, p);
	memcpy(end, p, left);
	end[left] = 0x80;
	ends = left < 56 ? 64 : 128;
	for (i = 0; i < 8; i++)
		end[ends - 1 - i] = bits >> 8 * i;
	block(h, k, end);
	if (ends == 128)
		block(h, k, end + 64);
	for (i = 0; i < 32; i++)
		sum[i] = h[i / 4] >> (24 - i % 4 * 8);
}

/* ------------------------------------------------------------------- proofs */

void read_key(struct auth_key *key, const char *file)
{
	FILE *f = fopen(file, "r");

	if (!f)
		die("cannot read %s", file);
	key->len = fread(key->bytes, 1, sizeof(key->bytes), f);
	fclose(f);
	if (!key->len)
		die("no key in %s", file);
}

void script_begin(struct script *s, const struct kblk_hello *hello,
		  const struct kblk_accept *accept)
{
	struct kblk_agreement a = { .hello = *hello, .accept = *accept };

	memcpy(a.label, KBLK_LABEL, sizeof(a.label));
	memcpy(s->bytes, &a, sizeof(a));
	s->len = sizeof(a);
}

void script_add(struct script *s, const void *bytes, size_t len)
{
	if (len > sizeof(s->bytes) - s->len)
		die("the transcript is too long");
	memcpy(s->bytes + s->len, bytes, len);
	s->len += len;
}

void script_mac(const struct script *s, const struct auth_key *key, unsigned int role,
		unsigned char mac[KBLK_PROOF_LEN])
{
	static unsigned char inner[64 + sizeof(s->bytes)];
	unsigned char outer[64 + 32], pad[64] = { 0 };
	uint32_t value = htole32(role);
	size_t i;

	if (key->len > sizeof(pad))
		sha256(key->bytes, key->len, pad);
	else
		memcpy(pad, key->bytes, key->len);
	for (i = 0; i < sizeof(pad); i++) {
		inner[i] = pad[i] ^ 0x36;
		outer[i] = pad[i] ^ 0x5c;
	}
	memcpy(inner + 64, s->bytes, s->len);
	memcpy(inner + 64 + offsetof(struct kblk_agreement, role), &value, sizeof(value));
	sha256(inner, 64 + s->len, outer + 64);
	sha256(outer, sizeof(outer), mac);
}

/* End a message with a proof, and add the message to the transcript; returns its bytes. */
size_t add_proof(struct script *s, const struct auth_key *key, unsigned int role,
		 void *message)
{
	unsigned char mac[KBLK_PROOF_LEN] = { 0 };
	size_t len = add_field(message, KBLK_FIELD_PROOF | KBLK_FIELD_MUST, mac,
			       sizeof(mac));

	script_add(s, message, len - sizeof(mac));
	script_mac(s, key, role, mac);
	memcpy((unsigned char *)message + len - sizeof(mac), mac, sizeof(mac));
	script_add(s, mac, sizeof(mac));
	return len;
}

/* The sum of "abc", which the standard has */
void self_test(void)
{
	static const unsigned char want[] = { 0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea };
	unsigned char sum[32];

	sha256("abc", 3, sum);
	if (memcmp(sum, want, sizeof(want)))
		die("this program cannot compute SHA-256");
}

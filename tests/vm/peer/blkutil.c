// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_endpoint.h>
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

/* Flip bits until the bytes differ. */
void spoil(void *bytes, size_t len)
{
	unsigned char was[KBLK_LOGIN_LEN];

	memcpy(was, bytes, len);
	do
		flip(bytes, len);
	while (!memcmp(was, bytes, len));
}

void randomize(unsigned char *bytes, size_t len)
{
	while (len--)
		bytes[len] = random64();
}

/* A length other than @right, often close to it */
size_t odd_size(size_t right)
{
	const size_t sizes[] = { 0, 1, right - 1, right + 1, 2 * right, below(200) };
	size_t n;

	do
		n = sizes[below(sizeof(sizes) / sizeof(*sizes))];
	while (n == right);
	return n;
}

/* Verbs keeps what it asks for here, tcp asks for nothing. */
struct fi_info *discover(const char *provider, const char *node, const char *port,
			 uint64_t flags)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	if (!hints)
		die("no memory");
	/* a region that has ended would go on in the cache */
	setenv("FI_MR_CACHE_MAX_COUNT", "0", 1);
	hints->caps = FI_MSG | FI_RMA;
	hints->mode = FI_RX_CQ_DATA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
				      FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup(provider);
	check(fi_getinfo(FI_VERSION(1, 17), node, port, flags, hints, &info),
	      "fi_getinfo");
	fi_freeinfo(hints);
	return info;
}

/* For what is sent, received, read and written from here */
struct fid_mr *local_memory(struct fid_domain *domain, void *p, size_t len)
{
	struct fid_mr *mr;

	check(fi_mr_reg(domain, p, len, FI_SEND | FI_RECV | FI_READ | FI_WRITE,
			0, 0, 0, &mr, NULL), "fi_mr_reg");
	return mr;
}

/* Without the first and the last inversion */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t len)
{
	static uint32_t table[256];
	const unsigned char *p = bytes;
	unsigned int i, j;

	for (i = 0; !table[255] && i < 256; i++) {
		uint32_t c = i;

		for (j = 0; j < 8; j++)
			c = c >> 1 ^ (c & 1 ? 0x82f63b78 : 0);
		table[i] = c;
	}
	while (len--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
	return crc;
}

/* @data and the digests are as in the messages. */
uint32_t cmd_digest(const struct kblk_cmd *c, uint32_t data)
{
	return htole32(~crc32c(crc32c(~0U, c, sizeof(*c)), &data, sizeof(data)));
}

/* Of an answer, before the data of a read */
uint32_t answer_crc(uint32_t command, uint32_t value)
{
	return crc32c(crc32c(~0U, &command, sizeof(command)), &value, sizeof(value));
}

/* Login messages; each returns the bytes so far. */
size_t begin_login(void *message, unsigned int type)
{
	struct kblk_login_head *head = message;

	*head = (struct kblk_login_head) {
		.type = htole16(type), .len = htole16(sizeof(*head)),
	};
	return sizeof(*head);
}

size_t add_field(void *message, unsigned int id, const void *value, size_t len)
{
	struct kblk_field field = { .id = htole16(id), .len = htole16(len) };
	struct kblk_login_head *head = message;
	size_t at = le16toh(head->len), room = (len + 3) / 4 * 4;
	unsigned char *to = (unsigned char *)message + at;

	if (at + sizeof(field) + room > KBLK_LOGIN_LEN)
		die("a login message is too long");
	memset(to, 0, sizeof(field) + room);
	memcpy(to, &field, sizeof(field));
	memcpy(to + sizeof(field), value, len);
	head->len = htole16(at + sizeof(field) + room);
	return le16toh(head->len);
}

/* The bytes of a field's value, or 0 if there is none */
size_t find_field(const void *message, size_t len, unsigned int id, void *value,
		  size_t room)
{
	const unsigned char *m = message;
	size_t at = sizeof(struct kblk_login_head), n;
	const struct kblk_login_head *head = message;
	struct kblk_field field;

	if (len < sizeof(*head) || le16toh(head->len) != len)
		die("a login message of %zu bytes that is none", len);
	while (at < len) {
		if (len - at < sizeof(field))
			die("a field that is cut off");
		memcpy(&field, m + at, sizeof(field));
		at += sizeof(field);
		n = le16toh(field.len);
		if (n > len - at)
			die("a field of %zu bytes", n);
		if ((le16toh(field.id) & ~KBLK_FIELD_MUST) == id) {
			memcpy(value, m + at, n < room ? n : room);
			return n;
		}
		at += (n + 3) / 4 * 4;
	}
	return 0;
}

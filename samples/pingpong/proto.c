// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The protocol of fi_pingpong: items of the control connection, message sizes,
 * and message contents.
 *
 * Data of a peer is checked here before it is used: lengths first, then
 * contents. A violation is -EPROTO and fails the run.
 */
#include <linux/errno.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <kunit/visibility.h>

#include <linux/kofi/fabric.h>

#include "proto.h"

/* Length of an address of @format; 0 for an unknown format */
static size_t pp_addr_len(u32 format)
{
	switch (format) {
	case FI_SOCKADDR_IN:
		return sizeof(struct sockaddr_in);
	case FI_SOCKADDR_IN6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

static sa_family_t pp_addr_family(u32 format)
{
	return format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
}

/**
 * pp_addr_head_make - make the two items before an address
 * @head: set to the items
 * @addr: the address
 *
 * Return: length of the address in bytes, or -EAFNOSUPPORT if it is no IP
 * address.
 */
int pp_addr_head_make(struct pp_addr_head *head,
		      const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET)
		head->format = FI_SOCKADDR_IN;
	else if (addr->ss_family == AF_INET6)
		head->format = FI_SOCKADDR_IN6;
	else
		return -EAFNOSUPPORT;
	head->len = cpu_to_be32(pp_addr_len(head->format));
	return pp_addr_len(head->format);
}
EXPORT_SYMBOL_IF_KUNIT(pp_addr_head_make);

/**
 * pp_addr_head_check - check the two items before a peer's address
 * @head: the items
 *
 * Return: number of bytes that follow, at most sizeof(struct sockaddr_in6);
 * -EPROTO if length and format do not fit an IP address.
 */
int pp_addr_head_check(const struct pp_addr_head *head)
{
	size_t len = pp_addr_len(head->format);

	if (!len || be32_to_cpu(head->len) != len)
		return -EPROTO;
	return len;
}
EXPORT_SYMBOL_IF_KUNIT(pp_addr_head_check);

/**
 * pp_addr_check - check a peer's address
 * @head: items accepted by pp_addr_head_check()
 * @addr: the address
 *
 * Return: 0, or -EPROTO if it has another format than announced, or no port.
 */
int pp_addr_check(const struct pp_addr_head *head,
		  const struct sockaddr_storage *addr)
{
	/* sockaddr_in and sockaddr_in6 have the port at the same offset */
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;

	if (addr->ss_family != pp_addr_family(head->format) || !in->sin_port)
		return -EPROTO;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(pp_addr_check);

/**
 * pp_count_make - make the item with the number of received messages
 * @item: set to the item
 * @count: the number, with at most ten digits
 */
void pp_count_make(char item[PP_COUNT_LEN], u64 count)
{
	char text[24];
	int len = scnprintf(text, sizeof(text), "%llu", count);

	memset(item, 0, PP_COUNT_LEN);
	memcpy(item, text, min(len, PP_COUNT_LEN));
}
EXPORT_SYMBOL_IF_KUNIT(pp_count_make);

/**
 * pp_count_parse - parse the item with the number of received messages
 * @item: item of the peer
 * @count: set to the number
 *
 * Return: 0, or -EPROTO unless the item is digits followed by NUL bytes only.
 */
int pp_count_parse(const char item[PP_COUNT_LEN], u64 *count)
{
	u64 n = 0;
	int i;

	for (i = 0; i < PP_COUNT_LEN && item[i]; i++) {
		if (item[i] < '0' || item[i] > '9')
			return -EPROTO;
		n = n * 10 + item[i] - '0';
	}
	if (!i || memchr_inv(item + i, 0, PP_COUNT_LEN - i))
		return -EPROTO;
	*count = n;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(pp_count_parse);

/**
 * pp_sizes - list the message sizes of a run without -S
 * @all: powers of two and the middle between each two, instead of six sizes
 * @max: largest size in bytes
 * @sizes: set to the sizes, in ascending order
 *
 * Return: number of sizes.
 */
int pp_sizes(bool all, size_t max, size_t sizes[PP_SIZES_MAX])
{
	static const size_t usual[] = { 64, 256, 1024, 4096, 65536, 1048576 };
	size_t size;
	int i, n = 0;

	max = min_t(size_t, max, PP_DATA_MAX);
	if (!all) {
		for (i = 0; i < ARRAY_SIZE(usual) && usual[i] <= max; i++)
			sizes[n++] = usual[i];
		return n;
	}
	/* 0 and 1 replace the first pair */
	for (i = 0; i < PP_SIZES_MAX; i++) {
		size = i < 2 ? i : (size_t)(2 + i % 2) << (i / 2 - 1);
		if (size > max)
			break;
		sizes[n++] = size;
	}
	return n;
}
EXPORT_SYMBOL_IF_KUNIT(pp_sizes);

/**
 * pp_pattern_start - find the offset of a message in the pattern
 * @seq: number of the message among all messages of its sender, from 0
 *
 * Return: an offset below PP_PATTERN_LEN.
 */
unsigned int pp_pattern_start(u64 seq)
{
	/* fi_pingpong multiplies in 32 bits */
	return ((u32)seq * 7u) % PP_PATTERN_LEN;
}
EXPORT_SYMBOL_IF_KUNIT(pp_pattern_start);

/**
 * pp_pattern_fill - fill memory with repetitions of the pattern
 * @buf: the memory
 * @len: length in bytes
 */
void pp_pattern_fill(char *buf, size_t len)
{
	static const char alphabet[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t n, done = min_t(size_t, len, PP_PATTERN_LEN);

	BUILD_BUG_ON(sizeof(alphabet) - 1 != PP_PATTERN_LEN);
	memcpy(buf, alphabet, done);
	/* @done is a multiple of the pattern's length, except after the last copy */
	for (; done < len; done += n) {
		n = min(done, len - done);
		memcpy(buf + done, buf, n);
	}
}
EXPORT_SYMBOL_IF_KUNIT(pp_pattern_fill);

/**
 * pp_pattern_differs - compare a message with the expected contents
 * @buf: the message
 * @pattern: the expected contents
 * @len: length of both in bytes
 *
 * Return: offset of the first byte that differs, or @len if none does.
 */
size_t pp_pattern_differs(const char *buf, const char *pattern, size_t len)
{
	size_t i;

	if (!memcmp(buf, pattern, len))
		return len;
	for (i = 0; i < len && buf[i] == pattern[i]; i++)
		;
	return i;
}
EXPORT_SYMBOL_IF_KUNIT(pp_pattern_differs);

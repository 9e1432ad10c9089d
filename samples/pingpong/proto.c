// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The words and numbers of fi_pingpong: how an item of the control connection
 * is made and what is accepted from a peer, which sizes are run, what a
 * message contains.
 *
 * Bytes of a peer are checked here, before anybody uses them: lengths first,
 * then contents. A wrong one is -EPROTO and ends the run.
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

/* The length of an address of this format, 0 for one that is not spoken. */
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
 * pp_addr_head_make - the two items before an address
 * @head: where they go
 * @addr: the address
 *
 * Return: length of the address in bytes, -EAFNOSUPPORT if it is no IP address.
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
 * pp_addr_head_check - the two items before an address, as they came
 * @head: the items
 *
 * Return: number of bytes that follow, at most sizeof(struct sockaddr_in6);
 * -EPROTO if length and format are not those of an IP address.
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
 * pp_addr_check - an address, as it came
 * @head: what pp_addr_head_check() accepted
 * @addr: the address
 *
 * Return: 0, -EPROTO if it is not of the format announced or has no port.
 */
int pp_addr_check(const struct pp_addr_head *head,
		  const struct sockaddr_storage *addr)
{
	/* both kinds have the port at the same place */
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;

	if (addr->ss_family != pp_addr_family(head->format) || !in->sin_port)
		return -EPROTO;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(pp_addr_check);

/**
 * pp_count_make - the item that tells how many messages have arrived
 * @item: where it goes
 * @count: the number, of at most ten digits
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
 * pp_count_parse - what such an item says
 * @item: as it came
 * @count: where the number goes
 *
 * Return: 0, -EPROTO unless it is digits and then nothing but NUL.
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
 * pp_sizes - message sizes of a run that was not given one
 * @all: powers of two and what lies half way to the next, instead of six
 * @max: largest size wanted, in bytes
 * @sizes: where they go, ascending
 *
 * Return: their number.
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
	/* 0 and 1 take the place of the first pair */
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
 * pp_pattern_start - where in the pattern a message starts
 * @seq: number of the message among those its sender has sent, from 0
 *
 * Return: an offset below PP_PATTERN_LEN.
 */
unsigned int pp_pattern_start(u64 seq)
{
	/* fi_pingpong multiplies 32 bits */
	return ((u32)seq * 7u) % PP_PATTERN_LEN;
}
EXPORT_SYMBOL_IF_KUNIT(pp_pattern_start);

/**
 * pp_pattern_fill - the pattern from its start, as often as it fits
 * @buf: where it goes
 * @len: bytes
 */
void pp_pattern_fill(char *buf, size_t len)
{
	static const char alphabet[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t n, done = min_t(size_t, len, PP_PATTERN_LEN);

	BUILD_BUG_ON(sizeof(alphabet) - 1 != PP_PATTERN_LEN);
	memcpy(buf, alphabet, done);
	/* what is there is a whole number of patterns, but for the last copy */
	for (; done < len; done += n) {
		n = min(done, len - done);
		memcpy(buf + done, buf, n);
	}
}
EXPORT_SYMBOL_IF_KUNIT(pp_pattern_fill);

/**
 * pp_pattern_differs - compare a message with what it should be
 * @buf: the message
 * @pattern: what it should be
 * @len: bytes of both
 *
 * Return: offset of the first byte that differs, @len if none does.
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

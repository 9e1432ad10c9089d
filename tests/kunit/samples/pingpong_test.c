// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What fi_pingpong says and sends (samples/pingpong/proto.c): control items
 * against bytes captured from the program, sizes, and contents.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/string.h>

#include <linux/kofi/fabric.h>

#include "../../../samples/pingpong/proto.h"
#include "../kunit.h"

/* fi_pingpong -e msg -I 1 -S 64: what the server, and the client, sent */
static const u8 pp_server_bytes[] = {
	0x00, 0x00, 0x00, 0x10, 0x02, 0x00, 0x00, 0x00,
	0x02, 0x00, 0xa2, 0xa1, 0x7f, 0x00, 0x00, 0x01,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x61, 0x00,
	0x63, 0x6e, 0x74, 0x20, 0x6f, 0x6b, 0x00,
};

static const u8 pp_client_bytes[] = {
	0x71, 0x00,
	0x31, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};

/* Format and family are in the order of the machine, here a little-endian one. */
static void pp_vector_server_test(struct kunit *test)
{
	struct sockaddr_storage addr = {};
	struct sockaddr_in *in = (struct sockaddr_in *)&addr;
	u8 bytes[sizeof(pp_server_bytes)], *to = bytes;
	struct pp_addr_head head;

	if (IS_ENABLED(CONFIG_CPU_BIG_ENDIAN))
		kunit_skip(test, "captured on a little-endian machine");
	in->sin_family = AF_INET;
	in->sin_port = htons(41633);
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	KUNIT_ASSERT_EQ(test, pp_addr_head_make(&head, &addr), sizeof(*in));

	to = memcpy(to, &head, sizeof(head)) + sizeof(head);
	to = memcpy(to, in, sizeof(*in)) + sizeof(*in);
	to = memcpy(to, PP_SYNC_ANSWER, sizeof(PP_SYNC_ANSWER)) +
	     sizeof(PP_SYNC_ANSWER);
	to = memcpy(to, PP_COUNT_OK, sizeof(PP_COUNT_OK)) + sizeof(PP_COUNT_OK);
	KUNIT_ASSERT_EQ(test, to - bytes, sizeof(bytes));
	KUNIT_EXPECT_MEMEQ(test, bytes, pp_server_bytes, sizeof(bytes));
}

static void pp_vector_client_test(struct kunit *test)
{
	u8 bytes[sizeof(pp_client_bytes)];

	memcpy(bytes, PP_SYNC_ASK, sizeof(PP_SYNC_ASK));
	pp_count_make(bytes + sizeof(PP_SYNC_ASK), 1);
	KUNIT_EXPECT_MEMEQ(test, bytes, pp_client_bytes, sizeof(bytes));
}

static void pp_vector_parse_test(struct kunit *test)
{
	const u8 *from = pp_server_bytes;
	struct sockaddr_storage addr = {};
	struct pp_addr_head head;
	u64 count;
	int len;

	if (IS_ENABLED(CONFIG_CPU_BIG_ENDIAN))
		kunit_skip(test, "captured on a little-endian machine");
	memcpy(&head, from, sizeof(head));
	len = pp_addr_head_check(&head);
	KUNIT_ASSERT_EQ(test, len, sizeof(struct sockaddr_in));
	memcpy(&addr, from + sizeof(head), len);
	KUNIT_EXPECT_EQ(test, pp_addr_check(&head, &addr), 0);

	from = pp_client_bytes + sizeof(PP_SYNC_ASK);
	KUNIT_ASSERT_EQ(test, pp_count_parse(from, &count), 0);
	KUNIT_EXPECT_EQ(test, count, 1);
}

struct pp_head_case {
	const char	*name;
	u32		len;
	u32		format;
	int		ret;
};

static const struct pp_head_case pp_head_cases[] = {
	{ "ipv4", 16, FI_SOCKADDR_IN, sizeof(struct sockaddr_in) },
	{ "ipv6", 28, FI_SOCKADDR_IN6, sizeof(struct sockaddr_in6) },
	{ "no length", 0, FI_SOCKADDR_IN, -EPROTO },
	{ "one byte less", 15, FI_SOCKADDR_IN, -EPROTO },
	{ "one byte more", 17, FI_SOCKADDR_IN, -EPROTO },
	{ "length of the other", 28, FI_SOCKADDR_IN, -EPROTO },
	{ "length of ipv4", 16, FI_SOCKADDR_IN6, -EPROTO },
	{ "length in little endian", 0x10000000, FI_SOCKADDR_IN, -EPROTO },
	{ "largest length", U32_MAX, FI_SOCKADDR_IN6, -EPROTO },
	{ "format unspecified", 16, FI_FORMAT_UNSPEC, -EPROTO },
	{ "format in big endian", 16, FI_SOCKADDR_IN << 24, -EPROTO },
	{ "format of strings", 16, FI_ADDR_STR, -EPROTO },
	{ "largest format", 28, U32_MAX, -EPROTO },
};

KUNIT_ARRAY_PARAM_DESC(pp_head, pp_head_cases, name);

static void pp_head_test(struct kunit *test)
{
	const struct pp_head_case *c = test->param_value;
	struct pp_addr_head head = {
		.len = cpu_to_be32(c->len),
		.format = c->format,
	};

	KUNIT_EXPECT_EQ(test, pp_addr_head_check(&head), c->ret);
}

struct pp_addr_case {
	const char	*name;
	u32		format;
	sa_family_t	family;
	u16		port;
	int		ret;
};

static const struct pp_addr_case pp_addr_cases[] = {
	{ "ipv4", FI_SOCKADDR_IN, AF_INET, 1, 0 },
	{ "ipv6", FI_SOCKADDR_IN6, AF_INET6, 65535, 0 },
	{ "ipv6 announced as ipv4", FI_SOCKADDR_IN, AF_INET6, 1, -EPROTO },
	{ "ipv4 announced as ipv6", FI_SOCKADDR_IN6, AF_INET, 1, -EPROTO },
	{ "no family", FI_SOCKADDR_IN, AF_UNSPEC, 1, -EPROTO },
	{ "a unix socket", FI_SOCKADDR_IN, AF_UNIX, 1, -EPROTO },
	{ "no port", FI_SOCKADDR_IN, AF_INET, 0, -EPROTO },
	{ "ipv6 without port", FI_SOCKADDR_IN6, AF_INET6, 0, -EPROTO },
};

KUNIT_ARRAY_PARAM_DESC(pp_addr, pp_addr_cases, name);

static void pp_addr_test(struct kunit *test)
{
	const struct pp_addr_case *c = test->param_value;
	const struct pp_addr_head head = { .format = c->format };
	struct sockaddr_storage addr = { .ss_family = c->family };

	((struct sockaddr_in *)&addr)->sin_port = htons(c->port);
	KUNIT_EXPECT_EQ(test, pp_addr_check(&head, &addr), c->ret);
}

static void pp_head_make_test(struct kunit *test)
{
	struct sockaddr_storage addr = { .ss_family = AF_INET6 };
	struct pp_addr_head head;

	KUNIT_EXPECT_EQ(test, pp_addr_head_make(&head, &addr),
			sizeof(struct sockaddr_in6));
	KUNIT_EXPECT_EQ(test, pp_addr_head_check(&head),
			sizeof(struct sockaddr_in6));
	addr.ss_family = AF_UNIX;
	KUNIT_EXPECT_EQ(test, pp_addr_head_make(&head, &addr), -EAFNOSUPPORT);
}

struct pp_count_case {
	const char	*name;
	char		item[PP_COUNT_LEN + 1];
	int		ret;
	u64		count;
};

static const struct pp_count_case pp_count_cases[] = {
	{ "0", "0", 0, 0 },
	{ "2000", "2000", 0, 2000 },
	{ "all ten digits", "9999999999", 0, 9999999999ULL },
	{ "leading zeros", "0000000007", 0, 7 },
	{ "empty", "", -EPROTO },
	{ "a sign", "-1", -EPROTO },
	{ "a blank in front", " 1", -EPROTO },
	{ "a letter", "12a", -EPROTO },
	{ "hexadecimal", "0x10", -EPROTO },
	{ "something behind the end", "1\0002", -EPROTO },
	{ "something at the very end", "1\0\0\0\0\0\0\0\0x", -EPROTO },
	{ "high bytes", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", -EPROTO },
};

KUNIT_ARRAY_PARAM_DESC(pp_count, pp_count_cases, name);

static void pp_count_test(struct kunit *test)
{
	const struct pp_count_case *c = test->param_value;
	u64 count = 42;

	KUNIT_EXPECT_EQ(test, pp_count_parse(c->item, &count), c->ret);
	KUNIT_EXPECT_EQ(test, count, c->ret ? 42 : c->count);
}

static void pp_count_round_test(struct kunit *test)
{
	static const u64 counts[] = { 0, 1, 10, 4294967295ULL, 9999999999ULL };
	char item[PP_COUNT_LEN];
	u64 count;
	int i;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		pp_count_make(item, counts[i]);
		KUNIT_EXPECT_EQ(test, pp_count_parse(item, &count), 0);
		KUNIT_EXPECT_EQ(test, count, counts[i]);
	}
}

struct pp_sizes_case {
	const char	*name;
	bool		all;
	size_t		max;
	int		n;
	size_t		first;
	size_t		last;
};

static const struct pp_sizes_case pp_sizes_cases[] = {
	{ "usual", false, SIZE_MAX, 6, 64, 1 << 20 },
	{ "usual up to exactly one of them", false, 4096, 4, 64, 4096 },
	{ "usual up to less than the first", false, 63, 0 },
	{ "all", true, SIZE_MAX, PP_SIZES_MAX, 0, 6 << 20 },
	{ "all up to 0", true, 0, 1, 0, 0 },
	{ "all up to 1", true, 1, 2, 0, 1 },
	{ "all up to 2", true, 2, 3, 0, 2 },
	{ "all up to 7", true, 7, 6, 0, 6 },
	{ "all up to 3 MiB", true, 3 << 20, PP_SIZES_MAX - 2, 0, 3 << 20 },
};

KUNIT_ARRAY_PARAM_DESC(pp_sizes, pp_sizes_cases, name);

static void pp_sizes_test(struct kunit *test)
{
	const struct pp_sizes_case *c = test->param_value;
	size_t sizes[PP_SIZES_MAX];
	int i, n;

	n = pp_sizes(c->all, c->max, sizes);
	KUNIT_ASSERT_EQ(test, n, c->n);
	if (!n)
		return;
	KUNIT_EXPECT_EQ(test, sizes[0], c->first);
	KUNIT_EXPECT_EQ(test, sizes[n - 1], c->last);
	for (i = 1; i < n; i++)
		KUNIT_EXPECT_LT(test, sizes[i - 1], sizes[i]);
}

/* the beginning and some of the middle, as fi_pingpong -S all prints them */
static void pp_sizes_all_test(struct kunit *test)
{
	static const size_t first[] = {
		0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	};
	size_t sizes[PP_SIZES_MAX];
	int i;

	pp_sizes(true, SIZE_MAX, sizes);
	for (i = 0; i < ARRAY_SIZE(first); i++)
		KUNIT_EXPECT_EQ(test, sizes[i], first[i]);
	KUNIT_EXPECT_EQ(test, sizes[40], 1 << 20);
	KUNIT_EXPECT_EQ(test, sizes[41], 3 << 19);
}

/* first bytes of messages as they were seen between two fi_pingpong -c */
static void pp_pattern_test(struct kunit *test)
{
	static const char * const starts[] = {
		"0123456789abc", "789abcdefghij", "efghijklmnopq",
		"lmnopqrstuvwx", "stuvwxyzABCDE", "zABCDEFGHIJKL",
		"GHIJKLMNOPQRS", "NOPQRSTUVWXYZ", "UVWXYZ0123456",
	};
	char pattern[2 * PP_PATTERN_LEN];
	const char *at;
	int i;

	pp_pattern_fill(pattern, sizeof(pattern));
	for (i = 0; i < ARRAY_SIZE(starts); i++) {
		at = pattern + pp_pattern_start(i);
		KUNIT_EXPECT_MEMEQ(test, at, starts[i], strlen(starts[i]));
	}
	KUNIT_EXPECT_EQ(test, pp_pattern_start(9), 1);
	KUNIT_EXPECT_EQ(test, pp_pattern_start(62), 0);
	/* the program counts in 32 bits */
	KUNIT_EXPECT_EQ(test, pp_pattern_start(1ULL << 32), 0);
	KUNIT_EXPECT_EQ(test, pp_pattern_start(613566757), 3);
}

static void pp_pattern_fill_test(struct kunit *test)
{
	static const size_t lens[] = { 0, 1, 61, 62, 63, 124, 125, 1000, 4096 };
	char *buf = kunit_kmalloc(test, 4097, GFP_KERNEL);
	size_t i, j;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		memset(buf, '*', 4097);
		pp_pattern_fill(buf, lens[i]);
		for (j = PP_PATTERN_LEN; j < lens[i]; j++)
			KUNIT_ASSERT_EQ(test, buf[j], buf[j - PP_PATTERN_LEN]);
		KUNIT_EXPECT_EQ(test, buf[lens[i]], '*');
	}
}

static void pp_pattern_differs_test(struct kunit *test)
{
	char a[100], b[100];

	pp_pattern_fill(a, sizeof(a));
	pp_pattern_fill(b, sizeof(b));
	KUNIT_EXPECT_EQ(test, pp_pattern_differs(a, b, sizeof(a)), sizeof(a));
	KUNIT_EXPECT_EQ(test, pp_pattern_differs(a, b, 0), 0);
	a[99] ^= 1;
	KUNIT_EXPECT_EQ(test, pp_pattern_differs(a, b, sizeof(a)), 99);
	KUNIT_EXPECT_EQ(test, pp_pattern_differs(a, b, 99), 99);
	a[0] ^= 1;
	KUNIT_EXPECT_EQ(test, pp_pattern_differs(a, b, sizeof(a)), 0);
}

static struct kunit_case pp_proto_cases[] = {
	KUNIT_CASE(pp_vector_server_test),
	KUNIT_CASE(pp_vector_client_test),
	KUNIT_CASE(pp_vector_parse_test),
	KUNIT_CASE_PARAM(pp_head_test, pp_head_gen_params),
	KUNIT_CASE_PARAM(pp_addr_test, pp_addr_gen_params),
	KUNIT_CASE(pp_head_make_test),
	KUNIT_CASE_PARAM(pp_count_test, pp_count_gen_params),
	KUNIT_CASE(pp_count_round_test),
	KUNIT_CASE_PARAM(pp_sizes_test, pp_sizes_gen_params),
	KUNIT_CASE(pp_sizes_all_test),
	KUNIT_CASE(pp_pattern_test),
	KUNIT_CASE(pp_pattern_fill_test),
	KUNIT_CASE(pp_pattern_differs_test),
	{}
};

static struct kunit_suite pp_proto_suite = {
	.name = "samples_pingpong",
	.test_cases = pp_proto_cases,
};

kunit_test_suite(pp_proto_suite);

MODULE_DESCRIPTION("KUnit tests of kofi_pingpong");
MODULE_LICENSE("Dual BSD/GPL");

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Digests of commands, answers and data (clients/blk/digest.h), and the words of the
 * attributes for them.
 *
 * The expected digests come from this program of Python, which shares no code with the kernel:
 *
 *	import struct
 *	def digest(b, c=0xffffffff):
 *	    for x in b:
 *	        c ^= x
 *	        for _ in range(8): c = c >> 1 ^ (0x82f63b78 if c & 1 else 0)
 *	    return c ^ 0xffffffff
 *	data = bytes(i * 7 & 255 for i in range(3 * 4096))
 *	d = digest(data)
 *	c = digest(struct.pack("<BBHB3xQQQI4x", 1, 1, 63, 200, 0x123456789,
 *	    0xfedcba9876543210, 0x1122334455667788, 12288) + struct.pack("<I", d))
 *	a = struct.pack("<II", c, 63 | 200 << 16)
 *	print(*map(hex, (digest(b"123456789"), d, c, digest(a), digest(a + data))))
 */
#include <linux/slab.h>

#include "../../../clients/blk/digest.h"
#include "../kunit.h"

#define DIGEST_BYTES	(3 * 4096)

static const struct kblk_cmd digest_cmd = {
	.op = KBLK_OP_WRITE, .flags = KBLK_CMD_FUA, .tag = cpu_to_le16(63), .gen = 200,
	.sector = cpu_to_le64(0x123456789), .addr = cpu_to_le64(0xfedcba9876543210),
	.key = cpu_to_le64(0x1122334455667788), .len = cpu_to_le32(DIGEST_BYTES),
};

#define DIGEST_VALUE	(63 | 200 << 16)
#define DIGEST_DATA	0xffd98a9a
#define DIGEST_COMMAND	0xd5a61530
#define DIGEST_ANSWER	0xe2237515
#define DIGEST_READ	0x9565875e

static u8 *digest_bytes(struct kunit *test)
{
	u8 *bytes = kunit_kzalloc(test, DIGEST_BYTES, GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	for (i = 0; i < DIGEST_BYTES; i++)
		bytes[i] = i * 7;
	return bytes;
}

static u32 digest_of(const void *bytes, size_t len)
{
	struct bio_vec bv;

	bvec_set_virt(&bv, (void *)bytes, len);
	return le32_to_cpu(kblk_crc_end(kblk_crc_bvec(KBLK_CRC_START, &bv, 1)));
}

static void digest_vectors(struct kunit *test)
{
	const __le32 command = cpu_to_le32(DIGEST_COMMAND);
	const __le32 value = cpu_to_le32(DIGEST_VALUE);
	u8 *bytes = digest_bytes(test);
	struct bio_vec bv;
	u32 crc;

	memcpy(bytes, "123456789", 9);
	KUNIT_EXPECT_EQ(test, 0xe3069283, digest_of(bytes, 9));
	bytes = digest_bytes(test);
	KUNIT_EXPECT_EQ(test, DIGEST_DATA, digest_of(bytes, DIGEST_BYTES));
	KUNIT_EXPECT_EQ(test, DIGEST_COMMAND,
			le32_to_cpu(kblk_cmd_digest(&digest_cmd,
						    cpu_to_le32(DIGEST_DATA))));
	crc = kblk_answer_crc(command, value);
	KUNIT_EXPECT_EQ(test, DIGEST_ANSWER, le32_to_cpu(kblk_crc_end(crc)));
	bvec_set_virt(&bv, bytes, DIGEST_BYTES);
	crc = kblk_crc_bvec(crc, &bv, 1);
	KUNIT_EXPECT_EQ(test, DIGEST_READ, le32_to_cpu(kblk_crc_end(crc)));
}

/* The segments of the bytes make no difference. */
static void digest_segments(struct kunit *test)
{
	static const unsigned int sizes[] = { 1, 511, 512, 3072, 4096, 4096 };
	struct bio_vec bv[ARRAY_SIZE(sizes)];
	u8 *bytes = digest_bytes(test);
	unsigned int i, at = 0;
	u32 crc;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		bvec_set_virt(&bv[i], bytes + at, sizes[i]);
		at += sizes[i];
	}
	KUNIT_ASSERT_EQ(test, DIGEST_BYTES, at);
	crc = kblk_crc_bvec(KBLK_CRC_START, bv, ARRAY_SIZE(bv));
	KUNIT_EXPECT_EQ(test, DIGEST_DATA, le32_to_cpu(kblk_crc_end(crc)));
	KUNIT_EXPECT_EQ(test, KBLK_CRC_START, kblk_crc_bvec(KBLK_CRC_START, bv, 0));
}

/* Each bit of a command, of the digest of its data, and of an answer counts. */
static void digest_each_bit(struct kunit *test)
{
	const __le32 data = cpu_to_le32(DIGEST_DATA);
	struct kblk_cmd cmd = digest_cmd;
	u8 *bytes = (u8 *)&cmd;
	unsigned int i;
	__le32 got;

	for (i = 0; i < 8 * sizeof(cmd); i++) {
		bytes[i / 8] ^= 1 << i % 8;
		got = kblk_cmd_digest(&cmd, data);
		KUNIT_EXPECT_NE_MSG(test, DIGEST_COMMAND, le32_to_cpu(got), "bit %u", i);
		bytes[i / 8] ^= 1 << i % 8;
	}
	for (i = 0; i < 32; i++) {
		got = kblk_cmd_digest(&cmd, data ^ cpu_to_le32(BIT(i)));
		KUNIT_EXPECT_NE(test, DIGEST_COMMAND, le32_to_cpu(got));
		got = kblk_crc_end(kblk_answer_crc(cpu_to_le32(DIGEST_COMMAND ^ BIT(i)),
						   cpu_to_le32(DIGEST_VALUE)));
		KUNIT_EXPECT_NE(test, DIGEST_ANSWER, le32_to_cpu(got));
		got = kblk_crc_end(kblk_answer_crc(cpu_to_le32(DIGEST_COMMAND),
						   cpu_to_le32(DIGEST_VALUE ^ BIT(i))));
		KUNIT_EXPECT_NE(test, DIGEST_ANSWER, le32_to_cpu(got));
	}
}

static void digest_words(struct kunit *test)
{
	static const char * const wrong[] = { "", "on", "1", "OFF", "off ", "requires" };
	enum kblk_digest mode;
	char line[16];
	unsigned int i;

	for (mode = 0; mode < KBLK_DIGEST_MODES; mode++) {
		snprintf(line, sizeof(line), "%s\n", kblk_digest_text(mode));
		KUNIT_EXPECT_EQ(test, (int)mode, kblk_parse_digest(line));
	}
	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		KUNIT_EXPECT_EQ_MSG(test, -EINVAL, kblk_parse_digest(wrong[i]), "%s",
				    wrong[i]);
}

static struct kunit_case clients_digest_cases[] = {
	KUNIT_CASE(digest_vectors),
	KUNIT_CASE(digest_segments),
	KUNIT_CASE(digest_each_bit),
	KUNIT_CASE(digest_words),
	{}
};

static struct kunit_suite clients_digest_suite = {
	.name = "clients_digest",
	.test_cases = clients_digest_cases,
};

kunit_test_suite(clients_digest_suite);

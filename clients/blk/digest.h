/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Digests of commands, answers and data, for client and target. proto.h defines the bytes
 * that each digest covers.
 *
 * crc32c() of the kernel uses instructions of the CPU if there are some. It works in any
 * context, and allocates nothing.
 */
#ifndef _KOFI_BLK_DIGEST_H
#define _KOFI_BLK_DIGEST_H

#include <linux/bvec.h>
#include <linux/crc32c.h>

#include "net.h"

#define KBLK_CRC_START	(~0U)

/**
 * kblk_crc_bvec - continue a CRC over the bytes of segments
 * @crc: the CRC so far, at first KBLK_CRC_START
 * @bv: segments in memory that the kernel maps, as all pages of 64-bit machines
 * @nr: number of segments
 *
 * Context: any.
 */
static inline u32 kblk_crc_bvec(u32 crc, const struct bio_vec *bv, unsigned int nr)
{
	struct bio_vec one;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		one = bv[i];
		crc = crc32c(crc, bvec_virt(&one), one.bv_len);
	}
	return crc;
}

/**
 * kblk_crc_end - digest of the bytes that a CRC covers
 * @crc: the CRC
 */
static inline __le32 kblk_crc_end(u32 crc)
{
	return cpu_to_le32(~crc);
}

/**
 * kblk_cmd_digest - digest of a command
 * @cmd: the command
 * @data: digest of its data
 */
static inline __le32 kblk_cmd_digest(const struct kblk_cmd *cmd, __le32 data)
{
	u32 crc = crc32c(KBLK_CRC_START, cmd, sizeof(*cmd));

	return kblk_crc_end(crc32c(crc, &data, sizeof(data)));
}

/**
 * kblk_answer_crc - CRC of an answer, without the data of a read
 * @command: digest of the command
 * @value: value of the answer
 */
static inline u32 kblk_answer_crc(__le32 command, __le32 value)
{
	u32 crc = crc32c(KBLK_CRC_START, &command, sizeof(command));

	return crc32c(crc, &value, sizeof(value));
}

#endif /* _KOFI_BLK_DIGEST_H */

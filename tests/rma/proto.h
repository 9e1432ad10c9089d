/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What kofi_rma.ko and its peers say to each other; also for programs.
 *
 * Two sides have one connection. Each side has a region of KRMA_REGION bytes or
 * less that the other may access. The side that has connected leads: it sends
 * commands, one struct krma_msg each, and the other side answers each with one
 * struct krma_msg that has the same op, a status, and for a content that is
 * wrong its place. All numbers are little-endian.
 *
 * Endpoints that do not connect are told of no beginning and no end. So the leading
 * side begins with its address, in a message with KRMA_NAME_TAG, and does so again
 * when a wrong access has ended a connection below. A command that asks for one is
 * answered there, when it has.
 *
 * A command describes count accesses of len bytes each, one behind the other
 * from off on in the region, each to segs remote segments. What a byte of the
 * region has to be follows from its offset and the command's seed, so that
 * either side can fill and check. KRMA_GUARD bytes before and after have to be
 * those of the next seed: they show an access that reached too far.
 */
#ifndef _KOFI_RMA_PROTO_H
#define _KOFI_RMA_PROTO_H

#include <linux/types.h>

#define KRMA_PORT		7473
#define KRMA_MAGIC		0x616d726bU
#define KRMA_NAME_TAG		0x6b6f66692d726d61ULL	/* no content has it */
#define KRMA_DATA_MAX		(16U << 20)		/* bytes of all accesses */
#define KRMA_GUARD		64U
#define KRMA_SLACK		8192U			/* for offsets and guards */
#define KRMA_REGION		(KRMA_DATA_MAX + KRMA_SLACK)
#define KRMA_REGION_DEVICE	(256U * 4096U)		/* of a kernel's, in an RDMA device */
#define KRMA_COUNT_MAX		32U			/* accesses of a command */
#define KRMA_SEGS_MAX		4U
#define KRMA_INJECT_MAX		128U
#define KRMA_FORMS		1415U			/* bytes of all short forms */

/**
 * enum krma_op - commands; "me" is the side that sends it
 * @KRMA_HELLO: this is my region; which is yours?
 * @KRMA_REGION_NEW: register yours again, as kind and with the rights of
 *	flags; which is it?
 * @KRMA_FILL: fill it and its guards; with KRMA_F_BACK with the guards' content
 * @KRMA_CHECK: is it so? With KRMA_F_DATA: did the values from data on arrive?
 * @KRMA_WRITE: write to my region
 * @KRMA_READ: read from my region, and check what has come
 * @KRMA_RECV: receive and check the count messages that follow
 * @KRMA_SEND: send me count messages, before the answer
 * @KRMA_HOLD: receive nothing for len milliseconds, or before there is another client.
 *	Not answered.
 * @KRMA_BYE: this was the last command of this connection, with KRMA_F_LAST of
 *	all connections
 */
enum krma_op {
	KRMA_HELLO = 1,
	KRMA_REGION_NEW,
	KRMA_FILL,
	KRMA_CHECK,
	KRMA_WRITE,
	KRMA_READ,
	KRMA_RECV,
	KRMA_SEND,
	KRMA_HOLD,
	KRMA_BYE,
};

#define KRMA_F_DATA		0x0001	/* values go with the accesses, from data on */
#define KRMA_F_TAGGED		0x0002	/* messages have tags, from data on */
#define KRMA_F_BACK		0x0004
#define KRMA_F_LAST		0x0008
#define KRMA_F_NO_READ		0x0010	/* a region without FI_REMOTE_READ */
#define KRMA_F_NO_WRITE		0x0020	/* a region without FI_REMOTE_WRITE */
/* accesses that must fail, and end the connection */
#define KRMA_F_BAD_KEY		0x0100
#define KRMA_F_BAD_RANGE	0x0200	/* one byte beyond the end */
#define KRMA_F_BAD_WRAP		0x0400	/* address and length wrap around */
#define KRMA_F_BAD_RIGHT	0x0800	/* the region does not grant it */
#define KRMA_F_BAD		0x0f00
/* HELLO and its answer */
#define KRMA_F_STRICT		0x1000	/* survives KRMA_F_BAD_WRAP */
#define KRMA_F_TAGS		0x2000	/* understands KRMA_F_TAGGED */
#define KRMA_F_KERNEL		0x4000	/* is a kernel */

/* When an operation is complete; in this order also in reports */
enum krma_level {
	KRMA_DEFAULT,
	KRMA_INJECT,			/* copied by the call */
	KRMA_INJECT_COMPLETE,
	KRMA_TRANSMIT,
	KRMA_DELIVERY,
	KRMA_LEVELS,
};

/* What describes the memory; a program may have only one kind */
enum krma_kind {
	KRMA_KVEC,
	KRMA_BVEC,
	KRMA_SGL,
	KRMA_ITER,
	KRMA_VMALLOC,
	KRMA_PAGES,			/* of regions only */
	KRMA_KINDS,
};

struct krma_msg {
	__le32	magic;
	__le16	op;
	__le16	flags;
	__le32	status;			/* answers: 0 or an errno value of Linux */
	__le32	seed;
	__le32	count;
	__le32	segs;			/* answers to HELLO: the most it can name */
	__le32	level;
	__le32	kind;
	__le64	off;			/* answers: first wrong byte */
	__le64	len;
	__le64	data;
	__le64	key;
	__le64	addr;			/* of the region's first byte */
	__le64	size;
};

/*
 * The content: a table of pseudo-random bytes, its length prime, so that a
 * piece that is out of place by any power of two shows.
 */
#define KRMA_PATTERN_LEN	65521U

static inline void krma_pattern_make(__u8 *table)
{
	__u32 i, x = 1;

	for (i = 0; i < KRMA_PATTERN_LEN; i++) {
		x = x * 1664525U + 1013904223U;
		table[i] = x >> 24;
	}
}

/* Where in the table the byte at offset @off of the region is. */
static inline __u32 krma_pattern_at(__u32 seed, __u64 off)
{
	return (__u32)(off + seed % 251U * 257U) % KRMA_PATTERN_LEN;
}

struct krma_segment {
	__u64	off;
	__u64	len;
};

/*
 * Remote segment @i of an access to @len bytes at @off: the pieces are as equal
 * as they can be, and the last comes first.
 */
static inline struct krma_segment krma_segment(__u64 off, __u64 len, __u32 segs,
					       __u32 i)
{
	__u32 from = (__u32)len * (segs - 1 - i) / segs;
	__u32 to = (__u32)len * (segs - i) / segs;
	struct krma_segment seg = { .off = off + from, .len = to - from };

	return seg;
}

/*
 * What a client counts of a run, for each side, and shows in the end: accesses
 * that were what they had to be, and their bytes, each of which was compared.
 */
enum krma_row {
	KRMA_ROW_READ,
	KRMA_ROW_WRITE,
	KRMA_ROW_DATA,
	KRMA_ROW_INJECT,
	KRMA_ROW_INJECT_DATA,
	KRMA_ROW_ACKED,
	KRMA_ROW_REFUSED,		/* nothing was moved */
	KRMA_ROWS,
};

struct krma_tally {
	__u32	count;
	__u64	bytes;
};

static inline void krma_count(struct krma_tally (*tally)[2], enum krma_row row,
			      int yours, __u32 count, __u64 bytes)
{
	tally[row][yours].count += count;
	if (row != KRMA_ROW_REFUSED)
		tally[row][yours].bytes += bytes;
}

/* The short forms of a client, which make KRMA_FORMS bytes. */
static inline void krma_count_forms(struct krma_tally (*tally)[2], int values)
{
	krma_count(tally, KRMA_ROW_WRITE, 0, 2, 100 + 123);
	krma_count(tally, values ? KRMA_ROW_DATA : KRMA_ROW_WRITE, 0, 1, 1000);
	krma_count(tally, KRMA_ROW_INJECT, 0, 1, 64);
	krma_count(tally, values ? KRMA_ROW_INJECT_DATA : KRMA_ROW_INJECT, 0, 1,
		   128);
	krma_count(tally, KRMA_ROW_READ, 0, 2, KRMA_FORMS);
}

/* Row of an access with these flags and this level. */
static inline enum krma_row krma_row(int write, __u32 flags,
				     enum krma_level level)
{
	if (flags & KRMA_F_BAD)
		return KRMA_ROW_REFUSED;
	if (!write)
		return KRMA_ROW_READ;
	if (level == KRMA_INJECT)
		return flags & KRMA_F_DATA ? KRMA_ROW_INJECT_DATA :
					     KRMA_ROW_INJECT;
	if (level == KRMA_TRANSMIT || level == KRMA_DELIVERY)
		return KRMA_ROW_ACKED;
	return flags & KRMA_F_DATA ? KRMA_ROW_DATA : KRMA_ROW_WRITE;
}

static inline const char *krma_row_name(enum krma_row row)
{
	switch (row) {
	case KRMA_ROW_READ:
		return "read";
	case KRMA_ROW_WRITE:
		return "write";
	case KRMA_ROW_DATA:
		return "writedata";
	case KRMA_ROW_INJECT:
		return "inject_write";
	case KRMA_ROW_INJECT_DATA:
		return "inject_writedata";
	case KRMA_ROW_ACKED:
		return "write, acknowledged";
	default:
		return "wrong: nothing touched";
	}
}

#endif /* _KOFI_RMA_PROTO_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What kofi_blk and kofi_blkt say to each other; Documentation/blk.rst explains
 * it. Also for programs that have BIT() and GENMASK(). Everything is little
 * endian. A field or bit that is not described is 0, and refused if it is not.
 *
 * A volume is mapped by one connection for each queue. Its login is the private
 * data of the connection request, of the answer, and of a rejection. After it,
 * the client sends commands, the target answers, and the data moves by the
 * target's reads and writes of the client's memory.
 */
#ifndef _KOFI_BLK_PROTO_H
#define _KOFI_BLK_PROTO_H

#include <linux/types.h>
#ifdef __KERNEL__
#include <linux/bits.h>
#include <linux/build_bug.h>
#endif

#define KBLK_MAGIC		0x6b6c626b	/* "kblk" */
#define KBLK_VERSION		1
#define KBLK_PORT		"4421"

#define KBLK_NAME_LEN		24	/* padded with 0, which need not be there */
#define KBLK_QUEUES		64	/* of a mapped volume at most */
#define KBLK_DEPTH		64	/* commands of a queue at most */
#define KBLK_INLINE		4096	/* bytes of data in a command at most */
#define KBLK_UNIT		24	/* log2 of the most bytes of a unit */
#define KBLK_IO_OPT		26	/* log2 of the most that is liked best */

/* flags of a hello and of a welcome */
#define KBLK_CQ_DATA		BIT(0)	/* reads are answered by remote CQ data */
/* of a welcome alone */
#define KBLK_READ_ONLY		BIT(1)
#define KBLK_ROTATIONAL		BIT(2)
#define KBLK_WRITE_CACHE	BIT(3)	/* KBLK_OP_FLUSH has an effect */
#define KBLK_FLAGS		GENMASK(3, 0)

/**
 * struct kblk_hello - private data of a connection request
 * @magic: KBLK_MAGIC
 * @version: KBLK_VERSION
 * @flags: KBLK_CQ_DATA: the client's endpoint can receive it
 * @queue: number of the queue this connection is
 * @queues: how many there are
 * @depth: commands there may be under way
 * @reserved: 0
 * @session: a number, the same for all connections of a mapped volume, and
 *	when the same client maps it again
 * @attempt: a greater one each time that the session is connected. What is left
 *	of an earlier attempt ends before the target accepts a new one
 * @name: the volume
 */
struct kblk_hello {
	__le32	magic;
	__le16	version;
	__le16	flags;
	__le16	queue;
	__le16	queues;
	__le16	depth;
	__le16	reserved;
	__u8	session[8];
	__le32	attempt;
	char	name[KBLK_NAME_LEN];
};

static_assert(sizeof(struct kblk_hello) == 52);

/**
 * struct kblk_welcome - private data of an accepted connection
 * @magic: KBLK_MAGIC
 * @version: KBLK_VERSION
 * @flags: KBLK_CQ_DATA if the hello had it and the target will use it, and what
 *	the volume is like
 * @sectors: size of the volume, in units of 512 bytes as everywhere here
 * @uuid: the volume's
 * @incarnation: changes when what had been written and not flushed may be lost;
 *	a flush that would say so ends the connection instead
 * @io_opt: bytes the volume's device likes best; 0: none
 * @block: log2 of bytes; sectors and lengths of commands are multiples of it
 * @phys: log2 of the bytes the device writes at a time
 * @io_min: log2 of the smallest length it does well
 * @inline_max: log2 of the most bytes of data in a command; 0: none
 * @bytes_max: log2 of the most bytes of a read or write
 * @discard_max: log2 of the most bytes of a discard; 0: not supported
 * @discard_unit: log2 of the bytes that are discarded in one piece
 * @zeroes_max: log2 of the most bytes of a write-zeroes; 0: not supported
 *
 * It has to fit into the private data of every provider, 55 bytes.
 */
struct kblk_welcome {
	__le32	magic;
	__le16	version;
	__le16	flags;
	__le64	sectors;
	__u8	uuid[16];
	__le32	incarnation;
	__le32	io_opt;
	__u8	block;
	__u8	phys;
	__u8	io_min;
	__u8	inline_max;
	__u8	bytes_max;
	__u8	discard_max;
	__u8	discard_unit;
	__u8	zeroes_max;
};

static_assert(sizeof(struct kblk_welcome) == 48);

/* Why a connection is rejected */
enum kblk_reason {
	KBLK_REASON_PROTOCOL = 1,	/* a field is not what it may be */
	KBLK_REASON_VERSION,
	KBLK_REASON_VOLUME,		/* there is none of this name */
	KBLK_REASON_ACCESS,		/* the client's address is not allowed */
	KBLK_REASON_FULL,		/* the target has too many connections */
	KBLK_REASON_BUSY,		/* an earlier attempt ends; try again */
	KBLK_REASON_FAILED,		/* the target has a problem of its own */
};

/**
 * struct kblk_refusal - private data of a rejection
 * @magic: KBLK_MAGIC
 * @version: KBLK_VERSION
 * @reason: enum kblk_reason
 */
struct kblk_refusal {
	__le32	magic;
	__le16	version;
	__le16	reason;
};

static_assert(sizeof(struct kblk_refusal) == 8);

enum kblk_op {
	KBLK_OP_READ,
	KBLK_OP_WRITE,
	KBLK_OP_FLUSH,
	KBLK_OP_DISCARD,
	KBLK_OP_ZEROES,
	KBLK_OPS,
};

#define KBLK_CMD_FUA		BIT(0)	/* KBLK_OP_WRITE: on stable storage first */
#define KBLK_CMD_INLINE		BIT(1)	/* KBLK_OP_WRITE: the data follows here */
#define KBLK_CMD_NO_UNMAP	BIT(2)	/* KBLK_OP_ZEROES: keep it allocated */

/**
 * struct kblk_cmd - a command
 * @op: enum kblk_op
 * @flags: KBLK_CMD_FUA, ...
 * @tag: below the depth of the queue; used by no other command under way
 * @gen: any number; comes back with @tag in the answer
 * @reserved: 0
 * @sector: the first one; 0 for KBLK_OP_FLUSH
 * @addr: remote address of the memory to read or write; 0 if there is none
 * @key: its key, which is good for one access; 0 if there is none
 * @len: bytes; 0 for KBLK_OP_FLUSH
 * @reserved2: 0
 */
struct kblk_cmd {
	__u8	op;
	__u8	flags;
	__le16	tag;
	__u8	gen;
	__u8	reserved[3];
	__le64	sector;
	__le64	addr;
	__le64	key;
	__le32	len;
	__le32	reserved2;
};

static_assert(sizeof(struct kblk_cmd) == 40);

enum kblk_status {
	KBLK_OK,
	KBLK_IO_ERROR,
	KBLK_NOT_SUPPORTED,
	KBLK_NO_SPACE,
	KBLK_PROTECTED,		/* a write to a volume that is read-only */
	KBLK_RANGE,		/* not within the volume, or not in whole blocks */
	KBLK_MEDIUM_ERROR,
	KBLK_STATUSES,
};

/*
 * An answer is 32 bits: the remote CQ data of the write that brings what was
 * read, or a message of struct kblk_answer.
 */
#define KBLK_ANSWER_TAG		GENMASK(15, 0)
#define KBLK_ANSWER_GEN		GENMASK(23, 16)
#define KBLK_ANSWER_STATUS	GENMASK(31, 24)

/**
 * struct kblk_answer - an answer that is a message
 * @value: KBLK_ANSWER_TAG, KBLK_ANSWER_GEN, KBLK_ANSWER_STATUS
 * @reserved: 0
 */
struct kblk_answer {
	__le32	value;
	__le32	reserved;
};

#endif /* _KOFI_BLK_PROTO_H */

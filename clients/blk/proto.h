/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The protocol of kofi_blk and kofi_blkt, version 2; Documentation/blk.rst explains
 * it. Also for programs that have BIT() and GENMASK(). Everything is little endian.
 * A bit or byte without a meaning is 0. Commands and answers with another value are
 * refused; the login ignores unknown parts as stated below.
 *
 * A volume is mapped by one connection for each queue. The private data of the
 * connection request and of its answer agree on a version and on features. Then the
 * client logs in by messages. After the login the client sends commands, the target
 * answers, and the data moves by the target's reads and writes of client memory.
 */
#ifndef _KOFI_BLK_PROTO_H
#define _KOFI_BLK_PROTO_H

#include <linux/types.h>
#ifdef __KERNEL__
#include <linux/bits.h>
#include <linux/build_bug.h>
#endif

#define KBLK_MAGIC		0x6b6c626b	/* "kblk" */
#define KBLK_VERSION		2	/* the newest */
#define KBLK_OLDEST		2	/* the oldest that is spoken, too */
#define KBLK_PORT		"4421"

#define KBLK_NAME_LEN		24	/* padded with 0, which need not be there */
#define KBLK_QUEUES		64	/* most queues of a mapped volume */
#define KBLK_DEPTH		64	/* commands of a queue at most */
#define KBLK_INLINE		4096	/* bytes of data in a command at most */
#define KBLK_ONE_WRITE		4096	/* bytes of a read up to which one write has the data */
#define KBLK_UNIT		24	/* log2 of the most bytes of a unit */
#define KBLK_IO_OPT		26	/* log2 of the most that is liked best */

/* ------------------------------------------------------------- private data */

/* Features. The client offers some, the target answers with those that are used. */
#define KBLK_FEATURE_CQ_DATA	BIT(0)	/* reads are answered by remote CQ data */
#define KBLK_FEATURE_DIGEST	BIT(1)	/* commands, answers and data have digests */
#define KBLK_FEATURES		GENMASK(1, 0)

/**
 * struct kblk_hello - private data of a connection request
 * @magic: KBLK_MAGIC
 * @version: newest version that the client speaks
 * @oldest: oldest version that the client speaks
 * @features: KBLK_FEATURE_CQ_DATA, ...; unknown ones are ignored
 * @depth: commands that may be outstanding
 * @reserved: ignored, as is everything behind it
 */
struct kblk_hello {
	__le32	magic;
	__le16	version;
	__le16	oldest;
	__le32	features;
	__le16	depth;
	__le16	reserved;
};

static_assert(sizeof(struct kblk_hello) == 16);

/**
 * struct kblk_accept - private data of an accepted connection
 * @magic: KBLK_MAGIC
 * @version: version of this connection, within the client's range
 * @reserved: ignored
 * @features: features of this connection, all of them offered by the client. A connection
 *	with KBLK_FEATURE_DIGEST does not have KBLK_FEATURE_CQ_DATA, which has no room for a
 *	digest
 */
struct kblk_accept {
	__le32	magic;
	__le16	version;
	__le16	reserved;
	__le32	features;
};

static_assert(sizeof(struct kblk_accept) == 12);

/* Reasons of a rejected connection, or a refused login */
enum kblk_reason {
	KBLK_REASON_PROTOCOL = 1,	/* a field has a wrong value */
	KBLK_REASON_VERSION,		/* no version is common to both */
	KBLK_REASON_VOLUME,		/* of earlier targets: there is none of this name */
	KBLK_REASON_ACCESS,		/* none of this name, or not for this client */
	KBLK_REASON_FULL,		/* the target has too many connections */
	KBLK_REASON_BUSY,		/* an earlier attempt is being closed; try again */
	KBLK_REASON_FAILED,		/* the target has a problem of its own */
	KBLK_REASON_UNKNOWN,		/* a mandatory field is unknown */
	KBLK_REASON_UUID,		/* the volume is another one */
	KBLK_REASON_EXCLUSIVE,		/* another host has the volume */
	KBLK_REASON_FEATURE,		/* the client offers no digests, which the port demands */
};

/**
 * struct kblk_refusal - private data of a rejection
 * @magic: KBLK_MAGIC
 * @version: newest version that the target speaks
 * @reason: enum kblk_reason
 * @oldest: oldest version that the target speaks; absent if the target is of version 1
 * @reserved: ignored
 */
struct kblk_refusal {
	__le32	magic;
	__le16	version;
	__le16	reason;
	__le16	oldest;
	__le16	reserved;
};

static_assert(sizeof(struct kblk_refusal) == 12);

/* -------------------------------------------------------------------- login */

/*
 * Messages alternate; the client sends the first. Each has a head and fields. The target
 * closes a connection if the login takes too long or too many messages.
 */
#define KBLK_LOGIN_LEN		2048	/* bytes of a message at most */
#define KBLK_LOGIN_ROUNDS	8	/* messages of the client at most */
#define KBLK_LOGIN_MS		10000	/* from the connection to the welcome */
#define KBLK_HOST_LEN		63
#define KBLK_IDENTITY_LEN	63
#define KBLK_NONCE_LEN		32
#define KBLK_PROOF_LEN		32	/* of HMAC-SHA-256 */

enum kblk_login_type {
	/* of the client: SESSION, VOLUME, HOST, UUID, NOTES, IDENTITY, NONCE */
	KBLK_LOGIN_REQUEST = 1,
	KBLK_LOGIN_WELCOME,	/* of the target, the last one: WELCOME, STABLE, PROOF */
	KBLK_LOGIN_REFUSED,	/* of the target, the last one: REASON */
	KBLK_LOGIN_CHALLENGE,	/* of the target, answer to a request with IDENTITY: NONCE */
	KBLK_LOGIN_PROOF,	/* of the client, answer to a challenge: PROOF */
};

/**
 * struct kblk_login_head - beginning of a login message
 * @type: enum kblk_login_type
 * @len: bytes of the message, with this head
 * @reserved: ignored
 */
struct kblk_login_head {
	__le16	type;
	__le16	len;
	__le32	reserved;
};

static_assert(sizeof(struct kblk_login_head) == 8);

/* A receiver ignores a field that it does not know, unless the ID has this bit. */
#define KBLK_FIELD_MUST		BIT(15)

enum kblk_field_id {
	KBLK_FIELD_SESSION = 1,	/* struct kblk_session */
	KBLK_FIELD_VOLUME,	/* name, 1 to KBLK_NAME_LEN bytes */
	KBLK_FIELD_HOST,	/* name of the client's machine; may be missing */
	KBLK_FIELD_UUID,	/* 16 bytes: only the volume of this UUID; may be missing */
	KBLK_FIELD_WELCOME,	/* struct kblk_welcome */
	KBLK_FIELD_REASON,	/* enum kblk_reason, 2 bytes */
	KBLK_FIELD_NOTES,	/* struct kblk_memory, for struct kblk_notes; may be missing */
	KBLK_FIELD_STABLE,	/* earlier incarnations of which all is stable, 8 bytes each */
	KBLK_FIELD_IDENTITY,	/* name that the client proves, 1 to KBLK_IDENTITY_LEN bytes */
	KBLK_FIELD_NONCE,	/* KBLK_NONCE_LEN random bytes */
	KBLK_FIELD_PROOF,	/* KBLK_PROOF_LEN bytes, the last field */
};

/**
 * struct kblk_field - beginning of a field, in front of its value
 * @id: enum kblk_field_id, perhaps with KBLK_FIELD_MUST
 * @len: bytes of the value; the next field begins at a multiple of 4
 *
 * New members are appended to structures. The receiver ignores bytes that it does not know.
 * It takes missing members that are not of version 2 for 0.
 */
struct kblk_field {
	__le16	id;
	__le16	len;
};

static_assert(sizeof(struct kblk_field) == 4);

/**
 * struct kblk_session - client and queue of a connection
 * @session: number that all connections of a mapped volume share, also when the same
 *	client maps the volume again
 * @attempt: number that grows with each attempt to connect the session. Before the target
 *	accepts an attempt, it closes the connections of earlier ones
 * @queue: number of the queue of this connection
 * @queues: number of queues
 */
struct kblk_session {
	__u8	session[8];
	__le32	attempt;
	__le16	queue;
	__le16	queues;
};

static_assert(sizeof(struct kblk_session) == 16);

/*
 * Authentication. If a request has IDENTITY and NONCE, the target answers with a challenge,
 * the client with its proof, and the target with a welcome that has the target's proof as
 * its last field. A proof is the HMAC-SHA-256 of the transcript, by the key of the identity.
 * The transcript is struct kblk_agreement, then all messages of the login in their order, as
 * they have been sent. Of the message with the proof, it has all bytes before the proof's
 * value.
 */
#define KBLK_LABEL		"kofi_blk login 2"	/* 16 bytes, without the NUL */
#define KBLK_ROLE_CLIENT	1
#define KBLK_ROLE_TARGET	2
#define KBLK_LOGIN_PROVEN	4	/* messages of a login with proofs */

/**
 * struct kblk_agreement - beginning of the transcript that a proof covers
 * @label: KBLK_LABEL, without the NUL
 * @role: side that makes the proof: KBLK_ROLE_CLIENT or KBLK_ROLE_TARGET
 * @hello: private data of the connection request, without bytes behind the structure
 * @accept: private data of the acceptance, without bytes behind the structure
 */
struct kblk_agreement {
	__u8			label[16];
	__le32			role;
	struct kblk_hello	hello;
	struct kblk_accept	accept;
};

static_assert(sizeof(struct kblk_agreement) == 48);

#define KBLK_STABLE	8	/* earlier incarnations in a welcome at most */

/**
 * struct kblk_memory - memory of the client that the target may write at any time
 * @addr: remote address
 * @key: key of the memory, which lasts as long as the connection
 * @len: bytes; the target writes that many of the structure that it knows at most
 * @reserved: ignored
 */
struct kblk_memory {
	__le64	addr;
	__le64	key;
	__le32	len;
	__le32	reserved;
};

static_assert(sizeof(struct kblk_memory) == 24);

/**
 * struct kblk_notes - notes of the target, unasked
 * @beat: grows with each write of this structure
 * @tags: a bit for each tag of a command that the target works on
 * @stable: 0, or, as the last note, the incarnation of which all that has been written
 *	is on stable storage; the target starts no command then
 * @reserved: 0
 *
 * A note needs no receive, so it reaches a client that does not poll its queue, and
 * a target that waits for its device can write it.
 */
struct kblk_notes {
	__le64	beat;
	__le64	tags;
	__le64	stable;
	__le64	reserved;
};

static_assert(sizeof(struct kblk_notes) == 32);

/* flags of a welcome; a client does not map a volume with others */
#define KBLK_READ_ONLY		BIT(0)
#define KBLK_ROTATIONAL		BIT(1)
#define KBLK_WRITE_CACHE	BIT(2)	/* KBLK_OP_FLUSH has an effect */
#define KBLK_FLAGS		GENMASK(2, 0)

/**
 * struct kblk_welcome - the volume
 * @flags: KBLK_READ_ONLY, ...
 * @io_opt: bytes the volume's device likes best; 0: none
 * @sectors: size of the volume, in units of 512 bytes as everywhere here
 * @incarnation: another one each time that the volume is enabled, and when a flush has
 *	failed, which closes the connection instead of being answered. Unflushed
 *	writes under an earlier one may be lost, unless KBLK_FIELD_STABLE has it
 * @uuid: UUID of the volume
 * @block: log2 of bytes; sectors and lengths of commands are multiples of it
 * @phys: log2 of the bytes the device writes at a time
 * @io_min: log2 of the smallest length it does well
 * @inline_max: log2 of the most bytes of data in a command; 0: none
 * @bytes_max: log2 of the most bytes of a read or write
 * @discard_max: log2 of the most bytes of a discard; 0: not supported
 * @discard_unit: log2 of the bytes that are discarded in one piece
 * @zeroes_max: log2 of the most bytes of a write-zeroes; 0: not supported
 */
struct kblk_welcome {
	__le32	flags;
	__le32	io_opt;
	__le64	sectors;
	__le64	incarnation;
	__u8	uuid[16];
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

/* ----------------------------------------------------------------- commands */

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
 * @tag: below the depth of the queue; used by no other outstanding command
 * @gen: any number; comes back with @tag in the answer
 * @reserved: 0
 * @sector: the first one; 0 for KBLK_OP_FLUSH
 * @addr: remote address of the memory to read or write; 0 if there is none
 * @key: key of the memory at @addr, good for one access; 0 if there is none
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

/*
 * Digests are CRC32C as in RFC 3720, so the digest of "123456789" is 0xe3069283.
 *
 * Of a connection with KBLK_FEATURE_DIGEST, each command is followed by struct kblk_digests,
 * then by the data of KBLK_CMD_INLINE. The target compares @command before it uses the
 * command, and @data before it gives the data to its device. The client compares
 * the digest of an answer before it completes the request. A side that finds a wrong
 * digest closes the connection.
 */

/**
 * struct kblk_digests - digests of a command and of its data
 * @data: digest of the bytes that KBLK_OP_WRITE writes; 0 for another operation
 * @command: digest of struct kblk_cmd and of @data
 */
struct kblk_digests {
	__le32	data;
	__le32	command;
};

static_assert(sizeof(struct kblk_digests) == 8);

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
 * An answer is 32 bits: the remote CQ data of the write that brings the data of a
 * read, or a message of struct kblk_answer.
 */
#define KBLK_ANSWER_TAG		GENMASK(15, 0)
#define KBLK_ANSWER_GEN		GENMASK(23, 16)
#define KBLK_ANSWER_STATUS	GENMASK(31, 24)

/**
 * struct kblk_answer - an answer that is a message
 * @value: KBLK_ANSWER_TAG, KBLK_ANSWER_GEN, KBLK_ANSWER_STATUS
 * @digest: digest of @command in struct kblk_digests, of @value, and of the data of a
 *	successful read, in this order; 0 without KBLK_FEATURE_DIGEST
 */
struct kblk_answer {
	__le32	value;
	__le32	digest;
};

#endif /* _KOFI_BLK_PROTO_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The wire of libfabric's "tcp" provider, protocol 3, connected endpoints.
 *
 * A connection starts with one CM message each way, and then carries frames
 * back to back in both directions. Every frame is a header of 16 to 120 bytes
 * and a payload; the header says how long both are.
 *
 * Integers of the data phase are little-endian if both hosts are, otherwise
 * big-endian; each side learns the other's order from the probe in the CM
 * message. The length in a CM message is always big-endian.
 */
#ifndef _KOFI_SOCK_PROTO_H
#define _KOFI_SOCK_PROTO_H

#include <linux/build_bug.h>
#include <linux/types.h>
#include <linux/unaligned.h>

#define KSK_PROTO_VERSION	3

/* ------------------------------------------------- connection management */

enum {
	KSK_CM_REQUEST	= 0,
	KSK_CM_ACCEPT	= 1,
	KSK_CM_REJECT	= 6,
};

#define KSK_CM_DATA_MAX	256

/*
 * Extensions of kOFI are named in eight bytes that libfabric sends as zero and
 * ignores. A request carries the extensions of its sender. An accept carries the common
 * extensions of both sides, and only if the request had any. So a stock peer sees only
 * bytes that it ignores.
 */
#define KSK_EXT_MAGIC		0x6b4f4649	/* "kOFI" */
#define KSK_EXT_REMOTE_INV	0x00000001	/* KSK_F_REMOTE_INV */
#define KSK_EXT_ALL		KSK_EXT_REMOTE_INV

/**
 * struct ksk_cm_hdr - CM message, private data follows
 * @version: KSK_PROTO_VERSION
 * @type: KSK_CM_*
 * @data_len: length of the private data, at most KSK_CM_DATA_MAX
 * @zero: sent as zero, ignored when received
 * @magic: KSK_EXT_MAGIC, or anything else from a peer without extensions
 * @ext: with the magic: KSK_EXT_*
 * @probe: 1 in the byte order of the sender, zero in a reject
 */
struct ksk_cm_hdr {
	u8	version;
	u8	type;
	__be16	data_len;
	u8	zero[12];
	__be32	magic;
	__be32	ext;
	u64	probe;
} __packed;

static_assert(sizeof(struct ksk_cm_hdr) == 32);

#define KSK_CM_MAX	(sizeof(struct ksk_cm_hdr) + KSK_CM_DATA_MAX)

/**
 * struct ksk_rdm_cm - private data of unconnected endpoints, in all three messages
 * @version: of a request: KSK_RDM_VERSION or a later version. Of an answer: the lower of
 *	both versions with KSK_RDM_AGREED; or the request's, from a peer with version 0
 * @features: sent as zero, ignored when received
 * @port: port that the sender of the request listens at
 * @pid: number of the message's sender; another one after a restart
 */
struct ksk_rdm_cm {
	u8	version;
	u8	features;
	__be16	port;
	__be32	pid;
} __packed;

static_assert(sizeof(struct ksk_rdm_cm) == 8);

#define KSK_RDM_VERSION		1	/* with rendezvous, since 1 */
#define KSK_RDM_AGREED		0x80

/* ------------------------------------------------------------- data phase */

enum {
	KSK_OP_MSG		= 0,
	KSK_OP_TAGGED		= 1,
	KSK_OP_READ_REQ	= 2,
	KSK_OP_READ_RSP	= 3,
	KSK_OP_WRITE		= 4,
	KSK_OP_RTS		= 5,	/* a tagged message is announced */
	KSK_OP_CTS		= 6,	/* the payload of an announced message is wanted */
	KSK_OP_DATA		= 7,	/* the payload of an announced message */
};

#define KSK_F_CQ_DATA	0x0001		/* a word for the peer's completion */
#define KSK_F_DELIVERY	0x0004		/* acknowledge when placed */
#define KSK_F_COMMIT	0x0008		/* acknowledge when persistent: refused */
#define KSK_F_REMOTE_INV 0x0100	/* invalidate a key of the receiver; only */
					/* where KSK_EXT_REMOTE_INV was agreed */

#define KSK_OP_DATA_ACK	2	/* with KSK_OP_MSG: an acknowledgment */

#define KSK_CTX_MAX	254	/* largest context of a rendezvous; the first is 1 */

/**
 * struct ksk_hdr - start of every frame
 * @version: KSK_PROTO_VERSION; not checked when received
 * @op: KSK_OP_*
 * @flags: KSK_F_*
 * @op_data: KSK_OP_DATA_ACK; the context of a rendezvous; or 0
 * @rma_count: RMA segments that follow; stale values with operations that
 *	have none
 * @hdr_size: bytes of the header, with its words
 * @id: counts the frames of a direction; not checked when received
 * @size: bytes of header and payload
 *
 * Behind it, each present only where stated: the word of KSK_F_CQ_DATA, the
 * key of KSK_F_REMOTE_INV, the tag of KSK_OP_TAGGED and KSK_OP_RTS, the length that
 * KSK_OP_RTS announces, @rma_count times struct ksk_rma with KSK_OP_READ_REQ and
 * KSK_OP_WRITE. KSK_OP_DATA has none of them, although it has the flags of the
 * announcement. Words are bytes here, because their order is the connection's:
 * ksk_get64() and its kin read them.
 */
struct ksk_hdr {
	u8	version;
	u8	op;
	u8	flags[2];
	u8	op_data;
	u8	rma_count;
	u8	hdr_size;
	u8	id;
	u8	size[8];
};

static_assert(sizeof(struct ksk_hdr) == 16);

struct ksk_rma {
	u8	addr[8];
	u8	len[8];
	u8	key[8];
};

static_assert(sizeof(struct ksk_rma) == 24);

#define KSK_RMA_MAX	4
#define KSK_HDR_MAX	(sizeof(struct ksk_hdr) + 8 + \
			 KSK_RMA_MAX * sizeof(struct ksk_rma))
static_assert(KSK_HDR_MAX == 120);

static __always_inline u64 ksk_get64(const void *p, bool be)
{
	return be ? get_unaligned_be64(p) : get_unaligned_le64(p);
}

static __always_inline u16 ksk_get16(const void *p, bool be)
{
	return be ? get_unaligned_be16(p) : get_unaligned_le16(p);
}

static __always_inline void ksk_put64(u64 val, void *p, bool be)
{
	if (be)
		put_unaligned_be64(val, p);
	else
		put_unaligned_le64(val, p);
}

static __always_inline void ksk_put16(u16 val, void *p, bool be)
{
	if (be)
		put_unaligned_be16(val, p);
	else
		put_unaligned_le16(val, p);
}

#endif /* _KOFI_SOCK_PROTO_H */

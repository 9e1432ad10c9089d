/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The wire format of libfabric's ofi_rxm, and nothing else.
 *
 * These structures are the payload of messages and of connection management of the
 * provider below. All fields are in the order of the sender's CPU unless they
 * state otherwise: a peer of the other order is refused when it connects.
 */
#ifndef _KOFI_RXM_PROTO_H
#define _KOFI_RXM_PROTO_H

#include <linux/build_bug.h>
#include <linux/sizes.h>
#include <linux/types.h>

#define RXM_CM_VERSION		1
#define RXM_CTRL_VERSION	4
#define RXM_OP_VERSION		3	/* of the connect request */
#define RXM_HDR_VERSION		2	/* of a packet's operation */

#define RXM_EAGER		SZ_16K	/* payload of a packet; not negotiated */
#define RXM_SAR			(8 * RXM_EAGER)
#define RXM_RNDV_IOV		4

/* rxm_cm_req.endian */
#ifdef __BIG_ENDIAN
#define RXM_ENDIAN		1
#else
#define RXM_ENDIAN		2
#endif

/* rxm_cm_req.flow */
enum {
	RXM_FLOW_UNKNOWN,
	RXM_FLOW_ON,
	RXM_FLOW_OFF,
};

/* Private data of a connect request */
struct rxm_cm_req {
	u8	version;
	u8	endian;
	u8	ctrl_version;
	u8	op_version;
	u16	port;		/* port at which the sender listens, in CPU order */
	u8	flow;
	u8	index;
	u32	eager;
	u32	rx_size;
	u64	id;		/* conn_id of the peer's packets; upper half: process */
};

/* Private data of the answer that accepts a request */
struct rxm_cm_rsp {
	u64	id;
	u32	rx_size;
	u8	flow;
	u8	pad[3];
};

/* rxm_cm_rej.reason */
enum {
	RXM_REJ_REFUSED = 1,
	RXM_REJ_ALREADY,	/* the connection of the answering side is used */
};

/* Private data of the answer that refuses a request */
struct rxm_cm_rej {
	u8	version;
	u8	reason;
};

static_assert(sizeof(struct rxm_cm_req) == 24);
static_assert(sizeof(struct rxm_cm_rsp) == 16);
static_assert(sizeof(struct rxm_cm_rej) == 2);

/* rxm_hdr.type */
enum {
	RXM_EAGER_MSG,
	RXM_SEGMENT,
	RXM_RNDV_REQ,
	RXM_READ_DONE,
	RXM_ATOMIC,
	RXM_ATOMIC_RSP,
	RXM_CREDITS,
	RXM_WRITE_DATA,
	RXM_WRITE_DONE,
};

/* rxm_hdr.op */
enum {
	RXM_OP_MSG,
	RXM_OP_TAGGED,
	RXM_OP_ATOMIC = 6,
	RXM_OP_ATOMIC_FETCH,
	RXM_OP_ATOMIC_COMPARE,
};

/* rxm_hdr.ctrl_data of a segment, in its low two bits */
enum {
	RXM_SEG_FIRST = 1,
	RXM_SEG_MIDDLE,
	RXM_SEG_LAST,
};

#define RXM_F_CQ_DATA		BIT(17)	/* rxm_hdr.flags */

/* Header of each packet */
struct rxm_hdr {
	u8	ctrl_version;
	u8	type;
	u16	seg_size;
	u32	seg_no;
	u64	conn_id;	/* chosen by the receiver; the low half counts */
	u64	msg_id;
	u64	ctrl_data;
	u8	op_version;
	u8	rx_index;
	u8	op;
	u8	op_data;
	u32	flags;
	u64	size;		/* of the whole message, in bytes */
	u64	data;
	union {
		u64	tag;
		struct {
			u8	datatype;
			u8	atomic_op;
			u8	atomic_count;	/* entries of memory */
			u8	pad[5];
		};
	};
};

/*
 * Description of memory: in bytes for rendezvous, in elements for atomic operations. The
 * header of RXM_ATOMIC is followed by RXM_RNDV_IOV entries, used or not, the operands, and
 * then the values with which the memory is compared.
 */
struct rxm_mem {
	u64	addr;
	u64	len;
	u64	key;
};

/* Follows the header of RXM_RNDV_REQ and RXM_WRITE_DATA */
struct rxm_rndv {
	struct rxm_mem	mem[RXM_RNDV_IOV];
	u8		count;
	u8		pad[7];
};

/* Follows the header of RXM_ATOMIC_RSP; the result follows it */
struct rxm_atomic_rsp {
	__be32	status;		/* 0 or a negative error code */
	__be32	len;
};

static_assert(sizeof(struct rxm_hdr) == 64);
static_assert(sizeof(struct rxm_rndv) == 104);
static_assert(sizeof(struct rxm_atomic_rsp) == 8);

#define RXM_PACKET	(sizeof(struct rxm_hdr) + RXM_EAGER)
#define RXM_ATOMIC_MEM	(RXM_RNDV_IOV * sizeof(struct rxm_mem))
#define RXM_ATOMIC_MAX	(RXM_EAGER - RXM_ATOMIC_MEM)	/* bytes of all values */

void rxm_cm_req_format(struct rxm_cm_req *req, u16 port, u32 eager,
		       u32 rx_size, u64 id, u8 flow);
int rxm_cm_req_check(const void *data, size_t len, u32 eager);
void rxm_hdr_format(struct rxm_hdr *h, u8 type, u64 conn_id, u64 msg_id);
int rxm_packet_check(const struct rxm_hdr *h, size_t len, u32 eager);

#endif /* _KOFI_RXM_PROTO_H */

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Formatting of packets, and checks of received packets before they are used.
 *
 * A packet that has passed rxm_packet_check() is as long as its header states. Its
 * descriptions of memory are within the packet, and their lengths are consistent. The
 * functions that look up its numbers must check that these are valid.
 */
#include <linux/errno.h>
#include <linux/overflow.h>
#include <linux/string.h>

#include <asm/byteorder.h>

#include <kunit/visibility.h>

#include "proto.h"

/**
 * rxm_cm_req_format - format the private data of a connect request
 * @req: the private data
 * @port: port at which we listen, in CPU order
 * @eager: most payload of a packet
 * @rx_size: number of receives of the connection
 * @id: number of the connection for the peer's packets, and our process above it
 * @flow: RXM_FLOW_ON, ...
 */
void rxm_cm_req_format(struct rxm_cm_req *req, u16 port, u32 eager,
		       u32 rx_size, u64 id, u8 flow)
{
	*req = (struct rxm_cm_req) {
		.version = RXM_CM_VERSION,
		.endian = RXM_ENDIAN,
		.ctrl_version = RXM_CTRL_VERSION,
		.op_version = RXM_OP_VERSION,
		.port = port,
		.flow = flow,
		.eager = eager,
		.rx_size = rx_size,
		.id = id,
	};
}
EXPORT_SYMBOL_IF_KUNIT(rxm_cm_req_format);

/**
 * rxm_cm_req_check - check the private data of a connect request
 * @data: the private data
 * @len: length in bytes
 * @eager: our most payload of a packet, which must equal the peer's
 *
 * Return: 0, or -EPROTO if a connection is impossible.
 */
int rxm_cm_req_check(const void *data, size_t len, u32 eager)
{
	const struct rxm_cm_req *req = data;

	if (len != sizeof(*req) || req->version != RXM_CM_VERSION ||
	    req->endian != RXM_ENDIAN ||
	    req->ctrl_version != RXM_CTRL_VERSION ||
	    req->op_version != RXM_OP_VERSION || !req->port ||
	    req->eager != eager)
		return -EPROTO;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rxm_cm_req_check);

/**
 * rxm_hdr_format - format a header without an operation
 * @h: the header
 * @type: RXM_EAGER_MSG, ...
 * @conn_id: number that the peer has given to the connection
 * @msg_id: number of the message
 */
void rxm_hdr_format(struct rxm_hdr *h, u8 type, u64 conn_id, u64 msg_id)
{
	*h = (struct rxm_hdr) {
		.ctrl_version = RXM_CTRL_VERSION,
		.type = type,
		.conn_id = conn_id,
		.msg_id = msg_id,
		.op_version = RXM_HDR_VERSION,
	};
}
EXPORT_SYMBOL_IF_KUNIT(rxm_hdr_format);

static bool rxm_is_message(const struct rxm_hdr *h)
{
	return h->op_version == RXM_HDR_VERSION && !h->rx_index &&
	       h->op <= RXM_OP_TAGGED && !(h->flags & ~RXM_F_CQ_DATA);
}

static bool rxm_is_segment(const struct rxm_hdr *h, size_t payload)
{
	u64 place = h->ctrl_data & 3;

	return payload && payload == h->seg_size && payload <= h->size &&
	       place && (place == RXM_SEG_FIRST) == !h->seg_no;
}

/* Does a packet describe at least @size bytes of memory? */
static bool rxm_is_rndv(const struct rxm_hdr *h, size_t payload, u64 size)
{
	const struct rxm_rndv *r = (const void *)(h + 1);
	u64 total = 0;
	int i;

	if (payload < sizeof(*r) || !r->count || r->count > RXM_RNDV_IOV)
		return false;
	for (i = 0; i < r->count; i++)
		if (check_add_overflow(total, r->mem[i].len, &total))
			return false;
	return total >= size;
}

/*
 * Check the layout of an atomic request. An answer reports whether it can be executed, so
 * only the layout can violate the protocol.
 */
static bool rxm_is_atomic(const struct rxm_hdr *h, size_t payload)
{
	return h->op_version == RXM_HDR_VERSION && !h->rx_index &&
	       h->op >= RXM_OP_ATOMIC && h->op <= RXM_OP_ATOMIC_COMPARE &&
	       !h->flags && h->size == payload && payload >= RXM_ATOMIC_MEM &&
	       h->atomic_count && h->atomic_count <= RXM_RNDV_IOV;
}

static bool rxm_is_atomic_rsp(const struct rxm_hdr *h, size_t payload)
{
	const struct rxm_atomic_rsp *r = (const void *)(h + 1);

	return payload >= sizeof(*r) &&
	       be32_to_cpu(r->len) <= payload - sizeof(*r);
}

/**
 * rxm_packet_check - check that a peer may send a packet
 * @h: the packet
 * @len: length in bytes
 * @eager: most payload of a packet
 *
 * Return: 0 or -EPROTO.
 */
int rxm_packet_check(const struct rxm_hdr *h, size_t len, u32 eager)
{
	size_t payload = len - sizeof(*h);
	bool ok;

	if (len < sizeof(*h) || payload > eager ||
	    h->ctrl_version != RXM_CTRL_VERSION)
		return -EPROTO;
	switch (h->type) {
	case RXM_EAGER_MSG:
		ok = rxm_is_message(h) && h->size == payload;
		break;
	case RXM_SEGMENT:
		ok = rxm_is_message(h) && rxm_is_segment(h, payload);
		break;
	case RXM_RNDV_REQ:
		ok = rxm_is_message(h) && rxm_is_rndv(h, payload, h->size);
		break;
	case RXM_WRITE_DATA:
		/* the fields of its operation have no meaning */
		ok = rxm_is_rndv(h, payload, 0);
		break;
	case RXM_ATOMIC:
		ok = rxm_is_atomic(h, payload);
		break;
	case RXM_ATOMIC_RSP:
		ok = rxm_is_atomic_rsp(h, payload);
		break;
	case RXM_READ_DONE:
	case RXM_WRITE_DONE:
	case RXM_CREDITS:
		ok = true;
		break;
	default:
		ok = false;
	}
	return ok ? 0 : -EPROTO;
}
EXPORT_SYMBOL_IF_KUNIT(rxm_packet_check);

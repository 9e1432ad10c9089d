// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The wire of kofi_rxm: captured packets through the checks, packets that no peer
 * may send, and what we send compared with what userspace sent.
 */
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/unaligned.h>

#include "../../../providers/rxm/proto.h"
#include "vectors.h"
#include "wire.h"

#include "../kunit.h"

#define WIRE_EAGER	256	/* of the captures over TCP */

/**
 * struct rxm_wire_packet - a captured packet and what is in it
 * @name: of the capture
 * @data: its bytes
 * @len: how many
 * @type: RXM_EAGER_MSG, ...
 * @op: RXM_OP_MSG, ...; not looked at in answers
 * @flags: of the operation
 * @size: of the message
 * @cq_data: of the message
 * @tag: of the message
 * @seg_size: of a segment
 * @seg_no: of a segment
 * @ctrl_data: of a segment, or credits
 */
struct rxm_wire_packet {
	const char	*name;
	const u8	*data;
	size_t		len;
	u8		type;
	u8		op;
	u32		flags;
	u64		size;
	u64		cq_data;
	u64		tag;
	u16		seg_size;
	u32		seg_no;
	u64		ctrl_data;
};

#define WIRE_BYTES(v)	.name = #v, .data = rxm_vector_##v, \
			.len = sizeof(rxm_vector_##v)
static const struct rxm_wire_packet rxm_wire_packets[] = {
	{ WIRE_BYTES(send16_c2s_0), .size = 16 },
	{ WIRE_BYTES(senddata16_c2s_0), .size = 16, .flags = RXM_F_CQ_DATA,
	  .cq_data = 0x0123456789abcdef },
	{ WIRE_BYTES(tsend16_c2s_0), .op = RXM_OP_TAGGED, .size = 16,
	  .tag = 0x1122334455667788 },
	{ WIRE_BYTES(tsenddata16_c2s_0), .op = RXM_OP_TAGGED, .size = 16,
	  .flags = RXM_F_CQ_DATA, .cq_data = 0x55, .tag = 0x1122334455667788 },
	{ WIRE_BYTES(reply_c2s_0), .size = 16 },
	{ WIRE_BYTES(reply_s2c_0), .size = 8 },
	/* left over in userspace's buffer */
	{ WIRE_BYTES(verbs_rxm_eager4_c2s), .size = 4, .ctrl_data = 127 },
	{ WIRE_BYTES(verbs_rxm_eager64_c2s), .size = 64 },
	{ WIRE_BYTES(tsend_big_c2s_0), .type = RXM_SEGMENT, .op = RXM_OP_TAGGED,
	  .size = 600, .tag = 7, .seg_size = 256, .seg_no = 0,
	  .ctrl_data = RXM_SEG_FIRST },
	{ WIRE_BYTES(tsend_big_c2s_1), .type = RXM_SEGMENT, .op = RXM_OP_TAGGED,
	  .size = 600, .tag = 7, .seg_size = 256, .seg_no = 1,
	  .ctrl_data = RXM_SEG_MIDDLE },
	{ WIRE_BYTES(tsend_big_c2s_2), .type = RXM_SEGMENT, .op = RXM_OP_TAGGED,
	  .size = 600, .tag = 7, .seg_size = 88, .seg_no = 2,
	  .ctrl_data = RXM_SEG_LAST },
	{ WIRE_BYTES(rndv_read_c2s_0), .type = RXM_RNDV_REQ,
	  .op = RXM_OP_TAGGED, .size = 600, .tag = 7 },
	{ WIRE_BYTES(rndv_write_c2s_0), .type = RXM_RNDV_REQ,
	  .op = RXM_OP_TAGGED, .size = 600, .tag = 7 },
	{ WIRE_BYTES(rndv_read_s2c_0), .type = RXM_READ_DONE },
	{ WIRE_BYTES(rndv_write_s2c_0), .type = RXM_WRITE_DATA },
	{ WIRE_BYTES(rndv_write_c2s_1), .type = RXM_WRITE_DONE },
	{ WIRE_BYTES(atomic_sum64_c2s_0), .type = RXM_ATOMIC,
	  .op = RXM_OP_ATOMIC, .size = 112, .tag = 0x010207 },
	{ WIRE_BYTES(atomic_fetch_c2s_0), .type = RXM_ATOMIC,
	  .op = RXM_OP_ATOMIC_FETCH, .size = 112, .tag = 0x010207 },
	{ WIRE_BYTES(atomic_cswap_c2s_0), .type = RXM_ATOMIC,
	  .op = RXM_OP_ATOMIC_COMPARE, .size = 112, .tag = 0x010c07 },
	{ WIRE_BYTES(atomic_sum64_s2c_0), .type = RXM_ATOMIC_RSP,
	  .op = RXM_OP_ATOMIC, .size = 8, .tag = 0x0207 },
	{ WIRE_BYTES(atomic_fetch_s2c_0), .type = RXM_ATOMIC_RSP,
	  .op = RXM_OP_ATOMIC_FETCH, .size = 24, .tag = 0x0207 },
	{ WIRE_BYTES(atomic_cswap_s2c_0), .type = RXM_ATOMIC_RSP,
	  .op = RXM_OP_ATOMIC_COMPARE, .size = 16, .tag = 0x0c07 },
	{ WIRE_BYTES(verbs_rxm_credit_c2s), .type = RXM_CREDITS,
	  .ctrl_data = 127 },
	{ WIRE_BYTES(verbs_rxm_credit_s2c), .type = RXM_CREDITS,
	  .ctrl_data = 127 },
};

#define WIRE_EXCHANGE(v, ...) { #v, rxm_vector_##v##_c2s_0,		\
	sizeof(rxm_vector_##v##_c2s_0), rxm_vector_##v##_s2c_0,		\
	sizeof(rxm_vector_##v##_s2c_0), { __VA_ARGS__ } }
const struct rxm_wire_exchange rxm_wire_atomics[RXM_WIRE_ATOMICS] = {
	WIRE_EXCHANGE(atomic_sum64, 5, 6),
	WIRE_EXCHANGE(atomic_fetch, 5, 6),
	WIRE_EXCHANGE(atomic_cswap, 5, 0),
};

static void rxm_wire_desc(const struct rxm_wire_packet *p, char *desc)
{
	strscpy(desc, p->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rxm_wire, rxm_wire_packets, rxm_wire_desc);

static void *wire_copy(struct kunit *test, const void *data, size_t len)
{
	void *p = kunit_kmalloc(test, len, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	return memcpy(p, data, len);
}

static void wire_little_endian(struct kunit *test)
{
	if (IS_ENABLED(CONFIG_CPU_BIG_ENDIAN))
		kunit_skip(test, "the captures are of little-endian machines");
}

static bool wire_describes(const struct rxm_wire_packet *p)
{
	return p->type != RXM_READ_DONE && p->type != RXM_WRITE_DATA &&
	       p->type != RXM_WRITE_DONE && p->type != RXM_CREDITS;
}

/* What userspace has sent passes, in full and no shorter. */
static void rxm_wire_parse(struct kunit *test)
{
	const struct rxm_wire_packet *p = test->param_value;
	const struct rxm_hdr *h;
	size_t len;

	wire_little_endian(test);
	h = wire_copy(test, p->data, p->len);
	KUNIT_ASSERT_EQ(test, rxm_packet_check(h, p->len, WIRE_EAGER), 0);
	KUNIT_EXPECT_EQ(test, h->type, p->type);
	KUNIT_EXPECT_EQ(test, h->ctrl_data, p->ctrl_data);
	KUNIT_EXPECT_EQ(test, h->seg_size, p->seg_size);
	KUNIT_EXPECT_EQ(test, h->seg_no, p->seg_no);
	if (wire_describes(p)) {
		KUNIT_EXPECT_EQ(test, h->op, p->op);
		KUNIT_EXPECT_EQ(test, h->flags, p->flags);
		KUNIT_EXPECT_EQ(test, h->size, p->size);
		KUNIT_EXPECT_EQ(test, h->data, p->cq_data);
		KUNIT_EXPECT_EQ(test, h->tag, p->tag);
	}
	for (len = 0; len < sizeof(*h); len++)
		KUNIT_EXPECT_EQ(test, rxm_packet_check(h, len, WIRE_EAGER),
				-EPROTO);
	if (p->type == RXM_EAGER_MSG || p->type == RXM_SEGMENT ||
	    p->type == RXM_RNDV_REQ || p->type == RXM_ATOMIC)
		KUNIT_EXPECT_EQ(test, rxm_packet_check(h, p->len - 1,
						       WIRE_EAGER), -EPROTO);
	/* more payload than was agreed on */
	KUNIT_EXPECT_EQ(test, rxm_packet_check(h, sizeof(*h) + 1, 0), -EPROTO);
}

/* The header we make of the same message is the one userspace made. */
static void rxm_wire_format(struct kunit *test)
{
	const struct rxm_wire_packet *p = test->param_value;
	const struct rxm_hdr *theirs;
	struct rxm_hdr h;

	wire_little_endian(test);
	if (!wire_describes(p) || p->type == RXM_ATOMIC_RSP)
		return;		/* their operation is left over from another */
	theirs = wire_copy(test, p->data, p->len);
	memset(&h, 0xff, sizeof(h));
	rxm_hdr_format(&h, p->type, theirs->conn_id, theirs->msg_id);
	h.op = p->op;
	h.flags = p->flags;
	h.size = p->size;
	h.data = p->cq_data;
	h.tag = p->tag;
	h.seg_size = p->seg_size;
	h.seg_no = p->seg_no;
	h.ctrl_data = p->ctrl_data;
	KUNIT_EXPECT_MEMEQ(test, (const u8 *)&h, (const u8 *)theirs, sizeof(h));
}

/* The pieces of memory in a captured rendezvous */
static void rxm_wire_rndv(struct kunit *test)
{
	struct rxm_hdr *h;
	struct rxm_rndv *r;
	size_t len = sizeof(rxm_vector_rndv_read_c2s_0);

	wire_little_endian(test);
	h = wire_copy(test, rxm_vector_rndv_read_c2s_0, len);
	r = (struct rxm_rndv *)(h + 1);
	KUNIT_EXPECT_EQ(test, r->count, 1);
	KUNIT_EXPECT_EQ(test, r->mem[0].addr, 0);
	KUNIT_EXPECT_EQ(test, r->mem[0].len, 600);
	KUNIT_EXPECT_EQ(test, r->mem[0].key, 0x80000000);

	r->count = 0;
	KUNIT_EXPECT_EQ(test, rxm_packet_check(h, len, WIRE_EAGER), -EPROTO);
	r->count = 5;
	KUNIT_EXPECT_EQ(test, rxm_packet_check(h, len, WIRE_EAGER), -EPROTO);
	r->count = 1;
	r->mem[0].len = 599;
	KUNIT_EXPECT_EQ(test, rxm_packet_check(h, len, WIRE_EAGER), -EPROTO);
	r->count = 2;
	r->mem[1].len = 1;
	KUNIT_EXPECT_EQ(test, rxm_packet_check(h, len, WIRE_EAGER), 0);
	r->mem[1].len = ~0ULL;
	KUNIT_EXPECT_EQ(test, rxm_packet_check(h, len, WIRE_EAGER), -EPROTO);
}

/* ------------------------------------------------- each byte at each value */

/* Pieces of memory, of which at least @size bytes are described */
static bool wire_rndv_legal(const u8 *p, size_t len, u64 size)
{
	u64 sum = 0, piece;
	int i, count;

	if (len < 104)
		return false;
	count = p[96];
	for (i = 0; i < count && count <= 4; i++) {
		piece = get_unaligned_le64(p + 24 * i + 8);
		if (sum + piece < sum)
			return false;
		sum += piece;
	}
	return count >= 1 && count <= 4 && sum >= size;
}

/* May a peer send this, going by the description of the wire? */
static bool wire_legal(const u8 *p, size_t len)
{
	const u32 flags = get_unaligned_le32(p + 36);
	const u64 size = get_unaligned_le64(p + 40);
	const u8 op = p[34], place = p[24] & 3;
	const size_t payload = len - 64;
	const bool usual = p[32] == 2 && !p[33];
	const bool message = usual && op <= 1 && !(flags & ~0x20000);

	if (payload > WIRE_EAGER || p[0] != 4)
		return false;
	switch (p[1]) {
	case 0:
		return message && size == payload;
	case 1:
		return message && payload && payload == get_unaligned_le16(p + 2) &&
		       payload <= size && place &&
		       (place == 1) == !get_unaligned_le32(p + 4);
	case 2:
		return message && wire_rndv_legal(p + 64, payload, size);
	case 4:
		return usual && op >= 6 && op <= 8 && !flags && size == payload &&
		       payload >= 96 && p[58] >= 1 && p[58] <= 4;
	case 5:
		return payload >= 8 && get_unaligned_be32(p + 68) <= payload - 8;
	case 7:
		return wire_rndv_legal(p + 64, payload, 0);
	default:
		return p[1] == 3 || p[1] == 6 || p[1] == 8;
	}
}

/* What userspace has sent, with each of its bytes at each value it can have */
static void rxm_wire_walk(struct kunit *test)
{
	const struct rxm_wire_packet *p = test->param_value;
	unsigned int right = 0, bad = 0, value;
	size_t at;
	u8 *b;

	wire_little_endian(test);
	b = wire_copy(test, p->data, p->len);
	for (at = 0; at < p->len; at++) {
		for (value = 0; value < 256; value++) {
			bool legal;

			b[at] = value;
			legal = wire_legal(b, p->len);
			right += legal;
			bad += !legal;
			KUNIT_ASSERT_EQ_MSG(test, rxm_packet_check((void *)b, p->len,
								   WIRE_EAGER),
					    legal ? 0 : -EPROTO, "byte %zu: %u", at,
					    value);
		}
		b[at] = p->data[at];
	}
	KUNIT_EXPECT_GT(test, right, 0);
	KUNIT_EXPECT_GT(test, bad, 0);
}

/* The same of a request to connect: what counts are four versions, port and limit. */
static void rxm_wire_walk_request(struct kunit *test)
{
	const size_t len = sizeof(rxm_vector_cm_c2s);
	unsigned int value;
	size_t at;
	u8 *b;

	wire_little_endian(test);
	b = wire_copy(test, rxm_vector_cm_c2s, len);
	for (at = 0; at < len; at++) {
		for (value = 0; value < 256; value++) {
			bool legal = true;

			b[at] = value;
			if (at < 4 || (at >= 8 && at < 12))
				legal = value == rxm_vector_cm_c2s[at];
			else if (at == 4 || at == 5)
				legal = b[4] || b[5];
			KUNIT_ASSERT_EQ_MSG(test, rxm_cm_req_check(b, len, WIRE_EAGER),
					    legal ? 0 : -EPROTO, "byte %zu: %u", at,
					    value);
		}
		b[at] = rxm_vector_cm_c2s[at];
	}
}

static void rxm_wire_cm(struct kunit *test)
{
	const size_t len = sizeof(rxm_vector_cm_c2s);
	struct rxm_cm_req req;
	struct rxm_cm_rsp *rsp;
	struct rxm_cm_rej *rej;
	size_t i;

	wire_little_endian(test);
	KUNIT_EXPECT_EQ(test, rxm_cm_req_check(rxm_vector_cm_c2s, len,
					       WIRE_EAGER), 0);
	KUNIT_EXPECT_EQ(test, rxm_cm_req_check(rxm_vector_cm_reject_ealready_c2s,
					       len, WIRE_EAGER), 0);
	KUNIT_EXPECT_EQ(test, rxm_cm_req_check(rxm_vector_verbs_rxm_req_private,
					       len, RXM_EAGER), 0);
	rxm_cm_req_format(&req, 0xc794, RXM_EAGER, 128, 0xad00000000,
			  RXM_FLOW_ON);
	KUNIT_EXPECT_MEMEQ(test, (const u8 *)&req,
			   rxm_vector_verbs_rxm_req_private, len);
	rxm_cm_req_format(&req, 7481, WIRE_EAGER, 4096, 0x398200000000,
			  RXM_FLOW_OFF);
	KUNIT_EXPECT_MEMEQ(test, (const u8 *)&req, rxm_vector_cm_c2s, len);

	/* another eager limit, another length */
	KUNIT_EXPECT_EQ(test, rxm_cm_req_check(&req, len, RXM_EAGER), -EPROTO);
	for (i = 0; i < len; i++)
		KUNIT_EXPECT_EQ(test, rxm_cm_req_check(&req, i, WIRE_EAGER),
				-EPROTO);
	KUNIT_EXPECT_EQ(test, rxm_cm_req_check(&req, len + 1, WIRE_EAGER),
			-EPROTO);

	rsp = wire_copy(test, rxm_vector_cm_s2c, sizeof(*rsp));
	KUNIT_EXPECT_EQ(test, sizeof(rxm_vector_cm_s2c), sizeof(*rsp));
	KUNIT_EXPECT_EQ(test, rsp->id, 0x398200000000);
	KUNIT_EXPECT_EQ(test, rsp->rx_size, 4096);
	KUNIT_EXPECT_EQ(test, rsp->flow, RXM_FLOW_OFF);
	rsp = wire_copy(test, rxm_vector_verbs_rxm_rep_private, sizeof(*rsp));
	KUNIT_EXPECT_EQ(test, sizeof(rxm_vector_verbs_rxm_rep_private),
			sizeof(*rsp));
	KUNIT_EXPECT_EQ(test, rsp->id, 0xb200000000);
	KUNIT_EXPECT_EQ(test, rsp->rx_size, 128);
	KUNIT_EXPECT_EQ(test, rsp->flow, RXM_FLOW_ON);

	rej = wire_copy(test, rxm_vector_cm_reject_ealready_s2c, sizeof(*rej));
	KUNIT_EXPECT_EQ(test, sizeof(rxm_vector_cm_reject_ealready_s2c),
			sizeof(*rej));
	KUNIT_EXPECT_EQ(test, rej->version, RXM_CM_VERSION);
	KUNIT_EXPECT_EQ(test, rej->reason, RXM_REJ_ALREADY);
}

static struct kunit_case rxm_wire_cases[] = {
	KUNIT_CASE_PARAM(rxm_wire_parse, rxm_wire_gen_params),
	KUNIT_CASE_PARAM(rxm_wire_format, rxm_wire_gen_params),
	KUNIT_CASE_PARAM(rxm_wire_walk, rxm_wire_gen_params),
	KUNIT_CASE(rxm_wire_walk_request),
	KUNIT_CASE(rxm_wire_rndv),
	KUNIT_CASE(rxm_wire_cm),
	{}
};

static struct kunit_suite rxm_wire_suite = {
	.name = "rxm_wire",
	.attr.speed = KUNIT_SPEED_SLOW,
	.test_cases = rxm_wire_cases,
};

kunit_test_suite(rxm_wire_suite);


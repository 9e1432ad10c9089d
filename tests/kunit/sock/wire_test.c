// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The wire of kofi_sock: captured streams through the receive parser in every
 * segmentation, headers that no peer may send, and what we send compared with
 * what userspace sent.
 */
#include <linux/slab.h>
#include <linux/string.h>

#include "../../../providers/sock/rdm.h"
#include "rdm_vectors.h"
#include "vectors.h"

#include "../kunit.h"

/**
 * struct wire_vector - a capture and what is in it
 * @name: of the capture
 * @frames: a CM message as cmTYPE+DATA_LEN, an acknowledgment as ack, another
 *	frame as OP.FLAGS+PAYLOAD or, with segments, OP.FLAGS.SEGMENTS+PAYLOAD
 * @data: its bytes
 * @len: how many
 * @err: the errno of its first frame, 0 if all frames are right
 */
struct wire_vector {
	const char	*name;
	const char	*frames;
	const u8	*data;
	size_t		len;
	int		err;
};

#define WIRE_BYTES(v)	.data = sock_vector_##v, .len = sizeof(sock_vector_##v)
#define WIRE_VECTOR(v, list) { .name = #v, .frames = list, WIRE_BYTES(v) }
#define WIRE_REFUSED(v, errno) { .name = #v, .frames = "", WIRE_BYTES(v), .err = errno }
static const struct wire_vector wire_vectors[] = {
	WIRE_VECTOR(app_fi_msg_pingpong_1_17_0_data_c2s,
		    "cm0+0 0.0+1 0.0+64 0.4+4 ack"),
	WIRE_VECTOR(app_fi_msg_pingpong_1_17_0_data_s2c,
		    "cm1+0 0.0+1 0.0+64 0.4+4 ack"),
	WIRE_VECTOR(app_fi_msg_pingpong_2_6_0_data_c2s,
		    "cm0+0 0.4+0 ack 0.0+64 0.4+4 ack"),
	WIRE_VECTOR(app_fi_msg_pingpong_2_6_0_data_s2c,
		    "cm1+0 ack 0.4+0 0.0+64 ack 0.4+4"),
	WIRE_VECTOR(app_fi_pingpong_msg_data_c2s,
		    "cm0+0 0.0+64 0.4+4 ack"),
	WIRE_VECTOR(app_fi_pingpong_msg_data_s2c,
		    "cm1+0 0.0+64 0.4+4 ack"),
	WIRE_VECTOR(app_fi_rma_bw_write_1_17_0_data_c2s,
		    "cm0+0 0.0+24 0.0+1 0.0+1 4.0.1+64 4.0.1+64 0.4+4 ack"),
	WIRE_VECTOR(app_fi_rma_bw_write_1_17_0_data_s2c,
		    "cm1+0 0.0+24 0.0+1 0.0+1 4.0.1+64 4.0.1+64 0.4+4 ack"),
	WIRE_VECTOR(app_fi_rma_bw_write_2_6_0_data_c2s,
		    "cm0+0 0.0+24 0.4+0 ack 0.4+0 ack 4.0.1+64 4.0.1+64 0.4+4 ack"),
	WIRE_VECTOR(app_fi_rma_bw_write_2_6_0_data_s2c,
		    "cm1+0 0.0+24 ack 0.4+0 ack 0.4+0 4.0.1+64 4.0.1+64 ack 0.4+4"),
	WIRE_VECTOR(cm_connect_accept_data_c2s,
		    "cm0+17"),
	WIRE_VECTOR(cm_connect_accept_data_s2c,
		    "cm1+11"),
	WIRE_VECTOR(cm_connect_accept_nodata_c2s,
		    "cm0+0"),
	WIRE_VECTOR(cm_connect_accept_nodata_s2c,
		    "cm1+0"),
	WIRE_VECTOR(cm_connect_reject_data_c2s,
		    "cm0+17"),
	WIRE_VECTOR(cm_connect_reject_data_s2c,
		    "cm6+12"),
	WIRE_VECTOR(cm_connect_reject_nodata_c2s,
		    "cm0+0"),
	WIRE_VECTOR(cm_connect_reject_nodata_s2c,
		    "cm6+0"),
	WIRE_VECTOR(msg_inject_write8_c2s,
		    "4.0.1+8"),
	WIRE_VECTOR(msg_inject_writedata8_c2s,
		    "4.1.1+8"),
	WIRE_VECTOR(msg_inject8_c2s,
		    "0.0+8"),
	WIRE_VECTOR(msg_read_badaddr_c2s,
		    "2.0.1+0"),
	WIRE_VECTOR(msg_read_write_mix_c2s,
		    "2.0.1+0 4.0.1+16 0.0+4 2.0.1+0"),
	WIRE_VECTOR(msg_read_write_mix_s2c,
		    "3.0+16 3.0+8"),
	WIRE_VECTOR(msg_read32_c2s,
		    "2.0.1+0"),
	WIRE_VECTOR(msg_read32_s2c,
		    "3.0+32"),
	WIRE_VECTOR(msg_readmsg_2rma_c2s,
		    "2.0.2+0"),
	WIRE_VECTOR(msg_readmsg_2rma_s2c,
		    "3.0+24"),
	WIRE_VECTOR(msg_send_dc_c2s,
		    "0.4+16"),
	WIRE_VECTOR(msg_send_dc_s2c,
		    "ack"),
	WIRE_VECTOR(msg_send_tc_c2s,
		    "0.4+16"),
	WIRE_VECTOR(msg_send_tc_s2c,
		    "ack"),
	WIRE_VECTOR(msg_send0_c2s,
		    "0.0+0"),
	WIRE_VECTOR(msg_send16_c2s,
		    "0.0+16"),
	WIRE_VECTOR(msg_senddata_dc_iov2_c2s,
		    "0.5+16"),
	WIRE_VECTOR(msg_senddata_dc_iov2_s2c,
		    "ack"),
	WIRE_VECTOR(msg_senddata16_c2s,
		    "0.1+16"),
	WIRE_VECTOR(msg_tinject_c2s,
		    "1.0+5"),
	WIRE_VECTOR(msg_trunc_recv_dc_c2s,
		    "0.4+64"),
	WIRE_VECTOR(msg_trunc_recv_dc_s2c,
		    "ack"),
	WIRE_VECTOR(msg_trunc_recv_c2s,
		    "0.0+64 0.0+8"),
	WIRE_VECTOR(msg_tsend_c2s,
		    "1.0+40"),
	WIRE_VECTOR(msg_tsenddata_c2s,
		    "1.1+40"),
	WIRE_VECTOR(msg_tsendmsg_dc_c2s,
		    "1.5+12"),
	WIRE_VECTOR(msg_tsendmsg_dc_s2c,
		    "ack"),
	WIRE_VECTOR(msg_unexp_send_c2s,
		    "0.0+64 4.0.1+8"),
	WIRE_VECTOR(msg_write_badkey_dc_c2s,
		    "4.4.1+8"),
	WIRE_VECTOR(msg_write_badkey_c2s,
		    "4.0.1+32"),
	WIRE_VECTOR(msg_write0_c2s,
		    "4.0.1+0"),
	WIRE_VECTOR(msg_write32_c2s,
		    "4.0.1+32"),
	WIRE_VECTOR(msg_writedata32_c2s,
		    "4.1.1+32"),
	WIRE_VECTOR(msg_writemsg_2rma_dc_c2s,
		    "4.4.2+24"),
	WIRE_VECTOR(msg_writemsg_2rma_dc_s2c,
		    "ack"),
	WIRE_REFUSED(msg_writemsg_commit_c2s, -EPROTO),
	WIRE_VECTOR(msg_writemsg_commit_s2c,
		    "ack"),
	WIRE_VECTOR(rdm_cm_v0_c2s,
		    "cm0+8"),
	WIRE_VECTOR(rdm_cm_v0_s2c,
		    "cm1+8"),
	WIRE_VECTOR(rdm_cm_v1_c2s,
		    "cm0+8"),
	WIRE_VECTOR(rdm_cm_v1_s2c,
		    "cm1+8"),
	WIRE_VECTOR(rdm_cm_v1_to_v0_s2c,
		    "cm1+8"),
	WIRE_VECTOR(rdm_cm_simultaneous_lost_s2c,
		    "cm6+8"),
	WIRE_VECTOR(rdm_cm_simultaneous_won_c2s,
		    "cm0+8"),
	WIRE_VECTOR(rdm_cm_simultaneous_won_s2c,
		    "cm1+8"),
	WIRE_VECTOR(rdm_cm_v1_to_v0_c2s,
		    "cm0+8"),
	WIRE_VECTOR(rdm_read32_s2c,
		    "3.0+32"),
	WIRE_VECTOR(rdm_send_big_c2s,
		    "0.0+600"),
	WIRE_VECTOR(rdm_tsend_dc_c2s,
		    "1.4+16"),
	WIRE_VECTOR(rdm_tsend16_c2s,
		    "1.0+16"),
	WIRE_VECTOR(rdm_tsenddata16_c2s,
		    "1.1+16"),
	WIRE_VECTOR(rdm_tsend_big_c2s,
		    "5.0+0 7.0+600"),
	WIRE_VECTOR(rdm_tsend_big_s2c,
		    "6.0+0"),
	WIRE_VECTOR(rdm_tsend_big_dc_c2s,
		    "5.4+0 7.4+600"),
	WIRE_VECTOR(rdm_tsend_big_dc_s2c,
		    "6.0+0 ack"),
	WIRE_VECTOR(rdm_tsenddata_big_c2s,
		    "5.1+0 7.1+600"),
};

static void wire_vector_desc(const struct wire_vector *v, char *desc)
{
	strscpy(desc, v->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(wire_vector, wire_vectors, wire_vector_desc);

/* ------------------------------------------------- parsing as the stream does */

struct wire_parser {
	struct ksk_cm	cm;
	struct ksk_rx	rx;
	bool		in_cm;
	u64		payload;	/* still to come */
	char		found[256];
	size_t		len;
	int		err;
};

static void wire_parser_init(struct wire_parser *p, bool cm)
{
	memset(p, 0, sizeof(*p));
	p->in_cm = cm;
	ksk_rx_init(&p->rx);
}

static void wire_found_cm(struct wire_parser *p)
{
	p->len += scnprintf(p->found + p->len, sizeof(p->found) - p->len,
			    "cm%u+%zu", p->cm.hdr.type,
			    ksk_cm_data_len(&p->cm));
	p->in_cm = false;
}

static void wire_found_frame(struct wire_parser *p)
{
	const struct ksk_frame *f = &p->rx.frame;
	char *sep = p->len ? " " : "";
	char segs[8] = "";

	if (f->rma_count)
		snprintf(segs, sizeof(segs), ".%u", f->rma_count);
	if (f->ack)
		p->len += scnprintf(p->found + p->len,
				    sizeof(p->found) - p->len, "%sack", sep);
	else
		p->len += scnprintf(p->found + p->len,
				    sizeof(p->found) - p->len, "%s%u.%x%s+%llu",
				    sep, f->op, f->flags, segs, f->payload);
	p->payload = f->payload;
	ksk_rx_init(&p->rx);
}

static size_t wire_feed_cm(struct wire_parser *p, const u8 *data, size_t len)
{
	unsigned int want;

	p->err = ksk_cm_want(&p->cm, &want);
	if (p->err)
		return 0;
	len = min_t(size_t, want, len);
	memcpy(p->cm.buf + p->cm.len, data, len);
	p->cm.len += len;
	p->err = ksk_cm_want(&p->cm, &want);
	if (!p->err && !want)
		wire_found_cm(p);
	return len;
}

static size_t wire_feed_header(struct wire_parser *p, const u8 *data,
			       size_t len, bool be)
{
	int ret;

	len = min_t(size_t, len, p->rx.want - p->rx.have);
	memcpy(p->rx.hdr + p->rx.have, data, len);
	p->rx.have += len;
	if (p->rx.have < p->rx.want)
		return len;
	ret = ksk_rx_decode(&p->rx, be);
	if (!ret)
		wire_found_frame(p);
	else if (ret < 0)
		p->err = ret;
	return len;
}

/* One segment of the stream */
static void wire_feed(struct wire_parser *p, const u8 *data, size_t len,
		      bool be)
{
	while (len && !p->err) {
		size_t n;

		if (p->in_cm) {
			n = wire_feed_cm(p, data, len);
		} else if (p->payload) {
			n = min_t(u64, p->payload, len);
			p->payload -= n;
		} else {
			n = wire_feed_header(p, data, len, be);
		}
		data += n;
		len -= n;
	}
}

/* Captures, cut into pieces of every size up to all at once */
static void wire_vectors_parse(struct kunit *test)
{
	const struct wire_vector *v = test->param_value;
	size_t total = v->len, piece;
	struct wire_parser *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	for (piece = 1; piece <= total; piece++) {
		size_t off;

		wire_parser_init(p, strstarts(v->frames, "cm"));
		for (off = 0; off < total; off += piece)
			wire_feed(p, v->data + off, min(piece, total - off),
				  false);
		KUNIT_EXPECT_STREQ_MSG(test, p->found, v->frames,
				       "in pieces of %zu", piece);
		KUNIT_EXPECT_EQ(test, p->err, v->err);
		KUNIT_EXPECT_EQ(test, p->payload, 0);
		if (!v->err)
			KUNIT_EXPECT_EQ(test, p->rx.have, 0);
	}
}

/* Values behind the base header, in both byte orders */
static void wire_words(struct kunit *test)
{
	struct ksk_rx *rx = kunit_kzalloc(test, sizeof(*rx), GFP_KERNEL);
	int be;

	KUNIT_ASSERT_NOT_NULL(test, rx);
	for (be = 0; be < 2; be++) {
		struct ksk_hdr *hdr = (struct ksk_hdr *)rx->hdr;
		u8 *p = rx->hdr + sizeof(*hdr);
		int i;

		memset(rx, 0, sizeof(*rx));
		ksk_rx_init(rx);
		hdr->version = 9;	/* not looked at */
		hdr->op = KSK_OP_WRITE;
		hdr->rma_count = 4;
		hdr->hdr_size = 120;
		ksk_put16(KSK_F_CQ_DATA | KSK_F_DELIVERY, hdr->flags, be);
		ksk_put64(120 + 10, hdr->size, be);
		ksk_put64(0x0123456789abcdef, p, be);
		for (i = 0; i < 4; i++) {
			ksk_put64(0xffff0000ffff0000 + i, p + 8 + i * 24, be);
			ksk_put64(i + 1, p + 16 + i * 24, be);
			ksk_put64(~(u64)i, p + 24 + i * 24, be);
		}
		rx->have = 16;
		KUNIT_ASSERT_EQ(test, ksk_rx_decode(rx, be), 1);
		KUNIT_EXPECT_EQ(test, rx->want, 120);
		rx->have = 120;
		KUNIT_ASSERT_EQ(test, ksk_rx_decode(rx, be), 0);
		KUNIT_EXPECT_EQ(test, rx->frame.op, KSK_OP_WRITE);
		KUNIT_EXPECT_EQ(test, rx->frame.flags,
				KSK_F_CQ_DATA | KSK_F_DELIVERY);
		KUNIT_EXPECT_EQ(test, rx->frame.payload, 10);
		KUNIT_EXPECT_EQ(test, rx->frame.data, 0x0123456789abcdef);
		for (i = 0; i < 4; i++) {
			KUNIT_EXPECT_EQ(test, rx->frame.rma[i].addr,
					0xffff0000ffff0000 + i);
			KUNIT_EXPECT_EQ(test, rx->frame.rma[i].len, i + 1);
			KUNIT_EXPECT_EQ(test, rx->frame.rma[i].key, ~(u64)i);
		}
	}
}

/* The values of a tagged message and of one that ends a key */
static void wire_message_words(struct kunit *test)
{
	struct ksk_rx *rx = kunit_kzalloc(test, sizeof(*rx), GFP_KERNEL);
	struct ksk_txop *op = kunit_kzalloc(test, sizeof(*op), GFP_KERNEL);
	int be, tagged;

	KUNIT_ASSERT_NOT_NULL(test, rx);
	KUNIT_ASSERT_NOT_NULL(test, op);
	op->data = 0x0123456789abcdef;
	op->inv_key = 0xfedcba9876543210;
	op->tag = 0x1122334455667788;
	op->cur.len = 7;
	for (tagged = 0; tagged < 2; tagged++) {
		op->op = tagged ? KSK_OP_TAGGED : KSK_OP_MSG;
		op->flags = FI_REMOTE_CQ_DATA |
			    (tagged ? 0 : KOFI_REMOTE_INV);
		for (be = 0; be < 2; be++) {
			ksk_rx_init(rx);
			KUNIT_EXPECT_EQ(test, ksk_tx_format_op(rx->hdr, op, 1,
							       be), 32);
			rx->have = 16;
			KUNIT_ASSERT_EQ(test, ksk_rx_decode(rx, be), 1);
			KUNIT_ASSERT_EQ(test, rx->want, 32);
			rx->have = 32;
			KUNIT_ASSERT_EQ(test, ksk_rx_decode(rx, be), 0);
			KUNIT_EXPECT_EQ(test, rx->frame.payload, 7);
			KUNIT_EXPECT_EQ(test, rx->frame.data, op->data);
			KUNIT_EXPECT_EQ(test, rx->frame.tag,
					tagged ? op->tag : 0);
			KUNIT_EXPECT_EQ(test, rx->frame.inv_key,
					tagged ? 0 : op->inv_key);
			KUNIT_EXPECT_EQ(test, rx->frame.flags, KSK_F_CQ_DATA |
					(tagged ? 0 : KSK_F_REMOTE_INV));
		}
	}
}

/* ------------------------------------------------------------- bad headers */

/* A header, and the segments behind it; zero words where nothing is said */
struct wire_bad {
	const char	*name;
	u8		op;
	u16		flags;
	u8		op_data;
	u8		rma_count;
	u8		hdr_size;
	u64		size;
	u64		addr[4];
	u64		len[4];
	bool		good;		/* the limit itself, to show it is one */
};

static const struct wire_bad wire_bads[] = {
	{ "message", .hdr_size = 16, .size = 16, .good = true },
	{ "message, commit flag", .flags = 8, .hdr_size = 16, .size = 16 },
	{ "message, stale segment count", .rma_count = 200, .hdr_size = 16,
	  .size = 16, .good = true },
	{ "largest message", .hdr_size = 16, .size = 16 + KSK_MSG_MAX,
	  .good = true },
	{ "message beyond it", .hdr_size = 16, .size = 17 + KSK_MSG_MAX },
	{ "message of all the bytes there are", .hdr_size = 16, .size = ~0ULL },
	{ "op 5", .op = 5, .hdr_size = 16, .size = 16 },
	{ "op 6", .op = 6, .hdr_size = 16, .size = 16 },
	{ "op 7", .op = 7, .hdr_size = 16, .size = 16 },
	{ "op 8", .op = 8, .hdr_size = 16, .size = 16 },
	{ "op 255", .op = 255, .hdr_size = 16, .size = 16 },
	{ "flag 0x0002", .flags = 2, .hdr_size = 16, .size = 16 },
	{ "flag 0x0010", .flags = 0x10, .hdr_size = 16, .size = 16 },
	{ "flag 0x0080", .flags = 0x80, .hdr_size = 24, .size = 24 },
	{ "flag 0x8000", .flags = 0x8000, .hdr_size = 16, .size = 16 },
	{ "op_data 1", .op_data = 1, .hdr_size = 16, .size = 16 },
	{ "op_data 3", .op_data = 3, .hdr_size = 16, .size = 16 },
	{ "tagged with op_data", .op = 1, .op_data = 2, .hdr_size = 24,
	  .size = 24 },
	{ "hdr_size 0", .hdr_size = 0, .size = 16 },
	{ "hdr_size 8", .hdr_size = 8, .size = 16 },
	{ "hdr_size 15", .hdr_size = 15, .size = 16 },
	{ "hdr_size 17", .hdr_size = 17, .size = 17 },
	{ "hdr_size 24 without data", .hdr_size = 24, .size = 24 },
	{ "hdr_size 16 with data", .flags = 1, .hdr_size = 16, .size = 24 },
	{ "hdr_size 121", .op = 4, .flags = 1, .rma_count = 4,
	  .hdr_size = 121, .size = 121 },
	{ "hdr_size 255", .hdr_size = 255, .size = 255 },
	{ "tagged, hdr_size 16", .op = 1, .hdr_size = 16, .size = 16 },
	{ "size 0", .hdr_size = 16, .size = 0 },
	{ "size below hdr_size", .hdr_size = 16, .size = 15 },
	{ "size below hdr_size with data", .flags = 1, .hdr_size = 24,
	  .size = 23 },
	{ "acknowledgment", .op_data = 2, .hdr_size = 16, .size = 16,
	  .good = true },
	{ "acknowledgment with payload", .op_data = 2, .hdr_size = 16,
	  .size = 17 },
	{ "acknowledgment with data", .op_data = 2, .flags = 1,
	  .hdr_size = 24, .size = 24 },
	{ "acknowledgment to be acknowledged", .op_data = 2, .flags = 4,
	  .hdr_size = 16, .size = 16 },
	{ "read of nothing", .op = 2, .hdr_size = 16, .size = 16 },
	{ "read of 5 segments", .op = 2, .rma_count = 5, .hdr_size = 136,
	  .size = 136 },
	{ "read of 4 segments", .op = 2, .rma_count = 4, .hdr_size = 112,
	  .size = 112, .len = { 1, 2, 3, 4 }, .good = true },
	{ "read with flags", .op = 2, .flags = 4, .rma_count = 1,
	  .hdr_size = 40, .size = 40 },
	{ "read with payload", .op = 2, .rma_count = 1, .hdr_size = 40,
	  .size = 41 },
	{ "read of too much", .op = 2, .rma_count = 1, .hdr_size = 40,
	  .size = 40, .len = { KSK_MSG_MAX + 1 } },
	{ "read of the most", .op = 2, .rma_count = 1, .hdr_size = 40,
	  .size = 40, .len = { KSK_MSG_MAX }, .good = true },
	{ "read of too much in two", .op = 2, .rma_count = 2, .hdr_size = 64,
	  .size = 64, .len = { KSK_MSG_MAX, 1 } },
	{ "read whose sum wraps", .op = 2, .rma_count = 2, .hdr_size = 64,
	  .size = 64, .len = { ~0ULL, 2 } },
	{ "read that wraps around", .op = 2, .rma_count = 1, .hdr_size = 40,
	  .size = 40, .addr = { ~0ULL }, .len = { 1 } },
	{ "response with flags", .op = 3, .flags = 4, .hdr_size = 16,
	  .size = 16 },
	{ "write of no segment", .op = 4, .hdr_size = 16, .size = 16 },
	{ "write of 5 segments", .op = 4, .rma_count = 5, .hdr_size = 136,
	  .size = 136 },
	{ "write, hdr_size of 3 segments for 4", .op = 4, .rma_count = 4,
	  .hdr_size = 88, .size = 88 },
	{ "write shorter than its segments", .op = 4, .rma_count = 1,
	  .hdr_size = 40, .size = 40, .len = { 1 } },
	{ "write longer than its segments", .op = 4, .rma_count = 1,
	  .hdr_size = 40, .size = 42, .len = { 1 } },
	{ "write whose sum wraps", .op = 4, .rma_count = 2, .hdr_size = 64,
	  .size = 65, .len = { ~0ULL, 2 } },
	{ "write that wraps around", .op = 4, .rma_count = 1, .hdr_size = 40,
	  .size = 48, .addr = { ~0ULL - 6 }, .len = { 8 } },
	{ "message that ends a key", .flags = 0x100, .hdr_size = 24,
	  .size = 24, .good = true },
	{ "message that ends a key, with data", .flags = 0x101,
	  .hdr_size = 32, .size = 32, .good = true },
	{ "message that ends a key, no room", .flags = 0x100, .hdr_size = 16,
	  .size = 16 },
	{ "tagged message that ends a key", .op = 1, .flags = 0x100,
	  .hdr_size = 32, .size = 32 },
	{ "write that ends a key", .op = 4, .flags = 0x100, .rma_count = 1,
	  .hdr_size = 48, .size = 48 },
	{ "acknowledgment that ends a key", .op_data = 2, .flags = 0x100,
	  .hdr_size = 24, .size = 24 },
	{ "write to the last byte", .op = 4, .rma_count = 1, .hdr_size = 40,
	  .size = 48, .addr = { ~0ULL - 8 }, .len = { 8 }, .good = true },
};

static void wire_bad_desc(const struct wire_bad *bad, char *desc)
{
	strscpy(desc, bad->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(wire_bad, wire_bads, wire_bad_desc);

static void wire_headers(struct kunit *test)
{
	struct ksk_rx *rx = kunit_kzalloc(test, sizeof(*rx), GFP_KERNEL);
	const struct wire_bad *bad = test->param_value;
	int be;

	KUNIT_ASSERT_NOT_NULL(test, rx);
	for (be = 0; be < 2; be++) {
		struct ksk_hdr *hdr = (struct ksk_hdr *)rx->hdr;
		u8 *p = rx->hdr + sizeof(*hdr);
		int i, ret;

		memset(rx, 0, sizeof(*rx));
		ksk_rx_init(rx);
		hdr->version = KSK_PROTO_VERSION;
		hdr->op = bad->op;
		hdr->op_data = bad->op_data;
		hdr->rma_count = bad->rma_count;
		hdr->hdr_size = bad->hdr_size;
		ksk_put16(bad->flags, hdr->flags, be);
		ksk_put64(bad->size, hdr->size, be);
		p += bad->flags & KSK_F_CQ_DATA ? 8 : 0;
		p += bad->flags & KSK_F_REMOTE_INV ? 8 : 0;
		for (i = 0; i < min_t(int, bad->rma_count, 4); i++) {
			ksk_put64(bad->addr[i], p + i * 24, be);
			ksk_put64(bad->len[i], p + 8 + i * 24, be);
		}
		rx->have = rx->want;
		ret = ksk_rx_decode(rx, be);
		if (ret == 1) {
			KUNIT_ASSERT_LE(test, rx->want, KSK_HDR_MAX);
			rx->have = rx->want;
			ret = ksk_rx_decode(rx, be);
		}
		KUNIT_EXPECT_EQ(test, ret, bad->good ? 0 : -EPROTO);
	}
}

/* ---------------------------------------------------------------- CM bytes */

struct wire_cm {
	const char	*name;
	u8		version;
	u8		type;
	u16		data_len;
	u8		filler;		/* of the bytes that are ignored */
	int		ret;
};

static const struct wire_cm wire_cms[] = {
	{ "request", 3, 0, 0, 0, 0 },
	{ "accept", 3, 1, 256, 0, 0 },
	{ "reject", 3, 6, 1, 0, 0 },
	{ "ignored bytes set", 3, 0, 7, 0xff, 0 },
	{ "version 0", 0, 0, 0, 0, -EPROTO },
	{ "version 2", 2, 0, 0, 0, -EPROTO },
	{ "version 4", 4, 0, 0, 0, -EPROTO },
	{ "type 2", 3, 2, 0, 0, -EPROTO },
	{ "type 5", 3, 5, 0, 0, -EPROTO },
	{ "type 255", 3, 255, 0, 0, -EPROTO },
	{ "257 bytes", 3, 0, 257, 0, -EPROTO },
	{ "65535 bytes", 3, 0, 65535, 0, -EPROTO },
};

static void wire_cm_desc(const struct wire_cm *cm, char *desc)
{
	strscpy(desc, cm->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(wire_cm, wire_cms, wire_cm_desc);

static void wire_cm_headers(struct kunit *test)
{
	const struct wire_cm *c = test->param_value;
	struct ksk_cm *cm = kunit_kzalloc(test, sizeof(*cm), GFP_KERNEL);
	unsigned int want;

	KUNIT_ASSERT_NOT_NULL(test, cm);
	memset(cm->buf, c->filler, sizeof(cm->hdr));
	cm->hdr.version = c->version;
	cm->hdr.type = c->type;
	cm->hdr.data_len = cpu_to_be16(c->data_len);
	cm->len = sizeof(cm->hdr);
	KUNIT_EXPECT_EQ(test, ksk_cm_want(cm, &want), c->ret);
	if (!c->ret)
		KUNIT_EXPECT_EQ(test, want, c->data_len);

	/* a wrong version is known from the first byte on */
	cm->len = 1;
	if (c->version != KSK_PROTO_VERSION)
		KUNIT_EXPECT_EQ(test, ksk_cm_want(cm, &want), -EPROTO);
	else
		KUNIT_EXPECT_EQ(test, ksk_cm_want(cm, &want), 0);
}

/* --------------------------------------------------------------- formatter */

/*
 * Compare with a capture, but for the bytes that say nothing: the number of the
 * frame, and that of RMA segments where there are none.
 */
static void wire_same(struct kunit *test, const u8 *out, size_t len,
		      const u8 *data, u8 id)
{
	u8 hdr[KSK_HDR_MAX];

	memcpy(hdr, out, len);
	KUNIT_EXPECT_EQ(test, hdr[7], id);
	hdr[7] = data[7];
	if (hdr[1] != KSK_OP_READ_REQ && hdr[1] != KSK_OP_WRITE) {
		KUNIT_EXPECT_EQ(test, hdr[5], 0);
		hdr[5] = data[5];
	}
	KUNIT_EXPECT_MEMEQ(test, hdr, data, len);
}

struct wire_format {
	const char		*name;
	u8			op;
	u64			flags;
	u64			cq_data;
	u64			tag;
	u8			rma_count;
	struct fi_rma_iov	rma[KSK_RMA_MAX];
	size_t			payload;
	const u8		*data;
	size_t			len;
};

#define WIRE_SEG(a, l, k) { .addr = a, .len = l, .key = k }
#define WIRE_SEGS(n, ...) .rma_count = n, .rma = { __VA_ARGS__ }
#define WIRE_FORMAT(n, o, f, p, v, ...)					\
	{ .name = n, .op = o, .flags = f, .payload = p, WIRE_BYTES(v),	\
	  ##__VA_ARGS__ }
static const struct wire_format wire_formats[] = {
	WIRE_FORMAT("send", KSK_OP_MSG, 0, 16, msg_send16_c2s),
	WIRE_FORMAT("empty send", KSK_OP_MSG, 0, 0, msg_send0_c2s),
	WIRE_FORMAT("inject", KSK_OP_MSG, FI_INJECT, 8, msg_inject8_c2s),
	WIRE_FORMAT("data", KSK_OP_MSG, FI_REMOTE_CQ_DATA, 16,
		    msg_senddata16_c2s, .cq_data = 0x0123456789abcdef),
	WIRE_FORMAT("delivery complete", KSK_OP_MSG, FI_DELIVERY_COMPLETE, 16,
		    msg_send_dc_c2s),
	WIRE_FORMAT("transmit complete", KSK_OP_MSG, FI_TRANSMIT_COMPLETE, 16,
		    msg_send_tc_c2s),
	WIRE_FORMAT("data, delivery complete", KSK_OP_MSG,
		    FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE, 16,
		    msg_senddata_dc_iov2_c2s, .cq_data = 0x77),
	WIRE_FORMAT("tagged", KSK_OP_TAGGED, 0, 40, msg_tsend_c2s,
		    .tag = 0x1122334455667788),
	WIRE_FORMAT("tagged, data", KSK_OP_TAGGED, FI_REMOTE_CQ_DATA, 40,
		    msg_tsenddata_c2s, .tag = 0x1122334455667788,
		    .cq_data = 0xaabbccddeeff0011),
	WIRE_FORMAT("tagged inject", KSK_OP_TAGGED, FI_INJECT, 5,
		    msg_tinject_c2s, .tag = 7),
	WIRE_FORMAT("tagged, data, delivery complete", KSK_OP_TAGGED,
		    FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE, 12,
		    msg_tsendmsg_dc_c2s, .tag = 7, .cq_data = 0x55),
	WIRE_FORMAT("write", KSK_OP_WRITE, 0, 32, msg_write32_c2s,
		    WIRE_SEGS(1, WIRE_SEG(0x100, 32, 0xc0de))),
	WIRE_FORMAT("empty write", KSK_OP_WRITE, 0, 0, msg_write0_c2s,
		    WIRE_SEGS(1, WIRE_SEG(0x100, 0, 0xc0de))),
	WIRE_FORMAT("write, data", KSK_OP_WRITE, FI_REMOTE_CQ_DATA, 32,
		    msg_writedata32_c2s, .cq_data = 0x0123456789abcdef,
		    WIRE_SEGS(1, WIRE_SEG(0x100, 32, 0xc0de))),
	WIRE_FORMAT("inject write", KSK_OP_WRITE, FI_INJECT, 8,
		    msg_inject_write8_c2s,
		    WIRE_SEGS(1, WIRE_SEG(0x200, 8, 0xc0de))),
	WIRE_FORMAT("inject write, data", KSK_OP_WRITE,
		    FI_INJECT | FI_REMOTE_CQ_DATA, 8,
		    msg_inject_writedata8_c2s, .cq_data = 0x99,
		    WIRE_SEGS(1, WIRE_SEG(0x200, 8, 0xc0de))),
	WIRE_FORMAT("write of two segments, delivery complete", KSK_OP_WRITE,
		    FI_DELIVERY_COMPLETE, 24, msg_writemsg_2rma_dc_c2s,
		    WIRE_SEGS(2, WIRE_SEG(0x10, 8, 0xc0de),
			      WIRE_SEG(0x80, 16, 0xc0de))),
	WIRE_FORMAT("write with another key", KSK_OP_WRITE, 0, 32,
		    msg_write_badkey_c2s,
		    WIRE_SEGS(1, WIRE_SEG(0x100, 32, 0xbad))),
	WIRE_FORMAT("write with another key, delivery complete", KSK_OP_WRITE,
		    FI_DELIVERY_COMPLETE, 8, msg_write_badkey_dc_c2s,
		    WIRE_SEGS(1, WIRE_SEG(0x10, 8, 0xbad))),
	WIRE_FORMAT("read", KSK_OP_READ_REQ, 0, 32, msg_read32_c2s,
		    WIRE_SEGS(1, WIRE_SEG(0x40, 32, 0xc0de))),
	WIRE_FORMAT("read of two segments", KSK_OP_READ_REQ, 0, 24,
		    msg_readmsg_2rma_c2s,
		    WIRE_SEGS(2, WIRE_SEG(0x10, 8, 0xc0de),
			      WIRE_SEG(0x80, 16, 0xc0de))),
	WIRE_FORMAT("read far out", KSK_OP_READ_REQ, 0, 32,
		    msg_read_badaddr_c2s,
		    WIRE_SEGS(1, WIRE_SEG(0x10000, 32, 0xc0de))),
};

static void wire_format_desc(const struct wire_format *f, char *desc)
{
	strscpy(desc, f->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(wire_format, wire_formats, wire_format_desc);

static void wire_format_operation(struct kunit *test)
{
	const struct wire_format *f = test->param_value;
	struct ksk_txop *op = kunit_kzalloc(test, sizeof(*op), GFP_KERNEL);
	u8 hdr[KSK_HDR_MAX];
	unsigned int len, i;

	KUNIT_ASSERT_NOT_NULL(test, op);
	op->op = f->op;
	op->flags = f->flags;
	op->data = f->cq_data;
	op->tag = f->tag;
	op->ack = f->flags & (FI_DELIVERY_COMPLETE | FI_TRANSMIT_COMPLETE);
	op->rma_count = f->rma_count;
	memcpy(op->rma, f->rma, f->rma_count * sizeof(op->rma[0]));
	op->cur.len = f->payload;
	len = ksk_tx_format_op(hdr, op, 0xa5, false);
	KUNIT_ASSERT_EQ(test, len + ksk_txop_payload(op), f->len);
	wire_same(test, hdr, len, f->data, 0xa5);

	/* big-endian: only the words change, and only in their order */
	KUNIT_EXPECT_EQ(test, ksk_tx_format_op(hdr, op, 0xa5, true), len);
	KUNIT_EXPECT_EQ(test, hdr[2], f->data[3]);
	KUNIT_EXPECT_EQ(test, hdr[3], f->data[2]);
	for (i = 8; i < len; i += 8)
		KUNIT_EXPECT_EQ(test, ksk_get64(hdr + i, true),
				ksk_get64(f->data + i, false));
}

/* Answers to reads */
static void wire_format_response(struct kunit *test)
{
	static const struct {
		u64		payload;
		const u8	*data;
		size_t		len;
	} rsps[] = {
		{ .payload = 32, WIRE_BYTES(msg_read32_s2c) },
		{ .payload = 24, WIRE_BYTES(msg_readmsg_2rma_s2c) },
		/* the first of two */
		{ .payload = 16, .data = sock_vector_msg_read_write_mix_s2c,
		  .len = 32 },
		{ .payload = 8,
		  .data = sock_vector_msg_read_write_mix_s2c + 32, .len = 24 },
	};
	u8 hdr[KSK_HDR_MAX];
	int i;

	for (i = 0; i < ARRAY_SIZE(rsps); i++) {
		KUNIT_ASSERT_EQ(test, ksk_tx_format_rsp(hdr, rsps[i].payload,
							7, false), 16);
		KUNIT_EXPECT_EQ(test, 16 + rsps[i].payload, rsps[i].len);
		wire_same(test, hdr, 16, rsps[i].data, 7);
		KUNIT_ASSERT_EQ(test, ksk_tx_format_rsp(hdr, rsps[i].payload,
							7, true), 16);
		KUNIT_EXPECT_EQ(test, ksk_get64(hdr + 8, true), rsps[i].len);
	}
}

static void wire_format_acknowledgment(struct kunit *test)
{
	u8 hdr[KSK_HDR_MAX];

	KUNIT_ASSERT_EQ(test, ksk_tx_format_ack(hdr, 255, false), 16);
	wire_same(test, hdr, 16, sock_vector_msg_send_dc_s2c, 255);
	KUNIT_ASSERT_EQ(test, ksk_tx_format_ack(hdr, 0, true), 16);
	KUNIT_EXPECT_EQ(test, ksk_get64(hdr + 8, true), 16);
}

/* The three frames of a rendezvous, of 600 bytes with context 1 */
static void wire_format_rendezvous(struct kunit *test)
{
	static const struct {
		u64		flags;
		const u8	*data;
		unsigned int	rts;
	} sent[] = {
		{ 0, sock_vector_rdm_tsend_big_c2s, 32 },
		{ FI_DELIVERY_COMPLETE, sock_vector_rdm_tsend_big_dc_c2s, 32 },
		{ FI_REMOTE_CQ_DATA, sock_vector_rdm_tsenddata_big_c2s, 40 },
	};
	struct ksk_txop *op = kunit_kzalloc(test, sizeof(*op), GFP_KERNEL);
	u8 hdr[KSK_HDR_MAX];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, op);
	op->ctx = 1;
	op->tag = 7;
	op->data = 0x123456789abcdef;
	op->cur.len = 600;
	for (i = 0; i < ARRAY_SIZE(sent); i++) {
		op->flags = sent[i].flags;
		op->ack = op->flags & FI_DELIVERY_COMPLETE;
		op->op = KSK_OP_RTS;
		KUNIT_ASSERT_EQ(test, ksk_tx_format_op(hdr, op, 3, false),
				sent[i].rts);
		wire_same(test, hdr, sent[i].rts, sent[i].data, 3);
		op->op = KSK_OP_DATA;
		KUNIT_ASSERT_EQ(test, ksk_tx_format_op(hdr, op, 4, false), 16);
		wire_same(test, hdr, 16, sent[i].data + sent[i].rts, 4);
	}
	KUNIT_ASSERT_EQ(test, ksk_tx_format_cts(hdr, 1, 5, false), 16);
	wire_same(test, hdr, 16, sock_vector_rdm_tsend_big_s2c, 5);
}

/* On a little-endian machine the captures are what we must send. */
static const struct wire_cm_format {
	const char	*name;
	u8		type;
	const char	*private;
	const u8	*data;
	size_t		len;
} wire_cm_formats[] = {
	{ "request", KSK_CM_REQUEST, "kofi-connect-data",
	  WIRE_BYTES(cm_connect_accept_data_c2s) },
	{ "request without data", KSK_CM_REQUEST, "",
	  WIRE_BYTES(cm_connect_accept_nodata_c2s) },
	{ "accept", KSK_CM_ACCEPT, "kofi-accept",
	  WIRE_BYTES(cm_connect_accept_data_s2c) },
	{ "accept without data", KSK_CM_ACCEPT, "",
	  WIRE_BYTES(cm_connect_accept_nodata_s2c) },
	{ "reject", KSK_CM_REJECT, "kofi-reject!",
	  WIRE_BYTES(cm_connect_reject_data_s2c) },
	{ "reject without data", KSK_CM_REJECT, "",
	  WIRE_BYTES(cm_connect_reject_nodata_s2c) },
};

static void wire_cm_format_desc(const struct wire_cm_format *f, char *desc)
{
	strscpy(desc, f->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(wire_cm_format, wire_cm_formats, wire_cm_format_desc);

static void wire_format_cm(struct kunit *test)
{
	const struct wire_cm_format *f = test->param_value;
	struct ksk_cm *cm = kunit_kzalloc(test, sizeof(*cm), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, cm);
	if (IS_ENABLED(CONFIG_CPU_BIG_ENDIAN))
		kunit_skip(test, "the captures are of little-endian machines");
	memset(cm, 0xff, sizeof(*cm));
	ksk_cm_format(cm, f->type, 0, f->private, strlen(f->private));
	KUNIT_ASSERT_EQ(test, cm->len, f->len);
	KUNIT_EXPECT_MEMEQ(test, cm->buf, f->data, f->len);
	KUNIT_EXPECT_EQ(test, ksk_cm_ext(cm), 0);

	/* extensions change bytes 16 to 23 and nothing else */
	ksk_cm_format(cm, f->type, KSK_EXT_ALL, f->private,
		      strlen(f->private));
	KUNIT_EXPECT_EQ(test, ksk_cm_ext(cm), KSK_EXT_ALL);
	KUNIT_EXPECT_EQ(test, get_unaligned_be32(cm->buf + 16),
			KSK_EXT_MAGIC);
	KUNIT_EXPECT_EQ(test, get_unaligned_be32(cm->buf + 20), KSK_EXT_ALL);
	memset(cm->buf + 16, 0, 8);
	KUNIT_EXPECT_MEMEQ(test, cm->buf, f->data, f->len);

	/* bits without a meaning are not agreed on */
	ksk_cm_format(cm, f->type, ~0U, f->private, strlen(f->private));
	KUNIT_EXPECT_EQ(test, ksk_cm_ext(cm), KSK_EXT_ALL);
	cm->buf[16] ^= 1;
	KUNIT_EXPECT_EQ(test, ksk_cm_ext(cm), 0);
}

static struct kunit_case wire_cases[] = {
	KUNIT_CASE_PARAM(wire_vectors_parse, wire_vector_gen_params),
	KUNIT_CASE(wire_words),
	KUNIT_CASE(wire_message_words),
	KUNIT_CASE_PARAM(wire_headers, wire_bad_gen_params),
	KUNIT_CASE_PARAM(wire_cm_headers, wire_cm_gen_params),
	KUNIT_CASE_PARAM(wire_format_operation, wire_format_gen_params),
	KUNIT_CASE(wire_format_response),
	KUNIT_CASE(wire_format_acknowledgment),
	KUNIT_CASE(wire_format_rendezvous),
	KUNIT_CASE_PARAM(wire_format_cm, wire_cm_format_gen_params),
	{}
};

static struct kunit_suite wire_suite = {
	.name = "sock_wire",
	.test_cases = wire_cases,
};

kunit_test_suite(wire_suite);

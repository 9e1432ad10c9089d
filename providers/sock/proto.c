// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Formatting and checking messages of the wire: functions of their arguments alone.
 * proto.h describes the messages. (rx.c decodes the headers of frames.)
 */
#include <kunit/visibility.h>

#include "sock.h"

/* ----------------------------------------------------- headers of frames */

/* Header of an operation. Returns its length. */
unsigned int ksk_tx_format_op(void *buf, const struct ksk_txop *op, u8 id,
			      bool be)
{
	struct ksk_hdr *hdr = buf;
	u8 *p = (u8 *)(hdr + 1);
	u16 flags = op->ack ? KSK_F_DELIVERY : 0;
	bool words = op->op != KSK_OP_DATA;
	unsigned int i;

	*hdr = (struct ksk_hdr) {
		.version = KSK_PROTO_VERSION,
		.op = op->op,
		.op_data = op->ctx,
		.rma_count = op->rma_count,
		.id = id,
	};
	if (op->flags & FI_REMOTE_CQ_DATA)
		flags |= KSK_F_CQ_DATA;
	if (flags & KSK_F_CQ_DATA && words) {
		ksk_put64(op->data, p, be);
		p += 8;
	}
	if (op->flags & KOFI_REMOTE_INV) {
		flags |= KSK_F_REMOTE_INV;
		ksk_put64(op->inv_key, p, be);
		p += 8;
	}
	if (op->op == KSK_OP_TAGGED || op->op == KSK_OP_RTS) {
		ksk_put64(op->tag, p, be);
		p += 8;
	}
	if (op->op == KSK_OP_RTS) {
		ksk_put64(op->cur.len, p, be);
		p += 8;
	}
	for (i = 0; i < op->rma_count; i++) {
		struct ksk_rma *rma = (struct ksk_rma *)p;

		ksk_put64(op->rma[i].addr, rma->addr, be);
		ksk_put64(op->rma[i].len, rma->len, be);
		ksk_put64(op->rma[i].key, rma->key, be);
		p += sizeof(*rma);
	}
	hdr->hdr_size = p - (u8 *)buf;
	ksk_put16(flags, hdr->flags, be);
	ksk_put64(hdr->hdr_size + ksk_txop_payload(op), hdr->size, be);
	return hdr->hdr_size;
}
EXPORT_SYMBOL_IF_KUNIT(ksk_tx_format_op);

/* A header without words, of @payload bytes */
static unsigned int ksk_tx_format_bare(struct ksk_hdr *hdr, u8 op, u8 op_data,
				       u64 payload, u8 id, bool be)
{
	*hdr = (struct ksk_hdr) {
		.version = KSK_PROTO_VERSION,
		.op = op,
		.op_data = op_data,
		.hdr_size = sizeof(*hdr),
		.id = id,
	};
	ksk_put64(sizeof(*hdr) + payload, hdr->size, be);
	return sizeof(*hdr);
}

/* Header of the response to a read */
unsigned int ksk_tx_format_rsp(void *buf, u64 payload, u8 id, bool be)
{
	return ksk_tx_format_bare(buf, KSK_OP_READ_RSP, 0, payload, id, be);
}
EXPORT_SYMBOL_IF_KUNIT(ksk_tx_format_rsp);

unsigned int ksk_tx_format_ack(void *buf, u8 id, bool be)
{
	return ksk_tx_format_bare(buf, KSK_OP_MSG, KSK_OP_DATA_ACK, 0, id, be);
}
EXPORT_SYMBOL_IF_KUNIT(ksk_tx_format_ack);

/* The payload of an announced message is wanted. */
unsigned int ksk_tx_format_cts(void *buf, u8 ctx, u8 id, bool be)
{
	return ksk_tx_format_bare(buf, KSK_OP_CTS, ctx, 0, id, be);
}
EXPORT_SYMBOL_IF_KUNIT(ksk_tx_format_cts);

/* ------------------------------------------- messages that connect two peers */

void ksk_cm_format(struct ksk_cm *cm, u8 type, u32 ext, const void *data,
		   size_t len)
{
	cm->hdr = (struct ksk_cm_hdr) {
		.version = KSK_PROTO_VERSION,
		.type = type,
		.data_len = cpu_to_be16(len),
		.magic = cpu_to_be32(ext ? KSK_EXT_MAGIC : 0),
		.ext = cpu_to_be32(ext),
		.probe = type == KSK_CM_REJECT ? 0 : 1,
	};
	if (len)
		memcpy(cm->buf + sizeof(cm->hdr), data, len);
	cm->len = sizeof(cm->hdr) + len;
	cm->off = 0;
}
EXPORT_SYMBOL_IF_KUNIT(ksk_cm_format);

/*
 * Count the bytes that a message being received still lacks. Returns 0, or
 * -EPROTO if the received bytes cannot become a message.
 */
int ksk_cm_want(const struct ksk_cm *cm, unsigned int *want)
{
	unsigned int len;

	if (cm->len >= sizeof(cm->hdr.version) &&
	    cm->hdr.version != KSK_PROTO_VERSION)
		return -EPROTO;
	if (cm->len < sizeof(cm->hdr)) {
		*want = sizeof(cm->hdr) - cm->len;
		return 0;
	}
	if (cm->hdr.type != KSK_CM_REQUEST && cm->hdr.type != KSK_CM_ACCEPT &&
	    cm->hdr.type != KSK_CM_REJECT)
		return -EPROTO;
	len = be16_to_cpu(cm->hdr.data_len);
	if (len > KSK_CM_DATA_MAX)
		return -EPROTO;
	*want = sizeof(cm->hdr) + len - cm->len;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(ksk_cm_want);

/* Words of the data phase are little-endian only if both hosts are. */
bool ksk_cm_big_endian(const struct ksk_cm *cm)
{
	return IS_ENABLED(CONFIG_CPU_BIG_ENDIAN) || cm->hdr.probe != 1;
}

/* Extensions that the sender of a message and this side have in common */
u32 ksk_cm_ext(const struct ksk_cm *cm)
{
	if (cm->hdr.magic != cpu_to_be32(KSK_EXT_MAGIC))
		return 0;
	return be32_to_cpu(cm->hdr.ext) & KSK_EXT_ALL;
}
EXPORT_SYMBOL_IF_KUNIT(ksk_cm_ext);

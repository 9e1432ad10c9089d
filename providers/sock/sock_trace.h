/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kofi_sock

#if !defined(_KOFI_SOCK_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _KOFI_SOCK_TRACE_H

#include <linux/tracepoint.h>

#include "sock.h"

DECLARE_EVENT_CLASS(kofi_sock_frame,
	TP_PROTO(const struct ksk_conn *c, const struct ksk_hdr *hdr,
		 u64 payload),
	TP_ARGS(c, hdr, payload),
	TP_STRUCT__entry(
		__field(u32, ep)
		__field(u8, op)
		__field(u8, op_data)
		__field(u16, flags)
		__field(u8, id)
		__field(u64, payload)
	),
	TP_fast_assign(
		__entry->ep = c->ep->base.obj.id;
		__entry->op = hdr->op;
		__entry->op_data = hdr->op_data;
		__entry->flags = ksk_get16(hdr->flags, c->be);
		__entry->id = hdr->id;
		__entry->payload = payload;
	),
	TP_printk("ep=%u op=%u op_data=%u flags=%#x id=%u payload=%llu",
		  __entry->ep, __entry->op, __entry->op_data, __entry->flags,
		  __entry->id, __entry->payload)
);

DEFINE_EVENT(kofi_sock_frame, kofi_sock_tx,
	TP_PROTO(const struct ksk_conn *c, const struct ksk_hdr *hdr,
		 u64 payload),
	TP_ARGS(c, hdr, payload));

DEFINE_EVENT(kofi_sock_frame, kofi_sock_rx,
	TP_PROTO(const struct ksk_conn *c, const struct ksk_hdr *hdr,
		 u64 payload),
	TP_ARGS(c, hdr, payload));

TRACE_EVENT(kofi_sock_stall,
	TP_PROTO(const struct ksk_conn *c, u8 op, u64 payload),
	TP_ARGS(c, op, payload),
	TP_STRUCT__entry(
		__field(u32, ep)
		__field(u8, op)
		__field(u64, payload)
	),
	TP_fast_assign(
		__entry->ep = c->ep->base.obj.id;
		__entry->op = op;
		__entry->payload = payload;
	),
	TP_printk("ep=%u op=%u payload=%llu", __entry->ep, __entry->op,
		  __entry->payload)
);

TRACE_EVENT(kofi_sock_zc,
	TP_PROTO(const struct ksk_conn *c, const struct ksk_txop *op, int err),
	TP_ARGS(c, op, err),
	TP_STRUCT__entry(
		__field(u32, ep)
		__field(size_t, len)
		__field(bool, copied)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->ep = c->ep->base.obj.id;
		__entry->len = op->cur.len;
		__entry->copied = op->zc_copied;
		__entry->err = err;
	),
	TP_printk("ep=%u len=%zu copied=%d err=%d", __entry->ep, __entry->len,
		  __entry->copied, __entry->err)
);

TRACE_EVENT(kofi_sock_violation,
	TP_PROTO(const struct ksk_conn *c, const char *what, const u8 *hdr,
		 unsigned int len),
	TP_ARGS(c, what, hdr, len),
	TP_STRUCT__entry(
		__field(u32, ep)
		__string(what, what)
		__field(unsigned int, len)
		__array(u8, hdr, sizeof(struct ksk_hdr))
	),
	TP_fast_assign(
		__entry->ep = c->ep->base.obj.id;
		__assign_str(what);
		__entry->len = len;
		memcpy(__entry->hdr, hdr, sizeof(struct ksk_hdr));
	),
	TP_printk("ep=%u %s len=%u header=%*ph", __entry->ep, __get_str(what),
		  __entry->len, (int)sizeof(struct ksk_hdr), __entry->hdr)
);

TRACE_EVENT(kofi_sock_cm,
	TP_PROTO(u32 id, const char *step, int err),
	TP_ARGS(id, step, err),
	TP_STRUCT__entry(
		__field(u32, id)
		__string(step, step)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->id = id;
		__assign_str(step);
		__entry->err = err;
	),
	TP_printk("id=%u %s err=%d", __entry->id, __get_str(step),
		  __entry->err)
);

/* The same, of one connection of many */
TRACE_EVENT_CONDITION(kofi_sock_peer,
	TP_PROTO(struct ksk_conn *c, const char *step, int err),
	TP_ARGS(c, step, err),
	TP_CONDITION(c->ops->many),
	TP_STRUCT__entry(
		__field(u32, ep)
		__sockaddr(peer, sizeof(union kofi_ip))
		__string(step, step)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->ep = c->ep->base.obj.id;
		__assign_sockaddr(peer, &ksk_peer(c)->base.addr,
				  sizeof(union kofi_ip));
		__assign_str(step);
		__entry->err = err;
	),
	TP_printk("ep=%u peer=%pISpc %s err=%d", __entry->ep,
		  __get_sockaddr(peer), __get_str(step), __entry->err)
);

#endif /* _KOFI_SOCK_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE sock_trace
#include <trace/define_trace.h>

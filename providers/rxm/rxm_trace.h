/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kofi_rxm

#if !defined(_KOFI_RXM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _KOFI_RXM_TRACE_H

#include <linux/tracepoint.h>

#include "rxm.h"

/* A step of the connection to a peer */
TRACE_EVENT(kofi_rxm_peer,
	TP_PROTO(const struct rxm_conn *c, const char *step, int err),
	TP_ARGS(c, step, err),
	TP_STRUCT__entry(
		__field(u32, ep)
		__sockaddr(peer, sizeof(union kofi_ip))
		__string(step, step)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->ep = c->ep->base.obj.id;
		__assign_sockaddr(peer, &c->base.addr, sizeof(union kofi_ip));
		__assign_str(step);
		__entry->err = err;
	),
	TP_printk("ep=%u peer=%pISpc %s err=%d", __entry->ep,
		  __get_sockaddr(peer), __get_str(step), __entry->err)
);

/* A transmit that was sent or has failed; for a rendezvous, its request */
TRACE_EVENT(kofi_rxm_tx,
	TP_PROTO(const struct rxm_conn *c, const struct rxm_op *op),
	TP_ARGS(c, op),
	TP_STRUCT__entry(
		__field(u32, ep)
		__sockaddr(peer, sizeof(union kofi_ip))
		__field(u8, how)
		__field(size_t, len)
		__field(u64, tag)
	),
	TP_fast_assign(
		__entry->ep = c->ep->base.obj.id;
		__assign_sockaddr(peer, &c->base.addr, sizeof(union kofi_ip));
		__entry->how = op->how;
		__entry->len = op->cur.len;
		__entry->tag = op->tag;
	),
	TP_printk("ep=%u peer=%pISpc how=%u len=%zu tag=%#llx", __entry->ep,
		  __get_sockaddr(peer), __entry->how, __entry->len,
		  __entry->tag)
);

DECLARE_EVENT_CLASS(kofi_rxm_packet,
	TP_PROTO(const struct rxm_conn *c, const struct rxm_hdr *hdr,
		 size_t len),
	TP_ARGS(c, hdr, len),
	TP_STRUCT__entry(
		__field(u32, ep)
		__sockaddr(peer, sizeof(union kofi_ip))
		__field(size_t, len)
		__array(u8, hdr, sizeof(struct rxm_hdr))
	),
	TP_fast_assign(
		__entry->ep = c->ep->base.obj.id;
		__assign_sockaddr(peer, &c->base.addr, sizeof(union kofi_ip));
		__entry->len = len;
		memcpy(__entry->hdr, hdr, sizeof(struct rxm_hdr));
	),
	TP_printk("ep=%u peer=%pISpc len=%zu header=%*ph", __entry->ep,
		  __get_sockaddr(peer), __entry->len,
		  (int)sizeof(struct rxm_hdr), __entry->hdr)
);

DEFINE_EVENT(kofi_rxm_packet, kofi_rxm_rx,
	TP_PROTO(const struct rxm_conn *c, const struct rxm_hdr *hdr,
		 size_t len),
	TP_ARGS(c, hdr, len));

/* A packet that may be shorter than a header */
DEFINE_EVENT(kofi_rxm_packet, kofi_rxm_violation,
	TP_PROTO(const struct rxm_conn *c, const struct rxm_hdr *hdr,
		 size_t len),
	TP_ARGS(c, hdr, len));

#endif /* _KOFI_RXM_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE rxm_trace
#include <trace/define_trace.h>

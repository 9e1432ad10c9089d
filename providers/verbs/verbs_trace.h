/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kofi_verbs

#if !defined(_KOFI_VERBS_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _KOFI_VERBS_TRACE_H

#include <linux/tracepoint.h>

#include "verbs.h"

TRACE_EVENT(kofi_verbs_tx,
	TP_PROTO(const struct vrb_ep *ep, const struct vrb_txop *op, int err),
	TP_ARGS(ep, op, err),
	TP_STRUCT__entry(
		__field(u32, ep)
		__field(u32, op)
		__field(u64, flags)
		__field(size_t, len)
		__field(u32, wrs)
		__field(bool, signaled)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->ep = ep->base.obj.id;
		__entry->op = op->op;
		__entry->flags = op->flags;
		__entry->len = op->len;
		__entry->wrs = op->wrs;
		__entry->signaled = op->signaled;
		__entry->err = err;
	),
	TP_printk("ep=%u op=%u flags=%#llx len=%zu wrs=%u signaled=%d err=%d",
		  __entry->ep, __entry->op, __entry->flags, __entry->len,
		  __entry->wrs, __entry->signaled, __entry->err)
);

/* A failed work request, or the first flushed one of an endpoint without a known error */
TRACE_EVENT(kofi_verbs_error,
	TP_PROTO(const struct vrb_ep *ep, const struct ib_wc *wc),
	TP_ARGS(ep, wc),
	TP_STRUCT__entry(
		__field(u32, ep)
		__field(u32, status)
		__field(u32, vendor)
	),
	TP_fast_assign(
		__entry->ep = ep->base.obj.id;
		__entry->status = wc->status;
		__entry->vendor = wc->vendor_err;
	),
	TP_printk("ep=%u status=%u vendor=%#x", __entry->ep, __entry->status,
		  __entry->vendor)
);

TRACE_EVENT(kofi_verbs_cm,
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

#endif /* _KOFI_VERBS_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE verbs_trace
#include <trace/define_trace.h>

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Trace points of the core: the life of objects, connections, completions. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kofi

#if !defined(_KOFI_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _KOFI_TRACE_H

#include <linux/tracepoint.h>

#include "cq.h"

TRACE_DEFINE_ENUM(KOFI_EP_IDLE);
TRACE_DEFINE_ENUM(KOFI_EP_ENABLED);
TRACE_DEFINE_ENUM(KOFI_EP_CONNECTING);
TRACE_DEFINE_ENUM(KOFI_EP_CONNECTED);
TRACE_DEFINE_ENUM(KOFI_EP_SHUTDOWN);

#define kofi_show_ep_state(state)				\
	__print_symbolic(state,					\
			 { KOFI_EP_IDLE, "idle" },		\
			 { KOFI_EP_ENABLED, "enabled" },	\
			 { KOFI_EP_CONNECTING, "connecting" },	\
			 { KOFI_EP_CONNECTED, "connected" },	\
			 { KOFI_EP_SHUTDOWN, "shutdown" })

DECLARE_EVENT_CLASS(kofi_obj,
	TP_PROTO(const struct kofi_obj *obj),
	TP_ARGS(obj),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(u32, parent)
		__field(size_t, fclass)
	),
	TP_fast_assign(
		__entry->id = obj->id;
		__entry->parent = obj->parent ? obj->parent->id : 0;
		__entry->fclass = obj->fid->fclass;
	),
	TP_printk("id=%u class=%zu parent=%u",
		  __entry->id, __entry->fclass, __entry->parent)
);

DEFINE_EVENT(kofi_obj, kofi_obj_open,
	TP_PROTO(const struct kofi_obj *obj),
	TP_ARGS(obj)
);

DEFINE_EVENT(kofi_obj, kofi_obj_close,
	TP_PROTO(const struct kofi_obj *obj),
	TP_ARGS(obj)
);

TRACE_EVENT(kofi_device,
	TP_PROTO(const char *prov, const char *name, bool there),
	TP_ARGS(prov, name, there),
	TP_STRUCT__entry(
		__string(prov, prov)
		__string(name, name)
		__field(bool, there)
	),
	TP_fast_assign(
		__assign_str(prov);
		__assign_str(name);
		__entry->there = there;
	),
	TP_printk("%s %s %s", __get_str(prov), __get_str(name),
		  __entry->there ? "comes" : "goes")
);

TRACE_EVENT(kofi_info_excluded,
	TP_PROTO(const struct fi_info *info, const char *part),
	TP_ARGS(info, part),
	TP_STRUCT__entry(
		__string(domain, info->domain_attr->name)
		__field(int, type)
		__field(u32, protocol)
		__string(part, part)
	),
	TP_fast_assign(
		__assign_str(domain);
		__entry->type = info->ep_attr->type;
		__entry->protocol = info->ep_attr->protocol;
		__assign_str(part);
	),
	TP_printk("%s type=%d protocol=%u by %s", __get_str(domain),
		  __entry->type, __entry->protocol, __get_str(part))
);

TRACE_EVENT(kofi_ep_state,
	TP_PROTO(const struct kofi_ep *ep, int from, int to),
	TP_ARGS(ep, from, to),
	TP_STRUCT__entry(
		__field(u32, ep)
		__field(int, from)
		__field(int, to)
	),
	TP_fast_assign(
		__entry->ep = ep->obj.id;
		__entry->from = from;
		__entry->to = to;
	),
	TP_printk("ep=%u %s -> %s", __entry->ep,
		  kofi_show_ep_state(__entry->from),
		  kofi_show_ep_state(__entry->to))
);

DECLARE_EVENT_CLASS(kofi_eq,
	TP_PROTO(const struct kofi_eq *eq, const struct kofi_event *ev),
	TP_ARGS(eq, ev),
	TP_STRUCT__entry(
		__field(u32, eq)
		__field(u32, event)
		__field(int, err)
		__field(int, prov_errno)
		__field(const void *, fid)
		__field(size_t, len)
	),
	TP_fast_assign(
		__entry->eq = eq->obj.id;
		__entry->event = ev->event;
		__entry->err = ev->err;
		__entry->prov_errno = ev->prov_errno;
		__entry->fid = ev->fid;
		__entry->len = ev->data_len;
	),
	TP_printk("eq=%u event=%u err=%d prov_errno=%d fid=%p data=%zu",
		  __entry->eq, __entry->event, __entry->err,
		  __entry->prov_errno, __entry->fid, __entry->len)
);

DEFINE_EVENT(kofi_eq, kofi_eq_queue,
	TP_PROTO(const struct kofi_eq *eq, const struct kofi_event *ev),
	TP_ARGS(eq, ev)
);

DEFINE_EVENT(kofi_eq, kofi_eq_read,
	TP_PROTO(const struct kofi_eq *eq, const struct kofi_event *ev),
	TP_ARGS(eq, ev)
);

TRACE_EVENT(kofi_cq_complete,
	TP_PROTO(const struct kofi_cq *cq, const struct kofi_ep *ep,
		 const struct kofi_wc *wc),
	TP_ARGS(cq, ep, wc),
	TP_STRUCT__entry(
		__field(u32, cq)
		__field(u32, ep)
		__field(const void *, context)
		__field(u64, flags)
		__field(size_t, len)
		__field(int, err)
		__field(int, prov_errno)
	),
	TP_fast_assign(
		__entry->cq = cq->obj.id;
		__entry->ep = ep->obj.id;
		__entry->context = wc->op_context;
		__entry->flags = wc->flags;
		__entry->len = wc->len;
		__entry->err = wc->err;
		__entry->prov_errno = wc->prov_errno;
	),
	TP_printk("cq=%u ep=%u context=%p flags=0x%llx len=%zu err=%d prov_errno=%d",
		  __entry->cq, __entry->ep, __entry->context, __entry->flags,
		  __entry->len, __entry->err, __entry->prov_errno)
);

DECLARE_EVENT_CLASS(kofi_ep,
	TP_PROTO(const struct kofi_ep *ep),
	TP_ARGS(ep),
	TP_STRUCT__entry(
		__field(u32, ep)
	),
	TP_fast_assign(
		__entry->ep = ep->obj.id;
	),
	TP_printk("ep=%u", __entry->ep)
);

DEFINE_EVENT(kofi_ep, kofi_ep_again,
	TP_PROTO(const struct kofi_ep *ep),
	TP_ARGS(ep)
);

DEFINE_EVENT(kofi_ep, kofi_ep_write_space,
	TP_PROTO(const struct kofi_ep *ep),
	TP_ARGS(ep)
);

TRACE_EVENT(kofi_mr_refused,
	TP_PROTO(const struct kofi_ep *ep, u64 key, u64 addr, u64 len,
		 u64 access, int err),
	TP_ARGS(ep, key, addr, len, access, err),
	TP_STRUCT__entry(
		__field(u32, ep)
		__field(u64, key)
		__field(u64, addr)
		__field(u64, len)
		__field(u64, access)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->ep = ep->obj.id;
		__entry->key = key;
		__entry->addr = addr;
		__entry->len = len;
		__entry->access = access;
		__entry->err = err;
	),
	TP_printk("ep=%u key=0x%llx addr=0x%llx len=%llu access=0x%llx err=%d",
		  __entry->ep, __entry->key, __entry->addr, __entry->len,
		  __entry->access, __entry->err)
);

TRACE_EVENT(kofi_mr_end,
	TP_PROTO(const struct kofi_mr *mr, int err, u64 flags),
	TP_ARGS(mr, err, flags),
	TP_STRUCT__entry(
		__field(u64, key)
		__field(u64, len)
		__field(u64, flags)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->key = mr->mr.key;
		__entry->len = mr->len;
		__entry->flags = flags;
		__entry->err = err;
	),
	TP_printk("key=0x%llx len=%llu flags=0x%llx err=%d", __entry->key,
		  __entry->len, __entry->flags, __entry->err)
);

#endif /* _KOFI_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE kofi_trace
#include <trace/define_trace.h>

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Text for values and attributes, in the layout of libfabric's fi_tostr(3), so that
 * the output of both can be compared line by line.
 *
 * Tables describe the output: some are shared with the kofi tool; those for values that
 * no message carries are here. Text goes into a seq_buf, which drops text that does not
 * fit. Addresses of objects are printed as hashes, as the kernel does everywhere.
 */
#include <linux/export.h>
#include <linux/percpu.h>
#include <linux/seq_buf.h>
#include <linux/sizes.h>
#include <linux/socket.h>
#include <rdma/ib.h>

#include "internal.h"
#include "names.h"

#define KOFI_TOSTR_MAX	SZ_8K
#define KOFI_TOSTR_TAB	4

/* ------------------------------------------------------------------- tables */

#define N(name)	{ (name), #name }

static const struct kofi_name kofi_names_cq_event_flags[] = {
	N(FI_SEND), N(FI_RECV), N(FI_RMA), N(FI_ATOMIC), N(FI_MSG),
	N(FI_TAGGED), N(FI_READ), N(FI_WRITE), N(FI_REMOTE_READ),
	N(FI_REMOTE_WRITE), N(FI_REMOTE_CQ_DATA), N(FI_MULTI_RECV), N(FI_MORE),
	N(FI_CLAIM), {}
};

static const struct kofi_name kofi_names_av_flags[] = {
	N(FI_EVENT), N(FI_READ), N(FI_SYMMETRIC), {}
};

static const struct kofi_name kofi_names_cq_flags[] = {
	N(FI_AFFINITY), {}
};

static const struct kofi_name kofi_names_mr_access[] = {
	N(FI_RECV), N(FI_SEND), N(FI_READ), N(FI_WRITE), N(FI_REMOTE_READ),
	N(FI_REMOTE_WRITE), N(FI_COLLECTIVE), {}
};

static const struct kofi_name kofi_names_atomic_type[] = {
	N(FI_INT8), N(FI_UINT8), N(FI_INT16), N(FI_UINT16), N(FI_INT32),
	N(FI_UINT32), N(FI_INT64), N(FI_UINT64), N(FI_FLOAT), N(FI_DOUBLE),
	N(FI_FLOAT_COMPLEX), N(FI_DOUBLE_COMPLEX), N(FI_LONG_DOUBLE),
	N(FI_LONG_DOUBLE_COMPLEX), N(FI_INT128), N(FI_UINT128), {}
};

static const struct kofi_name kofi_names_atomic_op[] = {
	N(FI_MIN), N(FI_MAX), N(FI_SUM), N(FI_PROD), N(FI_LOR), N(FI_LAND),
	N(FI_BOR), N(FI_BAND), N(FI_LXOR), N(FI_BXOR), N(FI_ATOMIC_READ),
	N(FI_ATOMIC_WRITE), N(FI_CSWAP), N(FI_CSWAP_NE), N(FI_CSWAP_LE),
	N(FI_CSWAP_LT), N(FI_CSWAP_GE), N(FI_CSWAP_GT), N(FI_MSWAP), N(FI_DIFF), {}
};

static const struct kofi_name kofi_names_eq_event[] = {
	N(FI_NOTIFY), N(FI_CONNREQ), N(FI_CONNECTED), N(FI_SHUTDOWN),
	N(FI_MR_COMPLETE), N(FI_AV_COMPLETE), N(FI_JOIN_COMPLETE),
	N(KOFI_UNEXPECTED), {}
};

static const struct kofi_name kofi_names_cq_format[] = {
	N(FI_CQ_FORMAT_UNSPEC), N(FI_CQ_FORMAT_CONTEXT), N(FI_CQ_FORMAT_MSG),
	N(FI_CQ_FORMAT_DATA), N(FI_CQ_FORMAT_TAGGED), {}
};

static const struct kofi_name kofi_names_cq_wait_cond[] = {
	N(FI_CQ_COND_NONE), N(FI_CQ_COND_THRESHOLD), {}
};

static const struct kofi_name kofi_names_wait_obj[] = {
	N(FI_WAIT_NONE), N(FI_WAIT_UNSPEC), N(FI_WAIT_SET), N(FI_WAIT_FD),
	N(FI_WAIT_MUTEX_COND), N(FI_WAIT_YIELD), N(FI_WAIT_POLLFD),
	N(KOFI_WAIT_QUEUE), {}
};

static const struct kofi_name kofi_names_cntr_events[] = {
	N(FI_CNTR_EVENTS_COMP), N(FI_CNTR_EVENTS_BYTES), {}
};

/* Enumerations no call here takes or returns: libfabric's, by their numbers. */
static const struct kofi_name kofi_names_op_type[] = {
	{ 0, "FI_OP_RECV" }, { 1, "FI_OP_SEND" }, { 2, "FI_OP_TRECV" },
	{ 3, "FI_OP_TSEND" }, { 4, "FI_OP_READ" }, { 5, "FI_OP_WRITE" },
	{ 6, "FI_OP_ATOMIC" }, { 7, "FI_OP_FETCH_ATOMIC" },
	{ 8, "FI_OP_COMPARE_ATOMIC" }, { 9, "FI_OP_CNTR_SET" },
	{ 10, "FI_OP_CNTR_ADD" }, {}
};

static const struct kofi_name kofi_names_collective_op[] = {
	{ 0, "FI_BARRIER" }, { 1, "FI_BROADCAST" }, { 2, "FI_ALLTOALL" },
	{ 3, "FI_ALLREDUCE" }, { 4, "FI_ALLGATHER" },
	{ 5, "FI_REDUCE_SCATTER" }, { 6, "FI_REDUCE" }, { 7, "FI_SCATTER" },
	{ 8, "FI_GATHER" }, {}
};

static const struct kofi_name kofi_names_hmem_iface[] = {
	{ 0, "FI_HMEM_SYSTEM" }, { 1, "FI_HMEM_CUDA" }, { 2, "FI_HMEM_ROCR" },
	{ 3, "FI_HMEM_ZE" }, { 4, "FI_HMEM_NEURON" },
	{ 5, "FI_HMEM_SYNAPSEAI" }, {}
};

static const struct kofi_name kofi_names_log_level[] = {
	{ 0, "warn" }, { 1, "trace" }, { 2, "info" }, { 3, "debug" }, {}
};

static const struct kofi_name kofi_names_log_subsys[] = {
	{ 0, "core" }, { 1, "fabric" }, { 2, "domain" }, { 3, "ep_ctrl" },
	{ 4, "ep_data" }, { 5, "av" }, { 6, "cq" }, { 7, "eq" }, { 8, "mr" },
	{ 9, "cntr" }, {}
};

#define FIELD(type, member, how, ...) {					\
	.label = #member, .form = KOFI_FORM_##how,			\
	KOFI_FIELD_AT(struct type, member), ##__VA_ARGS__ }

static const struct kofi_field kofi_av_attr_fields[] = {
	FIELD(fi_av_attr, type, ENUM, .names = kofi_names_av_type),
	FIELD(fi_av_attr, count, NUMBER),
	FIELD(fi_av_attr, ep_per_node, NUMBER),
	FIELD(fi_av_attr, name, TEXT),
	FIELD(fi_av_attr, flags, FLAGS, .names = kofi_names_av_flags),
	{}
};

static const struct kofi_field kofi_cq_attr_fields[] = {
	FIELD(fi_cq_attr, size, NUMBER),
	FIELD(fi_cq_attr, flags, FLAGS, .names = kofi_names_cq_flags),
	FIELD(fi_cq_attr, format, ENUM, .names = kofi_names_cq_format),
	FIELD(fi_cq_attr, wait_obj, ENUM, .names = kofi_names_wait_obj),
	FIELD(fi_cq_attr, signaling_vector, INT),
	FIELD(fi_cq_attr, wait_cond, ENUM, .names = kofi_names_cq_wait_cond),
	{}
};

static const struct kofi_field kofi_cntr_attr_fields[] = {
	FIELD(fi_cntr_attr, events, ENUM, .names = kofi_names_cntr_events),
	FIELD(fi_cntr_attr, wait_obj, ENUM, .names = kofi_names_wait_obj),
	FIELD(fi_cntr_attr, flags, HEX),
	{}
};

static const struct kofi_field kofi_mr_attr_fields[] = {
	FIELD(fi_mr_attr, mr_iov, POINTER, .null = "(nil)"),
	FIELD(fi_mr_attr, iov_count, NUMBER),
	FIELD(fi_mr_attr, access, FLAGS, .names = kofi_names_mr_access),
	FIELD(fi_mr_attr, offset, HEX),
	FIELD(fi_mr_attr, requested_key, HEX),
	FIELD(fi_mr_attr, context, POINTER, .null = "(nil)"),
	FIELD(fi_mr_attr, auth_key_size, NUMBER),
	{}
};

static const struct kofi_field kofi_cq_err_entry_fields[] = {
	FIELD(fi_cq_err_entry, op_context, POINTER, .null = "(nil)"),
	FIELD(fi_cq_err_entry, flags, HEX),
	FIELD(fi_cq_err_entry, len, NUMBER),
	FIELD(fi_cq_err_entry, buf, POINTER, .null = "(nil)"),
	FIELD(fi_cq_err_entry, data, NUMBER),
	FIELD(fi_cq_err_entry, tag, HEX),
	FIELD(fi_cq_err_entry, olen, NUMBER),
	FIELD(fi_cq_err_entry, err, INT),
	FIELD(fi_cq_err_entry, prov_errno, INT),
	FIELD(fi_cq_err_entry, err_data, POINTER, .null = "(nil)"),
	FIELD(fi_cq_err_entry, err_data_size, NUMBER),
	{}
};

/*
 * Type of the data of an enum fi_type: a member of a structure that begins at the data. For
 * a structure it is a pointer to the data.
 */
#define VALUE(how, type, table)	\
	{ .label = "", .form = KOFI_FORM_##how, .size = sizeof(type),	\
	  .names = kofi_names_##table }
#define STRUCT(type)		\
	{ .label = "fi_" #type, .form = KOFI_FORM_NEST,			\
	  .size = sizeof(void *), .nest = kofi_##type##_fields }

static const struct kofi_field kofi_types[] = {
	[FI_TYPE_INFO]		= STRUCT(info),
	[FI_TYPE_EP_TYPE]	= VALUE(ENUM, int, ep_type),
	[FI_TYPE_CAPS]		= VALUE(FLAGS, u64, caps),
	[FI_TYPE_OP_FLAGS]	= VALUE(FLAGS, u64, op_flags),
	[FI_TYPE_ADDR_FORMAT]	= VALUE(OPEN_ENUM, u32, addr_format),
	[FI_TYPE_TX_ATTR]	= STRUCT(tx_attr),
	[FI_TYPE_RX_ATTR]	= STRUCT(rx_attr),
	[FI_TYPE_EP_ATTR]	= STRUCT(ep_attr),
	[FI_TYPE_DOMAIN_ATTR]	= STRUCT(domain_attr),
	[FI_TYPE_FABRIC_ATTR]	= STRUCT(fabric_attr),
	[FI_TYPE_THREADING]	= VALUE(ENUM, int, threading),
	[FI_TYPE_PROGRESS]	= VALUE(ENUM, int, progress),
	[FI_TYPE_PROTOCOL]	= VALUE(OPEN_ENUM, u32, protocol),
	[FI_TYPE_MSG_ORDER]	= VALUE(FLAGS, u64, msg_order),
	[FI_TYPE_MODE]		= VALUE(FLAGS, u64, mode),
	[FI_TYPE_AV_TYPE]	= VALUE(ENUM, int, av_type),
	[FI_TYPE_ATOMIC_TYPE]	= VALUE(ENUM, int, atomic_type),
	[FI_TYPE_ATOMIC_OP]	= VALUE(ENUM, int, atomic_op),
	[FI_TYPE_EQ_EVENT]	= VALUE(ENUM, int, eq_event),
	[FI_TYPE_CQ_EVENT_FLAGS] = VALUE(FLAGS, u64, cq_event_flags),
	[FI_TYPE_MR_MODE]	= VALUE(FLAGS, u32, mr_mode),
	[FI_TYPE_OP_TYPE]	= VALUE(ENUM, int, op_type),
	[FI_TYPE_FID]		= { .label = "fid", .form = KOFI_FORM_FID },
	[FI_TYPE_COLLECTIVE_OP]	= VALUE(ENUM, int, collective_op),
	[FI_TYPE_HMEM_IFACE]	= VALUE(ENUM, int, hmem_iface),
	[FI_TYPE_CQ_FORMAT]	= VALUE(ENUM, int, cq_format),
	[FI_TYPE_LOG_LEVEL]	= VALUE(ENUM, int, log_level),
	[FI_TYPE_LOG_SUBSYS]	= VALUE(ENUM, int, log_subsys),
	[FI_TYPE_AV_ATTR]	= STRUCT(av_attr),
	[FI_TYPE_CQ_ATTR]	= STRUCT(cq_attr),
	[FI_TYPE_MR_ATTR]	= STRUCT(mr_attr),
	[FI_TYPE_CNTR_ATTR]	= STRUCT(cntr_attr),
	[FI_TYPE_CQ_ERR_ENTRY]	= STRUCT(cq_err_entry),
	[FI_TYPE_CQ_WAIT_COND]	= VALUE(ENUM, int, cq_wait_cond),
	[FI_TYPE_WAIT_OBJ]	= VALUE(ENUM, int, wait_obj),
};

/* ------------------------------------------------------------------ members */

/**
 * kofi_field_uint - value of a member that is a number
 * @f: the member
 * @from: the structure
 *
 * Return: the number, without regard to a sign.
 */
u64 kofi_field_uint(const struct kofi_field *f, const void *from)
{
	const void *at = from + f->offset;

	switch (f->size) {
	case sizeof(u8):
		return *(const u8 *)at;
	case sizeof(u16):
		return *(const u16 *)at;
	case sizeof(u32):
		return *(const u32 *)at;
	default:
		return *(const u64 *)at;
	}
}

/**
 * kofi_field_ptr - value of a member that is a pointer
 * @f: the member, of %KOFI_FORM_TEXT or a form after it
 * @from: the structure
 *
 * Return: the pointer, for %KOFI_FORM_PCI a pointer to the part; NULL if there is
 * nothing.
 */
const void *kofi_field_ptr(const struct kofi_field *f, const void *from)
{
	const struct fi_bus_attr *bus = from;

	if (f->form == KOFI_FORM_PCI)
		return bus->bus_type == FI_BUS_PCI ? &bus->attr.pci : NULL;
	return *(const void *const *)(from + f->offset);
}

/**
 * kofi_field_addr_len - length of an address
 * @f: member of an fi_info that points to an address
 * @info: the fi_info
 *
 * Return: the length in bytes.
 */
size_t kofi_field_addr_len(const struct kofi_field *f,
			   const struct fi_info *info)
{
	return f->offset == offsetof(struct fi_info, src_addr) ?
	       info->src_addrlen : info->dest_addrlen;
}

/* --------------------------------------------------------------------- text */

static void kofi_str_flags(struct seq_buf *s, const struct kofi_name *n,
			   u64 flags, const char *sep)
{
	for (; n->name; n++) {
		if ((flags & n->value) != n->value)
			continue;
		seq_buf_printf(s, "%s%s", sep, n->name);
		sep = ", ";
	}
}

static void kofi_str_order(struct seq_buf *s, const struct kofi_name *n,
			   u64 order)
{
	bool none = !(order & FI_ORDER_STRICT);

	if (none)
		seq_buf_printf(s, "FI_ORDER_NONE");
	kofi_str_flags(s, n, order, none ? ", " : "");
}

static void kofi_str_addr(struct seq_buf *s, u32 format, const void *addr,
			  size_t len)
{
	const struct sockaddr_ib *sib = addr;
	const struct sockaddr *sa = addr;

	if (format == FI_ADDR_STR) {
		seq_buf_printf(s, "%.*s", (int)min_t(size_t, len, FI_PATH_MAX),
			       (const char *)addr);
		return;
	}
	if (format > FI_SOCKADDR_IB && format != FI_SOCKADDR_IP)
		return;
	if (len < offsetofend(struct sockaddr, sa_family))
		return;
	if (sa->sa_family == AF_INET && len >= sizeof(struct sockaddr_in))
		seq_buf_printf(s, "fi_sockaddr_in://%pISpc", addr);
	else if (sa->sa_family == AF_INET6 && len >= sizeof(struct sockaddr_in6))
		seq_buf_printf(s, "fi_sockaddr_in6://%pISpc", addr);
	else if (sa->sa_family == AF_IB && len >= sizeof(*sib))
		seq_buf_printf(s, "fi_sockaddr_ib://[%pI6c]:0x%x:0x%x:0x%x",
			       &sib->sib_addr, be16_to_cpu(sib->sib_pkey),
			       (u32)(be64_to_cpu(sib->sib_sid) >> 16) & 0xfff,
			       (u32)be64_to_cpu((__force __be64)
						sib->sib_scope_id) & 0xff);
}

/* A pointer, if it is not NULL; otherwise the text of the table. */
static void kofi_str_pointer(struct seq_buf *s, const struct kofi_field *f,
			     const void *from)
{
	const void *to = kofi_field_ptr(f, from);
	const struct fi_info *info = from;

	if (!to)
		seq_buf_printf(s, "%s", f->null ?: "(null)");
	else if (f->form == KOFI_FORM_TEXT)
		seq_buf_printf(s, "%s", (const char *)to);
	else if (f->form == KOFI_FORM_ADDR)
		kofi_str_addr(s, info->addr_format, to,
			      kofi_field_addr_len(f, info));
	else
		seq_buf_printf(s, "0x%p", to);
}

/* A member that is neither a structure nor an object */
static void kofi_str_value(struct seq_buf *s, const struct kofi_field *f,
			   const void *from)
{
	u64 value;

	if (f->form >= KOFI_FORM_TEXT) {
		kofi_str_pointer(s, f, from);
		return;
	}
	value = kofi_field_uint(f, from);
	switch (f->form) {
	case KOFI_FORM_INT:
		seq_buf_printf(s, "%d", (int)value);
		break;
	case KOFI_FORM_HEX:
		seq_buf_printf(s, "0x%llx", value);
		break;
	case KOFI_FORM_HEX64:
		seq_buf_printf(s, "0x%016llx", value);
		break;
	case KOFI_FORM_VERSION:
		seq_buf_printf(s, "%u.%u", FI_MAJOR((u32)value),
			       FI_MINOR((u32)value));
		break;
	case KOFI_FORM_ENUM:
	case KOFI_FORM_OPEN_ENUM:
		seq_buf_printf(s, "%s", kofi_name_of(f->names, value) ?:
			       f->form == KOFI_FORM_OPEN_ENUM &&
			       value & FI_PROV_SPECIFIC ?
			       "Provider specific" : "Unknown");
		break;
	case KOFI_FORM_FLAGS:
		kofi_str_flags(s, f->names, value, "");
		break;
	case KOFI_FORM_ORDER:
		kofi_str_order(s, f->names, value);
		break;
	case KOFI_FORM_CONTEXTS:
		if (value == FI_SHARED_CONTEXT) {
			seq_buf_printf(s, "FI_SHARED_CONTEXT");
			break;
		}
		fallthrough;
	default:
		seq_buf_printf(s, "%llu", value);
		break;
	}
}

/* An object may know how to print itself. It is given the rest of the room. */
static bool kofi_str_fid(struct seq_buf *s, const struct fi_fid *fid)
{
	size_t room;
	char *at;

	if (kofi_fid_class(fid) == FI_CLASS_UNSPEC || !fid->ops ||
	    !fid->ops->tostr)
		return false;
	room = seq_buf_get_buf(s, &at);
	if (!room || fid->ops->tostr(fid, at, room) < 0)
		return false;
	seq_buf_commit(s, strnlen(at, room - 1));
	return true;
}

/* A line, or for a structure its name on a line and its members further in */
static void kofi_str_field(struct seq_buf *s, int depth,
			   const struct kofi_field *f, const void *from)
{
	const char *open = "", *close = "";
	const void *nested;

	if (f->form == KOFI_FORM_HIDDEN)
		return;
	if (f->form >= KOFI_FORM_FID) {
		nested = kofi_field_ptr(f, from);
		if (f->form == KOFI_FORM_FID) {
			if (kofi_str_fid(s, nested))
				return;
		} else if (nested) {
			seq_buf_printf(s, "%*s%s:\n", depth * KOFI_TOSTR_TAB,
				       "", f->label);
			for (f = f->nest; f->label; f++)
				kofi_str_field(s, depth + 1, f, nested);
			return;
		} else if (!f->null) {
			return;
		}
	} else if (f->form == KOFI_FORM_FLAGS || f->form == KOFI_FORM_ORDER) {
		open = "[ ";
		close = " ]";
	}
	seq_buf_printf(s, "%*s%s: %s", depth * KOFI_TOSTR_TAB, "", f->label,
		       open);
	kofi_str_value(s, f, from);
	seq_buf_printf(s, "%s\n", close);
}

/**
 * fi_tostr_r - text for a value or a structure, in the caller's buffer
 * @buf: receives the text, always terminated by NUL
 * @len: bytes of @buf; longer text is cut. Eight kilobytes hold any fi_info.
 * @data: the value: a pointer to an int for enums, to u32 for formats,
 *	protocols and mr_mode, to u64 for other flags, or to the structure; for
 *	%FI_TYPE_VERSION anything
 * @type: type of @data
 *
 * See fi_tostr(3). The text is libfabric's. Addresses in the kernel are hashed.
 *
 * Context: any, unless an object among @data has a tostr of its own that
 * sleeps.
 * Return: @buf, or NULL if @buf or @data is NULL or @len is 0.
 */
char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type type)
{
	static const struct kofi_field nic = {
		.label = "nic", .form = KOFI_FORM_NEST, .nest = kofi_nic_fields,
	};
	const struct kofi_field *f = NULL;
	struct seq_buf s;

	if (!buf || !len || !data)
		return NULL;
	seq_buf_init(&s, buf, len);

	if ((unsigned int)type < ARRAY_SIZE(kofi_types))
		f = &kofi_types[type];
	if (type == FI_TYPE_FID && kofi_fid_class(data) == FI_CLASS_NIC)
		f = &nic;

	if (type == FI_TYPE_VERSION)
		seq_buf_printf(&s, "%d.%d.%d", FI_MAJOR_VERSION,
			       FI_MINOR_VERSION, FI_REVISION_VERSION);
	else if (!f || !f->label)
		seq_buf_printf(&s, "Unknown type");
	else if (f->form >= KOFI_FORM_FID)
		kofi_str_field(&s, 0, f, &data);
	else
		kofi_str_value(&s, f, data);
	seq_buf_str(&s);
	return buf;
}
EXPORT_SYMBOL_GPL(fi_tostr_r);

static char __percpu *kofi_tostr_buf;	/* KOFI_TOSTR_MAX bytes */

/**
 * fi_tostr - text for a value or a structure, in a buffer of this CPU
 * @data: as for fi_tostr_r()
 * @type: type of @data
 *
 * See fi_tostr(3), where the buffer is the calling thread's. Here it is the CPU's: the text
 * stays valid until the next call on this CPU. So the caller keeps preemption disabled from
 * the call to the last use of the text, which CONFIG_DEBUG_PREEMPT checks. If an interrupt
 * handler also calls it, the caller disables interrupts. Use fi_tostr_r() in code that may
 * sleep, or that may be interrupted by an unknown caller.
 *
 * Context: any with preemption disabled, but no NMI.
 * Return: the text, at most 8191 bytes of it, or NULL if @data is NULL.
 */
char *fi_tostr(const void *data, enum fi_type type)
{
	return fi_tostr_r(this_cpu_ptr(kofi_tostr_buf), KOFI_TOSTR_MAX, data,
			  type);
}
EXPORT_SYMBOL_GPL(fi_tostr);

/**
 * kofi_tostr_start - allocate the buffers of fi_tostr()
 *
 * Context: process, when kofi.ko is loaded.
 * Return: 0 or -ENOMEM.
 */
int kofi_tostr_start(void)
{
	kofi_tostr_buf = __alloc_percpu(KOFI_TOSTR_MAX, 1);
	return kofi_tostr_buf ? 0 : -ENOMEM;
}

/**
 * kofi_tostr_stop - free the buffers of fi_tostr()
 *
 * Context: process, when kofi.ko is unloaded.
 */
void kofi_tostr_stop(void)
{
	free_percpu(kofi_tostr_buf);
}

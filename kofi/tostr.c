// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Text for values and attributes, in the layout of libfabric's fi_tostr(3),
 * so that what is printed on either side can be compared line by line.
 *
 * Everything goes through struct kofi_str, which drops what does not fit. Flags
 * and enums are tables, flags in the order in which they are printed.
 * Addresses of objects are printed as hashes, as the kernel does everywhere.
 */
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/socket.h>
#include <linux/stdarg.h>
#include <linux/string.h>
#include <rdma/ib.h>

#include "internal.h"

#define KOFI_STR_TAB	4

/**
 * struct kofi_str - text under construction
 * @buf: it; always ends with a NUL
 * @len: room there, at least 1
 * @pos: where the next piece goes
 * @depth: how far lines are indented
 */
struct kofi_str {
	char		*buf;
	size_t		len;
	size_t		pos;
	unsigned int	depth;
};

static __printf(2, 3) void kofi_str_add(struct kofi_str *str, const char *fmt,
					...)
{
	va_list args;

	va_start(args, fmt);
	str->pos += vscnprintf(str->buf + str->pos, str->len - str->pos, fmt,
			       args);
	va_end(args);
}

/* ---------------------------------------------------------- flags and enums */

/* An entry of a table; the one without a name ends it. */
struct kofi_str_value {
	u64		value;
	const char	*name;
};

#define KOFI_STR(x)	{ (x), #x }

static void kofi_str_flags(struct kofi_str *str,
			   const struct kofi_str_value *table, u64 flags)
{
	const char *sep = "";

	for (; table->name; table++) {
		if (!(flags & table->value))
			continue;
		kofi_str_add(str, "%s%s", sep, table->name);
		sep = ", ";
	}
}

static const char *kofi_str_find(const struct kofi_str_value *table, u32 value)
{
	while (table->name && table->value != value)
		table++;
	return table->name;
}

static void kofi_str_enum(struct kofi_str *str,
			  const struct kofi_str_value *table, u32 value)
{
	kofi_str_add(str, "%s", kofi_str_find(table, value) ?: "Unknown");
}

/* An enum providers may have values of their own in */
static void kofi_str_open_enum(struct kofi_str *str,
			       const struct kofi_str_value *table, u32 value)
{
	const char *other = value & FI_PROV_SPECIFIC ? "Provider specific" :
						       "Unknown";

	kofi_str_add(str, "%s", kofi_str_find(table, value) ?: other);
}

static const struct kofi_str_value kofi_str_caps[] = {
	KOFI_STR(FI_MSG),
	KOFI_STR(FI_RMA),
	KOFI_STR(FI_TAGGED),
	KOFI_STR(FI_ATOMIC),
	KOFI_STR(FI_MULTICAST),
	KOFI_STR(FI_COLLECTIVE),
	KOFI_STR(FI_READ),
	KOFI_STR(FI_WRITE),
	KOFI_STR(FI_RECV),
	KOFI_STR(FI_SEND),
	KOFI_STR(FI_REMOTE_READ),
	KOFI_STR(FI_REMOTE_WRITE),
	KOFI_STR(FI_MULTI_RECV),
	KOFI_STR(FI_REMOTE_CQ_DATA),
	KOFI_STR(FI_TRIGGER),
	KOFI_STR(FI_FENCE),
	KOFI_STR(FI_RMA_PMEM),
	KOFI_STR(FI_SOURCE_ERR),
	KOFI_STR(FI_LOCAL_COMM),
	KOFI_STR(FI_REMOTE_COMM),
	KOFI_STR(FI_SHARED_AV),
	KOFI_STR(FI_RMA_EVENT),
	KOFI_STR(FI_SOURCE),
	KOFI_STR(FI_NAMED_RX_CTX),
	KOFI_STR(FI_DIRECTED_RECV),
	KOFI_STR(FI_HMEM),
	KOFI_STR(FI_AV_USER_ID),
	KOFI_STR(FI_PEER),
	{}
};

static const struct kofi_str_value kofi_str_op_flags[] = {
	KOFI_STR(FI_MULTICAST),
	KOFI_STR(FI_MULTI_RECV),
	KOFI_STR(FI_REMOTE_CQ_DATA),
	KOFI_STR(FI_MORE),
	KOFI_STR(FI_PEEK),
	KOFI_STR(FI_TRIGGER),
	KOFI_STR(FI_FENCE),
	KOFI_STR(FI_COMPLETION),
	KOFI_STR(FI_INJECT),
	KOFI_STR(FI_INJECT_COMPLETE),
	KOFI_STR(FI_TRANSMIT_COMPLETE),
	KOFI_STR(FI_DELIVERY_COMPLETE),
	KOFI_STR(FI_MATCH_COMPLETE),
	KOFI_STR(FI_AFFINITY),
	KOFI_STR(FI_CLAIM),
	KOFI_STR(FI_DISCARD),
	{}
};

static const struct kofi_str_value kofi_str_mode[] = {
	KOFI_STR(FI_CONTEXT),
	KOFI_STR(FI_MSG_PREFIX),
	KOFI_STR(FI_ASYNC_IOV),
	KOFI_STR(FI_RX_CQ_DATA),
	KOFI_STR(FI_LOCAL_MR),
	KOFI_STR(FI_CONTEXT2),
	{}
};

static const struct kofi_str_value kofi_str_msg_order[] = {
	KOFI_STR(FI_ORDER_RAR),
	KOFI_STR(FI_ORDER_RAW),
	KOFI_STR(FI_ORDER_RAS),
	KOFI_STR(FI_ORDER_WAR),
	KOFI_STR(FI_ORDER_WAW),
	KOFI_STR(FI_ORDER_WAS),
	KOFI_STR(FI_ORDER_SAR),
	KOFI_STR(FI_ORDER_SAW),
	KOFI_STR(FI_ORDER_SAS),
	KOFI_STR(FI_ORDER_RMA_RAR),
	KOFI_STR(FI_ORDER_RMA_RAW),
	KOFI_STR(FI_ORDER_RMA_WAR),
	KOFI_STR(FI_ORDER_RMA_WAW),
	KOFI_STR(FI_ORDER_ATOMIC_RAR),
	KOFI_STR(FI_ORDER_ATOMIC_RAW),
	KOFI_STR(FI_ORDER_ATOMIC_WAR),
	KOFI_STR(FI_ORDER_ATOMIC_WAW),
	{}
};

static const struct kofi_str_value kofi_str_mr_mode[] = {
	KOFI_STR(FI_MR_BASIC),
	KOFI_STR(FI_MR_SCALABLE),
	KOFI_STR(FI_MR_LOCAL),
	KOFI_STR(FI_MR_RAW),
	KOFI_STR(FI_MR_VIRT_ADDR),
	KOFI_STR(FI_MR_ALLOCATED),
	KOFI_STR(FI_MR_PROV_KEY),
	KOFI_STR(FI_MR_MMU_NOTIFY),
	KOFI_STR(FI_MR_RMA_EVENT),
	KOFI_STR(FI_MR_ENDPOINT),
	KOFI_STR(FI_MR_HMEM),
	KOFI_STR(FI_MR_COLLECTIVE),
	{}
};

static const struct kofi_str_value kofi_str_cq_event_flags[] = {
	KOFI_STR(FI_SEND),
	KOFI_STR(FI_RECV),
	KOFI_STR(FI_RMA),
	KOFI_STR(FI_ATOMIC),
	KOFI_STR(FI_MSG),
	KOFI_STR(FI_TAGGED),
	KOFI_STR(FI_READ),
	KOFI_STR(FI_WRITE),
	KOFI_STR(FI_REMOTE_READ),
	KOFI_STR(FI_REMOTE_WRITE),
	KOFI_STR(FI_REMOTE_CQ_DATA),
	KOFI_STR(FI_MULTI_RECV),
	KOFI_STR(FI_MORE),
	KOFI_STR(FI_CLAIM),
	{}
};

static const struct kofi_str_value kofi_str_cq_flags[] = {
	KOFI_STR(FI_AFFINITY),
	{}
};

static const struct kofi_str_value kofi_str_addr_format[] = {
	KOFI_STR(FI_FORMAT_UNSPEC),
	KOFI_STR(FI_SOCKADDR),
	KOFI_STR(FI_SOCKADDR_IN),
	KOFI_STR(FI_SOCKADDR_IN6),
	KOFI_STR(FI_SOCKADDR_IB),
	KOFI_STR(FI_ADDR_PSMX),
	KOFI_STR(FI_ADDR_GNI),
	KOFI_STR(FI_ADDR_BGQ),
	KOFI_STR(FI_ADDR_MLX),
	KOFI_STR(FI_ADDR_STR),
	KOFI_STR(FI_ADDR_PSMX2),
	KOFI_STR(FI_ADDR_IB_UD),
	KOFI_STR(FI_ADDR_EFA),
	KOFI_STR(FI_ADDR_PSMX3),
	KOFI_STR(FI_ADDR_OPX),
	KOFI_STR(FI_ADDR_CXI),
	KOFI_STR(FI_ADDR_UCX),
	KOFI_STR(FI_SOCKADDR_IP),
	{}
};

static const struct kofi_str_value kofi_str_ep_type[] = {
	KOFI_STR(FI_EP_UNSPEC),
	KOFI_STR(FI_EP_MSG),
	KOFI_STR(FI_EP_DGRAM),
	KOFI_STR(FI_EP_RDM),
	{}
};

static const struct kofi_str_value kofi_str_protocol[] = {
	KOFI_STR(FI_PROTO_UNSPEC),
	KOFI_STR(FI_PROTO_RDMA_CM_IB_RC),
	KOFI_STR(FI_PROTO_IWARP),
	KOFI_STR(FI_PROTO_IB_UD),
	KOFI_STR(FI_PROTO_PSMX),
	KOFI_STR(FI_PROTO_UDP),
	KOFI_STR(FI_PROTO_SOCK_TCP),
	KOFI_STR(FI_PROTO_MXM),
	KOFI_STR(FI_PROTO_IWARP_RDM),
	KOFI_STR(FI_PROTO_IB_RDM),
	KOFI_STR(FI_PROTO_GNI),
	KOFI_STR(FI_PROTO_RXM),
	KOFI_STR(FI_PROTO_RXD),
	KOFI_STR(FI_PROTO_MLX),
	KOFI_STR(FI_PROTO_NETWORKDIRECT),
	KOFI_STR(FI_PROTO_PSMX2),
	KOFI_STR(FI_PROTO_SHM),
	KOFI_STR(FI_PROTO_MRAIL),
	KOFI_STR(FI_PROTO_RSTREAM),
	KOFI_STR(FI_PROTO_RDMA_CM_IB_XRC),
	KOFI_STR(FI_PROTO_EFA),
	KOFI_STR(FI_PROTO_PSMX3),
	KOFI_STR(FI_PROTO_RXM_TCP),
	KOFI_STR(FI_PROTO_OPX),
	KOFI_STR(FI_PROTO_CXI),
	KOFI_STR(FI_PROTO_XNET),
	{}
};

static const struct kofi_str_value kofi_str_threading[] = {
	KOFI_STR(FI_THREAD_UNSPEC),
	KOFI_STR(FI_THREAD_SAFE),
	KOFI_STR(FI_THREAD_FID),
	KOFI_STR(FI_THREAD_DOMAIN),
	KOFI_STR(FI_THREAD_COMPLETION),
	KOFI_STR(FI_THREAD_ENDPOINT),
	{}
};

static const struct kofi_str_value kofi_str_progress[] = {
	KOFI_STR(FI_PROGRESS_UNSPEC),
	KOFI_STR(FI_PROGRESS_AUTO),
	KOFI_STR(FI_PROGRESS_MANUAL),
	KOFI_STR(FI_PROGRESS_CONTROL_UNIFIED),
	{}
};

static const struct kofi_str_value kofi_str_resource_mgmt[] = {
	KOFI_STR(FI_RM_UNSPEC),
	KOFI_STR(FI_RM_DISABLED),
	KOFI_STR(FI_RM_ENABLED),
	{}
};

static const struct kofi_str_value kofi_str_av_type[] = {
	KOFI_STR(FI_AV_UNSPEC),
	KOFI_STR(FI_AV_MAP),
	KOFI_STR(FI_AV_TABLE),
	{}
};

static const struct kofi_str_value kofi_str_atomic_type[] = {
	KOFI_STR(FI_INT8),
	KOFI_STR(FI_UINT8),
	KOFI_STR(FI_INT16),
	KOFI_STR(FI_UINT16),
	KOFI_STR(FI_INT32),
	KOFI_STR(FI_UINT32),
	KOFI_STR(FI_INT64),
	KOFI_STR(FI_UINT64),
	KOFI_STR(FI_FLOAT),
	KOFI_STR(FI_DOUBLE),
	KOFI_STR(FI_FLOAT_COMPLEX),
	KOFI_STR(FI_DOUBLE_COMPLEX),
	KOFI_STR(FI_LONG_DOUBLE),
	KOFI_STR(FI_LONG_DOUBLE_COMPLEX),
	KOFI_STR(FI_INT128),
	KOFI_STR(FI_UINT128),
	{}
};

static const struct kofi_str_value kofi_str_atomic_op[] = {
	KOFI_STR(FI_MIN),
	KOFI_STR(FI_MAX),
	KOFI_STR(FI_SUM),
	KOFI_STR(FI_PROD),
	KOFI_STR(FI_LOR),
	KOFI_STR(FI_LAND),
	KOFI_STR(FI_BOR),
	KOFI_STR(FI_BAND),
	KOFI_STR(FI_LXOR),
	KOFI_STR(FI_BXOR),
	KOFI_STR(FI_ATOMIC_READ),
	KOFI_STR(FI_ATOMIC_WRITE),
	KOFI_STR(FI_CSWAP),
	KOFI_STR(FI_CSWAP_NE),
	KOFI_STR(FI_CSWAP_LE),
	KOFI_STR(FI_CSWAP_LT),
	KOFI_STR(FI_CSWAP_GE),
	KOFI_STR(FI_CSWAP_GT),
	KOFI_STR(FI_MSWAP),
	{}
};

/* The values of these enums have no use here yet; their order is libfabric's. */
static const struct kofi_str_value kofi_str_op_type[] = {
	{ 0, "FI_OP_RECV" },
	{ 1, "FI_OP_SEND" },
	{ 2, "FI_OP_TRECV" },
	{ 3, "FI_OP_TSEND" },
	{ 4, "FI_OP_READ" },
	{ 5, "FI_OP_WRITE" },
	{ 6, "FI_OP_ATOMIC" },
	{ 7, "FI_OP_FETCH_ATOMIC" },
	{ 8, "FI_OP_COMPARE_ATOMIC" },
	{ 9, "FI_OP_CNTR_SET" },
	{ 10, "FI_OP_CNTR_ADD" },
	{}
};

static const struct kofi_str_value kofi_str_collective_op[] = {
	{ 0, "FI_BARRIER" },
	{ 1, "FI_BROADCAST" },
	{ 2, "FI_ALLTOALL" },
	{ 3, "FI_ALLREDUCE" },
	{ 4, "FI_ALLGATHER" },
	{ 5, "FI_REDUCE_SCATTER" },
	{ 6, "FI_REDUCE" },
	{ 7, "FI_SCATTER" },
	{ 8, "FI_GATHER" },
	{}
};

static const struct kofi_str_value kofi_str_hmem_iface[] = {
	{ 0, "FI_HMEM_SYSTEM" },
	{ 1, "FI_HMEM_CUDA" },
	{ 2, "FI_HMEM_ROCR" },
	{ 3, "FI_HMEM_ZE" },
	{ 4, "FI_HMEM_NEURON" },
	{ 5, "FI_HMEM_SYNAPSEAI" },
	{}
};

static const struct kofi_str_value kofi_str_log_level[] = {
	{ 0, "warn" },
	{ 1, "trace" },
	{ 2, "info" },
	{ 3, "debug" },
	{}
};

static const struct kofi_str_value kofi_str_log_subsys[] = {
	{ 0, "core" },
	{ 1, "fabric" },
	{ 2, "domain" },
	{ 3, "ep_ctrl" },
	{ 4, "ep_data" },
	{ 5, "av" },
	{ 6, "cq" },
	{ 7, "eq" },
	{ 8, "mr" },
	{ 9, "cntr" },
	{}
};

static const struct kofi_str_value kofi_str_eq_event[] = {
	KOFI_STR(FI_NOTIFY),
	KOFI_STR(FI_CONNREQ),
	KOFI_STR(FI_CONNECTED),
	KOFI_STR(FI_SHUTDOWN),
	KOFI_STR(FI_MR_COMPLETE),
	KOFI_STR(FI_AV_COMPLETE),
	KOFI_STR(FI_JOIN_COMPLETE),
	{}
};

static const struct kofi_str_value kofi_str_cq_format[] = {
	KOFI_STR(FI_CQ_FORMAT_UNSPEC),
	KOFI_STR(FI_CQ_FORMAT_CONTEXT),
	KOFI_STR(FI_CQ_FORMAT_MSG),
	KOFI_STR(FI_CQ_FORMAT_DATA),
	KOFI_STR(FI_CQ_FORMAT_TAGGED),
	{}
};

static const struct kofi_str_value kofi_str_cq_wait_cond[] = {
	KOFI_STR(FI_CQ_COND_NONE),
	KOFI_STR(FI_CQ_COND_THRESHOLD),
	{}
};

static const struct kofi_str_value kofi_str_wait_obj[] = {
	KOFI_STR(FI_WAIT_NONE),
	KOFI_STR(FI_WAIT_UNSPEC),
	KOFI_STR(FI_WAIT_SET),
	KOFI_STR(FI_WAIT_FD),
	KOFI_STR(FI_WAIT_MUTEX_COND),
	KOFI_STR(FI_WAIT_YIELD),
	KOFI_STR(FI_WAIT_POLLFD),
	KOFI_STR(KOFI_WAIT_QUEUE),
	{}
};

static const struct kofi_str_value kofi_str_cntr_events[] = {
	KOFI_STR(FI_CNTR_EVENTS_COMP),
	KOFI_STR(FI_CNTR_EVENTS_BYTES),
	{}
};

static const struct kofi_str_value kofi_str_bus_type[] = {
	KOFI_STR(FI_BUS_UNKNOWN),
	KOFI_STR(FI_BUS_PCI),
	{}
};

static const struct kofi_str_value kofi_str_link_state[] = {
	KOFI_STR(FI_LINK_UNKNOWN),
	KOFI_STR(FI_LINK_DOWN),
	KOFI_STR(FI_LINK_UP),
	{}
};

/* ------------------------------------------------------ lines "name: value" */

static void kofi_str_key(struct kofi_str *str, const char *key)
{
	kofi_str_add(str, "%*s%s: ", (int)str->depth * KOFI_STR_TAB, "", key);
}

/* A structure: its name on a line, its members below, further in */
static void kofi_str_open(struct kofi_str *str, const char *name)
{
	kofi_str_add(str, "%*s%s:\n", (int)str->depth * KOFI_STR_TAB, "",
		     name);
	str->depth++;
}

static void kofi_str_close(struct kofi_str *str)
{
	str->depth--;
}

static void kofi_str_key_string(struct kofi_str *str, const char *key,
				const char *value)
{
	kofi_str_key(str, key);
	kofi_str_add(str, "%s\n", value ?: "(null)");
}

static void kofi_str_key_u64(struct kofi_str *str, const char *key, u64 value)
{
	kofi_str_key(str, key);
	kofi_str_add(str, "%llu\n", value);
}

static void kofi_str_key_int(struct kofi_str *str, const char *key, int value)
{
	kofi_str_key(str, key);
	kofi_str_add(str, "%d\n", value);
}

static void kofi_str_key_hex(struct kofi_str *str, const char *key, u64 value)
{
	kofi_str_key(str, key);
	kofi_str_add(str, "0x%llx\n", value);
}

/* %p of the C library says (nil). */
static void kofi_str_key_ptr(struct kofi_str *str, const char *key,
			     const void *value)
{
	kofi_str_key(str, key);
	if (value)
		kofi_str_add(str, "0x%p\n", value);
	else
		kofi_str_add(str, "(nil)\n");
}

static void kofi_str_key_version(struct kofi_str *str, const char *key,
				 u32 value)
{
	kofi_str_key(str, key);
	kofi_str_add(str, "%u.%u\n", FI_MAJOR(value), FI_MINOR(value));
}

static void kofi_str_key_flags(struct kofi_str *str, const char *key,
			       const struct kofi_str_value *table, u64 flags)
{
	kofi_str_key(str, key);
	kofi_str_add(str, "[ ");
	kofi_str_flags(str, table, flags);
	kofi_str_add(str, " ]\n");
}

static void kofi_str_key_enum(struct kofi_str *str, const char *key,
			      const struct kofi_str_value *table, u32 value)
{
	kofi_str_key(str, key);
	kofi_str_enum(str, table, value);
	kofi_str_add(str, "\n");
}

static void kofi_str_key_open_enum(struct kofi_str *str, const char *key,
				   const struct kofi_str_value *table,
				   u32 value)
{
	kofi_str_key(str, key);
	kofi_str_open_enum(str, table, value);
	kofi_str_add(str, "\n");
}

static void kofi_str_key_comp_order(struct kofi_str *str, u64 order)
{
	const char *sep = "";

	kofi_str_key(str, "comp_order");
	kofi_str_add(str, "[ ");
	if (!(order & FI_ORDER_STRICT)) {
		kofi_str_add(str, "FI_ORDER_NONE");
		sep = ", ";
	} else if ((order & FI_ORDER_STRICT) == FI_ORDER_STRICT) {
		kofi_str_add(str, "FI_ORDER_STRICT");
		sep = ", ";
	}
	if (order & FI_ORDER_DATA)
		kofi_str_add(str, "%sFI_ORDER_DATA", sep);
	kofi_str_add(str, " ]\n");
}

/* ---------------------------------------------------------------- addresses */

static void kofi_str_sockaddr_ib(struct kofi_str *str,
				 const struct sockaddr_ib *sib)
{
	kofi_str_add(str, "fi_sockaddr_ib://[%pI6c]:0x%x:0x%x:0x%x",
		     &sib->sib_addr, be16_to_cpu(sib->sib_pkey),
		     (u32)(be64_to_cpu(sib->sib_sid) >> 16) & 0xfff,
		     (u32)be64_to_cpu((__force __be64)sib->sib_scope_id) & 0xff);
}

static void kofi_str_addr(struct kofi_str *str, u32 format, const void *addr,
			  size_t len)
{
	u32 need;

	if (!addr) {
		kofi_str_add(str, "(null)");
		return;
	}
	if (format == FI_ADDR_STR) {
		kofi_str_add(str, "%.*s", (int)min_t(size_t, len, FI_PATH_MAX),
			     (const char *)addr);
		return;
	}
	switch (format) {
	case FI_FORMAT_UNSPEC:
	case FI_SOCKADDR:
	case FI_SOCKADDR_IP:
	case FI_SOCKADDR_IN:
	case FI_SOCKADDR_IN6:
	case FI_SOCKADDR_IB:
		break;
	default:
		return;
	}
	if (len < offsetofend(struct sockaddr, sa_family))
		return;
	need = ((const struct sockaddr *)addr)->sa_family;
	if (need == AF_INET && len >= sizeof(struct sockaddr_in))
		kofi_str_add(str, "fi_sockaddr_in://%pISpc", addr);
	else if (need == AF_INET6 && len >= sizeof(struct sockaddr_in6))
		kofi_str_add(str, "fi_sockaddr_in6://%pISpc", addr);
	else if (need == AF_IB && len >= sizeof(struct sockaddr_ib))
		kofi_str_sockaddr_ib(str, addr);
}

static void kofi_str_key_addr(struct kofi_str *str, const char *key, u32 format,
			      const void *addr, size_t len)
{
	kofi_str_key(str, key);
	kofi_str_addr(str, format, addr, len);
	kofi_str_add(str, "\n");
}

/* ----------------------------------------------------------------- objects */

static void kofi_str_pci(struct kofi_str *str, const struct fi_pci_attr *pci)
{
	kofi_str_open(str, "fi_pci_attr");
	kofi_str_key_u64(str, "domain_id", pci->domain_id);
	kofi_str_key_u64(str, "bus_id", pci->bus_id);
	kofi_str_key_u64(str, "device_id", pci->device_id);
	kofi_str_key_u64(str, "function_id", pci->function_id);
	kofi_str_close(str);
}

static void kofi_str_nic(struct kofi_str *str, const struct fid_nic *nic)
{
	const struct fi_device_attr *dev = nic->device_attr;
	const struct fi_bus_attr *bus = nic->bus_attr;
	const struct fi_link_attr *link = nic->link_attr;

	kofi_str_open(str, "nic");
	if (dev) {
		kofi_str_open(str, "fi_device_attr");
		kofi_str_key_string(str, "name", dev->name);
		kofi_str_key_string(str, "device_id", dev->device_id);
		kofi_str_key_string(str, "device_version", dev->device_version);
		kofi_str_key_string(str, "vendor_id", dev->vendor_id);
		kofi_str_key_string(str, "driver", dev->driver);
		kofi_str_key_string(str, "firmware", dev->firmware);
		kofi_str_close(str);
	}
	if (bus) {
		kofi_str_open(str, "fi_bus_attr");
		kofi_str_key_enum(str, "bus_type", kofi_str_bus_type,
				  bus->bus_type);
		if (bus->bus_type == FI_BUS_PCI)
			kofi_str_pci(str, &bus->attr.pci);
		kofi_str_close(str);
	}
	if (link) {
		kofi_str_open(str, "fi_link_attr");
		kofi_str_key_string(str, "address", link->address);
		kofi_str_key_u64(str, "mtu", link->mtu);
		kofi_str_key_u64(str, "speed", link->speed);
		kofi_str_key_enum(str, "state", kofi_str_link_state,
				  link->state);
		kofi_str_key_string(str, "network_type", link->network_type);
		kofi_str_close(str);
	}
	kofi_str_close(str);
}

/* An object may know how to print itself. It is given the rest of the room. */
static void kofi_str_fid(struct kofi_str *str, const char *key,
			 const struct fi_fid *fid)
{
	char *at = str->buf + str->pos;
	size_t room = str->len - str->pos;

	if (fid && fid->fclass == FI_CLASS_NIC) {
		kofi_str_nic(str, container_of(fid, struct fid_nic, fid));
		return;
	}
	if (fid && fid->ops && fid->ops->tostr &&
	    fid->ops->tostr(fid, at, room) >= 0) {
		str->pos += strnlen(at, room - 1);
		str->buf[str->pos] = '\0';
		return;
	}
	*at = '\0';
	kofi_str_key_ptr(str, key, fid);
}

/* -------------------------------------------------------------- attributes */

static void kofi_str_tx_attr(struct kofi_str *str, const struct fi_tx_attr *attr)
{
	if (!attr) {
		kofi_str_key_string(str, "fi_tx_attr", NULL);
		return;
	}
	kofi_str_open(str, "fi_tx_attr");
	kofi_str_key_flags(str, "caps", kofi_str_caps, attr->caps);
	kofi_str_key_flags(str, "mode", kofi_str_mode, attr->mode);
	kofi_str_key_flags(str, "op_flags", kofi_str_op_flags, attr->op_flags);
	kofi_str_key_flags(str, "msg_order", kofi_str_msg_order,
			   attr->msg_order);
	kofi_str_key_comp_order(str, attr->comp_order);
	kofi_str_key_u64(str, "inject_size", attr->inject_size);
	kofi_str_key_u64(str, "size", attr->size);
	kofi_str_key_u64(str, "iov_limit", attr->iov_limit);
	kofi_str_key_u64(str, "rma_iov_limit", attr->rma_iov_limit);
	kofi_str_key_hex(str, "tclass", attr->tclass);
	kofi_str_close(str);
}

static void kofi_str_rx_attr(struct kofi_str *str, const struct fi_rx_attr *attr)
{
	if (!attr) {
		kofi_str_key_string(str, "fi_rx_attr", NULL);
		return;
	}
	kofi_str_open(str, "fi_rx_attr");
	kofi_str_key_flags(str, "caps", kofi_str_caps, attr->caps);
	kofi_str_key_flags(str, "mode", kofi_str_mode, attr->mode);
	kofi_str_key_flags(str, "op_flags", kofi_str_op_flags, attr->op_flags);
	kofi_str_key_flags(str, "msg_order", kofi_str_msg_order,
			   attr->msg_order);
	kofi_str_key_comp_order(str, attr->comp_order);
	kofi_str_key_u64(str, "total_buffered_recv",
			 attr->total_buffered_recv);
	kofi_str_key_u64(str, "size", attr->size);
	kofi_str_key_u64(str, "iov_limit", attr->iov_limit);
	kofi_str_close(str);
}

static void kofi_str_key_ctx(struct kofi_str *str, const char *key, size_t count)
{
	if (count == FI_SHARED_CONTEXT)
		kofi_str_key_string(str, key, "FI_SHARED_CONTEXT");
	else
		kofi_str_key_u64(str, key, count);
}

static void kofi_str_ep_attr(struct kofi_str *str, const struct fi_ep_attr *attr)
{
	if (!attr) {
		kofi_str_key_string(str, "fi_ep_attr", NULL);
		return;
	}
	kofi_str_open(str, "fi_ep_attr");
	kofi_str_key_enum(str, "type", kofi_str_ep_type, attr->type);
	kofi_str_key_open_enum(str, "protocol", kofi_str_protocol,
			       attr->protocol);
	kofi_str_key_u64(str, "protocol_version", attr->protocol_version);
	kofi_str_key_u64(str, "max_msg_size", attr->max_msg_size);
	kofi_str_key_u64(str, "msg_prefix_size", attr->msg_prefix_size);
	kofi_str_key_u64(str, "max_order_raw_size", attr->max_order_raw_size);
	kofi_str_key_u64(str, "max_order_war_size", attr->max_order_war_size);
	kofi_str_key_u64(str, "max_order_waw_size", attr->max_order_waw_size);
	kofi_str_key(str, "mem_tag_format");
	kofi_str_add(str, "0x%016llx\n", attr->mem_tag_format);
	kofi_str_key_ctx(str, "tx_ctx_cnt", attr->tx_ctx_cnt);
	kofi_str_key_ctx(str, "rx_ctx_cnt", attr->rx_ctx_cnt);
	kofi_str_key_u64(str, "auth_key_size", attr->auth_key_size);
	kofi_str_close(str);
}

static void kofi_str_domain_attr(struct kofi_str *str,
				 const struct fi_domain_attr *attr)
{
	if (!attr) {
		kofi_str_key_string(str, "fi_domain_attr", NULL);
		return;
	}
	kofi_str_open(str, "fi_domain_attr");
	if (attr->domain)
		kofi_str_key_ptr(str, "domain", attr->domain);
	else
		kofi_str_key_hex(str, "domain", 0);
	kofi_str_key_string(str, "name", attr->name);
	kofi_str_key_enum(str, "threading", kofi_str_threading,
			  attr->threading);
	kofi_str_key_enum(str, "control_progress", kofi_str_progress,
			  attr->control_progress);
	kofi_str_key_enum(str, "data_progress", kofi_str_progress,
			  attr->data_progress);
	kofi_str_key_enum(str, "resource_mgmt", kofi_str_resource_mgmt,
			  attr->resource_mgmt);
	kofi_str_key_enum(str, "av_type", kofi_str_av_type, attr->av_type);
	kofi_str_key_flags(str, "mr_mode", kofi_str_mr_mode, attr->mr_mode);
	kofi_str_key_u64(str, "mr_key_size", attr->mr_key_size);
	kofi_str_key_u64(str, "cq_data_size", attr->cq_data_size);
	kofi_str_key_u64(str, "cq_cnt", attr->cq_cnt);
	kofi_str_key_u64(str, "ep_cnt", attr->ep_cnt);
	kofi_str_key_u64(str, "tx_ctx_cnt", attr->tx_ctx_cnt);
	kofi_str_key_u64(str, "rx_ctx_cnt", attr->rx_ctx_cnt);
	kofi_str_key_u64(str, "max_ep_tx_ctx", attr->max_ep_tx_ctx);
	kofi_str_key_u64(str, "max_ep_rx_ctx", attr->max_ep_rx_ctx);
	kofi_str_key_u64(str, "max_ep_stx_ctx", attr->max_ep_stx_ctx);
	kofi_str_key_u64(str, "max_ep_srx_ctx", attr->max_ep_srx_ctx);
	kofi_str_key_u64(str, "cntr_cnt", attr->cntr_cnt);
	kofi_str_key_u64(str, "mr_iov_limit", attr->mr_iov_limit);
	kofi_str_key_flags(str, "caps", kofi_str_caps, attr->caps);
	kofi_str_key_flags(str, "mode", kofi_str_mode, attr->mode);
	kofi_str_key_u64(str, "auth_key_size", attr->auth_key_size);
	kofi_str_key_u64(str, "max_err_data", attr->max_err_data);
	kofi_str_key_u64(str, "mr_cnt", attr->mr_cnt);
	kofi_str_key_hex(str, "tclass", attr->tclass);
	kofi_str_key_u64(str, "max_ep_auth_key", attr->max_ep_auth_key);
	kofi_str_key_u64(str, "max_group_id", attr->max_group_id);
	kofi_str_key_u64(str, "max_cntr_value", attr->max_cntr_value);
	kofi_str_key_u64(str, "max_err_cntr_value", attr->max_err_cntr_value);
	kofi_str_close(str);
}

static void kofi_str_fabric_attr(struct kofi_str *str,
				 const struct fi_fabric_attr *attr)
{
	if (!attr) {
		kofi_str_key_string(str, "fi_fabric_attr", NULL);
		return;
	}
	kofi_str_open(str, "fi_fabric_attr");
	kofi_str_key_string(str, "name", attr->name);
	kofi_str_key_string(str, "prov_name", attr->prov_name);
	kofi_str_key_version(str, "prov_version", attr->prov_version);
	kofi_str_key_version(str, "api_version", attr->api_version);
	kofi_str_close(str);
}

static void kofi_str_info(struct kofi_str *str, const struct fi_info *info)
{
	kofi_str_open(str, "fi_info");
	kofi_str_key_flags(str, "caps", kofi_str_caps, info->caps);
	kofi_str_key_flags(str, "mode", kofi_str_mode, info->mode);
	kofi_str_key_open_enum(str, "addr_format", kofi_str_addr_format,
			       info->addr_format);
	kofi_str_key_u64(str, "src_addrlen", info->src_addrlen);
	kofi_str_key_u64(str, "dest_addrlen", info->dest_addrlen);
	kofi_str_key_addr(str, "src_addr", info->addr_format, info->src_addr,
			  info->src_addrlen);
	kofi_str_key_addr(str, "dest_addr", info->addr_format, info->dest_addr,
			  info->dest_addrlen);
	kofi_str_fid(str, "handle", info->handle);
	kofi_str_tx_attr(str, info->tx_attr);
	kofi_str_rx_attr(str, info->rx_attr);
	kofi_str_ep_attr(str, info->ep_attr);
	kofi_str_domain_attr(str, info->domain_attr);
	kofi_str_fabric_attr(str, info->fabric_attr);
	kofi_str_fid(str, "nic", info->nic ? &info->nic->fid : NULL);
	kofi_str_close(str);
}

static void kofi_str_cq_attr(struct kofi_str *str, const struct fi_cq_attr *attr)
{
	kofi_str_open(str, "fi_cq_attr");
	kofi_str_key_u64(str, "size", attr->size);
	kofi_str_key_flags(str, "flags", kofi_str_cq_flags, attr->flags);
	kofi_str_key_enum(str, "format", kofi_str_cq_format, attr->format);
	kofi_str_key_enum(str, "wait_obj", kofi_str_wait_obj, attr->wait_obj);
	kofi_str_key_int(str, "signaling_vector", attr->signaling_vector);
	kofi_str_key_enum(str, "wait_cond", kofi_str_cq_wait_cond,
			  attr->wait_cond);
	kofi_str_close(str);
}

static void kofi_str_cntr_attr(struct kofi_str *str,
			       const struct fi_cntr_attr *attr)
{
	kofi_str_open(str, "fi_cntr_attr");
	kofi_str_key_enum(str, "events", kofi_str_cntr_events, attr->events);
	kofi_str_key_enum(str, "wait_obj", kofi_str_wait_obj, attr->wait_obj);
	kofi_str_key_hex(str, "flags", attr->flags);
	kofi_str_close(str);
}

static void kofi_str_cq_err_entry(struct kofi_str *str,
				  const struct fi_cq_err_entry *entry)
{
	kofi_str_open(str, "fi_cq_err_entry");
	kofi_str_key_ptr(str, "op_context", entry->op_context);
	kofi_str_key_hex(str, "flags", entry->flags);
	kofi_str_key_u64(str, "len", entry->len);
	kofi_str_key_ptr(str, "buf", entry->buf);
	kofi_str_key_u64(str, "data", entry->data);
	kofi_str_key_hex(str, "tag", entry->tag);
	kofi_str_key_u64(str, "olen", entry->olen);
	kofi_str_key_int(str, "err", entry->err);
	kofi_str_key_int(str, "prov_errno", entry->prov_errno);
	kofi_str_key_ptr(str, "err_data", entry->err_data);
	kofi_str_key_u64(str, "err_data_size", entry->err_data_size);
	kofi_str_close(str);
}

/**
 * fi_tostr_r - text for a value or a structure
 * @buf: where it goes, always with a NUL at the end
 * @len: room there, in bytes; what does not fit is cut. Eight kilobytes hold
 *	any fi_info.
 * @data: the value: a pointer to an int for enums, to u32 for formats and
 *	protocols, to u64 for flags, or to the structure; for %FI_TYPE_VERSION
 *	anything
 * @type: what @data points to
 *
 * See fi_tostr(3). Nothing secret is printed: addresses of objects are hashed,
 * keys left out.
 *
 * Context: any, unless an object among @data has a tostr of its own that
 * sleeps.
 * Return: @buf, or NULL if @buf or @data is NULL or @len is 0.
 */
char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type type)
{
	struct kofi_str text = { .buf = buf, .len = len };
	struct kofi_str *str = &text;

	if (!buf || !len || !data)
		return NULL;
	*buf = '\0';

	switch (type) {
	case FI_TYPE_INFO:
		kofi_str_info(str, data);
		break;
	case FI_TYPE_EP_TYPE:
		kofi_str_enum(str, kofi_str_ep_type, *(const int *)data);
		break;
	case FI_TYPE_CAPS:
		kofi_str_flags(str, kofi_str_caps, *(const u64 *)data);
		break;
	case FI_TYPE_OP_FLAGS:
		kofi_str_flags(str, kofi_str_op_flags, *(const u64 *)data);
		break;
	case FI_TYPE_ADDR_FORMAT:
		kofi_str_open_enum(str, kofi_str_addr_format,
				   *(const u32 *)data);
		break;
	case FI_TYPE_TX_ATTR:
		kofi_str_tx_attr(str, data);
		break;
	case FI_TYPE_RX_ATTR:
		kofi_str_rx_attr(str, data);
		break;
	case FI_TYPE_EP_ATTR:
		kofi_str_ep_attr(str, data);
		break;
	case FI_TYPE_DOMAIN_ATTR:
		kofi_str_domain_attr(str, data);
		break;
	case FI_TYPE_FABRIC_ATTR:
		kofi_str_fabric_attr(str, data);
		break;
	case FI_TYPE_THREADING:
		kofi_str_enum(str, kofi_str_threading, *(const int *)data);
		break;
	case FI_TYPE_PROGRESS:
		kofi_str_enum(str, kofi_str_progress, *(const int *)data);
		break;
	case FI_TYPE_PROTOCOL:
		kofi_str_open_enum(str, kofi_str_protocol, *(const u32 *)data);
		break;
	case FI_TYPE_MSG_ORDER:
		kofi_str_flags(str, kofi_str_msg_order, *(const u64 *)data);
		break;
	case FI_TYPE_MODE:
		kofi_str_flags(str, kofi_str_mode, *(const u64 *)data);
		break;
	case FI_TYPE_AV_TYPE:
		kofi_str_enum(str, kofi_str_av_type, *(const int *)data);
		break;
	case FI_TYPE_ATOMIC_TYPE:
		kofi_str_enum(str, kofi_str_atomic_type, *(const int *)data);
		break;
	case FI_TYPE_ATOMIC_OP:
		kofi_str_enum(str, kofi_str_atomic_op, *(const int *)data);
		break;
	case FI_TYPE_VERSION:
		kofi_str_add(str, "%d.%d.%d", FI_MAJOR_VERSION,
			     FI_MINOR_VERSION, FI_REVISION_VERSION);
		break;
	case FI_TYPE_EQ_EVENT:
		kofi_str_enum(str, kofi_str_eq_event, *(const int *)data);
		break;
	case FI_TYPE_CQ_EVENT_FLAGS:
		kofi_str_flags(str, kofi_str_cq_event_flags,
			       *(const u64 *)data);
		break;
	case FI_TYPE_MR_MODE:
		kofi_str_flags(str, kofi_str_mr_mode, *(const u32 *)data);
		break;
	case FI_TYPE_OP_TYPE:
		kofi_str_enum(str, kofi_str_op_type, *(const int *)data);
		break;
	case FI_TYPE_FID:
		kofi_str_fid(str, "fid", data);
		break;
	case FI_TYPE_COLLECTIVE_OP:
		kofi_str_enum(str, kofi_str_collective_op, *(const int *)data);
		break;
	case FI_TYPE_HMEM_IFACE:
		kofi_str_enum(str, kofi_str_hmem_iface, *(const int *)data);
		break;
	case FI_TYPE_CQ_FORMAT:
		kofi_str_enum(str, kofi_str_cq_format, *(const int *)data);
		break;
	case FI_TYPE_LOG_LEVEL:
		kofi_str_enum(str, kofi_str_log_level, *(const int *)data);
		break;
	case FI_TYPE_LOG_SUBSYS:
		kofi_str_enum(str, kofi_str_log_subsys, *(const int *)data);
		break;
	case FI_TYPE_CQ_ATTR:
		kofi_str_cq_attr(str, data);
		break;
	case FI_TYPE_CNTR_ATTR:
		kofi_str_cntr_attr(str, data);
		break;
	case FI_TYPE_CQ_ERR_ENTRY:
		kofi_str_cq_err_entry(str, data);
		break;
	case FI_TYPE_CQ_WAIT_COND:
		kofi_str_enum(str, kofi_str_cq_wait_cond, *(const int *)data);
		break;
	case FI_TYPE_WAIT_OBJ:
		kofi_str_enum(str, kofi_str_wait_obj, *(const int *)data);
		break;
	/* Address vectors and memory regions have no attributes here yet. */
	case FI_TYPE_AV_ATTR:
	case FI_TYPE_MR_ATTR:
	default:
		kofi_str_add(str, "Unknown type");
		break;
	}
	return buf;
}
EXPORT_SYMBOL_GPL(fi_tostr_r);

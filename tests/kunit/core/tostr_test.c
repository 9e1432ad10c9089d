// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests of kofi/tostr.c. What is expected is what libfabric prints: taken from
 * fi_info --verbose and from fi_tostr() of libfabric 1.17 for all values of all
 * types, with what its 2.1 has added.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/inet.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <rdma/ib.h>

#include "objects.h"

#define TOSTR_MAX	SZ_8K

static const char tostr_info_text[] =
"fi_info:\n"
"    caps: [ FI_MSG, FI_RECV, FI_SEND, FI_LOCAL_COMM, FI_REMOTE_COMM ]\n"
"    mode: [  ]\n"
"    addr_format: FI_SOCKADDR_IN\n"
"    src_addrlen: 16\n"
"    dest_addrlen: 0\n"
"    src_addr: fi_sockaddr_in://192.0.2.2:47592\n"
"    dest_addr: (null)\n"
"    handle: (nil)\n"
"    fi_tx_attr:\n"
"        caps: [ FI_MSG, FI_SEND ]\n"
"        mode: [ FI_CONTEXT, FI_CONTEXT2 ]\n"
"        op_flags: [ FI_COMPLETION, FI_DELIVERY_COMPLETE ]\n"
"        msg_order: [ FI_ORDER_RAR, FI_ORDER_SAS, FI_ORDER_ATOMIC_WAW ]\n"
"        comp_order: [ FI_ORDER_NONE ]\n"
"        inject_size: 128\n"
"        size: 256\n"
"        iov_limit: 16\n"
"        rma_iov_limit: 4\n"
"        tclass: 0x0\n"
"    fi_rx_attr:\n"
"        caps: [ FI_MSG, FI_RECV ]\n"
"        mode: [  ]\n"
"        op_flags: [  ]\n"
"        msg_order: [  ]\n"
"        comp_order: [ FI_ORDER_STRICT, FI_ORDER_DATA ]\n"
"        total_buffered_recv: 0\n"
"        size: 256\n"
"        iov_limit: 16\n"
"    fi_ep_attr:\n"
"        type: FI_EP_MSG\n"
"        protocol: FI_PROTO_SOCK_TCP\n"
"        protocol_version: 0\n"
"        max_msg_size: 18446744073709551615\n"
"        msg_prefix_size: 0\n"
"        max_order_raw_size: 0\n"
"        max_order_war_size: 0\n"
"        max_order_waw_size: 0\n"
"        mem_tag_format: 0xaaaaaaaaaaaaaaaa\n"
"        tx_ctx_cnt: 1\n"
"        rx_ctx_cnt: FI_SHARED_CONTEXT\n"
"        auth_key_size: 0\n"
"    fi_domain_attr:\n"
"        domain: 0x0\n"
"        name: eth0\n"
"        threading: FI_THREAD_SAFE\n"
"        control_progress: FI_PROGRESS_AUTO\n"
"        data_progress: FI_PROGRESS_MANUAL\n"
"        resource_mgmt: FI_RM_ENABLED\n"
"        av_type: FI_AV_UNSPEC\n"
"        mr_mode: [ FI_MR_PROV_KEY ]\n"
"        mr_key_size: 8\n"
"        cq_data_size: 8\n"
"        cq_cnt: 65536\n"
"        ep_cnt: 32768\n"
"        tx_ctx_cnt: 1\n"
"        rx_ctx_cnt: 1\n"
"        max_ep_tx_ctx: 1\n"
"        max_ep_rx_ctx: 1\n"
"        max_ep_stx_ctx: 0\n"
"        max_ep_srx_ctx: 0\n"
"        cntr_cnt: 0\n"
"        mr_iov_limit: 1\n"
"        caps: [ FI_LOCAL_COMM, FI_REMOTE_COMM ]\n"
"        mode: [  ]\n"
"        auth_key_size: 0\n"
"        max_err_data: 0\n"
"        mr_cnt: 0\n"
"        tclass: 0x203\n"
"    fi_fabric_attr:\n"
"        name: 192.0.2.0/24\n"
"        prov_name: sock\n"
"        prov_version: 1.0\n"
"        api_version: 1.17\n"
"    nic:\n"
"        fi_device_attr:\n"
"            name: mlx5_0\n"
"            device_id: 0x101b\n"
"            device_version: 0\n"
"            vendor_id: 0x02c9\n"
"            driver: (null)\n"
"            firmware: 20.33.1048\n"
"        fi_bus_attr:\n"
"            bus_type: FI_BUS_PCI\n"
"            fi_pci_attr:\n"
"                domain_id: 0\n"
"                bus_id: 65\n"
"                device_id: 1\n"
"                function_id: 2\n"
"        fi_link_attr:\n"
"            address: fe80::1\n"
"            mtu: 4096\n"
"            speed: 100000000000\n"
"            state: FI_LINK_UP\n"
"            network_type: InfiniBand\n";

static const char tostr_empty_text[] =
"fi_info:\n"
"    caps: [  ]\n"
"    mode: [  ]\n"
"    addr_format: FI_FORMAT_UNSPEC\n"
"    src_addrlen: 0\n"
"    dest_addrlen: 0\n"
"    src_addr: (null)\n"
"    dest_addr: (null)\n"
"    handle: (nil)\n"
"    fi_tx_attr: (null)\n"
"    fi_rx_attr: (null)\n"
"    fi_ep_attr: (null)\n"
"    fi_domain_attr: (null)\n"
"    fi_fabric_attr: (null)\n"
"    nic: (nil)\n";

static struct sockaddr_in tostr_sin = { .sin_family = AF_INET };

static struct fi_tx_attr tostr_tx = {
	.caps		= FI_MSG | FI_SEND,
	.mode		= FI_CONTEXT | FI_CONTEXT2,
	.op_flags	= FI_COMPLETION | FI_DELIVERY_COMPLETE,
	.msg_order	= FI_ORDER_RAR | FI_ORDER_SAS | FI_ORDER_ATOMIC_WAW,
	.inject_size	= 128,
	.size		= 256,
	.iov_limit	= 16,
	.rma_iov_limit	= 4,
};

static struct fi_rx_attr tostr_rx = {
	.caps		= FI_MSG | FI_RECV,
	.comp_order	= FI_ORDER_STRICT | FI_ORDER_DATA,
	.size		= 256,
	.iov_limit	= 16,
};

static struct fi_ep_attr tostr_ep = {
	.type		= FI_EP_MSG,
	.protocol	= FI_PROTO_SOCK_TCP,
	.max_msg_size	= SIZE_MAX,
	.mem_tag_format	= 0xaaaaaaaaaaaaaaaaULL,
	.tx_ctx_cnt	= 1,
	.rx_ctx_cnt	= FI_SHARED_CONTEXT,
};

static struct fi_domain_attr tostr_domain = {
	.name			= "eth0",
	.threading		= FI_THREAD_SAFE,
	.control_progress	= FI_PROGRESS_AUTO,
	.data_progress		= FI_PROGRESS_MANUAL,
	.resource_mgmt		= FI_RM_ENABLED,
	.mr_mode		= FI_MR_PROV_KEY,
	.mr_key_size		= 8,
	.cq_data_size		= 8,
	.cq_cnt			= 65536,
	.ep_cnt			= 32768,
	.tx_ctx_cnt		= 1,
	.rx_ctx_cnt		= 1,
	.max_ep_tx_ctx		= 1,
	.max_ep_rx_ctx		= 1,
	.mr_iov_limit		= 1,
	.caps			= FI_LOCAL_COMM | FI_REMOTE_COMM,
	.tclass			= FI_TC_BULK_DATA,
	.max_cntr_value		= U64_MAX,
};

static struct fi_fabric_attr tostr_fabric = {
	.name		= "192.0.2.0/24",
	.prov_name	= "sock",
	.prov_version	= FI_VERSION(1, 0),
	.api_version	= FI_VERSION(1, 17),
};

static struct fi_device_attr tostr_device = {
	.name		= "mlx5_0",
	.device_id	= "0x101b",
	.device_version	= "0",
	.vendor_id	= "0x02c9",
	.firmware	= "20.33.1048",
};

static struct fi_bus_attr tostr_bus = {
	.bus_type = FI_BUS_PCI,
	.attr.pci = { .bus_id = 65, .device_id = 1, .function_id = 2 },
};

static struct fi_link_attr tostr_link = {
	.address	= "fe80::1",
	.mtu		= 4096,
	.speed		= 100000000000ULL,
	.state		= FI_LINK_UP,
	.network_type	= "InfiniBand",
};

static struct fid_nic tostr_nic = {
	.fid.fclass	= FI_CLASS_NIC,
	.device_attr	= &tostr_device,
	.bus_attr	= &tostr_bus,
	.link_attr	= &tostr_link,
};

static struct fi_info tostr_info = {
	.caps		= FI_MSG | FI_SEND | FI_RECV | FI_LOCAL_COMM |
			  FI_REMOTE_COMM,
	.addr_format	= FI_SOCKADDR_IN,
	.src_addrlen	= sizeof(tostr_sin),
	.src_addr	= &tostr_sin,
	.tx_attr	= &tostr_tx,
	.rx_attr	= &tostr_rx,
	.ep_attr	= &tostr_ep,
	.domain_attr	= &tostr_domain,
	.fabric_attr	= &tostr_fabric,
	.nic		= &tostr_nic,
};

static const struct fi_info tostr_empty;

static const struct fi_av_attr tostr_av_attr = {
	.type		= FI_AV_TABLE,
	.rx_ctx_bits	= 4,
	.count		= 5,
	.ep_per_node	= 6,
	.flags		= FI_EVENT | FI_SYMMETRIC,
};

static const struct fi_cq_attr tostr_cq_attr = {
	.size = 7, .flags = FI_AFFINITY, .format = FI_CQ_FORMAT_DATA,
	.wait_obj = KOFI_WAIT_QUEUE, .signaling_vector = -3,
	.wait_cond = FI_CQ_COND_THRESHOLD,
};

static const struct fi_cntr_attr tostr_cntr_attr = {
	.events = FI_CNTR_EVENTS_BYTES, .wait_obj = FI_WAIT_UNSPEC, .flags = 18,
};

static const struct fi_mr_attr tostr_mr_attr = {
	.iov_count = 3, .access = FI_REMOTE_WRITE | FI_SEND | FI_READ,
	.offset = 16, .requested_key = 0xab,
};

static const struct fi_cq_err_entry tostr_err_entry = {
	.flags = FI_RECV, .len = 5, .data = 6, .tag = 0xab, .olen = 7,
	.err = FI_ETRUNC, .prov_errno = -8,
};

/* ------------------------------------------------------------------- names */

/*
 * Names in the order in which they are printed, with their numbers: the bit of
 * a flag, the value of an enumerator. One without is the next of the one before.
 */
static const struct names_case {
	const char	*name;
	enum fi_type	type;
	size_t		size;	/* of a set of flags; 0: no flags */
	const char	*words;
} names_cases[] = {
	{ "caps", FI_TYPE_CAPS, 8,
	  "1:FI_MSG FI_RMA FI_TAGGED FI_ATOMIC FI_MULTICAST FI_COLLECTIVE\n"
	  "8:FI_READ FI_WRITE FI_RECV FI_SEND FI_REMOTE_READ FI_REMOTE_WRITE\n"
	  "16:FI_MULTI_RECV FI_REMOTE_CQ_DATA 20:FI_TRIGGER FI_FENCE\n"
	  "49:FI_RMA_PMEM FI_SOURCE_ERR FI_LOCAL_COMM FI_REMOTE_COMM FI_SHARED_AV\n"
	  "56:FI_RMA_EVENT FI_SOURCE FI_NAMED_RX_CTX FI_DIRECTED_RECV\n"
	  "46:FI_TAGGED_MULTI_RECV FI_HMEM 41:FI_AV_USER_ID 43:FI_PEER" },
	{ "op flags", FI_TYPE_OP_FLAGS, 8,
	  "5:FI_MULTICAST 16:FI_MULTI_RECV FI_REMOTE_CQ_DATA FI_MORE FI_PEEK\n"
	  "FI_TRIGGER FI_FENCE 24:FI_COMPLETION FI_INJECT FI_INJECT_COMPLETE\n"
	  "FI_TRANSMIT_COMPLETE FI_DELIVERY_COMPLETE 31:FI_MATCH_COMPLETE\n"
	  "29:FI_AFFINITY FI_COMMIT_COMPLETE 59:FI_CLAIM 58:FI_DISCARD" },
	{ "message order", FI_TYPE_MSG_ORDER, 8,
	  "0:FI_ORDER_RAR FI_ORDER_RAW FI_ORDER_RAS FI_ORDER_WAR FI_ORDER_WAW\n"
	  "FI_ORDER_WAS FI_ORDER_SAR FI_ORDER_SAW FI_ORDER_SAS\n"
	  "32:FI_ORDER_RMA_RAR FI_ORDER_RMA_RAW FI_ORDER_RMA_WAR\n"
	  "FI_ORDER_RMA_WAW FI_ORDER_ATOMIC_RAR FI_ORDER_ATOMIC_RAW\n"
	  "FI_ORDER_ATOMIC_WAR FI_ORDER_ATOMIC_WAW" },
	{ "mode", FI_TYPE_MODE, 8,
	  "59:FI_CONTEXT 58:FI_MSG_PREFIX 57:FI_ASYNC_IOV 56:FI_RX_CQ_DATA\n"
	  "55:FI_LOCAL_MR 52:FI_CONTEXT2" },
	{ "CQ event flags", FI_TYPE_CQ_EVENT_FLAGS, 8,
	  "11:FI_SEND 10:FI_RECV 2:FI_RMA 4:FI_ATOMIC 1:FI_MSG 3:FI_TAGGED\n"
	  "8:FI_READ FI_WRITE 12:FI_REMOTE_READ FI_REMOTE_WRITE\n"
	  "17:FI_REMOTE_CQ_DATA 16:FI_MULTI_RECV 18:FI_MORE 59:FI_CLAIM" },
	{ "mr mode", FI_TYPE_MR_MODE, 4,
	  "0:FI_MR_BASIC FI_MR_SCALABLE FI_MR_LOCAL FI_MR_RAW FI_MR_VIRT_ADDR\n"
	  "FI_MR_ALLOCATED FI_MR_PROV_KEY FI_MR_MMU_NOTIFY FI_MR_RMA_EVENT\n"
	  "FI_MR_ENDPOINT FI_MR_HMEM FI_MR_COLLECTIVE" },
	{ "endpoint type", FI_TYPE_EP_TYPE, 0,
	  "0:FI_EP_UNSPEC FI_EP_MSG FI_EP_DGRAM FI_EP_RDM" },
	{ "address format", FI_TYPE_ADDR_FORMAT, 0,
	  "0:FI_FORMAT_UNSPEC FI_SOCKADDR FI_SOCKADDR_IN FI_SOCKADDR_IN6\n"
	  "FI_SOCKADDR_IB FI_ADDR_PSMX FI_ADDR_GNI FI_ADDR_BGQ FI_ADDR_MLX\n"
	  "FI_ADDR_STR FI_ADDR_PSMX2 FI_ADDR_IB_UD FI_ADDR_EFA FI_ADDR_PSMX3\n"
	  "FI_ADDR_OPX FI_ADDR_CXI FI_ADDR_UCX FI_SOCKADDR_IP" },
	{ "threading", FI_TYPE_THREADING, 0,
	  "0:FI_THREAD_UNSPEC FI_THREAD_SAFE FI_THREAD_FID FI_THREAD_DOMAIN\n"
	  "FI_THREAD_COMPLETION FI_THREAD_ENDPOINT" },
	{ "progress", FI_TYPE_PROGRESS, 0,
	  "0:FI_PROGRESS_UNSPEC FI_PROGRESS_AUTO FI_PROGRESS_MANUAL\n"
	  "FI_PROGRESS_CONTROL_UNIFIED" },
	{ "protocol", FI_TYPE_PROTOCOL, 0,
	  "0:FI_PROTO_UNSPEC FI_PROTO_RDMA_CM_IB_RC FI_PROTO_IWARP\n"
	  "FI_PROTO_IB_UD FI_PROTO_PSMX FI_PROTO_UDP FI_PROTO_SOCK_TCP\n"
	  "FI_PROTO_MXM FI_PROTO_IWARP_RDM FI_PROTO_IB_RDM FI_PROTO_GNI\n"
	  "FI_PROTO_RXM FI_PROTO_RXD FI_PROTO_MLX FI_PROTO_NETWORKDIRECT\n"
	  "FI_PROTO_PSMX2 FI_PROTO_SHM FI_PROTO_MRAIL FI_PROTO_RSTREAM\n"
	  "FI_PROTO_RDMA_CM_IB_XRC FI_PROTO_EFA FI_PROTO_PSMX3 FI_PROTO_RXM_TCP\n"
	  "FI_PROTO_OPX FI_PROTO_CXI FI_PROTO_XNET" },
	{ "AV type", FI_TYPE_AV_TYPE, 0,
	  "0:FI_AV_UNSPEC FI_AV_MAP FI_AV_TABLE" },
	{ "datatype", FI_TYPE_ATOMIC_TYPE, 0,
	  "0:FI_INT8 FI_UINT8 FI_INT16 FI_UINT16 FI_INT32 FI_UINT32 FI_INT64\n"
	  "FI_UINT64 FI_FLOAT FI_DOUBLE FI_FLOAT_COMPLEX FI_DOUBLE_COMPLEX\n"
	  "FI_LONG_DOUBLE FI_LONG_DOUBLE_COMPLEX FI_INT128 FI_UINT128" },
	{ "atomic op", FI_TYPE_ATOMIC_OP, 0,
	  "0:FI_MIN FI_MAX FI_SUM FI_PROD FI_LOR FI_LAND FI_BOR FI_BAND FI_LXOR\n"
	  "FI_BXOR FI_ATOMIC_READ FI_ATOMIC_WRITE FI_CSWAP FI_CSWAP_NE\n"
	  "FI_CSWAP_LE FI_CSWAP_LT FI_CSWAP_GE FI_CSWAP_GT FI_MSWAP FI_DIFF" },
	{ "EQ event", FI_TYPE_EQ_EVENT, 0,
	  "0:FI_NOTIFY FI_CONNREQ FI_CONNECTED FI_SHUTDOWN FI_MR_COMPLETE\n"
	  "FI_AV_COMPLETE FI_JOIN_COMPLETE" },
	{ "op type", FI_TYPE_OP_TYPE, 0,
	  "0:FI_OP_RECV FI_OP_SEND FI_OP_TRECV FI_OP_TSEND FI_OP_READ\n"
	  "FI_OP_WRITE FI_OP_ATOMIC FI_OP_FETCH_ATOMIC FI_OP_COMPARE_ATOMIC\n"
	  "FI_OP_CNTR_SET FI_OP_CNTR_ADD" },
	{ "collective op", FI_TYPE_COLLECTIVE_OP, 0,
	  "0:FI_BARRIER FI_BROADCAST FI_ALLTOALL FI_ALLREDUCE FI_ALLGATHER\n"
	  "FI_REDUCE_SCATTER FI_REDUCE FI_SCATTER FI_GATHER" },
	{ "memory interface", FI_TYPE_HMEM_IFACE, 0,
	  "0:FI_HMEM_SYSTEM FI_HMEM_CUDA FI_HMEM_ROCR FI_HMEM_ZE FI_HMEM_NEURON\n"
	  "FI_HMEM_SYNAPSEAI" },
	{ "CQ format", FI_TYPE_CQ_FORMAT, 0,
	  "0:FI_CQ_FORMAT_UNSPEC FI_CQ_FORMAT_CONTEXT FI_CQ_FORMAT_MSG\n"
	  "FI_CQ_FORMAT_DATA FI_CQ_FORMAT_TAGGED" },
	{ "log level", FI_TYPE_LOG_LEVEL, 0, "0:warn trace info debug" },
	{ "log subsystem", FI_TYPE_LOG_SUBSYS, 0,
	  "0:core fabric domain ep_ctrl ep_data av cq eq mr cntr" },
	{ "CQ wait condition", FI_TYPE_CQ_WAIT_COND, 0,
	  "0:FI_CQ_COND_NONE FI_CQ_COND_THRESHOLD" },
	{ "wait object", FI_TYPE_WAIT_OBJ, 0,
	  "0:FI_WAIT_NONE FI_WAIT_UNSPEC FI_WAIT_SET FI_WAIT_FD\n"
	  "FI_WAIT_MUTEX_COND FI_WAIT_YIELD FI_WAIT_POLLFD\n"
	  "256:KOFI_WAIT_QUEUE" },
};

KUNIT_ARRAY_PARAM_DESC(names, names_cases, name);

#define NAMES_VALUES	300	/* of an enumeration; flags have 64 bits */

static void tostr_names(struct kunit *test)
{
	const struct names_case *c = test->param_value;
	char *words = kunit_kmalloc(test, strlen(c->words) + 1, GFP_KERNEL);
	const char **want = kunit_kcalloc(test, NAMES_VALUES, sizeof(*want),
					  GFP_KERNEL);
	char *all = kunit_kzalloc(test, 1024, GFP_KERNEL);
	char *buf = kunit_kmalloc(test, 1024, GFP_KERNEL);
	const char *nothing = c->size ? "" : "Unknown";
	unsigned int n = 0, i;
	char *word, *colon;
	u64 flags;
	u32 value;

	KUNIT_ASSERT_TRUE(test, words && want && all && buf);
	strscpy(words, c->words, strlen(c->words) + 1);
	while ((word = strsep(&words, "\n "))) {
		colon = strchr(word, ':');
		if (colon) {
			*colon = '\0';
			KUNIT_ASSERT_EQ(test, 0, kstrtouint(word, 10, &n));
			word = colon + 1;
		}
		KUNIT_ASSERT_LT(test, n, NAMES_VALUES);
		want[n++] = word;
		if (*all)
			strlcat(all, ", ", 1024);
		strlcat(all, word, 1024);
	}
	for (i = 0; i < (c->size ? 64 : NAMES_VALUES); i++) {
		flags = c->size ? BIT_ULL(i) : 0;
		value = c->size ? flags : i;
		fi_tostr_r(buf, 1024, c->size == 8 ? (void *)&flags : &value,
			   c->type);
		KUNIT_EXPECT_STREQ_MSG(test, want[i] ?: nothing, buf,
				       "value %u", i);
	}
	flags = ~0ULL;
	value = c->size ? U32_MAX : FI_PROV_SPECIFIC | 1;
	fi_tostr_r(buf, 1024, c->size == 8 ? (void *)&flags : &value, c->type);
	if (c->type == FI_TYPE_ADDR_FORMAT || c->type == FI_TYPE_PROTOCOL)
		nothing = "Provider specific";
	if (c->type == FI_TYPE_EQ_EVENT)
		nothing = "KOFI_UNEXPECTED";
	KUNIT_EXPECT_STREQ(test, c->size ? all : nothing, buf);
}

/* -------------------------------------------------------------- structures */

static const struct struct_case {
	const char	*name;
	enum fi_type	type;
	const void	*data;
	const char	*want;
} struct_cases[] = {
	{ "info", FI_TYPE_INFO, &tostr_info, tostr_info_text },
	{ "empty info", FI_TYPE_INFO, &tostr_empty, tostr_empty_text },
	{ "fabric attr", FI_TYPE_FABRIC_ATTR, &tostr_fabric,
	  "fi_fabric_attr:\n"
	  "    name: 192.0.2.0/24\n"
	  "    prov_name: sock\n"
	  "    prov_version: 1.0\n"
	  "    api_version: 1.17\n" },
	{ "av attr", FI_TYPE_AV_ATTR, &tostr_av_attr,
	  "fi_av_attr:\n"
	  "    type: FI_AV_TABLE\n"
	  "    count: 5\n"
	  "    ep_per_node: 6\n"
	  "    name: (null)\n"
	  "    flags: [ FI_EVENT, FI_SYMMETRIC ]\n" },
	{ "cq attr", FI_TYPE_CQ_ATTR, &tostr_cq_attr,
	  "fi_cq_attr:\n"
	  "    size: 7\n"
	  "    flags: [ FI_AFFINITY ]\n"
	  "    format: FI_CQ_FORMAT_DATA\n"
	  "    wait_obj: KOFI_WAIT_QUEUE\n"
	  "    signaling_vector: -3\n"
	  "    wait_cond: FI_CQ_COND_THRESHOLD\n" },
	{ "cntr attr", FI_TYPE_CNTR_ATTR, &tostr_cntr_attr,
	  "fi_cntr_attr:\n"
	  "    events: FI_CNTR_EVENTS_BYTES\n"
	  "    wait_obj: FI_WAIT_UNSPEC\n"
	  "    flags: 0x12\n" },
	{ "mr attr", FI_TYPE_MR_ATTR, &tostr_mr_attr,
	  "fi_mr_attr:\n"
	  "    mr_iov: (nil)\n"
	  "    iov_count: 3\n"
	  "    access: [ FI_SEND, FI_READ, FI_REMOTE_WRITE ]\n"
	  "    offset: 0x10\n"
	  "    requested_key: 0xab\n"
	  "    context: (nil)\n"
	  "    auth_key_size: 0\n" },
	{ "cq error entry", FI_TYPE_CQ_ERR_ENTRY, &tostr_err_entry,
	  "fi_cq_err_entry:\n"
	  "    op_context: (nil)\n"
	  "    flags: 0x400\n"
	  "    len: 5\n"
	  "    buf: (nil)\n"
	  "    data: 6\n"
	  "    tag: 0xab\n"
	  "    olen: 7\n"
	  "    err: 265\n"
	  "    prov_errno: -8\n"
	  "    err_data: (nil)\n"
	  "    err_data_size: 0\n" },
	{ "version", FI_TYPE_VERSION, "", "2.6.0" },
	{ "no such type", 1000, "", "Unknown type" },
	{ "negative type", -1, "", "Unknown type" },
};

KUNIT_ARRAY_PARAM_DESC(struct, struct_cases, name);

/*
 * The text; and at every length the beginning of it, a NUL, and nothing
 * beyond: the allocator watches over the end.
 */
static void tostr_structs(struct kunit *test)
{
	const struct struct_case *c = test->param_value;
	char *whole = kunit_kmalloc(test, TOSTR_MAX, GFP_KERNEL);
	size_t full = strlen(c->want), len;
	char *buf;

	KUNIT_ASSERT_NOT_NULL(test, whole);
	KUNIT_EXPECT_PTR_EQ(test, whole,
			    fi_tostr_r(whole, TOSTR_MAX, c->data, c->type));
	KUNIT_EXPECT_STREQ(test, c->want, whole);
	for (len = 1; len <= full + 2; len++) {
		buf = kmalloc(len, GFP_KERNEL);
		if (!buf)
			break;
		memset(buf, 'x', len);
		fi_tostr_r(buf, len, c->data, c->type);
		if (strnlen(buf, len) != min(len - 1, full) ||
		    memcmp(buf, c->want, strnlen(buf, len))) {
			kfree(buf);
			break;
		}
		kfree(buf);
	}
	KUNIT_EXPECT_EQ(test, full + 3, len);
}

/* What is a part of an info has the same text alone, but further out. */
static void tostr_parts(struct kunit *test)
{
	static const struct {
		enum fi_type	type;
		const void	*data;
	} parts[] = {
		{ FI_TYPE_TX_ATTR, &tostr_tx }, { FI_TYPE_RX_ATTR, &tostr_rx },
		{ FI_TYPE_EP_ATTR, &tostr_ep },
		{ FI_TYPE_DOMAIN_ATTR, &tostr_domain },
		{ FI_TYPE_FABRIC_ATTR, &tostr_fabric },
		{ FI_TYPE_FID, &tostr_nic.fid },
	};
	char *buf = kunit_kmalloc(test, TOSTR_MAX, GFP_KERNEL);
	const char *at = strstr(tostr_info_text, "    fi_tx_attr:");
	char *text, *line;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		text = fi_tostr_r(buf, TOSTR_MAX, parts[i].data, parts[i].type);
		while ((line = strsep(&text, "\n")) && *line) {
			KUNIT_ASSERT_EQ(test, 0, strncmp(at, "    ", 4));
			at += 4;
			KUNIT_ASSERT_EQ_MSG(test, 0,
					    strncmp(at, line, strlen(line)),
					    "%s", line);
			at += strlen(line) + 1;
		}
	}
	KUNIT_EXPECT_STREQ(test, "", at);
}

static const struct addr_case {
	const char	*name;
	u32		format;
	int		family;
	const char	*addr;
	size_t		len;
	const char	*want;
} addr_cases[] = {
	{ "IPv4", FI_SOCKADDR_IN, AF_INET, "192.0.2.7",
	  sizeof(struct sockaddr_in), "fi_sockaddr_in://192.0.2.7:4660" },
	{ "IPv4 as sockaddr", FI_SOCKADDR, AF_INET, "0.0.0.0",
	  sizeof(struct sockaddr_in), "fi_sockaddr_in://0.0.0.0:4660" },
	{ "IPv6", FI_SOCKADDR_IN6, AF_INET6, "fd00::1:2",
	  sizeof(struct sockaddr_in6), "fi_sockaddr_in6://[fd00::1:2]:4660" },
	{ "IPv6 as IP", FI_SOCKADDR_IP, AF_INET6, "::",
	  sizeof(struct sockaddr_in6), "fi_sockaddr_in6://[::]:4660" },
	{ "cut IPv4", FI_SOCKADDR_IN, AF_INET, "192.0.2.7", 8, "" },
	{ "cut IPv6", FI_SOCKADDR_IN6, AF_INET6, "fd00::1:2",
	  sizeof(struct sockaddr_in6) - 1, "" },
	{ "one byte", FI_SOCKADDR, AF_INET, "192.0.2.7", 1, "" },
	{ "InfiniBand", FI_SOCKADDR_IB, AF_IB, "fe80::7",
	  sizeof(struct sockaddr_ib),
	  "fi_sockaddr_ib://[fe80::7]:0x8001:0x106:0x3" },
	{ "cut InfiniBand", FI_SOCKADDR_IB, AF_IB, "fe80::7",
	  sizeof(struct sockaddr_ib) - 1, "" },
	{ "unknown format", 1000, AF_INET, "192.0.2.7",
	  sizeof(struct sockaddr_in), "" },
};

KUNIT_ARRAY_PARAM_DESC(addr, addr_cases, name);

static void tostr_addr(struct kunit *test)
{
	const struct addr_case *c = test->param_value;
	struct sockaddr_storage ss = { .ss_family = c->family };
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&ss;
	struct sockaddr_in *sin = (struct sockaddr_in *)&ss;
	struct sockaddr_ib *sib = (struct sockaddr_ib *)&ss;
	struct fi_info info = { .addr_format = c->format };
	char *buf = kunit_kmalloc(test, TOSTR_MAX, GFP_KERNEL);
	char *line, *end;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	if (c->family == AF_INET) {
		sin->sin_port = htons(0x1234);
		in4_pton(c->addr, -1, (u8 *)&sin->sin_addr, -1, NULL);
	} else if (c->family == AF_IB) {
		sib->sib_pkey = htons(0x8001);
		sib->sib_sid = cpu_to_be64(0x1061234);
		sib->sib_scope_id = (__force u64)cpu_to_be64(3);
		in6_pton(c->addr, -1, sib->sib_addr.sib_raw, -1, NULL);
	} else {
		sin6->sin6_port = htons(0x1234);
		in6_pton(c->addr, -1, (u8 *)&sin6->sin6_addr, -1, NULL);
	}
	/* Of its own size, so that reading further is noticed. */
	info.dest_addr = kmemdup(&ss, c->len, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, info.dest_addr);
	info.dest_addrlen = c->len;
	fi_tostr_r(buf, TOSTR_MAX, &info, FI_TYPE_INFO);
	kfree(info.dest_addr);
	line = strstr(buf, "dest_addr: ");
	KUNIT_ASSERT_NOT_NULL(test, line);
	line += strlen("dest_addr: ");
	end = strchr(line, '\n');
	KUNIT_ASSERT_NOT_NULL(test, end);
	*end = '\0';
	KUNIT_EXPECT_STREQ(test, c->want, line);
}

/* A string that is not terminated within its length */
static void tostr_addr_str(struct kunit *test)
{
	struct fi_info info = { .addr_format = FI_ADDR_STR, .src_addrlen = 3 };
	char *buf = kunit_kmalloc(test, TOSTR_MAX, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, buf);
	info.src_addr = kmemdup("abc", 3, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, info.src_addr);
	fi_tostr_r(buf, TOSTR_MAX, &info, FI_TYPE_INFO);
	kfree(info.src_addr);
	KUNIT_EXPECT_NOT_NULL(test, strstr(buf, "src_addr: abc\n"));
}

static int tostr_own(const struct fi_fid *fid, char *buf, size_t len)
{
	return scnprintf(buf, len, "mine\n");
}

static int tostr_not(const struct fi_fid *fid, char *buf, size_t len)
{
	return -ENOSYS;
}

static void tostr_fid(struct kunit *test)
{
	static const struct fi_ops own = {
		.size = sizeof(own), .tostr = tostr_own,
	};
	static const struct fi_ops not = {
		.size = sizeof(not), .tostr = tostr_not,
	};
	struct fi_fid fid = { .fclass = FI_CLASS_EP, .ops = &own };
	char buf[64];

	fi_tostr_r(buf, sizeof(buf), &fid, FI_TYPE_FID);
	KUNIT_EXPECT_STREQ(test, "mine\n", buf);
	fi_tostr_r(buf, 3, &fid, FI_TYPE_FID);
	KUNIT_EXPECT_STREQ(test, "mi", buf);
	fid.ops = &not;
	fi_tostr_r(buf, sizeof(buf), &fid, FI_TYPE_FID);
	KUNIT_EXPECT_EQ(test, 0, strncmp(buf, "fid: 0x", 7));
	fid.ops = NULL;
	fi_tostr_r(buf, sizeof(buf), &fid, FI_TYPE_FID);
	KUNIT_EXPECT_EQ(test, 0, strncmp(buf, "fid: 0x", 7));
}

static void tostr_null(struct kunit *test)
{
	char buf[4] = "abc";
	u64 val = 0;

	KUNIT_EXPECT_NULL(test, fi_tostr_r(NULL, 4, &val, FI_TYPE_CAPS));
	KUNIT_EXPECT_NULL(test, fi_tostr_r(buf, 0, &val, FI_TYPE_CAPS));
	KUNIT_EXPECT_NULL(test, fi_tostr_r(buf, 4, NULL, FI_TYPE_CAPS));
	KUNIT_EXPECT_STREQ(test, "abc", buf);
}

/* The buffer is this CPU's, and the next text overwrites it. */
static void tostr_percpu(struct kunit *test)
{
	const u64 caps = FI_MSG | FI_RMA;
	char *first, *second;

	preempt_disable();
	first = fi_tostr(&tostr_info, FI_TYPE_INFO);
	KUNIT_EXPECT_STREQ(test, tostr_info_text, first);
	second = fi_tostr(&caps, FI_TYPE_CAPS);
	KUNIT_EXPECT_STREQ(test, "FI_MSG, FI_RMA", second);
	KUNIT_EXPECT_PTR_EQ(test, first, second);
	KUNIT_EXPECT_NULL(test, fi_tostr(NULL, FI_TYPE_CAPS));
	preempt_enable();
}

static int tostr_suite_init(struct kunit_suite *suite)
{
	tostr_sin.sin_port = htons(47592);
	tostr_sin.sin_addr.s_addr = htonl(0xc0000202);
	return 0;
}

static struct kunit_case tostr_cases[] = {
	KUNIT_CASE_PARAM(tostr_names, names_gen_params),
	KUNIT_CASE_PARAM(tostr_structs, struct_gen_params),
	KUNIT_CASE(tostr_parts),
	KUNIT_CASE_PARAM(tostr_addr, addr_gen_params),
	KUNIT_CASE(tostr_addr_str),
	KUNIT_CASE(tostr_fid),
	KUNIT_CASE(tostr_null),
	KUNIT_CASE(tostr_percpu),
	{}
};

struct kunit_suite kofi_tostr_suite = {
	.name		= "kofi_tostr",
	.suite_init	= tostr_suite_init,
	.test_cases	= tostr_cases,
};

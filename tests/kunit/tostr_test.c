// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tests of kofi/tostr.c. What is expected is what fi_info --verbose prints. */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/inet.h>
#include <linux/slab.h>
#include <linux/string.h>

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
"        max_ep_auth_key: 0\n"
"        max_group_id: 0\n"
"        max_cntr_value: 18446744073709551615\n"
"        max_err_cntr_value: 0\n"
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

static const struct fi_cq_attr tostr_cq_attr = {
	.size = 7, .flags = FI_AFFINITY, .format = FI_CQ_FORMAT_DATA,
	.wait_obj = KOFI_WAIT_QUEUE, .signaling_vector = -3,
	.wait_cond = FI_CQ_COND_THRESHOLD,
};

static const struct fi_cntr_attr tostr_cntr_attr = {
	.events = FI_CNTR_EVENTS_BYTES, .wait_obj = FI_WAIT_UNSPEC, .flags = 18,
};

static const struct fi_cq_err_entry tostr_err_entry = {
	.flags = FI_RECV, .len = 5, .data = 6, .tag = 0xab, .olen = 7,
	.err = FI_ETRUNC, .prov_errno = -8,
};

/* -------------------------------------------------------------------- text */

static void tostr_whole_info(struct kunit *test)
{
	char *buf = kunit_kmalloc(test, TOSTR_MAX, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, buf);
	KUNIT_EXPECT_PTR_EQ(test, buf, fi_tostr_r(buf, TOSTR_MAX, &tostr_info,
						  FI_TYPE_INFO));
	KUNIT_EXPECT_STREQ(test, tostr_info_text, buf);
	KUNIT_EXPECT_PTR_EQ(test, buf, fi_tostr_r(buf, TOSTR_MAX, &tostr_empty,
						  FI_TYPE_INFO));
	KUNIT_EXPECT_STREQ(test, tostr_empty_text, buf);
}

static const struct value_case {
	const char	*name;
	enum fi_type	type;
	u64		value;	/* as many bytes of it as the type has */
	const char	*want;
} value_cases[] = {
	{ "ep type", FI_TYPE_EP_TYPE, FI_EP_RDM, "FI_EP_RDM" },
	{ "ep type unknown", FI_TYPE_EP_TYPE, 77, "Unknown" },
	{ "ep type with the provider's bit", FI_TYPE_EP_TYPE, FI_PROV_SPECIFIC,
	  "Unknown" },
	{ "no caps", FI_TYPE_CAPS, 0, "" },
	{ "caps", FI_TYPE_CAPS, ~0ULL,
	  "FI_MSG, FI_RMA, FI_TAGGED, FI_ATOMIC, FI_MULTICAST, FI_COLLECTIVE, FI_READ, FI_WRITE, FI_RECV, FI_SEND, FI_REMOTE_READ, FI_REMOTE_WRITE, FI_MULTI_RECV, FI_REMOTE_CQ_DATA, FI_TRIGGER, FI_FENCE, FI_RMA_PMEM, FI_SOURCE_ERR, FI_LOCAL_COMM, FI_REMOTE_COMM, FI_SHARED_AV, FI_RMA_EVENT, FI_SOURCE, FI_NAMED_RX_CTX, FI_DIRECTED_RECV, FI_HMEM, FI_AV_USER_ID, FI_PEER",
	},
	{ "op flags", FI_TYPE_OP_FLAGS, ~0ULL,
	  "FI_MULTICAST, FI_MULTI_RECV, FI_REMOTE_CQ_DATA, FI_MORE, FI_PEEK, FI_TRIGGER, FI_FENCE, FI_COMPLETION, FI_INJECT, FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE, FI_MATCH_COMPLETE, FI_AFFINITY, FI_CLAIM, FI_DISCARD",
	},
	{ "addr format", FI_TYPE_ADDR_FORMAT, FI_SOCKADDR_IN6,
	  "FI_SOCKADDR_IN6" },
	{ "addr format of a provider", FI_TYPE_ADDR_FORMAT,
	  FI_PROV_SPECIFIC | 1, "Provider specific" },
	{ "addr format unknown", FI_TYPE_ADDR_FORMAT, 1000, "Unknown" },
	{ "threading", FI_TYPE_THREADING, FI_THREAD_COMPLETION,
	  "FI_THREAD_COMPLETION" },
	{ "progress", FI_TYPE_PROGRESS, FI_PROGRESS_CONTROL_UNIFIED,
	  "FI_PROGRESS_CONTROL_UNIFIED" },
	{ "protocol", FI_TYPE_PROTOCOL, FI_PROTO_XNET, "FI_PROTO_XNET" },
	{ "protocol of a provider", FI_TYPE_PROTOCOL, FI_PROV_SPECIFIC,
	  "Provider specific" },
	{ "msg order", FI_TYPE_MSG_ORDER, ~0ULL,
	  "FI_ORDER_RAR, FI_ORDER_RAW, FI_ORDER_RAS, FI_ORDER_WAR, FI_ORDER_WAW, FI_ORDER_WAS, FI_ORDER_SAR, FI_ORDER_SAW, FI_ORDER_SAS, FI_ORDER_RMA_RAR, FI_ORDER_RMA_RAW, FI_ORDER_RMA_WAR, FI_ORDER_RMA_WAW, FI_ORDER_ATOMIC_RAR, FI_ORDER_ATOMIC_RAW, FI_ORDER_ATOMIC_WAR, FI_ORDER_ATOMIC_WAW",
	},
	{ "mode", FI_TYPE_MODE, ~0ULL,
	  "FI_CONTEXT, FI_MSG_PREFIX, FI_ASYNC_IOV, FI_RX_CQ_DATA, FI_LOCAL_MR, FI_CONTEXT2",
	},
	{ "av type", FI_TYPE_AV_TYPE, FI_AV_TABLE, "FI_AV_TABLE" },
	{ "first atomic type", FI_TYPE_ATOMIC_TYPE, 0, "FI_INT8" },
	{ "last atomic type", FI_TYPE_ATOMIC_TYPE, 15, "FI_UINT128" },
	{ "no atomic type", FI_TYPE_ATOMIC_TYPE, 16, "Unknown" },
	{ "first atomic op", FI_TYPE_ATOMIC_OP, 0, "FI_MIN" },
	{ "last atomic op", FI_TYPE_ATOMIC_OP, 18, "FI_MSWAP" },
	{ "version", FI_TYPE_VERSION, 0, "2.1.0" },
	{ "eq event", FI_TYPE_EQ_EVENT, FI_CONNREQ, "FI_CONNREQ" },
	{ "cq event flags", FI_TYPE_CQ_EVENT_FLAGS, ~0ULL,
	  "FI_SEND, FI_RECV, FI_RMA, FI_ATOMIC, FI_MSG, FI_TAGGED, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE, FI_REMOTE_CQ_DATA, FI_MULTI_RECV, FI_MORE, FI_CLAIM",
	},
	{ "mr mode", FI_TYPE_MR_MODE, ~0ULL,
	  "FI_MR_BASIC, FI_MR_SCALABLE, FI_MR_LOCAL, FI_MR_RAW, FI_MR_VIRT_ADDR, FI_MR_ALLOCATED, FI_MR_PROV_KEY, FI_MR_MMU_NOTIFY, FI_MR_RMA_EVENT, FI_MR_ENDPOINT, FI_MR_HMEM, FI_MR_COLLECTIVE",
	},
	{ "op type", FI_TYPE_OP_TYPE, 10, "FI_OP_CNTR_ADD" },
	{ "collective op", FI_TYPE_COLLECTIVE_OP, 8, "FI_GATHER" },
	{ "hmem iface", FI_TYPE_HMEM_IFACE, 5, "FI_HMEM_SYNAPSEAI" },
	{ "cq format", FI_TYPE_CQ_FORMAT, FI_CQ_FORMAT_TAGGED,
	  "FI_CQ_FORMAT_TAGGED" },
	{ "log level", FI_TYPE_LOG_LEVEL, 3, "debug" },
	{ "log subsystem", FI_TYPE_LOG_SUBSYS, 9, "cntr" },
	{ "cq wait cond", FI_TYPE_CQ_WAIT_COND, FI_CQ_COND_THRESHOLD,
	  "FI_CQ_COND_THRESHOLD" },
	{ "wait obj", FI_TYPE_WAIT_OBJ, FI_WAIT_POLLFD, "FI_WAIT_POLLFD" },
	{ "wait obj of ours", FI_TYPE_WAIT_OBJ, KOFI_WAIT_QUEUE,
	  "KOFI_WAIT_QUEUE" },
	{ "wait obj in the gap", FI_TYPE_WAIT_OBJ, 0x80, "Unknown" },
	{ "no such type", 1000, 0, "Unknown type" },
	{ "negative type", -1, 0, "Unknown type" },
};

KUNIT_ARRAY_PARAM_DESC(value, value_cases, name);

/* Flags are read as u64, all else as 32 bits. */
static const void *tostr_value(const struct value_case *c, u32 *val32)
{
	switch (c->type) {
	case FI_TYPE_CAPS:
	case FI_TYPE_OP_FLAGS:
	case FI_TYPE_MSG_ORDER:
	case FI_TYPE_MODE:
	case FI_TYPE_CQ_EVENT_FLAGS:
		return &c->value;
	default:
		*val32 = c->value;
		return val32;
	}
}

static void tostr_values(struct kunit *test)
{
	const struct value_case *c = test->param_value;
	char *buf = kunit_kmalloc(test, 1024, GFP_KERNEL);
	u32 val32;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	KUNIT_EXPECT_PTR_EQ(test, buf, fi_tostr_r(buf, 1024,
						  tostr_value(c, &val32),
						  c->type));
	KUNIT_EXPECT_STREQ(test, c->want, buf);
}

static void tostr_structs(struct kunit *test)
{
	char *buf = kunit_kmalloc(test, TOSTR_MAX, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, buf);
	fi_tostr_r(buf, TOSTR_MAX, &tostr_cq_attr, FI_TYPE_CQ_ATTR);
	KUNIT_EXPECT_STREQ(test, buf,
			   "fi_cq_attr:\n"
			   "    size: 7\n"
			   "    flags: [ FI_AFFINITY ]\n"
			   "    format: FI_CQ_FORMAT_DATA\n"
			   "    wait_obj: KOFI_WAIT_QUEUE\n"
			   "    signaling_vector: -3\n"
			   "    wait_cond: FI_CQ_COND_THRESHOLD\n");
	fi_tostr_r(buf, TOSTR_MAX, &tostr_cntr_attr, FI_TYPE_CNTR_ATTR);
	KUNIT_EXPECT_STREQ(test, buf,
			   "fi_cntr_attr:\n"
			   "    events: FI_CNTR_EVENTS_BYTES\n"
			   "    wait_obj: FI_WAIT_UNSPEC\n"
			   "    flags: 0x12\n");
	fi_tostr_r(buf, TOSTR_MAX, &tostr_err_entry, FI_TYPE_CQ_ERR_ENTRY);
	KUNIT_EXPECT_STREQ(test, buf,
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
			   "    err_data_size: 0\n");
	/* Alone, a structure is not indented. */
	fi_tostr_r(buf, TOSTR_MAX, &tostr_fabric, FI_TYPE_FABRIC_ATTR);
	KUNIT_EXPECT_STREQ(test, buf,
			   "fi_fabric_attr:\n"
			   "    name: 192.0.2.0/24\n"
			   "    prov_name: sock\n"
			   "    prov_version: 1.0\n"
			   "    api_version: 1.17\n");
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
	struct fi_info info = { .addr_format = c->format };
	char *buf = kunit_kmalloc(test, TOSTR_MAX, GFP_KERNEL);
	char *line, *end;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	if (c->family == AF_INET) {
		sin->sin_port = htons(0x1234);
		in4_pton(c->addr, -1, (u8 *)&sin->sin_addr, -1, NULL);
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

/* ---------------------------------------------------------------- overflow */

static const struct room_case {
	const char	*name;
	enum fi_type	type;
	const void	*data;
} room_cases[] = {
	{ "info", FI_TYPE_INFO, &tostr_info },
	{ "empty info", FI_TYPE_INFO, &tostr_empty },
	{ "tx attr", FI_TYPE_TX_ATTR, &tostr_tx },
	{ "rx attr", FI_TYPE_RX_ATTR, &tostr_rx },
	{ "ep attr", FI_TYPE_EP_ATTR, &tostr_ep },
	{ "domain attr", FI_TYPE_DOMAIN_ATTR, &tostr_domain },
	{ "fabric attr", FI_TYPE_FABRIC_ATTR, &tostr_fabric },
	{ "cq attr", FI_TYPE_CQ_ATTR, &tostr_cq_attr },
	{ "cntr attr", FI_TYPE_CNTR_ATTR, &tostr_cntr_attr },
	{ "cq error entry", FI_TYPE_CQ_ERR_ENTRY, &tostr_err_entry },
	{ "nic", FI_TYPE_FID, &tostr_nic },
	{ "caps", FI_TYPE_CAPS, &tostr_info.caps },
	{ "version", FI_TYPE_VERSION, &tostr_info },
};

KUNIT_ARRAY_PARAM_DESC(room, room_cases, name);

/* At every length: the beginning of the text, a NUL, and nothing beyond. */
static void tostr_room(struct kunit *test)
{
	const struct room_case *c = test->param_value;
	char *whole = kunit_kmalloc(test, TOSTR_MAX, GFP_KERNEL);
	size_t full, len;
	char *buf;

	KUNIT_ASSERT_NOT_NULL(test, whole);
	fi_tostr_r(whole, TOSTR_MAX, c->data, c->type);
	full = strlen(whole);
	KUNIT_ASSERT_LT(test, full + 1, TOSTR_MAX);
	for (len = 1; len <= full + 2; len++) {
		/* The allocator watches over the end. */
		buf = kmalloc(len, GFP_KERNEL);
		if (!buf)
			break;
		memset(buf, 'x', len);
		fi_tostr_r(buf, len, c->data, c->type);
		if (strnlen(buf, len) != min(len - 1, full) ||
		    memcmp(buf, whole, strnlen(buf, len))) {
			kfree(buf);
			break;
		}
		kfree(buf);
	}
	KUNIT_EXPECT_EQ(test, full + 3, len);
}

static int tostr_suite_init(struct kunit_suite *suite)
{
	tostr_sin.sin_port = htons(47592);
	tostr_sin.sin_addr.s_addr = htonl(0xc0000202);
	return 0;
}

static struct kunit_case tostr_cases[] = {
	KUNIT_CASE(tostr_whole_info),
	KUNIT_CASE_PARAM(tostr_values, value_gen_params),
	KUNIT_CASE(tostr_structs),
	KUNIT_CASE_PARAM(tostr_addr, addr_gen_params),
	KUNIT_CASE(tostr_addr_str),
	KUNIT_CASE(tostr_fid),
	KUNIT_CASE(tostr_null),
	KUNIT_CASE_PARAM(tostr_room, room_gen_params),
	{}
};

struct kunit_suite kofi_tostr_suite = {
	.name		= "kofi_tostr",
	.suite_init	= tostr_suite_init,
	.test_cases	= tostr_cases,
};

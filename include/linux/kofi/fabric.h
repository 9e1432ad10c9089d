/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Basics: versions, flags, fi_info and its attributes, discovery, and the calls that
 * work on any object (fabric.h of libfabric; fi_getinfo(3), fi_fabric(3)).
 *
 * All values equal libfabric's, so numbers mean the same on both sides of a
 * connection. Names that exist only here start with kofi_ or
 * KOFI_ and are in kofi.h.
 */
#ifndef _LINUX_KOFI_FABRIC_H
#define _LINUX_KOFI_FABRIC_H

#include <linux/bits.h>
#include <linux/limits.h>
#include <linux/types.h>

#include <linux/kofi/fi_errno.h>

struct net;
struct fid_fabric;
struct fid_domain;
struct fid_pep;
struct kofi_obj;

#define FI_MAJOR_VERSION	2
#define FI_MINOR_VERSION	6
#define FI_REVISION_VERSION	0

#define FI_VERSION(major, minor)	(((major) << 16) | (minor))
#define FI_MAJOR(version)		((version) >> 16)
#define FI_MINOR(version)		((version) & 0xFFFF)
#define FI_VERSION_GE(v1, v2)		((v1) >= (v2))
#define FI_VERSION_LT(v1, v2)		((v1) < (v2))

enum {
	FI_PATH_MAX	= 256,
	FI_NAME_MAX	= 64,
	FI_VERSION_MAX	= 64,
};

#define FI_PROV_SPECIFIC	0x80000000U

/*
 * Capabilities, operation flags and completion flags share one 64-bit space.
 * Common bits are numbered from 1 upwards, bits of one call or class from 59
 * downwards; 60 to 63 are the implementation's own (kofi.h).
 */
#define FI_MSG			BIT_ULL(1)
#define FI_RMA			BIT_ULL(2)
#define FI_TAGGED		BIT_ULL(3)
#define FI_ATOMIC		BIT_ULL(4)
#define FI_ATOMICS		FI_ATOMIC
#define FI_MULTICAST		BIT_ULL(5)
#define FI_COLLECTIVE		BIT_ULL(6)

#define FI_READ			BIT_ULL(8)
#define FI_WRITE		BIT_ULL(9)
#define FI_RECV			BIT_ULL(10)
#define FI_SEND			BIT_ULL(11)
#define FI_TRANSMIT		FI_SEND
#define FI_REMOTE_READ		BIT_ULL(12)
#define FI_REMOTE_WRITE		BIT_ULL(13)

#define FI_MULTI_RECV		BIT_ULL(16)
#define FI_REMOTE_CQ_DATA	BIT_ULL(17)
#define FI_MORE			BIT_ULL(18)
#define FI_PEEK			BIT_ULL(19)
#define FI_TRIGGER		BIT_ULL(20)
#define FI_FENCE		BIT_ULL(21)

#define FI_COMPLETION		BIT_ULL(24)
#define FI_EVENT		FI_COMPLETION
#define FI_INJECT		BIT_ULL(25)
#define FI_INJECT_COMPLETE	BIT_ULL(26)
#define FI_TRANSMIT_COMPLETE	BIT_ULL(27)
#define FI_DELIVERY_COMPLETE	BIT_ULL(28)
#define FI_AFFINITY		BIT_ULL(29)
#define FI_COMMIT_COMPLETE	BIT_ULL(30)
#define FI_MATCH_COMPLETE	BIT_ULL(31)

#define FI_RESCAN		BIT_ULL(35)
#define FI_PEER_TRANSFER	BIT_ULL(36)
#define FI_AV_USER_ID		BIT_ULL(41)
#define FI_PEER			BIT_ULL(43)
#define FI_TAGGED_MULTI_RECV	BIT_ULL(46)
#define FI_HMEM			BIT_ULL(47)
#define FI_RMA_PMEM		BIT_ULL(49)
#define FI_SOURCE_ERR		BIT_ULL(50)
#define FI_LOCAL_COMM		BIT_ULL(51)
#define FI_REMOTE_COMM		BIT_ULL(52)
#define FI_SHARED_AV		BIT_ULL(53)
#define FI_PROV_ATTR_ONLY	BIT_ULL(54)
#define FI_NUMERICHOST		BIT_ULL(55)
#define FI_RMA_EVENT		BIT_ULL(56)
#define FI_SOURCE		BIT_ULL(57)
#define FI_NAMED_RX_CTX		BIT_ULL(58)
#define FI_DIRECTED_RECV	BIT_ULL(59)

/* tagged messages */
#define FI_CLAIM		BIT_ULL(59)
#define FI_DISCARD		BIT_ULL(58)

/* fi_ep_bind() */
#define FI_SELECTIVE_COMPLETION	BIT_ULL(59)

enum {
	FI_FORMAT_UNSPEC,
	FI_SOCKADDR,
	FI_SOCKADDR_IN,
	FI_SOCKADDR_IN6,
	FI_SOCKADDR_IB,
	FI_ADDR_PSMX,
	FI_ADDR_GNI,
	FI_ADDR_BGQ,
	FI_ADDR_MLX,
	FI_ADDR_STR,
	FI_ADDR_PSMX2,
	FI_ADDR_IB_UD,
	FI_ADDR_EFA,
	FI_ADDR_PSMX3,
	FI_ADDR_OPX,
	FI_ADDR_CXI,
	FI_ADDR_UCX,
	FI_SOCKADDR_IP,
};

typedef u64 fi_addr_t;

#define FI_ADDR_UNSPEC		((fi_addr_t)-1)
#define FI_ADDR_NOTAVAIL	((fi_addr_t)-1)
#define FI_KEY_NOTAVAIL		((u64)-1)
#define FI_SHARED_CONTEXT	SIZE_MAX

enum fi_av_type {
	FI_AV_UNSPEC,
	FI_AV_MAP,
	FI_AV_TABLE,
};

/* fi_av_open(), fi_av_insert() */
#define FI_AV_USER_ID		BIT_ULL(41)

enum fi_mr_mode {
	FI_MR_UNSPEC,
	FI_MR_BASIC,
	FI_MR_SCALABLE,
};

#define FI_MR_LOCAL		BIT(2)
#define FI_MR_RAW		BIT(3)
#define FI_MR_VIRT_ADDR		BIT(4)
#define FI_MR_ALLOCATED		BIT(5)
#define FI_MR_PROV_KEY		BIT(6)
#define FI_MR_MMU_NOTIFY	BIT(7)
#define FI_MR_RMA_EVENT		BIT(8)
#define FI_MR_ENDPOINT		BIT(9)
#define FI_MR_HMEM		BIT(10)
#define FI_MR_COLLECTIVE	BIT(11)

enum fi_progress {
	FI_PROGRESS_UNSPEC,
	FI_PROGRESS_AUTO,
	FI_PROGRESS_MANUAL,
	FI_PROGRESS_CONTROL_UNIFIED,
};

enum fi_threading {
	FI_THREAD_UNSPEC,
	FI_THREAD_SAFE,
	FI_THREAD_FID,
	FI_THREAD_DOMAIN,
	FI_THREAD_COMPLETION,
	FI_THREAD_ENDPOINT,
};

enum fi_resource_mgmt {
	FI_RM_UNSPEC,
	FI_RM_DISABLED,
	FI_RM_ENABLED,
};

#define FI_ORDER_NONE		0ULL
#define FI_ORDER_RAR		BIT_ULL(0)
#define FI_ORDER_RAW		BIT_ULL(1)
#define FI_ORDER_RAS		BIT_ULL(2)
#define FI_ORDER_WAR		BIT_ULL(3)
#define FI_ORDER_WAW		BIT_ULL(4)
#define FI_ORDER_WAS		BIT_ULL(5)
#define FI_ORDER_SAR		BIT_ULL(6)
#define FI_ORDER_SAW		BIT_ULL(7)
#define FI_ORDER_SAS		BIT_ULL(8)
#define FI_ORDER_STRICT		0x1FF
#define FI_ORDER_DATA		BIT_ULL(16)
#define FI_ORDER_RMA_RAR	BIT_ULL(32)
#define FI_ORDER_RMA_RAW	BIT_ULL(33)
#define FI_ORDER_RMA_WAR	BIT_ULL(34)
#define FI_ORDER_RMA_WAW	BIT_ULL(35)
#define FI_ORDER_ATOMIC_RAR	BIT_ULL(36)
#define FI_ORDER_ATOMIC_RAW	BIT_ULL(37)
#define FI_ORDER_ATOMIC_WAR	BIT_ULL(38)
#define FI_ORDER_ATOMIC_WAW	BIT_ULL(39)

enum fi_ep_type {
	FI_EP_UNSPEC,
	FI_EP_MSG,
	FI_EP_DGRAM,
	FI_EP_RDM,
};

/* Two endpoints of the same protocol and version understand each other. */
enum {
	FI_PROTO_UNSPEC,
	FI_PROTO_RDMA_CM_IB_RC,
	FI_PROTO_IWARP,
	FI_PROTO_IB_UD,
	FI_PROTO_PSMX,
	FI_PROTO_UDP,
	FI_PROTO_SOCK_TCP,
	FI_PROTO_MXM,
	FI_PROTO_IWARP_RDM,
	FI_PROTO_IB_RDM,
	FI_PROTO_GNI,
	FI_PROTO_RXM,
	FI_PROTO_RXD,
	FI_PROTO_MLX,
	FI_PROTO_NETWORKDIRECT,
	FI_PROTO_PSMX2,
	FI_PROTO_SHM,
	FI_PROTO_MRAIL,
	FI_PROTO_RSTREAM,
	FI_PROTO_RDMA_CM_IB_XRC,
	FI_PROTO_EFA,
	FI_PROTO_PSMX3,
	FI_PROTO_RXM_TCP,
	FI_PROTO_OPX,
	FI_PROTO_CXI,
	FI_PROTO_XNET,
};

/*
 * Format of tags, in fi_ep_attr.mem_tag_format: values below FI_TAG_MAX_FORMAT name a
 * use of tags; other values are a mask, with its highest bit at the tag's highest.
 * Providers here match all 64 bits in any case.
 */
enum {
	FI_TAG_BITS,
	FI_TAG_MPI,
	FI_TAG_CCL,
	FI_TAG_MAX_FORMAT	= 0x10000,
};

enum {
	FI_TC_UNSPEC		= 0,
	FI_TC_DSCP		= 0x100,
	FI_TC_LABEL		= 0x200,
	FI_TC_BEST_EFFORT	= FI_TC_LABEL,
	FI_TC_LOW_LATENCY,
	FI_TC_DEDICATED_ACCESS,
	FI_TC_BULK_DATA,
	FI_TC_SCAVENGER,
	FI_TC_NETWORK_CTRL,
};

/**
 * fi_tc_dscp_set - traffic class that stands for a DSCP value
 * @dscp: differentiated services code point, 0 to 63
 *
 * Return: a value for the tclass attributes.
 */
static inline u32 fi_tc_dscp_set(u8 dscp)
{
	return (u32)dscp | FI_TC_DSCP;
}

/**
 * fi_tc_dscp_get - DSCP value of a traffic class
 * @tclass: a tclass attribute
 *
 * Return: the code point, 0 if @tclass is not one made by fi_tc_dscp_set().
 */
static inline u8 fi_tc_dscp_get(u32 tclass)
{
	return tclass & FI_TC_DSCP ? (u8)tclass : 0;
}

/* fi_info.mode */
#define FI_CONTEXT		BIT_ULL(59)
#define FI_MSG_PREFIX		BIT_ULL(58)
#define FI_ASYNC_IOV		BIT_ULL(57)
#define FI_RX_CQ_DATA		BIT_ULL(56)
#define FI_LOCAL_MR		BIT_ULL(55)
#define FI_CONTEXT2		BIT_ULL(52)

struct fi_tx_attr {
	u64			caps;
	u64			mode;
	u64			op_flags;
	u64			msg_order;
	u64			comp_order;
	size_t			inject_size;
	size_t			size;
	size_t			iov_limit;
	size_t			rma_iov_limit;
	u32			tclass;
};

struct fi_rx_attr {
	u64			caps;
	u64			mode;
	u64			op_flags;
	u64			msg_order;
	u64			comp_order;
	size_t			total_buffered_recv;
	size_t			size;
	size_t			iov_limit;
};

struct fi_ep_attr {
	enum fi_ep_type		type;
	u32			protocol;
	u32			protocol_version;
	size_t			max_msg_size;
	size_t			msg_prefix_size;
	size_t			max_order_raw_size;
	size_t			max_order_war_size;
	size_t			max_order_waw_size;
	u64			mem_tag_format;
	size_t			tx_ctx_cnt;
	size_t			rx_ctx_cnt;
	size_t			auth_key_size;
	u8			*auth_key;
};

struct fi_domain_attr {
	struct fid_domain	*domain;
	char			*name;
	enum fi_threading	threading;
	enum fi_progress	control_progress;
	union {
		enum fi_progress	data_progress;
		enum fi_progress	progress;
	};
	enum fi_resource_mgmt	resource_mgmt;
	enum fi_av_type		av_type;
	int			mr_mode;
	size_t			mr_key_size;
	size_t			cq_data_size;
	size_t			cq_cnt;
	size_t			ep_cnt;
	size_t			tx_ctx_cnt;
	size_t			rx_ctx_cnt;
	size_t			max_ep_tx_ctx;
	size_t			max_ep_rx_ctx;
	size_t			max_ep_stx_ctx;
	size_t			max_ep_srx_ctx;
	size_t			cntr_cnt;
	size_t			mr_iov_limit;
	u64			caps;
	u64			mode;
	u8			*auth_key;
	size_t			auth_key_size;
	size_t			max_err_data;
	size_t			mr_cnt;
	u32			tclass;
	size_t			max_ep_auth_key;
	u32			max_group_id;
	u64			max_cntr_value;
	u64			max_err_cntr_value;
};

/**
 * struct fi_fabric_attr - a fabric and its provider
 * @fabric: an open fabric to reuse, or NULL
 * @name: name of the fabric; endpoints of equally named fabrics reach each
 *	other
 * @prov_name: provider
 * @prov_version: version of the provider, FI_VERSION() encoded
 * @api_version: interface version fi_getinfo() was called with
 * @net: network namespace the addresses belong to. An fi_info owns a
 *	reference to it; NULL in hints.
 */
struct fi_fabric_attr {
	struct fid_fabric	*fabric;
	char			*name;
	char			*prov_name;
	u32			prov_version;
	u32			api_version;
	struct net		*net;
};

struct fi_info {
	struct fi_info		*next;
	u64			caps;
	u64			mode;
	u32			addr_format;
	size_t			src_addrlen;
	size_t			dest_addrlen;
	void			*src_addr;
	void			*dest_addr;
	struct fi_fid		*handle;
	struct fi_tx_attr	*tx_attr;
	struct fi_rx_attr	*rx_attr;
	struct fi_ep_attr	*ep_attr;
	struct fi_domain_attr	*domain_attr;
	struct fi_fabric_attr	*fabric_attr;
	struct fid_nic		*nic;
};

struct fi_device_attr {
	char			*name;
	char			*device_id;
	char			*device_version;
	char			*vendor_id;
	char			*driver;
	char			*firmware;
};

enum fi_bus_type {
	FI_BUS_UNSPEC,
	FI_BUS_UNKNOWN = FI_BUS_UNSPEC,
	FI_BUS_PCI,
};

struct fi_pci_attr {
	u16			domain_id;
	u8			bus_id;
	u8			device_id;
	u8			function_id;
};

struct fi_bus_attr {
	enum fi_bus_type	bus_type;
	union {
		struct fi_pci_attr	pci;
	} attr;
};

enum fi_link_state {
	FI_LINK_UNKNOWN,
	FI_LINK_DOWN,
	FI_LINK_UP,
};

struct fi_link_attr {
	char			*address;
	size_t			mtu;
	size_t			speed;
	enum fi_link_state	state;
	char			*network_type;
};

enum {
	FI_CLASS_UNSPEC,
	FI_CLASS_FABRIC,
	FI_CLASS_DOMAIN,
	FI_CLASS_EP,
	FI_CLASS_SEP,
	FI_CLASS_RX_CTX,
	FI_CLASS_SRX_CTX,
	FI_CLASS_TX_CTX,
	FI_CLASS_STX_CTX,
	FI_CLASS_PEP,
	FI_CLASS_INTERFACE,
	FI_CLASS_AV,
	FI_CLASS_MR,
	FI_CLASS_EQ,
	FI_CLASS_CQ,
	FI_CLASS_CNTR,
	FI_CLASS_WAIT,
	FI_CLASS_POLL,
	FI_CLASS_CONNREQ,
	FI_CLASS_MC,
	FI_CLASS_NIC,
	FI_CLASS_AV_SET,
};

/**
 * struct fi_fid - first member of every object (struct fid of libfabric)
 * @fclass: FI_CLASS_*
 * @context: the consumer's, handed to the call that made the object and
 *	returned with its events
 * @ops: calls that work on any object
 * @obj: the core's bookkeeping, not for consumers
 *
 * The name differs because struct fid is taken (linux/exportfs.h). Members
 * of other objects that hold it are still called fid.
 */
struct fi_fid {
	size_t			fclass;
	void			*context;
	const struct fi_ops	*ops;
	struct kofi_obj		*obj;
};

typedef struct fi_fid *fid_t;

struct fi_ops {
	size_t	size;
	int	(*close)(struct fi_fid *fid);
	int	(*bind)(struct fi_fid *fid, struct fi_fid *bfid, u64 flags);
	int	(*control)(struct fi_fid *fid, int command, void *arg);
	int	(*ops_open)(struct fi_fid *fid, const char *name, u64 flags,
			    void **ops, void *context);
	int	(*tostr)(const struct fi_fid *fid, char *buf, size_t len);
	int	(*ops_set)(struct fi_fid *fid, const char *name, u64 flags,
			   void *ops, void *context);
};

struct fi_ops_fabric {
	size_t	size;
	int	(*domain)(struct fid_fabric *fabric, struct fi_info *info,
			  struct fid_domain **dom, void *context);
	int	(*passive_ep)(struct fid_fabric *fabric, struct fi_info *info,
			      struct fid_pep **pep, void *context);
};

struct fid_fabric {
	struct fi_fid			fid;
	const struct fi_ops_fabric	*ops;
	u32				api_version;
};

struct fid_nic {
	struct fi_fid		fid;
	struct fi_device_attr	*device_attr;
	struct fi_bus_attr	*bus_attr;
	struct fi_link_attr	*link_attr;
	void			*prov_attr;
};

struct fi_alias {
	struct fi_fid		**fid;
	u64			flags;
};

struct fi_fid_var {
	int			name;
	void			*val;
};

/* fi_control() commands, with the type that arg points to */
enum {
	FI_GETFIDFLAG,		/* u64 */
	FI_SETFIDFLAG,		/* u64 */
	FI_GETOPSFLAG,		/* u64: in FI_TRANSMIT or FI_RECV, out the flags */
	FI_SETOPSFLAG,		/* u64: FI_TRANSMIT or FI_RECV, and the flags */
	FI_ALIAS,		/* struct fi_alias */
	FI_GETWAIT,		/* wait_queue_head_t * */
	FI_ENABLE,		/* NULL */
	FI_BACKLOG,		/* int */
	FI_GET_RAW_MR,
	FI_MAP_RAW_MR,
	FI_UNMAP_KEY,
	FI_QUEUE_WORK,
	FI_CANCEL_WORK,
	FI_FLUSH_WORK,
	FI_REFRESH,
	FI_DUP,
	FI_GETWAITOBJ,		/* enum fi_wait_obj */
	FI_GET_VAL,		/* struct fi_fid_var */
	FI_SET_VAL,		/* struct fi_fid_var */
	FI_EXPORT_FID,
};

struct fi_context {
	void			*internal[4];
};

struct fi_context2 {
	void			*internal[8];
};

enum fi_type {
	FI_TYPE_INFO,
	FI_TYPE_EP_TYPE,
	FI_TYPE_CAPS,
	FI_TYPE_OP_FLAGS,
	FI_TYPE_ADDR_FORMAT,
	FI_TYPE_TX_ATTR,
	FI_TYPE_RX_ATTR,
	FI_TYPE_EP_ATTR,
	FI_TYPE_DOMAIN_ATTR,
	FI_TYPE_FABRIC_ATTR,
	FI_TYPE_THREADING,
	FI_TYPE_PROGRESS,
	FI_TYPE_PROTOCOL,
	FI_TYPE_MSG_ORDER,
	FI_TYPE_MODE,
	FI_TYPE_AV_TYPE,
	FI_TYPE_ATOMIC_TYPE,
	FI_TYPE_ATOMIC_OP,
	FI_TYPE_VERSION,
	FI_TYPE_EQ_EVENT,
	FI_TYPE_CQ_EVENT_FLAGS,
	FI_TYPE_MR_MODE,
	FI_TYPE_OP_TYPE,
	FI_TYPE_FID,
	FI_TYPE_COLLECTIVE_OP,
	FI_TYPE_HMEM_IFACE,
	FI_TYPE_CQ_FORMAT,
	FI_TYPE_LOG_LEVEL,
	FI_TYPE_LOG_SUBSYS,
	FI_TYPE_AV_ATTR,
	FI_TYPE_CQ_ATTR,
	FI_TYPE_MR_ATTR,
	FI_TYPE_CNTR_ATTR,
	FI_TYPE_CQ_ERR_ENTRY,
	FI_TYPE_CQ_WAIT_COND,
	FI_TYPE_WAIT_OBJ,
};

u32 fi_version(void);

int fi_getinfo(u32 version, const char *node, const char *service, u64 flags,
	       const struct fi_info *hints, struct fi_info **info);
void fi_freeinfo(struct fi_info *info);
struct fi_info *fi_dupinfo(const struct fi_info *info);

/**
 * fi_allocinfo - an empty fi_info to be filled in as hints
 *
 * All attribute structures are present and zero, which asks for nothing.
 *
 * Context: process, may sleep.
 * Return: the info, to be freed with fi_freeinfo(), or NULL without memory.
 */
static inline struct fi_info *fi_allocinfo(void)
{
	return fi_dupinfo(NULL);
}

char *fi_tostr(const void *data, enum fi_type type);
char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type type);

int __fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		void *context, const char *owner);

/**
 * fi_fabric - open a fabric
 * @attr: description of the fabric by fi_getinfo(): name and prov_name must
 *	be set. Without net it is the namespace of the calling task.
 * @fabric: receives the fabric
 * @context: returned with events of the fabric
 *
 * See fi_fabric(3). The fabric keeps its network namespace and its provider's
 * module. The calling module is the owner of all objects below the fabric.
 *
 * Context: process, may sleep; may load the provider's module.
 * Return: 0; -EINVAL for NULL or incomplete arguments; -ENOSYS if
 * attr->api_version is newer than this API; -ENODEV if there is no such
 * provider; -ENOMEM, or the provider's error.
 */
static inline int fi_fabric(struct fi_fabric_attr *attr,
			    struct fid_fabric **fabric, void *context)
{
	return __fi_fabric(attr, fabric, context, KBUILD_MODNAME);
}

/**
 * fi_fabric2 - open a fabric as described by an fi_info
 * @info: an info that fi_getinfo() returned
 * @fabric: receives the fabric
 * @flags: none
 * @context: returned with events of the fabric
 *
 * See fi_fabric(3).
 *
 * Context: process, may sleep; may load the provider's module.
 * Return: 0; -FI_EBADFLAGS; or the error of fi_fabric().
 */
static inline int fi_fabric2(struct fi_info *info, struct fid_fabric **fabric,
			     u64 flags, void *context)
{
	if (!info)
		return -EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	return fi_fabric(info->fabric_attr, fabric, context);
}

int fi_close(struct fi_fid *fid);
int fi_control(struct fi_fid *fid, int command, void *arg);
int fi_open_ops(struct fi_fid *fid, const char *name, u64 flags, void **ops,
		void *context);
int fi_set_ops(struct fi_fid *fid, const char *name, u64 flags, void *ops,
	       void *context);

/**
 * fi_alias - second handle of an object with other default flags
 * @fid: the object
 * @alias_fid: receives the handle
 * @flags: default flags of the handle
 *
 * Return: 0, or the error of fi_control(); -ENOSYS where unsupported.
 */
static inline int fi_alias(struct fi_fid *fid, struct fi_fid **alias_fid,
			   u64 flags)
{
	struct fi_alias alias = { .fid = alias_fid, .flags = flags };

	return fi_control(fid, FI_ALIAS, &alias);
}

/**
 * fi_get_val - read a named variable of an object
 * @fid: the object
 * @name: variable, provider specific ones have FI_PROV_SPECIFIC set
 * @val: receives the value; the type depends on @name
 *
 * Return: 0, or the error of fi_control(); -ENOSYS where unsupported.
 */
static inline int fi_get_val(struct fi_fid *fid, int name, void *val)
{
	struct fi_fid_var var = { .name = name, .val = val };

	return fi_control(fid, FI_GET_VAL, &var);
}

/**
 * fi_set_val - set a named variable of an object
 * @fid: the object
 * @name: variable, provider specific ones have FI_PROV_SPECIFIC set
 * @val: the value; the type depends on @name
 *
 * Return: 0, or the error of fi_control(); -ENOSYS where unsupported.
 */
static inline int fi_set_val(struct fi_fid *fid, int name, void *val)
{
	struct fi_fid_var var = { .name = name, .val = val };

	return fi_control(fid, FI_SET_VAL, &var);
}

#endif /* _LINUX_KOFI_FABRIC_H */

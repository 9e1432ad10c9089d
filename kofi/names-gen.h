/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/kofi.yaml */
/* by tools/kofi/names.py */

#define KOFI_NAMES_CAPS(X) \
	X(FI_MSG, 1ULL << 1) X(FI_RMA, 1ULL << 2) X(FI_TAGGED, 1ULL << 3) X(FI_ATOMIC, 1ULL << 4) \
	X(FI_MULTICAST, 1ULL << 5) X(FI_COLLECTIVE, 1ULL << 6) X(FI_READ, 1ULL << 8) \
	X(FI_WRITE, 1ULL << 9) X(FI_RECV, 1ULL << 10) X(FI_SEND, 1ULL << 11) \
	X(FI_REMOTE_READ, 1ULL << 12) X(FI_REMOTE_WRITE, 1ULL << 13) X(FI_MULTI_RECV, 1ULL << 16) \
	X(FI_REMOTE_CQ_DATA, 1ULL << 17) X(FI_TRIGGER, 1ULL << 20) X(FI_FENCE, 1ULL << 21) \
	X(FI_RMA_PMEM, 1ULL << 49) X(FI_SOURCE_ERR, 1ULL << 50) X(FI_LOCAL_COMM, 1ULL << 51) \
	X(FI_REMOTE_COMM, 1ULL << 52) X(FI_SHARED_AV, 1ULL << 53) X(FI_RMA_EVENT, 1ULL << 56) \
	X(FI_SOURCE, 1ULL << 57) X(FI_NAMED_RX_CTX, 1ULL << 58) X(FI_DIRECTED_RECV, 1ULL << 59) \
	X(FI_TAGGED_MULTI_RECV, 1ULL << 46) X(FI_HMEM, 1ULL << 47) X(FI_AV_USER_ID, 1ULL << 41) \
	X(FI_PEER, 1ULL << 43)

#define KOFI_NAMES_MODE(X) \
	X(FI_CONTEXT, 1ULL << 59) X(FI_MSG_PREFIX, 1ULL << 58) X(FI_ASYNC_IOV, 1ULL << 57) \
	X(FI_RX_CQ_DATA, 1ULL << 56) X(FI_LOCAL_MR, 1ULL << 55) X(FI_CONTEXT2, 1ULL << 52)

#define KOFI_NAMES_OP_FLAGS(X) \
	X(FI_MULTICAST, 1ULL << 5) X(FI_MULTI_RECV, 1ULL << 16) X(FI_REMOTE_CQ_DATA, 1ULL << 17) \
	X(FI_MORE, 1ULL << 18) X(FI_PEEK, 1ULL << 19) X(FI_TRIGGER, 1ULL << 20) \
	X(FI_FENCE, 1ULL << 21) X(FI_COMPLETION, 1ULL << 24) X(FI_INJECT, 1ULL << 25) \
	X(FI_INJECT_COMPLETE, 1ULL << 26) X(FI_TRANSMIT_COMPLETE, 1ULL << 27) \
	X(FI_DELIVERY_COMPLETE, 1ULL << 28) X(FI_MATCH_COMPLETE, 1ULL << 31) \
	X(FI_AFFINITY, 1ULL << 29) X(FI_COMMIT_COMPLETE, 1ULL << 30) X(FI_CLAIM, 1ULL << 59) \
	X(FI_DISCARD, 1ULL << 58)

#define KOFI_NAMES_MSG_ORDER(X) \
	X(FI_ORDER_RAR, 1ULL << 0) X(FI_ORDER_RAW, 1ULL << 1) X(FI_ORDER_RAS, 1ULL << 2) \
	X(FI_ORDER_WAR, 1ULL << 3) X(FI_ORDER_WAW, 1ULL << 4) X(FI_ORDER_WAS, 1ULL << 5) \
	X(FI_ORDER_SAR, 1ULL << 6) X(FI_ORDER_SAW, 1ULL << 7) X(FI_ORDER_SAS, 1ULL << 8) \
	X(FI_ORDER_RMA_RAR, 1ULL << 32) X(FI_ORDER_RMA_RAW, 1ULL << 33) \
	X(FI_ORDER_RMA_WAR, 1ULL << 34) X(FI_ORDER_RMA_WAW, 1ULL << 35) \
	X(FI_ORDER_ATOMIC_RAR, 1ULL << 36) X(FI_ORDER_ATOMIC_RAW, 1ULL << 37) \
	X(FI_ORDER_ATOMIC_WAR, 1ULL << 38) X(FI_ORDER_ATOMIC_WAW, 1ULL << 39)

#define KOFI_NAMES_MR_MODE(X) \
	X(FI_MR_BASIC, 1ULL << 0) X(FI_MR_SCALABLE, 1ULL << 1) X(FI_MR_LOCAL, 1ULL << 2) \
	X(FI_MR_RAW, 1ULL << 3) X(FI_MR_VIRT_ADDR, 1ULL << 4) X(FI_MR_ALLOCATED, 1ULL << 5) \
	X(FI_MR_PROV_KEY, 1ULL << 6) X(FI_MR_MMU_NOTIFY, 1ULL << 7) X(FI_MR_RMA_EVENT, 1ULL << 8) \
	X(FI_MR_ENDPOINT, 1ULL << 9) X(FI_MR_HMEM, 1ULL << 10) X(FI_MR_COLLECTIVE, 1ULL << 11)

#define KOFI_NAMES_ADDR_FORMAT(X) \
	X(FI_FORMAT_UNSPEC, 0) X(FI_SOCKADDR, 1) X(FI_SOCKADDR_IN, 2) X(FI_SOCKADDR_IN6, 3) \
	X(FI_SOCKADDR_IB, 4) X(FI_ADDR_PSMX, 5) X(FI_ADDR_GNI, 6) X(FI_ADDR_BGQ, 7) \
	X(FI_ADDR_MLX, 8) X(FI_ADDR_STR, 9) X(FI_ADDR_PSMX2, 10) X(FI_ADDR_IB_UD, 11) \
	X(FI_ADDR_EFA, 12) X(FI_ADDR_PSMX3, 13) X(FI_ADDR_OPX, 14) X(FI_ADDR_CXI, 15) \
	X(FI_ADDR_UCX, 16) X(FI_SOCKADDR_IP, 17)

#define KOFI_NAMES_EP_TYPE(X) \
	X(FI_EP_UNSPEC, 0) X(FI_EP_MSG, 1) X(FI_EP_DGRAM, 2) X(FI_EP_RDM, 3)

#define KOFI_NAMES_PROTOCOL(X) \
	X(FI_PROTO_UNSPEC, 0) X(FI_PROTO_RDMA_CM_IB_RC, 1) X(FI_PROTO_IWARP, 2) \
	X(FI_PROTO_IB_UD, 3) X(FI_PROTO_PSMX, 4) X(FI_PROTO_UDP, 5) X(FI_PROTO_SOCK_TCP, 6) \
	X(FI_PROTO_MXM, 7) X(FI_PROTO_IWARP_RDM, 8) X(FI_PROTO_IB_RDM, 9) X(FI_PROTO_GNI, 10) \
	X(FI_PROTO_RXM, 11) X(FI_PROTO_RXD, 12) X(FI_PROTO_MLX, 13) X(FI_PROTO_NETWORKDIRECT, 14) \
	X(FI_PROTO_PSMX2, 15) X(FI_PROTO_SHM, 16) X(FI_PROTO_MRAIL, 17) X(FI_PROTO_RSTREAM, 18) \
	X(FI_PROTO_RDMA_CM_IB_XRC, 19) X(FI_PROTO_EFA, 20) X(FI_PROTO_PSMX3, 21) \
	X(FI_PROTO_RXM_TCP, 22) X(FI_PROTO_OPX, 23) X(FI_PROTO_CXI, 24) X(FI_PROTO_XNET, 25)

#define KOFI_NAMES_THREADING(X) \
	X(FI_THREAD_UNSPEC, 0) X(FI_THREAD_SAFE, 1) X(FI_THREAD_FID, 2) X(FI_THREAD_DOMAIN, 3) \
	X(FI_THREAD_COMPLETION, 4) X(FI_THREAD_ENDPOINT, 5)

#define KOFI_NAMES_PROGRESS(X) \
	X(FI_PROGRESS_UNSPEC, 0) X(FI_PROGRESS_AUTO, 1) X(FI_PROGRESS_MANUAL, 2) \
	X(FI_PROGRESS_CONTROL_UNIFIED, 3)

#define KOFI_NAMES_RESOURCE_MGMT(X) \
	X(FI_RM_UNSPEC, 0) X(FI_RM_DISABLED, 1) X(FI_RM_ENABLED, 2)

#define KOFI_NAMES_AV_TYPE(X) \
	X(FI_AV_UNSPEC, 0) X(FI_AV_MAP, 1) X(FI_AV_TABLE, 2)

#define KOFI_NAMES_BUS_TYPE(X) \
	X(FI_BUS_UNKNOWN, 0) X(FI_BUS_PCI, 1)

#define KOFI_NAMES_LINK_STATE(X) \
	X(FI_LINK_UNKNOWN, 0) X(FI_LINK_DOWN, 1) X(FI_LINK_UP, 2)

#define KOFI_NAMES_CLASS(X) \
	X(FI_CLASS_UNSPEC, 0) X(FI_CLASS_FABRIC, 1) X(FI_CLASS_DOMAIN, 2) X(FI_CLASS_EP, 3) \
	X(FI_CLASS_SEP, 4) X(FI_CLASS_RX_CTX, 5) X(FI_CLASS_SRX_CTX, 6) X(FI_CLASS_TX_CTX, 7) \
	X(FI_CLASS_STX_CTX, 8) X(FI_CLASS_PEP, 9) X(FI_CLASS_INTERFACE, 10) X(FI_CLASS_AV, 11) \
	X(FI_CLASS_MR, 12) X(FI_CLASS_EQ, 13) X(FI_CLASS_CQ, 14) X(FI_CLASS_CNTR, 15) \
	X(FI_CLASS_WAIT, 16) X(FI_CLASS_POLL, 17) X(FI_CLASS_CONNREQ, 18) X(FI_CLASS_MC, 19) \
	X(FI_CLASS_NIC, 20) X(FI_CLASS_AV_SET, 21)

#define KOFI_NAMES_EP_STATE(X) \
	X(KOFI_EP_IDLE, 0) X(KOFI_EP_ENABLED, 1) X(KOFI_EP_CONNECTING, 2) X(KOFI_EP_CONNECTED, 3) \
	X(KOFI_EP_SHUTDOWN, 4)

#define KOFI_NAMES_EVENT_KIND(X) \
	X(KOFI_EVENT_CONNECTED, 0) X(KOFI_EVENT_CONNECT_FAILED, 1) X(KOFI_EVENT_SHUTDOWN, 2) \
	X(KOFI_EVENT_LOST, 3) X(KOFI_EVENT_PEER_LOST, 4) X(KOFI_EVENT_VIOLATION, 5) \
	X(KOFI_EVENT_PATH_LOST, 6)

#define KOFI_NAMES(X) \
	KOFI_NAMES_CAPS(X) KOFI_NAMES_MODE(X) KOFI_NAMES_OP_FLAGS(X) KOFI_NAMES_MSG_ORDER(X) \
	KOFI_NAMES_MR_MODE(X) KOFI_NAMES_ADDR_FORMAT(X) KOFI_NAMES_EP_TYPE(X) \
	KOFI_NAMES_PROTOCOL(X) KOFI_NAMES_THREADING(X) KOFI_NAMES_PROGRESS(X) \
	KOFI_NAMES_RESOURCE_MGMT(X) KOFI_NAMES_AV_TYPE(X) KOFI_NAMES_BUS_TYPE(X) \
	KOFI_NAMES_LINK_STATE(X) KOFI_NAMES_CLASS(X) KOFI_NAMES_EP_STATE(X) \
	KOFI_NAMES_EVENT_KIND(X)

#define KOFI_FIELDS_TX_ATTR(F) \
	F(tx_attr, caps, TX_ATTR_CAPS, FLAGS, caps) F(tx_attr, mode, TX_ATTR_MODE, FLAGS, mode) \
	F(tx_attr, op_flags, TX_ATTR_OP_FLAGS, FLAGS, op_flags) \
	F(tx_attr, msg_order, TX_ATTR_MSG_ORDER, FLAGS, msg_order) \
	F(tx_attr, comp_order, TX_ATTR_COMP_ORDER, ORDER, comp_order) \
	F(tx_attr, inject_size, TX_ATTR_INJECT_SIZE, NUMBER, none) \
	F(tx_attr, size, TX_ATTR_SIZE, NUMBER, none) \
	F(tx_attr, iov_limit, TX_ATTR_IOV_LIMIT, NUMBER, none) \
	F(tx_attr, rma_iov_limit, TX_ATTR_RMA_IOV_LIMIT, NUMBER, none) \
	F(tx_attr, tclass, TX_ATTR_TCLASS, HEX, none)

#define KOFI_FIELDS_RX_ATTR(F) \
	F(rx_attr, caps, RX_ATTR_CAPS, FLAGS, caps) F(rx_attr, mode, RX_ATTR_MODE, FLAGS, mode) \
	F(rx_attr, op_flags, RX_ATTR_OP_FLAGS, FLAGS, op_flags) \
	F(rx_attr, msg_order, RX_ATTR_MSG_ORDER, FLAGS, msg_order) \
	F(rx_attr, comp_order, RX_ATTR_COMP_ORDER, ORDER, comp_order) \
	F(rx_attr, total_buffered_recv, RX_ATTR_TOTAL_BUFFERED_RECV, NUMBER, none) \
	F(rx_attr, size, RX_ATTR_SIZE, NUMBER, none) \
	F(rx_attr, iov_limit, RX_ATTR_IOV_LIMIT, NUMBER, none)

#define KOFI_FIELDS_EP_ATTR(F) \
	F(ep_attr, type, EP_ATTR_TYPE, ENUM, ep_type) \
	F(ep_attr, protocol, EP_ATTR_PROTOCOL, OPEN_ENUM, protocol) \
	F(ep_attr, protocol_version, EP_ATTR_PROTOCOL_VERSION, NUMBER, none) \
	F(ep_attr, max_msg_size, EP_ATTR_MAX_MSG_SIZE, NUMBER, none) \
	F(ep_attr, msg_prefix_size, EP_ATTR_MSG_PREFIX_SIZE, NUMBER, none) \
	F(ep_attr, max_order_raw_size, EP_ATTR_MAX_ORDER_RAW_SIZE, NUMBER, none) \
	F(ep_attr, max_order_war_size, EP_ATTR_MAX_ORDER_WAR_SIZE, NUMBER, none) \
	F(ep_attr, max_order_waw_size, EP_ATTR_MAX_ORDER_WAW_SIZE, NUMBER, none) \
	F(ep_attr, mem_tag_format, EP_ATTR_MEM_TAG_FORMAT, HEX64, none) \
	F(ep_attr, tx_ctx_cnt, EP_ATTR_TX_CTX_CNT, CONTEXTS, none) \
	F(ep_attr, rx_ctx_cnt, EP_ATTR_RX_CTX_CNT, CONTEXTS, none) \
	F(ep_attr, auth_key_size, EP_ATTR_AUTH_KEY_SIZE, NUMBER, none)

#define KOFI_FIELDS_DOMAIN_ATTR(F) \
	F(domain_attr, name, DOMAIN_ATTR_NAME, TEXT, none) \
	F(domain_attr, threading, DOMAIN_ATTR_THREADING, ENUM, threading) \
	F(domain_attr, control_progress, DOMAIN_ATTR_CONTROL_PROGRESS, ENUM, progress) \
	F(domain_attr, data_progress, DOMAIN_ATTR_DATA_PROGRESS, ENUM, progress) \
	F(domain_attr, resource_mgmt, DOMAIN_ATTR_RESOURCE_MGMT, ENUM, resource_mgmt) \
	F(domain_attr, av_type, DOMAIN_ATTR_AV_TYPE, ENUM, av_type) \
	F(domain_attr, mr_mode, DOMAIN_ATTR_MR_MODE, FLAGS, mr_mode) \
	F(domain_attr, mr_key_size, DOMAIN_ATTR_MR_KEY_SIZE, NUMBER, none) \
	F(domain_attr, cq_data_size, DOMAIN_ATTR_CQ_DATA_SIZE, NUMBER, none) \
	F(domain_attr, cq_cnt, DOMAIN_ATTR_CQ_CNT, NUMBER, none) \
	F(domain_attr, ep_cnt, DOMAIN_ATTR_EP_CNT, NUMBER, none) \
	F(domain_attr, tx_ctx_cnt, DOMAIN_ATTR_TX_CTX_CNT, NUMBER, none) \
	F(domain_attr, rx_ctx_cnt, DOMAIN_ATTR_RX_CTX_CNT, NUMBER, none) \
	F(domain_attr, max_ep_tx_ctx, DOMAIN_ATTR_MAX_EP_TX_CTX, NUMBER, none) \
	F(domain_attr, max_ep_rx_ctx, DOMAIN_ATTR_MAX_EP_RX_CTX, NUMBER, none) \
	F(domain_attr, max_ep_stx_ctx, DOMAIN_ATTR_MAX_EP_STX_CTX, NUMBER, none) \
	F(domain_attr, max_ep_srx_ctx, DOMAIN_ATTR_MAX_EP_SRX_CTX, NUMBER, none) \
	F(domain_attr, cntr_cnt, DOMAIN_ATTR_CNTR_CNT, NUMBER, none) \
	F(domain_attr, mr_iov_limit, DOMAIN_ATTR_MR_IOV_LIMIT, NUMBER, none) \
	F(domain_attr, caps, DOMAIN_ATTR_CAPS, FLAGS, caps) \
	F(domain_attr, mode, DOMAIN_ATTR_MODE, FLAGS, mode) \
	F(domain_attr, auth_key_size, DOMAIN_ATTR_AUTH_KEY_SIZE, NUMBER, none) \
	F(domain_attr, max_err_data, DOMAIN_ATTR_MAX_ERR_DATA, NUMBER, none) \
	F(domain_attr, mr_cnt, DOMAIN_ATTR_MR_CNT, NUMBER, none) \
	F(domain_attr, tclass, DOMAIN_ATTR_TCLASS, HEX, none) \
	F(domain_attr, max_ep_auth_key, DOMAIN_ATTR_MAX_EP_AUTH_KEY, HIDDEN, none) \
	F(domain_attr, max_group_id, DOMAIN_ATTR_MAX_GROUP_ID, HIDDEN, none) \
	F(domain_attr, max_cntr_value, DOMAIN_ATTR_MAX_CNTR_VALUE, HIDDEN, none) \
	F(domain_attr, max_err_cntr_value, DOMAIN_ATTR_MAX_ERR_CNTR_VALUE, HIDDEN, none)

#define KOFI_FIELDS_FABRIC_ATTR(F) \
	F(fabric_attr, name, FABRIC_ATTR_NAME, TEXT, none) \
	F(fabric_attr, prov_name, FABRIC_ATTR_PROV_NAME, TEXT, none) \
	F(fabric_attr, prov_version, FABRIC_ATTR_PROV_VERSION, VERSION, none) \
	F(fabric_attr, api_version, FABRIC_ATTR_API_VERSION, VERSION, none)

#define KOFI_FIELDS_DEVICE_ATTR(F) \
	F(device_attr, name, DEVICE_ATTR_NAME, TEXT, none) \
	F(device_attr, device_id, DEVICE_ATTR_DEVICE_ID, TEXT, none) \
	F(device_attr, device_version, DEVICE_ATTR_DEVICE_VERSION, TEXT, none) \
	F(device_attr, vendor_id, DEVICE_ATTR_VENDOR_ID, TEXT, none) \
	F(device_attr, driver, DEVICE_ATTR_DRIVER, TEXT, none) \
	F(device_attr, firmware, DEVICE_ATTR_FIRMWARE, TEXT, none)

#define KOFI_FIELDS_PCI_ATTR(F) \
	F(pci_attr, domain_id, PCI_ATTR_DOMAIN_ID, NUMBER, none) \
	F(pci_attr, bus_id, PCI_ATTR_BUS_ID, NUMBER, none) \
	F(pci_attr, device_id, PCI_ATTR_DEVICE_ID, NUMBER, none) \
	F(pci_attr, function_id, PCI_ATTR_FUNCTION_ID, NUMBER, none)

#define KOFI_FIELDS_LINK_ATTR(F) \
	F(link_attr, address, LINK_ATTR_ADDRESS, TEXT, none) \
	F(link_attr, mtu, LINK_ATTR_MTU, NUMBER, none) \
	F(link_attr, speed, LINK_ATTR_SPEED, NUMBER, none) \
	F(link_attr, state, LINK_ATTR_STATE, ENUM, link_state) \
	F(link_attr, network_type, LINK_ATTR_NETWORK_TYPE, TEXT, none)

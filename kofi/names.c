// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tables of names, members and errors (names.h), built into kofi.ko and into the tool.
 *
 * Numbers are the spec's. In the kernel the build fails where a constant of the
 * headers has another.
 */
#ifdef __KERNEL__
#include <linux/build_bug.h>

#include "internal.h"
#endif

#include <uapi/linux/kofi.h>

#include "names-gen.h"
#include "names.h"

#ifdef __KERNEL__
#define CHECK(name, number)	{ static_assert((name) == (number)); }

static void __maybe_unused kofi_names_check(void)
{
	KOFI_NAMES(CHECK)
	CHECK(FI_ORDER_STRICT, 0x1ff)
	CHECK(FI_ORDER_DATA, 1 << 16)
}
#endif

#define NAME(name, number)	{ number, #name },
#define NAMES(table, LIST) \
	const struct kofi_name kofi_names_##table[] = { LIST(NAME) {} }

NAMES(caps, KOFI_NAMES_CAPS);
NAMES(mode, KOFI_NAMES_MODE);
NAMES(op_flags, KOFI_NAMES_OP_FLAGS);
NAMES(msg_order, KOFI_NAMES_MSG_ORDER);
NAMES(mr_mode, KOFI_NAMES_MR_MODE);
NAMES(addr_format, KOFI_NAMES_ADDR_FORMAT);
NAMES(ep_type, KOFI_NAMES_EP_TYPE);
NAMES(protocol, KOFI_NAMES_PROTOCOL);
NAMES(threading, KOFI_NAMES_THREADING);
NAMES(progress, KOFI_NAMES_PROGRESS);
NAMES(resource_mgmt, KOFI_NAMES_RESOURCE_MGMT);
NAMES(av_type, KOFI_NAMES_AV_TYPE);
NAMES(bus_type, KOFI_NAMES_BUS_TYPE);
NAMES(link_state, KOFI_NAMES_LINK_STATE);
NAMES(class, KOFI_NAMES_CLASS);
NAMES(ep_state, KOFI_NAMES_EP_STATE);
NAMES(event_kind, KOFI_NAMES_EVENT_KIND);

/* Sets of bits rather than bits, which a spec cannot define. */
const struct kofi_name kofi_names_comp_order[] = {
	NAME(FI_ORDER_STRICT, 0x1ff)
	NAME(FI_ORDER_DATA, 1 << 16)
	{}
};

#define kofi_names_none		NULL

#define FIELD(owner, member, attribute, how, table) {			\
	.label = #member, .form = KOFI_FORM_##how,			\
	.attr = KOFI_A_##attribute, .names = kofi_names_##table,	\
	KOFI_FIELD_AT(struct fi_##owner, member) },
#define POINTER(owner, member, how, text) {				\
	.label = #member, .form = KOFI_FORM_##how, .null = text,	\
	KOFI_FIELD_AT(struct fi_##owner, member) },
#define NEST(type, member, attribute, text) {				\
	.label = "fi_" #member, .form = KOFI_FORM_NEST,			\
	.attr = KOFI_A_##attribute, .nest = kofi_##member##_fields,	\
	.null = text, KOFI_FIELD_AT(type, member) },

const struct kofi_field kofi_tx_attr_fields[] = {
	KOFI_FIELDS_TX_ATTR(FIELD) {}
};

const struct kofi_field kofi_rx_attr_fields[] = {
	KOFI_FIELDS_RX_ATTR(FIELD) {}
};

const struct kofi_field kofi_ep_attr_fields[] = {
	KOFI_FIELDS_EP_ATTR(FIELD) {}
};

const struct kofi_field kofi_domain_attr_fields[] = {
	POINTER(domain_attr, domain, POINTER, "0x0")
	KOFI_FIELDS_DOMAIN_ATTR(FIELD) {}
};

const struct kofi_field kofi_fabric_attr_fields[] = {
	KOFI_FIELDS_FABRIC_ATTR(FIELD) {}
};

static const struct kofi_field kofi_device_attr_fields[] = {
	KOFI_FIELDS_DEVICE_ATTR(FIELD) {}
};

static const struct kofi_field kofi_pci_attr_fields[] = {
	KOFI_FIELDS_PCI_ATTR(FIELD) {}
};

static const struct kofi_field kofi_bus_attr_fields[] = {
	FIELD(bus_attr, bus_type, BUS_ATTR_TYPE, ENUM, bus_type)
	{ .label = "fi_pci_attr", .form = KOFI_FORM_PCI,
	  .attr = KOFI_A_BUS_ATTR_PCI, .nest = kofi_pci_attr_fields },
	{}
};

static const struct kofi_field kofi_link_attr_fields[] = {
	KOFI_FIELDS_LINK_ATTR(FIELD) {}
};

const struct kofi_field kofi_nic_fields[] = {
	NEST(struct fid_nic, device_attr, NIC_DEVICE_ATTR, NULL)
	NEST(struct fid_nic, bus_attr, NIC_BUS_ATTR, NULL)
	NEST(struct fid_nic, link_attr, NIC_LINK_ATTR, NULL)
	{}
};

const struct kofi_field kofi_info_fields[] = {
	FIELD(info, caps, INFO_CAPS, FLAGS, caps)
	FIELD(info, mode, INFO_MODE, FLAGS, mode)
	FIELD(info, addr_format, INFO_ADDR_FORMAT, OPEN_ENUM, addr_format)
	FIELD(info, src_addrlen, INFO_SRC_ADDR, ADDR_LEN, none)
	FIELD(info, dest_addrlen, INFO_DEST_ADDR, ADDR_LEN, none)
	FIELD(info, src_addr, INFO_SRC_ADDR, ADDR, none)
	FIELD(info, dest_addr, INFO_DEST_ADDR, ADDR, none)
	POINTER(info, handle, FID, "(nil)")
	NEST(struct fi_info, tx_attr, INFO_TX_ATTR, "(null)")
	NEST(struct fi_info, rx_attr, INFO_RX_ATTR, "(null)")
	NEST(struct fi_info, ep_attr, INFO_EP_ATTR, "(null)")
	NEST(struct fi_info, domain_attr, INFO_DOMAIN_ATTR, "(null)")
	NEST(struct fi_info, fabric_attr, INFO_FABRIC_ATTR, "(null)")
	{ .label = "nic", .form = KOFI_FORM_NEST, .attr = KOFI_A_INFO_NIC,
	  .nest = kofi_nic_fields, .null = "(nil)", KOFI_FIELD_AT(struct fi_info, nic) },
	{}
};

const char *const kofi_errno_fabric[FI_ERRNO_MAX - FI_ERRNO_OFFSET] = {
	[FI_EOTHER - FI_ERRNO_OFFSET]		= "unspecified error",
	[FI_ETOOSMALL - FI_ERRNO_OFFSET]	= "buffer too small",
	[FI_EOPBADSTATE - FI_ERRNO_OFFSET]	= "not permitted in this state",
	[FI_EAVAIL - FI_ERRNO_OFFSET]		= "an error entry is waiting",
	[FI_EBADFLAGS - FI_ERRNO_OFFSET]	= "unknown or misplaced flags",
	[FI_ENOEQ - FI_ERRNO_OFFSET]		= "no event queue bound",
	[FI_EDOMAIN - FI_ERRNO_OFFSET]		= "not of this domain",
	[FI_ENOCQ - FI_ERRNO_OFFSET]		= "no completion queue bound",
	[FI_ECRC - FI_ERRNO_OFFSET]		= "checksum mismatch",
	[FI_ETRUNC - FI_ERRNO_OFFSET]		= "message truncated",
	[FI_ENOKEY - FI_ERRNO_OFFSET]		= "key not available",
	[FI_ENOAV - FI_ERRNO_OFFSET]		= "no address vector bound",
	[FI_EOVERRUN - FI_ERRNO_OFFSET]		= "queue overrun",
	[FI_ENORX - FI_ERRNO_OFFSET]		= "peer had no receive posted",
	[FI_ENOMR - FI_ERRNO_OFFSET]		= "memory registration limit reached",
	[FI_EFIREWALLADDR - FI_ERRNO_OFFSET]	= "address behind a firewall",
};

/* NULL if the value has no name */
const char *kofi_name_of(const struct kofi_name *names,
			 unsigned long long value)
{
	while (names->name && names->value != value)
		names++;
	return names->name;
}

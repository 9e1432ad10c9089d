/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Names of values, the members of the structures an fi_info consists of, and
 * words for the fabric's own error codes.
 *
 * The first two come from Documentation/netlink/specs/kofi.yaml, by way of
 * names-gen.h. names.c is built into kofi.ko as well as into the kofi tool: the
 * kernel makes text (tostr.c) and messages (netlink_info.c) from these tables,
 * the tool text and JSON from messages.
 */
#ifndef _KOFI_NAMES_H
#define _KOFI_NAMES_H

#ifdef __KERNEL__
#include <linux/stddef.h>
#include <linux/types.h>
#else
#include <stddef.h>
#endif

#include <linux/kofi/fi_errno.h>

/**
 * struct kofi_name - a value that has a name
 * @value: a number, or the bits of a flag
 * @name: libfabric's spelling; NULL terminates a table
 */
struct kofi_name {
	unsigned long long	value;
	const char		*name;
};

/* Text form of a member. Numbers are decimal unless stated otherwise. */
enum kofi_form {
	KOFI_FORM_NUMBER,
	KOFI_FORM_INT,		/* with a sign */
	KOFI_FORM_HEX,
	KOFI_FORM_HEX64,	/* with all its digits */
	KOFI_FORM_CONTEXTS,	/* or FI_SHARED_CONTEXT */
	KOFI_FORM_HIDDEN,	/* not in text, as libfabric does not print it */
	KOFI_FORM_VERSION,	/* major.minor */
	KOFI_FORM_ENUM,		/* one of names */
	KOFI_FORM_OPEN_ENUM,	/* the same; providers may have their own */
	KOFI_FORM_FLAGS,	/* a set of names */
	KOFI_FORM_ORDER,	/* the same, where none has a name too */
	KOFI_FORM_ADDR_LEN,	/* in a message: the length of the attribute */
	/* pointers, from here on */
	KOFI_FORM_TEXT,
	KOFI_FORM_ADDR,
	KOFI_FORM_POINTER,	/* in no message, and hashed in the kernel */
	KOFI_FORM_FID,		/* the same, to an object */
	KOFI_FORM_NEST,		/* to another structure */
	KOFI_FORM_PCI,		/* no pointer but a part, valid for a PCI bus */
};

/**
 * struct kofi_field - a member of a structure
 * @label: name of the member; NULL terminates a table
 * @form: text form of the value
 * @attr: netlink attribute of the member, 0 if it has none
 * @offset: offset in the structure (kernel alone)
 * @size: bytes of the member (kernel alone)
 * @names: names of the values
 * @nest: members of the structure that the member points to
 * @null: text for a pointer that is NULL; without it there is no line
 */
struct kofi_field {
	const char		*label;
	enum kofi_form		form;
	unsigned short		attr;
	unsigned short		offset;
	unsigned short		size;
	const struct kofi_name	*names;
	const struct kofi_field	*nest;
	const char		*null;
};

/* Position of a member, the last argument, in its structure */
#ifdef __KERNEL__
#define KOFI_FIELD_AT(type, ...)				\
	.offset = offsetof(type, __VA_ARGS__),			\
	.size = sizeof_field(type, __VA_ARGS__)
#else
#define KOFI_FIELD_AT(...)
#endif

extern const struct kofi_name
	kofi_names_caps[], kofi_names_mode[], kofi_names_op_flags[],
	kofi_names_msg_order[], kofi_names_comp_order[], kofi_names_mr_mode[],
	kofi_names_addr_format[], kofi_names_ep_type[], kofi_names_protocol[],
	kofi_names_threading[], kofi_names_progress[],
	kofi_names_resource_mgmt[], kofi_names_av_type[],
	kofi_names_bus_type[], kofi_names_link_state[], kofi_names_class[],
	kofi_names_ep_state[], kofi_names_event_kind[];

extern const struct kofi_field
	kofi_info_fields[], kofi_tx_attr_fields[], kofi_rx_attr_fields[],
	kofi_ep_attr_fields[], kofi_domain_attr_fields[],
	kofi_fabric_attr_fields[], kofi_nic_fields[];

/* Words for the codes that are no errno values */
extern const char *const
	kofi_errno_fabric[FI_ERRNO_MAX - FI_ERRNO_OFFSET];

const char *kofi_name_of(const struct kofi_name *names,
			 unsigned long long value);

#ifdef __KERNEL__
struct fi_info;

/* tostr.c: values of members */
u64 kofi_field_uint(const struct kofi_field *f, const void *from);
const void *kofi_field_ptr(const struct kofi_field *f, const void *from);
size_t kofi_field_addr_len(const struct kofi_field *f,
			   const struct fi_info *info);
#endif

#endif /* _KOFI_NAMES_H */

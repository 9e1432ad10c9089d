// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Constants by name (names.h): tables of the macros made from the spec. */
#include <string.h>
#include <strings.h>

#include "../../kofi/netlink-names.h"
#include "names.h"

#define ROW(name, value)	{ #name, value },
#define TABLE(table, LIST) \
	const struct name table[] = { LIST(ROW) { NULL, 0 } }

TABLE(names_caps, KOFI_NAMES_CAPS);
TABLE(names_mode, KOFI_NAMES_MODE);
TABLE(names_op_flags, KOFI_NAMES_OP_FLAGS);
TABLE(names_msg_order, KOFI_NAMES_MSG_ORDER);
TABLE(names_mr_mode, KOFI_NAMES_MR_MODE);
TABLE(names_addr_format, KOFI_NAMES_ADDR_FORMAT);
TABLE(names_ep_type, KOFI_NAMES_EP_TYPE);
TABLE(names_protocol, KOFI_NAMES_PROTOCOL);
TABLE(names_threading, KOFI_NAMES_THREADING);
TABLE(names_progress, KOFI_NAMES_PROGRESS);
TABLE(names_resource_mgmt, KOFI_NAMES_RESOURCE_MGMT);
TABLE(names_av_type, KOFI_NAMES_AV_TYPE);
TABLE(names_bus_type, KOFI_NAMES_BUS_TYPE);
TABLE(names_link_state, KOFI_NAMES_LINK_STATE);
TABLE(names_class, KOFI_NAMES_CLASS);
TABLE(names_ep_state, KOFI_NAMES_EP_STATE);

/* Sets of bits rather than bits, which a spec cannot define. */
const struct name names_comp_order[] = {
	{ "FI_ORDER_STRICT", 0x1ff },
	{ "FI_ORDER_DATA", 1 << 16 },
	{ NULL, 0 },
};

const char *name_of(const struct name *names, uint64_t value)
{
	for (; names->name; names++)
		if (names->value == value)
			return names->name;
	return NULL;
}

bool name_find(const struct name *names, const char *prefix, const char *text,
	       uint64_t *value)
{
	size_t n = strlen(prefix);

	for (; names->name; names++) {
		if (strcasecmp(names->name, text) &&
		    (strncasecmp(names->name, prefix, n) ||
		     strcasecmp(names->name + n, text)))
			continue;
		*value = names->value;
		return true;
	}
	return false;
}

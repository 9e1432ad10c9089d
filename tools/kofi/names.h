/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Constants by name, as the netlink spec defines them. */
#ifndef KOFI_TOOL_NAMES_H
#define KOFI_TOOL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

struct name {
	const char	*name;	/* NULL at the end of a table */
	uint64_t	value;
};

extern const struct name names_caps[];
extern const struct name names_mode[];
extern const struct name names_op_flags[];
extern const struct name names_msg_order[];
extern const struct name names_comp_order[];
extern const struct name names_mr_mode[];
extern const struct name names_addr_format[];
extern const struct name names_ep_type[];
extern const struct name names_protocol[];
extern const struct name names_threading[];
extern const struct name names_progress[];
extern const struct name names_resource_mgmt[];
extern const struct name names_av_type[];
extern const struct name names_bus_type[];
extern const struct name names_link_state[];
extern const struct name names_class[];
extern const struct name names_ep_state[];

/* NULL if the value has no name */
const char *name_of(const struct name *names, uint64_t value);

/* Whether @text, with or without @prefix and in any case, is a name. */
bool name_find(const struct name *names, const char *prefix, const char *text,
	       uint64_t *value);

#endif /* KOFI_TOOL_NAMES_H */

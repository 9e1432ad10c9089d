// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi info and kofi list: what fi_info(1) tells of userspace providers, of
 * those in the kernel.
 *
 * What an fi_info consists of is said once, in the tables below: label, order
 * and form are those of fi_info --verbose (libfabric 1.17), and JSON has the
 * same members. Members libfabric has added since are in JSON alone.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../../include/uapi/linux/kofi.h"
#include "kofi.h"
#include "names.h"
#include "nl.h"

/* ----------------------------------------------------------------- fields */

#define FLAG_SOURCE	0x0200000000000000ULL	/* FI_SOURCE of fi_getinfo() */
#define NAME_MAX_LEN	63		/* of the spec's names */

enum form {
	NUMBER,
	HEX,
	HEX64,		/* with all its digits */
	TEXT,
	VERSION,	/* major.minor */
	NAME,		/* one of names */
	FLAGS,		/* a set of names */
	ORDER,		/* the same, where none has a name too */
	ADDR,
	ADDR_LEN,	/* size of an address attribute */
	NEST,
	ONLY_TEXT,	/* a pointer of libfabric's; the kernel tells none */
	ONLY_JSON,	/* a NUMBER libfabric 1.17 does not print */
};

struct field {
	const char		*label;
	uint16_t		attr;
	enum form		form;
	const struct name	*names;
	const struct fields	*nest;
	const char		*text;	/* ONLY_TEXT: it; NEST: if absent */
};

struct fields {
	const struct field	*list;
	int			max;	/* highest attribute */
};

#define F(label, attr, form)	{ label, attr, form, NULL, NULL, NULL }
#define N(label, attr, form, names)	{ label, attr, form, names, NULL, NULL }
#define END			{ NULL, 0, NUMBER, NULL, NULL, NULL }

#define MAX_ATTR	63	/* of any set */

static const struct field tx_attr_list[] = {
	N("caps", KOFI_A_TX_ATTR_CAPS, FLAGS, names_caps),
	N("mode", KOFI_A_TX_ATTR_MODE, FLAGS, names_mode),
	N("op_flags", KOFI_A_TX_ATTR_OP_FLAGS, FLAGS, names_op_flags),
	N("msg_order", KOFI_A_TX_ATTR_MSG_ORDER, FLAGS, names_msg_order),
	N("comp_order", KOFI_A_TX_ATTR_COMP_ORDER, ORDER, names_comp_order),
	F("inject_size", KOFI_A_TX_ATTR_INJECT_SIZE, NUMBER),
	F("size", KOFI_A_TX_ATTR_SIZE, NUMBER),
	F("iov_limit", KOFI_A_TX_ATTR_IOV_LIMIT, NUMBER),
	F("rma_iov_limit", KOFI_A_TX_ATTR_RMA_IOV_LIMIT, NUMBER),
	F("tclass", KOFI_A_TX_ATTR_TCLASS, HEX),
	END
};

static const struct fields tx_attr = { tx_attr_list, KOFI_A_TX_ATTR_MAX };

static const struct field rx_attr_list[] = {
	N("caps", KOFI_A_RX_ATTR_CAPS, FLAGS, names_caps),
	N("mode", KOFI_A_RX_ATTR_MODE, FLAGS, names_mode),
	N("op_flags", KOFI_A_RX_ATTR_OP_FLAGS, FLAGS, names_op_flags),
	N("msg_order", KOFI_A_RX_ATTR_MSG_ORDER, FLAGS, names_msg_order),
	N("comp_order", KOFI_A_RX_ATTR_COMP_ORDER, ORDER, names_comp_order),
	F("total_buffered_recv", KOFI_A_RX_ATTR_TOTAL_BUFFERED_RECV, NUMBER),
	F("size", KOFI_A_RX_ATTR_SIZE, NUMBER),
	F("iov_limit", KOFI_A_RX_ATTR_IOV_LIMIT, NUMBER),
	END
};

static const struct fields rx_attr = { rx_attr_list, KOFI_A_RX_ATTR_MAX };

static const struct field ep_attr_list[] = {
	N("type", KOFI_A_EP_ATTR_TYPE, NAME, names_ep_type),
	N("protocol", KOFI_A_EP_ATTR_PROTOCOL, NAME, names_protocol),
	F("protocol_version", KOFI_A_EP_ATTR_PROTOCOL_VERSION, NUMBER),
	F("max_msg_size", KOFI_A_EP_ATTR_MAX_MSG_SIZE, NUMBER),
	F("msg_prefix_size", KOFI_A_EP_ATTR_MSG_PREFIX_SIZE, NUMBER),
	F("max_order_raw_size", KOFI_A_EP_ATTR_MAX_ORDER_RAW_SIZE, NUMBER),
	F("max_order_war_size", KOFI_A_EP_ATTR_MAX_ORDER_WAR_SIZE, NUMBER),
	F("max_order_waw_size", KOFI_A_EP_ATTR_MAX_ORDER_WAW_SIZE, NUMBER),
	F("mem_tag_format", KOFI_A_EP_ATTR_MEM_TAG_FORMAT, HEX64),
	F("tx_ctx_cnt", KOFI_A_EP_ATTR_TX_CTX_CNT, NUMBER),
	F("rx_ctx_cnt", KOFI_A_EP_ATTR_RX_CTX_CNT, NUMBER),
	F("auth_key_size", KOFI_A_EP_ATTR_AUTH_KEY_SIZE, NUMBER),
	END
};

static const struct fields ep_attr = { ep_attr_list, KOFI_A_EP_ATTR_MAX };

static const struct field domain_attr_list[] = {
	{ "domain", 0, ONLY_TEXT, NULL, NULL, "0x0" },
	F("name", KOFI_A_DOMAIN_ATTR_NAME, TEXT),
	N("threading", KOFI_A_DOMAIN_ATTR_THREADING, NAME, names_threading),
	N("control_progress", KOFI_A_DOMAIN_ATTR_CONTROL_PROGRESS, NAME,
	  names_progress),
	N("data_progress", KOFI_A_DOMAIN_ATTR_DATA_PROGRESS, NAME,
	  names_progress),
	N("resource_mgmt", KOFI_A_DOMAIN_ATTR_RESOURCE_MGMT, NAME,
	  names_resource_mgmt),
	N("av_type", KOFI_A_DOMAIN_ATTR_AV_TYPE, NAME, names_av_type),
	N("mr_mode", KOFI_A_DOMAIN_ATTR_MR_MODE, FLAGS, names_mr_mode),
	F("mr_key_size", KOFI_A_DOMAIN_ATTR_MR_KEY_SIZE, NUMBER),
	F("cq_data_size", KOFI_A_DOMAIN_ATTR_CQ_DATA_SIZE, NUMBER),
	F("cq_cnt", KOFI_A_DOMAIN_ATTR_CQ_CNT, NUMBER),
	F("ep_cnt", KOFI_A_DOMAIN_ATTR_EP_CNT, NUMBER),
	F("tx_ctx_cnt", KOFI_A_DOMAIN_ATTR_TX_CTX_CNT, NUMBER),
	F("rx_ctx_cnt", KOFI_A_DOMAIN_ATTR_RX_CTX_CNT, NUMBER),
	F("max_ep_tx_ctx", KOFI_A_DOMAIN_ATTR_MAX_EP_TX_CTX, NUMBER),
	F("max_ep_rx_ctx", KOFI_A_DOMAIN_ATTR_MAX_EP_RX_CTX, NUMBER),
	F("max_ep_stx_ctx", KOFI_A_DOMAIN_ATTR_MAX_EP_STX_CTX, NUMBER),
	F("max_ep_srx_ctx", KOFI_A_DOMAIN_ATTR_MAX_EP_SRX_CTX, NUMBER),
	F("cntr_cnt", KOFI_A_DOMAIN_ATTR_CNTR_CNT, NUMBER),
	F("mr_iov_limit", KOFI_A_DOMAIN_ATTR_MR_IOV_LIMIT, NUMBER),
	N("caps", KOFI_A_DOMAIN_ATTR_CAPS, FLAGS, names_caps),
	N("mode", KOFI_A_DOMAIN_ATTR_MODE, FLAGS, names_mode),
	F("auth_key_size", KOFI_A_DOMAIN_ATTR_AUTH_KEY_SIZE, NUMBER),
	F("max_err_data", KOFI_A_DOMAIN_ATTR_MAX_ERR_DATA, NUMBER),
	F("mr_cnt", KOFI_A_DOMAIN_ATTR_MR_CNT, NUMBER),
	F("tclass", KOFI_A_DOMAIN_ATTR_TCLASS, HEX),
	F("max_ep_auth_key", KOFI_A_DOMAIN_ATTR_MAX_EP_AUTH_KEY, ONLY_JSON),
	F("max_group_id", KOFI_A_DOMAIN_ATTR_MAX_GROUP_ID, ONLY_JSON),
	F("max_cntr_value", KOFI_A_DOMAIN_ATTR_MAX_CNTR_VALUE, ONLY_JSON),
	F("max_err_cntr_value", KOFI_A_DOMAIN_ATTR_MAX_ERR_CNTR_VALUE,
	  ONLY_JSON),
	END
};

_Static_assert(KOFI_A_DOMAIN_ATTR_MAX <= MAX_ATTR, "it is the largest");
static const struct fields domain_attr = { domain_attr_list, KOFI_A_DOMAIN_ATTR_MAX };

static const struct field fabric_attr_list[] = {
	F("name", KOFI_A_FABRIC_ATTR_NAME, TEXT),
	F("prov_name", KOFI_A_FABRIC_ATTR_PROV_NAME, TEXT),
	F("prov_version", KOFI_A_FABRIC_ATTR_PROV_VERSION, VERSION),
	F("api_version", KOFI_A_FABRIC_ATTR_API_VERSION, VERSION),
	END
};

static const struct fields fabric_attr = { fabric_attr_list, KOFI_A_FABRIC_ATTR_MAX };

static const struct field device_attr_list[] = {
	F("name", KOFI_A_DEVICE_ATTR_NAME, TEXT),
	F("device_id", KOFI_A_DEVICE_ATTR_DEVICE_ID, TEXT),
	F("device_version", KOFI_A_DEVICE_ATTR_DEVICE_VERSION, TEXT),
	F("vendor_id", KOFI_A_DEVICE_ATTR_VENDOR_ID, TEXT),
	F("driver", KOFI_A_DEVICE_ATTR_DRIVER, TEXT),
	F("firmware", KOFI_A_DEVICE_ATTR_FIRMWARE, TEXT),
	END
};

static const struct fields device_attr = { device_attr_list, KOFI_A_DEVICE_ATTR_MAX };

static const struct field pci_attr_list[] = {
	F("domain_id", KOFI_A_PCI_ATTR_DOMAIN_ID, NUMBER),
	F("bus_id", KOFI_A_PCI_ATTR_BUS_ID, NUMBER),
	F("device_id", KOFI_A_PCI_ATTR_DEVICE_ID, NUMBER),
	F("function_id", KOFI_A_PCI_ATTR_FUNCTION_ID, NUMBER),
	END
};

static const struct fields pci_attr = { pci_attr_list, KOFI_A_PCI_ATTR_MAX };

static const struct field bus_attr_list[] = {
	N("bus_type", KOFI_A_BUS_ATTR_TYPE, NAME, names_bus_type),
	{ "fi_pci_attr", KOFI_A_BUS_ATTR_PCI, NEST, NULL, &pci_attr, NULL },
	END
};

static const struct fields bus_attr = { bus_attr_list, KOFI_A_BUS_ATTR_MAX };

static const struct field link_attr_list[] = {
	F("address", KOFI_A_LINK_ATTR_ADDRESS, TEXT),
	F("mtu", KOFI_A_LINK_ATTR_MTU, NUMBER),
	F("speed", KOFI_A_LINK_ATTR_SPEED, NUMBER),
	N("state", KOFI_A_LINK_ATTR_STATE, NAME, names_link_state),
	F("network_type", KOFI_A_LINK_ATTR_NETWORK_TYPE, TEXT),
	END
};

static const struct fields link_attr = { link_attr_list, KOFI_A_LINK_ATTR_MAX };

static const struct field nic_list[] = {
	{ "fi_device_attr", KOFI_A_NIC_DEVICE_ATTR, NEST, NULL, &device_attr, NULL },
	{ "fi_bus_attr", KOFI_A_NIC_BUS_ATTR, NEST, NULL, &bus_attr, NULL },
	{ "fi_link_attr", KOFI_A_NIC_LINK_ATTR, NEST, NULL, &link_attr, NULL },
	END
};

static const struct fields nic = { nic_list, KOFI_A_NIC_MAX };

static const struct field info_list[] = {
	N("caps", KOFI_A_INFO_CAPS, FLAGS, names_caps),
	N("mode", KOFI_A_INFO_MODE, FLAGS, names_mode),
	N("addr_format", KOFI_A_INFO_ADDR_FORMAT, NAME, names_addr_format),
	F("src_addrlen", KOFI_A_INFO_SRC_ADDR, ADDR_LEN),
	F("dest_addrlen", KOFI_A_INFO_DEST_ADDR, ADDR_LEN),
	F("src_addr", KOFI_A_INFO_SRC_ADDR, ADDR),
	F("dest_addr", KOFI_A_INFO_DEST_ADDR, ADDR),
	{ "handle", 0, ONLY_TEXT, NULL, NULL, "(nil)" },
	{ "fi_tx_attr", KOFI_A_INFO_TX_ATTR, NEST, NULL, &tx_attr, "(null)" },
	{ "fi_rx_attr", KOFI_A_INFO_RX_ATTR, NEST, NULL, &rx_attr, "(null)" },
	{ "fi_ep_attr", KOFI_A_INFO_EP_ATTR, NEST, NULL, &ep_attr, "(null)" },
	{ "fi_domain_attr", KOFI_A_INFO_DOMAIN_ATTR, NEST, NULL, &domain_attr,
	  "(null)" },
	{ "fi_fabric_attr", KOFI_A_INFO_FABRIC_ATTR, NEST, NULL, &fabric_attr,
	  "(null)" },
	{ "nic", KOFI_A_INFO_NIC, NEST, NULL, &nic, "(nil)" },
	END
};

/* ---------------------------------------------------------------- as text */

static void text_flags(FILE *to, const struct field *f, uint64_t value)
{
	const struct name *n;
	const char *comma = "";

	fputs("[ ", to);
	if (!value && f->form == ORDER)
		fputs("FI_ORDER_NONE", to);
	for (n = f->names; n->name; n++) {
		if ((value & n->value) != n->value)
			continue;
		fprintf(to, "%s%s", comma, n->name);
		comma = ", ";
	}
	for (n = f->names; n->name; n++)
		value &= ~n->value;
	if (value)	/* a module newer than this tool */
		fprintf(to, "%s0x%" PRIx64, comma, value);
	fputs(" ]", to);
}

static const char *text_name(const struct field *f, uint64_t value)
{
	const char *name = name_of(f->names, value);

	if (name)
		return name;
	return value & (1U << 31) ? "Provider specific" : "Unknown";
}

/* As libfabric writes addresses, where it knows the format. */
static const char *text_addr(char *buf, size_t size, const struct nlattr *attr)
{
	const char *scheme = "unknown";
	char addr[ADDR_TEXT_MAX];
	sa_family_t family = AF_UNSPEC;

	if (mnl_attr_get_payload_len(attr) >= sizeof(family))
		memcpy(&family, mnl_attr_get_payload(attr), sizeof(family));
	if (family == AF_INET)
		scheme = "fi_sockaddr_in";
	else if (family == AF_INET6)
		scheme = "fi_sockaddr_in6";
	snprintf(buf, size, "%s://%s", scheme,
		 addr_text(addr, sizeof(addr), mnl_attr_get_payload(attr),
			   mnl_attr_get_payload_len(attr)));
	return buf;
}

static void text_value(FILE *to, const struct field *f,
		       const struct nlattr *attr)
{
	char buf[ADDR_TEXT_MAX + 32];

	switch (f->form) {
	case NUMBER:
	case ONLY_JSON:
		fprintf(to, "%" PRIu64, nl_uint(attr));
		break;
	case HEX:
		fprintf(to, "0x%" PRIx64, nl_uint(attr));
		break;
	case HEX64:
		fprintf(to, "0x%016" PRIx64, nl_uint(attr));
		break;
	case TEXT:
		fputs(nl_str(attr) ?: "(null)", to);
		break;
	case VERSION:
		fprintf(to, "%u.%u", (unsigned int)(nl_uint(attr) >> 16),
			(unsigned int)(nl_uint(attr) & 0xffff));
		break;
	case NAME:
		fputs(text_name(f, nl_uint(attr)), to);
		break;
	case FLAGS:
	case ORDER:
		text_flags(to, f, nl_uint(attr));
		break;
	case ADDR:
		fputs(attr ? text_addr(buf, sizeof(buf), attr) : "(null)", to);
		break;
	case ADDR_LEN:
		fprintf(to, "%u", attr ? mnl_attr_get_payload_len(attr) : 0);
		break;
	case NEST:
	case ONLY_TEXT:
		fputs(f->text, to);
		break;
	}
}

static void text_fields(FILE *to, int depth, const struct field *f,
			const struct nlattr **tb)
{
	const struct nlattr *below[MAX_ATTR + 1];

	for (; f->label; f++) {
		const struct nlattr *attr = tb[f->attr];

		if (f->form == ONLY_JSON)
			continue;
		if (f->form == NEST && !attr && !f->text)
			continue;
		fprintf(to, "%*s%s:", depth * 4, "", f->label);
		if (f->form == NEST && attr) {
			fputc('\n', to);
			nl_nested(attr, below, f->nest->max);
			text_fields(to, depth + 1, f->nest->list, below);
		} else {
			fputc(' ', to);
			text_value(to, f, attr);
			fputc('\n', to);
		}
	}
}

/* ---------------------------------------------------------------- as JSON */

static void json_flags(const struct field *f, uint64_t value)
{
	const struct name *n;

	json_open(f->label, '[');
	for (n = f->names; n->name; n++)
		if ((value & n->value) == n->value)
			json_string(NULL, n->name);
	for (n = f->names; n->name; n++)
		value &= ~n->value;
	if (value)
		json_hex(NULL, value);
	json_close(']');
}

static void json_fields(const struct field *f, const struct nlattr **tb)
{
	const struct nlattr *below[MAX_ATTR + 1];
	char buf[ADDR_TEXT_MAX];

	for (; f->label; f++) {
		const struct nlattr *attr = tb[f->attr];

		switch (f->form) {
		case NUMBER:
		case ONLY_JSON:
			json_number(f->label, nl_uint(attr));
			break;
		case HEX:
		case HEX64:
			json_hex(f->label, nl_uint(attr));
			break;
		case TEXT:
			json_string(f->label, nl_str(attr));
			break;
		case VERSION:
			snprintf(buf, sizeof(buf), "%u.%u",
				 (unsigned int)(nl_uint(attr) >> 16),
				 (unsigned int)(nl_uint(attr) & 0xffff));
			json_string(f->label, buf);
			break;
		case NAME:
			json_string(f->label, text_name(f, nl_uint(attr)));
			break;
		case FLAGS:
		case ORDER:
			json_flags(f, nl_uint(attr));
			break;
		case ADDR:
			json_string(f->label, !attr ? NULL :
				    addr_text(buf, sizeof(buf),
					      mnl_attr_get_payload(attr),
					      mnl_attr_get_payload_len(attr)));
			break;
		case NEST:
			if (attr) {
				json_open(f->label, '{');
				nl_nested(attr, below, f->nest->max);
				json_fields(f->nest->list, below);
				json_close('}');
			} else {
				json_string(f->label, NULL);
			}
			break;
		case ADDR_LEN:
		case ONLY_TEXT:
			break;
		}
	}
}

/* ---------------------------------------------------------------- listing */

enum listing {
	SHORT,
	LONG,
	JSON,
};

struct run {
	enum listing	listing;
	const char	*substr;	/* -i: only texts that contain it */
	unsigned int	found;
};

static void print_short(const struct nlattr **tb)
{
	const struct nlattr *fabric[KOFI_A_FABRIC_ATTR_MAX + 1];
	const struct nlattr *domain[KOFI_A_DOMAIN_ATTR_MAX + 1];
	const struct nlattr *ep[KOFI_A_EP_ATTR_MAX + 1];
	uint64_t version, type, protocol;

	nl_nested(tb[KOFI_A_INFO_FABRIC_ATTR], fabric, KOFI_A_FABRIC_ATTR_MAX);
	nl_nested(tb[KOFI_A_INFO_DOMAIN_ATTR], domain, KOFI_A_DOMAIN_ATTR_MAX);
	nl_nested(tb[KOFI_A_INFO_EP_ATTR], ep, KOFI_A_EP_ATTR_MAX);
	version = nl_uint(fabric[KOFI_A_FABRIC_ATTR_PROV_VERSION]);
	type = nl_uint(ep[KOFI_A_EP_ATTR_TYPE]);
	protocol = nl_uint(ep[KOFI_A_EP_ATTR_PROTOCOL]);
	printf("provider: %s\n"
	       "    fabric: %s\n"
	       "    domain: %s\n"
	       "    version: %u.%u\n"
	       "    type: %s\n"
	       "    protocol: %s\n",
	       nl_str(fabric[KOFI_A_FABRIC_ATTR_PROV_NAME]) ?: "(null)",
	       nl_str(fabric[KOFI_A_FABRIC_ATTR_NAME]) ?: "(null)",
	       nl_str(domain[KOFI_A_DOMAIN_ATTR_NAME]) ?: "(null)",
	       (unsigned int)(version >> 16), (unsigned int)(version & 0xffff),
	       name_of(names_ep_type, type) ?: "Unknown",
	       name_of(names_protocol, protocol) ?: "Unknown");
}

/* Whether it was printed */
static int print_long(const struct nlattr **tb, const char *substr)
{
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	int ret = 0;

	if (!to)
		return -ENOMEM;
	text_fields(to, 1, info_list, tb);
	if (fclose(to)) {
		free(text);
		return -ENOMEM;
	}
	if (!substr || strcasestr(text, substr)) {
		printf("---\nfi_info:\n%s", text);
		ret = 1;
	}
	free(text);
	return ret;
}

static int take_info(struct nl *nl, const struct nlmsghdr *nlh,
		     const struct nlattr **tb, void *arg)
{
	struct run *run = arg;
	int ret = 1;

	(void)nl;
	(void)nlh;
	switch (run->listing) {
	case SHORT:
		print_short(tb);
		break;
	case LONG:
		ret = print_long(tb, run->substr);
		break;
	case JSON:
		json_open(NULL, '{');
		json_fields(info_list, tb);
		json_close('}');
		break;
	}
	if (ret < 0)
		return ret;
	run->found += ret;
	return 0;
}

static int take_provider(struct nl *nl, const struct nlmsghdr *nlh,
			 const struct nlattr **tb, void *arg)
{
	struct run *run = arg;
	const char *name = nl_str(tb[KOFI_A_PROVIDER_NAME]) ?: "(null)";
	uint64_t version = nl_uint(tb[KOFI_A_PROVIDER_VERSION]);
	char text[32];

	(void)nl;
	(void)nlh;
	snprintf(text, sizeof(text), "%u.%u", (unsigned int)(version >> 16),
		 (unsigned int)(version & 0xffff));
	run->found++;
	if (run->listing != JSON) {
		printf("%s:\n    version: %s\n", name, text);
		return 0;
	}
	json_open(NULL, '{');
	json_string("name", name);
	json_string("version", text);
	json_string("module", nl_str(tb[KOFI_A_PROVIDER_MODULE]));
	json_close('}');
	return 0;
}

static int count_provider(struct nl *nl, const struct nlmsghdr *nlh,
			  const struct nlattr **tb, void *arg)
{
	(void)nl;
	(void)nlh;
	(void)tb;
	++*(unsigned int *)arg;
	return 0;
}

static void explain_nothing(struct nl *nl)
{
	unsigned int providers = 0;

	nl_call(nl, nl_new(nl, KOFI_CMD_PROVIDER_GET, NLM_F_DUMP),
		KOFI_A_PROVIDER_MAX, count_provider, &providers);
	if (providers)
		error("no interface fits");
	else
		error("no provider is loaded; try: modprobe kofi_sock");
}

static int list_providers(struct nl *nl, struct run *run)
{
	int err;

	if (run->listing == JSON)
		json_open(NULL, '[');
	err = nl_call(nl, nl_new(nl, KOFI_CMD_PROVIDER_GET, NLM_F_DUMP),
		      KOFI_A_PROVIDER_MAX, take_provider, run);
	if (run->listing == JSON) {
		json_close(']');
		json_end();
	}
	if (err) {
		error("cannot list the providers: %s", nl_error(nl, err));
		return EXIT_FAILED;
	}
	if (run->found)
		return EXIT_OK;
	error("no provider is loaded; try: modprobe kofi_sock");
	return EXIT_FAILED;
}

/* --------------------------------------------------------------- requests */

struct query {
	const char	*node;
	const char	*src;
	const char	*prov;
	const char	*domain;
	const char	*fabric;
	uint64_t	caps;
	uint64_t	mode;
	uint64_t	ep_type;
	uint64_t	addr_format;
	uint64_t	port;
	bool		has_mode;
	bool		has_port;
};

/*
 * The kernel takes numeric addresses only. The first address of a name is
 * taken, as ping does.
 */
static int resolve(const char *name, char *text, size_t size,
		   struct sockaddr_storage *addr, size_t *len)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	int err;

	err = getaddrinfo(name, NULL, &hints, &found);
	if (err) {
		error("%s: %s", name, gai_strerror(err));
		return -1;
	}
	memcpy(addr, found->ai_addr, found->ai_addrlen);
	*len = found->ai_addrlen;
	err = getnameinfo(found->ai_addr, found->ai_addrlen, text, size, NULL,
			  0, NI_NUMERICHOST);
	freeaddrinfo(found);
	if (!err)
		return 0;
	error("%s: %s", name, gai_strerror(err));
	return -1;
}

static bool has_hints(const struct query *q)
{
	return q->caps || q->has_mode || q->ep_type || q->addr_format ||
	       q->prov || q->domain || q->fabric || (q->src && q->node);
}

static void put_hints(struct nlmsghdr *nlh, const struct query *q,
		      const struct sockaddr_storage *src, size_t src_len)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, KOFI_A_INFO_HINTS);

	if (q->caps)
		nl_put_uint(nlh, KOFI_A_HINTS_CAPS, q->caps);
	if (q->has_mode)
		nl_put_uint(nlh, KOFI_A_HINTS_MODE, q->mode);
	if (q->ep_type)
		nl_put_uint(nlh, KOFI_A_HINTS_EP_TYPE, q->ep_type);
	if (q->addr_format)
		nl_put_uint(nlh, KOFI_A_HINTS_ADDR_FORMAT, q->addr_format);
	if (q->prov)
		mnl_attr_put_strz(nlh, KOFI_A_HINTS_PROV_NAME, q->prov);
	if (q->domain)
		mnl_attr_put_strz(nlh, KOFI_A_HINTS_DOMAIN_NAME, q->domain);
	if (q->fabric)
		mnl_attr_put_strz(nlh, KOFI_A_HINTS_FABRIC_NAME, q->fabric);
	if (q->src && q->node)
		mnl_attr_put(nlh, KOFI_A_HINTS_SRC_ADDR, src_len, src);
	mnl_attr_nest_end(nlh, nest);
}

static int find(struct nl *nl, const struct query *q, struct run *run)
{
	char node[INET6_ADDRSTRLEN + 32], port[16];
	struct sockaddr_storage addr;
	struct nlmsghdr *nlh;
	size_t len = 0;
	int err;

	nlh = nl_new(nl, KOFI_CMD_INFO_GET, NLM_F_DUMP);
	if (q->node) {
		if (resolve(q->node, node, sizeof(node), &addr, &len))
			return EXIT_FAILED;
		mnl_attr_put_strz(nlh, KOFI_A_INFO_NODE, node);
	}
	if (q->src) {
		if (resolve(q->src, node, sizeof(node), &addr, &len))
			return EXIT_FAILED;
		if (!q->node) {
			mnl_attr_put_strz(nlh, KOFI_A_INFO_NODE, node);
			nl_put_uint(nlh, KOFI_A_INFO_FLAGS, FLAG_SOURCE);
		}
	}
	if (q->has_port) {
		snprintf(port, sizeof(port), "%u", (unsigned int)q->port);
		mnl_attr_put_strz(nlh, KOFI_A_INFO_SERVICE, port);
	}
	if (has_hints(q))
		put_hints(nlh, q, &addr, len);

	if (run->listing == JSON)
		json_open(NULL, '[');
	err = nl_call(nl, nlh, KOFI_A_INFO_MAX, take_info, run);
	if (run->listing == JSON) {
		json_close(']');
		json_end();
	}
	if (err && err != -ENODATA) {
		error("discovery failed: %s", nl_error(nl, err));
		return EXIT_FAILED;
	}
	if (run->found)
		return EXIT_OK;
	explain_nothing(nl);
	return EXIT_FAILED;
}

/* ---------------------------------------------------------------- options */

static const char info_usage[] =
"Usage: kofi info [OPTION...]\n"
"       kofi list [--json]\n"
"\n"
"Which interfaces kernel clients can use, as fi_info(1) tells it of userspace\n"
"programs; \"kofi list\" is \"kofi info --list\".\n"
"\n"
"  -n, --node=NAME           address of the peer, or its name\n"
"  -P, --port=PNUM           its port number\n"
"  -s, --src_addr=ADDR       local address, or its name; without -n, -P is local\n"
"  -c, --caps=CAP1|CAP2..    all of these capabilities: FI_MSG|FI_RMA...\n"
"  -m, --mode=MODE1|MODE2..  no modes but these; default: any\n"
"  -t, --ep_type=TYPE        endpoint type: FI_EP_MSG, FI_EP_DGRAM, FI_EP_RDM\n"
"  -a, --addr_format=FORMAT  address format: FI_SOCKADDR_IN, FI_SOCKADDR_IN6...\n"
"  -p, --provider=PROV       provider; \"tcp\" means \"sock\", which speaks its protocol\n"
"  -d, --domain=DOMAIN       domain, which is a network device\n"
"  -f, --fabric=FABRIC       fabric\n"
"  -l, --list                list the providers\n"
"  -v, --verbose             all there is to know\n"
"  -i, --info=TEXT           the same, of those in which TEXT occurs\n"
"  -j, --json                the same as JSON\n"
"  -h, --help                this text\n"
"\n"
"Exit code: 0 something was found, 1 nothing was or an error, 2 wrong usage.\n";

static const struct option info_options[] = {
	{ "node",	required_argument,	NULL, 'n' },
	{ "port",	required_argument,	NULL, 'P' },
	{ "src_addr",	required_argument,	NULL, 's' },
	{ "caps",	required_argument,	NULL, 'c' },
	{ "mode",	required_argument,	NULL, 'm' },
	{ "ep_type",	required_argument,	NULL, 't' },
	{ "addr_format", required_argument,	NULL, 'a' },
	{ "provider",	required_argument,	NULL, 'p' },
	{ "domain",	required_argument,	NULL, 'd' },
	{ "fabric",	required_argument,	NULL, 'f' },
	{ "list",	no_argument,		NULL, 'l' },
	{ "verbose",	no_argument,		NULL, 'v' },
	{ "info",	required_argument,	NULL, 'i' },
	{ "json",	no_argument,		NULL, 'j' },
	{ "help",	no_argument,		NULL, 'h' },
	{ NULL, 0, NULL, 0 }
};

/* "FI_A|FI_B" as bits; false after a sentence */
static bool parse_flags(const char *what, char *text, const struct name *names,
			uint64_t *flags)
{
	uint64_t bit;
	char *word;

	*flags = 0;
	for (word = strtok(text, "|"); word; word = strtok(NULL, "|")) {
		if (!name_find(names, "FI_", word, &bit)) {
			usage_error("info", "%s is no %s", word, what);
			return false;
		}
		*flags |= bit;
	}
	return true;
}

/* What fits no attribute is nothing the kernel could know. */
static bool fits(const char *what, const char *text, size_t max)
{
	if (*text && strlen(text) <= max)
		return true;
	usage_error("info", "%s must have 1 to %zu characters", what, max);
	return false;
}

static bool parse_option(int opt, struct query *q)
{
	switch (opt) {
	case 'n':
		q->node = optarg;
		return true;
	case 's':
		q->src = optarg;
		return true;
	case 'P':
		q->has_port = true;
		if (parse_number(optarg, 65535, &q->port))
			return true;
		usage_error("info", "%s is no port number", optarg);
		return false;
	case 'c':
		return parse_flags("capability", optarg, names_caps, &q->caps);
	case 'm':
		q->has_mode = true;
		return parse_flags("mode", optarg, names_mode, &q->mode);
	case 't':
		if (name_find(names_ep_type, "FI_EP_", optarg, &q->ep_type))
			return true;
		usage_error("info", "%s is no endpoint type", optarg);
		return false;
	case 'a':
		if (name_find(names_addr_format, "FI_", optarg,
			      &q->addr_format))
			return true;
		usage_error("info", "%s is no address format", optarg);
		return false;
	case 'p':
		q->prov = strcmp(optarg, "tcp") ? optarg : "sock";
		return fits("a provider's name", optarg, NAME_MAX_LEN);
	case 'd':
		q->domain = optarg;
		return fits("a domain's name", optarg, NAME_MAX_LEN);
	case 'f':
		q->fabric = optarg;
		return fits("a fabric's name", optarg, NAME_MAX_LEN);
	default:
		return false;
	}
}

static int run_info(const struct query *q, bool list, struct run *run)
{
	struct nl *nl = nl_open(KOFI_FAMILY_NAME, "kofi");
	int ret;

	if (!nl)
		return EXIT_FAILED;
	ret = list ? list_providers(nl, run) : find(nl, q, run);
	nl_close(nl);
	return ret;
}

int cmd_info(int argc, char **argv)
{
	struct query q = { 0 };
	struct run run = { 0 };
	bool list = !strcmp(argv[0], "list");
	int opt;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, "n:P:s:c:m:t:a:p:d:f:lvi:jh",
				  info_options, NULL)) != -1) {
		switch (opt) {
		case 'l':
			list = true;
			break;
		case 'v':
			if (run.listing == SHORT)
				run.listing = LONG;
			break;
		case 'i':
			run.substr = optarg;
			if (run.listing == SHORT)
				run.listing = LONG;
			break;
		case 'j':
			run.listing = JSON;
			break;
		case 'h':
			fputs(info_usage, stdout);
			return EXIT_OK;
		case '?':
			return usage_error(argv[0], "%s is no option, or not with this argument",
					   argv[optind - 1]);
		default:
			if (!parse_option(opt, &q))
				return EXIT_USAGE;
		}
	}
	if (optind < argc)
		return usage_error(argv[0], "%s is no option", argv[optind]);
	if (list && (q.node || q.src || q.has_port || has_hints(&q)))
		return usage_error(argv[0], "--list goes with --json alone");
	if (run.substr && run.listing == JSON)
		return usage_error(argv[0], "--info and --json exclude each other");
	return run_info(&q, list, &run);
}

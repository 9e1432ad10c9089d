// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi info and kofi list: fi_info(1) for the providers in the kernel.
 *
 * The tables of kofi/names.c, which the kernel has too, describe the members of an
 * fi_info. Label, order and form are the same as in fi_info --verbose, and JSON has
 * the same members. Members that libfabric does not print are in JSON alone.
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
#include "nl.h"

#define FLAG_SOURCE	0x0200000000000000ULL	/* FI_SOURCE of fi_getinfo() */
#define NAME_MAX_LEN	63		/* of the spec's names */
#define MAX_ATTR	63		/* of any set that is nested in an info */
_Static_assert(KOFI_A_DOMAIN_ATTR_MAX <= MAX_ATTR, "it is the largest");

/* ---------------------------------------------------------------- as text */

static const char *version_text(char *buf, size_t size, uint64_t version)
{
	snprintf(buf, size, "%u.%u", (unsigned int)(version >> 16),
		 (unsigned int)(version & 0xffff));
	return buf;
}

static const char *enum_text(const struct kofi_field *f, uint64_t value)
{
	const char *name = kofi_name_of(f->names, value);

	if (name)
		return name;
	return f->form == KOFI_FORM_OPEN_ENUM && value & (1U << 31) ?
	       "Provider specific" : "Unknown";
}

/* Each name of a set of flags; bits without one, of a newer module, in hex */
static void each_flag(const struct kofi_field *f, uint64_t value,
		      void (*fn)(void *arg, const char *text), void *arg)
{
	const struct kofi_name *n;
	uint64_t left = value;
	char hex[24];

	for (n = f->names; n->name; n++) {
		left &= ~n->value;
		if ((value & n->value) == n->value)
			fn(arg, n->name);
	}
	snprintf(hex, sizeof(hex), "0x%" PRIx64, left);
	if (left)
		fn(arg, hex);
}

struct list {
	FILE		*to;
	const char	*sep;
};

static void text_flag(void *arg, const char *text)
{
	struct list *list = arg;

	fprintf(list->to, "%s%s", list->sep, text);
	list->sep = ", ";
}

static void text_flags(FILE *to, const struct kofi_field *f, uint64_t value)
{
	struct list list = { .to = to, .sep = "" };

	fputs("[ ", to);
	if (f->form == KOFI_FORM_ORDER && !(value & f->names->value))
		text_flag(&list, "FI_ORDER_NONE");
	each_flag(f, value, text_flag, &list);
	fputs(" ]", to);
}

/* As libfabric writes addresses, where it knows the format. */
static void text_addr(FILE *to, const struct nlattr *attr)
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
	fprintf(to, "%s://%s", scheme,
		addr_text(addr, sizeof(addr), mnl_attr_get_payload(attr),
			  mnl_attr_get_payload_len(attr)));
}

static void text_value(FILE *to, const struct kofi_field *f,
		       const struct nlattr *attr)
{
	uint64_t value = nl_uint(attr);
	char buf[24];

	switch (f->form) {
	case KOFI_FORM_HEX:
		fprintf(to, "0x%" PRIx64, value);
		break;
	case KOFI_FORM_HEX64:
		fprintf(to, "0x%016" PRIx64, value);
		break;
	case KOFI_FORM_CONTEXTS:
		if (value == UINT64_MAX)
			fputs("FI_SHARED_CONTEXT", to);
		else
			fprintf(to, "%" PRIu64, value);
		break;
	case KOFI_FORM_VERSION:
		fputs(version_text(buf, sizeof(buf), value), to);
		break;
	case KOFI_FORM_ENUM:
	case KOFI_FORM_OPEN_ENUM:
		fputs(enum_text(f, value), to);
		break;
	case KOFI_FORM_FLAGS:
	case KOFI_FORM_ORDER:
		text_flags(to, f, value);
		break;
	case KOFI_FORM_ADDR_LEN:
		fprintf(to, "%u", attr ? mnl_attr_get_payload_len(attr) : 0);
		break;
	case KOFI_FORM_TEXT:
		fputs(nl_str(attr) ?: "(null)", to);
		break;
	case KOFI_FORM_ADDR:
		if (attr)
			text_addr(to, attr);
		else
			fputs("(null)", to);
		break;
	case KOFI_FORM_POINTER:
	case KOFI_FORM_FID:
	case KOFI_FORM_NEST:
	case KOFI_FORM_PCI:
		fputs(f->null, to);
		break;
	default:
		fprintf(to, "%" PRIu64, value);
		break;
	}
}

static void text_fields(FILE *to, int depth, const struct kofi_field *f,
			const struct nlattr **tb)
{
	const struct nlattr *below[MAX_ATTR + 1];

	for (; f->label; f++) {
		const struct nlattr *attr = tb[f->attr];

		if (f->form == KOFI_FORM_HIDDEN ||
		    (f->nest && !attr && !f->null))
			continue;
		fprintf(to, "%*s%s:", depth * 4, "", f->label);
		if (f->nest && attr) {
			fputc('\n', to);
			nl_nested(attr, below, MAX_ATTR);
			text_fields(to, depth + 1, f->nest, below);
		} else {
			fputc(' ', to);
			text_value(to, f, attr);
			fputc('\n', to);
		}
	}
}

/* ---------------------------------------------------------------- as JSON */

static void json_flag(void *arg, const char *text)
{
	(void)arg;
	json_string(NULL, text);
}

static void json_fields(const struct kofi_field *f, const struct nlattr **tb)
{
	const struct nlattr *below[MAX_ATTR + 1];
	char buf[ADDR_TEXT_MAX];

	for (; f->label; f++) {
		const struct nlattr *attr = tb[f->attr];
		uint64_t value = nl_uint(attr);

		switch (f->form) {
		case KOFI_FORM_HEX:
		case KOFI_FORM_HEX64:
			json_hex(f->label, value);
			break;
		case KOFI_FORM_VERSION:
			json_string(f->label,
				    version_text(buf, sizeof(buf), value));
			break;
		case KOFI_FORM_ENUM:
		case KOFI_FORM_OPEN_ENUM:
			json_string(f->label, enum_text(f, value));
			break;
		case KOFI_FORM_FLAGS:
		case KOFI_FORM_ORDER:
			json_open(f->label, '[');
			each_flag(f, value, json_flag, NULL);
			json_close(']');
			break;
		case KOFI_FORM_TEXT:
			json_string(f->label, nl_str(attr));
			break;
		case KOFI_FORM_ADDR:
			json_string(f->label, !attr ? NULL :
				    addr_text(buf, sizeof(buf),
					      mnl_attr_get_payload(attr),
					      mnl_attr_get_payload_len(attr)));
			break;
		case KOFI_FORM_NEST:
		case KOFI_FORM_PCI:
			if (!attr) {
				json_string(f->label, NULL);
				break;
			}
			json_open(f->label, '{');
			nl_nested(attr, below, MAX_ATTR);
			json_fields(f->nest, below);
			json_close('}');
			break;
		case KOFI_FORM_ADDR_LEN:
		case KOFI_FORM_POINTER:
		case KOFI_FORM_FID:
			break;
		default:
			json_number(f->label, value);
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
	char version[24];

	nl_nested(tb[KOFI_A_INFO_FABRIC_ATTR], fabric, KOFI_A_FABRIC_ATTR_MAX);
	nl_nested(tb[KOFI_A_INFO_DOMAIN_ATTR], domain, KOFI_A_DOMAIN_ATTR_MAX);
	nl_nested(tb[KOFI_A_INFO_EP_ATTR], ep, KOFI_A_EP_ATTR_MAX);
	printf("provider: %s\n"
	       "    fabric: %s\n"
	       "    domain: %s\n"
	       "    version: %s\n"
	       "    type: %s\n"
	       "    protocol: %s\n",
	       nl_str(fabric[KOFI_A_FABRIC_ATTR_PROV_NAME]) ?: "(null)",
	       nl_str(fabric[KOFI_A_FABRIC_ATTR_NAME]) ?: "(null)",
	       nl_str(domain[KOFI_A_DOMAIN_ATTR_NAME]) ?: "(null)",
	       version_text(version, sizeof(version),
			    nl_uint(fabric[KOFI_A_FABRIC_ATTR_PROV_VERSION])),
	       kofi_name_of(kofi_names_ep_type,
			    nl_uint(ep[KOFI_A_EP_ATTR_TYPE])) ?: "Unknown",
	       kofi_name_of(kofi_names_protocol,
			    nl_uint(ep[KOFI_A_EP_ATTR_PROTOCOL])) ?: "Unknown");
}

/* Print an info in the long form; returns whether it was printed. */
static int print_long(const struct nlattr **tb, const char *substr)
{
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	int ret = 0;

	if (!to)
		return -ENOMEM;
	text_fields(to, 1, kofi_info_fields, tb);
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
		json_fields(kofi_info_fields, tb);
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
	char text[24];

	(void)nl;
	(void)nlh;
	version_text(text, sizeof(text), nl_uint(tb[KOFI_A_PROVIDER_VERSION]));
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

/* Provider names in the order of discovery, each once */
struct names {
	char	text[256];
};

static int take_name(struct nl *nl, const struct nlmsghdr *nlh,
		     const struct nlattr **tb, void *arg)
{
	const struct nlattr *fabric[KOFI_A_FABRIC_ATTR_MAX + 1];
	struct names *names = arg;
	size_t len = strlen(names->text), size = sizeof(names->text);
	const char *name, *last;

	(void)nl;
	(void)nlh;
	nl_nested(tb[KOFI_A_INFO_FABRIC_ATTR], fabric, KOFI_A_FABRIC_ATTR_MAX);
	name = nl_str(fabric[KOFI_A_FABRIC_ATTR_PROV_NAME]) ?: "(null)";
	/* the interfaces of a provider follow each other */
	last = strrchr(names->text, ' ');
	if (!strcmp(last ? last + 1 : names->text, name))
		return 0;
	snprintf(names->text + len, size - len, "%s%s", len ? ", " : "", name);
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

static int list_providers(struct nl *nl, struct run *run)
{
	int err;

	if (run->listing == JSON)
		json_open(NULL, '[');
	err = nl_call(nl, nl_new(nl, KOFI_CMD_PROVIDER_GET, NLM_F_DUMP),
		      KOFI_A_PROVIDER_MAX, take_provider, run);
	if (err) {
		error("cannot list the providers: %s", nl_error(nl, err));
		return EXIT_FAILED;
	}
	if (run->listing == JSON) {
		json_close(']');
		json_end();
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

/* Ask the kernel; an exit code, or -ENODATA if no interface fits. */
static int ask(struct nl *nl, const struct query *q, nl_fn fn, void *arg)
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

	err = nl_call(nl, nlh, KOFI_A_INFO_MAX, fn, arg);
	if (!err || err == -ENODATA)
		return err;
	error("discovery failed: %s", nl_error(nl, err));
	return EXIT_FAILED;
}

/* Drop the hint of an option; false if there is none. */
static bool drop_hint(struct query *q, char opt)
{
	const struct query all = *q;

	switch (opt) {
	case 'c':
		q->caps = 0;
		return all.caps;
	case 'm':
		q->has_mode = false;
		return all.has_mode;
	case 't':
		q->ep_type = 0;
		return all.ep_type;
	case 'a':
		q->addr_format = 0;
		return all.addr_format;
	case 'p':
		q->prov = NULL;
		return all.prov;
	case 'd':
		q->domain = NULL;
		return all.domain;
	default:
		q->fabric = NULL;
		return all.fabric;
	}
}

/* Name each option without which interfaces fit, and their providers. */
static void explain_nothing(struct nl *nl, const struct query *q, const struct run *run)
{
	unsigned int providers = 0;
	const char *opt;

	nl_call(nl, nl_new(nl, KOFI_CMD_PROVIDER_GET, NLM_F_DUMP),
		KOFI_A_PROVIDER_MAX, count_provider, &providers);
	if (!providers) {
		error("no provider is loaded; try: modprobe kofi_sock");
		return;
	}
	error("no interface fits");
	/* JSON has one sentence; -i is no hint */
	if (run->listing == JSON || run->substr)
		return;
	for (opt = "cmtapdf"; *opt; opt++) {
		struct names names = { "" };
		struct query less = *q;

		if (drop_hint(&less, *opt) && !ask(nl, &less, take_name, &names) &&
		    *names.text)
			error("without -%c, these providers fit: %s", *opt, names.text);
	}
}

static int find(struct nl *nl, const struct query *q, struct run *run)
{
	int ret;

	if (run->listing == JSON)
		json_open(NULL, '[');
	ret = ask(nl, q, take_info, run);
	if (ret > 0)
		return ret;
	if (run->listing == JSON) {
		json_close(']');
		json_end();
	}
	if (run->found)
		return EXIT_OK;
	explain_nothing(nl, q, run);
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
"  -d, --domain=DOMAIN       domain: a network or RDMA device\n"
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
static bool parse_flags(const char *what, char *text,
			const struct kofi_name *names, uint64_t *flags)
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

/* A name that fits no attribute cannot be known to the kernel. */
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
		return parse_flags("capability", optarg, kofi_names_caps, &q->caps);
	case 'm':
		q->has_mode = true;
		return parse_flags("mode", optarg, kofi_names_mode, &q->mode);
	case 't':
		if (name_find(kofi_names_ep_type, "FI_EP_", optarg, &q->ep_type))
			return true;
		usage_error("info", "%s is no endpoint type", optarg);
		return false;
	case 'a':
		if (name_find(kofi_names_addr_format, "FI_", optarg,
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
			json_start();
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

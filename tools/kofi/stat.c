// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi stat: every open object that can be seen from here, with its
 * statistics. Text is a line per object and its statistics below it; the JSON
 * has the same in members of an array. Of one endpoint its peers are shown, too.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../include/uapi/linux/kofi.h"
#include "kofi.h"
#include "nl.h"

struct view {
	bool		json;
	uint64_t	netns;	/* of this process, 0 if not known */
	bool		one;	/* object, with its peers if it has any */
	bool		peers;	/* their list has begun */
	unsigned int	found;
};

/* "rx_ctx" for FI_CLASS_RX_CTX */
static void short_name(char *buf, size_t size, const struct kofi_name *names,
		       const char *prefix, uint64_t value)
{
	const char *name = kofi_name_of(names, value);
	size_t i;

	if (!name) {
		snprintf(buf, size, "%" PRIu64, value);
		return;
	}
	snprintf(buf, size, "%s", name + strlen(prefix));
	for (i = 0; buf[i]; i++)
		buf[i] = tolower((unsigned char)buf[i]);
}

static void state_name(char *buf, size_t size, const struct nlattr *state)
{
	short_name(buf, size, kofi_names_ep_state, "KOFI_EP_", nl_uint(state));
}

static const char *attr_addr(char *buf, size_t size, const struct nlattr *attr)
{
	return addr_text(buf, size, mnl_attr_get_payload(attr),
			 mnl_attr_get_payload_len(attr));
}

/* Each statistic: name and value */
static void each_stat(const struct nlmsghdr *nlh,
		      void (*fn)(const char *name, uint64_t value))
{
	const struct nlattr *tb[KOFI_A_STAT_MAX + 1];
	const struct nlattr *attr;
	const char *name;

	nl_for_each(attr, nlh) {
		if (mnl_attr_get_type(attr) != KOFI_A_OBJ_STAT)
			continue;
		nl_nested(attr, tb, KOFI_A_STAT_MAX);
		name = nl_str(tb[KOFI_A_STAT_NAME]);
		if (name)
			fn(name, nl_uint(tb[KOFI_A_STAT_VALUE]));
	}
}

static void text_stat(const char *name, uint64_t value)
{
	printf("        %s: %" PRIu64 "\n", name, value);
}

/* What is particular to a class, each with a space before it */
static void text_what(FILE *to, const struct view *view,
		      const struct nlattr **tb)
{
	uint64_t netns = nl_uint(tb[KOFI_A_OBJ_NETNS]);
	char buf[ADDR_TEXT_MAX];

	if (nl_str(tb[KOFI_A_OBJ_NAME]))
		fprintf(to, " %s", nl_str(tb[KOFI_A_OBJ_NAME]));
	if (tb[KOFI_A_OBJ_STATE]) {
		state_name(buf, sizeof(buf), tb[KOFI_A_OBJ_STATE]);
		fprintf(to, " %s", buf);
	}
	if (tb[KOFI_A_OBJ_ADDR])
		fprintf(to, " %s", attr_addr(buf, sizeof(buf),
					     tb[KOFI_A_OBJ_ADDR]));
	if (tb[KOFI_A_OBJ_PEER_ADDR])
		fprintf(to, " > %s", attr_addr(buf, sizeof(buf),
					       tb[KOFI_A_OBJ_PEER_ADDR]));
	if (netns != view->netns)
		fprintf(to, " netns %" PRIu64, netns);
}

static int text_obj(const struct view *view, const struct nlmsghdr *nlh,
		    const struct nlattr **tb)
{
	char class[32], parent[24] = "-";
	char *what = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&what, &size);

	if (!to)
		return -ENOMEM;
	text_what(to, view, tb);
	if (fclose(to)) {
		free(what);
		return -ENOMEM;
	}
	short_name(class, sizeof(class), kofi_names_class, "FI_CLASS_",
		   nl_uint(tb[KOFI_A_OBJ_CLASS]));
	if (tb[KOFI_A_OBJ_PARENT])
		snprintf(parent, sizeof(parent), "%" PRIu64,
			 nl_uint(tb[KOFI_A_OBJ_PARENT]));
	if (!view->found)
		printf("%6s %-8s %6s %-8s %s\n", "ID", "CLASS", "PARENT",
		       "PROVIDER", "WHAT");
	printf("%6" PRIu64 " %-8s %6s %-*s%s\n", nl_uint(tb[KOFI_A_OBJ_ID]),
	       class, parent, *what ? 8 : 0,
	       nl_str(tb[KOFI_A_OBJ_PROV_NAME]) ?: "-", what);
	free(what);
	each_stat(nlh, text_stat);
	return 0;
}

static void json_obj(const struct nlmsghdr *nlh, const struct nlattr **tb)
{
	char buf[ADDR_TEXT_MAX];

	json_open(NULL, '{');
	json_number("id", nl_uint(tb[KOFI_A_OBJ_ID]));
	short_name(buf, sizeof(buf), kofi_names_class, "FI_CLASS_",
		   nl_uint(tb[KOFI_A_OBJ_CLASS]));
	json_string("class", buf);
	if (tb[KOFI_A_OBJ_PARENT])
		json_number("parent", nl_uint(tb[KOFI_A_OBJ_PARENT]));
	if (tb[KOFI_A_OBJ_PROV_NAME])
		json_string("provider", nl_str(tb[KOFI_A_OBJ_PROV_NAME]));
	if (tb[KOFI_A_OBJ_NAME])
		json_string("name", nl_str(tb[KOFI_A_OBJ_NAME]));
	if (tb[KOFI_A_OBJ_STATE]) {
		state_name(buf, sizeof(buf), tb[KOFI_A_OBJ_STATE]);
		json_string("state", buf);
	}
	if (tb[KOFI_A_OBJ_ADDR])
		json_string("addr", attr_addr(buf, sizeof(buf),
					      tb[KOFI_A_OBJ_ADDR]));
	if (tb[KOFI_A_OBJ_PEER_ADDR])
		json_string("peer_addr", attr_addr(buf, sizeof(buf),
						   tb[KOFI_A_OBJ_PEER_ADDR]));
	json_number("netns", nl_uint(tb[KOFI_A_OBJ_NETNS]));
	json_open("stats", '{');
	each_stat(nlh, json_number);
	json_close('}');
}

static int take_obj(struct nl *nl, const struct nlmsghdr *nlh,
		    const struct nlattr **tb, void *arg)
{
	struct view *view = arg;
	int ret = 0;

	(void)nl;
	if (view->json)
		json_obj(nlh, tb);
	else
		ret = text_obj(view, nlh, tb);
	if (view->json && !view->one)
		json_close('}');
	view->found++;
	return ret;
}

/* Numbers of a peer, in the order they are shown */
static const struct {
	const char	*name;
	int		attr;
} peer_numbers[] = {
	{ "fi_addr",		KOFI_A_PEER_FI_ADDR },
	{ "reconnects",		KOFI_A_PEER_RECONNECTS },
	{ "tx_waiting",		KOFI_A_PEER_TX_WAITING },
	{ "rx_stored",		KOFI_A_PEER_RX_STORED },
	{ "rx_stored_bytes",	KOFI_A_PEER_RX_STORED_BYTES },
};

static void begin_peers(struct view *view)
{
	if (view->json && !view->peers)
		json_open("peers", '[');
	view->peers = true;
}

static int take_peer(struct nl *nl, const struct nlmsghdr *nlh,
		     const struct nlattr **tb, void *arg)
{
	char addr[ADDR_TEXT_MAX] = "?", state[32];
	struct view *view = arg;
	size_t i;

	(void)nl;
	(void)nlh;
	begin_peers(view);
	if (tb[KOFI_A_PEER_ADDR])
		attr_addr(addr, sizeof(addr), tb[KOFI_A_PEER_ADDR]);
	state_name(state, sizeof(state), tb[KOFI_A_PEER_STATE]);
	if (view->json) {
		json_open(NULL, '{');
		json_string("addr", addr);
		json_string("state", state);
	} else {
		printf("        peer %s %s", addr, state);
	}
	for (i = 0; i < sizeof(peer_numbers) / sizeof(*peer_numbers); i++) {
		const struct nlattr *attr = tb[peer_numbers[i].attr];

		if (!attr)
			continue;
		if (view->json)
			json_number(peer_numbers[i].name, nl_uint(attr));
		else
			printf(" %s %" PRIu64, peer_numbers[i].name,
			       nl_uint(attr));
	}
	if (view->json)
		json_close('}');
	else
		putchar('\n');
	return 0;
}

/* What connects has none, and what has been closed by now has none any more. */
static int show_peers(struct nl *nl, struct view *view, uint64_t id)
{
	struct nlmsghdr *nlh = nl_new(nl, KOFI_CMD_PEER_GET, NLM_F_DUMP);
	int err;

	nl_put_uint(nlh, KOFI_A_PEER_EP, id);
	err = nl_call(nl, nlh, KOFI_A_PEER_MAX, take_peer, view);
	if (!err)
		begin_peers(view);
	if (view->json && view->peers)
		json_close(']');
	return err == -EOPNOTSUPP || err == -ENOENT ? 0 : err;
}

static int show(struct nl *nl, struct view *view, const char *which,
		const uint64_t *class, const uint64_t *id)
{
	struct nlmsghdr *nlh;
	int err;

	nlh = nl_new(nl, KOFI_CMD_OBJ_GET, id ? 0 : NLM_F_DUMP);
	if (id)
		nl_put_uint(nlh, KOFI_A_OBJ_ID, *id);
	else if (class)
		nl_put_uint(nlh, KOFI_A_OBJ_CLASS, *class);
	if (view->json)
		json_open(NULL, '[');
	view->one = id;
	err = nl_call(nl, nlh, KOFI_A_OBJ_MAX, take_obj, view);
	if (!err && id)
		err = show_peers(nl, view, *id);
	if (view->json && id && view->found)
		json_close('}');
	if (view->json) {
		json_close(']');
		json_end();
	}
	if (err == -ENOENT && id)
		error("no object %s is open", which);
	else if (err)
		error("cannot read the objects: %s", nl_error(nl, err));
	else if (!view->found && which)
		error("no object of class %s is open", which);
	else if (!view->found)
		error("no object is open");
	return err || !view->found ? EXIT_FAILED : EXIT_OK;
}

static const char stat_usage[] =
"Usage: kofi stat [--json] [CLASS|ID]\n"
"\n"
"Open objects with their statistics: all, those of a class, or the one with a\n"
"number. One endpoint is followed by its peers. The initial network namespace\n"
"shows the objects of all namespaces to users with CAP_NET_ADMIN.\n"
"\n"
"Classes: fabric, domain, ep, pep, sep, srx_ctx, eq, cq, cntr, av, mr, wait, poll\n"
"\n"
"  -j, --json  as JSON\n"
"  -h, --help  this text\n"
"\n"
"Exit code: 0 something is open, 1 nothing is or an error, 2 wrong usage.\n";

static const struct option stat_options[] = {
	{ "json",	no_argument,	NULL, 'j' },
	{ "help",	no_argument,	NULL, 'h' },
	{ NULL, 0, NULL, 0 }
};

int cmd_stat(int argc, char **argv)
{
	struct view view = { 0 };
	uint64_t class, id;
	bool one = false;
	const char *which;
	struct stat ns;
	struct nl *nl;
	int opt, ret;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, "jh", stat_options, NULL)) != -1) {
		switch (opt) {
		case 'j':
			view.json = true;
			break;
		case 'h':
			fputs(stat_usage, stdout);
			return EXIT_OK;
		default:
			return usage_error("stat", "%s is no option",
					   argv[optind - 1]);
		}
	}
	which = argv[optind];
	if (which && argv[optind + 1])
		return usage_error("stat", "one class or number at a time");
	if (which) {
		one = parse_number(which, UINT32_MAX, &id);
		if (!one && !name_find(kofi_names_class, "FI_CLASS_", which, &class))
			return usage_error("stat", "%s is no class or number",
					   which);
	}
	if (!stat("/proc/self/ns/net", &ns))
		view.netns = ns.st_ino;
	nl = nl_open(KOFI_FAMILY_NAME, "kofi");
	if (!nl) {
		if (view.json)
			json_nothing();
		return EXIT_FAILED;
	}
	ret = show(nl, &view, which, which && !one ? &class : NULL,
		   one ? &id : NULL);
	nl_close(nl);
	return ret;
}

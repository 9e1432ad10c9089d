// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi monitor: events of the objects of this network namespace, as they happen. A
 * line for each; with --json, each line is a document.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "../../include/uapi/linux/kofi.h"
#include "kofi.h"
#include "nl.h"

/* Classes of events, in the order of the spec's kinds; the last is for newer modules. */
static const char *const classes[] = {
	"connection", "connection", "connection", "connection", "connection",
	"violation", "path", "other",
};

#define N_KINDS		(sizeof(classes) / sizeof(*classes) - 1)

struct monitor {
	bool		json;
	unsigned int	wanted;		/* bits of kinds */
	uint64_t	left;		/* events until it stops; 0: no limit */
};

static size_t kind_of(const struct nlattr *attr)
{
	uint64_t kind = nl_uint(attr);

	return kind < N_KINDS ? kind : N_KINDS;
}

static const char *addr_of(char *buf, const struct nlattr *attr)
{
	return addr_text(buf, ADDR_TEXT_MAX, mnl_attr_get_payload(attr),
			 mnl_attr_get_payload_len(attr));
}

static void text_event(const struct nlattr **tb, const char *kind,
		       const char *class)
{
	char addr[ADDR_TEXT_MAX], peer[ADDR_TEXT_MAX];
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
	printf("%02d:%02d:%02d %s %s %" PRIu64 " %s %s", tm.tm_hour, tm.tm_min,
	       tm.tm_sec, kind, class, nl_uint(tb[KOFI_A_EVENT_OBJ]),
	       nl_str(tb[KOFI_A_EVENT_PROV_NAME]) ?: "-",
	       nl_str(tb[KOFI_A_EVENT_OWNER]) ?: "-");
	if (nl_str(tb[KOFI_A_EVENT_NAME]))
		printf(" %s", nl_str(tb[KOFI_A_EVENT_NAME]));
	if (tb[KOFI_A_EVENT_ADDR])
		printf(" %s", addr_of(addr, tb[KOFI_A_EVENT_ADDR]));
	if (tb[KOFI_A_EVENT_PEER_ADDR])
		printf(" > %s", addr_of(peer, tb[KOFI_A_EVENT_PEER_ADDR]));
	if (nl_str(tb[KOFI_A_EVENT_REASON]))
		printf(": %s", nl_str(tb[KOFI_A_EVENT_REASON]));
	else if (tb[KOFI_A_EVENT_ERR])
		printf(": %s", errno_text(nl_uint(tb[KOFI_A_EVENT_ERR])));
	if (tb[KOFI_A_EVENT_LOST])
		printf(" (%" PRIu64 " lost)", nl_uint(tb[KOFI_A_EVENT_LOST]));
	putchar('\n');
}

static void json_event(const struct nlattr **tb, const char *kind,
		       const char *class)
{
	char buf[ADDR_TEXT_MAX];
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	json_open(NULL, '{');
	json_number("time_ns", ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec);
	json_string("event", kind);
	json_string("event_class", classes[kind_of(tb[KOFI_A_EVENT_KIND])]);
	json_number("id", nl_uint(tb[KOFI_A_EVENT_OBJ]));
	json_string("class", class);
	if (tb[KOFI_A_EVENT_PROV_NAME])
		json_string("provider", nl_str(tb[KOFI_A_EVENT_PROV_NAME]));
	if (tb[KOFI_A_EVENT_OWNER])
		json_string("owner", nl_str(tb[KOFI_A_EVENT_OWNER]));
	json_number("netns", nl_uint(tb[KOFI_A_EVENT_NETNS]));
	if (tb[KOFI_A_EVENT_NAME])
		json_string("name", nl_str(tb[KOFI_A_EVENT_NAME]));
	if (tb[KOFI_A_EVENT_ADDR])
		json_string("addr", addr_of(buf, tb[KOFI_A_EVENT_ADDR]));
	if (tb[KOFI_A_EVENT_PEER_ADDR])
		json_string("peer_addr", addr_of(buf, tb[KOFI_A_EVENT_PEER_ADDR]));
	if (tb[KOFI_A_EVENT_ERR]) {
		json_number("errno", nl_uint(tb[KOFI_A_EVENT_ERR]));
		json_string("error_text", errno_text(nl_uint(tb[KOFI_A_EVENT_ERR])));
	}
	if (tb[KOFI_A_EVENT_REASON])
		json_string("reason", nl_str(tb[KOFI_A_EVENT_REASON]));
	json_number("lost", nl_uint(tb[KOFI_A_EVENT_LOST]));
	json_close('}');
	json_end();
}

static int take_event(struct nl *nl, const struct nlmsghdr *nlh,
		      const struct nlattr **tb, void *arg)
{
	struct monitor *m = arg;
	char kind[32], class[32];

	(void)nl;
	if (nl_cmd(nlh) != KOFI_CMD_EVENT || !tb[KOFI_A_EVENT_KIND] ||
	    !(m->wanted & 1U << kind_of(tb[KOFI_A_EVENT_KIND])))
		return 0;
	short_name(kind, sizeof(kind), kofi_names_event_kind, "KOFI_EVENT_",
		   nl_uint(tb[KOFI_A_EVENT_KIND]));
	short_name(class, sizeof(class), kofi_names_class, "FI_CLASS_",
		   nl_uint(tb[KOFI_A_EVENT_CLASS]));
	if (m->json)
		json_event(tb, kind, class);
	else
		text_event(tb, kind, class);
	if (fflush(stdout))
		return -EPIPE;	/* main() has the words */
	return m->left && !--m->left ? -ECANCELED : 0;
}

/* An overrun socket goes on with the events that come later. */
static int monitor(struct nl *nl, struct monitor *m)
{
	int err;

	nl_on_event(nl, KOFI_A_EVENT_MAX, take_event, m);
	err = nl_join(nl, KOFI_FAMILY_NAME, KOFI_MCGRP_EVENTS);
	while (!err) {
		err = nl_wait(nl, -1);
		if (err == -ENOBUFS) {
			error("events were lost: the output is too slow");
			err = 0;
		}
		if (err > 0)
			err = 0;
	}
	if (err == -ECANCELED || err == -EPIPE)
		return EXIT_OK;
	error("cannot receive events: %s", nl_error(nl, err));
	return EXIT_FAILED;
}

static bool want(struct monitor *m, const char *word)
{
	bool found = false;
	size_t i;

	for (i = 0; i <= N_KINDS; i++) {
		if (strcasecmp(word, classes[i]))
			continue;
		m->wanted |= 1U << i;
		found = true;
	}
	return found;
}

static const char monitor_usage[] =
"Usage: kofi monitor [OPTION...] [CLASS...]\n"
"\n"
"Events of the objects of this network namespace, a line for each: all, or those\n"
"of some classes.\n"
"\n"
"Classes: connection, path, violation\n"
"\n"
"  -c, --count=NUMBER   of events; without it, until interrupted\n"
"  -j, --json           as JSON, a line for each event\n"
"  -h, --help           this text\n"
"\n"
"Exit code: 0 all events were there, 1 an error, 2 wrong usage.\n";

static const struct option monitor_options[] = {
	{ "count",	required_argument,	NULL, 'c' },
	{ "json",	no_argument,		NULL, 'j' },
	{ "help",	no_argument,		NULL, 'h' },
	{ NULL, 0, NULL, 0 }
};

int cmd_monitor(int argc, char **argv)
{
	struct monitor m = { 0 };
	struct nl *nl;
	int opt, ret;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, "c:jh", monitor_options, NULL)) != -1) {
		switch (opt) {
		case 'c':
			if (!parse_number(optarg, UINT32_MAX, &m.left) || !m.left)
				return usage_error("monitor", "%s is no number of events",
						   optarg);
			break;
		case 'j':
			m.json = true;
			json_start();
			json_lines();
			break;
		case 'h':
			fputs(monitor_usage, stdout);
			return EXIT_OK;
		default:
			return usage_error("monitor", "%s is no option, or wants a value",
					   argv[optind - 1]);
		}
	}
	for (; argv[optind]; optind++)
		if (!want(&m, argv[optind]))
			return usage_error("monitor", "%s is no class", argv[optind]);
	if (!m.wanted)
		m.wanted = ~0U;
	nl = nl_open(KOFI_FAMILY_NAME, "kofi");
	if (!nl)
		return EXIT_FAILED;
	ret = monitor(nl, &m);
	nl_close(nl);
	return ret;
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi stat: every open object that can be seen from here, with its
 * statistics. Text is a line per object and its statistics below it; the JSON
 * has the same in members of an array. One endpoint is followed by its peers.
 * With --watch, statistics become rates between two lists. --latency has the kernel
 * measure the latency of endpoints, or stop that.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include "../../include/uapi/linux/kofi.h"
#include "kofi.h"
#include "nl.h"

#define WATCH_MAX	86400		/* seconds */
#define STAT_NAME_MAX	64

/* All statistics of one list, in its order */
struct sample {
	struct value {
		uint64_t	id;	/* of the object */
		uint64_t	value;
		char		name[STAT_NAME_MAX];
	}		*values;
	size_t		n;
	size_t		room;
	uint64_t	ns;	/* when the list was requested */
};

struct view {
	bool		json;
	bool		head;	/* the line above the objects is printed */
	bool		one;	/* object, with its peers if it has any */
	bool		peers;	/* their list has begun */
	uint64_t	netns;	/* of this process, 0 if not known */
	unsigned int	found;
	struct sample	*now;	/* with --watch only */
	struct sample	*old;	/* NULL in the first list, which prints nothing */
	size_t		hint;	/* where @old probably continues */
};

static void state_name(char *buf, size_t size, const struct nlattr *state)
{
	short_name(buf, size, kofi_names_ep_state, "KOFI_EP_", nl_uint(state));
}

static const char *attr_addr(char *buf, size_t size, const struct nlattr *attr)
{
	return addr_text(buf, size, mnl_attr_get_payload(attr),
			 mnl_attr_get_payload_len(attr));
}

/* Output of the statistics of an object */
struct stat_to {
	struct view	*view;
	FILE		*text;
	uint64_t	id;
};

/* Each statistic: name and value */
static void each_stat(const struct nlmsghdr *nlh, struct stat_to *to,
		      void (*fn)(struct stat_to *to, const char *name,
				 uint64_t value))
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
			fn(to, name, nl_uint(tb[KOFI_A_STAT_VALUE]));
	}
}

static void sample_stat(struct stat_to *to, const char *name, uint64_t value)
{
	struct sample *s = to->view->now;

	if (s->n == s->room) {
		s->room = s->room ? s->room * 2 : 256;
		s->values = realloc(s->values, s->room * sizeof(*s->values));
		if (!s->values) {
			error("out of memory");
			exit(EXIT_FAILED);
		}
	}
	s->values[s->n].id = to->id;
	s->values[s->n].value = value;
	snprintf(s->values[s->n++].name, STAT_NAME_MAX, "%s", name);
}

/*
 * Change per second of a statistic since the list before this one; false if it was
 * not there. Two lists have the same order, so a search rarely takes two steps.
 */
static bool rate_of(const struct stat_to *to, const char *name, uint64_t value,
		    double *rate)
{
	const struct sample *old = to->view->old;
	struct view *view = to->view;
	const struct value *v;
	size_t i;

	for (i = 0; i < old->n; i++) {
		v = &old->values[(view->hint + i) % old->n];
		if (v->id != to->id || strncmp(v->name, name, STAT_NAME_MAX - 1))
			continue;
		view->hint = v - old->values + 1;
		*rate = (double)(int64_t)(value - v->value) * NSEC_PER_SEC /
			(view->now->ns - old->ns);
		return true;
	}
	return false;
}

static void text_stat(struct stat_to *to, const char *name, uint64_t value)
{
	fprintf(to->text, "        %s: %" PRIu64 "\n", name, value);
}

static void text_rate(struct stat_to *to, const char *name, uint64_t value)
{
	double rate;

	if (rate_of(to, name, value, &rate) && rate)
		fprintf(to->text, "        %s: %" PRIu64 " %+.1f/s\n", name,
			value, rate);
}

static void json_stat(struct stat_to *to, const char *name, uint64_t value)
{
	(void)to;
	json_number(name, value);
}

static void json_rate(struct stat_to *to, const char *name, uint64_t value)
{
	double rate;

	if (rate_of(to, name, value, &rate))
		json_real(name, rate);
}

/* Details of an object that depend on its class, each with a space before it */
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

static void text_head(struct view *view)
{
	if (!view->head)
		printf("%6s %-8s %6s %-8s %-13s %s\n", "ID", "CLASS", "PARENT",
		       "PROVIDER", "OWNER", "WHAT");
	view->head = true;
}

/* The histogram: its samples, and each bucket that has some, with its limit in ns */
static void text_latency(FILE *to, const struct nlattr *latency)
{
	const struct nlattr *tb[KOFI_A_LATENCY_MAX + 1];
	const struct nlattr *bucket[KOFI_A_BUCKET_MAX + 1], *attr;

	nl_nested(latency, tb, KOFI_A_LATENCY_MAX);
	fprintf(to, "        latency samples: %" PRIu64 "\n",
		nl_uint(tb[KOFI_A_LATENCY_SAMPLES]));
	mnl_attr_for_each_nested(attr, latency) {
		if (mnl_attr_get_type(attr) != KOFI_A_LATENCY_BUCKET)
			continue;
		nl_nested(attr, bucket, KOFI_A_BUCKET_MAX);
		if (bucket[KOFI_A_BUCKET_BELOW])
			fprintf(to, "        latency < %" PRIu64 " ns: ",
				nl_uint(bucket[KOFI_A_BUCKET_BELOW]));
		else
			fprintf(to, "        latency longer: ");
		fprintf(to, "%" PRIu64 "\n", nl_uint(bucket[KOFI_A_BUCKET_COUNT]));
	}
}

static void json_latency(const struct nlattr *latency)
{
	const struct nlattr *tb[KOFI_A_LATENCY_MAX + 1];
	const struct nlattr *bucket[KOFI_A_BUCKET_MAX + 1], *attr;

	nl_nested(latency, tb, KOFI_A_LATENCY_MAX);
	json_open("latency", '{');
	json_number("samples", nl_uint(tb[KOFI_A_LATENCY_SAMPLES]));
	json_open("buckets", '[');
	mnl_attr_for_each_nested(attr, latency) {
		if (mnl_attr_get_type(attr) != KOFI_A_LATENCY_BUCKET)
			continue;
		nl_nested(attr, bucket, KOFI_A_BUCKET_MAX);
		json_open(NULL, '{');
		if (bucket[KOFI_A_BUCKET_BELOW])
			json_number("below_ns", nl_uint(bucket[KOFI_A_BUCKET_BELOW]));
		json_number("count", nl_uint(bucket[KOFI_A_BUCKET_COUNT]));
		json_close('}');
	}
	json_close(']');
	json_close('}');
}

/* With --watch, objects without a change are left out. */
static int text_obj(struct view *view, const struct nlmsghdr *nlh,
		    const struct nlattr **tb)
{
	struct stat_to to = { .view = view };
	char class[32], parent[24] = "-";
	char *what = NULL, *stats;
	size_t size = 0;

	to.text = open_memstream(&what, &size);
	if (!to.text)
		return -ENOMEM;
	to.id = nl_uint(tb[KOFI_A_OBJ_ID]);
	text_what(to.text, view, tb);
	putc('\0', to.text);
	each_stat(nlh, &to, view->old ? text_rate : text_stat);
	if (tb[KOFI_A_OBJ_LATENCY] && !view->old)
		text_latency(to.text, tb[KOFI_A_OBJ_LATENCY]);
	if (fclose(to.text)) {
		free(what);
		return -ENOMEM;
	}
	stats = what + strlen(what) + 1;
	if (view->old && !*stats)
		goto out;
	short_name(class, sizeof(class), kofi_names_class, "FI_CLASS_",
		   nl_uint(tb[KOFI_A_OBJ_CLASS]));
	if (tb[KOFI_A_OBJ_PARENT])
		snprintf(parent, sizeof(parent), "%" PRIu64,
			 nl_uint(tb[KOFI_A_OBJ_PARENT]));
	text_head(view);
	printf("%6" PRIu64 " %-8s %6s %-8s %-*s%s\n%s", to.id, class, parent,
	       nl_str(tb[KOFI_A_OBJ_PROV_NAME]) ?: "-", *what ? 13 : 0,
	       nl_str(tb[KOFI_A_OBJ_OWNER]) ?: "-", what, stats);
out:
	free(what);
	return 0;
}

static void json_obj(struct view *view, const struct nlmsghdr *nlh,
		     const struct nlattr **tb)
{
	struct stat_to to = { .view = view };
	char buf[ADDR_TEXT_MAX];

	json_open(NULL, '{');
	to.id = nl_uint(tb[KOFI_A_OBJ_ID]);
	json_number("id", to.id);
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
	if (tb[KOFI_A_OBJ_OWNER])
		json_string("owner", nl_str(tb[KOFI_A_OBJ_OWNER]));
	json_open("stats", '{');
	each_stat(nlh, &to, json_stat);
	json_close('}');
	if (tb[KOFI_A_OBJ_LATENCY])
		json_latency(tb[KOFI_A_OBJ_LATENCY]);
	if (!view->old)
		return;
	json_open("rates", '{');
	each_stat(nlh, &to, json_rate);
	json_close('}');
}

static int take_obj(struct nl *nl, const struct nlmsghdr *nlh,
		    const struct nlattr **tb, void *arg)
{
	struct view *view = arg;
	struct stat_to to = { .view = view, .id = nl_uint(tb[KOFI_A_OBJ_ID]) };
	int ret = 0;

	(void)nl;
	view->found++;
	if (view->now) {
		each_stat(nlh, &to, sample_stat);
		if (!view->old)
			return 0;
	}
	if (view->json)
		json_obj(view, nlh, tb);
	else
		ret = text_obj(view, nlh, tb);
	if (view->json && !(view->one && !view->now))
		json_close('}');
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

/* An endpoint that connects has no peers, a closed one is not found. */
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

/* The objects to list: one object, one class, or all */
struct choice {
	const char	*word;	/* of the command line */
	bool		one;
	uint64_t	value;	/* number, or class */
};

static int list(struct nl *nl, struct view *view, const struct choice *which)
{
	struct nlmsghdr *nlh;

	nlh = nl_new(nl, KOFI_CMD_OBJ_GET, which->one ? 0 : NLM_F_DUMP);
	if (which->word)
		nl_put_uint(nlh, which->one ? KOFI_A_OBJ_ID : KOFI_A_OBJ_CLASS,
			    which->value);
	view->one = which->one;
	view->found = 0;
	return nl_call(nl, nlh, KOFI_A_OBJ_MAX, take_obj, view);
}

static int list_failed(struct nl *nl, const struct choice *which, int err)
{
	if (err == -ENOENT && which->one)
		error("no object %s is open", which->word);
	else
		error("cannot read the objects: %s", nl_error(nl, err));
	return EXIT_FAILED;
}

static int show(struct nl *nl, struct view *view, const struct choice *which)
{
	int err;

	if (view->json)
		json_open(NULL, '[');
	err = list(nl, view, which);
	if (!err && which->one)
		err = show_peers(nl, view, which->value);
	/* an object that is not open is not found, which is an empty list */
	if (err && !(err == -ENOENT && which->one))
		return list_failed(nl, which, err);
	if (view->json) {
		if (which->one && view->found)
			json_close('}');
		json_close(']');
		json_end();
	}
	if (err)
		return list_failed(nl, which, err);
	if (!view->found && which->word)
		error("no object of class %s is open", which->word);
	else if (!view->found)
		error("no object is open");
	return view->found ? EXIT_OK : EXIT_FAILED;
}

/* Numbers of endpoints */
struct ids {
	uint64_t	*ids;
	size_t		n;
};

static int take_id(struct nl *nl, const struct nlmsghdr *nlh,
		   const struct nlattr **tb, void *arg)
{
	struct ids *ids = arg;
	uint64_t *more = realloc(ids->ids, (ids->n + 1) * sizeof(*more));

	(void)nl;
	(void)nlh;
	if (!more)
		return -ENOMEM;
	ids->ids = more;
	ids->ids[ids->n++] = nl_uint(tb[KOFI_A_OBJ_ID]);
	return 0;
}

/* Measure one endpoint, or all; an endpoint that is closed concurrently is no error. */
static int measure(struct nl *nl, const struct choice *which, bool on)
{
	struct ids ids = { 0 };
	struct nlmsghdr *nlh;
	int err;
	size_t i;

	nlh = nl_new(nl, KOFI_CMD_OBJ_GET, which->one ? 0 : NLM_F_DUMP);
	nl_put_uint(nlh, which->one ? KOFI_A_OBJ_ID : KOFI_A_OBJ_CLASS, which->value);
	err = nl_call(nl, nlh, KOFI_A_OBJ_MAX, take_id, &ids);
	for (i = 0; !err && i < ids.n; i++) {
		nlh = nl_new(nl, KOFI_CMD_OBJ_SET, 0);
		nl_put_uint(nlh, KOFI_A_OBJ_ID, ids.ids[i]);
		mnl_attr_put_u8(nlh, KOFI_A_OBJ_MEASURE, on);
		err = nl_call(nl, nlh, 0, NULL, NULL);
		if (err == -ENOENT && !which->one)
			err = 0;
	}
	free(ids.ids);
	if (err == -ENOENT)
		error("no object %s is open", which->word);
	else if (err)
		error("cannot set what is measured: %s", nl_error(nl, err));
	else if (!ids.n)
		error("no object of class ep is open");
	return err || !ids.n ? EXIT_FAILED : EXIT_OK;
}

static void sleep_until(uint64_t ns)
{
	const struct timespec ts = { ns / NSEC_PER_SEC, ns % NSEC_PER_SEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* List once more than there are intervals: the first list has no rates. */
static int watch(struct nl *nl, struct view *view, const struct choice *which,
		 uint64_t seconds, uint64_t count)
{
	struct sample samples[2] = { 0 };
	uint64_t next = now_ns(), n;
	int err;

	for (n = 0; !count || n <= count; n++) {
		view->now = &samples[n % 2];
		view->old = n ? &samples[(n + 1) % 2] : NULL;
		view->now->n = 0;
		view->head = false;
		view->hint = 0;
		sleep_until(next);
		view->now->ns = now_ns();
		next = view->now->ns + seconds * NSEC_PER_SEC;
		if (n && view->json) {
			json_open(NULL, '{');
			json_number("interval_ns", view->now->ns - view->old->ns);
			json_open("objects", '[');
		}
		err = list(nl, view, which);
		if (err)
			return list_failed(nl, which, err);
		if (n && view->json) {
			json_close(']');
			json_close('}');
			json_end();
		} else if (n) {
			text_head(view);
			putchar('\n');
		}
		if (fflush(stdout))
			break;	/* main() has the words */
	}
	free(samples[0].values);
	free(samples[1].values);
	return EXIT_OK;
}

static const char stat_usage[] =
"Usage: kofi stat [OPTION...] [CLASS|ID]\n"
"\n"
"Open objects with their statistics: all, those of a class, or the one with a\n"
"number. One endpoint is followed by its peers. The initial network namespace\n"
"shows the objects of all namespaces to users with CAP_NET_ADMIN.\n"
"\n"
"Classes: fabric, domain, ep, pep, sep, srx_ctx, eq, cq, cntr, av, mr, wait, poll\n"
"\n"
"  -w, --watch=SECONDS  statistics that change, with their rates per second in each\n"
"                       interval of so many seconds\n"
"  -c, --count=NUMBER   of intervals; without it, until interrupted\n"
"  -l, --latency=on|off  measure the latency of an endpoint, or of all with the class\n"
"                       ep, or stop that; lists then have a histogram\n"
"  -j, --json           as JSON; with -w, a line for each interval\n"
"  -h, --help           this text\n"
"\n"
"Exit code: 0 something is open, 1 nothing is or an error, 2 wrong usage.\n";

static const struct option stat_options[] = {
	{ "watch",	required_argument,	NULL, 'w' },
	{ "count",	required_argument,	NULL, 'c' },
	{ "latency",	required_argument,	NULL, 'l' },
	{ "json",	no_argument,		NULL, 'j' },
	{ "help",	no_argument,		NULL, 'h' },
	{ NULL, 0, NULL, 0 }
};

int cmd_stat(int argc, char **argv)
{
	uint64_t seconds = 0, count = 0;
	struct choice which = { 0 };
	struct view view = { 0 };
	struct stat ns;
	struct nl *nl;
	const char *latency = NULL, *class = NULL;
	int opt, ret;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, "w:c:l:jh", stat_options, NULL)) != -1) {
		switch (opt) {
		case 'w':
			if (!parse_number(optarg, WATCH_MAX, &seconds) || !seconds)
				return usage_error("stat", "an interval is 1 to %d seconds",
						   WATCH_MAX);
			break;
		case 'c':
			if (!parse_number(optarg, UINT32_MAX, &count) || !count)
				return usage_error("stat", "%s is no number of intervals",
						   optarg);
			break;
		case 'l':
			latency = optarg;
			if (strcmp(latency, "on") && strcmp(latency, "off"))
				return usage_error("stat", "--latency is on or off");
			break;
		case 'j':
			view.json = true;
			json_start();
			break;
		case 'h':
			fputs(stat_usage, stdout);
			return EXIT_OK;
		default:
			return usage_error("stat", "%s is no option, or wants a value",
					   argv[optind - 1]);
		}
	}
	which.word = argv[optind];
	if (which.word && argv[optind + 1])
		return usage_error("stat", "one class or number at a time");
	if (which.word) {
		which.one = parse_number(which.word, UINT32_MAX, &which.value);
		if (!which.one && !name_find(kofi_names_class, "FI_CLASS_",
					     which.word, &which.value))
			return usage_error("stat", "%s is no class or number",
					   which.word);
	}
	if (count && !seconds)
		return usage_error("stat", "--count goes with --watch");
	if (which.word && !which.one)
		class = kofi_name_of(kofi_names_class, which.value);
	if (latency && (seconds || view.json || !which.word ||
			(!which.one && strcasecmp(class ?: "", "FI_CLASS_EP"))))
		return usage_error("stat", "--latency goes with ep or a number alone");
	if (seconds && view.json)
		json_lines();
	if (!stat("/proc/self/ns/net", &ns))
		view.netns = ns.st_ino;
	nl = nl_open(KOFI_FAMILY_NAME, "kofi");
	if (!nl)
		return EXIT_FAILED;
	if (latency)
		ret = measure(nl, &which, !strcmp(latency, "on"));
	else
		ret = seconds ? watch(nl, &view, &which, seconds, count) :
				show(nl, &view, &which);
	nl_close(nl);
	return ret;
}

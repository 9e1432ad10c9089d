// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi check: goes from the module to a verified transfer, and says where it stops. For
 * each provider, domain and type of endpoint that discovery finds, two endpoints of
 * this machine transfer to each other over the domain's first address: messages to and
 * fro, and writes where there is remote memory. Contents are checked.
 */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../include/uapi/linux/kofi.h"
#include "kofi.h"
#include "nl.h"
#include "perf.h"

#define TRANSFERS	32
#define WINDOW		4
#define SLICES		100	/* of PERF_SLICE, for the connection and for the run */
#define DEVICES		"/sys/class/infiniband"

struct options {
	const char	*prov;
	const char	*domain;
	bool		json;
};

/* A domain and a type of endpoint, as discovery found them */
struct place {
	char			prov[KOFI_PERF_NAME_MAX + 1];
	char			domain[KOFI_PERF_NAME_MAX + 1];
	uint32_t		type;	/* enum kofi_perf_type */
	bool			rma;
	uint64_t		size;	/* bytes of a transfer */
	struct kofi_perf_addr	addr;
};

struct places {
	const struct options	*opts;
	struct place		*list;
	size_t			n;
};

/* ---------------------------------------------------------------- discovery */

static bool place_type(uint64_t value, uint32_t *type)
{
	static const char *const names[] = {
		[KOFI_PERF_MSG] = "FI_EP_MSG",
		[KOFI_PERF_RDM] = "FI_EP_RDM",
		[KOFI_PERF_DGRAM] = "FI_EP_DGRAM",
	};
	const char *name = kofi_name_of(kofi_names_ep_type, value);

	for (*type = 0; *type < sizeof(names) / sizeof(names[0]); (*type)++)
		if (name && !strcmp(name, names[*type]))
			return true;
	return false;
}

static bool is_known(const struct places *places, const struct place *p)
{
	size_t i;

	for (i = 0; i < places->n; i++)
		if (places->list[i].type == p->type &&
		    !strcmp(places->list[i].prov, p->prov) &&
		    !strcmp(places->list[i].domain, p->domain))
			return true;
	return false;
}

static int take_info(struct nl *nl, const struct nlmsghdr *nlh,
		     const struct nlattr **tb, void *arg)
{
	const struct nlattr *fabric[KOFI_A_FABRIC_ATTR_MAX + 1];
	const struct nlattr *domain[KOFI_A_DOMAIN_ATTR_MAX + 1];
	const struct nlattr *ep[KOFI_A_EP_ATTR_MAX + 1];
	const struct nlattr *addr = tb[KOFI_A_INFO_SRC_ADDR];
	struct places *places = arg;
	struct place p = { 0 }, *list;
	uint64_t rma = 0;

	(void)nl;
	(void)nlh;
	nl_nested(tb[KOFI_A_INFO_FABRIC_ATTR], fabric, KOFI_A_FABRIC_ATTR_MAX);
	nl_nested(tb[KOFI_A_INFO_DOMAIN_ATTR], domain, KOFI_A_DOMAIN_ATTR_MAX);
	nl_nested(tb[KOFI_A_INFO_EP_ATTR], ep, KOFI_A_EP_ATTR_MAX);
	if (!place_type(nl_uint(ep[KOFI_A_EP_ATTR_TYPE]), &p.type) || !addr)
		return 0;
	p.addr.len = mnl_attr_get_payload_len(addr);
	if (p.addr.len > sizeof(p.addr.addr))
		return 0;
	memcpy(p.addr.addr, mnl_attr_get_payload(addr), p.addr.len);
	snprintf(p.prov, sizeof(p.prov), "%s",
		 nl_str(fabric[KOFI_A_FABRIC_ATTR_PROV_NAME]) ?: "");
	snprintf(p.domain, sizeof(p.domain), "%s",
		 nl_str(domain[KOFI_A_DOMAIN_ATTR_NAME]) ?: "");
	name_find(kofi_names_caps, "FI_", "RMA", &rma);
	p.rma = nl_uint(tb[KOFI_A_INFO_CAPS]) & rma;
	p.size = p.type == KOFI_PERF_DGRAM ? 1024 : 16384;
	if ((places->opts->domain && strcmp(places->opts->domain, p.domain)) ||
	    is_known(places, &p))
		return 0;
	list = realloc(places->list, (places->n + 1) * sizeof(*list));
	if (!list)
		return -ENOMEM;
	list[places->n++] = p;
	places->list = list;
	return 0;
}

static int discover_type(struct nl *nl, struct places *places, const char *type)
{
	struct nlmsghdr *nlh = nl_new(nl, KOFI_CMD_INFO_GET, NLM_F_DUMP);
	struct nlattr *nest = mnl_attr_nest_start(nlh, KOFI_A_INFO_HINTS);
	uint64_t value = 0;
	int err;

	name_find(kofi_names_ep_type, "FI_EP_", type, &value);
	nl_put_uint(nlh, KOFI_A_HINTS_EP_TYPE, value);
	if (places->opts->prov)
		mnl_attr_put_strz(nlh, KOFI_A_HINTS_PROV_NAME,
				  places->opts->prov);
	mnl_attr_nest_end(nlh, nest);
	err = nl_call(nl, nlh, KOFI_A_INFO_MAX, take_info, places);
	return err == -ENODATA ? 0 : err;
}

/* Type by type: without hints, discovery keeps to the usual ones */
static int discover(struct nl *nl, struct places *places)
{
	int i, err = 0;

	for (i = 0; perf_type_names[i] && !err; i++)
		err = discover_type(nl, places, perf_type_names[i]);
	return err;
}

struct provider {
	const char	*name;	/* to look for */
	bool		there;
};

static int take_provider(struct nl *nl, const struct nlmsghdr *nlh,
			 const struct nlattr **tb, void *arg)
{
	struct provider *p = arg;
	const char *name = nl_str(tb[KOFI_A_PROVIDER_NAME]);

	(void)nl;
	(void)nlh;
	if (name && (!p->name || !strcmp(p->name, name)))
		p->there = true;
	return 0;
}

static bool is_loaded(struct nl *nl, const char *name)
{
	struct provider p = { .name = name };

	nl_call(nl, nl_new(nl, KOFI_CMD_PROVIDER_GET, NLM_F_DUMP),
		KOFI_A_PROVIDER_MAX, take_provider, &p);
	return p.there;
}

static bool has_device(void)
{
	DIR *dir = opendir(DEVICES);
	struct dirent *d = NULL;

	while (dir && (d = readdir(dir)) && d->d_name[0] == '.')
		;
	if (dir)
		closedir(dir);
	return d;
}

/* Reason why discovery has found nothing */
static void explain_nothing(struct nl *nl, const struct options *opts, char *why,
			    size_t size)
{
	const char *prov = opts->prov;
	char below[KOFI_PERF_NAME_MAX + 1];
	size_t i;

	/* "sock;ofi_rxm" is kofi_rxm over sock */
	snprintf(below, sizeof(below), "%s", prov ?: "");
	below[strcspn(below, ";")] = 0;
	for (i = 0; prov && i < 2; i++) {
		const char *name = i ? "ofi_rxm" : below;
		const char *module = i ? "kofi_rxm" : NULL;

		if ((i && !strchr(prov, ';')) || is_loaded(nl, name))
			continue;
		snprintf(why, size, "the provider %s is not loaded; try: modprobe %s%s",
			 name, module ?: "kofi_", module ? "" : name);
		return;
	}
	if (!is_loaded(nl, NULL))
		snprintf(why, size,
			 "no provider is loaded; try: modprobe kofi_sock");
	else if (opts->domain)
		snprintf(why, size,
			 "there is no domain %s that is up and has an address",
			 opts->domain);
	else if (!strcmp(below, "verbs") && !has_device())
		snprintf(why, size, "there is no RDMA device; see: rdma link");
	else if (!strcmp(below, "verbs"))
		snprintf(why, size,
			 "no RDMA device is up and has an address; see: rdma link");
	else
		snprintf(why, size,
			 "no interface is up and has an address; see: ip address");
}

/* ----------------------------------------------------------------- transfers */

static void place_session(struct session *s, const struct place *p,
			  enum kofi_perf_op op, bool initiator)
{
	bool pingpong = op == KOFI_PERF_OP_MSG;

	session_init(s);
	s->open.type = p->type;
	s->open.op = op;
	s->open.flags = KOFI_PERF_VERIFY |
			(pingpong ? KOFI_PERF_PINGPONG : 0) |
			(initiator ? KOFI_PERF_INITIATOR : 0);
	s->open.window = pingpong ? 1 : WINDOW;
	s->open.size = p->size;
	s->open.iterations = TRANSFERS;
	s->open.src = p->addr;
	memcpy(s->open.prov, p->prov, sizeof(p->prov));
	memcpy(s->open.domain, p->domain, sizeof(p->domain));
}

/* Both wait for each other in turn. */
static int join(struct session s[2])
{
	bool joined[2] = { false };
	int i, slices, err;

	s[0].join.peer = s[1].open.name;
	s[1].join.peer = s[0].open.name;
	for (slices = 0; slices < SLICES; slices++) {
		for (i = 0; i < 2; i++) {
			if (joined[i])
				continue;
			err = session_join(&s[i]);
			if (err && err != -ETIMEDOUT)
				return err;
			joined[i] = !err;
		}
		if (joined[0] && joined[1])
			return 0;
		if (perf_interrupted)
			return -EINTR;
	}
	return -ETIMEDOUT;
}

static void peer_of(const struct session *s, struct kofi_perf_start *start)
{
	memset(start, 0, sizeof(*start));
	start->count = s->join.count;
	memcpy(start->region, s->join.region, sizeof(start->region));
}

static int transfer(struct session s[2])
{
	struct kofi_perf_start start;
	int i, slices, err = 0;

	/* the target first */
	for (i = 0; i < 2 && !err; i++) {
		peer_of(&s[!i], &start);
		err = session_start(&s[i], &start);
	}
	for (slices = 0; slices < SLICES && !err; slices++) {
		err = session_wait(&s[1], PERF_SLICE, false);
		if (!err)
			err = session_wait(&s[0], 0, s[1].wait.over);
		if (!err && s[1].wait.over)
			return 0;
		if (!err && perf_interrupted)
			err = -EINTR;
	}
	return err ?: -ETIMEDOUT;
}

static const char *hint_of(int err)
{
	switch (err) {
	case -ENODATA:
	case -ENETUNREACH:
	case -EHOSTUNREACH:
	case -EADDRNOTAVAIL:
		return "; is there a route? see: ip route get ADDRESS";
	case -ETIMEDOUT:
	case -EPERM:
	case -EACCES:
	case -ECONNREFUSED:
		return "; does a firewall rule or a policy route forbid it?";
	default:
		return "";
	}
}

/* 0, or negative with the reason in @why */
static int check_op(const struct place *p, enum kofi_perf_op op, char *why,
		    size_t size)
{
	struct session s[2];
	int err, i;

	place_session(&s[0], p, op, false);
	place_session(&s[1], p, op, true);
	err = session_open(&s[0]);
	if (!err) {
		s[1].open.dest = s[0].open.name;
		err = session_open(&s[1]);
	}
	if (!err)
		err = join(s);
	if (!err)
		err = transfer(s);
	if (perf_interrupted)
		snprintf(why, size, "interrupted");
	else if (err)
		snprintf(why, size, "%s %s: %.150s%s", perf_op_names[op],
			 perf_type_names[p->type],
			 s[1].why[0] ? s[1].why :
			 s[0].why[0] ? s[0].why : "no progress", hint_of(err));
	for (i = 1; i >= 0; i--)
		session_close(&s[i]);
	return err;
}

static int check_place(const struct place *p, bool json)
{
	char addr[ADDR_TEXT_MAX], why[256] = "";
	int err;

	addr_text(addr, sizeof(addr), p->addr.addr, p->addr.len);
	if (strrchr(addr, ':'))
		*strrchr(addr, ':') = 0;	/* the port is 0 */
	err = check_op(p, KOFI_PERF_OP_MSG, why, sizeof(why));
	if (!err && p->rma)
		err = check_op(p, KOFI_PERF_OP_WRITE, why, sizeof(why));
	if (json) {
		json_open(NULL, '{');
		json_string("provider", p->prov);
		json_string("domain", p->domain);
		json_string("endpoint", perf_type_names[p->type]);
		json_string("address", addr);
		json_string("error", err ? why : NULL);
		json_close('}');
		return err;
	}
	printf("%-14s %-12s %-6s %s: %s%s\n", p->prov, p->domain,
	       perf_type_names[p->type], addr, err ? "FAILED: " : "",
	       err ? why : p->rma ? "messages and writes verified" :
				    "messages verified");
	fflush(stdout);
	return err;
}

static int check(struct nl *nl, const struct options *opts)
{
	struct places places = { .opts = opts };
	char why[256];
	int err, ret = EXIT_OK;
	size_t i;

	err = discover(nl, &places);
	if (err) {
		error("discovery failed: %s", nl_error(nl, err));
		free(places.list);
		return EXIT_FAILED;
	}
	if (opts->json && places.n)
		json_open(NULL, '[');
	for (i = 0; i < places.n && !perf_interrupted; i++)
		if (check_place(&places.list[i], opts->json))
			ret = EXIT_FAILED;
	if (opts->json && places.n) {
		json_close(']');
		json_end();
	}
	free(places.list);
	if (!i) {
		explain_nothing(nl, opts, why, sizeof(why));
		error("%s", why);
		return EXIT_FAILED;
	}
	if (perf_interrupted)
		error("check: interrupted");
	else if (ret)
		error("check: not all transfers were possible");
	return ret;
}

static const char check_usage[] =
"Usage: kofi check [OPTION...]\n"
"\n"
"Goes from the modules to a verified transfer within this machine, for each provider,\n"
"domain and type of endpoint, and says where it stops. Needs the module kofi_perf.\n"
"\n"
"  -p PROVIDER    only this provider; tcp means sock\n"
"  -d DOMAIN      only this domain: a network or RDMA device\n"
"  -j, --json     print JSON\n"
"  -h, --help     this text\n"
"\n"
"Exit code: 0 all was possible, 1 something was not or nothing was found, 2 wrong usage.\n";

int cmd_check(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "json", no_argument, NULL, 'j' },
		{}
	};
	struct options opts = { 0 };
	struct nl *nl;
	int letter, ret;

	while ((letter = getopt_long(argc, argv, "p:d:jh", longs, NULL)) != -1) {
		switch (letter) {
		case 'p':
			opts.prov = strcmp(optarg, "tcp") ? optarg : "sock";
			break;
		case 'd':
			opts.domain = optarg;
			break;
		case 'j':
			opts.json = true;
			json_start();
			break;
		case 'h':
			fputs(check_usage, stdout);
			return EXIT_OK;
		default:
			return EXIT_USAGE;
		}
	}
	if (optind < argc)
		return usage_error("check", "%s is no option", argv[optind]);
	if (opts.prov && (!*opts.prov ||
			  strlen(opts.prov) > KOFI_PERF_NAME_MAX))
		return usage_error("check", "-p takes a name of 1 to %d letters",
				   KOFI_PERF_NAME_MAX);
	perf_catch_signals();
	nl = nl_open(KOFI_FAMILY_NAME, "kofi");
	if (!nl)
		return EXIT_FAILED;
	ret = check(nl, &opts);
	nl_close(nl);
	return ret;
}

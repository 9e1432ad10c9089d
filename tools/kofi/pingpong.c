// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi pingpong: starts a run of kofi_pingpong.ko and prints its report, with the
 * option letters and the table of fi_pingpong. The run belongs to the netlink socket:
 * when this program exits for any reason, the run is aborted.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "../../include/uapi/linux/kofi_test.h"
#include "kofi.h"
#include "nl.h"

#define ITERATIONS	10	/* fi_pingpong's */
#define TIMEOUT		30	/* seconds */

struct options {
	char		node[KOFI_TEST_NAME_MAX + 1];
	char		source[KOFI_TEST_NAME_MAX + 1];
	const char	*provider;
	const char	*domain;
	uint64_t	src_port;
	uint64_t	dst_port;
	uint64_t	size;
	uint64_t	iterations;
	uint64_t	warmup;
	uint64_t	timeout;
	uint32_t	mode;
	uint32_t	poll;
	uint32_t	endpoint;
	uint32_t	tagged;
	bool		has_size;
	bool		all_sizes;
	bool		check;
	bool		ipv6;
	bool		verbose;
	bool		json;
};

struct progress {
	const struct options	*opts;
	bool			head;	/* printed */
	bool			over;
	uint32_t		err;
	char			stage[64];
	char			detail[128];
};

static void print_usage(void)
{
	puts("Usage:\n"
	     "  kofi pingpong [OPTION...]         be the server\n"
	     "  kofi pingpong [OPTION...] SERVER  connect to a server\n"
	     "\n"
	     "Sends messages to and fro between this kernel and another, or an fi_pingpong\n"
	     "program. Both sides need the same -e, -m, -S, -I and -c. Needs the module kofi_pingpong.\n"
	     "\n"
	     "As of fi_pingpong:\n"
	     "  -B PORT      local control port (server: 47592, client: any)\n"
	     "  -P PORT      control port of the server (47592)\n"
	     "  -d DOMAIN    domain name\n"
	     "  -p PROVIDER  provider name; tcp means sock\n"
	     "  -e TYPE      endpoint type: msg (default), rdm or dgram\n"
	     "  -I NUMBER    round trips per size (10)\n"
	     "  -S SIZE      one message size in bytes, or all; else six up to 1 MiB\n"
	     "  -c           fill messages with a pattern and check it\n"
	     "  -m MODE      transfer mode: msg (default) or tagged\n"
	     "  -v           tell on stderr what is going on\n"
	     "  -6           IPv6 for the control connection\n"
	     "  -h, --help   this text\n"
	     "Our own:\n"
	     "  -s ADDRESS   local address of both connections\n"
	     "  -w NUMBER    round trips before the clock starts, per size (0); fi_pingpong at\n"
	     "               the other side needs an -I that includes them\n"
	     "  -M MODE      completions: done (by callbacks, default) or read (fi_cq_sread)\n"
	     "  -C CONTEXT   callbacks run in: softirq (default), workqueue, direct\n"
	     "  -T SECONDS   give up after so long without progress (30), 0: never\n"
	     "  -j, --json   print JSON\n"
	     "\n"
	     "Exit code: 0 done, 1 the run failed, 2 wrong usage.");
}

/* -S and the like: the number, or EXIT_USAGE with a sentence */
static int take_number(char letter, const char *text, uint64_t max,
		       uint64_t *value)
{
	if (parse_number(text, max, value))
		return EXIT_OK;
	return usage_error("pingpong",
			   "-%c takes a number up to %" PRIu64 ", not \"%s\"",
			   letter, max, text);
}

/* Index of @text in @names, a table that NULL terminates */
static int choice(char letter, const char *text, const char *const *names,
		  uint32_t *value)
{
	uint32_t i;

	for (i = 0; names[i]; i++) {
		if (!strcasecmp(text, names[i])) {
			*value = i;
			return EXIT_OK;
		}
	}
	return usage_error("pingpong", "-%c does not take \"%s\"", letter,
			   text);
}

/* Numeric form of a host, as the kernel wants it. */
static int resolve(const char *host, bool ipv6, char *node, size_t size)
{
	const struct addrinfo hints = {
		.ai_family = ipv6 ? AF_INET6 : AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
	};
	struct addrinfo *list, *ai;
	int ret;

	ret = getaddrinfo(host, NULL, &hints, &list);
	if (ret) {
		error("%s: %s", host, gai_strerror(ret));
		return EXIT_FAILED;
	}
	for (ai = list; ai && ai->ai_family != AF_INET; ai = ai->ai_next)
		;
	if (!ai)
		ai = list;
	ret = getnameinfo(ai->ai_addr, ai->ai_addrlen, node, size, NULL, 0,
			  NI_NUMERICHOST);
	freeaddrinfo(list);
	if (ret) {
		error("%s: %s", host, gai_strerror(ret));
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

static int parse(int argc, char **argv, struct options *opts)
{
	static const char *const poll_names[] = {
		[KOFI_TEST_POLL_DIRECT] = "direct",
		[KOFI_TEST_POLL_SOFTIRQ] = "softirq",
		[KOFI_TEST_POLL_WORKQUEUE] = "workqueue",
		NULL
	};
	static const char *const mode_names[] = {
		[KOFI_TEST_MODE_DONE] = "done",
		[KOFI_TEST_MODE_READ] = "read",
		NULL
	};
	static const char *const endpoint_names[] = {
		[KOFI_TEST_ENDPOINT_MSG] = "msg",
		[KOFI_TEST_ENDPOINT_RDM] = "rdm",
		[KOFI_TEST_ENDPOINT_DGRAM] = "dgram",
		NULL
	};
	static const char *const transfer_names[] = { "msg", "tagged", NULL };
	static const struct option longs[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "json", no_argument, NULL, 'j' },
		{}
	};
	const char *source = NULL;
	bool has_poll = false;
	int letter, ret = EXIT_OK;

	while (!ret && (letter = getopt_long(argc, argv,
					     "B:P:d:p:e:I:S:cm:v6hs:w:M:C:T:j",
					     longs, NULL)) != -1) {
		switch (letter) {
		case 'B':
			ret = take_number('B', optarg, UINT16_MAX,
					  &opts->src_port);
			break;
		case 'P':
			ret = take_number('P', optarg, UINT16_MAX,
					  &opts->dst_port);
			break;
		case 'd':
			opts->domain = optarg;
			break;
		case 'p':
			opts->provider = strcmp(optarg, "tcp") ? optarg :
								 "sock";
			break;
		case 'e':
			ret = choice('e', optarg, endpoint_names,
				     &opts->endpoint);
			break;
		case 'm':
			ret = choice('m', optarg, transfer_names,
				     &opts->tagged);
			break;
		case 'I':
			ret = take_number('I', optarg, INT_MAX,
					  &opts->iterations);
			break;
		case 'S':
			opts->all_sizes = !strcasecmp(optarg, "all");
			opts->has_size = !opts->all_sizes;
			if (opts->has_size)
				ret = take_number('S', optarg,
						  KOFI_TEST_SIZE_MAX,
						  &opts->size);
			break;
		case 'c':
			opts->check = true;
			break;
		case 'v':
			opts->verbose = true;
			break;
		case '6':
			opts->ipv6 = true;
			break;
		case 's':
			source = optarg;
			break;
		case 'w':
			ret = take_number('w', optarg, INT_MAX, &opts->warmup);
			break;
		case 'M':
			ret = choice('M', optarg, mode_names, &opts->mode);
			break;
		case 'C':
			ret = choice('C', optarg, poll_names, &opts->poll);
			has_poll = true;
			break;
		case 'T':
			ret = take_number('T', optarg, INT_MAX / 1000,
					  &opts->timeout);
			break;
		case 'j':
			opts->json = true;
			json_start();
			break;
		case 'h':
			print_usage();
			return -1;
		default:
			return EXIT_USAGE;
		}
	}
	if (ret)
		return ret;
	if (argc - optind > 1)
		return usage_error("pingpong", "\"%s\" is one server too many",
				   argv[optind + 1]);
	if (has_poll && opts->mode == KOFI_TEST_MODE_READ)
		return usage_error("pingpong",
				   "-C has no meaning with -M read");
	if ((opts->provider && strlen(opts->provider) > KOFI_TEST_NAME_MAX) ||
	    (opts->domain && strlen(opts->domain) > KOFI_TEST_NAME_MAX))
		return usage_error("pingpong", "names have at most %d letters",
				   KOFI_TEST_NAME_MAX);
	if (source)
		ret = resolve(source, opts->ipv6, opts->source,
			      sizeof(opts->source));
	if (!ret && optind < argc)
		ret = resolve(argv[optind], opts->ipv6, opts->node,
			      sizeof(opts->node));
	return ret;
}

static void print_row(struct progress *progress, uint64_t size, uint64_t sent,
		      uint64_t acked, uint64_t total, double usec)
{
	char size_buf[32], sent_buf[32], ack_buf[32], total_buf[32];
	double per_xfer = sent ? usec / sent / 2 : 0;
	char sign = '=';
	uint64_t ack = acked;

	if (!sent)
		return;
	if (acked != sent) {
		sign = sent < acked ? '-' : '+';
		ack = sent < acked ? acked - sent : sent - acked;
	}
	if (!progress->head)
		printf("%-8s%-8s%-9s%-8s%8s %10s%13s%13s\n", "bytes", "#sent",
		       "#ack", "total", "time", "MB/sec", "usec/xfer",
		       "Mxfers/sec");
	progress->head = true;
	printf("%-8s%-8s%c%-8s%-8s%8.2fs%10.2f%11.2f%11.2f\n",
	       size_text(size_buf, sizeof(size_buf), size),
	       count_text(sent_buf, sizeof(sent_buf), sent), sign,
	       count_text(ack_buf, sizeof(ack_buf), ack),
	       size_text(total_buf, sizeof(total_buf), total),
	       usec / 1e6, total / usec, per_xfer, 1 / per_xfer);
	fflush(stdout);
}

static void print_json(uint64_t size, uint64_t sent, uint64_t acked,
		       uint64_t total, uint64_t elapsed)
{
	json_open(NULL, '{');
	json_number("bytes", size);
	json_number("sent", sent);
	json_number("acked", acked);
	json_number("total", total);
	json_number("elapsed_ns", elapsed);
	json_close('}');
}

static void take_result(struct progress *progress, const struct nlattr **tb)
{
	uint64_t size = nl_uint(tb[KOFI_TEST_A_PINGPONG_REPORT_SIZE]);
	uint64_t sent = nl_uint(tb[KOFI_TEST_A_PINGPONG_REPORT_SENT]);
	uint64_t acked = nl_uint(tb[KOFI_TEST_A_PINGPONG_REPORT_ACKED]);
	uint64_t total = nl_uint(tb[KOFI_TEST_A_PINGPONG_REPORT_TOTAL]);
	uint64_t elapsed = nl_uint(tb[KOFI_TEST_A_PINGPONG_REPORT_ELAPSED]);

	if (progress->opts->json)
		print_json(size, sent, acked, total, elapsed);
	else
		print_row(progress, size, sent, acked, total, elapsed / 1e3);
}

static void take_progress(const struct progress *progress,
			  const struct nlattr **tb)
{
	const char *stage = nl_str(tb[KOFI_TEST_A_PINGPONG_REPORT_STAGE]);
	uint64_t port = nl_uint(tb[KOFI_TEST_A_PINGPONG_REPORT_PORT]);

	if (!progress->opts->verbose || !stage)
		return;
	if (port)
		fprintf(stderr, "%s on port %" PRIu64 "\n", stage, port);
	else
		fprintf(stderr, "%s\n", stage);
}

static void take_end(struct progress *progress, const struct nlattr **tb)
{
	const char *stage = nl_str(tb[KOFI_TEST_A_PINGPONG_REPORT_STAGE]);
	const char *detail = nl_str(tb[KOFI_TEST_A_PINGPONG_REPORT_DETAIL]);

	progress->over = true;
	progress->err = nl_uint(tb[KOFI_TEST_A_PINGPONG_REPORT_ERROR]);
	snprintf(progress->stage, sizeof(progress->stage), "%s",
		 stage ?: "an unknown step");
	snprintf(progress->detail, sizeof(progress->detail), "%s",
		 detail ?: "");
}

static int take_event(struct nl *nl, const struct nlmsghdr *nlh,
		      const struct nlattr **tb, void *arg)
{
	struct progress *progress = arg;

	(void)nl;
	switch (nl_cmd(nlh)) {
	case KOFI_TEST_CMD_PINGPONG_PROGRESS:
		take_progress(progress, tb);
		break;
	case KOFI_TEST_CMD_PINGPONG_RESULT:
		take_result(progress, tb);
		break;
	case KOFI_TEST_CMD_PINGPONG_END:
		take_end(progress, tb);
		break;
	}
	return 0;
}

static int start(struct nl *nl, const struct options *opts)
{
	struct nlmsghdr *nlh = nl_new(nl, KOFI_TEST_CMD_PINGPONG_START, 0);

	if (*opts->node)
		mnl_attr_put_strz(nlh, KOFI_TEST_A_PINGPONG_NODE, opts->node);
	if (*opts->source)
		mnl_attr_put_strz(nlh, KOFI_TEST_A_PINGPONG_SOURCE,
				  opts->source);
	if (opts->provider)
		mnl_attr_put_strz(nlh, KOFI_TEST_A_PINGPONG_PROVIDER,
				  opts->provider);
	if (opts->domain)
		mnl_attr_put_strz(nlh, KOFI_TEST_A_PINGPONG_DOMAIN,
				  opts->domain);
	mnl_attr_put_u16(nlh, KOFI_TEST_A_PINGPONG_SRC_PORT, opts->src_port);
	mnl_attr_put_u16(nlh, KOFI_TEST_A_PINGPONG_DST_PORT, opts->dst_port);
	if (opts->ipv6)
		mnl_attr_put(nlh, KOFI_TEST_A_PINGPONG_IPV6, 0, NULL);
	if (opts->check)
		mnl_attr_put(nlh, KOFI_TEST_A_PINGPONG_CHECK, 0, NULL);
	if (opts->all_sizes)
		mnl_attr_put(nlh, KOFI_TEST_A_PINGPONG_ALL_SIZES, 0, NULL);
	if (opts->has_size)
		nl_put_uint(nlh, KOFI_TEST_A_PINGPONG_SIZE, opts->size);
	mnl_attr_put_u32(nlh, KOFI_TEST_A_PINGPONG_ITERATIONS,
			 opts->iterations);
	mnl_attr_put_u32(nlh, KOFI_TEST_A_PINGPONG_WARMUP, opts->warmup);
	mnl_attr_put_u32(nlh, KOFI_TEST_A_PINGPONG_MODE, opts->mode);
	mnl_attr_put_u32(nlh, KOFI_TEST_A_PINGPONG_POLL, opts->poll);
	mnl_attr_put_u32(nlh, KOFI_TEST_A_PINGPONG_TIMEOUT,
			 opts->timeout * 1000);
	mnl_attr_put_u32(nlh, KOFI_TEST_A_PINGPONG_ENDPOINT, opts->endpoint);
	if (opts->tagged)
		mnl_attr_put(nlh, KOFI_TEST_A_PINGPONG_TAGGED, 0, NULL);
	return nl_call(nl, nlh, KOFI_TEST_A_PINGPONG_MAX, NULL, NULL);
}

/* Prints why a run has failed. */
static void explain(const struct nl *nl, const struct progress *progress)
{
	const char *words = nl_error(nl, progress->err);

	if (*progress->detail && strcmp(words, progress->detail))
		error("pingpong failed at %s: %s (%s)", progress->stage, words,
		      progress->detail);
	else
		error("pingpong failed at %s: %s", progress->stage, words);
}

int cmd_pingpong(int argc, char **argv)
{
	struct options opts = {
		.iterations = ITERATIONS,
		.timeout = TIMEOUT,
		.mode = KOFI_TEST_MODE_DONE,
		.poll = KOFI_TEST_POLL_SOFTIRQ,
	};
	struct progress progress = { .opts = &opts };
	struct nl *nl;
	int ret;

	ret = parse(argc, argv, &opts);
	if (ret)
		return ret < 0 ? EXIT_OK : ret;
	nl = nl_open(KOFI_TEST_FAMILY_NAME, "kofi_pingpong");
	if (!nl)
		return EXIT_FAILED;
	nl_on_event(nl, KOFI_TEST_A_PINGPONG_REPORT_MAX, take_event, &progress);
	if (opts.json) {
		json_open(NULL, '{');
		json_open("results", '[');
	}
	ret = start(nl, &opts);
	while (ret >= 0 && !progress.over)
		ret = nl_wait(nl, -1);
	if (ret < 0)
		error("pingpong: %s", nl_error(nl, ret));
	else if (progress.err)
		explain(nl, &progress);
	if (opts.json) {
		json_close(']');
		if (ret < 0 || progress.err)
			json_failure();
		json_close('}');
		json_end();
	}
	nl_close(nl);
	return ret < 0 || progress.err ? EXIT_FAILED : EXIT_OK;
}

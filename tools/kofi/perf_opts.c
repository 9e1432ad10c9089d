// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Options of kofi bw and kofi lat, with the letters of fabtests.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kofi.h"
#include "perf.h"

static void print_usage(void)
{
	puts("Usage:\n"
	     "  kofi bw [OPTION...] [SERVER]   measure the bandwidth\n"
	     "  kofi lat [OPTION...] [SERVER]  measure the latency\n"
	     "\n"
	     "Measures transfers between two kernels. Without SERVER it is the server of one client.\n"
	     "The client says what is run; -p, -d, -s, -c, -M, -T and -j are each side's own.\n"
	     "Needs the module kofi_perf.\n"
	     "\n"
	     "As of fabtests:\n"
	     "  -p PROVIDER    provider; tcp means sock\n"
	     "  -d DOMAIN      domain\n"
	     "  -e TYPE        endpoint type: msg (default), rdm or dgram\n"
	     "  -o OPERATION   msg (default), tagged, read, write or writedata\n"
	     "  -s ADDRESS     local address\n"
	     "  -B PORT        server: port to listen at (47593)\n"
	     "  -P PORT        client: port of the server (47593)\n"
	     "  -I NUMBER      transfers per size and endpoint: 10000, 1000 from 64 KiB, 100 from\n"
	     "                 1 MiB on; kofi bw: twice as many\n"
	     "  -S SIZE        one size in bytes, or all: 1 to 8 MiB; else six up to 1 MiB\n"
	     "  -w NUMBER      transfers before the clock starts (10)\n"
	     "  -W NUMBER      kofi bw: transfers that are outstanding at a time (64)\n"
	     "  -v             check contents\n"
	     "  -6             server: listen on IPv6\n"
	     "  -h, --help     this text\n"
	     "Our own:\n"
	     "  -D SECONDS     so long per size, instead of -I\n"
	     "  -n NUMBER      endpoints at a time (1)\n"
	     "  -c CPU,...     CPUs that handle completions, by endpoint\n"
	     "  -C CONTEXT     completions are handled in: softirq (default), workqueue\n"
	     "  -M MIB         memory of an endpoint's window (64); long messages get a\n"
	     "                 smaller window\n"
	     "  -T SECONDS     give up after so long without progress (30), 0: never\n"
	     "  --progress     a line per second on stderr; default on a terminal\n"
	     "  --corrupt N    with -v: transfer N has wrong contents, which has to be found\n"
	     "  -j, --json     print JSON\n"
	     "\n"
	     "Exit code: 0 done, 1 the run failed, 2 wrong usage.");
}

static int number(const struct perf_options *opts, char letter, const char *text,
		  uint64_t min, uint64_t max, uint64_t *value)
{
	if (parse_number(text, max, value) && *value >= min)
		return EXIT_OK;
	return usage_error(opts->cmd,
			   "-%c takes a number from %" PRIu64 " to %" PRIu64 ", not \"%s\"",
			   letter, min, max, text);
}

static int choice(const struct perf_options *opts, char letter, const char *text,
		  const char *const *names, uint32_t *value)
{
	uint32_t i;

	for (i = 0; names[i]; i++) {
		if (!strcasecmp(text, names[i])) {
			*value = i;
			return EXIT_OK;
		}
	}
	return usage_error(opts->cmd, "-%c does not take \"%s\"", letter, text);
}

static int take_cpus(struct perf_options *opts, char *text)
{
	uint64_t cpu;
	char *word;

	while ((word = strsep(&text, ","))) {
		if (opts->n_cpus == PERF_EPS_MAX ||
		    !parse_number(word, INT_MAX, &cpu))
			return usage_error(opts->cmd,
					   "-c takes up to %d CPU numbers with commas between, not \"%s\"",
					   PERF_EPS_MAX, word);
		opts->cpus[opts->n_cpus++] = cpu;
	}
	return EXIT_OK;
}

static int take_name(const struct perf_options *opts, char letter, const char *text,
		     const char **name)
{
	*name = text;
	if (*text && strlen(text) <= KOFI_PERF_NAME_MAX && !strchr(text, ' ') &&
	    !strchr(text, '\n'))
		return EXIT_OK;
	return usage_error(opts->cmd, "-%c takes a name of 1 to %d letters",
			   letter, KOFI_PERF_NAME_MAX);
}

static int take_option(struct perf_options *opts, int letter)
{
	static const char *const polls[] = { "softirq", "workqueue", NULL };

	switch (letter) {
	case 'p':
		return take_name(opts, 'p', strcmp(optarg, "tcp") ? optarg :
							    "sock",
				 &opts->prov);
	case 'd':
		return take_name(opts, 'd', optarg, &opts->domain);
	case 'e':
		return choice(opts, 'e', optarg, perf_type_names, &opts->type);
	case 'o':
		return choice(opts, 'o', optarg, perf_op_names, &opts->op);
	case 'C':
		return choice(opts, 'C', optarg, polls, &opts->poll);
	case 's':
		opts->source = optarg;
		return EXIT_OK;
	case 'B':
	case 'P':
		return number(opts, letter, optarg, 1, UINT16_MAX, &opts->port);
	case 'I':
		return number(opts, 'I', optarg, 1, INT64_MAX / 2,
			      &opts->iterations);
	case 'S':
		opts->all_sizes = !strcasecmp(optarg, "all");
		return opts->all_sizes ? EXIT_OK :
		       number(opts, 'S', optarg, 1, KOFI_PERF_SIZE_MAX,
			      &opts->size);
	case 'w':
		return number(opts, 'w', optarg, 0, INT64_MAX / 2,
			      &opts->warmup);
	case 'W':
		return number(opts, 'W', optarg, 1, KOFI_PERF_WINDOW_MAX,
			      &opts->window);
	case 'D':
		return number(opts, 'D', optarg, 1, 1000000, &opts->duration);
	case 'n':
		return number(opts, 'n', optarg, 1, PERF_EPS_MAX,
			      &opts->endpoints);
	case 'c':
		return take_cpus(opts, optarg);
	case 'M':
		return number(opts, 'M', optarg, 1, KOFI_PERF_SIZE_MAX >> 20,
			      &opts->memory) ?:
		       (opts->memory <<= 20, EXIT_OK);
	case 'T':
		return number(opts, 'T', optarg, 0, INT_MAX / 1000,
			      &opts->timeout);
	case 'v':
		opts->verify = true;
		return EXIT_OK;
	case '6':
		opts->ipv6 = true;
		return EXIT_OK;
	case 'j':
		opts->json = true;
		json_start();
		return EXIT_OK;
	case 'g':
		opts->progress = true;
		return EXIT_OK;
	case 'k':
		return number(opts, 'k', optarg, 1, INT64_MAX / 2,
			      &opts->corrupt);
	default:
		return EXIT_USAGE;
	}
}

static int check_options(const struct perf_options *opts, const char *given)
{
	const char *forbidden = opts->node ? "B6" : "ePoISwWDnCk";
	size_t i = strcspn(given, forbidden);

	if (given[i])
		return usage_error(opts->cmd, "-%c is an option of the %s",
				   given[i], opts->node ? "server" : "client");
	if (opts->latency && strchr(given, 'W'))
		return usage_error(opts->cmd, "-W goes with kofi bw alone");
	if (opts->corrupt && !opts->verify)
		return usage_error(opts->cmd, "--corrupt goes with -v");
	if (opts->iterations && opts->duration)
		return usage_error(opts->cmd, "either -I or -D");
	if (opts->type == KOFI_PERF_DGRAM && opts->op != KOFI_PERF_OP_MSG)
		return usage_error(opts->cmd,
				   "datagrams are messages: -e dgram goes with -o msg");
	if (opts->type == KOFI_PERF_DGRAM && opts->verify && !opts->latency)
		return usage_error(opts->cmd,
				   "datagrams may be lost: -v goes with kofi lat");
	return EXIT_OK;
}

int perf_parse(int argc, char **argv, struct perf_options *opts)
{
	static const struct option longs[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "json", no_argument, NULL, 'j' },
		{ "progress", no_argument, NULL, 'g' },
		{ "corrupt", required_argument, NULL, 'k' },
		{}
	};
	char given[256] = "";
	static const char letters[] = "p:d:e:o:s:B:P:I:S:w:W:v6hD:n:c:C:M:T:j";
	int letter, ret = EXIT_OK;

	while (!ret && (letter = getopt_long(argc, argv, letters, longs,
					     NULL)) != -1) {
		if (letter == 'h') {
			print_usage();
			return -1;
		}
		if (strlen(given) < sizeof(given) - 1)
			given[strlen(given)] = letter;
		ret = take_option(opts, letter);
	}
	if (ret)
		return ret;
	if (argc - optind > 1)
		return usage_error(opts->cmd, "\"%s\" is one server too many",
				   argv[optind + 1]);
	opts->node = argv[optind];
	return check_options(opts, given);
}

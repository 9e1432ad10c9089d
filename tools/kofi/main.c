// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The kofi tool: one program with a command per question (info, list, stat,
 * monitor, pingpong, check, bw, lat, blk). Here are the choice of the command and helpers of
 * several commands: errors, numbers, names, addresses, the clock, modprobe.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include <linux/kofi/version.h>

#include "kofi.h"

static const struct command {
	const char	*name;
	int		(*run)(int argc, char **argv);
	const char	*does;
} commands[] = {
	{ "info", cmd_info, "what can be reached, and through which provider" },
	{ "list", cmd_info, "the providers that are loaded" },
	{ "stat", cmd_stat, "open objects and their statistics" },
	{ "monitor", cmd_monitor, "connections, lost paths and violations as they happen" },
	{ "pingpong", cmd_pingpong, "run an in-kernel fi_pingpong" },
	{ "check", cmd_check, "whether transfers work, and where they stop" },
	{ "bw", cmd_perf, "measure the bandwidth between two machines" },
	{ "lat", cmd_perf, "measure the latency between two machines" },
	{ "blk", cmd_blk, "block devices of another machine, and for others" },
};

#define N_COMMANDS	(sizeof(commands) / sizeof(commands[0]))

static char error_text[512];

void error(const char *fmt, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, fmt);
	vsnprintf(error_text, sizeof(error_text), fmt, args);
	va_end(args);
	fprintf(stderr, "kofi: %s\n", error_text);
}

const char *last_error(void)
{
	return error_text;
}

int usage_error(const char *cmd, const char *fmt, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "kofi %s: ", cmd);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fprintf(stderr, "; see: kofi %s --help\n", cmd);
	return EXIT_USAGE;
}

bool parse_number(const char *text, uint64_t max, uint64_t *value)
{
	bool hex = !strncmp(text, "0x", 2) || !strncmp(text, "0X", 2);
	const char *digits = text + (hex ? 2 : 0);
	char *end;

	if (!*digits ||
	    digits[strspn(digits, hex ? "0123456789abcdefABCDEF" :
				  "0123456789")])
		return false;
	errno = 0;
	*value = strtoull(digits, &end, hex ? 16 : 10);
	return !errno && *value <= max;
}

bool name_find(const struct kofi_name *names, const char *prefix,
	       const char *text, uint64_t *value)
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

const char *addr_text(char *buf, size_t size, const void *addr, size_t len)
{
	char host[INET6_ADDRSTRLEN];
	struct sockaddr_in6 in6;
	struct sockaddr_in in;
	sa_family_t family;

	snprintf(buf, size, "?");
	if (!addr || len < sizeof(family))
		return buf;
	memcpy(&family, addr, sizeof(family));
	if (family == AF_INET && len >= sizeof(in)) {
		memcpy(&in, addr, sizeof(in));
		inet_ntop(AF_INET, &in.sin_addr, host, sizeof(host));
		snprintf(buf, size, "%s:%u", host, ntohs(in.sin_port));
	} else if (family == AF_INET6 && len >= sizeof(in6)) {
		memcpy(&in6, addr, sizeof(in6));
		inet_ntop(AF_INET6, &in6.sin6_addr, host, sizeof(host));
		snprintf(buf, size, "[%s]:%u", host, ntohs(in6.sin6_port));
	}
	return buf;
}

/* The versions of the tool and of the loaded module, in a line each */
static void print_version(void)
{
	char loaded[64];
	FILE *f;

	puts("kofi " KOFI_VERSION);
	f = fopen("/sys/module/kofi/version", "re");
	if (!f)
		return;
	if (fgets(loaded, sizeof(loaded), f))
		printf("kofi.ko %s", loaded);
	fclose(f);
}

static void print_help(FILE *to)
{
	size_t i;

	fputs("Usage: kofi COMMAND [OPTION...]\n\nCommands:\n", to);
	for (i = 0; i < N_COMMANDS; i++)
		fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].does);
	fputs("  help       this text\n"
	      "\n"
	      "\"kofi COMMAND --help\" tells a command's options; \"kofi -V\" the version.\n"
	      "Exit code: 0 done, 1 failed or nothing found, 2 wrong usage.\n", to);
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	size_t i;
	int ret;

	if (!strcmp(name, "-V") || !strcmp(name, "--version")) {
		print_version();
		return EXIT_OK;
	}
	if (!strcmp(name, "-h") || !strcmp(name, "--help") ||
	    !strcmp(name, "help")) {
		print_help(stdout);
		return EXIT_OK;
	}
	for (i = 0; i < N_COMMANDS; i++)
		if (!strcmp(name, commands[i].name))
			break;
	if (i == N_COMMANDS) {
		if (*name)
			fprintf(stderr, "kofi: no command is called \"%s\"\n\n",
				name);
		print_help(stderr);
		return EXIT_USAGE;
	}
	ret = commands[i].run(argc - 1, argv + 1);
	json_finish(ret);
	if (fflush(stdout) || ferror(stdout)) {
		error("cannot write the output: %s", strerror(errno));
		return EXIT_FAILED;
	}
	return ret;
}

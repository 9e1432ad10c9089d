// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi-9pd: lets clients of kofi_9p.ko use an ordinary 9P server.
 *
 * Here are the options and the events of all connections; client.c has what
 * happens on one of them.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include "9pd.h"
#include "../../clients/9p/proto.h"

#define EXIT_USAGE	2
#define MAIN_TICK	100	/* milliseconds until a signal or an end is seen */

static int stopped;

static const char usage[] =
"Usage: kofi-9pd [OPTION...] COMMAND [ARGUMENT...]\n"
"       kofi-9pd [OPTION...] -C SERVER\n"
"\n"
"Takes mounts of kofi_9p.ko, and passes their messages on to a 9P server. COMMAND\n"
"is started for each client, and serves it at its standard input, a socket:\n"
"  kofi-9pd diod -f -n -r 0 -w 0 -e /srv\n"
"\n"
"  -p PROVIDER   tcp or verbs (tcp)\n"
"  -a ADDRESS    address to listen at (all of IPv4)\n"
"  -P PORT       port to listen at (5640)\n"
"  -C SERVER     connect to a server that listens at HOST:PORT, or at a path\n"
"  -m BYTES      longest message, 4096 to 1048576 (1048576)\n"
"  -q REQUESTS   most requests of a client at a time, 2 to 512 (32)\n"
"  -c CLIENTS    most clients at a time, 1 to 1000 (16)\n"
"  -h            print this\n"
"\n"
"A client takes memory for twice REQUESTS messages of BYTES and eight more, or\n"
"less if it asks for less.\n";

void complain(const char *fmt, ...)
{
	char line[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	/* whole lines, also if several threads have one */
	fprintf(stderr, "kofi-9pd: %s\n", line);
}

__attribute__((format(printf, 1, 2), noreturn))
static void wrong(const char *fmt, ...)
{
	char line[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	complain("%s; see: kofi-9pd -h", line);
	exit(EXIT_USAGE);
}

static unsigned int number(char option, const char *text, unsigned int min,
			   unsigned int max)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || *end || end == text || *text == '-' || n < min || n > max)
		wrong("-%c needs a number from %u to %u, not '%s'", option, min,
		      max, text);
	return n;
}

static void parse(int argc, char **argv, struct options *o)
{
	int c;

	opterr = 0;
	while ((c = getopt(argc, argv, "+:p:a:P:C:m:q:c:h")) >= 0) {
		switch (c) {
		case 'p':
			if (strcmp(optarg, "tcp") && strcmp(optarg, "verbs"))
				wrong("there is no provider '%s'", optarg);
			o->prov = optarg;
			break;
		case 'a':
			o->node = optarg;
			break;
		case 'P':
			number(c, optarg, 1, 65535);
			o->port = optarg;
			break;
		case 'C':
			if (!strchr(optarg, '/') && !strchr(optarg, ':'))
				wrong("-C needs HOST:PORT or a path, not '%s'",
				      optarg);
			o->connect = optarg;
			break;
		case 'm':
			o->msize = number(c, optarg, K9_MSIZE_MIN,
					  K9_MSIZE_MAX);
			break;
		case 'q':
			o->credits = number(c, optarg, K9_CREDITS_MIN,
					    K9_CREDITS_MAX);
			break;
		case 'c':
			o->clients = number(c, optarg, 1, 1000);
			break;
		case 'h':
			fputs(usage, stdout);
			exit(EXIT_SUCCESS);
		case ':':
			wrong("-%c needs an argument", optopt);
		default:
			wrong("there is no option -%c", optopt);
		}
	}
	o->command = argv + optind;
	if (!*o->command && !o->connect)
		wrong("either a command or -C is needed");
	if (*o->command && o->connect)
		wrong("a command and -C exclude each other");
}

/* One event; returns whether there may be others. */
static bool event(struct listener *l, const struct options *o)
{
	union {
		struct fi_eq_cm_entry	cm;
		char			room[sizeof(struct fi_eq_cm_entry) +
					     256];
	} e;
	struct fi_eq_err_entry err = {};
	uint32_t type;
	ssize_t n;

	n = fi_eq_sread(l->eq, &type, &e, sizeof(e), MAIN_TICK, 0);
	if (n == -FI_EAVAIL) {
		if (fi_eq_readerr(l->eq, &err, 0) > 0)
			client_down(err.fid);
		return true;
	}
	if (n == -FI_EAGAIN || n == -FI_EINTR || n == -FI_ETIMEDOUT)
		return true;
	if (n < 0) {
		complain("waiting for clients: %s", fi_strerror(-n));
		return false;
	}
	if (type == FI_CONNREQ)
		client_begin(l, o, e.cm.info, e.cm.data,
			     n - sizeof(struct fi_eq_cm_entry));
	else if (type == FI_SHUTDOWN)
		client_down(e.cm.fid);
	return true;
}

static void stop(int sig)
{
	(void)sig;
	__atomic_store_n(&stopped, 1, __ATOMIC_RELAXED);
}

int main(int argc, char **argv)
{
	struct options o = {
		.prov = "tcp", .port = "5640", .msize = K9_MSIZE_MAX,
		.credits = 32, .clients = 16,
	};
	struct sigaction action = { .sa_handler = stop };
	struct listener l = {};
	bool well;

	parse(argc, argv, &o);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);

	well = !listener_open(&l, o.prov, o.node, o.port);
	while (well && !__atomic_load_n(&stopped, __ATOMIC_RELAXED)) {
		well = event(&l, &o);
		clients_close();
	}
	clients_end();
	listener_close(&l);
	return well ? EXIT_SUCCESS : EXIT_FAILURE;
}

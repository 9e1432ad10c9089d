// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi-9pd: lets clients of kofi_9p.ko use an ordinary 9P server.
 *
 * This file has the options and the events of all connections; client.c serves one
 * connection.
 */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include "9pd.h"
#include "../../clients/9p/proto.h"

#define EXIT_USAGE	2
#define MAIN_TICK	100	/* milliseconds until a signal or a finished thread is noticed */

#define MEBIBYTE	1048576ULL
#define FILES_MIN	4096	/* open ones, and for each client: */
#define FILES_CLIENT	32
#define REPORTS		10	/* lines in a time of: */
#define REPORTS_TIME	5	/* seconds */

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
"  -a ADDRESS    address to listen at (127.0.0.1; verbs needs one)\n"
"  -A, --allow ADDRESS[/BITS]\n"
"                clients that may connect, or all; may be repeated. Needed with\n"
"                addresses other than loopback\n"
"  -P PORT       port to listen at (5640)\n"
"  -C SERVER     connect to a server that listens at HOST:PORT, or at a path\n"
"  -m BYTES      longest message, 4096 to 1048576 (1048576)\n"
"  -q REQUESTS   most requests of a client at a time, 2 to 512 (32)\n"
"  -c CLIENTS    most clients at a time, 1 to 1000 (16)\n"
"  -l CLIENTS    most clients of one address at a time (half of -c)\n"
"  -M MEBIBYTES  most memory of all clients; an address may have -l parts of -c\n"
"  -u USER       become this user: tcp when the port is open, verbs before\n"
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

void report(const char *fmt, ...)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static unsigned int lines, left_out;
	static time_t begin;
	char line[512];
	struct timespec now;
	va_list args;

	clock_gettime(CLOCK_MONOTONIC, &now);
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	pthread_mutex_lock(&lock);
	if (!lines || now.tv_sec >= begin + REPORTS_TIME) {
		if (left_out)
			complain("%u lines are left out", left_out);
		begin = now.tv_sec;
		lines = 0;
		left_out = 0;
	}
	if (lines == REPORTS) {
		left_out++;
	} else {
		lines++;
		complain("%s", line);
	}
	pthread_mutex_unlock(&lock);
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
	if (errno || *end || *text < '0' || *text > '9' || n < min || n > max)
		wrong("-%c needs a number from %u to %u, not '%s'", option, min,
		      max, text);
	return n;
}

static void allow(struct options *o, const char *text)
{
	if (!strcmp(text, "all")) {
		o->allow_all = true;
		return;
	}
	if (o->nr_allow == ALLOW_MAX)
		wrong("at most %d addresses can be allowed", ALLOW_MAX);
	if (!address_parse(text, &o->allow[o->nr_allow++]))
		wrong("--allow needs ADDRESS, ADDRESS/BITS or all, not '%s'",
		      text);
}

/* A loopback address is only reached from this machine. */
static void check_access(struct options *o)
{
	struct address a;

	if (address_parse(o->node, &a) && address_is_loopback(&a)) {
		o->allow_all |= !o->nr_allow;
		return;
	}
	if (o->allow_all)
		complain("warning: every client that reaches %s is served",
			 o->node);
	else if (!o->nr_allow)
		wrong("to listen at %s, --allow is needed", o->node);
}

/* Without -M, there is enough for all clients. */
static void check_memory(struct options *o, unsigned int mebibytes)
{
	uint64_t client = (2ULL * o->credits + LINK_BATCH) * o->msize;
	uint64_t least = client * o->clients;

	if (!o->per_address)
		o->per_address = (o->clients + 1) / 2;
	if (o->per_address > o->clients)
		wrong("-l is more than -c");
	o->memory = mebibytes ? (uint64_t)mebibytes << 20 : least;
	least = (least / o->per_address + MEBIBYTE - 1) / MEBIBYTE;
	if (mebibytes && mebibytes < least)
		wrong("with these -q, -m, -c and -l, -M must be at least %llu",
		      (unsigned long long)least);
}

static void parse(int argc, char **argv, struct options *o)
{
	static const struct option names[] = {
		{ "allow", required_argument, NULL, 'A' }, {}
	};
	unsigned int mebibytes = 0;
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "+:p:a:A:P:C:m:q:c:l:M:u:h", names,
				NULL)) >= 0) {
		switch (c) {
		case 'p':
			if (strcmp(optarg, "tcp") && strcmp(optarg, "verbs"))
				wrong("there is no provider '%s'", optarg);
			o->prov = optarg;
			break;
		case 'a':
			o->node = optarg;
			break;
		case 'A':
			allow(o, optarg);
			break;
		case 'P':
			o->port = htons(number(c, optarg, 1, 65535));
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
			o->clients = number(c, optarg, 1, CLIENTS_MAX);
			break;
		case 'l':
			o->per_address = number(c, optarg, 1, CLIENTS_MAX);
			break;
		case 'M':
			mebibytes = number(c, optarg, 1, 1 << 24);
			break;
		case 'u':
			o->user = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(EXIT_SUCCESS);
		case ':':
			wrong("-%c needs an argument", optopt);
		default:
			if (!optopt)
				wrong("there is no option %s", argv[optind - 1]);
			wrong("there is no option -%c", optopt);
		}
	}
	o->command = argv + optind;
	if (!*o->command && !o->connect)
		wrong("either a command or -C is needed");
	if (*o->command && o->connect)
		wrong("a command and -C exclude each other");
	if (!o->node && !strcmp(o->prov, "verbs"))
		wrong("-p verbs needs -a");
	if (!o->node)
		o->node = "127.0.0.1";
	check_memory(o, mebibytes);
	check_access(o);
}

/* Up to MORE of a resource, or as much of it as there is */
static void have(int resource, rlim_t more)
{
	struct rlimit now;

	if (getrlimit(resource, &now) || now.rlim_cur >= more)
		return;
	now.rlim_cur = more;
	if (now.rlim_max < more && geteuid())
		now.rlim_cur = now.rlim_max;
	else if (now.rlim_max < more)
		now.rlim_max = more;
	setrlimit(resource, &now);
}

/* Raise the limits of files, and of memory that a device uses. */
static void have_enough(const struct options *o)
{
	have(RLIMIT_NOFILE, FILES_MIN + FILES_CLIENT * o->clients);
	if (!strcmp(o->prov, "verbs"))
		have(RLIMIT_MEMLOCK, o->memory + MEBIBYTE * o->clients);
}

/* For ever: commands get no privileges from files, either. */
static bool become(const char *user)
{
	const struct passwd *pw;

	if (geteuid()) {
		complain("-u needs root");
		return false;
	}
	errno = 0;
	pw = getpwnam(user);
	if (!pw) {
		complain("user %s: %s", user,
			 errno ? strerror(errno) : "there is none");
		return false;
	}
	if (initgroups(user, pw->pw_gid) || setgid(pw->pw_gid) ||
	    setuid(pw->pw_uid) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
		complain("becoming user %s: %s", user, strerror(errno));
		return false;
	}
	return true;
}

/* Take one event; returns whether there may be others. */
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
		.prov = "tcp", .port = htons(5640), .msize = K9_MSIZE_MAX,
		.credits = 32, .clients = 16,
	};
	struct sigaction action = { .sa_handler = stop };
	struct listener l = {};
	char port[6];
	bool tcp, well;

	parse(argc, argv, &o);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);

	have_enough(&o);
	snprintf(port, sizeof(port), "%u", ntohs(o.port));
	/* the kernel refuses files of devices that another user has opened */
	tcp = !strcmp(o.prov, "tcp");
	well = (tcp || !o.user || become(o.user)) &&
	       !listener_open(&l, o.prov, o.node, port) &&
	       (!tcp || (waiting_open(&o) && (!o.user || become(o.user))));
	while (well && !__atomic_load_n(&stopped, __ATOMIC_RELAXED)) {
		well = event(&l, &o);
		clients_close();
		waiting_check(&o);
	}
	clients_end();
	listener_close(&l);
	return well ? EXIT_SUCCESS : EXIT_FAILURE;
}

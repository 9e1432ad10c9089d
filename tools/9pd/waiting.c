// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * TCP connections without a request.
 *
 * libfabric accepts each connection, shows none before its request has come, and waits for
 * that forever. This file finds such connections among the open files of this process: the
 * sockets at the listener's port that belong to no client. It resets a connection that
 * comes from a forbidden address, waits too long, or exceeds the limit; libfabric then
 * closes it. Devices show requests only, and have no such connections.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "9pd.h"

#define CHECK_EVERY	500	/* milliseconds */

/* Seconds: a machine that has gone is noticed after IDLE and COUNT times EVERY */
#define ALIVE_IDLE	30
#define ALIVE_EVERY	10
#define ALIVE_COUNT	6

struct waiting {
	struct peer	peer;
	int		fd;
	int64_t		since;		/* milliseconds */
	bool		seen;		/* in this check */
};

static DIR *files;
static int nothing = -1;	/* /dev/null */
static int held = -1;		/* a second descriptor of the examined file, or of /dev/null */
static int64_t now;
static unsigned int nr_waiting;
static struct waiting waiting[CLIENTS_MAX];

/* A duplicate, as libfabric may close FD at any time, and open another file. */
static bool hold(int fd)
{
	return dup3(fd, held, O_CLOEXEC) == held;
}

/* Returns the number of an open file that is held now, or -1 after the last one. */
static int hold_next(void)
{
	const struct dirent *d;
	int fd;

	while ((d = readdir(files))) {
		fd = atoi(d->d_name);
		if (*d->d_name != '.' && fd != held && fd != nothing && hold(fd))
			return fd;
	}
	rewinddir(files);
	hold(nothing);
	return -1;
}

static bool held_is_at(in_port_t port)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	struct peer local;

	return !getsockname(held, (struct sockaddr *)&addr, &len) &&
	       peer_of(&addr, len, &local) && local.port == port;
}

static bool held_peer(struct peer *p)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);

	return !getpeername(held, (struct sockaddr *)&addr, &len) &&
	       peer_of(&addr, len, p);
}

/* Resets the connection: libfabric might take EOF for a message that is not there yet. */
static void held_reset(void)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };

	connect(held, &none, sizeof(none));
}

static void forget(struct waiting *w)
{
	*w = waiting[--nr_waiting];
}

static void end(struct waiting *w, const char *why)
{
	char text[ADDRESS_TEXT];
	struct peer p;

	report("a connection of %s is closed: %s",
	       address_text(&w->peer.address, text), why);
	if (hold(w->fd) && held_peer(&p) && peer_equal(&p, &w->peer))
		held_reset();
	hold(nothing);
	forget(w);
}

static struct waiting *find(const struct peer *p)
{
	unsigned int i;

	for (i = 0; i < nr_waiting; i++) {
		if (peer_equal(&waiting[i].peer, p))
			return &waiting[i];
	}
	return NULL;
}

static unsigned int count_from(const struct address *a)
{
	unsigned int i, n = 0;

	for (i = 0; i < nr_waiting; i++)
		n += address_equal(&waiting[i].peer.address, a);
	return n;
}

/* The connection that waits longest, of one address or, with NULL, of all */
static struct waiting *oldest(const struct address *a)
{
	struct waiting *w = NULL;
	unsigned int i;

	for (i = 0; i < nr_waiting; i++) {
		if (a && !address_equal(&waiting[i].peer.address, a))
			continue;
		if (!w || waiting[i].since < w->since)
			w = &waiting[i];
	}
	return w;
}

/* The held connection may wait, or is reset. */
static void begin(const struct options *o, const struct peer *p, int fd)
{
	char text[ADDRESS_TEXT];

	if (!access_allowed(o, &p->address)) {
		report("a client is refused: %s is not allowed",
		       address_text(&p->address, text));
		held_reset();
		return;
	}
	/* the new one may be about to send its request */
	if (count_from(&p->address) == o->per_address)
		end(oldest(&p->address), "too many of its address wait");
	else if (nr_waiting == o->clients)
		end(oldest(NULL), "too many wait");
	waiting[nr_waiting++] = (struct waiting){ *p, fd, now, true };
}

/**
 * waiting_open - find the listener, and have dead machines noticed
 * @o: the options
 *
 * Return: whether it was found; why not has been reported.
 */
bool waiting_open(const struct options *o)
{
	static const struct {
		int level, name, value;
	} alive[] = {
		{ IPPROTO_TCP, TCP_KEEPIDLE, ALIVE_IDLE },
		{ IPPROTO_TCP, TCP_KEEPINTVL, ALIVE_EVERY },
		{ IPPROTO_TCP, TCP_KEEPCNT, ALIVE_COUNT },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT,
		  1000 * (ALIVE_IDLE + ALIVE_COUNT * ALIVE_EVERY) },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
	};
	bool found = false;
	size_t i;

	files = opendir("/proc/self/fd");
	nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	held = fcntl(nothing, F_DUPFD_CLOEXEC, 0);
	if (!files || held < 0) {
		complain("/proc/self/fd and /dev/null: %s", strerror(errno));
		return false;
	}
	while (hold_next() >= 0) {
		if (!held_is_at(o->port))
			continue;
		found = true;
		/* connections have the options of the socket that listens */
		for (i = 0; i < sizeof(alive) / sizeof(*alive); i++)
			setsockopt(held, alive[i].level, alive[i].name,
				   &alive[i].value, sizeof(alive[i].value));
	}
	if (!found)
		complain("the socket at port %u is not found", ntohs(o->port));
	return found;
}

/**
 * waiting_check - check the waiting connections, at most once per CHECK_EVERY
 * @o: the options
 */
void waiting_check(const struct options *o)
{
	struct timespec t;
	struct waiting *w;
	struct peer p;
	unsigned int i;
	int fd;

	clock_gettime(CLOCK_MONOTONIC, &t);
	if (!files || t.tv_sec * 1000LL + t.tv_nsec / 1000000 < now + CHECK_EVERY)
		return;
	now = t.tv_sec * 1000LL + t.tv_nsec / 1000000;
	for (i = 0; i < nr_waiting; i++)
		waiting[i].seen = false;
	while ((fd = hold_next()) >= 0) {
		if (!held_is_at(o->port) || !held_peer(&p) || clients_have(&p))
			continue;
		w = find(&p);
		if (w)
			w->seen = true;
		else
			begin(o, &p, fd);
	}
	for (i = nr_waiting; i--;) {
		if (!waiting[i].seen)
			forget(&waiting[i]);
		else if (now - waiting[i].since > 1000 * LINK_FIRST)
			end(&waiting[i], "no request has come in time");
	}
}

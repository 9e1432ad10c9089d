// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The connection between the tools of two machines (perf.h). The peer may be
 * anything that connects. So each wait for it has a limit, except for the first client of a
 * server. A line that is too long or has other bytes than text closes the connection.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kofi.h"
#include "perf.h"

atomic_bool perf_interrupted;

static void caught(int sig)
{
	(void)sig;
	perf_interrupted = true;
}

void perf_catch_signals(void)
{
	/* without SA_RESTART: a call that waits returns */
	struct sigaction action = { .sa_handler = caught };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static int ctl_fail(struct ctl *ctl, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int ctl_fail(struct ctl *ctl, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(ctl->why, sizeof(ctl->why), fmt, args);
	va_end(args);
	return err;
}

static int ctl_errno(struct ctl *ctl, const char *what)
{
	int err = errno;

	if (perf_interrupted)
		return ctl_fail(ctl, -EINTR, "interrupted");
	return ctl_fail(ctl, -err, "%s: %s", what, strerror(err));
}

/* The addresses of a host, or those to listen at; NULL after a reason in @ctl */
static struct addrinfo *ctl_resolve(struct ctl *ctl, const char *host,
				    uint16_t port, int family)
{
	const struct addrinfo hints = {
		.ai_family = family,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = host ? 0 : AI_PASSIVE,
	};
	struct addrinfo *list;
	char service[8];
	int ret;

	snprintf(service, sizeof(service), "%u", port);
	ret = getaddrinfo(host, service, &hints, &list);
	if (!ret)
		return list;
	ctl_fail(ctl, -EINVAL, "%s: %s", host ?: "any address",
		 gai_strerror(ret));
	return NULL;
}

/* Probes of an idle connection find a machine that has vanished. */
static void ctl_tune(int fd)
{
	const int on = 1, idle = 10, interval = 5, count = 4;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

int ctl_listen(struct ctl *ctl, const char *source, uint16_t port, bool ipv6)
{
	struct addrinfo *list;
	const int on = 1;
	int fd, ret = 0;

	ctl->fd = -1;
	list = ctl_resolve(ctl, source, port, source ? AF_UNSPEC :
					      ipv6 ? AF_INET6 : AF_INET);
	if (!list)
		return -EINVAL;
	fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, list->ai_addr, list->ai_addrlen) ||
	    listen(fd, 1))
		ret = ctl_errno(ctl, "listening");
	freeaddrinfo(list);
	if (!ret) {
		ctl->fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (ctl->fd < 0)
			ret = ctl_errno(ctl, "waiting for a client");
		else
			ctl_tune(ctl->fd);
	}
	if (fd >= 0)
		close(fd);
	return ret;
}

static int ctl_connect_to(struct ctl *ctl, const struct addrinfo *to,
			  const char *source, unsigned int timeout)
{
	const struct timeval tv = { .tv_sec = timeout / 1000 };
	struct addrinfo *from;
	int ret = 0;

	ctl->fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (ctl->fd < 0)
		return ctl_errno(ctl, "connecting");
	if (source) {
		from = ctl_resolve(ctl, source, 0, to->ai_family);
		if (!from)
			return -EINVAL;
		ret = bind(ctl->fd, from->ai_addr, from->ai_addrlen);
		freeaddrinfo(from);
		if (ret)
			return ctl_errno(ctl, source);
	}
	setsockopt(ctl->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	if (!connect(ctl->fd, to->ai_addr, to->ai_addrlen))
		return 0;
	if (errno == EINPROGRESS)
		errno = ETIMEDOUT;
	return ctl_errno(ctl, "connecting");
}

int ctl_connect(struct ctl *ctl, const char *node, const char *source,
		uint16_t port, unsigned int timeout)
{
	struct addrinfo *list, *ai;
	int ret = -EINVAL;

	ctl->fd = -1;
	list = ctl_resolve(ctl, node, port, AF_UNSPEC);
	for (ai = list; ai && ret && !perf_interrupted; ai = ai->ai_next) {
		ctl_close(ctl);
		ret = ctl_connect_to(ctl, ai, source, timeout);
	}
	if (list)
		freeaddrinfo(list);
	if (!ret)
		ctl_tune(ctl->fd);
	return ret;
}

/* An IPv4 connection of an IPv6 socket is an IPv4 connection to the fabric. */
void ctl_name(const struct ctl *ctl, bool peer, struct sockaddr_storage *addr)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t len = sizeof(*addr);

	memset(addr, 0, sizeof(*addr));
	if (peer)
		getpeername(ctl->fd, (struct sockaddr *)addr, &len);
	else
		getsockname(ctl->fd, (struct sockaddr *)addr, &len);
	memcpy(&in6, addr, sizeof(in6));
	if (in6.sin6_family != AF_INET6 ||
	    !IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr))
		return;
	memset(addr, 0, sizeof(*addr));
	memcpy(&in.sin_addr, &in6.sin6_addr.s6_addr[12], sizeof(in.sin_addr));
	memcpy(addr, &in, sizeof(in));
}

int ctl_send(struct ctl *ctl, const char *fmt, ...)
{
	char line[CTL_LINE];
	size_t done = 0;
	va_list args;
	ssize_t n;
	int len;

	va_start(args, fmt);
	len = vsnprintf(line, sizeof(line) - 1, fmt, args);
	va_end(args);
	if (len < 0 || (size_t)len >= sizeof(line) - 1)
		return ctl_fail(ctl, -EMSGSIZE, "a line is too long");
	line[len++] = '\n';
	for (; done < (size_t)len; done += n) {
		n = send(ctl->fd, line + done, len - done, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR && !perf_interrupted)
			n = 0;
		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			return ctl_fail(ctl, -ECONNRESET, "the peer is gone");
		if (n < 0)
			return ctl_errno(ctl, "the peer");
	}
	return 0;
}

/* The first line that has come; 0: there is none yet */
static int ctl_take(struct ctl *ctl, char line[CTL_LINE])
{
	char *end = memchr(ctl->buf, '\n', ctl->used);
	size_t len = end ? (size_t)(end - ctl->buf) : ctl->used, i;

	for (i = 0; i < len; i++)
		if (ctl->buf[i] < ' ' || ctl->buf[i] > '~')
			return ctl_fail(ctl, -EPROTO,
					"the peer is no kofi bw, lat or check: it sends no text");
	if (!end && ctl->used == sizeof(ctl->buf))
		return ctl_fail(ctl, -EPROTO,
				"the peer is no kofi bw, lat or check: it sends a line of more than %d bytes",
				CTL_LINE);
	if (!end)
		return 0;
	memcpy(line, ctl->buf, len);
	line[len] = 0;
	ctl->used -= len + 1;
	memmove(ctl->buf, end + 1, ctl->used);
	if (strncmp(line, "error ", 6))
		return 1;
	return ctl_fail(ctl, -EREMOTEIO, "the peer says: %.200s", line + 6);
}

int ctl_line(struct ctl *ctl, char line[CTL_LINE], int timeout)
{
	struct pollfd pfd = { .fd = ctl->fd, .events = POLLIN };
	uint64_t end = now_ns() + timeout * 1000000ULL, now;
	ssize_t n;
	int ret;

	for (;;) {
		if (perf_interrupted)
			return ctl_fail(ctl, -EINTR, "interrupted");
		ret = ctl_take(ctl, line);
		if (ret)
			return ret;
		now = now_ns();
		ret = poll(&pfd, 1, end > now ? (end - now) / 1000000 : 0);
		if (ret < 0 && errno != EINTR)
			return ctl_errno(ctl, "poll");
		if (!ret)
			return 0;
		if (ret < 0)
			continue;
		n = recv(ctl->fd, ctl->buf + ctl->used,
			 sizeof(ctl->buf) - ctl->used, MSG_DONTWAIT);
		if (n > 0)
			ctl->used += n;
		else if (!n || errno == ECONNRESET)
			return ctl_fail(ctl, -ECONNRESET, "the peer is gone");
		else if (errno != EAGAIN && errno != EINTR)
			return ctl_errno(ctl, "the peer");
	}
}

int ctl_expect(struct ctl *ctl, const char *verb, char line[CTL_LINE],
	       char **rest, unsigned int timeout)
{
	size_t len = strlen(verb);
	int ret;

	ret = ctl_line(ctl, line, timeout);
	if (!ret)
		return ctl_fail(ctl, -ETIMEDOUT,
				"the peer does not answer");
	if (ret < 0)
		return ret;
	if (strncmp(line, verb, len) || (line[len] && line[len] != ' '))
		return ctl_fail(ctl, -EPROTO,
				"the peer says \"%.80s\" instead of \"%s\"",
				line, verb);
	*rest = line[len] ? line + len + 1 : line + len;
	return 0;
}

int ctl_alive(struct ctl *ctl)
{
	char line[CTL_LINE];
	char bytes[6];
	ssize_t n;

	if (perf_interrupted)
		return ctl_fail(ctl, -EINTR, "interrupted");
	if (ctl->used)
		return 0;
	n = recv(ctl->fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return ctl_fail(ctl, -ECONNRESET, "the peer is gone");
	/* other lines have their time */
	if (n < 6 || memcmp(bytes, "error ", 6))
		return 0;
	n = ctl_line(ctl, line, PERF_SLICE);
	return n < 0 ? n : 0;
}

void ctl_close(struct ctl *ctl)
{
	if (ctl->fd >= 0)
		close(ctl->fd);
	ctl->fd = -1;
	ctl->used = 0;
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi-blk-relay: a host on the path of TCP that damages data.
 *
 *	kofi-blk-relay PORT TO BYTE
 *
 * It listens at PORT of 127.0.0.1, and forwards each connection to port TO. About once
 * a second it flips a bit in the middle of a run of BYTE, so in data alone: lengths and
 * keys of the protocols below stay right. TCP computes its checksum again, so no layer
 * notices. It says "damaged N to target|client" each time.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PAIRS	64
#define RUN	256		/* bytes of a run */
#define PAUSE	1.2		/* a connection that ends earlier makes the client pause */

static struct pair {
	int	fd[2];		/* of the client, of the target; -1: none */
	double	since;
} pairs[PAIRS];
static unsigned int nr_damaged;
static int wanted;

static void die(const char *what)
{
	fprintf(stderr, "kofi-blk-relay: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static struct sockaddr_in at(const char *port)
{
	return (struct sockaddr_in) {
		.sin_family = AF_INET, .sin_port = htons(atoi(port)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

static void hang_up(struct pair *p)
{
	close(p->fd[0]);
	close(p->fd[1]);
	p->fd[0] = -1;
}

static void take(int listener, const char *to)
{
	struct sockaddr_in sa = at(to);
	int fd = accept(listener, NULL, NULL), i;

	if (fd < 0)
		die("accept");
	for (i = 0; i < PAIRS && pairs[i].fd[0] >= 0; i++)
		;
	if (i == PAIRS) {
		close(fd);
		return;
	}
	pairs[i] = (struct pair) {
		.fd = { fd, socket(AF_INET, SOCK_STREAM, 0) }, .since = now(),
	};
	if (connect(pairs[i].fd[1], (const struct sockaddr *)&sa, sizeof(sa)))
		hang_up(&pairs[i]);
}

/* Flip a bit of a run, if there is one. */
static bool damage(unsigned char *bytes, ssize_t len)
{
	ssize_t i, run = 0;

	for (i = 0; i < len; i++) {
		run = bytes[i] == wanted ? run + 1 : 0;
		if (run == RUN) {
			bytes[i - RUN / 2] ^= 1 << nr_damaged % 8;
			return true;
		}
	}
	return false;
}

/* Side 0 is the client. */
static void forward(struct pair *p, int side)
{
	static unsigned char bytes[65536];
	ssize_t len = read(p->fd[side], bytes, sizeof(bytes)), done = 0, n;

	if (len <= 0) {
		hang_up(p);
		return;
	}
	if (now() - p->since > PAUSE && damage(bytes, len)) {
		printf("damaged %u to %s\n", ++nr_damaged, side ? "client" : "target");
		fflush(stdout);
		p->since = now();
	}
	for (; done < len; done += n) {
		n = write(p->fd[!side], bytes + done, len - done);
		if (n <= 0) {
			hang_up(p);
			return;
		}
	}
}

int main(int argc, char **argv)
{
	struct pollfd fds[1 + 2 * PAIRS];
	struct sockaddr_in sa;
	int listener, i, on = 1;

	if (argc != 4) {
		fprintf(stderr, "usage: kofi-blk-relay PORT TO BYTE\n");
		return 1;
	}
	wanted = strtoul(argv[3], NULL, 0);
	signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < PAIRS; i++)
		pairs[i].fd[0] = -1;
	listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	sa = at(argv[1]);
	if (bind(listener, (const struct sockaddr *)&sa, sizeof(sa)) ||
	    listen(listener, PAIRS))
		die("cannot listen");
	for (;;) {
		fds[0] = (struct pollfd) { .fd = listener, .events = POLLIN };
		for (i = 0; i < 2 * PAIRS; i++)
			fds[1 + i] = (struct pollfd) {
				.fd = pairs[i / 2].fd[0] < 0 ? -1 : pairs[i / 2].fd[i % 2],
				.events = POLLIN,
			};
		if (poll(fds, 1 + 2 * PAIRS, -1) < 0)
			die("poll");
		for (i = 0; i < 2 * PAIRS; i++)
			if (fds[1 + i].revents && pairs[i / 2].fd[0] >= 0)
				forward(&pairs[i / 2], i % 2);
		if (fds[0].revents)
			take(listener, argv[2]);
	}
}

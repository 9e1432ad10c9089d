// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A client, and the 9P server that serves it.
 *
 * Two threads pass messages on, one for each direction. The thread for requests starts
 * the server before it accepts the connection. When either thread stops, it terminates
 * the other thread and the server, which may take long. Then the main thread closes the
 * connection. It also takes the events of all connections, so that no event can be about
 * a connection that is being closed.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "9pd.h"

#define HEADER		7	/* each message's size, type and tag */
#define AHEAD		32768	/* most bytes read behind a reply, of the next ones */
#define WRITE_TICK	10	/* milliseconds between checks of the connection */
#define CONNECT_MAX	10	/* seconds until a server counts as not reachable */
#define END_MAX		2000	/* milliseconds until a server counts as stuck */

struct client {
	struct client	*next;
	const struct options *options;
	struct link	*link;
	struct peer	peer;
	uint64_t	bytes;		/* bytes of all its messages */
	int		fd;		/* the server's */
	pid_t		pid;		/* or 0, or -1 if there is none */
	pthread_t	requests;
	pthread_t	replies;
	bool		over;		/* its threads have returned */
};

/* owned by the main thread: clients with a connection, and clients with a stuck server */
static struct client *clients;
static struct client *leftover;

static uint32_t size_of(const unsigned char *message)
{
	return message[0] | message[1] << 8 | message[2] << 16 |
	       (uint32_t)message[3] << 24;
}

/* -------------------------------------------------------------- the server */

/* Returns its process, or -1. */
static pid_t server_start(char **command, int *fd)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, term;
	int fds[2], err;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds)) {
		report("socketpair: %s", strerror(errno));
		return -1;
	}
	sigemptyset(&none);
	sigemptyset(&term);
	sigaddset(&term, SIGPIPE);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, fds[1], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, fds[1], STDOUT_FILENO);
	/* nothing that libfabric has open, for other clients */
	posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK |
					POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &term);
	/* not fork(): memory that a device uses must stay where it is */
	err = posix_spawnp(&pid, command[0], &files, &attr, command, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	close(fds[1]);
	if (err) {
		report("%s: %s", command[0], strerror(err));
		close(fds[0]);
		return -1;
	}
	*fd = fds[0];
	return pid;
}

/* Returns a socket, or -1. */
static int connect_to(const struct sockaddr *to, socklen_t len)
{
	const struct timeval max = { .tv_sec = CONNECT_MAX };
	int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -1;
	/* also limits connect(), which then says EINPROGRESS or EAGAIN */
	if (!setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &max, sizeof(max)) &&
	    !connect(fd, to, len))
		return fd;
	err = errno;
	close(fd);
	errno = err == EINPROGRESS || err == EAGAIN ? ETIMEDOUT : err;
	return -1;
}

static int connect_path(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(to.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(to.sun_path, path, strlen(path) + 1);
	return connect_to((struct sockaddr *)&to, sizeof(to));
}

static int connect_host(const char *where)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	const char *port = strrchr(where, ':');
	size_t len = port - where;
	struct addrinfo *all, *i;
	char *host;
	int fd = -1;

	if (*where == '[' && port[-1] == ']') {
		where++;
		len -= 2;
	}
	host = strndup(where, len);
	if (!host)
		return -1;
	errno = EADDRNOTAVAIL;
	if (getaddrinfo(host, port + 1, &hints, &all))
		all = NULL;
	free(host);
	for (i = all; i && fd < 0; i = i->ai_next)
		fd = connect_to(i->ai_addr, i->ai_addrlen);
	if (all)
		freeaddrinfo(all);
	return fd;
}

/* Returns whether there is a server. */
static bool server_open(struct client *c)
{
	const struct options *o = c->options;

	if (!o->connect) {
		c->pid = server_start(o->command, &c->fd);
		return c->pid > 0;
	}
	c->fd = strchr(o->connect, '/') ? connect_path(o->connect) :
					  connect_host(o->connect);
	if (c->fd < 0)
		report("%s: %s", o->connect, strerror(errno));
	return c->fd >= 0;
}

/* Signals and reaps the server's process; returns whether it has exited in time. */
static bool server_ended(pid_t pid, int sig)
{
	int fd = syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };

	kill(pid, sig);
	if (fd >= 0) {
		poll(&p, 1, END_MAX);
		close(fd);
	}
	return waitpid(pid, NULL, WNOHANG) == pid;
}

/* If the server waits for a device and does not exit, the main thread reaps it later. */
static void server_close(struct client *c)
{
	close(c->fd);
	if (!c->pid)
		return;
	if (server_ended(c->pid, SIGTERM) || server_ended(c->pid, SIGKILL))
		c->pid = 0;
	else
		complain("process %d does not end", (int)c->pid);
}

/*
 * Writes several messages at a time. Keeps reading from the client while it waits, as the
 * server may wait for that.
 */
static bool server_write(struct client *c, struct slot **slots, int nr)
{
	struct iovec iov[LINK_BATCH];
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = nr };
	struct pollfd p = { .fd = c->fd, .events = POLLOUT };
	ssize_t n;
	int i;

	for (i = 0; i < nr; i++) {
		iov[i].iov_base = slots[i]->bytes;
		iov[i].iov_len = slots[i]->len;
	}
	while (msg.msg_iovlen) {
		n = sendmsg(c->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN) {
			poll(&p, 1, WRITE_TICK);
			if (link_progress(c->link))
				return false;
		} else if (n < 0 && errno != EINTR) {
			return false;
		}
		while (n > 0 && msg.msg_iovlen) {
			size_t part = msg.msg_iov->iov_len;

			if ((size_t)n < part)
				part = n;
			msg.msg_iov->iov_base += part;
			msg.msg_iov->iov_len -= part;
			n -= part;
			if (!msg.msg_iov->iov_len) {
				msg.msg_iov++;
				msg.msg_iovlen--;
			}
		}
	}
	return true;
}

/* Returns as read(). */
static ssize_t server_read(struct client *c, unsigned char *bytes, size_t len)
{
	ssize_t n;

	do {
		n = read(c->fd, bytes, len);
	} while (n < 0 && errno == EINTR);
	return n;
}

/* -------------------------------------------------------------- the threads */

/*
 * Bytes of the whole replies among the HAVE ones at BYTES, from the first one on. If that
 * is not whole, 0, and NEED says how many it takes, as far as is known. -1 after a server
 * has said something else.
 */
static ssize_t whole_replies(const struct client *c, const unsigned char *bytes,
			     size_t have, size_t *need)
{
	uint32_t size = sizeof(size);
	size_t at = 0;

	while (have - at >= sizeof(size)) {
		size = size_of(bytes + at);
		if (size < HEADER || size > c->link->msize) {
			/* send the replies before it first */
			if (at)
				break;
			report("the server sent a message of %u bytes", size);
			return -1;
		}
		if (have - at < size)
			break;
		at += size;
	}
	*need = size;
	return at;
}

/*
 * Each message has as many replies as the server has sent so far. The beginning of an
 * incomplete reply moves to the next message.
 */
static void *replies(void *arg)
{
	struct client *c = arg;
	struct slot *slot = link_slot(c->link);
	size_t have = 0, need, room;
	ssize_t n;

	while (slot) {
		unsigned char *bytes = slot->bytes;

		n = whole_replies(c, bytes, have, &need);
		if (!n) {
			room = need + AHEAD < c->link->msize ? need + AHEAD :
							       c->link->msize;
			n = server_read(c, bytes + have, room - have);
			if (n <= 0)
				break;
			have += n;
			continue;
		}
		if (n < 0 || link_send(c->link, slot, n))
			break;
		have -= n;
		slot = link_slot(c->link);
		/* only this thread writes to it, also after the send */
		if (slot)
			memmove(slot->bytes, bytes + n, have);
	}
	link_down(c->link);
	return NULL;
}

static void requests(struct client *c)
{
	struct slot *slots[LINK_BATCH];
	char text[ADDRESS_TEXT];
	int nr, i;

	while ((nr = link_recv(c->link, slots)) > 0) {
		for (i = 0; i < nr; i++) {
			if (slots[i]->len < HEADER ||
			    size_of(slots[i]->bytes) != slots[i]->len) {
				report("a client sent something that is not 9P");
				return;
			}
		}
		if (!server_write(c, slots, nr))
			return;
		for (i = 0; i < nr; i++) {
			if (link_release(c->link, slots[i]))
				return;
		}
	}
	if (nr == -ETIMEDOUT)
		report("a client is closed: %s has sent no request for %d s",
		       address_text(&c->peer.address, text), LINK_FIRST);
}

/* Serve a client that has a server. */
static void client_serve(struct client *c)
{
	int err;

	if (link_accept(c->link))
		return;
	err = pthread_create(&c->replies, NULL, replies, c);
	if (err) {
		report("a thread: %s", strerror(err));
		return;
	}
	requests(c);
	link_down(c->link);
	/* the other thread may wait for the server */
	shutdown(c->fd, SHUT_RDWR);
	pthread_join(c->replies, NULL);
}

static void *client_run(void *arg)
{
	struct client *c = arg;

	if (server_open(c)) {
		client_serve(c);
		server_close(c);
	}
	__atomic_store_n(&c->over, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Signals are the main thread's. */
static int client_start(struct client *c)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&c->requests, NULL, client_run, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

/* ------------------------------------------------------------- of main.c */

/* Connections and memory of the clients in list C from one address */
static void add_share(const struct client *c, const struct address *from,
		      unsigned int *nr, uint64_t *bytes)
{
	for (; c; c = c->next) {
		if (!from || address_equal(&c->peer.address, from)) {
			*nr += 1;
			*bytes += c->bytes;
		}
	}
}

/*
 * Bytes that another client of FROM, or of any address if that is NULL, may take; 0 if
 * there may be none.
 */
static uint64_t room_for(const struct options *o, const struct address *from)
{
	unsigned int most = from ? o->per_address : o->clients, nr = 0;
	uint64_t room = o->memory / o->clients * most, bytes = 0;

	add_share(clients, from, &nr, &bytes);
	add_share(leftover, from, &nr, &bytes);
	return nr < most && bytes < room ? room - bytes : 0;
}

/* Before memory is taken for a client. Returns how much there is for it. */
static uint64_t client_room(const struct options *o, const struct peer *p)
{
	uint64_t all = room_for(o, NULL), own = room_for(o, &p->address);
	char text[ADDRESS_TEXT];

	address_text(&p->address, text);
	if (!access_allowed(o, &p->address))
		report("a client is refused: %s is not allowed", text);
	else if (!all)
		report("a client is refused: there are enough");
	else if (!own)
		report("a client is refused: %s has enough", text);
	else
		return all < own ? all : own;
	return 0;
}

/**
 * client_begin - serve a request for a connection
 * @l: the listener
 * @o: options
 * @info: fi_info of the request, freed when the connection is closed
 * @data: private data of the request
 * @len: bytes of @data
 */
void client_begin(struct listener *l, const struct options *o,
		  struct fi_info *info, const void *data, size_t len)
{
	struct client *c = NULL;
	uint64_t room = 0;
	struct peer p;
	int err;

	if (peer_of(info->dest_addr, info->dest_addrlen, &p))
		room = client_room(o, &p);
	else
		report("a client is refused: it has no address");
	if (room)
		c = calloc(1, sizeof(*c));
	if (!c) {
		link_refuse(l, info);
		return;
	}
	c->options = o;
	c->peer = p;
	c->link = link_open(l, info, data, len, o->credits, o->msize, room);
	if (!c->link)
		goto free;
	c->bytes = link_bytes(c->link);
	err = client_start(c);
	if (err) {
		report("a client is refused: %s", strerror(err));
		goto close;
	}
	c->next = clients;
	clients = c;
	return;

close:
	link_close(c->link);
free:
	free(c);
}

/**
 * clients_have - whether a connection belongs to a client
 * @p: peer of the connection
 */
bool clients_have(const struct peer *p)
{
	const struct client *c;

	for (c = clients; c; c = c->next) {
		if (peer_equal(&c->peer, p))
			return true;
	}
	return false;
}

/**
 * client_down - stop the threads of a connection that has been closed
 * @ep: endpoint of the connection, which may have been closed already
 */
void client_down(const struct fid *ep)
{
	struct client *c;

	for (c = clients; c; c = c->next) {
		if (&c->link->ep->fid == ep)
			link_down(c->link);
	}
}

static void client_close(struct client **at)
{
	struct client *c = *at;

	*at = c->next;
	pthread_join(c->requests, NULL);
	link_close(c->link);
	/* a client counts until its server process has exited */
	if (c->pid <= 0) {
		free(c);
		return;
	}
	c->bytes = 0;
	c->next = leftover;
	leftover = c;
}

/* Processes that have ended after all */
static void leftover_reap(void)
{
	struct client **at = &leftover;

	while (*at) {
		struct client *c = *at;

		if (waitpid(c->pid, NULL, WNOHANG)) {
			*at = c->next;
			free(c);
		} else {
			at = &c->next;
		}
	}
}

/**
 * clients_close - close the connections of finished threads
 */
void clients_close(void)
{
	struct client **at = &clients;

	while (*at) {
		if (__atomic_load_n(&(*at)->over, __ATOMIC_ACQUIRE))
			client_close(at);
		else
			at = &(*at)->next;
	}
	leftover_reap();
}

/**
 * clients_end - stop all threads, and close their connections
 */
void clients_end(void)
{
	struct client *c;

	for (c = clients; c; c = c->next)
		link_down(c->link);
	while (clients)
		client_close(&clients);
}

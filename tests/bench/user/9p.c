// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi-bench-9p: uses a mounted folder, and says how long that took; and a relay
 * between mounts over plain TCP and a 9P server, so that these have as many
 * processes on their way as those behind kofi-9pd.
 *
 *   kofi-bench-9p run DIR KIND WINDOW SIZE WARMUP COUNT
 *	prints nanoseconds of COUNT operations, after WARMUP others, WINDOW of
 *	them at a time, each by a thread of its own
 *   kofi-bench-9p relay PORT COMMAND...
 *	listens at that port of 127.0.0.1, and starts COMMAND for each client with
 *	a socket as its standard input
 *
 * The relay takes what has come, without a look at what it is: nothing that passes
 * messages on can do with less.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FILES_LEN	(4U << 20)	/* of the files of all threads together */
#define WINDOW_MAX	64
#define RELAY_LEN	(256U << 10)

/* A thread of a run */
struct worker {
	pthread_t	thread;
	char		path[256];
	int		fd;
	unsigned char	*bytes;
	unsigned char	*expected;	/* what a read has to bring */
};

struct kind {
	const char	*name;
	void		(*one)(struct worker *w, unsigned int n);
	bool		data;		/* the file has to be there */
	int		flags;
};

static const struct kind *kind;
static unsigned int window, warmup, count;
static size_t size, length;
static pthread_barrier_t barrier;
static uint64_t started, ended;

__attribute__((format(printf, 1, 2), noreturn))
static void fail(const char *what, ...)
{
	int err = errno;
	va_list args;

	va_start(args, what);
	fprintf(stderr, "kofi-bench-9p: ");
	vfprintf(stderr, what, args);
	fprintf(stderr, ": %s\n", strerror(err));
	va_end(args);
	exit(1);
}

/* --------------------------------------------------------------------- runs */

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static off_t offset(unsigned int n)
{
	return (off_t)n * size % length;
}

static void one_read(struct worker *w, unsigned int n)
{
	if (pread(w->fd, w->bytes, size, offset(n)) != (ssize_t)size)
		fail("reading %s", w->path);
}

static void one_write(struct worker *w, unsigned int n)
{
	if (pwrite(w->fd, w->bytes, size, offset(n)) != (ssize_t)size)
		fail("writing %s", w->path);
}

static void one_stat(struct worker *w, unsigned int n)
{
	struct stat st;

	(void)n;
	if (stat(w->path, &st))
		fail("%s", w->path);
}

static void one_create(struct worker *w, unsigned int n)
{
	int fd = open(w->path, O_CREAT | O_EXCL | O_WRONLY, 0600);

	(void)n;
	if (fd < 0 || close(fd) || unlink(w->path))
		fail("creating %s", w->path);
}

static const struct kind kinds[] = {
	{ "read", one_read, true, O_RDONLY | O_DIRECT },
	{ "write", one_write, true, O_WRONLY | O_DIRECT },
	{ "stat", one_stat, true, O_RDONLY },
	{ "create", one_create, false, 0 },
};

/* A file that is long enough, with what all of them have */
static void prepare(struct worker *w, const char *dir, unsigned int i)
{
	struct stat st;
	size_t at;
	int fd;

	snprintf(w->path, sizeof(w->path), "%s/%s-%u-%zu-%u", dir,
		 kind->data ? "file" : "new", window, size, i);
	if (posix_memalign((void **)&w->bytes, 4096, size + 1))
		fail("memory");
	w->expected = malloc(size + 1);
	if (!w->expected)
		fail("memory");
	for (at = 0; at < size; at++)
		w->expected[at] = at * 7 + at / 4096;
	memcpy(w->bytes, w->expected, size);
	w->fd = -1;
	if (!kind->data)
		return;
	if (stat(w->path, &st) || st.st_size != (off_t)length) {
		fd = open(w->path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
		for (at = 0; fd >= 0 && at < length; at += size) {
			if (write(fd, w->bytes, size) != (ssize_t)size)
				fail("making %s", w->path);
		}
		if (fd < 0 || close(fd))
			fail("making %s", w->path);
	}
	w->fd = open(w->path, kind->flags);
	if (w->fd < 0)
		fail("%s", w->path);
}

/* What has been read last, or is in the file now */
static void compare(struct worker *w)
{
	int fd;

	if (!kind->data || kind->one == one_stat)
		return;
	if (kind->one == one_write) {
		memset(w->bytes, 0, size);
		fd = open(w->path, O_RDONLY | O_DIRECT);
		if (fd < 0 || pread(fd, w->bytes, size, 0) != (ssize_t)size ||
		    close(fd))
			fail("reading %s", w->path);
	}
	errno = EIO;
	if (memcmp(w->bytes, w->expected, size))
		fail("%s has other bytes", w->path);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	unsigned int n;

	for (n = 0; n < warmup / window; n++)
		kind->one(w, n);
	/* what is compared in the end is what the measured ones have brought */
	if (kind->one == one_read)
		memset(w->bytes, 0, size);
	if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
		started = now();
	pthread_barrier_wait(&barrier);
	for (n = 0; n < count / window; n++)
		kind->one(w, n);
	if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
		ended = now();
	return NULL;
}

static int run(const char *dir)
{
	struct worker workers[WINDOW_MAX] = {};
	unsigned int i;

	length = size ? FILES_LEN / window / size * size : 0;
	pthread_barrier_init(&barrier, NULL, window);
	for (i = 0; i < window; i++)
		prepare(&workers[i], dir, i);
	for (i = 0; i < window; i++) {
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			fail("a thread");
	}
	for (i = 0; i < window; i++)
		pthread_join(workers[i].thread, NULL);
	for (i = 0; i < window; i++)
		compare(&workers[i]);
	printf("%llu\n", (unsigned long long)(ended - started));
	return 0;
}

static bool parse(char **words)
{
	unsigned int i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strcmp(kinds[i].name, words[0]))
			kind = &kinds[i];
	}
	window = atoi(words[1]);
	size = atoi(words[2]);
	warmup = atoi(words[3]);
	count = atoi(words[4]);
	return kind && window && window <= WINDOW_MAX && count >= window &&
	       size <= FILES_LEN / window;
}

/* -------------------------------------------------------------------- relay */

struct pump {
	int	from;
	int	to;
};

static void *pump(void *arg)
{
	struct pump *p = arg;
	char *bytes = malloc(RELAY_LEN), *at;
	ssize_t n, sent;

	while (bytes && (n = recv(p->from, bytes, RELAY_LEN, 0)) > 0) {
		for (at = bytes; n; at += sent, n -= sent) {
			sent = send(p->to, at, n, MSG_NOSIGNAL);
			if (sent < 0)
				goto end;
		}
	}
end:
	/* the other direction ends with this one */
	shutdown(p->from, SHUT_RDWR);
	shutdown(p->to, SHUT_RDWR);
	free(bytes);
	return NULL;
}

/* The sockets of a client stay open until the relay ends. */
static void serve(int client, char **command)
{
	posix_spawn_file_actions_t files;
	static const int on = 1;
	pthread_t thread;
	int fds[2], i;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		fail("socketpair");
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, fds[1], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, fds[1], STDOUT_FILENO);
	errno = posix_spawnp(&pid, command[0], &files, NULL, command, environ);
	if (errno)
		fail("%s", command[0]);
	posix_spawn_file_actions_destroy(&files);
	close(fds[1]);
	for (i = 0; i < 2; i++) {
		struct pump *p = malloc(sizeof(*p));

		if (!p)
			fail("memory");
		p->from = i ? fds[0] : client;
		p->to = i ? client : fds[0];
		if (pthread_create(&thread, NULL, pump, p))
			fail("a thread");
		pthread_detach(thread);
	}
}

static int relay(unsigned int port, char **command)
{
	const struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), client;

	/* the servers that have ended have no parent */
	signal(SIGCHLD, SIG_IGN);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) ||
	    listen(fd, 8))
		fail("port %u", port);
	while ((client = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		serve(client, command);
	fail("accept");
}

int main(int argc, char **argv)
{
	if (argc >= 4 && !strcmp(argv[1], "relay"))
		return relay(atoi(argv[2]), argv + 3);
	if (argc == 8 && !strcmp(argv[1], "run") && parse(argv + 3))
		return run(argv[2]);
	fprintf(stderr, "Usage: kofi-bench-9p run DIR KIND WINDOW SIZE WARMUP COUNT\n"
		"       kofi-bench-9p relay PORT COMMAND...\n"
		"KIND is read, write, stat or create.\n");
	return 2;
}

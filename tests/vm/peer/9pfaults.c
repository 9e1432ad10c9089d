// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi-9p-faults: mounts and uses a 9p file system while the kernel has no memory
 * for it: its fault injection fails allocations.
 *
 *   kofi-9p-faults files SOURCE DIR OPTIONS
 *	each of some calls for a file, the first allocation of the task failing, then
 *	the second one, until there are no more; fails if one of them ends the
 *	connection, which is for others, too
 *   kofi-9p-faults load DIR PERCENT HITS PID
 *	threads read and write, while so many of all allocations fail that the fault
 *	injection is not told to leave out, also those of completions, of the network
 *	and of the server, until HITS have. Then PID is killed, the server: all threads
 *	end with an error
 *
 * What fails has to fail with an error, and nothing may hang, which the caller looks
 * for.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEBUG		"/sys/kernel/debug/"
#define LEN		100000		/* of a file: two requests of diod's size */
#define THREADS		6
#define TIMES		1000000		/* faults there may be */
#define ERRNO_MAX	200
#define TICK		5000		/* microseconds between looks at a counter */
#define STACK		(256 << 10)	/* of a thread, as all of it is locked */

static char *bytes;			/* LEN of them */
static const char *dir;
static char path[256];

__attribute__((format(printf, 1, 2), noreturn))
static void fail(const char *what, ...)
{
	int err = errno;
	va_list args;

	va_start(args, what);
	fprintf(stderr, "kofi-9p-faults: ");
	vfprintf(stderr, what, args);
	fprintf(stderr, ": %s\n", strerror(err));
	va_end(args);
	exit(1);
}

static int open_or_fail(const char *name, int flags)
{
	int fd = open(name, flags);

	if (fd < 0)
		fail("%s", name);
	return fd;
}

static void set(int fd, unsigned int value)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u\n", value);

	if (write(fd, text, len) != len)
		fail("a file of the fault injection");
}

static unsigned int get(int fd)
{
	char text[16] = "";

	if (pread(fd, text, sizeof(text) - 1, 0) < 0)
		fail("a file of the fault injection");
	return atoi(text);
}

/* ------------------------------------------------ each allocation of a task */

static int nth;			/* the file that says which one fails */

/*
 * Call WHAT with its Nth allocation failing. Returns whether it had as many; ERR
 * is what it has come to.
 */
static bool with(unsigned int n, int (*what)(void), int *err)
{
	bool failed;

	set(nth, n);
	errno = 0;
	*err = what() < 0 ? errno : 0;
	failed = !get(nth);
	set(nth, 0);
	return failed;
}

static const char *source, *options;

static int do_mount(void)
{
	return mount(source, dir, "9p", 0, options);
}

static void mount_or_fail(void)
{
	if (do_mount())
		fail("mounting %s", dir);
}

static void unmount_or_fail(int flags)
{
	if (umount2(dir, flags))
		fail("unmounting %s", dir);
}

static int file = -1;

static int do_open(void)
{
	file = open(path, O_RDWR | O_CREAT, 0600);
	return file;
}

static int do_write(void)
{
	return pwrite(file, bytes, LEN, 0) == LEN ? 0 : -1;
}

static int do_fsync(void)
{
	return fsync(file);
}

static int do_read(void)
{
	static char back[LEN];

	posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	if (pread(file, back, LEN, 0) != LEN)
		return -1;
	if (!memcmp(back, bytes, LEN))
		return 0;
	errno = EILSEQ;
	return -1;
}

static int do_stat(void)
{
	struct stat st;

	return stat(path, &st);
}

static int do_statfs(void)
{
	struct statfs st;

	return statfs(dir, &st);
}

static int do_list(void)
{
	DIR *d = opendir(dir);
	int err;

	if (!d)
		return -1;
	errno = 0;
	while (readdir(d))
		;
	err = errno;
	closedir(d);
	errno = err;
	return err ? -1 : 0;
}

static int do_close(void)
{
	int err = close(file);

	file = -1;
	return err;
}

static int do_unlink(void)
{
	return unlink(path);
}

static const struct {
	const char	*name;
	int		(*call)(void);
} calls[] = {
	{ "open", do_open }, { "write", do_write }, { "fsync", do_fsync },
	{ "read", do_read }, { "stat", do_stat }, { "statfs", do_statfs },
	{ "readdir", do_list }, { "close", do_close }, { "unlink", do_unlink },
};

/* The file as a call expects it */
static void ready(int (*call)(void))
{
	if (call == do_open) {
		if (file >= 0)
			do_close();
		unlink(path);
		return;
	}
	if (file < 0 && do_open() < 0)
		fail("%s", path);
	if (call == do_unlink)
		do_close();
}

static int files(void)
{
	unsigned int i, n;
	int err;

	mount_or_fail();
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		unsigned int worked = 0;
		bool failed, again = false;

		for (n = 1; ; n++) {
			ready(calls[i].call);
			failed = with(n, calls[i].call, &err);
			/* a write that has failed is reported once more */
			if (!failed && (!err || again))
				break;
			again = !failed;
			worked += !err;
			errno = err;
			if (err && err != ENOMEM && err != EIO)
				fail("%s without allocation %u", calls[i].name,
				     n);
			if (do_statfs())
				fail("after %s without allocation %u",
				     calls[i].name, n);
		}
		if (err) {
			bool works = !do_statfs();

			errno = err;
			fail("%s with all %u allocations, %s", calls[i].name,
			     n - 1, works ? "the mount works" :
					    "the connection has ended");
		}
		printf("%-8s %3u allocations, without %u of them it works\n",
		       calls[i].name, n - 1, worked);
	}
	unmount_or_fail(0);
	return 0;
}

/* ------------------------------------------------------- any allocation at all */

static bool dead;		/* the server has been killed */
static unsigned int tally[ERRNO_MAX];

static void note(int err)
{
	if (err < ERRNO_MAX)
		__atomic_add_fetch(&tally[err], 1, __ATOMIC_RELAXED);
}

/* Of a mount that has lost its server */
static bool is_end(int err)
{
	return err == EIO || err == ECONNRESET || err == EPIPE ||
	       err == ENOTCONN;
}

/* Returns 0, or what has failed first; EILSEQ stands for other bytes. */
static int turn(unsigned int i, char *back, const char *mine)
{
	int fd = open(i % 2 ? path : mine, i % 2 ? O_RDONLY : O_RDWR | O_CREAT,
		      0600);
	int err = 0;

	if (fd < 0)
		return errno;
	if (i % 2) {
		ssize_t n;

		/* from the server, not from the page cache */
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		n = pread(fd, back, LEN, 0);
		if (n < 0)
			err = errno;
		else if (memcmp(back, bytes, n))
			err = EILSEQ;
	} else if (pwrite(fd, bytes, LEN, 0) < 0 || fsync(fd)) {
		err = errno;
	}
	if (close(fd) && !err)
		err = errno;
	if (!(i % 2) && unlink(mine) && !err)
		err = errno;
	return err;
}

static void *work(void *arg)
{
	unsigned int i = (size_t)arg;
	char *back = malloc(LEN), mine[300];
	int err = 0;

	snprintf(mine, sizeof(mine), "%s-%u", path, i);
	while (back && err != EILSEQ) {
		bool was = __atomic_load_n(&dead, __ATOMIC_ACQUIRE);

		err = turn(i, back, mine);
		note(err);
		if (was && is_end(err))
			break;
	}
	free(back);
	return NULL;
}

/*
 * How many allocations of a kind may still fail. Such a file can be read once, and
 * with faults on it can be neither opened nor read at any time.
 */
static unsigned int left_of(const char *name)
{
	char text[16] = "";
	ssize_t len;
	int fd;

	do {
		fd = open(name, O_RDONLY);
		len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
		if (fd >= 0)
			close(fd);
	} while (len < 0);
	return atoi(text);
}

static int rate[2] = { -1, -1 };	/* how often each kind fails */

static void no_faults(void)
{
	unsigned int k;

	for (k = 0; k < 2; k++) {
		while (write(rate[k], "0\n", 2) != 2)
			;
	}
}

/*
 * However the load ends, what runs after it has no faults: a process without work is
 * there to see to that. In the one it returns in there is no page left to fault in,
 * which would be an error of a call that is about something else.
 */
static void guarded(void)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		fail("a process");
	if (pid) {
		while (waitpid(pid, &status, 0) != pid)
			;
		no_faults();
		if (WIFSIGNALED(status))
			fprintf(stderr, "kofi-9p-faults: ended by signal %d\n",
				WTERMSIG(status));
		exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	mallopt(M_ARENA_MAX, 1);
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		fail("locking memory");
}

static int load(unsigned int percent, unsigned int hits, pid_t pid)
{
	static const char *const kinds[] = { "failslab", "fail_page_alloc" };
	int times, mine;
	pthread_t threads[THREADS];
	pthread_attr_t attr;
	unsigned int i, k, hit;
	char name[100], left[2][100];

	for (k = 0; k < 2; k++) {
		snprintf(left[k], sizeof(left[k]), DEBUG "%s/times", kinds[k]);
		times = open_or_fail(left[k], O_WRONLY);
		set(times, TIMES);
		close(times);
		snprintf(name, sizeof(name), DEBUG "%s/probability", kinds[k]);
		rate[k] = open_or_fail(name, O_WRONLY);
	}
	guarded();
	/* what is limited to some tasks is for all of this */
	mine = open_or_fail("/proc/self/make-it-fail", O_WRONLY);
	set(mine, 1);
	close(mine);
	file = open(path, O_RDWR | O_CREAT, 0600);
	if (file < 0 || do_write() || close(file))
		fail("%s", path);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	for (i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], &attr, work, (void *)(size_t)i))
			fail("a thread");
	}
	for (k = 0; k < 2; k++)
		set(rate[k], percent);
	do {
		usleep(TICK);
		hit = 2 * TIMES - left_of(left[0]) - left_of(left[1]);
	} while (hit < hits);
	kill(pid, SIGKILL);
	__atomic_store_n(&dead, true, __ATOMIC_RELEASE);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	no_faults();
	printf("%u allocations have failed, ", hit);
	for (i = 0; i < ERRNO_MAX; i++) {
		if (tally[i])
			printf("%u times: %s, ", tally[i],
			       i ? strerror(i) : "well");
	}
	printf("at the end: %s\n", do_statfs() ? strerror(errno) : "well");
	errno = EILSEQ;
	if (tally[EILSEQ])
		fail("reading");
	return 0;
}

int main(int argc, char **argv)
{
	unsigned int i;

	if (argc < 5)
		goto usage;
	bytes = malloc(LEN);
	for (i = 0; bytes && i < LEN; i++)
		bytes[i] = i * 7 + i / 4096;
	if (!bytes)
		fail("memory");
	if (!strcmp(argv[1], "load")) {
		dir = argv[2];
		snprintf(path, sizeof(path), "%s/faults", dir);
		return argc == 6 ? load(atoi(argv[3]), atoi(argv[4]),
					atoi(argv[5])) : 2;
	}
	source = argv[2];
	dir = argv[3];
	options = argv[4];
	snprintf(path, sizeof(path), "%s/faults", dir);
	nth = open_or_fail("/proc/thread-self/fail-nth", O_RDWR);
	if (!strcmp(argv[1], "files"))
		return files();
usage:
	fprintf(stderr, "Usage: kofi-9p-faults files SOURCE DIR OPTIONS\n"
		"       kofi-9p-faults load DIR PERCENT HITS PID\n");
	return 2;
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi-9p-peer: a 9P server for tests of kofi_9p.ko. It has one directory. A file
 * called "data" can be written and read, in messages of any length; what the
 * others do when they are read their names say. It also looks after mappings of
 * files, is a reader that is killed twice, and clients that say nothing.
 */
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/fi_cm.h>

#include "../../../clients/9p/proto.h"
#include "../../../tools/9pd/link.h"

#define DATA_MAX	(32U << 20)
#define FIDS		64
#define STUCK		16	/* reads that are not answered */
#define CREDITS		8
#define CROWD		64	/* connections at once */

enum {
	DATA, ROOT, EMPTY, SHORT, LONG, SIZE, TAG, TYPE, COUNT, MORE, TWICE,
	BEHIND, TAIL, BEYOND, WAITING, FLUSHES, ANSWER, TOGETHER, FULL, RFLUSH,
	STUCK_FILE, LATE, DEAF, HELD,
	NR_FILES,
};

static const char * const names[NR_FILES] = {
	[DATA] = "data",	/* what has been written */
	[ROOT] = "/",
	[EMPTY] = "empty",	/* a message of no bytes */
	[SHORT] = "short",	/* three bytes */
	[LONG] = "long",	/* more than was agreed on */
	[SIZE] = "size",	/* a size that is not the message's */
	[TAG] = "tag",		/* a reply to no request */
	[TYPE] = "type",	/* one to another kind of request */
	[COUNT] = "count",	/* a count that is not that of the data */
	[MORE] = "more",	/* more data than were asked for */
	[TWICE] = "twice",	/* two replies */
	[BEHIND] = "behind",	/* both in one message */
	[TAIL] = "tail",	/* three bytes behind a reply */
	[BEYOND] = "beyond",	/* behind a reply one that its message ends before */
	/* the sizes of these two say how many there are, of all connections */
	[WAITING] = "waiting",	/* reads that have not been answered */
	[FLUSHES] = "flushes",	/* Tflush that have not been */
	[STUCK_FILE] = "stuck",	/* no reply, Tflush is answered */
	[LATE] = "late",	/* a reply when Tflush has come, then Rflush */
	[DEAF] = "deaf",	/* neither a reply, nor one to Tflush */
	[HELD] = "held",	/* both, but only when these are read: */
	[ANSWER] = "answer",
	/* these are answered in one message with them: first, and last, with no data */
	[TOGETHER] = "together",
	[FULL] = "full",
	[RFLUSH] = "rflush",
};

enum {
	RLERROR = 7, TSTATFS, RSTATFS, TLOPEN = 12, TGETATTR = 24,
	TSETATTR = 26, TREADDIR = 40, TFSYNC = 50, TVERSION = 100,
	TATTACH = 104, TFLUSH = 108, TWALK = 110, TREAD = 116, TWRITE = 118,
	TCLUNK = 120,
};

/* A connection */
struct serve {
	struct serve	*next;
	struct link	*link;
	struct { uint32_t fid; int file; } fids[FIDS];	/* of file + 1 */
	struct { uint16_t tag; int file; uint32_t count; } stuck[STUCK];
	int		nr_stuck;
	uint16_t	flush;		/* the last Tflush of a HELD one */
	struct slot	*in, *out;
	unsigned char	*reply;		/* where it begins there */
	const unsigned char *at;	/* the next field of the request */
	unsigned char	*to;		/* the next one of the reply */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct serve *serves;
static unsigned char data[DATA_MAX];
static uint64_t sizes[NR_FILES];

void complain(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fprintf(stderr, "kofi-9p-peer: ");
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
}

void report(const char *fmt, ...) __attribute__((alias("complain")));

/* ------------------------------------------------------------------- fields */

static uint64_t get(struct serve *s, unsigned int bytes)
{
	uint64_t v = 0;

	/* kofi_9p.ko is not what would send too little */
	memcpy(&v, s->at, bytes);
	s->at += bytes;
	return le64toh(v);
}

static void put(struct serve *s, unsigned int bytes, uint64_t v)
{
	v = htole64(v);
	memcpy(s->to, &v, bytes);
	s->to += bytes;
}

static void put_text(struct serve *s, const char *text)
{
	put(s, 2, strlen(text));
	memcpy(s->to, text, strlen(text));
	s->to += strlen(text);
}

static void put_qid(struct serve *s, int file)
{
	put(s, 1, file == ROOT ? 0x80 : 0);
	put(s, 4, 0);
	put(s, 8, file + 1);
}

/* ---------------------------------------------------------------------- fids */

static int *fid_find(struct serve *s, uint32_t fid)
{
	int i;

	for (i = 0; i < FIDS; i++) {
		if (s->fids[i].file && s->fids[i].fid == fid)
			return &s->fids[i].file;
	}
	return NULL;
}

static void fid_set(struct serve *s, uint32_t fid, int file)
{
	int *known = fid_find(s, fid);
	int i;

	if (known) {
		*known = file + 1;
		return;
	}
	for (i = 0; s->fids[i].file; i++) {
		if (i == FIDS - 1) {
			complain("too many files are open");
			exit(1);
		}
	}
	s->fids[i].fid = fid;
	s->fids[i].file = file + 1;
}

/* ------------------------------------------------------------------ messages */

/* A reply, behind others if there are some in the message */
static void next(struct serve *s, unsigned int type, uint16_t tag)
{
	s->reply = s->to;
	s->to += 4;
	put(s, 1, type);
	put(s, 2, tag);
}

static void sized(struct serve *s)
{
	uint32_t le = htole32(s->to - s->reply);

	memcpy(s->reply, &le, sizeof(le));
}

static void begin(struct serve *s, unsigned int type, uint16_t tag)
{
	s->out = link_slot(s->link);
	if (!s->out)
		pthread_exit(NULL);
	s->to = s->out->bytes;
	next(s, type, tag);
}

static void end_with(struct serve *s, uint32_t size, uint32_t len)
{
	uint32_t le = htole32(size);

	memcpy(s->out->bytes, &le, sizeof(le));
	link_send(s->link, s->out, len);
}

static void end(struct serve *s)
{
	sized(s);
	link_send(s->link, s->out, s->to - s->out->bytes);
}

static void fail(struct serve *s, uint16_t tag, int err)
{
	begin(s, RLERROR, tag);
	put(s, 4, err);
	end(s);
}

static void tally(int file, int n)
{
	pthread_mutex_lock(&lock);
	sizes[file] += n;
	pthread_mutex_unlock(&lock);
}

static void do_walk(struct serve *s, uint16_t tag)
{
	int *from = fid_find(s, get(s, 4));
	uint32_t fid = get(s, 4);
	unsigned int nr = get(s, 2), len;
	int file;

	if (!from || nr > 1)
		return fail(s, tag, from ? ENOENT : EBADF);
	file = *from - 1;
	if (nr) {
		len = get(s, 2);
		for (file = NR_FILES - 1; file >= 0; file--) {
			if (strlen(names[file]) == len && file != ROOT &&
			    !memcmp(names[file], s->at, len))
				break;
		}
		if (file < 0)
			return fail(s, tag, ENOENT);
	}
	fid_set(s, fid, file);
	begin(s, TWALK + 1, tag);
	put(s, 2, nr);
	if (nr)
		put_qid(s, file);
	end(s);
}

static void do_getattr(struct serve *s, uint16_t tag, int file)
{
	uint64_t mask = get(s, 8);
	int i;

	begin(s, TGETATTR + 1, tag);
	put(s, 8, mask & 0x7ff);
	put_qid(s, file);
	put(s, 4, file == ROOT ? 040777 : 0100666);
	put(s, 4, 0);
	put(s, 4, 0);
	put(s, 8, 1);
	put(s, 8, 0);
	put(s, 8, file == DATA || file == WAITING || file == FLUSHES ?
		  sizes[file] : 65536);
	put(s, 8, 4096);
	put(s, 8, 128);
	for (i = 0; i < 10; i++)
		put(s, 8, 0);
	end(s);
}

static void do_readdir(struct serve *s, uint16_t tag)
{
	uint64_t at = get(s, 8);
	uint32_t room = get(s, 4);
	unsigned char *count;

	begin(s, TREADDIR + 1, tag);
	count = s->to;
	put(s, 4, 0);
	for (; at < NR_FILES; at++) {
		if (s->to - count - 4 + 24 + strlen(names[at]) > room)
			break;
		if (at == ROOT)
			continue;
		put_qid(s, at);
		put(s, 8, at + 1);
		put(s, 1, 8);
		put_text(s, names[at]);
	}
	room = htole32(s->to - count - 4);
	memcpy(count, &room, 4);
	end(s);
}

/* What is wrong is behind a reply that is not. */
static void wrong_behind(struct serve *s, uint16_t tag, int file)
{
	if (file == TWICE) {
		end(s);
		begin(s, TREAD + 1, tag);
	} else {
		sized(s);
		next(s, TREAD + 1, tag);
	}
	put(s, 4, 0);
	sized(s);
	if (file == TAIL)
		s->to = s->reply + 3;
	if (file == BEYOND)
		s->to--;
	link_send(s->link, s->out, s->to - s->out->bytes);
}

/* A reply that breaks a rule, or none at all */
static void do_read_wrong(struct serve *s, uint16_t tag, int file,
			  uint32_t count)
{
	uint32_t n = count / 2;

	do {
		begin(s, file == TYPE ? TWRITE + 1 : TREAD + 1,
		      file == TAG ? tag + 1000 : tag);
		/* behind the last room there is nothing to be sent */
	} while (file == LONG &&
		 s->out == &s->link->slots[2 * s->link->credits]);
	if (file == MORE)
		n = count + 1;
	put(s, 4, file == COUNT ? n - 1 : n);
	memset(s->to, file, n);
	s->to += n;
	if (file == EMPTY)
		end_with(s, 0, 0);
	else if (file == SHORT)
		end_with(s, 3, 3);
	else if (file == LONG)
		end_with(s, s->link->msize + 1, s->link->msize + 1);
	else if (file == SIZE)
		end_with(s, s->to - s->out->bytes + 7,
			 s->to - s->out->bytes);
	else if (file >= TWICE)
		wrong_behind(s, tag, file);
	else
		end(s);
}

/* The data say how many they are. */
static void put_data(struct serve *s, uint32_t count)
{
	put(s, 4, count);
	memset(s->to, 'a' + count % 26, count);
	s->to += count;
}

static void answer_read(struct serve *s, uint16_t tag, uint32_t count)
{
	begin(s, TREAD + 1, tag);
	put_data(s, count);
	end(s);
}

/* The same as one of NR replies in a message */
static void add_read(struct serve *s, uint16_t tag, uint32_t count, int *nr)
{
	if ((*nr)++) {
		sized(s);
		next(s, TREAD + 1, tag);
	} else {
		begin(s, TREAD + 1, tag);
	}
	put_data(s, count);
}

/* Now those who read HELD get what they wait for. */
static void do_release(struct serve *s, uint16_t tag, int file, uint32_t count)
{
	int i, nr = 0;

	if (file == RFLUSH) {
		begin(s, TFLUSH + 1, s->flush);
		end(s);
		tally(FLUSHES, -1);
	}
	if (file == TOGETHER)
		add_read(s, tag, count, &nr);
	for (i = 0; file != RFLUSH && i < s->nr_stuck; i++) {
		if (s->stuck[i].file != HELD)
			continue;
		if (file == ANSWER)
			answer_read(s, s->stuck[i].tag, s->stuck[i].count);
		else
			add_read(s, s->stuck[i].tag, s->stuck[i].count, &nr);
		s->stuck[i--] = s->stuck[--s->nr_stuck];
		tally(WAITING, -1);
	}
	if (file == FULL)
		add_read(s, tag, 0, &nr);
	if (nr)
		end(s);
	else
		answer_read(s, tag, count);
}

static void do_read(struct serve *s, uint16_t tag, int file)
{
	uint64_t at = get(s, 8);
	uint32_t count = get(s, 4);

	if (file >= STUCK_FILE && s->nr_stuck < STUCK) {
		s->stuck[s->nr_stuck].file = file;
		s->stuck[s->nr_stuck].count = count;
		s->stuck[s->nr_stuck++].tag = tag;
		tally(WAITING, 1);
		return;
	}
	if (file >= ANSWER && file <= RFLUSH)
		return do_release(s, tag, file, count);
	if (file != DATA)
		return do_read_wrong(s, tag, file, count);
	pthread_mutex_lock(&lock);
	if (at > sizes[DATA])
		at = sizes[DATA];
	if (count > sizes[DATA] - at)
		count = sizes[DATA] - at;
	begin(s, TREAD + 1, tag);
	put(s, 4, count);
	memcpy(s->to, data + at, count);
	s->to += count;
	pthread_mutex_unlock(&lock);
	end(s);
}

static void do_write(struct serve *s, uint16_t tag, int file)
{
	uint64_t at = get(s, 8);
	uint32_t count = get(s, 4);

	if (count != s->in->bytes + s->in->len - s->at)
		return fail(s, tag, EPROTO);
	if (file != DATA || at > DATA_MAX || count > DATA_MAX - at)
		return fail(s, tag, ENOSPC);
	pthread_mutex_lock(&lock);
	memcpy(data + at, s->at, count);
	if (at + count > sizes[DATA])
		sizes[DATA] = at + count;
	pthread_mutex_unlock(&lock);
	begin(s, TWRITE + 1, tag);
	put(s, 4, count);
	end(s);
}

static void do_setattr(struct serve *s, uint16_t tag, int file)
{
	uint32_t valid = get(s, 4);

	get(s, 8);
	get(s, 4);
	if (file == DATA && valid & 8)
		sizes[DATA] = get(s, 8);
	if (sizes[DATA] > DATA_MAX)
		sizes[DATA] = DATA_MAX;
	begin(s, TSETATTR + 1, tag);
	end(s);
}

static void do_flush(struct serve *s, uint16_t tag)
{
	uint16_t old = get(s, 2);
	int i, file = 0;

	for (i = 0; i < s->nr_stuck; i++) {
		if (s->stuck[i].tag != old)
			continue;
		file = s->stuck[i].file;
		if (file == HELD)
			break;
		s->stuck[i] = s->stuck[--s->nr_stuck];
		tally(WAITING, -1);
		break;
	}
	if (file == DEAF || file == HELD) {
		s->flush = tag;
		tally(FLUSHES, 1);
		return;
	}
	if (file == LATE)
		answer_read(s, old, 1);
	begin(s, TFLUSH + 1, tag);
	end(s);
}

static void handle(struct serve *s)
{
	unsigned int type;
	uint32_t msize;
	uint16_t tag;
	int *file, i;

	s->at = s->in->bytes + 4;
	type = get(s, 1);
	tag = get(s, 2);
	switch (type) {
	case TVERSION:
		msize = get(s, 4);
		begin(s, TVERSION + 1, tag);
		put(s, 4, msize < s->link->msize ? msize : s->link->msize);
		put_text(s, "9P2000.L");
		return end(s);
	case TATTACH:
		fid_set(s, get(s, 4), ROOT);
		begin(s, TATTACH + 1, tag);
		put_qid(s, ROOT);
		return end(s);
	case TFLUSH:
		return do_flush(s, tag);
	case TWALK:
		return do_walk(s, tag);
	}
	file = fid_find(s, get(s, 4));
	if (!file)
		return fail(s, tag, EBADF);
	switch (type) {
	case TCLUNK:
		*file = 0;
		begin(s, TCLUNK + 1, tag);
		return end(s);
	case TSTATFS:
		begin(s, RSTATFS, tag);
		put(s, 4, 0x01021997);
		put(s, 4, 4096);
		for (i = 0; i < 6; i++)
			put(s, 8, 1000);
		put(s, 4, 255);
		return end(s);
	case TLOPEN:
		begin(s, TLOPEN + 1, tag);
		put_qid(s, *file - 1);
		put(s, 4, 0);
		return end(s);
	case TGETATTR:
		return do_getattr(s, tag, *file - 1);
	case TSETATTR:
		return do_setattr(s, tag, *file - 1);
	case TREADDIR:
		return do_readdir(s, tag);
	case TFSYNC:
		begin(s, TFSYNC + 1, tag);
		return end(s);
	case TREAD:
		return do_read(s, tag, *file - 1);
	case TWRITE:
		return do_write(s, tag, *file - 1);
	}
	fail(s, tag, EOPNOTSUPP);
}

static void *run(void *arg)
{
	struct slot *slots[LINK_BATCH];
	struct serve **at, *s = arg;
	int nr, i, err = 0;

	while (!err && (nr = link_recv(s->link, slots)) > 0) {
		for (i = 0; i < nr && !err; i++) {
			s->in = slots[i];
			handle(s);
			err = link_release(s->link, s->in);
		}
	}
	pthread_mutex_lock(&lock);
	for (at = &serves; *at != s; at = &(*at)->next)
		;
	*at = s->next;
	pthread_mutex_unlock(&lock);
	link_close(s->link);
	free(s);
	return NULL;
}

static void connection(struct listener *l, struct fi_eq_cm_entry *e, size_t len)
{
	struct serve *s = calloc(1, sizeof(*s));
	pthread_t thread;

	if (!s)
		exit(1);
	s->link = link_open(l, e->info, e->data, len - sizeof(*e), CREDITS,
			    K9_MSIZE_MAX, UINT64_MAX);
	if (!s->link) {
		free(s);
		return;
	}
	if (link_accept(s->link)) {
		link_close(s->link);
		free(s);
		return;
	}
	pthread_mutex_lock(&lock);
	s->next = serves;
	serves = s;
	pthread_mutex_unlock(&lock);
	if (pthread_create(&thread, NULL, run, s))
		exit(1);
	pthread_detach(thread);
}

/* Write to a shared mapping of a file, or look for what that has written. */
static int mapping(const char *path, bool write)
{
	size_t i, len = 300000;
	unsigned char *map;
	int fd;

	fd = open(path, write ? O_RDWR | O_CREAT | O_TRUNC : O_RDONLY, 0644);
	if (fd < 0 || (write && ftruncate(fd, len))) {
		complain("%s: %s", path, strerror(errno));
		return 1;
	}
	map = mmap(NULL, len, write ? PROT_READ | PROT_WRITE : PROT_READ,
		   MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		complain("mapping %s: %s", path, strerror(errno));
		return 1;
	}
	for (i = 0; i < len; i++) {
		if (write) {
			map[i] = i * 7 + i / 4096;
		} else if (map[i] != (unsigned char)(i * 7 + i / 4096)) {
			complain("%s: another byte at %zu", path, i);
			return 1;
		}
	}
	if (write && (msync(map, len, MS_SYNC) || close(fd))) {
		complain("writing %s: %s", path, strerror(errno));
		return 1;
	}
	return 0;
}

static void *read_one(void *arg)
{
	static char bytes[4096];
	int fd = open(arg, O_RDONLY);

	if (fd < 0 || read(fd, bytes, sizeof(bytes)) < 0)
		complain("%s: %s", (char *)arg, strerror(errno));
	return NULL;
}

/*
 * A thread that reads PATH is killed by an exec after SIGUSR1, which waits for its
 * end. SIGKILL kills it once more: for one that SIGKILL is killing already, a second
 * one would make no difference.
 */
static int killed(const char *path)
{
	pthread_t thread;
	sigset_t cue;
	int sig;

	sigemptyset(&cue);
	sigaddset(&cue, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &cue, NULL);
	if (pthread_create(&thread, NULL, read_one, (void *)path) ||
	    sigwait(&cue, &sig))
		return 1;
	execlp("true", "true", NULL);
	complain("true: %s", strerror(errno));
	return 1;
}

/* Connections that ask for nothing. Returns 0 when the server has ended them. */
static int idle_sockets(const char *node, const char *port, unsigned int n)
{
	struct addrinfo *to;
	int fds[CROWD];
	unsigned int i;
	char byte;

	if (n > CROWD || getaddrinfo(node, port, NULL, &to))
		return 1;
	for (i = 0; i < n; i++) {
		fds[i] = socket(to->ai_family, SOCK_STREAM, 0);
		if (fds[i] < 0 || connect(fds[i], to->ai_addr, to->ai_addrlen))
			return 1;
	}
	for (i = 0; i < n; i++)
		if (read(fds[i], &byte, 1) > 0)
			return 1;
	return 0;
}

/* A client that has been accepted. Returns 0 when the server has ended it. */
static int idle_client(const char *prov, const char *node, const char *port)
{
	const struct k9_hello h = {
		.magic = htole32(K9_MAGIC), .version = htole16(K9_VERSION),
		.credits = htole16(CREDITS), .msize = htole32(K9_MSIZE_MIN),
	};
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_FD };
	struct fi_cq_attr cq_attr = { .size = 2 * CREDITS,
					 .format = FI_CQ_FORMAT_MSG };
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	char room[256];
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_ep *ep;
	uint32_t type;
	ssize_t n;

	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_PROV_KEY |
				      FI_MR_VIRT_ADDR | FI_MR_ALLOCATED;
	hints->fabric_attr->prov_name = strdup(prov);
	if (fi_getinfo(FI_VERSION(1, 17), node, port, 0, hints, &info))
		return 2;
	info->tx_attr->size = CREDITS;
	info->rx_attr->size = CREDITS;
	if (fi_fabric(info->fabric_attr, &fabric, NULL) ||
	    fi_eq_open(fabric, &eq_attr, &eq, NULL) ||
	    fi_domain(fabric, info, &domain, NULL) ||
	    fi_cq_open(domain, &cq_attr, &cq, NULL) ||
	    fi_endpoint(domain, info, &ep, NULL) ||
	    fi_ep_bind(ep, &eq->fid, 0) ||
	    fi_ep_bind(ep, &cq->fid, FI_RECV | FI_TRANSMIT) || fi_enable(ep) ||
	    fi_connect(ep, info->dest_addr, &h, sizeof(h)))
		return 2;
	if (fi_eq_sread(eq, &type, room, sizeof(room), -1, 0) <= 0 ||
	    type != FI_CONNECTED)
		return 1;
	puts("connected");
	fflush(stdout);
	do {
		/* what notices the end of a socket */
		fi_cq_read(cq, room, 1);
		n = fi_eq_sread(eq, &type, room, sizeof(room), 100, 0);
	} while (n == -FI_EAGAIN || n == -FI_ETIMEDOUT);
	return n <= 0 || type != FI_SHUTDOWN;
}

int main(int argc, char **argv)
{
	union {
		struct fi_eq_cm_entry	cm;
		char			room[sizeof(struct fi_eq_cm_entry) +
					     256];
	} e;
	struct fi_eq_err_entry err;
	struct listener l = {};
	struct serve *s;
	uint32_t type;
	ssize_t n;

	if (argc == 4 && !strcmp(argv[1], "idle"))
		return idle_sockets(argv[2], argv[3], 1);
	if (argc == 5 && !strcmp(argv[1], "crowd"))
		return idle_sockets(argv[2], argv[3], atoi(argv[4]));
	if (argc == 5 && !strcmp(argv[1], "idle"))
		return idle_client(argv[4], argv[2], argv[3]);
	if (argc == 3 && !strcmp(argv[1], "killed"))
		return killed(argv[2]);
	if (argc == 3)
		return mapping(argv[2], !strcmp(argv[1], "map"));
	if (argc != 4) {
		fprintf(stderr, "Usage: kofi-9p-peer PROVIDER ADDRESS PORT\n"
			"       kofi-9p-peer idle ADDRESS PORT [PROVIDER]\n"
			"       kofi-9p-peer crowd ADDRESS PORT CONNECTIONS\n"
			"       kofi-9p-peer map|look|killed FILE\n");
		return 2;
	}
	if (listener_open(&l, argv[1], argv[2], argv[3]))
		return 1;
	for (;;) {
		const struct fid *ended = NULL;

		n = fi_eq_sread(l.eq, &type, &e, sizeof(e), -1, 0);
		if (n == -FI_EAVAIL && fi_eq_readerr(l.eq, &err, 0) > 0)
			ended = err.fid;
		else if (n > 0 && type == FI_CONNREQ)
			connection(&l, &e.cm, n);
		else if (n > 0 && type == FI_SHUTDOWN)
			ended = e.cm.fid;
		pthread_mutex_lock(&lock);
		for (s = serves; s && ended; s = s->next) {
			if (&s->link->ep->fid == ended)
				link_down(s->link);
		}
		pthread_mutex_unlock(&lock);
	}
}

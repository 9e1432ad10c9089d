// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi bw and kofi lat: measure transfers between two machines, with the option
 * letters and the table of fabtests. The client describes the run to the server.
 * For each size the client names the run, both sides open endpoints (perf_session.c),
 * exchange addresses and the places of their memory, transfer, and close them:
 *
 *	client			server
 *	run NUMBERS...
 *				ep ADDRESS		for each endpoint
 *	ep ADDRESS					for each endpoint
 *	regions A:L:K...	regions A:L:K...	when connected, for each endpoint
 *				ready			receives are posted
 *	done NUMBERS...					with the figures
 *				ok COUNT		transfers that it has seen
 *
 * "limit TEXT" in place of any of these gives up this size, "error TEXT" all of it.
 * "bye" is the client's last word.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kofi.h"
#include "perf.h"

#define GREETING	"kofi-perf 1"
#define SIZE_LIST_MAX	(8U << 20)
#define SIZES_MAX	64
#define REASON_MS	1000	/* for a peer that has failed */

/* The description of a run, in the order of the line */
enum {
	RUN_TYPE, RUN_OP, RUN_FLAGS, RUN_POLL, RUN_WINDOW, RUN_ENDPOINTS,
	RUN_SIZE, RUN_ITERATIONS, RUN_WARMUP, RUN_CORRUPT, RUN_NUMBERS
};

/* And its figures */
enum {
	DONE_TRANSFERS, DONE_NS, DONE_NUMBERS
};

struct run {
	const struct perf_options	*opts;
	struct ctl		ctl;
	uint64_t		job[RUN_NUMBERS];
	char			prov[KOFI_PERF_NAME_MAX + 1];	/* of the client */
	struct session		s[PERF_EPS_MAX];
	struct kofi_perf_start	peer[PERF_EPS_MAX];
	uint64_t		done[DONE_NUMBERS];
	unsigned int		rows;
	char			why[256];
};

/* ------------------------------------------------------------------ errors */

static int run_fail(struct run *run, int err, const char *why)
{
	snprintf(run->why, sizeof(run->why), "%.255s", why);
	return err;
}

static int ctl_error(struct run *run, int err)
{
	return run_fail(run, err, run->ctl.why);
}

/* The peer gets the reason in place of the line that it waits for. */
static int own_error(struct run *run, int err)
{
	ctl_send(&run->ctl, "%s %s", err == -EMSGSIZE ? "limit" : "error",
		 run->why);
	return err;
}

static bool is_disconnect(int err)
{
	return err == -ECONNRESET || err == -ECONNABORTED || err == -EPIPE ||
	       err == -ECANCELED || err == -ENOTCONN ||
	       err == -ECONNREFUSED || err == -ESHUTDOWN;
}

/* The peer's sentence in place of a line: it gives up this size. */
static bool is_limit(const char *line)
{
	return !strncmp(line, "limit ", 6);
}

static int limit_error(struct run *run, const char *line)
{
	return run_fail(run, -EMSGSIZE, line + 6);
}

static int session_error(struct run *run, unsigned int i, int err)
{
	char line[CTL_LINE];
	int ret = 0;

	if (perf_interrupted) {
		run_fail(run, -EINTR, "interrupted");
		return own_error(run, -EINTR);
	}
	/* a peer that has closed its endpoint has said why, unless it was killed */
	if (is_disconnect(err))
		ret = ctl_line(&run->ctl, line, REASON_MS);
	if (ret < 0)
		return ctl_error(run, -EREMOTEIO);
	if (ret > 0 && is_limit(line))
		return limit_error(run, line);
	run_fail(run, err, run->s[i].why);
	return own_error(run, err);
}

/* Seconds without progress after which a side gives up; 0 of the options: never */
static unsigned int patience(const struct run *run)
{
	return run->opts->timeout ?: INT_MAX / 1000;
}

static int expect(struct run *run, const char *verb, char line[CTL_LINE],
		  char **rest)
{
	int ret;

	/* an error of the connection leaves the line as it is */
	line[0] = '\0';
	ret = ctl_expect(&run->ctl, verb, line, rest, patience(run) * 1000);
	if (!ret)
		return 0;
	if (is_limit(line))
		return limit_error(run, line);
	ctl_error(run, ret);
	if (ret == -ETIMEDOUT || ret == -EPROTO || ret == -EINTR)
		own_error(run, ret);
	return ret;
}

static int nonsense(struct run *run)
{
	run_fail(run, -EPROTO, "the peer says something that makes no sense");
	return own_error(run, -EPROTO);
}

/* ------------------------------------------------- contents of the lines */

static bool take_word(char **rest, char **word)
{
	do {
		*word = strsep(rest, " ");
	} while (*word && !**word);
	return *word;
}

static bool take_numbers(char **rest, uint64_t *to, unsigned int n)
{
	char *word;

	for (; n; n--)
		if (!take_word(rest, &word) ||
		    !parse_number(word, UINT64_MAX, to++))
			return false;
	return true;
}

static int send_ep(struct run *run, const struct kofi_perf_addr *addr)
{
	char hex[2 * sizeof(addr->addr) + 1] = "-";
	unsigned int i;

	for (i = 0; i < addr->len && i < sizeof(addr->addr); i++)
		sprintf(hex + 2 * i, "%02x", addr->addr[i]);
	return ctl_send(&run->ctl, "ep %s", hex);
}

/* A link-local address has the number of the interface, which is the machine's own. */
static void localize(const struct run *run, struct kofi_perf_addr *addr)
{
	struct sockaddr_storage peer;
	struct sockaddr_in6 in6, via;

	if (addr->len != sizeof(in6))
		return;
	ctl_name(&run->ctl, true, &peer);
	memcpy(&via, &peer, sizeof(via));
	memcpy(&in6, addr->addr, sizeof(in6));
	in6.sin6_scope_id = IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr) &&
			    via.sin6_family == AF_INET6 ?
			    via.sin6_scope_id : 0;
	memcpy(addr->addr, &in6, sizeof(in6));
}

static int recv_ep(struct run *run, struct kofi_perf_addr *addr)
{
	char line[CTL_LINE], *rest;
	size_t len;
	int ret;

	ret = expect(run, "ep", line, &rest);
	if (ret)
		return ret;
	memset(addr, 0, sizeof(*addr));
	if (!strcmp(rest, "-"))
		return 0;
	len = strlen(rest);
	if (len % 2 || len > 2 * sizeof(addr->addr) ||
	    rest[strspn(rest, "0123456789abcdef")])
		return nonsense(run);
	for (; *rest; rest += 2) {
		const char digits[] = { rest[0], rest[1], 0 };

		addr->addr[addr->len++] = strtoul(digits, NULL, 16);
	}
	localize(run, addr);
	return 0;
}

static int send_regions(struct run *run, const struct kofi_perf_join *join)
{
	char text[CTL_LINE] = "";
	size_t used = 0;
	unsigned int i;

	for (i = 0; i < join->count && i < KOFI_PERF_REGIONS; i++)
		used += snprintf(text + used, sizeof(text) - used,
				 " %" PRIu64 " %" PRIu64 " %" PRIu64,
				 (uint64_t)join->region[i].addr,
				 (uint64_t)join->region[i].len,
				 (uint64_t)join->region[i].key);
	return ctl_send(&run->ctl, "regions%s", text);
}

static int recv_regions(struct run *run, struct kofi_perf_start *start)
{
	char line[CTL_LINE], *rest;
	uint64_t n[3];
	int ret;

	memset(start, 0, sizeof(*start));
	ret = expect(run, "regions", line, &rest);
	if (ret)
		return ret;
	while (*rest) {
		if (start->count == KOFI_PERF_REGIONS ||
		    !take_numbers(&rest, n, 3))
			return nonsense(run);
		start->region[start->count].addr = n[0];
		start->region[start->count].len = n[1];
		start->region[start->count++].key = n[2];
		if (!rest)
			break;
	}
	return 0;
}

/* ---------------------------------------------------------------- both sides */

static void to_addr(const struct sockaddr_storage *from, bool port,
		    struct kofi_perf_addr *to)
{
	struct sockaddr_in in;

	to->len = from->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						sizeof(struct sockaddr_in);
	memcpy(to->addr, from, to->len);
	if (port)
		return;
	/* both kinds have the port at the same place */
	memcpy(&in, to->addr, sizeof(in));
	in.sin_port = 0;
	memcpy(to->addr, &in, sizeof(in));
}

static int open_session(struct run *run, unsigned int i)
{
	const struct perf_options *opts = run->opts;
	struct session *s = &run->s[i];
	struct kofi_perf_open *o = &s->open;
	struct sockaddr_storage local;
	const char *prov = opts->prov ?: run->prov;

	o->type = run->job[RUN_TYPE];
	o->op = run->job[RUN_OP];
	o->flags = run->job[RUN_FLAGS] |
		   (opts->node ? KOFI_PERF_INITIATOR : 0);
	o->poll = run->job[RUN_POLL];
	o->window = run->job[RUN_WINDOW];
	o->size = run->job[RUN_SIZE];
	o->iterations = run->job[RUN_ITERATIONS];
	o->warmup = run->job[RUN_WARMUP];
	o->corrupt = run->job[RUN_CORRUPT];
	if (opts->n_cpus)
		o->cpu = opts->cpus[i % opts->n_cpus];
	snprintf(o->prov, sizeof(o->prov), "%s", prov);
	snprintf(o->domain, sizeof(o->domain), "%s", opts->domain ?: "");
	/* a client's route chooses the address, a domain that is named has its own */
	if (opts->source || (!opts->node && !opts->domain)) {
		ctl_name(&run->ctl, false, &local);
		to_addr(&local, false, &o->src);
	}
	return session_open(s);
}

static int join_sessions(struct run *run)
{
	uint64_t end = now_ns() + patience(run) * NSEC_PER_SEC;
	unsigned int i;
	int ret;

	for (i = 0; i < run->job[RUN_ENDPOINTS]; i++) {
		while ((ret = session_join(&run->s[i])) == -ETIMEDOUT) {
			ret = ctl_alive(&run->ctl);
			if (ret)
				return ctl_error(run, ret);
			if (now_ns() > end) {
				ret = -ETIMEDOUT;
				break;
			}
		}
		if (ret)
			return session_error(run, i, ret);
	}
	for (i = 0; i < run->job[RUN_ENDPOINTS]; i++) {
		ret = send_regions(run, &run->s[i].join);
		if (ret)
			return ctl_error(run, ret);
	}
	for (i = 0; i < run->job[RUN_ENDPOINTS]; i++) {
		ret = recv_regions(run, &run->peer[i]);
		if (ret)
			return ret;
	}
	return 0;
}

static int start_sessions(struct run *run)
{
	unsigned int i;
	int ret;

	for (i = 0; i < run->job[RUN_ENDPOINTS]; i++) {
		ret = session_start(&run->s[i], &run->peer[i]);
		if (ret)
			return session_error(run, i, ret);
	}
	return 0;
}

static void close_sessions(struct run *run)
{
	unsigned int i;

	for (i = 0; i < PERF_EPS_MAX; i++) {
		session_close(&run->s[i]);
		session_init(&run->s[i]);
	}
}

/* Until something has come from the peer, or a session is over */
static void poll_all(struct run *run)
{
	struct pollfd pfd[PERF_EPS_MAX + 1] = {
		{ .fd = run->ctl.fd, .events = POLLIN },
	};
	unsigned int i, n = 1;

	for (i = 0; i < run->job[RUN_ENDPOINTS]; i++)
		if (!run->s[i].wait.over)
			pfd[n++] = (struct pollfd) {
				.fd = run->s[i].fd, .events = POLLIN,
			};
	poll(pfd, n, PERF_SLICE);
}

/* ------------------------------------------------------------------ the table */

static uint64_t percentile(const struct kofi_perf_hist *h, double part)
{
	uint64_t all = 0, sum = 0, ns;
	unsigned int b;

	for (b = 0; b < KOFI_PERF_BUCKETS; b++)
		all += h->count[b];
	for (b = 0; b < KOFI_PERF_BUCKETS; b++) {
		sum += h->count[b];
		if (sum && sum >= all * part)
			break;
	}
	if (b < 2 * KOFI_PERF_SUB)
		return b;
	/* the upper limit of the bucket, or the longest time */
	ns = ((KOFI_PERF_SUB + b % KOFI_PERF_SUB + 1ULL) <<
	      (b / KOFI_PERF_SUB - 1)) - 1;
	return ns < h->max ? ns : h->max;
}

static const struct {
	const char	*name;
	const char	*key;
	double		part;
} percentiles[] = {
	{ "p50", "p50", 0.5 },
	{ "p90", "p90", 0.9 },
	{ "p99", "p99", 0.99 },
	{ "p99.9", "p99_9", 0.999 },
};

#define N_PERCENTILES	(sizeof(percentiles) / sizeof(percentiles[0]))

static int row_hist(struct run *run, struct kofi_perf_hist *sum)
{
	struct kofi_perf_hist *one = malloc(sizeof(*one));
	unsigned int i, b;
	int ret = 0;

	memset(sum, 0, sizeof(*sum));
	sum->min = UINT64_MAX;
	if (!one)
		return run_fail(run, -ENOMEM, "out of memory");
	for (i = 0; !ret && i < run->job[RUN_ENDPOINTS]; i++) {
		ret = session_hist(&run->s[i], one);
		if (ret) {
			run_fail(run, ret, run->s[i].why);
			break;
		}
		for (b = 0; b < KOFI_PERF_BUCKETS; b++)
			sum->count[b] += one->count[b];
		if (one->min < sum->min)
			sum->min = one->min;
		if (one->max > sum->max)
			sum->max = one->max;
	}
	free(one);
	return ret;
}

static void json_row(const struct run *run, const struct kofi_perf_hist *h)
{
	uint64_t size = run->job[RUN_SIZE], n = run->done[DONE_TRANSFERS];
	uint64_t total = size * n *
		(run->job[RUN_FLAGS] & KOFI_PERF_PINGPONG ? 2 : 1);
	unsigned int i;

	json_open(NULL, '{');
	json_number("bytes", size);
	json_number("iterations", n);
	json_number("total", total);
	json_number("elapsed_ns", run->done[DONE_NS]);
	json_number("bytes_per_sec", run->done[DONE_NS] ?
		    total * 1e9 / run->done[DONE_NS] : 0);
	json_number("endpoints", run->job[RUN_ENDPOINTS]);
	json_number("window", run->job[RUN_WINDOW]);
	if (h) {
		json_open("latency_ns", '{');
		json_number("min", h->min);
		for (i = 0; i < N_PERCENTILES; i++)
			json_number(percentiles[i].key,
				    percentile(h, percentiles[i].part));
		json_number("max", h->max);
		json_close('}');
	}
	json_close('}');
}

static void text_row(struct run *run, const struct kofi_perf_hist *h)
{
	unsigned int per_iter = run->job[RUN_FLAGS] & KOFI_PERF_PINGPONG ? 2 : 1;
	uint64_t size = run->job[RUN_SIZE], n = run->done[DONE_TRANSFERS];
	uint64_t total = size * n * per_iter;
	double usec = run->done[DONE_NS] / 1e3;
	double per_xfer = n ? usec / n / per_iter : 0;
	char buf[3][32];
	unsigned int i;

	if (!run->rows++) {
		printf("%-8s%-8s%-8s%8s %10s%13s%13s", "bytes", "iters",
		       "total", "time", "MB/sec", "usec/xfer", "Mxfers/sec");
		if (h) {
			printf("%10s", "min");
			for (i = 0; i < N_PERCENTILES; i++)
				printf("%10s", percentiles[i].name);
			printf("%10s", "max");
		}
		putchar('\n');
	}
	printf("%-8s%-8s%-8s%8.2fs%10.2f%13.2f%13.2f",
	       size_text(buf[0], sizeof(buf[0]), size),
	       count_text(buf[1], sizeof(buf[1]), n),
	       size_text(buf[2], sizeof(buf[2]), total), usec / 1e6,
	       usec ? total / usec : 0, per_xfer,
	       per_xfer ? 1 / per_xfer : 0);
	if (h) {
		printf("%10.2f", h->min / 1e3);
		for (i = 0; i < N_PERCENTILES; i++)
			printf("%10.2f",
			       percentile(h, percentiles[i].part) / 1e3);
		printf("%10.2f", h->max / 1e3);
	}
	putchar('\n');
	fflush(stdout);
}

/* @h: NULL where latencies are not known */
static void print_row(struct run *run, const struct kofi_perf_hist *h)
{
	if (run->opts->json)
		json_row(run, h);
	else
		text_row(run, h);
}

/* ------------------------------------------------------------------ the client */

static void print_progress(const struct run *run, uint64_t done, uint64_t ns)
{
	const struct perf_options *opts = run->opts;
	char size[32], count[32], of[32] = "";

	if (run->job[RUN_ITERATIONS])
		count_text(of, sizeof(of), run->job[RUN_ITERATIONS] *
					   run->job[RUN_ENDPOINTS]);
	if (opts->progress && ns)
		fprintf(stderr, "%s: %s%s%s, %.2f MB/sec\n",
			size_text(size, sizeof(size), run->job[RUN_SIZE]),
			count_text(count, sizeof(count), done),
			*of ? " of " : "", of,
			done * run->job[RUN_SIZE] * 1e3 / ns);
}

/* Until all sessions are over */
static int client_wait(struct run *run)
{
	const struct perf_options *opts = run->opts;
	uint64_t moved = now_ns(), told = moved, before = 0, now, all, done, start;
	unsigned int i, left;
	int ret;

	for (;;) {
		now = now_ns();
		all = 0;
		done = 0;
		left = 0;
		start = now;
		for (i = 0; i < run->job[RUN_ENDPOINTS]; i++) {
			struct kofi_perf_wait *w = &run->s[i].wait;
			bool stop = opts->duration &&
				    w->warm == run->job[RUN_WARMUP] && w->start &&
				    now - w->start >= opts->duration * NSEC_PER_SEC;

			ret = session_wait(&run->s[i], 0, stop);
			if (ret)
				return session_error(run, i, ret);
			left += !w->over;
			all += w->warm + w->done;
			done += w->done;
			if (w->start < start)
				start = w->start;
		}
		if (!left)
			return 0;
		ret = ctl_alive(&run->ctl);
		if (ret) {
			ctl_error(run, ret);
			return ret == -EINTR ? own_error(run, ret) : ret;
		}
		if (all != before)
			moved = now;
		before = all;
		if (now - moved > patience(run) * NSEC_PER_SEC) {
			run_fail(run, -ETIMEDOUT, "transfer: no progress");
			return own_error(run, -ETIMEDOUT);
		}
		if (now - told >= NSEC_PER_SEC) {
			print_progress(run, done, now - start);
			told = now;
		}
		poll_all(run);
	}
}

static void client_figures(struct run *run)
{
	uint64_t start = UINT64_MAX, end = 0;
	unsigned int i;

	run->done[DONE_TRANSFERS] = 0;
	for (i = 0; i < run->job[RUN_ENDPOINTS]; i++) {
		const struct kofi_perf_wait *w = &run->s[i].wait;

		run->done[DONE_TRANSFERS] += w->done;
		if (w->start < start)
			start = w->start;
		if (w->end > end)
			end = w->end;
	}
	run->done[DONE_NS] = end - start;
}

static int client_open(struct run *run)
{
	const uint64_t *job = run->job;
	unsigned int i;
	int ret;

	ret = ctl_send(&run->ctl, "run %" PRIu64 " %" PRIu64 " %" PRIu64
		       " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		       " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s", job[0],
		       job[1], job[2], job[3], job[4], job[5], job[6], job[7],
		       job[8], job[9], run->opts->prov ?: "-");
	if (ret)
		return ctl_error(run, ret);
	for (i = 0; i < job[RUN_ENDPOINTS]; i++) {
		ret = recv_ep(run, &run->s[i].open.dest);
		if (ret)
			return ret;
		run->s[i].join.peer = run->s[i].open.dest;
	}
	for (i = 0; i < job[RUN_ENDPOINTS]; i++) {
		ret = open_session(run, i);
		if (ret)
			return session_error(run, i, ret);
	}
	for (i = 0; i < job[RUN_ENDPOINTS]; i++) {
		ret = send_ep(run, &run->s[i].open.name);
		if (ret)
			return ctl_error(run, ret);
	}
	return 0;
}

static int client_run(struct run *run)
{
	char line[CTL_LINE], *rest;
	struct kofi_perf_hist *h = NULL;
	uint64_t count;
	int ret;

	ret = client_open(run);
	if (!ret)
		ret = join_sessions(run);
	if (!ret)
		ret = expect(run, "ready", line, &rest);
	if (!ret)
		ret = start_sessions(run);
	if (!ret)
		ret = client_wait(run);
	if (ret)
		return ret;
	client_figures(run);
	ret = ctl_send(&run->ctl, "done %" PRIu64 " %" PRIu64,
		       run->done[DONE_TRANSFERS], run->done[DONE_NS]);
	if (ret)
		return ctl_error(run, ret);
	ret = expect(run, "ok", line, &rest);
	if (ret)
		return ret;
	if (!take_numbers(&rest, &count, 1))
		return nonsense(run);
	/* some may have been lost */
	if (run->job[RUN_TYPE] == KOFI_PERF_DGRAM && count < run->done[DONE_TRANSFERS])
		run->done[DONE_TRANSFERS] = count;
	if (run->opts->latency) {
		h = malloc(sizeof(*h));
		ret = h ? row_hist(run, h) :
			  run_fail(run, -ENOMEM, "out of memory");
	}
	if (!ret)
		print_row(run, h);
	free(h);
	return ret;
}

/* As many as fabtests: fewer of the long ones, and twice as many for bandwidth */
static uint64_t default_iterations(const struct perf_options *opts, uint64_t size)
{
	uint64_t n = size >= 1 << 20 ? 100 : size >= 1 << 16 ? 1000 : 10000;

	return opts->latency ? n : 2 * n;
}

static void client_job(struct run *run, uint64_t size)
{
	const struct perf_options *opts = run->opts;
	uint64_t fit = opts->memory / size;
	bool one_sided = opts->op == KOFI_PERF_OP_READ ||
			 opts->op == KOFI_PERF_OP_WRITE;

	run->job[RUN_TYPE] = opts->type;
	run->job[RUN_OP] = opts->op;
	run->job[RUN_FLAGS] = (opts->verify ? KOFI_PERF_VERIFY : 0) |
			      (opts->latency ? KOFI_PERF_LATENCY : 0) |
			      (opts->latency && !one_sided ?
			       KOFI_PERF_PINGPONG : 0);
	run->job[RUN_POLL] = opts->poll;
	run->job[RUN_WINDOW] = opts->latency ? 1 :
			       fit < opts->window ? fit ?: 1 : opts->window;
	run->job[RUN_ENDPOINTS] = opts->endpoints;
	run->job[RUN_SIZE] = size;
	run->job[RUN_ITERATIONS] = opts->duration ? 0 :
		opts->iterations ?: default_iterations(opts, size);
	run->job[RUN_WARMUP] = opts->warmup;
	run->job[RUN_CORRUPT] = opts->corrupt;
}

static unsigned int sizes_of(const struct perf_options *opts, uint64_t *sizes)
{
	static const uint64_t usual[] = { 64, 256, 1024, 4096, 65536, 1048576 };
	unsigned int n = 0;
	uint64_t size;

	if (opts->size) {
		sizes[0] = opts->size;
		return 1;
	}
	if (!opts->all_sizes) {
		memcpy(sizes, usual, sizeof(usual));
		return sizeof(usual) / sizeof(usual[0]);
	}
	/* powers of two, and the middle to the next one */
	for (size = 1; size <= SIZE_LIST_MAX; size *= 2) {
		sizes[n++] = size;
		if (size > 1 && size < SIZE_LIST_MAX)
			sizes[n++] = size + size / 2;
	}
	return n;
}

static int client(struct run *run)
{
	const struct perf_options *opts = run->opts;
	char line[CTL_LINE], *rest;
	uint64_t sizes[SIZES_MAX];
	unsigned int i, n;
	int ret;

	ret = ctl_connect(&run->ctl, opts->node, opts->source, opts->port,
			  (opts->timeout ?: 30) * 1000);
	if (ret)
		return ctl_error(run, ret);
	ret = ctl_send(&run->ctl, GREETING);
	if (ret)
		return ctl_error(run, ret);
	ret = expect(run, GREETING, line, &rest);
	if (ret)
		return ret;
	n = sizes_of(opts, sizes);
	for (i = 0; i < n && !ret; i++) {
		client_job(run, sizes[i]);
		ret = client_run(run);
		close_sessions(run);
	}
	if (ret == -EMSGSIZE && !opts->size && i > 1) {
		fprintf(stderr, "kofi: %s ends here: %s\n", opts->cmd, run->why);
		ret = 0;
	}
	if (!ret && ctl_send(&run->ctl, "bye"))
		ret = ctl_error(run, -ECONNRESET);
	return ret;
}

/* ------------------------------------------------------------------ the server */

/* Until the client says that it has finished */
static int server_wait(struct run *run, char line[CTL_LINE])
{
	unsigned int i;
	int ret;

	for (;;) {
		ret = ctl_line(&run->ctl, line, 0);
		if (ret < 0) {
			ctl_error(run, ret);
			return ret == -EINTR ? own_error(run, ret) : ret;
		}
		if (ret)
			return 0;
		for (i = 0; i < run->job[RUN_ENDPOINTS]; i++) {
			ret = session_wait(&run->s[i], 0, false);
			if (ret)
				return session_error(run, i, ret);
		}
		poll_all(run);
	}
}

static int server_finish(struct run *run, char line[CTL_LINE])
{
	uint64_t count = 0;
	unsigned int i;
	char *rest = line + 5;
	int ret;

	if (is_limit(line))
		return limit_error(run, line);
	if (strncmp(line, "done ", 5) ||
	    !take_numbers(&rest, run->done, DONE_NUMBERS))
		return nonsense(run);
	for (i = 0; i < run->job[RUN_ENDPOINTS]; i++) {
		ret = session_wait(&run->s[i], 0, true);
		if (ret)
			return session_error(run, i, ret);
		count += run->s[i].wait.done;
	}
	ret = ctl_send(&run->ctl, "ok %" PRIu64, count);
	if (ret)
		return ctl_error(run, ret);
	if (run->job[RUN_TYPE] == KOFI_PERF_DGRAM &&
	    count < run->done[DONE_TRANSFERS])
		run->done[DONE_TRANSFERS] = count;
	print_row(run, NULL);
	return 0;
}

/* Check the client's numbers, as far as the module does not. */
static int server_job(struct run *run, char *rest)
{
	const uint64_t *job = run->job;
	uint64_t memory;
	char *prov;

	if (!take_numbers(&rest, run->job, RUN_NUMBERS) ||
	    !take_word(&rest, &prov) || strlen(prov) > KOFI_PERF_NAME_MAX)
		return nonsense(run);
	snprintf(run->prov, sizeof(run->prov), "%s",
		 strcmp(prov, "-") ? prov : "");
	if (job[RUN_TYPE] > KOFI_PERF_DGRAM ||
	    job[RUN_OP] > KOFI_PERF_OP_WRITEDATA ||
	    job[RUN_FLAGS] & KOFI_PERF_INITIATOR ||
	    job[RUN_FLAGS] > UINT32_MAX || job[RUN_POLL] > UINT32_MAX ||
	    !job[RUN_ENDPOINTS] || job[RUN_ENDPOINTS] > PERF_EPS_MAX ||
	    !job[RUN_WINDOW] || job[RUN_WINDOW] > KOFI_PERF_WINDOW_MAX ||
	    !job[RUN_SIZE] || job[RUN_SIZE] > KOFI_PERF_SIZE_MAX)
		return nonsense(run);
	memory = job[RUN_SIZE] * job[RUN_WINDOW];
	if (memory > run->opts->memory && job[RUN_WINDOW] > 1) {
		run_fail(run, -ENOMEM,
			 "the client wants more memory than -M of the server allows");
		return own_error(run, -ENOMEM);
	}
	return 0;
}

static int server_run(struct run *run, char *rest)
{
	char line[CTL_LINE];
	unsigned int i;
	int ret;

	ret = server_job(run, rest);
	if (ret)
		return ret;
	for (i = 0; i < run->job[RUN_ENDPOINTS]; i++) {
		ret = open_session(run, i);
		if (ret)
			return session_error(run, i, ret);
	}
	for (i = 0; i < run->job[RUN_ENDPOINTS]; i++) {
		ret = send_ep(run, &run->s[i].open.name);
		if (ret)
			return ctl_error(run, ret);
	}
	for (i = 0; i < run->job[RUN_ENDPOINTS]; i++) {
		ret = recv_ep(run, &run->s[i].join.peer);
		if (ret)
			return ret;
	}
	ret = join_sessions(run);
	if (!ret)
		ret = start_sessions(run);
	if (ret)
		return ret;
	ret = ctl_send(&run->ctl, "ready");
	if (ret)
		return ctl_error(run, ret);
	ret = server_wait(run, line);
	return ret ?: server_finish(run, line);
}

static int server(struct run *run)
{
	const struct perf_options *opts = run->opts;
	char line[CTL_LINE], *rest;
	int ret;

	ret = ctl_listen(&run->ctl, opts->source, opts->port, opts->ipv6);
	if (ret)
		return ctl_error(run, ret);
	ret = expect(run, GREETING, line, &rest);
	if (ret)
		return ret;
	ret = ctl_send(&run->ctl, GREETING);
	if (ret)
		return ctl_error(run, ret);
	for (;;) {
		ret = ctl_line(&run->ctl, line,
			       patience(run) * 1000);
		if (!ret)
			return run_fail(run, -ETIMEDOUT,
					"the client does not answer");
		if (ret < 0)
			return ctl_error(run, ret);
		if (!strcmp(line, "bye"))
			return 0;
		if (strncmp(line, "run ", 4))
			return nonsense(run);
		ret = server_run(run, line + 4);
		close_sessions(run);
		/* a size that is too long is for the client to judge */
		if (ret && ret != -EMSGSIZE)
			return ret;
	}
}

/* ----------------------------------------------------------------- the command */

static void json_head(const struct perf_options *opts)
{
	json_open(NULL, '{');
	json_string("command", opts->cmd);
	if (opts->node) {
		json_string("operation", perf_op_names[opts->op]);
		json_string("endpoint", perf_type_names[opts->type]);
	}
	json_open("results", '[');
}

int cmd_perf(int argc, char **argv)
{
	struct perf_options opts = {
		.cmd = argv[0],
		.latency = !strcmp(argv[0], "lat"),
		.port = CTL_PORT,
		.warmup = 10,
		.window = 64,
		.endpoints = 1,
		.timeout = 30,
		.memory = 64 << 20,
		.progress = isatty(STDERR_FILENO),
	};
	struct run *run;
	int ret;

	ret = perf_parse(argc, argv, &opts);
	if (ret)
		return ret < 0 ? EXIT_OK : ret;
	run = calloc(1, sizeof(*run));
	if (!run) {
		error("out of memory");
		return EXIT_FAILED;
	}
	run->opts = &opts;
	run->ctl.fd = -1;
	close_sessions(run);
	perf_catch_signals();
	if (opts.json)
		json_head(&opts);
	ret = opts.node ? client(run) : server(run);
	close_sessions(run);
	ctl_close(&run->ctl);
	if (ret)
		error("%s: %s", opts.cmd, run->why);
	if (opts.json) {
		json_close(']');
		if (ret)
			json_failure();
		json_close('}');
		json_end();
	}
	free(run);
	return ret ? EXIT_FAILED : EXIT_OK;
}

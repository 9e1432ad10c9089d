// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The runs of kofi_bench.ko in user space, over libfabric's provider tcp.
 *
 * Each line of the input is a run, "KIND WINDOW SIZE WARMUP COUNT [PROVIDER]", and
 * the answer to it is a line with the nanoseconds that COUNT operations took. Two
 * processes do it, one at each end, which sleep in fi_cq_sread() until something
 * has come: this one is the client, and begins, the other is the server. They
 * agree through pipes on what comes next and on the port; every run has a
 * connection of its own, and the client's hanging up ends the server's part.
 *
 * KIND is send, write or read; sends with a window of one are a ping-pong. If
 * there are more at a time, the server says when it has received the last one.
 * WARMUP operations go before those that are measured. Both ends compare what
 * has arrived.
 *
 * With a PROVIDER, net or tcp;ofi_rxm, the endpoints send reliable datagrams. Those are
 * ping-pongs only; the ends tell each other their ports, and the server's part ends
 * after as many answers.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#define BATCH		16
#define WINDOW_MAX	16
#define WAIT_MS		30000
#define KEY		1

enum kind { SEND, WRITE, READ };

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *eq;
static struct fid_cq *cq;
static struct fid_pep *pep;
static struct fid_ep *ep;
static struct fid_mr *mr;
static struct fid_av *av;	/* of endpoints that do not connect */
static fi_addr_t dest;

/* The run */
static enum kind kind;
static bool pingpong;
static unsigned int window, warmup, count;
static size_t size;
static char provider[24];	/* of reliable datagrams, or empty */

/* To the server, and back */
static int order[2], reply[2];

/* What is sent from, then what is received to; a peer may use all of it. */
static char *tx, *rx;

/* What a context of an operation points at */
static struct op {
	bool	recv;
	bool	busy;
} xmit[WINDOW_MAX], recvs[WINDOW_MAX];
static unsigned int under_way;	/* of the former */
static unsigned int first;	/* of the former, to be used next */

static void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static void check(int ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "%s: %s\n", what, fi_strerror(-ret));
		exit(1);
	}
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* ------------------------------------------------------------- connections */

static void discover(unsigned int port, uint64_t flags)
{
	struct fi_info *hints = fi_allocinfo();
	char service[8];
	int ret;

	if (!hints)
		exit(1);
	hints->caps = kind == SEND ? FI_MSG : FI_MSG | FI_RMA;
	hints->ep_attr->type = *provider ? FI_EP_RDM : FI_EP_MSG;
	hints->domain_attr->mr_mode = 0;
	hints->fabric_attr->prov_name = strdup(*provider ? provider : "tcp");
	snprintf(service, sizeof(service), "%u", port);
	ret = fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", service, flags, hints,
			 &info);
	/* since 2.0 the provider net is tcp's own */
	if (ret == -FI_ENODATA && !strcmp(provider, "net")) {
		free(hints->fabric_attr->prov_name);
		hints->fabric_attr->prov_name = strdup("tcp");
		ret = fi_getinfo(FI_VERSION(2, 0), "127.0.0.1", service, flags,
				 hints, &info);
	}
	check(ret, "fi_getinfo");
	fi_freeinfo(hints);
}

static void open_fabric(void)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	check(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	check(fi_eq_open(fabric, &attr, &eq, NULL), "fi_eq_open");
}

static void post_recv(unsigned int n)
{
	recvs[n] = (struct op) { .recv = true, .busy = true };
	check(fi_recv(ep, rx + n * size, size, NULL, 0, &recvs[n]), "fi_recv");
}

static void open_endpoint(struct fi_info *from, unsigned int receives)
{
	struct fi_cq_attr attr = {
		.format = FI_CQ_FORMAT_MSG,
		.wait_obj = FI_WAIT_UNSPEC,
		.size = 4 * WINDOW_MAX,
	};
	struct fi_av_attr av_attr = { .type = FI_AV_UNSPEC };
	unsigned int i;

	check(fi_domain(fabric, from, &domain, NULL), "fi_domain");
	if (kind != SEND)
		check(fi_mr_reg(domain, tx, 2 * window * size,
				FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0,
				&mr, NULL), "fi_mr_reg");
	check(fi_cq_open(domain, &attr, &cq, NULL), "fi_cq_open");
	check(fi_endpoint(domain, from, &ep, NULL), "fi_endpoint");
	if (*provider) {
		check(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
		check(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
	} else {
		check(fi_ep_bind(ep, &eq->fid, 0), "fi_ep_bind");
	}
	check(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	check(fi_enable(ep), "fi_enable");
	for (i = 0; i < receives; i++)
		post_recv(i);
}

static void expect(uint32_t want, struct fi_eq_cm_entry *entry)
{
	uint32_t got;

	check(fi_eq_sread(eq, &got, entry, sizeof(*entry), WAIT_MS, 0),
	      "fi_eq_sread");
	if (got != want)
		fail("another event than expected");
}

static void close_all(void)
{
	fi_close(&ep->fid);
	if (mr)
		fi_close(&mr->fid);
	if (pep)
		fi_close(&pep->fid);
	fi_close(&cq->fid);
	if (av)
		fi_close(&av->fid);
	fi_close(&domain->fid);
	fi_close(&eq->fid);
	fi_close(&fabric->fid);
	fi_freeinfo(info);
	mr = NULL;
	pep = NULL;
	av = NULL;
	dest = 0;
}

/* ------------------------------------------------------------------- content */

/* Distinct at each place; both sides send the same. */
static void fill(char *to, size_t len)
{
	uint32_t seed = 1;
	size_t i;

	for (i = 0; i + sizeof(seed) <= len; i += sizeof(seed)) {
		seed = seed * 1664525 + 1013904223;
		memcpy(to + i, &seed, sizeof(seed));
	}
}

static void compare(void)
{
	unsigned int n = count < window ? count : window;

	if (memcmp(rx, tx, n * size))
		fail("what has arrived is not what was sent");
}

/* ---------------------------------------------------------------- operations */

/* Sleep until something has come. 0 if the peer has hung up. */
static ssize_t wait_for_some(struct fi_cq_msg_entry *entries)
{
	ssize_t n;

	do {
		n = fi_cq_sread(cq, entries, BATCH, NULL, WAIT_MS);
	} while (n == -FI_EAGAIN);
	if (n == -FI_EAVAIL)
		return 0;
	check(n, "fi_cq_sread");
	return n;
}

/* One that ends when the bytes are where they belong, as a read does. */
static ssize_t post_write(struct op *op, char *buf, uint64_t addr)
{
	const struct iovec iov = { .iov_base = buf, .iov_len = size };
	const struct fi_rma_iov rma = { .addr = addr, .len = size, .key = KEY };
	const struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1,
		.rma_iov = &rma, .rma_iov_count = 1,
		.context = op,
	};

	return fi_writemsg(ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

/* The first one may find that there is no connection yet. */
static ssize_t post_send(struct op *op, const char *buf)
{
	ssize_t ret;

	while ((ret = fi_send(ep, buf, size, NULL, dest, op)) == -FI_EAGAIN)
		fi_cq_read(cq, NULL, 0);
	return ret;
}

static void post(struct op *op)
{
	size_t at = (op - xmit) * size;
	size_t half = window * size;
	ssize_t ret = 0;

	if (op->busy)
		fail("posted before it ended");
	op->busy = true;
	under_way++;
	switch (kind) {
	case SEND:
		ret = post_send(op, tx + at);
		break;
	case WRITE:
		ret = post_write(op, tx + at, half + at);
		break;
	case READ:
		ret = fi_read(ep, rx + at, size, NULL, 0, at, KEY, op);
		break;
	}
	check(ret, "post");
}

static void ended(struct op *op)
{
	op->busy = false;
	if (!op->recv)
		under_way--;
}

/* ---------------------------------------------------------------------- runs */

/* Answer each message until the peer hangs up. */
static void answer(void)
{
	struct fi_cq_msg_entry entries[BATCH];
	ssize_t n, i;

	while ((n = wait_for_some(entries))) {
		for (i = 0; i < n; i++) {
			struct op *op = entries[i].op_context;

			ended(op);
			if (!op->recv)
				continue;
			post_recv(0);
			post(&xmit[0]);
		}
	}
}

/* Receive, say when it was enough, and go on until the peer hangs up. */
static void receive(void)
{
	struct fi_cq_msg_entry entries[BATCH];
	unsigned int got = 0;
	ssize_t n, i;

	while ((n = wait_for_some(entries))) {
		for (i = 0; i < n; i++) {
			struct op *op = entries[i].op_context;

			ended(op);
			if (!op->recv)
				continue;
			post_recv(op - recvs);
			got++;
			if (got == warmup || got == warmup + count)
				post(&xmit[0]);
		}
	}
}

/* So many round trips, writes or reads, or sends and the word that they came. */
static void issue(unsigned int total)
{
	unsigned int posted, over = 0, expected = total;
	struct fi_cq_msg_entry entries[BATCH];
	ssize_t n, i;

	if (kind == SEND && !pingpong)
		expected = 1;
	for (posted = 0; posted < window && posted < total; posted++)
		post(&xmit[(first + posted) % window]);
	while (over < expected || under_way) {
		n = wait_for_some(entries);
		if (!n)
			fail("the peer hung up");
		for (i = 0; i < n; i++) {
			struct op *op = entries[i].op_context;

			ended(op);
			if (op->recv)
				post_recv(0);
			/* of a send it is the peer who says that it has come */
			if (op->recv || kind != SEND)
				over++;
			if (op->recv == pingpong && posted < total) {
				posted++;
				post(pingpong ? &xmit[0] : op);
			}
		}
	}
	/* places go round, also from one part to the next, as the server's do */
	first = (first + total) % window;
}

/* As many answers as there are round trips */
static void answer_all(void)
{
	struct fi_cq_msg_entry entries[BATCH];
	unsigned int left = warmup + count;
	ssize_t n, i;

	while (left || under_way) {
		n = wait_for_some(entries);
		if (!n)
			fail("an operation failed");
		for (i = 0; i < n; i++) {
			struct op *op = entries[i].op_context;

			ended(op);
			if (!op->recv)
				continue;
			left--;
			post_recv(0);
			post(&xmit[0]);
		}
	}
}

/* The ends of a ping-pong that does not connect, and where the other one is */
static void open_datagrams(int to, int from)
{
	struct sockaddr_in addr;
	size_t len = sizeof(addr);
	unsigned int port;

	discover(0, FI_SOURCE);
	open_fabric();
	open_endpoint(info, 1);
	check(fi_getname(&ep->fid, &addr, &len), "fi_getname");
	port = ntohs(addr.sin_port);
	if (write(to, &port, sizeof(port)) != sizeof(port) ||
	    read(from, &port, sizeof(port)) != sizeof(port))
		fail("the peer is gone");
	addr.sin_port = htons(port);
	if (fi_av_insert(av, &addr, 1, &dest, 0, NULL) != 1)
		fail("fi_av_insert");
}

static void serve_datagrams(void)
{
	open_datagrams(reply[1], order[0]);
	answer_all();
	compare();
}

static void serve(void)
{
	struct fi_eq_cm_entry entry;
	struct sockaddr_in addr;
	size_t len = sizeof(addr);
	unsigned int port;

	if (*provider) {
		serve_datagrams();
		return;
	}
	discover(0, FI_SOURCE);
	open_fabric();
	check(fi_passive_ep(fabric, info, &pep, NULL), "fi_passive_ep");
	check(fi_pep_bind(pep, &eq->fid, 0), "fi_pep_bind");
	check(fi_listen(pep), "fi_listen");
	check(fi_getname(&pep->fid, &addr, &len), "fi_getname");
	port = ntohs(addr.sin_port);
	if (write(reply[1], &port, sizeof(port)) != sizeof(port))
		fail("the client is gone");
	expect(FI_CONNREQ, &entry);
	/* the end of a receive also tells that the peer has hung up */
	open_endpoint(entry.info, kind == SEND ? window : 1);
	check(fi_accept(ep, NULL, 0), "fi_accept");
	fi_freeinfo(entry.info);
	expect(FI_CONNECTED, &entry);
	if (pingpong)
		answer();
	else
		receive();
	if (kind != READ)
		compare();
}

static void ask(void)
{
	struct fi_eq_cm_entry entry;
	unsigned int port;
	uint64_t start;

	if (*provider) {
		open_datagrams(order[1], reply[0]);
	} else {
		if (read(reply[0], &port, sizeof(port)) != sizeof(port))
			fail("the server is gone");
		discover(port, 0);
		open_fabric();
		open_endpoint(info, kind == SEND ? 1 : 0);
		check(fi_connect(ep, info->dest_addr, NULL, 0), "fi_connect");
		expect(FI_CONNECTED, &entry);
	}
	issue(warmup);
	start = now();
	issue(count);
	printf("%llu\n", (unsigned long long)(now() - start));
	fflush(stdout);
	if (pingpong || kind == READ)
		compare();
}

static bool parse(const char *text)
{
	static const char *const kinds[] = { "send", "write", "read" };
	char word[8];
	unsigned int i;

	*provider = '\0';
	if (sscanf(text, "%7s %u %zu %u %u %23s", word, &window, &size,
		   &warmup, &count, provider) < 5)
		return false;
	for (i = 0; i < 3 && strcmp(word, kinds[i]); i++)
		;
	kind = i;
	pingpong = kind == SEND && window == 1;
	return i < 3 && window && window <= WINDOW_MAX && size && warmup &&
	       count && (pingpong || !*provider);
}

/* One line: the part of either process in it */
static void part(const char *text, void (*what)(void))
{
	if (!parse(text))
		fail("that is not KIND WINDOW SIZE WARMUP COUNT [PROVIDER]");
	memset(xmit, 0, sizeof(xmit));
	under_way = 0;
	first = 0;
	tx = calloc(2 * window, size);
	if (!tx)
		fail("no memory");
	rx = tx + window * size;
	fill(tx, window * size);
	what();
	close_all();
	free(tx);
}

int main(void)
{
	char text[80];
	pid_t pid;

	if (pipe(order) || pipe(reply))
		return 1;
	pid = fork();
	if (pid < 0)
		return 1;
	if (!pid) {
		close(order[1]);
		while (read(order[0], text, sizeof(text)) == sizeof(text))
			part(text, serve);
		return 0;
	}
	close(reply[1]);
	while (fgets(text, sizeof(text), stdin)) {
		if (write(order[1], text, sizeof(text)) != sizeof(text))
			return 1;
		part(text, ask);
	}
	return 0;
}

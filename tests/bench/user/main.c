// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The ping-pong of kofi_bench.ko in user space, over libfabric's provider tcp:
 *
 *   kofi-bench-user server ADDRESS PORT SIZE
 *   kofi-bench-user client ADDRESS PORT SIZE WARMUP COUNT
 *
 * One process each, which sleeps in fi_cq_sread() until something has arrived,
 * posts the receive again and sends. The client prints how many nanoseconds
 * COUNT round trips took and hangs up; that ends the server.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#define BATCH		4
#define WAIT_MS		30000

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *eq;
static struct fid_cq *cq;
static struct fid_pep *pep;
static struct fid_ep *ep;
static char *tx, *rx;
static size_t size;

static void check(int ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "%s: %s\n", what, fi_strerror(-ret));
		exit(1);
	}
}

static void discover(const char *address, const char *port, uint64_t flags)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		exit(1);
	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_MSG;
	hints->fabric_attr->prov_name = strdup("tcp");
	check(fi_getinfo(FI_VERSION(1, 17), address, port, flags, hints, &info),
	      "fi_getinfo");
	fi_freeinfo(hints);
}

static void open_fabric(void)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	check(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	check(fi_eq_open(fabric, &attr, &eq, NULL), "fi_eq_open");
}

static void open_endpoint(struct fi_info *from)
{
	struct fi_cq_attr attr = {
		.format = FI_CQ_FORMAT_MSG,
		.wait_obj = FI_WAIT_UNSPEC,
		.size = 64,
	};

	check(fi_domain(fabric, from, &domain, NULL), "fi_domain");
	check(fi_cq_open(domain, &attr, &cq, NULL), "fi_cq_open");
	check(fi_endpoint(domain, from, &ep, NULL), "fi_endpoint");
	check(fi_ep_bind(ep, &eq->fid, 0), "fi_ep_bind");
	check(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	check(fi_enable(ep), "fi_enable");
	check(fi_recv(ep, rx, size, NULL, 0, rx), "fi_recv");
}

static void event(uint32_t want, struct fi_eq_cm_entry *entry)
{
	uint32_t got;
	ssize_t n = fi_eq_sread(eq, &got, entry, sizeof(*entry), WAIT_MS, 0);

	check(n, "fi_eq_sread");
	if (got != want) {
		fprintf(stderr, "event %u instead of %u\n", got, want);
		exit(1);
	}
}

/* Sleep until a message has arrived. False if the peer has hung up. */
static bool received(bool *busy)
{
	struct fi_cq_msg_entry entries[BATCH];
	bool got = false;

	while (!got) {
		ssize_t n = fi_cq_sread(cq, entries, BATCH, NULL, WAIT_MS);
		ssize_t i;

		if (n == -FI_EAVAIL)
			return false;
		check(n, "fi_cq_sread");
		for (i = 0; i < n; i++) {
			if (entries[i].op_context == rx)
				got = true;
			else
				*busy = false;
		}
	}
	return true;
}

static void send_message(bool *busy)
{
	if (*busy) {
		fprintf(stderr, "answered before it was sent\n");
		exit(1);
	}
	*busy = true;
	check(fi_send(ep, tx, size, NULL, 0, tx), "fi_send");
}

static void serve(void)
{
	struct fi_eq_cm_entry entry;
	bool busy = false;

	check(fi_passive_ep(fabric, info, &pep, NULL), "fi_passive_ep");
	check(fi_pep_bind(pep, &eq->fid, 0), "fi_pep_bind");
	check(fi_listen(pep), "fi_listen");
	event(FI_CONNREQ, &entry);
	open_endpoint(entry.info);
	check(fi_accept(ep, NULL, 0), "fi_accept");
	fi_freeinfo(entry.info);
	event(FI_CONNECTED, &entry);
	while (received(&busy)) {
		check(fi_recv(ep, rx, size, NULL, 0, rx), "fi_recv");
		send_message(&busy);
	}
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void ask(unsigned int warmup, unsigned int count)
{
	struct fi_eq_cm_entry entry;
	unsigned int i, total = warmup + count;
	bool busy = false;
	uint64_t start = 0;

	open_endpoint(info);
	check(fi_connect(ep, info->dest_addr, NULL, 0), "fi_connect");
	event(FI_CONNECTED, &entry);
	for (i = 0; i < total; i++) {
		if (i == warmup)
			start = now();
		if (i)
			check(fi_recv(ep, rx, size, NULL, 0, rx), "fi_recv");
		send_message(&busy);
		if (!received(&busy))
			check(-FI_EIO, "connection");
	}
	printf("%llu\n", (unsigned long long)(now() - start));
}

int main(int argc, char **argv)
{
	bool server = argc == 5 && !strcmp(argv[1], "server");
	bool client = argc == 7 && !strcmp(argv[1], "client");

	if (!server && !client) {
		fprintf(stderr,
			"usage: %s server ADDRESS PORT SIZE\n"
			"       %s client ADDRESS PORT SIZE WARMUP COUNT\n",
			argv[0], argv[0]);
		return 2;
	}
	size = strtoul(argv[4], NULL, 0);
	tx = calloc(1, size);
	rx = calloc(1, size);
	if (!size || !tx || !rx)
		return 2;
	discover(argv[2], argv[3], server ? FI_SOURCE : 0);
	open_fabric();
	if (server)
		serve();
	else
		ask(strtoul(argv[5], NULL, 0), strtoul(argv[6], NULL, 0));
	fi_close(&ep->fid);
	if (pep)
		fi_close(&pep->fid);
	fi_close(&cq->fid);
	fi_close(&domain->fid);
	fi_close(&eq->fid);
	fi_close(&fabric->fid);
	fi_freeinfo(info);
	free(tx);
	free(rx);
	return 0;
}

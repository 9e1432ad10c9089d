// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi-again-peer rdm|rxm ADDRESS PORT SERVER PORT MS
 *
 * A life of a program with an endpoint of type FI_EP_RDM at ADDRESS: it sends a message
 * to SERVER, says how long that took, at most MS milliseconds, and waits for its end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define TAG	0x55	/* which the server does not receive */

static struct fid_cq *cq;
static struct fid_ep *ep;
static fi_addr_t server;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void need(int err, const char *what)
{
	if (!err)
		return;
	printf("failed: %s: %s\n", what, fi_strerror(-err));
	exit(1);
}

/* tcp has had datagrams of its own since 2.0 */
static const char *provider(const char *protocol)
{
	if (!strcmp(protocol, "rxm"))
		return "tcp;ofi_rxm";
	return FI_VERSION_LT(fi_version(), FI_VERSION(2, 0)) ? "net" : "tcp";
}

static void begin(char **argv)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .size = 64 };
	struct fi_av_attr av_attr = { .type = FI_AV_UNSPEC };
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED | FI_MSG;
	hints->mode = FI_CONTEXT;
	hints->fabric_attr->prov_name = strdup(provider(argv[1]));
	hints->addr_format = FI_SOCKADDR_IN;
	need(fi_getinfo(FI_VERSION(1, 17), argv[2], argv[3], FI_SOURCE, hints, &info),
	     "fi_getinfo");
	need(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	need(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	need(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
	need(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
	need(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	need(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
	need(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	need(fi_enable(ep), "fi_enable");
	to.sin_port = htons(atoi(argv[5]));
	inet_pton(AF_INET, argv[4], &to.sin_addr);
	if (fi_av_insert(av, &to, 1, &server, 0, NULL) != 1)
		need(-EINVAL, "fi_av_insert");
}

/* What is refused for now, and what has ended with an error, is sent again. */
static void send_message(double until)
{
	static struct fi_context context;
	static char text[8] = "message";
	struct fi_cq_err_entry error;
	struct fi_cq_tagged_entry entry;
	int outstanding = 0;
	ssize_t n;

	while (now() < until) {
		if (!outstanding)
			outstanding = !fi_tsend(ep, text, sizeof(text), NULL, server, TAG,
						&context);
		n = fi_cq_read(cq, &entry, 1);
		if (n == 1)
			return;
		if (n == -FI_EAVAIL) {
			memset(&error, 0, sizeof(error));
			fi_cq_readerr(cq, &error, 0);
			outstanding = 0;
		}
		usleep(1000);
	}
	need(-FI_ETIMEDOUT, "sending");
}

int main(int argc, char **argv)
{
	double start;

	if (argc != 7)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	begin(argv);
	start = now();
	send_message(start + atoi(argv[6]));
	printf("sent after %.0f ms by process %d of libfabric %u.%u\n", now() - start,
	       (int)getpid(), FI_MAJOR(fi_version()), FI_MINOR(fi_version()));
	for (;;)
		pause();
}

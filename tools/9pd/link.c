// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections to kofi_9p.ko.
 *
 * A connection has as many receives and buffers for replies as the client may have
 * outstanding requests. It has some more receives, as a request may be answered before its
 * receive is posted again. All of that is one piece of memory, which is allocated when the
 * connection begins, so that no client can make it grow.
 *
 * All queues are waited for with file descriptors. For these libfabric uses
 * epoll_wait(); for FI_WAIT_UNSPEC it uses poll(), which checks each socket.
 *
 * Completions of sends are taken when room is needed: a sent reply is no reason to stop
 * waiting for the next request. If no room is left, the thread waits for a completion. That
 * wait is finite, as the client has a receive for each message that has been sent.
 * libfabric signals a queue for the first completion after such a wait, and not for
 * each.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include "link.h"
#include "../../clients/9p/proto.h"

/* Time between two checks whether the connection has been closed */
#define LINK_TICK	500	/* milliseconds */

/* Reports a failed call; returns whether it has succeeded. */
static bool good(int err, const char *what)
{
	if (err)
		report("%s: %s", what, fi_strerror(-err));
	return !err;
}

/**
 * listener_open - be there for clients
 * @l: zeroed
 * @prov: provider, "tcp" or "verbs"
 * @node: address to listen at
 * @port: port
 *
 * Return: 0, or a negative error code that has been reported.
 */
int listener_open(struct listener *l, const char *prov, const char *node,
		  const char *port)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_FD };
	struct fi_info *hints = fi_allocinfo();
	int err = -ENOMEM;

	if (!hints)
		return err;
	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_PROV_KEY |
				      FI_MR_VIRT_ADDR | FI_MR_ALLOCATED;
	hints->fabric_attr->prov_name = strdup(prov);
	if (hints->fabric_attr->prov_name)
		err = fi_getinfo(FI_VERSION(1, 17), node, port,
				 FI_SOURCE, hints, &l->info);
	fi_freeinfo(hints);
	if (err == -FI_ENODATA)
		complain("provider %s has no address %s", prov, node);
	else
		good(err, "fi_getinfo");
	if (err)
		return err;

	err = fi_fabric(l->info->fabric_attr, &l->fabric, NULL);
	if (good(err, "fi_fabric"))
		err = fi_eq_open(l->fabric, &attr, &l->eq, NULL);
	if (good(err, "fi_eq_open"))
		err = fi_passive_ep(l->fabric, l->info, &l->pep, NULL);
	if (!err)
		err = fi_pep_bind(l->pep, &l->eq->fid, 0);
	if (!err)
		err = fi_listen(l->pep);
	good(err, "listening");
	return err;
}

void listener_close(struct listener *l)
{
	if (l->pep)
		fi_close(&l->pep->fid);
	if (l->eq)
		fi_close(&l->eq->fid);
	if (l->fabric)
		fi_close(&l->fabric->fid);
	fi_freeinfo(l->info);
}

static int link_post(struct link *k, struct slot *slot)
{
	return fi_recv(k->ep, slot->bytes, k->msize, k->desc, 0,
		       &slot->context);
}

/**
 * link_bytes - bytes of memory that all messages take
 * @k: the connection
 *
 * Return: bytes.
 */
uint64_t link_bytes(const struct link *k)
{
	return (uint64_t)k->msize * (k->receives + k->credits);
}

static int link_alloc(struct link *k)
{
	unsigned int i, nr = k->receives + k->credits;
	int err = 0;

	k->slots = calloc(nr, sizeof(*k->slots));
	k->bytes = malloc(link_bytes(k));
	if (!k->slots || !k->bytes)
		return -ENOMEM;
	if (k->mr_local)
		err = fi_mr_reg(k->domain, k->bytes, link_bytes(k),
				FI_SEND | FI_RECV, 0, 0, 0, &k->mr, NULL);
	if (err)
		return err;
	k->desc = k->mr ? fi_mr_desc(k->mr) : NULL;
	for (i = 0; i < nr; i++) {
		struct slot *slot = &k->slots[i];

		slot->bytes = k->bytes + (size_t)i * k->msize;
		slot->send = i >= k->receives;
		if (slot->send) {
			slot->next = k->idle;
			k->idle = slot;
		}
	}
	return 0;
}

static int link_objects(struct link *k)
{
	struct fi_cq_attr rx = {
		.size = k->receives, .format = FI_CQ_FORMAT_MSG,
		.wait_obj = FI_WAIT_FD,
	};
	struct fi_cq_attr tx = {
		.size = k->credits, .format = FI_CQ_FORMAT_MSG,
		.wait_obj = FI_WAIT_FD,
	};
	struct fi_info *info = k->info;
	struct listener *l = k->listener;
	unsigned int i;
	int err;

	info->tx_attr->size = k->credits;
	info->rx_attr->size = k->receives;
	err = fi_domain(l->fabric, info, &k->domain, NULL);
	if (!err)
		err = link_alloc(k);
	if (!err)
		err = fi_cq_open(k->domain, &rx, &k->rx_cq, NULL);
	if (!err)
		err = fi_cq_open(k->domain, &tx, &k->tx_cq, NULL);
	if (!err)
		err = fi_endpoint(k->domain, info, &k->ep, NULL);
	if (!err)
		err = fi_ep_bind(k->ep, &l->eq->fid, 0);
	if (!err)
		err = fi_ep_bind(k->ep, &k->rx_cq->fid, FI_RECV);
	if (!err)
		err = fi_ep_bind(k->ep, &k->tx_cq->fid, FI_TRANSMIT);
	if (!err)
		err = fi_enable(k->ep);
	for (i = 0; i < k->receives && !err; i++)
		err = link_post(k, &k->slots[i]);
	return err;
}

/* Limits that both sides support; false if the peer speaks another protocol. */
static bool link_agree(struct link *k, const void *data, size_t len)
{
	struct k9_hello h;

	if (len < sizeof(h))
		return false;
	memcpy(&h, data, sizeof(h));
	if (le32toh(h.magic) != K9_MAGIC || le16toh(h.version) != K9_VERSION)
		return false;
	if (le16toh(h.credits) < k->credits)
		k->credits = le16toh(h.credits);
	if (le32toh(h.msize) < k->msize)
		k->msize = le32toh(h.msize);
	k->receives = k->credits + LINK_BATCH;
	return k->credits >= K9_CREDITS_MIN && k->msize >= K9_MSIZE_MIN;
}

/**
 * link_refuse - refuse a client
 * @l: the listener
 * @info: fi_info of the request, freed
 */
void link_refuse(struct listener *l, struct fi_info *info)
{
	fi_reject(l->pep, info->handle, NULL, 0);
	fi_freeinfo(info);
}

/**
 * link_open - check a client's request, and create its connection
 * @l: the listener
 * @info: fi_info of the request, freed when the connection is closed
 * @data: private data of the request
 * @len: bytes of @data
 * @credits: most requests that the client may have outstanding
 * @msize: longest message of the client in bytes
 * @room: most bytes of its messages
 *
 * Return: the connection, or NULL after the reason has been reported; it has been
 * refused then.
 */
struct link *link_open(struct listener *l, struct fi_info *info,
		       const void *data, size_t len, unsigned int credits,
		       uint32_t msize, uint64_t room)
{
	struct link *k = calloc(1, sizeof(*k));
	int err;

	if (!k) {
		report("a client is refused: %s", strerror(ENOMEM));
		link_refuse(l, info);
		return NULL;
	}
	k->listener = l;
	k->info = info;
	k->ready_end = &k->ready;
	k->credits = credits;
	k->msize = msize;
	k->mr_local = info->domain_attr->mr_mode & FI_MR_LOCAL;
	if (!link_agree(k, data, len)) {
		report("a client is refused: it does not speak this protocol");
	} else if (link_bytes(k) > room) {
		report("a client is refused: its messages take %llu bytes, %llu are left",
		       (unsigned long long)link_bytes(k),
		       (unsigned long long)room);
	} else {
		err = link_objects(k);
		if (good(err, "a client is refused"))
			return k;
	}
	link_close(k);
	return NULL;
}

/**
 * link_accept - take the client
 * @k: the connection
 *
 * Return: 0, or a negative error code that has been reported.
 */
int link_accept(struct link *k)
{
	const struct k9_hello h = {
		.magic = htole32(K9_MAGIC), .version = htole16(K9_VERSION),
		.credits = htole16(k->credits), .msize = htole32(k->msize),
	};
	int err = fi_accept(k->ep, &h, sizeof(h));

	good(err, "accepting a client");
	return err;
}

static bool link_is_down(const struct link *k)
{
	return __atomic_load_n(&k->down, __ATOMIC_ACQUIRE);
}

static void link_completed(struct link *k, struct slot *slot, size_t len)
{
	if (slot->send) {
		slot->next = k->idle;
		k->idle = slot;
		return;
	}
	slot->len = len;
	slot->next = NULL;
	*k->ready_end = slot;
	k->ready_end = &slot->next;
}

/* Called once, or once for each queue: closing the connection fails all posted operations. */
static void link_failed(struct link *k, struct fid_cq *cq, ssize_t n)
{
	struct fi_cq_err_entry e = {};

	if (n != -FI_EAVAIL)
		report("fi_cq_read: %s", fi_strerror(-n));
	else if (fi_cq_readerr(cq, &e, 0) == 1 && e.err != FI_ECANCELED &&
		 !link_is_down(k))
		report("a client's connection fails: %s (%s)",
		       fi_strerror(e.err),
		       fi_cq_strerror(cq, e.prov_errno, e.err_data, NULL, 0));
	link_down(k);
}

/*
 * Take completions of CQ, and wait TIMEOUT milliseconds for the first one.
 * Returns 0, or -ENOTCONN when the connection has ended.
 */
static int link_read(struct link *k, struct fid_cq *cq, int timeout)
{
	struct fi_cq_msg_entry e[LINK_BATCH];
	ssize_t n, i;

	n = timeout ? fi_cq_sread(cq, e, LINK_BATCH, NULL, timeout) :
		      fi_cq_read(cq, e, LINK_BATCH);
	for (i = 0; i < n; i++)
		link_completed(k, (struct slot *)((char *)e[i].op_context -
						  offsetof(struct slot, context)),
			       e[i].len);
	if (link_is_down(k))
		return -ENOTCONN;
	if (n >= 0 || n == -FI_EAGAIN || n == -FI_EINTR || n == -FI_ETIMEDOUT)
		return 0;
	link_failed(k, cq, n);
	return -ENOTCONN;
}

/**
 * link_progress - receive the messages that have arrived
 * @k: the connection
 *
 * Return: 0, or -ENOTCONN when the connection has been closed.
 */
int link_progress(struct link *k)
{
	return link_read(k, k->rx_cq, 0);
}

static time_t seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/**
 * link_recv - wait for messages
 * @k: the connection
 * @slots: room for %LINK_BATCH of them, to be released
 *
 * Return: how many there are, -ENOTCONN when the connection has ended, or -ETIMEDOUT
 * if the client has not sent its first one in time.
 */
int link_recv(struct link *k, struct slot **slots)
{
	const time_t end = seconds() + LINK_FIRST;
	int n = 0;

	while (!k->ready) {
		if (link_read(k, k->rx_cq, LINK_TICK))
			return -ENOTCONN;
		if (!k->ready && !k->begun && seconds() > end)
			return -ETIMEDOUT;
	}
	k->begun = true;
	while (k->ready && n < LINK_BATCH) {
		slots[n++] = k->ready;
		k->ready = k->ready->next;
	}
	if (!k->ready)
		k->ready_end = &k->ready;
	return n;
}

/**
 * link_release - give the room of a message back
 * @k: the connection
 * @slot: from link_recv()
 *
 * Return: 0 or a negative error code.
 */
int link_release(struct link *k, struct slot *slot)
{
	return link_post(k, slot);
}

/**
 * link_slot - wait for room for a message
 * @k: the connection
 *
 * Return: the room, or NULL when the connection has ended.
 */
struct slot *link_slot(struct link *k)
{
	struct slot *slot;

	while (!k->idle) {
		if (link_read(k, k->tx_cq, LINK_TICK))
			return NULL;
	}
	slot = k->idle;
	k->idle = slot->next;
	return link_is_down(k) ? NULL : slot;
}

/**
 * link_send - send a message
 * @k: the connection
 * @slot: from link_slot()
 * @len: bytes
 *
 * Return: 0, or -ENOTCONN when the connection has ended.
 */
int link_send(struct link *k, struct slot *slot, size_t len)
{
	ssize_t n;

	do {
		n = fi_send(k->ep, slot->bytes, len, k->desc, 0,
			    &slot->context);
	} while (n == -FI_EAGAIN && !link_read(k, k->tx_cq, LINK_TICK));
	if (!n)
		return 0;
	if (n != -FI_EAGAIN && !link_is_down(k))
		report("fi_send: %s", fi_strerror(-n));
	link_down(k);
	return -ENOTCONN;
}

/**
 * link_down - make both threads return
 * @k: the connection
 */
void link_down(struct link *k)
{
	__atomic_store_n(&k->down, true, __ATOMIC_RELEASE);
	fi_cq_signal(k->rx_cq);
	fi_cq_signal(k->tx_cq);
}

/**
 * link_close - close a connection after its threads have returned
 * @k: the connection, refused if it has not been accepted
 */
void link_close(struct link *k)
{
	if (k->ep) {
		/* the endpoint owns the request */
		fi_shutdown(k->ep, 0);
		fi_close(&k->ep->fid);
	} else {
		fi_reject(k->listener->pep, k->info->handle, NULL, 0);
	}
	if (k->rx_cq)
		fi_close(&k->rx_cq->fid);
	if (k->tx_cq)
		fi_close(&k->tx_cq->fid);
	if (k->mr)
		fi_close(&k->mr->fid);
	if (k->domain)
		fi_close(&k->domain->fid);
	fi_freeinfo(k->info);
	free(k->slots);
	free(k->bytes);
	free(k);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections to kofi_9p.ko.
 *
 * A connection has a receive for each request the client may have outstanding,
 * one more because a request may have been answered before its receive is posted
 * again, and as many buffers for replies as requests. All of that is one piece of
 * memory, which is allocated when the connection begins, so that no client can
 * make it grow.
 *
 * All completions are taken by the thread that receives.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include "link.h"
#include "../../samples/9p/proto.h"

/* How long a thread waits before it looks whether the connection has ended */
#define LINK_TICK	500	/* milliseconds */
/* and before it tries again what was refused for want of room */
#define SEND_TICK	10	/* milliseconds */

/* Says what has failed; returns whether nothing has. */
static bool good(int err, const char *what)
{
	if (err)
		complain("%s: %s", what, fi_strerror(-err));
	return !err;
}

/**
 * listener_open - be there for clients
 * @l: zeroed
 * @prov: provider, "tcp" or "verbs"
 * @node: address to listen at, or NULL for all
 * @port: port
 *
 * Return: 0, or a negative error code that has been reported.
 */
int listener_open(struct listener *l, const char *prov, const char *node,
		  const char *port)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
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
		complain("provider %s has no address %s", prov,
			 node ? node : "at all");
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

/* Memory for all messages */
static int link_alloc(struct link *k)
{
	unsigned int i, nr = k->receives + k->credits;
	int err = 0;

	k->slots = calloc(nr, sizeof(*k->slots));
	k->bytes = malloc((size_t)nr * k->msize);
	if (!k->slots || !k->bytes)
		return -ENOMEM;
	if (k->mr_local)
		err = fi_mr_reg(k->domain, k->bytes, (size_t)nr * k->msize,
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
	struct fi_cq_attr attr = {
		.size = k->receives + k->credits,
		.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_UNSPEC,
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
		err = fi_cq_open(k->domain, &attr, &k->cq, NULL);
	if (!err)
		err = fi_endpoint(k->domain, info, &k->ep, NULL);
	if (!err)
		err = fi_ep_bind(k->ep, &l->eq->fid, 0);
	if (!err)
		err = fi_ep_bind(k->ep, &k->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!err)
		err = fi_enable(k->ep);
	for (i = 0; i < k->receives && !err; i++)
		err = link_post(k, &k->slots[i]);
	return err;
}

/* What both sides can do; false if they do not understand each other. */
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
	k->receives = k->credits + 1;
	return k->credits >= K9_CREDITS_MIN && k->msize >= K9_MSIZE_MIN;
}

/**
 * link_refuse - refuse a client
 * @l: the listener
 * @info: of its request, freed
 */
void link_refuse(struct listener *l, struct fi_info *info)
{
	fi_reject(l->pep, info->handle, NULL, 0);
	fi_freeinfo(info);
}

/**
 * link_open - look at a client's request, and make what its connection needs
 * @l: the listener
 * @info: of its request, freed when the connection is closed
 * @data: its private data
 * @len: bytes of @data
 * @credits: most requests it may have outstanding
 * @msize: longest message it may have
 *
 * Return: the connection, or NULL after the reason has been reported; it has been
 * refused then.
 */
struct link *link_open(struct listener *l, struct fi_info *info,
		       const void *data, size_t len, unsigned int credits,
		       uint32_t msize)
{
	struct link *k = calloc(1, sizeof(*k));
	int err = -EPROTONOSUPPORT;

	if (!k) {
		complain("a client is refused: %s", strerror(ENOMEM));
		link_refuse(l, info);
		return NULL;
	}
	pthread_mutex_init(&k->lock, NULL);
	pthread_cond_init(&k->wake, NULL);
	k->listener = l;
	k->info = info;
	k->ready_end = &k->ready;
	k->credits = credits;
	k->msize = msize;
	k->mr_local = info->domain_attr->mr_mode & FI_MR_LOCAL;
	if (link_agree(k, data, len))
		err = link_objects(k);
	if (good(err, "a client is refused"))
		return k;
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
	if (!slot->send) {
		slot->len = len;
		slot->next = NULL;
		*k->ready_end = slot;
		k->ready_end = &slot->next;
		return;
	}
	pthread_mutex_lock(&k->lock);
	slot->next = k->idle;
	k->idle = slot;
	pthread_cond_signal(&k->wake);
	pthread_mutex_unlock(&k->lock);
}

/* Once: all that is posted ends so. */
static void link_failed(struct link *k, ssize_t n)
{
	struct fi_cq_err_entry e = {};

	if (n != -FI_EAVAIL)
		complain("fi_cq_read: %s", fi_strerror(-n));
	else if (fi_cq_readerr(k->cq, &e, 0) == 1 && e.err != FI_ECANCELED)
		complain("a client's connection ends: %s (%s)",
			 fi_strerror(e.err),
			 fi_cq_strerror(k->cq, e.prov_errno, e.err_data, NULL,
					0));
	link_down(k);
}

/**
 * link_progress - take completions
 * @k: the connection
 * @timeout: how long to wait for the first one, in milliseconds
 *
 * Return: 0, or -ENOTCONN when the connection has ended.
 */
int link_progress(struct link *k, int timeout)
{
	struct fi_cq_msg_entry e;
	struct slot *slot;
	ssize_t n;

	n = timeout ? fi_cq_sread(k->cq, &e, 1, NULL, timeout) :
		      fi_cq_read(k->cq, &e, 1);
	while (n == 1) {
		slot = (struct slot *)((char *)e.op_context -
				       offsetof(struct slot, context));
		link_completed(k, slot, e.len);
		n = fi_cq_read(k->cq, &e, 1);
	}
	if (link_is_down(k))
		return -ENOTCONN;
	if (n == -FI_EAGAIN || n == -FI_EINTR || n == -FI_ETIMEDOUT)
		return 0;
	link_failed(k, n);
	return -ENOTCONN;
}

/**
 * link_recv - wait for a message
 * @k: the connection
 * @slot: the message, to be released
 *
 * Return: 0, or -ENOTCONN when the connection has ended.
 */
int link_recv(struct link *k, struct slot **slot)
{
	while (!k->ready) {
		if (link_progress(k, LINK_TICK))
			return -ENOTCONN;
	}
	*slot = k->ready;
	k->ready = k->ready->next;
	if (!k->ready)
		k->ready_end = &k->ready;
	return 0;
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

	pthread_mutex_lock(&k->lock);
	while (!k->idle && !k->down)
		pthread_cond_wait(&k->wake, &k->lock);
	slot = k->down ? NULL : k->idle;
	if (slot)
		k->idle = slot->next;
	pthread_mutex_unlock(&k->lock);
	return slot;
}

/*
 * Wait until there may be room: a send has completed, or some time has passed.
 * Returns whether the connection has ended.
 */
static bool link_wait(struct link *k)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += SEND_TICK * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&k->lock);
	pthread_cond_clockwait(&k->wake, &k->lock, CLOCK_MONOTONIC, &until);
	pthread_mutex_unlock(&k->lock);
	return link_is_down(k);
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
	} while (n == -FI_EAGAIN && !link_wait(k));
	if (!n)
		return 0;
	if (n != -FI_EAGAIN && !link_is_down(k))
		complain("fi_send: %s", fi_strerror(-n));
	link_down(k);
	return -ENOTCONN;
}

/**
 * link_down - have both threads end
 * @k: the connection
 */
void link_down(struct link *k)
{
	pthread_mutex_lock(&k->lock);
	__atomic_store_n(&k->down, true, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&k->wake);
	pthread_mutex_unlock(&k->lock);
	fi_cq_signal(k->cq);
}

/**
 * link_close - end a connection that no thread uses any more
 * @k: the connection, refused if it has not been accepted
 */
void link_close(struct link *k)
{
	if (k->ep) {
		/* with an endpoint, the request is its own */
		fi_shutdown(k->ep, 0);
		fi_close(&k->ep->fid);
	} else {
		fi_reject(k->listener->pep, k->info->handle, NULL, 0);
	}
	if (k->cq)
		fi_close(&k->cq->fid);
	if (k->mr)
		fi_close(&k->mr->fid);
	if (k->domain)
		fi_close(&k->domain->fid);
	fi_freeinfo(k->info);
	free(k->slots);
	free(k->bytes);
	pthread_cond_destroy(&k->wake);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The connection of a mount.
 *
 * Connecting
 *
 * All receives are posted before the connection is requested. Then both sides
 * state their number of receives, which limits the outstanding requests.
 *
 * Termination
 *
 * A connection is terminated once, for the first of these reasons: the server
 * has closed it or is dead, a receive or a send has failed, a reply violates
 * the protocol, or the file system is unmounted. All requests that wait for a
 * reply fail with that reason, and 9p starts no further ones. The transport
 * does not reconnect, because the server has forgotten the open files. The kOFI
 * objects stay open until 9p closes the transport.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "kofi_9p.h"

#define K9_IDLE		15000	/* milliseconds of silence before the server is probed */

/* Translate an error; codes of fabrics mean nothing to a file system. */
static int k9_errno(int err)
{
	return err < FI_ERRNO_OFFSET ? -err : -EIO;
}

/* ---------------------------------------------------------------- buffers */

/**
 * k9_buf_free - undo k9_buf_alloc()
 * @buf: the buffer, or zeroed
 */
void k9_buf_free(struct k9_buf *buf)
{
	unsigned int i;

	for (i = 0; i < buf->nr; i++)
		__free_pages(buf->bv[i].bv_page,
			     compound_order(buf->bv[i].bv_page));
	buf->nr = 0;
	buf->size = 0;
}

/**
 * k9_buf_alloc - allocate a buffer for a message
 * @buf: zeroed
 * @size: bytes of the message
 * @segs: most segments
 * @gfp: flags for the pages
 *
 * Return: 0 or -ENOMEM.
 */
int k9_buf_alloc(struct k9_buf *buf, size_t size, unsigned int segs, gfp_t gfp)
{
	unsigned int order = get_order(DIV_ROUND_UP(size, segs));
	size_t piece = PAGE_SIZE << order;

	buf->size = size;
	while (size) {
		struct page *page = alloc_pages(gfp | __GFP_COMP | __GFP_NOWARN,
						order);

		if (!page) {
			k9_buf_free(buf);
			return -ENOMEM;
		}
		bvec_set_page(&buf->bv[buf->nr++], page, min(size, piece), 0);
		size -= min(size, piece);
	}
	return 0;
}

static int k9_rx_alloc(struct k9_conn *c)
{
	unsigned int i;
	int err = 0;

	c->rx = kvcalloc(c->rq, sizeof(*c->rx), GFP_KERNEL);
	if (!c->rx)
		return -ENOMEM;
	for (i = 0; i < c->rq && !err; i++) {
		c->rx[i].c = c;
		err = k9_buf_alloc(&c->rx[i].buf, c->msize, c->segs,
				   GFP_KERNEL);
	}
	return err;
}

static void k9_rx_free(struct k9_conn *c)
{
	unsigned int i;

	for (i = 0; c->rx && i < c->rq; i++)
		k9_buf_free(&c->rx[i].buf);
	kvfree(c->rx);
}

/* ------------------------------------------------------------ termination */

/**
 * k9_conn_end - mark a connection as failed
 * @c: the connection
 * @err: reason, a negative error code; only the first call counts
 *
 * Context: any but hard interrupts.
 */
void k9_conn_end(struct k9_conn *c, int err)
{
	bool first;

	spin_lock_bh(&c->lock);
	first = !c->err;
	if (first)
		WRITE_ONCE(c->err, err);
	spin_unlock_bh(&c->lock);
	if (!first)
		return;
	p9_debug(P9_DEBUG_TRANS, "client %p: connection ends: %d\n", c->client,
		 err);
	c->client->status = Disconnected;
	k9_ops_fail(c, err);
	wake_up_all(&c->wq);
}

/*
 * Abort the endpoint after a protocol violation, from a context that may sleep:
 * nothing more is received from the server or sent to it, as all requests have
 * failed.
 */
static void k9_conn_violated(struct work_struct *work)
{
	struct k9_conn *c = container_of(work, struct k9_conn, violated);

	kofi_ep_abort(c->ep);
}

/* Test that the connection works and that no request is outstanding. */
static bool k9_conn_quiet(struct k9_conn *c)
{
	bool quiet;

	spin_lock_bh(&c->lock);
	quiet = !c->err && c->nr == list_count_nodes(&c->idle[false]) +
				    list_count_nodes(&c->idle[true]);
	spin_unlock_bh(&c->lock);
	return quiet;
}

static void k9_conn_free(struct k9_conn *c)
{
	if (c->ep)
		fi_close(&c->ep->fid);
	/* waits for the event handler */
	if (c->eq)
		fi_close(&c->eq->fid);
	if (c->cq)
		fi_close(&c->cq->fid);
	if (c->domain)
		fi_close(&c->domain->fid);
	if (c->fabric)
		fi_close(&c->fabric->fid);
	fi_freeinfo(c->info);
	k9_ops_free(c);
	k9_rx_free(c);
	kfree(c);
}

/**
 * k9_conn_close - p9_trans_module.close
 * @client: client of the mount, no longer used; replies to interrupted requests
 *	may still be outstanding
 */
void k9_conn_close(struct p9_client *client)
{
	struct k9_conn *c = client->trans;
	bool quiet;

	if (!c)
		return;
	client->trans = NULL;
	quiet = k9_conn_quiet(c);
	k9_conn_end(c, -ESHUTDOWN);
	/* from here on no completion queues the work */
	if (c->ep && quiet)
		kofi_ep_drain(c->ep);
	else if (c->ep)
		kofi_ep_abort(c->ep);
	k9_rx_retry(c);
	cancel_work_sync(&c->violated);
	k9_conn_free(c);
}

/* -------------------------------------------------------------- beginning */

static void k9_conn_connected(struct k9_conn *c, const void *data, size_t len)
{
	struct k9_hello *h = &c->hello;

	if (len < sizeof(*h)) {
		c->status = -EPROTO;
		return;
	}
	memcpy(h, data, sizeof(*h));
	if (le32_to_cpu(h->magic) != K9_MAGIC ||
	    le16_to_cpu(h->version) != K9_VERSION ||
	    le16_to_cpu(h->credits) < K9_CREDITS_MIN ||
	    le32_to_cpu(h->msize) < K9_MSIZE_MIN)
		c->status = -EPROTO;
}

/* Write-space callback: the endpoint has room after a refused post. */
static void k9_conn_space(struct fid_ep *ep, void *context)
{
	struct k9_conn *c = context;

	k9_rx_retry(c);
	wake_up(&c->wq);
}

/* Event handler, called in a work item */
static void k9_conn_event(struct fid_eq *eq, void *context)
{
	union {
		struct fi_eq_cm_entry	cm;
		u8			room[sizeof(struct fi_eq_cm_entry) +
					     sizeof(struct k9_hello)];
	} buf;
	struct k9_conn *c = context;
	u32 event;
	ssize_t n;

	while ((n = fi_eq_read(eq, &event, &buf, sizeof(buf), 0)) != -EAGAIN) {
		if (n == -FI_EAVAIL) {
			struct fi_eq_err_entry err = {};

			if (fi_eq_readerr(eq, &err, 0) < 0)
				continue;
			c->status = k9_errno(err.err) ?: -EIO;
			k9_conn_end(c, c->status);
			complete(&c->answered);
		} else if (n < 0) {
			break;
		} else if (event == FI_CONNECTED) {
			k9_conn_connected(c, buf.cm.data, n - sizeof(buf.cm));
			complete(&c->answered);
		} else if (event == FI_SHUTDOWN) {
			k9_conn_end(c, -ECONNRESET);
		}
	}
}

static int k9_conn_find(struct k9_conn *c, const char *prov, const char *node)
{
	struct fi_info *hints = fi_allocinfo();
	char port[8];
	int err = -ENOMEM;

	if (!hints)
		return -ENOMEM;
	snprintf(port, sizeof(port), "%u", c->port);
	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_MSG;
	hints->tx_attr->size = c->rq;
	hints->rx_attr->size = c->rq;
	hints->fabric_attr->prov_name = kstrdup(prov, GFP_KERNEL);
	if (hints->fabric_attr->prov_name)
		err = fi_getinfo(FI_VERSION(2, 1), node, port, FI_NUMERICHOST,
				 hints, &c->info);
	fi_freeinfo(hints);
	if (err)
		return err;
	c->segs = min3(c->info->rx_attr->iov_limit, c->info->tx_attr->iov_limit,
		       (size_t)K9_SEGS);
	c->msize = min_t(size_t, c->msize, c->info->ep_attr->max_msg_size);
	return 0;
}

/*
 * Enable keepalive. If a server loses power before it replies, nothing is being
 * sent that would detect it. Devices probe only on request.
 */
static int k9_conn_probe(struct k9_conn *c)
{
	unsigned int idle = 0;
	int err;

	err = fi_get_val(&c->ep->fid, KOFI_VAL_KEEPALIVE_IDLE, &idle);
	if (!err && !idle) {
		idle = K9_IDLE;
		err = fi_set_val(&c->ep->fid, KOFI_VAL_KEEPALIVE_IDLE, &idle);
	}
	/* on iWARP, TCP sends probes */
	return err == -EOPNOTSUPP ? 0 : err;
}

/* Open the objects of kOFI. After an error, k9_conn_free() closes them. */
static int k9_conn_objects(struct k9_conn *c)
{
	const struct kofi_cq_attr kattr = {
		.poll = KOFI_POLL_SOFTIRQ, .done = true,
	};
	struct fi_cq_attr cq_attr = { .size = 2 * c->rq };
	struct fi_eq_attr eq_attr = {};
	int err;

	err = fi_fabric(c->info->fabric_attr, &c->fabric, c);
	if (err)
		return err;
	err = kofi_eq_open(c->fabric, &eq_attr, k9_conn_event, &c->eq, c);
	if (err)
		return err;
	err = fi_domain(c->fabric, c->info, &c->domain, c);
	if (err)
		return err;
	err = kofi_cq_open(c->domain, &cq_attr, &kattr, &c->cq, c);
	if (err)
		return err;
	err = fi_endpoint(c->domain, c->info, &c->ep, c);
	if (err)
		return err;
	err = fi_ep_bind(c->ep, &c->eq->fid, 0);
	if (err)
		return err;
	err = fi_ep_bind(c->ep, &c->cq->fid, FI_TRANSMIT | FI_RECV);
	if (err)
		return err;
	err = k9_conn_probe(c);
	if (err)
		return err;
	err = kofi_ep_write_space(c->ep, k9_conn_space);
	if (err)
		return err;
	return fi_enable(c->ep);
}

static int k9_conn_connect(struct k9_conn *c)
{
	const struct k9_hello hello = {
		.magic = cpu_to_le32(K9_MAGIC),
		.version = cpu_to_le16(K9_VERSION),
		.credits = cpu_to_le16(c->rq),
		.msize = cpu_to_le32(c->msize),
	};
	unsigned int i;
	int err;

	for (i = 0; i < c->rq; i++) {
		err = k9_rx_post(&c->rx[i]);
		/* nothing waits for room yet, so -EAGAIN is final */
		if (err)
			return err == -EAGAIN ? -ENOMEM : err;
	}
	err = fi_connect(c->ep, c->info->dest_addr, &hello, sizeof(hello));
	if (err)
		return err;
	/* completed in bounded time, by one event */
	err = wait_for_completion_killable(&c->answered);
	if (err)
		return err;
	return c->status;
}

/**
 * k9_conn_open - p9_trans_module.create
 * @client: client of the mount
 * @prov: provider
 * @node: address of the server
 * @port: port of the server
 * @rq: number of receives, which limits outstanding requests
 *
 * Return: 0, or a negative error code, after which there is no transport.
 */
int k9_conn_open(struct p9_client *client, const char *prov, const char *node,
		 u16 port, unsigned int rq)
{
	struct k9_conn *c;
	int err;

	if (!node || !port || rq < K9_CREDITS_MIN || rq > K9_CREDITS_MAX)
		return -EINVAL;
	c = kzalloc(sizeof(*c), GFP_KERNEL);
	if (!c)
		return -ENOMEM;
	c->client = client;
	c->port = port;
	c->rq = rq;
	c->msize = min(client->msize, K9_MSIZE_MAX);
	spin_lock_init(&c->lock);
	init_waitqueue_head(&c->wq);
	init_completion(&c->answered);
	INIT_WORK(&c->violated, k9_conn_violated);
	INIT_LIST_HEAD(&c->idle[false]);
	INIT_LIST_HEAD(&c->idle[true]);
	INIT_LIST_HEAD(&c->refused);
	client->trans = c;
	client->status = Connected;

	err = k9_conn_find(c, prov, node);
	if (err)
		goto close;
	err = k9_conn_objects(c);
	if (err)
		goto close;
	err = k9_rx_alloc(c);
	if (err)
		goto close;
	err = k9_conn_connect(c);
	if (err)
		goto close;
	c->msize = min(c->msize, le32_to_cpu(c->hello.msize));
	client->msize = c->msize;
	err = k9_ops_alloc(c, min_t(unsigned int, rq,
				    le16_to_cpu(c->hello.credits)));
	if (err)
		goto close;
	return 0;
close:
	k9_conn_close(client);
	return err;
}

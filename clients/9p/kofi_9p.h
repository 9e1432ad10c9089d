/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofi_9p.ko: a transport of the kernel's 9p client over kOFI.
 */
#ifndef _KOFI_9P_H
#define _KOFI_9P_H

#include <linux/bvec.h>
#include <linux/completion.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/9p/9p.h>
#include <net/9p/client.h>
#include <linux/kofi/kofi.h>

#include "proto.h"

#define K9_SEGS		16	/* segments of a long message */

/* Layout of every 9P message: size, type, tag */
#define K9_TYPE		4
#define K9_TAG		5
#define K9_HEADER	7
/* Tflush: offset of the interrupted request's tag */
#define K9_OLDTAG	7
/* Replies with data: offsets of the byte count and of the data */
#define K9_COUNT	7
#define K9_DATA		11

struct k9_conn;

/**
 * struct k9_buf - buffer for one message
 * @size: size in bytes
 * @nr: number of segments
 * @bv: segments, each contiguous in physical memory
 */
struct k9_buf {
	size_t		size;
	unsigned int	nr;
	struct bio_vec	bv[K9_SEGS];
};

/**
 * struct k9_rx - receive, posted again after its replies have been used
 * @cqe: completion handler of the receive
 * @c: connection of the receive
 * @buf: buffer for the replies
 * @users: number of contexts that use the replies; meaningless while the
 *	receive is posted
 * @node: entry of k9_conn.refused; protected by k9_conn.lock
 * @op: operation that stays outstanding until a refused receive has been
 *	posted; protected by k9_conn.lock
 */
struct k9_rx {
	struct kofi_cqe		cqe;
	struct k9_conn		*c;
	struct k9_buf		buf;
	refcount_t		users;
	/* protected by c->lock */
	struct list_head	node;
	struct k9_op		*op;
};

/**
 * struct k9_reply - reply in a receive
 * @rx: receive that holds the reply
 * @off: offset of the reply in the receive
 * @len: length of the reply in bytes
 * @head: copy of the first bytes, at most @len
 */
struct k9_reply {
	struct k9_rx		*rx;
	size_t			off;
	size_t			len;
	u8			head[K9_DATA];
};

/**
 * struct k9_op - outstanding request, and the right to have one. There are as
 * many as the smaller number of receives of both sides.
 * @sent: completion handler of the send
 * @node: entry of k9_conn.idle; protected by k9_conn.lock
 * @c: connection of the operation
 * @flush: reserved for Tflush
 * @users: references: of the reply, the send, the reader, and a refused
 *	receive; protected by k9_conn.lock
 * @req: request that waits for a reply, with a reference; NULL if no reply is
 *	expected; protected by k9_conn.lock
 * @old: Tflush: interrupted request, with a reference, so that its tag is not
 *	reused before Rflush arrives; protected by k9_conn.lock
 * @sending: request that is being sent, with a reference; NULL if it was copied
 * @read: data of the reply is copied to the reader's pages, not into @req
 * @left: the reader has gone; protected by k9_conn.lock
 * @room: most bytes of such data; for a write, the number of bytes sent
 * @rx: receive with data for the reader, or NULL; protected by k9_conn.lock
 * @off: offset of that data in @rx; protected by k9_conn.lock
 * @len: length of that data in bytes; protected by k9_conn.lock
 * @sg: memory of the caller that is being sent
 * @nr: used entries of @sg; the first entry is the header
 * @bounce: buffer for data that cannot be sent from @sg; allocated on first use
 */
struct k9_op {
	struct kofi_cqe		sent;
	struct list_head	node;
	struct k9_conn		*c;
	bool			flush;
	/* protected by c->lock */
	unsigned int		users;
	struct p9_req_t		*req;
	bool			left;
	struct k9_rx		*rx;
	size_t			off;
	size_t			len;
	struct p9_req_t		*old;
	/* used only by the context that took the operation */
	struct p9_req_t		*sending;
	bool			read;
	unsigned int		room;
	struct scatterlist	*sg;
	unsigned int		nr;
	struct k9_buf		bounce;
};

/**
 * struct k9_conn - connection of a mount
 * @client: 9p client of the mount
 * @port: port of the server
 * @rq: requested number of receives
 * @msize: bytes of the longest message
 * @segs: most segments of a message
 * @info: result of discovery
 * @fabric: fabric; as the other kOFI objects, NULL while not open
 * @eq: event queue
 * @domain: domain
 * @cq: completion queue
 * @ep: endpoint
 * @answered: completed after the attempt to connect; @status has the result
 * @status: 0 or a negative error code
 * @hello: private data of the server
 * @sg_max: most entries of a list that the device can send, as far as known;
 *	written and read without a lock, since an old value costs only a refused post
 * @nr: number of @ops
 * @ops: requests that may be outstanding
 * @rx: array of @rq receives
 * @violated: work item that closes the connection after a protocol violation
 * @wq: wait queue for unused operations and for room to send
 * @lock: protects the members that follow, and members of struct k9_op and
 *	struct k9_rx; taken in softirq context, too
 * @err: negative error code of the failed connection, or 0; written once, under
 *	@lock; conditions of sleeping tasks read it without @lock
 * @idle: unused @ops: [0] for any request, [1] for Tflush; protected by @lock
 * @refused: receives that the provider refused with -EAGAIN; protected by @lock
 */
struct k9_conn {
	struct p9_client	*client;
	u16			port;
	unsigned int		rq;
	unsigned int		msize;
	unsigned int		segs;

	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_eq		*eq;
	struct fid_domain	*domain;
	struct fid_cq		*cq;
	struct fid_ep		*ep;

	struct completion	answered;
	int			status;
	struct k9_hello		hello;

	unsigned int		sg_max;
	unsigned int		nr;
	struct k9_op		*ops;
	struct k9_rx		*rx;
	struct work_struct	violated;
	wait_queue_head_t	wq;

	spinlock_t		lock;	/* members that follow; see k9_op, k9_rx */
	int			err;
	struct list_head	idle[2];
	struct list_head	refused;
};

/* conn.c */
int k9_conn_open(struct p9_client *client, const char *prov, const char *node,
		 u16 port, unsigned int rq);
void k9_conn_close(struct p9_client *client);
void k9_conn_end(struct k9_conn *c, int err);
int k9_buf_alloc(struct k9_buf *buf, size_t size, unsigned int segs, gfp_t gfp);
void k9_buf_free(struct k9_buf *buf);

/* op.c */
int k9_ops_alloc(struct k9_conn *c, unsigned int nr);
void k9_ops_free(struct k9_conn *c);
void k9_ops_fail(struct k9_conn *c, int err);
int k9_rx_post(struct k9_rx *rx);
void k9_rx_retry(struct k9_conn *c);
int k9_request(struct p9_client *client, struct p9_req_t *req);
int k9_zc_request(struct p9_client *client, struct p9_req_t *req,
		  struct iov_iter *to, struct iov_iter *from, int room,
		  int len, int header);
int k9_cancel(struct p9_client *client, struct p9_req_t *req);

#endif /* _KOFI_9P_H */

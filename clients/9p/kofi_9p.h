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

/* In each message of 9P: its size, type, and tag */
#define K9_TYPE		4
#define K9_TAG		5
#define K9_HEADER	7
/* then, in Tflush: the tag of the request that was interrupted */
#define K9_OLDTAG	7
/* or in a reply with data: how many bytes follow */
#define K9_COUNT	7
#define K9_DATA		11

struct k9_conn;

/**
 * struct k9_buf - room for one message
 * @size: bytes
 * @nr: segments
 * @bv: the segments, each contiguous in physical memory
 */
struct k9_buf {
	size_t		size;
	unsigned int	nr;
	struct bio_vec	bv[K9_SEGS];
};

/**
 * struct k9_rx - a receive, posted again as soon as its replies have been used
 * @cqe: completes it
 * @c: its connection
 * @buf: where the replies come to
 * @users: those who use it; meaningless while it is posted
 * @node: on @c->refused
 * @op: there: outstanding until this has been posted
 */
struct k9_rx {
	struct kofi_cqe		cqe;
	struct k9_conn		*c;
	struct k9_buf		buf;
	refcount_t		users;
	/* under c->lock */
	struct list_head	node;
	struct k9_op		*op;
};

/**
 * struct k9_reply - a reply
 * @rx: the receive it is in
 * @off: where it begins there
 * @len: bytes
 * @head: its first ones, as many of them as there are
 */
struct k9_reply {
	struct k9_rx		*rx;
	size_t			off;
	size_t			len;
	u8			head[K9_DATA];
};

/**
 * struct k9_op - a request under way, and the right to have one: there are as
 * many as both sides have receives
 * @sent: completes the send
 * @node: on @c->idle
 * @c: its connection
 * @flush: kept for Tflush
 * @users: what it is still needed for: the reply, the send, the reader, a receive
 *	that could not be posted
 * @req: the request that the reply will be for, with a reference; NULL when it
 *	has come, or will not come
 * @old: Tflush: the request that was interrupted, with a reference, without which
 *	another one could get its tag before Rflush arrives
 * @sending: the request whose bytes are being sent, with a reference
 * @read: the data of the reply goes to @reader's pages, not into @req
 * @left: the reader has gone
 * @room: most bytes of such data; of a write, those that were sent
 * @rx: the receive with such data
 * @off: there, where they begin
 * @len: bytes of them
 * @sg: memory of the caller that is being sent
 * @nr: entries of @sg, the first of which is the header
 * @bounce: for what cannot be sent from there; made when it is first needed
 */
struct k9_op {
	struct kofi_cqe		sent;
	struct list_head	node;
	struct k9_conn		*c;
	bool			flush;
	/* under c->lock */
	unsigned int		users;
	struct p9_req_t		*req;
	bool			left;
	struct k9_rx		*rx;
	size_t			off;
	size_t			len;
	struct p9_req_t		*old;
	/* of the one who has got it */
	struct p9_req_t		*sending;
	bool			read;
	unsigned int		room;
	struct scatterlist	*sg;
	unsigned int		nr;
	struct k9_buf		bounce;
};

/**
 * struct k9_conn - the connection of a mount
 * @client: of 9p
 * @port: the server's
 * @rq: receives that were asked for
 * @msize: longest message
 * @segs: most segments of a message
 * @info: from discovery
 * @fabric: objects of kOFI, NULL those that are not open
 * @eq: see @fabric
 * @domain: see @fabric
 * @cq: see @fabric
 * @ep: see @fabric
 * @answered: the attempt to connect has ended, with @status
 * @status: 0 or a negative error code
 * @hello: the server's
 * @sg_max: most entries of a list the device sends from, as far as is known
 * @nr: requests that may be outstanding
 * @ops: those
 * @rx: the receives, @rq
 * @violated: ends the connection of a server that breaks the rules
 * @wq: for those who wait for one of @ops
 * @lock: taken by completions, too
 * @err: why the connection has ended, or 0
 * @idle: unused @ops, and those for Tflush
 * @refused: receives that could not be posted for want of room
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

	spinlock_t		lock;	/* what follows, and what k9_op says */
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

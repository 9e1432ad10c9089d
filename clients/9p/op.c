// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests and their replies.
 *
 * Outstanding requests
 *
 * A request is sent when a struct k9_op is unused. There are as many as the
 * smaller number of receives of both sides. A quarter of them is reserved for
 * Tflush: if the server answers none of a client's requests, its tasks can
 * still be killed. An op is unused again when the reply has arrived, the send
 * has completed, in either order, and the reader has taken the data.
 *
 * Replies
 *
 * A reply may arrive in any receive: messages match receives in order, but
 * replies have no order. A message may have several replies. The tag identifies
 * the request, and the reply is copied into the buffer of 9p: most replies are
 * short. The data of a read stays in the receive. The task that waits for it
 * copies it, because that task may access user memory. So a late reply has
 * nothing to write to after the task has gone.
 *
 * A receive is posted again before the last request it has answered stops being
 * outstanding. If the provider is short of memory, both wait until it reports
 * room.
 *
 * Writes
 *
 * The data of a write is sent from its own memory, behind the header, if that
 * consists of pages with reference counts. They are held until the send has
 * completed, whether or not the task still waits. Other memory, and pages in
 * more segments than the device can send, is copied first. If no contiguous
 * pages are available, less is copied, because writeback must not fail for lack
 * of them.
 *
 * References
 *
 * 9p gives the transport one reference to a request. It belongs to the reply:
 * p9_client_cb() drops it. A send without a copy takes another one.
 *
 * Interrupted requests
 *
 * 9p sends a Tflush for an interrupted request and continues when that is
 * answered. After Rflush no reply will arrive, so Rflush also drops the
 * request, even if the task was killed again and does not wait for Rflush.
 * Until then the Tflush holds the request, and so its tag.
 */
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/unaligned.h>
#include <linux/kofi/backport.h>

#include "kofi_9p.h"

/* -------------------------------------------------------------------- ops */

/**
 * k9_ops_alloc - allocate the operations
 * @c: a connection
 * @nr: number of outstanding requests
 *
 * Return: 0 or -ENOMEM; k9_ops_free() frees a part, too.
 */
int k9_ops_alloc(struct k9_conn *c, unsigned int nr)
{
	struct k9_op *ops = kvcalloc(nr, sizeof(*ops), GFP_KERNEL);
	unsigned int i;

	if (!ops)
		return -ENOMEM;
	/* a header, and data that starts inside a page */
	c->sg_max = c->msize / PAGE_SIZE + 3;
	for (i = 0; i < nr; i++) {
		struct k9_op *op = &ops[i];

		op->c = c;
		op->flush = i < DIV_ROUND_UP(nr, 4);
		op->sg = kvcalloc(c->sg_max, sizeof(*op->sg), GFP_KERNEL);
		if (!op->sg)
			break;
		sg_init_table(op->sg, c->sg_max);
		list_add_tail(&op->node, &c->idle[op->flush]);
	}
	/* the server may have sent something already */
	spin_lock_bh(&c->lock);
	c->ops = ops;
	c->nr = i;
	spin_unlock_bh(&c->lock);
	return i == nr ? 0 : -ENOMEM;
}

/**
 * k9_ops_free - undo k9_ops_alloc(), also after an error
 * @c: a connection with its endpoint closed
 */
void k9_ops_free(struct k9_conn *c)
{
	unsigned int i;

	for (i = 0; i < c->nr; i++) {
		k9_buf_free(&c->ops[i].bounce);
		kvfree(c->ops[i].sg);
	}
	kvfree(c->ops);
}

/* Take an unused operation, or NULL. Returns true if the caller need not wait. */
static bool k9_op_take(struct k9_conn *c, bool flush, struct k9_op **got)
{
	struct k9_op *op;

	spin_lock_bh(&c->lock);
	op = list_first_entry_or_null(&c->idle[false], struct k9_op, node);
	if (!op && flush)
		op = list_first_entry_or_null(&c->idle[true], struct k9_op,
					      node);
	if (op)
		list_del(&op->node);
	spin_unlock_bh(&c->lock);
	*got = op;
	return op || READ_ONCE(c->err);
}

/* Wait for an unused operation. May sleep. */
static struct k9_op *k9_op_get(struct k9_conn *c, struct p9_req_t *req)
{
	bool flush = req->tc.sdata[K9_TYPE] == P9_TFLUSH;
	struct k9_op *op;

	if (wait_event_killable(c->wq, k9_op_take(c, flush, &op)))
		return ERR_PTR(-ERESTARTSYS);
	if (!op)
		return ERR_PTR(c->err);
	op->users = 1;
	op->left = false;
	op->rx = NULL;
	op->read = false;
	op->room = U32_MAX;
	op->nr = 0;
	return op;
}

static void k9_op_put(struct k9_op *op)
{
	struct k9_conn *c = op->c;
	struct p9_req_t *old = NULL;
	bool last;

	spin_lock_bh(&c->lock);
	last = !--op->users;
	if (last) {
		swap(old, op->old);
		list_add(&op->node, &c->idle[op->flush]);
	}
	spin_unlock_bh(&c->lock);
	if (old)
		p9_req_put(c->client, old);
	if (last)
		wake_up(&c->wq);
}

/* Stop expecting a reply. With c->lock held. */
static struct p9_req_t *k9_op_forget(struct k9_op *op)
{
	struct p9_req_t *req = op->req;

	op->req = NULL;
	return req;
}

/* Find the operation of a tag. With c->lock held. */
static struct k9_op *k9_op_find(struct k9_conn *c, u16 tag)
{
	unsigned int i;

	for (i = 0; i < c->nr; i++) {
		if (c->ops[i].req && c->ops[i].req->tc.tag == tag)
			return &c->ops[i];
	}
	return NULL;
}

/**
 * k9_ops_fail - fail all requests that wait for a reply
 * @c: a connection that has failed
 * @err: reason, a negative error code
 */
void k9_ops_fail(struct k9_conn *c, int err)
{
	unsigned int i;

	for (i = 0; i < c->nr; i++) {
		struct k9_op *op = &c->ops[i];
		struct p9_req_t *req;

		spin_lock_bh(&c->lock);
		req = k9_op_forget(op);
		spin_unlock_bh(&c->lock);
		if (!req)
			continue;
		req->t_err = err;
		p9_client_cb(c->client, req, REQ_STATUS_ERROR);
		k9_op_put(op);
	}
}

/* ---------------------------------------------------------------- replies */

static int k9_violation(struct k9_conn *c, const char *what)
{
	pr_warn_ratelimited("kofi_9p: the server sent %s; the connection ends\n",
			    what);
	schedule_work(&c->violated);
	return -EIO;
}

/* Find the segment of a byte in a receive. Sets @off to the offset in the segment. */
static const struct bio_vec *k9_rx_at(const struct k9_rx *rx, size_t *off)
{
	const struct bio_vec *bv = rx->buf.bv;

	for (; *off >= bv->bv_len; bv++)
		*off -= bv->bv_len;
	return bv;
}

/* Copy a part of a receive, from offset @off on. */
static void k9_rx_copy(const struct k9_rx *rx, size_t off, void *to, size_t len)
{
	const struct bio_vec *bv = k9_rx_at(rx, &off);

	for (; len; bv++, off = 0) {
		size_t n = min_t(size_t, len, bv->bv_len - off);

		memcpy(to, page_address(bv->bv_page) + off, n);
		to += n;
		len -= n;
	}
}

/*
 * Copy a reply into the buffer of 9p, or leave its data to the reader. With
 * c->lock held. Returns a description of a violation, or NULL with @status set
 * for 9p.
 */
static const char *k9_op_answer(struct k9_op *op, const struct k9_reply *r,
				int *status)
{
	struct p9_req_t *req = op->req;
	u8 type = r->head[K9_TYPE];
	bool error = type == P9_RERROR || type == P9_RLERROR;
	u32 count = get_unaligned_le32(r->head + K9_COUNT);

	if (!error && type != (u8)req->tc.sdata[K9_TYPE] + 1)
		return "a reply of another type";
	req->rc.size = r->len;
	*status = REQ_STATUS_RCVD;
	/* 9p knows how much it wanted to write, but not how much was sent */
	if (type == P9_RWRITE && r->len >= K9_DATA && count > op->room)
		return "more written than was sent";
	if (error || !op->read) {
		if (r->len > req->rc.capacity)
			return "a reply that is too long";
		k9_rx_copy(r->rx, r->off, req->rc.sdata, r->len);
		return NULL;
	}
	if (r->len < K9_DATA || r->len - K9_DATA > op->room ||
	    count != r->len - K9_DATA)
		return "data of a wrong length";
	if (op->left) {
		*status = REQ_STATUS_FLSHD;
		return NULL;
	}
	memcpy(req->rc.sdata, r->head, K9_DATA);
	refcount_inc(&r->rx->users);
	op->rx = r->rx;
	op->off = r->off + K9_DATA;
	op->len = count;
	return NULL;
}

/* Let a Tflush hold the interrupted request until Rflush. With c->lock held. */
static void k9_op_flushes(struct k9_op *op, const struct p9_req_t *tflush)
{
	struct k9_op *old;

	old = k9_op_find(op->c,
			 get_unaligned_le16(tflush->tc.sdata + K9_OLDTAG));
	if (!old)
		return;		/* answered already */
	p9_req_get(old->req);
	op->old = old->req;
}

/* Drop the interrupted request: no reply to it will arrive. */
static void k9_flushed(struct k9_conn *c, const struct p9_req_t *old)
{
	struct p9_req_t *req = NULL;
	struct k9_op *op;

	if (!old)
		return;
	spin_lock_bh(&c->lock);
	op = k9_op_find(c, old->tc.tag);
	if (op && op->req == old)
		req = k9_op_forget(op);
	spin_unlock_bh(&c->lock);
	if (!req)
		return;
	p9_req_put(c->client, req);
	k9_op_put(op);
}

static void k9_rx_done(struct fid_cq *cq, const struct kofi_wc *wc);

/**
 * k9_rx_post - post a receive for replies
 * @rx: the receive
 *
 * Context: any.
 * Return: 0 or a negative error code; -EAGAIN is followed by k9_rx_retry().
 */
int k9_rx_post(struct k9_rx *rx)
{
	const struct fi_msg msg = {
		.msg_bvec = rx->buf.bv, .iov_count = rx->buf.nr,
		.vec = KOFI_BVEC, .context = &rx->cqe,
	};

	rx->cqe.done = k9_rx_done;
	return fi_recvmsg(rx->c->ep, &msg, FI_COMPLETION);
}

/*
 * Drop a reference to a receive. The last one posts it again, and keeps @op,
 * which it has answered, outstanding until then. Returns 0 or a negative error
 * code.
 */
static int k9_rx_put(struct k9_rx *rx, struct k9_op *op)
{
	struct k9_conn *c = rx->c;
	int err;

	if (!refcount_dec_and_test(&rx->users))
		return 0;
	err = k9_rx_post(rx);
	if (likely(err != -EAGAIN))
		return err;
	/* under the lock, so that k9_rx_retry() finds it on the list */
	spin_lock_bh(&c->lock);
	err = k9_rx_post(rx);
	if (err == -EAGAIN) {
		op->users++;
		rx->op = op;
		list_add_tail(&rx->node, &c->refused);
		err = 0;
	}
	spin_unlock_bh(&c->lock);
	return err;
}

/* Use a reply. The last one in a message also releases the receive. */
static int k9_reply(struct k9_conn *c, const struct k9_reply *r, bool last)
{
	const char *wrong = "a reply to no request";
	struct p9_req_t *req = NULL;
	struct k9_op *op;
	int status, err;

	spin_lock_bh(&c->lock);
	err = c->err;
	op = k9_op_find(c, get_unaligned_le16(r->head + K9_TAG));
	if (op)
		wrong = k9_op_answer(op, r, &status);
	if (!wrong)
		req = k9_op_forget(op);
	spin_unlock_bh(&c->lock);
	if (wrong) {
		/*
		 * After a failure no requests are left, which is no fault of
		 * the server.
		 */
		if (err)
			return err;
		return k9_violation(c, wrong);
	}

	if (last)
		err = k9_rx_put(r->rx, op);
	if (r->head[K9_TYPE] == P9_RFLUSH)
		k9_flushed(c, op->old);
	p9_client_cb(c->client, req, status);
	k9_op_put(op);
	return err;
}

/* Use the replies in a message of @len bytes. */
static int k9_replies(struct k9_conn *c, struct k9_rx *rx, size_t len)
{
	struct k9_reply r = { .rx = rx };
	int err;

	/* one user is this function, the others are readers of data */
	refcount_set(&rx->users, 1);
	do {
		size_t left = len - r.off;

		k9_rx_copy(rx, r.off, r.head, min(left, sizeof(r.head)));
		r.len = left < K9_HEADER ? 0 : get_unaligned_le32(r.head);
		if (r.len < K9_HEADER || r.len > left)
			return k9_violation(c, "a message that is no reply");
		err = k9_reply(c, &r, r.len == left);
		r.off += r.len;
	} while (!err && r.off < len);
	return err;
}

static void k9_rx_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct k9_rx *rx = container_of(wc->cqe, struct k9_rx, cqe);
	struct k9_conn *c = rx->c;
	int ret;

	if (wc->err) {
		k9_conn_end(c, wc->err == FI_ETRUNC ?
			       k9_violation(c, "more than was agreed on") :
			       -ECONNRESET);
		return;
	}
	ret = k9_replies(c, rx, wc->len);
	if (ret < 0)
		k9_conn_end(c, ret);
}

/**
 * k9_rx_retry - post the receives that were refused
 * @c: connection of the receives, which has room again or has been drained
 *
 * Context: any but hard interrupts.
 */
void k9_rx_retry(struct k9_conn *c)
{
	struct k9_op *op;
	struct k9_rx *rx;
	int err;

	do {
		op = NULL;
		err = 0;
		spin_lock_bh(&c->lock);
		rx = list_first_entry_or_null(&c->refused, struct k9_rx, node);
		if (rx) {
			op = rx->op;
			err = k9_rx_post(rx);
			if (err != -EAGAIN)
				list_del(&rx->node);
		}
		spin_unlock_bh(&c->lock);
		if (err == -EAGAIN)
			break;
		if (err)
			k9_conn_end(c, err);
		if (op)
			k9_op_put(op);
	} while (op);
}

/* --------------------------------------------------------------- requests */

/* Hold or release each page: adjacent pages need not belong to one allocation. */
static void k9_pages(struct k9_op *op, bool hold)
{
	unsigned int i, n;

	/* skip the header, which is part of the request */
	for (i = 1; i < op->nr; i++) {
		struct scatterlist *sg = &op->sg[i];

		for (n = sg->offset >> PAGE_SHIFT;
		     n <= (sg->offset + sg->length - 1) >> PAGE_SHIFT; n++) {
			struct page *page = nth_page(sg_page(sg), n);

			if (hold)
				get_page(page);
			else
				put_page(page);
		}
	}
	if (!hold)
		op->nr = 0;
}

static bool k9_pages_able(const struct k9_op *op, unsigned int nr)
{
	unsigned int i;

	for (i = 1; i < nr; i++) {
		const struct scatterlist *sg = &op->sg[i];

		if (!sendpages_ok(sg_page((struct scatterlist *)sg),
				  sg->length, sg->offset))
			return false;
	}
	return true;
}

/* Describe header and data in their own memory. Returns false if that is impossible. */
static bool k9_op_refer(struct k9_op *op, const struct p9_req_t *req,
			const struct iov_iter *from, size_t len)
{
	struct sg_table table = { .sgl = op->sg, .nents = 1 };
	unsigned int max = READ_ONCE(op->c->sg_max);
	struct iov_iter iter = *from;

	if (!iov_iter_is_bvec(from) && !iov_iter_is_folioq(from))
		return false;
	sg_set_buf(op->sg, req->tc.sdata, req->tc.size);
	if (extract_iter_to_sg(&iter, len, &table, max - 1, 0) != len ||
	    !k9_pages_able(op, table.nents))
		return false;
	op->nr = table.nents;
	k9_pages(op, true);
	return true;
}

/* Set the sizes in a header, as only the transport knows the number of bytes. */
static void k9_op_size(const struct p9_req_t *req, size_t len)
{
	put_unaligned_le32(req->tc.size + len, req->tc.sdata);
	put_unaligned_le32(len, req->tc.sdata + req->tc.size - sizeof(u32));
}

/*
 * Provide a bounce buffer for @size bytes. If contiguous memory is not
 * available, the buffer holds only a single page in each segment of a message.
 */
static int k9_op_bounce(struct k9_op *op, size_t size)
{
	struct k9_conn *c = op->c;
	size_t least = min_t(size_t, c->msize, c->segs * PAGE_SIZE);
	struct k9_buf buf = {};

	if (size > least && size > op->bounce.size &&
	    !k9_buf_alloc(&buf, c->msize, c->segs,
			  GFP_NOFS | __GFP_NORETRY)) {
		k9_buf_free(&op->bounce);
		op->bounce = buf;
	}
	if (op->bounce.nr)
		return 0;
	return k9_buf_alloc(&op->bounce, least, c->segs, GFP_NOFS);
}

/* Copy header and data. Returns the number of data bytes; 9p sends the rest. */
static ssize_t k9_op_copy(struct k9_op *op, const struct p9_req_t *req,
			  const struct iov_iter *from, size_t len)
{
	size_t off = req->tc.size, left;
	struct iov_iter iter = *from;
	const struct bio_vec *bv;
	int err;

	err = k9_op_bounce(op, off + len);
	if (err)
		return err;
	len = min(len, op->bounce.size - off);
	k9_op_size(req, len);
	bv = op->bounce.bv;
	memcpy(page_address(bv->bv_page), req->tc.sdata, off);
	for (left = len; left; bv++, off = 0) {
		size_t n = min_t(size_t, left, bv->bv_len - off);

		if (copy_page_from_iter(bv->bv_page, off, n, &iter) != n)
			return -EFAULT;
		left -= n;
	}
	return len;
}

static void k9_op_sent(struct k9_op *op)
{
	struct p9_req_t *req = op->sending;

	k9_pages(op, false);
	p9_req_put(op->c->client, req);
	k9_op_put(op);
}

static void k9_sent(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct k9_op *op = container_of(wc->cqe, struct k9_op, sent);

	if (wc->err)
		k9_conn_end(op->c, -ECONNRESET);
	k9_op_sent(op);
}

/* Post @msg or, if NULL, the request itself. Returns true if the caller need not wait. */
static bool k9_op_post(struct k9_op *op, const struct p9_req_t *req,
		       const struct fi_msg *msg, int *err)
{
	struct fid_ep *ep = op->c->ep;

	if (msg)
		*err = fi_sendmsg(ep, msg, FI_COMPLETION);
	else if (!op->sending)
		*err = fi_inject(ep, req->tc.sdata, req->tc.size, 0);
	else
		*err = fi_send(ep, req->tc.sdata, req->tc.size, NULL, 0,
			       &op->sent);
	return *err != -EAGAIN || READ_ONCE(op->c->err);
}

/*
 * Send @msg or, if NULL, the request itself. The reply may arrive before this
 * returns. On failure the caller still owns the reference of the reply. May
 * sleep.
 */
static int k9_op_send(struct k9_op *op, struct p9_req_t *req,
		      struct fi_msg *msg)
{
	struct k9_conn *c = op->c;
	/* a short request is copied, and no completion follows */
	bool copied = !msg && req->tc.size <= c->info->tx_attr->inject_size;
	bool ours;
	int err;

	if (msg)
		msg->context = &op->sent;
	op->sent.done = k9_sent;
	op->sending = copied ? NULL : req;
	WRITE_ONCE(req->status, REQ_STATUS_SENT);
	spin_lock_bh(&c->lock);
	err = c->err;
	if (!err) {
		op->req = req;
		op->users += copied ? 1 : 2;
		if (req->tc.sdata[K9_TYPE] == P9_TFLUSH)
			k9_op_flushes(op, req);
	}
	spin_unlock_bh(&c->lock);
	if (err)
		goto drop;

	if (!copied)
		p9_req_get(req);
	if (wait_event_killable(c->wq, k9_op_post(op, req, msg, &err)))
		err = -ERESTARTSYS;
	if (!err)
		return 0;
	if (err == -EAGAIN)
		err = READ_ONCE(c->err);
	if (!copied) {
		p9_req_put(c->client, req);
		k9_op_put(op);
	}
	/* not sent, so it cannot have been answered */
	spin_lock_bh(&c->lock);
	ours = k9_op_forget(op);
	spin_unlock_bh(&c->lock);
	if (ours) {
		WRITE_ONCE(req->status, REQ_STATUS_ALLOC);
		k9_op_put(op);
	} else {
		/* the connection has failed since, and with it the request */
		err = 0;
	}
drop:
	k9_pages(op, false);
	return err;
}

/**
 * k9_request - p9_trans_module.request
 * @client: client of the mount
 * @req: the request
 *
 * Context: process, sleeps while too many are outstanding.
 * Return: 0; -ERESTARTSYS if the task is being killed; another negative error
 * code if the connection has failed. On failure 9p owns all references.
 */
int k9_request(struct p9_client *client, struct p9_req_t *req)
{
	struct k9_op *op = k9_op_get(client->trans, req);
	int err;

	if (IS_ERR(op))
		return PTR_ERR(op);
	err = k9_op_send(op, req, NULL);
	k9_op_put(op);
	/* after any other error 9p no longer uses the connection */
	if (err && err != -ERESTARTSYS)
		k9_conn_end(client->trans, err);
	return err;
}

/* Send a write: header and data. */
static int k9_op_write(struct k9_op *op, struct p9_req_t *req,
		       struct iov_iter *from, size_t len)
{
	struct k9_conn *c = op->c;
	struct iov_iter iter;
	struct fi_msg msg = {};
	int err = -EMSGSIZE;
	ssize_t copied;

	len = min(len, iov_iter_count(from));
	k9_op_size(req, len);
	if (k9_op_refer(op, req, from, len)) {
		msg.vec = KOFI_SGL;
		msg.msg_sgl = op->sg;
		msg.iov_count = op->nr;
		op->room = len;
		err = k9_op_send(op, req, &msg);
	}
	/* too many segments for this device */
	if (err == -EMSGSIZE || err == -EINVAL) {
		if (msg.iov_count > 1)
			WRITE_ONCE(c->sg_max, min_t(size_t, c->sg_max,
						    msg.iov_count - 1));
		copied = k9_op_copy(op, req, from, len);
		if (copied < 0)
			return copied;
		len = copied;
		op->room = len;
		iov_iter_bvec(&iter, ITER_SOURCE, op->bounce.bv, op->bounce.nr,
			      req->tc.size + len);
		msg.vec = KOFI_ITER;
		msg.msg_iter = &iter;
		err = k9_op_send(op, req, &msg);
	}
	if (!err)
		iov_iter_advance(from, len);
	return err;
}

/* Copy the data of an answered read; return @err if it was not answered. */
static int k9_op_read(struct k9_op *op, struct iov_iter *to, int err)
{
	const struct bio_vec *bv;
	size_t len, off;
	struct k9_rx *rx;
	int posted;

	spin_lock_bh(&op->c->lock);
	rx = op->rx;
	op->left = true;
	spin_unlock_bh(&op->c->lock);
	if (!rx)
		return err;

	len = op->len;
	off = op->off;
	/* without data, the offset may be behind the receive */
	bv = len ? k9_rx_at(rx, &off) : NULL;
	for (err = 0; len && !err; bv++, off = 0) {
		size_t n = min_t(size_t, len, bv->bv_len - off);

		if (copy_page_to_iter(bv->bv_page, off, n, to) != n)
			err = -EFAULT;
		len -= n;
	}
	posted = k9_rx_put(rx, op);
	if (posted)
		k9_conn_end(op->c, posted);
	return err;
}

/**
 * k9_zc_request - p9_trans_module.zc_request
 * @client: client of the mount
 * @req: the request, without data
 * @to: memory for the data of the reply, or NULL
 * @from: data of the request, or NULL
 * @room: most bytes for @to
 * @len: bytes of @from
 * @header: bytes of the reply before the data
 *
 * Context: process, sleeps until the reply has arrived.
 * Return: 0, with the reply or an error in @req; -ERESTARTSYS if the task is
 * being killed; -EFAULT if user memory cannot be accessed; another negative
 * error code if the request was not sent.
 */
int k9_zc_request(struct p9_client *client, struct p9_req_t *req,
		  struct iov_iter *to, struct iov_iter *from, int room,
		  int len, int header)
{
	struct k9_op *op = k9_op_get(client->trans, req);
	int err;

	if (IS_ERR(op)) {
		err = PTR_ERR(op);
		goto put_req;
	}
	if (from) {
		err = k9_op_write(op, req, from, len);
	} else {
		op->read = true;
		op->room = min_t(size_t, room, iov_iter_count(to));
		err = k9_op_send(op, req, NULL);
	}
	if (err)
		goto put_op;
	err = wait_event_killable(req->wq, READ_ONCE(req->status) >=
					   REQ_STATUS_RCVD);
	if (to)
		err = k9_op_read(op, to, err);
	k9_op_put(op);
	return err;

put_op:
	k9_op_put(op);
	/* as in k9_request(), for the errors that can occur here */
	if (err == -EIO)
		k9_conn_end(client->trans, err);
put_req:
	/* no reply will arrive */
	p9_req_put(client, req);
	return err;
}

/**
 * k9_cancel - p9_trans_module.cancel
 * @client: client of the mount
 * @req: a request of a task that is being killed
 *
 * Return: true if 9p must send a Tflush.
 */
int k9_cancel(struct p9_client *client, struct p9_req_t *req)
{
	return READ_ONCE(req->status) == REQ_STATUS_SENT;
}

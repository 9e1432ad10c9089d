// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests of the block layer: a command to the target for each, and an answer.
 *
 * Normal operation. queue_rq() gets a region from the endpoint's pool, maps the
 * request's pages for one access, and sends the command with the key. A
 * short write needs no region: its data follows the command in the same message.
 * Nothing is allocated. A request then waits for parts, in any order: the
 * answer, the completion of the region or the send, which may use its pages, and
 * the return of queue_rq(). If the target has not invalidated the key, the answer's
 * callback unmaps the region. The request completes with the last part.
 *
 * Each tag has a receive and a slot in the queues. The regions belong to the domain, which
 * has some for each queue and creates
 * more on demand. A post that is refused, or a region that is not
 * available yet, returns the request to the block layer, which tries again.
 *
 * Failure. A post fails or a completion has an error when the connection
 * has been lost. The request then stays as it is: kblk_recover() drains the
 * endpoint, which completes all regions and sends, and returns unanswered requests
 * to the block layer's list. An answer without a matching request is a
 * violation of the protocol, and closes the connection.
 *
 * Digests. The command of a write has the digest of the request's pages. The digest of a
 * read is compared with the last part of the request: no peer can change the
 * pages any longer. A wrong digest closes the connection, and the request stays without
 * an answer, so it is sent again.
 */
#include <linux/bitfield.h>

#include "blk.h"
#include "digest.h"

#define KBLK_RETRY_MS	3

/* ------------------------------------------------------------ ending requests */

/* The target's device does not support the operation: it is not used again. */
static void kblk_unsupported(struct request *rq)
{
	rq->rq_flags |= RQF_QUIET;
	if (req_op(rq) == REQ_OP_WRITE_ZEROES)
		blk_queue_disable_write_zeroes(rq->q);
	else if (req_op(rq) == REQ_OP_DISCARD)
		blk_queue_disable_discard(rq->q);
}

static void kblk_complete(struct request *rq)
{
	struct kblk_rq *r = blk_mq_rq_to_pdu(rq);

	if (r->sts == BLK_STS_NOTSUPP)
		kblk_unsupported(rq);
	blk_mq_end_request(rq, r->sts);
}

static void kblk_put_mr(struct kblk_rq *r)
{
	if (r->mr)
		kofi_mr_put(r->mr);
	r->mr = NULL;
}

/* The block layer's delay after a refused request */
static void kblk_retry(struct request *rq)
{
	blk_mq_requeue_request(rq, false);
	blk_mq_delay_kick_requeue_list(rq->q, KBLK_RETRY_MS);
}

static u32 kblk_crc_pages(struct request *rq, u32 crc)
{
	struct req_iterator iter;
	struct bio_vec bv;

	rq_for_each_bvec(bv, rq, iter)
		crc = kblk_crc_bvec(crc, &bv, 1);
	return crc;
}

/*
 * Compare the digest of an answer. If it is wrong, close the connection. The request then
 * counts as one without an answer: the recovery requeues or fails it.
 */
static bool kblk_intact(struct kblk_rq *r, bool data)
{
	u32 crc = kblk_answer_crc(r->digests.command, r->answer.value);
	struct request *rq = blk_mq_rq_from_pdu(r);
	struct kblk_disk *d = r->queue->disk;

	if (data)
		crc = kblk_crc_pages(rq, crc);
	if (r->answer.digest == kblk_crc_end(crc))
		return true;
	atomic_inc(&d->digest_errors);
	pr_err_ratelimited("kofi_blk: %s: wrong digest of an answer%s: command %u, sector %llu, %u bytes\n",
			   d->gd->disk_name, data ? " with data" : "", r->cmd.op,
			   le64_to_cpu(r->cmd.sector), le32_to_cpu(r->cmd.len));
	kblk_lost(d);
	return false;
}

static void kblk_part(struct kblk_rq *r)
{
	struct request *rq = blk_mq_rq_from_pdu(r);

	if (!atomic_dec_and_test(&r->parts))
		return;
	kblk_put_mr(r);
	if (r->check && !kblk_intact(r, true))
		return;
	if (r->sts == BLK_STS_RESOURCE)
		kblk_retry(rq);
	else
		blk_mq_complete_request(rq);
}

static void kblk_ended(struct fid_cq *cq, const struct kofi_wc *wc)
{
	kblk_part(container_of(wc->cqe, struct kblk_rq, ended));
}

static void kblk_sent(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct kblk_rq *r = container_of(wc->cqe, struct kblk_rq, sent);

	if (wc->err)
		kblk_lost(r->queue->disk);
	kblk_part(r);
}

static void kblk_answer(struct kblk_rq *r, blk_status_t sts)
{
	r->sts = sts;
	/* without effect if the target's access or answer has invalidated it */
	if (r->mr)
		kofi_mr_unmap(r->mr, NULL);
	kblk_part(r);
}

/* Test whether a request has been tried for too long to be sent again. */
static bool kblk_rq_is_late(const struct kblk_disk *d, const struct kblk_rq *r)
{
	return time_after(jiffies, r->first + 2 * d->opt.path_timeout * HZ);
}

/**
 * kblk_requeue - requeue or fail a request without an answer
 * @rq: request of a quiesced queue with a drained endpoint
 * @data: the disk
 *
 * Return: true, to continue with the next one.
 */
bool kblk_requeue(struct request *rq, void *data)
{
	struct kblk_rq *r = blk_mq_rq_to_pdu(rq);
	struct kblk_disk *d = data;

	if (!blk_mq_request_started(rq) || blk_mq_request_completed(rq))
		return true;
	kblk_put_mr(r);
	/* an unanswered flush covers no writes; an answered one has completed */
	if (req_op(rq) == REQ_OP_FLUSH && !atomic_xchg(&r->answered, 1))
		kblk_cache_flushed(d->cache, false);
	if (!kblk_rq_is_late(d, r)) {
		blk_mq_requeue_request(rq, false);
	} else {
		r->sts = BLK_STS_TRANSPORT;
		blk_mq_complete_request(rq);
	}
	return true;
}

/* -------------------------------------------------------------------- answers */

static blk_status_t kblk_status(unsigned int status)
{
	static const blk_status_t table[KBLK_STATUSES] = {
		[KBLK_OK]		= BLK_STS_OK,
		[KBLK_IO_ERROR]		= BLK_STS_IOERR,
		[KBLK_NOT_SUPPORTED]	= BLK_STS_NOTSUPP,
		[KBLK_NO_SPACE]		= BLK_STS_NOSPC,
		[KBLK_PROTECTED]	= BLK_STS_TARGET,
		[KBLK_RANGE]		= BLK_STS_TARGET,
		[KBLK_MEDIUM_ERROR]	= BLK_STS_MEDIUM,
	};

	return status < KBLK_STATUSES ? table[status] : BLK_STS_IOERR;
}

static bool kblk_writes(const struct request *rq)
{
	return op_is_write(req_op(rq)) && req_op(rq) != REQ_OP_FLUSH;
}

static struct kblk_rq *kblk_find(struct kblk_queue *q, u32 value)
{
	struct blk_mq_tags *tags = q->disk->set.tags[q->nr];
	unsigned int tag = FIELD_GET(KBLK_ANSWER_TAG, value);
	struct request *rq = NULL;
	struct kblk_rq *r;

	/* a queue that no CPU uses has none */
	if (tags && tag < q->disk->set.queue_depth)
		rq = blk_mq_tag_to_rq(tags, tag);
	if (!rq || !blk_mq_request_started(rq))
		return NULL;
	r = blk_mq_rq_to_pdu(rq);
	if (r->queue != q || r->gen != FIELD_GET(KBLK_ANSWER_GEN, value) ||
	    atomic_xchg(&r->answered, 1))
		return NULL;
	return r;
}

/*
 * Check the form of an answer. It must be remote CQ data if, and only if, the
 * command reads data.
 */
static bool kblk_form(const struct kblk_queue *q, const struct request *rq,
		      u32 value, bool data)
{
	return data == (req_op(rq) == REQ_OP_READ &&
			kblk_has(q, KBLK_FEATURE_CQ_DATA) &&
			FIELD_GET(KBLK_ANSWER_STATUS, value) == KBLK_OK);
}

/*
 * Check that a read has all of its data. If remote CQ data takes no receive, the provider
 * reports the length of the whole read. An RDMA device reports the length of its last
 * write; only long reads have more than one write.
 */
static bool kblk_complete_data(const struct kblk_queue *q,
			       const struct request *rq, size_t len)
{
	unsigned int bytes = blk_rq_bytes(rq);

	return len == bytes ||
	       (q->disk->info->mode & FI_RX_CQ_DATA && bytes > KBLK_ONE_WRITE &&
		len && len < bytes);
}

/*
 * Compare the digest of an answer without data. The digest of a successful read is compared
 * later, see kblk_part().
 */
static bool kblk_digest_fits(struct kblk_rq *r, __le32 digest, u32 value)
{
	struct request *rq = blk_mq_rq_from_pdu(r);

	if (!kblk_has(r->queue, KBLK_FEATURE_DIGEST))
		return true;
	r->answer = (struct kblk_answer) {
		.value = cpu_to_le32(value), .digest = digest,
	};
	r->check = req_op(rq) == REQ_OP_READ &&
		   FIELD_GET(KBLK_ANSWER_STATUS, value) == KBLK_OK;
	if (r->check || kblk_intact(r, false))
		return true;
	/* this flush covers no writes, as it is sent again */
	if (req_op(rq) == REQ_OP_FLUSH)
		kblk_cache_flushed(r->queue->disk->cache, false);
	return false;
}

/*
 * @data: it came with the data of a read, the last write of which had @len bytes; otherwise
 * it is a message with @digest
 */
static void kblk_answered(struct kblk_queue *q, u32 value, __le32 digest, bool data,
			  size_t len)
{
	struct kblk_rq *r = kblk_find(q, value);
	struct kblk_disk *d = q->disk;
	blk_status_t sts;
	struct request *rq;

	if (!r) {
		pr_err_ratelimited("kofi_blk: %s: answer to no request: %#x\n",
				   d->opt.volume, value);
		kblk_lost(d);
		return;
	}
	if (!kblk_digest_fits(r, digest, value))
		return;
	rq = blk_mq_rq_from_pdu(r);
	sts = kblk_status(FIELD_GET(KBLK_ANSWER_STATUS, value));
	if (!kblk_form(q, rq, value, data) ||
	    (data && !kblk_complete_data(q, rq, len)))
		sts = BLK_STS_IOERR;
	if (!READ_ONCE(d->answered))
		WRITE_ONCE(d->answered, true);
	if (req_op(rq) == REQ_OP_FLUSH)
		kblk_cache_flushed(d->cache, !sts);
	else if (kblk_writes(rq) && !(r->cmd.flags & KBLK_CMD_FUA))
		kblk_cache_written(d);
	kblk_answer(r, sts);
}

static void kblk_rx_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct kblk_rx *rx = container_of(wc->cqe, struct kblk_rx, cqe);
	struct kblk_queue *q = rx->queue;
	bool data = wc->flags & FI_REMOTE_CQ_DATA;
	u32 value = data ? wc->data : le32_to_cpu(rx->msg.value);
	__le32 digest = data ? 0 : rx->msg.digest;
	bool good = !wc->err && (data ? wc->flags & FI_RMA :
				 wc->len == sizeof(rx->msg) &&
				 (!digest || kblk_has(q, KBLK_FEATURE_DIGEST)));

	/* before the answer, since its tag may be reused at once */
	if (!good || fi_recv(q->ep, &rx->msg, sizeof(rx->msg), NULL, 0,
			     &rx->cqe))
		kblk_lost(q->disk);
	if (good)
		kblk_answered(q, value, digest, data, wc->len);
}

/* For providers where remote CQ data takes no receive */
static void kblk_data_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct kblk_queue *q = container_of(wc->cqe, struct kblk_queue, data);

	if (wc->err)
		kblk_lost(q->disk);
	else
		kblk_answered(q, wc->data, 0, true, wc->len);
}

static void kblk_send_failed(struct fid_cq *cq, const struct kofi_wc *wc)
{
	if (wc->err)
		kblk_lost(container_of(wc->cqe, struct kblk_queue, lost)->disk);
}

/**
 * kblk_queue_init - set up the completions of a queue
 * @q: a queue that does not connect yet
 */
void kblk_queue_init(struct kblk_queue *q)
{
	q->data.done = kblk_data_done;
	q->lost.done = kblk_send_failed;
}

/**
 * kblk_queue_ready - post the receives of a queue
 * @q: a queue after its login, before its first command
 *
 * Return: 0 or a negative error code.
 */
int kblk_queue_ready(struct kblk_queue *q)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < KBLK_TAGS && !err; i++) {
		struct kblk_rx *rx = &q->rx[i];

		rx->queue = q;
		rx->cqe.done = kblk_rx_done;
		err = fi_recv(q->ep, &rx->msg, sizeof(rx->msg), NULL, 0,
			      &rx->cqe);
	}
	return err;
}

/* ------------------------------------------------------------------- commands */

static int kblk_op(const struct request *rq)
{
	switch (req_op(rq)) {
	case REQ_OP_READ:
		return KBLK_OP_READ;
	case REQ_OP_WRITE:
		return KBLK_OP_WRITE;
	case REQ_OP_FLUSH:
		return KBLK_OP_FLUSH;
	case REQ_OP_DISCARD:
		return KBLK_OP_DISCARD;
	case REQ_OP_WRITE_ZEROES:
		return KBLK_OP_ZEROES;
	default:
		return -EOPNOTSUPP;
	}
}

static int kblk_command(struct request *rq, struct kblk_cmd *cmd)
{
	enum req_op op = req_op(rq);
	int ret = kblk_op(rq);

	if (ret < 0)
		return ret;
	*cmd = (struct kblk_cmd) {
		.op = ret,
		.tag = cpu_to_le16(rq->tag),
		.sector = cpu_to_le64(op == REQ_OP_FLUSH ? 0 : blk_rq_pos(rq)),
		.len = cpu_to_le32(op == REQ_OP_FLUSH ? 0 : blk_rq_bytes(rq)),
	};
	if (op == REQ_OP_WRITE && rq->cmd_flags & REQ_FUA)
		cmd->flags |= KBLK_CMD_FUA;
	if (op == REQ_OP_WRITE_ZEROES && rq->cmd_flags & REQ_NOUNMAP)
		cmd->flags |= KBLK_CMD_NO_UNMAP;
	return 0;
}

static unsigned int kblk_pages(struct request *rq, struct bio_vec *to)
{
	struct req_iterator iter;
	unsigned int n = 0;
	struct bio_vec bv;

	rq_for_each_bvec(bv, rq, iter)
		to[n++] = bv;
	return n;
}

/* The key of the request's pages, for its command. */
static int kblk_map(struct kblk_rq *r, unsigned int segs, u64 access)
{
	const struct fi_msg vec = {
		.msg_bvec = r->bv + 1,
		.iov_count = segs,
		.vec = KOFI_BVEC,
		.context = &r->ended,
	};
	int err;

	r->mr = kofi_mr_get(r->queue->ep);
	if (!r->mr)
		return -EAGAIN;
	err = kofi_mr_map(r->mr, &vec, access, FI_MR_SINGLE_USE | FI_MORE);
	if (err) {
		kblk_put_mr(r);
		return err;
	}
	r->cmd.addr = cpu_to_le64(kofi_mr_base(r->mr));
	r->cmd.key = cpu_to_le64(fi_mr_key(r->mr));
	return 0;
}

/* The command is complete, and its pages do not change until the request completes. */
static void kblk_add_digests(struct request *rq, struct kblk_rq *r)
{
	u32 crc = KBLK_CRC_START;

	r->digests.data = req_op(rq) == REQ_OP_WRITE ?
			  kblk_crc_end(kblk_crc_pages(rq, crc)) : 0;
	r->digests.command = kblk_cmd_digest(&r->cmd, r->digests.data);
}

static int kblk_send(struct kblk_rq *r, bool more)
{
	size_t digests = kblk_has(r->queue, KBLK_FEATURE_DIGEST) ?
			 sizeof(r->digests) : 0;
	const struct fi_msg msg = {
		.msg_bvec = r->bv,
		.iov_count = 1 + r->follow,
		.vec = KOFI_BVEC,
		.context = r->follow ? &r->sent : &r->queue->lost,
	};

	/* the digests are adjacent */
	bvec_set_virt(r->bv, &r->cmd, sizeof(r->cmd) + digests);
	return fi_sendmsg(r->queue->ep, &msg, (r->follow ? FI_COMPLETION :
					       FI_INJECT) |
					      (more ? FI_MORE : 0));
}

/* The command of a request that has been started */
static void kblk_post(struct kblk_rq *r, bool more)
{
	struct kblk_disk *d = r->queue->disk;
	int err = kblk_send(r, more);

	if (!err) {
		kblk_part(r);
		return;
	}
	/* an answer to a command that was not sent is a violation */
	if (err == -EAGAIN && !atomic_xchg(&r->answered, 1)) {
		if (r->follow)
			atomic_dec(&r->parts);
		if (r->cmd.op == KBLK_OP_FLUSH)
			kblk_cache_flushed(d->cache, false);
		kblk_answer(r, BLK_STS_RESOURCE);
		kblk_part(r);
		return;
	}
	kblk_lost(d);
}

/* The block layer has no further request, although it has announced one. */
static void kblk_commit_rqs(struct blk_mq_hw_ctx *hctx)
{
	struct kblk_queue *q = hctx->driver_data;
	struct kblk_rq *held = xchg(&q->held, NULL);

	if (held)
		kblk_post(held, false);
}

/*
 * With FI_MORE a provider may hold the command back until the next one. So a request
 * that the block layer does not mark as the last waits for the next one, or for
 * commit_rqs().
 */
static blk_status_t kblk_queue_rq(struct blk_mq_hw_ctx *hctx,
				  const struct blk_mq_queue_data *bd)
{
	struct kblk_queue *q = hctx->driver_data;
	struct kblk_disk *d = q->disk;
	struct request *rq = bd->rq;
	struct kblk_rq *r = blk_mq_rq_to_pdu(rq), *held;
	enum kblk_state state;
	unsigned int segs = 0;
	int err;

	/* pairs with the release in kblk_live(), which says why there is no lock */
	state = smp_load_acquire(&d->state);
	if (state == KBLK_FAILED ||
	    (state == KBLK_FAST && blk_noretry_request(rq)))
		return BLK_STS_TRANSPORT;
	if (state == KBLK_FAST) {
		/* until kblk_go() */
		blk_mq_requeue_request(rq, false);
		return BLK_STS_OK;
	}
	if (kblk_command(rq, &r->cmd))
		return BLK_STS_NOTSUPP;
	/* the error is the volume's, so multipath does not try another path */
	if (req_op(rq) == REQ_OP_FLUSH && kblk_cache_lost(d))
		return BLK_STS_TARGET;

	/* keep the time of the first attempt */
	if (!(rq->rq_flags & RQF_DONTPREP))
		r->first = jiffies;
	rq->rq_flags |= RQF_DONTPREP;
	r->queue = q;
	r->ended.done = kblk_ended;
	r->sent.done = kblk_sent;
	r->mr = NULL;
	r->follow = 0;
	r->check = false;
	r->sts = BLK_STS_OK;
	atomic_set(&r->answered, 0);
	r->cmd.gen = ++r->gen;
	if (req_op(rq) == REQ_OP_READ || req_op(rq) == REQ_OP_WRITE)
		segs = kblk_pages(rq, r->bv + 1);
	if (req_op(rq) == REQ_OP_WRITE && segs <= d->inline_segs &&
	    blk_rq_bytes(rq) <= d->inline_max) {
		r->cmd.flags |= KBLK_CMD_INLINE;
		r->follow = segs;
	}
	atomic_set(&r->parts, segs ? 3 : 2);
	if (segs > r->follow) {
		err = kblk_map(r, segs, req_op(rq) == REQ_OP_READ ?
					FI_REMOTE_WRITE : FI_REMOTE_READ);
		if (err == -EAGAIN)
			return BLK_STS_RESOURCE;
		/* an error of the request; all others are errors of the connection */
		if (err == -EINVAL || err == -EOPNOTSUPP)
			return BLK_STS_IOERR;
		if (err)
			goto lost;
	}

	if (kblk_has(q, KBLK_FEATURE_DIGEST))
		kblk_add_digests(rq, r);
	if (req_op(rq) == REQ_OP_FLUSH)
		kblk_cache_flush(d->cache);
	blk_mq_start_request(rq);
	held = xchg(&q->held, bd->last ? NULL : r);
	if (held)
		kblk_post(held, true);
	if (bd->last)
		kblk_post(r, false);
	return BLK_STS_OK;

lost:
	/* started, so that it is found and sent again */
	blk_mq_start_request(rq);
	kblk_lost(d);
	return BLK_STS_OK;
}

static int kblk_poll(struct blk_mq_hw_ctx *hctx, struct io_comp_batch *iob)
{
	struct kblk_queue *q = hctx->driver_data;
	int ret = 0;

	rcu_read_lock();
	/* with the queue, until kblk_down() has waited for RCU readers; see kblk_live() */
	if (smp_load_acquire(&q->disk->state) == KBLK_LIVE)
		ret = kofi_cq_poll(q->cq, KBLK_QUEUED);
	rcu_read_unlock();
	return ret;
}

/* Test for a note since the last check that the target works on the command. */
static bool kblk_in_progress(const struct kblk_rq *r)
{
	struct kblk_queue *q = r->queue;
	__le64 beat = READ_ONCE(q->notes.beat);

	if (beat != q->beat) {
		q->beat = beat;
		q->beat_at = jiffies;
	}
	return beat && READ_ONCE(q->disk->state) == KBLK_LIVE &&
	       !READ_ONCE(q->disk->removing) &&
	       time_before(jiffies, q->beat_at + q->disk->set.timeout) &&
	       le64_to_cpu(READ_ONCE(q->notes.tags)) &
	       BIT_ULL(le16_to_cpu(r->cmd.tag));
}

/*
 * A target that sends neither an answer nor a note is lost. The request
 * stays where it is until the connection has been closed, and is then sent again. A
 * polling program may not have polled: check for the answer first.
 */
static enum blk_eh_timer_return kblk_timeout(struct request *rq)
{
	struct kblk_rq *r = blk_mq_rq_to_pdu(rq);
	struct kblk_disk *d = r->queue->disk;

	if (r->queue->polled)
		kblk_poll(rq->mq_hctx, NULL);
	if (blk_mq_rq_state(rq) != MQ_RQ_IN_FLIGHT)
		return BLK_EH_DONE;
	/* the next poll finds the completion of its region */
	if (r->queue->polled && atomic_read(&r->answered) &&
	    !kblk_rq_is_late(d, r))
		return BLK_EH_RESET_TIMER;
	if (kblk_in_progress(r)) {
		pr_info_ratelimited("kofi_blk: %s: the target is still working: command %u, sector %llu, %u bytes\n",
				    d->gd->disk_name, r->cmd.op,
				    le64_to_cpu(r->cmd.sector),
				    le32_to_cpu(r->cmd.len));
		return BLK_EH_RESET_TIMER;
	}
	pr_warn_ratelimited("kofi_blk: %s: no answer for %u s: command %u, sector %llu, %u bytes\n",
			    d->gd->disk_name, d->set.timeout / HZ, r->cmd.op,
			    le64_to_cpu(r->cmd.sector), le32_to_cpu(r->cmd.len));
	WRITE_ONCE(d->timed_out, true);
	kblk_lost(d);
	return BLK_EH_RESET_TIMER;
}

static void kblk_map_queues(struct blk_mq_tag_set *set)
{
	struct blk_mq_queue_map *map = set->map;
	struct kblk_disk *d = set->driver_data;

	map[HCTX_TYPE_DEFAULT].nr_queues = d->nr_queues - d->nr_polled;
	blk_mq_map_queues(&map[HCTX_TYPE_DEFAULT]);
	if (!d->nr_polled)
		return;
	map[HCTX_TYPE_POLL].nr_queues = d->nr_polled;
	map[HCTX_TYPE_POLL].queue_offset = d->nr_queues - d->nr_polled;
	blk_mq_map_queues(&map[HCTX_TYPE_POLL]);
}

static int kblk_init_hctx(struct blk_mq_hw_ctx *hctx, void *data,
			  unsigned int nr)
{
	struct kblk_disk *d = data;

	hctx->driver_data = d->queues[nr];
	return 0;
}

const struct blk_mq_ops kblk_mq_ops = {
	.queue_rq	= kblk_queue_rq,
	.commit_rqs	= kblk_commit_rqs,
	.complete	= kblk_complete,
	.timeout	= kblk_timeout,
	.poll		= kblk_poll,
	.map_queues	= kblk_map_queues,
	.init_hctx	= kblk_init_hctx,
};

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Commands of a connection.
 *
 * Memory. A connection allocates all memory at its login. Each outstanding command of its
 * client has a receive and an I/O, with a page for data that follows the command. A pool
 * of pages holds all other data. A command waits while the pool has too few pages, and
 * later commands wait behind it; the client's depth limits their number. Serving a
 * command allocates nothing.
 *
 * Read: a bio fills pages of the pool, and a write to the client's
 * memory transfers them. With remote CQ data that write is the answer; otherwise a
 * message follows, which invalidates the client's key. Write: a read
 * of the client's memory fills the pages, unless the data came with the command,
 * then a bio and a message follow. All other commands are a bio and a message. A
 * failure at any step becomes a message with a status.
 *
 * Digests. A command is used, and its data is written, when their digests are right. If one is
 * wrong, the connection is closed without an answer, and the client sends the command again. If
 * interrupts are off when the bio of a read completes, a work item computes the digest.
 *
 * Credits. The receive of a command is posted again before its answer is, so a
 * client that has the answer may send the next command.
 *
 * Contexts. Callbacks of the queue run in its work item, never concurrently, and may
 * sleep in the block layer. A bio may complete in any context, so its callback only
 * posts. A refused post waits for the write-space
 * callback. After the connection has been closed, posts fail and I/Os complete where they
 * are.
 */
#include <linux/bitfield.h>
#include <linux/sched/mm.h>
#include <linux/uio.h>

#include "digest.h"
#include "target.h"

static void kblkt_run(struct kblkt_conn *c);

/* -------------------------------------------------------------------- posting */

/*
 * Make the next post, now or later. After a successful post, which may
 * have been the last one, @io may belong to another command. A refused post
 * is tried once more with the lock held, so that the write-space callback comes later
 * and finds it.
 */
static void kblkt_go(struct kblkt_io *io, int (*step)(struct kblkt_io *io))
{
	struct kblkt_conn *c = io->conn;
	unsigned long flags;
	int err;

	io->step = step;
	err = step(io);
	if (err == -EAGAIN) {
		spin_lock_irqsave(&c->lock, flags);
		err = io->step(io);
		if (err == -EAGAIN)
			list_add_tail(&io->node, &c->waiting);
		spin_unlock_irqrestore(&c->lock, flags);
	}
	if (err && err != -EAGAIN)
		kblkt_lost(c);
}

/**
 * kblkt_io_space - write-space callback
 * @ep: endpoint of a connection
 * @context: the connection
 */
void kblkt_io_space(struct fid_ep *ep, void *context)
{
	struct kblkt_conn *c = context;
	struct kblkt_io *io, *next;
	LIST_HEAD(list);

	kblkt_login_space(c);
	spin_lock_irq(&c->lock);
	list_splice_init(&c->waiting, &list);
	spin_unlock_irq(&c->lock);
	list_for_each_entry_safe(io, next, &list, node)
		kblkt_go(io, io->step);
}

static int kblkt_receive(struct kblkt_rx *rx)
{
	return fi_recv(rx->conn->ep, rx->cmd, rx->conn->cmd_len + KBLK_INLINE,
		       NULL, 0, &rx->cqe);
}

static void kblkt_rearm(struct kblkt_rx *rx)
{
	if (kblkt_receive(rx))
		kblkt_lost(rx->conn);
}

static u32 kblkt_value(const struct kblkt_io *io)
{
	return FIELD_PREP(KBLK_ANSWER_TAG, io->tag) |
	       FIELD_PREP(KBLK_ANSWER_GEN, io->gen) |
	       FIELD_PREP(KBLK_ANSWER_STATUS, io->status);
}

/* The answer invalidates the client's key. */
static int kblkt_answer(struct kblkt_io *io)
{
	struct kblkt_conn *c = io->conn;
	const struct kvec kv = {
		.iov_base = &io->answer, .iov_len = sizeof(io->answer),
	};
	const struct fi_msg msg = {
		.msg_iov = &kv,
		.iov_count = 1,
		.context = &io->answered,
		.inv_key = io->key,
	};
	bool inv = io->key && !c->no_inv;
	int err;

	io->answer.value = cpu_to_le32(kblkt_value(io));
	err = fi_sendmsg(c->ep, &msg, FI_COMPLETION |
				      (inv ? KOFI_REMOTE_INV : 0));
	if (err == -EOPNOTSUPP && inv) {
		/* then the client takes it back */
		c->no_inv = true;
		err = fi_sendmsg(c->ep, &msg, FI_COMPLETION);
	}
	return err;
}

/* Describe local memory to a post. */
struct kblkt_local {
	struct kvec	kv;
	struct iov_iter	iter;
};

/* A single page is cheaper for providers as a vector of one. */
static void kblkt_local(struct kblkt_io *io, int dir,
			struct kblkt_local *local, struct fi_msg_rma *msg)
{
	if (io->pages == 1) {
		local->kv.iov_base = bvec_virt(io->bv);
		local->kv.iov_len = io->len;
		msg->msg_iov = &local->kv;
		msg->iov_count = 1;
		return;
	}
	iov_iter_bvec(&local->iter, dir, io->bv, io->pages, io->len);
	msg->msg_iter = &local->iter;
	msg->vec = KOFI_ITER;
}

static bool kblkt_has_digests(const struct kblkt_conn *c)
{
	return c->features & KBLK_FEATURE_DIGEST;
}

/* Test whether reads are answered by remote CQ data. */
static bool kblkt_has_data(const struct kblkt_conn *c)
{
	return c->features & KBLK_FEATURE_CQ_DATA;
}

/* The data of a read. With remote CQ data it is the answer as well. */
static int kblkt_put(struct kblkt_io *io)
{
	struct kblkt_conn *c = io->conn;
	const struct fi_rma_iov to = {
		.addr = io->addr, .len = io->len, .key = io->key,
	};
	struct kblkt_local local;
	struct fi_msg_rma msg = {
		.rma_iov = &to,
		.rma_iov_count = 1,
		.context = &io->moved,
		.data = kblkt_value(io),
	};
	bool data = kblkt_has_data(c);
	int err;

	kblkt_local(io, ITER_SOURCE, &local, &msg);
	err = fi_writemsg(c->ep, &msg, FI_COMPLETION |
			  (data ? FI_REMOTE_CQ_DATA : FI_MORE));
	if (err || data)
		return err;
	io->step = kblkt_answer;
	return kblkt_answer(io);
}

/* The data of a write */
static int kblkt_get(struct kblkt_io *io)
{
	const struct fi_rma_iov from = {
		.addr = io->addr, .len = io->len, .key = io->key,
	};
	struct kblkt_local local;
	struct fi_msg_rma msg = {
		.rma_iov = &from,
		.rma_iov_count = 1,
		.context = &io->moved,
	};

	kblkt_local(io, ITER_DEST, &local, &msg);
	return fi_readmsg(io->conn->ep, &msg, FI_COMPLETION);
}

/* ------------------------------------------------------------------- the bios */

static u8 kblkt_status(blk_status_t sts)
{
	switch (sts) {
	case BLK_STS_OK:
		return KBLK_OK;
	case BLK_STS_NOTSUPP:
		return KBLK_NOT_SUPPORTED;
	case BLK_STS_NOSPC:
		return KBLK_NO_SPACE;
	case BLK_STS_MEDIUM:
		return KBLK_MEDIUM_ERROR;
	}
	return KBLK_IO_ERROR;
}

static void kblkt_count(struct kblkt_counts *n, u8 op, bool failed)
{
	atomic64_inc(op == KBLK_OP_READ ? &n->reads :
		     op == KBLK_OP_WRITE ? &n->writes : &n->others);
	if (failed)
		atomic64_inc(&n->errors);
}

/* Close the connection; the client sends its commands without an answer again. */
static void kblkt_damaged(struct kblkt_conn *c, const char *what)
{
	atomic64_inc(&c->volume->digest_errors);
	pr_err_ratelimited("kofi_blkt: %pISc: %s: wrong digest of %s, connection ended\n",
			   &c->peer, c->volume->name, what);
	kblkt_lost(c);
}

static __le32 kblkt_answer_digest(const struct kblkt_io *io, bool read)
{
	u32 crc = kblk_answer_crc(io->digests.command,
				  cpu_to_le32(kblkt_value(io)));

	if (read) {
		/* see kblkt_digest_waits() */
		lockdep_assert_irqs_enabled();
		crc = kblk_crc_bvec(crc, io->bv, io->pages);
	}
	return kblk_crc_end(crc);
}

/* Any context */
static void kblkt_finish(struct kblkt_io *io, u8 status)
{
	bool read = io->op == KBLK_OP_READ && status == KBLK_OK;
	struct kblkt_conn *c = io->conn;

	io->status = status;
	io->answer.digest = kblkt_has_digests(c) ?
			    kblkt_answer_digest(io, read) : 0;
	kblkt_count(&c->volume->counts, io->op, status != KBLK_OK);
	kblkt_count(&c->counts, io->op, status != KBLK_OK);
	if (io->rx)
		kblkt_rearm(io->rx);
	io->rx = NULL;
	/* before the answer, which lets the client use it again */
	clear_bit(io->tag, c->tags);
	atomic_set(&io->parts, read && !kblkt_has_data(c) ? 2 : 1);
	kblkt_go(io, read ? kblkt_put : kblkt_answer);
}

static void kblkt_bios_put(struct kblkt_conn *c)
{
	if (refcount_dec_and_test(&c->bios))
		complete(&c->bios_gone);
}

/*
 * Clients of a volume that had no write cache when it was enabled do not flush. If
 * its device has a cache now, FUA keeps the promise to them.
 */
static bool kblkt_through(const struct kblkt_volume *v)
{
	return !(v->welcome.flags & cpu_to_le32(KBLK_WRITE_CACHE));
}

/*
 * Test whether an answer would promise that data is on stable storage. A file reports
 * a write-back error to one of several concurrent flushes only, and a device with FUA by
 * flush does, too, so each command checks.
 */
static bool kblkt_promises(const struct kblkt_io *io, blk_status_t sts)
{
	struct block_device *bdev = io->conn->volume->bdev;

	if (io->op == KBLK_OP_FLUSH)
		return true;
	if (sts || (bdev && (!bdev_write_cache(bdev) || bdev_fua(bdev))))
		return false;
	return io->flags & KBLK_CMD_FUA ||
	       (io->op == KBLK_OP_WRITE && kblkt_through(io->conn->volume));
}

/**
 * kblkt_io_done - continue a command after the device or file has executed it
 * @io: the command
 * @sts: result
 *
 * A failed flush, or a flush after it, is not answered: the connection is
 * closed. The next login reports another incarnation, and then the
 * client's flushes fail, whichever flush of whichever client failed.
 *
 * Context: any.
 */
void kblkt_io_done(struct kblkt_io *io, blk_status_t sts)
{
	struct kblkt_conn *c = io->conn;
	struct kblkt_volume *v = c->volume;

	if (kblkt_promises(io, sts) && kblkt_flushed(v, 0) != c->incarnation) {
		atomic64_inc(&v->counts.errors);
		kblkt_lost(c);
	} else {
		kblkt_finish(io, kblkt_status(sts));
	}
	percpu_ref_put(&v->served);
	kblkt_bios_put(c);
}

static void kblkt_digest_work(struct work_struct *work)
{
	kblkt_io_done(container_of(work, struct kblkt_io, work), BLK_STS_OK);
}

/* The digest of a long read takes too long for an interrupt handler. */
static bool kblkt_digest_waits(const struct kblkt_io *io)
{
	return io->op == KBLK_OP_READ && kblkt_has_digests(io->conn) &&
	       (in_hardirq() || irqs_disabled());
}

static void kblkt_bio_done(struct bio *bio)
{
	struct kblkt_io *io = container_of(bio, struct kblkt_io, bio);
	struct block_device *bdev = io->conn->volume->bdev;
	blk_status_t sts = bio->bi_status;

	/* a device may turn out not to support the operation */
	if (sts == BLK_STS_IOERR &&
	    ((io->op == KBLK_OP_DISCARD && !bdev_max_discard_sectors(bdev)) ||
	     (io->op == KBLK_OP_ZEROES && !bdev_write_zeroes_sectors(bdev))))
		sts = BLK_STS_NOTSUPP;
	/* the failure may be a flush that replaces FUA, here or below */
	if (bio->bi_opf & REQ_FUA && sts && sts != BLK_STS_NOSPC &&
	    sts != BLK_STS_NOTSUPP)
		kblkt_flushed(io->conn->volume, blk_status_to_errno(sts));
	bio_uninit(bio);
	if (sts || !kblkt_digest_waits(io)) {
		kblkt_io_done(io, sts);
		return;
	}
	INIT_WORK(&io->work, kblkt_digest_work);
	queue_work(io->conn->volume->wq, &io->work);
}

/* Without a cache the block layer drops the FUA. */
static blk_opf_t kblkt_opf(const struct kblkt_io *io)
{
	const struct kblkt_volume *v = io->conn->volume;
	bool fua = io->flags & KBLK_CMD_FUA || kblkt_through(v);
	bool unmap = v->thin && !(io->flags & KBLK_CMD_NO_UNMAP);

	switch (io->op) {
	case KBLK_OP_READ:
		return REQ_OP_READ;
	case KBLK_OP_WRITE:
		return REQ_OP_WRITE | REQ_SYNC | REQ_IDLE |
		       (fua ? REQ_FUA : 0);
	case KBLK_OP_DISCARD:
		return REQ_OP_DISCARD;
	}
	return REQ_OP_WRITE_ZEROES | (unmap ? 0 : REQ_NOUNMAP);
}

/**
 * kblkt_flush_work - work item of a volume's flushes
 * @work: work item of the volume
 *
 * Flushes run one after the other: a device reports a loss once, and a flush that
 * succeeds concurrently must not be answered before the loss is known. Flushes
 * that arrive during one are executed together.
 */
void kblkt_flush_work(struct work_struct *work)
{
	struct kblkt_volume *v = container_of(work, struct kblkt_volume, flush);
	unsigned int noio = memalloc_noio_save();
	struct kblkt_io *io, *next;
	LIST_HEAD(list);

	spin_lock_irq(&v->lock);
	list_splice_init(&v->flushes, &list);
	spin_unlock_irq(&v->lock);
	if (!list_empty(&list))
		kblkt_volume_flush(v);
	memalloc_noio_restore(noio);
	list_for_each_entry_safe(io, next, &list, node)
		kblkt_io_done(io, BLK_STS_OK);
}

static void kblkt_flush(struct kblkt_io *io)
{
	struct kblkt_volume *v = io->conn->volume;

	spin_lock_irq(&v->lock);
	list_add_tail(&io->node, &v->flushes);
	spin_unlock_irq(&v->lock);
	queue_work(v->wq, &v->flush);
}

static void kblkt_submit(struct kblkt_io *io)
{
	struct kblkt_conn *c = io->conn;
	struct bio *bio = &io->bio;

	/* the volume is being disabled: the connection is closed without an answer */
	if (!percpu_ref_tryget_live(&c->volume->served))
		return;
	refcount_inc(&c->bios);
	/* the client reports the command as failed, or sends it again */
	if (atomic_read(&c->dead)) {
		kblkt_io_done(io, BLK_STS_TRANSPORT);
		return;
	}
	if (io->op == KBLK_OP_FLUSH) {
		kblkt_flush(io);
		return;
	}
	if (!c->volume->bdev) {
		INIT_WORK(&io->work, kblkt_file_work);
		queue_work(c->volume->wq, &io->work);
		return;
	}
	bio_init(bio, c->volume->bdev, io->bv, ARRAY_SIZE(io->bv),
		 kblkt_opf(io));
	bio->bi_iter.bi_sector = io->sector;
	bio->bi_iter.bi_size = io->len;
	bio->bi_vcnt = io->rx ? 1 : io->pages;
	bio->bi_end_io = kblkt_bio_done;
	/* which may wait for the device; see kblkt_note_progress() */
	WRITE_ONCE(c->notes.turns, c->notes.turns + 1);
	submit_bio(bio);
	WRITE_ONCE(c->notes.turns, c->notes.turns + 1);
}

/* ---------------------------------------------------------------- completions */

/* In the queue's work item: room for the next command */
static void kblkt_release(struct kblkt_io *io)
{
	struct kblkt_conn *c = io->conn;
	unsigned int i;

	spin_lock_irq(&c->lock);
	for (i = 0; i < io->pages; i++)
		c->pages[c->nr_free++] = io->bv[i].bv_page;
	io->pages = 0;
	list_add(&io->node, &c->idle_ios);
	spin_unlock_irq(&c->lock);
	kblkt_run(c);
}

static void kblkt_answer_part(struct kblkt_io *io, const struct kofi_wc *wc)
{
	if (wc->err)
		kblkt_lost(io->conn);
	else if (atomic_dec_and_test(&io->parts))
		kblkt_release(io);
}

static void kblkt_answered(struct fid_cq *cq, const struct kofi_wc *wc)
{
	kblkt_answer_part(container_of(wc->cqe, struct kblkt_io, answered), wc);
}

static void kblkt_moved(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct kblkt_io *io = container_of(wc->cqe, struct kblkt_io, moved);

	if (io->op == KBLK_OP_READ)
		kblkt_answer_part(io, wc);
	else if (wc->err)
		kblkt_lost(io->conn);
	else if (kblkt_has_digests(io->conn) &&
		 io->digests.data != kblk_crc_end(kblk_crc_bvec(KBLK_CRC_START, io->bv,
								io->pages)))
		kblkt_damaged(io->conn, "data");
	else
		kblkt_submit(io);
}

/* ------------------------------------------------------------------- commands */

/* Behind the command, with KBLK_FEATURE_DIGEST */
static const struct kblk_digests *kblkt_digests(const struct kblk_cmd *cmd)
{
	return (const struct kblk_digests *)(cmd + 1);
}

/*
 * Compare the digests of a command and of the data behind it; @len is at least the length
 * of a command. Returns the name of the damaged part, or NULL.
 */
static const char *kblkt_cmd_damaged(const struct kblkt_conn *c,
				     const struct kblk_cmd *cmd, size_t len)
{
	const struct kblk_digests *d = kblkt_digests(cmd);

	if (d->command != kblk_cmd_digest(cmd, d->data))
		return "a command";
	if (cmd->flags & KBLK_CMD_INLINE &&
	    d->data != kblk_crc_end(crc32c(KBLK_CRC_START, d + 1,
					   len - c->cmd_len)))
		return "data";
	return NULL;
}

/* A command that no client of this version sends closes the connection. */
static bool kblkt_cmd_valid(const struct kblkt_conn *c,
			    const struct kblk_cmd *cmd, size_t len)
{
	static const u8 flags[KBLK_OPS] = {
		[KBLK_OP_WRITE]		= KBLK_CMD_FUA | KBLK_CMD_INLINE,
		[KBLK_OP_ZEROES]	= KBLK_CMD_NO_UNMAP,
	};
	u32 data;

	if (len < c->cmd_len || cmd->op >= KBLK_OPS ||
	    cmd->flags & ~flags[cmd->op] ||
	    le16_to_cpu(cmd->tag) >= c->depth ||
	    memchr_inv(cmd->reserved, 0, sizeof(cmd->reserved)) ||
	    cmd->reserved2)
		return false;
	/* without memory of the client there is no address */
	if ((cmd->op > KBLK_OP_WRITE || cmd->flags & KBLK_CMD_INLINE) &&
	    (cmd->addr || cmd->key))
		return false;
	if (cmd->op == KBLK_OP_FLUSH && (cmd->sector || cmd->len))
		return false;
	if (kblkt_has_digests(c) && cmd->op != KBLK_OP_WRITE &&
	    kblkt_digests(cmd)->data)
		return false;
	data = cmd->flags & KBLK_CMD_INLINE ? le32_to_cpu(cmd->len) : 0;
	return len - c->cmd_len == data;
}

/* A valid command may still be refused, with an answer. */
static u8 kblkt_cmd_check(const struct kblkt_io *io)
{
	const struct kblkt_volume *v = io->conn->volume;
	u64 sectors = kblkt_sectors(v);
	u32 max = BIT(v->welcome.bytes_max);

	if (io->op == KBLK_OP_FLUSH)
		return KBLK_OK;
	if (io->op != KBLK_OP_READ && v->read_only)
		return KBLK_PROTECTED;
	if (io->op == KBLK_OP_DISCARD || io->op == KBLK_OP_ZEROES) {
		u8 log2 = io->op == KBLK_OP_DISCARD ? v->welcome.discard_max :
						      v->welcome.zeroes_max;

		/* there is no FUA for zeroes, so the client writes them */
		if (!log2 || (io->op == KBLK_OP_ZEROES && kblkt_through(v) &&
			      bdev_write_cache(v->bdev)))
			return KBLK_NOT_SUPPORTED;
		max = BIT(log2);
	}
	if (!io->len || io->len > max ||
	    !IS_ALIGNED(io->len | io->sector << SECTOR_SHIFT,
			BIT(v->welcome.block)) ||
	    io->sector > sectors ||
	    io->len >> SECTOR_SHIFT > sectors - io->sector)
		return KBLK_RANGE;
	return KBLK_OK;
}

static void kblkt_start(struct kblkt_io *io)
{
	u8 status = kblkt_cmd_check(io);

	if (status != KBLK_OK)
		kblkt_finish(io, status);
	else if (io->op == KBLK_OP_WRITE && !io->rx)
		kblkt_go(io, kblkt_get);
	else
		kblkt_submit(io);
}

/* Number of pages that a command needs; 0 for one that will be refused */
static unsigned int kblkt_cmd_pages(const struct kblk_cmd *cmd)
{
	if ((cmd->op != KBLK_OP_READ && cmd->op != KBLK_OP_WRITE) ||
	    cmd->flags & KBLK_CMD_INLINE ||
	    le32_to_cpu(cmd->len) > BIT(KBLK_BYTES))
		return 0;
	return DIV_ROUND_UP(le32_to_cpu(cmd->len), PAGE_SIZE);
}

/* Take the oldest waiting command, if there is memory for it. */
static struct kblkt_io *kblkt_next(struct kblkt_conn *c, struct kblkt_rx **rxp)
{
	struct kblkt_io *io = NULL;
	unsigned int pages, i;
	struct kblkt_rx *rx;

	spin_lock_irq(&c->lock);
	rx = list_first_entry_or_null(&c->pending, struct kblkt_rx, node);
	if (!rx || list_empty(&c->idle_ios))
		goto unlock;
	pages = kblkt_cmd_pages(rx->cmd);
	if (pages > c->nr_free)
		goto unlock;
	list_del(&rx->node);
	io = list_first_entry(&c->idle_ios, struct kblkt_io, node);
	list_del(&io->node);
	for (i = 0; i < pages; i++)
		bvec_set_page(&io->bv[i], c->pages[--c->nr_free], PAGE_SIZE, 0);
	io->pages = pages;
	*rxp = rx;
unlock:
	spin_unlock_irq(&c->lock);
	return io;
}

/* In the queue's work item */
static void kblkt_run(struct kblkt_conn *c)
{
	struct kblkt_io *io;
	struct kblkt_rx *rx;

	while ((io = kblkt_next(c, &rx))) {
		const struct kblk_cmd *cmd = rx->cmd;

		io->op = cmd->op;
		io->flags = cmd->flags;
		io->tag = le16_to_cpu(cmd->tag);
		io->gen = cmd->gen;
		io->sector = le64_to_cpu(cmd->sector);
		io->len = le32_to_cpu(cmd->len);
		io->addr = le64_to_cpu(cmd->addr);
		io->key = le64_to_cpu(cmd->key);
		if (kblkt_has_digests(c))
			io->digests = *kblkt_digests(cmd);
		if (io->pages)
			io->bv[io->pages - 1].bv_len =
				io->len - (io->pages - 1) * PAGE_SIZE;
		io->rx = cmd->flags & KBLK_CMD_INLINE ? rx : NULL;
		if (io->rx)
			bvec_set_virt(&io->bv[0], (u8 *)rx->cmd + c->cmd_len,
				      io->len);
		else
			kblkt_rearm(rx);
		kblkt_start(io);
	}
}

static void kblkt_received(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct kblkt_rx *rx = container_of(wc->cqe, struct kblkt_rx, cqe);
	struct kblkt_conn *c = rx->conn;
	const char *damaged = NULL;

	if (wc->err) {
		kblkt_lost(c);
		return;
	}
	/* before any other check, which would blame the client */
	if (kblkt_has_digests(c) && wc->len >= c->cmd_len)
		damaged = kblkt_cmd_damaged(c, rx->cmd, wc->len);
	if (damaged) {
		kblkt_damaged(c, damaged);
		return;
	}
	/* more commands than tags would wait for each other in one stream */
	if (!kblkt_cmd_valid(c, rx->cmd, wc->len) ||
	    test_and_set_bit(le16_to_cpu(rx->cmd->tag), c->tags)) {
		pr_warn_ratelimited("kofi_blkt: %pISc: invalid command, connection ended\n",
				    &c->peer);
		kblkt_lost(c);
		return;
	}
	spin_lock_irq(&c->lock);
	list_add_tail(&rx->node, &c->pending);
	spin_unlock_irq(&c->lock);
	kblkt_run(c);
}

/* ------------------------------------------------------------------ resources */

/**
 * kblkt_io_alloc - allocate the memory for a connection's commands
 * @c: a new connection
 *
 * Return: 0, or -ENOMEM with a part of the memory allocated.
 */
int kblkt_io_alloc(struct kblkt_conn *c)
{
	unsigned int i;

	c->rx = kvcalloc(c->depth, sizeof(*c->rx), GFP_KERNEL);
	c->io = kvcalloc(c->depth, sizeof(*c->io), GFP_KERNEL);
	if (!c->rx || !c->io)
		return -ENOMEM;
	for (i = 0; i < c->depth; i++) {
		c->rx[i].conn = c;
		c->rx[i].cqe.done = kblkt_received;
		c->rx[i].page = alloc_pages(GFP_KERNEL | __GFP_COMP,
					    KBLKT_RX_ORDER);
		if (!c->rx[i].page)
			return -ENOMEM;
		c->rx[i].cmd = page_address(c->rx[i].page) + KBLK_INLINE -
			       c->cmd_len;
		c->io[i].conn = c;
		c->io[i].moved.done = kblkt_moved;
		c->io[i].answered.done = kblkt_answered;
		list_add_tail(&c->io[i].node, &c->idle_ios);
	}
	for (i = 0; i < KBLKT_POOL; i++) {
		c->pages[i] = alloc_page(GFP_KERNEL);
		if (!c->pages[i])
			return -ENOMEM;
		c->nr_free++;
	}
	return 0;
}

/**
 * kblkt_io_start - post the receives of a connection
 * @c: a connection with an enabled endpoint
 *
 * Return: 0 or a negative error code.
 */
int kblkt_io_start(struct kblkt_conn *c)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < c->depth && !err; i++)
		err = kblkt_receive(&c->rx[i]);
	return err;
}

/**
 * kblkt_io_free - undo kblkt_io_alloc(), also after its failure
 * @c: a connection with a closed endpoint and without outstanding bios
 */
void kblkt_io_free(struct kblkt_conn *c)
{
	unsigned int i, j;

	for (i = 0; c->io && i < c->depth; i++)
		for (j = 0; j < c->io[i].pages; j++)
			__free_page(c->io[i].bv[j].bv_page);
	for (i = 0; i < c->nr_free; i++)
		__free_page(c->pages[i]);
	for (i = 0; c->rx && i < c->depth; i++)
		if (c->rx[i].page)
			__free_pages(c->rx[i].page, KBLKT_RX_ORDER);
	kvfree(c->io);
	kvfree(c->rx);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The client: disks kofiblk0, kofiblk1, ..., each a blk-mq queue on top of one
 * connection.
 *
 * A request takes a region from the endpoint's pool, maps its pages there for
 * the peer to read or write once, and sends the key. All of that happens in
 * queue_rq(), in whatever context the block layer has, and allocates nothing.
 * Two things follow, in either order: the server's answer, and the end of the
 * region, by the server's access or by the answer, which names the key. When
 * both are in, nobody can touch the pages any more and the request ends.
 *
 * There is a region, and room in all queues, for each request the block layer
 * may have under way, so nothing is ever refused for want of one. When the
 * connection ends, whatever is under way ends with an I/O error: the receives
 * that are flushed say so.
 */
#include <linux/atomic.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/list.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "testblk.h"

struct tb_disk;

/* tb_cmd.flags */
enum {
	TB_CMD_ANSWERED,	/* by the server, or by the end of the connection */
};

/**
 * struct tb_cmd - a request of the block layer
 * @ended: completes its region
 * @mr: the region
 * @parts: what has not come yet: the answer, the end of the region
 * @status: what the request ends with
 * @flags: TB_CMD_ANSWERED
 * @bv: its pages
 */
struct tb_cmd {
	struct kofi_cqe		ended;
	struct fid_mr		*mr;
	atomic_t		parts;
	blk_status_t		status;
	unsigned long		flags;
	struct bio_vec		bv[TB_SEGS];
};

/* A posted receive for an answer */
struct tb_answer {
	struct tb_disk		*disk;
	struct kofi_cqe		cqe;
	struct tb_msg		msg;
};

struct tb_disk {
	struct list_head	node;
	struct fid_fabric	*fabric;
	struct fid_eq		*eq;
	struct tb_end		end;
	struct blk_mq_tag_set	set;
	struct gendisk		*disk;
	struct work_struct	dead;		/* the connection has ended */
	struct tb_answer	answers[TB_DEPTH];
};

static LIST_HEAD(tb_disks);
static unsigned int tb_disk_nr;

/* ------------------------------------------------------------ ending requests */

static void tb_cmd_put(struct tb_cmd *cmd)
{
	if (!atomic_dec_and_test(&cmd->parts))
		return;
	kofi_mr_put(cmd->mr);
	blk_mq_end_request(blk_mq_rq_from_pdu(cmd), cmd->status);
}

static void tb_cmd_ended(struct fid_cq *cq, const struct kofi_wc *wc)
{
	tb_cmd_put(container_of(wc->cqe, struct tb_cmd, ended));
}

/* Returns false if it has been answered before. */
static bool tb_cmd_answer(struct tb_cmd *cmd, blk_status_t status)
{
	if (test_and_set_bit(TB_CMD_ANSWERED, &cmd->flags))
		return false;
	cmd->status = status;
	/* whatever the server has done or not: of no effect if it has ended */
	kofi_mr_unmap(cmd->mr, NULL);
	tb_cmd_put(cmd);
	return true;
}

static bool tb_disk_fail(struct request *rq, void *arg)
{
	if (blk_mq_request_started(rq))
		tb_cmd_answer(blk_mq_rq_to_pdu(rq), BLK_STS_IOERR);
	return true;
}

/*
 * No answer comes any more, and nothing can be posted: what was posted before
 * has been started, so it is found here.
 */
static void tb_disk_dead(struct work_struct *work)
{
	struct tb_disk *disk = container_of(work, struct tb_disk, dead);

	blk_mq_tagset_busy_iter(&disk->set, tb_disk_fail, NULL);
}

static void tb_disk_answered(struct tb_disk *disk, const struct tb_msg *msg)
{
	u32 tag = le32_to_cpu(msg->tag);
	struct request *rq = NULL;

	if (tag < TB_DEPTH)
		rq = blk_mq_tag_to_rq(disk->set.tags[0], tag);
	if (!rq || !blk_mq_request_started(rq) ||
	    !tb_cmd_answer(blk_mq_rq_to_pdu(rq),
			   msg->error ? BLK_STS_IOERR : BLK_STS_OK))
		pr_err("kofi_testblk: answer to no request: tag %u\n", tag);
}

static void tb_answer_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct tb_answer *answer = container_of(wc->cqe, struct tb_answer, cqe);
	struct tb_disk *disk = answer->disk;
	struct tb_msg msg = answer->msg;
	bool good = !wc->err && wc->len == sizeof(msg);

	/* who waits for it may be reclaiming memory: not just any work queue */
	if (!good || tb_recv(&disk->end, &answer->msg, &answer->cqe))
		kblockd_schedule_work(&disk->dead);
	if (good)
		tb_disk_answered(disk, &msg);
}

/* ---------------------------------------------------------- the block device */

static int tb_cmd_map(struct tb_disk *disk, struct request *rq)
{
	struct tb_cmd *cmd = blk_mq_rq_to_pdu(rq);
	bool write = req_op(rq) == REQ_OP_WRITE;
	struct fi_msg vec = {
		.msg_bvec = cmd->bv, .vec = KOFI_BVEC, .context = &cmd->ended,
	};
	struct req_iterator iter;
	struct bio_vec bv;
	int err;

	rq_for_each_bvec(bv, rq, iter)
		cmd->bv[vec.iov_count++] = bv;
	cmd->mr = kofi_mr_get(disk->end.ep);
	if (!cmd->mr)
		return -ENOBUFS;
	err = kofi_mr_map(cmd->mr, &vec,
			  write ? FI_REMOTE_READ : FI_REMOTE_WRITE,
			  FI_MR_SINGLE_USE);
	if (err)
		kofi_mr_put(cmd->mr);
	return err;
}

static blk_status_t tb_queue_rq(struct blk_mq_hw_ctx *hctx,
				const struct blk_mq_queue_data *bd)
{
	struct tb_disk *disk = hctx->queue->queuedata;
	struct request *rq = bd->rq;
	struct tb_cmd *cmd = blk_mq_rq_to_pdu(rq);
	struct tb_msg msg = {
		.pos = cpu_to_le64(blk_rq_pos(rq) << SECTOR_SHIFT),
		.len = cpu_to_le32(blk_rq_bytes(rq)),
		.op = cpu_to_le32(req_op(rq) == REQ_OP_WRITE ? TB_WRITE :
							       TB_READ),
		.tag = cpu_to_le32(rq->tag),
	};

	if (req_op(rq) != REQ_OP_READ && req_op(rq) != REQ_OP_WRITE)
		return BLK_STS_NOTSUPP;
	cmd->ended.done = tb_cmd_ended;
	cmd->flags = 0;
	atomic_set(&cmd->parts, 2);
	if (tb_cmd_map(disk, rq))
		return BLK_STS_IOERR;
	msg.addr = cpu_to_le64(kofi_mr_base(cmd->mr));
	msg.key = cpu_to_le64(fi_mr_key(cmd->mr));

	blk_mq_start_request(rq);
	/*
	 * There is a record for each request, so an error is the end of the
	 * connection, and tb_disk_dead() may have been quicker.
	 */
	if (fi_inject(disk->end.ep, &msg, sizeof(msg), 0))
		tb_cmd_answer(cmd, BLK_STS_IOERR);
	return BLK_STS_OK;
}

static const struct blk_mq_ops tb_mq_ops = {
	.queue_rq	= tb_queue_rq,
};

static const struct block_device_operations tb_fops = {
	.owner		= THIS_MODULE,
};

static int tb_disk_add(struct tb_disk *disk, unsigned int mib)
{
	struct queue_limits lim = {
		.max_hw_sectors		= TB_BYTES >> SECTOR_SHIFT,
		.max_segments		= TB_SEGS,
		/* regions of an RDMA device have no gaps */
		.virt_boundary_mask	= PAGE_SIZE - 1,
		.physical_block_size	= PAGE_SIZE,
	};
	struct gendisk *gd;
	int err;

	gd = blk_mq_alloc_disk(&disk->set, &lim, disk);
	if (IS_ERR(gd))
		return PTR_ERR(gd);
	snprintf(gd->disk_name, sizeof(gd->disk_name), "kofiblk%u", tb_disk_nr);
	gd->fops = &tb_fops;
	set_capacity(gd, (sector_t)mib << (20 - SECTOR_SHIFT));
	err = add_disk(gd);
	if (err) {
		put_disk(gd);
		return err;
	}
	disk->disk = gd;
	tb_disk_nr++;
	return 0;
}

/* ---------------------------------------------------------------- connecting */

static int tb_disk_connect(struct tb_disk *disk, struct fi_info *info,
			   const struct tb_spec *spec)
{
	const struct tb_hello hello = {
		.mib = cpu_to_le32(spec->mib - spec->lack),
		.sleepy = cpu_to_le32(spec->sleepy),
	};
	struct fi_eq_cm_entry entry;
	u32 event;
	int err, i;

	for (i = 0; i < TB_DEPTH; i++) {
		struct tb_answer *answer = &disk->answers[i];

		answer->disk = disk;
		answer->cqe.done = tb_answer_done;
		err = tb_recv(&disk->end, &answer->msg, &answer->cqe);
		if (err)
			return err;
	}
	err = fi_connect(disk->end.ep, info->dest_addr, &hello, sizeof(hello));
	if (err)
		return err;
	if (fi_eq_sread(disk->eq, &event, &entry, sizeof(entry), -1, 0) < 0 ||
	    event != FI_CONNECTED)
		return -ECONNREFUSED;
	return 0;
}

static void tb_disk_free(struct tb_disk *disk)
{
	if (disk->disk) {
		/* what is under way ends first */
		del_gendisk(disk->disk);
		put_disk(disk->disk);
	}
	tb_end_close(&disk->end);
	cancel_work_sync(&disk->dead);
	if (disk->eq)
		fi_close(&disk->eq->fid);
	if (disk->fabric)
		fi_close(&disk->fabric->fid);
	blk_mq_free_tag_set(&disk->set);
	kfree(disk);
}

/**
 * tb_disk_open - connect to a server, for a new disk
 * @node: where it listens
 * @spec: what it is like
 *
 * Return: 0 or a negative error code.
 */
int tb_disk_open(const char *node, const struct tb_spec *spec)
{
	const struct tb_end_attr how = {
		.regions = TB_DEPTH, .sleepy = spec->sleepy,
	};
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct tb_disk *disk;
	struct fi_info *info;
	int err;

	disk = kzalloc(sizeof(*disk), GFP_KERNEL);
	if (!disk)
		return -ENOMEM;
	INIT_WORK(&disk->dead, tb_disk_dead);
	disk->set.ops = &tb_mq_ops;
	disk->set.nr_hw_queues = 1;
	disk->set.queue_depth = TB_DEPTH;
	disk->set.numa_node = NUMA_NO_NODE;
	disk->set.cmd_size = sizeof(struct tb_cmd);
	err = blk_mq_alloc_tag_set(&disk->set);
	if (err)
		goto free_disk;
	err = tb_getinfo(node, 0, &info);
	if (err)
		goto free_tags;
	err = fi_fabric(info->fabric_attr, &disk->fabric, NULL);
	err = err ? : fi_eq_open(disk->fabric, &attr, &disk->eq, NULL);
	err = err ? : tb_end_open(&disk->end, disk->fabric, disk->eq, info,
				  &how);
	err = err ? : tb_disk_connect(disk, info, spec);
	fi_freeinfo(info);
	err = err ? : tb_disk_add(disk, spec->mib);
	if (err)
		tb_disk_free(disk);
	else
		list_add_tail(&disk->node, &tb_disks);
	return err;

free_tags:
	blk_mq_free_tag_set(&disk->set);
free_disk:
	kfree(disk);
	return err;
}

/**
 * tb_disks_close - remove all disks
 */
void tb_disks_close(void)
{
	struct tb_disk *disk, *next;

	list_for_each_entry_safe(disk, next, &tb_disks, node)
		tb_disk_free(disk);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Volumes that are regular files.
 *
 * A command to a device is a bio; a command to a file is a work item. The work item sleeps
 * as long as the file takes, and completes the command as a bio does. Where the file
 * system can, the page cache is bypassed: writes of clients would fill the target's
 * memory, and a flush would take as long as writing all of them back.
 * If a file has shrunk, a read beyond its size is an error.
 */
#include <linux/cred.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/namei.h>
#include <linux/sched/mm.h>
#include <linux/uio.h>

#include "target.h"

static struct file *kblkt_file_try(const struct path *path, int flags)
{
	struct file *file = dentry_open(path, flags, current_cred());
	struct kstat stat;

	if (IS_ERR(file) || !(flags & O_DIRECT))
		return file;
	/* the volume has blocks of a sector, and its data may begin at any sector */
	if (vfs_getattr(path, &stat, STATX_DIOALIGN, 0) ||
	    !(stat.result_mask & STATX_DIOALIGN) ||
	    !stat.dio_offset_align || stat.dio_offset_align > SECTOR_SIZE ||
	    stat.dio_mem_align > SECTOR_SIZE) {
		fput(file);
		return ERR_PTR(-EINVAL);
	}
	return file;
}

/**
 * kblkt_file_open - open the file of a volume
 * @v: the volume
 *
 * Return: the file, or an error pointer; -EINVAL if it is none.
 */
struct file *kblkt_file_open(const struct kblkt_volume *v)
{
	const int flags = (v->read_only ? O_RDONLY : O_RDWR) | O_LARGEFILE;
	struct file *file;
	struct path path;
	int err;

	err = kern_path(v->path, LOOKUP_FOLLOW, &path);
	if (err)
		return ERR_PTR(err);
	/* opening anything else may have effects, or wait for a peer (FIFO) */
	file = ERR_PTR(-EINVAL);
	if (d_is_reg(path.dentry)) {
		if (v->direct)
			file = kblkt_file_try(&path, flags | O_DIRECT);
		if (file == ERR_PTR(-EINVAL))
			file = kblkt_file_try(&path, flags);
	}
	path_put(&path);
	return file;
}

/**
 * kblkt_file_sparse - whether a file has fewer blocks than bytes
 * @file: the file
 *
 * A file that has them all was given them, so that writes find space.
 */
bool kblkt_file_sparse(const struct file *file)
{
	struct inode *inode = file_inode(file);

	return inode_get_bytes(inode) < i_size_read(inode);
}

/**
 * kblkt_file_describe - set the attributes of a file for clients
 * @v: the volume
 * @w: welcome to complete
 */
void kblkt_file_describe(const struct kblkt_volume *v, struct kblk_welcome *w)
{
	w->block = SECTOR_SHIFT;
	w->phys = min_t(u8, file_inode(v->file)->i_blkbits, KBLK_UNIT);
	w->io_min = w->phys;
	w->flags |= cpu_to_le32(KBLK_WRITE_CACHE);
	if (v->read_only || !v->file->f_op->fallocate)
		return;
	if (v->thin) {
		w->discard_max = KBLKT_LONG;
		w->discard_unit = w->phys;
	}
	w->zeroes_max = KBLKT_LONG;
}

static int kblkt_file_move(struct kblkt_io *io, struct file *file, loff_t pos)
{
	bool read = io->op == KBLK_OP_READ;
	loff_t start = pos;
	struct iov_iter iter;
	ssize_t n;
	int err;

	iov_iter_bvec(&iter, read ? ITER_DEST : ITER_SOURCE, io->bv,
		      io->rx ? 1 : io->pages, io->len);
	/* a short one is followed by its reason, if there is one */
	do {
		n = read ? vfs_iter_read(file, &iter, &pos, 0) :
			   vfs_iter_write(file, &iter, &pos, 0);
	} while (n > 0 && iov_iter_count(&iter));
	if (n <= 0)
		return n ?: -EIO;
	if (!(io->flags & KBLK_CMD_FUA))
		return 0;
	/* an error here may be of other writes, as with a flush */
	err = vfs_fsync_range(file, start, pos - 1, 1);
	if (err)
		kblkt_flushed(io->conn->volume, err);
	return err;
}

static int kblkt_file_do(struct kblkt_io *io)
{
	const struct kblkt_volume *v = io->conn->volume;
	struct file *file = v->file;
	loff_t pos = io->sector << SECTOR_SHIFT;
	int mode = FALLOC_FL_KEEP_SIZE;

	if (io->op == KBLK_OP_READ || io->op == KBLK_OP_WRITE)
		return kblkt_file_move(io, file, pos);
	if (io->op == KBLK_OP_ZEROES &&
	    (!v->thin || io->flags & KBLK_CMD_NO_UNMAP))
		mode |= FALLOC_FL_ZERO_RANGE;
	else
		mode |= FALLOC_FL_PUNCH_HOLE;
	return vfs_fallocate(file, mode, pos, io->len);
}

/**
 * kblkt_file_work - execute a command on the file of a volume
 * @work: work item of an I/O
 *
 * The command may be writeback of a client, on this machine or another one. So the work
 * item acts like a loop device of the kernel. PF_LOCAL_THROTTLE: only the file's device
 * throttles its writes. GFP_NOIO: its allocations do not wait for writeback, which may
 * depend on this command.
 */
void kblkt_file_work(struct work_struct *work)
{
	struct kblkt_io *io = container_of(work, struct kblkt_io, work);
	unsigned int throttle = current->flags & PF_LOCAL_THROTTLE;
	unsigned int noio = memalloc_noio_save();
	int err = -ECONNRESET;

	current->flags |= PF_LOCAL_THROTTLE;
	/* otherwise as in kblkt_submit() */
	if (!atomic_read(&io->conn->dead))
		err = kblkt_file_do(io);
	current_restore_flags(throttle, PF_LOCAL_THROTTLE);
	memalloc_noio_restore(noio);
	kblkt_io_done(io, errno_to_blk_status(err));
}

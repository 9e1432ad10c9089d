// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The block device: its limits, its name and its lifetime. The target and the provider
 * determine the limits. If a volume is unmapped while a program has the disk open, the
 * disk keeps its name until the program closes it. Its requests fail.
 */
#include <crypto/hash.h>
#include <linux/blkdev.h>
#include <linux/delay.h>
#include <linux/idr.h>
#include <linux/kofi/backport.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/siphash.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/unaligned.h>
#include <linux/uuid.h>
#include <linux/wait_bit.h>

#include "auth.h"
#include "blk.h"

#define KBLK_IO_OPT_MAX	SZ_4M	/* limit of io_opt in bytes; see kblk_io_opt() */

static DEFINE_IDA(kblk_ida);

static void kblk_disk_free(struct kblk_disk *d)
{
	int index = d->index;
	unsigned int i;

	for (i = 0; i < d->nr_queues; i++)
		kfree(d->queues[i]);
	if (d->set.tags)
		blk_mq_free_tag_set(&d->set);
	if (d->cache)
		kblk_cache_put(d->cache);
	put_net(d->net);
	crypto_free_shash(d->hmac);
	kfree(d);
	if (index >= 0)
		ida_free(&kblk_ida, index);
	wake_up_var(&kblk_ida);
}

/**
 * kblk_disk_wait - wait until no disk is left
 *
 * The last close of a disk releases the module before the disk is freed.
 *
 * Context: process, may sleep.
 */
void kblk_disk_wait(void)
{
	wait_var_event(&kblk_ida, ida_is_empty(&kblk_ida));
}

static void kblk_free_gd(struct gendisk *gd)
{
	kblk_disk_free(gd->private_data);
}

static void kblk_release(struct gendisk *gd)
{
	struct kblk_disk *d = gd->private_data;

	if (!disk_openers(gd))
		kblk_cache_closed(d);
}

static const struct block_device_operations kblk_fops = {
	.owner		= THIS_MODULE,
	.release	= kblk_release,
	.free_disk	= kblk_free_gd,
};

static ssize_t wwid_show(struct device *dev, struct device_attribute *attr,
			 char *page)
{
	const struct kblk_disk *d = dev_to_disk(dev)->private_data;

	return sysfs_emit(page, "uuid.%pUb\n", d->welcome.uuid);
}
static DEVICE_ATTR_RO(wwid);

static struct attribute *kblk_attrs[] = {
	&dev_attr_wwid.attr,
	NULL
};

static const struct attribute_group kblk_group = {
	.attrs		= kblk_attrs,
};

static const struct attribute_group *kblk_groups[] = {
	&kblk_group,
	NULL
};

/**
 * kblk_disk_resize - set the size of a disk from the target's welcome
 * @d: the disk
 */
void kblk_disk_resize(struct kblk_disk *d)
{
	u64 sectors = le64_to_cpu(d->welcome.sectors);

	if (sectors < get_capacity(d->gd))
		pr_warn("kofi_blk: %s has shrunk to %llu sectors\n",
			d->gd->disk_name, sectors);
	set_capacity_and_notify(d->gd, sectors);
}

static u32 kblk_sectors(unsigned int log2)
{
	return log2 ? BIT(log2) >> SECTOR_SHIFT : 0;
}

/*
 * Compute the length of the longest request. Each of the provider's segments may hold
 * only one page, and a request that begins within a page has one page more.
 */
static unsigned int kblk_max_sectors(const struct kblk_disk *d)
{
	unsigned int pages = max(kblk_segs(d), 2u) - 1;

	return min(kblk_sectors(min(d->welcome.bytes_max, KBLK_BYTES)),
		   pages << (PAGE_SHIFT - SECTOR_SHIFT));
}

/*
 * The block layer reads ahead twice io_opt, and file systems align to it. So a value above
 * the limit is omitted rather than reduced.
 */
static unsigned int kblk_io_opt(const struct kblk_welcome *w)
{
	unsigned int bytes = le32_to_cpu(w->io_opt);

	return bytes <= KBLK_IO_OPT_MAX ? bytes : 0;
}

static int kblk_disk_add(struct kblk_disk *d)
{
	const struct kblk_welcome *w = &d->welcome;
	unsigned int flags = le32_to_cpu(w->flags);
	struct queue_limits lim = {
		.logical_block_size	= BIT(w->block),
		.physical_block_size	= BIT(w->phys),
		.io_min			= BIT(w->io_min),
		.io_opt			= kblk_io_opt(w),
		.max_hw_sectors		= kblk_max_sectors(d),
		.max_segments		= kblk_segs(d),
		/* a region of an RDMA device cannot have gaps */
		.virt_boundary_mask	= PAGE_SIZE - 1,
		.max_hw_discard_sectors	= kblk_sectors(w->discard_max),
		.discard_granularity	= w->discard_max ? BIT(w->discard_unit) : 0,
		.max_write_zeroes_sectors = kblk_sectors(w->zeroes_max),
	};
	struct gendisk *gd;
	int err;

	if (flags & KBLK_WRITE_CACHE)
		lim.features |= BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA;
	if (flags & KBLK_ROTATIONAL)
		lim.features |= BLK_FEAT_ROTATIONAL;
	/* a page that changes after its digest was computed would look damaged */
	if (d->opt.digest != KBLK_DIGEST_OFF)
		lim.features |= BLK_FEAT_STABLE_WRITES;
	gd = blk_mq_alloc_disk(&d->set, &lim, d);
	if (IS_ERR(gd))
		return PTR_ERR(gd);
	gd->fops = &kblk_fops;
	gd->private_data = d;
	snprintf(gd->disk_name, sizeof(gd->disk_name), "kofiblk%d", d->index);
	set_capacity(gd, le64_to_cpu(w->sectors));
	set_disk_ro(gd, flags & KBLK_READ_ONLY);
	d->gd = gd;
	/* device_add_disk() reads the partitions at once */
	kblk_live(d);
	err = device_add_disk(NULL, gd, kblk_groups);
	if (!err)
		return 0;
	WRITE_ONCE(d->removing, true);
	kblk_lost(d);
	flush_delayed_work(&d->recover);
	return err;
}

/**
 * kblk_disk_tags - allocate requests on the NUMA node of the connections' device
 * @d: the disk, with an open domain
 *
 * Context: process, may sleep.
 * Return: 0 or a negative error.
 */
int kblk_disk_tags(struct kblk_disk *d)
{
	d->set.ops = &kblk_mq_ops;
	d->set.flags = BLK_MQ_F_SHOULD_MERGE;
	d->set.nr_hw_queues = d->nr_queues;
	d->set.nr_maps = d->nr_polled ? HCTX_MAX_TYPES : 1;
	d->set.queue_depth = KBLK_TAGS;
	d->set.numa_node = kofi_domain_node(d->domain);
	d->set.cmd_size = sizeof(struct kblk_rq);
	d->set.driver_data = d;
	d->set.timeout = d->opt.io_timeout * HZ;
	return blk_mq_alloc_tag_set(&d->set);
}

static int kblk_disk_queues(struct kblk_disk *d)
{
	unsigned int i;

	for (i = 0; i < d->nr_queues; i++) {
		d->queues[i] = kzalloc(sizeof(*d->queues[i]), GFP_KERNEL);
		if (!d->queues[i])
			return -ENOMEM;
		d->queues[i]->disk = d;
		d->queues[i]->nr = i;
		d->queues[i]->polled = i >= d->nr_queues - d->nr_polled;
	}
	return 0;
}

/*
 * Derive the session from the name of the mapping and of the host. If the volume is mapped
 * again by the same name, it has the same session. The target then aborts its work for the
 * earlier mapping.
 */
static void kblk_disk_session(struct kblk_disk *d, const char *name)
{
	siphash_key_t key = {};

	key.key[0] = siphash(d->opt.host, strlen(d->opt.host), &key);
	put_unaligned_le64(siphash(name, strlen(name), &key), d->session);
}

/*
 * Allocate the transformation once: a new one may load a module, which takes memory that may
 * be available only after this disk has written.
 */
static int kblk_disk_hmac(struct kblk_disk *d)
{
	struct crypto_shash *hmac;

	if (!*d->opt.key)
		return 0;
	hmac = crypto_alloc_shash(KBLK_HMAC, 0, 0);
	if (IS_ERR(hmac))
		return PTR_ERR(hmac);
	d->hmac = hmac;
	return 0;
}

/* A path to the target may have returned: connect now rather than after the delay. */
static void kblk_domain_add(struct kofi_client *client,
			    const struct kofi_domain_id *id)
{
	struct kblk_disk *d = container_of(client, struct kblk_disk, client);

	if (READ_ONCE(d->state) != KBLK_LIVE)
		mod_delayed_work(kblk_wq, &d->recover, 0);
}

/* Connections report the loss of their device. */
static void kblk_domain_remove(struct kofi_client *client,
			       const struct kofi_domain_id *id)
{
}

/**
 * kblk_disk_open - map a volume
 * @opt: options of the mapping
 * @name: name of the mapping
 *
 * Context: process, may sleep, until the target has answered.
 * Return: the disk, or an error pointer.
 */
struct kblk_disk *kblk_disk_open(const struct kblk_options *opt,
				 const char *name)
{
	unsigned int queues, polled, ms = 100;
	struct kblk_disk *d;
	unsigned long end;
	int err;

	/* each kind has at most as many queues as there are CPUs */
	polled = min(opt->polled, num_possible_cpus());
	queues = min(opt->queues, num_possible_cpus()) + polled;
	d = kzalloc(struct_size(d, queues, queues), GFP_KERNEL);
	if (!d)
		return ERR_PTR(-ENOMEM);
	d->nr_queues = queues;
	d->nr_polled = polled;
	d->opt = *opt;
	d->net = get_net(current->nsproxy->net_ns);
	INIT_DELAYED_WORK(&d->recover, kblk_recover);
	d->since = jiffies;
	kblk_disk_session(d, name);
	d->index = ida_alloc(&kblk_ida, GFP_KERNEL);
	err = d->index;
	if (err >= 0)
		err = kblk_disk_queues(d);
	if (!err)
		err = kblk_disk_hmac(d);
	if (!err)
		err = kblk_connect(d);
	/* the target is busy until it has closed an earlier mapping */
	end = jiffies + min(opt->io_timeout, opt->path_timeout) * HZ;
	for (; err == -EBUSY && time_before(jiffies, end); ms = min(2 * ms, 1000u)) {
		if (msleep_interruptible(ms))
			break;
		err = kblk_connect(d);
	}
	if (err) {
		if (err == -EBUSY)
			pr_err("kofi_blk: %s is busy with an earlier mapping of %s\n",
			       opt->addr, opt->volume);
		kblk_leave(d);
		kblk_disk_free(d);
		return ERR_PTR(err);
	}
	err = kblk_disk_add(d);
	if (err)
		goto close;
	d->client = (struct kofi_client) {
		.name = "kofi_blk",
		.net = d->net,
		.add = kblk_domain_add,
		.change = kblk_domain_add,
		.remove = kblk_domain_remove,
	};
	kofi_client_register(&d->client);
	pr_info("kofi_blk: %s is volume %s of %s, %u queues over %s\n",
		d->gd->disk_name, d->opt.volume, d->opt.addr, d->nr_queues,
		d->opt.provider);
	return d;

close:
	disable_delayed_work_sync(&d->recover);
	kblk_disconnect(d);
	kblk_leave(d);
	/* put_disk() does not call free_disk() of a disk that has not been added */
	if (d->gd)
		put_disk(d->gd);
	kblk_disk_free(d);
	return ERR_PTR(err);
}

/**
 * kblk_disk_close - unmap a volume
 * @d: the disk; its outstanding requests complete while the target answers, and fail
 *	otherwise
 *
 * Context: process, may sleep.
 */
void kblk_disk_close(struct kblk_disk *d)
{
	struct gendisk *gd = d->gd;

	pr_info("kofi_blk: %s goes\n", gd->disk_name);
	WRITE_ONCE(d->removing, true);
	kofi_client_unregister(&d->client);
	/* del_gendisk() must not wait for the next attempt to connect */
	if (READ_ONCE(d->state) != KBLK_LIVE) {
		mod_delayed_work(kblk_wq, &d->recover, 0);
		flush_delayed_work(&d->recover);
	}
	del_gendisk(gd);
	disable_delayed_work_sync(&d->recover);
	kblk_disconnect(d);
	kblk_leave(d);
	/* these functions and callbacks may have queued it since del_gendisk() */
	cancel_delayed_work_sync(&gd->queue->requeue_work);
	put_disk(gd);
}

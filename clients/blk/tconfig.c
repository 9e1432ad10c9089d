// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Volumes and ports, as configfs has them: a directory of kofi_blkt/volumes or
 * kofi_blkt/ports for each. "allow" and the links of a port to its volumes change at
 * any time, the other attributes while "enable" is 0. A directory holds the module,
 * and cannot be removed while "enable" is 1. Its files are root's; "allow", "enable",
 * "resize" and links take CAP_SYS_ADMIN, too.
 *
 * Closing connections and devices may take long. A process that waits for them can be
 * killed, and holds no lock of a directory: only a write to an attribute waits.
 */
#include <linux/capability.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/kofi/version.h>

#include "target.h"

static const struct config_item_type kblkt_type = {
	.ct_owner	= THIS_MODULE,
};

static struct configfs_subsystem kblkt_subsystem = {
	.su_group.cg_item = {
		.ci_namebuf	= "kofi_blkt",
		.ci_type	= &kblkt_type,
	},
};

static struct kblkt_volume *kblkt_volume(struct config_item *item)
{
	return container_of(item, struct kblkt_volume, item);
}

static struct kblkt_port *kblkt_port(struct config_item *item)
{
	return container_of(to_config_group(item), struct kblkt_port, group);
}

/* The value of "enable" that is written to it, or a negative error code */
static int kblkt_bool(const char *page)
{
	bool on;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	err = kstrtobool(page, &on);
	return err ?: on;
}

/* -------------------------------------------------------------------- volumes */

static const char * const kblkt_discard_names[] = {
	[KBLKT_DISCARD_AUTO]	= "auto",
	[KBLKT_DISCARD_OFF]	= "0",
	[KBLKT_DISCARD_ON]	= "1",
};

/* For an attribute of a volume that is disabled */
static int kblkt_volume_lock(struct kblkt_volume *v)
{
	if (mutex_lock_killable(&v->config))
		return -EINTR;
	if (!v->file)
		return 0;
	mutex_unlock(&v->config);
	return -EBUSY;
}

static ssize_t kblkt_volume_path_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n", kblkt_volume(item)->path);
}

static ssize_t kblkt_volume_path_store(struct config_item *item,
				       const char *page, size_t len)
{
	struct kblkt_volume *v = kblkt_volume(item);

	return kblk_store_text(&v->config, (const void **)&v->file, v->path,
				sizeof(v->path), page, len);
}
CONFIGFS_ATTR(kblkt_volume_, path);

static ssize_t kblkt_volume_readonly_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", kblkt_volume(item)->read_only);
}

static ssize_t kblkt_volume_readonly_store(struct config_item *item,
					   const char *page, size_t len)
{
	struct kblkt_volume *v = kblkt_volume(item);
	int err = kblkt_volume_lock(v);

	if (err)
		return err;
	err = kstrtobool(page, &v->read_only);
	mutex_unlock(&v->config);
	return err ?: len;
}
CONFIGFS_ATTR(kblkt_volume_, readonly);

static ssize_t kblkt_volume_uuid_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%pUb\n", &kblkt_volume(item)->uuid);
}

static ssize_t kblkt_volume_uuid_store(struct config_item *item,
				       const char *page, size_t len)
{
	struct kblkt_volume *v = kblkt_volume(item);
	int err = kblkt_volume_lock(v);

	if (err)
		return err;
	err = uuid_parse(page, &v->uuid);
	mutex_unlock(&v->config);
	return err ?: len;
}
CONFIGFS_ATTR(kblkt_volume_, uuid);

static ssize_t kblkt_volume_direct_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", kblkt_volume(item)->direct);
}

static ssize_t kblkt_volume_direct_store(struct config_item *item,
					 const char *page, size_t len)
{
	struct kblkt_volume *v = kblkt_volume(item);
	int err = kblkt_volume_lock(v);

	if (err)
		return err;
	err = kstrtobool(page, &v->direct);
	mutex_unlock(&v->config);
	return err ?: len;
}
CONFIGFS_ATTR(kblkt_volume_, direct);

static ssize_t kblkt_volume_stable_show(struct config_item *item, char *page)
{
	struct kblkt_volume *v = kblkt_volume(item);
	__le64 list[KBLK_STABLE];
	unsigned int nr, i;
	ssize_t len = 0;

	nr = kblkt_stable_get(&v->uuid, list);
	for (i = 0; i < nr; i++)
		len += sysfs_emit_at(page, len, "%016llx\n",
				     le64_to_cpu(list[i]));
	return len;
}

/* All of them at a time, as they are shown; or "none" */
static ssize_t kblkt_volume_stable_store(struct config_item *item,
					 const char *page, size_t len)
{
	struct kblkt_volume *v = kblkt_volume(item);
	char *text = kstrndup(page, len, GFP_KERNEL);
	__le64 list[KBLK_STABLE];
	unsigned int nr = 0;
	char *at, *word;
	int err = 0;
	u64 value;

	if (!text)
		return -ENOMEM;
	at = strim(text);
	if (!strcmp(at, "none"))
		at = NULL;
	while (!err && (word = strsep(&at, ",\n"))) {
		err = nr == KBLK_STABLE ? -ENOSPC : kstrtou64(word, 16, &value);
		if (!err && !value)
			err = -EINVAL;
		if (!err)
			list[nr++] = cpu_to_le64(value);
	}
	kfree(text);
	if (err)
		return err;
	err = kblkt_volume_lock(v);
	if (err)
		return err;
	kblkt_stable_set(&v->uuid, list, nr);
	mutex_unlock(&v->config);
	return len;
}
CONFIGFS_ATTR(kblkt_volume_, stable);

static ssize_t kblkt_volume_discard_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n",
			  kblkt_discard_names[kblkt_volume(item)->discard]);
}

static ssize_t kblkt_volume_discard_store(struct config_item *item,
					  const char *page, size_t len)
{
	struct kblkt_volume *v = kblkt_volume(item);
	int value = sysfs_match_string(kblkt_discard_names, page);
	int err;

	if (value < 0)
		return value;
	err = kblkt_volume_lock(v);
	if (err)
		return err;
	v->discard = value;
	mutex_unlock(&v->config);
	return len;
}
CONFIGFS_ATTR(kblkt_volume_, discard);

static ssize_t kblkt_volume_allow_show(struct config_item *item, char *page)
{
	ssize_t len;

	mutex_lock(&kblkt_lock);
	len = kblkt_allow_show(&kblkt_volume(item)->allow, page);
	mutex_unlock(&kblkt_lock);
	return len;
}

static bool kblkt_denied(const struct kblkt_conn *c)
{
	return !kblkt_allowed(c->volume, (const struct sockaddr *)&c->peer,
			      c->identity, c->key);
}

/*
 * All entries at a time. A client that is not among them any longer is fenced, and so is one
 * whose identity has another key now.
 */
static ssize_t kblkt_volume_allow_store(struct config_item *item,
					const char *page, size_t len)
{
	struct kblkt_volume *v = kblkt_volume(item);
	struct kblkt_allow *allow;
	char *text;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	allow = kzalloc(sizeof(*allow), GFP_KERNEL);
	text = kstrndup(page, len, GFP_KERNEL);
	err = allow && text ? kblkt_allow_parse(text, allow) : -ENOMEM;
	if (!err && allow->nr_ids)
		err = kblkt_auth_use();
	if (!err) {
		mutex_lock(&kblkt_lock);
		v->allow = *allow;
		mutex_unlock(&kblkt_lock);
		err = kblkt_end(v, NULL, kblkt_denied, true);
	}
	kfree(text);
	kfree(allow);
	return err ?: len;
}
CONFIGFS_ATTR(kblkt_volume_, allow);

static ssize_t kblkt_volume_access_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n",
			  kblkt_volume(item)->exclusive ? "exclusive" : "shared");
}

static ssize_t kblkt_volume_access_store(struct config_item *item,
					 const char *page, size_t len)
{
	bool exclusive = sysfs_streq(page, "exclusive");
	struct kblkt_volume *v = kblkt_volume(item);
	int err;

	if (!exclusive && !sysfs_streq(page, "shared"))
		return -EINVAL;
	err = kblkt_volume_lock(v);
	if (err)
		return err;
	v->exclusive = exclusive;
	mutex_unlock(&v->config);
	return len;
}
CONFIGFS_ATTR(kblkt_volume_, access);

static ssize_t kblkt_volume_connections_show(struct config_item *item,
					     char *page)
{
	return sysfs_emit(page, "%u\n",
			  READ_ONCE(kblkt_volume(item)->max_conns));
}

/* Existing connections stay. */
static ssize_t kblkt_volume_connections_store(struct config_item *item,
					      const char *page, size_t len)
{
	unsigned int value;
	int err;

	err = kblk_parse_number(page, 1, KBLKT_CONNS_MAX, &value);
	if (err)
		return err;
	WRITE_ONCE(kblkt_volume(item)->max_conns, value);
	return len;
}
CONFIGFS_ATTR(kblkt_volume_, connections);

static ssize_t kblkt_volume_clients_show(struct config_item *item, char *page)
{
	return kblkt_clients_show(kblkt_volume(item), page);
}
CONFIGFS_ATTR_RO(kblkt_volume_, clients);

static ssize_t kblkt_volume_stat_show(struct config_item *item, char *page)
{
	struct kblkt_volume *v = kblkt_volume(item);
	unsigned int conns;

	mutex_lock(&kblkt_lock);
	conns = v->conns;
	mutex_unlock(&kblkt_lock);
	return sysfs_emit(page,
			  "connections %u\ndirect %d\nreads %lld\nwrites %lld\nothers %lld\nerrors %lld\ndigest_errors %lld\n",
			  conns, READ_ONCE(v->uncached),
			  atomic64_read(&v->counts.reads),
			  atomic64_read(&v->counts.writes),
			  atomic64_read(&v->counts.others),
			  atomic64_read(&v->counts.errors),
			  atomic64_read(&v->digest_errors));
}
CONFIGFS_ATTR_RO(kblkt_volume_, stat);

static ssize_t kblkt_volume_enable_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", !!READ_ONCE(kblkt_volume(item)->file));
}

/* log2 of the largest power of 2 that is not more */
static u8 kblkt_log2(u64 bytes, u8 max)
{
	return bytes ? min_t(u64, ilog2(bytes), max) : 0;
}

/*
 * Make the number of an incarnation. Unflushed writes are lost when this machine goes
 * down. So a volume gets another incarnation each time that it is enabled. tnotes.c
 * stores incarnations that were flushed since.
 *
 * A failed flush gives it another incarnation, too. The failure is about the writes of
 * all clients. But a device or file reports it once, perhaps to a client that has
 * written nothing.
 */
static u64 kblkt_random(void)
{
	u64 ret;

	do
		ret = get_random_u64();
	while (!ret);
	return ret;
}

/**
 * kblkt_flushed - record the result of a flush
 * @v: the volume, enabled
 * @err: a negative error code, or 0
 *
 * Context: any.
 * Return: the incarnation. It has changed if this flush has failed, or if writeback has
 * failed since the last call.
 */
u64 kblkt_flushed(struct kblkt_volume *v, int err)
{
	unsigned long flags;
	u64 incarnation;

	spin_lock_irqsave(&v->lock, flags);
	/* if a file has several flushes at a time, one of them gets the error */
	if (!v->bdev)
		err = errseq_check_and_advance(&v->file->f_mapping->wb_err,
					       &v->since) ?: err;
	if (err)
		v->incarnation = kblkt_random();
	incarnation = v->incarnation;
	spin_unlock_irqrestore(&v->lock, flags);
	if (err)
		pr_err_ratelimited("kofi_blkt: %s: flush failed: %d\n",
				   v->name, err);
	return incarnation;
}

/**
 * kblkt_sectors - size of a volume
 * @v: the volume, enabled
 */
u64 kblkt_sectors(const struct kblkt_volume *v)
{
	u64 sectors = v->bdev ? bdev_nr_sectors(v->bdev) :
			i_size_read(file_inode(v->file)) >> SECTOR_SHIFT;

	return round_down(sectors, BIT(v->welcome.block - SECTOR_SHIFT));
}

static void kblkt_bdev_describe(const struct kblkt_volume *v,
				struct kblk_welcome *w)
{
	struct block_device *b = v->bdev;
	u8 block = ilog2(bdev_logical_block_size(b));
	u32 io_opt = bdev_io_opt(b);

	if (bdev_get_queue(b)->limits.features & BLK_FEAT_ROTATIONAL)
		w->flags |= cpu_to_le32(KBLK_ROTATIONAL);
	if (bdev_write_cache(b))
		w->flags |= cpu_to_le32(KBLK_WRITE_CACHE);
	if (io_opt <= BIT(KBLK_IO_OPT) && IS_ALIGNED(io_opt, BIT(block)))
		w->io_opt = cpu_to_le32(io_opt);
	w->block = block;
	w->phys = max(block, kblkt_log2(bdev_physical_block_size(b),
					KBLK_UNIT));
	w->io_min = max(block, kblkt_log2(bdev_io_min(b), KBLK_UNIT));
	if (v->read_only)
		return;
	if (v->thin && bdev_max_discard_sectors(b)) {
		u8 unit = max(block,
			      kblkt_log2(bdev_discard_granularity(b), 31));
		/* less than a unit of a thin volume would free nothing */
		u8 most = kblkt_log2((u64)bdev_max_discard_sectors(b) <<
				     SECTOR_SHIFT, max_t(u8, KBLKT_LONG, unit));

		if (most >= unit) {
			w->discard_max = most;
			w->discard_unit = unit;
		}
	}
	w->zeroes_max = kblkt_log2((u64)bdev_write_zeroes_sectors(b) <<
				   SECTOR_SHIFT, KBLKT_LONG);
}

static void kblkt_volume_describe(struct kblkt_volume *v)
{
	struct kblk_welcome *w = &v->welcome;

	*w = (struct kblk_welcome) {
		.flags = cpu_to_le32(v->read_only ? KBLK_READ_ONLY : 0),
		.bytes_max = KBLK_BYTES,
	};
	export_uuid(w->uuid, &v->uuid);
	if (v->bdev)
		kblkt_bdev_describe(v, w);
	else
		kblkt_file_describe(v, w);
	if (BIT(w->block) <= KBLK_INLINE)
		w->inline_max = ilog2(KBLK_INLINE);
}

/**
 * kblkt_volume_flush - flush the device or file, and record the result
 * @v: the volume, enabled
 *
 * Context: process, sleeps.
 */
void kblkt_volume_flush(struct kblkt_volume *v)
{
	kblkt_flushed(v, v->read_only ? 0 :
			 v->bdev ? blkdev_issue_flush(v->bdev) :
				   vfs_fsync(v->file, 1));
}

static void kblkt_volume_close(struct kblkt_volume *v)
{
	cancel_work_sync(&v->flush);
	if (v->wq)
		destroy_workqueue(v->wq);
	v->wq = NULL;
	if (v->ends)
		destroy_workqueue(v->ends);
	v->ends = NULL;
	percpu_ref_exit(&v->served);
	if (v->bdev)
		bdev_fput(v->file);
	else
		fput(v->file);
	v->bdev = NULL;
	WRITE_ONCE(v->file, NULL);
}

static void kblkt_volume_quiet(struct percpu_ref *ref)
{
	complete_all(&container_of(ref, struct kblkt_volume, served)->quiet);
}

static int kblkt_volume_open(struct kblkt_volume *v)
{
	blk_mode_t mode = BLK_OPEN_READ | (v->read_only ? 0 : BLK_OPEN_WRITE);
	struct file *file;

	if (!*v->path)
		return -EINVAL;
	file = bdev_file_open_by_path(v->path, mode, v, NULL);
	if (!IS_ERR(file))
		v->bdev = file_bdev(file);
	else if (PTR_ERR(file) == -ENOTBLK)
		file = kblkt_file_open(v);
	if (IS_ERR(file))
		return PTR_ERR(file);
	WRITE_ONCE(v->file, file);
	WRITE_ONCE(v->uncached, v->bdev || file->f_flags & O_DIRECT);
	v->since = filemap_sample_wb_err(file->f_mapping);
	v->thin = v->discard == KBLKT_DISCARD_AUTO ?
		  v->bdev || kblkt_file_sparse(file) :
		  v->discard == KBLKT_DISCARD_ON;
	/* clients know neither zones nor larger blocks */
	if (v->bdev && (bdev_is_zoned(v->bdev) ||
			bdev_logical_block_size(v->bdev) > PAGE_SIZE))
		return -EINVAL;
	/* queues of the volume's own, as commands may wait for the device for long */
	v->wq = alloc_workqueue("kofi_blkt_volume", WQ_MEM_RECLAIM | WQ_UNBOUND,
				0);
	v->ends = alloc_workqueue("kofi_blkt_ends", WQ_MEM_RECLAIM | WQ_UNBOUND,
				  0);
	if (!v->wq || !v->ends ||
	    percpu_ref_init(&v->served, kblkt_volume_quiet, 0, GFP_KERNEL))
		return -ENOMEM;
	reinit_completion(&v->quiet);
	v->incarnation = kblkt_random();
	return 0;
}

/* From now on clients find it. A device is opened exclusively, a file once here. */
static int kblkt_volume_add(struct kblkt_volume *v)
{
	struct kblkt_volume *other;
	int err = 0;

	mutex_lock(&kblkt_lock);
	list_for_each_entry(other, &kblkt_volumes, node)
		if (file_inode(other->file) == file_inode(v->file))
			err = -EBUSY;
	if (!err)
		list_add_tail(&v->node, &kblkt_volumes);
	mutex_unlock(&kblkt_lock);
	return err;
}

static int kblkt_volume_enable(struct kblkt_volume *v)
{
	int err;

	/* one that is being disabled */
	if (v->file)
		return list_empty(&v->node) ? -EBUSY : 0;
	err = configfs_depend_item_unlocked(&kblkt_subsystem, &v->item);
	if (err)
		return err;
	err = kblkt_volume_open(v);
	if (!err) {
		kblkt_volume_describe(v);
		err = kblkt_volume_add(v);
	}
	if (!err)
		return 0;
	if (v->file)
		kblkt_volume_close(v);
	configfs_undepend_item(&v->item);
	return err;
}

/*
 * No new client, no new command, a flush of all that has been answered, a last note.
 * Of a call that was interrupted another one does the rest.
 */
static int kblkt_volume_disable(struct kblkt_volume *v)
{
	u64 incarnation;
	int err;

	if (!v->file)
		return 0;
	mutex_lock(&kblkt_lock);
	list_del_init(&v->node);
	mutex_unlock(&kblkt_lock);
	if (!percpu_ref_is_dying(&v->served))
		percpu_ref_kill(&v->served);
	if (wait_for_completion_killable(&v->quiet))
		return -EINTR;
	incarnation = kblkt_flushed(v, 0);
	kblkt_volume_flush(v);
	if (kblkt_flushed(v, 0) == incarnation)
		kblkt_note_stable(v, incarnation);
	err = kblkt_end(v, NULL, NULL, true);
	if (err)
		return err;
	kblkt_volume_close(v);
	configfs_undepend_item(&v->item);
	return 0;
}

static ssize_t kblkt_volume_enable_store(struct config_item *item,
					 const char *page, size_t len)
{
	struct kblkt_volume *v = kblkt_volume(item);
	int on = kblkt_bool(page), err;

	if (on < 0)
		return on;
	if (mutex_lock_killable(&v->config))
		return -EINTR;
	err = on ? kblkt_volume_enable(v) : kblkt_volume_disable(v);
	mutex_unlock(&v->config);
	return err ?: len;
}
CONFIGFS_ATTR(kblkt_volume_, enable);

/* Test whether the client knows another size of its volume. */
static bool kblkt_outgrown(const struct kblkt_conn *c)
{
	return c->sectors != kblkt_sectors(c->volume);
}

/*
 * The device or file does not notify this module of another size. Clients learn the size
 * when they connect again.
 */
static ssize_t kblkt_volume_resize_store(struct config_item *item,
					 const char *page, size_t len)
{
	struct kblkt_volume *v = kblkt_volume(item);
	int on = kblkt_bool(page), err = 0;

	if (on < 0)
		return on;
	if (mutex_lock_killable(&v->config))
		return -EINTR;
	if (!v->file)
		err = -ENODEV;
	else if (on)
		kblkt_end(v, NULL, kblkt_outgrown, false);
	mutex_unlock(&v->config);
	return err ?: len;
}
CONFIGFS_ATTR_WO(kblkt_volume_, resize);

static struct configfs_attribute *kblkt_volume_attrs[] = {
	&kblkt_volume_attr_path,
	&kblkt_volume_attr_readonly,
	&kblkt_volume_attr_direct,
	&kblkt_volume_attr_uuid,
	&kblkt_volume_attr_stable,
	&kblkt_volume_attr_discard,
	&kblkt_volume_attr_allow,
	&kblkt_volume_attr_access,
	&kblkt_volume_attr_connections,
	&kblkt_volume_attr_clients,
	&kblkt_volume_attr_stat,
	&kblkt_volume_attr_enable,
	&kblkt_volume_attr_resize,
	NULL
};

static void kblkt_volume_release(struct config_item *item)
{
	kfree(kblkt_volume(item));
}

static struct configfs_item_operations kblkt_volume_ops = {
	.release	= kblkt_volume_release,
};

static const struct config_item_type kblkt_volume_type = {
	.ct_item_ops	= &kblkt_volume_ops,
	.ct_attrs	= kblkt_volume_attrs,
	.ct_owner	= THIS_MODULE,
};

static struct config_item *kblkt_make_volume(struct config_group *group,
					     const char *name)
{
	struct kblkt_volume *v;

	if (strlen(name) > KBLK_NAME_LEN)
		return ERR_PTR(-ENAMETOOLONG);
	v = kzalloc(sizeof(*v), GFP_KERNEL);
	if (!v)
		return ERR_PTR(-ENOMEM);
	mutex_init(&v->config);
	INIT_LIST_HEAD(&v->node);
	v->max_conns = KBLKT_CONNS;
	spin_lock_init(&v->lock);
	INIT_LIST_HEAD(&v->flushes);
	INIT_WORK(&v->flush, kblkt_flush_work);
	memcpy(v->name, name, strlen(name));
	v->direct = true;
	init_completion(&v->quiet);
	init_completion(&v->told);
	ratelimit_state_init(&v->log, 5 * HZ, KBLKT_LOG_BURST);
	uuid_gen(&v->uuid);
	config_item_init_type_name(&v->item, name, &kblkt_volume_type);
	return &v->item;
}

static struct configfs_group_operations kblkt_volumes_ops = {
	.make_item	= kblkt_make_volume,
};

static const struct config_item_type kblkt_volumes_type = {
	.ct_group_ops	= &kblkt_volumes_ops,
	.ct_owner	= THIS_MODULE,
};

/* ---------------------------------------------------------------------- ports */

#define KBLKT_PORT_SHOW(name)						\
static ssize_t kblkt_port_##name##_show(struct config_item *item,	\
					char *page)			\
{									\
	return sysfs_emit(page, "%s\n", kblkt_port(item)->at.name); \
}

#define KBLKT_PORT_STORE(name)						\
static ssize_t kblkt_port_##name##_store(struct config_item *item,	\
					 const char *page, size_t len)	\
{									\
	struct kblkt_port *p = kblkt_port(item);			\
									\
	return kblkt_store_port(p, p->at.name, page, len);		\
}

static ssize_t kblkt_store_port(struct kblkt_port *p, char *to,
				const char *page, size_t len)
{
	return kblk_store_text(&p->config, (const void **)&p->fabric, to,
				KBLK_TEXT, page, len);
}

KBLKT_PORT_STORE(addr)
KBLKT_PORT_SHOW(addr)
CONFIGFS_ATTR(kblkt_port_, addr);
KBLKT_PORT_STORE(port)
KBLKT_PORT_SHOW(port)
CONFIGFS_ATTR(kblkt_port_, port);
KBLKT_PORT_STORE(provider)
KBLKT_PORT_SHOW(provider)
CONFIGFS_ATTR(kblkt_port_, provider);

static ssize_t kblkt_port_digest_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n",
			  kblk_digest_text(READ_ONCE(kblkt_port(item)->digest)));
}

/* Existing connections stay. */
static ssize_t kblkt_port_digest_store(struct config_item *item,
				       const char *page, size_t len)
{
	int mode = kblk_parse_digest(page);

	if (mode < 0)
		return mode;
	WRITE_ONCE(kblkt_port(item)->digest, mode);
	return len;
}
CONFIGFS_ATTR(kblkt_port_, digest);

static ssize_t kblkt_port_enable_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", !!READ_ONCE(kblkt_port(item)->fabric));
}

static int kblkt_port_enable(struct kblkt_port *p)
{
	struct config_item *item = &p->group.cg_item;
	int err;

	/* one that is being disabled */
	if (p->fabric)
		return p->pep ? 0 : -EBUSY;
	if (!*p->at.addr)
		return -EINVAL;
	err = configfs_depend_item_unlocked(&kblkt_subsystem, item);
	if (err)
		return err;
	err = kblkt_listen(p);
	if (!err)
		return 0;
	configfs_undepend_item(item);
	pr_err("kofi_blkt: cannot listen at %s, port %s, over %s: %d\n",
	       p->at.addr, p->at.port, p->at.provider, err);
	return err;
}

static int kblkt_port_disable(struct kblkt_port *p)
{
	int err;

	if (!p->fabric)
		return 0;
	err = kblkt_unlisten(p);
	if (!err)
		configfs_undepend_item(&p->group.cg_item);
	return err;
}

static ssize_t kblkt_port_enable_store(struct config_item *item,
				       const char *page, size_t len)
{
	struct kblkt_port *p = kblkt_port(item);
	int on = kblkt_bool(page), err;

	if (on < 0)
		return on;
	if (mutex_lock_killable(&p->config))
		return -EINTR;
	err = on ? kblkt_port_enable(p) : kblkt_port_disable(p);
	mutex_unlock(&p->config);
	return err ?: len;
}
CONFIGFS_ATTR(kblkt_port_, enable);

static struct configfs_attribute *kblkt_port_attrs[] = {
	&kblkt_port_attr_addr,
	&kblkt_port_attr_port,
	&kblkt_port_attr_provider,
	&kblkt_port_attr_digest,
	&kblkt_port_attr_enable,
	NULL
};

static void kblkt_port_release(struct config_item *item)
{
	kfree(kblkt_port(item));
}

static struct configfs_item_operations kblkt_port_ops = {
	.release	= kblkt_port_release,
};

static const struct config_item_type kblkt_port_type = {
	.ct_item_ops	= &kblkt_port_ops,
	.ct_attrs	= kblkt_port_attrs,
	.ct_owner	= THIS_MODULE,
};

static int kblkt_port_allow_link(struct config_item *volumes,
				 struct config_item *target)
{
	if (target->ci_type != &kblkt_volume_type)
		return -EINVAL;
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	return kblkt_link_add(kblkt_port(volumes->ci_parent),
			      kblkt_volume(target));
}

static void kblkt_port_drop_link(struct config_item *volumes,
				 struct config_item *target)
{
	kblkt_link_del(kblkt_port(volumes->ci_parent), kblkt_volume(target));
}

static struct configfs_item_operations kblkt_port_volumes_ops = {
	.allow_link	= kblkt_port_allow_link,
	.drop_link	= kblkt_port_drop_link,
};

static const struct config_item_type kblkt_port_volumes_type = {
	.ct_item_ops	= &kblkt_port_volumes_ops,
	.ct_owner	= THIS_MODULE,
};

static struct config_group *kblkt_make_port(struct config_group *group,
					    const char *name)
{
	struct kblkt_port *p = kzalloc(sizeof(*p), GFP_KERNEL);

	if (!p)
		return ERR_PTR(-ENOMEM);
	mutex_init(&p->config);
	INIT_LIST_HEAD(&p->links);
	INIT_DELAYED_WORK(&p->again, kblkt_again);
	strscpy(p->at.port, KBLK_PORT);
	strscpy(p->at.provider, "sock");
	p->digest = KBLK_DIGEST_OPTIONAL;
	config_group_init_type_name(&p->group, name, &kblkt_port_type);
	config_group_init_type_name(&p->volumes, "volumes",
				    &kblkt_port_volumes_type);
	configfs_add_default_group(&p->volumes, &p->group);
	return &p->group;
}

static struct configfs_group_operations kblkt_ports_ops = {
	.make_group	= kblkt_make_port,
};

static const struct config_item_type kblkt_ports_type = {
	.ct_group_ops	= &kblkt_ports_ops,
	.ct_owner	= THIS_MODULE,
};

/* --------------------------------------------------------------------- module */

static struct config_group kblkt_volumes_group;
static struct config_group kblkt_ports_group;

static int __init kblkt_init(void)
{
	int err;

	kblkt_wq = alloc_workqueue("kofi_blkt", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!kblkt_wq)
		return -ENOMEM;
	err = kblkt_auth_init();
	if (err)
		goto destroy;
	config_group_init(&kblkt_subsystem.su_group);
	mutex_init(&kblkt_subsystem.su_mutex);
	config_group_init_type_name(&kblkt_volumes_group, "volumes",
				    &kblkt_volumes_type);
	configfs_add_default_group(&kblkt_volumes_group,
				   &kblkt_subsystem.su_group);
	config_group_init_type_name(&kblkt_ports_group, "ports",
				    &kblkt_ports_type);
	configfs_add_default_group(&kblkt_ports_group,
				   &kblkt_subsystem.su_group);
	err = configfs_register_subsystem(&kblkt_subsystem);
	if (!err)
		return 0;
	kblkt_auth_exit();
destroy:
	destroy_workqueue(kblkt_wq);
	return err;
}

static void __exit kblkt_exit(void)
{
	configfs_unregister_subsystem(&kblkt_subsystem);
	kblkt_watch_stop();
	destroy_workqueue(kblkt_wq);
	kblkt_auth_exit();
	kblkt_stable_free();
	/* completion handlers of bios have signaled, and may not have returned */
	synchronize_rcu_tasks();
}

module_init(kblkt_init);
module_exit(kblkt_exit);

MODULE_DESCRIPTION("kOFI: block devices for other machines");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KOFI_VERSION);

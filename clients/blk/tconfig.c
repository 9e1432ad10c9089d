// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Volumes and ports, as configfs has them: a directory of kofi_blkt/volumes or
 * kofi_blkt/ports for each. Their attributes can change while "enable" is 0. A
 * directory holds the module. Its files are root's; what "enable" and "resize" do
 * takes CAP_SYS_ADMIN, too.
 */
#include <linux/capability.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/pagemap.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/kofi/version.h>

#include "target.h"

static struct kblkt_volume *kblkt_volume(struct config_item *item)
{
	return container_of(item, struct kblkt_volume, item);
}

static struct kblkt_port *kblkt_port(struct config_item *item)
{
	return container_of(item, struct kblkt_port, item);
}

/* -------------------------------------------------------------------- volumes */

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
	ssize_t ret = -EBUSY;

	mutex_lock(&v->config);
	if (!v->file)
		ret = kstrtobool(page, &v->read_only) ?: len;
	mutex_unlock(&v->config);
	return ret;
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
	ssize_t ret = -EBUSY;

	mutex_lock(&v->config);
	if (!v->file)
		ret = uuid_parse(page, &v->uuid) ?: len;
	mutex_unlock(&v->config);
	return ret;
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
	ssize_t ret = -EBUSY;

	mutex_lock(&v->config);
	if (!v->file)
		ret = kstrtobool(page, &v->direct) ?: len;
	mutex_unlock(&v->config);
	return ret;
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
	mutex_lock(&v->config);
	if (v->file)
		err = -EBUSY;
	else if (!err)
		kblkt_stable_set(&v->uuid, list, nr);
	mutex_unlock(&v->config);
	kfree(text);
	return err ?: len;
}
CONFIGFS_ATTR(kblkt_volume_, stable);

static unsigned int kblkt_bits(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? 128 : 32;
}

static ssize_t kblkt_volume_allow_show(struct config_item *item, char *page)
{
	struct kblkt_volume *v = kblkt_volume(item);
	ssize_t len = 0;
	unsigned int i;

	mutex_lock(&v->config);
	if (!v->nr_allow)
		len = sysfs_emit(page, "all\n");
	for (i = 0; i < v->nr_allow; i++)
		len += sysfs_emit_at(page, len, "%pISc/%u\n", &v->allow[i].addr,
				     v->allow[i].bits);
	mutex_unlock(&v->config);
	return len;
}

static int kblkt_parse_net(char *word, struct kblkt_net *n)
{
	char *bits = strchr(word, '/');
	int err;

	if (bits)
		*bits++ = '\0';
	err = inet_pton_with_scope(current->nsproxy->net_ns, AF_UNSPEC, word,
				   NULL, &n->addr);
	if (err)
		return err;
	n->bits = kblkt_bits(&n->addr);
	if (!bits)
		return 0;
	err = kstrtouint(bits, 10, &n->bits);
	return err ?: n->bits <= kblkt_bits(&n->addr) ? 0 : -EINVAL;
}

/* All entries at a time: "10.0.0.0/24,fd00::/64"; or "all" */
static ssize_t kblkt_volume_allow_store(struct config_item *item,
					const char *page, size_t len)
{
	struct kblkt_volume *v = kblkt_volume(item);
	struct kblkt_net *nets;
	char *text, *at, *word;
	unsigned int n = 0;
	int err = 0;

	nets = kcalloc(KBLKT_ALLOW, sizeof(*nets), GFP_KERNEL);
	text = kstrndup(page, len, GFP_KERNEL);
	if (!nets || !text) {
		err = -ENOMEM;
		goto free;
	}
	at = strim(text);
	if (!strcmp(at, "all"))
		at = NULL;
	else if (!*at)
		err = -EINVAL;
	while (!err && (word = strsep(&at, ",\n"))) {
		err = n < KBLKT_ALLOW ? kblkt_parse_net(word, &nets[n++]) :
					-ENOSPC;
	}
	if (err)
		goto free;
	mutex_lock(&v->config);
	if (v->file) {
		err = -EBUSY;
	} else {
		memcpy(v->allow, nets, sizeof(v->allow));
		v->nr_allow = n;
	}
	mutex_unlock(&v->config);
free:
	kfree(text);
	kfree(nets);
	return err ?: len;
}
CONFIGFS_ATTR(kblkt_volume_, allow);

static ssize_t kblkt_volume_stat_show(struct config_item *item, char *page)
{
	struct kblkt_volume *v = kblkt_volume(item);

	return sysfs_emit(page,
			  "connections %u\ndirect %d\nreads %lld\nwrites %lld\nothers %lld\nerrors %lld\n",
			  READ_ONCE(v->conns), READ_ONCE(v->uncached),
			  atomic64_read(&v->reads),
			  atomic64_read(&v->writes), atomic64_read(&v->others),
			  atomic64_read(&v->errors));
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
 * Unflushed writes are lost when this machine goes down. So a
 * volume has another incarnation each time that it is enabled; tnotes.c keeps those
 * that have been flushed since. It gets another one when it could not be flushed,
 * too: that is about the writes of all clients, but a device or file says it once,
 * and perhaps to one that has written nothing.
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
 * kblkt_flushed - take down how a flush has ended
 * @v: the volume, enabled
 * @err: a negative error code, or 0
 *
 * Context: any.
 * Return: the incarnation: another one than before, if this flush has failed, or
 * writing back has since the last call.
 */
u64 kblkt_flushed(struct kblkt_volume *v, int err)
{
	unsigned long flags;
	u64 incarnation;

	spin_lock_irqsave(&v->lock, flags);
	/* of several flushes of a file at a time one has the error */
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
	if (bdev_max_discard_sectors(b)) {
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
 * kblkt_volume_flush - flush the device or file, and take down how that has ended
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
	complete(&container_of(ref, struct kblkt_volume, served)->quiet);
}

static int kblkt_volume_enable(struct kblkt_volume *v)
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
	/* clients know neither zones nor larger blocks */
	if (v->bdev && (bdev_is_zoned(v->bdev) ||
			bdev_logical_block_size(v->bdev) > PAGE_SIZE)) {
		kblkt_volume_close(v);
		return -EINVAL;
	}
	/* one of its own, as commands may wait for it for long */
	v->wq = alloc_workqueue("kofi_blkt_volume", WQ_MEM_RECLAIM | WQ_UNBOUND,
				0);
	if (!v->wq || percpu_ref_init(&v->served, kblkt_volume_quiet, 0,
				      GFP_KERNEL)) {
		kblkt_volume_close(v);
		return -ENOMEM;
	}
	reinit_completion(&v->quiet);
	v->incarnation = kblkt_random();
	kblkt_volume_describe(v);
	mutex_lock(&kblkt_lock);
	list_add_tail(&v->node, &kblkt_volumes);
	mutex_unlock(&kblkt_lock);
	return 0;
}

/* No new client, no new command, a flush of all that has been answered, a last note */
static void kblkt_volume_disable(struct kblkt_volume *v)
{
	u64 incarnation;

	mutex_lock(&kblkt_lock);
	list_del(&v->node);
	mutex_unlock(&kblkt_lock);
	percpu_ref_kill(&v->served);
	wait_for_completion(&v->quiet);
	incarnation = kblkt_flushed(v, 0);
	kblkt_volume_flush(v);
	if (kblkt_flushed(v, 0) == incarnation)
		kblkt_note_stable(v, incarnation);
	kblkt_evict(v);
	kblkt_volume_close(v);
}

static ssize_t kblkt_volume_enable_store(struct config_item *item,
					 const char *page, size_t len)
{
	struct kblkt_volume *v = kblkt_volume(item);
	bool on;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	err = kstrtobool(page, &on);
	if (err)
		return err;
	mutex_lock(&v->config);
	if (on && !v->file)
		err = kblkt_volume_enable(v);
	else if (!on && v->file)
		kblkt_volume_disable(v);
	mutex_unlock(&v->config);
	return err ?: len;
}
CONFIGFS_ATTR(kblkt_volume_, enable);

/* The device or file tells this module nothing of another size. */
static ssize_t kblkt_volume_resize_store(struct config_item *item,
					 const char *page, size_t len)
{
	struct kblkt_volume *v = kblkt_volume(item);
	bool on;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	err = kstrtobool(page, &on);
	if (err)
		return err;
	mutex_lock(&v->config);
	if (!v->file)
		err = -ENODEV;
	else if (on)
		kblkt_resized(v);
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
	&kblkt_volume_attr_allow,
	&kblkt_volume_attr_stat,
	&kblkt_volume_attr_enable,
	&kblkt_volume_attr_resize,
	NULL
};

static void kblkt_volume_release(struct config_item *item)
{
	struct kblkt_volume *v = kblkt_volume(item);

	if (v->file)
		kblkt_volume_disable(v);
	kfree(v);
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
	init_waitqueue_head(&v->idle);
	spin_lock_init(&v->lock);
	INIT_LIST_HEAD(&v->flushes);
	INIT_WORK(&v->flush, kblkt_flush_work);
	memcpy(v->name, name, strlen(name));
	v->direct = true;
	init_completion(&v->quiet);
	init_completion(&v->told);
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

static ssize_t kblkt_port_enable_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", !!READ_ONCE(kblkt_port(item)->fabric));
}

static ssize_t kblkt_port_enable_store(struct config_item *item,
				       const char *page, size_t len)
{
	struct kblkt_port *p = kblkt_port(item);
	bool on;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	err = kstrtobool(page, &on);
	if (err)
		return err;
	mutex_lock(&p->config);
	if (on && !p->fabric) {
		err = *p->at.addr ? kblkt_listen(p) : -EINVAL;
		if (err)
			pr_err("kofi_blkt: cannot listen at %s, port %s, over %s: %d\n",
			       p->at.addr, p->at.port, p->at.provider, err);
	}
	if (!on && p->fabric)
		kblkt_unlisten(p);
	mutex_unlock(&p->config);
	return err ?: len;
}
CONFIGFS_ATTR(kblkt_port_, enable);

static struct configfs_attribute *kblkt_port_attrs[] = {
	&kblkt_port_attr_addr,
	&kblkt_port_attr_port,
	&kblkt_port_attr_provider,
	&kblkt_port_attr_enable,
	NULL
};

static void kblkt_port_release(struct config_item *item)
{
	struct kblkt_port *p = kblkt_port(item);

	if (p->fabric)
		kblkt_unlisten(p);
	kfree(p);
}

static struct configfs_item_operations kblkt_port_ops = {
	.release	= kblkt_port_release,
};

static const struct config_item_type kblkt_port_type = {
	.ct_item_ops	= &kblkt_port_ops,
	.ct_attrs	= kblkt_port_attrs,
	.ct_owner	= THIS_MODULE,
};

static struct config_item *kblkt_make_port(struct config_group *group,
					   const char *name)
{
	struct kblkt_port *p = kzalloc(sizeof(*p), GFP_KERNEL);

	if (!p)
		return ERR_PTR(-ENOMEM);
	mutex_init(&p->config);
	init_waitqueue_head(&p->idle);
	strscpy(p->at.port, KBLK_PORT);
	strscpy(p->at.provider, "sock");
	config_item_init_type_name(&p->item, name, &kblkt_port_type);
	return &p->item;
}

static struct configfs_group_operations kblkt_ports_ops = {
	.make_item	= kblkt_make_port,
};

static const struct config_item_type kblkt_ports_type = {
	.ct_group_ops	= &kblkt_ports_ops,
	.ct_owner	= THIS_MODULE,
};

/* --------------------------------------------------------------------- module */

static const struct config_item_type kblkt_type = {
	.ct_owner	= THIS_MODULE,
};

static struct configfs_subsystem kblkt_subsystem = {
	.su_group.cg_item = {
		.ci_namebuf	= "kofi_blkt",
		.ci_type	= &kblkt_type,
	},
};

static struct config_group kblkt_volumes_group;
static struct config_group kblkt_ports_group;

static int __init kblkt_init(void)
{
	int err;

	kblkt_wq = alloc_workqueue("kofi_blkt", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!kblkt_wq)
		return -ENOMEM;
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
	if (err)
		destroy_workqueue(kblkt_wq);
	return err;
}

static void __exit kblkt_exit(void)
{
	configfs_unregister_subsystem(&kblkt_subsystem);
	kblkt_watch_stop();
	destroy_workqueue(kblkt_wq);
	kblkt_stable_free();
	/* ends of bios have told that they are over, and may not have returned */
	synchronize_rcu_tasks();
}

module_init(kblkt_init);
module_exit(kblkt_exit);

MODULE_DESCRIPTION("kOFI: block devices for other machines");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KOFI_VERSION);

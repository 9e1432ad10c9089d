// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Mapped volumes in configfs: a directory below kofi_blk for each, with the target and
 * the options in its attributes. Writing 1 to "enable" maps the volume. Writing 0 unmaps
 * it unless it is open; "force" unmaps it even then. The directory of a mapped volume
 * cannot be removed, and holds the module. Its files belong to root; "enable" also
 * takes CAP_SYS_ADMIN.
 */
#include <linux/blkdev.h>
#include <linux/capability.h>
#include <linux/configfs.h>
#include <linux/inet.h>
#include <linux/key.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/kofi/version.h>

#include "auth.h"
#include "blk.h"

/* Keyring of the keys that mappings name */
struct key *kblk_keys;

/* names this load of the module, if the administrator knows nothing better */
static u64 kblk_host;

/**
 * struct kblk_item - a directory
 * @item: the item of configfs
 * @lock: guards @opt and changes of @disk; held while the volume is mapped, up to the
 *	time-out of the mapping
 * @opt: attributes of the directory, under @lock
 * @live: guards @mapping and @disk for readers without @lock
 * @mapping: a disk is being opened, under @live
 * @disk: the disk while the volume is mapped, or NULL; changes under both locks
 */
struct kblk_item {
	struct config_item	item;
	struct mutex		lock;		/* for the members below */
	struct kblk_options	opt;
	struct mutex		live;		/* for the members below */
	bool			mapping;
	struct kblk_disk	*disk;
};

static struct configfs_subsystem kblk_subsystem;

static struct kblk_item *kblk_item(struct config_item *item)
{
	return container_of(item, struct kblk_item, item);
}

static ssize_t kblk_store_number(struct kblk_item *k, unsigned int *to,
				 unsigned int min, unsigned int max,
				 const char *page, size_t len)
{
	unsigned int value;
	ssize_t ret;

	ret = kblk_parse_number(page, min, max, &value);
	if (ret)
		return ret;
	if (mutex_lock_killable(&k->lock))
		return -EINTR;
	ret = k->disk ? -EBUSY : len;
	if (!k->disk)
		*to = value;
	mutex_unlock(&k->lock);
	return ret;
}

#define KBLK_SHOW(name, format)						\
static ssize_t kblk_##name##_show(struct config_item *item, char *page)	\
{									\
	return sysfs_emit(page, format "\n", kblk_item(item)->opt.name);	\
}

#define KBLK_STORE_TEXT(name)						\
static ssize_t kblk_##name##_store(struct config_item *item,		\
				   const char *page, size_t len)	\
{									\
	struct kblk_item *k = kblk_item(item);				\
									\
	return kblk_store_text(&k->lock, (const void **)&k->disk,	\
			       k->opt.name, KBLK_TEXT, page, len);	\
}

/* As in the access list of a target */
#define KBLK_STORE_NAME(name)						\
static ssize_t kblk_##name##_store(struct config_item *item,		\
				   const char *page, size_t len)	\
{									\
	struct kblk_item *k = kblk_item(item);				\
									\
	if (!kblk_good_name(page, strcspn(page, "\n")))			\
		return -EINVAL;						\
	return kblk_store_text(&k->lock, (const void **)&k->disk,	\
			       k->opt.name, KBLK_TEXT, page, len);	\
}

#define KBLK_STORE_NUMBER(name, min, max)				\
static ssize_t kblk_##name##_store(struct config_item *item,		\
				   const char *page, size_t len)	\
{									\
	struct kblk_item *k = kblk_item(item);				\
									\
	return kblk_store_number(k, &k->opt.name, min, max, page, len);	\
}

KBLK_STORE_TEXT(addr)
KBLK_SHOW(addr, "%s")
CONFIGFS_ATTR(kblk_, addr);
KBLK_STORE_TEXT(port)
KBLK_SHOW(port, "%s")
CONFIGFS_ATTR(kblk_, port);
KBLK_STORE_TEXT(volume)
KBLK_SHOW(volume, "%s")
CONFIGFS_ATTR(kblk_, volume);
KBLK_STORE_TEXT(provider)
KBLK_SHOW(provider, "%s")
CONFIGFS_ATTR(kblk_, provider);
KBLK_STORE_TEXT(host)
KBLK_SHOW(host, "%s")
CONFIGFS_ATTR(kblk_, host);
KBLK_STORE_NAME(identity)
KBLK_SHOW(identity, "%s")
CONFIGFS_ATTR(kblk_, identity);
/* The description of the key; the key itself is in the keyring. */
KBLK_STORE_NAME(key)
KBLK_SHOW(key, "%s")
CONFIGFS_ATTR(kblk_, key);

static ssize_t kblk_uuid_show(struct config_item *item, char *page)
{
	const uuid_t *uuid = &kblk_item(item)->opt.uuid;

	return uuid_is_null(uuid) ? sysfs_emit(page, "any\n") :
				    sysfs_emit(page, "%pUb\n", uuid);
}

static ssize_t kblk_uuid_store(struct config_item *item, const char *page,
			       size_t len)
{
	struct kblk_item *k = kblk_item(item);
	uuid_t uuid = uuid_null;
	int err = 0;

	if (!sysfs_streq(page, "any"))
		err = uuid_parse(page, &uuid);
	if (err)
		return err;
	if (mutex_lock_killable(&k->lock))
		return -EINTR;
	err = k->disk ? -EBUSY : 0;
	if (!err)
		k->opt.uuid = uuid;
	mutex_unlock(&k->lock);
	return err ?: len;
}
CONFIGFS_ATTR(kblk_, uuid);

KBLK_STORE_NUMBER(queues, 1, KBLK_QUEUES)
KBLK_SHOW(queues, "%u")
CONFIGFS_ATTR(kblk_, queues);
KBLK_STORE_NUMBER(polled, 0, KBLK_QUEUES)
KBLK_SHOW(polled, "%u")
CONFIGFS_ATTR(kblk_, polled);
KBLK_STORE_NUMBER(io_timeout, 1, 86400)
KBLK_SHOW(io_timeout, "%u")
CONFIGFS_ATTR(kblk_, io_timeout);
KBLK_STORE_NUMBER(path_timeout, 1, 86400)
KBLK_SHOW(path_timeout, "%u")
CONFIGFS_ATTR(kblk_, path_timeout);
KBLK_STORE_NUMBER(fast_fail, 0, 86400)
KBLK_SHOW(fast_fail, "%u")
CONFIGFS_ATTR(kblk_, fast_fail);

static ssize_t kblk_digest_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n",
			  kblk_digest_text(kblk_item(item)->opt.digest));
}

static ssize_t kblk_digest_store(struct config_item *item, const char *page,
				 size_t len)
{
	struct kblk_item *k = kblk_item(item);
	int mode = kblk_parse_digest(page);
	ssize_t ret;

	if (mode < 0)
		return mode;
	if (mutex_lock_killable(&k->lock))
		return -EINTR;
	ret = k->disk ? -EBUSY : len;
	if (!k->disk)
		k->opt.digest = mode;
	mutex_unlock(&k->lock);
	return ret;
}
CONFIGFS_ATTR(kblk_, digest);

static ssize_t kblk_enable_show(struct config_item *item, char *page)
{
	struct kblk_item *k = kblk_item(item);
	bool on;

	mutex_lock(&k->live);
	on = k->disk;
	mutex_unlock(&k->live);
	return sysfs_emit(page, "%d\n", on);
}

static void kblk_set_disk(struct kblk_item *k, bool mapping,
			  struct kblk_disk *d)
{
	mutex_lock(&k->live);
	k->mapping = mapping;
	k->disk = d;
	mutex_unlock(&k->live);
}

static int kblk_enable(struct kblk_item *k)
{
	struct kblk_disk *d;
	int err;

	if (!*k->opt.addr || !*k->opt.volume ||
	    !*k->opt.identity != !*k->opt.key ||
	    k->opt.queues + k->opt.polled > KBLK_QUEUES)
		return -EINVAL;
	if (strlen(k->opt.volume) > KBLK_NAME_LEN)
		return -ENAMETOOLONG;
	err = configfs_depend_item_unlocked(&kblk_subsystem, &k->item);
	if (err)
		return err;
	kblk_set_disk(k, true, NULL);
	d = kblk_disk_open(&k->opt, config_item_name(&k->item));
	kblk_set_disk(k, false, IS_ERR(d) ? NULL : d);
	if (IS_ERR(d))
		configfs_undepend_item(&k->item);
	return PTR_ERR_OR_ZERO(d);
}

static int kblk_disable(struct kblk_item *k, bool force)
{
	struct kblk_disk *d = k->disk;

	if (disk_openers(d->gd) && !force)
		return -EBUSY;
	kblk_set_disk(k, false, NULL);
	kblk_disk_close(d);
	configfs_undepend_item(&k->item);
	return 0;
}

static ssize_t kblk_enable_store(struct config_item *item, const char *page,
				 size_t len)
{
	bool on = false, force = sysfs_streq(page, "force");
	struct kblk_item *k = kblk_item(item);
	int err = 0;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (!force)
		err = kstrtobool(page, &on);
	if (err)
		return err;
	if (mutex_lock_killable(&k->lock))
		return -EINTR;
	if (on != !!k->disk)
		err = on ? kblk_enable(k) : kblk_disable(k, force);
	mutex_unlock(&k->lock);
	return err ?: len;
}
CONFIGFS_ATTR(kblk_, enable);

static ssize_t kblk_state_show(struct config_item *item, char *page)
{
	static const char * const names[] = {
		[KBLK_DOWN]	= "connecting",
		[KBLK_FAST]	= "connecting",
		[KBLK_LIVE]	= "live",
		[KBLK_FAILED]	= "failed",
	};
	struct kblk_item *k = kblk_item(item);
	const char *name;

	mutex_lock(&k->live);
	name = k->disk ? names[READ_ONCE(k->disk->state)] :
	       k->mapping ? names[KBLK_DOWN] : "off";
	mutex_unlock(&k->live);
	return sysfs_emit(page, "%s\n", name);
}
CONFIGFS_ATTR_RO(kblk_, state);

static ssize_t kblk_device_show(struct config_item *item, char *page)
{
	struct kblk_item *k = kblk_item(item);
	ssize_t ret = 0;

	mutex_lock(&k->live);
	if (k->disk)
		ret = sysfs_emit(page, "%s\n", k->disk->gd->disk_name);
	mutex_unlock(&k->live);
	return ret;
}
CONFIGFS_ATTR_RO(kblk_, device);

/* Test whether the disk is live, and all of its connections have digests. */
static bool kblk_digests(const struct kblk_disk *d)
{
	unsigned int i;

	/* pairs with the release in kblk_live(); the features are set before that */
	if (smp_load_acquire(&d->state) != KBLK_LIVE)
		return false;
	for (i = 0; i < d->nr_queues; i++)
		if (!kblk_has(d->queues[i], KBLK_FEATURE_DIGEST))
			return false;
	return true;
}

static ssize_t kblk_stat_show(struct config_item *item, char *page)
{
	struct kblk_item *k = kblk_item(item);
	const struct kblk_disk *d;
	ssize_t ret = 0;

	mutex_lock(&k->live);
	d = k->disk;
	if (d)
		ret = sysfs_emit(page, "digests %d\ndigest_errors %u\n",
				 kblk_digests(d), atomic_read(&d->digest_errors));
	mutex_unlock(&k->live);
	return ret;
}
CONFIGFS_ATTR_RO(kblk_, stat);

static struct configfs_attribute *kblk_item_attrs[] = {
	&kblk_attr_addr,
	&kblk_attr_port,
	&kblk_attr_volume,
	&kblk_attr_provider,
	&kblk_attr_host,
	&kblk_attr_identity,
	&kblk_attr_key,
	&kblk_attr_uuid,
	&kblk_attr_queues,
	&kblk_attr_polled,
	&kblk_attr_digest,
	&kblk_attr_io_timeout,
	&kblk_attr_path_timeout,
	&kblk_attr_fast_fail,
	&kblk_attr_enable,
	&kblk_attr_state,
	&kblk_attr_device,
	&kblk_attr_stat,
	NULL
};

static void kblk_item_release(struct config_item *item)
{
	struct kblk_item *k = kblk_item(item);

	mutex_destroy(&k->live);
	mutex_destroy(&k->lock);
	kfree(k);
}

static struct configfs_item_operations kblk_item_ops = {
	.release	= kblk_item_release,
};

static const struct config_item_type kblk_item_type = {
	.ct_item_ops	= &kblk_item_ops,
	.ct_attrs	= kblk_item_attrs,
	.ct_owner	= THIS_MODULE,
};

static struct config_item *kblk_make_item(struct config_group *group,
					  const char *name)
{
	struct kblk_item *k = kzalloc(sizeof(*k), GFP_KERNEL);

	if (!k)
		return ERR_PTR(-ENOMEM);
	mutex_init(&k->lock);
	mutex_init(&k->live);
	strscpy(k->opt.port, KBLK_PORT);
	strscpy(k->opt.provider, "sock");
	snprintf(k->opt.host, sizeof(k->opt.host), "%016llx", kblk_host);
	k->opt.queues = 1;
	k->opt.io_timeout = 30;
	k->opt.path_timeout = 600;
	config_item_init_type_name(&k->item, name, &kblk_item_type);
	return &k->item;
}

static struct configfs_group_operations kblk_group_ops = {
	.make_item	= kblk_make_item,
};

static const struct config_item_type kblk_type = {
	.ct_group_ops	= &kblk_group_ops,
	.ct_owner	= THIS_MODULE,
};

static struct configfs_subsystem kblk_subsystem = {
	.su_group.cg_item = {
		.ci_namebuf	= "kofi_blk",
		.ci_type	= &kblk_type,
	},
};

static int __init kblk_init(void)
{
	int err;

	kblk_host = get_random_u64();
	kblk_wq = alloc_workqueue("kofi_blk", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!kblk_wq)
		return -ENOMEM;
	kblk_keys = kblk_keyring(".kofi_blk");
	if (IS_ERR(kblk_keys)) {
		err = PTR_ERR(kblk_keys);
		goto destroy;
	}
	config_group_init(&kblk_subsystem.su_group);
	mutex_init(&kblk_subsystem.su_mutex);
	err = configfs_register_subsystem(&kblk_subsystem);
	if (!err)
		return 0;
	kblk_keyring_free(kblk_keys);
destroy:
	destroy_workqueue(kblk_wq);
	return err;
}

static void __exit kblk_exit(void)
{
	configfs_unregister_subsystem(&kblk_subsystem);
	kblk_disk_wait();
	destroy_workqueue(kblk_wq);
	kblk_keyring_free(kblk_keys);
	/* the context that freed the last disk may still run code of this module */
	synchronize_rcu_tasks();
}

module_init(kblk_init);
module_exit(kblk_exit);

MODULE_DESCRIPTION("kOFI: block devices of another machine");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KOFI_VERSION);

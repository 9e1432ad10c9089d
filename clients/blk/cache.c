// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a volume has been told to write, and may not have on stable storage.
 *
 * Writes are answered before they are flushed. If the target loses them it says so by
 * another incarnation, at the next login, and from then on flushes of those who have
 * the disk open fail. That is the volume's affair, and not a path's: of two mappings
 * below multipath one may flush what the other has written.
 *
 * A mark says that there are such writes. A flush clears it when it starts, and sets
 * it again if it has covered nothing. It is counted meanwhile, as the path that it
 * goes over may notice late that the target has gone.
 */
#include <kunit/visibility.h>
#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "blk.h"

static LIST_HEAD(kblk_caches);
static DEFINE_MUTEX(kblk_caches_lock);

/**
 * kblk_cache_get - share what a volume has been told to write with its other paths
 * @d: the disk, which knows its volume now
 *
 * Any target may claim the UUID of another target's volume. So two disks are paths to one
 * volume only if they have one target, or if the administrator gave the UUID for both.
 *
 * Context: process, may sleep; does not wait for memory to be written back.
 * Return: 0, -ENOMEM, or -ENOTUNIQ: another target's volume with this UUID is mapped.
 */
int kblk_cache_get(struct kblk_disk *d)
{
	bool given = !uuid_is_null(&d->opt.uuid);
	struct kblk_cache *cache;

	guard(mutex)(&kblk_caches_lock);
	list_for_each_entry(cache, &kblk_caches, node) {
		if (memcmp(cache->uuid, d->welcome.uuid, sizeof(cache->uuid)))
			continue;
		if ((given && cache->given) ||
		    (cache->net == d->net->net_cookie &&
		     !strcmp(cache->addr, d->opt.addr)))
			goto found;
		pr_err_ratelimited("kofi_blk: volume %s of %s has the UUID of a volume of %s: give it for both if they are one\n",
				   d->opt.volume, d->opt.addr, cache->addr);
		return -ENOTUNIQ;
	}
	cache = kzalloc(sizeof(*cache), GFP_NOIO);
	if (!cache)
		return -ENOMEM;
	memcpy(cache->uuid, d->welcome.uuid, sizeof(cache->uuid));
	strscpy(cache->addr, d->opt.addr);
	cache->net = d->net->net_cookie;
	cache->given = given;
	cache->incarnation = d->welcome.incarnation;
	list_add(&cache->node, &kblk_caches);
found:
	cache->disks++;
	d->cache = cache;
	d->losses = atomic_read(&cache->losses);
	d->returned = d->losses;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(kblk_cache_get);

/**
 * kblk_cache_put - a disk goes
 * @cache: what it has got
 *
 * Context: process, may sleep.
 */
void kblk_cache_put(struct kblk_cache *cache)
{
	guard(mutex)(&kblk_caches_lock);
	if (--cache->disks)
		return;
	list_del(&cache->node);
	kfree(cache);
}
EXPORT_SYMBOL_IF_KUNIT(kblk_cache_put);

static void kblk_cache_loss(struct kblk_disk *d)
{
	pr_err_ratelimited("kofi_blk: %s: what was not flushed may be lost\n",
			   d->opt.volume);
	atomic_inc(&d->cache->losses);
}

/* Are all writes of the last known incarnation on stable storage? */
static bool kblk_cache_is_stable(const struct kblk_cache *cache,
				 const struct kblk_news *news)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(news->stable); i++)
		if (news->stable[i] && news->stable[i] == cache->incarnation)
			return true;
	return false;
}

/**
 * kblk_cache_stable - all that the volume has been told to write is on stable storage
 * @d: a disk whose target has said so with its last note; its answers are all here
 *
 * The target says it once, of all paths, and closes the connections. A path that is connected again
 * may have written under another incarnation since.
 *
 * Context: process, may sleep; does not wait for memory to be written back.
 */
void kblk_cache_stable(struct kblk_disk *d)
{
	struct kblk_cache *cache = d->cache;

	guard(mutex)(&kblk_caches_lock);
	if (cache->incarnation == d->welcome.incarnation)
		WRITE_ONCE(cache->unflushed, false);
}

/**
 * kblk_cache_login - see whether the target may have lost what was not flushed
 * @d: a disk that has one
 * @news: message of the target, over this path
 *
 * If it may, users of all paths are told. A flush that is under way over another
 * path, which may not have noticed yet that it has ended, has covered nothing.
 *
 * Context: process, may sleep; does not wait for memory to be written back.
 */
void kblk_cache_login(struct kblk_disk *d, const struct kblk_news *news)
{
	const struct kblk_welcome *w = &news->w;
	struct kblk_cache *cache = d->cache;
	bool unflushed, stable;

	guard(mutex)(&kblk_caches_lock);
	if (w->incarnation == cache->incarnation)
		return;
	stable = kblk_cache_is_stable(cache, news);
	if (stable)
		WRITE_ONCE(cache->stable, cache->incarnation);
	/* pairs with the acquire in kblk_cache_written() */
	smp_store_release(&cache->incarnation, w->incarnation);
	if (stable || !(le32_to_cpu(w->flags) & KBLK_WRITE_CACHE))
		return;
	smp_mb();	/* see kblk_cache_written() */
	/* a flush is counted before it clears the mark, and until it has set it again */
	unflushed = smp_load_acquire(&cache->unflushed) ||
		    atomic_read_acquire(&cache->flushing) ||
		    READ_ONCE(cache->unflushed);
	if (unflushed)
		kblk_cache_loss(d);
}
EXPORT_SYMBOL_IF_KUNIT(kblk_cache_login);

/**
 * kblk_cache_flush - a flush is about to be sent
 * @cache: the volume's
 *
 * Context: any. kblk_cache_flushed() follows.
 */
void kblk_cache_flush(struct kblk_cache *cache)
{
	atomic_inc(&cache->flushing);
	/* behind that; see kblk_cache_login() */
	smp_mb__after_atomic();
	WRITE_ONCE(cache->unflushed, false);
}
EXPORT_SYMBOL_IF_KUNIT(kblk_cache_flush);

/**
 * kblk_cache_flushed - a flush has ended
 * @cache: the volume's
 * @covered: it has covered what was written before
 *
 * Context: any.
 */
void kblk_cache_flushed(struct kblk_cache *cache, bool covered)
{
	if (!covered)
		WRITE_ONCE(cache->unflushed, true);
	smp_mb__before_atomic();	/* see kblk_cache_login() */
	atomic_dec(&cache->flushing);
}
EXPORT_SYMBOL_IF_KUNIT(kblk_cache_flushed);

/**
 * kblk_cache_written - a write has been acknowledged that no flush has covered
 * @d: the disk that it went through
 *
 * Another path may have logged in to another incarnation while the answer was on its
 * way. That login has not seen this write, which may be lost.
 *
 * Context: any.
 */
void kblk_cache_written(struct kblk_disk *d)
{
	struct kblk_cache *cache = d->cache;

	if (!READ_ONCE(cache->unflushed))
		WRITE_ONCE(cache->unflushed, true);
	/* this sees the other incarnation, or the login sees the mark */
	smp_mb();
	/* pairs with the release in kblk_cache_login() */
	if (smp_load_acquire(&cache->incarnation) != d->welcome.incarnation &&
	    READ_ONCE(cache->stable) != d->welcome.incarnation &&
	    le32_to_cpu(d->welcome.flags) & KBLK_WRITE_CACHE)
		kblk_cache_loss(d);
}
EXPORT_SYMBOL_IF_KUNIT(kblk_cache_written);

/**
 * kblk_cache_lost - whether a flush has to fail
 * @d: the disk that it is for
 *
 * Context: any.
 * Return: true if writes may be lost of which the users of @d do not know; the caller
 * fails the flush, so that one of them does.
 */
bool kblk_cache_lost(struct kblk_disk *d)
{
	int losses = atomic_read(&d->cache->losses);

	if (losses == READ_ONCE(d->losses))
		return false;
	WRITE_ONCE(d->returned, losses);
	return true;
}
EXPORT_SYMBOL_IF_KUNIT(kblk_cache_lost);

/**
 * kblk_cache_closed - nobody has the disk open any longer
 * @d: the disk
 *
 * Losses that no flush has returned are those of the next user.
 *
 * Context: any.
 */
void kblk_cache_closed(struct kblk_disk *d)
{
	WRITE_ONCE(d->losses, READ_ONCE(d->returned));
}
EXPORT_SYMBOL_IF_KUNIT(kblk_cache_closed);

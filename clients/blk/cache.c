// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Writes of a volume that may not be on stable storage.
 *
 * A target answers writes before it flushes them. If the target loses writes, it has
 * another incarnation at the next login. From then on, flushes fail for all users that
 * have the disk open. The state belongs to the volume, not to a path: below multipath,
 * a flush through one mapping covers writes through another.
 *
 * A mark (@unflushed) says that there are such writes. A flush clears the mark when the
 * flush starts, and sets it again if the flush has covered nothing. In between the flush
 * is counted, as its path may notice late that the target has gone.
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
 * kblk_cache_get - share a volume's state of unflushed writes among its paths
 * @d: the disk, after its first welcome
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
 * kblk_cache_put - release a disk's reference to its volume's state
 * @cache: state from kblk_cache_get()
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

/* Test whether all writes of the last known incarnation are on stable storage. */
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
 * kblk_cache_stable - note that all writes of the volume are on stable storage
 * @d: a disk that has the target's last note, and no outstanding write
 *
 * The target sends the note once, for all paths, and closes the connections. A path that
 * has reconnected may have written under another incarnation since.
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
 * kblk_cache_login - detect whether the target may have lost unflushed writes
 * @d: a disk with a cache
 * @news: the target's welcome, over the path of @d
 *
 * If so, the users of all paths get errors from their flushes. An outstanding flush over
 * another path, which may not have noticed its closed connection yet, has covered nothing.
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
	/* pairs with the acquire in kblk_cache_written(), which cannot take the mutex */
	smp_store_release(&cache->incarnation, w->incarnation);
	if (stable || !(le32_to_cpu(w->flags) & KBLK_WRITE_CACHE))
		return;
	smp_mb();	/* pairs with the barrier in kblk_cache_written() */
	/* a flush is counted before it clears the mark, and until it has set it again */
	unflushed = smp_load_acquire(&cache->unflushed) ||
		    atomic_read_acquire(&cache->flushing) ||
		    READ_ONCE(cache->unflushed);
	if (unflushed)
		kblk_cache_loss(d);
}
EXPORT_SYMBOL_IF_KUNIT(kblk_cache_login);

/**
 * kblk_cache_flush - begin a flush, before it is sent
 * @cache: state of the volume
 *
 * Context: any. kblk_cache_flushed() follows.
 */
void kblk_cache_flush(struct kblk_cache *cache)
{
	atomic_inc(&cache->flushing);
	/* the count, before the mark; see kblk_cache_login(), whose mutex a request cannot take */
	smp_mb__after_atomic();
	WRITE_ONCE(cache->unflushed, false);
}
EXPORT_SYMBOL_IF_KUNIT(kblk_cache_flush);

/**
 * kblk_cache_flushed - complete a flush
 * @cache: state of the volume
 * @covered: the flush has covered all earlier writes
 *
 * Context: any.
 */
void kblk_cache_flushed(struct kblk_cache *cache, bool covered)
{
	if (!covered)
		WRITE_ONCE(cache->unflushed, true);
	/* the mark, before the count; see kblk_cache_flush() */
	smp_mb__before_atomic();
	atomic_dec(&cache->flushing);
}
EXPORT_SYMBOL_IF_KUNIT(kblk_cache_flushed);

/**
 * kblk_cache_written - note an acknowledged write that no flush has covered
 * @d: disk of the write
 *
 * Another path may have logged in to another incarnation before this answer arrived.
 * That login has not seen this write, which may be lost.
 *
 * Context: any.
 */
void kblk_cache_written(struct kblk_disk *d)
{
	struct kblk_cache *cache = d->cache;

	if (!READ_ONCE(cache->unflushed))
		WRITE_ONCE(cache->unflushed, true);
	/*
	 * This sees the other incarnation, or the login sees the mark. No lock: completions of
	 * all queues come here, in softirq context, and the login holds a mutex.
	 */
	smp_mb();
	/* pairs with the release in kblk_cache_login() */
	if (smp_load_acquire(&cache->incarnation) != d->welcome.incarnation &&
	    READ_ONCE(cache->stable) != d->welcome.incarnation &&
	    le32_to_cpu(d->welcome.flags) & KBLK_WRITE_CACHE)
		kblk_cache_loss(d);
}
EXPORT_SYMBOL_IF_KUNIT(kblk_cache_written);

/**
 * kblk_cache_lost - whether a flush must fail
 * @d: disk of the flush
 *
 * Context: any.
 * Return: true if writes may be lost without the knowledge of the users of @d. The caller
 * fails the flush, so that one of the users knows.
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
 * kblk_cache_closed - note that the last user has closed a disk
 * @d: the disk
 *
 * If no flush has returned a loss, the first flush of the next user returns it.
 *
 * Context: any.
 */
void kblk_cache_closed(struct kblk_disk *d)
{
	WRITE_ONCE(d->losses, READ_ONCE(d->returned));
}
EXPORT_SYMBOL_IF_KUNIT(kblk_cache_closed);

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Writes that a target may have lost (clients/blk/cache.c): which flushes fail, in
 * orders of answers and logins that a network seldom makes. Two disks are two paths
 * to one volume.
 */
#include <linux/string.h>

#include "../../../clients/blk/blk.h"
#include "../kunit.h"

struct cache_pair {
	struct kblk_disk	*path[2];
};

/* As kblk_welcomed(). All of incarnation @stable is on stable storage, if it is not 0. */
static void cache_login_stable(struct kblk_disk *d, u64 incarnation, u64 stable)
{
	struct kblk_news news = { .w = d->welcome };

	news.w.incarnation = cpu_to_le64(incarnation);
	news.stable[0] = cpu_to_le64(stable);
	kblk_cache_login(d, &news);
	d->welcome.incarnation = news.w.incarnation;
}

static void cache_login(struct kblk_disk *d, u64 incarnation)
{
	cache_login_stable(d, incarnation, 0);
}

static int cache_init(struct kunit *test)
{
	struct cache_pair *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, p);
	for (i = 0; i < 2; i++) {
		struct kblk_disk *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, d);
		d->net = &init_net;
		memset(d->welcome.uuid, 0xa5, sizeof(d->welcome.uuid));
		d->welcome.flags = cpu_to_le32(KBLK_WRITE_CACHE);
		d->welcome.incarnation = cpu_to_le64(1);
		KUNIT_ASSERT_EQ(test, kblk_cache_get(d), 0);
		p->path[i] = d;
	}
	KUNIT_ASSERT_PTR_EQ(test, p->path[0]->cache, p->path[1]->cache);
	test->priv = p;
	return 0;
}

static void cache_exit(struct kunit *test)
{
	struct cache_pair *p = test->priv;
	unsigned int i;

	for (i = 0; p && i < 2; i++)
		kblk_cache_put(p->path[i]->cache);
}

/* A flush that the target answers */
static bool cache_flushes(struct kblk_disk *d)
{
	if (kblk_cache_lost(d))
		return false;
	kblk_cache_flush(d->cache);
	kblk_cache_flushed(d->cache, true);
	return true;
}

/* Nothing was written, or all of it was flushed. */
static void cache_nothing_lost(struct kunit *test)
{
	struct cache_pair *p = test->priv;
	struct kblk_disk *a = p->path[0], *b = p->path[1];

	cache_login(a, 2);
	cache_login(b, 2);
	KUNIT_EXPECT_TRUE(test, cache_flushes(a));
	kblk_cache_written(a);
	KUNIT_EXPECT_TRUE(test, cache_flushes(b));
	cache_login(b, 3);
	cache_login(a, 3);
	kblk_cache_written(b);
	KUNIT_EXPECT_TRUE(test, cache_flushes(a));
	KUNIT_EXPECT_TRUE(test, cache_flushes(b));
}

/* A write through one path is lost for both. */
static void cache_write_lost(struct kunit *test)
{
	struct cache_pair *p = test->priv;
	struct kblk_disk *a = p->path[0], *b = p->path[1];

	kblk_cache_written(a);
	cache_login(b, 2);
	cache_login(a, 2);
	KUNIT_EXPECT_FALSE(test, cache_flushes(a));
	KUNIT_EXPECT_FALSE(test, cache_flushes(b));
	kblk_cache_closed(a);
	KUNIT_EXPECT_TRUE(test, cache_flushes(a));
	KUNIT_EXPECT_FALSE(test, cache_flushes(b));
}

/* So is one that a flush was to cover which has no answer yet. */
static void cache_flush_outstanding(struct kunit *test)
{
	struct cache_pair *p = test->priv;
	struct kblk_disk *a = p->path[0], *b = p->path[1];

	kblk_cache_written(a);
	kblk_cache_flush(a->cache);
	cache_login(b, 2);
	kblk_cache_flushed(a->cache, false);
	cache_login(a, 2);
	KUNIT_EXPECT_FALSE(test, cache_flushes(a));
	KUNIT_EXPECT_FALSE(test, cache_flushes(b));
}

/*
 * The answer to a write is repeated by the network while another path finds another
 * incarnation: its login knows of no write, and the writer's later one of no change.
 */
static void cache_late_answer(struct kunit *test)
{
	struct cache_pair *p = test->priv;
	struct kblk_disk *a = p->path[0], *b = p->path[1];

	cache_login(b, 2);
	KUNIT_EXPECT_TRUE(test, cache_flushes(b));
	kblk_cache_written(a);
	cache_login(a, 2);
	KUNIT_EXPECT_FALSE(test, cache_flushes(a));
	KUNIT_EXPECT_FALSE(test, cache_flushes(b));
	/* what is written over connections of this incarnation is another matter */
	kblk_cache_closed(a);
	kblk_cache_written(a);
	KUNIT_EXPECT_TRUE(test, cache_flushes(a));
}

/* The same, where the target has flushed before it gave up its incarnation */
static void cache_late_answer_stable(struct kunit *test)
{
	struct cache_pair *p = test->priv;
	struct kblk_disk *a = p->path[0], *b = p->path[1];

	cache_login_stable(b, 2, 1);
	kblk_cache_written(a);
	cache_login_stable(a, 2, 1);
	KUNIT_EXPECT_TRUE(test, cache_flushes(a));
	KUNIT_EXPECT_TRUE(test, cache_flushes(b));
}

/* A user who has not flushed does not know; the next one is told. */
static void cache_closed_unflushed(struct kunit *test)
{
	struct cache_pair *p = test->priv;
	struct kblk_disk *a = p->path[0];

	kblk_cache_written(a);
	cache_login(a, 2);
	kblk_cache_closed(a);
	KUNIT_EXPECT_FALSE(test, cache_flushes(a));
	/* a loss since then is news */
	kblk_cache_written(a);
	cache_login(a, 3);
	kblk_cache_closed(a);
	KUNIT_EXPECT_FALSE(test, cache_flushes(a));
	kblk_cache_closed(a);
	KUNIT_EXPECT_TRUE(test, cache_flushes(a));
}

/* Another target's volume with this UUID is a path if the administrator gave it twice. */
static void cache_claimed(struct kunit *test)
{
	struct kblk_disk *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);
	struct cache_pair *p = test->priv;
	struct kblk_disk *a = p->path[0];

	KUNIT_ASSERT_NOT_NULL(test, d);
	d->net = &init_net;
	d->welcome = a->welcome;
	strscpy(d->opt.addr, "192.0.2.1");
	KUNIT_EXPECT_EQ(test, kblk_cache_get(d), -ENOTUNIQ);
	memset(&d->opt.uuid, 0xa5, sizeof(d->opt.uuid));
	KUNIT_EXPECT_EQ(test, kblk_cache_get(d), -ENOTUNIQ);
	KUNIT_EXPECT_NULL(test, d->cache);
	a->cache->given = true;
	KUNIT_ASSERT_EQ(test, kblk_cache_get(d), 0);
	KUNIT_EXPECT_PTR_EQ(test, d->cache, a->cache);
	kblk_cache_put(d->cache);
	/* the address alone is not the target: it is one within a namespace */
	*d->opt.addr = '\0';
	d->opt.uuid = uuid_null;
	a->cache->net++;
	KUNIT_EXPECT_EQ(test, kblk_cache_get(d), -ENOTUNIQ);
}

static struct kunit_case clients_cache_cases[] = {
	KUNIT_CASE(cache_nothing_lost),
	KUNIT_CASE(cache_write_lost),
	KUNIT_CASE(cache_flush_outstanding),
	KUNIT_CASE(cache_late_answer),
	KUNIT_CASE(cache_late_answer_stable),
	KUNIT_CASE(cache_closed_unflushed),
	KUNIT_CASE(cache_claimed),
	{}
};

static struct kunit_suite clients_cache_suite = {
	.name = "clients_cache",
	.init = cache_init,
	.exit = cache_exit,
	.test_cases = clients_cache_cases,
};

kunit_test_suite(clients_cache_suite);

MODULE_DESCRIPTION("KUnit tests of kofi_blk");
MODULE_LICENSE("Dual BSD/GPL");

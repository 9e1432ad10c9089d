// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi/lib/peer.c: tables of peers, and limits of waiting operations.
 */
#include <linux/in6.h>

#include <linux/kofi/peer.h>

#include "../core/fake.h"
#include "../core/queues.h"

#define PEER_MANY	4

struct peer_test {
	struct fake_world	*world;
	struct fid_domain	*domain;
	struct fid_av		*av;
	struct fi_tx_attr	tx;
	struct fi_info		info;
	struct kofi_ep		ep;
	struct kofi_peers	peers;
	struct kofi_peer	at[PEER_MANY];
};

static int peer_init(struct kunit *test)
{
	struct peer_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	test->priv = t;
	t->world = fake_open(test);
	t->world->info->addr_format = FI_SOCKADDR_IN6;
	KUNIT_ASSERT_EQ(test, 0, fi_domain(t->world->fabric, t->world->info,
					   &t->domain, NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_av_open(t->domain, NULL, &t->av, NULL));
	/* the consumer's part is the first member, as in each object */
	t->ep.av = (struct kofi_av *)t->av;
	t->ep.info = &t->info;
	t->info.tx_attr = &t->tx;
	return kofi_peers_init(&t->peers, &t->ep);
}

static void peer_exit(struct kunit *test)
{
	struct peer_test *t = test->priv;

	if (!t)
		return;
	kofi_peers_exit(&t->peers);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->av->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&t->domain->fid));
	fake_close(test, t->world);
}

static void peer_in6(union kofi_ip *addr, u32 net, u32 subnet, u32 host, u16 port)
{
	*addr = (union kofi_ip) { .in6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(port),
		.sin6_addr.s6_addr32 = { htonl(net), htonl(subnet), 0, htonl(host) },
	} };
}

/* The numbers of a walk over all peers, as decimal digits */
static u32 peer_walk(struct kofi_peers *p)
{
	u32 number = 1, all = 0;

	rcu_read_lock();
	for (; kofi_peers_next(p, &number); number++)
		all = 10 * all + number;
	rcu_read_unlock();
	return all;
}

static void peer_table(struct kunit *test)
{
	struct peer_test *t = test->priv;
	struct kofi_peers *p = &t->peers;
	int i;

	for (i = 0; i < PEER_MANY; i++) {
		peer_in6(&t->at[i].addr, 0x20010db8, 0, 1, 100 + min(i, 2));
		KUNIT_EXPECT_NULL(test, i < 3 ? kofi_peers_find(p, &t->at[i].addr) : NULL);
		KUNIT_ASSERT_EQ(test, i < 3 ? kofi_peers_add(p, &t->at[i], GFP_KERNEL) :
				kofi_peers_add_hidden(p, &t->at[i], GFP_KERNEL), 0);
		KUNIT_EXPECT_EQ(test, t->at[i].number, i + 1);
	}
	KUNIT_EXPECT_EQ(test, kofi_peers_count(p), 3);
	KUNIT_EXPECT_EQ(test, peer_walk(p), 1234);
	KUNIT_EXPECT_PTR_EQ(test, kofi_peers_find(p, &t->at[2].addr), &t->at[2]);
	kofi_peers_del_hidden(p, &t->at[3]);

	/* another record of a peer has the number, and the old one leaves nothing */
	kofi_peers_set_dest(p, &t->at[2], 7, kofi_peers_changes(p));
	KUNIT_EXPECT_PTR_EQ(test, kofi_peers_dest(p, 7), &t->at[2]);
	kofi_peers_replace(p, &t->at[2], &t->at[3]);
	KUNIT_EXPECT_EQ(test, t->at[3].number, 3);
	KUNIT_EXPECT_NULL(test, kofi_peers_dest(p, 7));
	KUNIT_EXPECT_PTR_EQ(test, kofi_peers_find(p, &t->at[2].addr), &t->at[3]);
	KUNIT_EXPECT_EQ(test, peer_walk(p), 123);

	kofi_peers_del(p, &t->at[1]);
	KUNIT_EXPECT_NULL(test, kofi_peers_find(p, &t->at[1].addr));
	KUNIT_EXPECT_EQ(test, peer_walk(p), 13);
	/* numbers are not reused soon */
	KUNIT_ASSERT_EQ(test, kofi_peers_add(p, &t->at[1], GFP_KERNEL), 0);
	KUNIT_EXPECT_EQ(test, peer_walk(p), 135);
	kofi_peers_del(p, &t->at[0]);
	kofi_peers_del(p, &t->at[1]);
	kofi_peers_del(p, &t->at[3]);
	KUNIT_EXPECT_EQ(test, kofi_peers_count(p), 0);
	KUNIT_EXPECT_EQ(test, peer_walk(p), 0);
}

/* At most half of the operations wait, however these were added. */
static void peer_waiting(struct kunit *test)
{
	static const struct { size_t size; int limit; } sizes[] = {
		{ 1, 1 }, { 2, 1 }, { 3, 1 }, { 4, 2 }, { 256, 128 },
	};
	struct peer_test *t = test->priv;
	struct kofi_peers *p = &t->peers;
	int i, n;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		t->tx.size = sizes[i].size;
		for (n = 0; kofi_peers_wait(p); n++)
			KUNIT_EXPECT_LT(test, n, sizes[i].limit);
		KUNIT_EXPECT_EQ(test, n, sizes[i].limit);
		KUNIT_EXPECT_TRUE(test, kofi_peers_full(p));
		/* operations that move to another connection have room */
		kofi_peers_add_waiting(p, 2);
		KUNIT_EXPECT_FALSE(test, kofi_peers_wait(p));
		kofi_peers_unwait(p, 3);
		KUNIT_EXPECT_FALSE(test, kofi_peers_full(p));
		KUNIT_EXPECT_TRUE(test, kofi_peers_wait(p));
		kofi_peers_unwait(p, n);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&p->waiting), 0);
}

static void peer_order(struct kunit *test)
{
	union kofi_ip ip[5] = {
		{ .in4 = { .sin_family = AF_INET, .sin_port = htons(0x01ff),
			   .sin_addr.s_addr = htonl(0x0a000002) } },
		{ .in4 = { .sin_family = AF_INET, .sin_port = htons(0x0200),
			   .sin_addr.s_addr = htonl(0x0a000002) } },
		{ .in4 = { .sin_family = AF_INET, .sin_port = htons(1),
			   .sin_addr.s_addr = htonl(0x0a000100) } },
	};
	int i, k;

	peer_in6(&ip[3], 0x20010db8, 0, 0x01ff, 5);
	peer_in6(&ip[4], 0x20010db8, 0, 0x0200, 1);
	for (i = 0; i < ARRAY_SIZE(ip); i++)
		for (k = 0; k < ARRAY_SIZE(ip); k++)
			KUNIT_EXPECT_EQ_MSG(test, clamp(kofi_peer_compare(&ip[i], &ip[k]), -1, 1),
					    clamp(i - k, -1, 1), "%d with %d", i, k);
}

/* Retry delays: from 2 to 200 ms, doubled */
static void peer_delays(struct kunit *test)
{
	static const unsigned int delays[] = { 2, 4, 8, 16, 32, 64, 128, 200, 200 };
	struct kofi_retry r = {};
	int i;

	for (i = 0; i < ARRAY_SIZE(delays); i++) {
		KUNIT_EXPECT_EQ(test, kofi_retry_next(&r), msecs_to_jiffies(delays[i]));
		KUNIT_EXPECT_EQ(test, r.delay, delays[i]);
	}
}

static struct kunit_case peer_cases[] = {
	KUNIT_CASE(peer_table),
	KUNIT_CASE(peer_waiting),
	KUNIT_CASE(peer_order),
	KUNIT_CASE(peer_delays),
	{}
};

struct kunit_suite kofi_peers_suite = {
	.name		= "kofi_peers",
	.suite_init	= fake_suite_init,
	.suite_exit	= fake_suite_exit,
	.init		= peer_init,
	.exit		= peer_exit,
	.test_cases	= peer_cases,
};

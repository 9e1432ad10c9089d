// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi/lib/peer.c: tables of peers, and limits of unknown peers.
 */
#include <linux/in6.h>

#include <linux/kofi/peer.h>

#include "../core/fake.h"
#include "../core/queues.h"

#define PEER_MANY	4
#define PEER_SLOTS	48	/* of unknown peers in one case */

struct peer_test {
	struct fake_world	*world;
	struct fid_domain	*domain;
	struct fid_av		*av;
	struct fi_tx_attr	tx;
	struct fi_info		info;
	struct kofi_ep		ep;
	struct kofi_peers	peers;
	struct kofi_peer	at[PEER_SLOTS];
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

/* Requests of peers with a lower and a higher address, of the present life and of another */
static void peer_judge(struct kunit *test)
{
	static const enum kofi_peer_verdict verdicts[][4] = {
		[KOFI_PEER_NEW]	= { KOFI_PEER_ACCEPT, KOFI_PEER_ACCEPT,
				    KOFI_PEER_ACCEPT, KOFI_PEER_ACCEPT },
		[KOFI_PEER_IDLE] = { KOFI_PEER_ACCEPT, KOFI_PEER_ACCEPT,
				     KOFI_PEER_ACCEPT, KOFI_PEER_ACCEPT },
		[KOFI_PEER_WANTED] = { KOFI_PEER_ACCEPT, KOFI_PEER_ACCEPT,
				       KOFI_PEER_ACCEPT, KOFI_PEER_ACCEPT },
		[KOFI_PEER_WAITING] = { KOFI_PEER_ACCEPT, KOFI_PEER_ACCEPT,
					KOFI_PEER_ACCEPT, KOFI_PEER_ACCEPT },
		[KOFI_PEER_CONNECTING] = { KOFI_PEER_REPLACE, KOFI_PEER_REPLACE,
					   KOFI_PEER_REPLACE, KOFI_PEER_REPLACE },
		[KOFI_PEER_REQUESTING] = { KOFI_PEER_CROSSED, KOFI_PEER_CROSSED,
					   KOFI_PEER_REPLACE, KOFI_PEER_REPLACE },
		[KOFI_PEER_ACCEPTING] = { KOFI_PEER_PRESENT, KOFI_PEER_RESTARTED,
					  KOFI_PEER_PRESENT, KOFI_PEER_RESTARTED },
		[KOFI_PEER_CONNECTED] = { KOFI_PEER_PRESENT, KOFI_PEER_RESTARTED,
					  KOFI_PEER_PRESENT, KOFI_PEER_RESTARTED },
	};
	struct kofi_peer old = { .life = 5 };
	int i, k;

	for (i = 0; i < ARRAY_SIZE(verdicts); i++) {
		old.phase = i;
		for (k = 0; k < 4; k++)
			KUNIT_EXPECT_EQ_MSG(test, kofi_peer_judge(&old, k / 2 ? 1 : -1, 5 + k % 2),
					    verdicts[i][k], "phase %d, %d", i, k);
	}
	KUNIT_EXPECT_EQ(test, kofi_peer_judge(NULL, -1, 5), KOFI_PEER_ACCEPT);
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

/* ----------------------------------------------------------- unknown peers */

/* Peers that ask one after the other, of which the first ones are admitted */
static const struct peer_crowd {
	const char	*name;
	unsigned int	asking;
	unsigned int	admitted;
	u32		net;	/* bits of the address: 0 for IPv4 */
	u32		subnet;
	bool		hosts;	/* each has a host of its own, or a port */
	bool		scopes;	/* each is on a link of its own */
} peer_crowds[] = {
	{ "one IPv4 host", 6, 4 },
	{ "IPv4 hosts", 20, 16, .hosts = true },
	{ "one IPv6 host", 6, 4, 0x20010db8 },
	{ "a global network", 10, 8, 0x20010db8, .hosts = true },
	{ "a local network", 10, 8, 0xfd000000, 1, .hosts = true },
	{ "one address on a link", 6, 4, 0xfe800000 },
	{ "one address on many links", 20, 16, 0xfe800000, .scopes = true },
	{ "addresses on a link", 10, 8, 0xfe800000, .hosts = true },
};

static void peer_crowd_desc(const struct peer_crowd *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(peer_crowd, peer_crowds, peer_crowd_desc);

static void peer_crowd_addr(const struct peer_crowd *c, int i, union kofi_ip *addr)
{
	u32 host = c->hosts ? 10 + i : 10;
	u16 port = 100 + i;

	if (c->net) {
		peer_in6(addr, c->net, c->subnet, host, port);
		if (c->net == 0xfe800000)
			addr->in6.sin6_scope_id = c->scopes ? 1 + i : 1;
		return;
	}
	*addr = (union kofi_ip) { .in4 = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(0x0a000000 + host),
	} };
}

static const struct kofi_unknown_max peer_max = { .all = 16, .host = 25, .net = 50 };

static void peer_admit(struct kunit *test)
{
	const struct peer_crowd *c = test->param_value;
	struct peer_test *t = test->priv;
	struct kofi_peers *p = &t->peers;
	int i, round;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < c->asking; i++) {
			peer_crowd_addr(c, i, &t->at[i].addr);
			KUNIT_EXPECT_EQ_MSG(test, kofi_peers_admit(p, &t->at[i], &peer_max,
								   GFP_KERNEL),
					    i < c->admitted ? 0 : -EUSERS, "%d", i);
		}
		KUNIT_EXPECT_EQ(test, p->unknown, c->admitted);
		/* one leaves, and another has its place */
		kofi_peers_dismiss(p, &t->at[0]);
		KUNIT_EXPECT_EQ(test, kofi_peers_admit(p, &t->at[i - 1], &peer_max, GFP_KERNEL), 0);
		KUNIT_EXPECT_EQ(test, kofi_peers_admit(p, &t->at[0], &peer_max, GFP_KERNEL),
				-EUSERS);
		for (i = 0; i < c->asking; i++)
			kofi_peers_dismiss(p, &t->at[i]);
		KUNIT_EXPECT_EQ(test, p->unknown, 0);
		KUNIT_EXPECT_EQ(test, atomic_read(&p->shares.nelems), 0);
	}
}

/* A network is full: hosts elsewhere, and the rest of the places, are not. */
static void peer_admit_others(struct kunit *test)
{
	struct peer_test *t = test->priv;
	struct kofi_peers *p = &t->peers;
	int i, n = 0;

	for (i = 0; i < PEER_SLOTS; i++) {
		/* three networks of 16 hosts */
		peer_in6(&t->at[i].addr, 0x20010db8, i / 16, 10 + i, 100);
		if (!kofi_peers_admit(p, &t->at[i], &peer_max, GFP_KERNEL))
			n |= 1 << i / 16;
	}
	KUNIT_EXPECT_EQ(test, n, 3);
	KUNIT_EXPECT_EQ(test, p->unknown, 16);
	for (i = 0; i < PEER_SLOTS; i++)
		kofi_peers_dismiss(p, &t->at[i]);
	KUNIT_EXPECT_EQ(test, p->unknown, 0);
}

/* Only a peer that counts for the exceeded limit makes room. */
static void peer_blocks(struct kunit *test)
{
	const struct kofi_unknown_max none = { .host = 25, .net = 50 };
	struct peer_test *t = test->priv;
	struct kofi_peers *p = &t->peers;
	union kofi_ip addr;
	int i;

	/* four peers of one host, four hosts in its network, eight hosts elsewhere */
	for (i = 0; i < 16; i++) {
		peer_in6(&t->at[i].addr, 0x20010db8, i < 8 ? 1 : i, i < 4 ? 1 : i, 100 + i);
		KUNIT_ASSERT_EQ(test, kofi_peers_admit(p, &t->at[i], &peer_max, GFP_KERNEL), 0);
	}
	for (i = 0; i < 16; i++) {
		peer_in6(&addr, 0x20010db8, 1, 1, 99);
		KUNIT_EXPECT_EQ_MSG(test, kofi_peers_blocks(p, &t->at[i], &addr, &peer_max),
				    i < 4 ? 10000 : 0, "host, %d", i);
		peer_in6(&addr, 0x20010db8, 1, 99, 99);
		KUNIT_EXPECT_EQ_MSG(test, kofi_peers_blocks(p, &t->at[i], &addr, &peer_max),
				    i < 8 ? 10000 : 0, "network, %d", i);
		peer_in6(&addr, 0x20010db8, 99, 99, 99);
		/* a host that has few places comes last */
		KUNIT_EXPECT_EQ_MSG(test, kofi_peers_blocks(p, &t->at[i], &addr, &peer_max),
				    i < 8 ? 10000 : 2500, "total, %d", i);
	}
	KUNIT_EXPECT_EQ(test, kofi_peers_blocks(p, &t->at[20], &addr, &peer_max), 0);
	/* without any place, the removal of a peer does not help */
	KUNIT_EXPECT_EQ(test, kofi_peers_blocks(p, &t->at[0], &addr, &none), 0);
	/* with places left, no peer makes room */
	kofi_peers_dismiss(p, &t->at[15]);
	KUNIT_EXPECT_EQ(test, kofi_peers_blocks(p, &t->at[0], &addr, &peer_max), 0);
	for (i = 0; i < 16; i++)
		kofi_peers_dismiss(p, &t->at[i]);
}

/* Peers of the vector do not count, nor do peers that are inserted later. */
static void peer_admit_known(struct kunit *test)
{
	struct peer_test *t = test->priv;
	struct kofi_peers *p = &t->peers;
	fi_addr_t fi_addr;
	int i;

	for (i = 0; i < 8; i++) {
		peer_in6(&t->at[i].addr, 0x20010db8, 0, 1, 100 + i);
		if (i >= 6)
			KUNIT_ASSERT_EQ(test, fi_av_insert(t->av, &t->at[i].addr, 1, &fi_addr, 0,
							   NULL), 1);
		KUNIT_EXPECT_EQ(test, kofi_peers_admit(p, &t->at[i], &peer_max, GFP_KERNEL),
				i == 4 || i == 5 ? -EUSERS : 0);
	}
	KUNIT_EXPECT_EQ(test, p->unknown, 4);
	KUNIT_ASSERT_EQ(test, fi_av_insert(t->av, &t->at[0].addr, 1, &fi_addr, 0, NULL), 1);
	for (i = 0; i < 8; i++)
		kofi_peers_recount(p, &t->at[i]);
	KUNIT_EXPECT_EQ(test, p->unknown, 3);
	KUNIT_EXPECT_EQ(test, kofi_peers_admit(p, &t->at[4], &peer_max, GFP_KERNEL), 0);
	/* limits may shrink below the number of peers */
	KUNIT_EXPECT_EQ(test, kofi_peers_admit(p, &t->at[5], &(struct kofi_unknown_max) {
			.all = 0, .host = 100, .net = 100 }, GFP_KERNEL), -EUSERS);
	for (i = 0; i < 8; i++)
		kofi_peers_dismiss(p, &t->at[i]);
	KUNIT_EXPECT_EQ(test, p->unknown, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&p->shares.nelems), 0);
}

static struct kunit_case peer_cases[] = {
	KUNIT_CASE(peer_table),
	KUNIT_CASE(peer_waiting),
	KUNIT_CASE(peer_order),
	KUNIT_CASE(peer_judge),
	KUNIT_CASE(peer_delays),
	KUNIT_CASE_PARAM(peer_admit, peer_crowd_gen_params),
	KUNIT_CASE(peer_admit_others),
	KUNIT_CASE(peer_blocks),
	KUNIT_CASE(peer_admit_known),
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

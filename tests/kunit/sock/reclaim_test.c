// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reclaim-safe endpoints of type FI_EP_RDM: their sockets, their work queue, and the
 * memory they store messages in.
 */
#include <linux/slab.h>
#include <trace/events/kmem.h>

#include "rdm.h"
#include "stuck.h"

#define RC_STORED	3000	/* bytes of a message, which nothing else allocates */

static int rc_users(void)
{
	return static_key_count(&memalloc_socks_key.key);
}

static void rc_pair(struct kunit *test, u64 caps, fi_addr_t peer[2])
{
	struct rdm_test *t = test->priv;

	t->node[0].reclaim = true;
	t->node[1].reclaim = true;
	rdm_pair(test, caps, peer);
}

/* One message each way */
static void rc_exchange(struct kunit *test, fi_addr_t peer[2])
{
	struct rdm_test *t = test->priv;
	int i;

	for (i = 0; i < 2; i++) {
		rdm_recvs(test, &t->node[!i], 0, 1, 100);
		rdm_sends(test, &t->node[i], peer[i], 0, 1, 100);
		rdm_received(test, &t->node[!i], 0, 1, 100);
		rdm_sent(test, &t->node[i], 1, 0);
	}
}

static void rc_socket(struct kunit *test, struct sock *sk)
{
	KUNIT_EXPECT_TRUE(test, sock_flag(sk, SOCK_MEMALLOC));
	KUNIT_EXPECT_TRUE(test, sk->sk_allocation & __GFP_MEMALLOC);
}

/* The connections may use the reserves whichever side made them, and so may listeners. */
static void rc_sockets(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	int i, found, before = rc_users();
	struct ksk_peer *conn;
	struct ksk_rdm *rdm;
	fi_addr_t peer[2];

	rc_pair(test, FI_MSG, peer);
	KUNIT_EXPECT_EQ(test, rc_users(), before + 2);
	rc_exchange(test, peer);
	for (i = 0; i < 2; i++) {
		rdm = ksk_rdm(ksk_ep(t->node[i].ep));
		rc_socket(test, rdm->listener.sock->sk);
		found = 0;
		list_for_each_entry(conn, &rdm->conns, node) {
			struct sock *sk = conn->conn.sock->sk;

			if (!ksk_peer_connected(conn))
				continue;
			found++;
			rc_socket(test, sk);
			KUNIT_EXPECT_FALSE(test, sk->sk_allocation & __GFP_IO);
		}
		KUNIT_EXPECT_EQ(test, found, 1);
	}
	rdm_close(test, &t->node[0]);
	rdm_close(test, &t->node[1]);
	KUNIT_EXPECT_EQ(test, rc_users(), before);
}

static void rc_release(void *arg)
{
	struct stuck *stuck = arg;
	int cpu;

	for_each_online_cpu(cpu)
		stuck_end(&stuck[cpu]);
	workqueue_set_max_active(ksk_wq, WQ_DFL_ACTIVE);
}

/*
 * The workers of the other endpoints wait for memory, and no worker is to be had:
 * reclaim-safe endpoints connect, and accept, all the same.
 */
static void rc_queue(struct kunit *test)
{
	struct stuck *stuck = kunit_kcalloc(test, nr_cpu_ids, sizeof(*stuck), GFP_KERNEL);
	fi_addr_t peer[2];
	int cpu;

	KUNIT_ASSERT_NOT_NULL(test, stuck);

	rc_pair(test, FI_MSG, peer);
	workqueue_set_max_active(ksk_wq, 1);
	for_each_online_cpu(cpu) {
		stuck_queue(&stuck[cpu], cpu);
		wait_for_completion(&stuck[cpu].runs);
	}
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, rc_release, stuck), 0);

	rc_exchange(test, peer);
	kunit_release_action(test, rc_release, stuck);
}

/**
 * struct rc_trace - the allocations of stored messages
 * @stored: their number
 * @reserves: the number of those that may take the reserves
 */
struct rc_trace {
	atomic_t	stored;
	atomic_t	reserves;
};

static void rc_kmalloc(void *data, unsigned long site, const void *ptr, size_t bytes,
		       size_t allocated, gfp_t gfp, int node)
{
	struct rc_trace *t = data;

	if (bytes < RC_STORED || bytes >= RC_STORED + SZ_1K)
		return;
	atomic_inc(&t->stored);
	if (gfp & __GFP_MEMALLOC)
		atomic_inc(&t->reserves);
}

static void rc_untrace(void *arg)
{
	unregister_trace_kmalloc(rc_kmalloc, arg);
	tracepoint_synchronize_unregister();
}

/*
 * A message without a receive may be in the way of the one that frees memory: what it
 * is stored in may come from the reserves, of a reclaim-safe endpoint only.
 */
static void rc_unexpected(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	bool safe = *(const int *)test->param_value;
	struct rdm_node *a = &t->node[0], *b = &t->node[1];
	struct rc_trace *tr;
	fi_addr_t peer[2];

	tr = kunit_kzalloc(test, sizeof(*tr), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, tr);
	b->reclaim = safe;
	rdm_pair(test, FI_MSG | FI_TAGGED, peer);
	KUNIT_ASSERT_EQ(test, register_trace_kmalloc(rc_kmalloc, tr), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, rc_untrace, tr), 0);
	rdm_tsend(test, a, peer[0], 0, RC_STORED, FI_DELIVERY_COMPLETE);
	rdm_sent(test, a, 1, 0);
	kunit_release_action(test, rc_untrace, tr);
	KUNIT_EXPECT_GE(test, atomic_read(&tr->stored), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&tr->reserves),
			safe ? atomic_read(&tr->stored) : 0);
	rdm_trecv(test, b, 0, RC_STORED);
}

static const int rc_safe[] = { 0, 1 };

static void rc_describe(const int *safe, char *desc)
{
	strscpy(desc, *safe ? "reclaim-safe" : "not reclaim-safe", KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rc_safe, rc_safe, rc_describe);

static struct kunit_case rc_cases[] = {
	KUNIT_CASE(rc_sockets),
	KUNIT_CASE(rc_queue),
	KUNIT_CASE_PARAM(rc_unexpected, rc_safe_gen_params),
	{}
};

static struct kunit_suite rc_suite = {
	.name		= "sock_reclaim",
	.suite_init	= lo_suite_init,
	.init		= rdm_init,
	.exit		= rdm_exit,
	.test_cases	= rc_cases,
};

kunit_test_suite(rc_suite);

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The end of connections of FI_EP_RDM endpoints where somebody still uses them: a
 * request that is being accepted.
 */
#include <linux/sched.h>
#include <kunit/static_stub.h>
#include <net/tcp.h>

#include "rdm.h"

#define END_PORT	7
#define MUTEX_WAITERS	1	/* kernel/locking/mutex.h */

/* Wait for somebody to wait for a mutex. */
static bool end_contended(struct mutex *lock)
{
	unsigned long end = jiffies + LIVE_JIFFIES;

	while (!(atomic_long_read(&lock->owner) & MUTEX_WAITERS)) {
		if (time_after(jiffies, end))
			return false;
		schedule_timeout_uninterruptible(1);
	}
	return true;
}

/* The connection fails when it has its socket, and all but its acceptor let go of it. */
static void end_attach(struct ksk_conn *c, struct socket *sock, int phase)
{
	struct kunit *test = kunit_get_current_test();
	struct sock *sk = sock->sk;

	kunit_deactivate_static_stub(test, ksk_conn_attach);
	sock_hold(sk);
	ksk_conn_attach(c, sock, phase);
	ksk_conn_abort(c, ECANCELED);
	KUNIT_EXPECT_TRUE(test, end_contended(&c->mutex));
	KUNIT_EXPECT_PTR_EQ(test, sk->sk_user_data, (void *)c);
	sock_put(sk);
}

/*
 * A connection that fails while it is being accepted keeps its socket until the work
 * item that accepts it has done with that. The test runs the work item itself.
 */
static void end_accepted(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct rdm_node *a = &t->node[0];
	unsigned long end = jiffies + LIVE_JIFFIES;
	struct ksk_rdm *rdm;
	struct socket *sock;
	struct rdm_cm cm;
	u8 byte;

	rdm_open(test, a, FI_MSG, 0);
	rdm = ksk_rdm(ksk_ep(a->ep));
	disable_work_sync(&rdm->accept);
	sock = rdm_raw(test, a);
	rdm_request(test, sock, KSK_RDM_VERSION, END_PORT, 9);
	while (!READ_ONCE(rdm->listener.delivered) && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, READ_ONCE(rdm->listener.delivered), 1);

	kunit_activate_static_stub(test, ksk_conn_attach, end_attach);
	rdm->accept.func(&rdm->accept);
	KUNIT_EXPECT_EQ(test, live_raw_recv(sock, &cm, sizeof(cm)), (int)sizeof(cm));
	KUNIT_EXPECT_EQ(test, cm.hdr.type, KSK_CM_ACCEPT);
	KUNIT_EXPECT_LE(test, live_raw_recv(sock, &byte, 1), 0);
	rdm_alone(test, a);
	KUNIT_EXPECT_EQ(test, rdm_stat(a, "accepted"), 1);
	sock_release(sock);
	enable_work(&rdm->accept);
}

static struct kunit_case end_cases[] = {
	KUNIT_CASE(end_accepted),
	{}
};

static struct kunit_suite end_suite = {
	.name		= "sock_rdm_end",
	.suite_init	= lo_suite_init,
	.init		= rdm_init,
	.exit		= rdm_exit,
	.test_cases	= end_cases,
};

kunit_test_suite(end_suite);

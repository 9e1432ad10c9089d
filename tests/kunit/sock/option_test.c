// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Options of kofi_sock's endpoints: which values are taken, and what becomes of
 * the socket. The sockets are looked at through the provider's own headers.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/pkt_sched.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#include <linux/kofi/provider.h>

#include "../../../providers/sock/sock.h"

#include "../contract/contract.h"
#include "../kunit.h"
#include "stuck.h"

#define OPTION_TIMEOUT	TEST_LIMIT(10000)	/* ms */

static struct sock *option_sk(struct ct_pair *p, int side)
{
	return ksk_ep(p->side[side].ep)->conn->sock->sk;
}

/* ------------------------------------------------------------------ ranges */

struct option_range {
	const char	*name;
	int		val;
	unsigned int	min;
	unsigned int	max;
	bool		ep;
	bool		pep;
};

static const struct option_range option_ranges[] = {
	{ "connect timeout", KOFI_VAL_CONNECT_TIMEOUT, 10, 86400000, true, false },
	{ "handshake timeout", KOFI_VAL_HANDSHAKE_TIMEOUT, 10, 86400000, false, true },
	{ "silence timeout", KOFI_VAL_SILENCE_TIMEOUT, 1000, 86400000, true, false },
	{ "frame timeout", KOFI_VAL_FRAME_TIMEOUT, 0, 86400000, true, false },
	{ "keepalive idle", KOFI_VAL_KEEPALIVE_IDLE, 0, 32767000, true, true },
	{ "keepalive interval", KOFI_VAL_KEEPALIVE_INTVL, 1, 32767, true, true },
	{ "keepalive count", KOFI_VAL_KEEPALIVE_CNT, 1, 127, true, true },
	{ "zero copy threshold", KOFI_VAL_ZEROCOPY_MIN, 0, 1073741824, true, false },
	{ "reclaim safe", KOFI_VAL_RECLAIM_SAFE, 0, 1, true, false },
};

static void option_range_desc(const struct option_range *r, char *desc)
{
	strscpy(desc, r->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(option_range, option_ranges, option_range_desc);

static void option_take(struct kunit *test, struct fi_fid *fid, int name,
			unsigned int val)
{
	unsigned int got = ~val;

	KUNIT_EXPECT_EQ(test, fi_set_val(fid, name, &val), 0);
	KUNIT_EXPECT_EQ(test, fi_get_val(fid, name, &got), 0);
	KUNIT_EXPECT_EQ(test, got, val);
}

static void option_refuse(struct kunit *test, struct fi_fid *fid, int name,
			  unsigned int val)
{
	unsigned int before, after;

	KUNIT_EXPECT_EQ(test, fi_get_val(fid, name, &before), 0);
	KUNIT_EXPECT_EQ(test, fi_set_val(fid, name, &val), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_get_val(fid, name, &after), 0);
	KUNIT_EXPECT_EQ(test, after, before);
}

static void option_known(struct kunit *test, struct fi_fid *fid,
			 const struct option_range *r, bool known)
{
	unsigned int val = r->max;

	if (!known) {
		KUNIT_EXPECT_EQ(test, fi_set_val(fid, r->val, &val), -ENOSYS);
		KUNIT_EXPECT_EQ(test, fi_get_val(fid, r->val, &val), -ENOSYS);
		return;
	}
	option_take(test, fid, r->val, r->min);
	option_take(test, fid, r->val, r->max);
	option_refuse(test, fid, r->val, r->max + 1);
	option_refuse(test, fid, r->val, r->min - 1);
}

static void option_in_range(struct kunit *test)
{
	const struct option_range *r = test->param_value;
	const struct ct_opts opts = { .unconnected = true };
	struct ct_pair *p = ct_pair_open(test, &opts);
	struct fi_fid *fid = &p->side[0].ep->fid;
	unsigned int val = r->max;
	struct fid_pep *pep;

	/* each has what matters to it, as long as it does not connect or listen */
	option_known(test, fid, r, r->ep);
	KUNIT_ASSERT_EQ(test, fi_passive_ep(p->fabric, p->info, &pep, NULL), 0);
	option_known(test, &pep->fid, r, r->pep);
	if (r->pep)
		KUNIT_EXPECT_EQ(test, fi_set_val(&p->pep->fid, r->val, &val),
				-EBUSY);
	KUNIT_EXPECT_EQ(test, fi_close(&pep->fid), 0);
	ct_pair_close(p);
}

/* With a connection it is too late. */
static void option_late(struct kunit *test)
{
	const struct option_range *r = test->param_value;
	struct ct_pair *p = ct_pair_mode(test, CT_READ);
	unsigned int val = r->max;
	int side;

	for (side = 0; side < 2; side++) {
		struct fi_fid *fid = &p->side[side].ep->fid;

		KUNIT_EXPECT_EQ(test, fi_set_val(fid, r->val, &val),
				r->ep ? -EBUSY : -ENOSYS);
		KUNIT_EXPECT_EQ(test, fi_get_val(fid, r->val, &val),
				r->ep ? 0 : -ENOSYS);
	}
	ct_pair_close(p);
}

static void option_unknown(struct kunit *test)
{
	const struct ct_opts opts = { .unconnected = true };
	struct ct_pair *p = ct_pair_open(test, &opts);
	struct fi_fid *fid = &p->side[0].ep->fid;
	unsigned int val = 0;

	KUNIT_EXPECT_EQ(test, fi_set_val(fid, FI_PROV_SPECIFIC | 0xffff, &val),
			-ENOSYS);
	KUNIT_EXPECT_EQ(test, fi_get_val(fid, FI_PROV_SPECIFIC | 0xffff, &val),
			-ENOSYS);
	KUNIT_EXPECT_EQ(test, fi_set_val(fid, KOFI_VAL_SILENCE_TIMEOUT, NULL),
			-EINVAL);
	ct_pair_close(p);
}

/* --------------------------------------------------------------- keepalive */

/* A listener's options are handed down by TCP; the endpoint's own count. */
static void option_keepalive(struct kunit *test)
{
	const struct ct_opts opts = { .unconnected = true };
	struct ct_pair *p = ct_pair_open(test, &opts);
	struct fi_fid *fid = &p->side[0].ep->fid;
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	struct tcp_sock *tp;

	KUNIT_EXPECT_EQ(test, fi_set_val(fid, KOFI_VAL_KEEPALIVE_IDLE,
					 &(unsigned int){ 2500 }), 0);
	KUNIT_EXPECT_EQ(test, fi_set_val(fid, KOFI_VAL_KEEPALIVE_INTVL,
					 &(unsigned int){ 7 }), 0);
	KUNIT_EXPECT_EQ(test, fi_set_val(fid, KOFI_VAL_KEEPALIVE_CNT,
					 &(unsigned int){ 9 }), 0);
	KUNIT_ASSERT_EQ(test, fi_connect(p->side[0].ep, &p->addr, NULL, 0), 0);
	KUNIT_ASSERT_EQ(test, ct_next_event(p->side[1].eq, ev, CT_TIMEOUT_MS),
			0);
	KUNIT_ASSERT_EQ(test, ev->event, FI_CONNREQ);
	KUNIT_ASSERT_EQ(test, ct_ep_open(p, 1, ev->cm.info), 0);
	fi_freeinfo(ev->cm.info);
	KUNIT_EXPECT_TRUE(test, sock_flag(option_sk(p, 1), SOCK_KEEPOPEN));
	KUNIT_EXPECT_EQ(test, fi_set_val(&p->side[1].ep->fid,
					 KOFI_VAL_KEEPALIVE_IDLE,
					 &(unsigned int){ 0 }), 0);
	KUNIT_ASSERT_EQ(test, fi_accept(p->side[1].ep, NULL, 0), 0);
	ct_expect_event(test, p->side[0].eq, FI_CONNECTED);
	ct_expect_event(test, p->side[1].eq, FI_CONNECTED);

	tp = tcp_sk(option_sk(p, 0));
	KUNIT_EXPECT_TRUE(test, sock_flag(option_sk(p, 0), SOCK_KEEPOPEN));
	KUNIT_EXPECT_EQ(test, keepalive_time_when(tp), 3 * HZ);
	KUNIT_EXPECT_EQ(test, keepalive_intvl_when(tp), 7 * HZ);
	KUNIT_EXPECT_EQ(test, keepalive_probes(tp), 9);
	KUNIT_EXPECT_FALSE(test, sock_flag(option_sk(p, 1), SOCK_KEEPOPEN));
	ct_pair_close(p);
}

/* --------------------------------------------------------- traffic classes */

struct option_class {
	const char	*name;
	u32		tclass;
	u8		dscp;
	int		priority;	/* -1: what IP_TOS makes of it */
};

static const struct option_class option_classes[] = {
	{ "unspecified", FI_TC_UNSPEC, 0, 0 },
	{ "best effort", FI_TC_BEST_EFFORT, 0, TC_PRIO_BESTEFFORT },
	{ "low latency", FI_TC_LOW_LATENCY, 18, TC_PRIO_INTERACTIVE },
	{ "dedicated access", FI_TC_DEDICATED_ACCESS, 46, TC_PRIO_INTERACTIVE },
	{ "bulk data", FI_TC_BULK_DATA, 10, TC_PRIO_BULK },
	{ "scavenger", FI_TC_SCAVENGER, 1, TC_PRIO_FILLER },
	{ "network control", FI_TC_NETWORK_CTRL, 48, TC_PRIO_CONTROL },
	{ "code point 0", FI_TC_DSCP, 0, -1 },
	{ "code point 34", FI_TC_DSCP | 34, 34, -1 },
	{ "code point 63", FI_TC_DSCP | 63, 63, -1 },
};

static void option_class_desc(const struct option_class *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(option_class, option_classes, option_class_desc);

static void option_class_of(struct kunit *test, struct sock *sk,
			    const struct option_class *c)
{
	int priority = c->priority;

	if (priority < 0)
		priority = rt_tos2priority(c->dscp << 2);
	KUNIT_EXPECT_EQ(test, inet_sk(sk)->tos >> 2, c->dscp);
	if (sk->sk_family == AF_INET6)
		KUNIT_EXPECT_EQ(test, inet6_sk(sk)->tclass >> 2, c->dscp);
	KUNIT_EXPECT_EQ(test, sk->sk_priority, priority);
	KUNIT_EXPECT_EQ(test, !(tcp_sk(sk)->nonagle & TCP_NAGLE_OFF),
			c->tclass == FI_TC_BULK_DATA);
}

static void option_class_pair(struct kunit *test)
{
	const struct option_class *c = test->param_value;
	const struct ct_opts opts = { .tclass = c->tclass };
	struct ct_pair *p = ct_pair_open(test, &opts);

	option_class_of(test, option_sk(p, 0), c);
	option_class_of(test, option_sk(p, 1), c);
	ct_pair_close(p);
}

static void option_class_ipv4(struct kunit *test)
{
	option_class_pair(test);
}

static void option_address(void *address)
{
	ct_address = address;
}

static void option_class_ipv6(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_IPV6))
		kunit_skip(test, "there is no IPv6");
	KUNIT_ASSERT_EQ(test, kunit_add_action(test, option_address, ct_address), 0);
	ct_address = "::1";
	option_class_pair(test);
}

/* That of the domain is for endpoints that have none. */
static void option_class_domain(struct kunit *test)
{
	const struct ct_opts opts = { .unconnected = true };
	struct ct_pair *p = ct_pair_open(test, &opts);
	struct option_class c = option_classes[5];

	KUNIT_ASSERT_EQ(test, ct_ep_close(p, 0), 0);
	p->info->domain_attr->tclass = c.tclass;
	KUNIT_ASSERT_EQ(test, ct_ep_open(p, 0, p->info), 0);
	KUNIT_ASSERT_EQ(test, ct_pair_connect(p), 0);
	option_class_of(test, option_sk(p, 0), &c);
	KUNIT_ASSERT_EQ(test, ct_ep_close(p, 0), 0);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	KUNIT_ASSERT_EQ(test, ct_ep_close(p, 1), 0);

	c = option_classes[2];
	p->info->tx_attr->tclass = c.tclass;
	KUNIT_ASSERT_EQ(test, ct_ep_open(p, 0, p->info), 0);
	KUNIT_ASSERT_EQ(test, ct_pair_connect(p), 0);
	option_class_of(test, option_sk(p, 0), &c);
	ct_pair_close(p);
}

static void option_class_unknown(struct kunit *test)
{
	static const u32 unknown[] = {
		1, 63, FI_TC_DSCP | 64, FI_TC_DSCP | 255,
		FI_TC_NETWORK_CTRL + 1, 0x301, 0x80000000,
	};
	const struct ct_opts opts = { .unconnected = true };
	struct ct_pair *p = ct_pair_open(test, &opts);
	struct fi_info *hints = ct_hints(), *info;
	struct fid_domain *domain;
	struct fid_pep *pep;
	struct fid_ep *ep;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, hints);
	for (i = 0; i < ARRAY_SIZE(unknown); i++) {
		hints->tx_attr->tclass = unknown[i];
		KUNIT_EXPECT_EQ(test, ct_getinfo(0, hints, &info), -ENODATA);
		hints->tx_attr->tclass = 0;
		hints->domain_attr->tclass = unknown[i];
		KUNIT_EXPECT_EQ(test, ct_getinfo(0, hints, &info), -ENODATA);
		hints->domain_attr->tclass = 0;

		p->info->tx_attr->tclass = unknown[i];
		KUNIT_EXPECT_EQ(test, fi_endpoint(p->domain, p->info, &ep,
						  NULL), -EINVAL);
		KUNIT_EXPECT_EQ(test, fi_passive_ep(p->fabric, p->info, &pep,
						    NULL), -EINVAL);
		p->info->tx_attr->tclass = 0;
		p->info->domain_attr->tclass = unknown[i];
		KUNIT_EXPECT_EQ(test, fi_domain(p->fabric, p->info, &domain,
						NULL), -EINVAL);
		p->info->domain_attr->tclass = 0;
	}
	fi_freeinfo(hints);
	ct_pair_close(p);
}

/* ------------------------------------------------------------ reclaim safe */

static int option_users(void)
{
	return static_key_count(&memalloc_socks_key.key);
}

static void option_reserves(struct kunit *test, struct ct_pair *p, bool want)
{
	int side;

	for (side = 0; side < 2; side++) {
		struct sock *sk = option_sk(p, side);

		lock_sock(sk);
		KUNIT_EXPECT_EQ(test, sock_flag(sk, SOCK_MEMALLOC), want);
		KUNIT_EXPECT_EQ(test, !!(sk->sk_allocation & __GFP_MEMALLOC),
				want);
		KUNIT_EXPECT_FALSE(test, sk->sk_use_task_frag);
		release_sock(sk);
	}
}

/* One message each way, the first of them sent by the work item. */
static void option_exchange(struct kunit *test, struct ct_pair *p)
{
	struct ct_op *op[] = { ct_op(p), ct_op(p), ct_op(p), ct_op(p) };
	u8 *out = ct_buf(p, SZ_64K), *in = ct_buf(p, SZ_64K);

	KUNIT_EXPECT_EQ(test, ct_recv(p, 1, op[0], in, SZ_64K), 0);
	KUNIT_EXPECT_EQ(test, ct_recv(p, 0, op[1], in, SZ_64K), 0);
	local_irq_disable();
	KUNIT_EXPECT_EQ(test, ct_send(p, 0, op[2], out, SZ_64K), 0);
	local_irq_enable();
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, op[0]));
	KUNIT_EXPECT_EQ(test, ct_send(p, 1, op[3], out, SZ_64K), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, op[1]->wc.err, 0);
}

static void option_reclaim_safe(struct kunit *test)
{
	const struct ct_opts opts = { .mode = ct_mode_of(test),
				      .reclaim_safe = true };
	int users = option_users();
	struct ct_pair *p = ct_pair_open(test, &opts);

	KUNIT_EXPECT_EQ(test, option_users(), users + 2);
	option_reserves(test, p, true);
	option_exchange(test, p);
	option_reserves(test, p, true);
	ct_pair_close(p);
	KUNIT_EXPECT_EQ(test, option_users(), users);
}

/* The reserves are for those who have asked. */
static void option_not_safe(struct kunit *test)
{
	int users = option_users();
	struct ct_pair *p = ct_pair_mode(test, CT_READ);

	KUNIT_EXPECT_EQ(test, option_users(), users);
	option_exchange(test, p);
	option_reserves(test, p, false);
	ct_pair_close(p);
}

/* An attempt that fails leaves no user behind. */
static void option_safe_alone(struct kunit *test)
{
	const struct ct_opts opts = { .unconnected = true,
				      .reclaim_safe = true };
	int users = option_users();
	struct ct_pair *p = ct_pair_open(test, &opts);

	KUNIT_EXPECT_EQ(test, option_users(), users);
	KUNIT_EXPECT_EQ(test, fi_connect(p->side[0].ep, &p->addr, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, option_users(), users + 1);
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	KUNIT_EXPECT_EQ(test, option_users(), users);
	ct_pair_close(p);
}

/*
 * The worker of endpoints that are not safe does not come back, as it waits for
 * memory, and no other can be had. One that is safe goes on.
 */
static void option_safe_queue(struct kunit *test)
{
	const struct ct_opts opts = { .reclaim_safe = true };
	struct ct_pair *p = ct_pair_open(test, &opts);
	void *out = ct_buf(p, 64), *in = ct_buf(p, 64);
	struct ct_op *r = ct_op(p), *s = ct_op(p);
	struct sock *sk = option_sk(p, 0);
	struct stuck *stuck = ct_buf(p, sizeof(*stuck));

	ksk_ep(p->side[0].ep)->tun.cpu = 0;
	workqueue_set_max_active(ksk_wq, 1);
	stuck_queue(stuck, 0);
	wait_for_completion(&stuck->runs);

	/* what is posted while the socket is owned is sent by the work item */
	KUNIT_EXPECT_EQ(test, ct_recv(p, 1, r, in, 64), 0);
	lock_sock(sk);
	KUNIT_EXPECT_EQ(test, ct_send(p, 0, s, out, 64), 0);
	release_sock(sk);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));

	stuck_end(stuck);
	workqueue_set_max_active(ksk_wq, WQ_DFL_ACTIVE);
	ct_pair_close(p);
}

/* How a work item has asked for memory to send with */
static struct proto option_proto;
static unsigned int option_waits;	/* in a way that may wait */
static unsigned int option_insists;	/* until there is some, or with I/O */

static bool option_memory_free(const struct sock *sk, int wake)
{
	gfp_t gfp = READ_ONCE(sk->sk_allocation);

	if (in_task() && current->flags & PF_WQ_WORKER &&
	    gfpflags_allow_blocking(gfp)) {
		option_waits++;
		if (!(gfp & __GFP_NORETRY) || gfp & __GFP_IO)
			option_insists++;
	}
	return tcp_stream_memory_free(sk, wake);
}

static void option_set_proto(struct sock *sk, struct proto *proto)
{
	lock_sock(sk);
	WRITE_ONCE(sk->sk_prot, proto);
	release_sock(sk);
}

/*
 * A work item that sends may wait for memory, but not until there is some: workers
 * are few then. TCP is asked what it was told, where it is about to allocate.
 */
static void option_waits_little(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, CT_READ);
	struct sock *sk = option_sk(p, 0);
	struct proto *proto = sk->sk_prot;
	void *out = ct_buf(p, 64), *in = ct_buf(p, 64);

	option_proto = *proto;
	option_proto.stream_memory_free = option_memory_free;
	option_waits = 0;
	option_insists = 0;
	option_set_proto(sk, &option_proto);

	/* what is posted while the socket is owned is sent by the work item */
	KUNIT_EXPECT_EQ(test, ct_recv(p, 1, ct_op(p), in, 64), 0);
	lock_sock(sk);
	KUNIT_EXPECT_EQ(test, ct_send(p, 0, ct_op(p), out, 64), 0);
	release_sock(sk);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	flush_work(&ksk_ep(p->side[0].ep)->conn->work);
	option_set_proto(sk, proto);
	KUNIT_EXPECT_GT(test, option_waits, 0);
	KUNIT_EXPECT_EQ(test, option_insists, 0);
	ct_pair_close(p);
}

/* ------------------------------------------------------------ lost probes */

/*
 * An idle connection whose last keepalive probe was lost lives: how many of them
 * may be is TCP's to judge. With data that waits for the peer's window the same
 * counter has probes that are ours to judge.
 */
static void option_lost_probe(struct kunit *test)
{
	const struct ct_opts opts = {};
	struct ct_pair *p = ct_pair_open(test, &opts);
	struct ksk_conn *c = ksk_ep(p->side[0].ep)->conn;
	struct sock *sk = option_sk(p, 0);
	u32 long_ago;

	lock_sock(sk);
	long_ago = tcp_jiffies32 - 2 * HZ -
		   msecs_to_jiffies(ksk_ep(p->side[0].ep)->tun.silence_timeout);
	c->watch.base = long_ago;
	tcp_sk(sk)->rcv_tstamp = long_ago;
	inet_csk(sk)->icsk_probes_out = 1;
	release_sock(sk);
	mod_delayed_work(system_wq, &c->watch.work, 0);
	flush_delayed_work(&c->watch.work);
	KUNIT_EXPECT_EQ(test, READ_ONCE(c->dead), 0);
	KUNIT_EXPECT_NE(test, c->watch.base, long_ago);
	ct_pair_close(p);
}

/* --------------------------------------------------------------------- CPU */

static void option_cpu_range(struct kunit *test)
{
	const struct ct_opts opts = { .unconnected = true };
	struct ct_pair *p = ct_pair_open(test, &opts);
	struct fi_fid *fid = &p->side[0].ep->fid;
	int cpu;

	KUNIT_EXPECT_EQ(test, fi_get_val(fid, KOFI_VAL_CPU, &cpu), 0);
	KUNIT_EXPECT_EQ(test, cpu, -1);
	for_each_possible_cpu(cpu)
		option_take(test, fid, KOFI_VAL_CPU, cpu);
	option_take(test, fid, KOFI_VAL_CPU, -1);
	option_refuse(test, fid, KOFI_VAL_CPU, -2);
	option_refuse(test, fid, KOFI_VAL_CPU, nr_cpu_ids);
	option_refuse(test, fid, KOFI_VAL_CPU, INT_MAX);
	cpu = 0;
	KUNIT_EXPECT_EQ(test, fi_set_val(&p->pep->fid, KOFI_VAL_CPU, &cpu),
			-EBUSY);
	ct_pair_close(p);
}

static void option_note_cpu(struct ct_op *op)
{
	*(int *)op->buf = raw_smp_processor_id();
}

/*
 * The CPU a send completes on that only the work item can make, because the
 * socket is owned when it is posted.
 */
static int option_work_cpu(struct kunit *test, struct ct_pair *p)
{
	unsigned long end = jiffies + msecs_to_jiffies(OPTION_TIMEOUT);
	struct work_struct *work = &ksk_ep(p->side[0].ep)->conn->work;
	struct ct_op *r = ct_op(p), *s = ct_op(p);
	void *out = ct_buf(p, 64), *in = ct_buf(p, 64);
	struct sock *sk = option_sk(p, 0);
	int cpu = -1;

	s->buf = &cpu;
	s->hook = option_note_cpu;
	KUNIT_EXPECT_EQ(test, ct_recv(p, 1, r, in, 64), 0);
	flush_work(work);
	lock_sock(sk);
	KUNIT_EXPECT_EQ(test, ct_send(p, 0, s, out, 64), 0);
	while (!work_busy(work) && time_before(jiffies, end))
		usleep_range(100, 200);
	KUNIT_EXPECT_TRUE(test, work_busy(work));
	release_sock(sk);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	return cpu;
}

/* A queue without a CPU of its own calls back where the work item runs. */
static void option_cpu_chosen(struct kunit *test)
{
	const struct ct_opts opts = { .mode = CT_SOFTIRQ, .unconnected = true };
	int cpu;

	for_each_online_cpu(cpu) {
		struct ct_pair *p = ct_pair_open(test, &opts);

		KUNIT_ASSERT_EQ(test, fi_set_val(&p->side[0].ep->fid,
						 KOFI_VAL_CPU, &cpu), 0);
		KUNIT_ASSERT_EQ(test, ct_pair_connect(p), 0);
		KUNIT_EXPECT_EQ(test, option_work_cpu(test, p), cpu);
		ct_pair_close(p);
	}
}

/* The CPU a receive completes on whose message was sent on @cpu, over lo. */
static int option_rx_cpu(struct kunit *test, struct ct_pair *p, int cpu)
{
	struct ct_op *r = ct_op(p), *s = ct_op(p);
	void *out = ct_buf(p, 64), *in = ct_buf(p, 64);
	int got = -1;

	r->buf = &got;
	r->hook = option_note_cpu;
	KUNIT_EXPECT_EQ(test, ct_recv(p, 1, r, in, 64), 0);
	/* while a work item has a socket, it does what others come with */
	flush_work(&ksk_ep(p->side[0].ep)->conn->work);
	flush_work(&ksk_ep(p->side[1].ep)->conn->work);
	KUNIT_EXPECT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(cpu)),
			0);
	KUNIT_EXPECT_EQ(test, ct_send(p, 0, s, out, 64), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	return got;
}

/*
 * A packet's CPU places the data and calls back, and is where the work item
 * goes from then on. Over lo it is the CPU that has sent it.
 */
static void option_cpu_receive(struct kunit *test)
{
	const struct ct_opts opts = { .mode = CT_SOFTIRQ };
	struct ct_pair *p;
	cpumask_var_t mask;
	int cpu;

	if (IS_ENABLED(CONFIG_UML) && num_online_cpus() > 1)
		kunit_skip(test, "packets are passed to either CPU here");
	p = ct_pair_open(test, &opts);
	KUNIT_ASSERT_TRUE(test, alloc_cpumask_var(&mask, GFP_KERNEL));
	cpumask_copy(mask, current->cpus_ptr);
	for_each_online_cpu(cpu) {
		KUNIT_EXPECT_EQ(test, option_rx_cpu(test, p, cpu), cpu);
		KUNIT_EXPECT_EQ(test, cpu,
				READ_ONCE(option_sk(p, 1)->sk_incoming_cpu));
	}
	set_cpus_allowed_ptr(current, mask);
	free_cpumask_var(mask);
	ct_pair_close(p);
}

static void option_cpu_follows(struct kunit *test)
{
	const struct ct_opts opts = { .mode = CT_SOFTIRQ };
	struct ct_pair *p = ct_pair_open(test, &opts);
	int cpu;

	for_each_online_cpu(cpu) {
		WRITE_ONCE(option_sk(p, 0)->sk_incoming_cpu, cpu);
		KUNIT_EXPECT_EQ(test, option_work_cpu(test, p), cpu);
	}
	/* where there is no such CPU, the work is done all the same */
	WRITE_ONCE(option_sk(p, 0)->sk_incoming_cpu, nr_cpu_ids);
	KUNIT_EXPECT_GE(test, option_work_cpu(test, p), 0);
	ct_pair_close(p);
}

/* ------------------------------------------------------------------- ports */

#define OPTION_PORT	30100
#define OPTION_PORTS	3

static int option_port(const union kofi_ip *addr)
{
	return ntohs(addr->sa.sa_family == AF_INET6 ? addr->in6.sin6_port :
						      addr->in4.sin_port);
}

/* A new listener. Returns its port, or a negative error code. */
static int option_listen(struct ct_pair *p, struct fi_info *info,
			 struct fid_pep **pep)
{
	union kofi_ip addr = {};
	size_t len = sizeof(addr);
	int err;

	err = fi_passive_ep(p->fabric, info, pep, NULL);
	if (err)
		return err;
	err = fi_pep_bind(*pep, &p->side[1].eq->fid, 0);
	err = err ?: fi_listen(*pep);
	err = err ?: fi_getname(&(*pep)->fid, &addr, &len);
	if (!err)
		return option_port(&addr);
	fi_close(&(*pep)->fid);
	*pep = NULL;
	return err;
}

/* One listener more than the range has ports; then room for one of them. */
static void option_ports(struct kunit *test, struct ct_pair *p,
			 struct fi_info *info)
{
	unsigned int min = ksk_port_min, max = ksk_port_max;
	struct fid_pep *pep[OPTION_PORTS + 1] = {};
	int port[OPTION_PORTS + 1], i, seen = 0;

	ksk_port_min = OPTION_PORT;
	ksk_port_max = OPTION_PORT + OPTION_PORTS - 1;
	for (i = 0; i <= OPTION_PORTS; i++)
		port[i] = option_listen(p, info, &pep[i]);
	for (i = 0; i < OPTION_PORTS; i++)
		if (port[i] >= OPTION_PORT &&
		    port[i] < OPTION_PORT + OPTION_PORTS)
			seen |= BIT(port[i] - OPTION_PORT);
	KUNIT_EXPECT_EQ(test, seen, BIT(OPTION_PORTS) - 1);
	KUNIT_EXPECT_EQ(test, port[OPTION_PORTS], -EADDRINUSE);

	if (pep[1])
		KUNIT_EXPECT_EQ(test, fi_close(&pep[1]->fid), 0);
	pep[1] = NULL;
	KUNIT_EXPECT_EQ(test, option_listen(p, info, &pep[1]), port[1]);

	ksk_port_min = min;
	ksk_port_max = max;
	for (i = 0; i <= OPTION_PORTS; i++)
		if (pep[i])
			fi_close(&pep[i]->fid);
}

static struct fi_info *option_listen_info(struct kunit *test)
{
	struct fi_info *hints = ct_hints(), *info = NULL;

	KUNIT_ASSERT_NOT_NULL(test, hints);
	KUNIT_EXPECT_EQ(test, ct_getinfo(FI_SOURCE, hints, &info), 0);
	fi_freeinfo(hints);
	KUNIT_ASSERT_NOT_NULL(test, info);
	return info;
}

static void option_port_range(struct kunit *test)
{
	const struct ct_opts opts = { .unconnected = true };
	struct fi_info *info = option_listen_info(test);
	struct ct_pair *p = ct_pair_open(test, &opts);

	option_ports(test, p, info);
	fi_freeinfo(info);
	ct_pair_close(p);
}

/* The range holds for a listener without an address, too. */
static void option_port_any_address(struct kunit *test)
{
	const struct ct_opts opts = { .unconnected = true };
	struct fi_info *info = option_listen_info(test);
	struct ct_pair *p = ct_pair_open(test, &opts);

	kfree(info->src_addr);
	info->src_addr = NULL;
	info->src_addrlen = 0;
	option_ports(test, p, info);
	fi_freeinfo(info);
	ct_pair_close(p);
}

static struct kunit_case option_cases[] = {
	KUNIT_CASE_PARAM(option_in_range, option_range_gen_params),
	KUNIT_CASE_PARAM(option_late, option_range_gen_params),
	KUNIT_CASE(option_unknown),
	KUNIT_CASE(option_keepalive),
	KUNIT_CASE_PARAM(option_class_ipv4, option_class_gen_params),
	KUNIT_CASE_PARAM(option_class_ipv6, option_class_gen_params),
	KUNIT_CASE(option_class_domain),
	KUNIT_CASE(option_class_unknown),
	KUNIT_CASE_PARAM(option_reclaim_safe, ct_mode_gen_params),
	KUNIT_CASE(option_safe_queue),
	KUNIT_CASE(option_not_safe),
	KUNIT_CASE(option_safe_alone),
	KUNIT_CASE(option_waits_little),
	KUNIT_CASE(option_lost_probe),
	KUNIT_CASE(option_cpu_range),
	KUNIT_CASE(option_cpu_chosen),
	KUNIT_CASE(option_cpu_receive),
	KUNIT_CASE(option_cpu_follows),
	KUNIT_CASE(option_port_range),
	KUNIT_CASE(option_port_any_address),
	{}
};

static struct kunit_suite option_suite = {
	.name = "sock_option",
	.suite_init = lo_suite_init,
	.test_cases = option_cases,
};

kunit_test_suite(option_suite);

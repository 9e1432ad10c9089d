// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What is promised where a connection between two endpoints that do not connect ends
 * and another one is made, over each provider of such: messages of one endpoint may
 * be lost with the connection; none arrives twice, and none behind a later one.
 *
 * Messages are numbered by their bytes. In each case something of the earlier
 * connection has not been received when the next one is asked for.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/in.h>
#include <linux/kthread.h>
#include <linux/slab.h>
#include <kunit/static_stub.h>
#include <net/inet_hashtables.h>
#include <net/tcp.h>

#include <linux/kofi/provider.h>

#include "../../../providers/sock/rdm.h"
#include "../kunit.h"
#include "../param.h"
#include "pair.h"

#define ORD_MAX		4096	/* messages of a case */
#define ORD_SLOTS	(2 * ORD_MAX)
#define ORD_RECVS	16	/* receives at a time */
#define ORD_BEFORE	300	/* more than kofi_rxm stores of one peer */
#define ORD_STORED	48	/* that both do */
#define ORD_AFTER	24	/* messages that nothing disturbs */
#define ORD_TAG		7
#define ORD_ROUNDS	8
#define ORD_MANY	20000	/* addresses in one call */

/* Messages from one endpoint to another, which may be the same */
struct ord {
	struct kunit	*test;
	struct rdm_pair	*t;
	struct rdm_end	*from;
	struct rdm_end	*to;
	struct rdm_end	third;
	bool		tagged;
	fi_addr_t	src;	/* of receives */
	unsigned long	end;	/* in jiffies */
	unsigned int	posted;	/* transmits, and so the next number */
	unsigned int	ended;	/* of them */
	unsigned int	failed;
	unsigned int	second;	/* the first of another endpoint at the same address */
	unsigned int	next[2];	/* behind the last that has come of each of both */
	unsigned int	received;
	bool		receives;
	bool		posted_recv[ORD_RECVS];
	unsigned int	place[ORD_RECVS];	/* of a receive, in the order of posts */
	unsigned int	recvs;			/* posted so far */
	u16		by_place[ORD_SLOTS];	/* what it got, plus one */
	u8		done[ORD_MAX];
	u8		got[ORD_MAX];
	int		err[ORD_MAX];
};

static u64 *ord_out(struct ord *o)
{
	return (u64 *)o->t->out;
}

static u64 *ord_in(struct ord *o)
{
	return (u64 *)o->t->in;
}

static struct ord *ord_alloc(struct kunit *test, bool tagged, u64 caps)
{
	struct ord *o = kunit_kzalloc(test, sizeof(*o), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, o);
	static_assert(ORD_MAX * sizeof(u64) <= RDM_LONG);
	o->test = test;
	o->tagged = tagged;
	o->src = FI_ADDR_UNSPEC;
	o->second = ORD_MAX;
	o->end = jiffies + msecs_to_jiffies(RDM_TIMEOUT);
	o->t = rdm_pair_alloc(test, FI_MSG | FI_TAGGED | caps, RDM_KEYS);
	o->from = &o->t->from;
	o->to = &o->t->to;
	rdm_pair_end(o->t, o->from, 0, ORD_SLOTS, NULL);
	rdm_pair_end(o->t, o->to, 0, ORD_SLOTS, NULL);
	return o;
}

static struct ord *ord_open(struct kunit *test, bool tagged)
{
	struct ord *o = ord_alloc(test, tagged, 0);

	rdm_pair_enable(o->t);
	return o;
}

/* ------------------------------------------------------------- completions */

/* A message of the same endpoint that is known to have come next to it */
static unsigned int ord_neighbour(struct ord *o, unsigned int place, int step,
				  bool second)
{
	unsigned int got;

	for (place += step; place < o->recvs; place += step) {
		got = o->by_place[place];
		if (got && (got - 1 >= o->second) == second)
			return got;
	}
	return 0;
}

/* Receives get messages in order; which completion is seen first, no one promises. */
static void ord_received(struct ord *o, u64 n, unsigned int place)
{
	bool second = n >= o->second;
	unsigned int *next = &o->next[second], near;

	KUNIT_ASSERT_LT(o->test, n, o->posted);
	KUNIT_EXPECT_EQ_MSG(o->test, o->got[n], 0, "message %llu twice", n);
	o->by_place[place] = n + 1;
	near = ord_neighbour(o, place, -1, second);
	KUNIT_EXPECT_LT_MSG(o->test, near, n + 1, "overtaken by %u", near - 1);
	near = ord_neighbour(o, place, 1, second);
	if (near)
		KUNIT_EXPECT_GT_MSG(o->test, near, n + 1, "overtakes %u", near - 1);
	o->got[n]++;
	o->received++;
	*next = max_t(unsigned int, *next, n + 1);
}

static void ord_completed(struct ord *o, void *context, int err)
{
	u64 *at = context;
	size_t n;

	if (at >= ord_out(o) && at < ord_out(o) + ORD_MAX) {
		n = at - ord_out(o);
		KUNIT_EXPECT_EQ(o->test, o->done[n]++, 0);
		o->err[n] = err;
		o->failed += !!err;
		o->ended++;
		return;
	}
	n = at - ord_in(o);
	KUNIT_ASSERT_LT(o->test, n, ORD_RECVS);
	KUNIT_EXPECT_TRUE(o->test, o->posted_recv[n]);
	o->posted_recv[n] = false;
	if (!err)
		ord_received(o, *at, o->place[n]);
}

/* All completions of a queue there are */
static bool ord_read(struct ord *o, struct rdm_end *e)
{
	struct fi_cq_err_entry bad = {};
	struct fi_cq_tagged_entry entry;
	bool any = false;
	ssize_t n;

	while ((n = fi_cq_read(e->cq, &entry, 1)) != -EAGAIN) {
		any = true;
		if (n == -FI_EAVAIL) {
			KUNIT_ASSERT_EQ(o->test, fi_cq_readerr(e->cq, &bad, 0), 1);
			ord_completed(o, bad.op_context, bad.err);
		} else {
			KUNIT_ASSERT_EQ(o->test, n, 1);
			ord_completed(o, entry.op_context, 0);
		}
	}
	return any;
}

static void ord_post_recvs(struct ord *o)
{
	ssize_t ret;
	int i;

	for (i = 0; i < ORD_RECVS; i++) {
		u64 *at = ord_in(o) + i;

		if (o->posted_recv[i])
			continue;
		*at = U64_MAX;
		ret = o->tagged ?
		      fi_trecv(o->to->ep, at, sizeof(*at), NULL, o->src,
			       ORD_TAG, 0, at) :
		      fi_recv(o->to->ep, at, sizeof(*at), NULL, o->src, at);
		KUNIT_ASSERT_EQ(o->test, ret, 0);
		o->posted_recv[i] = true;
		KUNIT_ASSERT_LT(o->test, o->recvs, ORD_SLOTS);
		o->place[i] = o->recvs++;
	}
}

/* Take what has come, and wait if that is nothing. */
static void ord_go_on(struct ord *o)
{
	bool any = ord_read(o, o->from);

	if (o->to != o->from)
		any |= ord_read(o, o->to);
	if (o->receives)
		ord_post_recvs(o);
	KUNIT_ASSERT_TRUE_MSG(o->test, time_before(jiffies, o->end),
			      "%u posted, %u ended, %u failed, %u received",
			      o->posted, o->ended, o->failed, o->received);
	if (!any)
		schedule_timeout_uninterruptible(1);
}

/* --------------------------------------------------------------- transmits */

static ssize_t ord_post(struct ord *o, fi_addr_t peer, size_t len, u64 tag,
			u64 flags)
{
	u64 *at = ord_out(o) + o->posted;
	const struct kvec kv = { .iov_base = at, .iov_len = len };
	const struct fi_msg msg = {
		.msg_iov = &kv, .iov_count = 1, .addr = peer, .context = at,
	};
	const struct fi_msg_tagged tagged = {
		.msg_iov = &kv, .iov_count = 1, .addr = peer, .context = at,
		.tag = tag,
	};

	*at = o->posted;
	return o->tagged ? fi_tsendmsg(o->from->ep, &tagged, flags) :
			   fi_sendmsg(o->from->ep, &msg, flags);
}

static void ord_send_one(struct ord *o, fi_addr_t peer, size_t len, u64 tag,
			 u64 flags)
{
	ssize_t ret;

	KUNIT_ASSERT_LT(o->test, o->posted, ORD_MAX);
	while ((ret = ord_post(o, peer, len, tag, FI_COMPLETION | flags)) ==
	       -EAGAIN)
		ord_go_on(o);
	KUNIT_ASSERT_EQ(o->test, ret, 0);
	o->posted++;
}

static void ord_send(struct ord *o, unsigned int count)
{
	while (count--)
		ord_send_one(o, o->from->peer, sizeof(u64), ORD_TAG, 0);
}

/* Where that can be: what is sent next waits for one that is never received. */
static void ord_block(struct ord *o)
{
	if (!(o->t->info->caps & FI_FENCE))
		return;
	ord_send_one(o, o->from->peer, RDM_LONG - ORD_MAX * sizeof(u64),
		     ORD_TAG + 1, 0);
	ord_send_one(o, o->from->peer, sizeof(u64), ORD_TAG, FI_FENCE);
}

/* Every transmit so far has ended, whichever way. */
static void ord_ended(struct ord *o)
{
	while (o->ended < o->posted)
		ord_go_on(o);
}

/*
 * Send until something arrives that is sent from now on: what is sent before the end
 * of a connection is known may go with it. There is a number that can be sent at most.
 */
static void ord_until_received(struct ord *o)
{
	unsigned int first = o->posted, turn = 0;

	o->receives = true;
	while (o->next[first >= o->second] <= first) {
		if (!(turn++ % 8))
			ord_send(o, 1);
		ord_ended(o);
		ord_go_on(o);
	}
}

/* Nothing ends any more: what is sent now arrives, all of it. */
static void ord_undisturbed(struct ord *o)
{
	unsigned int first = o->posted, n;

	o->receives = true;
	ord_send(o, ORD_AFTER);
	ord_ended(o);
	for (n = first; n < o->posted; n++) {
		while (!o->got[n] && !o->err[n])
			ord_go_on(o);
		KUNIT_EXPECT_EQ_MSG(o->test, o->got[n], 1, "message %u", n);
		KUNIT_EXPECT_EQ(o->test, o->err[n], 0);
	}
}

static void ord_tell(struct ord *o)
{
	kunit_info(o->test, "%u sent, %u received\n", o->posted, o->received);
}

static struct sockaddr_in ord_name(struct ord *o, struct rdm_end *e)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);

	KUNIT_ASSERT_EQ(o->test, fi_getname(&e->ep->fid, &name, &len), 0);
	return name;
}

static fi_addr_t ord_insert(struct ord *o, struct rdm_end *e,
			    const struct sockaddr_in *name)
{
	fi_addr_t peer;

	KUNIT_ASSERT_EQ(o->test, fi_av_insert(e->av, name, 1, &peer, 0, NULL),
			1);
	return peer;
}

/* Another endpoint at the address of one that is closed, with all it has received */
static void ord_reopen(struct ord *o, struct rdm_end *e,
		       const struct sockaddr_in *peer)
{
	struct sockaddr_in name = ord_name(o, e);

	KUNIT_ASSERT_EQ(o->test, fi_close(&e->ep->fid), 0);
	e->ep = NULL;
	ord_read(o, e);
	rdm_close_end(o->test, e);
	rdm_pair_end(o->t, e, 0, ORD_SLOTS, NULL);
	KUNIT_ASSERT_EQ(o->test, fi_setname(&e->ep->fid, &name, sizeof(name)),
			0);
	KUNIT_ASSERT_EQ(o->test, fi_enable(e->ep), 0);
	e->peer = ord_insert(o, e, peer);
}

/* -------------------------------------------------------------------- cases */

/* The sender removes the address, and inserts it again. */
static void ord_remove_insert(struct ord *o)
{
	struct sockaddr_in name = ord_name(o, o->to);

	o->from->peer = ord_insert(o, o->from, &name);
	ord_send(o, ORD_BEFORE);
	/* the name is in the vector twice where the pair has inserted it */
	while (!fi_av_remove(o->from->av, &o->from->peer, 1, 0))
		;
	ord_ended(o);
	o->from->peer = ord_insert(o, o->from, &name);
	ord_undisturbed(o);
	ord_tell(o);
}

static void ord_removed(struct kunit *test)
{
	ord_remove_insert(ord_open(test, false));
}

/* The same with an endpoint that sends to itself */
static void ord_self(struct kunit *test)
{
	struct ord *o = ord_alloc(test, false, 0);

	KUNIT_ASSERT_EQ(test, fi_enable(o->from->ep), 0);
	o->to = o->from;
	ord_remove_insert(o);
}

static u64 ord_stored(struct rdm_end *e)
{
	struct kofi_ep *ep = container_of(e->ep, struct kofi_ep, ep);
	struct kofi_peer_state state = {};
	u32 number = 0;

	ep->ops->peer_next(e->ep, &number, &state);
	return state.rx_stored;
}

/* The receiver does; what it had stored stays with one provider. */
static void ord_forgotten(struct kunit *test)
{
	struct ord *o = ord_open(test, true);
	struct sockaddr_in name = ord_name(o, o->from);

	ord_send(o, ORD_BEFORE);
	while (ord_stored(o->to) < ORD_STORED)
		ord_go_on(o);
	KUNIT_ASSERT_EQ(test, fi_av_remove(o->to->av, &o->to->peer, 1, 0), 0);
	ord_send(o, ORD_AFTER);
	o->to->peer = ord_insert(o, o->to, &name);
	ord_until_received(o);
	KUNIT_EXPECT_EQ(test, o->got[0], !strcmp(test->param_value, "sock"));
	ord_undisturbed(o);
	ord_tell(o);
}

static void ord_sock_only(struct kunit *test)
{
	if (strcmp(test->param_value, "sock"))
		kunit_skip(test, "a matter of kofi_sock's own connections");
}

/* A thread that inserts the sender and many others, whom endpoints are told of at the end */
struct ord_many {
	struct fid_av		*av;
	struct sockaddr_in	*addr;
	fi_addr_t		*number;
	int			inserted;
	struct completion	end;
};

static int ord_many_insert(void *arg)
{
	struct ord_many *m = arg;

	m->inserted = fi_av_insert(m->av, m->addr, ORD_MANY, m->number, 0, NULL);
	kthread_complete_and_exit(&m->end, 0);
}

static struct ord_many *ord_many_alloc(struct ord *o)
{
	struct ord_many *m = kunit_kzalloc(o->test, sizeof(*m), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(o->test, m);
	m->addr = kunit_kcalloc(o->test, ORD_MANY, sizeof(*m->addr), GFP_KERNEL);
	m->number = kunit_kcalloc(o->test, ORD_MANY, sizeof(*m->number),
				  GFP_KERNEL);
	KUNIT_ASSERT_TRUE(o->test, m->addr && m->number);
	init_completion(&m->end);
	m->av = o->to->av;
	m->addr[0] = ord_name(o, o->from);
	for (i = 1; i < ORD_MANY; i++)
		m->addr[i] = (struct sockaddr_in) {
			.sin_family = AF_INET, .sin_port = htons(1),
			.sin_addr.s_addr = htonl(0x0a000000 + i),
		};
	return m;
}

/*
 * The sender is in the vector again, and its endpoint has not been told yet. A message
 * that comes then does not take a receive that one before the removal fits.
 */
static void ord_named_again(struct kunit *test)
{
	struct task_struct *task;
	struct sockaddr_in addr;
	struct ord_many *m;
	struct ord *o;
	size_t len = sizeof(addr);
	int err;

	ord_sock_only(test);
	o = ord_alloc(test, true, FI_SOURCE | FI_DIRECTED_RECV);
	rdm_pair_enable(o->t);
	m = ord_many_alloc(o);
	ord_send(o, ORD_STORED);
	while (ord_stored(o->to) < ORD_STORED)
		ord_go_on(o);
	KUNIT_ASSERT_EQ(test, fi_av_remove(o->to->av, &o->to->peer, 1, 0), 0);
	/* one waits in the stream of the next connection, as it is not known whose it is */
	while (rdm_fid_stat(&o->to->ep->fid, "accepted") < 2) {
		ord_send(o, 1);
		ord_ended(o);
		ord_go_on(o);
	}
	ord_send(o, 1);
	ord_ended(o);
	o->src = o->to->peer;
	task = kthread_run(ord_many_insert, m, "ord-many");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	do {
		cond_resched();
		err = fi_av_lookup(o->to->av, o->src, &addr, &len);
	} while (err && !completion_done(&m->end));
	ord_post_recvs(o);
	ord_send(o, 1);
	wait_for_completion(&m->end);
	KUNIT_EXPECT_EQ(test, m->inserted, ORD_MANY);
	KUNIT_ASSERT_EQ(test, m->number[0], o->src);
	ord_undisturbed(o);
	KUNIT_EXPECT_EQ(test, o->got[0], 1);
	ord_tell(o);
}

struct ord_cut {
	struct ord		*o;
	struct completion	begin;
	struct completion	end;
	bool			removing;
	bool			read;
	int			dead;
};

/* Called with the connection's socket locked, while a message is read */
static fi_addr_t ord_cut_source(struct ksk_conn *c)
{
	struct ord_cut *cut = kunit_get_current_test()->priv;
	int ms;

	if (cut->read)
		return FI_ADDR_NOTAVAIL;
	cut->read = true;
	complete(&cut->begin);
	for (ms = 0; ms < TEST_LIMIT(1000) && !READ_ONCE(cut->removing); ms++)
		mdelay(1);
	/* as long as it takes, if nothing keeps it */
	for (ms = 0; ms < 50 && !READ_ONCE(c->dead); ms++)
		mdelay(1);
	cut->dead = READ_ONCE(c->dead);
	return FI_ADDR_NOTAVAIL;
}

static int ord_cut_remove(void *arg)
{
	struct ord_cut *cut = arg;
	struct rdm_end *to = cut->o->to;

	wait_for_completion(&cut->begin);
	WRITE_ONCE(cut->removing, true);
	fi_av_remove(to->av, &to->peer, 1, 0);
	kthread_complete_and_exit(&cut->end, 0);
}

/* The receiver's removal does not end a connection in the middle of its reading. */
static void ord_read_on(struct kunit *test)
{
	struct ord_cut *cut = kunit_kzalloc(test, sizeof(*cut), GFP_KERNEL);
	struct task_struct *task;
	struct sockaddr_in name;

	ord_sock_only(test);
	if (num_online_cpus() < 2)
		kunit_skip(test, "there is one CPU");
	KUNIT_ASSERT_NOT_NULL(test, cut);
	cut->o = ord_open(test, true);
	name = ord_name(cut->o, cut->o->from);
	init_completion(&cut->begin);
	init_completion(&cut->end);
	ord_until_received(cut->o);
	task = kthread_run(ord_cut_remove, cut, "ord-remove");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	test->priv = cut;
	kunit_activate_static_stub(test, ksk_rdm_source, ord_cut_source);
	/* it is read by who sends it, or by another thread */
	while (!cut->read) {
		ord_send(cut->o, 1);
		ord_go_on(cut->o);
	}
	wait_for_completion(&cut->end);
	kunit_deactivate_static_stub(test, ksk_rdm_source);
	KUNIT_EXPECT_TRUE(test, cut->removing);
	KUNIT_EXPECT_EQ(test, cut->dead, 0);
	cut->o->to->peer = ord_insert(cut->o, cut->o->to, &name);
	ord_until_received(cut->o);
	ord_undisturbed(cut->o);
}

/* An end of the connection: the accepted one has the receiver's port. */
static struct sock *ord_socket(struct ord *o, bool accepted)
{
	struct inet_hashinfo *h = init_net.ipv4.tcp_death_row.hashinfo;
	__be16 port = ord_name(o, o->to).sin_port;
	struct hlist_nulls_node *node;
	struct sock *sk, *found = NULL;
	unsigned int i;

	rcu_read_lock();
	for (i = 0; i <= h->ehash_mask && !found; i++)
		sk_nulls_for_each_rcu(sk, node, &h->ehash[i].chain) {
			if (READ_ONCE(sk->sk_state) != TCP_ESTABLISHED ||
			    port != (accepted ? inet_sk(sk)->inet_sport :
						inet_sk(sk)->inet_dport) ||
			    !refcount_inc_not_zero(&sk->sk_refcnt))
				continue;
			found = sk;
			break;
		}
	rcu_read_unlock();
	KUNIT_ASSERT_NOT_NULL(o->test, found);
	return found;
}

/* A thread that keeps a connection from ending, also when it has failed */
struct ord_hold {
	int			err;
	struct sock		*sk;
	struct completion	begin;
	struct completion	go;
	struct completion	end;
};

static int ord_hold(void *arg)
{
	struct ord_hold *h = arg;

	lock_sock(h->sk);
	if (h->err) {
		WRITE_ONCE(h->sk->sk_err, h->err);
		sk_error_report(h->sk);
	}
	complete(&h->begin);
	wait_for_completion(&h->go);
	release_sock(h->sk);
	sock_put(h->sk);
	kthread_complete_and_exit(&h->end, 0);
}

static void ord_posted(struct kunit *test, int err)
{
	struct ord_hold *h = kunit_kzalloc(test, sizeof(*h), GFP_KERNEL);
	struct task_struct *task;
	struct sockaddr_in name;
	struct ord *o;

	ord_sock_only(test);
	KUNIT_ASSERT_NOT_NULL(test, h);
	o = ord_open(test, true);
	ord_until_received(o);
	name = ord_name(o, o->to);
	h->err = err;
	init_completion(&h->begin);
	init_completion(&h->go);
	init_completion(&h->end);
	h->sk = ord_socket(o, false);
	task = kthread_run(ord_hold, h, "ord-hold");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	wait_for_completion(&h->begin);
	KUNIT_EXPECT_EQ(test, fi_av_remove(o->from->av, &o->from->peer, 1, 0),
			0);
	KUNIT_EXPECT_EQ(test, fi_av_insert(o->from->av, &name, 1,
					   &o->from->peer, 0, NULL), 1);
	KUNIT_EXPECT_EQ(test, ord_post(o, o->from->peer, sizeof(u64), ORD_TAG,
				       FI_COMPLETION), 0);
	complete(&h->go);
	wait_for_completion(&h->end);
	o->posted++;
	ord_ended(o);
	KUNIT_EXPECT_EQ(test, o->err[o->posted - 1], 0);
	ord_undisturbed(o);
}

/* What is posted when the address is there again does not end with what was before, */
static void ord_posted_again(struct kunit *test)
{
	ord_posted(test, 0);
}

/* be that the removal, or an error that came before it. */
static void ord_posted_after_error(struct kunit *test)
{
	ord_posted(test, EHOSTUNREACH);
}

static void ord_reset(struct ord *o)
{
	struct sock *sk = ord_socket(o, true);

	tcp_abort(sk, ECONNRESET);
	sock_put(sk);
}

/* The connection is reset. */
static void ord_lost(struct kunit *test)
{
	struct ord *o;
	int round;

	if (strncmp(test->param_value, "sock", 4))
		kunit_skip(test, "TCP's connections alone can be reset");
	o = ord_open(test, true);
	for (round = 0; round < ORD_ROUNDS; round++) {
		/* now more, now fewer of them are stored or on their way */
		o->receives = round & 1;
		ord_send(o, 20 * (round + 1));
		if (round & 2)
			ord_ended(o);
		ord_until_received(o);
		o->receives = round & 4;
		if (round & 1)
			ord_block(o);
		ord_send(o, 10);
		ord_reset(o);
		ord_send(o, 10);
		ord_until_received(o);
	}
	ord_undisturbed(o);
	ord_tell(o);
}

/* It is while none uses it: both ends hear of it, once, and the next message makes another. */
static void ord_lost_idle(struct kunit *test)
{
	struct fi_eq_entry entry;
	struct ord *o;
	u32 event;

	if (strncmp(test->param_value, "sock", 4))
		kunit_skip(test, "TCP's connections alone can be reset");
	o = ord_open(test, true);
	ord_until_received(o);
	ord_reset(o);
	KUNIT_EXPECT_EQ(test, rdm_lost(o->t, o->from), ECONNRESET);
	KUNIT_EXPECT_EQ(test, rdm_lost(o->t, o->to), ECONNRESET);
	ord_undisturbed(o);
	KUNIT_EXPECT_EQ(test, fi_eq_read(o->from->eq, &event, &entry,
					 sizeof(entry), 0), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fi_eq_read(o->to->eq, &event, &entry,
					 sizeof(entry), 0), -EAGAIN);
}

/* The sender is closed, and another is opened there: what had been stored is received. */
static void ord_reopened(struct kunit *test)
{
	struct ord *o = ord_open(test, true);
	struct sockaddr_in to = ord_name(o, o->to);

	ord_send(o, ORD_STORED);
	while (ord_stored(o->to) < ORD_STORED)
		ord_go_on(o);
	ord_ended(o);
	ord_reopen(o, o->from, &to);
	o->second = o->posted;
	ord_until_received(o);
	while (o->next[0] < ORD_STORED)
		ord_go_on(o);
	KUNIT_EXPECT_EQ(test, o->next[0], ORD_STORED);
	KUNIT_EXPECT_EQ(test, o->got[0], 1);
	/* and what had not been may be lost */
	o->receives = false;
	ord_send(o, ORD_BEFORE);
	ord_reopen(o, o->from, &to);
	o->next[0] = o->next[1];
	o->next[1] = 0;
	o->second = o->posted;
	ord_until_received(o);
	ord_undisturbed(o);
	ord_tell(o);
}

/* The receiver is: what was sent to the one does not arrive twice at the other. */
static void ord_peer_reopened(struct kunit *test)
{
	struct ord *o = ord_open(test, true);
	struct sockaddr_in from = ord_name(o, o->from);
	int round;

	for (round = 0; round < ORD_ROUNDS; round++) {
		ord_until_received(o);
		ord_send(o, 40);
		ord_go_on(o);
		o->receives = round & 1;
		ord_send(o, 10);
		ord_reopen(o, o->to, &from);
	}
	ord_until_received(o);
	ord_undisturbed(o);
	ord_tell(o);
}

/* ------------------------------------------------------------------ limits */

static void ord_limit(struct kunit *test, unsigned int timeout, unsigned int max)
{
	test_param_set(test, &ksk_rdm_idle_timeout, timeout);
	test_param_set(test, &ksk_rdm_max_conns, max);
}

/* Nothing is lost with a connection that is closed for not being used. */
static void ord_all(struct ord *o)
{
	unsigned int n;

	while (o->received + o->failed < o->posted)
		ord_go_on(o);
	ord_ended(o);
	for (n = 0; n < o->posted; n++) {
		KUNIT_EXPECT_EQ_MSG(o->test, o->got[n], 1, "message %u", n);
		KUNIT_EXPECT_EQ(o->test, o->err[n], 0);
	}
	ord_tell(o);
}

static void ord_idle(struct kunit *test)
{
	struct ord *o;
	int round;

	ord_sock_only(test);
	ord_limit(test, 1, 0);
	o = ord_open(test, true);
	for (round = 0; round < 8 * ORD_ROUNDS; round++) {
		o->receives = round & 1;
		ord_send(o, 8);
		ord_ended(o);
		/* more than is stored keeps the next round's from being sent */
		while (o->receives && o->received + o->failed < o->posted)
			ord_go_on(o);
		/* not to wait for anything: to hit each moment of the close */
		usleep_range(100 * round, 100 * round + 50);
	}
	KUNIT_EXPECT_GT(test, rdm_fid_stat(&o->from->ep->fid, "idle_closed") +
			rdm_fid_stat(&o->to->ep->fid, "idle_closed"), 0);
	o->receives = true;
	ord_all(o);
}

/* A post to a connection whose end, which the peer has begun, is being dealt with */
static void ord_ending(struct kunit *test)
{
	struct ksk_conn *c;
	struct sock *sk;
	struct ord *o;

	ord_sock_only(test);
	o = ord_open(test, true);
	ord_until_received(o);
	sk = ord_socket(o, false);
	lock_sock(sk);
	c = sk->sk_user_data;
	ksk_conn_abort(c, ESHUTDOWN);
	/* as the work item does first, which waits for the socket's lock */
	c->ops->hand_over(c);
	KUNIT_EXPECT_EQ(test, ord_post(o, o->from->peer, sizeof(u64), ORD_TAG,
				       FI_COMPLETION), 0);
	KUNIT_EXPECT_EQ(test, c->posts.n, 0);
	release_sock(sk);
	sock_put(sk);
	o->posted++;
	ord_all(o);
}

static void ord_third_close(void *arg)
{
	struct ord *o = arg;

	rdm_close_end(o->test, &o->third);
}

static fi_addr_t ord_third_open(struct ord *o)
{
	struct sockaddr_in name;

	KUNIT_ASSERT_EQ(o->test, kunit_add_action(o->test, ord_third_close, o),
			0);
	rdm_pair_end(o->t, &o->third, 0, 0, NULL);
	KUNIT_ASSERT_EQ(o->test, fi_enable(o->third.ep), 0);
	name = ord_name(o, &o->third);
	return ord_insert(o, o->from, &name);
}

/* A message that the third endpoint receives */
static void ord_third_send(struct ord *o, fi_addr_t peer)
{
	u64 *at = ord_in(o) + ORD_RECVS;
	struct fi_cq_tagged_entry entry;

	o->got[o->posted]++;
	o->received++;
	ord_send_one(o, peer, sizeof(u64), ORD_TAG, 0);
	KUNIT_ASSERT_EQ(o->test, fi_trecv(o->third.ep, at, sizeof(*at), NULL,
					  FI_ADDR_UNSPEC, ORD_TAG, 0, at), 0);
	KUNIT_ASSERT_EQ(o->test, rdm_comp(&o->third, &entry), 0);
	KUNIT_EXPECT_EQ(o->test, *at, o->posted - 1);
}

/* Two peers in turn, whose connections are one too many */
static void ord_number(struct kunit *test)
{
	struct ord *o;
	fi_addr_t peer;
	int round;
	u64 closed;

	ord_sock_only(test);
	ord_limit(test, 0, 1);
	o = ord_open(test, true);
	ord_limit(test, 0, 0);
	peer = ord_third_open(o);
	for (round = 0; round < ORD_ROUNDS; round++) {
		closed = rdm_fid_stat(&o->from->ep->fid, "idle_closed");
		o->receives = round & 1;
		ord_send(o, ORD_AFTER);
		ord_ended(o);
		ord_third_send(o, peer);
		/* more than is stored is not closed, nor is what comes behind it sent */
		while (rdm_fid_stat(&o->from->ep->fid, "idle_closed") == closed ||
		       (o->receives && o->received + o->failed < o->posted))
			ord_go_on(o);
	}
	o->receives = true;
	ord_all(o);
}

static struct kunit_case ord_cases[] = {
	KUNIT_CASE_PARAM(ord_removed, rdm_place_gen_params),
	KUNIT_CASE_PARAM(ord_self, rdm_place_gen_params),
	KUNIT_CASE_PARAM(ord_forgotten, rdm_place_gen_params),
	KUNIT_CASE_PARAM(ord_named_again, rdm_place_gen_params),
	KUNIT_CASE_PARAM(ord_read_on, rdm_place_gen_params),
	KUNIT_CASE_PARAM(ord_posted_again, rdm_place_gen_params),
	KUNIT_CASE_PARAM(ord_posted_after_error, rdm_place_gen_params),
	KUNIT_CASE_PARAM(ord_lost, rdm_place_gen_params),
	KUNIT_CASE_PARAM(ord_lost_idle, rdm_place_gen_params),
	KUNIT_CASE_PARAM(ord_reopened, rdm_place_gen_params),
	KUNIT_CASE_PARAM(ord_peer_reopened, rdm_place_gen_params),
	KUNIT_CASE_PARAM(ord_idle, rdm_place_gen_params),
	KUNIT_CASE_PARAM(ord_ending, rdm_place_gen_params),
	KUNIT_CASE_PARAM(ord_number, rdm_place_gen_params),
	{}
};

static struct kunit_suite ord_suite = {
	.name = "rdm_order",
	.suite_init = lo_suite_init,
	.test_cases = ord_cases,
};

kunit_test_suite(ord_suite);

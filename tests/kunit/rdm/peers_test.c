// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Peers of an endpoint, over each provider of endpoints that do not connect: what "kofi
 * stat" tells of them, and what ends transmits to those that cannot be reached.
 */
#include <linux/in.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/net.h>
#include <net/net_namespace.h>

#include <linux/kofi/provider.h>

#include "../kunit.h"
#include "pair.h"

#define PEERS_LEN	64
#define PEERS_STORED	3	/* messages without a receive */
#define PEERS_WAITING	5	/* transmits to a peer that does not answer */

static char *peers_no_way;
module_param_named(unreachable, peers_no_way, charp, 0444);
MODULE_PARM_DESC(unreachable, "Address with a route that says it is unreachable (default: none)");

static struct rdm_pair *peers_alloc(struct kunit *test)
{
	struct rdm_pair *t = rdm_pair_alloc(test, FI_MSG | FI_TAGGED, RDM_KEYS);

	rdm_pair_end(t, &t->from, 0, 0, NULL);
	rdm_pair_end(t, &t->to, 0, 0, NULL);
	rdm_pair_enable(t);
	return t;
}

/* The one at or behind a number; false behind the last */
static bool peers_next(const struct rdm_end *e, u32 *number,
		       struct kofi_peer_state *state)
{
	struct kofi_ep *ep = container_of(e->ep, struct kofi_ep, ep);

	return ep->ops->peer_next(e->ep, number, state);
}

/* The only one */
static struct kofi_peer_state peers_only(struct rdm_pair *t,
					 const struct rdm_end *e)
{
	struct kofi_peer_state state = {}, more;
	u32 number = 0;

	KUNIT_ASSERT_TRUE(t->test, peers_next(e, &number, &state));
	number++;
	KUNIT_EXPECT_FALSE(t->test, peers_next(e, &number, &more));
	return state;
}

static bool peers_none(const struct rdm_end *e)
{
	struct kofi_peer_state state;
	u32 number = 0;

	return !peers_next(e, &number, &state);
}

static bool peers_wait(unsigned long end)
{
	schedule_timeout_uninterruptible(1);
	return time_before(jiffies, end);
}

static unsigned long peers_limit(void)
{
	return jiffies + msecs_to_jiffies(RDM_TIMEOUT);
}

/* What is posted ends, whichever way: 0 or its error */
static int peers_send(struct rdm_pair *t, u64 tag)
{
	struct fi_cq_tagged_entry entry;

	KUNIT_ASSERT_EQ(t->test, fi_tsend(t->from.ep, t->out, PEERS_LEN, NULL,
					  t->from.peer, tag, t->out), 0);
	return rdm_comp(&t->from, &entry);
}

static void peers_receive(struct rdm_pair *t, u64 tag)
{
	struct fi_cq_tagged_entry entry;

	KUNIT_ASSERT_EQ(t->test, fi_trecv(t->to.ep, t->in, PEERS_LEN, NULL,
					  FI_ADDR_UNSPEC, tag, 0, t->in), 0);
	KUNIT_ASSERT_EQ(t->test, rdm_comp(&t->to, &entry), 0);
}

static void peers_is_at(struct rdm_pair *t, const struct kofi_peer_state *state,
			const struct rdm_end *e)
{
	const struct sockaddr_in *at = (const void *)&state->addr;
	struct sockaddr_in name;
	size_t len = sizeof(name);

	KUNIT_ASSERT_EQ(t->test, fi_getname(&e->ep->fid, &name, &len), 0);
	KUNIT_EXPECT_EQ(t->test, at->sin_family, AF_INET);
	KUNIT_EXPECT_EQ(t->test, ntohl(at->sin_addr.s_addr), ntohl(name.sin_addr.s_addr));
	KUNIT_EXPECT_EQ(t->test, ntohs(at->sin_port), ntohs(name.sin_port));
}

/* Memory of all its messages without a receive */
static u64 peers_bytes(const struct rdm_end *e)
{
	return rdm_fid_stat(&e->ep->fid, "rx_unexpected_bytes");
}

/* -------------------------------------------------------------------- cases */

/* Messages without a receive are told of with their memory, until they have one. */
static void peers_stored(struct kunit *test)
{
	struct rdm_pair *t = peers_alloc(test);
	unsigned long end = peers_limit();
	struct kofi_peer_state state;
	int i;

	KUNIT_EXPECT_TRUE(test, peers_none(&t->from));
	KUNIT_EXPECT_TRUE(test, peers_none(&t->to));
	for (i = 0; i < PEERS_STORED; i++)
		KUNIT_ASSERT_EQ(test, peers_send(t, i), 0);
	/* over a device, messages may overtake what says that it is established */
	do {
		if (!peers_none(&t->to))
			state = peers_only(t, &t->to);
		else
			state = (struct kofi_peer_state) {};
	} while ((state.rx_stored < PEERS_STORED ||
		  state.state != KOFI_EP_CONNECTED) && peers_wait(end));
	KUNIT_EXPECT_EQ(test, state.rx_stored, PEERS_STORED);
	KUNIT_EXPECT_GE(test, state.rx_stored_bytes, PEERS_STORED * PEERS_LEN);
	KUNIT_EXPECT_EQ(test, state.rx_stored_bytes, peers_bytes(&t->to));
	KUNIT_EXPECT_EQ(test, state.state, KOFI_EP_CONNECTED);
	KUNIT_EXPECT_EQ(test, state.reconnects, 0);
	KUNIT_EXPECT_EQ(test, state.tx_waiting, 0);
	peers_is_at(t, &state, &t->from);

	state = peers_only(t, &t->from);
	KUNIT_EXPECT_EQ(test, state.state, KOFI_EP_CONNECTED);
	KUNIT_EXPECT_EQ(test, state.tx_waiting, 0);
	KUNIT_EXPECT_EQ(test, state.rx_stored, 0);
	KUNIT_EXPECT_EQ(test, state.rx_stored_bytes, 0);
	peers_is_at(t, &state, &t->to);

	for (i = PEERS_STORED; i--;) {
		peers_receive(t, i);
		/* it goes when it has been received */
		end = peers_limit();
		do {
			state = peers_only(t, &t->to);
		} while (state.rx_stored > i && peers_wait(end));
		KUNIT_EXPECT_EQ(test, state.rx_stored, i);
	}
	KUNIT_EXPECT_EQ(test, state.rx_stored_bytes, 0);
	KUNIT_EXPECT_EQ(test, peers_bytes(&t->to), 0);
}

/* One that was opened again at the same address has been connected to again. */
static void peers_reconnects(struct kunit *test)
{
	struct rdm_pair *t = peers_alloc(test);
	struct kofi_peer_state state;
	unsigned long end = peers_limit();
	struct sockaddr_in name, from;
	size_t len = sizeof(name);
	int i, err;

	KUNIT_ASSERT_EQ(test, fi_getname(&t->to.ep->fid, &name, &len), 0);
	KUNIT_ASSERT_EQ(test, fi_getname(&t->from.ep->fid, &from, &len), 0);
	KUNIT_ASSERT_EQ(test, peers_send(t, 0), 0);
	KUNIT_EXPECT_EQ(test, peers_only(t, &t->from).reconnects, 0);
	for (i = 1; i <= 2; i++) {
		rdm_close_end(test, &t->to);
		rdm_pair_end(t, &t->to, 0, 0, NULL);
		KUNIT_ASSERT_EQ(test, fi_setname(&t->to.ep->fid, &name, len), 0);
		KUNIT_ASSERT_EQ(test, fi_enable(t->to.ep), 0);
		KUNIT_ASSERT_EQ(test, fi_av_insert(t->to.av, &from, 1,
						   &t->to.peer, 0, NULL), 1);
		/* what was sent before it was known that the old one had gone */
		do {
			err = peers_send(t, i);
		} while (err && peers_wait(end));
		KUNIT_ASSERT_EQ(test, err, 0);
		peers_receive(t, i);
		state = peers_only(t, &t->from);
		KUNIT_EXPECT_EQ(test, state.state, KOFI_EP_CONNECTED);
		KUNIT_EXPECT_EQ(test, state.reconnects, i);
		peers_is_at(t, &state, &t->to);
		/* to this one it is the first */
		KUNIT_EXPECT_EQ(test, peers_only(t, &t->to).reconnects, 0);
	}
	/* who removes an address forgets */
	KUNIT_ASSERT_EQ(test, fi_av_remove(t->from.av, &t->from.peer, 1, 0), 0);
	while (!peers_none(&t->from) && peers_wait(end))
		;
	KUNIT_EXPECT_TRUE(test, peers_none(&t->from));
	KUNIT_ASSERT_EQ(test, fi_av_insert(t->from.av, &name, 1, &t->from.peer,
					   0, NULL), 1);
	while ((err = peers_send(t, 3)) && peers_wait(end))
		;
	KUNIT_ASSERT_EQ(test, err, 0);
	KUNIT_EXPECT_EQ(test, peers_only(t, &t->from).reconnects, 0);
}

static void peers_release(void *sock)
{
	sock_release(sock);
}

/* A socket that takes connections, and says nothing */
static struct sockaddr_in peers_silent(struct kunit *test)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct socket *sock;

	at.sin_addr.s_addr = in_aton(rdm_place_address());
	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, AF_INET, SOCK_STREAM,
					       IPPROTO_TCP, &sock), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, peers_release,
							sock), 0);
	KUNIT_ASSERT_EQ(test, kernel_bind(sock, (void *)&at, sizeof(at)), 0);
	KUNIT_ASSERT_EQ(test, kernel_listen(sock, 4), 0);
	KUNIT_ASSERT_EQ(test, kernel_getsockname(sock, (void *)&at),
			(int)sizeof(at));
	return at;
}

/* What waits for a connection is told of; another peer comes in order, and stays. */
static void peers_waiting(struct kunit *test)
{
	struct rdm_pair *t;
	struct kofi_peer_state state;
	struct sockaddr_in silent;
	struct fi_cq_tagged_entry entry;
	unsigned long end = peers_limit();
	fi_addr_t peer;
	u32 number = 0;
	int i;

	if (strncmp(test->param_value, "sock", 4))
		kunit_skip(test, "a device's listener always answers");
	silent = peers_silent(test);
	t = peers_alloc(test);
	KUNIT_ASSERT_EQ(test, fi_av_insert(t->from.av, &silent, 1, &peer, 0,
					   NULL), 1);
	for (i = 0; i < PEERS_WAITING; i++)
		KUNIT_ASSERT_EQ(test, fi_tsend(t->from.ep, t->out, PEERS_LEN,
					       NULL, peer, i, t->out), 0);
	while (peers_none(&t->from) && peers_wait(end))
		;
	state = peers_only(t, &t->from);
	KUNIT_EXPECT_EQ(test, state.state, KOFI_EP_CONNECTING);
	KUNIT_EXPECT_EQ(test, state.tx_waiting, PEERS_WAITING);
	KUNIT_EXPECT_EQ(test, ntohs(((struct sockaddr_in *)&state.addr)->sin_port),
			ntohs(silent.sin_port));

	KUNIT_ASSERT_EQ(test, peers_send(t, 0), 0);
	KUNIT_ASSERT_TRUE(test, peers_next(&t->from, &number, &state));
	KUNIT_EXPECT_EQ(test, state.tx_waiting, PEERS_WAITING);
	number++;
	KUNIT_ASSERT_TRUE(test, peers_next(&t->from, &number, &state));
	KUNIT_EXPECT_EQ(test, state.tx_waiting, 0);
	peers_is_at(t, &state, &t->to);

	KUNIT_ASSERT_EQ(test, fi_av_remove(t->from.av, &peer, 1, 0), 0);
	for (i = 0; i < PEERS_WAITING; i++)
		KUNIT_EXPECT_EQ(test, rdm_comp(&t->from, &entry), ECANCELED);
	/* the number of the one that stays is the same */
	KUNIT_ASSERT_TRUE(test, peers_next(&t->from, &number, &state));
	peers_is_at(t, &state, &t->to);
	end = peers_limit();
	for (number = 0; peers_next(&t->from, &number, &state) &&
	     state.state != KOFI_EP_CONNECTED && peers_wait(end); number = 0)
		;
	state = peers_only(t, &t->from);
	peers_is_at(t, &state, &t->to);
}

/* A number that is given again is another peer's, whatever was posted to it before. */
static void peers_number(struct kunit *test)
{
	struct rdm_pair *t;
	struct sockaddr_in name, silent;
	struct fi_cq_tagged_entry entry;
	unsigned long end = peers_limit();
	size_t len = sizeof(name);
	fi_addr_t peer;
	int i, err;

	silent = peers_silent(test);
	t = peers_alloc(test);
	KUNIT_ASSERT_EQ(test, fi_getname(&t->to.ep->fid, &name, &len), 0);
	for (i = 0; i < PEERS_STORED; i++) {
		KUNIT_ASSERT_EQ(test, peers_send(t, i), 0);
		peers_receive(t, i);
	}
	/* a change that is not of this peer */
	KUNIT_ASSERT_EQ(test, fi_av_insert(t->from.av, &silent, 1, &peer, 0,
					   NULL), 1);
	KUNIT_EXPECT_NE(test, peer, t->from.peer);
	KUNIT_ASSERT_EQ(test, fi_av_remove(t->from.av, &peer, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_tsend(t->from.ep, t->out, PEERS_LEN, NULL, peer,
				       0, t->out), -EINVAL);
	for (i = 0; i < PEERS_STORED; i++) {
		KUNIT_ASSERT_EQ(test, peers_send(t, i), 0);
		peers_receive(t, i);
	}

	KUNIT_ASSERT_EQ(test, fi_av_remove(t->from.av, &t->from.peer, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_tsend(t->from.ep, t->out, PEERS_LEN, NULL,
				       t->from.peer, 0, t->out), -EINVAL);
	KUNIT_ASSERT_EQ(test, fi_av_insert(t->from.av, &silent, 1, &peer, 0,
					   NULL), 1);
	KUNIT_ASSERT_EQ(test, peer, t->from.peer);
	KUNIT_ASSERT_EQ(test, fi_tsend(t->from.ep, t->out, PEERS_LEN, NULL, peer,
				       0, t->out), 0);
	KUNIT_ASSERT_EQ(test, fi_av_remove(t->from.av, &peer, 1, 0), 0);
	KUNIT_EXPECT_NE(test, rdm_comp(&t->from, &entry), 0);

	KUNIT_ASSERT_EQ(test, fi_av_insert(t->from.av, &name, 1, &peer, 0, NULL),
			1);
	KUNIT_ASSERT_EQ(test, peer, t->from.peer);
	while ((err = peers_send(t, PEERS_STORED)) && peers_wait(end))
		;
	KUNIT_ASSERT_EQ(test, err, 0);
	peers_receive(t, PEERS_STORED);
}

/* What is posted to there ends with that error, each time. */
static void peers_ends(struct rdm_pair *t, const char *host, u16 port, int err)
{
	const struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = in_aton(host),
	};
	struct fi_cq_tagged_entry entry;
	fi_addr_t peer;
	int round, i;

	KUNIT_ASSERT_EQ(t->test, fi_av_insert(t->from.av, &at, 1, &peer, 0,
					      NULL), 1);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < PEERS_WAITING; i++)
			KUNIT_ASSERT_EQ(t->test,
					fi_tsend(t->from.ep, t->out, PEERS_LEN,
						 NULL, peer, i, t->out), 0);
		for (i = 0; i < PEERS_WAITING; i++)
			KUNIT_EXPECT_EQ(t->test, rdm_comp(&t->from, &entry),
					err);
	}
}

/* None listens there: the reason is told, and others are reached. */
static void peers_refused(struct kunit *test)
{
	struct rdm_pair *t = peers_alloc(test);

	peers_ends(t, rdm_place_address(), 1, ECONNREFUSED);
	KUNIT_EXPECT_EQ(test, peers_send(t, 0), 0);
	peers_receive(t, 0);
}

/* No way leads there: the same, but that RoCE's addresses only time out */
static void peers_unreachable(struct kunit *test)
{
	bool roce = !strcmp(rdm_place_device(), "rxe");
	struct rdm_pair *t;

	if (!peers_no_way)
		kunit_skip(test, "the parameter unreachable names no address");
	t = peers_alloc(test);
	peers_ends(t, peers_no_way, 9, roce ? ETIMEDOUT : EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, peers_send(t, 0), 0);
	peers_receive(t, 0);
}

static struct kunit_case peers_cases[] = {
	KUNIT_CASE_PARAM(peers_stored, rdm_place_gen_params),
	KUNIT_CASE_PARAM(peers_reconnects, rdm_place_gen_params),
	KUNIT_CASE_PARAM(peers_waiting, rdm_place_gen_params),
	KUNIT_CASE_PARAM(peers_number, rdm_place_gen_params),
	KUNIT_CASE_PARAM(peers_refused, rdm_place_gen_params),
	KUNIT_CASE_PARAM(peers_unreachable, rdm_place_gen_params),
	{}
};

static struct kunit_suite peers_suite = {
	.name = "rdm_peers",
	.suite_init = lo_suite_init,
	.test_cases = peers_cases,
};

kunit_test_suite(peers_suite);

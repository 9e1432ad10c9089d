// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One endpoint and thousands of peers: a listener at all addresses of the loopback
 * device accepts each of them as a peer of its own, and keeps what it is sent. What a
 * peer costs in memory, and a post in time, is said in the log.
 */
#include <linux/bitmap.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/sort.h>
#include <net/genetlink.h>
#include <net/tcp.h>

#include <uapi/linux/kofi.h>

#include "../../../kofi/netlink-gen.h"
#include "rdm.h"

#define PEERS_FEW	16	/* posts are timed to so many: alone, then among all */
/*
 * To each of them, beside one. The peers' sockets keep what they get, and acknowledge
 * the first sixteen at once: what waits, or takes no acknowledgment, takes less time.
 */
#define PEERS_POSTS	8
#define PEERS_SIZE	64	/* bytes of a message */
#define PEERS_FIRST	0x7f010000U	/* address */
#define PEERS_FLAT	4	/* times as long a post may take among all */
#define PEERS_IDLE	SZ_1K	/* most bytes of a peer that was never talked to */
#define PEERS_CONNECTED	SZ_128K	/* and of one with a connection, both ends' sockets */

static unsigned int peers_count = 1000;
module_param_named(peers, peers_count, uint, 0444);
MODULE_PARM_DESC(peers, "peers of one endpoint");

struct peer {
	struct socket		*sock;
	fi_addr_t		addr;
};

struct peers {
	struct rdm_node		*node;
	struct socket		*listener;
	struct sockaddr_in	addr;
	struct task_struct	*task;
	struct completion	done;
	int			accepted;
	int			err;
	int			count;
	struct peer		peer[] __counted_by(count);
};

/* ----------------------------------------------------------------- the peers */

/* It agrees to whatever is asked, as a peer with the same protocol does. */
static int peers_answer(struct socket *sock)
{
	struct rdm_cm cm;

	sock->sk->sk_rcvtimeo = LIVE_JIFFIES;
	if (live_raw_recv(sock, &cm, sizeof(cm)) != sizeof(cm))
		return -EIO;
	if (cm.hdr.type != KSK_CM_REQUEST)
		return -EPROTO;
	cm.hdr.type = KSK_CM_ACCEPT;
	cm.cm.version |= 0x80;
	cm.cm.pid = htonl(1);
	if (live_raw_send(sock, &cm, sizeof(cm)) != sizeof(cm))
		return -EIO;
	/* not only from when a timer has found out that it does not go on sending */
	tcp_sock_set_quickack(sock->sk, 1);
	return 0;
}

static int peers_accept(void *arg)
{
	struct peers *p = arg;
	struct socket *sock;
	int err = 0;

	while (!err && p->accepted < p->count) {
		err = kernel_accept(p->listener, &sock, 0);
		if (err)
			break;
		p->peer[p->accepted].sock = sock;
		WRITE_ONCE(p->accepted, p->accepted + 1);
		err = peers_answer(sock);
	}
	p->err = err;
	kthread_complete_and_exit(&p->done, 0);
}

static void peers_stop(void *arg)
{
	struct peers *p = arg;
	int i;

	if (p->task) {
		/* ends a kernel_accept() that waits */
		kernel_sock_shutdown(p->listener, SHUT_RDWR);
		wait_for_completion(&p->done);
	}
	for (i = 0; i < p->accepted; i++)
		sock_release(p->peer[i].sock);
	if (p->listener)
		sock_release(p->listener);
	kvfree(p);
}

static struct peers *peers_start(struct kunit *test)
{
	struct peers *p = kvzalloc(struct_size(p, peer, peers_count),
				   GFP_KERNEL);
	struct rdm_test *t = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, p);
	p->count = peers_count;
	p->node = &t->node[0];
	p->addr.sin_family = AF_INET;
	init_completion(&p->done);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, peers_stop, p), 0);
	KUNIT_ASSERT_GE(test, p->count, PEERS_FEW);
	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, AF_INET, SOCK_STREAM,
					       IPPROTO_TCP, &p->listener), 0);
	KUNIT_ASSERT_EQ(test, kernel_bind(p->listener, (void *)&p->addr,
					  sizeof(p->addr)), 0);
	KUNIT_ASSERT_EQ(test, kernel_listen(p->listener, 128), 0);
	KUNIT_ASSERT_EQ(test, kernel_getsockname(p->listener, (void *)&p->addr),
			(int)sizeof(p->addr));
	p->task = kthread_run(peers_accept, p, "peers");
	if (IS_ERR(p->task))
		p->task = NULL;
	KUNIT_ASSERT_NOT_NULL(test, p->task);
	return p;
}

/* ----------------------------------------------------------- what is measured */

static s64 peers_free(void)
{
	return (s64)global_zone_page_state(NR_FREE_PAGES) * PAGE_SIZE;
}

/* As many peers, each at an address of its own */
static s64 peers_insert(struct kunit *test, struct peers *p)
{
	struct sockaddr_in addr = p->addr;
	s64 before = peers_free();
	int i;

	for (i = 0; i < p->count; i++) {
		addr.sin_addr.s_addr = htonl(PEERS_FIRST + i);
		p->peer[i].addr = rdm_insert(test, p->node, &addr);
	}
	return div_s64(before - peers_free(), p->count);
}

/* One message to each of so many: no more wait for connections than may. */
static s64 peers_connect(struct kunit *test, struct peers *p, int first, int nr)
{
	struct rdm_test *t = test->priv;
	s64 before = peers_free();
	int i, ended = 0;
	ssize_t ret;

	for (i = first; i < first + nr; i++) {
		while ((ret = fi_send(p->node->ep, t->out, PEERS_SIZE, NULL,
				      p->peer[i].addr, NULL)) == -EAGAIN) {
			rdm_sent(test, p->node, 1, 0);
			ended++;
		}
		KUNIT_ASSERT_EQ(test, ret, 0);
	}
	rdm_sent(test, p->node, nr - ended, 0);
	return div_s64(before - peers_free(), nr);
}

static int peers_compare(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/*
 * Median of the nanoseconds of posts to a few in turn, evenly from the first @count:
 * to all of many would take longer by what caches do not hold.
 */
static u64 peers_post(struct kunit *test, struct peers *p, int count)
{
	u64 ns[PEERS_FEW * PEERS_POSTS], start;
	int i, step = count / PEERS_FEW;
	struct rdm_test *t = test->priv;
	struct peer *to;

	for (i = 0; i < ARRAY_SIZE(ns); i++) {
		to = &p->peer[(i % PEERS_FEW + 1) * step - 1];
		start = ktime_get_ns();
		KUNIT_ASSERT_EQ(test, fi_send(p->node->ep, t->out, PEERS_SIZE,
					      NULL, to->addr, NULL), 0);
		ns[i] = ktime_get_ns() - start;
		rdm_sent(test, p->node, 1, 0);
	}
	sort(ns, ARRAY_SIZE(ns), sizeof(*ns), peers_compare, NULL);
	return ns[ARRAY_SIZE(ns) / 2];
}

/* ----------------------------------------------------------------- kofi stat */

static const struct genl_family peers_family = { .version = 1 };

/* Messages of one buffer, each of a peer that was not there yet */
static int peers_told(struct kunit *test, const struct sk_buff *skb,
		      unsigned long *seen, int count)
{
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)skb->data;
	struct nlattr *tb[KOFI_A_PEER_MAX + 1];
	const struct sockaddr_in *addr;
	int rest = skb->len, n = 0;
	u32 i;

	for (; nlmsg_ok(nlh, rest); nlh = nlmsg_next(nlh, &rest), n++) {
		KUNIT_ASSERT_EQ(test, nlmsg_parse_deprecated(nlh, GENL_HDRLEN,
							     tb, KOFI_A_PEER_MAX,
							     NULL, NULL), 0);
		KUNIT_ASSERT_NOT_NULL(test, tb[KOFI_A_PEER_ADDR]);
		addr = nla_data(tb[KOFI_A_PEER_ADDR]);
		i = ntohl(addr->sin_addr.s_addr) - PEERS_FIRST;
		KUNIT_ASSERT_LT(test, i, (u32)count);
		KUNIT_EXPECT_FALSE(test, __test_and_set_bit(i, seen));
		KUNIT_ASSERT_NOT_NULL(test, tb[KOFI_A_PEER_FI_ADDR]);
		KUNIT_EXPECT_EQ(test, nla_get_uint(tb[KOFI_A_PEER_FI_ADDR]), i);
		KUNIT_EXPECT_EQ(test, nla_get_uint(tb[KOFI_A_PEER_STATE]),
				KOFI_EP_CONNECTED);
	}
	return n;
}

/* A dump in as many buffers as it takes has each of them once. */
static void peers_dump(struct kunit *test, struct peers *p)
{
	struct sk_buff *skb, *request = alloc_skb(64, GFP_KERNEL);
	unsigned long *seen = bitmap_zalloc(p->count, GFP_KERNEL);
	struct nlattr *tb[KOFI_A_PEER_MAX + 1] = {};
	struct genl_dumpit_info dump = {};
	struct netlink_callback cb = { .data = &dump };
	int ret, told, all = 0, buffers = 0;
	u64 start = ktime_get_ns();

	KUNIT_ASSERT_TRUE(test, request && seen);
	KUNIT_ASSERT_EQ(test, nla_put_uint(request, KOFI_A_PEER_EP,
					   p->node->ep->fid.obj->id), 0);
	genl_info_init_ntf(&dump.info, &peers_family, KOFI_CMD_PEER_GET);
	tb[KOFI_A_PEER_EP] = (struct nlattr *)request->data;
	dump.info.attrs = tb;
	/* of it only the network namespace counts */
	request->sk = p->listener->sk;
	cb.skb = request;
	KUNIT_EXPECT_EQ(test, kofi_nl_peer_start(&cb), 0);
	do {
		skb = alloc_skb(SZ_4K, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, skb);
		ret = kofi_nl_peer_get_dumpit(skb, &cb);
		told = peers_told(test, skb, seen, p->count);
		kfree_skb(skb);
		all += told;
		buffers++;
	} while (ret == -EMSGSIZE && told);
	kunit_info(test, "%d peers are told of in %d buffers and %llu us\n", all,
		   buffers, div_u64(ktime_get_ns() - start, NSEC_PER_USEC));
	KUNIT_EXPECT_EQ(test, ret, 0);
	KUNIT_EXPECT_EQ(test, all, p->count);
	KUNIT_EXPECT_TRUE(test, bitmap_full(seen, p->count));
	KUNIT_EXPECT_GT(test, buffers, 1);
	request->sk = NULL;
	kfree_skb(request);
	bitmap_free(seen);
}

static void peers_test(struct kunit *test)
{
	struct rdm_test *t = test->priv;
	struct peers *p = peers_start(test);
	s64 idle, connected;
	u64 few, all, start;

	rdm_open(test, p->node, FI_MSG, 0);
	idle = peers_insert(test, p);
	peers_connect(test, p, 0, PEERS_FEW);
	few = peers_post(test, p, PEERS_FEW);
	connected = peers_connect(test, p, PEERS_FEW, p->count - PEERS_FEW);
	KUNIT_EXPECT_EQ(test, rdm_stat(p->node, "connections"), p->count);
	KUNIT_EXPECT_EQ(test, rdm_stat(p->node, "connects"), p->count);
	peers_dump(test, p);
	all = peers_post(test, p, p->count);
	start = ktime_get_ns();
	rdm_close(test, &t->node[0]);
	kunit_info(test, "%d peers: %lld bytes each, with a connection %lld; a post among %d takes %llu ns, among all %llu ns; closed in %llu ms\n",
		   p->count, idle, connected, PEERS_FEW, few, all,
		   div_u64(ktime_get_ns() - start, NSEC_PER_MSEC));
	KUNIT_EXPECT_EQ(test, READ_ONCE(p->accepted), p->count);
	KUNIT_EXPECT_EQ(test, p->err, 0);
	KUNIT_EXPECT_LT(test, idle, PEERS_IDLE);
	KUNIT_EXPECT_LT(test, connected, PEERS_CONNECTED);
	KUNIT_EXPECT_LT(test, all, PEERS_FLAT * few);
}

static struct kunit_case peers_cases[] = {
	KUNIT_CASE_SLOW(peers_test),
	{}
};

static struct kunit_suite peers_suite = {
	.name		= "sock_peers",
	.suite_init	= lo_suite_init,
	.init		= rdm_init,
	.exit		= rdm_exit,
	.test_cases	= peers_cases,
};

kunit_test_suite(peers_suite);

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Pairs of endpoints of type FI_EP_RDM, and peers that are only a socket. */
#include <linux/slab.h>
#include <net/tcp.h>

#include "rdm.h"

int rdm_init(struct kunit *test)
{
	struct rdm_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->out = kunit_kzalloc(test, RDM_BIG, GFP_KERNEL);
	t->in = kunit_kzalloc(test, RDM_BIG, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->out);
	KUNIT_ASSERT_NOT_NULL(test, t->in);
	live_pattern(t->out, RDM_BIG, 1);
	test->priv = t;
	return 0;
}

static struct fi_info *rdm_info(struct kunit *test, u64 caps, u16 port,
				size_t buffered)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	char service[6];

	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->caps = caps;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->size = RDM_SIZE;
	hints->rx_attr->total_buffered_recv = buffered;
	hints->fabric_attr->prov_name = kstrdup("sock", GFP_KERNEL);
	hints->domain_attr->name = kstrdup("lo", GFP_KERNEL);
	hints->addr_format = FI_SOCKADDR_IN;
	snprintf(service, sizeof(service), "%u", port);
	KUNIT_EXPECT_EQ(test, fi_getinfo(FI_VERSION(2, 1), "127.0.0.1",
					 service, FI_SOURCE | FI_NUMERICHOST,
					 hints, &info), 0);
	fi_freeinfo(hints);
	KUNIT_ASSERT_NOT_NULL(test, info);
	KUNIT_EXPECT_EQ(test, info->ep_attr->type, FI_EP_RDM);
	KUNIT_EXPECT_EQ(test, info->ep_attr->protocol, FI_PROTO_XNET);
	return info;
}

static void rdm_space(struct fid_ep *ep, void *context)
{
	struct rdm_node *n = context;

	complete(&n->space);
}

/* Open and enable one end; @port 0 is any. */
void rdm_open(struct kunit *test, struct rdm_node *n, u64 caps, u16 port)
{
	struct fi_cq_attr attr = {
		.format = FI_CQ_FORMAT_TAGGED, .size = 2 * RDM_MAX,
		.wait_obj = FI_WAIT_UNSPEC,
	};
	const struct kofi_cq_attr calls = {
		.poll = KOFI_POLL_SOFTIRQ, .done = true,
	};
	const struct sockaddr_in any = {
		.sin_family = AF_INET, .sin_port = htons(port),
	};
	struct rdm_test *t = test->priv;
	size_t len = sizeof(n->addr);

	n->info = rdm_info(test, caps, port, n->buffered);
	if (!t->fabric)
		KUNIT_ASSERT_EQ(test, fi_fabric(n->info->fabric_attr,
						&t->fabric, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_domain(t->fabric, n->info, &n->domain, NULL),
			0);
	KUNIT_ASSERT_EQ(test, fi_av_open(n->domain, NULL, &n->av, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_cq_open(n->domain, &attr, &n->tx, NULL), 0);
	if (n->calls)
		attr.wait_obj = FI_WAIT_NONE;
	if (n->slots)
		attr.size = n->slots;
	KUNIT_ASSERT_EQ(test, kofi_cq_open(n->domain, &attr,
					   n->calls ? &calls : NULL,
					   &n->rx, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_endpoint(n->domain, n->info, &n->ep, n), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(n->ep, &n->tx->fid, FI_TRANSMIT), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(n->ep, &n->rx->fid, FI_RECV), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(n->ep, &n->av->fid, 0), 0);
	init_completion(&n->space);
	KUNIT_ASSERT_EQ(test, kofi_ep_write_space(n->ep, rdm_space), 0);
	if (n->expire)
		KUNIT_ASSERT_EQ(test, fi_setopt(&n->ep->fid, FI_OPT_ENDPOINT,
						KOFI_OPT_UNEXPECTED_TIMEOUT,
						&n->expire, sizeof(n->expire)),
				0);
	if (n->handshake)
		KUNIT_ASSERT_EQ(test, fi_set_val(&n->ep->fid,
						 KOFI_VAL_HANDSHAKE_TIMEOUT,
						 &n->handshake), 0);
	if (n->connect)
		KUNIT_ASSERT_EQ(test, fi_set_val(&n->ep->fid,
						 KOFI_VAL_CONNECT_TIMEOUT,
						 &n->connect), 0);
	if (n->silence)
		KUNIT_ASSERT_EQ(test, fi_set_val(&n->ep->fid,
						 KOFI_VAL_SILENCE_TIMEOUT,
						 &n->silence), 0);
	if (n->any)
		KUNIT_ASSERT_EQ(test, fi_setname(&n->ep->fid, (void *)&any,
						 sizeof(any)), 0);
	if (n->reclaim)
		KUNIT_ASSERT_EQ(test, fi_set_val(&n->ep->fid,
						 KOFI_VAL_RECLAIM_SAFE,
						 &(unsigned int){ 1 }), 0);
	KUNIT_ASSERT_EQ(test, fi_enable(n->ep), 0);
	KUNIT_ASSERT_EQ(test, fi_getname(&n->ep->fid, &n->addr, &len), 0);
	if (n->any) {
		KUNIT_EXPECT_EQ(test, ntohl(n->addr.sin_addr.s_addr), 0);
		n->addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	}
	KUNIT_ASSERT_NE(test, ntohs(n->addr.sin_port), 0);
}

void rdm_close(struct kunit *test, struct rdm_node *n)
{
	if (n->ep)
		KUNIT_EXPECT_EQ(test, fi_close(&n->ep->fid), 0);
	if (n->tx)
		KUNIT_EXPECT_EQ(test, fi_close(&n->tx->fid), 0);
	if (n->rx)
		KUNIT_EXPECT_EQ(test, fi_close(&n->rx->fid), 0);
	if (n->av)
		KUNIT_EXPECT_EQ(test, fi_close(&n->av->fid), 0);
	if (n->domain)
		KUNIT_EXPECT_EQ(test, fi_close(&n->domain->fid), 0);
	fi_freeinfo(n->info);
	memset(n, 0, sizeof(*n));
}

void rdm_exit(struct kunit *test)
{
	struct rdm_test *t = test->priv;

	rdm_close(test, &t->node[0]);
	rdm_close(test, &t->node[1]);
	if (t->fabric)
		KUNIT_EXPECT_EQ(test, fi_close(&t->fabric->fid), 0);
	t->fabric = NULL;
}

fi_addr_t rdm_insert(struct kunit *test, struct rdm_node *n,
		     const struct sockaddr_in *addr)
{
	fi_addr_t got;

	KUNIT_ASSERT_EQ(test, fi_av_insert(n->av, addr, 1, &got, 0, NULL), 1);
	return got;
}

/* Both ends, and what each calls the other */
void rdm_pair(struct kunit *test, u64 caps, fi_addr_t peer[2])
{
	struct rdm_test *t = test->priv;
	int i;

	for (i = 0; i < 2; i++)
		rdm_open(test, &t->node[i], caps, 0);
	for (i = 0; i < 2; i++)
		peer[i] = rdm_insert(test, &t->node[i], &t->node[!i].addr);
}

static void rdm_stat_one(void *arg, const char *name, u64 value)
{
	struct { const char *name; u64 value; } *want = arg;

	if (!strcmp(name, want->name))
		want->value = value;
}

static struct ksk_conn_stats rdm_stats(const struct rdm_node *n)
{
	struct { const char *name; u64 value; } want = { "" };
	struct ksk_conn_stats sum = {};

	ksk_rdm_stats(ksk_ep(n->ep), &sum, rdm_stat_one, &want);
	return sum;
}

/* Messages of an endpoint that were announced */
unsigned long rdm_announced(const struct rdm_node *n)
{
	return rdm_stats(n).tx_rendezvous;
}

/* Messages without receive that an endpoint has stored */
unsigned long rdm_stored(const struct rdm_node *n)
{
	return rdm_stats(n).rx_unexpected;
}

/* How often the stream of a peer had to wait for a receive */
unsigned long rdm_stalls(const struct rdm_node *n)
{
	return rdm_stats(n).rx_stalls;
}

/* A statistic of an endpoint */
u64 rdm_stat(const struct rdm_node *n, const char *name)
{
	struct { const char *name; u64 value; } want = { name, U64_MAX };
	struct kofi_obj *obj = n->ep->fid.obj;

	obj->ops->stats(obj, rdm_stat_one, &want);
	return want.value;
}

/* Messages @from to @to - 1 into parts of the memory, and what becomes of them */
void rdm_recvs(struct kunit *test, struct rdm_node *n, int from, int to,
	       size_t len)
{
	struct rdm_test *t = test->priv;
	int i;

	for (i = from; i < to; i++)
		KUNIT_ASSERT_EQ(test, fi_recv(n->ep, t->in + i * len, len, NULL,
					      FI_ADDR_UNSPEC,
					      (void *)(long)(i + 1)), 0);
}

void rdm_sends(struct kunit *test, struct rdm_node *n, fi_addr_t peer,
	       int from, int to, size_t len)
{
	struct rdm_test *t = test->priv;
	int i;

	for (i = from; i < to; i++)
		KUNIT_ASSERT_EQ(test, fi_send(n->ep, t->out + i * len, len,
					      NULL, peer,
					      (void *)(long)(i + 1)), 0);
}

/* They have completed, in order, and the bytes are right. */
void rdm_received(struct kunit *test, struct rdm_node *n, int from,
		  int to, size_t len)
{
	struct rdm_test *t = test->priv;
	struct fi_cq_err_entry e;
	int i;

	for (i = from; i < to; i++) {
		KUNIT_ASSERT_EQ(test, live_comp(n->rx, &e), 0);
		KUNIT_EXPECT_PTR_EQ(test, e.op_context, (void *)(long)(i + 1));
		KUNIT_EXPECT_EQ(test, e.len, len);
		KUNIT_EXPECT_MEMEQ(test, t->in + i * len, t->out + i * len, len);
	}
}

void rdm_sent(struct kunit *test, struct rdm_node *n, int count, int err)
{
	struct fi_cq_err_entry e;

	while (count--)
		KUNIT_ASSERT_EQ(test, live_comp(n->tx, &e), -err);
}

/* Wait until an endpoint has no connection any more. */
void rdm_alone(struct kunit *test, const struct rdm_node *n)
{
	unsigned long end = jiffies + LIVE_JIFFIES;

	while (rdm_stat(n, "connections") && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, rdm_stat(n, "connections"), 0);
}

void rdm_tsend(struct kunit *test, struct rdm_node *n, fi_addr_t peer,
	       int i, size_t len, u64 flags)
{
	struct rdm_test *t = test->priv;
	const struct kvec kv = { t->out + i * len, len };
	const struct fi_msg_tagged msg = {
		.msg_iov = &kv, .iov_count = 1, .addr = peer, .tag = i,
	};

	KUNIT_ASSERT_EQ(test, fi_tsendmsg(n->ep, &msg, flags), 0);
}

void rdm_tpost(struct kunit *test, struct rdm_node *n, int i, size_t len)
{
	struct rdm_test *t = test->priv;

	KUNIT_ASSERT_EQ(test, fi_trecv(n->ep, t->in + i * len, len, NULL,
				       FI_ADDR_UNSPEC, i, 0, NULL), 0);
}

void rdm_treceived(struct kunit *test, struct rdm_node *n, int i, size_t len)
{
	struct rdm_test *t = test->priv;
	struct fi_cq_err_entry e;

	KUNIT_ASSERT_EQ(test, live_comp(n->rx, &e), 0);
	KUNIT_EXPECT_EQ(test, e.tag, (u64)i);
	KUNIT_EXPECT_EQ(test, e.len, len);
	KUNIT_EXPECT_MEMEQ(test, t->in + i * len, t->out + i * len, len);
}

void rdm_trecv(struct kunit *test, struct rdm_node *n, int i, size_t len)
{
	rdm_tpost(test, n, i, len);
	rdm_treceived(test, n, i, len);
}

struct socket *rdm_raw(struct kunit *test, const struct rdm_node *n)
{
	return rdm_raw_from(test, n, INADDR_ANY);
}

/* A connection from a certain address of this machine */
struct socket *rdm_raw_from(struct kunit *test, const struct rdm_node *n, u32 host)
{
	struct sockaddr_in from = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(host),
	};
	struct sockaddr_in addr = n->addr;
	struct socket *sock;

	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, AF_INET, SOCK_STREAM,
					       IPPROTO_TCP, &sock), 0);
	sock->sk->sk_rcvtimeo = TEST_LIMIT(10 * HZ);
	if (host != INADDR_ANY)
		KUNIT_EXPECT_EQ(test, kernel_bind(sock, (void *)&from, sizeof(from)), 0);
	KUNIT_EXPECT_EQ(test, kernel_connect(sock, (void *)&addr, sizeof(addr),
					     0), 0);
	return sock;
}

/* A listener that says nothing */
struct socket *rdm_deaf(struct kunit *test, struct sockaddr_in *addr)
{
	struct socket *sock;

	*addr = (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, AF_INET, SOCK_STREAM,
					       IPPROTO_TCP, &sock), 0);
	KUNIT_EXPECT_EQ(test, kernel_bind(sock, (void *)addr, sizeof(*addr)),
			0);
	KUNIT_EXPECT_EQ(test, kernel_listen(sock, 8), 0);
	KUNIT_EXPECT_EQ(test, kernel_getsockname(sock, (void *)addr),
			(int)sizeof(*addr));
	return sock;
}

void rdm_request(struct kunit *test, struct socket *sock, u8 version, u16 port,
		 u32 pid)
{
	struct rdm_cm cm = {
		.hdr.version = KSK_PROTO_VERSION,
		.hdr.type = KSK_CM_REQUEST,
		.hdr.data_len = htons(sizeof(cm.cm)),
		.cm.version = version,
		.cm.port = htons(port),
		.cm.pid = htonl(pid),
	};

	put_unaligned_le64(1, &cm.hdr.probe);
	KUNIT_EXPECT_EQ(test, live_raw_send(sock, &cm, sizeof(cm)),
			(int)sizeof(cm));
}

/* The type of the answer to a request; *@cm becomes the answer. */
int rdm_ask_version(struct kunit *test, struct socket *sock,
		    struct rdm_cm *cm, u8 version, u16 port, u32 pid)
{
	rdm_request(test, sock, version, port, pid);
	if (live_raw_recv(sock, cm, sizeof(*cm)) != sizeof(*cm))
		return -EIO;
	return cm->hdr.type;
}

int rdm_ask(struct kunit *test, struct socket *sock, struct rdm_cm *cm,
	    u16 port, u32 pid)
{
	return rdm_ask_version(test, sock, cm, 1, port, pid);
}

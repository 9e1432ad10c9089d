// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Addresses as text (FI_ADDR_STR): what the core makes of them for a provider that
 * knows nothing of text, from discovery to names of endpoints.
 */
#include <linux/slab.h>

#include "../kunit.h"
#include "live.h"

#define TX_HOST		"fi_sockaddr_in://127.0.0.1:"
#define TX_LEN		96	/* more than any text has */

static struct fi_info *tx_hints(struct kunit *test, enum fi_ep_type type)
{
	struct fi_info *hints = fi_allocinfo();

	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->caps = FI_MSG;
	hints->addr_format = FI_ADDR_STR;
	hints->ep_attr->type = type;
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = kstrdup("sock", GFP_KERNEL);
	return hints;
}

static void tx_set(void **addr, size_t *len, const char *text, size_t cut)
{
	if (!text)
		return;
	*addr = kstrdup(text, GFP_KERNEL);
	*len = strlen(text) + 1 - cut;
}

/* One with a source as text; the caller's */
static struct fi_info *tx_info(struct kunit *test, enum fi_ep_type type, u64 caps)
{
	struct fi_info *hints = tx_hints(test, type), *info = NULL;

	hints->caps |= caps;
	tx_set(&hints->src_addr, &hints->src_addrlen, TX_HOST "0", 0);
	KUNIT_EXPECT_EQ(test, fi_getinfo(FI_VERSION(2, 1), NULL, NULL, 0, hints,
					 &info), 0);
	fi_freeinfo(hints);
	KUNIT_ASSERT_NOT_NULL(test, info);
	return info;
}

/* --------------------------------------------------------------- discovery */

static const struct {
	const char	*name, *node, *service;
	const char	*src, *dest;
	size_t		cut;		/* bytes the lengths are short of */
	int		err;
	const char	*src_got, *dest_got;
} tx_asks[] = {
	{ .name = "source", .src = TX_HOST "7471",
	  .src_got = TX_HOST "7471" },
	{ .name = "both", .src = TX_HOST "0", .dest = TX_HOST "7471",
	  .src_got = TX_HOST "0", .dest_got = TX_HOST "7471" },
	{ .name = "node", .node = "127.0.0.1", .service = "80",
	  .dest_got = TX_HOST "80" },
	{ .name = "two families", .src = TX_HOST "0",
	  .dest = "fi_sockaddr_in6://[::1]:7471", .err = -ENODATA },
	{ .name = "no scheme", .src = "127.0.0.1:80", .err = -EINVAL },
	{ .name = "no port", .src = "fi_sockaddr_in://127.0.0.1",
	  .err = -EINVAL },
	{ .name = "a name", .dest = "fi_sockaddr_in://localhost:80",
	  .err = -EINVAL },
	{ .name = "without end", .src = TX_HOST "0", .cut = 1, .err = -EINVAL },
};

static void tx_discovery(struct kunit *test)
{
	struct fi_info *hints, *info;
	int i, err;

	for (i = 0; i < ARRAY_SIZE(tx_asks); i++) {
		hints = tx_hints(test, FI_EP_MSG);
		tx_set(&hints->src_addr, &hints->src_addrlen, tx_asks[i].src,
		       tx_asks[i].cut);
		tx_set(&hints->dest_addr, &hints->dest_addrlen,
		       tx_asks[i].dest, tx_asks[i].cut);
		err = fi_getinfo(FI_VERSION(2, 1), tx_asks[i].node,
				 tx_asks[i].service, 0, hints, &info);
		fi_freeinfo(hints);
		KUNIT_EXPECT_EQ_MSG(test, err, tx_asks[i].err, "%s",
				    tx_asks[i].name);
		if (err)
			continue;
		KUNIT_EXPECT_EQ(test, info->addr_format, FI_ADDR_STR);
		KUNIT_EXPECT_EQ(test, info->src_addrlen,
				strlen(info->src_addr) + 1);
		if (tx_asks[i].src_got)
			KUNIT_EXPECT_STREQ(test, (char *)info->src_addr,
					   tx_asks[i].src_got);
		if (tx_asks[i].dest_got)
			KUNIT_EXPECT_STREQ(test, (char *)info->dest_addr,
					   tx_asks[i].dest_got);
		fi_freeinfo(info);
	}
}

/* ------------------------------------------------------------- connections */

static void tx_name(struct kunit *test, fid_t fid, char *name)
{
	size_t len = TX_LEN;

	KUNIT_ASSERT_EQ(test, fi_getname(fid, name, &len), 0);
	KUNIT_EXPECT_EQ(test, len, strlen(name) + 1);
	KUNIT_EXPECT_EQ(test, strncmp(name, TX_HOST, strlen(TX_HOST)), 0);
}

static void tx_connection(struct kunit *test)
{
	struct live *l = test->priv;
	char name[TX_LEN], peer[TX_LEN];
	size_t len = 5;

	l->info = tx_info(test, FI_EP_MSG, 0);
	KUNIT_ASSERT_EQ(test, fi_fabric(l->info->fabric_attr, &l->fabric, NULL),
			0);
	KUNIT_ASSERT_EQ(test, fi_eq_open(l->fabric, &(struct fi_eq_attr) {
					 .wait_obj = FI_WAIT_UNSPEC },
					 &l->pep_eq, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_passive_ep(l->fabric, l->info, &l->pep, NULL),
			0);
	KUNIT_ASSERT_EQ(test, fi_pep_bind(l->pep, &l->pep_eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_setname(&l->pep->fid, "127.0.0.1:0", 12),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_setname(&l->pep->fid, TX_HOST "0", 5),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_setname(&l->pep->fid, TX_HOST "0",
					 sizeof(TX_HOST "0")), 0);
	live_start(test, l);
	tx_name(test, &l->pep->fid, name);
	KUNIT_EXPECT_STREQ(test, name, (char *)&l->addr);
	KUNIT_EXPECT_EQ(test, fi_getname(&l->pep->fid, peer, &len),
			-FI_ETOOSMALL);
	KUNIT_EXPECT_EQ(test, len, strlen(name) + 1);
	KUNIT_EXPECT_EQ(test, memcmp(peer, name, 5), 0);

	live_connect(test, l, 0);
	KUNIT_EXPECT_EQ(test, fi_connect(l->end[0].ep, "nowhere", NULL, 0),
			-EINVAL);
	len = sizeof(peer);
	KUNIT_EXPECT_EQ(test, fi_getpeer(l->end[0].ep, peer, &len), 0);
	KUNIT_EXPECT_STREQ(test, peer, name);
	tx_name(test, &l->end[0].ep->fid, name);
	len = sizeof(peer);
	KUNIT_EXPECT_EQ(test, fi_getpeer(l->end[1].ep, peer, &len), 0);
	KUNIT_EXPECT_STREQ(test, peer, name);
	/* that of the request */
	KUNIT_EXPECT_EQ(test, l->end[1].info->addr_format, FI_ADDR_STR);
	KUNIT_EXPECT_STREQ(test, (char *)l->end[1].info->dest_addr, name);
	tx_name(test, &l->end[1].ep->fid, name);
	KUNIT_EXPECT_STREQ(test, (char *)l->end[1].info->src_addr, name);
}

/* -------------------------------------------------------------- many peers */

struct tx_node {
	struct fid_ep	*ep;
	struct fid_av	*av;
	struct fid_cq	*cq;
	char		name[TX_LEN];
	const char	*at;
	fi_addr_t	peer;
};

struct tx_many {
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct tx_node		node[2];
	u8			buf[2][64];
};

static void tx_many_close(void *arg)
{
	struct tx_many *m = arg;
	int i;

	for (i = 0; i < 2; i++) {
		struct tx_node *n = &m->node[i];

		if (n->ep)
			fi_close(&n->ep->fid);
		if (n->cq)
			fi_close(&n->cq->fid);
		if (n->av)
			fi_close(&n->av->fid);
	}
	if (m->domain)
		fi_close(&m->domain->fid);
	if (m->fabric)
		fi_close(&m->fabric->fid);
	fi_freeinfo(m->info);
}

static void tx_open_node(struct kunit *test, struct tx_many *m, struct tx_node *n)
{
	struct fi_cq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	KUNIT_ASSERT_EQ(test, fi_av_open(m->domain, NULL, &n->av, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_cq_open(m->domain, &attr, &n->cq, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_endpoint(m->domain, m->info, &n->ep, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(n->ep, &n->av->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(n->ep, &n->cq->fid,
					 FI_TRANSMIT | FI_RECV), 0);
	KUNIT_ASSERT_EQ(test, fi_enable(n->ep), 0);
	tx_name(test, &n->ep->fid, n->name);
	n->at = n->name;
}

/* A message from one to the other; its completion there */
static int tx_send(struct kunit *test, struct tx_many *m,
		   struct fi_cq_err_entry *e)
{
	struct tx_node *a = &m->node[0], *b = &m->node[1];

	KUNIT_ASSERT_EQ(test, fi_recv(b->ep, m->buf[1], 64, NULL,
				      FI_ADDR_UNSPEC, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_send(a->ep, m->buf[0], 64, NULL, a->peer, NULL),
			0);
	KUNIT_ASSERT_EQ(test, live_comp(a->cq, e), 0);
	return live_comp(b->cq, e);
}

/* Vectors hold text, and so does what is said of a sender they do not hold. */
static void tx_peers(struct kunit *test)
{
	struct tx_many *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	struct fi_cq_err_entry e;
	struct tx_node *a, *b;
	char text[TX_LEN];
	const char *from;
	size_t len = sizeof(text);

	KUNIT_ASSERT_NOT_NULL(test, m);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, tx_many_close, m),
			0);
	m->info = tx_info(test, FI_EP_RDM, FI_SOURCE | FI_SOURCE_ERR);
	KUNIT_ASSERT_EQ(test, fi_fabric(m->info->fabric_attr, &m->fabric, NULL),
			0);
	KUNIT_ASSERT_EQ(test, fi_domain(m->fabric, m->info, &m->domain, NULL),
			0);
	a = &m->node[0];
	b = &m->node[1];
	tx_open_node(test, m, a);
	tx_open_node(test, m, b);
	KUNIT_ASSERT_EQ(test, fi_av_insert(a->av, &b->at, 1, &a->peer, 0, NULL),
			1);
	KUNIT_EXPECT_EQ(test, fi_av_lookup(a->av, a->peer, text, &len), 0);
	KUNIT_EXPECT_STREQ(test, text, b->name);

	KUNIT_EXPECT_EQ(test, tx_send(test, m, &e), -FI_EADDRNOTAVAIL);
	KUNIT_ASSERT_EQ(test, e.err_data_size, strlen(a->name) + 1);
	KUNIT_EXPECT_STREQ(test, (char *)e.err_data, a->name);
	from = e.err_data;
	KUNIT_ASSERT_EQ(test, fi_av_insert(b->av, &from, 1, &b->peer, 0, NULL),
			1);
	KUNIT_EXPECT_EQ(test, tx_send(test, m, &e), 0);
}

static struct kunit_case tx_cases[] = {
	KUNIT_CASE(tx_discovery),
	KUNIT_CASE(tx_connection),
	KUNIT_CASE(tx_peers),
	{}
};

static struct kunit_suite tx_suite = {
	.name = "sock_text",
	.suite_init = lo_suite_init,
	.init = live_init,
	.exit = live_exit,
	.test_cases = tx_cases,
};

kunit_test_suite(tx_suite);

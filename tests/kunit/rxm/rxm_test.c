// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* kofi_rxm alive: endpoints over kofi_sock on the loopback device. */
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "../../../kofi/cq.h"
#include "../../../providers/rxm/rxm.h"
#include "live.h"

/* ---------------------------------------------------------------- messages */

/* Lengths around every change of how a message goes */
static const size_t rxt_lens[] = {
	0, 1, 64, 128, 129, 4096, RXM_EAGER - 1, RXM_EAGER, RXM_EAGER + 1,
	2 * RXM_EAGER, RXM_SAR - 1, RXM_SAR, RXM_SAR + 1, SZ_1M,
	RXT_BIG,	/* too many pages for one region */
};

static void rxt_lengths(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(rxt_lens); i++) {
		rxt_exchange(test, rxt_lens[i], false, false);
		rxt_exchange(test, rxt_lens[i], true, false);
	}
}

static void rxt_unexpected(struct kunit *test)
{
	struct rxt *t = test->priv;
	int i;

	for (i = 0; i < ARRAY_SIZE(rxt_lens); i++) {
		rxt_exchange(test, rxt_lens[i], false, true);
		rxt_exchange(test, rxt_lens[i], true, true);
	}
	rxt_held(test, &t->end[1], 0);
	KUNIT_EXPECT_EQ(test, rxt_stat(t->end[1].ep, "peers"), 1);
	KUNIT_EXPECT_EQ(test, rxt_stat(t->end[0].ep, "tx_early"), 0);
}

#define RXT_ORDER	9
#define RXT_PIECE	(PAGE_SIZE << RXT_ORDER)

static void rxt_free_pages(void *page)
{
	__free_pages(page, RXT_ORDER);
}

/* The longest message of the provider below. All its pieces are the same pages. */
static void rxt_longest(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0], *b = &t->end[1];
	size_t max = t->info->ep_attr->max_msg_size, left = max, n;
	unsigned int nr = DIV_ROUND_UP(max, RXT_PIECE), i;
	struct scatterlist *sg[2];
	struct fi_cq_tagged_entry e;
	struct page *page[2];
	struct fi_msg msg;

	KUNIT_EXPECT_EQ(test, max, (size_t)MAX_RW_COUNT);
	for (i = 0; i < 2; i++) {
		sg[i] = kunit_kcalloc(test, nr, sizeof(**sg), GFP_KERNEL);
		page[i] = alloc_pages(GFP_KERNEL | __GFP_ZERO | __GFP_COMP, RXT_ORDER);
		KUNIT_ASSERT_TRUE(test, sg[i] && page[i]);
		KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, rxt_free_pages,
								page[i]), 0);
		sg_init_table(sg[i], nr);
	}
	rxt_pattern(page_address(page[0]), RXT_PIECE, 1);
	for (i = 0; i < nr; i++, left -= n) {
		n = min(left, RXT_PIECE);
		sg_set_page(&sg[0][i], page[0], n, 0);
		sg_set_page(&sg[1][i], page[1], n, 0);
	}
	msg = (struct fi_msg) {
		.vec = KOFI_SGL, .msg_sgl = sg[1], .iov_count = nr,
		.addr = FI_ADDR_UNSPEC,
	};
	KUNIT_ASSERT_EQ(test, fi_recvmsg(b->ep, &msg, 0), 0);
	msg.msg_sgl = sg[0];
	msg.addr = a->peer[1];
	KUNIT_ASSERT_EQ(test, fi_sendmsg(a->ep, &msg, FI_COMPLETION), 0);
	KUNIT_ASSERT_EQ(test, fi_cq_sread(b->rx, &e, 1, NULL, 10 * RXT_TIMEOUT), 1);
	KUNIT_EXPECT_EQ(test, e.len, max);
	KUNIT_EXPECT_EQ(test, rxt_differs(page_address(page[1]), RXT_PIECE, 1),
			RXT_PIECE);
	rxt_expect(test, a->tx, NULL, 0);
	KUNIT_EXPECT_EQ(test, rxt_stat(a->ep, "tx_rendezvous"), 1);
}

/* What does not fit is cut off, and said. */
static void rxt_truncated(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0], *b = &t->end[1];
	static const size_t lens[] = { 100, RXM_EAGER + 5, RXM_SAR + 5 };
	struct fi_cq_err_entry e;
	size_t room;
	int i;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		for (room = 0; room < 100; room += 60) {
			rxt_pattern(t->out, lens[i], i);
			t->in[room] = 0xaa;
			KUNIT_ASSERT_EQ(test, fi_recv(b->ep, t->in, room, NULL,
						      FI_ADDR_UNSPEC, t->in),
					0);
			KUNIT_ASSERT_EQ(test, fi_send(a->ep, t->out, lens[i],
						      NULL, a->peer[1],
						      t->out), 0);
			KUNIT_ASSERT_EQ(test, rxt_comp(b->rx, &e, NULL),
					FI_ETRUNC);
			KUNIT_EXPECT_EQ(test, e.len, room);
			KUNIT_EXPECT_EQ(test, e.olen, lens[i] - room);
			KUNIT_EXPECT_EQ(test, rxt_differs(t->in, room, i),
					room);
			KUNIT_EXPECT_EQ(test, t->in[room], 0xaa);
			rxt_expect(test, a->tx, t->out, 0);
		}
	}
}

/*
 * Messages of all kinds arrive in the order of the posts, the first ones too, which
 * wait for the connection.
 */
static void rxt_order(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0], *b = &t->end[1];
	static const size_t lens[] = {
		8, RXM_EAGER * 2, 16, RXM_SAR + 1, 24, 32, RXM_SAR - 3, 40,
	};
	struct fi_cq_err_entry e;
	int i;

	for (i = 0; i < ARRAY_SIZE(lens); i++)
		KUNIT_ASSERT_EQ(test, fi_send(a->ep, t->out, lens[i], NULL,
					      a->peer[1], NULL), 0);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		KUNIT_ASSERT_EQ(test, fi_recv(b->ep, t->in, RXT_BIG, NULL,
					      FI_ADDR_UNSPEC, NULL), 0);
		KUNIT_ASSERT_EQ(test, rxt_comp(b->rx, &e, NULL), 0);
		KUNIT_EXPECT_EQ(test, e.len, lens[i]);
	}
	for (i = 0; i < ARRAY_SIZE(lens); i++)
		rxt_expect(test, a->tx, NULL, 0);
}

/* All kinds of memory, in pieces that do not fit packets */
static void rxt_memory(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0], *b = &t->end[1];
	static const size_t lens[] = { 3000, 50000, 300000 };
	struct scatterlist *sg = kunit_kcalloc(test, 100, sizeof(*sg),
					       GFP_KERNEL);
	struct kvec kv[4];
	struct fi_msg msg = { .addr = a->peer[1] };
	struct fi_cq_err_entry e;
	size_t piece, off;
	int i, j;

	KUNIT_ASSERT_NOT_NULL(test, sg);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		rxt_pattern(t->out, lens[i], i);
		/* four buffers */
		piece = lens[i] / 4;
		for (j = 0; j < 4; j++)
			kv[j] = (struct kvec) { t->out + j * piece, piece };
		KUNIT_ASSERT_EQ(test, fi_recv(b->ep, t->in, lens[i], NULL,
					      FI_ADDR_UNSPEC, NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_sendv(a->ep, kv, NULL, 4, a->peer[1],
					       NULL), 0);
		KUNIT_ASSERT_EQ(test, rxt_comp(b->rx, &e, NULL), 0);
		KUNIT_EXPECT_EQ(test, e.len, lens[i]);
		KUNIT_EXPECT_EQ(test, rxt_differs(t->in, lens[i], i), lens[i]);
		rxt_expect(test, a->tx, NULL, 0);

		/* a scatterlist of a hundred */
		piece = lens[i] / 100;
		sg_init_table(sg, 100);
		for (j = 0, off = 0; j < 100; j++, off += piece)
			sg_set_page(&sg[j], vmalloc_to_page(t->out + off),
				    min(piece, PAGE_SIZE -
					offset_in_page(t->out + off)),
				    offset_in_page(t->out + off));
		msg.vec = KOFI_SGL;
		msg.msg_sgl = sg;
		msg.iov_count = 100;
		KUNIT_ASSERT_EQ(test, fi_recv(b->ep, t->in, lens[i], NULL,
					      FI_ADDR_UNSPEC, NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_sendmsg(a->ep, &msg, FI_COMPLETION),
				0);
		KUNIT_ASSERT_EQ(test, rxt_comp(b->rx, &e, NULL), 0);
		for (j = 0, off = 0; j < 100; off += sg[j++].length)
			KUNIT_EXPECT_MEMEQ(test, t->in + off,
					   (u8 *)t->out + j * piece,
					   sg[j].length);
		KUNIT_EXPECT_EQ(test, e.len, off);
		rxt_expect(test, a->tx, NULL, 0);

		/* and into it */
		msg.addr = FI_ADDR_UNSPEC;
		rxt_pattern(t->in, lens[i], i);
		memset(t->out, 0, lens[i]);
		KUNIT_ASSERT_EQ(test, fi_recvmsg(b->ep, &msg, FI_COMPLETION),
				0);
		KUNIT_ASSERT_EQ(test, fi_send(a->ep, t->in, off, NULL,
					      a->peer[1], NULL), 0);
		KUNIT_ASSERT_EQ(test, rxt_comp(b->rx, &e, NULL), 0);
		for (j = 0, off = 0; j < 100; off += sg[j++].length)
			KUNIT_EXPECT_MEMEQ(test, t->in + off,
					   (u8 *)t->out + j * piece,
					   sg[j].length);
		rxt_expect(test, a->tx, NULL, 0);
		msg.addr = a->peer[1];
	}
}

/* A copy is taken, and nothing is reported. */
static void rxt_injected(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0], *b = &t->end[1];
	struct fi_cq_err_entry e;
	int i;

	for (i = 0; i < 4; i++) {
		rxt_pattern(t->out, 128, i);
		KUNIT_ASSERT_EQ(test, fi_inject(a->ep, t->out, 128, a->peer[1]),
				0);
		memset(t->out, 0, 128);
	}
	KUNIT_EXPECT_EQ(test, fi_inject(a->ep, t->out, 129, a->peer[1]),
			-EINVAL);
	for (i = 0; i < 4; i++) {
		KUNIT_ASSERT_EQ(test, fi_recv(b->ep, t->in, 128, NULL,
					      FI_ADDR_UNSPEC, NULL), 0);
		KUNIT_ASSERT_EQ(test, rxt_comp(b->rx, &e, NULL), 0);
		KUNIT_EXPECT_EQ(test, rxt_differs(t->in, 128, i), 128);
	}
	KUNIT_EXPECT_EQ(test, fi_cq_read(a->tx, &e, 1), -EAGAIN);
}

/* ------------------------------------------------------------- connections */

/* One message from each to each, itself too */
static void rxt_mesh_send(struct kunit *test, int n)
{
	struct rxt *t = test->priv;
	int i, j;

	for (i = 0; i < RXT_ENDS; i++)
		for (j = 0; j < RXT_ENDS; j++)
			KUNIT_ASSERT_EQ(test, fi_inject(t->end[i].ep, &n,
							sizeof(n),
							t->end[i].peer[j]), 0);
}

static void rxt_mesh_recv(struct kunit *test, struct rxt_end *e, int first)
{
	int seen[RXT_ENDS] = { first, first, first };
	struct fi_cq_err_entry entry;
	fi_addr_t src;
	int i, n;

	for (i = 0; i < 2 * RXT_ENDS; i++) {
		KUNIT_ASSERT_EQ(test, fi_recv(e->ep, &n, sizeof(n), NULL,
					      FI_ADDR_UNSPEC, NULL), 0);
		KUNIT_ASSERT_EQ(test, rxt_comp(e->rx, &entry, &src), 0);
		KUNIT_ASSERT_LT(test, src, RXT_ENDS);
		KUNIT_EXPECT_EQ(test, n, seen[src]++);
	}
}

/* All begin at once, to all others and themselves; nothing comes out of order. */
static void rxt_mesh(struct kunit *test)
{
	struct rxt *t = test->priv;
	int i, n;

	for (n = 0; n < 6; n += 2) {
		rxt_mesh_send(test, n);
		rxt_mesh_send(test, n + 1);
		for (i = 0; i < RXT_ENDS; i++)
			rxt_mesh_recv(test, &t->end[i], n);
	}
}

/* The same of endpoints that listen at all addresses */
static void rxt_wildcard(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct sockaddr_in any = { .sin_family = AF_INET };
	void *old = t->info->src_addr;
	int i;

	for (i = 0; i < RXT_ENDS; i++)
		rxt_close_end(test, &t->end[i]);
	t->info->src_addr = &any;
	for (i = 0; i < RXT_ENDS; i++)
		rxt_open_end(test, t, &t->end[i]);
	t->info->src_addr = old;
	for (i = 0; i < RXT_ENDS; i++)
		t->end[i].name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	rxt_introduce(test, t);
	rxt_mesh(test);
}

/* What an endpoint cannot copy it does not promise. */
static void rxt_inject_size(struct kunit *test)
{
	struct rxt *t = test->priv;
	size_t old = t->info->tx_attr->inject_size;
	struct fid_ep *ep;

	t->info->tx_attr->inject_size = old + 1;
	KUNIT_EXPECT_EQ(test, fi_endpoint(t->domain, t->info, &ep, NULL),
			-EINVAL);
	t->info->tx_attr->inject_size = old;
}

static int rxt_setopt(struct fid_ep *ep, int name, size_t value)
{
	return fi_setopt(&ep->fid, FI_OPT_ENDPOINT, name, &value, sizeof(value));
}

/* Sizes can be set up to their limits, until the endpoint is enabled. */
static void rxt_options(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *e = &t->end[0];
	const struct {
		int	name;
		size_t	most;
		size_t	value;
	} options[] = {
		{ FI_OPT_TX_SIZE, 65536, 2 },
		{ FI_OPT_RX_SIZE, 65536, 3 },
		{ FI_OPT_MAX_MSG_SIZE, t->info->ep_attr->max_msg_size, 1000 },
		{ FI_OPT_INJECT_MSG_SIZE, 128, 64 },
	};
	size_t i, value, len = sizeof(value);
	struct fid_ep *ep;

	KUNIT_ASSERT_EQ(test, fi_endpoint(t->domain, t->info, &ep, NULL), 0);
	for (i = 0; i < ARRAY_SIZE(options); i++) {
		KUNIT_EXPECT_EQ(test, rxt_setopt(ep, options[i].name, 0), -EINVAL);
		KUNIT_EXPECT_EQ(test, rxt_setopt(ep, options[i].name,
						 options[i].most + 1), -EINVAL);
		KUNIT_EXPECT_EQ(test, rxt_setopt(ep, options[i].name,
						 options[i].most), 0);
		KUNIT_EXPECT_EQ(test, rxt_setopt(ep, options[i].name,
						 options[i].value), 0);
		KUNIT_EXPECT_EQ(test, fi_getopt(&ep->fid, FI_OPT_ENDPOINT,
						options[i].name, &value, &len), 0);
		KUNIT_EXPECT_EQ(test, value, options[i].value);
	}
	KUNIT_EXPECT_EQ(test, rxt_setopt(ep, FI_OPT_CM_DATA_SIZE, 1),
			-FI_ENOPROTOOPT);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(ep, &e->av->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(ep, &e->tx->fid, FI_TRANSMIT), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(ep, &e->rx->fid, FI_RECV), 0);
	KUNIT_ASSERT_EQ(test, fi_enable(ep), 0);
	for (i = 0; i < ARRAY_SIZE(options); i++)
		KUNIT_EXPECT_EQ(test, rxt_setopt(ep, options[i].name,
						 options[i].value), -FI_EOPBADSTATE);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, fi_recv(ep, t->in, 8, NULL, FI_ADDR_UNSPEC,
					      NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(ep, t->in, 8, NULL, FI_ADDR_UNSPEC, NULL),
			-EAGAIN);
	KUNIT_EXPECT_EQ(test, fi_inject(ep, t->out, 65, e->peer[1]), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_send(ep, t->out, 1001, NULL, e->peer[1], NULL),
			-EMSGSIZE);
	KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), 0);
}

static fi_addr_t rxt_nobody(struct kunit *test, struct rxt_end *e)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(1),
	};
	fi_addr_t fi_addr;

	KUNIT_ASSERT_EQ(test, fi_av_insert(e->av, &addr, 1, &fi_addr, 0, NULL),
			1);
	return fi_addr;
}

/* To where none listens: the reason, each time, and no others stopped */
static void rxt_refused(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0];
	fi_addr_t nobody = rxt_nobody(test, a);
	int i;

	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, fi_send(a->ep, t->out, 8, NULL, nobody,
					      t->out), 0);
		rxt_expect(test, a->tx, t->out, ECONNREFUSED);
	}
	KUNIT_EXPECT_EQ(test, fi_send(a->ep, t->out, 8, NULL, 1000, NULL),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_send(a->ep, t->out, 8, NULL, FI_ADDR_UNSPEC,
				      NULL), -EINVAL);
	rxt_exchange(test, 100, false, false);
}

/* A peer that ends and comes back at the same place is another one. */
static void rxt_restarted(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0], *b = &t->end[1];
	fi_addr_t peer[RXT_ENDS];
	struct sockaddr_in name = b->name;
	struct fi_cq_err_entry e;
	void *old;

	rxt_exchange(test, 100, false, false);
	memcpy(peer, b->peer, sizeof(peer));
	rxt_close_end(test, b);
	/* until it is back: the connection ends, or nothing listens */
	KUNIT_ASSERT_EQ(test, fi_send(a->ep, t->out, RXM_SAR + 1, NULL,
				      a->peer[1], t->out), 0);
	KUNIT_ASSERT_GT(test, rxt_comp(a->tx, &e, NULL), 0);
	KUNIT_EXPECT_PTR_EQ(test, e.op_context, t->out);

	old = t->info->src_addr;
	t->info->src_addr = &name;
	rxt_open_end(test, t, b);
	t->info->src_addr = old;
	KUNIT_ASSERT_TRUE(test, b->name.sin_port == name.sin_port);
	KUNIT_ASSERT_EQ(test, fi_av_insert(b->av, &a->name, 1, &b->peer[0], 0,
					   NULL), 1);
	rxt_exchange(test, 100, false, false);
}

/* What is under way to an address that is removed ends. */
static void rxt_removed(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0], *b = &t->end[1];
	struct fi_cq_err_entry e;

	rxt_exchange(test, 100, false, false);
	/* it is not fetched */
	KUNIT_ASSERT_EQ(test, fi_send(a->ep, t->out, SZ_1M, NULL, a->peer[1],
				      t->out), 0);
	KUNIT_ASSERT_EQ(test, fi_av_remove(a->av, &a->peer[1], 1, 0), 0);
	rxt_expect(test, a->tx, t->out, ECANCELED);
	KUNIT_EXPECT_EQ(test, fi_send(a->ep, t->out, 8, NULL, a->peer[1], NULL),
			-EINVAL);
	KUNIT_ASSERT_EQ(test, fi_av_insert(a->av, &b->name, 1, &a->peer[1], 0,
					   NULL), 1);
	/* the message went with the connection, at the other end perhaps later */
	KUNIT_ASSERT_EQ(test, fi_trecv(b->ep, t->in, 8, NULL, FI_ADDR_UNSPEC, 9,
				       0, t->in), 0);
	do {
		KUNIT_ASSERT_EQ(test, fi_tsend(a->ep, t->out, 8, NULL,
					       a->peer[1], 9, t->out), 0);
	} while (rxt_comp(a->tx, &e, NULL));
	rxt_expect(test, b->rx, t->in, 0);
}

/* Closing ends all there is, once. */
static void rxt_closed(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0];
	fi_addr_t nobody = rxt_nobody(test, a);
	struct fi_cq_err_entry e;
	int i;

	rxt_exchange(test, 100, false, false);
	for (i = 0; i < 4; i++) {
		KUNIT_ASSERT_EQ(test, fi_send(a->ep, t->out, SZ_1M, NULL,
					      a->peer[1], NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_send(a->ep, t->out, 8, NULL, nobody,
					      NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_recv(a->ep, t->in, 8, NULL,
					      FI_ADDR_UNSPEC, NULL), 0);
	}
	KUNIT_EXPECT_EQ(test, fi_close(&a->ep->fid), 0);
	a->ep = NULL;
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_GT(test, rxt_comp(a->tx, &e, NULL), 0);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, rxt_comp(a->rx, &e, NULL), ECANCELED);
	KUNIT_EXPECT_EQ(test, fi_cq_read(a->tx, &e, 1), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fi_cq_read(a->rx, &e, 1), -EAGAIN);
}

/* What connections are told is what the provider below takes. */
static void rxt_values(struct kunit *test)
{
	struct rxt *t = test->priv;
	unsigned int val = 0, idle;
	struct fid_ep *ep;

	KUNIT_ASSERT_EQ(test, fi_endpoint(t->domain, t->info, &ep, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_get_val(&ep->fid, KOFI_VAL_KEEPALIVE_IDLE,
					 &idle), 0);
	val = idle + 1000;
	KUNIT_EXPECT_EQ(test, fi_set_val(&ep->fid, KOFI_VAL_KEEPALIVE_IDLE,
					 &val), 0);
	KUNIT_EXPECT_EQ(test, fi_get_val(&ep->fid, KOFI_VAL_KEEPALIVE_IDLE,
					 &idle), 0);
	KUNIT_EXPECT_EQ(test, idle, val);
	val = 0;
	KUNIT_EXPECT_EQ(test, fi_set_val(&ep->fid, KOFI_VAL_CONNECT_TIMEOUT,
					 &val), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_set_val(&ep->fid, 1, &val), -ENOSYS);
	val = 1;
	KUNIT_EXPECT_EQ(test, fi_set_val(&ep->fid, KOFI_VAL_RECLAIM_SAFE, &val),
			-ENOSYS);
	KUNIT_EXPECT_EQ(test, fi_set_val(&ep->fid, FI_PROV_SPECIFIC | 99, &val),
			-ENOSYS);
	KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_set_val(&t->end[0].ep->fid,
					 KOFI_VAL_KEEPALIVE_IDLE, &idle),
			-EBUSY);
}

/* Half of the records are for those that have a connection. */
static void rxt_half(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0];
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		/* TEST-NET-1: from the loopback device it cannot be reached */
		.sin_addr.s_addr = htonl(0xc0000201),
		.sin_port = htons(9),
	};
	struct fi_cq_err_entry e;
	fi_addr_t far;
	ssize_t err;
	int i;

	rxt_exchange(test, 8, false, false);
	KUNIT_ASSERT_EQ(test, fi_av_insert(a->av, &addr, 1, &far, 0, NULL), 1);
	/* the work item cannot end them all before the last is posted */
	for (i = 0; i < RXT_TX; i++) {
		err = fi_send(a->ep, t->out, 8, NULL, far, NULL);
		if (err)
			break;
	}
	if (err) {
		KUNIT_EXPECT_EQ(test, err, -EAGAIN);
		KUNIT_EXPECT_GE(test, i, RXT_TX / 2);
	}
	while (i--)
		KUNIT_EXPECT_EQ(test, rxt_comp(a->tx, &e, NULL), ENETUNREACH);
	rxt_exchange(test, 8, false, false);
}

/* ----------------------------------------------------------------- discovery */

/* Hints that name no provider get the native one, and this one for what that lacks. */
static void rxt_found(struct kunit *test)
{
	static const char *const first[] = { "sock", "sock;ofi_rxm" };
	struct fi_info *hints, *info, *one;
	int i;

	for (i = 0; i < ARRAY_SIZE(first); i++) {
		hints = fi_allocinfo();
		info = NULL;
		KUNIT_ASSERT_NOT_NULL(test, hints);
		hints->caps = FI_MSG | (i ? FI_ATOMIC : 0);
		hints->ep_attr->type = FI_EP_RDM;
		hints->domain_attr->name = kstrdup("lo", GFP_KERNEL);
		KUNIT_EXPECT_EQ(test, fi_getinfo(FI_VERSION(2, 1), NULL, NULL,
						 0, hints, &info), 0);
		fi_freeinfo(hints);
		KUNIT_ASSERT_NOT_NULL(test, info);
		KUNIT_EXPECT_STREQ(test, info->fabric_attr->prov_name,
				   first[i]);
		for (one = info; i && one; one = one->next)
			KUNIT_EXPECT_STREQ(test, one->fabric_attr->prov_name,
					   first[i]);
		fi_freeinfo(info);
	}
}

/* ------------------------------------------------------------ remote memory */

static void rxt_rma(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0];
	const size_t len = SZ_64K;
	struct fi_cq_err_entry e;
	struct fid_mr *mr;
	u64 base;

	KUNIT_ASSERT_EQ(test, fi_mr_reg(t->domain, t->in, len,
					FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0,
					0, &mr, NULL), 0);
	base = kofi_mr_base(mr);
	rxt_pattern(t->out, len, 1);
	memset(t->in, 0, len);
	/* connects */
	KUNIT_ASSERT_EQ(test, fi_write(a->ep, t->out, len, NULL, a->peer[1],
				       base, fi_mr_key(mr), t->out), 0);
	KUNIT_ASSERT_EQ(test, rxt_comp(a->tx, &e, NULL), 0);
	KUNIT_EXPECT_EQ(test, e.flags, FI_RMA | FI_WRITE);
	memset(t->out, 0, len);
	KUNIT_ASSERT_EQ(test, fi_read(a->ep, t->out, len, NULL, a->peer[1],
				      base, fi_mr_key(mr), t->out), 0);
	KUNIT_ASSERT_EQ(test, rxt_comp(a->tx, &e, NULL), 0);
	KUNIT_EXPECT_EQ(test, e.flags, FI_RMA | FI_READ);
	KUNIT_EXPECT_EQ(test, rxt_differs(t->in, len, 1), len);
	KUNIT_EXPECT_EQ(test, rxt_differs(t->out, len, 1), len);

	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	KUNIT_ASSERT_EQ(test, fi_read(a->ep, t->out, len, NULL, a->peer[1],
				      base, 12345, t->out), 0);
	KUNIT_EXPECT_EQ(test, rxt_comp(a->tx, &e, NULL), ECONNRESET);
	rxt_exchange(test, 8, false, false);
}

/* One that is to wait for those before it does, also if they wait for the peer. */
static void rxt_fence(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0], *b = &t->end[1];
	struct kvec kv = { .iov_base = t->out, .iov_len = 8 };
	const struct fi_msg_tagged fenced = {
		.msg_iov = &kv, .iov_count = 1, .addr = a->peer[1], .tag = 2,
		.context = b,
	};
	struct fi_msg_tagged peek = { .addr = FI_ADDR_UNSPEC, .tag = 1,
				      .context = t };
	struct fi_cq_err_entry e;
	int i;

	KUNIT_ASSERT_EQ(test, fi_trecv(b->ep, t->in, 8, NULL, FI_ADDR_UNSPEC, 2,
				       0, b), 0);
	KUNIT_ASSERT_EQ(test, fi_tsend(a->ep, t->out, SZ_1M, NULL, a->peer[1],
				       1, a), 0);
	KUNIT_ASSERT_EQ(test, fi_tsendmsg(a->ep, &fenced, FI_FENCE |
					  FI_COMPLETION), 0);
	do {
		cond_resched();
		KUNIT_ASSERT_EQ(test, fi_trecvmsg(b->ep, &peek, FI_PEEK), 0);
	} while (rxt_comp(b->rx, &e, NULL) == FI_ENOMSG);
	/* the other way the connection goes on */
	for (i = 0; i < 20; i++) {
		KUNIT_ASSERT_EQ(test, fi_recv(a->ep, t->in + SZ_1M, 8, NULL,
					      FI_ADDR_UNSPEC, NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_inject(b->ep, t->out, 8, b->peer[0]),
				0);
		rxt_expect(test, a->rx, NULL, 0);
	}
	KUNIT_EXPECT_EQ(test, fi_cq_read(a->tx, &e, 1), -EAGAIN);
	KUNIT_ASSERT_EQ(test, fi_trecv(b->ep, t->in + SZ_1M, SZ_1M, NULL,
				       FI_ADDR_UNSPEC, 1, 0, a), 0);
	rxt_expect(test, a->tx, a, 0);
	rxt_expect(test, a->tx, b, 0);
	rxt_expect(test, b->rx, a, 0);
	rxt_expect(test, b->rx, b, 0);
}

/* -------------------------------------------------- receives of all kinds */

static void rxt_matching(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0], *b = &t->end[1], *c = &t->end[2];
	struct fi_cq_err_entry e;
	struct fi_msg_tagged peek = { .addr = FI_ADDR_UNSPEC, .tag = 5,
				      .context = t };
	fi_addr_t src;

	/* for one sender */
	KUNIT_ASSERT_EQ(test, fi_recv(b->ep, t->in, 8, NULL, b->peer[2], c), 0);
	KUNIT_ASSERT_EQ(test, fi_recv(b->ep, t->in, 8, NULL, b->peer[0], a), 0);
	KUNIT_ASSERT_EQ(test, fi_inject(a->ep, t->out, 8, a->peer[1]), 0);
	rxt_expect(test, b->rx, a, 0);
	KUNIT_ASSERT_EQ(test, fi_inject(c->ep, t->out, 8, c->peer[1]), 0);
	rxt_expect(test, b->rx, c, 0);

	/* look, then take; of each way a message goes */
	KUNIT_ASSERT_EQ(test, fi_tsend(a->ep, t->out, RXM_SAR, NULL, a->peer[1],
				       5, a), 0);
	do {
		cond_resched();
		KUNIT_ASSERT_EQ(test, fi_trecvmsg(b->ep, &peek, FI_PEEK), 0);
	} while (rxt_comp(b->rx, &e, &src) == FI_ENOMSG);
	KUNIT_EXPECT_EQ(test, e.len, RXM_SAR);
	KUNIT_EXPECT_EQ(test, src, b->peer[0]);
	KUNIT_ASSERT_EQ(test, fi_trecvmsg(b->ep, &peek, FI_PEEK | FI_DISCARD),
			0);
	rxt_expect(test, b->rx, t, 0);
	rxt_expect(test, a->tx, a, 0);

	KUNIT_ASSERT_EQ(test, fi_tsend(a->ep, t->out, RXT_BIG, NULL, a->peer[1],
				       5, a), 0);
	do {
		cond_resched();
		KUNIT_ASSERT_EQ(test, fi_trecvmsg(b->ep, &peek, FI_PEEK |
						  FI_DISCARD), 0);
	} while (rxt_comp(b->rx, &e, &src) == FI_ENOMSG);
	KUNIT_EXPECT_EQ(test, e.len, RXT_BIG);
	rxt_expect(test, a->tx, a, 0);

	/* cancel */
	KUNIT_ASSERT_EQ(test, fi_trecv(b->ep, t->in, 8, NULL, FI_ADDR_UNSPEC, 1,
				       0, t->in), 0);
	KUNIT_EXPECT_EQ(test, fi_cancel(&b->ep->fid, t->in), 0);
	rxt_expect(test, b->rx, t->in, ECANCELED);
	KUNIT_EXPECT_EQ(test, fi_cancel(&b->ep->fid, t->in), -ENOENT);
}

/* One buffer for many messages */
static void rxt_multi(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0], *b = &t->end[1];
	const struct kvec kv = { .iov_base = t->in, .iov_len = SZ_1M };
	const struct fi_msg msg = {
		.msg_iov = &kv, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
		.context = t->in,
	};
	static const size_t lens[] = { 100, 40000, 300000, 7, SZ_1M };
	struct fi_cq_err_entry e;
	size_t off = 0;
	int i;

	KUNIT_ASSERT_EQ(test, fi_recvmsg(b->ep, &msg, FI_MULTI_RECV |
					 FI_COMPLETION), 0);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		bool last = i == ARRAY_SIZE(lens) - 1;

		rxt_pattern(t->out, lens[i], i);
		KUNIT_ASSERT_EQ(test, fi_send(a->ep, t->out, lens[i], NULL,
					      a->peer[1], NULL), 0);
		KUNIT_ASSERT_EQ(test, rxt_comp(b->rx, &e, NULL),
				last ? FI_ETRUNC : 0);
		KUNIT_EXPECT_PTR_EQ(test, e.buf, (void *)(t->in + off));
		KUNIT_EXPECT_EQ(test, rxt_differs(e.buf, e.len, i), e.len);
		KUNIT_EXPECT_EQ(test, !!(e.flags & FI_MULTI_RECV), last);
		rxt_expect(test, a->tx, NULL, 0);
		off += e.len;
	}
	KUNIT_EXPECT_EQ(test, off, SZ_1M);
}

/*
 * One buffer for messages that are fetched, and no slot for most of them: they wait
 * for one, and are woken more than once.
 */
static void rxt_multi_slots(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0], *b = &t->end[1];
	const struct kvec kv = { .iov_base = t->in, .iov_len = RXT_BIG };
	const struct fi_msg msg = {
		.msg_iov = &kv, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
		.context = t->in,
	};
	unsigned long end = jiffies + msecs_to_jiffies(RXT_TIMEOUT);
	const size_t len = RXM_SAR + 1;
	struct fi_cq_err_entry e;
	int i;

	rxt_close_end(test, b);
	t->rx_slots = 2;
	rxt_open_end(test, t, b);
	KUNIT_ASSERT_EQ(test, fi_av_insert(a->av, &b->name, 1, &a->peer[1], 0,
					   NULL), 1);
	KUNIT_ASSERT_EQ(test, fi_recvmsg(b->ep, &msg, FI_MULTI_RECV |
					 FI_COMPLETION), 0);
	rxt_pattern(t->out, len, 1);
	for (i = 0; i < 8; i++)
		KUNIT_ASSERT_EQ(test, fi_send(a->ep, t->out, len, NULL,
					      a->peer[1], NULL), 0);
	while (!rxt_stat(b->ep, "rx_unexpected") && time_before(jiffies, end))
		cond_resched();
	KUNIT_EXPECT_GT(test, rxt_stat(b->ep, "rx_unexpected"), 0);
	for (i = 0; i < 8; i++) {
		KUNIT_ASSERT_EQ(test, rxt_comp(b->rx, &e, NULL), 0);
		KUNIT_EXPECT_EQ(test, e.len, len);
		KUNIT_EXPECT_EQ(test, rxt_differs(e.buf, len, 1), len);
	}
	for (i = 0; i < 8; i++)
		rxt_expect(test, a->tx, NULL, 0);
}

/* More unexpected messages than there are buffers: none is lost. */
static void rxt_flood(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0], *b = &t->end[1];
	const int total = 1000;
	struct fi_cq_err_entry e;
	int sent = 0, got, n;
	ssize_t err;

	/* until nothing more is taken, then with receives */
	for (got = 0; got < total; ) {
		err = sent < total ? fi_inject(a->ep, &sent, sizeof(sent),
					       a->peer[1]) : -EAGAIN;
		if (!err) {
			sent++;
			continue;
		}
		KUNIT_ASSERT_EQ(test, err, -EAGAIN);
		KUNIT_ASSERT_EQ(test, fi_recv(b->ep, &n, sizeof(n), NULL,
					      FI_ADDR_UNSPEC, NULL), 0);
		KUNIT_ASSERT_EQ(test, rxt_comp(b->rx, &e, NULL), 0);
		KUNIT_ASSERT_EQ(test, n, got);
		got++;
	}
	rxt_held(test, b, 0);
}

struct rxt_call {
	struct kofi_cqe		cqe;
	struct completion	done;
	struct rxt_end		*end;
	struct rxt_call		*answer;
	int			err;
	bool			within;
};

static void rxt_called(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct rxt_call *call = container_of(wc->cqe, struct rxt_call, cqe);
	struct rxt_end *e = call->end;
	struct rxm_conn *c = list_first_entry(&rxm_ep(e->ep)->conns,
					      struct rxm_conn, list);

	/* of the queue of its connection below */
	call->within |= kofi_cq_calls_caller(kofi_cq(c->cq));
	if (call->answer)
		call->err = fi_send(e->ep, call, 8, NULL, e->peer[0],
				    &call->answer->cqe);
	complete(&call->done);
}

/* Consumers are called by the callback that has brought the completion. */
static void rxt_called_within(struct kunit *test)
{
	struct rxt *t = test->priv;
	struct rxt_end *a = &t->end[0], *b = &t->end[1];
	unsigned long end = jiffies + msecs_to_jiffies(RXT_TIMEOUT);
	struct rxt_call *call = kunit_kcalloc(test, 3, sizeof(*call),
					      GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, call);
	t->calls = true;
	for (i = 0; i < 2; i++) {
		rxt_close_end(test, &t->end[i]);
		rxt_open_end(test, t, &t->end[i]);
	}
	rxt_introduce(test, t);
	/* a message that is received, its answer sent, and received */
	for (i = 0; i < 3; i++) {
		call[i].cqe.done = rxt_called;
		call[i].end = i < 2 ? b : a;
		init_completion(&call[i].done);
	}
	call[0].answer = &call[1];
	/* but if another context is about to call */
	do {
		KUNIT_ASSERT_EQ(test, fi_recv(b->ep, t->in, 8, NULL,
					      FI_ADDR_UNSPEC, &call[0].cqe), 0);
		KUNIT_ASSERT_EQ(test, fi_recv(a->ep, t->in + 8, 8, NULL,
					      FI_ADDR_UNSPEC, &call[2].cqe), 0);
		KUNIT_ASSERT_EQ(test, fi_inject(a->ep, t->out, 8, a->peer[1]),
				0);
		for (i = 0; i < 3; i++) {
			wait_for_completion(&call[i].done);
			KUNIT_ASSERT_EQ(test, call[i].err, 0);
		}
	} while (!(call[0].within && call[1].within) &&
		 time_before(jiffies, end));
	KUNIT_EXPECT_TRUE(test, call[0].within);
	KUNIT_EXPECT_TRUE(test, call[1].within);
}

static struct kunit_case rxt_cases[] = {
	KUNIT_CASE(rxt_lengths),
	KUNIT_CASE(rxt_unexpected),
	KUNIT_CASE_SLOW(rxt_longest),
	KUNIT_CASE(rxt_truncated),
	KUNIT_CASE(rxt_order),
	KUNIT_CASE(rxt_memory),
	KUNIT_CASE(rxt_injected),
	KUNIT_CASE(rxt_mesh),
	KUNIT_CASE(rxt_wildcard),
	KUNIT_CASE(rxt_inject_size),
	KUNIT_CASE(rxt_options),
	KUNIT_CASE(rxt_refused),
	KUNIT_CASE(rxt_restarted),
	KUNIT_CASE(rxt_removed),
	KUNIT_CASE(rxt_closed),
	KUNIT_CASE(rxt_values),
	KUNIT_CASE(rxt_half),
	KUNIT_CASE(rxt_found),
	KUNIT_CASE(rxt_rma),
	KUNIT_CASE(rxt_fence),
	KUNIT_CASE(rxt_matching),
	KUNIT_CASE(rxt_multi),
	KUNIT_CASE(rxt_multi_slots),
	KUNIT_CASE(rxt_flood),
	KUNIT_CASE(rxt_called_within),
	{}
};

static struct kunit_suite rxt_suite = {
	.name = "rxm",
	.suite_init = lo_suite_init,
	.init = rxt_init,
	.exit = rxt_exit,
	.test_cases = rxt_cases,
};

kunit_test_suite(rxt_suite);

MODULE_DESCRIPTION("KUnit tests for kofi_rxm");
MODULE_LICENSE("Dual BSD/GPL");

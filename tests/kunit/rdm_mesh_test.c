// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A mesh of endpoints that do not connect, over each provider of them.
 *
 * Each sends messages, tagged ones too, to all others and itself, and writes and
 * reads their memory, as chance has it. A message says who has sent it and which of
 * its sender's it is, and all of its bytes follow from that. The last endpoint is
 * closed and opened again at its address now and then; of the others nothing may be
 * lost, doubled or out of order, and each operation completes once, in any case.
 */
#include <linux/jiffies.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include <linux/kofi/lib.h>

#include "kunit.h"
#include "limit.h"

#define MESH_ENDS	4
#define MESH_MORTAL	(MESH_ENDS - 1)	/* is closed and opened again */
#define MESH_SENDS	16		/* at a time, of each */
#define MESH_RECVS	8		/* of a kind, of each */
#define MESH_LEN	140000		/* rxm's longest way to send begins below it */
#define MESH_SLOT	4096		/* of a region, for one operation */
#define MESH_ROUNDS	1200
#define MESH_CLOSE	150		/* rounds between closes */
#define MESH_TIMEOUT	TEST_LIMIT(60000)	/* milliseconds; as it should be it takes few */

enum mesh_kind {
	MESH_MSG,
	MESH_TAGGED,
	MESH_RMA,	/* a write, and a read of the same */
	MESH_KINDS
};

/* What a message begins with */
struct mesh_hdr {
	u32	from;
	u32	seq;
	u32	len;
};

struct mesh_op {
	bool		used;
	enum mesh_kind	kind;
	int		peer;
	int		left;	/* completions to come */
	int		err;
	size_t		len;
	u32		seed;
	u8		*buf;
};

struct mesh_recv {
	bool		done;
	int		err;
	size_t		len;
	fi_addr_t	src;
	u8		*buf;
};

struct mesh_end {
	struct fid_ep		*ep;
	struct fid_cq		*tx;
	struct fid_cq		*rx;
	struct fid_av		*av;
	struct fid_mr		*mr;
	struct sockaddr_in	name;
	u8			*mem;	/* of @mr */
	struct mesh_op		ops[MESH_SENDS];
	struct mesh_recv	recvs[MESH_RMA][MESH_RECVS];
	unsigned int		first[MESH_RMA];	/* receive posted longest ago */
	u32			sent[MESH_RMA][MESH_ENDS];
	u32			seen[MESH_RMA][MESH_ENDS];
};

struct mesh {
	struct kunit		*test;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct mesh_end		end[MESH_ENDS];
	struct rnd_state	rnd;
	unsigned int		messages;
	unsigned int		accesses;
};

static const char *const mesh_providers[] = { "sock", "sock;ofi_rxm" };

static void mesh_desc(const char *const *name, char *desc)
{
	strscpy(desc, *name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(mesh, mesh_providers, mesh_desc);

/* ----------------------------------------------------------------- content */

static u32 mesh_seed(u32 from, u32 seq)
{
	return from * 101 + seq * 31;
}

static void mesh_fill(u8 *buf, size_t len, u32 seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = seed + i * 7 + (i >> 8);
}

static bool mesh_filled(const u8 *buf, size_t len, u32 seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (buf[i] != (u8)(seed + i * 7 + (i >> 8)))
			return false;
	return true;
}

static bool mesh_live(int a, int b)
{
	return a != MESH_MORTAL && b != MESH_MORTAL;
}

/* ---------------------------------------------------------------- receives */

static void mesh_recv_post(struct mesh *m, int at, enum mesh_kind kind,
			   struct mesh_recv *r)
{
	struct mesh_end *e = &m->end[at];

	r->done = false;
	KUNIT_ASSERT_EQ(m->test, kind == MESH_TAGGED ?
			fi_trecv(e->ep, r->buf, MESH_LEN, NULL, FI_ADDR_UNSPEC,
				 0, ~0ULL, r) :
			fi_recv(e->ep, r->buf, MESH_LEN, NULL, FI_ADDR_UNSPEC,
				r), 0);
}

static void mesh_recv_check(struct mesh *m, int at, enum mesh_kind kind,
			    const struct mesh_recv *r)
{
	struct mesh_end *e = &m->end[at];
	struct mesh_hdr hdr;
	u32 *seen;

	KUNIT_ASSERT_GE(m->test, r->len, sizeof(hdr));
	memcpy(&hdr, r->buf, sizeof(hdr));
	KUNIT_ASSERT_LT(m->test, hdr.from, MESH_ENDS);
	KUNIT_EXPECT_EQ(m->test, r->src, hdr.from);
	KUNIT_EXPECT_EQ(m->test, r->len, hdr.len);
	KUNIT_EXPECT_TRUE(m->test, mesh_filled(r->buf + sizeof(hdr), r->len -
					       sizeof(hdr),
					       mesh_seed(hdr.from, hdr.seq)));
	seen = &e->seen[kind][hdr.from];
	if (mesh_live(at, hdr.from))
		KUNIT_ASSERT_EQ(m->test, hdr.seq, *seen + 1);
	else
		KUNIT_ASSERT_GT(m->test, hdr.seq, *seen);
	*seen = hdr.seq;
	m->messages++;
}

/* Messages take receives in the order these were posted. */
static void mesh_recvs(struct mesh *m, int at, enum mesh_kind kind)
{
	struct mesh_end *e = &m->end[at];
	struct mesh_recv *r;

	for (;;) {
		r = &e->recvs[kind][e->first[kind]];
		if (!r->done)
			return;
		/* one whose sender, or whose own endpoint, has been closed */
		if (!r->err)
			mesh_recv_check(m, at, kind, r);
		if (e->ep)
			mesh_recv_post(m, at, kind, r);
		else
			r->done = false;
		e->first[kind] = (e->first[kind] + 1) % MESH_RECVS;
	}
}

/* --------------------------------------------------------------- transmits */

static struct mesh_op *mesh_op_get(struct mesh_end *e)
{
	int i;

	for (i = 0; i < MESH_SENDS; i++)
		if (!e->ops[i].used)
			return &e->ops[i];
	return NULL;
}

static size_t mesh_length(struct mesh *m)
{
	static const size_t max[] = {
		100, 100, 2000, 2000, 2000, 2000, 20000, MESH_LEN,
	};
	size_t most = max[prandom_u32_state(&m->rnd) % ARRAY_SIZE(max)];

	return sizeof(struct mesh_hdr) + prandom_u32_state(&m->rnd) %
	       (most - sizeof(struct mesh_hdr) + 1);
}

static ssize_t mesh_send(struct mesh *m, int at, struct mesh_op *op)
{
	struct mesh_end *e = &m->end[at];
	u32 *sent = &e->sent[op->kind][op->peer];
	struct mesh_hdr hdr = { .from = at, .seq = *sent + 1 };
	ssize_t err;

	op->left = 1;
	op->len = mesh_length(m);
	hdr.len = op->len;
	memcpy(op->buf, &hdr, sizeof(hdr));
	mesh_fill(op->buf + sizeof(hdr), op->len - sizeof(hdr),
		  mesh_seed(at, hdr.seq));
	err = op->kind == MESH_TAGGED ?
	      fi_tsend(e->ep, op->buf, op->len, NULL, op->peer, hdr.seq, op) :
	      fi_send(e->ep, op->buf, op->len, NULL, op->peer, op);
	*sent += !err;
	return err;
}

static ssize_t mesh_access(struct mesh *m, int at, struct mesh_op *op)
{
	struct mesh_end *e = &m->end[at], *peer = &m->end[op->peer];
	u64 addr = kofi_mr_base(peer->mr) +
		   (at * MESH_SENDS + (op - e->ops)) * MESH_SLOT;
	u8 *back = op->buf + MESH_SLOT;
	ssize_t err;

	op->len = 1 + prandom_u32_state(&m->rnd) % MESH_SLOT;
	op->seed = prandom_u32_state(&m->rnd);
	mesh_fill(op->buf, op->len, op->seed);
	memset(back, ~op->buf[0], op->len);
	op->left = 1;
	err = fi_write(e->ep, op->buf, op->len, NULL, op->peer, addr,
		       fi_mr_key(peer->mr), op);
	if (err)
		return err;
	/* without the read nothing is looked at */
	err = fi_read(e->ep, back, op->len, NULL, op->peer, addr,
		      fi_mr_key(peer->mr), op);
	op->left += !err;
	if (err)
		op->err = EAGAIN;
	return 0;
}

static void mesh_op_end(struct mesh *m, int at, struct mesh_op *op, int err)
{
	KUNIT_ASSERT_TRUE(m->test, op->used);
	KUNIT_ASSERT_GT(m->test, op->left, 0);
	if (mesh_live(at, op->peer))
		KUNIT_EXPECT_EQ(m->test, err, 0);
	op->err = op->err ?: err;
	if (--op->left)
		return;
	op->used = false;
	if (op->kind != MESH_RMA || op->err || !mesh_live(at, op->peer))
		return;
	KUNIT_EXPECT_TRUE(m->test, mesh_filled(op->buf + MESH_SLOT, op->len,
					       op->seed));
	m->accesses++;
}

/* One operation of one endpoint, unless it has to wait */
static void mesh_post(struct mesh *m)
{
	int at = prandom_u32_state(&m->rnd) % MESH_ENDS;
	struct mesh_op *op = mesh_op_get(&m->end[at]);
	ssize_t err;

	if (!op)
		return;
	op->peer = prandom_u32_state(&m->rnd) % MESH_ENDS;
	op->kind = prandom_u32_state(&m->rnd) % MESH_KINDS;
	op->err = 0;
	op->used = true;
	err = op->kind == MESH_RMA ? mesh_access(m, at, op) :
				     mesh_send(m, at, op);
	if (!err)
		return;
	op->used = false;
	KUNIT_ASSERT_EQ(m->test, err, -EAGAIN);
}

/* ------------------------------------------------------------- completions */

/* The next completion of a queue: its context, or NULL for none */
static void *mesh_read(struct fid_cq *cq, int *err, size_t *len, fi_addr_t *src)
{
	struct fi_cq_err_entry error = {};
	struct fi_cq_tagged_entry entry;
	ssize_t n = fi_cq_readfrom(cq, &entry, 1, src);

	*err = 0;
	if (n == -FI_EAVAIL && fi_cq_readerr(cq, &error, 0) == 1) {
		*err = error.err;
		return error.op_context;
	}
	if (n != 1)
		return NULL;
	*len = entry.len;
	return entry.op_context;
}

static void mesh_progress_one(struct mesh *m, int at)
{
	struct mesh_end *e = &m->end[at];
	struct mesh_recv *r;
	struct mesh_op *op;
	size_t len = 0;
	fi_addr_t src;
	int err;

	while ((op = mesh_read(e->tx, &err, &len, &src)))
		mesh_op_end(m, at, op, err);
	while ((r = mesh_read(e->rx, &err, &len, &src))) {
		KUNIT_ASSERT_FALSE(m->test, r->done);
		r->done = true;
		r->err = err;
		r->len = len;
		r->src = src;
	}
	mesh_recvs(m, at, MESH_MSG);
	mesh_recvs(m, at, MESH_TAGGED);
}

static void mesh_progress(struct mesh *m)
{
	int i;

	for (i = 0; i < MESH_ENDS; i++)
		mesh_progress_one(m, i);
	cond_resched();
}

static bool mesh_idle(const struct mesh_end *e)
{
	int i;

	for (i = 0; i < MESH_SENDS; i++)
		if (e->ops[i].used)
			return false;
	return true;
}

/* All transmits have ended, and all messages between live ones have arrived. */
static bool mesh_settled(const struct mesh *m)
{
	int i, j, kind;

	for (i = 0; i < MESH_ENDS; i++) {
		if (!mesh_idle(&m->end[i]))
			return false;
		for (j = 0; j < MESH_ENDS; j++)
			for (kind = 0; kind < MESH_RMA; kind++)
				if (mesh_live(i, j) &&
				    m->end[i].sent[kind][j] !=
				    m->end[j].seen[kind][i])
					return false;
	}
	return true;
}

/* ----------------------------------------------------------------- objects */

static void mesh_open_ep(struct mesh *m, int at)
{
	struct mesh_end *e = &m->end[at];
	void *old = m->info->src_addr;
	size_t len = sizeof(e->name);
	int kind, i;

	if (e->name.sin_port)
		m->info->src_addr = &e->name;
	KUNIT_ASSERT_EQ(m->test, fi_endpoint(m->domain, m->info, &e->ep, NULL),
			0);
	m->info->src_addr = old;
	KUNIT_ASSERT_EQ(m->test, fi_ep_bind(e->ep, &e->av->fid, 0), 0);
	KUNIT_ASSERT_EQ(m->test, fi_ep_bind(e->ep, &e->tx->fid, FI_TRANSMIT),
			0);
	KUNIT_ASSERT_EQ(m->test, fi_ep_bind(e->ep, &e->rx->fid, FI_RECV), 0);
	KUNIT_ASSERT_EQ(m->test, fi_enable(e->ep), 0);
	KUNIT_ASSERT_EQ(m->test, fi_getname(&e->ep->fid, &e->name, &len), 0);
	for (kind = 0; kind < MESH_RMA; kind++) {
		e->first[kind] = 0;
		for (i = 0; i < MESH_RECVS; i++)
			mesh_recv_post(m, at, kind, &e->recvs[kind][i]);
	}
}

/* Closed, with an error for all that it had; and opened at the same address */
static void mesh_reopen(struct mesh *m, int at)
{
	struct mesh_end *e = &m->end[at];

	KUNIT_ASSERT_EQ(m->test, fi_close(&e->ep->fid), 0);
	e->ep = NULL;
	mesh_progress_one(m, at);
	KUNIT_ASSERT_TRUE(m->test, mesh_idle(e));
	mesh_open_ep(m, at);
}

static void mesh_open_end(struct mesh *m, int at)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };
	const size_t mem = MESH_ENDS * MESH_SENDS * MESH_SLOT;
	struct mesh_end *e = &m->end[at];
	int kind, i;

	KUNIT_ASSERT_EQ(m->test, fi_cq_open(m->domain, &attr, &e->tx, NULL), 0);
	KUNIT_ASSERT_EQ(m->test, fi_cq_open(m->domain, &attr, &e->rx, NULL), 0);
	KUNIT_ASSERT_EQ(m->test, fi_av_open(m->domain, &(struct fi_av_attr) {},
					    &e->av, NULL), 0);
	e->mem = vzalloc(mem);
	KUNIT_ASSERT_NOT_NULL(m->test, e->mem);
	KUNIT_ASSERT_EQ(m->test, fi_mr_reg(m->domain, e->mem, mem,
					   FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
					   0, 0, &e->mr, NULL), 0);
	for (i = 0; i < MESH_SENDS; i++) {
		e->ops[i].buf = vmalloc(MESH_LEN);
		KUNIT_ASSERT_NOT_NULL(m->test, e->ops[i].buf);
	}
	for (kind = 0; kind < MESH_RMA; kind++) {
		for (i = 0; i < MESH_RECVS; i++) {
			e->recvs[kind][i].buf = vmalloc(MESH_LEN);
			KUNIT_ASSERT_NOT_NULL(m->test, e->recvs[kind][i].buf);
		}
	}
	mesh_open_ep(m, at);
}

static void mesh_close_end(struct mesh *m, int at)
{
	struct mesh_end *e = &m->end[at];
	int kind, i;

	if (e->ep)
		KUNIT_EXPECT_EQ(m->test, fi_close(&e->ep->fid), 0);
	if (e->mr)
		KUNIT_EXPECT_EQ(m->test, fi_close(&e->mr->fid), 0);
	if (e->av)
		KUNIT_EXPECT_EQ(m->test, fi_close(&e->av->fid), 0);
	if (e->tx)
		KUNIT_EXPECT_EQ(m->test, fi_close(&e->tx->fid), 0);
	if (e->rx)
		KUNIT_EXPECT_EQ(m->test, fi_close(&e->rx->fid), 0);
	vfree(e->mem);
	for (i = 0; i < MESH_SENDS; i++)
		vfree(e->ops[i].buf);
	for (kind = 0; kind < MESH_RMA; kind++)
		for (i = 0; i < MESH_RECVS; i++)
			vfree(e->recvs[kind][i].buf);
}

static void mesh_close(void *arg)
{
	struct mesh *m = arg;
	int i;

	for (i = 0; i < MESH_ENDS; i++)
		mesh_close_end(m, i);
	if (m->domain)
		KUNIT_EXPECT_EQ(m->test, fi_close(&m->domain->fid), 0);
	if (m->fabric)
		KUNIT_EXPECT_EQ(m->test, fi_close(&m->fabric->fid), 0);
	fi_freeinfo(m->info);
	vfree(m);
}

static struct mesh *mesh_open(struct kunit *test, const char *provider)
{
	struct fi_info *hints = fi_allocinfo();
	struct mesh *m = vzalloc(sizeof(*m));
	fi_addr_t addr;
	int i, j;

	KUNIT_ASSERT_NOT_NULL(test, m);
	m->test = test;
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, mesh_close, m),
			0);
	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_SOURCE;
	hints->ep_attr->type = FI_EP_RDM;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = kstrdup(provider, GFP_KERNEL);
	hints->domain_attr->name = kstrdup("lo", GFP_KERNEL);
	KUNIT_ASSERT_EQ(test, fi_getinfo(FI_VERSION(2, 1), "127.0.0.1", "0",
					 FI_SOURCE | FI_NUMERICHOST, hints,
					 &m->info), 0);
	fi_freeinfo(hints);
	KUNIT_ASSERT_EQ(test, fi_fabric(m->info->fabric_attr, &m->fabric, NULL),
			0);
	KUNIT_ASSERT_EQ(test, fi_domain(m->fabric, m->info, &m->domain, NULL),
			0);
	for (i = 0; i < MESH_ENDS; i++)
		mesh_open_end(m, i);
	for (i = 0; i < MESH_ENDS; i++) {
		for (j = 0; j < MESH_ENDS; j++) {
			KUNIT_ASSERT_EQ(test, fi_av_insert(m->end[i].av,
							   &m->end[j].name, 1,
							   &addr, 0, NULL), 1);
			KUNIT_ASSERT_EQ(test, addr, j);
		}
	}
	return m;
}

/* -------------------------------------------------------------------- test */

static void rdm_mesh(struct kunit *test)
{
	struct mesh *m = mesh_open(test, *(const char *const *)
				   test->param_value);
	unsigned long end;
	int i;

	prandom_seed_state(&m->rnd, 4711);
	for (i = 1; i <= MESH_ROUNDS; i++) {
		mesh_post(m);
		if (i % 4 == 0)
			mesh_progress(m);
		if (i % MESH_CLOSE == 0)
			mesh_reopen(m, MESH_MORTAL);
	}
	end = jiffies + msecs_to_jiffies(MESH_TIMEOUT);
	while (!mesh_settled(m) && time_before(jiffies, end))
		mesh_progress(m);
	KUNIT_EXPECT_TRUE(test, mesh_settled(m));
	/* chance has not left out a kind */
	KUNIT_EXPECT_GT(test, m->messages, 100);
	KUNIT_EXPECT_GT(test, m->accesses, 10);
	kunit_info(test, "%u messages, %u accesses", m->messages, m->accesses);
}

static struct kunit_case rdm_mesh_cases[] = {
	KUNIT_CASE_PARAM_ATTR(rdm_mesh, mesh_gen_params, {.speed = KUNIT_SPEED_SLOW}),
	{}
};

static struct kunit_suite rdm_mesh_suite = {
	.name = "rdm_mesh",
	.test_cases = rdm_mesh_cases,
};

kunit_test_suite(rdm_mesh_suite);

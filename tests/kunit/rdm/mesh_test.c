// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A mesh of endpoints that do not connect, over each provider of them.
 *
 * Each sends messages, tagged ones too, to all others and itself, and writes and
 * reads their memory, and adds to it where there are atomic operations, as chance has
 * it. A message says who has sent it and which of
 * its sender's it is, and all of its bytes follow from that. The last endpoint is
 * closed and opened again at its address now and then; of the others nothing may be
 * lost, doubled or out of order, and each operation completes once, in any case.
 */
#include <linux/jiffies.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include <linux/kofi/lib.h>

#include "../kunit.h"
#include "../limit.h"
#include "place.h"

#define MESH_ENDS	8
#define MESH_MORTAL	(MESH_ENDS - 1)	/* is closed and opened again */
#define MESH_SENDS	16		/* at a time, of each */
#define MESH_RECVS	8		/* of a kind, of each */
#define MESH_LEN	140000		/* rxm's longest way to send begins below it */
#define MESH_SLOT	4096		/* of a region, for one operation */
#define MESH_ROUNDS	1200		/* posts */
#define MESH_WORDS	(MESH_ENDS * MESH_SENDS * MESH_SLOT)	/* behind all slots */
#define MESH_CLOSE	150		/* posts between closes */
#define MESH_TIMEOUT	TEST_LIMIT(60000)	/* milliseconds; as it should be it takes few */

enum mesh_kind {
	MESH_MSG,
	MESH_TAGGED,
	MESH_RMA,	/* a write, and a read of the same */
	MESH_ATOMIC,	/* added to the sender's word of the peer's memory */
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
	u64			added[MESH_ENDS];
};

struct mesh {
	struct kunit		*test;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct mesh_end		end[MESH_ENDS];
	struct rnd_state	rnd;
	unsigned long		deadline;
	unsigned int		messages;
	unsigned int		accesses;
	unsigned int		atomics;
};

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
	if (op->kind == MESH_ATOMIC && !op->err) {
		m->end[at].added[op->peer] += op->seed;
		m->atomics++;
	}
	if (op->kind != MESH_RMA || op->err || !mesh_live(at, op->peer))
		return;
	KUNIT_EXPECT_TRUE(m->test, mesh_filled(op->buf + MESH_SLOT, op->len,
					       op->seed));
	m->accesses++;
}

static ssize_t mesh_add(struct mesh *m, int at, struct mesh_op *op)
{
	struct mesh_end *e = &m->end[at], *peer = &m->end[op->peer];
	u64 *value = (u64 *)op->buf;

	op->left = 1;
	op->seed = prandom_u32_state(&m->rnd);
	*value = op->seed;
	return fi_atomic(e->ep, value, 1, NULL, op->peer,
			 kofi_mr_base(peer->mr) + MESH_WORDS +
			 at * sizeof(*value), fi_mr_key(peer->mr), FI_UINT64,
			 FI_SUM, op);
}

/* One operation of one endpoint; false if it has to wait */
static bool mesh_post(struct mesh *m)
{
	int kinds = m->info->caps & FI_ATOMIC ? MESH_KINDS : MESH_ATOMIC;
	int at = prandom_u32_state(&m->rnd) % MESH_ENDS;
	struct mesh_op *op = mesh_op_get(&m->end[at]);
	ssize_t err;

	if (!op)
		return false;
	op->peer = prandom_u32_state(&m->rnd) % MESH_ENDS;
	op->kind = prandom_u32_state(&m->rnd) % kinds;
	op->err = 0;
	op->used = true;
	err = op->kind == MESH_RMA ? mesh_access(m, at, op) :
	      op->kind == MESH_ATOMIC ? mesh_add(m, at, op) :
					mesh_send(m, at, op);
	if (!err)
		return true;
	op->used = false;
	KUNIT_ASSERT_EQ(m->test, err, -EAGAIN);
	return false;
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
	const size_t mem = MESH_WORDS + MESH_ENDS * sizeof(u64);
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

static struct mesh *mesh_open(struct kunit *test)
{
	struct fi_info *hints = fi_allocinfo();
	struct mesh *m = vzalloc(sizeof(*m));
	fi_addr_t addr;
	int i, j;

	KUNIT_ASSERT_NOT_NULL(test, m);
	m->test = test;
	m->deadline = jiffies + msecs_to_jiffies(MESH_TIMEOUT);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, mesh_close, m),
			0);
	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_SOURCE;
	/* there are none in the native protocol */
	if (strstr(test->param_value, "ofi_rxm"))
		hints->caps |= FI_ATOMIC;
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR |
				      FI_MR_ALLOCATED;
	i = rdm_place_getinfo(test, hints, &m->info);
	fi_freeinfo(hints);
	KUNIT_ASSERT_EQ(test, i, 0);
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

/* Nothing that was added between live ones is lost, or was added twice. */
static void mesh_check_words(struct mesh *m)
{
	const u64 *words;
	int i, j;

	for (i = 0; i < MESH_ENDS; i++) {
		words = (u64 *)(m->end[i].mem + MESH_WORDS);
		for (j = 0; j < MESH_ENDS; j++)
			if (mesh_live(j, i))
				KUNIT_EXPECT_EQ(m->test, words[j],
						m->end[j].added[i]);
	}
}

/* One post, however long it takes until one is accepted */
static void mesh_round(struct mesh *m)
{
	while (!mesh_post(m)) {
		mesh_progress(m);
		KUNIT_ASSERT_TRUE(m->test, time_before(jiffies, m->deadline));
		/* devices in software have work items */
		schedule_timeout_uninterruptible(1);
	}
}

static void rdm_mesh(struct kunit *test)
{
	struct mesh *m = mesh_open(test);
	int i;

	prandom_seed_state(&m->rnd, 4711);
	for (i = 1; i <= MESH_ROUNDS; i++) {
		mesh_round(m);
		if (i % 4 == 0)
			mesh_progress(m);
		if (i % MESH_CLOSE == 0)
			mesh_reopen(m, MESH_MORTAL);
	}
	while (!mesh_settled(m) && time_before(jiffies, m->deadline))
		mesh_progress(m);
	KUNIT_ASSERT_TRUE(test, mesh_settled(m));
	mesh_check_words(m);
	/* chance has not left out a kind */
	KUNIT_EXPECT_GT(test, m->messages, 100);
	KUNIT_EXPECT_GT(test, m->accesses, 10);
	if (m->info->caps & FI_ATOMIC)
		KUNIT_EXPECT_GT(test, m->atomics, 10);
	kunit_info(test, "%u messages, %u accesses, %u added", m->messages,
		   m->accesses, m->atomics);
}

static struct kunit_case rdm_mesh_cases[] = {
	KUNIT_CASE_PARAM_ATTR(rdm_mesh, rdm_place_gen_params, {.speed = KUNIT_SPEED_SLOW}),
	{}
};

static struct kunit_suite rdm_mesh_suite = {
	.name = "rdm_mesh",
	.test_cases = rdm_mesh_cases,
};

kunit_test_suite(rdm_mesh_suite);

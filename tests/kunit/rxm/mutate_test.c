// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An endpoint of kofi_rxm, and a peer whose packets are almost right: as
 * sock/mutate_test.c has it for the protocol below. The peer is an endpoint of
 * kofi_sock, so that what it sends arrives whole.
 */
#include <linux/prandom.h>
#include <linux/slab.h>
#include <linux/unaligned.h>

#include <linux/kofi/fi_atomic.h>

#include "raw.h"

#define RXMUT_PACKETS	8	/* of a connection, at most */
#define RXMUT_MEM	4096	/* bytes of the region, and beside it */
#define RXMUT_LEN	200	/* bytes of a receive */
#define RXMUT_PORT	4000	/* what the peer says it listens on */
#define RXMUT_KNOWN	0x4d00777700000000ULL	/* tags of the other peer */
#define RXMUT_LONG	(RXM_SAR + 1)	/* a message that is announced */
#define RXMUT_MAX	(sizeof(struct rxm_hdr) + RXM_ATOMIC_MEM + 64)

static unsigned int rxmut_count = 300;
module_param_named(mutants, rxmut_count, uint, 0444);
MODULE_PARM_DESC(mutants, "number of packets the suite rxm_mutate sends");

static unsigned int rxmut_seed;
module_param_named(seed, rxmut_seed, uint, 0444);
MODULE_PARM_DESC(seed, "what makes the suite rxm_mutate send the same again");

enum {
	RXMUT_RECV, RXMUT_TRECV, RXMUT_HONEST, RXMUT_TSEND, RXMUT_FETCH,
	RXMUT_OPS
};

struct rxmut {
	struct kunit		*test;
	struct rxt_end		*b;		/* under attack */
	struct rxt_end		*a;		/* the other peer */
	struct rxt_raw		*raw;		/* the attacker, */
	fi_addr_t		addr;		/* and what B calls it */
	struct fid_mr		*mr;
	u64			key;
	u8			*mem;		/* thrice RXMUT_MEM: beside, the region, beside */
	u8			*buf[RXMUT_OPS];
	bool			busy[RXMUT_OPS];
	unsigned int		errors;
	unsigned int		honest;
	struct rnd_state	rnd;
};

static u32 rxmut_below(struct rxmut *m, u32 ceil)
{
	return prandom_u32_state(&m->rnd) % ceil;
}

/* ------------------------------------------------------------------ packets */

struct rxmut_kind {
	u8	type;
	u8	op;
	u8	mems;
	u16	payload;
	u64	ctrl;
	u32	flags;
};

static const struct rxmut_kind rxmut_kinds[] = {
	{ RXM_EAGER_MSG, RXM_OP_MSG, 0, 64 },
	{ RXM_EAGER_MSG, RXM_OP_TAGGED, 0, 64, 0, RXM_F_CQ_DATA },
	{ RXM_SEGMENT, RXM_OP_TAGGED, 0, 32, RXM_SEG_FIRST },
	{ RXM_SEGMENT, RXM_OP_TAGGED, 0, 16, RXM_SEG_MIDDLE },
	{ RXM_SEGMENT, RXM_OP_TAGGED, 0, 16, RXM_SEG_LAST },
	{ RXM_RNDV_REQ, RXM_OP_MSG, 1 },
	{ RXM_RNDV_REQ, RXM_OP_TAGGED, RXM_RNDV_IOV },
	{ RXM_READ_DONE, RXM_OP_TAGGED },
	{ RXM_ATOMIC, RXM_OP_ATOMIC, 1, 8 },
	{ RXM_ATOMIC, RXM_OP_ATOMIC_FETCH, 1, 8 },
	{ RXM_ATOMIC, RXM_OP_ATOMIC_COMPARE, 2, 32 },
	{ RXM_ATOMIC_RSP, RXM_OP_ATOMIC_FETCH, 0, 16 },
	{ RXM_CREDITS, RXM_OP_MSG, 0, 0, 4 },
	{ RXM_WRITE_DATA, RXM_OP_TAGGED, 1 },
	{ RXM_WRITE_DONE, RXM_OP_TAGGED },
};

/* A packet as it should be; returns the bytes that are more than payload. */
static size_t rxmut_packet(struct rxmut *m, u8 *packet, size_t *len)
{
	const struct rxmut_kind *k =
		&rxmut_kinds[rxmut_below(m, ARRAY_SIZE(rxmut_kinds))];
	struct rxm_hdr *h = (struct rxm_hdr *)packet;
	struct rxm_rndv *rndv = (struct rxm_rndv *)(h + 1);
	size_t hdr_size = sizeof(*h);
	int i;

	memset(packet, 0, RXMUT_MAX);
	rxm_hdr_format(h, k->type, (u32)m->raw->rsp.id, 1 + rxmut_below(m, 4));
	h->op = k->op;
	h->flags = k->flags;
	h->ctrl_data = k->ctrl;
	h->size = k->payload;
	h->seg_size = k->payload;
	if (k->type == RXM_SEGMENT)
		h->size = 64;
	if (k->op == RXM_OP_TAGGED)
		h->tag = rxmut_below(m, 4);
	if (k->type == RXM_ATOMIC) {
		h->datatype = FI_UINT64;
		h->atomic_op = k->op == RXM_OP_ATOMIC_COMPARE ? FI_CSWAP :
								FI_SUM;
		h->atomic_count = k->mems;
		hdr_size += RXM_ATOMIC_MEM;
	} else if (k->mems) {
		rndv->count = k->mems;
		h->size = 100 * k->mems;
		hdr_size += sizeof(*rndv);
	}
	for (i = 0; i < k->mems; i++)
		rndv->mem[i] = (struct rxm_mem){
			.addr = 8 * rxmut_below(m, RXMUT_MEM / 8 - 16),
			.len = k->type == RXM_ATOMIC ? 1 : 100,
			.key = m->key,
		};
	*len = hdr_size + k->payload;
	return hdr_size;
}

static void rxmut_change(struct rxmut *m, u8 *packet, size_t hdr_size)
{
	static const u64 words[] = {
		0, 1, 2, 3, 7, 8, 15, 63, 64, 65, 255, RXMUT_MEM, RXM_EAGER,
		RXM_EAGER + 1, RXM_SAR, S32_MAX, U32_MAX, 1ULL << 32, S64_MAX,
		1ULL << 63, U64_MAX - 15, U64_MAX,
	};
	u64 word = words[rxmut_below(m, ARRAY_SIZE(words))];
	u32 at = rxmut_below(m, hdr_size);

	switch (rxmut_below(m, 4)) {
	case 0:
		packet[at] ^= BIT(rxmut_below(m, 8));
		break;
	case 1:
		packet[at] = word;
		break;
	case 2:
		put_unaligned_le32(word, packet + round_down(at, 4));
		break;
	case 3:
		put_unaligned_le64(word, packet + round_down(at, 8));
		break;
	}
}

/* One packet; false if there is no connection any more. */
static bool rxmut_send(struct rxmut *m)
{
	struct fi_cq_err_entry e;
	u8 packet[RXMUT_MAX];
	size_t len, hdr_size = rxmut_packet(m, packet, &len);
	u32 changes = rxmut_below(m, 4);

	while (changes--)
		rxmut_change(m, packet, hdr_size);
	if (!rxmut_below(m, 16))
		len = rxmut_below(m, len);
	if (fi_send(m->raw->ep, packet, len, NULL, 0, NULL))
		return false;
	return !rxt_comp(m->raw->cq, &e, NULL);
}

/* ------------------------------------------- operations of the one attacked */

static void rxmut_post(struct rxmut *m, int op)
{
	struct fid_ep *ep = m->b->ep;
	void *context = &m->busy[op];
	int err;

	if (m->busy[op])
		return;
	switch (op) {
	case RXMUT_RECV:
		err = fi_recv(ep, m->buf[op], RXMUT_LEN, NULL, FI_ADDR_UNSPEC,
			      context);
		break;
	case RXMUT_TRECV:
		err = fi_trecv(ep, m->buf[op], RXMUT_LEN, NULL, FI_ADDR_UNSPEC,
			       0, ~BIT_ULL(62), context);
		break;
	case RXMUT_HONEST:
		err = fi_trecv(ep, m->buf[op], RXMUT_LEN, NULL, FI_ADDR_UNSPEC,
			       RXMUT_KNOWN | m->honest, 0, context);
		break;
	case RXMUT_TSEND:
		err = fi_tsend(ep, m->buf[op], RXMUT_LONG, NULL, m->addr, 5,
			       context);
		break;
	default:
		err = fi_fetch_atomic(ep, m->buf[op], 1, NULL, m->buf[op] + 8,
				      NULL, m->addr, 0, 1, FI_UINT64, FI_SUM,
				      context);
	}
	if (op == RXMUT_TSEND || op == RXMUT_FETCH)
		KUNIT_EXPECT_TRUE(m->test, !err || err == -EAGAIN);
	else
		KUNIT_ASSERT_EQ(m->test, err, 0);
	m->busy[op] = !err;
}

/* What has ended so far, each operation for the first and only time */
static void rxmut_look(struct rxmut *m, struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry e;
	ssize_t n;
	bool *busy;

	while ((n = fi_cq_read(cq, &entry, 1)) != -EAGAIN) {
		memset(&e, 0, sizeof(e));
		e.op_context = entry.op_context;
		if (n == -FI_EAVAIL)
			n = fi_cq_readerr(cq, &e, 0);
		KUNIT_ASSERT_EQ(m->test, n, 1);
		busy = e.op_context;
		KUNIT_ASSERT_GE(m->test, (long)busy, (long)m->busy);
		KUNIT_ASSERT_LT(m->test, (long)busy,
				(long)(m->busy + RXMUT_OPS));
		KUNIT_EXPECT_TRUE(m->test, *busy);
		*busy = false;
		m->errors += !!e.err;
	}
}

/* Until an operation has ended */
static void rxmut_wait(struct rxmut *m, int op)
{
	unsigned long end = jiffies + msecs_to_jiffies(RXT_TIMEOUT);

	do {
		rxmut_look(m, m->b->rx);
		rxmut_look(m, m->b->tx);
		if (!m->busy[op])
			return;
		schedule_timeout_uninterruptible(1);
	} while (time_before(jiffies, end));
	KUNIT_FAIL(m->test,
		   "operation %d has not ended: %llu connects, %llu early, %llu held",
		   op, rxt_stat(m->b->ep, "connects"),
		   rxt_stat(m->b->ep, "tx_early"), rxt_stat(m->b->ep, "rx_held"));
}

/* The other peer's message arrives, whatever is going on. */
static void rxmut_honest(struct rxmut *m)
{
	struct kunit *test = m->test;
	struct fi_cq_err_entry e;
	u8 out[RXMUT_LEN];

	rxmut_post(m, RXMUT_HONEST);
	rxt_pattern(out, sizeof(out), m->honest);
	KUNIT_ASSERT_EQ(test, fi_tsend(m->a->ep, out, sizeof(out), NULL,
				       m->a->peer[1], RXMUT_KNOWN | m->honest,
				       NULL), 0);
	KUNIT_ASSERT_EQ(test, rxt_comp(m->a->tx, &e, NULL), 0);
	rxmut_wait(m, RXMUT_HONEST);
	KUNIT_EXPECT_MEMEQ(test, m->buf[RXMUT_HONEST], out, sizeof(out));
	m->honest++;
}

/* --------------------------------------------------------------------- test */

/* As a program that was started again; the one before may not be gone yet. */
static void rxmut_connect(struct rxmut *m, u32 process)
{
	unsigned long end = jiffies + msecs_to_jiffies(RXT_TIMEOUT);
	struct rxm_cm_req req;
	int err;

	rxt_raw_req(&req, RXMUT_PORT);
	req.id = (u64)process << 32 | 7;
	do {
		rxt_raw_close_ep(m->test, m->raw);
		rxt_raw_ep(m->test, m->raw, m->raw->info);
		err = rxt_raw_connect(m->test, m->raw, m->b, &req,
				      sizeof(req));
	} while (err && time_before(jiffies, end));
	KUNIT_ASSERT_EQ(m->test, err, 0);
}

static int rxmut_connection(struct rxmut *m, u32 process)
{
	int sent, packets = 1 + rxmut_below(m, RXMUT_PACKETS);

	rxmut_connect(m, process);
	if (rxmut_below(m, 2))
		rxmut_post(m, RXMUT_TSEND);
	if (rxmut_below(m, 2))
		rxmut_post(m, RXMUT_FETCH);
	for (sent = 0; sent < packets; sent++)
		if (!rxmut_send(m))
			break;
	rxmut_look(m, m->b->rx);
	rxmut_look(m, m->b->tx);
	if (rxmut_below(m, 2))
		rxmut_post(m, RXMUT_RECV);
	if (rxmut_below(m, 2))
		rxmut_post(m, RXMUT_TRECV);
	return max(sent, 1);
}

static void rxmut_end(struct rxmut *m)
{
	int op;

	/* the attacker is not there any more, so that what is for it ends */
	rxt_raw_close(m->test, m->raw);
	rxmut_wait(m, RXMUT_TSEND);
	rxmut_wait(m, RXMUT_FETCH);
	rxmut_honest(m);
	for (op = RXMUT_RECV; op <= RXMUT_TRECV; op++) {
		rxmut_look(m, m->b->rx);
		if (m->busy[op])
			fi_cancel(&m->b->ep->fid, &m->busy[op]);
		rxmut_wait(m, op);
	}
	rxmut_honest(m);
}

static void mutate_rxm(struct kunit *test)
{
	const struct sockaddr_in attacker = {
		.sin_family = AF_INET,
		.sin_port = htons(RXMUT_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	unsigned int sent = 0, seed = rxmut_seed ?: get_random_u32();
	struct rxt *t = test->priv;
	struct rxmut *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	u32 process = 0;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	*m = (struct rxmut){ .test = test, .a = &t->end[0], .b = &t->end[1] };
	for (i = 0; i < RXMUT_OPS; i++) {
		m->buf[i] = kunit_kzalloc(test, i == RXMUT_TSEND ? RXMUT_LONG :
						RXMUT_LEN, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, m->buf[i]);
	}
	m->mem = kunit_kmalloc(test, 3 * RXMUT_MEM, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m->mem);
	memset(m->mem, 0x5e, 3 * RXMUT_MEM);
	prandom_seed_state(&m->rnd, seed);
	kunit_info(test, "%u packets, seed=%u", rxmut_count, seed);

	KUNIT_ASSERT_EQ(test, fi_av_insert(m->b->av, &attacker, 1, &m->addr, 0,
					   NULL), 1);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(t->domain, m->mem + RXMUT_MEM,
					RXMUT_MEM, FI_REMOTE_READ |
					FI_REMOTE_WRITE, 0, 0, 0, &m->mr, NULL),
			0);
	m->key = fi_mr_key(m->mr);
	m->raw = rxt_raw_alloc(test);
	rxt_raw_open(test, m->raw);
	while (sent < rxmut_count) {
		sent += rxmut_connection(m, ++process);
		if (!(process & 15))
			rxmut_honest(m);
	}
	rxmut_end(m);
	KUNIT_EXPECT_EQ(test, fi_close(&m->mr->fid), 0);
	for (i = 0; i < RXMUT_MEM; i++)
		if (m->mem[i] != 0x5e || m->mem[2 * RXMUT_MEM + i] != 0x5e)
			break;
	KUNIT_EXPECT_EQ(test, i, RXMUT_MEM);
	kunit_info(test, "%u packets in %u connections, %llu violations", sent,
		   process, rxt_stat(m->b->ep, "violations"));
}

static struct kunit_case rxm_mutate_cases[] = {
	KUNIT_CASE_SLOW(mutate_rxm),
	{}
};

static struct kunit_suite rxm_mutate_suite = {
	.name		= "rxm_mutate",
	.suite_init	= lo_suite_init,
	.attr.speed	= KUNIT_SPEED_SLOW,
	.init		= rxt_init,
	.exit		= rxt_exit,
	.test_cases	= rxm_mutate_cases,
};

kunit_test_suite(rxm_mutate_suite);

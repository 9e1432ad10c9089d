// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An endpoint of type FI_EP_RDM, and a peer whose frames are almost right.
 *
 * The peer
 *
 * A socket connects as a peer the endpoint knows, sends a few frames of every
 * kind, most of them with a byte or a word changed or cut off somewhere, and goes
 * away: many times. It knows the key of a region, and is sent messages and asked
 * for memory by the endpoint itself, so that answers of all kinds are expected.
 *
 * What has to hold
 *
 * Each operation completes once; memory beside the region and behind receives is
 * not written, which KASAN sees, too; another peer's messages arrive throughout; and
 * when the last of the connections has gone, nothing of them is left.
 *
 * How often
 *
 * The module's parameter "mutants" says how many frames there are, "seed" which;
 * the seed is printed.
 */
#include <linux/prandom.h>
#include <linux/slab.h>

#include "../param.h"
#include "rdm.h"

#define MUT_FRAMES	8	/* of a connection, at most */
#define MUT_MEM		4096	/* bytes of the region, and beside it */
#define MUT_LEN		200	/* bytes of a receive */
#define MUT_PORT	7	/* what the peer says it listens on */
#define MUT_KNOWN	BIT_ULL(62)	/* tags of the other peer */
#define MUT_LONG	3000	/* bytes of a message that is announced */

static unsigned int mut_count = 1000;
module_param_named(mutants, mut_count, uint, 0444);
MODULE_PARM_DESC(mutants, "number of frames the suite sock_mutate sends");

static unsigned int mut_seed;
module_param_named(seed, mut_seed, uint, 0444);
MODULE_PARM_DESC(seed, "what makes the suite sock_mutate send the same again");

/* Contexts of the endpoint's operations, in rdm_test.mut[] */
enum { MUT_RECV, MUT_TRECV, MUT_HONEST, MUT_TSEND, MUT_READ, MUT_OPS };

struct mut {
	struct kunit		*test;
	struct rdm_node		*a;		/* under attack */
	struct rdm_node		*b;		/* the other peer */
	fi_addr_t		raw;		/* what A calls the attacker, */
	fi_addr_t		peer;		/* and B A */
	struct fid_mr		*mr;
	u64			key;
	u8			*mem;		/* MUT_MEM bytes thrice, the region in the middle */
	u8			*buf[MUT_OPS];
	bool			busy[MUT_OPS];
	unsigned int		errors;
	unsigned int		honest;
	struct rnd_state	rnd;
};

static u32 mut_below(struct mut *m, u32 ceil)
{
	return prandom_u32_state(&m->rnd) % ceil;
}

/* ------------------------------------------------------------------- frames */

struct mut_kind {
	u8	op;
	u8	flags;
	u8	op_data;
	u8	segs;
	u16	payload;
};

static const struct mut_kind mut_kinds[] = {
	{ KSK_OP_MSG, 0, 0, 0, 100 },
	{ KSK_OP_MSG, KSK_F_CQ_DATA | KSK_F_DELIVERY, 0, 0, 100 },
	{ KSK_OP_MSG, 0, KSK_OP_DATA_ACK },
	{ KSK_OP_TAGGED, 0, 0, 0, 100 },
	{ KSK_OP_TAGGED, KSK_F_CQ_DATA | KSK_F_DELIVERY, 0, 0, 100 },
	{ KSK_OP_READ_REQ, 0, 0, 1 },
	{ KSK_OP_READ_REQ, 0, 0, KSK_RMA_MAX },
	{ KSK_OP_READ_RSP, 0, 0, 0, 100 },
	{ KSK_OP_WRITE, 0, 0, 1, 100 },
	{ KSK_OP_WRITE, KSK_F_CQ_DATA | KSK_F_DELIVERY, 0, KSK_RMA_MAX, 100 },
	{ KSK_OP_RTS, 0, 1 },
	{ KSK_OP_RTS, KSK_F_CQ_DATA | KSK_F_DELIVERY, 2 },
	{ KSK_OP_CTS, 0, 1 },
	{ KSK_OP_DATA, 0, 1, 0, 100 },
};

/* A frame as it should be; returns the bytes of its header. */
static size_t mut_frame(struct mut *m, u8 *frame, size_t *len)
{
	const struct mut_kind *k = &mut_kinds[mut_below(m, ARRAY_SIZE(mut_kinds))];
	struct ksk_hdr *hdr = (struct ksk_hdr *)frame;
	u8 *p = frame + sizeof(*hdr);
	int i;

	memset(frame, 0, KSK_HDR_MAX);
	*hdr = (struct ksk_hdr){
		.version = KSK_PROTO_VERSION, .op = k->op,
		.op_data = k->op_data, .rma_count = k->segs,
	};
	put_unaligned_le16(k->flags, hdr->flags);
	if (k->flags & KSK_F_CQ_DATA)
		p += 8;
	if (k->op == KSK_OP_TAGGED || k->op == KSK_OP_RTS) {
		put_unaligned_le64(mut_below(m, 4), p);
		p += 8;
	}
	if (k->op == KSK_OP_RTS) {
		put_unaligned_le64(100, p);
		p += 8;
	}
	for (i = 0; i < k->segs; i++) {
		struct ksk_rma *rma = (struct ksk_rma *)p;

		put_unaligned_le64(mut_below(m, MUT_MEM - 100), rma->addr);
		put_unaligned_le64(100 / k->segs, rma->len);
		put_unaligned_le64(m->key, rma->key);
		p += sizeof(*rma);
	}
	hdr->hdr_size = p - frame;
	memset(p, 0xa5, k->payload);
	*len = hdr->hdr_size + k->payload;
	put_unaligned_le64(*len, hdr->size);
	return hdr->hdr_size;
}

static void mut_change(struct mut *m, u8 *frame, size_t hdr_size)
{
	static const u8 bytes[] = {
		0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 24, 31, 32, 40, 119, 120,
		121, 127, 128, 253, 254, 255,
	};
	static const u64 words[] = {
		0, 1, 15, 16, 99, 101, MUT_MEM - 1, MUT_MEM, MUT_MEM + 1,
		S32_MAX, U32_MAX, 1ULL << 32, KSK_MSG_MAX, KSK_MSG_MAX + 1ULL,
		S64_MAX, 1ULL << 63, U64_MAX - 15, U64_MAX,
	};
	u32 at = mut_below(m, hdr_size);

	switch (mut_below(m, 4)) {
	case 0:
		frame[at] ^= BIT(mut_below(m, 8));
		break;
	case 1:
		frame[at] = bytes[mut_below(m, ARRAY_SIZE(bytes))];
		break;
	case 2:
		frame[at] = mut_below(m, 256);
		break;
	case 3:
		put_unaligned_le64(words[mut_below(m, ARRAY_SIZE(words))],
				   frame + round_down(at, 8));
		break;
	}
}

/* One frame; false if it was the connection's last one. */
static bool mut_send(struct mut *m, struct socket *sock)
{
	u8 frame[KSK_HDR_MAX + 100];
	struct kvec kv = { .iov_base = frame };
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	size_t len, hdr_size = mut_frame(m, frame, &len);
	u32 changes = mut_below(m, 4);

	while (changes--)
		mut_change(m, frame, hdr_size);
	if (!mut_below(m, 16))
		len = 1 + mut_below(m, len);
	kv.iov_len = len;
	return kernel_sendmsg(sock, &msg, &kv, 1, len) == len;
}

/* ------------------------------------------- operations of the one attacked */

static void mut_post(struct mut *m, int op)
{
	struct fid_ep *ep = m->a->ep;
	void *context = &m->busy[op];
	int err;

	if (m->busy[op])
		return;
	switch (op) {
	case MUT_RECV:
		err = fi_recv(ep, m->buf[op], MUT_LEN, NULL, FI_ADDR_UNSPEC,
			      context);
		break;
	case MUT_TRECV:
		err = fi_trecv(ep, m->buf[op], MUT_LEN, NULL, FI_ADDR_UNSPEC, 0,
			       ~MUT_KNOWN, context);
		break;
	case MUT_HONEST:
		err = fi_trecv(ep, m->buf[op], MUT_LEN, NULL, FI_ADDR_UNSPEC,
			       MUT_KNOWN | m->honest, 0, context);
		break;
	case MUT_TSEND:
		err = fi_tsend(ep, m->buf[op], MUT_LONG, NULL, m->raw, 5,
			       context);
		break;
	default:
		err = fi_read(ep, m->buf[op], 100, NULL, m->raw, 0, 1, context);
	}
	/* connections that are about to be made may hold all there is */
	if (op == MUT_TSEND || op == MUT_READ) {
		KUNIT_EXPECT_TRUE(m->test, !err || err == -EAGAIN);
		m->busy[op] = !err;
		return;
	}
	KUNIT_ASSERT_EQ(m->test, err, 0);
	m->busy[op] = true;
}

/* An operation has ended, for the first and only time. */
static void mut_ended(struct mut *m, const struct fi_cq_err_entry *e)
{
	bool *busy = e->op_context;

	/* a word that has come with a write */
	if (!busy && e->flags & FI_REMOTE_WRITE)
		return;
	KUNIT_ASSERT_GE(m->test, (long)busy, (long)m->busy);
	KUNIT_ASSERT_LT(m->test, (long)busy, (long)(m->busy + MUT_OPS));
	KUNIT_EXPECT_TRUE(m->test, *busy);
	*busy = false;
	m->errors += !!e->err;
}

/* What has ended so far */
static void mut_look(struct mut *m, struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry e;
	ssize_t n;

	while ((n = fi_cq_read(cq, &entry, 1)) != -EAGAIN) {
		memset(&e, 0, sizeof(e));
		e.op_context = entry.op_context;
		e.flags = entry.flags;
		if (n == -FI_EAVAIL)
			n = fi_cq_readerr(cq, &e, 0);
		KUNIT_ASSERT_EQ(m->test, n, 1);
		mut_ended(m, &e);
	}
}

/* Until an operation has ended */
static void mut_wait(struct mut *m, int op)
{
	unsigned long end = jiffies + LIVE_JIFFIES;

	do {
		mut_look(m, m->a->rx);
		mut_look(m, m->a->tx);
		if (!m->busy[op])
			return;
		schedule_timeout_uninterruptible(1);
	} while (time_before(jiffies, end));
	KUNIT_FAIL(m->test, "operation %d has not ended", op);
}

/* The other peer's message arrives, whatever is going on. */
static void mut_honest(struct mut *m)
{
	struct kunit *test = m->test;
	u64 tag = MUT_KNOWN | m->honest;
	struct fi_cq_err_entry e;
	u8 out[MUT_LEN];

	mut_post(m, MUT_HONEST);
	live_pattern(out, sizeof(out), m->honest);
	KUNIT_ASSERT_EQ(test, fi_tsend(m->b->ep, out, sizeof(out), NULL,
				       m->peer, tag, NULL), 0);
	KUNIT_ASSERT_EQ(test, live_comp(m->b->tx, &e), 0);
	mut_wait(m, MUT_HONEST);
	KUNIT_EXPECT_MEMEQ(test, m->buf[MUT_HONEST], out, sizeof(out));
	m->honest++;
}

/* --------------------------------------------------------------------- test */

static int mut_connection(struct mut *m, u32 pid)
{
	int sent, frames = 1 + mut_below(m, MUT_FRAMES);
	struct socket *sock = rdm_raw(m->test, m->a);
	struct rdm_cm cm;

	KUNIT_ASSERT_EQ(m->test, rdm_ask(m->test, sock, &cm, MUT_PORT, pid),
			KSK_CM_ACCEPT);
	if (mut_below(m, 2))
		mut_post(m, MUT_TSEND);
	if (mut_below(m, 2))
		mut_post(m, MUT_READ);
	for (sent = 0; sent < frames; sent++)
		if (!mut_send(m, sock))
			break;
	sock_release(sock);
	mut_look(m, m->a->rx);
	mut_look(m, m->a->tx);
	if (mut_below(m, 2))
		mut_post(m, MUT_RECV);
	if (mut_below(m, 2))
		mut_post(m, MUT_TRECV);
	return max(sent, 1);
}

/* Messages that are stored can be received when their sender is gone. */
static void mut_discard(struct mut *m)
{
	const struct fi_msg_tagged any = {
		.addr = FI_ADDR_UNSPEC, .ignore = ~0ULL,
		.context = &m->busy[MUT_TRECV],
	};
	unsigned int before;

	do {
		before = m->errors;
		m->busy[MUT_TRECV] = true;
		KUNIT_ASSERT_EQ(m->test, fi_trecvmsg(m->a->ep, &any,
						     FI_PEEK | FI_DISCARD), 0);
		mut_wait(m, MUT_TRECV);
	} while (m->errors == before);
}

static void mut_end(struct mut *m)
{
	struct kunit *test = m->test;
	unsigned long end;
	int op;

	/* it is not there any more, so that what is for it ends */
	mut_wait(m, MUT_TSEND);
	mut_wait(m, MUT_READ);
	mut_honest(m);
	end = jiffies + LIVE_JIFFIES;
	while (rdm_stat(m->a, "connections") != 1 && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, rdm_stat(m->a, "connections"), 1);
	for (op = MUT_RECV; op <= MUT_TRECV; op++) {
		mut_look(m, m->a->rx);
		if (m->busy[op])
			fi_cancel(&m->a->ep->fid, &m->busy[op]);
		mut_wait(m, op);
	}
	mut_discard(m);
	KUNIT_EXPECT_EQ(test, rdm_stat(m->a, "rx_unexpected_bytes"), 0);
}

static void mutate_rdm(struct kunit *test)
{
	const struct sockaddr_in attacker = {
		.sin_family = AF_INET,
		.sin_port = htons(MUT_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const u64 caps = FI_MSG | FI_TAGGED | FI_RMA;
	unsigned int min = ksk_rendezvous_min, seed = mut_seed ?: get_random_u32();
	struct rdm_test *t = test->priv;
	struct mut *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	u32 pid = 0;
	unsigned int sent = 0;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	*m = (struct mut){ .test = test, .a = &t->node[0], .b = &t->node[1] };
	for (i = 0; i < MUT_OPS; i++) {
		m->buf[i] = kunit_kzalloc(test, i == MUT_TSEND ? MUT_LONG :
						MUT_LEN, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, m->buf[i]);
	}
	m->mem = kunit_kmalloc(test, 3 * MUT_MEM, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m->mem);
	memset(m->mem, 0x5e, 3 * MUT_MEM);
	prandom_seed_state(&m->rnd, seed);
	kunit_info(test, "%u frames, seed=%u", mut_count, seed);

	test_param_set(test, &ksk_rendezvous_min, MUT_LONG);
	rdm_open(test, m->a, caps, 0);
	WRITE_ONCE(ksk_rendezvous_min, min);
	rdm_open(test, m->b, caps, 0);
	m->raw = rdm_insert(test, m->a, &attacker);
	rdm_insert(test, m->a, &m->b->addr);
	m->peer = rdm_insert(test, m->b, &m->a->addr);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(m->a->domain, m->mem + MUT_MEM, MUT_MEM,
					FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 5,
					0, &m->mr, NULL), 0);
	m->key = fi_mr_key(m->mr);

	while (sent < mut_count) {
		sent += mut_connection(m, ++pid);
		if (!(pid & 15))
			mut_honest(m);
	}
	mut_end(m);
	KUNIT_EXPECT_EQ(test, fi_close(&m->mr->fid), 0);
	for (i = 0; i < MUT_MEM; i++)
		if (m->mem[i] != 0x5e || m->mem[2 * MUT_MEM + i] != 0x5e)
			break;
	KUNIT_EXPECT_EQ(test, i, MUT_MEM);
	kunit_info(test, "%u frames in %u connections, %llu accepted", sent, pid,
		   rdm_stat(m->a, "accepted"));
}

static struct kunit_case mutate_cases[] = {
	KUNIT_CASE_SLOW(mutate_rdm),
	{}
};

static struct kunit_suite sock_mutate_suite = {
	.name		= "sock_mutate",
	.suite_init	= lo_suite_init,
	.init		= rdm_init,
	.exit		= rdm_exit,
	.test_cases	= mutate_cases,
};

kunit_test_suite(sock_mutate_suite);

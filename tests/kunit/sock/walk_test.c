// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Each field of each frame that an endpoint of type FI_EP_RDM reads, at the values
 * where something changes.
 *
 * A frame
 *
 * comes over a connection of its own, on which the endpoint waits for what makes the
 * frame right: an acknowledgment, a response, a payload. walk_judge() says, from
 * the description of the wire alone, what has to come of it:
 *
 * - none may send it: the connection ends, one violation is counted, and nothing
 *   has been placed;
 * - it is right: what it is for completes, with the right lengths and words, and the
 *   connection goes on, which a read of the endpoint's memory behind it shows;
 * - it is right so far, but longer than what is sent: nothing is counted.
 *
 * After each, every operation has ended once, a message of another peer arrives,
 * and memory beside the region is as it was.
 */
#include <linux/slab.h>

#include "../param.h"
#include "rdm.h"
#include "walk.h"

#define WALK_MEM	4096	/* bytes of the region, and beside it */
#define WALK_LEN	100	/* bytes of payload */
#define WALK_ROOM	256	/* bytes of a receive */
#define WALK_LONG	3000	/* bytes of a message that is announced */
#define WALK_SENT	SZ_64K	/* bytes of payload that are sent, at most */
#define WALK_PORT	7	/* what the peer says it listens on */
#define WALK_CTX	2	/* of the payload the endpoint has asked for, */
#define WALK_TAG	9	/* and its tag */
#define WALK_REGION	0x5e	/* what is in memory */
#define WALK_PAYLOAD	0xbd	/* what is sent */

/* What the endpoint waits for from the peer */
enum {
	WALK_ACK	= BIT(0),	/* its message is to be acknowledged, */
	WALK_RSP	= BIT(1),	/* its read of WALK_LEN bytes answered, */
	WALK_CTS	= BIT(2),	/* the message asked for that it has announced */
	WALK_DATA	= BIT(3),	/* with context 1, and one come that it asked for */
};

/* Operations of the endpoint; the first three are receives */
enum { WALK_RECV, WALK_TRECV, WALK_ASKED, WALK_SEND, WALK_READ, WALK_TSEND, WALK_OPS };

static const struct walk_kind {
	const char	*name;
	u8		op;
	u8		flags;
	u8		op_data;
	u8		segs;
	u16		payload;
	u8		waits;		/* WALK_ACK, ... */
} walk_kinds[] = {
	{ "message", 0, 0, 0, 0, WALK_LEN },
	{ "message with a value, acknowledged", 0, 5, 0, 0, WALK_LEN },
	{ "acknowledgment", 0, 0, 2, 0, 0, WALK_ACK },
	{ "tagged message", 1, 0, 0, 0, WALK_LEN },
	{ "tagged message with a value, acknowledged", 1, 5, 0, 0, WALK_LEN },
	{ "read request", 2, 0, 0, 1 },
	{ "read request of four pieces", 2, 0, 0, 4 },
	{ "read response", 3, 0, 0, 0, WALK_LEN, WALK_RSP },
	{ "write", 4, 0, 0, 1, WALK_LEN },
	{ "write of four pieces with a value, acknowledged", 4, 5, 0, 4, WALK_LEN },
	{ "announcement", 5, 0, 1 },
	{ "announcement with a value, acknowledged", 5, 5, 254 },
	{ "answer to an announcement", 6, 0, 1, 0, 0, WALK_CTS },
	{ "announced payload", 7, 0, WALK_CTX, 0, WALK_LEN, WALK_DATA },
};

KUNIT_ARRAY_PARAM_DESC(walk_kind, walk_kinds, name);

/* A field: where it is, how wide, and the largest value it may have, if there is one */
struct walk_field {
	const char	*name;
	u8		at;
	u8		width;
	u64		limit;
};

#define WALK_FIELDS	(8 + 3 + 4 * 3)

struct walk_done {
	bool	posted;
	bool	ended;
	int	err;
	size_t	len;
	u64	data;
	u64	tag;
};

struct walk {
	struct kunit		*test;
	const struct walk_kind	*kind;
	struct walk_field	field[WALK_FIELDS];
	unsigned int		fields;
	struct rdm_node		*a;		/* under attack */
	struct rdm_node		*b;		/* the other peer */
	fi_addr_t		raw;		/* what A calls the attacker, */
	fi_addr_t		peer;		/* and B A */
	struct fid_mr		*mr;
	u64			key;
	u8			*mem;		/* WALK_MEM bytes thrice: beside the region, too */
	u8			*buf[WALK_OPS];
	u8			*wire;		/* what is sent, and received */
	struct walk_done	op[WALK_OPS];
	struct walk_done	write;		/* reported by the peer's value */
	struct socket		*sock;
	u32			pid;
	u64			violations;
	unsigned int		tried[3];	/* of each verdict */
};

/* --------------------------------------------------------------------- the wire */

/* A frame as it should be, and its fields; returns the bytes of its header. */
static size_t walk_frame(struct walk *w, u8 *f)
{
	const struct walk_kind *k = w->kind;
	struct walk_field *field = w->field;
	u8 *p = f + 16;
	int i;

	*field++ = (struct walk_field){ "version", 0, 1 };
	*field++ = (struct walk_field){ "op", 1, 1, 7 };
	*field++ = (struct walk_field){ "flags", 2, 2 };
	*field++ = (struct walk_field){ "op_data", 4, 1, 254 };
	*field++ = (struct walk_field){ "rma_iov_cnt", 5, 1, 4 };
	*field++ = (struct walk_field){ "hdr_size", 6, 1, 120 };
	*field++ = (struct walk_field){ "id", 7, 1 };
	*field++ = (struct walk_field){ "size", 8, 8, 16 + MAX_RW_COUNT };
	if (k->flags & 1 && k->op != 7) {
		*field++ = (struct walk_field){ "cq_data", p - f, 8 };
		put_unaligned_le64(0x1234, p);
		p += 8;
	}
	if (k->op == 1 || k->op == 5) {
		*field++ = (struct walk_field){ "tag", p - f, 8 };
		put_unaligned_le64(5, p);
		p += 8;
	}
	if (k->op == 5) {
		*field++ = (struct walk_field){ "length", p - f, 8, MAX_RW_COUNT };
		put_unaligned_le64(WALK_LEN, p);
		p += 8;
	}
	for (i = 0; i < k->segs; i++) {
		u64 len = WALK_LEN / k->segs;

		*field++ = (struct walk_field){ "addr", p - f, 8, WALK_MEM - len };
		*field++ = (struct walk_field){ "len", p - f + 8, 8, WALK_MEM };
		*field++ = (struct walk_field){ "key", p - f + 16, 8 };
		put_unaligned_le64(i * 200, p);
		put_unaligned_le64(len, p + 8);
		put_unaligned_le64(w->key, p + 16);
		p += 24;
	}
	w->fields = field - w->field;
	f[0] = 3;
	f[1] = k->op;
	put_unaligned_le16(k->flags, f + 2);
	f[4] = k->op_data;
	f[5] = k->segs;
	f[6] = p - f;
	f[7] = 0;
	put_unaligned_le64(p - f + k->payload, f + 8);
	return p - f;
}

static u64 walk_get(const u8 *p, unsigned int width)
{
	return width == 1 ? *p : width == 2 ? get_unaligned_le16(p) :
			    get_unaligned_le64(p);
}

static void walk_put(u64 value, u8 *p, unsigned int width)
{
	if (width == 1)
		*p = value;
	else if (width == 2)
		put_unaligned_le16(value, p);
	else
		put_unaligned_le64(value, p);
}

/* ------------------------------------------------------- what has to come of it */

enum walk_verdict { WALK_BAD, WALK_RIGHT, WALK_PART };

/* What a frame says */
struct walk_said {
	u8	op;
	bool	ack;
	u8	segs;
	u16	flags;
	u64	data, tag, announced;
	u64	addr[4], len[4], sum;
	u64	payload;
};

static bool walk_segments(const struct walk *w, const u8 *p, struct walk_said *s)
{
	int i;

	for (i = 0; i < s->segs; i++, p += 24) {
		s->addr[i] = get_unaligned_le64(p);
		s->len[i] = get_unaligned_le64(p + 8);
		if (get_unaligned_le64(p + 16) != w->key || s->addr[i] > WALK_MEM ||
		    s->len[i] > WALK_MEM - s->addr[i])
			return false;
		s->sum += s->len[i];
	}
	return true;
}

/* What is right at this moment of the connection */
static bool walk_due(const struct walk *w, const u8 *f, const struct walk_said *s)
{
	u8 waits = w->kind->waits, ctx = f[4];

	switch (s->op) {
	case 0:
		return !ctx || (s->ack && !s->flags && !s->payload && waits & WALK_ACK);
	case 3:
		return !ctx && waits & WALK_RSP && s->payload == WALK_LEN;
	case 4:
		return !ctx && s->sum == s->payload;
	case 5:
		return ctx && ctx <= 254 && s->announced <= MAX_RW_COUNT &&
		       !(waits & WALK_DATA && ctx == WALK_CTX);
	case 6:
		return waits & WALK_CTS && ctx == 1;
	case 7:
		return waits & WALK_DATA && ctx == WALK_CTX && s->payload == WALK_LEN;
	default:
		return !ctx;
	}
}

static enum walk_verdict walk_judge(const struct walk *w, const u8 *f,
				    struct walk_said *s)
{
	/* by operation: flags; a tag; a length; pieces; payload */
	static const struct {
		u8 flags, tag, length, segs, payload;
	} has[] = {
		{ 5, 0, 0, 0, 1 }, { 5, 1, 0, 0, 1 }, { 0, 0, 0, 1, 0 },
		{ 0, 0, 0, 0, 1 }, { 5, 0, 0, 1, 1 }, { 5, 1, 1, 0, 0 },
		{ 0, 0, 0, 0, 0 }, { 5, 0, 0, 0, 1 },
	};
	u64 size = get_unaligned_le64(f + 8), hdr;
	const u8 *p = f + 16;

	*s = (struct walk_said){ .op = f[1], .flags = get_unaligned_le16(f + 2) };
	if (s->op > 7 || s->flags & ~has[s->op].flags)
		return WALK_BAD;
	if (has[s->op].segs)
		s->segs = f[5];
	if (has[s->op].segs && (!s->segs || s->segs > 4))
		return WALK_BAD;
	hdr = 16 + (s->flags & 1 && s->op != 7 ? 8 : 0) +
	      8 * (has[s->op].tag + has[s->op].length) + 24 * s->segs;
	if (f[6] != hdr || size < hdr || size - hdr > MAX_RW_COUNT)
		return WALK_BAD;
	s->payload = size - hdr;
	s->ack = !s->op && f[4] == 2;
	if (s->payload && !has[s->op].payload)
		return WALK_BAD;
	if (s->flags & 1 && s->op != 7) {
		s->data = get_unaligned_le64(p);
		p += 8;
	}
	if (has[s->op].tag) {
		s->tag = get_unaligned_le64(p);
		p += 8;
	}
	if (has[s->op].length)
		s->announced = get_unaligned_le64(p);
	if (!walk_segments(w, p, s) || !walk_due(w, f, s))
		return WALK_BAD;
	return s->payload > WALK_SENT ? WALK_PART : WALK_RIGHT;
}

/* ------------------------------------------------------------ the endpoint's side */

static void walk_post(struct walk *w, int op)
{
	struct fid_ep *ep = w->a->ep;
	const struct kvec kv = { w->buf[op], 8 };
	const struct fi_msg send = {
		.msg_iov = &kv, .iov_count = 1, .addr = w->raw, .context = &w->op[op],
	};
	void *context = &w->op[op];
	int err;

	w->op[op] = (struct walk_done){ .posted = true };
	switch (op) {
	case WALK_RECV:
		err = fi_recv(ep, w->buf[op], WALK_ROOM, NULL, FI_ADDR_UNSPEC, context);
		break;
	case WALK_TRECV:
		err = fi_trecv(ep, w->buf[op], WALK_ROOM, NULL, FI_ADDR_UNSPEC, 0, ~0ULL,
			       context);
		break;
	case WALK_ASKED:
		err = fi_trecv(ep, w->buf[op], WALK_ROOM, NULL, FI_ADDR_UNSPEC, WALK_TAG,
			       0, context);
		break;
	case WALK_SEND:
		err = fi_sendmsg(ep, &send, FI_DELIVERY_COMPLETE);
		break;
	case WALK_READ:
		err = fi_read(ep, w->buf[op], WALK_LEN, NULL, w->raw, 0, 1, context);
		break;
	default:
		err = fi_tsend(ep, w->buf[op], WALK_LONG, NULL, w->raw, 5, context);
	}
	KUNIT_ASSERT_EQ(w->test, err, 0);
}

/* The operations on a queue have ended, each once. */
static void walk_ended(struct walk *w, struct fid_cq *cq, int from, int to, bool write)
{
	struct kunit *test = w->test;
	struct fi_cq_err_entry e;
	int i, n = write;

	for (i = from; i < to; i++)
		n += w->op[i].posted;
	while (n--) {
		int err = live_comp(cq, &e);
		struct walk_done *d = e.op_context ?: &w->write;

		KUNIT_ASSERT_TRUE(test, err <= 0 && err != -EAGAIN);
		KUNIT_ASSERT_TRUE(test, d == &w->write ||
				  (d >= w->op + from && d < w->op + to));
		KUNIT_EXPECT_FALSE(test, d->ended);
		*d = (struct walk_done){
			.posted = d->posted, .ended = true, .err = -err, .len = e.len,
			.data = e.data, .tag = e.tag,
		};
	}
	KUNIT_EXPECT_EQ(test, fi_cq_read(cq, &e, 1), -EAGAIN);
}

/* Connect, and have the endpoint wait for what makes the frame right. */
static void walk_begin(struct walk *w)
{
	u8 waits = w->kind->waits, *b = w->wire;
	struct kunit *test = w->test;
	struct rdm_cm cm;

	memset(w->op, 0, sizeof(w->op));
	w->write = (struct walk_done){};
	w->sock = rdm_raw(test, w->a);
	KUNIT_ASSERT_EQ(test, rdm_ask(test, w->sock, &cm, WALK_PORT, ++w->pid),
			KSK_CM_ACCEPT);
	walk_post(w, WALK_RECV);
	if (waits & WALK_ACK) {
		walk_post(w, WALK_SEND);
		KUNIT_ASSERT_EQ(test, live_raw_recv(w->sock, b, 16 + 8), 16 + 8);
	}
	if (waits & WALK_RSP) {
		walk_post(w, WALK_READ);
		KUNIT_ASSERT_EQ(test, live_raw_recv(w->sock, b, 16 + 24), 16 + 24);
	}
	if (waits & WALK_CTS) {
		walk_post(w, WALK_TSEND);
		KUNIT_ASSERT_EQ(test, live_raw_recv(w->sock, b, 16 + 16), 16 + 16);
		KUNIT_ASSERT_EQ(test, b[1], KSK_OP_RTS);
	}
	if (waits & WALK_DATA) {
		walk_post(w, WALK_ASKED);
		memset(b, 0, 32);
		b[0] = 3;
		b[1] = KSK_OP_RTS;
		b[4] = WALK_CTX;
		b[6] = 32;
		put_unaligned_le64(32, b + 8);
		put_unaligned_le64(WALK_TAG, b + 16);
		put_unaligned_le64(WALK_LEN, b + 24);
		KUNIT_ASSERT_EQ(test, live_raw_send(w->sock, b, 32), 32);
		KUNIT_ASSERT_EQ(test, live_raw_recv(w->sock, b, 16), 16);
		KUNIT_ASSERT_EQ(test, b[1], KSK_OP_CTS);
	}
	walk_post(w, WALK_TRECV);
}

/* A read of 8 bytes behind the frame */
static size_t walk_marker(const struct walk *w, u8 *b)
{
	memset(b, 0, 40);
	b[0] = 3;
	b[1] = KSK_OP_READ_REQ;
	b[5] = 1;
	b[6] = 40;
	put_unaligned_le64(40, b + 8);
	put_unaligned_le64(8, b + 24);
	put_unaligned_le64(w->key, b + 32);
	return 40;
}

/* What the endpoint sends: until it has answered @reads, or has closed. */
static int walk_answers(struct walk *w, int reads)
{
	u8 *b = w->wire;
	int n;

	for (;;) {
		n = live_raw_recv(w->sock, b, 16);
		if (n != 16)
			return n < 0 ? n : -EPIPE;
		n = get_unaligned_le64(b + 8) - 16;
		KUNIT_ASSERT_LE(w->test, n, (int)(4 * WALK_MEM + WALK_LONG));
		if (n && live_raw_recv(w->sock, b + 16, n) != n)
			return -EPIPE;
		if (b[1] == KSK_OP_READ_RSP && !--reads)
			return 0;
	}
}

/* ---------------------------------------------------------------------- one frame */

/* Receives that have ended as the frame says */
static void walk_check_receives(struct walk *w, enum walk_verdict verdict,
				const struct walk_said *s, const char *what)
{
	const bool right = verdict != WALK_BAD;
	struct kunit *test = w->test;
	const struct walk_done *d = &w->op[WALK_RECV];
	int err[3] = { ECANCELED, ECANCELED, ENOTCONN }, i, got = -1;

	if (right && s->op == 0 && !s->ack)
		got = WALK_RECV;
	else if (right && (s->op == 1 || s->op == 5))
		got = WALK_TRECV;
	else if (right && s->op == 7)
		got = WALK_ASKED;
	if (got >= 0)
		err[got] = verdict == WALK_PART || s->op == 5 ? ENOTCONN :
			   s->payload > WALK_ROOM ? FI_ETRUNC : 0;
	for (i = 0; i < 3; i++)
		if (d[i].posted)
			KUNIT_EXPECT_EQ_MSG(test, d[i].err, err[i], "%s, receive %d", what, i);
	if (got < 0 || err[got] == ENOTCONN)
		return;
	KUNIT_EXPECT_EQ_MSG(test, d[got].len, min_t(u64, s->payload, WALK_ROOM), "%s", what);
	KUNIT_EXPECT_EQ_MSG(test, d[got].data, s->data, "%s", what);
	KUNIT_EXPECT_EQ_MSG(test, d[got].tag, s->op == 7 ? WALK_TAG : s->tag, "%s", what);
	KUNIT_EXPECT_PTR_EQ_MSG(test, memchr_inv(w->buf[got], WALK_PAYLOAD, d[got].len), NULL,
				"%s", what);
}

/* The endpoint's own operations, and its memory */
static void walk_check_others(struct walk *w, enum walk_verdict verdict,
			      const struct walk_said *s, const char *what)
{
	const bool right = verdict == WALK_RIGHT;
	struct kunit *test = w->test;
	const u8 *end = w->mem + 3 * WALK_MEM;
	u8 *p = w->mem + WALK_MEM;
	int i;

	if (w->op[WALK_SEND].posted)
		KUNIT_EXPECT_EQ_MSG(test, !w->op[WALK_SEND].err, right && s->ack, "%s", what);
	if (w->op[WALK_READ].posted)
		KUNIT_EXPECT_EQ_MSG(test, !w->op[WALK_READ].err, right && s->op == 3, "%s",
				    what);
	if (w->op[WALK_TSEND].posted)
		KUNIT_EXPECT_EQ_MSG(test, !w->op[WALK_TSEND].err, right && s->op == 6, "%s",
				    what);
	if (right && s->op == 4) {
		if (s->flags & 1)
			KUNIT_EXPECT_EQ_MSG(test, w->write.data, s->data, "%s", what);
		for (i = 0; i < s->segs; i++)
			KUNIT_EXPECT_PTR_EQ_MSG(test, memchr_inv(p + s->addr[i], WALK_PAYLOAD,
								 s->len[i]),
						NULL, "%s", what);
		for (i = 0; i < s->segs; i++)
			memset(p + s->addr[i], WALK_REGION, s->len[i]);
	}
	p = memchr_inv(w->mem, WALK_REGION, end - w->mem);
	KUNIT_ASSERT_PTR_EQ_MSG(test, p, NULL, "%s: byte %td of the memory", what, p - w->mem);
}

/* A message of the other peer */
static void walk_honest(struct walk *w)
{
	rdm_tsend(w->test, w->b, w->peer, 3, WALK_LEN, 0);
	rdm_trecv(w->test, w->a, 3, WALK_LEN);
	rdm_sent(w->test, w->b, 1, 0);
}

static void walk_one(struct walk *w, const u8 *frame, size_t hdr, const char *what)
{
	u8 *b = w->wire;
	struct kunit *test = w->test;
	enum walk_verdict verdict;
	struct walk_said s;
	size_t payload;
	bool write;
	u64 frames;
	int i, err;

	walk_begin(w);
	verdict = walk_judge(w, frame, &s);
	w->tried[verdict]++;
	payload = verdict == WALK_RIGHT ? s.payload : WALK_LEN;
	memcpy(b, frame, hdr);
	memset(b + hdr, WALK_PAYLOAD, payload);
	payload += hdr;
	if (verdict == WALK_RIGHT)
		payload += walk_marker(w, b + payload);
	frames = rdm_stat(w->a, "rx_frames");
	err = live_raw_send(w->sock, b, payload);
	/* one that is being closed may take less */
	if (verdict == WALK_RIGHT)
		KUNIT_EXPECT_EQ_MSG(test, err, (int)payload, "%s", what);
	if (verdict == WALK_PART) {
		unsigned long end = jiffies + LIVE_JIFFIES;

		while (rdm_stat(w->a, "rx_frames") == frames && time_before(jiffies, end))
			schedule_timeout_uninterruptible(1);
		KUNIT_EXPECT_EQ_MSG(test, rdm_stat(w->a, "rx_frames"), frames + 1, "%s", what);
	} else {
		err = walk_answers(w, 1 + (verdict == WALK_RIGHT && s.op == 2));
		KUNIT_EXPECT_EQ_MSG(test, !err, verdict == WALK_RIGHT, "%s: %d", what, err);
		KUNIT_EXPECT_NE_MSG(test, err, -EAGAIN, "%s: it goes on", what);
	}
	w->violations += verdict == WALK_BAD;
	KUNIT_EXPECT_EQ_MSG(test, rdm_stat(w->a, "violations"), w->violations, "%s", what);
	w->violations = rdm_stat(w->a, "violations");
	sock_release(w->sock);
	w->sock = NULL;

	for (i = 0; i < 3; i++)
		if (w->op[i].posted)
			fi_cancel(&w->a->ep->fid, &w->op[i]);
	write = verdict == WALK_RIGHT && s.op == 4 && s.flags & 1;
	walk_ended(w, w->a->rx, 0, 3, write);
	walk_ended(w, w->a->tx, 3, WALK_OPS, false);
	walk_check_receives(w, verdict, &s, what);
	walk_check_others(w, verdict, &s, what);
	walk_honest(w);
}

static void walk_field(struct walk *w, const u8 *frame, size_t hdr,
		       const struct walk_field *f)
{
	u64 value[WALK_VALUES], good = walk_get(frame + f->at, f->width);
	unsigned int i, n = walk_values(f->width, good, f->limit, value);
	u8 changed[KSK_HDR_MAX];
	char what[48];

	for (i = 0; i < n; i++) {
		memcpy(changed, frame, hdr);
		walk_put(value[i], changed + f->at, f->width);
		snprintf(what, sizeof(what), "%s at %u: %#llx", f->name, f->at, value[i]);
		walk_one(w, changed, hdr, what);
	}
}

/* ------------------------------------------------------------------------- the test */

static void walk_open(struct kunit *test, struct walk *w)
{
	const struct sockaddr_in attacker = {
		.sin_family = AF_INET,
		.sin_port = htons(WALK_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const u64 caps = FI_MSG | FI_TAGGED | FI_RMA | FI_RMA_EVENT;
	unsigned int min = ksk_rendezvous_min;
	struct rdm_test *t = test->priv;
	int i;

	*w = (struct walk){
		.test = test, .kind = test->param_value, .a = &t->node[0],
		.b = &t->node[1],
	};
	for (i = 0; i < WALK_OPS; i++) {
		w->buf[i] = kunit_kzalloc(test, WALK_LONG, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, w->buf[i]);
	}
	w->mem = kunit_kmalloc(test, 3 * WALK_MEM, GFP_KERNEL);
	w->wire = kunit_kmalloc(test, 2 * WALK_SENT, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, w->mem);
	KUNIT_ASSERT_NOT_NULL(test, w->wire);
	memset(w->mem, WALK_REGION, 3 * WALK_MEM);
	test_param_set(test, &ksk_rendezvous_min, WALK_LONG);
	rdm_open(test, w->a, caps, 0);
	WRITE_ONCE(ksk_rendezvous_min, min);
	rdm_open(test, w->b, caps, 0);
	w->raw = rdm_insert(test, w->a, &attacker);
	rdm_insert(test, w->a, &w->b->addr);
	w->peer = rdm_insert(test, w->b, &w->a->addr);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(w->a->domain, w->mem + WALK_MEM, WALK_MEM,
					FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 5, 0, &w->mr,
					NULL), 0);
	w->key = fi_mr_key(w->mr);
}

static void walk_frames(struct kunit *test)
{
	struct walk *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	u8 frame[KSK_HDR_MAX];
	unsigned long end;
	unsigned int i;
	size_t hdr;

	KUNIT_ASSERT_NOT_NULL(test, w);
	walk_open(test, w);
	hdr = walk_frame(w, frame);
	for (i = 0; i < w->fields; i++)
		walk_field(w, frame, hdr, &w->field[i]);

	end = jiffies + LIVE_JIFFIES;
	while (rdm_stat(w->a, "connections") != 1 && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, rdm_stat(w->a, "connections"), 1);
	KUNIT_EXPECT_EQ(test, rdm_stat(w->a, "rx_unexpected_bytes"), 0);
	KUNIT_EXPECT_GT(test, w->tried[WALK_RIGHT], 0);
	KUNIT_EXPECT_GT(test, w->tried[WALK_BAD], 0);
	KUNIT_EXPECT_EQ(test, fi_close(&w->mr->fid), 0);
	kunit_info(test, "%u that none may send, %u right, %u too long to be sent",
		   w->tried[WALK_BAD], w->tried[WALK_RIGHT], w->tried[WALK_PART]);
}

static struct kunit_case walk_cases[] = {
	KUNIT_CASE_PARAM_ATTR(walk_frames, walk_kind_gen_params,
			      { .speed = KUNIT_SPEED_SLOW }),
	{}
};

static struct kunit_suite sock_walk_suite = {
	.name		= "sock_walk",
	.suite_init	= lo_suite_init,
	.init		= rdm_init,
	.exit		= rdm_exit,
	.test_cases	= walk_cases,
};

kunit_test_suite(sock_walk_suite);

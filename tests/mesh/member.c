// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the members of a mesh post, and what completes. */
#include "mesh.h"

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

/* ---------------------------------------------------------------- receives */

static int mesh_recv_post(struct mesh *m, int at, enum mesh_kind kind,
			  struct mesh_recv *r)
{
	struct mesh_end *e = &m->end[at];
	ssize_t err;

	r->done = false;
	err = kind == MESH_TAGGED ?
	      fi_trecv(e->ep, r->buf, MESH_LEN, NULL, FI_ADDR_UNSPEC, 0, ~0ULL,
		       r) :
	      fi_recv(e->ep, r->buf, MESH_LEN, NULL, FI_ADDR_UNSPEC, r);
	if (err)
		mesh_wrong(m, "a receive was refused with %zd", err);
	return err;
}

int mesh_recvs_post(struct mesh *m, int at)
{
	struct mesh_end *e = &m->end[at];
	int kind, i, err = 0;

	for (kind = 0; kind < MESH_RMA && !err; kind++) {
		e->first[kind] = 0;
		for (i = 0; i < MESH_RECVS && !err; i++)
			err = mesh_recv_post(m, at, kind, &e->recvs[kind][i]);
	}
	return err;
}

/*
 * Is a message of a peer that lives the next one? Some may be early: a receive that was
 * given to a message of a connection that then ended goes to one that comes later than
 * those that have got the receives behind it. None comes twice; mesh.c looks at how many
 * there were.
 */
static bool mesh_in_order(struct mesh *m, struct mesh_peer *p, enum mesh_kind kind,
			  u32 seq)
{
	u32 *seen = &p->seen[kind], *ahead = &p->ahead[kind];
	u32 gap = seq - *seen - 1;

	if (gap >= MESH_RECVS || *ahead & BIT(gap))
		return false;
	m->early += !!gap;
	*ahead |= BIT(gap);
	for (; *ahead & 1; *ahead >>= 1)
		++*seen;
	return true;
}

static void mesh_recv_check(struct mesh *m, int at, enum mesh_kind kind,
			    const struct mesh_recv *r)
{
	struct mesh_told told;
	struct mesh_hdr hdr;
	struct mesh_peer *p;
	u32 seen;
	bool good;

	if (r->len < sizeof(hdr)) {
		mesh_wrong(m, "a message of %zu bytes", r->len);
		return;
	}
	memcpy(&hdr, r->buf, sizeof(hdr));
	if (hdr.from >= MESH_ENDS || r->src != hdr.from || r->len != hdr.len ||
	    (hdr.kind != kind && (hdr.kind != MESH_TELL || kind != MESH_MSG))) {
		mesh_wrong(m, "%zu bytes from %llu, kind %u, say %u bytes from %u, kind %u",
			   r->len, r->src, kind, hdr.len, hdr.from, hdr.kind);
		return;
	}
	p = &m->end[at].peer[hdr.from];
	if (hdr.kind == MESH_TELL) {
		memcpy(&told, r->buf, sizeof(told));
		mesh_heard(m, at, &told);
		return;
	}
	/* what is known is another one's: of one to come, or of one before */
	if (hdr.life != p->life) {
		p->known = false;
		return;
	}
	if (!mesh_filled(r->buf + sizeof(hdr), r->len - sizeof(hdr),
			 mesh_seed(hdr.from, hdr.seq)))
		mesh_wrong(m, "message %u of %u to %d, %u bytes, is wrong",
			   hdr.seq, hdr.from, at, hdr.len);
	m->messages++;
	p->here++;
	seen = p->seen[kind];
	if (mesh_live(m, at, hdr.from)) {
		good = mesh_in_order(m, p, kind, hdr.seq);
	} else {
		good = hdr.seq != seen;
		p->seen[kind] = hdr.seq;
	}
	if (!good)
		mesh_wrong(m, "message %u of %u to %d, kind %d, came behind %u",
			   hdr.seq, hdr.from, at, kind, seen);
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
		r->done = false;
		if (e->ep && mesh_recv_post(m, at, kind, r))
			return;
		e->first[kind] = (e->first[kind] + 1) % MESH_RECVS;
	}
}

/* --------------------------------------------------------------- transmits */

/* Those to a machine that is off leave the other ones half of them. */
static struct mesh_op *mesh_op_get(struct mesh *m, int at, int to)
{
	struct mesh_end *e = &m->end[at];
	int i;

	for (i = mesh_dies(m, to) ? MESH_SENDS / 2 : 0; i < MESH_SENDS; i++)
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
	u32 *sent = &e->peer[op->peer].sent[op->kind];
	struct mesh_hdr hdr = {
		.kind = op->kind, .from = at, .life = m->opts.life, .seq = *sent + 1,
	};
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
	struct mesh_end *e = &m->end[at];
	const struct mesh_peer *p = &e->peer[op->peer];
	u64 addr = p->base + (at * MESH_SENDS + (op - e->ops)) * MESH_SLOT;
	u8 *back = op->buf + MESH_SLOT;
	ssize_t err;

	op->len = 1 + prandom_u32_state(&m->rnd) % MESH_SLOT;
	op->seed = prandom_u32_state(&m->rnd);
	mesh_fill(op->buf, op->len, op->seed);
	memset(back, ~op->buf[0], op->len);
	op->left = 1;
	err = fi_write(e->ep, op->buf, op->len, NULL, op->peer, addr, p->key,
		       op);
	if (err)
		return err;
	/* without the read nothing is looked at */
	err = fi_read(e->ep, back, op->len, NULL, op->peer, addr, p->key, op);
	op->left += !err;
	if (err)
		op->err = EAGAIN;
	return 0;
}

static ssize_t mesh_add(struct mesh *m, int at, struct mesh_op *op)
{
	struct mesh_end *e = &m->end[at];
	const struct mesh_peer *p = &e->peer[op->peer];
	u64 *value = (u64 *)op->buf;

	op->left = 1;
	op->seed = prandom_u32_state(&m->rnd);
	*value = op->seed;
	return fi_atomic(e->ep, value, 1, NULL, op->peer,
			 p->base + MESH_WORDS + at * sizeof(*value), p->key,
			 FI_UINT64, FI_SUM, op);
}

/* Something, from a member of this machine; false if it has to wait */
bool mesh_post(struct mesh *m, int at)
{
	int kinds = m->info->caps & FI_ATOMIC ? MESH_KINDS : MESH_ATOMIC;
	int to = prandom_u32_state(&m->rnd) % MESH_ENDS;
	struct mesh_op *op = mesh_op_get(m, at, to);
	ssize_t err;

	if (!op)
		return false;
	op->peer = to;
	op->kind = prandom_u32_state(&m->rnd) % kinds;
	if (!m->end[at].peer[to].known)
		return false;
	op->err = 0;
	op->used = true;
	err = op->kind == MESH_RMA ? mesh_access(m, at, op) :
	      op->kind == MESH_ATOMIC ? mesh_add(m, at, op) :
					mesh_send(m, at, op);
	if (!err)
		return true;
	op->used = false;
	if (err != -EAGAIN)
		mesh_wrong(m, "%d was refused an operation of kind %d with %zd",
			   at, op->kind, err);
	return false;
}

/* Have another member know where this one's region is, or that it was the last. */
bool mesh_tell(struct mesh *m, int at, int to, bool last)
{
	struct mesh_end *e = &m->end[at];
	struct mesh_op *op = mesh_op_get(m, at, to);
	struct mesh_peer *p = &e->peer[to];
	const struct mesh_told told = {
		.hdr = {
			.kind = MESH_TELL, .from = at, .life = m->opts.life,
			.len = sizeof(told),
		},
		.base = kofi_mr_base(e->mr),
		.key = fi_mr_key(e->mr),
		.hears = p->known,
		.last = last,
		.sent = { p->sent[MESH_MSG], p->sent[MESH_TAGGED] },
		.added = p->added,
	};
	ssize_t err;

	if (!op)
		return false;
	op->peer = to;
	op->kind = MESH_TELL;
	op->err = 0;
	op->left = 1;
	memcpy(op->buf, &told, sizeof(told));
	err = fi_send(e->ep, op->buf, sizeof(told), NULL, to, op);
	if (err && err != -EAGAIN)
		mesh_wrong(m, "%d could not tell %d: %zd", at, to, err);
	op->used = !err;
	p->telling = !err;
	return !err;
}

/* ------------------------------------------------------------- completions */

static void mesh_op_end(struct mesh *m, int at, struct mesh_op *op, int err)
{
	struct mesh_peer *p = &m->end[at].peer[op->peer];

	if (!op->used || op->left <= 0) {
		mesh_wrong(m, "%d got a completion too many, error %d", at, err);
		return;
	}
	m->errors += !!err;
	/* before it has told of itself a member may not be there yet */
	if (err && p->known && mesh_live(m, at, op->peer))
		mesh_wrong(m, "kind %d from %d to %d failed with %d", op->kind,
			   at, op->peer, err);
	op->err = op->err ?: err;
	if (--op->left)
		return;
	op->used = false;
	if (op->kind == MESH_TELL)
		p->telling = false;
	else
		p->there += !op->err;
	if (op->kind == MESH_ATOMIC && !op->err) {
		p->added += op->seed;
		m->atomics++;
	}
	/* what is between has failed if one of them was closed */
	if (op->kind != MESH_RMA || op->err || !mesh_live(m, at, op->peer))
		return;
	if (!mesh_filled(op->buf + MESH_SLOT, op->len, op->seed))
		mesh_wrong(m, "%d read back from %d what it has not written", at,
			   op->peer);
	m->accesses++;
}

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

/* Nothing ends connections between those that live. */
static void mesh_events(struct mesh *m, int at)
{
	struct fi_eq_err_entry lost = {};
	struct fi_eq_entry entry;
	u32 event;

	while (fi_eq_read(m->end[at].eq, &event, &entry, sizeof(entry), 0) ==
	       -FI_EAVAIL) {
		if (fi_eq_readerr(m->end[at].eq, &lost, 0) < 0)
			return;
		m->lost++;
		if (mesh_live(m, at, lost.data))
			mesh_wrong(m, "the connection of %d to %llu was lost: %d",
				   at, (u64)lost.data, lost.err);
	}
}

void mesh_progress_one(struct mesh *m, int at)
{
	struct mesh_end *e = &m->end[at];
	struct mesh_recv *r;
	struct mesh_op *op;
	size_t len = 0;
	fi_addr_t src;
	int err;

	/* first, as it is the cause of what completes */
	mesh_events(m, at);
	while ((op = mesh_read(e->tx, &err, &len, &src)))
		mesh_op_end(m, at, op, err);
	while ((r = mesh_read(e->rx, &err, &len, &src))) {
		if (r->done)
			mesh_wrong(m, "%d: a receive has completed twice", at);
		r->done = true;
		r->err = err;
		r->len = len;
		r->src = src;
	}
	mesh_recvs(m, at, MESH_MSG);
	mesh_recvs(m, at, MESH_TAGGED);
}

/* Has a member no transmits under way? */
bool mesh_idle(const struct mesh_end *e)
{
	int i;

	for (i = 0; i < MESH_SENDS; i++)
		if (e->ops[i].used)
			return false;
	return true;
}

/* The same of those to one other member */
bool mesh_idle_to(const struct mesh_end *e, int to)
{
	int i;

	for (i = 0; i < MESH_SENDS; i++)
		if (e->ops[i].used && e->ops[i].peer == to)
			return false;
	return true;
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The life of a mesh.
 *
 * Where members are is known, their regions are not: each tells all others of its
 * own until it has heard of theirs, and once more who has not heard of its own. In the
 * end each tells those that live what it has sent them, when all of it has completed;
 * who has got that from all of them, and all that it says, has got everything. Its
 * endpoints then stay, so that nothing is lost that is on its way to the others, until
 * mesh_close().
 *
 * A machine that is switched off has other members when it is on again, of a higher
 * life, which is in each message. Who meets them must have exchanged something with
 * those before them, in both directions, and forgets what it knew of these.
 *
 * Sockets, packets and stored messages take memory that does not depend on how long it
 * goes on: if more of it is in use at any time than @room, that is a mistake.
 *
 * A mistake is kept, with a sentence about the first one, and ends the run.
 */
#include <linux/inet.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include <linux/kofi/provider.h>

#include "mesh.h"

#define MESH_AGAIN	(HZ / 5)	/* between what it is told who does not answer */
#define MESH_PEERS	(2 * MESH_ENDS)	/* an endpoint has: some may be about to end */

void mesh_wrong(struct mesh *m, const char *fmt, ...)
{
	va_list args;

	if (m->wrong++)
		return;
	va_start(args, fmt);
	vsnprintf(m->why, sizeof(m->why), fmt, args);
	va_end(args);
}

/* Has the run failed? */
static bool mesh_failed(struct mesh *m, const char *what)
{
	if (!m->wrong && time_after(jiffies, m->deadline))
		mesh_wrong(m, "%s takes too long", what);
	return m->wrong;
}

static void mesh_patience(struct mesh *m)
{
	m->deadline = jiffies + msecs_to_jiffies(m->opts.limit_ms);
}

/* ----------------------------------------------------------------- objects */

static int mesh_open_ep(struct mesh *m, int at)
{
	struct mesh_end *e = &m->end[at];
	void *old = m->info->src_addr;
	int err;

	m->info->src_addr = &m->name[at];
	err = fi_endpoint(m->domain, m->info, &e->ep, NULL);
	m->info->src_addr = old;
	if (err)
		return err;
	err = fi_ep_bind(e->ep, &e->av->fid, 0);
	err = err ?: fi_ep_bind(e->ep, &e->eq->fid, 0);
	err = err ?: fi_ep_bind(e->ep, &e->tx->fid, FI_TRANSMIT);
	err = err ?: fi_ep_bind(e->ep, &e->rx->fid, FI_RECV);
	err = err ?: fi_enable(e->ep);
	return err ?: mesh_recvs_post(m, at);
}

static int mesh_open_bufs(struct mesh_end *e)
{
	int kind, i;

	e->mem = vzalloc(MESH_MEM);
	if (!e->mem)
		return -ENOMEM;
	for (i = 0; i < MESH_SENDS; i++) {
		e->ops[i].buf = vmalloc(MESH_LEN);
		if (!e->ops[i].buf)
			return -ENOMEM;
	}
	for (kind = 0; kind < MESH_RMA; kind++) {
		for (i = 0; i < MESH_RECVS; i++) {
			e->recvs[kind][i].buf = vmalloc(MESH_LEN);
			if (!e->recvs[kind][i].buf)
				return -ENOMEM;
		}
	}
	return 0;
}

static int mesh_open_end(struct mesh *m, int at)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct mesh_end *e = &m->end[at];
	fi_addr_t addr;
	int i, err;

	e->here = true;
	err = mesh_open_bufs(e);
	err = err ?: fi_cq_open(m->domain, &attr, &e->tx, NULL);
	err = err ?: fi_cq_open(m->domain, &attr, &e->rx, NULL);
	err = err ?: fi_eq_open(m->fabric, &(struct fi_eq_attr) {}, &e->eq,
				NULL);
	err = err ?: fi_av_open(m->domain, &(struct fi_av_attr) {}, &e->av,
				NULL);
	err = err ?: fi_mr_reg(m->domain, e->mem, MESH_MEM,
			       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0,
			       &e->mr, NULL);
	for (i = 0; i < MESH_ENDS && !err; i++) {
		e->peer[i].due = true;
		e->peer[i].life = mesh_parted(m, at, i) ? 0 : m->opts.life;
		e->peer[i].again = jiffies;
		if (fi_av_insert(e->av, &m->name[i], 1, &addr, 0, NULL) != 1 ||
		    addr != i)
			err = -EINVAL;
	}
	return err ?: mesh_open_ep(m, at);
}

static void mesh_close_end(struct mesh *m, int at)
{
	struct mesh_end *e = &m->end[at];
	int kind, i, err = 0;

	if (e->ep)
		err = fi_close(&e->ep->fid);
	if (e->mr)
		err = fi_close(&e->mr->fid) ?: err;
	if (e->av)
		err = fi_close(&e->av->fid) ?: err;
	if (e->tx)
		err = fi_close(&e->tx->fid) ?: err;
	if (e->rx)
		err = fi_close(&e->rx->fid) ?: err;
	if (e->eq)
		err = fi_close(&e->eq->fid) ?: err;
	WARN_ON(err);
	vfree(e->mem);
	for (i = 0; i < MESH_SENDS; i++)
		vfree(e->ops[i].buf);
	for (kind = 0; kind < MESH_RMA; kind++)
		for (i = 0; i < MESH_RECVS; i++)
			vfree(e->recvs[kind][i].buf);
}

/**
 * mesh_close - close all members of this machine
 * @m: the mesh
 */
void mesh_close(struct mesh *m)
{
	int i;

	for (i = 0; i < MESH_ENDS; i++)
		if (m->end[i].here)
			mesh_close_end(m, i);
	if (m->domain)
		WARN_ON(fi_close(&m->domain->fid));
	if (m->fabric)
		WARN_ON(fi_close(&m->fabric->fid));
	fi_freeinfo(m->info);
	vfree(m);
}
EXPORT_SYMBOL_GPL(mesh_close);

static int mesh_getinfo(struct mesh *m)
{
	struct fi_info *hints = fi_allocinfo();
	int err;

	if (!hints)
		return -ENOMEM;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_SOURCE;
	/* there are none in the native protocol */
	if (strstr(m->opts.prov, "ofi_rxm"))
		hints->caps |= FI_ATOMIC;
	hints->ep_attr->type = FI_EP_RDM;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR |
				      FI_MR_ALLOCATED;
	hints->fabric_attr->prov_name = kstrdup(m->opts.prov, GFP_KERNEL);
	hints->domain_attr->name = kstrdup(m->opts.device, GFP_KERNEL);
	err = fi_getinfo(FI_VERSION(2, 1), m->opts.hosts[m->opts.here], "0",
			 FI_SOURCE | FI_NUMERICHOST, hints, &m->info);
	fi_freeinfo(hints);
	return err;
}

static int mesh_names(struct mesh *m)
{
	struct sockaddr_in *name;
	int i;

	for (i = 0; i < MESH_ENDS; i++) {
		name = &m->name[i];
		name->sin_family = AF_INET;
		name->sin_port = htons(MESH_PORT + i);
		if (!in4_pton(m->opts.hosts[i % m->opts.machines], -1,
			      (u8 *)&name->sin_addr.s_addr, -1, NULL))
			return -EINVAL;
	}
	return 0;
}

/**
 * mesh_open - open the members that are in this machine
 * @opts: how the mesh is
 * @err: why it could not be done
 *
 * Return: the mesh, or NULL.
 */
struct mesh *mesh_open(const struct mesh_opts *opts, int *err)
{
	struct mesh *m = vzalloc(sizeof(*m));
	int i;

	*err = -ENOMEM;
	if (!m)
		return NULL;
	m->opts = *opts;
	*err = mesh_names(m);
	*err = *err ?: mesh_getinfo(m);
	*err = *err ?: fi_fabric(m->info->fabric_attr, &m->fabric, NULL);
	*err = *err ?: fi_domain(m->fabric, m->info, &m->domain, NULL);
	for (i = opts->here; i < MESH_ENDS && !*err; i += opts->machines)
		*err = mesh_open_end(m, i);
	if (!*err)
		return m;
	mesh_close(m);
	return NULL;
}
EXPORT_SYMBOL_GPL(mesh_open);

/* Closed, with an error for all that it had */
static void mesh_end_member(struct mesh *m, int at)
{
	struct mesh_end *e = &m->end[at];
	int err = fi_close(&e->ep->fid);

	if (err) {
		mesh_wrong(m, "closing %d gave %d", at, err);
		return;
	}
	e->ep = NULL;
	mesh_progress_one(m, at);
	if (!mesh_idle(e))
		mesh_wrong(m, "transmits of %d outlive it", at);
	m->closes++;
}

/* ... and opened at the same address */
static void mesh_reopen(struct mesh *m, int at)
{
	int err;

	mesh_end_member(m, at);
	if (m->wrong)
		return;
	err = mesh_open_ep(m, at);
	if (err)
		mesh_wrong(m, "opening %d again gave %d", at, err);
}

/* --------------------------------------------- what they tell of themselves */

/* What one life of its machine has been good for */
static void mesh_check_life(struct mesh *m, int at, int from)
{
	const struct mesh_peer *p = &m->end[at].peer[from];

	if (mesh_parted(m, at, from) && (!p->there || !p->here))
		mesh_wrong(m, "%d has done %u with %d in its life %u, that %u with it", at,
			   p->there, from, p->life, p->here);
}

/* A member has told this one of itself. */
void mesh_heard(struct mesh *m, int at, const struct mesh_told *told)
{
	struct mesh_peer *p = &m->end[at].peer[told->hdr.from];

	/* from before it was switched off, in a receive that was given back */
	if (told->hdr.life < p->life)
		return;
	if (told->hdr.life > p->life) {
		mesh_check_life(m, at, told->hdr.from);
		p->life = told->hdr.life;
		p->there = 0;
		p->here = 0;
		memset(p->seen, 0, sizeof(p->seen));
	}
	p->known = true;
	p->base = told->base;
	p->key = told->key;
	if (!told->hears)
		p->due = true;
	if (!told->last)
		return;
	if (p->last.last)
		mesh_wrong(m, "%u has told %d its last twice", told->hdr.from,
			   at);
	p->last = *told;
}

/* Who does not know this member, or has not told it, is told. */
static void mesh_tell_due(struct mesh *m, int at)
{
	struct mesh_peer *p;
	int i;

	for (i = 0; i < MESH_ENDS; i++) {
		p = &m->end[at].peer[i];
		if (p->telling || (p->known && !p->due) ||
		    time_before(jiffies, p->again))
			continue;
		if (!mesh_tell(m, at, i, false))
			return;
		p->due = false;
		p->again = jiffies + MESH_AGAIN;
	}
}

/* Those that live get to know when nothing follows. */
static void mesh_tell_last(struct mesh *m, int at)
{
	struct mesh_end *e = &m->end[at];
	int i;

	for (i = 0; i < MESH_ENDS; i++)
		if (mesh_live(m, at, i) && !e->peer[i].over &&
		    mesh_idle_to(e, i))
			e->peer[i].over = mesh_tell(m, at, i, true);
}

static void mesh_progress(struct mesh *m)
{
	struct sysinfo mem;
	int i;

	for (i = 0; i < MESH_ENDS; i++) {
		if (!m->end[i].here)
			continue;
		mesh_progress_one(m, i);
		if (m->end[i].ep && !m->ending)
			mesh_tell_due(m, i);
		else if (m->end[i].ep)
			mesh_tell_last(m, i);
	}
	si_meminfo(&mem);
	m->low = min(m->low, (u64)mem.freeram * mem.mem_unit);
	cond_resched();
}

/* Devices in software, and other machines, have their turn. */
static void mesh_wait(struct mesh *m)
{
	mesh_progress(m);
	schedule_timeout_uninterruptible(1);
}

/* ------------------------------------------------------------------- phases */

static bool mesh_met(const struct mesh *m)
{
	int i, j;

	for (i = 0; i < MESH_ENDS; i++)
		for (j = 0; j < MESH_ENDS; j++)
			if (m->end[i].here && !m->end[i].peer[j].known)
				return false;
	return true;
}

static void mesh_traffic(struct mesh *m)
{
	const struct mesh_opts *o = &m->opts;
	const bool mortal = m->end[MESH_MORTAL].here;
	unsigned long end = jiffies + msecs_to_jiffies(o->ms);
	unsigned long close = jiffies + msecs_to_jiffies(o->close_ms);
	unsigned int posts = 0, at;
	bool due;

	while (!mesh_failed(m, "a post") && !(o->stop && READ_ONCE(*o->stop)) &&
	       (posts < o->posts || time_before(jiffies, end))) {
		at = prandom_u32_state(&m->rnd) % MESH_ENDS;
		if (!m->end[at].here)
			continue;
		if (!mesh_post(m, at)) {
			mesh_wait(m);
			continue;
		}
		mesh_patience(m);
		if (++posts % 4 == 0)
			mesh_progress(m);
		due = o->close_ms ? time_after(jiffies, close) :
		      posts % o->close_posts == 0;
		if (!mortal || !due)
			continue;
		mesh_reopen(m, MESH_MORTAL);
		close = jiffies + msecs_to_jiffies(o->close_ms);
	}
}

/* Has a member got all there is for it, and all that it has sent completed? */
static bool mesh_settled_one(const struct mesh *m, int at)
{
	const struct mesh_end *e = &m->end[at];
	const struct mesh_peer *p;
	int i;

	if (!mesh_idle(e))
		return false;
	for (i = 0; i < MESH_ENDS; i++) {
		p = &e->peer[i];
		if (mesh_live(m, at, i) &&
		    (!p->over || !p->last.last ||
		     memcmp(p->seen, p->last.sent, sizeof(p->seen))))
			return false;
	}
	return true;
}

static bool mesh_settled(const struct mesh *m)
{
	int i;

	for (i = 0; i < MESH_ENDS; i++)
		if (m->end[i].here && !mesh_settled_one(m, i))
			return false;
	return true;
}

/* Nothing that was added between live ones is lost, or was added twice. */
static void mesh_check_words(struct mesh *m, int at)
{
	const u64 *words = (u64 *)(m->end[at].mem + MESH_WORDS);
	int i;

	for (i = 0; i < MESH_ENDS; i++)
		if (mesh_live(m, i, at) &&
		    words[i] != m->end[at].peer[i].last.added)
			mesh_wrong(m, "%d has added %llu to %d, there are %llu",
				   i, m->end[at].peer[i].last.added, at,
				   words[i]);
}

static void mesh_check_stat(void *arg, const char *name, u64 value)
{
	struct mesh *m = arg;

	if ((!strcmp(name, "peers") || !strcmp(name, "connections")) &&
	    value > MESH_PEERS)
		mesh_wrong(m, "an endpoint has %llu %s", value, name);
	/* who does not know that this is another one uses the keys of the one before */
	if (!strcmp(name, "violations") && value && !mesh_dies(m, m->opts.here))
		mesh_wrong(m, "an endpoint has seen %llu violations", value);
}

/* Each has met the last member there was, and gone on with it. */
static void mesh_check_lives(struct mesh *m, int at)
{
	u32 life;
	int i;

	for (i = 0; i < MESH_ENDS; i++) {
		life = mesh_dies(m, i) ? m->opts.deaths : 0;
		if (m->end[at].peer[i].life != life)
			mesh_wrong(m, "%d knows %u of life %u, not %u", at, i,
				   m->end[at].peer[i].life, life);
		mesh_check_life(m, at, i);
	}
}

static void mesh_check(struct mesh *m)
{
	struct kofi_obj *obj;
	int i;

	for (i = 0; i < MESH_ENDS; i++) {
		if (!m->end[i].ep)
			continue;
		mesh_check_words(m, i);
		mesh_check_lives(m, i);
		obj = m->end[i].ep->fid.obj;
		if (obj->ops && obj->ops->stats)
			obj->ops->stats(obj, mesh_check_stat, m);
	}
	/* a connection that ends gives back its receives; not each end is an event */
	if (m->early > MESH_RMA * MESH_RECVS * (m->lost + m->errors))
		mesh_wrong(m, "%u messages were early, and %u connections lost, %u transmits",
			   m->early, m->lost, m->errors);
	/* chance has not left out a kind */
	if (m->messages <= 100 || m->accesses <= 10 ||
	    (m->info->caps & FI_ATOMIC && m->atomics <= 10))
		mesh_wrong(m, "only %u messages, %u accesses, %u added",
			   m->messages, m->accesses, m->atomics);
}

/**
 * mesh_used - how much memory has been in use, at most
 * @m: the mesh
 *
 * Return: KiB, in addition to what was when all had met.
 */
s64 mesh_used(const struct mesh *m)
{
	return ((s64)m->start - (s64)m->low) >> 10;
}
EXPORT_SYMBOL_GPL(mesh_used);

/**
 * mesh_run - all that the members of this machine do
 * @m: the mesh
 *
 * Their endpoints are to stay until the other machines are through, too.
 *
 * Context: process.
 * Return: 0, or -EIO with @m->why.
 */
int mesh_run(struct mesh *m)
{
	s64 used;

	prandom_seed_state(&m->rnd, m->opts.seed * MESH_MACHINES + m->opts.here);
	m->low = U64_MAX;
	mesh_patience(m);
	while (!mesh_failed(m, "meeting") && !mesh_met(m))
		mesh_wait(m);
	m->start = m->low;
	mesh_patience(m);
	mesh_traffic(m);
	m->ending = true;
	if (m->end[MESH_MORTAL].here && !m->wrong)
		mesh_end_member(m, MESH_MORTAL);
	mesh_patience(m);
	while (!mesh_failed(m, "the end") && !mesh_settled(m))
		mesh_wait(m);
	if (!m->wrong)
		mesh_check(m);
	used = mesh_used(m);
	if (m->opts.room && used > m->opts.room)
		mesh_wrong(m, "%lld KiB more in use, of %u that may be", used, m->opts.room);
	return m->wrong ? -EIO : 0;
}
EXPORT_SYMBOL_GPL(mesh_run);

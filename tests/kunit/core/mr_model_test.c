// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Random registrations, bindings, mappings, ends and accesses of peers, against
 * a model of a few lines per call.
 *
 * The model knows of each region which memory it names, who may do what to it
 * and by which key, and what that memory must hold. Every call must return what
 * the model says, every completion must be the one the model expects, at once,
 * and after every call all memory must be what the model has written. Accesses
 * of several steps stay open while regions end under them.
 *
 * A failure names its seed; the module parameter mr_seed repeats it.
 */
#include <linux/module.h>
#include <linux/prandom.h>

#include "fake.h"
#include "queues.h"

static unsigned int mr_seed;
module_param(mr_seed, uint, 0444);
MODULE_PARM_DESC(mr_seed, "run only this seed of the model of regions (0: all)");

#define MRM_RUNS		4	/* seeds per mode */
#define MRM_CALLS	1500
#define MRM_MRS		6	/* registered ones */
#define MRM_POOL		3	/* those of the pool follow */
#define MRM_ALL		(MRM_MRS + MRM_POOL)
#define MRM_SIZE		256
#define MRM_KEYS		8	/* consumers choose below */
#define MRM_OLD		32
#define MRM_OPEN		3

static const int mrm_modes[] = {
	FI_MR_PROV_KEY, 0, FI_MR_PROV_KEY | FI_MR_ENDPOINT, FI_MR_ENDPOINT,
};

struct mrm_region {
	struct kofi_cqe	cqe;
	struct fid_mr	*mr;	/* NULL: not registered, or in the pool */
	bool		open;
	bool		ended;	/* single-use, registered: only closing is left */
	bool		once;
	int		ep;	/* -1: any */
	u64		key;
	u64		access;
	u64		base;
	size_t		len;
	u32		life;	/* number of the registration */
	int		expected;	/* completions */
	int		calls;
	int		err;
	u64		flags;
	struct kofi_wc	wc;
	u8		mem[MRM_SIZE];
	u8		shadow[MRM_SIZE];
};

/* An access between two steps */
struct mrm_open {
	struct kofi_target	t;
	bool			used;
	int			ep;
	struct mrm_region	*r;
	u32			life;
	u64			access;
};

struct mrm {
	struct kunit		*test;
	struct rnd_state	rnd;
	u32			seed;
	int			mode;
	struct fake_world	*world;
	struct fid_eq		*eq;
	struct fid_cq		*cq;
	struct fid_ep		*ep[2];	/* the first has the pool */
	struct mrm_region	r[MRM_ALL];
	u64			old[MRM_OLD];	/* keys of the past */
	u32			nr_old;
	struct mrm_open		open[MRM_OPEN];
	struct xarray		keys;	/* of ours */
	u32			life;
	const char		*call;
	bool			failed;
};

static u32 mrm_random(struct mrm *m, u32 below)
{
	return prandom_u32_state(&m->rnd) % below;
}

static void mrm_check(struct mrm *m, bool right, const char *what)
{
	if (right || m->failed)
		return;
	m->failed = true;
	KUNIT_FAIL(m->test, "%s: %s (mode 0x%x, seed %u)", m->call, what,
		   m->mode, m->seed);
}

static void mrm_ret(struct mrm *m, int expected, int ret)
{
	if (expected == ret || m->failed)
		return;
	m->failed = true;
	KUNIT_FAIL(m->test, "%s: %d instead of %d (mode 0x%x, seed %u)",
		   m->call, ret, expected, m->mode, m->seed);
}

static void mrm_done(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct mrm_region *r = container_of(wc->cqe, struct mrm_region, cqe);

	r->wc = *wc;
	r->calls++;
}

static bool mrm_pooled(struct mrm *m, struct mrm_region *r)
{
	return r >= &m->r[MRM_MRS];
}

/* --------------------------------------------------------------- the model */

static struct mrm_region *mrm_find(struct mrm *m, int ep, u64 key)
{
	int i;

	for (i = 0; i < MRM_ALL; i++)
		if (m->r[i].open && m->r[i].key == key &&
		    (m->r[i].ep < 0 || m->r[i].ep == ep))
			return &m->r[i];
	return NULL;
}

static int mrm_allowed(struct mrm *m, int ep, u64 key, u64 addr, u64 len,
		       u64 access)
{
	struct mrm_region *r = mrm_find(m, ep, key);

	if (!r)
		return -EKEYREJECTED;
	if (!(r->access & access) || addr < r->base ||
	    addr - r->base > r->len || len > r->len - (addr - r->base))
		return -EACCES;
	return 0;
}

static void mrm_opened(struct mrm *m, struct mrm_region *r)
{
	r->open = true;
	r->key = fi_mr_key(r->mr);
	r->life = ++m->life;
	mrm_check(m, r->key != FI_KEY_NOTAVAIL, "no key");
	if (m->mode & FI_MR_PROV_KEY)
		mrm_check(m, !xa_insert(&m->keys, r->key, r, GFP_KERNEL),
			  "a key twice");
}

static void mrm_ended(struct mrm *m, struct mrm_region *r, int err, u64 flags)
{
	m->old[m->nr_old++ % MRM_OLD] = r->key;
	r->open = false;
	if (!mrm_pooled(m, r)) {
		r->ended = true;
	} else if (r->once || !err) {
		r->expected++;
		r->err = err;
		r->flags = flags;
	}
}

/* ----------------------------------------------------------- registrations */

static u64 mrm_access(struct mrm *m)
{
	static const u64 rights[] = {
		FI_REMOTE_READ, FI_REMOTE_WRITE, FI_SEND,
		FI_REMOTE_READ | FI_REMOTE_WRITE,
		FI_REMOTE_READ | FI_REMOTE_WRITE,
	};

	return rights[mrm_random(m, ARRAY_SIZE(rights))];
}

/* Two pieces of the memory that follow each other */
static void mrm_memory(struct mrm *m, struct mrm_region *r, struct kvec *iov)
{
	r->access = mrm_access(m);
	r->once = !mrm_random(m, 3);
	r->len = mrm_random(m, MRM_SIZE + 1);
	iov[0].iov_base = r->mem;
	iov[0].iov_len = mrm_random(m, r->len + 1);
	iov[1].iov_base = r->mem + iov[0].iov_len;
	iov[1].iov_len = r->len - iov[0].iov_len;
}

static void mrm_register(struct mrm *m)
{
	static const u64 bases[] = { 0, 4096, U64_MAX - MRM_SIZE };
	struct mrm_region *r = &m->r[mrm_random(m, MRM_MRS)];
	u64 key = mrm_random(m, MRM_KEYS);
	bool taken = false;
	struct kvec iov[2];
	struct fi_mr_attr attr = {
		.mr_iov = iov, .iov_count = 2, .requested_key = key,
		.base = bases[mrm_random(m, ARRAY_SIZE(bases))],
	};
	int i, ret;

	m->call = "register";
	if (r->mr)
		return;
	/* A key stays its region's until that is closed. */
	for (i = 0; i < MRM_MRS; i++)
		taken |= !(m->mode & FI_MR_PROV_KEY) && m->r[i].mr &&
			 m->r[i].key == key;
	mrm_memory(m, r, iov);
	attr.access = r->access;
	ret = fi_mr_regattr(m->world->domain, &attr,
			    r->once ? FI_MR_SINGLE_USE : 0, &r->mr);
	mrm_ret(m, taken ? -FI_ENOKEY : 0, ret);
	if (ret) {
		r->mr = NULL;
		return;
	}
	r->base = attr.base;
	r->ep = -1;
	r->ended = false;
	mrm_check(m, kofi_mr_base(r->mr) == r->base, "base");
	if (m->mode & FI_MR_ENDPOINT) {
		mrm_check(m, fi_mr_key(r->mr) == FI_KEY_NOTAVAIL, "a key");
		r->key = key;
	} else {
		mrm_opened(m, r);
	}
	if (!(m->mode & FI_MR_PROV_KEY))
		mrm_check(m, r->key == key, "another key");
}

static void mrm_bind(struct mrm *m)
{
	struct mrm_region *r = &m->r[mrm_random(m, MRM_MRS)];
	int ep = mrm_random(m, 2), expected = 0, ret;

	m->call = "bind";
	if (!r->mr)
		return;
	if (r->open || r->ended)
		expected = -FI_EOPBADSTATE;
	else if (r->ep >= 0)
		expected = -EBUSY;
	ret = fi_mr_bind(r->mr, &m->ep[ep]->fid, 0);
	mrm_ret(m, expected, ret);
	if (!ret)
		r->ep = ep;
}

static void mrm_enable(struct mrm *m)
{
	struct mrm_region *r = &m->r[mrm_random(m, MRM_MRS)];
	bool idle = !r->open && !r->ended;
	int ret;

	m->call = "enable";
	if (!r->mr)
		return;
	ret = fi_mr_enable(r->mr);
	mrm_ret(m, idle && r->ep < 0 ? -FI_EOPBADSTATE : 0, ret);
	if (!ret && idle)
		mrm_opened(m, r);
}

static void mrm_close(struct mrm *m, struct mrm_region *r)
{
	m->call = "close";
	if (!r->mr)
		return;
	mrm_ret(m, 0, fi_close(&r->mr->fid));
	if (r->open)
		mrm_ended(m, r, 0, 0);
	r->mr = NULL;
	r->ended = false;
}

/* --------------------------------------------------------------- the pool */

static void mrm_get(struct mrm *m)
{
	struct mrm_region *r = &m->r[MRM_MRS + mrm_random(m, MRM_POOL)];
	bool empty = true;
	struct fid_mr *mr;
	int i;

	m->call = "get";
	if (r->mr)
		return;
	for (i = MRM_MRS; i < MRM_ALL; i++)
		empty &= !!m->r[i].mr;
	mr = kofi_mr_get(m->ep[0]);
	mrm_check(m, !mr == (empty || !(m->mode & FI_MR_PROV_KEY)),
		  "a region, or none");
	for (i = MRM_MRS; mr && i < MRM_ALL; i++)
		mrm_check(m, m->r[i].mr != mr, "twice");
	r->mr = mr;
}

static void mrm_map(struct mrm *m)
{
	struct mrm_region *r = &m->r[MRM_MRS + mrm_random(m, MRM_POOL)];
	struct kvec iov[2];
	struct fi_msg vec = {
		.msg_iov = iov, .iov_count = 2, .context = &r->cqe,
	};

	m->call = "map";
	if (!r->mr)
		return;
	if (r->open) {
		iov[0] = (struct kvec) { r->mem, 1 };
		iov[1] = iov[0];
		mrm_ret(m, -EBUSY, kofi_mr_map(r->mr, &vec, r->access, 0));
		return;
	}
	mrm_memory(m, r, iov);
	mrm_ret(m, 0, kofi_mr_map(r->mr, &vec, r->access,
				  r->once ? FI_MR_SINGLE_USE : 0));
	mrm_opened(m, r);
}

static void mrm_unmap(struct mrm *m)
{
	struct mrm_region *r = &m->r[MRM_MRS + mrm_random(m, MRM_POOL)];
	int ret;

	m->call = "unmap";
	if (!r->mr)
		return;
	ret = kofi_mr_unmap(r->mr, r->once ? NULL : &r->cqe);
	mrm_ret(m, r->open ? 0 : -EALREADY, ret);
	if (!ret)
		mrm_ended(m, r, 0, 0);
}

static void mrm_put(struct mrm *m)
{
	struct mrm_region *r = &m->r[MRM_MRS + mrm_random(m, MRM_POOL)];

	m->call = "put";
	if (!r->mr || r->open)
		return;
	kofi_mr_put(r->mr);
	r->mr = NULL;
}

/* ------------------------------------------------------------------- peers */

static u64 mrm_key(struct mrm *m)
{
	u64 key = m->r[mrm_random(m, MRM_ALL)].key;

	switch (mrm_random(m, 8)) {
	case 0:
		return m->old[mrm_random(m, MRM_OLD)];
	case 1:
		return key ^ BIT_ULL(mrm_random(m, 64));
	default:
		return key;
	}
}

/* Most of them inside, some just not, some nowhere near */
static void mrm_range(struct mrm *m, u64 key, u64 *addr, size_t *len)
{
	u64 base = 0;
	int i;

	for (i = 0; i < MRM_ALL; i++)
		if (m->r[i].key == key)
			base = m->r[i].base;
	*addr = base + mrm_random(m, 64);
	*len = mrm_random(m, MRM_SIZE / 2);
	if (!mrm_random(m, 16))
		*addr = base - 1 - mrm_random(m, 4);
	else if (!mrm_random(m, 16))
		*addr = base + mrm_random(m, 2 * MRM_SIZE);
}

static void mrm_step(struct mrm *m, struct mrm_open *o, size_t n)
{
	bool alive = o->r->open && o->r->life == o->life;
	size_t off = o->t.off;
	u8 data[MRM_SIZE];
	struct iov_iter iter;
	bool same, got;

	if (o->access == FI_REMOTE_WRITE) {
		prandom_bytes_state(&m->rnd, data, n);
		mrm_ret(m, alive ? 0 : -EKEYREJECTED,
			fake_peer_place(m->ep[o->ep], &o->t, data, n));
		if (alive)
			memcpy(o->r->shadow + off, data, n);
		return;
	}
	got = kofi_target_get(&o->t, &fake_of(m->ep[o->ep])->base, &iter);
	mrm_check(m, got == alive, "a region that has ended, or none");
	if (!got)
		return;
	same = copy_from_iter(data, n, &iter) == n &&
	       !memcmp(data, o->r->shadow + off, n);
	mrm_check(m, same, "other bytes");
	kofi_target_drop(&o->t);
	kofi_target_used(&o->t, n);
}

static void mrm_finish(struct mrm *m, struct mrm_open *o)
{
	bool alive = o->r->open && o->r->life == o->life;

	kofi_target_done(&o->t, &fake_of(m->ep[o->ep])->base, o->access);
	if (alive && o->r->once)
		mrm_ended(m, o->r, 0, FI_RMA | o->access);
	o->used = false;
}

/* Begin an access, or go on with one; the last step of some never comes. */
static void mrm_peer(struct mrm *m)
{
	struct mrm_open *o = &m->open[mrm_random(m, MRM_OPEN)];
	u64 key = mrm_key(m), addr, left;
	size_t len;
	int ret;

	m->call = "access";
	if (!o->used) {
		o->ep = mrm_random(m, 4) ? 0 : 1;
		o->access = mrm_random(m, 2) ? FI_REMOTE_READ : FI_REMOTE_WRITE;
		mrm_range(m, key, &addr, &len);
		ret = fake_peer_begin(m->ep[o->ep], &o->t, key, addr, len,
				      o->access);
		mrm_ret(m, mrm_allowed(m, o->ep, key, addr, len, o->access), ret);
		o->used = !ret && !m->failed;
		if (!o->used)
			return;
		o->r = mrm_find(m, o->ep, key);
		o->life = o->r->life;
	}
	left = o->t.left;
	mrm_step(m, o, mrm_random(m, 3) ? left : mrm_random(m, left + 1));
	if (!o->t.left)
		mrm_finish(m, o);
	else if (o->t.left == left || !mrm_random(m, 4))
		o->used = false;	/* its connection has died */
}

static void mrm_invalidate(struct mrm *m)
{
	u64 key = mrm_key(m);
	int ep = mrm_random(m, 4) ? 0 : 1, expected = 0, ret;
	struct mrm_region *r = mrm_find(m, ep, key);

	m->call = "invalidate";
	if (!r)
		expected = -EKEYREJECTED;
	else if (!r->once)
		expected = -EACCES;
	ret = kofi_mr_invalidate(&fake_of(m->ep[ep])->base, key);
	mrm_ret(m, expected, ret);
	if (!ret && r)
		mrm_ended(m, r, 0, KOFI_REMOTE_INV);
}

/* --------------------------------------------------------------------- runs */

static void mrm_settle(struct mrm *m)
{
	int i;

	while (kofi_cq_poll(m->cq, 16) > 0)
		;
	for (i = 0; i < MRM_ALL; i++) {
		struct mrm_region *r = &m->r[i];

		mrm_check(m, r->calls == r->expected, "completions");
		if (r->expected) {
			mrm_check(m, r->wc.err == r->err, "its error");
			mrm_check(m, r->wc.flags == r->flags, "its flags");
		}
		if (r->mr && !r->open)
			mrm_check(m, fi_mr_key(r->mr) == FI_KEY_NOTAVAIL,
				  "a key left");
		mrm_check(m, !memcmp(r->mem, r->shadow, MRM_SIZE), "memory");
	}
}

static void mrm_call(struct mrm *m)
{
	switch (mrm_random(m, 20)) {
	case 0:
	case 1:
		mrm_register(m);
		break;
	case 2:
		mrm_bind(m);
		break;
	case 3:
	case 4:
		mrm_enable(m);
		break;
	case 5:
		mrm_close(m, &m->r[mrm_random(m, MRM_MRS)]);
		break;
	case 6:
		mrm_get(m);
		break;
	case 7:
	case 8:
		mrm_map(m);
		break;
	case 9:
		mrm_unmap(m);
		break;
	case 10:
		mrm_put(m);
		break;
	case 11:
		mrm_invalidate(m);
		break;
	default:
		mrm_peer(m);
	}
	mrm_settle(m);
}

static void mrm_endpoint(struct mrm *m, int i, size_t pool)
{
	struct kunit *test = m->test;

	KUNIT_ASSERT_EQ(test, 0, fi_endpoint(m->world->domain, m->world->info,
					     &m->ep[i], NULL));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(m->ep[i], &m->eq->fid, 0));
	KUNIT_ASSERT_EQ(test, 0, fi_ep_bind(m->ep[i], &m->cq->fid,
					    FI_TRANSMIT | FI_RECV));
	if (pool)
		KUNIT_ASSERT_EQ(test, 0,
				fi_setopt(&m->ep[i]->fid, FI_OPT_ENDPOINT,
					  KOFI_OPT_MR_POOL, &pool,
					  sizeof(pool)));
	fake_connected(test, m->ep[i]);
}

static void mrm_open_all(struct mrm *m)
{
	const struct kofi_cq_attr kattr = {
		.poll = KOFI_POLL_DIRECT, .done = true,
	};
	struct kunit *test = m->test;
	int i;

	prandom_seed_state(&m->rnd, m->seed);
	xa_init(&m->keys);
	m->world = fake_open_mr(test, m->mode);
	KUNIT_ASSERT_EQ(test, 0, fi_eq_open(m->world->fabric, NULL, &m->eq,
					    NULL));
	KUNIT_ASSERT_EQ(test, 0, kofi_cq_open(m->world->domain, NULL, &kattr,
					      &m->cq, NULL));
	mrm_endpoint(m, 0, m->mode & FI_MR_PROV_KEY ? MRM_POOL : 0);
	mrm_endpoint(m, 1, 0);
	for (i = 0; i < MRM_ALL; i++) {
		m->r[i].cqe.done = mrm_done;
		m->r[i].key = FI_KEY_NOTAVAIL;
		prandom_bytes_state(&m->rnd, m->r[i].mem, MRM_SIZE);
		memcpy(m->r[i].shadow, m->r[i].mem, MRM_SIZE);
	}
	memset(m->old, 0xff, sizeof(m->old));
}

/* Draining ends what is mapped; single-use regions say so. */
static void mrm_close_all(struct mrm *m)
{
	struct kunit *test = m->test;
	int i;

	for (i = 0; i < MRM_MRS; i++)
		mrm_close(m, &m->r[i]);
	m->call = "drain";
	kofi_ep_drain(m->ep[0]);
	for (i = MRM_MRS; i < MRM_ALL; i++)
		if (m->r[i].open)
			mrm_ended(m, &m->r[i], ECANCELED, 0);
	mrm_settle(m);
	KUNIT_EXPECT_EQ(test, 0, fi_close(&m->ep[0]->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&m->ep[1]->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&m->cq->fid));
	KUNIT_EXPECT_EQ(test, 0, fi_close(&m->eq->fid));
	fake_close(test, m->world);
	xa_destroy(&m->keys);
}

static void mrm_run(struct kunit *test, int mode, u32 seed)
{
	struct mrm *m = kzalloc(sizeof(*m), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	m->test = test;
	m->mode = mode;
	m->seed = seed;
	mrm_open_all(m);
	for (i = 0; i < MRM_CALLS && !m->failed; i++)
		mrm_call(m);
	mrm_close_all(m);
	kfree(m);
}

static void mr_model_test(struct kunit *test)
{
	int i, run;

	for (i = 0; i < ARRAY_SIZE(mrm_modes); i++)
		for (run = 1; run <= MRM_RUNS; run++)
			if (!mr_seed || mr_seed == run)
				mrm_run(test, mrm_modes[i], run);
	if (mr_seed > MRM_RUNS)
		for (i = 0; i < ARRAY_SIZE(mrm_modes); i++)
			mrm_run(test, mrm_modes[i], mr_seed);
}

static struct kunit_case mr_model_cases[] = {
	KUNIT_CASE(mr_model_test),
	{}
};

struct kunit_suite kofi_mr_model_suite = {
	.name		= "kofi_mr_model",
	.attr.speed	= KUNIT_SPEED_SLOW,
	.suite_init	= fake_suite_init,
	.suite_exit	= fake_suite_exit,
	.test_cases	= mr_model_cases,
};

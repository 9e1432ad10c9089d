// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What an endpoint takes of the machine's memory: the kernel's events of all that
 * is allocated and freed are counted while some are opened and connected. What is
 * counted is what a kernel without checks of memory would take, and includes what
 * the kernel itself has for a socket or an identifier of the connection manager;
 * pages that are not of kmalloc() or a slab, as for a device's queues, are not.
 *
 * The figures are printed for Documentation/guide/designing.rst.
 */
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <trace/events/kmem.h>

#include "contract.h"

#define MEM_EPS		8	/* connections */
#define MEM_EVENTS	16384	/* allocations at a time */
#define MEM_POOL	64	/* regions each endpoint may have */
#define MEM_SEGS	64
#define MEM_MR_MODE	(FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED)
#define MEM_CAPS	(FI_MSG | FI_RMA)

/**
 * struct mem_trace - what is allocated now
 * @lock: guards the others
 * @nr: entries in use
 * @lost: there were too few of them
 * @live: address and bytes; NULL once it has been freed
 */
struct mem_trace {
	raw_spinlock_t	lock;	/* all */
	unsigned int	nr;
	bool		lost;
	struct {
		const void	*ptr;
		size_t		bytes;
	} live[MEM_EVENTS];
};

/* What user processes take meanwhile is theirs. */
static void mem_add(struct mem_trace *t, const void *ptr, size_t bytes)
{
	unsigned long irq;

	if (!ptr || (in_task() && current->mm))
		return;
	raw_spin_lock_irqsave(&t->lock, irq);
	if (t->nr < MEM_EVENTS) {
		t->live[t->nr].ptr = ptr;
		t->live[t->nr++].bytes = bytes;
	} else {
		t->lost = true;
	}
	raw_spin_unlock_irqrestore(&t->lock, irq);
}

static void mem_del(struct mem_trace *t, const void *ptr)
{
	unsigned long irq;
	unsigned int i;

	if (!ptr)
		return;
	raw_spin_lock_irqsave(&t->lock, irq);
	for (i = t->nr; i--;)
		if (t->live[i].ptr == ptr) {
			t->live[i] = t->live[--t->nr];
			break;
		}
	raw_spin_unlock_irqrestore(&t->lock, irq);
}

static void mem_kmalloc(void *data, unsigned long site, const void *ptr,
			size_t bytes, size_t allocated, gfp_t gfp, int node)
{
	mem_add(data, ptr, kmalloc_size_roundup(bytes));
}

static void mem_cache_alloc(void *data, unsigned long site, const void *ptr,
			    struct kmem_cache *s, gfp_t gfp, int node)
{
	mem_add(data, ptr, kmem_cache_size(s));
}

static void mem_kfree(void *data, unsigned long site, const void *ptr)
{
	mem_del(data, ptr);
}

static void mem_cache_free(void *data, unsigned long site, const void *ptr,
			   const struct kmem_cache *s)
{
	mem_del(data, ptr);
}

static void mem_stop(void *data)
{
	unregister_trace_kmem_cache_free(mem_cache_free, data);
	unregister_trace_kfree(mem_kfree, data);
	unregister_trace_kmem_cache_alloc(mem_cache_alloc, data);
	unregister_trace_kmalloc(mem_kmalloc, data);
	tracepoint_synchronize_unregister();
	vfree(data);
}

static struct mem_trace *mem_start(struct kunit *test)
{
	struct mem_trace *t = vzalloc(sizeof(*t));
	int err;

	KUNIT_ASSERT_NOT_NULL(test, t);
	raw_spin_lock_init(&t->lock);
	err = register_trace_kmalloc(mem_kmalloc, t) ?:
	      register_trace_kmem_cache_alloc(mem_cache_alloc, t) ?:
	      register_trace_kfree(mem_kfree, t) ?:
	      register_trace_kmem_cache_free(mem_cache_free, t);
	KUNIT_EXPECT_EQ(test, err, 0);
	return t;
}

/* Bytes of what has been allocated since and not freed, and no more of them */
static size_t mem_end(struct kunit *test, struct mem_trace *t)
{
	size_t bytes = 0;
	unsigned int i;

	rcu_barrier();
	raw_spin_lock_irq(&t->lock);
	for (i = 0; i < t->nr; i++)
		bytes += t->live[i].bytes;
	raw_spin_unlock_irq(&t->lock);
	KUNIT_EXPECT_FALSE(test, t->lost);
	mem_stop(t);
	return bytes;
}

/**
 * struct mem_kind - a kind of endpoint
 * @name: in the output
 * @depth: operations of each direction, 0 for the default
 * @segs: of each, 0 for the most
 * @pool: regions it may have
 */
struct mem_kind {
	const char	*name;
	size_t		depth;
	size_t		segs;
	size_t		pool;
};

static const struct mem_kind mem_kinds[] = {
	{ "as they come" },
	{ "32 operations of one segment", 32, 1 },
	{ "the same with 64 regions of 64 segments", 32, 1, MEM_POOL },
};

enum mem_state { MEM_IDLE, MEM_CONNECTED };

/* An endpoint of side 0 that is enabled */
static void mem_open(struct ct_pair *p, const struct mem_kind *kind)
{
	const size_t segs = MEM_SEGS;

	KUNIT_ASSERT_EQ(p->test, ct_ep_open(p, 0, p->info), 0);
	if (kind->pool)
		KUNIT_EXPECT_EQ(p->test, 0,
				fi_setopt(&p->side[0].ep->fid, FI_OPT_ENDPOINT,
					  KOFI_OPT_MR_SEGS, &segs,
					  sizeof(segs)));
}

/* Bytes each of so many endpoints takes */
static size_t mem_measure(struct kunit *test, const struct mem_kind *kind,
			  enum mem_state state, int nr)
{
	const struct ct_opts opts = {
		.mode = CT_SOFTIRQ, .caps = MEM_CAPS, .mr_mode = MEM_MR_MODE,
		.unconnected = true, .mr_pool = kind->pool,
	};
	struct ct_pair *p = ct_pair_open(test, &opts);
	struct fid_ep *ep[MEM_EPS][2] = {};
	struct mem_trace *t;
	size_t bytes;
	int i, side;

	if (kind->depth) {
		p->info->tx_attr->size = kind->depth;
		p->info->rx_attr->size = kind->depth;
	}
	if (kind->segs) {
		p->info->tx_attr->iov_limit = kind->segs;
		p->info->rx_attr->iov_limit = kind->segs;
	}
	KUNIT_EXPECT_EQ(test, fi_close(&p->side[0].ep->fid), 0);
	p->side[0].ep = NULL;
	t = mem_start(test);
	for (i = 0; i < nr; i++) {
		mem_open(p, kind);
		if (state == MEM_CONNECTED)
			KUNIT_EXPECT_EQ(test, ct_pair_connect(p), 0);
		else
			KUNIT_EXPECT_EQ(test, fi_enable(p->side[0].ep), 0);
		for (side = 0; side < 2; side++) {
			ep[i][side] = p->side[side].ep;
			p->side[side].ep = NULL;
		}
	}
	bytes = mem_end(test, t);
	for (i = 0; i < nr; i++)
		for (side = 0; side < 2; side++)
			if (ep[i][side])
				KUNIT_EXPECT_EQ(test, 0,
						fi_close(&ep[i][side]->fid));
	ct_pair_close(p);
	return bytes / (state == MEM_CONNECTED ? 2 * nr : nr);
}

static void memory_endpoint(struct kunit *test)
{
	size_t idle[ARRAY_SIZE(mem_kinds)], connected, alone;
	int i;

	if (!IS_ENABLED(CONFIG_TRACEPOINTS))
		kunit_skip(test, "the kernel has no trace events");
	for (i = 0; i < ARRAY_SIZE(mem_kinds); i++) {
		idle[i] = mem_measure(test, &mem_kinds[i], MEM_IDLE, MEM_EPS);
		kunit_info(test, "%s: %zu bytes\n", mem_kinds[i].name,
			   idle[i]);
	}
	alone = mem_measure(test, &mem_kinds[2], MEM_IDLE, 1);
	kunit_info(test, "the only one with these regions: %zu bytes\n", alone);
	/* the passive side is as they come in any case */
	connected = mem_measure(test, &mem_kinds[0], MEM_CONNECTED, MEM_EPS);
	kunit_info(test, "connected: %zu bytes\n", connected);
	KUNIT_EXPECT_GT(test, idle[1], 0);
	KUNIT_EXPECT_LT(test, idle[1], idle[0]);
	KUNIT_EXPECT_LT(test, connected, 2 * idle[0]);
	/* one of several has far from all of them of its own */
	KUNIT_EXPECT_GT(test, idle[2], idle[1]);
	KUNIT_EXPECT_LT(test, 3 * (idle[2] - idle[1]), alone - idle[1]);
}

static struct kunit_case contract_memory_cases[] = {
	KUNIT_CASE(memory_endpoint),
	{}
};

static struct kunit_suite contract_memory_suite = {
	.name = "contract_memory",
	.attr.speed = KUNIT_SPEED_SLOW,
	.suite_init = lo_suite_init,
	.test_cases = contract_memory_cases,
};

kunit_test_suite(contract_memory_suite);

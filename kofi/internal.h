/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of kofi.ko share. Providers never include it. */
#ifndef _KOFI_INTERNAL_H
#define _KOFI_INTERNAL_H

#include <linux/list.h>		/* irq_poll.h needs it */
#include <linux/irq_poll.h>
#include <linux/llist.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <linux/kofi/provider.h>

/* provider.c: who provides, and the tables of operations objects point to */

struct kofi_provider *kofi_provider_get(const char *name);
struct kofi_provider *kofi_provider_next(struct kofi_provider *prov);
void kofi_provider_put(struct kofi_provider *prov);
void kofi_provider_load_known(void);
void kofi_provider_stop(void);	/* at module unload */
const void *kofi_ops_fill(struct kofi_provider *prov, const void *ops,
			  const void *defaults, size_t size);
#if IS_ENABLED(CONFIG_KUNIT)
bool kofi_provider_allows(const char *filter, const char *name);
#endif

/* client.c: who hears of domains */

int kofi_client_start(void);	/* at module load */
void kofi_client_stop(void);
void kofi_client_provider(struct kofi_provider *prov, bool live);

/* info.c: descriptions of what can be opened */

bool kofi_info_usable(const struct fi_info *info,
		      const struct kofi_fabric *fabric);

/* netlink.c: what tools ask for */

int kofi_netlink_start(void);	/* at module load */
void kofi_netlink_stop(void);

/* object.c: objects */

int kofi_obj_init(struct kofi_obj *obj, struct fi_fid *fid, size_t fclass,
		  const struct fi_ops *ops, struct kofi_obj *parent,
		  struct kofi_provider *prov, void *context);
void kofi_obj_publish(struct kofi_obj *obj);
void kofi_obj_exit(struct kofi_obj *obj);
struct kofi_obj *kofi_obj_inspect(u32 *id);
void kofi_obj_seen(struct kofi_obj *obj);

/*
 * Network namespace of the calling task; NULL if the task is exiting and has
 * none any more.
 */
static inline struct net *kofi_current_net(void)
{
	return current->nsproxy ? current->nsproxy->net_ns : NULL;
}

/* cm.c: what an empty slot of a provider's table becomes */

extern const struct fi_ops_cm kofi_cm_nosys;

/* atomic.c: the same for atomic operations */

extern const struct fi_ops_atomic kofi_atomic_nosys;

/* ep.c: endpoints */

extern const struct fi_ops_ep kofi_ep_nosys;	/* also passive ones */

enum kofi_dir {
	KOFI_TX,
	KOFI_RX,
};

/* Default flags of receives that can be chosen */
#define KOFI_EP_RX_OP_FLAGS	(FI_COMPLETION | FI_MULTI_RECV)

int kofi_ep_setup(struct kofi_ep *ep, struct fid_domain *domain,
		  const struct fi_info *info, const struct kofi_ep_ops *ops,
		  size_t fclass, void *context);
bool kofi_ep_step(struct kofi_ep *ep, int from, int to);
int kofi_ep_control(struct kofi_ep *ep, int command, void *arg);
int kofi_ep_reserve_slow(struct kofi_ep *ep, enum kofi_dir dir);
void kofi_ep_count(struct kofi_ep *ep, enum kofi_dir dir,
		   const struct kofi_wc *wc, u64 op_flags);
void kofi_ep_complete_counted(struct kofi_ep *ep, enum kofi_dir dir,
			      const struct kofi_wc *wc, u64 op_flags);

static inline struct kofi_cq *kofi_ep_cq(const struct kofi_ep *ep,
					 enum kofi_dir dir)
{
	return dir == KOFI_RX ? ep->rx_cq : ep->tx_cq;
}

/* A message that is looked at, or thrown away, has moved no bytes. */
static inline u64 kofi_wc_bytes(enum kofi_dir dir, const struct kofi_wc *wc,
				u64 op_flags)
{
	if (dir == KOFI_RX && op_flags & (FI_PEEK | FI_DISCARD))
		return 0;
	return wc->len;
}

/* Count a completion; under the lock that the statistics are under. */
static inline void kofi_ep_tally(struct kofi_ep *ep, enum kofi_dir dir,
				 const struct kofi_wc *wc, u64 op_flags)
{
	struct kofi_ep_stats *stats = &ep->stats[dir];

	stats->completions++;
	if (unlikely(wc->err))
		stats->errors++;
	else
		stats->bytes += kofi_wc_bytes(dir, wc, op_flags);
}

/* poll.c: wait sets and poll sets */

struct kofi_wait_set;

/**
 * struct kofi_wait_link - a queue's membership in a wait set
 * @node: the set's
 * @fid: the queue
 * @set: the set, or NULL
 * @wait: its wait queue
 */
struct kofi_wait_link {
	struct list_head	node;
	struct fi_fid		*fid;
	struct kofi_wait_set	*set;
	wait_queue_head_t	*wait;
};

int kofi_wait_join(struct kofi_wait_link *link, struct fi_fid *fid,
		   enum fi_wait_obj wait_obj, struct fid_wait *wait_set,
		   struct kofi_fabric *fabric);
void kofi_wait_leave(struct kofi_wait_link *link);

/* Wake who waits for the set, if there is one. Under the queue's lock. */
static inline void kofi_wait_wake(struct kofi_wait_link *link)
{
	if (link->set)
		wake_up(link->wait);
}

/* eq.c: event queues */

/**
 * struct kofi_eq - an event queue
 * @eq: what the consumer holds
 * @obj: the core's
 * @fabric: its parent
 * @lock: irqsave, guards all that changes; events are copied out under it, so
 *	that a purge never races with a reader
 * @events: struct kofi_event, oldest first
 * @size: how many events that are not part of their object may wait
 * @used: how many do
 * @writable: FI_WRITE: the consumer may queue events
 * @wait_obj: how readers wait
 * @wait: readers asleep
 * @link: wait set
 * @handler: the consumer's, or NULL
 * @work: calls @handler
 * @cpu: where @work runs, or -1
 * @overrun: reported once the events before it have been read
 * @err_data: the copy fi_eq_readerr() hands out
 * @queued: statistics
 * @errors: of these, error entries
 * @lost: events there was no room for
 */
struct kofi_eq {
	struct fid_eq		eq;
	struct kofi_obj		obj;
	struct kofi_fabric	*fabric;
	spinlock_t		lock;	/* all that follows */
	struct list_head	events;
	size_t			size;
	size_t			used;
	bool			writable;
	enum fi_wait_obj	wait_obj;
	wait_queue_head_t	wait;
	struct kofi_wait_link	link;
	void			(*handler)(struct fid_eq *eq, void *context);
	struct work_struct	work;
	int			cpu;
	struct kofi_event	overrun;
	u8			err_data[KOFI_CM_DATA_MAX];
	u64			queued;
	u64			errors;
	u64			lost;
};

bool kofi_eq_ready(struct kofi_eq *eq);
int kofi_eq_bind(struct kofi_eq **slot, struct kofi_fabric *fabric,
		 struct fi_fid *bfid, u64 flags);
int kofi_eq_start(void);	/* at module load */
void kofi_eq_stop(void);

/* cq.c: completion queues */

/* Bits of kofi_ep.blocked */
enum {
	KOFI_EP_BLOCKED,	/* a completion shall wake the consumer */
	KOFI_EP_SPACE,		/* on a queue's list to be called back */
	KOFI_EP_DRAINED,	/* no callback any more */
};

/**
 * struct kofi_cq_entry - a completion in a queue
 * @wc: the completion
 * @ep: done mode: the endpoint it is for
 */
struct kofi_cq_entry {
	struct kofi_wc	wc;
	struct kofi_ep	*ep;
};

#define KOFI_CQ_BATCH	16

/**
 * struct kofi_cq - a completion queue
 * @cq: what the consumer holds
 * @obj: the core's
 * @domain: its parent
 * @ops: the provider's, or NULL
 * @priv: the provider's part
 * @poll: where it calls its consumer
 * @cpu: on which CPU, or -1
 * @done: done mode
 * @notify: read mode, or NULL
 * @format: layout of what is read
 * @wait_obj: how readers wait
 * @threshold: the condition of a blocking read is a number of entries
 * @limit: how many slots may be in use for one more to be reserved, by enum
 *	kofi_dir
 * @slots: size of @ring; one more than the larger limit, for the entry whose
 *	callback is being called
 * @ring: the completions
 * @used: slots that are filled, or promised to operations; goes down under
 *	@lock, or by the runner
 * @head: next entry to be read, counted without end. This, @first and
 *	@returned are the runner's in done mode, guarded by @lock otherwise.
 * @first: place of @head in @ring
 * @returned: done mode: entries whose callbacks have returned
 * @lock: irqsave, guards the rest
 * @tail: next entry to be filled, as @head
 * @next: place of @tail in @ring
 * @errors: error entries to be read
 * @armed: the next completion calls @notify
 * @notify_due: @notify is to be called
 * @active: bit 0: a call-back context has been asked for or runs
 * @runner: who is calling the consumer, NULL if nobody
 * @space_ep: whose write-space callback is running
 * @flushers: tasks that wait for callbacks to end
 * @flush_wait: where they sleep
 * @waiting: endpoints that want slots, by enum kofi_dir
 * @space: endpoints to be called back, added without @lock
 * @space_todo: the same, in order
 * @wait: readers asleep
 * @link: wait set
 * @readers: number of them
 * @signals: fi_cq_signal() calls, to see that there was one meanwhile
 * @signaled: fi_cq_signal() found nobody asleep
 * @key: lockdep: each queue is a class of its own
 * @map: held while the consumer is called
 * @iop: KOFI_POLL_SOFTIRQ
 * @csd: KOFI_POLL_SOFTIRQ on another CPU
 * @work: KOFI_POLL_WORKQUEUE
 * @batch: completions taken out of the middle for an endpoint that is closed
 * @completions: statistics
 * @failed: of these, errors
 * @again: operations refused for want of a slot
 */
struct kofi_cq {
	struct fid_cq		cq;
	struct kofi_obj		obj;
	struct kofi_domain	*domain;
	const struct kofi_cq_ops *ops;
	void			*priv;
	enum kofi_poll		poll;
	int			cpu;
	bool			done;
	void			(*notify)(struct fid_cq *cq, void *context);
	enum fi_cq_format	format;
	enum fi_wait_obj	wait_obj;
	bool			threshold;
	int			limit[2];
	u32			slots;
	struct kofi_cq_entry	*ring;

	atomic_t		used ____cacheline_aligned_in_smp;
	u32			head;
	u32			first;
	u32			returned;

	spinlock_t		lock ____cacheline_aligned_in_smp;
	u32			tail;
	u32			next;
	u32			errors;
	bool			armed;
	bool			notify_due;
	unsigned long		active;
	struct task_struct	*runner;
	struct kofi_ep		*space_ep;
	unsigned int		flushers;
	wait_queue_head_t	flush_wait;
	struct list_head	waiting[2];
	struct llist_head	space;
	struct llist_node	*space_todo;
	wait_queue_head_t	wait;
	struct kofi_wait_link	link;
	unsigned int		readers;
	u32			signals;
	bool			signaled;
	struct lock_class_key	key;
	struct lockdep_map	map;
	struct irq_poll		iop;
	call_single_data_t	csd;
	struct work_struct	work;
	struct kofi_cq_entry	batch[KOFI_CQ_BATCH];
	u64			completions;
	u64			failed;
	u64			again;
};

/* Without the lock: slots that become free are for who comes first. */
static inline bool kofi_cq_take_slot(struct kofi_cq *cq, enum kofi_dir dir)
{
	int used = atomic_read(&cq->used);

	do {
		if (unlikely(used >= cq->limit[dir]))
			return false;
	} while (!atomic_try_cmpxchg(&cq->used, &used, used + 1));
	return true;
}

/* As kofi_ep_tx_reserve() and kofi_ep_rx_reserve() */
static inline int kofi_ep_reserve(struct kofi_ep *ep, enum kofi_dir dir)
{
	struct kofi_cq *cq = kofi_ep_cq(ep, dir);

	if (unlikely(!cq) || !kofi_cq_take_slot(cq, dir))
		return kofi_ep_reserve_slow(ep, dir);
	atomic64_inc(&ep->stats[dir].posts);
	return 0;
}

int kofi_cq_reserve(struct kofi_cq *cq, struct kofi_ep *ep, enum kofi_dir dir);
int kofi_cq_reserve_wait(struct kofi_cq *cq, struct kofi_cq_wait *wait);
void kofi_cq_unreserve(struct kofi_cq *cq);
void kofi_cq_space(struct kofi_ep *ep);
void kofi_cq_flush(struct kofi_ep *ep);
bool kofi_cq_pending(struct kofi_cq *cq);
int kofi_cq_start(void);	/* at module load */
void kofi_cq_stop(void);

/* cntr.c: counters */

/**
 * struct kofi_cntr - a counter
 * @cntr: what the consumer holds
 * @obj: the core's
 * @domain: its parent
 * @bytes: counts bytes, not operations
 * @wait_obj: how one waits
 * @wait: waiters; its lock guards the values
 * @link: wait set
 * @value: successes
 * @errors: failures
 * @value_read: what the consumer knows @value to be
 * @errors_read: the same for @errors
 */
struct kofi_cntr {
	struct fid_cntr		cntr;
	struct kofi_obj		obj;
	struct kofi_domain	*domain;
	bool			bytes;
	enum fi_wait_obj	wait_obj;
	wait_queue_head_t	wait;
	struct kofi_wait_link	link;
	u64			value;
	u64			errors;
	u64			value_read;
	u64			errors_read;
};

void kofi_cntr_done(struct kofi_cntr *cntr, bool failed, u64 bytes);
bool kofi_cntr_changed(struct kofi_cntr *cntr);

/* mr.c: memory regions, and the pools endpoints have of them */

bool kofi_mr_pooled(const struct kofi_domain *domain);
int kofi_mr_pool_open(struct kofi_ep *ep);
void kofi_mr_pool_stop(struct kofi_ep *ep);
void kofi_mr_pool_drain(struct kofi_ep *ep);
void kofi_mr_pool_close(struct kofi_ep *ep);
void kofi_mr_pool_stats(struct kofi_ep *ep, kofi_stat_fn fn, void *arg);

/* lib/addr.c: addresses */

int kofi_info_check_addr(u32 format, const void *addr, size_t len);

/* lib/target.c: regions of software providers */

extern const struct kofi_mr_ops kofi_mr_soft;

void kofi_mr_table_init(struct kofi_mr_table *table, int mr_mode);
void kofi_mr_table_exit(struct kofi_mr_table *table);

/* wait.c: what a queue's reader can wait on */

int kofi_wait_check(enum fi_wait_obj wait_obj);
int kofi_wait_control(enum fi_wait_obj wait_obj, wait_queue_head_t *wait,
		      int command, void *arg);
long kofi_wait_timeout(int timeout);

/* When a wait began, and how many jiffies it may last */
struct kofi_wait_time {
	unsigned long	start;
	long		timeout;
};

long kofi_wait_step(enum fi_wait_obj wait_obj,
		    const struct kofi_wait_time *time, long left);

/**
 * kofi_wait_event - wait for a condition the way an object's consumer chose
 * @wait_obj: what the object was opened with
 * @wq: wait queue head, woken when the condition may have come true
 * @cond: evaluated many times; must not sleep
 * @limit: from kofi_wait_timeout()
 *
 * Return: as wait_event_killable_timeout().
 */
#define kofi_wait_event(wait_obj, wq, cond, limit) ({			\
	const struct kofi_wait_time kofi_time = {			\
		.start = jiffies, .timeout = (limit),			\
	};								\
									\
	might_sleep();							\
	___wait_event(wq, ___wait_cond_timeout(cond), TASK_KILLABLE, 0,	\
		      kofi_time.timeout,				\
		      __ret = kofi_wait_step(wait_obj, &kofi_time,	\
					     __ret));			\
})

/* netlink.c: the generic netlink family; main.c calls these */

int kofi_netlink_start(void);
void kofi_netlink_stop(void);

#endif /* _KOFI_INTERNAL_H */

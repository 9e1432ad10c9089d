/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Declarations shared by the files of kofi.ko. Providers never include it. */
#ifndef _KOFI_INTERNAL_H
#define _KOFI_INTERNAL_H

#include <linux/align.h>
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/llist.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <linux/kofi/provider.h>

/* provider.c: list of providers */

struct kofi_provider *kofi_provider_get(const char *name);
struct kofi_provider *kofi_provider_next(struct kofi_provider *prov);
void kofi_provider_put(struct kofi_provider *prov);
void kofi_provider_load_known(enum fi_ep_type type);

/* Events of kofi_provider_chain; their data is the provider */
enum {
	KOFI_PROVIDER_ADD,	/* it has been registered */
	KOFI_PROVIDER_REMOVE,	/* it is about to be deregistered */
};

extern struct blocking_notifier_head kofi_provider_chain;
#if IS_ENABLED(CONFIG_KUNIT)
bool kofi_provider_allows(const char *filter, const char *name);
#endif

/* client.c: clients that are notified of domains */

void kofi_path_watch(struct kofi_domain *dom);
void kofi_path_forget(struct kofi_domain *dom);
int kofi_client_start(void);	/* at module load */
void kofi_client_stop(void);

/* info.c: discovery */

int kofi_info_dup_bytes(void **to, const void *from, size_t len);
bool kofi_info_usable(const struct fi_info *info,
		      const struct kofi_fabric *fabric);
int kofi_info_check_addr(u32 format, const void *addr, size_t len);
int kofi_info_print(struct fi_info *info);
struct fi_info *kofi_info_parsed(struct fi_info *info, struct net *net);
void kofi_info_unparse(struct fi_info *info, struct fi_info *parsed);

/* netlink.c: requests of tools */

int kofi_netlink_start(void);	/* at module load */
void kofi_netlink_stop(void);

/* netlink_event.c: events for monitors */

enum kofi_event_kind {
	KOFI_EVENT_CONNECTED,
	KOFI_EVENT_CONNECT_FAILED,
	KOFI_EVENT_SHUTDOWN,
	KOFI_EVENT_LOST,
	KOFI_EVENT_PEER_LOST,
	KOFI_EVENT_VIOLATION,
	KOFI_EVENT_PATH_LOST,
};

/**
 * struct kofi_notice - an event of an object
 * @kind: kind of the event
 * @err: reason, a positive error code; 0 if there is none
 * @prov_errno: code of the provider; 0 if there is none
 * @peer: address of the peer; NULL for the destination address of an endpoint's info
 * @reason: reason in words, or NULL
 */
struct kofi_notice {
	enum kofi_event_kind	kind;
	int			err;
	int			prov_errno;
	const struct sockaddr	*peer;
	const char		*reason;
};

void kofi_notify(struct kofi_obj *obj, const struct kofi_notice *notice);
unsigned int kofi_events_lost(const struct kofi_obj *obj);

/* tostr.c: buffers of fi_tostr() */

int kofi_tostr_start(void);	/* at module load */
void kofi_tostr_stop(void);

/* object.c: objects */

int kofi_obj_end(struct kofi_obj *obj);
int kofi_obj_init(struct kofi_obj *obj, struct fi_fid *fid, size_t fclass,
		  const struct fi_ops *ops, struct kofi_obj *parent,
		  struct kofi_provider *prov, void *context);
void kofi_obj_publish(struct kofi_obj *obj);
unsigned int kofi_obj_count(const struct kofi_provider *prov);
void kofi_obj_exit(struct kofi_obj *obj);
struct kofi_obj *kofi_obj_inspect(u32 *id);
struct kofi_obj *kofi_obj_find(const struct fi_fid *fid, size_t fclass);
void kofi_obj_seen(struct kofi_obj *obj);
const struct kofi_fabric *kofi_obj_fabric(const struct kofi_obj *obj);
const char *kofi_obj_name(const struct kofi_obj *obj);

/* Test for the address of an object. NULL and error pointers are none. */
static inline bool kofi_fid_may_be(const struct fi_fid *fid)
{
	return (unsigned long)fid >= PAGE_SIZE && !IS_ERR(fid) &&
	       IS_ALIGNED((unsigned long)fid, __alignof__(*fid));
}

/*
 * Class of an object of a caller; FI_CLASS_UNSPEC for an invalid pointer, which is not
 * dereferenced. Each object begins with its fid.
 */
static inline size_t kofi_fid_class(const struct fi_fid *fid)
{
	return kofi_fid_may_be(fid) ? fid->fclass : FI_CLASS_UNSPEC;
}

/*
 * Network namespace of the calling task; NULL if the task is exiting and has
 * lost its namespace.
 */
static inline struct net *kofi_current_net(void)
{
	return current->nsproxy ? current->nsproxy->net_ns : NULL;
}

/* nosys.c: tables for endpoints of providers without such a table */

extern const struct fi_ops_ep kofi_ep_nosys;
extern const struct fi_ops_cm kofi_cm_nosys;
extern const struct fi_ops_msg kofi_msg_nosys;
extern const struct fi_ops_tagged kofi_tagged_nosys;
extern const struct fi_ops_rma kofi_rma_nosys;
extern const struct fi_ops_atomic kofi_atomic_nosys;

/* av.c: address vectors */

int kofi_av_attach(struct kofi_ep *ep, struct fi_fid *bfid, u64 flags);
void kofi_av_detach(struct kofi_ep *ep);

/* ep.c: endpoints */

enum kofi_dir {
	KOFI_TX,
	KOFI_RX,
};

/* Default flags of operations that can be chosen: all that apply to every operation */
#define KOFI_EP_TX_OP_FLAGS	(FI_COMPLETION | FI_INJECT |		\
				 FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
				 FI_DELIVERY_COMPLETE)
#define KOFI_EP_RX_OP_FLAGS	(FI_COMPLETION | FI_MULTI_RECV)

int kofi_ep_setup(struct kofi_ep *ep, struct fid_domain *domain,
		  const struct fi_info *info, const struct kofi_ep_ops *ops,
		  size_t fclass, void *context);
bool kofi_ep_step(struct kofi_ep *ep, int from, int to);
int kofi_ep_control(struct kofi_obj *obj, int command, void *arg);
int kofi_ep_enable(struct kofi_ep *ep);
int kofi_ep_check(struct kofi_ep *ep);
void kofi_ep_unbind(struct kofi_ep *ep);

static inline struct kofi_ep *kofi_ep(struct fid_ep *ep)
{
	return container_of(ep, struct kofi_ep, ep);
}

static inline bool kofi_fid_is_ep(const struct fi_fid *fid)
{
	size_t fclass = kofi_fid_class(fid);

	return fclass == FI_CLASS_EP || fclass == FI_CLASS_SRX_CTX;
}

static inline bool kofi_ep_valid(const struct fid_ep *ep)
{
	return kofi_fid_is_ep(&ep->fid);
}

static inline bool kofi_ep_is_srx(const struct kofi_ep *ep)
{
	return ep->ep.fid.fclass == FI_CLASS_SRX_CTX;
}

static inline struct kofi_cq *kofi_ep_cq(const struct kofi_ep *ep,
					 enum kofi_dir dir)
{
	return dir == KOFI_RX ? ep->rx_cq : ep->tx_cq;
}

/* sep.c: scalable endpoints */

/* Test for a scalable endpoint, which has several contexts. */
static inline bool kofi_ep_contexts(size_t count)
{
	return count > 1 && count != FI_SHARED_CONTEXT;
}

struct kofi_sep;

/**
 * struct kofi_sep_ctx - one context of a scalable endpoint
 * @ops: functions for the context's endpoint
 * @sep: the scalable endpoint
 * @ep: endpoint of the context, NULL from the first fi_close() on
 * @dirs: directions that have been opened, by enum kofi_dir; 0 before the first, and
 *	after the last fi_close()
 * @opens: number of directions that have not been closed
 * @drained: complete when the first fi_close() has drained the endpoint
 */
struct kofi_sep_ctx {
	const struct kofi_sep_ops	*ops;
	struct kofi_sep			*sep;
	struct kofi_ep			*ep;
	unsigned long			dirs;
	unsigned int			opens;
	struct completion		drained;
};

/**
 * struct kofi_sep_ops - functions of a context for its endpoint
 * @enable: let the provider enable the endpoint; called with its config mutex held
 * @end: close the endpoint, with the contract of end() in struct kofi_obj_ops
 * @closed: the endpoint is about to be freed
 */
struct kofi_sep_ops {
	int	(*enable)(struct kofi_ep *ep);
	int	(*end)(struct kofi_ep *ep);
	void	(*closed)(struct kofi_ep *ep);
};

/* Test whether a direction has a counter, so that it needs no queue */
static inline bool kofi_ep_counted(const struct kofi_ep *ep, enum kofi_dir dir)
{
	if (dir == KOFI_RX)
		return ep->cntr[KOFI_CNTR_RECV] ||
		       ep->cntr[KOFI_CNTR_REMOTE_READ] ||
		       ep->cntr[KOFI_CNTR_REMOTE_WRITE];
	return ep->cntr[KOFI_CNTR_SEND] || ep->cntr[KOFI_CNTR_READ] ||
	       ep->cntr[KOFI_CNTR_WRITE];
}

/* wait_sets.c: wait sets and poll sets */

struct kofi_set;

/**
 * struct kofi_member - a queue or counter in a set
 * @node: entry in the set's list
 * @fid: the queue or counter
 */
struct kofi_member {
	struct list_head	node;
	struct fi_fid		*fid;
};

/**
 * struct kofi_wait_link - a queue's membership in a wait set
 * @member: entry in the set's list
 * @set: the set, or NULL
 * @wait: wait queue of the set
 */
struct kofi_wait_link {
	struct kofi_member	member;
	struct kofi_set		*set;
	wait_queue_head_t	*wait;
};

int kofi_wait_join(struct kofi_wait_link *link, struct fi_fid *fid,
		   enum fi_wait_obj wait_obj, struct fid_wait *wait_set,
		   struct kofi_fabric *fabric);
void kofi_wait_leave(struct kofi_wait_link *link);

/* Wake tasks that wait for the set. Under the queue's lock. */
static inline void kofi_wait_wake(struct kofi_wait_link *link)
{
	if (link->set)
		wake_up(link->wait);
}

/* eq.c: event queues */

/**
 * struct kofi_eq - an event queue
 * @eq: handle of the consumer
 * @obj: the core's part
 * @fabric: parent
 * @lock: irqsave, guards the members that follow; events are copied under it, so
 *	that a purge never races with a reader
 * @events: struct kofi_event, oldest first
 * @size: most waiting events that are not part of their objects
 * @used: number of such events
 * @writable: FI_WRITE: the consumer may queue events
 * @wait_obj: kind of wait object of readers
 * @wait: wait queue of readers
 * @link: wait set
 * @handler: callback of the consumer, or NULL
 * @work: calls @handler
 * @cpu: CPU of @work, or -1
 * @overrun: an overrun is reported after the events before it have been read
 * @err_data: copy that fi_eq_readerr() returns
 * @queued: statistics: number of events
 * @errors: statistics: number of error entries
 * @lost: statistics: number of events dropped from a full queue
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

int kofi_eq_bind(struct kofi_eq **slot, struct kofi_fabric *fabric,
		 struct fi_fid *bfid, u64 flags);
int kofi_eq_start(void);	/* at module load */
void kofi_eq_stop(void);

/* cq.c: completion queues; see cq.h */

void kofi_cq_flush(struct kofi_ep *ep);
int kofi_cq_start(void);	/* at module load */
void kofi_cq_stop(void);

/* cntr.c: counters */

/**
 * struct kofi_cntr - a counter
 * @cntr: handle of the consumer
 * @obj: the core's part
 * @domain: parent
 * @bytes: counts bytes, not operations
 * @wait_obj: kind of wait object
 * @wait: waiters; its lock guards the values
 * @link: wait set
 * @value: number of successes
 * @errors: number of failures
 * @value_read: @value at the consumer's last read
 * @errors_read: @errors at the consumer's last read
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

/* mr_pool.c: the regions of a domain that its endpoints share; see mr.h */

#define KOFI_MR_POOL_MAX	65536	/* regions of an endpoint */

bool kofi_mr_pooled(const struct kofi_domain *domain);
int kofi_mr_pool_open(struct kofi_ep *ep);
void kofi_mr_pool_stop(struct kofi_ep *ep);
void kofi_mr_pool_drain(struct kofi_ep *ep);
void kofi_mr_pool_close(struct kofi_ep *ep);
void kofi_mr_pool_stats(struct kofi_ep *ep, kofi_stat_fn fn, void *arg);
void kofi_mr_pool_domain_stats(struct kofi_domain *domain, kofi_stat_fn fn,
			       void *arg);

/* cm.c: names in the providers' format */

int kofi_cm_setname(fid_t fid, void *addr, size_t addrlen);
int kofi_cm_getname(fid_t fid, void *addr, size_t *addrlen);
int kofi_cm_getpeer(struct kofi_ep *ep, void *addr, size_t *addrlen);

/* lib/addr.c: addresses */

#define KOFI_IP_STR_MAX		96	/* fi_sockaddr_in6://[address%scope]:port */

int kofi_ip_resolve(struct net *net, u32 format, const char *node,
		    const char *service, struct sockaddr_storage *addr);
int kofi_ip_parse(struct net *net, const char *text,
		  struct sockaddr_storage *addr);
int kofi_ip_print(const struct sockaddr *addr, char *buf, size_t len);
int kofi_ip_copy_text(const struct sockaddr *from, void *to, size_t *len);

/* Test whether a domain's consumer uses addresses in text form. */
static inline bool kofi_domain_text(const struct kofi_domain *domain)
{
	return domain->addr_format == FI_ADDR_STR;
}

/* lib/target.c: regions of software providers */

extern const struct kofi_mr_ops kofi_mr_soft;

void kofi_mr_table_init(struct kofi_mr_table *table, int mr_mode);
void kofi_mr_table_exit(struct kofi_mr_table *table);

/* wait.c: wait objects of a queue's readers */

int kofi_wait_check(enum fi_wait_obj wait_obj);
int kofi_wait_control(enum fi_wait_obj wait_obj, wait_queue_head_t *wait,
		      int command, void *arg);
long kofi_wait_timeout(int timeout);

/* Begin of a wait, and its limit in jiffies */
struct kofi_wait_time {
	unsigned long	start;
	long		timeout;
};

long kofi_wait_step(enum fi_wait_obj wait_obj,
		    const struct kofi_wait_time *time, long left);

/**
 * kofi_wait_event - wait for a condition as the object's wait_obj demands
 * @wait_obj: wait_obj that the object was opened with
 * @wq: wait queue head, woken when the condition may have become true
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

#endif /* _KOFI_INTERNAL_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Interface between the core and providers.
 *
 * A provider registers a struct kofi_provider. Each object of a provider embeds the
 * core's base of its kind as the first member. The init function of a base sets up the
 * object that consumers hold, takes a reference to the parent and records the bindings.
 * The exit function releases all of them. The core checks arguments before it calls a
 * provider. Operation tables are const. If a slot of a call that goes through the core
 * is empty, the call returns -ENOSYS. Transfers call the provider directly, so tables of
 * transfers are complete: unsupported slots contain kofi_no_msg() and similar functions.
 * A table without any supported slot is omitted.
 *
 * lib.h declares helpers for providers.
 *
 * Freeing: while an object is a parent or is bound, fi_close() returns -EBUSY. Otherwise
 * fi_close() drains an endpoint and then calls the object's fi_ops.close, which must
 * succeed, calls the exit function and frees the object.
 */
#ifndef _LINUX_KOFI_PROVIDER_H
#define _LINUX_KOFI_PROVIDER_H

#include <linux/atomic.h>
#include <linux/bvec.h>
#include <linux/completion.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>

#include <linux/kofi/kofi.h>

struct kofi_av;
struct kofi_mr_ops;
struct sockaddr;

/**
 * struct kofi_provider - a provider module
 * @name: value of prov_name; the module also carries MODULE_ALIAS("kofi-prov-NAME")
 * @version: version of the provider, FI_VERSION() encoded
 * @getinfo: list infos that match. @hints is never NULL, has every attribute
 *	structure, and names the network namespace in fabric_attr->net. Adds
 *	to @info a list made with fi_allocinfo() or fi_dupinfo(), best first;
 *	the core fills prov_name, prov_version, api_version and net. Returns 0
 *	or -ENODATA.
 * @freeinfo: never called, since the core owns the layout of fi_info. It keeps the
 *	order of the first members
 * @fabric: open a fabric; @attr is complete and names this provider. NULL if the
 *	provider needs only @fabric_ops
 * @fabric_ops: operations of a fabric that the core opens because @fabric is NULL
 * @owner: THIS_MODULE
 * @event_strerror: text for the prov_errno of an event, a constant string; NULL
 *	if prov_errno is an error code
 * @priority: place in merged lists, lower comes first
 * @node: entry in the core's list of providers
 * @live: true after clients have been notified of the provider's devices; the core's,
 *	under the client mutex
 */
struct kofi_provider {
	const char	*name;
	u32		version;
	int		(*getinfo)(u32 version, const char *node,
				   const char *service, u64 flags,
				   const struct fi_info *hints,
				   struct fi_info **info);
	int		(*freeinfo)(struct fi_info *info);
	int		(*fabric)(struct fi_fabric_attr *attr,
				  struct fid_fabric **fabric, void *context);
	const struct fi_ops_fabric	*fabric_ops;
	struct module	*owner;
	const char	*(*event_strerror)(int prov_errno);
	int		priority;
	struct list_head	node;
	bool			live;
};

int kofi_provider_register(u32 version, struct kofi_provider *prov);
void kofi_provider_deregister(struct kofi_provider *prov);

/* devices that clients are notified of: see kofi_client_register() */
int kofi_device_add(struct kofi_provider *prov, struct net *net,
		    const char *name);
void kofi_device_remove(struct kofi_provider *prov, struct net *net,
			const char *name);
void kofi_device_rescan(void);

/* ------------------------------------------------------------- discovery */

int kofi_info_match(const struct fi_info *prov, const struct fi_info *hints);
struct fi_info *kofi_info_grant(const struct fi_info *prov,
				const struct fi_info *hints);
int kofi_info_set_names(struct fi_info *info, char *domain, char *fabric);
int kofi_srx_check(const struct fi_rx_attr *attr, const struct fi_rx_attr *most);
void kofi_info_reduce(struct fi_info *info, const struct fi_info *most);
bool kofi_info_listed(const struct fi_info *list, const struct fi_info *info);

/* --------------------------------------------------------------- objects */

/**
 * typedef kofi_stat_fn - takes one statistic
 * @arg: argument that the caller of kofi_obj_ops.stats passed
 * @name: name of the statistic, a constant string
 * @value: value of the statistic
 */
typedef void (*kofi_stat_fn)(void *arg, const char *name, u64 value);

/**
 * struct kofi_obj_ops - operations of an object that the core calls
 * @stats: pass every statistic of the object to @fn; process context, the
 *	object is not freed before it returns
 * @waits_for_caller: true if fi_close() would wait for its own caller, because the
 *	caller is a callback of the object. Set by the core only
 * @drain: complete all outstanding operations, since fi_close() has begun. Set by the
 *	core only
 * @pending: true if there are entries that the consumer has not read; any context.
 *	Set by the core only
 * @end: decide about fi_close(): 0 to close the object, which has no users from then
 *	on; 1 if the object stays open for another holder; -EBUSY. Set by the core only
 * @control: handle a command of fi_control(), or pass it to the provider's fi_ops;
 *	NULL if the provider handles all commands. Set by the core only
 */
struct kofi_obj_ops {
	void	(*stats)(struct kofi_obj *obj, kofi_stat_fn fn, void *arg);
	bool	(*waits_for_caller)(struct kofi_obj *obj);
	void	(*drain)(struct kofi_obj *obj);
	bool	(*pending)(struct kofi_obj *obj);
	int	(*end)(struct kofi_obj *obj);
	int	(*control)(struct kofi_obj *obj, int command, void *arg);
};

/**
 * struct kofi_obj - the core's part of every object
 * @fid: the object
 * @parent: parent object, which counts this object in its @users
 * @prov: provider, NULL for an object that belongs to no single provider
 * @ops: operations, may be NULL
 * @users: children and bindings; negative once fi_close() has succeeded
 * @lookers: dumps that read the object; fi_close() waits until there are none
 * @id: number of the object, unique during its life
 * @events: netlink events of the last second, and number of the lost ones
 */
struct kofi_obj {
	struct fi_fid			*fid;
	struct kofi_obj			*parent;
	struct kofi_provider		*prov;
	const struct kofi_obj_ops	*ops;
	atomic_t			users;
	atomic_t			lookers;
	u32				id;
	atomic_t			events;
};

bool kofi_obj_get(struct kofi_obj *obj);
void kofi_obj_put(struct kofi_obj *obj);
void kofi_violation(struct kofi_obj *obj, const struct sockaddr *peer,
		    const char *reason);

struct kofi_fabric {
	struct fid_fabric	fabric;
	struct kofi_obj		obj;
	struct net		*net;
	netns_tracker		ns_tracker;
	char			*name;
	char			owner[MODULE_NAME_LEN];
};

int kofi_fabric_init(struct kofi_fabric *fabric, struct kofi_provider *prov,
		     const struct fi_fabric_attr *attr,
		     const struct fi_ops *fid_ops,
		     const struct fi_ops_fabric *ops, void *context);
void kofi_fabric_exit(struct kofi_fabric *fabric);

/**
 * struct kofi_mr_table - the regions of a domain that peers can name
 * @regions: struct kofi_mr; indexed by the low half of a key that the core has chosen,
 *	or by the whole key that the consumer has chosen
 * @client: consumers choose the keys (mr_mode without FI_MR_PROV_KEY)
 * @endpoint: regions are bound to an endpoint and then enabled
 *	(FI_MR_ENDPOINT)
 * @next: hint for the next low half; delays the reuse of an index
 * @generation: number of registrations plus a random start; its low half is
 *	the high half of the key of a pool's region
 */
struct kofi_mr_table {
	struct xarray	regions;
	bool		client;
	bool		endpoint;
	u32		next;
	atomic64_t	generation;
};

/**
 * struct kofi_domain - base of a provider's domain
 * @domain: handle of the consumer
 * @obj: the core's part
 * @fabric: parent
 * @eq: queue for FI_NOTIFY, or NULL; set once, by cmpxchg, and read without a lock
 * @path_node: on the list of domains with a queue, whose addresses are compared
 * @seen: last answer of discovery, under the mutex of that list
 * @lost: error code of the last FI_NOTIFY; 0 after none, or when the path is back. Changed
 *	by cmpxchg, since the core and the provider notify without a common lock
 * @dev: device for DMA, NULL for software
 * @node: NUMA node, or NUMA_NO_NODE
 * @vectors: number of completion vectors of the device, 0 for software
 * @name: domain_attr->name
 * @addr_format: format of the addresses in the domain's address vectors
 * @close: release the provider's resources on fi_close(), or NULL; the core then frees
 *	the domain, which begins with this base
 * @remote: remote CQ data and accesses without a receive are reported to endpoints
 *	although @mr_ops does not count accesses; set by the provider
 * @mrs: regions of software providers, indexed by their keys
 * @mr_ops: operations of the provider's regions
 * @mr_pool_mutex: guards @mr_pools
 * @mr_pools: pools of regions for kofi_mr_get(), under @mr_pool_mutex
 */
struct kofi_domain {
	struct fid_domain		domain;
	struct kofi_obj			obj;
	struct kofi_fabric		*fabric;
	struct kofi_eq			*eq;
	struct list_head		path_node;
	struct fi_info			*seen;
	int				lost;
	struct device			*dev;
	int				node;
	unsigned int			vectors;
	char				*name;
	u32				addr_format;
	void				(*close)(struct kofi_domain *domain);
	bool				remote;
	struct kofi_mr_table		mrs;
	const struct kofi_mr_ops	*mr_ops;
	struct mutex			mr_pool_mutex;	/* the pools */
	struct list_head		mr_pools;
};

int kofi_domain_init(struct kofi_domain *domain, struct fid_fabric *fabric,
		     const struct fi_info *info, const struct fi_ops_domain *ops,
		     void (*close)(struct kofi_domain *domain), void *context);
void kofi_domain_exit(struct kofi_domain *domain);
void kofi_domain_notify(struct kofi_domain *domain, int err);

/* ----------------------------------------------------------------- events */

struct kofi_eq;

#define KOFI_CM_DATA_MAX	256	/* private data any provider may carry */

/**
 * struct kofi_event - an event that may wait in an event queue
 * @node: entry in the queue's list, under the queue's lock
 * @fid: object that the event is about
 * @context: context of @fid
 * @event: FI_CONNREQ, ...
 * @err: positive error code makes this an error entry
 * @prov_errno: detail of @err
 * @info: info of FI_CONNREQ; passed to the reader
 * @data_val: fi_eq_entry.data
 * @data: bytes behind the fixed part, or the err_data of an error entry
 * @data_len: bytes at @data, at most %KOFI_CM_DATA_MAX
 * @release: called when the queue has consumed the event, with a spinlock held
 *	and interrupts off; NULL if the event is part of its object
 *
 * An event that must not be lost is part of the object it reports, so queuing
 * the event cannot fail.
 */
struct kofi_event {
	struct list_head	node;
	struct fi_fid		*fid;
	void			*context;
	u32			event;
	int			err;
	int			prov_errno;
	struct fi_info		*info;
	u64			data_val;
	const void		*data;
	size_t			data_len;
	void			(*release)(struct kofi_event *ev);
};

void kofi_eq_queue(struct kofi_eq *eq, struct kofi_event *ev);
bool kofi_eq_room(struct kofi_eq *eq);
void kofi_eq_report(struct kofi_eq *eq, const struct kofi_event *from, gfp_t gfp);
void kofi_eq_report_peer(struct kofi_eq *eq, const struct kofi_event *from);
void kofi_eq_purge(struct kofi_eq *eq, struct fi_fid *fid);

/* ------------------------------------------------------ passive endpoints */

/**
 * struct kofi_pep - base of a passive endpoint
 * @pep: handle of the consumer
 * @obj: the core's part
 * @fabric: parent
 * @eq: destination of FI_CONNREQ; set once, by cmpxchg, and read without a lock
 * @info: copy of the info it was opened with
 * @lock: serialises control calls; the provider's
 * @text: the consumer uses addresses in text form
 */
struct kofi_pep {
	struct fid_pep		pep;
	struct kofi_obj		obj;
	struct kofi_fabric	*fabric;
	struct kofi_eq		*eq;
	struct fi_info		*info;
	struct mutex		lock;	/* control calls */
	bool			text;
};

int kofi_pep_init(struct kofi_pep *pep, struct fid_fabric *fabric,
		  const struct fi_info *info, const struct fi_ops *fid_ops,
		  const struct fi_ops_ep *ops, const struct fi_ops_cm *cm,
		  const struct kofi_obj_ops *obj_ops, void *context);
struct kofi_event *kofi_pep_request(struct kofi_pep *pep,
				    struct fi_info *info, const void *data,
				    size_t len);
void kofi_pep_request_free(struct kofi_event *ev);
void kofi_pep_exit(struct kofi_pep *pep);

/* -------------------------------------------------------------- endpoints */

/*
 * States of an endpoint, in their order. Connected types pass through all of them;
 * other types post from ENABLED on. Each step is taken once, by cmpxchg, and its taker
 * owns the event that the step queues.
 */
enum kofi_ep_state {
	KOFI_EP_IDLE,		/* binding, options */
	KOFI_EP_ENABLED,	/* receives can be posted */
	KOFI_EP_CONNECTING,	/* connect or accept under way */
	KOFI_EP_CONNECTED,
	KOFI_EP_SHUTDOWN,	/* disconnected or failed; nothing can be posted */
};

/* Counters of an endpoint, in the order of the bind flags */
enum {
	KOFI_CNTR_SEND,
	KOFI_CNTR_RECV,
	KOFI_CNTR_READ,
	KOFI_CNTR_WRITE,
	KOFI_CNTR_REMOTE_READ,
	KOFI_CNTR_REMOTE_WRITE,
	KOFI_CNTR_NR
};

/* Most contexts of a scalable endpoint: max_ep_tx_ctx and max_ep_rx_ctx */
#define KOFI_EP_CTX_MAX	256

/* Regions of its pool that an endpoint always gets, however many other endpoints take */
#define KOFI_MR_RESERVED	4

struct kofi_cq;
struct kofi_cntr;
struct kofi_mr_pool;
struct kofi_mr_share;
struct kofi_sep_ctx;

/**
 * struct kofi_cq_wait - a waiter for a slot of a completion queue
 * @node: entry in the queue's list of waiters, under the queue's lock
 * @ep: the endpoint that waits
 * @wake: called once when a slot may be free, with spinlocks held and interrupts
 *	off; must only schedule work. NULL if the consumer waits: then its
 *	write-space callback is called
 */
struct kofi_cq_wait {
	struct list_head	node;
	struct kofi_ep		*ep;
	void			(*wake)(struct kofi_cq_wait *wait);
};

static inline void kofi_cq_wait_init(struct kofi_cq_wait *wait,
				     struct kofi_ep *ep,
				     void (*wake)(struct kofi_cq_wait *wait))
{
	INIT_LIST_HEAD(&wait->node);
	wait->ep = ep;
	wait->wake = wake;
}

/**
 * struct kofi_ep_posts - counters of posts per endpoint and direction
 * @posts: accepted operations
 * @again: posts refused with -EAGAIN
 */
struct kofi_ep_posts {
	atomic64_t	posts;
	atomic64_t	again;
};

/**
 * struct kofi_ep_stats - counters of completions per endpoint and direction
 * @bytes: bytes of successful operations
 * @completions: completed operations, including unreported ones
 * @errors: failed operations, also counted in @completions
 *
 * The counters change under the lock of the direction's queue, which completing takes
 * in any case; without a queue, under the endpoint's lock. A completion that is reported
 * without an entry in the queue is counted in a separate structure by the queue's
 * owner, without the lock.
 */
struct kofi_ep_stats {
	u64		bytes;
	u64		completions;
	u64		errors;
};

/**
 * struct kofi_peer_state - a peer of an endpoint, as statistics show it
 * @addr: address, sockaddr_in or sockaddr_in6
 * @state: enum kofi_ep_state, of the connection to the peer
 * @reconnects: number of connections after the first
 * @tx_waiting: transmits that have not begun
 * @rx_stored: stored messages, for which no receive has been posted
 * @rx_stored_bytes: memory of the stored messages in bytes
 */
struct kofi_peer_state {
	struct sockaddr_storage	addr;
	enum kofi_ep_state	state;
	u32			reconnects;
	size_t			tx_waiting;
	size_t			rx_stored;
	size_t			rx_stored_bytes;
};

/**
 * struct kofi_ep_ops - a provider's endpoint
 * @fid: close, and optional generic calls; bind is called
 *	after the core has bound a queue or counter, control for FI_SET_VAL and
 *	FI_GET_VAL with a value
 * @ep: options
 * @cm: connection management
 * @msg: messages
 * @tagged: tagged messages
 * @rma: remote memory
 * @atomic: atomic operations on remote memory
 * @obj: statistics of the provider
 * @enable: prepare for receives; the core has checked the bindings
 * @drain: refuse posts from now on, and complete all outstanding operations before
 *	returning, with ECANCELED unless they have succeeded or failed. Process
 *	context, may sleep, never waits for the network. May be called more than once
 * @abort: as @drain, which is called afterwards, but transmit no byte of the endpoint's
 *	operations after the return; NULL if @drain leaves nothing to transmit. Process
 *	context, may sleep, never waits for the network. May be called after @drain
 * @probe: check whether the peer still has the connection, see kofi_ep_probe(); or NULL.
 *	Process context
 * @cancel_connect: terminate a connect attempt whose request has not been sent, see
 *	kofi_ep_cancel_connect(); or NULL. Process context, may sleep
 * @send_deferred: transmit operations that were queued because of kofi_ep_defer(); NULL
 *	if the provider never calls kofi_ep_defer(). Softirq, or any context with
 *	interrupts on in which an operation is posted by kofi_ep_tx_get(); concurrent
 *	calls are possible. Without locks of the provider, perhaps after the endpoint has
 *	been drained
 * @peer_removed: complete all operations for the peer with this address with ECANCELED,
 *	and free its state. Unconnected types only; NULL if the provider keeps no state of
 *	peers. Process context, may sleep; no post uses the address at that time, and the
 *	mutex of an address vector is held
 * @peer_next: describe the peer with the lowest number from @number on, and store its
 *	number there; false if there is none. The provider assigns the numbers, below
 *	U32_MAX; a peer keeps its number during its life. Unconnected types only, or NULL.
 *	Process context; the endpoint is not freed before it returns
 * @peers_added: look for the senders of stored messages among new addresses of the
 *	vector, see kofi_rxq_rename(). NULL if the provider stores no messages.
 *	Process context, may sleep; the mutex of the address vector is held
 */
struct kofi_ep_ops {
	const struct fi_ops		*fid;
	const struct fi_ops_ep		*ep;
	const struct fi_ops_cm		*cm;
	const struct fi_ops_msg		*msg;
	const struct fi_ops_tagged	*tagged;
	const struct fi_ops_rma		*rma;
	const struct fi_ops_atomic	*atomic;
	const struct kofi_obj_ops	*obj;
	int				(*enable)(struct fid_ep *ep);
	void				(*drain)(struct fid_ep *ep);
	void				(*abort)(struct fid_ep *ep);
	void				(*probe)(struct fid_ep *ep);
	int				(*cancel_connect)(struct fid_ep *ep);
	void				(*send_deferred)(struct fid_ep *ep);
	void				(*peer_removed)(struct fid_ep *ep,
							const struct sockaddr *addr);
	bool				(*peer_next)(struct fid_ep *ep, u32 *number,
						     struct kofi_peer_state *state);
	void				(*peers_added)(struct fid_ep *ep);
};

/**
 * struct kofi_poster - an endpoint on a queue's list of deferred posts
 * @node: entry in the list
 * @listed: bit 0: @node is in the list
 * @ep: the endpoint
 */
struct kofi_poster {
	struct llist_node	node;
	unsigned long		listed;
	struct kofi_ep		*ep;
};

/**
 * typedef kofi_remote_fill - convert the report of a remote access for the endpoint above
 * @below: endpoint of the provider below, which reports the access
 * @wc: completion of the access; the function replaces the source, and a region that belongs to
 *	the provider above, by the values that the endpoint above reports
 *
 * Context: as kofi_ep_remote_complete(); never concurrently for one endpoint
 * if kofi_ep_remote_complete() is not.
 * Return: false to report nothing to the consumer; never with FI_REMOTE_CQ_DATA or
 * FI_RMA_EVENT.
 */
typedef bool (*kofi_remote_fill)(struct fid_ep *below, struct kofi_wc *wc);

/**
 * struct kofi_ep_mr - pooled regions of an endpoint, see kofi_mr_get()
 * @share: share of the pool, once the endpoint is enabled; or NULL
 * @pool_size: regions of the share, KOFI_OPT_MR_POOL; under kofi_ep.config
 * @pool_segs: segments of a region, KOFI_OPT_MR_SEGS; under kofi_ep.config
 */
struct kofi_ep_mr {
	struct kofi_mr_share	*share;
	size_t			pool_size;
	size_t			pool_segs;
};

/**
 * struct kofi_ep_space - resources that refused posts of an endpoint wait for
 * @blocked: bits that only the core changes, atomically
 * @fn: write-space callback of the consumer, or NULL; fixed once the endpoint is enabled
 * @node: entry in a queue's list of endpoints to call back
 * @wait: entries in the queues' lists of waiters for slots [0 transmit, 1 receive]
 */
struct kofi_ep_space {
	unsigned long		blocked;
	void			(*fn)(struct fid_ep *ep, void *context);
	struct llist_node	node;
	struct kofi_cq_wait	wait[2];
};

/**
 * struct kofi_ep_events - events of a connection, which need no memory when they happen
 * @conn: FI_CONNECTED, or the error entry of a failed connect
 * @down: FI_SHUTDOWN
 * @data: private data of @conn
 */
struct kofi_ep_events {
	struct kofi_event	conn;
	struct kofi_event	down;
	u8			data[KOFI_CM_DATA_MAX];
};

/**
 * struct kofi_ep - base of an endpoint
 * @ep: handle of the consumer
 * @obj: the core's part
 * @ops: operations of the provider
 * @domain: parent
 * @info: copy of the info it was opened with
 * @eq: destination of connection events; set once, by cmpxchg under @config, and read
 *	without it
 * @tx_cq: destination of transmit completions
 * @rx_cq: destination of receive completions
 * @tx_selective: report a transmit only if it has FI_COMPLETION
 * @rx_selective: report a receive only if it has FI_COMPLETION
 * @counted: at least one element of @cntr is set
 * @cntr: counters, by KOFI_CNTR_*
 * @srx: shared receive context that provides the receives, or NULL; an
 *	endpoint that only receives (class FI_CLASS_SRX_CTX)
 * @source: source address of its messages; one word, set and read without a lock
 * @av: address vector, for unconnected types
 * @av_node: entry in the list of @av, under the mutex of @av
 * @ctx: context of a scalable endpoint, if this is the endpoint of one; otherwise NULL
 * @op_flags: default flags of operations that can be chosen [0 transmit, 1
 *	receive]: all that exist, unless the provider clears some after
 *	kofi_ep_init(). Without FI_MULTI_RECV there is no FI_OPT_MIN_MULTI_RECV
 * @min_multi: bytes that a multi-receive must have left to stay posted; one word, set and
 *	read without a lock. A change concerns later messages
 * @remote_cqe: done mode: completion of peers' remote CQ data, or NULL
 * @above: endpoint that receives the reports of remote accesses in place of this
 *	one, or NULL: see kofi_ep_remote_to()
 * @above_fill: converts a report for @above
 * @mr: regions of a pool
 * @unexpected_timeout: KOFI_OPT_UNEXPECTED_TIMEOUT
 * @expired: number of messages discarded after @unexpected_timeout
 * @config: serialises binding, options and enabling
 * @lock: irqsave; makes a step of @state and the queuing of its event atomic
 * @state: enum kofi_ep_state; each step is a cmpxchg, under @lock if it has an event. Posts
 *	and completions read it without a lock
 * @space: resources that refused posts wait for
 * @ev: events of the connection
 * @poster: deferred posts by callbacks of a queue [0 the transmit, 1 the receive queue]
 * @posts: counters of posts [0 transmit, 1 receive]. Posts and completions run on
 *	different processors, so @posts shares no cache line with @reported and @stats
 * @reported: counters of completions that bypassed a queue, owned by the queue's owner
 * @stats: counters of all other completions
 */
struct kofi_ep {
	struct fid_ep			ep;
	struct kofi_obj			obj;
	const struct kofi_ep_ops	*ops;
	struct kofi_domain		*domain;
	struct fi_info			*info;
	struct kofi_eq			*eq;
	struct kofi_cq			*tx_cq;
	struct kofi_cq			*rx_cq;
	bool				tx_selective;
	bool				rx_selective;
	bool				counted;
	struct kofi_cntr		*cntr[KOFI_CNTR_NR];
	struct kofi_ep			*srx;
	fi_addr_t			source;
	struct kofi_av			*av;
	struct list_head		av_node;
	struct kofi_sep_ctx		*ctx;
	u64				op_flags[2];
	size_t				min_multi;
	struct kofi_cqe			*remote_cqe;
	struct kofi_ep			*above;
	kofi_remote_fill		above_fill;
	struct kofi_ep_mr		mr;
	size_t				unexpected_timeout;
	atomic64_t			expired;
	struct mutex			config;	/* bindings, options */
	spinlock_t			lock;	/* steps of state */
	int				state;
	struct kofi_ep_space		space;
	struct kofi_ep_events		ev;
	struct kofi_poster		poster[2];
	struct kofi_ep_posts		posts[2] ____cacheline_aligned_in_smp;
	struct kofi_ep_stats		reported[2] ____cacheline_aligned_in_smp;
	struct kofi_ep_stats		stats[2];
};

/* for slots of unsupported transfers: -ENOSYS */
ssize_t kofi_no_msg(struct fid_ep *ep, const struct fi_msg *msg, u64 flags);
ssize_t kofi_no_tagged(struct fid_ep *ep, const struct fi_msg_tagged *msg,
		       u64 flags);

int kofi_ep_init(struct kofi_ep *ep, struct fid_domain *domain,
		 const struct fi_info *info, const struct kofi_ep_ops *ops,
		 void *context);
void kofi_ep_exit(struct kofi_ep *ep);

/* state: each returns true for the one caller that made the step */
bool kofi_ep_connected(struct kofi_ep *ep, const void *data, size_t len);
bool kofi_ep_connect_failed(struct kofi_ep *ep, int err, int prov_errno,
			    const void *data, size_t len);
bool kofi_ep_disconnected(struct kofi_ep *ep, int err);
void kofi_ep_peer_lost(struct kofi_ep *ep, const struct sockaddr *addr, int err);

int kofi_ep_tx_connecting(struct kofi_ep *ep);

/**
 * kofi_ep_tx_state - check the state of an endpoint for a transmit
 * @ep: the endpoint
 *
 * Return: 0, -FI_EOPBADSTATE, -ENOTCONN or -ESHUTDOWN; -EAGAIN while the endpoint
 * accepts a connection, and the write-space callback follows.
 */
static __always_inline int kofi_ep_tx_state(struct kofi_ep *ep)
{
	int state = READ_ONCE(ep->state);

	if (likely(state == KOFI_EP_CONNECTED))
		return 0;
	switch (state) {
	case KOFI_EP_IDLE:
		return -FI_EOPBADSTATE;
	case KOFI_EP_ENABLED:
		return ep->av ? 0 : -ENOTCONN;
	case KOFI_EP_CONNECTING:
		return kofi_ep_tx_connecting(ep);
	case KOFI_EP_SHUTDOWN:
		return -ESHUTDOWN;
	default:
		return -ENOTCONN;
	}
}

/**
 * kofi_ep_may - test capabilities that an endpoint was opened with
 * @ep: the endpoint
 * @caps: capabilities and directions, such as FI_RMA | FI_READ
 *
 * Return: true if the endpoint has all of @caps.
 */
static __always_inline bool kofi_ep_may(const struct kofi_ep *ep, u64 caps)
{
	return (ep->info->caps & caps) == caps;
}

/**
 * kofi_ep_tx_check - check the state and the completion level of a transmit
 * @ep: the endpoint
 * @levels: flags that name a completion level
 *
 * Return: -FI_EBADFLAGS for more than one level; otherwise as kofi_ep_tx_state().
 */
static inline int kofi_ep_tx_check(struct kofi_ep *ep, u64 levels)
{
	return levels & (levels - 1) ? -FI_EBADFLAGS : kofi_ep_tx_state(ep);
}

/**
 * kofi_ep_rx_state - check the state of an endpoint for a receive
 * @ep: the endpoint
 *
 * Return: 0, -FI_EOPBADSTATE or -ESHUTDOWN; -ENOSYS if the endpoint uses a shared
 * receive context.
 */
static inline int kofi_ep_rx_state(const struct kofi_ep *ep)
{
	if (ep->srx)
		return -ENOSYS;
	switch (READ_ONCE(ep->state)) {
	case KOFI_EP_IDLE:
		return -FI_EOPBADSTATE;
	case KOFI_EP_SHUTDOWN:
		return -ESHUTDOWN;
	default:
		return 0;
	}
}

/*
 * Completions. An operation is accepted only after a slot of its queue has been
 * reserved. Exactly one call of _complete fills the slot, or one of _unreserve releases
 * it. All may be called in any context and under the provider's locks, since none of
 * them calls the consumer.
 *
 * kofi_wc.len of a transmit is the length of the message: the core counts it, and
 * reports 0 to the consumer.
 *
 * If a post lacks a resource of the provider, the provider tries again with kofi_ep_retry()
 * before it refuses the post, so that no wake-up is lost. The next completion, or
 * kofi_ep_unblock(), wakes the consumer. Therefore an operation releases its resources
 * before it is completed. kofi_ep_tx_refuse() and kofi_ep_rx_refuse() refuse a post that
 * has a slot. kofi_ep_tx_get() does all of this for records in a struct kofi_freelist. It
 * may call kofi_ep_ops.send_deferred, so the caller holds no lock which that takes.
 */
int kofi_ep_tx_reserve(struct kofi_ep *ep, void *context);
int kofi_ep_rx_reserve(struct kofi_ep *ep);
bool kofi_ep_tx_try_reserve(struct kofi_ep *ep, void *context);
bool kofi_ep_rx_try_reserve(struct kofi_ep *ep);
bool kofi_ep_defer(struct kofi_ep *ep);
void kofi_ep_tx_unreserve(struct kofi_ep *ep);
void kofi_ep_rx_unreserve(struct kofi_ep *ep);
int kofi_ep_tx_refuse(struct kofi_ep *ep, int err);
int kofi_ep_rx_refuse(struct kofi_ep *ep, int err);
void kofi_ep_tx_complete(struct kofi_ep *ep, const struct kofi_wc *wc,
			 u64 op_flags);
void kofi_ep_tx_done(struct kofi_ep *ep, void *context, u64 flags, size_t len,
		     u64 op_flags);
void kofi_ep_rx_complete(struct kofi_ep *ep, struct kofi_ep *from,
			 const struct kofi_wc *wc, u64 op_flags);
void kofi_ep_blocked(struct kofi_ep *ep);
void kofi_ep_unblock(struct kofi_ep *ep);

/**
 * kofi_ep_retry - repeat an attempt that has failed, before a post is refused
 * @ep: the endpoint
 * @attempt: expression that gets a resource of the provider, or tests whether it is free
 *
 * A macro that marks the endpoint first, and then evaluates @attempt once. @attempt finds
 * a resource that was released before the mark. A release after the mark wakes
 * the consumer. The mark remains if @attempt succeeds; then one callback has no cause.
 *
 * Context: any.
 * Return: the value of @attempt.
 */
#define kofi_ep_retry(ep, attempt)	({ kofi_ep_blocked(ep); (attempt); })

/*
 * Remote accesses of the endpoint's memory. The core counts them, and reports an access on
 * the receive queue if it carries remote CQ data (FI_REMOTE_CQ_DATA) or its region
 * demands a report (FI_RMA_EVENT). A slot for the report is reserved when the frame begins;
 * without a free slot the stream waits.
 */
int kofi_ep_remote_reserve(struct kofi_ep *ep, struct kofi_cq_wait *wait);
void kofi_ep_remote_unreserve(struct kofi_ep *ep);
void kofi_ep_remote_complete(struct kofi_ep *ep, const struct kofi_wc *wc);
void kofi_ep_remote_cancel(struct kofi_ep *ep, struct kofi_cq_wait *wait);

/* ------------------------------------------------------- atomic operations */

size_t kofi_datatype_size(enum fi_datatype datatype);
bool kofi_atomic_op_fits(enum fi_op op, u64 flags);

/* ------------------------------------------- completion queues of a device */

/**
 * struct kofi_cq_ops - a provider's part of a completion queue
 * @priv_size: bytes the core allocates for the provider with the queue, zeroed
 * @open: set up the memory of kofi_cq_priv(), before the queue is used;
 *	may sleep. May be NULL
 * @close: undo @open. No endpoint reports to the queue at that time. May be NULL
 * @poll: KOFI_POLL_DIRECT with callbacks: take completions from the device and complete
 *	the operations. Called by kofi_cq_poll() and fi_poll(),
 *	never concurrently, without locks of the core and with interrupts enabled.
 *	NULL if the device is polled by other means
 * @strerror: text for a kofi_wc.prov_errno, a constant string
 *
 * The core's queue is the only queue: the provider enters each completion of the device
 * with kofi_ep_tx_complete() and similar functions. A provider that
 * is called by its device in softirq context puts these calls between
 * kofi_cq_begin() and kofi_cq_end(), or for a single completion calls
 * kofi_ep_tx_report() or kofi_ep_rx_report(): if the queue calls back in that
 * context, these call the consumer directly.
 */
struct kofi_cq_ops {
	size_t		priv_size;
	int		(*open)(struct kofi_cq *cq,
				const struct fi_cq_attr *attr,
				const struct kofi_cq_attr *kattr);
	void		(*close)(struct kofi_cq *cq);
	void		(*poll)(struct kofi_cq *cq);
	const char	*(*strerror)(int prov_errno);
};

int kofi_cq_make(struct fid_domain *domain, const struct fi_cq_attr *attr,
		 const struct kofi_cq_attr *kattr,
		 const struct kofi_cq_ops *ops, struct fid_cq **cq,
		 void *context);
void *kofi_cq_priv(struct kofi_cq *cq);
bool kofi_cq_begin(struct kofi_cq *cq);
void kofi_cq_end(struct kofi_cq *cq);
void kofi_ep_tx_report(struct kofi_ep *ep, struct kofi_wc *wc, u64 op_flags);
void kofi_ep_rx_report(struct kofi_ep *ep, struct kofi_ep *from,
		       struct kofi_wc *wc, u64 op_flags);
void kofi_cq_claim(struct kofi_cq *cq);
void kofi_cq_release(struct kofi_cq *cq);
bool kofi_ep_tx_scarce(struct kofi_ep *ep);

/* ---------------------------------------------------------- memory regions */

/**
 * struct kofi_mr_stats - counters of a region
 * @reads: completed reads by peers
 * @writes: completed writes by peers
 * @bytes: bytes of @reads and @writes
 * @refused: refused accesses that named the region
 */
struct kofi_mr_stats {
	atomic64_t	reads;
	atomic64_t	writes;
	atomic64_t	bytes;
	atomic64_t	refused;
};

/**
 * struct kofi_mr - base of a region
 * @mr: handle of the consumer
 * @obj: the core's part; not used for a region of a pool
 * @domain: parent
 * @ep: endpoint it is bound to, or NULL for all endpoints of the domain; for a region
 *	of a pool the endpoint that got it. Written before the region has a key; an access of
 *	a peer reads it without a lock, with a reference in @users
 * @access: FI_REMOTE_READ, FI_REMOTE_WRITE, ...
 * @flags: FI_MR_SINGLE_USE, FI_RMA_EVENT
 * @base: remote address of the first byte
 * @len: length in bytes
 * @addr: virtual address of the first byte, if the region is one range of virtually
 *	contiguous kernel memory; otherwise NULL
 * @nr_segs: number of segments
 * @bv: segments
 * @start: offset of each segment's first byte
 * @state: state and number of openings, encoded by mr.h; each step is a cmpxchg without a
 *	lock, since mapping and the end by a peer run in any context, the provider's too
 * @pool: pool it belongs to, or NULL
 * @broken: region of a pool that the provider failed to open; when it is returned, the
 *	pool replaces it
 * @node: entry in a list of the pool, or of the endpoint that got the region
 * @report: the end of the region is reported as a completion
 * @wc: completion for @report
 * @fenced: complete when peers can no longer access the region; not used by pools
 * @stats: counters
 * @serial: software: number of the registration; never reused in the domain
 * @users: software: active accesses, plus one while the region is accessible
 * @index: software: index in the domain's table
 * @rcu: lookups may still use the region
 */
struct kofi_mr {
	struct fid_mr		mr;
	struct kofi_obj		obj;
	struct kofi_domain	*domain;
	struct kofi_ep		*ep;
	u64			access;
	u64			flags;
	u64			base;
	size_t			len;
	void			*addr;
	unsigned int		nr_segs;
	struct bio_vec		*bv;
	u64			*start;
	unsigned int		state;
	struct kofi_mr_pool	*pool;
	bool			broken;
	struct list_head	node;
	bool			report;
	struct kofi_wc		wc;
	struct completion	fenced;
	struct kofi_mr_stats	stats;
	u64			serial;
	refcount_t		users;
	unsigned long		index;
	struct rcu_head		rcu;
};

/**
 * struct kofi_mr_ops - a provider's operations on regions
 * @size: bytes of its region, which begins with a struct kofi_mr
 * @counted: the provider reports accesses to the core, which counts them
 * @init: acquire the resources of a region; process context. A region of a pool, which
 *	has @pool set, must be able to hold any @segs segments of
 *	any endpoint; any other has its memory and base already, and may request @key. Return
 *	-EINVAL or -EOPNOTSUPP for an unsupported region.
 * @exit: release the resources; process context. The region is not open.
 * @open: let peers access the memory as @access and @flags permit: set @base
 *	where the provider chooses it, and mr.key. Runs in the context of
 *	the consumer's call: any for a region of a pool; process context for
 *	others. A peer may end the region as soon as it knows the key. On an error
 *	the region is as before.
 * @end: end an open region: make sure that the memory is not accessed any
 *	longer, and then call kofi_mr_fenced(), at once or later. Any context,
 *	perhaps before @open has returned, if a peer is that early. After the endpoint of
 *	a pool's region has been drained, @end must not need the network.
 */
struct kofi_mr_ops {
	size_t	size;
	bool	counted;
	int	(*init)(struct kofi_mr *mr, size_t segs, u64 key);
	void	(*exit)(struct kofi_mr *mr);
	int	(*open)(struct kofi_mr *mr);
	void	(*end)(struct kofi_mr *mr);
};

int kofi_mr_regattr(struct fid_domain *domain, const struct fi_mr_attr *attr,
		    u64 flags, struct fid_mr **mr);
bool kofi_mr_end(struct kofi_mr *mr, u64 key, int err, u64 flags);
void kofi_mr_fenced(struct kofi_mr *mr);

#endif /* _LINUX_KOFI_PROVIDER_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a provider implements, and the calls it makes for that.
 *
 * A provider registers a struct kofi_provider. Each object it makes embeds
 * the core's base of that kind as its first member; the base's init function
 * sets up the object consumers see, takes the reference on its parent and
 * remembers the bindings, the exit function gives all of it back. Calls reach
 * the provider only with arguments the core has checked. Operation tables are
 * const. A slot of a call that goes through the core may be empty: the call
 * returns -ENOSYS. Transfers go straight to the provider, so their tables
 * are complete, with kofi_no_msg() and the like where it has nothing; a table
 * that would have nothing else is left out.
 *
 * What the core can do for a provider beyond that is in lib.h.
 *
 * Who frees: fi_close() refuses with -EBUSY while an object is a parent or is
 * bound, drains an endpoint, and then calls the object's fi_ops.close. That
 * must succeed; it calls the exit function and frees the object.
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
 * @name: its prov_name; the module also carries MODULE_ALIAS("kofi-prov-NAME")
 * @version: of the provider, FI_VERSION() encoded
 * @getinfo: list what matches. @hints is never NULL, has every attribute
 *	structure, and names the network namespace in fabric_attr->net. Adds
 *	to @info a list made with fi_allocinfo() or fi_dupinfo(), best first;
 *	the core fills prov_name, prov_version, api_version and net. Returns 0
 *	or -ENODATA.
 * @freeinfo: called by nothing; the core owns the layout of fi_info. Kept
 *	for the order of the first members
 * @fabric: open a fabric; @attr is complete and names this provider. NULL if it has
 *	nothing of the provider's but @fabric_ops
 * @fabric_ops: operations of such a fabric
 * @owner: THIS_MODULE
 * @event_strerror: text for the prov_errno of an event, a constant string; NULL
 *	if they are error codes
 * @priority: place in merged lists, lower comes first
 * @node: the core's
 * @live: the core's: clients have been told of its devices
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

/* what clients are told of: see kofi_client_register() */
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
void kofi_info_reduce(struct fi_info *info, const struct fi_info *most);
bool kofi_info_listed(const struct fi_info *list, const struct fi_info *info);

/* --------------------------------------------------------------- objects */

/**
 * typedef kofi_stat_fn - takes one statistic
 * @arg: what the caller of kofi_obj_ops.stats passed
 * @name: name of the statistic, a constant string
 * @value: its value
 */
typedef void (*kofi_stat_fn)(void *arg, const char *name, u64 value);

/**
 * struct kofi_obj_ops - what the core asks any object
 * @stats: hand every statistic of the object to @fn; process context, the
 *	object cannot go away meanwhile
 * @waits_for_caller: would closing wait for the caller, a callback of the
 *	object's? The core's own
 * @drain: fi_close() has begun: end what is under way. The core's own
 * @pending: is there something the consumer has not read; any context. The
 *	core's own
 * @end: fi_close() has been called: 0 to close the object, now without users; 1
 *	if it is still open for somebody else; -EBUSY. The core's own
 * @control: fi_control() has been called: handle the command, or pass it to the
 *	provider's fi_ops; NULL if the provider handles all commands. The core's own
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
 * @parent: holds one of its users
 * @prov: provider, NULL for what belongs to no one provider
 * @ops: may be NULL
 * @users: children and bindings; negative once fi_close() has won
 * @lookers: dumps that look at it; fi_close() waits for them
 * @id: number of the object, unique while it lives
 */
struct kofi_obj {
	struct fi_fid			*fid;
	struct kofi_obj			*parent;
	struct kofi_provider		*prov;
	const struct kofi_obj_ops	*ops;
	atomic_t			users;
	atomic_t			lookers;
	u32				id;
};

bool kofi_obj_get(struct kofi_obj *obj);
void kofi_obj_put(struct kofi_obj *obj);

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
 * @regions: struct kofi_mr; by the low half of a key the core has chosen, by
 *	the whole of one the consumer has
 * @client: consumers choose the keys (mr_mode without FI_MR_PROV_KEY)
 * @endpoint: regions are bound to an endpoint and then enabled
 *	(FI_MR_ENDPOINT)
 * @next: hint for the next low half, so that a slot is used again as late as
 *	possible
 * @generation: registrations so far, from a random number on; the low half is
 *	the high half of the key of a region of a pool
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
 * @domain: what the consumer holds
 * @obj: the core's
 * @fabric: its parent
 * @eq: queue for FI_NOTIFY, or NULL
 * @dev: device for DMA, NULL for software
 * @node: NUMA node, or NUMA_NO_NODE
 * @vectors: completion vectors of a device, 0 for software
 * @name: domain_attr->name
 * @addr_format: of the addresses in its address vectors
 * @close: fi_close(): let go of what the provider has, or NULL; the core then frees the
 *	domain, which begins with this base
 * @remote: endpoints are told of remote CQ data or accesses without a receive, though
 *	@mr_ops are not; the provider's
 * @mrs: regions of software providers by their keys
 * @mr_ops: how peers get to regions
 * @mr_pool_mutex: guards @mr_pools
 * @mr_pools: regions for kofi_mr_get()
 */
struct kofi_domain {
	struct fid_domain		domain;
	struct kofi_obj			obj;
	struct kofi_fabric		*fabric;
	struct kofi_eq			*eq;
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
void kofi_domain_notify(struct kofi_domain *domain, u64 data);

/* ----------------------------------------------------------------- events */

struct kofi_eq;

#define KOFI_CM_DATA_MAX	256	/* private data any provider may carry */

/**
 * struct kofi_event - an event that may wait in an event queue
 * @node: the queue's
 * @fid: object the event is about
 * @context: its context
 * @event: FI_CONNREQ, ...
 * @err: positive error code makes this an error entry
 * @prov_errno: detail of @err
 * @info: FI_CONNREQ: goes to the reader
 * @data_val: fi_eq_entry.data
 * @data: bytes behind the fixed part, or the err_data of an error entry
 * @data_len: number of them, at most %KOFI_CM_DATA_MAX
 * @release: called when the queue is done with the event, with a spinlock held
 *	and interrupts off; NULL for one that is part of its object
 *
 * Events that must not be lost are part of the object they report, so queuing
 * them cannot fail.
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
 * @pep: what the consumer holds
 * @obj: the core's
 * @fabric: its parent
 * @eq: where FI_CONNREQ goes
 * @info: copy of what it was opened with
 * @lock: control calls one after the other; the provider's
 * @text: its consumer has addresses as text
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
struct fi_info *kofi_pep_request(const struct kofi_pep *pep,
				 struct fi_info *info);
void kofi_pep_exit(struct kofi_pep *pep);

/* -------------------------------------------------------------- endpoints */

/*
 * Life of an endpoint. Connected types go the whole way, others post from
 * ENABLED on. Each step is taken once, by cmpxchg, and owns the event it queues.
 */
enum kofi_ep_state {
	KOFI_EP_IDLE,		/* binding, options */
	KOFI_EP_ENABLED,	/* receives can be posted */
	KOFI_EP_CONNECTING,	/* connect or accept under way */
	KOFI_EP_CONNECTED,
	KOFI_EP_SHUTDOWN,	/* ended or failed; nothing can be posted */
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

/* Most regions of those it asks for that an endpoint has whatever others do */
#define KOFI_MR_RESERVED	4

struct kofi_cq;
struct kofi_cntr;
struct kofi_mr_pool;
struct kofi_mr_share;
struct kofi_sep_ctx;

/**
 * struct kofi_cq_wait - what waits for a slot of a queue
 * @node: the queue's
 * @ep: the endpoint
 * @wake: a stream: called once, when a slot may be free, with spinlocks held
 *	and interrupts off; it only schedules. NULL for a consumer, whose
 *	write-space callback is called.
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
 * struct kofi_ep_posts - what posts count per endpoint and direction
 * @posts: accepted operations
 * @again: posts refused with -EAGAIN
 */
struct kofi_ep_posts {
	atomic64_t	posts;
	atomic64_t	again;
};

/**
 * struct kofi_ep_stats - what completions count per endpoint and direction
 * @bytes: bytes of successful ones
 * @completions: final completions, reported or not
 * @errors: of them, failed ones
 *
 * They change under the lock of the direction's queue, which completing takes
 * anyway; without a queue, under the endpoint's. What is reported to a consumer
 * past the queue is counted apart, as the queue's poller does it, without the lock.
 */
struct kofi_ep_stats {
	u64		bytes;
	u64		completions;
	u64		errors;
};

/**
 * struct kofi_peer_state - what there is to tell of a peer of an endpoint
 * @addr: its address, sockaddr_in or sockaddr_in6
 * @state: enum kofi_ep_state, of the connection to it
 * @reconnects: how often it has been connected to again
 * @tx_waiting: transmits that have not begun
 * @rx_stored: messages that are kept, as they have no receive
 * @rx_stored_bytes: memory they take
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
 * @fid: close, and what else it wants of the generic calls; bind is called
 *	after the core has bound a queue or counter, control for FI_SET_VAL and
 *	FI_GET_VAL with a value
 * @ep: options
 * @cm: connection management
 * @msg: messages
 * @tagged: tagged messages
 * @rma: remote memory
 * @atomic: atomic operations on it
 * @obj: statistics beyond the core's
 * @enable: get ready for receives; the core has checked the bindings
 * @drain: refuse posts from now on, and complete everything outstanding with
 *	ECANCELED before returning; process context, may sleep, never waits
 *	for the network. May be called more than once.
 * @abort: as @drain, which follows, but transmit no byte of the endpoint's operations
 *	from the return on; NULL if @drain leaves nothing to transmit. Process context,
 *	may sleep, never waits for the network. May be called after @drain
 * @send_deferred: send what was queued because of kofi_ep_defer(); for providers
 *	that ask. Softirq; without locks, but perhaps after the endpoint has been
 *	drained
 * @peer_removed: end what is under way to the peer with that address, with
 *	ECANCELED, and forget it; types that do not connect, NULL for those that
 *	know nothing of a peer. Process context, may sleep; no post has the address
 *	any more, and an address vector is locked
 * @peer_next: fill in what there is to tell of the peer with the lowest number from
 *	@number on, and store its number there; false if there is none. Numbers are
 *	the provider's, below U32_MAX: a peer keeps its own while it is one. Types
 *	that do not connect, or NULL. Process context; the endpoint cannot go away
 * @peers_added: addresses are in the vector that were not: messages that wait may
 *	have a known sender by now, see kofi_rxq_rename(). NULL if no message waits.
 *	Process context, may sleep; the address vector is locked
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
	void				(*send_deferred)(struct fid_ep *ep);
	void				(*peer_removed)(struct fid_ep *ep,
							const struct sockaddr *addr);
	bool				(*peer_next)(struct fid_ep *ep, u32 *number,
						     struct kofi_peer_state *state);
	void				(*peers_added)(struct fid_ep *ep);
};

/**
 * struct kofi_poster - an endpoint among those with deferred posts
 * @node: on the queue's list
 * @listed: bit 0: it is there
 * @ep: the endpoint
 */
struct kofi_poster {
	struct llist_node	node;
	unsigned long		listed;
	struct kofi_ep		*ep;
};

/**
 * typedef kofi_remote_fill - a peer has accessed memory through an endpoint below
 * @below: that endpoint
 * @wc: what it reports; the source, and a region of the provider's own, are changed to
 *	what the endpoint above is to report
 *
 * Context: as kofi_ep_remote_complete(), and not twice at a time for an endpoint
 * where that is so.
 * Return: false if the consumer is not concerned; not with FI_REMOTE_CQ_DATA or
 * FI_RMA_EVENT.
 */
typedef bool (*kofi_remote_fill)(struct fid_ep *below, struct kofi_wc *wc);

/**
 * struct kofi_ep - base of an endpoint
 * @ep: what the consumer holds
 * @obj: the core's
 * @ops: the provider's
 * @domain: its parent
 * @info: copy of what it was opened with
 * @eq: connection events
 * @tx_cq: transmit completions
 * @rx_cq: receive completions
 * @tx_selective: report transmits only where FI_COMPLETION is given
 * @rx_selective: the same for receives
 * @counted: there are counters
 * @cntr: counters, by KOFI_CNTR_*
 * @srx: shared receive context whose receives it takes, or NULL; that is an
 *	endpoint that only receives (class FI_CLASS_SRX_CTX)
 * @source: address its messages are said to come from
 * @av: peers, of a type that does not connect
 * @av_node: among the endpoints of @av
 * @ctx: the context of a scalable endpoint that it is, or NULL
 * @op_flags: default flags of operations that can be chosen [0 transmit, 1
 *	receive]: all there are, unless the provider leaves out some after
 *	kofi_ep_init(). Without FI_MULTI_RECV it has no FI_OPT_MIN_MULTI_RECV.
 * @min_multi: bytes a multi-receive must have left to stay posted
 * @remote_cqe: done mode: what peers' remote CQ data completes to, or NULL
 * @above: endpoint that hears of what peers do to memory in place of this one, or
 *	NULL: see kofi_ep_remote_to()
 * @above_fill: fills in what it hears
 * @mr_share: of the domain's regions for kofi_mr_get()
 * @mr_pool_size: KOFI_OPT_MR_POOL
 * @mr_pool_segs: KOFI_OPT_MR_SEGS
 * @unexpected_timeout: KOFI_OPT_UNEXPECTED_TIMEOUT
 * @expired: messages that have waited for that time
 * @config: serialises binding, options and enabling
 * @lock: irqsave; a step of @state and the event it queues are one
 * @state: enum kofi_ep_state
 * @blocked: bits of the core: what the consumer waits for
 * @write_space: the consumer's callback, or NULL
 * @space_node: on the list of endpoints a queue is to call back
 * @cq_wait: on the list of endpoints that wait for slots of a queue
 *	[0 transmit, 1 receive]
 * @ev_conn: FI_CONNECTED, or why not
 * @ev_down: FI_SHUTDOWN
 * @cm_data: private data of @ev_conn
 * @poster: posts of callbacks of a queue [0 the transmit, 1 the receive queue]
 * @posts: counted by the core [0 transmit, 1 receive]. Posts and completions are
 *	of different processors, so that this and what follows share no cache line.
 * @reported: completions that did not go through a queue, counted by its poller
 * @stats: all others
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
	struct kofi_mr_share		*mr_share;
	size_t				mr_pool_size;
	size_t				mr_pool_segs;
	size_t				unexpected_timeout;
	atomic64_t			expired;
	struct mutex			config;	/* bindings, options */
	spinlock_t			lock;	/* steps of state */
	int				state;
	unsigned long			blocked;
	void				(*write_space)(struct fid_ep *ep,
						       void *context);
	struct llist_node		space_node;
	struct kofi_cq_wait		cq_wait[2];
	struct kofi_event		ev_conn;
	struct kofi_event		ev_down;
	u8				cm_data[KOFI_CM_DATA_MAX];
	struct kofi_poster		poster[2];
	struct kofi_ep_posts		posts[2] ____cacheline_aligned_in_smp;
	struct kofi_ep_stats		reported[2] ____cacheline_aligned_in_smp;
	struct kofi_ep_stats		stats[2];
};

/* for slots of transfers there is nothing to do for: -ENOSYS */
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
bool kofi_ep_disconnected(struct kofi_ep *ep);
void kofi_ep_peer_lost(struct kofi_ep *ep, const struct sockaddr *addr, int err);

int kofi_ep_tx_connecting(struct kofi_ep *ep);

/**
 * kofi_ep_tx_state - may a transmit be posted
 * @ep: the endpoint
 *
 * Return: 0, -FI_EOPBADSTATE, -ENOTCONN or -ESHUTDOWN; -EAGAIN while it accepts, and
 * the write-space callback follows.
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
 * kofi_ep_tx_check - may a transmit that completes at some level be posted
 * @ep: the endpoint
 * @levels: the flags that name a level
 *
 * Return: -FI_EBADFLAGS if they are several; or as kofi_ep_tx_state().
 */
static inline int kofi_ep_tx_check(struct kofi_ep *ep, u64 levels)
{
	return levels & (levels - 1) ? -FI_EBADFLAGS : kofi_ep_tx_state(ep);
}

/**
 * kofi_ep_rx_state - may a receive be posted
 * @ep: the endpoint
 *
 * Return: 0, -FI_EOPBADSTATE or -ESHUTDOWN; -ENOSYS if its receives are those
 * of a shared receive context.
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
 * Completions. An operation is accepted only with a slot of its queue
 * reserved; exactly one _complete or _unreserve gives the slot back or fills
 * it. All may be called in any context and under the provider's locks: no
 * consumer is called from inside them.
 *
 * For a transmit, kofi_wc.len is the length of the message: it is counted, and
 * the consumer sees 0.
 *
 * A provider that refuses a post for want of something of its own calls
 * kofi_ep_blocked() and then looks once more, so that no wake-up is lost; the
 * next completion, or kofi_ep_unblock(), wakes the consumer. An operation
 * therefore gives back what it holds before it is completed.
 */
int kofi_ep_tx_reserve(struct kofi_ep *ep);
int kofi_ep_rx_reserve(struct kofi_ep *ep);
bool kofi_ep_tx_try_reserve(struct kofi_ep *ep);
bool kofi_ep_rx_try_reserve(struct kofi_ep *ep);
bool kofi_ep_defer(struct kofi_ep *ep);
void kofi_ep_tx_unreserve(struct kofi_ep *ep);
void kofi_ep_rx_unreserve(struct kofi_ep *ep);
void kofi_ep_tx_complete(struct kofi_ep *ep, const struct kofi_wc *wc,
			 u64 op_flags);
void kofi_ep_tx_done(struct kofi_ep *ep, void *context, u64 flags, size_t len,
		     u64 op_flags);
void kofi_ep_rx_complete(struct kofi_ep *ep, const struct kofi_wc *wc,
			 u64 op_flags);
void kofi_ep_recv_complete(struct kofi_ep *ep, struct kofi_ep *from,
			   const struct kofi_wc *wc, u64 op_flags);
void kofi_ep_blocked(struct kofi_ep *ep);
void kofi_ep_unblock(struct kofi_ep *ep);

/*
 * What a peer does to the endpoint's memory: counted, and reported on the
 * receive queue if it brings remote CQ data (FI_REMOTE_CQ_DATA) or a region asks for
 * that (FI_RMA_EVENT). A slot for the report is reserved when the frame begins;
 * while there is none the stream waits.
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
 * struct kofi_cq_ops - what a provider has behind a completion queue
 * @priv_size: bytes the core allocates for the provider with the queue, zeroed
 * @open: set up what kofi_cq_priv() returns, before anybody uses the queue;
 *	may sleep. May be NULL
 * @close: undo that. No endpoint reports to the queue any more. May be NULL
 * @poll: KOFI_POLL_DIRECT with callbacks: take from the device what has
 *	completed, and complete it. Called by kofi_cq_poll() and fi_poll(),
 *	never twice at a time, and without locks of the core; interrupts may
 *	not be off. NULL if the device is taken care of otherwise
 * @strerror: text for a kofi_wc.prov_errno, a constant string
 *
 * The core's queue remains the one queue there is: whatever the device has
 * completed goes into it with kofi_ep_tx_complete() and its kin. A provider that
 * is called by its device in softirq context puts these calls between
 * kofi_cq_begin() and kofi_cq_end(), or for a single completion calls
 * kofi_ep_tx_report() or kofi_ep_recv_report(): if the queue calls back in that
 * context, the consumer is called right there.
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
void kofi_ep_recv_report(struct kofi_ep *ep, struct kofi_ep *from,
			 struct kofi_wc *wc, u64 op_flags);
void kofi_cq_claim(struct kofi_cq *cq);
void kofi_cq_release(struct kofi_cq *cq);
bool kofi_ep_tx_scarce(struct kofi_ep *ep);

/* ---------------------------------------------------------- memory regions */

/**
 * struct kofi_mr_stats - what the core counts per region
 * @reads: complete accesses of peers that read
 * @writes: the same that write
 * @bytes: bytes of both
 * @refused: accesses that named it and were refused
 */
struct kofi_mr_stats {
	atomic64_t	reads;
	atomic64_t	writes;
	atomic64_t	bytes;
	atomic64_t	refused;
};

/**
 * struct kofi_mr - base of a region
 * @mr: what the consumer holds
 * @obj: the core's; not used for a region of a pool
 * @domain: its parent
 * @ep: the endpoint it is bound to, or NULL for all of the domain; of a pool,
 *	the one that has it
 * @access: FI_REMOTE_READ, FI_REMOTE_WRITE, ...
 * @flags: FI_MR_SINGLE_USE, FI_RMA_EVENT
 * @base: remote address of the first byte
 * @len: bytes
 * @addr: address of the first byte, if it was given as one piece of kernel memory,
 *	perhaps of many pages that only lie side by side there; otherwise NULL
 * @nr_segs: segments
 * @bv: the segments
 * @start: offset of each segment's first byte
 * @state: mr.h's: the state, and how often it was opened
 * @pool: pool it belongs to, or NULL
 * @broken: of a pool: the provider cannot open it any more; once it is put back
 *	another takes its place
 * @node: on a list of the pool, or of the endpoint that has it
 * @report: its end is a completion
 * @wc: that completion
 * @fenced: it is not accessed any more; for a region of no pool
 * @stats: counted by the core
 * @serial: software: of the registration; never used twice in the domain
 * @users: software: accesses under way, and one while it can be accessed
 * @index: software: place in the domain's table
 * @rcu: lookups may still see it
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
 * struct kofi_mr_ops - how a provider lets peers get to regions
 * @size: bytes of its region, which begins with a struct kofi_mr
 * @counted: it tells the core of accesses, which counts them
 * @init: get what a region needs; process context. A region of a pool, which
 *	has @pool set, is to hold @segs segments, whatever they will be, of
 *	any endpoint; any other has its memory and base already, and may ask for @key. What
 *	the provider cannot do it refuses with -EINVAL or -EOPNOTSUPP.
 * @exit: give it back; process context. The region is not open.
 * @open: let peers access the memory, as @access and @flags say: sets @base
 *	where that is the provider's choice, and mr.key. The context is that of
 *	the consumer's call: any for a region of a pool; process context for
 *	others. A peer may end the region as soon as it has the key. On an error
 *	nothing has happened.
 * @end: an open region ends: make sure that the memory is not accessed any
 *	more, and then call kofi_mr_fenced(), from inside or later. Any context,
 *	also while @open has not returned if a peer was that quick. For a region
 *	of a pool whose endpoint has been drained that must not need the network.
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

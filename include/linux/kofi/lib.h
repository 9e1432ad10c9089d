/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Helpers of the core for providers.
 *
 * They serve providers of devices that lack the function: addresses, cursors over memory
 * vectors, records of operations, queues of posted receives, shared receive contexts, and
 * accesses of peers to memory regions, including atomic ones. A provider needs none of
 * them; see provider.h for the interface that each provider implements.
 */
#ifndef _LINUX_KOFI_LIB_H
#define _LINUX_KOFI_LIB_H

#include <linux/err.h>
#include <linux/if.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/skbuff.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/uio.h>

#include <linux/kofi/freelist.h>
#include <linux/kofi/provider.h>
#include <linux/kofi/vec.h>

/* ------------------------------------------------------ records of transmits */

struct llist_node *kofi_ep_tx_get_slow(struct kofi_ep *ep,
				       struct kofi_freelist *free, spinlock_t *lock);

/**
 * kofi_ep_tx_get - get a slot and a record for a transmit, or refuse the transmit
 * @ep: the endpoint
 * @context: context that the transmit will complete with
 * @free: free records of the endpoint
 * @lock: lock of kofi_freelist_get() for @free, which the caller does not hold
 * @node: receives the entry of the record; undefined after an error
 *
 * If a later step of the post fails, the provider frees the record by kofi_freelist_put(),
 * and returns kofi_ep_tx_refuse(). Otherwise it completes the transmit once, with
 * kofi_ep_tx_complete(), kofi_ep_tx_done() or kofi_ep_tx_report(). Without a free record
 * kofi_ep_ops.send_deferred is called first.
 *
 * Context: any; without locks that kofi_ep_ops.send_deferred takes.
 * Return: 0; -EAGAIN without a free slot or record, and the consumer's write-space
 * callback follows; -FI_ENOCQ; -ESHUTDOWN once the endpoint has been drained; without a
 * record also the errors of kofi_ep_tx_state(): -FI_EOPBADSTATE, -ENOTCONN.
 */
static __always_inline int kofi_ep_tx_get(struct kofi_ep *ep, void *context,
					  struct kofi_freelist *free,
					  spinlock_t *lock,
					  struct llist_node **node)
{
	int err = kofi_ep_tx_reserve(ep, context);

	if (err)
		return err;
	*node = kofi_freelist_get(free, lock);
	if (likely(*node))
		return 0;
	*node = kofi_ep_tx_get_slow(ep, free, lock);
	return PTR_ERR_OR_ZERO(*node);
}

/* -------------------------------------------------------------- addresses */

int kofi_info_resolve(const char *node, const char *service, u64 flags,
		      const struct fi_info *hints,
		      struct sockaddr_storage *src,
		      struct sockaddr_storage *dest);

/* An IP address of either family; all zero means none */
union kofi_ip {
	struct sockaddr		sa;
	struct sockaddr_in	in4;
	struct sockaddr_in6	in6;
};

size_t kofi_ip_len(const struct sockaddr *addr);
int kofi_ip_check(const void *addr, size_t len);
int kofi_ip_peer(const void *from, size_t len, union kofi_ip *peer);
int kofi_ip_copy(const struct sockaddr *from, void *to, size_t *len);
bool kofi_ip_any(const struct sockaddr *addr);
bool kofi_ip_same(const struct sockaddr *a, const struct sockaddr *b);

/**
 * kofi_ip_port - port number of an address
 * @addr: an IP address
 *
 * Return: pointer to the port number.
 */
static inline __be16 *kofi_ip_port(struct sockaddr *addr)
{
	/* at the same place in both families */
	BUILD_BUG_ON(offsetof(struct sockaddr_in, sin_port) !=
		     offsetof(struct sockaddr_in6, sin6_port));
	return &((struct sockaddr_in *)addr)->sin_port;
}

/**
 * struct kofi_netif - an address of an interface
 * @addr: the address, without a port number
 * @prefix: length of the network prefix in bits
 * @loopback: the interface is the loopback device
 * @ifindex: index of the interface
 * @dev: name of the interface
 */
struct kofi_netif {
	union kofi_ip	addr;
	u8		prefix;
	bool		loopback;
	int		ifindex;
	char		dev[IFNAMSIZ];
};

/**
 * struct kofi_netif_list - addresses of a network namespace
 * @ifs: the addresses
 * @n: number of addresses
 * @max: capacity of @ifs
 */
struct kofi_netif_list {
	struct kofi_netif	*ifs;
	size_t			n;
	size_t			max;
};

int kofi_netif_collect(struct net *net, bool loopback,
		       struct kofi_netif_list *l);
char *kofi_netif_network(const struct kofi_netif *i);
int kofi_netif_find(const struct kofi_netif_list *l, const struct sockaddr *addr,
		    const char *dev);
int kofi_netif_route(struct net *net, const struct sockaddr *dest, u8 proto,
		     struct kofi_netif *out);

/* --------------------------------------------------------- address vectors */

/**
 * struct kofi_av_known - cached result of kofi_av_recall()
 * @changes: kofi_av.changes at the time of the look-up
 * @source: address that the look-up found
 */
struct kofi_av_known {
	unsigned long	changes;
	fi_addr_t	source;
};

int kofi_av_get(struct kofi_av *av, fi_addr_t fi_addr, union kofi_ip *addr);
fi_addr_t kofi_av_source(struct kofi_av *av, const struct sockaddr *addr);
fi_addr_t kofi_av_recall(struct kofi_av *av, const struct sockaddr *addr,
			 struct kofi_av_known *known);
fi_addr_t kofi_av_id(struct kofi_av *av, fi_addr_t fi_addr);

/**
 * kofi_ep_unknown - test whether completions report the address of a sender
 * @ep: the endpoint, of a type that has an address vector
 * @source: fi_addr_t of the sender in completions
 *
 * Return: true if the sender is not in the vector, and the endpoint has FI_SOURCE_ERR.
 */
static inline bool kofi_ep_unknown(const struct kofi_ep *ep, fi_addr_t source)
{
	return source == FI_ADDR_NOTAVAIL && ep->info->caps & FI_SOURCE_ERR;
}

/* ------------------------------------------------------- module parameters */

/**
 * struct kofi_param - a number and its range
 * @value: variable of a module parameter
 * @min: smallest value
 * @max: largest value
 */
struct kofi_param {
	unsigned int	*value;
	unsigned int	min;
	unsigned int	max;
};

extern const struct kernel_param_ops kofi_param_ops;

/**
 * KOFI_PARAM - define a module parameter that is a number with a range
 * @name: name of the parameter
 * @prefix: prefix of the module: prefix_name is the variable, prefix_name_range its
 *	struct kofi_param
 * @init: default value
 * @least: smallest value
 * @most: largest value
 * @perm: mode in sysfs
 * @text: description, without range and default
 *
 * Other values are refused with a line in the log.
 */
#define KOFI_PARAM(name, prefix, init, least, most, perm, text)		\
	unsigned int prefix##_##name = init;				\
	static struct kofi_param prefix##_##name##_range = {		\
		&prefix##_##name, least, most				\
	};								\
	module_param_cb(name, &kofi_param_ops, &prefix##_##name##_range, perm); \
	MODULE_INFO(parm, #name ":" text " (" #least " to " #most ", default " #init ")")

int kofi_param_store(const struct kofi_param *range, unsigned int *to,
		     const void *val);

/* -------------------------------------------------------------- work queues */

struct workqueue_struct *kofi_wq_alloc(const char *name);

/* ----------------------------------------------------- options of endpoints */

/**
 * struct kofi_ep_limits - largest values of options that are limits
 * @size: operations, of FI_OPT_TX_SIZE and FI_OPT_RX_SIZE
 * @msg: bytes, of FI_OPT_MAX_MSG_SIZE
 * @inject: bytes, of FI_OPT_INJECT_MSG_SIZE
 */
struct kofi_ep_limits {
	size_t	size;
	size_t	msg;
	size_t	inject;
};

int kofi_ep_set_limit(struct kofi_ep *ep, int name, const void *val, size_t len,
		      const struct kofi_ep_limits *most);
int kofi_ep_set_size(struct kofi_ep *ep, size_t *to, const void *val,
		     size_t len, size_t least, size_t most);
int kofi_opt_get(const void *from, size_t size, void *val, size_t *len);
int kofi_opt_get_size(size_t value, void *val, size_t *len);
int kofi_opt_set_size(size_t *value, const void *val, size_t len);

/* --------------------------------------------------------- traffic classes */

int kofi_tclass_dscp(u32 tclass);
u32 kofi_info_tclass(const struct fi_info *info);

/* ------------------------------------------------------------ receive queue */

/**
 * struct kofi_rxop - a posted receive, or the part of a multi-receive that one message uses
 * @age: entry in the queue's list of posted receives; not used by plain ones
 * @same: entry in the queue's list of receives with equal hashes of their contexts
 * @tag: tagged receive: the tag
 * @ignore: tagged receive: bits of the tag that need not match
 * @buf: multi-receive and its parts: address of the first byte, NULL for memory
 *	without an address
 * @used: multi-receive: bytes assigned to messages
 * @node: entry in one of the queue's lists for matching. The members from here on are
 *	used by each receive and share as few cache lines as possible
 * @free: entry in the queue's list of free records; shares memory with @node
 * @seq: number of the post; a lower number is older
 * @context: context of the completion
 * @flags: flags of the post
 * @src: peer of the messages that match, or FI_ADDR_UNSPEC
 * @ep: endpoint of the message that has the receive
 * @multi: part of a multi-receive: the multi-receive
 * @parts: multi-receive: number of messages that are being placed
 * @tagged: tagged receive
 * @gone: multi-receive: no longer posted; its last part completes it
 * @canceled: matches no further message: a multi-receive with unused memory, or
 *	a receive that was assigned to a message which has not fetched it
 * @cur: destination of the bytes; has room for the segments of the endpoint's
 *	iov_limit, or for one segment in a part
 */
struct kofi_rxop {
	struct list_head	age;
	struct list_head	same;
	u64			tag;
	u64			ignore;
	void			*buf;
	size_t			used;
	/* a cache line, on 64-bit machines */
	union {
		struct list_head	node;
		struct llist_node	free;
	};
	u64			seq;
	void			*context;
	u64			flags;
	fi_addr_t		src;
	struct kofi_ep		*ep;
	struct kofi_rxop	*multi;
	unsigned int		parts;
	bool			tagged;
	bool			gone;
	bool			canceled;
	struct kofi_cursor	cur;
};

/* Size of a part of a multi-receive */
#define KOFI_RXOP_PART		(offsetof(struct kofi_rxop, cur.bv) + \
				 KOFI_CURSOR_SEG)

/**
 * struct kofi_rxmsg - an incoming message that looks for a receive
 * @node: entry in the queue's list of messages that wait, which FI_PEEK searches
 * @cq_wait: waiter for a slot of the completion queue, for a part of a multi-receive
 * @wake: called when kofi_rxq_match() may succeed, as kofi_cq_wait.wake
 * @ep: endpoint that received the message
 * @src: sender, FI_ADDR_NOTAVAIL if unknown
 * @from: address of the sender, for an endpoint with FI_SOURCE_ERR; otherwise NULL. The
 *	provider sets it once by kofi_rxmsg_from()
 * @len: length in bytes
 * @tagged: the message has a tag
 * @tag: the tag
 * @data: remote CQ data of the peer
 * @flags: FI_REMOTE_CQ_DATA if @data is valid
 * @op: receive that was assigned to the message while it waited
 * @part: part of a multi-receive, a struct kofi_rxop of KOFI_RXOP_PART bytes
 * @claim: context of the FI_PEEK with FI_CLAIM that reserved the message
 * @claimed: the message is reserved for @claim
 * @discard: discard the message
 * @confirmed: the sender waits for a confirmation of the receive
 * @expired: the message is discarded because it waited for too long
 * @expires: time when the message expires, in jiffies
 * @slot: the message waits for a slot of the completion queue, not for a receive
 *
 * A stream has one record and stalls while its message waits; or several, if it can
 * store the payload of waiting messages. The number of records bounds the number of such
 * messages.
 * kofi_rxmsg_init() sets a record up. Before kofi_rxq_match() is called for a new
 * message, the provider sets @src, @len, @tagged, @tag, @data, @flags and @confirmed.
 * All other members belong to the queue, under its lock.
 */
struct kofi_rxmsg {
	struct list_head	node;
	struct kofi_cq_wait	cq_wait;
	void			(*wake)(struct kofi_rxmsg *rxmsg);
	struct kofi_ep		*ep;
	fi_addr_t		src;
	const struct sockaddr	*from;
	size_t			len;
	bool			tagged;
	u64			tag;
	u64			data;
	u64			flags;
	struct kofi_rxop	*op;
	void			*claim;
	bool			claimed;
	bool			discard;
	bool			confirmed;
	bool			expired;
	bool			slot;
	unsigned long		expires;
	u64			part[DIV_ROUND_UP(KOFI_RXOP_PART, sizeof(u64))];
};

/**
 * struct kofi_rxq - posted receives of an endpoint or a shared receive context
 * @lock: irqsave; locks of completion queues nest inside. Adding to @free needs no
 *	lock. Each post and each message writes the members from here to @free
 * @closed: posts are refused; read without @lock by a post that has found no record
 * @ep: endpoint or context of the receives, which reports them
 * @plain: untagged receives for any sender that wait for a message, oldest first, as on
 *	all following lists
 * @seq: number of the next post; read without @lock by kofi_rxq_posts()
 * @free: free records
 * @posted: all other receives that wait for a message
 * @wild: tagged receives that ignore bits of the tag; also on @posted
 * @exact: all other receives on @posted: lists by tag and sender, hashed
 * @contexts: all receives on @posted and @plain by context, hashed; NULL for a short
 *	queue
 * @bits: binary logarithm of the number of lists
 * @directed: receives may be for one sender
 * @waiting: struct kofi_rxmsg: messages without a receive, oldest first
 * @given: receives assigned to messages that have waited and have not fetched them,
 *	except parts of multi-receives
 * @starved: messages on @waiting that match a multi-receive but lack a slot
 * @ops: memory of all records, each with room for the endpoint's iov_limit
 * @expire: work item that discards expired messages
 */
struct kofi_rxq {
	spinlock_t		lock;	/* the members that follow */
	bool			closed;
	struct kofi_ep		*ep;
	struct list_head	plain;
	u64			seq;
	struct kofi_freelist	free;
	struct list_head	posted;
	struct list_head	wild;
	struct list_head	*exact;
	struct list_head	*contexts;
	unsigned int		bits;
	bool			directed;
	struct list_head	waiting;
	struct list_head	given;
	unsigned int		starved;
	void			*ops;
	struct timer_list	expire;
};

/**
 * kofi_rxq_posts - number of posts to a queue
 * @q: the queue
 *
 * If the number differs from an earlier one, the consumer has posted in between.
 *
 * Context: any; no locks are needed.
 * Return: the number of receives posted since the queue was set up.
 */
static inline u64 kofi_rxq_posts(const struct kofi_rxq *q)
{
	return READ_ONCE(q->seq);
}

/**
 * kofi_rxq_empty - test for posted receives
 * @q: the queue
 *
 * Context: any; without @q->lock the result is a hint.
 * Return: true if no receive waits for a message.
 */
static inline bool kofi_rxq_empty(const struct kofi_rxq *q)
{
	return list_empty(&q->plain) && list_empty(&q->posted);
}

int kofi_rxq_init(struct kofi_rxq *q, struct kofi_ep *ep, size_t size);
void kofi_rxq_exit(struct kofi_rxq *q);
int kofi_rxq_post(struct kofi_rxq *q, const struct fi_msg *msg, u64 flags);
int kofi_rxq_tpost(struct kofi_rxq *q, const struct fi_msg_tagged *msg,
		   u64 flags);
void kofi_rxmsg_init(struct kofi_rxmsg *rxmsg, struct kofi_ep *ep,
		     void (*wake)(struct kofi_rxmsg *rxmsg));

/**
 * kofi_rxmsg_from - set the location of the sender's address
 * @rxmsg: a record that has been set up
 * @addr: the address, valid while a message uses the record
 *
 * For endpoints that report the addresses of unknown senders.
 */
static inline void kofi_rxmsg_from(struct kofi_rxmsg *rxmsg,
				   const struct sockaddr *addr)
{
	if (rxmsg->ep->info->caps & FI_SOURCE_ERR)
		rxmsg->from = addr;
}

int kofi_rxq_match(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg,
		   struct kofi_rxop **op);
bool kofi_rxq_hand(struct kofi_rxq *q, struct kofi_rxmsg *from,
		   struct kofi_rxmsg *to);
void kofi_rxq_rename(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg,
		     fi_addr_t src);
int kofi_rxq_confirm(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg);
void kofi_rxq_forget(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg);
bool kofi_rxq_unclaimed(struct kofi_rxq *q, const struct kofi_rxmsg *rxmsg);
bool kofi_rxq_discard(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg);
struct kofi_rxop *kofi_rxmsg_adopt(struct kofi_rxmsg *to, struct kofi_rxop *op);
void kofi_rxq_received(struct kofi_rxq *q, const struct kofi_rxmsg *rxmsg,
		       struct kofi_rxop *op);
void kofi_rxq_done(struct kofi_rxq *q, struct kofi_rxop *op,
		   struct kofi_wc *wc);
int kofi_rxq_cancel(struct kofi_rxq *q, void *context);
int kofi_ep_rx_cancel(struct kofi_ep *ep, struct kofi_rxq *q, void *context);
void kofi_rxq_flush(struct kofi_rxq *q);

/* ------------------------------------------------ shared receive contexts */

/**
 * struct kofi_srx - the core's shared receive context
 * @base: base that the consumer's handle is part of
 * @rxq: queue of posted receives
 */
struct kofi_srx {
	struct kofi_ep		base;
	struct kofi_rxq		rxq;
};

int kofi_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr,
		  struct fid_ep **srx, void *context);

/* for providers with shared receive contexts of their devices */
int kofi_srx_init(struct kofi_ep *srx, struct fid_domain *domain,
		  const struct fi_rx_attr *attr, const struct kofi_ep_ops *ops,
		  void *context);
int kofi_srx_state(struct kofi_ep *srx);

/**
 * kofi_ep_rxq - queue of receives that an endpoint uses
 * @ep: an enabled endpoint
 * @own: the endpoint's queue, which it uses without a shared receive context
 *
 * Return: the queue.
 */
static inline struct kofi_rxq *kofi_ep_rxq(const struct kofi_ep *ep,
					   struct kofi_rxq *own)
{
	return ep->srx ? &container_of(ep->srx, struct kofi_srx, base)->rxq :
			 own;
}

/* --------------------------------------------- regions of software providers */

/**
 * struct kofi_target - a segment of local memory that a peer reads or writes
 * @key: key that the peer named
 * @off: offset of the next byte in the region
 * @left: bytes from @off to the end of the segment
 * @len: length of the segment in bytes
 * @serial: number of the registration that the access was permitted for
 * @event: the region was registered with FI_RMA_EVENT
 * @context: context of the region
 * @mr: the region while a reference is held, or NULL
 * @kv: memory of the iterator of kofi_target_get(), if it has an address
 *
 * No reference is held between two steps of an access that may be far apart: each step
 * looks the key up again and detects that the region has been closed. Steps
 * that follow immediately may share a look-up: they keep the reference in
 * between, and closing the region waits for kofi_target_drop().
 */
struct kofi_target {
	u64		key;
	u64		off;
	u64		left;
	u64		len;
	u64		serial;
	bool		event;
	void		*context;
	struct kofi_mr	*mr;
	struct kvec	kv;
};

int kofi_target_init(struct kofi_target *t, struct kofi_ep *ep, u64 key,
		     u64 addr, u64 len, u64 access);
int kofi_target_copy_from_skb(struct kofi_target *t, struct kofi_ep *ep,
			      const struct kofi_skb_part *from, size_t len);
bool kofi_target_get(struct kofi_target *t, struct kofi_ep *ep,
		     struct iov_iter *iter);
void kofi_target_drop(struct kofi_target *t);
void kofi_target_used(struct kofi_target *t, size_t bytes);
void kofi_target_done(struct kofi_target *t, struct kofi_ep *ep, u64 access);
int kofi_mr_invalidate(struct kofi_ep *ep, u64 key);

/* for providers that use the regions of another provider */
int kofi_mr_show(struct kofi_mr *mr, u64 key);
void kofi_mr_hide(struct kofi_mr *mr);
int kofi_mr_layer_init(struct kofi_mr *mr, struct fid_domain *below);
void kofi_mr_layer_exit(struct kofi_mr *mr, struct fid_domain *below);
int kofi_mr_layer_open(struct kofi_mr *mr);
void kofi_mr_layer_end(struct kofi_mr *mr);
int kofi_ep_remote_to(struct fid_ep *below, struct kofi_ep *ep,
		      kofi_remote_fill fill);

/* ---------------------------------------------------------- posts of atomics */

/**
 * struct kofi_atomic_post - arguments of fi_atomicmsg() and its family
 * @call: 0 for fi_atomicmsg(), FI_FETCH_ATOMIC or FI_COMPARE_ATOMIC
 * @msg: operation, operands, the peer's memory, context
 * @compare: values to compare with, for FI_COMPARE_ATOMIC
 * @compare_count: number of segments of @compare
 * @result: memory for old values, unless @call is 0
 * @result_count: number of segments of @result
 */
struct kofi_atomic_post {
	u64				call;
	const struct fi_msg_atomic	*msg;
	const struct fi_ioc		*compare;
	size_t				compare_count;
	const struct fi_ioc		*result;
	size_t				result_count;
};

/**
 * KOFI_DEFINE_ATOMIC_OPS - define struct fi_ops_atomic with one function for all posts
 * @name: name of the table
 * @post: accepts an operation; has the arguments struct fid_ep \*ep,
 *	const struct kofi_atomic_post \*post and u64 flags, and returns the result of the call
 * @write_flags: flags of fi_atomicmsg(); others are refused with -FI_EBADFLAGS
 * @fetch_flags: flags of fi_fetch_atomicmsg() and fi_compare_atomicmsg()
 *
 * The table is a global symbol. @post checks all other arguments: nothing of
 * struct kofi_atomic_post has been checked, and it is valid during the call only.
 * Descriptors are not passed, since no provider needs them.
 */
#define KOFI_DEFINE_ATOMIC_OPS(name, post, write_flags, fetch_flags)		\
static ssize_t name##_post(struct fid_ep *ep, const struct kofi_atomic_post *args, \
			   u64 flags)						\
{										\
	if (flags & ~(args->call ? (fetch_flags) : (write_flags)))		\
		return -FI_EBADFLAGS;						\
	return post(ep, args, flags);						\
}										\
										\
static ssize_t name##_write(struct fid_ep *ep, const struct fi_msg_atomic *msg,	\
			    u64 flags)						\
{										\
	const struct kofi_atomic_post args = { .msg = msg };			\
										\
	return name##_post(ep, &args, flags);					\
}										\
										\
static ssize_t name##_fetch(struct fid_ep *ep, const struct fi_msg_atomic *msg,	\
			    struct fi_ioc *result, void **result_desc,		\
			    size_t result_count, u64 flags)			\
{										\
	const struct kofi_atomic_post args = {					\
		.call = FI_FETCH_ATOMIC, .msg = msg,				\
		.result = result, .result_count = result_count,			\
	};									\
										\
	return name##_post(ep, &args, flags);					\
}										\
										\
static ssize_t name##_compare(struct fid_ep *ep, const struct fi_msg_atomic *msg, \
			      const struct fi_ioc *compare, void **compare_desc, \
			      size_t compare_count, struct fi_ioc *result,	\
			      void **result_desc, size_t result_count, u64 flags) \
{										\
	const struct kofi_atomic_post args = {					\
		.call = FI_COMPARE_ATOMIC, .msg = msg,				\
		.compare = compare, .compare_count = compare_count,		\
		.result = result, .result_count = result_count,			\
	};									\
										\
	return name##_post(ep, &args, flags);					\
}										\
										\
const struct fi_ops_atomic name = {						\
	.size		= sizeof(struct fi_ops_atomic),				\
	.writemsg	= name##_write,						\
	.readwritemsg	= name##_fetch,						\
	.compwritemsg	= name##_compare,					\
}

/* ------------------------------------------------------ atomics in software */

/**
 * struct kofi_atomic - an atomic operation on local memory
 * @call: 0 for fi_atomic(), FI_FETCH_ATOMIC or FI_COMPARE_ATOMIC
 * @datatype: type of an element
 * @op: operation on each element
 * @operands: one operand per element, or NULL if the operation has none
 * @compare: one value per element to compare with, or NULL if the operation has none
 * @results: destination of the old values, perhaps @operands; NULL to discard them
 *
 * The operands, values and results need not be aligned.
 */
struct kofi_atomic {
	u64			call;
	enum fi_datatype	datatype;
	enum fi_op		op;
	const void		*operands;
	const void		*compare;
	void			*results;
};

int kofi_target_atomic_init(struct kofi_target *t, struct kofi_ep *ep,
			    const struct kofi_atomic *a, u64 key, u64 addr,
			    u64 count);
void kofi_target_atomic(struct kofi_target *t, struct kofi_atomic *a);

#endif /* _LINUX_KOFI_LIB_H */

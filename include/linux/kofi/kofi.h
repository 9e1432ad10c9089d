/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Additions to libfabric for kernel clients: discovery in a network
 * namespace, completions by callback in a chosen context, draining, and the
 * NUMA node of a domain's device. Including this header brings the whole API.
 */
#ifndef _LINUX_KOFI_KOFI_H
#define _LINUX_KOFI_KOFI_H

#include <linux/gfp_types.h>

#include <linux/kofi/fi_atomic.h>
#include <linux/kofi/fi_cm.h>
#include <linux/kofi/fi_endpoint.h>
#include <linux/kofi/fi_eq.h>
#include <linux/kofi/fi_rma.h>
#include <linux/kofi/fi_tagged.h>

struct device;

int kofi_getinfo(struct net *net, u32 version, const char *node,
		 const char *service, u64 flags, const struct fi_info *hints,
		 struct fi_info **info, gfp_t gfp);

/**
 * struct kofi_domain_id - a domain that can be opened
 * @prov_name: name of the provider, for hints
 * @name: name of the domain, for hints
 * @net: network namespace of the domain; NULL: it can be opened in any
 *
 * Discovery reports addresses and their capabilities: a new RDMA device has no
 * address yet.
 */
struct kofi_domain_id {
	const char	*prov_name;
	const char	*name;
	struct net	*net;
};

/**
 * struct kofi_client - notifications of domains that appear and disappear
 * @name: name of the client, for log and statistics
 * @net: notify of domains that can be opened in this network namespace, to which the
 *	client holds a reference; NULL: of all domains
 * @add: a domain can be opened; @id is valid during the call
 * @remove: a domain is about to disappear, or has disappeared. The client may close its
 *	objects of the domain in the callback, for which an RDMA device waits; otherwise
 *	they fail as after any loss of a device
 * @change: discovery in @net reports other addresses of a domain than at the
 *	last callback: one was added or removed, or a link is up or down. May be
 *	NULL, and must be NULL without @net
 * @node: entry in the core's list of clients
 * @seen: result of the last discovery, owned by the core
 *
 * The callbacks run in process context, never concurrently, and may sleep, discover,
 * open and close. Discovery in a callback loads no module of a provider, since the
 * module would wait for the callback.
 */
struct kofi_client {
	const char		*name;
	struct net		*net;
	void			(*add)(struct kofi_client *client,
				       const struct kofi_domain_id *id);
	void			(*remove)(struct kofi_client *client,
					  const struct kofi_domain_id *id);
	void			(*change)(struct kofi_client *client,
					  const struct kofi_domain_id *id);
	struct list_head	node;
	struct fi_info		*seen;
};

int kofi_client_register(struct kofi_client *client);
void kofi_client_unregister(struct kofi_client *client);

struct kofi_wc;

/**
 * struct kofi_cqe - context of an operation in done mode
 * @done: called once when the operation has completed
 *
 * It is embedded in the consumer's request and must live until @done has been
 * called. @done runs in the context the queue was opened with, never concurrently
 * for one queue. It may post, cancel and read counters; it must not sleep in the
 * DIRECT and SOFTIRQ contexts. Closing or draining an object that uses the queue
 * returns -EDEADLK there.
 */
struct kofi_cqe {
	void	(*done)(struct fid_cq *cq, const struct kofi_wc *wc);
};

/**
 * struct kofi_wc - a completion
 * @cqe: done mode: the operation's kofi_cqe
 * @op_context: read mode: the operation's context
 * @err: 0, or a positive error code
 * @prov_errno: code of the provider for @err
 * @flags: FI_SEND, FI_RECV, FI_MSG, ..., as libfabric defines them
 * @len: bytes received; for transmits 0
 * @olen: bytes that did not fit, with FI_ETRUNC
 * @buf: address of the message in a multi-receive buffer, otherwise NULL
 * @mr_context: instead of @buf, with FI_REMOTE_READ or FI_REMOTE_WRITE: context of the
 *	region, of the first one if the peer has named several; NULL where the
 *	provider does not know
 * @data: the peer's remote CQ data if FI_REMOTE_CQ_DATA is in @flags
 * @tag: tag of a tagged receive
 * @mr_key: instead of @tag, with FI_REMOTE_READ or FI_REMOTE_WRITE: key of the region,
 *	or 0
 * @src: sender, if the endpoint has FI_SOURCE
 * @inv_key: key the peer invalidated if KOFI_REMOTE_INV is in @flags
 * @from: instead of @inv_key, with FI_EADDRNOTAVAIL in @err, for an endpoint with
 *	FI_SOURCE_ERR: the sender's address, in the addr_format of the domain. It is valid
 *	until the callback has returned.
 */
struct kofi_wc {
	union {
		struct kofi_cqe	*cqe;
		void		*op_context;
	};
	int		err;
	int		prov_errno;
	u64		flags;
	size_t		len;
	size_t		olen;
	union {
		void	*buf;
		void	*mr_context;
	};
	u64		data;
	union {
		u64	tag;
		u64	mr_key;
	};
	fi_addr_t	src;
	union {
		u64		inv_key;
		const void	*from;
	};
};

/**
 * enum kofi_poll - context in which a completion queue calls its consumer
 * @KOFI_POLL_DIRECT: inside kofi_cq_poll(), called by the consumer
 * @KOFI_POLL_SOFTIRQ: in softirq context
 * @KOFI_POLL_WORKQUEUE: in a work item that may sleep; its queue is
 *	WQ_MEM_RECLAIM
 */
enum kofi_poll {
	KOFI_POLL_DIRECT,
	KOFI_POLL_SOFTIRQ,
	KOFI_POLL_WORKQUEUE,
};

/**
 * struct kofi_cq_attr - kernel side of a completion queue
 * @flags: FI_AFFINITY: @cpu is valid
 * @poll: context of callbacks
 * @cpu: CPU that runs them; without FI_AFFINITY the one the completion
 *	arrives on
 * @done: true: each operation's context is a struct kofi_cqe and nothing is
 *	read; false: completions wait for fi_cq_read()
 * @notify: read mode: called when completions have become available; one
 *	shot, armed again by a read that returns -EAGAIN, and called at once if
 *	a completion arrived before that. Not with %KOFI_POLL_DIRECT. May be
 *	NULL.
 */
struct kofi_cq_attr {
	u64		flags;
	enum kofi_poll	poll;
	int		cpu;
	bool		done;
	void		(*notify)(struct fid_cq *cq, void *context);
};

int kofi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		 const struct kofi_cq_attr *kattr, struct fid_cq **cq,
		 void *context);
int kofi_cq_poll(struct fid_cq *cq, int budget);

int kofi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
		 void (*handler)(struct fid_eq *eq, void *context),
		 struct fid_eq **eq, void *context);

int kofi_ep_drain(struct fid_ep *ep);
int kofi_ep_abort(struct fid_ep *ep);
int kofi_ep_probe(struct fid_ep *ep);
int kofi_ep_cancel_connect(struct fid_ep *ep);
int kofi_ep_write_space(struct fid_ep *ep,
			void (*fn)(struct fid_ep *ep, void *context));

int kofi_ep_set_source(struct fid_ep *ep, fi_addr_t source);
int kofi_ep_remote_cqe(struct fid_ep *ep, struct kofi_cqe *cqe);

/* ----------------------------------------------------------- memory regions */

/*
 * fi_sendmsg() flag: the message invalidates fi_msg.inv_key, a key of the peer.
 * Completion flag: kofi_wc.inv_key has been invalidated.
 */
#define KOFI_REMOTE_INV		BIT_ULL(61)

u64 kofi_mr_base(const struct fid_mr *mr);
struct fid_mr *kofi_mr_get(struct fid_ep *ep);
int kofi_mr_map(struct fid_mr *mr, const struct fi_msg *vec, u64 access,
		u64 flags);
int kofi_mr_unmap(struct fid_mr *mr, struct kofi_cqe *cqe);
void kofi_mr_put(struct fid_mr *mr);

/* fi_setopt() of an endpoint, before it is enabled; size_t each */
#define KOFI_OPT_MR_POOL	0x10001	/* most regions of kofi_mr_get() at a time */
#define KOFI_OPT_MR_SEGS	0x10002	/* most segments of a region */
#define KOFI_OPT_UNEXPECTED_TIMEOUT 0x10003	/* ms a message waits for a receive; 0: any time */

/*
 * Options of kofi_verbs: attributes of a connection, as rdma_connect() and the device
 * define them; size_t each, before the endpoint is enabled. On iWARP, only the last two.
 */
#define KOFI_OPT_RETRY_COUNT	0x10004	/* repetitions of an unanswered packet; at most 7 */
#define KOFI_OPT_RNR_RETRY	0x10005	/* repetitions by the peer without a receive here */
#define KOFI_OPT_RNR_TIMER	0x10006	/* InfiniBand's code of the delay before each; at most 31 */
#define KOFI_OPT_ACK_TIMEOUT	0x10007	/* time for an answer, 4.096 us << n; 0: the path's */
#define KOFI_OPT_READ_DEPTH	0x10008	/* most outstanding reads and atomics of this side */
#define KOFI_OPT_READ_RESOURCES	0x10009	/* most outstanding reads and atomics of the peer */

#define KOFI_RNR_RETRY_FOREVER	7

/*
 * Options of active and passive endpoints of type FI_EP_MSG of kofi_sock: TLS. Set struct
 * kofi_tls before the endpoint connects or listens. The identity is a string.
 */
#define KOFI_OPT_TLS		0x1000a	/* struct kofi_tls */
#define KOFI_OPT_TLS_PEER	0x1000b	/* char[], read only: identity of the authenticated peer */

/* Capability of an fi_info: connections are encrypted, or they do not come about */
#define KOFI_TLS		BIT_ULL(62)

#define KOFI_TLS_NAME_MAX	128	/* bytes of an identity with its NUL */

/* Authentication of both peers of a connection */
enum kofi_tls_mode {
	KOFI_TLS_OFF,		/* connections are not encrypted */
	KOFI_TLS_PSK,		/* both peers have the same key of type "psk" */
};

/**
 * struct kofi_tls - value of KOFI_OPT_TLS
 * @mode: enum kofi_tls_mode
 * @key: serial number of the only key that is accepted; 0 for a key of @keyring, at a
 *	passive endpoint
 * @keyring: serial number of a keyring, 0 for none; tlshd may use its keys. Without @key
 *	the key of a peer must be linked in it
 * @peer: identity that the peer must have, the description of its key; if empty, each
 *	accepted key may have any description
 */
struct kofi_tls {
	u32		mode;
	s32		key;
	s32		keyring;
	char		peer[KOFI_TLS_NAME_MAX];
};

/*
 * fi_eq_read() event of a reliable datagram endpoint with
 * KOFI_OPT_UNEXPECTED_TIMEOUT: a message has waited for that time.
 */
#define KOFI_UNEXPECTED		(FI_PROV_SPECIFIC | 1)

/**
 * struct kofi_eq_unexpected - KOFI_UNEXPECTED
 * @entry: the endpoint, and in data the sender's fi_addr_t or FI_ADDR_NOTAVAIL
 * @flags: FI_TAGGED or FI_MSG, and FI_DISCARD if the message is discarded;
 *	otherwise its connection is being terminated
 * @tag: tag of the message
 * @len: length of the message in bytes
 */
struct kofi_eq_unexpected {
	struct fi_eq_entry	entry;
	u64			flags;
	u64			tag;
	u64			len;
};

struct device *kofi_domain_device(struct fid_domain *domain);
struct fid_fabric *kofi_domain_fabric(struct fid_domain *domain);
int kofi_domain_node(struct fid_domain *domain);
const struct cpumask *kofi_domain_vector_cpus(struct fid_domain *domain,
					      int vector);

/*
 * Names of fi_set_val() and fi_get_val(). kofi_sock supports all of them, kofi_verbs the
 * time-outs of connects and of dead peers and the idle time before a probe. Times are
 * unsigned int milliseconds; set before the endpoint connects or listens.
 */
#define KOFI_VAL_CONNECT_TIMEOUT	(FI_PROV_SPECIFIC | 1)	/* TCP and handshake, active side */
#define KOFI_VAL_HANDSHAKE_TIMEOUT	(FI_PROV_SPECIFIC | 2)	/* passive side, per request */
#define KOFI_VAL_SILENCE_TIMEOUT	(FI_PROV_SPECIFIC | 3)	/* dead peer */
#define KOFI_VAL_KEEPALIVE_IDLE		(FI_PROV_SPECIFIC | 4)	/* 0: off */
#define KOFI_VAL_RECLAIM_SAFE		(FI_PROV_SPECIFIC | 5)	/* 1: on */
#define KOFI_VAL_CPU			(FI_PROV_SPECIFIC | 6)	/* int, -1: the flow's */
#define KOFI_VAL_KEEPALIVE_INTVL	(FI_PROV_SPECIFIC | 7)	/* between probes; seconds */
#define KOFI_VAL_KEEPALIVE_CNT		(FI_PROV_SPECIFIC | 8)	/* probes */
#define KOFI_VAL_ZEROCOPY_MIN		(FI_PROV_SPECIFIC | 9)	/* bytes; 0: never */
#define KOFI_VAL_FRAME_TIMEOUT		(FI_PROV_SPECIFIC | 10)	/* incomplete message; 0: off */

#endif /* _LINUX_KOFI_KOFI_H */

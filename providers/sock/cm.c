// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections: sockets, the CM exchange of both sides, passive endpoints.
 *
 * Active side. fi_connect() starts TCP and returns; the socket's callbacks
 * queue the endpoint's work item, which sends the request and reads the
 * answer. One timer, the endpoint's watch, bounds all of it.
 *
 * Passive side. The listener's work item accepts connections and makes a
 * struct ksk_req of each. It reads the request, under a timer of its own, and
 * then waits, silent, for the consumer: an endpoint opened with it takes the
 * socket over, a reject answers and closes. ksk_reqs lists all requests that
 * are the consumer's to take; a handle is only looked up there, never
 * followed, because it may be stale. Who takes a request off its list, under
 * ksk_req_mutex, owns it. Requests nobody took die with their passive
 * endpoint.
 *
 * Both bounds matter: handshakes under way (max_pending, the surplus is closed
 * and counted), and requests the consumer has not looked at (the backlog, then
 * we stop accepting and TCP's own backlog fills).
 *
 * CM messages are sent in one piece, which stock peers need, and read in any
 * segmentation, never a byte too far: frames may be right behind.
 */
#include <linux/in6.h>
#include <linux/pkt_sched.h>
#include <linux/slab.h>
#include <kunit/visibility.h>
#include <net/inet_sock.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#include "sock.h"
#include "sock_trace.h"

#define KSK_BACKLOG	128	/* unless FI_BACKLOG says otherwise */

/* --------------------------------------------------------------- messages */

VISIBLE_IF_KUNIT
void ksk_cm_format(struct ksk_cm *cm, u8 type, u32 ext, const void *data,
		   size_t len)
{
	cm->hdr = (struct ksk_cm_hdr) {
		.version = KSK_PROTO_VERSION,
		.type = type,
		.data_len = cpu_to_be16(len),
		.magic = cpu_to_be32(ext ? KSK_EXT_MAGIC : 0),
		.ext = cpu_to_be32(ext),
		.probe = type == KSK_CM_REJECT ? 0 : 1,
	};
	if (len)
		memcpy(cm->buf + sizeof(cm->hdr), data, len);
	cm->len = sizeof(cm->hdr) + len;
	cm->off = 0;
}
EXPORT_SYMBOL_IF_KUNIT(ksk_cm_format);

/*
 * How many bytes a message that is being received still lacks. Returns 0, or
 * -EPROTO if what is there cannot become a message.
 */
VISIBLE_IF_KUNIT
int ksk_cm_want(const struct ksk_cm *cm, unsigned int *want)
{
	unsigned int len;

	if (cm->len >= sizeof(cm->hdr.version) &&
	    cm->hdr.version != KSK_PROTO_VERSION)
		return -EPROTO;
	if (cm->len < sizeof(cm->hdr)) {
		*want = sizeof(cm->hdr) - cm->len;
		return 0;
	}
	if (cm->hdr.type != KSK_CM_REQUEST && cm->hdr.type != KSK_CM_ACCEPT &&
	    cm->hdr.type != KSK_CM_REJECT)
		return -EPROTO;
	len = be16_to_cpu(cm->hdr.data_len);
	if (len > KSK_CM_DATA_MAX)
		return -EPROTO;
	*want = sizeof(cm->hdr) + len - cm->len;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(ksk_cm_want);

/* Words of the data phase are little-endian only if both hosts are. */
bool ksk_cm_big_endian(const struct ksk_cm *cm)
{
	return IS_ENABLED(CONFIG_CPU_BIG_ENDIAN) || cm->hdr.probe != 1;
}

/* What the sender of a message, and we, can do beyond libfabric. */
u32 ksk_cm_ext(const struct ksk_cm *cm)
{
	if (cm->hdr.magic != cpu_to_be32(KSK_EXT_MAGIC))
		return 0;
	return be32_to_cpu(cm->hdr.ext) & KSK_EXT_ALL;
}
EXPORT_SYMBOL_IF_KUNIT(ksk_cm_ext);

static int ksk_cm_actor(read_descriptor_t *desc, struct sk_buff *skb,
			unsigned int offset, size_t len)
{
	struct ksk_cm *cm = desc->arg.data;
	size_t used = 0;

	while (used < len) {
		unsigned int want;

		desc->error = ksk_cm_want(cm, &want);
		if (desc->error || !want)
			break;
		want = min_t(size_t, want, len - used);
		desc->error = skb_copy_bits(skb, offset + used,
					    cm->buf + cm->len, want);
		if (desc->error)
			break;
		cm->len += want;
		used += want;
	}
	return used;
}

/*
 * Read what has arrived of a CM message. Returns 1 when it is complete,
 * -EAGAIN for more to come, -EPROTO, or the error of a broken connection,
 * -ECONNRESET if it just ended. Locked.
 */
static int ksk_cm_read(struct sock *sk, struct ksk_cm *cm)
{
	read_descriptor_t desc = { .arg.data = cm, .count = 1 };
	unsigned int want;
	int err;

	tcp_read_sock(sk, &desc, ksk_cm_actor);
	if (desc.error)
		return desc.error;
	err = ksk_cm_want(cm, &want);
	if (err)
		return err;
	if (!want)
		return 1;
	if (sk->sk_err)
		return -sk->sk_err;
	if ((sk->sk_shutdown & RCV_SHUTDOWN) || sk->sk_state == TCP_CLOSE)
		return -ECONNRESET;
	return -EAGAIN;
}

/* Send a CM message, or the rest of it. Locked. Returns 0 when it is sent. */
static int ksk_cm_send(struct sock *sk, struct ksk_cm *cm)
{
	while (cm->off < cm->len) {
		struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
		struct kvec kv = {
			.iov_base = cm->buf + cm->off,
			.iov_len = cm->len - cm->off,
		};
		int n;

		iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &kv, 1, kv.iov_len);
		n = tcp_sendmsg_locked(sk, &msg, kv.iov_len);
		if (n <= 0)
			return n ? : -EPIPE;
		cm->off += n;
	}
	return 0;
}

/* ---------------------------------------------------------------- sockets */

/*
 * The locks of a kernel socket have classes apart from user sockets'. Classes
 * of our own would pin the module, in a kernel with lockdep, until TCP has
 * done with connections closed long ago; and those of an accepted socket, which
 * is live, cannot be changed at all.
 */
static int ksk_socket_create(struct net *net, int family,
			     struct socket **sockp)
{
	struct socket *sock;
	struct sock *sk;
	int err;

	err = sock_create_kern(net, family, SOCK_STREAM, IPPROTO_TCP, &sock);
	if (err)
		return err;
	sk = sock->sk;
	/* the namespace lives as long as the socket; before any locking */
	sk_net_refcnt_upgrade(sk);
	sk->sk_use_task_frag = false;
	ksk_socket_gfp(sk, GFP_ATOMIC);
	sock_set_reuseaddr(sk);
	*sockp = sock;
	return 0;
}

static void ksk_socket_accepted(struct socket *sock)
{
	struct sock *sk = sock->sk;

	sk->sk_use_task_frag = false;
	ksk_socket_gfp(sk, GFP_ATOMIC);
}

/*
 * The labels of libfabric as code points. Those of RFC 4594 by what it says of
 * each service class, with the names it has there; the scavenger is RFC 8622's
 * lower effort, which replaces the CS1 of RFC 4594. The priority is for queues
 * of this host: IP_TOS would derive it from bits of RFC 1349, which makes bulk
 * of the low latency class.
 */
static const struct ksk_label {
	u8	dscp;
	u8	priority;
} ksk_labels[] = {
	[FI_TC_BEST_EFFORT - FI_TC_LABEL] =	 /* standard: DF */
		{ 0, TC_PRIO_BESTEFFORT },
	[FI_TC_LOW_LATENCY - FI_TC_LABEL] =	 /* low-latency data: AF21 */
		{ 18, TC_PRIO_INTERACTIVE },
	[FI_TC_DEDICATED_ACCESS - FI_TC_LABEL] = /* virtual leased line: EF */
		{ 46, TC_PRIO_INTERACTIVE },
	[FI_TC_BULK_DATA - FI_TC_LABEL] =	 /* high-throughput data: AF11 */
		{ 10, TC_PRIO_BULK },
	[FI_TC_SCAVENGER - FI_TC_LABEL] =	 /* lower effort: LE */
		{ 1, TC_PRIO_FILLER },
	[FI_TC_NETWORK_CTRL - FI_TC_LABEL] =	 /* network control: CS6 */
		{ 48, TC_PRIO_CONTROL },
};

#define KSK_DSCP_MAX	63

static const struct ksk_label *ksk_label(u32 tclass)
{
	u32 n = tclass - FI_TC_LABEL;

	return n < ARRAY_SIZE(ksk_labels) ? &ksk_labels[n] : NULL;
}

/**
 * ksk_tclass_known - is this a traffic class
 * @tclass: tclass of an attribute
 *
 * Return: true for none, a label, or a differentiated services code point.
 */
bool ksk_tclass_known(u32 tclass)
{
	return tclass == FI_TC_UNSPEC || ksk_label(tclass) ||
	       (tclass >= FI_TC_DSCP && tclass <= FI_TC_DSCP + KSK_DSCP_MAX);
}

/* The transmit context's own class goes before that of its domain. */
static u32 ksk_info_tclass(const struct fi_info *info)
{
	return info->tx_attr->tclass ? : info->domain_attr->tclass;
}

/* Without a class, the socket is left as the system or its listener made it. */
static void ksk_socket_class(struct socket *sock, u32 tclass)
{
	const struct ksk_label *label = ksk_label(tclass);
	int dscp = label ? label->dscp : fi_tc_dscp_get(tclass);
	struct sock *sk = sock->sk;
	int tos = dscp << 2;

	if (tclass != FI_TC_BULK_DATA)
		tcp_sock_set_nodelay(sk);
	if (tclass == FI_TC_UNSPEC)
		return;
	/* the peer of an IPv6 socket may have a mapped IPv4 address */
	ip_sock_set_tos(sk, tos);
	if (sk->sk_family == AF_INET6)
		sock->ops->setsockopt(sock, SOL_IPV6, IPV6_TCLASS,
				      KERNEL_SOCKPTR(&tos), sizeof(tos));
	/* on its own: a class inherited from the listener comes without */
	sock_set_priority(sk, label ? label->priority : rt_tos2priority(tos));
}

/* What every data socket gets before it carries frames. */
static void ksk_socket_tune(struct socket *sock,
			    const struct ksk_tunables *tun,
			    const struct fi_info *info)
{
	struct sock *sk = sock->sk;
	int off = 0;

	ksk_socket_class(sock, ksk_info_tclass(info));
	if (tun->keepalive_idle) {
		tcp_sock_set_keepidle(sk, DIV_ROUND_UP(tun->keepalive_idle,
						       MSEC_PER_SEC));
		tcp_sock_set_keepintvl(sk, tun->keepalive_intvl);
		tcp_sock_set_keepcnt(sk, tun->keepalive_cnt);
		sock_set_keepalive(sk);
	} else {
		/* the listener may have handed it down */
		sock_setsockopt(sock, SOL_SOCKET, SO_KEEPALIVE,
				KERNEL_SOCKPTR(&off), sizeof(off));
	}
	if (tun->rcvbuf)
		sock_set_rcvbuf(sk, tun->rcvbuf);
	if (tun->sndbuf) {
		lock_sock(sk);
		sk->sk_userlocks |= SOCK_SNDBUF_LOCK;
		WRITE_ONCE(sk->sk_sndbuf,
			   max_t(int, tun->sndbuf * 2, SOCK_MIN_SNDBUF));
		release_sock(sk);
	}
}

/*
 * Let the socket use the emergency reserves, for packets of both directions.
 * These are the two halves of sk_set_memalloc(): the number of users is a
 * static key, whose locks are none to take inside the socket's, but the flags
 * of a connected socket change under its lock.
 */
static void ksk_socket_reserves(struct ksk_ep *ep, struct sock *sk)
{
	if (!ep->tun.reclaim_safe)
		return;
	if (!ep->reserves)
		static_branch_inc(&memalloc_socks_key);
	ep->reserves = true;
	lock_sock(sk);
	sock_set_flag(sk, SOCK_MEMALLOC);
	sk->sk_allocation |= __GFP_MEMALLOC;
	release_sock(sk);
}

/**
 * ksk_socket_abort - reset a connection
 * @sock: its socket; stays ours
 *
 * Context: process, may sleep; not locked.
 */
void ksk_socket_abort(struct socket *sock)
{
	tcp_abort(sock->sk, ECONNABORTED);
}

static int ksk_discard_actor(read_descriptor_t *desc, struct sk_buff *skb,
			     unsigned int offset, size_t len)
{
	return len;
}

/**
 * ksk_socket_shutdown - end a connection in order
 * @sock: its socket; stays ours
 *
 * What has been sent still arrives. What has been received and nobody will
 * read is thrown away: TCP makes a reset of a close with unread bytes, and
 * that would overtake what we have sent. A peer that goes on sending after
 * our FIN is reset all the same.
 *
 * Context: process, may sleep; not locked.
 */
void ksk_socket_shutdown(struct socket *sock)
{
	read_descriptor_t desc = { .count = 1 };

	kernel_sock_shutdown(sock, SHUT_RDWR);
	lock_sock(sock->sk);
	tcp_read_sock(sock->sk, &desc, ksk_discard_actor);
	release_sock(sock->sk);
}

/**
 * ksk_socket_release - close a socket for good
 * @sock: the socket, which no longer has callbacks of ours
 *
 * Context: process, may sleep; not locked.
 */
void ksk_socket_release(struct socket *sock)
{
	unsigned int noio = memalloc_noio_save();

	sock_release(sock);
	memalloc_noio_restore(noio);
}

static bool ksk_addr_any(const union ksk_addr *addr)
{
	if (addr->sa.sa_family == AF_INET6)
		return ipv6_addr_any(&addr->in6.sin6_addr);
	return addr->in4.sin_addr.s_addr == htonl(INADDR_ANY);
}

static __be16 *ksk_addr_port(union ksk_addr *addr)
{
	if (addr->sa.sa_family == AF_INET6)
		return &addr->in6.sin6_port;
	return &addr->in4.sin_port;
}

/* ------------------------------------------------------------ active side */

/**
 * ksk_cm_fail - connecting has failed
 * @ep: the endpoint
 * @err: what the consumer is told, a positive error code
 * @prov_errno: why, the same
 * @data: private data of a reject
 * @len: its length
 *
 * Context: locked, process.
 */
void ksk_cm_fail(struct ksk_ep *ep, int err, int prov_errno,
		 const void *data, size_t len)
{
	trace_kofi_sock_cm(ep->base.obj.id, "failed", prov_errno);
	kofi_ep_connect_failed(&ep->base, err, prov_errno, data, len);
	ksk_ep_abort(ep, err);
}

/* TCP has connected: send the request. */
static void ksk_cm_tcp_connected(struct ksk_ep *ep)
{
	struct sock *sk = ep->sock->sk;
	int err;

	switch (sk->sk_state) {
	case TCP_SYN_SENT:
	case TCP_SYN_RECV:
		return;
	case TCP_ESTABLISHED:
		break;
	default:
		err = sk->sk_err ? : ECONNREFUSED;
		ksk_cm_fail(ep, err, err, NULL, 0);
		return;
	}

	err = ksk_cm_send(sk, &ep->cm);
	if (err == -EAGAIN) {
		/* out of memory; the buffer of a new socket is empty */
		mod_timer(&ep->retry, jiffies + msecs_to_jiffies(5));
		return;
	}
	if (err) {
		ksk_cm_fail(ep, -err, -err, NULL, 0);
		return;
	}
	trace_kofi_sock_cm(ep->base.obj.id, "requested", 0);
	ep->phase = KSK_EP_REQUESTING;
	ep->cm.len = 0;
}

/* The request is out: read the answer. */
static void ksk_cm_answered(struct ksk_ep *ep)
{
	struct ksk_cm *cm = &ep->cm;
	const void *data = cm->buf + sizeof(cm->hdr);
	int err;

	err = ksk_cm_read(ep->sock->sk, cm);
	if (err == -EAGAIN)
		return;
	if (err == -EPROTO || (err == 1 && cm->hdr.type == KSK_CM_REQUEST)) {
		ksk_stat_inc(&ep->stats.violations);
		trace_kofi_sock_violation(ep, "bad answer", cm->buf, cm->len);
		ksk_cm_fail(ep, EIO, EPROTO, NULL, 0);
	} else if (err < 0) {
		/* the listener has gone, or thrown us out */
		ksk_cm_fail(ep, err == -ECONNRESET ? ECONNREFUSED : -err,
			    -err, NULL, 0);
	} else if (cm->hdr.type == KSK_CM_REJECT) {
		ksk_cm_fail(ep, ECONNREFUSED, ECONNREFUSED, data,
			    ksk_cm_data_len(cm));
	} else {
		ep->be = ksk_cm_big_endian(cm);
		ep->ext = ksk_cm_ext(cm);
		ksk_ep_established(ep, data, ksk_cm_data_len(cm));
	}
}

/**
 * ksk_cm_work - go on connecting
 * @ep: the endpoint
 *
 * Context: locked, process.
 */
void ksk_cm_work(struct ksk_ep *ep)
{
	if (ep->phase == KSK_EP_CONNECTING)
		ksk_cm_tcp_connected(ep);
	if (ep->phase == KSK_EP_REQUESTING && !READ_ONCE(ep->dead))
		ksk_cm_answered(ep);
}

static int ksk_cm_bind(struct socket *sock, union ksk_addr *src)
{
	if (!*ksk_addr_port(src)) {
		if (ksk_addr_any(src))
			return 0;
		/* the port is found when the peer is known */
		inet_set_bit(BIND_ADDRESS_NO_PORT, sock->sk);
	}
	return kernel_bind(sock, &src->sa, ksk_addr_len(&src->sa));
}

/* fi_connect() */
static int ksk_cm_connect(struct fid_ep *fid, const void *addr,
			  const void *param, size_t paramlen)
{
	struct ksk_ep *ep = ksk_ep(fid);
	const struct sockaddr *dest = addr ? : ep->base.info->dest_addr;
	union ksk_addr to;
	struct socket *sock;
	unsigned int noio;
	int err;

	if (!dest || !ksk_addr_len(dest) || paramlen > KSK_CM_DATA_MAX)
		return -EINVAL;
	if (ep->src.sa.sa_family && ep->src.sa.sa_family != dest->sa_family)
		return -EINVAL;
	memcpy(&to, dest, ksk_addr_len(dest));

	mutex_lock(&ep->cm_mutex);
	noio = ksk_memalloc_save(ep);
	err = -EISCONN;
	if (ep->sock)
		goto unlock;
	err = -READ_ONCE(ep->dead);
	if (err)
		goto unlock;
	err = ksk_socket_create(ep->base.domain->fabric->net, to.sa.sa_family,
				&sock);
	if (err)
		goto unlock;
	ksk_socket_tune(sock, &ep->tun, ep->base.info);
	ksk_socket_reserves(ep, sock->sk);
	/* only our own timer ends the attempt */
	tcp_sock_set_syncnt(sock->sk, MAX_TCP_SYNCNT);
	if (ep->src.sa.sa_family) {
		err = ksk_cm_bind(sock, &ep->src);
		if (err) {
			ksk_socket_release(sock);
			goto unlock;
		}
	}

	ksk_cm_format(&ep->cm, KSK_CM_REQUEST, KSK_EXT_ALL, param, paramlen);
	trace_kofi_sock_cm(ep->base.obj.id, "dial", 0);
	ksk_ep_attach(ep, sock, KSK_EP_CONNECTING);
	queue_delayed_work(ksk_wq, &ep->watch,
			   msecs_to_jiffies(ep->tun.connect_timeout));
	err = kernel_connect(sock, &to.sa, ksk_addr_len(&to.sa), O_NONBLOCK);
	if (!err || err == -EINPROGRESS) {
		err = 0;
		goto unlock;
	}

	/*
	 * No route and the like, known at once. The callbacks may have been
	 * quicker and told the consumer already; then it is no error here.
	 */
	lock_sock(sock->sk);
	if (READ_ONCE(ep->dead) || ep->phase != KSK_EP_CONNECTING)
		err = 0;
	else
		ksk_cm_fail(ep, -err, -err, NULL, 0);
	release_sock(sock->sk);
	err = 0;
unlock:
	ksk_memalloc_restore(noio);
	mutex_unlock(&ep->cm_mutex);
	return err;
}

/* --------------------------------------------------- connection requests */

/**
 * struct ksk_pep - passive endpoint
 * @base: the core's
 * @tun: options; those of the socket are inherited by what it accepts
 * @src: address to listen on
 * @sock: the listener, once there is one
 * @saved: its callbacks
 * @lock: control calls one after the other
 * @work: accepts
 * @node: on the list of them
 * @closing: no more
 * @backlog: requests the consumer may leave unanswered
 * @reqs: of this endpoint; from here on under ksk_req_mutex
 * @pending: of them, with the handshake not complete
 * @delivered: of them, waiting for the consumer
 * @accepted: statistics: TCP connections
 * @surplus: of them, closed because too many were pending
 * @timeouts: of them, closed because the request did not come in time
 * @violations: of them, closed because it was none
 * @lost: of them, closed because the event queue was full
 */
struct ksk_pep {
	struct kofi_pep		base;
	struct ksk_tunables	tun;
	union ksk_addr		src;
	struct socket		*sock;
	struct ksk_cbs		saved;
	struct mutex		lock;	/* control calls */
	struct delayed_work	work;
	struct list_head	node;
	bool			closing;
	int			backlog;
	struct list_head	reqs;
	unsigned int		pending;
	unsigned int		delivered;
	unsigned long		accepted;
	unsigned long		surplus;
	unsigned long		timeouts;
	unsigned long		violations;
	unsigned long		lost;
};

/**
 * struct ksk_req - connection request on the passive side
 * @fid: handle for the consumer
 * @pep: where it came in, as long as it is on a list
 * @node: on the passive endpoint's list; empty once somebody owns it
 * @delivered: the consumer may take it
 * @sock: the connection
 * @cm: the request
 * @work: reads it, and is its timer
 * @deadline: when it must be complete, in jiffies
 */
struct ksk_req {
	struct fi_fid		fid;
	struct ksk_pep		*pep;
	struct list_head	node;
	bool			delivered;
	struct socket		*sock;
	struct ksk_cm		cm;
	struct delayed_work	work;
	unsigned long		deadline;
};

/* Event with a copy of the private data: it outlives a request taken early. */
struct ksk_req_event {
	struct kofi_event	ev;
	u8			data[KSK_CM_DATA_MAX];
};

/* For the lists of requests and who owns one */
static DEFINE_MUTEX(ksk_req_mutex);
static LIST_HEAD(ksk_peps);

static struct ksk_pep *ksk_pep(struct fi_fid *fid)
{
	return container_of(fid, struct ksk_pep, base.pep.fid);
}

/* While the request comes in, every event of the socket means: look. */
static void ksk_req_event_cb(struct sock *sk)
{
	struct ksk_req *req = sk->sk_user_data;

	mod_delayed_work(ksk_wq, &req->work, 0);
}

static void ksk_req_silence(struct sock *sk)
{
}

static void ksk_req_attach(struct ksk_req *req)
{
	struct sock *sk = req->sock->sk;

	lock_sock(sk);
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = req;
	sk->sk_data_ready = ksk_req_event_cb;
	sk->sk_state_change = ksk_req_event_cb;
	sk->sk_error_report = ksk_req_event_cb;
	sk->sk_write_space = ksk_req_silence;
	write_unlock_bh(&sk->sk_callback_lock);
	release_sock(sk);
}

/* The callbacks of a fresh socket; @cbs are its listener's own. */
static void ksk_req_detach(struct sock *sk, const struct ksk_cbs *cbs)
{
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = NULL;
	sk->sk_data_ready = cbs->data_ready;
	sk->sk_write_space = cbs->write_space;
	sk->sk_state_change = cbs->state_change;
	sk->sk_error_report = cbs->error_report;
	write_unlock_bh(&sk->sk_callback_lock);
}

/* Off its list: the caller owns it. */
static void ksk_req_unlink(struct ksk_req *req)
{
	lockdep_assert_held(&ksk_req_mutex);

	list_del_init(&req->node);
	if (req->delivered)
		req->pep->delivered--;
	else
		req->pep->pending--;
	/* there may be room for another one now */
	if (!req->pep->closing)
		mod_delayed_work(ksk_wq, &req->pep->work, 0);
}

/**
 * ksk_req_free - forget a request
 * @req: owned by the caller, and its work item not running. Its connection,
 *	if nobody has adopted it, is reset.
 *
 * Context: process, may sleep.
 */
void ksk_req_free(struct ksk_req *req)
{
	if (req->sock) {
		ksk_socket_abort(req->sock);
		ksk_socket_release(req->sock);
	}
	kfree(req);
}

static void ksk_req_event_release(struct kofi_event *ev)
{
	kfree(container_of(ev, struct ksk_req_event, ev));
}

/* What the consumer opens the endpoint with. */
static struct fi_info *ksk_req_info(struct ksk_req *req)
{
	struct net *net = req->pep->base.fabric->net;
	struct sockaddr_storage local = {}, peer = {};
	struct fi_info *info;
	struct ksk_if i;
	char *fabric, *dev;
	void *src, *dst;
	size_t len;

	if (kernel_getsockname(req->sock, (struct sockaddr *)&local) < 0 ||
	    kernel_getpeername(req->sock, (struct sockaddr *)&peer) < 0)
		return NULL;
	if (ksk_if_find(net, (struct sockaddr *)&local, &i))
		return NULL;
	info = fi_dupinfo(req->pep->base.info);
	if (!info)
		return NULL;
	len = ksk_addr_len((struct sockaddr *)&local);
	src = kmemdup(&local, len, GFP_KERNEL);
	dst = kmemdup(&peer, len, GFP_KERNEL);
	dev = kstrdup(i.dev, GFP_KERNEL);
	fabric = kstrdup(req->pep->base.fabric->name, GFP_KERNEL);
	if (!src || !dst || !dev || !fabric) {
		kfree(src);
		kfree(dst);
		kfree(dev);
		kfree(fabric);
		fi_freeinfo(info);
		return NULL;
	}
	kfree(info->src_addr);
	kfree(info->dest_addr);
	kfree(info->domain_attr->name);
	kfree(info->fabric_attr->name);
	info->src_addr = src;
	info->dest_addr = dst;
	info->src_addrlen = len;
	info->dest_addrlen = len;
	info->addr_format = local.ss_family == AF_INET6 ? FI_SOCKADDR_IN6 :
							  FI_SOCKADDR_IN;
	info->domain_attr->name = dev;
	info->fabric_attr->name = fabric;
	info->handle = &req->fid;
	return info;
}

/* The request is complete. Returns false if it cannot be delivered. */
static bool ksk_req_deliver(struct ksk_req *req)
{
	struct ksk_pep *pep = req->pep;
	struct ksk_req_event *ev;
	bool delivered = false;

	ev = kzalloc(sizeof(*ev), GFP_KERNEL);
	if (!ev)
		return false;
	ev->ev = (struct kofi_event) {
		.fid = &pep->base.pep.fid,
		.context = pep->base.pep.fid.context,
		.event = FI_CONNREQ,
		.info = ksk_req_info(req),
		.data = ev->data,
		.data_len = ksk_cm_data_len(&req->cm),
		.release = ksk_req_event_release,
	};
	memcpy(ev->data, req->cm.buf + sizeof(req->cm.hdr), ev->ev.data_len);
	if (!ev->ev.info)
		goto free;

	mutex_lock(&ksk_req_mutex);
	if (list_empty(&req->node)) {
		/* the passive endpoint is being closed */
	} else if (!kofi_eq_room(pep->base.eq)) {
		pep->lost++;
	} else {
		req->delivered = true;
		pep->pending--;
		pep->delivered++;
		trace_kofi_sock_cm(pep->base.obj.id, "request", 0);
		kofi_eq_queue(pep->base.eq, &ev->ev);
		delivered = true;
	}
	mutex_unlock(&ksk_req_mutex);
	if (delivered)
		return true;
	fi_freeinfo(ev->ev.info);
free:
	kfree(ev);
	return false;
}

static void ksk_req_work(struct work_struct *work)
{
	struct ksk_req *req = container_of(to_delayed_work(work),
					   struct ksk_req, work);
	struct sock *sk = req->sock->sk;
	unsigned int noio;
	bool own = false;
	int err;

	/* a wake-up from before it was delivered */
	if (READ_ONCE(req->delivered))
		return;

	noio = memalloc_noio_save();
	lock_sock(sk);
	err = ksk_cm_read(sk, &req->cm);
	if (err == 1 && req->cm.hdr.type != KSK_CM_REQUEST)
		err = -EPROTO;
	if (err == -EAGAIN && time_after_eq(jiffies, req->deadline))
		err = -ETIMEDOUT;
	if (err != -EAGAIN)
		ksk_req_detach(sk, &req->pep->saved);
	release_sock(sk);

	if (err == -EAGAIN) {
		queue_delayed_work(ksk_wq, &req->work,
				   max_t(long, req->deadline - jiffies, 1));
		goto out;
	}
	if (err == 1 && ksk_req_deliver(req))
		goto out;

	mutex_lock(&ksk_req_mutex);
	if (!list_empty(&req->node)) {
		trace_kofi_sock_cm(req->pep->base.obj.id, "dropped", err);
		if (err == -EPROTO)
			req->pep->violations++;
		else if (err == -ETIMEDOUT)
			req->pep->timeouts++;
		ksk_req_unlink(req);
		own = true;
	}
	mutex_unlock(&ksk_req_mutex);
	if (own) {
		/* nothing queues it any more, but something may have */
		cancel_delayed_work(&req->work);
		ksk_req_free(req);
	}
out:
	memalloc_noio_restore(noio);
}

static void ksk_req_new(struct ksk_pep *pep, struct socket *sock)
{
	struct ksk_req *req;
	bool surplus;

	ksk_socket_accepted(sock);
	mutex_lock(&ksk_req_mutex);
	pep->accepted++;
	surplus = pep->pending >= ksk_max_pending;
	if (surplus)
		pep->surplus++;
	mutex_unlock(&ksk_req_mutex);

	req = surplus ? NULL : kzalloc(sizeof(*req), GFP_KERNEL);
	if (!req) {
		ksk_socket_abort(sock);
		ksk_socket_release(sock);
		return;
	}
	req->fid.fclass = FI_CLASS_CONNREQ;
	req->pep = pep;
	req->sock = sock;
	req->deadline = jiffies + msecs_to_jiffies(pep->tun.handshake_timeout);
	INIT_DELAYED_WORK(&req->work, ksk_req_work);

	mutex_lock(&ksk_req_mutex);
	list_add_tail(&req->node, &pep->reqs);
	pep->pending++;
	mutex_unlock(&ksk_req_mutex);
	ksk_req_attach(req);
	/* it may all be there already */
	mod_delayed_work(ksk_wq, &req->work, 0);
}

/* Find a request by its handle, which need not be one. */
static struct ksk_req *ksk_req_find(fid_t handle)
{
	struct ksk_pep *pep;
	struct ksk_req *req;

	lockdep_assert_held(&ksk_req_mutex);

	list_for_each_entry(pep, &ksk_peps, node)
		list_for_each_entry(req, &pep->reqs, node)
			if (&req->fid == handle && req->delivered)
				return req;
	return NULL;
}

/**
 * ksk_req_take - own a request the consumer names
 * @net: namespace it must belong to; the handle may be stale, and the memory
 *	somebody else's request by now
 * @handle: what it names
 * @req: where the request goes
 *
 * Context: process, may sleep.
 * Return: 0, or -EINVAL if @handle is no request that waits for an answer.
 */
int ksk_req_take(struct net *net, fid_t handle, struct ksk_req **req)
{
	mutex_lock(&ksk_req_mutex);
	*req = ksk_req_find(handle);
	if (*req && !net_eq((*req)->pep->base.fabric->net, net))
		*req = NULL;
	if (*req)
		ksk_req_unlink(*req);
	mutex_unlock(&ksk_req_mutex);
	if (!*req)
		return -EINVAL;
	cancel_delayed_work_sync(&(*req)->work);
	return 0;
}

/**
 * ksk_req_adopt - take the connection out of a request
 * @req: owned by the caller
 * @big_endian: set to the connection's byte order
 * @ext: set to KSK_EXT_* both sides know
 *
 * Return: the socket, the caller's now.
 */
struct socket *ksk_req_adopt(struct ksk_req *req, bool *big_endian,
			     u32 *ext)
{
	struct socket *sock = req->sock;

	*big_endian = ksk_cm_big_endian(&req->cm);
	*ext = ksk_cm_ext(&req->cm);
	req->sock = NULL;
	return sock;
}

/* ----------------------------------------------------------- passive side */

static void ksk_pep_data_ready(struct sock *sk)
{
	struct ksk_pep *pep;

	/*
	 * Called with the child's lock, and also for a child nobody has
	 * accepted yet, which has inherited callback and pointer.
	 */
	read_lock_bh(&sk->sk_callback_lock);
	pep = sk->sk_user_data;
	if (pep && sk->sk_state == TCP_LISTEN)
		mod_delayed_work(ksk_wq, &pep->work, 0);
	read_unlock_bh(&sk->sk_callback_lock);
}

static void ksk_pep_work(struct work_struct *work)
{
	struct ksk_pep *pep = container_of(to_delayed_work(work),
					   struct ksk_pep, work);
	unsigned int noio = memalloc_noio_save();
	int err = 0;

	for (;;) {
		struct socket *sock;
		bool room;

		mutex_lock(&ksk_req_mutex);
		room = !pep->closing && pep->delivered < pep->backlog;
		mutex_unlock(&ksk_req_mutex);
		if (!room)
			break;
		err = kernel_accept(pep->sock, &sock, O_NONBLOCK);
		if (err)
			break;
		ksk_req_new(pep, sock);
		cond_resched();
	}
	/* out of memory or the like: TCP does not tell us again */
	if (err && err != -EAGAIN && err != -EINVAL)
		queue_delayed_work(ksk_wq, &pep->work,
				   msecs_to_jiffies(100));
	memalloc_noio_restore(noio);
}

/* A listener that names no port gets one of the range, as good as any. */
static int ksk_pep_bind(struct socket *sock, const union ksk_addr *src)
{
	union ksk_addr try = *src;
	unsigned int n, i, first;
	int err = -EADDRINUSE;
	size_t len;

	/* no address at all is any address, but the same ports */
	if (!try.sa.sa_family)
		try.sa.sa_family = AF_INET;
	len = ksk_addr_len(&try.sa);
	if (*ksk_addr_port(&try) || !ksk_port_min)
		return kernel_bind(sock, &try.sa, len);

	n = ksk_port_max - ksk_port_min + 1;
	first = get_random_u32_below(n);
	for (i = 0; i < n && err == -EADDRINUSE; i++) {
		*ksk_addr_port(&try) = htons(ksk_port_min + (first + i) % n);
		err = kernel_bind(sock, &try.sa, len);
	}
	return err;
}

/* fi_listen() */
static int ksk_pep_listen(struct fid_pep *fid)
{
	struct ksk_pep *pep = ksk_pep(&fid->fid);
	struct socket *sock;
	unsigned int noio;
	struct sock *sk;
	int err;

	mutex_lock(&pep->lock);
	noio = memalloc_noio_save();
	err = -FI_EOPBADSTATE;
	if (pep->sock)
		goto unlock;
	err = -FI_ENOEQ;
	if (!pep->base.eq)
		goto unlock;
	err = ksk_socket_create(pep->base.fabric->net,
				pep->src.sa.sa_family ? : AF_INET, &sock);
	if (err)
		goto unlock;
	err = ksk_pep_bind(sock, &pep->src);
	if (err)
		goto release;
	ksk_socket_tune(sock, &pep->tun, pep->base.info);

	sk = sock->sk;
	write_lock_bh(&sk->sk_callback_lock);
	pep->saved = (struct ksk_cbs) {
		.data_ready = sk->sk_data_ready,
		.write_space = sk->sk_write_space,
		.state_change = sk->sk_state_change,
		.error_report = sk->sk_error_report,
	};
	sk->sk_user_data = pep;
	sk->sk_data_ready = ksk_pep_data_ready;
	write_unlock_bh(&sk->sk_callback_lock);

	pep->sock = sock;
	err = kernel_listen(sock, pep->backlog);
	if (!err) {
		trace_kofi_sock_cm(pep->base.obj.id, "listen", 0);
		goto unlock;
	}
	pep->sock = NULL;
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = NULL;
	sk->sk_data_ready = pep->saved.data_ready;
	write_unlock_bh(&sk->sk_callback_lock);
release:
	ksk_socket_release(sock);
unlock:
	memalloc_noio_restore(noio);
	mutex_unlock(&pep->lock);
	return err;
}

/* fi_reject() */
static int ksk_pep_reject(struct fid_pep *fid, fid_t handle,
			  const void *param, size_t paramlen)
{
	struct ksk_req *req;
	unsigned int noio;
	struct sock *sk;
	int err;

	if (paramlen > KSK_CM_DATA_MAX)
		return -EINVAL;
	mutex_lock(&ksk_req_mutex);
	req = ksk_req_find(handle);
	if (req && req->pep != ksk_pep(&fid->fid))
		req = NULL;
	if (req)
		ksk_req_unlink(req);
	mutex_unlock(&ksk_req_mutex);
	if (!req)
		return -EINVAL;
	cancel_delayed_work_sync(&req->work);

	noio = memalloc_noio_save();
	sk = req->sock->sk;
	ksk_cm_format(&req->cm, KSK_CM_REJECT, 0, param, paramlen);
	lock_sock(sk);
	ksk_socket_gfp(sk, GFP_NOIO);
	err = ksk_cm_send(sk, &req->cm);
	release_sock(sk);
	if (!err) {
		/* a reset would overtake the answer */
		ksk_socket_shutdown(req->sock);
		ksk_socket_release(req->sock);
		req->sock = NULL;
	}
	ksk_req_free(req);
	memalloc_noio_restore(noio);
	return 0;
}

/* fi_accept() */
static int ksk_cm_accept(struct fid_ep *fid, const void *param,
			 size_t paramlen)
{
	struct ksk_ep *ep = ksk_ep(fid);
	unsigned int noio;
	struct sock *sk;
	int err;

	if (paramlen > KSK_CM_DATA_MAX)
		return -EINVAL;
	mutex_lock(&ep->cm_mutex);
	noio = ksk_memalloc_save(ep);
	err = -FI_EOPBADSTATE;
	if (!ep->sock)
		goto unlock;

	sk = ep->sock->sk;
	ksk_socket_tune(ep->sock, &ep->tun, ep->base.info);
	ksk_socket_reserves(ep, sk);
	lock_sock(sk);
	if (ep->phase != KSK_EP_REQUESTED)
		goto release;
	err = -READ_ONCE(ep->dead);
	if (err)
		goto release;
	ksk_cm_format(&ep->cm, KSK_CM_ACCEPT, ep->ext, param, paramlen);
	ksk_socket_gfp(sk, GFP_NOIO);
	err = ksk_cm_send(sk, &ep->cm);
	ksk_socket_gfp(sk, GFP_ATOMIC);
	if (err) {
		/* half an answer cannot be taken back */
		ksk_cm_fail(ep, -err, -err, NULL, 0);
		err = 0;
	} else {
		ksk_ep_established(ep, NULL, 0);
	}
release:
	release_sock(sk);
unlock:
	ksk_memalloc_restore(noio);
	mutex_unlock(&ep->cm_mutex);
	return err;
}

/* -------------------------------------------------------------- addresses */

static int ksk_cm_name(struct socket *sock, const union ksk_addr *src,
		       void *addr, size_t *len)
{
	struct sockaddr_storage name = {};
	int err;

	if (!sock) {
		if (!src->sa.sa_family)
			return -EADDRNOTAVAIL;
		return ksk_addr_copy(&src->sa, addr, len);
	}
	err = kernel_getsockname(sock, (struct sockaddr *)&name);
	if (err < 0)
		return err;
	return ksk_addr_copy((struct sockaddr *)&name, addr, len);
}

/* fi_getname() and fi_setname() work on both kinds of endpoint */
static int ksk_ep_getname(fid_t fid, void *addr, size_t *len)
{
	struct ksk_ep *ep = container_of(fid, struct ksk_ep, base.ep.fid);
	int err;

	mutex_lock(&ep->cm_mutex);
	err = ksk_cm_name(ep->sock, &ep->src, addr, len);
	mutex_unlock(&ep->cm_mutex);
	return err;
}

static int ksk_ep_setname(fid_t fid, void *addr, size_t len)
{
	struct ksk_ep *ep = container_of(fid, struct ksk_ep, base.ep.fid);
	int err = ksk_addr_check(addr, len);

	if (err)
		return err;
	mutex_lock(&ep->cm_mutex);
	if (ep->sock)
		err = -FI_EOPBADSTATE;
	else
		memcpy(&ep->src, addr, ksk_addr_len(addr));
	mutex_unlock(&ep->cm_mutex);
	return err;
}

static int ksk_ep_getpeer(struct fid_ep *fid, void *addr, size_t *len)
{
	struct ksk_ep *ep = ksk_ep(fid);
	struct sockaddr_storage name = {};
	int err = -ENOTCONN;

	mutex_lock(&ep->cm_mutex);
	if (ep->sock)
		err = kernel_getpeername(ep->sock, (struct sockaddr *)&name);
	mutex_unlock(&ep->cm_mutex);
	if (err < 0)
		return err;
	return ksk_addr_copy((struct sockaddr *)&name, addr, len);
}

/* fi_shutdown() */
static int ksk_ep_shutdown(struct fid_ep *fid, u64 flags)
{
	if (flags)
		return -FI_EBADFLAGS;
	return ksk_ep_down(ksk_ep(fid), true);
}

const struct fi_ops_cm ksk_ep_cm_ops = {
	.size		= sizeof(struct fi_ops_cm),
	.setname	= ksk_ep_setname,
	.getname	= ksk_ep_getname,
	.getpeer	= ksk_ep_getpeer,
	.connect	= ksk_cm_connect,
	.accept		= ksk_cm_accept,
	.shutdown	= ksk_ep_shutdown,
};

/* ------------------------------------------------------ passive endpoints */

static int ksk_pep_getname(fid_t fid, void *addr, size_t *len)
{
	struct ksk_pep *pep = ksk_pep(fid);
	int err;

	mutex_lock(&pep->lock);
	err = ksk_cm_name(pep->sock, &pep->src, addr, len);
	mutex_unlock(&pep->lock);
	return err;
}

static int ksk_pep_setname(fid_t fid, void *addr, size_t len)
{
	struct ksk_pep *pep = ksk_pep(fid);
	int err = ksk_addr_check(addr, len);

	if (err)
		return err;
	mutex_lock(&pep->lock);
	if (pep->sock)
		err = -FI_EOPBADSTATE;
	else
		memcpy(&pep->src, addr, ksk_addr_len(addr));
	mutex_unlock(&pep->lock);
	return err;
}

static int ksk_pep_getopt(fid_t fid, int level, int name, void *val,
			  size_t *len)
{
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_CM_DATA_SIZE)
		return -FI_ENOPROTOOPT;
	if (*len < sizeof(size_t)) {
		*len = sizeof(size_t);
		return -FI_ETOOSMALL;
	}
	*len = sizeof(size_t);
	*(size_t *)val = KSK_CM_DATA_MAX;
	return 0;
}

/* Options each connection's own endpoint has, and a listener no use for */
static bool ksk_pep_foreign(int name)
{
	return name == (int)KOFI_VAL_RECLAIM_SAFE ||
	       name == (int)KOFI_VAL_CPU ||
	       name == (int)KOFI_VAL_ZEROCOPY_MIN;
}

static int ksk_pep_control(struct fi_fid *fid, int command, void *arg)
{
	struct ksk_pep *pep = ksk_pep(fid);
	struct fi_fid_var *var = arg;
	int err = 0;

	mutex_lock(&pep->lock);
	switch (command) {
	case FI_BACKLOG:
		if (!arg || *(int *)arg <= 0)
			err = -EINVAL;
		else if (pep->sock)
			err = -FI_EOPBADSTATE;
		else
			pep->backlog = *(int *)arg;
		break;
	case FI_SET_VAL:
		if (!var || !var->val)
			err = -EINVAL;
		else if (pep->sock)
			err = -EBUSY;
		else if (ksk_pep_foreign(var->name))
			err = -ENOSYS;
		else
			err = ksk_tunables_set(&pep->tun, var->name, var->val);
		break;
	case FI_GET_VAL:
		if (!var || !var->val)
			err = -EINVAL;
		else if (ksk_pep_foreign(var->name))
			err = -ENOSYS;
		else
			err = ksk_tunables_get(&pep->tun, var->name, var->val);
		break;
	default:
		err = -ENOSYS;
		break;
	}
	mutex_unlock(&pep->lock);
	return err;
}

static void ksk_pep_stats(struct kofi_obj *obj, kofi_stat_fn fn, void *arg)
{
	struct kofi_pep *base = container_of(obj, struct kofi_pep, obj);
	struct ksk_pep *pep = container_of(base, struct ksk_pep, base);

	mutex_lock(&ksk_req_mutex);
	fn(arg, "accepted", pep->accepted);
	fn(arg, "pending", pep->pending);
	fn(arg, "delivered", pep->delivered);
	fn(arg, "surplus", pep->surplus);
	fn(arg, "timeouts", pep->timeouts);
	fn(arg, "violations", pep->violations);
	fn(arg, "lost", pep->lost);
	mutex_unlock(&ksk_req_mutex);
}

/* The next request, off the list: ours, though its work item may run. */
static struct ksk_req *ksk_pep_unlink(struct ksk_pep *pep)
{
	struct ksk_req *req;

	mutex_lock(&ksk_req_mutex);
	req = list_first_entry_or_null(&pep->reqs, struct ksk_req, node);
	if (req)
		ksk_req_unlink(req);
	mutex_unlock(&ksk_req_mutex);
	return req;
}

static int ksk_pep_close(struct fi_fid *fid)
{
	struct ksk_pep *pep = ksk_pep(fid);
	struct ksk_req *req;

	mutex_lock(&ksk_req_mutex);
	pep->closing = true;
	mutex_unlock(&ksk_req_mutex);

	if (pep->sock) {
		struct sock *sk = pep->sock->sk;

		lock_sock(sk);
		write_lock_bh(&sk->sk_callback_lock);
		sk->sk_data_ready = pep->saved.data_ready;
		sk->sk_user_data = NULL;
		write_unlock_bh(&sk->sk_callback_lock);
		release_sock(sk);
	}
	cancel_delayed_work_sync(&pep->work);

	while ((req = ksk_pep_unlink(pep))) {
		lock_sock(req->sock->sk);
		ksk_req_detach(req->sock->sk, &pep->saved);
		release_sock(req->sock->sk);
		cancel_delayed_work_sync(&req->work);
		ksk_req_free(req);
	}
	mutex_lock(&ksk_req_mutex);
	list_del(&pep->node);
	mutex_unlock(&ksk_req_mutex);

	kofi_eq_purge(pep->base.eq, &pep->base.pep.fid);
	if (pep->sock)
		ksk_socket_release(pep->sock);
	kofi_pep_exit(&pep->base);
	mutex_destroy(&pep->lock);
	kfree(pep);
	return 0;
}

static const struct fi_ops ksk_pep_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= ksk_pep_close,
	.control	= ksk_pep_control,
};

static const struct fi_ops_ep ksk_pep_opt_ops = {
	.size		= sizeof(struct fi_ops_ep),
	.getopt		= ksk_pep_getopt,
};

static const struct fi_ops_cm ksk_pep_cm_ops = {
	.size		= sizeof(struct fi_ops_cm),
	.setname	= ksk_pep_setname,
	.getname	= ksk_pep_getname,
	.listen		= ksk_pep_listen,
	.reject		= ksk_pep_reject,
};

static const struct kofi_obj_ops ksk_pep_obj_ops = {
	.stats		= ksk_pep_stats,
};

/* fi_passive_ep() */
int ksk_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
		   struct fid_pep **fid, void *context)
{
	struct ksk_pep *pep;
	int err;

	if (info->ep_attr->type != FI_EP_MSG ||
	    !ksk_tclass_known(ksk_info_tclass(info)))
		return -EINVAL;
	if (info->src_addr &&
	    ksk_addr_check(info->src_addr, info->src_addrlen))
		return -EINVAL;
	pep = kzalloc(sizeof(*pep), GFP_KERNEL);
	if (!pep)
		return -ENOMEM;
	ksk_tunables_init(&pep->tun);
	pep->backlog = KSK_BACKLOG;
	mutex_init(&pep->lock);
	INIT_DELAYED_WORK(&pep->work, ksk_pep_work);
	INIT_LIST_HEAD(&pep->reqs);
	if (info->src_addr)
		memcpy(&pep->src, info->src_addr,
		       ksk_addr_len(info->src_addr));

	err = kofi_pep_init(&pep->base, fabric, info, &ksk_pep_fid_ops,
			    &ksk_pep_opt_ops, &ksk_pep_cm_ops, context);
	if (err) {
		mutex_destroy(&pep->lock);
		kfree(pep);
		return err;
	}
	pep->base.obj.ops = &ksk_pep_obj_ops;
	mutex_lock(&ksk_req_mutex);
	list_add_tail(&pep->node, &ksk_peps);
	mutex_unlock(&ksk_req_mutex);
	*fid = &pep->base.pep;
	return 0;
}

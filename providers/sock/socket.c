// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sockets: creating and tuning them, and closing connections.
 *
 * Namespaces
 *
 * A socket holds a reference on its network namespace, so that the namespace
 * lives while the socket does.
 *
 * Locks
 *
 * The locks of a kernel socket have other classes than the locks of user sockets. Classes
 * of our own would pin the module, in a kernel with lockdep, until TCP has done with
 * connections closed long ago. The classes of an accepted socket's locks, which are in use
 * already, cannot be changed at all.
 */
#include <linux/file.h>
#include <linux/in6.h>
#include <linux/pkt_sched.h>
#include <net/inet_sock.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/l3mdev.h>
#include <net/tcp.h>

#include "sock.h"

/**
 * struct ksk_frag - memory that TCP copies payload and headers to
 * @lock: guards @frag where softirqs of a processor preempt each other
 *	(PREEMPT_RT); elsewhere it is for lockdep alone
 * @frag: 32 KiB, which a socket keeps for as long as it lives. If there may be thousands
 *	of sockets that take turns, they share the fragment of the processor
 */
struct ksk_frag {
	local_lock_t		lock;	/* frag */
	struct page_frag	frag;
};

static DEFINE_PER_CPU(struct ksk_frag, ksk_frag) = {
	.lock = INIT_LOCAL_LOCK(lock),
};

static void ksk_frag_swap_bh(struct sock *sk)
{
	local_lock_nested_bh(&ksk_frag.lock);
	swap(this_cpu_ptr(&ksk_frag)->frag, sk->sk_frag);
	local_unlock_nested_bh(&ksk_frag.lock);
}

static void ksk_frag_swap(struct sock *sk)
{
	/* memory from the reserves is for its socket alone */
	if (sock_flag(sk, SOCK_MEMALLOC))
		return;
	if (in_softirq()) {
		ksk_frag_swap_bh(sk);
		return;
	}
	local_bh_disable();
	ksk_frag_swap_bh(sk);
	local_bh_enable();
}

/**
 * ksk_sendmsg_shared - call tcp_sendmsg_locked() for one of possibly many sockets
 * @sk: the socket
 * @msg: as for tcp_sendmsg_locked()
 * @len: as for tcp_sendmsg_locked()
 *
 * Context: locked; process or softirq.
 * Return: as tcp_sendmsg_locked().
 */
int ksk_sendmsg_shared(struct sock *sk, struct msghdr *msg, size_t len)
{
	int ret;

	ksk_frag_swap(sk);
	ret = tcp_sendmsg_locked(sk, msg, len);
	ksk_frag_swap(sk);
	return ret;
}

/* At module unload */
void ksk_socket_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		if (per_cpu(ksk_frag, cpu).frag.page)
			put_page(per_cpu(ksk_frag, cpu).frag.page);
}

/**
 * ksk_socket_create - make a socket
 * @net: network namespace of the socket
 * @family: family of its addresses
 * @type: SOCK_STREAM is TCP, SOCK_DGRAM UDP
 * @ifindex: a device in the VRF of the socket; 0 for none
 * @sockp: receives the socket
 *
 * Context: process, may sleep.
 * Return: 0, or a negative error.
 */
int ksk_socket_create(struct net *net, int family, int type, int ifindex,
		      struct socket **sockp)
{
	int vrf = l3mdev_master_ifindex_by_index(net, ifindex);
	struct socket *sock;
	struct sock *sk;
	int err;

	err = sock_create_kern(net, family, type, 0, &sock);
	if (err)
		return err;
	sk = sock->sk;
	/* the namespace lives as long as the socket; before any locking */
	sk_net_refcnt_upgrade(sk);
	sk->sk_use_task_frag = false;
	ksk_socket_gfp(sk, GFP_ATOMIC);
	/* two datagram sockets could have the same port */
	if (type == SOCK_STREAM)
		sock_set_reuseaddr(sk);
	/* to the device itself, own addresses of others could not be reached */
	err = vrf ? sock_bindtoindex(sk, vrf, true) : 0;
	if (err)
		sock_release(sock);
	else
		*sockp = sock;
	return err;
}

/**
 * ksk_socket_bind - give a socket its address
 * @sock: the socket
 * @src: the address; without a port it gets one of the range, as good as any
 *
 * Context: process, may sleep.
 * Return: 0, or a negative error.
 */
int ksk_socket_bind(struct socket *sock, const union kofi_ip *src)
{
	union kofi_ip try = *src;
	unsigned int n, i, first;
	int err = -EADDRINUSE;
	size_t len;

	/* no address at all is any address, but the same ports */
	if (!try.sa.sa_family)
		try.sa.sa_family = AF_INET;
	len = kofi_ip_len(&try.sa);
	if (*kofi_ip_port(&try.sa) || !ksk_port_min)
		return kernel_bind(sock, (void *)&try, len);

	n = ksk_port_max - ksk_port_min + 1;
	first = get_random_u32_below(n);
	for (i = 0; i < n && err == -EADDRINUSE; i++) {
		*kofi_ip_port(&try.sa) = htons(ksk_port_min + (first + i) % n);
		err = kernel_bind(sock, (void *)&try, len);
	}
	return err;
}

void ksk_socket_accepted(struct socket *sock)
{
	struct sock *sk = sock->sk;

	sk->sk_use_task_frag = false;
	ksk_socket_gfp(sk, GFP_ATOMIC);
}

/*
 * Queues of this host for labels. IP_TOS would derive them from bits of
 * RFC 1349, which makes bulk of the low latency class.
 */
static const u8 ksk_priorities[] = {
	[FI_TC_BEST_EFFORT - FI_TC_LABEL]	= TC_PRIO_BESTEFFORT,
	[FI_TC_LOW_LATENCY - FI_TC_LABEL]	= TC_PRIO_INTERACTIVE,
	[FI_TC_DEDICATED_ACCESS - FI_TC_LABEL]	= TC_PRIO_INTERACTIVE,
	[FI_TC_BULK_DATA - FI_TC_LABEL]		= TC_PRIO_BULK,
	[FI_TC_SCAVENGER - FI_TC_LABEL]		= TC_PRIO_FILLER,
	[FI_TC_NETWORK_CTRL - FI_TC_LABEL]	= TC_PRIO_CONTROL,
};

/**
 * ksk_tclass_known - test for a known traffic class
 * @tclass: tclass of an attribute
 *
 * Return: true for none, a label, or a differentiated services code point.
 */
bool ksk_tclass_known(u32 tclass)
{
	return tclass == FI_TC_UNSPEC || kofi_tclass_dscp(tclass) >= 0;
}

/* Without a class, the socket is left as the system or its listener made it. */
static void ksk_socket_class(struct socket *sock, u32 tclass)
{
	u32 label = tclass - FI_TC_LABEL;
	struct sock *sk = sock->sk;
	int tos;

	if (sk->sk_type == SOCK_STREAM && tclass != FI_TC_BULK_DATA)
		tcp_sock_set_nodelay(sk);
	if (tclass == FI_TC_UNSPEC)
		return;
	tos = kofi_tclass_dscp(tclass) << 2;
	/* the peer of an IPv6 socket may have a mapped IPv4 address */
	ip_sock_set_tos(sk, tos);
	if (sk->sk_family == AF_INET6)
		sock->ops->setsockopt(sock, SOL_IPV6, IPV6_TCLASS,
				      KERNEL_SOCKPTR(&tos), sizeof(tos));
	/* on its own: a class inherited from the listener comes without */
	sock_set_priority(sk, label < ARRAY_SIZE(ksk_priorities) ?
				ksk_priorities[label] : rt_tos2priority(tos));
}

/*
 * An announced window is not taken back: the peer sends as much as fits in it, in segments
 * of up to half of it. If the buffer were smaller, TCP would drop these segments. Later
 * windows would be too small for a segment, so each would wait for the peer's probe timer.
 */
static void ksk_socket_rcvbuf(struct sock *sk, int rcvbuf)
{
	int min = 0;

	lock_sock(sk);
	if (sk->sk_state == TCP_ESTABLISHED)
		min = tcp_space_from_win(sk, tcp_sk(sk)->rcv_wnd);
	release_sock(sk);
	/* the kernel doubles it */
	sock_set_rcvbuf(sk, max(rcvbuf, DIV_ROUND_UP(min, 2)));
}

static void ksk_socket_keepalive(struct socket *sock,
				 const struct ksk_tunables *tun)
{
	struct sock *sk = sock->sk;
	int off = 0;

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
}

/*
 * Set the options of a socket before it carries messages or listens. Accepted
 * sockets inherit them. A reclaim-safe socket may use the emergency reserves for
 * packets of both directions. sk_set_memalloc() is split: the flags of a connected
 * socket change under its lock, where ksk_ep_reserve() must not take the locks of a
 * static key.
 */
void ksk_socket_tune(struct socket *sock, const struct ksk_tunables *tun,
		     const struct fi_info *info)
{
	struct sock *sk = sock->sk;

	ksk_socket_class(sock, kofi_info_tclass(info));
	if (sk->sk_type == SOCK_STREAM)
		ksk_socket_keepalive(sock, tun);
	if (tun->rcvbuf)
		ksk_socket_rcvbuf(sk, tun->rcvbuf);
	if (tun->sndbuf) {
		lock_sock(sk);
		sk->sk_userlocks |= SOCK_SNDBUF_LOCK;
		WRITE_ONCE(sk->sk_sndbuf,
			   max_t(int, tun->sndbuf * 2, SOCK_MIN_SNDBUF));
		release_sock(sk);
	}
	if (tun->reclaim_safe) {
		lock_sock(sk);
		sock_set_flag(sk, SOCK_MEMALLOC);
		sk->sk_allocation |= __GFP_MEMALLOC;
		release_sock(sk);
	}
}

/*
 * Account @ep as a user of the emergency reserves if its option demands them, until
 * ksk_ep_exit(). Process context; callers exclude each other.
 */
void ksk_ep_reserve(struct ksk_ep *ep)
{
	if (!ep->tun.reclaim_safe || ep->reserves)
		return;
	static_branch_inc(&memalloc_socks_key);
	ep->reserves = true;
}

/**
 * ksk_socket_abort - reset a connection
 * @sock: socket of the connection; the caller keeps it
 *
 * Context: process, may sleep; not locked.
 */
void ksk_socket_abort(struct socket *sock)
{
	tcp_abort(sock->sk, ECONNABORTED);
}

/**
 * ksk_socket_fin - announce that nothing more is sent
 * @sock: a socket without an outstanding send; the caller keeps it
 * @how: SHUT_WR or SHUT_RDWR
 *
 * If TCP has no memory for a FIN, it omits the FIN and never retries: the peer would
 * wait forever, as probes of an idle connection are still answered
 * (tcp_send_fin() in 6.12). A queued FIN takes a sequence number. If it was not
 * queued, the connection is reset. The reset needs memory, too; if it does not reach the
 * peer, the peer gets another one for its next probe.
 *
 * Context: process, may sleep; not locked.
 */
void ksk_socket_fin(struct socket *sock, int how)
{
	struct sock *sk = sock->sk;
	u32 seq = READ_ONCE(tcp_sk(sk)->write_seq);
	bool open = (1 << READ_ONCE(sk->sk_state)) &
		    (TCPF_ESTABLISHED | TCPF_CLOSE_WAIT);

	kernel_sock_shutdown(sock, how);
	if (open && READ_ONCE(tcp_sk(sk)->write_seq) == seq)
		ksk_socket_abort(sock);
}

static int ksk_discard_actor(read_descriptor_t *desc, struct sk_buff *skb,
			     unsigned int offset, size_t len)
{
	return len;
}

/**
 * ksk_socket_shutdown - close a connection in order
 * @sock: socket of the connection; the caller keeps it
 *
 * Sent data still arrives. Received data that is not read is discarded: TCP turns a close
 * with unread bytes into a reset, which would overtake our data. If the peer goes on
 * sending after our FIN, it is reset all the same.
 *
 * Context: process, may sleep; not locked.
 */
void ksk_socket_shutdown(struct socket *sock)
{
	read_descriptor_t desc = { .count = 1 };

	ksk_socket_fin(sock, SHUT_RDWR);
	lock_sock(sock->sk);
	tcp_read_sock(sock->sk, &desc, ksk_discard_actor);
	release_sock(sock->sk);
}

/**
 * ksk_socket_release - close a socket, and free it
 * @sock: the socket, which no longer has our callbacks
 *
 * Context: process, may sleep; not locked.
 */
void ksk_socket_release(struct socket *sock)
{
	unsigned int noio = memalloc_noio_save();

	/* of a connection with TLS; a file that is put the usual way is closed later */
	if (sock->file)
		__fput_sync(sock->file);
	else
		sock_release(sock);
	memalloc_noio_restore(noio);
}


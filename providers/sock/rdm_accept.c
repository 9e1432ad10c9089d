// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connection requests from peers of an FI_EP_RDM endpoint.
 *
 * A request contains the port at which its sender listens, and a number that changes when
 * the sender restarts. If two peers connect to each other at the same time,
 * kofi_peer_judge() decides which request is accepted.
 *
 * A request of a peer with an established connection is rejected if the number is
 * unchanged, and idle.c checks whether the peer has restarted. With another number the
 * peer has restarted: the request is accepted, and the old connection is reset.
 *
 * A work item of the endpoint answers the requests.
 */
#include <net/tcp.h>

#include "rdm.h"

/* Does a connection exist that the same peer has closed, and that may have a successor? */
static bool ksk_rdm_ending(struct ksk_rdm *rdm, const struct ksk_peer *peer)
{
	struct ksk_peer *old;

	old = ksk_rdm_find(rdm, &peer->base.addr);
	return old && ksk_peer_connected(old) &&
	       old->base.life == peer->base.life &&
	       READ_ONCE(old->conn.dead) == ESHUTDOWN;
}

/* Does an accepted side of an earlier connection to ourselves exist, perhaps unread? */
static bool ksk_rdm_accepted(struct ksk_rdm *rdm, const union kofi_ip *addr)
{
	struct ksk_peer *peer;

	lockdep_assert_held(&rdm->lock);

	list_for_each_entry(peer, &rdm->conns, node)
		if (peer->accepted && !memcmp(&peer->base.addr, addr, sizeof(*addr)))
			return true;
	return false;
}

/* Accept our own request: posts use the side that has connected. */
static bool ksk_rdm_own(struct ksk_rdm *rdm, struct ksk_peer *peer)
{
	if (!ksk_rdm_current(rdm, &peer->base.addr) ||
	    peer->base.life != rdm->pid ||
	    ksk_rdm_accepted(rdm, &peer->base.addr))
		return false;
	list_add_tail(&peer->node, &rdm->conns);
	return true;
}

/*
 * Test whether a request is accepted, in view of the peer's current connection. If it is
 * accepted, its connection is added, and posts use it.
 */
static bool ksk_rdm_wins(struct ksk_rdm *rdm, struct ksk_peer *peer, int diff)
{
	struct ksk_peer *old;

	lockdep_assert_held(&rdm->lock);

	old = ksk_rdm_current(rdm, &peer->base.addr);
	switch (kofi_peer_judge(old ? &old->base : NULL, diff, peer->base.life)) {
	case KOFI_PEER_ACCEPT:
		return !ksk_rdm_ending(rdm, peer) && !ksk_rdm_link(rdm, peer);
	case KOFI_PEER_REPLACE:
		/* if the peer's connection fails at once, ours is tried again */
		peer->retry = old->retry;
		ksk_rdm_replace(rdm, old, peer);
		ksk_conn_abort(&old->conn, ECANCELED);
		return true;
	case KOFI_PEER_RESTARTED:
		ksk_stat_inc(&rdm->stats.restarts);
		ksk_rdm_replace(rdm, old, peer);
		ksk_conn_abort(&old->conn, ECONNRESET);
		return true;
	case KOFI_PEER_PRESENT:
		ksk_restart_ask(old);
		return false;
	default:
		return false;
	}
}

/*
 * Refuse a peer that exceeds a limit of unknown peers. If it has an earlier connection, the
 * termination of that connection makes room, and the peer repeats the request.
 */
static void ksk_rdm_refuse(struct ksk_rdm *rdm, const struct ksk_peer *peer,
			   int diff)
{
	struct ksk_peer *old = ksk_rdm_current(rdm, &peer->base.addr);

	switch (kofi_peer_judge(old ? &old->base : NULL, diff, peer->base.life)) {
	case KOFI_PEER_PRESENT:
		ksk_restart_ask(old);
		break;
	case KOFI_PEER_RESTARTED:
		ksk_stat_inc(&rdm->stats.restarts);
		ksk_conn_abort(&old->conn, ECONNRESET);
		break;
	default:
		break;
	}
}

/* Test whether a request is accepted. If it is accepted, its connection is added. */
static bool ksk_rdm_admit(struct ksk_rdm *rdm, struct ksk_peer *peer,
			  const union kofi_ip *own)
{
	const struct kofi_unknown_max max = {
		.all = READ_ONCE(ksk_max_unknown),
		.host = READ_ONCE(ksk_max_unknown_host),
		.net = READ_ONCE(ksk_max_unknown_net),
	};
	int err, diff = kofi_peer_compare(&peer->base.addr, own);

	lockdep_assert_held(&rdm->lock);

	if (rdm->state == KSK_RDM_CLOSING || !READ_ONCE(rdm->ep.domain->ifindex))
		return false;
	if (!diff)
		return ksk_rdm_own(rdm, peer);
	err = kofi_peers_admit(&rdm->peers, &peer->base, &max,
			       ksk_gfp_atomic(&rdm->ep));
	if (!err && ksk_rdm_wins(rdm, peer, diff))
		return true;
	if (!err)
		kofi_peers_dismiss(&rdm->peers, &peer->base);
	else if (err == -EUSERS)
		ksk_rdm_refuse(rdm, peer, diff);
	return false;
}

/* Find the address at which the sender listens, and our address as the sender sees it. */
static int ksk_rdm_addresses(struct ksk_rdm *rdm, struct ksk_req *req,
			     const struct ksk_rdm_cm *cm, union kofi_ip *addr,
			     union kofi_ip *own)
{
	struct sockaddr_storage ss = {};
	int err;

	/* if the sender has disconnected, its request may be out of date */
	if (!cm->pid || READ_ONCE(req->sock->sk->sk_state) != TCP_ESTABLISHED)
		return -ENOTCONN;
	err = kernel_getpeername(req->sock, (struct sockaddr *)&ss);
	if (err < 0)
		return err;
	err = kofi_peer_addr(&ss, cm->port, addr);
	if (err)
		return err;
	memset(&ss, 0, sizeof(ss));
	err = kernel_getsockname(req->sock, (struct sockaddr *)&ss);
	if (err < 0)
		return err;
	return kofi_peer_addr(&ss, *kofi_ip_port(&rdm->name.sa), own);
}

/* Give the socket of an accepted request to its connection. */
static void ksk_peer_attach(struct ksk_peer *peer, struct ksk_req *req)
{
	struct socket *sock = req->sock;
	struct ksk_conn *c = &peer->conn;

	ksk_socket_tune(sock, &c->ep->tun, c->ep->base.info);
	req->sock = NULL;
	ksk_conn_attach(c, sock, KSK_CONN_REQUESTED);
	lock_sock(sock->sk);
	if (!READ_ONCE(c->dead))
		ksk_conn_established(c, NULL, 0);
	release_sock(sock->sk);
}

static void ksk_rdm_accept(struct ksk_rdm *rdm, struct ksk_req *req,
			   struct ksk_rdm_cm cm, struct ksk_peer *peer)
{
	int err;

	peer->conn.be = ksk_cm_big_endian(&req->cm);
	cm.features = 0;
	if (cm.version & ~KSK_RDM_AGREED) {
		cm.version = KSK_RDM_VERSION | KSK_RDM_AGREED;
		peer->conn.rndv.state = &peer->rndv;
	}
	cm.pid = cpu_to_be32(rdm->pid);
	err = ksk_req_answer(req, KSK_CM_ACCEPT, 0, &cm, sizeof(cm));
	if (!err) {
		ksk_peer_attach(peer, req);
		return;
	}
	/* our operations do not depend on the peer's attempt */
	ksk_peer_repeat(rdm, peer);
	ksk_conn_abort(&peer->conn, ECONNABORTED);
}

static void ksk_rdm_request(struct ksk_rdm *rdm, struct ksk_req *req)
{
	size_t len = ksk_cm_data_len(&req->cm);
	struct ksk_peer *peer = NULL;
	union kofi_ip addr, own;
	struct ksk_rdm_cm cm;
	bool admit = false;

	/* protocols that are layered on connections use other lengths */
	if (len == sizeof(cm)) {
		memcpy(&cm, req->cm.buf + sizeof(req->cm.hdr), sizeof(cm));
		if (!ksk_rdm_addresses(rdm, req, &cm, &addr, &own))
			peer = ksk_peer_new(rdm, &addr, GFP_KERNEL);
	}
	if (peer) {
		/* the mutex delays its termination until it has its socket */
		mutex_lock(&peer->conn.mutex);
		peer->accepted = true;
		peer->base.life = be32_to_cpu(cm.pid);
		kofi_peer_step(&peer->base, KOFI_PEER_ACCEPTING);
	}
	spin_lock_irq(&rdm->lock);
	if (peer)
		admit = ksk_rdm_admit(rdm, peer, &own);
	if (admit)
		ksk_stat_inc(&rdm->stats.accepted);
	else if (peer)
		ksk_stat_inc(&rdm->stats.rejected);
	else
		ksk_stat_inc(&rdm->stats.refused);
	spin_unlock_irq(&rdm->lock);

	if (admit)
		ksk_rdm_accept(rdm, req, cm, peer);
	if (peer)
		mutex_unlock(&peer->conn.mutex);
	if (admit)
		return;
	if (peer)
		ksk_peer_free(peer);
	ksk_req_answer(req, KSK_CM_REJECT, 0, &cm,
		       len == sizeof(cm) ? sizeof(cm) : 0);
}

/**
 * ksk_rdm_accept_work - answer queued connection requests
 * @work: ksk_rdm.accept
 *
 * Context: process.
 */
void ksk_rdm_accept_work(struct work_struct *work)
{
	struct ksk_rdm *rdm = container_of(work, struct ksk_rdm, accept);
	struct ksk_req *req;
	unsigned int noio;
	bool early;

	spin_lock_irq(&rdm->lock);
	early = rdm->state == KSK_RDM_NEW;
	spin_unlock_irq(&rdm->lock);
	/* ksk_rdm_listen() queues it again */
	if (early)
		return;
	noio = ksk_memalloc_save(&rdm->ep.tun);
	while ((req = ksk_req_next(&rdm->listener))) {
		ksk_rdm_request(rdm, req);
		ksk_req_free(req);
	}
	ksk_memalloc_restore(noio);
}

static void *ksk_rdm_prepare(struct ksk_req *req)
{
	return req->listener;
}

static bool ksk_rdm_deliver(struct ksk_req *req, void *prepared)
{
	struct ksk_rdm *rdm = container_of(req->listener, struct ksk_rdm,
					   listener);

	queue_work(ksk_wq_for(&rdm->ep.tun), &rdm->accept);
	return true;
}

static void ksk_rdm_discard(void *prepared)
{
}

const struct ksk_listener_ops ksk_rdm_listener_ops = {
	.prepare	= ksk_rdm_prepare,
	.deliver	= ksk_rdm_deliver,
	.discard	= ksk_rdm_discard,
};

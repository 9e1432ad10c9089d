// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Listening: sockets that accept connections, and incoming requests.
 *
 * Path of a request
 *
 * The listener's work item accepts connections and makes a struct ksk_req for each. The
 * request's own work item requests the handshake of TLS, if the listener requires it. It
 * reads the request, under a time limit, and hands it to the listener's owner. The owner
 * takes the socket over, or answers with a reject. Until then the connection waits.
 *
 * Ownership
 *
 * A listener's list has all requests that are not taken. A handle is only
 * looked up there, never followed, because it may be stale. A caller owns a request
 * after taking it off its list, under ksk_req_mutex. Requests still on the list are freed
 * with their listener.
 *
 * Limits
 *
 * max_pending limits outstanding handshakes, and the backlog limits requests that have
 * been delivered. Beyond either limit nothing is accepted, and TCP's own backlog fills.
 * A request that is complete when the backlog is full waits until another is taken.
 * Clients that send no request must not block others for the whole time limit. So the
 * oldest handshake gives way to a new one when it has had an eighth of that time.
 */
#include <linux/slab.h>
#include <net/tcp.h>

#include "listener.h"
#include "sock.h"
#include "tls.h"

#define KSK_BACKLOG	128	/* unless FI_BACKLOG says otherwise */
#define KSK_ACCEPT_RUN	64	/* connections accepted in a row */

/* --------------------------------------------------- connection requests */

/* Guards the lists of requests, and their ownership */
static DEFINE_MUTEX(ksk_req_mutex);
static LIST_HEAD(ksk_listeners);

/* While the request comes in, every event of the socket queues its work item. */
static void ksk_req_event_cb(struct sock *sk)
{
	struct ksk_req *req = sk->sk_user_data;

	mod_delayed_work(ksk_wq_for(&req->listener->tun), &req->work, 0);
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
	/* the whole request may have arrived already; without the lock @req may be gone */
	mod_delayed_work(ksk_wq_for(&req->listener->tun), &req->work, 0);
	release_sock(sk);
}

/* ksk_req_attach() behind the handshake of TLS. kTLS keeps its callback for free space. */
static void ksk_req_attach_tls(struct ksk_req *req)
{
	struct sock *sk = req->sock->sk;

	lock_sock(sk);
	write_lock_bh(&sk->sk_callback_lock);
	req->tls->saved = (struct ksk_cbs) {
		.data_ready = sk->sk_data_ready,
		.write_space = sk->sk_write_space,
		.state_change = sk->sk_state_change,
		.error_report = sk->sk_error_report,
	};
	sk->sk_user_data = req;
	sk->sk_data_ready = ksk_req_event_cb;
	sk->sk_state_change = ksk_req_event_cb;
	sk->sk_error_report = ksk_req_event_cb;
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

/* Restore the callbacks of the request's socket, which has them while a handshake runs. */
static void ksk_req_restore(struct ksk_req *req)
{
	struct sock *sk = req->sock->sk;

	lock_sock(sk);
	if (!req->tls)
		ksk_req_detach(sk, &req->listener->saved);
	else if (sk->sk_user_data == req)
		ksk_req_detach(sk, &req->tls->saved);
	release_sock(sk);
}

/* Count and report a peer that sent no valid request. */
static void ksk_req_violated(struct ksk_req *req)
{
	struct sockaddr_storage peer = {};

	lockdep_assert_held(&ksk_req_mutex);
	req->listener->violations++;
	kernel_getpeername(req->sock, (struct sockaddr *)&peer);
	kofi_violation(req->listener->obj, (struct sockaddr *)&peer, "bad request");
}

/* The oldest request that waits for room in the backlog is tried again. */
static void ksk_listener_resume(struct ksk_listener *l)
{
	struct ksk_req *req;

	list_for_each_entry(req, &l->reqs, node)
		if (req->state == KSK_REQ_WAITING) {
			WRITE_ONCE(req->state, KSK_REQ_PENDING);
			mod_delayed_work(ksk_wq_for(&l->tun), &req->work, 0);
			return;
		}
}

/* Off its list: the caller owns it. */
static void ksk_req_unlink(struct ksk_req *req)
{
	struct ksk_listener *l = req->listener;

	lockdep_assert_held(&ksk_req_mutex);

	list_del_init(&req->node);
	if (req->state == KSK_REQ_DELIVERED)
		l->delivered--;
	else
		l->pending--;
	if (l->closing)
		return;
	/* there may be room for another one now */
	if (l->delivered < l->backlog)
		ksk_listener_resume(l);
	mod_delayed_work(ksk_wq_for(&l->tun), &l->work, 0);
}

/**
 * ksk_req_free - forget a request
 * @req: owned by the caller, and its work item not running. Its connection,
 *	unless it has been adopted, is reset.
 *
 * Context: process, may sleep.
 */
void ksk_req_free(struct ksk_req *req)
{
	ksk_tls_free(req->tls);
	if (req->sock) {
		ksk_socket_abort(req->sock);
		ksk_socket_release(req->sock);
	}
	kfree(req);
}

/*
 * The request is complete. Returns false if its owner does not want it, or the
 * listener is being closed.
 */
static bool ksk_req_deliver(struct ksk_req *req)
{
	struct ksk_listener *l = req->listener;
	void *prepared = l->ops->prepare(req);
	bool stays = false;

	if (!prepared)
		return false;
	mutex_lock(&ksk_req_mutex);
	if (list_empty(&req->node))
		goto unlock;
	stays = true;
	if (l->delivered >= l->backlog) {
		WRITE_ONCE(req->state, KSK_REQ_WAITING);
	} else if (l->ops->deliver(req, prepared)) {
		prepared = NULL;
		WRITE_ONCE(req->state, KSK_REQ_DELIVERED);
		l->pending--;
		l->delivered++;
		ksk_cm_step(l->obj, "request", 0);
	} else {
		stays = false;
		l->lost++;
	}
unlock:
	mutex_unlock(&ksk_req_mutex);
	if (prepared)
		l->ops->discard(prepared);
	return stays;
}

static void ksk_req_wake(void *arg)
{
	struct ksk_req *req = arg;

	mod_delayed_work(ksk_wq_for(&req->listener->tun), &req->work, 0);
}

/*
 * Request the handshake of TLS, or get its result. Returns 0 for an authorised peer, -EAGAIN
 * while the handshake runs or before it begins, and -EACCES.
 */
static int ksk_req_secure(struct ksk_req *req)
{
	struct ksk_tls *t = req->tls;
	int err;

	if (t->key)
		return 0;
	err = t->asked ? ksk_tls_result(t, req->sock) : ksk_tls_hello(t, req->sock);
	if (!err && t->key) {
		ksk_req_attach_tls(req);
		return 0;
	}
	if (!err || err == -EINPROGRESS || err == -EAGAIN)
		return -EAGAIN;
	ksk_cm_step(req->listener->obj, "refused", err);
	return -EACCES;
}

/* Read the request. As ksk_cm_read(). */
static int ksk_req_read(struct ksk_req *req)
{
	struct sock *sk = req->sock->sk;
	int err;

	if (req->tls)
		return ksk_req_secure(req) ? :
		       ksk_cm_read_tls(req->tls, req->sock, &req->cm);
	lock_sock(sk);
	err = ksk_cm_read(sk, &req->cm);
	release_sock(sk);
	return err;
}

/* Time until the work item runs again, in jiffies */
static long ksk_req_delay(const struct ksk_req *req)
{
	long left = max_t(long, READ_ONCE(req->deadline) - jiffies, 1);

	/* too many handshakes at the same time */
	if (req->tls && !req->tls->asked)
		left = min_t(long, left, ksk_tls_pause(req->tls));
	return left;
}

static void ksk_req_work(struct work_struct *work)
{
	struct ksk_req *req = container_of(to_delayed_work(work),
					   struct ksk_req, work);
	unsigned int noio;
	bool own = false;
	int err;

	/* a wake-up from before it was delivered */
	if (READ_ONCE(req->state) == KSK_REQ_DELIVERED)
		return;

	noio = ksk_memalloc_save(&req->listener->tun);
	err = ksk_req_read(req);
	if (err == 1 && req->cm.hdr.type != KSK_CM_REQUEST)
		err = -EPROTO;
	if (err == -EAGAIN && time_after_eq(jiffies, READ_ONCE(req->deadline)))
		err = -ETIMEDOUT;
	if (err == -EAGAIN) {
		queue_delayed_work(ksk_wq_for(&req->listener->tun), &req->work,
				   ksk_req_delay(req));
		goto out;
	}
	ksk_req_restore(req);
	if (err == 1 && ksk_req_deliver(req))
		goto out;

	mutex_lock(&ksk_req_mutex);
	if (!list_empty(&req->node)) {
		ksk_cm_step(req->listener->obj, "dropped", err);
		if (err == -EPROTO)
			ksk_req_violated(req);
		else if (err == -ETIMEDOUT && req->state == KSK_REQ_EVICTED)
			req->listener->evicted++;
		else if (err == -ETIMEDOUT)
			req->listener->timeouts++;
		else if (err == -EACCES)
			req->listener->unauthenticated++;
		ksk_req_unlink(req);
		own = true;
	}
	mutex_unlock(&ksk_req_mutex);
	if (own) {
		if (req->tls)
			ksk_tls_stop(req->tls, req->sock);
		/* it cannot be queued again, but may be queued now */
		cancel_delayed_work(&req->work);
		ksk_req_free(req);
	}
out:
	ksk_memalloc_restore(noio);
}

static void ksk_req_new(struct ksk_listener *l, struct socket *sock)
{
	struct ksk_req *req = kzalloc(sizeof(*req), GFP_KERNEL);

	ksk_socket_accepted(sock);
	if (l->tls.mode && ksk_tls_file(sock)) {
		kfree(req);
		return;
	}
	if (req && l->tls.mode) {
		req->tls = ksk_tls_new(&l->tls, true);
		if (!req->tls) {
			kfree(req);
			req = NULL;
		} else {
			req->tls->wake = ksk_req_wake;
			req->tls->arg = req;
		}
	}
	if (!req) {
		ksk_socket_abort(sock);
		ksk_socket_release(sock);
		return;
	}
	req->fid.fclass = FI_CLASS_CONNREQ;
	req->listener = l;
	req->sock = sock;
	req->deadline = jiffies + msecs_to_jiffies(l->tun.handshake_timeout);
	INIT_DELAYED_WORK(&req->work, ksk_req_work);

	mutex_lock(&ksk_req_mutex);
	list_add_tail(&req->node, &l->reqs);
	l->accepted++;
	l->pending++;
	mutex_unlock(&ksk_req_mutex);
	if (!req->tls) {
		ksk_req_attach(req);
		return;
	}
	/* inherited from the listener */
	lock_sock(sock->sk);
	ksk_req_detach(sock->sk, &l->saved);
	/* as in ksk_req_attach() */
	mod_delayed_work(ksk_wq_for(&l->tun), &req->work, 0);
	release_sock(sock->sk);
}

/* Find a request by its handle, which need not be one. */
static struct ksk_req *ksk_req_find(fid_t handle)
{
	struct ksk_listener *l;
	struct ksk_req *req;

	lockdep_assert_held(&ksk_req_mutex);

	list_for_each_entry(l, &ksk_listeners, node)
		list_for_each_entry(req, &l->reqs, node)
			if (&req->fid == handle && req->state == KSK_REQ_DELIVERED)
				return req;
	return NULL;
}

/**
 * ksk_req_take - take over a request of a consumer
 * @net: namespace of the request. The handle may be stale, and its memory may belong
 *	to another request
 * @l: listener of the request, NULL for any
 * @handle: handle of the request
 * @req: receives the request
 *
 * Context: process, may sleep.
 * Return: 0, or -EINVAL if @handle is no request that waits for an answer.
 */
int ksk_req_take(struct net *net, const struct ksk_listener *l, fid_t handle,
		 struct ksk_req **req)
{
	mutex_lock(&ksk_req_mutex);
	*req = ksk_req_find(handle);
	if (*req && (!net_eq((*req)->listener->net, net) ||
		     (l && (*req)->listener != l)))
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
 * ksk_req_next - own the oldest request that waits for an answer
 * @l: the listener
 *
 * Context: process, may sleep.
 * Return: the request, or NULL.
 */
struct ksk_req *ksk_req_next(struct ksk_listener *l)
{
	struct ksk_req *req;

	mutex_lock(&ksk_req_mutex);
	list_for_each_entry(req, &l->reqs, node)
		if (req->state == KSK_REQ_DELIVERED)
			break;
	if (list_entry_is_head(req, &l->reqs, node))
		req = NULL;
	else
		ksk_req_unlink(req);
	mutex_unlock(&ksk_req_mutex);
	if (req)
		cancel_delayed_work_sync(&req->work);
	return req;
}

/**
 * ksk_req_answer - send the answer to a request
 * @req: owned by the caller
 * @type: KSK_CM_ACCEPT, or KSK_CM_REJECT
 * @ext: KSK_EXT_* that both sides know
 * @data: private data
 * @len: bytes of @data
 *
 * After a reject the connection is gone.
 *
 * Context: process, may sleep; not for the network.
 * Return: 0, or an error: then the connection cannot be used.
 */
int ksk_req_answer(struct ksk_req *req, u8 type, u32 ext, const void *data,
		   size_t len)
{
	struct sock *sk = req->sock->sk;
	int err;

	ksk_cm_format(&req->cm, type, ext, data, len);
	if (req->tls) {
		err = ksk_cm_send(req->sock, &req->cm, true);
	} else {
		lock_sock(sk);
		ksk_socket_gfp(sk, GFP_NOIO);
		err = ksk_cm_send(req->sock, &req->cm, false);
		ksk_socket_gfp(sk, GFP_ATOMIC);
		release_sock(sk);
	}
	if (!err && type == KSK_CM_REJECT) {
		/* a reset would overtake the answer */
		if (req->tls)
			ksk_tls_shutdown(req->tls, req->sock);
		else
			ksk_socket_shutdown(req->sock);
		ksk_socket_release(req->sock);
		req->sock = NULL;
	}
	return err;
}

/**
 * ksk_req_adopt - take the connection out of a request
 * @req: owned by the caller
 * @big_endian: set to the connection's byte order
 * @ext: set to KSK_EXT_* both sides know
 * @tls: set to the TLS of the connection, which is the caller's, too; NULL without
 *
 * Return: the socket, the caller's now.
 */
struct socket *ksk_req_adopt(struct ksk_req *req, bool *big_endian,
			     u32 *ext, struct ksk_tls **tls)
{
	struct socket *sock = req->sock;

	*big_endian = ksk_cm_big_endian(&req->cm);
	*ext = ksk_cm_ext(&req->cm);
	*tls = req->tls;
	req->tls = NULL;
	req->sock = NULL;
	return sock;
}

/* -------------------------------------------------------------- listening */

static void ksk_listener_data_ready(struct sock *sk)
{
	struct ksk_listener *l;

	/*
	 * Called with the child's lock. A child that has not been accepted has
	 * inherited callback and pointer: it is none of ours, nor is its lock.
	 */
	if (READ_ONCE(sk->sk_state) != TCP_LISTEN)
		return;
	read_lock_bh(&sk->sk_callback_lock);
	l = sk->sk_user_data;
	if (l)
		mod_delayed_work(ksk_wq_for(&l->tun), &l->work, 0);
	read_unlock_bh(&sk->sk_callback_lock);
}

static void ksk_listener_detach(struct ksk_listener *l, struct sock *sk)
{
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_data_ready = l->saved.data_ready;
	sk->sk_user_data = NULL;
	write_unlock_bh(&sk->sk_callback_lock);
}

/* Abort the oldest handshake if it has had its share of the time. */
static void ksk_listener_evict(struct ksk_listener *l)
{
	long wait, limit = msecs_to_jiffies(l->tun.handshake_timeout);
	struct ksk_req *req;

	list_for_each_entry(req, &l->reqs, node)
		if (req->state < KSK_REQ_WAITING)
			break;
	if (list_entry_is_head(req, &l->reqs, node))
		return;
	wait = req->deadline - jiffies - limit + limit / 8;
	if (wait > 0) {
		queue_delayed_work(ksk_wq_for(&l->tun), &l->work, wait);
	} else if (time_before(jiffies, req->deadline)) {
		WRITE_ONCE(req->state, KSK_REQ_EVICTED);
		WRITE_ONCE(req->deadline, jiffies);
		/* its work item makes room, and queues the listener's again */
		mod_delayed_work(ksk_wq_for(&req->listener->tun), &req->work, 0);
	}
}

/* Can another connection be accepted? If not, the listener's work item is queued later. */
static bool ksk_listener_room(struct ksk_listener *l)
{
	bool room = false;

	mutex_lock(&ksk_req_mutex);
	if (l->closing || l->delivered >= l->backlog)
		goto unlock;
	room = l->pending < READ_ONCE(ksk_max_pending);
	if (!room)
		ksk_listener_evict(l);
unlock:
	mutex_unlock(&ksk_req_mutex);
	return room;
}

static void ksk_listener_work(struct work_struct *work)
{
	struct ksk_listener *l = container_of(to_delayed_work(work),
					      struct ksk_listener, work);
	unsigned int noio = ksk_memalloc_save(&l->tun);
	int err = 0, n;

	for (n = 0; n < KSK_ACCEPT_RUN && ksk_listener_room(l); n++) {
		struct socket *sock;

		err = kernel_accept(l->sock, &sock, O_NONBLOCK);
		if (err)
			break;
		ksk_req_new(l, sock);
	}
	if (n == KSK_ACCEPT_RUN)
		mod_delayed_work(ksk_wq_for(&l->tun), &l->work, 0);
	/* out of memory or the like: TCP does not tell us again */
	if (err && err != -EAGAIN && err != -EINVAL)
		queue_delayed_work(ksk_wq_for(&l->tun), &l->work, msecs_to_jiffies(100));
	ksk_memalloc_restore(noio);
}

/**
 * ksk_listener_start - listen
 * @l: a listener that does not yet
 *
 * Context: process, may sleep.
 * Return: 0, or a negative error; then it can be tried again.
 */
int ksk_listener_start(struct ksk_listener *l)
{
	struct socket *sock;
	struct sock *sk;
	int err;

	err = ksk_socket_create(l->net, l->src.sa.sa_family ? : AF_INET,
				SOCK_STREAM, l->ifindex, &sock);
	if (err)
		return err;
	err = ksk_socket_bind(sock, &l->src);
	if (err)
		goto release;
	ksk_socket_tune(sock, &l->tun, l->info);

	sk = sock->sk;
	write_lock_bh(&sk->sk_callback_lock);
	l->saved = (struct ksk_cbs) {
		.data_ready = sk->sk_data_ready,
		.write_space = sk->sk_write_space,
		.state_change = sk->sk_state_change,
		.error_report = sk->sk_error_report,
	};
	sk->sk_user_data = l;
	sk->sk_data_ready = ksk_listener_data_ready;
	write_unlock_bh(&sk->sk_callback_lock);

	l->sock = sock;
	err = kernel_listen(sock, l->backlog);
	if (!err) {
		ksk_cm_step(l->obj, "listen", 0);
		return 0;
	}
	l->sock = NULL;
	ksk_listener_detach(l, sk);
release:
	ksk_socket_release(sock);
	return err;
}

/* The next request, off the list; its work item may still run. */
static struct ksk_req *ksk_listener_unlink(struct ksk_listener *l)
{
	struct ksk_req *req;

	mutex_lock(&ksk_req_mutex);
	req = list_first_entry_or_null(&l->reqs, struct ksk_req, node);
	if (req)
		ksk_req_unlink(req);
	mutex_unlock(&ksk_req_mutex);
	return req;
}

/**
 * ksk_listener_stop - stop accepting, and drop requests that have not been taken
 * @l: the listener
 *
 * When this returns, @l->ops are no longer called. The socket stays bound
 * until ksk_listener_exit().
 *
 * Context: process, may sleep.
 */
void ksk_listener_stop(struct ksk_listener *l)
{
	struct ksk_req *req;

	mutex_lock(&ksk_req_mutex);
	l->closing = true;
	mutex_unlock(&ksk_req_mutex);

	if (l->sock) {
		lock_sock(l->sock->sk);
		ksk_listener_detach(l, l->sock->sk);
		release_sock(l->sock->sk);
	}
	cancel_delayed_work_sync(&l->work);

	while ((req = ksk_listener_unlink(l))) {
		ksk_req_restore(req);
		cancel_delayed_work_sync(&req->work);
		if (req->tls) {
			/*
			 * The agent may have queued the work item again, and that may set
			 * callbacks, which may queue it.
			 */
			ksk_tls_stop(req->tls, req->sock);
			cancel_delayed_work_sync(&req->work);
			ksk_req_restore(req);
			cancel_delayed_work_sync(&req->work);
		}
		ksk_req_free(req);
	}
	mutex_lock(&ksk_req_mutex);
	list_del(&l->node);
	mutex_unlock(&ksk_req_mutex);
}

/**
 * ksk_listener_exit - close the socket
 * @l: a listener that has been stopped
 *
 * Context: process, may sleep.
 */
void ksk_listener_exit(struct ksk_listener *l)
{
	if (l->sock)
		ksk_socket_release(l->sock);
}

/**
 * ksk_listener_init - make a listener
 * @l: the listener, zeroed; its owner has set @ops, @net, @info, @obj, @src and @ifindex
 */
void ksk_listener_init(struct ksk_listener *l)
{
	ksk_tunables_init(&l->tun);
	l->backlog = KSK_BACKLOG;
	INIT_DELAYED_WORK(&l->work, ksk_listener_work);
	INIT_LIST_HEAD(&l->reqs);
	mutex_lock(&ksk_req_mutex);
	list_add_tail(&l->node, &ksk_listeners);
	mutex_unlock(&ksk_req_mutex);
}

/**
 * ksk_listener_stats - report statistics of requests before delivery
 * @l: the listener
 * @fn: takes a statistic
 * @arg: for @fn
 *
 * Context: process, may sleep.
 * Return: number of connections without a valid request.
 */
unsigned long ksk_listener_stats(struct ksk_listener *l, kofi_stat_fn fn, void *arg)
{
	unsigned long violations;
	struct ksk_req *req;
	u64 waiting = 0;

	mutex_lock(&ksk_req_mutex);
	list_for_each_entry(req, &l->reqs, node)
		waiting += req->state == KSK_REQ_WAITING;
	fn(arg, "pending", l->pending - waiting);
	fn(arg, "waiting", waiting);
	fn(arg, "evicted", l->evicted);
	fn(arg, "timeouts", l->timeouts);
	violations = l->violations;
	mutex_unlock(&ksk_req_mutex);
	return violations;
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Endpoints: life, socket callbacks, and who runs when.
 *
 * An endpoint gets its socket once, by connecting or by taking over a
 * connection request, and keeps it until it is freed; so a post may look at
 * the socket at any time. Three things run the stream: the socket's callbacks
 * and the softirq item read and send, the work item only sends. All do it with
 * the socket locked.
 *
 * The end of a stream is always the same. Whoever finds a reason writes it
 * into ep->dead, once, and queues the work item. That locks the socket,
 * completes everything, reports the event, and only then resets or shuts the
 * connection down. Close and drain do the same in their own context. Nothing
 * waits for the network.
 *
 * A peer that no longer answers is found by TCP's keepalive while the
 * connection is idle, and by our own look at what it has not answered while
 * data is out. TCP_USER_TIMEOUT is not used: it would end connections whose
 * peer answers but has its window closed.
 */
#include <linux/slab.h>
#include <net/tcp.h>
#include <trace/events/sock.h>

#include "sock.h"
#include "sock_trace.h"

/* Bytes per call of the sender in the work item, and its share of time */
#define KSK_EP_CHUNK	SZ_64K
#define KSK_EP_SLICE	NSEC_PER_MSEC

/* Doublings of the time between probes of a closed window, from 0.2 s on */
#define KSK_EP_BACKOFF	4

/**
 * ksk_ep_queue - have the work item run
 * @ep: the endpoint
 *
 * It runs where the consumer wants it, otherwise on the CPU the connection's
 * packets arrive on: that has the socket in its cache, and its completions stay
 * where the others are. A CPU that is offline, or goes there meanwhile, is no
 * place; its work is done elsewhere.
 *
 * Context: any.
 */
void ksk_ep_queue(struct ksk_ep *ep)
{
	struct socket *sock = READ_ONCE(ep->sock);
	int cpu = ep->tun.cpu;

	if (cpu < 0 && sock)
		cpu = READ_ONCE(sock->sk->sk_incoming_cpu);
	if (cpu < 0 || cpu >= (int)nr_cpu_ids || !cpu_online(cpu))
		cpu = WORK_CPU_UNBOUND;
	queue_work_on(cpu, ksk_wq, &ep->work);
}

/**
 * ksk_ep_abort - the stream must end
 * @ep: the endpoint
 * @err: why, a positive error code; ESHUTDOWN if the peer has closed
 *
 * The work item does the rest.
 *
 * Context: any.
 */
void ksk_ep_abort(struct ksk_ep *ep, int err)
{
	if (!cmpxchg(&ep->dead, 0, err))
		ksk_ep_queue(ep);
}

/* ------------------------------------------------------- socket callbacks */

/*
 * All four are called with the socket locked, which is also what ksk_ep_detach
 * has when it takes them away: sk_user_data is valid.
 *
 * Reading is for the socket's spinlock alone. While a process owns the socket,
 * TCP counts its backlog as memory in use: what is read then is acknowledged
 * with a small window, or none, and no call of TCP's opens it again, so that
 * the peer would wait for its probe timer. That holds in the callbacks, which
 * TCP calls for the backlog, and for the owner, as packets get there while it
 * reads.
 */

/* The socket is owned: have the stream run when it no longer is. */
static void ksk_ep_after_owner(struct ksk_ep *ep)
{
	/* the work item sees to it itself, at its end */
	if (!READ_ONCE(ep->in_work))
		ksk_ep_queue(ep);
}

static void ksk_ep_data_ready(struct sock *sk)
{
	struct ksk_ep *ep = sk->sk_user_data;

	trace_sk_data_ready(sk);
	if (ep->phase != KSK_EP_ESTABLISHED) {
		ksk_ep_queue(ep);
		return;
	}
	if (sock_owned_by_user(sk)) {
		ksk_ep_after_owner(ep);
		return;
	}
	if (ksk_rx_run(ep))
		ksk_ep_softirq(ep);
	if (ksk_tx_ready(ep)) {
		ksk_stat_inc(&ep->stats.tx_inline);
		if (ksk_tx_run(ep, ksk_inline_max))
			ksk_ep_queue(ep);
	}
}

static void ksk_ep_write_space(struct sock *sk)
{
	struct ksk_ep *ep = sk->sk_user_data;

	if (!sk_stream_is_writeable(sk))
		return;
	clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	if (!ksk_tx_space(ep))
		return;
	if (sock_owned_by_user(sk))
		ksk_ep_after_owner(ep);
	else
		ksk_ep_softirq(ep);
}

static void ksk_ep_state_change(struct sock *sk)
{
	struct ksk_ep *ep = sk->sk_user_data;

	if (ep->phase != KSK_EP_ESTABLISHED) {
		ksk_ep_queue(ep);
		return;
	}
	if (sk->sk_state == TCP_CLOSE)
		ksk_ep_abort(ep, sk->sk_err ? : ECONNRESET);
	else if (sock_owned_by_user(sk))
		ksk_ep_after_owner(ep);
	else if (ksk_rx_run(ep))
		ksk_ep_softirq(ep);
}

static void ksk_ep_error_report(struct sock *sk)
{
	struct ksk_ep *ep = sk->sk_user_data;

	if (ep->phase == KSK_EP_ESTABLISHED && sk->sk_err)
		ksk_ep_abort(ep, sk->sk_err);
	else
		ksk_ep_queue(ep);
}

/**
 * ksk_ep_attach - make a socket the endpoint's
 * @ep: the endpoint, which has none
 * @sock: the socket; events before now may have been missed
 * @phase: enum ksk_ep_phase
 *
 * Context: process, may sleep; cm_mutex held.
 */
void ksk_ep_attach(struct ksk_ep *ep, struct socket *sock, int phase)
{
	struct sock *sk = sock->sk;

	lock_sock(sk);
	write_lock_bh(&sk->sk_callback_lock);
	ep->saved = (struct ksk_cbs) {
		.data_ready = sk->sk_data_ready,
		.write_space = sk->sk_write_space,
		.state_change = sk->sk_state_change,
		.error_report = sk->sk_error_report,
	};
	sk->sk_user_data = ep;
	sk->sk_data_ready = ksk_ep_data_ready;
	sk->sk_write_space = ksk_ep_write_space;
	sk->sk_state_change = ksk_ep_state_change;
	sk->sk_error_report = ksk_ep_error_report;
	write_unlock_bh(&sk->sk_callback_lock);
	ep->phase = phase;
	WRITE_ONCE(ep->sock, sock);
	if (READ_ONCE(ep->dead))
		ksk_ep_queue(ep);
	release_sock(sk);
}

/**
 * ksk_ep_detach - take our callbacks off the socket
 * @ep: the endpoint
 *
 * Context: process, may sleep.
 */
void ksk_ep_detach(struct ksk_ep *ep)
{
	struct sock *sk = ep->sock->sk;

	lock_sock(sk);
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_data_ready = ep->saved.data_ready;
	sk->sk_write_space = ep->saved.write_space;
	sk->sk_state_change = ep->saved.state_change;
	sk->sk_error_report = ep->saved.error_report;
	sk->sk_user_data = NULL;
	write_unlock_bh(&sk->sk_callback_lock);
	release_sock(sk);
}

/* ------------------------------------------------------ the softirq item */

static int ksk_ep_poll(struct irq_poll *iop, int weight)
{
	struct ksk_ep *ep = container_of(iop, struct ksk_ep, poll);
	struct sock *sk = ep->sock->sk;

	/*
	 * Complete first: what is scheduled from now on runs again, so nothing
	 * is lost. in_poll tells ksk_ep_close() that we still run.
	 */
	atomic_inc(&ep->in_poll);
	irq_poll_complete(iop);
	smp_mb();	/* that, before what is posted; see ksk_tx_leave() */

	bh_lock_sock(sk);
	if (sock_owned_by_user(sk)) {
		ksk_ep_after_owner(ep);
	} else {
		if (ksk_rx_run(ep))
			irq_poll_sched(iop);
		/* reset before we were connected: no callback will tell */
		else if (ep->phase == KSK_EP_ESTABLISHED &&
			 sk->sk_state == TCP_CLOSE)
			ksk_ep_abort(ep, sk->sk_err ? : ECONNRESET);
		ksk_stat_inc(&ep->stats.tx_inline);
		if (ksk_tx_run(ep, ksk_inline_max))
			ksk_ep_queue(ep);
	}
	bh_unlock_sock(sk);

	if (atomic_dec_and_test(&ep->in_poll))
		wake_up_var(&ep->in_poll);
	return 0;
}

/**
 * ksk_ep_softirq - have the stream run in softirq context
 * @ep: a connected endpoint
 *
 * Context: any.
 */
void ksk_ep_softirq(struct ksk_ep *ep)
{
	if (in_hardirq() || irqs_disabled()) {
		irq_poll_sched(&ep->poll);
		return;
	}
	/* otherwise raising it wakes ksoftirqd */
	local_bh_disable();
	irq_poll_sched(&ep->poll);
	local_bh_enable();
}

/* ----------------------------------------------------------- the work item */

/*
 * Complete everything and report the end. Returns whether the connection must
 * be reset; the caller does that, or shuts it down, when it has unlocked.
 */
static bool ksk_ep_end(struct ksk_ep *ep)
{
	int phase = ep->phase, err = READ_ONCE(ep->dead);

	trace_kofi_sock_cm(ep->base.obj.id, "end", err);
	ep->phase = KSK_EP_DEAD;
	ksk_tx_flush(ep);
	ksk_rx_flush(ep);

	if (phase == KSK_EP_ESTABLISHED)
		kofi_ep_disconnected(&ep->base);
	else if (phase != KSK_EP_REQUESTED)
		kofi_ep_connect_failed(&ep->base, err, err, NULL, 0);

	/* pages in TCP's queue come back only if it is emptied */
	return (err != ESHUTDOWN && err != ECANCELED) ||
	       atomic_read(&ep->zc_out) ||
	       test_bit(KSK_EP_HALF_SENT, &ep->flags);
}

static void ksk_ep_disconnect(struct ksk_ep *ep, bool reset)
{
	if (reset)
		ksk_socket_abort(ep->sock);
	else
		ksk_socket_shutdown(ep->sock);
}

/* Send, for as long as the time slice lasts. */
static bool ksk_ep_send(struct ksk_ep *ep)
{
	struct sock *sk = ep->sock->sk;
	bool more;
	u64 end;

	/* process context: memory may be waited for, also by who ran out of it */
	ksk_socket_gfp(sk, GFP_NOIO);
	ksk_tx_space(ep);
	ksk_stat_inc(&ep->stats.tx_work);
	end = ktime_get_ns() + KSK_EP_SLICE;
	do {
		more = ksk_tx_run(ep, KSK_EP_CHUNK);
	} while (more && ktime_get_ns() < end);
	ksk_socket_gfp(sk, GFP_ATOMIC);
	return more;
}

static void ksk_ep_work(struct work_struct *work)
{
	struct ksk_ep *ep = container_of(work, struct ksk_ep, work);
	struct socket *sock = READ_ONCE(ep->sock);
	bool more = false, end = false, reset = false, push;
	unsigned int noio;

	if (!sock) {
		/*
		 * The device went away before there was a connection. A drain
		 * must not return while this is half done.
		 */
		mutex_lock(&ep->cm_mutex);
		if (!ep->sock) {
			ksk_tx_flush(ep);
			ksk_rx_flush(ep);
		}
		mutex_unlock(&ep->cm_mutex);
		return;
	}

	noio = ksk_memalloc_save(ep);
	lock_sock(sock->sk);
	WRITE_ONCE(ep->in_work, true);
	if (ep->phase == KSK_EP_ESTABLISHED && !READ_ONCE(ep->dead))
		more = ksk_ep_send(ep);
	else if (ep->phase != KSK_EP_DEAD && !READ_ONCE(ep->dead))
		ksk_cm_work(ep);
	if (ep->phase != KSK_EP_DEAD && READ_ONCE(ep->dead)) {
		reset = ksk_ep_end(ep);
		end = true;
	}
	push = test_and_clear_bit(KSK_EP_PUSH, &ep->flags) &&
	       ksk_tx_pushes(ep);
	release_sock(sock->sk);
	/*
	 * Before the softirq item runs: if that finds another owner, it relies
	 * on what comes after that one.
	 */
	WRITE_ONCE(ep->in_work, false);

	if (end)
		ksk_ep_disconnect(ep, reset);
	else if (push)
		tcp_sock_set_cork(sock->sk, false);
	if (!end && READ_ONCE(ep->phase) == KSK_EP_ESTABLISHED)
		ksk_ep_softirq(ep);
	if (!end && more)
		ksk_ep_queue(ep);
	ksk_memalloc_restore(noio);
}

/* -------------------------------------------------------- the silent peer */

static unsigned long ksk_ep_watch_period(struct ksk_ep *ep)
{
	return max(msecs_to_jiffies(ep->tun.silence_timeout) / 4, 1UL);
}

/*
 * Is there something the peer has not answered yet? The last transmission of
 * data, or a probe of a closed window. What was sent and answered does not
 * count, even if it is not acknowledged: the peer is alive.
 */
static bool ksk_ep_unanswered(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return (tp->packets_out && (s32)(tp->lsndtime - tp->rcv_tstamp) > 0) ||
	       inet_csk(sk)->icsk_probes_out;
}

static void ksk_ep_watch_stream(struct ksk_ep *ep)
{
	struct sock *sk = ep->sock->sk;
	struct inet_connection_sock *icsk = inet_csk(sk);
	u32 now = tcp_jiffies32, limit;

	limit = msecs_to_jiffies(ep->tun.silence_timeout);
	/* out-of-window segments, as probes are, are answered twice a second */
	if (!tcp_sk(sk)->packets_out)
		limit += HZ;
	if (!ksk_ep_unanswered(sk))
		ep->watch_base = now;
	else if (now - ep->watch_base > limit &&
		 now - tcp_sk(sk)->rcv_tstamp > limit)
		ksk_ep_abort(ep, ETIMEDOUT);

	/*
	 * TCP asks a peer whose window is closed ever more rarely, at last
	 * every two minutes. Keep it at a few seconds, to know when it is gone.
	 */
	if (!tcp_sk(sk)->packets_out && icsk->icsk_backoff > KSK_EP_BACKOFF) {
		icsk->icsk_backoff = KSK_EP_BACKOFF;
		/* nor is it TCP that counts how often it was asked */
		icsk->icsk_probes_out = min_t(u8, icsk->icsk_probes_out, 1);
	}
	queue_delayed_work(ksk_wq, &ep->watch, ksk_ep_watch_period(ep));
}

static void ksk_ep_watch(struct work_struct *work)
{
	struct ksk_ep *ep = container_of(to_delayed_work(work),
					 struct ksk_ep, watch);
	struct sock *sk = ep->sock->sk;

	lock_sock(sk);
	switch (ep->phase) {
	case KSK_EP_CONNECTING:
	case KSK_EP_REQUESTING:
		ksk_ep_abort(ep, ETIMEDOUT);
		break;
	case KSK_EP_ESTABLISHED:
		ksk_ep_watch_stream(ep);
		break;
	default:
		break;
	}
	release_sock(sk);
}

/**
 * ksk_ep_established - the connection stands
 * @ep: the endpoint
 * @data: private data the peer accepted with
 * @len: its length
 *
 * Context: locked, process.
 */
void ksk_ep_established(struct ksk_ep *ep, const void *data, size_t len)
{
	trace_kofi_sock_cm(ep->base.obj.id, "connected", 0);
	ksk_rx_init(&ep->rx);
	ep->phase = KSK_EP_ESTABLISHED;
	ep->watch_base = tcp_jiffies32;
	mod_delayed_work(ksk_wq, &ep->watch, ksk_ep_watch_period(ep));
	kofi_ep_connected(&ep->base, data, len);
	/* what the peer has sent behind its CM message */
	ksk_ep_queue(ep);
}

/* ------------------------------------------------------------------- life */

/**
 * ksk_ep_down - end the stream now
 * @ep: the endpoint
 * @connection: there must be one, or an attempt
 *
 * What fits is sent first. When this returns, everything has completed.
 *
 * Context: process, may sleep; never waits for the network, but for the device
 * where it still has pages that were sent without copying them.
 * Return: 0, or -ENOTCONN.
 */
int ksk_ep_down(struct ksk_ep *ep, bool connection)
{
	bool end = false, reset = false;
	struct sock *sk;
	unsigned int noio;
	int ret = 0;

	mutex_lock(&ep->cm_mutex);
	noio = ksk_memalloc_save(ep);
	if (!ep->sock) {
		if (connection) {
			ret = -ENOTCONN;
		} else {
			cmpxchg(&ep->dead, 0, ECANCELED);
			ksk_tx_flush(ep);
			ksk_rx_flush(ep);
		}
		goto unlock;
	}

	sk = ep->sock->sk;
	lock_sock(sk);
	if (ep->phase != KSK_EP_DEAD) {
		/* no pages from here on, which would turn the close into a reset */
		ep->tun.zerocopy_min = 0;
		ksk_tx_run(ep, sk->sk_sndbuf);
		cmpxchg(&ep->dead, 0, ECANCELED);
		reset = ksk_ep_end(ep);
		end = true;
	}
	release_sock(sk);
	if (end)
		ksk_ep_disconnect(ep, reset);
	ksk_zc_wait(ep);
unlock:
	ksk_memalloc_restore(noio);
	mutex_unlock(&ep->cm_mutex);
	return ret;
}

static void ksk_ep_drain(struct fid_ep *fid)
{
	ksk_ep_down(ksk_ep(fid), false);
}

static int ksk_ep_enable(struct fid_ep *fid)
{
	struct ksk_ep *ep = ksk_ep(fid);
	const struct fi_info *info = ep->base.info;
	int err = -READ_ONCE(ep->dead);

	if (err)
		return err;
	err = ksk_tx_init(ep, info->tx_attr->size);
	if (err)
		return err;
	err = ksk_rma_init(ep);
	if (err)
		goto free_tx;
	if (!ep->base.srx)
		err = kofi_rxq_init(&ep->rxq, &ep->base, info->rx_attr->size);
	if (err)
		goto free_rma;
	/*
	 * Killed meanwhile: what ended it found no queue to close. Pairs with
	 * the cmpxchg in ksk_ep_abort().
	 */
	smp_mb();
	if (READ_ONCE(ep->dead))
		ksk_ep_queue(ep);
	return 0;

free_rma:
	ksk_rma_exit(ep);
	ep->rsps = NULL;
free_tx:
	ksk_tx_exit(ep);
	return err;
}

/*
 * The socket is TCP's alone from now on, until what is queued has been sent. It
 * stays marked for the reserves, which is harmless, whereas sk_clear_memalloc()
 * is not: a packet from the reserves that was let in before would meet an
 * unmarked socket when the backlog is processed, which is a BUG().
 */
static void ksk_ep_release(struct ksk_ep *ep)
{
	unsigned int noio = ksk_memalloc_save(ep);

	ksk_socket_release(ep->sock);
	ksk_memalloc_restore(noio);
}

static int ksk_ep_close(struct fi_fid *fid)
{
	struct ksk_ep *ep = container_of(fid, struct ksk_ep, base.ep.fid);

	mutex_lock(&ksk_dom_mutex);
	list_del(&ep->domain_node);
	mutex_unlock(&ksk_dom_mutex);

	if (ep->sock)
		ksk_ep_detach(ep);
	timer_shutdown_sync(&ep->retry);
	cancel_delayed_work_sync(&ep->watch);
	irq_poll_disable(&ep->poll);
	wait_var_event(&ep->in_poll, !atomic_read(&ep->in_poll));
	cancel_work_sync(&ep->work);
	if (ep->sock)
		ksk_ep_release(ep);
	if (ep->reserves)
		static_branch_dec(&memalloc_socks_key);

	kofi_ep_exit(&ep->base);
	kofi_rxq_exit(&ep->rxq);
	ksk_rma_exit(ep);
	ksk_tx_exit(ep);
	if (ep->req)
		ksk_req_free(ep->req);
	mutex_destroy(&ep->cm_mutex);
	kfree(ep);
	return 0;
}

/* ---------------------------------------------------------------- options */

static int ksk_ep_control(struct fi_fid *fid, int command, void *arg)
{
	struct ksk_ep *ep = container_of(fid, struct ksk_ep, base.ep.fid);
	struct fi_fid_var *var = arg;

	if (command != FI_SET_VAL && command != FI_GET_VAL)
		return -ENOSYS;
	if (!var || !var->val)
		return -EINVAL;
	if (command == FI_GET_VAL)
		return ksk_tunables_get(&ep->tun, var->name, var->val);
	if (READ_ONCE(ep->base.state) > KOFI_EP_ENABLED)
		return -EBUSY;
	return ksk_tunables_set(&ep->tun, var->name, var->val);
}

static size_t *ksk_ep_opt(struct ksk_ep *ep, int name)
{
	switch (name) {
	case FI_OPT_TX_SIZE:
		return &ep->base.info->tx_attr->size;
	case FI_OPT_RX_SIZE:
		return &ep->base.info->rx_attr->size;
	case FI_OPT_MAX_MSG_SIZE:
		return &ep->base.info->ep_attr->max_msg_size;
	case FI_OPT_INJECT_MSG_SIZE:
		return &ep->base.info->tx_attr->inject_size;
	default:
		return NULL;
	}
}

static int ksk_ep_getopt(fid_t fid, int level, int name, void *val,
			 size_t *len)
{
	struct ksk_ep *ep = container_of(fid, struct ksk_ep, base.ep.fid);
	size_t out, *opt = ksk_ep_opt(ep, name);

	if (level != FI_OPT_ENDPOINT)
		return -FI_ENOPROTOOPT;
	if (opt)
		out = *opt;
	else if (name == FI_OPT_CM_DATA_SIZE)
		out = KSK_CM_DATA_MAX;
	else if (name == FI_OPT_SEND_BUF_SIZE)
		out = ep->tun.sndbuf;
	else if (name == FI_OPT_RECV_BUF_SIZE)
		out = ep->tun.rcvbuf;
	else
		return -FI_ENOPROTOOPT;
	if (*len < sizeof(out)) {
		*len = sizeof(out);
		return -FI_ETOOSMALL;
	}
	*len = sizeof(out);
	*(size_t *)val = out;
	return 0;
}

static int ksk_ep_setopt(fid_t fid, int level, int name, const void *val,
			 size_t len)
{
	struct ksk_ep *ep = container_of(fid, struct ksk_ep, base.ep.fid);
	size_t in, limit, *opt = ksk_ep_opt(ep, name);

	if (level != FI_OPT_ENDPOINT)
		return -FI_ENOPROTOOPT;
	if (!opt && name != FI_OPT_SEND_BUF_SIZE &&
	    name != FI_OPT_RECV_BUF_SIZE)
		return -FI_ENOPROTOOPT;
	if (len != sizeof(in))
		return -EINVAL;
	if (READ_ONCE(ep->base.state) != KOFI_EP_IDLE)
		return -FI_EOPBADSTATE;
	in = *(const size_t *)val;

	switch (name) {
	case FI_OPT_TX_SIZE:
	case FI_OPT_RX_SIZE:
		limit = KSK_TX_RX_MAX;
		break;
	case FI_OPT_MAX_MSG_SIZE:
		limit = KSK_MSG_MAX;
		break;
	case FI_OPT_INJECT_MSG_SIZE:
		limit = KSK_INJECT_MAX;
		break;
	default:
		limit = INT_MAX / 2;
		break;
	}
	if (!in || in > limit)
		return -EINVAL;
	if (opt)
		*opt = in;
	else if (name == FI_OPT_SEND_BUF_SIZE)
		ep->tun.sndbuf = in;
	else
		ep->tun.rcvbuf = in;
	return 0;
}

static void ksk_ep_stats(struct kofi_obj *obj, kofi_stat_fn fn, void *arg)
{
	struct kofi_ep *base = container_of(obj, struct kofi_ep, obj);
	struct ksk_ep *ep = container_of(base, struct ksk_ep, base);

#define KSK_STAT(name) fn(arg, #name, READ_ONCE(ep->stats.name))
	KSK_STAT(tx_frames);
	fn(arg, "tx_wire_bytes", READ_ONCE(ep->stats.tx_bytes));
	KSK_STAT(tx_acks);
	KSK_STAT(tx_responses);
	KSK_STAT(tx_held);
	KSK_STAT(tx_inline);
	KSK_STAT(tx_work);
	KSK_STAT(tx_full);
	KSK_STAT(tx_retries);
	KSK_STAT(tx_pushes);
	KSK_STAT(tx_zc_bytes);
	KSK_STAT(tx_copy_bytes);
	KSK_STAT(tx_zc_copied);
	KSK_STAT(rx_frames);
	fn(arg, "rx_wire_bytes", READ_ONCE(ep->stats.rx_bytes));
	KSK_STAT(rx_acks);
	KSK_STAT(rx_responses);
	KSK_STAT(rx_stalls);
	KSK_STAT(rx_full);
	KSK_STAT(rx_truncated);
	KSK_STAT(rx_budget);
	KSK_STAT(violations);
#undef KSK_STAT
}

static ssize_t ksk_ep_cancel(struct fid_ep *fid, void *context)
{
	struct ksk_ep *ep = ksk_ep(fid);
	int err = kofi_ep_rx_state(&ep->base);

	if (err && err != -ESHUTDOWN)
		return err;
	/* drained before it was enabled */
	if (!ep->rxq.ops)
		return -ENOENT;
	return kofi_rxq_cancel(&ep->rxq, context);
}

/* ---------------------------------------------------------------- opening */

static const struct fi_ops ksk_ep_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= ksk_ep_close,
	.control	= ksk_ep_control,
};

static const struct fi_ops_ep ksk_ep_opt_ops = {
	.size		= sizeof(struct fi_ops_ep),
	.getopt		= ksk_ep_getopt,
	.setopt		= ksk_ep_setopt,
};

static const struct fi_ops_msg ksk_ep_msg_ops = {
	.size		= sizeof(struct fi_ops_msg),
	.sendmsg	= ksk_tx_post,
	.recvmsg	= ksk_rx_post,
	.cancel		= ksk_ep_cancel,
};

static const struct fi_ops_tagged ksk_ep_tagged_ops = {
	.size		= sizeof(struct fi_ops_tagged),
	.sendmsg	= ksk_tx_tpost,
	.recvmsg	= ksk_rx_tpost,
};

static const struct kofi_obj_ops ksk_ep_obj_ops = {
	.stats		= ksk_ep_stats,
};

static const struct kofi_ep_ops ksk_ep_ops = {
	.fid		= &ksk_ep_fid_ops,
	.ep		= &ksk_ep_opt_ops,
	.cm		= &ksk_ep_cm_ops,
	.msg		= &ksk_ep_msg_ops,
	.tagged		= &ksk_ep_tagged_ops,
	.rma		= &ksk_rma_ops,
	.obj		= &ksk_ep_obj_ops,
	.enable		= ksk_ep_enable,
	.drain		= ksk_ep_drain,
};

/* fi_endpoint() */
int ksk_endpoint(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **fid, void *context)
{
	struct ksk_domain *dom = container_of(domain, struct ksk_domain,
					      base.domain);
	struct ksk_req *req = NULL;
	struct ksk_ep *ep;
	int err;

	if (info->ep_attr->type != FI_EP_MSG ||
	    !ksk_tclass_known(info->tx_attr->tclass) ||
	    !ksk_tclass_known(info->domain_attr->tclass))
		return -EINVAL;
	if (!info->tx_attr->size || info->tx_attr->size > KSK_TX_RX_MAX ||
	    !info->rx_attr->size || info->rx_attr->size > KSK_TX_RX_MAX)
		return -EINVAL;
	if (info->src_addr &&
	    ksk_addr_check(info->src_addr, info->src_addrlen))
		return -EINVAL;

	ep = kzalloc_node(sizeof(*ep), GFP_KERNEL, dom->base.node);
	if (!ep)
		return -ENOMEM;
	ep->domain = dom;
	mutex_init(&ep->cm_mutex);
	ksk_tunables_init(&ep->tun);
	ep->phase = KSK_EP_UNUSED;
	irq_poll_init(&ep->poll, 1, ksk_ep_poll);
	atomic_set(&ep->in_poll, 0);
	INIT_WORK(&ep->work, ksk_ep_work);
	timer_setup(&ep->retry, ksk_tx_retry, 0);
	INIT_DELAYED_WORK(&ep->watch, ksk_ep_watch);
	spin_lock_init(&ep->tx_lock);
	ep->tx_state = KSK_TX_IDLE;
	INIT_LIST_HEAD(&ep->tx_posted);
	INIT_LIST_HEAD(&ep->tx_queue);
	INIT_LIST_HEAD(&ep->tx_wait);
	INIT_LIST_HEAD(&ep->tx_reads);
	ksk_rx_setup(ep);
	if (info->src_addr)
		memcpy(&ep->src, info->src_addr,
		       ksk_addr_len(info->src_addr));

	err = kofi_ep_init(&ep->base, domain, info, &ksk_ep_ops, context);
	if (err)
		goto free;
	if (info->handle) {
		err = ksk_req_take(dom->base.fabric->net, info->handle, &req);
		if (err)
			goto exit;
		mutex_lock(&ep->cm_mutex);
		ksk_ep_attach(ep, ksk_req_adopt(req, &ep->be, &ep->ext),
			      KSK_EP_REQUESTED);
		mutex_unlock(&ep->cm_mutex);
		ep->req = req;
	}

	mutex_lock(&ksk_dom_mutex);
	list_add_tail(&ep->domain_node, &dom->eps);
	if (!dom->ifindex)
		ksk_ep_abort(ep, ENETDOWN);
	mutex_unlock(&ksk_dom_mutex);
	*fid = &ep->base.ep;
	return 0;

exit:
	kofi_ep_exit(&ep->base);
free:
	timer_shutdown_sync(&ep->retry);
	mutex_destroy(&ep->cm_mutex);
	kfree(ep);
	return err;
}

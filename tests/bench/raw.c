// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The client over TCP sockets: what a careful author would write for one
 * protocol and one kind of memory, without any library. kofi_sock is measured
 * against it, so it does the same things in the same places: the same socket
 * options, a header of 16 bytes in front of each message, received in the
 * socket's data_ready straight into the posted buffer, sent from the post
 * itself if the socket's lock can be had, completions through irq_poll.
 *
 * Writes and reads are the exchange that kofi_sock makes of them: 24 bytes
 * more in the header, an acknowledgment for a write, an answer with the bytes
 * for a read.
 *
 * Locks: the socket's, then raw_side.lock, for the lists.
 */
#include <linux/in.h>
#include <linux/irq_poll.h>
#include <linux/net.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/tcp.h>
#include <linux/kofi/backport.h>

#include "bench.h"

enum raw_op { RAW_MSG, RAW_READ, RAW_ANSWER, RAW_WRITE, RAW_ACK };

struct raw_hdr {
	u8	op;
	u8	pad[7];
	__le64	size;
	/* RAW_READ and RAW_WRITE only */
	__le64	off;
	__le64	len;
	__le64	key;
};

#define RAW_HDR		16
#define RAW_HDR_RMA	40
static_assert(sizeof(struct raw_hdr) == RAW_HDR_RMA);

/**
 * struct raw_side - a side's socket
 * @side: the side
 * @sock: the socket
 * @complete: calls back
 * @resume: goes on receiving and sending
 * @work: the same in process context
 * @lock: for the lists
 * @posted: receives
 * @queue: to be sent
 * @waiting: writes and reads that have been sent, for what comes back
 * @done: to be called back
 * @free: for answers
 * @answers: all of them
 * @closed: no more. From here on: the socket's lock
 * @attached: the callbacks are ours
 * @saved_data_ready: what they were
 * @saved_write_space: what they were
 * @saved_state_change: what they were
 * @stalled: a message waits for a receive
 * @sending: one sender at a time, TCP calls us from inside of it
 * @full: TCP will call when it takes more
 * @acks: acknowledgments the peer is to get
 * @tx_op: being sent; NULL with @tx_len: an acknowledgment
 * @tx: its header
 * @tx_len: bytes of that, 0 if nothing is being sent
 * @tx_off: bytes sent, header and all
 * @rx: header being received
 * @rx_have: bytes of it
 * @rx_op: receive or read that takes the bytes
 * @rx_buf: where they go
 * @rx_left: how many are still to come
 */
struct raw_side {
	struct bench_side	*side;
	struct socket		*sock;
	struct irq_poll		complete;
	struct irq_poll		resume;
	struct work_struct	work;

	/* the lists */
	spinlock_t		lock ____cacheline_aligned_in_smp;
	struct list_head	posted;
	struct list_head	queue;
	struct list_head	waiting;
	struct list_head	done;
	struct list_head	free;
	struct bench_op		answers[BENCH_WINDOW_MAX];

	bool			closed;
	bool			attached;
	void			(*saved_data_ready)(struct sock *sk);
	void			(*saved_write_space)(struct sock *sk);
	void			(*saved_state_change)(struct sock *sk);

	bool			stalled;
	bool			sending;
	bool			full;
	u32			acks;
	struct bench_op		*tx_op;
	struct raw_hdr		tx;
	size_t			tx_len;
	size_t			tx_off;
	struct raw_hdr		rx;
	size_t			rx_have;
	struct bench_op		*rx_op;
	void			*rx_buf;
	size_t			rx_left;
};

struct raw_conn {
	struct socket	*listener;
	struct raw_side	side[2];
};

static struct workqueue_struct *raw_wq;

/* ------------------------------------------------------------- completions */

static int raw_complete_poll(struct irq_poll *iop, int budget)
{
	struct raw_side *s = container_of(iop, struct raw_side, complete);
	struct bench_op *op;
	int n = 0;

	while (n < budget) {
		spin_lock_bh(&s->lock);
		op = list_first_entry_or_null(&s->done, struct bench_op, node);
		if (op)
			list_del(&op->node);
		else
			irq_poll_complete(iop);
		spin_unlock_bh(&s->lock);
		if (!op)
			break;
		bench_done(op, op->err, op->len);
		n++;
	}
	return n;
}

static void raw_complete(struct raw_side *s, struct bench_op *op)
{
	spin_lock_bh(&s->lock);
	list_add_tail(&op->node, &s->done);
	irq_poll_sched(&s->complete);
	spin_unlock_bh(&s->lock);
}

static struct bench_op *raw_take(struct raw_side *s, struct list_head *list)
{
	struct bench_op *op;

	spin_lock_bh(&s->lock);
	op = list_first_entry_or_null(list, struct bench_op, node);
	if (op)
		list_del(&op->node);
	spin_unlock_bh(&s->lock);
	return op;
}

static void raw_put(struct raw_side *s, struct bench_op *op,
		    struct list_head *list)
{
	spin_lock_bh(&s->lock);
	list_add_tail(&op->node, list);
	spin_unlock_bh(&s->lock);
}

/* ----------------------------------------------------------------- sending */

static void raw_tx_header(struct raw_side *s, struct bench_op *op)
{
	static const u8 ops[] = {
		[BENCH_SEND]	= RAW_MSG,
		[BENCH_WRITE]	= RAW_WRITE,
		[BENCH_READ]	= RAW_READ,
		[BENCH_ANSWER]	= RAW_ANSWER,
	};
	bool rma = op && (op->kind == BENCH_WRITE || op->kind == BENCH_READ);
	size_t payload = op && op->kind != BENCH_READ ? op->len : 0;

	s->tx_op = op;
	s->tx_off = 0;
	s->tx_len = rma ? RAW_HDR_RMA : RAW_HDR;
	s->tx.op = op ? ops[op->kind] : RAW_ACK;
	s->tx.size = cpu_to_le64(s->tx_len + payload);
	if (rma) {
		s->tx.off = cpu_to_le64(op->off);
		s->tx.len = cpu_to_le64(op->len);
		s->tx.key = cpu_to_le64(1);
	}
}

static bool raw_tx_next(struct raw_side *s)
{
	struct bench_op *op = NULL;

	if (s->acks) {
		s->acks--;
	} else {
		op = raw_take(s, &s->queue);
		if (!op)
			return false;
	}
	raw_tx_header(s, op);
	return true;
}

static void raw_tx_sent(struct raw_side *s)
{
	struct bench_op *op = s->tx_op;

	s->tx_len = 0;
	if (!op)
		return;
	if (op->kind == BENCH_SEND)
		raw_complete(s, op);
	else
		raw_put(s, op, op->kind == BENCH_ANSWER ? &s->free :
							  &s->waiting);
}

/* Hand the socket more of what has begun. Returns what it returns. */
static ssize_t raw_tx_send(struct raw_side *s)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	struct bench_op *op = s->tx_op;
	size_t size = le64_to_cpu(s->tx.size);
	struct kvec kv[2];
	unsigned int n = 0;

	if (s->tx_off < s->tx_len)
		kv[n++] = (struct kvec) {
			.iov_base = (u8 *)&s->tx + s->tx_off,
			.iov_len = s->tx_len - s->tx_off,
		};
	if (size > s->tx_len) {
		size_t off = s->tx_off > s->tx_len ? s->tx_off - s->tx_len : 0;

		kv[n++] = (struct kvec) {
			.iov_base = op->buf + off,
			.iov_len = op->len - off,
		};
	}
	if (!list_empty(&s->queue))
		msg.msg_flags |= MSG_MORE;
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, kv, n, size - s->tx_off);
	return tcp_sendmsg_locked(s->sock->sk, &msg, size - s->tx_off);
}

/* Called with the socket locked. */
static void raw_tx_run(struct raw_side *s)
{
	ssize_t n;

	if (s->sending || s->full || s->closed)
		return;
	s->sending = true;
	while (s->tx_len || raw_tx_next(s)) {
		n = raw_tx_send(s);
		if (n <= 0) {
			if (n == -EAGAIN)
				s->full = true;
			else
				bench_fail(s->side->run, n ?: -EPIPE);
			break;
		}
		s->tx_off += n;
		if (s->tx_off == le64_to_cpu(s->tx.size))
			raw_tx_sent(s);
	}
	s->sending = false;
}

static void raw_kick(struct raw_side *s)
{
	struct sock *sk = s->sock->sk;

	if (!spin_trylock(&sk->sk_lock.slock)) {
		irq_poll_sched(&s->resume);
		return;
	}
	if (sock_owned_by_user(sk))
		queue_work(raw_wq, &s->work);
	else
		raw_tx_run(s);
	spin_unlock(&sk->sk_lock.slock);
}

/* --------------------------------------------------------------- receiving */

static void raw_rx_end(struct raw_side *s)
{
	struct bench_op *op = s->rx_op;

	if (s->rx.op == RAW_WRITE)
		s->acks++;
	s->rx_have = 0;
	s->rx_op = NULL;
	if (op)
		raw_complete(s, op);
}

static int raw_rx_answer(struct raw_side *s, u64 off, u64 len)
{
	struct bench_op *op = raw_take(s, &s->free);

	if (!op)
		return -ENOBUFS;
	op->kind = BENCH_ANSWER;
	op->buf = s->side->mem + off;
	op->len = len;
	raw_put(s, op, &s->queue);
	return 0;
}

/* A header is complete: find where the bytes behind it go. */
static int raw_rx_begin(struct raw_side *s)
{
	struct bench_op *op = NULL;
	u64 off, len;

	s->rx_left = le64_to_cpu(s->rx.size) - s->rx_have;
	switch (s->rx.op) {
	case RAW_MSG:
		op = raw_take(s, &s->posted);
		if (!op)
			return -EAGAIN;
		if (s->rx_left > op->len)
			return -EMSGSIZE;
		s->rx_buf = op->buf;
		break;
	case RAW_ANSWER:
	case RAW_ACK:
		op = raw_take(s, &s->waiting);
		if (!op || s->rx_left > op->len)
			return -EPROTO;
		s->rx_buf = op->buf;
		break;
	case RAW_READ:
	case RAW_WRITE:
		off = le64_to_cpu(s->rx.off);
		len = le64_to_cpu(s->rx.len);
		if (off > 2 * s->side->half || len > 2 * s->side->half - off)
			return -EPROTO;
		if (s->rx.op == RAW_READ && raw_rx_answer(s, off, len))
			return -ENOBUFS;
		s->rx_buf = s->side->mem + off;
		break;
	default:
		return -EPROTO;
	}
	s->rx_op = op;
	return 0;
}

static size_t raw_rx_want(const struct raw_side *s)
{
	return s->rx_have >= RAW_HDR &&
	       (s->rx.op == RAW_READ || s->rx.op == RAW_WRITE) ?
	       RAW_HDR_RMA : RAW_HDR;
}

static int raw_rx_actor(read_descriptor_t *desc, struct sk_buff *skb,
			unsigned int offset, size_t len)
{
	struct raw_side *s = desc->arg.data;
	size_t used = 0, n;

	/* taking nothing makes TCP stop */
	while (!desc->error && used < len) {
		size_t want = raw_rx_want(s);

		if (s->rx_have < want) {
			n = min(want - s->rx_have, len - used);
			desc->error = skb_copy_bits(skb, offset + used,
						    (u8 *)&s->rx + s->rx_have,
						    n);
			if (desc->error)
				break;
			used += n;
			s->rx_have += n;
			if (s->rx_have < raw_rx_want(s))
				continue;
			desc->error = raw_rx_begin(s);
			if (desc->error)
				break;
		} else {
			n = min(s->rx_left, len - used);
			desc->error = skb_copy_bits(skb, offset + used,
						    s->rx_buf, n);
			if (desc->error)
				break;
			used += n;
			s->rx_buf += n;
			s->rx_left -= n;
		}
		if (!s->rx_left)
			raw_rx_end(s);
	}
	return used;
}

/* Called with the socket locked. */
static void raw_rx_run(struct raw_side *s)
{
	read_descriptor_t desc = { .arg.data = s, .count = 1 };

	if (s->stalled) {
		if (raw_rx_begin(s))
			return;
		s->stalled = false;
	}
	tcp_read_sock(s->sock->sk, &desc, raw_rx_actor);
	if (desc.error == -EAGAIN)
		s->stalled = true;
	else if (desc.error)
		bench_fail(s->side->run, desc.error);
}

/*
 * After a stall look once more: pairs with the barrier in raw_post(), either
 * that sees the mark, or we see what was posted.
 */
static void raw_rx_stream(struct raw_side *s)
{
	if (s->closed)
		return;
	raw_rx_run(s);
	while (s->stalled) {
		smp_mb();	/* the mark, before the list */
		if (list_empty(&s->posted))
			break;
		raw_rx_run(s);
	}
}

/* ------------------------------------------------------------ who runs when */

/*
 * While the work item owns the socket TCP counts the backlog as memory in use,
 * and what is read is acknowledged with a small window that nothing opens again:
 * reading is for the softirq item then, which the work item leaves behind.
 */
static void raw_data_ready(struct sock *sk)
{
	struct raw_side *s = sk->sk_user_data;

	if (sock_owned_by_user(sk))
		return;
	raw_rx_stream(s);
	if (s->acks || !list_empty(&s->queue))
		raw_tx_run(s);
}

static void raw_write_space(struct sock *sk)
{
	struct raw_side *s = sk->sk_user_data;

	if (!sk_stream_is_writeable(sk))
		return;
	clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	if (s->full) {
		s->full = false;
		queue_work(raw_wq, &s->work);
	}
}

static void raw_state_change(struct sock *sk)
{
	struct raw_side *s = sk->sk_user_data;

	bench_lost(s->side->run, -ECONNRESET);
}

static int raw_resume_poll(struct irq_poll *iop, int budget)
{
	struct raw_side *s = container_of(iop, struct raw_side, resume);
	struct sock *sk = s->sock->sk;

	irq_poll_complete(iop);
	bh_lock_sock(sk);
	if (sock_owned_by_user(sk)) {
		queue_work(raw_wq, &s->work);
	} else {
		raw_rx_stream(s);
		raw_tx_run(s);
	}
	bh_unlock_sock(sk);
	return 0;
}

static void raw_work(struct work_struct *work)
{
	struct raw_side *s = container_of(work, struct raw_side, work);
	struct sock *sk = s->sock->sk;
	unsigned int noio = memalloc_noio_save();

	lock_sock(sk);
	sk->sk_allocation = GFP_NOIO | __GFP_NOWARN;
	raw_tx_run(s);
	sk->sk_allocation = GFP_ATOMIC | __GFP_NOWARN;
	release_sock(sk);
	memalloc_noio_restore(noio);
	local_bh_disable();
	irq_poll_sched(&s->resume);
	local_bh_enable();
}

static int raw_post(struct bench_op *op)
{
	struct raw_side *s = op->side->priv;

	local_bh_disable();
	if (op->kind == BENCH_RECV) {
		raw_put(s, op, &s->posted);
		smp_mb();	/* the list, before the mark */
		if (s->stalled)
			irq_poll_sched(&s->resume);
	} else {
		raw_put(s, op, &s->queue);
		raw_kick(s);
	}
	local_bh_enable();
	return 0;
}

/* -------------------------------------------------------------- connections */

/* Buffers before there is a connection: they decide how windows are scaled. */
static int raw_socket(const struct bench_side *side, struct socket **sockp)
{
	const struct bench_run *run = side->run;
	struct socket *sock;
	struct sock *sk;
	int err;

	err = sock_create_kern(side->net, AF_INET, SOCK_STREAM, IPPROTO_TCP,
			       &sock);
	if (err)
		return err;
	sk = sock->sk;
	sock_set_reuseaddr(sk);
	if (run->rcvbuf)
		sock_set_rcvbuf(sk, run->rcvbuf);
	if (run->sndbuf) {
		lock_sock(sk);
		sk->sk_userlocks |= SOCK_SNDBUF_LOCK;
		WRITE_ONCE(sk->sk_sndbuf,
			   max_t(int, run->sndbuf * 2, SOCK_MIN_SNDBUF));
		release_sock(sk);
	}
	*sockp = sock;
	return 0;
}

/* As kofi_sock does it by default. */
static void raw_tune(struct socket *sock)
{
	struct sock *sk = sock->sk;

	sk->sk_use_task_frag = false;
	sk->sk_allocation = GFP_ATOMIC | __GFP_NOWARN;
	tcp_sock_set_nodelay(sk);
	tcp_sock_set_keepidle(sk, 10);
	tcp_sock_set_keepintvl(sk, 5);
	tcp_sock_set_keepcnt(sk, 4);
	sock_set_keepalive(sk);
}

static void raw_attach(struct raw_side *s)
{
	struct sock *sk = s->sock->sk;

	raw_tune(s->sock);
	s->side->sk = sk;
	write_lock_bh(&sk->sk_callback_lock);
	s->attached = true;
	s->saved_data_ready = sk->sk_data_ready;
	s->saved_write_space = sk->sk_write_space;
	s->saved_state_change = sk->sk_state_change;
	sk->sk_user_data = s;
	sk->sk_data_ready = raw_data_ready;
	sk->sk_write_space = raw_write_space;
	sk->sk_state_change = raw_state_change;
	write_unlock_bh(&sk->sk_callback_lock);
}

static int raw_listen(struct raw_conn *c, struct bench_side *side)
{
	int err;

	err = raw_socket(side, &c->listener);
	if (err)
		return err;
	err = kernel_bind(c->listener, (void *)&side->addr,
			  sizeof(side->addr));
	if (err)
		return err;
	err = kernel_listen(c->listener, 1);
	if (err)
		return err;
	err = kernel_getsockname(c->listener, (struct sockaddr *)&side->addr);
	return min(err, 0);
}

static int raw_connect(struct raw_conn *c, struct bench_side *side,
		       struct sockaddr_in peer)
{
	int err;

	err = raw_socket(side, &c->side[0].sock);
	if (err)
		return err;
	err = kernel_bind(c->side[0].sock, (void *)&side->addr,
			  sizeof(side->addr));
	if (err)
		return err;
	return kernel_connect(c->side[0].sock, (void *)&peer, sizeof(peer),
			      0);
}

static void raw_init(struct raw_side *s, struct bench_side *side)
{
	u32 i;

	s->side = side;
	side->priv = s;
	spin_lock_init(&s->lock);
	INIT_LIST_HEAD(&s->posted);
	INIT_LIST_HEAD(&s->queue);
	INIT_LIST_HEAD(&s->waiting);
	INIT_LIST_HEAD(&s->done);
	INIT_LIST_HEAD(&s->free);
	for (i = 0; i < BENCH_WINDOW_MAX; i++)
		list_add_tail(&s->answers[i].node, &s->free);
	irq_poll_init(&s->complete, 256, raw_complete_poll);
	irq_poll_init(&s->resume, 64, raw_resume_poll);
	INIT_WORK(&s->work, raw_work);
}

static int raw_open(struct bench_run *run)
{
	struct bench_side *a = &run->side[0], *b = &run->side[1];
	struct raw_conn *c;
	int i, err = 0;

	c = kzalloc(sizeof(*c), GFP_KERNEL);
	if (!c)
		return -ENOMEM;
	for (i = 0; i < 2; i++)
		raw_init(&c->side[i], &run->side[i]);
	if (b->here)
		err = raw_listen(c, b);
	if (!err && a->here)
		err = raw_connect(c, a, b->addr);
	if (!err && b->here)
		err = kernel_accept(c->listener, &c->side[1].sock, 0);
	if (err)
		return err;
	for (i = 0; i < 2; i++)
		if (run->side[i].here)
			raw_attach(&c->side[i]);
	/* what a peer elsewhere has sent before */
	local_bh_disable();
	for (i = 0; i < 2; i++)
		if (run->side[i].here)
			irq_poll_sched(&c->side[i].resume);
	local_bh_enable();
	return 0;
}

/*
 * From now on nothing is begun. Softirq handlers that had begun are waited for
 * by their queue, or, once they have left that, by RCU.
 */
static void raw_detach(struct raw_side *s)
{
	struct sock *sk = s->sock->sk;

	lock_sock(sk);
	s->closed = true;
	if (s->attached) {
		write_lock_bh(&sk->sk_callback_lock);
		sk->sk_data_ready = s->saved_data_ready;
		sk->sk_write_space = s->saved_write_space;
		sk->sk_state_change = s->saved_state_change;
		sk->sk_user_data = NULL;
		write_unlock_bh(&sk->sk_callback_lock);
	}
	release_sock(sk);
	irq_poll_disable(&s->complete);
	irq_poll_disable(&s->resume);
	synchronize_rcu();
	cancel_work_sync(&s->work);
}

static void raw_close(struct bench_run *run)
{
	struct raw_side *first = run->side[0].priv;
	struct raw_conn *c;
	int i;

	if (!first)
		return;
	c = container_of(first, struct raw_conn, side[0]);
	for (i = 0; i < 2; i++)
		if (c->side[i].sock)
			raw_detach(&c->side[i]);
	for (i = 0; i < 2; i++)
		if (c->side[i].sock)
			sock_release(c->side[i].sock);
	if (c->listener)
		sock_release(c->listener);
	kfree(c);
}

int bench_raw_init(void)
{
	raw_wq = alloc_workqueue("kofi_bench_raw",
				 WQ_MEM_RECLAIM | WQ_HIGHPRI | WQ_PERCPU,
				 0);
	return raw_wq ? 0 : -ENOMEM;
}

void bench_raw_exit(void)
{
	destroy_workqueue(raw_wq);
}

const struct bench_client bench_raw = {
	.name	= "raw",
	.tcp	= true,
	.open	= raw_open,
	.close	= raw_close,
	.post	= raw_post,
};

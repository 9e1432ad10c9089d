// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * TLS of kofi_sock without tlshd: an agent of the tests installs kTLS with fixed keys. The
 * kernel's kTLS encrypts and decrypts.
 *
 * The first cases transfer over two endpoints. Then a socket is the peer: it sends records
 * through kTLS, and other bytes past it. The last cases are about handshakes that fail.
 */
#include <linux/cred.h>
#include <linux/key.h>
#include <linux/kthread.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <keys/user-type.h>
#include <net/tcp.h>
#include <net/tls.h>
#include <net/tls_prot.h>
#include <linux/unaligned.h>

#include "../kunit.h"
#include "live.h"

#include "../../../providers/sock/tls.h"

#if IS_ENABLED(CONFIG_KEYS) && IS_ENABLED(CONFIG_TLS) && IS_ENABLED(CONFIG_CRYPTO_GCM)

#define TLS_KEY_NAME	"kofi a b."

/* What the agent does with a handshake */
enum tls_answer {
	TLS_DOES,		/* install kTLS, and return the key */
	TLS_STALLS,		/* never answer */
	TLS_FAILS,		/* report EACCES */
	TLS_LIES,		/* report success without kTLS */
	TLS_HALF,		/* the same with kTLS in one direction */
	TLS_ANONYMOUS,		/* success without a key */
	TLS_OTHER_KEY,		/* success with a key of the keyring that is another one */
	TLS_ABSENT,		/* there is no agent */
	TLS_SLOW,		/* as TLS_DOES, but report from a thread that is slow to return */
	TLS_QUEUES,		/* as TLS_DOES, but one after the other, with few places to wait */
};

/**
 * struct tls_slow - agent that is slow to return from the wake-up of the owner
 * @t: TLS of the connection
 * @peerid: key of the handshake
 * @wake: wake-up of the owner
 * @arg: argument of @wake
 * @began: completes when @wake has been called
 * @got: the test has got the connection
 * @early: @got was set before the agent had returned
 * @returned: the agent has returned
 */
struct tls_slow {
	struct ksk_tls		*t;
	key_serial_t		peerid;
	void			(*wake)(void *arg);
	void			*arg;
	struct completion	began;
	bool			got;
	bool			early;
	bool			returned;
};

#define TLS_PLACES	50	/* as a namespace has at most */

/**
 * struct tls_waiting - handshake that the agent has not begun
 * @node: entry in the queue of the agent
 * @t: TLS of the connection
 * @sock: socket of the connection
 */
struct tls_waiting {
	struct list_head	node;
	struct ksk_tls		*t;
	struct socket		*sock;
};

/**
 * struct tls_queue - agent with a queue
 * @lock: protects the queue
 * @list: handshakes that have not begun
 * @places: free places of the queue
 * @refused: handshakes that were refused so far, as the queue was full
 * @open: the agent may begin handshakes
 * @work: work item that does the handshakes
 */
struct tls_queue {
	spinlock_t		lock;	/* the queue */
	struct list_head	list;
	unsigned int		places;
	unsigned int		refused;
	bool			open;
	struct work_struct	work;
};

static struct tls_test {
	const struct ksk_tls_agent	*agent;
	enum tls_answer			answer[2];	/* client, server */
	atomic_t			busy;
	atomic_t			hellos;
	atomic_t			stalled;
	atomic_t			cancelled;
	struct key			*ring;
	struct key			*key;
	struct key			*other;
	struct tls_slow			slow;
	struct tls_queue		queue;
} tls;

/* ------------------------------------------------------------------- agent */

static int tls_set(struct socket *sock, int level, int name, void *val, int len)
{
	return sock->ops->setsockopt(sock, level, name, KERNEL_SOCKPTR(val), len);
}

static int tls_key(struct socket *sock, bool tx, bool server)
{
	struct tls12_crypto_info_aes_gcm_128 info = {
		.info.version = TLS_1_3_VERSION,
		.info.cipher_type = TLS_CIPHER_AES_GCM_128,
	};

	memset(info.key, tx == server ? 's' : 'c', sizeof(info.key));
	memset(info.salt, tx == server, sizeof(info.salt));
	return tls_set(sock, SOL_TLS, tx ? TLS_TX : TLS_RX, &info, sizeof(info));
}

static int tls_install(struct socket *sock, bool server)
{
	return tls_set(sock, SOL_TCP, TCP_ULP, "tls", 3) ? :
	       tls_key(sock, true, server) ? : tls_key(sock, false, server);
}

static void tls_slow_wake(void *arg)
{
	struct tls_slow *s = arg;

	s->wake(s->arg);
	complete(&s->began);
	schedule_timeout_uninterruptible(msecs_to_jiffies(100));
	s->early = READ_ONCE(s->got);
	WRITE_ONCE(s->returned, true);
}

static int tls_slow_thread(void *arg)
{
	struct tls_slow *s = arg;

	ksk_tls_done(s->t, 0, s->peerid);
	return 0;
}

static int tls_slow_start(struct ksk_tls *t)
{
	struct tls_slow *s = &tls.slow;

	s->t = t;
	s->peerid = key_serial(tls.key);
	s->wake = t->wake;
	s->arg = t->arg;
	t->wake = tls_slow_wake;
	t->arg = s;
	return PTR_ERR_OR_ZERO(kthread_run(tls_slow_thread, s, "kofi_slow"));
}

static struct tls_waiting *tls_queue_next(struct tls_queue *q)
{
	struct tls_waiting *w;

	spin_lock_bh(&q->lock);
	w = list_first_entry_or_null(&q->list, struct tls_waiting, node);
	if (w) {
		list_del(&w->node);
		q->places++;
	}
	spin_unlock_bh(&q->lock);
	return w;
}

static void tls_queue_work(struct work_struct *work)
{
	struct tls_queue *q = container_of(work, struct tls_queue, work);
	struct tls_waiting *w;

	while (READ_ONCE(q->open) && (w = tls_queue_next(q))) {
		ksk_tls_done(w->t, tls_install(w->sock, w->t->server), key_serial(tls.key));
		kfree(w);
		cond_resched();
	}
}

static int tls_queue_add(struct tls_queue *q, struct ksk_tls *t, struct socket *sock)
{
	struct tls_waiting *w = kmalloc(sizeof(*w), GFP_KERNEL);
	int err = 0;

	if (!w)
		return -ENOMEM;
	w->t = t;
	w->sock = sock;
	spin_lock_bh(&q->lock);
	if (q->places) {
		q->places--;
		list_add_tail(&w->node, &q->list);
	} else {
		q->refused++;
		err = -EAGAIN;
	}
	spin_unlock_bh(&q->lock);
	if (err)
		kfree(w);
	else
		schedule_work(&q->work);
	return err;
}

/* Returns false if the handshake has begun. */
static bool tls_queue_cancel(struct tls_queue *q, struct sock *sk)
{
	struct tls_waiting *w, *found = NULL;

	spin_lock_bh(&q->lock);
	list_for_each_entry(w, &q->list, node)
		if (w->sock->sk == sk)
			found = w;
	if (found) {
		list_del(&found->node);
		q->places++;
	}
	spin_unlock_bh(&q->lock);
	kfree(found);
	return found;
}

static int tls_hello(struct ksk_tls *t, struct socket *sock)
{
	struct key *key = tls.key;
	int err = 0;

	atomic_inc(&tls.hellos);
	if (atomic_dec_if_positive(&tls.busy) >= 0)
		return -EAGAIN;
	switch (tls.answer[t->server]) {
	case TLS_ABSENT:
		return -ESRCH;
	case TLS_STALLS:
		atomic_inc(&tls.stalled);
		return 0;
	case TLS_FAILS:
		ksk_tls_done(t, -EACCES, 0);
		return 0;
	case TLS_LIES:
		break;
	case TLS_HALF:
		err = tls_set(sock, SOL_TCP, TCP_ULP, "tls", 3) ? :
		      tls_key(sock, true, t->server);
		break;
	case TLS_OTHER_KEY:
		key = tls.other;
		err = tls_install(sock, t->server);
		break;
	case TLS_QUEUES:
		return tls_queue_add(&tls.queue, t, sock);
	case TLS_SLOW:
		return tls_install(sock, t->server) ? : tls_slow_start(t);
	default:
		err = tls_install(sock, t->server);
	}
	ksk_tls_done(t, err, tls.answer[t->server] == TLS_ANONYMOUS ? 0 : key_serial(key));
	return 0;
}

static bool tls_cancel(struct sock *sk)
{
	atomic_inc(&tls.cancelled);
	if (tls.answer[1] == TLS_QUEUES)
		return tls_queue_cancel(&tls.queue, sk);
	/* stalled ones are cancelled, and the slow one has called ksk_tls_done() */
	return tls.answer[1] != TLS_SLOW;
}

static const struct ksk_tls_agent tls_agent = {
	.hello	= tls_hello,
	.cancel	= tls_cancel,
};

static struct key *tls_add_key(struct kunit *test, const char *name)
{
	key_ref_t ref = key_create_or_update(make_key_ref(tls.ring, true), "user", name,
					     "secret", 6, KEY_POS_ALL | KEY_USR_ALL,
					     KEY_ALLOC_NOT_IN_QUOTA);

	KUNIT_ASSERT_FALSE(test, IS_ERR(ref));
	return key_ref_to_ptr(ref);
}

static int tls_init_test(struct kunit *test)
{
	memset(&tls, 0, sizeof(tls));
	init_completion(&tls.slow.began);
	spin_lock_init(&tls.queue.lock);
	INIT_LIST_HEAD(&tls.queue.list);
	INIT_WORK(&tls.queue.work, tls_queue_work);
	tls.queue.places = TLS_PLACES;
	tls.agent = ksk_tls_agent;
	ksk_tls_agent = &tls_agent;
	tls.ring = keyring_alloc("kofi-test", GLOBAL_ROOT_UID, GLOBAL_ROOT_GID,
				 current_cred(), KEY_POS_ALL | KEY_USR_ALL,
				 KEY_ALLOC_NOT_IN_QUOTA, NULL, NULL);
	if (IS_ERR(tls.ring)) {
		tls.ring = NULL;
		return -ENOMEM;
	}
	tls.key = tls_add_key(test, TLS_KEY_NAME);
	tls.other = tls_add_key(test, "kofi c d.");
	return live_init(test);
}

static void tls_exit_test(struct kunit *test)
{
	live_exit(test);
	cancel_work_sync(&tls.queue.work);
	ksk_tls_agent = tls.agent;
	key_put(tls.key);
	key_put(tls.other);
	key_put(tls.ring);
}

/* ------------------------------------------------------------- connections */

static struct kofi_tls tls_opts(bool passive)
{
	struct kofi_tls opts = {
		.mode = KOFI_TLS_PSK,
		.key = passive ? 0 : key_serial(tls.key),
		.keyring = passive ? key_serial(tls.ring) : 0,
	};

	strscpy(opts.peer, TLS_KEY_NAME);
	return opts;
}

static int tls_opt(fid_t fid, const struct kofi_tls *opts)
{
	return fi_setopt(fid, FI_OPT_ENDPOINT, KOFI_OPT_TLS, opts, sizeof(*opts));
}

static void tls_listen(struct kunit *test, struct live *l)
{
	struct kofi_tls opts = tls_opts(true);

	live_listen_mode(test, l, AF_INET, FI_MR_PROV_KEY);
	KUNIT_ASSERT_EQ(test, tls_opt(&l->pep->fid, &opts), 0);
	live_start(test, l);
}

/* Open the active end, and connect. */
static void tls_start(struct kunit *test, struct live *l)
{
	struct kofi_tls opts = tls_opts(false);

	live_open(test, l, &l->end[0], fi_dupinfo(l->info), 0);
	KUNIT_ASSERT_EQ(test, tls_opt(&l->end[0].ep->fid, &opts), 0);
	KUNIT_ASSERT_EQ(test, fi_connect(l->end[0].ep, &l->addr, "hello", 5), 0);
}

static void tls_connect(struct kunit *test, struct live *l)
{
	struct fi_info *req = NULL;
	char data[256];

	tls_listen(test, l);
	tls_start(test, l);
	KUNIT_ASSERT_EQ(test, live_event(l->pep_eq, FI_CONNREQ, &req, data), 5);
	KUNIT_EXPECT_MEMEQ(test, data, "hello", 5);
	live_open(test, l, &l->end[1], req, 0);
	KUNIT_ASSERT_EQ(test, fi_accept(l->end[1].ep, "welcome", 7), 0);
	KUNIT_ASSERT_EQ(test, live_event(l->end[1].eq, FI_CONNECTED, NULL, NULL), 0);
	KUNIT_ASSERT_EQ(test, live_event(l->end[0].eq, FI_CONNECTED, NULL, data), 7);
	KUNIT_EXPECT_MEMEQ(test, data, "welcome", 7);
}

static struct ksk_conn *tls_conn(struct live *l, int end)
{
	return ksk_ep(l->end[end].ep)->conn;
}

/* Wait until a stream has been terminated. Returns the reason. */
static int tls_dead(struct ksk_conn *c)
{
	unsigned long end = jiffies + msecs_to_jiffies(LIVE_TIMEOUT);

	while (READ_ONCE(c->phase) != KSK_CONN_DEAD) {
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		schedule_timeout_uninterruptible(1);
	}
	return READ_ONCE(c->dead);
}

/* ---------------------------------------------------------------- transfers */

/* Every size around a boundary of records and frames, both ways */
static void tls_sizes(struct kunit *test)
{
	static const size_t sizes[] = {
		0, 1, 16, 128, 129, 4096, 16367, 16368, 16369, 16384, 16385, 32768,
		65535, 65536, 65537, 262144, 262145, 1048575, LIVE_BIG,
	};
	struct live *l = test->priv;
	struct fi_cq_err_entry e;
	int i, dir;

	tls_connect(test, l);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (dir = 0; dir < 2; dir++) {
			struct live_end *from = &l->end[dir], *to = &l->end[!dir];
			size_t n = sizes[i];

			memset(l->in, 0xee, LIVE_BIG);
			KUNIT_ASSERT_EQ(test, fi_recv(to->ep, l->in, n, NULL, 0, l->in), 0);
			KUNIT_ASSERT_EQ(test, fi_senddata(from->ep, l->out, n, NULL, n, 0,
							  l->out), 0);
			KUNIT_ASSERT_EQ(test, live_comp(to->rx, &e), 0);
			KUNIT_EXPECT_EQ(test, e.len, n);
			KUNIT_EXPECT_EQ(test, e.data, n);
			KUNIT_EXPECT_EQ(test, memcmp(l->in, l->out, n), 0);
			KUNIT_ASSERT_EQ(test, live_comp(from->tx, &e), 0);
		}
	}
}

/* Messages ahead of their receives stay in order, and none is lost. */
static void tls_stall(struct kunit *test)
{
	const size_t n = 200, len = 3000;
	struct live *l = test->priv;
	struct fi_cq_err_entry e;
	size_t i;

	tls_connect(test, l);
	for (i = 0; i < n; i++)
		KUNIT_ASSERT_EQ(test, fi_senddata(l->end[0].ep, l->out + i, len, NULL, i, 0,
						  NULL), 0);
	for (i = 0; i < n; i++) {
		KUNIT_ASSERT_EQ(test, fi_recv(l->end[1].ep, l->in, len, NULL, 0, NULL), 0);
		KUNIT_ASSERT_EQ(test, live_comp(l->end[1].rx, &e), 0);
		KUNIT_ASSERT_EQ(test, e.data, i);
		KUNIT_ASSERT_EQ(test, memcmp(l->in, l->out + i, len), 0);
	}
	for (i = 0; i < n; i++)
		KUNIT_ASSERT_EQ(test, live_comp(l->end[0].tx, &e), 0);
}

/* Reads, writes and delivery, with pages and more than the socket takes */
static void tls_rma(struct kunit *test)
{
	const u64 access = FI_REMOTE_READ | FI_REMOTE_WRITE;
	struct live *l = test->priv;
	struct fi_cq_err_entry e;
	struct fid_mr *mr = NULL;
	struct fi_rma_iov rma;
	struct bio_vec bv[16];
	struct fi_msg_rma msg = {
		.vec = KOFI_BVEC, .msg_bvec = bv, .iov_count = 16,
		.rma_iov = &rma, .rma_iov_count = 1,
	};
	int i, round;

	tls_connect(test, l);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(l->end[1].domain, l->in, LIVE_BIG, access, 0, 0, 0,
					&mr, NULL), 0);
	rma.addr = kofi_mr_base(mr);
	rma.key = fi_mr_key(mr);
	rma.len = 16 * PAGE_SIZE;
	for (round = 0; round < 4; round++) {
		memset(l->in, 0, LIVE_BIG);
		KUNIT_ASSERT_EQ(test, fi_write(l->end[0].ep, l->out, LIVE_BIG, NULL, 0,
					       rma.addr, rma.key, NULL), 0);
		KUNIT_ASSERT_EQ(test, live_comp(l->end[0].tx, &e), 0);
		live_pattern(l->out, LIVE_BIG, 7 + round);
		KUNIT_ASSERT_EQ(test, fi_read(l->end[0].ep, l->out, LIVE_BIG, NULL, 0,
					      rma.addr, rma.key, NULL), 0);
		KUNIT_ASSERT_EQ(test, live_comp(l->end[0].tx, &e), 0);
		KUNIT_EXPECT_EQ(test, memcmp(l->in, l->out, LIVE_BIG), 0);
		live_pattern(l->out, LIVE_BIG, 8 + round);
		for (i = 0; i < 16; i++)
			bvec_set_page(&bv[i], vmalloc_to_page(l->out + i * PAGE_SIZE),
				      PAGE_SIZE, 0);
		KUNIT_ASSERT_EQ(test, fi_writemsg(l->end[0].ep, &msg, FI_DELIVERY_COMPLETE),
				0);
		KUNIT_ASSERT_EQ(test, live_comp(l->end[0].tx, &e), 0);
		KUNIT_EXPECT_EQ(test, memcmp(l->in, l->out, rma.len), 0);
	}
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* No byte of a message is on the wire in clear. */
static void tls_hidden(struct kunit *test)
{
	struct live *l = test->priv;
	struct ksk_conn *c;
	struct sock *sk;
	struct sk_buff *skb;
	u8 *wire = l->in;
	size_t n = 0, i, hits = 0;

	tls_connect(test, l);
	memset(l->out, 'P', 32768);
	/* no receive: the records stay in the socket of the peer */
	KUNIT_ASSERT_EQ(test, fi_send(l->end[0].ep, l->out, 32768, NULL, 0, NULL), 0);
	c = tls_conn(l, 1);
	sk = c->sock->sk;
	for (i = 0; i < LIVE_TIMEOUT && tcp_inq(sk) < 16000; i++)
		schedule_timeout_uninterruptible(1);
	lock_sock(sk);
	skb_queue_walk(&sk->sk_receive_queue, skb) {
		if (n + skb->len <= LIVE_BIG &&
		    !skb_copy_bits(skb, 0, wire + n, skb->len))
			n += skb->len;
	}
	release_sock(sk);
	KUNIT_EXPECT_GE(test, n, 16000);
	for (i = 0; i + 4 <= n; i++)
		hits += !memcmp(wire + i, "PPPP", 4);
	KUNIT_EXPECT_EQ(test, hits, 0);
}

/* Both ends send more than fits, and neither waits for ever. */
static void tls_both(struct kunit *test)
{
	struct live *l = test->priv;
	struct fi_cq_err_entry e;
	int i, dir;

	tls_connect(test, l);
	for (i = 0; i < 8; i++) {
		for (dir = 0; dir < 2; dir++) {
			KUNIT_ASSERT_EQ(test, fi_recv(l->end[dir].ep, l->in + dir * SZ_512K,
						      SZ_512K, NULL, 0, NULL), 0);
			KUNIT_ASSERT_EQ(test, fi_send(l->end[dir].ep, l->out, SZ_512K, NULL,
						      0, NULL), 0);
		}
	}
	for (i = 0; i < 8; i++) {
		for (dir = 0; dir < 2; dir++) {
			KUNIT_ASSERT_EQ(test, live_comp(l->end[dir].rx, &e), 0);
			KUNIT_ASSERT_EQ(test, live_comp(l->end[dir].tx, &e), 0);
		}
	}
	KUNIT_EXPECT_EQ(test, memcmp(l->in, l->out, SZ_512K), 0);
	KUNIT_EXPECT_EQ(test, memcmp(l->in + SZ_512K, l->out, SZ_512K), 0);
}

/* What has been sent arrives before an orderly close. */
static void tls_close(struct kunit *test)
{
	struct live *l = test->priv;
	struct fi_cq_err_entry e;
	int i;

	tls_connect(test, l);
	for (i = 0; i < 20; i++)
		KUNIT_ASSERT_EQ(test, fi_recv(l->end[1].ep, l->in, 500, NULL, 0, NULL), 0);
	for (i = 0; i < 20; i++)
		KUNIT_ASSERT_EQ(test, fi_send(l->end[0].ep, l->out, 500, NULL, 0, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_shutdown(l->end[0].ep, 0), 0);
	for (i = 0; i < 20; i++)
		KUNIT_ASSERT_EQ(test, live_comp(l->end[1].rx, &e), 0);
	KUNIT_EXPECT_EQ(test, live_event(l->end[1].eq, FI_SHUTDOWN, NULL, NULL), 0);
	KUNIT_EXPECT_EQ(test, tls_dead(tls_conn(l, 1)), ESHUTDOWN);
}

/*
 * Messages whose transmits have completed arrive before an orderly close, although TCP takes no
 * more bytes. A frame is a record, which kTLS takes as a whole or not at all, and an even part
 * of what the sender sends in a row.
 */
static void tls_close_full(struct kunit *test)
{
	const unsigned int lowat = *(const unsigned int *)test->param_value;
	unsigned long end = jiffies + msecs_to_jiffies(LIVE_TIMEOUT);
	const int n = 200, len = SZ_16K - 16 - KSK_FRAME_COST;
	struct live *l = test->priv;
	int i, sent = 0, err = 0, state;
	struct fi_cq_err_entry e;
	struct ksk_conn *c;

	tls_connect(test, l);
	c = tls_conn(l, 0);
	WRITE_ONCE(tcp_sk(c->sock->sk)->notsent_lowat, lowat);
	c->sock->sk->sk_userlocks |= SOCK_SNDBUF_LOCK;
	WRITE_ONCE(c->sock->sk->sk_sndbuf, SZ_256K);
	for (i = 0; i < n; i++)
		KUNIT_ASSERT_EQ(test, fi_send(l->end[0].ep, l->out, len, NULL, 0, NULL), 0);
	do {
		schedule_timeout_uninterruptible(1);
		state = READ_ONCE(c->tx.state);
	} while (state != KSK_TX_SPACE && time_before(jiffies, end));
	KUNIT_EXPECT_EQ(test, state, KSK_TX_SPACE);
	KUNIT_ASSERT_EQ(test, fi_shutdown(l->end[0].ep, 0), 0);
	for (i = 0; i < n; i++) {
		err = live_comp(l->end[0].tx, &e);
		sent += !err;
		KUNIT_ASSERT_NE(test, err, -EAGAIN);
	}
	KUNIT_EXPECT_GT(test, sent, 1);
	KUNIT_EXPECT_LT(test, sent, n);
	for (i = 0; i < sent; i++) {
		KUNIT_ASSERT_EQ(test, fi_recv(l->end[1].ep, l->in, len, NULL, 0, NULL), 0);
		KUNIT_ASSERT_EQ(test, live_comp(l->end[1].rx, &e), 0);
	}
	KUNIT_EXPECT_EQ(test, tls_dead(tls_conn(l, 1)), ESHUTDOWN);
}

static const unsigned int tls_lowats[] = { 0, 16384 };

static void tls_lowat_desc(const unsigned int *lowat, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "notsent_lowat %u", *lowat);
}

KUNIT_ARRAY_PARAM(tls_lowat, tls_lowats, tls_lowat_desc);

/* kTLS gets no reference to a page that has none, as a tail page without __GFP_COMP. */
static void tls_tail_page(struct kunit *test)
{
	struct live *l = test->priv;
	struct fi_cq_err_entry e;
	struct page *pages, *other;
	struct bio_vec bv[2];
	struct fi_msg msg = {
		.vec = KOFI_BVEC, .msg_bvec = bv, .iov_count = ARRAY_SIZE(bv),
	};
	bool freed = false;
	int i;

	tls_connect(test, l);
	pages = alloc_pages(GFP_KERNEL, 2);
	KUNIT_ASSERT_NOT_NULL(test, pages);
	memcpy(page_address(pages), l->out, 4 * PAGE_SIZE);
	bvec_set_page(&bv[0], pages, PAGE_SIZE, 0);
	bvec_set_page(&bv[1], pages + 1, 3 * PAGE_SIZE, 0);
	KUNIT_EXPECT_EQ(test, fi_recv(l->end[1].ep, l->in, LIVE_BIG, NULL, 0, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_sendmsg(l->end[0].ep, &msg, 0), 0);
	KUNIT_EXPECT_EQ(test, live_comp(l->end[0].tx, &e), 0);
	KUNIT_EXPECT_EQ(test, live_comp(l->end[1].rx, &e), 0);
	KUNIT_EXPECT_EQ(test, e.len, 4 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, memcmp(l->in, l->out, 4 * PAGE_SIZE), 0);
	/* a page that was freed is allocated next */
	for (i = 0; i < 32; i++) {
		other = alloc_page(GFP_KERNEL);
		if (!other)
			break;
		freed |= other > pages && other < pages + 4;
		if (!freed)
			__free_page(other);
	}
	KUNIT_EXPECT_FALSE(test, freed);
	if (!freed)
		__free_pages(pages, 2);
}

/* ------------------------------------------------------------ another peer */

/* Connect a socket to end 1, with kTLS that the agent has not installed. */
static struct socket *tls_raw(struct kunit *test, struct live *l)
{
	struct ksk_cm_hdr cm = { .version = 3, .type = KSK_CM_REQUEST };
	struct fi_info *req = NULL;
	struct socket *sock;

	tls_listen(test, l);
	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, AF_INET, SOCK_STREAM, IPPROTO_TCP,
					       &sock), 0);
	sock->sk->sk_rcvtimeo = TEST_LIMIT(10 * HZ);
	sock->sk->sk_sndtimeo = TEST_LIMIT(10 * HZ);
	tcp_sock_set_nodelay(sock->sk);
	put_unaligned_le64(1, &cm.probe);
	KUNIT_EXPECT_EQ(test, kernel_connect(sock, (void *)&l->addr, l->addrlen, 0), 0);
	KUNIT_EXPECT_EQ(test, tls_install(sock, false), 0);
	KUNIT_EXPECT_EQ(test, live_raw_send(sock, &cm, sizeof(cm)), sizeof(cm));
	KUNIT_EXPECT_EQ(test, live_event(l->pep_eq, FI_CONNREQ, &req, NULL), 0);
	if (!req)
		goto fail;
	live_open(test, l, &l->end[1], req, 0);
	KUNIT_EXPECT_EQ(test, fi_accept(l->end[1].ep, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, live_event(l->end[1].eq, FI_CONNECTED, NULL, NULL), 0);
	if (live_raw_recv(sock, &cm, sizeof(cm)) == sizeof(cm))
		return sock;
fail:
	sock_release(sock);
	KUNIT_FAIL_AND_ABORT(test, "no connection");
	return NULL;
}

/* Send bytes that kTLS does not see. */
static int tls_forge(struct socket *sock, const void *buf, size_t len, int flags)
{
	struct kvec kv = { .iov_base = (void *)buf, .iov_len = len };
	struct msghdr msg = { .msg_flags = flags };
	int ret;

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &kv, 1, len);
	lock_sock(sock->sk);
	ret = tcp_sendmsg_locked(sock->sk, &msg, len);
	release_sock(sock->sk);
	return ret;
}

/* Send a record of a type. */
static int tls_record(struct socket *sock, u8 type, const void *buf, size_t len)
{
	u8 control[CMSG_SPACE(sizeof(u8))] __aligned(sizeof(long)) = {};
	struct kvec kv = { .iov_base = (void *)buf, .iov_len = len };
	struct msghdr msg = {
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_TLS;
	cmsg->cmsg_type = TLS_SET_RECORD_TYPE;
	cmsg->cmsg_len = CMSG_LEN(sizeof(u8));
	*(u8 *)CMSG_DATA(cmsg) = type;
	return kernel_sendmsg(sock, &msg, &kv, 1, len);
}

static void tls_header(u8 *hdr, size_t payload)
{
	memset(hdr, 0, 16);
	hdr[0] = 3;
	hdr[6] = 16;
	put_unaligned_le64(16 + payload, hdr + 8);
}

struct tls_end {
	const char	*name;
	u8		type;		/* record, or 0 for bytes past kTLS */
	u8		bytes[24];
	size_t		len;
	bool		fin;
	int		reason;		/* of the termination, 0 for none */
	int		flags;
	unsigned int	times;		/* records, 0 for one */
};

static const struct tls_end tls_ends[] = {
	{ "close_notify", TLS_RECORD_TYPE_ALERT, { 1, 0 }, 2, false, ESHUTDOWN },
	{ "close_notify and FIN", TLS_RECORD_TYPE_ALERT, { 1, 0 }, 2, true, ESHUTDOWN },
	{ "FIN alone", 0, {}, 0, true, ECONNRESET },
	{ "fatal alert", TLS_RECORD_TYPE_ALERT, { 2, 20 }, 2, false, ECONNRESET },
	{ "short alert", TLS_RECORD_TYPE_ALERT, { 1 }, 1, false, EBADMSG },
	{ "ticket", TLS_RECORD_TYPE_HANDSHAKE, { 4, 0, 0, 4, 1, 2, 3, 4 }, 8, false, 0 },
	{ "many tickets", TLS_RECORD_TYPE_HANDSHAKE, { 4, 0, 0, 4, 1, 2, 3, 4 }, 8, false,
	  EBADMSG, 0, 100 },
	{ "urgent byte", 0, { 23 }, 1, false, EBADMSG, MSG_OOB },
	{ "key update", TLS_RECORD_TYPE_HANDSHAKE, { 24, 0, 0, 1, 0 }, 5, false,
	  EKEYEXPIRED },
	{ "other handshake", TLS_RECORD_TYPE_HANDSHAKE, { 1, 0, 0, 0 }, 4, false, EBADMSG },
	{ "other type", 99, { 1 }, 1, false, EBADMSG },
	{ "forged record", 0, { 23, 3, 3, 0, 19, 1, 2, 3, 4, 5 }, 24, false, EBADMSG },
	{ "in clear", 0, { 3, 0, 0, 0, 0, 0, 16, 0, 20 }, 20, false, EBADMSG },
	{ "long record", 0, { 23, 3, 3, 0xff, 0xff }, 24, false, EBADMSG },
	{ "short record", 0, { 23, 3, 3, 0, 3, 1, 2, 3 }, 8, false, EBADMSG },
	{ "FIN in a record", 0, { 23, 3, 3, 1, 0, 7 }, 24, true, ECONNRESET },
};

static void tls_end_desc(const struct tls_end *e, char *desc)
{
	strscpy(desc, e->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(tls_end, tls_ends, tls_end_desc);

/* A message before the end arrives, and the end has its reason. */
static void tls_ending(struct kunit *test)
{
	const struct tls_end *end = test->param_value;
	struct live *l = test->priv;
	struct socket *sock = tls_raw(test, l);
	struct fi_cq_err_entry e;
	u8 frame[16 + 4];
	unsigned int i;

	KUNIT_EXPECT_EQ(test, fi_recv(l->end[1].ep, l->in, 64, NULL, 0, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(l->end[1].ep, l->in, 64, NULL, 0, NULL), 0);
	tls_header(frame, 4);
	memcpy(frame + 16, "data", 4);
	KUNIT_EXPECT_EQ(test, live_raw_send(sock, frame, sizeof(frame)), sizeof(frame));
	KUNIT_EXPECT_EQ(test, live_comp(l->end[1].rx, &e), 0);
	KUNIT_EXPECT_EQ(test, e.len, 4);
	for (i = 1; i < end->times; i++)
		tls_record(sock, end->type, end->bytes, end->len);
	if (end->type && !end->times)
		KUNIT_EXPECT_EQ(test, tls_record(sock, end->type, end->bytes, end->len),
				end->len);
	else if (end->len && !end->type)
		KUNIT_EXPECT_EQ(test, tls_forge(sock, end->bytes, end->len, end->flags),
				end->len);
	if (end->fin)
		kernel_sock_shutdown(sock, SHUT_WR);
	if (end->reason) {
		KUNIT_EXPECT_EQ(test, tls_dead(tls_conn(l, 1)), end->reason);
		KUNIT_EXPECT_EQ(test, live_comp(l->end[1].rx, &e), -ECANCELED);
	} else {
		KUNIT_EXPECT_EQ(test, live_raw_send(sock, frame, sizeof(frame)),
				sizeof(frame));
		KUNIT_EXPECT_EQ(test, live_comp(l->end[1].rx, &e), 0);
		KUNIT_EXPECT_MEMEQ(test, l->in, "data", 4);
	}
	sock_release(sock);
}

/* A FIN alone is no orderly close either while a message waits for a receive. */
static void tls_stalled_fin(struct kunit *test)
{
	unsigned long end = jiffies + msecs_to_jiffies(LIVE_TIMEOUT);
	struct live *l = test->priv;
	struct socket *sock = tls_raw(test, l);
	struct ksk_conn *c = tls_conn(l, 1);
	u8 frame[16 + 4];

	tls_header(frame, 4);
	memcpy(frame + 16, "data", 4);
	KUNIT_EXPECT_EQ(test, live_raw_send(sock, frame, sizeof(frame)), sizeof(frame));
	kernel_sock_shutdown(sock, SHUT_WR);
	while ((!READ_ONCE(c->rx.stalled) ||
		!(READ_ONCE(c->sock->sk->sk_shutdown) & RCV_SHUTDOWN)) &&
	       time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	/* as for a peer that requests another connection */
	set_bit(KSK_CONN_ASKED, &c->flags);
	queue_work(system_wq, &c->work);
	KUNIT_EXPECT_EQ(test, tls_dead(c), ECONNRESET);
	sock_release(sock);
}

/* Frames are cut into records of every length, as a peer may do. */
static void tls_fragments(struct kunit *test)
{
	struct live *l = test->priv;
	struct socket *sock = tls_raw(test, l);
	struct fi_cq_err_entry e;
	u8 frames[2 * (16 + 40)];
	size_t cut, i;

	for (i = 0; i < 2; i++) {
		tls_header(frames + i * 56, 40);
		memset(frames + i * 56 + 16, 'a' + i, 40);
	}
	for (cut = 1; cut < sizeof(frames); cut++) {
		for (i = 0; i < 2; i++)
			KUNIT_EXPECT_EQ(test, fi_recv(l->end[1].ep, l->in + i * 64, 64, NULL,
						      0, NULL), 0);
		for (i = 0; i < sizeof(frames); i += cut)
			KUNIT_EXPECT_GT(test, live_raw_send(sock, frames + i,
							    min(cut, sizeof(frames) - i)),
					0);
		for (i = 0; i < 2; i++) {
			KUNIT_EXPECT_EQ(test, live_comp(l->end[1].rx, &e), 0);
			KUNIT_EXPECT_EQ(test, e.len, 40);
		}
		KUNIT_EXPECT_EQ(test, memcmp(l->in, frames + 16, 40), 0);
		KUNIT_EXPECT_EQ(test, memcmp(l->in + 64, frames + 72, 40), 0);
	}
	sock_release(sock);
}

/* Our end of the stream is the alert, and then a FIN. */
static void tls_notify(struct kunit *test)
{
	u8 control[CMSG_SPACE(sizeof(u8))] __aligned(sizeof(long)), buf[64];
	struct live *l = test->priv;
	struct socket *sock = tls_raw(test, l);
	struct kvec kv = { .iov_base = buf, .iov_len = sizeof(buf) };
	struct msghdr msg = {
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = (struct cmsghdr *)control;

	KUNIT_EXPECT_EQ(test, fi_send(l->end[1].ep, "last", 4, NULL, 0, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_shutdown(l->end[1].ep, 0), 0);
	KUNIT_EXPECT_EQ(test, live_raw_recv(sock, buf, 20), 20);
	KUNIT_EXPECT_MEMEQ(test, buf + 16, "last", 4);
	KUNIT_EXPECT_EQ(test, kernel_recvmsg(sock, &msg, &kv, 1, sizeof(buf), 0), 2);
	KUNIT_EXPECT_EQ(test, *(u8 *)CMSG_DATA(cmsg), TLS_RECORD_TYPE_ALERT);
	KUNIT_EXPECT_EQ(test, buf[1], TLS_ALERT_DESC_CLOSE_NOTIFY);
	KUNIT_EXPECT_EQ(test, live_raw_recv(sock, buf, 1), 0);
	sock_release(sock);
}

/* -------------------------------------------------------------- handshakes */

struct tls_refusal {
	const char	*name;
	enum tls_answer	client, server;
	int		prov_errno;	/* of the client, 0 for whatever TCP reports */
	int		err;
};

static const struct tls_refusal tls_refusals[] = {
	{ "client fails", TLS_FAILS, TLS_STALLS, EACCES, EACCES },
	{ "client has no agent", TLS_ABSENT, TLS_STALLS, ESRCH, EACCES },
	{ "client without kTLS", TLS_LIES, TLS_DOES, EPROTO, EACCES },
	{ "client with half of it", TLS_HALF, TLS_DOES, EPROTO, EACCES },
	{ "client without key", TLS_ANONYMOUS, TLS_DOES, EKEYREJECTED, EACCES },
	{ "client with another key", TLS_OTHER_KEY, TLS_DOES, EKEYREJECTED, EACCES },
	{ "server fails", TLS_DOES, TLS_FAILS, 0, 0 },
	{ "server has no agent", TLS_DOES, TLS_ABSENT, 0, 0 },
	{ "server without kTLS", TLS_DOES, TLS_LIES, 0, 0 },
	{ "server without key", TLS_DOES, TLS_ANONYMOUS, 0, 0 },
	{ "server with another key", TLS_DOES, TLS_OTHER_KEY, 0, 0 },
};

static void tls_refusal_desc(const struct tls_refusal *r, char *desc)
{
	strscpy(desc, r->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(tls_refusal, tls_refusals, tls_refusal_desc);

/* The error entry of a failed connect; returns err, and *prov_errno. */
static int tls_refused(struct fid_eq *eq, int *prov_errno)
{
	struct fi_eq_err_entry err = {};
	u8 buf[64];
	u32 event;
	ssize_t n = fi_eq_sread(eq, &event, buf, sizeof(buf), LIVE_TIMEOUT, 0);

	if (n != -FI_EAVAIL || fi_eq_readerr(eq, &err, 0) < 0)
		return -EIO;
	*prov_errno = err.prov_errno;
	return err.err;
}

static void tls_refuse(struct kunit *test)
{
	const struct tls_refusal *r = test->param_value;
	struct live *l = test->priv;
	int prov_errno = 0, err;

	tls.answer[0] = r->client;
	tls.answer[1] = r->server;
	tls_listen(test, l);
	tls_start(test, l);
	err = tls_refused(l->end[0].eq, &prov_errno);
	KUNIT_EXPECT_GT(test, err, 0);
	if (r->err) {
		KUNIT_EXPECT_EQ(test, err, r->err);
		KUNIT_EXPECT_EQ(test, prov_errno, r->prov_errno);
	}
	/* no request has come of it */
	KUNIT_EXPECT_EQ(test, fi_eq_read(l->pep_eq, &(u32){ 0 }, l->in, 64, 0), -EAGAIN);
}

/* The pause between requests for a handshake grows to a limit. */
static void tls_pause(struct kunit *test)
{
	static const unsigned int ms[] = { 20, 20, 40, 80, 160, 320, 320 };
	struct ksk_tls t = {};

	for (; t.busy < ARRAY_SIZE(ms); t.busy++)
		KUNIT_EXPECT_EQ(test, ksk_tls_pause(&t), msecs_to_jiffies(ms[t.busy]));
	t.busy = UINT_MAX;
	KUNIT_EXPECT_EQ(test, ksk_tls_pause(&t), msecs_to_jiffies(320));
}

/* Too many handshakes: both sides try again. */
static void tls_busy(struct kunit *test)
{
	struct live *l = test->priv;

	atomic_set(&tls.busy, 6);
	tls_connect(test, l);
	KUNIT_EXPECT_EQ(test, atomic_read(&tls.hellos), 8);
}

#define TLS_MANY	1000
#define TLS_MANY_MS	(20 * LIVE_TIMEOUT)	/* no limit; the agent waits for all of them */

/**
 * struct tls_many - connections of a test
 * @ep: endpoints of all connections, both ends
 * @info: infos of the requests
 * @eps: entries of @ep
 * @infos: entries of @info
 * @eq: event queue of all endpoints
 */
struct tls_many {
	struct fid_ep	*ep[2 * TLS_MANY];
	struct fi_info	*info[TLS_MANY];
	unsigned int	eps;
	unsigned int	infos;
	struct fid_eq	*eq;
};

/* Returns 0 or a negative error. */
static int tls_many_open(struct tls_many *m, struct live_end *e, struct fi_info *info)
{
	struct fid_ep *ep;
	int err;

	/* two thousand of them */
	info->tx_attr->size = 4;
	info->rx_attr->size = 4;
	if (m->eps == ARRAY_SIZE(m->ep))
		return -ENOSPC;
	err = fi_endpoint(e->domain, info, &ep, NULL);
	if (err)
		return err;
	m->ep[m->eps++] = ep;
	return fi_ep_bind(ep, &m->eq->fid, 0) ? :
	       fi_ep_bind(ep, &e->tx->fid, FI_TRANSMIT) ? :
	       fi_ep_bind(ep, &e->rx->fid, FI_RECV);
}

/* Accept all requests that have arrived. */
static int tls_many_accept(struct live *l, struct tls_many *m)
{
	struct fi_eq_cm_entry entry;
	u32 event = 0;
	ssize_t got;
	int err;

	while ((got = fi_eq_read(l->pep_eq, &event, &entry, sizeof(entry), 0)) > 0) {
		if (event != FI_CONNREQ || m->infos == ARRAY_SIZE(m->info))
			return -ENOMSG;
		m->info[m->infos++] = entry.info;
		err = tls_many_open(m, &l->end[1], entry.info) ? :
		      fi_accept(m->ep[m->eps - 1], NULL, 0);
		if (err)
			return err;
	}
	return got == -EAGAIN ? 0 : got;
}

static int tls_many_connect(struct live *l, struct tls_many *m)
{
	struct kofi_tls opts = tls_opts(false);
	unsigned int i, ms = TLS_MANY_MS;
	int err = 0;

	for (i = 0; i < TLS_MANY && !err; i++)
		err = tls_many_open(m, &l->end[0], l->info) ? :
		      tls_opt(&m->ep[i]->fid, &opts) ? :
		      fi_set_val(&m->ep[i]->fid, KOFI_VAL_CONNECT_TIMEOUT, &ms) ? :
		      fi_connect(m->ep[i], &l->addr, NULL, 0);
	return err;
}

/* Wait until both ends of all connections are connected. */
static int tls_many_wait(struct live *l, struct tls_many *m)
{
	unsigned long end = jiffies + msecs_to_jiffies(3 * LIVE_TIMEOUT);
	struct fi_eq_cm_entry entry;
	unsigned int n = 0;
	u32 event = 0;
	ssize_t got;
	int err;

	while (n < 2 * TLS_MANY) {
		err = tls_many_accept(l, m);
		if (err)
			return err;
		got = fi_eq_sread(m->eq, &event, &entry, sizeof(entry), 10, 0);
		if (got != -EAGAIN && (got < 0 || event != FI_CONNECTED))
			return got < 0 ? got : -ENOMSG;
		n += got > 0;
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
	}
	return 0;
}

static void tls_many_run(struct kunit *test, struct live *l, struct tls_many *m)
{
	unsigned long end;

	KUNIT_EXPECT_EQ(test, tls_many_connect(l, m), 0);
	end = jiffies + msecs_to_jiffies(LIVE_TIMEOUT);
	while (!READ_ONCE(tls.queue.refused) && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_GT(test, tls.queue.refused, 0);
	/* all of them have begun, and the queue is full */
	WRITE_ONCE(tls.queue.open, true);
	schedule_work(&tls.queue.work);
	KUNIT_EXPECT_EQ(test, tls_many_wait(l, m), 0);
	KUNIT_EXPECT_EQ(test, m->eps, 2 * TLS_MANY);
}

/* A thousand connects at once, and an agent with few places: all of them succeed. */
static void tls_many(struct kunit *test)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC, .size = 2 * TLS_MANY };
	struct kofi_tls opts = tls_opts(true);
	struct live *l = test->priv;
	struct tls_many *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	unsigned int i, ms = TLS_MANY_MS;
	int backlog = TLS_MANY;

	KUNIT_ASSERT_NOT_NULL(test, m);
	tls.answer[0] = TLS_QUEUES;
	tls.answer[1] = TLS_QUEUES;
	live_listen_mode(test, l, AF_INET, FI_MR_PROV_KEY);
	KUNIT_ASSERT_EQ(test, fi_eq_open(l->fabric, &attr, &m->eq, NULL), 0);
	KUNIT_ASSERT_EQ(test, tls_opt(&l->pep->fid, &opts), 0);
	KUNIT_ASSERT_EQ(test, fi_control(&l->pep->fid, FI_BACKLOG, &backlog), 0);
	KUNIT_ASSERT_EQ(test, fi_set_val(&l->pep->fid, KOFI_VAL_HANDSHAKE_TIMEOUT, &ms), 0);
	live_start(test, l);
	/* for their domains and queues */
	live_open(test, l, &l->end[0], fi_dupinfo(l->info), 0);
	live_open(test, l, &l->end[1], fi_dupinfo(l->info), 0);
	tls_many_run(test, l, m);
	for (i = 0; i < m->eps; i++)
		fi_close(&m->ep[i]->fid);
	for (i = 0; i < m->infos; i++)
		fi_freeinfo(m->info[i]);
	fi_close(&m->eq->fid);
}

/* A handshake that never ends has the time limit of the connect. */
static void tls_late(struct kunit *test)
{
	unsigned long end = jiffies + msecs_to_jiffies(LIVE_TIMEOUT);
	struct kofi_tls opts = tls_opts(false);
	struct live *l = test->priv;
	unsigned int ms = 100;
	int prov_errno;

	tls.answer[0] = TLS_STALLS;
	tls_listen(test, l);
	live_open(test, l, &l->end[0], fi_dupinfo(l->info), 0);
	KUNIT_ASSERT_EQ(test, tls_opt(&l->end[0].ep->fid, &opts), 0);
	KUNIT_ASSERT_EQ(test, fi_set_val(&l->end[0].ep->fid, KOFI_VAL_CONNECT_TIMEOUT, &ms),
			0);
	KUNIT_ASSERT_EQ(test, fi_connect(l->end[0].ep, &l->addr, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, tls_refused(l->end[0].eq, &prov_errno), ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, atomic_read(&tls.stalled), 1);
	/* its place in the namespace is free before the endpoint is closed */
	while (!atomic_read(&tls.cancelled) && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, atomic_read(&tls.cancelled), 1);
}

/* Endpoints and listeners are closed while handshakes run. */
static void tls_closing(struct kunit *test)
{
	struct live *l = test->priv;
	unsigned long end = jiffies + msecs_to_jiffies(LIVE_TIMEOUT);

	tls.answer[0] = TLS_STALLS;
	tls.answer[1] = TLS_STALLS;
	tls_listen(test, l);
	tls_start(test, l);
	while (atomic_read(&tls.stalled) < 2 && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, atomic_read(&tls.stalled), 2);
	KUNIT_EXPECT_EQ(test, fi_close(&l->end[0].ep->fid), 0);
	l->end[0].ep = NULL;
	KUNIT_EXPECT_EQ(test, fi_close(&l->pep->fid), 0);
	l->pep = NULL;
}

/* The connection has no other owner before the agent has done with it. */
static void tls_handover(struct kunit *test)
{
	struct live *l = test->priv;
	struct fi_info *req = NULL;

	tls.answer[1] = TLS_SLOW;
	tls_listen(test, l);
	tls_start(test, l);
	KUNIT_EXPECT_EQ(test, live_event(l->pep_eq, FI_CONNREQ, &req, l->in), 5);
	WRITE_ONCE(tls.slow.got, true);
	KUNIT_EXPECT_TRUE(test, READ_ONCE(tls.slow.returned));
	KUNIT_EXPECT_FALSE(test, tls.slow.early);
	if (req)
		live_open(test, l, &l->end[1], req, 0);
}

/* A listener is closed while the agent reports the end of a handshake. */
static void tls_closing_late(struct kunit *test)
{
	struct live *l = test->priv;

	tls.answer[1] = TLS_SLOW;
	tls_listen(test, l);
	tls_start(test, l);
	KUNIT_EXPECT_GT(test, wait_for_completion_timeout(&tls.slow.began,
							  msecs_to_jiffies(LIVE_TIMEOUT)), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&l->pep->fid), 0);
	l->pep = NULL;
	KUNIT_EXPECT_TRUE(test, READ_ONCE(tls.slow.returned));
}

/* A peer without TLS gets no request through, and no answer in clear. */
static void tls_clear_client(struct kunit *test)
{
	struct live *l = test->priv;
	int prov_errno;

	tls_listen(test, l);
	live_open(test, l, &l->end[0], fi_dupinfo(l->info), 0);
	KUNIT_ASSERT_EQ(test, fi_connect(l->end[0].ep, &l->addr, NULL, 0), 0);
	KUNIT_EXPECT_GT(test, tls_refused(l->end[0].eq, &prov_errno), 0);
	KUNIT_EXPECT_EQ(test, fi_eq_read(l->pep_eq, &(u32){ 0 }, l->in, 64, 0), -EAGAIN);
}

/* An info that requires TLS accepts no connection without. */
static void tls_clear_request(struct kunit *test)
{
	struct live *l = test->priv;
	struct fi_info *req = NULL;

	live_listen(test, l, AF_INET);
	live_start(test, l);
	live_open(test, l, &l->end[0], fi_dupinfo(l->info), 0);
	KUNIT_ASSERT_EQ(test, fi_connect(l->end[0].ep, &l->addr, NULL, 0), 0);
	KUNIT_ASSERT_EQ(test, live_event(l->pep_eq, FI_CONNREQ, &req, NULL), 0);
	req->caps |= KOFI_TLS;
	live_open(test, l, &l->end[1], req, 0);
	KUNIT_EXPECT_EQ(test, fi_accept(l->end[1].ep, NULL, 0), -ENOKEY);
}

static void tls_clear_server(struct kunit *test)
{
	struct live *l = test->priv;
	int prov_errno;

	live_listen(test, l, AF_INET);
	live_start(test, l);
	tls_start(test, l);
	KUNIT_EXPECT_GT(test, tls_refused(l->end[0].eq, &prov_errno), 0);
	KUNIT_EXPECT_EQ(test, fi_eq_read(l->pep_eq, &(u32){ 0 }, l->in, 64, 0), -EAGAIN);
}

/* A reject reaches the client, with its data. */
static void tls_reject(struct kunit *test)
{
	struct fi_eq_err_entry err = {};
	struct live *l = test->priv;
	struct fi_info *req = NULL;
	u8 buf[64], data[16] = {};
	u32 event;

	tls_listen(test, l);
	tls_start(test, l);
	KUNIT_ASSERT_EQ(test, live_event(l->pep_eq, FI_CONNREQ, &req, buf), 5);
	KUNIT_EXPECT_EQ(test, fi_reject(l->pep, req->handle, "no", 2), 0);
	fi_freeinfo(req);
	KUNIT_EXPECT_EQ(test, fi_eq_sread(l->end[0].eq, &event, buf, sizeof(buf),
					  LIVE_TIMEOUT, 0), -FI_EAVAIL);
	err.err_data = data;
	err.err_data_size = sizeof(data);
	KUNIT_EXPECT_GT(test, fi_eq_readerr(l->end[0].eq, &err, 0), 0);
	KUNIT_EXPECT_EQ(test, err.err, ECONNREFUSED);
	KUNIT_EXPECT_EQ(test, err.err_data_size, 2);
	KUNIT_EXPECT_MEMEQ(test, data, "no", 2);
}

/* A key that is revoked ends its connections. */
static void tls_revoked(struct kunit *test)
{
	struct live *l = test->priv;
	struct ksk_conn *c;

	tls_connect(test, l);
	c = tls_conn(l, 1);
	key_revoke(tls.key);
	mod_delayed_work(system_wq, &c->watch.work, 0);
	KUNIT_EXPECT_EQ(test, tls_dead(c), EKEYREVOKED);
}

/* ----------------------------------------------------------------- options */

static void tls_options(struct kunit *test)
{
	struct kofi_tls opts = tls_opts(false), bad, got;
	struct live *l = test->priv;
	unsigned int on = 1;
	char name[64];
	size_t len;
	fid_t ep;

	live_listen(test, l, AF_INET);
	live_open(test, l, &l->end[0], fi_dupinfo(l->info), 0);
	ep = &l->end[0].ep->fid;

	KUNIT_EXPECT_EQ(test, fi_setopt(ep, FI_OPT_ENDPOINT, KOFI_OPT_TLS, &opts,
					sizeof(opts) - 1), -FI_ETOOSMALL);
	bad = opts;
	bad.mode = 77;
	KUNIT_EXPECT_EQ(test, tls_opt(ep, &bad), -EINVAL);
	bad = opts;
	bad.key = 0;
	KUNIT_EXPECT_EQ(test, tls_opt(ep, &bad), -EINVAL);
	bad.keyring = key_serial(tls.ring);
	KUNIT_EXPECT_EQ(test, tls_opt(ep, &bad), -EINVAL);
	KUNIT_EXPECT_EQ(test, tls_opt(&l->pep->fid, &bad), 0);
	bad = opts;
	memset(bad.peer, 'x', sizeof(bad.peer));
	KUNIT_EXPECT_EQ(test, tls_opt(ep, &bad), -EINVAL);

	/* not with the emergency reserves, in either order */
	KUNIT_EXPECT_EQ(test, tls_opt(ep, &opts), 0);
	KUNIT_EXPECT_EQ(test, fi_set_val(ep, KOFI_VAL_RECLAIM_SAFE, &on), -EOPNOTSUPP);
	bad = (struct kofi_tls) {};
	KUNIT_EXPECT_EQ(test, tls_opt(ep, &bad), 0);
	KUNIT_EXPECT_EQ(test, fi_set_val(ep, KOFI_VAL_RECLAIM_SAFE, &on), 0);
	KUNIT_EXPECT_EQ(test, tls_opt(ep, &opts), -EOPNOTSUPP);
	on = 0;
	KUNIT_EXPECT_EQ(test, fi_set_val(ep, KOFI_VAL_RECLAIM_SAFE, &on), 0);
	KUNIT_EXPECT_EQ(test, tls_opt(ep, &opts), 0);

	len = sizeof(got);
	KUNIT_EXPECT_EQ(test, fi_getopt(ep, FI_OPT_ENDPOINT, KOFI_OPT_TLS, &got, &len), 0);
	KUNIT_EXPECT_EQ(test, len, sizeof(got));
	KUNIT_EXPECT_EQ(test, got.key, opts.key);
	len = sizeof(name);
	KUNIT_EXPECT_EQ(test, fi_getopt(ep, FI_OPT_ENDPOINT, KOFI_OPT_TLS_PEER, name, &len),
			-ENOTCONN);
	KUNIT_EXPECT_EQ(test, fi_setopt(ep, FI_OPT_ENDPOINT, KOFI_OPT_TLS_PEER, name, 3),
			-FI_ENOPROTOOPT);
}

/* The identity is there before the request is accepted, and at the other side. */
static void tls_identity(struct kunit *test)
{
	struct live *l = test->priv;
	struct kofi_tls opts = {};
	struct fi_info *req = NULL;
	char name[64] = "";
	size_t len = 3;

	tls_listen(test, l);
	tls_start(test, l);
	KUNIT_ASSERT_EQ(test, live_event(l->pep_eq, FI_CONNREQ, &req, l->in), 5);
	live_open(test, l, &l->end[1], req, 0);
	KUNIT_EXPECT_EQ(test, fi_getopt(&l->end[1].ep->fid, FI_OPT_ENDPOINT,
					KOFI_OPT_TLS_PEER, name, &len), -FI_ETOOSMALL);
	KUNIT_EXPECT_EQ(test, len, sizeof(TLS_KEY_NAME));
	KUNIT_EXPECT_EQ(test, fi_getopt(&l->end[1].ep->fid, FI_OPT_ENDPOINT,
					KOFI_OPT_TLS_PEER, name, &len), 0);
	KUNIT_EXPECT_STREQ(test, name, TLS_KEY_NAME);
	/* a connection cannot lose its TLS */
	KUNIT_EXPECT_EQ(test, tls_opt(&l->end[1].ep->fid, &opts), -FI_EOPBADSTATE);
	KUNIT_ASSERT_EQ(test, fi_accept(l->end[1].ep, NULL, 0), 0);
	KUNIT_ASSERT_EQ(test, live_event(l->end[0].eq, FI_CONNECTED, NULL, NULL), 0);
	memset(name, 0, sizeof(name));
	len = sizeof(name);
	KUNIT_EXPECT_EQ(test, fi_getopt(&l->end[0].ep->fid, FI_OPT_ENDPOINT,
					KOFI_OPT_TLS_PEER, name, &len), 0);
	KUNIT_EXPECT_STREQ(test, name, TLS_KEY_NAME);
}

/* Hints that require TLS give infos that require it. */
static void tls_hints(struct kunit *test)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL, *i;
	struct kofi_tls opts = tls_opts(false);
	struct live *l = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->caps = FI_MSG | KOFI_TLS;
	KUNIT_EXPECT_EQ(test, fi_getinfo(FI_VERSION(2, 1), "127.0.0.1", "0",
					 FI_SOURCE | FI_NUMERICHOST, hints, &info), 0);
	fi_freeinfo(hints);
	KUNIT_ASSERT_NOT_NULL(test, info);
	for (i = info; i; i = i->next) {
		KUNIT_EXPECT_STREQ(test, i->fabric_attr->prov_name, "sock");
		KUNIT_EXPECT_EQ(test, i->ep_attr->type, FI_EP_MSG);
		KUNIT_EXPECT_TRUE(test, i->caps & KOFI_TLS);
	}
	l->info = fi_dupinfo(info);
	fi_freeinfo(info);
	KUNIT_ASSERT_EQ(test, fi_fabric(l->info->fabric_attr, &l->fabric, NULL), 0);
	live_open(test, l, &l->end[0], fi_dupinfo(l->info), 0);
	KUNIT_EXPECT_EQ(test, fi_connect(l->end[0].ep, &(struct sockaddr_in) {
			.sin_family = AF_INET, .sin_port = htons(1),
			.sin_addr.s_addr = htonl(INADDR_LOOPBACK) }, NULL, 0), -ENOKEY);
	KUNIT_EXPECT_EQ(test, tls_opt(&l->end[0].ep->fid, &opts), 0);

	KUNIT_ASSERT_EQ(test, fi_passive_ep(l->fabric, l->info, &l->pep, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_eq_open(l->fabric, &(struct fi_eq_attr) {
			.wait_obj = FI_WAIT_UNSPEC }, &l->pep_eq, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_pep_bind(l->pep, &l->pep_eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_listen(l->pep), -ENOKEY);
	KUNIT_EXPECT_EQ(test, tls_opt(&l->pep->fid, &opts), 0);
	KUNIT_EXPECT_EQ(test, fi_listen(l->pep), 0);
	KUNIT_EXPECT_EQ(test, tls_opt(&l->pep->fid, &opts), -FI_EOPBADSTATE);
}

/* Datagrams have no TLS: they refuse the options, and no hints select them with it. */
static void tls_datagrams(struct kunit *test)
{
	static const enum fi_ep_type types[] = { FI_EP_RDM, FI_EP_DGRAM };
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	struct kofi_tls opts = tls_opts(false);
	struct live *l = test->priv;
	size_t len = sizeof(opts);
	unsigned int i;
	fid_t ep;

	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->fabric_attr->prov_name = kstrdup("sock", GFP_KERNEL);
	hints->domain_attr->name = kstrdup("lo", GFP_KERNEL);
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		hints->ep_attr->type = types[i];
		hints->caps = FI_MSG | KOFI_TLS;
		KUNIT_EXPECT_EQ(test, fi_getinfo(FI_VERSION(2, 1), "127.0.0.1", "0",
						 FI_SOURCE | FI_NUMERICHOST, hints, &info),
				-ENODATA);
		hints->caps = FI_MSG;
		KUNIT_ASSERT_EQ(test, fi_getinfo(FI_VERSION(2, 1), "127.0.0.1", "0",
						 FI_SOURCE | FI_NUMERICHOST, hints, &info), 0);
		l->end[0].info = fi_dupinfo(info);
		fi_freeinfo(info);
		info = l->end[0].info;
		KUNIT_ASSERT_EQ(test, fi_fabric(info->fabric_attr, &l->fabric, NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_domain(l->fabric, info, &l->end[0].domain, NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_endpoint(l->end[0].domain, info, &l->end[0].ep, NULL),
				0);
		ep = &l->end[0].ep->fid;
		KUNIT_EXPECT_EQ(test, tls_opt(ep, &opts), -FI_ENOPROTOOPT);
		KUNIT_EXPECT_EQ(test, fi_getopt(ep, FI_OPT_ENDPOINT, KOFI_OPT_TLS, &opts, &len),
				-FI_ENOPROTOOPT);
		KUNIT_EXPECT_EQ(test, fi_getopt(ep, FI_OPT_ENDPOINT, KOFI_OPT_TLS_PEER, &opts,
						&len), -FI_ENOPROTOOPT);
		live_close_end(test, &l->end[0]);
		KUNIT_EXPECT_EQ(test, fi_close(&l->fabric->fid), 0);
		l->fabric = NULL;
	}
	fi_freeinfo(hints);
}

static struct kunit_case tls_cases[] = {
	KUNIT_CASE(tls_sizes),
	KUNIT_CASE(tls_stall),
	KUNIT_CASE(tls_rma),
	KUNIT_CASE(tls_hidden),
	KUNIT_CASE(tls_both),
	KUNIT_CASE(tls_close),
	KUNIT_CASE_PARAM(tls_close_full, tls_lowat_gen_params),
	KUNIT_CASE(tls_tail_page),
	KUNIT_CASE_PARAM(tls_ending, tls_end_gen_params),
	KUNIT_CASE(tls_stalled_fin),
	KUNIT_CASE(tls_fragments),
	KUNIT_CASE(tls_notify),
	KUNIT_CASE_PARAM(tls_refuse, tls_refusal_gen_params),
	KUNIT_CASE(tls_pause),
	KUNIT_CASE(tls_busy),
	KUNIT_CASE_SLOW(tls_many),
	KUNIT_CASE(tls_late),
	KUNIT_CASE(tls_closing),
	KUNIT_CASE(tls_handover),
	KUNIT_CASE(tls_closing_late),
	KUNIT_CASE(tls_clear_client),
	KUNIT_CASE(tls_clear_request),
	KUNIT_CASE(tls_clear_server),
	KUNIT_CASE(tls_reject),
	KUNIT_CASE(tls_revoked),
	KUNIT_CASE(tls_options),
	KUNIT_CASE(tls_identity),
	KUNIT_CASE(tls_hints),
	KUNIT_CASE(tls_datagrams),
	{}
};

static struct kunit_suite tls_suite = {
	.name = "sock_tls",
	.suite_init = lo_suite_init,
	.init = tls_init_test,
	.exit = tls_exit_test,
	.test_cases = tls_cases,
};

kunit_test_suite(tls_suite);

#endif

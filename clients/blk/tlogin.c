// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The login of a connection: who may have it, and for which volume.
 *
 * Messages of the client come through the connection's completion queue, one at a
 * time, in its work item, which may sleep. The last answer is a welcome or a refusal.
 * Commands are accepted from the welcome on. An exchange that authenticates both ends
 * is one more type of message in kblkt_login_message(), which then comes several times.
 *
 * A client that connects again may have commands of its last attempt under way
 * here. They must not be mixed with new ones: a write that is late would destroy
 * what has been written since. So the client is refused until all of its earlier
 * connections are gone, and told to try again.
 */
#include <linux/ipv6.h>
#include <linux/sched/mm.h>
#include <net/ipv6.h>

#include "login.h"
#include "target.h"

/**
 * struct kblkt_login - messages of a login
 * @conn: whose
 * @in: completes the receive of @request
 * @out: completes the send of @answer
 * @refused: the connection ends with @out
 * @waits: @answer is sent when there is room; by the connection's lock
 * @rounds: messages that have been received
 * @request: the client's message
 * @answer: the target's message
 */
struct kblkt_login {
	struct kblkt_conn	*conn;
	struct kofi_cqe		in;
	struct kofi_cqe		out;
	bool			refused;
	bool			waits;
	unsigned int		rounds;
	/* written by a device, so in no cache line with anything else */
	u8			request[KBLK_LOGIN_LEN] __aligned(ARCH_DMA_MINALIGN);
	u8			answer[KBLK_LOGIN_LEN] __aligned(ARCH_DMA_MINALIGN);
};

/* What a client has said */
struct kblkt_wants {
	struct kblk_session	session;
	char			volume[KBLK_NAME_LEN];
	char			host[KBLK_HOST_LEN + 1];
	u8			uuid[16];
	struct kblk_memory	notes;
};

/* --------------------------------------------------------------------- who may */

static bool kblkt_same_net(const struct kblkt_net *n,
			   const struct sockaddr *sa)
{
	const struct sockaddr_in6 *a6 = (const void *)&n->addr, *b6;
	const struct sockaddr_in *a4 = (const void *)&n->addr, *b4;

	if (sa->sa_family != n->addr.ss_family)
		return false;
	if (sa->sa_family == AF_INET6) {
		b6 = (const struct sockaddr_in6 *)sa;
		return ipv6_prefix_equal(&a6->sin6_addr, &b6->sin6_addr,
					 n->bits);
	}
	b4 = (const struct sockaddr_in *)sa;
	return !n->bits || !((a4->sin_addr.s_addr ^ b4->sin_addr.s_addr) &
			     htonl(~0u << (32 - n->bits)));
}

static bool kblkt_allowed(const struct kblkt_volume *v,
			  const struct sockaddr *sa)
{
	unsigned int i;

	for (i = 0; i < v->nr_allow; i++)
		if (kblkt_same_net(&v->allow[i], sa))
			return true;
	return !v->nr_allow;
}

static struct kblkt_volume *kblkt_find(const struct kblkt_wants *w)
{
	struct kblkt_volume *v;

	list_for_each_entry(v, &kblkt_volumes, node)
		if (!memcmp(v->name, w->volume, KBLK_NAME_LEN))
			return v;
	return NULL;
}

/* Earlier attempts of the session end, and keep this one from beginning. */
static enum kblk_reason kblkt_check_session(const struct kblkt_volume *v,
					    const struct kblk_session *s)
{
	enum kblk_reason ret = 0;
	struct kblkt_conn *c;
	s32 age;

	list_for_each_entry(c, &kblkt_conns, node) {
		/* a client of another volume has no say in this one's */
		if (c->volume != v ||
		    memcmp(c->session.session, s->session, sizeof(s->session)))
			continue;
		age = le32_to_cpu(s->attempt) - le32_to_cpu(c->session.attempt);
		if (!age && c->session.queue == s->queue)
			return KBLK_REASON_PROTOCOL;
		/* one that comes late takes nothing from a later one */
		if (age > 0)
			kblkt_lost(c);
		if (age)
			ret = KBLK_REASON_BUSY;
	}
	return ret;
}

/* The connection is the volume's from here on, which cannot go before. */
static enum kblk_reason kblkt_admit(struct kblkt_conn *c,
				    const struct kblkt_wants *w)
{
	unsigned int queues = le16_to_cpu(w->session.queues);
	static const u8 any[sizeof(w->uuid)];
	enum kblk_reason reason;
	struct kblkt_volume *v;

	if (!queues || queues > KBLK_QUEUES ||
	    le16_to_cpu(w->session.queue) >= queues ||
	    strnlen(w->host, KBLK_HOST_LEN + 1) > KBLK_HOST_LEN)
		return KBLK_REASON_PROTOCOL;
	v = kblkt_find(w);
	if (!v)
		return KBLK_REASON_VOLUME;
	if (!kblkt_allowed(v, (const struct sockaddr *)&c->peer))
		return KBLK_REASON_ACCESS;
	if (memcmp(w->uuid, any, sizeof(any)) &&
	    memcmp(w->uuid, v->welcome.uuid, sizeof(w->uuid)))
		return KBLK_REASON_UUID;
	reason = kblkt_check_session(v, &w->session);
	if (reason)
		return reason;
	c->session = w->session;
	strscpy(c->host, w->host);
	c->volume = v;
	WRITE_ONCE(v->conns, v->conns + 1);
	return 0;
}

/* -------------------------------------------------------------------- messages */

static void kblkt_refuse(struct kblkt_login *l, enum kblk_reason reason)
{
	struct kblk_login_head *head = (void *)l->answer;
	const __le16 value = cpu_to_le16(reason);

	if (reason != KBLK_REASON_BUSY)
		pr_warn_ratelimited("kofi_blkt: %pISc refused: %s\n",
				    &l->conn->peer, kblk_reason_text(reason));
	l->refused = true;
	kblk_message(head, KBLK_LOGIN_REFUSED);
	kblk_add_field(head, KBLK_FIELD_REASON | KBLK_FIELD_MUST, &value,
		       sizeof(value));
}

static void kblkt_welcome(struct kblkt_login *l)
{
	struct kblk_login_head *head = (void *)l->answer;
	struct kblkt_conn *c = l->conn;
	struct kblk_welcome w = c->volume->welcome;
	__le64 stable[KBLK_STABLE];
	unsigned int nr;

	c->incarnation = kblkt_flushed(c->volume, 0);
	w.incarnation = cpu_to_le64(c->incarnation);
	/* it may have grown */
	c->sectors = kblkt_sectors(c->volume);
	w.sectors = cpu_to_le64(c->sectors);
	kblk_message(head, KBLK_LOGIN_WELCOME);
	kblk_add_field(head, KBLK_FIELD_WELCOME | KBLK_FIELD_MUST, &w,
		       sizeof(w));
	nr = kblkt_stable_get(&c->volume->uuid, stable);
	kblk_add_field(head, KBLK_FIELD_STABLE, stable, nr * sizeof(*stable));
}

/* 0, or why not */
static enum kblk_reason kblkt_login_request(struct kblkt_login *l, size_t len)
{
	static const struct kblk_rule rules[] = {
		{ KBLK_FIELD_SESSION, sizeof(struct kblk_session),
		  sizeof(struct kblk_session), .grows = true,
		  .at = offsetof(struct kblkt_wants, session) },
		{ KBLK_FIELD_VOLUME, 1, KBLK_NAME_LEN,
		  .at = offsetof(struct kblkt_wants, volume) },
		{ KBLK_FIELD_HOST, 1, KBLK_HOST_LEN, .optional = true,
		  .at = offsetof(struct kblkt_wants, host) },
		{ KBLK_FIELD_UUID, 16, 16, .optional = true,
		  .at = offsetof(struct kblkt_wants, uuid) },
		{ KBLK_FIELD_NOTES, sizeof(struct kblk_memory),
		  sizeof(struct kblk_memory), .grows = true, .optional = true,
		  .at = offsetof(struct kblkt_wants, notes) },
	};
	struct kblkt_conn *c = l->conn;
	struct kblkt_wants wants = {};
	enum kblk_reason reason;
	int err;

	err = kblk_read_fields((void *)l->request, len, rules,
			       ARRAY_SIZE(rules), &wants);
	if (err)
		return err == -EOPNOTSUPP ? KBLK_REASON_UNKNOWN :
					    KBLK_REASON_PROTOCOL;
	mutex_lock(&kblkt_lock);
	reason = kblkt_admit(c, &wants);
	mutex_unlock(&kblkt_lock);
	if (reason)
		return reason;
	err = kblkt_io_alloc(c);
	err = err ?: kblkt_io_start(c);
	if (err) {
		pr_err_ratelimited("kofi_blkt: %pISc: no connection: %d\n",
				   &c->peer, err);
		return KBLK_REASON_FAILED;
	}
	c->notes.at = wants.notes;
	kblkt_welcome(l);
	WRITE_ONCE(c->phase, KBLKT_SERVES);
	return 0;
}

static enum kblk_reason kblkt_login_message(struct kblkt_login *l, size_t len)
{
	const struct kblk_login_head *head = (void *)l->request;

	if (len < sizeof(*head) || l->rounds++ >= KBLK_LOGIN_ROUNDS)
		return KBLK_REASON_PROTOCOL;
	switch (le16_to_cpu(head->type)) {
	case KBLK_LOGIN_REQUEST:
		return kblkt_login_request(l, len);
	}
	return KBLK_REASON_PROTOCOL;
}

static int kblkt_login_receive(struct kblkt_login *l)
{
	return fi_recv(l->conn->ep, l->request, KBLK_LOGIN_LEN, NULL, 0,
		       &l->in);
}

static void kblkt_login_send(struct kblkt_login *l)
{
	const struct kblk_login_head *head = (void *)l->answer;
	struct kblkt_conn *c = l->conn;
	unsigned long flags;
	int err;

	/* with the lock held, so that the write-space callback comes later */
	spin_lock_irqsave(&c->lock, flags);
	err = fi_send(c->ep, l->answer, le16_to_cpu(head->len), NULL, 0,
		      &l->out);
	l->waits = err == -EAGAIN;
	spin_unlock_irqrestore(&c->lock, flags);
	if (err && err != -EAGAIN)
		kblkt_lost(c);
}

/**
 * kblkt_login_space - the write-space callback of a login
 * @c: the connection
 */
void kblkt_login_space(struct kblkt_conn *c)
{
	if (READ_ONCE(c->login->waits))
		kblkt_login_send(c->login);
}

/* In the queue's work item */
static void kblkt_login_in(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct kblkt_login *l = container_of(wc->cqe, struct kblkt_login, in);
	struct kblkt_conn *c = l->conn;
	enum kblk_reason reason;
	unsigned int noio;

	if (wc->err || atomic_read(&c->dead)) {
		kblkt_lost(c);
		return;
	}
	/* volumes that memory is written to may wait for it */
	noio = memalloc_noio_save();
	reason = kblkt_login_message(l, wc->len);
	memalloc_noio_restore(noio);
	if (reason)
		kblkt_refuse(l, reason);
	/* the exchange goes on */
	else if (c->phase == KBLKT_LOGS_IN && kblkt_login_receive(l))
		kblkt_lost(c);
	kblkt_login_send(l);
}

static void kblkt_login_out(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct kblkt_login *l = container_of(wc->cqe, struct kblkt_login, out);

	if (wc->err || l->refused)
		kblkt_lost(l->conn);
}

/**
 * kblkt_login_start - prepare for the first message
 * @c: a connection that is not accepted yet
 *
 * Return: 0 or a negative error code.
 */
int kblkt_login_start(struct kblkt_conn *c)
{
	struct kblkt_login *l = kzalloc(sizeof(*l), GFP_KERNEL);

	if (!l)
		return -ENOMEM;
	c->login = l;
	l->conn = c;
	l->in.done = kblkt_login_in;
	l->out.done = kblkt_login_out;
	return kblkt_login_receive(l);
}

/**
 * kblkt_login_free - undo kblkt_login_start()
 * @c: its endpoint has been closed
 */
void kblkt_login_free(struct kblkt_conn *c)
{
	kfree(c->login);
}

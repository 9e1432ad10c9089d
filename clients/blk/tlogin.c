// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The login of a connection: access control, and assignment of a volume.
 *
 * Messages of the client come through the connection's completion queue, one at a
 * time, in its work item, which may sleep. The last answer is a welcome or a refusal.
 * Commands are accepted from the welcome on.
 *
 * A client that states an identity always gets a challenge first. The target looks
 * for the volume, the identity and the key when it has the client's proof. So a client
 * without a key does not learn which of them exist.
 *
 * If a client connects again, commands of its last attempt may still be executed here.
 * They must not be mixed with new ones: a late write would overwrite newer data. So
 * the client is refused with KBLK_REASON_BUSY until all of its earlier connections are
 * gone; it then tries again.
 */
#include <linux/ctype.h>
#include <linux/random.h>
#include <linux/sched/mm.h>

#include "auth.h"
#include "target.h"

/* Request of a client, from the fields of its message */
struct kblkt_wants {
	struct kblk_session	session;
	char			volume[KBLK_NAME_LEN];
	char			host[KBLK_HOST_LEN + 1];
	u8			uuid[16];
	struct kblk_memory	notes;
	char			identity[KBLK_IDENTITY_LEN + 1];
	u8			nonce[KBLK_NONCE_LEN];
};

#define KBLKT_CHALLENGE	(sizeof(struct kblk_login_head) + \
			 sizeof(struct kblk_field) + KBLK_NONCE_LEN)

/**
 * struct kblkt_login - messages of a login
 * @conn: connection of the login
 * @in: completes the receive of @request
 * @out: completes the sends of @challenge and @answer
 * @sends: sends that have not completed; used in the queue's work item only
 * @refused: close the connection when all sends have completed
 * @why: reason of a refusal for the log, if the client gets a vaguer one; or NULL
 * @reply: message to send, @challenge or @answer
 * @waits: @reply is sent when there is room; written under the connection's lock, read
 *	without it by the write-space callback, which then takes the lock
 * @rounds: messages that have been received
 * @wants: request of the client
 * @script: transcript for the proofs, from the challenge to the welcome; otherwise NULL
 * @key: description of the key that the client has proven; empty without authentication
 * @request: the client's message
 * @challenge: the target's challenge
 * @answer: the target's last message
 */
struct kblkt_login {
	struct kblkt_conn	*conn;
	struct kofi_cqe		in;
	struct kofi_cqe		out;
	unsigned int		sends;
	bool			refused;
	const char		*why;
	const struct kblk_login_head *reply;
	bool			waits;
	unsigned int		rounds;
	struct kblkt_wants	wants;
	struct kblk_script	*script;
	char			key[KBLK_TEXT];
	/* written by a device, so in no cache line with anything else */
	u8			request[KBLK_LOGIN_LEN] __aligned(ARCH_DMA_MINALIGN);
	u8			challenge[KBLKT_CHALLENGE] __aligned(ARCH_DMA_MINALIGN);
	u8			answer[KBLK_LOGIN_LEN] __aligned(ARCH_DMA_MINALIGN);
};

/* -------------------------------------------------------------- access control */

/* Each identity has its own sessions: equal numbers of two identities are two sessions. */
static bool kblkt_same_session(const struct kblkt_conn *c,
			       const struct kblk_session *s,
			       const char *identity)
{
	return !memcmp(c->session.session, s->session, sizeof(s->session)) &&
	       !strcmp(c->identity, identity);
}

/*
 * Close connections of earlier attempts of the session, and refuse this one until they are
 * gone. The number of a session is no secret. So without authentication another address
 * cannot close the session.
 */
static enum kblk_reason kblkt_check_session(const struct kblkt_conn *c,
					    const struct kblkt_conn *o,
					    const struct kblkt_wants *w,
					    const char **why)
{
	const struct kblk_session *s = &w->session;
	s32 age = le32_to_cpu(s->attempt) - le32_to_cpu(o->session.attempt);

	if (!*w->identity && !kblkt_same_addr(&c->peer, &o->peer)) {
		*why = "another address has the session";
		return KBLK_REASON_BUSY;
	}
	if (!age)
		return o->session.queue == s->queue ? KBLK_REASON_PROTOCOL : 0;
	/* a late login of an earlier attempt closes no later connection */
	if (age > 0)
		kblkt_lost((struct kblkt_conn *)o);
	return KBLK_REASON_BUSY;
}

/* An identity is proven, and the name of a host is only stated. */
static bool kblkt_same_host(const struct kblkt_conn *o, const struct kblkt_wants *w)
{
	if (*o->identity || *w->identity)
		return !strcmp(o->identity, w->identity);
	return *w->host && !strcmp(o->host, w->host);
}

/* Check all connections to a volume: several may belong to earlier attempts. */
static enum kblk_reason kblkt_check_others(const struct kblkt_conn *c,
					   const struct kblkt_volume *v,
					   const struct kblkt_wants *w,
					   const char **why)
{
	enum kblk_reason ret = 0, reason;
	struct kblkt_conn *o;

	list_for_each_entry(o, &kblkt_conns, node) {
		reason = 0;
		if (o->volume != v)
			continue;
		if (kblkt_same_session(o, &w->session, w->identity))
			reason = kblkt_check_session(c, o, w, why);
		else if (v->exclusive && !kblkt_same_host(o, w))
			reason = KBLK_REASON_EXCLUSIVE;
		if (ret != KBLK_REASON_EXCLUSIVE && reason)
			ret = reason;
	}
	return ret;
}

/* Connections of the session of @c, with kblkt_lock held */
static unsigned int kblkt_queues(const struct kblkt_conn *c)
{
	const struct kblkt_conn *o;
	unsigned int n = 0;

	list_for_each_entry(o, &kblkt_conns, node)
		n += o->volume == c->volume &&
		     kblkt_same_session(o, &c->session, c->identity);
	return n;
}

/* Each volume has a limit of its own, so clients of one do not suppress lines of others. */
static void kblkt_log(const struct kblkt_conn *c, const char *what)
{
	if (!__ratelimit(&c->volume->log))
		return;
	pr_info("kofi_blkt: %pISc %s %.*s, session %8phN, host %s%s%s\n",
		&c->peer, what, KBLK_NAME_LEN, c->volume->name,
		c->session.session, *c->host ? c->host : "-",
		*c->identity ? ", identity " : "", c->identity);
}

/* Printable, as it is logged and listed; an empty name is no name. */
static bool kblkt_good_host(const char *host)
{
	const char *s;

	for (s = host; *s; s++)
		if (!isascii(*s) || !isgraph(*s))
			return false;
	return true;
}

/*
 * Check a login, and assign the connection to its volume. The volume waits for its
 * connections before it is disabled. Returns 0, or the reason to refuse the login.
 */
static enum kblk_reason kblkt_admit(struct kblkt_login *l)
{
	const struct kblkt_wants *w = &l->wants;
	unsigned int queues = le16_to_cpu(w->session.queues);
	static const u8 any[sizeof(w->uuid)];
	struct kblkt_conn *c = l->conn;
	const struct sockaddr *peer = (const struct sockaddr *)&c->peer;
	enum kblk_reason reason;
	struct kblkt_volume *v;

	if (!queues || queues > KBLK_QUEUES ||
	    le16_to_cpu(w->session.queue) >= queues ||
	    !kblkt_good_host(w->host))
		return KBLK_REASON_PROTOCOL;
	/* the port is being disabled */
	if (!c->port->pep)
		return KBLK_REASON_ACCESS;
	v = kblkt_find(c->port, w->volume, peer, w->identity, &l->why);
	if (!v)
		return KBLK_REASON_ACCESS;
	/* the list has changed since kblkt_find_key() */
	if (!kblkt_allowed(v, peer, w->identity, l->key)) {
		l->why = "the identity has another key now";
		return KBLK_REASON_ACCESS;
	}
	if (memcmp(w->uuid, any, sizeof(any)) &&
	    memcmp(w->uuid, v->welcome.uuid, sizeof(w->uuid)))
		return KBLK_REASON_UUID;
	reason = kblkt_check_others(c, v, w, &l->why);
	if (reason)
		return reason;
	if (v->conns >= READ_ONCE(v->max_conns))
		return KBLK_REASON_FULL;
	c->session = w->session;
	strscpy(c->host, w->host);
	strscpy(c->identity, w->identity);
	strscpy(c->key, l->key);
	c->volume = v;
	v->conns++;
	if (kblkt_queues(c) == 1)
		kblkt_log(c, "logged in to");
	return 0;
}

/**
 * kblkt_logout - undo the login of a connection
 * @c: the connection, no longer in kblkt_conns
 *
 * Context: holds kblkt_lock.
 */
void kblkt_logout(struct kblkt_conn *c)
{
	c->volume->conns--;
	if (!kblkt_queues(c))
		kblkt_log(c, "logged out of");
}

/* Print the counters of a session, if @c is the first of its connections. */
static ssize_t kblkt_client_show(const struct kblkt_conn *c, char *page,
				 ssize_t len)
{
	u64 reads = 0, writes = 0, others = 0, errors = 0;
	const struct kblkt_conn *o;
	unsigned int queues = 0;

	list_for_each_entry(o, &kblkt_conns, node) {
		if (o->volume != c->volume ||
		    !kblkt_same_session(o, &c->session, c->identity))
			continue;
		if (!queues++ && o != c)
			return 0;
		reads += atomic64_read(&o->counts.reads);
		writes += atomic64_read(&o->counts.writes);
		others += atomic64_read(&o->counts.others);
		errors += atomic64_read(&o->counts.errors);
	}
	return sysfs_emit_at(page, len,
			     "%pISc host=%s session=%8phN queues=%u reads=%llu writes=%llu others=%llu errors=%llu digests=%d%s%s\n",
			     &c->peer, c->host, c->session.session, queues,
			     reads, writes, others, errors,
			     !!(c->features & KBLK_FEATURE_DIGEST),
			     *c->identity ? " identity=" : "", c->identity);
}

/**
 * kblkt_clients_show - list the sessions of a volume
 * @v: the volume
 * @page: where to
 *
 * Return: bytes of the text; "..." is its last line if there are more sessions than
 * fit.
 */
ssize_t kblkt_clients_show(const struct kblkt_volume *v, char *page)
{
	const struct kblkt_conn *c;
	ssize_t len = 0;

	mutex_lock(&kblkt_lock);
	list_for_each_entry(c, &kblkt_conns, node) {
		if (c->volume != v)
			continue;
		/* an address, three names and six numbers */
		if (len > PAGE_SIZE - 512) {
			len += sysfs_emit_at(page, len, "...\n");
			break;
		}
		len += kblkt_client_show(c, page, len);
	}
	mutex_unlock(&kblkt_lock);
	return len;
}

/* -------------------------------------------------------------------- messages */

static void kblkt_refuse(struct kblkt_login *l, enum kblk_reason reason)
{
	struct kblk_login_head *head = (void *)l->answer;
	const __le16 value = cpu_to_le16(reason);

	if (reason != KBLK_REASON_BUSY || l->why)
		pr_warn_ratelimited("kofi_blkt: %pISc refused: %s\n",
				    &l->conn->peer,
				    l->why ?: kblk_reason_text(reason));
	l->refused = true;
	l->reply = head;
	kblk_message(head, KBLK_LOGIN_REFUSED);
	kblk_add_field(head, KBLK_FIELD_REASON | KBLK_FIELD_MUST, &value,
		       sizeof(value));
}

/* Reason of a refusal for the log, if the target cannot compute a proof */
static const char *kblkt_no_proof(const struct kblkt_login *l, int err)
{
	switch (err) {
	case -ENOKEY:
	case -EKEYREVOKED:
	case -EKEYEXPIRED:
		return "no valid key for the identity";
	case -ERANGE:
		return "the key of the identity has a wrong length";
	}
	pr_err_ratelimited("kofi_blkt: %pISc: cannot compute a proof: error %d\n",
			   &l->conn->peer, err);
	return "the target cannot compute a proof";
}

/* Append the target's proof to the welcome, which covers all of the login. */
static enum kblk_reason kblkt_welcome_proof(struct kblkt_login *l)
{
	struct kblk_login_head *head = (void *)l->answer;
	u8 mac[KBLK_PROOF_LEN] = {};
	size_t len;
	int err;

	kblk_add_field(head, KBLK_FIELD_PROOF | KBLK_FIELD_MUST, mac,
		       sizeof(mac));
	len = le16_to_cpu(head->len) - sizeof(mac);
	if (kblk_script_add(l->script, head, len))
		return KBLK_REASON_FAILED;
	err = kblkt_auth_prove(l->key, l->script, KBLK_ROLE_TARGET, mac);
	if (err) {
		l->why = kblkt_no_proof(l, err);
		return KBLK_REASON_ACCESS;
	}
	memcpy(l->answer + len, mac, sizeof(mac));
	kvfree(l->script);
	l->script = NULL;
	return 0;
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
	/* the volume may have grown */
	c->sectors = kblkt_sectors(c->volume);
	w.sectors = cpu_to_le64(c->sectors);
	l->reply = head;
	kblk_message(head, KBLK_LOGIN_WELCOME);
	kblk_add_field(head, KBLK_FIELD_WELCOME | KBLK_FIELD_MUST, &w,
		       sizeof(w));
	nr = kblkt_stable_get(&c->volume->uuid, stable);
	kblk_add_field(head, KBLK_FIELD_STABLE, stable, nr * sizeof(*stable));
}

/* Admit the client. Returns 0, or the reason to refuse the login. */
static enum kblk_reason kblkt_login_enter(struct kblkt_login *l)
{
	struct kblkt_conn *c = l->conn;
	enum kblk_reason reason;
	int err;

	mutex_lock(&kblkt_lock);
	reason = kblkt_admit(l);
	mutex_unlock(&kblkt_lock);
	if (reason)
		return reason;
	err = kblkt_io_alloc(c);
	if (err)
		goto fail;
	kblkt_welcome(l);
	if (l->script)
		reason = kblkt_welcome_proof(l);
	if (reason)
		return reason;
	/* no command is received for a client that the last proof refuses */
	err = kblkt_io_start(c);
	if (err)
		goto fail;
	c->notes.at = l->wants.notes;
	mutex_lock(&kblkt_lock);
	c->phase = KBLKT_SERVES;
	mutex_unlock(&kblkt_lock);
	return 0;
fail:
	pr_err_ratelimited("kofi_blkt: %pISc: no connection: %d\n", &c->peer,
			   err);
	return KBLK_REASON_FAILED;
}

static enum kblk_reason kblkt_challenge(struct kblkt_login *l, size_t len)
{
	struct kblk_login_head *head = (void *)l->challenge;
	const struct kblkt_conn *c = l->conn;
	u8 nonce[KBLK_NONCE_LEN];

	l->script = kvzalloc(sizeof(*l->script), GFP_KERNEL);
	if (!l->script)
		return KBLK_REASON_FAILED;
	get_random_bytes(nonce, sizeof(nonce));
	kblk_message(head, KBLK_LOGIN_CHALLENGE);
	kblk_add_field(head, KBLK_FIELD_NONCE | KBLK_FIELD_MUST, nonce,
		       sizeof(nonce));
	l->reply = head;
	kblk_script_begin(l->script, &c->hello, &c->accept);
	if (kblk_script_add(l->script, l->request, len) ||
	    kblk_script_add(l->script, head, sizeof(l->challenge)))
		return KBLK_REASON_FAILED;
	return 0;
}

/* Returns 0, or the reason to refuse the login. */
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
		{ KBLK_FIELD_IDENTITY, 1, KBLK_IDENTITY_LEN, .optional = true,
		  .at = offsetof(struct kblkt_wants, identity) },
		{ KBLK_FIELD_NONCE, KBLK_NONCE_LEN, KBLK_NONCE_LEN,
		  .optional = true, .at = offsetof(struct kblkt_wants, nonce) },
	};
	struct kblkt_wants *w = &l->wants;
	bool nonce;
	int err;

	err = kblk_read_fields((void *)l->request, len, rules,
			       ARRAY_SIZE(rules), w);
	if (err)
		return err == -EOPNOTSUPP ? KBLK_REASON_UNKNOWN :
					    KBLK_REASON_PROTOCOL;
	/* a nonce of zeros is none */
	nonce = memchr_inv(w->nonce, 0, sizeof(w->nonce));
	if (nonce != !!*w->identity)
		return KBLK_REASON_PROTOCOL;
	return nonce ? kblkt_challenge(l, len) : kblkt_login_enter(l);
}

/* Find the key of the client's identity; false: the client is not admitted. */
static bool kblkt_find_key(struct kblkt_login *l)
{
	const struct kblkt_conn *c = l->conn;
	const struct kblkt_volume *v;
	bool ret = false;

	mutex_lock(&kblkt_lock);
	v = kblkt_find(c->port, l->wants.volume,
		       (const struct sockaddr *)&c->peer, l->wants.identity,
		       &l->why);
	if (v) {
		strscpy(l->key, kblkt_allowed_key(v, l->wants.identity));
		ret = true;
	}
	mutex_unlock(&kblkt_lock);
	return ret;
}

/* Check the client's proof. Returns 0, or the reason to refuse the login. */
static enum kblk_reason kblkt_login_proof(struct kblkt_login *l, size_t len)
{
	static const struct kblk_rule rules[] = {
		{ KBLK_FIELD_PROOF, KBLK_PROOF_LEN, KBLK_PROOF_LEN },
	};
	const u8 *proof = kblk_last_proof((void *)l->request, len);
	u8 mac[KBLK_PROOF_LEN], value[KBLK_PROOF_LEN];
	bool found;
	int err;

	err = kblk_read_fields((void *)l->request, len, rules,
			       ARRAY_SIZE(rules), value);
	if (err == -EOPNOTSUPP)
		return KBLK_REASON_UNKNOWN;
	if (err || !proof ||
	    kblk_script_add(l->script, l->request, len - KBLK_PROOF_LEN))
		return KBLK_REASON_PROTOCOL;
	found = kblkt_find_key(l);
	err = kblkt_auth_prove(found ? l->key : NULL, l->script,
			       KBLK_ROLE_CLIENT, mac);
	if (found && err)
		l->why = kblkt_no_proof(l, err);
	if (!err && crypto_memneq(mac, proof, sizeof(mac))) {
		l->why = "the client does not prove its identity";
		err = -EKEYREJECTED;
	}
	if (err)
		return KBLK_REASON_ACCESS;
	if (kblk_script_add(l->script, proof, KBLK_PROOF_LEN))
		return KBLK_REASON_PROTOCOL;
	return kblkt_login_enter(l);
}

static enum kblk_reason kblkt_login_message(struct kblkt_login *l, size_t len)
{
	const struct kblk_login_head *head = (void *)l->request;

	if (len < sizeof(*head) || l->rounds++ >= KBLK_LOGIN_ROUNDS)
		return KBLK_REASON_PROTOCOL;
	switch (le16_to_cpu(head->type)) {
	case KBLK_LOGIN_REQUEST:
		return l->script ? KBLK_REASON_PROTOCOL :
				   kblkt_login_request(l, len);
	case KBLK_LOGIN_PROOF:
		return l->script ? kblkt_login_proof(l, len) :
				   KBLK_REASON_PROTOCOL;
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
	struct kblkt_conn *c = l->conn;
	unsigned long flags;
	int err;

	/* hold the lock, so that the write-space callback comes later */
	spin_lock_irqsave(&c->lock, flags);
	err = fi_send(c->ep, l->reply, le16_to_cpu(l->reply->len), NULL, 0,
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
	/* the login is not complete yet */
	else if (c->phase == KBLKT_LOGS_IN && kblkt_login_receive(l))
		kblkt_lost(c);
	l->sends++;
	kblkt_login_send(l);
}

static void kblkt_login_out(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct kblkt_login *l = container_of(wc->cqe, struct kblkt_login, out);

	l->sends--;
	if (wc->err || (l->refused && !l->sends))
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
 * @c: a connection with a closed endpoint
 */
void kblkt_login_free(struct kblkt_conn *c)
{
	if (c->login)
		kvfree(c->login->script);
	kfree(c->login);
}

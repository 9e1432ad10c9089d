// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The login of a connection. The private data agree on a version and on features.
 * Messages follow: the client sends the first, the target the last.
 *
 * If the mapping has a key, both sides prove that they have it: the client after the
 * target's challenge, then the target with its welcome. A target without the proof is not
 * used. So an attacker who removes the authentication from the messages gets no connection.
 */
#include <linux/completion.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "auth.h"
#include "blk.h"

/**
 * struct kblk_login - messages of a login
 * @in: completes the receive of @answer
 * @out: completes the send of @request
 * @done: @parts is 0
 * @parts: completions of @in and @out that are outstanding
 * @err: an error of either, or 0
 * @len: bytes of @answer
 * @script: transcript for the proofs, or NULL without authentication
 * @request: the client's message
 * @answer: the target's message
 */
struct kblk_login {
	struct kofi_cqe		in;
	struct kofi_cqe		out;
	struct completion	done;
	atomic_t		parts;
	int			err;
	size_t			len;
	struct kblk_script	*script;
	/* written by a device, so in no cache line with anything else */
	u8			request[KBLK_LOGIN_LEN] __aligned(ARCH_DMA_MINALIGN);
	u8			answer[KBLK_LOGIN_LEN] __aligned(ARCH_DMA_MINALIGN);
};

/* -------------------------------------------------------------- the agreement */

/**
 * kblk_features - features that a connection can have
 * @d: a disk with discovery done
 */
u32 kblk_features(const struct kblk_disk *d)
{
	return (kblk_has_data(d->info) ? KBLK_FEATURE_CQ_DATA : 0) |
	       (d->opt.digest != KBLK_DIGEST_OFF ? KBLK_FEATURE_DIGEST : 0);
}

/**
 * kblk_accepted - check private data of an accepted connection
 * @q: queue of the connection
 * @data: private data
 * @len: bytes of @data
 *
 * Return: 0 or a negative error code.
 */
int kblk_accepted(struct kblk_queue *q, const void *data, size_t len)
{
	const u32 both = KBLK_FEATURE_CQ_DATA | KBLK_FEATURE_DIGEST;
	const struct kblk_accept *a = data;
	struct kblk_disk *d = q->disk;

	if (len < sizeof(*a) || a->magic != cpu_to_le32(KBLK_MAGIC) ||
	    le16_to_cpu(a->version) < KBLK_OLDEST ||
	    le16_to_cpu(a->version) > KBLK_VERSION ||
	    le32_to_cpu(a->features) & ~kblk_features(d) ||
	    (le32_to_cpu(a->features) & both) == both)
		return -EPROTO;
	q->accept = *a;
	if (d->opt.digest == KBLK_DIGEST_REQUIRED &&
	    !kblk_has(q, KBLK_FEATURE_DIGEST)) {
		pr_err_ratelimited("kofi_blk: %s uses no digests, which the mapping of %s demands\n",
				   d->opt.addr, d->opt.volume);
		return -EPROTONOSUPPORT;
	}
	return 0;
}

static int kblk_refused(struct kblk_disk *d, unsigned int reason)
{
	if (reason == KBLK_REASON_BUSY)
		return -EBUSY;
	pr_err_ratelimited("kofi_blk: %s refuses volume %s: %s\n", d->opt.addr,
			   d->opt.volume, kblk_reason_text(reason));
	switch (reason) {
	case KBLK_REASON_VERSION:
	case KBLK_REASON_UNKNOWN:
	case KBLK_REASON_FEATURE:
		return -EPROTONOSUPPORT;
	case KBLK_REASON_VOLUME:
		return -ENOENT;
	case KBLK_REASON_ACCESS:
		return -EACCES;
	case KBLK_REASON_FULL:
		return -ENOSPC;
	case KBLK_REASON_PROTOCOL:
		return -EPROTO;
	case KBLK_REASON_EXCLUSIVE:
		return -EUSERS;
	case KBLK_REASON_UUID:
		return -ESTALE;
	}
	return -EREMOTEIO;
}

/**
 * kblk_rejected - error code of a refused connection
 * @d: disk of the connection
 * @e: entry of the event queue
 *
 * Return: a negative error code.
 */
int kblk_rejected(struct kblk_disk *d, const struct fi_eq_err_entry *e)
{
	const struct kblk_refusal *why = e->err_data;
	unsigned int newest, oldest;

	if (e->err_data_size < offsetofend(struct kblk_refusal, reason) ||
	    why->magic != cpu_to_le32(KBLK_MAGIC)) {
		pr_err_ratelimited("kofi_blk: cannot connect to %s: error %d\n",
				   d->opt.addr, e->err);
		return e->err && e->err < FI_ERRNO_OFFSET ? -e->err : -EIO;
	}
	if (le16_to_cpu(why->reason) == KBLK_REASON_VERSION) {
		newest = le16_to_cpu(why->version);
		oldest = e->err_data_size < sizeof(*why) ? newest :
			 le16_to_cpu(why->oldest);
		pr_err_ratelimited("kofi_blk: %s speaks versions %u to %u, this client %u to %u\n",
				   d->opt.addr, oldest, newest, KBLK_OLDEST,
				   KBLK_VERSION);
	}
	return kblk_refused(d, le16_to_cpu(why->reason));
}

/* ------------------------------------------------------------------ the volume */

static bool kblk_power(unsigned int log2, unsigned int min, unsigned int max)
{
	return log2 >= min && log2 <= max;
}

/* Trust a target as little as any other host on the network. */
static bool kblk_welcome_valid(const struct kblk_welcome *w)
{
	return !(le32_to_cpu(w->flags) & ~KBLK_FLAGS) &&
	       kblk_power(w->block, SECTOR_SHIFT, PAGE_SHIFT) &&
	       kblk_power(w->phys, w->block, KBLK_UNIT) &&
	       kblk_power(w->io_min, w->block, KBLK_UNIT) &&
	       le32_to_cpu(w->io_opt) <= BIT(KBLK_IO_OPT) &&
	       IS_ALIGNED(le32_to_cpu(w->io_opt), BIT(w->block)) &&
	       kblk_power(w->bytes_max, PAGE_SHIFT, 31) &&
	       (!w->inline_max || kblk_power(w->inline_max, w->block, 12)) &&
	       (!w->discard_max || (kblk_power(w->discard_max, w->block, 31) &&
				    kblk_power(w->discard_unit, w->block,
					       w->discard_max))) &&
	       (!w->zeroes_max || kblk_power(w->zeroes_max, w->block, 31)) &&
	       IS_ALIGNED(le64_to_cpu(w->sectors),
			  1u << (w->block - SECTOR_SHIFT)) &&
	       le64_to_cpu(w->sectors) <= LLONG_MAX >> SECTOR_SHIFT;
}

/*
 * The first welcome sets the attributes of the disk. A later one must be from the same
 * volume, with the limits that the block layer knows.
 */
static int kblk_welcomed(struct kblk_disk *d, const struct kblk_news *news)
{
	const struct kblk_welcome *w = &news->w;
	struct kblk_welcome now = *w;
	int err;

	if (!kblk_welcome_valid(w))
		return -EPROTO;
	if (!d->known) {
		if (!uuid_is_null(&d->opt.uuid) &&
		    memcmp(&d->opt.uuid, w->uuid, sizeof(w->uuid)))
			return kblk_refused(d, KBLK_REASON_UUID);
		d->welcome = *w;
		err = kblk_cache_get(d);
		if (!err)
			kblk_cache_login(d, news);
		d->known = !err;
		return err;
	}
	now.sectors = d->welcome.sectors;
	now.incarnation = d->welcome.incarnation;
	/* if the device turns out not to support these, the target refuses the commands */
	if (!now.zeroes_max)
		now.zeroes_max = d->welcome.zeroes_max;
	if (!now.discard_max) {
		now.discard_max = d->welcome.discard_max;
		now.discard_unit = d->welcome.discard_unit;
	}
	if (memcmp(&now, &d->welcome, sizeof(now))) {
		pr_err_ratelimited("kofi_blk: %s is not the volume it was\n",
				   d->opt.volume);
		return -ESTALE;
	}
	/* unflushed writes may be gone */
	kblk_cache_login(d, news);
	d->welcome.sectors = w->sectors;
	d->welcome.incarnation = w->incarnation;
	return 0;
}

/* -------------------------------------------------------------------- messages */

static void kblk_login_part(struct kblk_login *l, const struct kofi_wc *wc)
{
	if (wc->err)
		l->err = -EIO;
	if (atomic_dec_and_test(&l->parts))
		complete(&l->done);
}

static void kblk_login_in(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct kblk_login *l = container_of(wc->cqe, struct kblk_login, in);

	l->len = wc->len;
	kblk_login_part(l, wc);
}

static void kblk_login_out(struct fid_cq *cq, const struct kofi_wc *wc)
{
	kblk_login_part(container_of(wc->cqe, struct kblk_login, out), wc);
}

/* Send the request, and wait for the target's answer. */
static int kblk_exchange(struct kblk_queue *q)
{
	struct kblk_login *l = q->login;
	const struct kblk_login_head *head = (void *)l->request;
	const struct kvec kv = {
		.iov_base = l->request, .iov_len = le16_to_cpu(head->len),
	};
	const struct fi_msg msg = {
		.msg_iov = &kv, .iov_count = 1, .context = &l->out,
	};
	struct kblk_disk *d = q->disk;
	unsigned long left = 0;
	int err;

	init_completion(&l->done);
	atomic_set(&l->parts, 2);
	err = fi_recv(q->ep, l->answer, KBLK_LOGIN_LEN, NULL, 0, &l->in);
	if (err)
		return err;
	err = fi_sendmsg(q->ep, &msg, FI_COMPLETION);
	if (err)
		return err;
	do {
		if (q->polled)
			kofi_cq_poll(q->cq, KBLK_QUEUED);
		left = wait_for_completion_timeout(&l->done, q->polled ? 1 :
				msecs_to_jiffies(KBLK_LOOK_MS));
	} while (!left && kblk_left_ms(d) && !READ_ONCE(d->removing));
	if (!left)
		return -ETIMEDOUT;
	return l->err;
}

/* Without a free region there are no notes. Closing the endpoint invalidates the region. */
static bool kblk_notes_open(struct kblk_queue *q, struct kblk_memory *m)
{
	const struct kvec kv = {
		.iov_base = &q->notes, .iov_len = sizeof(q->notes),
	};
	const struct fi_msg vec = { .msg_iov = &kv, .iov_count = 1 };
	struct fid_mr *mr = kofi_mr_get(q->ep);

	memset(&q->notes, 0, sizeof(q->notes));
	q->beat = 0;
	if (!mr)
		return false;
	if (kofi_mr_map(mr, &vec, FI_REMOTE_WRITE, 0)) {
		kofi_mr_put(mr);
		return false;
	}
	*m = (struct kblk_memory) {
		.addr = cpu_to_le64(kofi_mr_base(mr)),
		.key = cpu_to_le64(fi_mr_key(mr)),
		.len = cpu_to_le32(sizeof(q->notes)),
	};
	return true;
}

static void kblk_request(struct kblk_queue *q)
{
	struct kblk_login_head *head = (void *)q->login->request;
	const struct kblk_disk *d = q->disk;
	struct kblk_memory notes;
	struct kblk_session s = {
		.attempt = cpu_to_le32(d->attempt),
		.queue = cpu_to_le16(q->nr),
		.queues = cpu_to_le16(d->nr_queues),
	};

	memcpy(s.session, d->session, sizeof(s.session));
	kblk_message(head, KBLK_LOGIN_REQUEST);
	kblk_add_field(head, KBLK_FIELD_SESSION | KBLK_FIELD_MUST, &s,
		       sizeof(s));
	kblk_add_field(head, KBLK_FIELD_VOLUME | KBLK_FIELD_MUST, d->opt.volume,
		       strlen(d->opt.volume));
	kblk_add_field(head, KBLK_FIELD_HOST, d->opt.host, strlen(d->opt.host));
	if (d->known)
		kblk_add_field(head, KBLK_FIELD_UUID | KBLK_FIELD_MUST,
			       d->welcome.uuid, sizeof(d->welcome.uuid));
	else if (!uuid_is_null(&d->opt.uuid))
		kblk_add_field(head, KBLK_FIELD_UUID | KBLK_FIELD_MUST,
			       &d->opt.uuid, sizeof(d->opt.uuid));
	if (kblk_notes_open(q, &notes))
		kblk_add_field(head, KBLK_FIELD_NOTES, &notes, sizeof(notes));
}

/* ------------------------------------------------------------- authentication */

/* Begin the transcript with the request. */
static int kblk_auth_begin(struct kblk_queue *q)
{
	const struct kblk_options *opt = &q->disk->opt;
	struct kblk_login *l = q->login;
	struct kblk_login_head *head = (void *)l->request;
	u8 nonce[KBLK_NONCE_LEN];

	l->script = kvzalloc(sizeof(*l->script), GFP_NOIO);
	if (!l->script)
		return -ENOMEM;
	get_random_bytes(nonce, sizeof(nonce));
	kblk_add_field(head, KBLK_FIELD_IDENTITY | KBLK_FIELD_MUST, opt->identity,
		       strlen(opt->identity));
	kblk_add_field(head, KBLK_FIELD_NONCE | KBLK_FIELD_MUST, nonce,
		       sizeof(nonce));
	kblk_script_begin(l->script, &q->hello, &q->accept);
	return kblk_script_add(l->script, head, le16_to_cpu(head->len));
}

/* Compute the proof of a side; log the error of the key for the administrator. */
static int kblk_auth_prove(struct kblk_disk *d, struct kblk_script *s,
			   unsigned int role, u8 *mac)
{
	int err = kblk_prove(d->hmac, kblk_keys, d->opt.key, s, role, mac);

	if (err)
		pr_err_ratelimited("kofi_blk: key %s for %s cannot be used: error %d\n",
				   d->opt.key, d->opt.addr, err);
	return err;
}

static int kblk_auth_failed(const struct kblk_disk *d)
{
	pr_err_ratelimited("kofi_blk: %s does not prove that it has key %s\n",
			   d->opt.addr, d->opt.key);
	return -EKEYREJECTED;
}

/* Answer the target's challenge, if it is one, and receive the next message. */
static int kblk_auth_answer(struct kblk_queue *q)
{
	static const struct kblk_rule rules[] = {
		{ KBLK_FIELD_NONCE, KBLK_NONCE_LEN, KBLK_NONCE_LEN },
	};
	struct kblk_login *l = q->login;
	struct kblk_login_head *head = (void *)l->answer;
	u8 nonce[KBLK_NONCE_LEN], mac[KBLK_PROOF_LEN] = {};
	size_t len;
	int err;

	if (l->len < sizeof(*head))
		return -EPROTO;
	if (head->type == cpu_to_le16(KBLK_LOGIN_REFUSED))
		return 0;
	if (head->type != cpu_to_le16(KBLK_LOGIN_CHALLENGE))
		return kblk_auth_failed(q->disk);
	err = kblk_read_fields(head, l->len, rules, ARRAY_SIZE(rules), nonce);
	if (err)
		return err;
	err = kblk_script_add(l->script, head, l->len);
	if (err)
		return err;
	head = (void *)l->request;
	kblk_message(head, KBLK_LOGIN_PROOF);
	kblk_add_field(head, KBLK_FIELD_PROOF | KBLK_FIELD_MUST, mac,
		       sizeof(mac));
	len = le16_to_cpu(head->len) - sizeof(mac);
	err = kblk_script_add(l->script, head, len);
	if (err)
		return err;
	err = kblk_auth_prove(q->disk, l->script, KBLK_ROLE_CLIENT, mac);
	if (err)
		return err;
	memcpy(l->request + len, mac, sizeof(mac));
	err = kblk_script_add(l->script, mac, sizeof(mac));
	if (err)
		return err;
	return kblk_exchange(q);
}

/* Check the proof of a welcome, which covers all of the login. */
static int kblk_auth_check(struct kblk_disk *d, const struct kblk_login *l)
{
	const struct kblk_login_head *head = (void *)l->answer;
	const u8 *proof = kblk_last_proof(head, l->len);
	u8 mac[KBLK_PROOF_LEN];
	int err;

	if (!proof)
		return kblk_auth_failed(d);
	err = kblk_script_add(l->script, head, l->len - KBLK_PROOF_LEN);
	if (err)
		return err;
	err = kblk_auth_prove(d, l->script, KBLK_ROLE_TARGET, mac);
	if (err)
		return err;
	return crypto_memneq(mac, proof, sizeof(mac)) ? kblk_auth_failed(d) : 0;
}

/* --------------------------------------------------------------------- results */

/* A welcome without authentication has no proof: the field is an unknown one then. */
static int kblk_take_welcome(struct kblk_disk *d, const struct kblk_login *l)
{
	struct kblk_full_welcome {
		struct kblk_news	news;
		u8			proof[KBLK_PROOF_LEN];
	} got = {};
	static const struct kblk_rule rules[] = {
		{ KBLK_FIELD_WELCOME, sizeof(struct kblk_welcome),
		  sizeof(struct kblk_welcome), .grows = true,
		  .at = offsetof(struct kblk_full_welcome, news.w) },
		{ KBLK_FIELD_STABLE, 0, sizeof_field(struct kblk_news, stable),
		  .grows = true, .optional = true,
		  .at = offsetof(struct kblk_full_welcome, news.stable) },
		{ KBLK_FIELD_PROOF, KBLK_PROOF_LEN, KBLK_PROOF_LEN,
		  .at = offsetof(struct kblk_full_welcome, proof) },
	};
	unsigned int nr = ARRAY_SIZE(rules) - !l->script;
	int err = 0;

	if (l->script)
		err = kblk_auth_check(d, l);
	if (err)
		return err;
	err = kblk_read_fields((void *)l->answer, l->len, rules, nr, &got);
	if (err)
		return err;
	return kblk_welcomed(d, &got.news);
}

static int kblk_take_refusal(struct kblk_disk *d, const struct kblk_login *l)
{
	static const struct kblk_rule rules[] = {
		{ KBLK_FIELD_REASON, 2, 2, .grows = true },
	};
	__le16 reason = 0;
	int err;

	err = kblk_read_fields((void *)l->answer, l->len, rules,
			       ARRAY_SIZE(rules), &reason);
	if (err)
		return err;
	return kblk_refused(d, le16_to_cpu(reason));
}

/**
 * kblk_login - log in
 * @q: a queue that has just been connected
 *
 * Context: process, may sleep.
 * Return: 0; -EBUSY if an earlier attempt is still ending at the target; -EKEYREJECTED if the
 * target does not prove that it has the key of the mapping; or another negative error code.
 */
int kblk_login(struct kblk_queue *q)
{
	struct kblk_login *l = kzalloc(sizeof(*l), GFP_NOIO);
	const struct kblk_login_head *head;
	int err;

	if (!l)
		return -ENOMEM;
	/* kblk_disconnect() frees it if the login fails */
	q->login = l;
	l->in.done = kblk_login_in;
	l->out.done = kblk_login_out;
	kblk_request(q);
	err = *q->disk->opt.key ? kblk_auth_begin(q) : 0;
	if (err)
		return err;
	err = kblk_exchange(q);
	if (!err && l->script)
		err = kblk_auth_answer(q);
	if (err)
		return err;
	head = (void *)l->answer;
	if (l->len < sizeof(*head))
		return -EPROTO;
	switch (le16_to_cpu(head->type)) {
	case KBLK_LOGIN_WELCOME:
		err = kblk_take_welcome(q->disk, l);
		break;
	case KBLK_LOGIN_REFUSED:
		err = kblk_take_refusal(q->disk, l);
		break;
	default:
		pr_err_ratelimited("kofi_blk: %s asks for what this client does not know\n",
				   q->disk->opt.addr);
		return -EPROTONOSUPPORT;
	}
	if (!err)
		kblk_login_free(q);
	return err;
}

/**
 * kblk_login_free - free the messages of a login
 * @q: a queue that has logged in, or without an endpoint
 */
void kblk_login_free(struct kblk_queue *q)
{
	if (q->login)
		kvfree(q->login->script);
	kfree(q->login);
	q->login = NULL;
}

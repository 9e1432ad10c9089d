// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi-blk-target: a target for kofi_blk.ko that breaks the rules.
 *
 *	kofi-blk-target PROVIDER ADDRESS PORT MIB FAULTS SEED [SHORT]
 *	kofi-blk-target PROVIDER ADDRESS PORT MIB EXCHANGES SEED auth KEYFILE
 *	kofi-blk-target PROVIDER ADDRESS PORT MIB FAULTS SEED digest
 *
 * It has one volume of MIB, of its memory, under any name, and one connection at a
 * time. One command in eight it does wrong, in a way that the client answers with
 * an I/O error; and every second or so in a way that ends the connection: tags and
 * generations of no command, two answers, answers of other lengths, values out of
 * nothing, accesses to memory that is not offered any more or reaches too far, no
 * answer at all. Logins are wrong, too, or say that what was in the volume's write
 * cache has been lost. It counts the FAULTS of the second kind aloud; after so many,
 * and a flush, it says "honest", and does everything right until it is killed. The same
 * seed gives the same choices. With SHORT, its only fault is that reads get that many
 * bytes of their data. With "auth", clients have to authenticate by the key. That many
 * exchanges of proofs are wrong, none of which a client may accept; then it says "honest".
 * With "digest", commands and answers have digests. FAULTS of the answers, or of the data of
 * reads, are damaged after their digests were computed; then it says "honest", too.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "blkauth.h"

#define RECVS		(2 * KBLK_DEPTH)
#define MESSAGE		(sizeof(struct kblk_cmd) + sizeof(struct kblk_digests) + KBLK_INLINE)
#define BYTES_MAX	18	/* log2 of a request's at most */
#define OLD		64	/* keys that are remembered */
#define LIVE_MS		1200	/* one that ends earlier makes the client pause */

/* A command, until it is answered; its memory is the receive's, too. */
struct command {
	unsigned char	bytes[MESSAGE];
	struct kblk_cmd	cmd;
	struct kblk_digests digests;
	bool		reading;	/* its data is under way */
};

const char *program = "kofi-blk-target";

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_eq *eq;
static struct fid_pep *pep;

/* The connection */
static struct fid_domain *domain;
static struct fid_cq *cq;
static struct fid_ep *ep;
static bool connected, down, cq_data;
static double since;
static struct fid_mr *mr;		/* of local, all that is in it */
static struct kblk_cmd old[OLD];	/* with a key that has ended, perhaps */
static unsigned int nr_old;

static struct kblk_memory notes;	/* of the client */
static unsigned char uuid[16];
static uint32_t incarnation;
static struct {
	struct command	commands[RECVS];
	unsigned char	request[KBLK_LOGIN_LEN];
	unsigned char	reply[KBLK_LOGIN_LEN];
	unsigned char	rubbish[(1 << BYTES_MAX) + sizeof(struct kblk_answer)];
	unsigned char	volume[];
} *local;
static uint64_t volume_bytes;
static unsigned int faults, most;
static size_t shortened = SIZE_MAX;	/* bytes of a read at most */

/* What is wrong in an exchange of proofs */
enum wrong {
	WRONG_NONE,		/* a welcome at once, without any proof */
	WRONG_EARLY,		/* a welcome at once, with a proof */
	WRONG_NONCE_LENGTH,
	WRONG_NO_NONCE,
	WRONG_MUST,		/* a mandatory field that is unknown */
	WRONG_TWICE,		/* a second challenge */
	WRONG_NO_PROOF,
	WRONG_KEY,
	WRONG_ECHO,		/* the client's own proof comes back */
	WRONG_REPLAY,
	WRONG_PROOF,
	WRONG_WELCOME,		/* another one than the proof covers */
	WRONG_BEHIND,		/* a field behind the proof */
	WRONG_PROOF_LENGTH,
	WRONG_ACCEPT,		/* another one than the proof covers */
	WRONG_REQUEST,		/* a proof without the client's nonce */
	WRONG_CHALLENGE,	/* another one than the proof covers */
	WRONG_TYPE,
	WRONG_LENGTH,
	WRONG_REFUSAL,
	RIGHT,
};

/* Authentication */
static struct {
	bool		on;
	unsigned int	left;		/* exchanges that are wrong */
	unsigned int	wrong;		/* enum wrong: of this one */
	struct auth_key	key;
	struct script	script;
	unsigned char	last[KBLK_PROOF_LEN];	/* proof of an earlier exchange */
	bool		proven;		/* the client's next message is its proof */
} auth;

/* Digests */
static struct {
	bool		on;
	unsigned int	left;		/* answers that are to be damaged */
	bool		damage;		/* the next one is */
} digest;

/* What has happened */
static unsigned int served, flushed, wrong, connections, logins;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* The losses end before the rest: while there are some, flushes may not get here. */
static bool losing(void)
{
	return faults < most;
}

static bool honest(void)
{
	return (!losing() && flushed) || shortened < SIZE_MAX;
}

static void count_fault(void)
{
	printf("fault %u\n", ++faults);
	fflush(stdout);
}

/* -------------------------------------------------------------- connections */

static void listen_at(const char *provider, const char *node, const char *port)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	info = discover(provider, node, port, FI_SOURCE);
	check(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	check(fi_eq_open(fabric, &attr, &eq, NULL), "fi_eq_open");
	check(fi_passive_ep(fabric, info, &pep, NULL), "fi_passive_ep");
	check(fi_pep_bind(pep, &eq->fid, 0), "fi_pep_bind");
	check(fi_listen(pep), "fi_listen");
}

static void hang_up(void)
{
	if (ep)
		fi_close(&ep->fid);
	if (cq)
		fi_close(&cq->fid);
	if (mr)
		fi_close(&mr->fid);
	if (domain)
		fi_close(&domain->fid);
	ep = NULL;
	mr = NULL;
	cq = NULL;
	domain = NULL;
	connected = false;
	down = false;
	nr_old = 0;
}

static void post(struct command *c)
{
	if (fi_recv(ep, c->bytes, sizeof(c->bytes), fi_mr_desc(mr),
		    FI_ADDR_UNSPEC, c))
		down = true;
}

static void refuse(fid_t handle)
{
	struct kblk_refusal r = {
		.magic = htole32(KBLK_MAGIC), .version = htole16(KBLK_VERSION),
		.reason = htole16(KBLK_REASON_FAILED),
		.oldest = htole16(KBLK_OLDEST),
	};

	if (below(2))
		flip(&r, sizeof(r));
	fi_reject(pep, handle, &r, below(2) ? sizeof(r) : below(sizeof(r)));
}

/* The request of a client that keeps to the rules, which is checked on the way. */
static void request(struct fi_eq_cm_entry *e, size_t len)
{
	const struct kblk_hello *h = (const void *)e->data;
	struct fi_cq_attr attr = {
		.size = 8 * RECVS, .format = FI_CQ_FORMAT_DATA,
		.wait_obj = FI_WAIT_UNSPEC,
	};
	struct kblk_accept a = {
		.magic = htole32(KBLK_MAGIC), .version = htole16(KBLK_VERSION),
	};
	size_t room = sizeof(a);

	if (len < sizeof(*h) || h->magic != htole32(KBLK_MAGIC) ||
	    le16toh(h->oldest) > KBLK_VERSION ||
	    le16toh(h->version) < KBLK_VERSION || le16toh(h->depth) > KBLK_DEPTH)
		die("a connection request of %zu bytes that is none", len);
	hang_up();
	/* the first one has to succeed: it is a mapping */
	if (connections && !honest() && !below(16)) {
		count_fault();
		refuse(e->info->handle);
		return;
	}
	a.features = h->features & htole32(KBLK_FEATURE_CQ_DATA);
	if (digest.on)
		a.features = h->features & htole32(KBLK_FEATURE_DIGEST);
	if (digest.on && !a.features)
		die("a client that offers no digests");
	cq_data = a.features & htole32(KBLK_FEATURE_CQ_DATA);
	if (connections && !honest() && !below(16)) {
		count_fault();
		if (below(3))
			flip(&a, sizeof(a));
		else
			room = below(sizeof(a));
	}
	if (auth.on) {
		auth.wrong = auth.left ? auth.left-- % RIGHT : RIGHT;
		auth.proven = false;
		script_begin(&auth.script, h, &a);
		if (auth.wrong == WRONG_ACCEPT)
			a.reserved = htole16(1 + below(65535));
	}
	check(fi_domain(fabric, e->info, &domain, NULL), "fi_domain");
	mr = local_memory(domain, local, sizeof(*local) + volume_bytes);
	check(fi_cq_open(domain, &attr, &cq, NULL), "fi_cq_open");
	check(fi_endpoint(domain, e->info, &ep, NULL), "fi_endpoint");
	check(fi_ep_bind(ep, &eq->fid, 0), "fi_ep_bind");
	check(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	check(fi_enable(ep), "fi_enable");
	if (fi_recv(ep, local->request, sizeof(local->request), fi_mr_desc(mr),
		    FI_ADDR_UNSPEC, local->request))
		down = true;
	if (fi_accept(ep, &a, room))
		down = true;
}

/* An answer to a login that is wrong in one way; returns its bytes. */
static size_t wrong_reply(size_t len)
{
	struct kblk_login_head *head = (void *)local->reply;
	struct kblk_field *field = (void *)(head + 1);
	uint16_t reason = random64();

	switch (below(7)) {
	case 0:
		return below(len);
	case 1:
		return len + 1 + below(KBLK_LOGIN_LEN - len);
	case 2:		/* too long to be received */
		return KBLK_LOGIN_LEN + 1;
	case 3:
		head->len = htole16(random64());
		return len;
	case 4:
		field->len = htole16(random64());
		return len;
	case 5:		/* one for which authentication might stand */
		return begin_login(local->reply, 4 + below(1000));
	default:
		begin_login(local->reply, KBLK_LOGIN_REFUSED);
		return add_field(local->reply, KBLK_FIELD_REASON, &reason,
				 below(3));
	}
}

/* A challenge is due; returns its bytes, or 0 if a welcome comes instead. */
static size_t challenge(size_t len)
{
	unsigned char nonce[256];
	size_t n = KBLK_NONCE_LEN;

	if (find_field(local->request, len, KBLK_FIELD_NONCE, nonce, sizeof(nonce)) !=
	    KBLK_NONCE_LEN ||
	    !find_field(local->request, len, KBLK_FIELD_IDENTITY, nonce, sizeof(nonce)))
		die("a client with a key does not authenticate");
	if (auth.wrong != WRONG_REQUEST)
		script_add(&auth.script, local->request, len);
	if (auth.wrong == WRONG_NONE || auth.wrong == WRONG_EARLY)
		return 0;
	randomize(nonce, sizeof(nonce));
	begin_login(local->reply, KBLK_LOGIN_CHALLENGE);
	if (auth.wrong == WRONG_NO_NONCE)
		return sizeof(struct kblk_login_head);
	if (auth.wrong == WRONG_NONCE_LENGTH)
		n = odd_size(n);
	len = add_field(local->reply, KBLK_FIELD_NONCE | KBLK_FIELD_MUST, nonce, n);
	if (auth.wrong == WRONG_MUST)
		len = add_field(local->reply, 1000 | KBLK_FIELD_MUST, nonce, 4);
	script_add(&auth.script, local->reply, len);
	if (auth.wrong == WRONG_CHALLENGE)
		spoil(local->reply, len);
	return len;
}

/* End the welcome of @len bytes with a proof; returns the bytes of the message. */
static size_t prove(size_t len)
{
	unsigned char bytes[256], *proof;
	struct auth_key key = auth.key;
	struct kblk_login_head *head = (void *)local->reply;

	if (auth.wrong == WRONG_NONE || auth.wrong == WRONG_NO_PROOF)
		return len;
	randomize(bytes, sizeof(bytes));
	if (auth.wrong == WRONG_PROOF_LENGTH)
		return add_field(local->reply, KBLK_FIELD_PROOF | KBLK_FIELD_MUST, bytes,
				 odd_size(KBLK_PROOF_LEN));
	if (auth.wrong == WRONG_KEY)
		spoil(key.bytes, key.len);
	len = add_proof(&auth.script, &key, KBLK_ROLE_TARGET, local->reply);
	proof = local->reply + len - KBLK_PROOF_LEN;
	switch (auth.wrong) {
	case WRONG_ECHO:
		memcpy(proof, local->request + le16toh(((struct kblk_login_head *)
			local->request)->len) - KBLK_PROOF_LEN, KBLK_PROOF_LEN);
		break;
	case WRONG_REPLAY:
		memcpy(proof, auth.last, sizeof(auth.last));
		break;
	case WRONG_PROOF:
		spoil(proof, KBLK_PROOF_LEN);
		break;
	case WRONG_WELCOME:
		spoil(local->reply, len - KBLK_PROOF_LEN);
		break;
	case WRONG_BEHIND:
		return add_field(local->reply, 1000, bytes, 4 * below(10));
	case WRONG_TYPE:
		head->type = htole16(below(2) ? KBLK_LOGIN_REQUEST :
				     KBLK_LOGIN_PROOF + below(1000));
		break;
	case WRONG_LENGTH:
		if (below(2))
			return below(2) ? below(len) :
			       len + 1 + below(KBLK_LOGIN_LEN - len);
		head->len = htole16(len + 1 + below(1000));
		break;
	default:
		memcpy(auth.last, proof, sizeof(auth.last));
		break;
	}
	return len;
}

/* Another challenge in place of a welcome */
static size_t again(void)
{
	unsigned char nonce[KBLK_NONCE_LEN];

	randomize(nonce, sizeof(nonce));
	begin_login(local->reply, KBLK_LOGIN_CHALLENGE);
	return add_field(local->reply, KBLK_FIELD_NONCE | KBLK_FIELD_MUST, nonce,
			 sizeof(nonce));
}

/* A refusal; of a busy target the client would try again. */
static size_t odd_refusal(void)
{
	uint16_t reason;

	do
		reason = below(2) ? below(16) : random64();
	while (reason == KBLK_REASON_BUSY);
	reason = htole16(reason);
	begin_login(local->reply, KBLK_LOGIN_REFUSED);
	return add_field(local->reply, KBLK_FIELD_REASON, &reason, sizeof(reason));
}

/* Send a message of the login that is not the last one, and receive the next one. */
static void say_login(size_t len)
{
	if (fi_recv(ep, local->request, sizeof(local->request), fi_mr_desc(mr),
		    FI_ADDR_UNSPEC, local->request) ||
	    fi_send(ep, local->reply, len, fi_mr_desc(mr), FI_ADDR_UNSPEC, NULL))
		down = true;
}

/* The client's proof, at the end of its message */
static void take_proof(size_t len)
{
	const struct kblk_login_head *head = (const void *)local->request;
	unsigned char mac[KBLK_PROOF_LEN];

	if (len < sizeof(*head) + sizeof(mac) || head->type != htole16(KBLK_LOGIN_PROOF))
		die("%zu bytes are no proof", len);
	script_add(&auth.script, local->request, len - sizeof(mac));
	script_mac(&auth.script, &auth.key, KBLK_ROLE_CLIENT, mac);
	if (auth.wrong == RIGHT &&
	    memcmp(mac, local->request + len - sizeof(mac), sizeof(mac)))
		die("the client's proof is wrong");
	script_add(&auth.script, local->request + len - sizeof(mac), sizeof(mac));
}

static void login(size_t len)
{
	struct kblk_welcome w = {
		.sectors = htole64(volume_bytes / 512),
		.flags = htole32(KBLK_WRITE_CACHE), .block = 9, .phys = 12,
		.io_min = 12, .inline_max = 12, .bytes_max = BYTES_MAX,
		.io_opt = htole32(1U << KBLK_IO_OPT),
	};
	struct kblk_session s = { 0 };
	unsigned char bytes[64];
	ssize_t err;
	size_t i;

	if (auth.on && auth.proven) {
		take_proof(len);
		goto welcome;
	}
	if (find_field(local->request, len, KBLK_FIELD_SESSION, &s,
		       sizeof(s)) != sizeof(s) || s.queues != htole16(1) ||
	    !find_field(local->request, len, KBLK_FIELD_VOLUME, bytes,
			sizeof(bytes)))
		die("a login of %zu bytes that is none", len);
	logins++;
	memset(&notes, 0, sizeof(notes));
	find_field(local->request, len, KBLK_FIELD_NOTES, &notes, sizeof(notes));
	if (auth.on) {
		len = challenge(len);
		auth.proven = len;
		if (len) {
			say_login(len);
			return;
		}
	}
welcome:
	if (!auth.on && connections &&
	    find_field(local->request, len, KBLK_FIELD_UUID, bytes, sizeof(bytes)) &&
	    memcmp(bytes, uuid, sizeof(uuid)))
		die("another volume is expected");
	if (losing() && !below(4))
		incarnation++;
	w.incarnation = htole64(incarnation);
	memcpy(w.uuid, uuid, sizeof(uuid));
	if (connections && !honest() && !below(16)) {
		count_fault();
		flip(&w, sizeof(w));
		/* another size would be believed, and commands go there */
		w.sectors = htole64(volume_bytes / 512);
	}
	begin_login(local->reply, KBLK_LOGIN_WELCOME);
	len = add_field(local->reply, KBLK_FIELD_WELCOME, &w, sizeof(w));
	/* of a later version */
	if (!auth.on && below(2))
		len = add_field(local->reply, 1000, bytes, sizeof(bytes));
	if (connections && !honest() && !below(8)) {
		count_fault();
		len = wrong_reply(len);
	}
	if (auth.on) {
		if (auth.wrong == WRONG_TWICE)
			len = again();
		else if (auth.wrong == WRONG_REFUSAL)
			len = odd_refusal();
		else
			len = prove(len);
	}
	for (i = 0; i < RECVS; i++)
		post(&local->commands[i]);
	connections++;
	since = now();
	err = fi_send(ep, local->reply, len, fi_mr_desc(mr), FI_ADDR_UNSPEC, NULL);
	if (err)
		down = true;
}

static void events(int timeout)
{
	struct fi_eq_err_entry err = { 0 };
	struct {
		struct fi_eq_cm_entry	cm;
		unsigned char		data[256];
	} e;
	uint32_t event;
	ssize_t n;

	n = fi_eq_sread(eq, &event, &e, sizeof(e), timeout, 0);
	if (n == -FI_EAVAIL) {
		if (fi_eq_readerr(eq, &err, 0) > 0 && ep &&
		    err.fid == &ep->fid)
			down = true;
		return;
	}
	if (n < (ssize_t)sizeof(e.cm))
		return;
	if (event == FI_CONNREQ) {
		request(&e.cm, n - sizeof(e.cm));
		fi_freeinfo(e.cm.info);
	} else if (ep && e.cm.fid == &ep->fid && event == FI_CONNECTED) {
		connected = true;
	} else if (ep && e.cm.fid == &ep->fid) {
		down = true;
	}
}

/* ------------------------------------------------------------------- answers */

/* What is refused now is not sent: nothing here waits to do it later. */
static bool sent(ssize_t err)
{
	if (err && err != -FI_EAGAIN)
		down = true;
	return !err;
}

static uint32_t value_of(const struct kblk_cmd *c, unsigned int status)
{
	return le16toh(c->tag) | (uint32_t)c->gen << 16 | status << 24;
}

/* @len is not sizeof(struct kblk_answer) in an answer that is wrong. */
static void say(uint32_t value, uint32_t digest_value, size_t len)
{
	struct kblk_answer a = {
		.value = htole32(value), .digest = htole32(digest_value),
	};

	memcpy(local->rubbish, &a, sizeof(a));
	if (len <= info->tx_attr->inject_size)
		sent(fi_inject(ep, local->rubbish, len, FI_ADDR_UNSPEC));
	else
		sent(fi_send(ep, local->rubbish, len, fi_mr_desc(mr),
			     FI_ADDR_UNSPEC, NULL));
}

/* The command that @c is a part of */
static const struct command *command_of(const struct kblk_cmd *c)
{
	return (const void *)((const char *)c - offsetof(struct command, cmd));
}

/* The answer to a command, whose digest covers @len bytes of @data, too */
static void answer_with(const struct kblk_cmd *c, unsigned int status, const void *data,
			size_t len)
{
	uint32_t value = value_of(c, status), sum = 0;

	if (digest.on)
		sum = ~crc32c(answer_crc(command_of(c)->digests.command, htole32(value)),
			      data, len);
	/* the tag stays: of no command it would be noticed without a digest */
	if (digest.damage && below(2))
		value ^= 1U << (24 + below(8));
	else if (digest.damage)
		spoil(&sum, sizeof(sum));
	digest.damage = false;
	say(value, sum, sizeof(struct kblk_answer));
}

static void answer(const struct kblk_cmd *c, unsigned int status)
{
	answer_with(c, status, NULL, 0);
}

static void put(const struct kblk_cmd *c, const void *data, size_t len,
		uint64_t addr, uint64_t key)
{
	unsigned char *damaged = local->rubbish + sizeof(struct kblk_answer);

	if (digest.damage && len && below(2)) {
		digest.damage = false;
		memcpy(damaged, data, len);
		damaged[below(len)] ^= 1 << below(8);
		if (sent(fi_write(ep, damaged, len, fi_mr_desc(mr), FI_ADDR_UNSPEC,
				  addr, key, NULL)))
			answer_with(c, KBLK_OK, data, len);
		return;
	}
	if (cq_data)
		sent(fi_writedata(ep, data, len, fi_mr_desc(mr),
				  value_of(c, KBLK_OK), FI_ADDR_UNSPEC, addr,
				  key, NULL));
	else if (sent(fi_write(ep, data, len, fi_mr_desc(mr), FI_ADDR_UNSPEC,
			       addr, key, NULL)))
		answer_with(c, KBLK_OK, data, len);
}

/* Where a command's bytes are, or NULL if that is not in the volume */
static unsigned char *place(const struct kblk_cmd *c)
{
	uint64_t at = le64toh(c->sector) * 512, len = le32toh(c->len);

	if (len > 1U << BYTES_MAX || at > volume_bytes || len > volume_bytes - at)
		die("a command outside of the volume");
	return local->volume + at;
}

static void serve(struct command *c)
{
	struct kblk_cmd *cmd = &c->cmd;
	size_t len = le32toh(cmd->len);

	served++;
	switch (cmd->op) {
	case KBLK_OP_READ:
		put(cmd, place(cmd), len < shortened ? len : shortened,
		    le64toh(cmd->addr), le64toh(cmd->key));
		return;
	case KBLK_OP_WRITE:
		if (cmd->flags & KBLK_CMD_INLINE) {
			memcpy(place(cmd), c->bytes + sizeof(*cmd) +
			       (digest.on ? sizeof(c->digests) : 0), len);
			if (digest.on && c->digests.data !=
			    htole32(~crc32c(~0U, place(cmd), len)))
				die("the digest of data behind a command is wrong");
			break;
		}
		c->reading = true;
		if (sent(fi_read(ep, place(cmd), len, fi_mr_desc(mr),
				 FI_ADDR_UNSPEC, le64toh(cmd->addr),
				 le64toh(cmd->key), c)))
			return;
		c->reading = false;
		answer(cmd, KBLK_IO_ERROR);
		return;
	case KBLK_OP_FLUSH:
		flushed++;
		break;
	default:
		die("a command that has not been offered: %u", cmd->op);
	}
	answer(cmd, KBLK_OK);
}

/* An I/O error for the client, and nothing else */
static void serve_badly(const struct kblk_cmd *c)
{
	size_t len = le32toh(c->len);

	wrong++;
	if (c->op != KBLK_OP_READ || !cq_data || below(2)) {
		/* one that exists, or perhaps not */
		answer(c, 1 + below(below(2) ? KBLK_STATUSES - 1 : 255));
		return;
	}
	/* a read whose data is short, or missing */
	switch (below(3)) {
	case 0:
		answer(c, KBLK_OK);
		break;
	case 1:
		put(c, local->rubbish, 0, le64toh(c->addr), le64toh(c->key));
		break;
	default:
		put(c, local->rubbish, below(len), le64toh(c->addr), le64toh(c->key));
	}
}

/* What ends the connection. False: with this command it cannot be done. */
static bool violate(struct command *c)
{
	static const size_t lengths[] = { 0, 1, 4, 7, 9, 64, 4096, 65536 };
	const struct kblk_cmd *cmd = &c->cmd, *was;
	uint64_t addr = le64toh(cmd->addr), key = le64toh(cmd->key);
	uint32_t value = value_of(cmd, KBLK_OK);
	size_t len = le32toh(cmd->len);
	unsigned int n = 2 + below(8);

	switch (below(14)) {
	case 0:		/* of no command */
		say(value ^ 1U << below(24), 0, sizeof(struct kblk_answer));
		return true;
	case 1:
		say(random64(), 0, sizeof(struct kblk_answer));
		return true;
	case 2:
		say(value, 1U << below(32), sizeof(struct kblk_answer));
		return true;
	case 3:
		say(value, 0, lengths[below(sizeof(lengths) / sizeof(*lengths))]);
		return true;
	case 4:		/* more than once */
		while (n--)
			answer(cmd, KBLK_OK);
		return true;
	case 5:
		if (cmd->op != KBLK_OP_READ)
			return false;
		put(cmd, local->rubbish, len, addr, key);
		put(cmd, local->rubbish, len, addr, key);
		return true;
	case 6:		/* its answer, then its data */
		if (!key)
			return false;
		answer(cmd, KBLK_IO_ERROR);
		if (cmd->op == KBLK_OP_READ)
			put(cmd, local->rubbish, len, addr, key);
		else
			sent(fi_read(ep, local->rubbish, len, fi_mr_desc(mr),
				     FI_ADDR_UNSPEC, addr, key, NULL));
		return true;
	case 7:		/* too far */
		if (!key || cmd->op != KBLK_OP_READ)
			return false;
		put(cmd, local->rubbish, below(2) ? len : 1 + below(512),
		    addr + len - below(512), key);
		return true;
	case 8:		/* the wrong way */
		if (!key)
			return false;
		if (cmd->op == KBLK_OP_WRITE)
			put(cmd, local->rubbish, len, addr, key);
		else
			sent(fi_read(ep, local->rubbish, len, fi_mr_desc(mr),
				     FI_ADDR_UNSPEC, addr, key, NULL));
		return true;
	case 9:		/* a key that has ended, or never was */
		if (!nr_old)
			return false;
		was = &old[below(nr_old < OLD ? nr_old : OLD)];
		put(cmd, local->rubbish, 512, le64toh(was->addr), le64toh(was->key));
		return true;
	case 10:
		put(cmd, local->rubbish, 512, random64(), random64());
		return true;
	case 11:	/* a value without data, out of nothing */
		sent(fi_senddata(ep, local->rubbish, below(2) ? 0 : 8,
				 fi_mr_desc(mr), random64(), FI_ADDR_UNSPEC,
				 NULL));
		return true;
	case 12:	/* no answer */
		return true;
	default:
		down = true;
		return true;
	}
}

/* Notes of anything; that all is stable is not among it, as it would be believed. */
static void note(void)
{
	size_t i, len = le32toh(notes.len);

	if (!len || len > sizeof(struct kblk_notes))
		return;
	for (i = 0; i < len; i++)
		local->rubbish[i] = random64();
	sent(fi_write(ep, local->rubbish, below(len + 1), fi_mr_desc(mr),
		      FI_ADDR_UNSPEC, le64toh(notes.addr), le64toh(notes.key),
		      NULL));
}

static void received(struct command *c, size_t len)
{
	memcpy(&c->cmd, c->bytes, sizeof(c->cmd));
	if (digest.on) {
		memcpy(&c->digests, c->bytes + sizeof(c->cmd), sizeof(c->digests));
		if (c->digests.command != cmd_digest(&c->cmd, c->digests.data))
			die("the digest of a command is wrong");
		if (digest.left && now() - since > LIVE_MS / 1000.0 && !below(4)) {
			digest.left--;
			digest.damage = true;
			/* one for each connection, which ends */
			since = now() + 3600;
			count_fault();
		}
	}
	if (!honest() && !below(16))
		note();
	if (len < sizeof(c->cmd))
		die("a command of %zu bytes", len);
	if (!honest() && now() - since > LIVE_MS / 1000.0 && !below(4) &&
	    violate(c)) {
		count_fault();
	} else if (!honest() && !below(8)) {
		serve_badly(&c->cmd);
	} else {
		serve(c);
	}
	if (c->cmd.key)
		old[nr_old++ % OLD] = c->cmd;
	if (!c->reading && !down)
		post(c);
}

static void progress(int timeout)
{
	struct fi_cq_data_entry e;
	struct command *c;
	ssize_t n;

	n = fi_cq_sread(cq, &e, 1, NULL, timeout);
	if (n == -FI_EAGAIN || n == -FI_EINTR || n == -FI_ETIMEDOUT)
		return;
	if (n < 0) {
		/* of any operation: the connection has ended */
		down = true;
		return;
	}
	c = e.op_context;
	if (e.op_context == local->request) {
		login(e.len);
	} else if (e.flags & FI_RECV) {
		received(c, e.len);
	} else if (c) {
		c->reading = false;
		if (digest.on && c->digests.data !=
		    htole32(~crc32c(~0U, place(&c->cmd), le32toh(c->cmd.len))))
			die("the digest of data in memory is wrong");
		answer(&c->cmd, KBLK_OK);
		post(c);
	}
}

static void ended(int number)
{
	(void)number;
	/* the numbers have been said: this is how the script ends it */
	_exit(0);
}

int main(int argc, char **argv)
{
	bool told = false;
	size_t i;

	if (argc == 9 && !strcmp(argv[7], "auth")) {
		self_test();
		auth.on = true;
		read_key(&auth.key, argv[8]);
	} else if (argc != 7 && argc != 8) {
		die("usage: kofi-blk-target PROVIDER ADDRESS PORT MIB FAULTS SEED [SHORT]");
	}
	volume_bytes = strtoull(argv[4], NULL, 0) << 20;
	most = strtoul(argv[5], NULL, 0);
	chance = strtoull(argv[6], NULL, 0);
	if (auth.on) {
		/* commands are served without a fault */
		auth.left = most;
		most = 0;
		shortened = SIZE_MAX - 1;
	}
	if (argc == 8 && !strcmp(argv[7], "digest")) {
		digest.on = true;
		digest.left = most;
		most = 0;
		shortened = SIZE_MAX - 1;
	} else if (argc == 8) {
		shortened = strtoul(argv[7], NULL, 0);
	}
	local = calloc(1, sizeof(*local) + volume_bytes);
	if (!local)
		die("no memory");
	for (i = 0; i < sizeof(uuid); i++)
		uuid[i] = below(256);
	signal(SIGTERM, ended);
	listen_at(argv[1], argv[2], argv[3]);
	for (;;) {
		events(connected ? 0 : 50);
		if (connected && !down)
			progress(20);
		if (down)
			hang_up();
		if (!told && honest() && !auth.left && !digest.left) {
			told = true;
			printf("seed %s: %u commands served, %u flushes, %u wrongly; ",
			       argv[6], served, flushed, wrong);
			printf("%u logins, %u connections, %u faults, %u losses\nhonest\n",
			       logins, connections, faults, incarnation);
			fflush(stdout);
		}
	}
}

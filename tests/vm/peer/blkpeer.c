// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi-blk-peer: a client of kofi_blkt.ko that breaks the rules.
 *
 *	kofi-blk-peer PROVIDER ADDRESS PORT VOLUME COMMANDS SEED
 *	kofi-blk-peer PROVIDER ADDRESS PORT VOLUME takeover|inherit|apart SESSION [IDENTITY KEYFILE]
 *	kofi-blk-peer PROVIDER ADDRESS PORT VOLUME auth IDENTITY KEYFILE EXCHANGES SEED
 *	kofi-blk-peer PROVIDER ADDRESS PORT VOLUME digest FAULTS SEED
 *	kofi-blk-peer tcp ADDRESS PORT VOLUME reset COMMANDS
 *
 * It maps the volume again and again and sends commands, of which one in eight is
 * not what a client would send: bits are wrong, or a field, or the length, keys
 * end while they are used, tags are used twice, there are more commands than was
 * said. So are logins. The target has to answer each once or to end the connection,
 * and must not hang. At last it has to serve an honest client, and one of a later
 * version that speaks this one, too. What may not have been changed
 * the script compares. The same seed gives the same commands. With "takeover" it logs
 * in to another client's session, and expects that it is busy. With "inherit" it does so
 * from the session's own address: when an attempt has ended the session, a later one may
 * be welcome. With "apart" the first attempt has to be welcome: IDENTITY is another one, so
 * the session is another one, too. With "auth" it makes that many exchanges of proofs that
 * are wrong in one way, none of which may be welcome, and right ones in between, which must
 * be: they check the target's proof. Before that, each field has the values at its
 * boundaries, with a right proof of what is sent. IDENTITY and KEYFILE authenticate the
 * others, too.
 * With "digest" its commands have digests. It damages FAULTS of them on the way, or their
 * data: none may be answered, and no write of them may reach the volume.
 * With "reset" it sends writes of 4 KiB, the last one to the first block of the volume,
 * says "sent", waits for a line of input, and resets its connection.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "blkauth.h"

#define TIMEOUT		120	/* seconds; nothing that works takes this long */
#define MEMORY		(256U << 10)
#define MESSAGE		(sizeof(struct kblk_cmd) + sizeof(struct kblk_digests) + 2 * KBLK_INLINE)
#define SENDS		(4 * KBLK_DEPTH)
#define BURST		200	/* commands of a connection at most */

const char *program = "kofi-blk-peer";

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_eq *eq;
static struct fid_domain *domain;
static struct fid_mr *mr;	/* of memory, for the target */
static uint64_t key, base;
static unsigned char memory[MEMORY];
static struct {
	struct { unsigned char bytes[MESSAGE]; } sends[SENDS];
	struct kblk_answer answers[KBLK_DEPTH];
	unsigned char request[KBLK_LOGIN_LEN];
	unsigned char reply[KBLK_LOGIN_LEN];
} local;
static struct fid_mr *local_mr;

/* The connection */
static struct fid_cq *cq;
static struct fid_ep *ep;
static struct kblk_welcome welcome;
static struct kblk_accept accepted;
static bool connected, welcomed, challenged, down;
static bool proves;		/* challenges are expected */
static bool digests;		/* are offered, and demanded */
static uint32_t last_value, last_digest;
static size_t reply_len;
static unsigned int last_reason;
static const char *why;		/* it is down */
static unsigned int asked, answered, sending, next_send, last_status;
static bool busy[KBLK_DEPTH];	/* tags of commands without an answer */

/* What has happened */
static unsigned int commands, messages, good, bad, connections, ended, refused;
static const char *volume;
static uint32_t attempt;

/* -------------------------------------------------------------- connections */

static void open_all(const char *provider, const char *node, const char *port)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	info = discover(provider, node, port, 0);
	if (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		base = (uintptr_t)memory;
	check(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	check(fi_eq_open(fabric, &attr, &eq, NULL), "fi_eq_open");
	check(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	local_mr = local_memory(domain, &local, sizeof(local));
}

/* Another key each time: the former one ends, perhaps while it is used. */
static void renew(void)
{
	if (mr)
		check(fi_close(&mr->fid), "closing a region");
	key = random64() >> 1;
	check(fi_mr_reg(domain, memory, MEMORY,
			FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, 0, &mr, NULL),
	      "fi_mr_reg");
	key = fi_mr_key(mr);
}

static void lost(const char *reason)
{
	if (!down)
		why = reason;
	down = true;
}

static void post(struct kblk_answer *a)
{
	ssize_t err = fi_recv(ep, a, sizeof(*a), fi_mr_desc(local_mr),
			      FI_ADDR_UNSPEC, a);

	if (err)
		lost(fi_strerror(-err));
}

/* Whether there was one */
static bool events(int timeout)
{
	unsigned char data[256];
	struct fi_eq_err_entry err = {
		.err_data = data, .err_data_size = sizeof(data),
	};
	struct {
		struct fi_eq_cm_entry	cm;
		unsigned char		data[256];
	} e;
	struct kblk_refusal no;
	uint32_t event;
	ssize_t n;

	n = fi_eq_sread(eq, &event, &e, sizeof(e), timeout, 0);
	if (n == -FI_EAVAIL) {
		if (fi_eq_readerr(eq, &err, 0) <= 0 || !ep ||
		    err.fid != &ep->fid)
			return true;
		lost(fi_strerror(err.err));
		if (err.err_data_size >= sizeof(no)) {
			memcpy(&no, err.err_data, sizeof(no));
			if (le32toh(no.magic) == KBLK_MAGIC)
				last_reason = le16toh(no.reason);
		}
		return true;
	}
	if (n < 0)
		return false;
	if (!ep || e.cm.fid != &ep->fid)
		return true;
	if (event == FI_SHUTDOWN)
		lost("it has been shut down");
	if (event != FI_CONNECTED)
		return true;
	if (n < (ssize_t)(sizeof(e.cm) + sizeof(accepted)))
		die("the acceptance has %zd bytes", n - sizeof(e.cm));
	memcpy(&accepted, e.data, sizeof(accepted));
	connected = true;
	return true;
}

/* An answer is counted; whether it is right only an honest client can say. */
static void take(uint32_t value)
{
	last_value = value;
	last_status = value >> 24;
	busy[value % KBLK_DEPTH] = false;
	if (last_status == KBLK_OK)
		good++;
	else
		bad++;
	if (++answered > asked)
		die("%u answers to %u commands", answered, asked);
}

/* A challenge, or the last message of a login */
static void take_login(size_t len)
{
	const struct kblk_login_head *head = (const void *)local.reply;
	uint16_t reason = 0;
	size_t i;

	reply_len = len;
	switch (len < sizeof(*head) ? 0 : le16toh(head->type)) {
	case KBLK_LOGIN_WELCOME:
		if (find_field(local.reply, len, KBLK_FIELD_WELCOME, &welcome,
			       sizeof(welcome)) != sizeof(welcome))
			die("a welcome without a volume");
		for (i = 0; i < KBLK_DEPTH; i++)
			post(&local.answers[i]);
		welcomed = true;
		return;
	case KBLK_LOGIN_CHALLENGE:
		if (!proves)
			break;
		challenged = true;
		return;
	case KBLK_LOGIN_REFUSED:
		if (find_field(local.reply, len, KBLK_FIELD_REASON, &reason,
			       sizeof(reason)) != sizeof(reason))
			die("a refusal without a reason");
		last_reason = le16toh(reason);
		lost("the login is refused");
		return;
	}
	die("%zu bytes are no answer to a login", len);
}

static void progress(int timeout)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_data_entry e;
	struct kblk_answer *a;
	ssize_t n;

	n = fi_cq_sread(cq, &e, 1, NULL, timeout);
	if (n == 1 && e.flags & FI_REMOTE_CQ_DATA) {
		take(e.data);
		/* it has taken a receive there */
		if (info->mode & FI_RX_CQ_DATA)
			post(e.op_context);
	} else if (n == 1 && e.flags & FI_SEND) {
		sending--;
	} else if (n == 1 && e.op_context == local.reply) {
		take_login(e.len);
	} else if (n == 1) {
		a = e.op_context;
		if (e.len != sizeof(*a) || (a->digest && !digests))
			die("an answer of %zu bytes", e.len);
		last_digest = a->digest;
		take(le32toh(a->value));
		post(a);
	} else if (n == -FI_EAVAIL) {
		/* of any operation: the connection has ended */
		fi_cq_readerr(cq, &err, 0);
		lost(fi_strerror(err.err));
	} else if (n != -FI_EAGAIN && n != -FI_EINTR && n != -FI_ETIMEDOUT) {
		lost(fi_strerror(-n));
	} else {
		events(0);
	}
}

static void hang_up(void)
{
	if (ep)
		fi_close(&ep->fid);
	if (cq)
		fi_close(&cq->fid);
	ep = NULL;
	cq = NULL;
	/* the next endpoint may have the same address */
	while (events(0))
		;
}

static time_t limit(void)
{
	return time(NULL) + TIMEOUT;
}

static void open_connection(void)
{
	struct fi_cq_attr attr = {
		.size = 2 * SENDS, .format = FI_CQ_FORMAT_DATA,
		.wait_obj = FI_WAIT_UNSPEC,
	};
	ssize_t err;

	connected = false;
	welcomed = false;
	challenged = false;
	down = false;
	last_reason = 0;
	asked = 0;
	answered = 0;
	sending = 0;
	memset(busy, 0, sizeof(busy));
	check(fi_cq_open(domain, &attr, &cq, NULL), "fi_cq_open");
	check(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	check(fi_ep_bind(ep, &eq->fid, 0), "fi_ep_bind");
	check(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	check(fi_enable(ep), "fi_enable");
	err = fi_recv(ep, local.reply, sizeof(local.reply), fi_mr_desc(local_mr),
		      FI_ADDR_UNSPEC, local.reply);
	check(err, "fi_recv");
}

/* Whether the target has accepted; @len bytes of a hello */
static bool reach(const void *hello, size_t len)
{
	time_t end = limit();

	open_connection();
	check(fi_connect(ep, info->dest_addr, hello, len), "fi_connect");
	while (!connected && !down) {
		events(100);
		if (time(NULL) > end)
			die("no answer to a connection request");
	}
	return connected;
}

static struct kblk_hello right_hello(void)
{
	return (struct kblk_hello) {
		.magic = htole32(KBLK_MAGIC), .version = htole16(KBLK_VERSION),
		.oldest = htole16(KBLK_OLDEST),
		.features = htole32(KBLK_FEATURE_CQ_DATA |
				    (digests ? KBLK_FEATURE_DIGEST : 0)),
		.depth = htole16(KBLK_DEPTH),
	};
}

/* The request of a login, whose bytes it returns */
static size_t right_login(bool honest)
{
	struct kblk_session s = {
		.session = { honest, 2, 3 }, .attempt = htole32(++attempt),
		.queues = htole16(1),
	};
	struct kblk_memory n = { 0 };

	begin_login(local.request, KBLK_LOGIN_REQUEST);
	add_field(local.request, KBLK_FIELD_SESSION | KBLK_FIELD_MUST, &s,
		  sizeof(s));
	add_field(local.request, KBLK_FIELD_HOST, program, strlen(program));
	/* memory for notes, which is another one's half the time */
	if (!honest) {
		n.addr = htole64(below(2) ? base : random64());
		n.key = htole64(below(2) ? key : random64());
		n.len = htole32(below(2) ? sizeof(struct kblk_notes) : random64());
		add_field(local.request, KBLK_FIELD_NOTES, &n, sizeof(n));
	}
	return add_field(local.request, KBLK_FIELD_VOLUME, volume, strlen(volume));
}

/* Whether the target welcomes us */
static bool log_in(size_t len)
{
	time_t end = limit();
	ssize_t err;

	sending++;
	err = fi_send(ep, local.request, len, fi_mr_desc(local_mr),
		      FI_ADDR_UNSPEC, local.request);
	if (err)
		lost(fi_strerror(-err));
	while (!welcomed && !challenged && !down) {
		progress(20);
		if (time(NULL) > end)
			die("no answer to a login");
	}
	return welcomed;
}

/* A login that is wrong in one way; returns the bytes of the message. */
static size_t wrong_login(size_t len)
{
	struct kblk_login_head *head = (void *)local.request;
	unsigned char rubbish[300];
	size_t i;

	for (i = 0; i < sizeof(rubbish); i++)
		rubbish[i] = random64();
	switch (below(8)) {
	case 0:
		flip(local.request, len);
		return len;
	case 1:		/* not so long as it says */
		head->len = htole16(below(KBLK_LOGIN_LEN));
		return len;
	case 2:
		return below(len);
	case 3:
		return len + 1 + below(KBLK_LOGIN_LEN - len);
	case 4:		/* what there is once only */
		return add_field(local.request, 1 + below(4), rubbish, below(64));
	case 5:
		begin_login(local.request, below(2) ? KBLK_LOGIN_REQUEST :
						      random64() & 0xffff);
		return add_field(local.request, KBLK_FIELD_VOLUME, volume,
				 strlen(volume));
	case 6:		/* unknown fields, as many as there is room for */
		while (len + sizeof(rubbish) + 8 < KBLK_LOGIN_LEN)
			len = add_field(local.request, 64 + below(1000), rubbish,
					below(sizeof(rubbish)));
		return len;
	default:	/* a field that goes behind the end */
		((struct kblk_field *)(head + 1))->len = htole16(random64());
		return len;
	}
}

/* Whether the target has accepted all of it */
static bool dial(bool honest)
{
	struct kblk_hello h = right_hello();
	size_t len = sizeof(h);

	if (!honest && !below(4))
		flip(&h, sizeof(h));
	if (!honest && !below(8))
		len = below(sizeof(h));
	if (reach(&h, len)) {
		len = right_login(honest);
		if (!honest && !below(4))
			len = wrong_login(len);
		if (len)
			log_in(len);
	}
	if (welcomed)
		connections++;
	else
		refused++;
	return welcomed;
}

/* Until no more than so many commands are without an answer */
static void await(unsigned int most)
{
	time_t end = limit();

	while (!down && asked - answered > most) {
		progress(20);
		if (time(NULL) > end)
			die("no answer to %u of %u commands", asked - answered,
			    asked);
	}
}

static void transmit(const void *bytes, size_t len)
{
	unsigned char *room = local.sends[next_send++ % SENDS].bytes;
	time_t end = limit();
	ssize_t err;

	/* sent in order, so the oldest room is the next one to be free */
	while (!down && sending >= SENDS - 1 && time(NULL) <= end)
		progress(20);
	memcpy(room, bytes, len);
	while (!down) {
		err = fi_send(ep, room, len, fi_mr_desc(local_mr),
			      FI_ADDR_UNSPEC, room);
		if (!err)
			break;
		if (err != -FI_EAGAIN)
			lost(fi_strerror(-err));
		else if (time(NULL) > end)
			die("the target takes no command");
		progress(1);
	}
	busy[le16toh(((const struct kblk_cmd *)bytes)->tag) % KBLK_DEPTH] = true;
	sending++;
	asked++;
	messages++;
}

/* ----------------------------------------------------------------- commands */

/* There is one: fewer commands than tags are without an answer. */
static unsigned int free_tag(void)
{
	unsigned int tag = below(KBLK_DEPTH);

	while (busy[tag])
		tag = (tag + 1) % KBLK_DEPTH;
	return tag;
}

/* One that a client might send; returns bytes of data behind it. */
static size_t command(struct kblk_cmd *c)
{
	uint64_t block = 1U << welcome.block;
	uint64_t blocks = le64toh(welcome.sectors) * 512 / block;
	uint64_t len = block * (1 + below(16)), at;

	*c = (struct kblk_cmd) {
		.op = below(KBLK_OPS), .tag = htole16(free_tag()),
		.gen = random64(),
	};
	if (c->op == KBLK_OP_FLUSH)
		return 0;
	at = random64() % (blocks - 16) * (block / 512);
	c->sector = htole64(at);
	c->len = htole32(len);
	if (c->op == KBLK_OP_WRITE) {
		if (!below(4))
			c->flags = KBLK_CMD_FUA;
		if (len <= KBLK_INLINE && below(2)) {
			c->flags |= KBLK_CMD_INLINE;
			return len;
		}
	}
	if (c->op > KBLK_OP_WRITE)
		return 0;
	c->addr = htole64(base + below(MEMORY - len + 1));
	c->key = htole64(key);
	return 0;
}

static uint32_t odd_length(void)
{
	static const uint32_t lengths[] = {
		0, 1, 511, 513, 4097, 262144, 262656, 16777216, 16777728,
		0x7ffffe00, 0xfffffe00, 0xffffffff,
	};

	return lengths[below(sizeof(lengths) / sizeof(*lengths))];
}

static uint64_t odd_sector(void)
{
	uint64_t end = le64toh(welcome.sectors);

	switch (below(4)) {
	case 0:
		return end - below(32);
	case 1:
		return end + below(1 << 20);
	case 2:
		return ~0ULL - below(32);
	default:
		return 1ULL << below(64);
	}
}

/* Make it wrong in one way; returns the bytes of the message. */
static size_t mutate(struct kblk_cmd *c, size_t len)
{
	switch (below(12)) {
	case 0:
		flip(c, sizeof(*c));
		break;
	case 1:
		c->sector = htole64(odd_sector());
		break;
	case 2:
		c->len = htole32(odd_length());
		break;
	case 3:
		c->op = random64();
		break;
	case 4:
		c->flags = random64();
		break;
	case 5:
		c->tag = htole16(random64());
		break;
	case 6:
		c->key = htole64(random64());
		break;
	case 7:
		c->addr = htole64(below(2) ? base + MEMORY - 1 - below(600) :
				    random64());
		break;
	case 8:
		return below(sizeof(*c));
	case 9:
		return sizeof(*c) + below(MESSAGE - sizeof(*c));
	case 10:
		return len + 1;
	default:
		c->sector = htole64(odd_sector());
		c->len = htole32(odd_length());
	}
	return len;
}

static void one(void)
{
	static unsigned char message[MESSAGE];
	struct kblk_cmd c;
	size_t len = sizeof(c) + command(&c), i;
	unsigned int n = 1;

	commands++;
	if (!below(8))
		len = mutate(&c, len);
	memcpy(message, &c, sizeof(c));
	for (i = sizeof(c); i < len; i++)
		message[i] = i;
	/* many of the same tag, and more than was said: this is its end */
	if (!below(64))
		n = 2 * KBLK_DEPTH;
	while (n-- && !down)
		transmit(message, len);
	if (!below(32))
		renew();
	await(below(4) ? KBLK_DEPTH - 1 : 0);
}

/* ------------------------------------------------------------------- honest */

static unsigned int ask(struct kblk_cmd *c, const void *data, size_t len)
{
	unsigned char message[sizeof(*c) + 512];

	memcpy(message, c, sizeof(*c));
	if (len)
		memcpy(message + sizeof(*c), data, len);
	transmit(message, sizeof(*c) + len);
	await(0);
	if (down)
		die("an honest client's connection ends: %s", why);
	return last_status;
}

/* The target serves as if nothing had been. */
static void honestly(void)
{
	unsigned int status, want = KBLK_OK;
	unsigned char data[512];
	time_t end = limit();
	struct kblk_cmd c;
	size_t i;

	while (!dial(true)) {
		hang_up();
		if (time(NULL) > end)
			die("the target refuses an honest client");
	}
	renew();
	for (i = 0; i < sizeof(data); i++)
		data[i] = random64();
	memset(memory, 0, sizeof(memory));
	if (le16toh(welcome.flags) & KBLK_READ_ONLY)
		want = KBLK_PROTECTED;
	c = (struct kblk_cmd) {
		.op = KBLK_OP_WRITE, .flags = KBLK_CMD_INLINE, .tag = 1,
		.len = htole32(512),
	};
	status = ask(&c, data, 512);
	if (status != want)
		die("a write ends with %u", status);
	c = (struct kblk_cmd) { .op = KBLK_OP_FLUSH };
	status = ask(&c, NULL, 0);
	if (status != KBLK_OK)
		die("a flush ends with %u", status);
	c = (struct kblk_cmd) {
		.op = KBLK_OP_READ, .len = htole32(512), .addr = htole64(base),
		.key = htole64(key),
	};
	status = ask(&c, NULL, 0);
	if (status != KBLK_OK)
		die("a read ends with %u", status);
	if (want == KBLK_OK && memcmp(memory, data, sizeof(data)))
		die("what has been written is not what is read");
	hang_up();
}

/* --------------------------------------------------------------- compatible */

static void expect_reason(bool good, unsigned int reason, const char *what)
{
	if (good || last_reason != reason)
		die("%s: reason %u, not %u", what, last_reason, reason);
	hang_up();
}

/* Until what is left of the last connection has ended */
static void welcome_later(const struct kblk_hello *h, size_t len, unsigned int id)
{
	static const unsigned char news[100] = { 1 };
	struct kblk_session s = { .queues = htole16(1) };
	unsigned char longer[sizeof(s) + 12] = { 0 };
	time_t end = limit();

	for (;;) {
		if (!reach(h, len))
			die("a client of a later version is not accepted");
		s.attempt = htole32(++attempt);
		memcpy(longer, &s, sizeof(s));
		begin_login(local.request, KBLK_LOGIN_REQUEST);
		add_field(local.request, KBLK_FIELD_SESSION, longer, sizeof(longer));
		add_field(local.request, id, news, sizeof(news));
		if (log_in(add_field(local.request, KBLK_FIELD_VOLUME, volume,
				     strlen(volume))) ||
		    last_reason != KBLK_REASON_BUSY)
			return;
		hang_up();
		if (time(NULL) > end)
			die("the target is busy for ever");
	}
}

/* What versions before and after this one get */
static void versions(void)
{
	unsigned char later[sizeof(struct kblk_hello) + 16] = { 0 };
	struct kblk_hello h = right_hello();
	const struct kblk_hello first = {
		.magic = htole32(KBLK_MAGIC), .version = htole16(1),
	};

	/* it was longer */
	memcpy(later, &first, sizeof(first));
	expect_reason(reach(later, sizeof(later)), KBLK_REASON_VERSION,
		      "version 1");
	h.version = htole16(KBLK_VERSION + 2);
	h.oldest = htole16(KBLK_VERSION + 1);
	expect_reason(reach(&h, sizeof(h)), KBLK_REASON_VERSION,
		      "a later version");
	h.oldest = htole16(KBLK_VERSION);
	h.features = htole32(~0U);
	h.reserved = htole16(1);
	memcpy(later, &h, sizeof(h));
	welcome_later((const void *)later, sizeof(later), 1000);
	if (!welcomed || accepted.version != htole16(KBLK_VERSION) ||
	    le32toh(accepted.features) & ~KBLK_FEATURES)
		die("a later version that speaks this one: reason %u",
		    last_reason);
	hang_up();
	welcome_later((const void *)later, sizeof(later),
		      1000 | KBLK_FIELD_MUST);
	expect_reason(welcomed, KBLK_REASON_UNKNOWN, "a mandatory field");
}

/* ------------------------------------------------------------ authentication */

/* What is wrong in an exchange; up to ONE_ANSWER, the target has one answer. */
enum wrong {
	WRONG_KEY,
	WRONG_ROLE,		/* the proof that the target would make */
	WRONG_REPLAY,		/* messages of an earlier exchange */
	WRONG_PROOF,		/* some bits of it */
	WRONG_GUESS,
	WRONG_NONCE,		/* a proof without the target's nonce */
	WRONG_IDENTITY,
	WRONG_VOLUME,
	WRONG_PLAIN,		/* no authentication */
	ONE_ANSWER,
	WRONG_REQUEST,		/* another one than the proof covers */
	WRONG_HELLO,
	WRONG_MESSAGE,		/* bits of the message with the proof */
	WRONG_NO_PROOF,
	WRONG_PROOF_LENGTH,
	WRONG_BEHIND,		/* a field behind the proof */
	WRONG_LENGTH,
	WRONG_NO_NONCE,
	WRONG_NO_IDENTITY,
	WRONG_NONCE_LENGTH,
	WRONG_NONCE_ZERO,
	WRONG_IDENTITY_LENGTH,
	WRONG_IDENTITY_BYTES,
	WRONG_ORDER,		/* the proof is the first message */
	WRONG_TWICE,		/* two requests */
	WRONG_ECHO,		/* the challenge comes back */
	WRONG_TYPE,
	RIGHT,
};

static struct {
	const char	*identity;
	struct auth_key	key;
	struct script	script;
	unsigned char	request[KBLK_LOGIN_LEN], proof[KBLK_LOGIN_LEN];
	size_t		request_len, proof_len;	/* of an earlier exchange */
	unsigned int	tries[RIGHT + 1];
} auth;

/* The request of an exchange; returns its bytes. */
static size_t auth_request(enum wrong wrong)
{
	struct kblk_session s = { .attempt = htole32(++attempt), .queues = htole16(1) };
	unsigned char nonce[256], name[256];
	size_t nonce_len = KBLK_NONCE_LEN, name_len = strlen(auth.identity), len;

	/* each one is a session of its own, so none waits for another one */
	memcpy(s.session, &attempt, sizeof(attempt));
	randomize(nonce, sizeof(nonce));
	memset(name, 'x', sizeof(name));
	memcpy(name, auth.identity, name_len);
	switch (wrong) {
	case WRONG_NONCE_LENGTH:
		nonce_len = odd_size(KBLK_NONCE_LEN);
		break;
	case WRONG_NONCE_ZERO:
		memset(nonce, 0, sizeof(nonce));
		break;
	case WRONG_IDENTITY_LENGTH:
		name_len = below(2) ? 0 : KBLK_IDENTITY_LEN + 1 + below(100);
		break;
	case WRONG_IDENTITY_BYTES:
		name[below(name_len)] = below(2) ? 0 : 128 + below(128);
		break;
	case WRONG_IDENTITY:
		name_len += below(2) ? 1 : KBLK_IDENTITY_LEN - name_len;
		break;
	default:
		break;
	}
	begin_login(local.request, KBLK_LOGIN_REQUEST);
	add_field(local.request, KBLK_FIELD_SESSION | KBLK_FIELD_MUST, &s, sizeof(s));
	len = add_field(local.request, KBLK_FIELD_VOLUME | KBLK_FIELD_MUST,
			wrong == WRONG_VOLUME ? "none" : volume,
			wrong == WRONG_VOLUME ? 4 : strlen(volume));
	if (wrong != WRONG_PLAIN && wrong != WRONG_NO_IDENTITY)
		len = add_field(local.request, KBLK_FIELD_IDENTITY | KBLK_FIELD_MUST, name,
				name_len);
	if (wrong != WRONG_PLAIN && wrong != WRONG_NO_NONCE)
		len = add_field(local.request, KBLK_FIELD_NONCE | KBLK_FIELD_MUST, nonce,
				nonce_len);
	return len;
}

/* The message with the proof; returns its bytes. */
static size_t auth_proof(enum wrong wrong)
{
	struct kblk_login_head *head = (void *)local.request;
	struct auth_key key = auth.key;
	unsigned char bytes[256] = { 0 };
	unsigned int role = KBLK_ROLE_CLIENT;
	size_t len;

	if (wrong == WRONG_KEY)
		spoil(key.bytes, key.len);
	if (wrong == WRONG_ROLE)
		role = KBLK_ROLE_TARGET;
	begin_login(local.request, KBLK_LOGIN_PROOF);
	if (wrong == WRONG_NO_PROOF)
		return sizeof(*head);
	if (wrong == WRONG_PROOF_LENGTH) {
		randomize(bytes, sizeof(bytes));
		return add_field(local.request, KBLK_FIELD_PROOF | KBLK_FIELD_MUST, bytes,
				 odd_size(KBLK_PROOF_LEN));
	}
	len = add_proof(&auth.script, &key, role, local.request);
	switch (wrong) {
	case WRONG_PROOF:
		spoil(local.request + len - KBLK_PROOF_LEN, KBLK_PROOF_LEN);
		break;
	case WRONG_GUESS:
		memset(local.request + len - KBLK_PROOF_LEN, below(2) ? 0 : 0xff,
		       KBLK_PROOF_LEN);
		break;
	case WRONG_MESSAGE:
		spoil(local.request, len);
		break;
	case WRONG_BEHIND:
		len = add_field(local.request, 1000, bytes, 4 * below(10));
		break;
	case WRONG_LENGTH:
		if (below(2))
			len = below(2) ? below(len) : len + 1 + below(KBLK_LOGIN_LEN - len);
		else
			head->len = htole16(len + 1 + below(1000));
		break;
	case WRONG_TYPE:
		head->type = htole16(KBLK_LOGIN_PROOF + 1 + below(1000));
		break;
	default:
		break;
	}
	return len;
}

/* Send a message, and wait for the answer to it. */
static void auth_say(size_t len)
{
	time_t end = limit();

	challenged = false;
	log_in(len);
	/* the next message takes the place of this one */
	while (sending && !down) {
		progress(20);
		if (time(NULL) > end)
			die("a login is not sent");
	}
}

/* Receive another message of the login. */
static void auth_listen(void)
{
	ssize_t err = fi_recv(ep, local.reply, sizeof(local.reply), fi_mr_desc(local_mr),
			      FI_ADDR_UNSPEC, local.reply);

	if (err)
		lost(fi_strerror(-err));
}

static void auth_keep(void *to, size_t *to_len, size_t len)
{
	memcpy(to, local.request, len);
	*to_len = len;
}

/* The target's proof, at the end of its welcome */
static void auth_check(void)
{
	unsigned char mac[KBLK_PROOF_LEN], found[KBLK_PROOF_LEN];

	if (find_field(local.reply, reply_len, KBLK_FIELD_PROOF, found, sizeof(found)) !=
	    sizeof(found))
		die("a welcome without a proof");
	script_add(&auth.script, local.reply, reply_len - sizeof(mac));
	script_mac(&auth.script, &auth.key, KBLK_ROLE_TARGET, mac);
	if (memcmp(mac, local.reply + reply_len - sizeof(mac), sizeof(mac)))
		die("the target's proof is wrong");
}

/* One exchange, until the target has welcomed or refused this client */
static void auth_exchange(enum wrong wrong)
{
	struct kblk_hello hello = right_hello(), sent = hello;
	size_t len;

	if (wrong == WRONG_HELLO)
		spoil(&sent, sizeof(sent));
	if (!reach(&sent, sizeof(sent)))
		return;
	script_begin(&auth.script, &hello, &accepted);
	len = auth_request(wrong);
	script_add(&auth.script, local.request, len);
	if (wrong == RIGHT) {
		auth_keep(auth.request, &auth.request_len, len);
	} else if (wrong == WRONG_REPLAY) {
		len = auth.request_len;
		memcpy(local.request, auth.request, len);
	} else if (wrong == WRONG_REQUEST) {
		spoil(local.request, len);
	} else if (wrong == WRONG_ORDER) {
		len = auth_proof(wrong);
	}
	auth_say(len);
	if (!challenged)
		return;
	if (wrong != WRONG_NONCE)
		script_add(&auth.script, local.reply, reply_len);
	if (wrong == WRONG_ECHO) {
		len = reply_len;
		memcpy(local.request, local.reply, len);
	} else if (wrong == WRONG_TWICE) {
		len = auth_request(RIGHT);
	} else {
		len = auth_proof(wrong);
	}
	if (wrong == RIGHT) {
		auth_keep(auth.proof, &auth.proof_len, len);
	} else if (wrong == WRONG_REPLAY) {
		len = auth.proof_len;
		memcpy(local.request, auth.proof, len);
	}
	auth_listen();
	auth_say(len);
	if (challenged)
		die("a second challenge");
}

/* --- boundary values --- */

/*
 * One exchange with a value at a boundary. The proof covers what is sent, so it is right in
 * each of them: a target that refuses the exchange does so because of its form.
 */
struct bound {
	enum { IN_HELLO, IN_REQUEST, IN_PROOF } where;
	enum {
		LENGTH,		/* a field @id of @value bytes */
		TWICE,		/* a second field @id of @value bytes */
		WORD,		/* @value in the 2 or 4 bytes at offset @id of the message */
		IN_FIELD,	/* @value in the 2 or 4 bytes at @at of the value of field @id */
		FILL,		/* unknown fields, so that the message has @value bytes */
		CUT,		/* the message has @value bytes, and its head says that */
		BYTES,		/* all bytes of field @id are @value */
	} what;
	unsigned int	id, at, size;
	uint32_t	value;
	bool		welcome;
};

/* @size: bytes of @member that are written */
#define HELLO(size, member, v, ok) \
	{ IN_HELLO, WORD, offsetof(struct kblk_hello, member), 0, size, v, ok }
#define HEAD(in, size, member, v, ok) \
	{ in, WORD, offsetof(struct kblk_login_head, member), 0, size, v, ok }
#define SESSION(size, member, v, ok) \
	{ IN_REQUEST, IN_FIELD, KBLK_FIELD_SESSION, offsetof(struct kblk_session, member), \
	  size, v, ok }
#define NOTES(member, v, ok) \
	{ IN_REQUEST, IN_FIELD, KBLK_FIELD_NOTES, offsetof(struct kblk_memory, member), 4, v, ok }
#define LEN(id, v, ok)		{ IN_REQUEST, LENGTH, KBLK_FIELD_ ## id, 0, 0, v, ok }
#define MORE(in, id, v, ok)	{ in, TWICE, id, 0, 0, v, ok }

static const struct bound bounds[] = {
	HELLO(4, magic, 0, false), HELLO(4, magic, ~0U, false), HELLO(2, version, 0, false),
	HELLO(2, version, KBLK_OLDEST - 1, false), HELLO(2, version, KBLK_VERSION, true),
	HELLO(2, version, KBLK_VERSION + 1, true), HELLO(2, version, 0xffff, true),
	HELLO(2, oldest, 0, true), HELLO(2, oldest, KBLK_VERSION + 1, false),
	HELLO(2, oldest, 0xffff, false), HELLO(4, features, 0, true), HELLO(4, features, ~0U, true),
	HELLO(2, depth, 0, false), HELLO(2, depth, 1, true), HELLO(2, depth, KBLK_DEPTH, true),
	HELLO(2, depth, KBLK_DEPTH + 1, false), HELLO(2, depth, 0xffff, false),
	HELLO(2, reserved, 0xffff, true),
	{ IN_HELLO, CUT, 0, 0, 0, 0, false }, { IN_HELLO, CUT, 0, 0, 0, 7, false },
	{ IN_HELLO, CUT, 0, 0, 0, 8, false }, { IN_HELLO, CUT, 0, 0, 0, 15, false },
	{ IN_HELLO, CUT, 0, 0, 0, 17, true }, { IN_HELLO, CUT, 0, 0, 0, 32, true },

	HEAD(IN_REQUEST, 2, type, 0, false), HEAD(IN_REQUEST, 2, type, KBLK_LOGIN_WELCOME, false),
	HEAD(IN_REQUEST, 2, type, KBLK_LOGIN_CHALLENGE, false),
	HEAD(IN_REQUEST, 2, type, KBLK_LOGIN_PROOF, false),
	HEAD(IN_REQUEST, 2, type, KBLK_LOGIN_PROOF + 1, false),
	HEAD(IN_REQUEST, 2, type, 0xffff, false), HEAD(IN_REQUEST, 2, len, 0, false),
	HEAD(IN_REQUEST, 2, len, 7, false), HEAD(IN_REQUEST, 2, len, 8, false),
	HEAD(IN_REQUEST, 2, len, KBLK_LOGIN_LEN, false), HEAD(IN_REQUEST, 2, len, 0xffff, false),
	HEAD(IN_REQUEST, 4, reserved, ~0U, true),
	{ IN_REQUEST, CUT, 0, 0, 0, 1, false }, { IN_REQUEST, CUT, 0, 0, 0, 7, false },
	{ IN_REQUEST, CUT, 0, 0, 0, 8, false }, { IN_REQUEST, CUT, 0, 0, 0, 11, false },
	{ IN_REQUEST, CUT, 0, 0, 0, 12, false },
	{ IN_REQUEST, FILL, 0, 0, 0, KBLK_LOGIN_LEN, true },

	LEN(SESSION, 0, false), LEN(SESSION, 15, false), LEN(SESSION, 16, true),
	LEN(SESSION, 17, true), LEN(SESSION, 1000, true), LEN(VOLUME, 0, false),
	LEN(VOLUME, KBLK_NAME_LEN, true), LEN(VOLUME, KBLK_NAME_LEN + 1, false),
	LEN(HOST, 0, false), LEN(HOST, 1, true), LEN(HOST, KBLK_HOST_LEN, true),
	LEN(HOST, KBLK_HOST_LEN + 1, false), LEN(UUID, 0, false), LEN(UUID, 15, false),
	LEN(UUID, 16, true), LEN(UUID, 17, false), LEN(NOTES, 0, false),
	LEN(NOTES, 23, false), LEN(NOTES, 24, true), LEN(NOTES, 25, true),
	LEN(IDENTITY, 0, false), LEN(IDENTITY, 1, false),
	LEN(IDENTITY, KBLK_IDENTITY_LEN, false), LEN(IDENTITY, KBLK_IDENTITY_LEN + 1, false),
	LEN(NONCE, 0, false), LEN(NONCE, KBLK_NONCE_LEN - 1, false),
	LEN(NONCE, KBLK_NONCE_LEN, true), LEN(NONCE, KBLK_NONCE_LEN + 1, false),
	SESSION(2, queues, 0, false), SESSION(2, queues, 1, true),
	SESSION(2, queues, KBLK_QUEUES, true), SESSION(2, queues, KBLK_QUEUES + 1, false),
	SESSION(2, queues, 0xffff, false), SESSION(2, queue, 1, false),
	SESSION(2, queue, 0xffff, false),
	SESSION(4, attempt, 0, true), SESSION(4, attempt, ~0U, true),
	SESSION(4, attempt, 1U << 31, true), SESSION(4, session, 0, true),
	SESSION(4, session, ~0U, true),
	NOTES(addr, ~0U, true), NOTES(key, 0, true), NOTES(key, ~0U, true),
	NOTES(len, 0, true), NOTES(len, 1, true), NOTES(len, ~0U, true),
	NOTES(reserved, ~0U, true),
	{ IN_REQUEST, BYTES, KBLK_FIELD_NONCE, 0, 0, 0, false },
	{ IN_REQUEST, BYTES, KBLK_FIELD_NONCE, 0, 0, 0xff, true },
	{ IN_REQUEST, BYTES, KBLK_FIELD_HOST, 0, 0, ' ', false },
	{ IN_REQUEST, BYTES, KBLK_FIELD_HOST, 0, 0, '!', true },
	{ IN_REQUEST, BYTES, KBLK_FIELD_HOST, 0, 0, '~', true },
	{ IN_REQUEST, BYTES, KBLK_FIELD_HOST, 0, 0, 0x7f, false },
	{ IN_REQUEST, BYTES, KBLK_FIELD_HOST, 0, 0, 0x80, false },
	{ IN_REQUEST, BYTES, KBLK_FIELD_UUID, 0, 0, 0, true },
	{ IN_REQUEST, BYTES, KBLK_FIELD_UUID, 0, 0, 0xff, false },
	MORE(IN_REQUEST, KBLK_FIELD_SESSION, 16, false),
	MORE(IN_REQUEST, KBLK_FIELD_VOLUME, 4, false),
	MORE(IN_REQUEST, KBLK_FIELD_IDENTITY, 5, false),
	MORE(IN_REQUEST, KBLK_FIELD_NONCE, 32, false),
	/* those of other messages, and unknown ones */
	MORE(IN_REQUEST, KBLK_FIELD_PROOF, 32, true),
	MORE(IN_REQUEST, KBLK_FIELD_WELCOME, 48, true),
	MORE(IN_REQUEST, KBLK_FIELD_MUST | KBLK_FIELD_PROOF, 32, false),
	MORE(IN_REQUEST, 0, 0, true), MORE(IN_REQUEST, KBLK_FIELD_MUST, 0, false),
	MORE(IN_REQUEST, KBLK_FIELD_MUST - 1, 0, true), MORE(IN_REQUEST, 0xffff, 0, false),
	MORE(IN_REQUEST, 1000, 1, true), MORE(IN_REQUEST, 1000, 1000, true),

	HEAD(IN_PROOF, 2, type, 0, false), HEAD(IN_PROOF, 2, type, KBLK_LOGIN_REQUEST, false),
	HEAD(IN_PROOF, 2, type, KBLK_LOGIN_CHALLENGE, false),
	HEAD(IN_PROOF, 2, type, KBLK_LOGIN_PROOF + 1, false),
	HEAD(IN_PROOF, 2, type, 0xffff, false),
	HEAD(IN_PROOF, 2, len, 0, false), HEAD(IN_PROOF, 2, len, 8, false),
	HEAD(IN_PROOF, 2, len, 43, false), HEAD(IN_PROOF, 2, len, 45, false),
	HEAD(IN_PROOF, 2, len, 0xffff, false), HEAD(IN_PROOF, 4, reserved, ~0U, true),
	MORE(IN_PROOF, KBLK_FIELD_PROOF, 32, false), MORE(IN_PROOF, KBLK_FIELD_PROOF, 0, false),
	MORE(IN_PROOF, 1000, 0, true), MORE(IN_PROOF, 1000, 1000, true),
	MORE(IN_PROOF, KBLK_FIELD_MUST | 1000, 0, false),
	MORE(IN_PROOF, KBLK_FIELD_NONCE, 32, true),
	{ IN_PROOF, FILL, 0, 0, 0, KBLK_LOGIN_LEN - 36, true },
};

static void put_word(void *to, uint32_t value, unsigned int size)
{
	const uint32_t le = htole32(value);

	memcpy(to, &le, size < sizeof(le) ? size : sizeof(le));
}

/* Add a field, with the boundary if it has one. */
static void bound_field(const struct bound *b, unsigned int id, const void *value, size_t len)
{
	unsigned char bytes[1024] = { 0 };

	memcpy(bytes, value, len);
	if (b->where == IN_REQUEST && b->id == id) {
		/* longer names are other names */
		if (b->what == LENGTH && b->value > len &&
		    (id == KBLK_FIELD_HOST || id == KBLK_FIELD_IDENTITY))
			memset(bytes + len, 'x', b->value - len);
		if (b->what == LENGTH)
			len = b->value;
		else if (b->what == IN_FIELD)
			put_word(bytes + b->at, b->value, b->size);
		else if (b->what == BYTES)
			memset(bytes, b->value, len);
	}
	add_field(local.request, id, bytes, len);
}

/* The end of a message, before the field @last if it has one; returns its bytes. */
static size_t bound_end(const struct bound *b, unsigned int where, unsigned int last)
{
	static const unsigned char zeros[KBLK_PROOF_LEN];
	struct kblk_login_head *head = (void *)local.request;
	unsigned char bytes[1024] = { 0 };
	size_t len;

	if (b->where == where && b->what == TWICE)
		add_field(local.request, b->id, bytes, b->value);
	while (b->where == where && b->what == FILL && le16toh(head->len) < b->value) {
		len = b->value - le16toh(head->len) - sizeof(struct kblk_field);
		add_field(local.request, 1000, bytes, len < sizeof(bytes) ? len :
			  sizeof(bytes) - 16);
	}
	len = le16toh(head->len);
	if (last)
		len = add_field(local.request, last | KBLK_FIELD_MUST, zeros, sizeof(zeros));
	if (b->where == where && b->what == CUT) {
		len = b->value;
		head->len = htole16(len);
	}
	if (b->where == where && b->what == WORD)
		put_word(local.request + b->id, b->value, b->size);
	return len;
}

static void bound_exchange(const struct bound *b)
{
	unsigned char nonce[KBLK_NONCE_LEN], uuid[16] = { 0 }, hello[64] = { 0 }, *proof;
	struct kblk_session s = { .attempt = htole32(++attempt), .queues = htole16(1) };
	struct kblk_hello h = right_hello();
	struct kblk_memory n = { .len = 0 };
	struct script *script = &auth.script;
	bool of_hello = b->where == IN_HELLO;
	size_t len;

	if (of_hello && b->what == WORD)
		put_word((unsigned char *)&h + b->id, b->value, b->size);
	memcpy(hello, &h, sizeof(h));
	if (!reach(hello, of_hello && b->what == CUT ? b->value : sizeof(h)))
		return;
	memcpy(s.session, &attempt, sizeof(attempt));
	randomize(nonce, sizeof(nonce));
	begin_login(local.request, KBLK_LOGIN_REQUEST);
	bound_field(b, KBLK_FIELD_SESSION, &s, sizeof(s));
	bound_field(b, KBLK_FIELD_VOLUME, volume, strlen(volume));
	bound_field(b, KBLK_FIELD_HOST, "host", 4);
	bound_field(b, KBLK_FIELD_UUID, uuid, sizeof(uuid));
	bound_field(b, KBLK_FIELD_NOTES, &n, sizeof(n));
	bound_field(b, KBLK_FIELD_IDENTITY, auth.identity, strlen(auth.identity));
	bound_field(b, KBLK_FIELD_NONCE, nonce, sizeof(nonce));
	len = bound_end(b, IN_REQUEST, 0);
	script_begin(script, &h, &accepted);
	script_add(script, local.request, len);
	auth_say(len);
	if (!challenged)
		return;
	script_add(script, local.reply, reply_len);
	begin_login(local.request, KBLK_LOGIN_PROOF);
	len = bound_end(b, IN_PROOF, KBLK_FIELD_PROOF);
	proof = local.request + len - KBLK_PROOF_LEN;
	script_add(script, local.request, len - KBLK_PROOF_LEN);
	script_mac(script, &auth.key, KBLK_ROLE_CLIENT, proof);
	script_add(script, proof, KBLK_PROOF_LEN);
	auth_listen();
	auth_say(len);
}

static void auth_bounds(void)
{
	unsigned int i, good = 0;
	const struct bound *b;
	time_t end;

	proves = true;
	for (i = 0; i < sizeof(bounds) / sizeof(*bounds); i++) {
		b = &bounds[i];
		end = limit();
		do {
			hang_up();
			bound_exchange(b);
		} while (last_reason == KBLK_REASON_FULL && time(NULL) < end);
		if (welcomed != b->welcome)
			die("boundary %u (%u %u %u %u, value %u) is %s: reason %u", i, b->where,
			    b->what, b->id, b->at, b->value,
			    welcomed ? "welcome" : "refused", last_reason);
		if (welcomed)
			auth_check();
		good += welcomed;
	}
	hang_up();
	printf("%u boundary values, %u of them welcome\n", i, good);
}

/* All wrong exchanges are refused, and right ones in between are welcome. */
static int auth_exchanges(unsigned int most)
{
	unsigned int done = 0, full = 0, i;
	enum wrong wrong;
	time_t end;

	proves = true;
	auth_exchange(RIGHT);
	while (done < most) {
		if (!welcomed)
			die("a right exchange is refused: reason %u", last_reason);
		auth_check();
		auth.tries[RIGHT]++;
		hang_up();
		for (i = 0; i < 8 && done < most; i++, done++) {
			wrong = below(RIGHT);
			if (wrong == ONE_ANSWER)
				wrong = WRONG_REPLAY;
			end = limit();
			/* connections of earlier exchanges may not have ended */
			for (;;) {
				auth_exchange(wrong);
				if (last_reason != KBLK_REASON_FULL || time(NULL) > end)
					break;
				full++;
				hang_up();
				usleep(10000);
			}
			if (welcomed)
				die("exchange %u is welcome, with fault %u", done, wrong);
			if (wrong < ONE_ANSWER && last_reason != KBLK_REASON_ACCESS)
				die("fault %u gets reason %u", wrong, last_reason);
			if (last_reason > KBLK_REASON_ACCESS &&
			    last_reason != KBLK_REASON_UNKNOWN)
				die("fault %u gets reason %u", wrong, last_reason);
			auth.tries[wrong]++;
			hang_up();
		}
		do {
			hang_up();
			auth_exchange(RIGHT);
		} while (last_reason == KBLK_REASON_FULL);
	}
	hang_up();
	for (i = 0; most >= 1000 && i < RIGHT; i++)
		if (!auth.tries[i] && i != ONE_ANSWER)
			die("fault %u has never happened", i);
	printf("%u wrong exchanges are refused, %u right ones are welcome; %u waited\n",
	       done, auth.tries[RIGHT], full);
	return 0;
}

/* Add the identity to the request, and log in with a right proof. */
static bool auth_log_in(void)
{
	struct kblk_hello h = right_hello();
	unsigned char nonce[KBLK_NONCE_LEN];
	size_t len;

	proves = true;
	randomize(nonce, sizeof(nonce));
	add_field(local.request, KBLK_FIELD_IDENTITY | KBLK_FIELD_MUST, auth.identity,
		  strlen(auth.identity));
	len = add_field(local.request, KBLK_FIELD_NONCE | KBLK_FIELD_MUST, nonce,
			sizeof(nonce));
	script_begin(&auth.script, &h, &accepted);
	script_add(&auth.script, local.request, len);
	auth_say(len);
	if (!challenged)
		die("no challenge: reason %u", last_reason);
	script_add(&auth.script, local.reply, reply_len);
	len = auth_proof(RIGHT);
	auth_listen();
	auth_say(len);
	return welcomed;
}

/* ------------------------------------------------------------------- digests */

#define BLOCK	4096		/* bytes of a write or read */
#define BLOCKS	16		/* that are written */

/* What is damaged after the digests were computed */
enum damage {
	DAMAGE_COMMAND,
	DAMAGE_DIGESTS,
	DAMAGE_DATA,		/* behind the command */
	DAMAGE_MEMORY,		/* that the target reads */
	DAMAGE_SHORT,		/* the message ends early */
	DAMAGES,
	NONE = DAMAGES,
};

static unsigned char blocks[BLOCKS][BLOCK];	/* content of the volume */

static void digest_dial(void)
{
	time_t end = limit();

	while (!dial(true)) {
		hang_up();
		usleep(2000);
		if (time(NULL) > end)
			die("not welcome: reason %u", last_reason);
	}
	if (accepted.features != htole32(KBLK_FEATURE_DIGEST))
		die("features %#x, not digests alone", le32toh(accepted.features));
	renew();
}

/* Send a command for a block, with its digests, and then the damage. */
static void digest_send(struct kblk_cmd *c, const unsigned char *data, enum damage damage)
{
	static unsigned char message[MESSAGE];
	struct kblk_digests d = { 0 };
	unsigned char *at = message + sizeof(*c) + sizeof(d);
	bool behind = c->flags & KBLK_CMD_INLINE;
	size_t len = sizeof(*c) + sizeof(d);

	c->len = htole32(BLOCK);
	if (!behind) {
		c->addr = htole64(base);
		c->key = htole64(key);
	}
	if (c->op == KBLK_OP_WRITE) {
		d.data = htole32(~crc32c(~0U, data, BLOCK));
		memcpy(behind ? at : memory, data, BLOCK);
		len += behind ? BLOCK : 0;
	}
	d.command = cmd_digest(c, d.data);
	memcpy(message, c, sizeof(*c));
	memcpy(message + sizeof(*c), &d, sizeof(d));
	switch (damage) {
	case DAMAGE_COMMAND:
		spoil(message, sizeof(*c));
		break;
	case DAMAGE_DIGESTS:
		spoil(message + sizeof(*c), sizeof(d));
		break;
	case DAMAGE_DATA:
		at[below(BLOCK)] ^= 1 << below(8);
		break;
	case DAMAGE_MEMORY:
		memory[below(BLOCK)] ^= 1 << below(8);
		break;
	case DAMAGE_SHORT:
		len = sizeof(*c) + below(len - sizeof(*c));
		break;
	default:
		break;
	}
	transmit(message, len);
	/* with the digest that the target computes the answer's from */
	c->reserved2 = d.command;
}

/* A right command, whose answer has a right digest */
static void digest_right(struct kblk_cmd *c, unsigned char *block)
{
	unsigned char data[BLOCK];
	uint32_t crc;

	randomize(data, sizeof(data));
	memset(memory, 0, BLOCK);
	digest_send(c, data, NONE);
	await(0);
	if (down || last_status != KBLK_OK)
		die("a right command of type %u ends with %u: %s", c->op, last_status,
		    down ? why : "answered");
	crc = answer_crc(c->reserved2, htole32(last_value));
	if (c->op == KBLK_OP_READ)
		crc = crc32c(crc, memory, BLOCK);
	if (last_digest != htole32(~crc))
		die("the digest of an answer is wrong");
	if (c->op == KBLK_OP_WRITE)
		memcpy(block, data, BLOCK);
	else if (memcmp(block, memory, BLOCK))
		die("a block is not as it was written");
}

static struct kblk_cmd digest_cmd(unsigned int op, unsigned int block)
{
	return (struct kblk_cmd) {
		.op = op, .tag = htole16(free_tag()), .gen = random64(),
		.flags = op == KBLK_OP_WRITE && below(2) ? KBLK_CMD_INLINE : 0,
		.sector = htole64(block * (BLOCK / 512)),
	};
}

static int digest_faults(unsigned int most)
{
	unsigned char data[BLOCK];
	unsigned int done[DAMAGES] = { 0 }, i, block;
	enum damage damage;
	struct kblk_cmd c;
	time_t end;

	digests = true;
	digest_dial();
	for (i = 0; i < BLOCKS; i++) {
		c = digest_cmd(KBLK_OP_WRITE, i);
		digest_right(&c, blocks[i]);
	}
	for (i = 0; i < most; i++) {
		block = below(BLOCKS);
		damage = i % DAMAGES;
		c = digest_cmd(damage < DAMAGE_DATA && below(3) ? KBLK_OP_READ :
			       KBLK_OP_WRITE, block);
		if (damage == DAMAGE_DATA)
			c.flags = KBLK_CMD_INLINE;
		if (damage == DAMAGE_MEMORY)
			c.flags = 0;
		randomize(data, sizeof(data));
		digest_send(&c, data, damage);
		end = limit();
		while (!down && asked != answered) {
			progress(20);
			if (time(NULL) > end)
				die("a damaged command has no end");
		}
		if (asked == answered)
			die("damage %u is answered with %u", damage, last_status);
		done[damage]++;
		/* welcome again when the target has finished with this connection */
		hang_up();
		digest_dial();
		c = digest_cmd(KBLK_OP_READ, block);
		digest_right(&c, blocks[block]);
		c = digest_cmd(below(2) ? KBLK_OP_READ : KBLK_OP_WRITE, below(BLOCKS));
		digest_right(&c, blocks[le64toh(c.sector) / (BLOCK / 512)]);
	}
	for (i = 0; i < BLOCKS; i++) {
		c = digest_cmd(KBLK_OP_READ, i);
		digest_right(&c, blocks[i]);
	}
	hang_up();
	printf("damage of %u commands, %u digests, %u data, %u memory, %u short ones is noticed\n",
	       done[0], done[1], done[2], done[3], done[4]);
	return 0;
}

/* ----------------------------------------------------------------- takeovers */

/* @id: 16 hexadecimal digits. One of three attempts is later than the client's. */
static int take_over(const char *id, unsigned int first)
{
	uint64_t number = htobe64(strtoull(id, NULL, 16));
	struct kblk_hello h = right_hello();
	struct kblk_session s = { .queues = htole16(1) };
	unsigned int i;
	bool welcome;
	size_t len;

	memcpy(s.session, &number, sizeof(s.session));
	for (i = 0; i < 3; i++) {
		s.attempt = htole32(i * 0x55555555);
		if (!reach(&h, sizeof(h)))
			die("not accepted: reason %u", last_reason);
		begin_login(local.request, KBLK_LOGIN_REQUEST);
		add_field(local.request, KBLK_FIELD_SESSION, &s, sizeof(s));
		len = add_field(local.request, KBLK_FIELD_VOLUME, volume,
				strlen(volume));
		welcome = auth.identity ? auth_log_in() : log_in(len);
		if (welcome && i >= first)
			break;
		if (!first)
			die("an own session: reason %u", last_reason);
		expect_reason(welcome, KBLK_REASON_BUSY, "another client's session");
	}
	hang_up();
	return 0;
}

/* The kernel sends a reset for each TCP connection of a process that ends like this. */
static void reset_and_exit(void)
{
	const struct linger now = { .l_onoff = 1 };
	int fd;

	/* others are no sockets, which is an error */
	for (fd = 0; fd < sysconf(_SC_OPEN_MAX); fd++)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	_exit(0);
}

static int write_and_reset(unsigned int nr)
{
	static unsigned char message[sizeof(struct kblk_cmd) + KBLK_INLINE];
	struct kblk_cmd c = {
		.op = KBLK_OP_WRITE, .flags = KBLK_CMD_INLINE,
		.len = htole32(KBLK_INLINE),
	};
	time_t end = limit();
	unsigned int i;

	if (!dial(true))
		die("not welcome: reason %u", last_reason);
	memset(message, 0xff, sizeof(message));
	for (i = 0; i < nr; i++) {
		c.tag = htole16(i);
		/* not the neighbours of others: each is a request of the device */
		c.sector = htole64((nr - 1 - i) * (4 * KBLK_INLINE / 512));
		memcpy(message, &c, sizeof(c));
		transmit(message, sizeof(message));
	}
	while (sending && !down && time(NULL) <= end)
		progress(20);
	if (sending || down)
		die("%u commands are not sent", sending);
	puts("sent");
	fflush(stdout);
	getchar();
	reset_and_exit();
	return 1;
}

int main(int argc, char **argv)
{
	unsigned int most, n;

	if (argc == 10 && !strcmp(argv[5], "auth")) {
		volume = argv[4];
		auth.identity = argv[6];
		self_test();
		read_key(&auth.key, argv[7]);
		chance = strtoull(argv[9], NULL, 0);
		attempt = time(NULL);
		printf("seed %llu\n", (unsigned long long)chance);
		open_all(argv[1], argv[2], argv[3]);
		auth_bounds();
		return auth_exchanges(strtoul(argv[8], NULL, 0));
	}
	if (argc == 8 && !strcmp(argv[5], "digest")) {
		volume = argv[4];
		chance = strtoull(argv[7], NULL, 0);
		attempt = time(NULL);
		printf("seed %llu\n", (unsigned long long)chance);
		open_all(argv[1], argv[2], argv[3]);
		return digest_faults(strtoul(argv[6], NULL, 0));
	}
	if (argc == 9) {
		auth.identity = argv[7];
		read_key(&auth.key, argv[8]);
	} else if (argc != 7) {
		die("usage: kofi-blk-peer PROVIDER ADDRESS PORT VOLUME COMMANDS SEED");
	}
	volume = argv[4];
	if (strlen(volume) > KBLK_NAME_LEN)
		die("a volume's name is shorter");
	if (!strcmp(argv[5], "takeover") || !strcmp(argv[5], "inherit") ||
	    !strcmp(argv[5], "apart")) {
		open_all(argv[1], argv[2], argv[3]);
		/* the first attempt that may be welcome */
		return take_over(argv[6], *argv[5] == 't' ? UINT_MAX : *argv[5] == 'i');
	}
	if (!strcmp(argv[5], "reset")) {
		open_all(argv[1], argv[2], argv[3]);
		return write_and_reset(strtoul(argv[6], NULL, 0));
	}
	most = strtoul(argv[5], NULL, 0);
	chance = strtoull(argv[6], NULL, 0);
	attempt = time(NULL);
	printf("seed %llu\n", (unsigned long long)chance);
	open_all(argv[1], argv[2], argv[3]);
	renew();
	while (commands < most) {
		n = 1 + below(BURST);
		if (dial(false))
			while (n-- && !down && commands < most)
				one();
		if (welcomed && down)
			ended++;
		hang_up();
	}
	honestly();
	versions();
	printf("%u commands in %u messages, %u done, %u failed; ", commands,
	       messages, good, bad);
	printf("%u connections, %u ended early, %u refused\n", connections,
	       ended, refused);
	/* a run that shows nothing is not a good one */
	if (!good || !bad || !ended || !refused)
		die("something has never happened");
	fi_close(&mr->fid);
	fi_close(&local_mr->fid);
	fi_close(&domain->fid);
	fi_close(&eq->fid);
	fi_close(&fabric->fid);
	fi_freeinfo(info);
	return 0;
}

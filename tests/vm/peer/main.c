// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi-peer serve|connect [node=ADDRESS] [port=NUMBER] [only=GROUP] [verbs]
 *           [rdm] [rxm] [srx] [brief] [last]
 *
 * Roles and commands are those of tests/rma/serve.c and client.c, the groups
 * those that make sense with one kind of memory. On connections tags need a shared
 * receive context, on this side at least.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peer.h"

#define HOLD	50	/* milliseconds */
#define ALL	(FI_REMOTE_READ | FI_REMOTE_WRITE)

static const char *const levels[] = {
	"default", "inject", "inject-complete", "transmit-complete",
	"delivery-complete",
};

/* ------------------------------------------------------------------- server */

static int serve_hello(struct peer *p, const struct cmd *c, struct cmd *answer)
{
	uint64_t rights = (c->flags & KRMA_F_NO_READ ? 0 : FI_REMOTE_READ) |
			  (c->flags & KRMA_F_NO_WRITE ? 0 : FI_REMOTE_WRITE);
	int ret = 0;

	if (c->op == KRMA_HELLO)
		p->remote = *c;
	else
		ret = ep_region(p, rights);
	answer->flags = p->srx || p->rdm ? KRMA_F_TAGS : 0;
	answer->key = fi_mr_key(p->mr);
	answer->addr = ep_base(p);
	answer->size = KRMA_REGION;
	answer->segs = segs_max(p, false);
	return ret;
}

static int serve_one(struct peer *p, const struct cmd *c, struct cmd *answer)
{
	int ret = 0;

	switch (c->op) {
	case KRMA_HELLO:
	case KRMA_REGION_NEW:
		return serve_hello(p, c, answer);
	case KRMA_FILL:
		return region_fill(p, c);
	case KRMA_CHECK:
		answer->status = -region_check(p, c, &answer->off);
		return 0;
	case KRMA_WRITE:
	case KRMA_READ:
		if (c->flags & KRMA_F_BAD)
			return xfer_bad(p, c, c->op == KRMA_WRITE);
		answer->status = -xfer_access(p, c, c->op == KRMA_WRITE);
		return 0;
	case KRMA_RECV:
		ret = xfer_recv_begin(p, c);
		answer->status = -(ret ? ret : xfer_recv_end(p, c));
		return 0;
	case KRMA_SEND:
		answer->status = -xfer_send(p, c);
		return 0;
	case KRMA_BYE:
		return 0;
	default:
		return fault(-EPROTO, "command %u is unknown", c->op);
	}
}

/* A client may go when it likes; which call notices is a matter of time. */
static bool gone(int err)
{
	return err == -ECONNRESET || err == -ECANCELED || err == -ENOTCONN ||
	       err == -FI_ESHUTDOWN || err == -EPIPE;
}

static int serve_connection(struct peer *p, bool *last)
{
	struct cmd c, answer;
	int ret = 0;

	if (!p->mr)
		ret = ep_region(p, ALL);
	while (!ret) {
		ret = cmd_expect(p);
		if (!ret)
			ret = cmd_recv(p, &c);
		if (ret)
			return gone(ret) ? 0 : ret;
		if (c.op == KRMA_HOLD) {
			usleep(c.len * 1000);
			continue;
		}
		answer = (struct cmd){ .op = c.op };
		ret = serve_one(p, &c, &answer);
		if (ret || (c.flags & KRMA_F_BAD && !p->rdm))
			return ret;
		ret = cmd_expect(p);
		if (!ret)
			ret = cmd_send(p, &answer);
		if (gone(ret))
			return 0;
		if (!ret && c.op == KRMA_BYE) {
			*last = c.flags & KRMA_F_LAST;
			return ep_wait_down(p);
		}
	}
	return ret;
}

static int serve(struct peer *p)
{
	unsigned int n = 0;
	bool last = false;
	int ret;

	for (ret = ep_listen(p); !ret && !last; n++) {
		ret = ep_accept(p);
		if (!ret)
			ret = serve_connection(p, &last);
		ep_hangup(p);
	}
	printf("served %u connections\n", n);
	return ret;
}

/* ------------------------------------------------------------------- client */

enum way { MY_WRITE, MY_READ, YOUR_WRITE, YOUR_READ, WAYS };

static const char *const ways[] = {
	"write", "read", "write of the peer", "read of the peer",
};

static bool yours(enum way way)
{
	return way == YOUR_WRITE || way == YOUR_READ;
}

static bool writes(enum way way)
{
	return way == MY_WRITE || way == YOUR_WRITE;
}

/* The flag of accesses that may have values with them */
static uint16_t values_flag(struct peer *p)
{
	return p->iwarp ? 0 : KRMA_F_DATA;
}

static uint32_t last_seed;

static int call(struct peer *p, const struct cmd *c, enum krma_op op,
		struct cmd *answer)
{
	struct cmd it = *c;
	int ret;

	it.op = op;
	ret = cmd_expect(p);
	if (!ret)
		ret = cmd_send(p, &it);
	if (!ret)
		ret = cmd_recv(p, answer);
	if (!ret && answer->op != op)
		ret = -EPROTO;
	if (!ret && answer->status)
		return fault(-answer->status, "at the peer, at %llu, command %u",
			     (unsigned long long)answer->off, op);
	return fault(ret, "command %u", op);
}

static int order(struct peer *p, const struct cmd *c, enum krma_op op)
{
	struct cmd answer;

	return call(p, c, op, &answer);
}

static int meet(struct peer *p, enum krma_op op, uint16_t rights)
{
	const struct cmd c = {
		.flags = rights, .key = fi_mr_key(p->mr), .addr = ep_base(p),
		.size = KRMA_REGION,
	};
	uint16_t flags = p->remote.flags;
	struct cmd answer;
	int ret = call(p, &c, op, &answer);

	if (ret)
		return ret;
	p->remote = answer;
	if (op == KRMA_REGION_NEW)
		p->remote.flags = flags;
	return 0;
}

static int lead_connect(struct peer *p)
{
	int ret = ep_connect(p);

	if (!ret && !p->mr)
		ret = ep_region(p, ALL);
	return ret ? ret : meet(p, KRMA_HELLO, 0);
}

/* These accesses, in this direction, were what they had to be. */
static void count(struct peer *p, const struct cmd *c, enum way way)
{
	krma_count(p->tally, krma_row(writes(way), c->flags, c->level), yours(way),
		   c->count, c->count * c->len);
}

static int access_one(struct peer *p, struct cmd *c, enum way way)
{
	uint64_t where = 0;
	struct cmd back;
	int ret = 0;

	c->seed = ++last_seed;
	back = *c;
	back.flags |= KRMA_F_BACK;
	switch (way) {
	case MY_WRITE:
		ret = order(p, &back, KRMA_FILL);
		if (!ret)
			ret = xfer_access(p, c, true);
		if (!ret)
			ret = order(p, c, KRMA_CHECK);
		break;
	case MY_READ:
		ret = order(p, c, KRMA_FILL);
		if (!ret)
			ret = xfer_access(p, c, false);
		break;
	case YOUR_WRITE:
		ret = region_fill(p, &back);
		if (!ret)
			ret = order(p, c, KRMA_WRITE);
		if (!ret)
			ret = region_check(p, c, &where);
		break;
	default:
		ret = region_fill(p, c);
		if (!ret)
			ret = order(p, c, KRMA_READ);
	}
	if (!ret)
		count(p, c, way);
	return fault(ret, "%s of %u x %llu bytes at %llu, %u segments, %s",
		     ways[way], c->count, (unsigned long long)c->len,
		     (unsigned long long)c->off, c->segs, levels[c->level]);
}

/* All sizes and ways, with each kind of memory the peer may have. */
static int transfer(struct peer *p)
{
	static const uint32_t sizes[] = {
		0, 1, 7, 127, 128, 4095, 4097, 65537, 1000003, KRMA_DATA_MAX,
	};
	size_t i, n = sizeof(sizes) / sizeof(sizes[0]);
	struct cmd c = { .count = 1, .segs = 1 };
	enum way way;
	int ret = 0;

	if (p->remote.size < KRMA_REGION)
		n--;
	for (c.kind = 0; c.kind < KRMA_PAGES && !ret; c.kind++) {
		for (i = 0; i < n && !ret; i++) {
			/* the largest once is enough */
			if (c.kind && sizes[i] == KRMA_DATA_MAX)
				continue;
			c.len = sizes[i];
			c.off = KRMA_GUARD + i * 333 + c.kind * 4 + 1;
			for (way = 0; way < WAYS && !ret; way++) {
				/* siw may answer these with bytes */
				if (p->iwarp && !c.len && !writes(way))
					continue;
				ret = access_one(p, &c, way);
			}
		}
	}
	if (!ret)
		printf("transfer both sides write and read, %zu sizes up to %u\n",
		       n, sizes[n - 1]);
	return ret;
}

/* Each short form once; the values that two of them carry are looked at, too. */
static int calls(struct peer *p)
{
	struct cmd c = {
		.count = 1, .segs = 1, .len = KRMA_FORMS, .off = 1001,
		.seed = ++last_seed, .flags = KRMA_F_BACK,
	};
	struct cmd values = {
		.count = 2, .segs = 1, .off = 100, .seed = c.seed,
		.flags = values_flag(p) | KRMA_F_BACK,
	};
	int ret = order(p, &c, KRMA_FILL);

	/* no bytes, apart from the others: only the values matter */
	if (!ret)
		ret = order(p, &values, KRMA_FILL);
	if (!ret)
		ret = xfer_forms(p, c.seed, c.off);
	c.flags = 0;
	if (!ret)
		ret = order(p, &c, KRMA_CHECK);
	if (!ret)
		ret = order(p, &values, KRMA_CHECK);
	if (ret)
		return fault(ret, "the short forms");
	krma_count_forms(p->tally, !p->iwarp);
	printf("forms    each short form of write and read\n");
	return 0;
}

static int forms(struct peer *p)
{
	static const struct {
		uint32_t	len;
		uint32_t	count;
		enum krma_level	level;
	} each[] = {
		{ 3, KRMA_COUNT_MAX, KRMA_DEFAULT },
		{ 3, KRMA_COUNT_MAX, KRMA_INJECT },
		{ 4099, 8, KRMA_DEFAULT }, { 70001, 8, KRMA_DEFAULT },
	};
	struct cmd c = {};
	enum way way;
	int i, ret = calls(p);

	for (i = 0; i < 4 && !ret; i++) {
		c.len = each[i].len;
		c.count = each[i].count;
		c.level = each[i].level;
		c.off = 2049 + i;
		for (c.segs = 1; c.segs <= KRMA_SEGS_MAX; c.segs++) {
			for (way = 0; way < WAYS && !ret; way++) {
				if (c.segs > segs_max(p, yours(way)))
					continue;
				c.flags = writes(way) ? values_flag(p) : 0;
				c.data = c.segs * 1000000007ULL;
				ret = access_one(p, &c, way);
			}
		}
	}
	if (!ret)
		printf("forms    up to %u remote segments, many at a time%s\n",
		       KRMA_SEGS_MAX, p->iwarp ? "" : ", values");
	return ret;
}

static int hold(struct peer *p)
{
	struct cmd c = { .op = KRMA_HOLD, .len = HOLD };
	int ret = cmd_send(p, &c);

	c.len = 0;
	return ret ? ret : cmd_send(p, &c);
}

/* Is this kind tried with this level? In a brief run each has one. */
static bool tried(struct peer *p, enum krma_level level, enum krma_kind kind)
{
	return !p->brief || kind == level % KRMA_PAGES;
}

static const char *tried_name(struct peer *p)
{
	return p->brief ? "one kind" : "all kinds";
}

/* Bytes the device takes along, as far as the other side does */
static size_t inject_max(const struct peer *p)
{
	size_t max = p->info->tx_attr->inject_size;

	return max < KRMA_INJECT_MAX ? max : KRMA_INJECT_MAX;
}

static int level_writes(struct peer *p)
{
	struct cmd c = { .segs = 1, .off = 1001, .count = 16 };
	int ret = 0;

	for (c.level = 0; c.level < levels_end(p) && !ret; c.level++) {
		c.len = c.level == KRMA_INJECT ? inject_max(p) : 40960;
		for (c.kind = 0; c.kind < KRMA_PAGES && !ret; c.kind++) {
			if (!tried(p, c.level, c.kind))
				continue;
			ret = access_one(p, &c, MY_WRITE);
			if (!ret)
				ret = access_one(p, &c, YOUR_WRITE);
		}
		if (!ret)
			printf("levels   write, %s, %s\n", levels[c.level],
			       tried_name(p));
	}
	return ret;
}

static int messages_to(struct peer *p, struct cmd *c)
{
	struct cmd answer;
	int ret;

	c->op = KRMA_RECV;
	c->seed = ++last_seed;
	ret = hold(p);
	if (!ret)
		ret = cmd_expect(p);
	if (!ret)
		ret = cmd_send(p, c);
	if (!ret)
		ret = xfer_send(p, c);
	if (!ret)
		ret = cmd_recv(p, &answer);
	return fault(ret ? ret : -answer.status, "messages to the peer");
}

/* Received late: the sender may have been told of their end by then. */
static int messages_from(struct peer *p, struct cmd *c)
{
	struct cmd answer;
	int ret;

	c->op = KRMA_SEND;
	c->seed = ++last_seed;
	ret = cmd_send(p, c);
	usleep(HOLD * 1000);
	if (!ret)
		ret = xfer_recv_begin(p, c);
	if (!ret)
		ret = cmd_expect(p);
	if (!ret)
		ret = xfer_recv_end(p, c);
	if (!ret)
		ret = cmd_recv(p, &answer);
	return fault(ret ? ret : -answer.status, "messages from the peer");
}

static int messages_kind(struct peer *p, uint16_t flags)
{
	struct cmd c = {
		.segs = 1, .off = 1001, .count = 16, .flags = flags,
		.data = 0x123456789abc0000ULL,
	};
	int ret = 0;

	for (c.level = 0; c.level < levels_end(p) && !ret; c.level++) {
		c.len = c.level == KRMA_INJECT ? inject_max(p) : 40960;
		for (c.kind = 0; c.kind < KRMA_PAGES && !ret; c.kind++) {
			if (!tried(p, c.level, c.kind))
				continue;
			ret = messages_to(p, &c);
			if (!ret)
				ret = messages_from(p, &c);
		}
		if (!ret)
			printf("messages %s%s, %s\n", flags ? "tagged, " : "",
			       levels[c.level], tried_name(p));
	}
	return ret;
}

static int messages(struct peer *p)
{
	int ret;

	if (p->iwarp) {
		printf("messages have to be expected here: left out\n");
		return 0;
	}
	ret = messages_kind(p, 0);
	if (!ret && (p->srx || p->rdm) && (p->remote.flags & KRMA_F_TAGS))
		ret = messages_kind(p, KRMA_F_TAGGED);
	return ret;
}

static int wrong_one(struct peer *p, struct cmd *c, enum way way)
{
	bool mine = way == MY_WRITE || way == MY_READ;
	struct cmd back, answer;
	uint64_t where;
	int ret;

	c->seed = ++last_seed;
	back = *c;
	back.flags = KRMA_F_BACK;
	if (mine) {
		ret = order(p, &back, KRMA_FILL);
		if (!ret)
			ret = xfer_bad(p, c, way == MY_WRITE);
	} else {
		region_fill(p, &back);
		c->op = way == YOUR_WRITE ? KRMA_WRITE : KRMA_READ;
		/* the end may be here before word that the command was there */
		ret = cmd_expect(p) ?: cmd_send(p, c);
		if (!ret || gone(ret))
			ret = p->rdm ? cmd_recv(p, &answer) : ep_wait_down(p);
	}
	ep_hangup(p);
	if (!ret)
		ret = lead_connect(p);
	if (!ret)
		ret = mine ? order(p, &back, KRMA_CHECK) :
			     region_check(p, &back, &where);
	if (!ret)
		count(p, c, way);
	return ret;
}

static bool delivery(struct peer *p)
{
	return levels_end(p) > KRMA_DELIVERY;
}

static int wrong_flag(struct peer *p, uint16_t flag, const char *what)
{
	struct cmd c = { .count = 1, .off = 501, .len = 3000 };
	uint32_t most;
	enum way way;
	int ret = 0;

	for (way = 0; way < WAYS && !ret; way++) {
		/* this libfabric might not survive what a kernel does */
		if (flag == KRMA_F_BAD_WRAP &&
		    (way >= YOUR_WRITE || !(p->remote.flags & KRMA_F_STRICT)))
			continue;
		/* devices look at each segment when it is its turn */
		most = p->verbs ? 1 : segs_max(p, yours(way));
		for (c.segs = 1; c.segs <= most && !ret; c.segs += 3) {
			c.level = c.segs > 1 && delivery(p) ? KRMA_DELIVERY :
							      KRMA_DEFAULT;
			c.flags = flag;
			ret = fault(wrong_one(p, &c, way), "%s, %s", what,
				    ways[way]);
		}
	}
	if (!ret)
		printf("wrong    %s\n", what);
	return ret;
}

static int wrong_rights(struct peer *p)
{
	struct cmd c = {
		.count = 1, .segs = 1, .off = 501, .len = 3000,
		.level = delivery(p) ? KRMA_DELIVERY : KRMA_DEFAULT,
		.flags = KRMA_F_BAD_RIGHT,
	};
	enum way way;
	int ret = 0;

	for (way = 0; way < WAYS && !ret; way++) {
		bool write = writes(way);

		/* siw lets everybody read */
		if (p->iwarp && !write)
			continue;
		if (way == MY_WRITE || way == MY_READ) {
			ret = meet(p, KRMA_REGION_NEW, write ? KRMA_F_NO_WRITE :
							       KRMA_F_NO_READ);
		} else {
			ret = ep_region(p, write ? FI_REMOTE_READ :
						   FI_REMOTE_WRITE);
			if (!ret)
				ret = meet(p, KRMA_HELLO, 0);
		}
		if (!ret)
			ret = wrong_one(p, &c, way);
		if (!ret)
			ret = ep_region(p, ALL);
		if (!ret)
			ret = meet(p, KRMA_REGION_NEW, 0);
		if (!ret)
			ret = meet(p, KRMA_HELLO, 0);
	}
	if (!ret)
		printf("wrong    a right not granted\n");
	return ret;
}

static int wrong(struct peer *p)
{
	int ret = wrong_flag(p, KRMA_F_BAD_KEY, "a key that is not there");

	if (!ret)
		ret = wrong_flag(p, KRMA_F_BAD_RANGE, "a byte beyond the end");
	if (!ret && (p->remote.flags & KRMA_F_STRICT))
		ret = wrong_flag(p, KRMA_F_BAD_WRAP,
				 "an address that wraps around");
	return ret ? ret : wrong_rights(p);
}

/* What either side has done to the other's memory, in the words of the calls. */
static void show(struct peer *p)
{
	const char *you = p->remote.flags & KRMA_F_KERNEL ? "kernel" : "peer";
	char heads[2][32];
	enum krma_row row;

	snprintf(heads[0], sizeof(heads[0]), "program in %s's memory", you);
	snprintf(heads[1], sizeof(heads[1]), "%s in program's memory", you);
	printf("%-23s%28s%28s\n", "all bytes compared", heads[0], heads[1]);
	printf("%-23s%12s%16s%12s%16s\n", "", "times", "bytes", "times",
	       "bytes");
	for (row = 0; row < KRMA_ROWS; row++) {
		const struct krma_tally *t = p->tally[row];

		if (t[0].count || t[1].count)
			printf("%-23s%12u%16llu%12u%16llu\n",
			       krma_row_name(row), t[0].count,
			       (unsigned long long)t[0].bytes, t[1].count,
			       (unsigned long long)t[1].bytes);
	}
}

static int lead(struct peer *p, const char *only)
{
	static const struct {
		const char	*name;
		int		(*run)(struct peer *p);
	} groups[] = {
		{ "transfer", transfer }, { "forms", forms },
		{ "levels", level_writes }, { "messages", messages },
		{ "wrong", wrong },
	};
	struct cmd bye = { .flags = p->last ? KRMA_F_LAST : 0 };
	bool found = !only;
	size_t i;
	int ret;

	ret = ep_find(p);
	if (!ret)
		ret = lead_connect(p);
	for (i = 0; i < sizeof(groups) / sizeof(groups[0]) && !ret; i++) {
		if (only && strcmp(only, groups[i].name))
			continue;
		found = true;
		ret = groups[i].run(p);
	}
	if (!ret && !found)
		ret = fault(-EINVAL, "there is no group %s", only);
	if (!ret)
		ret = order(p, &bye, KRMA_BYE);
	/* messages are no accesses */
	if (!ret && (!only || strcmp(only, "messages")))
		show(p);
	return ret;
}

/* Over libfabric 2.1's tcp it fails with itself at the other end, too. */
static int shared(void)
{
	uint32_t v = fi_version();

	if (FI_VERSION_LT(v, FI_VERSION(2, 0)))
		return 0;
	printf("libfabric %u.%u crashes in fi_recv() on a context with a message waiting\n",
	       FI_MAJOR(v), FI_MINOR(v));
	return 1;
}

int main(int argc, char **argv)
{
	static struct peer peer;
	struct peer *p = &peer;
	const char *only = NULL;
	int i, ret;

	if (argc == 2 && !strcmp(argv[1], "shared"))
		return shared();
	p->port = "7473";
	for (i = 2; i < argc; i++) {
		if (!strncmp(argv[i], "node=", 5))
			p->node = argv[i] + 5;
		else if (!strncmp(argv[i], "port=", 5))
			p->port = argv[i] + 5;
		else if (!strncmp(argv[i], "only=", 5))
			only = argv[i] + 5;
		else if (!strcmp(argv[i], "verbs"))
			p->verbs = true;
		else if (!strcmp(argv[i], "rdm"))
			p->rdm = true;
		else if (!strcmp(argv[i], "rxm"))
			p->rxm = true;
		else if (!strcmp(argv[i], "srx"))
			p->srx_wanted = true;
		else if (!strcmp(argv[i], "brief"))
			p->brief = true;
		else if (!strcmp(argv[i], "last"))
			p->last = true;
		else
			argc = 0;
	}
	if (argc < 2 || (strcmp(argv[1], "serve") && strcmp(argv[1], "connect"))) {
		fputs("kofi-peer serve|connect [node=ADDRESS] [port=NUMBER] [only=GROUP]\n"
		      "          [verbs] [rdm] [rxm] [srx] [brief] [last]\n"
		      "kofi-peer shared: does srx work, or why not?\n", stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	p->server = !strcmp(argv[1], "serve");
	p->rdm |= p->rxm;
	p->rxm |= p->verbs && p->rdm;
	/* 1.17 sends tagged messages over TCP in a form of its own unless told not to */
	setenv("FI_OFI_RXM_ENABLE_DYN_RBUF", "0", 1);
	/* with it, regions are larger and grant more than they were to */
	setenv("FI_MR_CACHE_MONITOR", "disabled", 1);
	krma_pattern_make(p->pattern);
	p->region = malloc(KRMA_REGION);
	p->local = malloc(KRMA_REGION);
	if (!p->region || !p->local)
		ret = fault(-ENOMEM, "memory");
	else
		ret = p->server ? serve(p) : lead(p, only);
	ep_close(p);
	free(p->region);
	free(p->local);
	puts(ret ? "failed" : "all good");
	return ret ? 1 : 0;
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_testrping.ko: either side of rping, a program of rdma-core's that knows
 * nothing of libfabric. Loading the module is the whole run; it stays loaded if
 * that was as it should be.
 *
 * Both sides send messages of one kind: address, key and size of memory, in
 * network order. For each ping the client sends two, which name where its text
 * is and where it wants it back. The server reads the one and writes the other,
 * and answers each when that is done; what its answers name means nothing.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <linux/kofi/kofi.h>

#define RP_PORT		"7174"
#define RP_TEXT		64	/* bytes of a ping, rping's -S */
#define RP_WAIT		30000	/* milliseconds; nothing that works takes this long */

static char *rp_connect = "";
module_param_named(connect, rp_connect, charp, 0444);
MODULE_PARM_DESC(connect, "Address of the server (default: none, no client)");

static char *rp_listen = "";
module_param_named(listen, rp_listen, charp, 0444);
MODULE_PARM_DESC(listen, "Address to serve one client at (default: none, no server)");

static unsigned int rp_count = 10;
module_param_named(count, rp_count, uint, 0444);
MODULE_PARM_DESC(count, "Pings, rping's -C (default: 10)");

struct rp_message {
	__be64	addr;
	__be32	key;
	__be32	size;
};

/**
 * struct rp_run - one run
 * @info: what discovery found
 * @fabric: and what was opened from it
 * @eq: read
 * @pep: the server's
 * @domain: the device's
 * @cq: read
 * @ep: the connection
 * @mr: the client's, @text
 * @done: flags of completions that have not been waited for yet
 * @text: of the client what is sent and what has come back; of the server what
 *	was read and what it has to be
 * @said: being sent
 * @heard: being received
 */
struct rp_run {
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_eq		*eq;
	struct fid_pep		*pep;
	struct fid_domain	*domain;
	struct fid_cq		*cq;
	struct fid_ep		*ep;
	struct fid_mr		*mr;
	u64			done;
	char			text[2][RP_TEXT];
	struct rp_message	said;
	struct rp_message	heard;
};

/* ------------------------------------------------------------- connections */

static int rp_find(struct rp_run *run, const char *node, u64 flags)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_info *hints;
	int ret;

	hints = fi_allocinfo();
	if (!hints)
		return -ENOMEM;
	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR |
				      FI_MR_ALLOCATED;
	hints->fabric_attr->prov_name = kstrdup("verbs", GFP_KERNEL);
	ret = fi_getinfo(FI_VERSION(2, 1), node, RP_PORT, flags, hints,
			 &run->info);
	fi_freeinfo(hints);
	ret = ret ?: fi_fabric(run->info->fabric_attr, &run->fabric, run);
	return ret ?: fi_eq_open(run->fabric, &attr, &run->eq, run);
}

static int rp_event(struct rp_run *run, u32 want, struct fi_eq_cm_entry *entry)
{
	struct fi_eq_err_entry err = {};
	u32 event;
	ssize_t n;

	n = fi_eq_sread(run->eq, &event, entry, sizeof(*entry), RP_WAIT, 0);
	if (n == -FI_EAVAIL && fi_eq_readerr(run->eq, &err, 0) > 0)
		return -err.err;
	if (n < 0)
		return n;
	return event == want ? 0 : -EPROTO;
}

static int rp_receive(struct rp_run *run)
{
	return fi_recv(run->ep, &run->heard, sizeof(run->heard), NULL, 0, NULL);
}

static int rp_open(struct rp_run *run, struct fi_info *info)
{
	struct fi_cq_attr attr = {
		.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_UNSPEC,
	};
	int ret;

	ret = fi_domain(run->fabric, info, &run->domain, run);
	ret = ret ?: fi_cq_open(run->domain, &attr, &run->cq, run);
	ret = ret ?: fi_endpoint(run->domain, info, &run->ep, run);
	ret = ret ?: fi_ep_bind(run->ep, &run->eq->fid, 0);
	ret = ret ?: fi_ep_bind(run->ep, &run->cq->fid, FI_TRANSMIT | FI_RECV);
	ret = ret ?: fi_enable(run->ep);
	return ret ?: rp_receive(run);
}

static int rp_accept(struct rp_run *run)
{
	struct fi_eq_cm_entry entry;
	int ret;

	ret = fi_passive_ep(run->fabric, run->info, &run->pep, run);
	ret = ret ?: fi_pep_bind(run->pep, &run->eq->fid, 0);
	ret = ret ?: fi_listen(run->pep);
	ret = ret ?: rp_event(run, FI_CONNREQ, &entry);
	if (ret)
		return ret;
	ret = rp_open(run, entry.info) ?: fi_accept(run->ep, NULL, 0);
	fi_freeinfo(entry.info);
	return ret ?: rp_event(run, FI_CONNECTED, &entry);
}

static void rp_close(struct rp_run *run)
{
	struct fi_fid *fids[] = {
		run->ep ? &run->ep->fid : NULL, run->mr ? &run->mr->fid : NULL,
		run->cq ? &run->cq->fid : NULL,
		run->domain ? &run->domain->fid : NULL,
		run->pep ? &run->pep->fid : NULL,
		run->eq ? &run->eq->fid : NULL,
		run->fabric ? &run->fabric->fid : NULL,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(fids); i++) {
		if (fids[i])
			WARN_ON(fi_close(fids[i]));
	}
	fi_freeinfo(run->info);
}

/* ---------------------------------------------------------------- messages */

/* Waits until an operation of this kind has completed. */
static int rp_await(struct rp_run *run, u64 kind)
{
	struct fi_cq_err_entry err = {};
	struct fi_cq_msg_entry entry;
	ssize_t n;

	while (!(run->done & kind)) {
		n = fi_cq_sread(run->cq, &entry, 1, NULL, RP_WAIT);
		if (n == -FI_EAVAIL && fi_cq_readerr(run->cq, &err, 0) > 0)
			return -err.err;
		if (n < 0)
			return n;
		if (entry.flags & FI_RECV && entry.len != sizeof(run->heard))
			return -EMSGSIZE;
		run->done |= entry.flags;
	}
	run->done &= ~kind;
	return 0;
}

/* A message of the peer; the next one may come from then on. */
static int rp_hear(struct rp_run *run, struct rp_message *m)
{
	int ret = rp_await(run, FI_RECV);

	*m = run->heard;
	return ret ?: rp_receive(run);
}

/* Names text @i, if there is a region. */
static int rp_say(struct rp_run *run, unsigned int i)
{
	if (run->mr)
		run->said = (struct rp_message){
			.addr = cpu_to_be64(kofi_mr_base(run->mr) + i * RP_TEXT),
			.key = cpu_to_be32(fi_mr_key(run->mr)),
			.size = cpu_to_be32(RP_TEXT),
		};
	return fi_send(run->ep, &run->said, sizeof(run->said), NULL, 0, NULL) ?:
	       rp_await(run, FI_SEND);
}

/* rping's text of ping @number: its name, and letters from another one each time */
static void rp_text(char *text, unsigned int number)
{
	unsigned int n, i;

	n = scnprintf(text, RP_TEXT, "rdma-ping-%u: ", number);
	for (i = n; i < RP_TEXT - 1; i++)
		text[i] = 'A' + (number + i - n) % ('z' - 'A' + 1);
	text[i] = '\0';
}

static int rp_compare(struct rp_run *run)
{
	return memcmp(run->text[0], run->text[1], RP_TEXT) ? -EBADMSG : 0;
}

/* ------------------------------------------------------------------- sides */

static int rp_ping(struct rp_run *run, unsigned int number)
{
	struct rp_message m;
	int ret;

	rp_text(run->text[0], number);
	memset(run->text[1], 0, RP_TEXT);
	ret = rp_say(run, 0) ?: rp_hear(run, &m);
	ret = ret ?: rp_say(run, 1) ?: rp_hear(run, &m);
	return ret ?: rp_compare(run);
}

static int rp_client(struct rp_run *run)
{
	struct kvec iov = {
		.iov_base = run->text, .iov_len = sizeof(run->text),
	};
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1,
		.access = FI_REMOTE_READ | FI_REMOTE_WRITE,
	};
	struct fi_eq_cm_entry entry;
	unsigned int i;
	int ret;

	ret = rp_find(run, rp_connect, 0) ?: rp_open(run, run->info);
	ret = ret ?: fi_connect(run->ep, run->info->dest_addr, NULL, 0);
	ret = ret ?: rp_event(run, FI_CONNECTED, &entry);
	ret = ret ?: fi_mr_regattr(run->domain, &attr, 0, &run->mr);
	for (i = 0; i < rp_count && !ret; i++)
		ret = rp_ping(run, i);
	return ret;
}

static int rp_pong(struct rp_run *run, unsigned int number)
{
	struct rp_message m;
	int ret;

	rp_text(run->text[1], number);
	ret = rp_hear(run, &m);
	ret = ret ?: fi_read(run->ep, run->text[0], RP_TEXT, NULL, 0,
			     be64_to_cpu(m.addr), be32_to_cpu(m.key), NULL);
	ret = ret ?: rp_await(run, FI_READ);
	ret = ret ?: rp_compare(run) ?: rp_say(run, 0) ?: rp_hear(run, &m);
	ret = ret ?: fi_write(run->ep, run->text[0], RP_TEXT, NULL, 0,
			      be64_to_cpu(m.addr), be32_to_cpu(m.key), NULL);
	return ret ?: rp_await(run, FI_WRITE) ?: rp_say(run, 0);
}

static int rp_server(struct rp_run *run)
{
	struct fi_eq_cm_entry entry;
	unsigned int i;
	int ret;

	ret = rp_find(run, rp_listen, FI_SOURCE) ?: rp_accept(run);
	for (i = 0; i < rp_count && !ret; i++)
		ret = rp_pong(run, i);
	return ret ?: rp_event(run, FI_SHUTDOWN, &entry);
}

static int rp_run(int (*side)(struct rp_run *run))
{
	struct rp_run *run = kzalloc(sizeof(*run), GFP_KERNEL);
	int ret;

	if (!run)
		return -ENOMEM;
	ret = side(run);
	rp_close(run);
	kfree(run);
	return ret;
}

static int __init rp_init(void)
{
	int ret = 0;

	if (*rp_connect)
		ret = rp_run(rp_client);
	if (*rp_listen && !ret)
		ret = rp_run(rp_server);
	return ret;
}
module_init(rp_init);

static void __exit rp_exit(void)
{
}
module_exit(rp_exit);

MODULE_DESCRIPTION("Either side of rping, for tests");
MODULE_LICENSE("Dual BSD/GPL");

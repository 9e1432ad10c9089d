// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_testtls.ko: connections with TLS for scenarios. Both parameters take
 *
 *	ADDRESS MODE KEYRING KEY [PEER]
 *
 * where MODE is enum kofi_tls_mode, KEYRING and KEY are serial numbers or 0, and PEER is the
 * identity to expect. Writing to "connect" connects, has a pattern echoed, and disconnects;
 * "result" is 0 then, or the reason of the failure, a negative error. Writing to "serve"
 * starts a server at the address, or stops it if the value is empty. "peer" is the identity
 * of the last peer. "found" counts the pattern in all packets of this machine.
 */
#include <linux/etherdevice.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <net/net_namespace.h>

#include <linux/kofi/kofi.h>

#define PORT		"7476"
#define LEN		SZ_64K
#define TIMES		16
#define WAIT		60000	/* milliseconds for a step */
#define PATTERN		"KoFiTlS!"

/**
 * struct end - an end of a connection
 * @info: attributes of the endpoint
 * @domain: domain of the endpoint
 * @eq: event queue of the endpoint
 * @tx: completion queue for sends
 * @rx: completion queue for receives
 * @ep: the endpoint
 * @buf: memory of a message
 */
struct end {
	struct fi_info		*info;
	struct fid_domain	*domain;
	struct fid_eq		*eq;
	struct fid_cq		*tx;
	struct fid_cq		*rx;
	struct fid_ep		*ep;
	u8			*buf;
};

/**
 * struct server - the server
 * @info: attributes of the listener
 * @fabric: fabric of the listener
 * @eq: event queue of the listener
 * @pep: the listener
 * @task: thread that serves one connection after the other
 */
static struct server {
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_eq		*eq;
	struct fid_pep		*pep;
	struct task_struct	*task;
} server;

static char peer[KOFI_TLS_NAME_MAX];
module_param_string(peer, peer, sizeof(peer), 0444);
MODULE_PARM_DESC(peer, "Identity of the last peer");

static int result;
module_param(result, int, 0444);
MODULE_PARM_DESC(result, "Result of the last client");

static unsigned int found;
module_param(found, uint, 0644);
MODULE_PARM_DESC(found, "Times that the pattern was in a packet");

static unsigned int missed;
module_param(missed, uint, 0644);
MODULE_PARM_DESC(missed, "Packets that were not searched");

/* ---------------------------------------------------------------- recorder */

/* A packet of the largest size, with room for headers; protects the counters, too */
static DEFINE_SPINLOCK(record_lock);
static u8 record_bytes[SZ_128K];

static int record(struct sk_buff *skb, struct net_device *dev, struct packet_type *pt,
		  struct net_device *orig)
{
	size_t i;

	spin_lock_bh(&record_lock);
	if (skb->len > sizeof(record_bytes) || skb_copy_bits(skb, 0, record_bytes, skb->len))
		missed++;
	else
		for (i = 0; i + strlen(PATTERN) <= skb->len; i++)
			found += !memcmp(record_bytes + i, PATTERN, strlen(PATTERN));
	spin_unlock_bh(&record_lock);
	consume_skb(skb);
	return 0;
}

static struct packet_type recorder = {
	.type	= htons(ETH_P_ALL),
	.func	= record,
};

static struct fi_info *query(const char *node, bool passive, u32 mode)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	if (!hints)
		return NULL;
	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG | (mode ? KOFI_TLS : 0);
	hints->fabric_attr->prov_name = kstrdup("sock", GFP_KERNEL);
	if (fi_getinfo(FI_VERSION(2, 1), node, PORT,
		       FI_NUMERICHOST | (passive ? FI_SOURCE : 0), hints, &info))
		info = NULL;
	fi_freeinfo(hints);
	return info;
}

static void end_close(struct end *e)
{
	if (e->ep)
		fi_close(&e->ep->fid);
	if (e->tx)
		fi_close(&e->tx->fid);
	if (e->rx)
		fi_close(&e->rx->fid);
	if (e->eq)
		fi_close(&e->eq->fid);
	if (e->domain)
		fi_close(&e->domain->fid);
	fi_freeinfo(e->info);
	vfree(e->buf);
}

/* Open an end, which gets @info. end_close() undoes it, also after an error. */
static int end_open(struct end *e, struct fid_fabric *fabric, struct fi_info *info,
		    const struct kofi_tls *tls)
{
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cq_attr cq = {
		.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_UNSPEC,
	};

	*e = (struct end) { .info = info, .buf = vmalloc(LEN) };
	if (!e->buf)
		return -ENOMEM;
	return fi_domain(fabric, info, &e->domain, NULL) ? :
	       fi_eq_open(fabric, &eq, &e->eq, NULL) ? :
	       fi_cq_open(e->domain, &cq, &e->tx, NULL) ? :
	       fi_cq_open(e->domain, &cq, &e->rx, NULL) ? :
	       fi_endpoint(e->domain, info, &e->ep, NULL) ? :
	       fi_ep_bind(e->ep, &e->eq->fid, 0) ? :
	       fi_ep_bind(e->ep, &e->tx->fid, FI_TRANSMIT) ? :
	       fi_ep_bind(e->ep, &e->rx->fid, FI_RECV) ? :
	       (tls ? fi_setopt(&e->ep->fid, FI_OPT_ENDPOINT, KOFI_OPT_TLS, tls,
				sizeof(*tls)) : 0) ? :
	       fi_enable(e->ep);
}

/* Wait for an event of an endpoint. Returns 0, or the provider's reason of a failure. */
static int end_event(struct end *e, u32 event)
{
	struct fi_eq_err_entry err = {};
	struct fi_eq_cm_entry entry;
	u32 got = 0;
	ssize_t n = fi_eq_sread(e->eq, &got, &entry, sizeof(entry), WAIT, 0);

	if (n == -FI_EAVAIL) {
		n = fi_eq_readerr(e->eq, &err, 0);
		return n < 0 ? n : -(err.prov_errno ? : err.err);
	}
	return n < 0 ? n : got == event ? 0 : -ENOTCONN;
}

static int end_completed(struct fid_cq *cq, size_t *len)
{
	struct fi_cq_err_entry err = {};
	struct fi_cq_msg_entry entry;
	ssize_t n = fi_cq_sread(cq, &entry, 1, NULL, WAIT);

	if (n == -FI_EAVAIL)
		return fi_cq_readerr(cq, &err, 0) < 0 ? -EIO : -err.err;
	if (len && n == 1)
		*len = entry.len;
	return n == 1 ? 0 : n ? : -EIO;
}

static void end_peer(struct end *e)
{
	size_t len = sizeof(peer);

	if (fi_getopt(&e->ep->fid, FI_OPT_ENDPOINT, KOFI_OPT_TLS_PEER, peer, &len))
		strscpy(peer, "-");
}

/* ------------------------------------------------------------------ client */

static int echo(struct end *e, unsigned int round)
{
	size_t i, len = 0;
	int ret;

	for (i = 0; i < LEN; i++)
		e->buf[i] = PATTERN[(i + round) % 8];
	ret = fi_send(e->ep, e->buf, LEN, NULL, 0, NULL) ? : end_completed(e->tx, NULL);
	if (ret)
		return ret;
	memset(e->buf, 0, LEN);
	ret = fi_recv(e->ep, e->buf, LEN, NULL, 0, NULL) ? : end_completed(e->rx, &len);
	if (ret)
		return ret;
	for (i = 0; i < LEN; i++)
		if (len != LEN || e->buf[i] != (u8)PATTERN[(i + round) % 8])
			return -EBADMSG;
	return 0;
}

static int client(const char *node, const struct kofi_tls *tls)
{
	struct fi_info *info = query(node, false, tls->mode);
	struct fid_fabric *fabric;
	unsigned int i;
	struct end e;
	int ret;

	if (!info)
		return -ENODATA;
	ret = fi_fabric(info->fabric_attr, &fabric, NULL);
	if (ret) {
		fi_freeinfo(info);
		return ret;
	}
	ret = end_open(&e, fabric, info, tls) ? :
	      fi_connect(e.ep, info->dest_addr, NULL, 0) ? : end_event(&e, FI_CONNECTED);
	if (!ret)
		end_peer(&e);
	for (i = 0; i < TIMES && !ret; i++)
		ret = echo(&e, i);
	end_close(&e);
	fi_close(&fabric->fid);
	return ret;
}

/* ------------------------------------------------------------------ server */

static void serve_one(struct server *s, struct fi_info *req)
{
	struct end e;
	size_t len;
	int ret;

	ret = end_open(&e, s->fabric, req, NULL);
	if (!ret) {
		end_peer(&e);
		ret = fi_recv(e.ep, e.buf, LEN, NULL, 0, NULL) ? :
		      fi_accept(e.ep, NULL, 0) ? : end_event(&e, FI_CONNECTED);
	}
	while (!ret && !end_completed(e.rx, &len)) {
		ret = fi_send(e.ep, e.buf, len, NULL, 0, NULL) ? : end_completed(e.tx, NULL);
		if (!ret)
			ret = fi_recv(e.ep, e.buf, LEN, NULL, 0, NULL);
	}
	end_close(&e);
}

static int server_thread(void *arg)
{
	struct server *s = arg;
	struct fi_eq_cm_entry entry;
	u32 event;

	while (!kthread_should_stop()) {
		if (fi_eq_sread(s->eq, &event, &entry, sizeof(entry), 200, 0) > 0 &&
		    event == FI_CONNREQ)
			serve_one(s, entry.info);
	}
	return 0;
}

static void server_stop(struct server *s)
{
	if (!IS_ERR_OR_NULL(s->task))
		kthread_stop(s->task);
	if (s->pep)
		fi_close(&s->pep->fid);
	if (s->eq)
		fi_close(&s->eq->fid);
	if (s->fabric)
		fi_close(&s->fabric->fid);
	fi_freeinfo(s->info);
	*s = (struct server) {};
}

static int server_start(struct server *s, const char *node, const struct kofi_tls *tls)
{
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_UNSPEC };
	int ret;

	s->info = query(node, true, tls->mode);
	if (!s->info)
		return -ENODATA;
	ret = fi_fabric(s->info->fabric_attr, &s->fabric, NULL) ? :
	      fi_eq_open(s->fabric, &eq, &s->eq, NULL) ? :
	      fi_passive_ep(s->fabric, s->info, &s->pep, NULL) ? :
	      fi_pep_bind(s->pep, &s->eq->fid, 0) ? :
	      fi_setopt(&s->pep->fid, FI_OPT_ENDPOINT, KOFI_OPT_TLS, tls, sizeof(*tls)) ? :
	      fi_listen(s->pep);
	if (!ret) {
		s->task = kthread_run(server_thread, s, "kofi_testtls");
		ret = PTR_ERR_OR_ZERO(s->task);
	}
	if (ret)
		server_stop(s);
	return ret;
}

/* -------------------------------------------------------------- parameters */

static int parse(const char *val, char *node, struct kofi_tls *tls)
{
	char *end;

	memset(tls, 0, sizeof(*tls));
	if (sscanf(val, "%63s %u %d %d %127[^\n]", node, &tls->mode, &tls->keyring, &tls->key,
		   tls->peer) < 4)
		return -EINVAL;
	end = strchr(tls->peer, '\n');
	if (end)
		*end = 0;
	return 0;
}

static int connect_set(const char *val, const struct kernel_param *kp)
{
	struct kofi_tls tls;
	char node[64];

	result = parse(val, node, &tls) ? : client(node, &tls);
	return result;
}

static const struct kernel_param_ops connect_ops = { .set = connect_set };
module_param_cb(connect, &connect_ops, NULL, 0200);
MODULE_PARM_DESC(connect, "Connect to this address");

static int serve_set(const char *val, const struct kernel_param *kp)
{
	struct kofi_tls tls;
	char node[64];

	server_stop(&server);
	if (!*skip_spaces(val))
		return 0;
	return parse(val, node, &tls) ? : server_start(&server, node, &tls);
}

static const struct kernel_param_ops serve_ops = { .set = serve_set };
module_param_cb(serve, &serve_ops, NULL, 0200);
MODULE_PARM_DESC(serve, "Serve at this address");

static int __init testtls_init(void)
{
	dev_add_pack(&recorder);
	return 0;
}
module_init(testtls_init);

static void __exit testtls_exit(void)
{
	server_stop(&server);
	dev_remove_pack(&recorder);
}
module_exit(testtls_exit);

MODULE_DESCRIPTION("Connections with TLS for tests of kOFI");
MODULE_LICENSE("Dual BSD/GPL");

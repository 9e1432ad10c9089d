// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections: setup and teardown.
 *
 * The handler of a port's event queue makes a connection with kblkt_lock held. From then
 * on the connection is in the list of all connections. A port waits for its connections
 * before it is closed. The login assigns a volume and memory (tlogin.c).
 *
 * A connection is closed when a completion fails, a command or login is invalid, a
 * login takes too long, or its volume or port is disabled. In each case kblkt_lost() is
 * called. The connection's work item does the rest, once: it drains the endpoint, waits
 * for the bios, and frees the connection. Resources of a dead client are freed, too: the
 * provider probes silent peers if the device supports it.
 */
#include <linux/moduleparam.h>
#include <linux/nsproxy.h>
#include <linux/sched/mm.h>
#include <net/net_namespace.h>

#include "target.h"

/* Protects the lists of volumes and connections, and serialises new connections */
DEFINE_MUTEX(kblkt_lock);
LIST_HEAD(kblkt_volumes);
struct workqueue_struct *kblkt_wq;
LIST_HEAD(kblkt_conns);
static unsigned int kblkt_nr_conns;
static struct delayed_work kblkt_watch;

/* Number of closed connections, written under kblkt_lock; waiters read it without the lock */
static unsigned int kblkt_ended;
static DECLARE_WAIT_QUEUE_HEAD(kblkt_ending);

/* Module parameters are written and read without a lock; a change concerns later requests. */

/* Limit of connections; each uses about 4.5 MiB from its login on */
static unsigned int kblkt_max_conns = KBLKT_CONNS;

/* Limit of connections of one address */
static unsigned int kblkt_max_client = KBLKT_CLIENT;

static int kblkt_max_conns_set(const char *val, const struct kernel_param *param)
{
	return param_set_uint_minmax(val, param, 1, KBLKT_CONNS_MAX);
}

static const struct kernel_param_ops kblkt_max_conns_ops = {
	.set = kblkt_max_conns_set,
	.get = param_get_uint,
};

module_param_cb(connections, &kblkt_max_conns_ops, &kblkt_max_conns, 0644);
MODULE_PARM_DESC(connections, "Connections of all clients at most (1 to "
		 __stringify(KBLKT_CONNS_MAX) ", default "
		 __stringify(KBLKT_CONNS) ")");
module_param_cb(client_connections, &kblkt_max_conns_ops, &kblkt_max_client,
		0644);
MODULE_PARM_DESC(client_connections, "Connections of one address at most (1 to "
		 __stringify(KBLKT_CONNS_MAX) ", default "
		 __stringify(KBLKT_CLIENT) ")");

/* ------------------------------------------------------------------- teardown */

static void kblkt_conn_end(struct work_struct *work)
{
	struct kblkt_conn *c = container_of(work, struct kblkt_conn, end);

	/* wait until kblkt_event() has made the connection */
	mutex_lock(&kblkt_lock);
	mutex_unlock(&kblkt_lock);

	if (c->ep)
		kofi_ep_drain(c->ep);
	if (!refcount_dec_and_test(&c->bios))
		wait_for_completion(&c->bios_gone);
	if (c->ep)
		fi_close(&c->ep->fid);
	if (c->cq)
		fi_close(&c->cq->fid);
	if (c->domain)
		fi_close(&c->domain->fid);
	kblkt_io_free(c);
	kblkt_login_free(c);

	mutex_lock(&kblkt_lock);
	list_del(&c->node);
	kblkt_nr_conns--;
	if (c->volume)
		kblkt_logout(c);
	WRITE_ONCE(kblkt_ended, kblkt_ended + 1);
	wake_up_all(&kblkt_ending);
	mutex_unlock(&kblkt_lock);
	kvfree(c);
}

/**
 * kblkt_lost - close a connection
 * @c: the connection
 *
 * Context: any.
 */
void kblkt_lost(struct kblkt_conn *c)
{
	if (!atomic_xchg(&c->dead, 1))
		queue_work(c->volume ? c->volume->ends : kblkt_wq, &c->end);
}

/*
 * Close connections without a login in time, as they count for the limits. Notify the
 * clients of all others of commands that take long.
 */
static void kblkt_watch_work(struct work_struct *work)
{
	struct kblkt_conn *c;

	mutex_lock(&kblkt_lock);
	list_for_each_entry(c, &kblkt_conns, node) {
		/* the connection's work item needs this lock to free the connection */
		if (atomic_read(&c->dead))
			continue;
		if (c->phase == KBLKT_SERVES) {
			kblkt_note_progress(c);
			continue;
		}
		if (!time_after(jiffies, c->began +
				msecs_to_jiffies(KBLK_LOGIN_MS)))
			continue;
		pr_warn_ratelimited("kofi_blkt: %pISc has not logged in, connection ended\n",
				    &c->peer);
		kblkt_lost(c);
	}
	if (!list_empty(&kblkt_conns))
		queue_delayed_work(kblkt_wq, &kblkt_watch, KBLKT_WATCH);
	mutex_unlock(&kblkt_lock);
}

static DECLARE_DELAYED_WORK(kblkt_watch, kblkt_watch_work);

/**
 * kblkt_watch_stop - stop the supervision of connections
 *
 * Context: process, may sleep; no connection exists.
 */
void kblkt_watch_stop(void)
{
	cancel_delayed_work_sync(&kblkt_watch);
}

/**
 * kblkt_end - close connections
 * @v: volume of the connections, or NULL for all volumes
 * @p: port of the connections, or NULL for all ports
 * @only: filter, called with kblkt_lock held: true to close a connection; or NULL
 * @wait: wait until the connections are freed, and the device has completed their
 *	commands
 *
 * The caller ensures that no further connection of this kind is made.
 *
 * Context: process, may sleep.
 * Return: 0, or -EINTR if the process was killed while it waited.
 */
int kblkt_end(const struct kblkt_volume *v, const struct kblkt_port *p,
	      bool (*only)(const struct kblkt_conn *c), bool wait)
{
	struct kblkt_conn *c;
	unsigned int ended;
	bool left;

	for (;;) {
		left = false;
		mutex_lock(&kblkt_lock);
		list_for_each_entry(c, &kblkt_conns, node) {
			if ((v && c->volume != v) || (p && c->port != p) ||
			    (only && !only(c)))
				continue;
			kblkt_lost(c);
			left = true;
		}
		ended = kblkt_ended;
		mutex_unlock(&kblkt_lock);
		if (!wait || !left)
			return 0;
		if (wait_event_killable(kblkt_ending,
					READ_ONCE(kblkt_ended) != ended))
			return -EINTR;
	}
}

/* --------------------------------------------------------------------- setup */

static int kblkt_accept(struct kblkt_conn *c, struct fi_info *info,
			unsigned int version)
{
	const struct kofi_cq_attr kattr = {
		.poll = KOFI_POLL_WORKQUEUE, .done = true,
	};
	/* a command completes a receive, a read or write, and an answer */
	struct fi_cq_attr attr = { .size = 5 * c->depth };
	int err;

	c->accept = (struct kblk_accept) {
		.magic = cpu_to_le32(KBLK_MAGIC),
		.version = cpu_to_le16(version),
		.features = cpu_to_le32(c->features),
	};
	err = fi_domain(c->port->fabric, info, &c->domain, NULL);
	if (err)
		return err;
	err = kofi_cq_open(c->domain, &attr, &kattr, &c->cq, NULL);
	if (err)
		return err;
	err = fi_endpoint(c->domain, info, &c->ep, c);
	if (err)
		return err;
	kblk_ep_options(c->ep);
	err = fi_ep_bind(c->ep, &c->port->eq->fid, 0);
	if (err)
		return err;
	err = fi_ep_bind(c->ep, &c->cq->fid, FI_TRANSMIT | FI_RECV);
	if (err)
		return err;
	err = kofi_ep_write_space(c->ep, kblkt_io_space);
	if (err)
		return err;
	err = fi_enable(c->ep);
	if (err)
		return err;
	err = kblkt_login_start(c);
	if (err)
		return err;
	return fi_accept(c->ep, &c->accept, sizeof(c->accept));
}

static struct kblkt_conn *kblkt_conn_new(struct kblkt_port *p,
					 const struct kblk_hello *hello,
					 const struct fi_info *info)
{
	struct kblkt_conn *c = kvzalloc(sizeof(*c), GFP_KERNEL);

	if (!c)
		return NULL;
	c->port = p;
	memcpy(&c->peer, info->dest_addr,
	       min(info->dest_addrlen, sizeof(c->peer)));
	c->hello = *hello;
	c->depth = le16_to_cpu(hello->depth);
	c->features = le32_to_cpu(hello->features) & KBLK_FEATURES;
	if (READ_ONCE(p->digest) == KBLK_DIGEST_OFF)
		c->features &= ~KBLK_FEATURE_DIGEST;
	/* CQ data has no room for a digest */
	if (!kblk_has_data(info) || c->features & KBLK_FEATURE_DIGEST)
		c->features &= ~KBLK_FEATURE_CQ_DATA;
	c->cmd_len = sizeof(struct kblk_cmd);
	if (c->features & KBLK_FEATURE_DIGEST)
		c->cmd_len += sizeof(struct kblk_digests);
	c->began = jiffies;
	INIT_WORK(&c->end, kblkt_conn_end);
	spin_lock_init(&c->lock);
	INIT_LIST_HEAD(&c->idle_ios);
	INIT_LIST_HEAD(&c->waiting);
	INIT_LIST_HEAD(&c->pending);
	refcount_set(&c->bios, 1);
	init_completion(&c->bios_gone);
	list_add_tail(&c->node, &kblkt_conns);
	kblkt_nr_conns++;
	queue_delayed_work(kblkt_wq, &kblkt_watch, KBLKT_WATCH);
	return c;
}

/* Test whether all clients, or the clients of this address, have used up their limit. */
static bool kblkt_full(const struct sockaddr_storage *peer)
{
	const struct kblkt_conn *c;
	unsigned int n = 0;

	list_for_each_entry(c, &kblkt_conns, node)
		n += kblkt_same_addr(&c->peer, peer);
	return kblkt_nr_conns >= READ_ONCE(kblkt_max_conns) ||
	       n >= READ_ONCE(kblkt_max_client);
}

/*
 * Check the private data of a request. Returns 0, or the reason to refuse it. The client
 * makes all other demands in its login.
 */
static enum kblk_reason kblkt_check_hello(const struct kblk_hello *hello,
					  ssize_t len, unsigned int *version)
{
	unsigned int depth;

	if (len < (ssize_t)offsetofend(struct kblk_hello, oldest) ||
	    hello->magic != cpu_to_le32(KBLK_MAGIC))
		return KBLK_REASON_PROTOCOL;
	*version = le16_to_cpu(hello->version);
	if (*version < KBLK_OLDEST ||
	    le16_to_cpu(hello->oldest) > KBLK_VERSION)
		return KBLK_REASON_VERSION;
	if (len < (ssize_t)sizeof(*hello))
		return KBLK_REASON_PROTOCOL;
	depth = le16_to_cpu(hello->depth);
	if (!depth || depth > KBLK_DEPTH ||
	    le16_to_cpu(hello->oldest) > *version)
		return KBLK_REASON_PROTOCOL;
	*version = min(*version, KBLK_VERSION);
	return 0;
}

static enum kblk_reason kblkt_connect(struct kblkt_port *p,
				      struct fi_info *info,
				      const struct kblk_hello *hello,
				      ssize_t len)
{
	struct sockaddr_storage peer = {};
	unsigned int version = 0;
	enum kblk_reason reason;
	struct kblkt_conn *c;
	int err;

	reason = kblkt_check_hello(hello, len, &version);
	if (reason == KBLK_REASON_VERSION)
		pr_warn_ratelimited("kofi_blkt: %pISc speaks version %u, this target %u to %u\n",
				    info->dest_addr, version, KBLK_OLDEST,
				    KBLK_VERSION);
	if (reason)
		return reason;
	if (READ_ONCE(p->digest) == KBLK_DIGEST_REQUIRED &&
	    !(le32_to_cpu(hello->features) & KBLK_FEATURE_DIGEST))
		return KBLK_REASON_FEATURE;
	memcpy(&peer, info->dest_addr, min(info->dest_addrlen, sizeof(peer)));
	if (kblkt_full(&peer))
		return KBLK_REASON_FULL;
	c = kblkt_conn_new(p, hello, info);
	if (!c)
		return KBLK_REASON_FAILED;
	err = kblkt_accept(c, info, version);
	if (!err)
		return 0;
	pr_err_ratelimited("kofi_blkt: %pISc: no connection: %d\n", &c->peer,
			   err);
	/* an endpoint owns the request, which then cannot be refused */
	reason = c->ep ? 0 : KBLK_REASON_FAILED;
	kblkt_lost(c);
	return reason;
}

static void kblkt_request(struct kblkt_port *p, struct fi_info *info,
			  const void *data, ssize_t len)
{
	struct kblk_refusal no = {
		.magic = cpu_to_le32(KBLK_MAGIC),
		.version = cpu_to_le16(KBLK_VERSION),
		.oldest = cpu_to_le16(KBLK_OLDEST),
	};
	enum kblk_reason reason;
	unsigned int noio;

	mutex_lock(&kblkt_lock);
	/* writeback to volumes may wait for the lock */
	noio = memalloc_noio_save();
	if (!p->pep)
		goto unlock;
	reason = kblkt_connect(p, info, data, len);
	if (!reason)
		goto unlock;
	pr_warn_ratelimited("kofi_blkt: %pISc refused: %s\n", info->dest_addr,
			    kblk_reason_text(reason));
	no.reason = cpu_to_le16(reason);
	fi_reject(p->pep, info->handle, &no, sizeof(no));
unlock:
	memalloc_noio_restore(noio);
	mutex_unlock(&kblkt_lock);
}

/* Handle a failed listener, or a failed connection: perhaps no receive reports it. */
static void kblkt_fid_event(struct kblkt_port *p, struct fi_fid *fid, int err)
{
	struct kblkt_conn *c;

	mutex_lock(&kblkt_lock);
	if (p->pep && &p->pep->fid == fid) {
		pr_warn("kofi_blkt: lost the address %s: %d\n", p->at.addr, -err);
		p->lost = true;
		mod_delayed_work(kblkt_wq, &p->again, 0);
	}
	list_for_each_entry(c, &kblkt_conns, node)
		if (c->ep && &c->ep->fid == fid)
			kblkt_lost(c);
	mutex_unlock(&kblkt_lock);
}

static void kblkt_event(struct fid_eq *eq, void *context)
{
	struct kblkt_port *p = context;
	struct fi_eq_err_entry error = {};
	union {
		struct fi_eq_cm_entry	cm;
		u8			room[sizeof(struct fi_eq_cm_entry) +
					     256];
	} ev;
	u32 event;
	ssize_t n;

	while ((n = fi_eq_read(eq, &event, &ev, sizeof(ev), 0)) != -EAGAIN) {
		if (n == -FI_EAVAIL) {
			if (fi_eq_readerr(eq, &error, 0) > 0)
				kblkt_fid_event(p, error.fid, error.err);
			continue;
		}
		if (n < 0)
			return;
		if (event == FI_SHUTDOWN)
			kblkt_fid_event(p, ev.cm.fid, 0);
		if (event != FI_CONNREQ)
			continue;
		kblkt_request(p, ev.cm.info, ev.cm.data, n - sizeof(ev.cm));
		fi_freeinfo(ev.cm.info);
	}
}

/* ---------------------------------------------------------------------- ports */

static void kblkt_domain_add(struct kofi_client *client,
			     const struct kofi_domain_id *id)
{
	struct kblkt_port *p = container_of(client, struct kblkt_port, client);

	mod_delayed_work(kblkt_wq, &p->again, 0);
}

/* The provider reports to the event queue that the listener is lost. */
static void kblkt_domain_remove(struct kofi_client *client,
				const struct kofi_domain_id *id)
{
}

static int kblkt_port_info(struct kblkt_port *p, gfp_t gfp, struct fi_info **info)
{
	return kblk_getinfo(p->client.net, p->at.provider, p->at.addr, p->at.port,
			    FI_SOURCE, KBLK_DEPTH, gfp, info);
}

static int kblkt_pep_open(struct kblkt_port *p, struct fi_info *info)
{
	struct fid_pep *pep, *old;
	int err;

	err = fi_passive_ep(p->fabric, info, &pep, NULL);
	if (err)
		return err;
	/* before fi_listen(), so that the first requests find it */
	mutex_lock(&kblkt_lock);
	old = p->pep;
	p->pep = pep;
	mutex_unlock(&kblkt_lock);
	err = fi_pep_bind(pep, &p->eq->fid, 0);
	if (err)
		goto restore;
	err = fi_listen(pep);
	if (err)
		goto restore;
	if (old)
		fi_close(&old->fid);
	return 0;
restore:
	mutex_lock(&kblkt_lock);
	p->pep = old;
	mutex_unlock(&kblkt_lock);
	fi_close(&pep->fid);
	return err;
}

/**
 * kblkt_again - listen again if the address has returned
 * @work: work item of a port
 */
void kblkt_again(struct work_struct *work)
{
	struct kblkt_port *p = container_of(to_delayed_work(work), struct kblkt_port, again);
	struct fi_info *info;
	unsigned int noio;
	bool lost;
	int err;

	mutex_lock(&kblkt_lock);
	lost = p->lost;
	p->lost = false;
	mutex_unlock(&kblkt_lock);
	if (!lost)
		return;
	noio = memalloc_noio_save();
	err = kblkt_port_info(p, GFP_NOIO, &info);
	if (!err) {
		err = kblkt_pep_open(p, info);
		fi_freeinfo(info);
	}
	memalloc_noio_restore(noio);
	if (!err) {
		pr_info("kofi_blkt: listens at %s again\n", p->at.addr);
		return;
	}
	mutex_lock(&kblkt_lock);
	p->lost = true;
	mutex_unlock(&kblkt_lock);
	/* without the address, its return is notified */
	if (err != -ENODATA)
		queue_delayed_work(kblkt_wq, &p->again, HZ);
}

/**
 * kblkt_listen - open a port
 * @p: a port with its attributes set
 *
 * Return: 0 or a negative error code.
 */
int kblkt_listen(struct kblkt_port *p)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct fi_info *info;
	int err;

	p->client = (struct kofi_client) {
		.name = "kofi_blkt",
		.net = get_net(current->nsproxy->net_ns),
		.add = kblkt_domain_add,
		.change = kblkt_domain_add,
		.remove = kblkt_domain_remove,
	};
	err = kblkt_port_info(p, GFP_KERNEL, &info);
	if (err)
		goto put_net;
	err = fi_fabric(info->fabric_attr, &p->fabric, NULL);
	if (err)
		goto free_info;
	err = kofi_eq_open(p->fabric, &attr, kblkt_event, &p->eq, p);
	if (err)
		goto close_fabric;
	err = kblkt_pep_open(p, info);
	if (err)
		goto close_eq;
	fi_freeinfo(info);
	kofi_client_register(&p->client);
	return 0;

close_eq:
	fi_close(&p->eq->fid);
	p->eq = NULL;
close_fabric:
	fi_close(&p->fabric->fid);
	WRITE_ONCE(p->fabric, NULL);
free_info:
	fi_freeinfo(info);
put_net:
	put_net(p->client.net);
	p->client.net = NULL;
	return err;
}

/**
 * kblkt_unlisten - close a port, and the connections that came through it
 * @p: an enabled port
 *
 * Context: process, may sleep until the bios have completed.
 * Return: 0, or -EINTR if the process was killed. Then the port no longer listens, and
 * another call does the rest.
 */
int kblkt_unlisten(struct kblkt_port *p)
{
	struct fid_pep *pep;

	if (p->client.net) {
		kofi_client_unregister(&p->client);
		disable_delayed_work_sync(&p->again);
		put_net(p->client.net);
		p->client.net = NULL;
	}
	mutex_lock(&kblkt_lock);
	pep = p->pep;
	p->pep = NULL;
	mutex_unlock(&kblkt_lock);
	if (pep)
		fi_close(&pep->fid);
	if (kblkt_end(NULL, p, NULL, true))
		return -EINTR;
	fi_close(&p->eq->fid);
	p->eq = NULL;
	fi_close(&p->fabric->fid);
	WRITE_ONCE(p->fabric, NULL);
	p->lost = false;
	enable_delayed_work(&p->again);
	return 0;
}

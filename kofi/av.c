// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Address vectors (fi_av(3)): the peers of unconnected endpoints.
 *
 * Storage
 *
 * An address is a struct kofi_av_addr, found by its number through an xarray and by
 * the address itself through a hash table. The xarray grows by nodes, the hash table by
 * doubling, in memory that need not be contiguous. Until an endpoint communicates with a
 * peer, only its address is stored.
 *
 * Normal operation
 *
 * Posts look up the address of an fi_addr_t, receivers the number of
 * an address. Both are RCU readers: they take no lock, and run concurrently with insertions
 * and removals, which a mutex serialises. A removed entry is freed after
 * a grace period.
 *
 * Removal
 *
 * The endpoints of a vector are notified of each removed address, after the last post
 * that may use it, so that they complete its operations. They are notified of
 * insertions, too, because messages from unknown senders may wait.
 *
 * Numbers
 *
 * The lowest free number is the next one, so that the numbers of a vector
 * without removals are the order of insertion: FI_AV_TABLE, and
 * FI_AV_MAP behaves equally. An address that is inserted twice keeps its number,
 * and must be removed twice, as in the address vectors of
 * libfabric.
 *
 * Errors
 *
 * Each address fails separately: its fi_addr_t is FI_ADDR_NOTAVAIL, and the reason
 * is stored in the array of FI_SYNC_ERR, or queued on the event queue of a vector
 * opened with FI_EVENT.
 */
#include <linux/in.h>
#include <linux/inet.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/ipv6.h>

#include <linux/kofi/lib.h>

#include "av.h"
#include "internal.h"

#define KOFI_AV_CTX_BITS_MAX	16

/* ---------------------------------------------------------------- addresses */

static bool kofi_av_family_allowed(u32 format, int family)
{
	return (format != FI_SOCKADDR_IN || family == AF_INET) &&
	       (format != FI_SOCKADDR_IN6 || family == AF_INET6);
}

/* Source of the addresses of an insertion; get() defines the use of ADDR. */
struct kofi_av_source {
	int		(*get)(const struct kofi_av_source *s, size_t i,
			       union kofi_ip *key);
	u32		format;
	const void	*addr;
	size_t		size;
	size_t		services;
	struct net	*net;
};

/* ADDR: addresses of SIZE bytes each */
static int kofi_av_get_array(const struct kofi_av_source *s, size_t i,
			     union kofi_ip *key)
{
	return kofi_ip_peer(s->addr + i * s->size, s->size, key);
}

/* ADDR: pointers to text */
static int kofi_av_get_text(const struct kofi_av_source *s, size_t i,
			    union kofi_ip *key)
{
	const char *const *text = s->addr;
	struct sockaddr_storage ss;
	int err;

	memset(key, 0, sizeof(*key));
	if (!text[i])
		return -EINVAL;
	err = kofi_ip_parse(s->net, text[i], &ss);
	return err ?: kofi_ip_peer(&ss, sizeof(ss), key);
}

static bool kofi_av_in6_add(struct in6_addr *addr, u64 n)
{
	u64 low = be64_to_cpup((__be64 *)&addr->s6_addr[8]);

	*(__be64 *)&addr->s6_addr[8] = cpu_to_be64(low + n);
	return low + n >= low;
}

/*
 * ADDR: the first of consecutive hosts, and on each of them the first of
 * SERVICES ports. kofi_av_check_range() has checked the last address.
 */
static int kofi_av_get_range(const struct kofi_av_source *s, size_t i,
			     union kofi_ip *key)
{
	size_t host = i / s->services, service = i % s->services;
	union kofi_ip ip;

	memcpy(&ip, s->addr, sizeof(ip));
	be16_add_cpu(kofi_ip_port(&ip.sa), service);
	if (ip.sa.sa_family == AF_INET)
		be32_add_cpu(&ip.in4.sin_addr.s_addr, host);
	else
		kofi_av_in6_add(&ip.in6.sin6_addr, host);
	return kofi_ip_peer(&ip, sizeof(ip), key);
}

/* Check that so many hosts and ports exist from the first one on. */
static int kofi_av_check_range(const union kofi_ip *first, size_t hosts,
			       size_t services)
{
	struct in6_addr in6 = first->in6.sin6_addr;
	u16 port = be16_to_cpu(*kofi_ip_port((struct sockaddr *)&first->sa));

	if (!hosts || !services || services - 1 > U16_MAX - port ||
	    hosts > INT_MAX / services)
		return -EINVAL;
	if (first->sa.sa_family == AF_INET)
		return hosts - 1 > U32_MAX - be32_to_cpu(first->in4.sin_addr.s_addr) ?
		       -EINVAL : 0;
	return kofi_av_in6_add(&in6, hosts - 1) ? 0 : -EINVAL;
}

/* ---------------------------------------------------- insertion and removal */

/* Invalidate cached look-ups after a change. */
static void kofi_av_changed(struct kofi_av *av)
{
	lockdep_assert_held(&av->mutex);
	/* pairs with kofi_av_recall() and kofi_peers_dest(); posts cannot take the mutex */
	smp_store_release(&av->changes, av->changes + 1);
}

static int kofi_av_add(struct kofi_av *av, const union kofi_ip *key,
		       u64 user_id, fi_addr_t *fi_addr)
{
	struct kofi_av_addr *peer;
	int err;

	lockdep_assert_held(&av->mutex);
	rcu_read_lock();
	peer = kofi_av_find(av, key);
	rcu_read_unlock();
	if (peer) {
		if (peer->inserted == U32_MAX)
			return -EOVERFLOW;
		peer->inserted++;
		*fi_addr = peer->index;
		return 0;
	}

	peer = kmalloc(sizeof(*peer), GFP_KERNEL);
	if (!peer)
		return -ENOMEM;
	peer->addr = *key;
	peer->inserted = 1;
	/* look-ups by number find the peer when it is complete */
	err = xa_alloc(&av->peers, &peer->index, NULL, xa_limit_32b, GFP_KERNEL);
	if (err)
		goto free;
	peer->user_id = av->flags & FI_AV_USER_ID ? user_id : peer->index;
	err = rhashtable_insert_fast(&av->hash, &peer->node, kofi_av_hash);
	if (err)
		goto erase;
	xa_store(&av->peers, peer->index, peer, GFP_KERNEL);
	kofi_av_changed(av);
	*fi_addr = peer->index;
	return 0;

erase:
	xa_erase(&av->peers, peer->index);
free:
	kfree(peer);
	return err;
}

/* Remove a peer from look-ups; concurrent readers may still use it. */
static void kofi_av_drop(struct kofi_av *av, struct kofi_av_addr *peer)
{
	lockdep_assert_held(&av->mutex);
	xa_erase(&av->peers, peer->index);
	rhashtable_remove_fast(&av->hash, &peer->node, kofi_av_hash);
	kofi_av_changed(av);
}

/* Test whether an address is in the vector. */
static bool kofi_av_has(struct kofi_av *av, const union kofi_ip *addr)
{
	bool has;

	rcu_read_lock();
	has = kofi_av_find(av, addr);
	rcu_read_unlock();
	return has;
}

/*
 * Notify an endpoint of a removed address, and of the addresses of its receive contexts,
 * except addresses that a remaining peer or its contexts have, too.
 */
static void kofi_av_tell(struct kofi_av *av, struct kofi_ep *ep,
			 const struct kofi_av_addr *peer)
{
	const int n = kofi_av_contexts(av);
	union kofi_ip addr = peer->addr;
	int i, first, port = be16_to_cpu(*kofi_ip_port(&addr.sa));
	int stays = -n;	/* nearest one below, as a distance from PEER's */

	first = max(1 - n, 1 - port);
	for (i = first; i < n && port + i <= U16_MAX; i++) {
		*kofi_ip_port(&addr.sa) = cpu_to_be16(port + i);
		if (kofi_av_has(av, &addr))
			stays = i;
		else if (!i || (i > 0 && i - stays >= n))
			ep->ops->peer_removed(&ep->ep, &addr.sa);
		cond_resched();
	}
}

/* A list of dropped addresses, linked by kofi_av_addr.removed. */
static void kofi_av_removed(struct kofi_av *av, struct kofi_av_addr *list)
{
	struct kofi_av_addr *peer;
	struct kofi_ep *ep;

	lockdep_assert_held(&av->mutex);
	if (!list)
		return;
	/* no post uses the address from here on */
	synchronize_rcu();
	while ((peer = list)) {
		list = peer->removed;
		list_for_each_entry(ep, &av->eps, av_node)
			if (ep->ops->peer_removed)
				kofi_av_tell(av, ep, peer);
		kfree(peer);
	}
}

/* Events of an accepted insertion, the only report of its result */
static void kofi_av_event(struct kofi_av *av, void *context, u64 data, int err)
{
	const struct kofi_event ev = {
		.fid = &av->av.fid, .context = context,
		.event = FI_AV_COMPLETE, .data_val = data, .err = err,
	};

	kofi_eq_report(av->eq, &ev, GFP_KERNEL | __GFP_NOFAIL);
}

/* Notify endpoints of new addresses, since messages from them may wait. */
static void kofi_av_added(struct kofi_av *av)
{
	struct kofi_ep *ep;

	lockdep_assert_held(&av->mutex);
	/*
	 * The addresses, before the check for unknown senders: a receiver marks its sender as
	 * unknown, and then looks it up again. It runs in softirq context, without the mutex.
	 */
	smp_mb();
	list_for_each_entry(ep, &av->eps, av_node)
		if (ep->ops->peers_added)
			ep->ops->peers_added(&ep->ep);
}

/* Returns the number of inserted addresses. */
static int kofi_av_insert_all(struct kofi_av *av,
			      const struct kofi_av_source *s, size_t count,
			      fi_addr_t *fi_addr, u64 flags, void *context)
{
	bool user_id = (av->flags | flags) & FI_AV_USER_ID;
	int *errs = flags & FI_SYNC_ERR ? context : NULL;
	unsigned long changes;
	unsigned int noio;
	size_t i, done = 0;

	mutex_lock(&av->mutex);
	changes = av->changes;
	/* closing an endpoint takes the mutex, too, perhaps for writeback */
	noio = memalloc_noio_save();
	for (i = 0; i < count; i++) {
		fi_addr_t got = FI_ADDR_NOTAVAIL;
		union kofi_ip key;
		int err;

		err = s->get(s, i, &key);
		if (!err && !kofi_av_family_allowed(s->format,
						    key.sa.sa_family))
			err = -EINVAL;
		if (!err)
			err = kofi_av_add(av, &key, user_id ? fi_addr[i] : 0,
					  &got);
		done += !err;
		if (fi_addr)
			fi_addr[i] = got;
		if (errs)
			errs[i] = -err;
		if (err && av->flags & FI_EVENT)
			kofi_av_event(av, context, i, -err);
		cond_resched();
	}
	if (av->changes != changes)
		kofi_av_added(av);
	memalloc_noio_restore(noio);
	mutex_unlock(&av->mutex);
	return done;
}

/**
 * kofi_av_insert - insert addresses from any source
 * @av: the vector
 * @s: source of the addresses
 * @count: number of addresses
 * @fi_addr: see fi_av_insert()
 * @flags: see fi_av_insert()
 * @context: see fi_av_insert()
 */
static int kofi_av_insert(struct kofi_av *av, const struct kofi_av_source *s,
			  size_t count, fi_addr_t *fi_addr, u64 flags,
			  void *context)
{
	size_t done;

	if (flags & ~(FI_MORE | FI_SYNC_ERR | FI_AV_USER_ID))
		return -FI_EBADFLAGS;
	if (flags & FI_AV_USER_ID && !(av->flags & FI_AV_USER_ID))
		return -FI_EBADFLAGS;
	if (count > INT_MAX || (!fi_addr && count &&
				(!av->table || av->flags & FI_AV_USER_ID)))
		return -EINVAL;
	if (flags & FI_SYNC_ERR && (av->flags & FI_EVENT || !context))
		return -EINVAL;
	if (av->flags & FI_EVENT && !av->eq)
		return -FI_ENOEQ;

	done = kofi_av_insert_all(av, s, count, fi_addr, flags, context);
	if (!(av->flags & FI_EVENT))
		return done;
	kofi_av_event(av, context, done, 0);
	return 0;
}

/**
 * fi_av_insert - insert addresses
 * @av: an address vector
 * @addr: @count addresses in the addr_format of the domain, one after the other;
 *	if the format permits several families, all have the family of the first. With
 *	FI_ADDR_STR an array of @count pointers to text.
 * @count: number of addresses
 * @fi_addr: array of @count numbers, %FI_ADDR_NOTAVAIL for addresses
 *	that failed. NULL if the consumer counts itself (FI_AV_TABLE). With
 *	FI_AV_USER_ID it contains the ids at the call.
 * @flags: FI_MORE, which has no effect; FI_SYNC_ERR; FI_AV_USER_ID, for a
 *	vector that was opened with it
 * @context: returned with the events of a vector opened with FI_EVENT. With
 *	FI_SYNC_ERR an array of @count ints, set to 0 or the error's
 *	positive number.
 *
 * fi_av(3). Inserting an address again returns its number and keeps its id;
 * it must be removed as often as it has been inserted. An address
 * without host or port fails with EADDRNOTAVAIL, an address of another
 * format with EINVAL, and each may fail with ENOMEM. An address can be used
 * when the call has returned, also in a vector opened with FI_EVENT. The event queue of
 * such a vector then has an error entry for each failed address, with its index in data.
 * FI_AV_COMPLETE follows, with the number of inserted addresses in data.
 *
 * Context: process, may sleep. Posts and receivers run concurrently.
 * Return: number of inserted addresses, with FI_EVENT 0; -FI_EBADFLAGS;
 * -FI_ENOEQ if a vector with FI_EVENT has no queue; -EINVAL for NULL arguments,
 * a first address of no known family, or FI_SYNC_ERR together with FI_EVENT.
 */
int fi_av_insert(struct fid_av *av, const void *addr, size_t count,
		 fi_addr_t *fi_addr, u64 flags, void *context)
{
	struct kofi_av *kav = kofi_av(av);
	struct kofi_av_source s = { .addr = addr };

	might_sleep();
	if (!kofi_av_valid(av) || (!addr && count))
		return -EINVAL;
	s.format = kav->domain->addr_format;
	s.net = kav->domain->fabric->net;
	if (s.format == FI_ADDR_STR) {
		s.get = kofi_av_get_text;
	} else {
		s.get = kofi_av_get_array;
		s.size = count ? kofi_ip_len(addr) : 0;
		if (count && !s.size)
			return -EINVAL;
	}
	return kofi_av_insert(kav, &s, count, fi_addr, flags, context);
}
EXPORT_SYMBOL_GPL(fi_av_insert);

/**
 * fi_av_insertsym - insert the addresses of consecutive hosts
 * @av: an address vector
 * @node: numeric address of the first host; each following host is one higher
 * @nodecnt: number of hosts
 * @service: port number of the first endpoint on each host; each following endpoint
 *	is one higher
 * @svccnt: number of endpoints on each host
 * @fi_addr: as in fi_av_insert(), of @nodecnt times @svccnt; all endpoints of the
 *	first host come first
 * @flags: as in fi_av_insert()
 * @context: as in fi_av_insert()
 *
 * fi_av(3). Names of hosts are not resolved.
 *
 * Context: process, may sleep.
 * Return: as fi_av_insert(); -EINVAL also for a @service that is no port number,
 * or more hosts or ports than exist; -ENODATA if @node is no numeric address,
 * or of a family that the domain does not have.
 */
int fi_av_insertsym(struct fid_av *av, const char *node, size_t nodecnt,
		    const char *service, size_t svccnt, fi_addr_t *fi_addr,
		    u64 flags, void *context)
{
	struct kofi_av *kav = kofi_av(av);
	struct kofi_av_source s = { .get = kofi_av_get_range };
	struct sockaddr_storage ss;
	union kofi_ip first = {};
	int err;

	might_sleep();
	if (!kofi_av_valid(av) || !node || !service)
		return -EINVAL;
	s.net = kav->domain->fabric->net;
	s.format = kav->domain->addr_format;
	err = kofi_ip_resolve(s.net, s.format, node, service, &ss);
	if (err)
		return err;
	memcpy(&first, &ss, kofi_ip_len((struct sockaddr *)&ss));
	err = kofi_av_check_range(&first, nodecnt, svccnt);
	if (err)
		return err;
	s.addr = &first;
	s.services = svccnt;
	return kofi_av_insert(kav, &s, nodecnt * svccnt, fi_addr, flags,
			      context);
}
EXPORT_SYMBOL_GPL(fi_av_insertsym);

/**
 * fi_av_insertsvc - insert the address of a host and a service
 * @av: an address vector
 * @node: numeric address of the host
 * @service: port number
 * @fi_addr: as in fi_av_insert()
 * @flags: as in fi_av_insert()
 * @context: as in fi_av_insert()
 *
 * fi_av(3). Names of hosts are not resolved.
 *
 * Context: process, may sleep.
 * Return: as fi_av_insertsym().
 */
int fi_av_insertsvc(struct fid_av *av, const char *node, const char *service,
		    fi_addr_t *fi_addr, u64 flags, void *context)
{
	return fi_av_insertsym(av, node, 1, service, 1, fi_addr, flags,
			       context);
}
EXPORT_SYMBOL_GPL(fi_av_insertsvc);

/**
 * fi_av_remove - remove addresses
 * @av: an address vector
 * @fi_addr: numbers of the addresses
 * @count: number of addresses
 * @flags: 0
 *
 * fi_av(3). Outstanding operations of the vector's endpoints to a removed address
 * complete with FI_ECANCELED, and a connection to it is closed. A
 * number may be reused for another address at once.
 *
 * Context: process, may sleep.
 * Return: 0; -FI_EBADFLAGS; -EINVAL for NULL arguments, or if one of the numbers
 * has no address: then nothing has been removed.
 */
int fi_av_remove(struct fid_av *av, const fi_addr_t *fi_addr, size_t count,
		 u64 flags)
{
	struct kofi_av_addr *peer, *removed = NULL;
	struct kofi_av *kav = kofi_av(av);
	size_t i;
	int err;

	might_sleep();
	if (!kofi_av_valid(av) || (!fi_addr && count))
		return -EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	mutex_lock(&kav->mutex);
	for (i = 0; i < count; i++) {
		peer = kofi_av_load(kav, fi_addr[i]);
		if (!peer || !peer->inserted)
			break;
		peer->inserted--;
	}
	err = i < count ? -EINVAL : 0;
	while (i--) {
		peer = kofi_av_load(kav, fi_addr[i]);
		if (err) {
			peer->inserted++;
		} else if (peer && !peer->inserted) {
			kofi_av_drop(kav, peer);
			peer->removed = removed;
			removed = peer;
		}
	}
	kofi_av_removed(kav, removed);
	mutex_unlock(&kav->mutex);
	return err;
}
EXPORT_SYMBOL_GPL(fi_av_remove);

/**
 * fi_av_set_user_id - change the id of an address
 * @av: an address vector opened with FI_AV_USER_ID
 * @fi_addr: number of the address
 * @user_id: source in completions from now on
 * @flags: 0
 *
 * fi_av(3).
 *
 * Context: process, may sleep.
 * Return: 0; -FI_EBADFLAGS; -EINVAL, also if the vector has no ids or @fi_addr
 * has no address.
 */
int fi_av_set_user_id(struct fid_av *av, fi_addr_t fi_addr, fi_addr_t user_id,
		      u64 flags)
{
	struct kofi_av *kav = kofi_av(av);
	struct kofi_av_addr *peer;

	might_sleep();
	if (!kofi_av_valid(av) || !(kav->flags & FI_AV_USER_ID))
		return -EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	mutex_lock(&kav->mutex);
	peer = kofi_av_load(kav, fi_addr);
	if (peer) {
		WRITE_ONCE(peer->user_id, user_id);
		kofi_av_changed(kav);
	}
	mutex_unlock(&kav->mutex);
	return peer ? 0 : -EINVAL;
}
EXPORT_SYMBOL_GPL(fi_av_set_user_id);

/* -------------------------------------------------------------- the vector */

/* Peers of an endpoint for datagrams have no contexts. */
static bool kofi_av_suits(const struct kofi_av *av, const struct kofi_ep *ep)
{
	switch (ep->info->ep_attr->type) {
	case FI_EP_RDM:
		return true;
	case FI_EP_DGRAM:
		return !av->ctx_bits;
	default:
		return false;
	}
}

/**
 * kofi_av_attach - bind a vector to an endpoint
 * @ep: the endpoint, without a vector
 * @bfid: the vector
 * @flags: must be 0
 *
 * Context: process, may sleep.
 * Return: 0; -FI_EBADFLAGS; -FI_EDOMAIN; -EBUSY if the endpoint has a vector; -EINVAL
 * for a connected type of endpoint, for a datagram endpoint and a vector
 * with rx_ctx_bits, or a vector that is being closed.
 */
int kofi_av_attach(struct kofi_ep *ep, struct fi_fid *bfid, u64 flags)
{
	struct kofi_av *av = container_of(bfid, struct kofi_av, av.fid);

	if (flags)
		return -FI_EBADFLAGS;
	if (av->domain != ep->domain)
		return -FI_EDOMAIN;
	if (ep->av)
		return -EBUSY;
	if (!kofi_av_suits(av, ep) || !kofi_obj_get(&av->obj))
		return -EINVAL;
	ep->av = av;
	mutex_lock(&av->mutex);
	list_add_tail(&ep->av_node, &av->eps);
	mutex_unlock(&av->mutex);
	return 0;
}

/**
 * kofi_av_detach - undo kofi_av_attach()
 * @ep: the endpoint
 *
 * No notification of a removal follows the return.
 *
 * Context: process, may sleep.
 */
void kofi_av_detach(struct kofi_ep *ep)
{
	struct kofi_av *av = ep->av;

	mutex_lock(&av->mutex);
	list_del(&ep->av_node);
	mutex_unlock(&av->mutex);
	ep->av = NULL;
	kofi_obj_put(&av->obj);
}

/**
 * fi_av_bind - bind the event queue of an address vector
 * @av: an address vector opened with FI_EVENT
 * @eq: an event queue of the domain's fabric
 * @flags: must be 0
 *
 * fi_av(3). Closing the vector unbinds the queue.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for NULL arguments, another object, a queue that
 * is being closed, or a vector opened without FI_EVENT; -FI_EBADFLAGS;
 * -FI_EDOMAIN for a queue of another fabric; -EBUSY for a vector that has a queue.
 */
int fi_av_bind(struct fid_av *av, struct fi_fid *eq, u64 flags)
{
	struct kofi_av *kav = kofi_av(av);

	might_sleep();
	if (!kofi_av_valid(av) || !(kav->flags & FI_EVENT))
		return -EINVAL;
	return kofi_eq_bind(&kav->eq, kav->domain->fabric, eq, flags);
}
EXPORT_SYMBOL_GPL(fi_av_bind);

static void kofi_peer_free(void *peer, void *arg)
{
	kfree(peer);
}

static int kofi_av_close(struct fi_fid *fid)
{
	struct kofi_av *av = container_of(fid, struct kofi_av, av.fid);

	if (av->eq) {
		kofi_eq_purge(av->eq, fid);
		kofi_obj_put(&av->eq->obj);
	}
	/* there are no look-ups from here on */
	rhashtable_free_and_destroy(&av->hash, kofi_peer_free, NULL);
	xa_destroy(&av->peers);
	mutex_destroy(&av->mutex);
	kofi_obj_exit(&av->obj);
	kfree(av);
	return 0;
}

static const struct fi_ops kofi_av_fid_ops = {
	.size		= sizeof(struct fi_ops),
	.close		= kofi_av_close,
};

static void kofi_av_stats(struct kofi_obj *obj, kofi_stat_fn fn, void *arg)
{
	struct kofi_av *av = container_of(obj, struct kofi_av, obj);

	fn(arg, "addresses", atomic_read(&av->hash.nelems));
}

static const struct kofi_obj_ops kofi_av_obj_ops = {
	.stats		= kofi_av_stats,
};

static int kofi_av_check(const struct kofi_domain *domain,
			 const struct fi_av_attr *attr)
{
	if (attr->type > FI_AV_TABLE || attr->rx_ctx_bits < 0 ||
	    attr->rx_ctx_bits > KOFI_AV_CTX_BITS_MAX)
		return -EINVAL;
	if (attr->flags & ~(FI_EVENT | FI_SYMMETRIC | FI_AV_USER_ID))
		return -FI_EBADFLAGS;
	if (attr->name || attr->map_addr)
		return -ENOSYS;
	switch (domain->addr_format) {
	case FI_FORMAT_UNSPEC:
	case FI_SOCKADDR:
	case FI_SOCKADDR_IP:
	case FI_SOCKADDR_IN:
	case FI_SOCKADDR_IN6:
	case FI_ADDR_STR:
		return 0;
	default:
		return -ENOSYS;
	}
}

/**
 * fi_av_open - open an address vector
 * @domain: domain of the endpoints that will use the vector
 * @attr: type FI_AV_TABLE or FI_AV_MAP, which behave equally, but with FI_AV_MAP the
 *	consumer cannot predict the numbers; rx_ctx_bits at most 16, of which
 *	at most %KOFI_EP_CTX_MAX contexts of a peer can be named, and 0 for
 *	endpoints of type FI_EP_DGRAM; count
 *	and ep_per_node are ignored, since a vector grows with its contents; flags
 *	FI_EVENT, FI_AV_USER_ID and FI_SYMMETRIC, which has no effect; name and
 *	map_addr NULL. NULL is FI_AV_TABLE.
 * @av: receives the vector
 * @context: stored in fid.context
 *
 * fi_av(3). A vector cannot be shared by name: pass the pointer. It can have some
 * 2^32 addresses, and takes memory only for existing addresses.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL; -FI_EBADFLAGS; -ENOSYS for vectors with a name, or if the
 * addresses of @domain are not IP; -EBUSY if @domain is being closed; -ENOMEM.
 */
int fi_av_open(struct fid_domain *domain, const struct fi_av_attr *attr,
	       struct fid_av **av, void *context)
{
	static const struct fi_av_attr none;
	const struct fi_av_attr *a = attr ?: &none;
	struct kofi_domain *kdomain;
	struct kofi_av *kav;
	int ret;

	might_sleep();
	if (kofi_fid_class(&domain->fid) != FI_CLASS_DOMAIN || !av)
		return -EINVAL;
	kdomain = container_of(domain, struct kofi_domain, domain);
	ret = kofi_av_check(kdomain, a);
	if (ret)
		return ret;

	kav = kzalloc(sizeof(*kav), GFP_KERNEL);
	if (!kav)
		return -ENOMEM;
	kav->domain = kdomain;
	kav->table = a->type != FI_AV_MAP;
	kav->flags = a->flags;
	kav->ctx_bits = a->rx_ctx_bits;
	kav->changes = 1;
	mutex_init(&kav->mutex);
	INIT_LIST_HEAD(&kav->eps);
	xa_init_flags(&kav->peers, XA_FLAGS_ALLOC);
	ret = rhashtable_init(&kav->hash, &kofi_av_hash);
	if (ret)
		goto free;
	ret = kofi_obj_init(&kav->obj, &kav->av.fid, FI_CLASS_AV,
			    &kofi_av_fid_ops, &kdomain->obj,
			    kdomain->obj.prov, context);
	if (ret)
		goto destroy_hash;
	kav->obj.ops = &kofi_av_obj_ops;
	kofi_obj_publish(&kav->obj);
	*av = &kav->av;
	return 0;

destroy_hash:
	rhashtable_destroy(&kav->hash);
free:
	kfree(kav);
	return ret;
}
EXPORT_SYMBOL_GPL(fi_av_open);

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * IP addresses, and the interfaces of a network namespace that have them.
 *
 * Discovery of providers over IP uses this: the addresses, the name of an address's
 * network, and the address that leads to a peer.
 */
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/if_inet6.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/l3mdev.h>
#include <net/route.h>

#include <linux/kofi/backport.h>
#include <linux/kofi/lib.h>

/* -------------------------------------------------------------- addresses */

/**
 * kofi_ip_len - length of an address
 * @addr: the address
 *
 * Context: any.
 * Return: in bytes, 0 if it is neither IPv4 nor IPv6.
 */
size_t kofi_ip_len(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}
EXPORT_SYMBOL_GPL(kofi_ip_len);

/**
 * kofi_ip_check - check that an address is an IP address
 * @addr: address from a consumer
 * @len: bytes of @addr
 *
 * Context: any.
 * Return: 0 or -EINVAL.
 */
int kofi_ip_check(const void *addr, size_t len)
{
	const struct sockaddr *sa = addr;

	if (len < sizeof(sa->sa_family) || !kofi_ip_len(sa) ||
	    len < kofi_ip_len(sa))
		return -EINVAL;
	return 0;
}
EXPORT_SYMBOL_GPL(kofi_ip_check);

/**
 * kofi_ip_copy - hand an address to the consumer
 * @from: the address
 * @to: the consumer's buffer
 * @len: in: bytes of @to; out: bytes of the address
 *
 * Context: any.
 * Return: 0, or -FI_ETOOSMALL with as much as fits copied.
 */
int kofi_ip_copy(const struct sockaddr *from, void *to, size_t *len)
{
	size_t size = *len;

	*len = kofi_ip_len(from);
	memcpy(to, from, min(size, *len));
	return size < *len ? -FI_ETOOSMALL : 0;
}
EXPORT_SYMBOL_GPL(kofi_ip_copy);

/**
 * kofi_ip_any - test for the wildcard address
 * @addr: an IP address
 *
 * Context: any.
 * Return: true if @addr is the wildcard address.
 */
bool kofi_ip_any(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET6)
		return ipv6_addr_any(&((struct sockaddr_in6 *)addr)->sin6_addr);
	return ((struct sockaddr_in *)addr)->sin_addr.s_addr ==
		htonl(INADDR_ANY);
}
EXPORT_SYMBOL_GPL(kofi_ip_any);

/**
 * kofi_ip_same - compare the hosts of two addresses, without their ports
 * @a: an IP address
 * @b: another one
 *
 * A scope that is left out is any.
 *
 * Context: any.
 * Return: true if both are addresses of one host.
 */
bool kofi_ip_same(const struct sockaddr *a, const struct sockaddr *b)
{
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)b;

	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((struct sockaddr_in *)b)->sin_addr.s_addr;
	return ipv6_addr_equal(&a6->sin6_addr, &b6->sin6_addr) &&
	       (!a6->sin6_scope_id || !b6->sin6_scope_id ||
		a6->sin6_scope_id == b6->sin6_scope_id);
}
EXPORT_SYMBOL_GPL(kofi_ip_same);

/* ------------------------------------------------------------- interfaces */

/* The next entry of a list, or NULL if it is full; counted even then. */
static struct kofi_netif *kofi_netif_next(struct kofi_netif_list *l,
					  const struct net_device *dev)
{
	struct kofi_netif *i = l->n < l->max ? &l->ifs[l->n] : NULL;

	l->n++;
	if (!i)
		return NULL;
	memset(i, 0, sizeof(*i));
	strscpy(i->dev, dev->name);
	i->ifindex = dev->ifindex;
	i->loopback = dev->flags & IFF_LOOPBACK;
	return i;
}

static void kofi_netif_add4(struct kofi_netif_list *l, struct net_device *dev)
{
	struct in_device *in_dev = __in_dev_get_rcu(dev);
	const struct in_ifaddr *ifa;

	if (!in_dev)
		return;
	in_dev_for_each_ifa_rcu(ifa, in_dev) {
		struct kofi_netif *i = kofi_netif_next(l, dev);

		if (!i)
			continue;
		i->addr.in4.sin_family = AF_INET;
		i->addr.in4.sin_addr.s_addr = ifa->ifa_local;
		i->prefix = i->loopback ? 32 : ifa->ifa_prefixlen;
	}
}

static void kofi_netif_add6(struct kofi_netif_list *l, struct net_device *dev)
{
#if IS_ENABLED(CONFIG_IPV6)
	struct inet6_dev *in6_dev = __in6_dev_get(dev);
	const struct inet6_ifaddr *ifa;

	if (!in6_dev)
		return;
	read_lock_bh(&in6_dev->lock);
	list_for_each_entry(ifa, &in6_dev->addr_list, if_list) {
		struct kofi_netif *i;

		if (ifa->flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED))
			continue;
		i = kofi_netif_next(l, dev);
		if (!i)
			continue;
		i->addr.in6.sin6_family = AF_INET6;
		i->addr.in6.sin6_addr = ifa->addr;
		if (ipv6_addr_type(&ifa->addr) & IPV6_ADDR_LINKLOCAL)
			i->addr.in6.sin6_scope_id = dev->ifindex;
		i->prefix = i->loopback ? 128 : ifa->prefix_len;
	}
	read_unlock_bh(&in6_dev->lock);
#endif
}

static void kofi_netif_walk(struct net *net, struct kofi_netif_list *l,
			    bool loopback)
{
	struct net_device *dev;

	for_each_netdev_rcu(net, dev) {
		if (!(dev->flags & IFF_UP) ||
		    !!(dev->flags & IFF_LOOPBACK) != loopback)
			continue;
		kofi_netif_add4(l, dev);
		kofi_netif_add6(l, dev);
	}
}

/**
 * kofi_netif_collect - list the addresses of a network namespace
 * @net: the namespace
 * @loopback: include addresses of the loopback device, which come last
 * @l: receives the list; the caller frees @ifs with kvfree()
 *
 * Addresses of interfaces that are down, and IPv6 addresses that may not be
 * used, are left out.
 *
 * Context: process, may sleep.
 * Return: 0, or -ENOMEM with nothing to free.
 */
int kofi_netif_collect(struct net *net, bool loopback,
		       struct kofi_netif_list *l)
{
	l->ifs = NULL;
	l->n = 16;
	do {
		kvfree(l->ifs);
		l->max = l->n + 16;
		l->ifs = kvmalloc_array(l->max, sizeof(*l->ifs), GFP_KERNEL);
		if (!l->ifs)
			return -ENOMEM;
		l->n = 0;
		rcu_read_lock();
		kofi_netif_walk(net, l, false);
		if (loopback)
			kofi_netif_walk(net, l, true);
		rcu_read_unlock();
	} while (l->n > l->max);
	return 0;
}
EXPORT_SYMBOL_GPL(kofi_netif_collect);

/**
 * kofi_netif_network - name of the network an address is in
 * @i: the address
 *
 * Context: process, may sleep.
 * Return: for kfree(), or NULL without memory.
 */
char *kofi_netif_network(const struct kofi_netif *i)
{
	struct in6_addr net6;
	__be32 net4;

	if (i->addr.sa.sa_family == AF_INET) {
		net4 = i->addr.in4.sin_addr.s_addr & inet_make_mask(i->prefix);
		return kasprintf(GFP_KERNEL, "%pI4/%u", &net4, i->prefix);
	}
	ipv6_addr_prefix(&net6, &i->addr.in6.sin6_addr, i->prefix);
	/* every link has this network, and none leads to another */
	if (i->addr.in6.sin6_scope_id)
		return kasprintf(GFP_KERNEL, "%pI6c%%%s/%u", &net6, i->dev,
				 i->prefix);
	return kasprintf(GFP_KERNEL, "%pI6c/%u", &net6, i->prefix);
}
EXPORT_SYMBOL_GPL(kofi_netif_network);

/**
 * kofi_netif_find - find the interface that has an address
 * @l: the addresses of a network namespace
 * @addr: the address; NULL for any, if there is @dev
 * @dev: name of the interface, to choose among several with the address; or NULL
 *
 * Context: any.
 * Return: the interface's index, or 0 for none.
 */
int kofi_netif_find(const struct kofi_netif_list *l, const struct sockaddr *addr,
		    const char *dev)
{
	int found = 0;
	size_t i;

	for (i = 0; i < l->n; i++) {
		const struct kofi_netif *one = &l->ifs[i];

		if (addr && !kofi_ip_same(addr, &one->addr.sa))
			continue;
		if (dev && !strcmp(dev, one->dev))
			return one->ifindex;
		if (addr && !found)
			found = one->ifindex;
	}
	return found;
}
EXPORT_SYMBOL_GPL(kofi_netif_find);

/* Own addresses in a VRF lead to the VRF's device. */
static void kofi_netif_leads(struct kofi_netif *out,
			     const struct dst_entry *dst)
{
	out->ifindex = dst->dev->ifindex;
	out->loopback = dst->dev->flags & IFF_LOOPBACK ||
			netif_is_l3_master(dst->dev);
}

/**
 * kofi_netif_route - find the address and the interface that lead to a peer
 * @net: network namespace
 * @dest: the peer's address, IPv4 or IPv6
 * @proto: IPPROTO_TCP, or 0
 * @out: in: @out->addr is the address to come from, or the wildcard address;
 *	@out->ifindex is an interface, to use the table of its VRF, or 0;
 *	out: the address the system would choose, the interface's index, and
 *	whether that is the loopback device's
 *
 * Context: process, may sleep.
 * Return: 0, or a negative error if there is no route; -EAFNOSUPPORT for IPv6
 * where the system has none.
 */
int kofi_netif_route(struct net *net, const struct sockaddr *dest, u8 proto,
		     struct kofi_netif *out)
{
	int vrf = l3mdev_master_ifindex_by_index(net, out->ifindex);
	union kofi_ip *src = &out->addr;

	if (dest->sa_family == AF_INET) {
		struct flowi4 fl4 = {
			.daddr = ((struct sockaddr_in *)dest)->sin_addr.s_addr,
			.saddr = src->in4.sin_addr.s_addr,
			.flowi4_oif = vrf,
			.flowi4_proto = proto,
		};
		struct rtable *rt = ip_route_output_key(net, &fl4);

		if (IS_ERR(rt))
			return PTR_ERR(rt);
		src->in4.sin_family = AF_INET;
		src->in4.sin_addr.s_addr = fl4.saddr;
		kofi_netif_leads(out, &rt->dst);
		ip_rt_put(rt);
	} else {
		const struct sockaddr_in6 *to =
			(const struct sockaddr_in6 *)dest;
		struct flowi6 fl6 = {
			.daddr = to->sin6_addr,
			.saddr = src->in6.sin6_addr,
			.flowi6_oif = to->sin6_scope_id ? :
				      src->in6.sin6_scope_id ? : vrf,
			.flowi6_proto = proto,
		};
		struct dst_entry *dst;

		/* a constant where the function that follows does not exist */
		if (!ipv6_mod_enabled())
			return -EAFNOSUPPORT;
		dst = ip6_dst_lookup_flow(net, NULL, &fl6, NULL);
		if (IS_ERR(dst))
			return PTR_ERR(dst);
		src->in6.sin6_family = AF_INET6;
		src->in6.sin6_addr = fl6.saddr;
		src->in6.sin6_scope_id = to->sin6_scope_id ? :
					 src->in6.sin6_scope_id;
		kofi_netif_leads(out, dst);
		dst_release(dst);
	}
	return 0;
}
EXPORT_SYMBOL_GPL(kofi_netif_route);

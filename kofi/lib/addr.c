// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Addresses: whether one is what its format says, and which two an endpoint
 * gets from the arguments of fi_getinfo(3).
 *
 * Names are never resolved: a node is a numeric address, a service a port
 * number. All providers whose addresses are IP read them here, so that they
 * all answer the same arguments in the same way.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/inet.h>
#include <linux/kernel.h>
#include <linux/socket.h>
#include <linux/string.h>
#include <rdma/ib.h>

#include <linux/kofi/lib.h>

#include "../internal.h"

/**
 * kofi_info_check_addr - are an address and its length consistent
 * @format: FI_SOCKADDR_IN, ...
 * @addr: the address, or NULL
 * @len: its size in bytes
 *
 * An address is as long as its family needs, and of a family the format
 * allows. Nothing is known here about formats that are no sockaddr.
 *
 * Context: any.
 * Return: 0 or -EINVAL.
 */
int kofi_info_check_addr(u32 format, const void *addr, size_t len)
{
	const struct sockaddr *sa = addr;
	size_t need;

	if (!addr != !len)
		return -EINVAL;
	if (!addr)
		return 0;

	switch (format) {
	case FI_FORMAT_UNSPEC:
	case FI_SOCKADDR:
	case FI_SOCKADDR_IP:
	case FI_SOCKADDR_IN:
	case FI_SOCKADDR_IN6:
	case FI_SOCKADDR_IB:
		break;
	default:
		return 0;
	}

	if (len < offsetofend(struct sockaddr, sa_family) ||
	    len > sizeof(struct sockaddr_storage))
		return -EINVAL;
	switch (sa->sa_family) {
	case AF_INET:
		need = sizeof(struct sockaddr_in);
		break;
	case AF_INET6:
		need = sizeof(struct sockaddr_in6);
		break;
	case AF_IB:
		need = sizeof(struct sockaddr_ib);
		break;
	default:
		return -EINVAL;
	}
	if (len < need ||
	    (format == FI_SOCKADDR_IN && sa->sa_family != AF_INET) ||
	    (format == FI_SOCKADDR_IN6 && sa->sa_family != AF_INET6) ||
	    (format == FI_SOCKADDR_IB && sa->sa_family != AF_IB) ||
	    (format == FI_SOCKADDR_IP && sa->sa_family == AF_IB))
		return -EINVAL;
	return 0;
}

static int kofi_info_family(u32 format)
{
	switch (format) {
	case FI_SOCKADDR_IN:
		return AF_INET;
	case FI_SOCKADDR_IN6:
		return AF_INET6;
	case FI_FORMAT_UNSPEC:
	case FI_SOCKADDR:
	case FI_SOCKADDR_IP:
		return AF_UNSPEC;
	default:
		return -ENODATA;
	}
}

static void kofi_info_set_port(struct sockaddr_storage *ss, u16 port)
{
	if (ss->ss_family == AF_INET6)
		((struct sockaddr_in6 *)ss)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)ss)->sin_port = htons(port);
}

/* Without a node: any local address, or the loopback address as the peer */
static void kofi_info_no_node(int family, bool source,
			      struct sockaddr_storage *ss)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *sin = (struct sockaddr_in *)ss;

	ss->ss_family = family ?: AF_INET;
	if (family == AF_INET6)
		sin6->sin6_addr = source ? in6addr_any : in6addr_loopback;
	else
		sin->sin_addr.s_addr = htonl(source ? INADDR_ANY :
					     INADDR_LOOPBACK);
}

static int kofi_info_copy_addr(struct sockaddr_storage *to, const void *addr,
			       size_t len)
{
	const struct sockaddr *sa = addr;

	if (!addr)
		return 0;
	if (sa->sa_family != AF_INET && sa->sa_family != AF_INET6)
		return -ENODATA;
	memcpy(to, addr, min(len, sizeof(*to)));
	return 0;
}

/**
 * kofi_info_resolve - IP addresses of both sides
 * @node: as given to fi_getinfo()
 * @service: as given to fi_getinfo()
 * @flags: as given to fi_getinfo()
 * @hints: as given to kofi_provider.getinfo
 * @src: where the local address goes; its family is AF_UNSPEC if none was given
 * @dest: where the peer's goes; the same
 *
 * With FI_SOURCE, @node and @service are the local side, and a missing @node
 * is the wildcard address. Without, they are the peer, and a missing @node is
 * the loopback address. The other side, or both if there is neither @node nor
 * @service, comes from the hints. See fi_getinfo(3).
 *
 * Context: process, may sleep.
 * Return: 0; -ENODATA if @node is no numeric address, or of another family
 * than the hints ask for, or the hints' addresses are not IP; -EINVAL if
 * @service is no port number, or the two sides are of different families.
 */
int kofi_info_resolve(const char *node, const char *service, u64 flags,
		      const struct fi_info *hints,
		      struct sockaddr_storage *src,
		      struct sockaddr_storage *dest)
{
	bool source = flags & FI_SOURCE;
	struct sockaddr_storage *given = source ? src : dest;
	int family = kofi_info_family(hints->addr_format);
	u16 port = 0;
	int ret;

	memset(src, 0, sizeof(*src));
	memset(dest, 0, sizeof(*dest));
	if (family < 0)
		return family;
	if (service && kstrtou16(service, 10, &port))
		return -EINVAL;

	if (node) {
		if (inet_pton_with_scope(hints->fabric_attr->net, family, node,
					 NULL, given))
			return -ENODATA;
	} else if (service) {
		kofi_info_no_node(family, source, given);
	}
	if (node || service)
		kofi_info_set_port(given, port);
	if (given != src || !(node || service)) {
		ret = kofi_info_copy_addr(src, hints->src_addr,
					  hints->src_addrlen);
		if (ret)
			return ret;
	}
	if (given != dest || !(node || service)) {
		ret = kofi_info_copy_addr(dest, hints->dest_addr,
					  hints->dest_addrlen);
		if (ret)
			return ret;
	}
	if (src->ss_family && dest->ss_family &&
	    src->ss_family != dest->ss_family)
		return -EINVAL;
	return 0;
}
EXPORT_SYMBOL_GPL(kofi_info_resolve);

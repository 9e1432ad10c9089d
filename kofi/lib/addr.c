// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Addresses: text in both directions, and the two addresses of an endpoint that
 * fi_getinfo(3) was asked for.
 *
 * Names are never resolved: a node is a numeric address, a service a port
 * number. All providers with IP addresses parse them here, so that they
 * all answer the same arguments in the same way.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/inet.h>
#include <linux/kernel.h>
#include <linux/socket.h>
#include <linux/string.h>
#include <net/ipv6.h>

#include <linux/kofi/lib.h>

#include "../internal.h"

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

/**
 * kofi_ip_resolve - parse the address of a node and a service
 * @net: network namespace, for scopes by the name of an interface
 * @format: permitted families: FI_SOCKADDR_IN, ...
 * @node: numeric address; in IPv6 perhaps with %interface
 * @service: port number
 * @addr: receives the address
 *
 * Names are not resolved.
 *
 * Context: process.
 * Return: 0; -ENODATA if @node is no numeric address, or of another family than
 * @format has; -EINVAL if @service is no port number.
 */
int kofi_ip_resolve(struct net *net, u32 format, const char *node,
		    const char *service, struct sockaddr_storage *addr)
{
	int family = format == FI_ADDR_STR ? AF_UNSPEC :
		     kofi_info_family(format);
	u16 port;

	if (family < 0)
		return family;
	if (kstrtou16(service, 10, &port))
		return -EINVAL;
	/* it does not set an absent scope or padding, and both are passed on */
	memset(addr, 0, sizeof(*addr));
	if (inet_pton_with_scope(net, family, node, service, addr))
		return -ENODATA;
	return 0;
}

static const struct {
	const char	*scheme;
	int		family;
} kofi_ip_schemes[] = {
	{ "fi_sockaddr_in://", AF_INET },
	{ "fi_sockaddr_in6://", AF_INET6 },
};

/**
 * kofi_ip_parse - read an address in the form of FI_ADDR_STR
 * @net: network namespace, for scopes by the name of an interface
 * @text: fi_sockaddr_in://10.0.0.1:7471 or fi_sockaddr_in6://[::1]:7471; a
 *	link-local address with %interface or %number behind it
 * @addr: where the address goes
 *
 * Context: process.
 * Return: 0 or -EINVAL.
 */
int kofi_ip_parse(struct net *net, const char *text,
		  struct sockaddr_storage *addr)
{
	char node[KOFI_IP_STR_MAX], *port, *host = node;
	size_t i, n;

	for (i = 0; i < ARRAY_SIZE(kofi_ip_schemes); i++) {
		n = str_has_prefix(text, kofi_ip_schemes[i].scheme);
		if (n)
			break;
	}
	if (!n || strscpy(node, text + n, sizeof(node)) < 0)
		return -EINVAL;
	port = strrchr(node, ':');
	if (!port || port == node)
		return -EINVAL;
	*port++ = '\0';
	if (kofi_ip_schemes[i].family == AF_INET6) {
		n = strlen(host);
		if (n < 2 || host[0] != '[' || host[n - 1] != ']')
			return -EINVAL;
		host[n - 1] = '\0';
		host++;
	}
	memset(addr, 0, sizeof(*addr));
	if (inet_pton_with_scope(net, kofi_ip_schemes[i].family, host, port,
				 addr))
		return -EINVAL;
	return 0;
}

/**
 * kofi_ip_print - write an address in the form of FI_ADDR_STR
 * @addr: an address
 * @buf: receives the text
 * @len: bytes of @buf; %KOFI_IP_STR_MAX are enough
 *
 * Context: any.
 * Return: bytes without the final NUL; -EINVAL if it is not IP.
 */
int kofi_ip_print(const struct sockaddr *addr, char *buf, size_t len)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;

	switch (addr->sa_family) {
	case AF_INET:
		return scnprintf(buf, len, "fi_sockaddr_in://%pISpc", addr);
	case AF_INET6:
		if (in6->sin6_scope_id)
			return scnprintf(buf, len,
					 "fi_sockaddr_in6://[%pI6c%%%u]:%u",
					 &in6->sin6_addr, in6->sin6_scope_id,
					 ntohs(in6->sin6_port));
		return scnprintf(buf, len, "fi_sockaddr_in6://%pISpc", addr);
	default:
		return -EINVAL;
	}
}

/**
 * kofi_ip_copy_text - hand an address to a consumer that has FI_ADDR_STR
 * @from: the address
 * @to: the consumer's buffer
 * @len: in: bytes of @to; out: bytes of the text with its final NUL
 *
 * Context: any.
 * Return: 0; -FI_ETOOSMALL with as much as fits copied; -EINVAL if it is not IP.
 */
int kofi_ip_copy_text(const struct sockaddr *from, void *to, size_t *len)
{
	char text[KOFI_IP_STR_MAX];
	size_t size = *len;
	int n = kofi_ip_print(from, text, sizeof(text));

	if (n < 0)
		return n;
	*len = n + 1;
	memcpy(to, text, min(size, *len));
	return size < *len ? -FI_ETOOSMALL : 0;
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

/**
 * kofi_ip_peer - bring the address of a peer into the form for comparisons
 * @from: an IP address
 * @len: bytes at @from
 * @peer: receives the address; bytes that an address does not use are 0
 *
 * The address must be of a single host, with a port.
 *
 * Context: any.
 * Return: 0; -EADDRNOTAVAIL without host or port; -EINVAL if @from is no IP
 * address.
 */
int kofi_ip_peer(const void *from, size_t len, union kofi_ip *peer)
{
	const struct sockaddr_in6 *in6 = from;
	const struct sockaddr_in *in = from;
	int err;

	memset(peer, 0, sizeof(*peer));
	err = kofi_ip_check(from, len);
	if (err)
		return err;
	if (in->sin_family == AF_INET) {
		peer->in4.sin_family = AF_INET;
		peer->in4.sin_port = in->sin_port;
		peer->in4.sin_addr = in->sin_addr;
	} else {
		peer->in6.sin6_family = AF_INET6;
		peer->in6.sin6_port = in6->sin6_port;
		peer->in6.sin6_addr = in6->sin6_addr;
		if (ipv6_addr_type(&in6->sin6_addr) & IPV6_ADDR_LINKLOCAL)
			peer->in6.sin6_scope_id = in6->sin6_scope_id;
	}
	return kofi_ip_any(&peer->sa) || !*kofi_ip_port(&peer->sa) ?
	       -EADDRNOTAVAIL : 0;
}
EXPORT_SYMBOL_GPL(kofi_ip_peer);

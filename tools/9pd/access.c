// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which addresses may connect.
 *
 * IPv4 addresses are compared in the form that IPv6 maps them to, the scope of a
 * link-local address if its entry has one.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "9pd.h"

static void map_v4(const struct in_addr *from, struct in6_addr *to)
{
	memset(to, 0, 10);
	memset(&to->s6_addr[10], 0xff, 2);
	memcpy(&to->s6_addr[12], from, sizeof(*from));
}

/**
 * peer_of - read the address and the port of a socket address
 * @from: an IPv4 or IPv6 address
 * @len: bytes of @from
 * @to: receives both, with all bits of the address significant
 *
 * Return: false for any other family.
 */
bool peer_of(const void *from, size_t len, struct peer *to)
{
	const struct sockaddr_in6 *in6 = from;
	const struct sockaddr_in *in = from;

	memset(to, 0, sizeof(*to));
	to->address.bits = 128;
	if (!from || len < sizeof(in->sin_family))
		return false;
	if (in->sin_family == AF_INET && len >= sizeof(*in)) {
		map_v4(&in->sin_addr, &to->address.addr);
		to->port = in->sin_port;
		return true;
	}
	if (in->sin_family == AF_INET6 && len >= sizeof(*in6)) {
		to->address.addr = in6->sin6_addr;
		to->address.scope = in6->sin6_scope_id;
		to->port = in6->sin6_port;
		return true;
	}
	return false;
}

/**
 * address_parse - read ADDRESS[%INTERFACE][/BITS]
 * @text: of the command line
 * @to: the result
 *
 * Return: false if it is none.
 */
bool address_parse(const char *text, struct address *to)
{
	char word[INET6_ADDRSTRLEN + IF_NAMESIZE + 1];
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	struct in_addr v4;
	unsigned long bits, most = 128;
	char *scope, *end;

	memset(to, 0, sizeof(*to));
	if (len >= sizeof(word))
		return false;
	memcpy(word, text, len);
	word[len] = '\0';
	scope = strchr(word, '%');
	if (scope) {
		*scope++ = '\0';
		to->scope = if_nametoindex(scope);
		if (!to->scope)
			return false;
	}
	if (inet_pton(AF_INET, word, &v4) == 1 && !scope) {
		map_v4(&v4, &to->addr);
		most = 32;
	} else if (inet_pton(AF_INET6, word, &to->addr) != 1) {
		return false;
	}
	bits = most;
	if (slash) {
		if (slash[1] < '0' || slash[1] > '9' ||
		    (slash[1] == '0' && slash[2]))
			return false;
		bits = strtoul(slash + 1, &end, 10);
		if (*end || bits > most)
			return false;
	}
	to->bits = 128 - most + bits;
	return true;
}

/* Compare the first BITS of two addresses. */
static bool address_within(const struct address *a, const struct address *net)
{
	unsigned int bytes = net->bits / 8, rest = net->bits % 8;
	const uint8_t *x = a->addr.s6_addr, *y = net->addr.s6_addr;

	return (!net->scope || net->scope == a->scope) &&
	       !memcmp(x, y, bytes) &&
	       (!rest || !((x[bytes] ^ y[bytes]) >> (8 - rest)));
}

bool address_equal(const struct address *a, const struct address *b)
{
	return a->scope == b->scope && !memcmp(&a->addr, &b->addr, sizeof(a->addr));
}

bool peer_equal(const struct peer *a, const struct peer *b)
{
	return a->port == b->port && address_equal(&a->address, &b->address);
}

/**
 * address_text - print an address
 * @a: the address
 * @text: room for %ADDRESS_TEXT bytes
 *
 * Return: @text.
 */
const char *address_text(const struct address *a, char *text)
{
	char name[IF_NAMESIZE];

	if (IN6_IS_ADDR_V4MAPPED(&a->addr))
		inet_ntop(AF_INET, &a->addr.s6_addr[12], text, ADDRESS_TEXT);
	else
		inet_ntop(AF_INET6, &a->addr, text, ADDRESS_TEXT);
	if (a->scope && if_indextoname(a->scope, name))
		strcat(strcat(text, "%"), name);
	return text;
}

/**
 * address_is_loopback - whether other machines cannot use an address
 * @a: the address
 */
bool address_is_loopback(const struct address *a)
{
	struct address net;

	return IN6_IS_ADDR_LOOPBACK(&a->addr) ||
	       (address_parse("127.0.0.0/8", &net) && address_within(a, &net));
}

/**
 * access_allowed - whether a client may connect
 * @o: the options
 * @a: address of the client
 */
bool access_allowed(const struct options *o, const struct address *a)
{
	unsigned int i;

	if (o->allow_all)
		return true;
	for (i = 0; i < o->nr_allow; i++)
		if (address_within(a, &o->allow[i]))
			return true;
	return false;
}

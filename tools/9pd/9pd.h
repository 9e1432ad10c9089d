/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* kofi-9pd: declarations that its files share. */
#ifndef _KOFI_9PD_H
#define _KOFI_9PD_H

#include <net/if.h>
#include <netinet/in.h>

#include "link.h"

#define ALLOW_MAX	64	/* entries of the access list */
#define CLIENTS_MAX	1000
/* room for an address as text */
#define ADDRESS_TEXT	(INET6_ADDRSTRLEN + IF_NAMESIZE + 1)

/**
 * struct address - an address, or the first bits of addresses
 * @addr: IPv6, or IPv4 mapped to it
 * @scope: number of the interface, or 0
 * @bits: significant bits of @addr
 */
struct address {
	struct in6_addr	addr;
	unsigned int	scope;
	unsigned int	bits;
};

/**
 * struct peer - the other side of a connection
 * @address: IP address of the peer
 * @port: port of the peer, in network byte order
 */
struct peer {
	struct address	address;
	in_port_t	port;
};

/**
 * struct options - of the command line
 * @prov: provider of libfabric
 * @node: address to listen at
 * @port: port, in network byte order
 * @msize: longest message
 * @credits: most requests a client may have outstanding
 * @clients: most clients at a time
 * @per_address: most clients of one address at a time
 * @memory: most bytes of messages of all clients
 * @user: name of the user to become when the port is open, or NULL
 * @allow_all: no access list
 * @nr_allow: entries of @allow
 * @allow: addresses that may connect
 * @connect: where a 9P server listens, HOST:PORT or a path; or NULL
 * @command: a program that serves one client at its standard input, if not
 *	@connect
 */
struct options {
	const char	*prov;
	const char	*node;
	in_port_t	port;
	uint32_t	msize;
	unsigned int	credits;
	unsigned int	clients;
	unsigned int	per_address;
	uint64_t	memory;
	const char	*user;
	bool		allow_all;
	unsigned int	nr_allow;
	struct address	allow[ALLOW_MAX];
	const char	*connect;
	char		**command;
};

bool peer_of(const void *from, size_t len, struct peer *to);
bool peer_equal(const struct peer *a, const struct peer *b);
bool address_parse(const char *text, struct address *to);
bool address_equal(const struct address *a, const struct address *b);
const char *address_text(const struct address *a, char *text);
bool address_is_loopback(const struct address *a);
bool access_allowed(const struct options *o, const struct address *a);

void client_begin(struct listener *l, const struct options *o,
		  struct fi_info *info, const void *data, size_t len);
bool clients_have(const struct peer *p);
void client_down(const struct fid *ep);
void clients_close(void);
void clients_end(void);

bool waiting_open(const struct options *o);
void waiting_check(const struct options *o);

#endif /* _KOFI_9PD_H */

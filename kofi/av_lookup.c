// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Look-ups in address vectors (fi_av(3)): the address of a number, for posts,
 * and the number of an address, for receivers. All run in any context
 * without a lock.
 *
 * Receive contexts
 *
 * The upper rx_ctx_bits of an fi_addr_t are the index of a receive context.
 * fi_rx_addr() puts it there, and it is added to the port. In the other direction
 * a port belongs to a context of the nearest address at or below it. Where each message
 * needs this look-up, the result is cached until the vector changes.
 */
#include <linux/kofi/lib.h>

#include "av.h"
#include "internal.h"

static u32 kofi_av_ctx(const struct kofi_av *av, fi_addr_t fi_addr)
{
	return av->ctx_bits ? fi_addr >> (64 - av->ctx_bits) : 0;
}

/**
 * kofi_av_get - look up the address of a number
 * @av: the vector
 * @fi_addr: the number, perhaps with the index of a receive context
 * @addr: receives the address; its port is the port of the receive context
 *
 * A post that must not miss kofi_ep_ops.peer_removed is an RCU reader from before
 * this call until the removal would find its operation.
 *
 * Context: any.
 * Return: 0, or -EINVAL if there is no such address or context.
 */
int kofi_av_get(struct kofi_av *av, fi_addr_t fi_addr, union kofi_ip *addr)
{
	u32 port, ctx = kofi_av_ctx(av, fi_addr);
	struct kofi_av_addr *peer;

	rcu_read_lock();
	peer = kofi_av_load(av, fi_addr);
	if (peer)
		*addr = peer->addr;
	rcu_read_unlock();
	if (!peer || ctx >= kofi_av_contexts(av))
		return -EINVAL;
	port = be16_to_cpu(*kofi_ip_port(&addr->sa)) + ctx;
	*kofi_ip_port(&addr->sa) = cpu_to_be16(port);
	return port > U16_MAX ? -EINVAL : 0;
}
EXPORT_SYMBOL_GPL(kofi_av_get);

/* Source of a peer's context in completions; an id belongs to the consumer completely. */
static fi_addr_t kofi_av_named(const struct kofi_av *av,
			       const struct kofi_av_addr *peer, u32 ctx)
{
	fi_addr_t id = READ_ONCE(peer->user_id);

	return av->flags & FI_AV_USER_ID ? id :
					   fi_rx_addr(id, ctx, av->ctx_bits);
}

/**
 * kofi_av_source - look up the source that completions report for an address
 * @av: the vector
 * @addr: address of a peer, or of one of its contexts
 *
 * Tries as many addresses as a peer can have contexts: for repeated look-ups of one peer
 * kofi_av_recall() is faster.
 *
 * Context: any.
 * Return: the number, or the id if the vector has ids; %FI_ADDR_NOTAVAIL if the address
 * is not in the vector.
 */
fi_addr_t kofi_av_source(struct kofi_av *av, const struct sockaddr *addr)
{
	int i, n = kofi_av_contexts(av);
	fi_addr_t source = FI_ADDR_NOTAVAIL;
	struct kofi_av_addr *peer = NULL;
	union kofi_ip key;
	__be16 *port;

	if (kofi_ip_peer(addr, kofi_ip_len(addr), &key))
		return source;
	port = kofi_ip_port(&key.sa);
	rcu_read_lock();
	for (i = 0; i < n && *port; i++) {
		peer = kofi_av_find(av, &key);
		if (peer)
			break;
		be16_add_cpu(port, -1);
	}
	if (peer)
		source = kofi_av_named(av, peer, i);
	rcu_read_unlock();
	return source;
}
EXPORT_SYMBOL_GPL(kofi_av_source);

/**
 * kofi_av_recall - kofi_av_source() with a cached result
 * @av: the vector
 * @addr: the address, equal in all calls with @known
 * @known: cached result, zeroed at first
 *
 * Context: any; calls with one @known never run concurrently.
 * Return: as kofi_av_source().
 */
fi_addr_t kofi_av_recall(struct kofi_av *av, const struct sockaddr *addr,
			 struct kofi_av_known *known)
{
	/* pairs with kofi_av_changed(): the look-up is not older; any context, so no mutex */
	unsigned long changes = smp_load_acquire(&av->changes);

	if (unlikely(known->changes != changes)) {
		known->source = kofi_av_source(av, addr);
		known->changes = changes;
	}
	return known->source;
}
EXPORT_SYMBOL_GPL(kofi_av_recall);

/**
 * kofi_av_id - look up the source that completions report for a number
 * @av: the vector
 * @fi_addr: the number
 *
 * A context with an entry of its own in the vector, or nearer to another address, has
 * the source that kofi_av_source() returns.
 *
 * Context: any.
 * Return: @fi_addr, or the address's id if the vector has ids;
 * %FI_ADDR_NOTAVAIL if there is no such address or context.
 */
fi_addr_t kofi_av_id(struct kofi_av *av, fi_addr_t fi_addr)
{
	union kofi_ip addr;

	if (kofi_av_get(av, fi_addr, &addr))
		return FI_ADDR_NOTAVAIL;
	return kofi_av_source(av, &addr.sa);
}
EXPORT_SYMBOL_GPL(kofi_av_id);

/**
 * fi_av_lookup - look up the address of a number
 * @av: an address vector
 * @fi_addr: the number
 * @addr: receives the address, in the addr_format of the domain, truncated if
 *	necessary
 * @addrlen: in: bytes at @addr, out: size of the address
 *
 * fi_av(3).
 *
 * Context: any.
 * Return: 0; -EINVAL for NULL arguments, or if @fi_addr has no address, or is a
 * context with an invalid port.
 */
int fi_av_lookup(struct fid_av *av, fi_addr_t fi_addr, void *addr,
		 size_t *addrlen)
{
	struct kofi_av *kav = kofi_av(av);
	union kofi_ip ip;
	int err;

	if (!kofi_av_valid(av) || !addrlen || (!addr && *addrlen))
		return -EINVAL;
	err = kofi_av_get(kav, fi_addr, &ip);
	if (err)
		return err;
	if (kofi_domain_text(kav->domain))
		kofi_ip_copy_text(&ip.sa, addr, addrlen);
	else
		kofi_ip_copy(&ip.sa, addr, addrlen);
	return 0;
}
EXPORT_SYMBOL_GPL(fi_av_lookup);

/**
 * fi_av_straddr - convert an address to text
 * @av: an address vector
 * @addr: an address in the addr_format of the domain, not necessarily of the
 *	vector
 * @buf: receives the text, truncated if necessary
 * @len: in: bytes at @buf, out: bytes of the text with the terminating NUL
 *
 * fi_av(3). The text is fi_sockaddr_in://10.0.0.1:7471, for instance.
 *
 * Context: any.
 * Return: @buf, or NULL for NULL arguments or an invalid address.
 */
const char *fi_av_straddr(struct fid_av *av, const void *addr, char *buf,
			  size_t *len)
{
	struct kofi_av *kav = kofi_av(av);
	char text[KOFI_IP_STR_MAX];
	const char *from = text;
	size_t size;

	if (!kofi_av_valid(av) || !addr || !buf || !len)
		return NULL;
	if (kav->domain->addr_format == FI_ADDR_STR)
		from = addr;
	else if (kofi_ip_print(addr, text, sizeof(text)) < 0)
		return NULL;
	size = *len;
	*len = strlen(from) + 1;
	if (size)
		strscpy(buf, from, size);
	return buf;
}
EXPORT_SYMBOL_GPL(fi_av_straddr);

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Table of an unconnected endpoint's peers by fi_addr_t. A look-up by address takes some
 * hundred instructions: the address vector, then a hash table.
 *
 * An entry is valid for one state of the vector: after a change, posts look the
 * address up again. So a number that is removed, and perhaps reused for another address,
 * finds no state of the earlier peer.
 */
#include <linux/bitops.h>
#include <linux/kofi/lib.h>

#include "../av.h"

/* The bits that name a receive context come last, so that numbers stay dense. */
static unsigned long kofi_dest_index(const struct kofi_av *av, fi_addr_t fi_addr)
{
	return rol64(fi_addr, av->ctx_bits);
}

/**
 * kofi_dest_init - set up an empty table
 * @dests: table of the endpoint; xa_destroy() frees it
 *
 * A function of this file, since its lock needs a lockdep class apart from tables that
 * are changed with interrupts enabled.
 *
 * Context: any.
 */
void kofi_dest_init(struct xarray *dests)
{
	xa_init_flags(dests, XA_FLAGS_LOCK_IRQ);
}
EXPORT_SYMBOL_GPL(kofi_dest_init);

/**
 * kofi_dest_find - look up a peer by its number
 * @dests: table of the endpoint
 * @av: address vector of the endpoint
 * @fi_addr: the number, perhaps with the index of a receive context
 *
 * Context: any, as an RCU reader, which keeps the result.
 * Return: the entry set since the last change of the vector, or NULL.
 */
struct kofi_dest *kofi_dest_find(struct xarray *dests, struct kofi_av *av,
				 fi_addr_t fi_addr)
{
	struct kofi_dest *dest = xa_load(dests, kofi_dest_index(av, fi_addr));

	/* pairs with kofi_av_changed(); posts cannot take the vector's mutex */
	return dest && READ_ONCE(dest->changes) == smp_load_acquire(&av->changes) ?
	       dest : NULL;
}
EXPORT_SYMBOL_GPL(kofi_dest_find);

/**
 * kofi_dest_changes - read the state of an address vector
 * @av: the vector
 *
 * Context: any, before kofi_av_get().
 * Return: argument @changes of kofi_dest_set().
 */
unsigned long kofi_dest_changes(struct kofi_av *av)
{
	/* pairs with kofi_av_changed(): the look-up is not older; no mutex, as above */
	return smp_load_acquire(&av->changes);
}
EXPORT_SYMBOL_GPL(kofi_dest_changes);

/**
 * kofi_dest_fresh - renew an entry after a change of the vector
 * @dest: the entry
 * @av: the address vector
 * @fi_addr: number of the look-up
 * @changes: state of the vector at the look-up
 *
 * Context: any.
 * Return: false for an entry that must be set.
 */
bool kofi_dest_fresh(struct kofi_dest *dest, struct kofi_av *av,
		     fi_addr_t fi_addr, unsigned long changes)
{
	/* pairs with kofi_dest_set(); posts to a peer share no lock with its connection */
	if (!smp_load_acquire(&dest->changes))
		return false;
	/* another number of the same peer takes a look-up each time */
	if (dest->index == kofi_dest_index(av, fi_addr))
		WRITE_ONCE(dest->changes, changes);
	return true;
}
EXPORT_SYMBOL_GPL(kofi_dest_fresh);

/**
 * kofi_dest_set - add a peer to the table
 * @dests: table of the endpoint
 * @av: address vector of the endpoint
 * @dest: entry of the peer, zeroed at first
 * @fi_addr: number of the peer
 * @changes: state of the vector at the look-up
 *
 * Without memory, posts continue to look the peer up by address.
 *
 * Context: any, never concurrently, and not after kofi_dest_del().
 */
void kofi_dest_set(struct xarray *dests, struct kofi_av *av,
		   struct kofi_dest *dest, fi_addr_t fi_addr,
		   unsigned long changes)
{
	unsigned long index = kofi_dest_index(av, fi_addr);
	const gfp_t gfp = GFP_ATOMIC | __GFP_NOWARN | __GFP_NOMEMALLOC;
	unsigned long irq;
	int err;

	if (dest->changes)
		return;
	/* an entry of an earlier peer with the number counts as empty */
	xa_lock_irqsave(dests, irq);
	err = xa_err(__xa_store(dests, index, dest, gfp));
	xa_unlock_irqrestore(dests, irq);
	if (err)
		return;
	dest->index = index;
	/* @index, before a post reads it in kofi_dest_fresh(), without a lock */
	smp_store_release(&dest->changes, changes);
}
EXPORT_SYMBOL_GPL(kofi_dest_set);

/**
 * kofi_dest_del - remove a peer that is about to be freed
 * @dests: table of the endpoint
 * @dest: entry of the peer; posts that have found it continue as RCU readers
 *
 * Context: as kofi_dest_set().
 */
void kofi_dest_del(struct xarray *dests, struct kofi_dest *dest)
{
	unsigned long irq;

	if (!dest->changes)
		return;
	xa_lock_irqsave(dests, irq);
	__xa_cmpxchg(dests, dest->index, dest, NULL, GFP_ATOMIC);
	xa_unlock_irqrestore(dests, irq);
}
EXPORT_SYMBOL_GPL(kofi_dest_del);

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What an endpoint with many peers has for each of them, by the number that posts
 * name the peer by. Looking it up by address takes some hundred instructions: the
 * address vector, then a hash table.
 *
 * An entry holds for one state of the vector: after a change of that, posts look by
 * address again. So a number that is removed, and perhaps given to another address,
 * finds nothing that is left of the earlier one.
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
 * kofi_dest_init - begin with no peers
 * @dests: the endpoint's; xa_destroy() ends it
 *
 * Here, as its lock is of another class than that of tables which are changed with
 * interrupts on.
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
 * @dests: the endpoint's
 * @av: its address vector
 * @fi_addr: the number, perhaps with the index of a receive context
 *
 * Context: any, as an RCU reader that keeps what is found.
 * Return: what was set for it since the vector has changed last, or NULL.
 */
struct kofi_dest *kofi_dest_find(struct xarray *dests, struct kofi_av *av,
				 fi_addr_t fi_addr)
{
	struct kofi_dest *dest = xa_load(dests, kofi_dest_index(av, fi_addr));

	/* pairs with kofi_av_changed() */
	return dest && READ_ONCE(dest->changes) == smp_load_acquire(&av->changes) ?
	       dest : NULL;
}
EXPORT_SYMBOL_GPL(kofi_dest_find);

/**
 * kofi_dest_changes - the state of an address vector
 * @av: the vector
 *
 * Context: any, before kofi_av_get().
 * Return: what kofi_dest_set() is to be told.
 */
unsigned long kofi_dest_changes(struct kofi_av *av)
{
	/* pairs with kofi_av_changed(): what is found is not older */
	return smp_load_acquire(&av->changes);
}
EXPORT_SYMBOL_GPL(kofi_dest_changes);

/**
 * kofi_dest_fresh - renew an entry after a change of the vector
 * @dest: the entry
 * @av: the address vector
 * @fi_addr: the number that has been looked up
 * @changes: the state it was looked up in
 *
 * Context: any.
 * Return: false for an entry that is to be set.
 */
bool kofi_dest_fresh(struct kofi_dest *dest, struct kofi_av *av,
		     fi_addr_t fi_addr, unsigned long changes)
{
	/* pairs with kofi_dest_set() */
	if (!smp_load_acquire(&dest->changes))
		return false;
	/* another number of the same peer is looked up each time */
	if (dest->index == kofi_dest_index(av, fi_addr))
		WRITE_ONCE(dest->changes, changes);
	return true;
}
EXPORT_SYMBOL_GPL(kofi_dest_fresh);

/**
 * kofi_dest_set - have posts find a peer by its number
 * @dests: the endpoint's
 * @av: its address vector
 * @dest: the peer's entry, zeroed at first
 * @fi_addr: the number
 * @changes: the state of the vector it was looked up in
 *
 * Without memory posts go on to look it up.
 *
 * Context: any, one call after the other, and none after kofi_dest_del().
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
	/* what an earlier peer has left under the number is as if it were not there */
	xa_lock_irqsave(dests, irq);
	err = xa_err(__xa_store(dests, index, dest, gfp));
	xa_unlock_irqrestore(dests, irq);
	if (err)
		return;
	dest->index = index;
	/* pairs with kofi_dest_fresh() */
	smp_store_release(&dest->changes, changes);
}
EXPORT_SYMBOL_GPL(kofi_dest_set);

/**
 * kofi_dest_del - what a peer had is to be freed
 * @dests: the endpoint's
 * @dest: the peer's entry; posts that have found it go on as RCU readers
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

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Address vectors as the core's files see them; see av.c. */
#ifndef KOFI_AV_H
#define KOFI_AV_H

#include <linux/mutex.h>
#include <linux/rhashtable.h>
#include <linux/xarray.h>

#include <linux/kofi/lib.h>

#include "internal.h"

/**
 * struct kofi_peer - an address
 * @node: in the vector's hash table
 * @addr: the address; bytes it does not use are 0
 * @index: its number
 * @inserted: how often it has been inserted and not removed
 * @user_id: what completions call it, FI_AV_USER_ID
 * @removed: the next one that is removed with it
 */
struct kofi_peer {
	struct rhash_head	node;
	union kofi_ip		addr;
	u32			index;
	u32			inserted;
	u64			user_id;
	struct kofi_peer	*removed;
};

/**
 * struct kofi_av - an address vector
 * @av: what the consumer holds
 * @obj: the core's
 * @domain: its parent
 * @eq: where insertions are reported to, or NULL
 * @table: consumers may know the numbers without being told
 * @flags: FI_EVENT, FI_AV_USER_ID
 * @ctx_bits: upper bits of an fi_addr_t that are none of the number
 * @mutex: insertion and removal
 * @peers: addresses by number
 * @hash: the same by address
 * @eps: endpoints it is bound to
 * @changes: a number that is another one after each change; never 0
 */
struct kofi_av {
	struct fid_av		av;
	struct kofi_obj		obj;
	struct kofi_domain	*domain;
	struct kofi_eq		*eq;
	bool			table;
	u64			flags;
	unsigned int		ctx_bits;
	struct mutex		mutex;	/* changes of what follows */
	struct xarray		peers;
	struct rhashtable	hash;
	struct list_head	eps;
	unsigned long		changes;
};

static const struct rhashtable_params kofi_av_hash = {
	.key_len		= sizeof_field(struct kofi_peer, addr),
	.key_offset		= offsetof(struct kofi_peer, addr),
	.head_offset		= offsetof(struct kofi_peer, node),
	.automatic_shrinking	= true,
};

static inline struct kofi_av *kofi_av(struct fid_av *av)
{
	return container_of(av, struct kofi_av, av);
}

static inline bool kofi_av_valid(const struct fid_av *av)
{
	return kofi_fid_class(&av->fid) == FI_CLASS_AV;
}

static inline struct kofi_peer *kofi_av_find(struct kofi_av *av,
					     const union kofi_ip *key)
{
	return rhashtable_lookup(&av->hash, key, kofi_av_hash);
}

static inline struct kofi_peer *kofi_av_load(struct kofi_av *av,
					     fi_addr_t fi_addr)
{
	u64 number = fi_addr & (U64_MAX >> av->ctx_bits);

	return number <= U32_MAX ? xa_load(&av->peers, number) : NULL;
}

/* Receive contexts that a peer can have */
static inline int kofi_av_contexts(const struct kofi_av *av)
{
	return min(1 << av->ctx_bits, KOFI_EP_CTX_MAX);
}

#endif /* KOFI_AV_H */

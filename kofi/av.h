/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Address vectors, internals; see av.c. */
#ifndef KOFI_AV_H
#define KOFI_AV_H

#include <linux/mutex.h>
#include <linux/rhashtable.h>
#include <linux/xarray.h>

#include <linux/kofi/lib.h>

#include "internal.h"

/**
 * struct kofi_av_addr - an address
 * @node: entry in the vector's hash table
 * @addr: the address; unused bytes are 0
 * @index: number of the address
 * @inserted: number of insertions minus removals
 * @user_id: source in completions, with FI_AV_USER_ID; written under kofi_av.mutex, read
 *	without it by completions
 * @removed: next address of one removal
 */
struct kofi_av_addr {
	struct rhash_head	node;
	union kofi_ip		addr;
	u32			index;
	u32			inserted;
	u64			user_id;
	struct kofi_av_addr	*removed;
};

/**
 * struct kofi_av - an address vector
 * @av: handle of the consumer
 * @obj: the core's part
 * @domain: parent
 * @eq: destination of events of insertions, or NULL
 * @table: consumers may predict the numbers
 * @flags: FI_EVENT, FI_AV_USER_ID
 * @ctx_bits: upper bits of an fi_addr_t that do not belong to the number
 * @mutex: serialises insertion and removal, guards the members that follow
 * @peers: addresses by number
 * @hash: addresses by address
 * @eps: endpoints of the vector
 * @changes: incremented by each change, under @mutex; never 0. Posts and completions, which
 *	run in any context, read it without @mutex
 */
struct kofi_av {
	struct fid_av		av;
	struct kofi_obj		obj;
	struct kofi_domain	*domain;
	struct kofi_eq		*eq;
	bool			table;
	u64			flags;
	unsigned int		ctx_bits;
	struct mutex		mutex;	/* changes of the members that follow */
	struct xarray		peers;
	struct rhashtable	hash;
	struct list_head	eps;
	unsigned long		changes;
};

static const struct rhashtable_params kofi_av_hash = {
	.key_len		= sizeof_field(struct kofi_av_addr, addr),
	.key_offset		= offsetof(struct kofi_av_addr, addr),
	.head_offset		= offsetof(struct kofi_av_addr, node),
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

static inline struct kofi_av_addr *kofi_av_find(struct kofi_av *av,
						const union kofi_ip *key)
{
	return rhashtable_lookup(&av->hash, key, kofi_av_hash);
}

static inline struct kofi_av_addr *kofi_av_load(struct kofi_av *av,
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

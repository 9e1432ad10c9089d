// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Functions for the gaps of a provider: they return -ENOSYS.
 *
 * The inline functions for data transfer call a slot of the endpoint's tables without a
 * test. If a provider has no table of a kind, the endpoint points to the one here. A
 * provider fills gaps of its own tables with these functions. Calls through the core need
 * neither: it tests their slots.
 */
#include <linux/export.h>

#include "internal.h"

const struct fi_ops_ep kofi_ep_nosys = {
	.size	= sizeof(struct fi_ops_ep),
};

const struct fi_ops_cm kofi_cm_nosys = {
	.size	= sizeof(struct fi_ops_cm),
};

/**
 * kofi_no_msg - refuse a message that the provider cannot send or receive
 * @ep: not used
 * @msg: not used
 * @flags: not used
 *
 * Context: any.
 * Return: -ENOSYS.
 */
ssize_t kofi_no_msg(struct fid_ep *ep, const struct fi_msg *msg, u64 flags)
{
	return -ENOSYS;
}
EXPORT_SYMBOL_GPL(kofi_no_msg);

const struct fi_ops_msg kofi_msg_nosys = {
	.size		= sizeof(struct fi_ops_msg),
	.sendmsg	= kofi_no_msg,
	.recvmsg	= kofi_no_msg,
};

/**
 * kofi_no_tagged - kofi_no_msg() for tagged messages
 * @ep: not used
 * @msg: not used
 * @flags: not used
 *
 * Context: any.
 * Return: -ENOSYS.
 */
ssize_t kofi_no_tagged(struct fid_ep *ep, const struct fi_msg_tagged *msg,
		       u64 flags)
{
	return -ENOSYS;
}
EXPORT_SYMBOL_GPL(kofi_no_tagged);

const struct fi_ops_tagged kofi_tagged_nosys = {
	.size		= sizeof(struct fi_ops_tagged),
	.sendmsg	= kofi_no_tagged,
	.recvmsg	= kofi_no_tagged,
};

static ssize_t kofi_no_rma(struct fid_ep *ep, const struct fi_msg_rma *msg,
			   u64 flags)
{
	return -ENOSYS;
}

const struct fi_ops_rma kofi_rma_nosys = {
	.size		= sizeof(struct fi_ops_rma),
	.readmsg	= kofi_no_rma,
	.writemsg	= kofi_no_rma,
};

static ssize_t kofi_atomic_no_write(struct fid_ep *ep,
				    const struct fi_msg_atomic *msg, u64 flags)
{
	return -ENOSYS;
}

static ssize_t kofi_atomic_no_readwrite(struct fid_ep *ep,
					const struct fi_msg_atomic *msg,
					struct fi_ioc *resultv,
					void **result_desc, size_t result_count,
					u64 flags)
{
	return -ENOSYS;
}

static ssize_t kofi_atomic_no_compwrite(struct fid_ep *ep,
					const struct fi_msg_atomic *msg,
					const struct fi_ioc *comparev,
					void **compare_desc,
					size_t compare_count,
					struct fi_ioc *resultv,
					void **result_desc, size_t result_count,
					u64 flags)
{
	return -ENOSYS;
}

const struct fi_ops_atomic kofi_atomic_nosys = {
	.size		= sizeof(struct fi_ops_atomic),
	.writemsg	= kofi_atomic_no_write,
	.readwritemsg	= kofi_atomic_no_readwrite,
	.compwritemsg	= kofi_atomic_no_compwrite,
};

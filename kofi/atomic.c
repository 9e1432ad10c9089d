// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Atomic operations (fi_atomic(3)): what is the same for every provider. That
 * is little: which operations there are, how large an element is, and the
 * question what a domain can do. Posts go to the provider directly.
 */
#include <linux/export.h>
#include <linux/kernel.h>

#include "internal.h"

/**
 * kofi_datatype_size - bytes of an element
 * @datatype: any value
 *
 * Context: any.
 * Return: the size of an integer of up to 64 bits, 0 for what kernels do not
 * count with.
 */
size_t kofi_datatype_size(enum fi_datatype datatype)
{
	static const u8 sizes[] = {
		[FI_INT8]	= 1,
		[FI_UINT8]	= 1,
		[FI_INT16]	= 2,
		[FI_UINT16]	= 2,
		[FI_INT32]	= 4,
		[FI_UINT32]	= 4,
		[FI_INT64]	= 8,
		[FI_UINT64]	= 8,
	};

	return (unsigned int)datatype < ARRAY_SIZE(sizes) ? sizes[datatype] : 0;
}
EXPORT_SYMBOL_GPL(kofi_datatype_size);

/**
 * kofi_atomic_op_fits - is there such an operation at all
 * @op: any value
 * @flags: 0, FI_FETCH_ATOMIC or FI_COMPARE_ATOMIC: the call
 *
 * fi_atomic() knows all that compute, and to write; fi_fetch_atomic() these,
 * and to read; fi_compare_atomic() those that compare.
 *
 * Context: any.
 * Return: true if so; a provider may know fewer.
 */
bool kofi_atomic_op_fits(enum fi_op op, u64 flags)
{
	bool compares = op >= FI_CSWAP && op <= FI_MSWAP;

	if ((unsigned int)op > FI_DIFF)
		return false;
	if (flags & FI_COMPARE_ATOMIC)
		return compares;
	return !compares && (op != FI_ATOMIC_READ || flags & FI_FETCH_ATOMIC);
}
EXPORT_SYMBOL_GPL(kofi_atomic_op_fits);

/**
 * fi_query_atomic - what a domain's endpoints can do atomically
 * @domain: an open domain
 * @datatype: what an element is
 * @op: what is to be done to each
 * @attr: where the answer goes
 * @flags: FI_FETCH_ATOMIC for fi_fetch_atomic(), FI_COMPARE_ATOMIC for
 *	fi_compare_atomic(), 0 for fi_atomic()
 *
 * fi_atomic(3).
 *
 * Context: process, may sleep.
 * Return: 0; -EOPNOTSUPP for what they cannot do; -FI_EBADFLAGS; -EINVAL for
 * NULL arguments; -ENOSYS if they can do nothing of the kind.
 */
int fi_query_atomic(struct fid_domain *domain, enum fi_datatype datatype,
		    enum fi_op op, struct fi_atomic_attr *attr, u64 flags)
{
	size_t size = kofi_datatype_size(datatype);
	int ret;

	might_sleep();
	if (kofi_fid_class(&domain->fid) != FI_CLASS_DOMAIN || !attr)
		return -EINVAL;
	if (flags && flags != FI_FETCH_ATOMIC && flags != FI_COMPARE_ATOMIC)
		return -FI_EBADFLAGS;
	if (!size || !kofi_atomic_op_fits(op, flags))
		return -EOPNOTSUPP;
	if (!domain->ops->query_atomic)
		return -ENOSYS;
	ret = domain->ops->query_atomic(domain, datatype, op, attr, flags);
	if (!ret)
		attr->size = size;
	return ret;
}
EXPORT_SYMBOL_GPL(fi_query_atomic);

/**
 * kofi_atomic_valid - what an endpoint can do atomically
 * @ep: an endpoint
 * @datatype: what an element is
 * @op: what is to be done to each
 * @flags: of fi_query_atomic(): which call
 * @count: where the most elements of one operation go
 *
 * What fi_atomicvalid() and its kin are: the domain's answer.
 *
 * Context: any.
 * Return: 0; -EINVAL for what is no endpoint, or no place; -EOPNOTSUPP; -ENOSYS for
 * an endpoint without atomic operations.
 */
int kofi_atomic_valid(struct fid_ep *ep, enum fi_datatype datatype,
		      enum fi_op op, u64 flags, size_t *count)
{
	const struct kofi_ep *kep = container_of(ep, struct kofi_ep, ep);
	struct fid_domain *domain;
	struct fi_atomic_attr attr;
	int ret;

	if (!kofi_ep_valid(ep) || !count)
		return -EINVAL;
	domain = &kep->domain->domain;
	if (ep->atomic == &kofi_atomic_nosys || !domain->ops->query_atomic)
		return -ENOSYS;
	if (!(kep->info->caps & FI_ATOMIC) || !kofi_datatype_size(datatype) ||
	    !kofi_atomic_op_fits(op, flags))
		return -EOPNOTSUPP;
	ret = domain->ops->query_atomic(domain, datatype, op, &attr, flags);
	if (!ret)
		*count = attr.count;
	return ret;
}
EXPORT_SYMBOL_GPL(kofi_atomic_valid);

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Atomic operations (fi_atomic(3)): the part common to all providers:
 * valid operations, sizes of elements, and queries of a domain's
 * support. Posts call the provider directly.
 */
#include <linux/export.h>
#include <linux/kernel.h>

#include "internal.h"

/**
 * kofi_datatype_size - size of an element
 * @datatype: any value
 *
 * Context: any.
 * Return: the size of an integer of up to 64 bits, 0 for other types, which kernels do not
 * compute with.
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
 * kofi_atomic_op_fits - check that an operation is defined for a call
 * @op: any value
 * @flags: 0, FI_FETCH_ATOMIC or FI_COMPARE_ATOMIC: the call
 *
 * fi_atomic() has all operations that compute, and write; fi_fetch_atomic() has these
 * and read; fi_compare_atomic() has operations that compare.
 *
 * Context: any.
 * Return: true if it is defined; a provider may support fewer.
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
 * fi_query_atomic - query the atomic operations of a domain's endpoints
 * @domain: an open domain
 * @datatype: type of an element
 * @op: operation on each element
 * @attr: receives the limits
 * @flags: FI_FETCH_ATOMIC for fi_fetch_atomic(), FI_COMPARE_ATOMIC for
 *	fi_compare_atomic(), 0 for fi_atomic()
 *
 * fi_atomic(3).
 *
 * Context: process, may sleep.
 * Return: 0; -EOPNOTSUPP for an unsupported operation; -FI_EBADFLAGS; -EINVAL for
 * NULL arguments; -ENOSYS if the domain has no atomic operations.
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
 * kofi_atomic_valid - query the atomic operations of an endpoint
 * @ep: an endpoint
 * @datatype: type of an element
 * @op: operation on each element
 * @flags: flags of fi_query_atomic(): the call
 * @count: receives the largest number of elements of one operation
 *
 * Implements fi_atomicvalid() and related functions by the query of the domain.
 *
 * Context: any.
 * Return: 0; -EINVAL for another object, or a NULL @count; -EOPNOTSUPP; -ENOSYS for
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

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Atomic operations on a peer's memory (fi_atomic(3)).
 *
 * Each element of the peer's memory is changed as if no other atomic operation of
 * the same provider ran at the time. The page of each provider states whether that also
 * holds for the peer's CPUs and for plain writes. Values are in the byte order of the CPU
 * on both sides; fetched values are in the caller's byte order.
 *
 * The calls post operations as the calls of fi_endpoint.h do, in any context. They return
 * the errors listed at the head of that file, and -EOPNOTSUPP for an unsupported
 * combination of datatype and operation, see fi_query_atomic() and fi_atomicvalid(). An
 * access that the peer refuses is no error of the post.
 * Segments of memory are counted in elements of the datatype. A peer's region
 * permits atomic operations with FI_REMOTE_WRITE, and fetching ones if FI_REMOTE_READ is
 * set, too; in software FI_ATOMIC_READ needs FI_REMOTE_READ only.
 */
#ifndef _LINUX_KOFI_FI_ATOMIC_H
#define _LINUX_KOFI_FI_ATOMIC_H

#include <linux/kofi/fi_endpoint.h>

/* fi_query_atomic(): selects one of the three calls; without a flag fi_atomic() */
#define FI_FETCH_ATOMIC		BIT_ULL(58)
#define FI_COMPARE_ATOMIC	BIT_ULL(59)

/**
 * struct fi_atomic_attr - support of a datatype and an operation
 * @count: most elements of one operation
 * @size: bytes of an element
 */
struct fi_atomic_attr {
	size_t	count;
	size_t	size;
};

/**
 * struct fi_ioc - a segment of local memory
 * @addr: kernel virtual address, aligned to an element
 * @count: elements
 */
struct fi_ioc {
	void	*addr;
	size_t	count;
};

/**
 * struct fi_rma_ioc - a segment of a peer's memory
 * @addr: remote address, aligned to an element
 * @count: elements
 * @key: the region's key
 */
struct fi_rma_ioc {
	u64	addr;
	size_t	count;
	u64	key;
};

/**
 * struct fi_msg_atomic - one atomic operation
 * @msg_iov: operands, in order; for %FI_ATOMIC_READ without meaning
 * @desc: one local descriptor per segment, or NULL
 * @iov_count: segments of local memory
 * @addr: peer; ignored on connected endpoints
 * @rma_iov: the peer's memory, in order. As many elements as there are operands
 * @rma_iov_count: number of its segments
 * @datatype: type of an element
 * @op: operation on each element
 * @context: returned in the completion
 * @data: remote CQ data, with FI_REMOTE_CQ_DATA
 *
 * The structure and its arrays are read before the post returns. The memory
 * they describe belongs to the provider until the completion.
 */
struct fi_msg_atomic {
	const struct fi_ioc	*msg_iov;
	void			**desc;
	size_t			iov_count;
	fi_addr_t		addr;
	const struct fi_rma_ioc	*rma_iov;
	size_t			rma_iov_count;
	enum fi_datatype	datatype;
	enum fi_op		op;
	void			*context;
	u64			data;
};

/* A provider fills these; every inline that posts calls one of them. */
struct fi_ops_atomic {
	size_t	size;
	ssize_t	(*writemsg)(struct fid_ep *ep, const struct fi_msg_atomic *msg,
			    u64 flags);
	ssize_t	(*readwritemsg)(struct fid_ep *ep,
				const struct fi_msg_atomic *msg,
				struct fi_ioc *resultv, void **result_desc,
				size_t result_count, u64 flags);
	ssize_t	(*compwritemsg)(struct fid_ep *ep,
				const struct fi_msg_atomic *msg,
				const struct fi_ioc *comparev,
				void **compare_desc, size_t compare_count,
				struct fi_ioc *resultv, void **result_desc,
				size_t result_count, u64 flags);
};

int fi_query_atomic(struct fid_domain *domain, enum fi_datatype datatype,
		    enum fi_op op, struct fi_atomic_attr *attr, u64 flags);
int kofi_atomic_valid(struct fid_ep *ep, enum fi_datatype datatype,
		      enum fi_op op, u64 flags, size_t *count);

/* ----------------------------------------------------------- without result */

/**
 * fi_atomicmsg - change a peer's memory with all options
 * @ep: an enabled, connected endpoint
 * @msg: operation, peer's memory and operands
 * @flags: as for fi_writemsg(). The endpoint's default flags do not apply.
 *
 * Context: any.
 * Return: see the head of this file.
 */
static inline ssize_t fi_atomicmsg(struct fid_ep *ep,
				   const struct fi_msg_atomic *msg, u64 flags)
{
	return ep->atomic->writemsg(ep, msg, flags);
}

/**
 * fi_atomicv - change a peer's memory, with operands from several places
 * @ep: an enabled, connected endpoint
 * @iov: the operands, in order
 * @desc: one descriptor per segment, or NULL
 * @count: number of segments, at most tx_attr->iov_limit
 * @dest: peer; ignored on connected endpoints
 * @addr: remote address
 * @key: key of the peer's region
 * @datatype: type of an element
 * @op: operation on each element
 * @context: returned in the completion
 *
 * Context: any.
 * Return: see the head of this file.
 */
static inline ssize_t fi_atomicv(struct fid_ep *ep, const struct fi_ioc *iov,
				 void **desc, size_t count, fi_addr_t dest,
				 u64 addr, u64 key, enum fi_datatype datatype,
				 enum fi_op op, void *context)
{
	struct fi_rma_ioc rma = { .addr = addr, .key = key };
	const struct fi_msg_atomic msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count, .addr = dest,
		.rma_iov = &rma, .rma_iov_count = 1, .datatype = datatype,
		.op = op, .context = context,
	};
	size_t i;

	/* too many are refused with all of them unread */
	for (i = 0; i < count && i < KOFI_IOV_MAX; i++)
		rma.count += iov[i].count;
	return ep->atomic->writemsg(ep, &msg, READ_ONCE(ep->tx_op_flags));
}

/**
 * fi_atomic - change a peer's memory
 * @ep: an enabled, connected endpoint
 * @buf: the operands; not written to
 * @count: elements
 * @desc: descriptor of the operands, or NULL
 * @dest: peer; ignored on connected endpoints
 * @addr: remote address
 * @key: key of the peer's region
 * @datatype: type of an element
 * @op: operation on each element
 * @context: returned in the completion
 *
 * Context: any.
 * Return: see the head of this file.
 */
static inline ssize_t fi_atomic(struct fid_ep *ep, const void *buf,
				size_t count, void *desc, fi_addr_t dest,
				u64 addr, u64 key, enum fi_datatype datatype,
				enum fi_op op, void *context)
{
	const struct fi_ioc iov = { .addr = (void *)buf, .count = count };

	return fi_atomicv(ep, &iov, &desc, 1, dest, addr, key, datatype, op,
			  context);
}

/**
 * fi_inject_atomic - change a peer's memory, with a copy and without a completion
 * @ep: an enabled, connected endpoint
 * @buf: the operands; may be reused when the call has returned
 * @count: elements; at most tx_attr->inject_size bytes
 * @dest: peer; ignored on connected endpoints
 * @addr: remote address
 * @key: key of the peer's region
 * @datatype: type of an element
 * @op: operation on each element
 *
 * Reported as fi_injectdata() is.
 *
 * Context: any.
 * Return: see the head of this file.
 */
static inline ssize_t fi_inject_atomic(struct fid_ep *ep, const void *buf,
				       size_t count, fi_addr_t dest, u64 addr,
				       u64 key, enum fi_datatype datatype,
				       enum fi_op op)
{
	const struct fi_ioc iov = { .addr = (void *)buf, .count = count };
	const struct fi_rma_ioc rma = {
		.addr = addr, .count = count, .key = key,
	};
	const struct fi_msg_atomic msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = dest, .rma_iov = &rma,
		.rma_iov_count = 1, .datatype = datatype, .op = op,
	};

	return ep->atomic->writemsg(ep, &msg, FI_INJECT | KOFI_NO_COMPLETION);
}

/**
 * fi_atomicvalid - query the support of fi_atomic()
 * @ep: an endpoint
 * @datatype: type of an element
 * @op: operation on each element
 * @count: receives the largest number of elements of one operation
 *
 * Context: any.
 * Return: 0; -EINVAL for another object, or a NULL @count; -EOPNOTSUPP;
 * -ENOSYS for an endpoint without atomic operations.
 */
static inline int fi_atomicvalid(struct fid_ep *ep, enum fi_datatype datatype,
				 enum fi_op op, size_t *count)
{
	return kofi_atomic_valid(ep, datatype, op, 0, count);
}

/* ----------------------------------------------------------- fetch old values */

/**
 * fi_fetch_atomicmsg - change a peer's memory and fetch its old values, with all options
 * @ep: an enabled, connected endpoint
 * @msg: operation, peer's memory and operands; no operands for %FI_ATOMIC_READ
 * @resultv: destination of the old values, in order; as many as there are elements
 * @result_desc: one descriptor per segment, or NULL
 * @result_count: number of segments, at most tx_attr->iov_limit
 * @flags: FI_COMPLETION, FI_MORE, FI_FENCE. The endpoint's default flags do
 *	not apply.
 *
 * Completes when the old values are in local memory.
 *
 * Context: any.
 * Return: see the head of this file.
 */
static inline ssize_t fi_fetch_atomicmsg(struct fid_ep *ep,
					 const struct fi_msg_atomic *msg,
					 struct fi_ioc *resultv,
					 void **result_desc,
					 size_t result_count, u64 flags)
{
	return ep->atomic->readwritemsg(ep, msg, resultv, result_desc,
					result_count, flags);
}

/**
 * fi_fetch_atomicv - change a peer's memory and fetch its old values into several
 *	places
 * @ep: an enabled, connected endpoint
 * @iov: the operands, in order; without meaning for %FI_ATOMIC_READ
 * @desc: one descriptor per segment, or NULL
 * @count: number of segments, at most tx_attr->iov_limit
 * @resultv: destination of the old values, in order
 * @result_desc: one descriptor per segment, or NULL
 * @result_count: number of segments, at most tx_attr->iov_limit
 * @dest: peer; ignored on connected endpoints
 * @addr: remote address
 * @key: key of the peer's region
 * @datatype: type of an element
 * @op: operation on each element
 * @context: returned in the completion
 *
 * Context: any.
 * Return: see the head of this file.
 */
static inline ssize_t fi_fetch_atomicv(struct fid_ep *ep,
				       const struct fi_ioc *iov, void **desc,
				       size_t count, struct fi_ioc *resultv,
				       void **result_desc, size_t result_count,
				       fi_addr_t dest, u64 addr, u64 key,
				       enum fi_datatype datatype, enum fi_op op,
				       void *context)
{
	struct fi_rma_ioc rma = { .addr = addr, .key = key };
	const struct fi_msg_atomic msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count, .addr = dest,
		.rma_iov = &rma, .rma_iov_count = 1, .datatype = datatype,
		.op = op, .context = context,
	};
	size_t i;

	/* the result has the number of elements: a plain read has no operands */
	for (i = 0; i < result_count && i < KOFI_IOV_MAX; i++)
		rma.count += resultv[i].count;
	return ep->atomic->readwritemsg(ep, &msg, resultv, result_desc,
					result_count,
					READ_ONCE(ep->tx_op_flags) &
					FI_COMPLETION);
}

/**
 * fi_fetch_atomic - change a peer's memory and fetch its old values
 * @ep: an enabled, connected endpoint
 * @buf: the operands; not written to. NULL for %FI_ATOMIC_READ
 * @count: elements
 * @desc: descriptor of the operands, or NULL
 * @result: destination of the old values
 * @result_desc: descriptor of @result, or NULL
 * @dest: peer; ignored on connected endpoints
 * @addr: remote address
 * @key: key of the peer's region
 * @datatype: type of an element
 * @op: operation on each element
 * @context: returned in the completion
 *
 * Context: any.
 * Return: see the head of this file.
 */
static inline ssize_t fi_fetch_atomic(struct fid_ep *ep, const void *buf,
				      size_t count, void *desc, void *result,
				      void *result_desc, fi_addr_t dest,
				      u64 addr, u64 key,
				      enum fi_datatype datatype, enum fi_op op,
				      void *context)
{
	const struct fi_ioc iov = { .addr = (void *)buf, .count = count };
	struct fi_ioc old = { .addr = result, .count = count };

	return fi_fetch_atomicv(ep, &iov, &desc, op != FI_ATOMIC_READ, &old,
				&result_desc, 1, dest, addr, key, datatype, op,
				context);
}

/**
 * fi_fetch_atomicvalid - query the support of fi_fetch_atomic()
 * @ep: an endpoint
 * @datatype: type of an element
 * @op: operation on each element
 * @count: receives the largest number of elements of one operation
 *
 * Context: any.
 * Return: as fi_atomicvalid().
 */
static inline int fi_fetch_atomicvalid(struct fid_ep *ep,
				       enum fi_datatype datatype, enum fi_op op,
				       size_t *count)
{
	return kofi_atomic_valid(ep, datatype, op, FI_FETCH_ATOMIC, count);
}

/* ------------------------------------------------------- compare and swap */

/**
 * fi_compare_atomicmsg - compare, change and fetch, with all
 *	options
 * @ep: an enabled, connected endpoint
 * @msg: operation, peer's memory and operands
 * @comparev: values to compare with, in order; as many as there are elements
 * @compare_desc: one descriptor per segment, or NULL
 * @compare_count: number of segments, at most tx_attr->iov_limit
 * @resultv: destination of the old values, in order; as many as there are elements
 * @result_desc: one descriptor per segment, or NULL
 * @result_count: number of segments, at most tx_attr->iov_limit
 * @flags: as for fi_fetch_atomicmsg()
 *
 * Completes when the old values are in local memory.
 *
 * Context: any.
 * Return: see the head of this file.
 */
static inline ssize_t
fi_compare_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
		     const struct fi_ioc *comparev, void **compare_desc,
		     size_t compare_count, struct fi_ioc *resultv,
		     void **result_desc, size_t result_count, u64 flags)
{
	return ep->atomic->compwritemsg(ep, msg, comparev, compare_desc,
					compare_count, resultv, result_desc,
					result_count, flags);
}

/**
 * fi_compare_atomicv - compare, change and fetch, in several places
 * @ep: an enabled, connected endpoint
 * @iov: the operands, in order
 * @desc: one descriptor per segment, or NULL
 * @count: number of segments, at most tx_attr->iov_limit
 * @comparev: values to compare with, in order
 * @compare_desc: one descriptor per segment, or NULL
 * @compare_count: number of segments, at most tx_attr->iov_limit
 * @resultv: destination of the old values, in order
 * @result_desc: one descriptor per segment, or NULL
 * @result_count: number of segments, at most tx_attr->iov_limit
 * @dest: peer; ignored on connected endpoints
 * @addr: remote address
 * @key: key of the peer's region
 * @datatype: type of an element
 * @op: %FI_CSWAP or a related operation
 * @context: returned in the completion
 *
 * Context: any.
 * Return: see the head of this file.
 */
static inline ssize_t
fi_compare_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
		   size_t count, const struct fi_ioc *comparev,
		   void **compare_desc, size_t compare_count,
		   struct fi_ioc *resultv, void **result_desc,
		   size_t result_count, fi_addr_t dest, u64 addr, u64 key,
		   enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct fi_rma_ioc rma = { .addr = addr, .key = key };
	const struct fi_msg_atomic msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count, .addr = dest,
		.rma_iov = &rma, .rma_iov_count = 1, .datatype = datatype,
		.op = op, .context = context,
	};
	size_t i;

	/* too many are refused with all of them unread */
	for (i = 0; i < count && i < KOFI_IOV_MAX; i++)
		rma.count += iov[i].count;
	return ep->atomic->compwritemsg(ep, &msg, comparev, compare_desc,
					compare_count, resultv, result_desc,
					result_count,
					READ_ONCE(ep->tx_op_flags) &
					FI_COMPLETION);
}

/**
 * fi_compare_atomic - compare, change and fetch
 * @ep: an enabled, connected endpoint
 * @buf: the operands; not written to
 * @count: elements
 * @desc: descriptor of the operands, or NULL
 * @compare: values to compare with; not written to
 * @compare_desc: descriptor of @compare, or NULL
 * @result: destination of the old values
 * @result_desc: descriptor of @result, or NULL
 * @dest: peer; ignored on connected endpoints
 * @addr: remote address
 * @key: key of the peer's region
 * @datatype: type of an element
 * @op: %FI_CSWAP or a related operation
 * @context: returned in the completion
 *
 * Context: any.
 * Return: see the head of this file.
 */
static inline ssize_t
fi_compare_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc,
		  const void *compare, void *compare_desc, void *result,
		  void *result_desc, fi_addr_t dest, u64 addr, u64 key,
		  enum fi_datatype datatype, enum fi_op op, void *context)
{
	const struct fi_ioc iov = { .addr = (void *)buf, .count = count };
	const struct fi_ioc cmp = { .addr = (void *)compare, .count = count };
	struct fi_ioc old = { .addr = result, .count = count };

	return fi_compare_atomicv(ep, &iov, &desc, 1, &cmp, &compare_desc, 1,
				  &old, &result_desc, 1, dest, addr, key,
				  datatype, op, context);
}

/**
 * fi_compare_atomicvalid - query the support of fi_compare_atomic()
 * @ep: an endpoint
 * @datatype: type of an element
 * @op: operation on each element
 * @count: receives the largest number of elements of one operation
 *
 * Context: any.
 * Return: as fi_atomicvalid().
 */
static inline int fi_compare_atomicvalid(struct fid_ep *ep,
					 enum fi_datatype datatype,
					 enum fi_op op, size_t *count)
{
	return kofi_atomic_valid(ep, datatype, op, FI_COMPARE_ATOMIC, count);
}

#endif /* _LINUX_KOFI_FI_ATOMIC_H */

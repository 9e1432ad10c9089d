/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reading and writing a peer's memory (fi_rma(3)).
 *
 * The calls post operations as the calls of fi_endpoint.h do, in any context, and return
 * the errors listed at the head of that file. If the peer refuses an access, for an
 * unknown key or a range beyond the region, the post returns no error; the pages of
 * providers describe the result.
 */
#ifndef _LINUX_KOFI_FI_RMA_H
#define _LINUX_KOFI_FI_RMA_H

#include <linux/kofi/fi_endpoint.h>

/**
 * struct fi_rma_iov - a segment of a peer's memory
 * @addr: remote address: kofi_mr_base() of the peer's region for its first
 *	byte
 * @len: bytes
 * @key: the region's key
 */
struct fi_rma_iov {
	u64	addr;
	size_t	len;
	u64	key;
};

/**
 * struct fi_msg_rma - one read or write
 * @msg_iov: local segments for %KOFI_KVEC
 * @msg_bvec: local segments for %KOFI_BVEC
 * @msg_sgl: local list for %KOFI_SGL and %KOFI_SGL_MAPPED
 * @msg_iter: local iterator for %KOFI_ITER
 * @desc: one local descriptor per segment, or NULL
 * @iov_count: as in struct fi_msg
 * @addr: peer; ignored on connected endpoints
 * @rma_iov: the peer's memory, in order
 * @rma_iov_count: number of its segments, 1 to tx_attr->rma_iov_limit. Their
 *	total length equals the length of the local memory.
 * @context: returned in the completion
 * @data: remote CQ data, for FI_REMOTE_CQ_DATA
 * @vec: which member of the union is set; 0 is %KOFI_KVEC
 *
 * The structure and its arrays are read before the post returns, as with
 * struct fi_msg.
 */
struct fi_msg_rma {
	union {
		const struct kvec	*msg_iov;
		const struct bio_vec	*msg_bvec;
		struct scatterlist	*msg_sgl;
		struct iov_iter		*msg_iter;
	};
	void				**desc;
	size_t				iov_count;
	fi_addr_t			addr;
	const struct fi_rma_iov		*rma_iov;
	size_t				rma_iov_count;
	void				*context;
	u64				data;
	enum kofi_vec			vec;
};

/* A provider fills these; every inline calls one of them. */
struct fi_ops_rma {
	size_t	size;
	ssize_t	(*readmsg)(struct fid_ep *ep, const struct fi_msg_rma *msg,
			   u64 flags);
	ssize_t	(*writemsg)(struct fid_ep *ep, const struct fi_msg_rma *msg,
			    u64 flags);
};

/**
 * fi_readmsg - read from a peer's memory with all options
 * @ep: an enabled, connected endpoint
 * @msg: local and remote memory
 * @flags: FI_COMPLETION, FI_MORE, FI_FENCE. The endpoint's default flags do
 *	not apply.
 *
 * Completes when the bytes are in local memory.
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of fi_endpoint.h.
 */
static inline ssize_t fi_readmsg(struct fid_ep *ep,
				 const struct fi_msg_rma *msg, u64 flags)
{
	return ep->rma->readmsg(ep, msg, flags);
}

/**
 * fi_readv - read from a peer's memory into several kernel buffers
 * @ep: an enabled, connected endpoint
 * @iov: the buffers, filled in order
 * @desc: one descriptor per buffer, or NULL
 * @count: number of buffers, at most tx_attr->iov_limit
 * @src: peer; ignored on connected endpoints
 * @addr: remote address
 * @key: key of the peer's region
 * @context: returned in the completion
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of fi_endpoint.h.
 */
static inline ssize_t fi_readv(struct fid_ep *ep, const struct kvec *iov,
			       void **desc, size_t count, fi_addr_t src,
			       u64 addr, u64 key, void *context)
{
	struct fi_rma_iov rma = { .addr = addr, .key = key };
	const struct fi_msg_rma msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count,
		.addr = src, .rma_iov = &rma, .rma_iov_count = 1,
		.context = context,
	};
	size_t i;

	/* too many are refused with all of them unread */
	for (i = 0; i < count && i < KOFI_IOV_MAX; i++)
		rma.len += iov[i].iov_len;
	return ep->rma->readmsg(ep, &msg, READ_ONCE(ep->tx_op_flags) &
				FI_COMPLETION);
}

/**
 * fi_read - read from a peer's memory into one kernel buffer
 * @ep: an enabled, connected endpoint
 * @buf: the buffer
 * @len: bytes
 * @desc: descriptor of the buffer, or NULL
 * @src: peer; ignored on connected endpoints
 * @addr: remote address
 * @key: key of the peer's region
 * @context: returned in the completion
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of fi_endpoint.h.
 */
static inline ssize_t fi_read(struct fid_ep *ep, void *buf, size_t len,
			      void *desc, fi_addr_t src, u64 addr, u64 key,
			      void *context)
{
	const struct kvec iov = { .iov_base = buf, .iov_len = len };

	return fi_readv(ep, &iov, &desc, 1, src, addr, key, context);
}

/**
 * fi_writemsg - write to a peer's memory with all options
 * @ep: an enabled, connected endpoint
 * @msg: local and remote memory
 * @flags: FI_COMPLETION, FI_INJECT, FI_MORE, FI_FENCE, FI_REMOTE_CQ_DATA and at
 *	most one of FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE and
 *	FI_DELIVERY_COMPLETE. The endpoint's default flags do not apply.
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of fi_endpoint.h.
 */
static inline ssize_t fi_writemsg(struct fid_ep *ep,
				  const struct fi_msg_rma *msg, u64 flags)
{
	return ep->rma->writemsg(ep, msg, flags);
}

/**
 * fi_writev - write several kernel buffers to a peer's memory
 * @ep: an enabled, connected endpoint
 * @iov: the buffers
 * @desc: one descriptor per buffer, or NULL
 * @count: number of buffers, at most tx_attr->iov_limit
 * @dest: peer; ignored on connected endpoints
 * @addr: remote address
 * @key: key of the peer's region
 * @context: returned in the completion
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of fi_endpoint.h.
 */
static inline ssize_t fi_writev(struct fid_ep *ep, const struct kvec *iov,
				void **desc, size_t count, fi_addr_t dest,
				u64 addr, u64 key, void *context)
{
	struct fi_rma_iov rma = { .addr = addr, .key = key };
	const struct fi_msg_rma msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count,
		.addr = dest, .rma_iov = &rma, .rma_iov_count = 1,
		.context = context,
	};
	size_t i;

	/* too many are refused with all of them unread */
	for (i = 0; i < count && i < KOFI_IOV_MAX; i++)
		rma.len += iov[i].iov_len;
	return ep->rma->writemsg(ep, &msg, READ_ONCE(ep->tx_op_flags));
}

/**
 * fi_write - write one kernel buffer to a peer's memory
 * @ep: an enabled, connected endpoint
 * @buf: the bytes; not written to
 * @len: number of bytes
 * @desc: descriptor of the buffer, or NULL
 * @dest: peer; ignored on connected endpoints
 * @addr: remote address
 * @key: key of the peer's region
 * @context: returned in the completion
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of fi_endpoint.h.
 */
static inline ssize_t fi_write(struct fid_ep *ep, const void *buf, size_t len,
			       void *desc, fi_addr_t dest, u64 addr, u64 key,
			       void *context)
{
	const struct kvec iov = { .iov_base = (void *)buf, .iov_len = len };

	return fi_writev(ep, &iov, &desc, 1, dest, addr, key, context);
}

/**
 * fi_writedata - write one kernel buffer, with remote CQ data
 * @ep: an enabled, connected endpoint
 * @buf: the bytes; not written to
 * @len: number of bytes
 * @desc: descriptor of the buffer, or NULL
 * @data: arrives in the data field of a completion at the peer
 * @dest: peer; ignored on connected endpoints
 * @addr: remote address
 * @key: key of the peer's region
 * @context: returned in the completion
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of fi_endpoint.h.
 */
static inline ssize_t fi_writedata(struct fid_ep *ep, const void *buf,
				   size_t len, void *desc, u64 data,
				   fi_addr_t dest, u64 addr, u64 key,
				   void *context)
{
	const struct kvec iov = { .iov_base = (void *)buf, .iov_len = len };
	const struct fi_rma_iov rma = { .addr = addr, .len = len, .key = key };
	const struct fi_msg_rma msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = dest,
		.rma_iov = &rma, .rma_iov_count = 1, .context = context,
		.data = data,
	};

	return ep->rma->writemsg(ep, &msg, READ_ONCE(ep->tx_op_flags) |
				 FI_REMOTE_CQ_DATA);
}

/**
 * fi_inject_writedata - write a copy, with remote CQ data
 * @ep: an enabled, connected endpoint
 * @buf: the bytes; may be reused when the call has returned
 * @len: number of bytes, at most tx_attr->inject_size
 * @data: arrives in the data field of a completion at the peer
 * @dest: peer; ignored on connected endpoints
 * @addr: remote address
 * @key: key of the peer's region
 *
 * Reported as fi_injectdata() is.
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of fi_endpoint.h.
 */
static inline ssize_t fi_inject_writedata(struct fid_ep *ep, const void *buf,
					  size_t len, u64 data, fi_addr_t dest,
					  u64 addr, u64 key)
{
	const struct kvec iov = { .iov_base = (void *)buf, .iov_len = len };
	const struct fi_rma_iov rma = { .addr = addr, .len = len, .key = key };
	const struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = dest,
		.rma_iov = &rma, .rma_iov_count = 1, .data = data,
	};

	return ep->rma->writemsg(ep, &msg, FI_INJECT | KOFI_NO_COMPLETION |
				 FI_REMOTE_CQ_DATA);
}

/**
 * fi_inject_write - write a copy without a completion
 * @ep: an enabled, connected endpoint
 * @buf: the bytes; may be reused when the call has returned
 * @len: number of bytes, at most tx_attr->inject_size
 * @dest: peer; ignored on connected endpoints
 * @addr: remote address
 * @key: key of the peer's region
 *
 * Reported as fi_injectdata() is.
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of fi_endpoint.h.
 */
static inline ssize_t fi_inject_write(struct fid_ep *ep, const void *buf,
				      size_t len, fi_addr_t dest, u64 addr,
				      u64 key)
{
	const struct kvec iov = { .iov_base = (void *)buf, .iov_len = len };
	const struct fi_rma_iov rma = { .addr = addr, .len = len, .key = key };
	const struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = dest,
		.rma_iov = &rma, .rma_iov_count = 1,
	};

	return ep->rma->writemsg(ep, &msg, FI_INJECT | KOFI_NO_COMPLETION);
}

#endif /* _LINUX_KOFI_FI_RMA_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tagged messages (fi_tagged(3)): each message carries a tag, and a receive
 * takes the oldest message with a tag that equals its own in all bits it does not
 * ignore. Tagged receives match tagged messages only, and untagged receives untagged ones.
 *
 * The calls post operations as the calls of fi_endpoint.h do, in any context, and return
 * the errors listed at the head of that file.
 */
#ifndef _LINUX_KOFI_FI_TAGGED_H
#define _LINUX_KOFI_FI_TAGGED_H

#include <linux/kofi/fi_endpoint.h>

/* Bits of a tag of the format FI_TAG_MPI that a receive may ignore */
#define FI_MPI_IGNORE_TAG	((u64)U32_MAX)
#define FI_MPI_IGNORE_PAYLOAD	((u64)U8_MAX << 32)

/**
 * fi_tag_mpi - a tag of the format FI_TAG_MPI
 * @tag: value that receives match
 * @payload_id: kind of the message
 *
 * Return: the tag.
 */
static inline u64 fi_tag_mpi(int tag, u8 payload_id)
{
	return (u64)payload_id << 32 | (u32)tag;
}

/**
 * struct fi_msg_tagged - one tagged operation
 * @msg_iov: segments for %KOFI_KVEC
 * @msg_bvec: segments for %KOFI_BVEC
 * @msg_sgl: list for %KOFI_SGL and %KOFI_SGL_MAPPED
 * @msg_iter: iterator for %KOFI_ITER
 * @desc: one local descriptor per segment, or NULL
 * @iov_count: as in struct fi_msg
 * @addr: peer; ignored on connected endpoints, but for receives of an endpoint
 *	with FI_DIRECTED_RECV
 * @tag: the tag
 * @ignore: receives: bits of the tag that need not match
 * @context: returned in the completion
 * @data: remote CQ data, for FI_REMOTE_CQ_DATA
 * @vec: which member of the union is set; 0 is %KOFI_KVEC
 */
struct fi_msg_tagged {
	union {
		const struct kvec	*msg_iov;
		const struct bio_vec	*msg_bvec;
		struct scatterlist	*msg_sgl;
		struct iov_iter		*msg_iter;
	};
	void				**desc;
	size_t				iov_count;
	fi_addr_t			addr;
	u64				tag;
	u64				ignore;
	void				*context;
	u64				data;
	enum kofi_vec			vec;
};

/* A provider fills these; every inline calls one of them. */
struct fi_ops_tagged {
	size_t	size;
	ssize_t	(*sendmsg)(struct fid_ep *ep, const struct fi_msg_tagged *msg,
			   u64 flags);
	ssize_t	(*recvmsg)(struct fid_ep *ep, const struct fi_msg_tagged *msg,
			   u64 flags);
};

/**
 * fi_trecvmsg - post memory for one tagged message, or look for one
 * @ep: an enabled endpoint, or a shared receive context
 * @msg: the memory, and which messages it is for
 * @flags: FI_COMPLETION, FI_MORE; FI_MULTI_RECV, as in fi_recvmsg(), for memory that
 *	takes many messages with such tags, on endpoints with the capability
 *	FI_TAGGED_MULTI_RECV; or one of:
 *	FI_PEEK looks for a message that has arrived and found no receive. It
 *	completes at once, with the message's length, tag and data, or with the
 *	error FI_ENOMSG. The memory is not used.
 *	FI_PEEK with FI_CLAIM also keeps the message for a receive with FI_CLAIM
 *	and the same context.
 *	FI_CLAIM takes that message.
 *	FI_DISCARD with FI_PEEK or FI_CLAIM throws the message away.
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of fi_endpoint.h; -EINVAL also
 * for FI_CLAIM with a context that holds no message.
 */
static inline ssize_t fi_trecvmsg(struct fid_ep *ep,
				  const struct fi_msg_tagged *msg, u64 flags)
{
	return ep->tagged->recvmsg(ep, msg, flags);
}

/**
 * fi_trecvv - post several kernel buffers for one tagged message
 * @ep: an enabled endpoint, or a shared receive context
 * @iov: the buffers, filled in order
 * @desc: one descriptor per buffer, or NULL
 * @count: number of buffers, at most rx_attr->iov_limit
 * @src: peer the message must come from, or FI_ADDR_UNSPEC; ignored without
 *	FI_DIRECTED_RECV
 * @tag: the tag
 * @ignore: bits of the tag that need not match
 * @context: returned in the completion
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of fi_endpoint.h.
 */
static inline ssize_t fi_trecvv(struct fid_ep *ep, const struct kvec *iov,
				void **desc, size_t count, fi_addr_t src,
				u64 tag, u64 ignore, void *context)
{
	const struct fi_msg_tagged msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count, .addr = src,
		.tag = tag, .ignore = ignore, .context = context,
	};

	return ep->tagged->recvmsg(ep, &msg, READ_ONCE(ep->rx_op_flags) &
				   FI_COMPLETION);
}

/**
 * fi_trecv - post a kernel buffer for one tagged message
 * @ep: an enabled endpoint, or a shared receive context
 * @buf: the buffer
 * @len: size of the buffer; a longer message is truncated and completes with FI_ETRUNC
 * @desc: descriptor of the buffer, or NULL
 * @src: peer the message must come from, or FI_ADDR_UNSPEC; ignored without
 *	FI_DIRECTED_RECV
 * @tag: the tag
 * @ignore: bits of the tag that need not match
 * @context: returned in the completion
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of fi_endpoint.h.
 */
static inline ssize_t fi_trecv(struct fid_ep *ep, void *buf, size_t len,
			       void *desc, fi_addr_t src, u64 tag, u64 ignore,
			       void *context)
{
	const struct kvec iov = { .iov_base = buf, .iov_len = len };

	return fi_trecvv(ep, &iov, &desc, 1, src, tag, ignore, context);
}

/**
 * fi_tsendmsg - send a tagged message with all options
 * @ep: an enabled, connected endpoint
 * @msg: the message and its tag; its memory stays untouched until the
 *	completion
 * @flags: as fi_sendmsg()
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of fi_endpoint.h.
 */
static inline ssize_t fi_tsendmsg(struct fid_ep *ep,
				  const struct fi_msg_tagged *msg, u64 flags)
{
	return ep->tagged->sendmsg(ep, msg, flags);
}

/**
 * fi_tsendv - send several kernel buffers as one tagged message
 * @ep: an enabled, connected endpoint
 * @iov: the buffers
 * @desc: one descriptor per buffer, or NULL
 * @count: number of buffers, at most tx_attr->iov_limit
 * @dest: peer; ignored on connected endpoints
 * @tag: the tag
 * @context: returned in the completion
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of fi_endpoint.h.
 */
static inline ssize_t fi_tsendv(struct fid_ep *ep, const struct kvec *iov,
				void **desc, size_t count, fi_addr_t dest,
				u64 tag, void *context)
{
	const struct fi_msg_tagged msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count,
		.addr = dest, .tag = tag, .context = context,
	};

	return ep->tagged->sendmsg(ep, &msg, READ_ONCE(ep->tx_op_flags));
}

/**
 * fi_tsend - send one kernel buffer as a tagged message
 * @ep: an enabled, connected endpoint
 * @buf: the bytes; not written to
 * @len: number of bytes
 * @desc: descriptor of the buffer, or NULL
 * @dest: peer; ignored on connected endpoints
 * @tag: the tag
 * @context: returned in the completion
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of fi_endpoint.h.
 */
static inline ssize_t fi_tsend(struct fid_ep *ep, const void *buf, size_t len,
			       void *desc, fi_addr_t dest, u64 tag,
			       void *context)
{
	const struct kvec iov = { .iov_base = (void *)buf, .iov_len = len };

	return fi_tsendv(ep, &iov, &desc, 1, dest, tag, context);
}

/**
 * fi_tsenddata - send a tagged message, with remote CQ data
 * @ep: an enabled, connected endpoint
 * @buf: the bytes; not written to
 * @len: number of bytes
 * @desc: descriptor of the buffer, or NULL
 * @data: arrives in the data field of the peer's receive completion
 * @dest: peer; ignored on connected endpoints
 * @tag: the tag
 * @context: returned in the completion
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of fi_endpoint.h.
 */
static inline ssize_t fi_tsenddata(struct fid_ep *ep, const void *buf,
				   size_t len, void *desc, u64 data,
				   fi_addr_t dest, u64 tag, void *context)
{
	const struct kvec iov = { .iov_base = (void *)buf, .iov_len = len };
	const struct fi_msg_tagged msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = dest,
		.tag = tag, .context = context, .data = data,
	};

	return ep->tagged->sendmsg(ep, &msg, READ_ONCE(ep->tx_op_flags) |
				   FI_REMOTE_CQ_DATA);
}

/**
 * fi_tinjectdata - send a tagged copy, with remote CQ data
 * @ep: an enabled, connected endpoint
 * @buf: the bytes; may be reused when the call has returned
 * @len: number of bytes, at most tx_attr->inject_size
 * @data: arrives in the data field of the peer's receive completion
 * @dest: peer; ignored on connected endpoints
 * @tag: the tag
 *
 * Reported as fi_injectdata() is.
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of fi_endpoint.h.
 */
static inline ssize_t fi_tinjectdata(struct fid_ep *ep, const void *buf,
				     size_t len, u64 data, fi_addr_t dest,
				     u64 tag)
{
	const struct kvec iov = { .iov_base = (void *)buf, .iov_len = len };
	const struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = dest, .tag = tag,
		.data = data,
	};

	return ep->tagged->sendmsg(ep, &msg, FI_INJECT | KOFI_NO_COMPLETION |
				   FI_REMOTE_CQ_DATA);
}

/**
 * fi_tinject - send a tagged copy without a completion
 * @ep: an enabled, connected endpoint
 * @buf: the bytes; may be reused when the call has returned
 * @len: number of bytes, at most tx_attr->inject_size
 * @dest: peer; ignored on connected endpoints
 * @tag: the tag
 *
 * Reported as fi_injectdata() is.
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of fi_endpoint.h.
 */
static inline ssize_t fi_tinject(struct fid_ep *ep, const void *buf, size_t len,
				 fi_addr_t dest, u64 tag)
{
	const struct kvec iov = { .iov_base = (void *)buf, .iov_len = len };
	const struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = dest, .tag = tag,
	};

	return ep->tagged->sendmsg(ep, &msg, FI_INJECT | KOFI_NO_COMPLETION);
}

#endif /* _LINUX_KOFI_FI_TAGGED_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Endpoints and messages (fi_endpoint(3), fi_msg(3)).
 *
 * The posting calls are inlines that describe the operation in a struct
 * fi_msg on the stack and make one indirect call into the provider. They may
 * be called from any context, never sleep, and either accept the operation
 * (0, exactly one completion will follow) or return an error and will never
 * report it again:
 *
 *   -EAGAIN		no room now, or a transmit between fi_accept() and FI_CONNECTED;
 *			retry after a completion or the write-space callback
 *			(kofi_ep_write_space())
 *   -FI_EOPBADSTATE	the endpoint has not been enabled
 *   -ENOTCONN		a transmit on an endpoint never connected
 *   -ESHUTDOWN		the connection is gone
 *   -EMSGSIZE		longer than ep_attr->max_msg_size
 *   -EINVAL		too many segments, an inject beyond inject_size, or a peer
 *			the address vector does not know
 *   -ENOMEM		no memory for the first operation to a peer of an unconnected endpoint
 *   -ENETDOWN		the interface of an unconnected endpoint is gone
 *   -EFAULT		the device cannot address the memory
 *   -FI_EBADFLAGS	a flag the operation does not know
 *   -FI_ENOCQ		no completion queue is bound for this direction
 *   -EOPNOTSUPP, -ENOSYS	the connection or endpoint does not have this operation
 */
#ifndef _LINUX_KOFI_FI_ENDPOINT_H
#define _LINUX_KOFI_FI_ENDPOINT_H

#include <linux/compiler.h>
#include <linux/uio.h>

#include <linux/kofi/fi_domain.h>

struct fi_ops_cm;
struct fi_ops_tagged;
struct fi_ops_rma;
struct fi_ops_atomic;

/**
 * struct fi_msg - one message operation
 * @msg_iov: segments for %KOFI_KVEC
 * @msg_bvec: segments for %KOFI_BVEC
 * @msg_sgl: list for %KOFI_SGL and %KOFI_SGL_MAPPED
 * @msg_iter: iterator for %KOFI_ITER
 * @desc: one local descriptor per segment (fi_mr_desc()), or NULL
 * @iov_count: number of segments; for the scatterlist kinds the number of
 *	entries, for %KOFI_ITER it is ignored
 * @addr: peer; ignored on connected endpoints
 * @context: returned in the completion
 * @data: remote CQ data, for FI_REMOTE_CQ_DATA
 * @inv_key: key of the peer's single-use region that this message invalidates, for
 *	KOFI_REMOTE_INV
 * @vec: which member of the union is set; 0 is %KOFI_KVEC
 *
 * The structure and its kvec or bvec array of up to 16 segments are read before the
 * post returns and may be on the stack. The memory they describe belongs to the provider
 * until the completion.
 */
struct fi_msg {
	union {
		const struct kvec	*msg_iov;
		const struct bio_vec	*msg_bvec;
		struct scatterlist	*msg_sgl;
		struct iov_iter		*msg_iter;
	};
	void			**desc;
	size_t			iov_count;
	fi_addr_t		addr;
	void			*context;
	u64			data;
	u64			inv_key;
	enum kofi_vec		vec;
};

/*
 * Most segments of an array that the post copies, and of any kvec array. Where
 * iov_limit is larger, the consumer must keep a longer bvec array until the completion, as
 * it keeps scatterlists.
 */
#define KOFI_IOV_MAX	16

enum {
	FI_OPT_ENDPOINT,
};

enum {
	FI_OPT_MIN_MULTI_RECV,		/* size_t */
	FI_OPT_CM_DATA_SIZE,		/* size_t, read only */
	FI_OPT_BUFFERED_MIN,
	FI_OPT_BUFFERED_LIMIT,
	FI_OPT_SEND_BUF_SIZE,		/* size_t, bytes */
	FI_OPT_RECV_BUF_SIZE,		/* size_t, bytes */
	FI_OPT_TX_SIZE,			/* size_t, operations */
	FI_OPT_RX_SIZE,			/* size_t, operations */
	FI_OPT_FI_HMEM_P2P,
	FI_OPT_XPU_TRIGGER,
	FI_OPT_CUDA_API_PERMITTED,
	FI_OPT_SHARED_MEMORY_PERMITTED,
	FI_OPT_MAX_MSG_SIZE,		/* size_t, bytes */
	FI_OPT_MAX_TAGGED_SIZE,		/* size_t, bytes, read only */
	FI_OPT_MAX_RMA_SIZE,		/* size_t, bytes, read only */
	FI_OPT_MAX_ATOMIC_SIZE,		/* size_t, bytes, read only */
	FI_OPT_INJECT_MSG_SIZE,		/* size_t, bytes */
	FI_OPT_INJECT_TAGGED_SIZE,	/* size_t, bytes, read only */
	FI_OPT_INJECT_RMA_SIZE,		/* size_t, bytes, read only */
	FI_OPT_INJECT_ATOMIC_SIZE,	/* size_t, bytes, read only */
};

struct fi_ops_ep {
	size_t	size;
	int	(*getopt)(fid_t fid, int level, int optname, void *optval,
			  size_t *optlen);
	int	(*setopt)(fid_t fid, int level, int optname,
			  const void *optval, size_t optlen);
};

/* A provider fills these; every posting inline calls one of them. */
struct fi_ops_msg {
	size_t	size;
	ssize_t	(*sendmsg)(struct fid_ep *ep, const struct fi_msg *msg,
			   u64 flags);
	ssize_t	(*recvmsg)(struct fid_ep *ep, const struct fi_msg *msg,
			   u64 flags);
	ssize_t	(*cancel)(struct fid_ep *ep, void *context);
};

struct fid_ep {
	struct fi_fid			fid;
	const struct fi_ops_ep		*ops;
	const struct fi_ops_cm		*cm;
	const struct fi_ops_msg		*msg;
	const struct fi_ops_tagged	*tagged;
	const struct fi_ops_rma		*rma;
	const struct fi_ops_atomic	*atomic;
	/* one word each, set and read without a lock; a change concerns later posts */
	u64				tx_op_flags;
	u64				rx_op_flags;
};

struct fid_pep {
	struct fi_fid			fid;
	const struct fi_ops_ep		*ops;
	const struct fi_ops_cm		*cm;
};

int fi_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
		  struct fid_pep **pep, void *context);
int fi_pep_bind(struct fid_pep *pep, struct fi_fid *bfid, u64 flags);
int fi_endpoint(struct fid_domain *domain, struct fi_info *info,
		struct fid_ep **ep, void *context);
int fi_endpoint2(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **ep, u64 flags, void *context);
int fi_srx_context(struct fid_domain *domain, struct fi_rx_attr *attr,
		   struct fid_ep **srx, void *context);
int fi_scalable_ep(struct fid_domain *domain, struct fi_info *info,
		   struct fid_ep **sep, void *context);
int fi_scalable_ep_bind(struct fid_ep *sep, struct fi_fid *bfid, u64 flags);
int fi_tx_context(struct fid_ep *sep, int idx, struct fi_tx_attr *attr,
		  struct fid_ep **tx_ep, void *context);
int fi_rx_context(struct fid_ep *sep, int idx, struct fi_rx_attr *attr,
		  struct fid_ep **rx_ep, void *context);
int fi_ep_bind(struct fid_ep *ep, struct fi_fid *bfid, u64 flags);
int fi_enable(struct fid_ep *ep);
int fi_setopt(fid_t fid, int level, int optname, const void *optval,
	      size_t optlen);
int fi_getopt(fid_t fid, int level, int optname, void *optval,
	      size_t *optlen);

/*
 * Flag of fi_inject() and its variants, which report no success. No default flag
 * of the endpoint applies to them.
 */
#define KOFI_NO_COMPLETION	BIT_ULL(60)

/**
 * fi_sendmsg - send a message with all options
 * @ep: an enabled, connected endpoint
 * @msg: the message; its memory stays untouched until the completion
 * @flags: FI_COMPLETION, FI_INJECT, FI_MORE, FI_FENCE, FI_REMOTE_CQ_DATA,
 *	KOFI_REMOTE_INV and at most one of FI_INJECT_COMPLETE,
 *	FI_TRANSMIT_COMPLETE and FI_DELIVERY_COMPLETE. The endpoint's default
 *	flags do not apply.
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of this file.
 */
static inline ssize_t fi_sendmsg(struct fid_ep *ep, const struct fi_msg *msg,
				 u64 flags)
{
	return ep->msg->sendmsg(ep, msg, flags);
}

/**
 * fi_sendv - send several kernel buffers as one message
 * @ep: an enabled, connected endpoint
 * @iov: the buffers
 * @desc: one descriptor per buffer, or NULL
 * @count: number of buffers, at most tx_attr->iov_limit
 * @dest: peer; ignored on connected endpoints
 * @context: returned in the completion
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of this file.
 */
static inline ssize_t fi_sendv(struct fid_ep *ep, const struct kvec *iov,
			       void **desc, size_t count, fi_addr_t dest,
			       void *context)
{
	const struct fi_msg msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count,
		.addr = dest, .context = context,
		/* named, as otherwise a part of it is cleared first */
		.data = 0, .inv_key = 0, .vec = KOFI_KVEC,
	};

	return ep->msg->sendmsg(ep, &msg, READ_ONCE(ep->tx_op_flags));
}

/**
 * fi_send - send one kernel buffer as a message
 * @ep: an enabled, connected endpoint
 * @buf: the bytes; not written to
 * @len: number of bytes, 0 is a message without payload
 * @desc: descriptor of the buffer, or NULL
 * @dest: peer; ignored on connected endpoints
 * @context: returned in the completion
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of this file.
 */
static inline ssize_t fi_send(struct fid_ep *ep, const void *buf, size_t len,
			      void *desc, fi_addr_t dest, void *context)
{
	const struct kvec iov = { .iov_base = (void *)buf, .iov_len = len };

	return fi_sendv(ep, &iov, &desc, 1, dest, context);
}

/**
 * fi_senddata - send one kernel buffer, with remote CQ data
 * @ep: an enabled, connected endpoint
 * @buf: the bytes; not written to
 * @len: number of bytes
 * @desc: descriptor of the buffer, or NULL
 * @data: arrives in the data field of the peer's receive completion; as many
 *	low bytes count as domain_attr->cq_data_size says
 * @dest: peer; ignored on connected endpoints
 * @context: returned in the completion
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of this file.
 */
static inline ssize_t fi_senddata(struct fid_ep *ep, const void *buf,
				  size_t len, void *desc, u64 data,
				  fi_addr_t dest, void *context)
{
	const struct kvec iov = { .iov_base = (void *)buf, .iov_len = len };
	const struct fi_msg msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1,
		.addr = dest, .context = context, .data = data,
	};

	return ep->msg->sendmsg(ep, &msg, READ_ONCE(ep->tx_op_flags) |
				FI_REMOTE_CQ_DATA);
}

/**
 * fi_injectdata - send a copy, with remote CQ data
 * @ep: an enabled, connected endpoint
 * @buf: the bytes; may be reused when the call has returned
 * @len: number of bytes, at most tx_attr->inject_size
 * @data: arrives in the data field of the peer's receive completion
 * @dest: peer; ignored on connected endpoints
 *
 * Success is not reported. A failure is an error entry with a NULL context on
 * a queue that is read, and counts in the endpoint's errors where the queue
 * calls back.
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of this file.
 */
static inline ssize_t fi_injectdata(struct fid_ep *ep, const void *buf,
				    size_t len, u64 data, fi_addr_t dest)
{
	const struct kvec iov = { .iov_base = (void *)buf, .iov_len = len };
	const struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = dest, .data = data,
	};

	return ep->msg->sendmsg(ep, &msg, FI_INJECT | KOFI_NO_COMPLETION |
				FI_REMOTE_CQ_DATA);
}

/**
 * fi_inject - send a copy without a completion
 * @ep: an enabled, connected endpoint
 * @buf: the bytes; may be reused when the call has returned
 * @len: number of bytes, at most tx_attr->inject_size
 * @dest: peer; ignored on connected endpoints
 *
 * Reported as fi_injectdata() is.
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of this file.
 */
static inline ssize_t fi_inject(struct fid_ep *ep, const void *buf, size_t len,
				fi_addr_t dest)
{
	const struct kvec iov = { .iov_base = (void *)buf, .iov_len = len };
	const struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = dest,
	};

	return ep->msg->sendmsg(ep, &msg, FI_INJECT | KOFI_NO_COMPLETION);
}

/**
 * fi_recvmsg - post memory for one message with all options
 * @ep: an enabled endpoint, it need not be connected yet; or a shared receive
 *	context
 * @msg: the memory
 * @flags: FI_COMPLETION, FI_MORE, and FI_MULTI_RECV for memory that takes many
 *	messages one after the other: each completes with its address in buf,
 *	and FI_MULTI_RECV in the flags of the last returns the memory to the
 *	consumer. The endpoint's default flags do not apply.
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of this file.
 */
static inline ssize_t fi_recvmsg(struct fid_ep *ep, const struct fi_msg *msg,
				 u64 flags)
{
	return ep->msg->recvmsg(ep, msg, flags);
}

/**
 * fi_recvv - post several kernel buffers for one message
 * @ep: an enabled endpoint
 * @iov: the buffers, filled in order
 * @desc: one descriptor per buffer, or NULL
 * @count: number of buffers, at most rx_attr->iov_limit
 * @src: peer; ignored on connected endpoints
 * @context: returned in the completion
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of this file.
 */
static inline ssize_t fi_recvv(struct fid_ep *ep, const struct kvec *iov,
			       void **desc, size_t count, fi_addr_t src,
			       void *context)
{
	const struct fi_msg msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count,
		.addr = src, .context = context,
		/* named, as otherwise a part of it is cleared first */
		.data = 0, .inv_key = 0, .vec = KOFI_KVEC,
	};

	return ep->msg->recvmsg(ep, &msg, READ_ONCE(ep->rx_op_flags));
}

/**
 * fi_recv - post a kernel buffer for one message
 * @ep: an enabled endpoint
 * @buf: the buffer
 * @len: size of the buffer; a longer message is truncated and completes with FI_ETRUNC
 * @desc: descriptor of the buffer, or NULL
 * @src: peer; ignored on connected endpoints
 * @context: returned in the completion
 *
 * Context: any.
 * Return: 0 or an error of the list at the head of this file.
 */
static inline ssize_t fi_recv(struct fid_ep *ep, void *buf, size_t len,
			      void *desc, fi_addr_t src, void *context)
{
	const struct kvec iov = { .iov_base = buf, .iov_len = len };

	return fi_recvv(ep, &iov, &desc, 1, src, context);
}

ssize_t fi_cancel(fid_t fid, void *context);

#endif /* _LINUX_KOFI_FI_ENDPOINT_H */

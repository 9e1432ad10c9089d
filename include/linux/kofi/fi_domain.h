/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Domains: one network or RDMA device as a container of resources (fi_domain(3)),
 * memory regions (fi_mr(3)) and address vectors (fi_av(3)).
 */
#ifndef _LINUX_KOFI_FI_DOMAIN_H
#define _LINUX_KOFI_FI_DOMAIN_H

#include <linux/compiler.h>

#include <linux/kofi/fi_eq.h>

struct bio_vec;
struct fi_atomic_attr;
struct fid_av;
struct fid_domain;
struct fid_ep;
struct fid_mr;
struct iov_iter;
struct kofi_cq_attr;
struct kvec;
struct page;
struct scatterlist;

/**
 * enum kofi_vec - kind of the memory vector of an operation or a region
 * @KOFI_KVEC: kernel virtual addresses, also of vmalloc. Segments are copied
 *	by the post.
 * @KOFI_BVEC: pages. Up to 16 segments are copied by the post; a longer array lives
 *	until the completion.
 * @KOFI_SGL: a scatterlist that is not mapped for DMA; it lives until the
 *	completion
 * @KOFI_SGL_MAPPED: a scatterlist mapped for the device of the domain
 * @KOFI_ITER: a kernel iov_iter. It is copied; its segments must live until
 *	the completion. User-backed iterators are refused.
 * @KOFI_PAGES: an array of pages, for registration only
 */
enum kofi_vec {
	KOFI_KVEC,
	KOFI_BVEC,
	KOFI_SGL,
	KOFI_SGL_MAPPED,
	KOFI_ITER,
	KOFI_PAGES,
};

/* ------------------------------------------------------- atomic operations */

/* Values are libfabric's. No provider supports FI_FLOAT and the following. */
enum fi_datatype {
	FI_INT8,
	FI_UINT8,
	FI_INT16,
	FI_UINT16,
	FI_INT32,
	FI_UINT32,
	FI_INT64,
	FI_UINT64,
	FI_FLOAT,
	FI_DOUBLE,
	FI_FLOAT_COMPLEX,
	FI_DOUBLE_COMPLEX,
	FI_LONG_DOUBLE,
	FI_LONG_DOUBLE_COMPLEX,
	FI_INT128,
	FI_UINT128,
};

enum fi_op {
	FI_MIN,
	FI_MAX,
	FI_SUM,
	FI_PROD,
	FI_LOR,
	FI_LAND,
	FI_BOR,
	FI_BAND,
	FI_LXOR,
	FI_BXOR,
	FI_ATOMIC_READ,
	FI_ATOMIC_WRITE,
	FI_CSWAP,
	FI_CSWAP_NE,
	FI_CSWAP_LE,
	FI_CSWAP_LT,
	FI_CSWAP_GE,
	FI_CSWAP_GT,
	FI_MSWAP,
	FI_DIFF,
};

/* ----------------------------------------------------------- memory regions */

/* fi_mr_regattr(), kofi_mr_map() */
#define FI_MR_DMABUF		BIT_ULL(40)
#define FI_MR_SINGLE_USE	BIT_ULL(41)

/**
 * struct fi_mr_attr - attributes of a region
 * @mr_iov: segments for %KOFI_KVEC
 * @mr_bvec: segments for %KOFI_BVEC
 * @mr_sgl: list for %KOFI_SGL
 * @mr_iter: iterator for %KOFI_ITER
 * @mr_pages: pages for %KOFI_PAGES
 * @iov_count: number of segments, entries or pages; ignored for %KOFI_ITER. 0
 *	makes a region of length 0
 * @access: FI_SEND, FI_RECV, FI_READ, FI_WRITE for local use, FI_REMOTE_READ
 *	and FI_REMOTE_WRITE for access by peers
 * @offset: must be 0
 * @requested_key: the region's key in a domain with mr_mode without
 *	FI_MR_PROV_KEY, otherwise ignored
 * @context: stored in fid.context
 * @auth_key_size: must be 0
 * @auth_key: ignored
 * @vec: which member of the union is set; 0 is %KOFI_KVEC
 * @base: remote address of the first byte, 0 with providers that choose the
 *	address; kofi_mr_base() returns it
 * @page_offset: %KOFI_PAGES: first byte in the first page
 * @page_len: %KOFI_PAGES: length of the region in bytes
 *
 * The caller may free the arrays when the call has returned. The memory must live
 * until the region is closed, and so must the kernel mapping of %KOFI_KVEC
 * segments, which software providers use. With FI_REMOTE_WRITE the mapping must be
 * writable.
 */
struct fi_mr_attr {
	union {
		const struct kvec	*mr_iov;
		const struct bio_vec	*mr_bvec;
		struct scatterlist	*mr_sgl;
		struct iov_iter		*mr_iter;
		struct page		**mr_pages;
	};
	size_t			iov_count;
	u64			access;
	u64			offset;
	u64			requested_key;
	void			*context;
	size_t			auth_key_size;
	u8			*auth_key;
	enum kofi_vec		vec;
	u64			base;
	size_t			page_offset;
	size_t			page_len;
};

struct fid_mr {
	struct fi_fid		fid;
	void			*mem_desc;
	u64			key;
};

/*
 * Objects that a provider's domain can open. The core implements queues and counters:
 * a provider sets cq_open only to add state of its own to the core's
 * queue. query_atomic sets the largest number of elements, in any context; the core has
 * checked that the operation exists. Providers use kofi_mr_regattr() and kofi_srx_open()
 * for the core's regions and shared receive contexts.
 */
struct fi_ops_domain {
	size_t	size;
	int	(*endpoint)(struct fid_domain *domain, struct fi_info *info,
			    struct fid_ep **ep, void *context);
	int	(*cq_open)(struct fid_domain *domain, struct fi_cq_attr *attr,
			   const struct kofi_cq_attr *kattr,
			   struct fid_cq **cq, void *context);
	int	(*mr_regattr)(struct fid_domain *domain,
			      const struct fi_mr_attr *attr, u64 flags,
			      struct fid_mr **mr);
	int	(*srx_context)(struct fid_domain *domain,
			       struct fi_rx_attr *attr, struct fid_ep **srx,
			       void *context);
	int	(*query_atomic)(struct fid_domain *domain,
				enum fi_datatype datatype, enum fi_op op,
				struct fi_atomic_attr *attr, u64 flags);
};

struct fid_domain {
	struct fi_fid			fid;
	const struct fi_ops_domain	*ops;
};

int fi_domain(struct fid_fabric *fabric, struct fi_info *info,
	      struct fid_domain **domain, void *context);
int fi_domain2(struct fid_fabric *fabric, struct fi_info *info,
	       struct fid_domain **domain, u64 flags, void *context);
int fi_domain_bind(struct fid_domain *domain, struct fi_fid *eq, u64 flags);

int fi_mr_reg(struct fid_domain *domain, const void *buf, size_t len,
	      u64 access, u64 offset, u64 requested_key, u64 flags,
	      struct fid_mr **mr, void *context);
int fi_mr_regv(struct fid_domain *domain, const struct kvec *iov, size_t count,
	       u64 access, u64 offset, u64 requested_key, u64 flags,
	       struct fid_mr **mr, void *context);
int fi_mr_regattr(struct fid_domain *domain, const struct fi_mr_attr *attr,
		  u64 flags, struct fid_mr **mr);
int fi_mr_bind(struct fid_mr *mr, struct fi_fid *bfid, u64 flags);
int fi_mr_enable(struct fid_mr *mr);

/**
 * fi_mr_desc - local descriptor of a region
 * @mr: the region
 *
 * fi_mr(3). No provider needs descriptors: NULL may be passed for each of them.
 *
 * Context: any.
 * Return: the descriptor.
 */
static inline void *fi_mr_desc(struct fid_mr *mr)
{
	return mr->mem_desc;
}

/**
 * fi_mr_key - key that lets a peer access a region
 * @mr: an enabled region
 *
 * fi_mr(3).
 *
 * Context: any.
 * Return: the key, FI_KEY_NOTAVAIL for a region that is not enabled or mapped.
 */
static inline u64 fi_mr_key(struct fid_mr *mr)
{
	return READ_ONCE(mr->key);
}

/* --------------------------------------------------------- address vectors */

/* fi_av_open() */
#define FI_SYMMETRIC		BIT_ULL(59)
/* fi_av_insert() */
#define FI_SYNC_ERR		BIT_ULL(58)

/**
 * struct fi_av_attr - attributes of an address vector
 * @type: FI_AV_TABLE or FI_AV_MAP; FI_AV_UNSPEC is FI_AV_TABLE
 * @rx_ctx_bits: upper bits of an fi_addr_t that name a receive context, at most
 *	16
 * @count: expected number of addresses; ignored
 * @ep_per_node: expected number of addresses per host; ignored
 * @name: must be NULL
 * @map_addr: must be NULL
 * @flags: FI_EVENT, FI_SYMMETRIC, FI_AV_USER_ID
 */
struct fi_av_attr {
	enum fi_av_type		type;
	int			rx_ctx_bits;
	size_t			count;
	size_t			ep_per_node;
	const char		*name;
	void			*map_addr;
	u64			flags;
};

struct fid_av {
	struct fi_fid		fid;
};

int fi_av_open(struct fid_domain *domain, const struct fi_av_attr *attr,
	       struct fid_av **av, void *context);
int fi_av_bind(struct fid_av *av, struct fi_fid *eq, u64 flags);
int fi_av_insert(struct fid_av *av, const void *addr, size_t count,
		 fi_addr_t *fi_addr, u64 flags, void *context);
int fi_av_insertsvc(struct fid_av *av, const char *node, const char *service,
		    fi_addr_t *fi_addr, u64 flags, void *context);
int fi_av_insertsym(struct fid_av *av, const char *node, size_t nodecnt,
		    const char *service, size_t svccnt, fi_addr_t *fi_addr,
		    u64 flags, void *context);
int fi_av_remove(struct fid_av *av, const fi_addr_t *fi_addr, size_t count,
		 u64 flags);
int fi_av_lookup(struct fid_av *av, fi_addr_t fi_addr, void *addr,
		 size_t *addrlen);
const char *fi_av_straddr(struct fid_av *av, const void *addr, char *buf,
			  size_t *len);
int fi_av_set_user_id(struct fid_av *av, fi_addr_t fi_addr, fi_addr_t user_id,
		      u64 flags);

/**
 * fi_rx_addr - name a receive context of a peer
 * @fi_addr: number of the peer's address
 * @rx_index: number of the receive context
 * @rx_ctx_bits: fi_av_attr.rx_ctx_bits of the address vector
 *
 * fi_av(3).
 *
 * Context: any.
 * Return: the address to send to, which is also the source of completions.
 */
static inline fi_addr_t fi_rx_addr(fi_addr_t fi_addr, int rx_index,
				   int rx_ctx_bits)
{
	return rx_ctx_bits ? (u64)rx_index << (64 - rx_ctx_bits) | fi_addr :
			     fi_addr;
}

#endif /* _LINUX_KOFI_FI_DOMAIN_H */

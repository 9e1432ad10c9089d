/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the core offers to providers beside what they implement.
 *
 * A provider whose device does not do it itself takes from here: addresses,
 * cursors over memory vectors, records of operations, queues of posted
 * receives, shared receive contexts, and accesses of peers to memory regions,
 * atomic ones among them. None of it is needed to be a provider; see provider.h for that.
 */
#ifndef _LINUX_KOFI_LIB_H
#define _LINUX_KOFI_LIB_H

#include <linux/if.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/overflow.h>
#include <linux/scatterlist.h>
#include <linux/skbuff.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>

#include <linux/kofi/freelist.h>
#include <linux/kofi/provider.h>

/* -------------------------------------------------------------- addresses */

int kofi_info_resolve(const char *node, const char *service, u64 flags,
		      const struct fi_info *hints,
		      struct sockaddr_storage *src,
		      struct sockaddr_storage *dest);

/* An IP address of either family; or zero, which is none */
union kofi_ip {
	struct sockaddr		sa;
	struct sockaddr_in	in4;
	struct sockaddr_in6	in6;
};

size_t kofi_ip_len(const struct sockaddr *addr);
int kofi_ip_check(const void *addr, size_t len);
int kofi_ip_peer(const void *from, size_t len, union kofi_ip *peer);
int kofi_ip_copy(const struct sockaddr *from, void *to, size_t *len);
bool kofi_ip_any(const struct sockaddr *addr);
bool kofi_ip_same(const struct sockaddr *a, const struct sockaddr *b);

/**
 * kofi_ip_port - port number of an address
 * @addr: an IP address
 *
 * Return: where it is.
 */
static inline __be16 *kofi_ip_port(struct sockaddr *addr)
{
	/* at the same place in both families */
	BUILD_BUG_ON(offsetof(struct sockaddr_in, sin_port) !=
		     offsetof(struct sockaddr_in6, sin6_port));
	return &((struct sockaddr_in *)addr)->sin_port;
}

/**
 * struct kofi_netif - an address of an interface
 * @addr: the address, without a port number
 * @prefix: bits of it that name the network
 * @loopback: the interface is the loopback device
 * @ifindex: of the interface
 * @dev: its name
 */
struct kofi_netif {
	union kofi_ip	addr;
	u8		prefix;
	bool		loopback;
	int		ifindex;
	char		dev[IFNAMSIZ];
};

/**
 * struct kofi_netif_list - addresses of a network namespace
 * @ifs: the addresses
 * @n: how many they are
 * @max: how many @ifs has room for
 */
struct kofi_netif_list {
	struct kofi_netif	*ifs;
	size_t			n;
	size_t			max;
};

int kofi_netif_collect(struct net *net, bool loopback,
		       struct kofi_netif_list *l);
char *kofi_netif_network(const struct kofi_netif *i);
int kofi_netif_find(const struct kofi_netif_list *l, const struct sockaddr *addr,
		    const char *dev);
int kofi_netif_route(struct net *net, const struct sockaddr *dest, u8 proto,
		     struct kofi_netif *out);

/* --------------------------------------------------------- address vectors */

/**
 * struct kofi_av_known - what kofi_av_recall() has found
 * @changes: the state of the vector that was looked at
 * @source: the answer
 */
struct kofi_av_known {
	unsigned long	changes;
	fi_addr_t	source;
};

int kofi_av_get(struct kofi_av *av, fi_addr_t fi_addr, union kofi_ip *addr);
fi_addr_t kofi_av_source(struct kofi_av *av, const struct sockaddr *addr);
fi_addr_t kofi_av_recall(struct kofi_av *av, const struct sockaddr *addr,
			 struct kofi_av_known *known);
fi_addr_t kofi_av_id(struct kofi_av *av, fi_addr_t fi_addr);

/**
 * struct kofi_dest - a peer, as posts find it
 * @index: where it is in a table
 * @changes: the state of the vector that was so in, 0 if it is not there
 */
struct kofi_dest {
	unsigned long	index;
	unsigned long	changes;
};

void kofi_dest_init(struct xarray *dests);
struct kofi_dest *kofi_dest_find(struct xarray *dests, struct kofi_av *av,
				 fi_addr_t fi_addr);
unsigned long kofi_dest_changes(struct kofi_av *av);
bool kofi_dest_fresh(struct kofi_dest *dest, struct kofi_av *av,
		     fi_addr_t fi_addr, unsigned long changes);
void kofi_dest_set(struct xarray *dests, struct kofi_av *av,
		   struct kofi_dest *dest, fi_addr_t fi_addr, unsigned long changes);
void kofi_dest_del(struct xarray *dests, struct kofi_dest *dest);

/**
 * kofi_ep_unknown - is a sender one that completions report the address of
 * @ep: the endpoint, of a type that has an address vector
 * @source: what completions call the sender
 *
 * Return: true if it is not in the vector, and the endpoint has FI_SOURCE_ERR.
 */
static inline bool kofi_ep_unknown(const struct kofi_ep *ep, fi_addr_t source)
{
	return source == FI_ADDR_NOTAVAIL && ep->info->caps & FI_SOURCE_ERR;
}

/* ------------------------------------------------------- module parameters */

/**
 * struct kofi_param - a number and its range
 * @value: where a module parameter keeps it
 * @min: the least it may be
 * @max: the most
 */
struct kofi_param {
	unsigned int	*value;
	unsigned int	min;
	unsigned int	max;
};

extern const struct kernel_param_ops kofi_param_ops;

/**
 * KOFI_PARAM - define a module parameter that is a number with a range
 * @name: name of the parameter
 * @prefix: the module's: prefix_name is the variable, prefix_name_range its struct
 *	kofi_param
 * @init: default value
 * @least: the least it may be
 * @most: the most
 * @perm: mode in sysfs
 * @text: description, without range and default
 *
 * Anything else is refused with a line in the log.
 */
#define KOFI_PARAM(name, prefix, init, least, most, perm, text)		\
	unsigned int prefix##_##name = init;				\
	static struct kofi_param prefix##_##name##_range = {		\
		&prefix##_##name, least, most				\
	};								\
	module_param_cb(name, &kofi_param_ops, &prefix##_##name##_range, perm); \
	MODULE_INFO(parm, #name ":" text " (" #least " to " #most ", default " #init ")")

int kofi_param_store(const struct kofi_param *range, unsigned int *to,
		     const void *val);

/* -------------------------------------------------------------- work queues */

struct workqueue_struct *kofi_wq_alloc(const char *name);

/* ----------------------------------------------------- options of endpoints */

size_t *kofi_ep_size_opt(struct fi_info *info, int optname);
int kofi_ep_set_size(struct kofi_ep *ep, size_t *to, const void *val,
		     size_t len, size_t most);
int kofi_opt_get_size(size_t value, void *val, size_t *len);
int kofi_opt_set_size(size_t *value, const void *val, size_t len);

/* --------------------------------------------------------- traffic classes */

int kofi_tclass_dscp(u32 tclass);
u32 kofi_info_tclass(const struct fi_info *info);

/* ---------------------------------------------------------- memory vectors */

/**
 * kofi_tagged_msg - what a tagged message has in common with others
 * @from: the tagged message
 *
 * Return: all but tag and ignored bits.
 */
static inline struct fi_msg kofi_tagged_msg(const struct fi_msg_tagged *from)
{
	return (struct fi_msg) {
		.msg_iov = from->msg_iov,	/* of a union of pointers */
		.desc = from->desc,
		.iov_count = from->iov_count,
		.addr = from->addr,
		.context = from->context,
		.data = from->data,
		.vec = from->vec,
	};
}

/**
 * kofi_rma_msg - what an access to a peer's memory has in common with messages
 * @from: the access
 *
 * Return: all but the peer's segments.
 */
static __always_inline struct fi_msg kofi_rma_msg(const struct fi_msg_rma *from)
{
	return (struct fi_msg) {
		.msg_iov = from->msg_iov,	/* of a union of pointers */
		.desc = from->desc,
		.iov_count = from->iov_count,
		.addr = from->addr,
		.context = from->context,
		.data = from->data,
		.vec = from->vec,
	};
}

/**
 * struct kofi_cursor - position in the memory of an operation
 * @iter: what is left of the current window
 * @sg: next scatterlist entry not yet in the window
 * @sg_left: bytes from @sg on
 * @left: bytes to the end
 * @len: bytes in all
 * @dir: ITER_SOURCE or ITER_DEST
 * @segs: how many segments there is room for
 * @kv: copied segments
 * @bv: copied segments, or the window of a scatterlist
 *
 * As the last member of a record it need not be there in full, see
 * kofi_cursor_size().
 */
struct kofi_cursor {
	struct iov_iter		iter;
	struct scatterlist	*sg;
	size_t			sg_left;
	size_t			left;
	size_t			len;
	unsigned int		dir;
	unsigned int		segs;
	union {
		struct kvec	kv[KOFI_IOV_MAX];
		struct bio_vec	bv[KOFI_IOV_MAX];
	};
};

/* Of one segment of either kind */
#define KOFI_CURSOR_SEG		sizeof_field(struct kofi_cursor, bv[0])
static_assert(sizeof(struct kvec) <= KOFI_CURSOR_SEG);

/**
 * kofi_cursor_size - bytes of a cursor that is used with few segments
 * @iov_limit: the limit it is always initialised with
 *
 * Return: the bytes.
 */
static inline size_t kofi_cursor_size(size_t iov_limit)
{
	return offsetof(struct kofi_cursor, bv) +
	       clamp_t(size_t, iov_limit, 1, KOFI_IOV_MAX) * KOFI_CURSOR_SEG;
}

/**
 * struct kofi_skb_part - received bytes that are being taken out of a packet
 * @skb: the packet
 * @offset: of the next one
 * @end: offset behind the last one
 * @flat: address of offset 0, for those that lie side by side; most do, in the
 *	packet's own memory or in its first fragment
 * @flat_end: offset behind the last of these
 */
struct kofi_skb_part {
	const struct sk_buff	*skb;
	size_t			offset;
	size_t			end;
	const void		*flat;
	size_t			flat_end;
};

/**
 * kofi_skb_part_init - begin to take bytes
 * @part: the bytes
 * @skb: packet they are in
 * @offset: of the first one
 * @len: how many; the packet holds as many
 */
static __always_inline void kofi_skb_part_init(struct kofi_skb_part *part,
					       const struct sk_buff *skb,
					       unsigned int offset, size_t len)
{
	const skb_frag_t *frag = &skb_shinfo(skb)->frags[0];
	unsigned int head = skb_headlen(skb);
	struct page *page;

	*part = (struct kofi_skb_part) {
		.skb = skb,
		.offset = offset,
		.end = offset + len,
		.flat = skb->data,
		.flat_end = head,
	};
	if (offset < head || !skb_shinfo(skb)->nr_frags)
		return;
	page = skb_frag_page(frag);
	if (!page || PageHighMem(page))
		return;
	part->flat = page_address(page) + skb_frag_off(frag) - head;
	part->flat_end = head + skb_frag_size(frag);
}

/**
 * kofi_skb_part_flat - address of the next bytes
 * @part: the bytes
 * @len: how many; the packet may hold less
 *
 * Return: the address, or NULL if that many do not lie side by side:
 * skb_copy_bits() gets those there are.
 */
static __always_inline const void *
kofi_skb_part_flat(const struct kofi_skb_part *part, size_t len)
{
	size_t end = part->offset + len;

	return end <= part->flat_end && end <= part->end ?
	       part->flat + part->offset : NULL;
}

int kofi_cursor_init_any(struct kofi_cursor *cur, const struct fi_msg *msg,
			 unsigned int dir, size_t iov_limit);
void kofi_cursor_refill(struct kofi_cursor *cur);

/* What iov_iter_kvec() does, without a call */
static __always_inline void kofi_iter_kvec(struct iov_iter *iter,
					   unsigned int dir,
					   const struct kvec *kv,
					   unsigned int count, size_t len)
{
	/* by member: an initialiser may clear all of it first */
	iter->iter_type = ITER_KVEC;
	iter->nofault = false;
	iter->data_source = dir;
	iter->iov_offset = 0;
	iter->kvec = kv;
	iter->count = len;
	iter->nr_segs = count;
}

/**
 * kofi_cursor_init - start at the first byte of an operation's memory
 * @cur: the cursor; whatever it held is forgotten
 * @msg: the operation. Its segment array, if it has one, is copied, unless it is a
 *	bvec array of more than KOFI_IOV_MAX
 * @dir: ITER_SOURCE for memory that is sent, ITER_DEST for memory that is
 *	written to
 * @iov_limit: most segments a kvec or bvec array may have; of a kvec array no
 *	more than KOFI_IOV_MAX
 *
 * Memory mapped for DMA (%KOFI_SGL_MAPPED) is refused: it is for providers
 * with a device, and they need no cursor.
 *
 * Context: any.
 * Return: 0 with @cur->len set; -EINVAL for too many segments, lengths that
 * overflow, a missing array, a scatterlist shorter than it claims, an
 * iterator of the wrong direction or over user memory, or an unknown kind.
 */
static __always_inline int kofi_cursor_init(struct kofi_cursor *cur,
					    const struct fi_msg *msg,
					    unsigned int dir, size_t iov_limit)
{
	size_t len;

	/* with one kernel buffer, as most have, there is little to look at */
	if (msg->vec != KOFI_KVEC || msg->iov_count != 1 || !msg->msg_iov ||
	    !iov_limit)
		return kofi_cursor_init_any(cur, msg, dir, iov_limit);
	len = msg->msg_iov->iov_len;
	cur->kv[0].iov_base = msg->msg_iov->iov_base;
	cur->kv[0].iov_len = len;
	cur->sg_left = 0;	/* then there is no window to be moved, either */
	cur->len = len;
	cur->left = len;
	kofi_iter_kvec(&cur->iter, dir, cur->kv, 1, len);
	return 0;
}

/**
 * kofi_cursor_iter - the memory from here on
 * @cur: the cursor
 *
 * The iterator covers at least one byte unless the cursor is at its end, but
 * not always everything that is left: a long scatterlist comes in parts. A
 * caller that uses it up works on a copy, and then tells kofi_cursor_used()
 * how far it came.
 *
 * Context: any.
 * Return: iterator over the bytes that follow, valid until @cur is moved.
 */
static inline struct iov_iter *kofi_cursor_iter(struct kofi_cursor *cur)
{
	if (!iov_iter_count(&cur->iter) && cur->sg_left)
		kofi_cursor_refill(cur);
	return &cur->iter;
}

/**
 * kofi_cursor_flat - the memory from here on, if it has an address
 * @cur: the cursor
 * @len: bytes, more than none
 *
 * Context: any.
 * Return: address of the next @len bytes, if they are kernel memory and lie side by
 * side; otherwise NULL.
 */
static __always_inline void *kofi_cursor_flat(const struct kofi_cursor *cur,
					      size_t len)
{
	const struct iov_iter *iter = &cur->iter;

	return len && iov_iter_is_kvec(iter) && len <= iter->count &&
	       len <= iter->kvec->iov_len - iter->iov_offset ?
	       iter->kvec->iov_base + iter->iov_offset : NULL;
}

void kofi_cursor_used(struct kofi_cursor *cur, size_t bytes);
int kofi_cursor_copy_from_skb(struct kofi_cursor *cur,
			      const struct kofi_skb_part *from, size_t len);

/**
 * typedef kofi_vec_fn - what is done with each part of a vector's memory
 * @arg: the caller's
 * @page: a page of it
 * @offset: of the first byte from there
 * @len: bytes that are contiguous in physical memory; not 0
 *
 * Return: 0 to go on.
 */
typedef int (*kofi_vec_fn)(void *arg, struct page *page, size_t offset,
			   size_t len);

static __always_inline int kofi_walk_part(kofi_vec_fn fn, void *arg,
					  struct page *page, size_t offset,
					  size_t len)
{
	return !len ? 0 : page ? fn(arg, page, offset, len) : -EFAULT;
}

/* The linear mapping is contiguous, vmalloc goes page by page. */
static __always_inline int kofi_walk_kvec(kofi_vec_fn fn, void *arg,
					  void *base, size_t len)
{
	bool vmalloc = is_vmalloc_or_module_addr(base);
	unsigned long last;
	int err = 0;
	size_t n;

	if (!len)
		return 0;
	if (check_add_overflow((unsigned long)base, len - 1, &last) ||
	    (vmalloc ? !is_vmalloc_or_module_addr((void *)last) :
		       !virt_addr_valid(base) || !virt_addr_valid((void *)last)))
		return -EFAULT;
	if (!vmalloc)
		return fn(arg, virt_to_page(base), offset_in_page(base), len);
	for (; len && !err; base += n, len -= n) {
		n = min_t(size_t, len, PAGE_SIZE - offset_in_page(base));
		err = kofi_walk_part(fn, arg, vmalloc_to_page(base),
				     offset_in_page(base), n);
	}
	return err;
}

static __always_inline int kofi_walk_pages(kofi_vec_fn fn, void *arg,
					   struct page **pages, size_t offset,
					   size_t len)
{
	int err = 0;
	size_t n;

	for (; len && !err; pages++, len -= n, offset = 0) {
		n = min_t(size_t, len, PAGE_SIZE - offset);
		err = kofi_walk_part(fn, arg, *pages, offset, n);
	}
	return err;
}

/* Page caches and the like: the pages are those of the iterator's owner. */
static __always_inline int kofi_walk_iter_pages(kofi_vec_fn fn, void *arg,
						const struct iov_iter *from)
{
	struct iov_iter iter = *from;
	size_t offset;
	int err = 0;
	ssize_t n;

	while (iov_iter_count(&iter) && !err) {
		/* a hole in an xarray leaves the first one as it was */
		struct page *pages[KOFI_IOV_MAX] = {}, **p = pages;

		n = iov_iter_extract_pages(&iter, &p, iov_iter_count(&iter),
					   ARRAY_SIZE(pages), 0, &offset);
		if (n <= 0)
			return -EFAULT;
		err = kofi_walk_pages(fn, arg, pages, offset, n);
	}
	return err;
}

static __always_inline int kofi_walk_iter(kofi_vec_fn fn, void *arg,
					  const struct iov_iter *iter)
{
	size_t skip = iter->iov_offset, left = iov_iter_count(iter), n;
	const struct bio_vec *bv = iter->bvec;
	const struct kvec *kv = iter->kvec;
	unsigned long i;
	int err = 0;

	if (!iov_iter_is_kvec(iter) && !iov_iter_is_bvec(iter))
		return kofi_walk_iter_pages(fn, arg, iter);
	for (i = 0; i < iter->nr_segs && left && !err; i++, skip = 0) {
		if (iov_iter_is_kvec(iter)) {
			n = min(kv[i].iov_len - skip, left);
			err = kofi_walk_kvec(fn, arg, kv[i].iov_base + skip, n);
		} else {
			n = min_t(size_t, bv[i].bv_len - skip, left);
			err = kofi_walk_part(fn, arg, bv[i].bv_page,
					     bv[i].bv_offset + skip, n);
		}
		left -= n;
	}
	return err ?: left ? -EFAULT : 0;
}

/**
 * kofi_vec_walk - go through the memory of a vector, for those who need its pages
 * @msg: the vector; not of user memory, nor mapped for a device
 * @fn: called for each part, in order
 * @arg: the first argument of @fn
 *
 * Inline, for @fn to be so too.
 *
 * Context: any.
 * Return: 0; -EFAULT for memory that is not there; -EINVAL for a scatterlist
 * shorter than it claims, or another kind; or what @fn returns.
 */
static __always_inline int kofi_vec_walk(const struct fi_msg *msg,
					 kofi_vec_fn fn, void *arg)
{
	const struct bio_vec *bv = msg->msg_bvec;
	struct scatterlist *sg = msg->msg_sgl;
	const struct kvec *kv = msg->msg_iov;
	int err = 0;
	size_t i;

	if (msg->vec == KOFI_ITER)
		return kofi_walk_iter(fn, arg, msg->msg_iter);
	for (i = 0; i < msg->iov_count && !err; i++) {
		switch (msg->vec) {
		case KOFI_KVEC:
			err = kofi_walk_kvec(fn, arg, kv[i].iov_base,
					     kv[i].iov_len);
			break;
		case KOFI_BVEC:
			err = kofi_walk_part(fn, arg, bv[i].bv_page,
					     bv[i].bv_offset, bv[i].bv_len);
			break;
		case KOFI_SGL:
			err = sg ? kofi_walk_part(fn, arg, sg_page(sg),
						  sg->offset, sg->length) :
				   -EINVAL;
			sg = sg ? sg_next(sg) : NULL;
			break;
		default:
			err = -EINVAL;
		}
	}
	return err;
}

/* ------------------------------------------------------------ receive queue */

/**
 * struct kofi_rxop - a posted receive, or a message's part of one
 * @age: on the queue's list of all that are posted, but for plain ones
 * @same: on the queue's list of those with such contexts, if there are any
 * @tag: tagged receives: the tag
 * @ignore: tagged receives: bits of the tag that need not match
 * @buf: multi-receive and its parts: address of the first byte, NULL for memory
 *	that has none
 * @used: multi-receive: bytes given to messages
 * @node: on one of the queue's lists to match from. From here on: what every receive
 *	uses, together, on as few cache lines as there can be.
 * @free: the same, while it is not in use
 * @seq: number of the post; the lower is the older
 * @context: comes back in the completion
 * @flags: flags it was posted with
 * @src: peer it is for, or FI_ADDR_UNSPEC
 * @ep: endpoint whose message it has been given to
 * @multi: part of a multi-receive: the receive it is part of
 * @parts: multi-receive: messages that are being placed
 * @tagged: it is a tagged receive
 * @gone: multi-receive: no longer posted; the last part ends it
 * @canceled: it is not for another message: a multi-receive that was not used up, or
 *	one that a message has been given and has not fetched
 * @cur: where the bytes go; with room for as many segments as the endpoint's
 *	iov_limit, those of a part for one
 */
struct kofi_rxop {
	struct list_head	age;
	struct list_head	same;
	u64			tag;
	u64			ignore;
	void			*buf;
	size_t			used;
	/* a cache line, on 64-bit machines */
	union {
		struct list_head	node;
		struct llist_node	free;
	};
	u64			seq;
	void			*context;
	u64			flags;
	fi_addr_t		src;
	struct kofi_ep		*ep;
	struct kofi_rxop	*multi;
	unsigned int		parts;
	bool			tagged;
	bool			gone;
	bool			canceled;
	struct kofi_cursor	cur;
};

/* Of a part of a multi-receive */
#define KOFI_RXOP_PART		(offsetof(struct kofi_rxop, cur.bv) + \
				 KOFI_CURSOR_SEG)

/**
 * struct kofi_rxmsg - a message that has begun and looks for its receive
 * @node: the queue's, while the message waits; such messages are what FI_PEEK
 *	finds
 * @cq_wait: a part of a multi-receive wants a slot of the queue
 * @wake: called when kofi_rxq_match() may find something, as
 *	kofi_cq_wait.wake
 * @ep: endpoint it came to
 * @src: who sent it, FI_ADDR_NOTAVAIL if that is not known
 * @from: the sender's address, of an endpoint with FI_SOURCE_ERR; otherwise NULL. The
 *	provider sets it once by kofi_rxmsg_from().
 * @len: its length
 * @tagged: it has a tag
 * @tag: its tag
 * @data: the peer's remote CQ data
 * @flags: FI_REMOTE_CQ_DATA if there is one
 * @op: receive it has been given while it waited
 * @part: its part of a multi-receive, a struct kofi_rxop of KOFI_RXOP_PART bytes
 * @claim: context of the FI_CLAIM it is kept for
 * @claimed: it is kept for one
 * @discard: throw it away
 * @confirmed: its sender is still to be told that it has been received
 * @expired: it has waited too long to be thrown away
 * @expires: when it will have waited too long, in jiffies
 * @slot: it waits for a slot, not for a receive
 *
 * A stream has one, and waits while its message does; or several, if it can
 * store the payload of those that wait. Their number is what bounds these.
 * kofi_rxmsg_init() sets one up; before kofi_rxq_match() is called for a new
 * message the provider sets @src, @len, @tagged, @tag, @data, @flags and @confirmed. The
 * rest is the queue's, under its lock.
 */
struct kofi_rxmsg {
	struct list_head	node;
	struct kofi_cq_wait	cq_wait;
	void			(*wake)(struct kofi_rxmsg *rxmsg);
	struct kofi_ep		*ep;
	fi_addr_t		src;
	const struct sockaddr	*from;
	size_t			len;
	bool			tagged;
	u64			tag;
	u64			data;
	u64			flags;
	struct kofi_rxop	*op;
	void			*claim;
	bool			claimed;
	bool			discard;
	bool			confirmed;
	bool			expired;
	bool			slot;
	unsigned long		expires;
	u64			part[DIV_ROUND_UP(KOFI_RXOP_PART, sizeof(u64))];
};

/**
 * struct kofi_rxq - posted receives of an endpoint or a shared context
 * @lock: irqsave; locks of completion queues are taken inside. @free can be put
 *	to without it. From here to @free: what each post and each message writes.
 * @closed: no more posts
 * @ep: whose they are, and who reports them
 * @plain: untagged ones for any sender that wait for a message, oldest first, as on
 *	all lists that follow
 * @seq: of the next post
 * @free: not in use
 * @posted: all others that do
 * @wild: of these, tagged ones that ignore bits of the tag
 * @exact: the rest: lists by tag and sender, hashed
 * @contexts: all that wait again, by context, hashed; NULL where they are few
 * @bits: two to the power of it is the number of lists
 * @directed: receives may be for one sender
 * @waiting: struct kofi_rxmsg: messages that found none, oldest first
 * @given: those that a message which waited has been given and has not fetched, but
 *	for parts of multi-receives
 * @starved: of @waiting, those that have found a multi-receive and no slot
 * @ops: all of them, each as long as the endpoint's iov_limit makes it
 * @expire: looks for messages that have waited too long
 */
struct kofi_rxq {
	spinlock_t		lock;	/* all that follows */
	bool			closed;
	struct kofi_ep		*ep;
	struct list_head	plain;
	u64			seq;
	struct kofi_freelist	free;
	struct list_head	posted;
	struct list_head	wild;
	struct list_head	*exact;
	struct list_head	*contexts;
	unsigned int		bits;
	bool			directed;
	struct list_head	waiting;
	struct list_head	given;
	unsigned int		starved;
	void			*ops;
	struct timer_list	expire;
};

/**
 * kofi_rxq_posts - how many receives have been posted
 * @q: the queue
 *
 * Compared with what it was before, it says whether the consumer has posted since.
 *
 * Context: any; no locks are needed.
 * Return: the number.
 */
static inline u64 kofi_rxq_posts(const struct kofi_rxq *q)
{
	return READ_ONCE(q->seq);
}

/**
 * kofi_rxq_empty - is no receive posted that waits for a message
 * @q: the queue
 *
 * Context: any; without locks it is a guess.
 * Return: true if so.
 */
static inline bool kofi_rxq_empty(const struct kofi_rxq *q)
{
	return list_empty(&q->plain) && list_empty(&q->posted);
}

int kofi_rxq_init(struct kofi_rxq *q, struct kofi_ep *ep, size_t size);
void kofi_rxq_exit(struct kofi_rxq *q);
int kofi_rxq_post(struct kofi_rxq *q, const struct fi_msg *msg, u64 flags);
int kofi_rxq_tpost(struct kofi_rxq *q, const struct fi_msg_tagged *msg,
		   u64 flags);
void kofi_rxmsg_init(struct kofi_rxmsg *rxmsg, struct kofi_ep *ep,
		     void (*wake)(struct kofi_rxmsg *rxmsg));

/**
 * kofi_rxmsg_from - say where the sender's address is
 * @rxmsg: a record that has been set up
 * @addr: the address, of each message while it is one
 *
 * Where senders that are not in the address vector are to be reported with it.
 */
static inline void kofi_rxmsg_from(struct kofi_rxmsg *rxmsg,
				   const struct sockaddr *addr)
{
	if (rxmsg->ep->info->caps & FI_SOURCE_ERR)
		rxmsg->from = addr;
}

int kofi_rxq_match(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg,
		   struct kofi_rxop **op);
bool kofi_rxq_hand(struct kofi_rxq *q, struct kofi_rxmsg *from,
		   struct kofi_rxmsg *to);
void kofi_rxq_rename(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg,
		     fi_addr_t src);
int kofi_rxq_confirm(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg);
void kofi_rxq_forget(struct kofi_rxq *q, struct kofi_rxmsg *rxmsg);
struct kofi_rxop *kofi_rxmsg_adopt(struct kofi_rxmsg *to, struct kofi_rxop *op);
void kofi_rxq_received(struct kofi_rxq *q, const struct kofi_rxmsg *rxmsg,
		       struct kofi_rxop *op);
void kofi_rxq_done(struct kofi_rxq *q, struct kofi_rxop *op,
		   struct kofi_wc *wc);
int kofi_rxq_cancel(struct kofi_rxq *q, void *context);
int kofi_ep_rx_cancel(struct kofi_ep *ep, struct kofi_rxq *q, void *context);
void kofi_rxq_flush(struct kofi_rxq *q);

/* ------------------------------------------------ shared receive contexts */

/**
 * struct kofi_srx - the core's shared receive context
 * @base: what the consumer holds
 * @rxq: its receives
 */
struct kofi_srx {
	struct kofi_ep		base;
	struct kofi_rxq		rxq;
};

int kofi_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr,
		  struct fid_ep **srx, void *context);

/* what a provider needs whose devices have their own */
int kofi_srx_init(struct kofi_ep *srx, struct fid_domain *domain,
		  const struct fi_rx_attr *attr, const struct kofi_ep_ops *ops,
		  void *context);
int kofi_srx_state(struct kofi_ep *srx);

/**
 * kofi_ep_rxq - the queue an endpoint's messages take their receives from
 * @ep: an enabled endpoint
 * @own: its own queue, which it uses unless it has a shared context
 *
 * Return: the queue.
 */
static inline struct kofi_rxq *kofi_ep_rxq(const struct kofi_ep *ep,
					   struct kofi_rxq *own)
{
	return ep->srx ? &container_of(ep->srx, struct kofi_srx, base)->rxq :
			 own;
}

/* --------------------------------------------- regions of software providers */

/**
 * struct kofi_target - a segment of our memory a peer reads or writes
 * @key: key it has named
 * @off: offset in the region of the next byte
 * @left: bytes to go
 * @len: bytes in all
 * @serial: registration the access was allowed for
 * @event: the region was registered with FI_RMA_EVENT
 * @context: of the region
 * @mr: the region while it is held, or NULL
 * @kv: what kofi_target_get() has an iterator of, if it has an address
 *
 * Nothing is held between two steps of an access that may be far apart: each
 * looks the key up again, and finds out that the region has been closed. Steps
 * that follow each other at once may share a look-up: the region is held in
 * between, and who closes it waits for kofi_target_drop().
 */
struct kofi_target {
	u64		key;
	u64		off;
	u64		left;
	u64		len;
	u64		serial;
	bool		event;
	void		*context;
	struct kofi_mr	*mr;
	struct kvec	kv;
};

int kofi_target_init(struct kofi_target *t, struct kofi_ep *ep, u64 key,
		     u64 addr, u64 len, u64 access);
int kofi_target_copy_from_skb(struct kofi_target *t, struct kofi_ep *ep,
			      const struct kofi_skb_part *from, size_t len);
bool kofi_target_get(struct kofi_target *t, struct kofi_ep *ep,
		     struct iov_iter *iter);
void kofi_target_drop(struct kofi_target *t);
void kofi_target_used(struct kofi_target *t, size_t bytes);
void kofi_target_done(struct kofi_target *t, struct kofi_ep *ep, u64 access);
int kofi_mr_invalidate(struct kofi_ep *ep, u64 key);

/* what a provider needs whose regions are those of another one */
int kofi_mr_show(struct kofi_mr *mr, u64 key);
void kofi_mr_hide(struct kofi_mr *mr);
int kofi_ep_remote_to(struct fid_ep *below, struct kofi_ep *ep,
		      kofi_remote_fill fill);

/* ------------------------------------------------------ atomics in software */

/**
 * struct kofi_atomic - an atomic operation on our memory
 * @call: 0 for fi_atomic(), FI_FETCH_ATOMIC or FI_COMPARE_ATOMIC
 * @datatype: what an element is
 * @op: what is done to each
 * @operands: one per element, or NULL if the operation has none
 * @compare: what to compare with, likewise
 * @results: where the old values go, which may be @operands; NULL for nowhere
 *
 * What is pointed at need not be aligned.
 */
struct kofi_atomic {
	u64			call;
	enum fi_datatype	datatype;
	enum fi_op		op;
	const void		*operands;
	const void		*compare;
	void			*results;
};

int kofi_target_atomic_init(struct kofi_target *t, struct kofi_ep *ep,
			    const struct kofi_atomic *a, u64 key, u64 addr,
			    u64 count);
void kofi_target_atomic(struct kofi_target *t, struct kofi_atomic *a);

#endif /* _LINUX_KOFI_LIB_H */

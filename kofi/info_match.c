// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Matching: comparison of a provider's info with hints, and the resulting info
 * (fi_getinfo(3)).
 *
 * A provider makes an fi_info with its maximum for each domain and endpoint type.
 * kofi_info_match() compares it with the hints, and kofi_info_grant() makes the
 * answer, so that all providers interpret hints in the same way.
 */
#include <linux/bitops.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <linux/kofi/fi_tagged.h>
#include <linux/kofi/lib.h>

#include "internal.h"
#include "kofi_trace.h"

/* Capabilities that may be granted without a request (fi_getinfo(3)) */
#define KOFI_CAPS_SECONDARY	(FI_MULTI_RECV | FI_SOURCE | FI_RMA_EVENT | \
				 FI_SHARED_AV | FI_TRIGGER | FI_FENCE | \
				 FI_LOCAL_COMM | FI_REMOTE_COMM | \
				 FI_SOURCE_ERR | FI_RMA_PMEM)

/* Capabilities in the hints of one direction that belong to the other, or to none */
#define KOFI_CAPS_COMM		(FI_LOCAL_COMM | FI_REMOTE_COMM | \
				 FI_SHARED_AV | FI_AV_USER_ID)
#define KOFI_CAPS_NOT_TX	(KOFI_CAPS_COMM | FI_RECV | FI_REMOTE_READ | \
				 FI_REMOTE_WRITE | FI_MULTI_RECV | \
				 FI_TAGGED_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE | \
				 FI_SOURCE_ERR | FI_RMA_EVENT)
#define KOFI_CAPS_NOT_RX	(KOFI_CAPS_COMM | FI_SEND | FI_READ | \
				 FI_WRITE | FI_FENCE | FI_NAMED_RX_CTX)

#define KOFI_CAPS_MSG		(FI_SEND | FI_RECV)
#define KOFI_CAPS_TARGET	(FI_REMOTE_READ | FI_REMOTE_WRITE)
#define KOFI_CAPS_RMA		(FI_READ | FI_WRITE | KOFI_CAPS_TARGET)

/*
 * Attributes that are limits: hints above the limit match nothing. Each list
 * holds offsets of members of type size_t.
 */
static const size_t kofi_info_tx_limits[] = {
	offsetof(struct fi_tx_attr, inject_size),
	offsetof(struct fi_tx_attr, size),
	offsetof(struct fi_tx_attr, iov_limit),
	offsetof(struct fi_tx_attr, rma_iov_limit),
};

static const size_t kofi_info_rx_limits[] = {
	offsetof(struct fi_rx_attr, total_buffered_recv),
	offsetof(struct fi_rx_attr, size),
	offsetof(struct fi_rx_attr, iov_limit),
};

static const size_t kofi_info_ep_limits[] = {
	offsetof(struct fi_ep_attr, max_msg_size),
	offsetof(struct fi_ep_attr, max_order_raw_size),
	offsetof(struct fi_ep_attr, max_order_war_size),
	offsetof(struct fi_ep_attr, max_order_waw_size),
};

static const size_t kofi_info_domain_limits[] = {
	offsetof(struct fi_domain_attr, mr_key_size),
	offsetof(struct fi_domain_attr, cq_data_size),
	offsetof(struct fi_domain_attr, cq_cnt),
	offsetof(struct fi_domain_attr, ep_cnt),
	offsetof(struct fi_domain_attr, tx_ctx_cnt),
	offsetof(struct fi_domain_attr, rx_ctx_cnt),
	offsetof(struct fi_domain_attr, max_ep_tx_ctx),
	offsetof(struct fi_domain_attr, max_ep_rx_ctx),
	offsetof(struct fi_domain_attr, max_ep_stx_ctx),
	offsetof(struct fi_domain_attr, max_ep_srx_ctx),
	offsetof(struct fi_domain_attr, cntr_cnt),
	offsetof(struct fi_domain_attr, mr_iov_limit),
	offsetof(struct fi_domain_attr, max_err_data),
	offsetof(struct fi_domain_attr, mr_cnt),
	offsetof(struct fi_domain_attr, max_ep_auth_key),
};

static bool kofi_info_within(const void *prov, const void *hints,
			     const size_t *limits, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (*(const size_t *)(hints + limits[i]) >
		    *(const size_t *)(prov + limits[i]))
			return false;
	}
	return true;
}

/* A capability without directions means all its directions. */
static u64 kofi_info_expand(u64 caps)
{
	if (caps & (FI_MSG | FI_TAGGED) && !(caps & KOFI_CAPS_MSG))
		caps |= KOFI_CAPS_MSG;
	if (caps & (FI_RMA | FI_ATOMIC) && !(caps & KOFI_CAPS_RMA))
		caps |= KOFI_CAPS_RMA;
	return caps;
}

/* Registration modes of a provider that apply to these capabilities */
static int kofi_info_mr_needed(u64 caps, int mr_mode)
{
	caps = kofi_info_expand(caps);
	if (!(caps & FI_HMEM))
		mr_mode &= ~FI_MR_HMEM;
	if (!(caps & FI_COLLECTIVE))
		mr_mode &= ~FI_MR_COLLECTIVE;
	if (!(caps & (FI_RMA | FI_ATOMIC)) || !(caps & KOFI_CAPS_TARGET))
		mr_mode &= FI_MR_LOCAL | FI_MR_HMEM | FI_MR_COLLECTIVE;
	return mr_mode;
}

static bool kofi_info_match_mr(const struct fi_info *prov,
			       const struct fi_info *hints)
{
	int need = kofi_info_mr_needed(hints->caps ?: prov->caps,
				       prov->domain_attr->mr_mode);
	int have = hints->domain_attr->mr_mode;

	/* Values from before mr_mode became a bit mask, and its mode bit */
	if (have & FI_MR_BASIC)
		have |= FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	if (hints->mode & FI_LOCAL_MR)
		have |= FI_MR_LOCAL;
	return !(need & ~have);
}

static bool kofi_info_match_format(u32 prov, u32 hint)
{
	if (hint == FI_FORMAT_UNSPEC || prov == FI_FORMAT_UNSPEC ||
	    hint == prov)
		return true;
	switch (hint) {
	case FI_SOCKADDR:
		return prov == FI_SOCKADDR_IN || prov == FI_SOCKADDR_IN6 ||
		       prov == FI_SOCKADDR_IB || prov == FI_SOCKADDR_IP;
	case FI_SOCKADDR_IP:
		return prov == FI_SOCKADDR_IN || prov == FI_SOCKADDR_IN6 ||
		       prov == FI_SOCKADDR;
	case FI_SOCKADDR_IN:
	case FI_SOCKADDR_IN6:
		return prov == FI_SOCKADDR || prov == FI_SOCKADDR_IP;
	case FI_SOCKADDR_IB:
		return prov == FI_SOCKADDR;
	default:
		return false;
	}
}

/* Names are compared if both sides have one. */
static bool kofi_info_match_name(const char *prov, const char *hint)
{
	return !prov || !hint || !strcmp(prov, hint);
}

/* Rank of a threading model by its demands on the consumer */
static int kofi_info_thread_level(enum fi_threading threading)
{
	switch (threading) {
	case FI_THREAD_SAFE:
		return 1;
	case FI_THREAD_FID:
		return 2;
	case FI_THREAD_ENDPOINT:
		return 3;
	case FI_THREAD_COMPLETION:
		return 4;
	case FI_THREAD_DOMAIN:
		return 5;
	default:
		return 0;
	}
}

/* Higher values of the enum demand more of the consumer. */
static bool kofi_info_match_progress(enum fi_progress prov,
				     enum fi_progress hint)
{
	return hint == FI_PROGRESS_UNSPEC || prov <= hint;
}

/* Check that a class exists, and equals the provider's if that has one. */
static bool kofi_info_match_tclass(u32 prov, u32 hint)
{
	if (!hint)
		return true;
	return prov ? hint == prov : kofi_tclass_dscp(hint) >= 0;
}

static bool kofi_info_match_tx(const struct fi_tx_attr *prov,
			       const struct fi_info *info)
{
	const struct fi_tx_attr *hints = info->tx_attr;

	if (!hints)
		return true;
	return !(hints->caps & ~(prov->caps | KOFI_CAPS_NOT_TX)) &&
	       !(prov->mode & ~(hints->mode ?: info->mode)) &&
	       !(hints->op_flags & ~prov->op_flags) &&
	       !(hints->msg_order & ~prov->msg_order) &&
	       !(hints->comp_order & ~prov->comp_order) &&
	       kofi_info_match_tclass(prov->tclass, hints->tclass) &&
	       kofi_info_within(prov, hints, kofi_info_tx_limits,
				ARRAY_SIZE(kofi_info_tx_limits));
}

static bool kofi_info_match_rx(const struct fi_rx_attr *prov,
			       const struct fi_info *info)
{
	const struct fi_rx_attr *hints = info->rx_attr;

	if (!hints)
		return true;
	return !(hints->caps & ~(prov->caps | KOFI_CAPS_NOT_RX)) &&
	       !(prov->mode & ~(hints->mode ?: info->mode)) &&
	       !(hints->op_flags & ~prov->op_flags) &&
	       !(hints->msg_order & ~prov->msg_order) &&
	       !(hints->comp_order & ~prov->comp_order) &&
	       kofi_info_within(prov, hints, kofi_info_rx_limits,
				ARRAY_SIZE(kofi_info_rx_limits));
}

/* Check the number of contexts of an endpoint, or a shared context. */
static bool kofi_info_match_ctx(size_t hint, size_t max, size_t max_shared)
{
	return hint == FI_SHARED_CONTEXT ? max_shared > 0 : hint <= max;
}

/*
 * A transmit and a receive context of a scalable endpoint are one endpoint, so their
 * numbers must be equal.
 */
static bool kofi_info_match_contexts(const struct fi_ep_attr *hints)
{
	if (!hints->tx_ctx_cnt || !hints->rx_ctx_cnt ||
	    hints->tx_ctx_cnt == hints->rx_ctx_cnt)
		return true;
	return !kofi_ep_contexts(hints->tx_ctx_cnt) &&
	       !kofi_ep_contexts(hints->rx_ctx_cnt);
}

/* Width of a tag format: its highest bit, or by definition. */
static int kofi_info_tag_bits(u64 format)
{
	switch (format) {
	case FI_TAG_MPI:
		return fls64(FI_MPI_IGNORE_TAG | FI_MPI_IGNORE_PAYLOAD);
	case FI_TAG_CCL:
		return BITS_PER_BYTE;
	default:
		return fls64(format);
	}
}

static bool kofi_info_match_ep(const struct fi_info *prov,
			       const struct fi_info *info)
{
	const struct fi_ep_attr *hints = info->ep_attr;
	const struct fi_ep_attr *attr = prov->ep_attr;
	const struct fi_domain_attr *dom = prov->domain_attr;

	if (!hints)
		return true;
	if ((hints->type && hints->type != attr->type) ||
	    (hints->protocol && hints->protocol != attr->protocol) ||
	    hints->protocol_version > attr->protocol_version)
		return false;
	if (hints->msg_prefix_size &&
	    hints->msg_prefix_size < attr->msg_prefix_size)
		return false;
	if (info->caps & FI_TAGGED &&
	    kofi_info_tag_bits(hints->mem_tag_format) >
	    kofi_info_tag_bits(attr->mem_tag_format))
		return false;
	if (hints->auth_key_size && hints->auth_key_size != attr->auth_key_size)
		return false;
	return kofi_info_match_contexts(hints) &&
	       kofi_info_match_ctx(hints->tx_ctx_cnt, dom->max_ep_tx_ctx,
				   dom->max_ep_stx_ctx) &&
	       kofi_info_match_ctx(hints->rx_ctx_cnt, dom->max_ep_rx_ctx,
				   dom->max_ep_srx_ctx) &&
	       kofi_info_within(attr, hints, kofi_info_ep_limits,
				ARRAY_SIZE(kofi_info_ep_limits));
}

static bool kofi_info_match_domain(const struct fi_info *prov,
				   const struct fi_info *info)
{
	const struct fi_domain_attr *hints = info->domain_attr;
	const struct fi_domain_attr *attr = prov->domain_attr;

	if (!hints)
		return true;
	if (!kofi_info_match_name(attr->name, hints->name))
		return false;
	if (hints->threading && kofi_info_thread_level(attr->threading) >
	    kofi_info_thread_level(hints->threading))
		return false;
	if (!kofi_info_match_progress(attr->control_progress,
				      hints->control_progress) ||
	    !kofi_info_match_progress(attr->data_progress,
				      hints->data_progress))
		return false;
	if (hints->resource_mgmt == FI_RM_ENABLED &&
	    attr->resource_mgmt == FI_RM_DISABLED)
		return false;
	if (hints->av_type && attr->av_type && hints->av_type != attr->av_type)
		return false;
	if (!kofi_info_match_tclass(attr->tclass, hints->tclass))
		return false;
	if (hints->auth_key_size && hints->auth_key_size != attr->auth_key_size)
		return false;
	return !(hints->caps & ~attr->caps) &&
	       !(attr->mode & ~(hints->mode ?: info->mode)) &&
	       hints->max_group_id <= attr->max_group_id &&
	       hints->max_cntr_value <= attr->max_cntr_value &&
	       hints->max_err_cntr_value <= attr->max_err_cntr_value &&
	       kofi_info_match_mr(prov, info) &&
	       kofi_info_within(attr, hints, kofi_info_domain_limits,
				ARRAY_SIZE(kofi_info_domain_limits));
}

static bool kofi_info_match_fabric(const struct fi_fabric_attr *prov,
				   const struct fi_fabric_attr *hints)
{
	if (!hints)
		return true;
	return kofi_info_match_name(prov->name, hints->name) &&
	       kofi_info_match_name(prov->prov_name, hints->prov_name) &&
	       (!prov->prov_version ||
		hints->prov_version <= prov->prov_version);
}

/* Return the part of the hints that a provider does not have, or NULL. */
static const char *kofi_info_beyond(const struct fi_info *prov, const struct fi_info *hints)
{
	if (kofi_info_expand(hints->caps) & ~prov->caps ||
	    (hints->caps & FI_SOURCE_ERR && !(hints->caps & FI_SOURCE)))
		return "caps";
	if (prov->mode & ~hints->mode)
		return "mode";
	if (!kofi_info_match_format(prov->addr_format, hints->addr_format))
		return "addr_format";
	if (!kofi_info_match_tx(prov->tx_attr, hints))
		return "tx_attr";
	if (!kofi_info_match_rx(prov->rx_attr, hints))
		return "rx_attr";
	if (!kofi_info_match_ep(prov, hints))
		return "ep_attr";
	if (!kofi_info_match_domain(prov, hints))
		return "domain_attr";
	if (!kofi_info_match_fabric(prov->fabric_attr, hints->fabric_attr))
		return "fabric_attr";
	return NULL;
}

/**
 * kofi_info_match - compare a provider's info with hints
 * @prov: maximum of the provider: has all attribute structures; op_flags are the
 *	supported flags
 * @hints: requirements; attribute structures may be missing
 *
 * The rules of fi_getinfo(3), fi_endpoint(3), fi_domain(3) and fi_mr(3). The provider must
 * have the required capabilities; one without directions means all directions.
 * Capabilities of the transmit and receive attributes apply as far as they concern that
 * side. FI_SOURCE_ERR requires FI_SOURCE. The hints must have the modes that the provider
 * needs. Zero or UNSPEC in the hints requires nothing. Limits must not be exceeded.
 * Registration modes are compared only if they apply to the
 * capabilities. FI_SOCKADDR matches every kind of sockaddr, FI_SOCKADDR_IP
 * IPv4 and IPv6. Addresses and open objects are ignored: kofi_getinfo()
 * has put the names of open objects into the hints.
 *
 * Context: any.
 * Return: 0 or -ENODATA.
 */
int kofi_info_match(const struct fi_info *prov, const struct fi_info *hints)
{
	const char *beyond;

	if (!hints)
		return 0;
	beyond = kofi_info_beyond(prov, hints);
	if (!beyond)
		return 0;
	trace_kofi_info_excluded(prov, beyond);
	pr_debug("%s: %s: %s beyond the provider's\n", KBUILD_MODNAME,
		 prov->domain_attr->name ?: "an offer", beyond);
	return -ENODATA;
}
EXPORT_SYMBOL_GPL(kofi_info_match);

/**
 * kofi_srx_check - check the attributes of a shared receive context
 * @attr: the attributes
 * @most: maximum that the provider acts on, as for kofi_info_match()
 *
 * Applies the rules for hints, but all capabilities and modes must be supported, since a
 * context has one direction.
 *
 * Context: any.
 * Return: 0; -FI_EBADFLAGS for op_flags, -EINVAL for any other attribute beyond @most.
 */
int kofi_srx_check(const struct fi_rx_attr *attr, const struct fi_rx_attr *most)
{
	const struct fi_info asked = {
		.mode = most->mode, .rx_attr = (struct fi_rx_attr *)attr,
	};

	if (attr->op_flags & ~most->op_flags)
		return -FI_EBADFLAGS;
	if (attr->caps & ~most->caps || attr->mode & ~most->mode)
		return -EINVAL;
	return kofi_info_match_rx(most, &asked) ? 0 : -EINVAL;
}
EXPORT_SYMBOL_GPL(kofi_srx_check);

static void kofi_info_cut(void *info, const void *most, const size_t *limits,
			  size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		size_t *value = info + limits[i];

		*value = min(*value, *(const size_t *)(most + limits[i]));
	}
}

/**
 * kofi_info_reduce - limit an info to a maximum
 * @info: info that was granted, perhaps by another device
 * @most: maximum of this device, as for kofi_info_match()
 *
 * Limits capabilities, orders, flags of operations and all sizes; both infos have all
 * attribute structures.
 *
 * Context: any.
 */
void kofi_info_reduce(struct fi_info *info, const struct fi_info *most)
{
	info->caps &= most->caps;
	info->tx_attr->caps &= most->tx_attr->caps;
	info->rx_attr->caps &= most->rx_attr->caps;
	info->domain_attr->caps &= most->domain_attr->caps;
	info->tx_attr->op_flags &= most->tx_attr->op_flags;
	info->rx_attr->op_flags &= most->rx_attr->op_flags;
	info->tx_attr->msg_order &= most->tx_attr->msg_order;
	info->rx_attr->msg_order &= most->rx_attr->msg_order;
	info->tx_attr->comp_order &= most->tx_attr->comp_order;
	info->rx_attr->comp_order &= most->rx_attr->comp_order;
	kofi_info_cut(info->tx_attr, most->tx_attr, kofi_info_tx_limits,
		      ARRAY_SIZE(kofi_info_tx_limits));
	kofi_info_cut(info->rx_attr, most->rx_attr, kofi_info_rx_limits,
		      ARRAY_SIZE(kofi_info_rx_limits));
	kofi_info_cut(info->ep_attr, most->ep_attr, kofi_info_ep_limits,
		      ARRAY_SIZE(kofi_info_ep_limits));
	kofi_info_cut(info->domain_attr, most->domain_attr,
		      kofi_info_domain_limits,
		      ARRAY_SIZE(kofi_info_domain_limits));
}
EXPORT_SYMBOL_GPL(kofi_info_reduce);

static u64 kofi_info_grant_caps(u64 prov, u64 hints)
{
	if (!hints)
		return prov;
	return prov & (kofi_info_expand(hints) | KOFI_CAPS_SECONDARY);
}

/* Capabilities required by the info or the domain attributes of hints; 0: all */
static u64 kofi_info_asked_caps(const struct fi_info *hints)
{
	if (!hints || !hints->caps)
		return 0;
	return hints->caps | (hints->domain_attr ? hints->domain_attr->caps : 0);
}

static int kofi_info_grant_ep(struct fi_ep_attr *attr,
			      const struct fi_ep_attr *hints)
{
	if (!hints)
		return 0;
	if (hints->mem_tag_format == FI_TAG_MPI ||
	    hints->mem_tag_format == FI_TAG_CCL)
		attr->mem_tag_format = hints->mem_tag_format;
	if (hints->tx_ctx_cnt)
		attr->tx_ctx_cnt = hints->tx_ctx_cnt;
	if (hints->rx_ctx_cnt)
		attr->rx_ctx_cnt = hints->rx_ctx_cnt;
	if (!hints->rx_ctx_cnt && kofi_ep_contexts(hints->tx_ctx_cnt))
		attr->rx_ctx_cnt = hints->tx_ctx_cnt;
	if (!hints->tx_ctx_cnt && kofi_ep_contexts(hints->rx_ctx_cnt))
		attr->tx_ctx_cnt = hints->rx_ctx_cnt;
	if (!hints->auth_key_size)
		return 0;
	kfree(attr->auth_key);
	attr->auth_key_size = hints->auth_key_size;
	return kofi_info_dup_bytes((void **)&attr->auth_key, hints->auth_key,
				   hints->auth_key_size);
}

static int kofi_info_grant_domain(struct fi_domain_attr *attr,
				  const struct fi_domain_attr *hints)
{
	if (!hints)
		return 0;
	attr->domain = hints->domain;
	if (hints->threading)
		attr->threading = hints->threading;
	if (hints->control_progress)
		attr->control_progress = hints->control_progress;
	if (hints->data_progress)
		attr->data_progress = hints->data_progress;
	if (hints->resource_mgmt)
		attr->resource_mgmt = hints->resource_mgmt;
	if (hints->av_type)
		attr->av_type = hints->av_type;
	if (hints->tclass)
		attr->tclass = hints->tclass;
	if (!hints->auth_key_size)
		return 0;
	kfree(attr->auth_key);
	attr->auth_key_size = hints->auth_key_size;
	return kofi_info_dup_bytes((void **)&attr->auth_key, hints->auth_key,
				   hints->auth_key_size);
}

/**
 * kofi_info_grant - make the answer to hints that match
 * @prov: maximum of the provider, as for kofi_info_match()
 * @hints: the hints
 *
 * The answer is a copy of @prov, with the required primary capabilities (all if
 * none were required), and all secondary ones; with the op_flags, sizes of
 * queues, numbers of contexts, models of threading and progress and so on of the hints,
 * where they are set; and with the registration modes that apply. The provider fills in
 * addresses.
 *
 * Context: process, may sleep.
 * Return: the info, to be freed with fi_freeinfo(), or NULL without memory.
 */
struct fi_info *kofi_info_grant(const struct fi_info *prov,
				const struct fi_info *hints)
{
	const struct fi_tx_attr *tx = hints ? hints->tx_attr : NULL;
	const struct fi_rx_attr *rx = hints ? hints->rx_attr : NULL;
	struct fi_info *info = fi_dupinfo(prov);

	if (!info)
		return NULL;
	info->caps = kofi_info_grant_caps(prov->caps, kofi_info_asked_caps(hints));
	info->domain_attr->caps &= info->caps;
	info->tx_attr->caps &= kofi_info_grant_caps(info->caps,
						    tx ? tx->caps : 0);
	info->rx_attr->caps &= kofi_info_grant_caps(info->caps,
						    rx ? rx->caps : 0);
	info->tx_attr->op_flags = tx ? tx->op_flags : 0;
	info->rx_attr->op_flags = rx ? rx->op_flags : 0;
	info->domain_attr->mr_mode =
		kofi_info_mr_needed(info->caps, prov->domain_attr->mr_mode);
	if (tx && tx->size)
		info->tx_attr->size = tx->size;
	if (tx && tx->tclass)
		info->tx_attr->tclass = tx->tclass;
	if (rx && rx->size)
		info->rx_attr->size = rx->size;
	if (!hints)
		return info;
	if (kofi_info_grant_ep(info->ep_attr, hints->ep_attr) ||
	    kofi_info_grant_domain(info->domain_attr, hints->domain_attr))
		goto free;
	if (hints->fabric_attr)
		info->fabric_attr->fabric = hints->fabric_attr->fabric;
	return info;

free:
	fi_freeinfo(info);
	return NULL;
}
EXPORT_SYMBOL_GPL(kofi_info_grant);

/**
 * kofi_info_listed - find an equivalent info in a list
 * @list: the list, or NULL
 * @info: an info with a source address and both names
 *
 * With a wildcard address all addresses of a device in one network are
 * equivalent; and two interfaces of one RDMA device may have the same address.
 *
 * Context: any.
 * Return: true if an info of @list has the same domain, fabric and source.
 */
bool kofi_info_listed(const struct fi_info *list, const struct fi_info *info)
{
	for (; list; list = list->next)
		if (list->src_addrlen == info->src_addrlen &&
		    !memcmp(list->src_addr, info->src_addr,
			    info->src_addrlen) &&
		    !strcmp(list->domain_attr->name, info->domain_attr->name) &&
		    !strcmp(list->fabric_attr->name, info->fabric_attr->name))
			return true;
	return false;
}
EXPORT_SYMBOL_GPL(kofi_info_listed);

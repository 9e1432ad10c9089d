/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Requirements of client and target on a provider. Providers differ in the size of
 * remote CQ data, and in whether it takes a receive; fi_info has both.
 */
#ifndef _KOFI_BLK_NET_H
#define _KOFI_BLK_NET_H

#include <linux/ctype.h>
#include <linux/kofi/kofi.h>
#include <linux/kstrtox.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "proto.h"

#define KBLK_TEXT	64		/* bytes of a word in an attribute, with its NUL */
#define KBLK_SEGS	65		/* most segments of a request */
#define KBLK_BYTES	18		/* log2 of the most bytes of a request */
#define KBLK_IDLE_MS	10000		/* until an idle peer is probed */

/**
 * enum kblk_digest - attribute of a mapping, or of a port
 * @KBLK_DIGEST_OFF: the connections have no digests
 * @KBLK_DIGEST_OPTIONAL: the connections have digests if the peer wants them, too
 * @KBLK_DIGEST_REQUIRED: no connection without digests
 * @KBLK_DIGEST_MODES: number of values
 */
enum kblk_digest {
	KBLK_DIGEST_OFF,
	KBLK_DIGEST_OPTIONAL,
	KBLK_DIGEST_REQUIRED,
	KBLK_DIGEST_MODES,
};

/**
 * kblk_getinfo - discovery
 * @net: network namespace
 * @prov: name of the provider
 * @node: numeric address
 * @port: TCP port, or its like
 * @flags: FI_SOURCE if the address is this machine's
 * @depth: commands of a queue
 * @gfp: for all allocations
 * @info: the first match, to be freed
 *
 * Return: 0 or a negative error code.
 */
static inline int kblk_getinfo(struct net *net, const char *prov,
			       const char *node, const char *port, u64 flags,
			       unsigned int depth, gfp_t gfp,
			       struct fi_info **info)
{
	struct fi_info *hints = fi_allocinfo();
	int err = -ENOMEM;

	if (!hints)
		return -ENOMEM;
	hints->caps = FI_MSG | FI_RMA;
	hints->mode = FI_RX_CQ_DATA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY | FI_MR_ENDPOINT |
				      FI_MR_VIRT_ADDR | FI_MR_ALLOCATED;
	/* a read or write, and an answer, each; for the client a command */
	hints->tx_attr->size = 2 * depth;
	hints->rx_attr->size = depth;
	hints->fabric_attr->prov_name = kstrdup(prov, gfp);
	if (hints->fabric_attr->prov_name)
		err = kofi_getinfo(net, FI_VERSION(2, 1), node, port,
				   flags | FI_NUMERICHOST, hints, info, gfp);
	fi_freeinfo(hints);
	return err;
}

/**
 * kblk_has_data - whether an answer can be remote CQ data
 * @info: of an endpoint
 */
static inline bool kblk_has_data(const struct fi_info *info)
{
	return info->domain_attr->cq_data_size >= sizeof(u32);
}

/**
 * kblk_ep_options - make an endpoint work without free memory, and probe silent peers
 * @ep: an endpoint that is not enabled
 *
 * If a provider or device supports only one of them, it refuses the other option, and
 * the endpoint is used without it.
 */
static inline void kblk_ep_options(struct fid_ep *ep)
{
	unsigned int on = 1, idle = KBLK_IDLE_MS;

	fi_set_val(&ep->fid, KOFI_VAL_RECLAIM_SAFE, &on);
	fi_set_val(&ep->fid, KOFI_VAL_KEEPALIVE_IDLE, &idle);
}

/**
 * kblk_parse_number - parse text that is written to a number's attribute
 * @page: the text
 * @min: least valid value
 * @max: greatest valid value
 * @value: the number
 *
 * Return: 0, -EINVAL, or -ERANGE for more than 32 bits.
 */
static inline int kblk_parse_number(const char *page, unsigned int min,
				    unsigned int max, unsigned int *value)
{
	int err = kstrtouint(page, 0, value);

	if (err)
		return err;
	return *value < min || *value > max ? -EINVAL : 0;
}

/**
 * kblk_store_text - the store function of an attribute that is a word
 * @lock: protects @to and @busy
 * @busy: points to a pointer; the attribute cannot change while that is not NULL
 * @to: the word
 * @room: bytes of @to
 * @page: the text that is written
 * @len: bytes of @page
 *
 * Return: @len, -EINTR, -EBUSY, or -EINVAL unless @page is one word that fits.
 */
static inline ssize_t kblk_store_text(struct mutex *lock,
				      const void *const *busy, char *to,
				      size_t room, const char *page, size_t len)
{
	size_t n = strcspn(page, " \t\n");
	ssize_t ret = -EINVAL;

	/* a holder may wait for a peer or a device */
	if (mutex_lock_killable(lock))
		return -EINTR;
	if (*busy) {
		ret = -EBUSY;
	} else if (n && n < room && page[n + strspn(page + n, "\n")] == '\0') {
		memcpy(to, page, n);
		to[n] = '\0';
		ret = len;
	}
	mutex_unlock(lock);
	return ret;
}

/**
 * kblk_good_name - check an identity, or the description of a key
 * @name: the name, which is logged, and is listed as NAME=DESCRIPTION,...
 * @len: bytes of @name
 */
static inline bool kblk_good_name(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (!isascii(name[i]) || !isgraph(name[i]) || name[i] == '=' ||
		    name[i] == ',')
			return false;
	return len && len <= KBLK_IDENTITY_LEN;
}

static inline const char *kblk_digest_text(enum kblk_digest mode)
{
	static const char * const text[] = {
		[KBLK_DIGEST_OFF] = "off",
		[KBLK_DIGEST_OPTIONAL] = "optional",
		[KBLK_DIGEST_REQUIRED] = "required",
	};

	return text[mode];
}

/**
 * kblk_parse_digest - parse text that is written to an attribute for digests
 * @page: the text
 *
 * Return: enum kblk_digest or -EINVAL.
 */
static inline int kblk_parse_digest(const char *page)
{
	enum kblk_digest mode;

	for (mode = 0; mode < KBLK_DIGEST_MODES; mode++)
		if (sysfs_streq(page, kblk_digest_text(mode)))
			return mode;
	return -EINVAL;
}

static inline const char *kblk_reason_text(unsigned int reason)
{
	static const char * const text[] = {
		[0] = "unknown reason",
		[KBLK_REASON_PROTOCOL] = "protocol error",
		[KBLK_REASON_VERSION] = "wrong version",
		[KBLK_REASON_VOLUME] = "unknown volume",
		[KBLK_REASON_ACCESS] = "access denied",
		[KBLK_REASON_FULL] = "too many connections",
		[KBLK_REASON_BUSY] = "earlier connection still ending",
		[KBLK_REASON_FAILED] = "target failed",
		[KBLK_REASON_UNKNOWN] = "unknown field",
		[KBLK_REASON_UUID] = "another volume",
		[KBLK_REASON_EXCLUSIVE] = "another host has it",
		[KBLK_REASON_FEATURE] = "digests are demanded",
	};

	return text[reason < ARRAY_SIZE(text) ? reason : 0];
}

#endif /* _KOFI_BLK_NET_H */

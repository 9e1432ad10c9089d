// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Generic netlink: discovery.
 *
 * KOFI_CMD_INFO_GET is kofi_getinfo() in the network namespace of the caller's
 * socket. Each message carries one whole fi_info; one that does not fit into the rest
 * of a buffer goes into the next. The list is made again for each
 * buffer: if the dump kept it, any user could hold that memory, as often as
 * there are sockets and for as long. It comes in the same order each time, and
 * is no snapshot. Modules of providers are loaded for the first buffer only, and
 * for privileged callers only.
 *
 * A request is trusted only as far as the policy has checked it: addresses are checked
 * here, everything else by discovery, which checks the hints of an unprivileged user like
 * the hints of a consumer.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <kunit/visibility.h>

#include "internal.h"
#include "names.h"
#include "netlink-gen.h"
#include "netlink.h"

/**
 * struct kofi_nl_info_dump - state of an info dump
 * @sent: number of infos sent
 */
struct kofi_nl_info_dump {
	unsigned int	sent;
};

/* ------------------------------------------------------------------ request */

static int kofi_nl_hints_string(char **to, const struct nlattr *attr)
{
	if (!attr)
		return 0;
	*to = nla_strdup(attr, GFP_KERNEL);
	return *to ? 0 : -ENOMEM;
}

static int kofi_nl_hints_src_addr(struct fi_info *hints,
				  const struct nlattr *attr,
				  struct netlink_ext_ack *extack)
{
	const struct sockaddr *sa = nla_data(attr);
	size_t len = 0;

	if (nla_len(attr) >= sizeof(sa->sa_family)) {
		switch (sa->sa_family) {
		case AF_INET:
			len = sizeof(struct sockaddr_in);
			break;
		case AF_INET6:
			len = sizeof(struct sockaddr_in6);
			break;
		}
	}
	if (!len || nla_len(attr) != len) {
		NL_SET_ERR_MSG_ATTR(extack, attr,
				    "src-addr is no IPv4 or IPv6 address");
		return -EINVAL;
	}
	hints->src_addr = kmemdup(sa, len, GFP_KERNEL);
	if (!hints->src_addr)
		return -ENOMEM;
	hints->src_addrlen = len;
	if (hints->addr_format == FI_FORMAT_UNSPEC)
		hints->addr_format = len == sizeof(struct sockaddr_in) ?
				     FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
	return 0;
}

/**
 * kofi_nl_hints - read the hints of a request
 * @nest: KOFI_A_INFO_HINTS, checked by the policy
 * @extack: receives the explanation of an error
 *
 * The caller is a person, not a program with limits: a mode that @nest
 * does not have is acceptable.
 *
 * Context: process, may sleep.
 * Return: hints to be freed with fi_freeinfo(); ERR_PTR(-EINVAL) if @nest is
 * malformed, ERR_PTR(-ENOMEM).
 */
VISIBLE_IF_KUNIT struct fi_info *
kofi_nl_hints(const struct nlattr *nest, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[ARRAY_SIZE(kofi_hints_nl_policy)];
	struct fi_info *hints;
	int ret;

	ret = nla_parse_nested(tb, ARRAY_SIZE(tb) - 1, nest,
			       kofi_hints_nl_policy, extack);
	if (ret)
		return ERR_PTR(ret);
	hints = fi_allocinfo();
	if (!hints)
		return ERR_PTR(-ENOMEM);

	hints->mode = ~0ULL;
	hints->domain_attr->mode = ~0ULL;
	hints->domain_attr->mr_mode = ~(FI_MR_BASIC | FI_MR_SCALABLE);
	if (tb[KOFI_A_HINTS_CAPS])
		hints->caps = nla_get_uint(tb[KOFI_A_HINTS_CAPS]);
	if (tb[KOFI_A_HINTS_MODE])
		hints->mode = nla_get_uint(tb[KOFI_A_HINTS_MODE]);
	if (tb[KOFI_A_HINTS_ADDR_FORMAT])
		hints->addr_format = nla_get_uint(tb[KOFI_A_HINTS_ADDR_FORMAT]);
	if (tb[KOFI_A_HINTS_EP_TYPE])
		hints->ep_attr->type = nla_get_uint(tb[KOFI_A_HINTS_EP_TYPE]);
	if (tb[KOFI_A_HINTS_SRC_ADDR])
		ret = kofi_nl_hints_src_addr(hints, tb[KOFI_A_HINTS_SRC_ADDR],
					     extack);
	if (!ret)
		ret = kofi_nl_hints_string(&hints->fabric_attr->prov_name,
					   tb[KOFI_A_HINTS_PROV_NAME]);
	if (!ret)
		ret = kofi_nl_hints_string(&hints->domain_attr->name,
					   tb[KOFI_A_HINTS_DOMAIN_NAME]);
	if (!ret)
		ret = kofi_nl_hints_string(&hints->fabric_attr->name,
					   tb[KOFI_A_HINTS_FABRIC_NAME]);
	if (ret) {
		fi_freeinfo(hints);
		return ERR_PTR(ret);
	}
	return hints;
}
EXPORT_SYMBOL_IF_KUNIT(kofi_nl_hints);

/* -------------------------------------------------------------------- reply */

/*
 * Put a member into a message. Returns true if there was no room; the caller then drops the
 * whole message. A name that a provider has not set is not sent. The function calls itself
 * as deep as structures are nested in the tables, which is three times.
 */
static bool kofi_nl_put_field(struct sk_buff *skb, const struct kofi_field *f,
			      const void *from)
{
	const void *nested;
	struct nlattr *nest;
	size_t len;

	if (!f->attr || f->form == KOFI_FORM_ADDR_LEN)
		return false;
	if (f->form < KOFI_FORM_TEXT)
		return nla_put_uint(skb, f->attr, kofi_field_uint(f, from));

	nested = kofi_field_ptr(f, from);
	if (!nested)
		return false;
	if (f->form == KOFI_FORM_TEXT)
		return nla_put_string(skb, f->attr, nested);
	if (f->form == KOFI_FORM_ADDR) {
		len = kofi_field_addr_len(f, from);
		return len && nla_put(skb, f->attr, len, nested);
	}
	nest = nla_nest_start(skb, f->attr);
	if (!nest)
		return true;
	for (f = f->nest; f->label; f++)
		if (kofi_nl_put_field(skb, f, nested))
			return true;
	nla_nest_end(skb, nest);
	return false;
}

/**
 * kofi_nl_put_info - put one fi_info into a message
 * @skb: buffer of the message; unchanged if the message does not fit
 * @from: request of the answer
 * @info: the fi_info
 *
 * Context: any.
 * Return: 0, -EMSGSIZE if @skb has no room for it.
 */
VISIBLE_IF_KUNIT int kofi_nl_put_info(struct sk_buff *skb,
				      const struct genl_info *from,
				      const struct fi_info *info)
{
	void *hdr = genlmsg_iput(skb, from);
	const struct kofi_field *f;

	if (!hdr)
		return -EMSGSIZE;
	for (f = kofi_info_fields; f->label; f++) {
		if (kofi_nl_put_field(skb, f, info)) {
			genlmsg_cancel(skb, hdr);
			return -EMSGSIZE;
		}
	}
	genlmsg_end(skb, hdr);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(kofi_nl_put_info);

/* --------------------------------------------------------------------- dump */

static const char *kofi_nl_text(const struct nlattr *attr)
{
	return attr ? nla_data(attr) : NULL;
}

/* Explain the errors that a user may meet; other codes explain themselves. */
static void kofi_nl_info_explain(const struct genl_info *from, int err)
{
	switch (-err) {
	case FI_EBADFLAGS:
		NL_SET_ERR_MSG_ATTR(from->extack,
				    from->attrs[KOFI_A_INFO_FLAGS],
				    "flags have an unknown bit");
		break;
	case ENOSYS:
		NL_SET_ERR_MSG_ATTR(from->extack,
				    from->attrs[KOFI_A_INFO_API_VERSION],
				    "this version of the interface is not known");
		break;
	}
}

static int kofi_nl_info_find(const struct genl_info *from, gfp_t gfp,
			     struct fi_info **list)
{
	struct nlattr **tb = from->attrs;
	u32 version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
	struct fi_info *hints = NULL;
	u64 flags = 0;
	int ret;

	if (tb[KOFI_A_INFO_FLAGS])
		flags = nla_get_uint(tb[KOFI_A_INFO_FLAGS]);
	if (tb[KOFI_A_INFO_API_VERSION])
		version = nla_get_uint(tb[KOFI_A_INFO_API_VERSION]);
	if (tb[KOFI_A_INFO_HINTS]) {
		hints = kofi_nl_hints(tb[KOFI_A_INFO_HINTS], from->extack);
		if (IS_ERR(hints))
			return PTR_ERR(hints);
	}
	ret = kofi_getinfo(genl_info_net(from), version,
			   kofi_nl_text(tb[KOFI_A_INFO_NODE]),
			   kofi_nl_text(tb[KOFI_A_INFO_SERVICE]), flags, hints,
			   list, gfp);
	fi_freeinfo(hints);
	if (ret)
		kofi_nl_info_explain(from, ret);
	return ret;
}

int kofi_nl_info_start(struct netlink_callback *cb)
{
	cb->min_dump_alloc = KOFI_NL_MSG_SIZE;
	return 0;
}

int kofi_nl_info_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct kofi_nl_info_dump *dump = (void *)cb->ctx;
	const struct genl_info *from = genl_info_dump(cb);
	struct fi_info *list, *info;
	gfp_t gfp = GFP_NOFS;	/* loads no module */
	unsigned int n = 0;
	int ret;

	BUILD_BUG_ON(sizeof(*dump) > sizeof(cb->ctx));
	if (!dump->sent && kofi_nl_may_load(cb->skb))
		gfp = GFP_KERNEL;
	ret = kofi_nl_info_find(from, gfp, &list);
	if (ret)
		return dump->sent && ret == -ENODATA ? 0 : ret;
	for (info = list; info; info = info->next) {
		if (n++ < dump->sent)
			continue;
		ret = kofi_nl_put_info(skb, from, info);
		if (ret)
			break;
		dump->sent++;
	}
	fi_freeinfo(list);
	return ret;
}

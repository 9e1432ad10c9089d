// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Generic netlink: the family, providers and open objects.
 *
 * The family only reads, except that KOFI_CMD_OBJ_SET starts and stops measurements. Its
 * attributes, policies and operations are generated from
 * Documentation/netlink/specs/kofi.yaml; this file has the functions behind them.
 * netlink_info.c has those for discovery, netlink_event.c has events.
 *
 * Visibility: a socket belongs to a network namespace, and an object belongs to the
 * namespace of its fabric. A caller sees the objects of its own namespace. With
 * CAP_NET_ADMIN in the initial namespace it sees all. Hidden objects do not exist for it.
 *
 * Modules are loaded for CAP_NET_ADMIN or CAP_SYS_MODULE in the initial user
 * namespace, once per request.
 *
 * kofi_obj_inspect() keeps an object from being freed. Nothing else is held then, as
 * providers are asked for addresses and statistics. Dumps are ordered by number, which
 * grows, so one can stop and go on anywhere; they are no snapshot. The same holds for
 * the peers of an endpoint.
 */
#include <linux/capability.h>
#include <linux/module.h>
#include <linux/socket.h>

#include <kunit/visibility.h>
#include <net/sock.h>

#include <linux/kofi/lib.h>

#include "internal.h"
#include "latency.h"
#include "netlink-gen.h"
#include "netlink.h"

/* ---------------------------------------------------------------- providers */

/**
 * struct kofi_nl_provider_dump - state of a provider dump
 * @sent: number of providers sent
 */
struct kofi_nl_provider_dump {
	unsigned int	sent;
};

static int kofi_nl_put_provider(struct sk_buff *skb,
				const struct genl_info *from,
				const struct kofi_provider *prov)
{
	void *hdr = genlmsg_iput(skb, from);

	if (!hdr)
		return -EMSGSIZE;
	if (nla_put_string(skb, KOFI_A_PROVIDER_NAME, prov->name) ||
	    nla_put_uint(skb, KOFI_A_PROVIDER_VERSION, prov->version) ||
	    nla_put_string(skb, KOFI_A_PROVIDER_MODULE,
			   module_name(prov->owner)) ||
	    nla_put_sint(skb, KOFI_A_PROVIDER_PRIORITY, prov->priority)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

/**
 * kofi_nl_may_load - whether a request may load modules of providers
 * @request: the request
 *
 * Any user may ask, and each name that no module has would start modprobe.
 *
 * Context: process.
 */
bool kofi_nl_may_load(const struct sk_buff *request)
{
	return netlink_capable(request, CAP_NET_ADMIN) ||
	       netlink_capable(request, CAP_SYS_MODULE);
}

/* An operation without a policy would take any attribute for no attribute. */
int kofi_nl_provider_start(struct netlink_callback *cb)
{
	if (nlmsg_attrlen(cb->nlh, GENL_HDRLEN)) {
		NL_SET_ERR_MSG(cb->extack, "the request takes no attributes");
		return -EINVAL;
	}
	if (kofi_nl_may_load(cb->skb))
		kofi_provider_load_known(FI_EP_UNSPEC);
	return 0;
}

int kofi_nl_provider_get_dumpit(struct sk_buff *skb,
				struct netlink_callback *cb)
{
	struct kofi_nl_provider_dump *dump = (void *)cb->ctx;
	struct kofi_provider *prov;
	unsigned int n = 0;
	int ret = 0;

	BUILD_BUG_ON(sizeof(*dump) > sizeof(cb->ctx));
	for (prov = kofi_provider_next(NULL); prov;
	     prov = kofi_provider_next(prov)) {
		if (n++ < dump->sent)
			continue;
		ret = kofi_nl_put_provider(skb, genl_info_dump(cb), prov);
		if (ret) {
			kofi_provider_put(prov);
			break;
		}
		dump->sent++;
	}
	return ret;
}

/* ------------------------------------------------------------------ objects */

/**
 * struct kofi_nl_obj_dump - state of an object dump
 * @id: smallest number that has not been visited
 * @fclass: only this class, or FI_CLASS_UNSPEC
 */
struct kofi_nl_obj_dump {
	u32	id;
	size_t	fclass;
};

static struct kofi_nl_obj_dump *kofi_nl_obj_dump(struct netlink_callback *cb)
{
	BUILD_BUG_ON(sizeof(struct kofi_nl_obj_dump) > sizeof(cb->ctx));

	return (struct kofi_nl_obj_dump *)cb->ctx;
}

static struct net *kofi_nl_obj_net(const struct kofi_obj *obj)
{
	return kofi_obj_fabric(obj)->net;
}

static bool kofi_nl_obj_visible(const struct kofi_obj *obj, struct net *net,
				const struct sk_buff *request)
{
	return net_eq(kofi_nl_obj_net(obj), net) ||
	       (net_eq(net, &init_net) &&
		netlink_capable(request, CAP_NET_ADMIN));
}

/*
 * Look up an object by number, for kofi_obj_seen() afterwards. NULL if there is none, or
 * the requester must not see it.
 */
static struct kofi_obj *kofi_nl_obj_find(u32 id, struct net *net,
					 const struct sk_buff *request)
{
	u32 found = id;
	struct kofi_obj *obj = kofi_obj_inspect(&found);

	if (!obj || (found == id && kofi_nl_obj_visible(obj, net, request)))
		return obj;
	kofi_obj_seen(obj);
	return NULL;
}

/* Send no address that the endpoint does not have yet, or has lost. */
static bool kofi_nl_put_ep(struct sk_buff *skb, struct kofi_obj *obj)
{
	struct sockaddr_storage addr;
	size_t len = sizeof(addr);
	struct kofi_ep *ep;

	if (!kofi_cm_getname(obj->fid, &addr, &len) &&
	    nla_put(skb, KOFI_A_OBJ_ADDR, len, &addr))
		return true;
	if (obj->fid->fclass != FI_CLASS_EP)
		return false;

	ep = container_of(obj, struct kofi_ep, obj);
	len = sizeof(addr);
	if (!kofi_cm_getpeer(ep, &addr, &len) &&
	    nla_put(skb, KOFI_A_OBJ_PEER_ADDR, len, &addr))
		return true;
	return nla_put_uint(skb, KOFI_A_OBJ_STATE, READ_ONCE(ep->state));
}

struct kofi_nl_stats {
	struct sk_buff	*skb;
	bool		full;
};

static void kofi_nl_put_stat(void *arg, const char *name, u64 value)
{
	struct kofi_nl_stats *to = arg;
	struct nlattr *nest;

	if (to->full)
		return;
	nest = nla_nest_start(to->skb, KOFI_A_OBJ_STAT);
	if (!nest ||
	    nla_put_string(to->skb, KOFI_A_STAT_NAME, name) ||
	    nla_put_uint(to->skb, KOFI_A_STAT_VALUE, value)) {
		to->full = true;
		return;
	}
	nla_nest_end(to->skb, nest);
}

static int kofi_nl_put_bucket(struct sk_buff *skb, int bits, u64 count)
{
	struct nlattr *nest = nla_nest_start(skb, KOFI_A_LATENCY_BUCKET);

	if (!nest ||
	    (bits < KOFI_LATENCY_BUCKETS - 1 &&
	     nla_put_uint(skb, KOFI_A_BUCKET_BELOW, 1ULL << bits)) ||
	    nla_put_uint(skb, KOFI_A_BUCKET_COUNT, count))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* Nothing if it is not measured. */
static int kofi_nl_put_latency(struct sk_buff *skb, struct kofi_ep *ep)
{
	u64 counts[KOFI_LATENCY_BUCKETS], samples = 0;
	struct nlattr *nest;
	int i;

	if (!kofi_latency_get(ep, counts))
		return 0;
	for (i = 0; i < ARRAY_SIZE(counts); i++)
		samples += counts[i];
	nest = nla_nest_start(skb, KOFI_A_OBJ_LATENCY);
	if (!nest || nla_put_uint(skb, KOFI_A_LATENCY_SAMPLES, samples))
		return -EMSGSIZE;
	for (i = 0; i < ARRAY_SIZE(counts); i++)
		if (counts[i] && kofi_nl_put_bucket(skb, i, counts[i]))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/**
 * kofi_nl_put_obj - put one object into a message
 * @skb: buffer of the message; unchanged if the message does not fit
 * @from: request of the answer
 * @obj: from kofi_obj_inspect()
 *
 * Context: process, may sleep.
 * Return: 0, -EMSGSIZE if @skb has no room for it.
 */
VISIBLE_IF_KUNIT int kofi_nl_put_obj(struct sk_buff *skb,
				     const struct genl_info *from,
				     struct kofi_obj *obj)
{
	const size_t fclass = obj->fid->fclass;
	const char *name = kofi_obj_name(obj);
	struct kofi_nl_stats stats = { .skb = skb };
	void *hdr;

	hdr = genlmsg_iput(skb, from);
	if (!hdr)
		return -EMSGSIZE;
	if (nla_put_uint(skb, KOFI_A_OBJ_ID, obj->id) ||
	    nla_put_uint(skb, KOFI_A_OBJ_CLASS, fclass) ||
	    nla_put_uint(skb, KOFI_A_OBJ_NETNS, kofi_nl_obj_net(obj)->ns.inum))
		goto cancel;
	if (obj->parent &&
	    nla_put_uint(skb, KOFI_A_OBJ_PARENT, obj->parent->id))
		goto cancel;
	if (obj->prov &&
	    nla_put_string(skb, KOFI_A_OBJ_PROV_NAME, obj->prov->name))
		goto cancel;
	if (name && nla_put_string(skb, KOFI_A_OBJ_NAME, name))
		goto cancel;
	if (nla_put_string(skb, KOFI_A_OBJ_OWNER, kofi_obj_fabric(obj)->owner))
		goto cancel;
	if ((fclass == FI_CLASS_EP || fclass == FI_CLASS_PEP) &&
	    kofi_nl_put_ep(skb, obj))
		goto cancel;
	if (fclass == FI_CLASS_EP &&
	    kofi_nl_put_latency(skb, container_of(obj, struct kofi_ep, obj)))
		goto cancel;
	if (obj->ops && obj->ops->stats)
		obj->ops->stats(obj, kofi_nl_put_stat, &stats);
	if (kofi_events_lost(obj))
		kofi_nl_put_stat(&stats, "events_lost", kofi_events_lost(obj));
	if (stats.full)
		goto cancel;
	genlmsg_end(skb, hdr);
	return 0;

cancel:
	genlmsg_cancel(skb, hdr);
	return -EMSGSIZE;
}
EXPORT_SYMBOL_IF_KUNIT(kofi_nl_put_obj);

int kofi_nl_obj_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct kofi_obj *obj;
	struct sk_buff *rsp;
	int ret = -ENOENT;

	if (GENL_REQ_ATTR_CHECK(info, KOFI_A_OBJ_ID))
		return -EINVAL;
	rsp = genlmsg_new(KOFI_NL_MSG_SIZE, GFP_KERNEL);
	if (!rsp)
		return -ENOMEM;

	obj = kofi_nl_obj_find(nla_get_uint(info->attrs[KOFI_A_OBJ_ID]),
			       genl_info_net(info), skb);
	if (obj) {
		ret = kofi_nl_put_obj(rsp, info, obj);
		kofi_obj_seen(obj);
	}
	if (!ret)
		return genlmsg_reply(rsp, info);

	if (ret == -ENOENT)
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[KOFI_A_OBJ_ID],
				    "no object has this number");
	nlmsg_free(rsp);
	return ret;
}

int kofi_nl_obj_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr **attrs = info->attrs;
	struct kofi_obj *obj;
	int ret = -EOPNOTSUPP;

	if (GENL_REQ_ATTR_CHECK(info, KOFI_A_OBJ_ID) ||
	    GENL_REQ_ATTR_CHECK(info, KOFI_A_OBJ_MEASURE))
		return -EINVAL;
	obj = kofi_nl_obj_find(nla_get_uint(attrs[KOFI_A_OBJ_ID]),
			       genl_info_net(info), skb);
	if (!obj) {
		NL_SET_ERR_MSG_ATTR(info->extack, attrs[KOFI_A_OBJ_ID],
				    "no object has this number");
		return -ENOENT;
	}
	if (obj->fid->fclass == FI_CLASS_EP)
		ret = kofi_latency_set(container_of(obj, struct kofi_ep, obj),
				       nla_get_u8(attrs[KOFI_A_OBJ_MEASURE]));
	else
		NL_SET_ERR_MSG_ATTR(info->extack, attrs[KOFI_A_OBJ_ID],
				    "the object transmits nothing");
	kofi_obj_seen(obj);
	return ret;
}

int kofi_nl_obj_start(struct netlink_callback *cb)
{
	const struct nlattr *fclass = genl_info_dump(cb)->attrs[KOFI_A_OBJ_CLASS];

	cb->min_dump_alloc = KOFI_NL_MSG_SIZE;
	if (fclass)
		kofi_nl_obj_dump(cb)->fclass = nla_get_uint(fclass);
	return 0;
}

int kofi_nl_obj_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct kofi_nl_obj_dump *dump = kofi_nl_obj_dump(cb);
	struct net *net = sock_net(skb->sk);
	struct kofi_obj *obj;
	int ret = 0;

	for (; (obj = kofi_obj_inspect(&dump->id)); dump->id++) {
		if ((!dump->fclass || obj->fid->fclass == dump->fclass) &&
		    kofi_nl_obj_visible(obj, net, cb->skb))
			ret = kofi_nl_put_obj(skb, genl_info_dump(cb), obj);
		kofi_obj_seen(obj);
		if (ret)
			break;
	}
	return ret;
}

/* -------------------------------------------------------------------- peers */

/**
 * struct kofi_nl_peer_dump - state of a dump of an endpoint's peers
 * @ep: number of the endpoint
 * @number: smallest number of a peer that has not been visited
 */
struct kofi_nl_peer_dump {
	u32	ep;
	u32	number;
};

static struct kofi_nl_peer_dump *kofi_nl_peer_dump(struct netlink_callback *cb)
{
	BUILD_BUG_ON(sizeof(struct kofi_nl_peer_dump) > sizeof(cb->ctx));

	return (struct kofi_nl_peer_dump *)cb->ctx;
}

/* Look up the endpoint of a dump, for kofi_obj_seen() afterwards, or an error. */
static struct kofi_obj *kofi_nl_peer_ep(struct netlink_callback *cb)
{
	struct kofi_obj *obj = kofi_nl_obj_find(kofi_nl_peer_dump(cb)->ep,
						sock_net(cb->skb->sk), cb->skb);

	if (!obj)
		return ERR_PTR(-ENOENT);
	if (kofi_fid_is_ep(obj->fid) &&
	    container_of(obj, struct kofi_ep, obj)->ops->peer_next)
		return obj;
	kofi_obj_seen(obj);
	return ERR_PTR(-EOPNOTSUPP);
}

/**
 * kofi_nl_put_peer - put one peer into a message
 * @skb: buffer of the message; unchanged if the message does not fit
 * @from: request of the answer
 * @ep: the endpoint
 * @peer: state of the peer
 *
 * Context: process.
 * Return: 0, -EMSGSIZE if @skb has no room for it.
 */
VISIBLE_IF_KUNIT int kofi_nl_put_peer(struct sk_buff *skb,
				      const struct genl_info *from,
				      const struct kofi_ep *ep,
				      const struct kofi_peer_state *peer)
{
	const struct sockaddr *addr = (const struct sockaddr *)&peer->addr;
	fi_addr_t source = kofi_av_source(ep->av, addr);
	void *hdr = genlmsg_iput(skb, from);

	if (!hdr)
		return -EMSGSIZE;
	if (nla_put(skb, KOFI_A_PEER_ADDR, kofi_ip_len(addr), addr) ||
	    (source != FI_ADDR_NOTAVAIL &&
	     nla_put_uint(skb, KOFI_A_PEER_FI_ADDR, source)) ||
	    nla_put_uint(skb, KOFI_A_PEER_STATE, peer->state) ||
	    nla_put_uint(skb, KOFI_A_PEER_RECONNECTS, peer->reconnects) ||
	    nla_put_uint(skb, KOFI_A_PEER_TX_WAITING, peer->tx_waiting) ||
	    nla_put_uint(skb, KOFI_A_PEER_RX_STORED, peer->rx_stored) ||
	    nla_put_uint(skb, KOFI_A_PEER_RX_STORED_BYTES,
			 peer->rx_stored_bytes)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(kofi_nl_put_peer);

int kofi_nl_peer_start(struct netlink_callback *cb)
{
	const struct nlattr *ep = genl_info_dump(cb)->attrs[KOFI_A_PEER_EP];
	struct kofi_obj *obj;

	if (!ep) {
		NL_SET_ERR_MSG(cb->extack, "the number of an endpoint is missing");
		return -EINVAL;
	}
	kofi_nl_peer_dump(cb)->ep = nla_get_uint(ep);
	obj = kofi_nl_peer_ep(cb);
	if (IS_ERR(obj)) {
		if (PTR_ERR(obj) == -ENOENT)
			NL_SET_ERR_MSG_ATTR(cb->extack, ep,
					    "no object has this number");
		else
			NL_SET_ERR_MSG_ATTR(cb->extack, ep,
					    "the object has no peers");
		return PTR_ERR(obj);
	}
	kofi_obj_seen(obj);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(kofi_nl_peer_start);

int kofi_nl_peer_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct kofi_nl_peer_dump *dump = kofi_nl_peer_dump(cb);
	struct kofi_peer_state peer = {};
	struct kofi_obj *obj;
	struct kofi_ep *ep;
	int ret = 0;

	/* none if the endpoint has been closed since the last part */
	obj = kofi_nl_peer_ep(cb);
	if (IS_ERR(obj))
		return 0;
	ep = container_of(obj, struct kofi_ep, obj);
	for (; ep->ops->peer_next(&ep->ep, &dump->number, &peer);
	     dump->number++) {
		ret = kofi_nl_put_peer(skb, genl_info_dump(cb), ep, &peer);
		if (ret)
			break;
	}
	kofi_obj_seen(obj);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(kofi_nl_peer_get_dumpit);

/**
 * kofi_netlink_start - register the family
 *
 * Context: process, when kofi.ko is loaded.
 * Return: 0 or an error of genl_register_family().
 */
int kofi_netlink_start(void)
{
	kofi_nl_event_start();
	return genl_register_family(&kofi_nl_family);
}

/**
 * kofi_netlink_stop - unregister the family
 *
 * Context: process, when kofi.ko is unloaded: a dump under way holds the
 * module.
 */
void kofi_netlink_stop(void)
{
	kofi_nl_event_stop();
	genl_unregister_family(&kofi_nl_family);
}

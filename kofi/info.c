// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Discovery: fi_info, and queries to providers (fi_getinfo(3)).
 *
 * Ownership
 *
 * An fi_info belongs to its consumer, which frees it by fi_freeinfo(). It owns everything
 * that it points to except the handle, which its provider knows, and open
 * objects named in the attributes. It holds a reference to the network
 * namespace of its addresses, so that the namespace exists when
 * a fabric is opened with it.
 *
 * Queries
 *
 * kofi_getinfo() checks the arguments, completes the hints, and queries one
 * provider after the other, best first. An error of one provider does not discard
 * the answers of others. A provider resolves addresses with lib/addr.c and
 * compares hints with info_match.c.
 */
#include <linux/err.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/kernel.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/socket.h>
#include <linux/string.h>
#include <net/net_namespace.h>
#include <rdma/ib.h>

#include <linux/kofi/lib.h>

#include "internal.h"

#define KOFI_INFO_FLAGS		(FI_SOURCE | FI_NUMERICHOST | \
				 FI_PROV_ATTR_ONLY | FI_RESCAN)

#define KOFI_MR_ANY		(FI_MR_LOCAL | FI_MR_RAW | FI_MR_VIRT_ADDR | \
				 FI_MR_ALLOCATED | FI_MR_PROV_KEY | \
				 FI_MR_MMU_NOTIFY | FI_MR_RMA_EVENT | \
				 FI_MR_ENDPOINT | FI_MR_HMEM | FI_MR_COLLECTIVE)

/**
 * struct kofi_info - an fi_info of fi_allocinfo() or fi_dupinfo()
 * @info: the part that its owner knows, and may change
 * @net: namespace with a reference, or NULL
 * @ns_tracker: tracker of the reference
 */
struct kofi_info {
	struct fi_info	info;
	struct net	*net;
	netns_tracker	ns_tracker;
};

/**
 * fi_version - version of this API
 *
 * See fi_version(3).
 *
 * Context: any.
 * Return: FI_VERSION() of the newest API that fi_getinfo() supports.
 */
u32 fi_version(void)
{
	return FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
}
EXPORT_SYMBOL_GPL(fi_version);

/* ---------------------------------------------------------- copy and free */

static void kofi_info_free_nic(struct fid_nic *nic)
{
	if (!nic)
		return;
	if (nic->device_attr) {
		kfree(nic->device_attr->name);
		kfree(nic->device_attr->device_id);
		kfree(nic->device_attr->device_version);
		kfree(nic->device_attr->vendor_id);
		kfree(nic->device_attr->driver);
		kfree(nic->device_attr->firmware);
		kfree(nic->device_attr);
	}
	kfree(nic->bus_attr);
	if (nic->link_attr) {
		kfree(nic->link_attr->address);
		kfree(nic->link_attr->network_type);
		kfree(nic->link_attr);
	}
	kfree(nic);
}

static void kofi_info_free(struct fi_info *info)
{
	struct kofi_info *ki = container_of(info, struct kofi_info, info);

	kfree(info->src_addr);
	kfree(info->dest_addr);
	kfree(info->tx_attr);
	kfree(info->rx_attr);
	if (info->ep_attr) {
		kfree(info->ep_attr->auth_key);
		kfree(info->ep_attr);
	}
	if (info->domain_attr) {
		kfree(info->domain_attr->name);
		kfree(info->domain_attr->auth_key);
		kfree(info->domain_attr);
	}
	if (info->fabric_attr) {
		kfree(info->fabric_attr->name);
		kfree(info->fabric_attr->prov_name);
		kfree(info->fabric_attr);
	}
	kofi_info_free_nic(info->nic);
	if (ki->net)
		put_net_track(ki->net, &ki->ns_tracker);
	kfree(ki);
}

/**
 * fi_freeinfo - free a list of fi_info
 * @info: the first of a list made with fi_getinfo(), fi_allocinfo() or
 *	fi_dupinfo(), or the info of an event; NULL is ignored
 *
 * Frees everything they point to, except the handle and open objects. So the owner
 * must allocate the contents that it adds with kmalloc() and related functions. See
 * fi_getinfo(3).
 *
 * Context: any but hard interrupts.
 */
void fi_freeinfo(struct fi_info *info)
{
	struct fi_info *next;

	for (; info; info = next) {
		next = info->next;
		kofi_info_free(info);
	}
}
EXPORT_SYMBOL_GPL(fi_freeinfo);

static int kofi_info_dup_string(char **to, const char *from)
{
	*to = NULL;
	if (!from)
		return 0;
	*to = kstrdup(from, GFP_KERNEL);
	return *to ? 0 : -ENOMEM;
}

/**
 * kofi_info_dup_bytes - copy a member of an info
 * @to: receives the copy, or NULL for no bytes
 * @from: the bytes, or NULL
 * @len: number of bytes
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int kofi_info_dup_bytes(void **to, const void *from, size_t len)
{
	*to = NULL;
	if (!from || !len)
		return 0;
	*to = kmemdup(from, len, GFP_KERNEL);
	return *to ? 0 : -ENOMEM;
}

static int kofi_info_dup_device(struct fid_nic *nic,
				const struct fi_device_attr *from)
{
	struct fi_device_attr *to;

	if (!from)
		return 0;
	to = kzalloc(sizeof(*to), GFP_KERNEL);
	if (!to)
		return -ENOMEM;
	nic->device_attr = to;
	if (kofi_info_dup_string(&to->name, from->name) ||
	    kofi_info_dup_string(&to->device_id, from->device_id) ||
	    kofi_info_dup_string(&to->device_version, from->device_version) ||
	    kofi_info_dup_string(&to->vendor_id, from->vendor_id) ||
	    kofi_info_dup_string(&to->driver, from->driver) ||
	    kofi_info_dup_string(&to->firmware, from->firmware))
		return -ENOMEM;
	return 0;
}

static int kofi_info_dup_link(struct fid_nic *nic,
			      const struct fi_link_attr *from)
{
	struct fi_link_attr *to;

	if (!from)
		return 0;
	to = kmemdup(from, sizeof(*to), GFP_KERNEL);
	if (!to)
		return -ENOMEM;
	to->address = NULL;
	to->network_type = NULL;
	nic->link_attr = to;
	if (kofi_info_dup_string(&to->address, from->address) ||
	    kofi_info_dup_string(&to->network_type, from->network_type))
		return -ENOMEM;
	return 0;
}

/* Only a provider knows how long its own attributes are: they are not copied. */
static int kofi_info_dup_nic(struct fi_info *to, const struct fi_info *from)
{
	struct fid_nic *nic;

	if (!from->nic)
		return 0;
	nic = kzalloc(sizeof(*nic), GFP_KERNEL);
	if (!nic)
		return -ENOMEM;
	nic->fid.fclass = FI_CLASS_NIC;
	nic->fid.context = from->nic->fid.context;
	to->nic = nic;
	if (kofi_info_dup_device(nic, from->nic->device_attr) ||
	    kofi_info_dup_bytes((void **)&nic->bus_attr, from->nic->bus_attr,
				sizeof(*nic->bus_attr)) ||
	    kofi_info_dup_link(nic, from->nic->link_attr))
		return -ENOMEM;
	return 0;
}

static int kofi_info_dup_ep(struct fi_info *to, const struct fi_ep_attr *from)
{
	struct fi_ep_attr *attr;

	if (!from)
		return 0;
	attr = kmemdup(from, sizeof(*attr), GFP_KERNEL);
	if (!attr)
		return -ENOMEM;
	to->ep_attr = attr;
	return kofi_info_dup_bytes((void **)&attr->auth_key, from->auth_key,
				   from->auth_key_size);
}

static int kofi_info_dup_domain(struct fi_info *to,
				const struct fi_domain_attr *from)
{
	struct fi_domain_attr *attr;

	if (!from)
		return 0;
	attr = kmemdup(from, sizeof(*attr), GFP_KERNEL);
	if (!attr)
		return -ENOMEM;
	attr->name = NULL;
	attr->auth_key = NULL;
	to->domain_attr = attr;
	if (kofi_info_dup_string(&attr->name, from->name) ||
	    kofi_info_dup_bytes((void **)&attr->auth_key, from->auth_key,
				from->auth_key_size))
		return -ENOMEM;
	return 0;
}

/* Set the namespace of an info that has none, and take a reference. */
static void kofi_info_set_net(struct fi_info *info, struct net *net)
{
	struct kofi_info *ki = container_of(info, struct kofi_info, info);

	if (net && !WARN_ON_ONCE(ki->net))
		ki->net = get_net_track(net, &ki->ns_tracker, GFP_KERNEL);
	info->fabric_attr->net = net;
}

static int kofi_info_dup_fabric(struct fi_info *to,
				const struct fi_fabric_attr *from)
{
	struct fi_fabric_attr *attr;

	if (!from)
		return 0;
	attr = kmemdup(from, sizeof(*attr), GFP_KERNEL);
	if (!attr)
		return -ENOMEM;
	attr->name = NULL;
	attr->prov_name = NULL;
	to->fabric_attr = attr;
	kofi_info_set_net(to, from->net);
	if (kofi_info_dup_string(&attr->name, from->name) ||
	    kofi_info_dup_string(&attr->prov_name, from->prov_name))
		return -ENOMEM;
	return 0;
}

static struct fi_info *kofi_info_alloc(void)
{
	struct kofi_info *ki = kzalloc(sizeof(*ki), GFP_KERNEL);

	return ki ? &ki->info : NULL;
}

/* Add the missing attribute structures to an info. */
static int kofi_info_add_attrs(struct fi_info *info)
{
	if (!info->tx_attr)
		info->tx_attr = kzalloc(sizeof(*info->tx_attr), GFP_KERNEL);
	if (!info->rx_attr)
		info->rx_attr = kzalloc(sizeof(*info->rx_attr), GFP_KERNEL);
	if (!info->ep_attr)
		info->ep_attr = kzalloc(sizeof(*info->ep_attr), GFP_KERNEL);
	if (!info->domain_attr)
		info->domain_attr = kzalloc(sizeof(*info->domain_attr),
					    GFP_KERNEL);
	if (!info->fabric_attr)
		info->fabric_attr = kzalloc(sizeof(*info->fabric_attr),
					    GFP_KERNEL);
	if (!info->tx_attr || !info->rx_attr || !info->ep_attr ||
	    !info->domain_attr || !info->fabric_attr)
		return -ENOMEM;
	return 0;
}

/**
 * fi_dupinfo - copy an fi_info
 * @info: the info, only the first of a list; NULL for an empty one with all
 *	attribute structures
 *
 * The copy is complete, with addresses, names, keys and the description of the
 * network card (except the card's provider specific attributes). It has the
 * same handle and a reference of its own to the network namespace. See
 * fi_getinfo(3).
 *
 * Context: process, may sleep.
 * Return: the copy, to be freed with fi_freeinfo(), or NULL without memory.
 */
struct fi_info *fi_dupinfo(const struct fi_info *info)
{
	struct fi_info *dup = kofi_info_alloc();

	if (!dup)
		return NULL;
	if (!info) {
		if (kofi_info_add_attrs(dup))
			goto free;
		return dup;
	}

	dup->caps = info->caps;
	dup->mode = info->mode;
	dup->addr_format = info->addr_format;
	dup->src_addrlen = info->src_addrlen;
	dup->dest_addrlen = info->dest_addrlen;
	dup->handle = info->handle;
	if (kofi_info_dup_bytes(&dup->src_addr, info->src_addr,
				info->src_addrlen) ||
	    kofi_info_dup_bytes(&dup->dest_addr, info->dest_addr,
				info->dest_addrlen) ||
	    kofi_info_dup_bytes((void **)&dup->tx_attr, info->tx_attr,
				sizeof(*info->tx_attr)) ||
	    kofi_info_dup_bytes((void **)&dup->rx_attr, info->rx_attr,
				sizeof(*info->rx_attr)) ||
	    kofi_info_dup_ep(dup, info->ep_attr) ||
	    kofi_info_dup_domain(dup, info->domain_attr) ||
	    kofi_info_dup_fabric(dup, info->fabric_attr) ||
	    kofi_info_dup_nic(dup, info))
		goto free;
	return dup;

free:
	fi_freeinfo(dup);
	return NULL;
}
EXPORT_SYMBOL_GPL(fi_dupinfo);

/**
 * kofi_info_set_names - set the names of the domain and the fabric of a new fi_info
 * @info: the info, without names
 * @domain: name of the domain, or NULL, of kmalloc(); @info takes it over
 * @fabric: name of the fabric, or NULL, of kmalloc(); @info takes it over
 *
 * Context: any.
 * Return: 0, or -ENOMEM if a name is missing.
 */
int kofi_info_set_names(struct fi_info *info, char *domain, char *fabric)
{
	info->domain_attr->name = domain;
	info->fabric_attr->name = fabric;
	return domain && fabric ? 0 : -ENOMEM;
}
EXPORT_SYMBOL_GPL(kofi_info_set_names);

/* --------------------------------------------------------------- addresses */

/**
 * kofi_info_check_addr - check an address and its length
 * @format: FI_SOCKADDR_IN, ...
 * @addr: the address, or NULL
 * @len: size of the address in bytes
 *
 * An address must have the length of its family, and a family that the format
 * permits; a text must be terminated by NUL. Other formats are not checked.
 *
 * Context: any.
 * Return: 0 or -EINVAL.
 */
int kofi_info_check_addr(u32 format, const void *addr, size_t len)
{
	const struct sockaddr *sa = addr;
	size_t need;

	if (!addr != !len)
		return -EINVAL;
	if (!addr)
		return 0;

	switch (format) {
	case FI_ADDR_STR:
		return strnlen(addr, len) < len ? 0 : -EINVAL;
	case FI_FORMAT_UNSPEC:
	case FI_SOCKADDR:
	case FI_SOCKADDR_IP:
	case FI_SOCKADDR_IN:
	case FI_SOCKADDR_IN6:
	case FI_SOCKADDR_IB:
		break;
	default:
		return 0;
	}

	if (len < offsetofend(struct sockaddr, sa_family) ||
	    len > sizeof(struct sockaddr_storage))
		return -EINVAL;
	switch (sa->sa_family) {
	case AF_INET:
		need = sizeof(struct sockaddr_in);
		break;
	case AF_INET6:
		need = sizeof(struct sockaddr_in6);
		break;
	case AF_IB:
		need = sizeof(struct sockaddr_ib);
		break;
	default:
		return -EINVAL;
	}
	if (len < need ||
	    (format == FI_SOCKADDR_IN && sa->sa_family != AF_INET) ||
	    (format == FI_SOCKADDR_IN6 && sa->sa_family != AF_INET6) ||
	    (format == FI_SOCKADDR_IB && sa->sa_family != AF_IB) ||
	    (format == FI_SOCKADDR_IP && sa->sa_family == AF_IB))
		return -EINVAL;
	return 0;
}

/* Replace an address by a copy of another one. */
static int kofi_info_replace(void **addr, size_t *len, const void *by,
			     size_t size)
{
	void *copy = kmemdup(by, size, GFP_KERNEL);

	if (!copy)
		return -ENOMEM;
	kfree(*addr);
	*addr = copy;
	*len = size;
	return 0;
}

static int kofi_info_addr_print(void **addr, size_t *len)
{
	char text[KOFI_IP_STR_MAX];
	size_t size = sizeof(text);
	int err;

	if (!*addr)
		return 0;
	err = kofi_ip_copy_text(*addr, text, &size);
	return err ?: kofi_info_replace(addr, len, text, size);
}

/**
 * kofi_info_print - convert the addresses of an info to text
 * @info: an info with IP addresses
 *
 * Context: process, may sleep.
 * Return: 0; -ENOMEM; -EINVAL for other addresses.
 */
int kofi_info_print(struct fi_info *info)
{
	info->addr_format = FI_ADDR_STR;
	return kofi_info_addr_print(&info->src_addr, &info->src_addrlen) ?:
	       kofi_info_addr_print(&info->dest_addr, &info->dest_addrlen);
}

static int kofi_info_addr_parse(struct net *net, void **addr, size_t *len)
{
	struct sockaddr_storage ss;
	int err;

	if (!*addr)
		return 0;
	err = kofi_ip_parse(net, *addr, &ss);
	return err ?: kofi_info_replace(addr, len, &ss,
					kofi_ip_len((struct sockaddr *)&ss));
}

/* Convert text to addresses for providers, which never get text. */
static int kofi_info_parse(struct fi_info *info, struct net *net)
{
	const struct sockaddr *sa;
	int err;

	if (info->addr_format != FI_ADDR_STR)
		return 0;
	err = kofi_info_addr_parse(net, &info->src_addr, &info->src_addrlen) ?:
	      kofi_info_addr_parse(net, &info->dest_addr, &info->dest_addrlen);
	if (err)
		return err;
	sa = info->src_addr ?: info->dest_addr;
	if (!sa)
		info->addr_format = FI_FORMAT_UNSPEC;
	else
		info->addr_format = sa->sa_family == AF_INET6 ?
				    FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	return 0;
}

/**
 * kofi_info_parsed - convert the addresses of an info from text
 * @info: info of a consumer
 * @net: network namespace, for scopes by the name of an interface
 *
 * Context: process, may sleep.
 * Return: @info, or a copy if its addresses are text, which kofi_info_unparse()
 * frees; ERR_PTR(-ENOMEM); ERR_PTR(-EINVAL) for text that is not an address.
 */
struct fi_info *kofi_info_parsed(struct fi_info *info, struct net *net)
{
	struct fi_info *copy;
	int err;

	if (info->addr_format != FI_ADDR_STR)
		return info;
	copy = fi_dupinfo(info);
	if (!copy)
		return ERR_PTR(-ENOMEM);
	err = kofi_info_parse(copy, net);
	if (!err)
		return copy;
	fi_freeinfo(copy);
	return ERR_PTR(err);
}

/**
 * kofi_info_unparse - free the copy that kofi_info_parsed() has made
 * @info: argument of kofi_info_parsed()
 * @parsed: value that it has returned
 *
 * Context: process, may sleep.
 */
void kofi_info_unparse(struct fi_info *info, struct fi_info *parsed)
{
	if (parsed != info)
		fi_freeinfo(parsed);
}

/* ----------------------------------------------------------------- getinfo */

/**
 * kofi_info_usable - check that an info can open an object
 * @info: the info
 * @fabric: fabric of the object
 *
 * Context: any.
 * Return: false if the info lacks an attribute structure, has another provider or
 * network namespace, or has inconsistent addresses.
 */
bool kofi_info_usable(const struct fi_info *info,
		      const struct kofi_fabric *fabric)
{
	const struct fi_fabric_attr *attr = info->fabric_attr;

	if (!attr || !info->tx_attr || !info->rx_attr || !info->ep_attr ||
	    !info->domain_attr)
		return false;
	if (attr->prov_name && strcmp(attr->prov_name, fabric->obj.prov->name))
		return false;
	if (attr->net && !net_eq(attr->net, fabric->net))
		return false;
	return !kofi_info_check_addr(info->addr_format, info->src_addr,
				     info->src_addrlen) &&
	       !kofi_info_check_addr(info->addr_format, info->dest_addr,
				     info->dest_addrlen);
}

static int kofi_info_check(u32 version, const char *node, const char *service,
			   u64 flags, const struct fi_info *hints)
{
	int ret;

	if (FI_VERSION_LT(fi_version(), version))
		return -ENOSYS;
	if (flags & ~KOFI_INFO_FLAGS)
		return -FI_EBADFLAGS;
	if (flags & FI_SOURCE && !node && !service)
		return -EINVAL;
	if (!hints)
		return 0;
	ret = kofi_info_check_addr(hints->addr_format, hints->src_addr,
				   hints->src_addrlen);
	if (ret)
		return ret;
	ret = kofi_info_check_addr(hints->addr_format, hints->dest_addr,
				   hints->dest_addrlen);
	if (ret)
		return ret;
	if (hints->ep_attr &&
	    !hints->ep_attr->auth_key != !hints->ep_attr->auth_key_size)
		return -EINVAL;
	if (hints->domain_attr &&
	    !hints->domain_attr->auth_key !=
	    !hints->domain_attr->auth_key_size)
		return -EINVAL;
	return 0;
}

/* Set a name in the hints; it must equal a name that is set already. */
static int kofi_info_want(char **hint, const char *name)
{
	if (*hint && name)
		return strcmp(*hint, name) ? -ENODATA : 0;
	return *hint ? 0 : kofi_info_dup_string(hint, name);
}

static int kofi_info_want_fabric(struct fi_info *hints,
				 const struct kofi_fabric *fabric)
{
	struct fi_fabric_attr *attr = hints->fabric_attr;

	if (!net_eq(attr->net, fabric->net))
		return -ENODATA;
	return kofi_info_want(&attr->prov_name, fabric->obj.prov->name) ?:
	       kofi_info_want(&attr->name, fabric->name);
}

/*
 * Convert open objects in the hints to names for providers. The consumer may have
 * closed the objects, so they are found by their addresses.
 */
static int kofi_info_want_open(struct fi_info *hints)
{
	struct fid_fabric *fabric = hints->fabric_attr->fabric;
	struct fid_domain *domain = hints->domain_attr->domain;
	const struct kofi_domain *open;
	struct kofi_obj *obj;
	int ret = 0;

	if (fabric) {
		obj = kofi_obj_find(&fabric->fid, FI_CLASS_FABRIC);
		if (!obj)
			return -EINVAL;
		ret = kofi_info_want_fabric(hints,
					    container_of(obj, struct kofi_fabric,
							 obj));
		kofi_obj_seen(obj);
	}
	if (domain && !ret) {
		obj = kofi_obj_find(&domain->fid, FI_CLASS_DOMAIN);
		if (!obj)
			return -EINVAL;
		open = container_of(obj, struct kofi_domain, obj);
		ret = kofi_info_want(&hints->domain_attr->name, open->name) ?:
		      kofi_info_want_fabric(hints, open->fabric);
		kofi_obj_seen(obj);
	}
	return ret;
}

/* Copy the hints and add missing structures, which constrain nothing. */
static struct fi_info *kofi_info_complete(const struct fi_info *hints,
					  struct net *net)
{
	struct fi_info *full = hints ? fi_dupinfo(hints) : kofi_info_alloc();
	struct kofi_info *ki;

	if (!full)
		return NULL;
	if (!hints)
		full->mode = ~0ULL;
	if (kofi_info_add_attrs(full)) {
		fi_freeinfo(full);
		return NULL;
	}
	if (!hints || !hints->domain_attr) {
		full->domain_attr->mode = ~0ULL;
		full->domain_attr->mr_mode = KOFI_MR_ANY;
	}
	/* Hints of another namespace do not change the namespace. */
	ki = container_of(full, struct kofi_info, info);
	if (ki->net) {
		put_net_track(ki->net, &ki->ns_tracker);
		ki->net = NULL;
	}
	kofi_info_set_net(full, net);
	return full;
}

/* Fill in the provider's name and version in its list. */
static int kofi_info_sign(struct fi_info *list,
			  const struct kofi_provider *prov, u32 version,
			  struct net *net)
{
	struct fi_fabric_attr *attr;
	struct fi_info *info;

	for (info = list; info; info = info->next) {
		attr = info->fabric_attr;
		if (WARN_ON_ONCE(!attr))
			return -EINVAL;
		kfree(attr->prov_name);
		attr->prov_name = kstrdup(prov->name, GFP_KERNEL);
		if (!attr->prov_name)
			return -ENOMEM;
		attr->prov_version = prov->version;
		attr->api_version = version;
		if (!attr->net)
			kofi_info_set_net(info, net);
	}
	return 0;
}

/* Query one provider, and append its list. */
static int kofi_info_ask(struct kofi_provider *prov, u32 version,
			 const char *node, const char *service, u64 flags,
			 const struct fi_info *hints, struct fi_info ***end)
{
	struct fi_info *list = NULL;
	int ret = 0;

	if (flags & FI_PROV_ATTR_ONLY) {
		list = fi_allocinfo();
		if (!list)
			return -ENOMEM;
	} else {
		ret = prov->getinfo(version, node, service, flags, hints,
				    &list);
	}
	if (!ret)
		ret = kofi_info_sign(list, prov, version,
				     hints->fabric_attr->net);
	if (ret) {
		fi_freeinfo(list);
		return ret;
	}
	**end = list;
	while (**end)
		*end = &(**end)->next;
	return 0;
}

static int kofi_info_collect(u32 version, const char *node,
			     const char *service, u64 flags,
			     const struct fi_info *hints,
			     struct fi_info **info)
{
	const char *name = hints->fabric_attr->prov_name;
	struct kofi_provider *prov;
	struct fi_info **end = info;
	int first = 0;
	int ret;

	*info = NULL;
	if (name) {
		prov = kofi_provider_get(name);
		if (prov) {
			first = kofi_info_ask(prov, version, node, service,
					      flags, hints, &end);
			kofi_provider_put(prov);
		}
	} else {
		kofi_provider_load_known(hints->ep_attr->type);
		for (prov = kofi_provider_next(NULL); prov;
		     prov = kofi_provider_next(prov)) {
			ret = kofi_info_ask(prov, version, node, service,
					    flags, hints, &end);
			if (ret != -ENODATA && !first)
				first = ret;
		}
	}
	if (*info)
		return 0;
	return first ?: -ENODATA;
}

/**
 * kofi_getinfo - list domains and endpoints that can be opened in a network namespace
 * @net: the namespace; the caller holds a reference to it
 * @version: FI_VERSION() of the API that the caller was written for
 * @node: numeric address, with "%interface" if necessary, or NULL
 * @service: port number, or NULL
 * @flags: FI_SOURCE: @node and @service are the local side. FI_NUMERICHOST and
 *	FI_RESCAN have no effect: names are never resolved, and devices are
 *	always known. FI_PROV_ATTR_ONLY: only list the providers.
 * @hints: requirements, only read, or NULL for none; zero in a field
 *	requires nothing, nor does a missing attribute structure. An open fabric or
 *	domain requires its own attributes.
 * @info: receives the list, best first; NULL after an error
 * @gfp: flags for memory. They must permit sleeping; without
 *	__GFP_FS and __GFP_IO, no provider's module is loaded.
 *
 * See fi_getinfo(3). Each fi_info holds a reference to @net. With FI_ADDR_STR in the
 * addr_format of @hints, addresses are text (fi_sockaddr_in://10.0.0.1:7471) in @hints, in
 * the list, and in all objects that are opened with it.
 *
 * Context: process, may sleep; may load the modules of providers.
 * Return: 0; -ENODATA if no provider meets the requirements; -EINVAL for NULL
 * or inconsistent arguments, or hints with a fabric or domain that is not open;
 * -FI_EBADFLAGS; -ENOSYS if @version is newer than
 * fi_version(); if no provider lists anything, the error of the first that had
 * one, such as -ENOMEM.
 */
int kofi_getinfo(struct net *net, u32 version, const char *node,
		 const char *service, u64 flags, const struct fi_info *hints,
		 struct fi_info **info, gfp_t gfp)
{
	struct fi_info *full, *one;
	unsigned int scope = 0;
	bool text;
	int ret;

	if (!info)
		return -EINVAL;
	*info = NULL;
	if (!net || !gfpflags_allow_blocking(gfp))
		return -EINVAL;
	might_sleep();
	ret = kofi_info_check(version, node, service, flags, hints);
	if (ret)
		return ret;

	/* gfp also applies to providers, which do not get it as an argument */
	if (!(gfp & __GFP_IO))
		scope = PF_MEMALLOC_NOIO;
	else if (!(gfp & __GFP_FS))
		scope = PF_MEMALLOC_NOFS;
	scope = memalloc_flags_save(scope);
	full = kofi_info_complete(hints, net);
	if (!full) {
		ret = -ENOMEM;
		goto restore;
	}
	text = full->addr_format == FI_ADDR_STR;
	ret = kofi_info_parse(full, net) ?: kofi_info_want_open(full);
	if (!ret)
		ret = kofi_info_collect(version, node, service, flags, full,
					info);
	fi_freeinfo(full);
	for (one = *info; one && text && !ret; one = one->next)
		ret = kofi_info_print(one);
	if (ret) {
		fi_freeinfo(*info);
		*info = NULL;
	}
restore:
	memalloc_flags_restore(scope);
	return ret;
}
EXPORT_SYMBOL_GPL(kofi_getinfo);

/**
 * fi_getinfo - list domains and endpoints that can be opened
 * @version: FI_VERSION() of the API that the caller was written for
 * @node: as in kofi_getinfo()
 * @service: as in kofi_getinfo()
 * @flags: as in kofi_getinfo()
 * @hints: as in kofi_getinfo()
 * @info: as in kofi_getinfo()
 *
 * Lists the network namespace of the calling task, which is the initial one for
 * kernel threads. See fi_getinfo(3).
 *
 * Context: process, may sleep; may load the modules of providers.
 * Return: as kofi_getinfo(); also -EINVAL in a task that is exiting and has lost its
 * namespace.
 */
int fi_getinfo(u32 version, const char *node, const char *service, u64 flags,
	       const struct fi_info *hints, struct fi_info **info)
{
	return kofi_getinfo(kofi_current_net(), version, node, service, flags,
			    hints, info, GFP_KERNEL);
}
EXPORT_SYMBOL_GPL(fi_getinfo);

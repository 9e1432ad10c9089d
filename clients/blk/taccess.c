// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Access: the clients that a volume's list admits, and the volumes that a port has.
 *
 * A list has addresses, or identities. With identities, all clients of the volume must
 * authenticate. The two kinds are not mixed: an address in such a list would admit clients
 * without authentication.
 *
 * A volume without a list admits no client, and a port without a link to a volume does
 * not reach it. kblkt_lock protects lists and links, which change at any time.
 */
#include <linux/inet.h>
#include <linux/ipv6.h>
#include <linux/nsproxy.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <net/ipv6.h>

#include "target.h"

static unsigned int kblkt_bits(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? 128 : 32;
}

static u32 kblkt_scope(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ?
	       ((const struct sockaddr_in6 *)addr)->sin6_scope_id : 0;
}

/**
 * kblkt_allow_show - write an access list as kblkt_allow_parse() reads it
 * @a: the list
 * @page: where to
 *
 * Return: bytes of the text.
 */
ssize_t kblkt_allow_show(const struct kblkt_allow *a, char *page)
{
	ssize_t len = 0;
	unsigned int i;

	for (i = 0; i < a->nr_ids; i++)
		len += sysfs_emit_at(page, len, "id:%s=%s\n", a->ids[i].name,
				     a->ids[i].key);
	if (len)
		return len;
	if (!a->nr)
		return sysfs_emit(page, "%s\n", a->all ? "all" : "none");
	for (i = 0; i < a->nr; i++) {
		const struct kblkt_net *n = &a->nets[i];

		len += sysfs_emit_at(page, len, "%pISc", &n->addr);
		if (kblkt_scope(&n->addr))
			len += sysfs_emit_at(page, len, "%%%u",
					     kblkt_scope(&n->addr));
		len += sysfs_emit_at(page, len, "/%u\n", n->bits);
	}
	return len;
}

/* An address that each link may have */
static bool kblkt_link_local(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET6 &&
	       ipv6_addr_type(&((const struct sockaddr_in6 *)addr)->sin6_addr) &
	       IPV6_ADDR_LINKLOCAL;
}

static int kblkt_parse_net(char *word, struct kblkt_net *n)
{
	char *bits = strchr(word, '/');
	int err;

	if (bits)
		*bits++ = '\0';
	err = inet_pton_with_scope(current->nsproxy->net_ns, AF_UNSPEC, word,
				   NULL, &n->addr);
	if (err)
		return err;
	if (kblkt_link_local((const struct sockaddr *)&n->addr) &&
	    !kblkt_scope(&n->addr))
		return -EINVAL;
	n->bits = kblkt_bits(&n->addr);
	if (!bits)
		return 0;
	err = kstrtouint(bits, 10, &n->bits);
	if (err)
		return err;
	return n->bits <= kblkt_bits(&n->addr) ? 0 : -EINVAL;
}

/* NAME=DESCRIPTION; each name once */
static int kblkt_parse_id(char *name, struct kblkt_allow *a)
{
	struct kblkt_identity *id = &a->ids[a->nr_ids];
	char *key = strchr(name, '=');
	unsigned int i;

	if (!key)
		return -EINVAL;
	*key++ = '\0';
	if (!kblk_good_name(name, strlen(name)) ||
	    !kblk_good_name(key, strlen(key)))
		return -EINVAL;
	for (i = 0; i < a->nr_ids; i++)
		if (!strcmp(a->ids[i].name, name))
			return -EINVAL;
	strscpy(id->name, name);
	strscpy(id->key, key);
	a->nr_ids++;
	return 0;
}

/**
 * kblkt_allow_parse - read an access list
 * @text: "10.0.0.0/24,fe80::1%eth0", "id:host1=kofi:host1", "all" or "none"; modified
 * @a: the list, zeroed by the caller
 *
 * Return: 0 or a negative error code.
 */
int kblkt_allow_parse(char *text, struct kblkt_allow *a)
{
	char *word;
	int err;

	text = strim(text);
	if (!strcmp(text, "none"))
		return 0;
	if (!strcmp(text, "all")) {
		a->all = true;
		return 0;
	}
	while ((word = strsep(&text, ",\n"))) {
		if (a->nr + a->nr_ids == KBLKT_ALLOW)
			return -ENOSPC;
		if (!strncmp(word, "id:", 3))
			err = kblkt_parse_id(word + 3, a);
		else
			err = kblkt_parse_net(word, &a->nets[a->nr++]);
		if (err)
			return err;
	}
	return a->nr && a->nr_ids ? -EINVAL : 0;
}

static bool kblkt_in_net(const struct kblkt_net *n, const struct sockaddr *sa)
{
	const struct sockaddr_in6 *a6 = (const void *)&n->addr, *b6;
	const struct sockaddr_in *a4 = (const void *)&n->addr, *b4;

	if (sa->sa_family != n->addr.ss_family)
		return false;
	if (sa->sa_family == AF_INET6) {
		b6 = (const struct sockaddr_in6 *)sa;
		if (!ipv6_prefix_equal(&a6->sin6_addr, &b6->sin6_addr, n->bits))
			return false;
		/* a network that contains fe80::/10 does not admit hosts of each link */
		return a6->sin6_scope_id ?
		       a6->sin6_scope_id == b6->sin6_scope_id :
		       !n->bits || !kblkt_link_local(sa);
	}
	b4 = (const struct sockaddr_in *)sa;
	return !n->bits || !((a4->sin_addr.s_addr ^ b4->sin_addr.s_addr) &
			     htonl(~0u << (32 - n->bits)));
}

/**
 * kblkt_allowed_key - key of an identity
 * @v: the volume
 * @identity: name that a client states
 *
 * Context: holds kblkt_lock.
 * Return: description of the key; or NULL if the volume's list lacks the identity.
 */
const char *kblkt_allowed_key(const struct kblkt_volume *v, const char *identity)
{
	unsigned int i;

	for (i = 0; i < v->allow.nr_ids; i++)
		if (!strcmp(v->allow.ids[i].name, identity))
			return v->allow.ids[i].key;
	return NULL;
}

/**
 * kblkt_allowed - whether a volume's list admits a client
 * @v: the volume
 * @sa: address of the client
 * @identity: name that the client states or has proven; empty without authentication
 * @key: description of the key by which the client has proven @identity; NULL before the
 *	proof
 *
 * Context: holds kblkt_lock.
 * Return: true if the list admits the client. A list with another key of the identity does
 * not admit a client that has proven itself by @key.
 */
bool kblkt_allowed(const struct kblkt_volume *v, const struct sockaddr *sa,
		   const char *identity, const char *key)
{
	const char *listed;
	unsigned int i;

	if (*identity) {
		listed = kblkt_allowed_key(v, identity);
		return listed && (!key || !strcmp(listed, key));
	}
	for (i = 0; i < v->allow.nr; i++)
		if (kblkt_in_net(&v->allow.nets[i], sa))
			return true;
	return v->allow.all;
}

/**
 * kblkt_same_addr - whether two clients have one address
 * @a: address, with any port
 * @b: address, with any port
 */
bool kblkt_same_addr(const struct sockaddr_storage *a,
		     const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET6)
		return a6->sin6_scope_id == b6->sin6_scope_id &&
		       ipv6_addr_equal(&a6->sin6_addr, &b6->sin6_addr);
	return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
}

static struct kblkt_link *kblkt_link(const struct kblkt_port *p,
				     const struct kblkt_volume *v)
{
	struct kblkt_link *l;

	list_for_each_entry(l, &p->links, node)
		if (l->volume == v)
			return l;
	return NULL;
}

/**
 * kblkt_link_add - let a port reach a volume
 * @p: the port
 * @v: the volume
 *
 * Return: 0 or a negative error code.
 */
int kblkt_link_add(struct kblkt_port *p, struct kblkt_volume *v)
{
	struct kblkt_link *l = kzalloc(sizeof(*l), GFP_KERNEL);
	int err = 0;

	if (!l)
		return -ENOMEM;
	l->volume = v;
	mutex_lock(&kblkt_lock);
	if (kblkt_link(p, v))
		err = -EEXIST;
	else
		list_add_tail(&l->node, &p->links);
	mutex_unlock(&kblkt_lock);
	if (err)
		kfree(l);
	return err;
}

/**
 * kblkt_link_del - undo kblkt_link_add()
 * @p: the port
 * @v: the volume
 *
 * Closes the connections to the volume that came through the port, without waiting.
 */
void kblkt_link_del(struct kblkt_port *p, struct kblkt_volume *v)
{
	struct kblkt_link *l;

	mutex_lock(&kblkt_lock);
	l = kblkt_link(p, v);
	if (l)
		list_del(&l->node);
	mutex_unlock(&kblkt_lock);
	kfree(l);
	kblkt_end(v, p, NULL, false);
}

/**
 * kblkt_find - find the volume that a client asks for
 * @p: port of the connection
 * @name: name of the volume, KBLK_NAME_LEN bytes
 * @sa: address of the client
 * @identity: name that the client states or has proven; empty without authentication
 * @why: reason of a refusal, for the log: the client learns only that it is not admitted
 *
 * Context: holds kblkt_lock.
 * Return: the volume, which is enabled, or NULL.
 */
struct kblkt_volume *kblkt_find(const struct kblkt_port *p, const char *name,
				const struct sockaddr *sa, const char *identity,
				const char **why)
{
	struct kblkt_volume *v;

	list_for_each_entry(v, &kblkt_volumes, node) {
		if (memcmp(v->name, name, KBLK_NAME_LEN))
			continue;
		if (!kblkt_link(p, v))
			*why = "volume not linked to the port";
		else if (!kblkt_allowed(v, sa, identity, NULL))
			*why = *identity ? "identity not in the volume's list" :
			       v->allow.nr_ids ? "no authentication" :
			       "address not in the volume's list";
		else
			return v;
		return NULL;
	}
	*why = "unknown volume";
	return NULL;
}

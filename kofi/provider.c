// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Providers: registration, the order of queries, and loading of
 * their modules.
 *
 * A registered provider belongs to its module. A caller of a provider holds a
 * reference to the module, taken here while the list is locked, and no lock:
 * kofi_provider_get() and kofi_provider_next() return such references. Since
 * modules deregister when they exit, a referenced provider stays on
 * the list, so a walk needs no copy of it.
 */
#include <linux/kmod.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/sched/mm.h>
#include <linux/string.h>

#include <kunit/visibility.h>

#include "internal.h"

static char *kofi_provider_filter;
module_param_named(provider, kofi_provider_filter, charp, 0444);
MODULE_PARM_DESC(provider,
		 "Providers that may be used, separated by commas; with ^ in front, those that may not (default: all)");

/*
 * Providers that discovery loads while none is registered, best first. One module has
 * both names of ofi_rxm.
 */
static const struct {
	const char	*name;
	enum fi_ep_type	only;	/* the only type of its endpoints, or any */
} kofi_provider_known[] = {
	{ "verbs" },
	{ "sock" },
	{ "sock;ofi_rxm", FI_EP_RDM },
};

static LIST_HEAD(kofi_providers);	/* by priority, then age */
static DEFINE_MUTEX(kofi_provider_mutex);

BLOCKING_NOTIFIER_HEAD(kofi_provider_chain);

static bool kofi_provider_listed(const char *list, const char *name)
{
	size_t len = strlen(name);
	size_t n;

	for (;; list += n + 1) {
		n = strcspn(list, ",");
		if (n == len && !memcmp(list, name, n))
			return true;
		if (!list[n])
			return false;
	}
}

VISIBLE_IF_KUNIT bool kofi_provider_allows(const char *filter, const char *name)
{
	if (!filter || !*filter)
		return true;
	if (*filter == '^')
		return !kofi_provider_listed(filter + 1, name);
	return kofi_provider_listed(filter, name);
}
EXPORT_SYMBOL_IF_KUNIT(kofi_provider_allows);

/*
 * Loading a module reads a file system, which may wait for the caller if the caller
 * reclaims memory.
 */
static void kofi_provider_load(const char *name)
{
	if (current_gfp_context(GFP_KERNEL) != GFP_KERNEL ||
	    current->flags & PF_MEMALLOC)
		return;
	if (*name && kofi_provider_allows(kofi_provider_filter, name))
		request_module("kofi-prov-%s", name);
}

static struct kofi_provider *kofi_provider_find(const char *name)
{
	struct kofi_provider *prov;

	mutex_lock(&kofi_provider_mutex);
	list_for_each_entry(prov, &kofi_providers, node) {
		if (!strcmp(prov->name, name) &&
		    kofi_provider_allows(kofi_provider_filter, name) &&
		    try_module_get(prov->owner))
			goto unlock;
	}
	prov = NULL;
unlock:
	mutex_unlock(&kofi_provider_mutex);
	return prov;
}

/**
 * kofi_provider_get - find a provider by name, and load its module if necessary
 * @name: the name
 *
 * Context: process, may sleep. Loads nothing where the task must not start
 * file I/O.
 * Return: the provider with a reference to its module, to be released by
 * kofi_provider_put(); NULL if there is none.
 */
struct kofi_provider *kofi_provider_get(const char *name)
{
	struct kofi_provider *prov = kofi_provider_find(name);

	if (prov)
		return prov;
	kofi_provider_load(name);
	return kofi_provider_find(name);
}

void kofi_provider_put(struct kofi_provider *prov)
{
	module_put(prov->owner);
}

/**
 * kofi_provider_next - walk over the providers, best first
 * @prov: the provider before, which is released, or NULL to begin
 *
 * Context: process, may sleep.
 * Return: the next one with a reference to its module, NULL after the last.
 */
struct kofi_provider *kofi_provider_next(struct kofi_provider *prov)
{
	struct kofi_provider *next;

	mutex_lock(&kofi_provider_mutex);
	next = list_prepare_entry(prov, &kofi_providers, node);
	list_for_each_entry_continue(next, &kofi_providers, node) {
		if (kofi_provider_allows(kofi_provider_filter, next->name) &&
		    try_module_get(next->owner))
			goto unlock;
	}
	next = NULL;
unlock:
	mutex_unlock(&kofi_provider_mutex);
	if (prov)
		kofi_provider_put(prov);
	return next;
}

/* Test whether this provider may have endpoints of @type. */
static bool kofi_provider_missing(int known, enum fi_ep_type type, bool none)
{
	enum fi_ep_type only = kofi_provider_known[known].only;
	struct kofi_provider *prov;

	if (!only || type == FI_EP_UNSPEC)
		return none;
	if (only != type)
		return false;
	prov = kofi_provider_find(kofi_provider_known[known].name);
	if (prov)
		kofi_provider_put(prov);
	return !prov;
}

/**
 * kofi_provider_load_known - load the known providers if none is registered
 * @type: required type of endpoints, or FI_EP_UNSPEC. Providers of this type
 *	only are loaded although others are registered, as these may lack a requirement.
 *
 * Context: process, may sleep.
 */
void kofi_provider_load_known(enum fi_ep_type type)
{
	bool none;
	int i;

	mutex_lock(&kofi_provider_mutex);
	none = list_empty(&kofi_providers);
	mutex_unlock(&kofi_provider_mutex);
	for (i = 0; i < ARRAY_SIZE(kofi_provider_known); i++)
		if (kofi_provider_missing(i, type, none))
			kofi_provider_load(kofi_provider_known[i].name);
}

/**
 * kofi_provider_register - register a provider
 * @version: FI_VERSION() of the API @prov was built for
 * @prov: the provider; it and its name must live until
 *	kofi_provider_deregister()
 *
 * Consumers may call the provider before this function has returned. So a module
 * registers as the last step of its initialisation.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL if @prov is incomplete; -ENOSYS if it was built for
 * another major or a newer minor version; -EEXIST if the name is taken.
 */
int kofi_provider_register(u32 version, struct kofi_provider *prov)
{
	struct kofi_provider *pos;
	struct list_head *at = &kofi_providers;
	int ret = 0;

	if (!prov || !prov->name || !*prov->name ||
	    strlen(prov->name) >= FI_NAME_MAX || strchr(prov->name, ',') ||
	    !prov->getinfo || !prov->fabric == !prov->fabric_ops)
		return -EINVAL;
	if (FI_MAJOR(version) != FI_MAJOR_VERSION ||
	    FI_MINOR(version) > FI_MINOR_VERSION)
		return -ENOSYS;

	mutex_lock(&kofi_provider_mutex);
	list_for_each_entry(pos, &kofi_providers, node) {
		if (!strcmp(pos->name, prov->name)) {
			ret = -EEXIST;
			goto unlock;
		}
		if (pos->priority <= prov->priority)
			at = &pos->node;
	}
	list_add(&prov->node, at);
unlock:
	mutex_unlock(&kofi_provider_mutex);
	if (!ret)
		blocking_notifier_call_chain(&kofi_provider_chain,
					     KOFI_PROVIDER_ADD, prov);
	return ret;
}
EXPORT_SYMBOL_GPL(kofi_provider_register);

/**
 * kofi_provider_deregister - remove a provider from the list
 * @prov: a registered provider
 *
 * Call it when the provider's module exits: open objects and running
 * calls hold references to the module, so there are none then. Objects of a provider
 * that deregisters earlier still point to it: the log warns with their number.
 *
 * Context: process, may sleep.
 */
void kofi_provider_deregister(struct kofi_provider *prov)
{
	unsigned int nr;

	blocking_notifier_call_chain(&kofi_provider_chain, KOFI_PROVIDER_REMOVE,
				     prov);
	mutex_lock(&kofi_provider_mutex);
	list_del(&prov->node);
	mutex_unlock(&kofi_provider_mutex);
	nr = kofi_obj_count(prov);
	if (nr)
		pr_warn("kofi: provider %s deregisters with %u open objects\n",
			prov->name, nr);
}
EXPORT_SYMBOL_GPL(kofi_provider_deregister);

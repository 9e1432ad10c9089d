// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connection management: the checks before a provider is called, and the
 * steps of an endpoint's state by its consumer.
 *
 * fi_connect() and fi_accept() move an endpoint from ENABLED to CONNECTING
 * before they call the provider, so that only one of several callers continues.
 * From then on the provider reports the one outcome through the event queue.
 * If the provider returns an error, the step is undone and the consumer may try
 * again.
 *
 * The handle of a connection request belongs to the provider. It may be freed as soon as
 * an endpoint has been opened for it, so it is not dereferenced here.
 */
#include <linux/export.h>
#include <linux/kernel.h>

#include <linux/kofi/debug.h>
#include <linux/kofi/lib.h>

#include "internal.h"

static bool kofi_cm_is_ep(const struct fid_ep *ep)
{
	return kofi_fid_class(&ep->fid) == FI_CLASS_EP;
}

static bool kofi_cm_is_pep(const struct fid_pep *pep)
{
	return kofi_fid_class(&pep->fid) == FI_CLASS_PEP;
}

static const struct fi_ops_cm *kofi_cm_ops(fid_t fid)
{
	switch (kofi_fid_class(fid)) {
	case FI_CLASS_EP:
		return container_of(fid, struct fid_ep, fid)->cm;
	case FI_CLASS_PEP:
		return container_of(fid, struct fid_pep, fid)->cm;
	default:
		return NULL;
	}
}

/* A scalable endpoint supports names only. */
static const struct fi_ops_cm *kofi_cm_name_ops(fid_t fid)
{
	return kofi_fid_class(fid) == FI_CLASS_SEP ?
	       container_of(fid, struct fid_ep, fid)->cm : kofi_cm_ops(fid);
}

/* Info of an active or passive endpoint */
static const struct fi_info *kofi_cm_info(fid_t fid)
{
	if (fid->fclass == FI_CLASS_PEP)
		return container_of(fid, struct kofi_pep, pep.fid)->info;
	return container_of(fid, struct kofi_ep, ep.fid)->info;
}

/* Test whether the consumer uses addresses in text form. */
static bool kofi_cm_text(fid_t fid)
{
	if (fid->fclass == FI_CLASS_PEP)
		return container_of(fid, struct kofi_pep, pep.fid)->text;
	return fid->fclass == FI_CLASS_EP &&
	       kofi_domain_text(container_of(fid, struct kofi_ep,
					     ep.fid)->domain);
}

static struct net *kofi_cm_net(fid_t fid)
{
	if (fid->fclass == FI_CLASS_PEP)
		return container_of(fid, struct kofi_pep, pep.fid)->fabric->net;
	return container_of(fid, struct kofi_ep, ep.fid)->domain->fabric->net;
}

/* Convert an address from the provider's format to the consumer's. */
static int kofi_cm_tell(int err, const union kofi_ip *name, void *addr,
			size_t *addrlen)
{
	return err ?: kofi_ip_copy_text(&name->sa, addr, addrlen);
}

/* Check the length of private data. */
static int kofi_cm_check_data(fid_t fid, const struct fi_ops_ep *ops,
			      const void *param, size_t paramlen)
{
	size_t limit = 0;
	size_t len = sizeof(limit);

	if (!paramlen)
		return 0;
	if (!param || paramlen > KOFI_CM_DATA_MAX)
		return -EINVAL;
	if (!ops->getopt ||
	    ops->getopt(fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &limit,
			&len))
		return -EINVAL;
	return paramlen <= limit ? 0 : -EINVAL;
}

/**
 * kofi_cm_setname - fi_setname() with an address in the providers' format
 * @fid: as fi_setname()
 * @addr: as fi_setname()
 * @addrlen: as fi_setname()
 *
 * Context: process, may sleep.
 * Return: as fi_setname().
 */
int kofi_cm_setname(fid_t fid, void *addr, size_t addrlen)
{
	const struct fi_ops_cm *cm = kofi_cm_ops(fid);

	if (kofi_info_check_addr(kofi_cm_info(fid)->addr_format, addr, addrlen))
		return -EINVAL;
	if (fid->fclass == FI_CLASS_EP &&
	    READ_ONCE(container_of(fid, struct kofi_ep, ep.fid)->state) !=
	    KOFI_EP_IDLE)
		return -FI_EOPBADSTATE;
	return cm->setname ? cm->setname(fid, addr, addrlen) : -ENOSYS;
}

/**
 * kofi_cm_getname - fi_getname() of an address in the providers' format
 * @fid: as fi_getname()
 * @addr: as fi_getname()
 * @addrlen: as fi_getname()
 *
 * Context: process, may sleep.
 * Return: as fi_getname().
 */
int kofi_cm_getname(fid_t fid, void *addr, size_t *addrlen)
{
	const struct fi_ops_cm *cm = kofi_cm_name_ops(fid);

	return cm && cm->getname ? cm->getname(fid, addr, addrlen) : -ENOSYS;
}

/**
 * kofi_cm_getpeer - fi_getpeer() of an address in the providers' format
 * @ep: as fi_getpeer()
 * @addr: as fi_getpeer()
 * @addrlen: as fi_getpeer()
 *
 * Context: process, may sleep.
 * Return: as fi_getpeer().
 */
int kofi_cm_getpeer(struct kofi_ep *ep, void *addr, size_t *addrlen)
{
	const struct fi_ops_cm *cm = ep->ep.cm;

	switch (READ_ONCE(ep->state)) {
	case KOFI_EP_CONNECTED:
	case KOFI_EP_SHUTDOWN:
		return cm->getpeer ? cm->getpeer(&ep->ep, addr, addrlen) :
				     -ENOSYS;
	default:
		return -ENOTCONN;
	}
}

/**
 * fi_setname - set the local address
 * @fid: an endpoint that is not enabled, or a passive endpoint that does not listen
 * @addr: the address, in the endpoint's addr_format
 * @addrlen: size of the address in bytes
 *
 * See fi_cm(3).
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for NULL, another object or an invalid address;
 * -FI_EOPBADSTATE after fi_enable() or fi_listen(); -EADDRINUSE,
 * -EADDRNOTAVAIL, or another error of the provider.
 */
int fi_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct sockaddr_storage name;

	might_sleep();
	if (!kofi_cm_ops(fid) || !addr)
		return -EINVAL;
	if (!kofi_cm_text(fid))
		return kofi_cm_setname(fid, addr, addrlen);
	if (kofi_info_check_addr(FI_ADDR_STR, addr, addrlen) ||
	    kofi_ip_parse(kofi_cm_net(fid), addr, &name))
		return -EINVAL;
	return kofi_cm_setname(fid, &name,
			       kofi_ip_len((struct sockaddr *)&name));
}
EXPORT_SYMBOL_GPL(fi_setname);

/**
 * fi_getname - get the local address
 * @fid: an endpoint, active or passive; the address of a scalable endpoint is the address
 *	of its context 0
 * @addr: receives the address; may be NULL if *@addrlen is 0
 * @addrlen: in: size of @addr in bytes, out: size of the address
 *
 * See fi_cm(3).
 *
 * Context: process, may sleep.
 * Return: 0; -FI_ETOOSMALL if @addr is too small, with a truncated address;
 * -EINVAL for NULL or another object; the provider's error.
 */
int fi_getname(fid_t fid, void *addr, size_t *addrlen)
{
	union kofi_ip name = {};
	size_t size = sizeof(name);

	might_sleep();
	if (!kofi_cm_name_ops(fid) || !addrlen || (!addr && *addrlen))
		return -EINVAL;
	if (!kofi_cm_text(fid))
		return kofi_cm_getname(fid, addr, addrlen);
	return kofi_cm_tell(kofi_cm_getname(fid, &name, &size), &name, addr,
			    addrlen);
}
EXPORT_SYMBOL_GPL(fi_getname);

/**
 * fi_getpeer - get the address of the peer
 * @ep: a connected endpoint
 * @addr: receives the address; may be NULL if *@addrlen is 0
 * @addrlen: in: size of @addr in bytes, out: size of the address
 *
 * See fi_cm(3).
 *
 * Context: process, may sleep.
 * Return: 0; -FI_ETOOSMALL if @addr is too small, with a truncated address;
 * -EINVAL for NULL or another object; -ENOTCONN if the endpoint was
 * never connected; the provider's error.
 */
int fi_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	union kofi_ip name = {};
	size_t size = sizeof(name);
	struct kofi_ep *kep;

	might_sleep();
	if (!kofi_cm_is_ep(ep) || !addrlen || (!addr && *addrlen))
		return -EINVAL;
	kep = container_of(ep, struct kofi_ep, ep);
	if (!kofi_cm_text(&ep->fid))
		return kofi_cm_getpeer(kep, addr, addrlen);
	return kofi_cm_tell(kofi_cm_getpeer(kep, &name, &size), &name, addr,
			    addrlen);
}
EXPORT_SYMBOL_GPL(fi_getpeer);

/**
 * fi_listen - listen for connection requests
 * @pep: a passive endpoint with an event queue
 *
 * See fi_cm(3). Each request is an FI_CONNREQ event; its fi_info opens the
 * endpoint for fi_accept(), or its handle is passed to fi_reject().
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for NULL or another object;
 * -FI_ENOEQ without an event queue; -FI_EOPBADSTATE if the endpoint listens already;
 * -EADDRINUSE; -ENODEV for a device that is being removed (kofi_verbs); another error
 * of the provider.
 */
int fi_listen(struct fid_pep *pep)
{
	might_sleep();
	if (!kofi_cm_is_pep(pep))
		return -EINVAL;
	if (!READ_ONCE(container_of(pep, struct kofi_pep, pep)->eq))
		return -FI_ENOEQ;
	if (!pep->cm->listen)
		return -ENOSYS;
	return kofi_refused(pep->fid.obj, "fi_listen", pep->cm->listen(pep));
}
EXPORT_SYMBOL_GPL(fi_listen);

/* Enable the endpoint if necessary, and take the step to CONNECTING. */
static int kofi_cm_begin(struct kofi_ep *ep)
{
	int ret;

	if (!READ_ONCE(ep->eq))
		return -FI_ENOEQ;
	if (READ_ONCE(ep->state) == KOFI_EP_IDLE) {
		ret = fi_enable(&ep->ep);
		/* Another task may have enabled it concurrently. */
		if (ret && READ_ONCE(ep->state) == KOFI_EP_IDLE)
			return ret;
	}
	if (kofi_ep_step(ep, KOFI_EP_ENABLED, KOFI_EP_CONNECTING))
		return 0;
	switch (READ_ONCE(ep->state)) {
	case KOFI_EP_CONNECTED:
		return -EISCONN;
	case KOFI_EP_SHUTDOWN:
		return -ESHUTDOWN;
	default:
		return -EALREADY;
	}
}

/*
 * Undo the step after a refusal, unless the attempt has finished concurrently:
 * then there is an event, so the call must not fail as well.
 */
static int kofi_cm_end(struct kofi_ep *ep, int ret)
{
	if (!ret || !kofi_ep_step(ep, KOFI_EP_CONNECTING, KOFI_EP_ENABLED))
		return 0;
	kofi_ep_unblock(ep);
	return ret;
}

/**
 * fi_connect - connect to a peer
 * @ep: an endpoint of type FI_EP_MSG with an event queue; it is enabled if
 *	necessary
 * @addr: the peer, in the endpoint's addr_format; NULL for the dest_addr of
 *	the fi_info that the endpoint was opened with
 * @param: private data for the peer's FI_CONNREQ, or NULL
 * @paramlen: bytes at @param, at most FI_OPT_CM_DATA_SIZE
 *
 * See fi_cm(3). If the call succeeds, exactly one event follows: FI_CONNECTED
 * with the peer's private data, or an error with the data of its reject.
 *
 * Context: process, may sleep. Does not wait for the peer.
 * Return: 0; -EINVAL for NULL, an endpoint opened to accept, no address, or
 * too much private data; -FI_ENOEQ without an event queue; -EALREADY,
 * -EISCONN or -ESHUTDOWN by the endpoint's state; the error of fi_enable() or of
 * the provider.
 */
int fi_connect(struct fid_ep *ep, const void *addr, const void *param,
	       size_t paramlen)
{
	struct sockaddr_storage dest;
	struct kofi_ep *kep;
	int ret;

	might_sleep();
	if (!kofi_cm_is_ep(ep))
		return -EINVAL;
	kep = container_of(ep, struct kofi_ep, ep);
	if (addr && kofi_cm_text(&ep->fid)) {
		if (kofi_ip_parse(kofi_cm_net(&ep->fid), addr, &dest))
			return -EINVAL;
		addr = &dest;
	}
	if (!addr)
		addr = kep->info->dest_addr;
	if (!addr || kep->info->handle)
		return -EINVAL;
	if (!ep->cm->connect)
		return -ENOSYS;
	ret = kofi_cm_check_data(&ep->fid, ep->ops, param, paramlen);
	if (ret)
		return ret;
	ret = kofi_cm_begin(kep);
	if (ret)
		return kofi_refused(&kep->obj, "fi_connect", ret);
	ret = kofi_cm_end(kep, ep->cm->connect(ep, addr, param, paramlen));
	return kofi_refused(&kep->obj, "fi_connect", ret);
}
EXPORT_SYMBOL_GPL(fi_connect);

/**
 * fi_accept - accept a connection request
 * @ep: an endpoint opened with the fi_info of an FI_CONNREQ, with an event
 *	queue; it is enabled if necessary
 * @param: private data for the peer's FI_CONNECTED, or NULL
 * @paramlen: bytes at @param, at most FI_OPT_CM_DATA_SIZE
 *
 * See fi_cm(3). If the call succeeds, exactly one event follows: FI_CONNECTED
 * or an error.
 *
 * Context: process, may sleep. Does not wait for the peer.
 * Return: 0; -EINVAL for NULL, an endpoint not opened for a request, or too
 * much private data; -FI_ENOEQ without an event queue; -EALREADY, -EISCONN or
 * -ESHUTDOWN by the endpoint's state; the error of fi_enable() or of the
 * provider.
 */
int fi_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	struct kofi_ep *kep;
	int ret;

	might_sleep();
	if (!kofi_cm_is_ep(ep))
		return -EINVAL;
	kep = container_of(ep, struct kofi_ep, ep);
	if (!kep->info->handle)
		return -EINVAL;
	if (!ep->cm->accept)
		return -ENOSYS;
	ret = kofi_cm_check_data(&ep->fid, ep->ops, param, paramlen);
	if (ret)
		return ret;
	ret = kofi_cm_begin(kep);
	if (ret)
		return kofi_refused(&kep->obj, "fi_accept", ret);
	ret = kofi_cm_end(kep, ep->cm->accept(ep, param, paramlen));
	return kofi_refused(&kep->obj, "fi_accept", ret);
}
EXPORT_SYMBOL_GPL(fi_accept);

/**
 * fi_reject - reject a connection request
 * @pep: the passive endpoint that reported the request
 * @handle: handle of the fi_info of the FI_CONNREQ; invalid after the call
 *	unless that returns -EINVAL
 * @param: private data for the peer's error, or NULL
 * @paramlen: bytes at @param, at most FI_OPT_CM_DATA_SIZE
 *
 * See fi_cm(3).
 *
 * Context: process, may sleep. Does not wait for the peer.
 * Return: 0; -EINVAL for NULL, a handle that is not a request of @pep, or
 * too much private data; the provider's error.
 */
int fi_reject(struct fid_pep *pep, fid_t handle, const void *param,
	      size_t paramlen)
{
	int ret;

	might_sleep();
	if (!kofi_cm_is_pep(pep) || !handle)
		return -EINVAL;
	ret = kofi_cm_check_data(&pep->fid, pep->ops, param, paramlen);
	if (ret)
		return ret;
	if (!pep->cm->reject)
		return -ENOSYS;
	return kofi_refused(pep->fid.obj, "fi_reject",
			    pep->cm->reject(pep, handle, param, paramlen));
}
EXPORT_SYMBOL_GPL(fi_reject);

/**
 * fi_shutdown - disconnect
 * @ep: an endpoint that is connected or connecting
 * @flags: must be 0
 *
 * See fi_cm(3). Accepted transmits are sent first if the peer
 * receives them; the peer gets FI_SHUTDOWN. Disconnecting again is
 * no error.
 *
 * Context: process, may sleep. Does not wait for the peer.
 * Return: 0; -EINVAL for NULL or another object;
 * -FI_EBADFLAGS; -ENOTCONN if the endpoint never connected; the provider's error.
 */
int fi_shutdown(struct fid_ep *ep, u64 flags)
{
	might_sleep();
	if (!kofi_cm_is_ep(ep))
		return -EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	switch (READ_ONCE(container_of(ep, struct kofi_ep, ep)->state)) {
	case KOFI_EP_IDLE:
	case KOFI_EP_ENABLED:
		return -ENOTCONN;
	case KOFI_EP_SHUTDOWN:
		return 0;
	default:
		if (!ep->cm->shutdown)
			return -ENOSYS;
		return ep->cm->shutdown(ep, flags);
	}
}
EXPORT_SYMBOL_GPL(fi_shutdown);

/**
 * kofi_ep_probe - check at once whether the peer still has a connection
 * @ep: a connected endpoint
 *
 * For a client that has a reason to doubt it, such as another request of the peer. If the
 * peer has closed the connection, even behind messages without a receive, or if the peer's
 * host does not know it, the connection is closed soon, with FI_SHUTDOWN. A connection to
 * a peer that is alive does not change.
 *
 * Context: process.
 * Return: 0; -EINVAL for NULL or another object; -EOPNOTSUPP if the provider cannot check.
 */
int kofi_ep_probe(struct fid_ep *ep)
{
	const struct kofi_ep_ops *ops;

	if (!kofi_cm_is_ep(ep))
		return -EINVAL;
	ops = container_of(ep, struct kofi_ep, ep)->ops;
	if (!ops->probe)
		return -EOPNOTSUPP;
	ops->probe(ep);
	return 0;
}
EXPORT_SYMBOL_GPL(kofi_ep_probe);

/**
 * kofi_ep_cancel_connect - terminate a connect attempt whose request has not been sent
 * @ep: an endpoint that connects
 *
 * For a client that accepts a request of the peer instead: packets of the attempt may be
 * dropped on the way. A canceled attempt is reported to the event queue as a failed one
 * (FI_ECANCELED), unless the endpoint is closed before.
 *
 * Context: process, may sleep.
 * Return: 0, and the peer will not receive the request, or the attempt has failed before;
 * -EALREADY if the peer may have received it, and the attempt continues; -EINVAL for NULL or
 * another object; -EOPNOTSUPP if the provider does not know.
 */
int kofi_ep_cancel_connect(struct fid_ep *ep)
{
	const struct kofi_ep_ops *ops;

	might_sleep();
	if (!kofi_cm_is_ep(ep))
		return -EINVAL;
	ops = container_of(ep, struct kofi_ep, ep)->ops;
	return ops->cancel_connect ? ops->cancel_connect(ep) : -EOPNOTSUPP;
}
EXPORT_SYMBOL_GPL(kofi_ep_cancel_connect);

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Settings of an endpoint: options, default flags, and kOFI's additions
 * (fi_endpoint(3), kofi.h).
 *
 * The core handles options that it owns or that the endpoint's fi_info contains;
 * the provider handles all others. Callbacks and pools
 * are set before an endpoint is enabled, under the mutex that enabling
 * takes.
 */
#include <linux/kernel.h>
#include <linux/mutex.h>
#include <linux/string.h>

#include <linux/kofi/lib.h>

#include "internal.h"

/* ------------------------------------------------------------------ options */

static const struct fi_ops_ep *kofi_ep_opt_ops(fid_t fid)
{
	switch (kofi_fid_class(fid)) {
	case FI_CLASS_EP:
	case FI_CLASS_SRX_CTX:
		return container_of(fid, struct fid_ep, fid)->ops;
	case FI_CLASS_PEP:
		return container_of(fid, struct fid_pep, fid)->ops;
	default:
		return NULL;
	}
}

/*
 * Options of the core, to be set before the endpoint is enabled: the pool of
 * regions, if the core implements it, and the time that messages wait at an unconnected
 * endpoint.
 */
static size_t *kofi_ep_early_opt(fid_t fid, int optname)
{
	struct kofi_ep *ep = container_of(fid, struct kofi_ep, ep.fid);

	if (fid->fclass != FI_CLASS_EP)
		return NULL;
	switch (optname) {
	case KOFI_OPT_MR_POOL:
		return kofi_mr_pooled(ep->domain) ? &ep->mr.pool_size : NULL;
	case KOFI_OPT_MR_SEGS:
		return kofi_mr_pooled(ep->domain) ? &ep->mr.pool_segs : NULL;
	case KOFI_OPT_UNEXPECTED_TIMEOUT:
		return ep->info->ep_attr->type == FI_EP_RDM ?
		       &ep->unexpected_timeout : NULL;
	default:
		return NULL;
	}
}

static int kofi_ep_early_check(const struct kofi_ep *ep, int optname,
			       size_t value)
{
	switch (optname) {
	case KOFI_OPT_MR_POOL:
		return value > KOFI_MR_POOL_MAX ? -EINVAL : 0;
	case KOFI_OPT_MR_SEGS:
		return value ? 0 : -EINVAL;
	default:
		return value > INT_MAX ? -EINVAL : 0;
	}
}

/**
 * kofi_opt_set_size - get a size from the arguments of fi_setopt()
 * @value: receives the size
 * @val: optval of the provider's setopt()
 * @len: optlen of the provider's setopt()
 *
 * Context: any.
 * Return: 0; -FI_ETOOSMALL for a value shorter than a size_t; -EINVAL for a longer one.
 */
int kofi_opt_set_size(size_t *value, const void *val, size_t len)
{
	if (len != sizeof(*value))
		return len < sizeof(*value) ? -FI_ETOOSMALL : -EINVAL;
	memcpy(value, val, len);
	return 0;
}
EXPORT_SYMBOL_GPL(kofi_opt_set_size);

static int kofi_ep_set_early(struct kofi_ep *ep, size_t *to, int optname,
			     const void *optval, size_t optlen)
{
	size_t value;
	int ret;

	ret = kofi_opt_set_size(&value, optval, optlen);
	if (ret)
		return ret;
	if (ep->domain->mrs.client && optname != KOFI_OPT_UNEXPECTED_TIMEOUT)
		return -EOPNOTSUPP;

	mutex_lock(&ep->config);
	if (READ_ONCE(ep->state) != KOFI_EP_IDLE)
		ret = -FI_EOPBADSTATE;
	else
		ret = kofi_ep_early_check(ep, optname, value);
	if (!ret)
		*to = value;
	mutex_unlock(&ep->config);
	return ret;
}

/* Options of the core */
static bool kofi_ep_own_opt(fid_t fid, int optname, size_t **value)
{
	struct kofi_ep *ep = container_of(fid, struct kofi_ep, ep.fid);

	if (!kofi_fid_is_ep(fid) || optname != FI_OPT_MIN_MULTI_RECV ||
	    !(ep->op_flags[KOFI_RX] & FI_MULTI_RECV))
		return false;
	*value = &ep->min_multi;
	return true;
}

/* Find the value of an option in an endpoint's fi_info; NULL for any other option. */
static size_t *kofi_ep_size_opt(struct fi_info *info, int optname)
{
	switch (optname) {
	case FI_OPT_TX_SIZE:
		return &info->tx_attr->size;
	case FI_OPT_RX_SIZE:
		return &info->rx_attr->size;
	case FI_OPT_MAX_MSG_SIZE:
		return &info->ep_attr->max_msg_size;
	case FI_OPT_INJECT_MSG_SIZE:
		return &info->tx_attr->inject_size;
	default:
		return NULL;
	}
}

/**
 * kofi_ep_set_size - set an option that is a size, before the endpoint is enabled
 * @ep: the endpoint
 * @to: receives the value
 * @val: optval of the provider's setopt()
 * @len: optlen of the provider's setopt()
 * @least: smallest value
 * @most: largest value
 *
 * Context: process, may sleep.
 * Return: 0; -FI_ETOOSMALL; -EINVAL; -FI_EOPBADSTATE.
 */
int kofi_ep_set_size(struct kofi_ep *ep, size_t *to, const void *val,
		     size_t len, size_t least, size_t most)
{
	size_t in;
	int err;

	err = kofi_opt_set_size(&in, val, len);
	if (err)
		return err;
	/* enabling reads the value more than once */
	mutex_lock(&ep->config);
	if (READ_ONCE(ep->state) != KOFI_EP_IDLE)
		err = -FI_EOPBADSTATE;
	else if (in < least || in > most)
		err = -EINVAL;
	else
		*to = in;
	mutex_unlock(&ep->config);
	return err;
}
EXPORT_SYMBOL_GPL(kofi_ep_set_size);

/**
 * kofi_ep_set_limit - set a limit in the endpoint's fi_info, before the endpoint is enabled
 * @ep: the endpoint
 * @name: optname of the provider's setopt()
 * @val: optval of the provider's setopt()
 * @len: optlen of the provider's setopt()
 * @most: largest value of each limit
 *
 * Context: process, may sleep.
 * Return: 0; -FI_ENOPROTOOPT if @name is no such limit; or as kofi_ep_set_size().
 */
int kofi_ep_set_limit(struct kofi_ep *ep, int name, const void *val, size_t len,
		      const struct kofi_ep_limits *most)
{
	size_t limit;

	switch (name) {
	case FI_OPT_TX_SIZE:
	case FI_OPT_RX_SIZE:
		limit = most->size;
		break;
	case FI_OPT_MAX_MSG_SIZE:
		limit = most->msg;
		break;
	case FI_OPT_INJECT_MSG_SIZE:
		limit = most->inject;
		break;
	default:
		return -FI_ENOPROTOOPT;
	}
	return kofi_ep_set_size(ep, kofi_ep_size_opt(ep->info, name), val, len, 1,
				limit);
}
EXPORT_SYMBOL_GPL(kofi_ep_set_limit);

/**
 * fi_setopt - set an option
 * @fid: an active or passive endpoint, or a shared receive context
 * @level: FI_OPT_ENDPOINT
 * @optname: one of the options, FI_OPT_TX_SIZE for instance
 * @optval: value of the option; the type is in fi_endpoint.h
 * @optlen: bytes at @optval
 *
 * fi_endpoint(3). KOFI_OPT_MR_POOL (0 at first, 65536 at most) limits the
 * regions of its domain that kofi_mr_get() may give an endpoint at a time.
 * KOFI_OPT_MR_SEGS (%KOFI_IOV_MAX) limits the segments of each of them.
 *
 * KOFI_OPT_UNEXPECTED_TIMEOUT (0: off) is the number of milliseconds that a message
 * waits for a receive at an endpoint of type FI_EP_RDM. Then the message is discarded. If
 * discarding would falsely confirm it to the sender, the connection is closed instead.
 * That is so with FI_DELIVERY_COMPLETE. It is so with FI_TRANSMIT_COMPLETE of kofi_sock,
 * if the message was not stored. The event queue of the endpoint gets KOFI_UNEXPECTED
 * in both cases. Endpoints with one shared receive context should have the same
 * limit: messages that wait there are examined in the order of their arrival.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL; -FI_ETOOSMALL for a value that is shorter than the option's
 * type; -ENOPROTOOPT for an option that is not known or cannot be set; -EOPNOTSUPP
 * for a pool if the consumer chooses the keys of the domain; -FI_EOPBADSTATE for a pool
 * once the endpoint has been enabled; or an error of the provider.
 */
int fi_setopt(fid_t fid, int level, int optname, const void *optval,
	      size_t optlen)
{
	const struct fi_ops_ep *ops = kofi_ep_opt_ops(fid);
	size_t *own, value;
	int ret;

	might_sleep();
	if (!ops || !optval || !optlen)
		return -EINVAL;
	if (level != FI_OPT_ENDPOINT)
		return -ENOPROTOOPT;
	own = kofi_ep_early_opt(fid, optname);
	if (own)
		return kofi_ep_set_early(container_of(fid, struct kofi_ep,
						      ep.fid),
					 own, optname, optval, optlen);
	if (kofi_ep_own_opt(fid, optname, &own)) {
		ret = kofi_opt_set_size(&value, optval, optlen);
		if (ret || !value)
			return ret ?: -EINVAL;
		WRITE_ONCE(*own, value);
		return 0;
	}
	if (!ops->setopt)
		return -ENOPROTOOPT;
	return ops->setopt(fid, level, optname, optval, optlen);
}
EXPORT_SYMBOL_GPL(fi_setopt);

/**
 * kofi_opt_get - return a value from fi_getopt()
 * @from: the value
 * @size: bytes at @from
 * @val: optval of the provider's getopt()
 * @len: optlen of the provider's getopt(); receives @size
 *
 * Context: any.
 * Return: 0; -FI_ETOOSMALL, and nothing has been copied.
 */
int kofi_opt_get(const void *from, size_t size, void *val, size_t *len)
{
	const size_t room = *len;

	*len = size;
	if (room < size)
		return -FI_ETOOSMALL;
	memcpy(val, from, size);
	return 0;
}
EXPORT_SYMBOL_GPL(kofi_opt_get);

/**
 * kofi_opt_get_size - return a size from fi_getopt()
 * @value: the size
 * @val: optval of the provider's getopt()
 * @len: optlen of the provider's getopt()
 *
 * Context: any.
 * Return: 0; -FI_ETOOSMALL.
 */
int kofi_opt_get_size(size_t value, void *val, size_t *len)
{
	return kofi_opt_get(&value, sizeof(value), val, len);
}
EXPORT_SYMBOL_GPL(kofi_opt_get_size);

/* Most bytes of an atomic operation without compare operands; 0 for none */
static size_t kofi_ep_atomic_size(struct fid_ep *ep)
{
	size_t count;

	if (!(kofi_ep(ep)->info->caps & FI_ATOMIC) ||
	    kofi_atomic_valid(ep, FI_UINT64, FI_ATOMIC_WRITE, 0, &count))
		return 0;
	return count * sizeof(u64);
}

/*
 * Limits of one kind of transfer. They equal the limits of messages; without the
 * capability for the kind the option is unknown.
 */
static size_t kofi_ep_kind_size(struct kofi_ep *ep, int optname)
{
	const struct fi_info *info = ep->info;
	size_t atomic;

	if (kofi_ep_is_srx(ep))
		return 0;
	switch (optname) {
	case FI_OPT_MAX_TAGGED_SIZE:
		return info->caps & FI_TAGGED ? info->ep_attr->max_msg_size : 0;
	case FI_OPT_INJECT_TAGGED_SIZE:
		return info->caps & FI_TAGGED ? info->tx_attr->inject_size : 0;
	case FI_OPT_MAX_RMA_SIZE:
		return info->caps & FI_RMA ? info->ep_attr->max_msg_size : 0;
	case FI_OPT_INJECT_RMA_SIZE:
		return info->caps & FI_RMA ? info->tx_attr->inject_size : 0;
	case FI_OPT_MAX_ATOMIC_SIZE:
		return kofi_ep_atomic_size(&ep->ep);
	case FI_OPT_INJECT_ATOMIC_SIZE:
		atomic = kofi_ep_atomic_size(&ep->ep);
		return min(atomic, info->tx_attr->inject_size);
	default:
		return 0;
	}
}

/* Options with a value that the core or the endpoint's fi_info has */
static bool kofi_ep_known_opt(fid_t fid, int optname, size_t *value)
{
	struct kofi_ep *ep;
	size_t *own;

	if (kofi_ep_own_opt(fid, optname, &own)) {
		*value = READ_ONCE(*own);
		return true;
	}
	if (!kofi_fid_is_ep(fid))
		return false;
	ep = container_of(fid, struct kofi_ep, ep.fid);
	own = kofi_ep_early_opt(fid, optname) ?:
	      kofi_ep_size_opt(ep->info, optname);
	*value = own ? *own : kofi_ep_kind_size(ep, optname);
	return own || *value;
}

/**
 * fi_getopt - read an option
 * @fid: an active or passive endpoint, or a shared receive context
 * @level: FI_OPT_ENDPOINT
 * @optname: one of the options, FI_OPT_TX_SIZE for instance
 * @optval: receives the value
 * @optlen: in: bytes at @optval, out: size of the value in bytes
 *
 * fi_endpoint(3). A limit of a kind of transfer, such as FI_OPT_MAX_TAGGED_SIZE, is
 * unknown to an endpoint without the capability. FI_OPT_MAX_ATOMIC_SIZE applies to
 * operations without compare; fi_query_atomic() returns the limit of each operation.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL; -FI_ETOOSMALL; -ENOPROTOOPT for an unknown option;
 * the provider's error.
 */
int fi_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	const struct fi_ops_ep *ops = kofi_ep_opt_ops(fid);
	size_t value;

	might_sleep();
	if (!ops || !optlen || (*optlen && !optval))
		return -EINVAL;
	if (level != FI_OPT_ENDPOINT)
		return -ENOPROTOOPT;
	if (!kofi_ep_known_opt(fid, optname, &value))
		return ops->getopt ? ops->getopt(fid, level, optname, optval,
						 optlen) : -ENOPROTOOPT;

	return kofi_opt_get_size(value, optval, optlen);
}
EXPORT_SYMBOL_GPL(fi_getopt);

static int kofi_ep_ops_flags(struct kofi_ep *ep, int command, u64 *arg)
{
	u64 *flags, allowed, dir;

	if (!arg)
		return -EINVAL;
	dir = *arg & (FI_TRANSMIT | FI_RECV);
	if (dir == FI_TRANSMIT) {
		flags = &ep->ep.tx_op_flags;
		allowed = ep->op_flags[KOFI_TX];
	} else if (dir == FI_RECV) {
		flags = &ep->ep.rx_op_flags;
		allowed = ep->op_flags[KOFI_RX];
	} else {
		return -EINVAL;
	}
	if (command == FI_GETOPSFLAG) {
		*arg = READ_ONCE(*flags);
		return 0;
	}
	if (*arg & ~(dir | allowed))
		return -FI_EBADFLAGS;
	WRITE_ONCE(*flags, *arg & allowed);
	return 0;
}

/**
 * kofi_ep_control - fi_control() of an endpoint
 * @obj: object of the endpoint
 * @command: FI_ENABLE, FI_GETOPSFLAG, FI_SETOPSFLAG; or FI_SET_VAL and FI_GET_VAL for the
 *	provider's variables
 * @arg: see fabric.h
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL; -FI_EBADFLAGS, also for a flag the provider would refuse
 * in an operation; FI_ENABLE: as fi_enable(); FI_SET_VAL and FI_GET_VAL: the result of
 * the provider; -ENOSYS for another command, or if the provider knows none.
 */
int kofi_ep_control(struct kofi_obj *obj, int command, void *arg)
{
	struct kofi_ep *ep = container_of(obj, struct kofi_ep, obj);
	const struct fi_fid_var *var = arg;

	switch (command) {
	case FI_ENABLE:
		return fi_enable(&ep->ep);
	case FI_GETOPSFLAG:
	case FI_SETOPSFLAG:
		return kofi_ep_ops_flags(ep, command, arg);
	case FI_SET_VAL:
	case FI_GET_VAL:
		if (!ep->ep.fid.ops->control)
			return -ENOSYS;
		if (!var || !var->val)
			return -EINVAL;
		return ep->ep.fid.ops->control(&ep->ep.fid, command, arg);
	default:
		return -ENOSYS;
	}
}

/* -------------------------------------------------------- callbacks and names */

/**
 * kofi_ep_write_space - set the write-space callback
 * @ep: an endpoint that has not been enabled, or a shared receive context that
 *	has not been used
 * @fn: called after a post was refused with -EAGAIN, when another attempt
 *	may succeed; its context is the endpoint's fid.context. NULL for none.
 *
 * The callback runs as a callback of the transmit queue, or of the receive queue if the
 * endpoint does not transmit. That is so even if the queue is read. It never runs
 * concurrently with another callback of that queue. It may post, and be refused again.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL; -FI_EOPBADSTATE once the endpoint has been enabled.
 */
int kofi_ep_write_space(struct fid_ep *ep,
			void (*fn)(struct fid_ep *ep, void *context))
{
	struct kofi_ep *kep = kofi_ep(ep);
	int ret = 0;

	might_sleep();
	if (!kofi_ep_valid(ep))
		return -EINVAL;
	mutex_lock(&kep->config);
	if (READ_ONCE(kep->state) == KOFI_EP_IDLE)
		kep->space.fn = fn;
	else
		ret = -FI_EOPBADSTATE;
	mutex_unlock(&kep->config);
	return ret;
}
EXPORT_SYMBOL_GPL(kofi_ep_write_space);

/**
 * kofi_ep_remote_cqe - set the completion of remote CQ data and remote accesses
 * @ep: an endpoint that has not been enabled
 * @cqe: done is called, on the receive queue, for remote CQ data of a peer's
 *	write that takes no receive (fi_writedata()), and for accesses to
 *	regions registered with FI_RMA_EVENT; must live as long as the endpoint.
 *	NULL: they are only counted.
 *
 * The completion identifies the region (kofi_wc.mr_context, kofi_wc.mr_key). Queues
 * that are read report the context of the region, and do not need this.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL; -EOPNOTSUPP where such data takes a receive and accesses are
 * not reported, as with devices; -FI_EOPBADSTATE once the endpoint has been
 * enabled.
 */
int kofi_ep_remote_cqe(struct fid_ep *ep, struct kofi_cqe *cqe)
{
	struct kofi_ep *kep = kofi_ep(ep);
	int ret = 0;

	might_sleep();
	if (!kofi_ep_valid(ep) || kofi_ep_is_srx(kep))
		return -EINVAL;
	if (cqe && !kep->domain->mr_ops->counted && !kep->domain->remote)
		return -EOPNOTSUPP;
	mutex_lock(&kep->config);
	if (READ_ONCE(kep->state) == KOFI_EP_IDLE)
		kep->remote_cqe = cqe;
	else
		ret = -FI_EOPBADSTATE;
	mutex_unlock(&kep->config);
	return ret;
}
EXPORT_SYMBOL_GPL(kofi_ep_remote_cqe);

/**
 * kofi_ep_set_source - set the source of a connected endpoint's messages
 * @ep: the endpoint
 * @source: source address of the messages, FI_ADDR_UNSPEC for none
 *
 * A connected endpoint has one peer, and the consumer chooses the peer's address.
 * Completions report it with FI_SOURCE, and receives
 * of a shared context with FI_DIRECTED_RECV match it. A message that
 * already waits for a receive keeps its source, so call this
 * before the endpoint connects.
 *
 * Context: any.
 * Return: 0 or -EINVAL.
 */
int kofi_ep_set_source(struct fid_ep *ep, fi_addr_t source)
{
	if (!kofi_ep_valid(ep))
		return -EINVAL;
	WRITE_ONCE(kofi_ep(ep)->source, source);
	return 0;
}
EXPORT_SYMBOL_GPL(kofi_ep_set_source);

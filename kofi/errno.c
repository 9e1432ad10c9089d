// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Text for error codes. All strings are constants: any context may ask for one, and the
 * caller frees none. Text for the fabric's own codes is in names.c, which the kofi tool
 * is built with too.
 */
#include <linux/export.h>
#include <linux/kernel.h>

#include "internal.h"
#include "names.h"

static const char *const kofi_errno_linux[] = {
	[0]			= "success",
	[FI_EPERM]		= "operation not permitted",
	[FI_ENOENT]		= "no such entry",
	[FI_EINTR]		= "interrupted by a signal",
	[FI_EIO]		= "input or output error",
	[FI_E2BIG]		= "argument list too long",
	[FI_EBADF]		= "bad file number",
	[FI_EAGAIN]		= "no room now, try again",
	[FI_ENOMEM]		= "out of memory",
	[FI_EACCES]		= "access denied",
	[FI_EFAULT]		= "bad address",
	[FI_EBUSY]		= "in use",
	[FI_EEXIST]		= "exists already",
	[FI_ENODEV]		= "no such device or provider",
	[FI_EINVAL]		= "invalid argument",
	[FI_EMFILE]		= "too many open files",
	[FI_ENOSPC]		= "no space left",
	[FI_ENOSYS]		= "not implemented",
	[FI_ENOMSG]		= "no message of that kind",
	[FI_ENODATA]		= "no data available",
	[FI_EOVERFLOW]		= "value too large",
	[FI_EMSGSIZE]		= "message too long",
	[FI_ENOPROTOOPT]	= "no such option",
	[FI_EOPNOTSUPP]		= "operation not supported",
	[FI_EADDRINUSE]		= "address in use",
	[FI_EADDRNOTAVAIL]	= "address not available",
	[FI_ENETDOWN]		= "network is down",
	[FI_ENETUNREACH]	= "network unreachable",
	[FI_ECONNABORTED]	= "connection aborted",
	[FI_ECONNRESET]		= "connection reset by the peer",
	[FI_ENOBUFS]		= "no buffer space",
	[FI_EISCONN]		= "connected already",
	[FI_ENOTCONN]		= "not connected",
	[FI_ESHUTDOWN]		= "connection has been shut down",
	[FI_ETIMEDOUT]		= "timed out",
	[FI_ECONNREFUSED]	= "connection refused",
	[FI_EHOSTDOWN]		= "host is down",
	[FI_EHOSTUNREACH]	= "host unreachable",
	[FI_EALREADY]		= "under way already",
	[FI_EINPROGRESS]	= "in progress",
	[FI_EREMOTEIO]		= "error at the remote side",
	[FI_ECANCELED]		= "canceled",
	[FI_EKEYREJECTED]	= "key rejected",
	/* without a name of the fabric's */
	[ENOTTY]		= "no such operation",
	[EPIPE]			= "the peer does not read",
	[ERANGE]		= "out of range",
	[EDEADLK]		= "would wait for itself",
	[ENAMETOOLONG]		= "name too long",
	[ENOLINK]		= "link is down",
	[EPROTO]		= "protocol violation",
	[EBADMSG]		= "malformed message",
	[ENOTUNIQ]		= "not unique",
	[EUSERS]		= "too many users",
	[EPROTONOSUPPORT]	= "protocol not supported",
	[EAFNOSUPPORT]		= "address family not supported",
	[ESTALE]		= "no longer what it was",
};

/**
 * fi_strerror - words for an error code
 * @errnum: a code, of either sign
 *
 * See fi_errno(3).
 *
 * Context: any.
 * Return: a constant string, never NULL.
 */
const char *fi_strerror(int errnum)
{
	unsigned int code = errnum < 0 ? 0U - errnum : errnum;
	const char *text = NULL;

	if (code < ARRAY_SIZE(kofi_errno_linux))
		text = kofi_errno_linux[code];
	else if (code >= FI_ERRNO_OFFSET && code < FI_ERRNO_MAX)
		text = kofi_errno_fabric[code - FI_ERRNO_OFFSET];
	return text ?: "unknown error";
}
EXPORT_SYMBOL_GPL(fi_strerror);

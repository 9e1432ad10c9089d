/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What kofi_9p.ko and its servers say to each other besides 9P; also for
 * programs.
 *
 * Each message of the client is a request of 9P, and each one of the server one
 * reply or several, one behind the other. Both sides say in the private data of the
 * connection request and of its acceptance how many requests they have receives
 * for, and how long those are. The client has no more requests outstanding than
 * both numbers allow, so that neither side ever lacks a receive. A server has more
 * than it says, one at least: a reply may be on its way before the receive of its
 * request is posted again.
 */
#ifndef _KOFI_9P_PROTO_H
#define _KOFI_9P_PROTO_H

#include <linux/types.h>

#define K9_MAGIC	0x70396b6fU
#define K9_VERSION	2
#define K9_MSIZE_MIN	4096U
#define K9_MSIZE_MAX	1048576U
#define K9_CREDITS_MIN	2U
#define K9_CREDITS_MAX	512U

/**
 * struct k9_hello - private data, both ways
 * @magic: %K9_MAGIC
 * @version: %K9_VERSION
 * @credits: how many requests may be outstanding for its receives
 * @msize: longest message it can receive
 */
struct k9_hello {
	__le32	magic;
	__le16	version;
	__le16	credits;
	__le32	msize;
};

#endif /* _KOFI_9P_PROTO_H */

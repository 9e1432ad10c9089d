/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Protocol between kofi_9p.ko and its servers in addition to 9P. Programs use
 * this file, too.
 *
 * Each message of the client is a 9P request. Each message of the server has
 * one or more replies. In the private data of the connection request and of the
 * response, each side states its number of receives and their length. The
 * client limits its outstanding requests by both numbers, so that neither side
 * lacks a receive. A server posts at least one more receive than it states: a
 * reply may be sent before the receive of its request is posted again.
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
 * struct k9_hello - private data in both directions
 * @magic: %K9_MAGIC
 * @version: %K9_VERSION
 * @credits: outstanding requests that the sender's receives allow
 * @msize: bytes of the longest message the sender can receive
 */
struct k9_hello {
	__le32	magic;
	__le16	version;
	__le16	credits;
	__le32	msize;
};

#endif /* _KOFI_9P_PROTO_H */

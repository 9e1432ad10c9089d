/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * backport.h - differences between the supported kernels
 *
 * Newer kernels parse the options of all transports themselves, and describe a
 * mount to its transport by a struct fs_context. The transport is written for
 * those. Older kernels pass the name of the server and the options as a string,
 * from which such a context is made here.
 */
#ifndef _KOFI_9P_BACKPORT_H
#define _KOFI_9P_BACKPORT_H

#include <linux/fs_context.h>
#include <linux/kstrtox.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/9p/9p.h>
#include <net/9p/client.h>
#include <net/9p/transport.h>

#ifdef P9_RDMA_PORT
#define k9_create_mount	k9_create
#else
#define P9_RDMA_PORT		5640
#define P9_RDMA_RQ_DEPTH	32

struct p9_rdma_opts {
	u16	port;
	u16	rq_depth;
};

struct v9fs_context {
	struct p9_rdma_opts	rdma_opts;
};

static int k9_create(struct p9_client *client, struct fs_context *fc);

/* Parse the transport's options. Other options belong to 9p or to the file system. */
static inline int k9_parse(char *args, struct p9_rdma_opts *opts)
{
	char *copy, *next, *arg;
	int err = 0;
	size_t n;

	copy = kstrdup(args ?: "", GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	next = copy;
	while (!err && (arg = strsep(&next, ","))) {
		n = str_has_prefix(arg, "port=");
		if (n)
			err = kstrtou16(arg + n, 10, &opts->port);
		n = str_has_prefix(arg, "rq=");
		if (n)
			err = kstrtou16(arg + n, 10, &opts->rq_depth);
	}
	kfree(copy);
	return err ? -EINVAL : 0;
}

static inline int k9_create_mount(struct p9_client *client, const char *source,
				  char *args)
{
	struct v9fs_context ctx = {
		.rdma_opts = {
			.port = P9_RDMA_PORT, .rq_depth = P9_RDMA_RQ_DEPTH,
		},
	};
	struct fs_context fc = {
		.source = (char *)source, .fs_private = &ctx,
	};
	int err;

	err = k9_parse(args, &ctx.rdma_opts);
	if (err)
		return err;
	return k9_create(client, &fc);
}
#endif

#endif /* _KOFI_9P_BACKPORT_H */

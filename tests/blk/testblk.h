/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofi_testblk.ko: a block device whose blocks are another machine's memory,
 * or this one's. It exists for tests of what runs below the file system, and
 * is thrown away with them: no discovery, no reconnecting, no security.
 *
 * A disk is a connection. Its client sends a request for each read and write,
 * naming the memory of the request by key; the server, whose memory the disk
 * is, moves the bytes and answers.
 */
#ifndef _KOFI_TESTBLK_H
#define _KOFI_TESTBLK_H

#include <linux/kofi/kofi.h>

#define TB_DEPTH	32		/* requests of a disk under way */
#define TB_BYTES	SZ_128K		/* of a request at most */
#define TB_SEGS		16
#define TB_PORT		"4420"

enum {
	TB_READ,
	TB_WRITE,
};

/**
 * struct tb_msg - a request, or the answer to one
 * @pos: first byte on the disk
 * @addr: remote address of the client's memory
 * @key: its key
 * @len: bytes
 * @op: TB_READ or TB_WRITE
 * @tag: the client's, comes back
 * @error: of an answer: 0, or a positive error code
 */
struct tb_msg {
	__le64	pos;
	__le64	addr;
	__le64	key;
	__le32	len;
	__le32	op;
	__le32	tag;
	__le32	error;
};

/**
 * struct tb_hello - private data of the connection request
 * @mib: how large the disk is to be
 * @sleepy: completions of both ends are handled in work items
 */
struct tb_hello {
	__le32	mib;
	__le32	sleepy;
};

/**
 * struct tb_spec - what a disk is like
 * @mib: its size
 * @lack: MiB at its end that the server does not have, so that it has to
 *	refuse requests
 * @sleepy: completions in work items, not in softirqs
 */
struct tb_spec {
	unsigned int	mib;
	unsigned int	lack;
	bool		sleepy;
};

/**
 * struct tb_end_attr - how the ends of a connection differ
 * @regions: how many the endpoint's pool has
 * @sleepy: completions in work items
 * @space: write-space callback, or NULL
 * @context: the endpoint's
 */
struct tb_end_attr {
	size_t	regions;
	bool	sleepy;
	void	(*space)(struct fid_ep *ep, void *context);
	void	*context;
};

/* One end of a connection */
struct tb_end {
	struct fid_domain	*domain;
	struct fid_cq		*cq;
	struct fid_ep		*ep;
};

extern char *tb_provider;
extern bool tb_safe;

int tb_getinfo(const char *node, u64 flags, struct fi_info **info);
int tb_end_open(struct tb_end *e, struct fid_fabric *fabric,
		struct fid_eq *eq, struct fi_info *info,
		const struct tb_end_attr *attr);
void tb_end_close(struct tb_end *e);
int tb_recv(struct tb_end *e, struct tb_msg *msg, struct kofi_cqe *cqe);

int tb_server_open(const char *node);
void tb_server_close(void);
int tb_disk_open(const char *node, const struct tb_spec *spec);
void tb_disks_close(void);

#endif /* _KOFI_TESTBLK_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* kofi-9pd: what its files share. */
#ifndef _KOFI_9PD_H
#define _KOFI_9PD_H

#include "link.h"

/**
 * struct options - of the command line
 * @prov: provider of libfabric
 * @node: address to listen at, or NULL
 * @port: port
 * @msize: longest message
 * @credits: most requests a client may have outstanding
 * @clients: most clients at a time
 * @connect: where a 9P server listens, HOST:PORT or a path; or NULL
 * @command: a program that serves one client at its standard input, if not
 *	@connect
 */
struct options {
	const char	*prov;
	const char	*node;
	const char	*port;
	uint32_t	msize;
	unsigned int	credits;
	unsigned int	clients;
	const char	*connect;
	char		**command;
};

void client_begin(struct listener *l, const struct options *o,
		  struct fi_info *info, const void *data, size_t len);
void client_down(const struct fid *ep);
void clients_close(void);
void clients_end(void);

#endif /* _KOFI_9PD_H */

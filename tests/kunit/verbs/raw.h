/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A peer that is not kofi_verbs: the connection manager's own interface. */
#ifndef _KOFI_TESTS_VERBS_RAW_H
#define _KOFI_TESTS_VERBS_RAW_H

#include <linux/completion.h>
#include <linux/socket.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

/**
 * struct vraw - the peer
 * @id: its identifier; of a listener, that of the request, once there is one
 * @listener: the listening one, or NULL
 * @pd: of the queue pair
 * @cq: the same
 * @done: completed by the event a call waits for
 * @event: that: established, rejected, an error, or a request
 * @status: its status
 * @depth: what the event says of reads: responder resources, initiator depth
 * @len: bytes of private data
 * @data: these
 */
struct vraw {
	struct rdma_cm_id	*id;
	struct rdma_cm_id	*listener;
	struct ib_pd		*pd;
	struct ib_cq		*cq;
	struct completion	done;
	int			event;
	int			status;
	u8			depth[2];
	u8			len;
	u8			data[256];
};

int vraw_connect(struct vraw *raw, struct net *net,
		 const struct sockaddr_storage *to,
		 const struct rdma_conn_param *param);
int vraw_listen(struct vraw *raw, struct net *net,
		struct sockaddr_storage *addr);
int vraw_accept(struct vraw *raw, const struct rdma_conn_param *param);
int vraw_wait(struct vraw *raw);
void vraw_die(struct vraw *raw);
void vraw_close(struct vraw *raw);

#endif /* _KOFI_TESTS_VERBS_RAW_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Event queues, completion queues, counters, wait sets and poll sets (fi_eq(3),
 * fi_cq(3), fi_cntr(3), fi_poll(3)).
 */
#ifndef _LINUX_KOFI_FI_EQ_H
#define _LINUX_KOFI_FI_EQ_H

#include <linux/kofi/fabric.h>

/*
 * How a caller can wait on a queue. FI_WAIT_UNSPEC sleeps, FI_WAIT_YIELD looks
 * again and again and lets other tasks run in between, FI_WAIT_SET makes the
 * queue a member of a wait set. KOFI_WAIT_QUEUE hands out the kernel wait queue
 * through fi_control(FI_GETWAIT); file descriptors and pthread objects have no
 * meaning here and are refused.
 */
enum fi_wait_obj {
	FI_WAIT_NONE,
	FI_WAIT_UNSPEC,
	FI_WAIT_SET,
	FI_WAIT_FD,
	FI_WAIT_MUTEX_COND,
	FI_WAIT_YIELD,
	FI_WAIT_POLLFD,
	KOFI_WAIT_QUEUE		= 0x100,
};

struct fi_wait_attr {
	enum fi_wait_obj	wait_obj;
	u64			flags;
};

struct fid_wait {
	struct fi_fid		fid;
};

struct fi_poll_attr {
	u64			flags;
};

struct fid_poll {
	struct fi_fid		fid;
};

struct fi_eq_attr {
	size_t			size;
	u64			flags;
	enum fi_wait_obj	wait_obj;
	int			signaling_vector;
	struct fid_wait		*wait_set;
};

enum {
	FI_NOTIFY,
	FI_CONNREQ,
	FI_CONNECTED,
	FI_SHUTDOWN,
	FI_MR_COMPLETE,
	FI_AV_COMPLETE,
	FI_JOIN_COMPLETE,
};

struct fi_eq_entry {
	fid_t			fid;
	void			*context;
	u64			data;
};

struct fi_eq_err_entry {
	fid_t			fid;
	void			*context;
	u64			data;
	int			err;
	int			prov_errno;
	void			*err_data;
	size_t			err_data_size;
};

struct fi_eq_cm_entry {
	fid_t			fid;
	struct fi_info		*info;	/* FI_CONNREQ: the reader's to free */
	u8			data[];
};

struct fid_eq {
	struct fi_fid		fid;
};

int fi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
	       struct fid_eq **eq, void *context);
ssize_t fi_eq_read(struct fid_eq *eq, u32 *event, void *buf, size_t len,
		   u64 flags);
ssize_t fi_eq_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buf,
		      u64 flags);
ssize_t fi_eq_write(struct fid_eq *eq, u32 event, const void *buf, size_t len,
		    u64 flags);
ssize_t fi_eq_sread(struct fid_eq *eq, u32 *event, void *buf, size_t len,
		    int timeout, u64 flags);
const char *fi_eq_strerror(struct fid_eq *eq, int prov_errno,
			   const void *err_data, char *buf, size_t len);

enum fi_cq_format {
	FI_CQ_FORMAT_UNSPEC,
	FI_CQ_FORMAT_CONTEXT,
	FI_CQ_FORMAT_MSG,
	FI_CQ_FORMAT_DATA,
	FI_CQ_FORMAT_TAGGED,
};

struct fi_cq_entry {
	void			*op_context;
};

struct fi_cq_msg_entry {
	void			*op_context;
	u64			flags;
	size_t			len;
};

struct fi_cq_data_entry {
	void			*op_context;
	u64			flags;
	size_t			len;
	void			*buf;
	u64			data;
};

struct fi_cq_tagged_entry {
	void			*op_context;
	u64			flags;
	size_t			len;
	void			*buf;
	u64			data;
	u64			tag;
};

struct fi_cq_err_entry {
	void			*op_context;
	u64			flags;
	size_t			len;
	void			*buf;
	u64			data;
	u64			tag;
	size_t			olen;
	int			err;
	int			prov_errno;
	void			*err_data;
	size_t			err_data_size;
	fi_addr_t		src_addr;
};

enum fi_cq_wait_cond {
	FI_CQ_COND_NONE,
	FI_CQ_COND_THRESHOLD,
};

struct fi_cq_attr {
	size_t			size;
	u64			flags;
	enum fi_cq_format	format;
	enum fi_wait_obj	wait_obj;
	int			signaling_vector;
	enum fi_cq_wait_cond	wait_cond;
	struct fid_wait		*wait_set;
};

struct fid_cq {
	struct fi_fid		fid;
};

int fi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
	       struct fid_cq **cq, void *context);
ssize_t fi_cq_read(struct fid_cq *cq, void *buf, size_t count);
ssize_t fi_cq_readfrom(struct fid_cq *cq, void *buf, size_t count,
		       fi_addr_t *src_addr);
ssize_t fi_cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *buf,
		      u64 flags);
ssize_t fi_cq_sread(struct fid_cq *cq, void *buf, size_t count,
		    const void *cond, int timeout);
ssize_t fi_cq_sreadfrom(struct fid_cq *cq, void *buf, size_t count,
			fi_addr_t *src_addr, const void *cond, int timeout);
int fi_cq_signal(struct fid_cq *cq);
const char *fi_cq_strerror(struct fid_cq *cq, int prov_errno,
			   const void *err_data, char *buf, size_t len);

enum fi_cntr_events {
	FI_CNTR_EVENTS_COMP,
	FI_CNTR_EVENTS_BYTES,
};

struct fi_cntr_attr {
	enum fi_cntr_events	events;
	enum fi_wait_obj	wait_obj;
	struct fid_wait		*wait_set;
	u64			flags;
};

struct fid_cntr {
	struct fi_fid		fid;
};

int fi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		 struct fid_cntr **cntr, void *context);
u64 fi_cntr_read(struct fid_cntr *cntr);
u64 fi_cntr_readerr(struct fid_cntr *cntr);
int fi_cntr_add(struct fid_cntr *cntr, u64 value);
int fi_cntr_adderr(struct fid_cntr *cntr, u64 value);
int fi_cntr_set(struct fid_cntr *cntr, u64 value);
int fi_cntr_seterr(struct fid_cntr *cntr, u64 value);
int fi_cntr_wait(struct fid_cntr *cntr, u64 threshold, int timeout);

int fi_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
		 struct fid_wait **waitset);
int fi_wait(struct fid_wait *waitset, int timeout);
int fi_trywait(struct fid_fabric *fabric, struct fi_fid **fids, int count);

int fi_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
		 struct fid_poll **pollset);
int fi_poll_add(struct fid_poll *pollset, struct fi_fid *event_fid, u64 flags);
int fi_poll_del(struct fid_poll *pollset, struct fi_fid *event_fid, u64 flags);
int fi_poll(struct fid_poll *pollset, void **context, int count);

#endif /* _LINUX_KOFI_FI_EQ_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofi_blk.ko, the client: block devices kofiblk0, kofiblk1, ..., each a volume
 * of a target.
 *
 * config.c	the volumes that are mapped, as configfs has them
 * disk.c	the block device
 * request.c	its requests: commands and answers
 * connect.c	connections, and what becomes of requests when they end
 * login.c	the login of a connection
 */
#ifndef _KOFI_BLK_BLK_H
#define _KOFI_BLK_BLK_H

#include <linux/blk-mq.h>
#include <linux/uuid.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include "net.h"

#define KBLK_TAGS	64	/* requests of a queue */
#define KBLK_QUEUED	(5 * KBLK_TAGS)	/* completions of a queue */
#define KBLK_LOOK_MS	500	/* until it is seen that the disk is removed */

/*
 * Only the recovery work changes it once there is a disk.
 *
 * KBLK_LIVE: connected. KBLK_DOWN: requests wait for the next connection. KBLK_FAST:
 * so they do, but those that have another path fail. KBLK_FAILED: there was no connection
 * for too long, and requests fail.
 */
enum kblk_state {
	KBLK_DOWN,
	KBLK_FAST,
	KBLK_LIVE,
	KBLK_FAILED,
};

struct kblk_disk;
struct kblk_login;
struct kblk_queue;
struct kblk_rq;

/**
 * struct kblk_rx - a receive for an answer
 * @cqe: completes it
 * @queue: whose
 * @msg: the answer
 */
struct kblk_rx {
	struct kofi_cqe		cqe;
	struct kblk_queue	*queue;
	/* written by a device, so in no cache line with anything else */
	struct kblk_answer	msg __aligned(ARCH_DMA_MINALIGN);
} __aligned(ARCH_DMA_MINALIGN);

/**
 * struct kblk_queue - a hardware queue and its connection
 * @disk: whose
 * @nr: its number
 * @cq: calls back on a CPU of the queue
 * @ep: the connection
 * @data: receives answers that are remote CQ data and take no receive
 * @lost: sends that are reported if they fail only
 * @held: a request that has been started and whose command has not been sent
 * @login: messages of its login, until that has succeeded
 * @polled: it calls back when the block layer polls
 * @beat: last beat of @notes that has been looked at
 * @beat_at: when that was, in jiffies
 * @notes: notes of the target, unasked
 * @rx: receives for answers
 */
struct kblk_queue {
	struct kblk_disk	*disk;
	unsigned int		nr;
	struct fid_cq		*cq;
	struct fid_ep		*ep;
	struct kofi_cqe		data;
	struct kofi_cqe		lost;
	struct kblk_rq		*held;
	struct kblk_login	*login;
	bool			polled;
	__le64			beat;
	unsigned long		beat_at;
	/* written by a device, so in no cache line with anything else */
	struct kblk_notes	notes __aligned(ARCH_DMA_MINALIGN);
	struct kblk_rx		rx[KBLK_TAGS] __aligned(ARCH_DMA_MINALIGN);
};

/**
 * struct kblk_rq - a request of the block layer
 * @queue: it was last sent through
 * @ended: completes its region
 * @sent: completes a command with data
 * @mr: the region, or NULL
 * @parts: what has not come yet: the answer, the end of @mr or of the send, and
 *	that of queue_rq()
 * @answered: there has been an answer
 * @sts: what the request ends with; BLK_STS_RESOURCE: it is sent again
 * @gen: in @cmd, and in the answer
 * @first: when it was to be sent for the first time, in jiffies
 * @follow: segments of data behind the command
 * @cmd: the command
 * @bv: @cmd if the data follows it, and the pages
 */
struct kblk_rq {
	struct kblk_queue	*queue;
	struct kofi_cqe		ended;
	struct kofi_cqe		sent;
	struct fid_mr		*mr;
	atomic_t		parts;
	atomic_t		answered;
	blk_status_t		sts;
	u8			gen;
	u8			follow;
	unsigned long		first;
	struct kblk_cmd		cmd;
	struct bio_vec		bv[KBLK_SEGS + 1];
};

/**
 * struct kblk_options - what is to be mapped
 * @addr: numeric address of the target
 * @port: of the target
 * @volume: its name there
 * @provider: whose endpoints
 * @host: names this machine to the target
 * @uuid: UUID that the volume has to have; null: any
 * @queues: connections
 * @polled: more of them, for requests that are polled
 * @io_timeout: seconds without an answer or a note until connections are closed
 * @path_timeout: seconds without a connection until requests fail
 * @fast_fail: seconds without a connection until requests that have another path fail;
 *	0: as others
 */
struct kblk_options {
	char			addr[KBLK_TEXT];
	char			port[KBLK_TEXT];
	char			volume[KBLK_TEXT];
	char			provider[KBLK_TEXT];
	char			host[KBLK_TEXT];
	uuid_t			uuid;
	unsigned int		queues;
	unsigned int		polled;
	unsigned int		io_timeout;
	unsigned int		path_timeout;
	unsigned int		fast_fail;
};

/**
 * struct kblk_news - message of the target at a login
 * @w: the volume
 * @stable: earlier incarnations of which all is on stable storage; 0: none
 */
struct kblk_news {
	struct kblk_welcome	w;
	__le64			stable[KBLK_STABLE];
};

/**
 * struct kblk_cache - what a volume has been told to write, and perhaps not flushed
 * @node: of all
 * @uuid: UUID of the volume
 * @addr: address of the target in the options of the first disk
 * @net: cookie of the network namespace of the first disk
 * @given: the administrator gave @uuid for the first disk
 * @disks: paths to the volume; one path may flush writes of another
 * @incarnation: the volume's, at the last login over any of them; that of the connections
 *	of one disk is in its welcome
 * @stable: the last one before it of which all is known to be on stable storage, or 0
 * @unflushed: writes have been acknowledged that no flush was sent for
 * @flushing: flushes that have no answer yet, and may not have covered theirs
 * @losses: how many times such writes may have been lost
 */
struct kblk_cache {
	struct list_head	node;
	u8			uuid[16];
	char			addr[KBLK_TEXT];
	u64			net;
	bool			given;
	unsigned int		disks;
	__le64			incarnation;
	__le64			stable;
	bool			unflushed;
	atomic_t		flushing;
	atomic_t		losses;
};

/**
 * struct kblk_disk - a mapped volume
 * @opt: what is mapped
 * @net: where the target is
 * @session: names this disk to the target
 * @attempt: to connect
 * @deadline: of the attempt, in jiffies
 * @index: of the device's name
 * @set: tags of all queues
 * @gd: the block device
 * @state: enum kblk_state
 * @lost: a connection has ended
 * @removing: no connection is made any more
 * @quiesced: queue_rq() is not called
 * @answered: there have been answers since @since
 * @timed_out: a request was not answered in time
 * @silent: that is how the connections before ended
 * @brief: they had just been made
 * @live: when they were, in jiffies
 * @cache: what has been written, of all paths to the volume
 * @losses: @cache's that are forgotten, as all who knew of them have closed the disk;
 *	flushes fail while there are more
 * @returned: @cache's that a failed flush has returned
 * @since: when the path was last known to be good, in jiffies
 * @backoff: seconds until the next attempt
 * @recover: takes connections down, and makes new ones
 * @welcome: what the volume is like
 * @known: @welcome is there
 * @features: KBLK_FEATURE_CQ_DATA, ...: features of the connections
 * @inline_max: bytes of a write whose command has the data
 * @inline_segs: and segments
 * @info: of the target
 * @fabric: where the connections are, or were last: its provider is to be there for the
 *	next ones
 * @eq: for their events
 * @domain: all of them
 * @nr_queues: of @queues
 * @nr_polled: of these, the last ones
 * @queues: one for each connection
 */
struct kblk_disk {
	struct kblk_options	opt;
	struct net		*net;
	u8			session[8];
	u32			attempt;
	unsigned long		deadline;
	int			index;
	struct blk_mq_tag_set	set;
	struct gendisk		*gd;
	enum kblk_state		state;
	bool			lost;
	bool			removing;
	bool			quiesced;
	bool			answered;
	bool			timed_out;
	bool			silent;
	bool			brief;
	unsigned long		live;
	struct kblk_cache	*cache;
	int			losses;
	int			returned;
	unsigned long		since;
	unsigned int		backoff;
	struct delayed_work	recover;
	struct kblk_welcome	welcome;
	bool			known;
	u32			features;
	unsigned int		inline_max;
	unsigned int		inline_segs;
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_eq		*eq;
	struct fid_domain	*domain;
	unsigned int		nr_queues;
	unsigned int		nr_polled;
	struct kblk_queue	*queues[] __counted_by(nr_queues);
};

/* Segments of a request: what its region can have */
static inline unsigned int kblk_segs(const struct kblk_disk *d)
{
	return min_t(size_t, KBLK_SEGS, d->info->domain_attr->mr_iov_limit);
}

/* cache.c */
int kblk_cache_get(struct kblk_disk *d);
void kblk_cache_put(struct kblk_cache *cache);
void kblk_cache_login(struct kblk_disk *d, const struct kblk_news *news);
void kblk_cache_stable(struct kblk_disk *d);
void kblk_cache_flush(struct kblk_cache *cache);
void kblk_cache_flushed(struct kblk_cache *cache, bool covered);
void kblk_cache_written(struct kblk_disk *d);
bool kblk_cache_lost(struct kblk_disk *d);
void kblk_cache_closed(struct kblk_disk *d);

/* request.c */
extern const struct blk_mq_ops kblk_mq_ops;
void kblk_queue_init(struct kblk_queue *q);
int kblk_queue_ready(struct kblk_queue *q);
bool kblk_requeue(struct request *rq, void *data);

/* login.c */
u32 kblk_features(const struct kblk_disk *d);
int kblk_accepted(struct kblk_disk *d, const void *data, size_t len);
int kblk_rejected(struct kblk_disk *d, const struct fi_eq_err_entry *e);
int kblk_login(struct kblk_queue *q);

/* connect.c */
extern struct workqueue_struct *kblk_wq;
int kblk_connect(struct kblk_disk *d);
void kblk_disconnect(struct kblk_disk *d);
void kblk_leave(struct kblk_disk *d);
void kblk_lost(struct kblk_disk *d);
void kblk_live(struct kblk_disk *d);
bool kblk_late(const struct kblk_disk *d);
unsigned int kblk_left_ms(const struct kblk_disk *d);
void kblk_recover(struct work_struct *work);

/* disk.c */
struct kblk_disk *kblk_disk_open(const struct kblk_options *opt,
				 const char *name);
void kblk_disk_wait(void);
void kblk_disk_close(struct kblk_disk *d);
void kblk_disk_resize(struct kblk_disk *d);

#endif /* _KOFI_BLK_BLK_H */

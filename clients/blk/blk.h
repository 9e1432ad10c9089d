/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofi_blk.ko, the client: block devices kofiblk0, kofiblk1, ..., each a volume
 * of a target.
 *
 * config.c	mapped volumes in configfs
 * disk.c	the block device
 * request.c	requests: commands and answers
 * connect.c	connections, and recovery of requests after their loss
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
#define KBLK_LOOK_MS	500	/* until the removal of the disk is noticed */

/*
 * After the disk has been added, only the recovery work changes the state.
 *
 * KBLK_LIVE: connected. KBLK_DOWN: requests wait for the next connection. KBLK_FAST:
 * requests wait, but requests with another path fail. KBLK_FAILED: there was no connection
 * for too long, and requests fail.
 */
enum kblk_state {
	KBLK_DOWN,
	KBLK_FAST,
	KBLK_LIVE,
	KBLK_FAILED,
};

struct crypto_shash;
struct kblk_disk;
struct kblk_login;
struct kblk_queue;
struct kblk_rq;

/**
 * struct kblk_rx - a receive for an answer
 * @cqe: completion of the receive
 * @queue: queue of the receive
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
 * @disk: disk of the queue
 * @nr: number of the queue
 * @cq: completion queue, with callbacks on a CPU of the hardware queue
 * @ep: the connection
 * @data: completion of answers that are remote CQ data and take no receive
 * @lost: completion of sends that are reported only if they fail
 * @held: started request with a command that has not been sent
 * @login: messages of the login, until it has succeeded
 * @hello: private data of the connection request
 * @accept: private data of the target's acceptance
 * @polled: the block layer polls the queue
 * @beat: last beat of @notes that was checked
 * @beat_at: time of that check, in jiffies
 * @notes: unsolicited notes; the target writes them by RMA, so no lock protects them
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
	struct kblk_hello	hello;
	struct kblk_accept	accept;
	bool			polled;
	__le64			beat;
	unsigned long		beat_at;
	/* written by a device, so in no cache line with anything else */
	struct kblk_notes	notes __aligned(ARCH_DMA_MINALIGN);
	struct kblk_rx		rx[KBLK_TAGS] __aligned(ARCH_DMA_MINALIGN);
};

/**
 * struct kblk_rq - a request of the block layer
 * @queue: queue of the last command for the request
 * @ended: completion of the region
 * @sent: completion of a command with data
 * @mr: the region, or NULL
 * @parts: outstanding parts: the answer, the completion of @mr or of the send, and
 *	the return of queue_rq()
 * @answered: an answer has been received
 * @sts: result of the request; BLK_STS_RESOURCE: send the request again
 * @gen: generation in @cmd and in the answer
 * @first: time of the first attempt to send it, in jiffies
 * @follow: segments of data behind the command
 * @check: compare the digest of the answer when all parts have completed: it covers the
 *	pages of a read
 * @answer: the answer, with a digest
 * @cmd: the command
 * @digests: digests of @cmd and its data, which are sent behind @cmd
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
	bool			check;
	unsigned long		first;
	struct kblk_answer	answer;
	struct kblk_cmd		cmd;
	struct kblk_digests	digests;
	struct bio_vec		bv[KBLK_SEGS + 1];
};

static_assert(offsetof(struct kblk_rq, digests) == offsetofend(struct kblk_rq, cmd));

/**
 * struct kblk_options - options of a mapping
 * @addr: numeric address of the target
 * @port: port of the target
 * @volume: name of the volume at the target
 * @provider: provider of the endpoints
 * @host: name of this machine for the target
 * @identity: name that this machine proves to the target; empty: no authentication
 * @key: description of the key of @identity; empty: no authentication
 * @uuid: required UUID of the volume; null: any
 * @queues: number of connections for interrupts
 * @polled: number of connections for polled requests
 * @io_timeout: seconds without an answer or a note until connections are closed
 * @digest: digests of commands, answers and data
 * @path_timeout: seconds without a connection until requests fail
 * @fast_fail: seconds without a connection until requests with another path fail;
 *	0: after @path_timeout
 */
struct kblk_options {
	char			addr[KBLK_TEXT];
	char			port[KBLK_TEXT];
	char			volume[KBLK_TEXT];
	char			provider[KBLK_TEXT];
	char			host[KBLK_TEXT];
	char			identity[KBLK_TEXT];
	char			key[KBLK_TEXT];
	uuid_t			uuid;
	unsigned int		queues;
	unsigned int		polled;
	enum kblk_digest	digest;
	unsigned int		io_timeout;
	unsigned int		path_timeout;
	unsigned int		fast_fail;
};

/**
 * struct kblk_news - message of the target at a login
 * @w: attributes of the volume
 * @stable: earlier incarnations with all data on stable storage; 0: none
 */
struct kblk_news {
	struct kblk_welcome	w;
	__le64			stable[KBLK_STABLE];
};

/**
 * struct kblk_cache - acknowledged writes of a volume that may not be on stable storage
 * @node: entry in the list of all caches
 * @uuid: UUID of the volume
 * @addr: address of the target in the options of the first disk
 * @net: cookie of the network namespace of the first disk
 * @given: the administrator gave @uuid for the first disk
 * @disks: number of paths to the volume; one path may flush writes of another
 * @incarnation: incarnation of the volume at the last login over any path; the welcome of
 *	a disk has the incarnation of its connections. Written under kblk_caches_lock;
 *	completions of writes, in softirq context, read it without that mutex
 * @stable: last earlier incarnation with all data on stable storage, or 0; written and read
 *	as @incarnation
 * @unflushed: writes have been acknowledged after the last flush was sent; completions of
 *	all queues set it without a lock, which they would contend for
 * @flushing: number of outstanding flushes, which may not cover their writes
 * @losses: number of possible losses of such writes
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
 * @opt: options of the mapping
 * @net: network namespace of the target's address
 * @session: identity of this disk for the target
 * @hmac: transformation for the proofs of logins, or NULL without authentication
 * @attempt: number of the attempt to connect
 * @deadline: deadline of the attempt, in jiffies
 * @index: number in the device's name
 * @set: tags of all queues
 * @gd: the block device
 * @state: enum kblk_state; written by the one work item @recover, or before it first runs.
 *	Requests and callbacks read it without a lock, since a writer may sleep
 * @lost: a connection has been lost; set in any context, cleared by @recover before it
 *	connects
 * @removing: no connection is made from now on; set once, and checked by waiters without a
 *	lock
 * @quiesced: queue_rq() is not called
 * @answered: an answer has been received since @since; set by completions without a lock,
 *	read and cleared by @recover when all endpoints have been aborted
 * @timed_out: a request was not answered in time; set by the block layer's work item for
 *	time-outs, read and cleared as @answered
 * @silent: the last connections were closed because of @timed_out
 * @brief: the last connections were lost immediately
 * @live: time when the connections became live, in jiffies
 * @cache: unflushed writes, shared by all paths to the volume
 * @losses: losses in @cache that all users of the disk know of, because they have closed it
 *	since; flushes fail while @cache has more. Written by the last close, read without a
 *	lock by flushes
 * @returned: losses in @cache that a failed flush has reported; written by any flush without
 *	a lock, since each writes the number that it has read
 * @since: time when the path was last known to work, in jiffies
 * @backoff: seconds until the next attempt
 * @recover: work item that closes connections and makes new ones
 * @client: notifications of devices and addresses, on which @recover runs at once
 * @welcome: attributes of the volume
 * @known: @welcome is valid
 * @digest_errors: answers with a wrong digest, since the volume was mapped; written by
 *	completions
 * @inline_max: most bytes of a write with its data behind the command
 * @inline_segs: most segments of such a write
 * @info: info of the target
 * @fabric: fabric of the present or last connections; it keeps the provider loaded for
 *	the next ones
 * @eq: event queue of the connections
 * @domain: domain of the connections
 * @nr_queues: number of @queues
 * @nr_polled: number of polled queues, the last of @queues
 * @queues: one for each connection
 */
struct kblk_disk {
	struct kblk_options	opt;
	struct net		*net;
	u8			session[8];
	struct crypto_shash	*hmac;
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
	struct kofi_client	client;
	struct kblk_welcome	welcome;
	bool			known;
	atomic_t		digest_errors;
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

/* Test whether the connection of a queue has a feature. */
static inline bool kblk_has(const struct kblk_queue *q, u32 feature)
{
	return q->accept.features & cpu_to_le32(feature);
}

/* Segments of a request, limited by its region */
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
int kblk_accepted(struct kblk_queue *q, const void *data, size_t len);
int kblk_rejected(struct kblk_disk *d, const struct fi_eq_err_entry *e);
int kblk_login(struct kblk_queue *q);
void kblk_login_free(struct kblk_queue *q);

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

/* config.c */
extern struct key *kblk_keys;

/* disk.c */
struct kblk_disk *kblk_disk_open(const struct kblk_options *opt,
				 const char *name);
int kblk_disk_tags(struct kblk_disk *d);
void kblk_disk_wait(void);
void kblk_disk_close(struct kblk_disk *d);
void kblk_disk_resize(struct kblk_disk *d);

#endif /* _KOFI_BLK_BLK_H */

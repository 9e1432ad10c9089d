/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofi_blkt.ko, the target: block devices of this machine for clients.
 *
 * tconfig.c	volumes and ports, as configfs has them
 * taccess.c	access lists of volumes, and the volumes of a port
 * tconn.c	connections: how they begin and end
 * tlogin.c	the login of a connection, which is for a volume
 * tio.c	commands of a connection
 * tfile.c	what is particular to volumes that are regular files
 * tnotes.c	notes to clients, unasked
 *
 * A volume is a block device or a file with a name, a port an address to listen
 * at. A port reaches the volumes that are linked into it.
 */
#ifndef _KOFI_BLK_TARGET_H
#define _KOFI_BLK_TARGET_H

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/completion.h>
#include <linux/configfs.h>
#include <linux/errseq.h>
#include <linux/mutex.h>
#include <linux/percpu-refcount.h>
#include <linux/socket.h>
#include <linux/uuid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "net.h"

#define KBLKT_ALLOW	16	/* entries of an access list */
#define KBLKT_CONNS	256	/* connections of all clients, unless told */
#define KBLKT_CLIENT	128	/* connections of an address, unless told */
#define KBLKT_CONNS_MAX	65536
#define KBLKT_RX_ORDER	get_order(2 * KBLK_INLINE)	/* pages of a command's receive */
#define KBLKT_POOL	(4 << (20 - PAGE_SHIFT))	/* pages for data, each */
#define KBLKT_TELL	(5 * HZ)	/* until clients know that all is stable */
#define KBLKT_WATCH	(HZ / 2)	/* between two looks at connections */
#define KBLKT_LONG	24	/* log2 of bytes: more would be answered too late */

struct kblkt_conn;
struct kblkt_login;

/*
 * Only the login changes it, in the work item of the connection's queue.
 *
 * KBLKT_LOGS_IN: there is no volume, and no memory for commands. KBLKT_SERVES: the
 * client has been welcomed.
 */
enum kblkt_phase {
	KBLKT_LOGS_IN,
	KBLKT_SERVES,
};

/* Addresses with the first @bits bits of @addr */
struct kblkt_net {
	struct sockaddr_storage	addr;
	unsigned int		bits;
};

/**
 * struct kblkt_allow - an access list
 * @all: admit every address
 * @nr: entries of @nets
 * @nets: addresses to admit
 */
struct kblkt_allow {
	bool			all;
	unsigned int		nr;
	struct kblkt_net	nets[KBLKT_ALLOW];
};

/* Commands that were answered, and those that failed */
struct kblkt_counts {
	atomic64_t		reads;
	atomic64_t		writes;
	atomic64_t		others;
	atomic64_t		errors;
};

/* Treatment of the clients' discards */
enum kblkt_discard {
	KBLKT_DISCARD_AUTO,	/* pass, except to files with all blocks allocated */
	KBLKT_DISCARD_OFF,
	KBLKT_DISCARD_ON,
};

/**
 * struct kblkt_volume - a block device or file for clients
 * @item: its directory
 * @config: protects the attributes
 * @name: of @item, which forgets it before it is released
 * @path: of the device or file
 * @read_only: no writes
 * @direct: of a file: do without the page cache where that is possible
 * @uncached: it does without it, as a device always does
 * @uuid: what it is known by
 * @discard: as configured
 * @exclusive: one host at a time; changes while the volume is disabled
 * @max_conns: bound of @conns; changes at any time
 * @thin: discards free blocks, and so may zeroes
 * @allow: clients that may map it, by kblkt_lock
 * @file: the device or file, while the volume is enabled
 * @bdev: the device, or NULL
 * @wq: flushes; of a file: does all that commands ask for
 * @ends: closes connections, which wait for the device
 * @node: of kblkt_volumes, by kblkt_lock; empty while no client finds the volume
 * @conns: how many connections have it, by kblkt_lock
 * @served: commands that the device or file works on; dead while the volume is disabled
 * @quiet: @served is 0
 * @told: a client has got its last note
 * @lock: for @flushes, @since and @incarnation
 * @flushes: those that wait
 * @since: of a file: errors of writing back are known up to here
 * @incarnation: a random number, another one each time that the volume is enabled,
 *	and when a flush has failed
 * @flush: does what waits in @flushes, all at once
 * @welcome: what the client is told
 * @counts: of commands, since the directory was made
 */
struct kblkt_volume {
	struct config_item	item;
	struct mutex		config;		/* for the attributes */
	char			name[KBLK_NAME_LEN + 1];
	char			path[256];
	bool			read_only;
	bool			direct;
	bool			uncached;
	uuid_t			uuid;
	enum kblkt_discard	discard;
	bool			exclusive;
	unsigned int		max_conns;
	bool			thin;
	struct kblkt_allow	allow;
	struct file		*file;
	struct block_device	*bdev;
	struct workqueue_struct	*wq;
	struct workqueue_struct	*ends;
	struct list_head	node;
	unsigned int		conns;
	struct percpu_ref	served;
	struct completion	quiet;
	struct completion	told;
	spinlock_t		lock;		/* for the next three */
	struct list_head	flushes;
	errseq_t		since;
	u64			incarnation;
	struct work_struct	flush;
	struct kblk_welcome	welcome;
	struct kblkt_counts	counts;
};

/* A numeric address, a port, and whose endpoints */
struct kblkt_where {
	char			addr[KBLK_TEXT];
	char			port[KBLK_TEXT];
	char			provider[KBLK_TEXT];
};

/**
 * struct kblkt_link - a volume that a port reaches
 * @node: of the port's, by kblkt_lock
 * @volume: the volume, whose directory a link pins
 */
struct kblkt_link {
	struct list_head	node;
	struct kblkt_volume	*volume;
};

/**
 * struct kblkt_port - an address to listen at
 * @group: directory of the port
 * @volumes: directory of the links
 * @links: volumes that the port reaches, by kblkt_lock
 * @config: protects the attributes
 * @at: the address
 * @fabric: open while the port is enabled
 * @eq: events of the port and its connections
 * @pep: listens; NULL while the port is disabled, or being disabled
 */
struct kblkt_port {
	struct config_group	group;
	struct config_group	volumes;
	struct list_head	links;
	struct mutex		config;		/* for the attributes */
	struct kblkt_where	at;
	struct fid_fabric	*fabric;
	struct fid_eq		*eq;
	struct fid_pep		*pep;
};

/**
 * struct kblkt_rx - a receive for a command
 * @cqe: completes it
 * @conn: whose
 * @node: of commands that wait for room
 * @page: memory of the message
 * @cmd: the command in it; its data follows, at a multiple of %KBLK_INLINE, as a bio
 *	wants it, and the message is one piece, as a device does
 */
struct kblkt_rx {
	struct kofi_cqe		cqe;
	struct kblkt_conn	*conn;
	struct list_head	node;
	struct page		*page;
	struct kblk_cmd		*cmd;
};

/**
 * struct kblkt_io - a command that is served
 * @conn: whose
 * @node: free, waiting for room to post, or of the volume's flushes
 * @moved: completes a read or write of the client's memory
 * @answered: completes the answer
 * @step: the post to be made next
 * @parts: of the answer that have not completed
 * @rx: its receive, whose page has the data; or NULL
 * @tag: of the client's
 * @gen: of the client's
 * @op: enum kblk_op
 * @flags: KBLK_CMD_FUA, ...
 * @status: enum kblk_status
 * @len: bytes
 * @sector: the first
 * @addr: the client's memory
 * @key: its key; it is the client's again with the answer
 * @pages: of the pool, in @bv; none for data that came with the command
 * @answer: a message
 * @bio: for the device
 * @work: for the file
 * @bv: data
 */
struct kblkt_io {
	struct kblkt_conn	*conn;
	struct list_head	node;
	struct kofi_cqe		moved;
	struct kofi_cqe		answered;
	int			(*step)(struct kblkt_io *io);
	atomic_t		parts;
	struct kblkt_rx		*rx;
	u16			tag;
	u8			gen;
	u8			op;
	u8			flags;
	u8			status;
	u32			len;
	u64			sector;
	u64			addr;
	u64			key;
	unsigned int		pages;
	struct kblk_answer	answer;
	union {
		struct bio		bio;
		struct work_struct	work;
	};
	struct bio_vec		bv[1 << (KBLK_BYTES - PAGE_SHIFT)];
};

enum kblkt_told {
	KBLKT_UNTOLD,
	KBLKT_TELLS,
	KBLKT_TOLD,
};

/**
 * struct kblkt_notes - notes to a client, unasked
 * @at: the client's memory; no bytes if it has none
 * @cqe: completes the write of @last
 * @last: the last note
 * @told: enum kblkt_told: state of @last; by kblkt_lock until it is written
 * @beat: notes so far
 * @tags: commands that were there at the last look
 * @turns: odd while the connection's work item waits in the block layer
 * @turn: @turns at the last look
 */
struct kblkt_notes {
	struct kblk_memory	at;
	struct kofi_cqe		cqe;
	struct kblk_notes	last;
	enum kblkt_told		told;
	u64			beat;
	u64			tags;
	unsigned int		turns;
	unsigned int		turn;
};

/**
 * struct kblkt_conn - a connection
 * @node: of all, by kblkt_lock
 * @port: it came through
 * @volume: it is for, from its login on; set once, by kblkt_lock
 * @phase: enum kblkt_phase
 * @login: messages of its login
 * @session: of the client; 0 until @volume is there
 * @host: name of the client's machine, as it says; may be empty
 * @features: KBLK_FEATURE_CQ_DATA, ...: features of this connection
 * @began: when it was accepted, in jiffies
 * @notes: notes to the client, unasked
 * @peer: the client's address, for the log
 * @dead: it ends; not 0 once its work has been queued
 * @end: the work that closes it
 * @domain: of its own: regions of a client are no other's affair
 * @cq: calls back in a work item, where bios are submitted
 * @ep: the connection
 * @incarnation: the volume's, as the client knows it
 * @sectors: the volume's size, as the client knows it
 * @counts: of commands
 * @no_inv: the client's end does not know remote invalidation
 * @lock: for the lists and @nr_free
 * @idle_ios: I/Os that are free
 * @waiting: I/Os whose post was refused
 * @pending: commands without an I/O or pages, in their order
 * @nr_free: of @pages
 * @pages: for data, those that are free first
 * @bios: bios under way, and 1 until the connection ends
 * @bios_gone: @bios is 0
 * @rx: @depth of them
 * @io: @depth of them
 * @depth: commands there may be under way
 * @tags: of commands without an answer
 */
struct kblkt_conn {
	struct list_head	node;
	struct kblkt_port	*port;
	struct kblkt_volume	*volume;
	enum kblkt_phase	phase;
	struct kblkt_login	*login;
	struct kblk_session	session;
	char			host[KBLK_HOST_LEN + 1];
	u32			features;
	unsigned long		began;
	struct kblkt_notes	notes;
	struct sockaddr_storage	peer;
	atomic_t		dead;
	struct work_struct	end;
	struct fid_domain	*domain;
	struct fid_cq		*cq;
	struct fid_ep		*ep;
	u64			incarnation;
	u64			sectors;
	struct kblkt_counts	counts;
	bool			no_inv;
	spinlock_t		lock;		/* for lists and nr_free */
	struct list_head	idle_ios;
	struct list_head	waiting;
	struct list_head	pending;
	unsigned int		nr_free;
	struct page		*pages[KBLKT_POOL];
	refcount_t		bios;
	struct completion	bios_gone;
	struct kblkt_rx		*rx;
	struct kblkt_io		*io;
	unsigned int		depth;
	DECLARE_BITMAP(tags, KBLK_DEPTH);
};

/* tconfig.c */
u64 kblkt_sectors(const struct kblkt_volume *v);
u64 kblkt_flushed(struct kblkt_volume *v, int err);
void kblkt_volume_flush(struct kblkt_volume *v);

/* tnotes.c */
void kblkt_note_progress(struct kblkt_conn *c);
void kblkt_note_stable(struct kblkt_volume *v, u64 incarnation);
unsigned int kblkt_stable_get(const uuid_t *uuid, __le64 *list);
void kblkt_stable_free(void);
void kblkt_stable_set(const uuid_t *uuid, const __le64 *list, unsigned int nr);
/* taccess.c */
ssize_t kblkt_allow_show(const struct kblkt_allow *a, char *page);
int kblkt_allow_parse(char *text, struct kblkt_allow *a);
bool kblkt_allowed(const struct kblkt_volume *v, const struct sockaddr *sa);
bool kblkt_same_addr(const struct sockaddr_storage *a,
		     const struct sockaddr_storage *b);
int kblkt_link_add(struct kblkt_port *p, struct kblkt_volume *v);
void kblkt_link_del(struct kblkt_port *p, struct kblkt_volume *v);
struct kblkt_volume *kblkt_find(const struct kblkt_port *p, const char *name,
				const struct sockaddr *sa, const char **why);

/* tio.c */
int kblkt_io_alloc(struct kblkt_conn *c);
void kblkt_io_free(struct kblkt_conn *c);
int kblkt_io_start(struct kblkt_conn *c);
void kblkt_io_done(struct kblkt_io *io, blk_status_t sts);
void kblkt_io_space(struct fid_ep *ep, void *context);
void kblkt_flush_work(struct work_struct *work);

/* tfile.c */
struct file *kblkt_file_open(const struct kblkt_volume *v);
bool kblkt_file_sparse(const struct file *file);
void kblkt_file_describe(const struct kblkt_volume *v, struct kblk_welcome *w);
void kblkt_file_work(struct work_struct *work);

/* tlogin.c */
int kblkt_login_start(struct kblkt_conn *c);
void kblkt_login_space(struct kblkt_conn *c);
void kblkt_login_free(struct kblkt_conn *c);
void kblkt_logout(struct kblkt_conn *c);
ssize_t kblkt_clients_show(const struct kblkt_volume *v, char *page);

/* tconn.c */
extern struct mutex kblkt_lock;
extern struct list_head kblkt_conns;
extern struct list_head kblkt_volumes;
extern struct workqueue_struct *kblkt_wq;
void kblkt_lost(struct kblkt_conn *c);
void kblkt_watch_stop(void);
int kblkt_listen(struct kblkt_port *p);
int kblkt_unlisten(struct kblkt_port *p);
int kblkt_end(const struct kblkt_volume *v, const struct kblkt_port *p,
	      bool (*only)(const struct kblkt_conn *c), bool wait);

#endif /* _KOFI_BLK_TARGET_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofi_blkt.ko, the target: block devices of this machine for clients.
 *
 * tconfig.c	volumes and ports in configfs
 * taccess.c	access lists of volumes, and the volumes of a port
 * tconn.c	accepting and closing of connections
 * tlogin.c	the login of a connection, which selects a volume
 * tauth.c	proofs of logins
 * tio.c	commands of a connection
 * tfile.c	volumes that are regular files
 * tnotes.c	unsolicited notes to clients
 *
 * A volume is a block device or a file with a name, a port is an address to listen
 * on. A port reaches the volumes that are linked into it.
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
#include <linux/ratelimit.h>
#include <linux/socket.h>
#include <linux/uuid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "net.h"

#define KBLKT_ALLOW	16	/* entries of an access list */
#define KBLKT_CONNS	256	/* default limit of connections of all clients */
#define KBLKT_CLIENT	128	/* default limit of connections of an address */
#define KBLKT_CONNS_MAX	65536
#define KBLKT_RX_ORDER	get_order(2 * KBLK_INLINE)	/* pages of a command's receive */
#define KBLKT_POOL	(4 << (20 - PAGE_SHIFT))	/* pages for data, each */
#define KBLKT_TELL	(5 * HZ)	/* time for notes that all data is stable */
#define KBLKT_WATCH	(HZ / 2)	/* between two checks of connections */
#define KBLKT_LOG_BURST	20	/* log lines about logins in five seconds */
#define KBLKT_LONG	24	/* log2 of bytes: larger commands would be answered too late */

struct kblk_script;
struct kblkt_conn;
struct kblkt_login;

/*
 * Only the login changes the phase, in the work item of the connection's queue.
 *
 * KBLKT_LOGS_IN: the client may have been admitted to a volume, but no command is served.
 * KBLKT_SERVES: all proofs are made, receives for commands are posted, and the welcome is
 * sent next.
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
 * struct kblkt_identity - a client that authenticates
 * @name: name that the client proves
 * @key: description of its key
 */
struct kblkt_identity {
	char			name[KBLK_IDENTITY_LEN + 1];
	char			key[KBLK_TEXT];
};

/**
 * struct kblkt_allow - an access list, of addresses or of identities
 * @all: admit every address
 * @nr: entries of @nets
 * @nets: addresses to admit
 * @nr_ids: entries of @ids; if not 0, @nr is 0, and all clients must authenticate
 * @ids: identities to admit
 */
struct kblkt_allow {
	bool			all;
	unsigned int		nr;
	struct kblkt_net	nets[KBLKT_ALLOW];
	unsigned int		nr_ids;
	struct kblkt_identity	ids[KBLKT_ALLOW];
};

/* Counters of answered and of failed commands */
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
 * @item: directory of the volume
 * @config: protects the attributes
 * @name: copy of the name of @item, which frees its own before it is released
 * @path: path of the device or file
 * @read_only: refuse writes
 * @direct: file: bypass the page cache if possible
 * @uncached: the page cache is bypassed, as always with a device; written under @config,
 *	read without it for statistics, since @config is held while the device is opened
 * @uuid: UUID of the volume
 * @discard: as configured
 * @exclusive: one host at a time; changes only while the volume is disabled
 * @max_conns: limit of @conns; one word, written and read without a lock. A change concerns
 *	later logins
 * @thin: discards free blocks, and so may zeroes
 * @allow: access list of clients, under kblkt_lock
 * @file: the device or file, while the volume is enabled; written under @config, read
 *	without it to show whether the volume is enabled
 * @bdev: the device, or NULL
 * @wq: work queue of flushes; of a file: of all commands
 * @ends: work queue for closing connections, which waits for the device
 * @node: entry in kblkt_volumes, under kblkt_lock; empty while no client finds the volume
 * @conns: number of connections of the volume, under kblkt_lock
 * @served: commands in the device or file; dead while the volume is disabled
 * @quiet: @served has become 0
 * @told: a client has received its last note
 * @lock: guards @flushes, @since and @incarnation
 * @flushes: waiting flushes
 * @since: file: position in the file's write-back errors that has been reported
 * @incarnation: random number, replaced each time the volume is enabled,
 *	and after a failed flush
 * @flush: work item that executes all of @flushes at once
 * @welcome: attributes for clients
 * @counts: counters of commands, since the directory was created
 * @digest_errors: number of commands and of data with a wrong digest, since the directory
 *	was created
 * @log: limit of log lines about logins to the volume, KBLKT_LOG_BURST in five seconds
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
	atomic64_t		digest_errors;
	struct ratelimit_state	log;
};

/* A numeric address, a port, and the provider of the endpoints */
struct kblkt_where {
	char			addr[KBLK_TEXT];
	char			port[KBLK_TEXT];
	char			provider[KBLK_TEXT];
};

/**
 * struct kblkt_link - a volume that a port reaches
 * @node: entry in the port's list, under kblkt_lock
 * @volume: the volume, which the link pins by its directory
 */
struct kblkt_link {
	struct list_head	node;
	struct kblkt_volume	*volume;
};

/**
 * struct kblkt_port - an address to listen on
 * @group: directory of the port
 * @volumes: directory of the links
 * @links: volumes that the port reaches, under kblkt_lock
 * @config: protects the attributes
 * @at: the address
 * @digest: enum kblk_digest; written and read without a lock, a change concerns later
 *	connections
 * @fabric: open while the port is enabled; written under @config, read without it to show
 *	whether the port is enabled
 * @eq: event queue of the port and its connections
 * @pep: passive endpoint; NULL while the port is disabled, or being disabled; changed
 *	under kblkt_lock
 * @lost: the provider has reported that @pep does not listen; under kblkt_lock
 * @client: notifications of devices and addresses, registered while the port is enabled;
 *	holds a reference to the namespace of @at
 * @again: work item that listens again after @lost, repeated after an error
 */
struct kblkt_port {
	struct config_group	group;
	struct config_group	volumes;
	struct list_head	links;
	struct mutex		config;		/* for the attributes */
	struct kblkt_where	at;
	enum kblk_digest	digest;
	struct fid_fabric	*fabric;
	struct fid_eq		*eq;
	struct fid_pep		*pep;
	bool			lost;
	struct kofi_client	client;
	struct delayed_work	again;
};

/**
 * struct kblkt_rx - a receive for a command
 * @cqe: completion of the receive
 * @conn: connection of the receive
 * @node: entry in the list of commands that wait for memory
 * @page: memory of the message
 * @cmd: the command in @page; its digests and data follow, the data at a multiple of
 *	%KBLK_INLINE for the bio, in one contiguous message for the device
 */
struct kblkt_rx {
	struct kofi_cqe		cqe;
	struct kblkt_conn	*conn;
	struct list_head	node;
	struct page		*page;
	struct kblk_cmd		*cmd;
};

/**
 * struct kblkt_io - a command that is being served
 * @conn: connection of the command
 * @node: entry in the list of free I/Os, of refused posts, or of the volume's flushes
 * @moved: completion of a read or write of the client's memory
 * @answered: completion of the answer
 * @step: the next post
 * @parts: parts of the answer that have not completed
 * @rx: receive, with a page that contains the data; or NULL
 * @tag: tag of the client
 * @gen: generation of the client
 * @op: enum kblk_op
 * @flags: KBLK_CMD_FUA, ...
 * @status: enum kblk_status
 * @len: length in bytes
 * @sector: first sector
 * @addr: remote address of the client's memory
 * @key: key of the client's memory, valid until the answer
 * @digests: digests of the command and its data; 0 without KBLK_FEATURE_DIGEST
 * @pages: number of pages of the pool, in @bv; 0 for data that came with the command
 * @answer: message of the answer
 * @bio: bio for the device
 * @work: work item for the file, or for the digest of a read
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
	struct kblk_digests	digests;
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
 * struct kblkt_notes - unsolicited notes to a client
 * @at: the client's memory for notes; length 0 if it has none
 * @cqe: completion of the write of @last
 * @last: the last note
 * @told: enum kblkt_told: state of @last; under kblkt_lock
 * @beat: number of notes so far
 * @tags: commands at the last check
 * @turns: odd while the connection's work item waits in the block layer; written by that
 *	work item for each bio, read without a lock by the check
 * @turn: @turns at the last check
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
 * @node: entry in the list of all connections, under kblkt_lock
 * @port: port that accepted the connection
 * @volume: volume since the login; set once, under kblkt_lock
 * @phase: enum kblkt_phase; written by callbacks of @cq under kblkt_lock, which readers in
 *	other contexts hold
 * @login: messages of its login
 * @session: session of the client; 0 until @volume is set
 * @host: name that the client gave for its machine; may be empty
 * @identity: name that the client has proven; empty without authentication; set together
 *	with @volume
 * @key: description of the key that has proven @identity; empty without authentication; set
 *	together with @volume
 * @hello: private data of the connection request
 * @accept: private data of the acceptance
 * @features: KBLK_FEATURE_CQ_DATA, ...: features of this connection
 * @cmd_len: bytes of a command with its digests
 * @began: time when it was accepted, in jiffies
 * @notes: unsolicited notes to the client
 * @peer: address of the client, for the log
 * @dead: the connection is being closed; not 0 once its work item has been queued
 * @end: work item that closes the connection
 * @domain: domain of this connection only, so that other clients cannot use its regions
 * @cq: completion queue with callbacks in a work item, which submits bios
 * @ep: the connection
 * @incarnation: incarnation of the volume that the client knows
 * @sectors: size of the volume that the client knows
 * @counts: counters of commands
 * @no_inv: the client does not support remote invalidation
 * @lock: guards the lists and @nr_free
 * @idle_ios: free I/Os
 * @waiting: I/Os with a refused post
 * @pending: commands without an I/O or pages, in their order
 * @nr_free: number of free @pages
 * @pages: pages for data, free ones first
 * @bios: number of outstanding bios, plus 1 until the connection is closed
 * @bios_gone: @bios has become 0
 * @rx: @depth receives
 * @io: @depth I/Os
 * @depth: most outstanding commands
 * @tags: tags of commands without an answer
 */
struct kblkt_conn {
	struct list_head	node;
	struct kblkt_port	*port;
	struct kblkt_volume	*volume;
	enum kblkt_phase	phase;
	struct kblkt_login	*login;
	struct kblk_session	session;
	char			host[KBLK_HOST_LEN + 1];
	char			identity[KBLK_IDENTITY_LEN + 1];
	char			key[KBLK_TEXT];
	struct kblk_hello	hello;
	struct kblk_accept	accept;
	u32			features;
	size_t			cmd_len;
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
bool kblkt_allowed(const struct kblkt_volume *v, const struct sockaddr *sa,
		   const char *identity, const char *key);
const char *kblkt_allowed_key(const struct kblkt_volume *v, const char *identity);
bool kblkt_same_addr(const struct sockaddr_storage *a,
		     const struct sockaddr_storage *b);
int kblkt_link_add(struct kblkt_port *p, struct kblkt_volume *v);
void kblkt_link_del(struct kblkt_port *p, struct kblkt_volume *v);
struct kblkt_volume *kblkt_find(const struct kblkt_port *p, const char *name,
				const struct sockaddr *sa, const char *identity,
				const char **why);

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

/* tauth.c */
int kblkt_auth_init(void);
int kblkt_auth_use(void);
void kblkt_auth_exit(void);
int kblkt_auth_prove(const char *key, struct kblk_script *s, unsigned int role,
		     u8 *mac);

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
void kblkt_again(struct work_struct *work);
int kblkt_end(const struct kblkt_volume *v, const struct kblkt_port *p,
	      bool (*only)(const struct kblkt_conn *c), bool wait);

#endif /* _KOFI_BLK_TARGET_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared by the files of kofi blk */
#ifndef KOFI_TOOL_BLK_H
#define KOFI_TOOL_BLK_H

#include <assert.h>
#include <limits.h>

#include "kofi.h"
#include "../../clients/blk/proto.h"

#define CONFIGFS "/sys/kernel/config/"
#define CLIENT	CONFIGFS "kofi_blk"
#define TARGET	CONFIGFS "kofi_blkt"
#define VOLUMES	TARGET "/volumes"
#define PORTS	TARGET "/ports"
#define LINKS	"volumes"	/* of a port, to the volumes that it reaches */
#define LOCK	"/run/kofi-blk.lock"

#define TEXT_MAX 4097	/* an attribute has a page at most */

/* Limits of the modules */
#define WORD_LEN	63	/* of an attribute that is a word */
#define PATH_LEN	255	/* of a volume's device or file */
#define ALLOW_NETS	16	/* of a volume */
#define BLK_ID		"id:"	/* of a client that authenticates */

/*
 * Directories and attributes. Results are 0 or a negative errno, unless said
 * otherwise; blk_text() explains it.
 */
bool blk_module(const char *dir, const char *module);
const char *blk_text(int err);
int blk_set(const char *dir, const char *name, const char *attr, const char *value);
int blk_read(char *text, const char *dir, const char *name, const char *attr);
char *blk_get(char *text, const char *dir, const char *name, const char *attr);
int blk_mkdir(const char *dir, const char *name);
int blk_rmdir(const char *dir, const char *name);
int blk_links(char *dir, const char *port);
int blk_link(const char *port, const char *volume);
bool blk_linked(char *volume, const char *port, const char *link);
bool blk_unlink(const char *port, const void *volume);
bool blk_each(const char *dir, bool (*fn)(const char *name, const void *arg),
	      const void *arg);
bool blk_lock(void);

/* Test whether the modules accept a word, or NULL. */
bool blk_number(const char *text, uint64_t min, uint64_t max, uint64_t *value);
bool blk_word(const char *text, size_t max);
bool blk_name(const char *text, size_t max);
bool blk_address(const char *text);
bool blk_nets(const char *text);
bool blk_identity(const char *text);
bool blk_digest(const char *text);
bool blk_uuid(const char *text);

/* 32 hexadecimal digits that name this machine to targets, or NULL */
#define BLK_HOST_ID	33
const char *blk_host_id(char text[BLK_HOST_ID]);

/* Files that outlive the target: its configuration, and proofs that nothing is lost */
#define BLK_SAVED	"/etc/kofi/blkt.conf"

int blk_save(const char *file);		/* these are exit codes */
int blk_restore(const char *file, const char *state, bool clear);
int blk_clear(const char *state);
int blk_save_state(const char *file, char **volumes, size_t n);
int blk_take_state(const char *file, char **text);
int blk_use_state(const char *text, const char *volume, const char *uuid);

#endif /* KOFI_TOOL_BLK_H */

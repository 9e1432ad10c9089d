/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Declarations that the files of the kofi tool share. */
#ifndef KOFI_TOOL_KOFI_H
#define KOFI_TOOL_KOFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../kofi/names.h"

/* Exit codes. A failure has been explained on stderr. */
enum {
	EXIT_OK		= 0,
	EXIT_FAILED	= 1,	/* or: nothing was found */
	EXIT_USAGE	= 2,
};

/*
 * Commands. argv[0] is the command's name; the result is the exit code. Each
 * prints its own usage to stdout for --help.
 */
int cmd_info(int argc, char **argv);	/* also "list" */
int cmd_stat(int argc, char **argv);
int cmd_monitor(int argc, char **argv);
int cmd_pingpong(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_perf(int argc, char **argv);	/* bw and lat */
int cmd_blk(int argc, char **argv);

/* "kofi: ", the text and a newline, on stderr */
void error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * The same, with a pointer to "kofi @cmd --help" behind it; EXIT_USAGE, so
 * that "return usage_error(…)" does.
 */
int usage_error(const char *cmd, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * A whole decimal or 0x number that is at most @max.
 * False, without a word, for anything else.
 */
bool parse_number(const char *text, uint64_t max, uint64_t *value);

/* Test whether @text is a name, with or without @prefix, in any case. */
bool name_find(const struct kofi_name *names, const char *prefix,
	       const char *text, uint64_t *value);

/* "rx_ctx" for FI_CLASS_RX_CTX, with the prefix "FI_CLASS_"; or the number */
void short_name(char *buf, size_t size, const struct kofi_name *names,
		const char *prefix, uint64_t value);

/* Text for an error code of the system or of libfabric, of either sign */
const char *errno_text(int err);

/* 1536: "1.5k"; one digit behind the point below ten, unless it is 0 */
const char *size_text(char *buf, size_t len, uint64_t size);

/* 2000: "2k" */
const char *count_text(char *buf, size_t len, uint64_t count);

/* "10.0.0.1:47592" or "[fd00::1]:47592"; "?" where it is no IP address */
const char *addr_text(char *buf, size_t size, const void *addr, size_t len);
#define ADDR_TEXT_MAX	80

/* Monotonic time, nanoseconds */
#define NSEC_PER_SEC	1000000000ULL
uint64_t now_ns(void);

/* Try to load a module; the caller looks for the result. */
void load_module(const char *module);

/* The last sentence of error(), without "kofi: " */
const char *last_error(void);

/*
 * With --json, standard output has complete JSON documents and nothing else. A
 * command calls json_start() when it sees the option, and json_end() after each
 * document; a key of NULL is a member of an array. If the command fails and the
 * document is not complete, main() prints one that has the failure instead.
 */
void json_start(void);
void json_lines(void);				/* a document is a line */
void json_open(const char *key, char bracket);	/* '{' or '[' */
void json_close(char bracket);			/* '}' or ']' */
void json_string(const char *key, const char *value);	/* NULL: null */
void json_number(const char *key, uint64_t value);	/* a string above 2^53-1 */
void json_real(const char *key, double value);
void json_hex(const char *key, uint64_t value);	/* as a string, "0x…" */
void json_failure(void);		/* members: the last error, the exit code */
void json_end(void);			/* print the document */
void json_finish(int ret);		/* @ret: the exit code */

#endif /* KOFI_TOOL_KOFI_H */

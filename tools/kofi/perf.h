/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared by bw, lat and check: sessions of kofi_perf.ko, and the connection between tools. */
#ifndef KOFI_TOOL_PERF_H
#define KOFI_TOOL_PERF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "../../include/uapi/linux/kofi_perf.h"

#define PERF_EPS_MAX	64
#define PERF_SLICE	100	/* milliseconds of a wait, between checks of everything else */

/* ------------------------------------------------- sessions (perf_session.c) */

/*
 * An endpoint in the kernel. The functions return 0 or a negative error code;
 * session_error() has a sentence about the last one that failed.
 */
struct session {
	int			fd;	/* -1: none */
	struct kofi_perf_open	open;
	struct kofi_perf_join	join;
	struct kofi_perf_wait	wait;
	char			why[256];
};

extern const char *const perf_type_names[];	/* by enum kofi_perf_type */
extern const char *const perf_op_names[];	/* by enum kofi_perf_op */

void session_init(struct session *s);
int session_open(struct session *s);	/* with s->open filled in */
int session_join(struct session *s);	/* -ETIMEDOUT: call it again */
int session_start(struct session *s, const struct kofi_perf_start *peer);
int session_wait(struct session *s, unsigned int timeout, bool stop);
int session_hist(struct session *s, struct kofi_perf_hist *hist);
void session_close(struct session *s);

/* ------------------------------------------------ the connection (perf_ctl.c) */

/*
 * Lines of text between two tools. A line of the peer is at most CTL_LINE bytes of
 * printable characters; anything else is an error of the connection.
 */
#define CTL_LINE	1024
#define CTL_PORT	47593

struct ctl {
	int	fd;
	size_t	used;
	char	why[256];	/* about the last error */
	char	buf[CTL_LINE];
};

/* Set by SIGINT, SIGTERM and SIGHUP, after which every wait returns. */
extern atomic_bool perf_interrupted;
void perf_catch_signals(void);

int ctl_listen(struct ctl *ctl, const char *source, uint16_t port, bool ipv6);
int ctl_connect(struct ctl *ctl, const char *node, const char *source,
		uint16_t port, unsigned int timeout);
void ctl_name(const struct ctl *ctl, bool peer, struct sockaddr_storage *addr);
int ctl_send(struct ctl *ctl, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* 1: a line is in @line; 0: none in @timeout milliseconds; negative: an error */
int ctl_line(struct ctl *ctl, char line[CTL_LINE], int timeout);
/* The same, and it must begin with @verb; *@rest is the text behind it. */
int ctl_expect(struct ctl *ctl, const char *verb, char line[CTL_LINE],
	       char **rest, unsigned int timeout);
/* Is the peer still there, and has it no error to say? 0 or negative */
int ctl_alive(struct ctl *ctl);
void ctl_close(struct ctl *ctl);

/* ---------------------------------------------------- options (perf_opts.c) */

struct perf_options {
	const char	*cmd;
	const char	*node;	/* NULL: server */
	const char	*source;
	const char	*prov;
	const char	*domain;
	uint32_t	type;
	uint32_t	op;
	uint32_t	poll;
	uint64_t	port;		/* of the server */
	uint64_t	size;		/* 0: a list */
	uint64_t	iterations;	/* 0: as many as fabtests */
	uint64_t	warmup;
	uint64_t	window;
	uint64_t	endpoints;
	uint64_t	duration;	/* seconds per size; 0: by iterations */
	uint64_t	timeout;	/* seconds */
	uint64_t	memory;		/* bytes per endpoint */
	uint64_t	corrupt;
	int		cpus[PERF_EPS_MAX];
	unsigned int	n_cpus;
	bool		latency;
	bool		all_sizes;
	bool		verify;
	bool		ipv6;
	bool		progress;
	bool		json;
};

/* 0 with @opts complete, -1 after --help, or an exit code after a sentence */
int perf_parse(int argc, char **argv, struct perf_options *opts);

#endif /* KOFI_TOOL_PERF_H */

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Sessions of kofi_perf.ko (perf.h): the calls of /dev/kofi_perf and their errors. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kofi.h"
#include "perf.h"

#define DEVICE	"/dev/" KOFI_PERF_DEVICE

const char *const perf_type_names[] = {
	[KOFI_PERF_MSG] = "msg",
	[KOFI_PERF_RDM] = "rdm",
	[KOFI_PERF_DGRAM] = "dgram",
	NULL
};

const char *const perf_op_names[] = {
	[KOFI_PERF_OP_MSG] = "msg",
	[KOFI_PERF_OP_TAGGED] = "tagged",
	[KOFI_PERF_OP_READ] = "read",
	[KOFI_PERF_OP_WRITE] = "write",
	[KOFI_PERF_OP_WRITEDATA] = "writedata",
	NULL
};

void session_init(struct session *s)
{
	memset(s, 0, sizeof(*s));
	s->fd = -1;
	s->open.version = KOFI_PERF_VERSION;
	s->open.cpu = -1;
}

/* EMSGSIZE of a message: its memory has too many pieces. */
static bool session_is_message(const struct session *s)
{
	return s->open.op == KOFI_PERF_OP_MSG || s->open.op == KOFI_PERF_OP_TAGGED;
}

static void session_segments(struct session *s)
{
	snprintf(s->why, sizeof(s->why),
		 "%" PRIu64 " bytes are more segments than one message takes",
		 (uint64_t)s->open.size);
}

static int session_fail(struct session *s, const char *stage, int err)
{
	snprintf(s->why, sizeof(s->why), "%s: %s", stage, errno_text(err));
	return -err;
}

/* Open the device, with the module loaded if it can be */
static int session_device(struct session *s)
{
	int err;

	s->fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (s->fd < 0 && errno == ENOENT) {
		load_module(KOFI_PERF_DEVICE);
		s->fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	}
	if (s->fd >= 0)
		return 0;
	err = errno;
	if (err == ENOENT)
		snprintf(s->why, sizeof(s->why),
			 "the module %s is not loaded; modprobe %s does it, or says why not",
			 KOFI_PERF_DEVICE, KOFI_PERF_DEVICE);
	else if (err == EPERM || err == EACCES)
		snprintf(s->why, sizeof(s->why),
			 "%s: not permitted; it takes root, with CAP_NET_ADMIN",
			 DEVICE);
	else
		session_fail(s, DEVICE, err);
	return -err;
}

int session_open(struct session *s)
{
	struct kofi_perf_open *o = &s->open;
	int ret, err;

	ret = session_device(s);
	if (ret)
		return ret;
	if (!ioctl(s->fd, KOFI_PERF_OPEN, o))
		return 0;
	err = errno;
	o->stage[sizeof(o->stage) - 1] = 0;
	if (err == EPROTONOSUPPORT)
		snprintf(s->why, sizeof(s->why),
			 "the module %s is of another version than this tool",
			 KOFI_PERF_DEVICE);
	else if (err == ENODATA)
		snprintf(s->why, sizeof(s->why),
			 "no provider%s%s offers %s over %s endpoints there%s; see: kofi info",
			 o->prov[0] ? " " : "", o->prov,
			 perf_op_names[o->op], perf_type_names[o->type],
			 o->flags & KOFI_PERF_LATENCY &&
			 o->op == KOFI_PERF_OP_WRITE ?
			 " with FI_DELIVERY_COMPLETE" : "");
	else if (err == ENODEV && !o->stage[0])
		snprintf(s->why, sizeof(s->why), "CPU %d is not online",
			 o->cpu);
	else if (err == EMSGSIZE)
		snprintf(s->why, sizeof(s->why),
			 "%" PRIu64 " bytes are more than the endpoint takes",
			 (uint64_t)o->size);
	else
		session_fail(s, o->stage[0] ? o->stage : "options", err);
	return -err;
}

int session_join(struct session *s)
{
	int err;

	s->join.timeout = PERF_SLICE;
	if (!ioctl(s->fd, KOFI_PERF_JOIN, &s->join))
		return 0;
	err = errno;
	if (err == EMSGSIZE && session_is_message(s))
		session_segments(s);
	else if (err == EMSGSIZE)
		snprintf(s->why, sizeof(s->why),
			 "%" PRIu64 " bytes take more than %d regions",
			 (uint64_t)s->open.size, KOFI_PERF_REGIONS);
	else
		session_fail(s, "connection", err);
	return -err;
}

int session_start(struct session *s, const struct kofi_perf_start *peer)
{
	int err;

	if (!ioctl(s->fd, KOFI_PERF_START, peer))
		return 0;
	err = errno;
	if (err == EMSGSIZE)
		snprintf(s->why, sizeof(s->why),
			 "%" PRIu64 " bytes are %u regions, more than one operation takes",
			 (uint64_t)s->open.size, peer->count);
	else
		session_fail(s, "start", err);
	return -err;
}

/* The kernel's error of a run, with the transfer that was wrong */
static void session_explain(struct session *s)
{
	const struct kofi_perf_wait *w = &s->wait;

	switch (-w->error) {
	case EBADMSG:
		snprintf(s->why, sizeof(s->why),
			 "transfer %" PRIu64 " of %" PRIu64 " bytes is wrong from byte %" PRIu64,
			 (uint64_t)w->bad_seq, (uint64_t)w->bad_len,
			 (uint64_t)w->bad_off);
		break;
	case EMSGSIZE:
	case EPROTO:
		snprintf(s->why, sizeof(s->why),
			 "transfer %" PRIu64 " has %" PRIu64 " bytes, which is wrong",
			 (uint64_t)w->bad_seq, (uint64_t)w->bad_len);
		break;
	case E2BIG:
		session_segments(s);
		break;
	default:
		session_fail(s, "transfer", -w->error);
		break;
	}
}

int session_wait(struct session *s, unsigned int timeout, bool stop)
{
	s->wait.timeout = timeout;
	s->wait.stop = stop;
	if (ioctl(s->fd, KOFI_PERF_WAIT, &s->wait))
		return session_fail(s, "transfer", errno);
	if (s->wait.error)
		session_explain(s);
	switch (s->wait.error) {
	case -E2BIG:		/* the endpoint does not take this size */
		return -EMSGSIZE;
	case -EMSGSIZE:		/* the peer's transfer was wrong */
		return -EPROTO;
	default:
		return s->wait.error;
	}
}

int session_hist(struct session *s, struct kofi_perf_hist *hist)
{
	if (ioctl(s->fd, KOFI_PERF_HIST, hist))
		return session_fail(s, "latencies", errno);
	return 0;
}

void session_close(struct session *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

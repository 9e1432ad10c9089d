// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Does a run keep moving, and what has TCP counted meanwhile?
 *
 * A stream can stand still for many milliseconds although no packet is lost: a
 * window that is not opened again waits for the sender's probe timer, a corked
 * segment does, too, an acknowledgment waits for its own. Sums and medians hide
 * that, and TCP has no counter for all of it: a probe timer that finds room for
 * data sends data, and counts nothing.
 *
 * Ticks
 *
 * A timer expires every millisecond, in hardirq context, and looks how far the
 * bytes have come in each direction, and how many operations have ended. The gap
 * is the largest number of ticks in which bytes that TCP has been given were not
 * read at the other end, or in which nothing moved at all. Time that this
 * machine was not given by its host makes one tick, however long it was, so a
 * gap says what the run waited for, not how busy the host is. TCP's timers take
 * 40 ms at least.
 *
 * Sockets
 *
 * The two ends of a direction are read without their locks; each number is
 * written by one CPU at a time, and one that is out of date is right at the next
 * tick. With one end in another kernel, what can be seen is bytes that have been
 * received and not read, or that have not been sent.
 */
#include <net/net_namespace.h>
#include <net/tcp.h>
#include <linux/kofi/backport.h>

#include "bench.h"

#define BENCH_TICK	NSEC_PER_MSEC

/* Names as in /proc/net/netstat and /proc/net/snmp */
#define BENCH_LINUX(name, id)	{ name, LINUX_MIB_ ## id, false }
#define BENCH_TCP(name, id)	{ name, TCP_MIB_ ## id, true }
static const struct {
	const char	*name;
	int		id;
	bool		snmp;
} bench_counters[] = {
	BENCH_TCP("RetransSegs", RETRANSSEGS),
	BENCH_TCP("OutRsts", OUTRSTS),
	BENCH_LINUX("TCPTimeouts", TCPTIMEOUTS),
	BENCH_LINUX("TCPLossProbes", TCPLOSSPROBES),
	BENCH_LINUX("TCPFastRetrans", TCPFASTRETRANS),
	BENCH_LINUX("TCPWinProbe", TCPWINPROBE),
	BENCH_LINUX("TCPKeepAlive", TCPKEEPALIVE),
	BENCH_LINUX("DelayedACKs", DELAYEDACKS),
	BENCH_LINUX("DelayedACKLocked", DELAYEDACKLOCKED),
	BENCH_LINUX("TCPAckCompressed", TCPACKCOMPRESSED),
	BENCH_LINUX("TCPAutoCorking", TCPAUTOCORKING),
	BENCH_LINUX("TCPWantZeroWindowAdv", TCPWANTZEROWINDOWADV),
	BENCH_LINUX("TCPToZeroWindowAdv", TCPTOZEROWINDOWADV),
	BENCH_LINUX("TCPFromZeroWindowAdv", TCPFROMZEROWINDOWADV),
	BENCH_LINUX("TCPZeroWindowDrop", TCPZEROWINDOWDROP),
	BENCH_LINUX("TCPRcvQDrop", TCPRCVQDROP),
	BENCH_LINUX("TCPBacklogDrop", TCPBACKLOGDROP),
	BENCH_LINUX("PruneCalled", PRUNECALLED),
	BENCH_LINUX("RcvPruned", RCVPRUNED),
	BENCH_LINUX("TCPRcvCollapsed", TCPRCVCOLLAPSED),
	BENCH_LINUX("TCPWqueueTooBig", TCPWQUEUETOOBIG),
	BENCH_LINUX("TCPOFOQueue", TCPOFOQUEUE),
	BENCH_LINUX("TCPMemoryPressures", TCPMEMORYPRESSURES),
};

static_assert(ARRAY_SIZE(bench_counters) == BENCH_COUNTERS);

/* ---------------------------------------------------------------- counters */

static u64 bench_counter(const struct net *net, int i)
{
	void __percpu *mib = bench_counters[i].snmp ?
			     (void __percpu *)net->mib.tcp_statistics :
			     (void __percpu *)net->mib.net_statistics;
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += snmp_get_cpu_field(mib, cpu, bench_counters[i].id);
	return sum;
}

static void bench_count_tcp(const struct bench_run *run, u64 *count)
{
	const struct bench_side *side = run->side;
	int i;

	for (i = 0; i < BENCH_COUNTERS; i++) {
		count[i] = bench_counter(side[0].net, i);
		if (side[1].net != side[0].net)
			count[i] += bench_counter(side[1].net, i);
	}
}

/* ------------------------------------------------------------------- ticks */

/* How far the bytes have come. Returns whether there are more behind them. */
static bool bench_stream_at(const struct bench_stream *s, u64 *at)
{
	u32 read, end;

	if (s->from && s->to) {
		read = READ_ONCE(s->to->copied_seq);
		end = READ_ONCE(s->from->write_seq);
	} else if (s->to) {
		read = READ_ONCE(s->to->copied_seq);
		end = READ_ONCE(s->to->rcv_nxt);
	} else if (s->from) {
		read = READ_ONCE(s->from->snd_nxt);
		end = READ_ONCE(s->from->write_seq);
		*at = (u64)READ_ONCE(s->from->snd_una) << 32 | read;
		return read != end;
	} else {
		return false;
	}
	*at = read;
	return read != end;
}

/* Returns whether something has moved. */
static bool bench_stream_tick(struct bench_watch *w, struct bench_stream *s)
{
	u64 at = s->at;
	bool more = bench_stream_at(s, &at);
	bool moved = at != s->at;

	s->at = at;
	s->still = more && !moved ? s->still + 1 : 0;
	if (w->started)
		w->gap = max(w->gap, s->still);
	return moved;
}

static enum hrtimer_restart bench_tick(struct hrtimer *timer)
{
	struct bench_watch *w = container_of(timer, struct bench_watch, timer);
	const struct bench_run *run = container_of(w, struct bench_run, watch);
	u32 ended = READ_ONCE(run->side[0].ended) +
		    READ_ONCE(run->side[1].ended);
	bool moved = ended != w->ended;

	w->ended = ended;
	moved |= bench_stream_tick(w, &w->stream[0]);
	moved |= bench_stream_tick(w, &w->stream[1]);
	w->still = moved ? 0 : w->still + 1;
	w->started |= moved;
	if (w->started)
		w->gap = max(w->gap, w->still);
	hrtimer_forward_now(timer, ns_to_ktime(BENCH_TICK));
	return HRTIMER_RESTART;
}

static const struct tcp_sock *bench_tcp(const struct bench_side *side)
{
	return side->sk ? tcp_sk(side->sk) : NULL;
}

/**
 * bench_watch_start - the part begins that is measured
 * @run: the run, connected
 *
 * If one side is in another kernel, that may begin later.
 *
 * Context: process.
 */
void bench_watch_start(struct bench_run *run)
{
	struct bench_watch *w = &run->watch;
	int i;

	for (i = 0; i < 2; i++) {
		w->stream[i].from = bench_tcp(&run->side[i]);
		w->stream[i].to = bench_tcp(&run->side[!i]);
		bench_stream_at(&w->stream[i], &w->stream[i].at);
	}
	w->ended = run->side[0].ended + run->side[1].ended;
	w->started = run->role == BENCH_BOTH;
	bench_count_tcp(run, w->before);
	hrtimer_setup(&w->timer, bench_tick, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_HARD);
	hrtimer_start(&w->timer, ns_to_ktime(BENCH_TICK),
		      HRTIMER_MODE_REL_HARD);
}

/**
 * bench_watch_stop - it is over, or has failed
 * @run: the run, still connected
 *
 * Context: process.
 */
void bench_watch_stop(struct bench_run *run)
{
	struct bench_watch *w = &run->watch;
	int i;

	hrtimer_cancel(&w->timer);
	bench_count_tcp(run, w->moved);
	for (i = 0; i < BENCH_COUNTERS; i++)
		w->moved[i] -= w->before[i];
}

/**
 * bench_watch_show - in words
 * @watch: a run's
 * @buf: where to
 * @size: bytes there
 *
 * The gap in ticks, then each counter that has moved.
 *
 * Return: how many bytes they are.
 */
int bench_watch_show(const struct bench_watch *watch, char *buf, size_t size)
{
	int i, n;

	n = scnprintf(buf, size, "%u", watch->gap);
	for (i = 0; i < BENCH_COUNTERS; i++)
		if (watch->moved[i])
			n += scnprintf(buf + n, size - n, " %s=%llu",
				       bench_counters[i].name,
				       watch->moved[i]);
	return n;
}

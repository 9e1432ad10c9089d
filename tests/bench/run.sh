# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Runs what the file "plan" says, a line each, and answers each with a line on
# the console that begins with "bench: ". tools/vm/bench.py writes the one and
# reads the other.
#
#   run WORDS	nanoseconds of the measured ones, the longest time without
#		progress in ticks, and as NAME=NUMBER the TCP counters that have
#		moved and how long it took to start; WORDS are those of kofi_bench.ko:
#		CLIENT KIND WINDOW SIZE WARMUP COUNT [ADDRESS] [OPTION=VALUE...]
#   user WORDS	the same in user space, without CLIENT and behind it the
#		provider of reliable datagrams
#   count WORDS	allocations, those of ours, and context switches in them
#   9p WHERE WORDS
#		nanoseconds of the measured ones at one of the mounts of mounts.sh;
#		WORDS are those of kofi-bench-9p: KIND WINDOW SIZE WARMUP COUNT
#   disk WHERE KIND WINDOW SIZE COUNT
#		nanoseconds of COUNT requests of fio's kind KIND to one of the disks of
#		disks.sh
#   without WORDS, latency WORDS
#		as run, with the core that has no branch for the histogram of latency,
#		kofi.ko beside the plan; and with histograms of all endpoints
#   settle WORDS
#		as run, until ten in a row have taken the same time: a machine
#		that has just come up is busy with other things

t=/sys/kernel/tracing
run=/sys/kernel/debug/kofi_bench/run
events="kmem/kmalloc kmem/kmem_cache_alloc kmem/mm_page_alloc percpu/percpu_alloc_percpu sched/sched_switch"

events() {	# 1 or 0
	for e in $events; do
		echo "$1" >$t/events/$e/enable || return
	done
}

# The module switches the trace on and off, around what is measured.
trace_setup() {
	echo 0 >$t/tracing_on
	echo 32768 >$t/buffer_size_kb
	echo 1 >$t/options/stacktrace
	echo 1 >$t/options/sym-offset	# with the module's name
}

# More receives than that are no one's who does not ask for them.
sizes=/sys/module/kofi_sock/parameters/rx_size
bench_run() {
	case $* in
	*posted=*) echo 8192 >$sizes ;;
	esac
	echo "$*" >$run && cat $run
	got=$?
	case $* in
	*posted=*) echo "$size" >$sizes ;;
	esac
	return $got
}

modules="kofi_sock kofi_verbs kofi_rxm kofi_bench"
# shellcheck disable=SC2086 # names
core() {	# FILE: this one is loaded, with the others; without FILE, ours
	unload kofi_bench kofi_rxm kofi_verbs kofi_sock kofi &&
		{ [ -z "${1:-}" ] || insmod "$1"; } && load $modules
}

bench_without() {
	core "$VM/kofi.ko" && bench_run "$@"
	got=$?
	core && return $got
}

# Hundredths of a second since the start
uptime() { sed 's/[.]//; s/ .*//' /proc/uptime; }

# The histograms exist before the measured part begins, which is the last one.
bench_latency() {
	rm -f /tmp/enabled
	{ until kofi stat -l on ep 2>/dev/null; do :; done; uptime >/tmp/enabled; } &
	ns=$(bench_run "$@")
	got=$?
	now=$(uptime)
	kill $! 2>/dev/null
	wait $!
	[ $got = 0 ] && [ -s /tmp/enabled ] &&
		[ $(((now - $(cat /tmp/enabled) - 1) * 10000000)) -gt "${ns%% *}" ] && echo "$ns"
}

bench_settle() {
	was=0 same=0
	for _ in $(seq 100); do
		now=$(bench_run "$@") || return
		now=${now%% *}
		diff=$(((now - was) * 50))
		same=$((same + 1))
		[ $diff -le $now ] && [ $diff -ge -$now ] || same=0
		[ $same -lt 10 ] || break
		was=$now
	done
	echo "$now"
}

# One program for all of them: to load it takes longer than a run.
user_setup() {
	mkfifo /tmp/lines /tmp/answers
	# no look at what else libfabric could use
	FI_PROVIDER=tcp,net kofi-bench-user </tmp/lines >/tmp/answers &
	exec 5>/tmp/lines 6</tmp/answers
}

bench_user() {
	echo "$*" >&5 && IFS= read -r got <&6 && echo "$got"
}

# Every event must be there: the trace's head has "IN-BUFFER/WRITTEN".
complete() {
	awk '/entries-written:/ { split($3, n, "/"); exit }
	     END { exit n[1] == "" || n[1] != n[2] }' $t/trace
}

bench_count() {
	echo >$t/trace
	events 1 || return
	echo "$*" >$run || return
	events 0
	complete || return
	awk -f "$VM/allocations.awk" $t/trace >/tmp/who
	sed -n 's/.*: sched_switch: .* next_comm=\(.*\) next_pid.*/\1/p' $t/trace >/tmp/next
	echo "$(grep -c . /tmp/who) $(grep -c '\[kofi' /tmp/who) $(grep -c . /tmp/next)"
	# whose they are is for those who read the log
	sort /tmp/who /tmp/next | uniq -c | sort -rn >&2
}

. "$VM/devices.sh"
. "$VM/disks.sh"
. "$VM/mounts.sh"
# shellcheck disable=SC2086 # names
load $modules || exit
size=$(cat $sizes)
devices || exit
grep -q '^count' "$VM/plan" && { step trace trace_setup || exit; }
if grep -q '^user' "$VM/plan"; then user_setup; fi
if grep -q '^9p' "$VM/plan"; then step servers setup_9p || exit; fi
if grep -q '^disk' "$VM/plan"; then step disks setup_disks || exit; fi
while read -r what rest; do
	# shellcheck disable=SC2086 # words
	got=$("bench_$what" $rest) || got=failed
	echo "bench: $what $rest = $got"
done <"$VM/plan"

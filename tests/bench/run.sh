# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Runs what the file "plan" says, a line each, and answers each with a line on
# the console that begins with "bench: ". tools/vm/bench.py writes the one and
# reads the other.
#
#   run CLIENT KIND WINDOW SIZE WARMUP COUNT	nanoseconds of the measured ones
#   user SIZE WARMUP COUNT			the same, in user space
#   count CLIENT KIND WINDOW SIZE WARMUP COUNT	allocations, those of ours, and
#						context switches in them

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

bench_run() {
	echo "$*" >$run && cat $run
}

bench_user() {
	port=$((20000 + n))
	kofi-bench-user server 127.0.0.1 $port "$1" &
	retry listens $port || return
	kofi-bench-user client 127.0.0.1 $port "$@" || return
	wait $!
}
listens() { grep -q "$(printf ':%04X .* 0A ' "$1")" /proc/net/tcp; }

bench_count() {
	echo >$t/trace
	events 1 || return
	echo "$*" >$run || return
	events 0
	awk -f "$VM/allocations.awk" $t/trace >/tmp/who
	echo "$(grep -c . /tmp/who) $(grep -c '\[kofi' /tmp/who) $(grep -c ': sched_switch: ' $t/trace)"
	sort /tmp/who | uniq -c | sort -rn >&2
}

load kofi_sock kofi_bench || exit
grep -q '^count' "$VM/plan" && { step trace trace_setup || exit; }
n=0
while read -r what rest; do
	n=$((n + 1))
	# shellcheck disable=SC2086 # words
	got=$("bench_$what" $rest) || got=failed
	echo "bench: $what $rest = $got"
done <"$VM/plan"

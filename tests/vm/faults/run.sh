# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The stress suites run while the kernel fails one allocation in so many, for
# all who ask for memory, in any context: one that sets up everything over and
# over, and one with many connections that do all an endpoint can do. They hold
# that each accepted operation ends exactly once, whatever becomes of its
# connection; KASAN and kmemleak look at the error paths. Then the contract suites of connections on
# a device of their own, which the last of them takes out of the kernel.
#
# With faults on nothing can be started here: the shell opens files and waits,
# which it repeats until it works. A suite runs until it is told to stop, which is
# when the faults are off, as its own end needs memory.

glob=/sys/module/kunit/parameters/filter_glob
suite=/sys/module/kofi_contract_kunit/parameters
fail=/sys/kernel/debug

only() { printf '%s*' "$1" >$glob; }	# a newline would be part of it

results() {	# SUITE: of its last run; fails unless all of it passed
	cat "$fail/kunit/$1/results"
	grep -q "^ok [0-9]* $1\$" "$fail/kunit/$1/results"
}

at_least() { [ "$(cat $suite/$1 2>/dev/null || echo 0)" -ge "$2" ]; }

asleep() { grep -q nanosleep /proc/$clock/wchan; }

set_to() {	# VALUE FILE: until it is so
	until echo "$1" >"$2"; do :; done
}

for f in failslab fail_page_alloc; do
	echo N >$fail/$f/task-filter
	echo N >$fail/$f/ignore-gfp-wait
	echo 0 >$fail/$f/verbose
	echo 1 >$fail/$f/interval
	echo 0 >$fail/$f/probability
done
echo N >$fail/fail_page_alloc/ignore-gfp-highmem
echo 0 >$fail/fail_page_alloc/min-order

period() {	# PERCENT MILLISECONDS
	clock=none
	until asleep; do	# that one needs no memory any more
		[ -d /proc/$clock ] && continue
		sleep $(($2 * VM_SLOW / 1000)) &
		clock=$!
	done
	set_to "$1" $fail/failslab/probability
	set_to "$1" $fail/fail_page_alloc/probability
	wait $clock
	set_to 0 $fail/failslab/probability
	set_to 0 $fail/fail_page_alloc/probability
}

faults() {	# SUITE PROGRESS PERCENT MILLISECONDS: PROGRESS is a parameter
	only "$1"
	load kofi_contract_kunit stress_faulty=1 stress_ms=250000 &
	job=$!
	retry at_least "$2" 2 || return
	for f in failslab fail_page_alloc; do echo 1000000 >$fail/$f/times; done
	for _ in 1 2 3 4 5 6 7 8; do	# a busy host fails few in one period
		period "$3" "$4"
		hit=$((1000000 - $(cat $fail/failslab/times)))
		[ "$3" = 0 ] || [ $hit -gt 20 ] && break
	done
	echo 0 >$suite/stress_ms
	wait $job || return
	echo "$hit slab allocations failed,"
	results "$1" && { [ "$3" = 0 ] || [ $hit -gt 20 ]; }
	good=$?
	unload kofi_contract_kunit && return $good	# the next one loads it again
}
# a reset without memory is repeated for the next probe
load kofi_sock keepalive_idle=1000 || exit
pairs="contract_stress stress_pairs"
many="contract_many stress_connected"
few=5000 many_ms=2500
# shellcheck disable=SC2086
{
	if [ "$VM_SOAK" = 1 ]; then
		few=6000 many_ms=6000
		step none-fails faults $pairs 0 2000
		step connections-none-fails faults $many 0 2000
	fi
	step few-fail faults $pairs 1 $few
	cat /tmp/.step
	step many-fail faults $pairs 10 $many_ms
	cat /tmp/.step
	step connections-few-fail faults $many 1 $few
	cat /tmp/.step
	step connections-many-fail faults $many 10 $many_ms
	cat /tmp/.step
}

# --- a device of its own

ip link add dummy0 type dummy
ip addr add 10.9.0.1/24 dev dummy0
ip link set dummy0 up

on_dummy() {	# SUITE
	only "$1"
	load kofi_contract_kunit device=dummy0 address=10.9.0.1 || return
	results "$1" || return
	! grep -q SKIP $fail/kunit/"$1"/results || return
	unload kofi_contract_kunit
}
step device-connections on_dummy contract_cm
step device-removed on_dummy contract_device
cat /tmp/.step
gone() { [ ! -e /sys/class/net/dummy0 ]; }
step device-gone retry gone

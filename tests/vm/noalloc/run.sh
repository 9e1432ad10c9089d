# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Traffic runs between two endpoints of this machine while the kernel traces
# every allocation with its stack. None of those who asked for the memory may be in a
# module of ours. TCP, which allocates packets, calls us and is called by us, so
# the rest of the stack does not matter.

. "$VM/steps.sh"

export SOCK=127.0.0.1
t=$TRACING
events="kmem/kmalloc kmem/kmem_cache_alloc kmem/mm_page_alloc percpu/percpu_alloc_percpu"

# Events are enabled once, before there is traffic: that changes the kernel's code,
# and in QEMU another processor may meet the breakpoint of such a change when it
# is over, which is an oops.
setup() {
	echo 0 >$t/tracing_on
	echo 16384 >$t/buffer_size_kb
	echo 1 >$t/options/stacktrace
	echo 1 >$t/options/sym-offset	# with the module's name
	for e in $events; do
		echo 1 >$t/events/$e/enable || return
	done
}

# One line per event and culprit: "EVENT FUNCTION [MODULE]"
culprits() { awk -f "$VM/allocations.awk" $t/trace; }

load kofi_sock kofi_pingpong || exit
step setup setup

messages() { kofi stat ep | awk '/_completions:/ { n += $2 } END { print n + 0 }'; }
flows() { [ "$(messages)" -gt 50 ]; }
# What asks for messages allocates; this does not, in modules of ours.
segments() { awk '$1 == "Tcp:" { n = $12 } END { print n }' /proc/net/snmp; }
moved() { [ "$(segments)" -ge "$1" ]; }

# What allocates while there is traffic: enough of it for each kind of message
traced() {
	echo >$t/trace
	echo 1 >$t/tracing_on || return
	retry moved $(($(segments) + 600)) || return
	echo 0 >$t/tracing_on
	culprits >/tmp/culprits
}

told() { sort /tmp/culprits | uniq -c | sort -rn | head -n 30; }

# The trace has seen the traffic, and nothing of ours in it.
clean() { grep -q 'alloc_skb\|tcp_' /tmp/culprits && ! grep '\[kofi' /tmp/culprits; }

watch() {	# OPTION...: of both ends
	kofi pingpong -T 0 -I 100000000 "$@" >/tmp/server 2>&1 &
	server=$!
	retry listens 47592 || return
	kofi pingpong -T 0 -I 100000000 "$@" 127.0.0.1 >/tmp/client 2>&1 &
	client=$!
	retry flows || return
	before=$(messages)
	traced || return
	after=$(messages)
	kill $client $server
	wait $client $server
	echo "$((after - before)) completions; who allocated how often:"
	told
	[ $((after - before)) -gt 50 ] && clean
}

each() {
	name=$1
	shift
	step "$name" watch "$@"
	# what ran is in the log, also if it is good
	cat /tmp/.step
	step "$name-over" retry no_objects
}
each inject -S 64
each send -S 4096 -C workqueue
each large -S 262144 -M read -c
each datagrams -e rdm -m tagged -S 4096
step load-rxm load kofi_rxm
each datagrams-rxm -e rdm -p 'sock;ofi_rxm' -S 4096
each segments-rxm -e rdm -p 'sock;ofi_rxm' -m tagged -S 65536
each rendezvous-rxm -e rdm -p 'sock;ofi_rxm' -m tagged -S 1048576

# Requests that are sent with the command, and such that are read and written
blk() {
	load kofi_blk kofi_blkt && configfs && regular file 8 && volume file &&
		port sock "$SOCK" && map m file sock || return
	disk=$(device m)
	rm -f /tmp/stop
	while [ ! -e /tmp/stop ]; do
		for size in 4 128; do
			dd if=/dev/zero of="$disk" bs=${size}k count=64 oflag=direct conv=notrunc &&
				dd if="$disk" of=/dev/null bs=${size}k iflag=direct || exit
		done 2>/dev/null
	done &
	traced
	rc=$?
	touch /tmp/stop
	wait $! || return
	told
	[ $rc = 0 ] && clean && unmap m && target_gone
}
step blk blk
cat /tmp/.step

# The same net catches something: opening objects does allocate.
caught() {
	echo >$t/trace
	echo 1 >$t/tracing_on || return
	kofi pingpong -c >/tmp/server 2>&1 &
	server=$!
	retry listens 47592 || return
	kofi pingpong -c 127.0.0.1 >/tmp/client || return
	wait $server || return
	echo 0 >$t/tracing_on
	culprits >/tmp/culprits
	sort /tmp/culprits | uniq -c | grep '\[kofi'
}
step net-has-no-hole caught

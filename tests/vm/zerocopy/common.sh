# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# kofi_rma.ko at both ends sends 16 times 40 KiB in each kind of memory at each
# completion level, in both directions, also to a peer that does not read yet,
# and its callbacks overwrite what they are told is theirs again. The other end
# looks at every byte: a completion that comes too early is a wrong one.
#
# The levels are four, without inject; kinds of memory made of pages are three.
# The trace says of each such operation that its pages were in packets; that the
# machine's network device then has them copied, if it does, changes nothing for
# those that TCP still has in its queue.

t=/sys/kernel/tracing
at_once=$((4 * 3 * 16))

setup() {
	echo 1 >$t/events/kofi_sock/kofi_sock_zc/enable &&
		echo 1 >$t/tracing_on
}

device() {	# REQUEST: a run of kofi_rma.ko, and what it says
	# shellcheck disable=SC2016
	timeout 500 sh -c 'exec 4<>/dev/kofi_rma && { echo "$*" >&4; rc=$?
		cat <&4; exit $rc; }' sh "$@"
}

pages() {	# N: so many operations at least, all of them well
	grep -o 'kofi_sock_zc: .*' $t/trace >/tmp/zc
	sed 's/ep=[0-9]*//' /tmp/zc | sort | uniq -c
	[ "$(grep -c 'err=0' /tmp/zc)" -ge "$1" ] && ! grep -v 'err=0' /tmp/zc
}

run() {	# GROUP SERVER_MACHINE OPERATIONS
	echo >$t/trace
	if [ "$VM_NAME" = "$2" ]; then
		device serve zerocopy=4096 >/tmp/out 2>&1 &
		pid=$!
		retry listens 7473
		sync "$1"
		wait $pid
		rc=$?
		ended() { cat /tmp/out; return $rc; }
		step "$1" ended
	else
		sync "$1"
		step "$1" device connect \
			"node=10.0.0.$(($(printf %d "'$2") - 96))" "only=$1" \
			zerocopy=4096 last
	fi
	step "$1-pages" pages "$3"
	step "$1-nothing-left" retry no_objects
}

runs() {
	# writes
	run levels a $at_once
	# messages and tagged ones, to a peer that reads and to one that does not
	run messages b $((4 * at_once))
}

load kofi_sock kofi_rma || exit
step setup setup

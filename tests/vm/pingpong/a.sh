# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
. "$VM/common.sh"


ended() {
	cat /tmp/out
	return "$1"
}

serves() { listens 47592 || listens 47593; }	# kofi pingpong, or kofi bw and lat

run() {
	wanted "$1" || return 0
	# shellcheck disable=SC2086
	timeout 100 $2 >/tmp/out 2>&1 &
	pid=$!
	retry serves
	sync "$1"
	wait $pid
	# the client's table is the same
	step "$1" ended $?
}

load kofi_sock kofi_pingpong kofi_perf || exit
say "This machine is the server, 10.0.0.1 and fd00::1."
trace=/sys/kernel/tracing
echo 1 >$trace/events/kofi_sock/kofi_sock_peer/enable
runs
traced() {	# the peers of endpoints that do not connect
	for event in '10.0.0.2:[0-9]* connected err=0' '10.0.0.2:[0-9]* end' \
		'\[fd00::2\]:[0-9]* connected err=0'; do
		echo "$event $(grep -c "kofi_sock_peer: .*peer=$event" $trace/trace)"
		grep -q "kofi_sock_peer: .*peer=$event" $trace/trace || return
	done
}
step traced traced
nothing_left() { kofi stat; [ -z "$(kofi stat)" ]; }
step nothing-left retry nothing_left

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
. "$VM/common.sh"

ended() {
	cat /tmp/out
	return "$1"
}

run() {
	# shellcheck disable=SC2086
	timeout 100 $2 >/tmp/out 2>&1 &
	pid=$!
	retry listens "${4:-47592}"
	sync "$1"
	wait $pid
	# the client's table is the same
	step "$1" ended $?
}

load kofi_rxm kofi_sock kofi_pingpong || exit
say "This machine is the server, 10.0.0.1 and fd00::1."
trace=/sys/kernel/tracing
echo 1 >$trace/events/kofi_rxm/kofi_rxm_peer/enable
echo 1 >$trace/events/kofi_rxm/kofi_rxm_tx/enable
runs
traced() {	# the events name the peer, at either address of it
	for event in 'kofi_rxm_peer: .*peer=10.0.0.2:[0-9]* connected err=0' \
		'kofi_rxm_peer: .*peer=10.0.0.2:[0-9]* end' \
		'kofi_rxm_peer: .*peer=\[fd00::2\]:[0-9]* accept err=0' \
		'kofi_rxm_tx: .*peer=10.0.0.2:[0-9]* how=[1-9]'; do
		echo "$event $(grep -c "$event" $trace/trace)"
		grep -q "$event" $trace/trace || return
	done
}
step traced traced
nothing_left() { kofi stat; [ -z "$(kofi stat)" ]; }
step nothing-left retry nothing_left

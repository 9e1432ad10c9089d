# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Machine a runs kofi_rma.ko, machine b kofi-peer, in both roles each. What the
# client prints is for a demo: each line stands for accesses in both directions.

listens() { grep -q ':1D31 .* 0A ' /proc/net/tcp /proc/net/tcp6; }
ended() {
	cat /tmp/out
	return "$1"
}

runs() {	# calls run NAME SERVER_MACHINE OPTIONS_OF_SERVER OPTIONS_OF_CLIENT
	run kernel-server a "" ""
	run kernel-client b "" ""
	run kernel-server-shared a "srx client-keys" "srx only=messages"
	run kernel-client-shared b "srx" "srx client-keys poll=workqueue only=messages"
}

run() {
	if [ "$VM_NAME" = "$2" ]; then
		# shellcheck disable=SC2086
		it serve "node=10.0.0.$VM_INDEX" $3 >/tmp/out 2>&1 &
		pid=$!
		retry listens
		sync "$1"
		wait $pid
		step "$1" ended $?
	else
		sync "$1"
		say ""
		say "$1: $VM_NAME connects, with the options: $4 last"
		# shellcheck disable=SC2086
		show "$1" it connect "node=10.0.0.$((3 - VM_INDEX))" $4 last
	fi
}

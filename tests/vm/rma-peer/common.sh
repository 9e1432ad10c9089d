# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Machine a runs kofi_rma.ko, machine b kofi-peer, in both roles each. What the
# client prints is for a demo: each line stands for accesses in both directions,
# and a table at the end says how many there were.

# checked memory is slow: the largest size with one kind of it only
brief=
[ "$VM_KERNEL" != debug ] || brief=brief

over() { ! kill -0 "$1" 2>/dev/null; }
ended() {
	cat /tmp/out
	return "$1"
}

runs() {	# calls run NAME SERVER_MACHINE OPTIONS_OF_SERVER OPTIONS_OF_CLIENT
	run kernel-server a "" ""
	run kernel-client b "" ""
	if ! why=$(kofi-peer shared); then
		skip shared "$why"
		return
	fi
	run kernel-server-shared a "srx client-keys" "srx only=messages"
	run kernel-client-shared b "srx" "srx client-keys poll=workqueue only=messages"
}

run() {
	if [ "$VM_NAME" = "$2" ]; then
		# shellcheck disable=SC2086
		it serve "node=10.0.0.$VM_INDEX" $3 >/tmp/out 2>&1 &
		pid=$!
		retry listens 7473
		sync "$1"
		# a client that has failed will not say that it was the last
		sync "$1-over"
		retry over $pid || kill -9 $pid
		wait $pid
		step "$1" ended $?
	else
		sync "$1"
		say ""
		# shellcheck disable=SC2086
		client "$1" connect "node=10.0.0.$((3 - VM_INDEX))" $4 $brief last
		sync "$1-over"
	fi
}

client() {	# NAME WORD...
	name=$1
	shift
	typed "$@"
	show "$name" it "$@"
}

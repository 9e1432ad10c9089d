# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The runs, in the order both machines go through them; each run has a server
# and a client, and both sides do everything to the other.

# checked memory is slow: the largest size with one kind of it only
brief=
[ "$VM_KERNEL" != debug ] || brief=brief

device() {	# REQUEST: a run of kofi_rma.ko, and what it says; never returns
	# shellcheck disable=SC2016
	exec sh -c 'exec 4<>/dev/kofi_rma && { echo "$*" >&4; rc=$?
		cat <&4; exit $rc; }' sh "$@"
}
over() { ! kill -0 "$1" 2>/dev/null; }

runs() {	# calls run NAME SERVER_MACHINE OPTIONS_OF_SERVER OPTIONS_OF_CLIENT
	run all a "" ""
	run shared b "srx client-keys poll=workqueue" "only=messages"
	run shared-both b "srx" "srx client-keys only=messages"
	run client-keys b "client-keys srx poll=workqueue" "only=forms client-keys"
	run wrong b "client-keys srx" "only=wrong srx poll=workqueue"
	run ipv6 b "node=fd00::2" "node=fd00::2 only=forms"
}

run() {
	if [ "$VM_NAME" = "$2" ]; then
		# shellcheck disable=SC2086
		device serve $3 >/tmp/out 2>&1 &
		pid=$!
		retry listens 7473
		sync "$1"
		# a client that has failed will not say that it was the last
		sync "$1-over"
		retry over $pid || kill -9 $pid
		wait $pid
		rc=$?
		ended() { cat /tmp/out; return $rc; }
		step "$1" ended
	else
		sync "$1"
		# the server's address, unless the options have another
		# shellcheck disable=SC2086
		step "$1" device connect "node=10.0.0.$(($(printf %d "'$2") - 96))" \
			$4 $brief last
		cat /tmp/.step
		sync "$1-over"
	fi
	step "$1-nothing-left" retry no_objects
}

load kofi_sock kofi_rma || exit

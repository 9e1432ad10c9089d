# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
. "$VM/common.sh"

ended() {
	cat /tmp/out
	return "$1"
}

serves() { listens 47592 || listens 47593 || listens_verbs 7473 || listens_verbs 7174; }

run() {
	# shellcheck disable=SC2086
	timeout 200 $2 >/tmp/out 2>&1 &
	pid=$!
	retry serves
	sync "$1"
	wait $pid
	# the client's table is the same
	step "$1" ended $?
}

load kofi_sock kofi_verbs kofi_pingpong kofi_perf kofi_rma || exit
say "This machine is the server, 10.0.0.1 and fd00::1."
devices

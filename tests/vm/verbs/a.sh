# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
. "$VM/common.sh"

listens() { grep -q ':B9E8 .* 0A ' /proc/net/tcp /proc/net/tcp6; }

ended() {
	cat /tmp/out
	return "$1"
}

run() {
	# shellcheck disable=SC2086
	timeout 100 $2 >/tmp/out 2>&1 &
	pid=$!
	retry listens
	sync "$1"
	wait $pid
	# the client's table is the same
	step "$1" ended $?
}

step setup setup || exit
sync ready
runs
nothing_left() { kofi stat; [ -z "$(kofi stat)" ]; }
step nothing-left retry nothing_left

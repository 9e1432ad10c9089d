# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
. "$VM/common.sh"

# The peer that dies; see a.sh.

dies() {	# PROVIDER DEVICE
	# fi_pingpong knows sock as tcp
	user=$1
	[ "$user" != sock ] || user=tcp
	sync "$2 user"
	# shellcheck disable=SC2086
	fi_pingpong -p $user -e msg ${LONG#-T 0} a >/tmp/out 2>&1 &
	pid=$!
	wait_for "$2 kill-user"
	kill -KILL $pid

	sync "$2 kernel"
	# shellcheck disable=SC2086
	kofi pingpong -p "$1" $LONG a >/tmp/out 2>&1 &
	pid=$!
	wait_for "$2 kill-kernel"
	kill -KILL $pid
	step "$2 aborted" retry no_objects
}

# Both sides notice that the cable is out.
over() {	# PROVIDER DEVICE SECONDS
	dies "$@"
	sync "$2 cable"
	# shellcheck disable=SC2086
	step "$2 cable-pulled" expect_status 1 timeout 180 kofi pingpong -p "$1" $LONG a
	step "$2 nothing-left" retry no_objects
	sync "$2 cable-over"
	sync "$2 cable-up"
}

devices

sync again
step works-again timeout 180 kofi pingpong -p sock -c a

sync power
# shellcheck disable=SC2086
kofi pingpong -p verbs $LONG -P $((PORT + 1)) a >/tmp/out 2>&1 &
# shellcheck disable=SC2086
kofi pingpong -p sock $LONG a

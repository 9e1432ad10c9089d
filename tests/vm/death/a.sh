# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
. "$VM/common.sh"

# This machine survives. b's process is killed, the cable is pulled, and in the
# end b is switched off; each time the run here has to end with an error in
# bounded time, and nothing may be left of it.
#
# Times, on a quiet host: over sock, a silent peer is dead after 3 s, an idle one after 2 + 2 * 1
# s. Over verbs, which asks an idle one after 10 s, a peer is dead when a device
# has sent something 7 times, and waited half a second or more each time. Runs
# have no time-out of their own (-T 0), so that it is the provider's that ends
# them.

stops_within() {	# SECONDS: run $pid ends by itself, with an error
	i=0
	while kill -0 "$pid" 2>/dev/null; do
		i=$((i + 1))
		if [ $i -gt $(($1 * 5 * VM_SLOW)) ]; then
			echo "still running after $(($1 * VM_SLOW)) s"
			kofi stat
			kill "$pid"
			return 1
		fi
		sleep 0.2
	done
	wait "$pid"
	rc=$?
	cat "/tmp/out.$pid"
	[ $rc = 1 ] && grep -q "pingpong failed at " "/tmp/out.$pid"
}

flows() {	# PROVIDER: at least 20 more messages have been received over it
	now=$(received "$1")
	retry more_than "$1" $((${now:-0} + 20))
}
received() {
	kofi stat ep | awk -v provider="$1" '
		$2 == "ep" { counts = $4 == provider }
		/rx_completions/ && counts { n += $2 }
		END { print n + 0 }'
}
more_than() { [ "$(received "$1")" -gt "$2" ]; }

serve() {	# PROVIDER [PORT]
	# shellcheck disable=SC2086
	sh -c 'exec "$@" >/tmp/out.$$ 2>&1' sh \
		kofi pingpong $LONG -p "$1" -B "${2:-$PORT}" &
	pid=$!
	retry listens "${2:-$PORT}"
}

begin() {	# PROVIDER NAME
	serve "$1"
	sync "$2"
	check "$2-flows" flows "$1"
}

# SIGKILL of a userspace peer, and of the tool of a kernel peer, whose run is
# aborted
dies() {	# PROVIDER DEVICE
	begin "$1" "$2 user"
	signal "$2 kill-user"
	check "$2 user-killed" stops_within 10
	check "$2 user-nothing-left" retry no_objects
	begin "$1" "$2 kernel"
	signal "$2 kill-kernel"
	check "$2 kernel-killed" stops_within 10
	check "$2 kernel-nothing-left" retry no_objects
}

# The cable is pulled in mid-transfer.
pulled() {	# PROVIDER DEVICE SECONDS
	begin "$1" "$2 cable"
	link down
	check "$2 cable-pulled" stops_within "$3"
	check "$2 cable-nothing-left" retry no_objects
	sync "$2 cable-over"
	link up
	sync "$2 cable-up"
}

over() {
	dies "$@"
	pulled "$@"
}

devices

# --- a bit of good weather
# shellcheck disable=SC2086
timeout 180 kofi pingpong -p sock -c >/tmp/out 2>&1 &
pid=$!
retry listens $PORT
sync again
wait $pid
step works-again [ $? = 0 ]

# --- the other machine is switched off
serve verbs $((PORT + 1))
verbs=$pid
serve sock
sync power
check power-flows flows sock
check "rxe power-flows" flows verbs
kill_machine b
check power-off stops_within 15
pid=$verbs
check "rxe power-off" stops_within 30
check power-nothing-left retry no_objects

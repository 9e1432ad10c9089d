# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# This machine survives. b's process is killed, the cable is pulled, and in the
# end b is switched off; each time the run here has to end with an error in
# bounded time, and nothing may be left of it.
#
# Times: a silent peer is dead after 3 s, an idle one after 2 + 2 * 1 s. Runs
# have no time-out of their own (-T 0), so that it is kofi_sock's that ends
# them.

# No number of round trips that would end before the peer does.
LONG="-T 0 -I 100000000 -S 4096"

stops_within() {	# SECONDS: run $pid ends by itself, with an error
	i=0
	while kill -0 "$pid" 2>/dev/null; do
		i=$((i + 1))
		if [ $i -gt $(($1 * 5)) ]; then
			echo "still running after $1 s"
			kofi stat
			kill "$pid"
			return 1
		fi
		sleep 0.2
	done
	wait "$pid"
	rc=$?
	cat /tmp/out
	[ $rc = 1 ]
}

flows() {	# at least 20 more messages have been received
	now=$(received)
	retry more_than $((${now:-0} + 20))
}
received() {
	kofi stat ep | awk '/rx_frames/ { n += $2 } END { print n + 0 }'
}
more_than() { [ "$(received)" -gt "$1" ]; }

nothing_left() {
	kofi stat
	[ -z "$(kofi stat)" ]
}


serve() {
	# shellcheck disable=SC2086
	kofi pingpong $LONG >/tmp/out 2>&1 &
	pid=$!
	retry listens 47592
}

load kofi_sock silence_timeout=3000 keepalive_idle=2000 keepalive_intvl=1 \
	keepalive_cnt=2 kofi_pingpong || exit

# step runs its command in a subshell, which cannot wait for the shell's jobs
check() {
	name=$1
	shift
	if "$@" >/tmp/check 2>&1; then
		pass "$name"
	else
		fail "$name" "$(tail -n 20 /tmp/check | tr '\n' ';')"
	fi
}

# --- SIGKILL of a userspace peer
serve
sync user
check user-flows flows
signal kill-user
check user-killed stops_within 10
check user-nothing-left retry nothing_left

# --- SIGKILL of the tool of a kernel peer: its run is aborted
serve
sync kernel
check kernel-flows flows
signal kill-kernel
check kernel-killed stops_within 10
check kernel-nothing-left retry nothing_left

# --- the cable is pulled in mid-transfer
serve
sync cable
check cable-flows flows
link down
check cable-pulled stops_within 15
check cable-nothing-left retry nothing_left
sync cable-over
link up
sync cable-up

# --- a bit of good weather
# shellcheck disable=SC2086
timeout 60 kofi pingpong -c >/tmp/out 2>&1 &
pid=$!
retry listens 47592
sync again
wait $pid
step works-again [ $? = 0 ]

# --- the other machine is switched off
serve
sync power
check power-flows flows
kill_machine b
check power-off stops_within 15
check power-nothing-left retry nothing_left

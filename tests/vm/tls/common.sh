# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Keys, the daemon, and kofi_testtls.ko of both machines.

P=/sys/module/kofi_testtls/parameters
NAME="kofi a b."
OTHER="kofi c d."

ring() { printf '%d\n' "0x$(awk '/keyring *\.nvme/ { print $1 }' /proc/keys)"; }

add_psk() {	# NAME KEY: prints the serial number
	printf %s "$2" | keyctl padd psk "$1" %:.nvme
}

config() {	# SECONDS
	cat >/tmp/tlshd.conf <<-END
		[debug]
		loglevel=1
		tls=0
		nl=0
		delay_done=$1
		[authenticate]
		keyrings=.nvme
		[authenticate.client]
		[authenticate.server]
	END
}

start_daemon() {	# [SECONDS]: time between the end of a handshake and its report
	config "${1:-0}"
	tlshd@trixie -s -c /tmp/tlshd.conf >>/tmp/tlshd.log 2>&1 &
	DAEMON=$!
}

stop_daemon() {
	kill "$DAEMON"
	wait "$DAEMON" 2>/dev/null
	true
}

# ERROR CONNECTION...: the result is ERROR, or an error if that is "any"
connects() {
	want=$1
	shift
	echo "$*" >$P/connect 2>/dev/null
	got=$(cat $P/result)
	echo "result $got, expected $want"
	tail -n 5 /tmp/tlshd.log
	[ "$got" = "$want" ] || { [ "$want" = any ] && [ "$got" != 0 ]; }
}

hidden() { [ "$(cat $P/found) $(cat $P/missed)" = "0 0" ]; }
identity() { [ "$(cat $P/peer)" = "$1" ]; }
forget() { echo 0 >$P/found && echo 0 >$P/missed; }

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# One machine, over lo, where a sender's pages may stay in the receiver's queue:
# all tests of kofi_rma.ko with itself and with kofi-peer in either role, and
# what becomes of runs that are killed or have no server.

load kofi_sock kofi_rma || exit

device() {	# REQUEST: a run of kofi_rma.ko, and what it says
	# shellcheck disable=SC2016
	timeout 100 sh -c 'exec 4<>/dev/kofi_rma && { echo "$*" >&4; rc=$?
		cat <&4; exit $rc; }' sh "$@"
}
peer() { timeout 100 kofi-peer "$@"; }

pair() {	# SERVER CLIENT, each device or peer with options
	# shellcheck disable=SC2086
	set -- "${1%% *}" "${1#* }" "${2%% *}" "${2#* }"
	# shellcheck disable=SC2086
	$1 serve node=127.0.0.1 $2 >/tmp/server 2>&1 &
	server=$!
	retry listens 7473
	# shellcheck disable=SC2086
	$3 connect node=127.0.0.1 $4 last
	rc=$?
	[ $rc = 0 ] || kill $server 2>/dev/null
	wait $server
	server_rc=$?
	echo "the server said:"
	cat /tmp/server
	[ $rc = 0 ] && [ $server_rc = 0 ] && retry no_objects
}

step kernel-kernel pair "device poll=softirq" "device poll=softirq"
step shared pair "device srx poll=workqueue" "device srx client-keys poll=workqueue"
step peer-server pair "peer port=7473" "device poll=softirq"
step peer-client pair "device client-keys" "peer port=7473"
step peer-shared-server pair "peer srx" "device srx only=messages"
step peer-shared-client pair "device srx" "peer srx only=messages"

# endpoints that do not connect
load kofi_rxm
step datagrams pair "device rdm poll=workqueue" "device rdm brief client-keys"
step datagrams-peer-server pair "peer rdm" "device rdm brief"
step datagrams-peer-client pair "device rdm client-keys" "peer rdm brief"
step datagrams-layered pair "device rxm" "device rxm brief"
step layered-peer-server pair "peer rxm" "device rxm brief client-keys"
step layered-peer-client pair "device rxm" "peer rxm brief"

left() {	# OPTIONS [held]: a client ends in the middle of a command; there is another one
	# shellcheck disable=SC2086
	device serve node=127.0.0.1 $1 >/tmp/server 2>&1 &
	server=$!
	retry listens 7473
	# shellcheck disable=SC2086
	device connect node=127.0.0.1 $1 leave $2 && device connect node=127.0.0.1 $1 only=messages brief last
	rc=$?
	[ $rc = 0 ] || kill $server 2>/dev/null
	wait $server
	server_rc=$?
	cat /tmp/server
	[ $rc = 0 ] && [ $server_rc = 0 ] && retry no_objects
}
step left left ""
step left-datagrams left rdm
step left-layered left rxm
# the command is stored, or waits in its connection, while the next client begins
step left-held-datagrams left rdm held
step left-held-shared left "rdm srx" held
step left-held-layered left rxm held

no_server() {
	device connect node=127.0.0.1 >/tmp/out 2>&1 && return 1
	cat /tmp/out
	grep -q "failed: connecting: error 111" /tmp/out	# ECONNREFUSED
}
step no-server no_server

killed() {	# REQUEST: the process that is inside the run is killed
	sh -c "exec 4<>/dev/kofi_rma; echo '$1' >&4" &
	pid=$!
	retry listens 7473
	kill -9 $pid
	wait $pid
	[ $? = 137 ] && retry no_objects
}
step killed-server killed "serve node=127.0.0.1"
step works-again pair "device poll=softirq" "device only=forms"

step unknown-option expect_fail device serve colour=red
step unknown-group expect_output "there is no group odd" \
	sh -c 'exec 4<>/dev/kofi_rma; { echo "connect only=odd" >&4; } 2>&1; cat <&4'

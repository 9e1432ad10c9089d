# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# One machine, over lo: what becomes of runs that are started together, killed,
# given wrong options, or have a peer that is no fi_pingpong.

export FI_TCP_IFACE=lo
load kofi_sock kofi_pingpong || exit

connected() { kofi stat ep | grep -q connected; }
nothing() { no_objects && ! cat /proc/[0-9]*/comm 2>/dev/null | grep -q kofi_pp; }
server() {	# OPTION...
	kofi pingpong "$@" >/tmp/server 2>&1 &
	server=$!
}
both_end() {	# the client's exit status is $1; the server's has to be the same
	wait "$server"
	server_rc=$?
	cat /tmp/server
	[ "$1" = 0 ] && [ $server_rc = 0 ]
}

# --- all ways to take completions, against each other

pair() {	# SERVER_OPTIONS CLIENT_OPTIONS
	# shellcheck disable=SC2086
	server -c $1
	retry listens 47592
	# shellcheck disable=SC2086
	kofi pingpong -c $2 127.0.0.1
	both_end $?
}
for one in "-C softirq" "-C workqueue" "-C direct" "-M read"; do
	step "softirq with $one" pair "" "$one"
	step "$one with userspace" pair "$one" ""
done
step warm-up pair "-w 5 -I 3 -S all" "-w 5 -I 3 -S all"
step no-round-trips pair "-I 0" "-I 0"
step rdm-mixed pair "-e rdm -m tagged -M read" "-e rdm -m tagged -C direct"

userspace() {
	server -c -S all -I 2
	retry listens 47592
	fi_pingpong -p tcp -e msg -c -S all -I 2 127.0.0.1
	both_end $?
}
step userspace-client userspace

# Over a device with large packets, either side has to stop where the other does.
datagrams() {	# SERVER CLIENT
	some="-e dgram -c -S all -I 2"
	# shellcheck disable=SC2086
	timeout 60 $1 $some >/tmp/server 2>&1 &
	server=$!
	retry listens 47592
	# shellcheck disable=SC2086
	timeout 60 $2 $some 127.0.0.1
	both_end $?
}
step datagrams-server datagrams "kofi pingpong" "fi_pingpong -p udp"
step datagrams-client datagrams "fi_pingpong -p udp" "kofi pingpong"

json() {
	server -j -S 64 -I 5
	retry listens 47592
	kofi pingpong -j -S 64 -I 5 127.0.0.1 >/tmp/json
	both_end $? || return
	cat /tmp/json
	grep -q '"total": 640' /tmp/json && ! grep -q '"error"' /tmp/json
}
step json json

# --- what kofi stat tells of peers, while messages go to and fro

crossed() {	# two endpoints, each of them the other's only peer, and its address 0
	for id in $(kofi stat ep | awk '$2 == "ep" { print $1 }'); do
		kofi stat "$id" | awk '$2 == "ep" { own = $NF }
			$1 == "peer" { print own, $2, $3, $4, $5, $6, $7 }'
	done >/tmp/peers
	cat /tmp/peers
	awk '{ at[$1] = $2; good += /connected fi_addr 0 reconnects 0$/ }
		END {
			for (a in at)
				good += (at[a] in at) && at[at[a]] == a && at[a] != a
			exit good != 4 || NR != 2
		}' /tmp/peers
}
peers() {	# PROVIDER
	long="-e rdm -p $1 -S 64 -I 100000000"
	urgent
	# shellcheck disable=SC2086
	server $long
	retry listens 47592
	# shellcheck disable=SC2086
	kofi pingpong $long 127.0.0.1 &
	client=$!
	retry crossed && kofi stat -j "$(kofi stat ep | awk '$2 == "ep" { print $1; exit }')" >/tmp/json
	rc=$?
	cat /tmp/json
	kill $client "$server"
	wait $client "$server" 2>/dev/null
	[ $rc = 0 ] && grep -q '"peers": \[$' /tmp/json && grep -q '"fi_addr": 0,$' /tmp/json &&
		grep -q '"state": "connected",$' /tmp/json && retry nothing
}
load kofi_rxm
step peers peers sock
step peers-rxm peers 'sock;ofi_rxm'

# --- several runs

several() {
	pids=
	for p in 5001 5002 5003; do
		kofi pingpong -c -B $p &
		pids="$pids $!"
	done
	for p in 5001 5002 5003; do retry listens $p || return; done
	for p in 5001 5002 5003; do
		kofi pingpong -c -P $p 127.0.0.1 &
		pids="$pids $!"
	done
	rc=0
	for pid in $pids; do wait "$pid" || rc=1; done
	return $rc
}
step several several
step several-end retry nothing

same_port() {
	server
	retry listens 47592
	expect_output "Address already in use" \
		sh -c 'kofi pingpong 2>&1; [ $? = 1 ]'
	rc=$?
	kill "$server"
	wait "$server"
	return $rc
}
step same-port same_port
step same-port-ends retry nothing

# --- killed at each step: nothing stays

killed() {	# THERE OPTION...: when that is so
	there=$1
	shift
	kofi pingpong "$@" &
	pid=$!
	# shellcheck disable=SC2086
	retry $there
	rc=$?
	kill -9 $pid
	wait $pid
	[ $rc = 0 ] && retry nothing
}
step kill-listening killed "listens 47592"
met() { grep -q ':B9E8 01 ' /proc/net/tcp; }	# the client's end
mkfifo /tmp/fifo	# open for reading and writing, it never ends
silent() {	# a server that says nothing
	busybox nc -l -p 47592 <>/tmp/fifo >/dev/null &
	nc=$!
	retry listens 47592
	killed met 127.0.0.1
	rc=$?
	kill $nc 2>/dev/null
	wait $nc
	return $rc
}
step kill-waiting-for-address silent
transfer() {	# SERVER CLIENT THERE SENTENCE: the client is killed, the server has to notice
	urgent
	# shellcheck disable=SC2086
	server $1 -S 64 -I 100000000
	retry listens 47592
	# shellcheck disable=SC2086
	kofi pingpong $2 -S 64 -I 100000000 127.0.0.1 &
	client=$!
	retry "$3"
	kill -9 $client
	wait "$server"
	rc=$?
	cat /tmp/server
	[ $rc = 1 ] && grep -Eq "$4" /tmp/server && retry nothing
}
for one in "-C softirq" "-C workqueue" "-C direct" "-M read"; do
	step "kill-transfer $one" transfer "" "$one" connected "Connection reset by peer"
done
# what an endpoint sends when its peer's connection has ended starts a new one
for one in "-C softirq" "-C direct" "-M read"; do
	step "kill-transfer-rdm $one" transfer "-e rdm $one" "-e rdm $one" crossed \
		"Connection (reset by peer|refused)"
done

# --- peers that talk nonsense

nonsense() {	# SENTENCE BYTES: what a client says to a server that sends that
	printf '%b' "$2" >/tmp/bytes
	busybox nc -l -p 47592 </tmp/bytes >/dev/null &
	nc=$!
	retry listens 47592
	kofi pingpong 127.0.0.1 >/tmp/out 2>&1
	rc=$?
	kill $nc 2>/dev/null
	wait $nc
	cat /tmp/out
	[ $rc = 1 ] && grep -q "$1" /tmp/out && retry nothing
}
IN='\002\000\000\000'
step address-empty nonsense "address exchange: Protocol" "\\000\\000\\000\\000$IN"
step address-long nonsense "address exchange: Protocol" "\\377\\377\\377\\377$IN"
step address-other nonsense "address exchange: Protocol" '\000\000\000\020\012\000\000\000'
step address-family nonsense "address exchange: Protocol" \
	"\\000\\000\\000\\020$IN\\001\\000AAAAAAAAAAAAAA"
step address-short nonsense "address exchange: Connection" "\\000\\000\\000\\020$IN\\002\\000"
step address-closed nonsense "connection: Connection refused" \
	"\\000\\000\\000\\020$IN\\002\\000\\000\\001\\177\\000\\000\\001\\000\\000\\000\\000\\000\\000\\000\\000"

no_data() {	# a client that has no data connection to offer
	server -T 1
	retry listens 47592
	busybox nc 127.0.0.1 47592 <>/tmp/fifo >/dev/null &
	nc=$!
	wait "$server"
	rc=$?
	kill $nc 2>/dev/null
	wait $nc
	cat /tmp/server
	[ $rc = 1 ] && grep -q "connection request: Connection timed out" /tmp/server
}
step no-data-connection no_data

# --- sides that do not agree

differ() {	# SENTENCE OPTIONS_OF_SERVER OPTIONS_OF_CLIENT
	# shellcheck disable=SC2086
	server -T $((2 * VM_SLOW)) $2
	retry listens 47592
	# shellcheck disable=SC2086
	kofi pingpong -T $((2 * VM_SLOW)) $3 127.0.0.1 >/tmp/out 2>&1
	rc=$?
	wait "$server"
	cat /tmp/out /tmp/server
	[ $rc = 1 ] && cat /tmp/out /tmp/server | grep -q "$1"
}
step other-size differ "32 bytes came where 64" "-S 64" "-S 32"
for one in "-C softirq" "-C workqueue" "-C direct" "-M read"; do
	step "more-round-trips $one" differ "came where none" \
		"$one -S 64 -I 3" "-S 64 -I 4"
done
step content differ "is wrong from byte 0" "-S 64 -c -I 5" "-S 64 -I 5"

# --- wrong usage and wrong wishes

step no-server expect_output "Connection refused" \
	sh -c 'kofi pingpong 127.0.0.1 2>&1; [ $? = 1 ]'
step no-provider differ "fi_getinfo: No data available" "-p nosuch" "-p nosuch"
step no-domain differ "fi_getinfo: No data available" "-d nosuch" ""
step bad-size expect_status 2 kofi pingpong -S big
step bad-endpoint expect_status 2 kofi pingpong -e nosuch
step bad-transfer expect_status 2 kofi pingpong -m rma
step bad-context expect_status 2 kofi pingpong -C hardirq
step two-servers expect_status 2 kofi pingpong a b
step nothing-left retry nothing

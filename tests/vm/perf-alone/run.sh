# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh disable=SC2086
# One machine: every operation of kofi bw and kofi lat over lo and over RDMA devices
# that talk to themselves; contents that are wrong; runs that are ended at any step;
# peers that are no kofi bw; options that make no sense.

load kofi_sock kofi_rxm kofi_perf || exit

PORT=47593
at=127.0.0.1
server() {	# OPTION...
	kofi bw "$@" >/tmp/server 2>&1 &
	server=$!
	retry listens $PORT
}
pair() {	# COMMAND OPTION...: measure with a server of any kind; both have to succeed
	server
	kofi "$@" "$at" >/tmp/out 2>&1
	rc=$?
	[ $rc = 0 ] || kill "$server" 2>/dev/null
	wait "$server"
	server_rc=$?
	cat /tmp/out /tmp/server
	[ $rc = 0 ] && [ $server_rc = 0 ]
}
rows() {	# NUMBER COMMAND OPTION...: the table has so many, on both sides
	n=$1
	shift
	pair "$@" && [ "$(grep -c '^[0-9]' /tmp/out)" = "$n" ] &&
		[ "$(grep -c '^[0-9]' /tmp/server)" = "$n" ]
}

# --- every operation and type of endpoint

few="-I 100 -w 5 -v"
operations() {	# NAME OPERATIONS OPTION...
	name=$1
	ops=$2
	shift 2
	for op in $ops; do
		for cmd in bw lat; do
			step "$name $cmd $op" rows 6 $cmd $few -o "$op" "$@"
		done
	done
}
operations "sock msg" "msg tagged read write writedata" -e msg -p sock
operations "sock rdm" "msg tagged read write writedata" -e rdm -p sock
step "sock dgram bw" rows 1 bw -I 200 -e dgram -S 1024
step "sock dgram lat" rows 1 lat -I 200 -e dgram -S 1024 -v

operations "rxm msg tagged" "msg tagged read writedata" -e rdm -p 'sock;ofi_rxm'
step "rxm bw write" rows 6 bw -I 100 -w 5 -v -o write -e rdm -p 'sock;ofi_rxm'

# --- all that changes a run

step "all sizes" rows 46 bw -I 10 -w 0 -S all -o write
step "window" rows 6 bw $few -W 3 -o writedata
step "window of one" rows 6 bw $few -W 1 -o write
step "workqueue" rows 6 bw $few -C workqueue -o tagged -e rdm
step "endpoints" rows 6 bw $few -n 4 -o write
step "endpoints lat" rows 6 lat $few -n 3 -e rdm
step "no limit of time" rows 1 bw $few -T 0 -S 64
step "a CPU" rows 1 bw $few -c 0 -S 64
timed() {	# it takes the time that was asked for, and its windows are whole
	rows 1 bw -D 1 -S 4096 -o "$1" -W 8 && awk '/^4k/ { exit !($4 + 0 >= 1) }' /tmp/out
}
step "time" timed msg
step "time write" timed write
small_memory() {	# 1 MiB is a window of one
	server -M 1
	kofi bw -M 1 -j $few -S 1048576 $at >/tmp/out
	rc=$?
	wait "$server"
	cat /tmp/out
	[ $rc = 0 ] && grep -q '"window": 1$' /tmp/out
}
step "little memory" small_memory
document() {	# KIND FILE: it is as the schema has it
	jq -r --slurpfile schema "$VM/kofi.schema.json" --arg kind "$1" -f "$VM/schema.jq" \
		"$2" >/tmp/bad && cat /tmp/bad && [ ! -s /tmp/bad ]
}
json() {	# the numbers of both sides agree with each other
	server -j
	kofi lat -j $few -S 64 $at >/tmp/out
	rc=$?
	wait "$server" || rc=1
	cat /tmp/out /tmp/server
	[ $rc = 0 ] && document perf /tmp/out && document perf /tmp/server &&
		grep -q '"total": 12800' /tmp/out && grep -q '"total": 12800' /tmp/server &&
		! grep -q '"error"' /tmp/out &&
		awk '/"(min|p50|p90|p99|p99_9|max)"/ { gsub(/,/, ""); if ($2 < last) bad = 1; last = $2; n++ }
			END { exit bad || n != 6 || !last }' /tmp/out
}
step "json" json
progress() {
	server
	kofi bw --progress -D 2 -S 64 $at 2>&1 >/dev/null | tee /tmp/out
	wait "$server"
	grep -q '^64: .*, .* MB/sec$' /tmp/out
}
step "progress" progress
step "nothing left" retry no_objects

# --- runs that fail, each with a sentence and in order on both sides

fails() {	# TEXT COMMAND OPTION...: on the client
	text=$1
	shift
	server
	kofi "$@" $at >/tmp/out 2>&1
	rc=$?
	wait "$server"
	server_rc=$?
	cat /tmp/out /tmp/server
	[ $rc = 1 ] && [ $server_rc = 1 ] && grep -q "^kofi: .*$text" /tmp/out &&
		grep -q "^kofi: bw: " /tmp/server && retry no_objects
}
for op in msg tagged write writedata; do
	step "wrong contents $op" fails "transfer 17 of 256 bytes is wrong from byte 0" \
		bw -v --corrupt 17 -W 1 -S 256 -I 100 -o $op
	step "wrong contents rdm $op" fails "transfer 17 of 256 bytes is wrong from byte 0" \
		bw -v --corrupt 17 -W 1 -S 256 -I 100 -o $op -e rdm
done
step "wrong contents read" fails "transfer 1 of 256 bytes is wrong from byte 0" \
	bw -v --corrupt 17 -S 256 -I 100 -o read
step "wrong contents lat" fails "transfer 17 of 256 bytes is wrong" lat -v --corrupt 17 -S 256 -I 100
step "last write of a window" fails "transfer 24 of 256 bytes is wrong" \
	bw -v --corrupt 24 -w 0 -W 8 -S 256 -I 100 -o write
step "no provider" fails "no provider nosuch offers msg over msg endpoints" bw -p nosuch
step "no delivery complete" fails "no provider sock;ofi_rxm offers write .* FI_DELIVERY_COMPLETE" \
	lat -o write -e rdm -p 'sock;ofi_rxm'
step "much memory" fails "more memory than -M of the server" bw -M 1000 -S 1048576 -W 1000
step "no such CPU" fails "CPU 4000 is not online" bw -c 4000

moving() { [ "$(kofi stat ep | grep -c connected)" = "$1" ]; }
ended() {	# SIGNAL WHOSE OPTION...: one is ended in the middle, the other one notices
	signal=$1
	whose=$2
	shift 2
	server
	kofi bw -D 1000 "$@" $at >/tmp/out 2>&1 &
	client=$!
	retry moving 2 || return
	if [ "$whose" = client ]; then
		kill -"$signal" $client
	else
		kill -"$signal" "$server"
	fi
	wait $client
	rc=$?
	wait "$server"
	server_rc=$?
	cat /tmp/out /tmp/server
	case $signal:$whose in
	KILL:client) [ $server_rc = 1 ] && grep -Eq "gone|reset" /tmp/server ;;
	KILL:server) [ $rc = 1 ] && grep -Eq "gone|reset" /tmp/out ;;
	INT:client) [ $rc = 1 ] && [ $server_rc = 1 ] && grep -q interrupted /tmp/out ;;
	INT:server) [ $rc = 1 ] && [ $server_rc = 1 ] && grep -q interrupted /tmp/server ;;
	esac && retry no_objects
}
# few at a time: the one processor is for the programs, too
for op in msg write read; do
	for whose in client server; do
		step "killed $whose $op" ended KILL $whose -W 1 -S 64 -o $op
		step "interrupted $whose $op" ended INT $whose -W 1 -S 64 -o $op
	done
done
waiting() {	# a server that waits for a client
	server
	kill -INT "$server"
	wait "$server"
	rc=$?
	cat /tmp/server
	[ $rc = 1 ] && grep -q interrupted /tmp/server
}
step "interrupted waiting" waiting
step "nothing left of them" retry no_objects

# --- peers that are no kofi bw

says() {	# TEXT BYTES: what a server says to a client that sends that
	server -T 2
	printf '%b' "$2" | timeout 60 busybox nc 127.0.0.1 $PORT >/tmp/peer
	wait "$server"
	rc=$?
	cat /tmp/server /tmp/peer
	[ $rc = 1 ] && grep -q "$1" /tmp/server && no_objects
}
hello='kofi-perf 1\n'
step "hostile binary" says "it sends no text" '\001\002\003\004'
step "hostile long line" says "a line of more than" "$(printf '%02000d' 0)"
step "hostile greeting" says "instead of" 'GET / HTTP/1.0\n'
step "hostile version" says "instead of" 'kofi-perf 2\n'
step "hostile verb" says "makes no sense" "${hello}frobnicate\n"
step "hostile numbers" says "makes no sense" "${hello}run 0 0 0 0 64 1 64 10\n"
step "hostile type" says "makes no sense" "${hello}run 9 0 0 0 64 1 64 10 0 0 -\n"
step "hostile flags" says "makes no sense" "${hello}run 0 0 1 0 64 1 64 10 0 0 -\n"
step "hostile endpoints" says "makes no sense" "${hello}run 0 0 0 0 64 1000 64 10 0 0 -\n"
step "hostile size" says "makes no sense" "${hello}run 0 0 0 0 64 1 99999999999999 10 0 0 -\n"
step "hostile flag bits" says "Invalid argument" "${hello}run 0 0 4096 0 64 1 64 10 0 0 -\n"
step "hostile pingpong" says "Invalid argument" "${hello}run 0 3 2 0 64 1 64 10 0 0 -\n"
run="${hello}run 0 0 0 0 64 1 64 10 0 0 -\n"
step "hostile address" says "makes no sense" "${run}ep xyz\n"
step "hostile long address" says "makes no sense" "${run}ep $(printf '%0100d' 0)\n"
step "hostile address of an endpoint" says "Address family not supported" \
	"${hello}run 1 0 0 0 64 1 64 10 0 0 sock\nep 0a00\n"
step "hostile end" says "gone" "${run}ep -\n"
step "hostile silence" says "Connection timed out\|does not answer\|gone" "$run"

# --- wrong usage

misused() {	# TEXT OPTION...
	text=$1
	shift
	expect_status 2 kofi "$@" >/tmp/out 2>&1
	rc=$?
	cat /tmp/out
	[ $rc = 0 ] && grep -q -e "$text" /tmp/out
}
step "usage operation" misused '-o does not take "atomic"' bw -o atomic $at
step "usage size" misused "-S takes a number from 1" bw -S 0 $at
step "usage servers" misused "one server too many" bw a b
step "usage window" misused "-W goes with kofi bw alone" lat -W 3 $at
step "usage of a server" misused "-o is an option of the client" bw -o write
step "usage of a client" misused "-B is an option of the server" bw -B 5 $at
step "usage datagrams" misused "-e dgram goes with -o msg" bw -e dgram -o read $at
step "usage corrupt" misused "--corrupt goes with -v" bw --corrupt 3 $at
step "usage both limits" misused "either -I or -D" bw -I 3 -D 3 $at
no_server() { expect_output "Connection refused" sh -c "kofi bw $at 2>&1; [ \$? = 1 ]"; }
step "no server" no_server
unprivileged() {
	chmod 666 /dev/kofi_perf
	server
	setpriv --reuid 65534 --clear-groups --bounding-set -all kofi bw $at >/tmp/out 2>&1
	rc=$?
	chmod 600 /dev/kofi_perf
	wait "$server"
	cat /tmp/out
	[ $rc = 1 ] && grep -q "not permitted" /tmp/out
}
step "unprivileged" unprivileged

# --- kofi check

checks() {	# STATUS TEXT OPTION...
	status=$1
	text=$2
	shift 2
	expect_status "$status" kofi check "$@" >/tmp/out 2>&1
	rc=$?
	cat /tmp/out
	[ $rc = 0 ] && grep -q -e "$text" /tmp/out && no_objects
}
step "check" checks 0 "sock  *lo  *msg  *127.0.0.1: messages and writes verified" -p sock
step "check rdm" checks 0 "sock;ofi_rxm *lo *rdm *127.0.0.1: messages and writes verified"
step "check dgram" checks 0 "sock *lo *dgram *127.0.0.1: messages verified" -d lo
check_json() { checks 0 '"error": null$' -j && document check /tmp/out; }
step "check json" check_json
step "check no provider" checks 1 "the provider nosuch is not loaded; try: modprobe kofi_nosuch" -p nosuch
step "check no domain" checks 1 "there is no domain eth7" -d eth7
forbidden() {	# a rule in front of the table of the machine's own addresses
	ip rule add pref 100 lookup local && ip rule del pref 0 && ip rule add pref 50 to 127.0.0.1 prohibit ||
		return
	checks 1 "sock *lo *msg *127.0.0.1: FAILED: msg msg: .*; is there a route" -p sock
	rc=$?
	ip rule add pref 0 lookup local
	ip rule del pref 100
	ip rule del pref 50
	[ $rc = 0 ] && checks 0 "messages and writes verified" -p sock
}
step "check forbidden" forbidden
dropped() {	# a filter drops all of TCP that the machine sends to itself
	tc qdisc add dev lo clsact &&
		tc filter add dev lo egress protocol ip u32 match ip protocol 6 0xff action drop ||
		return
	checks 1 "sock *lo *msg *127.0.0.1: FAILED: msg msg: .*timed out; does a firewall rule" -p sock
	rc=$?
	tc qdisc del dev lo clsact
	[ $rc = 0 ] && checks 0 "messages and writes verified" -p sock
}
step "check dropped" dropped
nowhere() {	# no interface is up
	ip netns add nowhere && ip netns exec nowhere kofi check >/tmp/out 2>&1
	rc=$?
	cat /tmp/out
	ip netns del nowhere
	[ $rc = 1 ] && grep -q "no interface is up and has an address" /tmp/out
}
step "check nowhere" nowhere
without() {
	rmmod kofi_perf || return
	PATH=/nonexistent "$(command -v kofi)" check -p sock >/tmp/out 2>&1
	rc=$?
	cat /tmp/out
	[ $rc = 1 ] && grep -q "the module kofi_perf is not loaded" /tmp/out
}

# --- devices that talk to themselves

load kofi_verbs || exit
step "check no device" checks 1 "there is no RDMA device; see: rdma link" -p verbs
step "make rxe" rdma_link rxe rxe 10.99.1.1
at=10.99.1.1
few="-I 10 -w 2 -v"
operations "rxe" "msg read write writedata" -p verbs -d rxe
step "check rxe" checks 0 "verbs *rxe *msg *10.99.1.1: messages and writes verified"
operations "rxe rxm" "msg tagged read writedata" -p 'verbs;ofi_rxm' -e rdm -d rxe
step "rxe long" rows 1 bw -I 4 -w 0 -o write -v -W 1 -S 8388608 -p verbs
step "rxe many" rows 1 bw -I 64 -w 8 -o write -v -S 1572864 -p verbs
step "rxe long message" rows 1 bw -I 4 -w 0 -o msg -v -S 8388608 -p verbs
step "rxe wrong contents" fails "transfer 17 of 256 bytes is wrong from byte 0" \
	bw -v --corrupt 17 -W 1 -S 256 -I 100 -o write -p verbs
step "make siw" rdma_link siw siw 10.99.2.1
at=10.99.2.1
operations "siw" "msg read" -p verbs -d siw
step "siw long message" rows 1 bw -I 4 -w 0 -o msg -v -S 8388608 -p verbs
fragmented() {	# VICTIM: this side gets single pages, and the list stops at the first long size
	fault=/sys/kernel/debug/fail_page_alloc
	echo Y >$fault/task-filter && echo N >$fault/ignore-gfp-wait && echo 0 >$fault/verbose &&
		echo 4 >$fault/min-order && echo -1 >$fault/times &&
		echo 100 >$fault/probability || return
	[ "$1" = server ] && victim=1 || victim=0
	sh -c "echo $victim >/proc/self/make-it-fail; exec kofi bw" >/tmp/server 2>&1 &
	server=$!
	retry listens $PORT
	sh -c "echo $((!victim)) >/proc/self/make-it-fail
		exec kofi bw -S all -I 4 -w 0 -o msg -v -p verbs $at" >/tmp/out 2>&1
	rc=$?
	echo 0 >$fault/probability
	wait $server
	server_rc=$?
	cat /tmp/out /tmp/server
	[ $rc = 0 ] && [ $server_rc = 0 ] && [ "$(grep -c '^[0-9]' /tmp/out)" -ge 20 ] &&
		grep -q "^kofi: bw ends here: .* are more segments than one message takes" /tmp/out
}
step "siw client fragmented" fragmented client
step "siw server fragmented" fragmented server
step "siw bw write" rows 6 bw $few -o write -p verbs
step "siw no data" fails "no provider verbs offers writedata" bw -o writedata -p verbs
operations "siw rxm" "msg tagged read" -p 'verbs;ofi_rxm' -e rdm -d siw
step "check siw" checks 0 "verbs;ofi_rxm *siw *rdm *10.99.2.1: messages and writes verified"
step "nothing left of devices" retry no_objects
step "remove rxe" rdma link delete rxe
step "remove siw" rdma link delete siw
step "without the module" without

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# A client of the target that breaks the rules of the protocol, on a volume on a
# device, over sockets and over RDMA, on one on a file, and on one that is read-only.
# Around each there are bytes that must not change; another client must not notice
# anything. Then targets that break the rules, one in three of them over RDMA: their
# volumes give I/O errors, and work when they keep to them; another volume must not
# notice anything.

. "$VM/steps.sh"

export SOCK=127.0.0.1 VERBS=10.99.1.1
# commands of a client, on each volume, targets, and faults of each; wrong exchanges of
# proofs with a client, and with a target; damaged commands and answers with digests
case $VM_SOAK in
1) COUNT=33334 TARGETS=6 FAULTS=1000 EXCHANGES=100000 PROOFS=5000 DAMAGES=10000 ANSWERS=50 ;;
*) COUNT=500 TARGETS=3 FAULTS=6 EXCHANGES=1000 PROOFS=200 DAMAGES=100 ANSWERS=3 ;;
esac
MIB=4	# of a volume, and on either side of it

# A device that is the middle of a file of random bytes
guarded() {	# NAME
	dd if=/dev/urandom of="/tmp/$1.img" bs=1M count=$((3 * MIB)) status=none &&
		losetup -f --show -o ${MIB}M --sizelimit ${MIB}M "/tmp/$1.img" \
			>"/tmp/$1.dev" && cp "/tmp/$1.img" "/tmp/$1.was"
}

# The same for a file: it must neither grow nor shrink.
whole() {	# NAME
	dd if=/dev/urandom of="/tmp/$1.img" bs=1M count=$MIB status=none &&
		echo "/tmp/$1.img" >"/tmp/$1.dev"
}

setup() {
	load kofi_sock kofi_verbs kofi_blk kofi_blkt && configfs && ip link set lo up &&
		rdma_link rxe rxe $VERBS || return
	guarded wild && guarded ro && whole file && backing calm 8 || return
	volume wild && volume ro readonly=1 && volume file discard=1 && volume calm &&
		ports && map m calm sock
}

part() {	# FILE PART: the bytes before (0), of (1) or behind (2) the volume
	dd if="$1" bs=${MIB}M skip="$2" count=1 status=none
}

same_part() {	# NAME PART
	part "/tmp/$1.was" "$2" >/tmp/was && part "/tmp/$1.img" "$2" | cmp - /tmp/was
}

unharmed() {	# VOLUME
	sync
	case $1 in
	file) [ "$(stat -c %s /tmp/file.img)" = $((MIB << 20)) ] ;;
	ro) cmp /tmp/ro.img /tmp/ro.was ;;
	*) same_part "$1" 0 && same_part "$1" 2 && expect_fail same_part "$1" 1 ;;
	esac
}

# Bytes there and back through the honest client's connection, until told
calm() {	# DEVICE
	while [ ! -e /tmp/stop ]; do
		dd if=/dev/urandom of=/tmp/in bs=64k count=4 status=none &&
			dd if=/tmp/in of="$1" bs=64k oflag=direct conv=notrunc status=none &&
			dd if="$1" of=/tmp/out bs=64k count=4 iflag=direct status=none &&
			cmp /tmp/in /tmp/out || return
	done
}

seed() { od -An -N7 -tu8 /dev/urandom | tr -d ' '; }

# On two CPUs, rdma_rxe goes on to use a queue pair after it has passed a packet on, which
# may be what has kept it (rxe_resp_queue_pkt()). Connections that end in the middle of
# messages meet it within minutes under KASAN.
over_rdma() { [ "$VM_KERNEL" != debug ]; }

address() { case $1 in sock) echo "$SOCK" ;; *) echo "$VERBS" ;; esac; }

hostile() {	# VOLUME PROVIDER
	seed=$(seed)
	disk=$(device m)
	rm -f /tmp/stop
	dmesg -c >/dev/null
	calm "$disk" &
	job=$!
	kofi-blk-peer "$(of_userspace "$2")" "$(address "$2")" 4421 "$1" $COUNT "$seed"
	status=$?
	touch /tmp/stop
	wait $job && [ $status = 0 ] && unharmed "$1" || return
	state m live && ! dmesg | grep "kofi_blk: .*connection lost"
}

# --- targets ---

# All that a request can end with: fio goes on after EIO alone, unless told.
ERRORS=EIO:ENODEV:ENOSPC:ENOMEM:61:67:84:95:110:121

# The commands are fio's. It opens the device again and again: flushes of one who has it
# open fail at once from the first loss on.
load_of() {	# NUMBER
	until [ -e "/tmp/enough.$1" ]; do
		fio --name=bad --filename="$(device "bad$1")" --direct=1 --ioengine=libaio \
			--rw=randrw --bsrange=512-64k --blockalign=512 --iodepth=8 \
			--rate_iops=80 --continue_on_error=all --ignore_error=$ERRORS,$ERRORS \
			--time_based --runtime=5 --end_fsync=1 --thread --minimal
	done
}

bad_target() {	# NUMBER
	provider=sock
	[ $(($1 % 3)) != 0 ] || ! over_rdma || provider=verbs
	port=$((4500 + $1))
	kofi-blk-target "$(of_userspace $provider)" "$(address $provider)" $port 4 $FAULTS \
		"$(seed)" >"/tmp/target.$1" 2>&1 &
	echo $! >"/tmp/target.pid.$1"
	retry listens_over $provider $port &&
		retry map "bad$1" any $provider port=$port path_timeout=4 io_timeout=2 || return
	rm -f "/tmp/enough.$1"
	load_of "$1" >"/tmp/fio.$1" 2>&1 &
	echo $! >"/tmp/fio.pid.$1"
}

honest() { grep -q "^honest$" "/tmp/target.$1"; }
faults() { grep -c "^fault" "/tmp/target.$1"; }
gone() { ! grep -q "^State:.[^Z]" "/proc/$1/status"; }
goes_on() { honest "$1" || [ "$(faults "$1")" != "$was" ]; }

# What is where, of a target that does not go on
stuck() {	# NUMBER
	echo "target $1 does not go on after $(faults "$1") faults"
	cat "$CLIENT/bad$1/state" "/sys/block/$(basename "$(device "bad$1")")/inflight"
	for pid in $(cat "/tmp/target.pid.$1") $(pidof fio); do
		for task in "/proc/$pid/task"/*; do
			echo "$task $(cat "$task/comm" "$task/wchan") $(grep State "$task/status")"
		done
	done
	tail -5 "/tmp/target.$1" "/tmp/fio.$1"
	echo w >/proc/sysrq-trigger
	return 1
}

# Each command has ended, and a target that is honest now is a disk like others.
good_again() {	# NUMBER
	until honest "$1"; do
		was=$(faults "$1")
		retry goes_on "$1" || stuck "$1" || return
	done
	grep -v "^fault" "/tmp/target.$1"
	touch "/tmp/enough.$1"
	retry gone "$(cat "/tmp/fio.pid.$1")" || stuck "$1" || return
	bad=$(device "bad$1")
	retry quiet "$bad" && retry state "bad$1" live &&
		verify "$bad" --iodepth=8 --io_size=2m
}

# One trace of all of them, as far as it has room for that; in soak it has not
bad_targets() {
	disk=$(device m)
	rm -f /tmp/stop
	dmesg -c >/dev/null
	[ "$VM_SOAK" = 1 ] || trace_requests || return
	calm "$disk" &
	job=$!
	for n in $(seq $TARGETS); do bad_target "$n" || return; done
	for n in $(seq $TARGETS); do good_again "$n" || return; done
	touch /tmp/stop
	wait $job || return
	# shellcheck disable=SC2046
	[ "$VM_SOAK" = 1 ] ||
		requests_complete_once "$disk" $(for n in $(seq $TARGETS); do device "bad$n"; done) ||
		return
	for n in $(seq $TARGETS); do
		unmap "bad$n" && kill "$(cat "/tmp/target.pid.$n")" || return
	done
	# unlike that a connection is lost, this is said however often it happens
	state m live && ! dmesg | grep "kofi_blk: ${disk#/dev/}: connected again"
}

# Reads that get less than they ask for fail, however the client learns of it. The
# target likes 64 MiB best, which the client does not take over: it would read ahead.
short_reads() {	# PROVIDER BYTES
	kofi-blk-target "$(of_userspace "$1")" "$(address "$1")" 4499 4 0 1 "$2" &
	target=$!
	retry listens_over "$1" 4499 && retry map short any "$1" port=4499 || return
	disk=$(device short)
	[ "$(limit "$disk" optimal_io_size)" = 0 ] && [ "$(limit "$disk" read_ahead_kb)" -le 8192 ] &&
		direct /dev/urandom "$disk" &&
		expect_fail dd if="$disk" of=/dev/null bs=4k count=1 iflag=direct &&
		{ [ "$2" != 0 ] || expect_fail dd if="$disk" of=/dev/null bs=64k count=1 iflag=direct; } &&
		{ [ "$2" = 0 ] || dd if="$disk" of=/dev/null bs=512 count=1 iflag=direct; } &&
		state short live && unmap short && kill $target
}

# Whoever knows a session's number ends it from its own address alone.
lost() { dmesg | grep -q "kofi_blk: .*connection lost"; }
takeover() {
	ip addr add 127.0.0.2/32 dev lo && port other 127.0.0.2 sock || return
	session=$(sed -n 's/.* session=\([0-9a-f]*\) .*/\1/p' $TARGET/volumes/calm/clients)
	dmesg -c >/dev/null
	kofi-blk-peer tcp 127.0.0.2 4421 calm takeover "$session" &&
		target_refused "another address has the session" &&
		direct /dev/zero "$(device m)" && state m live && expect_fail lost || return
	kofi-blk-peer tcp "$SOCK" 4421 calm inherit "$session" && retry lost &&
		retry state m live && port_gone other
}

# --- authentication ---

auth_keys() {
	dd if=/dev/urandom of=/tmp/key bs=32 count=1 status=none &&
		dd if=/dev/urandom of=/tmp/key2 bs=128 count=1 status=none || return
	for ring in %:.kofi_blk %:.kofi_blkt; do
		keyctl padd logon kofi:host1 $ring </tmp/key &&
			keyctl padd logon kofi:host2 $ring </tmp/key2 || return
	done
	backing auth 8 && volume auth allow=id:host1=kofi:host1,id:host2=kofi:host2
}

# No wrong exchange is welcome, and all right ones in between are.
auth_client() {	# PROVIDER EXCHANGES
	dmesg -c >/dev/null
	kofi-blk-peer "$(of_userspace "$1")" "$(address "$1")" 4421 auth auth host1 /tmp/key \
		"$2" "$(seed)" && direct /dev/zero "$(device m)" && state m live && ! lost &&
		map n auth "$1" identity=host2 key=kofi:host2 && direct /dev/zero "$(device n)" &&
		unmap n
}

# A client accepts no target that does not prove itself, and the first one that does.
auth_target() {	# PROVIDER EXCHANGES
	port=$((4600 + ${#1}))
	kofi-blk-target "$(of_userspace "$1")" "$(address "$1")" $port 4 "$2" "$(seed)" \
		auth /tmp/key >/tmp/target.auth 2>&1 &
	target=$!
	retry listens_over "$1" $port || return
	refusals=0
	until map proofs any "$1" port=$port identity=host1 key=kofi:host1 2>/dev/null; do
		refusals=$((refusals + 1))
		# the target makes no more of them
		[ $refusals -gt "$2" ] && return 1
		gone $target && cat /tmp/target.auth && return 1
	done
	echo "$refusals wrong exchanges of a target are refused"
	[ $refusals = "$2" ] && verify "$(device proofs)" --io_size=256k && unmap proofs &&
		kill $target
}

# With identities, the same one ends its session from anywhere. The number of a session is of
# no use to another one: it has a session of its own by that number.
auth_takeover() {
	ip addr add 127.0.0.2/32 dev lo 2>/dev/null
	port other 127.0.0.2 sock && map n auth sock identity=host1 key=kofi:host1 || return
	session=$(sed -n 's/.* session=\([0-9a-f]*\) .*/\1/p' $TARGET/volumes/auth/clients)
	dmesg -c >/dev/null
	kofi-blk-peer tcp "$SOCK" 4421 auth apart "$session" host2 /tmp/key2 &&
		direct /dev/zero "$(device n)" && state n live && expect_fail lost || return
	kofi-blk-peer tcp 127.0.0.2 4421 auth inherit "$session" host1 /tmp/key && retry lost &&
		retry state n live && unmap n && port_gone other
}

# --- digests ---

# A damaged command has no effect and no answer, and right ones in between have both.
damaged_commands() {	# PROVIDER FAULTS
	dmesg -c >/dev/null
	was=$(stat_of wild digest_errors)
	kofi-blk-peer "$(of_userspace "$1")" "$(address "$1")" 4421 wild digest "$2" "$(seed)" &&
		state m live && ! lost && unharmed wild &&
		dmesg | grep -q "kofi_blkt: .* wild: wrong digest of a command, connection ended" &&
		[ "$(stat_of wild digest_errors)" -gt "$was" ]
}

# A client uses no damaged answer and no damaged data, and sends each command again.
damaged_answers() {	# PROVIDER FAULTS
	port=$((4700 + ${#1}))
	kofi-blk-target "$(of_userspace "$1")" "$(address "$1")" $port 4 "$2" "$(seed)" digest \
		>/tmp/target.digest 2>&1 &
	target=$!
	retry listens_over "$1" $port && map sums any "$1" port=$port digest=required &&
		disk=$(device sums) || return
	until grep -q "^honest$" /tmp/target.digest; do
		verify "$disk" --io_size=512k --iodepth=4 || return
		gone $target && cat /tmp/target.digest && return 1
	done
	verify "$disk" --io_size=512k --iodepth=4 && [ "$(client_stat sums digests)" = 1 ] &&
		[ "$(client_stat sums digest_errors)" = "$2" ] && unmap sums && kill $target
}

damaged() { grep -c "to $1$" /tmp/relay; }
write_all() {
	dd if=/tmp/pattern of="$disk" bs=64k oflag=direct conv=notrunc status=none &&
		cmp /tmp/pattern /tmp/path.img
}
read_all() {
	dd if="$disk" of=/tmp/out bs=64k iflag=direct status=none && cmp /tmp/pattern /tmp/out
}

# Until some data to the target was damaged, and some to the client
both_ways() {	# COMMAND OF EACH ROUND
	writes=$(($(damaged target) + 2)) reads=$(($(damaged client) + 2))
	until [ "$(damaged target)" -ge $writes ] && [ "$(damaged client)" -ge $reads ]; do
		"$@" || return
	done
}

seen_wrong=0
use_damaged() {
	write_all >/dev/null || seen_wrong=$((seen_wrong | 1))
	# the volume has the pattern, so each difference is of the read
	dd if=/tmp/pattern of=/tmp/path.img bs=64k conv=notrunc status=none &&
		{ read_all >/dev/null || seen_wrong=$((seen_wrong | 2)); }
}
use_none() { write_all && read_all; }

# A host on the path flips bits of data, and no layer below notices.
on_path() {
	tr '\0' '\245' </dev/zero | head -c 1M >/tmp/pattern
	backing path 1 && volume path || return
	kofi-blk-relay 4800 4421 0xa5 >/tmp/relay &
	echo $! >/tmp/relay.pid
	retry listens 4800
}
path_without_digests() {
	on_path && map p path sock port=4800 && disk=$(device p) && both_ways use_damaged &&
		[ $seen_wrong = 3 ] && [ "$(client_stat p digests)" = 0 ] && unmap p
}
path_with_digests() {
	map p path sock port=4800 digest=required && disk=$(device p) || return
	to_target=$(damaged target) to_client=$(damaged client)
	both_ways use_none &&
		[ "$(stat_of path digest_errors)" = $(($(damaged target) - to_target)) ] &&
		[ "$(client_stat p digest_errors)" = $(($(damaged client) - to_client)) ] &&
		unmap p && kill "$(cat /tmp/relay.pid)" && volume_gone path
}

# A device takes four requests and then waits. So the target waits with the fifth command,
# and reads the sixth one only when the connection has been reset. It must not start it.
LATE=127.0.0.3
late_device() {
	backing below 4 && dmsetup create late --table "0 8192 linear $(cat /tmp/below.dev) 0" &&
		dmsetup mknodes late &&
		losetup -f --show --direct-io=on /dev/mapper/late >/tmp/late.dev || return
	queue=/sys/block/$(basename "$(cat /tmp/late.dev)")/queue
	echo none >"$queue/scheduler" && echo 4 >"$queue/nr_requests"
}
# The state of its endpoint, and the messages that it has received
of_late() {
	kofi stat ep | awk -v at="$LATE:4421" '
		$2 == "ep" { of_it = $5 == "kofi_blkt" && $7 == at; state = $6 }
		of_it && $1 == "rx_completions:" { print state, $2 }'
}
received() { [ "$(of_late)" = "connected $1" ]; }
is_reset() { of_late | grep ^shutdown && ! kofi stat eq | grep 'waiting: [1-9]'; }
unused() { [ "$(stat_of "$1" connections)" = 0 ]; }
started() { dd if=/tmp/below.img bs=16k skip="$1" count=1 status=none | head -c 4096 | cmp -s /tmp/ff -; }

not_started() {
	late_device && volume late && ip addr add $LATE/32 dev lo && port late $LATE sock &&
		head -c 4096 /dev/zero | tr '\0' '\377' >/tmp/ff && mkfifo /tmp/cue &&
		dmsetup suspend --nolockfs late || return
	kofi-blk-peer tcp $LATE 4421 late reset 6 <>/tmp/cue >/tmp/sent &
	peer=$!
	# a message of the login, and six commands
	retry received 7 && grep -x sent /tmp/sent && echo >/tmp/cue && wait $peer &&
		retry is_reset && dmsetup resume late && retry unused late || return
	for n in 5 4 3 2; do started $n || return; done
	expect_fail started 0 && port_gone late && volume_gone late &&
		losetup -d "$(cat /tmp/late.dev)" && dmsetup remove late
}

ends() { unmap m && target_gone && modules_gone; }

step begin setup || exit
for volume in wild file ro; do
	step "$volume" hostile $volume sock
	cat /tmp/.step
done
if over_rdma; then
	step wild-verbs hostile wild verbs
	cat /tmp/.step
else
	skip wild-verbs "rdma_rxe uses queue pairs that are gone"
fi
check targets bad_targets
cat /tmp/.check
for provider in sock verbs; do
	over_rdma || [ $provider = sock ] || continue
	step "$provider data-missing" short_reads $provider 0
	step "$provider data-short" short_reads $provider 512
done
step takeover takeover
step auth-keys auth_keys
step auth-client auth_client sock $EXCHANGES
cat /tmp/.step
step auth-target auth_target sock $PROOFS
cat /tmp/.step
if over_rdma; then
	step auth-client-verbs auth_client verbs $((EXCHANGES / 10))
	step auth-target-verbs auth_target verbs $((PROOFS / 10))
fi
step auth-takeover auth_takeover
step damaged-commands damaged_commands sock $DAMAGES
cat /tmp/.step
step damaged-answers damaged_answers sock $ANSWERS
# An answer that is a message invalidates a key of the client, which a program does not have.
if over_rdma; then step damaged-answers-verbs damaged_answers verbs $ANSWERS; fi
step path-without-digests path_without_digests
step path-with-digests path_with_digests
step not-started not_started
step end ends
step nothing-left retry no_objects

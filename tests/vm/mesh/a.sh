# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Both machines do the same. Half of the endpoints are in each, and all of them send
# messages, tagged ones too, to all others, and read, write and do atomic operations in
# their memory, for ten minutes over each provider. One of b's is closed and opened
# again every second. Then b is switched off meanwhile and on again, over each provider.

MINUTES=10
DEATHS=4	# over each provider
ROOM=16384
# KASAN keeps what has been given back, up to a 32nd of the memory
[ "$VM_KERNEL" != debug ] ||
	ROOM=$((ROOM + $(awk '$1 == "MemTotal:" { print $2 }' /proc/meminfo) / 32))

# What kofi_testmesh has to say; the machine may not ever have as much less memory
# than when all had met (room): sockets, packets and stored messages take a fifth,
# however long it goes on.
mesh() {	# PROVIDER DEVICE ROOM PARAM=VALUE...
	dmesg -c >/dev/null
	prov=$1
	device=$2
	room=$3
	shift 3
	load kofi_testmesh "prov=$prov" "device=$device" hosts=10.0.0.1,10.0.0.2 \
		"here=$((VM_INDEX - 1))" "room=$room" "$@"
	rc=$?
	dmesg | sed -n 's/.*kofi_testmesh: //p'
	return $rc
}

left() {	# STEP: of a mesh that has ended
	unload kofi_testmesh
	step "$1 nothing-left" retry no_objects
}

# An RDMA device is there as long as it is used.
make_device() { [ "$1" = eth0 ] || step "make $1" rdma link add "$1" type "$1" netdev eth0; }
remove_device() { [ "$1" = eth0 ] || step "remove $1" rdma link delete "$1"; }

each() {	# COMMAND...: over each provider and device
	"$@" sock eth0
	"$@" "sock;ofi_rxm" eth0
	"$@" "verbs;ofi_rxm" rxe
	[ "$VM_KERNEL" != debug ] || "$@" "verbs;ofi_rxm" siw
}

over() {	# PROVIDER DEVICE
	make_device "$2" || exit
	step "$2 $1" mesh "$1" "$2" $ROOM ms=$((MINUTES * 60000))
	cat /tmp/.step
	# the endpoints are still open: what is under way to the other machine arrives
	sync "$2 $1"
	left "$2 $1"
	sync "$2 $1 over"
	remove_device "$2"
}

# --- b is switched off ---

# What a's members have under way to those of b ends, once each, with an error; between
# themselves all is as ever; and they go on with the members that b has when it is on
# again. The last of these end first, and those of a post until then. b's script begins
# anew with each boot: those up to $last are over the provider that is under way.

last=1

total() { kofi stat ep 2>/dev/null | awk -v name="$1" '$1 == name ":" { n += $2 } END { print n + 0 }'; }
more() { [ -d /sys/module/kofi_testmesh ] && [ "$(total "$1")" -ge "$2" ]; }

# All of it has ended with an error, half of 16 operations of each of four members, while
# these go on among themselves.
off() {
	failed=$(($(total tx_errors) + 32))
	kill_machine b && retry more tx_errors $failed &&
		retry more rx_completions $(($(total rx_completions) + 500))
}

# It is on again before a limit of time has passed, unless the host is slow.
off_on() { kill_machine b; }

dies() {	# PROVIDER DEVICE
	# sockets hold what was under way until it has ended
	mesh "$1" "$2" $((2 * ROOM)) ms=86400000 deaths=$DEATHS >/tmp/mesh 2>&1 &
	pid=$!
	boot=$((last - DEATHS))
	while [ $boot -lt $last ]; do
		wait_for "flows $boot" || break
		case $((boot % 2)) in
		1) check "$2 $1 b-off $boot" off ;;
		*) check "$2 $1 b-off-on $boot" off_on ;;
		esac
		start_machine b || break
		boot=$((boot + 1))
	done
	wait_for "ended $last"
	echo 1 >/sys/module/kofi_testmesh/parameters/stop
	wait $pid
	check "$2 $1 a-stays" [ $? = 0 ]
	cat /tmp/mesh
}

lives() {	# PROVIDER DEVICE
	life=$((VM_BOOT - last + DEATHS))
	if [ $life = $DEATHS ]; then
		step "$2 $1 b-back" mesh "$1" "$2" $ROOM ms=30000 deaths=$DEATHS life=$life
		cat /tmp/.step
		return
	fi
	mesh "$1" "$2" $ROOM ms=86400000 deaths=$DEATHS life=$life >/tmp/mesh 2>&1 &
	pid=$!
	# all have met: what it takes for that is far less
	check "$2 $1 b-flows $VM_BOOT" retry more tx_bytes 10000000 && signal "flows $VM_BOOT"
	wait $pid
	cat /tmp/mesh
	fail "$2 $1 b-ends $VM_BOOT" "before it is switched off"
	exit
}

deaths() {	# PROVIDER DEVICE
	# TCP below it waits for an answer for minutes
	[ "$2" != siw ] || return 0
	last=$((last + DEATHS))
	[ "$VM_BOOT" -le $last ] || return
	make_device "$2" || exit
	case $VM_NAME in
	a) dies "$@" ;;
	b) lives "$@" ;;
	esac
	left "$2 $1 b-off"
	[ "$VM_NAME" = a ] || signal "ended $last"
	sync "$2 $1 b-off"
	remove_device "$2"
}

# Messages without a receive take no more than this of kofi_rxm: 128 buffers of 20 KiB in
# each of four endpoints at most, which is less than the room.
load kofi_sock kofi_verbs && load kofi_rxm held_bufs=64 || exit
[ "$VM_BOOT" -gt 1 ] || each over
each deaths

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The target is in a network namespace t of its own. Mapping a reaches it through a
# router r, which forwards packets or drops them silently; mapping b, another host's,
# has a cable of its own. A write through a fails while r drops its packets. A write
# through b succeeds, and then r forwards again. From then on the device has to keep
# the second write.

. "$VM/steps.sh"

# seconds for which the device is watched: TCP repeats what it has within that time
WATCH=12
[ "$VM_SOAK" != 1 ] || WATCH=40

ns() { ns=$1; shift; nsenter --net=/run/netns/"$ns" "$@"; }

cable() {	# FROM-NS END ADDRESS TO-NS END ADDRESS; "here" is the machine's own
	ip link add "$2" type veth peer name "$5" || return
	for c_end in "$1 $2 $3" "$4 $5 $6"; do
		# shellcheck disable=SC2086 # three words
		set -- $c_end
		c_in=
		[ "$1" = here ] || { ip link set "$2" netns "$1" && c_in="ns $1"; } || return
		$c_in ip addr add "$3/24" dev "$2" && $c_in ip link set "$2" up || return
	done
}

net() {
	ip netns add r && ip netns add t && ns t ip link set lo up &&
		cable here c0 10.7.1.2 r r0 10.7.1.1 &&
		cable r r1 10.7.2.2 t t0 10.7.2.1 &&
		cable here c1 10.8.1.2 t t1 10.8.1.1 &&
		ns t ip route add 10.7.1.0/24 via 10.7.2.2 &&
		ip route add 10.7.2.0/24 via 10.7.1.1 && forward 1
}

forward() { ns r sh -c "echo $1 >/proc/sys/net/ipv4/ip_forward"; }

port_of_t() {
	port=$TARGET/ports/p
	mkdir "$port" && echo sock >"$port/provider" && echo 0.0.0.0 >"$port/addr" &&
		ln -s "$TARGET/volumes/vol0" "$port/volumes" && ns t sh -c "echo 1 >$port/enable"
}

setup() {
	load kofi_sock kofi_blk kofi_blkt && configfs && net && backing vol0 16 &&
		volume vol0 && port_of_t || return
	head -c 1048576 /dev/zero >/tmp/data.zero
	yes old | head -c 1048576 >/tmp/data.old
	yes new | head -c 1048576 >/tmp/data.new
}

map_at() {	# NAME ADDRESS [ATTRIBUTE=VALUE...]
	m_name=$1 SOCK=$2
	shift 2
	map "$m_name" vol0 sock uuid="$(uuid_of vol0)" "$@"
}

put() {		# DATA DEVICE BYTES
	dd if="/tmp/data.$1" of="$2" bs="$3" count=1 oflag=direct conv=notrunc status=none
}

is_new() {	# BYTES: of the device itself
	dd if="$(cat /tmp/vol0.dev)" of=/tmp/now bs="$1" count=1 iflag=direct status=none &&
		head -c "$1" /tmp/data.new | cmp -s - /tmp/now
}

old_op() {	# KIND BYTES DEVICE
	case $1 in
	write) put old "$3" "$2" ;;
	discard) blkdiscard -f -o 0 -l "$2" "$3" ;;
	zeroes) blkdiscard -f -z -o 0 -l "$2" "$3" ;;
	esac
}

ms() { read -r up _ </proc/uptime; echo $(($(echo "$up" | tr -d .)0 - ${1:-0})); }

stays_new() {	# BYTES
	until=$(($(ms) + WATCH * 1000))
	while [ "$(ms)" -lt $until ]; do
		is_new "$1" || { echo "the device lost the newer data"; return 1; }
		sleep 0.1
	done
}

late() {	# KIND BYTES TIMEOUT HEAL(ms after the cut) UNMAP(no, failed, now)
	retry map_at b 10.8.1.1 host=other && retry map_at a 10.7.2.1 io_timeout=1 path_timeout="$3" || return
	a=$(device a) b=$(device b)
	put zero "$b" 1048576 && put zero "$a" 4096 || return
	[ "$1" = write ] || put new "$b" "$2" || return
	t0=$(ms)
	forward 0
	old_op "$1" "$2" "$a" &
	job=$!
	retry waits_for "$a" || return
	[ "$5" != now ] || unmap a force || return
	! wait $job || { echo "the $1 through a succeeded without a network"; return 1; }
	[ "$5" != failed ] || unmap a force || return
	put new "$b" "$2" && flush "$b" && is_new "$2" || return
	while [ "$(ms "$t0")" -lt "$4" ]; do sleep 0.05; done
	forward 1
	stays_new "$2" || return
	[ ! -d "$CLIENT/a" ] || unmap a || return
	unmap b
}

# A request of this device is outstanding
waits_for() { ! quiet "$1"; }

# --- the same of kofi_9p, whose server breaks a rule (tests/vm/peer/9p.c) ---

PORT=5641
lose() { ns r ip route add blackhole "$1"; }	# packets to this address
pass_on() { ns r ip route del blackhole "$1"; }

files_at() {	# WHERE ADDRESS
	mkdir -p "/tmp/$1" && mount -t 9p -o \
		"trans=kofi-sock,port=$PORT,msize=65536,cache=none" "$2" "/tmp/$1"
}

# Bytes that TCP has sent from this port (field 2) or to it (3) and the peer has not got
unsent() {	# FIELD BYTES [NAMESPACE]
	unsent=$(${3:+ns "$3"} cat /proc/net/tcp | awk -v at="$1" -v port="$(printf :%04X $PORT)" \
		'$at ~ port "$" && $4 == "01" { print substr($5, 1, 8) }')
	for bytes in $unsent; do
		[ $((0x$bytes)) -lt "$2" ] || return 0
	done
	return 1
}

file_is() { head -c 4096 "/tmp/data.$1" | cmp - /tmp/y/data; }	# DATA
put_file() {	# DATA
	dd if="/tmp/data.$1" of=/tmp/y/data bs=4096 count=1 conv=notrunc
}

# A reply that breaks a rule is on its way when the client writes, and ends the
# connection before the server has got the write. The client unmounts by force.
late_file() {
	ns t kofi-9p-peer tcp 0.0.0.0 $PORT &
	server=$!
	retry files_at x 10.7.2.1 && files_at y 10.8.1.1 && put_file zero || return
	exec 8<>/tmp/x/data 9</tmp/x/short
	lose 10.7.1.2 || return
	head -c 1 <&9 &
	reader=$!
	retry unsent 2 1 t && lose 10.7.2.1 || return
	dd if=/tmp/data.old bs=4096 count=1 >&8 &
	writer=$!
	retry unsent 3 4096 && file_is zero && pass_on 10.7.1.2 || return
	! wait $writer || { echo "the write succeeded without a network"; return 1; }
	! wait $reader || return
	exec 8>&- 9<&-
	umount -f /tmp/x && put_file new && pass_on 10.7.2.1 || return
	until=$(($(ms) + WATCH * 1000))
	while [ "$(ms)" -lt $until ]; do
		file_is new || return
		sleep 0.1
	done
	umount /tmp/y && kill $server
}

step setup setup || exit
step write-unmapped-when-failed late write 4096 3 8000 failed || exit
step write-unmapped-at-once late write 4096 30 1000 now || exit
step discard-unmapped-when-failed late discard 1048576 3 8000 failed || exit
step file-unmounted-when-failed late_file || exit
if [ "$VM_SOAK" = 1 ]; then
	step zeroes-unmapped-when-failed late zeroes 1048576 3 8000 failed || exit
	for heal in 4500 8000 13500 14200; do
		step write-stays-$heal late write 4096 3 $heal no || exit
	done
	step long-write late write 65536 3 8000 failed || exit
	step default-time-out late write 4096 30 33000 no || exit
fi
gone() { volume_gone vol0 && port_gone p; }
step gone gone

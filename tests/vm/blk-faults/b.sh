# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The client. Two programs of fio write, read and compare all the time, one on a
# device over sockets, one over RDMA, while a is switched off and on, the cable is
# pulled, and devices go away; an I/O error ends them. The block layer's trace says
# whether each request has completed once.

. "$VM/common.sh"
. "$VM/paths.sh"

MNT=/tmp/mnt

setup() {
	load kofi_sock silence_timeout=5000 kofi_verbs kofi_blk && configfs && device_up ||
		return
	# those who wait for a target that is switched on again wait for long
	[ ! -e /proc/sys/kernel/hung_task_timeout_secs ] ||
		echo 0 >/proc/sys/kernel/hung_task_timeout_secs
}

both_move() { moves m "$m" && moves n "$n"; }
one_is() { state m "$1" || state n "$1"; }
both_are() { retry state m "$1" && retry state n "$1"; }

# --- the target is switched off, and what it had not flushed is lost ---

# Files one after the other, each flushed before its number counts
writer() {
	file=0
	while [ ! -e /tmp/stop ]; do
		file=$((file + 1))
		content $file | dd of="$MNT/$file" bs=4k conv=fsync status=none || return
		echo $file >>/tmp/flushed
	done
}
content() { seq "$1" $(($1 + 999)); }
flushed() { [ "$(wc -l </tmp/flushed)" -ge "$1" ]; }

all_flushed_are_there() {
	echo "$(wc -l </tmp/flushed) files have been flushed"
	while read -r file; do
		content "$file" | cmp - "$MNT/$file" || return
	done </tmp/flushed
}

# Two more volumes: t has a file system, r has a block that is flushed and one that
# is not.
before_cut() {	# PROVIDER-OF-T PROVIDER-OF-R
	rm -f /tmp/stop
	: >/tmp/flushed
	map t tree "$1" io_timeout=300 && map r raw "$2" io_timeout=300 && t=$(device t) &&
		r=$(device r) && mke2fs -q -t ext4 "$t" && mkdir -p $MNT &&
		mount -t ext4 "$t" $MNT || return
	for file in old kept lost; do
		head -c 4096 /dev/urandom >/tmp/block.$file || return
	done
	exec 9<>"$r"
	at_block old 1 && at_block kept 0 && flush "$r" || return
	{ exec 9<&-; writer; } >/tmp/writer 2>&1 &
	writer=$!
	retry flushed 3 && at_block lost 1
}
at_block() { dd if="/tmp/block.$1" of="$r" bs=4k seek="$2" oflag=direct conv=notrunc status=none; }
is_block() {
	dd if="$r" bs=4k skip="$2" count=1 iflag=direct status=none | cmp -s - "/tmp/block.$1"
}

back() { for name in m n t r; do retry state $name live || return; done; }

# The target has lost what it had acknowledged, and each flush says so.
cache_lost() {
	is_block kept 0 && is_block old 1 || return
	expect_fail flush "$r" && expect_fail flush "$r" || return
	exec 9<&-
	at_block lost 1 && flush "$r" && is_block lost 1
}

nothing_flushed_lost() {
	touch /tmp/stop
	wait $writer
	umount $MNT && mount -t ext4 "$t" $MNT && all_flushed_are_there &&
		umount $MNT && e2fsck -fn "$t" && unmap t && unmap r
}

target_dies() {	# ROUND
	case $(($1 % 2)) in
	1) check "$1 before-cut" before_cut sock verbs ;;
	*) check "$1 before-cut" before_cut verbs sock ;;
	esac || exit
	kill_machine a
	check "$1 cut" retry one_is connecting
	start_machine a && wait_for "up $(($1 + 1))" || exit
	orders $(($1 + 1)) 1
	check "$1 back" back
	check "$1 load" both_move
	check "$1 cache-lost" cache_lost
	check "$1 nothing-flushed-lost" nothing_flushed_lost
}

# --- links and devices ---

pull() { link down; }
plug() { link up; }

cable_out() {	# the providers are needed for the connections to come
	link down && retry state m connecting && retry state n connecting && held && link up &&
		both_are live && both_move
}

rdma_device() {
	device_down && retry state n connecting && device_up && retry state n live && both_move
}

net_device() {	# and the RDMA device on it
	driver=/sys/bus/virtio/drivers/virtio_net
	virtio=$(basename "$(readlink -f /sys/class/net/eth0/device)")
	echo "$virtio" >$driver/unbind && both_are connecting || return
	echo "$virtio" >$driver/bind && retry ip link set eth0 up &&
		ip addr add "10.0.0.$VM_INDEX/24" dev eth0 && device_up && both_are live &&
		both_move
}

faults() {	# ROUND
	target_dies "$1"
	check "$1 cable" cable_out
	check "$1 rdma-device" rdma_device
	check "$1 net-device" net_device
	before=$(reconnected "$n")
	ask_for "device-away-$1" device_away
	check "$1 device-below-target" retry more_reconnected "$n" "$before"
	check "$1 load-again" both_move
	check "$1 completed-once" completed_once
	dmesg -c >/dev/null
}

held() { expect_fail rmmod kofi_blk && expect_fail rmmod kofi_sock && expect_fail rmmod kofi_verbs; }

begin() {
	map m plain sock io_timeout=300 queues=2 && map n other verbs io_timeout=300 || return
	m=$(device m) n=$(device n)
	trace_requests && load_on m "$m" && load_on n "$n" && both_move
}

end() { load_off m && load_off n && requests_complete_once "$m" "$n"; }

# --- two paths ---

multipath() {
	check paths paths || return
	for path in sock:p verbs:q; do
		ask_for port-off port_off "${path%:*}"
		check "$path lost" path_lost "${path#*:}"
		ask_for port-on port_on "${path%:*}"
		check "$path back" path_back "${path#*:}"
	done
	check no-paths no_paths
}

# --- one life after the other ---

first_life() {
	wait_for "up 1" || exit
	orders 1 1
	check begin begin || exit
	check held held
	ask_for target-held held
	for round in $(seq "$ROUNDS"); do faults "$round"; done
	check end end
	check unmap unmap m && check unmap unmap n
	multipath
	for provider in sock verbs; do step "$provider cable" cable $provider plain; done
	ask_for over end
}

# Its host is the same each time, so the target ends what is left of the last life.
map_again() { map m plain sock io_timeout=300 host=b && m=$(device m); }
busy() { map_again && load_on m "$m" && moves m "$m"; }
last_life() {
	map_again && verify "$m" --iodepth=16 --io_size=4m && unmap m
}

step "setup $VM_BOOT" setup || exit
[ "$VM_BOOT" -gt 1 ] || first_life
if [ "$VM_BOOT" -le "$ROUNDS" ]; then
	check busy busy
	signal "busy $VM_BOOT"
	wait_for killed		# and so it is, before there is an answer
fi
orders $((ROUNDS + 1)) "$VM_BOOT"
step last-life last_life
ask_for over end
step unload unload kofi_blk

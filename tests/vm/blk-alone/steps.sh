# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# kofi_blk and its target through configfs. The device of volume NAME is
# $DEVICE after map NAME.

TARGET=/sys/kernel/config/kofi_blkt
CLIENT=/sys/kernel/config/kofi_blk

configfs() {
	mkdir -p /sys/kernel/config
	grep -q " /sys/kernel/config " /proc/mounts ||
		mount -t configfs none /sys/kernel/config
}

# --- providers ---

# An RDMA device on a network device of its own
rdma_link() {	# NAME TYPE ADDRESS [ADDRESS]
	ip link add "dummy_$1" type dummy && ip link set "dummy_$1" mtu 4200 &&
		ip addr add "$3/24" dev "dummy_$1" || return
	[ -z "${4:-}" ] || ip addr add "$4/64" dev "dummy_$1" nodad || return
	ip link set "dummy_$1" up && rdma link add "$1" type "$2" netdev "dummy_$1"
}

# siw and few are other devices of kofi_verbs.
provider() { case $1 in siw | few) echo verbs ;; *) echo "$1" ;; esac; }

# The name that a program of userspace knows it by
of_userspace() { case $1 in sock) echo tcp ;; *) echo "$1" ;; esac; }

listens_over() {	# PROVIDER PORT
	case $1 in
	sock) listens "$2" ;;
	*) rdma resource show cm_id | grep -q "LISTEN.*:$2 " ;;
	esac
}

# --- the target ---

backing() {	# NAME MiB: a block device on a file, with a cache to flush
	dd if=/dev/zero of="/tmp/$1.img" bs=1M count=0 seek="$2" status=none &&
		losetup -f --show "/tmp/$1.img" >"/tmp/$1.dev"
}

regular() {	# NAME MiB: a file
	dd if=/dev/zero of="/tmp/$1.img" bs=1M count=0 seek="$2" status=none &&
		echo "/tmp/$1.img" >"/tmp/$1.dev"
}

volume() {	# NAME [ATTRIBUTE=VALUE...]
	volume=$TARGET/volumes/$1
	mkdir "$volume" && cat "/tmp/$1.dev" >"$volume/path" || return
	shift
	for vm_w in "$@"; do
		echo "${vm_w#*=}" >"$volume/${vm_w%%=*}" || return
	done
	echo 1 >"$volume/enable"
}

port() {	# NAME ADDRESS [PROVIDER]
	port=$TARGET/ports/$1
	mkdir "$port" && provider "${3:-$1}" >"$port/provider" &&
		echo "$2" >"$port/addr" && echo 1 >"$port/enable"
}

ports() { port sock "$SOCK" && port verbs "$VERBS"; }

# The target loses its connections, as it does when it is killed; its module goes
# too, but not in User-mode Linux, whose KASAN does not forget it.
target_gone() {
	rmdir $TARGET/volumes/* $TARGET/ports/* || return
	[ "$VM_KERNEL" = uml ] || unload kofi_blkt
}

target_back() {
	[ "$VM_KERNEL" = uml ] || load kofi_blkt || return
	volumes && ports
}

modules_gone() { unload kofi_blk && { [ "$VM_KERNEL" != uml ] || unload kofi_blkt; }; }
stat_of() { awk -v name="$2" '$1 == name { print $2 }' "$TARGET/volumes/$1/stat"; }

# --- the client ---

# A short time-out is the first connection's, too: that is tried again.
map() {		# NAME VOLUME PROVIDER [ATTRIBUTE=VALUE...]
	map=$CLIENT/$1
	[ -d "$map" ] || mkdir "$map" || return
	case $3 in
	verbs) echo "$VERBS" ;;
	siw) echo "$SIW" ;;
	few) echo "$FEW" ;;
	*) echo "$SOCK" ;;
	esac >"$map/addr" && echo "$2" >"$map/volume" &&
		provider "$3" >"$map/provider" || return
	shift 3
	for vm_w in "$@"; do
		echo "${vm_w#*=}" >"$map/${vm_w%%=*}" || return
	done
	echo 1 >"$map/enable"
}

device() { echo "/dev/$(cat "$CLIENT/$1/device")"; }
state() { [ "$(cat "$CLIENT/$1/state")" = "$2" ]; }
unmap() { rmdir "$CLIENT/$1"; }
limit() { cat "/sys/block/${1#/dev/}/queue/$2"; }

refused() {	# REASON VOLUME PROVIDER [ATTRIBUTE=VALUE...]: both logs say why
	why=$1
	shift
	dmesg -c >/dev/null
	expect_fail map refused "$@" || return
	dmesg >/tmp/dmesg
	cat /tmp/dmesg
	unmap refused || return
	grep -q "kofi_blk: .* refuses volume $1: $why" /tmp/dmesg
}

target_refused() { dmesg | grep -q "kofi_blkt: .* refused: $1"; }

quiet() { grep -q "^ *0 *0$" "/sys/block/${1#/dev/}/inflight"; }

# A request waits for its answer, or for a connection.
waits() { state m connecting || ! quiet "$1"; }

# The link is down for less than the time-out, and nothing fails; then for more.
# The scenario says how to pull and plug it.
cable() {	# PROVIDER VOLUME
	map m "$2" "$1" timeout=600 || return
	disk=$(device m)
	pull || return
	direct /dev/zero "$disk" &
	retry waits "$disk" && plug && wait $! && unmap m || return
	retry map m "$2" "$1" timeout=$((2 * VM_SLOW)) && direct /dev/zero "$disk" || return
	pull || return
	expect_fail direct /dev/zero "$disk" && state m failed || return
	plug && retry state m live && direct /dev/zero "$disk" && unmap m
}

# --- requests, as the block layer sees them ---

TRACING=/sys/kernel/tracing

# Each request that is issued has to complete once, or to be issued again. A flush
# and what goes with one are left out: the block layer tells of them more than once.
trace_requests() {
	echo 0 >$TRACING/tracing_on && echo 8192 >$TRACING/buffer_size_kb &&
		echo >$TRACING/trace || return
	for event in issue requeue complete; do
		echo 1 >"$TRACING/events/block/block_rq_$event/enable" || return
	done
	echo 1 >$TRACING/tracing_on
}

requests_complete_once() {	# DEVICE...: nothing is asked of them any more
	for device in "$@"; do
		retry quiet "$device" && cat "/sys/block/${device#/dev/}/dev" || return
	done >/tmp/devices
	echo 0 >$TRACING/tracing_on
	! grep -Eh "^(overrun|dropped events): [^0]" $TRACING/per_cpu/cpu*/stats || return
	busybox awk -f "$VM/requests.awk" /tmp/devices $TRACING/trace
}

# --- load ---

# The programs m and n stop, so that all they have asked for completes, and go on.
completed_once() {	# the devices are $m and $n
	kill -STOP "$(cat /tmp/load.m)" "$(cat /tmp/load.n)" && requests_complete_once "$m" "$n" &&
		trace_requests && kill -CONT "$(cat /tmp/load.m)" "$(cat /tmp/load.n)"
}

load_on() {	# NAME DEVICE
	fio --name="$1" --filename="$2" --direct=1 --ioengine=libaio --iodepth=8 --rate_iops=60 \
		--rw=randrw --bsrange=512-32k --blockalign=512 --verify=crc32c \
		--verify_fatal=1 --verify_backlog=64 --randrepeat=0 --thread --time_based \
		--runtime=360000 --minimal >"/tmp/fio.$1" 2>&1 &
	echo $! >"/tmp/load.$1"
}

# fio's status is 128 then, whatever it has seen; what it reports tells of errors.
load_off() {	# NAME
	load=$(cat "/tmp/load.$1")
	kill -INT "$load" || return
	wait "$load"
	grep -q "^3;[^;]*;$1;0;0;" "/tmp/fio.$1" && return
	cat "/tmp/fio.$1"
	return 1
}

written() { awk '{ print $5 }' "/sys/block/${1#/dev/}/stat"; }
more_written() { [ "$(written "$1")" -gt "$2" ]; }
moves() {	# NAME DEVICE: its load goes on
	now=$(written "$2")
	retry more_written "$2" $((now + 25)) && kill -0 "$(cat "/tmp/load.$1")" && return
	cat "/tmp/fio.$1"
	return 1
}

# How often a volume has been connected again, as the log says; the log is short.
reconnected() { dmesg | grep -c "kofi_blk: ${1#/dev/}: connected again"; }
more_reconnected() { [ "$(reconnected "$1")" -gt "$2" ]; }

# --- data ---

direct() {	# FROM DEVICE: a block that is not flushed
	dd if="$1" of="$2" bs=4k count=1 oflag=direct conv=notrunc status=none
}

flush() { dd if=/dev/null of="$1" bs=4k conv=notrunc,fsync status=none; }

verify() {	# DEVICE [OPTION...]: random sizes and depths, each byte compared
	vm_w=$1
	shift
	fio --name=verify --filename="$vm_w" --direct=1 --ioengine=libaio \
		--rw=randrw --bsrange=512-1m --blockalign=512 --size=100% \
		--verify=crc32c --verify_fatal=1 --do_verify=1 \
		--verify_backlog=64 --randrepeat=0 --minimal "$@" >/tmp/fio || {
			cat /tmp/fio
			return 1
		}
}

# The names in lists of a size that each program takes, as there are thousands.
summed() { find tree -type f | sort | xargs -n 500 sha256sum; }

tree() {	# MOUNTPOINT FILES: files of five sizes, and their sums
	mkdir -p "$1/tree" || return
	for size in 100 1000 4096 9999 33333; do
		head -c $((size * $2 / 5)) /dev/urandom >/tmp/tree &&
			split -a 3 -b $size /tmp/tree "$1/tree/$size." || return
	done
	rm /tmp/tree
	(cd "$1" && summed >sums && [ "$(wc -l <sums)" = $(($2 / 5 * 5)) ])
}

same() { (cd "$1" && summed | cmp - sums); }
sums() { echo "$(wc -l <"$1/sums") files, sums of their bytes: $(sha256sum <"$1/sums")"; }

ext4() {	# DEVICE FILES
	mke2fs -q -t ext4 "$1" && mkdir -p /tmp/mnt && mount -t ext4 "$1" /tmp/mnt &&
		tree /tmp/mnt "$2" && umount /tmp/mnt &&
		mount -t ext4 "$1" /tmp/mnt && same /tmp/mnt && umount /tmp/mnt
}

discards() {	# DEVICE: zeroes where it was discarded, nothing else changed
	dd if=/dev/urandom of=/tmp/in bs=64k count=16 status=none &&
		dd if=/tmp/in of="$1" bs=64k oflag=direct status=none &&
		blkdiscard -o 65536 -l 131072 "$1" &&
		blkdiscard -z -o 524288 -l 65536 "$1" &&
		dd if=/dev/zero of=/tmp/in bs=64k seek=1 count=2 conv=notrunc status=none &&
		dd if=/dev/zero of=/tmp/in bs=64k seek=8 count=1 conv=notrunc status=none &&
		dd if="$1" of=/tmp/out bs=64k count=16 iflag=direct status=none &&
		cmp /tmp/in /tmp/out
}

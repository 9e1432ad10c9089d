# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Targets that are restarted or slow, and clients that wait for long or briefly.

# --- a restart in order ---

# What a target does not know either that has just been loaded
forget() { echo none >"$TARGET/volumes/vol0/stable"; }

# Files that are flushed one after the other, and read again
flushed_files() {	# DIRECTORY
	n=0
	while [ ! -e /tmp/stop ]; do
		n=$(((n + 1) % 8))
		dd if=/dev/urandom of=/tmp/in.files bs=16k count=4 status=none &&
			dd if=/tmp/in.files of="$1/$n" bs=16k conv=fsync status=none &&
			cmp /tmp/in.files "$1/$n" || return
	done
}

# Blocks that nothing flushes, but the other one's flushes
unflushed() {	# DIRECTORY
	dd if=/dev/zero of="$1/unflushed" bs=4k count=64 conv=fsync status=none || return
	while [ ! -e /tmp/stop ]; do
		dd if=/dev/urandom of="$1/unflushed" bs=4k count=64 oflag=direct conv=notrunc \
			status=none || return
	done
}

# In order, and then the target knows nothing of what was before: its module has gone, but
# not in User-mode Linux, whose KASAN does not forget it
restart() {
	enable vol0 0 || return
	if [ "$VM_KERNEL" = uml ]; then
		forget && enable vol0 1
	else
		target_gone && target_back
	fi
}

did() { [ "$(stat_of vol0 writes)" -gt "$1" ]; }
loses() { dmesg | grep "what was not flushed may be lost"; }

# Below a file system under load: the client's last note says that nothing is lost.
restarted() {	# PROVIDER
	map m vol0 "$1" queues=2 && mke2fs -q -t ext4 "$(device m)" && mkdir -p /tmp/mnt &&
		mount -t ext4 "$(device m)" /tmp/mnt || return
	rm -f /tmp/stop
	dmesg -c >/dev/null
	flushed_files /tmp/mnt &
	job=$!
	unflushed /tmp/mnt &
	writer=$!
	for _ in 1 2 3; do
		writes=$(stat_of vol0 writes)
		retry did $((writes + 20)) && restart && retry state m live &&
			kill -0 $job || return
	done
	writes=$(stat_of vol0 writes)
	retry did $((writes + 20)) || return
	touch /tmp/stop
	wait $job && wait $writer && umount /tmp/mnt && unmap m && expect_fail loses
}

# A client that is away meanwhile, with a write that has not been flushed
away() {	# CMD... with the volume disabled
	direct /dev/zero "$disk" && echo 0 >"$TARGET/ports/$port/enable" &&
		retry state m connecting && enable vol0 0 && "$@" && enable vol0 1 &&
		echo 1 >"$TARGET/ports/$port/enable" && retry state m live
}
keep() { cat "$TARGET/volumes/vol0/stable" >/tmp/stable; }
keep_elsewhere() { keep && forget; }
bring_back() { cat /tmp/stable >"$TARGET/volumes/vol0/stable"; }
reloaded() { keep_elsewhere && bring_back && cmp /tmp/stable "$TARGET/volumes/vol0/stable"; }
reopen() { exec 9<&- && exec 9<>"$disk"; }

# The proof that it has lost nothing is the target's, or the administrator's, and good
# for what was written before. After a crash there is none, and an old one is of no use.
away_meanwhile() {	# PROVIDER
	port=$1
	map m vol0 "$1" && disk=$(device m) && exec 9<>"$disk" || return
	away true && flush "$disk" && away reloaded && flush "$disk" || return
	expect_fail forget || return
	away forget && expect_fail flush "$disk" && reopen && flush "$disk" || return
	enable vol0 0 && keep && enable vol0 1 && retry state m live && flush "$disk" || return
	away bring_back && expect_fail flush "$disk" && exec 9<&- && unmap m
}

# --- a slow device ---

# One command at a time, and each takes longer than the client waits for an answer
slow() {	# PROVIDER
	null=/sys/kernel/config/nullb/slow
	mkdir $null || return
	for vm_w in size=8 memory_backed=1 queue_mode=2 irqmode=2 hw_queue_depth=1 \
		submit_queues=1 completion_nsec=3000000000 power=1; do
		echo "${vm_w#*=}" >"$null/${vm_w%=*}" || return
	done
	echo /dev/slow >/tmp/slow.dev
	dmesg -c >/dev/null
	volume slow && map m slow "$1" io_timeout=2 && disk=$(device m) || return
	# three commands: the target reads the last one when the first one has ended
	dd if=/dev/urandom of="$disk" bs=768k count=1 oflag=direct conv=notrunc status=none || return
	dmesg >/tmp/dmesg
	cat /tmp/dmesg
	grep -q "the target is still working" /tmp/dmesg &&
		! grep "connection lost" /tmp/dmesg && unmap m &&
		volume_gone slow && rmdir $null
}

# A flush takes longer than the client waits for an answer; other commands do not.
slow_flush() {	# PROVIDER
	backing under 8 && dev=$(cat /tmp/under.dev) && echo /dev/mapper/late >/tmp/late.dev &&
		dmsetup create late --table \
			"0 16384 delay $dev 0 0 $dev 0 0 $dev 0 5000" && dmsetup mknodes late || return
	dmesg -c >/dev/null
	volume late && map m late "$1" io_timeout=2 && disk=$(device m) &&
		direct /dev/urandom "$disk" || return
	began=$(cut -d. -f1 /proc/uptime)
	flush "$disk" || return
	took=$(($(cut -d. -f1 /proc/uptime) - began))
	dmesg >/tmp/dmesg
	cat /tmp/dmesg
	[ $took -ge 4 ] && grep -q "the target is still working: .*, sector 0, 0 bytes" /tmp/dmesg &&
		! grep "connection lost" /tmp/dmesg && unmap m && volume_gone late &&
		dmsetup remove late && losetup -d "$dev"
}

# --- who has another path does not wait for this one ---

fails_fast() {	# PROVIDER
	map m vol0 "$1" fast_fail="$VM_SLOW" && disk=$(device m) || return
	dmsetup create mp --table "0 $(cat "/sys/block/${disk#/dev/}/size") multipath 0 0 1 1 \
		round-robin 0 1 1 $(cat "/sys/block/${disk#/dev/}/dev") 1" &&
		dmsetup mknodes mp && echo 0 >"$TARGET/ports/$1/enable" || return
	direct /dev/zero "$disk" &
	job=$!
	expect_fail direct /dev/zero /dev/mapper/mp && state m connecting && kill -0 $job &&
		echo 1 >"$TARGET/ports/$1/enable" && wait $job && dmsetup remove mp && unmap m
}

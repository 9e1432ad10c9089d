# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Two volumes of kofi_blk whose target is the same machine: kofiblk0 is swap space,
# kofiblk1 has a file system. They are RAM disks, whose memory is there before they
# are used, so that the target needs none to serve a request.
#
# Processes with more memory than there is send each other's pages away and
# back, and a writer fills the page cache with pages that only this machinery
# can clean. Nothing may get stuck, and nothing may be lost.

: "${SWAP:?}" "${FS:?}"		# MiB
ROUNDS=0			# after filling: once through all pages of a process
[ "$VM_KERNEL" != uml-fast ] || ROUNDS=1
MNT=/tmp/mnt
. "$VM/blk.sh"

vmstat() { awk -v name="$1" '$1 == name { print $2 }' /proc/vmstat; }
meminfo() { awk -v name="$1:" '$1 == name { print $2 }' /proc/meminfo; }	# KiB
ep_stat() { kofi stat ep | awk -v name="$1:" '$1 == name { n += $2 } END { print n + 0 }'; }
swapped() { echo $(($(vmstat pswpin) + $(vmstat pswpout))); }

memory() {
	grep -E '^(pswp|allocstall|pgscan_direct|pgsteal_direct|oom_kill)' /proc/vmstat
	grep -E '^(Mem|Swap|Dirty|Writeback)' /proc/meminfo
	kofi stat ep | grep -E ' ep |mr_bytes|tx_(work|full|retries)|violations'
}

setup() {
	load kofi_sock kofi_verbs kofi_blk kofi_blkt && configfs && rdma_device || return
	ram swap 0 "$SWAP" && ram fs 1 "$FS" && volume swap && volume fs && ports || return
	# a share of the memory may be dirty before writers are made to wait
	echo 10 >/proc/sys/vm/dirty_ratio
}

# It stands for hardware, which has memory of its own: the kernel's devices in
# software allocate for what they send.
rdma_device() {
	ip link add under type dummy && ip link set under mtu 4200 &&
		ip addr add "$VERBS/24" dev under && ip link set under up &&
		load kofi_testrdma && rdma link add dma type dma netdev under
}

use() {		# PROVIDER: swap and write back through it from now on
	rm -f /tmp/go.*
	dmesg -C
	map swap swap "$1" io_timeout=300 && map fs fs "$1" io_timeout=300 || return
	mkswap /dev/kofiblk0 $((SWAP * 1024)) && swapon /dev/kofiblk0 || return
	mke2fs -q -E nodiscard /dev/kofiblk1 "${FS}m" && mkdir -p $MNT &&
		mount -t ext4 /dev/kofiblk1 $MNT
}

ram() {		# NAME NUMBER MIB: so much of it has its memory
	dd if=/dev/zero of="/dev/ram$2" bs=1M count="$3" conv=fsync status=none &&
		echo 1 >/proc/sys/vm/drop_caches && echo "/dev/ram$2" >"/tmp/$1.dev"
}

# --- processes with more memory than there is ---

hog() {	# NAME PAGES ROUNDS: fills them, and looks at them when it is told to
	mkfifo "/tmp/go.$1" && busybox awk -v NAME="$1" -v PAGES="$2" -v ROUNDS="$3" \
		-v WAIT="/tmp/go.$1" -f "$VM/hog.awk"
}
filled() { for name in "$@"; do [ -e "/tmp/go.$name.filled" ] || return; done; }
look() { for name in "$@"; do echo >"/tmp/go.$name" & done; }

# Two at a time: what either looks at is where the other one's was.
hogs() {	# NAME PAGES ROUNDS
	hog "$1a" $(($2 / 2)) "$3" &
	job0=$!
	hog "$1b" $(($2 / 2)) "$3" &
	job1=$!
	retry filled "$1a" "$1b" && look "$1a" "$1b"
	wait $job0 && wait $job1
}

# As many pages as there is memory. What a process needs besides does not fit.
fit() {
	busybox sync && echo 3 >/proc/sys/vm/drop_caches
	echo $(($(meminfo MemAvailable) / 4))
}

# And more, by three eighths of the swap space. Enough of it is left: pages that have
# come back keep their place there for a while.
more() { echo $(($(fit) + SWAP * 96)); }

# What the target has read and written of regions, and what went with commands
moved() { ep_stat tx_bytes; }
through_endpoints() { [ "$(moved)" -ge "$1" ]; }

# --- a file system ---

# One file of random bytes, its sum beside it
fill() {	# FILE MIB
	dd if=/dev/urandom bs=64k count=$(($2 * 16)) 2>/dev/null |
		tee "$1" | md5sum >"/tmp/sum.${1##*/}"
	[ "$(stat -c %s "$1")" = $(($2 << 20)) ]
}

intact() {	# FILE
	md5sum <"$1" | cmp -s - "/tmp/sum.${1##*/}" && return
	echo "$1 has changed"
	return 1
}

remount() {	# what is read next comes from the disk
	umount $MNT || return
	echo 3 >/proc/sys/vm/drop_caches
	mount -t ext4 /dev/kofiblk1 $MNT
}

# --- both, without connections, and with no memory at all ---

writer() {	# until the hogs are done: write a file, have it written back
	n=0
	while [ ! -e /tmp/done ]; do
		fill $MNT/w$((n % 2)) 4 && busybox sync || return
		n=$((n + 1))
	done
	echo "$n files written back"
	[ $n -ge 2 ]
}

both() {
	rm -f /tmp/done
	bytes=$(moved) swapped=$(swapped)
	out=$(vmstat pswpout) in=$(vmstat pswpin)
	writer >/tmp/writer 2>&1 &
	writer=$!
	hogs t "$(more)" $ROUNDS
	status=$?
	touch /tmp/done
	wait $writer || { cat /tmp/writer; return 1; }
	cat /tmp/writer
	out=$((($(vmstat pswpout) - out) / 256)) in=$((($(vmstat pswpin) - in) / 256))
	swapped=$(($(swapped) - swapped))
	memory
	echo "$out MiB out, $in MiB in"
	# A machine that has found room elsewhere has shown nothing,
	[ $status = 0 ] && [ $out -ge $((SWAP / 4)) ] && [ $in -ge $((SWAP / 8)) ] || return
	# and there is no other way for these pages than the target's access.
	retry through_endpoints $((bytes + swapped * 4096)) || return
	remount && intact $MNT/w0 && intact $MNT/w1
}

# The lower limit of free memory is raised so far that no one gets a page any
# more who is not clearing memory, until much has been cleared: also with all
# clean pages of files given away, less is free than the 3/8 of the limit that
# atomic allocations must leave alone. Only the reserves are left to send with.
squeeze() {
	hog u "$(fit)" 0 >/tmp/hog 2>&1 &
	hog=$!
	retry filled u || return
	busybox sync
	limit=$(cat /proc/sys/vm/min_free_kbytes)
	less=$(($(meminfo MemFree) + $(meminfo 'Active(file)') +
		$(meminfo 'Inactive(file)') + $(meminfo SReclaimable)))
	want=$((less * 3))
	anon=$(($(meminfo 'Active(anon)') + $(meminfo 'Inactive(anon)')))
	echo "$((less / 1024)) MiB free or soon so, $((want / 1024)) MiB wanted," \
		"$((anon / 1024)) MiB to be had from processes," \
		"$(($(meminfo SwapFree) / 1024)) MiB of swap space left"
	[ $((anon * 3 / 4)) -gt $((want - less)) ] &&
		[ "$(meminfo SwapFree)" -gt $((want - less)) ] || return
	out=$(vmstat pswpout)
	# The limit as it is set: boosted, it may be above all that can be had, and
	# the kernel kills a process instead of waiting.
	echo 0 >/proc/sys/vm/watermark_boost_factor
	echo $want >/proc/sys/vm/min_free_kbytes
	retry enough $want || { memory; return 1; }
	out=$((($(vmstat pswpout) - out) / 256))
	echo "$limit" >/proc/sys/vm/min_free_kbytes
	echo "$out MiB out"
	look u
	wait $hog || { cat /tmp/hog; return 1; }
	cat /tmp/hog
	[ $out -ge $(((want - less) * 3 / 4096)) ]
}
enough() { [ "$(meminfo MemFree)" -ge "$1" ]; }

clean() {	# no connection was lost, and none has broken the rules
	memory
	[ "$(kofi stat ep | grep -c ' connected ')" = 4 ] &&
		[ "$(ep_stat violations)" = 0 ] &&
		! dmesg | grep 'kofi_blk: .*connection lost' &&
		[ "$(vmstat oom_kill)" = 0 ] &&
		! dmesg | grep -q 'error, dev kofiblk[01]'
}

# What is out has to fit into memory again. If it does not, the device must stay: init
# itself may have pages there.
no_swap() { swapoff /dev/kofiblk0 && return; memory; dmesg | tail -n 60; return 1; }
no_disks() { umount $MNT && unmap fs && unmap swap; }

# The connections go while pages are on their way, and are made again, below those
# who wait for memory.
lost() {
	rm -f /tmp/done
	writer >/tmp/writer 2>&1 &
	writer=$!
	hogs v "$(more)" $ROUNDS &
	hogs=$!
	out=$(vmstat pswpout)
	for round in 1 2 3; do
		retry swapped_out $((out + round * 1000)) &&
			ss -K -t dport = 4421 >/tmp/killed && retry again $round || break
	done
	wait $hogs
	status=$?
	touch /tmp/done
	wait $writer && [ $status = 0 ] && again 3 || { cat /tmp/writer; return 1; }
	remount && intact $MNT/w0 && intact $MNT/w1
}
swapped_out() { [ "$(vmstat pswpout)" -ge "$1" ]; }
again() { [ "$(dmesg | grep -c 'kofi_blk: kofiblk[01]: connected again')" -ge $((2 * $1)) ]; }

no_target() { target_gone && modules_gone; }

told() {	# as step, and what it says is in the log, also if it is good
	step "$@"
	told_rc=$?
	cat /tmp/.step
	return $told_rc
}

swap_steps() {
	step use-sock use sock || return
	told both both
	told no-harm clean
	told connection-lost lost
	[ "$VM_KERNEL" != uml-fast ] || told squeeze squeeze
	step swap-off no_swap || return
	step no-disks no_disks

	# Connections do not end here: to make others, the kernel's connection
	# manager waits for memory.
	step use-verbs use verbs || return
	told verbs-both both
	[ "$VM_KERNEL" != uml-fast ] || told verbs-squeeze squeeze
	told verbs-no-harm clean
	step verbs-swap-off no_swap || return
	step verbs-no-disks no_disks

	step no-target no_target
	step nothing-left retry no_objects
}

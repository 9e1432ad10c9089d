# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The side of the client. Three disks whose blocks come over endpoints,
# kofi_testblk's: kofiblk0 is swap space, kofiblk1 has a file system, and of
# kofiblk2 the server lacks the second half. kofiblk0 works in softirqs, kofiblk1
# in work items.
#
# Processes with more memory than there is send each other's pages away and
# back, and a writer fills the page cache with pages that only this machinery
# can clean. Nothing may get stuck, and nothing may be lost.

: "${SWAP:?}" "${FS:?}"		# MiB
MNT=/tmp/mnt

vmstat() { awk -v name="$1" '$1 == name { print $2 }' /proc/vmstat; }
meminfo() { awk -v name="$1:" '$1 == name { print $2 }' /proc/meminfo; }	# KiB
stat_of() { kofi stat ep | awk -v name="$1:" '$1 == name { n += $2 } END { print n + 0 }'; }
swapped() { echo $(($(vmstat pswpin) + $(vmstat pswpout))); }

state() {
	grep -E '^(pswp|allocstall|pgscan_direct|pgsteal_direct|oom_kill)' /proc/vmstat
	grep -E '^(Mem|Swap|Dirty|Writeback)' /proc/meminfo
	kofi stat ep | grep -E ' ep |mr_bytes|tx_(work|full|retries)|violations'
}

setup() {	# PARAM=VALUE...
	load kofi_sock kofi_testblk "$@" mib="$SWAP,$FS,2" lack=0,0,1 \
		sleepy=0,1,0 || return
	mkswap /dev/kofiblk0 && swapon /dev/kofiblk0 || return
	mke2fs /dev/kofiblk1 >/dev/null || return
	mkdir -p $MNT
	mount -t ext4 /dev/kofiblk1 $MNT || return
	# a share of the memory may be dirty before writers are made to wait
	echo 10 >/proc/sys/vm/dirty_ratio
}

refused() {	# an error of the server's ends one request, and the key it named
	expect_fail dd if=/dev/kofiblk2 of=/dev/null bs=64k count=1 skip=16 \
		iflag=direct || return
	dd if=/dev/zero of=/dev/kofiblk2 bs=64k count=16 oflag=direct || return
	dd if=/dev/kofiblk2 of=/dev/null bs=64k count=16 iflag=direct || return
	[ "$(stat_of mr_mapped)" = 0 ] && [ "$(stat_of mr_free)" = "$(stat_of mr_pool)" ]
}

# --- processes with more memory than there is ---

hog() {	# NAME PAGES ROUNDS [FIFO]
	busybox awk -v NAME="$1" -v PAGES="$2" -v ROUNDS="$3" -v WAIT="${4:-}" \
		-f "$VM/hog.awk"
}

# Two at a time, each looking for memory the other one has.
hogs() {	# NAME PAGES ROUNDS
	hog "$1a" $(($2 / 2)) "$3" &
	job0=$!
	hog "$1b" $(($2 / 2)) "$3" &
	job1=$!
	wait $job0 && wait $job1
}

more() {	# pages of them that do not fit, by a quarter of the swap space
	echo $(($(meminfo MemAvailable) / 4 + SWAP * 64))
}

swap() {
	pages=$(more)
	bytes=$(stat_of mr_bytes) swapped=$(swapped)
	out=$(vmstat pswpout) in=$(vmstat pswpin)
	hogs s "$pages" 1 || return
	out=$((($(vmstat pswpout) - out) / 256)) in=$((($(vmstat pswpin) - in) / 256))
	swapped=$(($(swapped) - swapped))
	state
	echo "$((pages / 256)) MiB of $(($(meminfo MemTotal) / 1024)):" \
		"$out MiB out, $in MiB in; $swapped pages"
	# A machine that has found room elsewhere has shown nothing,
	[ $out -ge $((SWAP / 4)) ] && [ $in -ge $((SWAP / 4)) ] || return
	# and there is no other way for these pages than the peer's access.
	retry through_endpoints $((bytes + swapped * 4096))
}
through_endpoints() { [ "$(stat_of mr_bytes)" -ge "$1" ]; }

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

writeback() {
	written=$(vmstat pgpgout)
	fill $MNT/w0 6 && fill $MNT/w1 6 && remount || return
	written=$((($(vmstat pgpgout) - written) / 1024))
	echo "$written MiB written"
	intact $MNT/w0 && intact $MNT/w1 && [ $written -ge 12 ]
}

# --- both, with no memory at all, and without a peer ---

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
	out=$(vmstat pswpout)
	writer >/tmp/writer 2>&1 &
	writer=$!
	hogs t "$(more)" 0
	status=$?
	touch /tmp/done
	wait $writer || { cat /tmp/writer; return 1; }
	cat /tmp/writer
	out=$((($(vmstat pswpout) - out) / 256))
	echo "$out MiB out"
	[ $status = 0 ] && [ $out -ge $((SWAP / 4)) ] || return
	remount && intact $MNT/w0 && intact $MNT/w1
}

# The lower limit of free memory is raised so far that no task gets a page any
# more who is not clearing memory, until much has been cleared: also with all
# clean pages of files given away, less is free than the 3/8 of the limit that
# atomic allocations must leave alone. Only the reserves are left to send with.
squeeze() {
	mkfifo /tmp/go
	hog u "$(more)" 0 /tmp/go >/tmp/hog 2>&1 &
	hog=$!
	RETRIES=600 retry [ -e /tmp/go.filled ] || return
	busybox sync
	limit=$(cat /proc/sys/vm/min_free_kbytes)
	less=$(($(meminfo MemFree) + $(meminfo 'Active(file)') +
		$(meminfo 'Inactive(file)') + $(meminfo SReclaimable)))
	want=$((less * 3))
	anon=$(($(meminfo 'Active(anon)') + $(meminfo 'Inactive(anon)')))
	echo "$((less / 1024)) MiB free or soon so, $((want / 1024)) MiB wanted," \
		"$((anon / 1024)) MiB to be had from processes"
	[ $((anon * 3 / 4)) -gt $((want - less)) ] || return
	out=$(vmstat pswpout)
	# The limit as it is set: boosted, it may be above all that can be had, and
	# the kernel kills a process instead of waiting.
	echo 0 >/proc/sys/vm/watermark_boost_factor
	echo $want >/proc/sys/vm/min_free_kbytes
	retry enough $want || { state; return 1; }
	out=$((($(vmstat pswpout) - out) / 256))
	echo "$limit" >/proc/sys/vm/min_free_kbytes
	echo "$out MiB out"
	echo >/tmp/go
	wait $hog || { cat /tmp/hog; return 1; }
	cat /tmp/hog
	[ $out -ge $(((want - less) * 3 / 4096)) ]
}
enough() { [ "$(meminfo MemFree)" -ge "$1" ]; }

clean() {	# no endpoint was lost, and nobody broke the rules
	state
	[ "$(kofi stat ep | grep -c ' connected ')" = "$1" ] &&
		[ "$(stat_of violations)" = 0 ] &&
		[ "$(vmstat oom_kill)" = 0 ] &&
		! dmesg | grep -q 'error, dev kofiblk[01]'
}

no_swap() { swapoff /dev/kofiblk0; }

# the connection goes: an error for those who wait, and no end of waiting
lost() {
	dd if=/dev/zero of=$MNT/w2 bs=64k count=64 2>/dev/null || return
	ss -K -t dport = 4420 >/dev/null || return
	expect_fail dd if=/dev/kofiblk1 of=/dev/null bs=64k iflag=direct || return
	umount $MNT
}

told() {	# as step, and what it says is in the log, also if it is good
	step "$@"
	told_rc=$?
	cat /tmp/.step
	return $told_rc
}

swap_steps() {	# ENDPOINTS
	step refused refused
	told swap swap
	told writeback writeback
	told both both
	told squeeze squeeze
	told no-harm clean "$1"
	step swap-off no_swap
	step connection-lost lost
}

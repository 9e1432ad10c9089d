# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The client: a file system of many files, read back through a second mount, and
# bytes that fio verifies.

. "$VM/common.sh"

make_it() { mke2fs -q -t ext4 "$1" && mkdir -p /tmp/mnt && mount -t ext4 "$1" /tmp/mnt; }
again() { umount /tmp/mnt && mount -t ext4 "$1" /tmp/mnt && same /tmp/mnt && sums /tmp/mnt; }

# Several programs with one command each, then one with many.
verified() {	# DEVICE
	verify "$1" --iodepth=1 --numjobs=4 --size=25% --offset_increment=25% --io_size="${IO}m" &&
		verify "$1" --iodepth=128 --io_size="$((4 * IO))m"
}

# The machine goes to sleep with requests under way, and wakes up. Its devices stay awake:
# in virtio_net of 6.12, a poll of received packets wakes the transmit queue behind
# netif_device_detach(), and a packet then uses a queue that has been freed.
# One command each: freezing makes io_getevents() return early, and fio (3.33) then waits
# for as many again.
sleeps() {
	echo 1 >/sys/module/suspend/parameters/pm_test_delay &&
		echo freezer >/sys/power/pm_test && echo freeze >/sys/power/state &&
		echo none >/sys/power/pm_test
}
under_way() { ! quiet "$1"; }
slept() {	# DEVICE
	rm -f /tmp/awake
	while [ ! -e /tmp/awake ]; do
		verify "$1" --iodepth=1 --numjobs=4 --size=25% --offset_increment=25% \
			--io_size=1m || exit
	done &
	job=$!
	retry under_way "$1" && sleeps
	rc=$?
	touch /tmp/awake
	wait $job && [ $rc = 0 ]
}

# mkfs and ext4 write zeroes as the device says it can; what it cannot after all it
# is not asked for each time.
no_errors() { ! dmesg | grep "error, dev kofiblk"; }

over() {	# PROVIDER VOLUME
	sync "$1 serving"
	say "b\$ kofi blk map 10.0.0.1 $2 -p $1"
	show "$1 map" kofi blk map 10.0.0.1 "$2" --provider "$1" --queues 2 || exit
	disk=/dev/kofiblk0
	step "$1 verify" verified $disk
	step "$1 sleep" slept $disk
	say "b\$ mkfs.ext4 $disk; mount $disk /mnt"
	step "$1 mkfs" make_it $disk
	step "$1 tree" tree /tmp/mnt "$FILES"
	say "b\$ umount /mnt; mount $disk /mnt; sha256sum -c"
	show "$1 remount" again $disk
	step "$1 umount" umount /tmp/mnt
	step "$1 no-errors" no_errors
	step "$1 unmap" kofi blk unmap $disk
	sync "$1 over"
}

begin kofi_blk || exit
run
step unload unload kofi_blk
step nothing-left retry no_objects

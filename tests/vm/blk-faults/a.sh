# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The target. On its disk there are two volumes without a cache, plain and other,
# and a file system with two more that are files. What these are written stays in
# the page cache until it is flushed: it is the cache that a power cut empties.

. "$VM/common.sh"

MIB=2048	# sectors

part() {	# NAME FIRST-MIB MIB
	dmsetup create "$1" --table "0 $(($3 * MIB)) linear /dev/vda $(($2 * MIB))" &&
		dmsetup mknodes "$1" && echo "/dev/mapper/$1" >"/tmp/$1.dev"
}

# Nothing is written back by itself for as long as a round may take.
cached() {
	echo 0 >/proc/sys/vm/dirty_writeback_centisecs
	echo 360000 >/proc/sys/vm/dirty_expire_centisecs
	echo 90 >/proc/sys/vm/dirty_background_ratio
	echo 95 >/proc/sys/vm/dirty_ratio
}

# Blocks that are written later are there, so that nothing but their content is dirty.
new_files() {
	mke2fs -q -t ext4 /dev/mapper/files && mount -t ext4 /dev/mapper/files /tmp/files &&
		for name in tree raw; do
			dd if=/dev/zero of=/tmp/files/$name bs=1M count=20 conv=fsync \
				status=none || return
		done
}

setup() {
	load kofi_sock silence_timeout=5000 kofi_verbs kofi_blkt && configfs && device_up ||
		return
	part plain 0 16 && part other 16 16 && part files 32 64 && cached || return
	mkdir -p /tmp/files
	case $VM_BOOT in
	1) new_files ;;
	*) mount -t ext4 /dev/mapper/files /tmp/files ;;
	esac || return
	echo /tmp/files/tree >/tmp/tree.dev && echo /tmp/files/raw >/tmp/raw.dev
}

volumes() {
	n=0
	for name in plain other tree raw; do
		n=$((n + 1))
		volume $name uuid=$UUIDS$n direct=0 || return
	done
}

step "setup $VM_BOOT" setup && step "volumes $VM_BOOT" volumes && step "ports $VM_BOOT" ports ||
	exit
signal "up $VM_BOOT"

# --- what b asks for ---

port_again() {	# PROVIDER: one whose device has gone and come back
	echo 0 >"$TARGET/ports/$1/enable" && echo 1 >"$TARGET/ports/$1/enable"
}

device_away() { device_down && device_up && port_again verbs; }
port_off() { port_gone "$1"; }
port_on() { port "$1" 10.0.0.1; }
held() { expect_fail rmmod kofi_blkt; }
unused() {
	for name in plain other tree raw; do
		[ "$(stat_of $name connections)" = 0 ] || return
	done
}

# The client dies time after time; nothing of it may be left.
client_dies() {	# ROUNDS
	round=0
	while [ $round -lt "$1" ]; do
		round=$((round + 1))
		wait_for "busy $round" && kill_machine b && retry unused &&
			start_machine b || return
	done
}

orders "$VM_BOOT" 1
obey || exit
step client-dies client_dies "$ROUNDS"
orders "$VM_BOOT" $((ROUNDS + 1))
obey
step unused retry unused
step gone target_gone
umount /tmp/files
dmsetup remove_all
step nothing-left retry no_objects

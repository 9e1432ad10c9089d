# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The target, whose disk is the volume

. "$VM/common.sh"

# seconds for which the disk is watched: TCP repeats data within that time
WATCH=40

target() { setup kofi_blkt && echo /dev/vda >/tmp/vol0.dev && volume vol0 && ports; }

is() {		# WORD: the content of the disk itself
	dd if=/dev/vda of=/tmp/now bs=4k count=1 iflag=direct status=none &&
		cmp /tmp/now "/tmp/data.$1"
}

stays_new() {
	end=$(($(cut -d. -f1 /proc/uptime) + WATCH))
	while [ "$(cut -d. -f1 /proc/uptime)" -lt $end ]; do
		is new || return
		sleep 0.1
	done
}

round() {	# NAME PROVIDER END
	sync "$1 mapped"
	step "$1 zero" is zero
	sync "$1 failed"
	sync "$1 written"
	sync "$1 healed"
	step "$1 stays-new" stays_new
	sync "$1 watched"
	sync "$1 over"
}

step setup target || exit
sync serving
rounds
step gone target_gone
step nothing-left retry no_objects

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The client that is cut off

. "$VM/common.sh"

mapped() {
	retry map m vol0 "$1" io_timeout="$VM_SLOW" path_timeout=$((3 * VM_SLOW)) &&
		direct /tmp/data.zero "$(device m)"
}

old_fails() {
	link down && expect_fail direct /tmp/data.old "$(device m)" && state m failed
}

round() {	# NAME PROVIDER END
	step "$1 map" mapped "$2"
	sync "$1 mapped"
	step "$1 old-fails" old_fails
	[ "$3" != failed ] || step "$1 unmap" unmap m force
	sync "$1 failed"
	sync "$1 written"
	step "$1 heal" link up
	sync "$1 healed"
	sync "$1 watched"
	if [ "$3" = healed ]; then
		step "$1 live" retry state m live
		step "$1 unmap" unmap m
	fi
	sync "$1 over"
}

step setup setup kofi_blk || exit
sync serving
rounds
step nothing-left retry no_objects

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The client that writes later

. "$VM/common.sh"

new() { direct /tmp/data.new "$(device m)" && flush "$(device m)"; }

round() {	# NAME PROVIDER END
	step "$1 map" map m vol0 "$2"
	sync "$1 mapped"
	sync "$1 failed"
	step "$1 new" new
	sync "$1 written"
	sync "$1 healed"
	sync "$1 watched"
	step "$1 unmap" unmap m
	sync "$1 over"
}

step setup setup kofi_blk || exit
sync serving
rounds
step nothing-left retry no_objects

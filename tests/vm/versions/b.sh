# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The client of kofi_blk, kofi bw and kofi lat: this version, then the previous one.

. "$VM/common.sh"

MODULE=kofi_blk

maps() {
	sock=$(kofi blk map 10.0.0.1 device -p sock --queues 2) &&
		verbs=$(kofi blk map 10.0.0.1 file -p verbs) || return
	echo "$sock" >/tmp/device.disk && echo "$verbs" >/tmp/file.disk
}
disk() { cat "/tmp/$1.disk"; }

few() { verify "$(disk "$1")" --iodepth=8 --io_size=2m; }
both() { few device && few file; }

measure() {	# NAME COMMAND OPTION...
	sync "$1"
	name=$1
	shift
	step "$name" timeout 60 kofi "$@" -I 20 -w 2 -v -S 4096 a
}

# Requests go on while the target changes its version, and none fails.
loads() {
	rm -f /tmp/changed
	for volume in device file; do
		while [ ! -e /tmp/changed ]; do
			verify "$(disk $volume)" --iodepth=4 --io_size=256k || exit
		done >/tmp/load.$volume 2>&1 &
		echo $! >/tmp/load.$volume.pid
	done
}
load_done() {
	touch /tmp/changed
	for volume in device file; do
		wait "$(cat /tmp/load.$volume.pid)" || {
			cat /tmp/load.$volume
			return 1
		}
	done
}

writes() {	# VERSION of the target, which compares its file at last
	for volume in device file; do
		head -c 4194304 /dev/urandom >/tmp/random &&
			dd if=/tmp/random of="$(disk $volume)" bs=256k conv=fsync status=none &&
			head -c 4194304 "$(disk $volume)" | cmp - /tmp/random &&
			sha256sum </tmp/random || return
	done >/tmp/sums
}
unmaps() { kofi blk unmap "$(disk device)" && kofi blk unmap "$(disk file)"; }

# The previous target has no digests.
without_digests() {
	says "or one side demands digests" 1 kofi blk map 10.0.0.1 device --name y \
		--digest required &&
		says /dev/kofiblk 0 kofi blk map 10.0.0.1 device --name y --digest optional &&
		[ "$(client_stat y digests)" = 0 ] && kofi blk unmap y
}

# The target has no lists of identities, or this client has no identity. One side has no digests.
refuses() {	# VERSION of the target
	case $1 in
	previous)
		without_digests || return
		head -c 32 /dev/urandom >/tmp/key &&
			keyctl padd logon kofi:host1 %:.kofi_blk </tmp/key >/dev/null || return
		says "kofi: " 1 kofi blk map 10.0.0.1 device --name x --identity host1 --key kofi:host1 ;;
	this)
		says "kofi: " 1 kofi blk map 10.0.0.1 secret --name x &&
			says "kofi: " 1 kofi blk map 10.0.0.1 device --name x ;;
	esac
}

role() {	# VERSION of the target
	choose "$(other_than "$1")"
	step "$1 target: start $(other_than "$1")" start || exit
	sync "$1 target"
	step "$1 target: map" maps || exit
	step "$1 target: verify" both
	sync "$1 target: mapped"
	tools "$1 target:"
	sync "$1 target: listed"
	measures "$1 target:"
	sync "$1 target: port again"
	step "$1 target: verify again" both
	sync "$1 target: refuses"
	step "$1 target: refused" refuses "$1"
	check "$1 target: load" loads
	sync "$1 target: refused"
	sync "$1 target: loaded"
	sync "$1 target: changed"
	check "$1 target: no error" load_done
	step "$1 target: write" writes
	step "$1 target: unmap" unmaps
	put "$1-sums" "$(tr '\n' ' ' </tmp/sums)"
	sync "$1 target: over"
}

step prepare prepare || exit
step configfs configfs
step "make rxe" rdma link add rxe type rxe netdev eth0
role previous
role this
choose this

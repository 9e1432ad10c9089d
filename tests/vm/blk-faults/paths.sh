# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Two paths to volume plain, p over sockets and q over RDMA, below dm-multipath.

# What multipathd does: paths that are connected again are used again.
checker() {
	while [ ! -e /tmp/stop ]; do
		for path in p q; do
			dmsetup status mp | grep -qF " $(number $path) F" && state $path live &&
				dmsetup message mp 0 "reinstate_path $(number $path)"
		done
		sleep 0.2
	done
}
number() { cat "/sys/block/$(cat "$CLIENT/$1/device")/dev"; }
wwid() { cat "/sys/block/$(cat "$CLIENT/$1/device")/wwid"; }

paths() {
	rm -f /tmp/stop
	map p plain sock path_timeout=3 io_timeout=2 uuid=${UUIDS}1 &&
		map q plain verbs path_timeout=3 io_timeout=2 uuid=${UUIDS}1 || return
	cat "/sys/block/$(cat "$CLIENT/p/device")/wwid"
	[ "$(wwid p)" = "$(wwid q)" ] && trace_requests || return
	groups="round-robin 0 1 1 $(number p) 1 round-robin 0 1 1 $(number q) 1"
	# shellcheck disable=SC2086
	echo "0 $(cat "/sys/block/$(cat "$CLIENT/p/device")/size")" \
		multipath 1 queue_if_no_path 0 2 1 $groups | dmsetup create mp &&
		dmsetup mknodes mp || return
	checker >/tmp/checker 2>&1 &
	checker=$!
	load_on mp /dev/mapper/mp && dm=$(dm_disk) && moves mp "$dm"
}
dm_disk() { for d in /sys/block/dm-*; do [ "$(cat "$d/dm/name")" != mp ] || echo "${d##*/}"; done; }

no_paths() {
	touch /tmp/stop
	wait "$checker"
	load_off mp && dmsetup remove mp || return
	p=$(device p) q=$(device q)
	requests_complete_once "$p" "$q" && unmap p && unmap q
}

path_lost() {	# NAME: the other one goes on
	retry state "$1" failed && moves mp "$dm" && dmsetup status mp
}

path_back() {	# NAME
	retry state "$1" live && retry used "$1" && moves mp "$dm"
}
used() { dmsetup status mp | grep -qF " $(number "$1") A"; }

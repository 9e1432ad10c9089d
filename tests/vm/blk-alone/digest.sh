# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Digests of commands, answers and data: which connections have them. blk-hostile damages
# commands, answers and data.

port_digest() { echo "$2" >"$TARGET/ports/$1/digest"; }
digested() {	# 0|1: both sides say so
	[ "$(client_stat m digests)" = "$1" ] &&
		grep -q "^.* session=.* digests=$1\$" $TARGET/volumes/vol0/clients
}

# Words of the mapping and of the port, and whether connections have digests
negotiated() {	# PROVIDER
	provider=$1
	for words in "off off 0" "off optional 0" "optional off 0" "optional optional 1" \
		"optional required 1" "required optional 1" "required required 1"; do
		# shellcheck disable=SC2086 # three words
		set -- $words
		port_digest "$provider" "$2" && map m vol0 "$provider" digest="$1" &&
			disk=$(device m) && digested "$3" && direct /dev/urandom "$disk" || return
		case $1 in off) stable=0 ;; *) stable=1 ;; esac
		[ "$(limit "$disk" stable_writes)" = $stable ] &&
			expect_fail sh -c "echo off >$CLIENT/m/digest" && unmap m || return
	done
	refused "digests are demanded" vol0 "$provider" &&
		target_refused "digests are demanded" || return
	port_digest "$provider" off && dmesg -c >/dev/null &&
		expect_fail map refused vol0 "$provider" digest=required && unmap refused &&
		dmesg | grep -q "uses no digests, which the mapping of vol0 demands" &&
		port_digest "$provider" optional
}

# Each kind of command and of queue, and lengths of data
with_digests() {	# PROVIDER
	map m vol0 "$1" digest=required queues=2 polled=1 && disk=$(device m) && digested 1 &&
		verify "$disk" --iodepth=16 --io_size=4m && discards "$disk" && polls "$disk" &&
		ext4 "$disk" 20 && [ "$(client_stat m digest_errors)" = 0 ] &&
		[ "$(stat_of vol0 digest_errors)" = 0 ] && unmap m
}

# The device completes reads in an interrupt handler, which computes no digest.
digests_later() {	# PROVIDER
	null=/sys/kernel/config/nullb/timer
	mkdir $null || return
	for vm_w in size=8 memory_backed=1 queue_mode=2 irqmode=2 power=1; do
		echo "${vm_w#*=}" >"$null/${vm_w%=*}" || return
	done
	echo /dev/timer >/tmp/timer.dev
	volume timer && map m timer "$1" digest=required && disk=$(device m) &&
		verify "$disk" --iodepth=16 --io_size=4m && [ "$(client_stat m digests)" = 1 ] &&
		[ "$(client_stat m digest_errors)" = 0 ] && unmap m && volume_gone timer &&
		rmdir $null
}

# The word of the port at the time of a connection decides whether it has digests.
digests_change() {	# PROVIDER
	map m vol0 "$1" digest=optional && disk=$(device m) && digested 1 || return
	port_digest "$1" off && digested 1 && connect_again "$1" && retry state m live &&
		digested 0 && direct /dev/urandom "$disk" || return
	port_digest "$1" optional && connect_again "$1" && retry state m live && digested 1 &&
		direct /dev/urandom "$disk" && unmap m || return
	map m vol0 "$1" digest=required && port_digest "$1" off && connect_again "$1" &&
		retry logged_now "uses no digests" && state m connecting &&
		port_digest "$1" optional && retry state m live && digested 1 &&
		direct /dev/urandom "$(device m)" && unmap m
}

# The tool, which has the same words
digest_by_tool() {
	says "digest wants off, optional or required" 2 kofi blk map 127.0.0.1 vol0 --digest on &&
		says /dev/kofiblk 0 kofi blk map 127.0.0.1 vol0 --name tool --digest required &&
		says " digest=required" 0 kofi blk list &&
		says " stat=digests 1,digest_errors 0" 0 kofi blk list || return
	port_digest sock off && says "" 0 kofi blk save /tmp/digest.conf &&
		grep -qx "digest = off" /tmp/digest.conf && port_digest sock required &&
		says "" 0 kofi blk restore /tmp/digest.conf &&
		[ "$(cat $TARGET/ports/sock/digest)" = off ] &&
		says "or one side demands digests" 1 kofi blk map 127.0.0.1 vol0 --digest required &&
		sed -i "s/^digest = off/digest = on/" /tmp/digest.conf &&
		says "" 2 kofi blk restore /tmp/digest.conf || return
	# the file of an earlier version, which reads the file of this version, too
	sed -i "/^digest/d" /tmp/digest.conf && says "" 0 kofi blk restore /tmp/digest.conf &&
		[ "$(cat $TARGET/ports/sock/digest)" = optional ] &&
		says "" 0 kofi blk save /tmp/optional.conf && cmp /tmp/digest.conf /tmp/optional.conf &&
		says "" 0 kofi blk unmap tool
}

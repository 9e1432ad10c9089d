# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# What the block device is like: limits, names, partitions; and who gets one.

# --- limits ---

is() {		# DEVICE LIMIT VALUE
	[ "$(limit "$1" "$2")" = "$3" ] && return
	echo "$2: $(limit "$1" "$2"), not $3"
	return 1
}

copied() {	# DEVICE: what is written there is read; less to start than fio
	dd if=/dev/urandom of=/tmp/in bs=1M count=4 status=none &&
		dd if=/tmp/in of="$1" bs=1M oflag=direct conv=notrunc status=none &&
		dd if="$1" of=/tmp/out bs=1M count=4 iflag=direct status=none && cmp /tmp/in /tmp/out
}

# As those of the target's device; what would take long is bounded.
limits() {	# VOLUME PROVIDER
	map m "$1" "$2" || return
	disk=$(device m) of=$(cat "/tmp/$1.dev")
	for limit in logical_block_size physical_block_size minimum_io_size optimal_io_size \
		rotational write_cache discard_granularity; do
		is "$disk" $limit "$(limit "$of" $limit)" || return
	done
	for limit in discard_max_bytes write_zeroes_max_bytes; do
		bytes=$(limit "$of" $limit)
		[ "$bytes" -lt 16777216 ] || bytes=16777216
		is "$disk" $limit "$bytes" || return
	done
	is "$disk" max_hw_sectors_kb 256 && is "$disk" max_segments 65 &&
		is "$disk" virt_boundary_mask 4095 &&
		copied "$disk" && unmap m
}

# Devices with what the others do not have
spinning() {
	backing spinning 8 &&
		echo 1 >"/sys/block/$(sed 's,/dev/,,' /tmp/spinning.dev)/queue/rotational"
}
large_blocks() {
	null=/sys/kernel/config/nullb/large
	mkdir "$null" || return
	for vm_w in blocksize=4096 size=8 memory_backed=1 discard=1 cache_size=1 power=1; do
		echo "${vm_w#*=}" >"$null/${vm_w%=*}" || return
	done
	echo /dev/large >/tmp/large.dev
}

striped() {
	backing stripe0 8 && backing stripe1 8 &&
		dmsetup create striped --table "0 32768 striped 2 128 $(cat /tmp/stripe0.dev) 0 \
			$(cat /tmp/stripe1.dev) 0" && echo /dev/dm-0 >/tmp/striped.dev
}

all_limits() {
	spinning && large_blocks || return
	volumes="spinning large"
	case $VM_KERNEL in stock | newest)
		striped && [ "$(limit /dev/dm-0 optimal_io_size)" = 131072 ] || return
		volumes="$volumes striped" ;;
	esac
	for name in $volumes; do
		volume "$name" || return
		for provider in $PROVIDERS; do limits "$name" "$provider" || return; done
		volume_gone "$name" || return
	done
	rmdir "$null"
}

# Where a region has 16 pages, and a request may begin in the middle of one
few_pages() {
	load kofi_testrdma gaps=0 pages=16 && rdma_link few dma "$FEW" && port few "$FEW" &&
		map m vol0 few || return
	disk=$(device m)
	is "$disk" max_segments 16 && is "$disk" max_hw_sectors_kb 60 && copied "$disk" &&
		verify "$disk" --iodepth=16 --io_size=4m --iomem_align=512 && discards "$disk" &&
		unmap m && port_gone few
}

# --- names ---

reused() {	# NAME OF-THE-DEVICE
	map "$1" vol0 sock && [ "$(device "$1")" = "$2" ] && return
	unmap "$1"
	return 1
}

# The name of a device is another one's when no program has it open any more.
name_kept() {
	map m vol0 sock || return
	disk=$(device m)
	exec 9<"$disk"
	expect_fail unmap m && unmap m force && map m vol0 sock &&
		[ "$(device m)" != "$disk" ] || return
	# nothing is read any more, which is an error or an end
	dd bs=4k count=1 iflag=direct of=/tmp/out <&9
	[ ! -s /tmp/out ] && at 4k 0 "$(device m)" || return
	exec 9<&-
	retry reused n "$disk" && unmap n && unmap m
}

# --- partitions ---

# One, of 8 MiB, that begins at 1 MiB
table() {
	head -c 446 /dev/zero && printf '\0\0\0\0\203\0\0\0\0\010\0\0\0\100\0\0' &&
		head -c 48 /dev/zero && printf '\125\252'
}

partitions() {	# PROVIDER
	map m vol0 "$1" || return
	disk=$(device m)
	part=${disk}p1
	[ ! -b "$part" ] && table >/tmp/table &&
		dd if=/tmp/table of="$disk" bs=512 conv=notrunc,fsync status=none &&
		blockdev --rereadpt "$disk" && retry test -b "$part" && ext4 "$part" 30 || return
	[ "$(cat "/sys/class/block/${part#/dev/}/size")" = 16384 ] || return
	mount -t ext4 -o ro "$part" /tmp/mnt && target_gone && retry state m connecting &&
		target_back && retry state m live && echo 3 >/proc/sys/vm/drop_caches &&
		same /tmp/mnt && umount /tmp/mnt && unmap m || return
	# it is found by itself, and is where the table says
	map m vol0 "$1" && disk=$(device m) && retry test -b "${disk}p1" &&
		head -c 4096 /dev/urandom >/tmp/in && direct /tmp/in "${disk}p1" &&
		dd if="$disk" of=/tmp/out bs=4k skip=256 count=1 iflag=direct status=none &&
		cmp /tmp/in /tmp/out && direct /dev/zero "$disk" && blockdev --rereadpt "$disk" &&
		[ ! -b "${disk}p1" ] && unmap m
}

# --- a file that shrinks while it is mapped ---

at() {		# SIZE NUMBER DEVICE: that block is read
	dd if="$3" of=/tmp/out bs="$1" skip="$2" count=1 iflag=direct status=none
}

shrunk() {	# PROVIDER
	map m file "$1" || return
	disk=$(device m)
	dd if=/dev/urandom of=/tmp/in bs=64k count=128 status=none &&
		dd if=/tmp/in of="$disk" bs=64k oflag=direct conv=notrunc status=none &&
		truncate -s 4M /tmp/file.img || return
	expect_fail at 64k 64 "$disk" || return
	# it begins before the end
	expect_fail at 24k 170 "$disk" || return
	expect_fail dd if=/tmp/in of="$disk" bs=4k seek=1024 count=1 oflag=direct conv=notrunc ||
		return
	expect_fail blkdiscard -o 4194304 -l 65536 "$disk" || return
	[ "$(stat -c %s /tmp/file.img)" = 4194304 ] && direct /dev/zero "$disk" && at 4k 0 "$disk" &&
		cmp -n 4096 /tmp/out /dev/zero && at 64k 63 "$disk" || return
	tail -c +4128769 /tmp/in | cmp -n 65536 - /tmp/out && flush "$disk" || return
	truncate -s 8M /tmp/file.img && at 64k 64 "$disk" && cmp -n 65536 /tmp/out /dev/zero &&
		unmap m
}

# --- who gets one ---

# Both prefixes end within a byte of the address.
inet6() {	# PROVIDER ADDRESS MATCHING OTHER
	regular six 8 && port six "$2" "$1" || return
	volume six allow="192.0.2.0/24,$3" && map m six "$1" addr="$2" || return
	disk=$(device m)
	copied "$disk" && echo 0 >"$TARGET/ports/six/enable" &&
		retry state m connecting && echo 1 >"$TARGET/ports/six/enable" &&
		retry state m live && direct /dev/zero "$disk" && unmap m || return
	volume_gone six && volume six allow="$4,0.0.0.0/0" &&
		refused "access denied" six "$1" addr="$2" && target_refused "address not in the volume" &&
		volume_gone six && port_gone six
}

CONNECTIONS=/sys/module/kofi_blkt/parameters/connections
crowded() {	# PROVIDER
	most=$(cat $CONNECTIONS)
	! echo 0 >$CONNECTIONS && ! echo 65537 >$CONNECTIONS || return
	map m vol0 "$1" && echo 1 >$CONNECTIONS || return
	refused "too many connections" file "$1" && target_refused "too many connections" || return
	[ "$1" != sock ] ||
		says "as many connections as it can have" 1 kofi blk map "$SOCK" file || return
	echo "$most" >$CONNECTIONS && map n file "$1" && unmap n && unmap m
}

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Client and target in one machine, where KASAN and lockdep watch both.

. "$VM/steps.sh"
. "$VM/device.sh"
. "$VM/restart.sh"
. "$VM/access.sh"
. "$VM/auth.sh"
. "$VM/digest.sh"

export SOCK=127.0.0.1 VERBS=10.99.1.1 SIW=10.99.2.1 FEW=10.99.3.1 DM_DISABLE_UDEV=1
VERBS6=fd99:1:2::1
UUID=0f8a3e1c-5d2b-4c7e-9a61-3b7d1e5f2c90
PROVIDERS="sock verbs"
# Debian's kernels have no siw
case $VM_KERNEL in uml | debug) PROVIDERS="$PROVIDERS siw" ;; esac

setup() {
	load kofi_sock kofi_verbs kofi_blk kofi_blkt && configfs || return
	ip link set lo up
	rdma_link rxe rxe $VERBS $VERBS6 || return
	case $PROVIDERS in *siw) rdma_link siw siw $SIW || return ;; esac
	backing vol0 64 && backing ro 8 && backing closed 8 && regular file 8
}

volumes() {
	volume vol0 uuid=$UUID && volume ro readonly=1 && volume closed allow=192.0.2.0/24 &&
		volume file
}

ports() {
	port sock $SOCK && port verbs $VERBS || return
	case $PROVIDERS in *siw) port siw $SIW ;; esac
}

all() {		# PROVIDER
	step "$1 map" map m vol0 "$1" queues=2 polled=1 path_timeout=20 io_timeout=10 || return
	disk=$(device m)
	step "$1 rmmod-refused" expect_fail rmmod kofi_blk
	step "$1 polls" polls "$disk"
	step "$1 simple" discards "$disk"
	step "$1 verify" verify "$disk" --iodepth=16 --io_size=8m
	step "$1 ext4" ext4 "$disk" 30
	step "$1 unmap" unmap m
	[ "$1" = siw ] || step "$1 unpolled" unpolled "$1"
}

polls() {	# DEVICE
	[ "$(limit "$1" io_poll)" = 1 ] &&
		verify "$1" --ioengine=io_uring --hipri --iodepth=16 --io_size=4m
}

# A program has sent requests and is stopped before it polls for them.
stopped() { ! grep -h "^State:" "/proc/$1"/task/*/status | grep -qv "T (stopped)"; }
caught() {	# PID DEVICE
	! quiet "$2" && kill -STOP "$1" && retry stopped "$1" && ! quiet "$2" && return
	kill -CONT "$1"
	return 1
}

# They complete all the same, and the connection is none the worse.
unpolled() {	# PROVIDER
	map m vol0 "$1" polled=1 io_timeout=$((5 * VM_SLOW)) || return
	disk=$(device m)
	dmesg -c >/dev/null
	fio --name=unpolled --filename="$disk" --direct=1 --ioengine=io_uring --hipri \
		--rw=randread --bs=4k --iodepth=16 --time_based --runtime=3600 --thread \
		>/tmp/fio &
	retry caught $! "$disk" && retry quiet "$disk" || return
	kill -CONT $! && kill -INT $! && wait $!
	dmesg >/tmp/dmesg
	cat /tmp/fio /tmp/dmesg
	state m live && ! grep -q "no answer for" /tmp/dmesg && unmap m
}

step begin setup || exit
step export volumes || exit
step listen ports || exit
for provider in $PROVIDERS; do all "$provider"; done
step limits all_limits
step name-kept name_kept
[ "$VM_KERNEL" != uml ] || step few-pages few_pages
step "sock inet6" inet6 sock ::1 ::/127 ::2/127
step "verbs inet6" inet6 verbs $VERBS6 fd99:1:3::/47 fd99:1:4::/47
bad() {		# PROVIDER
	step "$1 unknown" refused "access denied" nothing "$1"
	step "$1 unknown-target" target_refused "unknown volume"
	step "$1 denied" refused "access denied" closed "$1"
	step "$1 denied-target" target_refused "address not in the volume's list"
	step "$1 readonly" read_only "$1"
	step "$1 file" file_volume "$1"
	step "$1 resized" resized "$1"
	step "$1 shrunk" shrunk "$1"
	step "$1 crowded" crowded "$1"
}

# A connect request of kofi_sock by hand, with these private data, is sent until CMD...
# succeeds; what arrives is in /tmp/answer.
by_hand() {	# LENGTH DATA CMD...: octal, and printf's
	vm_len=$1 vm_data=$2
	shift 2
	rm -f /tmp/answer
	{
		printf "\\003\\000\\000\\$vm_len" && head -c 20 /dev/zero &&
			printf "\\001\\000\\000\\000\\000\\000\\000\\000$vm_data" && "$@"
	} | busybox nc "$SOCK" 4421 >/tmp/answer
}

# A login of version 1, whose client gets version 2 in its refusal
wrong_version() {
	dmesg -c >/dev/null
	by_hand 064 'kblk\001\000\001\000' \
		sh -c 'head -c 44 /dev/zero; until [ -s /tmp/answer ]; do sleep 0.1; done' || return
	tail -c +33 /tmp/answer | od -An -v -tu1 -N 10
	tail -c +33 /tmp/answer | od -An -v -tu1 -N 10 |
		grep -q "^ *107 *98 *108 *107 *2 *0 *2 *0 *2 *0$" &&
		dmesg | grep "speaks version 1, this target 2 to 2" &&
		target_refused "wrong version"
}

# A connection without a login is ended, and holds nothing.
logged() { dmesg | grep -q "$1"; }
no_login() {
	dmesg -c >/dev/null
	by_hand 020 'kblk\002\000\002\000\000\000\000\000\100\000\000\000' \
		retry logged "127.0.0.1.*has not logged in" && dmesg &&
		logged "127.0.0.1.*has not logged in" && map m vol0 sock && unmap m
}

file_volume() {	# PROVIDER
	map m file "$1" || return
	disk=$(device m)
	# on a file system without direct I/O
	[ "$(stat_of file direct)" = 0 ] || return
	discards "$disk" && verify "$disk" --iodepth=4 --bsrange=512-128k --io_size=2m &&
		flush "$disk" && unmap m
}

read_only() {	# PROVIDER
	map m ro "$1" || return
	disk=$(device m)
	[ "$(cat "/sys/block/${disk#/dev/}/ro")" = 1 ] && is "$disk" discard_max_bytes 0 &&
		is "$disk" write_zeroes_max_bytes 0 &&
		expect_fail dd if=/dev/zero of="$disk" bs=4k count=1 oflag=direct &&
		dd if="$disk" of=/dev/null bs=64k iflag=direct && unmap m
}

# Requests of several sizes there and back, until told to stop; less to start than fio
until_told() {	# DEVICE MIB: where to write
	while [ ! -e /tmp/stop ]; do
		for size in 512 4096 65536 262144; do
			at=$(($2 * 1048576 / size))
			dd if=/dev/urandom of="/tmp/in.$2" bs=$size count=4 status=none &&
				dd if="/tmp/in.$2" of="$1" bs=$size seek=$at oflag=direct \
					conv=notrunc status=none &&
				dd if="$1" of="/tmp/out.$2" bs=$size skip=$at count=4 \
					iflag=direct status=none &&
				cmp "/tmp/in.$2" "/tmp/out.$2" || return
		done
	done
}

# The target goes away and comes back, more than once, while data is verified:
# nothing is lost, nothing fails.
rounds() {	# PROVIDER
	map m vol0 "$1" path_timeout=100 queues=2 || return
	disk=$(device m)
	rm -f /tmp/stop
	jobs=
	for at in 0 8 16 24; do
		until_told "$disk" $at &
		jobs="$jobs $!"
	done
	for _ in 1 2 3; do
		retry busy || return
		target_gone || return
		retry state m connecting || return
		target_back && retry state m live || return
	done
	touch /tmp/stop
	for job in $jobs; do wait "$job" || return; done
	unmap m
}

busy() {	# something has been done since the target came up
	[ "$(stat_of vol0 writes)" -gt 5 ]
}

failing() {	# PROVIDER: the path is gone for longer than the time-out
	retry map m vol0 "$1" path_timeout=$((2 * VM_SLOW)) || return
	disk=$(device m)
	target_gone || return
	expect_fail dd if=/dev/zero of="$disk" bs=4k count=1 oflag=direct || return
	state m failed || return
	target_back && retry state m live &&
		dd if=/dev/zero of="$disk" bs=4k count=1 oflag=direct && unmap m
}

# A volume on the device of another mapping, m, so that it can hang and fail.
stacked() {	# TIMEOUT-OF-M TIMEOUT-OF-N
	retry map m vol0 sock path_timeout="$1" && device m >/tmp/over.dev && volume over &&
		retry map n over verbs path_timeout="$2" io_timeout="$VM_SLOW" uuid="$(uuid_of over)"
}

unstacked() { unmap n && volume_gone over && unmap m; }
waits_for() { ! quiet "$(device "$1")"; }
enable() { echo "$2" >"$TARGET/volumes/$1/enable"; }

# What a target is still doing for a mapping that has gone is not done after what
# the next one asks for.
late_write() {
	stacked 100 100 || return
	disk=$(device n)
	enable vol0 0 && retry state m connecting || return
	head -c 4096 /dev/urandom >/tmp/new
	direct /dev/zero "$disk" &
	retry waits_for n && unmap n force && expect_fail wait $! || return
	expect_fail map n over verbs io_timeout="$VM_SLOW" || return
	enable vol0 1 && retry state m live && map n over verbs io_timeout=60 || return
	direct /tmp/new "$disk" &&
		dd if="$disk" of=/tmp/out bs=4k count=1 iflag=direct status=none &&
		cmp /tmp/new /tmp/out && unstacked
}

# What clients n, o and away of a volume have been told to be written may be lost. The
# device below says it once, to n; the flushes of each fail all the same, for as long
# as its device is open, also if it has to connect again before it flushes. So do those
# of a path to the volume over which nothing has been written.
told_each() {
	for client in o away path; do
		map $client over sock uuid="$(uuid_of over)" || return
	done
	n=$(device n)
	o=$(device o)
	exec 7<>"$(device path)" 8<>"$o" 9<>"$n"
	direct /dev/zero "$n" && direct /dev/zero "$o" && direct /dev/zero "$(device away)" &&
		enable vol0 0 && retry state m failed || return
	expect_fail flush "$n" && enable vol0 1 && retry state m live || return
	expect_fail flush "$o" || return
	enable over 0 && retry state away connecting && enable over 1 || return
	for client in away path n o; do
		retry state $client live && expect_fail flush "$(device $client)" || return
	done
	exec 7<&- 8<&- 9<&-
	for client in away path n o; do flush "$(device $client)" || return; done
	unmap o && unmap away && unmap path
}

# The same for what a volume could not flush when it was disabled
lost_cache() {
	stacked "$VM_SLOW" 100 || return
	flush "$(device n)" && direct /dev/zero "$(device n)" || return
	enable vol0 0 && retry state m failed && enable over 0 || return
	enable vol0 1 && retry state m live && enable over 1 || return
	retry state n live && expect_fail flush "$(device n)" && told_each && unstacked
}

# Of a file whose writeback fails
lost_pages() {
	retry map m vol0 sock path_timeout="$VM_SLOW" || return
	mke2fs -q -t ext4 -O ^has_journal "$(device m)" && mkdir -p /tmp/mnt &&
		mount -t ext4 "$(device m)" /tmp/mnt &&
		dd if=/dev/zero of=/tmp/mnt/img bs=1M count=4 conv=fsync status=none || return
	echo /tmp/mnt/img >/tmp/over.dev && volume over &&
		map n over verbs uuid="$(uuid_of over)" || return
	[ "$(stat_of over direct)" = 1 ] && copied "$(device n)" && flush "$(device n)" || return
	told_each && unmap n && volume_gone over && umount /tmp/mnt &&
		unmap m
}

flushed() { awk '{ print $16 }' "$1/stat"; }
flushes() {	# CMD...: the device of volume late has been flushed
	was=$(flushed "$late")
	"$@" && [ "$(flushed "$late")" -gt "$was" ]
}

# A device gets a write cache behind the back of clients that do not flush.
late_cache() {
	backing late 8 && late=/sys/block/$(sed 's,/dev/,,' /tmp/late.dev) || return
	echo "write through" >"$late/queue/write_cache" && volume late && map m late sock || return
	disk=$(device m)
	[ "$(limit "$disk" write_cache)" = "write through" ] &&
		expect_fail flushes direct /dev/zero "$disk" || return
	echo "write back" >"$late/queue/write_cache" || return
	flushes direct /dev/zero "$disk" && flushes blkdiscard -z -l 65536 "$disk" || return
	unmap m && volume_gone late
}

# A device gets another size, and its client sees it while it is used.
sized() { [ "$(cat "/sys/block/${1#/dev/}/size")" = $(($2 << 11)) ]; }
resize() {	# MIB
	truncate -s "$1M" /tmp/sized.img && losetup -c "$(cat /tmp/sized.dev)" &&
		expect_fail sized "$disk" "$1" &&
		echo 1 >$TARGET/volumes/sized/resize && retry sized "$disk" "$1"
}
resized() {	# PROVIDER
	backing sized 8 && volume sized && map m sized "$1" queues=2 || return
	disk=$(device m)
	rm -f /tmp/stop
	until_told "$disk" 0 &
	job=$!
	dmesg -c >/dev/null
	resize 16 && dd if=/dev/urandom of=/tmp/end bs=64k count=1 status=none &&
		dd if=/tmp/end of="$disk" bs=64k seek=255 oflag=direct conv=notrunc status=none &&
		dd if="$disk" of=/tmp/out bs=64k skip=255 iflag=direct status=none &&
		cmp /tmp/end /tmp/out && expect_fail sh -c "dmesg | grep shrunk" || return
	resize 12 && dmesg | grep "has shrunk to 24576 sectors" || return
	touch /tmp/stop
	wait $job && unmap m && volume_gone sized && losetup -d "$(cat /tmp/sized.dev)"
}

# A write for which there is no space says so, and is no failure of a flush.
full() {
	mkdir -p /tmp/small && mount -t tmpfs -o size=2m tmpfs /tmp/small &&
		truncate -s 4M /tmp/small/img && echo /tmp/small/img >/tmp/small.dev &&
		volume small && map m small sock || return
	disk=$(device m)
	exec 9<>"$disk"
	expect_fail dd if=/dev/zero of="$disk" bs=64k oflag=direct,dsync conv=notrunc \
		2>/tmp/why || return
	cat /tmp/why
	grep -q "No space left on device" /tmp/why && flush "$disk" || return
	exec 9<&-
	unmap m && volume_gone small && umount /tmp/small
}

# Nobody is admitted at first. An empty list is a mistake, "none" and "all" decisions.
allows() {
	dir=$TARGET/volumes/allow
	mkdir "$dir" && grep -qx none "$dir/allow" && echo 192.0.2.1 >"$dir/allow" || return
	for list in "" " " , 192.0.2.1, all,192.0.2.1 none,192.0.2.1 fe80::1 fe80::/10 \
		192.0.2.1,fe80::1; do
		! echo "$list" 2>/dev/null >"$dir/allow" || return
	done
	grep -qx 192.0.2.1/32 "$dir/allow" && echo fe80::1%lo,fe80::2%1/64 >"$dir/allow" &&
		[ "$(tr '\n' ' ' <"$dir/allow")" = "fe80::1%1/128 fe80::2%1/64 " ] || return
	for list in all none; do
		echo $list >"$dir/allow" && grep -qx $list "$dir/allow" || return
	done
	rmdir "$dir"
}

# Without a list nobody maps a volume, and without a link no port reaches it.
denied_first() {
	backing first 8 && volume first allow=none || return
	refused "access denied" first sock && target_refused "address not in the volume" || return
	rm $TARGET/ports/sock/volumes/first && echo all >$TARGET/volumes/first/allow || return
	refused "access denied" first sock && target_refused "volume not linked to the port" &&
		map m first verbs && ! ln -s $TARGET/volumes/first $TARGET/ports/verbs/volumes/x &&
		! ln -s $TARGET/ports/sock $TARGET/ports/verbs/volumes/x || return
	# a connection does not outlive its link
	rm $TARGET/ports/verbs/volumes/first && retry state m connecting &&
		ln -s $TARGET/volumes/first $TARGET/ports/verbs/volumes && retry state m live &&
		direct /dev/zero "$(device m)" && unmap m && volume_gone first
}

# Directories of what is in use stay.
in_use() {
	map m vol0 sock || return
	for dir in $CLIENT/m $TARGET/volumes/vol0 $TARGET/volumes/file $TARGET/ports/sock; do
		expect_fail rmdir $dir || return
	done
	rm $TARGET/ports/*/volumes/vol0 && expect_fail rmdir $TARGET/volumes/vol0 || return
	for port in $TARGET/ports/*/volumes; do ln -s $TARGET/volumes/vol0 "$port" || return; done
	direct /dev/zero "$(device m)" && unmap m
}

# One file is one volume. One that has all its blocks keeps them, unless told.
blocks() { stat -c %b /tmp/thick.img; }
thick() {
	dd if=/dev/urandom of=/tmp/thick.img bs=1M count=8 status=none &&
		echo /tmp/thick.img | tee /tmp/thick.dev >/tmp/twice.dev || return
	all=$(blocks)
	for discard in auto 0; do
		volume thick discard=$discard && map m thick sock || return
		disk=$(device m)
		is "$disk" discard_max_bytes 0 && expect_fail blkdiscard "$disk" &&
			blkdiscard -z -o 65536 -l 131072 "$disk" &&
			dd if="$disk" of=/tmp/out bs=64k skip=1 count=2 iflag=direct status=none &&
			cmp -n 131072 /tmp/out /dev/zero && flush "$disk" &&
			[ "$(blocks)" = "$all" ] || return
		expect_fail volume twice && rmdir $TARGET/volumes/twice && unmap m &&
			volume_gone thick || return
	done
	volume thick discard=1 && map m thick sock && blkdiscard "$(device m)" &&
		[ "$(blocks)" -lt "$all" ] && unmap m && volume_gone thick || return
	backing device 8 && volume device discard=0 && map m device sock &&
		is "$(device m)" discard_max_bytes 0 && unmap m && volume_gone device
}

# A device that hangs keeps nobody from anything else, and whoever waits for it can
# be stopped.
hang() { dmsetup suspend --nolockfs hung; }
hung() {
	backing below 8 && echo /dev/mapper/hung >/tmp/hung.dev &&
		dmsetup create hung --table "0 16384 linear $(cat /tmp/below.dev) 0" &&
		dmsetup mknodes hung && volume hung && map m hung sock path_timeout=100 || return
	disk=$(device m)
	hang || return
	direct /dev/zero "$disk" &
	writer=$!
	retry busy_disk "$disk" || return
	for stop in "echo none >$TARGET/volumes/hung/allow" "echo 0 >$TARGET/volumes/hung/enable"; do
		sh -c "$stop" &
		stopper=$!
		retry state m connecting && retry sleeps $stopper || return
		timeout 10 ls $TARGET/volumes $TARGET/ports >/dev/null &&
			timeout 10 kofi blk list && timeout 10 mkdir $TARGET/volumes/more &&
			timeout 10 rmdir $TARGET/volumes/more && timeout 10 sh -c '. "$VM/steps.sh"
				map n vol0 sock && direct /dev/zero "$(device n)" && unmap n' || return
		[ "$(stat_of hung connections)" = 1 ] && kill -9 $stopper || return
		wait $stopper
	done
	expect_fail rmdir $TARGET/volumes/hung
	dmsetup resume hung && echo 0 >$TARGET/volumes/hung/enable &&
		[ "$(stat_of hung connections)" = 0 ] || return
	echo all >$TARGET/volumes/hung/allow && echo 1 >$TARGET/volumes/hung/enable &&
		wait $writer && unmap m && volume_gone hung && dmsetup remove hung
}
busy_disk() { ! quiet "$1"; }
sleeps() { grep -q "^State:.D" "/proc/$1/status"; }

# What listens does not answer: meanwhile the mapping can be looked at.
mapping() {
	# open for writing, too, so that nc sees no end of it
	mkfifo /tmp/silence || return
	busybox nc -l -p 4424 <>/tmp/silence >/dev/null &
	server=$!
	retry listens 4424 || return
	expect_fail map m vol0 sock port=4424 &
	retry state m connecting && [ -z "$(cat $CLIENT/m/device)" ] || return
	wait $! || return
	kill $server 2>/dev/null
	state m off && unmap m
}

for provider in sock verbs; do bad $provider; done
step mapping mapping
step allows allows
step denied-first denied_first
step scoped scoped
step tenants tenants
step places places
step claimed claimed
for provider in $PROVIDERS; do
	step "$provider evicted" evicted $provider
	step "$provider listed" listed $provider
	step "$provider exclusive" exclusive $provider
	step "$provider authenticated" authenticated $provider
	step "$provider digests" negotiated $provider
	step "$provider with-digests" with_digests $provider
	step "$provider digests-later" digests_later $provider
	step "$provider digests-change" digests_change $provider
done
step digest-tool digest_by_tool
step exclusive-identity exclusive_identity sock
step identity-lists identity_lists
step auth-tool auth_by_tool
step in-use in_use
step thick thick
step hung hung
step full full
step late-cache late_cache
step wrong-version wrong_version
step no-login no_login
step late-write late_write
step lost-cache lost_cache
step lost-pages lost_pages
step slow slow sock
for provider in sock verbs; do step "$provider slow-flush" slow_flush $provider; done
for provider in sock verbs; do
	step "$provider restarted" restarted $provider
	step "$provider away" away_meanwhile $provider
	step "$provider fails-fast" fails_fast $provider
	step "$provider partitions" partitions $provider
	step "$provider rounds" rounds $provider && step "$provider failing" failing $provider
done
# --- the same by the command line tool ---

by_machine() {	# MACHINE-ID HOST
	mkdir -p /tmp/etc && echo "$1" >/tmp/etc/machine-id &&
		mount --bind /tmp/etc /etc || return
	says /dev/kofiblk1 0 kofi blk map 127.0.0.1 tool --port 4422 --name id
	rc=$?
	umount /etc
	[ $rc = 0 ] && grep -x "$2" "$CLIENT/id/host" && says "" 0 kofi blk unmap id
}

by_tool() {
	backing tool 8 && regular bare 8 && dev=$(cat /tmp/tool.dev) || return
	allow=127.0.0.1/32
	for n in $(seq 15); do
		allow=$allow,fd00:1111:2222:3333:4444:5555:6666:$((n + 1000))/128
	done
	says "" 0 kofi blk export "$dev" --name tool --listen 127.0.0.1 --port 4422 \
		--allow "$allow" || return
	says "allow=$allow " 0 kofi blk list || return
	says "kofi: cannot export $dev as tool: there is a volume" 1 \
		kofi blk export "$dev" --name tool || return
	says "volumes=tool" 0 kofi blk list || return
	says "kofi: cannot map none of 127.0.0.1: the target has no volume" 1 \
		kofi blk map 127.0.0.1 none --port 4422 || return
	says "nothing listens there" 1 kofi blk map 127.0.0.1 tool --port 4423 || return
	says "no provider of this name" 1 kofi blk map 127.0.0.1 tool --port 4422 -p none || return
	says /dev/kofiblk0 0 kofi blk map 127.0.0.1 tool --port 4422 -p tcp --path-timeout 9 --polled 1 ||
		return
	# as systemd-id128 says; the other one is of a machine that boots for the first time
	by_machine 0123456789abcdef0123456789abcdef 4ab650e492f14a8cbfd2c684fa433371 &&
		by_machine uninitialized '[0-9a-f]\{16\}' || return
	says "choose another with --name" 1 kofi blk map 127.0.0.1 tool || return
	says "" 0 kofi blk resize tool &&
		says "there is none of this name" 1 kofi blk resize none &&
		direct /dev/zero /dev/kofiblk0 || return
	says "map tool@127.0.0.1 device=kofiblk0 state=live" 0 kofi blk list || return
	says '"path_timeout": "9"' 0 kofi blk list --json || return
	says /dev/kofiblk1 0 kofi blk map 127.0.0.1 tool --port 4422 --name n --host word &&
		says "host=word" 0 kofi blk list && says "" 0 kofi blk unmap n || return
	exec 9</dev/kofiblk0
	says "cannot unmap kofiblk0: it is open" 1 kofi blk unmap kofiblk0 &&
		says "" 0 kofi blk unmap kofiblk0 --force || return
	exec 9<&-
	says "no such volume is mapped" 1 kofi blk unmap kofiblk0 &&
		says "" 0 kofi blk unexport tool --state /tmp/state && [ -s /tmp/state ] || return
	uuid=$(head -n 1 /tmp/state) proof=$(tail -n 1 /tmp/state)
	says "" 0 kofi blk export "$dev" --name tool --uuid "$uuid" --state /tmp/state \
		--allow all --listen 127.0.0.1 --port 4422 &&
		[ ! -e /tmp/state ] && [ "$(cat $TARGET/volumes/tool/stable)" = "$proof" ] || return
	# who is admitted has to be said
	says "no client may map bare" 0 kofi blk export /tmp/bare.img --name bare \
		--listen 127.0.0.1 --port 4422 &&
		says "volumes=" 0 kofi blk list && grep -q "volumes=[a-z]*,[a-z]*$" /tmp/out &&
		says "for this machine" 1 kofi blk map 127.0.0.1 bare --port 4422 &&
		says "" 0 kofi blk unexport bare || return
	says "all that reach its port may map bare" 0 kofi blk export /tmp/bare.img --name bare \
		--allow all && grep -q "no port reaches bare" /tmp/err &&
		says "" 0 kofi blk unexport bare || return
	says "" 0 kofi blk unexport tool &&
		says "there is none of this name" 1 kofi blk unexport tool &&
		! ls $TARGET/ports/*-4422 2>/dev/null
}

# Nobody keeps root from taking access away.
locked() {
	nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
	jobs=
	for file in $TARGET $TARGET/volumes; do
		# shellcheck disable=SC2086 # options
		$nobody flock $file sleep 1000 &
		jobs="$jobs $!"
	done
	# shellcheck disable=SC2086 # options
	expect_fail $nobody flock /run/kofi-blk.lock true || return
	says "" 0 timeout 20 kofi blk export /tmp/bare.img --name bare --allow all &&
		says "" 0 timeout 20 kofi blk unexport bare
	rc=$?
	# shellcheck disable=SC2086 # several of them
	kill $jobs
	return $rc
}

# Root without the capability, and others
not_permitted() {
	for who in "--bounding-set -sys_admin" "--reuid 65534 --regid 65534 --clear-groups"; do
		# shellcheck disable=SC2086 # options
		says "only root may" 1 setpriv $who kofi blk export /tmp/tool.img --name x &&
			says "only root may" 1 setpriv $who kofi blk resize vol0 &&
			says "only root may" 1 setpriv $who kofi blk unexport vol0 &&
			says "only root may" 1 setpriv $who kofi blk map "$SOCK" vol0 || return
	done
	says "" 0 kofi blk map "$SOCK" vol0 &&
		says "only root may" 1 setpriv --bounding-set -sys_admin kofi blk unmap vol0@$SOCK &&
		says "" 0 kofi blk unmap vol0@$SOCK && [ ! -e $TARGET/volumes/x ]
}

# What the tool says of a target with another version, and of one that does not allow
# it; a volume that is read-only, over IPv6
by_tool_too() {
	mkfifo /tmp/refusal || return
	busybox nc -l -p 4424 <>/tmp/refusal >/dev/null &
	{ printf '\003\006\000\010' && head -c 28 /dev/zero && printf 'kblk\001\000\002\000'; } \
		>/tmp/refusal
	retry listens 4424 &&
		says "the target speaks another version" 1 \
			kofi blk map $SOCK any --port 4424 || return
	wait $!
	says "the target has no volume of this name for this machine" 1 kofi blk map $SOCK closed ||
		return
	uuid=0f8a3e1c-5d2b-4c7e-9a61-3b7d1e5f2c91
	says "" 0 kofi blk export "$(cat /tmp/tool.dev)" --name six --ro --uuid $uuid \
		--listen ::1 --port 4422 --allow ::1 || return
	says "readonly=1 uuid=$uuid discard=auto allow=::1/128" 0 kofi blk list || return
	says /dev/kofiblk0 0 kofi blk map ::1 six --port 4422 || return
	[ "$(cat /sys/block/kofiblk0/ro)" = 1 ] &&
		[ "$(cat /sys/block/kofiblk0/wwid)" = "uuid.$uuid" ] &&
		expect_fail direct /dev/zero /dev/kofiblk0 &&
		says "" 0 kofi blk unmap six@::1 && says "" 0 kofi blk unexport six
}

# More of it is checked on the host: tools/kofi/test/blk-usage.sh.
misused() {
	says "map does not take that option" 2 kofi blk map 127.0.0.2 tool --ro &&
		says "queues are 1 to 64" 2 kofi blk map 127.0.0.2 tool --queues 40 --polled 40 &&
		says "--allow wants" 2 kofi blk export /dev/loop0 --name x --allow "" &&
		[ ! -e $TARGET/volumes/x ] && [ ! -e $CLIENT/tool@127.0.0.2 ] &&
		says "cannot unmap" 1 kofi blk unmap ../kofi_blkt/volumes/x &&
		says "cannot unmap" 1 kofi blk unmap /dev/ &&
		says "Usage: kofi blk" 0 kofi blk --help
}

pull() { ip link set lo down; }
plug() { ip link set lo up; }
step "sock cable" cable sock vol0

# An address that is back ends the delay of 8 s between attempts to connect.
centiseconds() { read -r up _ </proc/uptime && echo "${up%.*}${up#*.}"; }
path_back() {
	retry map m vol0 sock path_timeout=8 && disk=$(device m) && pull || return
	expect_fail direct /dev/zero "$disk" && state m failed || return
	began=$(centiseconds)
	plug && retry state m live || return
	took=$(($(centiseconds) - began))
	echo "connected after $took centiseconds"
	[ $took -lt $((400 * VM_SLOW)) ] && direct /dev/zero "$disk" && unmap m
}

# A port listens again when the device of its address is back.
device_back() {	# PROVIDER LINK
	dmesg -c >/dev/null
	retry map m vol0 "$1" path_timeout=100 && disk=$(device m) &&
		direct /dev/zero "$disk" && rdma link delete "$2" || return
	retry state m connecting && rdma link add "$2" type "$2" netdev "dummy_$2" &&
		retry state m live && direct /dev/zero "$disk" && unmap m &&
		dmesg | grep "kofi_blkt: lost the address" &&
		dmesg | grep "kofi_blkt: listens at .* again"
}
step path-back path_back
step "verbs device-back" device_back verbs rxe
case $PROVIDERS in *siw) step "siw device-back" device_back siw siw ;; esac
step tool by_tool
step not-permitted not_permitted
step locked locked
step unlisted unlisted
step tool-too by_tool_too
step misuse misused
step target-gone target_gone
step rmmod modules_gone
step keyrings-gone retry no_keyring
step nothing-left retry no_objects

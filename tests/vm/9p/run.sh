# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# One machine: diod serves a folder, kofi-9pd listens in front of it, and the
# kernel mounts that, over lo and over an RDMA device that talks to itself. Then
# a server that breaks every rule (tests/vm/peer/9p.c).

SRV=/tmp/srv
AT=/tmp/at
OTHER=10.9.9.9
DIOD="diod -f -n -c /dev/null -L stderr -r 0 -w 0 -e $SRV"

files=50
bytes=1500000	# and twice as many for long messages
fail=/sys/kernel/debug

# --- servers ---

ready() {
	case $prov in
	sock) listens "$1" ;;
	*) listens_verbs "$1" ;;
	esac
}

served() {	# PORT COMMAND...
	port=$1
	shift
	"$@" >>/tmp/9pd.log 2>&1 &
	echo $! >/tmp/server
	retry ready "$port"
}

server() { kill "$1" "$(cat /tmp/server)"; }
gone() { ! server -0 2>/dev/null; }

serve() {
	# shellcheck disable=SC2086 # the words of a command
	served 5640 kofi-9pd -p "$user" -a "$addr" --allow "$addr" $DIOD
}

served_again() { ! gone || serve; }

ended() {	# by a signal, and nothing stays behind
	cat /tmp/9pd.log
	server -TERM && retry gone && ! pidof diod
}

# --- mounts ---

mnt() {	# WHERE OPTIONS
	mkdir -p "$AT/$1" && mount -t 9p -o "trans=kofi-$prov,uname=root,aname=$SRV,$2" \
		"$addr" "$AT/$1"
}

peer() {	# OPTIONS WHERE
	mkdir -p "$AT/${2:-x}" && mount -t 9p -o \
		"trans=kofi-$prov,port=5641,msize=1048576,$1" "$addr" "$AT/${2:-x}"
}

unmounted() { umount "$AT/$1"; }
clean() { umount -f "$AT/$1"; }

options() {
	grep " $AT/a 9p .*msize=65536,trans=kofi-$prov" /proc/mounts &&
		lsmod | grep -q "^kofi_9p" || return
	unmounted a && mnt a rq=8,msize=8192 &&
		grep " $AT/a 9p .*msize=8192,trans=kofi-$prov,rq=8" /proc/mounts
}

refused() {
	expect_fail mnt a port=5999 || return
	for option in rq=1 rq=513 rq=65568 rq=x rq= port=0 port=5640x port=-1; do
		invalid $option || return
	done
	# there, 9p itself cuts off what is above 16 bits
	[ "$VM_KERNEL" = newest ] || invalid port=65537 || return
	retry no_objects
}

invalid() {
	expect_fail mnt a "$1" 2>/tmp/why || return
	cat /tmp/why
	grep 'Invalid argument\|bad option' /tmp/why
}

in_use() {
	expect_fail rmmod kofi_9p
	! rmmod kofi_9p 2>/tmp/why && cat /tmp/why
}

# --- contents ---

tree() {	# WHERE: folders with files of many lengths
	i=0
	while [ $i -lt $files ]; do
		d=$1/d$((i / 20))
		[ $((i % 20)) != 0 ] || mkdir -p "$d" || return
		case $((i % 4)) in
		0) echo "$i" >"$d/f$i" ;;
		1) : >"$d/f$i" ;;
		*) echo "$text" >"$d/f$i" && echo "$i $text" >>"$d/f$i" ;;
		esac || return
		i=$((i + 1))
	done
}

again() {	# forget all that is cached
	unmounted a && mnt a "$1"
}

trees() {
	tree $AT/a/tree && tree /tmp/tree && diff -r /tmp/tree $SRV/tree &&
		again "$1" && diff -r /tmp/tree $AT/a/tree &&
		[ "$(find $AT/a/tree -type f | wc -l)" = $files ] &&
		rm -r $AT/a/tree /tmp/tree && [ ! -e $SRV/tree ]
}

large() {	# OPTIONS
	again "$1" && cp /tmp/large $AT/a/large && cmp /tmp/large $SRV/large &&
		again "$1" && cmp /tmp/large $AT/a/large && rm $AT/a/large
}

odd() {	# SIZE COUNT OPTION: requests that do not begin where pages do
	dd if=/tmp/large of=$AT/a/odd bs="$1" count="$2" &&
		dd if=$AT/a/odd of=/tmp/back bs="$1" count="$2" &&
		[ "$(stat -c %s $SRV/odd)" = $(($1 * $2)) ] && cmp $SRV/odd /tmp/back &&
		cmp -n $(($1 * $2)) /tmp/large /tmp/back && rm $AT/a/odd
}

direct() {	# SIZE COUNT: no page cache is between
	dd if=/tmp/long of=$AT/x/data bs="$1" count="$2" oflag=direct conv=notrunc &&
		dd if=$AT/x/data of=/tmp/back bs="$1" count="$2" iflag=direct &&
		cmp -n $(($1 * $2)) /tmp/long /tmp/back
}

# The same bytes on either side, for a demo to show
sums() {
	cp /tmp/large $AT/a/large && again "$1" || return
	for side in $SRV $AT/a; do md5sum "$side/large"; done | tee /tmp/sums
	[ "$(cut -d' ' -f1 /tmp/sums | sort -u | wc -l)" = 1 ] && rm $AT/a/large
}

names() {
	cd $AT/a || return
	echo one >one && mv one two && [ "$(cat two)" = one ] && ln two three &&
		ln -s two four && [ "$(cat four)" = one ] &&
		[ "$(stat -c %h $SRV/two)" = 2 ] && chmod 640 two &&
		[ "$(stat -c %a $SRV/two)" = 640 ] && mkdir -p five/six &&
		mv three five/six && rmdir five/six 2>/dev/null
	[ -e $SRV/five/six/three ] && rm -r five two four && [ -z "$(ls $SRV)" ]
}

# A file is open by its descriptor, while its name goes
unlinked() {
	(
		exec 7<>$AT/a/gone && rm $AT/a/gone && echo some >&7 &&
			[ ! -e $SRV/gone ] && echo more >&7
	)
}

mapped() {
	again "cache=mmap,$1" && cp "$(command -v busybox)" $AT/a &&
		again "cache=mmap,$1" && [ "$($AT/a/busybox echo ran)" = ran ] &&
		kofi-9p-peer map $AT/a/map && kofi-9p-peer look $SRV/map &&
		rm $AT/a/busybox $AT/a/map
}

many() {	# three mounts at once
	for m in b c; do mnt $m msize=8192 || return; done
	for m in a b c; do
		(cp /tmp/some $AT/$m/$m && cmp /tmp/some $AT/$m/$m) &
		pids="$pids $!"
	done
	for pid in $pids; do wait "$pid" || return; done
	for m in a b c; do cmp /tmp/some $SRV/$m && rm $AT/$m/$m || return; done
	unmounted b && unmounted c
}

# --- trouble ---

load_on() {	# three readers and writers that go on until something fails
	pids=
	for n in 1 2 3; do
		(while dd if=/tmp/large of=$AT/a/w$n bs=64k conv=notrunc,fsync; do :; done) \
			>/dev/null 2>&1 &
		pids="$pids $!"
		(while cat $AT/a/large; do :; done) >/dev/null 2>&1 &
		pids="$pids $!"
	done
}

killed() {	# HOW
	again "$1" && cp /tmp/large $AT/a/large || return
	load_on
	retry grown || return
	"$2"
	# shellcheck disable=SC2086
	wait $pids
	expect_fail ls $AT/a && clean a
}

grown() { [ -s $SRV/w1 ] && [ -s $SRV/w2 ] && [ -s $SRV/w3 ]; }
kill_9pd() { server -9; }
kill_diod() { killall -9 diod; }

interrupted() {	# tasks are killed at any moment; the mount goes on
	again "$1" && cp /tmp/large $AT/a/large || return
	for n in 1 2 3 4 5 6; do
		dd if=/tmp/large of=$AT/a/w bs=64k conv=notrunc,fsync 2>/dev/null &
		writer=$!
		dd if=$AT/a/large of=/dev/null bs=64k 2>/dev/null &
		reader=$!
		busybox usleep $((n * 27000))
		kill -9 $writer $reader
		wait $writer $reader
	done
	cmp /tmp/large $AT/a/large && rm -f $AT/a/large $AT/a/w
}

# A server that stands still: the attempt to mount can be killed
stopped() {
	server -STOP
	mnt a msize=65536 &
	mounting=$!
	retry attempted
	kill -9 $mounting
	wait $mounting
	killall -9 mount 2>/dev/null
	server -CONT
	retry no_objects
}
attempted() { kofi stat ep | grep -q .; }

# --- the server that breaks rules ---

long() {	# messages of a megabyte
	again_x && cp /tmp/long $AT/x/data && again_x && cmp /tmp/long $AT/x/data &&
		for size in 1048552 1048576 4096 1000; do
			direct $size 2 || return
		done
}
again_x() { umount $AT/x && peer cache=none; }

wrong() {	# FILE NTH: reading it is an error, and nothing goes on but a new mount
	peer cache=none && [ -e $AT/x/data ] || return
	retry unreadable $AT/x/"$1" || return
	# of many in a short time, the kernel's log has ten
	[ "$2" -gt 10 ] || dmesg -c | grep 'kofi_9p: the server sent' || return
	[ ! -e $AT/x/data ] && umount $AT/x
}

# A second reply may be taken for that to the next request.
unreadable() { ! dd if="$1" of=/dev/null bs=4k count=2; }

# A writer has no contiguous memory for data that a device needs copied. A fork, for its
# stack, has some.
scattered() {
	a=$fail/fail_page_alloc
	again_x && echo 4 >$a/min-order && echo Y >$a/task-filter && echo -1 >$a/times &&
		echo 100 >$a/probability || return
	(echo 1 >/proc/self/make-it-fail && direct 1048552 2)
	rc=$?
	echo 0 >$a/probability && echo N >$a/task-filter && echo 0 >$a/min-order && return $rc
}

# The server says how many requests it has not answered; over another mount.
told() { [ "$(stat -c %s $AT/y/"$1")" = "$2" ]; }

# More of them than there may be requests at a time, which are six
stuck() {	# FILE SIGNAL
	peer cache=none && peer cache=none y || return
	readers=
	for n in 1 2 3 4 5 6 7; do
		dd if=$AT/x/"$1" of=/dev/null bs=4k count=1 2>/dev/null &
		readers="$readers $!"
	done
	retry told waiting 6 || return
	# shellcheck disable=SC2086
	kill -"$2" $readers
	# shellcheck disable=SC2086
	wait $readers
	retry told waiting 0 && [ -e $AT/x/data ] && umount $AT/x &&
		umount $AT/y
}

# A reader that is killed while its Tflush waits; then its request is answered. The
# Rflush that comes after another request has been sent is not about that one.
twice() {
	peer cache=none && peer cache=none y || return
	kofi-9p-peer killed $AT/x/held &
	reader=$!
	retry told waiting 1 && kill -USR1 $reader && retry told flushes 1 || return
	kill -9 $reader
	wait $reader
	[ $? = 137 ] && told waiting 1 && told flushes 1 && block answer /dev/null &&
		told waiting 0 || return
	block held /tmp/back &
	reader=$!
	retry told waiting 1 && block rflush /dev/null && told flushes 0 &&
		block answer /dev/null || return
	wait $reader && [ "$(stat -c %s /tmp/back)" = 4096 ] && [ -e $AT/x/data ] &&
		umount $AT/x && umount $AT/y
}

# Replies in one message, each with as many bytes as were asked for, of a letter that
# says how many. First the header of the second one begins with the last bytes of a
# segment, then the last one has no data, for which there is an error, and ends where
# the receive does.
together() {
	peer cache=none && peer cache=none y && held_by 70000 3000 &&
		size=65521 && by together && answered && is_all 65521 b &&
		is_all 70000 i && is_all 3000 k && held_by 500000 548543 &&
		size=4096 && expect_fail by full && answered && [ ! -s /tmp/back.4096 ] &&
		is_all 500000 u && is_all 548543 v && umount $AT/x && umount $AT/y
}
held_by() {	# SIZE...
	readers=
	for size in "$@"; do
		by held &
		readers="$readers $!"
	done
	retry told waiting $#
}
by() { dd if="$AT/x/$1" of="/tmp/back.$size" bs="$size" count=1; }
answered() {
	for reader in $readers; do wait "$reader" || return; done
	told waiting 0
}
is_all() {	# BYTES LETTER
	[ "$(stat -c %s "/tmp/back.$1")" = "$1" ] && [ -z "$(tr -d "$2" <"/tmp/back.$1")" ]
}

# Where the kernel can fail allocations, one in so many or a certain one
faulty() { [ -d /sys/kernel/debug/failslab ]; }

fault_setup() {
	for f in failslab fail_page_alloc; do
		echo N >$fail/$f/task-filter && echo N >$fail/$f/ignore-gfp-wait &&
			echo 0 >$fail/$f/verbose && echo 1 >$fail/$f/interval &&
			echo 0 >$fail/$f/probability || return
	done
	echo 0 >$fail/fail_page_alloc/min-order
}

faults() {
	mkdir -p $AT/f
	kofi-9p-faults files "$addr" $AT/f \
		"trans=kofi-$prov,port=5640,uname=root,aname=$SRV,msize=65536,cache=loose,ignoreqv" &&
		retry no_objects
}

rxe() { rdma link add rxe0 type rxe netdev dummy9; }

# When rxe (6.12) has no memory for a packet of the connection manager, that queue
# pair stays in error, and the device makes no connection any more
renew() { [ "$prov" != verbs ] || { rdma link delete rxe0 && rxe; }; }

# TCP does without a FIN or a reset that it has no memory for, and then the other end
# does not hear that its peer has gone: all caches but those of packets, and pages
# of the client's
but_packets() {
	echo Y >$fail/fail_page_alloc/task-filter && echo Y >$fail/failslab/cache-filter ||
		return
	for f in /sys/kernel/slab/*/failslab; do
		case $f in
		*/skbuff*) ;;
		*) echo 1 >"$f" ;;
		esac 2>/dev/null
	done
	[ -d /sys/kernel/slab/skbuff_head_cache ]
}

# Any other allocation of the kernel's, also below the server, until that is killed
starved() {	# PERCENT HITS
	but_packets && served_again && mnt a msize=65536,cache=loose,ignoreqv &&
		kofi-9p-faults load $AT/a "$1" "$2" "$(cat /tmp/server)" &&
		expect_fail ls $AT/a && clean a && retry no_objects && renew
}

block() { dd if="$AT/x/$1" of="$2" bs=4k count=1; }

# Tflush is not answered: the end of the connection is what ends the reader
deaf() {
	peer cache=none && peer cache=none y || return
	dd if=$AT/x/deaf of=/dev/null bs=4k count=1 2>/dev/null &
	reader=$!
	retry told waiting 1 || return
	kill -9 $reader
	retry told flushes 1 || return
	server -9
	wait $reader
	umount $AT/x && umount -f $AT/y
}

provider() {	# PROVIDER ADDRESS
	prov=$1
	addr=$2
	user=$prov
	[ "$prov" = verbs ] || user=tcp
	step "$prov refused" refused
	if [ "$VM_LOUD" != 1 ]; then
		step "$prov not-allowed" not_allowed
		step "$prov user" user
		step "$prov idle-client" idle_client
	fi
	if [ "$VM_LOUD" != 1 ] && [ "$prov" = sock ]; then
		step no-server no_server
		step no-device no_device
		step stubborn stubborn
		step connect connect
		ip addr add $OTHER/32 dev lo
		step share share
		step memory memory
		step idle idle
		step reports reports
		ip addr del $OTHER/32 dev lo
	fi
	say "server\$ kofi-9pd -p $user -a $addr --allow $addr $DIOD"
	step "$prov serve" serve || return
	say "client\$ mount -t 9p -o trans=kofi-$prov,aname=$SRV $addr $AT/a"
	step "$prov mount" mnt a msize=65536 || return
	show "$prov checksums" sums msize=65536
	step "$prov options" options
	step "$prov in-use" in_use
	step "$prov names" names
	step "$prov tree" trees msize=65536
	step "$prov large" large msize=65536
	step "$prov large-cached" large cache=loose,msize=65536
	step "$prov large-8192" large msize=8192
	if [ "$VM_LOUD" = 1 ]; then
		# the rest shows nothing
		step "$prov unmount" unmounted a
		step "$prov ended" ended
		return
	fi
	step "$prov odd" odd 12345 50
	step "$prov mapped" mapped msize=65536
	step "$prov unlinked" unlinked
	step "$prov many" many
	step "$prov interrupted" interrupted msize=65536
	step "$prov diod-killed" killed cache=none kill_diod
	step "$prov again" mnt a msize=65536
	step "$prov server-killed" killed cache=loose kill_9pd
	step "$prov serve-again" serve || return
	step "$prov stopped" stopped
	step "$prov once-more" mnt a msize=65536
	step "$prov unmount" unmounted a
	if faulty; then
		# with a cache, also for diod's files, which have no version: the kernel's
		# netfs library (6.12) drops a reference too many of an uncached read that
		# it has no memory for
		step "$prov faults-files" faults
		step "$prov faults-few" starved 1 200
		step "$prov faults-many" starved 10 500
		step "$prov faults-after" served_again || return
	fi
	step "$prov ended" ended

	step "$prov peer" served 5641 kofi-9p-peer "$user" "$addr" 5641
	step "$prov peer-mount" peer cache=none
	step "$prov long" long
	! faulty || step "$prov scattered" scattered
	step "$prov peer-unmount" umount $AT/x
	dmesg -c >/dev/null
	kinds="empty short long size tag type count more twice behind tail beyond"
	nth=0
	# the last ones first for one provider
	[ "$prov" = sock ] || kinds=$(echo "$kinds" | tr ' ' '\n' | tac)
	for what in $kinds; do
		nth=$((nth + 1))
		step "$prov wrong-$what" wrong "$what" $nth
	done
	step "$prov stuck" stuck stuck TERM
	step "$prov late" stuck late KILL
	step "$prov together" together
	step "$prov killed-twice" twice
	step "$prov deaf" deaf
	step "$prov nothing-left" retry no_objects
	# there, KASAN does not forget the variables of modules that have gone
	[ "$VM_KERNEL" = uml ] || step "$prov unload" rmmod kofi_9p
	rm -rf ${SRV:?}/*
}

# Servers that cannot be started, that do not end, and that were there before
# No device leads there: the error says so, and none that the network gives.
no_device() {
	was=$addr addr=192.0.2.9
	expect_fail mnt a port=5642 2>/tmp/why
	rc=$?
	addr=$was
	cat /tmp/why
	[ $rc = 0 ] && grep 'No data available' /tmp/why
}

no_server() {
	served 5642 kofi-9pd -P 5642 /nonexistent || return
	expect_fail mnt a port=5642 2>/tmp/why && cat /tmp/why &&
		grep 'Connection refused' /tmp/why && ended
}

stubborn() {
	served 5642 kofi-9pd -a "$addr" -P 5642 \
		sh -c 'trap "" TERM; echo $$ >/tmp/stubborn; exec sleep 54321' || return
	mnt a port=5642 &
	mounting=$!
	retry test -s /tmp/stubborn && server -TERM && retry gone &&
		[ ! -d "/proc/$(cat /tmp/stubborn)" ] || return
	! wait $mounting && retry no_objects
}

connect() {
	diod -f -n -c /dev/null -L stderr -l 127.0.0.1:5643 -e $SRV &
	diod=$!
	retry listens 5643 &&
		served 5642 kofi-9pd -a "$addr" -P 5642 -C '[::ffff:127.0.0.1]:5643' &&
		mnt a port=5642 && echo some >$AT/a/some && grep some $SRV/some &&
		rm $AT/a/some && unmounted a && server -TERM && retry gone || return
	kill $diod
	wait $diod
	served 5642 kofi-9pd -a "$addr" -P 5642 -C '[::ffff:127.0.0.1]:5643' || return
	expect_fail mnt a port=5642 2>/tmp/why && cat /tmp/why &&
		grep 'Connection refused' /tmp/why && ended
}

# --- who may connect, and how much of that

denied() {	# WHERE OPTIONS
	expect_fail mnt "$1" "$2" 2>/tmp/why && cat /tmp/why &&
		grep 'Connection refused\|Connection reset' /tmp/why
}

not_allowed() {
	# shellcheck disable=SC2086 # the words of a command
	served 5642 kofi-9pd -p "$user" -a "$addr" -P 5642 --allow 192.0.2.0/24 \
		--allow fd00::/8 $DIOD || return
	denied a port=5642 && logged "a client is refused: $addr is not allowed" &&
		! pidof diod && ended && retry no_objects
}

logged() { retry grep "$1" /tmp/9pd.log; }

# It serves with no privileges, and what it starts has none
user() {
	diod -f -n -c /dev/null -L stderr -l 127.0.0.1:5643 -e $SRV &
	diod=$!
	retry listens 5643 && served 5642 kofi-9pd -p "$user" -a "$addr" -P 5642 \
		--allow "$addr" -u nobody -C 127.0.0.1:5643 || return
	mnt a port=5642 && echo some >$AT/a/some && grep some $SRV/some &&
		rm $AT/a/some && unmounted a &&
		powerless <"/proc/$(cat /tmp/server)/status" && server -TERM &&
		retry gone || return
	kill $diod
	wait $diod
	: >/tmp/9pd.log
	served 5642 kofi-9pd -p "$user" -a "$addr" -P 5642 --allow "$addr" -u nobody \
		sh -c 'cat /proc/self/status >&2' || return
	expect_fail mnt a port=5642
	logged ^Seccomp: && powerless </tmp/9pd.log && ended && retry no_objects
}
powerless() {
	cat >/tmp/status
	grep '^[UG]id\|^Groups\|^Cap\|^NoNew' /tmp/status
	for field in 'Uid:( 65534){4}' 'Gid:( 65534){4}' 'Groups:( 65534)?' 'CapPrm: 0*' \
		'CapEff: 0*' 'CapAmb: 0*' 'NoNewPrivs: 1'; do
		tr -s '\t ' ' ' </tmp/status | grep -qE "^$field ?\$" || return
	done
}

idle_client() {
	# shellcheck disable=SC2086 # the words of a command
	served 5642 kofi-9pd -p "$user" -a "$addr" -P 5642 --allow "$addr" -c 2 -l 2 $DIOD ||
		return
	kofi-9p-peer idle "$addr" 5642 "$user" >/tmp/idle &
	idle=$!
	retry grep connected /tmp/idle && mnt a port=5642 && wait $idle &&
		logged "a client is closed: $addr has sent no request" &&
		ls $AT/a && unmounted a && ended && retry no_objects
}

# An address has its share of the clients, others have theirs; and dead machines are noticed
share() {
	# shellcheck disable=SC2086
	served 5642 kofi-9pd -a 0.0.0.0 -P 5642 --allow "$addr" --allow $OTHER -c 2 $DIOD ||
		return
	mnt a port=5642 && denied b port=5642 && logged "$addr has enough" &&
		on_other mnt b port=5642 && retry alive || return
	on_other denied c port=5642 && logged 'there are enough' && unmounted b &&
		retry on_other mnt b port=5642 && unmounted a && unmounted b && ended &&
		retry no_objects
}
on_other() { addr=$OTHER "$@"; }
# Local address, state and timer of the connections
alive() { [ "$(grep -c ':160A [0-9A-F:]* 01 [0-9A-F:]* 02:' /proc/net/tcp)" = 2 ]; }

# Each client takes 40 messages of 65536 bytes, 2.5 of 6 MiB, unless it asks for less
memory() {
	# shellcheck disable=SC2086
	served 5642 kofi-9pd -P 5642 -m 65536 -q 16 -c 4 -l 4 -M 6 $DIOD || return
	mnt a port=5642 && mnt b port=5642 && denied c port=5642 &&
		logged 'take 2621440 bytes, 1048576 are left' &&
		mnt c port=5642,rq=4,msize=8192 || return
	for m in a b c; do unmounted $m || return; done
	ended && retry no_objects
}

# Connections without a request, of one address more than it may have
idle() {
	# shellcheck disable=SC2086
	served 5642 kofi-9pd -a 0.0.0.0 -P 5642 --allow "$addr" --allow $OTHER -c 4 -l 2 \
		-u root $DIOD || return
	waits=
	for n in 1 2 3 4 5; do
		kofi-9p-peer idle "$addr" 5642 &
		waits="$waits $!"
	done
	logged "a connection of $addr is closed: too many of its address wait" && on_other mnt a port=5642 && mnt b port=5642 ||
		return
	for pid in $waits; do wait "$pid" || return; done
	logged "a connection of $addr is closed: no request" && ls $AT/a $AT/b &&
		unmounted a && unmounted b && ended && retry no_objects
}

# Of refused clients that come at once ten are reported, and later how many were not
reports() {
	retry burst && [ "$(refusals)" = 10 ] || return
	clients=30
	retry left_out && [ "$(refusals)" = 11 ] || return
	left=$(sed -n 's/^kofi-9pd: \(.*\) lines are left out$/\1/p' /tmp/9pd.log)
	[ $((11 + left)) = $clients ] && ended && retry no_objects
}
burst() {	# fails if the host is too busy for all of them to come within the limit's time
	: >/tmp/9pd.log
	# shellcheck disable=SC2086
	served 5642 kofi-9pd -a "$addr" -P 5642 --allow 192.0.2.0/24 $DIOD || return
	began=$(seconds)
	kofi-9p-peer crowd "$addr" 5642 30
	[ $(($(seconds) - began)) -ge 5 ] || return 0
	ended
	return 1
}
seconds() { cut -d. -f1 /proc/uptime; }
refusals() { grep -c "a client is refused: $addr is not allowed" /tmp/9pd.log; }
left_out() {	# one more client
	clients=$((clients + 1))
	kofi-9p-peer idle "$addr" 5642
	grep 'lines are left out' /tmp/9pd.log
}

usage() {
	expect_status 2 kofi-9pd && expect_status 2 kofi-9pd -p shm diod &&
		expect_status 2 kofi-9pd -m 100 diod &&
		expect_status 2 kofi-9pd -q 1 diod && expect_status 2 kofi-9pd -C x &&
		expect_status 2 kofi-9pd -C a:1 diod && expect_status 2 kofi-9pd -z &&
		expect_status 2 kofi-9pd -a 192.0.2.1 diod &&
		expect_status 1 kofi-9pd -a 192.0.2.1 --allow all diod &&
		expect_output Usage kofi-9pd -h
}

mkdir -p $SRV $AT
text=$(head -c 6000 /dev/urandom | base64)
head -c $((2 * bytes)) /dev/urandom >/tmp/long
head -c $bytes /tmp/long >/tmp/large
head -c $((bytes / 4)) /tmp/long >/tmp/some
load kofi_sock kofi_verbs || exit
step usage usage
! faulty || step faults fault_setup || exit
provider sock 127.0.0.1
step dummy ip link add dummy9 mtu 4200 type dummy
ip addr add 10.9.0.1/24 dev dummy9
ip link set dummy9 up
step rxe rxe || exit
provider verbs 10.9.0.1

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Which clients get a volume: by list, by port, by number, one host at a time; and the
# administrator's view of them.

# Two tenants with equal addresses: only the port of the first one reaches the volume.
in_ns() { ns=$1; shift; nsenter --net="/run/netns/$ns" "$@"; }

tenant() {	# NAMESPACE: it has a port, and a mapping m.NAMESPACE that is not enabled
	ip netns add "$1" && in_ns "$1" ip link set lo up || return
	port=$TARGET/ports/$1
	mkdir "$port" && echo $SOCK >"$port/addr" && in_ns "$1" sh -c "echo 1 >$port/enable" &&
		mkdir "$CLIENT/m.$1" && echo $SOCK >"$CLIENT/m.$1/addr" &&
		echo tenant >"$CLIENT/m.$1/volume"
}

tenant_gone() {
	port_gone "$1" && rmdir "$CLIENT/m.$1" && ip netns del "$1"
}

tenants() {
	backing tenant 8 && volume tenant allow=$SOCK && tenant t1 && tenant t2 &&
		ln -s $TARGET/volumes/tenant $TARGET/ports/t1/volumes || return
	dmesg -c >/dev/null
	# shellcheck disable=SC2016 # CLIENT is known there
	expect_fail in_ns t2 sh -c "echo 1 >$CLIENT/m.t2/enable" &&
		target_refused "volume not linked to the port" &&
		in_ns t1 sh -c "echo 1 >$CLIENT/m.t1/enable" && direct /dev/zero "$(device m.t1)" &&
		echo 0 >$CLIENT/m.t1/enable && tenant_gone t1 && tenant_gone t2 &&
		volume_gone tenant
}

# Links may have equal addresses. A list admits a client of the link that it names.
scoped_on() {	# PROVIDER ADDRESS
	port scoped "$2" "$1" || return
	for list in "fe80::1%v1" fe00::/8; do
		echo "$list" >$TARGET/volumes/scoped/allow &&
			refused "access denied" scoped "$1" &&
			target_refused "address not in the volume" || return
	done
	for list in "$2" ::/0; do
		echo "$list" >$TARGET/volumes/scoped/allow && map m scoped "$1" &&
			direct /dev/zero "$(device m)" && unmap m || return
	done
	port_gone scoped
}
scoped() {
	for link in v0 v1; do
		ip link add $link type dummy && ip link set $link up &&
			ip addr add fe80::1/64 dev $link nodad || return
	done
	ip addr add fe80::1/64 dev dummy_rxe nodad || return
	addrs="$SOCK $VERBS"
	SOCK=fe80::1%v0
	VERBS=fe80::1%dummy_rxe
	backing scoped 8 && volume scoped allow=none &&
		scoped_on sock "$SOCK" && scoped_on verbs "$VERBS" && volume_gone scoped
	rc=$?
	SOCK=${addrs% *}
	VERBS=${addrs#* }
	[ $rc = 0 ] && ip link del v0 && ip link del v1 && ip addr del fe80::1/64 dev dummy_rxe
}

# A client on the other provider's address that stays in the list. It reads, so that all
# writes are those of the evicted client.
other_of() { case $1 in sock) echo verbs ;; *) echo sock ;; esac; }
addr_of() { case $1 in sock) echo $SOCK ;; *) echo $VERBS ;; esac; }
reads() {	# DEVICE
	while [ ! -e /tmp/stop ]; do
		dd if="$1" of=/dev/null bs=64k count=1 iflag=direct status=none || return
	done
}
session() { sed -n 's/.*host=stays session=\([0-9a-f]*\).*/\1/p' $TARGET/volumes/vol0/clients; }
read_on() { [ "$(stat_of vol0 reads)" -gt "$1" ]; }

# The list changes below a load: when the write of it returns, the target does nothing
# for the client. The load waits until the client is admitted again. Meanwhile another
# client reads over its only connection.
evicted() {	# PROVIDER
	other=$(other_of "$1")
	stays=192.0.2.1,$(addr_of "$other")
	map m vol0 "$1" polled=1 path_timeout=100 uuid=$UUID && disk=$(device m) &&
		map n vol0 "$other" host=stays uuid=$UUID && last=$(device n) &&
		was=$(session) && [ "$was" ] || return
	rm -f /tmp/stop
	dmesg -c >/dev/null
	until_told "$disk" 0 &
	job=$!
	reads "$last" &
	reader=$!
	for _ in 1 2 3; do
		writes=$(stat_of vol0 writes)
		retry did $((writes + 20)) && echo "$stays" >$TARGET/volumes/vol0/allow &&
			[ "$(stat_of vol0 connections)" = 1 ] && writes=$(stat_of vol0 writes) &&
			reads=$(stat_of vol0 reads) && retry state m connecting &&
			retry read_on $((reads + 2)) &&
			[ "$(stat_of vol0 writes)" = "$writes" ] || return
		# those who stay in the list stay connected
		echo "192.0.2.1,$SOCK,$VERBS,$SIW" >$TARGET/volumes/vol0/allow &&
			retry state m live && echo all >$TARGET/volumes/vol0/allow &&
			state m live && kill -0 $job && kill -0 $reader || return
	done
	touch /tmp/stop
	wait $job && wait $reader && [ "$(session)" = "$was" ] || return
	dmesg >/tmp/dmesg
	! grep "${last#/dev/}: connection lost" /tmp/dmesg &&
		grep -q "${disk#/dev/}: connection lost" /tmp/dmesg && unmap m && unmap n
}

# A line for each session, and two in the log
listed() {	# PROVIDER
	dmesg -c >/dev/null
	map m vol0 "$1" polled=1 host=first && map n vol0 "$1" host=second &&
		direct /dev/zero "$(device m)" || return
	says "host=first session=" 0 kofi blk clients vol0 || return
	cat /tmp/out
	grep -q "host=first session=[0-9a-f]* queues=2 reads=[0-9]* writes=[1-9]" /tmp/out &&
		grep -q "host=second session=[0-9a-f]* queues=1 .* writes=0" /tmp/out &&
		[ "$(wc -l </tmp/out)" = 2 ] && unmap m && unmap n || return
	retry nobody || return
	dmesg >/tmp/dmesg
	grep kofi_blkt /tmp/dmesg
	for host in first second; do
		[ "$(grep -c "logged in to vol0, session .*, host $host$" /tmp/dmesg)" = 1 ] &&
			[ "$(grep -c "logged out of vol0, .*, host $host$" /tmp/dmesg)" = 1 ] ||
			return
	done
	says "there is none of this name" 1 kofi blk clients none
}
nobody() { [ -z "$(cat $TARGET/volumes/vol0/clients)" ]; }
gone_of() { [ "$(stat_of "$1" connections)" = 0 ]; }

# One host has the volume, by as many mappings as it likes; then another one.
exclusive() {	# PROVIDER
	backing excl 8 && volume excl access=exclusive && map m excl "$1" host=first || return
	refused "another host has it" excl "$1" host=second &&
		target_refused "another host has it" &&
		map n excl "$1" host=first && direct /dev/zero "$(device n)" && unmap n || return
	expect_fail sh -c "echo shared >$TARGET/volumes/excl/access" && unmap m &&
		retry gone_of excl && map m excl "$1" host=second || return
	refused "another host has it" excl "$1" host=first && unmap m && volume_gone excl
}

# Places of a volume, and of an address: an address without one takes none of another.
PARAM=/sys/module/kofi_blkt/parameters/client_connections
places() {
	backing few 8 && volume few connections=2 && map m few sock polled=1 || return
	refused "too many connections" few sock && echo 3 >$TARGET/volumes/few/connections &&
		map n few sock && unmap n && unmap m && volume_gone few || return
	was=$(cat $PARAM)
	echo 2 >$PARAM && retry gone_of vol0 && map m vol0 sock polled=1 uuid=$UUID || return
	refused "too many connections" vol0 sock && map n vol0 verbs uuid=$UUID &&
		direct /dev/zero "$(device n)" &&
		echo "$was" >$PARAM && unmap n && unmap m
}

# Published without a list, a volume is nobody's, wherever the client is.
unlisted() {
	says "no client may map bare" 0 kofi blk export /tmp/bare.img --name bare \
		--listen 0.0.0.0 --port 4422 || return
	for vm_w in 127.0.0.1 10.99.1.1; do
		says "for this machine" 1 kofi blk map $vm_w bare --port 4422 || return
	done
	says "" 0 kofi blk allow bare 10.99.1.1 && says "for this machine" 1 \
		kofi blk map 127.0.0.1 bare --port 4422 &&
		says /dev/kofiblk 0 kofi blk map 10.99.1.1 bare --port 4422 || return
	says "" 0 kofi blk allow bare none &&
		[ -z "$(kofi blk clients bare)" ] && retry state bare@10.99.1.1 connecting &&
		says "" 0 kofi blk unmap bare@10.99.1.1 && says "" 0 kofi blk unexport bare
}

# A target that claims the UUID of another one's volume is not a path to it, unless the
# administrator says that it is. The one that the administrator names is the only one.
claimed() {
	map m vol0 sock || return
	dmesg -c >/dev/null
	expect_fail map n vol0 verbs && dmesg |
		grep "vol0 of $VERBS has the UUID of a volume of $SOCK: give it for both" || return
	expect_fail map n vol0 verbs uuid=$UUID && unmap m && map m vol0 sock uuid=$UUID &&
		map n vol0 verbs uuid=$UUID && [ "$(wwid m)" = "$(wwid n)" ] && unmap m &&
		unmap n && map n vol0 sock uuid=any && unmap n || return
	refused "another volume" vol0 sock uuid="${UUID%0}1" &&
		says "the target has another volume of this name" 1 \
			kofi blk map $SOCK vol0 --uuid "${UUID%0}1" &&
		says /dev/kofiblk 0 kofi blk map $SOCK vol0 --uuid $UUID &&
		says "--uuid for both" 1 kofi blk map $VERBS vol0 -p verbs &&
		says "" 0 kofi blk unmap vol0@$SOCK
}
wwid() { cat "/sys/block/$(cat "$CLIENT/$1/device")/wwid"; }

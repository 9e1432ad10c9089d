# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# One machine: what modules take and refuse, and that everything of ours stays
# in the network namespace it was opened in.

need_module veth dummy

# --- parameters

refused() {	# PARAM VALUE RANGE: insmod fails, and the kernel says the range
	dmesg -c >/dev/null
	expect_fail load kofi_sock "$1=$2" || return
	dmesg
	dmesg | grep -q "kofi_sock: $1=$2: must be a number from $3"
}
step load-core load kofi
step bad-silence refused silence_timeout 999 "[0-9]* to"
step bad-silence-text refused silence_timeout soon "[0-9]* to"
step bad-silence-negative refused silence_timeout -1 "[0-9]* to"
step bad-inline refused inline_max 0 "1 to 1048576"
step bad-budget refused rx_budget 16777217 "4096 to 16777216"
step bad-connect refused connect_timeout 9 "10 to"
step bad-handshake refused handshake_timeout 86400001 "10 to 86400000"
step bad-keepalive refused keepalive_cnt 128 "1 to 127"
step bad-pending refused max_pending 0 "1 to 65536"
step bad-port refused port_max 65536 "1 to 65535"
step bad-tx-size refused tx_size 65537 "1 to 65536"
step good load kofi_sock silence_timeout=1000 max_pending=1 tx_size=65536

written() {	# the same ranges hold for a loaded module
	p=/sys/module/kofi_sock/parameters/silence_timeout
	expect_fail sh -c "echo 99 >$p" || return
	[ "$(cat $p)" = 1000 ] && echo 30000 >$p && [ "$(cat $p)" = 30000 ]
}
step good-written written

# --- modules

step unload-idle unload kofi_sock kofi
step autoload load kofi_pingpong
loaded() { kofi info -d lo && [ -d /sys/module/kofi_sock ]; }
step autoload-provider loaded
every() { [ -d /sys/module/kofi_verbs ] && [ -d /sys/module/kofi_rxm ]; }
step autoload-every-provider every
step core-used expect_fail rmmod kofi
step unload-used-by-module unload kofi_pingpong kofi_rxm kofi_sock kofi_verbs kofi

step reload load kofi_sock kofi_pingpong
datagrams() {	# as native ones lack atomic operations; native ones come first
	[ ! -d /sys/module/kofi_rxm ] && kofi info -t FI_EP_RDM -d lo >/tmp/rdm || return
	cat /tmp/rdm
	[ -d /sys/module/kofi_rxm ] && grep provider: /tmp/rdm | uniq | cmp - /tmp/order
}
printf 'provider: %s\n' sock 'sock;ofi_rxm' >/tmp/order
step autoload-datagrams datagrams
kofi pingpong -T 0 -I 100000000 -S 64 >/tmp/server 2>&1 &
server=$!
retry listens 47592
kofi pingpong -T 0 -I 100000000 -S 64 127.0.0.1 >/tmp/client 2>&1 &
client=$!
connected() { kofi stat ep | grep -q connected; }
step used retry connected
kofi stat
step sock-used expect_fail rmmod kofi_sock
step pingpong-used expect_fail rmmod kofi_pingpong
step still-there loaded
kill $client $server
wait $client $server
nothing_left() {
	kofi stat
	[ -z "$(kofi stat)" ]
}
step nothing-left retry nothing_left
step unload-after-use unload kofi_pingpong kofi_rxm kofi_sock kofi_verbs kofi

# --- network namespaces

step namespaces load kofi_sock kofi_pingpong
ip netns add one
ip netns add two
ip link add v1 netns one type veth peer name v2 netns two
for n in one two; do ip netns exec $n ip link set lo up; done
ip netns exec one ip addr add 10.1.0.1/24 dev v1
ip netns exec two ip addr add 10.1.0.2/24 dev v2
ip netns exec one ip link set v1 up
ip netns exec two ip link set v2 up
# not for the background, where it would be a shell that is killed
in_one() { ip netns exec one "$@"; }
in_two() { ip netns exec two "$@"; }

step sees-own in_one kofi info -d v1
step not-others expect_status 1 in_one kofi info -d v2
step not-theirs expect_status 1 kofi info -d v1

two_connected() { in_two kofi stat ep | grep -q connected; }
serve_one() { in_one grep -q ':B9E8 .* 0A ' /proc/net/tcp; }
pair() {	# the same ports, in one and here, at the same time
	timeout 60 ip netns exec one kofi pingpong -c -I 4 >/tmp/one 2>&1 &
	one=$!
	timeout 60 kofi pingpong -c -I 4 >/tmp/here 2>&1 &
	here=$!
	retry serve_one || return
	retry listens 47592 || return
	timeout 60 ip netns exec two kofi pingpong -c -I 4 10.1.0.1 || return
	kill -0 $here || return	# that one was not asked
	timeout 60 kofi pingpong -c -I 4 127.0.0.1 || return
	wait $one || return
	wait $here
}
step pair-of-namespaces pair
step apart expect_status 1 timeout 60 kofi pingpong -T 5 10.1.0.1

held() {	# an open object holds its namespace, also without a name
	ip netns exec one kofi pingpong -T 0 -I 100000000 -S 64 >/tmp/one 2>&1 &
	one=$!
	retry serve_one || return
	ip netns exec two \
		kofi pingpong -T 0 -I 100000000 -S 64 10.1.0.1 >/tmp/two 2>&1 &
	two=$!
	retry two_connected || return
	# seen from where they are, and from the first namespace
	in_one kofi stat ep | grep -q . || return
	ip netns del two
	kill -0 $two $one || return
	kill $two
	wait $two
	# the far end hears of it
	wait $one
	rc=$?
	cat /tmp/one
	[ $rc = 1 ]
}
step held held
step held-nothing-left retry nothing_left

# --- the device goes away under traffic

gone() {
	ip netns add two
	# sockets that are closed with bytes that are never acknowledged hold their namespace for
	# minutes, for which the scenario behind this one would wait
	for n in one two; do
		ip netns exec $n sh -c \
			'echo 1 >/proc/sys/net/ipv4/tcp_orphan_retries' || return
	done
	ip link add v3 netns one type veth peer name v4 netns two
	in_one ip addr add 10.2.0.1/24 dev v3
	in_two ip addr add 10.2.0.2/24 dev v4
	in_one ip link set v3 up
	in_two ip link set v4 up
	ip netns exec one \
		kofi pingpong -T 0 -s 10.2.0.1 -I 100000000 -S 64 >/tmp/one 2>&1 &
	one=$!
	retry serve_one || return
	ip netns exec two \
		kofi pingpong -T 0 -I 100000000 -S 64 10.2.0.1 >/tmp/two 2>&1 &
	two=$!
	retry two_connected || return
	in_one ip link del v3
	wait $two
	rc2=$?
	wait $one
	rc1=$?
	cat /tmp/one /tmp/two
	[ $rc1 = 1 ] && [ $rc2 = 1 ]
}
step device-gone gone
step device-gone-nothing-left retry nothing_left
ip netns del one
ip netns del two

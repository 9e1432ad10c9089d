# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Networks that are not plain: an address of a bond moves to another RDMA device;
# addresses in a VRF, whose connections the system would look for elsewhere; and a
# peer that drops what a device sends to connect; and a siw device in a namespace.

load kofi_sock kofi_verbs kofi_pingpong kofi_rma || exit

device() {	# REQUEST: a run of kofi_rma.ko, and what it says
	# shellcheck disable=SC2016
	timeout 60 sh -c 'exec 4<>/dev/kofi_rma && { echo "$*" >&4; rc=$?
		cat <&4; exit $rc; }' sh "$@"
}

# --- a bond: its address is that of the device below which is active

bond() {	# FAIL_OVER_MAC
	ip link add bond0 type bond mode active-backup fail_over_mac "$1" || return
	for i in 0 1; do
		ip link add p$i type veth peer name q$i &&
			ip link set q$i up &&
			ip link set p$i master bond0 || return
	done
	ip link set bond0 up &&
		ip addr add 10.8.0.1/24 dev bond0 &&
		ip link set bond0 type bond active_slave p0 &&
		rdma link add rxe0 type rxe netdev p0 &&
		rdma link add rxe1 type rxe netdev p1
}
found() { kofi info -p verbs -s 10.8.0.1 | grep -q "domain: $1"; }
listens_on() { rdma resource show cm_id | grep "LISTEN" | grep -q "link $1/"; }
served() { timeout 30 kofi pingpong -p verbs -I 20 -S 64 10.8.0.1; }
serve() {
	kofi pingpong -p verbs -s 10.8.0.1 -I 20 -S 64 >/tmp/server 2>&1 &
	server=$!
	retry listens 47592
}
failover() {	# a listener that was there before
	device serve node=10.8.0.1 verbs >/tmp/rma 2>&1 &
	rma=$!
	retry listens_on rxe0 || return
	ip link set bond0 type bond active_slave p1 || return
	retry found rxe1 && retry listens_on rxe1 || return
	device connect node=10.8.0.1 verbs only=forms brief last
	rc=$?
	wait $rma
	cat /tmp/rma
	return $rc
}
bond_end() {
	rdma link delete rxe0
	rdma link delete rxe1
	ip link del bond0
	ip link del p0
	ip link del p1
}
step bond bond active
step bond-found retry found rxe0
step failover failover
bond_end
# the bond has one MAC address, so the connection manager reports nothing
step bond-mac bond none
step bond-mac-found retry found rxe0
step failover-mac failover
bond_end

# --- a VRF

vrf() {
	ip link add red type vrf table 10 && ip link set red up &&
		ip netns add n &&
		ip link add v0 type veth peer name v0 netns n &&
		ip link set v0 master red && ip link set v0 up &&
		ip addr add 10.6.0.1/24 dev v0 &&
		ip -n n link set v0 up && ip -n n addr add 10.6.0.2/24 dev v0 &&
		[ "$(cat /proc/sys/net/ipv4/tcp_l3mdev_accept)" = 0 ]
}
step vrf vrf
step vrf-source expect_output "domain: v0" kofi info -p sock -s 10.6.0.1 -n 10.6.0.2 -P 4711
step vrf-domain expect_output "domain: v0" kofi info -p sock -d v0 -n 10.6.0.2 -P 4711
step vrf-elsewhere expect_fail kofi info -p sock -n 10.6.0.2 -P 4711
reached() {	# OPTION...: from the other namespace, which has no VRF
	device serve node=10.6.0.1 "$@" >/tmp/rma 2>&1 &
	rma=$!
	retry listens 7473 || return
	ip netns exec n sh -c 'exec 4<>/dev/kofi_rma && echo "$*" >&4; rc=$?
		cat <&4; exit $rc' sh connect node=10.6.0.1 brief last "$@"
	rc=$?
	wait $rma
	cat /tmp/rma
	return $rc
}
step vrf-listener reached
step vrf-datagrams reached rdm

contract() {	# TYPE: both ends in the VRF
	load kofi_contract_kunit provider=sock device=v0 address=10.6.0.1 "type=$1"
	cat /sys/kernel/debug/kunit/contract_cm/results
	grep -q '^ok [0-9]* contract_cm$' /sys/kernel/debug/kunit/contract_cm/results
}
printf 'contract_cm*' >/sys/module/kunit/parameters/filter_glob
step vrf-contract contract msg
ip netns del n

# --- iWARP: a peer that drops SYNs, while others connect

siw() {
	ip link add s0 type veth peer name s1 &&
		ip link set s0 up && ip link set s1 up &&
		ip addr add 10.5.0.1/24 dev s0 &&
		ip neigh add 10.5.0.9 lladdr 02:00:00:00:00:09 dev s0 nud permanent &&
		rdma link add siw type siw netdev s0
}
syn_sent() { [ "$(ss -Htn state syn-sent dst 10.5.0.9 | wc -l)" != 0 ]; }
unreachable() {
	device connect node=10.5.0.9 verbs >/tmp/blocked 2>&1 &
	blocked=$!
	retry syn_sent || return
	# the manager's own limit is 30 s
	device serve node=10.5.0.1 verbs >/tmp/rma 2>&1 &
	rma=$!
	retry listens_verbs 7473 || return
	timeout 20 sh -c 'exec 4<>/dev/kofi_rma && echo "$*" >&4; rc=$?
		cat <&4; exit $rc' sh connect node=10.5.0.1 verbs only=forms brief last
	rc=$?
	syn_sent || rc=1
	# which ends the attempt
	ss -K dst 10.5.0.9
	wait $blocked
	wait $rma
	cat /tmp/rma
	return $rc
}
step siw siw
step unreachable unreachable

# --- siw in a namespace: kofi_verbs offers nothing, since a kernel cannot connect there

siw_in() {
	ip netns add m && ip netns set m 7 &&
		ip -n m link add m0 type veth peer name m1 &&
		ip -n m addr add 10.4.0.1/24 dev m0 &&
		ip -n m link set m0 up && ip -n m link set m1 up &&
		ip -n m link set lo up &&
		ip netns exec m rdma link add siw_m type siw netdev m0
}
nothing_in() {
	expect_fail ip netns exec m kofi info -p verbs >/tmp/info 2>&1
	rc=$?
	cat /tmp/info
	[ $rc = 0 ] && grep -qxF "kofi: no interface fits" /tmp/info
}
local_only() {
	printf 'verbs_limits.limits_namespace' >/sys/module/kunit/parameters/filter_glob
	load kofi_verbs_own_kunit provider=verbs device=siw_m address=10.4.0.1 nsid=7
	results=/sys/kernel/debug/kunit/verbs_limits/results
	cat $results
	grep -q '^ok [0-9]* verbs_limits$' $results && ! grep -q SKIP $results
}
step siw-in-namespace siw_in
step siw-not-offered nothing_in
step siw-local-only local_only

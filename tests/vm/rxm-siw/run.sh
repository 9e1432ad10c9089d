# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# kofi_rxm and userspace's ofi_rxm over a siw device that talks to itself, in both
# roles: iWARP is where either side gives the other credits. Each of the ways a
# message goes: one packet, segments, rendezvous; and reads and writes of the other's
# memory. fi_pingpong spins while it waits: few round trips. ofi_rxm asks the device
# for a receive of each peer it could have.

load kofi_verbs kofi_rxm kofi_pingpong kofi_rma || exit

device() {
	ip link add under type dummy &&
		ip link set under mtu 4200 &&
		ip addr add 10.99.2.1/24 dev under &&
		ip link set under up &&
		rdma link add siw type siw netdev under
}

serves() { listens 47592 || listens_verbs 7473; }

pair() {	# SERVER CLIENT, words separated by blanks
	# shellcheck disable=SC2086
	timeout 60 $1 >/tmp/server 2>&1 &
	server=$!
	retry serves
	# shellcheck disable=SC2086
	timeout 60 $2
	client_rc=$?
	wait $server
	server_rc=$?
	cat /tmp/server
	[ $client_rc = 0 ] && [ $server_rc = 0 ]
}

refused() {	# where 2.1 connects it says that it uses no credits
	# shellcheck disable=SC2086
	$kernel $some >/tmp/server 2>&1 &
	server=$!
	retry listens 47592
	# shellcheck disable=SC2086
	$newer $some 10.99.2.1 &
	client=$!
	counted() { kofi stat ep | grep "refused: [1-9]"; }
	retry counted
	rc=$?
	kill $client $server
	wait $client $server
	return $rc
}

kernel="kofi pingpong -p verbs;ofi_rxm -e rdm -d siw -c"
user="env FI_UNIVERSE_SIZE=16 fi_pingpong -p verbs;ofi_rxm -e rdm -d siw -c"
newer="env FI_UNIVERSE_SIZE=16 fi_pingpong@trixie -p verbs;ofi_rxm -e rdm -d siw -c"
step "make siw" device || exit
step kernels pair "$kernel -I 4 -S all" "$kernel -I 4 -S all 10.99.2.1"
for size in 64 65536 262144; do
	some="-I 20 -S $size"
	step "server $size" pair "$kernel $some" "$user $some 10.99.2.1"
	step "client $size" pair "$user $some" "$kernel $some 10.99.2.1"
	step "tagged-server $size" pair "$kernel $some -m tagged" "$user $some -m tagged 10.99.2.1"
	step "tagged-client $size" pair "$user $some -m tagged" "$kernel $some -m tagged 10.99.2.1"
done
some="-I 4 -S 262144"
step newer-client pair "$newer $some" "$kernel $some 10.99.2.1"
step newer-tagged-client pair "$newer $some -m tagged" "$kernel $some -m tagged 10.99.2.1"
step newer-refused refused
memory="sh $VM/memory.sh"
peer="env FI_UNIVERSE_SIZE=16 kofi-peer"
for kind in "" rdm; do
	at="node=10.99.2.1 verbs $kind"
	step "memory-kernels $kind" pair "$memory serve $at" "$memory connect $at brief last"
	step "memory-server $kind" pair "$memory serve $at" "$peer connect $at brief last"
	step "memory-client $kind" pair "$peer serve $at" "$memory connect $at only=forms last"
done
step nothing-left retry no_objects
step "remove siw" rdma link delete siw

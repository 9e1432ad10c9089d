# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Both machines do the same. Half of the endpoints are in each, and all of them send
# messages, tagged ones too, to all others, and read, write and do atomic operations in
# their memory, for ten minutes over each provider. One of b's is closed and opened
# again every second.

# What kofi_testmesh has to say; the machine may not ever have as much less memory
# than when all had met (room): sockets, packets and stored messages take a fifth,
# however long it goes on.
mesh() {	# PROVIDER DEVICE
	dmesg -c >/dev/null
	load kofi_testmesh "prov=$1" "device=$2" hosts=10.0.0.1,10.0.0.2 \
		"here=$((VM_INDEX - 1))" ms=600000 room=16384
	rc=$?
	dmesg | sed -n 's/.*kofi_testmesh: //p'
	return $rc
}

over() {	# PROVIDER DEVICE
	step "$2 $1" mesh "$1" "$2"
	cat /tmp/.step
	# the endpoints are still open: what is under way to the other machine arrives
	sync "$2 $1"
	unload kofi_testmesh
	step "$2 $1 nothing-left" retry no_objects
}

device() {	# KIND: all over a device of that kind, on the cable
	step "make $1" rdma link add "$1" type "$1" netdev eth0 || exit
	over "verbs;ofi_rxm" "$1"
	sync "$1 over"
	step "remove $1" rdma link delete "$1"
}

load kofi_sock kofi_verbs kofi_rxm || exit
over sock eth0
over "sock;ofi_rxm" eth0
device rxe
[ "$VM_KERNEL" != debug ] || device siw

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Makes the RDMA devices whose addresses the plan has, each on an interface that
# leads nowhere else.

rdma_device() {	# KIND ADDRESS [PATTERN]: of other lines that need it
	! grep -qE " $2${3:+|$3}" "$VM/plan" || step "make $1" device_make "$1" "$2"
}

device_make() {
	ip link add "under_$1" type dummy &&
		ip link set "under_$1" mtu 4200 &&
		ip addr add "$2/24" dev "under_$1" &&
		ip link set "under_$1" up &&
		rdma link add "$1" type "$1" netdev "under_$1"
}

devices() {
	rdma_device rxe 10.99.1.1 "^disk (verbs|rdma) " && rdma_device siw 10.99.2.1
}

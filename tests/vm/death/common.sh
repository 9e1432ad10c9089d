# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# What both machines go through, over which devices.

# No number of round trips that would end before the peer does.
LONG="-T 0 -I 100000000 -S 4096"
PORT=47592

load kofi_sock silence_timeout=$((3000 * VM_SLOW)) keepalive_idle=$((2000 * VM_SLOW)) \
	keepalive_intvl="$VM_SLOW" keepalive_cnt=2 kofi_verbs kofi_pingpong || exit

add() { step "make $1" rdma link add "$1" type "$1" netdev eth0 || exit; }

devices() {	# calls over PROVIDER DEVICE SECONDS, dies PROVIDER DEVICE
	over sock tcp 15
	# without its cable, TCP below siw goes on for minutes
	if [ "$VM_KERNEL" = debug ]; then
		add siw
		dies verbs siw
		step "remove siw" rdma link delete siw
	fi
	add rxe
	over verbs rxe 30
	# What the interface refused while it went down may have ended rxe's queue pair
	# of the connection manager, and nothing connects with it any more.
	step "remove rxe" rdma link delete rxe
	add rxe
}

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The runs, in the order both machines go through them: a serves, b connects. Each
# of the ways a message goes: one packet, segments, rendezvous.

OPTS="-e rdm -c -I 2 -S"
KERNEL="kofi pingpong -p sock;ofi_rxm"
USER="fi_pingpong -p tcp;ofi_rxm"
# 1.17 sends tagged messages over TCP in a form of its own unless told not to
TAGGED="env FI_OFI_RXM_ENABLE_DYN_RBUF=0 $USER -m tagged"

# kofi_testatomic.ko and its program, and the port of either
ATOMIC="sh $VM/atomic.sh"
PROGRAM=kofi-atomic-peer
AT=7475

runs() {	# calls run NAME SERVER CLIENT [PORT], words separated by blanks
	for size in 64 65536 262144; do
		now="$OPTS $size"
		run "kernels $size" "$KERNEL $now" "$KERNEL $now a"
		run "tagged-server $size" "$KERNEL $now -m tagged" "$TAGGED $now a"
		run "tagged-client $size" "$TAGGED $now" "$KERNEL $now -m tagged a"
	done
	all="-e rdm -c -I 2 -S all"
	run server "$KERNEL $all" "$USER $all a"
	run client "$USER $all" "$KERNEL $all a"
	NEWER="fi_pingpong@trixie -p tcp;ofi_rxm"
	run newer-server "$KERNEL $now" "$NEWER $now a"
	run newer-client "$NEWER $now" "$KERNEL $now a"
	run newer-tagged-server "$KERNEL $now -m tagged" "$NEWER $now -m tagged a"
	run newer-tagged-client "$NEWER $now -m tagged" "$KERNEL $now -m tagged a"
	run atomic-server "$ATOMIC listen=10.0.0.1" "$PROGRAM connect 10.0.0.1" $AT
	run atomic-client "$PROGRAM listen 10.0.0.1" "$ATOMIC connect=10.0.0.1" $AT
	run atomic-kernels "$ATOMIC listen=10.0.0.1" "$ATOMIC connect=10.0.0.1" $AT
	run atomic-contexts "$ATOMIC listen=10.0.0.1 contexts=3" "$PROGRAM connect 10.0.0.1 contexts=3" $AT
	run newer-atomic-server "$ATOMIC listen=10.0.0.1" "$PROGRAM@trixie connect 10.0.0.1" $AT
	run newer-atomic-client "$PROGRAM@trixie listen 10.0.0.1" "$ATOMIC connect=10.0.0.1" $AT
	run ipv6 "$KERNEL -6 $now" "$USER -6 $now a6"
}

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The runs, in the order both machines go through them: a serves, b connects.
# fi_pingpong spins while it waits, which makes machines with one processor slow:
# few round trips. libfabric's ofi_rxm asks the device for a receive of each peer it
# could have.

ALL="-e rdm -c -I 2 -S all"
ONE="-e rdm -c -I 4 -S"
KERNEL="kofi pingpong -p verbs;ofi_rxm"
SMALL="env FI_UNIVERSE_SIZE=16"
ATOMIC="sh $VM/atomic.sh prov=verbs;ofi_rxm"
# libfabric's cache gives a second region of the same memory the key of the first one
PROGRAM="$SMALL FI_MR_CACHE_MAX_COUNT=0 kofi-atomic-peer"
OVER="prov=verbs;ofi_rxm"
USER="$SMALL fi_pingpong -p verbs;ofi_rxm -d rxe"

runs() {	# calls run NAME SERVER CLIENT, words separated by blanks
	run kernels "$KERNEL $ALL" "$KERNEL $ALL 10.0.0.1"
	for size in 64 65536 1048576; do
		run "server $size" "$KERNEL $ONE $size" "$USER $ONE $size 10.0.0.1"
		run "client $size" "$USER $ONE $size" "$KERNEL $ONE $size 10.0.0.1"
	done
	run tagged-server "$KERNEL $ONE 4096 -m tagged" "$USER $ONE 4096 -m tagged 10.0.0.1"
	run tagged-client "$USER $ONE 262144 -m tagged" "$KERNEL $ONE 262144 -m tagged 10.0.0.1"
	NEWER="$SMALL fi_pingpong@trixie -p verbs;ofi_rxm -d rxe"
	run newer-server "$KERNEL $ONE 262144" "$NEWER $ONE 262144 10.0.0.1"
	run newer-client "$NEWER $ONE 65536" "$KERNEL $ONE 65536 10.0.0.1"
	run newer-tagged-server "$KERNEL $ONE 65536 -m tagged" "$NEWER $ONE 65536 -m tagged 10.0.0.1"
	run newer-tagged-client "$NEWER $ONE 262144 -m tagged" "$KERNEL $ONE 262144 -m tagged 10.0.0.1"
	run atomic-kernels "$ATOMIC listen=10.0.0.1" "$ATOMIC connect=10.0.0.1"
	run atomic-server "$ATOMIC listen=10.0.0.1" "$PROGRAM connect 10.0.0.1 $OVER"
	run atomic-client "$PROGRAM listen 10.0.0.1 $OVER" "$ATOMIC connect=10.0.0.1"
	run newer-atomic-server "$ATOMIC listen=10.0.0.1" "$PROGRAM@trixie connect 10.0.0.1 $OVER"
	run newer-atomic-client "$PROGRAM@trixie listen 10.0.0.1 $OVER" "$ATOMIC connect=10.0.0.1"
}

device() {
	step "make rxe" rdma link add rxe type rxe netdev eth0 || exit
	sync ready
	runs
	step nothing-left retry no_objects
	sync over
	step "remove rxe" rdma link delete rxe
}

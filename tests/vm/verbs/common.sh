# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The runs, in the order both machines go through them: a serves, b connects.
# -S, -I and -c have to be the same on both sides. fi_pingpong spins while it
# waits, which makes machines with one processor slow: few round trips.

KERNEL="kofi pingpong -p verbs -c"
USER="fi_pingpong -p verbs -e msg -d rxe0 -c"

setup() {
	rdma link add rxe0 type rxe netdev eth0 &&
		load kofi_sock kofi_verbs kofi_pingpong
}

runs() {	# calls run NAME SERVER CLIENT, words separated by blanks
	run kernel-kernel "$KERNEL -I 4" "$KERNEL -I 4 10.0.0.1"
	run kernel-server "$KERNEL -I 4 -S 65536" "$USER -I 4 -S 65536 10.0.0.1"
	run kernel-client "$USER -I 4 -S 65536" "$KERNEL -I 4 -S 65536 10.0.0.1"
	run small-server "$KERNEL -I 20 -S 64" "$USER -I 20 -S 64 10.0.0.1"
	run small-client "$USER -I 20 -S 64" "$KERNEL -I 20 -S 64 10.0.0.1"
	run ipv6 "$KERNEL -6 -I 20 -S 4096" "$KERNEL -6 -I 20 -S 4096 fd00::1"
	run by-reading "$KERNEL -M read" "$KERNEL -M read 10.0.0.1"
	run direct "$KERNEL -C direct" "$KERNEL -C workqueue 10.0.0.1"
}

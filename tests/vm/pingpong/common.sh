# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The runs, in the order both machines go through them: a serves, b connects.
# Machine a's part of a run is the option string of server, b's of client; -S,
# -I and -c have to be the same on both sides.

# fi_pingpong spins while it waits, which makes machines with one processor
# slow: few round trips, and all sizes only once each way; in the debug kernel,
# where everything is slow, only among kernels.
ALL="-e msg -c -I 2 -S all"
ONE="-e msg -c -I 4 -S 65536"
SPIN=$ALL
if [ "$VM_KERNEL" = debug ]; then
	ALL="-e msg -c -I 1 -S all"
	SPIN="-e msg -c -I 2 -S 262144"
fi

runs() {	# calls run NAME SERVER CLIENT, words separated by blanks
	run kernel-server "kofi pingpong $SPIN" "fi_pingpong -p tcp $SPIN a"
	run kernel-client "fi_pingpong -p tcp $SPIN" "kofi pingpong $SPIN a"
	run kernel-kernel "kofi pingpong $ALL" "kofi pingpong $ALL a"
	run ipv6-server "kofi pingpong -6 $ONE" "fi_pingpong -6 -p tcp $ONE a6"
	run ipv6-client "fi_pingpong -6 -p tcp $ONE" "kofi pingpong -6 $ONE a6"
	run ipv6-kernels "kofi pingpong -6 $ONE" "kofi pingpong -6 $ONE a6"
	run read "kofi pingpong -M read -c" "kofi pingpong -M read -c a"
	run workqueue "kofi pingpong -C workqueue -c" "kofi pingpong -C workqueue -c a"
	run direct "kofi pingpong -C direct -c" "kofi pingpong -C direct -c a"
	run mixed "kofi pingpong -C direct -c" "kofi pingpong -M read -c a"
	run no-content "kofi pingpong -S 4096 -I 100" "kofi pingpong -S 4096 -I 100 a"
}

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
SPIN="-e msg -c -I 1 -S all"
RDM="-e rdm -c -I 1 -S all"
DGRAM="-e dgram -c -I 4 -S all"
BRIEF=
if [ "$VM_KERNEL" = debug ]; then
	ALL="-e msg -c -I 1 -S all"
	SPIN="-e msg -c -I 2 -S 262144"
	RDM="-e rdm -c -I 2 -S 262144"
elif [ "$VM_KERNEL$VM_SOAK$VM_LOUD" = newest00 ]; then
	# make test: stock has all of it; here, that each kind works on another kernel
	BRIEF="kernel-server kernel-client ipv6-kernels rdm-server rdm-client rdm-ipv6 dgram-client"
	BRIEF="$BRIEF bandwidth latency"
	SPIN="-e msg -c -I 2 -S 262144"
	RDM="-e rdm -c -I 2 -S 262144"
fi
# Is run NAME among those that this kernel has?
wanted() {
	case " ${BRIEF:-$1} " in
	*" $1 "*) ;;
	*) false ;;
	esac
}
# the provider that has reliable datagrams of its own: tcp, or before 2.0 net
NATIVE=tcp
if fi_info -l | grep -q ^net:; then
	NATIVE=net
fi

runs() {	# calls run NAME SERVER CLIENT, words separated by blanks
	run kernel-server "kofi pingpong $SPIN" "fi_pingpong -p tcp $SPIN a"
	run kernel-client "fi_pingpong -p tcp $SPIN" "kofi pingpong $SPIN a"
	run kernel-kernel "kofi pingpong $ALL" "kofi pingpong $ALL a"
	ip link set eth0 mtu 9000
	run ipv6-server "kofi pingpong -6 $ONE" "fi_pingpong -6 -p tcp $ONE a6"
	run ipv6-client "fi_pingpong -6 -p tcp $ONE" "kofi pingpong -6 $ONE a6"
	run ipv6-kernels "kofi pingpong -6 $ONE" "kofi pingpong -6 $ONE a6"
	run read "kofi pingpong -M read -c" "kofi pingpong -M read -c a"
	run workqueue "kofi pingpong -C workqueue -c" "kofi pingpong -C workqueue -c a"
	run direct "kofi pingpong -C direct -c" "kofi pingpong -C direct -c a"
	run mixed "kofi pingpong -C direct -c" "kofi pingpong -M read -c a"
	run rdm-server "kofi pingpong $RDM" "fi_pingpong -p $NATIVE $RDM a"
	run rdm-client "fi_pingpong -p $NATIVE $RDM" "kofi pingpong $RDM a"
	run rdm-tagged-server "kofi pingpong $RDM -m tagged" "fi_pingpong -p $NATIVE $RDM -m tagged a"
	run rdm-tagged-client "fi_pingpong -p $NATIVE $RDM -m tagged" "kofi pingpong $RDM -m tagged a"
	run rdm-ipv6 "kofi pingpong -6 $RDM" "fi_pingpong -6 -p $NATIVE $RDM a6"
	NEWER=fi_pingpong@trixie
	run newer-server "kofi pingpong $SPIN" "$NEWER -p tcp $SPIN a"
	run newer-rdm-server "kofi pingpong $RDM" "$NEWER -p tcp $RDM a"
	run newer-rdm-client "$NEWER -p tcp $RDM" "kofi pingpong $RDM a"
	# with this, it announces long messages
	NEWER="env FI_TCP_MAX_SAVED_SIZE=16384 $NEWER"
	run newer-tagged-server "kofi pingpong $RDM -m tagged" "$NEWER -p tcp $RDM -m tagged a"
	run newer-tagged-client "$NEWER -p tcp $RDM -m tagged" "kofi pingpong $RDM -m tagged a"
	run dgram-server "kofi pingpong -p sock $DGRAM" "fi_pingpong -p udp $DGRAM a"
	run dgram-client "fi_pingpong -p udp $DGRAM" "kofi pingpong -p sock $DGRAM a"
	run dgram-newer-server "kofi pingpong -p sock $DGRAM" "fi_pingpong@trixie -p udp $DGRAM a"
	run dgram-newer-client "fi_pingpong@trixie -p udp $DGRAM" "kofi pingpong -p sock $DGRAM a"
	run dgram-kernels "kofi pingpong $DGRAM" "kofi pingpong $DGRAM a"
	run dgram-ipv6 "kofi pingpong -6 $DGRAM" "kofi pingpong -6 $DGRAM a6"
	run rdm-kernels "kofi pingpong $RDM -m tagged" "kofi pingpong $RDM -m tagged a"
	run bandwidth "kofi bw" "kofi bw -v -o write -I 100 a"
	run bandwidth-ipv6 "kofi bw -6" "kofi bw -v -e rdm -o tagged -I 100 a6"
	run latency "kofi lat" "kofi lat -v -I 100 a"
	run no-content "kofi pingpong -S 4096 -I 100" "kofi pingpong -S 4096 -I 100 a"
}

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The runs, in the order both machines go through them: a serves, b connects.
# -S, -I and -c have to be the same on both sides. fi_pingpong spins while it
# waits, which makes machines with one processor slow: few round trips. Debian's
# kernel has no siw, so that is the debug kernel's device, in verbs-siw, which has
# these same scripts.

KERNEL="kofi pingpong -p verbs -c"
MEMORY="sh $VM/memory.sh"
PEER=kofi-peer
# libfabric's ofi_rxm asks the device for a receive of each peer it could have
SMALL="env FI_UNIVERSE_SIZE=16"
RPING="sh $VM/rping.sh"

runs() {	# calls run NAME SERVER CLIENT, words separated by blanks
	user="fi_pingpong -p verbs -e msg -d $1 -c"
	run "$1 kernel-kernel" "$KERNEL $sizes" "$KERNEL $sizes 10.0.0.1"
	run "$1 kernel-server" "$KERNEL -I 4 -S 65536" "$user -I 4 -S 65536 10.0.0.1"
	run "$1 kernel-client" "$user -I 4 -S 65536" "$KERNEL -I 4 -S 65536 10.0.0.1"
	run "$1 small-server" "$KERNEL -I 20 -S 64" "$user -I 20 -S 64 10.0.0.1"
	run "$1 small-client" "$user -I 20 -S 64" "$KERNEL -I 20 -S 64 10.0.0.1"
	run "$1 bandwidth" "kofi bw" "kofi bw -p verbs -v -o write -I 50 10.0.0.1"
	run "$1 latency" "kofi lat" "kofi lat -p verbs -v -I 50 -S 4096 10.0.0.1"
	run "$1 ipv6" "$KERNEL -6 -I 20 -S 4096" "$KERNEL -6 -I 20 -S 4096 fd00::1"
	run "$1 by-reading" "$KERNEL -M read $some" "$KERNEL -M read $some 10.0.0.1"
	run "$1 direct" "$KERNEL -C direct $some" "$KERNEL -C workqueue $some 10.0.0.1"
	run "$1 rping kernel-server" "$RPING listen=10.0.0.1" "rping -c -a 10.0.0.1 -C 10 -v -V"
	run "$1 rping kernel-client" "rping -s -a 10.0.0.1 -C 10" "$RPING connect=10.0.0.1"
	at="node=10.0.0.1 verbs"
	how=brief
	# siw may lose the first message of a connection: few of these, the rest in rxm-siw
	[ "$1" = rxe ] || how=only=forms
	run "$1 memory" "$MEMORY serve $at" "$MEMORY connect $at $how last"
	run "$1 memory kernel-server" "$MEMORY serve $at" "$PEER connect $at $how last"
	run "$1 memory kernel-client" "$PEER serve $at" "$MEMORY connect $at only=forms last"
	load kofi_rxm || return
	run "$1 memory datagrams" "$MEMORY serve $at rdm" "$MEMORY connect $at rdm $how last"
	run "$1 memory datagrams-server" "$MEMORY serve $at rdm" "$SMALL $PEER connect $at rdm $how last"
	run "$1 memory datagrams-client" "$SMALL $PEER serve $at rdm" "$MEMORY connect $at rdm only=forms last"
	[ "$1" = rxe ] || datagrams "$1"
}

# Over rxe, the scenario verbs-rxm has more of them. Here they need credits.
datagrams() {	# DEVICE
	kernel="kofi pingpong -p verbs;ofi_rxm -e rdm -c"
	user="$SMALL fi_pingpong -p verbs;ofi_rxm -e rdm -d $1 -c -I 4 -S"
	run "$1 rdm kernels" "$kernel $sizes" "$kernel $sizes 10.0.0.1"
	run "$1 rdm small-server" "$kernel -I 4 -S 64" "$user 64 10.0.0.1"
	run "$1 rdm small-client" "$user 64" "$kernel -I 4 -S 64 10.0.0.1"
	run "$1 rdm kernel-server" "$kernel -I 4 -S 65536" "$user 65536 10.0.0.1"
	run "$1 rdm kernel-client" "$user 65536" "$kernel -I 4 -S 65536 10.0.0.1"
}

trace=/sys/kernel/tracing

# What the info says of the device below it
nic() {
	kofi info -p verbs -v >/tmp/info || return
	grep -A 20 'nic:' /tmp/info
	grep -q "nic:" /tmp/info && grep -q " name: $1\$" /tmp/info &&
		grep -q "state: FI_LINK_UP" /tmp/info &&
		grep -qi "network_type: Ethernet" /tmp/info
}

traced() {	# the events of posts and connections have come
	for event in kofi_verbs_tx: 'kofi_verbs_cm: .*connected' \
		'kofi_verbs_cm: .*end'; do
		echo "$event $(grep -c "$event" $trace/trace)"
		grep -q "$event" $trace/trace || return
	done
}

device() {	# KIND: everything over a device of that kind, on the cable
	step "make $1" rdma link add "$1" type "$1" netdev eth0 || exit
	say "$VM_NAME\$ kofi info -p verbs"
	show "$1 info" kofi info -p verbs
	step "$1 nic" nic "$1"
	echo >$trace/trace
	echo 1 >$trace/events/kofi_verbs/enable
	sync "$1 ready"
	runs "$1"
	step "$1 traced" traced
	echo 0 >$trace/events/kofi_verbs/enable
	step "$1 nothing-left" retry no_objects
	sync "$1 over"
	step "remove $1" rdma link delete "$1"
}

devices() {
	sizes="-I 4 -S all"
	some=
	if [ "$VM_KERNEL" = debug ]; then
		# checked memory is slow, and each packet costs a lot
		sizes="-I 2 -S 262144"
		some="-I 20 -S 16384"
		device siw
	else
		device rxe
	fi
}

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# A program over libfabric 1.17 or 2.1 is the first process of a container. It sends a
# message that is not received. The program is killed, or the host of the container vanishes
# silently. Another program with the same address and process number sends a message, too,
# which must be sent within a second.
#
# The kernel's address is in another network, so that it stays when the link vanishes.

export FI_OFI_RXM_ENABLE_DYN_RBUF=0
LIMIT=$((1000 * VM_SLOW))
PORT=7500

load kofi_sock kofi_rxm kofi_rma || exit

host() {	# the container's, behind the router
	ip netns add u && ip -n r link add r0 type veth peer name u0 netns u &&
		ip -n r addr add 10.7.1.2/24 dev r0 && ip -n r link set r0 up &&
		ip -n u addr add 10.7.1.1/24 dev u0 && ip -n u link set u0 up &&
		ip -n u link set lo up && ip -n u route add default via 10.7.1.2
}
network() {
	ip netns add r && ip link add c1 type veth peer name c0 netns r &&
		ip addr add 10.8.1.2/24 dev c1 && ip link set c1 up &&
		ip -n r addr add 10.8.1.1/24 dev c0 && ip -n r link set c0 up &&
		ip netns exec r sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward' &&
		ip route add 10.7.1.0/24 via 10.8.1.1 && host
}

serve() {	# PROTOCOL
	# shellcheck disable=SC2016
	sh -c 'exec 4<>/dev/kofi_rma && { echo "$*" >&4; exec cat <&4; }' sh \
		serve node=10.8.1.2 port=$PORT "$1" >/tmp/serve 2>&1 &
	server=$!
	retry listens $PORT
}
start() {	# PROGRAM PROTOCOL: a life
	: >/tmp/life
	ip netns exec u unshare -p -f --kill-child "$1" "$2" 10.7.1.1 9000 10.8.1.2 $PORT $LIMIT >/tmp/life 2>&1 &
	life=$!
	retry grep -q "sent\|failed" /tmp/life
	cat /tmp/life
}
stop() {	# PID
	kill -9 "$1"
	wait "$1"
	[ $? = 137 ]
}
killed() { stop $life; }
vanished() {
	ip -n u link set u0 down && stop $life && ip -n r link del r0 && ip netns del u && host
}

again() {	# PROGRAM PROTOCOL HOW
	PORT=$((PORT + 1))
	serve "$2" && start "$1" "$2" && grep sent /tmp/life || return
	$3 || return
	start "$1" "$2"
	grep -q "sent after" /tmp/life
	rc=$?
	stop $life && stop $server && retry no_objects && return $rc
}

step network network || exit
old=kofi-again-peer
new=kofi-again-peer@trixie
check killed-rdm again $old rdm killed
check killed-rdm-newer again $new rdm killed
check killed-rxm again $old rxm killed
check killed-rxm-newer again $new rxm killed
check vanished-rdm again $old rdm vanished
check vanished-rdm-newer again $new rdm vanished
check vanished-rxm again $old rxm vanished
check vanished-rxm-newer again $new rxm vanished
ip netns del u
ip netns del r

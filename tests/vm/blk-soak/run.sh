# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Client and target in one machine: over sockets through a pair of devices, at
# whose far end is the client's network namespace, and over an RDMA device that
# talks to itself. Two programs of fio write, read and compare all the time while
# something happens to what is below them, again and again; an I/O error ends them.
# The block layer's trace says whether each request has completed once.

. "$VM/steps.sh"
. "$VM/paths.sh"

export SOCK=10.98.0.1 VERBS=10.99.1.1 DM_DISABLE_UDEV=1
UUIDS=5a1e0c7e-0000-4000-8000-00000000000
ROUNDS=20

# --- machine, target, client ---

veth_up() {
	ip link add veth_target type veth peer name veth_client netns client &&
		ip addr add $SOCK/24 dev veth_target && ip link set veth_target up &&
		ip -n client addr add 10.98.0.2/24 dev veth_client &&
		ip -n client link set veth_client up
}

rxe_up() { rdma link add rxe type rxe netdev dummy_rxe; }

setup() {
	load kofi_sock silence_timeout=5000 kofi_verbs kofi_blk kofi_blkt && configfs || return
	ip netns add client && veth_up || return
	rdma_link rxe rxe $VERBS || return
	for name in plain other brief; do backing $name 16 || return; done
}

# The same ones each time
volumes() {
	digit=0
	for name in plain other brief; do
		digit=$((digit + 1))
		volume $name uuid=$UUIDS$digit || return
	done
}

# In the client's namespace, where the volume stays mapped
# shellcheck disable=SC2016 # it is the other shell that expands them
map_there() {
	nsenter --net=/run/netns/client sh -c '. "$VM/steps.sh"; map "$@"' sh "$@"
}

brief() { map_there s brief sock path_timeout=$((2 * VM_SLOW)) io_timeout="$VM_SLOW"; }
mapped() {
	map_there m plain sock io_timeout=300 queues=2 && map n other verbs io_timeout=300 && brief &&
		m=$(device m) && n=$(device n)
}

unmapped() { unmap m && unmap n && unmap s; }

both_are() { retry state m "$1" && retry state n "$1"; }
both_move() { moves m "$m" && moves n "$n"; }
unused() { [ "$(stat_of "$1" connections)" = 0 ]; }

# --- what happens in each round ---

begin() { trace_requests && load_on m "$m" && load_on n "$n" && both_move; }
end() { load_off m && load_off n && requests_complete_once "$m" "$n"; }

held() {
	for name in kofi_blk kofi_blkt kofi_sock kofi_verbs; do
		expect_fail rmmod $name || return
	done
}

target_dies() { target_gone && both_are connecting && target_back && both_are live && both_move; }

# Less than the time-out of m, and more than that of s
link_down() {
	s=$(device s)
	retry state s live && retry direct /dev/zero "$s" && ip link set veth_target down &&
		retry state m connecting || return
	expect_fail direct /dev/zero "$s" && state s failed || return
	ip link set veth_target up && retry state m live && retry state s live &&
		direct /dev/zero "$s" && moves m "$m"
}

net_device() {
	ip link del veth_target && retry state m connecting && veth_up && retry state m live &&
		moves m "$m"
}

rdma_device() {	# of the client and of the target, whose port is enabled again
	rdma link delete rxe && retry state n connecting && rxe_up &&
		echo 0 >"$TARGET/ports/verbs/enable" && echo 1 >"$TARGET/ports/verbs/enable" &&
		retry state n live && moves n "$n"
}

asked() { [ "$(stat_of brief writes)" -gt "$1" ]; }

# The volume is unmapped below programs that write, which end by errors.
client_goes() {
	s=$(device s)
	retry state s live || return
	now=$(stat_of brief writes)
	writers=
	for _ in 1 2 3 4; do
		while direct /dev/urandom /proc/self/fd/8; do :; done 8<>"$s" &
		writers="$writers $!"
	done
	retry asked $((now + 20)) && unmap s force || return
	# shellcheck disable=SC2086 # several of them
	wait $writers
	retry unused brief && brief
}

# A client is killed in the middle of its commands.
client_dies() {
	unmap s && retry unused brief || return
	now=$(stat_of brief writes)
	kofi-blk-peer tcp $SOCK 4421 brief 1000000 "$1" >/tmp/peer 2>&1 &
	retry asked $((now + 20)) && kill -9 $! || return
	wait $!
	retry unused brief && brief && direct /dev/zero "$(device s)"
}

# In User-mode Linux, KASAN does not forget the variables of modules that have gone.
removed() { unmapped && unload kofi_blk && load kofi_blk && mapped; }

faults() {	# ROUND
	check "$1 rmmod-refused" held
	check "$1 target" target_dies
	check "$1 link" link_down
	check "$1 net-device" net_device
	check "$1 rdma-device" rdma_device
	check "$1 client-goes" client_goes
	check "$1 client-dies" client_dies "$1"
	check "$1 completed-once" completed_once
	cat /tmp/.check
}

# --- two paths ---

multipath() {
	check paths paths || return
	for round in $(seq $ROUNDS); do
		for path in sock:p verbs:q; do
			port_gone "${path%:*}"
			check "$round $path lost" path_lost "${path#*:}"
			ports_again "${path%:*}"
			check "$round $path back" path_back "${path#*:}"
		done
	done
	check no-paths no_paths
	cat /tmp/.check
}

ports_again() {
	case $1 in
	sock) port sock $SOCK ;;
	verbs) port verbs $VERBS ;;
	esac
}

step setup setup && step volumes volumes && step ports ports || exit
check map mapped || exit
check begin begin || exit
for round in $(seq $ROUNDS); do faults "$round"; done
check end end
[ "$VM_KERNEL" = uml ] || for round in $(seq $ROUNDS); do check "$round rmmod" removed; done
check unmap unmapped
[ "$VM_KERNEL" = uml ] || multipath
step unused retry unused plain
step gone target_gone
step rmmod modules_gone
step nothing-left retry no_objects

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Pairs of network namespaces, all with the same addresses and ports, with
# traffic in each pair at the same time. They lose their names while it runs,
# which must go on: endpoints keep their namespace. Then the endpoints are
# closed, in all orders, and the namespaces must be gone. That they are is
# shown by a limit on their number, under which the next round only finds room
# if the last one has been released; the debug kernel also tracks references to
# namespaces and devices, and complains of each that is left.

PAIRS=3
ALL=$(seq $PAIRS)
LONG="-T 0 -I 100000000 -S 4096"

load kofi_sock kofi_pingpong || exit

in_ns() {	# NAMESPACE CMD...
	ip netns exec "$@"
}
listens_in() { in_ns "$1" grep -q ':B9E8 .* 0A ' /proc/net/tcp; }
nothing_left() { [ -z "$(kofi stat)" ]; }

# --- a round: made, connected, nameless, closed

add() { ip netns add "$1" 2>/tmp/.add; }

make_pair() {	# N
	# the last round's are released by a work item of the kernel
	retry add "a$1" && retry add "b$1" || return
	ip link add v0 netns "a$1" type veth peer name v0 netns "b$1" || return
	for ns in a$1 b$1; do
		in_ns "$ns" ip link set lo up || return
		in_ns "$ns" ip link set v0 up || return
		# without it, one processor has no time for anything else
		in_ns "$ns" tc qdisc add dev v0 root netem delay 1ms || return
	done
	in_ns "a$1" ip addr add 10.1.0.1/24 dev v0 || return
	in_ns "b$1" ip addr add 10.1.0.2/24 dev v0
}

connected() { [ "$(kofi stat ep | grep -c ' connected ')" = "$1" ]; }

# "ID COUNT" for each endpoint, in the order of their numbers
counts() {
	kofi stat ep | awk '
		$2 == "ep" { id = $1 }
		$1 == "rx_frames:" { print id, $2 }' | sort -n
}
all_flow() {	# since /tmp/counts was made, on each endpoint
	counts >/tmp/counts.now
	paste -d' ' /tmp/counts /tmp/counts.now | awk '
		$1 != $3 || $4 < $2 + 20 { bad++ }
		END { exit bad > 0 || NR != 2 * '$PAIRS' }'
}
flows() {
	counts >/tmp/counts
	retry all_flow && return
	cat /tmp/counts.now
	return 1
}

start() {	# servers, clients, and their process numbers
	servers= clients=
	for n in $ALL; do
		# shellcheck disable=SC2086
		ip netns exec "a$n" kofi pingpong $LONG >"/tmp/a$n" 2>&1 &
		servers="$servers $!"
		retry listens_in "a$n" || return
	done
	for n in $ALL; do
		# shellcheck disable=SC2086
		ip netns exec "b$n" kofi pingpong $LONG 10.1.0.1 >"/tmp/b$n" 2>&1 &
		clients="$clients $!"
	done
	retry connected $((2 * PAIRS))
}

nameless() {
	for n in $ALL; do
		ip netns del "a$n" && ip netns del "b$n" || return
	done
	[ -z "$(ip netns list)" ]
}

round() {	# WHO is killed first
	for n in $ALL; do make_pair "$n" || return; done
	start || return
	flows || return
	nameless || return
	flows || return
	case $1 in
	clients) first=$clients second=$servers ;;
	servers) first=$servers second=$clients ;;
	both) first="$clients $servers" second= ;;
	esac
	# shellcheck disable=SC2086
	kill -9 $first
	# shellcheck disable=SC2086
	wait $first
	# the others' peers have gone: they end by themselves, with an error
	for pid in $second; do
		wait "$pid"
		[ $? = 1 ] || return
	done
	retry nothing_left
}

# those of a round, the first one, and one to be made while the last is going
limit() { echo $((2 * PAIRS + 1)) >/proc/sys/user/max_net_namespaces; }
step limit limit
step clients-first round clients
step servers-first round servers
step both-at-once round both
step once-more round clients

# --- a device goes under traffic, and its namespace with it

device_gone() {
	for n in $ALL; do make_pair "$n" || return; done
	start || return
	flows || return
	in_ns a1 ip link del v0 || return
	nameless || return
	# the first pair ends, the others go on
	retry connected $((2 * PAIRS - 2)) || return
	# shellcheck disable=SC2086
	kill $servers $clients
	# shellcheck disable=SC2086
	wait $servers $clients
	retry nothing_left
}
step device-gone device_gone

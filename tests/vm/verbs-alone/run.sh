# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# One machine with an rxe and a siw device, each on an interface that leads
# nowhere else and talking to itself: kernel with kernel, kernel with userspace
# in both roles, in all ways to take completions; and the device removed and made
# again while it is in use.

load kofi_sock kofi_verbs kofi_pingpong || exit

listens() { grep -q ':B9E8 .* 0A ' /proc/net/tcp /proc/net/tcp6; }
nothing() { [ -z "$(kofi stat)" ]; }

pair() { # SERVER CLIENT
	# shellcheck disable=SC2086
	timeout 60 $1 >/tmp/server 2>&1 &
	server=$!
	retry listens
	# shellcheck disable=SC2086
	timeout 60 $2
	client_rc=$?
	wait $server
	server_rc=$?
	cat /tmp/server
	[ $client_rc = 0 ] && [ $server_rc = 0 ]
}

runs() { # KIND ADDRESS
	kernel="kofi pingpong -p verbs -d $1 -c"
	user="fi_pingpong -p verbs -e msg -d $1 -c"
	some="-I 20 -S 4096"
	step "$1 discovery" expect_output "$1" kofi info -p verbs
	step "$1 kernel-kernel" pair "$kernel" "$kernel $2"
	step "$1 large" pair "$kernel -I 4 -S 2097152" "$kernel -I 4 -S 2097152 $2"
	for how in "-C softirq" "-C workqueue" "-C direct" "-M read"; do
		step "$1 $how" pair "$kernel $how $some" "$kernel $how $some $2"
	done
	step "$1 kernel-server" pair "$kernel $some" "$user $some $2"
	step "$1 kernel-client" pair "$user $some" "$kernel $some $2"
	step "$1 userspace-inject" pair "$kernel -I 20 -S 64" "$user -I 20 -S 64 $2"
	step "$1 nothing-left" retry nothing
}

# The device goes under load: both sides are told, and nothing is left of it. A
# new one of the same name is found.
connected() { kofi stat ep | grep -q connected; }
gone() { ! rdma link show | grep -qw "$1"; }
removed() { # HOW KIND ADDRESS OPTION...
	how=$1
	kind=$2
	address=$3
	shift 3
	kofi pingpong -p verbs -d "$kind" -I 100000000 "$@" >/tmp/server 2>&1 &
	server=$!
	retry listens
	kofi pingpong -p verbs -d "$kind" -I 100000000 "$@" "$address" \
		>/tmp/client 2>&1 &
	client=$!
	retry connected || return
	sleep 0.2
	if [ "$how" = device ]; then
		rdma link delete "$kind"
	else
		ip link del "dummy_$kind"
	fi || return
	wait $client
	client_rc=$?
	wait $server
	server_rc=$?
	cat /tmp/client /tmp/server
	[ $client_rc = 1 ] && [ $server_rc = 1 ] && retry nothing &&
		retry gone "$kind" || return
	if [ "$how" = device ]; then
		rdma link add "$kind" type "$kind" netdev "dummy_$kind"
	else
		rdma_link "$kind" "$kind" "$address"
	fi
}
removals() { # KIND ADDRESS WAY...
	kind=$1
	address=$2
	shift 2
	for how; do
		# shellcheck disable=SC2086
		step "$kind removed $how" removed device "$kind" "$address" \
			-S 4096 $how
	done
	step "$kind interface removed" removed interface "$kind" "$address" \
		-S 4096 -C workqueue
	step "$kind again" pair "$kernel" "$kernel $address"
}

step "make rxe" rdma_link rxe rxe 10.99.1.1 && runs rxe 10.99.1.1 &&
	removals rxe 10.99.1.1 "-C softirq" "-C workqueue" "-C direct" "-M read"
# A ball that flies in softirqs alone keeps siw's thread, and with it the one
# processor of this machine, to itself: the device could not be removed.
step "make siw" rdma_link siw siw 10.99.2.1 && runs siw 10.99.2.1 &&
	removals siw 10.99.2.1 "-C workqueue" "-M read"

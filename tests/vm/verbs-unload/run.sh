# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# One machine with an rxe device that talks to itself: kofi_verbs is unloaded
# while there is a device, while it is used, and while devices come and go and
# change their names; the device's module goes under messages; and everything of
# ours goes while the device stays.
#
# Only the stock kernel has rxe in a module. User-mode Linux is of no use: its KASAN
# does not forget the variables of a module that has gone.

LONG="-p verbs -d rxe -T 0 -I 100000000 -S 4096 -C workqueue"

interface() {
	ip link add under0 type dummy && ip link set under0 mtu 4200 &&
		ip addr add 10.99.1.1/24 dev under0 && ip link set under0 up
}
add() { rdma link add rxe type rxe netdev under0; }
found() { kofi info -p verbs -d rxe; }
connected() { kofi stat ep | grep -q connected; }
reload() {
	unload kofi_pingpong kofi_verbs && load kofi_verbs kofi_pingpong &&
		found
}

# not in a step, which is a subshell: the script waits for these
start() { # STEP
	# shellcheck disable=SC2086
	kofi pingpong $LONG >/tmp/server 2>&1 &
	server=$!
	retry listens 47592
	# shellcheck disable=SC2086
	kofi pingpong $LONG 10.99.1.1 >/tmp/client 2>&1 &
	client=$!
	step "$1" retry connected
}
ended() { # STEP: both sides, with an error
	wait $client
	client_rc=$?
	wait $server
	server_rc=$?
	step "$1" errors
}
errors() {
	cat /tmp/client /tmp/server
	[ $client_rc = 1 ] && [ $server_rc = 1 ]
}
refused() { # and the connection is still there
	expect_fail rmmod kofi_verbs && expect_fail rmmod kofi &&
		connected && found
}

# --- at the same time

devices() { # until the file has gone
	while [ -e /tmp/busy ]; do
		add && rdma link delete rxe || return
	done
}
names() {
	while [ -e /tmp/busy ]; do
		rdma dev set rxe name other && rdma dev set other name rxe ||
			return
	done
}
modules() { # N: times; discovery finds the device, or does not
	i=0
	while [ $i -lt "$1" ]; do
		unload kofi_pingpong kofi_verbs &&
			load kofi_verbs kofi_pingpong || return
		kofi info -p verbs
		i=$((i + 1))
	done
}
meanwhile() { # CHANGES
	touch /tmp/busy
	"$1" >/tmp/changes 2>&1 &
	changes=$!
	modules 10
	rc=$?
	rm /tmp/busy
	wait $changes || rc=1
	cat /tmp/changes
	return $rc
}

step interface interface
step device add
step load load kofi_verbs kofi_pingpong
step found found
step reload reload

start used
step used-refused refused
step module-goes rmmod rdma_rxe
ended module-ended
step nothing-left retry no_objects
step module-again need_module rdma_rxe
step device-again add
start used-again
step device-goes rdma link delete rxe
ended device-ended
step nothing-left-again retry no_objects

step devices-meanwhile meanwhile devices
step device-for-names add
step names-meanwhile meanwhile names
step names-found found

# --- all of ours, while the device stays

without() { ! grep ^kofi /proc/modules && rdma link show rxe/1; }
step core-refused expect_fail rmmod kofi
step core-last unload kofi_pingpong kofi_verbs kofi
step device-stays without
step from-nothing load kofi_verbs
step from-nothing-found found

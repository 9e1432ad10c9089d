# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# One machine with devices in software that talk to themselves: kofi_verbs is
# unloaded while there is a device, while it is used, and while devices come and
# go and change their names; the device's own module goes under messages; and
# everything of ours goes while devices stay.
#
# The stock kernel has no siw, and only that has rxe in a module. User-mode Linux
# is of no use: its KASAN does not forget the variables of a module that has gone.

LONG="-p verbs -T 0 -I 100000000 -S 4096 -C workqueue"
KINDS="rxe siw"
[ "$VM_KERNEL" != stock ] || KINDS=rxe

net=0
interface() { # NAME ADDRESS
	ip link add "$1" type dummy && ip link set "$1" mtu 4200 &&
		ip addr add "$2/24" dev "$1" && ip link set "$1" up
}
add() { rdma link add "$1" type "$1" netdev "under_$1"; }
found() { kofi info -p verbs -d "$1"; }
connected() { kofi stat ep | grep -q connected; }
reload() {
	unload kofi_pingpong kofi_verbs && load kofi_verbs kofi_pingpong &&
		found "$1"
}

# not in a step, which is a subshell: the script waits for these
start() { # STEP KIND ADDRESS
	# shellcheck disable=SC2086
	kofi pingpong $LONG -d "$2" >/tmp/server 2>&1 &
	server=$!
	retry listens 47592
	# shellcheck disable=SC2086
	kofi pingpong $LONG -d "$2" "$3" >/tmp/client 2>&1 &
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
refused() { # KIND: and messages go on
	expect_fail rmmod kofi_verbs && expect_fail rmmod kofi &&
		connected && found "$1"
}

# --- at the same time

devices() { # KIND: until the file has gone
	while [ -e /tmp/busy ]; do
		add "$1" && rdma link delete "$1" || return
	done
}
names() { # KIND
	while [ -e /tmp/busy ]; do
		rdma dev set "$1" name other && rdma dev set other name "$1" ||
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
meanwhile() { # CHANGES KIND
	touch /tmp/busy
	"$@" >/tmp/changes 2>&1 &
	changes=$!
	modules 10
	rc=$?
	rm /tmp/busy
	wait $changes || rc=1
	cat /tmp/changes
	return $rc
}

step load load kofi_verbs kofi_pingpong
for kind in $KINDS; do
	net=$((net + 1))
	address=10.99.$net.1
	step "$kind interface" interface "under_$kind" $address
	step "$kind device" add "$kind"
	step "$kind found" found "$kind"
	step "$kind reload" reload "$kind"

	start "$kind used" "$kind" $address
	step "$kind used-refused" refused "$kind"
	if [ -d "/sys/module/rdma_$kind/holders" ]; then
		step "$kind module-goes" rmmod "rdma_$kind"
		ended "$kind module-ended"
		step "$kind module-again" need_module "rdma_$kind"
	else
		step "$kind goes" rdma link delete "$kind"
		ended "$kind ended"
	fi
	step "$kind nothing-left" retry no_objects
	step "$kind again" add "$kind"
	start "$kind used-again" "$kind" $address
	step "$kind goes-again" rdma link delete "$kind"
	ended "$kind ended-again"
	step "$kind nothing-left-again" retry no_objects

	step "$kind devices-meanwhile" meanwhile devices "$kind"
	step "$kind device-for-names" add "$kind"
	step "$kind names-meanwhile" meanwhile names "$kind"
	step "$kind names-found" found "$kind"
done

# --- all of ours, while the devices stay

nothing() {
	! grep ^kofi /proc/modules && rdma link && for kind in $KINDS; do
		rdma link show "$kind/1" || return
	done
}
step core-refused expect_fail rmmod kofi
step core-last unload kofi_pingpong kofi_verbs kofi
step devices-stay nothing
step from-nothing load kofi_verbs
for kind in $KINDS; do step "$kind from-nothing-found" found "$kind"; done

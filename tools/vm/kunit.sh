# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# The script of the machine that runs the unit tests: a suite runs when its
# module is loaded and prints KTAP on the console; kunit.py reads it there,
# between the marks. insmod succeeds also if cases fail.
#
# A machine for the contract on an RDMA device has the file device beside this,
# which names its kind: one of the kernel's in software, or dma, that of the
# tests. It is on an interface that leads nowhere else, and talks to itself. With
# -rxm behind its name, it is that of kofi_rxm over it. The device loop is the sample
# provider's, and rdm, rxm and dgram are none: endpoints of kofi_sock, and of kofi_rxm
# over it, that do not connect, and datagrams.

# A suite that has allocations fail needs no report of each.
for f in /sys/kernel/debug/fail*; do
	[ ! -e "$f/verbose" ] || echo 0 >"$f/verbose"
done
parameters=
device=
[ ! -e "$VM/device" ] || device=$(cat "$VM/device")
if [ "$device" = loop ]; then
	step "load loop" load kofi_loop
	parameters="provider=loop device=loop address=127.0.0.1"
elif [ "$device" = rdm ]; then
	parameters=type=rdm
elif [ "$device" = rxm ]; then
	parameters="type=rdm provider=sock;ofi_rxm"
elif [ "$device" = dgram ]; then
	parameters=type=dgram
elif [ "$device" ]; then
	of="provider=verbs"
	[ "$device" = "${device%-rxm}" ] || of="type=rdm provider=verbs;ofi_rxm"
	device=${device%-rxm}
	# the second is for a case that has another device
	for i in 0 1; do
		step "make under$i" ip link add under$i type dummy
		ip link set under$i mtu 4200
		ip addr add 10.99.$((i + 1)).1/24 dev under$i
		ip link set under$i up
	done
	[ "$device" != dma ] || step "load $device" load kofi_testrdma
	step "link $device" rdma link add "$device" type "$device" netdev under0
	parameters="$of device=$device address=10.99.1.1 netdev=under0"
fi
# KASAN keeps what has been freed until somebody allocates who may sleep, and
# rxe's packets never are: alone with them, the machine runs out of memory.
while sleep 1; do :; done &
# An address that cannot be reached, for the suite that sends to one
no_way=198.51.100.1
ip route add unreachable $no_way || no_way=
mark() { echo "<5>vm-kunit: $*" >/dev/kmsg; }
while read -r module; do
	mark "begin $module"
	way=
	[ ! "$no_way" ] || ! modinfo -p "$VM/ko/$module.ko" | grep -q ^unreachable: ||
		way=unreachable=$no_way
	# shellcheck disable=SC2086
	step "load $module" load "$module" $parameters $way
	mark "end $module"
done <"$VM/kunit.list"

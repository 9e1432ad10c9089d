# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# IPv6 addresses in a kernel booted with ipv6.disable=1: nothing is found, also by
# a user without rights, and IPv4 works. The work queues are unbound here.

queues=/sys/devices/virtual/workqueue

load kofi wq_unbound=1 kofi_sock kofi_verbs kofi_pingpong || exit
ip link set lo up

unprivileged() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
nothing() {	# CMD...
	"$@" >/tmp/out 2>&1
	rc=$?
	cat /tmp/out
	[ $rc != 0 ] && grep -q "^kofi: no interface fits" /tmp/out
}
off() { [ ! -e /proc/net/if_inet6 ]; }
step off off
for address in ::1 fd00::2 2001:db8::1; do
	for provider in sock verbs; do
		step "root $provider $address" nothing kofi info -p $provider -n $address -P 4711
		step "nobody $provider $address" nothing unprivileged \
			kofi info -p $provider -n $address -P 4711
		step "source $provider $address" nothing kofi info -p $provider -s $address
	done
done

unbound() {	# an attribute that only such queues have
	for queue in kofi_cq kofi_eq kofi_sock kofi_sock_reclaim kofi_verbs; do
		[ -e $queues/$queue/cpumask ] || return
	done
}
step unbound unbound
pingpong() {
	kofi pingpong -c -C workqueue -I 20 >/tmp/server 2>&1 &
	server=$!
	retry listens 47592
	kofi pingpong -c -C workqueue -I 20 127.0.0.1
	rc=$?
	wait $server && [ $rc = 0 ]
}
step pingpong pingpong

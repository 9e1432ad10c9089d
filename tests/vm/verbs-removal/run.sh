# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The unit tests of removal once more, with the rounds they have no time for
# elsewhere: each step of a connection's life and each load on either device in
# software, and removals at any moment. KASAN, lockdep and kmemleak look on.
#
# The module is loaded once, and its suites run again for the second device: in
# User-mode Linux KASAN does not forget the variables of a module that has gone,
# and complains of the next one in its place.

printf 'verbs_removal*' >/sys/module/kunit/parameters/filter_glob

suites=/sys/kernel/debug/kunit
parameters=/sys/module/kofi_verbs_own_kunit/parameters

device() { # KIND ADDRESS
	ip link add "under_$1" type dummy &&
		ip link set "under_$1" mtu 4200 &&
		ip addr add "$2/24" dev "under_$1" &&
		ip link set "under_$1" up &&
		rdma link add "$1" type "$1" netdev "under_$1"
}
passed() { # SUITE
	cat "$suites/$1/results"
	grep -q "^ok [0-9]* $1\$" "$suites/$1/results" &&
		! grep -q SKIP "$suites/$1/results"
}
again() { # SUITE
	echo 1 >"$suites/$1/run" && passed "$1"
}

step siw device siw 10.99.3.1
step load load kofi_verbs_own_kunit provider=verbs device=siw \
	address=10.99.3.1 netdev=under_siw rounds=50
step siw-steps passed verbs_removal
step siw-loads passed verbs_removal_load
step siw-goes rdma link delete siw

step rxe device rxe 10.99.4.1
printf rxe >$parameters/device
printf 10.99.4.1 >$parameters/address
printf under_rxe >$parameters/netdev
step rxe-steps again verbs_removal
step rxe-loads again verbs_removal_load
step rxe-goes rdma link delete rxe

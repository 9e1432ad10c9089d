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

passed() { # SUITE
	cat "$suites/$1/results"
	grep -q "^ok [0-9]* $1\$" "$suites/$1/results" &&
		! grep -q SKIP "$suites/$1/results"
}
again() { # SUITE
	echo 1 >"$suites/$1/run" && passed "$1"
}

step siw rdma_link siw siw 10.99.3.1
step load load kofi_verbs_own_kunit provider=verbs device=siw \
	address=10.99.3.1 netdev=dummy_siw rounds=50
step siw-steps passed verbs_removal
step siw-loads passed verbs_removal_load
step siw-goes rdma link delete siw

step rxe rdma_link rxe rxe 10.99.4.1
printf rxe >$parameters/device
printf 10.99.4.1 >$parameters/address
printf dummy_rxe >$parameters/netdev
step rxe-steps again verbs_removal
step rxe-loads again verbs_removal_load
step rxe-goes rdma link delete rxe

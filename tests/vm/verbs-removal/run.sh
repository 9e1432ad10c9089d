# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The unit tests of removal once more, with the rounds they have no time for
# elsewhere: each step of a connection's life on either device in software, and
# removals at any moment. KASAN, lockdep and kmemleak look on.

printf 'verbs_removal*' >/sys/module/kunit/parameters/filter_glob

results=/sys/kernel/debug/kunit/verbs_removal/results
removals() { # KIND ADDRESS
	ip link add "under_$1" type dummy &&
		ip link set "under_$1" mtu 4200 &&
		ip addr add "$2/24" dev "under_$1" &&
		ip link set "under_$1" up &&
		rdma link add "$1" type "$1" netdev "under_$1" || return
	load kofi_verbs_own_kunit provider=verbs device="$1" address="$2" \
		netdev="under_$1" rounds=50 || return
	cat $results
	grep -q '^ok [0-9]* verbs_removal$' $results &&
		! grep -q SKIP $results &&
		unload kofi_verbs_own_kunit &&
		rdma link delete "$1"
}

for kind in siw rxe; do
	step $kind removals $kind 10.99.3.1
	ip link del under_$kind
done

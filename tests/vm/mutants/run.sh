# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The unit test of a peer whose frames have bytes changed or cut off, a hundred
# times as long as among the unit tests.

results=/sys/kernel/debug/kunit/sock_mutate/results

load kofi_sock || exit
printf 'sock_mutate' >/sys/module/kunit/parameters/filter_glob

mutants() {
	load kofi_sock_kunit mutants=100000
	cat $results
	grep -q '^ok [0-9]* sock_mutate$' $results
}
step mutants mutants
cat /tmp/.step

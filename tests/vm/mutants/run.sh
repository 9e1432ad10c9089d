# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The unit tests of peers whose frames and packets have bytes changed or cut off,
# a hundred times as long as among the unit tests.

load kofi_sock && load kofi_rxm || exit
printf '*_mutate' >/sys/module/kunit/parameters/filter_glob

mutants() {	# MODULE SUITE
	load "$1" mutants=100000
	cat "/sys/kernel/debug/kunit/$2/results"
	grep -q "^ok [0-9]* $2\$" "/sys/kernel/debug/kunit/$2/results"
}
step mutants mutants kofi_sock_kunit sock_mutate
cat /tmp/.step
step rxm-mutants mutants kofi_rxm_kunit rxm_mutate
cat /tmp/.step

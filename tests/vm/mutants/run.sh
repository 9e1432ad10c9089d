# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The unit tests of peers whose frames and packets have bytes changed or cut off,
# a hundred times as long as among the unit tests.

load kofi_sock && load kofi_rxm || exit
printf '*_mutate' >/sys/module/kunit/parameters/filter_glob

# Ten runs, each with a seed of its own: a unit test ends after five minutes. The
# module stays, as User-mode Linux with KASAN cannot load one where another was.
passed() {	# SUITE
	cat "/sys/kernel/debug/kunit/$1/results"
	grep -q "^ok [0-9]* $1\$" "/sys/kernel/debug/kunit/$1/results"
}
mutants() {	# MODULE SUITE
	load "$1" mutants=10000 && passed "$2" || return
	for _ in 1 2 3 4 5 6 7 8 9; do
		echo 1 >"/sys/kernel/debug/kunit/$2/run" && passed "$2" || return
	done
}
step mutants mutants kofi_sock_kunit sock_mutate
cat /tmp/.step
step rxm-mutants mutants kofi_rxm_kunit rxm_mutate
cat /tmp/.step

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The suite of many connections for a while, with a new seed each time; the first line
# of its results names it. stress-soak has it for longer.

results=/sys/kernel/debug/kunit/contract_many/results

load kofi_sock || exit
printf 'contract_many*' >/sys/module/kunit/parameters/filter_glob

many() {
	load kofi_contract_kunit stress_ms=20000
	cat $results
	grep -q '^ok [0-9]* contract_many$' $results
}
step many-connections many
cat /tmp/.step

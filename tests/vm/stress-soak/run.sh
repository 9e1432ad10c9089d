# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The suite of many connections, over and over: seeds that stay the same, so
# that two runs can be compared, and some that are new each time (0); few
# connections with deep queues and many that share little. KUnit ends a test
# that takes five minutes, so no run does.

results=/sys/kernel/debug/kunit/contract_many/results

load kofi_sock || exit
printf 'contract_many*' >/sys/module/kunit/parameters/filter_glob

many() {	# SEED CONNECTIONS
	load kofi_contract_kunit stress_ms=75000 "stress_seed=$1" "stress_conns=$2"
	cat $results
	grep -q '^ok [0-9]* contract_many$' $results || return
	unload kofi_contract_kunit
}
for seed in 1 2 0 0; do
	for conns in 64 8 256; do
		step "seed-$seed-connections-$conns" many $seed $conns
		cat /tmp/.step
	done
done

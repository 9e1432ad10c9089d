# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The unit test of an endpoint with many peers, with ten times as many. What each
# takes is in the log.

load kofi_sock || exit
printf sock_peers >/sys/module/kunit/parameters/filter_glob

peers() {
	load kofi_sock_kunit peers=10000
	cat /sys/kernel/debug/kunit/kofi_sock_peers/results
	grep -q '^ok [0-9]* sock_peers$' /sys/kernel/debug/kunit/kofi_sock_peers/results
}
step peers peers
grep 'peers:' /tmp/.step

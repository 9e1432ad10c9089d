# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The unit tests of connections that end in the middle of something, with an end
# at each byte of header, payload and answer; the unit tests as such look only
# at the first and last ones of each part.

results=/sys/kernel/debug/kunit/kofi_drop_wire/results

load kofi_sock || exit
printf 'sock_drop_wire*' >/sys/module/kunit/parameters/filter_glob

drops() {
	load kofi_sock_own_kunit drop_bytes=1
	cat $results
	grep -q '^ok [0-9]* sock_drop_wire$' $results
}
step every-byte drops
cat /tmp/.step

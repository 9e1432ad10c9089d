# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# The script of the machine that runs the unit tests: a suite runs when its
# module is loaded and prints KTAP on the console; kunit.py reads it there,
# between the marks. insmod succeeds also if cases fail.
# A suite that has allocations fail needs no report of each.
for f in /sys/kernel/debug/fail*; do
	[ ! -e "$f/verbose" ] || echo 0 >"$f/verbose"
done
mark() { echo "<5>vm-kunit: $*" >/dev/kmsg; }
while read -r module; do
	mark "begin $module"
	step "load $module" load "$module"
	mark "end $module"
done <"$VM/kunit.list"

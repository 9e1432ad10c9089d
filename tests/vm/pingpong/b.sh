# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
. "$VM/common.sh"

run() {
	wanted "$1" || return 0
	sync "$1"
	say ""
	say "b\$ $3"
	# shellcheck disable=SC2086
	show "$1" timeout 100 $3
}

load kofi_sock kofi_pingpong kofi_perf || exit
say "b\$ kofi info"
show info kofi info
runs
step nothing-left retry no_objects

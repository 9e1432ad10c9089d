# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
. "$VM/common.sh"

run() {
	sync "$1"
	say ""
	say "b\$ $3"
	# shellcheck disable=SC2086
	show "$1" timeout 200 $3
}

load kofi_sock kofi_verbs kofi_pingpong kofi_perf kofi_rma || exit
devices

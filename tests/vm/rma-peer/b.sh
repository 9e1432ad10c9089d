# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
. "$VM/common.sh"

it() { exec kofi-peer "$@"; }	# never returns
typed() {
	say "The kernel of machine a listens; a libfabric program in b is its client."
	say "b\$ kofi-peer $*"
}

runs

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
. "$VM/common.sh"

it() {	# never returns
	# shellcheck disable=SC2016
	exec sh -c 'exec 4<>/dev/kofi_rma && { echo "$*" >&4; rc=$?
		cat <&4; exit $rc; }' sh "$@"
}
typed() {
	say "A libfabric program listens in machine b; the kernel of a is its client."
	say "a\$ exec 4<>/dev/kofi_rma; echo $* >&4; cat <&4"
}

load kofi_sock kofi_rma || exit
runs
step nothing-left retry no_objects

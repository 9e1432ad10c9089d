# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
. "$VM/common.sh"

it() {
	# shellcheck disable=SC2016
	timeout 150 sh -c 'exec 4<>/dev/kofi_rma && { echo "$*" >&4; rc=$?
		cat <&4; exit $rc; }' sh "$@"
}
nothing() { [ -z "$(kofi stat)" ]; }

load kofi_sock kofi_rma || exit
runs
step nothing-left retry nothing

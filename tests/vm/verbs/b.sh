# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
. "$VM/common.sh"

run() {
	sync "$1"
	# shellcheck disable=SC2086
	show "$1" timeout 100 $3
}

step setup setup || exit
sync ready
show info kofi info -p verbs
runs
nothing_left() { [ -z "$(kofi stat)" ]; }
step nothing-left retry nothing_left

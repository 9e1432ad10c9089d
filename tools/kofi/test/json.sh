#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# json.sh KOFI: --json gives valid JSON also where nothing is found, a line for each
# finding. No module is there.

kofi=$1

nothing() {	# WORD...
	# without modprobe
	said=$(PATH=/nonexistent "$kofi" "$@" 2>/dev/null)
	[ "$?:$said" = "1:[]" ] || echo "kofi $*: $said; expected an empty list"
}

nothing info --json
nothing list --json
nothing stat --json
nothing stat --json ep
nothing stat --json 1

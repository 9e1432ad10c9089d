# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
. "$VM/common.sh"

begin() {	# WORD...
	(echo "$* role=listen" >$run) &
	pid=$!
	retry listens 7475
	sync "$round"
	wait $pid
}

peers

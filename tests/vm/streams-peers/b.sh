# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
. "$VM/common.sh"

begin() {	# WORD...
	sync "$round"
	echo "$* role=connect" >$run
}

peers

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# What both machines go through: a has a volume for each provider, b maps it.
# FILES in a tree, MIB of a volume, IO of those that fio verifies at a time.

. "$VM/steps.sh"

begin() {	# MODULE
	step load load kofi_sock kofi_verbs "$1" && step configfs configfs &&
		step "make rxe" rdma link add rxe type rxe netdev eth0
}

run() {		# calls over PROVIDER VOLUME
	: "${FILES:=250}" "${MIB:=64}" "${IO:=3}"
	over sock device
	over verbs file
}

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Client and target share one machine: TCP has to find memory for both ends when
# there is none. Over verbs, neither needs any. The target's disks are part of the
# memory, but no part that can be given away.

export SWAP=64 FS=16	# MiB
export SOCK=127.0.0.1 VERBS=10.99.1.1
. "$VM/steps.sh"

step setup setup || exit
swap_steps

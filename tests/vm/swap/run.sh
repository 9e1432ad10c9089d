# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Server and client share one machine: TCP has to find memory for both ends
# when there is none. The server's disks are part of the memory, but no part
# that can be given away.

export SWAP=96 FS=16	# MiB
. "$VM/steps.sh"

step setup setup listen=127.0.0.1 connect=127.0.0.1 || exit
swap_steps 6

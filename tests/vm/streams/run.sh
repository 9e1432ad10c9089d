# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# What has shown each stall that there was; make soak ONLY=streams-all runs the
# rest.

. "$VM/streams.sh"
simulated_time
bytes=80000000
operations=1200
sizes="64 4096 65536 262144"

load kofi_sock kofi_bench && forget || exit
link_lo || exit
over lo plain twoway small late-small
link_veth1500 || exit
over veth1500 small-twoway late

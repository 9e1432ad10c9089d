# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The runs of the file "plan", recorded by the runner on the host from "trace on"
# to "trace off"; how long each took, and, for its sums, where functions are in
# this kernel. tools/vm/profiler.py writes the one and reads the other.

run=/sys/kernel/debug/kofi_bench/run

symbols() {
	echo 0 >/proc/sys/kernel/kptr_restrict || return
	awk '$2 ~ /[tTwW]/ { print $1, $3 $4 }' /proc/kallsyms | gzip | base64 |
		sed 's/^/symbols: /'
}

. "$VM/devices.sh"
load kofi_sock kofi_verbs kofi_rxm kofi_bench || exit
devices || exit
symbols || exit
while read -r name client rest; do
	# once unrecorded: what is done at the first use is not of interest
	echo "$client $rest" >$run || exit
	ask trace on "$name" || exit
	echo "$client $rest" >$run || exit
	ask trace off "$name" || exit
	read -r ns _ <$run || exit
	echo "took: $name $ns"
done <"$VM/plan"

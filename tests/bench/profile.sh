# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The runs of the file "plan", recorded by the runner on the host from "trace on"
# to "trace off"; how long each took, and, for its sums, where functions are in
# this kernel. tools/vm/profiler.py writes the one and reads the other.
#
#   run WORDS	as in run.sh
#   disk WHERE KIND SIZE COUNT
#		requests to one of the disks of disks.sh, one after the other
#   9p WHERE WORDS
#		as in run.sh

run=/sys/kernel/debug/kofi_bench/run

symbols() {
	echo 0 >/proc/sys/kernel/kptr_restrict || return
	awk '$2 ~ /[tTwW]/ { print $1, $3 $4 }' /proc/kallsyms | gzip | base64 |
		sed 's/^/symbols: /'
}

profile_run() { echo "$*" >$run; }

profile_disk() {
	disk=$(cat "/tmp/disk.$1")
	case $2 in
	read) set -- "if=$disk" of=/dev/null iflag=direct "bs=$3" "count=$4" ;;
	write) set -- if=/dev/zero "of=$disk" oflag=direct "bs=$3" "count=$4" ;;
	esac
	dd "$@" 2>/tmp/dd || { cat /tmp/dd >&2; return 1; }
}

profile_9p() { bench_9p "$@" >/tmp/ns; }

. "$VM/devices.sh"
. "$VM/disks.sh"
. "$VM/mounts.sh"
load kofi_sock kofi_verbs kofi_rxm kofi_bench || exit
devices || exit
if grep -q '^disk' "$VM/plan"; then step disks setup_disks || exit; fi
if grep -q '^9p' "$VM/plan"; then step servers setup_9p || exit; fi
symbols || exit
name=0
while read -r what rest; do
	# once unrecorded: what is done at the first use is not of interest
	# shellcheck disable=SC2086 # words
	"profile_$what" $rest || exit
	ask trace on "$name" || exit
	# shellcheck disable=SC2086
	"profile_$what" $rest || exit
	ask trace off "$name" || exit
	case $what in
	run) read -r ns _ <$run || exit ;;
	9p) read -r ns _ </tmp/ns || exit ;;
	disk) ns=$(awk '/copied/ { printf "%.0f", $(NF - 3) * 1e9 }' /tmp/dd) ;;
	esac
	echo "took: $name $ns"
	name=$((name + 1))
done <"$VM/plan"

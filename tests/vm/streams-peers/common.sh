# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Both machines go through the same runs; a listens, b connects and sends, writes
# and reads. While one of them is not given any time by the host, the other one
# sees no progress, and may be right to have its timers expire: a stream has stood
# still for as long as both of them have seen it do so. On a busy host they may do so
# in turn; what stands still by itself does it each time.

. "$VM/streams.sh"
sizes="64 65536 262144"
bytes=2000000
operations=500
link="10.0.0.2 addr2=10.0.0.1"
round=0

once() {	# WORD...
	for _ in 1 2 3 4 5; do
		either "$@" && return
	done
	return 1
}

either() {	# WORD...
	round=$((round + 1))
	# shellcheck disable=SC2086
	set -- "$@" $link $options
	# shellcheck disable=SC2086
	if begin "$@"; then read -r got <$run; else got="0 0"; fi
	# each step counts its rounds from one, and what was put stays until the end
	key=$(echo "$round $options" | tr ' ' _)
	put "$key-$VM_NAME" "$allowed $got" || return
	case $VM_NAME in
	a) theirs=$(get "$key-b") ;;
	b) theirs=$(get "$key-a") ;;
	esac || return
	echo "$* = $got (there: $theirs)"
	# shellcheck disable=SC2086
	both "$allowed" $got / $theirs
}

both() {	# ALLOWED NS GAP NAME=NUMBER... / ALLOWED NS GAP NAME=NUMBER...
	allowed=$1 ns=$2 gap=$3
	while [ "$1" != / ]; do shift; done
	[ "$ns" != 0 ] && [ "$3" != 0 ] || { echo failed; return 1; }
	[ "$2" -le "$allowed" ] || allowed=$2
	[ "$gap" -le "$4" ] || gap=$4
	[ "$gap" -le "$allowed" ] && return
	echo "no progress for $gap ticks, $allowed allowed"
	return 1
}

peers() {
	load kofi_sock kofi_bench && forget || exit
	# of this machine alone, while the other one does the same
	for size in $sizes; do check "allowed-$size" limit_measured "$size"; done
	sync measured
	limit() { limit_measured "$1"; }
	over net plain small-twoway late
}

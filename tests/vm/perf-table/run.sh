# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh disable=SC2086
# kofi bw over each provider and device, by size. tools/vm/sizes.py reads the lines
# "sizes: WAY OPERATION BYTES BYTES_PER_SECOND" of a kernel that is built for speed.

load kofi_sock kofi_rxm kofi_verbs kofi_perf || exit

listening() {	# without a pause, as there are hundreds of servers
	for _ in $(seq 2000); do
		! listens 47593 || return 0
	done
	return 1
}
transfer() {	# ADDRESS OPTION...
	at=$1
	shift
	kofi bw >/tmp/server 2>&1 &
	server=$!
	listening && kofi bw --json "$@" "$at" >/tmp/out
	rc=$?
	[ $rc = 0 ] || kill $server 2>/dev/null
	wait $server && [ $rc = 0 ] && return
	cat /tmp/out /tmp/server
	return 1
}
# Over siw, longer writes and reads need more regions of the peer than an operation takes, and
# the list ends there.
verified() {	# OPERATION ADDRESS OPTION...: all sizes of fabtests
	operation=$1 at=$2 rows=46
	case "$name $operation" in
	siw*write | siw*read) rows=40 ;;
	esac
	shift 2
	transfer "$at" -o "$operation" -S all -I 16 -w 8 -v "$@" &&
		[ "$(grep -c '"bytes":' /tmp/out)" -ge $rows ]
}
measured() {	# OPERATION ADDRESS OPTION...: some tens of milliseconds for each size
	operation=$1 at=$2 size=1
	shift 2
	: >/tmp/rows
	while [ $size -le 8388608 ]; do
		if ! transfer "$at" -o "$operation" -S $size -I $((32 + 60000000 / (3000 + size))) \
			-w 64 "$@"; then
			[ $size -gt 1048576 ] && grep -q regions /tmp/out
			return
		fi
		cat /tmp/out >>/tmp/rows
		size=$((size * 2))
	done
}
way() {	# NAME ADDRESS OPTION...
	name=$1
	shift
	for operation in msg write read; do
		if [ "$VM_KERNEL" != uml-fast ]; then
			step "$name $operation" verified $operation "$@"
			continue
		fi
		step "$name $operation $pass" measured $operation "$@" || continue
		awk -v head="sizes: $name $operation" '{ gsub(/[",]/, "") }
			$1 == "bytes:" { bytes = $2 }
			$1 == "bytes_per_sec:" { print head, bytes, $2 }' /tmp/rows
	done
}
step "make rxe" rdma_link rxe rxe 10.99.1.1
step "make siw" rdma_link siw siw 10.99.2.1
passes=1
[ "$VM_KERNEL" != uml-fast ] || passes=5
for pass in $(seq $passes); do
	way sock 127.0.0.1 -p sock
	way sock-rdm 127.0.0.1 -p sock -e rdm
	way sock-rxm 127.0.0.1 -p 'sock;ofi_rxm' -e rdm
	way rxe 10.99.1.1 -p verbs
	way rxe-rxm 10.99.1.1 -p 'verbs;ofi_rxm' -e rdm
	way siw 10.99.2.1 -p verbs
	way siw-rxm 10.99.2.1 -p 'verbs;ofi_rxm' -e rdm
done
step "remove rxe" rdma link delete rxe
step "remove siw" rdma link delete siw

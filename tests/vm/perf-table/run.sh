# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh disable=SC2086

load kofi_sock kofi_rxm kofi_verbs kofi_perf || exit

table() {	# ADDRESS OPTION...
	at=$1
	shift
	kofi bw >/tmp/server 2>&1 &
	server=$!
	retry listens 47593 && kofi bw -o write -S all -I 64 -w 8 "$@" "$at"
	rc=$?
	[ $rc = 0 ] || kill $server 2>/dev/null
	wait $server && [ $rc = 0 ]
}
step "make rxe" rdma_link rxe rxe 10.99.1.1
step "make siw" rdma_link siw siw 10.99.2.1
show "sock msg" table 127.0.0.1 -p sock
show "sock rdm" table 127.0.0.1 -p sock -e rdm
show "sock rxm" table 127.0.0.1 -p 'sock;ofi_rxm' -e rdm
show "rxe" table 10.99.1.1 -p verbs
show "rxe rxm" table 10.99.1.1 -p 'verbs;ofi_rxm' -e rdm
show "siw" table 10.99.2.1 -p verbs
step "remove rxe" rdma link delete rxe
step "remove siw" rdma link delete siw

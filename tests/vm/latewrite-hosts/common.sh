# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Machine a is the target, b and c are clients. A write of b fails while the cable of b
# is pulled. A later write of c succeeds, and then the cable of b is plugged again. From
# then on the disk of a has to keep the write of c.

. "$VM/steps.sh"

export SOCK=10.0.0.1 VERBS=10.0.0.1

setup() {	# MODULE
	load kofi_sock kofi_verbs "$1" && configfs &&
		rdma link add rxe type rxe netdev eth0 || return
	for word in zero old new; do
		yes $word | head -c 4096 >/tmp/data.$word
	done
}

# calls round NAME PROVIDER END; b unmaps its device at END
rounds() {
	round sock sock failed
	round verbs verbs failed
	for provider in sock verbs; do
		round $provider-mapped $provider healed
	done
}

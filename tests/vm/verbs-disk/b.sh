# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The client: kofiblk0 is the disk. Each request registers its memory with a key
# of its own, which ends with the server's answer.

disk=/dev/kofiblk0

compare() { cmp /tmp/in /tmp/out && sha256sum /tmp/in /tmp/out; }
to() { dd if=/tmp/in of=$disk oflag=direct status=none "$@"; }
from() { dd if=$disk of=/tmp/out iflag=direct status=none "$@"; }

whole() {	# BLOCK COUNT: so much, in such pieces, there and back
	dd if=/dev/urandom of=/tmp/in bs="$1" count="$2" status=none || return
	to bs="$1" count="$2" && from bs="$1" count="$2" && compare
}

inside() {	# pieces of it change, and nothing beside them
	dd if=/dev/urandom of=/tmp/piece bs=4k count=3 status=none || return
	for at in 1 17 200; do
		dd if=/tmp/piece of=/tmp/in bs=4k seek=$at conv=notrunc status=none &&
			dd if=/tmp/piece of=$disk bs=4k seek=$at oflag=direct status=none ||
			return
	done
	from bs=64k count=64 && compare
}

step "make rxe" rdma link add rxe type rxe netdev eth0 || exit
sync serving
step connect load kofi_verbs kofi_testblk provider=verbs safe=0 connect=10.0.0.1 mib=8 || exit
sync connected
say "b\$ dd if=/tmp/in of=$disk bs=128k oflag=direct; dd if=$disk of=/tmp/out iflag=direct"
show "8 MiB" whole 128k 64
show "small requests" whole 4k 256
show "4 MiB" whole 64k 64
show "pieces" inside
say "b\$ kofi stat ep"
show stat kofi stat ep
step unload unload kofi_testblk
sync over
step nothing-left retry no_objects

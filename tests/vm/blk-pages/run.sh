# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# One machine does what two machines do on the pages.

. "$VM/page.sh"

# The kernel's own are built in. The first one is ours.
modprobe() { [ "$1" = rdma_rxe ] || command modprobe -d /run/mod "$@"; }

setup() {
	load kofi_sock kofi_verbs kofi_blk kofi_blkt && mount -t tmpfs tmpfs /root &&
		ip link add eth0 type dummy && ip addr add 10.0.0.1/24 dev eth0 &&
		ip link set eth0 up || return
	for disk in vdb vdc vdd; do
		truncate -s 16M /tmp/$disk && ln -s "$(losetup -f --show /tmp/$disk)" /dev/$disk ||
			return
	done
}

pages() {	# FILE SECTION...
	python3 "$VM/commands.py" -s "$VM/$@" >/tmp/pages.sh || exit
	. /tmp/pages.sh
}

step setup setup || exit
pages README.md "A disk of another machine"
pages blk.rst Use Authentication Digests
check gone page_gone
step nothing-left retry no_objects

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The server: its memory is the disk. It reads what is to be written out of the
# client's memory, and writes what is read into it.

step "make rxe" rdma link add rxe type rxe netdev eth0 || exit
step serve load kofi_verbs kofi_testblk provider=verbs safe=0 listen=10.0.0.1 || exit
say "This machine serves its memory as a disk, 10.0.0.1, port 4420."
sync serving
sync connected
say "a\$ kofi stat ep"
show stat kofi stat ep
sync over
step unload unload kofi_testblk
step nothing-left retry no_objects

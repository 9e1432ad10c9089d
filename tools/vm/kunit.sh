# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# The script of the machine that runs the unit tests: a suite runs when its
# module is loaded and prints KTAP on the console; kunit.py reads it there,
# between the marks. insmod succeeds also if cases fail.
# A suite that has allocations fail needs no report of each.
for f in /sys/kernel/debug/fail*; do
	[ ! -e "$f/verbose" ] || echo 0 >"$f/verbose"
done
mark() { echo "<5>vm-kunit: $*" >/dev/kmsg; }
while read -r module; do
	mark "begin $module"
	step "load $module" load "$module"
	mark "end $module"
done <"$VM/kunit.list"

# The contract, once more on each kind of RDMA device there is in software. It
# talks to itself, over an interface that leads nowhere else.
device() { # KIND ADDRESS
	ip link add "dummy_$1" type dummy &&
		ip link set "dummy_$1" mtu 4200 &&
		ip addr add "$2/24" dev "dummy_$1" &&
		ip link set "dummy_$1" up &&
		rdma link add "$1" type "$1" netdev "dummy_$1"
}
contract() { # KIND ADDRESS
	mark "begin kofi_contract_kunit $1"
	step "load kofi_contract_kunit on $1" load kofi_contract_kunit \
		provider=verbs device="$1" address="$2"
	mark "end kofi_contract_kunit $1"
	unload kofi_contract_kunit
}
if command -v rdma >/dev/null && [ -e "$VM/ko/kofi_verbs.ko" ]; then
	unload kofi_contract_kunit
	step "make rxe" device rxe 10.99.1.1 && contract rxe 10.99.1.1
	step "make siw" device siw 10.99.2.1 && contract siw 10.99.2.1
fi

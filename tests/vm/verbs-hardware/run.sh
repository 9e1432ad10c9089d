# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# A device of the tests stands for hardware: it has two ports, on one network device
# each, and a PCI device of the machine as its parent, whose NUMA node it inherits.
# Only the stock kernel has NUMA nodes.

load kofi_verbs kofi_pingpong || exit

pci=
for dev in /sys/bus/pci/devices/*; do pci=${dev##*/}; done
sys=/sys/bus/pci/devices/$pci
driver=kofi_testrdma
[ ! -e "$sys/driver" ] || driver=$(basename "$(readlink "$sys/driver")")

port() { # NUMBER
	ip link add "port$1" type dummy && ip link set "port$1" mtu 4200 addrgenmode none &&
		ip addr add "10.$1.0.1/24" dev "port$1" && ip link set "port$1" up
}
device() {
	cat "$sys/uevent" && echo 0 >"$sys/numa_node" && port 1 && port 2 &&
		load kofi_testrdma pci="$pci" second=port2
}
link() { rdma link add hw0 type dma netdev port1; }

# ADDRESS GID for each fi_info, where a GID ends in the number of the port
found() {
	kofi info -v -p verbs -d hw0 2>/tmp/err | awk '
		/^ *src_addr:/ { src = $2 }
		/^ *fi_link_attr:/ { link = 1 }
		/^ *address:/ && link { print src, $2; link = 0 }' | sort
}
ports() {
	retry two
	cat /tmp/found /tmp/err
	grep -q '^fi_sockaddr_in://10.1.0.1:0 ' /tmp/found && [ "$(wc -l </tmp/found)" = 2 ] &&
		grep -q '^fi_sockaddr_in://10.2.0.1:0 ' /tmp/found &&
		[ "$(cut -d ' ' -f 2 /tmp/found | sort -u | wc -l)" = 2 ]
}
two() { found >/tmp/found && [ "$(wc -l </tmp/found)" = 2 ]; }
none() { found >/tmp/found && [ ! -s /tmp/found ]; }

says() { grep -qx " *$1" /tmp/info || { echo "not found: $1"; cat /tmp/info; return 1; }; }
# DDDD:BB:DD.F, in hexadecimal digits
place() {
	kofi info -v -p verbs -d hw0 -s 10.2.0.1 >/tmp/info || return
	at=$(echo "$pci" | tr .: '  ')
	# shellcheck disable=SC2086
	set -- $at
	says "bus_type: FI_BUS_PCI" && says "domain_id: $((0x$1))" && says "bus_id: $((0x$2))" &&
		says "device_id: $((0x$3))" && says "function_id: $((0x$4))" &&
		says "driver: $driver"
}

LONG="-p verbs -d hw0 -T 0 -I 100000000 -S 4096 -C workqueue"
connected() { [ "$(kofi stat ep | grep -c ' connected ')" = 2 ]; }
start() { # STEP: not in a step, which is a subshell; the script waits for these
	# shellcheck disable=SC2086
	kofi pingpong $LONG >/tmp/server 2>&1 &
	server=$!
	retry listens 47592
	# shellcheck disable=SC2086
	kofi pingpong $LONG 10.2.0.1 >/tmp/client 2>&1 &
	client=$!
	step "$1" retry connected
}
# both domains
node() {
	kofi stat domain | tee /tmp/stat
	[ "$(grep -c '^ *numa_node: 0$' /tmp/stat)" = 2 ]
}
removed() {
	cat /tmp/client /tmp/server
	[ $client_rc = 1 ] && [ $server_rc = 1 ] && retry no_objects && retry none
}

step device device || exit
step link link || exit
step ports ports
step place place
start second-port
step node node
step delete rdma link delete hw0
wait $client
client_rc=$?
wait $server
server_rc=$?
step removed removed
step again link
step again-ports ports
step again-delete rdma link delete hw0
unload kofi_testrdma
ip link del port1
ip link del port2

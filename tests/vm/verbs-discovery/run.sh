# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Discovery over devices in software: each address of each port once, and nothing
# else; what a source, a destination, a name or a link select; what userspace says
# of the same devices; and network namespaces, in both modes of the RDMA subsystem.
# The stock kernel has no siw, and only that has VLANs.

load kofi_sock kofi_verbs kofi_pingpong || exit

# "DOMAIN FABRIC SOURCE" for each fi_info that fits
found() { # OPTION...
	kofi info -v -p verbs "$@" 2>/tmp/found.err | awk '
		/^fi_info:/ { attr = "" }
		/^ *src_addr:/ { src = $2; sub(/.*:\/\//, "", src) }
		/^ *fi_(domain|fabric)_attr:/ { attr = $1 }
		/^ *name:/ && attr == "fi_domain_attr:" { domain = $2; attr = "" }
		/^ *name:/ && attr == "fi_fabric_attr:" { print domain, $2, src; attr = "" }
		' | sort
}
is() { # LINE... -- OPTION...
	want=
	while [ "$1" != -- ]; do
		[ -z "$1" ] || want="$want$1
"
		shift
	done
	shift
	found "$@" >/tmp/found
	printf %s "$want" | sort | diff - /tmp/found
}
same() { retry is "$@"; }	# what the kernel does in work items is waited for
nothing() { [ -z "$(kofi stat)" ]; }
in_ns() { ip netns exec "$@"; }

# --- addresses: several on a port, a VLAN, IPv6; and one that is no device's

interface() { # NAME ADDRESS...
	name=$1
	shift
	ip link add "$name" type dummy &&
		ip link set "$name" mtu 4200 addrgenmode none &&
		ip link set "$name" up || return
	for address; do
		ip addr add "$address" dev "$name" || return
	done
}
devices() {
	interface d0 10.1.0.1/24 fd01::1/64 fe80::1/64 &&
		interface d1 10.2.0.1/24 fd02::1/64 fe80::1/64 &&
		interface d2 10.3.0.1/24 &&
		rdma link add rxe0 type rxe netdev d0 || return
	[ ! "$siw" ] || rdma link add siw0 type siw netdev d1
}
rxe4="rxe0 10.1.0.0/24 10.1.0.1:0"
rxe4b="rxe0 10.1.0.0/24 10.1.0.2:0"
rxe6="rxe0 fd01::/64 [fd01::1]:0"
rxel="rxe0 fe80::%d0/64 [fe80::1]:0"
vlan="rxe0 10.7.0.0/24 10.7.0.1:0"
siw4="siw0 iWARP-10.2.0.0/24 10.2.0.1:0"
siw6="siw0 iWARP-fd02::/64 [fd02::1]:0"
siwl="siw0 iWARP-fe80::%d1/64 [fe80::1]:0"
siw=y
# Debian's kernels
debian=
case $VM_KERNEL in stock|newest) debian=y siw='' siw4='' siw6='' siwl='' ;; esac

step devices devices
step addresses same "$rxe4" "$rxe6" "$rxel" "$siw4" "$siw6" "$siwl" --
ip addr add 10.1.0.2/24 dev d0
step address-added same "$rxe4" "$rxe4b" "$rxe6" "$rxel" "$siw4" "$siw6" "$siwl" --
vlan() {
	ip link add d0.7 link d0 type vlan id 7 &&
		ip link set d0.7 addrgenmode none && ip link set d0.7 up &&
		ip addr add 10.7.0.1/24 dev d0.7
}
if [ "$debian" ]; then
	step vlan vlan
	step vlan-found same "$vlan" -- -f 10.7.0.0/24
	# what one device has on two interfaces is found once
	ip addr add 10.7.0.1/24 dev d0
	step vlan-twice same "$rxe4" "$rxe4b" "$rxe6" "$rxel" "$vlan" -- -d rxe0
	ip addr del 10.7.0.1/24 dev d0
	ip link del d0.7
	step vlan-gone same "$rxe4" "$rxe4b" "$rxe6" "$rxel" -- -d rxe0
else
	skip vlan "this kernel has no VLANs"
fi

# --- what selects

step domain same "$siw4" "$siw6" "$siwl" -- -d siw0
step fabric same "$rxe4" "$rxe4b" -- -f 10.1.0.0/24
step family same "$rxe6" "$rxel" "$siw6" "$siwl" -- -a FI_SOCKADDR_IN6
step source same "$rxe4b" -- -s 10.1.0.2
step source-of-no-device same -- -s 10.3.0.1
step source-elsewhere same -- -s 10.1.0.2 -d siw0
step source-any same "rxe0 10.1.0.0/24 0.0.0.0:47" \
	${siw:+"siw0 iWARP-10.2.0.0/24 0.0.0.0:47"} -- -s 0.0.0.0 -P 47
step node same "$siw4" -- -n 10.2.0.9 -P 4711
step node-6 same "$siw6" -- -n fd02::9 -P 4711
step node-link-local same "$rxel" -- -n fe80::9%d0 -P 4711
step node-unreachable same -- -n 10.3.0.9 -P 4711
step node-from same "$rxe4" -- -s 10.1.0.1 -n 10.1.0.9 -P 4711
# not the one the routing table prefers
step node-from-other same "$rxe4b" -- -s 10.1.0.2 -n 10.1.0.9 -P 4711
step node-from-other-6 same "$rxe6" -- -s fd01::1 -n fd01::9 -P 4711
step node-own same "$rxe4b" -- -s 10.1.0.2 -n 10.1.0.1 -P 4711
step node-from-other-sock expect_output "fi_sockaddr_in://10.1.0.2:0" \
	kofi info -v -p sock -s 10.1.0.2 -n 10.1.0.9 -P 4711
# a device's own addresses do not lead to another interface
step node-elsewhere same -- -s 10.1.0.2 -n 10.2.0.9 -P 4711
step node-own-elsewhere same -- -s 10.1.0.2 -n 10.2.0.1 -P 4711
step node-elsewhere-6 same -- -s fd01::1 -n fd02::9 -P 4711

# --- the same devices, by userspace

. "$VM/compare.sh"

some_values() { # the first fi_info of a device: what describes it, and not libfabric
	awk -v name="$1" '
		/^---/ { keep(r); r = "" }
		{ r = r $0 "\n" }
		END { keep(r) }
		function keep(r) {
			if (!done && r ~ "name: " name "\n" &&
			    r ~ /FI_SOCKADDR_IN\n/ && r ~ /FI_EP_MSG\n/) {
				printf "%s", r
				done = 1
			}
		}' |
		grep -E '^ +(addr_format|src_addr|src_addrlen|type|protocol|cq_data_size|mr_key_size):|^ +(cq_cnt|ep_cnt|network_type|state):'
}
as_fi_info() { # DEVICE
	kofi info -v -p verbs | some_values "$1" >/tmp/ours
	fi_info -v -p verbs -t FI_EP_MSG | some_values "$1" >/tmp/theirs
	cat /tmp/theirs
	[ "$(wc -l </tmp/theirs)" -ge 10 ] && diff /tmp/ours /tmp/theirs
}
step as-fi_info-rxe as_fi_info rxe0
[ ! "$siw" ] || step as-fi_info-siw as_fi_info siw0
# all labels and values, by libfabric 2.1
mkdir -p /tmp/t
kofi info -v -p verbs -d rxe0 -t FI_EP_MSG >/tmp/t/rxe0
fi_info@trixie -v -p verbs -d rxe0 -t FI_EP_MSG >/tmp/t/rxe0.newer
step same-fields-newer same_labels /tmp/t/rxe0 /tmp/t/rxe0.newer
if [ "$VM_KERNEL" = uml ]; then
	skip same-values-newer "rdma_rxe is built in and has no driver's name, as in libfabric"
else
	step same-values-newer differ rxe0 rxe0
fi

# --- links: a port that is down is not found, by userspace neither

no_rxe() { fi_info -p verbs -t FI_EP_MSG | expect_fail grep -q rxe0; }
ip link set d0 carrier off
step carrier-off same "$siw4" "$siw6" "$siwl" --
step carrier-off-userspace retry no_rxe
ip link set d0 carrier on
step carrier-on same "$rxe4" "$rxe4b" "$rxe6" "$rxel" "$siw4" "$siw6" "$siwl" --
ip link set d1 down
step link-down same "$rxe4" "$rxe4b" "$rxe6" "$rxel" --
ip link set d1 up
# which has lost its IPv6 address
step link-up same "$siw4" -- -d siw0

# --- devices come and go

step device-deleted rdma link delete rxe0
step device-not-found same "$siw4" --
step device-made rdma link add rxe0 type rxe netdev d0
step device-found same "$rxe4" "$rxe4b" "$rxe6" "$rxel" "$siw4" --

# --- network namespaces that share devices: those in software work in the initial one

two() {
	for ns in n1 n2; do
		ip netns add $ns && ip -n $ns link set lo up || return
	done
	ip link add v0 netns n1 type veth peer name v0 netns n2 &&
		ip -n n1 addr add 10.4.0.1/24 dev v0 &&
		ip -n n2 addr add 10.4.0.2/24 dev v0 &&
		ip -n n1 link set v0 up && ip -n n2 link set v0 up &&
		in_ns n1 rdma link add "${1}1" type "$1" netdev v0 &&
		in_ns n2 rdma link add "${1}2" type "$1" netdev v0
}
apart() { # nothing of another's, nor what does not work
	for ns in n1 n2; do
		[ -z "$(in_ns $ns kofi info -p verbs 2>/dev/null)" ] || return
		in_ns $ns kofi info -p verbs 2>&1 | grep -qxF "kofi: no interface fits" ||
			return
	done
	is "$rxe4" "$rxe4b" "$rxe6" "$rxel" "$siw4" --
}
exclusive_refused() { expect_fail rdma system set netns exclusive; }
gone() { ! rdma link | grep -q "/$1/"; }
delete() { ip netns del n1 && ip netns del n2 && retry gone "${1}1" && retry gone "${1}2"; }
for kind in rxe ${siw:+siw}; do
	step "$kind shared" two $kind
	step "$kind shared-apart" apart
	step "$kind exclusive-refused" exclusive_refused
	step "$kind namespaces-deleted" delete $kind
done

# --- a network device that is moved takes its RDMA device away, under traffic

connected() { [ "$(kofi stat ep | grep -c ' connected ')" = 2 ]; }
moved() { # KIND NETDEV ADDRESS
	kofi pingpong -p verbs -d "$1" -I 100000000 -S 64 -C workqueue >/tmp/server 2>&1 &
	server=$!
	retry listens 47592 || return
	kofi pingpong -p verbs -d "$1" -I 100000000 -S 64 -C workqueue "$3" >/tmp/client 2>&1 &
	client=$!
	retry connected || return
	ip netns add n3 && ip link set "$2" netns n3 || return
	wait $client
	client_rc=$?
	wait $server
	server_rc=$?
	cat /tmp/client /tmp/server
	[ $client_rc = 1 ] && [ $server_rc = 1 ] && retry nothing && retry gone "$1" &&
		ip netns del n3
}
step rxe-moved moved rxe0 d0 10.1.0.1
[ ! "$siw" ] || step siw-moved moved siw0 d1 10.2.0.1
step moved-gone same --

# --- each namespace for itself

retry_exclusive() { retry rdma system set netns exclusive; }
ip link del d2
[ "$siw" ] || ip link del d1
step exclusive retry_exclusive
step exclusive-devices devices
step exclusive-initial same "$rxe4" "$rxe6" "$rxel" "$siw4" "$siw6" "$siwl" --
stays() { # the devices in software cannot change, but for rxe since it has namespaces
	ip netns add n1 || return
	for dev in rxe0 ${siw:+siw0}; do
		[ "$VM_KERNEL" = newest ] ||
			expect_fail rdma dev set $dev netns n1 || return
	done
	[ -z "$(in_ns n1 rdma link)" ] &&
		[ -z "$(in_ns n1 kofi info -p verbs 2>/dev/null)" ]
}
step exclusive-stays stays
step exclusive-same same "$rxe4" "$rxe6" "$rxel" "$siw4" "$siw6" "$siwl" --
ip netns del n1

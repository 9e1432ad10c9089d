# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Connections over sock and over a device, of this and of another network namespace;
# the device is removed. What kofi monitor prints, and what the kernel's own library
# decodes by the spec.

mkdir -p /tmp/t
load kofi_sock kofi_verbs kofi_pingpong || exit

listens() { grep -q ':B9E8 .* 0A ' /proc/net/tcp /proc/net/tcp6; }
nothing() { ! kofi stat 2>/dev/null | grep -q .; }
listen() {	# NUMBER CMD...: so many sockets have joined a group, where CMD looks
	number=$1
	shift
	# shellcheck disable=SC2016 # it is a program of awk
	[ "$("$@" awk '$2 == 16 && $4 != "00000000"' /proc/net/netlink | wc -l)" = "$number" ]
}
has() { [ "$(grep -c "$1" "/tmp/t/$2")" = "$3" ]; }

retry_few() { vm_retries=50 retry "$@"; }

monitors=
monitor() {	# NAME CMD...: to /tmp/t/NAME, in the background
	name=$1
	shift
	"$@" >"/tmp/t/$name" 2>&1 &
	monitors="$monitors $!"
}

transfer() {	# ADDRESS [OPTION...]
	address=$1
	shift
	timeout 60 kofi pingpong "$@" -I 5 -S 64 >/dev/null &
	server=$!
	retry listens && timeout 60 kofi pingpong "$@" -I 5 -S 64 "$address" >/dev/null &&
		wait $server
}

# --- sock

monitor json kofi monitor --json
monitor text kofi monitor connection
check ynl-subscribe monitor ynl /usr/bin/python3 "$VM/events.py" "$VM_SOURCE" "$VM/kofi.yaml" 4
step ynl-subscribed retry has subscribed ynl 1
step listening retry listen 3 env
step sock transfer 127.0.0.1
step sock-connected retry has '"event": "connected".*"provider": "sock"' json 2
step sock-shutdown retry has '"event": "shutdown".*"provider": "sock"' json 2
step sock-text retry has '^[0-9:]* shutdown ep [0-9]* sock kofi_pingpong .*> 127.0.0.1:' text 2
ynl() {	# KOFI_EVENT_CONNECTED and KOFI_EVENT_SHUTDOWN of FI_CLASS_EP, as names or numbers
	cat /tmp/t/ynl
	grep -v subscribed /tmp/t/ynl | jq -s -e '
		([.[].msg.kind] | sort) as $kinds |
		($kinds == [0, 0, 2, 2] or $kinds == ["kofi-event-connected",
			"kofi-event-connected", "kofi-event-shutdown", "kofi-event-shutdown"]) and
		all(.[]; .name == "event" and (.msg.class == 3 or .msg.class == "class-ep") and
			.msg["prov-name"] == "sock" and .msg.owner == "kofi_pingpong")'
}
step ynl-received retry_few has . ynl 5
step ynl-events ynl

# --- a device, which is removed

step rxe-device rdma_link rxe rxe 10.2.0.1
step rxe transfer 10.2.0.1 -p verbs -d rxe
step rxe-connected retry has '"event": "connected".*"provider": "verbs"' json 2
step rxe-shutdown retry has '"event": "shutdown".*"provider": "verbs"' json 2
connected() { [ "$(kofi stat ep 2>/dev/null | grep -c connected)" = 2 ]; }
step rxe-nothing-left retry nothing
kofi pingpong -p verbs -d rxe -I 100000000 >/dev/null 2>&1 &
server=$!
step rxe-listens retry listens
kofi pingpong -p verbs -d rxe -I 100000000 10.2.0.1 >/dev/null 2>&1 &
client=$!
step rxe-transfers retry connected
step rxe-removed rdma link delete rxe
step rxe-path-lost retry has '"event": "path_lost".*"class": "domain".*"errno": 19' json 2
step rxe-lost retry grep '"event": "lost".*"provider": "verbs".*"errno": 19' /tmp/t/json
wait $client $server 2>/dev/null

# --- another namespace: its events are its own

ip netns add other
ip -n other link set lo up
monitor other ip netns exec other kofi monitor
step other-listening retry listen 1 ip netns exec other
lines=$(wc -l </tmp/t/json)
in_other() {
	ip netns exec other kofi pingpong -I 5 -S 64 >/dev/null &
	server=$!
	retry ip netns exec other grep -q ':B9E8 .* 0A ' /proc/net/tcp &&
		ip netns exec other kofi pingpong -I 5 -S 64 127.0.0.1 >/dev/null && wait $server
}
step other in_other
step other-events retry has ' shutdown ep ' other 2
step other-connected has ' connected ep ' other 2
unmoved() { [ "$(wc -l </tmp/t/json)" = "$lines" ]; }
step other-apart unmoved

documents() {
	jq -r --slurpfile schema "$VM/kofi.schema.json" --arg kind monitor -f "$VM/schema.jq" \
		/tmp/t/json >/tmp/t/bad && cat /tmp/t/bad && [ ! -s /tmp/t/bad ] && [ -s /tmp/t/json ]
}
step documents documents

# --- the module goes while a monitor runs

step nothing-left retry nothing
unload() {
	for m in kofi_pingpong kofi_rxm kofi_verbs kofi_sock kofi; do
		[ ! -e "/sys/module/$m" ] || rmmod "$m" || return
	done
}
step unload unload
# shellcheck disable=SC2086
kill $monitors 2>/dev/null
# shellcheck disable=SC2086
wait $monitors 2>/dev/null
ip netns del other

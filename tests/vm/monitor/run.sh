# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Connections over sock and over a device, of this and of another network namespace;
# the device is removed. What kofi monitor prints, and what the kernel's own library
# decodes by the spec. Then histograms of latency.

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

# --- latency of transmits: both sides send, longer messages than can be injected

kofi pingpong -I 100000000 -S 65536 >/dev/null 2>&1 &
server=$!
step latency-listens retry listens
kofi pingpong -I 100000000 -S 65536 127.0.0.1 >/dev/null 2>&1 &
client=$!
step latency-transfers retry connected
first() { kofi stat "$1" | awk -v class="$1" '$2 == class { print $1; exit }'; }
ep=$(first ep)
measured() {
	kofi stat "$ep" >/tmp/t/one
	grep -Eq '^        latency samples: [1-9]' /tmp/t/one &&
		grep -Eq '^        latency < [0-9]+ ns: [1-9]' /tmp/t/one
}
histograms() { kofi stat ep | grep -c 'latency samples' | grep -qx "$1"; }
step latency-off histograms 0
step latency-on kofi stat -l on "$ep"
step latency-measured retry measured
step latency-one histograms 1
latency_document() {
	kofi stat -j "$ep" >/tmp/t/document && jq -r --slurpfile schema "$VM/kofi.schema.json" \
		--arg kind stat -f "$VM/schema.jq" /tmp/t/document >/tmp/t/bad &&
		cat /tmp/t/bad && [ ! -s /tmp/t/bad ] && jq -e '.[0].latency |
		.samples > 0 and .samples == ([.buckets[].count] | add) and
		([.buckets[].below_ns] | . == (sort | unique))' /tmp/t/document
}
step latency-document latency_document
step latency-all kofi stat -l on ep
step latency-both histograms 2
refused() {	# TEXT CMD...
	text=$1
	shift
	! "$@" 2>/tmp/t/said && grep -qxF "kofi: $text" /tmp/t/said
}
step latency-user refused "cannot set what is measured: Operation not permitted" \
	setpriv --reuid 65534 --regid 65534 --clear-groups kofi stat -l on "$ep"
step latency-none refused "no object 77777 is open" kofi stat -l on 77777
step latency-domain refused "cannot set what is measured: the object transmits nothing" \
	kofi stat -l on "$(first domain)"
step latency-all-off kofi stat -l off ep
step latency-gone histograms 0
step latency-on-again kofi stat -l on ep	# it ends with the endpoints
lines=$(wc -l </tmp/t/json)
kill $client $server
wait $client $server 2>/dev/null
more() { [ "$(wc -l </tmp/t/json)" -ge $((lines + 2)) ]; }
step killed-events retry more

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

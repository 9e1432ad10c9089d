# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# What a user sees of kofi info, list and stat; what other users and other
# network namespaces see; and requests no tool would make.

mkdir -p /tmp/t
need_module dummy
ip link add eth0 type dummy
ip addr add 10.0.0.1/24 dev eth0
ip addr add fd00::1/64 dev eth0 nodad
ip link set eth0 up

fails_saying() {	# TEXT CMD...: exit status 1, TEXT and nothing else on stderr
	text=$1
	shift
	expect_status 1 "$@" >/tmp/t/out 2>/tmp/t/err || return
	[ "$(cat /tmp/t/err)" = "$text" ] && return
	echo "says: $(cat /tmp/t/err)"
	echo "not:  $text"
	return 1
}

excluded() {	# OPTION CMD...: exit status 1; without OPTION, kofi_sock fits
	without=$1
	shift
	expect_status 1 "$@" >/tmp/t/out 2>/tmp/t/err || return
	[ "$(head -n 1 /tmp/t/err)" = "kofi: no interface fits" ] &&
		grep -q "^kofi: without $without, these providers fit: .*sock" /tmp/t/err && return
	echo "says: $(cat /tmp/t/err)"
	return 1
}

misused() {	# TEXT CMD...: exit status 2, stderr has TEXT, stdout nothing
	text=$1
	shift
	expect_status 2 "$@" >/tmp/t/out 2>/tmp/t/err || return
	cat /tmp/t/err
	[ ! -s /tmp/t/out ] && grep -qF -e "$text" /tmp/t/err
}

json() {	# KIND CMD...: documents as the schema has them, each with all its members
	kind=$1
	shift
	"$@" >/tmp/t/json || return
	[ -s /tmp/t/json ] && [ -z "$(tail -c 1 /tmp/t/json)" ] || return
	jq -r --slurpfile schema "$VM/kofi.schema.json" --arg kind "$kind" -f "$VM/schema.jq" \
		/tmp/t/json >/tmp/t/bad || return
	[ ! -s /tmp/t/bad ] && return
	cat /tmp/t/json /tmp/t/bad
	return 1
}

fails_json() {	# TEXT CMD...: a failure with this sentence
	text=$1
	shift
	json failure expect_status 1 "$@" &&
		[ "kofi: $(jq -r .error /tmp/t/json)" = "$text" ] &&
		[ "$(jq .exit_code /tmp/t/json)" = 1 ]
}

count() { grep -c "$@"; }

unprivileged() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }

# --- nothing there yet

modprobe=$(cat /proc/sys/kernel/modprobe)
echo /bin/false >/proc/sys/kernel/modprobe	# as where it is not installed
not_loaded="kofi: the kernel module kofi is not loaded; modprobe kofi does it, or says why not"
step not-loaded fails_saying "$not_loaded" kofi info
step not-loaded-list fails_saying "$not_loaded" kofi list
step not-loaded-stat fails_saying "$not_loaded" kofi stat
step not-loaded-json fails_json "$not_loaded" kofi info --json
step not-loaded-watch fails_json "$not_loaded" kofi stat --json -w 1
step not-loaded-monitor fails_json "$not_loaded" kofi monitor -j
step not-loaded-nltest expect_status 1 kofi-nltest 1
echo "$modprobe" >/proc/sys/kernel/modprobe

# The machine has its modules elsewhere.
mkdir -p /tmp/t/bin
printf '#!/bin/sh\nexec %s -d /run/mod "$@"\n' "$(command -v modprobe)" >/tmp/t/bin/modprobe
chmod 755 /tmp/t/bin/modprobe
loads() {
	path=$PATH
	PATH=/tmp/t/bin:$PATH
	fails_saying "$not_loaded" unprivileged kofi stat &&
		fails_saying "kofi: no object is open" kofi stat && rmmod kofi
	rc=$?
	PATH=$path
	return $rc
}
step loads-module loads

load kofi provider=none
step no-provider fails_saying \
	"kofi: no provider is loaded; try: modprobe kofi_sock" kofi info
step no-provider-list fails_saying \
	"kofi: no provider is loaded; try: modprobe kofi_sock" kofi list
step no-provider-json json info expect_status 1 kofi info --json
rmmod kofi

# --- usage

step help expect_output "Usage: kofi" kofi help
versions() {	# of the tool, then of the module, too
	[ ! -e /sys/module/kofi ] && tool=$(kofi -V) && load kofi &&
		loaded=$(cat /sys/module/kofi/version) && [ "$tool" = "kofi $loaded" ] &&
		[ "$(kofi --version)" = "$tool
kofi.ko $loaded" ] && rmmod kofi
}
step versions versions
step help-info expect_output "--ep_type" kofi info --help
step help-stat expect_output "Usage: kofi stat" kofi stat -h
step no-command misused "Usage: kofi" kofi
step unknown-command misused 'no command is called "inof"' kofi inof
step unknown-option misused "--nope is no option" kofi info --nope
step missing-argument misused "-n is no option" kofi info -n
step extra-argument misused "tcp is no option" kofi info tcp
step bad-cap misused "FI_MAGIC is no capability" kofi info -c 'FI_MSG|FI_MAGIC'
step bad-mode misused "FI_MSG is no mode" kofi info -m FI_MSG
step bad-type misused "FI_EP_STREAM is no endpoint type" kofi info -t FI_EP_STREAM
step bad-format misused "FI_EP_MSG is no address format" kofi info -a FI_EP_MSG
step bad-port misused "65536 is no port number" kofi info -P 65536
step long-name misused "1 to 63 characters" \
	kofi info -d "$(printf '%0100d' 0)"
step filtered-list misused "--list goes with --json alone" kofi info -l -p sock
step bad-class misused "nonsense is no class or number" kofi stat nonsense
step no-interval misused "an interval is 1 to 86400 seconds" kofi stat -w 0
step no-count misused "0 is no number of intervals" kofi stat -w 1 -c 0
step count-alone misused "--count goes with --watch" kofi stat -c 1
step misused-json misused "FI_MAGIC is no capability" kofi info --json -c FI_MAGIC
step help-monitor expect_output "Classes: connection, path, violation" kofi monitor -h
step monitor-class misused "ep is no class" kofi monitor ep
step monitor-count misused "0 is no number of events" kofi monitor -c 0
step latency-word misused "--latency is on or off" kofi stat -l maybe ep
step latency-class misused "--latency goes with ep or a number alone" kofi stat -l on cq
step two-classes misused "one class or number at a time" kofi stat ep cq

# --- discovery; loads the provider by itself

load kofi
step list expect_output "sock:" kofi list
step info-list expect_output "    version: " kofi info -l
step list-json json list kofi list --json
step short expect_output "provider: sock" kofi info
step info-json json info kofi info --json
kofi info >/tmp/t/all
kofi info -v >/tmp/t/ours

. "$VM/compare.sh"

compare() {	# TYPE PROVIDER_OF_1.17 PROVIDER_OF_2.1
	kofi info -v -t "$1" -p sock >"/tmp/t/$1"
	fi_info -v -t "$1" -p "$2" >"/tmp/t/$1.theirs"
	fi_info@trixie -v -t "$1" -p "$3" >"/tmp/t/$1.newer"
	step "same-fields-$1" same_labels "/tmp/t/$1" "/tmp/t/$1.theirs"
	step "same-fields-newer-$1" same_labels "/tmp/t/$1" "/tmp/t/$1.newer"
	step "same-values-$1" differ eth0 "$1"
}
compare FI_EP_MSG tcp tcp
# the native one; 1.17 calls its provider net
native=tcp
if fi_info -l | grep -q '^net:'; then
	native=net
fi
compare FI_EP_RDM "$native" tcp
compare FI_EP_DGRAM udp udp

provider_keys() {	# without hints the kernel chooses keys; userspace leaves it to its caller
	grep -qxF '        mr_mode: [ FI_MR_PROV_KEY ]' /tmp/t/ours
}
step provider-keys provider_keys

flags_known() {	# no bit without a name, nothing unknown
	! grep -E '0x[0-9a-f]+[ ,]|Unknown|unknown' /tmp/t/ours
}
step names flags_known

provider() {	# itself alone, not those that are layered over it
	awk '/^provider:/ { its = $2 == "sock" } its' /tmp/t/all | cmp - /tmp/t/sock &&
	kofi info -p "$1" | cmp - /tmp/t/sock
}
kofi info -p sock >/tmp/t/sock
layered() { kofi info -p 'sock;ofi_rxm' | grep -q '^provider: sock;ofi_rxm$'; }
step provider-layered layered
step provider-tcp provider tcp
step provider-sock provider sock
step provider-none excluded -p kofi info -p nobody
step domain expect_output "domain: eth0" kofi info -d eth0
step domain-none excluded -d kofi info -d eth9
step fabric expect_output "fabric: 10.0.0.0/24" kofi info -f 10.0.0.0/24
step type expect_output "type: FI_EP_MSG" kofi info -t msg
step type-dgram expect_output "type: FI_EP_DGRAM" kofi info -t dgram
step type-none excluded -t kofi info -t FI_EP_DGRAM -c FI_RMA
step type-caps-none excluded -c kofi info -t FI_EP_DGRAM -c FI_RMA
step caps expect_output "provider: sock" kofi info -c 'FI_MSG|send'
step caps-none excluded -c kofi info -c FI_HMEM
only_6() {
	kofi info -v -a FI_SOCKADDR_IN6 >/tmp/t/six
	grep -q fi_sockaddr_in6:// /tmp/t/six && ! grep -q fi_sockaddr_in:// /tmp/t/six
}
step format-6 only_6
step node expect_output "dest_addr: fi_sockaddr_in://10.0.0.9:4711" \
	kofi info -v -n 10.0.0.9 -P 4711
step node-name expect_output "dest_addr: fi_sockaddr_in://10.0.0.1:4711" \
	kofi info -v -n "$VM_NAME" -P 4711
step node-6 expect_output "dest_addr: fi_sockaddr_in6://[fd00::9]:4711" \
	kofi info -v -n fd00::9 -P 4711
step source expect_output "src_addr: fi_sockaddr_in://10.0.0.1:4712" \
	kofi info -v -s 10.0.0.1 -P 4712
step source-and-node expect_output "src_addr: fi_sockaddr_in://10.0.0.1:0" \
	kofi info -v -s 10.0.0.1 -n 10.0.0.9 -P 4711
step node-json fails_json "kofi: $(kofi info -n no.such.name 2>&1 | sed 's/^kofi: //')" \
	kofi info -j -n no.such.name
no_name() { kofi info -n no.such.name 2>&1 | grep -q '^kofi: no.such.name: '; }
step no-such-name no_name
step substring expect_output "name: eth0" kofi info -i ETH0
step no-substring fails_saying "kofi: no interface fits" kofi info -i nonsense
to_full() { kofi info -v >/dev/full; }
step full expect_status 1 to_full

many() {	# a list of several buffers: none missing, none twice
	for i in $(seq 1 100); do
		echo "addr add 10.77.$i.1/24 dev eth0"
	done | ip -batch - || return
	kofi info -v -p sock -a FI_SOCKADDR_IN -d eth0 >/tmp/t/many
	[ "$(count '^fi_info:' /tmp/t/many)" = 101 ] &&
	[ "$(grep src_addr: /tmp/t/many | sort -u | wc -l)" = 101 ] &&
	json info kofi info --json
	rc=$?
	for i in $(seq 1 100); do
		echo "addr del 10.77.$i.1/24 dev eth0"
	done | ip -batch -
	return "$rc"
}
step many many

user_info() { unprivileged kofi info | cmp - /tmp/t/all; }
step unprivileged user_info

ip netns add other
ip -n other link set lo up
in_other() {	# the addresses of that namespace, and no others
	ip netns exec other kofi info >/tmp/t/other || return
	cat /tmp/t/other
	grep -q 'domain: lo' /tmp/t/other && ! grep -q eth0 /tmp/t/other
}
step netns-info in_other

# --- objects

step nothing-open fails_saying "kofi: no object is open" kofi stat
step nothing-open-json json stat expect_status 1 kofi stat --json
step no-object-json json stat expect_status 1 kofi stat --json 77
step no-object-watch fails_saying "kofi: no object 77 is open" kofi stat -w 1 77
step no-object-watch-json fails_json "kofi: no object 77 is open" kofi stat -w 1 -j 77
step nothing-open-watch expect_output "WHAT" kofi stat -w 1 -c 1
step no-ep fails_saying "kofi: no object of class ep is open" kofi stat ep
step no-object fails_saying "kofi: no object 77 is open" kofi stat 77

listens_in() { "$@" cat /proc/net/tcp /proc/net/tcp6 | grep -q ':B9E8 .* 0A '; }	# 47592

load kofi_pingpong
kofi pingpong -I 100000000 -S 64 >/tmp/t/server 2>&1 &
server=$!
step listening retry listens_in env
kofi pingpong -I 100000000 -S 64 127.0.0.1 >/tmp/t/client 2>&1 &
client=$!
# Two at work: what one netlink socket started ends with it.

connected() { [ "$(kofi stat ep 2>/dev/null | count connected)" = 2 ]; }
step pingpong retry connected
seen() { kofi stat && kofi stat | awk '{ print $2 }' | sort -u | tr '\n' ' ' | grep -q 'CLASS.*cq.*domain.*ep.*eq.*fabric'; }
step stat seen
step stat-json json stat kofi stat --json
domains() { [ "$(kofi stat domain | count '^ *[0-9]* domain')" = 2 ]; }
step stat-class domains
step stat-name expect_output " lo" kofi stat domain
owned() {	# all objects, by the module of the client
	kofi stat >/tmp/t/owned
	[ "$(count ' kofi_pingpong' /tmp/t/owned)" -ge 10 ] &&
		! grep '^ *[0-9][0-9]* ' /tmp/t/owned | grep -v ' kofi_pingpong'
}
step stat-owner owned

one() {
	id=$(kofi stat ep | awk '$2 == "ep" { print $1; exit }')
	kofi stat "$id" >/tmp/t/one || return
	cat /tmp/t/one
	[ "$(count "^ *$id ep " /tmp/t/one)" = 1 ] && json stat kofi stat -j "$id"
}
step stat-one one

moved() { kofi stat ep >/tmp/t/after && ! cmp -s /tmp/t/before /tmp/t/after; }
rising() {	# statistics move while the connection works
	kofi stat ep >/tmp/t/before
	retry moved
}
step stat-moves rising

rates() {	# a list for each interval, of what has changed
	kofi stat -w 1 -c 2 >/tmp/t/watch || return
	cat /tmp/t/watch
	[ "$(count WHAT /tmp/t/watch)" = 2 ] && [ "$(count '^$' /tmp/t/watch)" = 2 ] &&
		grep -Eq '^        tx_posts: [0-9]+ [+][0-9]+[.][0-9]/s$' /tmp/t/watch &&
		! grep -q ' [+-]0[.]0/s\| domain ' /tmp/t/watch
}
step stat-watch rates
exact_rates() {	# those of the second line are the differences of the two
	json watch kofi stat -j -w 1 -c 2 || return
	cat /tmp/t/json
	[ "$(wc -l </tmp/t/json)" = 2 ] && jq -s -e '.[0] as $a | .[1] as $b | [
		$b.objects[] | . as $o | ($a.objects[] | select(.id == $o.id)) as $p |
		.rates | to_entries[] |
		.value * $b.interval_ns / 1e9 - $o.stats[.key] + $p.stats[.key] | fabs < 0.5
	] | length > 10 and all' /tmp/t/json && jq -s -e '[.[].objects[].rates.tx_posts // 0 |
		select(. > 0)] | length == 4' /tmp/t/json
}
step stat-watch-json exact_rates

step other-sees-nothing fails_saying "kofi: no object is open" \
	ip netns exec other kofi stat
user_stat() { [ "$(unprivileged kofi stat ep | count connected)" = 2 ]; }
step unprivileged-stat user_stat

kill $client $server
wait $client $server 2>/dev/null
step ended retry fails_saying "kofi: no object is open" kofi stat

refused() {	# nobody listens
	json pingpong expect_status 1 kofi pingpong -j 127.0.0.1 && cat /tmp/t/json &&
		jq -e '.results == [] and .exit_code == 1 and (.error | startswith("pingpong failed at "))' \
			/tmp/t/json
}
step pingpong-refused refused
pingpong_json() {
	kofi pingpong -I 5 &
	server=$!
	retry listens_in env && json pingpong kofi pingpong -j -I 5 127.0.0.1 && wait $server &&
		jq -e '(.results | length) == 6 and (has("error") | not)' /tmp/t/json
}
step pingpong-json pingpong_json

volume() {
	load kofi_blk kofi_blkt && { [ -d /sys/kernel/config/kofi_blk ] ||
		mount -t configfs none /sys/kernel/config; } && truncate -s 1M /tmp/t/volume &&
		kofi blk export /tmp/t/volume --name vol0 --listen 127.0.0.1 --allow 127.0.0.1 &&
		kofi blk map 127.0.0.1 vol0 && json blk kofi blk list --json && cat /tmp/t/json &&
		jq -e '[.volumes, .ports, .maps | length] == [1, 1, 1]' /tmp/t/json &&
		kofi blk unmap vol0@127.0.0.1 && kofi blk unexport vol0 &&
		json blk expect_status 1 kofi blk list --json && rmmod kofi_blk kofi_blkt
}
step blk-json volume

# --- dynamic debug: a line for each step and refusal, with the number of the object

debug() {	# FLAGS MODULE...
	flags=$1
	shift
	for module in "$@"; do
		echo "module $module $flags" >/proc/dynamic_debug/control || return
	done
}
lines() { dmesg -c | sed -n 's/.*\] \(kofi[a-z_]*: .*\)/\1/p'; }
exchange() {	# OPTION...
	kofi pingpong -I 5 "$@" &
	server=$!
	retry listens_in env && kofi pingpong -I 5 "$@" 127.0.0.1 && wait $server
}
# The port is that of the pingpong which waits for its client.
taken() {
	kofi pingpong -I 5 &
	server=$!
	retry listens_in env &&
		expect_fail kofi blk export /tmp/t/volume --name vol0 --listen 127.0.0.1 --port 47592
	rc=$?
	kofi blk unexport vol0
	kill $server
	return $rc
}
debugged() {
	load kofi_blk kofi_blkt && debug +p kofi kofi_sock && dmesg -c >/dev/null && exchange && taken &&
		expect_fail kofi info -p sock --caps FI_HMEM &&
		expect_fail kofi blk map 127.0.0.1 vol0 && lines >/tmp/t/lines || return
	cat /tmp/t/lines
	for line in 'kofi: object [0-9]*: opened, FI_CLASS_PEP' \
		'kofi_sock: object [0-9]*: listen: 0' 'kofi_sock: object [0-9]*: request: 0' \
		'kofi_sock: object [0-9]*: requested: 0' \
		'kofi: object [0-9]*: KOFI_EVENT_CONNECTED: .*' \
		'kofi: object [0-9]*: KOFI_EVENT_SHUTDOWN: .*' \
		'kofi: object [0-9]*: closed' \
		'kofi: object [0-9]*: fi_listen: .* in use' \
		'kofi: [a-z0-9]*: caps beyond .*' \
		'kofi_sock: object [0-9]*: failed: 111' \
		'kofi: object [0-9]*: KOFI_EVENT_CONNECT_FAILED: .* refused'; do
		grep -qx "$line" /tmp/t/lines || { echo "no line: $line"; return 1; }
	done
}
silent() { debug -p kofi kofi_sock && exchange && [ -z "$(lines)" ]; }
rdm() { exchange -e rdm -p 'sock;ofi_rxm'; }
rdm_lines() {	# each step of a connection, with the address of the peer
	lines >>/tmp/t/lines
	for line in 'connect: 0' 'accept: 0' 'connected: 0' 'end: [0-9]*'; do
		grep -qx "kofi_rxm: object [0-9]*: 127[.]0[.]0[.]1:[0-9]*: $line" /tmp/t/lines ||
			return
	done
}
rdm_debugged() {
	load kofi_rxm && debug +p kofi_rxm && dmesg -c >/dev/null && rdm && : >/tmp/t/lines || return
	retry rdm_lines
	rc=$?
	cat /tmp/t/lines
	return $rc
}
rdm_silent() {
	debug -p kofi_rxm && dmesg -c >/dev/null && rdm && unload kofi_rxm && [ -z "$(lines)" ]
}
if [ -e /proc/dynamic_debug/control ]; then
	step debug debugged
	step debug-off silent
	step debug-rxm rdm_debugged
	step debug-rxm-off rdm_silent
	rmmod kofi_blk kofi_blkt
else
	skip debug "this kernel has no dynamic debug"
fi

traced() {
	trace=/sys/kernel/tracing
	[ -e $trace/trace ] || mount -t tracefs tracefs $trace || return
	echo 1 >$trace/events/kofi/kofi_info_excluded/enable &&
		expect_fail kofi info -p sock -c FI_HMEM || return
	echo 0 >$trace/events/kofi/kofi_info_excluded/enable
	cat $trace/trace
	grep -q "kofi_info_excluded: eth0 type=[0-9]* protocol=[0-9]* by caps" $trace/trace
}
step traced-hints traced

look() { while :; do kofi stat; kofi stat -j ep; kofi stat 3; done >/dev/null 2>&1; }
churn() {	# objects open and close while they are looked at
	look &
	looker=$!
	for i in 1 2 3 4; do
		kofi pingpong -I 20 -S 64 &
		server=$!
		retry listens_in env && kofi pingpong -I 20 -S 64 127.0.0.1 &&
			wait $server
		rc=$?
		[ $rc = 0 ] || break
	done
	kill $looker $server 2>/dev/null
	return "$rc"
}
step churn churn

ip netns exec other kofi pingpong -I 100000000 -S 64 >/tmp/t/server 2>&1 &
server=$!
step netns-listening retry listens_in ip netns exec other
ip netns exec other kofi pingpong -I 100000000 -S 64 127.0.0.1 >/tmp/t/client 2>&1 &
client=$!
other_connected() { [ "$(ip netns exec other kofi stat ep 2>/dev/null | count connected)" = 2 ]; }
step netns-stat retry other_connected
step netns-admin expect_output " netns " kofi stat ep
step netns-user fails_saying "kofi: no object is open" \
	unprivileged kofi stat

rounds=2000
[ "$VM_KERNEL" = stock ] || rounds=300
step bad-requests kofi-nltest $rounds
kill $client $server
wait $client $server 2>/dev/null
ip netns del other
step ended-too retry fails_saying "kofi: no object is open" kofi stat

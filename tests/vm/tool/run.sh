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

misused() {	# TEXT CMD...: exit status 2, stderr has TEXT, stdout nothing
	text=$1
	shift
	expect_status 2 "$@" >/tmp/t/out 2>/tmp/t/err || return
	cat /tmp/t/err
	[ ! -s /tmp/t/out ] && grep -qF -e "$text" /tmp/t/err
}

# Values shrink to v, members to m, until one value is left.
json() {
	"$@" >/tmp/t/json || return
	[ -z "$(tail -c 1 /tmp/t/json)" ] || return
	tr '\n' ' ' </tmp/t/json | awk '{
		gsub(/\\./, "x")
		gsub(/"[^"]*"/, "s")
		gsub(/ /, "")
		gsub(/true|false|null/, "v")
		gsub(/-?(0|[1-9][0-9]*)([.][0-9]+)?/, "v")
		do {
			n = length($0)
			gsub(/\[\]|\{\}/, "v")
			gsub(/s:[sv]/, "m")
			gsub(/\[[sv](,[sv])*\]/, "v")
			gsub(/\{m(,m)*\}/, "v")
		} while (length($0) != n)
		if ($0 != "v") {
			print "left: " $0
			exit 1
		}
	}'
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
step not-loaded-nltest expect_status 1 kofi-nltest 1
echo "$modprobe" >/proc/sys/kernel/modprobe

loads() { fails_saying "kofi: no object is open" unprivileged kofi stat && rmmod kofi; }
step loads-module loads

load kofi provider=none
step no-provider fails_saying \
	"kofi: no provider is loaded; try: modprobe kofi_sock" kofi info
step no-provider-list fails_saying \
	"kofi: no provider is loaded; try: modprobe kofi_sock" kofi list
step no-provider-json json expect_status 1 kofi info --json
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
step two-classes misused "one class or number at a time" kofi stat ep cq

# --- discovery; loads the provider by itself

load kofi
step list expect_output "sock:" kofi list
step info-list expect_output "    version: " kofi info -l
step list-json json kofi list --json
step short expect_output "provider: sock" kofi info
step info-json json kofi info --json
kofi info >/tmp/t/all
kofi info -v >/tmp/t/ours

labels() {	# of the first fi_info of a file: lines up to their colons
	awk '/^---/ { n++ } n == 1' "$1" | sed 's/: .*/:/'
}

as_fi_info() {	# OURS THEIRS: what fi_info of 1.17 prints, or of 2.1, which prints less
	labels "$1" >/tmp/t/ours.labels
	labels "$2" >/tmp/t/theirs.labels
	if grep -q ' progress:$' /tmp/t/theirs.labels; then
		sed -i -e '/ comp_order:$/d; / total_buffered_recv:$/d' \
			-e '/ control_progress:$/d; s/ data_progress:$/ progress:/' /tmp/t/ours.labels
	fi
	[ -s /tmp/t/theirs.labels ] && diff /tmp/t/ours.labels /tmp/t/theirs.labels
}

same_values() {	# OURS THEIRS: what describes the machine, of eth0's first IPv4 interface
	for i in "$@"; do
		awk '/^---/ { keep(r); r = "" } { r = r $0 "\n" } END { keep(r) }
		function keep(r) {
			if (!done && r ~ /name: eth0\n/ && r ~ /FI_SOCKADDR_IN\n/) {
				printf "%s", r
				done = 1
			}
		}' "$i" |
		grep -E '^    (addr_format|src_addr|src_addrlen|dest|handle|nic)|^        (type|protocol|protocol_version|threading|resource_mgmt|av_type|name|mr_key_size|cq_data_size|tx_ctx_cnt: 1|tclass|domain):' >"$i.values"
	done
	cat "$1.values"
	[ "$(wc -l <"$2.values")" -ge 19 ] && diff "$1.values" "$2.values"
}

compare() {	# TYPE PROVIDER_OF_1.17 PROVIDER_OF_2.1 WHOSE_VALUES
	kofi info -v -t "$1" -p sock >"/tmp/t/$1"
	fi_info -v -t "$1" -p "$2" >"/tmp/t/$1.theirs"
	fi_info@trixie -v -t "$1" -p "$3" >"/tmp/t/$1.newer"
	step "same-fields-$1" as_fi_info "/tmp/t/$1" "/tmp/t/$1.theirs"
	step "same-fields-newer-$1" as_fi_info "/tmp/t/$1" "/tmp/t/$1.newer"
	step "same-values-$1" same_values "/tmp/t/$1" "/tmp/t/$1.$4"
}
compare FI_EP_MSG tcp tcp theirs
# the native ones; 1.17 calls their provider net, and its version is 0
native=tcp
if fi_info -l | grep -q '^net:'; then
	native=net
fi
compare FI_EP_RDM "$native" tcp newer
compare FI_EP_DGRAM udp udp newer

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
step provider-none fails_saying "kofi: no interface fits" kofi info -p nobody
step domain expect_output "domain: eth0" kofi info -d eth0
step domain-none fails_saying "kofi: no interface fits" kofi info -d eth9
step fabric expect_output "fabric: 10.0.0.0/24" kofi info -f 10.0.0.0/24
step type expect_output "type: FI_EP_MSG" kofi info -t msg
step type-dgram expect_output "type: FI_EP_DGRAM" kofi info -t dgram
step type-none fails_saying "kofi: no interface fits" kofi info -t FI_EP_DGRAM -c FI_RMA
step caps expect_output "provider: sock" kofi info -c 'FI_MSG|send'
step caps-none fails_saying "kofi: no interface fits" kofi info -c FI_HMEM
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
	json kofi info --json
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
step nothing-open-json json expect_status 1 kofi stat --json
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
step stat-json json kofi stat --json
domains() { [ "$(kofi stat domain | count '^ *[0-9]* domain')" = 2 ]; }
step stat-class domains
step stat-name expect_output " lo" kofi stat domain

one() {
	id=$(kofi stat ep | awk '$2 == "ep" { print $1; exit }')
	kofi stat "$id" >/tmp/t/one || return
	cat /tmp/t/one
	[ "$(count "^ *$id ep " /tmp/t/one)" = 1 ] && json kofi stat -j "$id"
}
step stat-one one

moved() { kofi stat ep >/tmp/t/after && ! cmp -s /tmp/t/before /tmp/t/after; }
rising() {	# statistics move while the connection works
	kofi stat ep >/tmp/t/before
	retry moved
}
step stat-moves rising

step other-sees-nothing fails_saying "kofi: no object is open" \
	ip netns exec other kofi stat
user_stat() { [ "$(unprivileged kofi stat ep | count connected)" = 2 ]; }
step unprivileged-stat user_stat

kill $client $server
wait $client $server 2>/dev/null
step ended retry fails_saying "kofi: no object is open" kofi stat

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

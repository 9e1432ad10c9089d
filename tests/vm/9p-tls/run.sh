# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The server is in a network namespace; what the pages say of /etc/kofi is in $ETC.

SRV=/tmp/srv
AT=/tmp/at
ETC=/tmp/etc/kofi/9p-tls
DIOD="diod -f -n -c /dev/null -L stderr -r 0 -w 0 -e $SRV"

ns() { nsenter --net=/run/netns/server "$@"; }
# In the background, so that $! is the program itself
ns_exec() { exec nsenter --net=/run/netns/server "$@"; }
ns_ready() { ns busybox netstat -ltn | grep -q ":$1 "; }

setup() {
	ip netns add server && ip link add c0 type veth peer name s0 netns server &&
		ip link set lo up && ip addr add 10.0.0.2/24 dev c0 && ip link set c0 up &&
		ip -n server addr add 10.0.0.1/24 dev s0 && ip -n server link set s0 up &&
		ip -n server link set lo up && load kofi_sock kofi_9p && mkdir -p $SRV $AT $ETC
}

# The command of Documentation/9p.rst
new_key() {	# NAME FILE
	(umask 077 && echo "$1:$(head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n')" >"$2") &&
		[ "$(stat -c %a "$2")" = 600 ] && grep -Eqx "$1:[0-9a-f]{64}" "$2"
}

# An example with the name of the unit, and the credential where systemd would have it
configure() {	# NAME EXAMPLE KEY [SED...]
	credentials=/run/credentials/kofi-9p-tls@$1.service
	mkdir -p "$credentials" && cp "$3" "$credentials/psk" && name=$1 && example=$2 || return
	shift 3
	sed -e "s/NAME/$name/" "$@" "$VM/$example" >"$ETC/$name.conf"
}

keys() {
	new_key host1 $ETC/server.psk && cp $ETC/server.psk $ETC/client.psk &&
		new_key host1 $ETC/other.psk && sed s/^host1:/host2:/ $ETC/client.psk >$ETC/name.psk
}

server_up() {
	ns_exec stunnel $ETC/server.conf >>/tmp/tls.server 2>&1 &
	echo $! >/tmp/pid.server
	retry ns_ready 5641
}

client_up() {	# NAME PORT
	stunnel "$ETC/$1.conf" >"/tmp/tls.$1" 2>&1 &
	echo $! >"/tmp/pid.$1"
	retry listens "$2"
}

stop() { kill "$(cat "/tmp/pid.$1")"; }
gone() { ! kill -0 "$(cat "/tmp/pid.$1")" 2>/dev/null; }

serve() {
	# shellcheck disable=SC2086 # the words of a command
	ns_exec kofi-9pd -c 32 -l 32 $DIOD >/tmp/9pd.log 2>&1 &
	echo $! >/tmp/pid.9pd
	# for comparison, one without TLS
	# shellcheck disable=SC2086
	ns_exec kofi-9pd -a 10.0.0.1 --allow 10.0.0.2 $DIOD >/tmp/9pd.clear 2>&1 &
	echo $! >/tmp/pid.clear
	retry ns_ready 5640 && configure server tls-server.conf $ETC/server.psk && server_up &&
		configure client tls-client.conf $ETC/client.psk && client_up client 5640
}

mnt() {		# WHERE [OPTION [ADDRESS]]
	mkdir -p "$AT/$1" && timeout 20 mount -t 9p -o \
		"trans=kofi-sock,uname=root,aname=$SRV,msize=65536${2:+,$2}" "${3:-127.0.0.1}" "$AT/$1"
}

files() {
	head -c 3000000 /dev/urandom >/tmp/some
	pids=
	for m in a b c; do mnt $m || return; done
	for m in a b c; do
		(cp /tmp/some $AT/$m/$m && cmp /tmp/some $SRV/$m && umount $AT/$m && mnt $m &&
			cmp /tmp/some $AT/$m/$m) &
		pids="$pids $!"
	done
	for pid in $pids; do wait "$pid" || return; done
	for m in a b c; do rm $AT/$m/$m && umount $AT/$m || return; done
}

# Forward one connection, and keep its bytes.
record() {	# PORT TO
	mkfifo "/tmp/back.$1" || return
	busybox nc -l -p "$1" <"/tmp/back.$1" | tee "/tmp/sent.$1" |
		busybox nc 10.0.0.1 "$2" | tee "/tmp/received.$1" >"/tmp/back.$1" &
	retry listens "$1"
}

# Writes and reads of the pattern over one connection
patterns() {	# PORT
	yes kofi-pattern-in-clear-text | head -c 200000 >/tmp/pattern
	mnt r "port=$1,cache=none" && cp /tmp/pattern $AT/r/pattern &&
		cmp /tmp/pattern $AT/r/pattern && rm $AT/r/pattern && umount $AT/r
}
in_clear() { grep -q kofi-pattern "$1"; }
whole() { [ "$(stat -c %s "$1")" -gt 200000 ]; }

recorded() {
	record 5643 5640 && patterns 5643 && whole /tmp/sent.5643 && whole /tmp/received.5643 &&
		in_clear /tmp/sent.5643 && in_clear /tmp/received.5643 || return
	record 5642 5641 &&
		configure recorded tls-client.conf $ETC/client.psk \
			-e "s/:5640/:5650/" -e "s/10.0.0.1:5641/127.0.0.1:5642/" &&
		client_up recorded 5650 && patterns 5650 && whole /tmp/sent.5642 &&
		whole /tmp/received.5642 && expect_fail in_clear /tmp/sent.5642 &&
		expect_fail in_clear /tmp/received.5642 && stop recorded
}

server_says() { tail -n +"$said" /tmp/tls.server | grep -q "$1"; }
no_mount() {	# CONFIGURATION KEY TEXT
	said=$(($(wc -l </tmp/tls.server) + 1))
	configure "$1" tls-client.conf "$2" -e "s/:5640/:5651/" && client_up "$1" 5651 &&
		expect_fail mnt x port=5651 && stop "$1" && retry gone "$1" || return
	cat "/tmp/tls.$1"
	tail -n +"$said" /tmp/tls.server
	retry server_says "$3"
}
wrong_key() { no_mount other $ETC/other.psk "SSL_accept: .*error"; }
wrong_name() { no_mount name $ETC/name.psk "SSL_accept: .*error"; }
# stunnel takes what is no TLS for an error, and kofi-9pd gets nothing of it.
no_tls() { expect_fail mnt x port=5641 10.0.0.1; }

# A server that has another key of this name
impostor() {
	stop server && retry gone server && ns_closed &&
		configure false tls-server.conf $ETC/other.psk || return
	ns_exec stunnel $ETC/false.conf >/tmp/tls.false 2>&1 &
	false=$!
	retry ns_ready 5641 && expect_fail mnt x && kill $false && retry ns_closed &&
		grep "SSL_accept: .*error" /tmp/tls.false && server_up
}
ns_closed() { ! ns_ready 5641; }

# The file system returns errors when stunnel dies, and works when it is mounted again.
killed() {	# SIDE
	mnt a && echo one >$AT/a/file && kill -9 "$(cat "/tmp/pid.$1")" && retry gone "$1" &&
		expect_fail sh -c "echo two >$AT/a/file && sync $AT/a/file" && umount -f $AT/a || return
	case $1 in
	server) retry server_up ;;
	client) client_up client 5640 ;;
	esac && mnt a && [ "$(cat $AT/a/file)" = one ] && umount $AT/a
}

ends() {
	for side in client server 9pd clear; do stop $side && retry gone $side || return; done
	retry no_objects && unload kofi_9p && ip netns del server
}

step setup setup || exit
step keys keys
step serve serve || { cat /tmp/tls.* /tmp/9pd.*; exit; }
step files files
step recorded recorded
step wrong-key wrong_key
step wrong-name wrong_name
step no-tls no_tls
step impostor impostor
step server-killed killed server
step client-killed killed client
step end ends

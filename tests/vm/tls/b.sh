# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
. "$VM/common.sh"

ESRCH=-3
ETIMEDOUT=-110
EKEYREJECTED=-129

visible() { [ "$(cat $P/found)" -gt 0 ]; }
begun() { [ -e /tmp/ended ] || grep -q . "/proc/$DAEMON/task/$DAEMON/children"; }

begin() { load kofi_sock connect_timeout=$((8000 * VM_SLOW)) kofi_testtls; }

# Connect in the background, and wait until the daemon has begun.
start() {
	rm -f /tmp/ended
	{
		echo "10.0.0.1 1 0 $id" >$P/connect
		touch /tmp/ended
	} 2>/dev/null &
	JOB=$!
	CHILD=
	retry begun
	# the line has no end
	read -r CHILD _ <"/proc/$DAEMON/task/$DAEMON/children" || [ "$CHILD" ]
}

# The result of that
ended() {
	wait "$JOB"
	got=$(cat $P/result)
	echo "result $got, expected $1"
	[ "$got" = "$1" ]
}

begin || exit
key=$(get key)
add_psk "$NAME" "$key" >/tmp/id
add_psk "$OTHER" "$key" >/tmp/other
id=$(cat /tmp/id)
touch /tmp/tlshd.log

sync clear
step clear connects 0 10.0.0.1 0 0 0
step visible visible
sync clear-done

sync tls
step no-daemon connects $ESRCH 10.0.0.1 1 0 "$id"
start_daemon
step daemon retry connects 0 10.0.0.1 1 0 "$id"
forget
step tls connects 0 10.0.0.1 1 0 "$id" "$NAME"
step identity identity "$NAME"
step tls-again connects 0 10.0.0.1 1 0 "$id"
step hidden hidden
sync tls-done

sync other-identity
step other-identity connects any 10.0.0.1 1 0 "$(cat /tmp/other)"
sync other-identity-done

sync clear-client
step clear-client connects any 10.0.0.1 0 0 0
sync clear-client-done

# the type has no update: another key takes the place of the first one
sync wrong-key
step wrong-key connects any 10.0.0.1 1 0 "$(add_psk "$NAME" 0123456789abcdef0123456789abcdef)"
sync wrong-key-done

sync right-key
id=$(add_psk "$NAME" "$key")
step right-key connects 0 10.0.0.1 1 0 "$id"
step unexpected-identity connects $EKEYREJECTED 10.0.0.1 1 0 "$id" "$OTHER"
sync right-key-done

sync downgrade
step downgrade connects any 10.0.0.1 1 0 "$id"
sync downgrade-done

sync stopped
step stopped connects any 10.0.0.1 1 0 "$id"
sync stopped-done

# neither daemon answers; the child still has the socket when the module is removed
check start start
kill -STOP "$CHILD"
sync hung
check hung ended $ETIMEDOUT
step unload-client unload kofi_testtls kofi_sock
kill -CONT "$CHILD"
sync unloaded
step load begin
sync continued
step continued retry connects 0 10.0.0.1 1 0 "$id"
sync continued-done

# the daemon dies behind the handshake, before it reports the end
sync killed
stop_daemon
start_daemon 60
check start-killed retry start
kill -9 "$DAEMON" "$CHILD"
check killed ended $ETIMEDOUT
wait "$DAEMON" 2>/dev/null
start_daemon
step new-daemon retry connects 0 10.0.0.1 1 0 "$id"
sync killed-done

sync absent
step absent connects any 10.0.0.1 1 0 "$id"
sync absent-done
step hidden-again hidden
stop_daemon
cat /tmp/tlshd.log

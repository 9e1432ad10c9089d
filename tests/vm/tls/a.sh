# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
. "$VM/common.sh"

serve() { echo "$*" >$P/serve; }
pending() { kofi stat pep | grep -q 'pending: 1'; }

# Clients that the listener has dropped. A busy machine may drop them by the time limit.
refusals() { kofi stat pep | awk '/ (unauthenticated|timeouts):/ { n += $NF } END { print n + 0 }'; }
refused() { [ "$(refusals)" -gt "$1" ]; }

# STEP: the other machine has a client that must be refused
refuse() {
	before=$(refusals)
	sync "$1"
	sync "$1-done"
	step "refused-$1" retry refused "$before"
}

remove() { unload kofi_testtls kofi_sock; }

begin() { load kofi_sock handshake_timeout=$((3000 * VM_SLOW)) connect_timeout=$((4000 * VM_SLOW)) kofi_testtls; }

begin || exit
key=$(head -c 16 /dev/urandom | od -An -v -tx1 | tr -d ' \n')
put key "$key"
add_psk "$NAME" "$key" >/tmp/id
add_psk "$OTHER" "$key" >/tmp/other

serve 10.0.0.1 0 0 0
sync clear
sync clear-done

step serve serve 10.0.0.1 1 "$(ring)" 0 "$NAME"
start_daemon
# both roles in one machine, once the daemon listens
step daemon retry connects 0 10.0.0.1 1 0 "$(cat /tmp/id)"
forget
sync tls
sync tls-done
step hidden hidden
step identity identity "$NAME"

# one after the other: the counter must not grow for another client
refuse other-identity
refuse clear-client
refuse wrong-key
# here the client refuses, and the listener may count the end of the connection or not
sync right-key
sync right-key-done

step serve-clear serve 10.0.0.1 0 0 0
sync downgrade
sync downgrade-done
step serve-again serve 10.0.0.1 1 0 "$(cat /tmp/id)"

kill -STOP "$DAEMON"
sync stopped
sync stopped-done

# the server has accepted the connection, and its daemon does not answer
sync hung
step pending retry pending
step unload-server remove
sync unloaded
step load begin
step serve-loaded serve 10.0.0.1 1 0 "$(cat /tmp/id)"
kill -CONT "$DAEMON"
sync continued
sync continued-done

sync killed
sync killed-done

stop_daemon
sync absent
sync absent-done
step hidden-again hidden
serve ""
cat /tmp/tlshd.log

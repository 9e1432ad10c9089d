# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The target, and the server of kofi bw and kofi lat: the previous version, then this
# one, then the previous one again.

. "$VM/common.sh"

MODULE=kofi_blkt

serve() {	# PROVIDER VOLUME
	regular "$2" 8 && kofi blk export "/tmp/$2.img" --name "$2" --allow 10.0.0.0/24 \
		--listen 10.0.0.1 --provider "$1"
}
serves() { serve sock device && serve verbs file; }

measure() {	# NAME COMMAND OPTION...
	timeout 60 kofi bw >/tmp/server 2>&1 &
	server=$!
	retry listens 47593
	sync "$1"
	check "$1" wait $server
}

port_again() {
	for port in "$TARGET"/ports/*-*; do
		echo 0 >"$port/enable" && echo 1 >"$port/enable" || return
	done
}

# The tool of each version reads the configuration that the other one has saved.
save() { kofi blk save /tmp/blkt.conf && kofi blk clear --state /tmp/blkt.state; }
restore() { start && kofi blk restore /tmp/blkt.conf --state /tmp/blkt.state; }

# Without anything of kOFI in between
contents() {	# VERSION
	for volume in device file; do
		head -c 4194304 "/tmp/$volume.img" | sha256sum
	done >/tmp/sums
	get "$1-sums" | tr -d " \n" >/tmp/theirs && tr -d ' \n' </tmp/sums | diff - /tmp/theirs
}

# A list of identities is known to this version alone. A volume that has one is not open
# to everybody after the change.
secret() {
	regular secret 8 && kofi blk export /tmp/secret.img --name secret --listen 10.0.0.1 \
		--allow id:host1=kofi:host1 && kofi blk save /tmp/secret.conf
}
kept_secret() {
	expect_status 2 kofi blk restore /tmp/secret.conf 2>/tmp/err
	rc=$?
	cat /tmp/err
	[ $rc = 0 ] && grep -q '^kofi: .*"id:host1=kofi:host1" is no allow' /tmp/err && [ ! -e "$TARGET/volumes/secret" ]
}

# A client of the previous version has no digests.
demand() {	# WORD
	for port in "$TARGET"/ports/*-*; do echo "$1" >"$port/digest" || return; done
}

role() {	# VERSION
	next=$(other_than "$1")
	sync "$1 target"
	sync "$1 target: mapped"
	tools "$1 target:"
	sync "$1 target: listed"
	measures "$1 target:"
	step "$1 target: port again" port_again
	sync "$1 target: port again"
	if [ "$1" = this ]; then
		step "this target: secret" secret
		step "this target: demand" demand required
	fi
	sync "$1 target: refuses"
	sync "$1 target: refused"
	if [ "$1" = this ]; then
		step "this target: end of demand" demand optional
		step "this target: end of secret" kofi blk unexport secret
	fi
	sync "$1 target: loaded"
	step "$1 target: save" save
	choose "$next"
	step "$1 target: becomes $next" restore
	sync "$1 target: changed"
	sync "$1 target: over"
	step "$1 target: contents" contents "$1"
}

step prepare prepare || exit
step configfs configfs
step "make rxe" rdma link add rxe type rxe netdev eth0
choose previous
step "start previous" start || exit
step "serve" serves || exit
role previous
role this
step "secret after the change" kept_secret
step clear kofi blk clear
choose this

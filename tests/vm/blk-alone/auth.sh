# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Clients and targets that prove who they are, by keys of keyrings. Client and target are
# one machine, so each keyring has its own copy of a key.

new_key() {	# NAME: text, so that it can be searched for
	head -c 16 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"/tmp/key.$1"
}

add_key() {	# MODULE DESCRIPTION NAME [TYPE]: its number is in /tmp/id.MODULE.DESCRIPTION
	keyctl padd "${4:-logon}" "$2" "%:.$1" <"/tmp/key.$3" >"/tmp/id.$1.$2"
}

# Root possesses the keys below its user keyring, and can revoke and replace them.
possess() { keyctl link %:.kofi_blk @u && keyctl link %:.kofi_blkt @u; }
no_keyring() { ! grep "keyring *\.kofi_blk" /proc/keys; }
revoke_key() { keyctl revoke "$(cat "/tmp/id.$1.$2")"; }
unlink_key() { keyctl unlink "$(cat "/tmp/id.$1.$2")" "%:.$1"; }

# The port is disabled and enabled, so all clients connect again.
connect_again() {	# PROVIDER
	echo 0 >"$TARGET/ports/$1/enable" && retry state m connecting &&
		echo 1 >"$TARGET/ports/$1/enable"
}

logged_now() { dmesg | grep -q "$1"; }

# The key is nowhere but in the keyrings.
no_secret() {	# NAME
	! grep -rqsF "$(cat "/tmp/key.$1")" $TARGET $CLIENT /sys/module/kofi_blk \
		/sys/module/kofi_blkt && ! dmesg | grep -F "$(cat "/tmp/key.$1")"
}

# A right key on both sides, then what is wrong in one way
authenticated() {	# PROVIDER
	new_key "$1" && new_key other && possess && backing auth 8 &&
		add_key kofi_blk kofi:host1 "$1" && add_key kofi_blkt kofi:host1 "$1" &&
		add_key kofi_blk kofi:wrong other &&
		volume auth allow=id:host1=kofi:host1,id:host2=kofi:host2 || return
	refused "access denied" auth "$1" && target_refused "no authentication" || return
	dmesg -c >/dev/null
	map m auth "$1" identity=host1 key=kofi:host1 queues=2 && disk=$(device m) &&
		verify "$disk" --io_size=1m --iodepth=4 &&
		grep -q " identity=host1$" $TARGET/volumes/auth/clients &&
		logged_now "logged in to auth, .*, identity host1$" || return
	refused "access denied" auth "$1" identity=host1 key=kofi:wrong &&
		target_refused "the client does not prove its identity" || return
	refused "access denied" auth "$1" identity=host3 key=kofi:host1 &&
		target_refused "identity not in the volume's list" || return
	refused "access denied" auth "$1" identity=host2 key=kofi:wrong &&
		target_refused "no valid key for the identity" || return
	head -c 31 /tmp/key.other >/tmp/key.short && add_key kofi_blkt kofi:host2 short &&
		refused "access denied" auth "$1" identity=host2 key=kofi:wrong &&
		target_refused "the key of the identity has a wrong length" &&
		unlink_key kofi_blkt kofi:host2 || return
	refused "access denied" none "$1" identity=host1 key=kofi:host1 &&
		target_refused "unknown volume" || return
	# a list of addresses has no key, so the target cannot prove itself
	refused "access denied" vol0 "$1" identity=host1 key=kofi:host1 || return
	dmesg -c >/dev/null
	for words in key=kofi:host1 "identity=host1" "identity=host1 key=kofi:none"; do
		# shellcheck disable=SC2086 # one word or two
		expect_fail map refused auth "$1" $words && unmap refused || return
	done
	logged_now "key kofi:none for .* cannot be used" && no_secret "$1" || return
	revoked "$1" && fenced "$1" && unmap m && volume_gone auth &&
		unlink_key kofi_blk kofi:host1 && unlink_key kofi_blk kofi:wrong &&
		unlink_key kofi_blkt kofi:host1
}

# A key that is revoked or missing ends no connection, and makes no new one.
revoked() {	# PROVIDER
	dmesg -c >/dev/null
	revoke_key kofi_blkt kofi:host1 && direct /dev/zero "$disk" && connect_again "$1" &&
		retry target_refused "no valid key for the identity" && state m connecting &&
		unlink_key kofi_blkt kofi:host1 && add_key kofi_blkt kofi:host1 "$1" user &&
		retry state m live && direct /dev/zero "$disk" || return
	dmesg -c >/dev/null
	unlink_key kofi_blk kofi:host1 && connect_again "$1" &&
		retry logged_now "key kofi:host1 for .* cannot be used" &&
		state m connecting && add_key kofi_blk kofi:host1 "$1" && retry state m live &&
		direct /dev/zero "$disk"
}

# An identity that the list lacks is fenced, wherever it is. So is one that the list has with
# another key. A list with the same key changes nothing.
fenced() {
	list=$TARGET/volumes/auth/allow
	echo id:host2=kofi:host2 >$list && state m connecting &&
		[ "$(stat_of auth connections)" = 0 ] &&
		echo id:host1=kofi:host1 >$list && retry state m live || return
	dmesg -c >/dev/null
	echo id:host2=kofi:host2,id:host1=kofi:host1 >$list && direct /dev/zero "$disk" &&
		state m live && ! logged_now "connection lost" || return
	echo id:host1=kofi:new >$list && [ "$(stat_of auth connections)" = 0 ] &&
		retry state m connecting && retry target_refused "no valid key for the identity" &&
		add_key kofi_blkt kofi:new "$1" && retry state m live &&
		direct /dev/zero "$disk" && unlink_key kofi_blkt kofi:new &&
		echo id:host1=kofi:host1 >$list && retry state m live
}

# Exclusive mode compares identities, not names that hosts state.
exclusive_identity() {	# PROVIDER
	new_key a && new_key b && backing mine 8 || return
	for name in a b; do
		add_key kofi_blk kofi:$name $name && add_key kofi_blkt kofi:$name $name || return
	done
	volume mine access=exclusive allow=id:a=kofi:a,id:b=kofi:b &&
		map m mine "$1" host=word identity=a key=kofi:a &&
		refused "another host has it" mine "$1" host=word identity=b key=kofi:b &&
		map n mine "$1" host=another identity=a key=kofi:a && unmap n && unmap m &&
		retry gone_of mine && map m mine "$1" host=word identity=b key=kofi:b &&
		unmap m && volume_gone mine || return
	for name in a b; do
		unlink_key kofi_blk kofi:$name && unlink_key kofi_blkt kofi:$name || return
	done
}

# Words of a mapping are those that a list can have.
identity_words() {
	dir=$CLIENT/words
	mkdir "$dir" || return
	for attr in identity key; do
		for word in "" a=b a,b "a b" "$(printf 'a\303\244')" "$(printf 'a\177')" "$x63"0; do
			! echo "$word" 2>/dev/null >"$dir/$attr" || return
		done
		[ -z "$(cat "$dir/$attr")" ] && echo "$x63" >"$dir/$attr" &&
			[ "$(cat "$dir/$attr")" = "$x63" ] || return
	done
	rmdir "$dir"
}

# Lists have addresses or identities, and each identity once.
identity_lists() {
	dir=$TARGET/volumes/ids
	x63=$(printf %063d 0)
	mkdir "$dir" && echo "id:a=k,id:$x63=$x63" >"$dir/allow" &&
		[ "$(tr '\n' ' ' <"$dir/allow")" = "id:a=k id:$x63=$x63 " ] || return
	for list in id: id:a id:=k id:a= id:a=k=l id:a=k,id:a=l id:a=k,192.0.2.1 192.0.2.1,id:a=k \
		"id:a b=k" "id:0$x63=k" "id:a=0$x63" "id:a=k,all" "id:a=k,"; do
		! echo "$list" 2>/dev/null >"$dir/allow" || return
	done
	list=id:a1=k
	for n in $(seq 2 16); do list=$list,id:a$n=k; done
	echo "$list" >"$dir/allow" && [ "$(grep -c . "$dir/allow")" = 16 ] &&
		! echo "$list,id:a17=k" 2>/dev/null >"$dir/allow" &&
		[ "$(grep -c . "$dir/allow")" = 16 ] && rmdir "$dir" && identity_words
}

# The commands of Documentation/security.rst; each side has its own description of the key
auth_by_tool() {
	backing prove 8 && new_key other &&
		(umask 077 && head -c 32 /dev/urandom >/tmp/key.tool) &&
		[ "$(stat -c %a /tmp/key.tool)" = 600 ] && add_key kofi_blkt kofi:tool tool &&
		add_key kofi_blk kofi:mine tool && add_key kofi_blk kofi:wrong other || return
	says "" 0 kofi blk export "$(cat /tmp/prove.dev)" --name prove --listen 127.0.0.1 \
		--port 4425 --allow id:tool=kofi:tool || return
	keyctl show %:.kofi_blkt | grep " logon: kofi:tool$" || return
	says "for this machine" 1 kofi blk map 127.0.0.1 prove --port 4425 &&
		says "for this identity, or another key" 1 kofi blk map 127.0.0.1 \
			prove --port 4425 --identity tool --key kofi:wrong &&
		says "no valid key of this description" 1 kofi blk map 127.0.0.1 prove \
			--port 4425 --identity tool --key kofi:none &&
		says /dev/kofiblk 0 kofi blk map 127.0.0.1 prove --port 4425 --identity tool \
			--key kofi:mine &&
		says " identity=tool key=kofi:mine" 0 kofi blk list || return
	says "" 0 kofi blk save /tmp/auth.conf && grep -qx "allow = id:tool=kofi:tool" /tmp/auth.conf &&
		says "" 0 kofi blk allow prove id:other=kofi:other &&
		retry state prove@127.0.0.1 connecting &&
		says "" 0 kofi blk restore /tmp/auth.conf && retry state prove@127.0.0.1 live &&
		says "" 0 kofi blk unmap prove@127.0.0.1 && says "" 0 kofi blk unexport prove &&
		unlink_key kofi_blkt kofi:tool && unlink_key kofi_blk kofi:mine &&
		unlink_key kofi_blk kofi:wrong
}

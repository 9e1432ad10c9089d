# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# A target is configured by hand and by the tool, saved, ended and restored.

. "$VM/steps.sh"

export SOCK=127.0.0.1 VERBS=10.99.1.1
UUID=0f8a3e1c-5d2b-4c7e-9a61-3b7d1e5f2c90
V=$TARGET/volumes
P=$TARGET/ports

setup() {
	load kofi_sock kofi_verbs kofi_blk kofi_blkt && configfs || return
	ip link set lo up
	rdma_link rxe rxe $VERBS && backing vol0 8 && regular file 8 || return
	sed "s,/dev/loop0,$(cat /tmp/vol0.dev)," "$VM/v1.conf" | grep -v "^#" >/tmp/v1.conf
}

attributes() {	# DIRECTORY ATTRIBUTE=VALUE...
	mkdir "$1" || return
	for vm_w in "$@"; do
		case $vm_w in *=*) echo "${vm_w#*=}" >"$1/${vm_w%%=*}" || return ;; esac
	done
}

# The configuration of v1.conf, through configfs; a link can have any name.
by_hand() {
	volume vol0 uuid=$UUID &&
		attributes $V/file path=/tmp/file.img uuid=6e5b2c8a-1f7d-4a3e-8c90-d2b4f6a8e013 \
			readonly=1 direct=0 discard=0 access=exclusive connections=7 \
			allow=10.0.0.0/8,fd00::/64,fe80::1%1 enable=1 &&
		attributes $V/none uuid=6e5b2c8a-1f7d-4a3e-8c90-d2b4f6a8e014 &&
		attributes $P/sock addr=$SOCK enable=1 &&
		attributes $P/verbs addr=$VERBS port=4422 provider=verbs enable=1 &&
		mkdir $P/closed && ln -s $V/file $P/sock/volumes/another &&
		ln -s $V/vol0 $P/sock/volumes && ln -s $V/vol0 $P/verbs/volumes
}

# What is there is what FILE has, but for comments.
saved_as() { kofi blk save - | grep -v "^#" >/tmp/now && diff "$1" /tmp/now; }

saves() {
	: >/tmp/saved && chmod 644 /tmp/saved && says "" 0 kofi blk save /tmp/saved &&
		grep -v "^#" /tmp/saved >/tmp/now && diff /tmp/v1.conf /tmp/now &&
		[ "$(stat -c %a /tmp/saved)" = 600 ] && [ ! -e /tmp/saved.new ]
}

# What cannot be written leaves the file that there was.
not_saved() {
	cp /tmp/saved /tmp/before && mkdir -p /tmp/small &&
		mount -t tmpfs -o size=4k tmpfs /tmp/small && echo former >/tmp/small/saved || return
	says "cannot write /tmp/small/saved: No space left on device" 1 \
		kofi blk save /tmp/small/saved && grep -qx former /tmp/small/saved &&
		[ ! -e /tmp/small/saved.new ] && umount /tmp/small || return
	says "cannot write /tmp/none/saved: No such file or directory" 1 \
		kofi blk save /tmp/none/saved || return
	for name in "a b" .a; do
		mkdir "$V/$name" && says "volume \"$name\" cannot be saved" 1 \
			kofi blk save /tmp/saved && rmdir "$V/$name" || return
	done
	for who in "--bounding-set -sys_admin" "--reuid 65534 --regid 65534 --clear-groups"; do
		# shellcheck disable=SC2086 # options
		expect_fail setpriv $who kofi blk clear || return
	done
	cmp /tmp/before /tmp/saved
}

# Who uses a volume does not notice that what there is has been restored.
undisturbed() {
	map m vol0 sock uuid=$UUID && map n vol0 verbs port=4422 uuid=$UUID && dmesg -c >/dev/null || return
	for clear in "" --clear; do
		# shellcheck disable=SC2086 # an option or none
		says "" 0 kofi blk restore /tmp/saved $clear && [ ! -s /tmp/err ] || return
	done
	direct /dev/zero "$(device m)" && unmap m && unmap n && saved_as /tmp/v1.conf &&
		! dmesg | grep "connection lost"
}

cleared() {
	says "" 0 kofi blk clear && says "nothing is exported" 1 kofi blk list &&
		[ -z "$(ls $V $P | grep -v :)" ] && says "" 0 kofi blk clear
}

# User-mode Linux cannot load a module again.
reloaded() {
	[ "$VM_KERNEL" = uml ] || { unload kofi_blk kofi_blkt && load kofi_blk kofi_blkt; }
}

restored() {
	cleared && reloaded && says "" 0 kofi blk restore /tmp/saved && saved_as /tmp/v1.conf &&
		kofi blk save /tmp/again && cmp /tmp/saved /tmp/again &&
		map m vol0 verbs port=4422 && direct /dev/zero "$(device m)" && unmap m
}

# An attribute that is missing is that of a new directory.
presets() {
	mkdir $V/a $P/a && printf '%s\n' "version = 1" "[volume b]" "uuid = $(cat $V/a/uuid)" \
		"[port b]" >/tmp/b.conf && says "" 0 kofi blk restore /tmp/b.conf || return
	for name in a b; do
		for dir in $V $P; do
			(cd $dir/$name && grep -r . . | sort) || return
		done >/tmp/attributes.$name
	done
	diff /tmp/attributes.a /tmp/attributes.b && [ -s /tmp/attributes.a ] &&
		rmdir $V/a $V/b $P/a $P/b
}

# Without --clear, what is enabled and differs stays, and all else is restored.
differs() {
	sed "s,^path = /tmp/file.img,path = /tmp/other.img,; s/^connections = 256/connections = 9/
		s/^port = 4422/port = 4423/" /tmp/saved >/tmp/other && regular other 8 &&
		printf '%s\n' "[volume new]" "path = /tmp/new.img" "enable = 1" \
			"uuid = 6e5b2c8a-1f7d-4a3e-8c90-d2b4f6a8e015" >>/tmp/other &&
		regular new 8 || return
	map m vol0 sock && dmesg -c >/dev/null || return
	says "volume file: it is enabled with path /tmp/file.img, not /tmp/other.img" 1 \
		kofi blk restore /tmp/other &&
		grep -q "port verbs: it is enabled with port 4422, not 4423" /tmp/err &&
		grep -q "port sock: volume file is not linked, as it has failed" /tmp/err &&
		[ "$(cat $V/new/enable) $(cat $V/vol0/connections)" = "1 9" ] || return
	mkdir $V/more && attributes $P/more addr=$SOCK port=4424 enable=1 &&
		ln -s $V/more $P/sock/volumes && ln -s $V/new $P/sock/volumes/other || return
	says "" 0 kofi blk restore /tmp/other --clear && [ ! -s /tmp/err ] &&
		says "" 0 kofi blk save /tmp/again && grep -v "^#" /tmp/again >/tmp/now &&
		[ "$(grep -c "^\[" /tmp/now)" = 7 ] && ! grep more /tmp/now &&
		! grep "volume = new" /tmp/now && state m live && ! dmesg | grep "connection lost" ||
		return
	# and back
	sed "s/^enable = 1/enable = 0/" /tmp/saved >/tmp/off && unmap m &&
		says "volume vol0: it is enabled, and is not to be" 1 kofi blk restore /tmp/off &&
		says "" 0 kofi blk restore /tmp/off --clear && [ "$(cat $V/*/enable $P/*/enable |
			sort -u)" = 0 ] && says "" 0 kofi blk restore /tmp/saved --clear &&
		saved_as /tmp/v1.conf
}

# One volume and one port fail, and all others serve; then it is repeated.
fails_partly() {
	says "" 0 kofi blk clear || return
	mv /tmp/file.img /tmp/away.img && ip addr del $VERBS/24 dev dummy_rxe || return
	says "volume file: cannot enable /tmp/file.img: No such file or directory" 1 \
		kofi blk restore /tmp/saved && grep "port verbs: cannot enable $VERBS: " /tmp/err &&
		[ "$(grep -c . /tmp/err)" = 2 ] && map m vol0 sock &&
		direct /dev/zero "$(device m)" || return
	mv /tmp/away.img /tmp/file.img && ip addr add $VERBS/24 dev dummy_rxe || return
	retry kofi blk restore /tmp/saved && saved_as /tmp/v1.conf && state m live && unmap m
}

# A restart in order loses nothing, with the proof of it; without one all may be lost.
forget() {	# what the module knows, as if it had been loaded just now
	attributes $V/forget uuid=$UUID stable=none && rmdir $V/forget
}

restarted() {	# CMD...: with the target ended; a client is away that has not flushed
	direct /dev/zero "$disk" && echo 0 >$P/sock/enable && retry state m connecting &&
		says "" 0 kofi blk clear --state /tmp/state && forget &&
		[ "$(stat -c %a /tmp/state)" = 600 ] && "$@" && retry state m live
}

# The one that a damaged state has been taken from is enabled all the same.
damaged() {
	sed "/^$UUID/,\$s/^[0-9a-f]*$/damaged/" /tmp/state >/tmp/bad && mv /tmp/bad /tmp/state &&
		says "volume vol0: its state is refused: " 1 \
			kofi blk restore /tmp/saved --state /tmp/state && [ ! -e /tmp/state ]
}

state_used() {
	map m vol0 sock && disk=$(device m) && exec 9<>"$disk" || return
	restarted says "" 0 kofi blk restore /tmp/saved --state /tmp/state && flush "$disk" &&
		[ ! -e /tmp/state ] && saved_as /tmp/v1.conf || return
	restarted says "" 0 kofi blk restore /tmp/saved && expect_fail flush "$disk" || return
	exec 9<&- 9<>"$disk"
	restarted damaged && expect_fail flush "$disk" || return
	exec 9<&-
	# a state is a state to "export" too
	says "" 0 kofi blk clear --state /tmp/state && forget &&
		says "" 0 kofi blk export "$(cat /tmp/vol0.dev)" --name vol0 --uuid $UUID --allow all \
			--listen $SOCK --state /tmp/state 2>/dev/null && [ ! -e /tmp/state ] &&
		[ -s $V/vol0/stable ] && retry state m live && unmap m &&
		says "" 0 kofi blk unexport vol0
}

no_state() {
	says "cannot take /tmp: it is no regular file" 1 \
		kofi blk restore /tmp/saved --state /tmp &&
		saved_as /tmp/v1.conf && says "cannot write /tmp/none/state" 1 \
		kofi blk clear --state /tmp/none/state && says "nothing is exported" 1 kofi blk list
}

# Whatever is refused is refused before anything has been made.
refused_files() {
	: >/tmp/empty && says "there is no version" 2 kofi blk restore /tmp/empty &&
		sed "s/^version = 1/version = 2/" /tmp/saved >/tmp/newer &&
		says "version 2 is newer than this program" 2 kofi blk restore /tmp/newer --clear &&
		{ cat /tmp/saved && echo "wwn = 1"; } >/tmp/unknown &&
		says "/tmp/unknown:55: a port has no wwn" 2 kofi blk restore /tmp/unknown &&
		says "cannot read /tmp/none" 2 kofi blk restore /tmp/none &&
		says "nothing is exported" 1 kofi blk list &&
		says "there is no volume and no port to save" 1 kofi blk save /tmp/saved
}

# Also what a step that has failed has left
all_gone() {
	for map in "$CLIENT"/*; do
		[ ! -d "$map" ] || unmap "${map##*/}" force || return
	done
	kofi blk clear && modules_gone
}

step begin setup || exit
step by-hand by_hand || exit
step saves saves || exit
step not-saved not_saved
step undisturbed undisturbed
step restored restored
step presets presets
step differs differs
step fails-partly fails_partly
step cleared cleared
step refused-files refused_files
step version-1 says "" 0 kofi blk restore /tmp/v1.conf
step state-used state_used
step no-state no_state
step rmmod all_gone
step nothing-left retry no_objects

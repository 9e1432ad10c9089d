# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Both versions in both machines. The version in use has its tool in PATH as kofi;
# $other is the tool of the other version.

. "$VM/steps.sh"

PREVIOUS=/run/vm/previous

if [ -e $PREVIOUS/missing ]; then
	skip previous "$(cat $PREVIOUS/missing)"
	exit 0
fi

# --- the version in use

mods=lib/modules/$(uname -r)

# The previous version's modules, as init has those of this tree in /run/mod
prepare() {
	mkdir -p "/run/previous/$mods/kernel" "/run/previous/$mods/kofi" /run/previous/usr &&
		ln -s ../lib /run/previous/usr/lib &&
		ln "/run/mod/$mods"/kernel/*.ko "/run/previous/$mods/kernel" &&
		ln $PREVIOUS/ko/*.ko "/run/previous/$mods/kofi" &&
		depmod -b /run/previous "$(uname -r)" || return
	# shellcheck disable=SC2016 # for the script
	printf '#!/bin/sh\nexec modprobe -d /run/previous "$@"\n' >/run/previous/modprobe
	chmod 755 /run/previous/modprobe
}

# lib.sh's, for the version in use
vm_modprobe() { [ -z "${1:-}" ] || modprobe -d "$root" "$@"; }

path=$PATH
choose() {	# VERSION
	version=$1
	case $1 in
	previous)
		root=/run/previous other=/run/vm/bin/kofi PATH=$PREVIOUS/bin:$path
		echo /run/previous/modprobe >/proc/sys/kernel/modprobe ;;
	this)
		root=/run/mod other=$PREVIOUS/bin/kofi PATH=$path
		echo /run/vm/modprobe >/proc/sys/kernel/modprobe ;;
	esac
}

# The loaded modules are those of the version in use, not those of the other one.
source_of() { modinfo -F srcversion "$1/$mods/kofi/kofi.ko"; }
loaded() {
	[ "$(cat /sys/module/kofi/srcversion)" = "$(source_of "$root")" ] &&
		[ "$(source_of /run/previous)" != "$(source_of /run/mod)" ]
}
start() { unload_all && load kofi_sock kofi_verbs kofi_rxm kofi_perf "$MODULE" && loaded; }

other_than() { case $1 in previous) echo this ;; this) echo previous ;; esac; }

# --- the tool of the other version on the modules of the version in use

objects() { "$1" stat | awk '$1 ~ /^[0-9]+$/ { print $1, $2, $3, $4, $5 }' | sort -n; }
same() {	# COMMAND...: both tools print the same
	"$@" kofi >/tmp/kofi && "$@" "$other" >/tmp/other && [ -s /tmp/kofi ] &&
		diff /tmp/kofi /tmp/other
}
offers() { "$1" list && "$1" info -v; }
# The previous tool knows no attribute "digest", and no "stat" of a mapping.
configured() { "$1" blk list | sed "s/ digest=[a-z]*//; s/ stat=digests .*//"; }
documents() {	# OPTION...: one document and nothing else
	"$other" "$@" --json >/tmp/json 2>/tmp/err && cat /tmp/err && [ ! -s /tmp/err ] &&
		jq -es 'length == 1' /tmp/json >/dev/null
}
unknown() {	# TEXT OPTION...: the only sentence
	text=$1
	shift
	expect_status 1 timeout 20 "$other" "$@" 2>/tmp/err
	rc=$?
	cat /tmp/err
	[ $rc = 0 ] && [ "$(cat /tmp/err)" = "kofi: $text" ]
}
unknown_document() {	# TEXT OPTION...: of a document
	text=$1
	shift
	expect_status 1 timeout 20 "$other" "$@" --json >/tmp/json || return
	jq -es 'length == 1 and .[0].error == $text' --arg text "$text" /tmp/json
}
tools() {
	step "$1 offers" same offers
	step "$1 objects" same objects
	step "$1 volumes" same configured
	for words in stat list "info -v" "blk list"; do
		# shellcheck disable=SC2086 # words
		step "$1 $words document" documents $words
	done
	step "$1 check" "$other" check -p sock
	[ "$version" = previous ] || return
	for kind in unknown unknown_document; do
		step "$1 no events, $kind" $kind "cannot receive events: the kernel module is older than this program" \
			monitor -c 1
	done
	step "$1 no latency" unknown "cannot set what is measured: Operation not supported" stat -l on ep
}

# --- kofi bw and kofi lat; a is the server

measures() {	# TITLE
	while read -r name words <&4; do
		# shellcheck disable=SC2086 # words
		measure "$1 $name" $words
	done 4<<-'END'
		bw-msg bw -o write -p sock
		lat-msg lat -o read -p sock
		bw-rdm bw -o tagged -p sock -e rdm
		lat-rdm lat -o msg -p sock -e rdm
		bw-verbs bw -o write -p verbs
		lat-verbs lat -o read -p verbs
		bw-rxm bw -o tagged -p verbs;ofi_rxm -e rdm
		lat-rxm lat -o msg -p verbs;ofi_rxm -e rdm
	END
}

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# completion.bash KOFI FILE: what bash offers with the completion in FILE, a line for
# each finding. Help texts are those that KOFI prints; it stands for the lists of a
# machine that has providers and volumes.

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/kofi" <<END
#!/bin/sh
case \$*:\$1 in
list:*) printf 'sock:\n    version: 1.0\nsock;ofi_rxm:\n    version: 1.0\nverbs:\n' ;;
info:*) printf 'provider: sock\n    fabric: 10.0.0.0/24\n    domain: eth0\n    domain: eth0\n' ;;
"blk list":*)
	echo 'volume vol0 enable=1 path=/dev/vdb'
	echo 'port sock-10.0.0.1-4421 enable=1'
	echo 'map vol1@10.0.0.1 device=kofiblk0 state=live' ;;
*) exec $(printf %q "$(realpath "$1")") "\$@" ;;
esac
END
chmod +x "$work/kofi"
touch "$work/file1"

# shellcheck disable=SC1090
. "$2" || exit
complete -p kofi | grep -q -- '-F _kofi' || echo "no completion of kofi"

offers() {	# WORD...: what bash offers in place of the last one
	COMP_WORDS=(kofi "$@")
	COMP_CWORD=$#
	COMPREPLY=()
	_kofi "$work/kofi" "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}"
}

expect() {	# "WORDS" WORD...: exactly these
	local wanted=$1 got
	shift
	offers "$@"
	got=$(printf '%s\n' "${COMPREPLY[@]}" | sort -u | tr '\n' ' ')
	[ "${got% }" = "$(tr ' ' '\n' <<<"$wanted" | sort -u | tr '\n' ' ' | sed 's/ $//')" ] ||
		echo "kofi $*: offers \"${got% }\", not \"$wanted\""
}

has() {	# "WORDS" WORD...: at least these
	local word wanted=$1
	shift
	offers "$@"
	for word in $wanted; do
		printf '%s\n' "${COMPREPLY[@]}" | grep -qxF -e "$word" ||
			echo "kofi $*: does not offer $word but \"${COMPREPLY[*]}\""
	done
}

# every command of the help, and of each command every option and command
commands=$("$1" help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
has "$commands --version" ""
for command in $commands; do
	[ "$command" != help ] || continue
	help=$("$1" "$command" --help)
	below=$(sed '/^$/q' <<<"$help" | grep -o "kofi $command [a-z]*" | sed 's/.* //;/^$/d')
	if [ "$below" ]; then
		has "$below" "$command" ""
		offered=$(for name in $below; do
			offers "$command" "$name" -
			printf '%s\n' "${COMPREPLY[@]}"
		done)
	else
		offers "$command" -
		offered=$(printf '%s\n' "${COMPREPLY[@]}")
	fi
	for option in $(grep '^ *-' <<<"$help" | grep -oE '^ +-[^ ,=]*|--[a-z][a-z_-]*' ); do
		grep -qxF -e "$option" <<<"$offered" || echo "kofi $command: does not offer $option"
	done
done

expect "stat" st
expect "export" blk exp
expect "--io-timeout" blk map 10.0.0.1 vol0 --io
expect "--identity" blk map 10.0.0.1 vol0 --id
expect "off optional required" blk map 10.0.0.1 vol0 --digest ""
expect "--key" blk map 10.0.0.1 vol0 --k
expect "" blk map 10.0.0.1 vol0 --ro
expect "map" blk map
expect 'tcp sock sock\;ofi_rxm verbs' info -p ""
expect "verbs" info --provider = v
expect "tcp" blk map 10.0.0.1 vol0 -p t
expect "eth0" info -d ""
expect "eth0" pingpong -d ""
expect "10.0.0.0/24" info --fabric = ""
expect "msg rdm dgram" pingpong -e ""
expect "rdm" info -t r
expect "done read" pingpong -M ""
expect "0 1 auto" blk export /dev/vdb --discard ""
expect "domain" stat do
expect "connection path violation" monitor ""
expect "on off" stat -l ""
expect "vol0" blk unexport ""
expect "vol0" blk clients v
expect "vol1@10.0.0.1 /dev/kofiblk0" blk unmap ""
expect "$work/file1" blk export "$work/f"
expect "$work/file1" blk unexport vol0 --state "$work/f"
expect "" nonsense ""
exit 0

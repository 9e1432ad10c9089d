#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# blk-usage.sh KOFI: what kofi blk has to refuse before it makes anything, a line for
# each finding. No module is there: what is right ends with another status.

kofi=$1

says() {	# STATUS TEXT WORD...
	want=$1:
	text=$2
	shift 2
	# without modprobe
	said=$(PATH=/nonexistent "$kofi" blk "$@" 2>&1)
	case $?:$said in
	"$want"*"$text"*) ;;
	*) echo "kofi blk $*: $said; expected: $want $text" ;;
	esac
}

map() { says 2 "$1" map 192.0.2.1 vol0 "$2" "$3"; }
export_() { says 2 "$1" export /nonexistent --name vol0 "$2" "$3"; }
goes_on() { says 1 "is not there" "$@"; }

x24=xxxxxxxxxxxxxxxxxxxxxxxx
x64=$(printf %064d 0)
x256=$(printf %0256d 0)
uuid=0f8a3e1c-5d2b-4c7e-9a61-3b7d1e5f2c90
nets=10.0.0.1/0,10.0.0.2/32,fd00::/128,fe80::1%lo
nets=$nets,$nets,$nets,$nets

goes_on map 192.0.2.1 $x24 --queues 63 --polled 1 --name "$x64" --io-timeout 86400 \
	--path-timeout 86400 --fast-fail 0
goes_on map fe80::1%lo vol0 --queues 64 --polled 0 --host word -p tcp --port 65535
goes_on export /nonexistent --name $x24 --allow "$nets" --uuid $uuid --listen ::
goes_on export /nonexistent --name vol0 --allow all --listen 192.0.2.1 --port 1
goes_on export /nonexistent --name vol0 --allow none --discard auto
goes_on map 192.0.2.1 vol0 --identity host1 --key kofi:host1
for word in off optional required; do
	goes_on map 192.0.2.1 vol0 --digest $word
done
goes_on map 192.0.2.1 vol0 --identity "${x64%0}" --key "${x64%0}"
ids=id:a=k
for n in 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do ids=$ids,id:a$n=k; done
goes_on export /nonexistent --name vol0 --allow "$ids"
goes_on export /nonexistent --name vol0 --allow "id:${x64%0}=${x64%0}"

says 2 "map wants an address and a volume" map
says 2 "map wants an address and a volume" map 192.0.2.1
says 2 "list wants nothing else" list vol0
says 2 "export wants --name" export /nonexistent
says 2 "is no command" mount
says 2 "is no option" map 192.0.2.1 vol0 --nope
says 2 "map does not take that option" map 192.0.2.1 vol0 --ro
says 2 "go with --listen" export /nonexistent --name vol0 --port 1

for volume in "" ${x24}x "a b" a/b .a; do
	says 2 "is no volume" map 192.0.2.1 "$volume"
	says 2 "is no volume" export /nonexistent --name "$volume"
done
for name in "" "$x256" "a b" a/b ..; do
	map "is no name" --name "$name"
done
for path in "" "/$x256" "/a b"; do
	says 2 "a device's path" export "$path" --name vol0
done
for address in "" target 192.0.2 192.0.2.1/24 192.0.2.1%lo "fd00::1 " "$x64"; do
	says 2 "is no numeric address" map "$address" vol0
	export_ "is no numeric address" --listen "$address"
done
for list in "" "," "all," "none," "192.0.2.1," 192.0.2.1/33 fd00::/129 192.0.2.1/ 192.0.2.1/08 net \
	"192.0.2.1 " "$nets,fd00::1" id: id:a id:=k id:a= id:a=k=l id:a=k,192.0.2.1 192.0.2.1,id:a=k \
	id:a=k,all "id:a b=k" "id:$x64=k" "id:a=$x64" "$ids,id:b=k" id:a=k,; do
	export_ "--allow wants" --allow "$list"
done
for word in "" 2 yes; do
	export_ "--discard wants" --discard "$word"
done
says 2 "map does not take that option" map 192.0.2.1 vol0 --force
for bad in "" ${uuid}0 "${uuid%0}" "${uuid%0}g" 0f8a3e1c5d2b4c7e9a613b7d1e5f2c90; do
	export_ "is no UUID" --uuid "$bad"
done
for word in "" "$x64" "a b" a,b a=b "$(printf 'a\177')"; do
	says 2 "--identity and --key want" map 192.0.2.1 vol0 --identity "$word" --key k
	says 2 "--identity and --key want" map 192.0.2.1 vol0 --identity a --key "$word"
done
for word in "" on OFF "off "; do
	map "--digest wants off, optional or required" --digest "$word"
done
says 2 "export does not take that option" export /nonexistent --name vol0 --digest off
map "go together" --identity a
map "go together" --key k
says 2 "export does not take that option" export /nonexistent --name vol0 --key k
for port in "" 0 65536 0x10 010 http; do
	map "is no port" --port "$port"
done
for queues in "" 0 65 -1 0x4; do
	map "queues are 1 to 64" --queues "$queues"
done
map "queues are 1 to 64" --polled 64
says 2 "queues are 1 to 64" map 192.0.2.1 vol0 --queues 40 --polled 40
for timeout in "" 0 86401; do
	map "a time-out is" --io-timeout "$timeout"
	map "a time-out is" --path-timeout "$timeout"
done
map "a time-out is" --fast-fail 86401
says 2 "--state goes with --uuid" export /nonexistent --name vol0 --state /nonexistent
for word in "" "$x64" "a b"; do
	map "--host wants" --host "$word"
	map "is no provider" -p "$word"
done

# --- files of save and restore: one that is refused is refused before anything is made

file=$(mktemp) || exit
trap 'rm -f "$file"' EXIT

refuses() {	# TEXT LINE...
	text=$1
	shift
	printf '%s\n' "$@" >"$file"
	says 2 "$text" restore "$file"
}

takes() {
	printf '%s\n' "$@" >"$file"
	goes_on restore "$file" --clear
}

v="version = 1"
vol="[volume vol0]"
id="uuid = $uuid"
takes "$v"
takes "" "# comment" "  version=1  " "$vol" "	$id" "path=/dev/vdb" "enable = 1" "[port a]b]" "volume = vol0"
takes "$v" "$vol" "$id" "allow = 10.0.0.1,fe80::1%lo/64" "discard = auto" "connections = 65536"
takes "$v" "[port lan]" "addr = ::" "port = 1" "provider = verbs" "enable = 1"
refuses "there is no version" ""
refuses "the first line has to be the version" "$vol" "$v"
refuses "the first line has to be the version" "path = /x"
for version in 0 01 x "" 1.0 -1 99999999999999999999; do
	refuses "is no version" "version = $version"
done
refuses "version 2 is newer than this program, which reads up to 1" "version = 2"
refuses "belongs to no volume and no port" "$v" "$v"
refuses "neither KEY = VALUE" "$v" "volume vol0"
for head in "[volume]" "[volume vol0" "[]" "[" "[volume"; do
	refuses "neither [volume NAME] nor [port NAME]" "$v" "$head"
done
refuses "\"maps\" is neither volume nor port" "$v" "[maps m]"
for name in "" " vol0" ${x24}x a/b .. .a "a b"; do
	refuses "is no name of a volume" "$v" "[volume $name]"
	refuses "which is not there" "$v" "[port lan]" "volume = x$name"
done
refuses "is no name of a port" "$v" "[port $x256]"
refuses "a second volume vol0" "$v" "$vol" "$id" "$vol"
refuses "a second path" "$v" "$vol" "path = /a" "path = /b"
refuses "a second time volume vol0" "$v" "$vol" "$id" "[port lan]" "volume = vol0" "volume = vol0"
refuses "a volume has no addr" "$v" "$vol" "addr = ::"
refuses "a port has no path" "$v" "[port lan]" "path = /a"
refuses "a volume has no " "$v" "$vol" "= 1"
refuses "volume vol0 has no uuid" "$v" "$vol" "path = /a"
refuses "volume vol0 has no path" "$v" "$vol" "$id" "enable = 1"
refuses "port lan has no addr" "$v" "[port lan]" "enable = 1"
for bad in "path = /a b" "path =" "path = /$x256" "uuid = ${uuid}0" "readonly = yes" "direct =" \
	"discard = 2" "access = all" "connections = 0" "connections = 65537" "allow =" \
	"allow = all,none" "allow = ::1%lo%lo/1/2" "allow = $nets,::1" "enable = force"; do
	refuses "is no ${bad%% *} of a volume" "$v" "$vol" "$bad"
done
for bad in "addr = target" "addr =" "port = 0" "port = 65536" "provider = a b" "provider = $x64" \
	"enable = 2"; do
	refuses "is no ${bad%% *} of a port" "$v" "[port lan]" "$bad"
done
long=$(printf %070000d 0)
refuses "is no path of a volume" "$v" "$vol" "path = $long"
refuses "is no allow of a volume" "$v" "$vol" "allow = $long"
refuses "is no uuid of a volume" "$v" "$vol" "uuid = $long"
refuses "neither volume nor port" "$v" "[$long a]"
refuses "a volume has no 000" "$v" "$vol" "$long = 1"
printf 'version = 1\n\0\n' >"$file"
says 2 "it is no text" restore "$file"
printf 'version = 1\n\33[2J\n' >"$file"
says 2 "it is no text" restore "$file"
head -c 1048577 /dev/zero | tr '\0' '\n' >"$file"
says 2 "File too large" restore "$file"
says 2 "No such file" restore /nonexistent
says 2 "it is no regular file" restore /
says 2 "it is no regular file" restore /dev/zero
says 2 "wants one file at most" save a b
says 2 "wants one file at most" restore a b
says 2 "wants nothing else" clear a
says 2 "does not take that option" save --clear
says 2 "does not take that option" export /dev/vdb --clear
says 1 "is kofi_blkt loaded" save "$file"

goes_on restore tools/kofi/examples/blkt.conf

# All that a file can be cut to, and each of its bytes damaged: a sentence, and no crash
saved=tests/vm/blk-persist/v1.conf
[ -s $saved ] || echo "blk-usage.sh: no $saved here"
size=$(wc -c <$saved)
n=0
while [ $n -lt "$size" ]; do
	n=$((n + 7))
	for damage in "" '[' =; do
		{
			head -c $n $saved
			[ -z "$damage" ] || { echo "$damage" && tail -c +$((n + 2)) $saved; }
		} >"$file"
		said=$(PATH=/nonexistent "$kofi" blk restore "$file" 2>&1)
		case $?:$said in
		[12]:"kofi: "*) ;;
		*) echo "kofi blk restore of $saved, damaged at byte $n by '$damage': $said" ;;
		esac
	done
done

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
	"192.0.2.1 " "$nets,fd00::1"; do
	export_ "--allow wants" --allow "$list"
done
for word in "" 2 yes; do
	export_ "--discard wants" --discard "$word"
done
says 2 "map does not take that option" map 192.0.2.1 vol0 --force
for bad in "" ${uuid}0 "${uuid%0}" "${uuid%0}g" 0f8a3e1c5d2b4c7e9a613b7d1e5f2c90; do
	export_ "is no UUID" --uuid "$bad"
done
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

#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# usage.sh KOFI-9PD: what kofi-9pd refuses before it serves anybody, a line for each
# finding. What is right ends with another status, as no machine has the address.

server=$1

says() {	# STATUS TEXT WORD...
	want=$1:
	text=$2
	shift 2
	said=$("$server" "$@" 2>&1 </dev/null)
	case $?:$said in
	"$want"*"$text"*) ;;
	*) echo "kofi-9pd $*: $said; expected: $want $text" ;;
	esac
}

wrong() { text=$1; shift; says 2 "$text" -C a:1 "$@"; }
goes_on() { says 1 "listening: Cannot assign" -a 192.0.2.1 "$@"; }

i=0
while [ $i -lt 64 ]; do
	most="$most --allow 10.0.0.$i"
	i=$((i + 1))
done

goes_on --allow all /bin/true
goes_on --allow 10.0.0.0/8 -C /run/socket
goes_on --allow=10.0.0.0/0 -A fd00::/128 -A fe80::1%lo -A ::ffff:10.0.0.1 -p tcp -P 1 \
	-m 4096 -q 2 -c 1 -l 1 -M 1 -C '[::1]:1'
goes_on --allow 10.0.0.1/32 -P 65535 -m 1048576 -q 512 -c 1000 -l 1000 -M 16777216 -C a:1
# shellcheck disable=SC2086 # words
goes_on $most -C a:1
says 1 "warning: every client that reaches 192.0.2.1" -a 192.0.2.1 --allow all /bin/true
says 0 "--allow ADDRESS" -h

says 2 "either a command or -C" -P 1
says 2 "exclude each other" -C a:1 diod
says 2 "there is no option -z" -z
says 2 "there is no option --nope" --nope
says 2 "-P needs an argument" -P
says 2 "-A needs an argument" --allow
says 2 "-C needs HOST:PORT or a path, not 'x'" -C x

# a list, except on loopback
wrong "to listen at 192.0.2.1, --allow is needed" -a 192.0.2.1
wrong "to listen at 0.0.0.0, --allow is needed" -a 0.0.0.0
wrong "to listen at ::, --allow is needed" -a ::
wrong "to listen at localhost, --allow is needed" -a localhost
wrong "-p verbs needs -a" -p verbs
for list in "" "," 10.0.0.1, 10.0.0.1,10.0.0.2 192.0.2 192.0.2.1/33 fd00::/129 192.0.2.1/ \
	192.0.2.1/08 192.0.2.1/-1 192.0.2.1/8x host "192.0.2.1 " 192.0.2.1%lo \
	fe80::1%nothing ALL; do
	wrong "--allow needs ADDRESS, ADDRESS/BITS or all, not '$list'" --allow "$list"
done
# shellcheck disable=SC2086 # words
wrong "at most 64 addresses can be allowed" $most --allow 10.0.1.0

wrong "there is no provider 'shm'" -p shm
for bad in "" 0 65536 -1 0x10 " 1" +1 1k http 99999999999999999999; do
	wrong "-P needs a number from 1 to 65535, not '$bad'" -P "$bad"
done
for bad in 4095 1048577 4k; do
	wrong "-m needs a number from 4096 to 1048576, not '$bad'" -m $bad
done
for bad in 1 513; do
	wrong "-q needs a number from 2 to 512, not '$bad'" -q $bad
done
for bad in 0 1001; do
	wrong "-c needs a number from 1 to 1000, not '$bad'" -c $bad
	wrong "-l needs a number from 1 to 1000, not '$bad'" -l $bad
done
wrong "-l is more than -c" -c 4 -l 5
for bad in 0 16777217; do
	wrong "-M needs a number from 1 to 16777216, not '$bad'" -M $bad
done
# 72 MiB for each client, and twice as much, as an address has half of it
wrong "-M must be at least 144" -M 143
wrong "-M must be at least 72" -c 4 -l 4 -M 71
goes_on --allow all -M 144 -C a:1

# the port is open then
[ "$(id -u)" = 0 ] || says 1 "-u needs root" -P 47595 -u nobody -C a:1
[ "$(id -u)" != 0 ] || says 1 "user no-such-user: there is none" -P 47595 -u no-such-user -C a:1

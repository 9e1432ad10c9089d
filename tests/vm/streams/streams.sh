# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Every kind and size of messages, eight under way, over several links, with
# socket buffers of several sizes, in both directions at once, with senders that
# promise more, and with receives that are posted late. A run of kofi_bench.ko says
# what its longest time without progress was, in ticks of a millisecond, and what
# TCP has counted meanwhile. TCP's timers take 40 ms and more, those for closed
# windows 200 ms.
#
# Who reads this file says how long runs are, and how long a gap may be:
#
#   bytes, operations	of a run, about; whichever is less
#   ms		of another run after that one; none if it is empty
#   limit SIZE	sets $allowed, in ticks
#   timers	counters that may not move, with receives that are there: a byte has
#		waited for a timer

run=/sys/kernel/debug/kofi_bench/run
sizes="64 512 4096 16384 65536 262144 1048576"
ms=
timers=

# --- links: addresses of both sides, and the second one's namespace

# What TCP remembers of an address would make the next run start where that ended.
forget() { sysctl -q net.ipv4.tcp_no_metrics_save=1; }

link_lo() {
	ip link set lo mtu 65536 up
	link=
}
link_lo1500() {
	ip link set lo mtu 1500
	link=
}
link_veth() {	# MTU
	[ -e /run/netns/peer ] || veth_make || return
	ip link set v0 mtu "$1" && ip -n peer link set v1 mtu "$1" || return
	link="10.9.0.1 addr2=10.9.0.2 net=7"
	exec 7</run/netns/peer
}
link_veth1500() { link_veth 1500; }
link_veth9000() { link_veth 9000; }
veth_make() {
	ip netns add peer &&
		ip netns exec peer sysctl -q net.ipv4.tcp_no_metrics_save=1 &&
		ip link add v0 type veth peer name v1 netns peer &&
		ip addr add 10.9.0.1/24 dev v0 && ip link set v0 up &&
		ip -n peer addr add 10.9.0.2/24 dev v1 &&
		ip -n peer link set v1 up
}

# --- a run

# Computing takes no time in such a machine, and time passes only while it has
# nothing to do: whatever a run waits for is a timer. So it may not wait at all,
# but for receives that are posted late, which the bench does by a timer.
simulated_time() {
	limit() { allowed=3; }
	timers="TCPTimeouts TCPWinProbe TCPLossProbes"
	bytes=2000000
	operations=1000
}

count() {	# SIZE: how many of them
	n=$((bytes / ($1 + 1000)))
	[ $n -lt $operations ] || n=$operations
	[ $n -gt 40 ] || n=40
}

judge() {	# NS GAP NAME=NUMBER...: what is wrong with that goes to $wrong
	wrong=
	[ "$2" -le "$allowed" ] ||
		wrong="no progress for $2 ticks, $allowed allowed"
	shift 2
	for moved in "$@"; do
		case " $timers " in
		*" ${moved%=*} "*) wrong="$wrong${wrong:+; }a timer of TCP's: $moved" ;;
		esac
	done
}

once() {	# WORD...: a run; leaves what it says in $got
	# shellcheck disable=SC2086
	set -- "$@" $link $options
	echo "$*" >$run || { echo "failed: $*"; return 1; }
	IFS= read -r got <$run
	echo "$* = $got"
	# shellcheck disable=SC2086
	judge $got
	[ -z "$wrong" ] && return
	echo "$wrong: $*"
	return 1
}

measure() {	# KIND SIZE OPTION...
	kind=$1 size=$2
	shift 2
	options=$*
	count "$size"
	once kofi "$kind" 8 "$size" 20 $n || return
	[ "$ms" ] || return 0
	once kofi "$kind" 8 "$size" 20 $((n * ms * 1000 / (${got%% *} / 1000)))
}

# For machines with a clock of their own: beside a share of time that is not
# theirs, what the kernel needs for a message, as it is measured there.
limit_measured() {	# SIZE
	eval "allowed=\${allowed_$1:-}"
	[ -z "$allowed" ] || return 0
	for _ in 1 2 3; do
		echo "raw send 1 $1 10 50" >$run && read -r ns _ <$run || return
		allowed=$((30 + 2 * ns / 50 / 1000000))
		echo "$1 bytes: $allowed ticks are allowed"
		eval "allowed_$1=$allowed"
		[ "$allowed" -ge 150 ] || return 0
	done
	echo "this machine is too slow to tell"
	return 1
}

# --- all of them, over $link

variants() {	# OPTION...: each kind and size
	bad=0
	for size in $sizes; do
		limit "$size" || return
		for kind in send write read; do
			measure $kind "$size" "$@" || bad=$((bad + 1))
		done
	done
	[ $bad = 0 ]
}
lates() {	# OPTION...: of sends alone; a window may stay closed for long
	bad=0
	timers=
	for size in $sizes; do
		limit "$size" || return
		measure send "$size" "$@" || bad=$((bad + 1))
	done
	[ $bad = 0 ]
}

named() {	# NAME CMD...: what has run is in the log, also if it is good
	step "$@"
	cat /tmp/.step
}

# NAME: a variant, of those above
variant() {
	case $1 in
	plain) variants ;;
	twoway) variants twoway=1 ;;
	small) variants sndbuf=16384 rcvbuf=16384 ;;
	small-twoway) variants sndbuf=16384 rcvbuf=16384 twoway=1 ;;
	large) variants sndbuf=4194304 rcvbuf=4194304 ;;
	more) variants more=1 ;;
	late) lates late=1 ;;
	late-small) lates late=1 sndbuf=16384 rcvbuf=16384 ;;
	*) echo "there is no variant $1"; return 1 ;;
	esac
}
every="plain twoway small small-twoway large more late late-small"

over() {	# NAME VARIANT...: of the link that is set up
	name=$1
	shift
	for what in "$@"; do
		named "$name-$what" variant "$what"
	done
}

streams() {	# over all links
	load kofi_sock kofi_bench && forget || exit
	for where in lo lo1500 veth1500 veth9000; do
		link_$where || exit
		# shellcheck disable=SC2086
		over $where $every
	done
}

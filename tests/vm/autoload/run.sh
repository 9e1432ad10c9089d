# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# As after a boot: each part begins with no module of ours loaded. Peers are programs
# of userspace, which load none.

. "$VM/steps.sh"

ADDR=127.0.0.1
SRV=/tmp/srv
LOG=/tmp/modprobe.log

step configfs configfs

# The kernel's modprobe, and the tool's, keep a log.
mkdir -p /tmp/sbin
kernel_modprobe=$(cat /proc/sys/kernel/modprobe)
cat >/tmp/sbin/modprobe <<EOT
#!/bin/sh
echo "\$@" >>$LOG
exec $(command -v modprobe) -d /run/mod "\$@"
EOT
chmod 755 /tmp/sbin/modprobe
echo /tmp/sbin/modprobe >/proc/sys/kernel/modprobe
tool() { PATH=/tmp/sbin:$PATH kofi "$@"; }

loaded() {	# MODULE...: these, and none of our others
	for m; do echo "$m"; done | sort >/tmp/want
	ours | sort | diff /tmp/want -
}

fresh() { unload_all && loaded && : >$LOG; }

begun() {	# PORT COMMAND...: a server
	port=$1
	shift
	"$@" >/tmp/server.log 2>&1 &
	server=$!
	retry listens "$port"
}
ended() { kill "$server"; wait "$server"; }

# --- the tool

info() {
	fresh && tool info -p sock -d lo && loaded kofi kofi_sock
}
step info info

list() {
	fresh && tool list && [ -d /sys/module/kofi_sock ] && [ -d /sys/module/kofi_verbs ]
}
step list list

stat() {
	fresh && expect_status 1 tool stat && loaded kofi
}
step stat stat

pingpong() {
	fresh || return
	begun 47592 tool pingpong -p sock -I 10
	tool pingpong -p sock -I 10 $ADDR && wait "$server" && loaded kofi kofi_pingpong kofi_sock
}
check pingpong pingpong

# Both ends are in this machine.
perf() {	# bw | lat
	fresh || return
	begun 47593 tool "$1" -p sock
	tool "$1" -p sock -S 4096 -I 100 $ADDR && wait "$server" &&
		loaded kofi kofi_perf kofi_sock
}
check bw perf bw
check lat perf lat

check_all() {
	fresh && tool check -p sock -d lo && loaded kofi kofi_perf kofi_sock
}
check check check_all

monitor() {
	fresh || return
	PATH=/tmp/sbin:$PATH kofi monitor >/tmp/out &
	job=$!
	retry loaded kofi
	rc=$?
	kill $job
	wait $job
	return $rc
}
step monitor monitor

# --- the block device

# A target that answers some commands with an error
map() {
	fresh && begun 4421 kofi-blk-target tcp $ADDR 4421 4 0 1 || return
	tool blk map $ADDR vol0 >/tmp/device
	rc=$?
	[ $rc = 0 ] && loaded kofi kofi_blk kofi_sock && [ -b "$(cat /tmp/device)" ] &&
		tool blk unmap "$(cat /tmp/device)" || rc=1
	ended
	return $rc
}
check blk-map map

export_volume() {
	fresh && truncate -s 4M /tmp/volume &&
		tool blk export /tmp/volume --name vol0 --listen $ADDR --allow $ADDR &&
		listens 4421 && tool blk list && tool blk unexport vol0 &&
		loaded kofi kofi_blkt kofi_sock
}
check blk-export export_volume

restore() {
	fresh && tool blk export /tmp/volume --name vol0 --listen $ADDR --allow $ADDR &&
		tool blk save /tmp/saved && tool blk unexport vol0 && fresh &&
		tool blk restore /tmp/saved && listens 4421 && loaded kofi kofi_blkt kofi_sock &&
		tool blk unexport vol0
}
check blk-restore restore

# --- the file system

mounted() {
	fresh && mkdir -p $SRV /tmp/at && echo some >$SRV/some || return
	begun 5640 kofi-9pd -a $ADDR diod -f -n -c /dev/null -L stderr -r 0 -w 0 -e $SRV &&
		mount -t 9p -o "trans=kofi-sock,uname=root,aname=$SRV" $ADDR /tmp/at &&
		grep some /tmp/at/some && umount /tmp/at || return
	ended
	loaded kofi kofi_9p kofi_sock
}
check mount-9p mounted

# --- users without privileges load nothing, and discovery starts no modprobe for them

user() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
in_userns() { user busybox unshare -U -r "$@"; }

unprivileged() {	# HOW
	fresh || return
	for cmd in info list stat monitor; do
		"$1" kofi $cmd >/tmp/out 2>&1 && return 1
		cat /tmp/out
		grep "the kernel module kofi is not loaded" /tmp/out && loaded || return
	done
	fresh && load kofi || return
	for cmd in info "info -p sock" "info -p bogus" "info -t FI_EP_RDM" list stat; do
		# shellcheck disable=SC2086
		"$1" kofi $cmd >/tmp/out 2>&1 && return 1
		cat /tmp/out
	done
	# its own codes are those of discovery with providers
	"$1" kofi-nltest 20
	cat $LOG
	loaded kofi && [ ! -s $LOG ]
}
step user-loads-nothing unprivileged user
step user-namespace-loads-nothing unprivileged in_userns

sees() {	# what is loaded, others see, too
	load kofi_sock && user kofi info -p sock -d lo && user kofi list | grep sock
}
step user-sees-providers sees

# One request asks for a missing module once, however many buffers its answer takes.
once() {
	fresh && load kofi_sock || return
	i=1
	while [ $i -le 60 ]; do
		ip addr add 10.77.0.$i/32 dev lo || return
		i=$((i + 1))
	done
	# as where kofi_rxm is not installed; it is asked for beside others
	mv "/run/mod/lib/modules/$(uname -r)" /tmp/installed || return
	: >$LOG
	tool info -v -t FI_EP_RDM >/tmp/out
	rc=$?
	mv /tmp/installed "/run/mod/lib/modules/$(uname -r)"
	cat $LOG
	[ $rc = 0 ] && [ "$(grep -c '10.77.0.*:' /tmp/out)" -ge 60 ] &&
		[ "$(grep -c rxm $LOG)" = 1 ]
}
step asked-once once

echo "$kernel_modprobe" >/proc/sys/kernel/modprobe

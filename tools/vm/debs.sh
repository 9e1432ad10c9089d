# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# What a machine with the packages does as it has started. Results go to the second
# serial line, all else to the console.

exec >/dev/ttyS0 2>&1
stty raw -F /dev/ttyS1

step() {	# NAME COMMAND...
	echo "== $1"
	name=$1
	shift
	# a condition would have the shell ignore -e
	(set -e; "$@")
	case $? in
	0) echo "ok $name" ;;
	*) echo "not $name" ;;
	esac >/dev/ttyS1
}

mapped() {	# a device that is in use
	truncate -s 16M /root/volume
	kofi blk export /root/volume --name inuse --listen 127.0.0.1 --allow 127.0.0.1
	kofi blk map 127.0.0.1 inuse --name inuse >/root/device
	works
}

works() {
	head -c 8M /dev/urandom >/root/data
	dd if=/root/data of="$(cat /root/device)" bs=1M oflag=direct conv=fsync status=none
	cmp -n 8388608 /root/data /root/volume
}

# No headers, so nothing is built here, where it would take long.
upgraded() {
	version=$(cat /sys/module/kofi/version)
	rm -f /lib/modules/*/build
	dpkg -i /root/next/kofi-dkms_*.deb /root/next/kofi-dev_*.deb /root/next/kofi-tools_*.deb \
		>/root/said
	cat /root/said
	grep "version $version stay loaded and in use" /root/said
	grep "to use version $version.1, reboot" /root/said
	[ "$(cat /sys/module/kofi/version)" = "$version" ]
	# the new tool and the old modules
	kofi --version | grep -x "kofi $version.1"
	kofi --version | grep -x "kofi.ko $version"
	kofi stat
	works
}

downgraded() {
	dpkg -i /root/this/kofi-dkms_*.deb /root/this/kofi-dev_*.deb /root/this/kofi-tools_*.deb \
		>/root/said
	cat /root/said
	grep "stay loaded and in use" /root/said
	kofi --version | grep -x "kofi $(cat /sys/module/kofi/version)"
	works
}

removed() {
	dpkg -r kofi-dev kofi-dkms >/root/said
	cat /root/said
	grep "stay loaded and in use until" /root/said
	works
}

unloaded() {	# the files of the modules are gone
	kofi blk unmap inuse
	kofi blk unexport inuse
	rmmod kofi_blk kofi_blkt kofi_sock
	[ "$(cat /sys/module/kofi/refcnt)" = 0 ] || rmmod kofi_rxm kofi_verbs
	rmmod kofi
}

stopped() {	# ERROR VERDICT...: kofi check states the error, and asks about a rule
	error=$1
	shift
	nft add table inet checked
	nft add chain inet checked input '{ type filter hook input priority 0; }'
	# requests for connections; a verdict may send a segment, too
	nft "add rule inet checked input iif lo tcp flags & (syn | ack) == syn $*"
	kofi check -p sock -d lo >/root/said && return 1
	nft delete table inet checked
	cat /root/said
	grep "msg *127.0.0.1: FAILED: .*: $error; does a firewall rule or a policy route forbid it?" \
		/root/said
}

firewall() {
	kofi check -p sock -d lo
	stopped "Connection timed out" drop
	stopped "Connection refused" reject
	stopped "Connection refused" reject with tcp reset
	kofi check -p sock -d lo
	rmmod kofi_perf
}

installed=/lib/modules/$(uname -r)/updates/dkms

locked() {	# Secure Boot is on, and what the kernel makes of it
	mokutil --sb-state | tee /root/said
	grep -x "SecureBoot enabled" /root/said
	cat /sys/kernel/security/lockdown
	grep -F "[integrity]" /sys/kernel/security/lockdown
}

enrolled() {
	mokutil --test-key /var/lib/dkms/mok.pub >/root/said || :	# its status varies
	cat /root/said
	grep "is already enrolled" /root/said
	for file in "$installed"/kofi*.ko*; do
		module=${file##*/}
		module=${module%%.*}
		modprobe "$module"
		# out of tree; an E would mean that its signature is not accepted
		[ "$(cat "/sys/module/$module/taint")" = O ]
	done
	lsmod | grep '^kofi'
	kofi check
}

rejected() {
	mokutil --test-key /var/lib/dkms/mok.pub >/root/said || :
	cat /root/said
	grep "is not enrolled" /root/said
	modprobe kofi 2>/root/said && return 1
	cat /root/said
	grep "Key was rejected by service" /root/said
	for file in "$installed"/kofi*.ko*; do
		insmod "$file" 2>/root/said && return 1
		cat /root/said
		grep "Key was rejected by service" /root/said
	done
	dmesg | grep "Loading of module with unavailable key is rejected"
	! lsmod | grep '^kofi'
}

finish() {
	dmesg | grep -i kofi
	echo 'done' >/dev/ttyS1
	systemctl poweroff --force
}

if grep -w packages.unknown /proc/cmdline; then
	step locked locked
	step rejected rejected
	finish
	exit
fi
if grep -w packages.enrolled /proc/cmdline; then
	step locked locked
	step modules enrolled
	step smoke sh /root/tests/smoke
	finish
	exit
fi
step smoke sh /root/tests/smoke
if grep -w packages.smoke /proc/cmdline; then
	finish
	exit
fi
# the runner does not know that this is a machine of its own
step autopkgtest autopkgtest -B --test-name=smoke --ignore-restrictions=isolation-machine \
	/root/source/ -- null
step firewall firewall
step units sh /root/tests/units
step mapped mapped
step upgraded upgraded
step downgraded downgraded
step removed removed
step unloaded unloaded
finish

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# The script of the machine that loads what has been installed, and a client that
# was built with that: from archives of a system's /lib/modules/RELEASE/updates.

release=$(uname -r)
mods=/run/mod/lib/modules/$release

# modprobe, as the kernel calls it, too, knows what is in ARCHIVE and nothing else
# of ours.
installed() {	# ARCHIVE
	rm -rf "$mods/kofi" "$mods/updates"
	tar -C /run/mod -xf "$VM/$1" && depmod -b /run/mod "$release" || return
	case $(modprobe -d /run/mod --show-depends kofi_sock) in
	*/updates/*/kofi.ko*/updates/*/kofi_sock.ko*) ;;
	*) return 1 ;;
	esac
}

client() {
	dmesg -c >/dev/null
	load kofi_testclient || return
	dmesg | grep "kofi_testclient: [1-9][0-9]* found" && unload kofi_testclient
}

discovery() {	# the kernel's modprobe loads the providers
	load kofi && expect_output sock kofi info -d lo && [ -d /sys/module/kofi_verbs ]
}

for how in make dkms; do
	step "$how-installed" installed $how.tar
	step "$how-sock" load kofi_sock
	step "$how-client" client
	step "$how-unload" unload_all
	step "$how-discovery" discovery
	step "$how-unload-all" unload_all
done

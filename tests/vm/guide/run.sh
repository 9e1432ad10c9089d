# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# One machine: modules made of the code blocks of Documentation/, and their clients.

load kofi_sock kofi_rxm kofi_verbs || exit

ran() {	# SENTENCE MODULE: the module runs while it is loaded
	load "$2" || return
	dmesg | grep "$1"
}

written() {	# MODULE PARAMETER VALUE: the run that a write starts
	busybox echo "$3" >"/sys/module/$1/parameters/$2"
}

refused() {	# SENTENCE MODULE PARAMETER VALUE
	sentence=$1
	shift
	expect_fail written "$@" >/tmp/refused 2>&1
	rc=$?
	cat /tmp/refused
	[ $rc = 0 ] && grep -q "$sentence" /tmp/refused
}

step connected ran "cp: 1000 rounds" kofi_testconnected
step together ran "rbs: a block went out and came back" kofi_testtogether
step together-refused refused "not connected" kofi_testtogether refuse 1
step together-early written kofi_testtogether early 1
step many-peers ran "pp: 1000 rounds" kofi_testmany

# --- porting

load kofi_testporting || exit
porting() { written kofi_testporting "$@"; }

step porting-serve porting serve 127.0.0.1
step porting-kofi porting kofi 127.0.0.1
FI_PROVIDER=tcp step porting-user timeout 30 kofi-porting 127.0.0.1 7474
step porting-nobody refused "Connection refused" kofi_testporting kofi 127.0.0.2

for kind in rxe siw; do
	case $kind in
	rxe) address=192.168.77.1 ;;
	siw) address=192.168.78.1 ;;
	esac
	step "$kind" rdma_link $kind $kind $address
	step "$kind serve" porting serve $address
	step "$kind kofi" porting kofi $address
	step "$kind ib" porting ib $address
	step "$kind stop" porting serve ""
	# its queue pair is drained, although it has never been connected
	step "$kind ib-nobody" refused "Connection refused" kofi_testporting ib $address
done

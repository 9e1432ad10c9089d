# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# atomic.sh PARAM=VALUE...: a run of kofi_testatomic.ko, and what it says
dmesg -c >/dev/null
modprobe -d /run/mod kofi_testatomic "$@" && rmmod kofi_testatomic
rc=$?
dmesg | sed -n 's/.*kofi_testatomic: //p'
exit $rc

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# memory.sh serve|connect OPTION...: a run of kofi_rma.ko, and what it says
exec 4<>/dev/kofi_rma || exit
echo "$*" >&4
rc=$?
cat <&4
exit $rc

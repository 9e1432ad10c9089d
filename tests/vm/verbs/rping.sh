# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# rping.sh listen|connect=ADDRESS: a run of kofi_testrping.ko, and what it says
modprobe -d /run/mod kofi_testrping "$1" && rmmod kofi_testrping

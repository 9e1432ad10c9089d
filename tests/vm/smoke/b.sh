# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
step load load_ours
sync ready
colour=$(get colour)
step value [ "$colour" = blue ]
step ping-4 retry ping -c 1 -W 1 a
step ping-6 retry ping -c 1 -W 1 a6
step pull link down
step silence expect_fail ping -c 1 -W 1 a
step plug link up
step ping-again retry ping -c 1 -W 1 a
signal checked

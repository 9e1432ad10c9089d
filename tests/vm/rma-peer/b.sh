# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
. "$VM/common.sh"

it() { timeout 150 kofi-peer "$@"; }

runs

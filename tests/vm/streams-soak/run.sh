# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
. "$VM/streams.sh"
bytes=4000000
operations=2000
ms=2000
limit() { limit_measured "$1"; }

streams

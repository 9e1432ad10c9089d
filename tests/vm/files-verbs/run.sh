# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh

. "$VM/files.sh"

step rxe rdma_link rxe rxe $VERBS || exit
over verbs $VERBS

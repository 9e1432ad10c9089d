# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The machines' own means: names, both address families, the second line to
# the runner, a cable that is pulled; and that all our modules load.
step load load_ours
put colour blue
sync ready
wait_for checked

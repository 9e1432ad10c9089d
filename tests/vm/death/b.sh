# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The peer that dies; see a.sh.
LONG="-I 100000000 -S 4096"

load kofi_sock silence_timeout=3000 keepalive_idle=2000 keepalive_intvl=1 \
	keepalive_cnt=2 kofi_pingpong || exit

sync user
# shellcheck disable=SC2086
fi_pingpong -p tcp -e msg $LONG a >/tmp/out 2>&1 &
pid=$!
wait_for kill-user
kill -KILL $pid

sync kernel
# shellcheck disable=SC2086
kofi pingpong -T 0 $LONG a >/tmp/out 2>&1 &
pid=$!
wait_for kill-kernel
kill -KILL $pid
step aborted retry no_objects

# Both sides notice that the cable is out.
sync cable
# shellcheck disable=SC2086
step cable-pulled expect_status 1 timeout 60 kofi pingpong -T 0 $LONG a
step nothing-left retry no_objects
sync cable-over
sync cable-up

sync again
step works-again timeout 60 kofi pingpong -c a

sync power
# shellcheck disable=SC2086
kofi pingpong -T 0 $LONG a

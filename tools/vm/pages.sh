# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The root of a machine that does what tools/vm/pages.py asks for on the second serial line:
# "run" and a command, in this shell; "file" with a path and its content. Both are in base64. The
# answer is lines of output behind "| ", of standard error behind "! ", and "=" with the status.

exec </dev/ttyS1 3>/dev/ttyS1
stty raw -echo -F /dev/ttyS1
export HOME=/root
cd || exit
plain() { echo "$1" | base64 -d; }

echo "up" >&3
while read -r how what content; do
	what=$(plain "$what")
	udevadm settle
	: >/run/out >/run/err
	case $how in
	run) eval "$what" >/run/out 2>/run/err </dev/null 3>&- ;;
	file) plain "$content" >"$what" ;;
	esac
	status=$?
	sed 's/^/| /' /run/out >&3
	sed 's/^/! /' /run/err >&3
	echo "= $status" >&3
done

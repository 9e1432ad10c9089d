# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# What tests/docs/commands.py makes of a page calls these.

uuids() { sed -E 's/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/UUID/g'; }

page_run() {	# COMMAND OUTPUT, which is empty if the page shows none
	echo "# $1"
	eval "$1" >/tmp/page.out 2>/tmp/page.err </dev/null
	page_rc=$?
	cat /tmp/page.out /tmp/page.err
	[ $page_rc = 0 ] || return $page_rc
	[ "$2" ] || return 0
	printf '%s' "$2" | uuids >/tmp/page.want
	uuids </tmp/page.out | diff /tmp/page.want -
}

page_file() {	# PATH CONTENT
	printf '%s' "$2" >"$1"
}

# Also what a command that has failed has left
page_gone() {
	cd /tmp || return
	umount /mnt
	for page_map in /sys/kernel/config/kofi_blk/*; do
		[ ! -d "$page_map" ] || kofi blk unmap "${page_map##*/}" --force || return
	done
	kofi blk clear
}

# In this shell, as cd and umask are for the next block, too, which cannot work without this one
page_block() {
	check "$1" "$2" && return
	page_gone
	exit 1
}

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# The target. At last it looks at what the client has left in the volume.

. "$VM/common.sh"

export_it() {	# PROVIDER VOLUME
	case $2 in
	device) backing device "$MIB" ;;
	file) regular file "$MIB" ;;
	esac && kofi blk export "$(cat "/tmp/$2.dev")" --name "$2" --allow 10.0.0.0/24 \
		--listen 10.0.0.1 --provider "$1"
}

unused() { [ "$(stat_of "$1" connections)" = 0 ]; }

look() {	# VOLUME: nothing of ours is between it and its file system
	mkdir -p /tmp/mnt && mount -t ext4 -o ro,loop "/tmp/$1.img" /tmp/mnt &&
		same /tmp/mnt && sums /tmp/mnt && umount /tmp/mnt
}

over() {	# PROVIDER VOLUME
	say "a\$ kofi blk export $2 --name $2 --allow 10.0.0.0/24 --listen 10.0.0.1 -p $1"
	step "export $2" export_it "$1" "$2" || exit
	sync "$1 serving"
	sync "$1 over"
	show "$1 stat" cat "$TARGET/volumes/$2/stat"
	step "$1 unused" retry unused "$2"
	step "$1 unexport" kofi blk unexport "$2"
	show "$1 look" look "$2"
	rm "/tmp/$2.img"
}

begin kofi_blkt || exit
run
step unload unload kofi_blkt
step nothing-left retry no_objects

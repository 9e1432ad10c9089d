# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# One machine is the client and the target, or the file server. A reply of 9p takes
# milliseconds there, and the files a hundred thousands, so each provider has a
# machine of its own: files and files-verbs run at the same time.

. "$VM/steps.sh"

export SOCK=127.0.0.1 VERBS=10.99.1.1
FILES=10000
ALL=/tmp/all MNT=/tmp/mnt SRV=/tmp/srv

setup() {	# PROVIDER ADDRESS
	load "kofi_$1" kofi_blk kofi_blkt && configfs && backing disk 384 &&
		mkdir -p $MNT $SRV && volume disk && port "$1" "$2"
}

# Copied, and read back when nothing of them is cached. The sums are those of what
# was copied.
compared() {	# MOUNT-COMMAND...
	"$@" && cp -r $ALL/tree $ALL/sums $MNT && umount $MNT || return
	echo 3 >/proc/sys/vm/drop_caches
	"$@" && cmp $ALL/sums $MNT/sums && same $MNT && sums $MNT
}

# What the clients of a file server do, then each system call that has to do with files,
# which all but the clock takes part in. The latter ends with 3 or 4 if there was a call
# that this kernel has not, or for which the disk is too small.
loaded() {	# STRESSOR,...: those that are left out
	dbench -c /usr/share/dbench/client.txt -D $MNT -t 60 2 >/tmp/load 2>&1
	rc=$?
	tail -1 /tmp/load
	rm -rf $MNT/clients
	[ $rc = 0 ] || { tail -20 /tmp/load; return 1; }
	stress-ng --class filesystem,io --seq 1 --timeout 1 --temp-path $MNT --verify \
		--exclude "$1" --hdd-bytes 8m --iomix-bytes 8m --readahead-bytes 8m \
		--seek-size 8m --fallocate-bytes 8m --copy-file-bytes 128m --fiemap-bytes 8m \
		--sync-file-bytes 8m --chdir-dirs 64 --dentries 64 --dir-dirs 64 \
		--dirdeep-inodes 64 >/tmp/load 2>&1
	rc=$?
	cat /tmp/load
	case $rc in
	0 | 3 | 4) ;;
	*) return 1 ;;
	esac
}

# Of 9p: thousands of names, a request for each; and files that are used when their name
# is gone, which diod does not find: so with the kernel's own transport
NOT_DIODS=link,symlink,dirmany,copy-file,fallocate,fsize,hdd,revio,sync-file

# They have to do with the kernel's own file systems; and io-uring of stress-ng 0.15 asks
# for a file that is not there, on every file system
NOT_OURS=procfs,binderfs,bind-mount,io-uring

on_ext4() {	# PROVIDER
	map m disk "$1" queues=2 && mke2fs -q -t ext4 "$(device m)" &&
		compared mount -t ext4 "$(device m)" $MNT && loaded $NOT_OURS &&
		umount $MNT && unmap m
}

# kofi-9pd in front of diod, whose directory is compared, too
on_9p() {	# PROVIDER ADDRESS
	kofi-9pd -p "$(of_userspace "$1")" -a "$2" --allow "$2" \
		diod -f -n -c /dev/null -L stderr -r 0 -w 0 -e $SRV >/tmp/9pd.log 2>&1 &
	server=$!
	retry listens_over "$1" 5640 || return
	compared mount -t 9p -o "trans=kofi-$1,uname=root,aname=$SRV,msize=65536" "$2" $MNT &&
		same $SRV || return
	loaded $NOT_OURS,$NOT_DIODS && umount $MNT && kill $server || return
	wait $server && rm -r $SRV/tree $SRV/sums
}

disk_gone() { losetup -d "$(cat /tmp/disk.dev)" && rm /tmp/disk.img; }

told() {
	step "$@"
	cat /tmp/.step
}

over() {	# PROVIDER ADDRESS
	step setup setup "$@" && step tree tree $ALL $FILES || return
	told ext4 on_ext4 "$1"
	step target-gone target_gone && disk_gone	# the file server has its memory
	told 9p on_9p "$@"
	step nothing-left retry no_objects
	step rmmod modules_gone	# last: in User-mode Linux, KASAN does not forget modules
}

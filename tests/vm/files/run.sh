# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# One machine is the client and the target, or the file server.

. "$VM/steps.sh"

export SOCK=127.0.0.1 VERBS=10.99.1.1
FILES=10000
MNT=/tmp/mnt SRV=/tmp/srv

setup() {
	load kofi_sock kofi_verbs kofi_blk kofi_blkt && configfs && backing disk 192 || return
	ip link add dummy_rxe type dummy && ip link set dummy_rxe mtu 4200 &&
		ip addr add $VERBS/24 dev dummy_rxe && ip link set dummy_rxe up &&
		rdma link add rxe type rxe netdev dummy_rxe || return
	mkdir -p $MNT $SRV && volume disk && ports
}

# Written, compared, and once more when nothing of them is cached
compared() {	# MOUNT-COMMAND...
	"$@" && tree $MNT $FILES && same $MNT && umount $MNT || return
	echo 3 >/proc/sys/vm/drop_caches
	"$@" && same $MNT && sums $MNT
}

on_ext4() {	# PROVIDER
	map m disk "$1" queues=2 && mke2fs -q -t ext4 "$(device m)" &&
		compared mount -t ext4 "$(device m)" $MNT && umount $MNT && unmap m
}

# kofi-9pd in front of diod, whose directory is compared, too
ready() {
	case $1 in
	sock) listens 5640 ;;
	*) rdma resource show cm_id | grep -q "LISTEN.*:5640 " ;;
	esac
}

on_9p() {	# PROVIDER OF-USERSPACE ADDRESS
	kofi-9pd -p "$2" -a "$3" diod -f -n -c /dev/null -L stderr -r 0 -w 0 -e $SRV \
		>/tmp/9pd.log 2>&1 &
	server=$!
	retry ready "$1" || return
	compared mount -t 9p -o "trans=kofi-$1,uname=root,aname=$SRV,msize=65536" "$3" $MNT &&
		same $SRV && umount $MNT && kill $server || return
	wait $server && rm -r $SRV/tree $SRV/sums
}

told() {
	step "$@"
	cat /tmp/.step
}

step setup setup || exit
for provider in sock verbs; do told "$provider ext4" on_ext4 $provider; done
step target-gone target_gone
told "sock 9p" on_9p sock tcp $SOCK
told "verbs 9p" on_9p verbs verbs $VERBS
step nothing-left retry no_objects
step rmmod modules_gone	# last: in User-mode Linux, KASAN does not forget modules

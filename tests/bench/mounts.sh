# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Three servers of one folder, diod each, and their mounts:
#
#   kofi	our transport, with kofi-9pd before the server
#   relay	the kernel's own over TCP, with a relay before the server
#   tcp		the kernel's own, with none

srv=/tmp/srv
listening() {	# PORT COMMAND...
	port=$1
	shift
	"$@" >/tmp/9p.log 2>&1 &
	retry listens "$port" || { cat /tmp/9p.log; return 1; }
}

mount_9p() {	# WHERE TRANSPORT PORT
	mkdir -p "/tmp/9p/$1" && mount -t 9p -o \
		"trans=$2,port=$3,version=9p2000.L,uname=root,aname=$srv,msize=65536,cache=none" \
		127.0.0.1 "/tmp/9p/$1"
}

setup_9p() {
	mkdir -p $srv
	diod="diod -f -n -c /dev/null -L stderr -e $srv"
	# shellcheck disable=SC2086 # the words of a command
	{
		listening 5640 env FI_PROVIDER=tcp kofi-9pd -a 127.0.0.1 $diod -r 0 -w 0 &&
			listening 5641 kofi-bench-9p relay 5641 $diod -r 0 -w 0 &&
			listening 5642 $diod -l 127.0.0.1:5642
	} && mount_9p kofi kofi-sock 5640 && mount_9p relay tcp 5641 &&
		mount_9p tcp tcp 5642
}

bench_9p() {	# WHERE KIND WINDOW SIZE WARMUP COUNT
	where=$1
	shift
	kofi-bench-9p run "/tmp/9p/$where" "$@"
}

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Disks that are one device which does nothing, null_blk, at the far end of a
# network: kofi_blk over either provider, and NVMe over TCP and RDMA and RNBD as the
# kernel has them. Each has one queue of as many requests, and no scheduler.
#
#   sock verbs	kofi_blk; sockcrc is sock with digests
#   tcp		nvme-tcp; sqflow is the same with disable_sqflow, so that the answer
#		of a read is its data; tcpcrc is tcp with digests of headers and data
#   rdma	nvme-rdma
#   rnbd	RNBD, whose target has a buffer for each request

. "$VM/steps.sh"

export SOCK=127.0.0.1 VERBS=10.99.1.1
depth=64	# of a queue of kofi_blk
nvmet=/sys/kernel/config/nvmet
host=2f1d5f0e-4c7c-4a53-9e4e-6c7c0f0a7b11

null_disk() {
	far=/sys/kernel/config/nullb/far
	# requests end where they are submitted
	mkdir $far && echo 4096 >$far/size && echo 0 >$far/irqmode &&
		echo 1 >$far/power && echo none >/sys/block/far/queue/scheduler &&
		echo /dev/far >/tmp/far.dev
}

nvme_target() {		# NAME TRANSPORT ADDRESS PORT
	subsystem=$nvmet/subsystems/$1
	mkdir "$subsystem" "$subsystem/namespaces/1" &&
		echo 1 >"$subsystem/attr_allow_any_host" &&
		cat /tmp/far.dev >"$subsystem/namespaces/1/device_path" &&
		echo 1 >"$subsystem/namespaces/1/enable" || return
	at=$nvmet/ports/$4
	mkdir "$at" && echo ipv4 >"$at/addr_adrfam" && echo "$2" >"$at/addr_trtype" &&
		echo "$3" >"$at/addr_traddr" && echo "$4" >"$at/addr_trsvcid" &&
		ln -s "$subsystem" "$at/subsystems/$1"
}

nvme_disk() {		# NAME TRANSPORT ADDRESS PORT [OPTION]
	nvme_target "$@" || return
	echo "transport=$2,traddr=$3,trsvcid=$4,nqn=$1,hostnqn=bench,hostid=$host,nr_io_queues=1,queue_size=$depth${5:+,$5}" \
		>/dev/nvme-fabrics || return
	name=$(grep -lx "$1" /sys/class/nvme/*/subsysnqn) && name=${name%/*} &&
		retry test -b "/dev/${name##*/}n1" && disk "$1" "/dev/${name##*/}n1"
}

kofi_disk() {		# NAME PROVIDER [ATTRIBUTE=VALUE...]
	name=$1
	provider=$2
	shift 2
	map "$name" far "$provider" queues=1 uuid="$(uuid_of far)" \
		"$@" && disk "$name" "$(device "$name")"
}

rnbd_disk() {
	load rtrs_server sess_queue_depth=$depth rnbd_server rnbd_client || return
	echo "sessname=bench path=ip:$VERBS device_path=$(cat /tmp/far.dev)" \
		>/sys/class/rnbd-client/ctl/map_device &&
		retry test -b /dev/rnbd0 && disk rnbd /dev/rnbd0
}

disk() {		# NAME DEVICE
	echo "$2" >"/tmp/disk.$1" && echo none >"/sys/block/${2#/dev/}/queue/scheduler" &&
		[ "$(ls "/sys/block/${2#/dev/}/mq")" = 0 ]
}

wanted() { grep -q "^disk $1 " "$VM/plan"; }

setup_disks() {
	configfs && load kofi_blk kofi_blkt || return
	# one path is no reason to go through a second block device; what is built in has none
	if [ -e /sys/module/nvme_core/initstate ]; then
		rmmod nvmet_rdma nvmet_tcp nvmet nvme_rdma nvme_tcp nvme_fabrics nvme_core
		load nvme_core multipath=N nvme_tcp nvmet_tcp nvme_rdma nvmet_rdma || return
	fi
	null_disk && volume far || return
	port sock $SOCK || return
	if wanted sock; then kofi_disk sock sock || return; fi
	if wanted sockcrc; then kofi_disk sockcrc sock digest=required || return; fi
	if wanted verbs; then port verbs $VERBS && kofi_disk verbs verbs || return; fi
	if wanted tcp; then nvme_disk tcp tcp $SOCK 4420 || return; fi
	if wanted sqflow; then nvme_disk sqflow tcp $SOCK 4423 disable_sqflow || return; fi
	if wanted tcpcrc; then
		nvme_disk tcpcrc tcp $SOCK 4425 hdr_digest,data_digest || return
	fi
	if wanted rdma; then nvme_disk rdma rdma $VERBS 4424 || return; fi
	if wanted rnbd; then rnbd_disk || return; fi
}

bench_disk() {		# WHERE KIND WINDOW SIZE COUNT
	fio --name=disk --filename="$(cat "/tmp/disk.$1")" --rw="$2" --iodepth="$3" --bs="$4" \
		--number_ios="$5" --ioengine=libaio --direct=1 --thread --norandommap \
		--randrepeat=1 --gtod_reduce=1 --output-format=json >/tmp/fio || {
			cat /tmp/fio >&2
			return 1
		}
	awk -F'[:,]' '/"runtime"/ { ms += $2 } /"total_ios"/ { n += $2 }
		END { printf "%.0f %d\n", ms * 1000000, n; exit n != count }' count="$5" /tmp/fio
}

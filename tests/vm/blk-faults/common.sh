# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Machine a is the target, b the client. Each does what the other one's script asks
# for, as it may be switched off and come back in the middle: orders are numbered,
# with how many times both have been switched on.

. "$VM/steps.sh"

export SOCK=10.0.0.1 VERBS=10.0.0.1 DM_DISABLE_UDEV=1
UUIDS=5a1e0c7e-0000-4000-8000-00000000000
: "${ROUNDS:=1}"

orders() {	# who is switched on for the Nth and Mth time
	order_a=$1 order_b=$2 order=0
}

# The other machine runs a command, and says whether it was good.
ask_for() {	# NAME COMMAND...
	order=$((order + 1))
	order_name=$1
	shift
	put "order-$order_a-$order_b-$order" "$order_name $*" &&
		order_status=$(get "done-$order_a-$order_b-$order") &&
		[ "$order_status" = 0 ]
}

# Do what is asked for until that is to end.
obey() {
	while :; do
		order=$((order + 1))
		order_line=$(get "order-$order_a-$order_b-$order") || return
		order_name=${order_line%% *} order_line=${order_line#* }
		if [ "$order_line" = end ]; then
			put "done-$order_a-$order_b-$order" 0
			return
		fi
		# shellcheck disable=SC2086
		step "$order_name" $order_line
		put "done-$order_a-$order_b-$order" $?
	done
}

device_up() { rdma link add rxe type rxe netdev eth0; }
device_down() { rdma link delete rxe; }

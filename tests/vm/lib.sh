# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# What a scenario's script can say. It runs as root in a test machine, with
# this file read before it; each script is one machine (a.sh, b.sh, … or
# run.sh), a is 10.0.0.1 and fd00::1, b is 10.0.0.2 and fd00::2 on eth0. Names
# a, b, … resolve. $VM_NAME and $VM_INDEX say which machine this is, $VM_KERNEL
# which kernel (stock, debug, uml), $VM_SOAK is 1 in make soak, $VM_SLOW says how
# many times as long as on a quiet host everything takes, $VM has the scenario's
# other files, and on uml $VM_SOURCE is the source of its kernel. Our modules are
# found by name, also by the kernel itself.
#
#   step NAME CMD...      run CMD; ok if it succeeds, else not ok with its output.
#                         CMD may be a function; it runs in a subshell
#   check NAME CMD...     as step, in the shell itself, so that CMD can wait for its
#                         jobs and set variables; it must not exit
#   show NAME CMD...      as step, and its output is shown to a demo's audience
#   say TEXT              one line for a demo's audience
#   pass NAME, fail NAME [TEXT], skip NAME REASON    a result by hand
#   expect_fail CMD...    succeeds if CMD ran and failed (not: missing, timed out)
#   expect_status N CMD...
#   expect_output TEXT CMD...   succeeds if CMD does and prints TEXT somewhere
#   retry CMD...          every 0.2 s until it succeeds, for a minute and more
#   timeout SECONDS CMD...    the command of this name; seconds of a host that is quiet
#   urgent                within a step: its shell gets the priority of work items of
#                         the data path, which leave other tasks 1 % of a processor
#
#   load MODULE [PARAM=VALUE...] [MODULE...]   load ours and what they need; the
#                         time limits of tests are those of the host now
#   unload MODULE...      remove them
#   load_ours             all of ours but the tests
#   need_module NAME...   have the kernel's own module, or fail
#
#   listens PORT          succeeds if something of this machine does, over TCP
#   no_objects            succeeds if kofi stat knows of none
#
# With the other machines of the scenario, through the runner on the host, so
# also while the link is down; a machine that was killed or has ended does not
# count:
#   sync NAME             wait until every machine has called sync NAME
#   signal NAME           announce something; wait_for NAME waits for it
#   put KEY VALUE         publish a value; "value=$(get KEY)" waits for it
#   link down|up [MACHINE]    pull or plug a machine's cable (default: this one's)
#   kill_machine NAME     switch that machine off, as by a power cut
#   start_machine NAME    and on again: its script begins once more, with $VM_BOOT
#                         2, 3, ...; what is on its disk, /dev/vda, is still there.
#                         What is sent to it before that is lost
#
# Call these, and step, from the script itself, not from several background
# jobs at a time: there is one line to the runner.
#
# The script's failures are its exit status. At the end, where the scenario or
# the kernel asks for it, all our modules are unloaded and kmemleak is read.

VM_FAILED=0
vm_retries=$((300 * VM_SLOW))
[ "$VM_KERNEL" != debug ] || vm_retries=$((vm_retries * 5 / 2))
ctl() { printf '%s\n' "$*" >&3; }
ask() {
	ctl "$@"
	IFS= read -r VM_REPLY <&3 || VM_REPLY="fail no runner"
	case $VM_REPLY in
	ok*) VM_REPLY=${VM_REPLY#ok}; VM_REPLY=${VM_REPLY# } ;;
	*) echo "# $*: $VM_REPLY"; return 1 ;;
	esac
}

pass() {
	echo "ok - $1"
	ctl "ok $1"
}

fail() {
	VM_FAILED=$((VM_FAILED + 1))
	echo "not ok - $1${2:+ # $2}"
	[ -z "${2:-}" ] || ctl "diag $2"
	ctl "not $1"
}

skip() {
	echo "ok - $1 # SKIP $2"
	ctl "skip $1 # $2"
}

say() {
	echo "| $*"
	ctl "say $*"
}

vm_begin() {
	ctl "begin $vm_name"
	read -r vm_now _ </proc/uptime
	echo "begin - $vm_name [at $vm_now s]"
}

step() {
	vm_name=$1
	shift
	vm_begin
	if ("$@") >/tmp/.step 2>&1; then
		pass "$vm_name"
		return 0
	else
		vm_rc=$?
	fi
	tail -n 60 /tmp/.step | while IFS= read -r vm_line; do
		echo "# $vm_line"
		ctl "diag $vm_line"
	done
	fail "$vm_name" "exit status $vm_rc: $*"
	return 1
}

show() {
	vm_name=$1
	shift
	vm_begin
	{
		("$@") 2>&1
		echo $? >/tmp/.show
	} | while IFS= read -r vm_line; do say "$vm_line"; done
	if [ "$(cat /tmp/.show)" = 0 ]; then
		pass "$vm_name"
	else
		fail "$vm_name" "exit status $(cat /tmp/.show): $*"
		return 1
	fi
}

check() {
	vm_check=$1
	shift
	vm_name=$vm_check
	vm_begin
	if "$@" >/tmp/.check 2>&1; then
		pass "$vm_check"
	else
		fail "$vm_check" "$(tail -n 20 /tmp/.check | tr '\n' ';')"
		return 1
	fi
}

expect_fail() {
	"$@"
	vm_rc=$?
	case $vm_rc in
	0) echo "succeeded, which it must not: $*"; return 1 ;;
	124 | 126 | 127 | 13[0-9] | 14[0-9]) return $vm_rc ;;
	esac
}

expect_status() {
	vm_want=$1
	shift
	"$@"
	vm_rc=$?
	[ $vm_rc = "$vm_want" ] && return
	echo "exit status $vm_rc, not $vm_want: $*"
	return 1
}

expect_output() {
	vm_want=$1
	shift
	"$@" >/tmp/.expect 2>&1
	vm_rc=$?
	cat /tmp/.expect
	[ $vm_rc = 0 ] || return $vm_rc
	grep -qF -e "$vm_want" /tmp/.expect && return
	echo "does not print: $vm_want"
	return 1
}

retry() {
	# a last resort: what works takes far less, unless the host is busy
	vm_i=0
	until "$@"; do
		vm_i=$((vm_i + 1))
		[ $vm_i -lt $vm_retries ] || return 1
		sleep 0.2
	done
}

urgent() {
	read -r vm_pid _ </proc/self/stat && renice -n -20 -p "$vm_pid"
}

timeout() {
	vm_w=$(($1 * VM_SLOW))
	shift
	command timeout $vm_w "$@"
}

# --- what there is ---

listens() {
	grep -q "$(printf ':%04X .* 0A ' "$1")" /proc/net/tcp /proc/net/tcp6
}

# The same of a device, whose listener has no socket
listens_verbs() { rdma resource show cm_id | grep -q "LISTEN.*:$1 "; }

# An RDMA device on a network device of its own
rdma_link() {	# NAME TYPE ADDRESS [ADDRESS]
	ip link add "dummy_$1" type dummy && ip link set "dummy_$1" mtu 4200 &&
		ip addr add "$3/24" dev "dummy_$1" || return
	[ -z "${4:-}" ] || ip addr add "$4/64" dev "dummy_$1" nodad || return
	ip link set "dummy_$1" up && rdma link add "$1" type "$2" netdev "dummy_$1"
}

no_objects() { [ -z "$(kofi stat)" ]; }

# --- modules ---

vm_modprobe() {
	case ${1:-} in
	'') return ;;
	*_kunit | kofi_testmesh)
		! modinfo -p "$VM/ko/$1.ko" | grep -q ^slow: || set -- "$@" "slow=$VM_SLOW" ;;
	esac
	modprobe -d /run/mod "$@"
}

load() {
	# "m1 p=1 m2" is two calls; parameters belong to the name before them
	vm_words=
	for vm_w in "$@"; do
		case $vm_w in
		*=*) ;;
		*) # shellcheck disable=SC2086
			vm_modprobe $vm_words || return
			vm_words= ;;
		esac
		vm_words="$vm_words $vm_w"
	done
	# shellcheck disable=SC2086
	vm_modprobe $vm_words
}

# Whose result has been taken may be about to put the module.
unload() { for vm_m in "$@"; do retry rmmod "$vm_m" || return; done; }

load_ours() {
	for vm_m in "$VM"/ko/*.ko; do
		vm_m=${vm_m##*/}
		case $vm_m in
		*kunit* | *test* | '*.ko') ;;
		*) vm_modprobe "${vm_m%.ko}" || return ;;
		esac
	done
}

need_module() {
	for vm_m in "$@"; do
		[ -d "/sys/module/$vm_m" ] || vm_modprobe "$vm_m" || return
	done
}

ours() {	# our modules that are loaded, the one loaded last first
	# with few processes: emulated machines are slow to start them
	vm_names=" $(cd "$VM/ko" && echo *.ko | sed 's/\.ko$//; s/\.ko / /g; y/-/_/') "
	while read -r vm_m vm_rest; do
		case $vm_names in *" $vm_m "*) echo "$vm_m" ;; esac
	done </proc/modules
}

unload_all() {
	# a module's last reference may go away a moment after its last user
	vm_i=0
	while vm_left=$(ours) && [ "$vm_left" ]; do
		for vm_m in $vm_left; do rmmod "$vm_m" 2>/tmp/.rmmod; done
		vm_i=$((vm_i + 1))
		[ $vm_i -lt $vm_retries ] || break
		[ -z "$(ours)" ] || sleep 0.2
	done
	[ -z "$(ours)" ] && return
	cat /tmp/.rmmod
	echo "still loaded:"
	cat /proc/modules
	return 1
}

vm_leak=/sys/kernel/debug/kmemleak
kmemleak() {
	# twice: the first notes contents, the second reports what is at least
	# 5 s old, not referred to, and has not changed; and once more, as a
	# pointer may have been under way
	sleep 6 &
	echo scan >$vm_leak
	wait $!
	echo scan >$vm_leak
	leaks
	[ -s /tmp/.leaks ] || return 0
	echo scan >$vm_leak
	leaks
	[ -s /tmp/.leaks ] || return 0
	echo "$(grep -c '^unreferenced' /tmp/.leaks) objects, the first of them:"
	head -n 50 /tmp/.leaks
	return 1
}

leaks() {
	# What kmemleak has found and the kernel did not allocate when it came up.
	# iwcm drops a connection request that waits in its queue when the listening
	# id is destroyed (cm_work_handler, IWCM_F_DROP_EVENTS), and with it what siw
	# and iwcm have allocated for it in siw_cm_work_handler(): a leak of theirs. An
	# id of ours that is not destroyed is allocated elsewhere and still found.
	# Addresses in our modules, unloaded by now, get the name at or before them;
	# equally long hexadecimal numbers compare like strings.
	sed -n 's/^\([0-9a-f]*\) [tT] \([^ 	]*\)[ 	]*\(\[.*\]\)$/\1 \2 \3/p' /tmp/.symbols |
		sort >/tmp/.sorted
	busybox awk '
		FILENAME != "-" { at[n] = $1; name[n++] = $2 " " $3; next }
		/^unreferenced/ { if (keep) printf "%s", text; text = ""; keep = 1 }
		/^  comm "swapper/ { keep = 0 }
		/ siw_cm_work_handler\+/ { keep = 0 }
		/^ +0x[0-9a-f]+$/ {
			a = substr("0000000000000000" substr($1, 3), length($1) - 1)
			for (i = n - 1; i >= 0 && at[i] > a; i--);
			if (i >= 0) $0 = "    " name[i] " at " $1
		}
		{ text = text $0 "\n" }
		END { if (keep) printf "%s", text }' /tmp/.sorted - <$vm_leak >/tmp/.leaks
}

# --- the other machines ---

sync() { ask sync "$1"; }
signal() { ask signal "$1"; }
wait_for() { ask wait "$1"; }
put() {
	vm_name=$1
	shift
	ask put "$vm_name" "$*"
}
get() { ask get "$1" >&2 && echo "$VM_REPLY"; }
link() { ask link "$1" "${2:-$VM_NAME}"; }
kill_machine() { ask kill "$1"; }
start_machine() { ask start "$1"; }

vm_finish() {
	vm_rc=$?
	trap - EXIT
	if [ $vm_rc != 0 ] && [ $VM_FAILED = 0 ]; then
		fail script "the script ended with status $vm_rc"
	fi
	if [ "$VM_LEAKS" = 1 ]; then
		grep ' [tT] .*\[' /proc/kallsyms | grep -F "$(ours)" >/tmp/.symbols
		step unload unload_all
		if [ -w $vm_leak ]; then step kmemleak kmemleak; fi
	fi
	ctl "exit $VM_FAILED"
	exit $VM_FAILED
}
trap vm_finish EXIT

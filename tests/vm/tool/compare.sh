# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
# Compares kofi info -v with fi_info -v, which are in files of /tmp/t.

labels() {	# of the first fi_info of a file: lines up to their colons
	awk '/^---/ { n++ } n == 1' "$1" | sed 's/: .*/:/'
}

same_labels() {	# OURS THEIRS: what fi_info of 1.17 prints, or of 2.1, which prints less
	labels "$1" >/tmp/t/ours.labels
	labels "$2" >/tmp/t/theirs.labels
	if grep -q ' progress:$' /tmp/t/theirs.labels; then
		sed -i -e '/ comp_order:$/d; / total_buffered_recv:$/d' \
			-e '/ control_progress:$/d; s/ data_progress:$/ progress:/' /tmp/t/ours.labels
	fi
	[ -s /tmp/t/theirs.labels ] && diff /tmp/t/ours.labels /tmp/t/theirs.labels
}

values() {	# DOMAIN FILE: SECTION.LABEL: VALUE of its first IPv4 interface
	awk -v name="$1" '/^---/ { keep(r); r = "" } { r = r $0 "\n" } END { keep(r) }
	function keep(r) {
		if (!done && r ~ "name: " name "\n" && r ~ /FI_SOCKADDR_IN\n/) {
			printf "%s", r
			done = 1
		}
	}' "$2" | awk '/^    [a-z]/ { at = $1; sub(":", ".", at); if (NF > 1) at = "" }
		/:/ && NF > 1 { sub("^ *", ""); print at $0 }' |
		sed '/comp_order:/d; /total_buffered_recv:/d; /control_progress:/d; s/data_progress:/progress:/'
}

differ() {	# DOMAIN TYPE: in the values of the labels that "differences" has, no others
	values "$1" "/tmp/t/$2" >/tmp/t/ours.values
	values "$1" "/tmp/t/$2.newer" >/tmp/t/theirs.values
	[ "$(wc -l </tmp/t/theirs.values)" -ge 60 ] || return
	awk -v type=" $2 " '/^[^#]/ && index($0 " ", type) { print $1 }' "$VM/differences" |
		sort >/tmp/t/wanted
	awk '{ label = $1; value[FILENAME, label] = $0; labels[label] } END {
		for (label in labels)
			if (value[ARGV[1], label] != value[ARGV[2], label])
				print label
	}' /tmp/t/ours.values /tmp/t/theirs.values | sed 's/:$//' | sort >/tmp/t/found
	diff /tmp/t/wanted /tmp/t/found && return
	diff /tmp/t/ours.values /tmp/t/theirs.values | grep '^[+-]' | cut -c 1-150
	return 1
}

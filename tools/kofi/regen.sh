#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Brings what is generated from the netlink specs up to date, with the
# generator of the kernel sources (tools/net/ynl):
#
#   tools/kofi/regen.sh [--check] KERNEL_SOURCE
#
# --check changes nothing and fails, naming the files, if one is not what the
# spec says. Needs python3 with yaml. With jsonschema the specs are checked
# against the kernel's schema too; --check insists on it.
set -eu

fail() {
	echo "regen.sh: $*" >&2
	exit 1
}

check=
if [ "${1:-}" = --check ]; then
	check=1
	shift
fi
if [ $# != 1 ]; then
	echo "usage: tools/kofi/regen.sh [--check] KERNEL_SOURCE" >&2
	exit 2
fi
kernel=$1
top=$(cd "$(dirname "$0")/../.." && pwd)
gen=$kernel/tools/net/ynl/ynl-gen-c.py
[ -f "$gen" ] || fail "$kernel is no kernel source: tools/net/ynl/ynl-gen-c.py is missing there"
# Debian's packages are its own python3's, which need not come first.
python=
for p in python3 /usr/bin/python3; do
	[ -z "$python" ] && $p -c 'import yaml, jsonschema' 2>/dev/null && python=$p
done
for p in python3 /usr/bin/python3; do
	[ -z "$python" ] && $p -c 'import yaml' 2>/dev/null && python=$p
done
[ "$python" ] ||
	fail "python3 has no yaml; on Debian: apt-get install python3-yaml"

# The generator wants to find a spec in a kernel tree, beside the schemas, and
# includes the name of its output's folder in nothing it writes.
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/Documentation/netlink/specs" "$tmp/out" "$tmp/python"
: >"$tmp/MAINTAINERS"
cp "$kernel"/Documentation/netlink/*.yaml "$tmp/Documentation/netlink/"
cp "$top"/Documentation/netlink/specs/*.yaml "$tmp/Documentation/netlink/specs/"
if ! $python -c 'import jsonschema' 2>/dev/null; then
	[ -z "$check" ] ||
		fail "python3 has no jsonschema; on Debian: apt-get install python3-jsonschema"
	echo "regen.sh: no jsonschema in python3; the specs' form is not checked" >&2
	printf 'def validate(instance, schema):\n    pass\n' >"$tmp/python/jsonschema.py"
fi
export PYTHONPATH="$tmp/python${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1

stale=
put() {	# FILE: what was made for it is in $tmp/out
	new=$tmp/out/$(basename "$1")
	[ -s "$new" ] || fail "nothing was generated for $1"
	cmp -s "$new" "$top/$1" && return
	stale="$stale $1"
	[ -n "$check" ] || cp "$new" "$top/$1"
}

ynl() {	# SPEC MODE KIND FILE
	$python "$gen" --spec "$tmp/Documentation/netlink/specs/$1" \
		--mode "$2" "--$3" -o "$tmp/out/$(basename "$4")" ||
		fail "the generator does not accept $1"
	put "$4"
}

ynl kofi.yaml uapi header include/uapi/linux/kofi.h
ynl kofi.yaml kernel header kofi/netlink-gen.h
ynl kofi.yaml kernel source kofi/netlink-gen.c
$python "$top/tools/kofi/names.py" "$top/Documentation/netlink/specs/kofi.yaml" \
	>"$tmp/out/names-gen.h"
put kofi/names-gen.h
ynl kofi_test.yaml uapi header include/uapi/linux/kofi_test.h
ynl kofi_test.yaml kernel header samples/pingpong/netlink-gen.h
ynl kofi_test.yaml kernel source samples/pingpong/netlink-gen.c


if [ -z "$stale" ]; then
	exit 0
elif [ -z "$check" ]; then
	echo "written:$stale"
else
	fail "not what the specs say:$stale; run tools/kofi/regen.sh"
fi

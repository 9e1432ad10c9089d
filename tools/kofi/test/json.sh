#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# json.sh KOFI SCHEMA: --json gives valid JSON also after a failure, a line for each
# finding. No module is there.

kofi=$1
work=$(mktemp -d)
said=$work/said
trap 'rm -rf "$work"' EXIT

document() {	# KIND TEXT WORD...
	kind=$1
	text=$2
	shift 2
	# without modprobe
	(PATH=/nonexistent "$kofi" "$@" >"$said" 2>/dev/null)
	status=$?
	[ $status = 1 ] || echo "kofi $*: exit code $status"
	[ -s "$said" ] || echo "kofi $*: says nothing"
	jq -r --slurpfile schema "$schema" --arg kind "$kind" -f tests/vm/tool/schema.jq "$said"
	grep -qF -e "$text" "$said" || echo "kofi $*: $(cat "$said"); expected $text"
}

schema=$2
not_loaded="the kernel module kofi is not loaded"
document info "$not_loaded" info --json
document list "$not_loaded" list --json
document stat "$not_loaded" stat --json
document stat "$not_loaded" stat --json ep
document watch "$not_loaded" stat --json --watch 1
document monitor "$not_loaded" monitor --json
document pingpong "kofi_pingpong is not loaded" pingpong --json
document blk '"volumes": []' blk list --json
document perf "connecting: Connection refused" bw --json -P 1 127.0.0.1
document perf "connecting: Connection refused" lat --json -P 1 127.0.0.1
document check "$not_loaded" check --json
document failure '"exit_code": 1' info --json -n nonsuch.invalid
# wrong usage
[ -z "$("$kofi" info --json --nope 2>/dev/null)" ] || echo "kofi info --json --nope: prints"

${CC:-cc} -D_GNU_SOURCE -Iinclude -o "$work/jsontest" tools/kofi/test/jsontest.c tools/kofi/json.c &&
	"$work/jsontest" >"$said"
cat <<'END' | diff - "$said"
{"exact": 9007199254740991,"large": "9007199254740992","largest": "18446744073709551615","real": -1.500,"hex": "0xff","text": "\"\\\u000a\u00c3","null": null}
{"error": "said","exit_code": 1}
END

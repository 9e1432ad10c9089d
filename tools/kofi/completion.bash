# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Completion of kofi(8) for bash. Commands, options and the kinds of their values come
# from the help texts, so a new command needs nothing here.

# WORDS: those that begin with the current one are offered
_kofi_offer()
{
	local word
	for word in $1; do
		[[ $word != "$cur"* ]] || COMPREPLY+=("$(printf %q "$word")")
	done
}

# KIND: values, by the name that the help texts have for them
_kofi_values()
{
	case $1 in
	PROV|PROVIDER)
		_kofi_offer "tcp $("$kofi" list 2>/dev/null | sed -n 's/^\([^ ]*\):$/\1/p')" ;;
	DOMAIN|FABRIC)
		_kofi_offer "$("$kofi" info 2>/dev/null | sed -n "s/^    ${1,,}: //p" | sort -u)" ;;
	TYPE)
		_kofi_offer "msg rdm dgram" ;;
	VOLUME)
		_kofi_offer "$("$kofi" blk list 2>/dev/null | sed -n 's/^volume \([^ ]*\).*/\1/p')" ;;
	NAME\|DEVICE)
		_kofi_offer "$("$kofi" blk list 2>/dev/null |
			sed -n 's,^map \([^ ]*\) device=\([^ ]*\).*,\1 /dev/\2,p')" ;;
	CLASS*)
		_kofi_offer "$(sed -n '/^Classes:/,/^$/{s/^Classes://;s/,/ /g;p}' <<<"$help")" ;;
	DEVICE|FILE|PATH)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	ADDR|ADDRESS|SERVER)
		mapfile -t COMPREPLY < <(compgen -A hostname -- "$cur") ;;
	*[a-z0-9]\|[a-z0-9]*)	# the values themselves
		_kofi_offer "${1//|/ }" ;;
	esac
}

# COMMAND OPTION: prints the kind of value that the option has
_kofi_kind()
{
	case $1:$2 in
	pingpong:-m) echo 'msg|tagged' ;;
	pingpong:-M) echo 'done|read' ;;
	pingpong:-C) echo 'softirq|workqueue|direct' ;;
	bw:-C|lat:-C) echo 'softirq|workqueue' ;;
	*:-o) echo 'msg|tagged|read|write|writedata' ;;
	*:--provider|*:-p) echo PROVIDER ;;
	*)	sed -nE "s/^(.*[^[:alnum:]-])?$2((, --[a-z_-]+)?[ =])([[:alnum:]|]+).*/\4/p" \
			<<<"$help" | grep -E '^[A-Z]|\|' | head -n 1 ;;
	esac
}

_kofi()
{
	local kofi=$1 cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[1]} below="" help usage kind options

	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		_kofi_offer "--help --version $("$kofi" help 2>/dev/null |
			sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z0-9-]*\) .*/\1/p')"
		return
	fi

	help=$("$kofi" "$command" --help 2>/dev/null) || return
	# a line for each form of the command
	usage=$(sed '/^$/q' <<<"$help" | tr '\n' ' ' | sed "s/kofi $command/\n&/g" |
		grep "^kofi $command")
	if [[ $usage =~ "kofi $command "[a-z] ]]; then	# it has commands of its own
		if ((COMP_CWORD == 2)); then
			_kofi_offer "--help $(sed "s/^kofi $command \([a-z0-9-]*\).*/\1/" <<<"$usage")"
			return
		fi
		below=${COMP_WORDS[2]}
		usage=$(grep "^kofi $command $below " <<<"$usage") || return
	else
		usage+=$'\n'$(sed -nE 's/^ +(-.{,24}).*/\1/p' <<<"$help")
	fi

	# --option=value is three words
	[[ $prev != = ]] || prev=${COMP_WORDS[COMP_CWORD - 2]}
	[[ $cur != = ]] || cur=
	if [[ $prev == -* ]]; then
		kind=$(_kofi_kind "$command" "$prev")
		if [[ $kind ]]; then
			_kofi_values "$kind"
			return
		fi
	fi
	if [[ $cur == -* ]]; then
		mapfile -t options < <(grep -oE '(^|[][ ,])--?[[:alnum:]][[:alnum:]_-]*' <<<"$usage" |
			grep -oE -- '-.*')
		for kind in -h "${options[@]}"; do	# and its other spelling
			options+=("$(sed -nE "s/^ +(-[[:alnum:]]), (--[a-z_-]+).*/\1 \2/p" <<<"$help" |
				grep -w -e "$kind")")
		done
		_kofi_offer "$(tr ' ' '\n' <<<"${options[*]}" | sort -u)"
		return
	fi
	# the first argument that is no option
	kind=$(sed -nE "s/^kofi $command ((${below:-\[-[^]]*\]|\[OPTION\.\.\.\]}) )*\[?([A-Z|]+).*/\3/p" \
		<<<"$usage" | grep -v '^OPTION' | head -n 1)
	[[ $below && $COMP_CWORD -gt 3 ]] || _kofi_values "$kind"
}

complete -F _kofi kofi

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=120
# Completion works in bash, zsh and fish, and there is a manual page of every command that man renders without a complaint.
set -uo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
bad=0
skipped=

complain() {
	echo "$*"
	bad=1
}

# What bash offers for the words, the last of which is being written.
offers() {
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
	_blkprof
	printf '%s\n' "${COMPREPLY[@]}"
}

# expect 'CANDIDATES' WORD…: all the candidates are offered. A word "" is an empty one.
expect() {
	local wanted=$1 got word
	shift
	got=$(offers "$@")
	for word in $wanted; do
		grep -qxFe "$word" <<<"$got" || complain "bash: '$*' does not offer $word but: ${got//$'\n'/ }"
	done
}

bash_completion() {
	"$BLKPROF" completion bash >"$scratch/bash" || complain "completion bash failed"
	bash -n "$scratch/bash" || complain "bash refuses the completion"
	# compopt works only while bash itself completes.
	compopt() { :; }
	# shellcheck source=/dev/null
	. "$scratch/bash"
	complete -p blkprof >/dev/null || complain "bash: nothing is registered"
	expect "record top export doctor completion --help" blkprof ""
	expect "record" blkprof re
	expect "--backend" blkprof record --ba
	expect "-d --duration --help --version" blkprof record -
	expect "auto fentry kprobe tracepoint" blkprof record --backend ""
	expect "tracepoint" blkprof record --backend = t
	expect "all few none" blkprof record --labels =
	expect "$$" blkprof record --pid $$
	expect "/proc/self/stat" blkprof record -o /proc/self/sta
	expect "cat" blkprof record -d 5 -- ca
	expect "cat" blkprof record -d 5 --backend = auto ca
	expect "/proc/self/stat" blkprof record -d 5 cat /proc/self/sta
	expect "bash zsh fish" blkprof completion ""
	expect "--help" blkprof doctor --h
	[ -z "$(offers blkprof record --rate "")" ] || complain "bash: something is offered for a number"
}

zsh_completion() {
	command -v zsh >/dev/null || { skipped="no zsh here" && return; }
	"$BLKPROF" completion zsh >"$scratch/_blkprof" || complain "completion zsh failed"
	zsh -n "$scratch/_blkprof" || complain "zsh refuses the completion"
	# compinit registers the function by its first line; _arguments is replaced by what checks that it can parse each word.
	zsh -f -c "fpath=($scratch \$fpath); autoload -U compinit && compinit -u -D && [[ \$_comps[blkprof] == _blkprof ]]" ||
		complain "zsh: nothing is registered"
	zsh -f -c "autoload -U compinit && compinit -u -D && source $scratch/_blkprof && [[ \$_comps[blkprof] == _blkprof ]]" ||
		complain "zsh: nothing is registered when the script is sourced"
}

# fish_offers 'CANDIDATES' LINE: fish offers all of them where LINE ends.
fish_offers() {
	local got word
	got=$(HOME=$scratch fish --no-config -c "source $scratch/fish; complete -C '$2'" 2>&1 | cut -f 1)
	for word in $1; do
		grep -qxFe "$word" <<<"$got" || complain "fish: '$2' does not offer $word but: ${got//$'\n'/ }"
	done
}

fish_completion() {
	command -v fish >/dev/null || { skipped="no fish here" && return; }
	"$BLKPROF" completion fish >"$scratch/fish" || complain "completion fish failed"
	fish --no-execute "$scratch/fish" || complain "fish refuses the completion"
	fish_offers "record top diff completion" "blkprof "
	fish_offers "--help" "blkprof --h"
	fish_offers "--duration --backend --help" "blkprof record --"
	fish_offers "auto fentry kprobe tracepoint" "blkprof record --backend "
	fish_offers "$scratch/fish" "blkprof top $scratch/fi"
	fish_offers "cat" "blkprof record -d 5 -- ca"
	fish_offers "bash zsh fish" "blkprof completion "
}

manual_pages() {
	command -v man >/dev/null && command -v groff >/dev/null || { skipped="no man here" && return; }
	local command page complaints
	for command in "" $("$BLKPROF" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
		page=$BUILD/man/blkprof${command:+-$command}.1
		[ -s "$page" ] || { complain "there is no $page" && continue; }
		complaints=$(LC_ALL=C.UTF-8 MANWIDTH=100 man --warnings -E UTF-8 -l "$page" 2>&1 >"$scratch/page")
		[ -z "$complaints" ] || complain "$page: $complaints"
		grep -qE '@[A-Z]+@' "$scratch/page" && complain "$page: a placeholder is left"
		# shellcheck disable=SC2086 # no word for the program itself
		"$BLKPROF" $command --help | grep -oE -- ' --[a-z-]+' | sort -u | while read -r option; do
			grep -qe "$option" "$scratch/page" || echo "$page does not have $option"
		done | grep . && bad=1
	done
}

bash_completion
zsh_completion
fish_completion
manual_pages
[ $bad = 0 ] || exit 1
[ -z "$skipped" ] || { echo "$skipped" && exit 77; }

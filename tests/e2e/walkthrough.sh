#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=600
# README's incident, command by command as it is written there, ends with a sentence that names the broken disk.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
[ -e /dev/fuse ] && [ -e /dev/loop-control ] || { echo "this kernel has no FUSE or no loop devices" && exit 77; }
work=$(mktemp -d /var/tmp/blkprof-e2e-XXXXXX)
shell=

cleanup() {
	[ -z "$shell" ] || pkill -TERM --parent "$shell" 2>/dev/null
	"$root/tools/slowdisk" remove
	rm -rf "$work" /var/tmp/blkprof-store /var/tmp/blkprof-spool
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# The first block of commands of README's section.
sed -n '/^## An incident/,/^## /p' "$root/README.md" | sed -n '/^```sh$/,/^```$/p' | sed '/^```/d' >"$work/commands"
count=$(wc -l <"$work/commands")
[ "$count" -ge 5 ] && [ "$count" -le 10 ] || { echo "README has $count commands: $(cat "$work/commands")" && exit 1; }

rm -rf /var/tmp/blkprof-store /var/tmp/blkprof-spool
cd "$root" || exit 1
bash -e "$work/commands" >"$work/out" 2>"$work/err" </dev/null &
shell=$!
while kill -0 $shell 2>/dev/null; do
	[ ! -L /dev/slowdisk ] || basename "$(readlink -f /dev/slowdisk)" >"$work/disk"
	sleep 0.2
done
wait $shell
status=$?
[ $status = 0 ] || { tail -n 30 "$work/out" "$work/err" && echo "the commands ended with $status" && exit 1; }
disk=$(cat "$work/disk")
grep -E "got slower|queued" "$work/out"
grep -q "^$disk read got slower: " "$work/out" || { cat "$work/out" "$work/err" && echo "diff does not name $disk" && exit 1; }
[ ! -e /dev/slowdisk ] || { echo "the disk is still there" && exit 1; }

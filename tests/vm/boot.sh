#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test: program=none timeout=600
# Every kernel of the matrix boots, runs a command, and hands back its output, its exit status and its files; a warning of
# the kernel and a guest that dies are told apart from success.
set -uo pipefail
vm=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../tools/vm" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ran=0 bad=0

check() {
	[ "$2" = "$3" ] || { echo "$1: '$2', not '$3'" && bad=1; }
}

for kernel in 5.10 6.1 6.12 newest; do
	output=$("$vm/run" "$kernel" --disk null_blk --disk virtio --disk nvme --with /bin/true --out "$work/$kernel" -- \
		sh -c 'uname -r | tee /out/version; for disk in $DISKS; do [ -b "$disk" ] || exit 1; done; [ "$DISK" = /dev/nullb0 ] &&
			[ "$DISKS" = "/dev/nullb0 /dev/vda /dev/nvme0n1" ] && /payload/true && exit 7')
	status=$?
	[ $status != 77 ] || { echo "$kernel: its archive cannot be reached" && continue; }
	ran=$((ran + 1))
	check "$kernel: exit status" $status 7
	check "$kernel: output and /out" "$output" "$(cat "$work/$kernel/version")"
	echo "$kernel: $output"
done
[ $ran -gt 0 ] || exit 77

"$vm/run" "$kernel" -- sh -c 'echo "WARNING: made up" >/dev/kmsg'
check "a warning in the kernel's log" $? 1
"$vm/run" "$kernel" --allow-warnings --append made_up=yes -- sh -c 'echo "watchdog: BUG: soft lockup, made up" >/dev/kmsg; grep -q made_up=yes /proc/cmdline'
check "a lock-up that is allowed, an appended word" $? 0
"$vm/run" "$kernel" </dev/null 2>/dev/null
check "neither a command nor a terminal" $? 2
"$vm/run" "$kernel" -- sh -c 'echo c >/proc/sysrq-trigger' >/dev/null 2>&1
check "a guest that panics" $? 125
"$vm/run" "$kernel" --timeout 10 -- sleep 100 2>/dev/null
check "a command that hangs" $? 124
exit $bad

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=900
# tools/quickstart, where everything is installed and built already, ends with the profile of its load, on screen and on disk.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
touch "$work/begin"

"$root/tools/quickstart" >"$work/out" 2>"$work/err" || { cat "$work/out" "$work/err" && exit 1; }
cat "$work/err"
[ "$root/io.pb.gz" -nt "$work/begin" ] || { echo "no new io.pb.gz" && exit 1; }
for function in read_index scan_table write_wal; do
	gzip -dc "$root/io.pb.gz" | grep -ca "$function" >/dev/null || { echo "the profile does not name $function" && exit 1; }
done
grep -q 'operations' "$work/err" || { echo "no report on the terminal" && exit 1; }
! ls -d "$root"/build/blkprof-quickstart.* /var/tmp/blkprof-quickstart.* 2>/dev/null || { echo "scratch files were left" && exit 1; }

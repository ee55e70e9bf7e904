#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every source file says its licence, stays of one subject (600 lines) and leaves no note of unfinished work.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bad=0

complain() {
	echo "$*"
	bad=1
}

while read -r file; do
	head -n 3 "$file" | grep -q 'SPDX-License-Identifier: ' || complain "$file: no SPDX line at its top"
	lines=$(wc -l <"$file")
	[ "$lines" -le 650 ] || complain "$file: $lines lines; split it by subject"
	case $file in
	*/src/bpf/*) head -n 3 "$file" | grep -q 'GPL-2.0 OR Apache-2.0' || complain "$file: the BPF side is GPL-2.0 OR Apache-2.0" ;;
	esac
	if grep -nHE '\b(TODO|FIXME|XXX)\b' "$file" | grep -v 'tests/check/sources.sh'; then
		complain "$file: unfinished work"
	fi
done < <(find "$root"/{src,tests,tools} -type f \( -name '*.c' -o -name '*.h' -o -name '*.sh' -o -name '*.py' \
	-o -path '*/tools/test' -o -path '*/tools/quickstart' -o -path '*/tools/vm/*' -o -path '*/tools/packages/install' \) \
	! -name '*.txt' ! -path '*/golden/*' ! -path '*/models/*' ! -path '*/fuzz/*/fuzz_*/*')
exit $bad

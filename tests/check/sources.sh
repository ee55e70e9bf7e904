#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every source file says its licence, stays of one subject (about 600 lines) and leaves no note of unfinished work.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

mapfile -t files < <(find "$root"/{src,tests,tools} -type f \( -name '*.c' -o -name '*.h' -o -name '*.sh' -o -name '*.py' \
	-o -path '*/tools/test' -o -path '*/tools/quickstart' -o -path '*/tools/vm/*' -o -path '*/tools/packages/*' \) \
	! -name '*.txt' ! -path '*/golden/*' ! -path '*/models/*' ! -path '*/fuzz/*/fuzz_*/*')
awk '
	function complain(text) { print file ": " text; bad = 1 }
	function finish() {
		if (file == "")
			return
		if (!licence)
			complain("no SPDX line at its top")
		if (file ~ /\/src\/bpf\// && licence != "both")
			complain("the BPF side is GPL-2.0 OR Apache-2.0")
		if (lines > 700)
			complain(lines " lines; split it by subject")
	}
	FNR == 1 { finish(); file = FILENAME; licence = "" }
	FNR <= 3 && /SPDX-License-Identifier: / { licence = /GPL-2.0 OR Apache-2.0/ ? "both" : "one" }
	/(^|[^A-Za-z0-9_])(TODO|FIXME|XXX)([^A-Za-z0-9_]|$)/ && file !~ /tests\/check\/sources.sh$/ { complain("unfinished work: " $0) }
	{ lines = FNR }
	END { finish(); exit bad }' "${files[@]}"

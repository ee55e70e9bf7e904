#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Shell scripts pass shellcheck, Python scripts compile.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
command -v shellcheck >/dev/null || { echo "no shellcheck here" && exit 77; }
mapfile -t scripts < <(grep -rlE '^#!/bin/(ba|da|)sh' "$root"/{tools,tests,.ci})
shellcheck --severity=warning "${scripts[@]}" || exit 1
while read -r file; do
	python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$file" || exit 1
done < <(find "$root"/{tools,tests} -name '*.py')

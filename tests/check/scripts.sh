#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Shell scripts pass shellcheck, Python scripts compile.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
command -v shellcheck >/dev/null || { echo "no shellcheck here" && exit 77; }
mapfile -t scripts < <(grep -rlE '^#!/bin/(ba|da|)sh' "$root"/{tools,tests,deploy,.ci})
shellcheck --severity=warning "${scripts[@]}" || exit 1
find "$root"/{tools,tests} -name '*.py' -print0 | xargs -0 python3 -c 'import ast, sys
for name in sys.argv[1:]:
    ast.parse(open(name).read(), name)'

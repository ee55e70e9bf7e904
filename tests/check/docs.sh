#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The documentation names every loss, and its links lead somewhere.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root" || exit 1
bad=0

names=$(sed -nE 's/.*\[LOSS_[A-Z_]+\] = \{ "([a-z_]+)".*/\1/p' src/agent/losses.c)
[ -n "$names" ] || { echo "no names of losses in src/agent/losses.c" && bad=1; }
for name in $names; do
	grep -q "\`$name\`" docs/operations.md || { echo "docs/operations.md: the loss $name is not explained" && bad=1; }
done
for file in *.md docs/*.md LICENSES/*.md; do
	for link in $(grep -oE '\]\([^)#]+' "$file" | cut -c 3-); do
		case $link in http*) continue ;; esac
		[ -e "$(dirname "$file")/$link" ] || { echo "$file: $link does not exist" && bad=1; }
	done
done
exit $bad

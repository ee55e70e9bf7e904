#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test: program=none timeout=300
# A changed header that both sides share rebuilds the BPF objects and their skeletons; nothing changed rebuilds nothing.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
generator=()
! command -v ninja >/dev/null || generator=(-G Ninja)

mkdir "$work/source"
cp -a "$root"/{CMakeLists.txt,cmake,src,tools,docs} "$work/source/"
cmake -S "$work/source" -B "$work/build" "${generator[@]}" -DBUILD_TESTING=OFF >/dev/null
mapfile -t targets < <(cd "$root/src/bpf" && for file in *.bpf.c; do echo "bpf_${file%.bpf.c}"; done)

build() {
	cmake --build "$work/build" --target "${targets[@]}" >"$work/log" 2>&1 || { cat "$work/log" && exit 1; }
}

# Times of all objects and skeletons, one a line.
times() {
	find "$work/build" \( -name '*.bpf.o' -o -name '*.skel.h' \) -printf '%f %T@\n' | sort
}

build
first=$(times)
[ "$(wc -l <<<"$first")" -ge $((2 * ${#targets[@]})) ] || { echo "not all objects were built: $first" && exit 1; }
sleep 1.1
build
[ "$(times)" = "$first" ] || { echo "built again without a change" && exit 1; }
touch "$work"/source/src/bpf/*_rec.h
build
while read -r name time; do
	! grep -qx "$name $time" <<<"$first" || { echo "$name was not rebuilt after the headers that both sides share changed" && exit 1; }
done < <(times)

#!/usr/bin/env bash
# Lines of C, headers and CUDA have at most 120 bytes.
# label: fast
#
# usage: check_lines.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail

long_lines() { # FILE...
    awk 'length($0) > 120 { printf "%s:%d: %d bytes (expected at most 120)\n", FILENAME, FNR, length($0) }' "$@"
}

cd "$1"
seeded=$(mktemp)
trap 'rm -f "$seeded"' EXIT
printf '%120s\n%121s\n' x x >"$seeded"
[[ $(long_lines "$seeded") == "$seeded:2: 121 bytes (expected at most 120)" ]] ||
    { echo "a line of 121 bytes is not found"; exit 1; }
mapfile -t files < <(find base models planner sim exec traces plots cli tests docs -name '*.[ch]' -o -name '*.cu' \
                          -o -name '*.cuh' -o -name '*.cpp' | sort)
found=$(long_lines "${files[@]}")
[[ -z $found ]] || { echo "$found"; exit 1; }

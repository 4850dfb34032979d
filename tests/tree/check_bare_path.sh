#!/usr/bin/env bash
# Every test runs with a PATH of only what a bare Debian system has after bootstrap, and that PATH is what it says.
# label: fast
#
# usage: check_bare_path.sh SOURCE_FOLDER BUILD_FOLDER
# shellcheck disable=SC2016 # the bare shell expands these
set -euo pipefail

source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

# No test may be registered without the runner.
mapfile -t lists < <(find "$build/tests" -name CTestTestfile.cmake)
around=$(cat "${lists[@]}" | grep -c '^add_test(' || true)
inside=$(cat "${lists[@]}" | grep -c '^add_test(.*"[^" ]*/tests/tree/bare_path.sh"' || true)
((inside > 100)) || fail "only $inside tests run by tests/tree/bare_path.sh"
[[ $around == "$inside" ]] || fail "$((around - inside)) of $around tests are not run by tests/tree/bare_path.sh"

command -v dpkg-query >/dev/null || { echo "skipped: no dpkg"; exit 77; }

# Programs that somebody installed beside Debian's are out of reach, unless a test names them.
mkdir "$scratch/tools" "$scratch/build"
for tool in jq python3 spillway-made-up; do
    printf '#!/bin/sh\necho "%s ran"\n' "$tool" >"$scratch/tools/$tool"
    chmod +x "$scratch/tools/$tool"
done
bare() { # "TOOL..." COMMAND...: in a folder of its own, so that the links are made anew
    local also=$1
    shift
    PATH=$scratch/tools:$PATH bash "$source/tests/tree/bare_path.sh" "$source" "$scratch/build" "$also" "$@"
}
for tool in jq python3 spillway-made-up; do
    [[ $(PATH=$scratch/tools:$PATH "$tool") == "$tool ran" ]] || fail "the made-up $tool does not run"
    if bare '' bash -c "$tool" >"$scratch/out" 2>&1; then fail "$tool is on the bare PATH: $(<"$scratch/out")"; fi
    [[ $(bare "other $tool" "$tool") == "$tool ran" ]] || fail "$tool is not on the PATH of a test that names it"
done
code=0
bare '' bash -c 'exit 77' || code=$?
[[ $code == 77 ]] || fail "the exit code of a command became $code (expected 77)"

# What an essential system has (dash, mawk, util-linux), and what bootstrap's packages bring (dependencies,
# alternatives).
for tool in sh awk sed grep find setsid perl make; do
    bare '' bash -c "command -v $tool" >/dev/null || fail "$tool is not on the bare PATH"
done
while read -r package tool; do
    # shellcheck disable=SC2016 # dpkg-query's own variable
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || continue
    bare '' bash -c "command -v $tool" >/dev/null || fail "$tool of $package is not on the bare PATH"
done <<'LIST'
build-essential cc
build-essential objdump
cmake ctest
ninja-build ninja
pkg-config pkg-config
gnuplot-nox gnuplot
procps pgrep
scdoc scdoc
mandoc mandoc
openmpi-bin mpirun
LIST
[[ $(bare '' bash -c 'readlink -f "$(command -v awk)"') == */mawk ]] || fail "awk is not mawk"

# A golden case that calls one of the others fails.
if [[ -x $build/spillway && -x $build/spillway-exec ]]; then
    mkdir -p "$scratch/tree/tests/golden/cli/case"
    cp "$source/tests/golden/cli/helpers.sh" "$scratch/tree/tests/golden/cli/"
    echo 'spillway-made-up' >"$scratch/tree/tests/golden/cli/case/command"
    echo 'spillway-made-up ran' >"$scratch/tree/tests/golden/cli/case/expected"
    PATH=$scratch/tools:$PATH bash "$source/tests/cli/check_cli_golden.sh" "$scratch/tree" "$build" >/dev/null ||
        fail "the made-up golden case does not pass where its program is"
    if bare '' bash "$source/tests/cli/check_cli_golden.sh" "$scratch/tree" "$build" >"$scratch/out"; then
        fail "a golden case may call anything: $(<"$scratch/out")"
    fi
fi
((failures == 0)) || exit 1
echo "$inside tests run with $(bare '' bash -c 'ls "$PATH" | wc -l') programs on their PATH"

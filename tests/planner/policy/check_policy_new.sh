#!/usr/bin/env bash
# What `spillway policy new` writes compiles without a warning, keeps the rules and can be planned with,
# against the header of the build tree and against the installed one.
# label: fast
#
# usage: check_policy_new.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail

build=$(cd "${2:?the build folder is missing}" && pwd)
skip() { echo "skipped: $*"; exit 77; }

[[ -x $build/spillway ]] || skip "$build/spillway is not built"
for tool in make cmake "${CC:-cc}"; do
    command -v "$tool" >/dev/null || skip "no $tool"
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

# Not on PATH, as in a build tree: the Makefile names the program.
"$build/spillway" policy new mine >written
[[ $(wc -l <written) -ge 3 ]] || { echo "not all files were named:"; cat written; exit 1; }
make -s -C mine test CFLAGS='-O1 -Wconversion -Wshadow -Wpedantic -Werror' >log 2>&1 ||
    { echo "what was written does not build or breaks a rule:"; cat log; exit 1; }
grep -q 'test_mine: chose job 1 for device 1' log && grep -q 'mine.so, seed 1: 300 cases' log ||
    { echo "the tests did not run:"; cat log; exit 1; }

export PATH=$build:$PATH

# The same test must be able to fail: a policy that takes the job with the least left.
sed -i 's/left < view->jobs/left > view->jobs/; s/left <= view/left >= view/' mine/mine.c
! make -s -C mine test >log 2>&1 || { echo "a policy that does otherwise passes its test"; exit 1; }

# Installed elsewhere, only the header is needed.
[[ -e $build/libspillway.so ]] || skip "$build/libspillway.so is not built"
cmake --install "$build" --prefix "$scratch/installed" --component library >/dev/null
spillway policy new ours >/dev/null
make -s -C ours INCLUDE="$scratch/installed/include" ours.so CFLAGS=-Werror
spillway policy test ours/ours.so --cases 30 --quiet >/dev/null
echo "a new policy builds in the build tree and against what is installed, and keeps the rules"

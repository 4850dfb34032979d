#!/usr/bin/env bash
# Runs a fuzz target of a build with libFuzzer on its corpus, or adds to the corpus what such runs found.
#
# usage: fuzz_guided.sh SOURCE_FOLDER BUILD_FOLDER NAME --keep | [LIBFUZZER_OPTION...]
#
# New inputs grow in BUILD_FOLDER/corpus/NAME; what crashes, leaks, takes 25 s or 4 GiB is left in
# BUILD_FOLDER/findings/NAME-*, and `BUILD_FOLDER/fuzz_NAME FILE` repeats it. SPILLWAY_SEED repeats a run.
set -euo pipefail

source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
name=$3
shift 3
corpus=$source/tests/fuzz/corpus/$name
grown=$build/corpus/$name
mkdir -p "$grown" "$build/findings" "$build/words"
for symbolizer in /usr/bin/llvm-symbolizer /usr/bin/llvm-symbolizer-*; do
    [[ -x $symbolizer ]] && export ASAN_SYMBOLIZER_PATH=${ASAN_SYMBOLIZER_PATH:-$symbolizer}
done
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
if [[ ${1-} == --keep ]]; then
    # by edges alone: how often one is taken would keep hundreds of files more
    "$build/fuzz_$name" -merge=1 -use_counters=0 -timeout=25 "$corpus" "$grown"
    exit
fi
# the words of the corpus, as a dictionary
cat "$corpus"/* | tr -c 'A-Za-z0-9_.-' '\n' | grep -aE '^[A-Za-z_][A-Za-z0-9_.-]{1,39}$' | sort -u |
    sed 's/.*/"&"/' >"$build/words/$name.$$"
trap 'rm -f "$build/words/$name.$$"' EXIT
"$build/fuzz_$name" -timeout=25 -rss_limit_mb=4096 -print_final_stats=1 ${SPILLWAY_SEED:+-seed=$SPILLWAY_SEED} \
    -artifact_prefix="$build/findings/$name-" -dict="$build/words/$name.$$" "$@" "$grown" "$corpus"

#!/usr/bin/env bash
# `sweep` from outside: the same bytes alone, stopped and gone on with, and at several ranks of MPI.
# label: fast
#
# usage: check_sweep.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail

source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
[[ -x $build/spillway ]] || { echo "the program is not built"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export PATH=$build:$PATH HOME=$work
failed=0
check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@"; then echo "ok: $what"; else echo "FAILED: $what"; failed=1; fi
}

points=(plan "$source/docs/examples/jobs.json" --hw '2x rtx-3090-24gb' --device-memory 96MiB --policy sharded-lrtf
        --vary link.rate=1..16GB/s --vary devices=1,2 --vary jobs.microbatches=1,2)
spillway sweep "${points[@]}" -o alone.csv -o alone.db --quiet >alone.txt
check "twenty points" test "$(wc -l <alone.csv)" = 21
check "nothing else is left" test ! -e alone.csv.part

# What a point says is what the verb itself says.
spillway sweep "${points[@]}" --json >alone.json
spillway plan "$source/docs/examples/jobs.json" --hw '2x rtx-3090-24gb' --device-memory 96MiB --policy sharded-lrtf \
    --link-rate 1GB/s --devices 1 --json >plan.json
makespan=$(sed -n 's/^  "makespan_s": \([0-9.e-]*\),$/\1/p' plan.json)
check "the first point is that plan ($makespan)" grep -q "^1,1,1,done,$makespan," alone.csv

# Stopped on the way, whenever that is: nothing is computed twice, and the bytes are the same.
spillway sweep "${points[@]}" --processes 1 -o stopped.csv -o stopped.db >stopped.txt 2>&1 &
pid=$!
for _ in {1..100}; do
    [[ -s stopped.csv.part ]] && break
    sleep 0.05
done
sleep 0.1
kill -INT "$pid" 2>/dev/null || true
code=0
wait "$pid" || code=$?
check "a stop is told (found $code)" test "$code" = 130 -o "$code" = 0
spillway sweep "${points[@]}" -o stopped.csv -o stopped.db >again.txt
check "gone on with: the same CSV" cmp alone.csv stopped.csv
check "gone on with: the same database" cmp alone.db stopped.db

# A sweep that is not the one that was begun.
if [[ $code = 130 ]]; then
    cp alone.db other.csv.part
    code=0
    spillway sweep "${points[@]}" --vary seed=1,2 -o other.csv >other.txt 2>&1 || code=$?
    check "what was begun by another is left alone (found $code)" test "$code" = 2
    check "and says so" grep -q "is of another sweep" other.txt
fi

# Refused points are lines; where all are, that is an error.
spillway sweep "$source/docs/examples/parallel.json" --hw '4x a100-sxm4-80gb' --vary tp=1,2 --vary pp=1,2 \
    -o refused.csv >refused.txt
check "25 heads do not go on two ranks" grep -q '^2,1,refused,,,,' refused.csv
code=0
spillway sweep "$source/docs/examples/parallel.json" --hw '4x a100-sxm4-80gb' --vary tp=2,4 -o none.csv \
    >none.txt 2>&1 || code=$?
check "no point makes sense (found $code)" test "$code" = 2
check "nothing is written then" test ! -e none.csv -a ! -e none.csv.part

# A fault of a point's own jobs file is told of the user's, whose lines these are not.
cp "$source/docs/examples/parallel.json" mine.json
code=0
spillway sweep mine.json --hw '4x a100-sxm4-80gb' --vary jobs.sequence=0 >zero.txt 2>&1 || code=$?
check "no sequence of no tokens (found $code)" test "$code" = 2
check "told of the user's file" grep -q "at jobs.sequence=0: mine.json: 'sequence' is 0" zero.txt

# Of a paper's figure, what --set changes.
cat >figure.json <<END
{"spillway_figure": 1, "id": "mine", "paper": {"title": "T", "authors": "A", "version": "v1", "id": "none"},
 "figure": "Fig. 1", "title": "a plan", "kind": "bars", "quantity": {"name": "time", "unit": "s"},
 "columns": ["case", "machine"], "label": ["case"], "rows": [["first", "4x a100-sxm4-80gb"]],
 "files": {"parallel.json": "$source/docs/examples/parallel.json"},
 "runs": {"plan": ["simulate", "parallel.json", "--hw", "{machine}", "--parallel", "pp=2", "--json"]},
 "series": [{"name": "time", "simulated": "plan.makespan_s"}]}
END
spillway sweep repro run figure.json --vary matmul.efficiency=0.25,0.5 \
    --vary machine='2x a100-sxm4-40gb,2x a100-sxm4-80gb' \
    -f 'rows[first].points[time].simulated' -o figure.csv >figure.txt
check "four points of a figure" test "$(grep -c ',done,' figure.csv)" = 4
for machine in '2x a100-sxm4-40gb' '2x a100-sxm4-80gb'; do
    makespan=$(spillway simulate "$source/docs/examples/parallel.json" --hw "$machine" --parallel pp=2 --matmul-efficiency 0.25 --json |
               sed -n 's/^  "makespan_s": \([0-9.e-]*\),$/\1/p')
    check "what a figure says of $machine is what its run says ($makespan)" grep -q "^0.25,$machine,done,${makespan:-none}," figure.csv
done

if command -v mpirun >/dev/null && [[ -e $build/spillway-mpi.so ]]; then
    for ranks in 2 3; do
        # MPI keeps memory to its end, which the address sanitizer would tell
        ASAN_OPTIONS=detect_leaks=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n "$ranks" \
            spillway sweep "${points[@]}" -o "ranks$ranks.csv" -o "ranks$ranks.db" --quiet >"ranks$ranks.txt"
        check "$ranks ranks: the same CSV" cmp alone.csv "ranks$ranks.csv"
        check "$ranks ranks: the same database" cmp alone.db "ranks$ranks.db"
        check "$ranks ranks: one answer" test "$(grep -c '^20 points' "ranks$ranks.txt")" = 1
    done
else
    echo "skipped: MPI is not there"
fi
exit "$failed"

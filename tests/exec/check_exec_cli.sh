#!/usr/bin/env bash
# label: medium
# The program spillway-exec from outside: help, exit codes, a run with its files, an interrupted run.
# Usage: check_exec_cli.sh SOURCE BUILD
set -u
build=$2
exec_program=$build/spillway-exec planner=$build/spillway
[ -x "$exec_program" ] && [ -x "$planner" ] || { echo "not built"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failures=0

fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

# expect CODE WORDS COMMAND...: exit code and something that it says
expect() {
    local code=$1 words=$2
    shift 2
    "$@" >out.txt 2>err.txt
    local got=$?
    [ $got = "$code" ] || fail "$*: exit code $got instead of $code: $(cat err.txt)"
    grep -q -- "$words" out.txt err.txt || fail "$*: does not say '$words': $(cat out.txt err.txt)"
}

# libraries of GPUs are loaded when one opens: they take longer to start than the program
if ldd "$exec_program" | grep -E "cublas|cudnn|nccl"; then fail "it begins with a GPU's libraries"; fi
expect 0 "measure" "$exec_program" --help
expect 0 "trace" "$exec_program" run --help
expect 0 "budget" "$exec_program" measure -h
expect 0 "spillway-exec" "$exec_program" --version
expect 0 "host any" "$exec_program" devices
expect 0 "how many devices" "$exec_program" devices --help
expect 2 "no command" "$exec_program"
expect 2 "unknown command 'rum'" "$exec_program" rum
expect 2 "--trace" "$exec_program" run --trce x plan.json
expect 2 "standard output" "$exec_program" run --json --log - plan.json
expect 2 "budget" "$exec_program" measure --budget 1ms
expect 2 "nothing.json" "$exec_program" run nothing.json

network='{"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 256, "n_positions": 64}'
cat >jobs.json <<EOT
{"spillway_jobs": 1,
 "defaults": {"network": $network, "sequence": 16, "microbatch": 2, "minibatches": 4},
 "jobs": [{"name": "one", "seed": 1, "weights_out": "one.safetensors"},
          {"name": "two", "seed": 2, "weights_out": "two.safetensors"}]}
EOT
plan() { "$planner" plan "$1" --policy sharded-lrtf --hw host-2-cores --devices 2 --device-memory 24MiB -o "$2" >/dev/null; }
plan jobs.json plan.json || fail "no plan"

expect 0 "MINIBATCHES" "$exec_program" run plan.json --trace trace.json.gz --log log.jsonl
[ -s one.safetensors ] && [ -s two.safetensors ] || fail "no weights"
[ -s trace.json.gz ] || fail "no trace"
[ "$(wc -l <log.jsonl)" = 10 ] || fail "the log has $(wc -l <log.jsonl) lines instead of 10"
[ -z "$(ls | grep tmp)" ] || fail "temporary files are left"

rm one.safetensors two.safetensors
expect 0 '"weights_fingerprint"' "$exec_program" run plan.json --json --no-weights --result result.json
cmp -s out.txt result.json || fail "--json and --result differ"
[ ! -e one.safetensors ] || fail "--no-weights wrote weights"
grep -o '"weights_fingerprint": "[0-9a-f]*"' out.txt >first.txt
"$exec_program" run plan.json --json --no-weights | grep -o '"weights_fingerprint": "[0-9a-f]*"' >second.txt
cmp -s first.txt second.txt || fail "two runs of one plan end with other weights"

# A run of minutes, interrupted: the minibatches that began are kept, and nothing half done.
sed 's/"minibatches": 4/"minibatches": 200000/' jobs.json >long.json
plan long.json long-plan.json || fail "no long plan"
"$exec_program" run long-plan.json --log long.jsonl >out.txt 2>err.txt &
child=$!
for _ in $(seq 100); do
    sleep 0.1
    [ "$(cat long.jsonl 2>/dev/null | wc -l)" -gt 20 ] && break
done
kill -INT $child
wait $child
code=$?
[ $code = 130 ] || fail "an interrupted run ends with $code instead of 130: $(cat err.txt)"
grep -q "of 200000 minibatches" err.txt || fail "it does not say what was kept: $(cat err.txt)"
[ -s one.partial.safetensors ] || fail "an interrupted run keeps no weights"
grep -q '"end": "stopped"' long.jsonl || fail "the log does not say that it was stopped"

[ $failures = 0 ] && echo "all as expected"
exit $((failures > 0))

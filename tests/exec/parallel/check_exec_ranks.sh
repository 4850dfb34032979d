#!/usr/bin/env bash
# Several processes carry out one plan with the bits of one; each that ends early ends the others.
# label: long, all rounds: slow (every number of processes, not one that is drawn)
# also uses: mpirun
#
# usage: check_exec_ranks.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail

source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
[[ -x $build/spillway && -x $build/spillway-exec ]] || { echo "the programs are not built"; exit 77; }
work=$(mktemp -d)
# Only children that are still there: the number of an ended one may be another program's by now.
trap 'kill -KILL $(jobs -pr) 2>/dev/null || true; wait; rm -rf "$work"' EXIT
cd "$work"
export PATH=$build:$PATH HOME=$work XDG_CONFIG_HOME=$work TMPDIR=$work
seed=${SPILLWAY_TEST_SEED:-$RANDOM}
RANDOM=$seed
echo "seed $seed (SPILLWAY_TEST_SEED repeats it)"
cp "$source"/LICENSE text.txt

fail() { echo "FAILED: $*"; exit 1; }
plan() { # NAME DEVICES KEYS-OF-THE-JOB
    cat >"$1-jobs.json" <<JSON
{"spillway_jobs": 1,
 "defaults": {"network": "gpt2-tiny-bytes", "sequence": 32, "microbatch": 2, "microbatches": 4, "data": "text.txt"},
 "jobs": [{"name": "a", "weights_out": "a.safetensors", $3}]}
JSON
    spillway plan "$1-jobs.json" --hw host-2-cores --devices "$2" --device-memory 64MiB --storage-memory 4GiB \
        --storage-rate 1GB/s --quiet -o "$1.json" >/dev/null
}
losses() { sed -n 's/, "lr.*//; s/, "elapsed.*//; /loss"/p' "$1"; }

# Starts ranks 0 ... N-1 of a plan, whose process numbers are in `ranks`. Each has its own output.
begin() { # N PLAN [OPTIONS]
    local n=$1 plan=$2 r
    shift 2
    port=$((20000 + RANDOM % 12000))
    ranks=()
    rm -f out.* err.* # the ranks that begin make theirs a little later
    for ((r = 0; r < n; r++)); do
        spillway-exec run "${plans[r]:-$plan}" --rank "$r" --ranks "$n" --meet "127.0.0.1:$port" "$@" \
            >"out.$r" 2>"err.$r" &
        ranks+=($!)
    done
}
# Waits for a rank; its exit code is in `code`.
await() { # RANK
    code=0
    wait "${ranks[$1]}" || code=$?
}
await_step() { # STEP
    local until=$((SECONDS + 60))
    while ! grep -q "\"step\": $1," many.log 2>/dev/null; do
        ((SECONDS < until)) && [[ ! -s err.0 ]] || fail "no step $1: $(cat err.0)"
        sleep 0.02
    done
}
plans=()
# The numbers of processes to try are in `numbers`.
draw_numbers() {
    if [[ ${SPILLWAY_ROUNDS:-} ]]; then numbers=(2 3 4); else numbers=($((2 + RANDOM % 3))); fi
}

# The bits of one process, whatever the number of processes, with and without replicas, with tied and untied tables.
plan both 4 '"minibatches": 4, "parallel": {"pipeline": 2, "data": 2, "schedule": "1f1b"}'
plan deep 4 '"minibatches": 3, "parallel": {"pipeline": 4, "schedule": "1f1b"}'
plan wide 4 '"minibatches": 3, "parallel": {"data": 4}'
plan tree 4 '"minibatches": 3, "parallel": {"pipeline": 2, "data": 2, "schedule": "1f1b", "sum": "tree"}'
plan held 4 '"minibatches": 5, "evaluate": {"every": 2, "minibatches": 3}, "parallel": {"pipeline": 2, "data": 2, "schedule": "1f1b"}'
plan clip 4 '"minibatches": 4, "optimizer": {"kind": "adamw", "lr": 0.001, "clip": 0.3}, "parallel": {"pipeline": 2, "data": 2, "schedule": "1f1b"}'
plan wild 4 '"minibatches": 6, "optimizer": {"kind": "sgd", "lr": 1e6, "clip": 1e30}, "parallel": {"pipeline": 4, "schedule": "1f1b"}'
cat >untied.json <<JSON
{"model_type": "gpt2", "n_layer": 4, "n_embd": 32, "n_head": 2, "n_positions": 64, "vocab_size": 256, "tie_word_embeddings": false}
JSON
plan late 4 '"minibatches": 8, "network": "untied.json", "parallel": {"pipeline": 4, "schedule": "2bw"}'
plan uneven 4 '"minibatches": 3, "parallel": {"pipeline": 2, "replicas": [3, 1], "schedule": "1f1b"}'
plan shares 4 '"minibatches": 3, "optimizer": {"kind": "adamw", "lr": 0.001, "clip": 0.3}, "parallel": {"data": 4, "zero": 2}'
plan split 4 '"minibatches": 3, "parallel": {"tensor": 2, "pipeline": 2, "schedule": "1f1b"}'
plan below 4 '"minibatches": 3, "parallel": {"pipeline": 2, "data": 2, "zero": 1, "offload": "states", "schedule": "1f1b"}'
plan codes 4 '"minibatches": 3, "precision": "bf16-weights", "gradients": "bf16", "parallel": {"data": 4, "zero": 2}'
plan delay 4 '"minibatches": 6, "parallel": {"pipeline": 2, "data": 2, "zero": 2, "offload": "states", "delayed": true, "flush": 4, "schedule": "1f1b"}'
plan waits 4 '"minibatches": 8, "optimizer": {"kind": "adamw", "lr": 0.001, "clip": 0.3}, "parallel": {"pipeline": 4, "schedule": "2bw"}'
cat >experts.json <<JSON
{"model_type": "qwen2_moe", "num_hidden_layers": 4, "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2,
 "num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 24,
 "max_position_embeddings": 64, "vocab_size": 256}
JSON
plan parts 4 '"minibatches": 3, "network": "experts.json", "parallel": {"tensor": 2, "pipeline": 2, "sequence": true, "schedule": "1f1b"}'
all=(both deep wide tree held clip wild late uneven shares split below codes delay waits parts)
declare -A options=([wild]="--on-nan skip")
for name in "${all[@]}"; do
    rm -f a.safetensors
    # shellcheck disable=SC2086 # words
    spillway-exec run $name.json --quiet --log $name.log ${options[$name]-}
    mv a.safetensors $name.safetensors
    draw_numbers
    for n in "${numbers[@]}"; do
        # shellcheck disable=SC2086 # words
        begin $n $name.json --log many.log ${options[$name]-}
        for ((r = 0; r < n; r++)); do
            await $r
            [[ $code == 0 ]] || fail "$name: rank $r of $n ended with $code: $(cat err.$r)"
        done
        cmp a.safetensors $name.safetensors || fail "$name: other weights from $n processes"
        diff <(losses many.log) <(losses $name.log) || fail "$name: other losses from $n processes"
        rm a.safetensors
        [[ ! -s out.1 ]] || fail "rank 1 printed: $(cat out.1)"
    done
done
grep -q '"skipped": true' wild.log || fail "no step was skipped"

# A policy decides live, in the process of rank 0: the same weights, in an order that is a plan.
cat >turns-jobs.json <<JSON
{"spillway_jobs": 1,
 "defaults": {"network": "gpt2-tiny-bytes", "sequence": 32, "microbatch": 2, "microbatches": 4, "minibatches": 4, "data": "text.txt"},
 "jobs": [{"name": "a", "weights_out": "a.safetensors", "parallel": {"pipeline": 2, "data": 2, "schedule": "1f1b"}},
          {"name": "b", "weights_out": "b.safetensors", "parallel": {"tensor": 2, "first_device": 2}}]}
JSON
spillway plan turns-jobs.json --hw host-2-cores --devices 4 --device-memory 64MiB --dispatch live --quiet -o turns.json >/dev/null
spillway-exec run turns.json --quiet
mv a.safetensors turns-a.safetensors
mv b.safetensors turns-b.safetensors
draw_numbers
for n in "${numbers[@]}"; do
    begin $n turns.json --dispatch live --policy random --seed "$RANDOM" --executed-order order.json
    for ((r = 0; r < n; r++)); do
        await $r
        [[ $code == 0 ]] || fail "live: rank $r of $n ended with $code: $(cat err.$r)"
    done
    cmp a.safetensors turns-a.safetensors && cmp b.safetensors turns-b.safetensors || fail "other weights from $n processes, live"
    spillway check order.json >/dev/null || fail "an order that is no plan"
    rm a.safetensors b.safetensors order.json
done
port=$((20000 + RANDOM % 12000))
spillway-exec run turns.json --rank 0 --ranks 2 --meet "127.0.0.1:$port" --dispatch live --policy fifo 2>err.0 &
ranks=($!)
spillway-exec run turns.json --rank 1 --ranks 2 --meet "127.0.0.1:$port" 2>err.1 &
ranks+=($!)
for r in 0 1; do
    await $r
    [[ $code == 2 ]] && grep -q "the ranks have different options: rank 0 .*--dispatch live', rank 1 .*--dispatch plan'" err.$r ||
        fail "one rank is live: $code $(cat err.$r)"
done
# A job without its data ends on all ranks; the other one goes on.
cp text.txt gone.txt
sed 's/"name": "b",/"name": "b", "data": "gone.txt",/' turns-jobs.json >gone-jobs.json
spillway plan gone-jobs.json --hw host-2-cores --devices 4 --device-memory 64MiB --dispatch live --quiet -o gone.json >/dev/null
rm gone.txt
for live in "" "--dispatch live --policy fifo"; do
    # shellcheck disable=SC2086 # words
    begin 2 gone.json --keep-going $live
    for r in 0 1; do
        await $r
        [[ $code == 1 ]] && grep -q "1 of 2 jobs failed: 'b': .*gone.txt" err.$r || fail "keep going $live: $code $(cat err.$r)"
    done
    cmp a.safetensors turns-a.safetensors || fail "other weights beside a job that failed"
    [[ ! -e b.safetensors ]] || fail "weights of a job that failed"
    rm a.safetensors
done
rm turns-*.safetensors

# States in storage, of each rank; rank 0 reads weights from a file for all.
plan store 4 '"minibatches": 3, "weights_in": "both.safetensors", "parallel": {"pipeline": 2, "data": 2, "zero": 2, "offload": "states", "storage": true, "schedule": "1f1b"}'
spillway-exec run store.json --quiet --storage .
mv a.safetensors store.safetensors
for n in 2 3; do
    begin $n store.json --storage .
    for ((r = 0; r < n; r++)); do
        await $r
        [[ $code == 0 ]] || fail "storage: rank $r of $n ended with $code: $(cat err.$r)"
    done
    cmp a.safetensors store.safetensors || fail "other weights from $n processes with storage"
done
rm a.safetensors store.safetensors
begin 2 store.json
for r in 0 1; do
    await $r
    [[ $code == 2 ]] && grep -q 'no folder for it is named' err.$r || fail "without storage: $code $(cat err.$r)"
done

# The weights of the best evaluation, whole and in shares.
for of in '"pipeline": 2, "data": 2, "schedule": "1f1b"' '"tensor": 2, "data": 2, "zero": 3'; do
    plan best 4 '"minibatches": 5, "evaluate": {"every": 1, "minibatches": 2}, "keep": "best", "parallel": {'"$of"'}'
    spillway-exec run best.json --quiet
    mv a.best.safetensors one.best
    for n in 2 3; do
        begin $n best.json
        for ((r = 0; r < n; r++)); do
            await $r
            [[ $code == 0 ]] || fail "best: rank $r of $n ended with $code: $(cat err.$r)"
        done
        cmp a.best.safetensors one.best || fail "other best weights from $n processes"
        rm a.best.safetensors a.safetensors
    done
done
rm one.best

# A machine of two nodes has a process for each: one process would need both hosts.
figure() { echo "{\"value\": $1, \"unit\": \"$2\", \"kind\": \"assumed\", \"source\": \"test\", \"as_of\": \"2026-11\"}"; }
device() { echo "{\"type\": \"core\", \"path\": [\"memory-$1\"], \"networks\": [{\"group\": 1, \"path\": [\"nic-$1\"]}]}"; }
link() { echo "{\"name\": \"$1\", \"bandwidth\": $(figure "$2" GB/s), \"duplex\": true}"; }
cat >nodes.json <<JSON
{"spillway_hardware": 1, "name": "two nodes", "backend": "host",
 "host": {"memory": $(figure 1 GiB), "cores": 2, "threads": 1, "nodes": 2, "node_devices": 2},
 "device_types": [{"name": "core", "memory": $(figure 64 MiB), "peak_fp32": $(figure 100 GFLOP/s),
                   "memory_bandwidth": $(figure 10 GB/s)}],
 "links": [$(link memory-0 10), $(link memory-1 10), $(link nic-0 1), $(link nic-1 1)],
 "devices": [$(device 0), $(device 0), $(device 1), $(device 1)]}
JSON
spillway plan both-jobs.json --hw nodes.json --quiet -o nodes-plan.json >/dev/null
code=0
spillway-exec run nodes-plan.json --quiet 2>messages || code=$?
[[ $code == 2 ]] && grep -q 'the plan is for 2 nodes' messages || fail "nodes in one process: $code $(cat messages)"
begin 2 nodes-plan.json
for r in 0 1; do
    await $r
    [[ $code == 0 ]] || fail "nodes: rank $r ended with $code: $(cat err.$r)"
done
cmp a.safetensors both.safetensors || fail "other weights from two nodes"
rm a.safetensors

# A launcher that tells ranks by the environment.
if command -v mpirun >/dev/null; then
    mpirun --allow-run-as-root --oversubscribe -n 4 spillway-exec run both.json --quiet 2>messages ||
        fail "mpirun: $(cat messages)"
    cmp a.safetensors both.safetensors || fail "other weights under mpirun"
    rm a.safetensors
    # The profile of a measurement has collectives between the processes, and can be planned with.
    mpirun --allow-run-as-root --oversubscribe --bind-to none -n 3 spillway-exec measure -o between.json --budget 1s \
        --quiet 2>messages ||
        fail "measuring under mpirun: $(cat messages)"
    [[ $(grep -c '"processes": ' between.json) == 2 ]] || fail "no collectives between processes"
    spillway check between.json >/dev/null || fail "a profile that was measured under mpirun"
fi

# A rank that is killed ends the others, by name, and nothing is written.
plan long 4 '"minibatches": 100000, "parallel": {"pipeline": 2, "data": 2, "schedule": "1f1b"}'
plan group 4 '"minibatches": 100000, "parallel": {"tensor": 2, "data": 2}'
for ((victim = 0; victim < 4; victim++)); do
    begin 4 "$([[ $victim -lt 2 ]] && echo long || echo group).json" --patience 6s
    sleep "$((RANDOM % 3)).$((RANDOM % 10))"
    kill -KILL "${ranks[victim]}"
    begun=$SECONDS
    for ((r = 0; r < 4; r++)); do
        await $r
        ((r == victim)) && continue
        [[ $code != 0 ]] || fail "rank $r ended well without rank $victim"
        [[ $(wc -l <err.$r) == 1 ]] || fail "rank $r: more than a line: $(cat err.$r)"
        grep -Eq "rank $victim( \(|')|127.0.0.1:|rank 0 ended|has not come" err.$r || fail "rank $r does not name rank $victim: $(cat err.$r)"
    done
    ((SECONDS - begun <= 10)) || fail "the others ended $((SECONDS - begun)) s after rank $victim"
    [[ -z $(ls -- *.safetensors* | grep -v -E "^($(IFS='|'; echo "${all[*]}")).safetensors$") ]] ||
        fail "weights were written without rank $victim"
done

# A rank that does not answer.
rm many.log
begin 2 long.json --patience 5s --log many.log
await_step 1
kill -STOP "${ranks[1]}"
await 0
[[ $code == 3 ]] && grep -q 'rank 1 (.*has not answered for' err.0 || fail "a rank that was stopped: $code $(cat err.0)"
kill -KILL "${ranks[1]}"
await 1

# The first interrupt ends all ranks after the same minibatch, with the weights. A delayed update is not lost, nor what
# is in storage.
for of in '"pipeline": 2, "data": 2, "schedule": "1f1b"' '"pipeline": 4, "schedule": "2bw"' \
    '"data": 4, "zero": 1, "offload": "states", "delayed": true' \
    '"data": 4, "zero": 2, "offload": "states", "storage": true'; do
    plan long 4 '"minibatches": 100000, "parallel": {'"$of"'}'
    rm many.log
    begin 2 long.json --log many.log --storage .
    await_step 3
    kill -INT "${ranks[1]}"
    for r in 0 1; do
        await $r
        [[ $code == 130 ]] || fail "rank $r ended with $code after an interrupt: $(cat err.$r)"
    done
    steps=$(losses many.log | wc -l)
    mv a.partial.safetensors stopped.safetensors
    plan until 4 '"minibatches": '"$steps"', "parallel": {'"$of"'}'
    spillway-exec run until.json --quiet --storage .
    cmp a.safetensors stopped.safetensors || fail "other weights after an interrupt"
    rm stopped.safetensors a.safetensors
done

# Ranks that differ, or do not come: one line, the same on all.
plans=(both.json deep.json)
begin 2 both.json
for r in 0 1; do
    await $r
    [[ $code == 2 ]] && grep -q 'the ranks have different plans: rank 0 .* has .*, rank 1 .* has ' err.$r ||
        fail "another plan: $code $(cat err.$r)"
done
cmp err.0 err.1 || fail "two ranks tell different tales"
plans=()
mkdir kept
for r in 0 1; do # a folder each
    folder=kept
    ((r == 0)) || folder=other/kept
    spillway-exec run both.json --rank $r --ranks 2 --meet "127.0.0.1:$((port + 1))" --checkpoint $folder 2>err.$r &
    ranks[r]=$!
done
for r in 0 1; do
    await $r
    [[ $code == 2 ]] && grep -Eq "different folders for checkpoints: rank 0 .* has 'kept', rank 1 .* has 'other/kept'" err.$r ||
        fail "folders that differ: $code $(cat err.$r)"
done
cmp err.0 err.1 || fail "two ranks tell different tales of their folders"
for options in "--checkpoint text.txt" "--checkpoint text.txt/x" "--log kept"; do
    code=0
    # shellcheck disable=SC2086 # words
    spillway-exec run both.json $options 2>messages || code=$?
    [[ $code == 2 && $(wc -l <messages) == 1 ]] || fail "$options: $code $(cat messages)"
done
for missing in 0 1; do
    code=0
    spillway-exec run both.json --rank $((1 - missing)) --ranks 2 --meet 127.0.0.1:$((20000 + RANDOM % 12000)) \
        --patience 1s 2>messages || code=$?
    [[ $code == 3 && $(wc -l <messages) == 1 ]] || fail "without rank $missing: $code $(cat messages)"
done

# A port in use.
exec {held}< <(spillway-exec run both.json --rank 0 --ranks 2 --meet 127.0.0.1:19999 --patience 3s 2>&1 || true)
sleep 0.5
code=0
spillway-exec run both.json --rank 0 --ranks 2 --meet 127.0.0.1:19999 --patience 1s 2>messages || code=$?
[[ $code == 3 ]] && grep -q "cannot listen at '127.0.0.1:19999': Address already in use" messages ||
    fail "a port in use: $code $(cat messages)"
cat <&"$held" >/dev/null

# What cannot be.
for options in "--rank 0" "--ranks 2" "--rank 2 --ranks 2 --meet h:1" "--rank 0 --ranks 2" "--meet h:1" \
    "--rank 0 --ranks 2 --meet nonsense" "--rank 0 --ranks 2 --meet 127.0.0.1:19998 --patience 0.5s"; do
    code=0
    # shellcheck disable=SC2086 # words
    spillway-exec run both.json $options 2>messages || code=$?
    [[ $code == 2 && $(wc -l <messages) == 1 ]] || fail "$options: $code $(cat messages)"
done
begin 5 both.json
for ((r = 0; r < 5; r++)); do
    await $r
    [[ $code == 2 || $code == 3 ]] && grep -q 'too few for 5 ranks' err.$r ||
        fail "more ranks than devices: $code $(cat err.$r)"
done
echo "all well"

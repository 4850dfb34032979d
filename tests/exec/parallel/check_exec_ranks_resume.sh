#!/usr/bin/env bash
# Checkpoints of several processes: one file free of layout, from which any number of them goes on with the same bits.
# label: long, all rounds: slow (more kills)
# also uses: mpirun
#
# usage: check_exec_ranks_resume.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail

source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
[[ -x $build/spillway && -x $build/spillway-exec ]] || { echo "the programs are not built"; exit 77; }
command -v mpirun >/dev/null || { echo "mpirun is not installed"; exit 77; }
work=$(mktemp -d)
# Only children that are still there: the number of an ended one may be another program's by now.
trap 'kill -KILL $(jobs -pr) 2>/dev/null || true; wait; rm -rf "$work"' EXIT
cd "$work"
export PATH=$build:$PATH HOME=$work XDG_CONFIG_HOME=$work TMPDIR=$work
seed=${SPILLWAY_TEST_SEED:-$RANDOM}
RANDOM=$seed
if [[ ${SPILLWAY_ROUNDS:-} ]]; then kills=12; else kills=2; fi
counts=(1 2 4)
echo "seed $seed (SPILLWAY_TEST_SEED repeats it)"
cp "$source"/LICENSE text.txt

fail() { echo "FAILED: $*"; exit 1; }
cat >untied.json <<JSON
{"model_type": "gpt2", "n_layer": 4, "n_embd": 32, "n_head": 2, "n_positions": 64, "vocab_size": 256, "tie_word_embeddings": false}
JSON
keep=last rate=0.0003
plan() { # NAME MINIBATCHES NETWORK PARALLEL; also `keep`, and `rate` of learning
    cat >"$1-jobs.json" <<JSON
{"spillway_jobs": 1,
 "defaults": {"network": "$3", "sequence": 32, "microbatch": 2, "microbatches": 4, "data": "text.txt"},
 "jobs": [{"name": "a", "weights_out": "a.safetensors", "minibatches": $2, "evaluate": {"every": 3, "minibatches": 2},
   "optimizer": {"kind": "adamw", "lr": $rate}, "keep": "$keep", "parallel": {$4}}]}
JSON
    spillway plan "$1-jobs.json" --hw host-2-cores --devices 4 --device-memory 64MiB --quiet -o "$1.json" >/dev/null
}
losses() { grep '"loss"' "$1"; }

# The executor of `spillway run`, in several processes.
mkdir ranks
for n in 1 2 3 4; do
    cat >"ranks/exec-$n" <<SH
#!/bin/sh
[ "\$1" = run ] && [ $n -gt 1 ] || exec spillway-exec "\$@"
exec mpirun --allow-run-as-root --oversubscribe -n $n spillway-exec "\$@"
SH
    chmod +x "ranks/exec-$n"
done

steps=36
# Goes on from a copy of the checkpoints, in 1, 2 and 4 processes; the bits are those of a run that was never stopped.
go_on() { # FOLDER NUMBER-OF-PROCESSES...
    local folder=$1 n
    shift
    for n in "$@"; do
        rm -rf again a.safetensors
        cp -r "$folder" again
        SPILLWAY_EXEC=$work/ranks/exec-$n spillway run a.json --checkpoint again --resume --quiet >/dev/null 2>messages ||
            fail "$n processes do not go on from $(ls "$folder/a"): $(cat messages)"
        cmp a.safetensors whole.safetensors || fail "other weights after going on in $n processes"
        [[ $keep == last ]] || cmp a.best.safetensors whole.best || fail "other best weights after going on in $n processes"
    done
}

# A whole run leaves the checkpoints that one process leaves.
whole_run() { # NETWORK PARALLEL
    local file same=0
    rm -rf alone many a.safetensors
    plan a $steps "$1" "$2"
    spillway-exec run a.json --quiet --log whole.log
    mv a.safetensors whole.safetensors
    [[ $keep == last ]] || mv a.best.safetensors whole.best
    spillway-exec run a.json --quiet --checkpoint alone --checkpoint-every 5 --keep 100
    rm -f a.safetensors a.best.safetensors
    mpirun --allow-run-as-root --oversubscribe -n 4 spillway-exec run a.json --quiet --checkpoint many \
        --checkpoint-every 5 --keep 100
    cmp a.safetensors whole.safetensors || fail "$2: other weights with checkpoints"
    [[ $keep == last ]] || cmp a.best.safetensors whole.best || fail "$2: other best weights with checkpoints"
    for file in $(sed -n 's/.*"step": \([0-9]*\), "evaluation".*"best": true.*/\1/p' whole.log); do
        file=$(printf "step-%010d.safetensors" "$file") # the best so far has a checkpoint of its own
        cmp "alone/a/$file" "many/a/$file" || fail "$2: no equal checkpoint of the best evaluation: $file"
    done
    for file in alone/a/*; do
        [[ ! -e many/a/${file##*/} ]] ||
            { cmp "$file" "many/a/${file##*/}" || fail "$2: another checkpoint: $file"; same=$((same + 1)); }
    done
    ((same >= 2)) && [[ -e many/a/step-00000000$steps.safetensors ]] || fail "$2: few checkpoints: $(ls many/a)"
    rm "many/a/step-00000000$steps.safetensors"
}
whole_run gpt2-tiny-bytes '"data": 4, "zero": 1'
go_on many 3
whole_run gpt2-tiny-bytes '"data": 4, "zero": 2, "offload": "states", "delayed": true, "flush": 6'
go_on many 3
whole_run untied.json '"pipeline": 4, "schedule": "2bw", "flush": 6'
go_on many 2
whole_run gpt2-tiny-bytes '"pipeline": 2, "data": 2, "schedule": "1f1b"'
go_on many 1 2 4

# The weights of the best evaluation: of an early one, which a run that goes on keeps, and of one after it went on.
keep=best
for best in early late; do # at the first rate the loss grows after a few steps, at the other one it falls
    [[ $best == early ]] && steps=11 rate=0.3 || steps=18 rate=0.0003
    whole_run gpt2-tiny-bytes '"pipeline": 2, "data": 2, "zero": 1, "schedule": "1f1b"'
    last=$(sed -n 's/.*"step": \([0-9]*\), "evaluation".*"best": true.*/\1/p' whole.log | tail -n 1)
    for file in many/a/*; do
        number=${file##*-0000000} number=$((10#${number%.safetensors}))
        ((number <= 10)) || rm "$file"
    done
    [[ $best == early && $last == 3 || $best == late && $last -gt 12 ]] || fail "the $best best evaluation is $last"
    go_on many 1 2 3
done
keep=last rate=0.0003 steps=36
whole_run gpt2-tiny-bytes '"pipeline": 2, "data": 2, "schedule": "1f1b"'

# Ranks without the option are told apart.
spillway-exec run a.json --quiet --rank 0 --ranks 2 --meet 127.0.0.1:19997 --checkpoint one 2>err.0 &
started=$!
code=0
spillway-exec run a.json --quiet --rank 1 --ranks 2 --meet 127.0.0.1:19997 2>err.1 || code=$?
wait $started || true
[[ $code == 2 ]] && grep -q "the ranks have different options: rank 0 .* has '--on-nan stop, --checkpoint, --dispatch plan', rank 1" err.1 || fail "other options: $code $(cat err.1)"

# The first interrupt ends all ranks with a checkpoint after the last minibatch.
cat >start.sh <<'SH'
rank=$OMPI_COMM_WORLD_RANK
echo $$ >"pid.$rank"
exec spillway-exec run a.json --quiet "$@" >"out.$rank" 2>"err.$rank"
SH
begin() { # OPTIONS
    rm -rf pid.? err.? kept many.log a.partial.safetensors a.safetensors
    mpirun --allow-run-as-root --oversubscribe --enable-recovery -n 4 sh start.sh --checkpoint kept \
        --checkpoint-every 1 --log many.log "$@" >/dev/null 2>&1 &
    started=$!
}
await_step() { # STEP
    local until=$((SECONDS + 60))
    while ! grep -q "\"step\": $1," many.log 2>/dev/null; do
        ((SECONDS < until)) && kill -0 $started 2>/dev/null || fail "no step $1: $(cat err.?)"
        sleep 0.01
    done
}
begin
await_step 4
kill -INT "$(cat pid.2)"
wait $started || true
done=$(losses many.log | wc -l)
((done < steps)) && [[ -e kept/a/step-00000000$(printf %02d "$done").safetensors ]] ||
    fail "after an interrupt at $done: $(ls kept/a) $(cat err.?)"
go_on kept 1 2 4

# Ranks that are killed at any moment: the others end, and say who and what; a checkpoint is left that all can go on
# from, here of shares of states.
whole_run gpt2-tiny-bytes '"pipeline": 2, "data": 2, "zero": 3, "schedule": "1f1b"'
go_on many 1 2 4
named=0
for ((k = 0; k < kills; k++)); do
    victim=$((RANDOM % 4))
    begin
    await_step $((1 + RANDOM % 20))
    sleep "0.0$((RANDOM % 100))"
    kill -KILL "$(cat pid.$victim)" 2>/dev/null || fail "rank $victim has ended: $(cat err.?)"
    begun=$(date +%s%N)
    wait $started || true
    late=$((($(date +%s%N) - begun) / 1000000))
    for r in 0 1 2 3; do
        while ((r != victim)) && kill -0 "$(cat pid.$r)" 2>/dev/null; do
            (($(date +%s%N) - begun < 10000000000)) || fail "rank $r did not end within 10 s of rank $victim"
            sleep 0.05
        done
        ((r != victim)) || continue
        grep -q "rank $victim (.*ended before the run did; it had not reached" err.$r || fail "kill $k: rank $r does not name rank $victim and what it had not reached: $(cat err.$r)"
    done
    echo "kill $k: rank $victim, the others ended after $late ms: $(sed 's/.*not reached//' err.$(((victim + 1) % 4)))"
    [[ ! -e a.safetensors ]] || fail "weights were written without rank $victim"
    [[ -z $(ls kept/a 2>/dev/null | grep -v tmp) ]] || go_on kept "${counts[k % 3]}"
done
echo "all well"

#!/usr/bin/env bash
# A run of twelve jobs that is killed at ten random moments and resumed ends as one never touched.
# label: slow
#
# usage: check_cli_resume.sh SOURCE_FOLDER BUILD_FOLDER
#
# SIGKILL leaves no time to tidy up. The moments, counted in steps of training, come from a seed that is
# printed; SPILLWAY_SEED repeats them as far as a machine's timing can be repeated. Every second time
# another plan goes on: another policy, another number of devices.
set -euo pipefail

# shellcheck source=tests/support/support_resume.sh
source "$(dirname "$0")/../support/support_resume.sh" "$1" "$2"

cat >jobs.json <<'TEXT'
{"spillway_jobs": 1,
 "defaults": {"network": {"model_type": "gpt2", "n_layer": 3, "n_embd": 64, "n_head": 4,
                          "n_positions": 64, "vocab_size": 256},
              "sequence": 32, "microbatch": 2, "weights_out": "{name}.safetensors"},
 "jobs": [{"name": "short", "count": 6, "minibatches": 40, "seed": 3},
          {"name": "long", "count": 3, "minibatches": 500, "seed": 14},
          {"name": "plain", "count": 3, "minibatches": 200, "seed": 25, "keep": "best",
           "optimizer": {"kind": "sgd", "lr": 0.3, "momentum": 0.9, "schedule": "cosine"},
           "evaluate": {"every": 30, "minibatches": 3}}]}
TEXT
make_plan() { # FILE [OPTIONS]
    local file=$1
    shift
    spillway plan jobs.json "${machine[@]}" --quiet -o "$file" "$@" >plan.txt
}
# What the newest checkpoint says is the best has a file, beside the two newest.
# shellcheck disable=SC2317
best_is_kept() {
    local newest best
    newest=$(find kept/plain-1 -name 'step-*.safetensors' | sort | tail -1)
    best=$(head -c 100000 "$newest" | grep -ao '"best_step": *"[0-9]*"' | grep -o '[0-9]*')
    [[ -s $(printf 'kept/plain-1/step-%010d.safetensors' "$best") ]] &&
        (($(find kept/plain-1 -name '*.safetensors' | wc -l) <= 3))
}
# shellcheck disable=SC2317
no_rubbish() { [[ -z $(find kept -name '*.tmp') ]]; }

make_plan a.json --policy sharded-lrtf
make_plan b.json --policy spill-sequential --seed 3
spillway run a.json --log untouched.jsonl --quiet >untouched.txt
mkdir untouched
mv ./*.safetensors untouched

# The first run begins anew; the others go on. Each is killed, executor first, when it has trained some
# more steps than those between two checkpoints, or it would never get anywhere.
killed=0 runs=0 code=1
while ((code != 0 && runs < 30)); do
    plan=a.json
    ((runs % 2)) && plan=b.json
    runs=$((runs + 1))
    until=$(($(lines) + 60 + RANDOM % 100))
    spillway run "$plan" --checkpoint kept --checkpoint-every 4 --keep 2 --resume --log run.jsonl \
        --json >report.json 2>messages &
    pid=$!
    if ((killed < 10)); then
        while kill -0 "$pid" 2>/dev/null && (($(lines) < until)); do sleep "0.0$((RANDOM % 10))"; done
        child=$(pgrep -P "$pid" || true)
        [[ -n $child ]] && kill -KILL "$child" 2>/dev/null && killed=$((killed + 1))
    fi
    code=0
    wait "$pid" || code=$?
    [[ $code == 0 || $code == 3 ]] || { cat messages; echo "FAILED: exit code $code"; exit 1; }
done
echo "$runs runs, $killed of them killed; $(find kept -name '*.safetensors' | wc -l) files are kept"
check "it comes to its end" test "$code" = 0
check "it was killed ten times" test "$killed" = 10
check "the weights are those of a run never touched" same_weights
check "so are the losses, of every step" same_losses
check "nothing half-written is left" no_rubbish
check "the best evaluation's checkpoint is there" best_is_kept

rm -f ./*.safetensors
spillway run a.json --checkpoint kept --resume --json >report.json
check "what is complete is not run again" grep -q '"complete_before": true' report.json
check "its weights are written again" same_weights

# The newest checkpoint is damaged: the one before it is taken, with a word.
rm ./*.safetensors
newest=$(find kept/long-1 -name '*.safetensors' | sort | tail -1)
printf 'x' | dd of="$newest" bs=1 seek=5000 conv=notrunc 2>/dev/null
spillway run a.json --checkpoint kept --resume --json >report.json 2>messages
check "a damaged checkpoint is told" grep -q "goes back to its checkpoint" messages
check "and made good for" same_weights

# Ctrl-C leaves checkpoints behind, whatever the interval.
rm -rf kept ./*.safetensors run.jsonl
spillway run a.json --checkpoint kept --log run.jsonl --json >report.json 2>messages &
pid=$!
for _ in {1..300}; do [[ -s run.jsonl ]] && (($(wc -l <run.jsonl) > 20)) && break; sleep 0.05; done
kill -INT "$pid"
code=0
wait "$pid" || code=$?
check "stopped with 130 (found $code)" test "$code" = 130
check "with a checkpoint" grep -q '"checkpoint": ' report.json
code=0
spillway run a.json --checkpoint kept >out 2>messages || code=$?
check "to begin anew over it is refused (2, found $code)" test "$code" = 2
spillway run b.json --checkpoint kept --resume --log run.jsonl --json >report.json 2>messages
check "and it goes on to the same end" same_weights
check "with one log" same_losses

# Killed alone, it leaves an executor that writes a last checkpoint: the next one waits for that.
rm -rf kept ./*.safetensors run.jsonl
spillway run a.json --checkpoint kept --log run.jsonl --json >report.json 2>messages &
pid=$!
for _ in {1..300}; do [[ -s run.jsonl ]] && (($(wc -l <run.jsonl) > 20)) && break; sleep 0.05; done
kill -KILL "$pid"
wait "$pid" 2>/dev/null || true
code=0
spillway run b.json --checkpoint kept --resume --log run.jsonl --json >report.json 2>messages || code=$?
check "at once after kill -9, it goes on (0, found $code)" test "$code" = 0
check "to the same end" same_weights
check "losses and all" same_losses

# Data of one job are not there: the others go on, and it is resumed when they are back.
rm -rf kept ./*.safetensors run.jsonl
head -c 30000 "$source/LICENSE" >corpus.txt
sed -i 's/"minibatches": 500/"minibatches": 50, "data": "corpus.txt"/' jobs.json
make_plan a.json --policy sharded-lrtf
spillway run a.json --log untouched.jsonl --quiet >untouched.txt
mv ./*.safetensors untouched
mv corpus.txt away.txt
code=0
spillway run a.json --checkpoint kept --keep-going --log run.jsonl --json >report.json 2>messages || code=$?
check "a job without data makes it 1 (found $code)" test "$code" = 1
check "with the reason" grep -q '"failure": .*corpus.txt' report.json
check "the others are trained" test -s short-6.safetensors -a -s plain-1.safetensors -a ! -e long-1.safetensors
mv away.txt corpus.txt
spillway run a.json --checkpoint kept --resume --keep-going --log run.jsonl --json >report.json 2>messages
check "it is made up for" same_weights
check "its log is added to the others'" same_losses

# A misspelt folder trains from the beginning, and says so before it does.
spillway run a.json --checkpoint ketp --resume --json >report.json 2>messages
check "no checkpoint is told" grep -q "no checkpoint of these jobs in 'ketp': they start from the beginning" messages
exit $failed

#!/usr/bin/env bash
# A run of jobs that take turns in host memory, killed at three random moments and resumed, ends as one never touched.
# label: medium
#
# usage: check_cli_turns.sh SOURCE_FOLDER BUILD_FOLDER
#
# Some jobs are through and closed at a kill, some under way, some not opened yet. The moments come from a seed that is
# printed (SPILLWAY_SEED). Plans of settled and of spilled jobs take turns at going on; each is for host memory that
# holds about half of the jobs.
set -euo pipefail

# shellcheck source=tests/support/support_resume.sh
source "$(dirname "$0")/../support/support_resume.sh" "$1" "$2"

cat >jobs.json <<'TEXT'
{"spillway_jobs": 1,
 "defaults": {"network": {"model_type": "gpt2", "n_layer": 3, "n_embd": 64, "n_head": 4,
                          "n_positions": 64, "vocab_size": 256},
              "sequence": 32, "microbatch": 2, "weights_out": "{name}.safetensors"},
 "jobs": [{"name": "a", "count": 3, "minibatches": 60, "seed": 3},
          {"name": "b", "count": 2, "minibatches": 100, "seed": 14},
          {"name": "c", "minibatches": 80, "seed": 25, "keep": "best",
           "optimizer": {"kind": "sgd", "lr": 0.3, "momentum": 0.9, "schedule": "cosine"},
           "evaluate": {"every": 30, "minibatches": 3}}]}
TEXT
make_plan() { # FILE [OPTIONS]
    local file=$1
    shift
    spillway plan jobs.json "${machine[@]}" --host-memory 9MiB --quiet -o "$file" "$@" >plan.txt
}

# The reference has all jobs in host memory.
spillway plan jobs.json "${machine[@]}" --quiet -o whole.json >plan.txt
make_plan settled.json
make_plan streamed.json --policy sharded-lrtf
check "with room for all nobody takes turns" test "$(grep -c '"pass": "open"' whole.json)" = 0
for plan in settled.json streamed.json; do
    check "jobs take turns in $plan" test "$(grep -c '"pass": "open"' $plan)" -ge 6
done
spillway run whole.json --log untouched.jsonl --quiet >untouched.txt
mkdir untouched
mv ./*.safetensors untouched
for plan in settled.json streamed.json; do
    spillway run $plan --log run.jsonl --quiet >report.txt
    check "the weights of $plan are those of all jobs at once" same_weights
    check "so are the losses" same_losses
    rm ./*.safetensors run.jsonl
done

killed=0 runs=0 code=1
while ((code != 0 && runs < 20)); do
    plan=settled.json
    ((runs % 2)) && plan=streamed.json
    runs=$((runs + 1))
    until=$(($(lines) + 40 + RANDOM % 60))
    spillway run "$plan" --checkpoint kept --checkpoint-every 10 --resume --log run.jsonl --json \
        >report.json 2>messages &
    pid=$!
    if ((killed < 3)); then
        while kill -0 "$pid" 2>/dev/null && (($(lines) < until)); do sleep 0.03; done
        child=$(pgrep -P "$pid" || true)
        [[ -n $child ]] && kill -KILL "$child" 2>/dev/null && killed=$((killed + 1))
    fi
    code=0
    wait "$pid" || code=$?
    [[ $code == 0 || $code == 3 ]] || { cat messages; echo "FAILED: exit code $code"; exit 1; }
done
echo "$runs runs, $killed of them killed"
check "it comes to its end" test "$code" = 0
check "it was killed twice or more" test "$killed" -ge 2
check "the weights are those of a run never touched" same_weights
check "so are the losses, of every step" same_losses
exit $failed

#!/usr/bin/env bash
# A run that keeps outputs of frozen layers ends as one that keeps none, also when it is killed and resumed.
# label: medium
#
# usage: check_cli_outputs.sh SOURCE_FOLDER BUILD_FOLDER
#
# Microbatches of one sample: losses and weights are the same bits. One job trains fewer layers than the others, so its
# outputs are others. The jobs end one after the other, so that at some resumes nobody needs the outputs of some.
set -euo pipefail

# shellcheck source=tests/support/support_resume.sh
source "$(dirname "$0")/../support/support_resume.sh" "$1" "$2"

sums=$source/docs/examples/sums
spillway tokenize "$sums/sums.jsonl" --rows --tokenizer "$sums" --end '<|endoftext|>' -o sums.rows >/dev/null
cat >jobs.json <<'TEXT'
{"spillway_jobs": 1,
 "defaults": {"network": {"model_type": "gpt2", "n_layer": 6, "n_embd": 64, "n_head": 4, "n_positions": 64,
                          "vocab_size": 452, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0},
              "data": "sums.rows", "sequence": 32, "microbatch": 1, "microbatches": 4, "weights_out": "{name}.safetensors",
              "evaluate": {"every": 15, "minibatches": 2}},
 "jobs": [{"name": "a", "count": 2, "epochs": 6, "base": "sums", "freeze": {"layers": [[0, 5]]}},
          {"name": "short", "epochs": 2, "base": "sums", "seed": 9, "freeze": {"layers": [[0, 5]]}, "optimizer": "sgd"},
          {"name": "other", "epochs": 7, "seed": 4, "freeze": {"layers": [[0, 3]]}, "keep": "best"},
          {"name": "all", "epochs": 1, "seed": 6}]}
TEXT
spillway plan jobs.json "${machine[@]}" --policy sharded-lrtf --quiet -o without.json >/dev/null
spillway plan jobs.json "${machine[@]}" --policy sharded-lrtf --keep-outputs 64MiB --quiet -o kept.json >plan.txt
grep -E '^(kept|keeping) |^ +nothing' plan.txt
check "outputs of two kinds are kept" [ "$(grep -c '^kept ' plan.txt)" = 2 ]
check "three jobs share one" grep -q 'made by a-1-outputs for a-1, a-2, short' plan.txt
check "it says what cannot be kept" grep -q "nothing of 'all': its first blocks are not frozen" plan.txt
check "the judge agrees" spillway check kept.json
spillway plan jobs.json "${machine[@]}" --policy sharded-lrtf --keep-outputs 1KiB --quiet >small.txt
check "a small budget keeps nothing, and says so" grep -q '^keeping *nothing: nothing within the budget' small.txt

spillway run without.json --log untouched.jsonl --quiet >/dev/null
mkdir untouched
mv ./*.safetensors untouched
spillway run kept.json --log run.jsonl --quiet >run.txt
check "losses are those without" same_losses
check "weights are those without" same_weights
check "the maker is in the report, without a loss" grep -Eq '^a-1-outputs +[0-9]+ of [0-9]+ .* - +-$' run.txt
check "it is not ranked" [ "$(grep -c outputs run.txt)" = 2 ]
rm -f ./*.safetensors run.jsonl

killed=0 runs=0 code=1
while ((code != 0 && runs < 12)); do
    runs=$((runs + 1))
    until=$(($(lines) + 40 + RANDOM % 60))
    spillway run kept.json --checkpoint kept --checkpoint-every 4 --keep 2 --resume --log run.jsonl --json >report.json \
        2>messages &
    pid=$!
    if ((killed < 4)); then
        while kill -0 "$pid" 2>/dev/null && (($(lines) < until)); do sleep "0.0$((RANDOM % 10))"; done
        child=$(pgrep -P "$pid" || true)
        [[ -n $child ]] && kill -KILL "$child" 2>/dev/null && killed=$((killed + 1))
    fi
    code=0
    wait "$pid" || code=$?
    [[ $code == 0 || $code == 3 ]] || { cat messages; echo "FAILED: exit code $code"; exit 1; }
done
echo "$runs runs, $killed killed"
check "the last run ended" [ "$code" = 0 ]
check "losses after resumes are those without" same_losses
check "weights after resumes are those without" same_weights
check "nothing is left to do" spillway run kept.json --checkpoint kept --resume --quiet
exit $failed

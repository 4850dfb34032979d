#!/usr/bin/env bash
# Every verb's answer to --json, in its main variants, and every file that it writes fit their schemas in docs/schemas.
# label: medium
#
# usage: check_schemas.sh SOURCE_FOLDER BUILD_FOLDER
#
# A verb with --json that no command here calls fails the test, and so does an answer that has no schema.
set -euo pipefail

source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
[[ -x $build/spillway && -x $build/spillway-exec && -x $build/schema_check ]] ||
    { echo "the programs are not built"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/dir" "$work/answers"
cd "$work/dir"
export PATH=$build:$PATH HOME=$work/dir XDG_CONFIG_HOME=$work/dir/config SPILLWAY_HISTORY=$work/history.db LC_ALL=C NO_COLOR=1
export INPUT=$source/tests/golden/cli BUILD=$build
unset SPILLWAY_EXEC TMPDIR
examples=$source/docs/examples papers=$source/plots/papers
# shellcheck disable=SC1091
source "$source/tests/golden/cli/helpers.sh"
failed=0 count=0

# Keeps the answer. A "no" is an answer; an error object alone is none.
answer() { # ARGUMENTS...
    local code=0 file
    count=$((count + 1))
    file=$work/answers/$(printf %03d $count).json
    spillway "$@" --json --quiet >"$file" 2>"$work/told" || code=$?
    ((code <= 1)) || { echo "exit $code: spillway $*"; cat "$work/told"; failed=1; }
}

jobs
sed 's/"minibatches"/"microbatches": 4, "minibatches"/' jobs.json >parallel.json
sed 's/"minibatches": 2/"minibatches": 2, "weights_out": "b.safetensors", "keep": "best", "evaluate": {"every": 1, "minibatches": 1}/' \
    jobs.json >evaluated.json
printf '{"spillway_jobs": 1, "defaults": {"network": "gpt2-tiny-bytes", "sequence": 32, "minibatches": 4000},
 "jobs": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}' >three.json
instance
spase
chain
gpus=(--hw '4x h100-sxm5-80gb')

# machines and networks
answer models list
for network in gpt2 bert-base resnet-50 mixtral-8x7b t5-small vit-base; do answer models show $network; done
answer hardware list
answer hardware show 'dgx-h100 + 2x dgx-a100-80gb 2:1' --route 0,9
answer hardware show host-2-cores
answer hardware detect -o found.json
answer hardware check found.json
answer hardware import "$INPUT/hardware-import/topology.xml" --hw '2x a100-sxm4-40gb' -o machine.json --as-of 2026-11-20
answer hardware import "$INPUT/hardware-import/bandwidth.json" --hw machine.json -o machine.json --force \
    --as-of 2026-11-21
cat >runs.csv <<'END'
# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor parallelism,data parallelism,pipeline parallelism,exposed,iteration time (ms)
2,8,4,1024,16,12,1024,2,1,1,1,100
4,32,4,2048,16,12,1024,2,1,2,1,900
END
keeps=()
for figure in matmul-efficiency collective-latency matmul-{depth,sustained} score-bytes-{for,back}ward loss-passes \
    elementwise-passes misaligned-rate kernel-gap dispatch-latency nvlink-latency; do keeps+=(--keep "$figure"); done
answer calibrate dgx-a100-80gb runs.csv --half none
answer calibrate dgx-a100-80gb runs.csv "${keeps[@]}" --keep nvlink-bandwidth=260GB/s -o kept.json
answer measure -o measured.json --budget 2s --backend host
answer doctor

# does it fit, what if
answer mem gpt2 --hw rtx-3090-24gb
answer mem gpt2 --hw '2x a100-sxm4-40gb' --precision bf16 -s 512 --way dp=2,v=12,zero=3+recompute
answer mem gpt2-xl --hw rtx-3090-24gb --device-memory 1GiB --host-memory 8GiB
answer mem t5-small --hw rtx-3090-24gb --storage-memory 1TB --storage-rate 3GB/s
answer whatif jobs.json --hw p4d.24xlarge --hw g5.xlarge --prices "$source/docs/prices-2026-11.csv" --deadline 1h \
    --max-cost 600 \
    --today 2026-11-28
answer whatif jobs.json --hw p4d.24xlarge --price p4d.24xlarge=20 --sensitivity price,bw

# plans
answer jobs new gpt2 -o new.json
answer plan jobs.json "${machine[@]}" --policy sharded-lrtf -o plan.json
answer plan jobs.json "${machine[@]}" --policy all
cp "$work/answers/$(printf %03d $count).json" all.answer
answer plan jobs.json "${machine[@]}" --policy optimal --iterations 50
answer plan jobs.json "${machine[@]}" --policy sharded-lrtf --dispatch live -o live.json
answer plan jobs.json "${machine[@]}" --device-memory 64KiB
answer plan jobs.json "${machine[@]}" --storage-memory 1GiB --storage-rate 1GB/s --stored all -o stored.json
answer plan jobs.json "${machine[@]}" --policy fifo --write-instance written.json
answer plan jobs.json --hw host-2-cores --link-rate 2GB/s --device-memory 34MiB --activations swap -o swapped.json
answer plan three.json --hw '2x rtx-3090-24gb' --policy random -o turns.json
answer plan three.json --hw '2x rtx-3090-24gb' --no-p2p --policy saturn --interval 1s --restart 1ms -o anew.json
answer plan jobs.json "${gpus[@]}" --policy optimus-dynamic --threshold 1ms --restart 0s
answer plan parallel.json "${gpus[@]}" --parallel dp=2,tp=2,zero=1 -o spread.json
answer plan evaluated.json "${machine[@]}" --policy sharded-lrtf -o evaluated-plan.json
answer plan jobs.json "${machine[@]}" --device-memory 64MiB --dilate 3 --p2p-rate 1GB/s --parallel pp=2,offload=states \
    -o dilated.json
answer partition parallel.json --job b "${gpus[@]}" --levels 4x250GB/s --by balanced --microbatches 4
answer tokenize "$source"/README.md --tokenizer "$source"/tests/golden/tokenizer/gpt2 --end "<|endoftext|>" \
    -o readme.bin
answer solve instance.json -o timetable.json
answer solve spase.json -o spase-schedule.json
answer solve spase.json --interval 5 --restart 1
answer solve chain.json -o chain-schedule.json
answer policy new mine
policies good busy_device
answer policy test ./good.so --cases 10
answer policy test ./busy_device.so --cases 10
answer bench --policies fifo,srtf,searched --family tight --seeds 3
answer bench --policies fifo,srtf,searched --family tight --seeds 3 --counterfactual 5:20
answer bench --policies fifo --workloads jobs.json --seeds 2 "${machine[@]}" --real
mkdir library
cp "$source"/docs/instances/tight-1.json library
mkdir library/best
cp "$source"/docs/instances/best/tight-1.json library/best
answer bench --library library --time-limit 0.1s

# simulation
answer simulate plan.json --trace predicted.json.gz
answer simulate live.json --dispatch live --policy srtf
answer simulate spread.json
answer simulate parallel.json --hw '4x a100-sxm4-80gb' --parallel tp=2,pp=2 --contents
answer simulate plan.json --slow 1=1.5 --noise 10%
answer simulate plan.json --failures "$examples/failures.json" --runs 2
answer serve "$examples/serving.json" -o placement.json
answer serve "$examples/serving.json" --placement placement.json
answer swarm "$examples/swarm.json"
answer sweep plan jobs.json "${machine[@]}" --vary devices=1,2 -o points.csv -f makespan_s

# runs and what is made of them
answer run plan.json --trace measured.json.gz --log run.jsonl --checkpoint kept
answer run plan.json --checkpoint kept --resume
answer run evaluated-plan.json --log evaluated.jsonl
answer run dilated.json --trace dilated-trace.json
grep -q '"dilation": *{ *"factor": 3,' "$work/answers/$(printf %03d $count).json" || { echo "run does not tell the dilation"; exit 1; }
answer run live.json --dispatch live --policy srtf --executed-order executed.json
answer history --verb run --error-by policy
answer compare predicted.json.gz measured.json.gz --max-error 0.001%
answer explain plan.json measured.json.gz
answer explain measured.json.gz
answer trace show measured.json.gz
answer trace export predicted.json.gz measured.json.gz -o both.json.gz
answer trace replay plan.json predicted.json.gz --scale compute=0.5
answer trace chakra spread.json -o there
answer trace simulate there "${gpus[@]}"
answer plot timeline predicted.json.gz -o timeline.svg
answer plot memory predicted.json.gz -o memory.svg
answer plot throughput all.answer -o throughput.svg
answer check plan.json

# figures of papers, help
mkdir figures
cp "$INPUT/repro/toy.json" figures
answer repro list
answer repro show toy --papers figures
answer repro run toy --papers figures -o toy
answer repro run shard-toy --papers "$papers"
answer repro all --papers figures
answer help
cp "$work/answers/$(printf %03d $count).json" "$work/help.json"
spillway --version --json >"$work/answers/version.json"
code_of spillway plan nothing.json --json >"$work/answers/error.json" 2>/dev/null

mapfile -t written < <(find . -type f \( -name '*.json' -o -name '*.json.gz' -o -name '*.jsonl' \))
schema_check "$source/docs/schemas" "$work/answers"/*.json "${written[@]}" "$examples"/*.json "$papers"/*.json \
    "$papers"/data/*.json \
    "$examples"/*/config.json "$papers"/networks/*.json "$source"/docs/instances/*.json "$source"/docs/instances/best/*.json \
    >"$work/fitting" || failed=1

# Each verb with --json was called, and each schema of an answer or a file was used.
while read -r verb; do
    [[ $verb != completion ]] || continue # its option says that a script has no JSON form
    grep -qhF "\"verb\": \"$verb\"" "$work/answers"/*.json ||
        { echo "no command here calls 'spillway $verb --json'"; failed=1; }
done < <(awk '/"command":/ {split($0, words, "\""); verb = words[4]; sub("spillway ", "", verb)} /"name": "json"/ {print verb}' \
    "$work/help.json")
for schema in "$source"/docs/schemas/*.schema.json; do
    name=${schema##*/}
    name=${name%.schema.json}
    case $name in common | report) continue ;; esac
    cut -d ' ' -f 1 "$work/fitting" | grep -qx "$name" || { echo "nothing here fits $name.schema.json"; failed=1; }
done
echo "$(wc -l <"$work/fitting") answers and files of $(cut -d ' ' -f 1 "$work/fitting" | sort -u | wc -l) schemas fit"
exit $failed

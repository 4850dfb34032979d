#!/usr/bin/env bash
# The whole chain with the real executor: plan, simulate, run, compare, export, plot.
# label: medium
#
# usage: check_cli_run.sh SOURCE_FOLDER BUILD_FOLDER
#
# Times are not looked at, for the machine may be busy; that everything is there and fits together is.
set -euo pipefail

source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
[[ -x $build/spillway && -x $build/spillway-exec ]] || { echo "the programs are not built"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export PATH=$build:$PATH HOME=$work XDG_CONFIG_HOME=$work
machine=()
# shellcheck disable=SC1091 # sets machine
source "$source/tests/golden/cli/helpers.sh"

fail() { echo "FAILED: $*"; exit 1; }
has_keys() { # FILE KEY...
    local file=$1 key
    shift
    for key in "$@"; do grep -q "\"$key\": " "$file" || fail "$file has no \"$key\""; done
}
number() { sed -n "s/^  \"$2\": \([-0-9.e+]*\),\{0,1\}$/\1/p" "$1"; } # FILE KEY, at the top level

cat "$source"/LICENSE >text.txt
jobs '"minibatches": 6, "data": "text.txt", "weights_out": "a.safetensors"'
spillway plan jobs.json "${machine[@]}" -o plan.json --json >plan-report.json
spillway simulate plan.json --trace predicted.json.gz --json >simulate.json
spillway run plan.json --trace measured.json.gz --log run.jsonl --json >run.json 2>messages ||
    fail "run: $(cat messages)"
has_keys run.json schema tool_version makespan_s tokens_per_s predicted_makespan_s \
    throughput_error measured_tokens_per_s first_loss final_loss weights_file ranked_by results rank time_s
grep -q '"completed": true' run.json || fail "the run is not complete"
[[ -s a.safetensors ]] || fail "no weights were written"
grep -q 'expect the prediction to be off' messages || fail "no warning about figures of another machine"

# One trace is all of the other's operations.
spillway trace show predicted.json.gz --json >p.json
spillway trace show measured.json.gz --json >m.json
[[ $(number p.json operations) == "$(number m.json operations)" ]] || fail "operations differ"
[[ $(number p.json plan_fingerprint) == "$(number m.json plan_fingerprint)" ]] || fail "plans differ"

spillway compare predicted.json.gz measured.json.gz --json >compare.json
has_keys compare.json throughput_error by_class compute h2d d2h waiting worst
code=0
spillway compare predicted.json.gz measured.json.gz --max-error 0% >compare.txt 2>messages || code=$?
[[ $code == 1 ]] || fail "an error above its bound ended with $code"
grep -q 'is larger than 0.0 %' messages || fail "no reason: $(cat messages)"
[[ -s compare.txt ]] || fail "the report is missing"
spillway compare predicted.json.gz measured.json.gz --max-error 1000000% >compare.txt
if command -v gnuplot >/dev/null; then
    spillway compare predicted.json.gz measured.json.gz --plot compare.svg >compare.txt
    grep -q "<svg" compare.svg || fail "the picture is none"
    code=0
    spillway compare predicted.json.gz measured.json.gz --plot nowhere/compare.svg >out 2>messages || code=$?
    [[ $code == 2 && ! -s out ]] || fail "without its picture a comparison ended with $code"
fi
code=0
spillway compare measured.json.gz predicted.json.gz >out 2>messages || code=$?
[[ $code == 2 && ! -s out ]] || fail "traces in the wrong order ended with $code"

# The same seed gives the same losses, whatever the time.
spillway run plan.json --log again.jsonl --no-weights --quiet >out
losses() { grep '"step"' "$1" | sed 's/, *"tokens_per_s.*//' | sort; }
diff <(losses run.jsonl) <(losses again.jsonl) || fail "two runs of one plan have other losses"

# Jobs that each have one device are carried out, whoever chose it, with the bits of plans that keep states resident.
slow=(--hw host-2-cores --devices 2 --link-rate 60MB/s) # states had better stay
for way in '--policy model-parallel' '--parallel dp=1' '--policy saturn' '--policy max-heuristic' '--policy optimus'; do
    jobs '"minibatches": 4, "microbatches": 3, "weights_out": "{name}.safetensors"'
    [[ $way == --parallel* || $way == *model-parallel ]] ||
        sed -i 's/"defaults": {/&"parallel": {"data": 1}, /' jobs.json
    # shellcheck disable=SC2086 # an option and its value
    spillway plan jobs.json "${slow[@]}" $way -o way.json >out
    grep -q '^next: spillway run way.json$' out || fail "$way: the next command is no run"
    [[ $way == *model-parallel ]] || grep -q ' resident, ' out || fail "$way: no job is resident"
    rm -f a.safetensors
    spillway run way.json --quiet >out
    [[ $way == *model-parallel ]] && mv a.safetensors first.safetensors && continue
    cmp -s first.safetensors a.safetensors || fail "$way: other weights than those of a resident plan"
done

# So are pipelines of Saturn's schedules: with the bits of one device, before and after jobs that have one.
jobs '"minibatches": 4, "microbatches": 3, "weights_out": "{name}.safetensors"'
sed -i 's/"defaults": {/&"parallel": {"pipeline": 2}, /' jobs.json
spillway plan jobs.json "${slow[@]}" --p2p-rate 1GB/s --policy saturn -o gangs.json >out
grep -q 'pp=2 1f1b' out || fail "no job is a pipeline"
rm -f a.safetensors
spillway run gangs.json --quiet >out 2>messages || fail "gangs: $(cat messages)"
cmp -s first.safetensors a.safetensors || fail "a pipeline in Saturn's schedule has other weights"

# Exchanges of a tensor group take at least the time of the links, also between dilated devices.
jobs '"minibatches": 2'
sed -i 's/"defaults": {/&"parallel": {"tensor": 2}, /' jobs.json
for rate in 1GB/s 2MB/s; do
    spillway plan jobs.json "${slow[@]}" --p2p-rate $rate --dilate 2 -o group.json >out
    spillway run group.json --quiet --json >group-run.json 2>messages || fail "a tensor group: $(cat messages)"
    planned+=("$(number group-run.json predicted_makespan_s)")
done
awk -v fast="${planned[0]}" -v slow="${planned[1]}" -v measured="$(number group-run.json makespan_s)" \
    'BEGIN { exit !(slow > 2 * fast && measured >= slow - fast) }' ||
    fail "links of 2 MB/s: planned ${planned[*]} s, measured $(number group-run.json makespan_s) s"

# A job whose checkpoints are lost begins anew, beside what is complete, with its optimizer where it was.
for place in cpu device; do
    clip=
    [[ $place == cpu ]] && clip=', "optimizer": {"kind": "adamw", "clip": 0.5}'
    jobs '"minibatches": 4, "weights_out": "b.safetensors"'"$clip"
    spillway plan jobs.json "${machine[@]}" --optimizer $place -o placed.json >out
    spillway run placed.json --checkpoint kept --quiet >out
    mv b.safetensors first.safetensors
    rm -r kept/a
    spillway run placed.json --checkpoint kept --resume --trace resumed.json.gz --json >out 2>messages ||
        fail "optimizers on $place, resumed: $(cat messages)"
    grep -q '"complete_before": true' out || fail "job 'b' is not complete: $(cat out)"
    cmp first.safetensors b.safetensors || fail "optimizers on $place: other weights when resumed"
    there=device
    gzip -dc resumed.json.gz | grep '"update"' >out && there=cpu
    [[ $there == "$place" ]] || fail "optimizers on $place are on $there when resumed"
    rm -r kept
done

# A name with control characters costs no result: the table comes, and no such character reaches it.
odd=$work/$'a\eb'
mkdir "$odd"
cp text.txt "$odd"
cd "$odd"
jobs '"minibatches": 2, "data": "text.txt", "weights_out": "a.safetensors"'
spillway plan jobs.json "${machine[@]}" -o plan.json --quiet >out
spillway run plan.json --trace $'t\n1' --log $'l\e1' >out 2>messages ||
    fail "control characters in names: $(cat messages)"
grep -q '^RANK' out || fail "control characters in names: no table"
! grep -q $'\e' out messages || fail "control characters in names reach the terminal"
[[ -s a.safetensors && -s $'t\n1' && -s $'l\e1' ]] || fail "control characters in names: a file is missing"
cd "$work"

spillway trace export predicted.json.gz measured.json.gz -o both.json.gz --minibatches 2 >out
gzip -dc both.json.gz >both.json
grep -q traceEvents both.json || fail "the export is no Chrome trace"
if command -v gnuplot >/dev/null; then
    spillway plan jobs.json "${machine[@]}" --policy all --json >all.json
    spillway plot timeline predicted.json.gz measured.json.gz -o timeline.svg >out
    spillway plot memory measured.json.gz -o memory.png >out
    spillway plot throughput all.json -m measured.json.gz -o policies.svg --keep-script >out
    for file in timeline.svg memory.png policies.svg policies.gp; do
        [[ -s $file ]] || fail "there is no $file"
    done
fi
echo "the chain holds"

#!/usr/bin/env bash
# The tour of docs/getting-started.md, run for real: five training runs of three GPTs on two devices of 96 MiB,
# none of which could hold even one of the networks with its optimizer state. Then model selection
# among four smaller runs, killed in the middle and taken up again on another machine; then six adapters of
# one network (adapters.sh).
#
# usage: demo.sh BUILD_FOLDER
#
# Everything is written to BUILD_FOLDER/demo. The devices are parts of this host's memory with
# threads of their own; copies to and from them are slowed down to 2 GB/s to stand in for a link.
set -euo pipefail

build=$(cd "${1:?usage: demo.sh BUILD_FOLDER}" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$build/demo
started=$SECONDS
spillway=$build/spillway
[[ -x $spillway ]] || { echo "demo.sh: there is no program '$spillway': build it first" >&2; exit 3; }
mkdir -p "$out"
cd "$out"
export PATH=$build:$PATH SPILLWAY_HISTORY=history.db
rm -f history.db

. "$here/tour.sh"
step=0
say() { step=$((step + 1)); printf '\n%s--- %d. %s%s\n' "$bold" "$step" "$1" "$plain"; shift; printf '%s\n' "$@"; }

cp -R "$here"/*.json "$here"/gpt-*/ "$here"/llama-*/ .
# Text to train on: the licences that come with the system, in a fixed order.
licences=/usr/share/common-licenses
: >licences.txt
for name in Apache-2.0 Artistic BSD CC0-1.0 GFDL-1.2 GFDL-1.3 GPL-1 GPL-2 GPL-3 LGPL-2 LGPL-2.1 \
    LGPL-3 MPL-1.1 MPL-2.0; do
    [[ -r $licences/$name ]] && cat "$licences/$name" >>licences.txt
done
# Another system: the texts of this project serve as well.
[[ -s licences.txt ]] || cat "$here"/../../LICENSE "$here"/../../README.md "$here"/../man/*.scd >licences.txt

say "Measure this machine" \
    "How fast it multiplies matrices and copies memory. Done once; here it goes to a file of its own."
show spillway measure --budget 40s -o hardware.json

say "What is a network made of?" \
    "GPT-2 as Hugging Face describes it, layer by layer: this is what has to fit and to move."
show spillway models show gpt2 --microbatch 4 --sequence 128

say "Plan five training runs for two devices of 96 MiB, by every policy" \
    "Each job's state is larger than a device. The gap is to a bound that no plan can beat."
machine=(--hw hardware.json --devices 2 --device-memory 96MiB --link-rate 2GB/s)
show spillway plan jobs.json "${machine[@]}" --policy all
spillway plan jobs.json "${machine[@]}" --policy all --json >policies.json

say "Keep the plan of one policy" \
    "The device with the longest remaining job first, shards copied in while others compute."
show spillway plan jobs.json "${machine[@]}" --policy sharded-lrtf -o plan.json

say "Simulate it" "The same plan in virtual time: what limits it, and how full memory gets."
show spillway simulate plan.json --trace predicted.json.gz

say "Run it" "Real threads, real copies, real training on the licences of this system."
show spillway run plan.json --trace measured.json.gz --log run.jsonl

say "Was the prediction right?" "Predicted over measured, minus one, and where the time went."
show spillway compare predicted.json.gz measured.json.gz

say "Pictures" "The timeline has the prediction above the measurement."
if command -v gnuplot >/dev/null; then
    show spillway plot timeline predicted.json.gz measured.json.gz -o timeline.svg
    # A part from the middle, short enough that single shards can be seen.
    spillway trace show measured.json.gz --json >measured-summary.json
    middle=$(sed -n 's/^  "makespan_s": \([0-9.e+-]*\),$/\1/p' measured-summary.json)
    read -r from to < <(awk -v s="$middle" 'BEGIN { printf "%.3fs %.3fs\n", 0.5 * s, 0.55 * s }')
    show spillway plot timeline predicted.json.gz measured.json.gz --from "$from" --to "$to" \
        -o timeline-middle.svg
    show spillway plot throughput policies.json -m measured.json.gz -o throughput.svg
    show spillway plot memory predicted.json.gz measured.json.gz -o memory.svg
else
    echo "gnuplot was not found: no pictures"
fi
show spillway trace export predicted.json.gz measured.json.gz --minibatches 4 -o chrome.json.gz

say "A bad night" \
    "Which of four runs learns best? Two devices of 16 MiB are to find out, and are switched off."
rm -rf kept night.jsonl selection-*.safetensors
show spillway plan selection.json --hw hardware.json --devices 2 --device-memory 16MiB \
    --link-rate 2GB/s -o two.json
cut_off 70 spillway run two.json --checkpoint kept --checkpoint-every 5 --log night.jsonl
find kept -name '*.safetensors' | sort

say "The next morning" \
    "One device is left, and another policy is wanted. What is complete is kept, the rest goes on."
show spillway plan selection.json --hw hardware.json --devices 1 --threads 1 --device-memory 20MiB \
    --policy srtf -o one.json
show spillway run one.json --checkpoint kept --resume --log night.jsonl
cksum selection-*.safetensors >resumed.txt
show spillway run two.json
if cksum selection-*.safetensors | cmp -s - resumed.txt; then
    printf '\nThe weights have the same bits as those of this run, which nobody touched.\n'
else
    echo "demo.sh: the weights differ from those of this run, which nobody touched" >&2
    exit 1
fi

say "One base, six adapters" \
    "Fine-tuning runs of one network, which streams through a small device once for all of them."
"$here/adapters.sh" "$build" hardware.json

say "What was promised, and what came of it" "Each plan, simulation and run is in a history; this is the demo's own."
show spillway history --verb run
show spillway history --error-by policy

say "What was made, in $((SECONDS - started)) seconds" "$out:"
describe() { [[ -e $1 ]] && printf '  %-24s %s\n' "$1" "$2"; return 0; }
describe hardware.json "this machine's profile"
describe jobs.json "the five jobs"
describe policies.json "every policy's plan in figures"
describe plan.json "the plan: what runs where, in which order"
describe predicted.json.gz "what the simulator says"
describe measured.json.gz "what really happened"
describe run.jsonl "loss and speed of each minibatch"
describe night.jsonl "the same of the four runs that were cut off"
describe kept "their checkpoints"
describe adapters "a base as a folder of the Hub, and six adapters of it as folders of PEFT"
describe small.safetensors "the weights of one trained network"
describe timeline.svg "who ran what, when: prediction above measurement"
describe timeline-middle.svg "a short part from the middle of it"
describe throughput.svg "policies beside each other"
describe memory.svg "memory in use over time"
describe history.db "predictions and measurements, in a database of SQLite"
describe chrome.json.gz "open it in ui.perfetto.dev"

#!/usr/bin/env bash
# A convolutional network from its jobs file to its weights: trained on CIFAR-10's binary format and on a folder of
# images, evaluated, killed and resumed, its weights read back; and data that are refused.
# label: medium
#
# usage: check_cli_images.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail

# shellcheck source=tests/support/support_resume.sh
source "$(dirname "$0")/../support/support_resume.sh" "$1" "$2"

fail() { echo "FAILED: $*"; exit 1; }
refused() { # TEXT: the last command's code, and what it wrote to `messages`
    [[ $code == 2 ]] || fail "'$1': exit code $code"
    grep -qF "$1" messages || fail "no '$1' in: $(cat messages)"
}
network='{"model_type": "resnet", "embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1],
          "layer_type": "basic", "image_size": 32, "num_labels": 10}'
jobs_file() { # FILE DATA [KEYS]
    cat >"$1" <<TEXT
{"spillway_jobs": 1, "defaults": {"network": $network, "microbatch": 6, "microbatches": 2, "data": "$2"},
 "jobs": [{"name": "small", "minibatches": 40, "weights_out": "{name}.safetensors",
           "optimizer": {"kind": "sgd", "lr": 0.05, "momentum": 0.9}${3:-}}]}
TEXT
}
records() { # COUNT LABELS: labels in turn, pixels from a text
    local i
    for ((i = 0; i < $1; i++)); do
        printf '%b' "\\x0$(printf %x $((i % $2)))"
        head -c $((3072 + i * 331)) "$source/CHANGELOG.md" | tail -c 3072
    done
}
plan() { spillway plan jobs.json "${machine[@]}" --quiet -o plan.json "$@" >plan.txt; } # [OPTIONS]

# --- trained, killed, resumed ---------------------------------------------------------------------
records 30 10 >data_batch_1.bin
jobs_file jobs.json data_batch_1.bin ', "keep": "best", "evaluate": {"every": 10, "minibatches": 1}'
plan --policy sharded-lrtf
spillway run plan.json --log untouched.jsonl --json >untouched.json
mkdir untouched
mv ./*.safetensors untouched
(($(grep -c '"evaluation"' untouched.jsonl) >= 4)) || fail "evaluations are missing: $(head -3 untouched.jsonl)"

until=12
spillway run plan.json --checkpoint kept --checkpoint-every 3 --log run.jsonl --quiet >out 2>messages &
pid=$!
while kill -0 $pid 2>/dev/null && (($(lines) < until)); do sleep 0.02; done
executor=$(pgrep -P $pid || true)
[[ -z $executor ]] || kill -KILL "$executor" 2>/dev/null || true
kill -KILL $pid 2>/dev/null || true
wait $pid 2>/dev/null || true
# The bits depend on the threads of a device, so their number stays.
plan --policy spill-sequential
spillway run plan.json --checkpoint kept --checkpoint-every 3 --resume --log run.jsonl --quiet >out 2>messages ||
    fail "the run does not go on: $(cat messages)"
check "a run that was killed ends with the same weights" same_weights
check "and with the same losses" same_losses

# --- weights --------------------------------------------------------------------------------------
head -c 6000 small.safetensors >head.txt
names=$(grep -aoE '"[a-z0-9._]+": *\{"dtype"' head.txt | cut -d'"' -f2)
for name in conv1.weight bn1.weight bn1.running_mean bn1.running_var layer1.0.conv2.weight \
    layer2.0.downsample.0.weight layer2.0.downsample.1.bias fc.weight fc.bias; do
    grep -qx "$name" <<<"$names" || fail "no tensor '$name' in: $names"
done
# A step of nothing changes the running means only: 144 numbers.
mv small.safetensors trained.safetensors
sed 's/"weights_out"/"weights_in": "trained.safetensors", &/; s/"minibatches": 40/"minibatches": 1/
     s/"lr": 0.05, "momentum": 0.9/"lr": 1e-30/' jobs.json >again.json
spillway plan again.json "${machine[@]}" --quiet -o again-plan.json >plan.txt
spillway run again-plan.json --quiet >out 2>messages || fail "weights are not read back: $(cat messages)"
different=$({ cmp -l small.safetensors trained.safetensors || true; } | wc -l)
((different > 0 && different <= 4 * 144)) || fail "$different bytes of the weights differ"

# --- a folder of images ---------------------------------------------------------------------------
png=iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAAXNSR0IArs4c6QAAABhJREFUCJljPMEgwsDMgIlYGCSwiA5aCQA4XwJK6MovKQAAAABJRU5ErkJggg==
jpeg=/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQ
jpeg+=YEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//wAARCAAIAAgD
jpeg+=ASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAb/xAAXEAEAAwAAAAAAAAAAAAAAAAAAAgVi/8QAFQEBAQAAAAAAAAAAAAAAAAAABQb/
jpeg+=xAAYEQADAQEAAAAAAAAAAAAAAAAAAQIDUf/aAAwDAQACEQMRAD8Amo12QFY9qBXvfT//2Q==
network=${network/\"num_labels\": 10/\"num_labels\": 2}
mkdir -p images/ants images/bees
for i in 1 2 3 4 5 6; do
    base64 -d <<<$png >images/ants/$i.png
    base64 -d <<<$jpeg >images/bees/$i.jpg
done
jobs_file jobs.json images ', "evaluate": {"every": 20, "minibatches": 1},
           "normalize": {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}'
plan
spillway run plan.json --json >folder.json 2>messages || fail "a folder is not trained on: $(cat messages)"
# Two images that are so different are told apart.
last=$(sed -n 's/.*"final_loss": \([0-9.e-]*\).*/\1/p' folder.json | head -1)
awk -v last="$last" 'BEGIN { exit !(last < 0.1) }' || fail "the loss on two images is still $last"

# --- what is refused ------------------------------------------------------------------------------
refuse_run() { # TEXT
    code=0
    plan
    spillway run plan.json --quiet >out 2>messages || code=$?
    refused "$1"
}
head -c 100 images/bees/3.jpg >cut && mv cut images/bees/3.jpg
refuse_run "images/bees/3.jpg: not a whole JPEG file ("
base64 -d <<<$jpeg >images/bees/3.jpg
echo x >images/bees/note.md
refuse_run "images/bees/note.md: not an image by its name (expected .png, .jpg or .jpeg)"
rm images/bees/note.md
mkdir images/cats
refuse_run "images: 3 folders of classes (expected 2, one for each class of the network)"

network=${network/\"num_labels\": 2/\"num_labels\": 9}
jobs_file jobs.json data_batch_1.bin
refuse_run "data_batch_1.bin: image 9 has label 9 (expected less than the classes, 9)"
network=${network/\"num_labels\": 9/\"num_labels\": 10}
head -c 90000 data_batch_1.bin >cut.bin
jobs_file jobs.json cut.bin
refuse_run "cut.bin: 90000 bytes (expected images of 3073: a label of 1 and 3 x 32 x 32 pixels)"
network=${network/\"image_size\": 32/\"image_size\": 24}
jobs_file jobs.json data_batch_1.bin
refuse_run "data_batch_1.bin: 92190 bytes (expected images of 1730: a label of 2 and 3 x 24 x 24 pixels)"
code=0
jobs_file jobs.json data_batch_1.bin ', "data_format": "cifar10"'
spillway plan jobs.json "${machine[@]}" >out 2>messages || code=$?
refused "cifar10 has images of 3 x 32 x 32 pixels"
code=0
jobs_file jobs.json data_batch_1.bin ', "normalize": {"mean": [0.5, 0.5], "std": [1, 1]}'
spillway plan jobs.json "${machine[@]}" >out 2>messages || code=$?
refused "'mean' has 2 numbers, and the images of network 'network' have 3 channels"
grep -q '^error: jobs.json:[0-9]*:[0-9]*: ' messages || fail "no place in: $(cat messages)"
exit $failed

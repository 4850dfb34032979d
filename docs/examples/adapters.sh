#!/usr/bin/env bash
# One base, six adapters: a small Llama is trained on the spot and laid out as a folder of the Hub, with a tokenizer. Six
# runs fine-tune adapters of it on other texts, through a device that holds about half of it, together: the base crosses
# the link once for all of them. They are killed in the middle and taken up again, and the best by held-out loss is a folder
# that PEFT loads.
#
# usage: adapters.sh BUILD_FOLDER HARDWARE_FILE
#
# Everything is written to BUILD_FOLDER/demo/adapters.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${1:?usage: adapters.sh BUILD_FOLDER HARDWARE_FILE}" && pwd)
hardware=$(realpath "${2:?usage: adapters.sh BUILD_FOLDER HARDWARE_FILE}")
out=$build/demo/adapters
rm -rf "$out"
mkdir -p "$out/base"
cd "$out"
export PATH=$build:$PATH SPILLWAY_HISTORY=$build/demo/history.db
. "$here/tour.sh"
say() { printf '\n%s\n' "$*"; }

# A tokenizer of bytes: GPT-2's alphabet, where bytes that are not printable have letters from U+0100 on.
awk 'BEGIN {
    printf "{\"version\": \"1.0\", \"added_tokens\": [], \"normalizer\": null, \"post_processor\": null,\n"
    printf " \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": true},\n"
    printf " \"decoder\": {\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": {"
    for (byte = other = 0; byte < 256; byte++) {
        shown = byte > 32 && byte < 127 || byte > 160 && byte != 173
        printf "%s\"\\u%04x\": %d", byte ? ", " : "", shown ? byte : 256 + other++, byte
    }
    print "}}}"
}' >base/tokenizer.json
cat >base/config.json <<'END'
{"model_type": "llama", "hidden_size": 192, "intermediate_size": 512, "num_hidden_layers": 12, "num_attention_heads": 6,
 "num_key_value_heads": 2, "max_position_embeddings": 128, "vocab_size": 256, "tie_word_embeddings": false}
END
cp ../licences.txt licences.txt
# Rows of JSON: paragraphs of this project's pages, which the base has not seen.
awk 'BEGIN { RS = ""; ORS = "" } length($0) > 80 {
    gsub(/\\/, "\\\\\\\\"); gsub(/"/, "\\\""); gsub(/\t/, " "); gsub(/\n/, "\\n"); gsub(/[[:cntrl:]]/, "")
    print "{\"text\": \"" $0 "\"}\n"
}' "$here"/../*.md >pages.jsonl

say "The base: a Llama of 12 blocks, trained on the licences, written as model.safetensors beside its config.json."
cat >base.json <<'END'
{"spillway_jobs": 1, "jobs": [{"name": "base", "network": "base/config.json", "sequence": 64, "microbatch": 8,
  "minibatches": 40, "data": "licences.txt", "optimizer": {"kind": "adamw", "lr": 2e-3, "schedule": {"kind": "cosine",
  "warmup": 5}}, "weights_out": "base/model.safetensors"}]}
END
show spillway plan base.json --hw "$hardware" --devices 1 --policy model-parallel -o base.plan
show spillway run base.plan

say "The texts to adapt to, as rows of tokens."
show spillway tokenize pages.jsonl --rows --tokenizer base -o pages.rows

say "Six adapters, of other ranks and rates, and the loss on rows that are held out."
cat >adapters.json <<'END'
{"spillway_jobs": 1,
 "defaults": {"network": "base", "weights_in": "base", "base": "llama", "data": "pages.rows", "sequence": 64,
   "microbatch": 2, "minibatches": 60, "evaluate": {"every": 15, "minibatches": 4}, "keep": "best",
   "weights_out": "adapters/{name}"},
 "jobs": [
   {"name": "r2", "adapter": {"rank": 2, "alpha": 4, "targets": ["q_proj", "v_proj"]}, "optimizer": {"kind": "adamw", "lr": 3e-3}},
   {"name": "r4", "adapter": {"rank": 4, "alpha": 8, "targets": ["q_proj", "v_proj"]}, "optimizer": {"kind": "adamw", "lr": 3e-3}},
   {"name": "r8", "adapter": {"rank": 8, "alpha": 16, "targets": ["q_proj", "v_proj"]}, "optimizer": {"kind": "adamw", "lr": 3e-3}},
   {"name": "r8-all", "adapter": {"rank": 8, "alpha": 16, "targets": "all-linear"}, "optimizer": {"kind": "adamw", "lr": 3e-3}},
   {"name": "r16-all", "adapter": {"rank": 16, "alpha": 32, "targets": "all-linear"}, "optimizer": {"kind": "adamw", "lr": 1e-3}},
   {"name": "r16-hot", "adapter": {"rank": 16, "alpha": 32, "targets": "all-linear"}, "optimizer": {"kind": "adamw", "lr": 1e-2}}]}
END
machine=(--hw "$hardware" --devices 1 --device-memory 9MiB --link-rate 100MB/s)
say "Planned in all ways, through a link of 100 MB/s: the base is 21 MB, the device has 9."
show spillway plan adapters.json "${machine[@]}" -o adapters.plan

say "Trained, and killed in the middle."
cut_off 150 spillway run adapters.plan --checkpoint kept --checkpoint-every 10 --log night.jsonl
show spillway run adapters.plan --checkpoint kept --resume --log night.jsonl

say "Each is a folder for PEFT, and the best evaluation's another:"
show find adapters -type f

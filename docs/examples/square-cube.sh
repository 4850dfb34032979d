#!/usr/bin/env bash
# How wide layers have to be for slow links: four stages of one block each, one T4 in each, 8 bits for each number that
# is passed on. What a stage computes grows with the square of its width, what it passes on with the width.
#
# usage: square-cube.sh [SPILLWAY]
set -euo pipefail
spillway=${1:-spillway}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

busy() { # WIDTH RATE
    cat >"$work/swarm.json" <<JSON
{"spillway_swarm": 1, "network": {"model_type": "gpt2", "n_embd": $1, "n_layer": 4, "n_head": 16, "n_positions": 512,
 "vocab_size": 256}, "cut": 4, "boundary_bits": 8, "microbatch": 8, "batch": 8000, "under_way": 32, "steps": 1,
 "peers": [{"count": 4, "device": "t4-16gb", "up": "$2", "down": "$2", "latency": "10ms"}]}
JSON
    "$spillway" swarm "$work/swarm.json" --alone | awk '/^peers. time/ { sub(",", "", $5); print $4 }'
}

printf '%6s %10s %10s %10s %10s\n' width '100 Mb/s' '200 Mb/s' '400 Mb/s' '1000 Mb/s'
for width in 768 2048 4096 8192 12288; do
    printf '%6s' $width
    for rate in 12.5MB/s 25MB/s 50MB/s 125MB/s; do printf ' %8s %%' "$(busy $width $rate)"; done
    printf '\n'
done

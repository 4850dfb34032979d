# Loaded in front of every case of tests/golden/cli; see tests/cli/check_cli_golden.sh.
# shellcheck shell=bash disable=SC2034

# Two small devices on the cores of a host; neither holds a whole network of `jobs`.
machine=(--hw host-2-cores --devices 2 --device-memory 6MiB --link-rate 2GB/s)

# jobs.json: two short training runs; arguments replace the keys of the first one.
jobs() { # [KEYS-OF-THE-FIRST-JOB]
    cat >jobs.json <<JSON
{"spillway_jobs": 1,
 "defaults": {"network": "gpt2-tiny-bytes", "sequence": 32, "microbatch": 2},
 "jobs": [
   {"name": "a", ${1:-"\"minibatches\": 3"}},
   {"name": "b", "minibatches": 2}]}
JSON
}

# plan.json for jobs.json: spilled, which is not what every version takes for the best.
plan() { # [OPTIONS]
    spillway plan jobs.json "${machine[@]}" --quiet --policy sharded-lrtf -o plan.json "$@" >plan.txt
}

# An executor that does what the arguments say instead of running a plan.
fake_executor() { # SHELL-COMMANDS
    printf '#!/bin/sh\nresult=$(printf "%%s\\n" "$@" | sed -n "/^--result$/{n;p;}")\n%s\n' "$1" >executor
    chmod +x executor
    export SPILLWAY_EXEC=$PWD/executor
}

# A command's exit code, printed: for cases with more than one command.
code_of() { # COMMAND...
    local code=0
    "$@" || code=$?
    echo "exit $code"
}

# Sizes and their units that follow from the planner's choices are not what a case is about.
no_numbers() { sed -E '/^exit/!{s/[0-9]+(\.[0-9]+)?/N/g; s/[KMG]iB/bytes/g}'; }

# instance.json: three jobs on two equal devices; the argument replaces the units of the last one.
instance() { # [UNITS-OF-THE-LAST-JOB]
    local last='{"compute": 5, "in": 4, "memory": 60}'
    cat >instance.json <<JSON
{"spillway_instance": 1, "name": "three",
 "devices": [{"name": "gpu", "count": 2, "memory": 100}],
 "jobs": [
   {"name": "a", "repeat": 2,
    "units": [{"compute": 7, "in": 3, "out": 3, "memory": 40, "writes": true},
              {"compute": 4, "in": 5, "memory": 70}]},
   {"name": "b", "units": [{"compute": 9, "in": 2, "memory": 50}, {"compute": 3, "in": 2, "memory": 50}]},
   {"name": "c", "deadline": 9, "units": [${1-$last}]}]}
JSON
}

# spase.json: four jobs on two nodes; the argument replaces the configurations of the last one.
spase() { # [CONFIGURATIONS-OF-THE-LAST-JOB]
    local last='{"parallelism": "ddp", "devices": 1, "ticks": 57}'
    cat >spase.json <<JSON
{"spillway_spase": 1, "name": "four models",
 "nodes": [{"name": "p4d", "class": "a100", "devices": 4}, {"name": "p3", "class": "v100", "devices": 2}],
 "jobs": [
   {"name": "gpt2-b16", "configurations": [
     {"parallelism": "ddp", "devices": 1, "ticks": {"a100": 90, "v100": 170}},
     {"parallelism": "fsdp", "devices": 2, "ticks": {"a100": 50, "v100": 95}},
     {"parallelism": "fsdp", "devices": 4, "ticks": {"a100": 35}}]},
   {"name": "gpt2-b32", "configurations": [
     {"parallelism": "pipeline", "devices": 2, "ticks": {"a100": 62, "v100": 101}},
     {"parallelism": "fsdp", "devices": 3, "ticks": {"a100": 44}}]},
   {"name": "vit", "configurations": [
     {"parallelism": "spilled", "devices": 1, "ticks": {"a100": 120, "v100": 140}},
     {"parallelism": "ddp", "devices": 2, "ticks": {"a100": 41, "v100": 66}}]},
   {"name": "resnet", "configurations": [${1-$last}]}]}
JSON
}

# Seconds are not golden.
no_seconds() { sed -E 's/[0-9]+\.[0-9]+ s/N s/g; s/(_s": )[0-9.e-]+/\1N/'; }

# Policies of the user's in the case's folder; most do one thing wrong (tests/policies/).
policies() { # NAME...
    local name
    for name; do cp "$BUILD/policies/$name.so" .; done
}

# chain.json: three layers, two of which fit at a time; the argument replaces them.
chain() { # [LAYERS]
    local layers='{"forward": 3, "backward": 7, "saved": 10, "boundary": 1, "count": 2},
            {"forward": 5, "backward": 8, "saved": 10}'
    cat >chain.json <<JSON
{"spillway_chain": 1, "name": "three", "memory": 22, "out_bytes_per_tick": 2, "in_bytes_per_tick": 2,
 "layers": [${1-$layers}]}
JSON
}

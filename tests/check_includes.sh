#!/usr/bin/env bash
# Includes follow the arrows of docs and README backwards, never forwards.
# label: fast
#
# usage: check_includes.sh SOURCE_FOLDER
#
# An #include "folder/x.h" of a file in `folder` may only go where the table below says. File names
# are unique in the tree, so that "see share.c" means one file. Before the real tree, the check runs
# on a made-up one with a mistake of each kind: a check that cannot fail proves nothing.
set -euo pipefail

# What a folder may include; "planner/plan*.h" is the plan's own form, apart from the policies. Live
# dispatch in the simulator asks policies about instances, through their interface alone; in the executor
# about plans (planner/plan_dispatch.h), through the process of a policy. Bounds on placements are programs
# for the planner's solver, and take nothing else from there.
allowed() {
    case $1 in
    base) echo 'base/*' ;;
    models) echo 'base/* models/*' ;;
    planner) echo 'base/* models/* planner/*' ;;
    traces) echo 'base/* models/* planner/plan*.h traces/*' ;;
    sim) echo 'base/* models/* planner/plan*.h planner/instance.h planner/policy.h planner/policy_ask.h traces/* sim/*' ;;
    serving) echo 'base/* models/* planner/milp.h serving/*' ;;
    swarm) echo 'base/* models/* sim/queue.h swarm/*' ;;
    history) echo 'base/* history/*' ;;
    sweep) echo 'base/* history/database.h sweep/*' ;;
    noise) echo 'base/* models/* noise/*' ;;
    report) echo 'base/* report/*' ;;
    explain) echo 'base/* models/* planner/* traces/* sim/* explain/*' ;;
    repro) echo 'base/* plots/plot_figure.h report/* repro/*' ;;
    exec) echo 'base/* models/* planner/plan*.h planner/policy_process.h traces/* exec/*' ;;
    cli) echo 'base/* models/* planner/* traces/* sim/* serving/* swarm/* history/* sweep/* noise/* plots/* report/* explain/* repro/* cli/*' ;;
    plots) echo 'base/* models/* planner/plan*.h traces/* plots/*' ;;
    esac
}

is_allowed() { # FOLDER INCLUDED
    local pattern patterns
    read -ra patterns <<<"$(allowed "$1")"
    for pattern in "${patterns[@]}"; do
        # shellcheck disable=SC2053 # the right side is a pattern
        [[ $2 == $pattern ]] && return 0
    done
    return 1
}

# Complaints about the tree under $1, one a line.
check_tree() {
    local folder file line included
    for folder in base models planner traces sim serving swarm history sweep noise exec plots report explain repro cli; do
        [[ -d $1/$folder ]] || continue
        while IFS=: read -r file line included; do
            if [[ $included != */* ]]; then
                echo "${file#"$1"/}:$line: include '$included' without its folder"
            elif ! is_allowed "$folder" "$included"; then
                echo "${file#"$1"/}:$line: '$folder' must not include '$included'"
            fi
        done < <(grep -rnE --include='*.[ch]' --include='*.cu' --include='*.cuh' \
            '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$1/$folder" |
            sed -E 's/^([^:]*:[0-9]+):[^"]*"([^"]*)".*/\1:\2/' || true)
    done
    for folder in base models planner traces sim serving swarm history sweep noise exec cli tests plots report explain repro demo docs cmake; do
        [[ -d $1/$folder ]] || continue
        find "$1/$folder" -type f -not -path '*/corpus/*' -not -path '*/input*' \
            -not -path '*/expected*' \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \
            -o -name '*.sh' -o -name '*.cmake' -o -name '*.gp' -o -name '*.scd' -o -name '*.py' \)
    done | sed 's|.*/||' | sort | uniq -d | sed "s/.*/two files are named '&'/"
}

self_test() {
    local tree expected found
    tree=$(mktemp -d)
    # shellcheck disable=SC2064 # the name is known now
    trap "rm -rf '$tree'" RETURN
    mkdir "$tree"/{base,models,planner,traces,sim,exec,cli}
    echo '#include "models/job.h"' >"$tree/base/low.c"
    echo '#include "base/error.h"' >"$tree/models/good.c"
    echo '  #  include "planner/plan.h" /* up */' >"$tree/models/up.c"
    printf '%s\n' '#include "traces/trace.h"' '#include "sim/sim.h"' >"$tree/planner/policy.c"
    printf '%s\n' '#include "planner/plan_io.h"' '#include "planner/policy.h"' >"$tree/traces/trace.c"
    printf '%s\n' '#include "planner/plan.h"' '#include "exec/run.h"' >"$tree/sim/sim.c"
    printf '%s\n' '#include "sim/sim.h"' '#include <stdio.h>' >"$tree/exec/run.c"
    printf '%s\n' '#include "planner/policy.h"' '#include "exec/run.h"' >"$tree/cli/main.c"
    echo '#include "bare.h"' >"$tree/base/bare.c"
    echo '/* #include "sim/sim.h" in a comment */' >"$tree/base/good2.c"
    touch "$tree/exec/good.c"
    expected="base/bare.c:1: include 'bare.h' without its folder
base/low.c:1: 'base' must not include 'models/job.h'
cli/main.c:2: 'cli' must not include 'exec/run.h'
exec/run.c:1: 'exec' must not include 'sim/sim.h'
models/up.c:1: 'models' must not include 'planner/plan.h'
planner/policy.c:1: 'planner' must not include 'traces/trace.h'
planner/policy.c:2: 'planner' must not include 'sim/sim.h'
sim/sim.c:2: 'sim' must not include 'exec/run.h'
traces/trace.c:2: 'traces' must not include 'planner/policy.h'
two files are named 'good.c'"
    found=$(check_tree "$tree" | sort)
    if [[ $found != "$expected" ]]; then
        echo "the check itself is broken:"
        diff <(echo "$expected") <(echo "$found") || true
        return 1
    fi
}

self_test
complaints=$(check_tree "${1:-.}")
if [[ -n $complaints ]]; then
    echo "$complaints"
    exit 1
fi
echo "includes and file names are in order"

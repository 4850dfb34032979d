#!/usr/bin/env bash
# Includes follow the order of the folders, the table in docs/architecture.md.
# label: fast
#
# usage: check_includes.sh SOURCE_FOLDER
#
# A folder may include itself and what stands before it in the table, unless that belongs to the other program. The
# table names every folder with sources, and file names are unique in the tree, so that "see share.c" means one file.
# Judges share no code with what they judge. The guard of a header is its path. Before the real tree, the check runs on
# a made-up one with a mistake of each kind: a check that cannot fail proves nothing.
set -euo pipefail

# Rows "FOLDER PROGRAM" of the table, in its order; PROGRAM is "both", "spillway" or "spillway-exec".
order_of() { # ROOT
    sed -nE 's/^\| `([a-z/]+)` \| `?(both|spillway|spillway-exec)`? \| .*/\1 \2/p' "$1/docs/architecture.md"
}

# Lines "FILE:LINE:INCLUDED" of the quoted includes under folders.
includes_of() { # ROOT FOLDER...
    local root=$1
    shift
    (cd "$root" && grep -rnE --include='*.[ch]' --include='*.cu' --include='*.cuh' --include='*.cpp' \
        '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$@" |
            sed -E 's/^([^:]*:[0-9]+):[^"]*"([^"]*)".*/\1:\2/') || true
}

# Judges compute anew what they judge: apart from base/ and models/ they take the data they look at, and nothing that
# makes it. True for every file that is no judge.
judge_may_include() { # FILE INCLUDED
    case $2 in base/* | models/*) return 0 ;; esac
    case $1 in
    planner/check/plan_check*) [[ $2 =~ ^planner/(check/|(buffer_contents|plan(_gang|_work)?)\.h$) ]] ;;
    planner/chain/chain_check.c) [[ $2 =~ ^planner/chain/chain(_check|_schedule)?\.h$ ]] ;;
    planner/saturn/spase/spase_check.c) [[ $2 =~ ^planner/saturn/spase/spase(_schedule)?\.h$ ]] ;;
    planner/saturn/spase/spase_course_check.c) [[ $2 == planner/saturn/spase/spase_introspect.h ]] ;;
    planner/solve/instance/timetable_check*.c)
        [[ $2 =~ ^planner/solve/instance/(instance|timetable(_check(_streams)?)?)\.h$ ]]
        ;;
    traces/trace_judge.c) [[ $2 =~ ^(planner/plan|traces/trace(_judge)?)\.h$ ]] ;;
    tests/support/*_judge.[ch] | tests/support/*_reference.[ch] | tests/support/*_exhaustive.[ch])
        [[ ! $2 =~ ^planner/(solve/(milp|bounds|exact|search|certify)|chain|spill|parallel|swap|strategy|saturn)/ ]]
        ;;
    esac
}

# Complaints about the tree under $1, one a line.
check_tree() {
    local tops=()
    mapfile -t tops < <(order_of "$1" | sed 's|[/ ].*||' | sort -u)
    includes_of "$1" "${tops[@]}" | awk -F: -v order="$(order_of "$1")" '
        function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
        BEGIN {
            for (n = split(order, rows, "\n"); n > 0; n--) {
                split(rows[n], words, " ")
                rank[words[1]] = n
                program[words[1]] = words[2]
            }
        }
        {
            from = folder($1)
            to = folder($3)
            place = $1 ":" $2 ": "
            if ($3 !~ /\//) print place "include \x27" $3 "\x27 without its folder"
            else if (!(from in rank)) next
            else if (!(to in rank)) print place "\x27" to "\x27 is no folder of docs/architecture.md"
            else if (rank[to] > rank[from]) print place "\x27" from "\x27 stands before \x27" to "\x27 and must not include \x27" $3 "\x27"
            else if (program[to] != "both" && program[to] != program[from])
                print place "\x27" from "\x27 is of " program[from] " and must not include \x27" $3 "\x27, of " program[to]
        }'
    # every folder with sources stands in the table, and the other way round
    comm -3 <(cd "$1" && find "${tops[@]}" -type f \( -name '*.[ch]' -o -name '*.cu' \) | sed 's|/[^/]*$||' | sort -u) \
        <(order_of "$1" | sed 's| .*||' | sort) |
            sed -E "s|^\t(.*)|docs/architecture.md: there is no folder '\1' with sources|; t
            s|(.*)|docs/architecture.md: folder '\1' is missing|"
    # judges
    includes_of "$1" "${tops[@]}" tests | while IFS=: read -r file line included; do
        judge_may_include "$file" "$included" || echo "$file:$line: a judge must not include '$included'"
    done
    # the guard of a header is its path
    (cd "$1" && find "${tops[@]}" tests -type f \( -name '*.h' -o -name '*.cuh' \)) | while read -r header; do
        guard=SPILLWAY_$(tr -c 'A-Z0-9\n' _ <<<"${header^^}")
        grep -qx "#ifndef $guard" "$1/$header" && grep -qx "#define $guard" "$1/$header" ||
            echo "$header: the guard of this header is not '$guard'"
    done
    (cd "$1" && find "${tops[@]}" tests docs -type f -not -path '*/corpus/*' -not -path 'tests/golden/*' \( -name '*.[ch]' -o \
        -name '*.cu' -o -name '*.cuh' -o -name '*.sh' -o -name '*.cmake' -o -name '*.scd' -o -name '*.py' \)) |
        sed 's|.*/||' | sort | uniq -d | sed "s/.*/two files are named '&'/"
}

self_test() {
    local tree expected found
    tree=$(mktemp -d)
    # shellcheck disable=SC2064 # the name is known now
    trap "rm -rf '$tree'" RETURN
    mkdir -p "$tree"/{base/text,planner/check,planner/solve,exec,cli,cli/new,docs,tests/support}
    cat >"$tree/docs/architecture.md" <<'TEXT'
| folder | program | contents |
|---|---|---|
| `base` | both | one |
| `base/text` | both | two |
| `planner` | both | two and a half |
| `planner/check` | both | three |
| `exec` | `spillway-exec` | four |
| `planner/solve` | `spillway` | five |
| `cli` | `spillway` | six |
| `cli/gone` | `spillway` | seven |
TEXT
    echo '#include "planner/check/job.h"' >"$tree/base/low.c"
    echo '#include "base/error.h"' >"$tree/base/text/good.c"
    echo '  #  include "base/text/number.h" /* down */' >"$tree/base/up.c"
    printf '%s\n' '#include "base/text/good.h"' '#include "planner/solve/milp.h"' >"$tree/planner/check/see.c"
    printf '%s\n' '#include "planner/check/plan.h"' '#include <stdio.h>' >"$tree/exec/run.c"
    printf '%s\n' '#include "planner/solve/milp.h"' '#include "exec/run.h"' >"$tree/cli/main.c"
    printf '%s\n' '#include "bare.h"' '#include "elsewhere/x.h"' >"$tree/planner/solve/bare.c"
    echo '/* #include "cli/cli.h" in a comment */' >"$tree/planner/solve/good2.c"
    echo '#include "planner/solve/milp/milp.h"' >"$tree/tests/support/support_plan_judge.c"
    printf '%s\n' '#include "planner/plan.h"' '#include "base/text/good.h"' >"$tree/planner/check/plan_check.c"
    echo '#include "planner/walk.h"' >>"$tree/planner/check/plan_check.c"
    printf '%s\n' '#ifndef SPILLWAY_BASE_TEXT_GOOD_H' '#define SPILLWAY_BASE_TEXT_GOOD_H' '#endif' >"$tree/base/text/good.h"
    printf '%s\n' '#ifndef SPILLWAY_TEXT_MOVED_H' '#define SPILLWAY_TEXT_MOVED_H' '#endif' >"$tree/base/text/moved.h"
    touch "$tree/planner/plan.c" "$tree/exec/good.c" "$tree/cli/new/new.c"
    expected="base/low.c:1: 'base' stands before 'planner/check' and must not include 'planner/check/job.h'
base/text/moved.h: the guard of this header is not 'SPILLWAY_BASE_TEXT_MOVED_H'
base/up.c:1: 'base' stands before 'base/text' and must not include 'base/text/number.h'
cli/main.c:2: 'cli' is of spillway and must not include 'exec/run.h', of spillway-exec
docs/architecture.md: folder 'cli/new' is missing
docs/architecture.md: there is no folder 'cli/gone' with sources
planner/check/plan_check.c:3: a judge must not include 'planner/walk.h'
planner/check/see.c:2: 'planner/check' stands before 'planner/solve' and must not include 'planner/solve/milp.h'
planner/solve/bare.c:1: include 'bare.h' without its folder
planner/solve/bare.c:2: 'elsewhere' is no folder of docs/architecture.md
tests/support/support_plan_judge.c:1: a judge must not include 'planner/solve/milp/milp.h'
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

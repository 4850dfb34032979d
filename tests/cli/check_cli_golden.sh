#!/usr/bin/env bash
# What the programs print for wrong and for right command lines, byte for byte, with the exit code.
# label: medium, parts: 4
# also uses: zsh fish
#
# usage: check_cli_golden.sh SOURCE_FOLDER BUILD_FOLDER [--rewrite] [CASE...]
#
# tests/golden/cli/CASE/command is a bash script, run in an empty folder with tests/golden/cli/helpers.sh loaded.
# Beside it: `expected` (standard output; none when empty), `error` (standard error; none when empty)
# and `code` (none when 0). The folder's own path is printed as DIR. --rewrite makes these files
# anew from what the programs say now; read the difference like code.
#
# Answers to --json, and files that `spillway check` takes, fit their schemas in docs/schemas, whatever the case prints
# of them.
set -euo pipefail

source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
shift 2
rewrite=no
[[ ${1-} == --rewrite ]] && { rewrite=yes; shift; }
[[ -x $build/spillway && -x $build/spillway-exec && -x $build/schema_check ]] ||
    { echo "the programs are not built"; exit 77; }

cases=$source/tests/golden/cli
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 count=0 fitting=0

# Stands before the program on the PATH of a case: keeps a copy of each answer. /dev/full and the like are left to the
# program.
mkdir "$work/bin"
cat=$(command -v cat)
cat >"$work/bin/spillway" <<END
#!$(command -v bash)
cat=$cat
END
cat >>"$work/bin/spillway" <<'END'
program=$BUILD/spillway
case " $* " in *" --json "*) ;; *) exec "$program" "$@" ;; esac
[[ ! -c /dev/fd/1 || /dev/fd/1 -ef /dev/null ]] || exec "$program" "$@"
answer=$ANSWERS/$$
code=0
"$program" "$@" >"$answer" 2>"$answer.told" || code=$? # what is told comes after the answer, in one pipe, too
"$cat" "$answer"
"$cat" "$answer.told" >&2
exit $code
END
chmod +x "$work/bin/spillway"

# Leaves out, err and code in $work.
run_case() { # NAME
    local dir=$work/dir
    rm -rf "$dir" "$work/answers"
    mkdir "$dir" "$work/answers"
    local code=0
    (
        cd "$dir"
        export PATH=$work/bin:$build:$PATH ANSWERS=$work/answers HOME=$dir XDG_CONFIG_HOME=$dir/config NO_COLOR=1 TERM=dumb
        export INPUT=$cases/$1 BUILD=$build LC_ALL=C SPILLWAY_HISTORY=
        unset SPILLWAY_EXEC TMPDIR
        # shellcheck disable=SC1091
        source "$cases/helpers.sh"
        # shellcheck disable=SC1090,SC1091
        source "$cases/$1/command"
    ) >"$work/out" 2>"$work/err" </dev/null || code=$?
    sed -i -e "s|$dir|DIR|g" -e "s|$build|BUILD|g" "$work/out" "$work/err"
    echo "$code" >"$work/code"
}

# What a case got and what it wrote.
check_schemas() { # CASE
    local file files=()
    mapfile -t files < <(find "$work/answers" -type f -size +0 ! -name '*.told')
    while IFS= read -r file; do
        "$build/spillway" check "$file" --quiet >"$work/checked" 2>&1 && files+=("$file")
    done < <(find "$work/dir" -type f \( -name '*.json' -o -name '*.json.gz' \))
    mapfile -t -O ${#files[@]} files < <(find "$work/dir" -type f -name '*.jsonl')
    ((${#files[@]} > 0)) || return 0
    if ! "$build/schema_check" "$source/docs/schemas" "${files[@]}" >"$work/fitting"; then
        echo "$1: an answer or a file does not fit its schema"
        failed=$((failed + 1))
    fi
    fitting=$((fitting + $(wc -l <"$work/fitting")))
}

keep() { # FROM TO: empty means no file
    if [[ -s $1 ]]; then cp "$1" "$2"; else rm -f "$2"; fi
}

compare() { # FROM WHAT CASE
    local golden=$cases/$3/$2
    [[ -e $golden ]] || golden=/dev/null
    if ! diff -u --label "$3/$2" --label "what came" "$golden" "$1"; then failed=$((failed + 1)); fi
}

names=("$cases"/*/)
names=("${names[@]%/}")
names=("${names[@]##*/}")
if (($# > 0)); then
    names=("$@")
elif [[ -n ${SPILLWAY_PART-} ]]; then # as "2/4": the second of each four
    part=() first=$((${SPILLWAY_PART%/*} - 1)) step=${SPILLWAY_PART#*/}
    for ((i = first; i < ${#names[@]}; i += step)); do part+=("${names[i]}"); done
    names=("${part[@]}")
    # Every second one in a build with sanitizers, whose programs take a while to start.
    if ! grep -q '^SPILLWAY_SANITIZE:STRING=$' "$build/CMakeCache.txt"; then
        seed=${SPILLWAY_SEED:-$RANDOM} drawn=()
        echo "SPILLWAY_SEED=$seed"
        for ((i = seed % (${#names[@]} > 1 ? 2 : 1); i < ${#names[@]}; i += 2)); do drawn+=("${names[i]}"); done
        names=("${drawn[@]}")
    fi
fi
for name in "${names[@]}"; do
    count=$((count + 1))
    run_case "$name"
    [[ $(cat "$work/code") == 0 ]] && : >"$work/code"
    check_schemas "$name"
    if [[ $rewrite == yes ]]; then
        keep "$work/out" "$cases/$name/expected"
        keep "$work/err" "$cases/$name/error"
        keep "$work/code" "$cases/$name/code"
    else
        compare "$work/out" expected "$name"
        compare "$work/err" error "$name"
        compare "$work/code" code "$name"
    fi
done
echo "$count cases, $failed differences; $fitting answers and files fit their schemas"
((failed == 0))

#!/usr/bin/env bash
# README.md and docs/*.md: commands run as printed, links and files exist, pages keep their size.
# label: medium
#
# usage: check_docs.sh SOURCE_FOLDER BUILD_FOLDER [--rewrite] [PAGE...]
#
# A block of commands is fenced with ```sh or ```console; in the latter, commands begin with "$ " and the
# rest is what they print (standard output and error). An HTML comment on the line before it says what is
# checked:
#
#   <!-- run -->            every command ends with exit code 0
#   <!-- run: compare -->   ... and prints exactly what stands below it
#   <!-- run: excerpt -->   ... and prints the lines that stand below it, in this order, among others;
#                           a line "..." stands for what is left out
#   <!-- run, exit 1 -->    the last command ends with that exit code; also "run: compare, exit 1"
#
# The blocks of a page run one after the other in a new copy of what a clone has, with the built programs
# on the PATH. Of every page: relative links and their #anchors lead somewhere, files that are named by
# their path exist, no command contains "...", README.md has at most 250 lines and a page of docs 299.
#
# --rewrite puts what the commands print now into the blocks to compare. PAGE is a path such as
# docs/memory.md. Before the real tree, the check runs on a made-up one with a mistake of each kind.
set -euo pipefail

source=$(cd "${1:?the source folder is missing}" && pwd)
build=$(cd "${2:?the build folder is missing}" && pwd)
shift 2
rewrite=no
if [[ ${1:-} == --rewrite ]]; then
    rewrite=yes
    shift
fi
pages=("$@")

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

export HOME=$scratch/home XDG_CONFIG_HOME=$scratch/home/config XDG_STATE_HOME=$scratch/home/state
export SPILLWAY_HISTORY='' NO_COLOR=1 LC_ALL=C OMP_WAIT_POLICY=passive
unset SPILLWAY_PAPERS
mkdir -p "$HOME"
path=$PATH

# --- texts --------------------------------------------------------------------------------------

# The anchors of a page: its headings as GitHub spells them.
anchors() {
    awk '/^```/ { fence = !fence } !fence && /^#+ / { sub(/^#+ +/, ""); print tolower($0) }' "$1" |
        sed -E 's/\[([^]]*)\]\([^)]*\)/\1/g; s/[^a-z0-9 _-]//g; s/ /-/g'
}

# Relative links outside of blocks of code, as LINE:TARGET.
links() {
    awk '/^```/ { fence = !fence } !fence' "$1" | grep -oE '\]\([^) ]+\)' | sed -E 's/^\]\(//; s/\)$//' |
        grep -vE '^[a-z]+:' | sort -u || true
}

check_links() { # ROOT PAGE
    local link file anchor
    while read -r link; do
        file=${link%%#*}
        anchor=${link#"$file"}
        if [[ -n $file ]]; then file=$(dirname "$2")/$file; else file=$2; fi
        if [[ ! -e $1/$file ]]; then
            echo "$2: link '$link' leads nowhere"
        elif [[ -n $anchor ]] && ! anchors "$1/$file" | grep -qxF -- "${anchor#\#}"; then
            echo "$2: link '$link' leads to no heading"
        fi
    done < <(links "$1/$2")
}

# Paths of the tree that a page names, in prose and in commands; "*" and NAME stand for any name. Files that a
# command writes are in none of these folders.
check_paths() { # ROOT PAGE
    local named
    while read -r named; do
        compgen -G "$1/${named//NAME/*}" >/dev/null || echo "$2: there is no '$named'"
    done < <(grep -oE '(^|[^[:alnum:]_/.:-])(base|models|planner|sim|exec|traces|plots|cli|tests|docs|\.ci)/[[:alnum:]_./*?-]*[[:alnum:]_/*]' \
        "$1/$2" | sed -E 's/^[^[:alnum:].]//' | sort -u)
}

check_shape() { # ROOT PAGE
    local most=299 lines
    [[ $2 == README.md ]] && most=250
    lines=$(wc -l <"$1/$2")
    case $2 in README.md | docs/*) ((lines <= most)) || echo "$2: $lines lines (at most $most)" ;; esac
    awk -v page="$2" '
        /^```/ { language = fence ? "" : substr($0, 4); fence = !fence; next }
        fence && (language == "sh" || language == "console" && (/^\$ / || go_on)) {
            if (index($0, "...")) printf "%s:%d: a command with \"...\"\n", page, NR
            go_on = /\\$/
        }
        !fence && /^<!-- run/ && !/^<!-- run(: (compare|excerpt))?(, exit [0-9]+)? -->$/ {
            printf "%s:%d: \"%s\" is no mark of a block\n", page, NR, $0
        }
        END { if (fence) printf "%s: a block does not end\n", page }' "$1/$2"
}

# --- blocks -------------------------------------------------------------------------------------

# Are the lines of the first file among those of the second, in their order? "..." is skipped; how wide columns
# are does not matter.
is_excerpt() {
    awk '{ gsub(/  +/, "  ") }
         NR == FNR { if ($0 != "...") wanted[++n] = $0; next }
         i < n && $0 == wanted[i + 1] { i++ }
         END { if (i < n) { print wanted[i + 1]; exit 1 } }' "$1" "$2"
}

# Runs the marked blocks of a page in the current folder. With --rewrite the page is written to $2.
run_blocks() { # PAGE_FILE NEW_FILE; $page: its name for messages
    local line number=0 mark='' how='' code=0 started=0 language='' in_block=no
    local -a block=()
    : >"$2"
    while IFS= read -r line || [[ -n $line ]]; do
        number=$((number + 1))
        if [[ $in_block == yes ]]; then
            if [[ $line != '```' ]]; then
                block+=("$line")
                continue
            fi
            run_block >>"$2"
            in_block=no mark=''
        elif [[ -n $mark && $line == '```'* ]]; then
            in_block=yes started=$number block=() language=${line#'```'}
        elif [[ $line =~ ^'<!-- run'(: (compare|excerpt))?(, exit ([0-9]+))?' -->'$ ]]; then
            mark=run how=${BASH_REMATCH[2]} code=${BASH_REMATCH[4]:-0}
        elif [[ -n $mark ]]; then
            echo "$page:$number: a mark without a block" >&3
            mark=''
        fi
        printf '%s\n' "$line" >>"$2"
    done <"$1"
    [[ $in_block == no ]] || echo "$page:$started: a block does not end" >&3
}

# One block: $block, $how, $code, $language, $started. Complaints go to 3, the block as it should be to 1.
run_block() {
    local -a commands=() expected=()
    local line last='' i status=0 text want
    if [[ $language != console ]]; then
        commands=("$(printf '%s\n' "${block[@]}")")
        expected=('')
    else
        for line in "${block[@]}"; do
            if [[ ${last: -1} == \\ ]]; then
                commands[-1]+=$'\n'$line
                last=$line
            elif [[ $line == '$ '* ]]; then
                commands+=("${line#'$ '}")
                expected+=('')
                last=$line
            else
                [[ ${#commands[@]} -gt 0 ]] || { echo "$page:$started: output without a command" >&3; return; }
                expected[-1]+=$line$'\n'
                last=''
            fi
        done
    fi
    for i in "${!commands[@]}"; do
        status=0
        # What a person types goes to one shell; "set -e" makes every line of a block count.
        timeout 120 bash -ec "${commands[i]}" >"$scratch/output" 2>&1 </dev/null || status=$?
        want=0
        if ((i == ${#commands[@]} - 1)); then want=$code; fi
        if ((status != want)); then
            echo "$page:$started: exit code $status (expected $want) of: ${commands[i]}" >&3
            sed 's/^/    /' "$scratch/output" | tail -n 12 >&3
        fi
        printf '%s' "${expected[i]}" >"$scratch/expected"
        if [[ $how == compare && $rewrite == no ]] && ! cmp -s "$scratch/expected" "$scratch/output"; then
            echo "$page:$started: printed otherwise by: ${commands[i]}" >&3
            diff "$scratch/expected" "$scratch/output" | sed 's/^/    /' >&3 || true
        elif [[ $how == excerpt ]] && ! text=$(is_excerpt "$scratch/expected" "$scratch/output"); then
            echo "$page:$started: not printed, or in another order: '$text' by: ${commands[i]}" >&3
            sed 's/^/    /' "$scratch/output" | head -n 60 >&3
        fi
        if [[ $language == console ]]; then
            printf '$ %s\n' "${commands[i]}"
            if [[ $how == compare ]]; then cat "$scratch/output"; else cat "$scratch/expected"; fi
        else
            printf '%s\n' "${commands[i]}"
        fi
    done
}

# --- a tree -------------------------------------------------------------------------------------

# Prints complaints about the tree under $1. Blocks run when $2 is "run".
check_tree() {
    local page folder
    local -a all=()
    cd "$1"
    if [[ ${#pages[@]} -gt 0 ]]; then
        all=("${pages[@]}")
    else
        for page in README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md docs/*.md docs/instances/README.md plots/papers/README.md; do
            [[ -e $page ]] && all+=("$page")
        done
    fi
    for page in "${all[@]}"; do
        check_links "$1" "$page"
        case $page in README.md | CONTRIBUTING.md | SECURITY.md | docs/*) check_paths "$1" "$page" ;; esac
        check_shape "$1" "$page"
        if [[ $2 != run ]] || ! grep -q '^<!-- run' "$page"; then continue; fi
        folder=$scratch/clone
        rm -rf "$folder"
        mkdir "$folder"
        for part in docs LICENSE README.md; do
            [[ ! -e $1/$part ]] || cp -R "$1/$part" "$folder"
        done
        (cd "$folder" && run_blocks "$1/$page" "$scratch/page" 3>&1)
        [[ $rewrite == no ]] || cmp -s "$scratch/page" "$1/$page" || cp "$scratch/page" "$1/$page"
    done
}

self_test() {
    local tree=$scratch/tree expected found
    mkdir -p "$tree/docs/examples"
    echo '{}' >"$tree/docs/examples/there.json"
    cat >"$tree/docs/good.md" <<'TEXT'
# A page, with a `name`
See [itself](#a-page-with-a-name) and [the front](../README.md#front). The file `docs/examples/there.json` is there.
<!-- run: compare -->
```console
$ printf 'one\ntwo\n' | \
      cat
one
two
$ cat docs/examples/there.json
{}
```
<!-- run: excerpt, exit 3 -->
```console
$ printf 'one  1\ntwo\nthree\n'; exit 3
one    1
...
three
```
<!-- run -->
```sh
echo kept >file
[[ $(cat file) == kept ]]
```
TEXT
    cat >"$tree/README.md" <<'TEXT'
# Front
[gone](docs/gone.md) [nothing](docs/good.md#nothing) [good](docs/good.md) `docs/examples/gone.json` `docs/examples/*.json` `docs/examples/NAME.json`
<!-- run: compare -->
```console
$ echo one
two
$ [[ ! -e file ]]
```
<!-- run: excerpt -->
```console
$ printf 'one\ntwo\n'
two
one
```
<!-- run -->
```sh
false
true
```
<!-- run: always -->
```sh
ls ...
```
<!-- run -->
Text.
TEXT
    for i in {1..251}; do echo; done >>"$tree/README.md"
    expected="README.md: link 'docs/gone.md' leads nowhere
README.md: link 'docs/good.md#nothing' leads to no heading
README.md: there is no 'docs/examples/gone.json'
README.md: there is no 'docs/gone.md'
README.md: 276 lines (at most 250)
README.md:20: \"<!-- run: always -->\" is no mark of a block
README.md:22: a command with \"...\"
README.md:4: printed otherwise by: echo one
    1c1
    < two
    ---
    > one
README.md:10: not printed, or in another order: 'one' by: printf 'one\\ntwo\\n'
    one
    two
README.md:16: exit code 1 (expected 0) of: false
true
README.md:25: a mark without a block"
    found=$(rewrite=no; pages=(); check_tree "$tree" run)
    if [[ $found != "$expected" ]]; then
        echo "the check itself is broken:"
        diff <(echo "$expected") <(echo "$found") || true
        return 1
    fi
}

self_test || exit 1
mode=run
if [[ ! -x $build/spillway || ! -x $build/spillway-exec ]]; then
    mode=texts
    echo "the programs are not built: blocks are not run"
elif ! grep -q '^SPILLWAY_SANITIZE:STRING=$' "$build/CMakeCache.txt"; then
    mode=texts
    echo "built with a sanitizer: blocks are not run"
fi
PATH=$build:$path
check_tree "$source" "$mode" >"$scratch/complaints"
if [[ -s $scratch/complaints ]]; then
    cat "$scratch/complaints"
    exit 1
fi
echo "pages, links and blocks are in order"

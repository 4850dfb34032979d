#!/usr/bin/env bash
# No files of one folder use each other in a circle.
# label: fast
#
# usage: check_calls.sh SOURCE_FOLDER BUILD_FOLDER
#
# check_includes.sh keeps the folders in order. This check does the same for the files of a folder: nm says which object
# file defines a symbol and which ones use it. A few subjects are one piece of code in several files; such a family
# counts as one file. Before the real tree, the check runs on a made-up list of symbols with a circle: a check that
# cannot fail proves nothing.
set -euo pipefail

# Rows "FOLDER NAME PATTERN": the files of FOLDER whose name without suffix matches PATTERN are one subject.
families='
planner/check judge plan_check.*
models/job parallel parallel.*
models/jobs trained job_(trained|peft)
models/network network network(_trained)?
exec/files weights (weights(_init)?|adapter)
planner/parallel/pipeline pipeline pipeline(_buckets)?
sim interpreter sim(_create)?
sim/serving server serve(_batches)?
sim/swarm swarm swarm_(run|peers)
exec/run setup run_(setup|devices|checks|result|fill|files|keep|moves)
exec/network transformer transformer(_halves|_pass|_place|_split|_adapter)?
exec/ranks ranks rank(s_.*|_mesh)
exec/state saver run_(in_flight|peers_wait|write_back|saver(_cut|_peers)?)
cli verbs (cli|verb_help|(cli|verb)_completion.*)
'

# Lines "FOLDER/FILE T|U SYMBOL" of the object files: T for a symbol that the file defines, U for one that it uses. An
# old build folder has objects of sources that are gone; they do not count.
symbols_of() { # SOURCE_FOLDER BUILD_FOLDER
    (cd "$2" && find . \( -path ./tests -o -path './bare-path*' \) -prune -o -path '*/CMakeFiles/*.dir/*.o' -print0 | xargs -0 nm -gA 2>/dev/null) |
        sed -nE 's!^\./(.*/)?CMakeFiles/[^/]+\.dir/([^:]*)\.(c|cu)\.o:[0-9a-f ]* ([A-Za-z]) ([A-Za-z_][A-Za-z_0-9]*)$!\1\2 \4 \5!p' |
        sed -E 's/^(\S+) [TDBRCVW] /\1 T /' | grep -E ' [TU] ' | sort -u |
        awk 'NR == FNR { exists[$1] = 1; next } $1 in exists' \
            <(cd "$1" && find . -name '*.c' -o -name '*.cu' | sed -E 's!^\./(.*)\.cu?$!\1!') -
}

# Complaints about the symbols on standard input. Takes away, again and again, the files that use no other file of their
# folder and those that no other file uses; what is left uses each other in circles.
circles() {
    awk -v families="$families" '
        BEGIN {
            n = split(families, rows, "\n")
            for (i = 1; i <= n; i++)
                if (split(rows[i], words, " ") == 3) {
                    count++
                    in_folder[count] = words[1]
                    name[count] = words[2]
                    pattern[count] = "^(" words[3] ")$"
                }
        }
        function subject(file,   folder, base, i) {
            folder = file
            if (!sub(/\/[^\/]*$/, "", folder)) folder = "."
            base = substr(file, length(folder) + 2)
            for (i = 1; i <= count; i++)
                if (folder == in_folder[i] && base ~ pattern[i]) return folder "/" name[i]
            return file
        }
        function folder_of(file) { sub(/\/[^\/]*$/, "", file); return file }
        $2 == "T" { defined[$3] = subject($1) }
        $2 == "U" { uses[subject($1) " " $3] = 1 }
        END {
            for (use in uses) {
                split(use, words, " ")
                from = words[1]
                if (!(words[2] in defined)) continue
                to = defined[words[2]]
                if (from != to && folder_of(from) == folder_of(to)) edge[from " " to] = 1
            }
            do {
                gone = 0
                split("", goes); split("", comes)
                for (e in edge) { split(e, words, " "); goes[words[1]] = 1; comes[words[2]] = 1 }
                for (e in edge) {
                    split(e, words, " ")
                    if (!(words[2] in goes) || !(words[1] in comes)) { delete edge[e]; gone = 1 }
                }
            } while (gone)
            for (e in edge) { split(e, words, " "); print words[1] " uses " words[2] ", and the other way round" }
        }' | sort
}

self_test() {
    local found expected
    found=$(circles <<'SYMBOLS'
one/a T a_begin
one/a U b_begin
one/b T b_begin
one/b U c_begin
one/c T c_begin
one/c U a_begin
one/c U d_begin
one/d T d_begin
one/top U a_begin
two/e T e_begin
two/e U a_begin
two/f T f_begin
two/f U e_begin
planner/check/plan_check T plan_check
planner/check/plan_check U plan_check_units
planner/check/plan_check_units T plan_check_units
planner/check/plan_check_units U plan_check
SYMBOLS
    )
    expected='one/a uses one/b, and the other way round
one/b uses one/c, and the other way round
one/c uses one/a, and the other way round'
    if [[ $found != "$expected" ]]; then
        echo "the check itself is broken:"
        diff <(echo "$expected") <(echo "$found") || true
        return 1
    fi
}

self_test
symbols=$(symbols_of "$1" "$2")
if [[ $(wc -l <<<"$symbols") -lt 1000 ]]; then
    echo "no object files with symbols in '$2'"
    exit 77
fi
complaints=$(circles <<<"$symbols")
if [[ -n $complaints ]]; then
    echo "$complaints"
    exit 1
fi
echo "no files of one folder use each other in a circle"

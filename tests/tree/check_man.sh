#!/usr/bin/env bash
# The man pages: scdoc takes them, mandoc finds nothing wrong with them, headings are words, all are installed.
# label: fast
#
# usage: check_man.sh SOURCE_FOLDER BUILD_FOLDER
#
# That each verb has a page with each of its options is checked by tests/cli/test_cli_options.c.
set -euo pipefail

source=$(cd "${1:?the source folder is missing}" && pwd)
build=$(cd "${2:?the build folder is missing}" && pwd)
for tool in scdoc mandoc; do
    command -v "$tool" >/dev/null || { echo "$tool is missing: './bootstrap build' installs it"; exit 1; }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# What is wrong with a page. mandoc takes a dot with a digit in a folder's name for the section: it sees no folder.
# Empty paragraphs around headings are scdoc's, and how long a line of roff is nobody sees.
faults() { # PAGE.scd
    { grep -nE '^#.*_' "$1" || true; } | sed 's/^/a heading with an underscore: line /'
    scdoc <"$1" >"$scratch/page" 2>"$scratch/told" || sed 's/^/scdoc: /' "$scratch/told"
    (cd "$scratch" && mandoc -T lint page || true) | grep -vE 'STYLE:|skipping paragraph macro: PP (empty|after SH)' ||
        true
}

# A page with each fault is found.
page() { printf 'bad(1)\n\n# NAME\n\nbad - a page\n\n%s\n' "$1" >"$scratch/bad.scd"; }
page '# DESCRIPTION'$'\n\n''text'
[[ -z $(faults "$scratch/bad.scd") ]] || { echo "a good page is found bad"; faults "$scratch/bad.scd"; exit 1; }
for bad in '# SHOW _FILE_'$'\n\n''text' '# DESCRIPTION'$'\n\n''--dispatch live'; do
    page "$bad"
    [[ -n $(faults "$scratch/bad.scd") ]] || { echo "not found: $bad"; exit 1; }
done

failed=0 count=0
for scd in "$source"/docs/man/*.scd; do
    count=$((count + 1))
    found=$(faults "$scd")
    [[ -z $found ]] || { echo "${scd##*/}: $found"; failed=1; }
done
((count > 20)) || { echo "only $count pages"; exit 1; }

# Installed by cmake, where all are built.
pages=("$source"/docs/man/*.scd)
pages=("${pages[@]##*/}")
built=yes
for page in "${pages[@]%.scd}"; do [[ -e $build/man/$page ]] || built=no; done
if [[ $built == yes ]]; then
    cmake --install "$build" --prefix "$scratch/installed" --component manual >/dev/null
    for page in "${pages[@]%.scd}"; do
        [[ -n $(find "$scratch/installed" -path "*/man${page##*.}/$page") ]] ||
            { echo "not installed: $page"; failed=1; }
    done
fi
echo "$count pages"
exit $failed

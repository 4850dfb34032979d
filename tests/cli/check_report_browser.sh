#!/usr/bin/env bash
# Reports in a real browser: does it see the title, the rows and the pictures that were written?
# label: medium
# also uses: chromium chromium-browser google-chrome google-chrome-stable
#
# usage: check_report_browser.sh SOURCE_FOLDER BUILD_FOLDER
#
# The page that test_document compares with, and one of `plan`, are opened by a headless Chromium, which prints what it
# made of them: a page that was cut short, or whose markup is broken, has other rows then.
set -euo pipefail
source=$1

browser=
for name in chromium chromium-browser google-chrome google-chrome-stable; do
    browser=$(command -v "$name") && break
done
[[ -n $browser ]] || { echo "skipped: no chromium or google-chrome is installed"; exit 77; }

home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
fail() { echo "$*"; exit 1; }

# What the browser made of the page $1.
dump() {
    HOME=$home timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
        --user-data-dir="$home/profile" --dump-dom "file://$(realpath "$1")" 2>"$home/messages" ||
        fail "the browser failed: $(tail -3 "$home/messages")"
}

# PAGE TITLE ROWS PICTURES
expect() {
    dump "$1" >"$home/dom"
    grep -qF "<title>$2</title>" "$home/dom" || fail "$1: no title '$2': $(grep -o '<title>.*' "$home/dom")"
    rows=$(grep -c '^<tr>' "$home/dom" || true)
    [[ $rows == "$3" ]] || fail "$1: $rows rows (expected $3)"
    pictures=$(grep -o '<img' "$home/dom" | wc -l)
    [[ $pictures == "$4" ]] || fail "$1: $pictures pictures (expected $4)"
    ! grep -q '<script' "$home/dom" || fail "$1: a script"
}

expect "$source/tests/golden/document/page.html" 'Two jobs on &lt;a card&gt;' 2 2

# A report as a verb writes it; its pictures are throughput, timeline and memory.
build=$2
if [[ -x $build/spillway ]] && command -v gnuplot >/dev/null; then
    cat >"$home/jobs.json" <<'JSON'
{"spillway_jobs": 1, "defaults": {"network": "gpt2-tiny-bytes", "sequence": 32, "microbatch": 2},
 "jobs": [{"name": "a", "minibatches": 3}, {"name": "b", "minibatches": 2}]}
JSON
    "$build/spillway" plan "$home/jobs.json" --hw host-2-cores --devices 2 --device-memory 6MiB --policy all --quiet \
        --report "$home/plan.html" >"$home/plan.txt"
    rows=$(grep -c '^<tr>' "$home/plan.html")
    ((rows > 15)) || fail "$home/plan.html: only $rows rows"
    expect "$home/plan.html" 'spillway plan' "$rows" 3
fi
echo "the browser sees what was written"

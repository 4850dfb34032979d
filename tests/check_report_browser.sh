#!/usr/bin/env bash
# Reports in a real browser: does it see the title, the rows and the pictures that were written?
# label: medium
#
# usage: check_report_browser.sh SOURCE_FOLDER BUILD_FOLDER
#
# The page that test_document compares with is opened by a headless Chromium, which prints what it made of it.
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
        --user-data-dir="$home/profile" --dump-dom "file://$1" 2>"$home/messages" ||
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
echo "the browser sees what was written"

#!/usr/bin/env bash
# Stopping a run: by one signal, by one to the whole group, by two, and by killing the parent.
# label: slow
#
# usage: check_cli_signals.sh SOURCE_FOLDER BUILD_FOLDER
#
# The run is long enough (thousands of minibatches) that it never ends by itself here. A job log of
# a few lines says that it is under way.
set -euo pipefail

source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
[[ -x $build/spillway && -x $build/spillway-exec ]] || { echo "the programs are not built"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export PATH=$build:$PATH HOME=$work XDG_CONFIG_HOME=$work
# shellcheck disable=SC1091
source "$source/tests/golden/cli/helpers.sh"

jobs '"minibatches": 200000, "weights_out": "a.safetensors"'
plan --seed 0
failed=0
check() { # WHAT CONDITION...
    local what=$1
    shift
    if "$@"; then echo "ok: $what"; else echo "FAILED: $what"; failed=1; fi
}

# A session of its own, so that a signal to its group reaches nothing else; $pid leads it.
begin() {
    rm -f run.jsonl a.safetensors a.partial.safetensors report.json
    setsid spillway run plan.json --log run.jsonl --json >report.json 2>messages &
    pid=$!
    for _ in {1..300}; do
        [[ -s run.jsonl ]] && (($(wc -l <run.jsonl) > 5)) && return
        sleep 0.1
    done
    echo "the run did not begin"
    cat messages
    exit 1
}
ended() { code=0; wait "$pid" || code=$?; }
# shellcheck disable=SC2317 # called through check()
# The weights of an unfinished run have a name of their own: those of a complete one are not replaced.
kept_something() {
    grep -q '"completed": false' report.json && [[ -s a.partial.safetensors && ! -e a.safetensors ]] &&
        grep -q a.partial.safetensors report.json
}

begin
kill -INT "$pid"
ended
check "one signal ends the run with 130 (found $code)" test "$code" = 130
check "what was trained is kept and told" kept_something
check "the log says how it ended" grep -q stopped run.jsonl

begin
kill -TERM -- "-$pid"
ended
check "a signal to the whole group counts once (130, found $code)" test "$code" = 130
check "what was trained is kept and told" kept_something

begin
kill -INT "$pid"
sleep 0.3
kill -INT "$pid" 2>/dev/null || true
ended
check "two signals end it (130, found $code)" test "$code" = 130

setsid spillway measure -o profile.json 2>messages >measured.txt &
pid=$!
for _ in {1..100}; do pgrep -P "$pid" >/dev/null && break; sleep 0.1; done
sleep 1
kill -INT "$pid"
ended
check "a measurement is stopped (130, found $code)" test "$code" = 130
check "and that is told once" test "$(grep -c 'measurement was stopped' messages)" = 1
# shellcheck disable=SC2317 # called through check()
nothing_kept() { [[ ! -e profile.json && ! -s measured.txt ]] && ! grep -q minibatches messages; }
check "with nothing kept and no word of minibatches" nothing_kept

begin
child=$(pgrep -P "$pid")
kill -KILL "$pid"
ended
# shellcheck disable=SC2317 # called through check()
gone() { for _ in {1..100}; do kill -0 "$child" 2>/dev/null || return 0; sleep 0.1; done; return 1; }
check "a killed parent takes the executor with it" gone
exit $failed

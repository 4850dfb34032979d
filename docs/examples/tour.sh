# What the tours of this folder share (demo.sh, adapters.sh): commands shown as they run, and a run that is killed in
# the middle. They source it.
# shellcheck shell=bash

if [[ -t 1 && -z ${NO_COLOR-} ]]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi
show() { printf '\n%s$ %s%s\n' "$bold" "$*" "$plain"; "$@"; }

# cut_off LINES COMMAND...: starts a run that logs to night.jsonl, and kills its executor once the log is longer than LINES.
cut_off()
{
    local lines=$1 night executor
    shift
    printf '\n%s$ %s &%s\n' "$bold" "$*" "$plain"
    "$@" >killed.txt 2>&1 &
    night=$!
    until [[ -e night.jsonl ]] && (($(wc -l <night.jsonl) > lines)); do
        kill -0 "$night" 2>/dev/null || { cat killed.txt; echo "${0##*/}: it ended too early" >&2; exit 3; }
        sleep 0.1
    done
    executor=$(pgrep -P "$night")
    printf '%s$ kill -9 %s%s\n\n' "$bold" "$executor" "$plain"
    kill -KILL "$executor"
    wait "$night" || cat killed.txt
}

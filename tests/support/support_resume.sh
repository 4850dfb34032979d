# Loaded by tests of runs that are killed and resumed (check_cli_resume.sh, check_cli_turns.sh), with the source and
# build folder as arguments. Changes to a folder of its own; the run to compare with leaves its weights in untouched/
# and its log in untouched.jsonl.
# shellcheck shell=bash disable=SC2034

source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
[[ -x $build/spillway && -x $build/spillway-exec ]] || { echo "the programs are not built"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export PATH=$build:$PATH HOME=$work XDG_CONFIG_HOME=$work
machine=()
# shellcheck disable=SC1091 # sets machine
source "$source/tests/golden/cli/helpers.sh"
seed=${SPILLWAY_SEED:-$(date +%s)}
RANDOM=$((seed % 32768))
echo "SPILLWAY_SEED=$seed"

failed=0
check() { # WHAT CONDITION...
    local what=$1
    shift
    if "$@"; then echo "ok: $what"; else echo "FAILED: $what"; failed=1; fi
}
losses() { grep -h '"step"' "$1" | sed -E 's/, *"(tokens_per_s|elapsed_s).*//' | sort -u; }
# shellcheck disable=SC2317 # called through check()
same_weights() { diff <(cksum ./*.safetensors) <(cd untouched && cksum ./*.safetensors); }
# shellcheck disable=SC2317
same_losses() { diff <(losses run.jsonl) <(losses untouched.jsonl); }
# Lines of the log so far.
lines() { if [[ -e run.jsonl ]]; then wc -l <run.jsonl; else echo 0; fi; }

#!/usr/bin/env bash
# `spillway run --hosts`: ranks on this machine and by ssh, with the bits of one process; what goes wrong is one line.
# label: medium
#
# usage: check_cli_hosts.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail

source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
[[ -x $build/spillway && -x $build/spillway-exec ]] || { echo "the programs are not built"; exit 77; }
work=$(mktemp -d)
runner=
trap '[[ -z $runner ]] || kill -KILL "$runner" 2>/dev/null || true; wait; rm -rf "$work"' EXIT
cd "$work"
mkdir empty bin
export PATH=$work/bin:$build:$PATH HOME=$work/empty XDG_CONFIG_HOME=$work/empty TMPDIR=$work SPILLWAY_HISTORY=
unset SPILLWAY_EXEC SPILLWAY_SSH
seed=${SPILLWAY_TEST_SEED:-$RANDOM}
RANDOM=$seed
echo "seed $seed (SPILLWAY_TEST_SEED repeats it)"
cp "$source"/LICENSE text.txt

# Stands in for ssh: hosts named there* carry the line out in another folder, with processes of their own.
cat >bin/ssh <<'SH'
#!/bin/sh
while [ "$1" = -o ]; do shift 2; done
host=$1
shift
echo "$host: $*" >>"$TMPDIR/ssh.log"
case $host in
there*|user@there*) cd "$HOME" && exec sh -c "$*" ;;
bare*) cd "$HOME" && PATH=/usr/bin:/bin exec sh -c "$*" ;;
esac
echo "ssh: connect to host $host port 22: No route to host" >&2
exit 255
SH
chmod +x bin/ssh

fail() { echo "FAILED: $*"; exit 1; }
plan() { # NAME MINIBATCHES
    cat >"$1-jobs.json" <<JSON
{"spillway_jobs": 1,
 "defaults": {"network": "gpt2-tiny-bytes", "sequence": 32, "microbatch": 2, "microbatches": 4, "data": "text.txt"},
 "jobs": [{"name": "a", "weights_out": "a.safetensors", "minibatches": $2,
           "parallel": {"pipeline": 2, "data": 2, "schedule": "1f1b"}}]}
JSON
    spillway plan "$1-jobs.json" --hw host-2-cores --devices 4 --device-memory 64MiB --quiet -o "$1.json" >/dev/null
}
losses() { sed -n 's/, "lr.*//; s/, "elapsed.*//; /loss"/p' "$1"; }
# Runs spillway; `code` is its exit code, errors (without warnings) are in `errors`.
run() {
    code=0
    spillway run "$@" >report 2>messages || code=$?
    grep -v '^warning:' messages >errors || true
}
refused() { # CODE TEXT ARGUMENTS
    local expected=$1 text=$2
    shift 2
    run "$@"
    [[ $code == "$expected" && $(wc -l <errors) == 1 ]] || fail "$*: exit code $code, $(cat messages)"
    grep -qF -- "$text" errors || fail "$*: $(cat errors) (expected $text)"
    [[ ! -e a.safetensors ]] || fail "$*: wrote weights"
}

plan short 4
spillway-exec run short.json --quiet --log one.log
mv a.safetensors one.safetensors

# Ranks here, ranks by ssh, and both; with comments, empty lines and a host with a user.
printf '# two ranks\nlocalhost slots=2 # here\n\n' >here
printf '127.0.0.1\nthere1 slots=2\n\tuser@there2\r\n' >both
printf 'localhost\n' >alone
for hosts in here both alone; do
    run short.json --hosts $hosts --log many.log
    [[ $code == 0 && ! -s errors ]] || fail "$hosts: exit code $code, $(cat messages)"
    cmp a.safetensors one.safetensors || fail "$hosts: other weights"
    diff <(losses many.log) <(losses one.log) || fail "$hosts: other losses"
    grep -q makespan report || fail "$hosts: no report: $(cat report)"
    rm a.safetensors many.log
done

# The report has the times of other ranks' devices.
run short.json --hosts both --json
busiest=$(sed -n 's/.*"busiest_stream": {"name": "\(dev[123]\) compute", "busy_s": \([^,]*\),.*/\1 \2/p' report)
[[ $code == 0 && $busiest =~ ^dev[123]\ 0\.0*[1-9] ]] ||
    fail "times of other ranks: $code '$busiest' $(cat report messages)"
rm a.safetensors

# So it has for a job without a device on the first rank: its rate, and the time until it ends.
cat >apart-jobs.json <<'JSON'
{"spillway_jobs": 1,
 "defaults": {"network": "gpt2-tiny-bytes", "sequence": 32, "microbatch": 2, "data": "text.txt"},
 "jobs": [{"name": "here", "minibatches": 2, "devices": [0], "parallel": {"data": 1}},
          {"name": "there", "minibatches": 40, "devices": [1], "parallel": {"data": 1}}]}
JSON
spillway plan apart-jobs.json --hw host-2-cores --devices 2 --device-memory 64MiB --quiet -o apart.json >/dev/null
run apart.json --hosts here --no-weights --json
[[ $code == 0 ]] || fail "apart: $code $(cat messages)"
awk '/"makespan_s"/ { makespan = $2 + 0 } /"measured_tokens_per_s"/ { rates[++n] = $2 + 0 }
     END { exit !(n == 2 && rates[1] > 0 && rates[2] > 0 && makespan >= 0.99 * 40 * 64 / rates[2]) }' \
    <(grep -oE '"(makespan_s|measured_tokens_per_s)": [0-9.e+-]+' report) || fail "rates of jobs apart: $(cat report)"
[[ $(grep -cE '"arena_bytes": [1-9]' report) == 2 ]] || fail "memory of another rank's device: $(cat report)"

# The measured trace has the operations of all ranks: as many as the prediction.
run short.json --hosts both --trace many.trace
[[ $code == 0 ]] && grep -q '^next: .*compare predicted.json.gz many.trace' report || fail "--trace: $code $(cat report messages)"
spillway simulate short.json --trace predicted.json.gz --quiet >predicted.text
spillway trace show many.trace >measured.text
operations=$(sed -n 's/^makespan .*, \([0-9]*\) operations, .*/\1/p' measured.text)
[[ -n $operations ]] && grep -q " $operations operations" predicted.text || fail "operations: $(cat measured.text predicted.text)"
spillway compare predicted.json.gz many.trace >compared.text || fail "compare: $(cat compared.text)"
rm a.safetensors

# Paths with blanks and quotes, and an ssh by another name.
mkdir "it's here"
cp short.json text.txt "it's here"
mv bin/ssh bin/other-ssh
SPILLWAY_SSH=other-ssh run "it's here/short.json" --hosts both
mv bin/other-ssh bin/ssh
[[ $code == 0 ]] && cmp "it's here/a.safetensors" one.safetensors || fail "a path with a quote: $code $(cat messages)"

# A plan that is made here, for --output and --resume, goes to the hosts, and no copy is left.
run short.json --hosts both -o out
[[ $code == 0 ]] && cmp out/a.safetensors one.safetensors || fail "--output: $code $(cat messages)"
plan half 2
mkdir kept
run half.json --hosts both --checkpoint kept --checkpoint-every 1
[[ $code == 0 ]] || fail "--checkpoint: $code $(cat messages)"
rm a.safetensors
run short.json --hosts both --checkpoint kept --resume
[[ $code == 0 ]] && cmp a.safetensors one.safetensors || fail "--resume: $code $(cat messages)"
rm a.safetensors
[[ -z $(ls -d spillway-* 2>/dev/null) ]] || fail "files are left: $(ls -d spillway-*)"

# What is wrong is told before anything begins.
printf 'localhost slots=2\nlocalhost slot=1\n' >wrong
refused 2 "wrong:2:11: found 'slot=1', expected 'slots=N' with N from 1 to 256" short.json --hosts wrong
printf 'localhost slots=2 three\n' >wrong
refused 2 "wrong:1:19: found 'three', expected the end of the line" short.json --hosts wrong
printf '# nothing\n' >wrong
refused 2 "wrong:2:1: found no host, expected lines such as 'localhost slots=2'" short.json --hosts wrong
printf '127.0.0.1\n  -oProxyCommand=x\n' >wrong
refused 2 "wrong:2:3: found '-oProxyCommand=x', expected the name or address of a host" short.json --hosts wrong
printf 'localhost\nthere\n' >wrong
refused 2 "wrong:2:1: found 'there', expected 'localhost' as in the first line" short.json --hosts wrong
printf 'localhost slots=256\nlocalhost\n' >wrong
refused 2 "wrong:2:1: found 'localhost', expected at most 256 ranks in all" short.json --hosts wrong
refused 2 "missing" short.json --hosts missing
printf '127.0.0.1\nsilent\n' >silent
refused 3 "host 'silent' does not answer: ssh: connect to host silent port 22: No route to host" short.json \
    --hosts silent
printf '127.0.0.1\nbare\n' >bare
refused 3 "host 'bare' has no program 'spillway-exec' on the PATH of its ssh commands" short.json --hosts bare
SPILLWAY_SSH=no-such-ssh refused 3 "cannot start 'no-such-ssh' for host 'silent'" short.json --hosts silent
cat >bin/blind-ssh <<SH
#!/bin/sh
mv "$work/short.json" "$work/hidden.json"
"$work/bin/ssh" "\$@"
code=\$?
mv "$work/hidden.json" "$work/short.json"
exit \$code
SH
chmod +x bin/blind-ssh
printf '127.0.0.1\nthere\n' >two
SPILLWAY_SSH=blind-ssh refused 2 "host 'there' cannot read the plan '$work/short.json' (expected at the same path on every host)" short.json --hosts two

# Lines of other ranks have a prefix; all end.
printf 'localhost slots=5\n' >many
begun=$SECONDS
run short.json --hosts many
[[ $code == 2 ]] && grep -q 'localhost (rank 4): error: .*too few for 5 ranks' errors ||
    fail "too many ranks: $code $(cat messages)"
((SECONDS - begun <= 10)) || fail "too many ranks: $((SECONDS - begun)) s"

# The first interrupt ends all ranks, with the weights of the minibatches that were made.
plan long 100000
begin() { # HOSTS
    rm -f many.log
    spillway run long.json --hosts "$1" --log many.log >report 2>messages &
    runner=$!
    local until=$((SECONDS + 60))
    while ! grep -q '"step": 3,' many.log 2>/dev/null; do
        ((SECONDS < until)) || fail "no step: $(cat messages)"
        sleep 0.02
    done
}
await() {
    local begun=$SECONDS
    code=0
    wait "$runner" || code=$?
    runner=
    ((SECONDS - begun <= 10)) || fail "the ranks ended after $((SECONDS - begun)) s"
    [[ -z $(of_ours) ]] || fail "ranks are left: $(of_ours)"
}
of_ours() { # process numbers of executors of the long plan
    local p
    for p in /proc/[0-9]*; do
        [[ $({ tr '\0' ' ' <"$p/cmdline"; } 2>/dev/null) == *spillway-exec*"$work/long.json"* ]] && echo "${p#/proc/}"
    done
    true
}
begin both
kill -INT "$runner"
await
[[ $code == 130 && -e a.partial.safetensors ]] || fail "an interrupt: $code $(cat messages)"
rm -f a.partial.safetensors

# A rank that dies ends all, by name, and no weights are written.
begin both
victims=($(of_ours))
((${#victims[@]} >= 3)) || fail "expected three ranks, found ${victims[*]}"
for victim in "${victims[@]}"; do # the last process of a rank is the executor itself
    [[ $(readlink "/proc/$victim/exe") == "$build/spillway-exec" ]] && chosen=$victim
done
kill -KILL "$chosen"
await
[[ $code == 3 ]] && grep -q "process $chosen) ended before the run did" messages || fail "a rank that died: $code $(cat messages)"
[[ ! -e a.safetensors && ! -e a.partial.safetensors ]] || fail "weights were written without a rank"
echo "all well"

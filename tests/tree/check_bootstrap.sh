#!/usr/bin/env bash
# The bootstrap script on machines that are not like this one: its tools are stand-ins that log.
# label: fast
#
# usage: check_bootstrap.sh SOURCE_FOLDER
# shellcheck disable=SC2016 # texts in single quotes are scripts of the stand-ins
set -euo pipefail

source_folder=$(readlink -f "${1:?the source folder is missing}")
scratch=$(mktemp -d)
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
failures=0

# A tree with the script alone, and a folder of tools: the real small ones, stand-ins for the rest.
machine() { # TOOL...: which stand-ins there are
    rm -rf "${scratch:?}"/{tree,tools,log}
    mkdir -p "$scratch/tree/docs/examples" "$scratch/tree/tests/fuzz/models" "$scratch/tools"
    cp "$source_folder/bootstrap" "$scratch/tree/"
    echo 'echo demo of "$1"' >"$scratch/tree/docs/examples/demo.sh"
    touch "$scratch/tree/tests/fuzz/models"/fuzz_{jobs,plan}.c
    echo 'shift 2; echo "guided $*"; [[ $1 != "$broken" ]]' >"$scratch/tree/tests/fuzz/fuzz_guided.sh"
    local tool
    for tool in bash env dirname readlink nproc cat rm tail paste; do
        ln -s "$(command -v "$tool")" "$scratch/tools/$tool"
    done
    printf '#!/bin/bash\necho "${user:-0}"\n' >"$scratch/tools/id"
    for tool in "$@"; do
        printf '#!/bin/bash\necho "%s $*" >>"%s/log"\n' "$tool" "$scratch" >"$scratch/tools/$tool"
    done
    if [[ -e $scratch/tools/dpkg-query ]]; then
        # Packages named in $lacking are not installed.
        printf '#!/bin/bash\n[[ " $lacking " == *" ${!#} "* ]] && exit 1\necho -n installed\n' \
            >"$scratch/tools/dpkg-query"
    fi
    [[ -e $scratch/tools/sudo ]] && printf '\n"$@"\n' >>"$scratch/tools/sudo"
    find "$scratch/tools" -type f -exec chmod +x {} + # not what the links lead to: it is the system's
    touch "$scratch/log"
}

# Run the script there; compare exit code, a part of what it prints, and the log of the stand-ins.
expect() { # NAME CODE TEXT LOG ARGUMENTS...
    local name=$1 code=$2 text=$3 log=$4 output actual=0 actual_log
    shift 4
    : >"$scratch/log"
    output=$(PATH=$scratch/tools "$scratch/tools/bash" "$scratch/tree/bootstrap" "$@" 2>&1) || actual=$?
    actual_log=$(<"$scratch/log")
    if [[ $actual != "$code" || $output != *"$text"* || $actual_log != "$log" ]]; then
        printf '%s: exit code %s (expected %s)\n' "$name" "$actual" "$code"
        printf -- '--- printed (expected: %s)\n%s\n--- called\n%s\n' "$text" "$output" "$actual_log"
        printf -- '--- expected calls\n%s\n' "$log"
        failures=$((failures + 1))
    fi
}

configure='cmake -S . -B build -G Ninja'
compile='cmake --build build --parallel 3'
ctest='ctest --test-dir build --output-on-failure --no-tests=error --parallel 4'
update='apt-get update -q -o APT::Update::Error-Mode=any'
export JOBS=3 lacking='' user=0 broken=''

machine cmake ctest apt-get dpkg-query
expect 'no argument' 0 'usage: ./bootstrap VERB' ''
expect 'help' 0 'usage: ./bootstrap VERB' '' --help
expect 'unknown verb' 2 "unknown verb 'biuld'" '' biuld
expect 'unknown set' 2 "unknown set of tests 'quick'" '' test quick
expect 'build' 0 'built; try' "$configure
$compile" build
expect 'build again' 0 'built; try' "$configure
$compile" build
expect 'test' 0 'tests took' "$configure
$compile
$ctest -LE slow" test
expect 'fast tests' 0 'tests took' "$configure
$compile
$ctest -L ^fast\$" test fast
expect 'all tests' 0 'tests took' "$configure
$compile
$ctest" test all
expect 'demo' 0 'demo of build' "$configure
$compile --target programs" demo
expect 'sanitize' 0 'tests took' "cmake -S . -B build-asan -G Ninja -DSPILLWAY_SANITIZE=address,undefined
cmake --build build-asan --parallel 3
${ctest/build/build-asan} -L ^(fast|medium)\$" sanitize
expect 'packages' 0 'libsqlite3-dev     the history and kept sweeps
' '' packages
while read -r package purpose; do # a line a package
    [[ $package =~ ^[a-z0-9-]+$ && -n $purpose ]] ||
        { echo "no purpose: '$package $purpose'"; failures=$((failures + 1)); }
done < <(PATH=$scratch/tools "$scratch/tools/bash" "$scratch/tree/bootstrap" packages)

# Fuzzing is for machines with clang, which is no package that bootstrap installs.
expect 'no clang' 2 'install clang with libFuzzer: apt-get install clang' '' fuzz
expect 'fuzz tests without clang' 0 'fuzzing was not guided by coverage; install clang' "$configure
$compile
$ctest -L ^fuzz\$" test fuzz
expect 'no such target' 2 "there is no fuzz target 'plans' (expected jobs plan)" '' fuzz plans
expect 'no seconds' 2 "'soon' is no number of seconds" '' fuzz plan soon
machine cmake ctest apt-get dpkg-query clang
probe='clang -x c -fopenmp -fsanitize=fuzzer,address,undefined -o /dev/null -'
configure_fuzz='cmake -S . -B build-fuzz -G Ninja -DSPILLWAY_FUZZ=ON'
compile_fuzz='cmake --build build-fuzz --parallel 3 --target fuzz_targets'
guided="$probe
$configure_fuzz
$compile_fuzz"
expect 'fuzz' 0 'guided jobs -max_total_time=60
==> fuzzing plan for 60 s
guided plan -max_total_time=60' "$guided" fuzz
expect 'fuzz for two minutes' 0 'guided plan -max_total_time=120' "$guided" fuzz 120
expect 'fuzz one target' 0 'fuzzing plan for 3600 s
guided plan -max_total_time=3600
==> no findings' "$guided" fuzz plan 3600
expect 'keep what was found' 0 'inputs of plan
guided plan --keep' "$guided" fuzz keep plan
broken='jobs'
expect 'a finding' 1 'guided plan -max_total_time=60
==> findings are in build-fuzz/findings: jobs' "$guided" fuzz
broken=''
expect 'fuzz tests' 0 'tests took' "$configure
$compile
$ctest -L ^fuzz\$
$guided
${ctest/build/build-fuzz} -L ^fuzz\$" test fuzz
machine cmake ctest apt-get dpkg-query
mkdir "$scratch/tree/build"
expect 'clean' 0 'removing' '' clean
[[ ! -e $scratch/tree/build ]] || { echo 'clean left build/'; failures=$((failures + 1)); }

lacking='scdoc cmake'
expect 'root installs what is missing' 0 'installing cmake scdoc' "$update
apt-get install -q -y --no-install-recommends cmake scdoc
$configure
$compile" build

user=1000
expect 'neither root nor sudo' 2 'neither root nor sudo to install them: cmake scdoc' '' build
machine cmake ctest apt-get dpkg-query sudo
expect 'sudo' 0 'installing cmake scdoc' "sudo $update
$update
sudo env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends cmake scdoc
apt-get install -q -y --no-install-recommends cmake scdoc
$configure
$compile" build

machine cmake ctest dpkg-query
expect 'no apt-get' 2 'this is no Debian system' '' build
machine cmake ctest apt-get
expect 'no dpkg' 2 'this is no Debian system' '' build

user=0
machine cmake ctest apt-get dpkg-query
printf '#!/bin/bash\necho "E: no $1" >&2; exit 100\n' >"$scratch/tools/apt-get"
expect 'no network' 2 'E: no install
bootstrap: packages cannot be fetched (is there a network?); missing: cmake scdoc' '' build
machine cmake ctest apt-get dpkg-query
printf '[[ $1 != update ]]\n' >>"$scratch/tools/apt-get"
fetch='apt-get install -q -y --no-install-recommends'
expect 'a list is out of reach, the packages are not' 0 'not all lists' "$update
$fetch --download-only -o Acquire::Retries=0 cmake scdoc
$fetch cmake scdoc
$configure
$compile" build

lacking=''
machine cmake ctest apt-get dpkg-query
printf '#!/bin/bash\nexit 8\n' >"$scratch/tools/ctest"
expect 'failing tests fail' 8 'tests took' "$configure
$compile" test

if [[ $(id -u) -ne 0 ]]; then # root may write to anything
    machine cmake ctest apt-get dpkg-query
    chmod a-w "$scratch/tree"
    expect 'read-only tree' 2 'cannot write to' '' build
    chmod u+w "$scratch/tree"
fi

[[ $failures -eq 0 ]] || exit 1
echo "bootstrap does what it says, there and here"

#!/bin/bash
# exec/cuda/gpu-check without a GPU, and with one that is made up and on which nothing goes well: it says so,
# goes on past each failing part, and leaves one JSON file. It also uses: python3, as exec/cuda/gpu-check does.
set -u
source=$1
command -v python3 > /dev/null || exit 77
command -v cc > /dev/null || exit 77
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

expect() { # what, found, expected
    [ "$2" = "$3" ] && return
    echo "$1: found '$2', expected '$3'"
    failed=1
}

driver() { # folder, what cuInit() returns
    mkdir -p "$scratch/$1"
    cat > "$scratch/driver.c" <<END
#include <string.h>
int cuInit(unsigned flags) { (void)flags; return $2; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGetName(char *name, int size, int device) { (void)device; strncpy(name, "Made Up", (size_t)size); return 0; }
END
    cc -shared -fPIC -o "$scratch/$1/libcuda.so.1" "$scratch/driver.c" || exit 1
}

driver without 100
LD_LIBRARY_PATH=$scratch/without "$source/exec/cuda/gpu-check" 2> "$scratch/error"
expect "exit code without a device" $? 3
expect "message without a device" "$(cat "$scratch/error")" \
    "gpu-check: no CUDA device here (the driver says error 100)"

# programs that crash, that are not there, that succeed and write nothing, and that write no JSON
driver with 0
mkdir "$scratch/build"
printf '#!/bin/sh\nkill -SEGV $$\n' > "$scratch/build/test_exec_cuda_kernels"
printf '#!/bin/sh\n[ "$1" = measure ] && echo "{broken" > "$7"\nexit 0\n' > "$scratch/build/spillway-exec"
chmod +x "$scratch"/build/*
LD_LIBRARY_PATH=$scratch/with "$source/exec/cuda/gpu-check" --no-build --build "$scratch/build" \
    -o "$scratch/result.json" > "$scratch/output" 2>&1
expect "exit code where nothing goes well" $? 1
python3 - "$scratch/result.json" > "$scratch/summary" <<'END'
import json, sys
result = json.load(open(sys.argv[1]))
parts = result["parts"]
print(result["device"], result["complete"], len(parts))
print(parts["build"]["ok"], parts["kernels"].get("exit_code"))
for name in ("collectives", "rates", "profile", "training-resident", "contract"):
    print(name, parts[name]["ok"], bool(parts[name].get("why") or "weights_fingerprints" in parts[name]))
END
expect "the result" "$(cat "$scratch/summary")" "Made Up True 22
True -11
collectives False True
rates False True
profile False True
training-resident False True
contract False True"
[ $failed = 0 ] || cat "$scratch/output"
exit $failed

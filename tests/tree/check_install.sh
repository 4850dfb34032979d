#!/usr/bin/env bash
# What is installed can be used: a program is compiled against it and run, each header stands alone.
# label: medium
#
# usage: check_install.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail

source=${1:?the source folder is missing}
build=${2:?the build folder is missing}
skip() { echo "skipped: $*"; exit 77; }

[[ -e $build/libspillway.so ]] || skip "$build/libspillway.so is not built"
grep -q '^SPILLWAY_SANITIZE:STRING=$' "$build/CMakeCache.txt" || skip "built with a sanitizer"
for tool in cmake pkg-config "${CC:-cc}"; do
    command -v "$tool" >/dev/null || skip "no $tool"
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$build" --prefix "$scratch/installed" --component library >/dev/null
mv "$scratch/installed" "$scratch/moved" # nothing may remember where it was installed
pc=$(find "$scratch/moved" -name spillway.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH

cat >"$scratch/main.c" <<'C'
#include <stdio.h>
#include "base/text/quantity.h"
int main(void)
{
    double bytes;
    struct error err = {0};
    if (quantity_parse("1.5KiB", DIMENSION_BYTES, &bytes, &err) != STATUS_OK) return 1;
    return printf("%.0f bytes\n", bytes) < 0;
}
C
read -ra flags <<<"$(pkg-config --cflags --libs spillway)"
"${CC:-cc}" -std=c11 -Wall -Wextra -Werror -o "$scratch/main" "$scratch/main.c" "${flags[@]}"
output=$(LD_LIBRARY_PATH=$(pkg-config --variable=libdir spillway) "$scratch/main")
[[ $output == '1536 bytes' ]] || { echo "the program printed '$output'"; exit 1; }

"${CC:-cc}" -std=c11 -Wall -Wextra -Werror -pthread -o "$scratch/library" "$source/docs/examples/library.c" "${flags[@]}"
ways=(pp=4 dp=4,v=12 pp=4 dp=4,v=12 pp=3 dp=4,v=12,zero=3)
output=$(LD_LIBRARY_PATH=$(pkg-config --variable=libdir spillway) "$scratch/library" "$source/docs/examples/parallel.json" \
    '4x a100-sxm4-80gb' "${ways[@]}")
[[ $(sort -u <<<"$output" | wc -l) == 4 && $(wc -l <<<"$output") == 6 ]] ||
    { echo "threads printed"; echo "$output"; exit 1; }

soname=$(objdump -p "$build/libspillway.so" | awk '/SONAME/ {print $2}')
[[ $soname == libspillway.so.0 ]] || { echo "the library is called '$soname'"; exit 1; }
echo 'int main(void) { return 0; }' >"$scratch/empty.c"
"${CC:-cc}" -o "$scratch/empty" "$scratch/empty.c" -Wl,--no-as-needed "${flags[@]}" ||
    { echo "the library needs symbols that nothing defines"; exit 1; }

count=0
while read -r header; do
    name=${header#"$scratch"/moved/include/spillway/}
    read -ra flags <<<"$(pkg-config --cflags spillway)"
    printf '#include "%s"\n#include "%s"\n' "$name" "$name" >"$scratch/header.c"
    "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -fsyntax-only "${flags[@]}" "$scratch/header.c" ||
        { echo "$name does not stand alone"; exit 1; }
    count=$((count + 1))
done < <(find "$scratch/moved/include/spillway" -name '*.h' | sort)
[[ $count -gt 10 ]] || { echo "only $count headers are installed"; exit 1; }
echo "a program links $soname; $count headers stand alone"

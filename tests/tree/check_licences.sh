#!/usr/bin/env bash
# spillway-exec links no GPL library: the GPL solver and CUDA never meet in one binary.
# label: fast
#
# usage: check_licences.sh SOURCE_FOLDER BUILD_FOLDER
#
# Both what the file asks for (objdump -p) and what the loader would bring in, libraries of libraries
# included (ldd), are searched. The pattern is first shown text that it must match, and the search
# a program that does link one of them, where a compiler and such a library are at hand.
set -euo pipefail

pattern='lib(glpk|gsl|gslcblas|readline|history|fftw3?[a-z_]*|gmp|mpfr)\.so'

libraries() { # PROGRAM: every library it needs, one a line
    { objdump -p "$1" | awk '/NEEDED/ {print $2}'; ldd "$1" | awk '{print $1}'; } | sort -u
}

gpl_libraries() {
    grep -E "$pattern" || true
}

controls() {
    local samples found scratch
    samples=$(printf '%s\n' libglpk.so.40 libgsl.so.27 libgslcblas.so.0 libreadline.so.8 \
        libfftw3.so.3 libfftw3f_omp.so.3)
    found=$(echo "$samples" | gpl_libraries)
    [[ $found == "$samples" ]] || { echo "the pattern misses a GPL library"; return 1; }
    found=$(printf '%s\n' libjansson.so.4 libz.so.1 libdnnl.so.2 libc.so.6 libgomp.so.1 | gpl_libraries)
    [[ -z $found ]] || { echo "the pattern matches $found"; return 1; }

    # A made-up library with a GPL name, linked into a made-up program, must be found.
    scratch=$(mktemp -d)
    # shellcheck disable=SC2064 # the name is known now
    trap "rm -rf '$scratch'" RETURN
    echo 'int spillway_control(void) { return 0; }' >"$scratch/library.c"
    echo 'int spillway_control(void); int main(void) { return spillway_control(); }' >"$scratch/main.c"
    "${CC:-cc}" -shared -fPIC -Wl,-soname,libglpk.so.40 -o "$scratch/libglpk.so" "$scratch/library.c"
    "${CC:-cc}" -o "$scratch/program" "$scratch/main.c" -L"$scratch" -lglpk
    libraries "$scratch/program" | gpl_libraries | grep -q '^libglpk' ||
        { echo "the search misses a library that is linked"; return 1; }
}

program=${2:?the build folder is missing}/spillway-exec
if [[ ! -x $program ]]; then
    echo "skipped: $program is not built"
    exit 77
fi
for tool in objdump ldd "${CC:-cc}"; do
    command -v "$tool" >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
controls
found=$(libraries "$program" | gpl_libraries)
if [[ -n $found ]]; then
    echo "spillway-exec links GPL libraries:"
    echo "$found"
    exit 1
fi
echo "spillway-exec links $(libraries "$program" | wc -l) libraries, none of them GPL"

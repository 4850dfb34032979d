#!/usr/bin/env bash
# A name that a header exports says whose it is.
# label: fast
#
# usage: check_names.sh SOURCE_FOLDER
#
# A name begins with a word of its header's path (plan_read in planner/plan.h, STORAGE_BLOCK in exec/device/storage.h),
# or with an object that belongs to this header or folder (STATUS_OK in base/error.h). tests/tree/objects.tsv lists the
# objects, each with its only owner. Before the real tree, the check runs on a made-up one with a mistake of each kind.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

# Complaints about the headers of a tree, by its table of objects.
check_names() { # ROOT OBJECTS
    (cd "$1" && find . -type f \( -name '*.h' -o -name '*.cuh' \) -not -path './tests/*' -not -path '*/build*' \
        -not -path './.*/*' | sed 's|^\./||' | sort | xargs awk -f "$here/exported_names.awk") |
        awk -f "$here/check_names.awk" "$2" - | sort
}

self_test() {
    local tree expected found
    tree=$(mktemp -d)
    # shellcheck disable=SC2064 # the name is known now
    trap "rm -rf '$tree'" RETURN
    mkdir -p "$tree"/{base/text,planner,tests/base}
    printf '%s\t%s\n' status base/error.h fence planner/plan.h color base >"$tree/objects.tsv"
    cat >"$tree/base/error.h" <<'TEXT'
#ifndef SPILLWAY_BASE_ERROR_H
#define SPILLWAY_BASE_ERROR_H
/* struct comment; "in a comment" */
#define ERROR_LIST(x) \
    enum { x }
#define BARE_MACRO 1
extern "C" {
enum status { STATUS_OK = (1, 2), STATUS_BAD, ODD_ONE };
}
struct error { enum { INNER_BARE, ERROR_INNER } kind; int member[3], other; };
struct bare_struct *error_get(struct elsewhere *with, int parameter);
struct bare_struct { int x; };
typedef int (*error_function)(int), bare_type;
typedef void (*bare_function)(void *context);
extern const char *const error_names[ERROR_INNER], *bare_names;
static const struct error bare_constant = {0, {1}};
static inline int bare_inline(int a) { enum { LOCAL }; return a > 0 ? other_call(a) : '{'; }
int errors_count(void);
static_assert(sizeof(struct error) == 16, "a text; with { braces");
int bare_prototype(char *const *list, void (*call)(int));
struct forward;
#endif
TEXT
    printf '%s\n' 'enum { COLOR_RED, STATUS_LOST };' 'struct colors;' 'error_function text_one, bare_call;' >"$tree/base/text/quantities.h"
    printf '%s\n' 'int quantity_parse(void);' 'struct quantities { int a; };' >>"$tree/base/text/quantities.h"
    printf '%s\n' 'int __attribute__((unused)) plan_read(void);' 'void planner_go(void) __attribute__((cold));' >"$tree/planner/plan.h"
    echo 'int anything(void);' >"$tree/tests/base/support.h"
    expected="base/error.h: 'BARE_MACRO'
base/error.h: 'INNER_BARE'
base/error.h: 'ODD_ONE'
base/error.h: 'bare_constant'
base/error.h: 'bare_function'
base/error.h: 'bare_inline'
base/error.h: 'bare_names'
base/error.h: 'bare_prototype'
base/error.h: 'bare_struct'
base/text/quantities.h: 'STATUS_LOST'
base/text/quantities.h: 'bare_call'
objects.tsv: no name of planner/plan.h needs 'fence'"
    found=$(check_names "$tree" "$tree/objects.tsv" | sed "s/' begins with .*/'/")
    if [[ $found != "$expected" ]]; then
        echo "the check itself is broken:"
        diff <(echo "$expected") <(echo "$found") || true
        return 1
    fi
}

self_test
complaints=$(check_names "${1:-.}" "$here/objects.tsv")
if [[ -n $complaints ]]; then
    echo "$complaints"
    exit 1
fi
echo "exported names say whose they are"

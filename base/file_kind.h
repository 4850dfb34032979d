/*
 * Kinds of files that the programs write, and the kind of a file that is already there.
 *
 * Files of Spillway's own have a key "spillway_KIND" near their beginning; other formats have a signature. A text without
 * either (a table, an LP program) is recognised by its first line.
 */
#ifndef SPILLWAY_BASE_FILE_KIND_H
#define SPILLWAY_BASE_FILE_KIND_H

#include <stdbool.h>

enum file_kind {
    FILE_KIND_NONE, /* not an output */
    FILE_KIND_PLAN,
    FILE_KIND_TRACE,
    FILE_KIND_HARDWARE,
    FILE_KIND_INSTANCE,
    FILE_KIND_SCHEDULE,
    FILE_KIND_PLACEMENT,
    FILE_KIND_NETWORK,
    FILE_KIND_LOG,
    FILE_KIND_RESULT,
    FILE_KIND_TIMELINE,
    FILE_KIND_PICTURE,
    FILE_KIND_PAGE,
    FILE_KIND_TABLE,
    FILE_KIND_POINTS, /* a table or a database */
    FILE_KIND_DATABASE,
    FILE_KIND_WEIGHTS,
    FILE_KIND_PROGRAM,
    FILE_KIND_MANIFEST, /* of a figure of a paper */
    FILE_KIND_FOLDER,   /* of files that the verb declares one by one */
    FILE_KIND_COUNT
};

/* "a plan" */
const char *file_kind_noun(enum file_kind kind);

/* Returns true for files that are extended or rewritten in place and not replaced as a whole. */
bool file_kind_in_place(enum file_kind kind);

/*
 * Returns true when the file at `path` may be replaced by one of `kind`: it is of that kind, empty, cannot be read, or is
 * no regular file. Otherwise `found` says what it is: "a jobs file".
 */
enum { FILE_KIND_FOUND_BYTES = 64 };
bool file_kind_matches(const char *path, enum file_kind kind, char found[FILE_KIND_FOUND_BYTES]);

#endif

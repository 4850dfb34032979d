/*
 * Kinds of files that the programs write, and the kind of a file that is already there.
 *
 * Files of Spillway's own have a key "spillway_KIND" near their beginning; other formats have a signature. A text without
 * either (a table, an LP program) is recognised by its first line.
 */
#ifndef SPILLWAY_BASE_FILE_KIND_H
#define SPILLWAY_BASE_FILE_KIND_H

#include <stdbool.h>
#include <stddef.h>

enum file_kind {
    FILE_KIND_NONE, /* not an output */
    FILE_KIND_JOBS,
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

/* The format of the first bytes of a file, inflated when they are gzip data. */
struct file_look {
    bool json, database, gzip;
    char found[FILE_KIND_FOUND_BYTES]; /* "a jobs file", "a text" */
};

/* False when there is nothing to look at: the file is empty, cannot be read or is no regular file. */
bool file_kind_look(const char *path, struct file_look *out);

/* A kind of file that commands read: what messages call it, and the command that takes it. */
struct file_reading {
    const char *key;     /* of the object at the top; NULL: the format is not JSON */
    const char *noun;    /* "a jobs file" */
    const char *command; /* with %s for the file's name; NULL: no command takes the file by itself */
};

/* Entry `index`, and NULL after the last: kinds of JSON files. */
const struct file_reading *file_reading_at(size_t index);

/* The kind of JSON file with this key at the top; NULL: none. */
const struct file_reading *file_reading_of_key(const char *key);

/* The format of a file that starts with these bytes; NULL for JSON, and for anything that is not recognised. */
const struct file_reading *file_reading_of_data(const char *data, size_t length);

/* Writes "a jobs file (expected a plan): try 'spillway plan jobs.json -o plan.json'" and returns `text`. */
enum { FILE_READING_BYTES = 512 };
const char *file_reading_refusal(const struct file_reading *found, const char *name, const char *expected,
                                 char text[FILE_READING_BYTES]);

#endif

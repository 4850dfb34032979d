/*
 * Kinds of files that the programs write, and recognition of the kind of an existing file.
 *
 * Spillway's own files have a key "spillway_KIND" near their beginning; other formats have a signature. A text
 * without either (a table, an LP program) is recognised by its first line.
 */
#ifndef SPILLWAY_BASE_FILES_FILE_KIND_H
#define SPILLWAY_BASE_FILES_FILE_KIND_H

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
    FILE_KIND_TOKENS,
    FILE_KIND_PROGRAM,
    FILE_KIND_MANIFEST, /* describes a figure of a paper */
    FILE_KIND_EXECUTION_TRACE, /* of a rank, for Chakra */
    FILE_KIND_PROCESS_GROUPS,  /* of these ranks */
    FILE_KIND_FOLDER,   /* a folder; the verb declares its files one by one */
    FILE_KIND_COUNT
};

/* The first line of pages in Markdown. */
#define FILE_KIND_PAGE_MARK "<!-- made by spillway -->"

/* Returns the noun for messages: "a plan". */
const char *file_kind_noun(enum file_kind kind);

/* Returns true for kinds that are extended or changed in place rather than replaced as a whole. */
bool file_kind_in_place(enum file_kind kind);

/*
 * Returns true when a file of `kind` may replace the file at `path`: that file is of the same kind, is empty, cannot
 * be read, or is not a regular file. Otherwise writes its kind into `found`: "a jobs file".
 */
enum { FILE_KIND_FOUND_BYTES = 64 };
bool file_kind_matches(const char *path, enum file_kind kind, char found[FILE_KIND_FOUND_BYTES]);

/* The format of a file by its first bytes, after inflating gzip data. */
struct file_look {
    bool json, database, gzip, compiled;
    bool text; /* neither JSON nor a format with a signature */
    char found[FILE_KIND_FOUND_BYTES]; /* "a plan", "a text" */
};

/* Returns false when the file is empty, cannot be read or is not a regular file. */
bool file_kind_look(const char *path, struct file_look *out);

/* A kind of file that commands read: its noun in messages, and the command that reads it. */
struct file_reading {
    const char *key;     /* key of the top-level object; NULL: the format is not JSON */
    const char *noun;    /* "a jobs file" */
    const char *command; /* with %s for the file name; NULL: no command reads the file by itself */
    const char *remark;  /* follows the noun in refusals; may be NULL */
};

/* Returns entry `index` of the kinds of JSON files; NULL after the last entry. */
const struct file_reading *file_reading_at(size_t index);

/* Returns the kind of JSON file that has `key` in its top-level object; NULL when there is none. */
const struct file_reading *file_reading_of_key(const char *key);

/* Returns the format of a file that starts with `data`; NULL for JSON and for unknown formats. */
const struct file_reading *file_reading_of_data(const char *data, size_t length);

/* Writes "a jobs file (expected a plan): try 'spillway plan jobs.json -o plan.json'" and returns `text`. */
enum { FILE_READING_BYTES = 512 };
const char *file_reading_refusal(const struct file_reading *found, const char *name, const char *expected,
                                 char text[FILE_READING_BYTES]);

/* Writes what is at `path`, a file or a folder, as file_reading_refusal() does. Returns false if it is empty or cannot
 * be read. */
bool file_reading_refusal_at(const char *path, const char *expected, char text[FILE_READING_BYTES]);

/* Returns true for "-" and for pipes, terminals and the like, which can be read only once. */
bool file_kind_is_stream(const char *path);

/* Returns true for a folder with a config.json. */
bool file_kind_is_network_folder(const char *path);

#endif

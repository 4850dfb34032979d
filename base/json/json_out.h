/*
 * JSON writer that needs no tree in memory: plans and traces have millions of numbers.
 *
 * Numbers have the shortest form that reads back as the same double. The same calls give the same bytes on every
 * machine and in every locale. NaN and infinity are a programming error (assert). Output goes to a growing buffer or
 * to a file_out (base/files/file.h); file_out_commit() reports errors of the latter.
 */
#ifndef SPILLWAY_BASE_JSON_JSON_OUT_H
#define SPILLWAY_BASE_JSON_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct file_out;
struct file_place;
struct json_out; /* opaque */

/* Creates a writer. Without a `file`, the text stays in memory for json_out_text(). Returns NULL when no memory is
 * left. The caller frees the writer with json_out_destroy(). */
struct json_out *json_out_create(struct file_out *file);
void json_out_destroy(struct json_out *out);

/* Returns the text written so far, NUL-terminated and borrowed. Only for writers without a file. */
const char *json_out_text(const struct json_out *out, size_t *length);

/* Returns false when any call ran out of memory. Callers check once, at the end. */
bool json_out_complete(const struct json_out *out);

/* A JSON file that is written whole or not at all: json_file_begin(), writes to `out`, json_file_end(). */
struct json_file {
    struct json_out *out;
    struct file_out *file;
    const char *what; /* for the message: "writing a plan" */
};
/* Errors: as file_out_create(). After success the caller must call json_file_end(). */
MUST_CHECK enum status json_file_begin(struct json_file *json, const char *path, const char *what,
                                       struct error *err);
/* Errors: as file_out_commit(); STATUS_NO_MEMORY when memory ran out while writing. No file is left then. */
MUST_CHECK enum status json_file_end(struct json_file *json, struct error *err);
/* Ends it without a file, in place of json_file_end(). */
void json_file_discard(struct json_file *json);

/* Returns the place of the next value (file_out_place()), with its line and column. Only with a file and between
 * values; columns count bytes. */
struct file_place json_out_place(struct json_out *out);

/* Write values. `key` is NULL inside an array and at the top. `compact` puts the whole container on one line. */
void json_out_object_begin(struct json_out *out, const char *key, bool compact);
void json_out_object_end(struct json_out *out);
void json_out_array_begin(struct json_out *out, const char *key, bool compact);
void json_out_array_end(struct json_out *out);
void json_out_u64(struct json_out *out, const char *key, uint64_t value);
void json_out_double(struct json_out *out, const char *key, double value);
void json_out_bool(struct json_out *out, const char *key, bool value);
void json_out_string(struct json_out *out, const char *key, const char *value);
void json_out_null(struct json_out *out, const char *key);

#endif

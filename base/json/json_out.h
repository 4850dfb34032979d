/*
 * JSON written as it is made, without a tree in memory: plans and traces have millions of numbers.
 *
 * Numbers have the shortest form that reads back to the same double; the same calls give the same
 * bytes on every machine and in every locale. NaN and infinity are a programming error (assert).
 * Output goes to a growing buffer or to a file_out (base/files/file.h); errors of the latter surface at
 * file_out_commit().
 */
#ifndef SPILLWAY_BASE_JSON_OUT_H
#define SPILLWAY_BASE_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct file_out;
struct json_out; /* opaque */

/* `file` NULL: keep it in memory for json_out_text(). NULL when memory ends. The caller frees it
 * with json_out_destroy(). */
struct json_out *json_out_create(struct file_out *file);
void json_out_destroy(struct json_out *out);

/* What was written so far, NUL-terminated; borrowed. Only without a file. */
const char *json_out_text(const struct json_out *out, size_t *length);

/* False when memory ended on the way; checked once, at the end. */
bool json_out_complete(const struct json_out *out);

/* A file of JSON, there whole or not at all: begin, write to `out`, end. */
struct json_file {
    struct json_out *out;
    struct file_out *file;
    const char *what; /* for the message: "writing a plan" */
};
/* Errors: those of file_out_create(); STATUS_NO_MEMORY. Without one, json_file_end() must follow. */
MUST_CHECK enum status json_file_begin(struct json_file *json, const char *path, const char *what,
                                       struct error *err);
/* Errors: those of file_out_commit(); STATUS_NO_MEMORY when memory ended on the way. No file is left. */
MUST_CHECK enum status json_file_end(struct json_file *json, struct error *err);

/* `key` is NULL inside an array or at the top. Containers on one line: compact true. */
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

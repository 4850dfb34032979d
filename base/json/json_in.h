/*
 * JSON read strictly, with the place of every value.
 *
 * jansson parses; the text is kept, so that an error about the meaning of a value has a place too:
 * "jobs.json:12:7: ...". The place is searched for when an error is told, which takes one pass over
 * the text: a good file pays nothing for it.
 * An object is read by taking its keys one after the other and closing it: whatever was not asked
 * for by then is an unknown key, and the error suggests the nearest key that was asked for. A key
 * named "_comment" is allowed everywhere and means nothing.
 *
 * Numbers out of the given range, NaN, infinity, duplicate keys, trailing text, more than 64 levels
 * and files over 1 GiB are refused. Integers end at 2^63 - 1; a whole number may be written 1e6 too.
 * All errors are STATUS_BAD_INPUT unless the file cannot be read (STATUS_IO), is too large
 * (STATUS_LIMIT) or memory ends (STATUS_NO_MEMORY).
 */
#ifndef SPILLWAY_BASE_JSON_IN_H
#define SPILLWAY_BASE_JSON_IN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text/quantity.h"

struct json_input; /* opaque: the text's name, the parsed tree, where each value stood */

/* Read `path` ("-" is standard input; a name that ends in .gz, or gzip data, is inflated). The
 * caller frees it with json_input_destroy(). */
MUST_CHECK enum status json_input_read(const char *path, struct json_input **out,
                                       struct error *err);

/* The same from memory; `name` stands where the file name would in messages. */
MUST_CHECK enum status json_input_parse(const char *name, const char *text, size_t length,
                                        struct json_input **out, struct error *err);

/* From this byte of a text on, the file has it at this line and column. */
struct json_anchor {
    size_t offset, line, column;
};
enum { JSON_ANCHORS_MAX = 9 };

/* Parses a text from which parts of the file are left out: anchors, ascending, the first at offset 0, say where the
 * rest stands. `text` is malloc'ed and NUL-terminated, and is taken over, also on failure. With `any`, the root may be
 * a number, a string, true, false or null. */
MUST_CHECK enum status json_input_parse_cut(const char *name, char *text, size_t length,
                                            const struct json_anchor *anchors, size_t anchor_count, bool any,
                                            struct json_input **out, struct error *err);

/* STATUS_BAD_INPUT when these first bytes of a file belong to a known format that is not JSON; the message names it. */
MUST_CHECK enum status json_refuse_format(const char *name, const char *data, size_t length, struct error *err);

/* Values of the other one may be told of as if they were this one's: their places are looked for there. It outlives
 * this one. */
void json_input_set_beside(struct json_input *input, const struct json_input *other);

void json_input_destroy(struct json_input *input);

const char *json_input_name(const struct json_input *input);

/* Borrowed from `input`, like every json_t and string below. */
const json_t *json_input_root(const struct json_input *input);

/*
 * "name:line:column: message", STATUS_BAD_INPUT, about the child of `container` under `key` (an
 * object), or number `index` (an array); about the container itself when key is NULL / index is
 * JSON_SELF.
 */
#define JSON_SELF SIZE_MAX
enum status json_fail_key(const struct json_input *input, const json_t *container, const char *key,
                          struct error *err, const char *format, ...) PRINTF_LIKE(5, 6);
enum status json_fail_index(const struct json_input *input, const json_t *container, size_t index,
                            struct error *err, const char *format, ...) PRINTF_LIKE(5, 6);

/* --- objects ------------------------------------------------------------------------------ */

enum { JSON_KEYS_MAX = 96 }; /* keys one object may be asked for: our largest asks for about 40 */

struct json_object {
    const struct json_input *input;
    const json_t *value;
    const char *asked[JSON_KEYS_MAX];
    size_t asked_count;
    size_t found_count; /* of those asked for, how many are there */
};

enum json_need { JSON_OPTIONAL, JSON_REQUIRED };

/*
 * Begin to read an object. `value` is a child found by json_take_object(), json_take_array() or the
 * root; if it is not an object the error names `what` was expected ("a job object").
 * Where `value` stands is found from its parent; pass the parent and the index or key through
 * json_object_open_at() when it may not be an object, else the error has the parent's place.
 */
MUST_CHECK enum status json_object_open(struct json_object *object, const struct json_input *input,
                                        const json_t *value, const char *what, struct error *err);
MUST_CHECK enum status json_object_open_at(struct json_object *object,
                                           const struct json_input *input, const json_t *array,
                                           size_t index, const char *what, struct error *err);

/*
 * Take the value under `key`. With JSON_OPTIONAL an absent key (or null) leaves *out untouched; a
 * value of the wrong type or out of [min, max] is an error in either case.
 */
MUST_CHECK enum status json_take_u64(struct json_object *object, const char *key,
                                     enum json_need need, uint64_t min, uint64_t max,
                                     uint64_t *out, struct error *err);
MUST_CHECK enum status json_take_u32(struct json_object *object, const char *key,
                                     enum json_need need, uint32_t min, uint32_t max,
                                     uint32_t *out, struct error *err);
MUST_CHECK enum status json_take_double(struct json_object *object, const char *key,
                                        enum json_need need, double min, double max, double *out,
                                        struct error *err);
MUST_CHECK enum status json_take_bool(struct json_object *object, const char *key,
                                      enum json_need need, bool *out, struct error *err);
MUST_CHECK enum status json_take_string(struct json_object *object, const char *key,
                                        enum json_need need, const char **out, struct error *err);

/* A string that must be one of names[0 .. count); *out is its index. The error lists the names. */
MUST_CHECK enum status json_take_choice(struct json_object *object, const char *key,
                                        enum json_need need, const char *const *names,
                                        size_t count, size_t *out, struct error *err);

/* A quantity with its unit, as a string: "11GiB", "2GB/s", "5us". See base/text/quantity.h. */
MUST_CHECK enum status json_take_quantity(struct json_object *object, const char *key,
                                          enum json_need need, enum dimension dimension,
                                          double min, double max, double *out, struct error *err);

/* *out is NULL when optional and absent. */
MUST_CHECK enum status json_take_array(struct json_object *object, const char *key,
                                       enum json_need need, const json_t **out,
                                       struct error *err);
MUST_CHECK enum status json_take_object(struct json_object *object, const char *key,
                                        enum json_need need, const json_t **out,
                                        struct error *err);

/* Accept a key without looking at it. */
void json_take_any(struct json_object *object, const char *key);

/* Is the key there and not null? Counts as asked for. */
bool json_has(struct json_object *object, const char *key);

/*
 * When the root is a file of another kind (base/files/file_kind.h) or the answer of a verb, names the kind, the `expected`
 * one ("a plan") and the command that takes the file: STATUS_BAD_INPUT. STATUS_OK when the kind is not known. Readers that require
 * the key of a kind need no call.
 */
MUST_CHECK enum status json_refuse_kind(const struct json_input *input, const char *expected, struct error *err);

/* Keys that were not asked for are an error, which names all of them. */
MUST_CHECK enum status json_object_close(struct json_object *object, struct error *err);

/* The same, with keys that are missing: one message tells of both. `hint` may be NULL: what other programs call the key. */
struct json_missing {
    const char *key, *hint;
};
MUST_CHECK enum status json_object_close_missing(struct json_object *object, const struct json_missing *missing,
                                                 size_t count, struct error *err);

/* --- arrays of numbers ---------------------------------------------------------------------- */

MUST_CHECK enum status json_item_u64(const struct json_input *input, const json_t *array,
                                     size_t index, uint64_t min, uint64_t max, uint64_t *out,
                                     struct error *err);
MUST_CHECK enum status json_item_double(const struct json_input *input, const json_t *array,
                                        size_t index, double min, double max, double *out,
                                        struct error *err);
MUST_CHECK enum status json_item_string(const struct json_input *input, const json_t *array,
                                        size_t index, const char **out, struct error *err);
/* Element `index` must be an array of exactly `length` elements (any length with SIZE_MAX). */
MUST_CHECK enum status json_item_array(const struct json_input *input, const json_t *array,
                                       size_t index, size_t length, const json_t **out,
                                       struct error *err);

#endif

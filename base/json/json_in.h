/*
 * Strict JSON reader that knows the position of every value.
 *
 * jansson parses. The reader keeps the text, so that an error about the meaning of a value also has a position:
 * "jobs.json:12:7: ...". It searches the text for the position only when it reports an error, in one pass; valid
 * files cost nothing extra. The caller reads an object by taking its keys one by one and closing it. A key that was
 * not taken by then is unknown, and the error suggests the nearest key that was taken. A key named "_comment" is
 * allowed everywhere and is ignored. Closing also reports all required keys that are missing, so every object with a
 * required key must be closed. Until then a missing key has a stand-in: the least number, "", false, an empty array or
 * object.
 *
 * The reader refuses numbers out of the given range, NaN, infinity, duplicate keys, trailing text, more than 64
 * levels, files over 1 GiB, and more values than fit in 384 MiB or three times the text. Integers end at 2^63 - 1; an
 * integer may also be written as 1e6. All errors are STATUS_BAD_INPUT, except STATUS_IO when the file cannot be read,
 * STATUS_LIMIT when it is too large or has too many values, and STATUS_NO_MEMORY.
 */
#ifndef SPILLWAY_BASE_JSON_JSON_IN_H
#define SPILLWAY_BASE_JSON_JSON_IN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text/quantity.h"

struct json_input; /* opaque: the name, the parsed tree, the position of each value */

/* Reads `path` ("-" is standard input) and inflates gzip data. The caller frees *out with json_input_destroy(). */
MUST_CHECK enum status json_input_read(const char *path, struct json_input **out,
                                       struct error *err);

/* Reads from memory; `name` stands for the file name in messages. */
MUST_CHECK enum status json_input_parse(const char *name, const char *text, size_t length,
                                        struct json_input **out, struct error *err);

/* Maps a text to its file: the byte at `offset` of the text is at this line and column of the file. */
struct json_anchor {
    size_t offset, line, column;
};
enum { JSON_ANCHORS_MAX = 13 };

/* Parses a text from which parts of the file are left out. The anchors map the rest to the file, in the order of
 * their offsets; the first offset is 0. `text` is malloc'ed and NUL-terminated; the reader takes it over, also on
 * failure. With `any`, the root may be a number, a string, true, false or null. */
MUST_CHECK enum status json_input_parse_cut(const char *name, char *text, size_t length,
                                            const struct json_anchor *anchors, size_t anchor_count, bool any,
                                            struct json_input **out, struct error *err);

/* Checks the first bytes of a file: STATUS_BAD_INPUT when they belong to a known format that is not JSON. The message
 * names the format. */
MUST_CHECK enum status json_refuse_format(const char *name, const char *data, size_t length, struct error *err);

/* Lets error functions that get `input` also find the positions of values of `other`. `other` outlives `input`. */
void json_input_set_beside(struct json_input *input, const struct json_input *other);

void json_input_destroy(struct json_input *input);

const char *json_input_name(const struct json_input *input);

/* Borrowed from `input`, like every json_t and string below. */
const json_t *json_input_root(const struct json_input *input);

/*
 * Set the error "name:line:column: message" and return STATUS_BAD_INPUT. The position belongs to the child of
 * `container` under `key` (an object) or at `index` (an array), or to the container itself when `key` is NULL or
 * `index` is JSON_SELF.
 */
#define JSON_SELF SIZE_MAX
enum status json_fail_key(const struct json_input *input, const json_t *container, const char *key,
                          struct error *err, const char *format, ...) PRINTF_LIKE(5, 6);
enum status json_fail_index(const struct json_input *input, const json_t *container, size_t index,
                            struct error *err, const char *format, ...) PRINTF_LIKE(5, 6);

/* --- objects ------------------------------------------------------------------------------ */

enum { JSON_KEYS_MAX = 96 }; /* most keys that one object is asked for; our largest object has about 40 */

struct json_object {
    const struct json_input *input;
    const json_t *value;
    const char *asked[JSON_KEYS_MAX];
    size_t asked_count;
    size_t found_count; /* how many of the asked keys exist */
    bool open_ended;    /* see json_object_ignore_others() */
};

/* JSON_DECIDES: required, and other keys depend on its value. When it is missing, reading ends there. */
enum json_need { JSON_OPTIONAL, JSON_REQUIRED, JSON_DECIDES };

/*
 * Begins to read an object. `value` is the root or a child from json_take_object() or json_take_array(). `what` names
 * the expected object in the error ("a job object"). The error has the position of the parent when `value` is not an
 * object. Use json_object_open_at() with the array and index for the exact position.
 */
MUST_CHECK enum status json_object_open(struct json_object *object, const struct json_input *input,
                                        const json_t *value, const char *what, struct error *err);
MUST_CHECK enum status json_object_open_at(struct json_object *object,
                                           const struct json_input *input, const json_t *array,
                                           size_t index, const char *what, struct error *err);

/* Works as json_object_open_at() on an element that was parsed by itself (json_stream_parse()): the root of `input`. */
MUST_CHECK enum status json_object_open_element(struct json_object *object, const struct json_input *input,
                                                size_t index, const char *what, struct error *err);

/* Allows other keys. The object is not closed: a missing key is an error at once. */
void json_object_ignore_others(struct json_object *object);

/*
 * Take the value under `key`. With JSON_OPTIONAL, a key that is absent or null leaves *out untouched. A value of the
 * wrong type or outside [min, max] is an error in either case. With JSON_REQUIRED, an absent key is an error of
 * json_object_close() or of the failure before it, and *out is a stand-in.
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

/* Takes a string with any characters, where json_take_string() refuses control characters: data, which is not shown. */
MUST_CHECK enum status json_take_text(struct json_object *object, const char *key,
                                      enum json_need need, const char **out, struct error *err);

/* Takes a string that must be one of names[0 .. count) and sets *out to its index. The error lists the names. */
MUST_CHECK enum status json_take_choice(struct json_object *object, const char *key,
                                        enum json_need need, const char *const *names,
                                        size_t count, size_t *out, struct error *err);

/* Takes a quantity with its unit, written as a string: "11GiB", "2GB/s", "5us". See base/text/quantity.h. */
MUST_CHECK enum status json_take_quantity(struct json_object *object, const char *key,
                                          enum json_need need, enum dimension dimension,
                                          double min, double max, double *out, struct error *err);

/* Take a container. *out is NULL when the key is optional and absent. */
MUST_CHECK enum status json_take_array(struct json_object *object, const char *key,
                                       enum json_need need, const json_t **out,
                                       struct error *err);
MUST_CHECK enum status json_take_object(struct json_object *object, const char *key,
                                        enum json_need need, const json_t **out,
                                        struct error *err);

/* Returns true for the stand-in of a missing object or array. It is empty. */
bool json_is_stand_in(const struct json_input *input, const json_t *value);

/* Accepts a key without reading its value. */
void json_take_any(struct json_object *object, const char *key);

/* Returns true when the key exists and is not null. The key then counts as asked for. */
bool json_has(struct json_object *object, const char *key);

/*
 * Refuses files of another kind (base/files/file_kind.h) and answers of verbs: STATUS_BAD_INPUT with a message that
 * names the kind, the `expected` kind ("a plan") and the command that reads the file. STATUS_OK when the kind is
 * unknown. Readers that require the key of their kind do not need this call.
 */
MUST_CHECK enum status json_refuse_kind(const struct json_input *input, const char *expected, struct error *err);

/* Closes the object. Keys that were not asked for and required keys that are missing are an error, which names all. */
MUST_CHECK enum status json_object_close(struct json_object *object, struct error *err);

/* Closes the object and names more missing keys in the same message. `hint` is the name that other programs give the
 * key, or NULL. */
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
/* Copies all elements, strings, into an arena. */
struct arena;
MUST_CHECK enum status json_item_strings(const struct json_input *input, const json_t *array, struct arena *arena,
                                         const char *const **out, struct error *err);
/* Takes element `index`, which must be an array of exactly `length` elements (SIZE_MAX: any length). */
MUST_CHECK enum status json_item_array(const struct json_input *input, const json_t *array,
                                       size_t index, size_t length, const json_t **out,
                                       struct error *err);

#endif

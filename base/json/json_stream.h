/*
 * JSON files larger than memory: one object with a few long arrays, which are read element by element.
 *
 *     {"spillway_trace": 1, ..., "operations": [...], "spans": [[0, ...], [1, ...], ... millions ...]}
 *
 * The caller names the long arrays. json_stream_open() passes over the file once and parses everything
 * else; in the head such an array is there and empty. json_stream_begin() then goes to the first element of one of
 * the arrays, and json_stream_next() takes them in order. Memory holds the head and one element.
 *
 * Errors are those of base/json/json_in.h, with the line and column in the file.
 */
#ifndef SPILLWAY_BASE_JSON_STREAM_H
#define SPILLWAY_BASE_JSON_STREAM_H

#include "base/json/json_in.h"

struct json_stream; /* opaque */

enum { JSON_STREAM_ARRAYS_MAX = 8 };

/* `arrays`: keys of the object at the top, at most JSON_STREAM_ARRAYS_MAX, then NULL; they outlive the stream.
 * The caller frees *out with json_stream_close(). What cannot be read twice (a pipe) is held in memory, up to 1 GiB. */
MUST_CHECK enum status json_stream_open(const char *path, const char *const *arrays, struct json_stream **out,
                                        struct error *err);

/* The same from memory; `text` is borrowed, `name` stands for the file in messages. */
MUST_CHECK enum status json_stream_of_text(const char *name, const char *text, size_t length, const char *const *arrays,
                                           struct json_stream **out, struct error *err);

/* Everything but the elements of the arrays. Borrowed. */
const struct json_input *json_stream_head(const struct json_stream *stream);

/* Goes to the first element of arrays[index]. An array that is not in the file has none. */
MUST_CHECK enum status json_stream_begin(struct json_stream *stream, size_t index, struct error *err);

/* An element as it stands in the file. Borrowed, valid until the next call about its stream. */
struct json_element {
    const char *text;    /* followed by a comma, a bracket or white space */
    size_t length;
    size_t line, column; /* of its first character */
    uint64_t index;
};

/* *more is false at the end of the array. */
MUST_CHECK enum status json_stream_next(struct json_stream *stream, struct json_element *out, bool *more,
                                        struct error *err);

/* The element, parsed: the root of *out, beside the head (json_input_set_beside()). The caller frees it with json_input_destroy(). */
MUST_CHECK enum status json_stream_parse(const struct json_stream *stream, const struct json_element *element,
                                         struct json_input **out, struct error *err);

/* An element that is an object with long arrays of its own. `element` stays valid until *out is closed, and its stream
 * is not asked for more before. The caller frees *out with json_stream_close(). */
MUST_CHECK enum status json_stream_of_element(const struct json_stream *stream, const struct json_element *element,
                                              const char *const *arrays, struct json_stream **out, struct error *err);

/* Elements of an array, 0 of anything else. */
size_t json_element_size(const struct json_element *element);

/*
 * Reads a row of numbers without the detour through a tree. True when the element is an array of exactly `count` numbers, none
 * of them negative. Else it may still be valid: json_stream_parse() says.
 */
bool json_element_numbers(const struct json_element *element, size_t count, double *out);

/* The same for up to `capacity` whole numbers below 2^32; *count is how many they are. */
bool json_element_wholes(const struct json_element *element, size_t capacity, uint32_t *out, size_t *count);

void json_stream_close(struct json_stream *stream); /* NULL is fine */

#endif

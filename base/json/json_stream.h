/*
 * JSON files larger than memory: one object with a few long arrays, which are read element by element.
 *
 *     {"spillway_trace": 1, ..., "operations": [...], "spans": [[0, ...], [1, ...], ... millions ...]}
 *
 * The caller names the long arrays. json_stream_open() reads the file once and parses everything else. The head has
 * the long arrays too, but empty. json_stream_begin() goes to the first element of a long array, and
 * json_stream_next() takes its elements in order. Memory holds the head and one element.
 *
 * Errors are as in base/json/json_in.h, with the line and column in the file.
 */
#ifndef SPILLWAY_BASE_JSON_JSON_STREAM_H
#define SPILLWAY_BASE_JSON_JSON_STREAM_H

#include "base/json/json_in.h"

struct file_in;
struct file_place;
struct json_rows;
struct json_stream; /* opaque */

enum { JSON_STREAM_ARRAYS_MAX = 12 };

/* Opens a file. `arrays` holds keys of the top-level object, at most JSON_STREAM_ARRAYS_MAX, then NULL; they outlive
 * the stream. The key "" also stands for a top-level array. The caller frees *out with json_stream_close(). Input
 * that cannot be read twice (a pipe) is held in memory, up to 1 GiB. */
MUST_CHECK enum status json_stream_open(const char *path, const char *const *arrays, struct json_stream **out,
                                        struct error *err);

/* Works as json_stream_open() on a text in memory, which is borrowed. `name` stands for the file name in messages. */
MUST_CHECK enum status json_stream_of_text(const char *name, const char *text, size_t length, const char *const *arrays,
                                           struct json_stream **out, struct error *err);

/* Works as json_stream_open() on a file that was opened, and takes it over, also on failure. `ends` may be NULL; else
 * it has a place for each array: where its closing bracket or white space before the bracket stands, and the elements
 * are not read then. A `text` of 0 says that the place is not known. A wrong place is an error or a wrong head. */
MUST_CHECK enum status json_stream_of_file(struct file_in *file, const char *const *arrays,
                                           const struct file_place *ends, struct json_stream **out, struct error *err);

/* Returns the file without the elements of the long arrays. Borrowed. */
const struct json_input *json_stream_head(const struct json_stream *stream);

/* Lets readers of the head find the elements of the long arrays. For base/json/json_rows.c. */
void json_stream_set_rows(struct json_stream *stream, struct json_rows *rows);

/* Goes to the first element of arrays[index]. An array that is missing in the file counts as empty. */
MUST_CHECK enum status json_stream_begin(struct json_stream *stream, size_t index, struct error *err);

/* Goes into arrays[index], to the place before its element number `element`: after the opening bracket, or before the
 * comma that precedes the element. A wrong place is an error of json_stream_next(), or gives other elements. */
MUST_CHECK enum status json_stream_go(struct json_stream *stream, size_t index, const struct file_place *place,
                                      uint64_t element, struct error *err);

/* Returns where the array begins: the offset after its opening bracket; 0 without the array. */
uint64_t json_stream_first(const struct json_stream *stream, size_t index);

/* The text of an element. Borrowed, valid until the next call on its stream. */
struct json_element {
    const char *text;    /* followed by a comma, a bracket or white space */
    size_t length;
    size_t line, column; /* of its first character */
    uint64_t offset;     /* likewise, in the text of the file */
    uint64_t index;
};

/* Reads the next element. *more is false at the end of the array. */
MUST_CHECK enum status json_stream_next(struct json_stream *stream, struct json_element *out, bool *more,
                                        struct error *err);

/* Parses the element: it is the root of *out. Errors may also point into the head (json_input_set_beside()). The
 * caller frees *out with json_input_destroy(). */
MUST_CHECK enum status json_stream_parse(const struct json_stream *stream, const struct json_element *element,
                                         struct json_input **out, struct error *err);

/* Opens an element that is an object with long arrays of its own. `element` stays valid until *out is closed; until
 * then the caller must not read on in `stream`. The caller frees *out with json_stream_close(). */
MUST_CHECK enum status json_stream_of_element(const struct json_stream *stream, const struct json_element *element,
                                              const char *const *arrays, struct json_stream **out, struct error *err);

/* Parses the whole file as json_input_read() does, for files that are not read as streams. The stream can only be
 * closed then. The caller frees *out with json_input_destroy(). */
MUST_CHECK enum status json_stream_whole(struct json_stream *stream, struct json_input **out, struct error *err);

/* Returns the number of elements of an array, and 0 for other values. */
size_t json_element_size(const struct json_element *element);

/*
 * Reads an array of numbers without building a tree. Returns true when the element is an array of exactly `count`
 * non-negative numbers. Other elements may still be valid; json_stream_parse() decides.
 */
bool json_element_numbers(const struct json_element *element, size_t count, double *out);

/* Works as json_element_numbers() for at most `capacity` integers below 2^32; sets *count to their number. */
bool json_element_wholes(const struct json_element *element, size_t capacity, uint32_t *out, size_t *count);

void json_stream_close(struct json_stream *stream); /* NULL does nothing */

#endif

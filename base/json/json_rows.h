/*
 * Files of one object with long arrays, read with one element of these arrays in memory.
 *
 * A reader is written once, for objects with their arrays in the tree:
 *
 *     json_take_array(&object, "devices", JSON_REQUIRED, &array, err)
 *     json_rows_each(object.input, array, read_device, context, err)
 *
 * json_rows_read_file() calls it with an input whose long arrays are empty, and json_rows_each() takes their elements
 * from the text of the file. If that fails, or the reader did not read all elements, the reader is called again with
 * the whole tree. So a faulty file has the same errors as without this, and needs the memory of the tree. If that is
 * past the limit of base/json/json_in.h, the first error is the result.
 */
#ifndef SPILLWAY_BASE_JSON_JSON_ROWS_H
#define SPILLWAY_BASE_JSON_JSON_ROWS_H

#include "base/json/json_in.h"

/* An element of an array. */
struct json_row {
    const struct json_input *in;
    const json_t *array; /* NULL: the element was parsed by itself, and is the root of `in` */
    size_t index;
};

typedef enum status (*json_row_visit)(const struct json_row *row, void *context, struct error *err);

/* Visits all elements of an array of `in`, in their order, until a visit fails. A NULL array is empty. */
MUST_CHECK enum status json_rows_each(const struct json_input *in, const json_t *array, json_row_visit visit,
                                      void *context, struct error *err);

/* Counts the elements of an array of `in`, without parsing them. A NULL array is empty. */
MUST_CHECK enum status json_rows_count(const struct json_input *in, const json_t *array, size_t *count,
                                       struct error *err);

/* Works as json_object_open_at() on the element. */
MUST_CHECK enum status json_row_open(struct json_object *object, const struct json_row *row, const char *what,
                                     struct error *err);

/* Returns the element, for errors with its position. */
const json_t *json_row_value(const struct json_row *row);

/* Reads the root of a file. It may be called a second time, and then replaces the result of the first call. */
typedef enum status (*json_rows_reader)(const struct json_input *in, void *context, struct error *err);

/* Reads a file ("-" is standard input). `arrays` holds the keys of the long arrays of the top-level object, at most
 * JSON_STREAM_ARRAYS_MAX, then NULL. Other files than expected have the errors of json_input_read(). */
MUST_CHECK enum status json_rows_read_file(const char *path, const char *const *arrays, json_rows_reader read,
                                           void *context, struct error *err);

#endif

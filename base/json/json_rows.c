/* The text of the file is in memory. A stream over it finds the elements. */
#include "base/json/json_rows.h"

#include <assert.h>
#include <stdlib.h>

#include "base/json/json_input.h"
#include "base/json/json_stream.h"
#include "base/try.h"

/* The long arrays of a file. */
struct json_rows {
    struct json_stream *stream;
    const char *const *keys;
    bool read[JSON_STREAM_ARRAYS_MAX]; /* to the end */
};

enum { IN_TREE = JSON_STREAM_ARRAYS_MAX };

/* Returns the number of the long array that `array` stands for, or IN_TREE. */
static size_t find_long(const struct json_input *in, const json_t *array)
{
    const struct json_rows *rows = in->rows;
    for (size_t i = 0; rows && rows->keys[i]; i++)
        if (json_stream_first(rows->stream, i) > 0 && json_object_get(in->root, rows->keys[i]) == array) return i;
    return IN_TREE;
}

static enum status visit_element(const struct json_rows *rows, const struct json_element *element, json_row_visit visit,
                                 void *context, struct error *err)
{
    struct json_input *in;
    TRY(json_stream_parse(rows->stream, element, &in, err));
    const struct json_row row = {.in = in, .index = (size_t)element->index};
    enum status status = visit(&row, context, err);
    json_input_destroy(in);
    return status;
}

enum status json_rows_each(const struct json_input *in, const json_t *array, json_row_visit visit, void *context,
                           struct error *err)
{
    const size_t index = array ? find_long(in, array) : IN_TREE;
    struct json_row row = {.in = in, .array = array};
    for (; index == IN_TREE && row.index < json_array_size(array); row.index++) TRY(visit(&row, context, err));
    if (index == IN_TREE) return STATUS_OK;
    struct json_element element;
    bool more;
    TRY(json_stream_begin(in->rows->stream, index, err));
    for (;;) {
        TRY(json_stream_next(in->rows->stream, &element, &more, err));
        in->rows->read[index] |= !more;
        if (!more) return STATUS_OK;
        TRY(visit_element(in->rows, &element, visit, context, err));
    }
}

enum status json_rows_count(const struct json_input *in, const json_t *array, size_t *count, struct error *err)
{
    const size_t index = array ? find_long(in, array) : IN_TREE;
    struct json_element element;
    bool more = true;
    *count = json_array_size(array);
    if (index == IN_TREE) return STATUS_OK;
    TRY(json_stream_begin(in->rows->stream, index, err));
    for (;; ++*count) {
        TRY(json_stream_next(in->rows->stream, &element, &more, err));
        if (!more) return STATUS_OK;
    }
}

enum status json_row_open(struct json_object *object, const struct json_row *row, const char *what, struct error *err)
{
    return row->array ? json_object_open_at(object, row->in, row->array, row->index, what, err)
                      : json_object_open_element(object, row->in, row->index, what, err);
}

const json_t *json_row_value(const struct json_row *row)
{
    return row->array ? json_array_get(row->array, row->index) : json_input_root(row->in);
}

/* Reads the file without the tree of its long arrays. *done is false when the tree has to decide. */
static enum status read_rows(const char *name, const char *text, size_t length, const char *const *arrays,
                             json_rows_reader read, void *context, bool *done, struct error *err)
{
    struct json_rows rows = {.keys = arrays};
    enum status status = json_stream_of_text(name, text, length, arrays, &rows.stream, err);
    if (status == STATUS_OK) {
        json_stream_set_rows(rows.stream, &rows);
        status = read(json_stream_head(rows.stream), context, err);
    }
    *done = status == STATUS_OK || status == STATUS_NO_MEMORY;
    for (size_t i = 0; status == STATUS_OK && arrays[i]; i++)
        if (json_stream_first(rows.stream, i) > 0 && !rows.read[i]) *done = false;
    json_stream_close(rows.stream);
    return status;
}

enum status json_rows_read_file(const char *path, const char *const *arrays, json_rows_reader read, void *context,
                                struct error *err)
{
    char *text;
    const char *name;
    size_t length;
    bool done;
    struct error first = {0};
    TRY(json_text_read(path, &text, &length, &name, err));
    enum status status = read_rows(name, text, length, arrays, read, context, &done, &first);
    if (done) {
        if (status != STATUS_OK) *err = first;
        free(text);
        return status;
    }
    struct json_input *in;
    const struct json_anchor anchor = {.line = 1, .column = 1};
    struct error of_tree = {0};
    status = json_input_parse_cut(name, text, length, &anchor, 1, false, &in, &of_tree);
    if (status == STATUS_LIMIT && first.status != STATUS_OK) return error_set(err, first.status, "%s", first.text);
    if (status != STATUS_OK) return error_set(err, status, "%s", of_tree.text);
    status = read(in, context, err);
    json_input_destroy(in);
    return status;
}

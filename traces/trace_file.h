/* A trace file as a stream of JSON: what the reader of traces (trace_read.c) is made of. */
#ifndef SPILLWAY_TRACES_TRACE_FILE_H
#define SPILLWAY_TRACES_TRACE_FILE_H

#include "base/json/json_stream.h"
#include "traces/trace_format.h"
#include "traces/trace_index.h"

/* The long arrays of a file, as json_stream_begin() numbers them: TRACE_SPANS, TRACE_LEVELS and these. */
enum { TRACE_SPAN_BLOCKS = TRACE_ARRAYS, TRACE_LEVEL_BLOCKS };

struct trace_file {
    struct json_stream *json;
    struct trace head;  /* without spans and levels */
    struct arena arena; /* of what follows */
    struct trace_operation *operations;
    size_t operation_count;
    bool indexed; /* the file has an index that fits it */
    struct trace_ends ends;
    struct trace_span_block *span_blocks;
    size_t span_block_count;
    struct trace_level_block *level_blocks;
    size_t level_block_count;
    struct trace_held *held; /* what places hold at the begin of a block, place_count by block */
};

/* Opens a zeroed file and reads its head and index. The caller releases it, also after an error. Errors: as
 * trace_read(). */
MUST_CHECK enum status trace_file_open(struct trace_file *s, const char *path, struct error *err);
MUST_CHECK enum status trace_file_of_text(struct trace_file *s, const char *name, const char *text, size_t length,
                                          struct error *err);
void trace_file_release(struct trace_file *s);

/* Reads all but the long arrays: a part of opening. */
MUST_CHECK enum status trace_file_read_head(struct trace_file *s, struct error *err);

/* Read a row: indexes are in range. */
MUST_CHECK enum status trace_file_span(const struct trace_file *s, const struct json_element *element,
                                       struct trace_span *span, struct error *err);
MUST_CHECK enum status trace_file_level(const struct trace_file *s, const struct json_element *element,
                                        struct trace_level *level, struct error *err);

/* Take a number of a row: at most `max`; an index of one of `count` things that are called `what`. */
MUST_CHECK enum status trace_item_u32(const struct json_input *input, const json_t *array, size_t index, uint32_t max,
                                      uint32_t *out, struct error *err);
MUST_CHECK enum status trace_item_index(const struct json_input *input, const json_t *array, size_t index, size_t count,
                                        const char *what, uint32_t *out, struct error *err);

#endif

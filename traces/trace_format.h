/*
 * Declarations that the writer and the reader of trace files share. trace_writer.c shows the format, trace_index.h the
 * index at the end of a file.
 */
#ifndef SPILLWAY_TRACES_TRACE_FORMAT_H
#define SPILLWAY_TRACES_TRACE_FORMAT_H

#include "traces/trace.h"

enum {
    TRACE_OPERATION_COLUMNS = 6,
    TRACE_SPAN_COLUMNS = 6, /* the last one only in traces with waits */
    TRACE_LEVEL_COLUMNS = 3,
    TRACE_SPAN_BLOCK_COLUMNS = 8,
    TRACE_LEVEL_BLOCK_COLUMNS = 6, /* then TRACE_PLACE_COLUMNS for each place */
    TRACE_PLACE_COLUMNS = 3
};
extern const char *const trace_operation_columns[TRACE_OPERATION_COLUMNS];
extern const char *const trace_span_columns[TRACE_SPAN_COLUMNS];
extern const char *const trace_level_columns[TRACE_LEVEL_COLUMNS];
extern const char *const trace_span_block_columns[TRACE_SPAN_BLOCK_COLUMNS];
extern const char *const trace_level_block_columns[TRACE_LEVEL_BLOCK_COLUMNS];
extern const char *const trace_place_columns[TRACE_PLACE_COLUMNS];

/* Returns the number of columns of the trace's spans in a file. */
static inline size_t trace_span_column_count(const struct trace *trace)
{
    return trace->has_waits ? TRACE_SPAN_COLUMNS : TRACE_SPAN_COLUMNS - 1;
}

/* Spans in a block, at most. A block of levels has the same number, or more where its row of the index would be
 * longer. */
enum { TRACE_BLOCK_SPANS = 4096, TRACE_BLOCK_LEVELS_BY_PLACE = 16 };

static inline uint64_t trace_block_levels(uint32_t place_count)
{
    uint64_t by_place = (uint64_t)place_count * TRACE_BLOCK_LEVELS_BY_PLACE;
    return by_place > TRACE_BLOCK_SPANS ? by_place : TRACE_BLOCK_SPANS;
}

/* The values that all spans of an operation share. */
struct trace_operation {
    uint64_t bytes;
    uint32_t stream, job, shard;
    uint8_t pass, index;
};

#endif

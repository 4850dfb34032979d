/* Definitions that the writer and the reader of trace files share: trace_write.c, which shows the format, and
 * trace_read.c. */
#ifndef SPILLWAY_TRACES_TRACE_FORMAT_H
#define SPILLWAY_TRACES_TRACE_FORMAT_H

#include "traces/trace.h"

enum { TRACE_OPERATION_COLUMNS = 6, TRACE_SPAN_COLUMNS = 5, TRACE_LEVEL_COLUMNS = 3 };
extern const char *const trace_operation_columns[TRACE_OPERATION_COLUMNS];
extern const char *const trace_span_columns[TRACE_SPAN_COLUMNS];
extern const char *const trace_level_columns[TRACE_LEVEL_COLUMNS];

/* Common values of the spans of an operation. */
struct trace_operation {
    uint64_t bytes;
    uint32_t stream, job, shard;
    uint8_t pass, index;
};

#endif

/*
 * The different operations of a trace. A run of a million spans has a few hundred, which are repeated in every
 * minibatch; a file has each of them once.
 */
#ifndef SPILLWAY_TRACES_TRACE_OPERATIONS_H
#define SPILLWAY_TRACES_TRACE_OPERATIONS_H

#include "traces/trace_format.h"

/* Zeroed is empty. Open addressing; cells hold an index into `items` plus one, 0 when free. */
struct trace_operations {
    struct arena arena;
    struct trace_operation *items; /* in order of first use */
    uint32_t *cells;
    uint32_t count;
    uint32_t cell_count; /* a power of two, at least twice the count */
};

/* Finds the operation of a span, or adds it. *out is its index. Errors: STATUS_LIMIT. */
MUST_CHECK enum status trace_operations_find(struct trace_operations *table, const struct trace_span *span,
                                             uint32_t *out, struct error *err);
void trace_operations_release(struct trace_operations *table);

#endif

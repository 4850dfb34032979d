/*
 * Spans that come as they end, put in the order of their numbers. Memory is in proportion to the most numbers between
 * the first span that is missing and the last one that has come.
 */
#ifndef SPILLWAY_TRACES_TRACE_ORDER_H
#define SPILLWAY_TRACES_TRACE_ORDER_H

#include "traces/trace.h"

/* Zeroed is empty; numbers begin with 0. Open for its size only. */
struct trace_order {
    struct trace_span *ring; /* entry number % capacity */
    bool *present;
    uint64_t capacity; /* 0 or a power of two */
    uint64_t next;     /* the lowest number that has not been taken */
};

/* Adds a span; its number did not come before. False when there is no memory. */
bool trace_order_put(struct trace_order *order, const struct trace_span *span);

/* Takes the next span, if it has come. */
bool trace_order_take(struct trace_order *order, struct trace_span *out);

uint64_t trace_order_bytes(const struct trace_order *order);
void trace_order_release(struct trace_order *order);

#endif

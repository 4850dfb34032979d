/* A ring of spans, doubled when a number does not fit. */
#include "traces/trace_order.h"

#include <assert.h>
#include <stdlib.h>

#include "base/alloc.h"

enum { FIRST_CAPACITY = 64 };

static bool grow(struct trace_order *order, uint64_t wanted)
{
    struct trace_order larger = {.capacity = order->capacity ? order->capacity : FIRST_CAPACITY, .next = order->next};
    while (larger.capacity < wanted) larger.capacity *= 2;
    larger.ring = alloc_zeroed(larger.capacity, sizeof *larger.ring);
    larger.present = alloc_zeroed(larger.capacity, sizeof *larger.present);
    if (!larger.ring || !larger.present) {
        trace_order_release(&larger);
        return false;
    }
    for (uint64_t n = order->next; n < order->next + order->capacity; n++) {
        uint64_t from = n & (order->capacity - 1), to = n & (larger.capacity - 1);
        if (order->present[from]) larger.ring[to] = order->ring[from];
        larger.present[to] = order->present[from];
    }
    trace_order_release(order);
    *order = larger;
    return true;
}

bool trace_order_put(struct trace_order *order, const struct trace_span *span)
{
    assert(span->number >= order->next);
    uint64_t wanted = span->number - order->next + 1;
    if (wanted > order->capacity && !grow(order, wanted)) return false;
    uint64_t at = span->number & (order->capacity - 1);
    assert(!order->present[at]);
    order->ring[at] = *span;
    order->present[at] = true;
    return true;
}

bool trace_order_take(struct trace_order *order, struct trace_span *out)
{
    uint64_t at = order->capacity > 0 ? order->next & (order->capacity - 1) : 0;
    if (order->capacity == 0 || !order->present[at]) return false;
    *out = order->ring[at];
    order->present[at] = false;
    order->next++;
    return true;
}

uint64_t trace_order_bytes(const struct trace_order *order)
{
    return order->capacity * (sizeof *order->ring + sizeof *order->present);
}

void trace_order_release(struct trace_order *order)
{
    free(order->ring);
    free(order->present);
    *order = (struct trace_order){0};
}

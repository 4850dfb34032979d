/*
 * The event queue: at most one entry per owner, in a total order that no tie can upset.
 *
 * Entries are ordered by (time, order). An owner is a small number (a stream, a class of flows); its
 * entry can be set, moved both ways and removed at any time. Owners whose entries change together
 * should have neighbouring numbers. The same structure serves for other growing quantities than
 * time, such as bytes served to a flow.
 */
#ifndef SPILLWAY_SIM_QUEUE_H
#define SPILLWAY_SIM_QUEUE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

struct sim_queue; /* opaque */

struct sim_event {
    double time_s;
    uint64_t order; /* see sim_order() */
    uint32_t owner;
};

/* What goes first among equal times: the smaller kind, then the smaller number. */
enum { SIM_ORDER_NUMBER_BITS = 60 };
static inline uint64_t sim_order(uint32_t kind, uint64_t number)
{
    assert(kind < 16);
    assert(number < (uint64_t)1 << SIM_ORDER_NUMBER_BITS);
    return (uint64_t)kind << SIM_ORDER_NUMBER_BITS | number;
}

/* Room for one entry of each owner in [0, owner_count). Lives as long as `arena`; allocates nothing
 * afterwards. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status sim_queue_create(struct arena *arena, uint32_t owner_count,
                                        struct sim_queue **out, struct error *err);

/* Put the owner's entry where it belongs, whether it has one already or not. `time_s` is finite and
 * not before the last entry popped. O(1); what it moves is found out by sim_queue_first(). */
void sim_queue_set(struct sim_queue *queue, uint32_t owner, double time_s, uint64_t order);

/* Nothing happens when the owner has no entry. O(1). */
void sim_queue_remove(struct sim_queue *queue, uint32_t owner);

/* The first entry; false when there is none. O(log owners) for each group of owners set since. */
bool sim_queue_first(struct sim_queue *queue, struct sim_event *out);
bool sim_queue_pop(struct sim_queue *queue, struct sim_event *out);

bool sim_queue_empty(struct sim_queue *queue);

/* All times become earlier by `seconds`: another zero is chosen. O(owners). */
void sim_queue_shift(struct sim_queue *queue, double seconds);

#endif

/*
 * What a device's memory is for, by name.
 *
 * What lies in a slot changes with time: a shard's state now, another one's soon, and copies begin and
 * end as they happen to. What a byte of the arena is *for* does not: the set of uses that the plan makes
 * of it. A table of bytes by such sets has no moment in it, adds up to the arena, and is the same for
 * whoever counts: the planner from the layouts of its instances, the executor from what it handed out.
 *
 *     arena   [ workspace | edge | edge | keep | weight buffer | weight buffer ]
 *     is for    workspace   boundaries    kept   states, or activations that are spilled
 */
#ifndef SPILLWAY_PLANNER_PLAN_MEMORY_H
#define SPILLWAY_PLANNER_PLAN_MEMORY_H

#include "planner/plan.h"

enum plan_memory_use {
    MEMORY_STAYING,     /* states that stay for as long as their job runs */
    MEMORY_STATES,      /* states, parameters and gradients of shards in turn */
    MEMORY_ACTIVATIONS, /* kept or spilled */
    MEMORY_TABLES,      /* a tied token table and its gradient, for a head */
    MEMORY_BOUNDARIES,  /* between shards: activations and gradients; batches and losses */
    MEMORY_WORKSPACE,   /* of the computation that runs */
    MEMORY_USE_COUNT
};

struct plan_memory_line {
    uint32_t uses;      /* a sum of 1 << enum plan_memory_use; 0: between slots */
    uint64_t bytes;
};

struct plan_memory {
    struct plan_memory_line lines[1 << MEMORY_USE_COUNT]; /* of some bytes each, in no order that means
                                                             anything but is always the same */
    uint32_t count;
    uint64_t bytes;     /* of all lines: the end of the highest slot in use */
};

/* What a device buffer is used for by a unit that acquires it. */
enum plan_memory_use plan_memory_use_of(const struct plan *plan, const struct plan_unit *unit,
                                        uint32_t buffer);

/* The table of one device from `uses`, which says of each of plan->slots what it was used for there. */
MUST_CHECK enum status plan_memory_count(const struct plan *plan, const uint8_t *uses,
                                         struct plan_memory *out, struct error *err);

/* The table of one device by the plan; its bytes are plan_device_bytes(). */
MUST_CHECK enum status plan_memory_planned(const struct plan *plan, uint32_t device,
                                           struct plan_memory *out, struct error *err);

/* "workspace", "states or activations", "between slots". */
enum { PLAN_MEMORY_TEXT_BYTES = 128 };
const char *plan_memory_text(uint32_t uses, char text[PLAN_MEMORY_TEXT_BYTES]);

#endif

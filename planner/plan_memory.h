/*
 * The use of a device's memory, by name.
 *
 * A slot's contents change with time: now a shard's state, later another's. The *use* of a byte of the arena does not:
 * it is the set of uses that the plan makes of it. Bytes by such sets do not depend on a moment, add up to the arena,
 * and are the same for planner and executor.
 *
 *     arena   [ workspace | edge | edge | keep | weight buffer | weight buffer ]
 *     use       workspace   boundaries    kept   states, or activations that are spilled
 */
#ifndef SPILLWAY_PLANNER_PLAN_MEMORY_H
#define SPILLWAY_PLANNER_PLAN_MEMORY_H

#include "planner/plan.h"

enum plan_memory_use {
    MEMORY_STAYING,     /* states that stay while their job runs */
    MEMORY_STATES,      /* states, parameters and gradients of shards in turn */
    MEMORY_ACTIVATIONS, /* kept or spilled */
    MEMORY_TABLES,      /* a tied token table and its gradient, for a head */
    MEMORY_BOUNDARIES,  /* between shards: activations and gradients; batches and losses */
    MEMORY_WORKSPACE,   /* of the current computation */
    MEMORY_USE_COUNT
};

struct plan_memory_line {
    uint32_t uses;      /* a sum of 1 << enum plan_memory_use; 0: between slots */
    uint64_t bytes;
};

struct plan_memory {
    struct plan_memory_line lines[1 << MEMORY_USE_COUNT]; /* lines with bytes, in a fixed order without meaning */
    uint32_t count;
    uint64_t bytes;     /* of all lines: the end of the highest slot in use */
};

/* Returns the use of a device buffer by a unit that acquires it. */
enum plan_memory_use plan_memory_use_of(const struct plan *plan, const struct plan_unit *unit,
                                        uint32_t buffer);

/* Makes the table of one device. uses: the uses of each of plan->slots there. */
MUST_CHECK enum status plan_memory_count(const struct plan *plan, const uint8_t *uses,
                                         struct plan_memory *out, struct error *err);

/* Makes the table of one device from the plan; its bytes are plan_device_bytes(). */
MUST_CHECK enum status plan_memory_planned(const struct plan *plan, uint32_t device,
                                           struct plan_memory *out, struct error *err);

/* Writes the name of a set of uses: "workspace", "states or activations", "between slots". */
enum { PLAN_MEMORY_TEXT_BYTES = 128 };
const char *plan_memory_text(uint32_t uses, char text[PLAN_MEMORY_TEXT_BYTES]);

#endif

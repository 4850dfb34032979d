/*
 * The best choice between keep and recompute, where nothing is swapped: by dynamic programming over the
 * memory that layers leave taken. Exact where memory is counted in at most CHAIN_KEEP_CELLS units;
 * otherwise sizes are rounded up to units, and what it returns fits all the same.
 */
#ifndef SPILLWAY_PLANNER_CHAIN_KEEP_H
#define SPILLWAY_PLANNER_CHAIN_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { CHAIN_KEEP_CELLS = 20000 };

struct chain_need {
    uint64_t kept, recomputed; /* bytes that stay behind the layer */
    uint64_t runs;             /* bytes while it runs; 0 where that is no concern */
    int64_t again;             /* ticks to recompute it */
};

/*
 * choices: out, (count), CHAIN_KEEP or CHAIN_RECOMPUTE. *fits false: memory cannot hold the layers
 * whatever is recomputed, and choices are untouched. Errors: STATUS_NO_MEMORY.
 * Cost: O(count * cells).
 */
MUST_CHECK enum status chain_keep_best(const struct chain_need *needs, uint32_t count, uint64_t memory,
                                       uint8_t *choices, bool *fits, struct error *err);

#endif

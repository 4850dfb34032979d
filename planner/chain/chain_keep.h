/*
 * The best choice between keep and recompute: dynamic programming over the memory that layers leave taken. Exact up to
 * CHAIN_KEEP_CELLS units of memory; else sizes are rounded up to units, and the result still fits.
 */
#ifndef SPILLWAY_PLANNER_CHAIN_CHAIN_KEEP_H
#define SPILLWAY_PLANNER_CHAIN_CHAIN_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { CHAIN_KEEP_CELLS = 20000 };

struct chain_need {
    uint64_t kept, recomputed; /* bytes that stay after the layer */
    uint64_t runs;             /* bytes while it runs; 0: not limited */
    int64_t again;             /* ticks to recompute it */
};

/*
 * choices: out, (count), CHAIN_KEEP or CHAIN_RECOMPUTE. *fits false: layers do not fit even when all are recomputed,
 * and choices are untouched. Cost: O(count * cells).
 */
MUST_CHECK enum status chain_keep_best(const struct chain_need *needs, uint32_t count, uint64_t memory,
                                       uint8_t *choices, bool *fits, struct error *err);

#endif

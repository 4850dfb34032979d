/*
 * cost[c]: least recomputed ticks of the layers so far, with at most c units of memory in use. Layer by layer c grows
 * by kept bytes; the running layer needs room.
 *
 * A unit is the common divisor of all sizes: with equal layers the memory is few units.
 */
#include "planner/chain/chain_keep.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "planner/chain/chain.h"

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static size_t units(uint64_t bytes, uint64_t unit)
{
    return (size_t)((bytes + unit - 1) / unit);
}

enum status chain_keep_best(const struct chain_need *needs, uint32_t count, uint64_t memory,
                            uint8_t *choices, bool *fits, struct error *err)
{
    uint64_t unit = 0;
    for (uint32_t l = 0; l < count; l++)
        unit = common_divisor(common_divisor(unit, needs[l].kept),
                              common_divisor(needs[l].recomputed, needs[l].runs));
    if (unit == 0) unit = 1;
    if (memory / unit >= CHAIN_KEEP_CELLS) unit = memory / (CHAIN_KEEP_CELLS - 1) + 1;
    size_t cells = (size_t)(memory / unit) + 1;
    int64_t *cost = alloc_zeroed(cells, sizeof *cost), *next = alloc_zeroed(cells, sizeof *next);
    uint8_t *recomputed = alloc_zeroed(cells, count);
    if (!cost || !next || !recomputed) {
        error_memory(err, "a table of memory", cells * count);
        goto out;
    }
    for (uint32_t l = 0; l < count; l++) {
        size_t runs = units(needs[l].runs, unit), kept = units(needs[l].kept, unit);
        size_t again = units(needs[l].recomputed, unit);
        for (size_t c = 0; c < cells; c++) {
            next[c] = INT64_MAX;
            if (c >= kept && c - kept + runs < cells) next[c] = cost[c - kept];
            if (c < again || c - again + runs >= cells || cost[c - again] == INT64_MAX ||
                cost[c - again] + needs[l].again >= next[c])
                continue;
            next[c] = cost[c - again] + needs[l].again;
            recomputed[l * cells + c] = 1;
        }
        int64_t *swap = cost;
        cost = next;
        next = swap;
    }
    size_t best = 0;
    for (size_t c = 1; c < cells; c++)
        if (cost[c] < cost[best]) best = c;
    *fits = cost[best] != INT64_MAX;
    for (uint32_t l = count; *fits && l-- > 0;) {
        bool again = recomputed[l * cells + best];
        choices[l] = again ? CHAIN_RECOMPUTE : CHAIN_KEEP;
        best -= units(again ? needs[l].recomputed : needs[l].kept, unit);
    }
out:
    free(cost);
    free(next);
    free(recomputed);
    return err->status;
}

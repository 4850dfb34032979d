/*
 * cost[c]: least recomputed ticks of the layers so far, with at most c cells of memory in use. Layer by layer c grows
 * by kept bytes; the running layer needs room.
 *
 * A cell is the common divisor of all sizes: with equal layers the memory is few cells.
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

static size_t cells_of(uint64_t bytes, uint64_t cell)
{
    return (size_t)((bytes + cell - 1) / cell);
}

enum status chain_keep_best(const struct chain_need *needs, uint32_t count, uint64_t memory,
                            uint8_t *choices, bool *fits, struct error *err)
{
    uint64_t cell = 0;
    for (uint32_t l = 0; l < count; l++)
        cell = common_divisor(common_divisor(cell, needs[l].kept),
                              common_divisor(needs[l].recomputed, needs[l].runs));
    if (cell == 0) cell = 1;
    if (memory / cell >= CHAIN_KEEP_CELLS) cell = memory / (CHAIN_KEEP_CELLS - 1) + 1;
    size_t cells = (size_t)(memory / cell) + 1;
    int64_t *cost = alloc_zeroed(cells, sizeof *cost), *next = alloc_zeroed(cells, sizeof *next);
    uint8_t *recomputed = alloc_zeroed(cells, count);
    if (!cost || !next || !recomputed) {
        error_memory(err, "a table of memory", cells * count);
        goto out;
    }
    for (uint32_t l = 0; l < count; l++) {
        size_t runs = cells_of(needs[l].runs, cell), kept = cells_of(needs[l].kept, cell);
        size_t again = cells_of(needs[l].recomputed, cell);
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
        best -= cells_of(again ? needs[l].recomputed : needs[l].kept, cell);
    }
out:
    free(cost);
    free(next);
    free(recomputed);
    return err->status;
}

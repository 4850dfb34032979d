/* Who was last on each byte of a device's arena: part of plan_walk.c. */
#ifndef SPILLWAY_PLANNER_PLAN_VACATED_H
#define SPILLWAY_PLANNER_PLAN_VACATED_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "planner/plan.h"

enum { LOCAL_STREAMS = STREAM_HOST }; /* compute, h2d, d2h, p2p: a device's streams come first */

/* A range whose latest lifetime has been released, and who used it last: per stream an operation's
 * number + 1, or 0; and who fetched what was there to another device, on which stream. Of the arena of
 * staged buffers, who released it: number + 1 and stream. */
struct vacated {
    uint64_t first, end;
    uint64_t users[LOCAL_STREAMS];
    uint64_t fetched; /* number + 1; 0: nobody did */
    uint32_t fetched_on;
};

/* Zeroed: empty. The caller frees `ranges` with free(). */
struct vacated_list {
    struct vacated *ranges; /* ascending, disjoint */
    uint32_t count, capacity;
};

/* The index of the first range that ends behind `offset`. Tried first is *hint, where it was the
 * last time (any number the first time). */
uint32_t vacated_find(const struct vacated_list *list, uint64_t offset, uint32_t *hint);

/* Put a range over what was there. False: no memory. */
bool vacated_paint(struct vacated_list *list, const struct vacated *added, uint32_t *hint);

#endif

/* Who was last on each byte of a device's arena: part of plan_walk.c. */
#ifndef SPILLWAY_PLANNER_PLAN_VACATED_H
#define SPILLWAY_PLANNER_PLAN_VACATED_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "planner/plan.h"

enum { LOCAL_STREAMS = STREAM_HOST }; /* compute, h2d, d2h, p2p: a device's streams come first */

/* Who used a range last: per stream an operation's number + 1, or 0; and who fetched what was there to another device, on
 * which stream. Of the arena of staged buffers, who released it: number + 1 and stream. */
struct vacated_users {
    uint64_t users[LOCAL_STREAMS];
    uint64_t fetched; /* number + 1; 0: nobody did */
    uint32_t fetched_on;
};

/* A range whose latest lifetime has been released. */
struct vacated {
    uint64_t first, end;
    uint32_t users; /* which of the list's */
};

/* Zeroed: empty. */
struct vacated_list {
    struct vacated *ranges; /* ascending, disjoint */
    uint32_t count, capacity;
    struct vacated_users *users; /* `capacity` of them, where they stay */
    uint32_t *spare;             /* spare[count .. capacity): those of no range */
};

void vacated_release(struct vacated_list *list);
void vacated_clear(struct vacated_list *list); /* keeps the memory */

/* The index of the first range that ends behind `offset`. Tried first is *hint, where it was the
 * last time (any number the first time). */
uint32_t vacated_find(const struct vacated_list *list, uint64_t offset, uint32_t *hint);

/* Put [first, end) over what was there. False: no memory. */
bool vacated_paint(struct vacated_list *list, uint64_t first, uint64_t end, const struct vacated_users *users,
                   uint32_t *hint);

#endif

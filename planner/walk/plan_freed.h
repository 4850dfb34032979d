/* The last users of each byte of a device's arena: part of plan_walk.c. */
#ifndef SPILLWAY_PLANNER_WALK_PLAN_FREED_H
#define SPILLWAY_PLANNER_WALK_PLAN_FREED_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "planner/plan.h"

enum { PLAN_LOCAL_STREAMS = STREAM_HOST }; /* compute, h2d, d2h, p2p: a device's streams come first */

/* A range's last users: per stream an operation's number + 1, or 0; and the fetch of its contents to another device,
 * with its stream. For the arena of staged buffers: number + 1 and stream of the releasing operation. */
struct plan_freed_users {
    uint64_t users[PLAN_LOCAL_STREAMS];
    uint64_t fetched; /* number + 1 of the fetching operation; 0: none */
    uint32_t fetched_on;
};

/* A range whose latest lifetime has been released. */
struct plan_freed_range {
    uint64_t first, end;
    uint32_t users; /* index into the list's users */
};

/* Zeroed: empty. */
struct plan_freed_list {
    struct plan_freed_range *ranges; /* ascending, disjoint */
    uint32_t count, capacity;
    struct plan_freed_users *users; /* `capacity` entries, which never move */
    uint32_t *spare;                /* spare[count .. capacity): entries without a range */
};

void plan_freed_release(struct plan_freed_list *list);
void plan_freed_clear(struct plan_freed_list *list); /* keeps the memory */

/* Returns the first range that ends after `offset`. *hint: tried first, the last call's result (any number at
 * first). */
uint32_t plan_freed_find(const struct plan_freed_list *list, uint64_t offset, uint32_t *hint);

/* Puts [first, end) over the ranges there. Returns false without memory. */
bool plan_freed_paint(struct plan_freed_list *list, uint64_t first, uint64_t end, const struct plan_freed_users *users,
                      uint32_t *hint);

#endif

/* The waits of jobs with ranges of host memory: part of plan_walk.c. */
#ifndef SPILLWAY_PLANNER_WALK_PLAN_WALK_RANGE_H
#define SPILLWAY_PLANNER_WALK_PLAN_WALK_RANGE_H

#include "planner/plan.h"

struct range_users; /* opaque */

/* Creates the table. Returns NULL without memory. The caller frees it with range_users_destroy(). */
struct range_users *range_users_create(const struct plan *plan);
void range_users_destroy(struct range_users *users); /* NULL is fine */

/* Forgets all operations. */
void range_users_clear(struct range_users *users);

/*
 * Notes a unit's operation on a stream at `time`. Returns the number of entries of *out; (*out)[i] is the time of
 * stream i's operation that it waits for because of its job's range, or 0. Returns UINT32_MAX without memory. The array
 * is valid until the next call.
 */
uint32_t range_users_note(struct range_users *users, const struct plan_unit *unit, uint32_t stream, uint64_t time,
                          const uint64_t **out);

#endif

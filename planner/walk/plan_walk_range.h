/* Whom operations of jobs with ranges of host memory wait for: part of plan_walk.c. */
#ifndef SPILLWAY_PLANNER_PLAN_WALK_RANGE_H
#define SPILLWAY_PLANNER_PLAN_WALK_RANGE_H

#include "planner/plan.h"

struct range_users; /* opaque */

/* NULL: no memory. The caller frees it with range_users_destroy(). */
struct range_users *range_users_create(const struct plan *plan);
void range_users_destroy(struct range_users *users); /* NULL is fine */

/* Forgets all operations. */
void range_users_clear(struct range_users *users);

/*
 * Notes an operation of a unit on a stream at `time`. Returns how many operations it waits for because of its job's
 * range; (*out)[i] is the time of one on stream i, or 0. Only entries below the returned count may be other than 0.
 * UINT32_MAX: no memory. The array is valid until the next call.
 */
uint32_t range_users_note(struct range_users *users, const struct plan_unit *unit, uint32_t stream, uint64_t time,
                          const uint64_t **out);

#endif

/*
 * Seconds of passes, copies and collectives, for all the planner's estimators: the one place that turns a pass into
 * kernels and asks models/cost. Estimators may differ in overlaps, never in these numbers.
 */
#ifndef SPILLWAY_PLANNER_PASS_SECONDS_H
#define SPILLWAY_PLANNER_PASS_SECONDS_H

#include "models/cost/collective_group.h"
#include "models/cost/cost.h"
#include "models/job/parallel_work.h"
#include "planner/plan_work.h"

/* --- shards ----------------------------------------------------------------------------------- */

/* Returns the seconds of a pass over `count` layers from `first` on; `how` are flags of plan_work.h. */
double pass_seconds(const struct hardware *hardware, uint32_t device, const struct job *job, uint64_t first,
                    uint64_t count, enum plan_pass pass, uint32_t how);

/* Returns the seconds of a copy; 0 for no bytes, which take no copy. */
double pass_seconds_copy(const struct hardware *hardware, uint32_t device, enum copy_direction direction,
                         uint64_t bytes);

/* --- jobs on several devices ------------------------------------------------------------------ */

/* Returns the seconds of a rank's pass over these layers, without collectives. */
double pass_seconds_parallel(const struct hardware *hardware, uint32_t device, const struct job *job,
                             struct parallel_layers layers, enum parallel_pass pass);

/* Returns the seconds of a collective by the job's algorithm; 0 for no bytes. */
double pass_seconds_collective(const struct parallel *parallel, enum collective_kind kind,
                               const struct collective_group *group, uint64_t bytes);

/* Seconds of a pass's collectives in its tensor group: exposed to computations, and overlapping them. */
struct pass_exchanges {
    double exposed_s, beside_s;
};
struct pass_exchanges pass_seconds_exchanges(const struct job *job, const struct collective_group *group,
                                             struct parallel_layers layers, enum parallel_pass pass);

#endif

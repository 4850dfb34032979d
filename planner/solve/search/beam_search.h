/*
 * Forward construction of schedules: list scheduling with set-ups, and a beam search over it.
 *
 * One pass puts tasks on the device that is free first. A candidate is judged by the slack that it spends
 * (instance_bound.h: idle time and set-ups beyond the bound's minimum, or a set_up_guide.h's expectation) and its job's
 * priority: most remaining computation for the makespan, least by weight for sums of ends, least spare time for
 * deadlines. With a width above one the best partial schedules are extended together if they can beat the best known
 * value.
 *
 * Where a shared bridge binds, a candidate also costs the bytes that it makes certain (bridge_bytes.h): a task between
 * two of a shard on a device costs the second one's copy, so a device may wait for its shard.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_SEARCH_BEAM_SEARCH_H
#define SPILLWAY_PLANNER_SOLVE_SEARCH_BEAM_SEARCH_H

#include "planner/solve/bounds/instance_bound.h"
#include "planner/solve/instance/timetable.h"

enum { BEAM_SOFTNESS_COUNT = 3 };

struct beam_rule {
    uint32_t softness;    /* softness of the guide (set_up_guide.h), below BEAM_SOFTNESS_COUNT; 0: the bound's duals */
    uint32_t width;       /* number of partial schedules in a step; 1: list scheduling */
    double priority;      /* ticks of slack that equal the whole range of priorities */
    const double *weights; /* (job_count) factors of priorities; borrowed */
    const double *leads;  /* (job_count) shares of the longest chain by which jobs are to be ahead; borrowed; NULL:
                             none. For the makespan */
    double idling;        /* extra cost of a tick of waiting for a job, in ticks; the tick counts as slack too */
    double thrift;        /* ticks of slack on all devices that equal a tick of the shared bridge; above 0 the device
                           * where the job's next task moves fewest bytes is considered too */
    bool patient;         /* for devices that differ: a candidate whose chain would end past the bound costs the
                             excess */
    bool every_device;    /* consider each job's best device too, not only the one free first */
};

struct beam_search; /* opaque: bounds, chains' remaining times, room for beams */

/* Creates a search. `in` and `bounds` are borrowed. `width_max`: width of the widest beam. */
MUST_CHECK enum status beam_search_create(const struct instance *in,
                                          const struct instance_bounds *bounds, uint32_t width_max,
                                          struct beam_search **out, struct error *err);
void beam_search_destroy(struct beam_search *search); /* NULL is fine */

/*
 * Completes the order steps[0 .. fixed) in steps[] (in->task_count entries), for values below `below` (INT64_MAX: any).
 * Stops when the clock reads `until_s` (base/process/clock.h), but a pass of width 1 with `below` INT64_MAX always
 * ends. Returns true with a schedule; *value is its objective. Deterministic unless `until_s` ends it.
 */
bool beam_search_run(struct beam_search *search, const struct beam_rule *rule, uint32_t fixed,
                     int64_t below, double until_s, struct dispatch_step *steps, int64_t *value);

#endif

/*
 * Schedules made front to back: list scheduling that knows of set-ups, and a beam search over it.
 *
 * One pass puts task after task on the device that is free first. A candidate is judged by the slack
 * that it spends (see instance_bound.h: idle time and set-ups beyond what the bound says must be, or what a
 * set_up_guide.h expects) and by a priority of its job: most remaining computation first for the makespan, least by weight for
 * sums of ends, least time to spare for deadlines. With a width above one the best partial schedules
 * are carried on side by side (beam search), those that cannot beat the best known value left out.
 *
 * Where a shared bridge binds, a candidate also costs the bytes that it makes certain (bridge_bytes.h): a task that
 * comes between two tasks of a shard on a device costs the second one's copy. So a device may wait for its shard.
 */
#ifndef SPILLWAY_PLANNER_BEAM_SEARCH_H
#define SPILLWAY_PLANNER_BEAM_SEARCH_H

#include "planner/solve/bounds/instance_bound.h"
#include "planner/solve/instance/timetable.h"

enum { BEAM_SOFTNESS_COUNT = 3 };

struct beam_rule {
    uint32_t softness;    /* of the guide (set_up_guide.h), a number below that; 0: the bound's duals */
    uint32_t width;       /* partial schedules side by side; 1: one pass */
    double priority;      /* ticks of slack that the whole range of priorities is worth */
    const double *weights; /* (job_count) factors of priorities; borrowed */
    const double *leads;  /* (job_count) shares of the longest chain by which jobs are to be ahead; borrowed;
                             NULL: none. For the makespan */
    double idling;        /* ticks that one of waiting for a job counts beyond the slack that it is */
    double thrift;        /* ticks of slack on all devices that a tick of the shared bridge is worth; above 0 the
                             device on which the job's next task moves fewest bytes is considered too */
    bool patient;         /* for devices that differ: a candidate whose chain would end past the bound costs the excess */
    bool every_device;    /* consider each job's best device too, not only the one free first */
};

struct beam_search; /* opaque: bounds, chains' remaining times, room for beams */

/* `in` and `bounds` are borrowed. `width_max`: the widest beam that will be asked for.
 * Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status beam_search_create(const struct instance *in,
                                          const struct instance_bounds *bounds, uint32_t width_max,
                                          struct beam_search **out, struct error *err);
void beam_search_destroy(struct beam_search *search); /* NULL is fine */

/*
 * Complete the order steps[0 .. fixed) in steps[] (in->task_count entries). Only schedules of a value
 * below `below` are looked for (INT64_MAX: any). Until the clock reads `until_s` (base/process/progress.h);
 * a pass of width 1 with `below` INT64_MAX is always carried through.
 * Returns whether one was found; *value is then its objective. Deterministic but for `until_s`.
 */
bool beam_search_run(struct beam_search *search, const struct beam_rule *rule, uint32_t fixed,
                     int64_t below, double until_s, struct dispatch_step *steps, int64_t *value);

#endif

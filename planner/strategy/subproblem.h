/* Plans of some jobs on some devices of a machine, as if there were no others. */
#ifndef SPILLWAY_PLANNER_STRATEGY_SUBPROBLEM_H
#define SPILLWAY_PLANNER_STRATEGY_SUBPROBLEM_H

#include "planner/plan_hosts.h"
#include "planner/planner_options.h"

/* The numbers of its jobs and devices, each once. */
struct subproblem {
    const uint32_t *jobs, *devices;
    uint32_t job_count, device_count;
};

/* The memory of hosts that earlier subproblems left. */
struct subproblem_hosts {
    const struct hardware *hardware; /* of all subproblems; borrowed, like the arena of the arrays below */
    double *left_bytes;              /* by host */
    uint64_t *turns_bytes;           /* by device: ranges of its jobs, which later jobs on it use again */
    struct plan_host_use *uses;      /* scratch */
};
MUST_CHECK enum status subproblem_hosts_begin(struct arena *arena, const struct hardware *hardware,
                                              struct subproblem_hosts *out, struct error *err);
/* Devices of a subproblem, numbered one after the other, on one host. Ranges of host memory of the subproblem are in
 * theirs, which no other subproblem uses before this one ends. */
struct subproblem_run {
    uint32_t first, count; /* 0: the devices are on several hosts */
};
/* Returns the longest such run of devices. */
struct subproblem_run subproblem_run_of(const struct hardware *hardware, const uint32_t *devices, uint32_t count);
/* Enlarges the ranges of a run's devices until they have `bytes` together. Returns the bytes that are added. */
uint64_t subproblem_run_enlarge(struct subproblem_run run, uint64_t bytes, uint64_t *ranges);

/* Returns the subproblem's `host_bytes`: all hosts together, if each had as little left as its fullest. `turns`: its
 * jobs have ranges of host memory, and reuse those of earlier jobs on its devices. */
double subproblem_hosts_left(const struct subproblem_hosts *hosts, const struct subproblem *subproblem, bool turns);
/* Reserves the memory of the plan of a subproblem. Errors: as plan_host_uses(). */
MUST_CHECK enum status subproblem_hosts_reserve(struct subproblem_hosts *hosts, const struct subproblem *subproblem,
                                                const struct plan *plan, struct error *err);

/*
 * Plans a subproblem. Jobs and machine borrow names, networks and links from `from` and `all`, which must live longer.
 * In the result jobs name no devices; parallel ones begin at the subproblem's first. `how` (NULL: the job's own): its
 * jobs' parallelism. Devices keep their hosts, with the memory left. Errors: as planner_plan(), numbering devices as
 * the subproblem does; the message says so.
 */
MUST_CHECK enum status subproblem_plan(const struct hardware *all, const struct job *from,
                                       const struct subproblem *subproblem,
                                 const struct parallel *how, double host_bytes,
                                 const struct planner_options *options, struct plan *out, struct error *err);

#endif

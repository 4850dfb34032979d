/* Plans of some jobs on some devices of a machine, as though there were nothing else. */
#ifndef SPILLWAY_PLANNER_SUBPROBLEM_H
#define SPILLWAY_PLANNER_SUBPROBLEM_H

#include "planner/plan_hosts.h"
#include "planner/planner_options.h"

/* Numbers of jobs and of devices, each once. */
struct subproblem {
    const uint32_t *jobs, *devices;
    uint32_t job_count, device_count;
};

/* What is left of the memory of hosts, of which subproblems have some that were planned before. */
struct subproblem_hosts {
    const struct hardware *hardware; /* of all subproblems; borrowed, like the arena that the rest is in */
    double *left_bytes;              /* by host */
    struct plan_host_use *uses;      /* scratch */
};
MUST_CHECK enum status subproblem_hosts_begin(struct arena *arena, const struct hardware *hardware,
                                              struct subproblem_hosts *out, struct error *err);
/* `host_bytes` of the subproblem: all hosts together, if each had what is left where the subproblem has least. */
double subproblem_hosts_left(const struct subproblem_hosts *hosts, const struct subproblem *subproblem);
/* The plan's, of a subproblem. Errors: those of plan_host_uses(). */
MUST_CHECK enum status subproblem_hosts_reserve(struct subproblem_hosts *hosts, const struct plan *plan, struct error *err);

/*
 * Jobs and machine borrow names, networks and links from `from` and `all`, which must live longer. Jobs that name
 * devices name none here, and parallel ones begin at the subproblem's first device: its devices are the answer.
 * `how` (NULL: as the job says): the parallelism of the subproblem's jobs. Devices keep their hosts, whose memory is what is
 * left of it. Errors: those of planner_plan(), which numbers devices as the subproblem does; the message says so.
 */
MUST_CHECK enum status subproblem_plan(const struct hardware *all, const struct job *from, const struct subproblem *subproblem,
                                 const struct parallel *how, double host_bytes,
                                 const struct planner_options *options, struct plan *out, struct error *err);

#endif

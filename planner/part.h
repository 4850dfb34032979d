/* Plans of some jobs on some devices of a machine, as though there were nothing else. */
#ifndef SPILLWAY_PLANNER_PART_H
#define SPILLWAY_PLANNER_PART_H

#include "planner/planner.h"

/* Numbers of jobs and of devices, each once. */
struct part {
    const uint32_t *jobs, *devices;
    uint32_t job_count, device_count;
};

/*
 * Jobs and machine borrow names, networks and links from `from` and `all`, which must live longer. Jobs that name
 * devices name none here, and those that are spread begin at the part's first device: its devices are the answer.
 * `how` (NULL: as the job says): how the part's jobs are spread. Host memory: what is left of it.
 * Errors: those of planner_plan(), which numbers devices as the part does; the message says so.
 */
MUST_CHECK enum status part_plan(const struct hardware *all, const struct job *from, const struct part *part,
                                 const struct parallel *how, double host_bytes,
                                 const struct planner_options *options, struct plan *out, struct error *err);

#endif

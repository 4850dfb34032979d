/*
 * Does a training run fit, and what does it take? By making its plan: what is said here of a way is what the plan
 * of that way (planner.h) takes, and plan_check() has proven it.
 *
 * A way that does not fit is planned once more on a machine that has what it lacks, so that there are figures for
 * it as well: with states on the devices that is the same plan on larger devices; with states elsewhere one on a device
 * that has just enough for the largest layer, without double buffering. Resident stages on several devices are cut by
 * what these have; where they have too little, the figures are those of stages that are cut for time alone.
 */
#ifndef SPILLWAY_PLANNER_FIT_H
#define SPILLWAY_PLANNER_FIT_H

#include "planner/capacity/fit_ways.h"
#include "planner/walk/memory_breakdown.h"

enum fit_verdict {
    FIT_YES,
    FIT_DEVICE,     /* a device lacks memory */
    FIT_HOST,       /* the host does */
    FIT_STORAGE,    /* storage does */
    FIT_IMPOSSIBLE, /* no memory would help: `reason` says why, and there are no figures */
    FIT_VERDICTS
};

struct fit {
    enum fit_verdict verdict;
    uint64_t least_bytes;                 /* of a device: with less it does not fit */
    uint64_t device_bytes;                /* what the plan takes of the device that it takes most of, ... */
    uint64_t host_bytes, stored_bytes;    /* ... of the fullest host, of its storage */
    struct memory_breakdown device, host; /* what is in them */
    char moment[PLAN_MOMENT_BYTES];       /* when most of the device is in use */
    char reason[256];
};

/* What a way takes. Neither is changed. Errors: STATUS_NO_MEMORY, STATUS_LIMIT. */
MUST_CHECK enum status fit_find(const struct hardware *hardware, const struct job *job, const struct fit_way *way,
                                struct fit *out, struct error *err);

/* Memory that a plan may use of the least of the devices that a way uses. */
uint64_t fit_usable_bytes(const struct hardware *hardware, const struct fit_way *way);

/* Of each device, each host and its storage. */
struct fit_memory {
    uint64_t device_bytes, host_bytes, storage_bytes;
};
struct fit_memory fit_memory_of(const struct hardware *hardware, const struct fit_way *way);

#endif

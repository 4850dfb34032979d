/*
 * Whether a training run fits a machine, and its memory, as in a plan that plan_check() has proven.
 *
 * A way that does not fit is planned again with enough memory, to know its bytes: with states on the devices the same
 * plan on larger ones; with states elsewhere a plan for one device with just enough memory for the largest layer,
 * without double buffering. Resident stages on several devices are cut by these devices' memory or, if that is too
 * little, by time only.
 */
#ifndef SPILLWAY_PLANNER_CAPACITY_FEASIBILITY_H
#define SPILLWAY_PLANNER_CAPACITY_FEASIBILITY_H

#include "planner/capacity/feasibility_ways.h"
#include "planner/walk/memory_breakdown.h"

enum feasibility_verdict {
    FEASIBILITY_YES,
    FEASIBILITY_DEVICE,     /* a device lacks memory */
    FEASIBILITY_HOST,       /* the host lacks memory */
    FEASIBILITY_STORAGE,    /* storage lacks room */
    FEASIBILITY_IMPOSSIBLE, /* more memory does not help: `reason` says why; bytes are unknown */
    FEASIBILITY_VERDICTS
};

struct feasibility {
    enum feasibility_verdict verdict;
    uint64_t least_bytes;                 /* of a device: with less it does not fit */
    uint64_t device_bytes;                /* bytes of the device that the plan uses most, ... */
    uint64_t host_bytes, stored_bytes;    /* ... of the fullest host, of its storage */
    struct memory_breakdown device, host; /* their contents */
    char moment[PLAN_MOMENT_BYTES];       /* the moment at which most of the device is in use */
    char reason[256];
};

/* Computes the needs of a way. Changes neither hardware nor job. Errors: STATUS_LIMIT. */
MUST_CHECK enum status feasibility_find(const struct hardware *hardware, const struct job *job,
                                        const struct feasibility_way *way, struct feasibility *out, struct error *err);

/* Returns the memory that a plan may use of the smallest device of a way. */
uint64_t feasibility_usable_bytes(const struct hardware *hardware, const struct feasibility_way *way);

/* Memory of each device, each host and its storage. */
struct feasibility_memory {
    uint64_t device_bytes, host_bytes, storage_bytes;
};
struct feasibility_memory feasibility_memory_of(const struct hardware *hardware, const struct feasibility_way *way);

#endif

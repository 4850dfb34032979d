/*
 * Cuts jobs that share bases, and a device's memory:
 *
 *     [ workspace | edge 0 .. e-1 | table | weight buffer 0 | 1 | .. | base that stays | base in turn 0 | 1 ]
 *
 * All jobs with one base have one cut. A weight buffer has a job's own part of a shard: trained weights, their
 * state, spilled activations. Each shard has a device, in turn, so a base crosses each link once for all jobs
 * together. An embedding whose rows the host's processor gathers needs no device. The rest of the memory holds shards
 * of the base from their first use to their last, spread evenly over the others.
 */
#ifndef SPILLWAY_PLANNER_SPILL_SHARED_SHARED_CUT_H
#define SPILLWAY_PLANNER_SPILL_SHARED_SHARED_CUT_H

#include "planner/spill/cut/partition.h"

/* Parameters that are tried. */
struct shared_candidate {
    uint64_t shard_bytes;  /* limit of a shard's frozen weights and a job's own state together */
    uint32_t weight_buffers, turns; /* places for jobs' own data; for shards of a base in turn */
    uint32_t activations;  /* enum plan_activations; none that stays */
    uint32_t place;        /* enum planner_place: device or cpu */
    bool loss_inputs;      /* last shards hold only inputs of layers */
    bool carries;          /* boundaries stay on a device until the job's next turn there */
};

/*
 * Makes the partition. *missing_bytes: 0, or what it lacks on the smallest device, and then *out is empty. Jobs are
 * marked (shared_base.h). Errors: STATUS_LIMIT, STATUS_NO_MEMORY.
 */
MUST_CHECK enum status shared_cut_make(const struct hardware *hardware, const struct job_set *jobs,
                                       struct footprints *footprints, const struct planner_options *options,
                                       const struct shared_candidate *candidate, struct partition *out,
                                       uint64_t *missing_bytes, struct error *err);

/* Returns the bytes of the smallest layer, counted as a shard's: with less each layer is a shard, too. */
uint64_t shared_cut_least(const struct job_set *jobs);

#endif

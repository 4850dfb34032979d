/*
 * How many replicas each stage of a parallel job might have, where they need not be equal: RaNNC's programme over
 * blocks of layers. Part of planner/parallel/parallel_job_rannc.h; nobody else includes this.
 *
 * The network is joined into blocks (planner/parallel/pipeline/stage_blocks.h), and for each number of stages blocks and tensor groups are
 * divided so that the slowest stage, its computation over its replicas, is as fast as can be within the devices' memory
 * (planner/parallel/pipeline/stage_partition.h). Replicas alone are kept of that: their layers are cut anew, one by one. Devices that differ
 * count as the first of them with the least memory of all; who times the choice looks at each.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_REPLICAS_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_REPLICAS_H

#include "models/hardware/hardware.h"
#include "models/job/job.h"
#include "planner/parallel/pipeline/stage_partition.h"

/* So many blocks and groups at most keep it quick: a network of 164 layers on 64 groups is 0.5 s of processor time with all
 * that planning and simulating takes. With more groups stages have equal numbers of replicas. */
enum { PARALLEL_JOB_BLOCKS = 32, PARALLEL_JOB_GROUPS_MAX = 64 };

/* out[s - 1]: of s stages, or none where no s fit; `pipeline` times `data` entries, no more than PARALLEL_JOB_GROUPS_MAX. With
 * the job's microbatch. Lives as long as `arena`. Errors: STATUS_LIMIT; STATUS_NO_MEMORY. */
MUST_CHECK enum status parallel_job_replicas_find(struct arena *arena, const struct hardware *hardware, const struct job *job,
                                                  struct stage_partition *out, struct error *err);

#endif

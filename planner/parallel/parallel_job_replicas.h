/*
 * The number of replicas of each stage of a parallel job, if they may differ: RaNNC's program over blocks of layers.
 *
 * The layers of the network are joined into blocks (planner/parallel/pipeline/stage_blocks.h). For each number of
 * stages, blocks and tensor groups are divided so that the slowest stage (its computation over its replicas) is as fast
 * as possible within the devices' memory (planner/parallel/pipeline/stage_partition.h). Only the numbers of replicas
 * are kept: their layers are cut again, one by one. If devices differ, all count as the first one with the least memory
 * of all; the caller times its choice on the real devices.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_REPLICAS_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_REPLICAS_H

#include "models/hardware/hardware.h"
#include "models/job/job.h"
#include "planner/parallel/pipeline/stage_partition.h"

/* Limits that keep the search fast: planning and simulating a network of 164 layers on 64 groups takes 0.5 s of
 * processor time. With more groups, all stages have the same number of replicas. */
enum { PARALLEL_JOB_BLOCKS = 32, PARALLEL_JOB_GROUPS_MAX = 64 };

/* Fills out[s - 1] with the partition into s stages, empty if s stages do not fit. `out` has pipeline * data
 * entries, at most PARALLEL_JOB_GROUPS_MAX. Uses the job's microbatch. The result lives as long as `arena`. Errors:
 * STATUS_LIMIT. */
MUST_CHECK enum status parallel_job_replicas_find(struct arena *arena, const struct hardware *hardware, const struct job *job,
                                                  struct stage_partition *out, struct error *err);

#endif

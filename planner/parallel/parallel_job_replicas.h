/*
 * The replicas of each stage, if they may differ: RaNNC's program over blocks of layers.
 *
 * Layers are joined into blocks (planner/parallel/pipeline/stage_blocks.h). For each number of stages, blocks and
 * tensor groups are divided so that the slowest stage (computation over replicas) is as fast as memory allows
 * (planner/parallel/pipeline/stage_partition.h). Only the numbers of replicas are kept: layers are cut again, one by
 * one. If devices differ, all count as the first with the least memory; the caller times its choice on the real
 * devices.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_REPLICAS_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_REPLICAS_H

#include "models/hardware/hardware.h"
#include "models/job/job.h"
#include "planner/parallel/pipeline/stage_partition.h"

/* Keep the search fast: planning and simulating 164 layers on 64 groups takes 0.5 s of processor time. Beyond, all
 * stages have equally many replicas. */
enum { PARALLEL_JOB_BLOCKS = 32, PARALLEL_JOB_GROUPS_MAX = 64 };

/* Fills out[s - 1] with the partition into s stages, empty if none fits. `out` has pipeline * data entries, at most
 * PARALLEL_JOB_GROUPS_MAX. The result lives as long as `arena`. Errors: STATUS_LIMIT. */
MUST_CHECK enum status parallel_job_replicas_find(struct arena *arena, const struct hardware *hardware,
                                                  const struct job *job,
                                                  struct stage_partition *out, struct error *err);

#endif

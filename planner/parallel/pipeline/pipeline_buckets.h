/*
 * The order of gpipe and 1f1b if stages have several buckets (models/job/parallel.h): the order of whole stages, with
 * each pass of a stage replaced by passes over its chunks, forward from the first chunk, backward from the last.
 *
 *     2 buckets   stage 0  F0 F2 B0 F4 ...     becomes   F0' F0" F2' F2" B0" B0' F4' F4" ...
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PIPELINE_PIPELINE_BUCKETS_H
#define SPILLWAY_PLANNER_PARALLEL_PIPELINE_PIPELINE_BUCKETS_H

#include "planner/parallel/pipeline/pipeline.h"

/* As pipeline_order(). */
MUST_CHECK enum status pipeline_buckets_order(struct arena *arena, const struct parallel *parallel,
                                              uint32_t microbatches,
                                              const struct pipeline_times *times, struct pipeline_order *out,
                                              struct error *err);

#endif

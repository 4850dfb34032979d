/*
 * The lengths of a sequence's slices that go through a pipeline in turn.
 *
 * A slice of i tokens after j others takes t(j, j + i) on the slowest of K stages. It reaches the next stage
 * s(j, j + i) later, during other slices. M sequences of slices take
 *
 *     M sum of t + (K - 1) max (t + s)
 *
 * Short slices fill the pipeline sooner, but many cost more. With causal attention later tokens take longer, so slices
 * become shorter. For every possible maximum of t + s, dynamic programming finds the least sum over slices within it;
 * the best wins. (The paper's t includes s.)
 *
 * Source: TeraPipe, arXiv 2102.07988, section 3.3.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PIPELINE_SLICE_PARTITION_H
#define SPILLWAY_PLANNER_PARALLEL_PIPELINE_SLICE_PARTITION_H

#include <stdint.h>

#include "base/error.h"
#include "models/job/parallel.h"

/* Returns the seconds of a slice of tokens [begin, end) on the slowest stage; above 0. */
typedef double (*slice_seconds)(void *context, uint32_t begin, uint32_t end);

struct slice_request {
    uint32_t tokens;      /* of the sequence, at least 1 */
    uint32_t granularity; /* all slices but the last are multiples of it; at least tokens / PARALLEL_SLICES_MAX */
    uint32_t stages;      /* K */
    uint64_t repeats;     /* M */
    slice_seconds seconds;
    slice_seconds sends; /* s, both ways; NULL: nothing */
    void *context;
};

struct slice_partition {
    uint32_t count, tokens[PARALLEL_SLICES_MAX];
    double seconds; /* M sum of t + (K - 1) max (t + s) */
};

/* Finds the best slices. Cost: n^2 calls and O(n^4) for n = tokens / granularity. */
MUST_CHECK enum status slice_partition_find(const struct slice_request *request, struct slice_partition *out,
                                            struct error *err);

#endif

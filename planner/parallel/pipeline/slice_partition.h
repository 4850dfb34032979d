/*
 * How long the slices of a sequence are that go through a pipeline one behind the other.
 *
 * A slice of i tokens behind j others takes t(j, j + i) on the slowest of K stages, and is with the next stage s(j, j + i)
 * later, while stages go on with other slices. M sequences of slices take
 *
 *     M sum of t + (K - 1) max (t + s)
 *
 * Short slices fill the pipeline sooner, many of them cost more in all. With causal attention later ones take longer,
 * so they become shorter towards the end. The programme: for every maximum of t + s that slices could have, the least
 * sum of slices none of which takes longer; of these the best. (The paper's t has s in it.)
 *
 * Source: TeraPipe, arXiv 2102.07988, section 3.3.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PIPELINE_SLICE_PARTITION_H
#define SPILLWAY_PLANNER_PARALLEL_PIPELINE_SLICE_PARTITION_H

#include <stdint.h>

#include "base/error.h"
#include "models/job/parallel.h"

/* Seconds of a slice of tokens [begin, end) on the slowest stage; above 0. */
typedef double (*slice_seconds)(void *context, uint32_t begin, uint32_t end);

struct slice_request {
    uint32_t tokens;      /* of the sequence, at least 1 */
    uint32_t granularity; /* slices are multiples of it, but the last; at least tokens / PARALLEL_SLICES_MAX */
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

/* Cost: n^2 calls and O(n^4) for n = tokens / granularity. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status slice_partition_find(const struct slice_request *request, struct slice_partition *out,
                                            struct error *err);

#endif
